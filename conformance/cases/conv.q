# conv_forward.

# geometry: dims, kernels, strides, dilation, asymmetric padding, groups, depthwise
conv_forward x=f32/2x3x7x9 w=f32/4x3x3x3 ; as=f16,bf16,f64
conv_forward x=f32/1x3x8x8 w=f32/5x3x3x3 pad=1,1 bias=f32/5 ; as=bf16
conv_forward x=f32/2x8x13x11 w=f32/16x8x3x3 pad=1,1 ; as=f16
conv_forward x=f32/2x5x10x9 w=f32/7x5x3x3 pad=1,1 stride=2,2 ; as=f64
conv_forward x=f32/1x16x9x9 w=f32/8x16x1x1
conv_forward x=f32/2x7x12x10 w=f32/9x7x1x1 stride=2,2 bias=f32/9 ; as=f16,bf16,f64
conv_forward x=f32/1x3x11x12 w=f32/4x3x5x5 pad=2,2 ; as=bf16
conv_forward x=f32/1x2x15x14 w=f32/3x2x7x7 pad=3,3 stride=2,2 ; as=f16
conv_forward x=f32/2x4x9x8 w=f32/6x2x3x2 pad=1:0,2:1 stride=2,1 dilation=1,2 groups=2 ; as=f64
conv_forward x=f32/1x6x8x7 w=f32/6x1x3x3 pad=0:1,1:0 groups=6 bias=f32/6
conv_forward x=f32/2x8x9x9 w=f32/8x1x3x3 pad=1,1 stride=2,2 groups=8 ; as=f16,bf16,f64
conv_forward x=f32/1x4x7x7 w=f32/12x1x3x3 pad=1,1 groups=4 ; as=bf16
conv_forward x=f32/1x9x6x7 w=f32/6x3x2x3 groups=3 ; as=f16
conv_forward x=f32/1x3x16x15 w=f32/4x3x3x3 pad=2,2 dilation=2,2 bias=f32/4 ; as=f64
conv_forward x=f32/1x3x20x13 w=f32/4x3x3x2 pad=3,0:7 stride=3,2 dilation=3,7
conv_forward x=f32/1x2x4x4 w=f32/2x2x3x3 pad=4,5:3 ; as=f16,bf16,f64
conv_forward x=f32/3x1x5x5 w=f32/1x1x2x2 stride=3,3 ; as=bf16
conv_forward x=f32/1x1x6x6 w=f32/33x1x3x3 bias=f32/33 ; as=f16
conv_forward x=f32/1x33x6x6 w=f32/1x33x3x3 ; as=f64
conv_forward x=f32/1x17x5x5 w=f32/31x17x3x3 pad=1,1
conv_forward x=f32/1x32x8x8 w=f32/32x32x3x3 pad=1,1 ; as=f16,bf16,f64
conv_forward x=f32/1x64x6x6 w=f32/64x64x3x3 pad=1,1 bias=f32/64 ; as=bf16
conv_forward x=f32/2x3x17 w=f32/4x3x3 pad=1 ; as=f16
conv_forward x=f32/1x5x33 w=f32/6x5x5 pad=4:0 stride=2 dilation=2 ; as=f64
conv_forward x=f32/1x8x31 w=f32/8x1x4 pad=2:1 groups=8
conv_forward x=f32/1x2x5x6x4 w=f32/3x2x3x3x3 pad=1,1,1 bias=f32/3 ; as=f16,bf16,f64
conv_forward x=f32/2x4x6x5x7 w=f32/4x2x2x3x1 pad=1:0,0:1,0 stride=2,1,2 dilation=1,2,1 groups=2 ; as=bf16
conv_forward x=f32/1x3x4x4x4 w=f32/3x1x2x2x2 groups=3 ; as=f16
conv_forward x=f32/1x1x1x1 w=f32/1x1x1x1 ; as=f64
conv_forward x=f32/1x2x3x70 w=f32/2x2x3x3 pad=1,1 bias=f32/2
conv_forward x=f32/1x2x70x3 w=f32/2x2x3x3 pad=1,1 ; as=f16,bf16,f64
conv_forward x=f32/1x16x14x14 w=f32/16x4x3x3 pad=1,1 stride=2,2 groups=4 ; as=bf16

# layouts: all of them, and mixed
conv_forward x=f32/2x8x7x9/nhwc w=f32/16x8x3x3/nhwc pad=1 ; as=f16,bf16,f64
conv_forward x=f32/2x8x7x9/nhwc w=f32/16x8x3x3 pad=1
conv_forward x=f32/2x8x7x9 w=f32/16x8x3x3/nhwc pad=1 y=f32/2x16x7x9/nhwc ; as=bf16
conv_forward x=f32/1x35x6x6/nhwc w=f32/17x35x3x3/nhwc pad=1 bias=f32/17 ; as=f16,bf16
conv_forward x=f32/1x3x9x9/nhwc w=f32/5x3x3x3/nhwc stride=2 pad=0:1,1:0
conv_forward x=f32/2x6x8x8/nhwc w=f32/6x1x3x3/nhwc groups=6 pad=1 ; as=bf16
conv_forward x=f32/2x4x6x6/288:72:12:2 w=f32/4x4x3x3
conv_forward x=f32/2x4x6x6 w=f32/4x4x3x3 y=f32/2x4x4x4/200:50:12:3
conv_forward x=f32/2x4x6x6@4 w=f32/4x4x3x3@4 y=f32/2x4x4x4@4
conv_forward x=f32/1x4x6x6/0:36:6:1 w=f32/4x4x3x3
conv_forward x=f32/2x4x6x6/36:0:6:1 w=f32/4x4x3x3

# depthwise in pairs of channels: windows of 3, 5, 7, strides, tails of tiles, more pairs than a block holds; odd channels
conv_forward x=bf16/2x24x9x10/nhwc w=bf16/24x1x3x3/nhwc pad=1 groups=24 ; as=f16,f32
conv_forward x=bf16/3x144x15x14/nhwc w=bf16/144x1x3x3/nhwc pad=0:1,1:0 groups=144 bias=bf16/144
conv_forward x=bf16/2x24x9x10/nhwc w=bf16/24x1x3x3/nhwc pad=1 groups=24 bias=f32/24 y=f32/2x24x9x10/nhwc
conv_forward x=bf16/1x256x8x9/nhwc w=bf16/256x1x3x3/nhwc stride=2 pad=1 groups=256 ; as=f32
conv_forward x=f16/2x16x17x8/nhwc w=f16/16x1x5x5/nhwc pad=2 groups=16 y=f32/2x16x17x8/nhwc
conv_forward x=bf16/1x8x11x20/nhwc w=bf16/8x1x5x5/nhwc stride=2 pad=3,0 groups=8 bias=f32/8
conv_forward x=bf16/2x200x14x14/nhwc w=bf16/200x1x7x7/nhwc pad=3 groups=200
conv_forward x=bf16/2x40x19x21/nhwc w=bf16/40x1x7x7/nhwc pad=3 groups=40
conv_forward x=f16/1x24x35x15/nhwc w=f16/24x1x5x7/nhwc pad=0,4 groups=24 bias=f16/24
conv_forward x=f32/1x8x7x16/nhwc w=f32/8x1x7x7 pad=4,2 groups=8 ; as=bf16,f16 x.fill=special fill=int
conv_forward x=bf16/2x6x9x10/nhwc w=bf16/12x1x3x3/nhwc pad=1 groups=6 stride=2,1 ; as=f16,f32
conv_forward x=bf16/2x6x9x10 w=bf16/6x1x3x3 pad=2 dilation=2 groups=6 bias=bf16/6 ; as=f32

# groups of few channels: 8 to 64 of them, filter counts not a power of two, tails of tiles and groups, odd numbers of chunks
conv_forward x=bf16/2x72x11x13/nhwc w=bf16/72x8x3x3/nhwc pad=1 groups=9 ; as=f16
conv_forward x=bf16/1x64x14x30/nhwc w=bf16/96x16x3x3 pad=1:2,0 stride=2 groups=4 bias=bf16/96
conv_forward x=f16/1x64x9x9/nhwc w=f16/48x32x3x2/nhwc dilation=2,1 pad=2 groups=2 y=f32/1x48x9x12/nhwc
conv_forward x=bf16/1x128x7x7/nhwc w=bf16/128x64x3x3/nhwc pad=1 groups=2
conv_forward x=bf16/2x16x12x20/nhwc w=bf16/32x8x5x5/nhwc pad=2 groups=2 ; fill=int x.fill=special
conv_forward x=bf16/2x24x150/nhwc w=bf16/24x8x3/nhwc pad=1 groups=3
conv_forward x=bf16/140x16x20x20/nhwc w=bf16/16x8x3x3/nhwc pad=1 groups=2 ; kind=cuda
conv_forward x=f16/2x64x31x9/nhwc w=f16/64x8x3x3/nhwc groups=8

# large filters, by Fourier transforms of tiles: several tiles each way, tails, odd channels, more than a block of them; NaN must not spread
conv_forward x=f32/2x5x40x33 w=f32/7x5x9x5 pad=4:3,1 bias=f32/7
conv_forward x=f32/1x17x29x20/nhwc w=f32/18x17x7x7 pad=3
conv_forward x=f32/1x2x26x30 w=f32/3x2x24x23 pad=2
conv_forward x=f32/1x2x35x61 w=f32/3x2x5x5 pad=2,1 ; fill=int x.fill=special

# a first layer: few channels, windows that begin at odd elements, rows of windows not a multiple of eight, tails of sixteen
conv_forward x=bf16/2x3x37x38/nhwc w=bf16/64x3x7x7/nhwc stride=2 pad=3 ; as=f16
conv_forward x=bf16/3x3x9x21/nhwc w=bf16/72x3x3x3/nhwc pad=1 bias=bf16/72
conv_forward x=f16/1x4x18x40/nhwc w=f16/24x4x4x4/nhwc stride=4 y=f32/1x24x4x10/nhwc
conv_forward x=bf16/1x1x20x33/nhwc w=bf16/8x1x5x5 pad=2:1,0:3 dilation=2,1
conv_forward x=bf16/2x5x11x19/nhwc w=bf16/16x5x3x2/nhwc pad=1 stride=1,2 ; fill=int x.fill=special
conv_forward x=bf16/1x3x40x40/nhwc w=bf16/96x3x11x11/nhwc stride=4 pad=2
conv_forward x=bf16/1x7x33/nhwc w=bf16/40x7x3/nhwc pad=1

# channels last, in eights: windows loaded by TMA, products on Tensor Cores; edges of tiles, chunks and windows
conv_forward x=f32/2x64x9x11/nhwc w=f32/72x64x3x3/nhwc pad=1 bias=f32/72 ; as=f16,bf16
conv_forward x=f32/3x24x13x10/nhwc w=f32/40x24x5x3/nhwc pad=2:1,0:3 stride=2,3 dilation=1,2 ; as=f16,bf16
conv_forward x=f32/2x136x6x7/nhwc w=f32/328x136x2x2/nhwc ; as=bf16
conv_forward x=f32/5x72x12x12/nhwc w=f32/264x72x1x1/nhwc stride=2 ; as=f16,bf16
conv_forward x=f32/3x16x37/nhwc w=f32/24x16x5/nhwc pad=3:1 stride=2 ; as=f16,bf16
conv_forward x=f32/2x16x6x7x9/nhwc w=f32/72x16x3x2x3/nhwc pad=1:0,0:1,1 stride=2,1,2 ; as=f16,bf16
conv_forward x=bf16/2x16x9x9/nhwc w=bf16/64x16x3x3/nhwc pad=1 y=f32/2x64x9x9/nhwc
conv_forward x=f16/1x512x5x5/nhwc w=f16/128x512x3x3/nhwc pad=1 y=f32/1x128x5x5/nhwc

# Under `deterministic=batch` neither a long sum's split nor the order of a window's places depends on how many images there are.
conv_forward x=f32/2x512x4x4 w=f32/16x512x3x3 pad=1 ; fill=signed
conv_forward x=f32/6x5x2x2/nhwc w=f32/20x5x3x3 pad=1 ; fill=signed

# long sums, many images, many positions
conv_forward x=f32/1x512x3x3 w=f32/2x512x3x3 ; as=f16,bf16
conv_forward x=f32/1x64x9x9 w=f32/8x64x3x3 pad=1 ; fill=ipos,pos as=f16,bf16
conv_forward x=f32/70000x1x1x1 w=f32/2x1x1x1 ; plain=1 fill=int
conv_forward x=f32/1x1x1x70001 w=f32/1x1x1x3 ; plain=1 fill=int

# zero sizes: no images, no input channels, no output channels, a kernel larger than its input
conv_forward x=f32/0x3x5x5 w=f32/4x3x3x3 ; plain=1
conv_forward x=f32/2x0x5x5 w=f32/4x0x3x3 bias=f32/4 ; plain=1
conv_forward x=f32/2x3x5x5 w=f32/0x3x3x3 ; plain=1
conv_forward x=f32/2x3x2x2 w=f32/4x3x3x3 ; plain=1

# more than a tile of pixels and of filters, and their tails; images that end within a group of eight rows; many taps of few channels
conv_forward x=f32/3x9x13x11 w=f32/130x9x3x3 pad=1 bias=f32/130
conv_forward x=f32/2x36x15x9/nhwc w=f32/70x36x3x2/nhwc pad=1 stride=2
conv_forward x=f32/1x8x30x20 w=f32/12x8x5x3 pad=2:1,0
conv_forward x=f32/140x12x1x1 w=f32/9x12x1x1

# Winograd's tiles and their tails: several blocks of tiles and of channels, 5 by 5 filters, padding beyond the filter
conv_forward x=f32/3x37x14x23 w=f32/35x37x3x3 pad=1 bias=f32/35 ; tier=default
conv_forward x=f32/2x40x9x10/nhwc w=f32/33x40x3x3/nhwc pad=2,0
conv_forward x=f32/2x12x13x9 w=f32/36x12x5x5 pad=2:1,0 bias=f32/36
conv_forward x=f32/1x36x6x11/nhwc w=f32/40x36x5x5/nhwc pad=2 ; fill=ipos,pos
conv_forward x=f32/1x2x4x5 w=f32/3x2x3x3 pad=5:3,4
conv_forward x=f32/2x3x11x12 w=f32/4x3x5x5 pad=2 ; fill=int x.fill=special

# NaN and Inf reach only the windows that hold them
conv_forward x=f32/2x3x7x9 w=f32/4x3x3x3 pad=1 ; fill=int x.fill=special as=f16,bf16,f64
conv_forward x=f32/1x4x6x6 w=f32/4x1x3x3 groups=4 pad=1 ; fill=signed x.fill=special
conv_forward x=f32/1x3x5x5 w=f32/4x3x3x3 ; fill=int w.fill=special

# a tap in the padding may be 0 times a non-finite element
conv_forward x=f32/1x2x5x6 w=f32/3x2x3x3 pad=1 ; fill=signed w.fill=special as=f16,bf16

# 8-bit types, and f32 results of 16-bit inputs
conv_forward x=i8/2x5x7x7 w=i8/6x5x3x3 pad=1
conv_forward x=u8/1x4x6x6 w=i8/4x1x3x3 groups=4
conv_forward x=e4m3/1x8x6x6 w=e4m3/8x8x3x3 y=f32/1x8x4x4
conv_forward x=e5m2/1x8x6x6/nhwc w=e4m3/8x8x3x3/nhwc y=bf16/1x8x4x4/nhwc
conv_forward x=bf16/1x8x6x6 w=bf16/8x8x3x3 y=f32/1x8x4x4
conv_forward x=f16/1x8x6x6 w=f16/8x8x3x3 bias=f32/8 y=f32/1x8x4x4

# few channels: tiles of 8 by 32 and 64 filters, and their tails
conv_forward x=f32/2x3x19x44 w=f32/70x3x3x3 bias=f32/70 pad=1
conv_forward x=f32/2x4x6x10/nhwc w=f32/9x4x3x3/nhwc y=f32/2x9x5x8/600:60:12:1 pad=1:0,0
conv_forward x=f32/1x2x9x8 w=f32/3x2x3x3 pad=1 ; fill=int x.fill=special

# depthwise, channels last, rows of one pixel
conv_forward x=f32/2x24x7x7/nhwc w=f32/24x1x7x7 groups=24 ; as=bf16
conv_forward x=f32/2x8x5x3/nhwc w=f32/8x1x3x3 bias=f32/8 groups=8

# one element, planes of one element, none
conv_forward x=f32/1x1x1x1 w=f32/1x1x1x1
conv_forward x=f32/3x8x1x1 w=f32/5x8x3x3 pad=1 ; as=bf16
conv_forward x=f32/0x3x5x5 w=f32/4x3x3x3
# groups of channels that are no eights: merged (channels last), padded (other layouts), one after another (wide)
conv_forward x=bf16/2x16x9x11/nhwc w=bf16/16x4x3x3/nhwc pad=1 groups=4 ; as=f16
conv_forward x=f16/2x64x7x10/nhwc w=f16/64x4x3x3/nhwc bias=f16/64 pad=1 stride=2 groups=16
conv_forward x=bf16/1x48x6x7/nhwc w=bf16/64x6x3x3 pad=1 groups=8
conv_forward x=bf16/1x32x5x6/nhwc w=bf16/64x4x1x1/nhwc groups=8
conv_forward x=bf16/1x16x6x6/nhwc w=bf16/16x4x3x3/nhwc pad=1 groups=4 ; fill=signed x.fill=special
conv_forward x=bf16/1x16x6x6/nhwc w=bf16/16x4x3x3/nhwc pad=1 groups=4 ; fill=signed w.fill=special
conv_forward x=bf16/1x24x6x6/nhwc w=bf16/24x12x3x2/nhwc bias=f32/24 y=f32/1x24x4x5/nhwc groups=2 ; fill=int x.fill=special
conv_forward x=bf16/2x32x9x8 w=bf16/32x4x3x3 bias=bf16/32 pad=1 groups=8 ; as=f16
conv_forward x=bf16/2x36x7x9 w=bf16/60x12x3x3 bias=f32/60 pad=1,0 stride=1,2 groups=3
conv_forward x=f16/1x30x31 w=f16/20x15x5 pad=2 groups=2
conv_forward x=bf16/1x192x6x5/nhwc w=bf16/256x96x3x3/nhwc bias=bf16/256 pad=1 groups=2 ; as=f16
conv_forward x=bf16/1x192x6x6 w=bf16/160x96x3x3 bias=bf16/160 pad=1 groups=2
conv_forward x=f32/1x144x6x6 w=f32/144x72x3x3 pad=1 groups=2
conv_forward x=bf16/1x160x4x5x3/nhwc w=bf16/144x80x3x3x3/nhwc pad=1 groups=2

# f32 on FP32 cores: tiles of several images, of rows, of parts of rows; filters in several blocks; depth
conv_forward x=f32/9x8x7x7 w=f32/8x4x3x3 bias=f32/8 pad=1 groups=2
conv_forward x=f32/2x12x40x37/nhwc w=f32/72x6x3x3 pad=1 stride=2 groups=2
conv_forward x=f32/1x6x1300 w=f32/10x3x7 pad=6 dilation=2 groups=2
conv_forward x=f32/2x4x5x9x8 w=f32/8x2x3x3x3 bias=f32/8 pad=1 stride=1,2,1 groups=2
conv_forward x=f32/1x2x33x34 w=f32/36x1x5x3 pad=2,1 groups=2 ; fill=int x.fill=special
# depthwise on planes: rows of 1 to 11 taps and more, strides, dilation, several filters a channel, bands, long rows, volumes, both layouts
conv_forward x=f32/2x5x9x16 w=f32/5x1x3x3 pad=1 groups=5 ; as=f16,bf16
conv_forward x=bf16/3x33x7x7 w=bf16/33x1x5x5 pad=2 groups=33 bias=bf16/33 ; as=f32
conv_forward x=f16/2x6x14x14 w=f16/6x1x7x7 pad=3 groups=6
conv_forward x=f16/1x3x13x22 w=f16/3x1x9x11 pad=4,5 groups=3 ; as=f32
conv_forward x=bf16/1x3x37x35 w=bf16/3x1x31x31 pad=15 groups=3
conv_forward x=f16/2x7x15x17 w=f16/7x1x3x3 stride=2 pad=1 groups=7 ; as=f32
conv_forward x=bf16/2x5x14x20 w=bf16/5x1x5x5 stride=2 pad=2 groups=5 bias=f32/5
conv_forward x=f16/1x4x23x25 w=f16/4x1x7x9 stride=1,2 pad=3,4 groups=4
conv_forward x=bf16/1x4x23x25 w=bf16/4x1x4x3 stride=3,4 pad=1 groups=4
conv_forward x=bf16/2x5x16x15 w=bf16/10x1x3x5 dilation=2,3 pad=2,6 groups=5 ; as=f16
conv_forward x=f32/1x3x8x9 w=f32/9x1x4x1 pad=2:1,0 groups=3 bias=f32/9
conv_forward x=f16/2x96x40 w=f16/96x1x4 pad=3:0 groups=96 ; as=f32
conv_forward x=f16/2x5x40 w=f16/5x1x31 pad=15 groups=5 ; as=f32,bf16
conv_forward x=f32/2x4x70 w=f32/8x1x64 pad=30:31 groups=4 bias=f32/8
conv_forward x=bf16/1x3x5003 w=bf16/3x1x31 pad=15 groups=3 ; as=f32
conv_forward x=f16/1x2x12001/nhwc w=f16/2x1x101 pad=50 groups=2 y=f16/1x2x12001
conv_forward x=f32/1x2x90x75 w=f32/2x1x3x3 pad=1 groups=2 ; as=bf16
conv_forward x=bf16/1x2x60x301 w=bf16/4x1x5x3 pad=2,1 stride=1,2 groups=2
conv_forward x=bf16/2x24x5x9x10 w=bf16/24x1x3x3x3 pad=1 groups=24 ; as=f32
conv_forward x=f16/1x3x6x48x50 w=f16/3x1x5x3x3 pad=2,1,1 groups=3
conv_forward x=f16/1x3x12x21x23 w=f16/3x1x3x3x3 stride=2 pad=1 groups=3 bias=f16/3
conv_forward x=bf16/2x13x9x10/nhwc w=bf16/13x1x3x3 pad=1 groups=13 ; as=f32
conv_forward x=bf16/1x40x33x31/nhwc w=bf16/40x1x9x9 pad=4 groups=40 ; tier=default
conv_forward x=f16/2x48x70/nhwc w=f16/48x1x31 pad=15 groups=48 bias=f16/48
conv_forward x=f16/1x24x6x20x19/nhwc w=f16/24x1x3x5x5 pad=1,2,2 stride=1,2,2 groups=24 ; as=f32
conv_forward x=bf16/2x6x12x12/nhwc w=bf16/12x1x3x3 dilation=2 pad=2 groups=6 y=bf16/2x12x12x12
conv_forward x=f16/1x6x9x10@2 w=f16/6x1x3x3 pad=1 groups=6 ; as=bf16
conv_forward x=f32/1x6x9x10 w=f32/6x1x3x5 pad=2 groups=6 ; fill=signed w.fill=special as=f16
conv_forward x=f32/1x3x9x10/nhwc w=f32/6x1x3x3 pad=2 dilation=2 groups=3 ; fill=int x.fill=special

# windows as rows of a matrix: patches (stride = filter) of 16, 14, 8, 4, 2x16, with a crop and channels last; views of x; chunks of images and of
# rows, and the last, smaller one; one channel, three spatial dims, groups, filters in another order than x
conv_forward x=f32/2x3x48x32 w=f32/20x3x16x16 stride=16 bias=f32/20 ; as=f16,bf16,f64
conv_forward x=f32/1x3x30x44 w=f32/9x3x14x14 stride=14 ; as=f16
conv_forward x=f32/2x3x17x35/nhwc w=f32/24x3x4x4/nhwc stride=4 bias=f32/24 ; as=f16
conv_forward x=bf16/2x3x17x35/nhwc w=bf16/24x3x4x4/nhwc stride=4 bias=f32/24
conv_forward x=f32/1x2x4x32x16 w=f32/12x2x2x16x8 stride=2,16,8 ; as=f16
conv_forward x=f32/2x12x24/nhwc w=f32/10x12x4/nhwc stride=4 ; as=f16
conv_forward x=f32/3x8x5x4 w=f32/17x8x5x4 bias=f32/17 ; as=f16
conv_forward x=f32/2x24x6x8 w=f32/16x12x1x1 groups=2 bias=f32/16 ; as=f16,f64
conv_forward x=f32/1x2x65x60 w=f32/4x2x9x9 bias=f32/4 ; as=f16
conv_forward x=f32/7x3x40x37 w=f32/8x3x7x7 pad=3 ; as=bf16
conv_forward x=f32/2x5x9x40x33/nhwc w=f32/3x5x3x3x3/nhwc pad=1 ; as=f16
conv_forward x=f32/1x1x60000 w=f32/3x1x10 stride=5 ; as=f16
conv_forward x=f32/2x12x9x11/nhwc w=f32/16x6x3x3 pad=1 groups=2 bias=f32/16 ; as=f16,f64
conv_forward x=i8/2x3x9x12 w=i8/8x3x3x3 pad=1 stride=2 bias=i32/8
conv_forward x=i8/2x32x8x8/nhwc w=i8/16x16x2x2/nhwc stride=2 groups=2 bias=i32/16
conv_forward x=e5m2/2x3x16x16 w=e4m3/8x3x4x4 stride=4 bias=f16/8 y=f16/2x8x4x4

# f32 with channels last: groups of 2, 4 and 8 side by side in a vector, the last vector partial; few outputs of many inputs
conv_forward x=f32/2x40x9x11/nhwc w=f32/40x4x3x3/nhwc pad=1 groups=10 bias=f32/40
conv_forward x=f32/1x24x13x7/nhwc w=f32/24x8x3x3/nhwc stride=2 pad=1 groups=3 ; fill=int x.fill=special
conv_forward x=f32/2x36x5x19/nhwc w=f32/36x2x3x5/nhwc pad=1,2 dilation=1,2 groups=18
conv_forward x=f32/1x37x8x21/nhwc w=f32/3x37x3x3/nhwc pad=1 bias=f32/3
conv_forward x=f32/2x96x1x17/nhwc w=f32/80x48x1x3/nhwc pad=0,1 groups=2
# windows gathered from planes: groups of 24, a tap alone by fours, few channels of volumes, long filters, infinity beside padding
conv_forward x=f32/3x72x7x9 w=f32/48x24x3x3 bias=f32/48 pad=1 groups=3 ; as=f16
conv_forward x=f32/3x20x6x6 w=f32/50x10x1x1 bias=f32/50 groups=2 ; as=bf16
conv_forward x=f16/1x2x7x9x10 w=f16/70x2x3x3x2 pad=1 dilation=2,1,1
conv_forward x=f32/2x5x40 w=f32/33x5x25 pad=12 ; fill=int x.fill=special
# one tap over planes: tiles of several images, in units of 16, 8 and 4 bytes; filters of odd rows; groups; volumes; infinity, again in f32
conv_forward x=f32/3x20x6x6 w=f32/70x20x1x1 bias=f32/70 ; as=f16,bf16
conv_forward x=f32/3x37x7x7 w=f32/33x37x1x1
conv_forward x=f16/3x37x2x7 w=f16/33x37x1x1
conv_forward x=f32/5x45x4x8 w=f32/40x9x1x1 bias=f32/40 groups=5 ; as=bf16
conv_forward x=bf16/2x96x17x16 w=bf16/130x96x1x1 y=f32/2x130x17x16
conv_forward x=f32/2x9x2x3x4 w=f32/8x9x1x1x1 ; as=f16
conv_forward x=f32/2x10x4x4 w=f32/6x10x1x1 ; fill=int x.fill=special
# images of one pixel: one product for all
conv_forward x=f32/9x28x1x1 w=f32/70x28x1x1 bias=f32/70 ; as=f16,bf16
conv_forward x=f16/9x48x1x1 w=f16/24x16x1x1 groups=3 bias=f16/24
# depthwise by loads from L1: odd channels, pairs of channels, edges that are no whole tile, a tap alone, infinity beside padding
conv_forward x=f32/2x45x9x11/nhwc w=f32/45x1x3x3 pad=1 groups=45 bias=f32/45 ; as=f16,bf16
conv_forward x=f32/2x30x9x6/nhwc w=f32/30x1x5x5 stride=2 pad=2:1,1:2 groups=30 bias=f32/30 ; as=f16,bf16
conv_forward x=f32/2x5x7x6 w=f32/5x1x1x1 groups=5 ; as=f16
conv_forward x=f32/1x6x9x10 w=f32/6x1x3x3 pad=1 groups=6 ; fill=signed w.fill=special as=bf16
# f32 planes gathered in shared memory: several chunks of channels, rows of whole vectors that padding shifts, infinity beside padding
conv_forward x=f32/3x100x10x12 w=f32/40x50x3x3 pad=1:0,2:1 groups=2 bias=f32/40
conv_forward x=f32/1x48x5x6x10 w=f32/27x48x1x3x3 pad=0,1,1 dilation=1,1,2
conv_forward x=f32/1x8x9x10 w=f32/8x4x3x3 pad=1 groups=2 ; fill=signed w.fill=special
# windows too far apart for shared memory; a dim of 1 with a stride beyond 32 bits, padded
conv_forward x=f32/1x1x8x8 w=f32/1x1x2x2 dilation=32767,32756 pad=16380,16376
conv_forward x=f32/1x4x1x16/64:16:4294967296:1 w=f32/4x4x3x3 pad=1
conv_forward x=f32/2x4x1x16/64:16:4294967296:1 w=f32/4x1x3x3 pad=1 groups=4 ; as=bf16

# A sum of many terms and few results, split among blocks; volumes channels last.
conv_forward x=f32/1x64x5x5/nhwc w=f32/20x64x5x5/nhwc pad=2 bias=f32/20 ; as=f16
conv_forward x=f32/1x64x4x3x3/nhwc w=f32/24x64x3x3x3/nhwc pad=1 ; as=bf16
conv_forward x=f32/1x32x5x5/nhwc w=f32/20x32x5x5/nhwc pad=2 ; fill=int x.fill=special
conv_forward x=f32/1x36x4x9x5/nhwc w=f32/20x36x2x3x1 bias=f32/20 pad=1,1,0 dilation=2,1,1

# Volumes of few channels, whose windows along D become channels.
conv_forward x=f32/2x3x6x9x10 w=f32/24x3x3x3x2 y=f32/2x24x5x9x9/nhwc bias=f32/24 pad=1:0,1,0 ; as=f16,bf16
conv_forward x=f16/1x1x9x8x7/nhwc w=f16/8x1x3x5x3/nhwc y=f16/1x8x4x6x7/nhwc stride=2,1,1 dilation=2,1,1 pad=1:2,1,1
conv_forward x=bf16/1x3x5x7x6/nhwc w=bf16/9x3x2x3x3 y=f32/1x9x4x7x6/nhwc bias=f32/9 pad=0,1,1

# Volumes channels last: few filters; one plane, whose stride is any; strides and taps that reach far; y's lines apart, and a bias.
conv_forward x=f32/1x32x4x6x5/nhwc w=f32/3x32x2x3x3/nhwc bias=f32/3 pad=1,1,0
conv_forward x=f32/2x8x1x6x7/336:1:5:56:8 w=f32/12x8x3x3x3/nhwc y=f32/2x12x1x6x7/504:1:3:84:12 pad=1
conv_forward x=f32/1x8x19x4x4/nhwc w=f32/4x8x3x1x3/nhwc stride=9,1,1 pad=1
conv_forward x=f32/1x4x40x3x3/nhwc w=f32/4x4x3x1x2/nhwc dilation=18,1,1 pad=15:20,0,0
conv_forward x=f32/2x32x6x7 w=f32/12x32x3x3 y=f32/2x12x6x7/720:60:10:1 bias=f32/12 pad=1
conv_forward x=f32/2x32x6x7/nhwc w=f32/12x32x3x3 y=f32/2x12x6x7/720:1:120:12 bias=f32/12 pad=1

# Windows that do not overlap, of two and four elements a row, of many channels; what no window sees.
conv_forward x=f32/2x40x12x18 w=f32/8x40x2x2 stride=2 ; as=f16
conv_forward x=bf16/1x18x6x8x21 w=bf16/8x18x2x2x4 stride=2,2,4

# Volumes of which two dims are one: their planes as images, their lines as one.
conv_forward x=f32/2x12x5x6x4 w=f32/8x12x3x1x1 bias=f32/8 stride=2,1,1 pad=1,0,0 ; as=f16
conv_forward x=f32/2x12x3x6x4/nhwc w=f32/8x12x1x3x2 stride=1,1,2 pad=0,1:0,0 ; as=bf16
conv_forward x=f32/1x12x3x6x4 w=f32/8x6x1x3x3 dilation=5,1,1 pad=0,1,1 groups=2
conv_forward x=f32/2x12x3x6x4 w=f32/8x12x1x1x1 bias=f32/8

# Volumes read channels last and written in other layouts.
conv_forward x=f32/2x12x3x4x6/nhwc w=f32/10x12x3x3x3 bias=f32/10 y=f32/2x10x3x2x3 pad=1 stride=1,2,2
conv_forward x=f32/2x12x3x4x5/nhwc w=f32/10x12x3x3x3 y=f32/2x10x3x4x5/1500:150:50:10:2 pad=1

# Windows of f16 and bf16 widened as they are copied: rows in fours, in pairs, in neither; long ones; infinities and what overflows.
conv_forward x=f16/2x6x3x300 w=f16/3x6x3x5 bias=f16/3 pad=1,2 ; as=bf16
conv_forward x=f16/2x5x4x9x10 w=f16/9x5x3x3x3 stride=1,2,2 pad=1 ; as=bf16
conv_forward x=f16/1x9x1x2101 w=f16/1x9x1x7 y=f32/1x1x1x2101 pad=0,3
conv_forward x=f16/2x6x5x7 w=f16/3x6x3x3 pad=1 ; fill=int x.fill=special
# Volumes plane by plane, images apart.
conv_forward x=f32/3x9x3x5x7 w=f32/70x9x2x3x3 stride=1,2,2 pad=0,1,1
# Channels last in, planes out: images apart, odd rows, strides, more filters than a tile.
conv_forward x=f16/2x16x9x7/nhwc w=f16/24x16x3x3/nhwc y=f16/2x24x9x7 pad=1 bias=f16/24 ; as=bf16
conv_forward x=f16/3x64x8x12/nhwc w=f16/72x64x3x3/nhwc y=f32/3x72x4x6 stride=2 pad=1
conv_forward x=bf16/2x8x3x6x8/nhwc w=bf16/136x8x3x3x3/nhwc y=bf16/2x136x3x6x8 pad=1
conv_forward x=f16/2x32x1x72/nhwc w=f16/1x32x1x7/nhwc y=f16/2x1x1x72 pad=0,3

# Depthwise by filters of one row as a band: strides, dilations, odd rows and parts of rows, lines of images and volumes, infinities.
conv_forward x=f16/2x6x150 w=f16/6x1x13 bias=f16/6 pad=6 groups=6 ; as=bf16
conv_forward x=f16/1x3x1301 w=f16/3x1x33 pad=20:11 groups=3 ; as=bf16
conv_forward x=f16/2x4x517 w=f16/4x1x5 stride=4 dilation=7 pad=9 groups=4 ; as=bf16
conv_forward x=f16/2x3x5x70 w=f16/3x1x1x89 pad=0,44 groups=3
conv_forward x=bf16/1x2x3x4x33 w=bf16/2x1x1x1x3 y=f32/1x2x3x4x17 stride=1,1,2 pad=0,0,1 groups=2
conv_forward x=f16/1x4x301 w=f16/4x1x9 pad=4 groups=4 ; fill=signed x.fill=special
conv_forward x=f16/1x2x64 w=f16/2x1x7 pad=3 groups=2 ; fill=int w.fill=special as=bf16
conv_forward x=f16/2x3x1 w=f16/3x1x3 pad=1 groups=3

# A tap of planes into few channels, and from few: images apart, no whole block, infinities.
conv_forward x=f32/2x37x8x12 w=f32/2x37x1x1 bias=f32/2 ; as=f16,bf16
conv_forward x=f32/3x3x4x8 w=f32/45x3x1x1 bias=f32/45 ; as=f16,bf16
conv_forward x=f32/2x70x3x4x8 w=f32/7x70x1x1x1 ; as=f16,bf16
conv_forward x=f32/2x9x1040 w=f32/8x9x1 bias=f32/8 ; as=f16,bf16
conv_forward x=f32/2x5x8x8/512:64:8:1 w=f32/6x5x1x1/1:6:1:1 y=f32/2x6x8x8/640:64:8:1 ; as=f16
conv_forward x=f16/1x8x8x8 w=f16/4x8x1x1 ; fill=signed x.fill=special
conv_forward x=f32/1x4x8x4 w=f32/9x4x1x1 ; fill=int w.fill=special

# Few pixels and long sums: parts of a sum, of a channel's taps, of several images; biases, planes.
conv_forward x=f16/2x512x7x7/nhwc w=f16/72x512x3x3/nhwc bias=f16/72 pad=1 ; as=bf16
conv_forward x=bf16/1x1024x4x5/nhwc w=bf16/16x1024x3x3/nhwc y=f32/1x16x2x3/nhwc stride=2 pad=1
conv_forward x=f16/1x256x3x4x5/nhwc w=f16/136x256x3x3x3/nhwc pad=1
conv_forward x=f16/1x264x9x9 w=f16/24x264x5x5 bias=f16/24 pad=2

# Taps of a row as channels of one pixel: few channels, strides, dilated columns, rows, volumes, any layout of x and w, infinities.
conv_forward x=f16/2x3x9x20/nhwc w=f16/24x3x7x7/nhwc stride=2 pad=3 bias=f16/24 ; as=bf16
conv_forward x=f16/1x24x7x9/nhwc w=f16/40x24x3x3/nhwc pad=1:0,2:1 dilation=2,1 ; as=bf16
conv_forward x=f16/2x12x61/nhwc w=f16/16x12x17/nhwc stride=2 pad=8
conv_forward x=f16/1x9x3x5x6/nhwc w=f16/16x9x2x3x3/nhwc pad=1,1,0 y=f32/1x16x4x5x4/nhwc
conv_forward x=bf16/2x5x6x11 w=bf16/16x5x2x5 y=bf16/2x16x5x5/nhwc stride=1,2 pad=0,1
conv_forward x=f16/1x8x8x8/nhwc w=f16/8x8x3x3/nhwc pad=1 ; fill=signed x.fill=special
