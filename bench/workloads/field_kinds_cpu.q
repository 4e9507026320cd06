# Layers of field_kinds.q in f32, one image or sound or a few, in three directions. For a CPU, beside oneDNN.
conv_forward x=f32/1x3x8x112x112 w=f32/64x3x3x7x7 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f
conv_backward_data dy=f32/1x64x8x56x56 w=f32/64x3x3x7x7 dx=f32/1x3x8x112x112 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.d
conv_backward_filter x=f32/1x3x8x112x112 dy=f32/1x64x8x56x56 dw=f32/64x3x3x7x7 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.w
conv_forward x=f32/1x64x8x28x28 w=f32/64x64x3x3x3 pad=1 ; name=r3d.l1.f
conv_backward_data dy=f32/1x64x8x28x28 w=f32/64x64x3x3x3 dx=f32/1x64x8x28x28 pad=1 ; name=r3d.l1.d
conv_backward_filter x=f32/1x64x8x28x28 dy=f32/1x64x8x28x28 dw=f32/64x64x3x3x3 pad=1 ; name=r3d.l1.w
conv_forward x=f32/1x64x8x28x28 w=f32/128x64x3x3x3 stride=2 pad=1 ; name=r3d.l2.f
conv_backward_data dy=f32/1x128x4x14x14 w=f32/128x64x3x3x3 dx=f32/1x64x8x28x28 stride=2 pad=1 ; name=r3d.l2.d
conv_backward_filter x=f32/1x64x8x28x28 dy=f32/1x128x4x14x14 dw=f32/128x64x3x3x3 stride=2 pad=1 ; name=r3d.l2.w
conv_forward x=f32/1x256x4x14x14/nhwc w=f32/512x256x3x3x3/nhwc stride=2 pad=1 ; name=r3d.l4.f
conv_backward_data dy=f32/1x512x2x7x7/nhwc w=f32/512x256x3x3x3/nhwc dx=f32/1x256x4x14x14/nhwc stride=2 pad=1 ; name=r3d.l4.d
conv_backward_filter x=f32/1x256x4x14x14/nhwc dy=f32/1x512x2x7x7/nhwc dw=f32/512x256x3x3x3/nhwc stride=2 pad=1 ; name=r3d.l4.w
conv_forward x=f32/1x64x8x28x28 w=f32/144x64x1x3x3 pad=0,1,1 ; name=r2p1.s.f
conv_backward_data dy=f32/1x144x8x28x28 w=f32/144x64x1x3x3 dx=f32/1x64x8x28x28 pad=0,1,1 ; name=r2p1.s.d
conv_backward_filter x=f32/1x64x8x28x28 dy=f32/1x144x8x28x28 dw=f32/144x64x1x3x3 pad=0,1,1 ; name=r2p1.s.w
conv_forward x=f32/1x144x8x28x28 w=f32/64x144x3x1x1 pad=1,0,0 ; name=r2p1.t.f
conv_backward_data dy=f32/1x64x8x28x28 w=f32/64x144x3x1x1 dx=f32/1x144x8x28x28 pad=1,0,0 ; name=r2p1.t.d
conv_backward_filter x=f32/1x144x8x28x28 dy=f32/1x64x8x28x28 dw=f32/64x144x3x1x1 pad=1,0,0 ; name=r2p1.t.w
conv_forward x=f32/1x1x48x48x48 w=f32/32x1x3x3x3 pad=1 ; name=unet3d.1.f
conv_backward_data dy=f32/1x32x48x48x48 w=f32/32x1x3x3x3 dx=f32/1x1x48x48x48 pad=1 ; name=unet3d.1.d
conv_backward_filter x=f32/1x1x48x48x48 dy=f32/1x32x48x48x48 dw=f32/32x1x3x3x3 pad=1 ; name=unet3d.1.w
conv_forward x=f32/1x32x32x32x32 w=f32/64x32x3x3x3 pad=1 ; name=unet3d.2.f
conv_backward_data dy=f32/1x64x32x32x32 w=f32/64x32x3x3x3 dx=f32/1x32x32x32x32 pad=1 ; name=unet3d.2.d
conv_backward_filter x=f32/1x32x32x32x32 dy=f32/1x64x32x32x32 dw=f32/64x32x3x3x3 pad=1 ; name=unet3d.2.w
conv_forward x=f32/1x64x16x16x16/nhwc w=f32/128x64x3x3x3/nhwc pad=1 ; name=unet3d.3.f
conv_backward_data dy=f32/1x128x16x16x16/nhwc w=f32/128x64x3x3x3/nhwc dx=f32/1x64x16x16x16/nhwc pad=1 ; name=unet3d.3.d
conv_backward_filter x=f32/1x64x16x16x16/nhwc dy=f32/1x128x16x16x16/nhwc dw=f32/128x64x3x3x3/nhwc pad=1 ; name=unet3d.3.w
conv_forward x=f32/1x32x32x32x32 w=f32/128x32x2x2x2 stride=2 ; name=unet3d.up.f
conv_backward_data dy=f32/1x128x16x16x16 w=f32/128x32x2x2x2 dx=f32/1x32x32x32x32 stride=2 ; name=unet3d.up.d
conv_backward_filter x=f32/1x32x32x32x32 dy=f32/1x128x16x16x16 dw=f32/128x32x2x2x2 stride=2 ; name=unet3d.up.w
conv_forward x=f32/1x3x16x112x112 w=f32/8x3x5x7x7 stride=1,2,2 pad=2,3,3 ; name=fast.stem.f
conv_backward_data dy=f32/1x8x16x56x56 w=f32/8x3x5x7x7 dx=f32/1x3x16x112x112 stride=1,2,2 pad=2,3,3 ; name=fast.stem.d
conv_backward_filter x=f32/1x3x16x112x112 dy=f32/1x8x16x56x56 dw=f32/8x3x5x7x7 stride=1,2,2 pad=2,3,3 ; name=fast.stem.w
conv_forward x=f32/1x192x8x28x28 w=f32/64x192x1x1x1  ; name=i3d.1x1.f
conv_backward_data dy=f32/1x64x8x28x28 w=f32/64x192x1x1x1 dx=f32/1x192x8x28x28  ; name=i3d.1x1.d
conv_backward_filter x=f32/1x192x8x28x28 dy=f32/1x64x8x28x28 dw=f32/64x192x1x1x1  ; name=i3d.1x1.w
conv_forward x=f32/1x3x8x224x224 w=f32/768x3x2x16x16 stride=2,16,16 ; name=mae.patch.f
conv_backward_data dy=f32/1x768x4x14x14 w=f32/768x3x2x16x16 dx=f32/1x3x8x224x224 stride=2,16,16 ; name=mae.patch.d
conv_backward_filter x=f32/1x3x8x224x224 dy=f32/1x768x4x14x14 dw=f32/768x3x2x16x16 stride=2,16,16 ; name=mae.patch.w
conv_forward x=f32/1x1x32000 w=f32/512x1x10 stride=5 ; name=w2v.1.f
conv_backward_data dy=f32/1x512x6399 w=f32/512x1x10 dx=f32/1x1x32000 stride=5 ; name=w2v.1.d
conv_backward_filter x=f32/1x1x32000 dy=f32/1x512x6399 dw=f32/512x1x10 stride=5 ; name=w2v.1.w
conv_forward x=f32/1x512x1599 w=f32/512x512x3 stride=2 ; name=w2v.2.f
conv_backward_data dy=f32/1x512x799 w=f32/512x512x3 dx=f32/1x512x1599 stride=2 ; name=w2v.2.d
conv_backward_filter x=f32/1x512x1599 dy=f32/1x512x799 dw=f32/512x512x3 stride=2 ; name=w2v.2.w
conv_forward x=f32/1x768x199 w=f32/768x48x128 pad=64 groups=16 ; name=w2v.pos.f
conv_backward_data dy=f32/1x768x200 w=f32/768x48x128 dx=f32/1x768x199 pad=64 groups=16 ; name=w2v.pos.d
conv_backward_filter x=f32/1x768x199 dy=f32/1x768x200 dw=f32/768x48x128 pad=64 groups=16 ; name=w2v.pos.w
conv_forward x=f32/1x256x256 w=f32/512x256x16 stride=8 pad=4 ; name=hifi.up.f
conv_backward_data dy=f32/1x512x32 w=f32/512x256x16 dx=f32/1x256x256 stride=8 pad=4 ; name=hifi.up.d
conv_backward_filter x=f32/1x256x256 dy=f32/1x512x32 dw=f32/512x256x16 stride=8 pad=4 ; name=hifi.up.w
conv_forward x=f32/1x256x256 w=f32/256x256x11 dilation=5 pad=25 ; name=hifi.r1.f
conv_backward_data dy=f32/1x256x256 w=f32/256x256x11 dx=f32/1x256x256 dilation=5 pad=25 ; name=hifi.r1.d
conv_backward_filter x=f32/1x256x256 dy=f32/1x256x256 dw=f32/256x256x11 dilation=5 pad=25 ; name=hifi.r1.w
conv_forward x=f32/1x32x8192 w=f32/32x32x11 dilation=5 pad=25 ; name=hifi.r3.f
conv_backward_data dy=f32/1x32x8192 w=f32/32x32x11 dx=f32/1x32x8192 dilation=5 pad=25 ; name=hifi.r3.d
conv_backward_filter x=f32/1x32x8192 dy=f32/1x32x8192 dw=f32/32x32x11 dilation=5 pad=25 ; name=hifi.r3.w
conv_forward x=f32/1x32x8192 w=f32/1x32x7 pad=3 ; name=hifi.post.f
conv_backward_data dy=f32/1x1x8192 w=f32/1x32x7 dx=f32/1x32x8192 pad=3 ; name=hifi.post.d
conv_backward_filter x=f32/1x32x8192 dy=f32/1x1x8192 dw=f32/1x32x7 pad=3 ; name=hifi.post.w
conv_forward x=f32/1x64x8000 w=f32/128x64x2 dilation=512 pad=256 ; name=wavenet.f
conv_backward_data dy=f32/1x128x8000 w=f32/128x64x2 dx=f32/1x64x8000 dilation=512 pad=256 ; name=wavenet.d
conv_backward_filter x=f32/1x64x8000 dy=f32/1x128x8000 dw=f32/128x64x2 dilation=512 pad=256 ; name=wavenet.w
conv_forward x=f32/1x80x1500 w=f32/384x80x3 pad=1 ; name=whisper.1.f
conv_backward_data dy=f32/1x384x1500 w=f32/384x80x3 dx=f32/1x80x1500 pad=1 ; name=whisper.1.d
conv_backward_filter x=f32/1x80x1500 dy=f32/1x384x1500 dw=f32/384x80x3 pad=1 ; name=whisper.1.w
conv_forward x=f32/1x384x1500 w=f32/384x384x3 stride=2 pad=1 ; name=whisper.2.f
conv_backward_data dy=f32/1x384x750 w=f32/384x384x3 dx=f32/1x384x1500 stride=2 pad=1 ; name=whisper.2.d
conv_backward_filter x=f32/1x384x1500 dy=f32/1x384x750 dw=f32/384x384x3 stride=2 pad=1 ; name=whisper.2.w
conv_forward x=f32/1x256x400 w=f32/256x1x31 pad=15 groups=256 ; name=conformer.f
conv_backward_data dy=f32/1x256x400 w=f32/256x1x31 dx=f32/1x256x400 pad=15 groups=256 ; name=conformer.d
conv_backward_filter x=f32/1x256x400 dy=f32/1x256x400 dw=f32/256x1x31 pad=15 groups=256 ; name=conformer.w
conv_forward x=f32/1x128x300 w=f32/128x128x3 dilation=2 pad=2 ; name=ecapa.f
conv_backward_data dy=f32/1x128x300 w=f32/128x128x3 dx=f32/1x128x300 dilation=2 pad=2 ; name=ecapa.d
conv_backward_filter x=f32/1x128x300 dy=f32/1x128x300 dw=f32/128x128x3 dilation=2 pad=2 ; name=ecapa.w
conv_forward x=f32/1x512x28x28 w=f32/256x512x3x3 dilation=12 pad=12 ; name=deeplab.f
conv_backward_data dy=f32/1x256x28x28 w=f32/256x512x3x3 dx=f32/1x512x28x28 dilation=12 pad=12 ; name=deeplab.d
conv_backward_filter x=f32/1x512x28x28 dy=f32/1x256x28x28 dw=f32/256x512x3x3 dilation=12 pad=12 ; name=deeplab.w
conv_forward x=f32/4x256x16x16 w=f32/512x256x4x4 stride=2 pad=1 ; name=dcgan.f
conv_backward_data dy=f32/4x512x8x8 w=f32/512x256x4x4 dx=f32/4x256x16x16 stride=2 pad=1 ; name=dcgan.d
conv_backward_filter x=f32/4x256x16x16 dy=f32/4x512x8x8 dw=f32/512x256x4x4 stride=2 pad=1 ; name=dcgan.w
conv_forward x=f32/1x4x64x64 w=f32/320x4x3x3 pad=1 ; name=sd.in.f
conv_backward_data dy=f32/1x320x64x64 w=f32/320x4x3x3 dx=f32/1x4x64x64 pad=1 ; name=sd.in.d
conv_backward_filter x=f32/1x4x64x64 dy=f32/1x320x64x64 dw=f32/320x4x3x3 pad=1 ; name=sd.in.w
conv_forward x=f32/1x320x32x32 w=f32/320x320x3x3 pad=1 ; name=sd.mid.f
conv_backward_data dy=f32/1x320x32x32 w=f32/320x320x3x3 dx=f32/1x320x32x32 pad=1 ; name=sd.mid.d
conv_backward_filter x=f32/1x320x32x32 dy=f32/1x320x32x32 dw=f32/320x320x3x3 pad=1 ; name=sd.mid.w
conv_forward x=f32/1x320x64x64 w=f32/4x320x3x3 pad=1 ; name=sd.out.f
conv_backward_data dy=f32/1x4x64x64 w=f32/4x320x3x3 dx=f32/1x320x64x64 pad=1 ; name=sd.out.d
conv_backward_filter x=f32/1x320x64x64 dy=f32/1x4x64x64 dw=f32/4x320x3x3 pad=1 ; name=sd.out.w
conv_forward x=f32/1x128x128x128 w=f32/3x128x3x3 pad=1 ; name=vae.out.f
conv_backward_data dy=f32/1x3x128x128 w=f32/3x128x3x3 dx=f32/1x128x128x128 pad=1 ; name=vae.out.d
conv_backward_filter x=f32/1x128x128x128 dy=f32/1x3x128x128 dw=f32/3x128x3x3 pad=1 ; name=vae.out.w
conv_forward x=f32/1x64x96x96 w=f32/3x64x9x9 pad=4 ; name=srgan.f
conv_backward_data dy=f32/1x3x96x96 w=f32/3x64x9x9 dx=f32/1x64x96x96 pad=4 ; name=srgan.d
conv_backward_filter x=f32/1x64x96x96 dy=f32/1x3x96x96 dw=f32/3x64x9x9 pad=4 ; name=srgan.w
conv_forward x=f32/16x1x28x28 w=f32/32x1x3x3  ; name=mnist.f
conv_backward_data dy=f32/16x32x26x26 w=f32/32x1x3x3 dx=f32/16x1x28x28  ; name=mnist.d
conv_backward_filter x=f32/16x1x28x28 dy=f32/16x32x26x26 dw=f32/32x1x3x3  ; name=mnist.w
conv_forward x=f32/4x1x32x100 w=f32/64x1x3x3 pad=1 ; name=crnn.f
conv_backward_data dy=f32/4x64x32x100 w=f32/64x1x3x3 dx=f32/4x1x32x100 pad=1 ; name=crnn.d
conv_backward_filter x=f32/4x1x32x100 dy=f32/4x64x32x100 dw=f32/64x1x3x3 pad=1 ; name=crnn.w
conv_forward x=f32/1x1x128x1024 w=f32/768x1x16x16 stride=10 ; name=ast.f
conv_backward_data dy=f32/1x768x12x101 w=f32/768x1x16x16 dx=f32/1x1x128x1024 stride=10 ; name=ast.d
conv_backward_filter x=f32/1x1x128x1024 dy=f32/1x768x12x101 dw=f32/768x1x16x16 stride=10 ; name=ast.w
conv_forward x=f32/1x3x320x320 w=f32/48x3x6x6 stride=2 pad=2 ; name=yolo.f
conv_backward_data dy=f32/1x48x160x160 w=f32/48x3x6x6 dx=f32/1x3x320x320 stride=2 pad=2 ; name=yolo.d
conv_backward_filter x=f32/1x3x320x320 dy=f32/1x48x160x160 dw=f32/48x3x6x6 stride=2 pad=2 ; name=yolo.w
conv_forward x=f32/1x3x224x224 w=f32/768x3x32x32 stride=32 ; name=vit.32.f
conv_backward_data dy=f32/1x768x7x7 w=f32/768x3x32x32 dx=f32/1x3x224x224 stride=32 ; name=vit.32.d
conv_backward_filter x=f32/1x3x224x224 dy=f32/1x768x7x7 dw=f32/768x3x32x32 stride=32 ; name=vit.32.w
conv_forward x=f32/1x3x224x224/nhwc w=f32/64x3x7x7/nhwc stride=2 pad=3 ; name=stn.f
conv_backward_data dy=f32/1x64x112x112/nhwc w=f32/64x3x7x7/nhwc dx=f32/1x3x224x224/nhwc stride=2 pad=3 ; name=stn.d
conv_backward_filter x=f32/1x3x224x224/nhwc dy=f32/1x64x112x112/nhwc dw=f32/64x3x7x7/nhwc stride=2 pad=3 ; name=stn.w
