# Convolutions that are matrix products over windows: patch embeddings, first layers, few or odd channels, one and three spatial
# dims, transposed with large strides, 8-bit and f64. Layouts as the networks hand them over; forward, by x, by filter. For a GPU.

conv_forward x=f16/64x3x224x224 w=f16/768x3x16x16 bias=f16/768 stride=16 ; name=vit_b16.patch.f16.fwd
conv_backward_data dy=f16/64x768x14x14 w=f16/768x3x16x16 dx=f16/64x3x224x224 stride=16 ; name=vit_b16.patch.f16.data
conv_backward_filter x=f16/64x3x224x224 dy=f16/64x768x14x14 dw=f16/768x3x16x16 stride=16 ; name=vit_b16.patch.f16.filter
conv_forward x=bf16/32x3x224x224 w=bf16/1024x3x14x14 bias=bf16/1024 stride=14 ; name=vit_l14.patch.bf16.fwd
conv_backward_data dy=bf16/32x1024x16x16 w=bf16/1024x3x14x14 dx=bf16/32x3x224x224 stride=14 ; name=vit_l14.patch.bf16.data
conv_backward_filter x=bf16/32x3x224x224 dy=bf16/32x1024x16x16 dw=bf16/1024x3x14x14 stride=14 ; name=vit_l14.patch.bf16.filter
conv_forward x=f32/64x3x224x224 w=f32/768x3x32x32 stride=32 ; name=vit_b32.patch.f32.fwd
conv_backward_data dy=f32/64x768x7x7 w=f32/768x3x32x32 dx=f32/64x3x224x224 stride=32 ; name=vit_b32.patch.f32.data
conv_backward_filter x=f32/64x3x224x224 dy=f32/64x768x7x7 dw=f32/768x3x32x32 stride=32 ; name=vit_b32.patch.f32.filter
conv_forward x=f16/32x3x224x224/nhwc w=f16/384x3x8x8/nhwc stride=8 ; name=dino_s8.patch.f16.nhwc.fwd
conv_backward_data dy=f16/32x384x28x28/nhwc w=f16/384x3x8x8/nhwc dx=f16/32x3x224x224/nhwc stride=8 ; name=dino_s8.patch.f16.nhwc.data
conv_backward_filter x=f16/32x3x224x224/nhwc dy=f16/32x384x28x28/nhwc dw=f16/384x3x8x8/nhwc stride=8 ; name=dino_s8.patch.f16.nhwc.filter
conv_forward x=f16/32x3x224x224/nhwc w=f16/96x3x4x4/nhwc stride=4 ; name=convnext.stem.f16.nhwc.fwd
conv_backward_data dy=f16/32x96x56x56/nhwc w=f16/96x3x4x4/nhwc dx=f16/32x3x224x224/nhwc stride=4 ; name=convnext.stem.f16.nhwc.data
conv_backward_filter x=f16/32x3x224x224/nhwc dy=f16/32x96x56x56/nhwc dw=f16/96x3x4x4/nhwc stride=4 ; name=convnext.stem.f16.nhwc.filter
conv_forward x=f32/32x3x224x224 w=f32/96x3x4x4 bias=f32/96 stride=4 ; name=swin.patch.f32.fwd
conv_backward_data dy=f32/32x96x56x56 w=f32/96x3x4x4 dx=f32/32x3x224x224 stride=4 ; name=swin.patch.f32.data
conv_backward_filter x=f32/32x3x224x224 dy=f32/32x96x56x56 dw=f32/96x3x4x4 stride=4 ; name=swin.patch.f32.filter
conv_forward x=bf16/32x3x224x224 w=bf16/96x3x4x4 stride=4 ; name=swin.patch.bf16.fwd
conv_backward_data dy=bf16/32x96x56x56 w=bf16/96x3x4x4 dx=bf16/32x3x224x224 stride=4 ; name=swin.patch.bf16.data
conv_backward_filter x=bf16/32x3x224x224 dy=bf16/32x96x56x56 dw=bf16/96x3x4x4 stride=4 ; name=swin.patch.bf16.filter
conv_forward x=f16/4x3x16x224x224 w=f16/768x3x2x16x16 stride=2,16,16 ; name=video_vit.tube.f16.fwd
conv_backward_data dy=f16/4x768x8x14x14 w=f16/768x3x2x16x16 dx=f16/4x3x16x224x224 stride=2,16,16 ; name=video_vit.tube.f16.data
conv_backward_filter x=f16/4x3x16x224x224 dy=f16/4x768x8x14x14 dw=f16/768x3x2x16x16 stride=2,16,16 ; name=video_vit.tube.f16.filter
conv_forward x=f16/32x3x224x224 w=f16/64x3x7x7 stride=2 pad=3 ; name=rn50.conv1.f16.fwd
conv_backward_data dy=f16/32x64x112x112 w=f16/64x3x7x7 dx=f16/32x3x224x224 stride=2 pad=3 ; name=rn50.conv1.f16.data
conv_backward_filter x=f16/32x3x224x224 dy=f16/32x64x112x112 dw=f16/64x3x7x7 stride=2 pad=3 ; name=rn50.conv1.f16.filter
conv_forward x=f32/32x3x224x224 w=f32/64x3x7x7 stride=2 pad=3 ; name=rn50.conv1.f32.fwd
conv_backward_data dy=f32/32x64x112x112 w=f32/64x3x7x7 dx=f32/32x3x224x224 stride=2 pad=3 ; name=rn50.conv1.f32.data
conv_backward_filter x=f32/32x3x224x224 dy=f32/32x64x112x112 dw=f32/64x3x7x7 stride=2 pad=3 ; name=rn50.conv1.f32.filter
conv_forward x=bf16/16x3x224x224 w=bf16/64x3x3x3 bias=bf16/64 pad=1 ; name=vgg.conv1.bf16.fwd
conv_backward_data dy=bf16/16x64x224x224 w=bf16/64x3x3x3 dx=bf16/16x3x224x224 pad=1 ; name=vgg.conv1.bf16.data
conv_backward_filter x=bf16/16x3x224x224 dy=bf16/16x64x224x224 dw=bf16/64x3x3x3 pad=1 ; name=vgg.conv1.bf16.filter
conv_forward x=f32/32x3x299x299 w=f32/32x3x3x3 stride=2 ; name=inception.conv1.f32.fwd
conv_backward_data dy=f32/32x32x149x149 w=f32/32x3x3x3 dx=f32/32x3x299x299 stride=2 ; name=inception.conv1.f32.data
conv_backward_filter x=f32/32x3x299x299 dy=f32/32x32x149x149 dw=f32/32x3x3x3 stride=2 ; name=inception.conv1.f32.filter
conv_forward x=f16/2x1x96x96x96 w=f16/32x1x3x3x3 pad=1 ; name=unet3d.conv1.f16.fwd
conv_backward_data dy=f16/2x32x96x96x96 w=f16/32x1x3x3x3 dx=f16/2x1x96x96x96 pad=1 ; name=unet3d.conv1.f16.data
conv_backward_filter x=f16/2x1x96x96x96 dy=f16/2x32x96x96x96 dw=f16/32x1x3x3x3 pad=1 ; name=unet3d.conv1.f16.filter
conv_forward x=f32/2x1x96x96x96 w=f32/32x1x3x3x3 pad=1 ; name=unet3d.conv1.f32.fwd
conv_backward_data dy=f32/2x32x96x96x96 w=f32/32x1x3x3x3 dx=f32/2x1x96x96x96 pad=1 ; name=unet3d.conv1.f32.data
conv_backward_filter x=f32/2x1x96x96x96 dy=f32/2x32x96x96x96 dw=f32/32x1x3x3x3 pad=1 ; name=unet3d.conv1.f32.filter
conv_forward x=f32/16x1x256x256 w=f32/64x1x3x3 pad=1 ; name=unet.grey.f32.fwd
conv_backward_data dy=f32/16x64x256x256 w=f32/64x1x3x3 dx=f32/16x1x256x256 pad=1 ; name=unet.grey.f32.data
conv_backward_filter x=f32/16x1x256x256 dy=f32/16x64x256x256 dw=f32/64x1x3x3 pad=1 ; name=unet.grey.f32.filter
conv_forward x=f16/32x256x56x56 w=f16/512x256x1x1 stride=2 ; name=rn50.3d.1x1.f16.fwd
conv_backward_data dy=f16/32x512x28x28 w=f16/512x256x1x1 dx=f16/32x256x56x56 stride=2 ; name=rn50.3d.1x1.f16.data
conv_backward_filter x=f16/32x256x56x56 dy=f16/32x512x28x28 dw=f16/512x256x1x1 stride=2 ; name=rn50.3d.1x1.f16.filter
conv_forward x=f16/32x512x28x28 w=f16/128x512x1x1 ; name=rn50.3a.1x1.f16.fwd
conv_backward_data dy=f16/32x128x28x28 w=f16/128x512x1x1 dx=f16/32x512x28x28 ; name=rn50.3a.1x1.f16.data
conv_backward_filter x=f16/32x512x28x28 dy=f16/32x128x28x28 dw=f16/128x512x1x1 ; name=rn50.3a.1x1.f16.filter
conv_forward x=f16/8x1x160000 w=f16/512x1x10 stride=5 ; name=wav2vec.conv0.f16.fwd
conv_backward_data dy=f16/8x512x31999 w=f16/512x1x10 dx=f16/8x1x160000 stride=5 ; name=wav2vec.conv0.f16.data
conv_backward_filter x=f16/8x1x160000 dy=f16/8x512x31999 dw=f16/512x1x10 stride=5 ; name=wav2vec.conv0.f16.filter
conv_forward x=f16/4x512x31999 w=f16/512x512x3 stride=2 ; name=wav2vec.conv1.f16.fwd
conv_backward_data dy=f16/4x512x15999 w=f16/512x512x3 dx=f16/4x512x31999 stride=2 ; name=wav2vec.conv1.f16.data
conv_backward_filter x=f16/4x512x31999 dy=f16/4x512x15999 dw=f16/512x512x3 stride=2 ; name=wav2vec.conv1.f16.filter
conv_forward x=f32/16x128x2048 w=f32/128x128x11 dilation=5 pad=25 ; name=hifigan.dilated.f32.fwd
conv_backward_data dy=f32/16x128x2048 w=f32/128x128x11 dx=f32/16x128x2048 dilation=5 pad=25 ; name=hifigan.dilated.f32.data
conv_backward_filter x=f32/16x128x2048 dy=f32/16x128x2048 dw=f32/128x128x11 dilation=5 pad=25 ; name=hifigan.dilated.f32.filter
conv_forward x=f32/16x256x2048 w=f32/512x256x16 stride=8 pad=4 ; name=hifigan.up.f32.fwd
conv_backward_data dy=f32/16x512x256 w=f32/512x256x16 dx=f32/16x256x2048 stride=8 pad=4 ; name=hifigan.up.f32.data
conv_backward_filter x=f32/16x256x2048 dy=f32/16x512x256 dw=f32/512x256x16 stride=8 pad=4 ; name=hifigan.up.f32.filter
conv_forward x=f16/16x256x2048 w=f16/512x256x16 stride=8 pad=4 ; name=hifigan.up.f16.fwd
conv_backward_data dy=f16/16x512x256 w=f16/512x256x16 dx=f16/16x256x2048 stride=8 pad=4 ; name=hifigan.up.f16.data
conv_backward_filter x=f16/16x256x2048 dy=f16/16x512x256 dw=f16/512x256x16 stride=8 pad=4 ; name=hifigan.up.f16.filter
conv_forward x=f16/8x64x16000 w=f16/128x64x2 dilation=64 ; name=wavenet.dilated.f16.fwd
conv_backward_data dy=f16/8x128x15936 w=f16/128x64x2 dx=f16/8x64x16000 dilation=64 ; name=wavenet.dilated.f16.data
conv_backward_filter x=f16/8x64x16000 dy=f16/8x128x15936 dw=f16/128x64x2 dilation=64 ; name=wavenet.dilated.f16.filter
conv_forward x=f16/64x96x27x27 w=f16/256x48x5x5 bias=f16/256 pad=2 groups=2 ; name=alexnet.conv2.f16.fwd
conv_backward_data dy=f16/64x256x27x27 w=f16/256x48x5x5 dx=f16/64x96x27x27 pad=2 groups=2 ; name=alexnet.conv2.f16.data
conv_backward_filter x=f16/64x96x27x27 dy=f16/64x256x27x27 dw=f16/256x48x5x5 pad=2 groups=2 ; name=alexnet.conv2.f16.filter
conv_forward x=f64/8x64x56x56 w=f64/64x64x3x3 pad=1 ; name=rn50.2b.3x3.f64.fwd
conv_backward_data dy=f64/8x64x56x56 w=f64/64x64x3x3 dx=f64/8x64x56x56 pad=1 ; name=rn50.2b.3x3.f64.data
conv_backward_filter x=f64/8x64x56x56 dy=f64/8x64x56x56 dw=f64/64x64x3x3 pad=1 ; name=rn50.2b.3x3.f64.filter
conv_forward x=i8/32x64x56x56/nhwc w=i8/64x64x3x3/nhwc pad=1 ; name=rn50.2b.3x3.i8.nhwc.fwd
conv_forward x=i8/32x3x224x224/nhwc w=i8/64x3x7x7/nhwc stride=2 pad=3 ; name=rn50.conv1.i8.nhwc.fwd
conv_forward x=e4m3/32x128x28x28/nhwc w=e4m3/128x128x3x3/nhwc pad=1 y=bf16/32x128x28x28/nhwc ; name=rn50.3b.3x3.e4m3.nhwc.fwd
