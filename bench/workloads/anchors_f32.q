# The anchor list's convolutions in f32, as PyTorch lays them out (nchw): under math f32, and under tf32. For a GPU.

conv_forward x=f32/64x64x56x56 w=f32/64x64x3x3 pad=1 ; name=rn50.2b.3x3.fwd
conv_backward_data dy=f32/64x64x56x56 w=f32/64x64x3x3 dx=f32/64x64x56x56 pad=1 ; name=rn50.2b.3x3.bwd_data
conv_backward_filter x=f32/64x64x56x56 dy=f32/64x64x56x56 dw=f32/64x64x3x3 pad=1 ; name=rn50.2b.3x3.bwd_filter
conv_forward x=f32/64x64x56x56 w=f32/256x64x1x1 ; name=rn50.2c.1x1.fwd
conv_backward_data dy=f32/64x256x56x56 w=f32/256x64x1x1 dx=f32/64x64x56x56 ; name=rn50.2c.1x1.bwd_data
conv_backward_filter x=f32/64x64x56x56 dy=f32/64x256x56x56 dw=f32/256x64x1x1 ; name=rn50.2c.1x1.bwd_filter
conv_forward x=f32/64x128x28x28 w=f32/128x128x3x3 pad=1 ; name=rn50.3b.3x3.fwd
conv_backward_data dy=f32/64x128x28x28 w=f32/128x128x3x3 dx=f32/64x128x28x28 pad=1 ; name=rn50.3b.3x3.bwd_data
conv_backward_filter x=f32/64x128x28x28 dy=f32/64x128x28x28 dw=f32/128x128x3x3 pad=1 ; name=rn50.3b.3x3.bwd_filter
conv_forward x=f32/64x256x14x14 w=f32/256x256x3x3 pad=1 ; name=rn50.4b.3x3.fwd
conv_backward_data dy=f32/64x256x14x14 w=f32/256x256x3x3 dx=f32/64x256x14x14 pad=1 ; name=rn50.4b.3x3.bwd_data
conv_backward_filter x=f32/64x256x14x14 dy=f32/64x256x14x14 dw=f32/256x256x3x3 pad=1 ; name=rn50.4b.3x3.bwd_filter
conv_forward x=f32/32x512x28x28 w=f32/512x512x3x3 pad=1 ; name=vgg.3x3.512.fwd
conv_backward_data dy=f32/32x512x28x28 w=f32/512x512x3x3 dx=f32/32x512x28x28 pad=1 ; name=vgg.3x3.512.bwd_data
conv_backward_filter x=f32/32x512x28x28 dy=f32/32x512x28x28 dw=f32/512x512x3x3 pad=1 ; name=vgg.3x3.512.bwd_filter
conv_forward x=f32/128x96x27x27 w=f32/256x96x5x5 pad=2 ; name=alexnet.conv2.5x5.fwd
conv_backward_data dy=f32/128x256x27x27 w=f32/256x96x5x5 dx=f32/128x96x27x27 pad=2 ; name=alexnet.conv2.5x5.bwd_data
conv_backward_filter x=f32/128x96x27x27 dy=f32/128x256x27x27 dw=f32/256x96x5x5 pad=2 ; name=alexnet.conv2.5x5.bwd_filter
