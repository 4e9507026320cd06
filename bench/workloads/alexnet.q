# The convolutions of AlexNet, the second also in its original two groups.
# Forward, batch 16, f32, nchw. Each distinct shape once.

conv_forward x=f32/16x3x227x227 w=f32/96x3x11x11 stride=4 ; name=alexnet.conv1
conv_forward x=f32/16x96x27x27 w=f32/256x96x5x5 pad=2 ; name=alexnet.conv2
conv_forward x=f32/16x96x27x27 w=f32/256x48x5x5 pad=2 groups=2 ; name=alexnet.conv2.g2
conv_forward x=f32/16x256x13x13 w=f32/384x256x3x3 pad=1 ; name=alexnet.conv3
conv_forward x=f32/16x384x13x13 w=f32/384x384x3x3 pad=1 ; name=alexnet.conv4
conv_forward x=f32/16x384x13x13 w=f32/256x384x3x3 pad=1 ; name=alexnet.conv5
