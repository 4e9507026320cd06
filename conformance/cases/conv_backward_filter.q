# conv_backward_filter: the geometries of conv.q, and long sums.

conv_backward_filter x=f32/2x3x7x9 dy=f32/2x4x5x7 dw=f32/4x3x3x3 ; as=f16,bf16,f64
conv_backward_filter x=f32/1x3x8x8 dy=f32/1x5x8x8 dw=f32/5x3x3x3 pad=1,1 ; as=bf16
conv_backward_filter x=f32/2x8x13x11 dy=f32/2x16x13x11 dw=f32/16x8x3x3 pad=1,1 ; as=f16
conv_backward_filter x=f32/2x5x10x9 dy=f32/2x7x5x5 dw=f32/7x5x3x3 pad=1,1 stride=2,2 ; as=f64
conv_backward_filter x=f32/1x16x9x9 dy=f32/1x8x9x9 dw=f32/8x16x1x1
conv_backward_filter x=f32/2x7x12x10 dy=f32/2x9x6x5 dw=f32/9x7x1x1 stride=2,2 ; as=f16,bf16,f64
conv_backward_filter x=f32/1x3x11x12 dy=f32/1x4x11x12 dw=f32/4x3x5x5 pad=2,2 ; as=bf16
conv_backward_filter x=f32/1x2x15x14 dy=f32/1x3x8x7 dw=f32/3x2x7x7 pad=3,3 stride=2,2 ; as=f16
conv_backward_filter x=f32/2x4x9x8 dy=f32/2x6x4x9 dw=f32/6x2x3x2 pad=1:0,2:1 stride=2,1 dilation=1,2 groups=2 ; as=f64
conv_backward_filter x=f32/1x6x8x7 dy=f32/1x6x7x6 dw=f32/6x1x3x3 pad=0:1,1:0 groups=6
conv_backward_filter x=f32/2x8x9x9 dy=f32/2x8x5x5 dw=f32/8x1x3x3 pad=1,1 stride=2,2 groups=8 ; as=f16,bf16,f64
conv_backward_filter x=f32/1x4x7x7 dy=f32/1x12x7x7 dw=f32/12x1x3x3 pad=1,1 groups=4 ; as=bf16
conv_backward_filter x=f32/1x9x6x7 dy=f32/1x6x5x5 dw=f32/6x3x2x3 groups=3 ; as=f16
conv_backward_filter x=f32/1x3x16x15 dy=f32/1x4x16x15 dw=f32/4x3x3x3 pad=2,2 dilation=2,2 ; as=f64
conv_backward_filter x=f32/1x3x20x13 dy=f32/1x4x7x7 dw=f32/4x3x3x2 pad=3,0:7 stride=3,2 dilation=3,7
conv_backward_filter x=f32/1x2x4x4 dy=f32/1x2x10x10 dw=f32/2x2x3x3 pad=4,5:3 ; as=f16,bf16,f64
conv_backward_filter x=f32/3x1x5x5 dy=f32/3x1x2x2 dw=f32/1x1x2x2 stride=3,3 ; as=bf16
conv_backward_filter x=f32/1x1x6x6 dy=f32/1x33x4x4 dw=f32/33x1x3x3 ; as=f16
conv_backward_filter x=f32/1x33x6x6 dy=f32/1x1x4x4 dw=f32/1x33x3x3 ; as=f64
conv_backward_filter x=f32/1x17x5x5 dy=f32/1x31x5x5 dw=f32/31x17x3x3 pad=1,1
conv_backward_filter x=f32/1x32x8x8 dy=f32/1x32x8x8 dw=f32/32x32x3x3 pad=1,1 ; as=f16,bf16,f64
conv_backward_filter x=f32/1x64x6x6 dy=f32/1x64x6x6 dw=f32/64x64x3x3 pad=1,1 ; as=bf16
conv_backward_filter x=f32/2x3x17 dy=f32/2x4x17 dw=f32/4x3x3 pad=1 ; as=f16
conv_backward_filter x=f32/1x5x33 dy=f32/1x6x15 dw=f32/6x5x5 pad=4:0 stride=2 dilation=2 ; as=f64
conv_backward_filter x=f32/1x8x31 dy=f32/1x8x31 dw=f32/8x1x4 pad=2:1 groups=8
conv_backward_filter x=f32/1x2x5x6x4 dy=f32/1x3x5x6x4 dw=f32/3x2x3x3x3 pad=1,1,1 ; as=f16,bf16,f64
conv_backward_filter x=f32/2x4x6x5x7 dy=f32/2x4x3x2x4 dw=f32/4x2x2x3x1 pad=1:0,0:1,0 stride=2,1,2 dilation=1,2,1 groups=2 ; as=bf16
conv_backward_filter x=f32/1x3x4x4x4 dy=f32/1x3x3x3x3 dw=f32/3x1x2x2x2 groups=3 ; as=f16
conv_backward_filter x=f32/1x1x1x1 dy=f32/1x1x1x1 dw=f32/1x1x1x1 ; as=f64
conv_backward_filter x=f32/1x2x3x70 dy=f32/1x2x3x70 dw=f32/2x2x3x3 pad=1,1
conv_backward_filter x=f32/1x2x70x3 dy=f32/1x2x70x3 dw=f32/2x2x3x3 pad=1,1 ; as=f16,bf16,f64
conv_backward_filter x=f32/1x16x14x14 dy=f32/1x16x7x7 dw=f32/16x4x3x3 pad=1,1 stride=2,2 groups=4 ; as=bf16

# layouts
conv_backward_filter x=f32/2x8x7x9/nhwc dy=f32/2x16x7x9/nhwc dw=f32/16x8x3x3/nhwc pad=1 ; as=f16,bf16,f64
conv_backward_filter x=f32/2x8x7x9 dy=f32/2x16x7x9/nhwc dw=f32/16x8x3x3 pad=1

# more than a tile of taps and channels, of filters, and of pixels, and their tails
conv_backward_filter x=f32/2x66x7x9 dy=f32/2x70x7x9 dw=f32/70x66x3x3 pad=1
conv_backward_filter x=f32/3x36x15x9/nhwc dy=f32/3x20x8x5/nhwc dw=f32/20x36x3x3/nhwc pad=1 stride=2

# depthwise in pairs of channels
conv_backward_filter x=bf16/2x24x9x10/nhwc dy=bf16/2x24x9x10/nhwc dw=bf16/24x1x3x3 pad=1 groups=24 ; as=f16,f32
conv_backward_filter x=bf16/5x144x15x16/nhwc dy=bf16/5x144x14x15/nhwc dw=bf16/144x1x3x3/nhwc pad=1:0,0:1 groups=144
conv_backward_filter x=f32/3x200x9x9/nhwc dy=f32/3x200x5x5/nhwc dw=f32/200x1x3x3/nhwc pad=1 stride=2 groups=200 ; as=bf16
conv_backward_filter x=bf16/2x16x11x14/nhwc dy=bf16/2x16x13x10/nhwc dw=f32/16x1x5x5/nhwc pad=3,0 groups=16
conv_backward_filter x=bf16/1x72x11x20/nhwc dy=bf16/1x72x7x8/nhwc dw=bf16/72x1x5x5/nhwc stride=2 pad=3,0 groups=72 ; as=f32
conv_backward_filter x=bf16/3x72x14x14/nhwc dy=bf16/3x72x14x14/nhwc dw=bf16/72x1x7x7/nhwc pad=3 groups=72 ; as=f16,f32
conv_backward_filter x=bf16/40x8x30x30/nhwc dy=bf16/40x8x30x30/nhwc dw=bf16/8x1x3x3/nhwc pad=1 groups=8
conv_backward_filter x=bf16/2x8x12x12/nhwc dy=bf16/2x8x10x10/nhwc dw=bf16/8x1x3x3/nhwc groups=8 ; fill=int x.fill=special
conv_backward_filter x=bf16/2x8x19x18/nhwc dy=bf16/2x8x15x14/nhwc dw=bf16/8x1x5x5/nhwc groups=8 ; fill=int x.fill=special

# groups of few channels
conv_backward_filter x=bf16/2x72x11x13/nhwc dy=bf16/2x72x11x13/nhwc dw=bf16/72x8x3x3/nhwc pad=1 groups=9 ; as=f16
conv_backward_filter x=bf16/1x64x14x30/nhwc dy=bf16/1x96x8x14/nhwc dw=bf16/96x16x3x3/nhwc pad=1:2,0 stride=2 groups=4
conv_backward_filter x=f16/1x64x9x9/nhwc dy=f16/1x48x9x12/nhwc dw=f32/48x32x3x2/nhwc dilation=2,1 pad=2 groups=2
conv_backward_filter x=bf16/2x16x12x10/nhwc dy=bf16/2x16x12x10/nhwc dw=bf16/16x8x3x3/nhwc pad=1 groups=2 ; fill=int x.fill=special
conv_backward_filter x=bf16/1x128x7x7/nhwc dy=bf16/1x128x7x7/nhwc dw=bf16/128x64x3x3/nhwc pad=1 groups=2
conv_backward_filter x=bf16/2x16x12x20/nhwc dy=bf16/2x32x10x18/nhwc dw=bf16/32x8x3x3/nhwc groups=2 ; fill=int x.fill=special
conv_backward_filter x=bf16/60x16x20x20/nhwc dy=bf16/60x16x20x20/nhwc dw=bf16/16x8x3x3/nhwc pad=1 groups=2

# a first layer
conv_backward_filter x=bf16/2x3x37x38/nhwc dy=bf16/2x64x19x19/nhwc dw=bf16/64x3x7x7/nhwc stride=2 pad=3 ; as=f16
conv_backward_filter x=bf16/3x3x9x21/nhwc dy=bf16/3x72x9x21/nhwc dw=bf16/72x3x3x3/nhwc pad=1
conv_backward_filter x=f16/1x4x18x40/nhwc dy=f16/1x24x4x10/nhwc dw=f32/24x4x4x4/nhwc stride=4
conv_backward_filter x=bf16/2x5x11x19/nhwc dy=bf16/2x16x11x10/nhwc dw=bf16/16x5x3x2/nhwc pad=1 stride=1,2 ; fill=int x.fill=special
conv_backward_filter x=bf16/1x3x60x60/nhwc dy=bf16/1x96x14x14/nhwc dw=bf16/96x3x11x11/nhwc stride=4 pad=2,3:2
conv_backward_filter x=bf16/1x1x20x33/nhwc dy=bf16/1x8x15x32/nhwc dw=bf16/8x1x5x5/nhwc pad=2:1,0:3 dilation=2,1
conv_backward_filter x=bf16/20x3x40x40/nhwc dy=bf16/20x8x40x40/nhwc dw=bf16/8x3x3x3/nhwc pad=1

# long sums: images times positions; zero sizes; NaN and Inf
conv_backward_filter x=f32/4x2x40x40 dy=f32/4x2x40x40 dw=f32/2x2x3x3 pad=1 ; as=f16,bf16
conv_backward_filter x=f32/3000x1x2x2 dy=f32/3000x1x2x2 dw=f32/1x1x1x1 ; plain=1 tier=default
conv_backward_filter x=f32/2x4x20x20 dy=f32/2x4x18x18 dw=f32/4x4x3x3 ; fill=ipos,pos as=f16,bf16
conv_backward_filter x=f32/0x3x5x5 dy=f32/0x4x3x3 dw=f32/4x3x3x3 ; plain=1
conv_backward_filter x=f32/2x3x5x5 dy=f32/2x4x3x3 dw=f32/4x3x3x3 ; fill=int x.fill=special as=f64

# channels last, in eights: 64 channels per tap, parts of the pixels combined
conv_backward_filter x=f32/2x64x9x11/nhwc dy=f32/2x72x9x11/nhwc dw=f32/72x64x3x3/nhwc pad=1 ; as=f16,bf16
conv_backward_filter x=f32/3x24x13x10/nhwc dy=f32/3x40x6x3/nhwc dw=f32/40x24x5x3/nhwc pad=2:1,0:3 stride=2,3 dilation=1,2 ; as=f16,bf16
conv_backward_filter x=f32/2x136x6x7/nhwc dy=f32/2x328x5x6/nhwc dw=f32/328x136x2x2/nhwc ; as=bf16
conv_backward_filter x=f32/5x72x12x12/nhwc dy=f32/5x264x6x6/nhwc dw=f32/264x72x1x1/nhwc stride=2 ; as=f16,bf16
conv_backward_filter x=f32/3x16x37/nhwc dy=f32/3x24x19/nhwc dw=f32/24x16x5/nhwc pad=3:1 stride=2 ; as=f16,bf16
conv_backward_filter x=f32/2x16x6x7x9/nhwc dy=f32/2x72x3x7x5/nhwc dw=f32/72x16x3x2x3/nhwc pad=1:0,0:1,1 stride=2,1,2 ; as=f16,bf16
conv_backward_filter x=bf16/9x64x14x14/nhwc dy=bf16/9x64x14x14/nhwc dw=f32/64x64x3x3/nhwc pad=1 ; kind=cuda
conv_backward_filter x=bf16/40x16x14x14/nhwc dy=bf16/40x72x14x14/nhwc dw=bf16/72x16x3x3/nhwc pad=1 ; kind=cuda

# 1x1 filters as products of each image, summed
conv_backward_filter x=f32/5x20x6x8 dy=f32/5x36x6x8 dw=f32/36x20x1x1
conv_backward_filter x=f32/40x4x5x7 dy=f32/40x6x5x7/nhwc dw=f32/6x4x1x1

# Winograd's tiles and their tails, in one part and in several
conv_backward_filter x=f32/3x37x14x23 dy=f32/3x35x14x23 dw=f32/35x37x3x3 pad=1
conv_backward_filter x=f32/2x40x9x10/nhwc dy=f32/2x33x11x8/nhwc dw=f32/33x40x3x3/nhwc pad=2,0
conv_backward_filter x=f32/2x12x13x9 dy=f32/2x36x12x5 dw=f32/36x12x5x5 pad=2:1,0
conv_backward_filter x=f32/6x2x40x38 dy=f32/6x3x40x38 dw=f32/3x2x3x3 pad=1 ; fill=ipos,pos
conv_backward_filter x=f32/3x5x29x30/nhwc dy=f32/3x6x29x30/nhwc dw=f32/6x5x5x5/nhwc pad=2
conv_backward_filter x=f32/2x3x11x12 dy=f32/2x4x11x12 dw=f32/4x3x5x5 pad=2 ; fill=int x.fill=special
# large filters
conv_backward_filter x=f32/2x5x40x33 dy=f32/2x7x39x31 dw=f32/7x5x9x5 pad=4:3,1
conv_backward_filter x=f32/3x17x29x20/nhwc dy=f32/3x18x29x20/nhwc dw=f32/18x17x7x7 pad=3 ; tier=default
conv_backward_filter x=f32/1x2x35x61 dy=f32/1x3x35x59 dw=f32/3x2x5x5 pad=2,1 ; fill=int x.fill=special

# few channels: tiles of 4 by 32 and 64 filters, their tails, several tiles per part; each number of channels
conv_backward_filter x=f32/2x3x19x44 dy=f32/2x70x19x44 dw=f32/70x3x3x3 pad=1
conv_backward_filter x=f32/140x1x5x10 dy=f32/140x3x3x8 dw=f32/3x1x3x3
conv_backward_filter x=f32/2x2x9x64 dy=f32/2x5x10x64/3600:720:72:1 dw=f32/5x2x3x3 pad=2:1,1
conv_backward_filter x=f32/2x4x6x8/nhwc dy=f32/2x64x6x8 dw=f32/64x4x3x3 pad=1 ; fill=int x.fill=special

# u8 by u8: no finite differences for integers
conv_backward_filter x=u8/2x3x4x4 dy=u8/2x5x2x2 ; plain=1

# taps in the padding may be 0 times a non-finite element
conv_backward_filter x=f32/1x4x8x8 dy=f32/1x4x4x4 dw=f32/4x2x3x3 stride=2 pad=1 groups=2 ; fill=signed dy.fill=special as=bf16

# one element, planes of one element, none
conv_backward_filter x=f32/1x1x1x1 dy=f32/1x1x1x1 dw=f32/1x1x1x1
conv_backward_filter x=f32/3x8x1x1 dy=f32/3x5x1x1 dw=f32/5x8x3x3 pad=1
conv_backward_filter x=f32/0x3x5x5 dy=f32/0x4x3x3 dw=f32/4x3x3x3 ; fill=zero dw.is=0 plain=1
# groups of channels that are no eights: merged (channels last), padded (other layouts), one after another (wide)
conv_backward_filter x=bf16/2x16x9x11/nhwc dy=bf16/2x16x9x11/nhwc dw=bf16/16x4x3x3/nhwc pad=1 groups=4 ; as=f16
conv_backward_filter x=f16/2x64x7x10/nhwc dy=f16/2x64x4x5/nhwc dw=f16/64x4x3x3/nhwc pad=1 stride=2 groups=16
conv_backward_filter x=bf16/1x48x6x7/nhwc dy=bf16/1x64x6x7/nhwc dw=f32/64x6x3x3/nhwc pad=1 groups=8
conv_backward_filter x=bf16/1x16x6x6/nhwc dy=bf16/1x16x6x6/nhwc dw=bf16/16x4x3x3/nhwc pad=1 groups=4 ; fill=signed x.fill=special
conv_backward_filter x=bf16/2x32x9x8 dy=bf16/2x32x9x8 dw=bf16/32x4x3x3 pad=1 groups=8 ; as=f16
conv_backward_filter x=bf16/2x36x7x9 dy=bf16/2x60x7x4 dw=bf16/60x12x3x3 pad=1,0 stride=1,2 groups=3
conv_backward_filter x=bf16/1x192x6x5/nhwc dy=bf16/1x256x6x5/nhwc dw=bf16/256x96x3x3/nhwc pad=1 groups=2 ; as=f16
conv_backward_filter x=bf16/1x192x6x6 dy=bf16/1x160x6x6 dw=bf16/160x96x3x3 pad=1 groups=2

# f32 on FP32 cores: threads that share places, places in several blocks, filters in several blocks, depth
conv_backward_filter x=f32/9x8x7x7 dy=f32/9x8x7x7 dw=f32/8x4x3x3 pad=1 groups=2
conv_backward_filter x=f32/2x12x40x37/nhwc dy=f32/2x72x20x19/nhwc dw=f32/72x6x3x3 pad=1 stride=2 groups=2
conv_backward_filter x=f32/1x80x9x9 dy=f32/1x10x9x9 dw=f32/10x40x3x3 pad=1 groups=2
conv_backward_filter x=f32/1x6x1300 dy=f32/1x10x1300 dw=f32/10x3x7 pad=6 dilation=2 groups=2
conv_backward_filter x=f32/2x4x5x9x8 dy=f32/2x8x5x5x8 dw=f32/8x2x3x3x3 pad=1 stride=1,2,1 groups=2
conv_backward_filter x=f32/2x4x9x9 dy=f32/2x6x9x9 dw=f32/6x2x3x3 pad=1 groups=2 ; fill=int x.fill=special
# depthwise on planes: pieces of windows, strides, dilation, several filters a channel, bands, long rows, volumes, both layouts, many images
conv_backward_filter x=f32/2x5x9x16 dy=f32/2x5x9x16 dw=f32/5x1x3x3 pad=1 groups=5 ; as=f16,bf16
conv_backward_filter x=bf16/3x33x7x7 dy=bf16/3x33x7x7 dw=bf16/33x1x5x5 pad=2 groups=33 ; as=f32
conv_backward_filter x=f16/2x6x14x14 dy=f16/2x6x14x14 dw=f32/6x1x7x7 pad=3 groups=6
conv_backward_filter x=bf16/1x3x37x35 dy=bf16/1x3x37x35 dw=bf16/3x1x31x31 pad=15 groups=3
conv_backward_filter x=f16/1x3x13x22 dy=f16/1x3x13x22 dw=f16/3x1x9x11 pad=4,5 groups=3 ; as=f32
conv_backward_filter x=f16/2x7x15x17 dy=f16/2x7x8x9 dw=f16/7x1x3x3 stride=2 pad=1 groups=7 ; as=f32
conv_backward_filter x=bf16/2x5x14x20 dy=bf16/2x5x7x10 dw=bf16/5x1x5x5 stride=2 pad=2 groups=5
conv_backward_filter x=f16/1x4x23x25 dy=f16/1x4x23x13 dw=f16/4x1x7x9 stride=1,2 pad=3,4 groups=4
conv_backward_filter x=bf16/2x5x16x15 dy=bf16/2x10x16x15 dw=bf16/10x1x3x5 dilation=2,3 pad=2,6 groups=5 ; as=f16
conv_backward_filter x=f16/2x96x40 dy=f16/2x96x40 dw=f16/96x1x4 pad=3:0 groups=96 ; as=f32
conv_backward_filter x=bf16/1x3x5003 dy=bf16/1x3x5003 dw=bf16/3x1x31 pad=15 groups=3
conv_backward_filter x=f16/2x3x4001 dy=f16/2x3x2001 dw=f16/3x1x7 pad=3 stride=2 groups=3
conv_backward_filter x=f32/1x2x90x75 dy=f32/1x2x90x75 dw=f32/2x1x3x3 pad=1 groups=2 ; as=bf16
conv_backward_filter x=bf16/40x3x12x12 dy=bf16/40x6x12x12 dw=f32/6x1x3x3 pad=1 groups=3
conv_backward_filter x=bf16/2x24x5x9x10 dy=bf16/2x24x5x9x10 dw=bf16/24x1x3x3x3 pad=1 groups=24 ; as=f32
conv_backward_filter x=f16/1x3x12x21x23 dy=f16/1x3x6x11x12 dw=f16/3x1x3x3x3 stride=2 pad=1 groups=3
conv_backward_filter x=bf16/2x13x9x10/nhwc dy=bf16/2x13x9x10/nhwc dw=bf16/13x1x3x3 pad=1 groups=13 ; as=f32
conv_backward_filter x=f16/1x24x6x20x19/nhwc dy=f16/1x24x6x10x10/nhwc dw=f16/24x1x3x5x5 pad=1,2,2 stride=1,2,2 groups=24 ; as=f32
conv_backward_filter x=f16/2x48x70/nhwc dy=f16/2x48x70 dw=f16/48x1x31 pad=15 groups=48
conv_backward_filter x=f32/1x6x9x10 dy=f32/1x6x11x10 dw=f32/6x1x3x5 pad=2 groups=6 ; fill=signed dy.fill=special as=f16
conv_backward_filter x=f32/1x3x11x13/nhwc dy=f32/1x6x11x13 dw=f32/6x1x3x3 pad=1 groups=3 ; fill=int x.fill=special

# windows as rows of a matrix: patches; views of x; dy copied so that images continue each other; parts of a sum; chunks of images and of rows
conv_backward_filter x=f32/2x3x48x32 dy=f32/2x20x3x2 dw=f32/20x3x16x16 stride=16 ; as=f16,bf16,f64
conv_backward_filter x=f32/3x3x30x44 dy=f32/3x9x2x3 dw=f32/9x3x14x14 stride=14 ; as=f16
conv_backward_filter x=bf16/2x3x17x35/nhwc dy=bf16/2x24x4x8/nhwc dw=bf16/24x3x4x4/nhwc stride=4 ; as=f16,f32
conv_backward_filter x=f32/2x12x24/nhwc dy=f32/2x10x6/nhwc dw=f32/10x12x4/nhwc stride=4 ; as=f16
conv_backward_filter x=f32/2x24x6x8 dy=f32/2x16x6x8 dw=f32/16x12x1x1 groups=2 ; as=f16,f64
conv_backward_filter x=f32/9x8x3x5 dy=f32/9x40x3x5 dw=f32/40x8x1x1 ; as=f16
conv_backward_filter x=f32/1x2x65x60 dy=f32/1x4x57x52 dw=f32/4x2x9x9 ; as=f16,f64
conv_backward_filter x=f32/7x3x40x37 dy=f32/7x8x40x37 dw=f32/8x3x7x7 pad=3 ; as=bf16
conv_backward_filter x=f32/2x5x9x40x33/nhwc dy=f32/2x3x9x40x33/nhwc dw=f32/3x5x3x3x3 pad=1 ; as=f16 tier=default
conv_backward_filter x=f32/1x1x60000 dy=f32/1x3x11999 dw=f32/3x1x10 stride=5 ; as=f16
conv_backward_filter x=f32/2x12x9x11/nhwc dy=f32/2x16x9x11/nhwc dw=f32/16x6x3x3 pad=1 groups=2 ; as=f16,f64
conv_backward_filter x=f32/2x4x8x8 dy=f32/2x6x6x6/300:50:8:1 dw=f32/6x4x3x3 ; as=f16
conv_backward_filter x=i8/2x3x9x12 dy=i8/2x8x5x6 dw=i32/8x3x3x3 pad=1 stride=2

# long sums: one running f32 sum fails
conv_backward_filter x=f32/1x2x1024x512 dy=f32/1x2x1024x512 dw=f32/2x2x1x1 ; fill=const:0.1 plain=1

# f32 with channels last: groups of 2, 4 and 8 side by side in a vector, the last vector partial; lines of few channels; several parts
conv_backward_filter x=f32/2x40x9x11/nhwc dy=f32/2x40x9x11/nhwc dw=f32/40x4x3x3/nhwc pad=1 groups=10
conv_backward_filter x=f32/1x24x13x7/nhwc dy=f32/1x24x7x4/nhwc dw=f32/24x8x3x3/nhwc stride=2 pad=1 groups=3 ; fill=int x.fill=special
conv_backward_filter x=f32/2x36x5x19/nhwc dy=f32/2x36x5x15/nhwc dw=f32/36x2x3x5/nhwc pad=1,2 dilation=1,2 groups=18
conv_backward_filter x=f32/3x3x22x31/nhwc dy=f32/3x37x11x16/nhwc dw=f32/37x3x7x7 stride=2 pad=3
conv_backward_filter x=f32/2x33x21x18/nhwc dy=f32/2x33x21x18/nhwc dw=f32/33x1x5x3/nhwc pad=2,1 groups=33
# and by planes: rows of dy beside infinite x
conv_backward_filter x=f32/2x6x14x19 dy=f32/2x12x14x19 dw=f32/12x1x3x3 pad=1 groups=6 ; fill=int x.fill=special
# windows gathered from planes: sums in parts, a tap alone by fours, few channels of volumes
conv_backward_filter x=f32/9x20x16x18 dy=f32/9x96x16x18 groups=2 ; as=f16
conv_backward_filter x=f16/3x3x9x20x21 dy=f16/3x5x9x20x21 pad=1
conv_backward_filter x=f32/3x48x7x9 dy=f32/3x48x4x5 dw=f32/48x24x3x3 pad=1 stride=2 groups=2 ; as=bf16 fill=int x.fill=special
# one tap over planes, sums in parts; and images of one pixel
conv_backward_filter x=f32/7x20x6x10 dy=f32/7x70x6x10 dw=f32/70x20x1x1 ; as=f16,bf16
conv_backward_filter x=f32/5x45x8x18 dy=f32/5x40x8x18 dw=f32/40x9x1x1 groups=5 ; as=bf16
conv_backward_filter x=f16/9x37x2x7 dy=f16/9x33x2x7 dw=f16/33x37x1x1
conv_backward_filter x=f16/3x70x4x6 dy=f16/3x65x4x6 dw=f16/65x70x1x1 ; as=bf16
conv_backward_filter x=bf16/9x32x2x2x2 dy=bf16/9x150x2x2x2 dw=f32/150x32x1x1x1
conv_backward_filter x=bf16/1x2x256x264 dy=bf16/1x3x256x264 dw=bf16/3x2x1x1
conv_backward_filter x=f32/2x10x4x12 dy=f32/2x6x4x12 dw=f32/6x10x1x1 ; fill=int x.fill=special
conv_backward_filter x=f32/9x28x1x1 dy=f32/9x70x1x1 dw=f32/70x28x1x1 ; as=f16
conv_backward_filter x=f32/1x36x4x9x5/nhwc dy=f32/1x20x4x9x5/nhwc dw=f32/20x36x2x3x1 pad=1,1,0 dilation=2,1,1

# Volumes of few channels, whose windows along D become channels.
conv_backward_filter x=f32/2x3x6x9x10 dy=f32/2x24x5x9x9/nhwc dw=f32/24x3x3x3x2 pad=1:0,1,0 ; as=f16,bf16
conv_backward_filter x=f16/1x1x9x8x7/nhwc dy=f16/1x8x4x6x7/nhwc dw=f16/8x1x3x5x3/nhwc stride=2,1,1 dilation=2,1,1 pad=1:2,1,1
conv_backward_filter x=bf16/1x3x5x7x6/nhwc dy=bf16/1x8x4x7x6/nhwc dw=f32/8x3x2x3x3 pad=0,1,1
conv_backward_filter x=f32/1x32x4x6x5/nhwc dy=f32/1x3x5x6x3/nhwc dw=f32/3x32x2x3x3/nhwc pad=1,1,0

# Volumes of which two dims are one: their planes as images, their lines as one.
conv_backward_filter x=f32/2x12x5x6x4 dy=f32/2x8x3x6x4 dw=f32/8x12x3x1x1 stride=2,1,1 pad=1,0,0 ; as=f16
conv_backward_filter x=f32/1x12x3x6x4 dy=f32/1x8x3x6x4 dw=f32/8x6x1x3x3 pad=0,1,1 groups=2 ; as=bf16

# Few pixels of many places and filters: dw is stored filter by filter, in strips of places that end anywhere.
conv_backward_filter x=f32/1x13x37 dy=f32/1x70x9 dw=f32/70x13x5 stride=4 ; as=f16
conv_backward_filter x=f32/2x20x8x8 dy=f32/2x133x2x2 dw=f32/133x20x4x4 stride=4 ; as=f64
# volumes plane by plane: images apart, pixels in eights and in none, strides; tiles of more than 128 filters
conv_backward_filter x=f32/2x5x4x6x8 dy=f32/2x7x4x6x8 dw=f32/7x5x3x3x3 pad=1
conv_backward_filter x=f32/2x12x3x5x7 dy=f32/2x140x3x5x7 dw=f32/140x12x1x3x3 pad=0,1,1
conv_backward_filter x=f32/2x6x4x8x8 dy=f32/2x20x3x4x4/nhwc dw=f32/20x6x2x3x3/nhwc stride=1,2,2 pad=0,1,1
conv_backward_filter x=f32/2x70x8x8 dy=f32/2x200x8x8 dw=f32/200x70x3x1 pad=1,0
# taps of a row as channels of one pixel: few channels, strides, dilated columns, rows, volumes, any layout of x and dw
conv_backward_filter x=f16/2x3x9x20/nhwc dy=f16/2x24x5x10/nhwc dw=f16/24x3x7x7/nhwc stride=2 pad=3 ; as=bf16
conv_backward_filter x=f16/1x24x7x9/nhwc dy=f16/1x40x4x10/nhwc dw=f16/40x24x3x3/nhwc pad=1:0,2:1 dilation=2,1 ; as=bf16
conv_backward_filter x=f16/2x12x61 dy=f16/2x16x31/nhwc dw=f16/16x12x17 stride=2 pad=8
conv_backward_filter x=f16/1x9x3x5x6/nhwc dy=f16/1x16x4x5x4/nhwc dw=f16/16x9x2x3x3/nhwc pad=1,1,0
