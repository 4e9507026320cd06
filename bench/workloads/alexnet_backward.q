# The convolutions of AlexNet, the second also in its original two groups.
# Backward by data (not of the first layer) and by filter, batch 16, f32, nchw.

conv_backward_data dy=f32/16x256x27x27 w=f32/256x96x5x5 dx=f32/16x96x27x27 pad=2 ; name=alexnet.conv2.data
conv_backward_data dy=f32/16x256x27x27 w=f32/256x48x5x5 dx=f32/16x96x27x27 pad=2 groups=2 ; name=alexnet.conv2.g2.data
conv_backward_data dy=f32/16x384x13x13 w=f32/384x256x3x3 dx=f32/16x256x13x13 pad=1 ; name=alexnet.conv3.data
conv_backward_data dy=f32/16x384x13x13 w=f32/384x384x3x3 dx=f32/16x384x13x13 pad=1 ; name=alexnet.conv4.data
conv_backward_data dy=f32/16x256x13x13 w=f32/256x384x3x3 dx=f32/16x384x13x13 pad=1 ; name=alexnet.conv5.data
conv_backward_filter x=f32/16x3x227x227 dy=f32/16x96x55x55 dw=f32/96x3x11x11 stride=4 ; name=alexnet.conv1.filter
conv_backward_filter x=f32/16x96x27x27 dy=f32/16x256x27x27 dw=f32/256x96x5x5 pad=2 ; name=alexnet.conv2.filter
conv_backward_filter x=f32/16x96x27x27 dy=f32/16x256x27x27 dw=f32/256x48x5x5 pad=2 groups=2 ; name=alexnet.conv2.g2.filter
conv_backward_filter x=f32/16x256x13x13 dy=f32/16x384x13x13 dw=f32/384x256x3x3 pad=1 ; name=alexnet.conv3.filter
conv_backward_filter x=f32/16x384x13x13 dy=f32/16x384x13x13 dw=f32/384x384x3x3 pad=1 ; name=alexnet.conv4.filter
conv_backward_filter x=f32/16x384x13x13 dy=f32/16x256x13x13 dw=f32/256x384x3x3 pad=1 ; name=alexnet.conv5.filter
