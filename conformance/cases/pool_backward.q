# pool_max_backward and pool_average_backward.

# max: by indices, or recomputed from x
pool_max_backward dy=f32/2x3x4x4 indices=i32/2x3x4x4 dx=f32/2x3x8x9 window=2,2 ; as=f16,bf16,f64
pool_max_backward dy=f32/2x3x5x4 x=f32/2x3x9x8 window=3,3 stride=2,2 pad=1,1 ; as=bf16
pool_max_backward dy=f32/1x5x7x7 indices=i64/1x5x7x7 dx=f32/1x5x7x7 window=3,3 stride=1,1 pad=1,1 ; as=f16
pool_max_backward dy=f32/1x17x5x2 x=f32/1x17x6x5 window=2,3 stride=1,2 ; as=f64
pool_max_backward dy=f32/2x4x5x4 indices=u8/2x4x5x4 dx=f32/2x4x11x10 window=3,2 stride=2,3 pad=1:0,0:1
pool_max_backward dy=f32/1x3x5x5 x=f32/1x3x10x10 window=3,3 stride=2,2 ceil_mode=1 ; as=f16,bf16,f64
pool_max_backward dy=f32/1x3x6x6 indices=i32/1x3x6x6 dx=f32/1x3x10x11 window=3,3 stride=2,2 pad=1,1 ceil_mode=1 ; as=bf16
pool_max_backward dy=f32/1x2x2x2 x=f32/1x2x5x5 window=2,2 stride=3,3 pad=1,1 ceil_mode=1 ; as=f16
pool_max_backward dy=f32/1x2x4x4 indices=i64/1x2x4x4 dx=f32/1x2x12x12 window=3,3 stride=2,2 dilation=2,2 ; as=f64
pool_max_backward dy=f32/1x2x8x7 x=f32/1x2x9x13 window=2,3 stride=1,2 pad=1,2 dilation=3,2
pool_max_backward dy=f32/2x33x1x1 indices=u8/2x33x1x1 dx=f32/2x33x4x4 ; as=f16,bf16,f64
pool_max_backward dy=f32/2x4x1x2 x=f32/2x4x7x5 window=0,2 ; as=bf16
pool_max_backward dy=f32/1x4x17 indices=i32/1x4x17 dx=f32/1x4x33 window=3 stride=2 pad=1 ; as=f16
pool_max_backward dy=f32/2x3x1 x=f32/2x3x64 window=64 ; as=f64
pool_max_backward dy=f32/1x3x3x2x3 indices=i64/1x3x3x2x3 dx=f32/1x3x6x5x7 window=2,2,2
pool_max_backward dy=f32/1x3x4x4x4 x=f32/1x3x6x5x7 window=3,2,3 stride=2,1,2 pad=1,0,1 ceil_mode=1 ; as=f16,bf16,f64
pool_max_backward dy=f32/1x8x4x4/nhwc indices=u8/1x8x4x4/nhwc dx=f32/1x8x7x7/nhwc window=3,3 stride=2,2 pad=1,1 ; as=bf16 tier=quick
pool_max_backward dy=f32/1x35x4x4/nhwc x=f32/1x35x5x5/nhwc window=2,2 stride=1,1 ; as=f16
pool_max_backward dy=f32/1x1x65x2 indices=i32/1x1x65x2 dx=f32/1x1x130x3 window=2,2 stride=2,1 ; as=f64
pool_max_backward dy=f32/1x64x2x2 x=f32/1x64x3x3 window=2,2 stride=1,1
pool_max_backward dy=f32/1x1x1x1 indices=i64/1x1x1x1 dx=f32/1x1x1x1 window=1,1 ; as=f16,bf16,f64
pool_max_backward dy=f32/3x2x3x3 x=f32/3x2x6x6 window=1,1 stride=2,2 ; as=bf16
pool_max_backward dy=f32/1x2x4x4 indices=u8/1x2x4x4 dx=f32/1x2x4x4 window=2,2 stride=2,2 pad=2,2 ; as=f16

pool_max_backward dy=f32/2x16x4x4/nhwc x=f32/2x16x8x8/nhwc dx=f32/2x16x8x8/nhwc window=2,2 ; as=bf16
pool_max_backward dy=f32/2x16x4x4/nhwc indices=i32/2x16x4x4/nhwc dx=f32/2x16x7x7/nhwc window=3,3 stride=2,2 pad=1,1 ; as=bf16,f16
pool_max_backward dy=f32/1x1030x2x1/nhwc indices=i64/1x1030x2x1/nhwc dx=f32/1x1030x3x2/nhwc window=2,2 stride=1,1 ; as=bf16
pool_max_backward dy=f32/2x5x4x4 x=f32/2x5x9x8 window=2,2 ; fill=int

# average
pool_average_backward dy=f32/2x3x4x4 dx=f32/2x3x8x9 window=2,2 ; as=f64
pool_average_backward dy=f32/2x3x5x4 dx=f32/2x3x9x8 window=3,3 stride=2,2 pad=1,1 include_pad=0
# means whose windows sum beyond the largest f32
pool_average_backward dy=f32/2x3x5x4 dx=f32/2x3x9x8 window=3 stride=2 pad=1 include_pad=0 ; fill=large
pool_average_backward dy=f32/2x3x9x8 dx=f32/2x3x9x8 window=3 stride=1 pad=1 ; fill=large
pool_average_backward dy=f32/2x3x9x8 dx=f32/2x3x9x8 window=3 stride=1 pad=1 include_pad=0 ; fill=large as=f16,bf16
pool_average_backward dy=f32/1x5x7x7 dx=f32/1x5x7x7 window=3,3 stride=1,1 pad=1,1 ; as=f16,bf16,f64
pool_average_backward dy=f32/1x17x5x2 dx=f32/1x17x6x5 window=2,3 stride=1,2 include_pad=0 ; as=bf16
pool_average_backward dy=f32/2x4x5x4 dx=f32/2x4x11x10 window=3,2 stride=2,3 pad=1:0,0:1 ; as=f16
pool_average_backward dy=f32/1x3x5x5 dx=f32/1x3x10x10 window=3,3 stride=2,2 ceil_mode=1 include_pad=0 ; as=f64
pool_average_backward dy=f32/1x3x6x6 dx=f32/1x3x10x11 window=3,3 stride=2,2 pad=1,1 ceil_mode=1
pool_average_backward dy=f32/1x2x2x2 dx=f32/1x2x5x5 window=2,2 stride=3,3 pad=1,1 ceil_mode=1 include_pad=0 ; as=f16,bf16,f64
pool_average_backward dy=f32/1x2x4x4 dx=f32/1x2x12x12 window=3,3 stride=2,2 dilation=2,2 ; as=bf16
pool_average_backward dy=f32/1x2x8x7 dx=f32/1x2x9x13 window=2,3 stride=1,2 pad=1,2 dilation=3,2 include_pad=0 ; as=f16
pool_average_backward dy=f32/2x33x1x1 dx=f32/2x33x4x4 ; as=f64
pool_average_backward dy=f32/2x4x1x2 dx=f32/2x4x7x5 window=0,2 include_pad=0
pool_average_backward dy=f32/1x4x17 dx=f32/1x4x33 window=3 stride=2 pad=1 ; as=f16,bf16,f64
pool_average_backward dy=f32/2x3x1 dx=f32/2x3x64 window=64 include_pad=0 ; as=bf16
pool_average_backward dy=f32/1x3x3x2x3 dx=f32/1x3x6x5x7 window=2,2,2 ; as=f16
pool_average_backward dy=f32/1x3x4x4x4 dx=f32/1x3x6x5x7 window=3,2,3 stride=2,1,2 pad=1,0,1 ceil_mode=1 include_pad=0 ; as=f64
pool_average_backward dy=f32/1x8x4x4/nhwc dx=f32/1x8x7x7/nhwc window=3,3 stride=2,2 pad=1,1
pool_average_backward dy=f32/1x35x4x4/nhwc dx=f32/1x35x5x5/nhwc window=2,2 stride=1,1 include_pad=0 ; as=f16,bf16,f64
pool_average_backward dy=f32/1x1x65x2 dx=f32/1x1x130x3 window=2,2 stride=2,1 ; as=bf16
pool_average_backward dy=f32/1x64x2x2 dx=f32/1x64x3x3 window=2,2 stride=1,1 include_pad=0 ; as=f16
pool_average_backward dy=f32/1x1x1x1 dx=f32/1x1x1x1 window=1,1 ; as=f64
pool_average_backward dy=f32/3x2x3x3 dx=f32/3x2x6x6 window=1,1 stride=2,2 include_pad=0
pool_average_backward dy=f32/1x2x4x4 dx=f32/1x2x4x4 window=2,2 stride=2,2 pad=2,2 ; as=f16,bf16,f64

pool_average_backward dy=f32/2x16x4x4/nhwc dx=f32/2x16x7x7/nhwc window=3,3 stride=2,2 pad=1,1 ; as=bf16,f16

# 2x2 windows that tile rows of whole vectors: by x, by each index dtype, and averages; padded strides
pool_max_backward dy=f32/3x5x6x8 x=f32/3x5x12x16 window=2 ; fill=int as=f16,bf16
pool_max_backward dy=f32/2x3x4x12 x=f32/2x3x8x24 window=2 ; fill=int x.fill=special as=bf16
pool_max_backward dy=f32/2x3x3x4/60:20:4:1 x=f32/2x3x6x8/240:64:8:1 dx=f32/2x3x6x8/500:160:24:2 window=2
pool_max_backward dy=f32/2x3x5x4 indices=i32/2x3x5x4 dx=f32/2x3x10x8 window=2 ; as=f16
pool_max_backward dy=f32/2x3x5x4 indices=u8/2x3x5x4 dx=f32/2x3x10x8 window=2 ; as=bf16
pool_average_backward dy=f32/2x70x5x8 dx=f32/2x70x10x16 window=2 ; as=f16,bf16

# overlapping 3x3 windows, in cells of two columns: pairs and odd widths, several cells, vectors of channels, depth
pool_max_backward dy=f32/2x3x5x6 indices=u8/2x3x5x6 dx=f32/2x3x9x12 window=3 stride=2 pad=1 ; as=f16,bf16
pool_max_backward dy=f32/2x3x9x4 indices=i64/2x3x9x4 dx=f32/2x3x18x7 window=3 stride=2 pad=1 ; as=f16,bf16
pool_max_backward dy=f32/2x3x5x4 x=f32/2x3x11x9 window=3 stride=2 ; fill=int x.fill=special as=f16,bf16
pool_max_backward dy=f32/2x3x6x5 x=f32/2x3x6x5 window=3 stride=1 pad=1 ; fill=int as=f16,bf16
pool_max_backward dy=f32/2x16x3x4/nhwc x=f32/2x16x6x7/nhwc window=3 stride=2 pad=1 ; fill=int x.fill=special as=f16,bf16
pool_max_backward dy=f32/1x8x3x4/nhwc x=f32/1x8x7x8/nhwc window=3 stride=2 ceil_mode=1 ; fill=int as=bf16
pool_max_backward dy=f32/1x16x5x6/nhwc indices=i64/1x16x5x6/nhwc dx=f32/1x16x5x6/nhwc window=3 stride=1 pad=1 ; as=f16,bf16
pool_max_backward dy=f32/1x16x3x7/nhwc indices=u8/1x16x3x7/nhwc dx=f32/1x16x3x7/nhwc window=3 stride=1 pad=1 ; as=bf16
pool_max_backward dy=f32/1x2x2x3x4 indices=u8/1x2x2x3x4 dx=f32/1x2x5x6x7 window=2,3,3 stride=2 pad=0,1,1
pool_max_backward dy=f32/1x8x4x3x3/nhwc indices=i64/1x8x4x3x3/nhwc dx=f32/1x8x5x7x7/nhwc window=2,3,3 stride=1,2,2 ; as=bf16
pool_max_backward dy=f32/1x2x3x3x3 x=f32/1x2x3x6x6 window=1,3,3 stride=1,2,2 pad=0,1,1
pool_average_backward dy=f32/1x16x6x5/nhwc dx=f32/1x16x6x5/nhwc window=3 stride=1 pad=1 include_pad=0 ; as=f16,bf16
pool_average_backward dy=f32/2x5x5x4 dx=f32/2x5x10x9 window=3 stride=2 ceil_mode=1 ; as=f16,bf16
pool_average_backward dy=f32/1x3x3x3x3 dx=f32/1x3x4x6x6 window=2,3,3 stride=1,2,2 pad=0,1:0,1:0 ; as=f16

# golden: the first of equals gets all; an out-of-range index adds nowhere; divisors
pool_max_backward dy=f32/1x1x1x2 x=f32/1x1x1x4 window=1,2 ; fill=zero x.is=3,3,1,2 dy.is=5,7 dx.is=5,0,0,7 plain=1
pool_max_backward dy=f32/1x1x1x3 indices=i32/1x1x1x3 dx=f32/1x1x1x4 window=1,2 stride=1,1 ; fill=zero dy.is=5,7,9 indices.is=1,1,-1 dx.is=0,12,0,0 plain=1
pool_max_backward dy=f32/1x1x1x2 indices=u8/1x1x1x2 dx=f32/1x1x1x4 window=1,2 ; fill=zero dy.is=5,7 indices.is=1,255 dx.is=0,5,0,0 plain=1
pool_max_backward dy=f32/1x1x1x2 indices=i64/1x1x1x2 dx=f32/1x1x2x4 window=2 ; fill=zero dy.is=5,7 indices.is=2,7 dx.is=0,0,0,0,0,0,0,7 plain=1
pool_max_backward dy=f32/1x1x1x3 indices=i32/1x1x1x3 dx=f32/1x1x1x4 window=1,3 stride=1,2 pad=0,1:2 ; fill=zero dy.is=5,7,9 indices.is=0,3,4 dx.is=5,0,0,7 plain=1
pool_max_backward dy=f32/1x1x1x2 indices=i64/1x1x1x2 dx=f32/1x1x1x4 window=1,2 stride=1,1 dilation=1,2 ; fill=zero dy.is=5,7 indices.is=1,3 dx.is=0,0,0,7 plain=1
pool_average_backward dy=f32/1x1x1x2 dx=f32/1x1x1x4 window=1,3 stride=1,2 pad=0,1 include_pad=0 ; fill=zero dy.is=2,6 dx.is=1,3,2,2 plain=1

# windows that tile planes, one that spans them: by indices, and averages; merged dims, words that begin inside a row or a plane
pool_max_backward dy=f32/2x3x4x3x7 indices=i64/2x3x4x3x7 dx=f32/2x3x8x6x14 window=2 ; as=f16,bf16
pool_max_backward dy=f32/2x3x5 indices=i32/2x3x5 dx=f32/2x3x15 window=3 ; as=bf16
pool_average_backward dy=f32/3x5x7x7 dx=f32/3x5x14x14 window=2 ; as=f16,bf16
pool_average_backward dy=f32/3x5x11 dx=f32/3x5x33 window=3 ; as=bf16
pool_average_backward dy=f32/3x5x1x1 dx=f32/3x5x7x7 ; as=f16,bf16
pool_average_backward dy=f32/2x8x1x1 dx=f32/2x8x5x6 window=7,8 pad=1 include_pad=0 ; as=bf16
pool_average_backward dy=f32/2x8x2x3x4/nhwc dx=f32/2x8x4x9x8/nhwc window=2,3,2 ; as=bf16
pool_average_backward dy=f32/2x8x2x1x4 dx=f32/2x8x4x9x8 window=2,9,2 ; as=f16

# strips of columns, bands of rows and chunks of channels, each with a truncated last one
pool_max_backward dy=f32/1x40x17x16/nhwc x=f32/1x40x34x31/nhwc window=3 stride=2 pad=1 ; x.fill=special as=f16,bf16
pool_max_backward dy=f32/1x72x19x17/nhwc x=f32/1x72x19x17/nhwc window=3 stride=1 pad=1 ; fill=int as=bf16
pool_max_backward dy=f32/2x40x15x29/nhwc x=f32/2x40x15x29/nhwc window=3 stride=1 pad=1 ; x.fill=special as=f16,bf16
pool_max_backward dy=f32/3x24x40x14/nhwc x=f32/3x24x40x14/nhwc window=3 stride=1 pad=1 ; x.fill=int as=f16,bf16
pool_max_backward dy=f32/1x40x19x17/nhwc indices=u8/1x40x19x17/nhwc dx=f32/1x40x19x17/nhwc window=3 stride=1 pad=1 ; as=f16,bf16
pool_max_backward dy=f32/1x8x17x16/nhwc indices=i64/1x8x17x16/nhwc dx=f32/1x8x33x31/nhwc window=3 stride=2 pad=1 ; as=f16,bf16
pool_max_backward dy=f32/2x2x20x20 indices=i64/2x2x20x20 dx=f32/2x2x20x20 window=5 stride=1 pad=2 ; as=bf16
# more than nine taps, recomputed from x: overlapping windows in every layout, more taps than u8 counts, whole planes, NaN, padding alone
pool_max_backward dy=f32/2x3x7x7 x=f32/2x3x7x7 window=5 stride=1 pad=2 ; as=bf16,f16
pool_max_backward dy=bf16/2x8x2x2/nhwc x=bf16/2x8x7x7/nhwc window=5 stride=2 ; as=f32
pool_max_backward dy=f32/1x2x9x8/144:1:16:2 x=f32/1x2x13x15/400:200:15:1 dx=f32/1x2x13x15 window=4,6 stride=1,2 dilation=2,1 pad=1,3 ; as=bf16
pool_max_backward dy=f32/1x2x7x7 x=f32/1x2x19x19 window=17 stride=1 pad=2 ; as=f16
pool_max_backward dy=f32/2x3x1x1 x=f32/2x3x13x11 window=0 ; as=bf16
pool_max_backward dy=f32/1x1x3x3 x=f32/1x1x4x4 window=4 stride=2 pad=2 ; x.is=1,5,5,2,nan,0,5,nan,3,3,3,3,9,1,9,-inf dy.is=1,2,4,8,16,32,64,128,256
pool_max_backward dy=f32/1x1x2x2 x=f32/1x1x1x1 window=4 stride=4 pad=4 ; x.is=3 dy.is=7
pool_max_backward dy=f32/2x2x700 indices=u8/2x2x700 dx=f32/2x2x1400 window=3 stride=2 pad=1 ; as=bf16
pool_max_backward dy=f32/1x2x17x110 x=f32/1x2x34x220 window=3 stride=2 pad=1 ; fill=int x.fill=special as=bf16
pool_max_backward dy=f32/1x2x31x130 x=f32/1x2x31x130 window=3 stride=1 pad=1 ; as=f16,bf16
pool_average_backward dy=f32/1x40x35x15/nhwc dx=f32/1x40x35x15/nhwc window=3 stride=1 pad=1 include_pad=0 ; as=f16,bf16
pool_average_backward dy=f32/2x5x70x35 dx=f32/2x5x70x35 window=3 stride=1 pad=1 include_pad=0
pool_average_backward dy=f32/2x5x15x27 dx=f32/2x5x17x29 window=3 stride=1

# lanes of 4 columns: adjacent planes, bands of planes, lanes over several planes; whole words of windows that tile x
pool_max_backward dy=f32/3x3x28x28 x=f32/3x3x28x28 window=3 stride=1 pad=1 ; fill=int x.fill=special as=f16,bf16
pool_max_backward dy=f32/1x2x19x132 x=f32/1x2x19x132 window=3 stride=1 pad=1 ; fill=int x.fill=special as=f16,bf16
pool_max_backward dy=f32/2x5x28x28 indices=u8/2x5x28x28 dx=f32/2x5x28x28 window=3 stride=1 pad=1 ; as=bf16
pool_max_backward dy=f32/2x3x4x14x28 indices=i64/2x3x4x14x28 dx=f32/2x3x4x28x56 window=1,3,3 stride=1,2,2 pad=0,1,1 ; as=bf16
pool_max_backward dy=f32/2x3x28 indices=i64/2x3x28 dx=f32/2x3x56 window=3 stride=2 pad=1 ; as=bf16
pool_max_backward dy=f32/2x3x4x6x4 indices=i64/2x3x4x6x4 dx=f32/2x3x8x12x8 window=2 ; as=bf16
pool_max_backward dy=f32/2x3x6x4 indices=u8/2x3x6x4 dx=f32/2x3x18x8 window=3,2 ; as=bf16

# windows that reach far beyond x and its padding, where nothing counts
pool_average_backward dy=f32/2x3x1x3 dx=f32/2x3x4x5 window=1099511627776,2 ceil_mode=1 ; as=f64
pool_max_backward dy=f32/2x3x1x3 indices=i32/2x3x1x3 dx=f32/2x3x4x5 window=1099511627776,2 ceil_mode=1 ; labels=-1..19
pool_max_backward dy=f32/2x3x1x3 x=f32/2x3x4x5 window=1099511627776,2 ceil_mode=1
pool_lp_backward dy=f32/2x3x1x3 x=f32/2x3x4x5 y=f32/2x3x1x3 window=1099511627776,2 ceil_mode=1

# a window deeper than x, which has depth one: its further taps count as padding, or not
pool_average_backward dy=f32/1x8x1x5x5/nhwc dx=f32/1x8x1x5x5/nhwc window=3 stride=1 pad=0:2,1,1 include_pad=0 ; as=bf16
pool_average_backward dy=f32/1x8x1x5x5/nhwc dx=f32/1x8x1x5x5/nhwc window=3 stride=2,1,1 pad=0:1,1,1 ceil_mode=1
pool_average_backward dy=f32/1x2x1x5x8 dx=f32/1x2x1x5x8 window=3 stride=1 pad=0:2,1,1 include_pad=0
pool_max_backward dy=f32/1x8x1x5x5/nhwc x=f32/1x8x1x5x5/nhwc window=3 stride=1 pad=0:2,1,1
pool_max_backward dy=f32/1x8x1x5x5/nhwc indices=u8/1x8x1x5x5/nhwc dx=f32/1x8x1x5x5/nhwc window=3 stride=1 pad=0:2,1,1

# averages of windows that tile x: rows of whole words, one to several windows per word; rows that end inside one; a truncated last word
pool_average_backward dy=f32/2x3x4x8 dx=f32/2x3x8x16 window=2 ; as=f16,bf16
pool_average_backward dy=f32/2x3x2x4 dx=f32/2x3x10x24 window=5,6 ; as=f16,bf16
pool_average_backward dy=f32/1x3x2x3x4 dx=f32/1x3x4x9x16 window=2,3,4 ; as=bf16
pool_average_backward dy=f32/1x3x3x3 dx=f32/1x3x9x18 window=3,6 ; as=f16,bf16
pool_average_backward dy=f32/2x3x2x4 dx=f32/2x3x40x16 window=20,4 ; as=bf16
pool_average_backward dy=f32/1x3x2x3x5 dx=f32/1x3x4x6x10 window=2 ; as=f16,bf16

# planes in bands, stride 1: one, two and three columns in the last cell; one row left; a plane of several bands; padding after only
pool_average_backward dy=f32/3x5x17x16 dx=f32/3x5x17x16 window=3 stride=1 pad=1 ; as=bf16
pool_max_backward dy=f32/1x2x13x8 x=f32/1x2x8x8 window=3 stride=1 pad=1:6,1:1 ; as=bf16
pool_max_backward dy=f32/33x65x4x60 x=f32/33x65x4x60 window=3 stride=1 pad=1 ; plain=1 x.fill=special as=bf16 kind=cuda
pool_max_backward dy=f32/1x16x7x8/nhwc x=f32/1x16x8x16/nhwc window=3 stride=2 pad=1:6,1:1 ; as=bf16
pool_average_backward dy=f32/3x5x9x17 dx=f32/3x5x9x17 window=3 stride=1 pad=1 include_pad=0 ; as=bf16
pool_average_backward dy=f32/7x5x2x13 dx=f32/7x5x2x13 window=3 stride=1 pad=1 include_pad=0 ; as=bf16,f16
pool_average_backward dy=f32/3x5x1x15 dx=f32/3x5x1x15 window=3 stride=1 pad=1 include_pad=0 ; dy.fill=special as=bf16
pool_average_backward dy=bf16/3x7x5x10 dx=bf16/3x7x5x10 window=3 stride=1 pad=1 include_pad=0 ; as=f16
pool_average_backward dy=bf16/2x5x14x14 dx=bf16/2x5x14x14 window=3 stride=1 pad=1
pool_average_backward dy=bf16/3x3x7x28 dx=bf16/3x3x7x28 window=3 stride=1 pad=1 include_pad=0
pool_average_backward dy=f32/3x7x4x11 dx=f32/3x7x4x11 window=3 stride=1 pad=1 include_pad=0 ; as=bf16
pool_average_backward dy=f32/2x3x20x35 dx=f32/2x3x20x35 window=3 stride=1 pad=1 ; dy.fill=special as=bf16,f16
pool_average_backward dy=f32/1x1x75x121 dx=f32/1x1x75x121 window=3 stride=1 pad=1 include_pad=0
pool_average_backward dy=f32/2x3x9x11 dx=f32/2x3x10x12 window=3 stride=1 pad=1:0,1:0 include_pad=0
pool_average_backward dy=f32/2x3x8x9 dx=f32/2x3x6x7 window=3 stride=1 pad=1:3,1:3 include_pad=0
pool_average_backward dy=f32/2x3x8x9 dx=f32/2x3x6x7 window=3 stride=1 pad=1:3,1:3
pool_max_backward dy=f32/3x5x9x17 indices=u8/3x5x9x17 dx=f32/3x5x9x17 window=3 stride=1 pad=1
pool_max_backward dy=f32/3x5x8x19 x=f32/3x5x8x19 window=3 stride=1 pad=1

# channels last, a word of channels per lane: a warp over one image, two and several, and too few images for the last warp
pool_max_backward dy=bf16/3x96x5x6/nhwc indices=u8/3x96x5x6/nhwc dx=bf16/3x96x9x11/nhwc window=3 stride=2 pad=1 ; as=f16
pool_max_backward dy=bf16/5x40x6x9/nhwc indices=u8/5x40x6x9/nhwc dx=bf16/5x40x6x9/nhwc window=3 stride=1 pad=1 ; as=f16,f32
pool_max_backward dy=bf16/9x8x6x9/nhwc indices=i64/9x8x6x9/nhwc dx=bf16/9x8x6x9/nhwc window=3 stride=1 pad=1 ; as=f32
pool_max_backward dy=bf16/7x24x5x5/nhwc x=bf16/7x24x9x9/nhwc window=3 stride=2 pad=1 ; as=f32
pool_average_backward dy=bf16/5x3x6x1 dx=bf16/5x3x6x1 window=3 stride=1 pad=1 include_pad=0 ; as=f16
pool_average_backward dy=bf16/3x5x1x7 dx=bf16/3x5x1x7 window=3 stride=1 pad=1 include_pad=0 ; dy.fill=special as=f16
pool_average_backward dy=bf16/9x61x5x3 dx=bf16/9x61x5x3 window=3 stride=1 pad=1 include_pad=0

# planes of one element, and of fewer than a vector's: a vector spans several, each with places of its own
pool_max_backward dy=f32/2x3x1 indices=i64/2x3x1 dx=f32/2x3x1 window=3 stride=4 pad=1 ceil_mode=1 ; fill=zero dy.is=1,2,3,4,5,6 indices.is=0 dx.is=1,2,3,4,5,6 plain=1 as=bf16,f16
pool_max_backward dy=f32/5x7x1x1 indices=i32/5x7x1x1 dx=f32/5x7x1x1 window=1 ; labels=0..0 as=bf16,f16
pool_max_backward dy=f32/5x8x1x1 indices=i32/5x8x1x1 dx=f32/5x8x1x2 window=1,2 ; labels=0..1 as=bf16,f16
pool_max_backward dy=f32/5x8x1 indices=i64/5x8x1 dx=f32/5x8x3 window=3 ; labels=0..2 as=bf16,f16
pool_max_backward dy=f32/4x9x3 indices=i64/4x9x3 dx=f32/4x9x6 window=2 ; labels=0..5 as=bf16,f16
pool_max_backward dy=f32/4x8x3 indices=i32/4x8x3 dx=f32/4x8x6 window=2 ; labels=0..5 as=bf16,f16
pool_max_backward dy=f32/4x8x5 indices=i64/4x8x5 dx=f32/4x8x5 window=1 ; labels=0..4 as=bf16,f16
pool_max_backward dy=f32/4x8x1 indices=u8/4x8x1 dx=f32/4x8x2 window=2 ; labels=0..1 as=bf16,f16
pool_adaptive_max_backward dy=f32/5x7x1x1 indices=i64/5x7x1x1 dx=f32/5x7x1x1 ; labels=0..0 as=bf16
pool_max_backward dy=f32/5x7x1x1 x=f32/5x7x1x1 window=1 ; as=bf16
pool_average_backward dy=f32/5x7x1x1 dx=f32/5x7x1x1 window=3 stride=1 pad=1 ; as=bf16
# shapes and values at the edges
pool_max_backward dy=f32/2x3x1 indices=i64/2x3x1 dx=f32/2x3x1 window=3 stride=4 pad=1 ceil_mode=1 ; fill=zero dy.is=1,2,3,4,5,6 indices.is=0 dx.is=1,2,3,4,5,6 plain=1

# windows side by side, channels last and on planes whose rows are no whole words; any windows on planes
pool_max_backward dy=bf16/2x16x3x2/nhwc indices=i32/2x16x3x2/nhwc dx=bf16/2x16x6x10/nhwc window=2,5 ; as=f32
pool_max_backward dy=f32/2x8x2x3x2/nhwc indices=u8/2x8x2x3x2/nhwc dx=f32/2x8x4x6x6/nhwc window=2,2,3 ; as=f16
pool_average_backward dy=bf16/2x16x2x3/nhwc dx=bf16/2x16x14x15/nhwc window=7,5 ; as=f32
pool_average_backward dy=bf16/3x5x3x5x7 dx=bf16/3x5x6x10x14 window=2 ; as=f32
pool_average_backward dy=bf16/3x5x7x7 dx=bf16/3x5x14x14 window=5 stride=2 pad=2 ; as=f32,f16
pool_average_backward dy=f32/2x3x8x7 dx=f32/2x3x30x21 window=7,4 stride=3 pad=0,1 include_pad=0 ; as=bf16

# maxima by places where windows side by side, or over all of a plane, begin and end anywhere in a word
pool_max_backward dy=f32/3x5x1x1 indices=i64/3x5x1x1 dx=f32/3x5x30x30 window=30 ; labels=0..899 as=bf16
pool_max_backward dy=f32/3x5x1x1 indices=i32/3x5x1x1 dx=f32/3x5x7x7 window=7 ; labels=0..48 as=f16
pool_max_backward dy=f32/2x3x4x5 indices=i32/2x3x4x5 dx=f32/2x3x12x15 window=3 ; as=f16,bf16
pool_max_backward dy=f32/2x3x2x4x3 indices=i64/2x3x2x4x3 dx=f32/2x3x6x12x9 window=3 ; as=bf16

# maxima by indices of any windows, gathered from shared memory: whole planes, several of them, and bands of rows; more taps than u8 counts
pool_max_backward dy=f32/3x5x13x13 indices=i64/3x5x13x13 window=5 stride=1 pad=2 ; as=f16,bf16
pool_max_backward dy=f32/1x2x131x67 indices=u8/1x2x131x67 window=5 stride=1 pad=2 ; as=bf16
pool_max_backward dy=f32/2x3x45x33 indices=i64/2x3x45x33 dx=f32/2x3x90x101 window=4,7 stride=2,3 pad=1,2 ; as=f16
pool_max_backward dy=f32/2x3x9x13 indices=u8/2x3x9x13 window=7,13 stride=1 pad=3,6 ; as=bf16
pool_max_backward dy=f32/1x2x40x20 indices=i32/1x2x40x20 window=15,17 stride=1 pad=7,8
pool_max_backward dy=f32/1x2x12x6 indices=i64/1x2x12x6 dx=f32/1x2x60x33 window=2,3 stride=5,6 ; as=bf16
pool_max_backward dy=f32/1x2x20x20 indices=i64/1x2x20x20 window=17 stride=1 pad=8

# maxima by places of side-by-side windows in 3-D; long lines; large windows with more taps than u8 counts
pool_max_backward dy=f32/2x3x2x5x5 indices=i64/2x3x2x5x5 dx=f32/2x3x4x10x10 window=2 ; as=bf16
pool_max_backward dy=f32/1x2x4334 indices=i64/1x2x4334 dx=f32/1x2x13002 window=3 stride=3 ; as=bf16
pool_max_backward dy=f32/1x2x6499 indices=u8/1x2x6499 dx=f32/1x2x13000 window=4 stride=2 ; as=f16
pool_max_backward dy=f32/1x2x7x6 indices=i32/1x2x7x6 dx=f32/1x2x41x40 window=17 stride=4 ; as=bf16

# averages of large windows of stride 1, channels last: padding that counts and does not, unequal, wider than a window; near the largest
pool_average_backward dy=f32/2x16x9x8/nhwc dx=f32/2x16x13x12/nhwc window=5 stride=1 ; as=f16,bf16
pool_average_backward dy=f32/3x24x14x13/nhwc dx=f32/3x24x14x13/nhwc window=5 stride=1 pad=2 ; as=f16,bf16
pool_average_backward dy=f32/1x8x8x11/nhwc dx=f32/1x8x9x13/nhwc window=6,7 stride=1 pad=3:1,1:3 include_pad=0 ; as=f16,bf16
pool_average_backward dy=f32/1x8x46x46/nhwc dx=f32/1x8x10x10/nhwc window=5 stride=1 pad=20 include_pad=0 ; as=bf16
pool_average_backward dy=f32/2x8x9x8/nhwc dx=f32/2x8x13x12/nhwc window=5 stride=1 ; fill=large as=bf16

# maxima of 5x5 and 3x3 by cells, with any padding; few planes
pool_max_backward dy=f32/2x3x7x8 indices=u8/2x3x7x8 dx=f32/2x3x17x19 window=5 stride=2 ; as=f16,bf16
pool_max_backward dy=f32/2x3x9x10 indices=i64/2x3x9x10 dx=f32/2x3x17x19 window=5 stride=2 pad=2 ; as=f16,bf16
pool_max_backward dy=f32/2x3x13x15 indices=i32/2x3x13x15 dx=f32/2x3x17x19 window=5 stride=1 ; as=f16,bf16
pool_max_backward dy=f32/2x3x15x17 indices=u8/2x3x15x17 dx=f32/2x3x17x19 window=5 stride=1 pad=1 ; as=f16,bf16
pool_max_backward dy=f32/1x2x53x52 indices=u8/1x2x53x52 dx=f32/1x2x17x16 window=5 stride=1 pad=20 ; as=bf16
pool_max_backward dy=f32/3x2x15x17 indices=i64/3x2x15x17 dx=f32/3x2x17x19 window=3 stride=1 ; as=f16,bf16
pool_max_backward dy=f32/3x2x19x21 indices=u8/3x2x19x21 dx=f32/3x2x17x19 window=3 stride=1 pad=2 ; as=f16,bf16
pool_max_backward dy=f32/3x2x9x11 indices=u8/3x2x9x11 dx=f32/3x2x15x17 window=3 stride=2 pad=1:3,1:5 ; as=f16,bf16
pool_average_backward dy=f32/3x2x15x17 dx=f32/3x2x17x19 window=3 stride=1 ; as=f16,bf16
pool_average_backward dy=f32/3x2x19x21 dx=f32/3x2x17x19 window=3 stride=1 pad=2 include_pad=0 ; as=f16,bf16
pool_average_backward dy=f32/3x2x19x21 dx=f32/3x2x17x19 window=3 stride=1 pad=2 ; fill=large as=bf16
pool_max_backward dy=f32/1x3x26x26 x=f32/1x3x30x30 window=5 stride=1 ; as=f16,bf16

# averages near the largest on planes of an odd width: divided before they are added
pool_average_backward dy=f32/2x3x9x13 dx=f32/2x3x9x13 window=3 stride=1 pad=1 ; fill=large as=bf16
pool_average_backward dy=f32/2x3x9x13 dx=f32/2x3x9x13 window=3 stride=1 pad=1 include_pad=0 ; fill=large as=bf16
