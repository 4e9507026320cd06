# Pooling in well-known networks, and in 1-D and 3-D.

pool_max x=f32/8x64x112x112 window=3 stride=2 pad=1 ; name=pool_max.resnet
pool_max x=f32/8x64x112x112/nhwc window=3 stride=2 pad=1 ; name=pool_max.resnet.nhwc
pool_max x=f32/2x64x224x224 window=2 ; name=pool_max.vgg1
pool_max x=f32/2x64x224x224/nhwc window=2 ; name=pool_max.vgg1.nhwc
pool_max x=f32/8x512x28x28 window=2 ; name=pool_max.vgg4
pool_max x=f32/8x512x28x28/nhwc window=2 ; name=pool_max.vgg4.nhwc
pool_max x=f32/8x192x35x35 window=3 stride=1 pad=1 ; name=pool_max.inception
pool_max x=f32/8x192x35x35/nhwc window=3 stride=1 pad=1 ; name=pool_max.inception.nhwc
pool_max x=f32/8x256x20x20 window=13 stride=1 pad=6 ; name=pool_max.spp
pool_max x=f32/8x256x20x20/nhwc window=13 stride=1 pad=6 ; name=pool_max.spp.nhwc
pool_max x=f32/8x64x112x112 window=3 stride=2 pad=1 indices=u8/8x64x56x56 ; name=pool_max.resnet.u8
pool_max x=f32/8x64x112x112 window=3 stride=2 pad=1 indices=i64/8x64x56x56 ; name=pool_max.resnet.i64
pool_average x=f32/8x192x35x35 window=3 stride=1 pad=1 ; name=pool_average.inception
pool_average x=f32/8x192x35x35/nhwc window=3 stride=1 pad=1 ; name=pool_average.inception.nhwc
pool_average x=f32/8x128x56x56 window=2 ; name=pool_average.densenet
pool_average x=f32/8x128x56x56/nhwc window=2 ; name=pool_average.densenet.nhwc
pool_average x=f32/32x2048x7x7 ; name=pool_average.global
pool_average x=f32/32x2048x7x7/nhwc ; name=pool_average.global.nhwc
pool_max_backward dy=f32/8x64x56x56 indices=u8/8x64x56x56 dx=f32/8x64x112x112 window=3 stride=2 pad=1 ; name=pool_max_backward.resnet.u8
pool_max_backward dy=f32/8x64x56x56 x=f32/8x64x112x112 window=3 stride=2 pad=1 ; name=pool_max_backward.resnet.x
pool_max_backward dy=f32/8x512x14x14 indices=u8/8x512x14x14 dx=f32/8x512x28x28 window=2 ; name=pool_max_backward.vgg4.u8
pool_average_backward dy=f32/8x192x35x35 dx=f32/8x192x35x35 window=3 stride=1 pad=1 ; name=pool_average_backward.inception
pool_average_backward dy=f32/32x2048x1x1 dx=f32/32x2048x7x7 ; name=pool_average_backward.global
pool_max x=f32/16x64x4096 window=4 ; name=pool_max.1d
pool_average x=f32/2x32x32x32x32 window=2 ; name=pool_average.3d
pool_max x=bf16/8x64x112x112/nhwc window=3 stride=2 pad=1 ; name=pool_max.bf16.nhwc
pool_max x=f32/8x256x20x20/nhwc window=5 stride=1 pad=2 ; name=pool_max.spp5.nhwc
pool_average x=f32/8x256x20x20/nhwc window=7 stride=1 pad=3 ; name=pool_average.7x7.nhwc
pool_max x=bf16/64x256x20x20/nhwc window=9 stride=1 pad=4 ; name=pool_max.spp9.bf16.nhwc
pool_average x=i8/32x256x56x56/nhwc window=3 stride=2 pad=1 ; name=pool_average.i8.nhwc
