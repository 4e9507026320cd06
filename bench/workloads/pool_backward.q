# Gradients of pooling in well-known networks, 100 to 400 MB each; and the forward with the indices that they read.

pool_max_backward dy=f32/64x64x56x56 indices=u8/64x64x56x56 dx=f32/64x64x112x112 window=3 stride=2 pad=1 ; name=resnet.u8
pool_max_backward dy=f32/64x64x56x56 indices=i64/64x64x56x56 dx=f32/64x64x112x112 window=3 stride=2 pad=1 ; name=resnet.i64
pool_max_backward dy=f32/64x64x56x56 x=f32/64x64x112x112 window=3 stride=2 pad=1 ; name=resnet.x
pool_max_backward dy=bf16/128x64x56x56 indices=u8/128x64x56x56 dx=bf16/128x64x112x112 window=3 stride=2 pad=1 ; name=resnet.u8.bf16
pool_max_backward dy=bf16/128x64x56x56 x=bf16/128x64x112x112 window=3 stride=2 pad=1 ; name=resnet.x.bf16
pool_max_backward dy=f32/64x64x56x56/nhwc indices=u8/64x64x56x56/nhwc dx=f32/64x64x112x112/nhwc window=3 stride=2 pad=1 ; name=resnet.u8.nhwc
pool_max_backward dy=f32/64x64x56x56/nhwc x=f32/64x64x112x112/nhwc window=3 stride=2 pad=1 ; name=resnet.x.nhwc
pool_max_backward dy=bf16/128x64x56x56/nhwc indices=u8/128x64x56x56/nhwc dx=bf16/128x64x112x112/nhwc window=3 stride=2 pad=1 ; name=resnet.u8.bf16.nhwc
pool_max_backward dy=bf16/128x64x56x56/nhwc indices=i64/128x64x56x56/nhwc dx=bf16/128x64x112x112/nhwc window=3 stride=2 pad=1 ; name=resnet.i64.bf16.nhwc
pool_max_backward dy=bf16/128x64x56x56/nhwc x=bf16/128x64x112x112/nhwc window=3 stride=2 pad=1 ; name=resnet.x.bf16.nhwc
pool_max_backward dy=f32/64x192x35x35 indices=u8/64x192x35x35 dx=f32/64x192x71x71 window=3 stride=2 ; name=inception.u8
pool_max_backward dy=f32/128x480x28x28 indices=u8/128x480x28x28 dx=f32/128x480x28x28 window=3 stride=1 pad=1 ; name=googlenet.u8
pool_max_backward dy=bf16/256x480x28x28/nhwc indices=u8/256x480x28x28/nhwc dx=bf16/256x480x28x28/nhwc window=3 stride=1 pad=1 ; name=googlenet.u8.bf16.nhwc
pool_max_backward dy=f32/128x480x28x28 x=f32/128x480x28x28 window=3 stride=1 pad=1 ; name=googlenet.x
pool_average_backward dy=f32/128x288x35x35 dx=f32/128x288x35x35 window=3 stride=1 pad=1 ; name=average.inception
pool_average_backward dy=f32/128x288x35x35 dx=f32/128x288x35x35 window=3 stride=1 pad=1 include_pad=0 ; name=average.inception.inside
pool_average_backward dy=bf16/256x288x35x35/nhwc dx=bf16/256x288x35x35/nhwc window=3 stride=1 pad=1 ; name=average.inception.bf16.nhwc
pool_average_backward dy=bf16/256x256x28x28 dx=bf16/256x256x56x56 window=3 stride=2 pad=1 ; name=average.s2.bf16
pool_average_backward dy=bf16/256x256x28x28/nhwc dx=bf16/256x256x56x56/nhwc window=3 stride=2 pad=1 ; name=average.s2.bf16.nhwc
pool_average_backward dy=f32/256x128x28x28/nhwc dx=f32/256x128x56x56/nhwc window=2 ; name=average.densenet.nhwc
pool_average_backward dy=bf16/256x512x7x7 dx=bf16/256x512x14x14 window=2 ; name=average.densenet4.bf16
pool_average_backward dy=f32/512x2048x1x1 dx=f32/512x2048x7x7 ; name=average.global
pool_average_backward dy=bf16/1024x2048x1x1/nhwc dx=bf16/1024x2048x7x7/nhwc ; name=average.global.bf16.nhwc
pool_max_backward dy=f32/64x512x14x14 indices=u8/64x512x14x14 dx=f32/64x512x28x28 window=2 ; name=vgg4.u8
pool_max_backward dy=bf16/128x128x112x112/nhwc indices=u8/128x128x112x112/nhwc dx=bf16/128x128x224x224/nhwc window=2 ; name=vgg1.u8.bf16.nhwc
pool_max_backward dy=f32/64x256x20x20 indices=i64/64x256x20x20 dx=f32/64x256x20x20 window=5 stride=1 pad=2 ; name=spp5
pool_max_backward dy=f32/64x512x13x13 indices=i64/64x512x13x13 dx=f32/64x512x13x13 window=5 stride=1 pad=2 ; name=spp5.13
pool_average_backward dy=f32/64x128x4096 dx=f32/64x128x16384 window=4 ; name=average.1d
pool_max_backward dy=f32/64x128x8192 indices=u8/64x128x8192 dx=f32/64x128x16384 window=3 stride=2 pad=1 ; name=max.1d
pool_max_backward dy=f32/8x64x16x28x28 indices=i64/8x64x16x28x28 dx=f32/8x64x32x56x56 window=2 ; name=c3d.i64
pool_max_backward dy=f32/8x64x16x56x56 indices=i64/8x64x16x56x56 dx=f32/8x64x16x112x112 window=1,3,3 stride=1,2,2 pad=0,1,1 ; name=i3d.i64
pool_max_backward dy=bf16/256x480x28x28 x=bf16/256x480x28x28 window=3 stride=1 pad=1 ; name=googlenet.x.bf16
pool_max_backward dy=f32/64x128x8192 indices=i64/64x128x8192 dx=f32/64x128x16384 window=3 stride=2 pad=1 ; name=max.1d.i64
pool_max_backward dy=f32/64x128x56x56 indices=i64/64x128x56x56 window=2 ; name=vgg.i64
pool_max_backward dy=bf16/128x128x56x56 indices=u8/128x128x56x56 window=2 ; name=vgg.u8.bf16
pool_average_backward dy=bf16/128x288x35x35 window=3 stride=1 pad=1 include_pad=0 ; name=average.inside.bf16
pool_average_backward dy=f32/128x256x28x28 window=3 stride=1 pad=1 ; name=average.28
pool_max_backward dy=bf16/256x480x28x28/nhwc x=bf16/256x480x28x28/nhwc window=3 stride=1 pad=1 ; name=googlenet.x.bf16.nhwc
pool_max_backward dy=f32/128x480x28x28/nhwc x=f32/128x480x28x28/nhwc window=3 stride=1 pad=1 ; name=googlenet.x.nhwc
pool_max_backward dy=f32/128x480x28x28/nhwc indices=u8/128x480x28x28/nhwc window=3 stride=1 pad=1 ; name=googlenet.u8.nhwc
pool_max_backward dy=f32/64x64x56x56/nhwc indices=i64/64x64x56x56/nhwc dx=f32/64x64x112x112/nhwc window=3 stride=2 pad=1 ; name=resnet.i64.nhwc
pool_max_backward dy=bf16/256x480x28x28/nhwc indices=i64/256x480x28x28/nhwc window=3 stride=1 pad=1 ; name=googlenet.i64.bf16.nhwc
pool_max x=f32/64x64x112x112 indices=i64/64x64x56x56 window=3 stride=2 pad=1 ; name=forward.resnet.i64
pool_max x=f32/64x64x112x112 indices=u8/64x64x56x56 window=3 stride=2 pad=1 ; name=forward.resnet.u8
pool_max x=bf16/128x64x112x112 indices=i64/128x64x56x56 window=3 stride=2 pad=1 ; name=forward.resnet.i64.bf16
pool_max x=f32/64x128x112x112 indices=i64/64x128x56x56 window=2 ; name=forward.vgg.i64
pool_max x=f32/128x480x28x28 indices=u8/128x480x28x28 window=3 stride=1 pad=1 ; name=forward.googlenet.u8
pool_max_backward dy=f32/64x512x13x13 x=f32/64x512x13x13 window=5 stride=1 pad=2 ; name=spp5.13.x
pool_average_backward dy=bf16/32x512x7x7 dx=bf16/32x512x14x14 window=5 stride=2 pad=2 ; name=average.5x5.s2.bf16
# sound: windows that overlap along one long dim
pool_max_backward dy=f32/16x64x14999 indices=i64/16x64x14999 dx=f32/16x64x30000 window=4 stride=2 ; name=max.1d.w4s2.i64
