# The matmul problems that most of 91 models run, with the number of models and of calls. Made by bench/field/field.py.

# as handed over
matmul a=f32/8x1280 b=f32/1280x1000/t bias=f32/1000 ; models=11 count=11
matmul a=f16/8x768 b=f16/768x1000/t bias=f16/1000 ; models=10 count=10
matmul a=bf16/8x2048 b=bf16/2048x1000/t bias=bf16/1000 ; models=9 count=9
matmul a=f32/8x1024 b=f32/1024x1000/t bias=f32/1000 ; models=5 count=5
matmul a=f16/8x512 b=f16/512x1000/t bias=f16/1000 ; models=5 count=5
matmul a=bf16/1568x1536 b=bf16/1536x384/t bias=bf16/384 ; models=4 count=30
matmul a=f32/1568x384 b=f32/384x1536/t bias=f32/1536 ; models=4 count=30
matmul a=f16/25088x384 b=f16/384x96/t bias=f16/96 ; models=4 count=10
matmul a=bf16/25088x96 b=bf16/96x384/t bias=bf16/384 ; models=4 count=10
matmul a=f32/392x3072 b=f32/3072x768/t bias=f32/768 ; models=4 count=10
matmul a=f16/392x768 b=f16/768x3072/t bias=f16/3072 ; models=4 count=10
matmul a=bf16/6272x192 b=bf16/192x768/t bias=bf16/768 ; models=4 count=10
matmul a=f32/6272x768 b=f32/768x192/t bias=f32/192 ; models=4 count=10
matmul a=f16/8x384 b=f16/384x1000/t bias=f16/1000 ; models=4 count=6
matmul a=bf16/1996x512 b=bf16/512x768/t bias=bf16/768 ; models=4 count=4
matmul a=f32/1996x768 b=f32/768x768/t bias=f32/768 ; models=3 count=112
matmul a=f16/1996x3072 b=f16/3072x768/t bias=f16/768 ; models=3 count=32
matmul a=bf16/1996x768 b=bf16/768x3072/t bias=bf16/3072 ; models=3 count=32
matmul a=f32/48x499x499 b=f32/48x499x64 ; models=3 count=28
matmul a=f16/48x499x64 b=f16/48x64x499 ; models=3 count=28
matmul a=bf16/1568x384 b=bf16/384x1152/t bias=bf16/1152 ; models=3 count=26
matmul a=f32/1568x384 b=f32/384x384/t bias=f32/384 ; models=3 count=23
matmul a=f16/392x512 b=f16/512x512/t bias=f16/512 ; models=3 count=14
matmul a=bf16/25088x64 b=bf16/64x64/t bias=bf16/64 ; models=3 count=11
matmul a=f32/6272x128 b=f32/128x128/t bias=f32/128 ; models=3 count=11
matmul a=f16/392x512 b=f16/512x2048/t bias=f16/2048 ; models=3 count=10
matmul a=bf16/6272x192 b=bf16/192x576/t bias=bf16/576 ; models=3 count=8
matmul a=f32/192x49x49 b=f32/192x49x32 ; models=3 count=4
matmul a=f16/2x512 b=f16/512x400/t bias=f16/400 ; models=3 count=3
matmul a=bf16/8x4096 b=bf16/4096x1000/t bias=bf16/1000 ; models=3 count=3
matmul a=f32/400x768 b=f32/768x768/t bias=f32/768 ; models=2 count=60
matmul a=f16/1568x256 b=f16/256x256/t bias=f16/256 ; models=2 count=25
matmul a=bf16/1576x3072 b=bf16/3072x768/t bias=bf16/768 ; models=2 count=24
matmul a=f32/1576x768 b=f32/768x2304/t bias=f32/2304 ; models=2 count=24
matmul a=f16/1576x768 b=f16/768x3072/t bias=f16/3072 ; models=2 count=24
matmul a=bf16/1576x768 b=bf16/768x768/t bias=bf16/768 ; models=2 count=24
matmul a=f32/400x3072 b=f32/3072x768/t bias=f32/768 ; models=2 count=24
matmul a=f16/400x768 b=f16/768x3072/t bias=f16/3072 ; models=2 count=24
matmul a=bf16/96x197x197 b=bf16/96x197x64 ; models=2 count=24
matmul a=f32/96x197x64 b=f32/96x64x197 ; models=2 count=24
matmul a=f16/96x50x50 b=f16/96x50x64 ; models=2 count=24
matmul a=bf16/96x50x64 b=bf16/96x64x50 ; models=2 count=24
matmul a=f32/1568x1024 b=f32/1024x256/t bias=f32/256 ; models=2 count=20
matmul a=f16/1568x256 b=f16/256x1024/t bias=f16/1024 ; models=2 count=20
matmul a=bf16/96x196x196 b=bf16/96x196x32 ; models=2 count=20
matmul a=f32/1568x192 b=f32/192x576/t bias=f32/576 ; models=2 count=16
matmul a=f16/256x49x32 b=f16/256x32x49 ; models=2 count=15
matmul a=bf16/256x49x49 b=bf16/256x49x32 ; models=2 count=15
matmul a=f32/384x49x32 b=f32/384x32x49 ; models=2 count=9
matmul a=f16/384x49x49 b=f16/384x49x32 ; models=2 count=9
matmul a=bf16/6272x192 b=bf16/192x192/t ; models=2 count=9
matmul a=f32/128x49x32 b=f32/128x32x49 ; models=2 count=8
matmul a=f16/128x49x49 b=f16/128x49x32 ; models=2 count=8
matmul a=bf16/392x2048 b=bf16/2048x512/t bias=bf16/512 ; models=2 count=8
matmul a=f32/25088x256 b=f32/256x64/t bias=f32/64 ; models=2 count=6
matmul a=f16/25088x64 b=f16/64x256/t bias=f16/256 ; models=2 count=6
matmul a=bf16/392x512 b=bf16/512x1536/t bias=bf16/1536 ; models=2 count=6
matmul a=f32/6272x128 b=f32/128x512/t bias=f32/512 ; models=2 count=6
matmul a=f16/6272x512 b=f16/512x128/t bias=f16/128 ; models=2 count=6
matmul a=bf16/1024x49x32 b=bf16/1024x32x49 ; models=2 count=5

# channels last
matmul a=f32/1024x49x49 b=f32/1024x49x32 ; models=2 count=5
matmul a=f16/512x49x32 b=f16/512x32x49 ; models=2 count=5
matmul a=bf16/512x49x49 b=bf16/512x49x32 ; models=2 count=5
matmul a=f32/25088x96 b=f32/96x288/t bias=f32/288 ; models=2 count=4
matmul a=f16/392x512 b=f16/512x1024/t bias=f16/1024 ; models=2 count=4
matmul a=bf16/392x768 b=bf16/768x2304/t bias=bf16/2304 ; models=2 count=4
matmul a=f32/48x512x512 b=f32/48x512x64 ; models=2 count=4
matmul a=f16/1536x49x32 b=f16/1536x32x49 ; models=2 count=3
matmul a=bf16/1536x49x49 b=bf16/1536x49x32 ; models=2 count=3
matmul a=f32/192x49x32 b=f32/192x32x49 ; models=2 count=3
matmul a=f16/25088x96 b=f16/96x96/t bias=f16/96 ; models=2 count=3
matmul a=bf16/392x128 b=bf16/128x256/t bias=bf16/256 ; models=2 count=3
matmul a=f32/392x64 b=f32/64x128/t bias=f32/128 ; models=2 count=3
matmul a=f16/392x768 b=f16/768x768/t bias=f16/768 ; models=2 count=3
matmul a=bf16/6272x192 b=bf16/192x192/t bias=bf16/192 ; models=2 count=3
matmul a=f32/768x49x32 b=f32/768x32x49 ; models=2 count=3
matmul a=f16/768x49x49 b=f16/768x49x32 ; models=2 count=3
matmul a=bf16/8x1792 b=bf16/1792x1000/t bias=bf16/1000 ; models=2 count=2
matmul a=f32/8x192 b=f32/192x1000/t bias=f32/1000 ; models=2 count=2
matmul a=f16/8x4096 b=f16/4096x4096/t bias=f16/4096 ; models=2 count=2
matmul a=bf16/8x640 b=bf16/640x1000/t bias=bf16/1000 ; models=2 count=2
matmul a=f32/4x1536x16 b=f32/4x16x1 ; models=1 count=1024
matmul a=f16/128x384 b=f16/384x384/t bias=f16/384 ; models=1 count=896
matmul a=bf16/128x96 b=bf16/96x384/t bias=bf16/384 ; models=1 count=896
matmul a=f32/256x192 b=f32/192x192/t bias=f32/192 ; models=1 count=512
matmul a=f16/256x48 b=f16/48x192/t bias=f16/192 ; models=1 count=512
matmul a=bf16/1154x768 b=bf16/768x768/t bias=bf16/768 ; models=1 count=48
matmul a=f32/4856x768 b=f32/768x768/t bias=f32/768 ; models=1 count=48
matmul a=f16/996x768 b=f16/768x768/t bias=f16/768 ; models=1 count=48
matmul a=bf16/128x257x257 b=bf16/128x257x64 ; models=1 count=24
matmul a=f32/128x257x64 b=f32/128x64x257 ; models=1 count=24
matmul a=f16/2056x1024 b=f16/1024x1024/t bias=f16/1024 ; models=1 count=24
matmul a=bf16/2056x1024 b=bf16/1024x3072/t bias=bf16/3072 ; models=1 count=24
matmul a=f32/2056x1024 b=f32/1024x4096/t bias=f32/4096 ; models=1 count=24
matmul a=f16/2056x4096 b=f16/4096x1024/t bias=f16/1024 ; models=1 count=24
matmul a=bf16/2048x640 b=bf16/640x640/t ; models=1 count=20
matmul a=f32/256x384 b=f32/384x384/t bias=f32/384 ; models=1 count=20
matmul a=f16/512x1280 b=f16/1280x1280/t ; models=1 count=20
matmul a=bf16/8192x320 b=bf16/320x320/t ; models=1 count=20
matmul a=f32/1576x256 b=f32/256x768/t bias=f32/768 ; models=1 count=18
matmul a=f16/6000x384 b=f16/384x384/t bias=f16/384 ; models=1 count=16
matmul a=bf16/1576x256 b=bf16/256x256/t bias=bf16/256 ; models=1 count=15
matmul a=f32/1568x1152 b=f32/1152x384/t bias=f32/384 ; models=1 count=14
matmul a=f16/1568x384 b=f16/384x1152/t ; models=1 count=14
matmul a=bf16/2048x1152 b=bf16/1152x384/t bias=bf16/384 ; models=1 count=14
matmul a=f32/2048x384 b=f32/384x1152/t bias=f32/1152 ; models=1 count=14
matmul a=f16/2048x384 b=f16/384x384/t bias=f16/384 ; models=1 count=14
matmul a=bf16/96x196x32 b=bf16/96x32x196 ; models=1 count=14
matmul a=f32/2x1280 b=f32/1280x1280/t bias=f32/1280 ; models=1 count=13
matmul a=f16/1154x3072 b=f16/3072x768/t bias=f16/768 ; models=1 count=12
matmul a=bf16/1154x768 b=bf16/768x3072/t bias=bf16/3072 ; models=1 count=12
matmul a=f32/154x768 b=f32/768x1280/t ; models=1 count=12
matmul a=f16/1568x192 b=f16/192x192/t ; models=1 count=12
matmul a=bf16/1568x192 b=bf16/192x768/t bias=bf16/768 ; models=1 count=12
matmul a=f32/1568x3072 b=f32/3072x768/t bias=f32/768 ; models=1 count=12
matmul a=f16/1568x768 b=f16/768x192/t bias=f16/192 ; models=1 count=12
matmul a=bf16/1568x768 b=bf16/768x3072/t bias=bf16/3072 ; models=1 count=12
matmul a=f32/24x577x577 b=f32/24x577x64 ; models=1 count=12
matmul a=f16/24x577x64 b=f16/24x64x577 ; models=1 count=12
matmul a=bf16/32x48x196 b=bf16/32x196x48 ; models=1 count=12
