# Convolutions of 67 layers of networks that no other list has (detection, segmentation, medicine, video, sound, generators, games), each in three
# directions, NCHW and channels last. Drawn before anything was made for them, to see what lists that nobody has seen would give.
conv_forward x=f16/16x64x80x80 w=f16/64x64x3x3 pad=1 ; name=yolo8.s.p3.f16.f
conv_backward_data dy=f16/16x64x80x80 w=f16/64x64x3x3 dx=f16/16x64x80x80 pad=1 ; name=yolo8.s.p3.f16.d
conv_backward_filter x=f16/16x64x80x80 dy=f16/16x64x80x80 dw=f16/64x64x3x3 pad=1 ; name=yolo8.s.p3.f16.w
conv_forward x=f32/16x64x80x80 w=f32/64x64x3x3 pad=1 ; name=yolo8.s.p3.f32.f
conv_backward_data dy=f32/16x64x80x80 w=f32/64x64x3x3 dx=f32/16x64x80x80 pad=1 ; name=yolo8.s.p3.f32.d
conv_backward_filter x=f32/16x64x80x80 dy=f32/16x64x80x80 dw=f32/64x64x3x3 pad=1 ; name=yolo8.s.p3.f32.w
conv_forward x=f16/16x3x640x640/nhwc w=f16/32x3x3x3/nhwc stride=2 pad=1 ; name=yolo8.stem.f16n.f
conv_backward_data dy=f16/16x32x320x320/nhwc w=f16/32x3x3x3/nhwc dx=f16/16x3x640x640/nhwc stride=2 pad=1 ; name=yolo8.stem.f16n.d
conv_backward_filter x=f16/16x3x640x640/nhwc dy=f16/16x32x320x320/nhwc dw=f16/32x3x3x3/nhwc stride=2 pad=1 ; name=yolo8.stem.f16n.w
conv_forward x=f32/16x3x640x640 w=f32/32x3x3x3 stride=2 pad=1 ; name=yolo8.stem.f32.f
conv_backward_data dy=f32/16x32x320x320 w=f32/32x3x3x3 dx=f32/16x3x640x640 stride=2 pad=1 ; name=yolo8.stem.f32.d
conv_backward_filter x=f32/16x3x640x640 dy=f32/16x32x320x320 dw=f32/32x3x3x3 stride=2 pad=1 ; name=yolo8.stem.f32.w
conv_forward x=bf16/16x96x160x160 w=bf16/192x96x3x3 stride=2 pad=1 ; name=yolo8.m.down.bf16.f
conv_backward_data dy=bf16/16x192x80x80 w=bf16/192x96x3x3 dx=bf16/16x96x160x160 stride=2 pad=1 ; name=yolo8.m.down.bf16.d
conv_backward_filter x=bf16/16x96x160x160 dy=bf16/16x192x80x80 dw=bf16/192x96x3x3 stride=2 pad=1 ; name=yolo8.m.down.bf16.w
conv_forward x=f16/2x256x200x336 w=f16/256x256x3x3 pad=1 ; name=frcnn.fpn.f16.f
conv_backward_data dy=f16/2x256x200x336 w=f16/256x256x3x3 dx=f16/2x256x200x336 pad=1 ; name=frcnn.fpn.f16.d
conv_backward_filter x=f16/2x256x200x336 dy=f16/2x256x200x336 dw=f16/256x256x3x3 pad=1 ; name=frcnn.fpn.f16.w
conv_forward x=f32/2x256x200x336 w=f32/256x256x3x3 pad=1 ; name=frcnn.fpn.f32.f
conv_backward_data dy=f32/2x256x200x336 w=f32/256x256x3x3 dx=f32/2x256x200x336 pad=1 ; name=frcnn.fpn.f32.d
conv_backward_filter x=f32/2x256x200x336 dy=f32/2x256x200x336 dw=f32/256x256x3x3 pad=1 ; name=frcnn.fpn.f32.w
conv_forward x=f16/2x512x100x168/nhwc w=f16/256x512x1x1/nhwc ; name=frcnn.c3.1x1.f16n.f
conv_backward_data dy=f16/2x256x100x168/nhwc w=f16/256x512x1x1/nhwc dx=f16/2x512x100x168/nhwc ; name=frcnn.c3.1x1.f16n.d
conv_backward_filter x=f16/2x512x100x168/nhwc dy=f16/2x256x100x168/nhwc dw=f16/256x512x1x1/nhwc ; name=frcnn.c3.1x1.f16n.w
conv_forward x=f32/2x512x100x168 w=f32/256x512x1x1 ; name=frcnn.c3.1x1.f32.f
conv_backward_data dy=f32/2x256x100x168 w=f32/256x512x1x1 dx=f32/2x512x100x168 ; name=frcnn.c3.1x1.f32.d
conv_backward_filter x=f32/2x512x100x168 dy=f32/2x256x100x168 dw=f32/256x512x1x1 ; name=frcnn.c3.1x1.f32.w
conv_forward x=bf16/2x256x50x84 w=bf16/720x256x3x3 pad=1 ; name=retina.cls.bf16.f
conv_backward_data dy=bf16/2x720x50x84 w=bf16/720x256x3x3 dx=bf16/2x256x50x84 pad=1 ; name=retina.cls.bf16.d
conv_backward_filter x=bf16/2x256x50x84 dy=bf16/2x720x50x84 dw=bf16/720x256x3x3 pad=1 ; name=retina.cls.bf16.w
conv_forward x=f16/128x256x14x14/nhwc w=f16/256x256x3x3/nhwc pad=1 ; name=mask.head.f16n.f
conv_backward_data dy=f16/128x256x14x14/nhwc w=f16/256x256x3x3/nhwc dx=f16/128x256x14x14/nhwc pad=1 ; name=mask.head.f16n.d
conv_backward_filter x=f16/128x256x14x14/nhwc dy=f16/128x256x14x14/nhwc dw=f16/256x256x3x3/nhwc pad=1 ; name=mask.head.f16n.w
conv_forward x=f32/128x256x14x14 w=f32/256x256x3x3 pad=1 ; name=mask.head.f32.f
conv_backward_data dy=f32/128x256x14x14 w=f32/256x256x3x3 dx=f32/128x256x14x14 pad=1 ; name=mask.head.f32.d
conv_backward_filter x=f32/128x256x14x14 dy=f32/128x256x14x14 dw=f32/256x256x3x3 pad=1 ; name=mask.head.f32.w
conv_forward x=f16/128x256x28x28 w=f16/256x256x2x2 stride=2 ; name=mask.deconv.f16.f
conv_backward_data dy=f16/128x256x14x14 w=f16/256x256x2x2 dx=f16/128x256x28x28 stride=2 ; name=mask.deconv.f16.d
conv_backward_filter x=f16/128x256x28x28 dy=f16/128x256x14x14 dw=f16/256x256x2x2 stride=2 ; name=mask.deconv.f16.w
conv_forward x=f16/2x256x100x168 w=f16/12x256x1x1 ; name=rpn.1x1.f16.f
conv_backward_data dy=f16/2x12x100x168 w=f16/12x256x1x1 dx=f16/2x256x100x168 ; name=rpn.1x1.f16.d
conv_backward_filter x=f16/2x256x100x168 dy=f16/2x12x100x168 dw=f16/12x256x1x1 ; name=rpn.1x1.f16.w
conv_forward x=f32/2x256x100x168/nhwc w=f32/12x256x1x1/nhwc ; name=rpn.1x1.f32n.f
conv_backward_data dy=f32/2x12x100x168/nhwc w=f32/12x256x1x1/nhwc dx=f32/2x256x100x168/nhwc ; name=rpn.1x1.f32n.d
conv_backward_filter x=f32/2x256x100x168/nhwc dy=f32/2x12x100x168/nhwc dw=f32/12x256x1x1/nhwc ; name=rpn.1x1.f32n.w
conv_forward x=f16/4x2048x33x33 w=f16/256x2048x3x3 pad=18 dilation=18 ; name=deeplab.aspp18.f16.f
conv_backward_data dy=f16/4x256x33x33 w=f16/256x2048x3x3 dx=f16/4x2048x33x33 pad=18 dilation=18 ; name=deeplab.aspp18.f16.d
conv_backward_filter x=f16/4x2048x33x33 dy=f16/4x256x33x33 dw=f16/256x2048x3x3 pad=18 dilation=18 ; name=deeplab.aspp18.f16.w
conv_forward x=f32/4x2048x33x33 w=f32/256x2048x3x3 pad=18 dilation=18 ; name=deeplab.aspp18.f32.f
conv_backward_data dy=f32/4x256x33x33 w=f32/256x2048x3x3 dx=f32/4x2048x33x33 pad=18 dilation=18 ; name=deeplab.aspp18.f32.d
conv_backward_filter x=f32/4x2048x33x33 dy=f32/4x256x33x33 dw=f32/256x2048x3x3 pad=18 dilation=18 ; name=deeplab.aspp18.f32.w
conv_forward x=f16/8x18x56x56 w=f16/18x18x3x3 pad=1 ; name=hrnet.w18.f16.f
conv_backward_data dy=f16/8x18x56x56 w=f16/18x18x3x3 dx=f16/8x18x56x56 pad=1 ; name=hrnet.w18.f16.d
conv_backward_filter x=f16/8x18x56x56 dy=f16/8x18x56x56 dw=f16/18x18x3x3 pad=1 ; name=hrnet.w18.f16.w
conv_forward x=bf16/8x18x56x56/nhwc w=bf16/18x18x3x3/nhwc pad=1 ; name=hrnet.w18.bf16n.f
conv_backward_data dy=bf16/8x18x56x56/nhwc w=bf16/18x18x3x3/nhwc dx=bf16/8x18x56x56/nhwc pad=1 ; name=hrnet.w18.bf16n.d
conv_backward_filter x=bf16/8x18x56x56/nhwc dy=bf16/8x18x56x56/nhwc dw=bf16/18x18x3x3/nhwc pad=1 ; name=hrnet.w18.bf16n.w
conv_forward x=f32/8x18x56x56 w=f32/18x18x3x3 pad=1 ; name=hrnet.w18.f32.f
conv_backward_data dy=f32/8x18x56x56 w=f32/18x18x3x3 dx=f32/8x18x56x56 pad=1 ; name=hrnet.w18.f32.d
conv_backward_filter x=f32/8x18x56x56 dy=f32/8x18x56x56 dw=f32/18x18x3x3 pad=1 ; name=hrnet.w18.f32.w
conv_forward x=bf16/8x36x28x28 w=bf16/36x36x3x3 pad=1 ; name=hrnet.w36.bf16.f
conv_backward_data dy=bf16/8x36x28x28 w=bf16/36x36x3x3 dx=bf16/8x36x28x28 pad=1 ; name=hrnet.w36.bf16.d
conv_backward_filter x=bf16/8x36x28x28 dy=bf16/8x36x28x28 dw=bf16/36x36x3x3 pad=1 ; name=hrnet.w36.bf16.w
conv_forward x=f16/8x64x128x256 w=f16/128x64x3x3 stride=2 pad=1 ; name=bisenet.f16.f
conv_backward_data dy=f16/8x128x64x128 w=f16/128x64x3x3 dx=f16/8x64x128x256 stride=2 pad=1 ; name=bisenet.f16.d
conv_backward_filter x=f16/8x64x128x256 dy=f16/8x128x64x128 dw=f16/128x64x3x3 stride=2 pad=1 ; name=bisenet.f16.w
conv_forward x=f16/2x64x256x256 w=f16/64x64x3x3 pad=1 ; name=unet.256.f16.f
conv_backward_data dy=f16/2x64x256x256 w=f16/64x64x3x3 dx=f16/2x64x256x256 pad=1 ; name=unet.256.f16.d
conv_backward_filter x=f16/2x64x256x256 dy=f16/2x64x256x256 dw=f16/64x64x3x3 pad=1 ; name=unet.256.f16.w
conv_forward x=f32/2x64x256x256 w=f32/64x64x3x3 pad=1 ; name=unet.256.f32.f
conv_backward_data dy=f32/2x64x256x256 w=f32/64x64x3x3 dx=f32/2x64x256x256 pad=1 ; name=unet.256.f32.d
conv_backward_filter x=f32/2x64x256x256 dy=f32/2x64x256x256 dw=f32/64x64x3x3 pad=1 ; name=unet.256.f32.w
conv_forward x=f16/2x64x512x512 w=f16/2x64x1x1 ; name=unet.out.f16.f
conv_backward_data dy=f16/2x2x512x512 w=f16/2x64x1x1 dx=f16/2x64x512x512 ; name=unet.out.f16.d
conv_backward_filter x=f16/2x64x512x512 dy=f16/2x2x512x512 dw=f16/2x64x1x1 ; name=unet.out.f16.w
conv_forward x=f32/2x64x512x512 w=f32/2x64x1x1 ; name=unet.out.f32.f
conv_backward_data dy=f32/2x2x512x512 w=f32/2x64x1x1 dx=f32/2x64x512x512 ; name=unet.out.f32.d
conv_backward_filter x=f32/2x64x512x512 dy=f32/2x2x512x512 dw=f32/2x64x1x1 ; name=unet.out.f32.w
conv_forward x=f16/2x32x40x56x40 w=f16/64x32x3x3x3 stride=2 pad=1 ; name=nnunet.320.f16.f
conv_backward_data dy=f16/2x64x20x28x20 w=f16/64x32x3x3x3 dx=f16/2x32x40x56x40 stride=2 pad=1 ; name=nnunet.320.f16.d
conv_backward_filter x=f16/2x32x40x56x40 dy=f16/2x64x20x28x20 dw=f16/64x32x3x3x3 stride=2 pad=1 ; name=nnunet.320.f16.w
conv_forward x=f32/2x32x40x56x40 w=f32/64x32x3x3x3 stride=2 pad=1 ; name=nnunet.320.f32.f
conv_backward_data dy=f32/2x64x20x28x20 w=f32/64x32x3x3x3 dx=f32/2x32x40x56x40 stride=2 pad=1 ; name=nnunet.320.f32.d
conv_backward_filter x=f32/2x32x40x56x40 dy=f32/2x64x20x28x20 dw=f32/64x32x3x3x3 stride=2 pad=1 ; name=nnunet.320.f32.w
conv_forward x=f16/2x1x64x96x64 w=f16/32x1x3x3x3 pad=1 ; name=nnunet.1.f16.f
conv_backward_data dy=f16/2x32x64x96x64 w=f16/32x1x3x3x3 dx=f16/2x1x64x96x64 pad=1 ; name=nnunet.1.f16.d
conv_backward_filter x=f16/2x1x64x96x64 dy=f16/2x32x64x96x64 dw=f16/32x1x3x3x3 pad=1 ; name=nnunet.1.f16.w
conv_forward x=bf16/2x1x64x96x64/nhwc w=bf16/32x1x3x3x3/nhwc pad=1 ; name=nnunet.1.bf16n.f
conv_backward_data dy=bf16/2x32x64x96x64/nhwc w=bf16/32x1x3x3x3/nhwc dx=bf16/2x1x64x96x64/nhwc pad=1 ; name=nnunet.1.bf16n.d
conv_backward_filter x=bf16/2x1x64x96x64/nhwc dy=bf16/2x32x64x96x64/nhwc dw=bf16/32x1x3x3x3/nhwc pad=1 ; name=nnunet.1.bf16n.w
conv_forward x=f16/1x8x112x112x80 w=f16/8x8x3x3x3 pad=1 ; name=segresnet.f16.f
conv_backward_data dy=f16/1x8x112x112x80 w=f16/8x8x3x3x3 dx=f16/1x8x112x112x80 pad=1 ; name=segresnet.f16.d
conv_backward_filter x=f16/1x8x112x112x80 dy=f16/1x8x112x112x80 dw=f16/8x8x3x3x3 pad=1 ; name=segresnet.f16.w
conv_forward x=f32/1x8x112x112x80 w=f32/8x8x3x3x3 pad=1 ; name=segresnet.f32.f
conv_backward_data dy=f32/1x8x112x112x80 w=f32/8x8x3x3x3 dx=f32/1x8x112x112x80 pad=1 ; name=segresnet.f32.d
conv_backward_filter x=f32/1x8x112x112x80 dy=f32/1x8x112x112x80 dw=f32/8x8x3x3x3 pad=1 ; name=segresnet.f32.w
conv_forward x=f16/1x16x64x64x32 w=f16/32x16x2x2x2 stride=2 ; name=vnet.down.f16.f
conv_backward_data dy=f16/1x32x32x32x16 w=f16/32x16x2x2x2 dx=f16/1x16x64x64x32 stride=2 ; name=vnet.down.f16.d
conv_backward_filter x=f16/1x16x64x64x32 dy=f16/1x32x32x32x16 dw=f16/32x16x2x2x2 stride=2 ; name=vnet.down.f16.w
conv_forward x=f16/4x54x16x56x56 w=f16/54x1x3x3x3 pad=1 groups=54 ; name=x3d.dw.f16.f
conv_backward_data dy=f16/4x54x16x56x56 w=f16/54x1x3x3x3 dx=f16/4x54x16x56x56 pad=1 groups=54 ; name=x3d.dw.f16.d
conv_backward_filter x=f16/4x54x16x56x56 dy=f16/4x54x16x56x56 dw=f16/54x1x3x3x3 pad=1 groups=54 ; name=x3d.dw.f16.w
conv_forward x=f32/4x54x16x56x56 w=f32/54x1x3x3x3 pad=1 groups=54 ; name=x3d.dw.f32.f
conv_backward_data dy=f32/4x54x16x56x56 w=f32/54x1x3x3x3 dx=f32/4x54x16x56x56 pad=1 groups=54 ; name=x3d.dw.f32.d
conv_backward_filter x=f32/4x54x16x56x56 dy=f32/4x54x16x56x56 dw=f32/54x1x3x3x3 pad=1 groups=54 ; name=x3d.dw.f32.w
conv_forward x=f16/4x8x32x56x56 w=f16/8x8x3x1x1 pad=1,0,0 ; name=slowfast.fast.f16.f
conv_backward_data dy=f16/4x8x32x56x56 w=f16/8x8x3x1x1 dx=f16/4x8x32x56x56 pad=1,0,0 ; name=slowfast.fast.f16.d
conv_backward_filter x=f16/4x8x32x56x56 dy=f16/4x8x32x56x56 dw=f16/8x8x3x1x1 pad=1,0,0 ; name=slowfast.fast.f16.w
conv_forward x=bf16/4x8x32x56x56/nhwc w=bf16/8x8x3x1x1/nhwc pad=1,0,0 ; name=slowfast.fast.bf16n.f
conv_backward_data dy=bf16/4x8x32x56x56/nhwc w=bf16/8x8x3x1x1/nhwc dx=bf16/4x8x32x56x56/nhwc pad=1,0,0 ; name=slowfast.fast.bf16n.d
conv_backward_filter x=bf16/4x8x32x56x56/nhwc dy=bf16/4x8x32x56x56/nhwc dw=bf16/8x8x3x1x1/nhwc pad=1,0,0 ; name=slowfast.fast.bf16n.w
conv_forward x=f16/4x64x8x56x56 w=f16/256x64x1x1x1 ; name=slowfast.1x1.f16.f
conv_backward_data dy=f16/4x256x8x56x56 w=f16/256x64x1x1x1 dx=f16/4x64x8x56x56 ; name=slowfast.1x1.f16.d
conv_backward_filter x=f16/4x64x8x56x56 dy=f16/4x256x8x56x56 dw=f16/256x64x1x1x1 ; name=slowfast.1x1.f16.w
conv_forward x=f16/4x128x8x28x28 w=f16/256x128x3x3x3 pad=1 ; name=c3d.f16.f
conv_backward_data dy=f16/4x256x8x28x28 w=f16/256x128x3x3x3 dx=f16/4x128x8x28x28 pad=1 ; name=c3d.f16.d
conv_backward_filter x=f16/4x128x8x28x28 dy=f16/4x256x8x28x28 dw=f16/256x128x3x3x3 pad=1 ; name=c3d.f16.w
conv_forward x=f16/4x96x8x56x56 w=f16/96x1x3x3x3 stride=1,2,2 pad=1 groups=96 ; name=mvit.pool.f16.f
conv_backward_data dy=f16/4x96x8x28x28 w=f16/96x1x3x3x3 dx=f16/4x96x8x56x56 stride=1,2,2 pad=1 groups=96 ; name=mvit.pool.f16.d
conv_backward_filter x=f16/4x96x8x56x56 dy=f16/4x96x8x28x28 dw=f16/96x1x3x3x3 stride=1,2,2 pad=1 groups=96 ; name=mvit.pool.f16.w
conv_forward x=bf16/4x128x8x28x28 w=bf16/128x1x5x5x5 pad=2 groups=128 ; name=uniformer.dw5.bf16.f
conv_backward_data dy=bf16/4x128x8x28x28 w=bf16/128x1x5x5x5 dx=bf16/4x128x8x28x28 pad=2 groups=128 ; name=uniformer.dw5.bf16.d
conv_backward_filter x=bf16/4x128x8x28x28 dy=bf16/4x128x8x28x28 dw=bf16/128x1x5x5x5 pad=2 groups=128 ; name=uniformer.dw5.bf16.w
conv_forward x=f16/16x1x24000 w=f16/32x1x7 pad=3 ; name=encodec.in.f16.f
conv_backward_data dy=f16/16x32x24000 w=f16/32x1x7 dx=f16/16x1x24000 pad=3 ; name=encodec.in.f16.d
conv_backward_filter x=f16/16x1x24000 dy=f16/16x32x24000 dw=f16/32x1x7 pad=3 ; name=encodec.in.f16.w
conv_forward x=f32/16x1x24000 w=f32/32x1x7 pad=3 ; name=encodec.in.f32.f
conv_backward_data dy=f32/16x32x24000 w=f32/32x1x7 dx=f32/16x1x24000 pad=3 ; name=encodec.in.f32.d
conv_backward_filter x=f32/16x1x24000 dy=f32/16x32x24000 dw=f32/32x1x7 pad=3 ; name=encodec.in.f32.w
conv_forward x=f16/16x128x1500 w=f16/256x128x10 stride=5 pad=3 ; name=encodec.down.f16.f
conv_backward_data dy=f16/16x256x300 w=f16/256x128x10 dx=f16/16x128x1500 stride=5 pad=3 ; name=encodec.down.f16.d
conv_backward_filter x=f16/16x128x1500 dy=f16/16x256x300 dw=f16/256x128x10 stride=5 pad=3 ; name=encodec.down.f16.w
conv_forward x=f32/16x128x1500 w=f32/256x128x10 stride=5 pad=3 ; name=encodec.down.f32.f
conv_backward_data dy=f32/16x256x300 w=f32/256x128x10 dx=f32/16x128x1500 stride=5 pad=3 ; name=encodec.down.f32.d
conv_backward_filter x=f32/16x128x1500 dy=f32/16x256x300 dw=f32/256x128x10 stride=5 pad=3 ; name=encodec.down.f32.w
conv_forward x=f16/8x64x8000 w=f16/64x64x7 pad=27 dilation=9 ; name=soundstream.dil9.f16.f
conv_backward_data dy=f16/8x64x8000 w=f16/64x64x7 dx=f16/8x64x8000 pad=27 dilation=9 ; name=soundstream.dil9.f16.d
conv_backward_filter x=f16/8x64x8000 dy=f16/8x64x8000 dw=f16/64x64x7 pad=27 dilation=9 ; name=soundstream.dil9.f16.w
conv_forward x=bf16/8x64x8000/nhwc w=bf16/64x64x7/nhwc pad=27 dilation=9 ; name=soundstream.dil9.bf16n.f
conv_backward_data dy=bf16/8x64x8000/nhwc w=bf16/64x64x7/nhwc dx=bf16/8x64x8000/nhwc pad=27 dilation=9 ; name=soundstream.dil9.bf16n.d
conv_backward_filter x=bf16/8x64x8000/nhwc dy=bf16/8x64x8000/nhwc dw=bf16/64x64x7/nhwc pad=27 dilation=9 ; name=soundstream.dil9.bf16n.w
conv_forward x=f16/8x192x400 w=f16/384x192x5 pad=2 ; name=vits.flow.f16.f
conv_backward_data dy=f16/8x384x400 w=f16/384x192x5 dx=f16/8x192x400 pad=2 ; name=vits.flow.f16.d
conv_backward_filter x=f16/8x192x400 dy=f16/8x384x400 dw=f16/384x192x5 pad=2 ; name=vits.flow.f16.w
conv_forward x=f32/8x192x400 w=f32/384x192x5 pad=2 ; name=vits.flow.f32.f
conv_backward_data dy=f32/8x384x400 w=f32/384x192x5 dx=f32/8x192x400 pad=2 ; name=vits.flow.f32.d
conv_backward_filter x=f32/8x192x400 dy=f32/8x384x400 dw=f32/384x192x5 pad=2 ; name=vits.flow.f32.w
conv_forward x=f16/16x512x200 w=f16/512x512x5 pad=2 ; name=wavernn.dec.f16.f
conv_backward_data dy=f16/16x512x200 w=f16/512x512x5 dx=f16/16x512x200 pad=2 ; name=wavernn.dec.f16.d
conv_backward_filter x=f16/16x512x200 dy=f16/16x512x200 dw=f16/512x512x5 pad=2 ; name=wavernn.dec.f16.w
conv_forward x=f32/4x1x32000 w=f32/512x1x16 stride=8 ; name=convtasnet.in.f32.f
conv_backward_data dy=f32/4x512x3999 w=f32/512x1x16 dx=f32/4x1x32000 stride=8 ; name=convtasnet.in.f32.d
conv_backward_filter x=f32/4x1x32000 dy=f32/4x512x3999 dw=f32/512x1x16 stride=8 ; name=convtasnet.in.f32.w
conv_forward x=f16/4x1x32000 w=f16/512x1x16 stride=8 ; name=convtasnet.in.f16.f
conv_backward_data dy=f16/4x512x3999 w=f16/512x1x16 dx=f16/4x1x32000 stride=8 ; name=convtasnet.in.f16.d
conv_backward_filter x=f16/4x1x32000 dy=f16/4x512x3999 dw=f16/512x1x16 stride=8 ; name=convtasnet.in.f16.w
conv_forward x=f32/4x512x3999 w=f32/512x1x3 pad=8 dilation=8 groups=512 ; name=convtasnet.dw.f32.f
conv_backward_data dy=f32/4x512x3999 w=f32/512x1x3 dx=f32/4x512x3999 pad=8 dilation=8 groups=512 ; name=convtasnet.dw.f32.d
conv_backward_filter x=f32/4x512x3999 dy=f32/4x512x3999 dw=f32/512x1x3 pad=8 dilation=8 groups=512 ; name=convtasnet.dw.f32.w
conv_forward x=f16/4x512x3999 w=f16/512x1x3 pad=8 dilation=8 groups=512 ; name=convtasnet.dw.f16.f
conv_backward_data dy=f16/4x512x3999 w=f16/512x1x3 dx=f16/4x512x3999 pad=8 dilation=8 groups=512 ; name=convtasnet.dw.f16.d
conv_backward_filter x=f16/4x512x3999 dy=f16/4x512x3999 dw=f16/512x1x3 pad=8 dilation=8 groups=512 ; name=convtasnet.dw.f16.w
conv_forward x=f16/32x128x150 w=f16/128x1x13 pad=6 groups=128 ; name=matchbox.dw13.f16.f
conv_backward_data dy=f16/32x128x150 w=f16/128x1x13 dx=f16/32x128x150 pad=6 groups=128 ; name=matchbox.dw13.f16.d
conv_backward_filter x=f16/32x128x150 dy=f16/32x128x150 dw=f16/128x1x13 pad=6 groups=128 ; name=matchbox.dw13.f16.w
conv_forward x=f32/32x128x150 w=f32/128x1x13 pad=6 groups=128 ; name=matchbox.dw13.f32.f
conv_backward_data dy=f32/32x128x150 w=f32/128x1x13 dx=f32/32x128x150 pad=6 groups=128 ; name=matchbox.dw13.f32.d
conv_backward_filter x=f32/32x128x150 dy=f32/32x128x150 dw=f32/128x1x13 pad=6 groups=128 ; name=matchbox.dw13.f32.w
conv_forward x=f16/16x256x500 w=f16/256x1x33 pad=16 groups=256 ; name=quartz.dw33.f16.f
conv_backward_data dy=f16/16x256x500 w=f16/256x1x33 dx=f16/16x256x500 pad=16 groups=256 ; name=quartz.dw33.f16.d
conv_backward_filter x=f16/16x256x500 dy=f16/16x256x500 dw=f16/256x1x33 pad=16 groups=256 ; name=quartz.dw33.f16.w
conv_forward x=f32/32x25x1000 w=f32/25x25x7 pad=12 dilation=4 ; name=tcn.3.f32.f
conv_backward_data dy=f32/32x25x1000 w=f32/25x25x7 dx=f32/32x25x1000 pad=12 dilation=4 ; name=tcn.3.f32.d
conv_backward_filter x=f32/32x25x1000 dy=f32/32x25x1000 dw=f32/25x25x7 pad=12 dilation=4 ; name=tcn.3.f32.w
conv_forward x=f16/32x25x1000 w=f16/25x25x7 pad=12 dilation=4 ; name=tcn.3.f16.f
conv_backward_data dy=f16/32x25x1000 w=f16/25x25x7 dx=f16/32x25x1000 pad=12 dilation=4 ; name=tcn.3.f16.d
conv_backward_filter x=f16/32x25x1000 dy=f16/32x25x1000 dw=f16/25x25x7 pad=12 dilation=4 ; name=tcn.3.f16.w
conv_forward x=f32/64x12x5000 w=f32/64x12x17 stride=2 pad=8 ; name=ecg.17.f32.f
conv_backward_data dy=f32/64x64x2500 w=f32/64x12x17 dx=f32/64x12x5000 stride=2 pad=8 ; name=ecg.17.f32.d
conv_backward_filter x=f32/64x12x5000 dy=f32/64x64x2500 dw=f32/64x12x17 stride=2 pad=8 ; name=ecg.17.f32.w
conv_forward x=bf16/64x12x5000 w=bf16/64x12x17 stride=2 pad=8 ; name=ecg.17.bf16.f
conv_backward_data dy=bf16/64x64x2500 w=bf16/64x12x17 dx=bf16/64x12x5000 stride=2 pad=8 ; name=ecg.17.bf16.d
conv_backward_filter x=bf16/64x12x5000 dy=bf16/64x64x2500 dw=bf16/64x12x17 stride=2 pad=8 ; name=ecg.17.bf16.w
conv_forward x=f16/8x256x48x48 w=f16/256x256x3x3 pad=1 ; name=edsr.f16.f
conv_backward_data dy=f16/8x256x48x48 w=f16/256x256x3x3 dx=f16/8x256x48x48 pad=1 ; name=edsr.f16.d
conv_backward_filter x=f16/8x256x48x48 dy=f16/8x256x48x48 dw=f16/256x256x3x3 pad=1 ; name=edsr.f16.w
conv_forward x=f16/4x96x128x128 w=f16/32x96x3x3 pad=1 ; name=esrgan.rdb.f16.f
conv_backward_data dy=f16/4x32x128x128 w=f16/32x96x3x3 dx=f16/4x96x128x128 pad=1 ; name=esrgan.rdb.f16.d
conv_backward_filter x=f16/4x96x128x128 dy=f16/4x32x128x128 dw=f16/32x96x3x3 pad=1 ; name=esrgan.rdb.f16.w
conv_forward x=f32/4x96x128x128 w=f32/32x96x3x3 pad=1 ; name=esrgan.rdb.f32.f
conv_backward_data dy=f32/4x32x128x128 w=f32/32x96x3x3 dx=f32/4x96x128x128 pad=1 ; name=esrgan.rdb.f32.d
conv_backward_filter x=f32/4x96x128x128 dy=f32/4x32x128x128 dw=f32/32x96x3x3 pad=1 ; name=esrgan.rdb.f32.w
conv_forward x=f16/4x64x192x192 w=f16/3x64x3x3 pad=1 ; name=rcan.tail.f16.f
conv_backward_data dy=f16/4x3x192x192 w=f16/3x64x3x3 dx=f16/4x64x192x192 pad=1 ; name=rcan.tail.f16.d
conv_backward_filter x=f16/4x64x192x192 dy=f16/4x3x192x192 dw=f16/3x64x3x3 pad=1 ; name=rcan.tail.f16.w
conv_forward x=f32/4x64x192x192 w=f32/3x64x3x3 pad=1 ; name=rcan.tail.f32.f
conv_backward_data dy=f32/4x3x192x192 w=f32/3x64x3x3 dx=f32/4x64x192x192 pad=1 ; name=rcan.tail.f32.d
conv_backward_filter x=f32/4x64x192x192 dy=f32/4x3x192x192 dw=f32/3x64x3x3 pad=1 ; name=rcan.tail.f32.w
conv_forward x=bf16/4x128x256x256 w=bf16/128x128x3x3 pad=1 ; name=stylegan.256.bf16.f
conv_backward_data dy=bf16/4x128x256x256 w=bf16/128x128x3x3 dx=bf16/4x128x256x256 pad=1 ; name=stylegan.256.bf16.d
conv_backward_filter x=bf16/4x128x256x256 dy=bf16/4x128x256x256 dw=bf16/128x128x3x3 pad=1 ; name=stylegan.256.bf16.w
conv_forward x=f16/2x3x262x262 w=f16/64x3x7x7 ; name=cyclegan.7x7.f16.f
conv_backward_data dy=f16/2x64x256x256 w=f16/64x3x7x7 dx=f16/2x3x262x262 ; name=cyclegan.7x7.f16.d
conv_backward_filter x=f16/2x3x262x262 dy=f16/2x64x256x256 dw=f16/64x3x7x7 ; name=cyclegan.7x7.f16.w
conv_forward x=f32/2x3x262x262 w=f32/64x3x7x7 ; name=cyclegan.7x7.f32.f
conv_backward_data dy=f32/2x64x256x256 w=f32/64x3x7x7 dx=f32/2x3x262x262 ; name=cyclegan.7x7.f32.d
conv_backward_filter x=f32/2x3x262x262 dy=f32/2x64x256x256 dw=f32/64x3x7x7 ; name=cyclegan.7x7.f32.w
conv_forward x=f16/8x64x128x128 w=f16/128x64x4x4 stride=2 pad=1 ; name=pix2pix.4x4.f16.f
conv_backward_data dy=f16/8x128x64x64 w=f16/128x64x4x4 dx=f16/8x64x128x128 stride=2 pad=1 ; name=pix2pix.4x4.f16.d
conv_backward_filter x=f16/8x64x128x128 dy=f16/8x128x64x64 dw=f16/128x64x4x4 stride=2 pad=1 ; name=pix2pix.4x4.f16.w
conv_forward x=f32/8x64x128x128/nhwc w=f32/128x64x4x4/nhwc stride=2 pad=1 ; name=pix2pix.4x4.f32n.f
conv_backward_data dy=f32/8x128x64x64/nhwc w=f32/128x64x4x4/nhwc dx=f32/8x64x128x128/nhwc stride=2 pad=1 ; name=pix2pix.4x4.f32n.d
conv_backward_filter x=f32/8x64x128x128/nhwc dy=f32/8x128x64x64/nhwc dw=f32/128x64x4x4/nhwc stride=2 pad=1 ; name=pix2pix.4x4.f32n.w
conv_forward x=f16/16x768x8x8 w=f16/1536x768x1x1 ; name=biggan.1x1.f16.f
conv_backward_data dy=f16/16x1536x8x8 w=f16/1536x768x1x1 dx=f16/16x768x8x8 ; name=biggan.1x1.f16.d
conv_backward_filter x=f16/16x768x8x8 dy=f16/16x1536x8x8 dw=f16/1536x768x1x1 ; name=biggan.1x1.f16.w
conv_forward x=f16/2x320x128x128 w=f16/320x320x3x3 pad=1 ; name=sdxl.320.f16.f
conv_backward_data dy=f16/2x320x128x128 w=f16/320x320x3x3 dx=f16/2x320x128x128 pad=1 ; name=sdxl.320.f16.d
conv_backward_filter x=f16/2x320x128x128 dy=f16/2x320x128x128 dw=f16/320x320x3x3 pad=1 ; name=sdxl.320.f16.w
conv_forward x=bf16/2x320x128x128/nhwc w=bf16/320x320x3x3/nhwc pad=1 ; name=sdxl.320.bf16n.f
conv_backward_data dy=bf16/2x320x128x128/nhwc w=bf16/320x320x3x3/nhwc dx=bf16/2x320x128x128/nhwc pad=1 ; name=sdxl.320.bf16n.d
conv_backward_filter x=bf16/2x320x128x128/nhwc dy=bf16/2x320x128x128/nhwc dw=bf16/320x320x3x3/nhwc pad=1 ; name=sdxl.320.bf16n.w
conv_forward x=f16/2x640x64x64/nhwc w=f16/640x640x3x3/nhwc stride=2 pad=1 ; name=sdxl.640d.f16n.f
conv_backward_data dy=f16/2x640x32x32/nhwc w=f16/640x640x3x3/nhwc dx=f16/2x640x64x64/nhwc stride=2 pad=1 ; name=sdxl.640d.f16n.d
conv_backward_filter x=f16/2x640x64x64/nhwc dy=f16/2x640x32x32/nhwc dw=f16/640x640x3x3/nhwc stride=2 pad=1 ; name=sdxl.640d.f16n.w
conv_forward x=bf16/2x16x128x128 w=bf16/1536x16x2x2 stride=2 ; name=sd3.patch.bf16.f
conv_backward_data dy=bf16/2x1536x64x64 w=bf16/1536x16x2x2 dx=bf16/2x16x128x128 stride=2 ; name=sd3.patch.bf16.d
conv_backward_filter x=bf16/2x16x128x128 dy=bf16/2x1536x64x64 dw=bf16/1536x16x2x2 stride=2 ; name=sd3.patch.bf16.w
conv_forward x=f16/2x16x128x128/nhwc w=f16/1536x16x2x2/nhwc stride=2 ; name=sd3.patch.f16n.f
conv_backward_data dy=f16/2x1536x64x64/nhwc w=f16/1536x16x2x2/nhwc dx=f16/2x16x128x128/nhwc stride=2 ; name=sd3.patch.f16n.d
conv_backward_filter x=f16/2x16x128x128/nhwc dy=f16/2x1536x64x64/nhwc dw=f16/1536x16x2x2/nhwc stride=2 ; name=sd3.patch.f16n.w
conv_forward x=f16/16x320x14x14/nhwc w=f16/320x1x7x7/nhwc pad=3 groups=320 ; name=convnextv2.dw7.f16n.f
conv_backward_data dy=f16/16x320x14x14/nhwc w=f16/320x1x7x7/nhwc dx=f16/16x320x14x14/nhwc pad=3 groups=320 ; name=convnextv2.dw7.f16n.d
conv_backward_filter x=f16/16x320x14x14/nhwc dy=f16/16x320x14x14/nhwc dw=f16/320x1x7x7/nhwc pad=3 groups=320 ; name=convnextv2.dw7.f16n.w
conv_forward x=f32/16x320x14x14 w=f32/320x1x7x7 pad=3 groups=320 ; name=convnextv2.dw7.f32.f
conv_backward_data dy=f32/16x320x14x14 w=f32/320x1x7x7 dx=f32/16x320x14x14 pad=3 groups=320 ; name=convnextv2.dw7.f32.d
conv_backward_filter x=f32/16x320x14x14 dy=f32/16x320x14x14 dw=f32/320x1x7x7 pad=3 groups=320 ; name=convnextv2.dw7.f32.w
conv_forward x=f16/16x192x28x28/nhwc w=f16/384x192x2x2/nhwc stride=2 ; name=convnext.down.f16n.f
conv_backward_data dy=f16/16x384x14x14/nhwc w=f16/384x192x2x2/nhwc dx=f16/16x192x28x28/nhwc stride=2 ; name=convnext.down.f16n.d
conv_backward_filter x=f16/16x192x28x28/nhwc dy=f16/16x384x14x14/nhwc dw=f16/384x192x2x2/nhwc stride=2 ; name=convnext.down.f16n.w
conv_forward x=bf16/16x192x28x28 w=bf16/384x192x2x2 stride=2 ; name=convnext.down.bf16.f
conv_backward_data dy=bf16/16x384x14x14 w=bf16/384x192x2x2 dx=bf16/16x192x28x28 stride=2 ; name=convnext.down.bf16.d
conv_backward_filter x=bf16/16x192x28x28 dy=bf16/16x384x14x14 dw=bf16/384x192x2x2 stride=2 ; name=convnext.down.bf16.w
conv_forward x=f16/8x128x56x56 w=f16/128x1x31x31 pad=15 groups=128 ; name=replk.dw31.f16.f
conv_backward_data dy=f16/8x128x56x56 w=f16/128x1x31x31 dx=f16/8x128x56x56 pad=15 groups=128 ; name=replk.dw31.f16.d
conv_backward_filter x=f16/8x128x56x56 dy=f16/8x128x56x56 dw=f16/128x1x31x31 pad=15 groups=128 ; name=replk.dw31.f16.w
conv_forward x=f16/16x168x28x28/nhwc w=f16/168x24x3x3/nhwc pad=1 groups=7 ; name=regnety.g24.f16n.f
conv_backward_data dy=f16/16x168x28x28/nhwc w=f16/168x24x3x3/nhwc dx=f16/16x168x28x28/nhwc pad=1 groups=7 ; name=regnety.g24.f16n.d
conv_backward_filter x=f16/16x168x28x28/nhwc dy=f16/16x168x28x28/nhwc dw=f16/168x24x3x3/nhwc pad=1 groups=7 ; name=regnety.g24.f16n.w
conv_forward x=f32/16x168x28x28 w=f32/168x24x3x3 pad=1 groups=7 ; name=regnety.g24.f32.f
conv_backward_data dy=f32/16x168x28x28 w=f32/168x24x3x3 dx=f32/16x168x28x28 pad=1 groups=7 ; name=regnety.g24.f32.d
conv_backward_filter x=f32/16x168x28x28 dy=f32/16x168x28x28 dw=f32/168x24x3x3 pad=1 groups=7 ; name=regnety.g24.f32.w
conv_forward x=f16/16x128x28x28 w=f16/256x64x3x3 pad=1 groups=2 ; name=resnest.g2.f16.f
conv_backward_data dy=f16/16x256x28x28 w=f16/256x64x3x3 dx=f16/16x128x28x28 pad=1 groups=2 ; name=resnest.g2.f16.d
conv_backward_filter x=f16/16x128x28x28 dy=f16/16x256x28x28 dw=f16/256x64x3x3 pad=1 groups=2 ; name=resnest.g2.f16.w
conv_forward x=f16/32x40x28x28 w=f16/40x1x3x3 pad=1 groups=40 ; name=ghost.dw.f16.f
conv_backward_data dy=f16/32x40x28x28 w=f16/40x1x3x3 dx=f16/32x40x28x28 pad=1 groups=40 ; name=ghost.dw.f16.d
conv_backward_filter x=f16/32x40x28x28 dy=f16/32x40x28x28 dw=f16/40x1x3x3 pad=1 groups=40 ; name=ghost.dw.f16.w
conv_forward x=bf16/32x40x28x28/nhwc w=bf16/40x1x3x3/nhwc pad=1 groups=40 ; name=ghost.dw.bf16n.f
conv_backward_data dy=bf16/32x40x28x28/nhwc w=bf16/40x1x3x3/nhwc dx=bf16/32x40x28x28/nhwc pad=1 groups=40 ; name=ghost.dw.bf16n.d
conv_backward_filter x=bf16/32x40x28x28/nhwc dy=bf16/32x40x28x28/nhwc dw=bf16/40x1x3x3/nhwc pad=1 groups=40 ; name=ghost.dw.bf16n.w
conv_forward x=f16/32x192x28x28/nhwc w=f16/192x1x5x5/nhwc stride=2 pad=2 groups=192 ; name=mnv4.dw5s2.f16n.f
conv_backward_data dy=f16/32x192x14x14/nhwc w=f16/192x1x5x5/nhwc dx=f16/32x192x28x28/nhwc stride=2 pad=2 groups=192 ; name=mnv4.dw5s2.f16n.d
conv_backward_filter x=f16/32x192x28x28/nhwc dy=f16/32x192x14x14/nhwc dw=f16/192x1x5x5/nhwc stride=2 pad=2 groups=192 ; name=mnv4.dw5s2.f16n.w
conv_forward x=f32/32x192x28x28 w=f32/192x1x5x5 stride=2 pad=2 groups=192 ; name=mnv4.dw5s2.f32.f
conv_backward_data dy=f32/32x192x14x14 w=f32/192x1x5x5 dx=f32/32x192x28x28 stride=2 pad=2 groups=192 ; name=mnv4.dw5s2.f32.d
conv_backward_filter x=f32/32x192x28x28 dy=f32/32x192x14x14 dw=f32/192x1x5x5 stride=2 pad=2 groups=192 ; name=mnv4.dw5s2.f32.w
conv_forward x=bf16/16x24x112x112 w=bf16/96x24x3x3 stride=2 pad=1 ; name=effv2.fused.bf16.f
conv_backward_data dy=bf16/16x96x56x56 w=bf16/96x24x3x3 dx=bf16/16x24x112x112 stride=2 pad=1 ; name=effv2.fused.bf16.d
conv_backward_filter x=bf16/16x24x112x112 dy=bf16/16x96x56x56 dw=bf16/96x24x3x3 stride=2 pad=1 ; name=effv2.fused.bf16.w
conv_forward x=f16/16x24x112x112/nhwc w=f16/96x24x3x3/nhwc stride=2 pad=1 ; name=effv2.fused.f16n.f
conv_backward_data dy=f16/16x96x56x56/nhwc w=f16/96x24x3x3/nhwc dx=f16/16x24x112x112/nhwc stride=2 pad=1 ; name=effv2.fused.f16n.d
conv_backward_filter x=f16/16x24x112x112/nhwc dy=f16/16x96x56x56/nhwc dw=f16/96x24x3x3/nhwc stride=2 pad=1 ; name=effv2.fused.f16n.w
conv_forward x=f16/64x116x28x28 w=f16/116x1x3x3 stride=2 pad=1 groups=116 ; name=shuffle2.dw.f16.f
conv_backward_data dy=f16/64x116x14x14 w=f16/116x1x3x3 dx=f16/64x116x28x28 stride=2 pad=1 groups=116 ; name=shuffle2.dw.f16.d
conv_backward_filter x=f16/64x116x28x28 dy=f16/64x116x14x14 dw=f16/116x1x3x3 stride=2 pad=1 groups=116 ; name=shuffle2.dw.f16.w
conv_forward x=f16/8x512x28x28 w=f16/512x16x3x3 pad=1 groups=32 ; name=resnext101.32x8.f16.f
conv_backward_data dy=f16/8x512x28x28 w=f16/512x16x3x3 dx=f16/8x512x28x28 pad=1 groups=32 ; name=resnext101.32x8.f16.d
conv_backward_filter x=f16/8x512x28x28 dy=f16/8x512x28x28 dw=f16/512x16x3x3 pad=1 groups=32 ; name=resnext101.32x8.f16.w
conv_forward x=f32/8x512x28x28/nhwc w=f32/512x16x3x3/nhwc pad=1 groups=32 ; name=resnext101.32x8.f32n.f
conv_backward_data dy=f32/8x512x28x28/nhwc w=f32/512x16x3x3/nhwc dx=f32/8x512x28x28/nhwc pad=1 groups=32 ; name=resnext101.32x8.f32n.d
conv_backward_filter x=f32/8x512x28x28/nhwc dy=f32/8x512x28x28/nhwc dw=f32/512x16x3x3/nhwc pad=1 groups=32 ; name=resnext101.32x8.f32n.w
conv_forward x=f16/16x192x17x17 w=f16/192x192x1x7 pad=0,3 ; name=inception.1x7.f16.f
conv_backward_data dy=f16/16x192x17x17 w=f16/192x192x1x7 dx=f16/16x192x17x17 pad=0,3 ; name=inception.1x7.f16.d
conv_backward_filter x=f16/16x192x17x17 dy=f16/16x192x17x17 dw=f16/192x192x1x7 pad=0,3 ; name=inception.1x7.f16.w
conv_forward x=f32/16x192x17x17 w=f32/192x192x1x7 pad=0,3 ; name=inception.1x7.f32.f
conv_backward_data dy=f32/16x192x17x17 w=f32/192x192x1x7 dx=f32/16x192x17x17 pad=0,3 ; name=inception.1x7.f32.d
conv_backward_filter x=f32/16x192x17x17 dy=f32/16x192x17x17 dw=f32/192x192x1x7 pad=0,3 ; name=inception.1x7.f32.w
conv_forward x=f16/16x512x13x13 w=f16/1024x512x3x3 pad=1 ; name=darknet.f16.f
conv_backward_data dy=f16/16x1024x13x13 w=f16/1024x512x3x3 dx=f16/16x512x13x13 pad=1 ; name=darknet.f16.d
conv_backward_filter x=f16/16x512x13x13 dy=f16/16x1024x13x13 dw=f16/1024x512x3x3 pad=1 ; name=darknet.f16.w
conv_forward x=f32/32x4x84x84 w=f32/32x4x8x8 stride=4 ; name=dqn.1.f32.f
conv_backward_data dy=f32/32x32x20x20 w=f32/32x4x8x8 dx=f32/32x4x84x84 stride=4 ; name=dqn.1.f32.d
conv_backward_filter x=f32/32x4x84x84 dy=f32/32x32x20x20 dw=f32/32x4x8x8 stride=4 ; name=dqn.1.f32.w
conv_forward x=f16/32x4x84x84 w=f16/32x4x8x8 stride=4 ; name=dqn.1.f16.f
conv_backward_data dy=f16/32x32x20x20 w=f16/32x4x8x8 dx=f16/32x4x84x84 stride=4 ; name=dqn.1.f16.d
conv_backward_filter x=f16/32x4x84x84 dy=f16/32x32x20x20 dw=f16/32x4x8x8 stride=4 ; name=dqn.1.f16.w
conv_forward x=f32/64x16x36x48 w=f32/32x16x3x3 pad=1 ; name=impala.f32.f
conv_backward_data dy=f32/64x32x36x48 w=f32/32x16x3x3 dx=f32/64x16x36x48 pad=1 ; name=impala.f32.d
conv_backward_filter x=f32/64x16x36x48 dy=f32/64x32x36x48 dw=f32/32x16x3x3 pad=1 ; name=impala.f32.w
conv_forward x=f16/64x256x19x19 w=f16/256x256x3x3 pad=1 ; name=alphazero.f16.f
conv_backward_data dy=f16/64x256x19x19 w=f16/256x256x3x3 dx=f16/64x256x19x19 pad=1 ; name=alphazero.f16.d
conv_backward_filter x=f16/64x256x19x19 dy=f16/64x256x19x19 dw=f16/256x256x3x3 pad=1 ; name=alphazero.f16.w
conv_forward x=f32/64x256x19x19 w=f32/256x256x3x3 pad=1 ; name=alphazero.f32.f
conv_backward_data dy=f32/64x256x19x19 w=f32/256x256x3x3 dx=f32/64x256x19x19 pad=1 ; name=alphazero.f32.d
conv_backward_filter x=f32/64x256x19x19 dy=f32/64x256x19x19 dw=f32/256x256x3x3 pad=1 ; name=alphazero.f32.w
conv_forward x=f32/256x6x14x14 w=f32/16x6x5x5 ; name=lenet.f32.f
conv_backward_data dy=f32/256x16x10x10 w=f32/16x6x5x5 dx=f32/256x6x14x14 ; name=lenet.f32.d
conv_backward_filter x=f32/256x6x14x14 dy=f32/256x16x10x10 dw=f32/16x6x5x5 ; name=lenet.f32.w
conv_forward x=f16/128x160x32x32 w=f16/160x160x3x3 pad=1 ; name=cifar.wrn.f16.f
conv_backward_data dy=f16/128x160x32x32 w=f16/160x160x3x3 dx=f16/128x160x32x32 pad=1 ; name=cifar.wrn.f16.d
conv_backward_filter x=f16/128x160x32x32 dy=f16/128x160x32x32 dw=f16/160x160x3x3 pad=1 ; name=cifar.wrn.f16.w
conv_forward x=f16/64x132x32x32 w=f16/12x132x3x3 pad=1 ; name=cifar.dense.f16.f
conv_backward_data dy=f16/64x12x32x32 w=f16/12x132x3x3 dx=f16/64x132x32x32 pad=1 ; name=cifar.dense.f16.d
conv_backward_filter x=f16/64x132x32x32 dy=f16/64x12x32x32 dw=f16/12x132x3x3 pad=1 ; name=cifar.dense.f16.w
conv_forward x=f32/64x132x32x32 w=f32/12x132x3x3 pad=1 ; name=cifar.dense.f32.f
conv_backward_data dy=f32/64x12x32x32 w=f32/12x132x3x3 dx=f32/64x132x32x32 pad=1 ; name=cifar.dense.f32.d
conv_backward_filter x=f32/64x132x32x32 dy=f32/64x12x32x32 dw=f32/12x132x3x3 pad=1 ; name=cifar.dense.f32.w
conv_forward x=bf16/8x1x128x1024 w=bf16/512x1x16x16 stride=16 ; name=beats.patch.bf16.f
conv_backward_data dy=bf16/8x512x8x64 w=bf16/512x1x16x16 dx=bf16/8x1x128x1024 stride=16 ; name=beats.patch.bf16.d
conv_backward_filter x=bf16/8x1x128x1024 dy=bf16/8x512x8x64 dw=bf16/512x1x16x16 stride=16 ; name=beats.patch.bf16.w
conv_forward x=f32/8x1x128x1024 w=f32/512x1x16x16 stride=16 ; name=beats.patch.f32.f
conv_backward_data dy=f32/8x512x8x64 w=f32/512x1x16x16 dx=f32/8x1x128x1024 stride=16 ; name=beats.patch.f32.d
conv_backward_filter x=f32/8x1x128x1024 dy=f32/8x512x8x64 dw=f32/512x1x16x16 stride=16 ; name=beats.patch.f32.w
conv_forward x=f16/32x512x2x26 w=f16/512x512x2x2 ; name=crnn.last.f16.f
conv_backward_data dy=f16/32x512x1x25 w=f16/512x512x2x2 dx=f16/32x512x2x26 ; name=crnn.last.f16.d
conv_backward_filter x=f16/32x512x2x26 dy=f16/32x512x1x25 dw=f16/512x512x2x2 ; name=crnn.last.f16.w
conv_forward x=f32/50x300x1x56 w=f32/100x300x1x5 ; name=text.kim.f32.f
conv_backward_data dy=f32/50x100x1x52 w=f32/100x300x1x5 dx=f32/50x300x1x56 ; name=text.kim.f32.d
conv_backward_filter x=f32/50x300x1x56 dy=f32/50x100x1x52 dw=f32/100x300x1x5 ; name=text.kim.f32.w
