# The convolutions of VGG-16 and VGG-19.
# Forward, batch 1, f32, nchw. Each distinct shape once.

conv_forward x=f32/1x3x224x224 w=f32/64x3x3x3 pad=1 ; name=vgg.1.1
conv_forward x=f32/1x64x224x224 w=f32/64x64x3x3 pad=1 ; name=vgg.1.2
conv_forward x=f32/1x64x112x112 w=f32/128x64x3x3 pad=1 ; name=vgg.2.1
conv_forward x=f32/1x128x112x112 w=f32/128x128x3x3 pad=1 ; name=vgg.2.2
conv_forward x=f32/1x128x56x56 w=f32/256x128x3x3 pad=1 ; name=vgg.3.1
conv_forward x=f32/1x256x56x56 w=f32/256x256x3x3 pad=1 ; name=vgg.3.2
conv_forward x=f32/1x256x28x28 w=f32/512x256x3x3 pad=1 ; name=vgg.4.1
conv_forward x=f32/1x512x28x28 w=f32/512x512x3x3 pad=1 ; name=vgg.4.2
conv_forward x=f32/1x512x14x14 w=f32/512x512x3x3 pad=1 ; name=vgg.5.1
