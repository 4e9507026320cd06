# Products of language models, classifiers, experts, attention by hand and their gradients, in three dtypes; then of short sums, long sums of few
# results, small batches and single rows. The first part was drawn before anything was made for it, the second beside the making.
matmul a=bf16/512x4096 b=bf16/4096x6144/t
matmul a=bf16/333x4096 b=bf16/4096x4096/t
matmul a=f16/77x4096 b=f16/4096x11008/t
matmul a=bf16/2048x2048 b=bf16/2048x8192/t
matmul a=bf16/1000x896 b=bf16/896x4864/t
matmul a=f16/7x4096 b=f16/4096x4096/t
matmul a=bf16/3x5120 b=bf16/5120x13824/t
matmul a=bf16/1x896 b=bf16/896x151936/t
matmul a=f16/24x3072 b=f16/3072x9216/t
matmul a=bf16/48x2560 b=bf16/2560x10240/t
matmul a=bf16/200x1536 b=bf16/1536x8960/t
matmul a=f16/1x768 b=f16/768x50257/t
matmul a=f32/1x768 b=f32/768x50257/t
matmul a=f32/4x1024 b=f32/1024x4096/t
matmul a=f16/64x2048 b=f16/2048x1000/t bias=f16/1000
matmul a=f32/64x2048 b=f32/2048x1000/t bias=f32/1000
matmul a=bf16/16x768 b=bf16/768x1000/t bias=bf16/1000
matmul a=f32/128x512 b=f32/512x10/t bias=f32/10
matmul a=f16/256x1280 b=f16/1280x1000/t bias=f16/1000
matmul a=f32/1024x128 b=f32/128x128/t bias=f32/128
matmul a=f32/512x64 b=f32/64x256/t bias=f32/256
matmul a=f32/4096x39 b=f32/39x400/t bias=f32/400
matmul a=f16/4096x512 b=f16/512x256/t bias=f16/256
matmul a=f32/8192x13 b=f32/13x512/t bias=f32/512
matmul a=bf16/8192x479 b=bf16/479x1024/t bias=bf16/1024
matmul a=f32/65536x32 b=f32/32x64/t bias=f32/64
matmul a=f32/100000x3 b=f32/3x64/t bias=f32/64
matmul a=f16/32x4096 b=f16/4096x1/t bias=f16/1
matmul a=f32/2048x256 b=f32/256x1/t bias=f32/1
matmul a=f32/64x784 b=f32/784x300/t bias=f32/300
matmul a=f16/4728x768 b=f16/768x2304/t bias=f16/2304
matmul a=bf16/3152x1024 b=bf16/1024x1024/t bias=bf16/1024
matmul a=f32/788x384 b=f32/384x1536/t bias=f32/1536
matmul a=f16/12000x512 b=f16/512x2048/t bias=f16/2048
matmul a=bf16/6400x384 b=bf16/384x1536/t bias=bf16/1536
matmul a=f32/3000x512 b=f32/512x512/t bias=f32/512
matmul a=f16/1540x1280 b=f16/1280x5120/t bias=f16/5120
matmul a=bf16/16448x1408 b=bf16/1408x1408/t bias=bf16/1408
matmul a=f32/1024x768 b=f32/768x768/t bias=f32/768
matmul a=f16/400x256 b=f16/256x2048/t bias=f16/2048
matmul a=f16/4728x2304 b=f16/2304x768
matmul a=bf16/2048x8192 b=bf16/8192x2048
matmul a=f32/788x1536 b=f32/1536x384
matmul a=bf16/1000x4864 b=bf16/4864x896
matmul a=f32/64x1000 b=f32/1000x2048
matmul a=f16/64x1000 b=f16/1000x2048
matmul a=f16/2304x4728/t b=f16/4728x768
matmul a=bf16/8192x2048/t b=bf16/2048x2048
matmul a=f32/1536x788/t b=f32/788x384
matmul a=bf16/4864x1000/t b=bf16/1000x896
matmul a=f32/1000x64/t b=f32/64x2048
matmul a=f16/1000x64/t b=f16/64x2048
matmul a=bf16/512x12000/t b=bf16/12000x2048
matmul a=f32/400x4096/t b=f32/4096x39
matmul a=f16/96x25088/t b=f16/25088x96
matmul a=f16/128x384x64 b=f16/128x64x384/t
matmul a=f16/128x384x384 b=f16/128x384x64
matmul a=bf16/64x1024x80 b=bf16/64x80x1024/t
matmul a=f32/96x128x64 b=f32/96x64x128/t
matmul a=f32/96x128x128 b=f32/96x128x64
matmul a=bf16/8x512x4096 b=bf16/8x4096x1792
matmul a=f16/16x64x1024 b=f16/16x1024x4096
matmul a=f32/32x77x64 b=f32/32x64x77/t
matmul a=f16/512x49x32 b=f16/512x32x49/t
matmul a=bf16/256x64x64 b=bf16/256x64x64
matmul a=f32/1000x16x16 b=f32/1000x16x16
matmul a=f32/4096x4x4 b=f32/4096x4x4
matmul a=f32/64x26x64 b=f32/64x64x26/t
matmul a=f16/2048x27x128 b=f16/2048x128x27/t
matmul a=bf16/40x1500x64 b=bf16/40x64x1500/t
matmul a=f16/24x200x200 b=f16/24x200x64
matmul a=f32/12x1024x1024 b=f32/12x1024x64
matmul a=f64/1x512x512 b=f64/1x512x512

matmul a=f32/20000x4 b=f32/4x128/t bias=f32/128
matmul a=f32/16384x8 b=f32/8x64/t bias=f32/64
matmul a=f32/50000x6 b=f32/6x32/t bias=f32/32
matmul a=f32/4096x2 b=f32/2x256/t bias=f32/256
matmul a=f32/10000x10 b=f32/10x100/t bias=f32/100
matmul a=f32/2048x27 b=f32/27x256/t bias=f32/256
matmul a=f32/4096x63 b=f32/63x256/t bias=f32/256
matmul a=f32/65536x3 b=f32/3x256/t
matmul a=f32/8192x17 b=f32/17x128/t bias=f32/128
matmul a=f16/65536x3 b=f16/3x64/t bias=f16/64
matmul a=bf16/8192x13 b=bf16/13x512/t bias=bf16/512
matmul a=bf16/16384x27 b=bf16/27x128/t bias=bf16/128
matmul a=f16/20000x10 b=f16/10x64/t bias=f16/64
matmul a=f32/64x32768/t b=f32/32768x64
matmul a=f32/128x16384/t b=f32/16384x128
matmul a=f32/256x8192/t b=f32/8192x10
matmul a=f32/64x65536/t b=f32/65536x32
matmul a=f32/512x8192/t b=f32/8192x13
matmul a=f32/300x4096/t b=f32/4096x784
matmul a=f32/10x8192/t b=f32/8192x128
matmul a=f16/64x50176/t b=f16/50176x64
matmul a=bf16/128x25088/t b=bf16/25088x128
matmul a=bf16/256x12544/t b=bf16/12544x64
matmul a=f16/64x100352/t b=f16/100352x147
matmul a=f16/192x6272/t b=f16/6272x192
matmul a=bf16/384x1568/t b=bf16/1568x96
matmul a=bf16/32x32768/t b=bf16/32768x32
matmul a=f16/40x16384/t b=f16/16384x100
matmul a=f16/1000x1024/t b=f16/1024x100
matmul a=bf16/64x16384 b=bf16/16384x64/t
matmul a=f32/64x16384 b=f32/16384x64/t
matmul a=f32/96x6272/t b=f32/6272x384
matmul a=f32/48x64x64 b=f32/48x64x64/t
matmul a=f32/64x100x64 b=f32/64x64x100/t
matmul a=f32/64x100x100 b=f32/64x100x64
matmul a=f32/128x32x64 b=f32/128x64x32/t
matmul a=f32/16x128x128 b=f32/16x128x128
matmul a=f32/32x77x77 b=f32/32x77x64
matmul a=f32/256x20x20 b=f32/256x20x64
matmul a=f32/256x20x64 b=f32/256x64x20/t
matmul a=f32/512x36x36 b=f32/512x36x36
matmul a=f32/200x100x64 b=f32/200x64x100/t
matmul a=f32/12x128x64 b=f32/12x64x128/t
matmul a=f32/64x50x512 b=f32/64x512x50
matmul a=f16/96x128x64 b=f16/96x64x128/t
matmul a=bf16/32x77x64 b=bf16/32x64x77/t
matmul a=bf16/64x100x100 b=bf16/64x100x32
matmul a=f32/1x512 b=f32/512x32000/t
matmul a=f32/1x1024 b=f32/1024x50257/t
matmul a=f32/2x768 b=f32/768x30522/t
matmul a=f32/8x512 b=f32/512x32000/t
matmul a=f32/1x4096 b=f32/4096x11008/t
matmul a=f32/1x2048 b=f32/2048x8192
matmul a=bf16/1x2048 b=bf16/2048x128256/t
matmul a=f16/5x1024 b=f16/1024x50257/t
matmul a=f32/256x64 b=f32/64x128/t bias=f32/128
matmul a=f32/1024x64 b=f32/64x64/t bias=f32/64
matmul a=f32/256x128 b=f32/128x64/t bias=f32/64
matmul a=f32/4096x64 b=f32/64x64/t bias=f32/64
matmul a=f32/2048x32 b=f32/32x128/t bias=f32/128
matmul a=f32/128x200 b=f32/200x300/t bias=f32/300
matmul a=f32/999x333 b=f32/333x111/t bias=f32/111
matmul a=bf16/2364x1024 b=bf16/1024x1024/t bias=bf16/1024
matmul a=f16/3940x768 b=f16/768x768/t bias=f16/768
matmul a=bf16/4000x1000/t b=bf16/1000x1024
matmul a=f16/3072x788/t b=f16/788x768
matmul a=f16/2048x2000/t b=f16/2000x512
matmul a=bf16/1001x515 b=bf16/515x257/t bias=bf16/257
