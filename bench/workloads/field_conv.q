# The conv problems that most of 91 models run, with the number of models and of calls. Made by bench/field/field.py.

# as handed over
conv_forward x=f32/8x3x224x224 w=f32/32x3x3x3 stride=2 pad=1 ; models=13 count=13
conv_forward x=f16/8x64x56x56 w=f16/256x64x1x1 ; models=9 count=18
conv_forward x=bf16/8x3x224x224 w=bf16/64x3x7x7 stride=2 pad=3 ; models=9 count=9
conv_forward x=f32/8x112x14x14 w=f32/672x112x1x1 ; models=6 count=20
conv_forward x=f16/8x672x14x14 w=f16/112x672x1x1 ; models=6 count=14
conv_forward x=bf16/8x32x112x112 w=bf16/16x32x1x1 ; models=6 count=6
conv_forward x=f32/8x32x112x112 w=f32/32x1x3x3 pad=1 groups=32 ; models=6 count=6
conv_forward x=f16/8x3x224x224 w=f16/16x3x3x3 stride=2 pad=1 ; models=6 count=6
conv_forward x=bf16/8x672x14x14 w=bf16/672x1x5x5 stride=2 pad=2 groups=672 ; models=6 count=6
conv_forward x=f32/8x1024x14x14 w=f32/512x1024x1x1 ; models=5 count=13
conv_forward x=f16/8x80x14x14 w=f16/480x80x1x1 ; models=5 count=13
conv_forward x=bf16/8x512x28x28 w=bf16/256x512x1x1 ; models=5 count=9
conv_forward x=f32/8x672x14x14 w=f32/672x1x5x5 pad=2 groups=672 ; models=5 count=9
conv_forward x=f16/8x40x28x28 w=f16/240x40x1x1 ; models=5 count=8
conv_forward x=bf16/8x256x56x56 w=bf16/128x256x1x1 ; models=5 count=7
conv_forward x=f32/8x1024x14x14 w=f32/2048x1024x1x1 stride=2 ; models=5 count=5
conv_forward x=f16/8x16x112x112 w=f16/96x16x1x1 ; models=5 count=5
conv_forward x=bf16/8x240x14x14 w=bf16/80x240x1x1 ; models=5 count=5
conv_forward x=f32/8x256x56x56 w=f32/512x256x1x1 stride=2 ; models=5 count=5
conv_forward x=f16/8x3x224x224 w=f16/96x3x4x4 bias=f16/96 stride=4 ; models=5 count=5
conv_forward x=bf16/8x512x28x28 w=bf16/1024x512x1x1 stride=2 ; models=5 count=5
conv_forward x=f32/8x96x112x112 w=f32/96x1x3x3 stride=2 pad=1 groups=96 ; models=5 count=5
conv_forward x=f16/8x256x14x14 w=f16/256x256x3x3 pad=1 ; models=4 count=22
conv_forward x=bf16/8x128x28x28 w=bf16/128x128x3x3 pad=1 ; models=4 count=20
conv_forward x=f32/8x192x7x7 w=f32/1152x192x1x1 ; models=4 count=14
conv_forward x=f16/8x192x28x28 w=f16/192x1x3x3 pad=1 groups=192 ; models=4 count=12
conv_forward x=bf16/8x1152x7x7 w=bf16/1152x1x5x5 pad=2 groups=1152 ; models=4 count=11
conv_forward x=f32/8x1152x7x7 w=f32/192x1152x1x1 ; models=4 count=11
conv_forward x=f16/8x512x7x7 w=f16/512x512x3x3 pad=1 ; models=4 count=11
conv_forward x=bf16/8x64x56x56 w=bf16/64x64x3x3 pad=1 ; models=4 count=10
conv_forward x=f32/8x256x56x56 w=f32/256x256x1x1 ; models=4 count=8
conv_forward x=f16/8x480x14x14 w=f16/80x480x1x1 ; models=4 count=8
conv_forward x=bf16/8x48x56x56 w=bf16/48x1x3x3 pad=1 groups=48 ; models=4 count=8
conv_forward x=f32/8x24x56x56 w=f32/144x24x1x1 ; models=4 count=7
conv_forward x=f16/8x480x14x14 w=f16/480x1x3x3 pad=1 groups=480 ; models=4 count=7
conv_forward x=bf16/8x480x14x14 w=bf16/480x1x5x5 pad=2 groups=480 ; models=4 count=6
conv_forward x=f32/8x64x56x56 w=f32/64x64x1x1 ; models=4 count=6
conv_forward x=f16/8x128x56x56 w=f16/128x128x1x1 ; models=4 count=5
conv_forward x=bf16/8x256x56x56 w=bf16/256x1x3x3 pad=1 groups=256 ; models=4 count=5
conv_forward x=f32/4x512x999 w=f32/512x512x2 stride=2 ; models=4 count=4
conv_forward x=f16/8x192x28x28/nhwc w=f16/384x192x2x2 bias=f16/384 stride=2 ; models=4 count=4
conv_forward x=bf16/8x240x28x28 w=bf16/240x1x3x3 stride=2 pad=1 groups=240 ; models=4 count=4
conv_forward x=f32/8x320x7x7 w=f32/1280x320x1x1 ; models=4 count=4
conv_forward x=f16/8x32x112x112 w=f16/64x32x3x3 pad=1 ; models=4 count=4
conv_forward x=bf16/8x384x14x14/nhwc w=bf16/768x384x2x2 bias=bf16/768 stride=2 ; models=4 count=4
conv_forward x=f32/8x3x224x224 w=f32/24x3x3x3 stride=2 pad=1 ; models=4 count=4
conv_forward x=f16/8x480x14x14 w=f16/112x480x1x1 ; models=4 count=4
conv_forward x=bf16/8x64x56x56 w=bf16/128x64x1x1 ; models=4 count=4
conv_forward x=f32/8x72x56x56 w=f32/72x1x5x5 stride=2 pad=2 groups=72 ; models=4 count=4
conv_forward x=f16/8x96x56x56 w=f16/24x96x1x1 ; models=4 count=4
conv_forward x=bf16/8x96x56x56/nhwc w=bf16/192x96x2x2 bias=bf16/192 stride=2 ; models=4 count=4
conv_forward x=f32/8x1024x14x14 w=f32/1024x1024x1x1 ; models=3 count=47
conv_forward x=f16/8x1536x14x14 w=f16/384x1536x1x1 bias=f16/384 ; models=3 count=22
conv_forward x=bf16/8x192x28x28 w=bf16/192x192x1x1 ; models=3 count=21
conv_forward x=f32/8x160x14x14 w=f32/960x160x1x1 ; models=3 count=16
conv_forward x=f16/8x256x14x14 w=f16/1024x256x1x1 ; models=3 count=16
conv_forward x=bf16/8x28x1x1 w=bf16/672x28x1x1 bias=bf16/672 ; models=3 count=13
conv_forward x=f32/8x512x14x14 w=f32/1024x512x1x1 ; models=3 count=13
conv_forward x=f16/8x672x1x1 w=f16/28x672x1x1 bias=f16/28 ; models=3 count=13
conv_forward x=bf16/8x512x14x14 w=bf16/512x512x1x1 ; models=3 count=12

# channels last
conv_forward x=f32/8x3x224x224/nhwc w=f32/32x3x3x3 stride=2 pad=1 ; models=13 count=13
conv_forward x=f16/8x3x224x224/nhwc w=f16/64x3x7x7 stride=2 pad=3 ; models=9 count=9
conv_forward x=bf16/8x3x224x224/nhwc w=bf16/16x3x3x3 stride=2 pad=1 ; models=6 count=6
conv_forward x=f32/8x3x224x224/nhwc w=f32/96x3x4x4 bias=f32/96 stride=4 ; models=5 count=5
conv_forward x=f16/8x3x224x224/nhwc w=f16/24x3x3x3 stride=2 pad=1 ; models=4 count=4
conv_forward x=bf16/8x128x28x28 w=bf16/512x128x1x1 ; models=3 count=9
conv_forward x=f32/8x256x28x28 w=f32/512x256x1x1 ; models=3 count=9
conv_forward x=f16/8x512x28x28 w=f16/512x512x1x1 ; models=3 count=9
conv_forward x=bf16/8x512x14x14 w=bf16/128x512x1x1 ; models=3 count=8
conv_forward x=f32/8x1024x7x7 w=f32/2048x1024x1x1 ; models=3 count=7
conv_forward x=f16/8x128x14x14 w=f16/512x128x1x1 ; models=3 count=7
conv_forward x=bf16/8x128x56x56 w=bf16/256x128x1x1 ; models=3 count=7
conv_forward x=f32/8x160x7x7 w=f32/960x160x1x1 ; models=3 count=7
conv_forward x=f16/8x24x56x56 w=f16/72x24x1x1 ; models=3 count=7
conv_forward x=bf16/8x512x7x7 w=bf16/2048x512x1x1 ; models=3 count=7
conv_forward x=f32/8x168x1x1 w=f32/672x168x1x1 bias=f32/672 ; models=3 count=6
conv_forward x=f16/8x256x56x56 w=f16/64x256x1x1 ; models=3 count=6
conv_forward x=bf16/8x672x1x1 w=bf16/168x672x1x1 bias=bf16/168 ; models=3 count=6
conv_forward x=f32/8x96x28x28 w=f32/192x96x1x1 ; models=3 count=6
conv_forward x=f16/8x144x1x1 w=f16/6x144x1x1 bias=f16/6 ; models=3 count=5
conv_forward x=bf16/8x192x28x28 w=bf16/32x192x1x1 ; models=3 count=5
conv_forward x=f32/8x256x56x56 w=f32/64x256x1x1 bias=f32/64 ; models=3 count=5
conv_forward x=f16/8x40x28x28 w=f16/120x40x1x1 ; models=3 count=5
conv_forward x=bf16/8x6x1x1 w=bf16/144x6x1x1 bias=bf16/144 ; models=3 count=5
conv_forward x=f32/8x96x56x56 w=f32/96x96x1x1 ; models=3 count=5
conv_forward x=f16/8x120x1x1 w=f16/480x120x1x1 bias=f16/480 ; models=3 count=4
conv_forward x=bf16/8x256x28x28 w=bf16/128x256x1x1 ; models=3 count=4
conv_forward x=f32/8x256x28x28 w=f32/256x256x1x1 ; models=3 count=4
conv_forward x=f16/8x480x1x1 w=f16/120x480x1x1 bias=f16/120 ; models=3 count=4
conv_forward x=bf16/8x72x56x56 w=bf16/24x72x1x1 ; models=3 count=4
conv_forward x=f32/4x1x160000 w=f32/512x1x10 stride=5 ; models=3 count=3
conv_forward x=f16/4x512x15999 w=f16/512x512x3 stride=2 ; models=3 count=3
conv_forward x=bf16/4x512x1999 w=bf16/512x512x2 stride=2 ; models=3 count=3
conv_forward x=f32/4x512x31999 w=f32/512x512x3 stride=2 ; models=3 count=3
conv_forward x=f16/4x512x3999 w=f16/512x512x3 stride=2 ; models=3 count=3
conv_forward x=bf16/4x512x7999 w=bf16/512x512x3 stride=2 ; models=3 count=3
conv_forward x=f32/8x1152x7x7 w=f32/1152x1x3x3 pad=1 groups=1152 ; models=3 count=3
conv_forward x=f16/8x1152x7x7 w=f16/320x1152x1x1 ; models=3 count=3
conv_forward x=bf16/8x144x56x56 w=bf16/144x1x3x3 pad=1 groups=144 ; models=3 count=3
conv_forward x=f32/8x144x56x56 w=f32/144x1x5x5 stride=2 pad=2 groups=144 ; models=3 count=3
conv_forward x=f16/8x144x56x56 w=f16/24x144x1x1 ; models=3 count=3
conv_forward x=bf16/8x16x112x112 w=bf16/16x1x3x3 pad=1 groups=16 ; models=3 count=3
conv_forward x=f32/8x240x28x28 w=f32/240x1x5x5 pad=2 groups=240 ; models=3 count=3
conv_forward x=f16/8x240x28x28 w=f16/40x240x1x1 ; models=3 count=3
conv_forward x=bf16/8x3x224x224/nhwc w=bf16/64x3x3x3 stride=2 pad=1 ; models=3 count=3
conv_forward x=f32/8x3x224x224/nhwc w=f32/768x3x16x16 bias=f32/768 stride=16 ; models=3 count=3
conv_forward x=f16/8x48x112x112 w=f16/48x1x3x3 stride=2 pad=1 groups=48 ; models=3 count=3
conv_forward x=bf16/8x672x7x7 w=bf16/192x672x1x1 ; models=3 count=3
conv_forward x=f32/8x72x28x28 w=f32/40x72x1x1 ; models=3 count=3
conv_forward x=f16/8x960x1x1 w=f16/1280x960x1x1 bias=f16/1280 ; models=3 count=3
conv_forward x=bf16/8x1632x1x1 w=bf16/68x1632x1x1 bias=bf16/68 ; models=2 count=22
conv_forward x=f32/8x272x7x7 w=f32/1632x272x1x1 ; models=2 count=22
conv_forward x=f16/8x68x1x1 w=f16/1632x68x1x1 bias=f16/1632 ; models=2 count=22
conv_forward x=bf16/8x1632x7x7 w=bf16/272x1632x1x1 ; models=2 count=21
conv_forward x=f32/8x192x14x14 w=f32/192x1x1x1 groups=192 ; models=2 count=19
conv_forward x=f16/8x192x14x14 w=f16/192x1x3x3 pad=1 groups=192 ; models=2 count=19
conv_forward x=bf16/8x384x14x14 w=bf16/384x384x1x1 bias=bf16/384 ; models=2 count=18
conv_forward x=f32/8x192x14x14 w=f32/384x192x1x1 ; models=2 count=17
conv_forward x=f16/8x512x14x14 w=f16/512x16x3x3 pad=1 groups=32 ; models=2 count=16
conv_forward x=bf16/8x1632x7x7 w=bf16/1632x1x3x3 pad=1 groups=1632 ; models=2 count=15
