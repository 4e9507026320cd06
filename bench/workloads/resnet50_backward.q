# The convolutions of ResNet-50 v1.5 (the stride is in the 3x3).
# Backward by data (not of the first layer) and by filter, batch 8, f32, nchw.

conv_backward_data dy=f32/8x64x56x56 w=f32/64x64x1x1 dx=f32/8x64x56x56 ; name=rn50.2a.1x1.data
conv_backward_data dy=f32/8x64x56x56 w=f32/64x64x3x3 dx=f32/8x64x56x56 pad=1 ; name=rn50.2b.3x3.data
conv_backward_data dy=f32/8x256x56x56 w=f32/256x64x1x1 dx=f32/8x64x56x56 ; name=rn50.2c.1x1.data
conv_backward_data dy=f32/8x64x56x56 w=f32/64x256x1x1 dx=f32/8x256x56x56 ; name=rn50.2a.1x1.wide.data
conv_backward_data dy=f32/8x128x56x56 w=f32/128x256x1x1 dx=f32/8x256x56x56 ; name=rn50.3a.1x1.data
conv_backward_data dy=f32/8x128x28x28 w=f32/128x128x3x3 dx=f32/8x128x56x56 stride=2 pad=1 ; name=rn50.3b.3x3.s2.data
conv_backward_data dy=f32/8x512x28x28 w=f32/512x128x1x1 dx=f32/8x128x28x28 ; name=rn50.3c.1x1.data
conv_backward_data dy=f32/8x512x28x28 w=f32/512x256x1x1 dx=f32/8x256x56x56 stride=2 ; name=rn50.3d.1x1.s2.data
conv_backward_data dy=f32/8x128x28x28 w=f32/128x512x1x1 dx=f32/8x512x28x28 ; name=rn50.3a.1x1.wide.data
conv_backward_data dy=f32/8x128x28x28 w=f32/128x128x3x3 dx=f32/8x128x28x28 pad=1 ; name=rn50.3b.3x3.data
conv_backward_data dy=f32/8x256x28x28 w=f32/256x512x1x1 dx=f32/8x512x28x28 ; name=rn50.4a.1x1.data
conv_backward_data dy=f32/8x256x14x14 w=f32/256x256x3x3 dx=f32/8x256x28x28 stride=2 pad=1 ; name=rn50.4b.3x3.s2.data
conv_backward_data dy=f32/8x1024x14x14 w=f32/1024x256x1x1 dx=f32/8x256x14x14 ; name=rn50.4c.1x1.data
conv_backward_data dy=f32/8x1024x14x14 w=f32/1024x512x1x1 dx=f32/8x512x28x28 stride=2 ; name=rn50.4d.1x1.s2.data
conv_backward_data dy=f32/8x256x14x14 w=f32/256x1024x1x1 dx=f32/8x1024x14x14 ; name=rn50.4a.1x1.wide.data
conv_backward_data dy=f32/8x256x14x14 w=f32/256x256x3x3 dx=f32/8x256x14x14 pad=1 ; name=rn50.4b.3x3.data
conv_backward_data dy=f32/8x512x14x14 w=f32/512x1024x1x1 dx=f32/8x1024x14x14 ; name=rn50.5a.1x1.data
conv_backward_data dy=f32/8x512x7x7 w=f32/512x512x3x3 dx=f32/8x512x14x14 stride=2 pad=1 ; name=rn50.5b.3x3.s2.data
conv_backward_data dy=f32/8x2048x7x7 w=f32/2048x512x1x1 dx=f32/8x512x7x7 ; name=rn50.5c.1x1.data
conv_backward_data dy=f32/8x2048x7x7 w=f32/2048x1024x1x1 dx=f32/8x1024x14x14 stride=2 ; name=rn50.5d.1x1.s2.data
conv_backward_data dy=f32/8x512x7x7 w=f32/512x2048x1x1 dx=f32/8x2048x7x7 ; name=rn50.5a.1x1.wide.data
conv_backward_data dy=f32/8x512x7x7 w=f32/512x512x3x3 dx=f32/8x512x7x7 pad=1 ; name=rn50.5b.3x3.data
conv_backward_filter x=f32/8x3x224x224 dy=f32/8x64x112x112 dw=f32/64x3x7x7 stride=2 pad=3 ; name=rn50.conv1.filter
conv_backward_filter x=f32/8x64x56x56 dy=f32/8x64x56x56 dw=f32/64x64x1x1 ; name=rn50.2a.1x1.filter
conv_backward_filter x=f32/8x64x56x56 dy=f32/8x64x56x56 dw=f32/64x64x3x3 pad=1 ; name=rn50.2b.3x3.filter
conv_backward_filter x=f32/8x64x56x56 dy=f32/8x256x56x56 dw=f32/256x64x1x1 ; name=rn50.2c.1x1.filter
conv_backward_filter x=f32/8x256x56x56 dy=f32/8x64x56x56 dw=f32/64x256x1x1 ; name=rn50.2a.1x1.wide.filter
conv_backward_filter x=f32/8x256x56x56 dy=f32/8x128x56x56 dw=f32/128x256x1x1 ; name=rn50.3a.1x1.filter
conv_backward_filter x=f32/8x128x56x56 dy=f32/8x128x28x28 dw=f32/128x128x3x3 stride=2 pad=1 ; name=rn50.3b.3x3.s2.filter
conv_backward_filter x=f32/8x128x28x28 dy=f32/8x512x28x28 dw=f32/512x128x1x1 ; name=rn50.3c.1x1.filter
conv_backward_filter x=f32/8x256x56x56 dy=f32/8x512x28x28 dw=f32/512x256x1x1 stride=2 ; name=rn50.3d.1x1.s2.filter
conv_backward_filter x=f32/8x512x28x28 dy=f32/8x128x28x28 dw=f32/128x512x1x1 ; name=rn50.3a.1x1.wide.filter
conv_backward_filter x=f32/8x128x28x28 dy=f32/8x128x28x28 dw=f32/128x128x3x3 pad=1 ; name=rn50.3b.3x3.filter
conv_backward_filter x=f32/8x512x28x28 dy=f32/8x256x28x28 dw=f32/256x512x1x1 ; name=rn50.4a.1x1.filter
conv_backward_filter x=f32/8x256x28x28 dy=f32/8x256x14x14 dw=f32/256x256x3x3 stride=2 pad=1 ; name=rn50.4b.3x3.s2.filter
conv_backward_filter x=f32/8x256x14x14 dy=f32/8x1024x14x14 dw=f32/1024x256x1x1 ; name=rn50.4c.1x1.filter
conv_backward_filter x=f32/8x512x28x28 dy=f32/8x1024x14x14 dw=f32/1024x512x1x1 stride=2 ; name=rn50.4d.1x1.s2.filter
conv_backward_filter x=f32/8x1024x14x14 dy=f32/8x256x14x14 dw=f32/256x1024x1x1 ; name=rn50.4a.1x1.wide.filter
conv_backward_filter x=f32/8x256x14x14 dy=f32/8x256x14x14 dw=f32/256x256x3x3 pad=1 ; name=rn50.4b.3x3.filter
conv_backward_filter x=f32/8x1024x14x14 dy=f32/8x512x14x14 dw=f32/512x1024x1x1 ; name=rn50.5a.1x1.filter
conv_backward_filter x=f32/8x512x14x14 dy=f32/8x512x7x7 dw=f32/512x512x3x3 stride=2 pad=1 ; name=rn50.5b.3x3.s2.filter
conv_backward_filter x=f32/8x512x7x7 dy=f32/8x2048x7x7 dw=f32/2048x512x1x1 ; name=rn50.5c.1x1.filter
conv_backward_filter x=f32/8x1024x14x14 dy=f32/8x2048x7x7 dw=f32/2048x1024x1x1 stride=2 ; name=rn50.5d.1x1.s2.filter
conv_backward_filter x=f32/8x2048x7x7 dy=f32/8x512x7x7 dw=f32/512x2048x1x1 ; name=rn50.5a.1x1.wide.filter
conv_backward_filter x=f32/8x512x7x7 dy=f32/8x512x7x7 dw=f32/512x512x3x3 pad=1 ; name=rn50.5b.3x3.filter
