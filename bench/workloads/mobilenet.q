# The convolutions of MobileNet v1: depthwise 3x3, then 1x1.
# Forward, batch 8, f32, nchw. Each distinct shape once.

conv_forward x=f32/8x3x224x224 w=f32/32x3x3x3 stride=2 pad=1 ; name=mobilenet.conv1
conv_forward x=f32/8x32x112x112 w=f32/32x1x3x3 pad=1 groups=32 ; name=mobilenet.dw32.112
conv_forward x=f32/8x32x112x112 w=f32/64x32x1x1 ; name=mobilenet.pw32-64.112
conv_forward x=f32/8x64x112x112 w=f32/64x1x3x3 stride=2 pad=1 groups=64 ; name=mobilenet.dw64.112.s2
conv_forward x=f32/8x64x56x56 w=f32/128x64x1x1 ; name=mobilenet.pw64-128.56
conv_forward x=f32/8x128x56x56 w=f32/128x1x3x3 pad=1 groups=128 ; name=mobilenet.dw128.56
conv_forward x=f32/8x128x56x56 w=f32/128x128x1x1 ; name=mobilenet.pw128-128.56
conv_forward x=f32/8x128x56x56 w=f32/128x1x3x3 stride=2 pad=1 groups=128 ; name=mobilenet.dw128.56.s2
conv_forward x=f32/8x128x28x28 w=f32/256x128x1x1 ; name=mobilenet.pw128-256.28
conv_forward x=f32/8x256x28x28 w=f32/256x1x3x3 pad=1 groups=256 ; name=mobilenet.dw256.28
conv_forward x=f32/8x256x28x28 w=f32/256x256x1x1 ; name=mobilenet.pw256-256.28
conv_forward x=f32/8x256x28x28 w=f32/256x1x3x3 stride=2 pad=1 groups=256 ; name=mobilenet.dw256.28.s2
conv_forward x=f32/8x256x14x14 w=f32/512x256x1x1 ; name=mobilenet.pw256-512.14
conv_forward x=f32/8x512x14x14 w=f32/512x1x3x3 pad=1 groups=512 ; name=mobilenet.dw512.14
conv_forward x=f32/8x512x14x14 w=f32/512x512x1x1 ; name=mobilenet.pw512-512.14
conv_forward x=f32/8x512x14x14 w=f32/512x1x3x3 stride=2 pad=1 groups=512 ; name=mobilenet.dw512.14.s2
conv_forward x=f32/8x512x7x7 w=f32/1024x512x1x1 ; name=mobilenet.pw512-1024.7
conv_forward x=f32/8x1024x7x7 w=f32/1024x1x3x3 pad=1 groups=1024 ; name=mobilenet.dw1024.7
conv_forward x=f32/8x1024x7x7 w=f32/1024x1024x1x1 ; name=mobilenet.pw1024-1024.7
