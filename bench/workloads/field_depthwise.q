# Depthwise convolutions of networks in the field, in PyTorch's default layout above all: forward, gradient by x, gradient by the filter.

conv_forward x=f16/64x32x112x112 w=f16/32x1x3x3 pad=1 groups=32 ; name=mobilenet2.112.f16.forward
conv_backward_data dy=f16/64x32x112x112 w=f16/32x1x3x3 dx=f16/64x32x112x112 pad=1 groups=32 ; name=mobilenet2.112.f16.data
conv_backward_filter x=f16/64x32x112x112 dy=f16/64x32x112x112 dw=f16/32x1x3x3 pad=1 groups=32 ; name=mobilenet2.112.f16.filter
conv_forward x=f16/64x96x112x112 w=f16/96x1x3x3 stride=2 pad=1 groups=96 ; name=mobilenet2.112.s2.f16.forward
conv_backward_data dy=f16/64x96x56x56 w=f16/96x1x3x3 dx=f16/64x96x112x112 stride=2 pad=1 groups=96 ; name=mobilenet2.112.s2.f16.data
conv_backward_filter x=f16/64x96x112x112 dy=f16/64x96x56x56 dw=f16/96x1x3x3 stride=2 pad=1 groups=96 ; name=mobilenet2.112.s2.f16.filter
conv_forward x=f32/64x384x14x14 w=f32/384x1x3x3 pad=1 groups=384 ; name=mobilenet2.14.f32.forward
conv_backward_data dy=f32/64x384x14x14 w=f32/384x1x3x3 dx=f32/64x384x14x14 pad=1 groups=384 ; name=mobilenet2.14.f32.data
conv_backward_filter x=f32/64x384x14x14 dy=f32/64x384x14x14 dw=f32/384x1x3x3 pad=1 groups=384 ; name=mobilenet2.14.f32.filter
conv_forward x=f16/64x960x7x7 w=f16/960x1x3x3 pad=1 groups=960 ; name=mobilenet2.7.f16.forward
conv_backward_data dy=f16/64x960x7x7 w=f16/960x1x3x3 dx=f16/64x960x7x7 pad=1 groups=960 ; name=mobilenet2.7.f16.data
conv_backward_filter x=f16/64x960x7x7 dy=f16/64x960x7x7 dw=f16/960x1x3x3 pad=1 groups=960 ; name=mobilenet2.7.f16.filter
conv_forward x=bf16/64x72x56x56 w=bf16/72x1x5x5 stride=2 pad=2 groups=72 ; name=mobilenet3.28.s2.bf16.forward
conv_backward_data dy=bf16/64x72x28x28 w=bf16/72x1x5x5 dx=bf16/64x72x56x56 stride=2 pad=2 groups=72 ; name=mobilenet3.28.s2.bf16.data
conv_backward_filter x=bf16/64x72x56x56 dy=bf16/64x72x28x28 dw=bf16/72x1x5x5 stride=2 pad=2 groups=72 ; name=mobilenet3.28.s2.bf16.filter
conv_forward x=f16/64x120x28x28 w=f16/120x1x5x5 pad=2 groups=120 ; name=mobilenet3.28.f16.forward
conv_backward_data dy=f16/64x120x28x28 w=f16/120x1x5x5 dx=f16/64x120x28x28 pad=2 groups=120 ; name=mobilenet3.28.f16.data
conv_backward_filter x=f16/64x120x28x28 dy=f16/64x120x28x28 dw=f16/120x1x5x5 pad=2 groups=120 ; name=mobilenet3.28.f16.filter
conv_forward x=f16/64x120x28x28/nhwc w=f16/120x1x5x5 pad=2 groups=120 ; name=mobilenet3.28.f16.nhwc.forward
conv_backward_data dy=f16/64x120x28x28/nhwc w=f16/120x1x5x5 dx=f16/64x120x28x28/nhwc pad=2 groups=120 ; name=mobilenet3.28.f16.nhwc.data
conv_backward_filter x=f16/64x120x28x28/nhwc dy=f16/64x120x28x28/nhwc dw=f16/120x1x5x5 pad=2 groups=120 ; name=mobilenet3.28.f16.nhwc.filter
conv_forward x=bf16/16x192x95x95 w=bf16/192x1x3x3 pad=1 groups=192 ; name=efficientnet.b4.95.bf16.forward
conv_backward_data dy=bf16/16x192x95x95 w=bf16/192x1x3x3 dx=bf16/16x192x95x95 pad=1 groups=192 ; name=efficientnet.b4.95.bf16.data
conv_backward_filter x=bf16/16x192x95x95 dy=bf16/16x192x95x95 dw=bf16/192x1x3x3 pad=1 groups=192 ; name=efficientnet.b4.95.bf16.filter
conv_forward x=f32/16x960x24x24 w=f32/960x1x5x5 pad=2 groups=960 ; name=efficientnet.b4.24.f32.forward
conv_backward_data dy=f32/16x960x24x24 w=f32/960x1x5x5 dx=f32/16x960x24x24 pad=2 groups=960 ; name=efficientnet.b4.24.f32.data
conv_backward_filter x=f32/16x960x24x24 dy=f32/16x960x24x24 dw=f32/960x1x5x5 pad=2 groups=960 ; name=efficientnet.b4.24.f32.filter
conv_forward x=bf16/32x1632x12x12/nhwc w=bf16/1632x1x5x5 pad=2 groups=1632 ; name=efficientnet.b4.12.bf16.nhwc.forward
conv_backward_data dy=bf16/32x1632x12x12/nhwc w=bf16/1632x1x5x5 dx=bf16/32x1632x12x12/nhwc pad=2 groups=1632 ; name=efficientnet.b4.12.bf16.nhwc.data
conv_backward_filter x=bf16/32x1632x12x12/nhwc dy=bf16/32x1632x12x12/nhwc dw=bf16/1632x1x5x5 pad=2 groups=1632 ; name=efficientnet.b4.12.bf16.nhwc.filter
conv_forward x=bf16/32x96x56x56 w=bf16/96x1x7x7 pad=3 groups=96 ; name=convnext.56.bf16.forward
conv_backward_data dy=bf16/32x96x56x56 w=bf16/96x1x7x7 dx=bf16/32x96x56x56 pad=3 groups=96 ; name=convnext.56.bf16.data
conv_backward_filter x=bf16/32x96x56x56 dy=bf16/32x96x56x56 dw=bf16/96x1x7x7 pad=3 groups=96 ; name=convnext.56.bf16.filter
conv_forward x=f16/32x384x14x14 w=f16/384x1x7x7 pad=3 groups=384 ; name=convnext.14.f16.forward
conv_backward_data dy=f16/32x384x14x14 w=f16/384x1x7x7 dx=f16/32x384x14x14 pad=3 groups=384 ; name=convnext.14.f16.data
conv_backward_filter x=f16/32x384x14x14 dy=f16/32x384x14x14 dw=f16/384x1x7x7 pad=3 groups=384 ; name=convnext.14.f16.filter
conv_forward x=f16/64x768x7x7 w=f16/768x1x7x7 pad=3 groups=768 ; name=convnext.7.f16.forward
conv_backward_data dy=f16/64x768x7x7 w=f16/768x1x7x7 dx=f16/64x768x7x7 pad=3 groups=768 ; name=convnext.7.f16.data
conv_backward_filter x=f16/64x768x7x7 dy=f16/64x768x7x7 dw=f16/768x1x7x7 pad=3 groups=768 ; name=convnext.7.f16.filter
conv_forward x=f32/32x192x28x28 w=f32/192x1x7x7 pad=3 groups=192 ; name=convnext.28.f32.forward
conv_backward_data dy=f32/32x192x28x28 w=f32/192x1x7x7 dx=f32/32x192x28x28 pad=3 groups=192 ; name=convnext.28.f32.data
conv_backward_filter x=f32/32x192x28x28 dy=f32/32x192x28x28 dw=f32/192x1x7x7 pad=3 groups=192 ; name=convnext.28.f32.filter
conv_forward x=f16/32x192x28x28/nhwc w=f16/192x1x7x7 pad=3 groups=192 ; name=convnext.28.f16.nhwc.forward
conv_backward_data dy=f16/32x192x28x28/nhwc w=f16/192x1x7x7 dx=f16/32x192x28x28/nhwc pad=3 groups=192 ; name=convnext.28.f16.nhwc.data
conv_backward_filter x=f16/32x192x28x28/nhwc dy=f16/32x192x28x28/nhwc dw=f16/192x1x7x7 pad=3 groups=192 ; name=convnext.28.f16.nhwc.filter
conv_forward x=f16/16x256x28x28 w=f16/256x1x31x31 pad=15 groups=256 ; name=replknet.28.f16.forward
conv_backward_data dy=f16/16x256x28x28 w=f16/256x1x31x31 dx=f16/16x256x28x28 pad=15 groups=256 ; name=replknet.28.f16.data
conv_backward_filter x=f16/16x256x28x28 dy=f16/16x256x28x28 dw=f16/256x1x31x31 pad=15 groups=256 ; name=replknet.28.f16.filter
conv_forward x=f32/16x512x14x14 w=f32/512x1x27x27 pad=13 groups=512 ; name=replknet.14.f32.forward
conv_backward_data dy=f32/16x512x14x14 w=f32/512x1x27x27 dx=f32/16x512x14x14 pad=13 groups=512 ; name=replknet.14.f32.data
conv_backward_filter x=f32/16x512x14x14 dy=f32/16x512x14x14 dw=f32/512x1x27x27 pad=13 groups=512 ; name=replknet.14.f32.filter
conv_forward x=bf16/32x384x14x14 w=bf16/384x1x51x5 pad=25,2 groups=384 ; name=slak.14.bf16.forward
conv_backward_data dy=bf16/32x384x14x14 w=bf16/384x1x51x5 dx=bf16/32x384x14x14 pad=25,2 groups=384 ; name=slak.14.bf16.data
conv_backward_filter x=bf16/32x384x14x14 dy=bf16/32x384x14x14 dw=bf16/384x1x51x5 pad=25,2 groups=384 ; name=slak.14.bf16.filter
conv_forward x=bf16/8x2048x2048 w=bf16/2048x1x4 pad=3 groups=2048 ; name=mamba.bf16.forward
conv_backward_data dy=bf16/8x2048x2051 w=bf16/2048x1x4 dx=bf16/8x2048x2048 pad=3 groups=2048 ; name=mamba.bf16.data
conv_backward_filter x=bf16/8x2048x2048 dy=bf16/8x2048x2051 dw=bf16/2048x1x4 pad=3 groups=2048 ; name=mamba.bf16.filter
conv_forward x=bf16/8x2048x2048/nhwc w=bf16/2048x1x4 pad=3 groups=2048 ; name=mamba.bf16.nhwc.forward
conv_backward_data dy=bf16/8x2048x2051/nhwc w=bf16/2048x1x4 dx=bf16/8x2048x2048/nhwc pad=3 groups=2048 ; name=mamba.bf16.nhwc.data
conv_backward_filter x=bf16/8x2048x2048/nhwc dy=bf16/8x2048x2051/nhwc dw=bf16/2048x1x4 pad=3 groups=2048 ; name=mamba.bf16.nhwc.filter
conv_forward x=f16/32x512x400 w=f16/512x1x31 pad=15 groups=512 ; name=conformer.f16.forward
conv_backward_data dy=f16/32x512x400 w=f16/512x1x31 dx=f16/32x512x400 pad=15 groups=512 ; name=conformer.f16.data
conv_backward_filter x=f16/32x512x400 dy=f16/32x512x400 dw=f16/512x1x31 pad=15 groups=512 ; name=conformer.f16.filter
conv_forward x=f16/32x512x400/nhwc w=f16/512x1x31 pad=15 groups=512 ; name=conformer.f16.nhwc.forward
conv_backward_data dy=f16/32x512x400/nhwc w=f16/512x1x31 dx=f16/32x512x400/nhwc pad=15 groups=512 ; name=conformer.f16.nhwc.data
conv_backward_filter x=f16/32x512x400/nhwc dy=f16/32x512x400/nhwc dw=f16/512x1x31 pad=15 groups=512 ; name=conformer.f16.nhwc.filter
conv_forward x=f32/32x256x1000 w=f32/256x1x63 pad=31 groups=256 ; name=quartznet.f32.forward
conv_backward_data dy=f32/32x256x1000 w=f32/256x1x63 dx=f32/32x256x1000 pad=31 groups=256 ; name=quartznet.f32.data
conv_backward_filter x=f32/32x256x1000 dy=f32/32x256x1000 dw=f32/256x1x63 pad=31 groups=256 ; name=quartznet.f32.filter
conv_forward x=f16/16x512x3000 w=f16/512x1x3 pad=8 dilation=8 groups=512 ; name=tcn.d8.f16.forward
conv_backward_data dy=f16/16x512x3000 w=f16/512x1x3 dx=f16/16x512x3000 pad=8 dilation=8 groups=512 ; name=tcn.d8.f16.data
conv_backward_filter x=f16/16x512x3000 dy=f16/16x512x3000 dw=f16/512x1x3 pad=8 dilation=8 groups=512 ; name=tcn.d8.f16.filter
conv_forward x=f32/8x320x33x33 w=f32/320x1x3x3 pad=12 dilation=12 groups=320 ; name=aspp.d12.f32.forward
conv_backward_data dy=f32/8x320x33x33 w=f32/320x1x3x3 dx=f32/8x320x33x33 pad=12 dilation=12 groups=320 ; name=aspp.d12.f32.data
conv_backward_filter x=f32/8x320x33x33 dy=f32/8x320x33x33 dw=f32/320x1x3x3 pad=12 dilation=12 groups=320 ; name=aspp.d12.f32.filter
conv_forward x=f16/8x54x16x56x56 w=f16/54x1x3x3x3 pad=1 groups=54 ; name=x3d.56.f16.forward
conv_backward_data dy=f16/8x54x16x56x56 w=f16/54x1x3x3x3 dx=f16/8x54x16x56x56 pad=1 groups=54 ; name=x3d.56.f16.data
conv_backward_filter x=f16/8x54x16x56x56 dy=f16/8x54x16x56x56 dw=f16/54x1x3x3x3 pad=1 groups=54 ; name=x3d.56.f16.filter
conv_forward x=f16/8x54x16x112x112 w=f16/54x1x3x3x3 stride=1,2,2 pad=1 groups=54 ; name=x3d.112.s2.f16.forward
conv_backward_data dy=f16/8x54x16x56x56 w=f16/54x1x3x3x3 dx=f16/8x54x16x112x112 stride=1,2,2 pad=1 groups=54 ; name=x3d.112.s2.f16.data
conv_backward_filter x=f16/8x54x16x112x112 dy=f16/8x54x16x56x56 dw=f16/54x1x3x3x3 stride=1,2,2 pad=1 groups=54 ; name=x3d.112.s2.f16.filter
conv_forward x=bf16/8x108x16x28x28/nhwc w=bf16/108x1x3x3x3 pad=1 groups=108 ; name=x3d.28.bf16.nhwc.forward
conv_backward_data dy=bf16/8x108x16x28x28/nhwc w=bf16/108x1x3x3x3 dx=bf16/8x108x16x28x28/nhwc pad=1 groups=108 ; name=x3d.28.bf16.nhwc.data
conv_backward_filter x=bf16/8x108x16x28x28/nhwc dy=bf16/8x108x16x28x28/nhwc dw=bf16/108x1x3x3x3 pad=1 groups=108 ; name=x3d.28.bf16.nhwc.filter
conv_forward x=f32/4x80x16x86x86 w=f32/80x1x5x3x3 pad=2,1,1 groups=80 ; name=movinet.5x3x3.f32.forward
conv_backward_data dy=f32/4x80x16x86x86 w=f32/80x1x5x3x3 dx=f32/4x80x16x86x86 pad=2,1,1 groups=80 ; name=movinet.5x3x3.f32.data
conv_backward_filter x=f32/4x80x16x86x86 dy=f32/4x80x16x86x86 dw=f32/80x1x5x3x3 pad=2,1,1 groups=80 ; name=movinet.5x3x3.f32.filter
conv_forward x=f16/16x256x8x14x14 w=f16/256x1x3x3x3 pad=1 groups=256 ; name=csn.14.f16.forward
conv_backward_data dy=f16/16x256x8x14x14 w=f16/256x1x3x3x3 dx=f16/16x256x8x14x14 pad=1 groups=256 ; name=csn.14.f16.data
conv_backward_filter x=f16/16x256x8x14x14 dy=f16/16x256x8x14x14 dw=f16/256x1x3x3x3 pad=1 groups=256 ; name=csn.14.f16.filter
conv_forward x=f16/32x45x30x30/nhwc w=f16/45x1x3x3 pad=1 groups=45 ; name=odd.30.f16.nhwc.forward
conv_backward_data dy=f16/32x45x30x30/nhwc w=f16/45x1x3x3 dx=f16/32x45x30x30/nhwc pad=1 groups=45 ; name=odd.30.f16.nhwc.data
conv_backward_filter x=f16/32x45x30x30/nhwc dy=f16/32x45x30x30/nhwc dw=f16/45x1x3x3 pad=1 groups=45 ; name=odd.30.f16.nhwc.filter
conv_forward x=f16/32x64x56x56 w=f16/128x1x3x3 pad=1 groups=64 ; name=multiplier.2.f16.forward
conv_backward_data dy=f16/32x128x56x56 w=f16/128x1x3x3 dx=f16/32x64x56x56 pad=1 groups=64 ; name=multiplier.2.f16.data
conv_backward_filter x=f16/32x64x56x56 dy=f16/32x128x56x56 dw=f16/128x1x3x3 pad=1 groups=64 ; name=multiplier.2.f16.filter
conv_forward x=f16/32x58x28x28/nhwc w=f16/58x1x3x3 pad=1 groups=58 ; name=shufflenet2.58.f16.nhwc.forward
conv_backward_data dy=f16/32x58x28x28/nhwc w=f16/58x1x3x3 dx=f16/32x58x28x28/nhwc pad=1 groups=58 ; name=shufflenet2.58.f16.nhwc.data
conv_backward_filter x=f16/32x58x28x28/nhwc dy=f16/32x58x28x28/nhwc dw=f16/58x1x3x3 pad=1 groups=58 ; name=shufflenet2.58.f16.nhwc.filter
