# Convolutions of the field in three directions: each problem of field_conv.q once, and its gradients by x and by the filter, without
# bias for those. Names: f, d, w for the direction; c as handed over, h channels last (in turn, where two dims have more than a pixel).

conv_forward x=f32/8x3x224x224 w=f32/32x3x3x3 stride=2 pad=1 ; name=fc.f32.0
conv_backward_data dy=f32/8x32x112x112/nhwc w=f32/32x3x3x3/nhwc dx=f32/8x3x224x224/nhwc stride=2 pad=1 ; name=dh.f32.0
conv_backward_filter x=f32/8x3x224x224 dy=f32/8x32x112x112 dw=f32/32x3x3x3 stride=2 pad=1 ; name=wc.f32.0
conv_forward x=f16/8x64x56x56/nhwc w=f16/256x64x1x1/nhwc ; name=fh.f16.1
conv_backward_data dy=f16/8x256x56x56 w=f16/256x64x1x1 dx=f16/8x64x56x56 ; name=dc.f16.1
conv_backward_filter x=f16/8x64x56x56/nhwc dy=f16/8x256x56x56/nhwc dw=f16/256x64x1x1/nhwc ; name=wh.f16.1
conv_forward x=bf16/8x3x224x224 w=bf16/64x3x7x7 stride=2 pad=3 ; name=fc.bf16.2
conv_backward_data dy=bf16/8x64x112x112/nhwc w=bf16/64x3x7x7/nhwc dx=bf16/8x3x224x224/nhwc stride=2 pad=3 ; name=dh.bf16.2
conv_backward_filter x=bf16/8x3x224x224 dy=bf16/8x64x112x112 dw=bf16/64x3x7x7 stride=2 pad=3 ; name=wc.bf16.2
conv_forward x=f32/8x112x14x14/nhwc w=f32/672x112x1x1/nhwc ; name=fh.f32.3
conv_backward_data dy=f32/8x672x14x14 w=f32/672x112x1x1 dx=f32/8x112x14x14 ; name=dc.f32.3
conv_backward_filter x=f32/8x112x14x14/nhwc dy=f32/8x672x14x14/nhwc dw=f32/672x112x1x1/nhwc ; name=wh.f32.3
conv_forward x=f16/8x672x14x14 w=f16/112x672x1x1 ; name=fc.f16.4
conv_backward_data dy=f16/8x112x14x14/nhwc w=f16/112x672x1x1/nhwc dx=f16/8x672x14x14/nhwc ; name=dh.f16.4
conv_backward_filter x=f16/8x672x14x14 dy=f16/8x112x14x14 dw=f16/112x672x1x1 ; name=wc.f16.4
conv_forward x=bf16/8x32x112x112/nhwc w=bf16/16x32x1x1/nhwc ; name=fh.bf16.5
conv_backward_data dy=bf16/8x16x112x112 w=bf16/16x32x1x1 dx=bf16/8x32x112x112 ; name=dc.bf16.5
conv_backward_filter x=bf16/8x32x112x112/nhwc dy=bf16/8x16x112x112/nhwc dw=bf16/16x32x1x1/nhwc ; name=wh.bf16.5
conv_forward x=f32/8x32x112x112 w=f32/32x1x3x3 pad=1 groups=32 ; name=fc.f32.6
conv_backward_data dy=f32/8x32x112x112/nhwc w=f32/32x1x3x3/nhwc dx=f32/8x32x112x112/nhwc pad=1 groups=32 ; name=dh.f32.6
conv_backward_filter x=f32/8x32x112x112 dy=f32/8x32x112x112 dw=f32/32x1x3x3 pad=1 groups=32 ; name=wc.f32.6
conv_forward x=f16/8x3x224x224/nhwc w=f16/16x3x3x3/nhwc stride=2 pad=1 ; name=fh.f16.7
conv_backward_data dy=f16/8x16x112x112 w=f16/16x3x3x3 dx=f16/8x3x224x224 stride=2 pad=1 ; name=dc.f16.7
conv_backward_filter x=f16/8x3x224x224/nhwc dy=f16/8x16x112x112/nhwc dw=f16/16x3x3x3/nhwc stride=2 pad=1 ; name=wh.f16.7
conv_forward x=bf16/8x672x14x14 w=bf16/672x1x5x5 stride=2 pad=2 groups=672 ; name=fc.bf16.8
conv_backward_data dy=bf16/8x672x7x7/nhwc w=bf16/672x1x5x5/nhwc dx=bf16/8x672x14x14/nhwc stride=2 pad=2 groups=672 ; name=dh.bf16.8
conv_backward_filter x=bf16/8x672x14x14 dy=bf16/8x672x7x7 dw=bf16/672x1x5x5 stride=2 pad=2 groups=672 ; name=wc.bf16.8
conv_forward x=f32/8x1024x14x14/nhwc w=f32/512x1024x1x1/nhwc ; name=fh.f32.9
conv_backward_data dy=f32/8x512x14x14 w=f32/512x1024x1x1 dx=f32/8x1024x14x14 ; name=dc.f32.9
conv_backward_filter x=f32/8x1024x14x14/nhwc dy=f32/8x512x14x14/nhwc dw=f32/512x1024x1x1/nhwc ; name=wh.f32.9
conv_forward x=f16/8x80x14x14 w=f16/480x80x1x1 ; name=fc.f16.10
conv_backward_data dy=f16/8x480x14x14/nhwc w=f16/480x80x1x1/nhwc dx=f16/8x80x14x14/nhwc ; name=dh.f16.10
conv_backward_filter x=f16/8x80x14x14 dy=f16/8x480x14x14 dw=f16/480x80x1x1 ; name=wc.f16.10
conv_forward x=bf16/8x512x28x28/nhwc w=bf16/256x512x1x1/nhwc ; name=fh.bf16.11
conv_backward_data dy=bf16/8x256x28x28 w=bf16/256x512x1x1 dx=bf16/8x512x28x28 ; name=dc.bf16.11
conv_backward_filter x=bf16/8x512x28x28/nhwc dy=bf16/8x256x28x28/nhwc dw=bf16/256x512x1x1/nhwc ; name=wh.bf16.11
conv_forward x=f32/8x672x14x14 w=f32/672x1x5x5 pad=2 groups=672 ; name=fc.f32.12
conv_backward_data dy=f32/8x672x14x14/nhwc w=f32/672x1x5x5/nhwc dx=f32/8x672x14x14/nhwc pad=2 groups=672 ; name=dh.f32.12
conv_backward_filter x=f32/8x672x14x14 dy=f32/8x672x14x14 dw=f32/672x1x5x5 pad=2 groups=672 ; name=wc.f32.12
conv_forward x=f16/8x40x28x28/nhwc w=f16/240x40x1x1/nhwc ; name=fh.f16.13
conv_backward_data dy=f16/8x240x28x28 w=f16/240x40x1x1 dx=f16/8x40x28x28 ; name=dc.f16.13
conv_backward_filter x=f16/8x40x28x28/nhwc dy=f16/8x240x28x28/nhwc dw=f16/240x40x1x1/nhwc ; name=wh.f16.13
conv_forward x=bf16/8x256x56x56 w=bf16/128x256x1x1 ; name=fc.bf16.14
conv_backward_data dy=bf16/8x128x56x56/nhwc w=bf16/128x256x1x1/nhwc dx=bf16/8x256x56x56/nhwc ; name=dh.bf16.14
conv_backward_filter x=bf16/8x256x56x56 dy=bf16/8x128x56x56 dw=bf16/128x256x1x1 ; name=wc.bf16.14
conv_forward x=f32/8x1024x14x14/nhwc w=f32/2048x1024x1x1/nhwc stride=2 ; name=fh.f32.15
conv_backward_data dy=f32/8x2048x7x7 w=f32/2048x1024x1x1 dx=f32/8x1024x14x14 stride=2 ; name=dc.f32.15
conv_backward_filter x=f32/8x1024x14x14/nhwc dy=f32/8x2048x7x7/nhwc dw=f32/2048x1024x1x1/nhwc stride=2 ; name=wh.f32.15
conv_forward x=f16/8x16x112x112 w=f16/96x16x1x1 ; name=fc.f16.16
conv_backward_data dy=f16/8x96x112x112/nhwc w=f16/96x16x1x1/nhwc dx=f16/8x16x112x112/nhwc ; name=dh.f16.16
conv_backward_filter x=f16/8x16x112x112 dy=f16/8x96x112x112 dw=f16/96x16x1x1 ; name=wc.f16.16
conv_forward x=bf16/8x240x14x14/nhwc w=bf16/80x240x1x1/nhwc ; name=fh.bf16.17
conv_backward_data dy=bf16/8x80x14x14 w=bf16/80x240x1x1 dx=bf16/8x240x14x14 ; name=dc.bf16.17
conv_backward_filter x=bf16/8x240x14x14/nhwc dy=bf16/8x80x14x14/nhwc dw=bf16/80x240x1x1/nhwc ; name=wh.bf16.17
conv_forward x=f32/8x256x56x56 w=f32/512x256x1x1 stride=2 ; name=fc.f32.18
conv_backward_data dy=f32/8x512x28x28/nhwc w=f32/512x256x1x1/nhwc dx=f32/8x256x56x56/nhwc stride=2 ; name=dh.f32.18
conv_backward_filter x=f32/8x256x56x56 dy=f32/8x512x28x28 dw=f32/512x256x1x1 stride=2 ; name=wc.f32.18
conv_forward x=f16/8x3x224x224/nhwc w=f16/96x3x4x4/nhwc bias=f16/96 stride=4 ; name=fh.f16.19
conv_backward_data dy=f16/8x96x56x56 w=f16/96x3x4x4 dx=f16/8x3x224x224 stride=4 ; name=dc.f16.19
conv_backward_filter x=f16/8x3x224x224/nhwc dy=f16/8x96x56x56/nhwc dw=f16/96x3x4x4/nhwc stride=4 ; name=wh.f16.19
conv_forward x=bf16/8x512x28x28 w=bf16/1024x512x1x1 stride=2 ; name=fc.bf16.20
conv_backward_data dy=bf16/8x1024x14x14/nhwc w=bf16/1024x512x1x1/nhwc dx=bf16/8x512x28x28/nhwc stride=2 ; name=dh.bf16.20
conv_backward_filter x=bf16/8x512x28x28 dy=bf16/8x1024x14x14 dw=bf16/1024x512x1x1 stride=2 ; name=wc.bf16.20
conv_forward x=f32/8x96x112x112/nhwc w=f32/96x1x3x3/nhwc stride=2 pad=1 groups=96 ; name=fh.f32.21
conv_backward_data dy=f32/8x96x56x56 w=f32/96x1x3x3 dx=f32/8x96x112x112 stride=2 pad=1 groups=96 ; name=dc.f32.21
conv_backward_filter x=f32/8x96x112x112/nhwc dy=f32/8x96x56x56/nhwc dw=f32/96x1x3x3/nhwc stride=2 pad=1 groups=96 ; name=wh.f32.21
conv_forward x=f16/8x256x14x14 w=f16/256x256x3x3 pad=1 ; name=fc.f16.22
conv_backward_data dy=f16/8x256x14x14/nhwc w=f16/256x256x3x3/nhwc dx=f16/8x256x14x14/nhwc pad=1 ; name=dh.f16.22
conv_backward_filter x=f16/8x256x14x14 dy=f16/8x256x14x14 dw=f16/256x256x3x3 pad=1 ; name=wc.f16.22
conv_forward x=bf16/8x128x28x28/nhwc w=bf16/128x128x3x3/nhwc pad=1 ; name=fh.bf16.23
conv_backward_data dy=bf16/8x128x28x28 w=bf16/128x128x3x3 dx=bf16/8x128x28x28 pad=1 ; name=dc.bf16.23
conv_backward_filter x=bf16/8x128x28x28/nhwc dy=bf16/8x128x28x28/nhwc dw=bf16/128x128x3x3/nhwc pad=1 ; name=wh.bf16.23
conv_forward x=f32/8x192x7x7 w=f32/1152x192x1x1 ; name=fc.f32.24
conv_backward_data dy=f32/8x1152x7x7/nhwc w=f32/1152x192x1x1/nhwc dx=f32/8x192x7x7/nhwc ; name=dh.f32.24
conv_backward_filter x=f32/8x192x7x7 dy=f32/8x1152x7x7 dw=f32/1152x192x1x1 ; name=wc.f32.24
conv_forward x=f16/8x192x28x28/nhwc w=f16/192x1x3x3/nhwc pad=1 groups=192 ; name=fh.f16.25
conv_backward_data dy=f16/8x192x28x28 w=f16/192x1x3x3 dx=f16/8x192x28x28 pad=1 groups=192 ; name=dc.f16.25
conv_backward_filter x=f16/8x192x28x28/nhwc dy=f16/8x192x28x28/nhwc dw=f16/192x1x3x3/nhwc pad=1 groups=192 ; name=wh.f16.25
conv_forward x=bf16/8x1152x7x7 w=bf16/1152x1x5x5 pad=2 groups=1152 ; name=fc.bf16.26
conv_backward_data dy=bf16/8x1152x7x7/nhwc w=bf16/1152x1x5x5/nhwc dx=bf16/8x1152x7x7/nhwc pad=2 groups=1152 ; name=dh.bf16.26
conv_backward_filter x=bf16/8x1152x7x7 dy=bf16/8x1152x7x7 dw=bf16/1152x1x5x5 pad=2 groups=1152 ; name=wc.bf16.26
conv_forward x=f32/8x1152x7x7/nhwc w=f32/192x1152x1x1/nhwc ; name=fh.f32.27
conv_backward_data dy=f32/8x192x7x7 w=f32/192x1152x1x1 dx=f32/8x1152x7x7 ; name=dc.f32.27
conv_backward_filter x=f32/8x1152x7x7/nhwc dy=f32/8x192x7x7/nhwc dw=f32/192x1152x1x1/nhwc ; name=wh.f32.27
conv_forward x=f16/8x512x7x7 w=f16/512x512x3x3 pad=1 ; name=fc.f16.28
conv_backward_data dy=f16/8x512x7x7/nhwc w=f16/512x512x3x3/nhwc dx=f16/8x512x7x7/nhwc pad=1 ; name=dh.f16.28
conv_backward_filter x=f16/8x512x7x7 dy=f16/8x512x7x7 dw=f16/512x512x3x3 pad=1 ; name=wc.f16.28
conv_forward x=bf16/8x64x56x56/nhwc w=bf16/64x64x3x3/nhwc pad=1 ; name=fh.bf16.29
conv_backward_data dy=bf16/8x64x56x56 w=bf16/64x64x3x3 dx=bf16/8x64x56x56 pad=1 ; name=dc.bf16.29
conv_backward_filter x=bf16/8x64x56x56/nhwc dy=bf16/8x64x56x56/nhwc dw=bf16/64x64x3x3/nhwc pad=1 ; name=wh.bf16.29
conv_forward x=f32/8x256x56x56 w=f32/256x256x1x1 ; name=fc.f32.30
conv_backward_data dy=f32/8x256x56x56/nhwc w=f32/256x256x1x1/nhwc dx=f32/8x256x56x56/nhwc ; name=dh.f32.30
conv_backward_filter x=f32/8x256x56x56 dy=f32/8x256x56x56 dw=f32/256x256x1x1 ; name=wc.f32.30
conv_forward x=f16/8x480x14x14/nhwc w=f16/80x480x1x1/nhwc ; name=fh.f16.31
conv_backward_data dy=f16/8x80x14x14 w=f16/80x480x1x1 dx=f16/8x480x14x14 ; name=dc.f16.31
conv_backward_filter x=f16/8x480x14x14/nhwc dy=f16/8x80x14x14/nhwc dw=f16/80x480x1x1/nhwc ; name=wh.f16.31
conv_forward x=bf16/8x48x56x56 w=bf16/48x1x3x3 pad=1 groups=48 ; name=fc.bf16.32
conv_backward_data dy=bf16/8x48x56x56/nhwc w=bf16/48x1x3x3/nhwc dx=bf16/8x48x56x56/nhwc pad=1 groups=48 ; name=dh.bf16.32
conv_backward_filter x=bf16/8x48x56x56 dy=bf16/8x48x56x56 dw=bf16/48x1x3x3 pad=1 groups=48 ; name=wc.bf16.32
conv_forward x=f32/8x24x56x56/nhwc w=f32/144x24x1x1/nhwc ; name=fh.f32.33
conv_backward_data dy=f32/8x144x56x56 w=f32/144x24x1x1 dx=f32/8x24x56x56 ; name=dc.f32.33
conv_backward_filter x=f32/8x24x56x56/nhwc dy=f32/8x144x56x56/nhwc dw=f32/144x24x1x1/nhwc ; name=wh.f32.33
conv_forward x=f16/8x480x14x14 w=f16/480x1x3x3 pad=1 groups=480 ; name=fc.f16.34
conv_backward_data dy=f16/8x480x14x14/nhwc w=f16/480x1x3x3/nhwc dx=f16/8x480x14x14/nhwc pad=1 groups=480 ; name=dh.f16.34
conv_backward_filter x=f16/8x480x14x14 dy=f16/8x480x14x14 dw=f16/480x1x3x3 pad=1 groups=480 ; name=wc.f16.34
conv_forward x=bf16/8x480x14x14/nhwc w=bf16/480x1x5x5/nhwc pad=2 groups=480 ; name=fh.bf16.35
conv_backward_data dy=bf16/8x480x14x14 w=bf16/480x1x5x5 dx=bf16/8x480x14x14 pad=2 groups=480 ; name=dc.bf16.35
conv_backward_filter x=bf16/8x480x14x14/nhwc dy=bf16/8x480x14x14/nhwc dw=bf16/480x1x5x5/nhwc pad=2 groups=480 ; name=wh.bf16.35
conv_forward x=f32/8x64x56x56 w=f32/64x64x1x1 ; name=fc.f32.36
conv_backward_data dy=f32/8x64x56x56/nhwc w=f32/64x64x1x1/nhwc dx=f32/8x64x56x56/nhwc ; name=dh.f32.36
conv_backward_filter x=f32/8x64x56x56 dy=f32/8x64x56x56 dw=f32/64x64x1x1 ; name=wc.f32.36
conv_forward x=f16/8x128x56x56/nhwc w=f16/128x128x1x1/nhwc ; name=fh.f16.37
conv_backward_data dy=f16/8x128x56x56 w=f16/128x128x1x1 dx=f16/8x128x56x56 ; name=dc.f16.37
conv_backward_filter x=f16/8x128x56x56/nhwc dy=f16/8x128x56x56/nhwc dw=f16/128x128x1x1/nhwc ; name=wh.f16.37
conv_forward x=bf16/8x256x56x56 w=bf16/256x1x3x3 pad=1 groups=256 ; name=fc.bf16.38
conv_backward_data dy=bf16/8x256x56x56/nhwc w=bf16/256x1x3x3/nhwc dx=bf16/8x256x56x56/nhwc pad=1 groups=256 ; name=dh.bf16.38
conv_backward_filter x=bf16/8x256x56x56 dy=bf16/8x256x56x56 dw=bf16/256x1x3x3 pad=1 groups=256 ; name=wc.bf16.38
conv_forward x=f32/4x512x999 w=f32/512x512x2 stride=2 ; name=fc.f32.39
conv_backward_data dy=f32/4x512x499 w=f32/512x512x2 dx=f32/4x512x999 stride=2 ; name=dc.f32.39
conv_backward_filter x=f32/4x512x999 dy=f32/4x512x499 dw=f32/512x512x2 stride=2 ; name=wc.f32.39
conv_forward x=f16/8x192x28x28 w=f16/384x192x2x2 bias=f16/384 stride=2 ; name=fc.f16.40
conv_backward_data dy=f16/8x384x14x14/nhwc w=f16/384x192x2x2/nhwc dx=f16/8x192x28x28/nhwc stride=2 ; name=dh.f16.40
conv_backward_filter x=f16/8x192x28x28 dy=f16/8x384x14x14 dw=f16/384x192x2x2 stride=2 ; name=wc.f16.40
conv_forward x=bf16/8x240x28x28/nhwc w=bf16/240x1x3x3/nhwc stride=2 pad=1 groups=240 ; name=fh.bf16.41
conv_backward_data dy=bf16/8x240x14x14 w=bf16/240x1x3x3 dx=bf16/8x240x28x28 stride=2 pad=1 groups=240 ; name=dc.bf16.41
conv_backward_filter x=bf16/8x240x28x28/nhwc dy=bf16/8x240x14x14/nhwc dw=bf16/240x1x3x3/nhwc stride=2 pad=1 groups=240 ; name=wh.bf16.41
conv_forward x=f32/8x320x7x7 w=f32/1280x320x1x1 ; name=fc.f32.42
conv_backward_data dy=f32/8x1280x7x7/nhwc w=f32/1280x320x1x1/nhwc dx=f32/8x320x7x7/nhwc ; name=dh.f32.42
conv_backward_filter x=f32/8x320x7x7 dy=f32/8x1280x7x7 dw=f32/1280x320x1x1 ; name=wc.f32.42
conv_forward x=f16/8x32x112x112/nhwc w=f16/64x32x3x3/nhwc pad=1 ; name=fh.f16.43
conv_backward_data dy=f16/8x64x112x112 w=f16/64x32x3x3 dx=f16/8x32x112x112 pad=1 ; name=dc.f16.43
conv_backward_filter x=f16/8x32x112x112/nhwc dy=f16/8x64x112x112/nhwc dw=f16/64x32x3x3/nhwc pad=1 ; name=wh.f16.43
conv_forward x=bf16/8x384x14x14 w=bf16/768x384x2x2 bias=bf16/768 stride=2 ; name=fc.bf16.44
conv_backward_data dy=bf16/8x768x7x7/nhwc w=bf16/768x384x2x2/nhwc dx=bf16/8x384x14x14/nhwc stride=2 ; name=dh.bf16.44
conv_backward_filter x=bf16/8x384x14x14 dy=bf16/8x768x7x7 dw=bf16/768x384x2x2 stride=2 ; name=wc.bf16.44
conv_forward x=f32/8x3x224x224/nhwc w=f32/24x3x3x3/nhwc stride=2 pad=1 ; name=fh.f32.45
conv_backward_data dy=f32/8x24x112x112 w=f32/24x3x3x3 dx=f32/8x3x224x224 stride=2 pad=1 ; name=dc.f32.45
conv_backward_filter x=f32/8x3x224x224/nhwc dy=f32/8x24x112x112/nhwc dw=f32/24x3x3x3/nhwc stride=2 pad=1 ; name=wh.f32.45
conv_forward x=f16/8x480x14x14 w=f16/112x480x1x1 ; name=fc.f16.46
conv_backward_data dy=f16/8x112x14x14/nhwc w=f16/112x480x1x1/nhwc dx=f16/8x480x14x14/nhwc ; name=dh.f16.46
conv_backward_filter x=f16/8x480x14x14 dy=f16/8x112x14x14 dw=f16/112x480x1x1 ; name=wc.f16.46
conv_forward x=bf16/8x64x56x56/nhwc w=bf16/128x64x1x1/nhwc ; name=fh.bf16.47
conv_backward_data dy=bf16/8x128x56x56 w=bf16/128x64x1x1 dx=bf16/8x64x56x56 ; name=dc.bf16.47
conv_backward_filter x=bf16/8x64x56x56/nhwc dy=bf16/8x128x56x56/nhwc dw=bf16/128x64x1x1/nhwc ; name=wh.bf16.47
conv_forward x=f32/8x72x56x56 w=f32/72x1x5x5 stride=2 pad=2 groups=72 ; name=fc.f32.48
conv_backward_data dy=f32/8x72x28x28/nhwc w=f32/72x1x5x5/nhwc dx=f32/8x72x56x56/nhwc stride=2 pad=2 groups=72 ; name=dh.f32.48
conv_backward_filter x=f32/8x72x56x56 dy=f32/8x72x28x28 dw=f32/72x1x5x5 stride=2 pad=2 groups=72 ; name=wc.f32.48
conv_forward x=f16/8x96x56x56/nhwc w=f16/24x96x1x1/nhwc ; name=fh.f16.49
conv_backward_data dy=f16/8x24x56x56 w=f16/24x96x1x1 dx=f16/8x96x56x56 ; name=dc.f16.49
conv_backward_filter x=f16/8x96x56x56/nhwc dy=f16/8x24x56x56/nhwc dw=f16/24x96x1x1/nhwc ; name=wh.f16.49
conv_forward x=bf16/8x96x56x56 w=bf16/192x96x2x2 bias=bf16/192 stride=2 ; name=fc.bf16.50
conv_backward_data dy=bf16/8x192x28x28/nhwc w=bf16/192x96x2x2/nhwc dx=bf16/8x96x56x56/nhwc stride=2 ; name=dh.bf16.50
conv_backward_filter x=bf16/8x96x56x56 dy=bf16/8x192x28x28 dw=bf16/192x96x2x2 stride=2 ; name=wc.bf16.50
conv_forward x=f32/8x1024x14x14/nhwc w=f32/1024x1024x1x1/nhwc ; name=fh.f32.51
conv_backward_data dy=f32/8x1024x14x14 w=f32/1024x1024x1x1 dx=f32/8x1024x14x14 ; name=dc.f32.51
conv_backward_filter x=f32/8x1024x14x14/nhwc dy=f32/8x1024x14x14/nhwc dw=f32/1024x1024x1x1/nhwc ; name=wh.f32.51
conv_forward x=f16/8x1536x14x14 w=f16/384x1536x1x1 bias=f16/384 ; name=fc.f16.52
conv_backward_data dy=f16/8x384x14x14/nhwc w=f16/384x1536x1x1/nhwc dx=f16/8x1536x14x14/nhwc ; name=dh.f16.52
conv_backward_filter x=f16/8x1536x14x14 dy=f16/8x384x14x14 dw=f16/384x1536x1x1 ; name=wc.f16.52
conv_forward x=bf16/8x192x28x28/nhwc w=bf16/192x192x1x1/nhwc ; name=fh.bf16.53
conv_backward_data dy=bf16/8x192x28x28 w=bf16/192x192x1x1 dx=bf16/8x192x28x28 ; name=dc.bf16.53
conv_backward_filter x=bf16/8x192x28x28/nhwc dy=bf16/8x192x28x28/nhwc dw=bf16/192x192x1x1/nhwc ; name=wh.bf16.53
conv_forward x=f32/8x160x14x14 w=f32/960x160x1x1 ; name=fc.f32.54
conv_backward_data dy=f32/8x960x14x14/nhwc w=f32/960x160x1x1/nhwc dx=f32/8x160x14x14/nhwc ; name=dh.f32.54
conv_backward_filter x=f32/8x160x14x14 dy=f32/8x960x14x14 dw=f32/960x160x1x1 ; name=wc.f32.54
conv_forward x=f16/8x256x14x14/nhwc w=f16/1024x256x1x1/nhwc ; name=fh.f16.55
conv_backward_data dy=f16/8x1024x14x14 w=f16/1024x256x1x1 dx=f16/8x256x14x14 ; name=dc.f16.55
conv_backward_filter x=f16/8x256x14x14/nhwc dy=f16/8x1024x14x14/nhwc dw=f16/1024x256x1x1/nhwc ; name=wh.f16.55
conv_forward x=bf16/8x28x1x1 w=bf16/672x28x1x1 bias=bf16/672 ; name=fc.bf16.56
conv_backward_data dy=bf16/8x672x1x1 w=bf16/672x28x1x1 dx=bf16/8x28x1x1 ; name=dc.bf16.56
conv_backward_filter x=bf16/8x28x1x1 dy=bf16/8x672x1x1 dw=bf16/672x28x1x1 ; name=wc.bf16.56
conv_forward x=f32/8x512x14x14/nhwc w=f32/1024x512x1x1/nhwc ; name=fh.f32.57
conv_backward_data dy=f32/8x1024x14x14 w=f32/1024x512x1x1 dx=f32/8x512x14x14 ; name=dc.f32.57
conv_backward_filter x=f32/8x512x14x14/nhwc dy=f32/8x1024x14x14/nhwc dw=f32/1024x512x1x1/nhwc ; name=wh.f32.57
conv_forward x=f16/8x672x1x1 w=f16/28x672x1x1 bias=f16/28 ; name=fc.f16.58
conv_backward_data dy=f16/8x28x1x1 w=f16/28x672x1x1 dx=f16/8x672x1x1 ; name=dc.f16.58
conv_backward_filter x=f16/8x672x1x1 dy=f16/8x28x1x1 dw=f16/28x672x1x1 ; name=wc.f16.58
conv_forward x=bf16/8x512x14x14/nhwc w=bf16/512x512x1x1/nhwc ; name=fh.bf16.59
conv_backward_data dy=bf16/8x512x14x14 w=bf16/512x512x1x1 dx=bf16/8x512x14x14 ; name=dc.bf16.59
conv_backward_filter x=bf16/8x512x14x14/nhwc dy=bf16/8x512x14x14/nhwc dw=bf16/512x512x1x1/nhwc ; name=wh.bf16.59
conv_forward x=bf16/8x128x28x28 w=bf16/512x128x1x1 ; name=fc.bf16.60
conv_backward_data dy=bf16/8x512x28x28/nhwc w=bf16/512x128x1x1/nhwc dx=bf16/8x128x28x28/nhwc ; name=dh.bf16.60
conv_backward_filter x=bf16/8x128x28x28 dy=bf16/8x512x28x28 dw=bf16/512x128x1x1 ; name=wc.bf16.60
conv_forward x=f32/8x256x28x28/nhwc w=f32/512x256x1x1/nhwc ; name=fh.f32.61
conv_backward_data dy=f32/8x512x28x28 w=f32/512x256x1x1 dx=f32/8x256x28x28 ; name=dc.f32.61
conv_backward_filter x=f32/8x256x28x28/nhwc dy=f32/8x512x28x28/nhwc dw=f32/512x256x1x1/nhwc ; name=wh.f32.61
conv_forward x=f16/8x512x28x28 w=f16/512x512x1x1 ; name=fc.f16.62
conv_backward_data dy=f16/8x512x28x28/nhwc w=f16/512x512x1x1/nhwc dx=f16/8x512x28x28/nhwc ; name=dh.f16.62
conv_backward_filter x=f16/8x512x28x28 dy=f16/8x512x28x28 dw=f16/512x512x1x1 ; name=wc.f16.62
conv_forward x=bf16/8x512x14x14/nhwc w=bf16/128x512x1x1/nhwc ; name=fh.bf16.63
conv_backward_data dy=bf16/8x128x14x14 w=bf16/128x512x1x1 dx=bf16/8x512x14x14 ; name=dc.bf16.63
conv_backward_filter x=bf16/8x512x14x14/nhwc dy=bf16/8x128x14x14/nhwc dw=bf16/128x512x1x1/nhwc ; name=wh.bf16.63
conv_forward x=f32/8x1024x7x7 w=f32/2048x1024x1x1 ; name=fc.f32.64
conv_backward_data dy=f32/8x2048x7x7/nhwc w=f32/2048x1024x1x1/nhwc dx=f32/8x1024x7x7/nhwc ; name=dh.f32.64
conv_backward_filter x=f32/8x1024x7x7 dy=f32/8x2048x7x7 dw=f32/2048x1024x1x1 ; name=wc.f32.64
conv_forward x=f16/8x128x14x14/nhwc w=f16/512x128x1x1/nhwc ; name=fh.f16.65
conv_backward_data dy=f16/8x512x14x14 w=f16/512x128x1x1 dx=f16/8x128x14x14 ; name=dc.f16.65
conv_backward_filter x=f16/8x128x14x14/nhwc dy=f16/8x512x14x14/nhwc dw=f16/512x128x1x1/nhwc ; name=wh.f16.65
conv_forward x=bf16/8x128x56x56 w=bf16/256x128x1x1 ; name=fc.bf16.66
conv_backward_data dy=bf16/8x256x56x56/nhwc w=bf16/256x128x1x1/nhwc dx=bf16/8x128x56x56/nhwc ; name=dh.bf16.66
conv_backward_filter x=bf16/8x128x56x56 dy=bf16/8x256x56x56 dw=bf16/256x128x1x1 ; name=wc.bf16.66
conv_forward x=f32/8x160x7x7/nhwc w=f32/960x160x1x1/nhwc ; name=fh.f32.67
conv_backward_data dy=f32/8x960x7x7 w=f32/960x160x1x1 dx=f32/8x160x7x7 ; name=dc.f32.67
conv_backward_filter x=f32/8x160x7x7/nhwc dy=f32/8x960x7x7/nhwc dw=f32/960x160x1x1/nhwc ; name=wh.f32.67
conv_forward x=f16/8x24x56x56 w=f16/72x24x1x1 ; name=fc.f16.68
conv_backward_data dy=f16/8x72x56x56/nhwc w=f16/72x24x1x1/nhwc dx=f16/8x24x56x56/nhwc ; name=dh.f16.68
conv_backward_filter x=f16/8x24x56x56 dy=f16/8x72x56x56 dw=f16/72x24x1x1 ; name=wc.f16.68
conv_forward x=bf16/8x512x7x7/nhwc w=bf16/2048x512x1x1/nhwc ; name=fh.bf16.69
conv_backward_data dy=bf16/8x2048x7x7 w=bf16/2048x512x1x1 dx=bf16/8x512x7x7 ; name=dc.bf16.69
conv_backward_filter x=bf16/8x512x7x7/nhwc dy=bf16/8x2048x7x7/nhwc dw=bf16/2048x512x1x1/nhwc ; name=wh.bf16.69
conv_forward x=f32/8x168x1x1 w=f32/672x168x1x1 bias=f32/672 ; name=fc.f32.70
conv_backward_data dy=f32/8x672x1x1 w=f32/672x168x1x1 dx=f32/8x168x1x1 ; name=dc.f32.70
conv_backward_filter x=f32/8x168x1x1 dy=f32/8x672x1x1 dw=f32/672x168x1x1 ; name=wc.f32.70
conv_forward x=f16/8x256x56x56/nhwc w=f16/64x256x1x1/nhwc ; name=fh.f16.71
conv_backward_data dy=f16/8x64x56x56 w=f16/64x256x1x1 dx=f16/8x256x56x56 ; name=dc.f16.71
conv_backward_filter x=f16/8x256x56x56/nhwc dy=f16/8x64x56x56/nhwc dw=f16/64x256x1x1/nhwc ; name=wh.f16.71
conv_forward x=bf16/8x672x1x1 w=bf16/168x672x1x1 bias=bf16/168 ; name=fc.bf16.72
conv_backward_data dy=bf16/8x168x1x1 w=bf16/168x672x1x1 dx=bf16/8x672x1x1 ; name=dc.bf16.72
conv_backward_filter x=bf16/8x672x1x1 dy=bf16/8x168x1x1 dw=bf16/168x672x1x1 ; name=wc.bf16.72
conv_forward x=f32/8x96x28x28/nhwc w=f32/192x96x1x1/nhwc ; name=fh.f32.73
conv_backward_data dy=f32/8x192x28x28 w=f32/192x96x1x1 dx=f32/8x96x28x28 ; name=dc.f32.73
conv_backward_filter x=f32/8x96x28x28/nhwc dy=f32/8x192x28x28/nhwc dw=f32/192x96x1x1/nhwc ; name=wh.f32.73
conv_forward x=f16/8x144x1x1 w=f16/6x144x1x1 bias=f16/6 ; name=fc.f16.74
conv_backward_data dy=f16/8x6x1x1 w=f16/6x144x1x1 dx=f16/8x144x1x1 ; name=dc.f16.74
conv_backward_filter x=f16/8x144x1x1 dy=f16/8x6x1x1 dw=f16/6x144x1x1 ; name=wc.f16.74
conv_forward x=bf16/8x192x28x28/nhwc w=bf16/32x192x1x1/nhwc ; name=fh.bf16.75
conv_backward_data dy=bf16/8x32x28x28 w=bf16/32x192x1x1 dx=bf16/8x192x28x28 ; name=dc.bf16.75
conv_backward_filter x=bf16/8x192x28x28/nhwc dy=bf16/8x32x28x28/nhwc dw=bf16/32x192x1x1/nhwc ; name=wh.bf16.75
conv_forward x=f16/8x40x28x28 w=f16/120x40x1x1 ; name=fc.f16.76
conv_backward_data dy=f16/8x120x28x28/nhwc w=f16/120x40x1x1/nhwc dx=f16/8x40x28x28/nhwc ; name=dh.f16.76
conv_backward_filter x=f16/8x40x28x28 dy=f16/8x120x28x28 dw=f16/120x40x1x1 ; name=wc.f16.76
conv_forward x=bf16/8x6x1x1 w=bf16/144x6x1x1 bias=bf16/144 ; name=fc.bf16.77
conv_backward_data dy=bf16/8x144x1x1 w=bf16/144x6x1x1 dx=bf16/8x6x1x1 ; name=dc.bf16.77
conv_backward_filter x=bf16/8x6x1x1 dy=bf16/8x144x1x1 dw=bf16/144x6x1x1 ; name=wc.bf16.77
conv_forward x=f32/8x96x56x56 w=f32/96x96x1x1 ; name=fc.f32.78
conv_backward_data dy=f32/8x96x56x56/nhwc w=f32/96x96x1x1/nhwc dx=f32/8x96x56x56/nhwc ; name=dh.f32.78
conv_backward_filter x=f32/8x96x56x56 dy=f32/8x96x56x56 dw=f32/96x96x1x1 ; name=wc.f32.78
conv_forward x=f16/8x120x1x1 w=f16/480x120x1x1 bias=f16/480 ; name=fc.f16.79
conv_backward_data dy=f16/8x480x1x1 w=f16/480x120x1x1 dx=f16/8x120x1x1 ; name=dc.f16.79
conv_backward_filter x=f16/8x120x1x1 dy=f16/8x480x1x1 dw=f16/480x120x1x1 ; name=wc.f16.79
conv_forward x=bf16/8x256x28x28 w=bf16/128x256x1x1 ; name=fc.bf16.80
conv_backward_data dy=bf16/8x128x28x28/nhwc w=bf16/128x256x1x1/nhwc dx=bf16/8x256x28x28/nhwc ; name=dh.bf16.80
conv_backward_filter x=bf16/8x256x28x28 dy=bf16/8x128x28x28 dw=bf16/128x256x1x1 ; name=wc.bf16.80
conv_forward x=f32/8x256x28x28/nhwc w=f32/256x256x1x1/nhwc ; name=fh.f32.81
conv_backward_data dy=f32/8x256x28x28 w=f32/256x256x1x1 dx=f32/8x256x28x28 ; name=dc.f32.81
conv_backward_filter x=f32/8x256x28x28/nhwc dy=f32/8x256x28x28/nhwc dw=f32/256x256x1x1/nhwc ; name=wh.f32.81
conv_forward x=f16/8x480x1x1 w=f16/120x480x1x1 bias=f16/120 ; name=fc.f16.82
conv_backward_data dy=f16/8x120x1x1 w=f16/120x480x1x1 dx=f16/8x480x1x1 ; name=dc.f16.82
conv_backward_filter x=f16/8x480x1x1 dy=f16/8x120x1x1 dw=f16/120x480x1x1 ; name=wc.f16.82
conv_forward x=bf16/8x72x56x56/nhwc w=bf16/24x72x1x1/nhwc ; name=fh.bf16.83
conv_backward_data dy=bf16/8x24x56x56 w=bf16/24x72x1x1 dx=bf16/8x72x56x56 ; name=dc.bf16.83
conv_backward_filter x=bf16/8x72x56x56/nhwc dy=bf16/8x24x56x56/nhwc dw=bf16/24x72x1x1/nhwc ; name=wh.bf16.83
conv_forward x=f32/4x1x160000 w=f32/512x1x10 stride=5 ; name=fc.f32.84
conv_backward_data dy=f32/4x512x31999 w=f32/512x1x10 dx=f32/4x1x160000 stride=5 ; name=dc.f32.84
conv_backward_filter x=f32/4x1x160000 dy=f32/4x512x31999 dw=f32/512x1x10 stride=5 ; name=wc.f32.84
conv_forward x=f16/4x512x15999 w=f16/512x512x3 stride=2 ; name=fc.f16.85
conv_backward_data dy=f16/4x512x7999 w=f16/512x512x3 dx=f16/4x512x15999 stride=2 ; name=dc.f16.85
conv_backward_filter x=f16/4x512x15999 dy=f16/4x512x7999 dw=f16/512x512x3 stride=2 ; name=wc.f16.85
conv_forward x=bf16/4x512x1999 w=bf16/512x512x2 stride=2 ; name=fc.bf16.86
conv_backward_data dy=bf16/4x512x999 w=bf16/512x512x2 dx=bf16/4x512x1999 stride=2 ; name=dc.bf16.86
conv_backward_filter x=bf16/4x512x1999 dy=bf16/4x512x999 dw=bf16/512x512x2 stride=2 ; name=wc.bf16.86
conv_forward x=f32/4x512x31999 w=f32/512x512x3 stride=2 ; name=fc.f32.87
conv_backward_data dy=f32/4x512x15999 w=f32/512x512x3 dx=f32/4x512x31999 stride=2 ; name=dc.f32.87
conv_backward_filter x=f32/4x512x31999 dy=f32/4x512x15999 dw=f32/512x512x3 stride=2 ; name=wc.f32.87
conv_forward x=f16/4x512x3999 w=f16/512x512x3 stride=2 ; name=fc.f16.88
conv_backward_data dy=f16/4x512x1999 w=f16/512x512x3 dx=f16/4x512x3999 stride=2 ; name=dc.f16.88
conv_backward_filter x=f16/4x512x3999 dy=f16/4x512x1999 dw=f16/512x512x3 stride=2 ; name=wc.f16.88
conv_forward x=bf16/4x512x7999 w=bf16/512x512x3 stride=2 ; name=fc.bf16.89
conv_backward_data dy=bf16/4x512x3999 w=bf16/512x512x3 dx=bf16/4x512x7999 stride=2 ; name=dc.bf16.89
conv_backward_filter x=bf16/4x512x7999 dy=bf16/4x512x3999 dw=bf16/512x512x3 stride=2 ; name=wc.bf16.89
conv_forward x=f32/8x1152x7x7 w=f32/1152x1x3x3 pad=1 groups=1152 ; name=fc.f32.90
conv_backward_data dy=f32/8x1152x7x7/nhwc w=f32/1152x1x3x3/nhwc dx=f32/8x1152x7x7/nhwc pad=1 groups=1152 ; name=dh.f32.90
conv_backward_filter x=f32/8x1152x7x7 dy=f32/8x1152x7x7 dw=f32/1152x1x3x3 pad=1 groups=1152 ; name=wc.f32.90
conv_forward x=f16/8x1152x7x7/nhwc w=f16/320x1152x1x1/nhwc ; name=fh.f16.91
conv_backward_data dy=f16/8x320x7x7 w=f16/320x1152x1x1 dx=f16/8x1152x7x7 ; name=dc.f16.91
conv_backward_filter x=f16/8x1152x7x7/nhwc dy=f16/8x320x7x7/nhwc dw=f16/320x1152x1x1/nhwc ; name=wh.f16.91
conv_forward x=bf16/8x144x56x56 w=bf16/144x1x3x3 pad=1 groups=144 ; name=fc.bf16.92
conv_backward_data dy=bf16/8x144x56x56/nhwc w=bf16/144x1x3x3/nhwc dx=bf16/8x144x56x56/nhwc pad=1 groups=144 ; name=dh.bf16.92
conv_backward_filter x=bf16/8x144x56x56 dy=bf16/8x144x56x56 dw=bf16/144x1x3x3 pad=1 groups=144 ; name=wc.bf16.92
conv_forward x=f32/8x144x56x56/nhwc w=f32/144x1x5x5/nhwc stride=2 pad=2 groups=144 ; name=fh.f32.93
conv_backward_data dy=f32/8x144x28x28 w=f32/144x1x5x5 dx=f32/8x144x56x56 stride=2 pad=2 groups=144 ; name=dc.f32.93
conv_backward_filter x=f32/8x144x56x56/nhwc dy=f32/8x144x28x28/nhwc dw=f32/144x1x5x5/nhwc stride=2 pad=2 groups=144 ; name=wh.f32.93
conv_forward x=f16/8x144x56x56 w=f16/24x144x1x1 ; name=fc.f16.94
conv_backward_data dy=f16/8x24x56x56/nhwc w=f16/24x144x1x1/nhwc dx=f16/8x144x56x56/nhwc ; name=dh.f16.94
conv_backward_filter x=f16/8x144x56x56 dy=f16/8x24x56x56 dw=f16/24x144x1x1 ; name=wc.f16.94
conv_forward x=bf16/8x16x112x112/nhwc w=bf16/16x1x3x3/nhwc pad=1 groups=16 ; name=fh.bf16.95
conv_backward_data dy=bf16/8x16x112x112 w=bf16/16x1x3x3 dx=bf16/8x16x112x112 pad=1 groups=16 ; name=dc.bf16.95
conv_backward_filter x=bf16/8x16x112x112/nhwc dy=bf16/8x16x112x112/nhwc dw=bf16/16x1x3x3/nhwc pad=1 groups=16 ; name=wh.bf16.95
conv_forward x=f32/8x240x28x28 w=f32/240x1x5x5 pad=2 groups=240 ; name=fc.f32.96
conv_backward_data dy=f32/8x240x28x28/nhwc w=f32/240x1x5x5/nhwc dx=f32/8x240x28x28/nhwc pad=2 groups=240 ; name=dh.f32.96
conv_backward_filter x=f32/8x240x28x28 dy=f32/8x240x28x28 dw=f32/240x1x5x5 pad=2 groups=240 ; name=wc.f32.96
conv_forward x=f16/8x240x28x28/nhwc w=f16/40x240x1x1/nhwc ; name=fh.f16.97
conv_backward_data dy=f16/8x40x28x28 w=f16/40x240x1x1 dx=f16/8x240x28x28 ; name=dc.f16.97
conv_backward_filter x=f16/8x240x28x28/nhwc dy=f16/8x40x28x28/nhwc dw=f16/40x240x1x1/nhwc ; name=wh.f16.97
conv_forward x=bf16/8x3x224x224 w=bf16/64x3x3x3 stride=2 pad=1 ; name=fc.bf16.98
conv_backward_data dy=bf16/8x64x112x112/nhwc w=bf16/64x3x3x3/nhwc dx=bf16/8x3x224x224/nhwc stride=2 pad=1 ; name=dh.bf16.98
conv_backward_filter x=bf16/8x3x224x224 dy=bf16/8x64x112x112 dw=bf16/64x3x3x3 stride=2 pad=1 ; name=wc.bf16.98
conv_forward x=f32/8x3x224x224/nhwc w=f32/768x3x16x16/nhwc bias=f32/768 stride=16 ; name=fh.f32.99
conv_backward_data dy=f32/8x768x14x14 w=f32/768x3x16x16 dx=f32/8x3x224x224 stride=16 ; name=dc.f32.99
conv_backward_filter x=f32/8x3x224x224/nhwc dy=f32/8x768x14x14/nhwc dw=f32/768x3x16x16/nhwc stride=16 ; name=wh.f32.99
conv_forward x=f16/8x48x112x112 w=f16/48x1x3x3 stride=2 pad=1 groups=48 ; name=fc.f16.100
conv_backward_data dy=f16/8x48x56x56/nhwc w=f16/48x1x3x3/nhwc dx=f16/8x48x112x112/nhwc stride=2 pad=1 groups=48 ; name=dh.f16.100
conv_backward_filter x=f16/8x48x112x112 dy=f16/8x48x56x56 dw=f16/48x1x3x3 stride=2 pad=1 groups=48 ; name=wc.f16.100
conv_forward x=bf16/8x672x7x7/nhwc w=bf16/192x672x1x1/nhwc ; name=fh.bf16.101
conv_backward_data dy=bf16/8x192x7x7 w=bf16/192x672x1x1 dx=bf16/8x672x7x7 ; name=dc.bf16.101
conv_backward_filter x=bf16/8x672x7x7/nhwc dy=bf16/8x192x7x7/nhwc dw=bf16/192x672x1x1/nhwc ; name=wh.bf16.101
conv_forward x=f32/8x72x28x28 w=f32/40x72x1x1 ; name=fc.f32.102
conv_backward_data dy=f32/8x40x28x28/nhwc w=f32/40x72x1x1/nhwc dx=f32/8x72x28x28/nhwc ; name=dh.f32.102
conv_backward_filter x=f32/8x72x28x28 dy=f32/8x40x28x28 dw=f32/40x72x1x1 ; name=wc.f32.102
conv_forward x=f16/8x960x1x1 w=f16/1280x960x1x1 bias=f16/1280 ; name=fc.f16.103
conv_backward_data dy=f16/8x1280x1x1 w=f16/1280x960x1x1 dx=f16/8x960x1x1 ; name=dc.f16.103
conv_backward_filter x=f16/8x960x1x1 dy=f16/8x1280x1x1 dw=f16/1280x960x1x1 ; name=wc.f16.103
conv_forward x=bf16/8x1632x1x1 w=bf16/68x1632x1x1 bias=bf16/68 ; name=fc.bf16.104
conv_backward_data dy=bf16/8x68x1x1 w=bf16/68x1632x1x1 dx=bf16/8x1632x1x1 ; name=dc.bf16.104
conv_backward_filter x=bf16/8x1632x1x1 dy=bf16/8x68x1x1 dw=bf16/68x1632x1x1 ; name=wc.bf16.104
conv_forward x=f32/8x272x7x7/nhwc w=f32/1632x272x1x1/nhwc ; name=fh.f32.105
conv_backward_data dy=f32/8x1632x7x7 w=f32/1632x272x1x1 dx=f32/8x272x7x7 ; name=dc.f32.105
conv_backward_filter x=f32/8x272x7x7/nhwc dy=f32/8x1632x7x7/nhwc dw=f32/1632x272x1x1/nhwc ; name=wh.f32.105
conv_forward x=f16/8x68x1x1 w=f16/1632x68x1x1 bias=f16/1632 ; name=fc.f16.106
conv_backward_data dy=f16/8x1632x1x1 w=f16/1632x68x1x1 dx=f16/8x68x1x1 ; name=dc.f16.106
conv_backward_filter x=f16/8x68x1x1 dy=f16/8x1632x1x1 dw=f16/1632x68x1x1 ; name=wc.f16.106
conv_forward x=bf16/8x1632x7x7/nhwc w=bf16/272x1632x1x1/nhwc ; name=fh.bf16.107
conv_backward_data dy=bf16/8x272x7x7 w=bf16/272x1632x1x1 dx=bf16/8x1632x7x7 ; name=dc.bf16.107
conv_backward_filter x=bf16/8x1632x7x7/nhwc dy=bf16/8x272x7x7/nhwc dw=bf16/272x1632x1x1/nhwc ; name=wh.bf16.107
conv_forward x=f32/8x192x14x14 w=f32/192x1x1x1 groups=192 ; name=fc.f32.108
conv_backward_data dy=f32/8x192x14x14/nhwc w=f32/192x1x1x1/nhwc dx=f32/8x192x14x14/nhwc groups=192 ; name=dh.f32.108
conv_backward_filter x=f32/8x192x14x14 dy=f32/8x192x14x14 dw=f32/192x1x1x1 groups=192 ; name=wc.f32.108
conv_forward x=f16/8x192x14x14/nhwc w=f16/192x1x3x3/nhwc pad=1 groups=192 ; name=fh.f16.109
conv_backward_data dy=f16/8x192x14x14 w=f16/192x1x3x3 dx=f16/8x192x14x14 pad=1 groups=192 ; name=dc.f16.109
conv_backward_filter x=f16/8x192x14x14/nhwc dy=f16/8x192x14x14/nhwc dw=f16/192x1x3x3/nhwc pad=1 groups=192 ; name=wh.f16.109
conv_forward x=bf16/8x384x14x14 w=bf16/384x384x1x1 bias=bf16/384 ; name=fc.bf16.110
conv_backward_data dy=bf16/8x384x14x14/nhwc w=bf16/384x384x1x1/nhwc dx=bf16/8x384x14x14/nhwc ; name=dh.bf16.110
conv_backward_filter x=bf16/8x384x14x14 dy=bf16/8x384x14x14 dw=bf16/384x384x1x1 ; name=wc.bf16.110
conv_forward x=f32/8x192x14x14/nhwc w=f32/384x192x1x1/nhwc ; name=fh.f32.111
conv_backward_data dy=f32/8x384x14x14 w=f32/384x192x1x1 dx=f32/8x192x14x14 ; name=dc.f32.111
conv_backward_filter x=f32/8x192x14x14/nhwc dy=f32/8x384x14x14/nhwc dw=f32/384x192x1x1/nhwc ; name=wh.f32.111
conv_forward x=f16/8x512x14x14 w=f16/512x16x3x3 pad=1 groups=32 ; name=fc.f16.112
conv_backward_data dy=f16/8x512x14x14/nhwc w=f16/512x16x3x3/nhwc dx=f16/8x512x14x14/nhwc pad=1 groups=32 ; name=dh.f16.112
conv_backward_filter x=f16/8x512x14x14 dy=f16/8x512x14x14 dw=f16/512x16x3x3 pad=1 groups=32 ; name=wc.f16.112
conv_forward x=bf16/8x1632x7x7/nhwc w=bf16/1632x1x3x3/nhwc pad=1 groups=1632 ; name=fh.bf16.113
conv_backward_data dy=bf16/8x1632x7x7 w=bf16/1632x1x3x3 dx=bf16/8x1632x7x7 pad=1 groups=1632 ; name=dc.bf16.113
conv_backward_filter x=bf16/8x1632x7x7/nhwc dy=bf16/8x1632x7x7/nhwc dw=bf16/1632x1x3x3/nhwc pad=1 groups=1632 ; name=wh.bf16.113
