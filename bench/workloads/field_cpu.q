# Convolutions as networks run them, at sizes for a CPU: f32, planes and channels last; forward, by x, by filter.

conv_forward x=f32/4x3x224x224 w=f32/64x3x7x7 y=f32/4x64x112x112 stride=2 pad=3 ; name=rn50.conv1.fwd
conv_backward_data dy=f32/4x64x112x112 w=f32/64x3x7x7 dx=f32/4x3x224x224 stride=2 pad=3 ; name=rn50.conv1.data
conv_backward_filter x=f32/4x3x224x224 dy=f32/4x64x112x112 dw=f32/64x3x7x7 stride=2 pad=3 ; name=rn50.conv1.filter
conv_forward x=f32/4x3x224x224/nhwc w=f32/64x3x7x7/nhwc y=f32/4x64x112x112/nhwc stride=2 pad=3 ; name=rn50.conv1.nhwc.fwd
conv_backward_data dy=f32/4x64x112x112/nhwc w=f32/64x3x7x7/nhwc dx=f32/4x3x224x224/nhwc stride=2 pad=3 ; name=rn50.conv1.nhwc.data
conv_backward_filter x=f32/4x3x224x224/nhwc dy=f32/4x64x112x112/nhwc dw=f32/64x3x7x7/nhwc stride=2 pad=3 ; name=rn50.conv1.nhwc.filter
conv_forward x=f32/4x3x224x224 w=f32/32x3x3x3 y=f32/4x32x112x112 stride=2 pad=1 ; name=mobilenet.conv1.fwd
conv_backward_data dy=f32/4x32x112x112 w=f32/32x3x3x3 dx=f32/4x3x224x224 stride=2 pad=1 ; name=mobilenet.conv1.data
conv_backward_filter x=f32/4x3x224x224 dy=f32/4x32x112x112 dw=f32/32x3x3x3 stride=2 pad=1 ; name=mobilenet.conv1.filter
conv_forward x=f32/4x3x224x224/nhwc w=f32/32x3x3x3/nhwc y=f32/4x32x112x112/nhwc stride=2 pad=1 ; name=mobilenet.conv1.nhwc.fwd
conv_backward_data dy=f32/4x32x112x112/nhwc w=f32/32x3x3x3/nhwc dx=f32/4x3x224x224/nhwc stride=2 pad=1 ; name=mobilenet.conv1.nhwc.data
conv_backward_filter x=f32/4x3x224x224/nhwc dy=f32/4x32x112x112/nhwc dw=f32/32x3x3x3/nhwc stride=2 pad=1 ; name=mobilenet.conv1.nhwc.filter
conv_forward x=f32/2x3x224x224 w=f32/64x3x3x3 y=f32/2x64x224x224 pad=1 ; name=vgg.conv1.fwd
conv_backward_data dy=f32/2x64x224x224 w=f32/64x3x3x3 dx=f32/2x3x224x224 pad=1 ; name=vgg.conv1.data
conv_backward_filter x=f32/2x3x224x224 dy=f32/2x64x224x224 dw=f32/64x3x3x3 pad=1 ; name=vgg.conv1.filter
conv_forward x=f32/2x3x224x224/nhwc w=f32/64x3x3x3/nhwc y=f32/2x64x224x224/nhwc pad=1 ; name=vgg.conv1.nhwc.fwd
conv_backward_data dy=f32/2x64x224x224/nhwc w=f32/64x3x3x3/nhwc dx=f32/2x3x224x224/nhwc pad=1 ; name=vgg.conv1.nhwc.data
conv_backward_filter x=f32/2x3x224x224/nhwc dy=f32/2x64x224x224/nhwc dw=f32/64x3x3x3/nhwc pad=1 ; name=vgg.conv1.nhwc.filter
conv_forward x=f32/1x1x256x256 w=f32/64x1x3x3 y=f32/1x64x256x256 pad=1 ; name=unet.grey.fwd
conv_backward_data dy=f32/1x64x256x256 w=f32/64x1x3x3 dx=f32/1x1x256x256 pad=1 ; name=unet.grey.data
conv_backward_filter x=f32/1x1x256x256 dy=f32/1x64x256x256 dw=f32/64x1x3x3 pad=1 ; name=unet.grey.filter
conv_forward x=f32/1x1x48x48x48 w=f32/32x1x3x3x3 y=f32/1x32x48x48x48 pad=1 ; name=unet3d.conv1.fwd
conv_backward_data dy=f32/1x32x48x48x48 w=f32/32x1x3x3x3 dx=f32/1x1x48x48x48 pad=1 ; name=unet3d.conv1.data
conv_backward_filter x=f32/1x1x48x48x48 dy=f32/1x32x48x48x48 dw=f32/32x1x3x3x3 pad=1 ; name=unet3d.conv1.filter
conv_forward x=f32/1x1x80000 w=f32/512x1x10 y=f32/1x512x15999 stride=5 ; name=wav2vec.conv0.fwd
conv_backward_data dy=f32/1x512x15999 w=f32/512x1x10 dx=f32/1x1x80000 stride=5 ; name=wav2vec.conv0.data
conv_backward_filter x=f32/1x1x80000 dy=f32/1x512x15999 dw=f32/512x1x10 stride=5 ; name=wav2vec.conv0.filter
conv_forward x=f32/4x3x224x224 w=f32/768x3x16x16 y=f32/4x768x14x14 stride=16 ; name=vit_b16.patch.fwd
conv_backward_data dy=f32/4x768x14x14 w=f32/768x3x16x16 dx=f32/4x3x224x224 stride=16 ; name=vit_b16.patch.data
conv_backward_filter x=f32/4x3x224x224 dy=f32/4x768x14x14 dw=f32/768x3x16x16 stride=16 ; name=vit_b16.patch.filter
conv_forward x=f32/4x3x224x224/nhwc w=f32/768x3x16x16/nhwc y=f32/4x768x14x14/nhwc stride=16 ; name=vit_b16.patch.nhwc.fwd
conv_backward_data dy=f32/4x768x14x14/nhwc w=f32/768x3x16x16/nhwc dx=f32/4x3x224x224/nhwc stride=16 ; name=vit_b16.patch.nhwc.data
conv_backward_filter x=f32/4x3x224x224/nhwc dy=f32/4x768x14x14/nhwc dw=f32/768x3x16x16/nhwc stride=16 ; name=vit_b16.patch.nhwc.filter
conv_forward x=f32/4x3x224x224 w=f32/96x3x4x4 y=f32/4x96x56x56 stride=4 ; name=convnext.stem.fwd
conv_backward_data dy=f32/4x96x56x56 w=f32/96x3x4x4 dx=f32/4x3x224x224 stride=4 ; name=convnext.stem.data
conv_backward_filter x=f32/4x3x224x224 dy=f32/4x96x56x56 dw=f32/96x3x4x4 stride=4 ; name=convnext.stem.filter
conv_forward x=f32/4x3x224x224/nhwc w=f32/96x3x4x4/nhwc y=f32/4x96x56x56/nhwc stride=4 ; name=convnext.stem.nhwc.fwd
conv_backward_data dy=f32/4x96x56x56/nhwc w=f32/96x3x4x4/nhwc dx=f32/4x3x224x224/nhwc stride=4 ; name=convnext.stem.nhwc.data
conv_backward_filter x=f32/4x3x224x224/nhwc dy=f32/4x96x56x56/nhwc dw=f32/96x3x4x4/nhwc stride=4 ; name=convnext.stem.nhwc.filter
conv_forward x=f32/2x64x56x56 w=f32/64x64x3x3 y=f32/2x64x56x56 pad=1 ; name=rn50.2b.3x3.fwd
conv_backward_data dy=f32/2x64x56x56 w=f32/64x64x3x3 dx=f32/2x64x56x56 pad=1 ; name=rn50.2b.3x3.data
conv_backward_filter x=f32/2x64x56x56 dy=f32/2x64x56x56 dw=f32/64x64x3x3 pad=1 ; name=rn50.2b.3x3.filter
conv_forward x=f32/2x64x56x56/nhwc w=f32/64x64x3x3/nhwc y=f32/2x64x56x56/nhwc pad=1 ; name=rn50.2b.3x3.nhwc.fwd
conv_backward_data dy=f32/2x64x56x56/nhwc w=f32/64x64x3x3/nhwc dx=f32/2x64x56x56/nhwc pad=1 ; name=rn50.2b.3x3.nhwc.data
conv_backward_filter x=f32/2x64x56x56/nhwc dy=f32/2x64x56x56/nhwc dw=f32/64x64x3x3/nhwc pad=1 ; name=rn50.2b.3x3.nhwc.filter
conv_forward x=f32/2x128x56x56 w=f32/128x128x3x3 y=f32/2x128x28x28 stride=2 pad=1 ; name=rn50.3b.3x3s2.fwd
conv_backward_data dy=f32/2x128x28x28 w=f32/128x128x3x3 dx=f32/2x128x56x56 stride=2 pad=1 ; name=rn50.3b.3x3s2.data
conv_backward_filter x=f32/2x128x56x56 dy=f32/2x128x28x28 dw=f32/128x128x3x3 stride=2 pad=1 ; name=rn50.3b.3x3s2.filter
conv_forward x=f32/2x128x56x56/nhwc w=f32/128x128x3x3/nhwc y=f32/2x128x28x28/nhwc stride=2 pad=1 ; name=rn50.3b.3x3s2.nhwc.fwd
conv_backward_data dy=f32/2x128x28x28/nhwc w=f32/128x128x3x3/nhwc dx=f32/2x128x56x56/nhwc stride=2 pad=1 ; name=rn50.3b.3x3s2.nhwc.data
conv_backward_filter x=f32/2x128x56x56/nhwc dy=f32/2x128x28x28/nhwc dw=f32/128x128x3x3/nhwc stride=2 pad=1 ; name=rn50.3b.3x3s2.nhwc.filter
conv_forward x=f32/4x512x7x7 w=f32/512x512x3x3 y=f32/4x512x7x7 pad=1 ; name=rn50.5b.3x3.fwd
conv_backward_data dy=f32/4x512x7x7 w=f32/512x512x3x3 dx=f32/4x512x7x7 pad=1 ; name=rn50.5b.3x3.data
conv_backward_filter x=f32/4x512x7x7 dy=f32/4x512x7x7 dw=f32/512x512x3x3 pad=1 ; name=rn50.5b.3x3.filter
conv_forward x=f32/4x512x7x7/nhwc w=f32/512x512x3x3/nhwc y=f32/4x512x7x7/nhwc pad=1 ; name=rn50.5b.3x3.nhwc.fwd
conv_backward_data dy=f32/4x512x7x7/nhwc w=f32/512x512x3x3/nhwc dx=f32/4x512x7x7/nhwc pad=1 ; name=rn50.5b.3x3.nhwc.data
conv_backward_filter x=f32/4x512x7x7/nhwc dy=f32/4x512x7x7/nhwc dw=f32/512x512x3x3/nhwc pad=1 ; name=rn50.5b.3x3.nhwc.filter
conv_forward x=f32/2x64x56x56 w=f32/256x64x1x1 y=f32/2x256x56x56 ; name=rn50.2c.1x1.fwd
conv_backward_data dy=f32/2x256x56x56 w=f32/256x64x1x1 dx=f32/2x64x56x56 ; name=rn50.2c.1x1.data
conv_backward_filter x=f32/2x64x56x56 dy=f32/2x256x56x56 dw=f32/256x64x1x1 ; name=rn50.2c.1x1.filter
conv_forward x=f32/2x64x56x56/nhwc w=f32/256x64x1x1/nhwc y=f32/2x256x56x56/nhwc ; name=rn50.2c.1x1.nhwc.fwd
conv_backward_data dy=f32/2x256x56x56/nhwc w=f32/256x64x1x1/nhwc dx=f32/2x64x56x56/nhwc ; name=rn50.2c.1x1.nhwc.data
conv_backward_filter x=f32/2x64x56x56/nhwc dy=f32/2x256x56x56/nhwc dw=f32/256x64x1x1/nhwc ; name=rn50.2c.1x1.nhwc.filter
conv_forward x=f32/2x256x56x56 w=f32/512x256x1x1 y=f32/2x512x28x28 stride=2 ; name=rn50.3d.1x1s2.fwd
conv_backward_data dy=f32/2x512x28x28 w=f32/512x256x1x1 dx=f32/2x256x56x56 stride=2 ; name=rn50.3d.1x1s2.data
conv_backward_filter x=f32/2x256x56x56 dy=f32/2x512x28x28 dw=f32/512x256x1x1 stride=2 ; name=rn50.3d.1x1s2.filter
conv_forward x=f32/2x256x56x56/nhwc w=f32/512x256x1x1/nhwc y=f32/2x512x28x28/nhwc stride=2 ; name=rn50.3d.1x1s2.nhwc.fwd
conv_backward_data dy=f32/2x512x28x28/nhwc w=f32/512x256x1x1/nhwc dx=f32/2x256x56x56/nhwc stride=2 ; name=rn50.3d.1x1s2.nhwc.data
conv_backward_filter x=f32/2x256x56x56/nhwc dy=f32/2x512x28x28/nhwc dw=f32/512x256x1x1/nhwc stride=2 ; name=rn50.3d.1x1s2.nhwc.filter
conv_forward x=f32/4x512x7x7 w=f32/2048x512x1x1 y=f32/4x2048x7x7 ; name=rn50.5c.1x1.fwd
conv_backward_data dy=f32/4x2048x7x7 w=f32/2048x512x1x1 dx=f32/4x512x7x7 ; name=rn50.5c.1x1.data
conv_backward_filter x=f32/4x512x7x7 dy=f32/4x2048x7x7 dw=f32/2048x512x1x1 ; name=rn50.5c.1x1.filter
conv_forward x=f32/4x512x7x7/nhwc w=f32/2048x512x1x1/nhwc y=f32/4x2048x7x7/nhwc ; name=rn50.5c.1x1.nhwc.fwd
conv_backward_data dy=f32/4x2048x7x7/nhwc w=f32/2048x512x1x1/nhwc dx=f32/4x512x7x7/nhwc ; name=rn50.5c.1x1.nhwc.data
conv_backward_filter x=f32/4x512x7x7/nhwc dy=f32/4x2048x7x7/nhwc dw=f32/2048x512x1x1/nhwc ; name=rn50.5c.1x1.nhwc.filter
conv_forward x=f32/1x512x33x33 w=f32/256x512x3x3 y=f32/1x256x33x33 pad=6 dilation=6 ; name=deeplab.aspp.fwd
conv_backward_data dy=f32/1x256x33x33 w=f32/256x512x3x3 dx=f32/1x512x33x33 pad=6 dilation=6 ; name=deeplab.aspp.data
conv_backward_filter x=f32/1x512x33x33 dy=f32/1x256x33x33 dw=f32/256x512x3x3 pad=6 dilation=6 ; name=deeplab.aspp.filter
conv_forward x=f32/1x512x33x33/nhwc w=f32/256x512x3x3/nhwc y=f32/1x256x33x33/nhwc pad=6 dilation=6 ; name=deeplab.aspp.nhwc.fwd
conv_backward_data dy=f32/1x256x33x33/nhwc w=f32/256x512x3x3/nhwc dx=f32/1x512x33x33/nhwc pad=6 dilation=6 ; name=deeplab.aspp.nhwc.data
conv_backward_filter x=f32/1x512x33x33/nhwc dy=f32/1x256x33x33/nhwc dw=f32/256x512x3x3/nhwc pad=6 dilation=6 ; name=deeplab.aspp.nhwc.filter
conv_forward x=f32/2x128x56x56 w=f32/128x4x3x3 y=f32/2x128x56x56 pad=1 groups=32 ; name=resnext50.2.fwd
conv_backward_data dy=f32/2x128x56x56 w=f32/128x4x3x3 dx=f32/2x128x56x56 pad=1 groups=32 ; name=resnext50.2.data
conv_backward_filter x=f32/2x128x56x56 dy=f32/2x128x56x56 dw=f32/128x4x3x3 pad=1 groups=32 ; name=resnext50.2.filter
conv_forward x=f32/2x128x56x56/nhwc w=f32/128x4x3x3/nhwc y=f32/2x128x56x56/nhwc pad=1 groups=32 ; name=resnext50.2.nhwc.fwd
conv_backward_data dy=f32/2x128x56x56/nhwc w=f32/128x4x3x3/nhwc dx=f32/2x128x56x56/nhwc pad=1 groups=32 ; name=resnext50.2.nhwc.data
conv_backward_filter x=f32/2x128x56x56/nhwc dy=f32/2x128x56x56/nhwc dw=f32/128x4x3x3/nhwc pad=1 groups=32 ; name=resnext50.2.nhwc.filter
conv_forward x=f32/2x256x28x28 w=f32/256x8x3x3 y=f32/2x256x28x28 pad=1 groups=32 ; name=resnext50.3.fwd
conv_backward_data dy=f32/2x256x28x28 w=f32/256x8x3x3 dx=f32/2x256x28x28 pad=1 groups=32 ; name=resnext50.3.data
conv_backward_filter x=f32/2x256x28x28 dy=f32/2x256x28x28 dw=f32/256x8x3x3 pad=1 groups=32 ; name=resnext50.3.filter
conv_forward x=f32/2x256x28x28/nhwc w=f32/256x8x3x3/nhwc y=f32/2x256x28x28/nhwc pad=1 groups=32 ; name=resnext50.3.nhwc.fwd
conv_backward_data dy=f32/2x256x28x28/nhwc w=f32/256x8x3x3/nhwc dx=f32/2x256x28x28/nhwc pad=1 groups=32 ; name=resnext50.3.nhwc.data
conv_backward_filter x=f32/2x256x28x28/nhwc dy=f32/2x256x28x28/nhwc dw=f32/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext50.3.nhwc.filter
conv_forward x=f32/4x512x14x14 w=f32/512x16x3x3 y=f32/4x512x14x14 pad=1 groups=32 ; name=resnext50.4.fwd
conv_backward_data dy=f32/4x512x14x14 w=f32/512x16x3x3 dx=f32/4x512x14x14 pad=1 groups=32 ; name=resnext50.4.data
conv_backward_filter x=f32/4x512x14x14 dy=f32/4x512x14x14 dw=f32/512x16x3x3 pad=1 groups=32 ; name=resnext50.4.filter
conv_forward x=f32/4x512x14x14/nhwc w=f32/512x16x3x3/nhwc y=f32/4x512x14x14/nhwc pad=1 groups=32 ; name=resnext50.4.nhwc.fwd
conv_backward_data dy=f32/4x512x14x14/nhwc w=f32/512x16x3x3/nhwc dx=f32/4x512x14x14/nhwc pad=1 groups=32 ; name=resnext50.4.nhwc.data
conv_backward_filter x=f32/4x512x14x14/nhwc dy=f32/4x512x14x14/nhwc dw=f32/512x16x3x3/nhwc pad=1 groups=32 ; name=resnext50.4.nhwc.filter
conv_forward x=f32/4x1024x7x7 w=f32/1024x32x3x3 y=f32/4x1024x7x7 pad=1 groups=32 ; name=resnext50.5.fwd
conv_backward_data dy=f32/4x1024x7x7 w=f32/1024x32x3x3 dx=f32/4x1024x7x7 pad=1 groups=32 ; name=resnext50.5.data
conv_backward_filter x=f32/4x1024x7x7 dy=f32/4x1024x7x7 dw=f32/1024x32x3x3 pad=1 groups=32 ; name=resnext50.5.filter
conv_forward x=f32/4x1024x7x7/nhwc w=f32/1024x32x3x3/nhwc y=f32/4x1024x7x7/nhwc pad=1 groups=32 ; name=resnext50.5.nhwc.fwd
conv_backward_data dy=f32/4x1024x7x7/nhwc w=f32/1024x32x3x3/nhwc dx=f32/4x1024x7x7/nhwc pad=1 groups=32 ; name=resnext50.5.nhwc.data
conv_backward_filter x=f32/4x1024x7x7/nhwc dy=f32/4x1024x7x7/nhwc dw=f32/1024x32x3x3/nhwc pad=1 groups=32 ; name=resnext50.5.nhwc.filter
conv_forward x=f32/4x432x14x14 w=f32/432x48x3x3 y=f32/4x432x14x14 pad=1 groups=9 ; name=regnetx.3.fwd
conv_backward_data dy=f32/4x432x14x14 w=f32/432x48x3x3 dx=f32/4x432x14x14 pad=1 groups=9 ; name=regnetx.3.data
conv_backward_filter x=f32/4x432x14x14 dy=f32/4x432x14x14 dw=f32/432x48x3x3 pad=1 groups=9 ; name=regnetx.3.filter
conv_forward x=f32/4x432x14x14/nhwc w=f32/432x48x3x3/nhwc y=f32/4x432x14x14/nhwc pad=1 groups=9 ; name=regnetx.3.nhwc.fwd
conv_backward_data dy=f32/4x432x14x14/nhwc w=f32/432x48x3x3/nhwc dx=f32/4x432x14x14/nhwc pad=1 groups=9 ; name=regnetx.3.nhwc.data
conv_backward_filter x=f32/4x432x14x14/nhwc dy=f32/4x432x14x14/nhwc dw=f32/432x48x3x3/nhwc pad=1 groups=9 ; name=regnetx.3.nhwc.filter
conv_forward x=f32/4x96x27x27 w=f32/256x48x5x5 y=f32/4x256x27x27 pad=2 groups=2 ; name=alexnet.2.fwd
conv_backward_data dy=f32/4x256x27x27 w=f32/256x48x5x5 dx=f32/4x96x27x27 pad=2 groups=2 ; name=alexnet.2.data
conv_backward_filter x=f32/4x96x27x27 dy=f32/4x256x27x27 dw=f32/256x48x5x5 pad=2 groups=2 ; name=alexnet.2.filter
conv_forward x=f32/4x96x27x27/nhwc w=f32/256x48x5x5/nhwc y=f32/4x256x27x27/nhwc pad=2 groups=2 ; name=alexnet.2.nhwc.fwd
conv_backward_data dy=f32/4x256x27x27/nhwc w=f32/256x48x5x5/nhwc dx=f32/4x96x27x27/nhwc pad=2 groups=2 ; name=alexnet.2.nhwc.data
conv_backward_filter x=f32/4x96x27x27/nhwc dy=f32/4x256x27x27/nhwc dw=f32/256x48x5x5/nhwc pad=2 groups=2 ; name=alexnet.2.nhwc.filter
conv_forward x=f32/4x240x28x28 w=f32/60x80x1x1 y=f32/4x60x28x28 groups=3 ; name=shufflenet.pw.fwd
conv_backward_data dy=f32/4x60x28x28 w=f32/60x80x1x1 dx=f32/4x240x28x28 groups=3 ; name=shufflenet.pw.data
conv_backward_filter x=f32/4x240x28x28 dy=f32/4x60x28x28 dw=f32/60x80x1x1 groups=3 ; name=shufflenet.pw.filter
conv_forward x=f32/4x240x28x28/nhwc w=f32/60x80x1x1/nhwc y=f32/4x60x28x28/nhwc groups=3 ; name=shufflenet.pw.nhwc.fwd
conv_backward_data dy=f32/4x60x28x28/nhwc w=f32/60x80x1x1/nhwc dx=f32/4x240x28x28/nhwc groups=3 ; name=shufflenet.pw.nhwc.data
conv_backward_filter x=f32/4x240x28x28/nhwc dy=f32/4x60x28x28/nhwc dw=f32/60x80x1x1/nhwc groups=3 ; name=shufflenet.pw.nhwc.filter
conv_forward x=f32/4x144x56x56 w=f32/144x1x3x3 y=f32/4x144x56x56 pad=1 groups=144 ; name=mobilenet.dw3.fwd
conv_backward_data dy=f32/4x144x56x56 w=f32/144x1x3x3 dx=f32/4x144x56x56 pad=1 groups=144 ; name=mobilenet.dw3.data
conv_backward_filter x=f32/4x144x56x56 dy=f32/4x144x56x56 dw=f32/144x1x3x3 pad=1 groups=144 ; name=mobilenet.dw3.filter
conv_forward x=f32/4x144x56x56/nhwc w=f32/144x1x3x3/nhwc y=f32/4x144x56x56/nhwc pad=1 groups=144 ; name=mobilenet.dw3.nhwc.fwd
conv_backward_data dy=f32/4x144x56x56/nhwc w=f32/144x1x3x3/nhwc dx=f32/4x144x56x56/nhwc pad=1 groups=144 ; name=mobilenet.dw3.nhwc.data
conv_backward_filter x=f32/4x144x56x56/nhwc dy=f32/4x144x56x56/nhwc dw=f32/144x1x3x3/nhwc pad=1 groups=144 ; name=mobilenet.dw3.nhwc.filter
conv_forward x=f32/4x96x112x112 w=f32/96x1x3x3 y=f32/4x96x56x56 stride=2 pad=1 groups=96 ; name=mobilenet.dw3s2.fwd
conv_backward_data dy=f32/4x96x56x56 w=f32/96x1x3x3 dx=f32/4x96x112x112 stride=2 pad=1 groups=96 ; name=mobilenet.dw3s2.data
conv_backward_filter x=f32/4x96x112x112 dy=f32/4x96x56x56 dw=f32/96x1x3x3 stride=2 pad=1 groups=96 ; name=mobilenet.dw3s2.filter
conv_forward x=f32/4x96x112x112/nhwc w=f32/96x1x3x3/nhwc y=f32/4x96x56x56/nhwc stride=2 pad=1 groups=96 ; name=mobilenet.dw3s2.nhwc.fwd
conv_backward_data dy=f32/4x96x56x56/nhwc w=f32/96x1x3x3/nhwc dx=f32/4x96x112x112/nhwc stride=2 pad=1 groups=96 ; name=mobilenet.dw3s2.nhwc.data
conv_backward_filter x=f32/4x96x112x112/nhwc dy=f32/4x96x56x56/nhwc dw=f32/96x1x3x3/nhwc stride=2 pad=1 groups=96 ; name=mobilenet.dw3s2.nhwc.filter
conv_forward x=f32/4x672x14x14 w=f32/672x1x5x5 y=f32/4x672x14x14 pad=2 groups=672 ; name=efficientnet.dw5.fwd
conv_backward_data dy=f32/4x672x14x14 w=f32/672x1x5x5 dx=f32/4x672x14x14 pad=2 groups=672 ; name=efficientnet.dw5.data
conv_backward_filter x=f32/4x672x14x14 dy=f32/4x672x14x14 dw=f32/672x1x5x5 pad=2 groups=672 ; name=efficientnet.dw5.filter
conv_forward x=f32/4x672x14x14/nhwc w=f32/672x1x5x5/nhwc y=f32/4x672x14x14/nhwc pad=2 groups=672 ; name=efficientnet.dw5.nhwc.fwd
conv_backward_data dy=f32/4x672x14x14/nhwc w=f32/672x1x5x5/nhwc dx=f32/4x672x14x14/nhwc pad=2 groups=672 ; name=efficientnet.dw5.nhwc.data
conv_backward_filter x=f32/4x672x14x14/nhwc dy=f32/4x672x14x14/nhwc dw=f32/672x1x5x5/nhwc pad=2 groups=672 ; name=efficientnet.dw5.nhwc.filter
conv_forward x=f32/4x96x56x56 w=f32/96x1x7x7 y=f32/4x96x56x56 pad=3 groups=96 ; name=convnext.dw7.fwd
conv_backward_data dy=f32/4x96x56x56 w=f32/96x1x7x7 dx=f32/4x96x56x56 pad=3 groups=96 ; name=convnext.dw7.data
conv_backward_filter x=f32/4x96x56x56 dy=f32/4x96x56x56 dw=f32/96x1x7x7 pad=3 groups=96 ; name=convnext.dw7.filter
conv_forward x=f32/4x96x56x56/nhwc w=f32/96x1x7x7/nhwc y=f32/4x96x56x56/nhwc pad=3 groups=96 ; name=convnext.dw7.nhwc.fwd
conv_backward_data dy=f32/4x96x56x56/nhwc w=f32/96x1x7x7/nhwc dx=f32/4x96x56x56/nhwc pad=3 groups=96 ; name=convnext.dw7.nhwc.data
conv_backward_filter x=f32/4x96x56x56/nhwc dy=f32/4x96x56x56/nhwc dw=f32/96x1x7x7/nhwc pad=3 groups=96 ; name=convnext.dw7.nhwc.filter
conv_forward x=f32/4x512x500 w=f32/512x1x31 y=f32/4x512x500 pad=15 groups=512 ; name=conformer.dw31.fwd
conv_backward_data dy=f32/4x512x500 w=f32/512x1x31 dx=f32/4x512x500 pad=15 groups=512 ; name=conformer.dw31.data
conv_backward_filter x=f32/4x512x500 dy=f32/4x512x500 dw=f32/512x1x31 pad=15 groups=512 ; name=conformer.dw31.filter
conv_forward x=f32/2x128x2048 w=f32/128x128x11 y=f32/2x128x2048 pad=25 dilation=5 ; name=hifigan.dilated.fwd
conv_backward_data dy=f32/2x128x2048 w=f32/128x128x11 dx=f32/2x128x2048 pad=25 dilation=5 ; name=hifigan.dilated.data
conv_backward_filter x=f32/2x128x2048 dy=f32/2x128x2048 dw=f32/128x128x11 pad=25 dilation=5 ; name=hifigan.dilated.filter
conv_forward x=f32/2x256x2048 w=f32/512x256x16 y=f32/2x512x256 stride=8 pad=4 ; name=hifigan.up.fwd
conv_backward_data dy=f32/2x512x256 w=f32/512x256x16 dx=f32/2x256x2048 stride=8 pad=4 ; name=hifigan.up.data
conv_backward_filter x=f32/2x256x2048 dy=f32/2x512x256 dw=f32/512x256x16 stride=8 pad=4 ; name=hifigan.up.filter
conv_forward x=f32/1x64x16000 w=f32/128x64x2 y=f32/1x128x15936 dilation=64 ; name=wavenet.dilated.fwd
conv_backward_data dy=f32/1x128x15936 w=f32/128x64x2 dx=f32/1x64x16000 dilation=64 ; name=wavenet.dilated.data
conv_backward_filter x=f32/1x64x16000 dy=f32/1x128x15936 dw=f32/128x64x2 dilation=64 ; name=wavenet.dilated.filter
conv_forward x=f32/1x512x3999 w=f32/512x512x3 y=f32/1x512x1999 stride=2 ; name=wav2vec.conv1.fwd
conv_backward_data dy=f32/1x512x1999 w=f32/512x512x3 dx=f32/1x512x3999 stride=2 ; name=wav2vec.conv1.data
conv_backward_filter x=f32/1x512x3999 dy=f32/1x512x1999 dw=f32/512x512x3 stride=2 ; name=wav2vec.conv1.filter
conv_forward x=f32/1x128x128x128 w=f32/256x128x2x2 y=f32/1x256x64x64 stride=2 ; name=unet.up2x2.fwd
conv_backward_data dy=f32/1x256x64x64 w=f32/256x128x2x2 dx=f32/1x128x128x128 stride=2 ; name=unet.up2x2.data
conv_backward_filter x=f32/1x128x128x128 dy=f32/1x256x64x64 dw=f32/256x128x2x2 stride=2 ; name=unet.up2x2.filter
conv_forward x=f32/1x128x128x128/nhwc w=f32/256x128x2x2/nhwc y=f32/1x256x64x64/nhwc stride=2 ; name=unet.up2x2.nhwc.fwd
conv_backward_data dy=f32/1x256x64x64/nhwc w=f32/256x128x2x2/nhwc dx=f32/1x128x128x128/nhwc stride=2 ; name=unet.up2x2.nhwc.data
conv_backward_filter x=f32/1x128x128x128/nhwc dy=f32/1x256x64x64/nhwc dw=f32/256x128x2x2/nhwc stride=2 ; name=unet.up2x2.nhwc.filter
conv_forward x=f32/1x64x8x28x28 w=f32/128x64x3x3x3 y=f32/1x128x8x28x28 pad=1 ; name=c3d.conv2.fwd
conv_backward_data dy=f32/1x128x8x28x28 w=f32/128x64x3x3x3 dx=f32/1x64x8x28x28 pad=1 ; name=c3d.conv2.data
conv_backward_filter x=f32/1x64x8x28x28 dy=f32/1x128x8x28x28 dw=f32/128x64x3x3x3 pad=1 ; name=c3d.conv2.filter
conv_forward x=f32/1x64x8x28x28/nhwc w=f32/128x64x3x3x3/nhwc y=f32/1x128x8x28x28/nhwc pad=1 ; name=c3d.conv2.nhwc.fwd
conv_backward_data dy=f32/1x128x8x28x28/nhwc w=f32/128x64x3x3x3/nhwc dx=f32/1x64x8x28x28/nhwc pad=1 ; name=c3d.conv2.nhwc.data
conv_backward_filter x=f32/1x64x8x28x28/nhwc dy=f32/1x128x8x28x28/nhwc dw=f32/128x64x3x3x3/nhwc pad=1 ; name=c3d.conv2.nhwc.filter
conv_forward x=f32/4x128x17x17 w=f32/128x128x1x7 y=f32/4x128x17x17 pad=0,3 ; name=inception.1x7.fwd
conv_backward_data dy=f32/4x128x17x17 w=f32/128x128x1x7 dx=f32/4x128x17x17 pad=0,3 ; name=inception.1x7.data
conv_backward_filter x=f32/4x128x17x17 dy=f32/4x128x17x17 dw=f32/128x128x1x7 pad=0,3 ; name=inception.1x7.filter
conv_forward x=f32/2x320x7x7 w=f32/1280x320x1x1 y=f32/2x1280x7x7 ; name=effnet.pw_head.fwd
conv_backward_data dy=f32/2x1280x7x7 w=f32/1280x320x1x1 dx=f32/2x320x7x7 ; name=effnet.pw_head.data
conv_backward_filter x=f32/2x320x7x7 dy=f32/2x1280x7x7 dw=f32/1280x320x1x1 ; name=effnet.pw_head.filter
conv_forward x=f32/2x768x7x7 w=f32/768x1x7x7 y=f32/2x768x7x7 pad=3 groups=768 ; name=convnext.dw7.7.fwd
conv_backward_data dy=f32/2x768x7x7 w=f32/768x1x7x7 dx=f32/2x768x7x7 pad=3 groups=768 ; name=convnext.dw7.7.data
conv_backward_filter x=f32/2x768x7x7 dy=f32/2x768x7x7 dw=f32/768x1x7x7 pad=3 groups=768 ; name=convnext.dw7.7.filter
conv_forward x=f32/2x64x56x56 w=f32/64x8x3x3 y=f32/2x64x28x28 stride=2 pad=1 groups=8 ; name=regnet.g8s2.fwd
conv_backward_data dy=f32/2x64x28x28 w=f32/64x8x3x3 dx=f32/2x64x56x56 stride=2 pad=1 groups=8 ; name=regnet.g8s2.data
conv_backward_filter x=f32/2x64x56x56 dy=f32/2x64x28x28 dw=f32/64x8x3x3 stride=2 pad=1 groups=8 ; name=regnet.g8s2.filter
conv_forward x=f32/2x64x56x56/nhwc w=f32/64x8x3x3/nhwc y=f32/2x64x28x28/nhwc stride=2 pad=1 groups=8 ; name=regnet.g8s2.nhwc.fwd
conv_backward_data dy=f32/2x64x28x28/nhwc w=f32/64x8x3x3/nhwc dx=f32/2x64x56x56/nhwc stride=2 pad=1 groups=8 ; name=regnet.g8s2.nhwc.data
conv_backward_filter x=f32/2x64x56x56/nhwc dy=f32/2x64x28x28/nhwc dw=f32/64x8x3x3/nhwc stride=2 pad=1 groups=8 ; name=regnet.g8s2.nhwc.filter
conv_backward_data dy=f32/2x256x28x28 w=f32/256x8x3x3 dx=f32/2x256x56x56 stride=2 pad=1 groups=32 ; name=resnext.g4s2.data
