# The convolutions of MobileNet v1: depthwise 3x3, then 1x1.
# Backward by data (not of the first layer) and by filter, batch 8, f32, nchw.

conv_backward_data dy=f32/8x32x112x112 w=f32/32x1x3x3 dx=f32/8x32x112x112 pad=1 groups=32 ; name=mobilenet.dw32.112.data
conv_backward_data dy=f32/8x64x112x112 w=f32/64x32x1x1 dx=f32/8x32x112x112 ; name=mobilenet.pw32-64.112.data
conv_backward_data dy=f32/8x64x56x56 w=f32/64x1x3x3 dx=f32/8x64x112x112 stride=2 pad=1 groups=64 ; name=mobilenet.dw64.112.s2.data
conv_backward_data dy=f32/8x128x56x56 w=f32/128x64x1x1 dx=f32/8x64x56x56 ; name=mobilenet.pw64-128.56.data
conv_backward_data dy=f32/8x128x56x56 w=f32/128x1x3x3 dx=f32/8x128x56x56 pad=1 groups=128 ; name=mobilenet.dw128.56.data
conv_backward_data dy=f32/8x128x56x56 w=f32/128x128x1x1 dx=f32/8x128x56x56 ; name=mobilenet.pw128-128.56.data
conv_backward_data dy=f32/8x128x28x28 w=f32/128x1x3x3 dx=f32/8x128x56x56 stride=2 pad=1 groups=128 ; name=mobilenet.dw128.56.s2.data
conv_backward_data dy=f32/8x256x28x28 w=f32/256x128x1x1 dx=f32/8x128x28x28 ; name=mobilenet.pw128-256.28.data
conv_backward_data dy=f32/8x256x28x28 w=f32/256x1x3x3 dx=f32/8x256x28x28 pad=1 groups=256 ; name=mobilenet.dw256.28.data
conv_backward_data dy=f32/8x256x28x28 w=f32/256x256x1x1 dx=f32/8x256x28x28 ; name=mobilenet.pw256-256.28.data
conv_backward_data dy=f32/8x256x14x14 w=f32/256x1x3x3 dx=f32/8x256x28x28 stride=2 pad=1 groups=256 ; name=mobilenet.dw256.28.s2.data
conv_backward_data dy=f32/8x512x14x14 w=f32/512x256x1x1 dx=f32/8x256x14x14 ; name=mobilenet.pw256-512.14.data
conv_backward_data dy=f32/8x512x14x14 w=f32/512x1x3x3 dx=f32/8x512x14x14 pad=1 groups=512 ; name=mobilenet.dw512.14.data
conv_backward_data dy=f32/8x512x14x14 w=f32/512x512x1x1 dx=f32/8x512x14x14 ; name=mobilenet.pw512-512.14.data
conv_backward_data dy=f32/8x512x7x7 w=f32/512x1x3x3 dx=f32/8x512x14x14 stride=2 pad=1 groups=512 ; name=mobilenet.dw512.14.s2.data
conv_backward_data dy=f32/8x1024x7x7 w=f32/1024x512x1x1 dx=f32/8x512x7x7 ; name=mobilenet.pw512-1024.7.data
conv_backward_data dy=f32/8x1024x7x7 w=f32/1024x1x3x3 dx=f32/8x1024x7x7 pad=1 groups=1024 ; name=mobilenet.dw1024.7.data
conv_backward_data dy=f32/8x1024x7x7 w=f32/1024x1024x1x1 dx=f32/8x1024x7x7 ; name=mobilenet.pw1024-1024.7.data
conv_backward_filter x=f32/8x3x224x224 dy=f32/8x32x112x112 dw=f32/32x3x3x3 stride=2 pad=1 ; name=mobilenet.conv1.filter
conv_backward_filter x=f32/8x32x112x112 dy=f32/8x32x112x112 dw=f32/32x1x3x3 pad=1 groups=32 ; name=mobilenet.dw32.112.filter
conv_backward_filter x=f32/8x32x112x112 dy=f32/8x64x112x112 dw=f32/64x32x1x1 ; name=mobilenet.pw32-64.112.filter
conv_backward_filter x=f32/8x64x112x112 dy=f32/8x64x56x56 dw=f32/64x1x3x3 stride=2 pad=1 groups=64 ; name=mobilenet.dw64.112.s2.filter
conv_backward_filter x=f32/8x64x56x56 dy=f32/8x128x56x56 dw=f32/128x64x1x1 ; name=mobilenet.pw64-128.56.filter
conv_backward_filter x=f32/8x128x56x56 dy=f32/8x128x56x56 dw=f32/128x1x3x3 pad=1 groups=128 ; name=mobilenet.dw128.56.filter
conv_backward_filter x=f32/8x128x56x56 dy=f32/8x128x56x56 dw=f32/128x128x1x1 ; name=mobilenet.pw128-128.56.filter
conv_backward_filter x=f32/8x128x56x56 dy=f32/8x128x28x28 dw=f32/128x1x3x3 stride=2 pad=1 groups=128 ; name=mobilenet.dw128.56.s2.filter
conv_backward_filter x=f32/8x128x28x28 dy=f32/8x256x28x28 dw=f32/256x128x1x1 ; name=mobilenet.pw128-256.28.filter
conv_backward_filter x=f32/8x256x28x28 dy=f32/8x256x28x28 dw=f32/256x1x3x3 pad=1 groups=256 ; name=mobilenet.dw256.28.filter
conv_backward_filter x=f32/8x256x28x28 dy=f32/8x256x28x28 dw=f32/256x256x1x1 ; name=mobilenet.pw256-256.28.filter
conv_backward_filter x=f32/8x256x28x28 dy=f32/8x256x14x14 dw=f32/256x1x3x3 stride=2 pad=1 groups=256 ; name=mobilenet.dw256.28.s2.filter
conv_backward_filter x=f32/8x256x14x14 dy=f32/8x512x14x14 dw=f32/512x256x1x1 ; name=mobilenet.pw256-512.14.filter
conv_backward_filter x=f32/8x512x14x14 dy=f32/8x512x14x14 dw=f32/512x1x3x3 pad=1 groups=512 ; name=mobilenet.dw512.14.filter
conv_backward_filter x=f32/8x512x14x14 dy=f32/8x512x14x14 dw=f32/512x512x1x1 ; name=mobilenet.pw512-512.14.filter
conv_backward_filter x=f32/8x512x14x14 dy=f32/8x512x7x7 dw=f32/512x1x3x3 stride=2 pad=1 groups=512 ; name=mobilenet.dw512.14.s2.filter
conv_backward_filter x=f32/8x512x7x7 dy=f32/8x1024x7x7 dw=f32/1024x512x1x1 ; name=mobilenet.pw512-1024.7.filter
conv_backward_filter x=f32/8x1024x7x7 dy=f32/8x1024x7x7 dw=f32/1024x1x3x3 pad=1 groups=1024 ; name=mobilenet.dw1024.7.filter
conv_backward_filter x=f32/8x1024x7x7 dy=f32/8x1024x7x7 dw=f32/1024x1024x1x1 ; name=mobilenet.pw1024-1024.7.filter
