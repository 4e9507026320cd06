# Grouped convolutions of networks in the field: ResNeXt, RegNet, AlexNet, ShuffleNet. Batch 32, three directions, both layouts.

conv_forward x=f16/32x128x56x56 w=f16/128x4x3x3 pad=1 groups=32 ; name=resnext50.2.f16.nchw
conv_backward_data dy=f16/32x128x56x56 w=f16/128x4x3x3 dx=f16/32x128x56x56 pad=1 groups=32 ; name=resnext50.2.f16.nchw.dgrad
conv_backward_filter x=f16/32x128x56x56 dy=f16/32x128x56x56 dw=f16/128x4x3x3 pad=1 groups=32 ; name=resnext50.2.f16.nchw.wgrad
conv_forward x=f16/32x256x56x56 w=f16/256x8x3x3 pad=1 stride=2 groups=32 ; name=resnext50.3s2.f16.nchw
conv_backward_data dy=f16/32x256x28x28 w=f16/256x8x3x3 dx=f16/32x256x56x56 pad=1 stride=2 groups=32 ; name=resnext50.3s2.f16.nchw.dgrad
conv_backward_filter x=f16/32x256x56x56 dy=f16/32x256x28x28 dw=f16/256x8x3x3 pad=1 stride=2 groups=32 ; name=resnext50.3s2.f16.nchw.wgrad
conv_forward x=f16/32x256x28x28 w=f16/256x8x3x3 pad=1 groups=32 ; name=resnext50.3.f16.nchw
conv_backward_data dy=f16/32x256x28x28 w=f16/256x8x3x3 dx=f16/32x256x28x28 pad=1 groups=32 ; name=resnext50.3.f16.nchw.dgrad
conv_backward_filter x=f16/32x256x28x28 dy=f16/32x256x28x28 dw=f16/256x8x3x3 pad=1 groups=32 ; name=resnext50.3.f16.nchw.wgrad
conv_forward x=f16/32x512x14x14 w=f16/512x16x3x3 pad=1 groups=32 ; name=resnext50.4.f16.nchw
conv_backward_data dy=f16/32x512x14x14 w=f16/512x16x3x3 dx=f16/32x512x14x14 pad=1 groups=32 ; name=resnext50.4.f16.nchw.dgrad
conv_backward_filter x=f16/32x512x14x14 dy=f16/32x512x14x14 dw=f16/512x16x3x3 pad=1 groups=32 ; name=resnext50.4.f16.nchw.wgrad
conv_forward x=f16/32x1024x7x7 w=f16/1024x32x3x3 pad=1 groups=32 ; name=resnext50.5.f16.nchw
conv_backward_data dy=f16/32x1024x7x7 w=f16/1024x32x3x3 dx=f16/32x1024x7x7 pad=1 groups=32 ; name=resnext50.5.f16.nchw.dgrad
conv_backward_filter x=f16/32x1024x7x7 dy=f16/32x1024x7x7 dw=f16/1024x32x3x3 pad=1 groups=32 ; name=resnext50.5.f16.nchw.wgrad
conv_forward x=f16/32x256x56x56 w=f16/256x8x3x3 pad=1 groups=32 ; name=resnext101_32x8.2.f16.nchw
conv_backward_data dy=f16/32x256x56x56 w=f16/256x8x3x3 dx=f16/32x256x56x56 pad=1 groups=32 ; name=resnext101_32x8.2.f16.nchw.dgrad
conv_backward_filter x=f16/32x256x56x56 dy=f16/32x256x56x56 dw=f16/256x8x3x3 pad=1 groups=32 ; name=resnext101_32x8.2.f16.nchw.wgrad
conv_forward x=f16/32x192x28x28 w=f16/192x48x3x3 pad=1 groups=4 ; name=regnetx3.2.2.f16.nchw
conv_backward_data dy=f16/32x192x28x28 w=f16/192x48x3x3 dx=f16/32x192x28x28 pad=1 groups=4 ; name=regnetx3.2.2.f16.nchw.dgrad
conv_backward_filter x=f16/32x192x28x28 dy=f16/32x192x28x28 dw=f16/192x48x3x3 pad=1 groups=4 ; name=regnetx3.2.2.f16.nchw.wgrad
conv_forward x=f16/32x432x14x14 w=f16/432x48x3x3 pad=1 groups=9 ; name=regnetx3.2.3.f16.nchw
conv_backward_data dy=f16/32x432x14x14 w=f16/432x48x3x3 dx=f16/32x432x14x14 pad=1 groups=9 ; name=regnetx3.2.3.f16.nchw.dgrad
conv_backward_filter x=f16/32x432x14x14 dy=f16/32x432x14x14 dw=f16/432x48x3x3 pad=1 groups=9 ; name=regnetx3.2.3.f16.nchw.wgrad
conv_forward x=f16/32x336x14x14 w=f16/336x24x3x3 pad=1 groups=14 ; name=regnety1.6.3.f16.nchw
conv_backward_data dy=f16/32x336x14x14 w=f16/336x24x3x3 dx=f16/32x336x14x14 pad=1 groups=14 ; name=regnety1.6.3.f16.nchw.dgrad
conv_backward_filter x=f16/32x336x14x14 dy=f16/32x336x14x14 dw=f16/336x24x3x3 pad=1 groups=14 ; name=regnety1.6.3.f16.nchw.wgrad
conv_forward x=f16/32x160x14x14 w=f16/160x16x3x3 pad=1 groups=10 ; name=regnetx400.3.f16.nchw
conv_backward_data dy=f16/32x160x14x14 w=f16/160x16x3x3 dx=f16/32x160x14x14 pad=1 groups=10 ; name=regnetx400.3.f16.nchw.dgrad
conv_backward_filter x=f16/32x160x14x14 dy=f16/32x160x14x14 dw=f16/160x16x3x3 pad=1 groups=10 ; name=regnetx400.3.f16.nchw.wgrad
conv_forward x=f16/32x96x27x27 w=f16/256x48x5x5 pad=2 groups=2 ; name=alexnet.2.f16.nchw
conv_backward_data dy=f16/32x256x27x27 w=f16/256x48x5x5 dx=f16/32x96x27x27 pad=2 groups=2 ; name=alexnet.2.f16.nchw.dgrad
conv_backward_filter x=f16/32x96x27x27 dy=f16/32x256x27x27 dw=f16/256x48x5x5 pad=2 groups=2 ; name=alexnet.2.f16.nchw.wgrad
conv_forward x=f16/32x384x13x13 w=f16/384x192x3x3 pad=1 groups=2 ; name=alexnet.4.f16.nchw
conv_backward_data dy=f16/32x384x13x13 w=f16/384x192x3x3 dx=f16/32x384x13x13 pad=1 groups=2 ; name=alexnet.4.f16.nchw.dgrad
conv_backward_filter x=f16/32x384x13x13 dy=f16/32x384x13x13 dw=f16/384x192x3x3 pad=1 groups=2 ; name=alexnet.4.f16.nchw.wgrad
conv_forward x=f16/32x240x28x28 w=f16/60x80x1x1 groups=3 ; name=shufflenet_g3.pw.f16.nchw
conv_backward_data dy=f16/32x60x28x28 w=f16/60x80x1x1 dx=f16/32x240x28x28 groups=3 ; name=shufflenet_g3.pw.f16.nchw.dgrad
conv_backward_filter x=f16/32x240x28x28 dy=f16/32x60x28x28 dw=f16/60x80x1x1 groups=3 ; name=shufflenet_g3.pw.f16.nchw.wgrad
conv_forward x=f16/32x384x28x28 w=f16/96x48x1x1 groups=8 ; name=shufflenet_g8.pw.f16.nchw
conv_backward_data dy=f16/32x96x28x28 w=f16/96x48x1x1 dx=f16/32x384x28x28 groups=8 ; name=shufflenet_g8.pw.f16.nchw.dgrad
conv_backward_filter x=f16/32x384x28x28 dy=f16/32x96x28x28 dw=f16/96x48x1x1 groups=8 ; name=shufflenet_g8.pw.f16.nchw.wgrad

conv_forward x=bf16/32x128x56x56/nhwc w=bf16/128x4x3x3/nhwc pad=1 groups=32 ; name=resnext50.2.bf16.nhwc
conv_backward_data dy=bf16/32x128x56x56/nhwc w=bf16/128x4x3x3/nhwc dx=bf16/32x128x56x56/nhwc pad=1 groups=32 ; name=resnext50.2.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x128x56x56/nhwc dy=bf16/32x128x56x56/nhwc dw=bf16/128x4x3x3/nhwc pad=1 groups=32 ; name=resnext50.2.bf16.nhwc.wgrad
conv_forward x=bf16/32x256x56x56/nhwc w=bf16/256x8x3x3/nhwc pad=1 stride=2 groups=32 ; name=resnext50.3s2.bf16.nhwc
conv_backward_data dy=bf16/32x256x28x28/nhwc w=bf16/256x8x3x3/nhwc dx=bf16/32x256x56x56/nhwc pad=1 stride=2 groups=32 ; name=resnext50.3s2.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x256x56x56/nhwc dy=bf16/32x256x28x28/nhwc dw=bf16/256x8x3x3/nhwc pad=1 stride=2 groups=32 ; name=resnext50.3s2.bf16.nhwc.wgrad
conv_forward x=bf16/32x256x28x28/nhwc w=bf16/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext50.3.bf16.nhwc
conv_backward_data dy=bf16/32x256x28x28/nhwc w=bf16/256x8x3x3/nhwc dx=bf16/32x256x28x28/nhwc pad=1 groups=32 ; name=resnext50.3.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x256x28x28/nhwc dy=bf16/32x256x28x28/nhwc dw=bf16/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext50.3.bf16.nhwc.wgrad
conv_forward x=bf16/32x512x14x14/nhwc w=bf16/512x16x3x3/nhwc pad=1 groups=32 ; name=resnext50.4.bf16.nhwc
conv_backward_data dy=bf16/32x512x14x14/nhwc w=bf16/512x16x3x3/nhwc dx=bf16/32x512x14x14/nhwc pad=1 groups=32 ; name=resnext50.4.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x512x14x14/nhwc dy=bf16/32x512x14x14/nhwc dw=bf16/512x16x3x3/nhwc pad=1 groups=32 ; name=resnext50.4.bf16.nhwc.wgrad
conv_forward x=bf16/32x1024x7x7/nhwc w=bf16/1024x32x3x3/nhwc pad=1 groups=32 ; name=resnext50.5.bf16.nhwc
conv_backward_data dy=bf16/32x1024x7x7/nhwc w=bf16/1024x32x3x3/nhwc dx=bf16/32x1024x7x7/nhwc pad=1 groups=32 ; name=resnext50.5.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x1024x7x7/nhwc dy=bf16/32x1024x7x7/nhwc dw=bf16/1024x32x3x3/nhwc pad=1 groups=32 ; name=resnext50.5.bf16.nhwc.wgrad
conv_forward x=bf16/32x256x56x56/nhwc w=bf16/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext101_32x8.2.bf16.nhwc
conv_backward_data dy=bf16/32x256x56x56/nhwc w=bf16/256x8x3x3/nhwc dx=bf16/32x256x56x56/nhwc pad=1 groups=32 ; name=resnext101_32x8.2.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x256x56x56/nhwc dy=bf16/32x256x56x56/nhwc dw=bf16/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext101_32x8.2.bf16.nhwc.wgrad
conv_forward x=bf16/32x192x28x28/nhwc w=bf16/192x48x3x3/nhwc pad=1 groups=4 ; name=regnetx3.2.2.bf16.nhwc
conv_backward_data dy=bf16/32x192x28x28/nhwc w=bf16/192x48x3x3/nhwc dx=bf16/32x192x28x28/nhwc pad=1 groups=4 ; name=regnetx3.2.2.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x192x28x28/nhwc dy=bf16/32x192x28x28/nhwc dw=bf16/192x48x3x3/nhwc pad=1 groups=4 ; name=regnetx3.2.2.bf16.nhwc.wgrad
conv_forward x=bf16/32x432x14x14/nhwc w=bf16/432x48x3x3/nhwc pad=1 groups=9 ; name=regnetx3.2.3.bf16.nhwc
conv_backward_data dy=bf16/32x432x14x14/nhwc w=bf16/432x48x3x3/nhwc dx=bf16/32x432x14x14/nhwc pad=1 groups=9 ; name=regnetx3.2.3.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x432x14x14/nhwc dy=bf16/32x432x14x14/nhwc dw=bf16/432x48x3x3/nhwc pad=1 groups=9 ; name=regnetx3.2.3.bf16.nhwc.wgrad
conv_forward x=bf16/32x336x14x14/nhwc w=bf16/336x24x3x3/nhwc pad=1 groups=14 ; name=regnety1.6.3.bf16.nhwc
conv_backward_data dy=bf16/32x336x14x14/nhwc w=bf16/336x24x3x3/nhwc dx=bf16/32x336x14x14/nhwc pad=1 groups=14 ; name=regnety1.6.3.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x336x14x14/nhwc dy=bf16/32x336x14x14/nhwc dw=bf16/336x24x3x3/nhwc pad=1 groups=14 ; name=regnety1.6.3.bf16.nhwc.wgrad
conv_forward x=bf16/32x160x14x14/nhwc w=bf16/160x16x3x3/nhwc pad=1 groups=10 ; name=regnetx400.3.bf16.nhwc
conv_backward_data dy=bf16/32x160x14x14/nhwc w=bf16/160x16x3x3/nhwc dx=bf16/32x160x14x14/nhwc pad=1 groups=10 ; name=regnetx400.3.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x160x14x14/nhwc dy=bf16/32x160x14x14/nhwc dw=bf16/160x16x3x3/nhwc pad=1 groups=10 ; name=regnetx400.3.bf16.nhwc.wgrad
conv_forward x=bf16/32x96x27x27/nhwc w=bf16/256x48x5x5/nhwc pad=2 groups=2 ; name=alexnet.2.bf16.nhwc
conv_backward_data dy=bf16/32x256x27x27/nhwc w=bf16/256x48x5x5/nhwc dx=bf16/32x96x27x27/nhwc pad=2 groups=2 ; name=alexnet.2.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x96x27x27/nhwc dy=bf16/32x256x27x27/nhwc dw=bf16/256x48x5x5/nhwc pad=2 groups=2 ; name=alexnet.2.bf16.nhwc.wgrad
conv_forward x=bf16/32x384x13x13/nhwc w=bf16/384x192x3x3/nhwc pad=1 groups=2 ; name=alexnet.4.bf16.nhwc
conv_backward_data dy=bf16/32x384x13x13/nhwc w=bf16/384x192x3x3/nhwc dx=bf16/32x384x13x13/nhwc pad=1 groups=2 ; name=alexnet.4.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x384x13x13/nhwc dy=bf16/32x384x13x13/nhwc dw=bf16/384x192x3x3/nhwc pad=1 groups=2 ; name=alexnet.4.bf16.nhwc.wgrad
conv_forward x=bf16/32x240x28x28/nhwc w=bf16/60x80x1x1/nhwc groups=3 ; name=shufflenet_g3.pw.bf16.nhwc
conv_backward_data dy=bf16/32x60x28x28/nhwc w=bf16/60x80x1x1/nhwc dx=bf16/32x240x28x28/nhwc groups=3 ; name=shufflenet_g3.pw.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x240x28x28/nhwc dy=bf16/32x60x28x28/nhwc dw=bf16/60x80x1x1/nhwc groups=3 ; name=shufflenet_g3.pw.bf16.nhwc.wgrad
conv_forward x=bf16/32x384x28x28/nhwc w=bf16/96x48x1x1/nhwc groups=8 ; name=shufflenet_g8.pw.bf16.nhwc
conv_backward_data dy=bf16/32x96x28x28/nhwc w=bf16/96x48x1x1/nhwc dx=bf16/32x384x28x28/nhwc groups=8 ; name=shufflenet_g8.pw.bf16.nhwc.dgrad
conv_backward_filter x=bf16/32x384x28x28/nhwc dy=bf16/32x96x28x28/nhwc dw=bf16/96x48x1x1/nhwc groups=8 ; name=shufflenet_g8.pw.bf16.nhwc.wgrad

conv_forward x=f32/32x128x56x56 w=f32/128x4x3x3 pad=1 groups=32 ; name=resnext50.2.f32.nchw
conv_backward_data dy=f32/32x128x56x56 w=f32/128x4x3x3 dx=f32/32x128x56x56 pad=1 groups=32 ; name=resnext50.2.f32.nchw.dgrad
conv_backward_filter x=f32/32x128x56x56 dy=f32/32x128x56x56 dw=f32/128x4x3x3 pad=1 groups=32 ; name=resnext50.2.f32.nchw.wgrad
conv_forward x=f32/32x256x56x56 w=f32/256x8x3x3 pad=1 stride=2 groups=32 ; name=resnext50.3s2.f32.nchw
conv_backward_data dy=f32/32x256x28x28 w=f32/256x8x3x3 dx=f32/32x256x56x56 pad=1 stride=2 groups=32 ; name=resnext50.3s2.f32.nchw.dgrad
conv_backward_filter x=f32/32x256x56x56 dy=f32/32x256x28x28 dw=f32/256x8x3x3 pad=1 stride=2 groups=32 ; name=resnext50.3s2.f32.nchw.wgrad
conv_forward x=f32/32x256x28x28 w=f32/256x8x3x3 pad=1 groups=32 ; name=resnext50.3.f32.nchw
conv_backward_data dy=f32/32x256x28x28 w=f32/256x8x3x3 dx=f32/32x256x28x28 pad=1 groups=32 ; name=resnext50.3.f32.nchw.dgrad
conv_backward_filter x=f32/32x256x28x28 dy=f32/32x256x28x28 dw=f32/256x8x3x3 pad=1 groups=32 ; name=resnext50.3.f32.nchw.wgrad
conv_forward x=f32/32x512x14x14 w=f32/512x16x3x3 pad=1 groups=32 ; name=resnext50.4.f32.nchw
conv_backward_data dy=f32/32x512x14x14 w=f32/512x16x3x3 dx=f32/32x512x14x14 pad=1 groups=32 ; name=resnext50.4.f32.nchw.dgrad
conv_backward_filter x=f32/32x512x14x14 dy=f32/32x512x14x14 dw=f32/512x16x3x3 pad=1 groups=32 ; name=resnext50.4.f32.nchw.wgrad
conv_forward x=f32/32x1024x7x7 w=f32/1024x32x3x3 pad=1 groups=32 ; name=resnext50.5.f32.nchw
conv_backward_data dy=f32/32x1024x7x7 w=f32/1024x32x3x3 dx=f32/32x1024x7x7 pad=1 groups=32 ; name=resnext50.5.f32.nchw.dgrad
conv_backward_filter x=f32/32x1024x7x7 dy=f32/32x1024x7x7 dw=f32/1024x32x3x3 pad=1 groups=32 ; name=resnext50.5.f32.nchw.wgrad
conv_forward x=f32/32x256x56x56 w=f32/256x8x3x3 pad=1 groups=32 ; name=resnext101_32x8.2.f32.nchw
conv_backward_data dy=f32/32x256x56x56 w=f32/256x8x3x3 dx=f32/32x256x56x56 pad=1 groups=32 ; name=resnext101_32x8.2.f32.nchw.dgrad
conv_backward_filter x=f32/32x256x56x56 dy=f32/32x256x56x56 dw=f32/256x8x3x3 pad=1 groups=32 ; name=resnext101_32x8.2.f32.nchw.wgrad
conv_forward x=f32/32x192x28x28 w=f32/192x48x3x3 pad=1 groups=4 ; name=regnetx3.2.2.f32.nchw
conv_backward_data dy=f32/32x192x28x28 w=f32/192x48x3x3 dx=f32/32x192x28x28 pad=1 groups=4 ; name=regnetx3.2.2.f32.nchw.dgrad
conv_backward_filter x=f32/32x192x28x28 dy=f32/32x192x28x28 dw=f32/192x48x3x3 pad=1 groups=4 ; name=regnetx3.2.2.f32.nchw.wgrad
conv_forward x=f32/32x432x14x14 w=f32/432x48x3x3 pad=1 groups=9 ; name=regnetx3.2.3.f32.nchw
conv_backward_data dy=f32/32x432x14x14 w=f32/432x48x3x3 dx=f32/32x432x14x14 pad=1 groups=9 ; name=regnetx3.2.3.f32.nchw.dgrad
conv_backward_filter x=f32/32x432x14x14 dy=f32/32x432x14x14 dw=f32/432x48x3x3 pad=1 groups=9 ; name=regnetx3.2.3.f32.nchw.wgrad
conv_forward x=f32/32x336x14x14 w=f32/336x24x3x3 pad=1 groups=14 ; name=regnety1.6.3.f32.nchw
conv_backward_data dy=f32/32x336x14x14 w=f32/336x24x3x3 dx=f32/32x336x14x14 pad=1 groups=14 ; name=regnety1.6.3.f32.nchw.dgrad
conv_backward_filter x=f32/32x336x14x14 dy=f32/32x336x14x14 dw=f32/336x24x3x3 pad=1 groups=14 ; name=regnety1.6.3.f32.nchw.wgrad
conv_forward x=f32/32x160x14x14 w=f32/160x16x3x3 pad=1 groups=10 ; name=regnetx400.3.f32.nchw
conv_backward_data dy=f32/32x160x14x14 w=f32/160x16x3x3 dx=f32/32x160x14x14 pad=1 groups=10 ; name=regnetx400.3.f32.nchw.dgrad
conv_backward_filter x=f32/32x160x14x14 dy=f32/32x160x14x14 dw=f32/160x16x3x3 pad=1 groups=10 ; name=regnetx400.3.f32.nchw.wgrad
conv_forward x=f32/32x96x27x27 w=f32/256x48x5x5 pad=2 groups=2 ; name=alexnet.2.f32.nchw
conv_backward_data dy=f32/32x256x27x27 w=f32/256x48x5x5 dx=f32/32x96x27x27 pad=2 groups=2 ; name=alexnet.2.f32.nchw.dgrad
conv_backward_filter x=f32/32x96x27x27 dy=f32/32x256x27x27 dw=f32/256x48x5x5 pad=2 groups=2 ; name=alexnet.2.f32.nchw.wgrad
conv_forward x=f32/32x384x13x13 w=f32/384x192x3x3 pad=1 groups=2 ; name=alexnet.4.f32.nchw
conv_backward_data dy=f32/32x384x13x13 w=f32/384x192x3x3 dx=f32/32x384x13x13 pad=1 groups=2 ; name=alexnet.4.f32.nchw.dgrad
conv_backward_filter x=f32/32x384x13x13 dy=f32/32x384x13x13 dw=f32/384x192x3x3 pad=1 groups=2 ; name=alexnet.4.f32.nchw.wgrad
conv_forward x=f32/32x240x28x28 w=f32/60x80x1x1 groups=3 ; name=shufflenet_g3.pw.f32.nchw
conv_backward_data dy=f32/32x60x28x28 w=f32/60x80x1x1 dx=f32/32x240x28x28 groups=3 ; name=shufflenet_g3.pw.f32.nchw.dgrad
conv_backward_filter x=f32/32x240x28x28 dy=f32/32x60x28x28 dw=f32/60x80x1x1 groups=3 ; name=shufflenet_g3.pw.f32.nchw.wgrad
conv_forward x=f32/32x384x28x28 w=f32/96x48x1x1 groups=8 ; name=shufflenet_g8.pw.f32.nchw
conv_backward_data dy=f32/32x96x28x28 w=f32/96x48x1x1 dx=f32/32x384x28x28 groups=8 ; name=shufflenet_g8.pw.f32.nchw.dgrad
conv_backward_filter x=f32/32x384x28x28 dy=f32/32x96x28x28 dw=f32/96x48x1x1 groups=8 ; name=shufflenet_g8.pw.f32.nchw.wgrad
