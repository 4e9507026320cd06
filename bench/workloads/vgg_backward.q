# The convolutions of VGG-16 and VGG-19.
# Backward by data (not of the first layer) and by filter, batch 1, f32, nchw.

conv_backward_data dy=f32/1x64x224x224 w=f32/64x64x3x3 dx=f32/1x64x224x224 pad=1 ; name=vgg.1.2.data
conv_backward_data dy=f32/1x128x112x112 w=f32/128x64x3x3 dx=f32/1x64x112x112 pad=1 ; name=vgg.2.1.data
conv_backward_data dy=f32/1x128x112x112 w=f32/128x128x3x3 dx=f32/1x128x112x112 pad=1 ; name=vgg.2.2.data
conv_backward_data dy=f32/1x256x56x56 w=f32/256x128x3x3 dx=f32/1x128x56x56 pad=1 ; name=vgg.3.1.data
conv_backward_data dy=f32/1x256x56x56 w=f32/256x256x3x3 dx=f32/1x256x56x56 pad=1 ; name=vgg.3.2.data
conv_backward_data dy=f32/1x512x28x28 w=f32/512x256x3x3 dx=f32/1x256x28x28 pad=1 ; name=vgg.4.1.data
conv_backward_data dy=f32/1x512x28x28 w=f32/512x512x3x3 dx=f32/1x512x28x28 pad=1 ; name=vgg.4.2.data
conv_backward_data dy=f32/1x512x14x14 w=f32/512x512x3x3 dx=f32/1x512x14x14 pad=1 ; name=vgg.5.1.data
conv_backward_filter x=f32/1x3x224x224 dy=f32/1x64x224x224 dw=f32/64x3x3x3 pad=1 ; name=vgg.1.1.filter
conv_backward_filter x=f32/1x64x224x224 dy=f32/1x64x224x224 dw=f32/64x64x3x3 pad=1 ; name=vgg.1.2.filter
conv_backward_filter x=f32/1x64x112x112 dy=f32/1x128x112x112 dw=f32/128x64x3x3 pad=1 ; name=vgg.2.1.filter
conv_backward_filter x=f32/1x128x112x112 dy=f32/1x128x112x112 dw=f32/128x128x3x3 pad=1 ; name=vgg.2.2.filter
conv_backward_filter x=f32/1x128x56x56 dy=f32/1x256x56x56 dw=f32/256x128x3x3 pad=1 ; name=vgg.3.1.filter
conv_backward_filter x=f32/1x256x56x56 dy=f32/1x256x56x56 dw=f32/256x256x3x3 pad=1 ; name=vgg.3.2.filter
conv_backward_filter x=f32/1x256x28x28 dy=f32/1x512x28x28 dw=f32/512x256x3x3 pad=1 ; name=vgg.4.1.filter
conv_backward_filter x=f32/1x512x28x28 dy=f32/1x512x28x28 dw=f32/512x512x3x3 pad=1 ; name=vgg.4.2.filter
conv_backward_filter x=f32/1x512x14x14 dy=f32/1x512x14x14 dw=f32/512x512x3x3 pad=1 ; name=vgg.5.1.filter
