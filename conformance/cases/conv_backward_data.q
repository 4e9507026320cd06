# conv_backward_data: the geometries of conv.q, and output padding.

conv_backward_data dy=f32/2x4x5x7 w=f32/4x3x3x3 dx=f32/2x3x7x9 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x5x8x8 w=f32/5x3x3x3 dx=f32/1x3x8x8 pad=1,1 ; as=bf16
conv_backward_data dy=f32/2x16x13x11 w=f32/16x8x3x3 dx=f32/2x8x13x11 pad=1,1 ; as=f16
conv_backward_data dy=f32/2x7x5x5 w=f32/7x5x3x3 dx=f32/2x5x10x9 pad=1,1 stride=2,2 ; as=f64
conv_backward_data dy=f32/1x8x9x9 w=f32/8x16x1x1 dx=f32/1x16x9x9
conv_backward_data dy=f32/2x9x6x5 w=f32/9x7x1x1 dx=f32/2x7x12x10 stride=2,2 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x4x11x12 w=f32/4x3x5x5 dx=f32/1x3x11x12 pad=2,2 ; as=bf16
conv_backward_data dy=f32/1x3x8x7 w=f32/3x2x7x7 dx=f32/1x2x15x14 pad=3,3 stride=2,2 ; as=f16
conv_backward_data dy=f32/2x6x4x9 w=f32/6x2x3x2 dx=f32/2x4x9x8 pad=1:0,2:1 stride=2,1 dilation=1,2 groups=2 ; as=f64
conv_backward_data dy=f32/1x6x7x6 w=f32/6x1x3x3 dx=f32/1x6x8x7 pad=0:1,1:0 groups=6
conv_backward_data dy=f32/2x8x5x5 w=f32/8x1x3x3 dx=f32/2x8x9x9 pad=1,1 stride=2,2 groups=8 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x12x7x7 w=f32/12x1x3x3 dx=f32/1x4x7x7 pad=1,1 groups=4 ; as=bf16
conv_backward_data dy=f32/1x6x5x5 w=f32/6x3x2x3 dx=f32/1x9x6x7 groups=3 ; as=f16
conv_backward_data dy=f32/1x4x16x15 w=f32/4x3x3x3 dx=f32/1x3x16x15 pad=2,2 dilation=2,2 ; as=f64
conv_backward_data dy=f32/1x4x7x7 w=f32/4x3x3x2 dx=f32/1x3x20x13 pad=3,0:7 stride=3,2 dilation=3,7
conv_backward_data dy=f32/1x2x10x10 w=f32/2x2x3x3 dx=f32/1x2x4x4 pad=4,5:3 ; as=f16,bf16,f64
conv_backward_data dy=f32/3x1x2x2 w=f32/1x1x2x2 dx=f32/3x1x5x5 stride=3,3 ; as=bf16
conv_backward_data dy=f32/1x33x4x4 w=f32/33x1x3x3 dx=f32/1x1x6x6 ; as=f16
conv_backward_data dy=f32/1x1x4x4 w=f32/1x33x3x3 dx=f32/1x33x6x6 ; as=f64
conv_backward_data dy=f32/1x31x5x5 w=f32/31x17x3x3 dx=f32/1x17x5x5 pad=1,1
conv_backward_data dy=f32/1x32x8x8 w=f32/32x32x3x3 dx=f32/1x32x8x8 pad=1,1 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x64x6x6 w=f32/64x64x3x3 dx=f32/1x64x6x6 pad=1,1 ; as=bf16
conv_backward_data dy=f32/2x4x17 w=f32/4x3x3 dx=f32/2x3x17 pad=1 ; as=f16
conv_backward_data dy=f32/1x6x15 w=f32/6x5x5 dx=f32/1x5x33 pad=4:0 stride=2 dilation=2 ; as=f64
conv_backward_data dy=f32/1x8x31 w=f32/8x1x4 dx=f32/1x8x31 pad=2:1 groups=8
conv_backward_data dy=f32/1x3x5x6x4 w=f32/3x2x3x3x3 dx=f32/1x2x5x6x4 pad=1,1,1 ; as=f16,bf16,f64
conv_backward_data dy=f32/2x4x3x2x4 w=f32/4x2x2x3x1 dx=f32/2x4x6x5x7 pad=1:0,0:1,0 stride=2,1,2 dilation=1,2,1 groups=2 ; as=bf16
conv_backward_data dy=f32/1x3x3x3x3 w=f32/3x1x2x2x2 dx=f32/1x3x4x4x4 groups=3 ; as=f16
conv_backward_data dy=f32/1x1x1x1 w=f32/1x1x1x1 dx=f32/1x1x1x1 ; as=f64
conv_backward_data dy=f32/1x2x3x70 w=f32/2x2x3x3 dx=f32/1x2x3x70 pad=1,1
conv_backward_data dy=f32/1x2x70x3 w=f32/2x2x3x3 dx=f32/1x2x70x3 pad=1,1 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x16x7x7 w=f32/16x4x3x3 dx=f32/1x16x14x14 pad=1,1 stride=2,2 groups=4 ; as=bf16

# layouts and output padding: dx chooses among the dims that give dy's
conv_backward_data dy=f32/2x16x7x9/nhwc w=f32/16x8x3x3/nhwc dx=f32/2x8x7x9/nhwc pad=1 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x4x4x4 w=f32/4x3x3x3 dx=f32/1x3x9x9 stride=2
conv_backward_data dy=f32/1x4x4x4 w=f32/4x3x3x3 dx=f32/1x3x10x10 stride=2 ; as=bf16
conv_backward_data dy=f32/1x4x4x4 w=f32/4x3x2x2 dx=f32/1x3x11x12 stride=3 ; as=f64
conv_backward_data dy=f32/1x6x6x6 w=f32/6x1x3x3 dx=f32/1x6x8x8/nhwc groups=6

# more than a tile of pixels and of channels, and their tails
conv_backward_data dy=f32/2x70x7x6 w=f32/70x40x3x3 dx=f32/2x40x14x12 stride=2 pad=1
conv_backward_data dy=f32/2x40x9x9/nhwc w=f32/40x66x3x3/nhwc dx=f32/2x66x9x9/nhwc pad=1

# depthwise in pairs of channels
conv_backward_data dy=bf16/2x24x9x10/nhwc w=bf16/24x1x3x3/nhwc dx=bf16/2x24x9x10/nhwc pad=1 groups=24 ; as=f16,f32
conv_backward_data dy=bf16/3x144x14x15/nhwc w=bf16/144x1x3x3/nhwc dx=bf16/3x144x15x16/nhwc pad=1:0,0:1 groups=144
conv_backward_data dy=bf16/1x16x13x10/nhwc w=bf16/16x1x5x5/nhwc dx=f32/1x16x11x14/nhwc pad=3,0 groups=16
conv_backward_data dy=bf16/2x200x14x14/nhwc w=bf16/200x1x7x7/nhwc dx=bf16/2x200x14x14/nhwc pad=3 groups=200 ; as=f32 tier=default
conv_backward_data dy=bf16/1x8x18x9/nhwc w=bf16/8x1x5x7/nhwc dx=bf16/1x8x20x11/nhwc pad=1,2 groups=8 ; fill=int dy.fill=special
conv_backward_data dy=bf16/2x8x5x5/nhwc w=bf16/8x1x3x3/nhwc dx=bf16/2x8x10x9/nhwc pad=1 stride=2 groups=8 ; as=f16
conv_backward_data dy=bf16/2x12x5x5/nhwc w=bf16/12x1x3x3/nhwc dx=bf16/2x6x9x9/nhwc pad=2 stride=2 dilation=2 groups=6 ; dy.fill=special fill=int

# groups of few channels
conv_backward_data dy=bf16/2x72x11x13/nhwc w=bf16/72x8x3x3/nhwc dx=bf16/2x72x11x13/nhwc pad=1 groups=9 ; as=f16
conv_backward_data dy=bf16/1x96x8x14/nhwc w=bf16/96x16x3x3 dx=bf16/1x64x14x30/nhwc pad=1:2,0 stride=2 groups=4
conv_backward_data dy=f16/1x48x9x12/nhwc w=f16/48x32x3x2/nhwc dx=f32/1x64x9x9/nhwc dilation=2,1 pad=2 groups=2
conv_backward_data dy=bf16/1x128x7x7/nhwc w=bf16/128x64x3x3/nhwc dx=bf16/1x128x7x7/nhwc pad=1 groups=2
conv_backward_data dy=bf16/2x16x10x18/nhwc w=bf16/16x24x3x3/nhwc dx=bf16/2x48x12x20/nhwc groups=2 ; fill=int dy.fill=special
# with strides: pixels in residue classes, some of which meet no tap or lie beyond the last window
conv_backward_data dy=bf16/2x72x6x7/nhwc w=bf16/72x8x3x3/nhwc dx=bf16/2x72x11x13/nhwc pad=1 stride=2 groups=9 ; as=f16
conv_backward_data dy=bf16/1x16x5x4/nhwc w=bf16/16x8x3x3 dx=bf16/1x16x15x17/nhwc pad=2,1 stride=3,4 dilation=2,3 groups=2
conv_backward_data dy=bf16/1x32x5x5/nhwc w=bf16/32x16x1x1/nhwc dx=f32/1x32x10x9/nhwc stride=2 groups=2 ; fill=int dy.fill=special
conv_backward_data dy=bf16/1x48x4x12/nhwc w=bf16/48x24x5x4/nhwc dx=bf16/1x48x8x12/nhwc pad=2,1:2 stride=2,1 groups=2
conv_backward_data dy=bf16/1x16x3x30/nhwc w=bf16/16x8x3x3/nhwc dx=bf16/1x16x14x62/nhwc stride=5,2 groups=2

# large filters
conv_backward_data dy=f32/2x7x39x31 w=f32/7x5x9x5 dx=f32/2x5x40x33 pad=4:3,1
conv_backward_data dy=f32/1x18x29x20/nhwc w=f32/18x17x7x7 dx=f32/1x17x29x20/nhwc pad=3 ; tier=default
conv_backward_data dy=f32/1x3x35x59 w=f32/3x2x5x5 dx=f32/1x2x35x61 pad=2,1 ; fill=int dy.fill=special

# a first layer
conv_backward_data dy=bf16/2x64x19x19/nhwc w=bf16/64x3x7x7/nhwc dx=bf16/2x3x37x38/nhwc stride=2 pad=3 ; as=f16
conv_backward_data dy=bf16/3x72x9x21/nhwc w=bf16/72x3x3x3/nhwc dx=bf16/3x3x9x21/nhwc pad=1
conv_backward_data dy=f16/1x24x10x11/nhwc w=f16/24x5x2x4 dx=f32/1x5x20x25/nhwc stride=2
conv_backward_data dy=bf16/1x136x6x36/nhwc w=bf16/136x1x5x3/nhwc dx=bf16/1x1x7x38/nhwc pad=2:1,0 ; dy.fill=special fill=int
conv_backward_data dy=bf16/1x16x9x9/nhwc w=bf16/16x4x3x3/nhwc dx=bf16/1x4x18x17/nhwc stride=2 pad=1 ; dy.fill=special fill=int
conv_backward_data dy=bf16/1x40x33/nhwc w=bf16/40x7x3/nhwc dx=bf16/1x7x33/nhwc pad=1

# channels last, in eights: each residue of dx by the stride has its own taps, or none; output padding; odd sizes
conv_backward_data dy=f32/2x64x9x11/nhwc w=f32/64x72x3x3/nhwc dx=f32/2x72x9x11/nhwc pad=1 ; as=f16,bf16
conv_backward_data dy=f32/2x64x7x5/nhwc w=f32/64x40x3x3/nhwc dx=f32/2x40x14x9/nhwc stride=2 pad=1 ; as=f16,bf16
conv_backward_data dy=f32/3x72x6x6/nhwc w=f32/72x136x1x1/nhwc dx=f32/3x136x12x11/nhwc stride=2 ; as=f16,bf16
conv_backward_data dy=f32/2x24x4x5/nhwc w=f32/24x16x5x3/nhwc dx=f32/2x16x11x19/nhwc pad=2:1,0:3 stride=3,4 dilation=1,2 ; as=f16,bf16
conv_backward_data dy=f32/1x8x3x3/nhwc w=f32/8x8x4x4/nhwc dx=f32/1x8x15x13/nhwc stride=5,4 pad=1 ; as=bf16
conv_backward_data dy=f32/2x16x5x6/nhwc w=f32/16x328x2x2/nhwc dx=f32/2x328x10x12/nhwc stride=2 ; as=bf16
conv_backward_data dy=f32/2x16x9x7/nhwc w=f32/16x8x3x3/nhwc dx=f32/2x8x21x17/nhwc stride=2 dilation=2 ; as=f16,bf16
conv_backward_data dy=f32/3x24x19/nhwc w=f32/24x16x5/nhwc dx=f32/3x16x37/nhwc pad=3:1 stride=2 ; as=f16,bf16
conv_backward_data dy=f32/2x72x3x7x5/nhwc w=f32/72x16x3x2x3/nhwc dx=f32/2x16x6x7x9/nhwc pad=1:0,0:1,1 stride=2,1,2 ; as=f16,bf16
conv_backward_data dy=bf16/1x16x5x5/nhwc w=bf16/16x24x3x3/nhwc dx=f32/1x24x9x9/nhwc stride=2 pad=1
conv_backward_data dy=bf16/2x16x5x5/nhwc w=bf16/16x24x3x3/nhwc dx=bf16/2x24x9x9/5184:1:576:32 stride=2 pad=1
conv_backward_data dy=f16/1x512x5x5/nhwc w=f16/512x128x3x3/nhwc dx=f16/1x128x5x5/nhwc pad=1

# positions that no window reads get 0; long sums; zero sizes; NaN and Inf
conv_backward_data dy=f32/2x3x3x3 w=f32/3x2x1x1 dx=f32/2x2x7x7 stride=3 ; as=f16,bf16
conv_backward_data dy=f32/1x128x5x5 w=f32/128x4x3x3 dx=f32/1x4x5x5 pad=1 ; as=f16,bf16
conv_backward_data dy=f32/2x4x0x5 w=f32/4x3x3x3 dx=f32/2x3x2x7 ; plain=1
conv_backward_data dy=f32/2x4x5x5 w=f32/4x3x3x3 dx=f32/2x3x7x7 ; fill=int dy.fill=special as=bf16

# Winograd's tiles and their tails
conv_backward_data dy=f32/3x35x14x23 w=f32/35x37x3x3 dx=f32/3x37x14x23 pad=1
conv_backward_data dy=f32/2x33x11x8/nhwc w=f32/33x40x3x3/nhwc dx=f32/2x40x9x10/nhwc pad=2,0
conv_backward_data dy=f32/2x36x12x5 w=f32/36x12x5x5 dx=f32/2x12x13x9 pad=2:1,0
conv_backward_data dy=f32/2x4x11x12 w=f32/4x3x5x5 dx=f32/2x3x11x12 pad=2 ; fill=int dy.fill=special

# depthwise, channels last, rows of one pixel
conv_backward_data dy=f32/2x24x5x3/nhwc w=f32/24x1x3x5 dx=f32/2x24x5x1/nhwc pad=1,3 groups=24 ; as=bf16

# terms outside dy may be 0 times a non-finite element
conv_backward_data dy=f32/1x4x4x4 w=f32/4x2x3x3 dx=f32/1x4x8x8 stride=2 pad=1 groups=2 ; fill=signed w.fill=special as=bf16

# one element, planes of one element, none
conv_backward_data dy=f32/1x1x1x1 w=f32/1x1x1x1 dx=f32/1x1x1x1
conv_backward_data dy=f32/3x5x1x1 w=f32/5x8x3x3 dx=f32/3x8x1x1 pad=1
# strides as long as the window, or nearly: patch embeddings, transposed convolutions
conv_backward_data dy=f32/2x5x3x4 w=f32/5x3x4x4 dx=f32/2x3x12x16 stride=4 ; as=f16,bf16,f64
conv_backward_data dy=f32/2x5x3x4/nhwc w=f32/5x3x4x4/nhwc dx=f32/2x3x14x17/nhwc stride=4 ; as=bf16
conv_backward_data dy=f32/2x6x3x4 w=f32/6x3x7x7 dx=f32/2x3x17x28/nhwc pad=3,2 stride=8
conv_backward_data dy=f32/1x4x5x7/nhwc w=f32/4x3x3x3 dx=f32/1x6x10x14 pad=1:0,1:0 stride=2 groups=2
conv_backward_data dy=f32/2x6x9 w=f32/6x5x16 dx=f32/2x5x72 pad=4 stride=8
conv_backward_data dy=f32/1x3x2x3x2 w=f32/3x4x2x4x4 dx=f32/1x4x5x12x9 stride=2,4,4
conv_backward_data dy=f32/1x33x9 w=f32/33x2x10 dx=f32/1x2x50 stride=5 ; fill=int dy.fill=special
conv_backward_data dy=f32/3x2x1x2 w=f32/2x1x9x7 dx=f32/3x1x11x12 pad=0,1 stride=9,7
# groups of channels that are no eights: merged (channels last), padded (other layouts), one after another (wide)
conv_backward_data dy=bf16/2x16x9x11/nhwc w=bf16/16x4x3x3/nhwc dx=bf16/2x16x9x11/nhwc pad=1 groups=4 ; as=f16
conv_backward_data dy=f16/2x64x4x5/nhwc w=f16/64x4x3x3/nhwc dx=f16/2x64x7x10/nhwc pad=1 stride=2 groups=16
conv_backward_data dy=bf16/1x64x6x7/nhwc w=bf16/64x6x3x3 dx=bf16/1x48x6x7/nhwc pad=1 groups=8
conv_backward_data dy=bf16/1x16x6x6/nhwc w=bf16/16x4x3x3/nhwc dx=bf16/1x16x6x6/nhwc pad=1 groups=4 ; fill=signed dy.fill=special
conv_backward_data dy=bf16/2x32x9x8 w=bf16/32x4x3x3 dx=bf16/2x32x9x8 pad=1 groups=8 ; as=f16
conv_backward_data dy=bf16/2x60x7x4 w=bf16/60x12x3x3 dx=bf16/2x36x7x9 pad=1,0 stride=1,2 groups=3
conv_backward_data dy=bf16/1x256x6x5/nhwc w=bf16/256x96x3x3/nhwc dx=bf16/1x192x6x5/nhwc pad=1 groups=2 ; as=f16
conv_backward_data dy=bf16/1x160x6x6 w=bf16/160x96x3x3 dx=bf16/1x192x6x6 pad=1 groups=2

# f32 on FP32 cores: classes of a stride, some without taps; filters in several blocks; depth
conv_backward_data dy=f32/9x8x7x7 w=f32/8x4x3x3 dx=f32/9x8x7x7 pad=1 groups=2
conv_backward_data dy=f32/2x72x20x19 w=f32/72x38x3x3 dx=f32/2x76x40x37 pad=1 stride=2 groups=2
conv_backward_data dy=f32/1x10x433 w=f32/10x3x2 dx=f32/1x6x1300 stride=3 groups=2
conv_backward_data dy=f32/2x8x5x5x8 w=f32/8x2x3x3x3 dx=f32/2x4x5x9x8/nhwc pad=1 stride=1,2,1 groups=2
# depthwise on planes: rows of taps, strides and their classes, dilation, several filters a channel, bands, long rows, volumes, both layouts
conv_backward_data dy=f32/2x8x70 w=f32/8x1x29 dx=f32/2x4x70 pad=14 groups=4
conv_backward_data dy=f32/2x5x9x16 w=f32/5x1x3x3 dx=f32/2x5x9x16 pad=1 groups=5 ; as=f16,bf16
conv_backward_data dy=bf16/3x33x7x7 w=bf16/33x1x5x5 dx=bf16/3x33x7x7 pad=2 groups=33 ; as=f32
conv_backward_data dy=f16/2x6x14x14 w=f16/6x1x7x7 dx=f16/2x6x14x14 pad=3 groups=6
conv_backward_data dy=bf16/1x3x37x35 w=bf16/3x1x31x31 dx=bf16/1x3x37x35 pad=15 groups=3
conv_backward_data dy=f16/2x7x8x9 w=f16/7x1x3x3 dx=f16/2x7x15x17 stride=2 pad=1 groups=7 ; as=f32
conv_backward_data dy=bf16/2x5x7x10 w=bf16/5x1x5x5 dx=bf16/2x5x14x20 stride=2 pad=2 groups=5
conv_backward_data dy=f16/1x4x23x13 w=f16/4x1x7x9 dx=f16/1x4x23x25 stride=1,2 pad=3,4 groups=4
conv_backward_data dy=bf16/1x4x8x7 w=bf16/4x1x4x3 dx=bf16/1x4x23x26 stride=3,4 pad=1 groups=4
conv_backward_data dy=bf16/1x4x3x3 w=bf16/4x1x3x3 dx=bf16/1x4x26x27 stride=10 pad=1 groups=4
conv_backward_data dy=bf16/2x10x16x15 w=bf16/10x1x3x5 dx=bf16/2x5x16x15 dilation=2,3 pad=2,6 groups=5 ; as=f16
conv_backward_data dy=f16/1x12x7x6 w=f16/12x1x3x3 dx=f16/1x4x15x15 stride=2 dilation=3 pad=1:3,1 groups=4
conv_backward_data dy=f16/2x96x40 w=f16/96x1x4 dx=f16/2x96x40 pad=3:0 groups=96 ; as=f32
conv_backward_data dy=bf16/1x3x5003 w=bf16/3x1x31 dx=bf16/1x3x5003 pad=15 groups=3
conv_backward_data dy=f32/1x2x90x75 w=f32/2x1x3x3 dx=f32/1x2x90x75 pad=1 groups=2 ; as=bf16
conv_backward_data dy=bf16/1x2x50x40 w=bf16/2x1x3x3 dx=bf16/1x2x100x80 stride=2 pad=1 groups=2
conv_backward_data dy=bf16/2x24x5x9x10 w=bf16/24x1x3x3x3 dx=bf16/2x24x5x9x10 pad=1 groups=24 ; as=f32
conv_backward_data dy=f16/1x3x6x11x12 w=f16/3x1x3x3x3 dx=f16/1x3x12x21x23 stride=2 pad=1 groups=3
conv_backward_data dy=bf16/2x13x9x10/nhwc w=bf16/13x1x3x3 dx=bf16/2x13x9x10/nhwc pad=1 groups=13 ; as=f32
conv_backward_data dy=f16/1x24x6x10x10/nhwc w=f16/24x1x3x5x5 dx=f16/1x24x6x20x19/nhwc pad=1,2,2 stride=1,2,2 groups=24 ; as=f32
conv_backward_data dy=f32/1x6x9x10 w=f32/6x1x3x5 dx=f32/1x6x7x10 pad=2 groups=6 ; fill=signed w.fill=special as=f16
conv_backward_data dy=f32/1x6x5x5 w=f32/6x1x3x3 dx=f32/1x3x10x10/nhwc pad=1 stride=2 groups=3 ; fill=int dy.fill=special

# windows as rows of a matrix: patches moved back, with a crop and gaps; views of dx; overlapping windows added up, in chunks of images and of slabs
conv_backward_data dy=f32/2x20x3x2 w=f32/20x3x16x16 dx=f32/2x3x48x32 stride=16 ; as=f16,bf16,f64
conv_backward_data dy=f32/1x9x2x3 w=f32/9x3x14x14 dx=f32/1x3x30x44 stride=14 ; as=f16
conv_backward_data dy=bf16/2x24x4x8/nhwc w=bf16/24x3x4x4/nhwc dx=bf16/2x3x17x35/nhwc stride=4 ; as=f16,f32
conv_backward_data dy=f32/1x12x2x2x2 w=f32/12x2x2x16x8 dx=f32/1x2x4x32x16 stride=2,16,8 ; as=f16
conv_backward_data dy=f32/2x10x6/nhwc w=f32/10x12x4/nhwc dx=f32/2x12x24/nhwc stride=4 ; as=f16
conv_backward_data dy=f32/2x16x6x8 w=f32/16x12x1x1 dx=f32/2x24x6x8 groups=2 ; as=f16,f64
conv_backward_data dy=f32/2x6x4x5 w=f32/6x4x2x3 dx=f32/2x4x11x19/1000:225:20:1 stride=3,4 ; as=f16
conv_backward_data dy=f32/1x4x57x52 w=f32/4x2x9x9 dx=f32/1x2x65x60 ; as=f16
conv_backward_data dy=f32/7x8x40x37 w=f32/8x3x7x7 dx=f32/7x3x40x37 pad=3 ; as=bf16 tier=default
conv_backward_data dy=f32/2x3x9x40x33/nhwc w=f32/3x8x3x3x3/nhwc dx=f32/2x8x9x40x33/nhwc pad=1 ; as=f16
conv_backward_data dy=f32/2x8x700 w=f32/8x6x16 dx=f32/2x6x5600 stride=8 pad=4 ; as=f16
conv_backward_data dy=f32/1x4x90x31 w=f32/4x3x5x2 dx=f32/1x3x189x92 stride=2,3 dilation=3,2 pad=1 ; as=f16
conv_backward_data dy=f32/2x16x9x11/nhwc w=f32/16x6x3x3 dx=f32/2x12x9x11/nhwc pad=1 groups=2 ; as=f16,f64
conv_backward_data dy=i8/2x8x5x6 w=i8/8x3x3x3 dx=i32/2x3x9x12 pad=1 stride=2
conv_backward_data dy=e5m2/2x8x4x4 w=e4m3/8x3x4x4 dx=bf16/2x3x16x16 stride=4

# f32 with channels last: few channels from many filters, groups side by side in a vector
conv_backward_data dy=f32/2x37x10x9/nhwc w=f32/37x3x3x3/nhwc dx=f32/2x3x20x18/nhwc stride=2 pad=1
conv_backward_data dy=f32/1x40x9x11/nhwc w=f32/40x4x3x3/nhwc pad=1 groups=10
conv_backward_data dy=f32/2x24x7x4/nhwc w=f32/24x8x3x3/nhwc dx=f32/2x24x13x7/nhwc stride=2 pad=1 groups=3 ; fill=int dy.fill=special
# more planes than are computed at a time, of all remainders of the stride
conv_backward_data dy=f32/2x11x31x33 w=f32/11x1x3x3 dx=f32/2x11x62x65 stride=2 pad=1 groups=11
# windows gathered from planes: strides with dilation, groups of 24, a tap alone by fours
conv_backward_data dy=f32/1x8x7x7 w=f32/8x6x3x3 dx=f32/1x6x21x21 stride=3 dilation=2 pad=1 ; as=bf16
conv_backward_data dy=f32/3x48x7x9 w=f32/48x24x3x3 pad=1 groups=2 ; as=f16
conv_backward_data dy=f32/3x50x6x6 w=f32/50x10x1x1 groups=2 ; as=bf16 fill=int dy.fill=special

# padding behind an image alone, under 1x1 filters: dx and dy differ in extents
conv_backward_data dy=f32/2x8x8x8 w=f32/8x16x1x1 pad=0:1 ; as=f16
conv_backward_data dy=f32/2x5x8 w=f32/5x3x1 pad=0:1
conv_backward_data dy=f32/2x4x2x2x2 w=f32/4x4x1x1x1 pad=0,0,0:1 ; as=bf16
# one tap over planes, and images of one pixel
conv_backward_data dy=f32/3x70x6x6 w=f32/70x20x1x1 dx=f32/3x20x6x6 ; as=f16,bf16
conv_backward_data dy=f32/5x40x4x8 w=f32/40x9x1x1 groups=5 ; as=bf16
conv_backward_data dy=f16/3x33x2x7 w=f16/33x37x1x1 dx=f16/3x37x2x7
conv_backward_data dy=f32/2x6x4x4 w=f32/6x10x1x1 dx=f32/2x10x4x4 ; fill=int dy.fill=special
conv_backward_data dy=f32/9x70x1x1 w=f32/70x28x1x1 dx=f32/9x28x1x1 ; as=f16
# depthwise by loads from L1: odd channels; f32 planes gathered in shared memory: several chunks, classes with other taps
conv_backward_data dy=f16/2x45x9x11/nhwc w=f16/45x1x5x5 dx=f16/2x45x9x11/nhwc pad=2 groups=45 ; as=bf16,f32
conv_backward_data dy=f32/1x6x9x10 w=f32/6x1x3x3 dx=f32/1x6x9x10 pad=1 groups=6 ; fill=signed w.fill=special as=f16
conv_backward_data dy=f32/2x80x6x8 w=f32/80x20x3x3 dx=f32/2x40x12x16 pad=1 stride=2 groups=2
# f32 planes: classes with fewer taps along the first dim than others, a chunk's last terms missing
conv_backward_data dy=f32/1x3x3x6x6 w=f32/3x4x3x1x1 dx=f32/1x4x7x6x6 stride=2,1,1

# A sum of many terms and few results, split among blocks, also where a stride's remainders see different numbers of taps; volumes channels last.
conv_backward_data dy=f32/1x64x5x5/nhwc w=f32/64x24x3x3/nhwc dx=f32/1x24x9x9/nhwc stride=2 pad=1 ; as=f16
conv_backward_data dy=f32/2x80x3x3/nhwc w=f32/80x32x7x7/nhwc pad=3 ; as=bf16
conv_backward_data dy=f32/1x32x5x5/nhwc w=f32/32x24x3x3/nhwc dx=f32/1x24x9x9/nhwc stride=2 pad=1 ; fill=int dy.fill=special
conv_backward_data dy=f32/2x72x5x6x7/nhwc w=f32/72x20x3x2x3/nhwc dx=f32/2x20x6x6x9/nhwc pad=1:0,0:1,0
conv_backward_data dy=f32/1x36x4x5x5/nhwc w=f32/36x8x2x1x3 dx=f32/1x8x6x5x5/nhwc pad=0,0,2 dilation=2,1,2

# Volumes of few channels, whose windows along D become channels.
conv_backward_data dy=f32/2x24x5x9x9/nhwc w=f32/24x3x3x3x2 dx=f32/2x3x6x9x10 pad=1:0,1,0 ; as=f16,bf16
conv_backward_data dy=f16/1x8x4x6x7/nhwc w=f16/8x2x3x5x3/nhwc dx=f16/1x2x9x8x7/nhwc stride=2,1,1 dilation=2,1,1 pad=1:2,1,1
conv_backward_data dy=bf16/1x8x4x7x6/nhwc w=bf16/8x3x2x3x3 dx=f32/1x3x5x7x6 pad=0,1,1
conv_backward_data dy=f32/1x32x4x6x5/nhwc w=f32/32x3x2x3x3/nhwc dx=f32/1x3x4x6x7/nhwc pad=1:0,1,0

# Residues of the stride one after another: more than taps, taps that differ, a bias's room between rows.
conv_backward_data dy=f32/2x32x12 w=f32/32x40x7 dx=f32/2x40x60 stride=5 pad=3
conv_backward_data dy=f32/1x64x5x6/nhwc w=f32/64x36x4x3/nhwc dx=f32/1x36x10x12/nhwc stride=2 pad=1 ; as=f16,bf16
conv_backward_data dy=f32/2x36x7x5 w=f32/36x70x3x4 dx=f32/2x70x14x15 stride=2,3 pad=1,0:1
conv_backward_data dy=f32/2x32x16x17 w=f32/32x24x5x6 dx=f32/2x24x32x34 stride=2 pad=1:2,2

# Windows that do not overlap, of two and four elements a row, of many channels; what no window sees.
conv_backward_data dy=f32/2x8x6x9 w=f32/8x40x2x2 dx=f32/2x40x12x18 stride=2 ; as=f16
conv_backward_data dy=bf16/1x8x3x4x5 w=bf16/8x18x2x2x4 dx=bf16/1x18x6x8x21 stride=2,2,4

# Volumes of which two dims are one: their planes as images, their lines as one.
conv_backward_data dy=f32/2x8x3x6x4 w=f32/8x12x3x1x1 dx=f32/2x12x5x6x4 stride=2,1,1 pad=1,0,0 ; as=f16
conv_backward_data dy=f32/2x8x3x5x2/nhwc w=f32/8x12x1x3x2 dx=f32/2x12x3x6x4/nhwc stride=1,1,2 pad=0,1:0,0 ; as=bf16

# Windows that overlap by more than half of a long stride: more phases than passes, and zeros between; filters in no strips.
conv_backward_data dy=f32/2x34x3x4 w=f32/34x1x16x13 dx=f32/2x1x36x43 stride=10 ; as=f64,bf16
conv_backward_data dy=f32/1x12x5x6 w=f32/12x2x7x7 dx=f32/1x2x19x22 stride=3 ; fill=int dy.fill=special as=f16,f64
conv_backward_data dy=f32/1x12x5x6/nhwc w=f32/12x3x7x7/nhwc dx=f32/1x3x11x13/nhwc stride=2 pad=2 ; fill=int dy.fill=special

# Strides residue by residue of x: of volumes, of lines and planes that lie apart, with fewer pixels than the stride, and lines that are
# stored between each other.
conv_backward_data dy=f32/2x12x3x4x5/nhwc w=f32/12x8x3x3x3 dx=f32/2x8x6x7x10/nhwc stride=2 pad=1
conv_backward_data dy=f32/2x12x3x4x5/nhwc w=f32/12x8x3x3x3/nhwc dx=f32/2x8x6x7x9 stride=2 pad=1
conv_backward_data dy=f32/1x40x3x4x5/nhwc w=f32/40x70x2x3x3 dx=f32/1x70x4x7x9/nhwc stride=1,2,2 pad=0,1,1 ; tier=full
conv_backward_data dy=f32/2x12x1x1x5/nhwc w=f32/12x8x2x2x2 dx=f32/2x8x1x2x10 stride=2 pad=0:1,0,0
conv_backward_data dy=f32/2x12x4x4x5/nhwc w=f32/12x8x3x3x3 dx=f32/2x8x4x4x5 pad=1
conv_backward_data dy=f32/2x12x3x4x5/nhwc w=f32/12x8x3x3x3 dx=f32/2x8x6x7x10/nhwc stride=2 pad=1 ; fill=int dy.fill=special
conv_backward_data dy=f32/2x12x5x6 w=f32/12x20x5x3 dx=f32/2x20x10x18 stride=2,3 pad=2,0
conv_backward_data dy=f32/5x12x2x115 w=f32/12x70x1x3 dx=f32/5x70x2x230 stride=1,2 pad=0,1
conv_backward_data dy=f32/5x12x6x60 w=f32/12x70x3x3 dx=f32/5x70x11x119 stride=2 pad=1 ; tier=full
# the classes of a stride side by side as filters: few channels, edges of each class, channels last, classes that no tap sees
conv_backward_data dy=f32/2x24x9x11/nhwc w=f32/24x3x7x7/nhwc dx=f32/2x3x18x21/nhwc stride=2 pad=3 ; as=bf16
conv_backward_data dy=f32/1x16x6x7/nhwc w=f32/16x3x11x11 dx=f32/1x3x31x36 stride=4 pad=0:1,1
conv_backward_data dy=f32/3x9x5x6 w=f32/9x1x3x4 dx=f32/3x1x10x18 stride=2,3 pad=1
conv_backward_data dy=f32/2x10x5x6/nhwc w=f32/10x4x2x2 dx=f32/2x4x15x12 stride=3,2
conv_backward_data dy=f32/2x20x6x5 w=f32/20x2x3x5 dx=f32/2x4x11x10 stride=2 pad=1,2 groups=2 ; fill=int dy.fill=special
conv_backward_data dy=f32/1x12x3x5x4/nhwc w=f32/12x3x3x3x3 dx=f32/1x3x6x10x8/nhwc stride=2 pad=1
conv_backward_data dy=f32/1x8x6x6 w=f32/8x3x3x3 dx=f32/1x3x15x15 stride=2 dilation=2
conv_backward_data dy=f32/2x11x13 w=f32/11x3x7 dx=f32/2x3x26 stride=2 pad=3:2

# Gradients of f16 and bf16 widened as they are copied.
conv_backward_data dy=f16/2x1x1x604 w=f16/1x33x1x7 dx=f16/2x33x1x604 pad=0,3 ; as=bf16
conv_backward_data dy=f16/2x5x2x4x5 w=f16/5x3x3x5x5 dx=f16/2x3x2x8x10 stride=1,2,2 pad=1,2,2 ; as=bf16
conv_backward_data dy=f16/2x24x9x11/nhwc w=f16/24x3x7x7/nhwc dx=f16/2x3x18x21/nhwc stride=2 pad=3 ; as=bf16
conv_backward_data dy=f16/3x9x5x8 w=f16/9x1x3x4 dx=f32/3x1x10x24 stride=2,3 pad=1
conv_backward_data dy=f16/2x20x6x5 w=f16/20x2x3x5 dx=f16/2x4x11x10 stride=2 pad=1,2 groups=2 ; fill=int dy.fill=special
# channels last in, planes out
conv_backward_data dy=f16/2x24x9x7/nhwc w=f16/24x16x3x3/nhwc dx=f16/2x16x9x7 pad=1 ; as=bf16
conv_backward_data dy=bf16/2x136x3x6x8/nhwc w=bf16/136x8x3x3x3/nhwc dx=bf16/2x8x3x6x8 pad=1
conv_backward_data dy=f16/2x40x8x10/nhwc w=f16/40x24x3x3/nhwc dx=f16/2x24x16x20 stride=2 pad=1

# depthwise by filters of one row as a band
conv_backward_data dy=f16/2x6x150 w=f16/6x1x13 dx=f16/2x6x150 pad=6 groups=6 ; as=bf16
conv_backward_data dy=f16/1x3x1301 w=f16/3x1x33 dx=f16/1x3x1302 pad=20:11 groups=3
conv_backward_data dy=bf16/2x4x5x61 w=bf16/4x1x1x9 dx=bf16/2x4x5x77 dilation=1,2 groups=4
conv_backward_data dy=f16/1x4x301 w=f16/4x1x9 dx=f16/1x4x301 pad=4 groups=4 ; fill=signed dy.fill=special
# a tap of planes from few channels, and into few
conv_backward_data dy=f32/2x2x8x12 w=f32/2x37x1x1 dx=f32/2x37x8x12 ; as=f16,bf16
conv_backward_data dy=f32/3x45x4x8 w=f32/45x3x1x1 dx=f32/3x3x4x8 ; as=f16,bf16
conv_backward_data dy=f32/2x7x3x4x8 w=f32/7x70x1x1x1 dx=f32/2x70x3x4x8 ; as=f16
# few pixels and long sums: parts of a sum, in classes of unequal sums
conv_backward_data dy=f16/2x512x7x7/nhwc w=f16/512x72x3x3/nhwc dx=f16/2x72x7x7/nhwc pad=1 ; as=bf16
conv_backward_data dy=f16/1x1024x3x4/nhwc w=f16/1024x40x3x3/nhwc dx=f16/1x40x6x8/nhwc stride=2 pad=1
conv_backward_data dy=bf16/1x512x2x3x2/nhwc w=bf16/512x72x3x3x3/nhwc dx=f32/1x72x4x6x4/nhwc stride=2 pad=1
# taps of a row as channels of one pixel: few filters, rows, volumes, any layout of dy and w
conv_backward_data dy=f16/2x3x9x20/nhwc w=f16/3x24x7x7/nhwc dx=f16/2x24x9x20/nhwc pad=3 ; as=bf16
conv_backward_data dy=f16/1x24x6x7/nhwc w=f16/24x40x3x3/nhwc dx=f16/1x40x8x8/nhwc pad=1:1,0:1 dilation=2,1 ; as=bf16
conv_backward_data dy=f16/2x12x61 w=f16/12x16x17 dx=f16/2x16x61/nhwc pad=8
conv_backward_data dy=f16/1x9x4x5x4/nhwc w=f16/9x16x2x3x3/nhwc pad=1,1,0 dx=f16/1x16x3x5x6/nhwc
