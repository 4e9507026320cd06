# The pool problems that most of 91 models run, with the number of models and of calls. Made by bench/field/field.py.

# as handed over
reduce_mean x=f32/8x2048x7x7 axis=2,3 ; models=9 count=10
pool_max x=f16/8x64x112x112 window=3 stride=2 pad=1 ; models=8 count=8
reduce_mean x=bf16/8x1280x7x7 axis=2,3 ; models=7 count=7
reduce_mean x=f32/8x672x14x14 axis=2,3 ; models=6 count=14
reduce_mean x=f16/8x960x7x7 axis=2,3 ; models=6 count=10
reduce_mean x=bf16/8x512x7x7 axis=2,3 ; models=6 count=9
reduce_mean x=f32/8x768x7x7 axis=2,3 ; models=6 count=8
reduce_mean x=f16/8x480x14x14 axis=2,3 ; models=5 count=11
reduce_mean x=bf16/8x672x7x7 axis=2,3 ; models=5 count=5
reduce_mean x=f32/8x1024x7x7 axis=2,3 ; models=4 count=4
reduce_mean x=f16/8x1152x7x7 axis=2,3 ; models=3 count=10
reduce_mean x=bf16/8x120x28x28 axis=2,3 ; models=3 count=9
reduce_mean x=f32/8x256x14x14 axis=2,3 ; models=3 count=8
reduce_mean x=f16/8x256x56x56 axis=2,3 ; models=3 count=4
reduce_mean x=bf16/8x96x56x56 axis=2,3 ; models=3 count=4
reduce_mean x=f32/8x144x56x56 axis=2,3 ; models=3 count=3
reduce_mean x=f16/8x240x14x14 axis=2,3 ; models=3 count=3
reduce_mean x=bf16/8x240x28x28 axis=2,3 ; models=3 count=3
reduce_mean x=f32/8x768x7x7/nhwc axis=2,3 ; models=3 count=3
reduce_mean x=f16/8x1632x7x7 axis=2,3 ; models=2 count=22
reduce_mean x=bf16/8x336x14x14 axis=2,3 ; models=2 count=18
reduce_mean x=f32/8x960x14x14 axis=2,3 ; models=2 count=13
reduce_mean x=f16/8x512x14x14 axis=2,3 ; models=2 count=6
reduce_mean x=bf16/8x128x28x28 axis=2,3 ; models=2 count=5
reduce_mean x=f32/8x64x56x56 axis=2,3 ; models=2 count=5
reduce_mean x=f16/8x512x28x28 axis=2,3 ; models=2 count=4
pool_average x=bf16/8x64x112x112 window=2 stride=2 ; models=2 count=3
reduce_mean x=f32/8x192x28x28 axis=2,3 ; models=2 count=3
reduce_mean x=f16/8x48x56x56 axis=2,3 ; models=2 count=3
pool_average x=bf16/8x256x56x56 window=2 stride=2 ceil_mode=1 ; models=2 count=2
pool_average x=f32/8x512x28x28 window=2 stride=2 ceil_mode=1 ; models=2 count=2
pool_max x=f16/2x64x256x256 window=3 stride=2 pad=1 ; models=2 count=2
pool_max x=bf16/8x128x112x112 window=2 stride=2 ; models=2 count=2
pool_max x=f32/8x192x71x71 window=3 stride=2 ; models=2 count=2
pool_max x=f16/8x256x56x56 window=2 stride=2 ; models=2 count=2
pool_max x=bf16/8x512x14x14 window=2 stride=2 ; models=2 count=2
pool_max x=f32/8x512x28x28 window=2 stride=2 ; models=2 count=2
pool_max x=f16/8x64x147x147 window=3 stride=2 ; models=2 count=2
pool_max x=bf16/8x64x224x224 window=2 stride=2 ; models=2 count=2
reduce_mean x=f32/2x512x2x14x14 axis=2,3,4 ; models=2 count=2
reduce_mean x=f16/8x144x28x28 axis=2,3 ; models=2 count=2
reduce_mean x=bf16/8x1792x7x7 axis=2,3 ; models=2 count=2
reduce_mean x=f32/8x32x112x112 axis=2,3 ; models=2 count=2
reduce_mean x=f16/8x640x7x7 axis=2,3 ; models=2 count=2
reduce_mean x=bf16/8x72x28x28 axis=2,3 ; models=2 count=2
reduce_mean x=f32/8x128x14x14 axis=2,3 ; models=1 count=12
reduce_mean x=f16/8x1232x14x14 axis=2,3 ; models=1 count=11
reduce_mean x=bf16/8x1280x1x1 axis=1 ; models=1 count=8
pool_average x=f32/8x1024x17x17 window=3 stride=1 pad=1 ; models=1 count=7
reduce_mean x=f16/8x192x14x14 axis=2,3 ; models=1 count=7
pool_average x=bf16/8x224x14x14 window=3 stride=1 pad=1 ; models=1 count=6
pool_average x=f32/8x320x14x14 window=3 stride=1 pad=1 ; models=1 count=6
reduce_mean x=f16/8x1536x14x14 axis=2,3 ; models=1 count=6
reduce_mean x=bf16/8x384x14x14 axis=2,3 ; models=1 count=6
reduce_mean x=f32/8x1024x14x14 axis=2,3 ; models=1 count=5
pool_average x=f16/8x192x28x28/nhwc window=2 stride=2 ceil_mode=1 ; models=1 count=4
pool_average x=bf16/8x384x35x35 window=3 stride=1 pad=1 ; models=1 count=4
pool_average x=f32/8x768x17x17 window=3 stride=1 pad=1 ; models=1 count=4
reduce_mean x=f16/8x448x28x28 axis=2,3 ; models=1 count=4
pool_average x=bf16/8x1536x8x8 window=3 stride=1 pad=1 ; models=1 count=3

# channels last
pool_average x=f32/8x448x7x7 window=3 stride=1 pad=1 ; models=1 count=3
pool_average x=f16/8x48x56x56 window=3 stride=1 pad=1 ; models=1 count=3
pool_max x=bf16/8x512x14x14 window=3 stride=1 pad=1 ceil_mode=1 ; models=1 count=3
reduce_mean x=f32/2x960x32x32 axis=2,3 ; models=1 count=3
reduce_mean x=f16/8x1536x7x7 axis=2,3 ; models=1 count=3
reduce_mean x=bf16/8x192x56x56 axis=2,3 ; models=1 count=3
reduce_mean x=f32/8x224x7x7 axis=2,3 ; models=1 count=3
reduce_mean x=f16/8x336x28x28 axis=2,3 ; models=1 count=3
reduce_mean x=bf16/8x888x7x7 axis=2,3 ; models=1 count=3
pool_average x=f32/8x128x28x28 window=3 stride=1 pad=1 ; models=1 count=2
pool_average x=f16/8x512x7x7 window=3 stride=1 pad=1 ; models=1 count=2
pool_average x=bf16/8x64x56x56 window=3 stride=1 pad=1 ; models=1 count=2
pool_average x=f32/8x96x28x28 window=3 stride=1 pad=1 ; models=1 count=2
pool_average x=f16/8x96x56x56 window=2 stride=2 ; models=1 count=2
pool_max x=bf16/8x128x28x28 window=2 stride=2 ; models=1 count=2
pool_max x=f32/8x64x56x56 window=2 stride=2 ; models=1 count=2
pool_max x=f16/8x832x7x7 window=3 stride=1 pad=1 ceil_mode=1 ; models=1 count=2
reduce_mean x=bf16/2x120x64x64 axis=2,3 ; models=1 count=2
reduce_mean x=f32/2x672x32x32 axis=2,3 ; models=1 count=2
reduce_mean x=f16/8x224x56x56 axis=2,3 ; models=1 count=2
reduce_mean x=bf16/8x2560x1x1 axis=1 ; models=1 count=2
reduce_mean x=f32/8x3024x7x7 axis=2,3 ; models=1 count=2
reduce_mean x=f16/8x320x1x1 axis=1 ; models=1 count=2
reduce_mean x=bf16/8x384x7x7 axis=2,3 ; models=1 count=2
reduce_mean x=f32/8x640x1x1 axis=1 ; models=1 count=2
reduce_mean x=f16/8x768x28x28 axis=2,3 ; models=1 count=2
pool_adaptive_average x=bf16/8x256x6x6 size=6 ; models=1 count=1
pool_adaptive_average x=f32/8x512x7x7 size=7 ; models=1 count=1
pool_average x=f16/4x768x1x499/nhwc window=1,2 stride=1,2 ; models=1 count=1
pool_average x=bf16/8x1024x14x14 window=2 stride=2 ceil_mode=1 ; models=1 count=1
pool_average x=f32/8x104x28x28 window=3 stride=2 pad=1 ; models=1 count=1
pool_average x=f16/8x1280x8x8 window=3 stride=1 pad=1 ; models=1 count=1
pool_average x=bf16/8x128x28x28 window=2 stride=2 ; models=1 count=1
pool_average x=f32/8x128x56x56 window=2 stride=2 ; models=1 count=1
pool_average x=f16/8x128x56x56 window=3 stride=2 pad=1 ; models=1 count=1
pool_average x=bf16/8x1536x14x14 window=2 stride=2 ceil_mode=1 ; models=1 count=1
pool_average x=f32/8x192x28x28 window=2 stride=2 ; models=1 count=1
pool_average x=f16/8x192x28x28/nhwc window=2 stride=2 ; models=1 count=1
pool_average x=bf16/8x192x35x35 window=3 stride=1 pad=1 ; models=1 count=1
pool_average x=f32/8x2048x8x8 window=3 stride=1 pad=1 ; models=1 count=1
pool_average x=f16/8x208x14x14 window=3 stride=2 pad=1 ; models=1 count=1
pool_average x=bf16/8x256x14x14 window=2 stride=2 ; models=1 count=1
pool_average x=f32/8x256x28x28 window=2 stride=2 ; models=1 count=1
pool_average x=f16/8x256x28x28 window=3 stride=2 pad=1 ; models=1 count=1
pool_average x=bf16/8x256x35x35 window=3 stride=1 pad=1 ; models=1 count=1
pool_average x=f32/8x26x56x56 window=3 stride=1 pad=1 ; models=1 count=1
pool_average x=f16/8x288x35x35 window=3 stride=1 pad=1 ; models=1 count=1
pool_average x=bf16/8x384x14x14 window=2 stride=2 ; models=1 count=1
pool_average x=f32/8x384x14x14/nhwc window=2 stride=2 ; models=1 count=1
pool_average x=f16/8x512x14x14 window=2 stride=2 ; models=1 count=1
pool_average x=bf16/8x512x14x14 window=3 stride=2 pad=1 ; models=1 count=1
pool_average x=f32/8x52x56x56 window=3 stride=2 pad=1 ; models=1 count=1
pool_average x=f16/8x64x56x56 window=2 stride=2 ; models=1 count=1
pool_max x=bf16/8x1024x17x17 window=3 stride=2 ; models=1 count=1
pool_max x=f32/8x10x112x112 window=3 stride=2 pad=1 ; models=1 count=1
pool_max x=f16/8x128x55x55 window=3 stride=2 ceil_mode=1 ; models=1 count=1
pool_max x=bf16/8x192x27x27 window=3 stride=2 ; models=1 count=1
pool_max x=f32/8x192x28x28 window=3 stride=1 pad=1 ceil_mode=1 ; models=1 count=1
pool_max x=f16/8x192x56x56 window=3 stride=2 ceil_mode=1 ; models=1 count=1
pool_max x=bf16/8x24x112x112 window=3 stride=2 pad=1 ; models=1 count=1
