# Layers of kinds that field_directions.q has few of, in three directions: volumes (video, medicine), sound (codecs, speech, vocoders), generators
# (diffusion, super-resolution, transposed), first layers of one and three channels, patches. Batches as in use; NCHW, some channels last.
conv_forward x=f16/8x3x16x112x112 w=f16/64x3x3x7x7 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f16.f
conv_backward_data dy=f16/8x64x16x56x56 w=f16/64x3x3x7x7 dx=f16/8x3x16x112x112 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f16.d
conv_backward_filter x=f16/8x3x16x112x112 dy=f16/8x64x16x56x56 dw=f16/64x3x3x7x7 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f16.w
conv_forward x=f16/8x3x16x112x112/nhwc w=f16/64x3x3x7x7/nhwc stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f16n.f
conv_backward_data dy=f16/8x64x16x56x56/nhwc w=f16/64x3x3x7x7/nhwc dx=f16/8x3x16x112x112/nhwc stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f16n.d
conv_backward_filter x=f16/8x3x16x112x112/nhwc dy=f16/8x64x16x56x56/nhwc dw=f16/64x3x3x7x7/nhwc stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f16n.w
conv_forward x=f32/8x3x16x112x112 w=f32/64x3x3x7x7 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f32.f
conv_backward_data dy=f32/8x64x16x56x56 w=f32/64x3x3x7x7 dx=f32/8x3x16x112x112 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f32.d
conv_backward_filter x=f32/8x3x16x112x112 dy=f32/8x64x16x56x56 dw=f32/64x3x3x7x7 stride=1,2,2 pad=1,3,3 ; name=r3d.stem.f32.w
conv_forward x=f16/4x64x16x56x56 w=f16/64x64x3x3x3 pad=1 ; name=r3d.l1.f16.f
conv_backward_data dy=f16/4x64x16x56x56 w=f16/64x64x3x3x3 dx=f16/4x64x16x56x56 pad=1 ; name=r3d.l1.f16.d
conv_backward_filter x=f16/4x64x16x56x56 dy=f16/4x64x16x56x56 dw=f16/64x64x3x3x3 pad=1 ; name=r3d.l1.f16.w
conv_forward x=f16/4x64x16x56x56/nhwc w=f16/64x64x3x3x3/nhwc pad=1 ; name=r3d.l1.f16n.f
conv_backward_data dy=f16/4x64x16x56x56/nhwc w=f16/64x64x3x3x3/nhwc dx=f16/4x64x16x56x56/nhwc pad=1 ; name=r3d.l1.f16n.d
conv_backward_filter x=f16/4x64x16x56x56/nhwc dy=f16/4x64x16x56x56/nhwc dw=f16/64x64x3x3x3/nhwc pad=1 ; name=r3d.l1.f16n.w
conv_forward x=f32/4x64x16x56x56 w=f32/64x64x3x3x3 pad=1 ; name=r3d.l1.f32.f
conv_backward_data dy=f32/4x64x16x56x56 w=f32/64x64x3x3x3 dx=f32/4x64x16x56x56 pad=1 ; name=r3d.l1.f32.d
conv_backward_filter x=f32/4x64x16x56x56 dy=f32/4x64x16x56x56 dw=f32/64x64x3x3x3 pad=1 ; name=r3d.l1.f32.w
conv_forward x=f16/4x64x16x56x56 w=f16/128x64x3x3x3 stride=2 pad=1 ; name=r3d.l2.f16.f
conv_backward_data dy=f16/4x128x8x28x28 w=f16/128x64x3x3x3 dx=f16/4x64x16x56x56 stride=2 pad=1 ; name=r3d.l2.f16.d
conv_backward_filter x=f16/4x64x16x56x56 dy=f16/4x128x8x28x28 dw=f16/128x64x3x3x3 stride=2 pad=1 ; name=r3d.l2.f16.w
conv_forward x=f32/4x64x16x56x56 w=f32/128x64x3x3x3 stride=2 pad=1 ; name=r3d.l2.f32.f
conv_backward_data dy=f32/4x128x8x28x28 w=f32/128x64x3x3x3 dx=f32/4x64x16x56x56 stride=2 pad=1 ; name=r3d.l2.f32.d
conv_backward_filter x=f32/4x64x16x56x56 dy=f32/4x128x8x28x28 dw=f32/128x64x3x3x3 stride=2 pad=1 ; name=r3d.l2.f32.w
conv_forward x=bf16/8x256x4x14x14 w=bf16/512x256x3x3x3 stride=2 pad=1 ; name=r3d.l4.bf16.f
conv_backward_data dy=bf16/8x512x2x7x7 w=bf16/512x256x3x3x3 dx=bf16/8x256x4x14x14 stride=2 pad=1 ; name=r3d.l4.bf16.d
conv_backward_filter x=bf16/8x256x4x14x14 dy=bf16/8x512x2x7x7 dw=bf16/512x256x3x3x3 stride=2 pad=1 ; name=r3d.l4.bf16.w
conv_forward x=f32/8x256x4x14x14/nhwc w=f32/512x256x3x3x3/nhwc stride=2 pad=1 ; name=r3d.l4.f32n.f
conv_backward_data dy=f32/8x512x2x7x7/nhwc w=f32/512x256x3x3x3/nhwc dx=f32/8x256x4x14x14/nhwc stride=2 pad=1 ; name=r3d.l4.f32n.d
conv_backward_filter x=f32/8x256x4x14x14/nhwc dy=f32/8x512x2x7x7/nhwc dw=f32/512x256x3x3x3/nhwc stride=2 pad=1 ; name=r3d.l4.f32n.w
conv_forward x=f16/4x64x16x56x56 w=f16/144x64x1x3x3 pad=0,1,1 ; name=r2p1.s.f16.f
conv_backward_data dy=f16/4x144x16x56x56 w=f16/144x64x1x3x3 dx=f16/4x64x16x56x56 pad=0,1,1 ; name=r2p1.s.f16.d
conv_backward_filter x=f16/4x64x16x56x56 dy=f16/4x144x16x56x56 dw=f16/144x64x1x3x3 pad=0,1,1 ; name=r2p1.s.f16.w
conv_forward x=f32/4x64x16x56x56 w=f32/144x64x1x3x3 pad=0,1,1 ; name=r2p1.s.f32.f
conv_backward_data dy=f32/4x144x16x56x56 w=f32/144x64x1x3x3 dx=f32/4x64x16x56x56 pad=0,1,1 ; name=r2p1.s.f32.d
conv_backward_filter x=f32/4x64x16x56x56 dy=f32/4x144x16x56x56 dw=f32/144x64x1x3x3 pad=0,1,1 ; name=r2p1.s.f32.w
conv_forward x=f16/4x144x16x56x56 w=f16/64x144x3x1x1 pad=1,0,0 ; name=r2p1.t.f16.f
conv_backward_data dy=f16/4x64x16x56x56 w=f16/64x144x3x1x1 dx=f16/4x144x16x56x56 pad=1,0,0 ; name=r2p1.t.f16.d
conv_backward_filter x=f16/4x144x16x56x56 dy=f16/4x64x16x56x56 dw=f16/64x144x3x1x1 pad=1,0,0 ; name=r2p1.t.f16.w
conv_forward x=f32/4x144x16x56x56 w=f32/64x144x3x1x1 pad=1,0,0 ; name=r2p1.t.f32.f
conv_backward_data dy=f32/4x64x16x56x56 w=f32/64x144x3x1x1 dx=f32/4x144x16x56x56 pad=1,0,0 ; name=r2p1.t.f32.d
conv_backward_filter x=f32/4x144x16x56x56 dy=f32/4x64x16x56x56 dw=f32/64x144x3x1x1 pad=1,0,0 ; name=r2p1.t.f32.w
conv_forward x=f16/1x1x96x96x96 w=f16/32x1x3x3x3 pad=1 ; name=unet3d.1.f16.f
conv_backward_data dy=f16/1x32x96x96x96 w=f16/32x1x3x3x3 dx=f16/1x1x96x96x96 pad=1 ; name=unet3d.1.f16.d
conv_backward_filter x=f16/1x1x96x96x96 dy=f16/1x32x96x96x96 dw=f16/32x1x3x3x3 pad=1 ; name=unet3d.1.f16.w
conv_forward x=f32/1x1x96x96x96 w=f32/32x1x3x3x3 pad=1 ; name=unet3d.1.f32.f
conv_backward_data dy=f32/1x32x96x96x96 w=f32/32x1x3x3x3 dx=f32/1x1x96x96x96 pad=1 ; name=unet3d.1.f32.d
conv_backward_filter x=f32/1x1x96x96x96 dy=f32/1x32x96x96x96 dw=f32/32x1x3x3x3 pad=1 ; name=unet3d.1.f32.w
conv_forward x=f16/1x32x96x96x96 w=f16/64x32x3x3x3 pad=1 ; name=unet3d.2.f16.f
conv_backward_data dy=f16/1x64x96x96x96 w=f16/64x32x3x3x3 dx=f16/1x32x96x96x96 pad=1 ; name=unet3d.2.f16.d
conv_backward_filter x=f16/1x32x96x96x96 dy=f16/1x64x96x96x96 dw=f16/64x32x3x3x3 pad=1 ; name=unet3d.2.f16.w
conv_forward x=f32/1x32x96x96x96 w=f32/64x32x3x3x3 pad=1 ; name=unet3d.2.f32.f
conv_backward_data dy=f32/1x64x96x96x96 w=f32/64x32x3x3x3 dx=f32/1x32x96x96x96 pad=1 ; name=unet3d.2.f32.d
conv_backward_filter x=f32/1x32x96x96x96 dy=f32/1x64x96x96x96 dw=f32/64x32x3x3x3 pad=1 ; name=unet3d.2.f32.w
conv_forward x=bf16/2x64x32x32x32/nhwc w=bf16/128x64x3x3x3/nhwc pad=1 ; name=unet3d.3.bf16n.f
conv_backward_data dy=bf16/2x128x32x32x32/nhwc w=bf16/128x64x3x3x3/nhwc dx=bf16/2x64x32x32x32/nhwc pad=1 ; name=unet3d.3.bf16n.d
conv_backward_filter x=bf16/2x64x32x32x32/nhwc dy=bf16/2x128x32x32x32/nhwc dw=bf16/128x64x3x3x3/nhwc pad=1 ; name=unet3d.3.bf16n.w
conv_forward x=f32/2x64x32x32x32 w=f32/128x64x3x3x3 pad=1 ; name=unet3d.3.f32.f
conv_backward_data dy=f32/2x128x32x32x32 w=f32/128x64x3x3x3 dx=f32/2x64x32x32x32 pad=1 ; name=unet3d.3.f32.d
conv_backward_filter x=f32/2x64x32x32x32 dy=f32/2x128x32x32x32 dw=f32/128x64x3x3x3 pad=1 ; name=unet3d.3.f32.w
conv_forward x=f16/2x32x64x64x64 w=f16/128x32x2x2x2 stride=2 ; name=unet3d.up.f16.f
conv_backward_data dy=f16/2x128x32x32x32 w=f16/128x32x2x2x2 dx=f16/2x32x64x64x64 stride=2 ; name=unet3d.up.f16.d
conv_backward_filter x=f16/2x32x64x64x64 dy=f16/2x128x32x32x32 dw=f16/128x32x2x2x2 stride=2 ; name=unet3d.up.f16.w
conv_forward x=f16/4x3x32x112x112 w=f16/8x3x5x7x7 stride=1,2,2 pad=2,3,3 ; name=fast.stem.f16.f
conv_backward_data dy=f16/4x8x32x56x56 w=f16/8x3x5x7x7 dx=f16/4x3x32x112x112 stride=1,2,2 pad=2,3,3 ; name=fast.stem.f16.d
conv_backward_filter x=f16/4x3x32x112x112 dy=f16/4x8x32x56x56 dw=f16/8x3x5x7x7 stride=1,2,2 pad=2,3,3 ; name=fast.stem.f16.w
conv_forward x=f16/8x192x8x28x28 w=f16/64x192x1x1x1  ; name=i3d.1x1.f16.f
conv_backward_data dy=f16/8x64x8x28x28 w=f16/64x192x1x1x1 dx=f16/8x192x8x28x28  ; name=i3d.1x1.f16.d
conv_backward_filter x=f16/8x192x8x28x28 dy=f16/8x64x8x28x28 dw=f16/64x192x1x1x1  ; name=i3d.1x1.f16.w
conv_forward x=f32/8x192x8x28x28 w=f32/64x192x1x1x1  ; name=i3d.1x1.f32.f
conv_backward_data dy=f32/8x64x8x28x28 w=f32/64x192x1x1x1 dx=f32/8x192x8x28x28  ; name=i3d.1x1.f32.d
conv_backward_filter x=f32/8x192x8x28x28 dy=f32/8x64x8x28x28 dw=f32/64x192x1x1x1  ; name=i3d.1x1.f32.w
conv_forward x=f16/4x3x16x224x224 w=f16/768x3x2x16x16 stride=2,16,16 ; name=mae.patch.f16.f
conv_backward_data dy=f16/4x768x8x14x14 w=f16/768x3x2x16x16 dx=f16/4x3x16x224x224 stride=2,16,16 ; name=mae.patch.f16.d
conv_backward_filter x=f16/4x3x16x224x224 dy=f16/4x768x8x14x14 dw=f16/768x3x2x16x16 stride=2,16,16 ; name=mae.patch.f16.w
conv_forward x=f16/8x1x48000 w=f16/512x1x10 stride=5 ; name=w2v.1.f16.f
conv_backward_data dy=f16/8x512x9599 w=f16/512x1x10 dx=f16/8x1x48000 stride=5 ; name=w2v.1.f16.d
conv_backward_filter x=f16/8x1x48000 dy=f16/8x512x9599 dw=f16/512x1x10 stride=5 ; name=w2v.1.f16.w
conv_forward x=f32/8x1x48000 w=f32/512x1x10 stride=5 ; name=w2v.1.f32.f
conv_backward_data dy=f32/8x512x9599 w=f32/512x1x10 dx=f32/8x1x48000 stride=5 ; name=w2v.1.f32.d
conv_backward_filter x=f32/8x1x48000 dy=f32/8x512x9599 dw=f32/512x1x10 stride=5 ; name=w2v.1.f32.w
conv_forward x=f16/8x512x4799 w=f16/512x512x3 stride=2 ; name=w2v.2.f16.f
conv_backward_data dy=f16/8x512x2399 w=f16/512x512x3 dx=f16/8x512x4799 stride=2 ; name=w2v.2.f16.d
conv_backward_filter x=f16/8x512x4799 dy=f16/8x512x2399 dw=f16/512x512x3 stride=2 ; name=w2v.2.f16.w
conv_forward x=f32/8x512x4799 w=f32/512x512x3 stride=2 ; name=w2v.2.f32.f
conv_backward_data dy=f32/8x512x2399 w=f32/512x512x3 dx=f32/8x512x4799 stride=2 ; name=w2v.2.f32.d
conv_backward_filter x=f32/8x512x4799 dy=f32/8x512x2399 dw=f32/512x512x3 stride=2 ; name=w2v.2.f32.w
conv_forward x=f16/8x768x199 w=f16/768x48x128 pad=64 groups=16 ; name=w2v.pos.f16.f
conv_backward_data dy=f16/8x768x200 w=f16/768x48x128 dx=f16/8x768x199 pad=64 groups=16 ; name=w2v.pos.f16.d
conv_backward_filter x=f16/8x768x199 dy=f16/8x768x200 dw=f16/768x48x128 pad=64 groups=16 ; name=w2v.pos.f16.w
conv_forward x=f16/8x256x512 w=f16/512x256x16 stride=8 pad=4 ; name=hifi.up.f16.f
conv_backward_data dy=f16/8x512x64 w=f16/512x256x16 dx=f16/8x256x512 stride=8 pad=4 ; name=hifi.up.f16.d
conv_backward_filter x=f16/8x256x512 dy=f16/8x512x64 dw=f16/512x256x16 stride=8 pad=4 ; name=hifi.up.f16.w
conv_forward x=f32/8x256x512 w=f32/512x256x16 stride=8 pad=4 ; name=hifi.up.f32.f
conv_backward_data dy=f32/8x512x64 w=f32/512x256x16 dx=f32/8x256x512 stride=8 pad=4 ; name=hifi.up.f32.d
conv_backward_filter x=f32/8x256x512 dy=f32/8x512x64 dw=f32/512x256x16 stride=8 pad=4 ; name=hifi.up.f32.w
conv_forward x=f16/8x256x256 w=f16/256x256x11 dilation=5 pad=25 ; name=hifi.r1.f16.f
conv_backward_data dy=f16/8x256x256 w=f16/256x256x11 dx=f16/8x256x256 dilation=5 pad=25 ; name=hifi.r1.f16.d
conv_backward_filter x=f16/8x256x256 dy=f16/8x256x256 dw=f16/256x256x11 dilation=5 pad=25 ; name=hifi.r1.f16.w
conv_forward x=f32/8x256x256 w=f32/256x256x11 dilation=5 pad=25 ; name=hifi.r1.f32.f
conv_backward_data dy=f32/8x256x256 w=f32/256x256x11 dx=f32/8x256x256 dilation=5 pad=25 ; name=hifi.r1.f32.d
conv_backward_filter x=f32/8x256x256 dy=f32/8x256x256 dw=f32/256x256x11 dilation=5 pad=25 ; name=hifi.r1.f32.w
conv_forward x=f16/8x32x8192 w=f16/32x32x11 dilation=5 pad=25 ; name=hifi.r3.f16.f
conv_backward_data dy=f16/8x32x8192 w=f16/32x32x11 dx=f16/8x32x8192 dilation=5 pad=25 ; name=hifi.r3.f16.d
conv_backward_filter x=f16/8x32x8192 dy=f16/8x32x8192 dw=f16/32x32x11 dilation=5 pad=25 ; name=hifi.r3.f16.w
conv_forward x=f32/8x32x8192 w=f32/32x32x11 dilation=5 pad=25 ; name=hifi.r3.f32.f
conv_backward_data dy=f32/8x32x8192 w=f32/32x32x11 dx=f32/8x32x8192 dilation=5 pad=25 ; name=hifi.r3.f32.d
conv_backward_filter x=f32/8x32x8192 dy=f32/8x32x8192 dw=f32/32x32x11 dilation=5 pad=25 ; name=hifi.r3.f32.w
conv_forward x=f16/8x32x8192 w=f16/1x32x7 pad=3 ; name=hifi.post.f16.f
conv_backward_data dy=f16/8x1x8192 w=f16/1x32x7 dx=f16/8x32x8192 pad=3 ; name=hifi.post.f16.d
conv_backward_filter x=f16/8x32x8192 dy=f16/8x1x8192 dw=f16/1x32x7 pad=3 ; name=hifi.post.f16.w
conv_forward x=f32/8x32x8192 w=f32/1x32x7 pad=3 ; name=hifi.post.f32.f
conv_backward_data dy=f32/8x1x8192 w=f32/1x32x7 dx=f32/8x32x8192 pad=3 ; name=hifi.post.f32.d
conv_backward_filter x=f32/8x32x8192 dy=f32/8x1x8192 dw=f32/1x32x7 pad=3 ; name=hifi.post.f32.w
conv_forward x=f16/8x64x8000 w=f16/128x64x2 dilation=512 pad=256 ; name=wavenet.f16.f
conv_backward_data dy=f16/8x128x8000 w=f16/128x64x2 dx=f16/8x64x8000 dilation=512 pad=256 ; name=wavenet.f16.d
conv_backward_filter x=f16/8x64x8000 dy=f16/8x128x8000 dw=f16/128x64x2 dilation=512 pad=256 ; name=wavenet.f16.w
conv_forward x=f32/8x64x8000 w=f32/128x64x2 dilation=512 pad=256 ; name=wavenet.f32.f
conv_backward_data dy=f32/8x128x8000 w=f32/128x64x2 dx=f32/8x64x8000 dilation=512 pad=256 ; name=wavenet.f32.d
conv_backward_filter x=f32/8x64x8000 dy=f32/8x128x8000 dw=f32/128x64x2 dilation=512 pad=256 ; name=wavenet.f32.w
conv_forward x=f16/8x80x3000 w=f16/384x80x3 pad=1 ; name=whisper.1.f16.f
conv_backward_data dy=f16/8x384x3000 w=f16/384x80x3 dx=f16/8x80x3000 pad=1 ; name=whisper.1.f16.d
conv_backward_filter x=f16/8x80x3000 dy=f16/8x384x3000 dw=f16/384x80x3 pad=1 ; name=whisper.1.f16.w
conv_forward x=f32/8x80x3000 w=f32/384x80x3 pad=1 ; name=whisper.1.f32.f
conv_backward_data dy=f32/8x384x3000 w=f32/384x80x3 dx=f32/8x80x3000 pad=1 ; name=whisper.1.f32.d
conv_backward_filter x=f32/8x80x3000 dy=f32/8x384x3000 dw=f32/384x80x3 pad=1 ; name=whisper.1.f32.w
conv_forward x=f16/8x384x3000 w=f16/384x384x3 stride=2 pad=1 ; name=whisper.2.f16.f
conv_backward_data dy=f16/8x384x1500 w=f16/384x384x3 dx=f16/8x384x3000 stride=2 pad=1 ; name=whisper.2.f16.d
conv_backward_filter x=f16/8x384x3000 dy=f16/8x384x1500 dw=f16/384x384x3 stride=2 pad=1 ; name=whisper.2.f16.w
conv_forward x=f32/8x384x3000 w=f32/384x384x3 stride=2 pad=1 ; name=whisper.2.f32.f
conv_backward_data dy=f32/8x384x1500 w=f32/384x384x3 dx=f32/8x384x3000 stride=2 pad=1 ; name=whisper.2.f32.d
conv_backward_filter x=f32/8x384x3000 dy=f32/8x384x1500 dw=f32/384x384x3 stride=2 pad=1 ; name=whisper.2.f32.w
conv_forward x=f16/8x256x400 w=f16/256x1x31 pad=15 groups=256 ; name=conformer.f16.f
conv_backward_data dy=f16/8x256x400 w=f16/256x1x31 dx=f16/8x256x400 pad=15 groups=256 ; name=conformer.f16.d
conv_backward_filter x=f16/8x256x400 dy=f16/8x256x400 dw=f16/256x1x31 pad=15 groups=256 ; name=conformer.f16.w
conv_forward x=f32/8x256x400 w=f32/256x1x31 pad=15 groups=256 ; name=conformer.f32.f
conv_backward_data dy=f32/8x256x400 w=f32/256x1x31 dx=f32/8x256x400 pad=15 groups=256 ; name=conformer.f32.d
conv_backward_filter x=f32/8x256x400 dy=f32/8x256x400 dw=f32/256x1x31 pad=15 groups=256 ; name=conformer.f32.w
conv_forward x=bf16/8x128x300 w=bf16/128x128x3 dilation=2 pad=2 ; name=ecapa.bf16.f
conv_backward_data dy=bf16/8x128x300 w=bf16/128x128x3 dx=bf16/8x128x300 dilation=2 pad=2 ; name=ecapa.bf16.d
conv_backward_filter x=bf16/8x128x300 dy=bf16/8x128x300 dw=bf16/128x128x3 dilation=2 pad=2 ; name=ecapa.bf16.w
conv_forward x=f32/8x128x300 w=f32/128x128x3 dilation=2 pad=2 ; name=ecapa.f32.f
conv_backward_data dy=f32/8x128x300 w=f32/128x128x3 dx=f32/8x128x300 dilation=2 pad=2 ; name=ecapa.f32.d
conv_backward_filter x=f32/8x128x300 dy=f32/8x128x300 dw=f32/128x128x3 dilation=2 pad=2 ; name=ecapa.f32.w
conv_forward x=f16/4x2048x28x28 w=f16/256x2048x3x3 dilation=12 pad=12 ; name=deeplab.f16.f
conv_backward_data dy=f16/4x256x28x28 w=f16/256x2048x3x3 dx=f16/4x2048x28x28 dilation=12 pad=12 ; name=deeplab.f16.d
conv_backward_filter x=f16/4x2048x28x28 dy=f16/4x256x28x28 dw=f16/256x2048x3x3 dilation=12 pad=12 ; name=deeplab.f16.w
conv_forward x=f32/4x2048x28x28 w=f32/256x2048x3x3 dilation=12 pad=12 ; name=deeplab.f32.f
conv_backward_data dy=f32/4x256x28x28 w=f32/256x2048x3x3 dx=f32/4x2048x28x28 dilation=12 pad=12 ; name=deeplab.f32.d
conv_backward_filter x=f32/4x2048x28x28 dy=f32/4x256x28x28 dw=f32/256x2048x3x3 dilation=12 pad=12 ; name=deeplab.f32.w
conv_forward x=f16/64x256x16x16 w=f16/512x256x4x4 stride=2 pad=1 ; name=dcgan.f16.f
conv_backward_data dy=f16/64x512x8x8 w=f16/512x256x4x4 dx=f16/64x256x16x16 stride=2 pad=1 ; name=dcgan.f16.d
conv_backward_filter x=f16/64x256x16x16 dy=f16/64x512x8x8 dw=f16/512x256x4x4 stride=2 pad=1 ; name=dcgan.f16.w
conv_forward x=f32/64x256x16x16 w=f32/512x256x4x4 stride=2 pad=1 ; name=dcgan.f32.f
conv_backward_data dy=f32/64x512x8x8 w=f32/512x256x4x4 dx=f32/64x256x16x16 stride=2 pad=1 ; name=dcgan.f32.d
conv_backward_filter x=f32/64x256x16x16 dy=f32/64x512x8x8 dw=f32/512x256x4x4 stride=2 pad=1 ; name=dcgan.f32.w
conv_forward x=f16/2x4x64x64 w=f16/320x4x3x3 pad=1 ; name=sd.in.f16.f
conv_backward_data dy=f16/2x320x64x64 w=f16/320x4x3x3 dx=f16/2x4x64x64 pad=1 ; name=sd.in.f16.d
conv_backward_filter x=f16/2x4x64x64 dy=f16/2x320x64x64 dw=f16/320x4x3x3 pad=1 ; name=sd.in.f16.w
conv_forward x=f16/2x320x64x64/nhwc w=f16/320x320x3x3/nhwc pad=1 ; name=sd.mid.f16n.f
conv_backward_data dy=f16/2x320x64x64/nhwc w=f16/320x320x3x3/nhwc dx=f16/2x320x64x64/nhwc pad=1 ; name=sd.mid.f16n.d
conv_backward_filter x=f16/2x320x64x64/nhwc dy=f16/2x320x64x64/nhwc dw=f16/320x320x3x3/nhwc pad=1 ; name=sd.mid.f16n.w
conv_forward x=f16/2x320x64x64 w=f16/4x320x3x3 pad=1 ; name=sd.out.f16.f
conv_backward_data dy=f16/2x4x64x64 w=f16/4x320x3x3 dx=f16/2x320x64x64 pad=1 ; name=sd.out.f16.d
conv_backward_filter x=f16/2x320x64x64 dy=f16/2x4x64x64 dw=f16/4x320x3x3 pad=1 ; name=sd.out.f16.w
conv_forward x=f16/1x128x256x256 w=f16/3x128x3x3 pad=1 ; name=vae.out.f16.f
conv_backward_data dy=f16/1x3x256x256 w=f16/3x128x3x3 dx=f16/1x128x256x256 pad=1 ; name=vae.out.f16.d
conv_backward_filter x=f16/1x128x256x256 dy=f16/1x3x256x256 dw=f16/3x128x3x3 pad=1 ; name=vae.out.f16.w
conv_forward x=f32/1x128x256x256 w=f32/3x128x3x3 pad=1 ; name=vae.out.f32.f
conv_backward_data dy=f32/1x3x256x256 w=f32/3x128x3x3 dx=f32/1x128x256x256 pad=1 ; name=vae.out.f32.d
conv_backward_filter x=f32/1x128x256x256 dy=f32/1x3x256x256 dw=f32/3x128x3x3 pad=1 ; name=vae.out.f32.w
conv_forward x=f16/8x64x96x96 w=f16/3x64x9x9 pad=4 ; name=srgan.f16.f
conv_backward_data dy=f16/8x3x96x96 w=f16/3x64x9x9 dx=f16/8x64x96x96 pad=4 ; name=srgan.f16.d
conv_backward_filter x=f16/8x64x96x96 dy=f16/8x3x96x96 dw=f16/3x64x9x9 pad=4 ; name=srgan.f16.w
conv_forward x=f32/8x64x96x96 w=f32/3x64x9x9 pad=4 ; name=srgan.f32.f
conv_backward_data dy=f32/8x3x96x96 w=f32/3x64x9x9 dx=f32/8x64x96x96 pad=4 ; name=srgan.f32.d
conv_backward_filter x=f32/8x64x96x96 dy=f32/8x3x96x96 dw=f32/3x64x9x9 pad=4 ; name=srgan.f32.w
conv_forward x=f32/64x1x28x28 w=f32/32x1x3x3  ; name=mnist.f32.f
conv_backward_data dy=f32/64x32x26x26 w=f32/32x1x3x3 dx=f32/64x1x28x28  ; name=mnist.f32.d
conv_backward_filter x=f32/64x1x28x28 dy=f32/64x32x26x26 dw=f32/32x1x3x3  ; name=mnist.f32.w
conv_forward x=f16/64x1x28x28 w=f16/32x1x3x3  ; name=mnist.f16.f
conv_backward_data dy=f16/64x32x26x26 w=f16/32x1x3x3 dx=f16/64x1x28x28  ; name=mnist.f16.d
conv_backward_filter x=f16/64x1x28x28 dy=f16/64x32x26x26 dw=f16/32x1x3x3  ; name=mnist.f16.w
conv_forward x=f32/32x1x32x100 w=f32/64x1x3x3 pad=1 ; name=crnn.f32.f
conv_backward_data dy=f32/32x64x32x100 w=f32/64x1x3x3 dx=f32/32x1x32x100 pad=1 ; name=crnn.f32.d
conv_backward_filter x=f32/32x1x32x100 dy=f32/32x64x32x100 dw=f32/64x1x3x3 pad=1 ; name=crnn.f32.w
conv_forward x=f16/32x1x32x100 w=f16/64x1x3x3 pad=1 ; name=crnn.f16.f
conv_backward_data dy=f16/32x64x32x100 w=f16/64x1x3x3 dx=f16/32x1x32x100 pad=1 ; name=crnn.f16.d
conv_backward_filter x=f16/32x1x32x100 dy=f16/32x64x32x100 dw=f16/64x1x3x3 pad=1 ; name=crnn.f16.w
conv_forward x=f16/8x1x128x1024 w=f16/768x1x16x16 stride=10 ; name=ast.f16.f
conv_backward_data dy=f16/8x768x12x101 w=f16/768x1x16x16 dx=f16/8x1x128x1024 stride=10 ; name=ast.f16.d
conv_backward_filter x=f16/8x1x128x1024 dy=f16/8x768x12x101 dw=f16/768x1x16x16 stride=10 ; name=ast.f16.w
conv_forward x=f32/8x1x128x1024 w=f32/768x1x16x16 stride=10 ; name=ast.f32.f
conv_backward_data dy=f32/8x768x12x101 w=f32/768x1x16x16 dx=f32/8x1x128x1024 stride=10 ; name=ast.f32.d
conv_backward_filter x=f32/8x1x128x1024 dy=f32/8x768x12x101 dw=f32/768x1x16x16 stride=10 ; name=ast.f32.w
conv_forward x=f16/4x3x320x320 w=f16/48x3x6x6 stride=2 pad=2 ; name=yolo.f16.f
conv_backward_data dy=f16/4x48x160x160 w=f16/48x3x6x6 dx=f16/4x3x320x320 stride=2 pad=2 ; name=yolo.f16.d
conv_backward_filter x=f16/4x3x320x320 dy=f16/4x48x160x160 dw=f16/48x3x6x6 stride=2 pad=2 ; name=yolo.f16.w
conv_forward x=f16/4x3x320x320/nhwc w=f16/48x3x6x6/nhwc stride=2 pad=2 ; name=yolo.f16n.f
conv_backward_data dy=f16/4x48x160x160/nhwc w=f16/48x3x6x6/nhwc dx=f16/4x3x320x320/nhwc stride=2 pad=2 ; name=yolo.f16n.d
conv_backward_filter x=f16/4x3x320x320/nhwc dy=f16/4x48x160x160/nhwc dw=f16/48x3x6x6/nhwc stride=2 pad=2 ; name=yolo.f16n.w
conv_forward x=bf16/8x3x224x224 w=bf16/768x3x32x32 stride=32 ; name=vit.32.bf16.f
conv_backward_data dy=bf16/8x768x7x7 w=bf16/768x3x32x32 dx=bf16/8x3x224x224 stride=32 ; name=vit.32.bf16.d
conv_backward_filter x=bf16/8x3x224x224 dy=bf16/8x768x7x7 dw=bf16/768x3x32x32 stride=32 ; name=vit.32.bf16.w
conv_forward x=f32/8x3x224x224 w=f32/768x3x32x32 stride=32 ; name=vit.32.f32.f
conv_backward_data dy=f32/8x768x7x7 w=f32/768x3x32x32 dx=f32/8x3x224x224 stride=32 ; name=vit.32.f32.d
conv_backward_filter x=f32/8x3x224x224 dy=f32/8x768x7x7 dw=f32/768x3x32x32 stride=32 ; name=vit.32.f32.w
conv_forward x=bf16/8x3x224x224/nhwc w=bf16/64x3x7x7/nhwc stride=2 pad=3 ; name=stn.bf16n.f
conv_backward_data dy=bf16/8x64x112x112/nhwc w=bf16/64x3x7x7/nhwc dx=bf16/8x3x224x224/nhwc stride=2 pad=3 ; name=stn.bf16n.d
conv_backward_filter x=bf16/8x3x224x224/nhwc dy=bf16/8x64x112x112/nhwc dw=bf16/64x3x7x7/nhwc stride=2 pad=3 ; name=stn.bf16n.w
conv_forward x=f32/8x3x224x224/nhwc w=f32/64x3x7x7/nhwc stride=2 pad=3 ; name=stn.f32n.f
conv_backward_data dy=f32/8x64x112x112/nhwc w=f32/64x3x7x7/nhwc dx=f32/8x3x224x224/nhwc stride=2 pad=3 ; name=stn.f32n.d
conv_backward_filter x=f32/8x3x224x224/nhwc dy=f32/8x64x112x112/nhwc dw=f32/64x3x7x7/nhwc stride=2 pad=3 ; name=stn.f32n.w
