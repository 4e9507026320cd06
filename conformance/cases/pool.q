# pool_max and pool_average.

# windows, strides, padding, ceil mode; max with its indices
pool_max x=f32/2x3x8x9 window=2,2 indices=i32/2x3x4x4 ; as=f16,bf16,f64
pool_max x=f32/2x3x9x8 window=3,3 stride=2,2 pad=1,1 ; as=bf16
pool_max x=f32/1x5x7x7 window=3,3 stride=1,1 pad=1,1 indices=i64/1x5x7x7 ; as=f16
pool_max x=f32/1x17x6x5 window=2,3 stride=1,2 ; as=f64
pool_max x=f32/2x4x11x10 window=3,2 stride=2,3 pad=1:0,0:1 indices=u8/2x4x5x4
pool_max x=f32/1x3x10x10 window=3,3 stride=2,2 ceil_mode=1 ; as=f16,bf16,f64
pool_max x=f32/1x3x10x11 window=3,3 stride=2,2 pad=1,1 ceil_mode=1 indices=i32/1x3x6x6 ; as=bf16
pool_max x=f32/1x2x5x5 window=2,2 stride=3,3 pad=1,1 ceil_mode=1 ; as=f16
pool_max x=f32/1x2x12x12 window=3,3 stride=2,2 dilation=2,2 indices=i64/1x2x4x4 ; as=f64
pool_max x=f32/1x2x9x13 window=2,3 stride=1,2 pad=1,2 dilation=3,2
pool_max x=f32/2x33x4x4 indices=u8/2x33x1x1 ; as=f16,bf16,f64
pool_max x=f32/2x4x7x5 window=0,2 ; as=bf16
pool_max x=f32/1x4x33 window=3 stride=2 pad=1 indices=i32/1x4x17 ; as=f16
pool_max x=f32/2x3x64 window=64 ; as=f64
pool_max x=f32/1x3x6x5x7 window=2,2,2 indices=i64/1x3x3x2x3
pool_max x=f32/1x3x6x5x7 window=3,2,3 stride=2,1,2 pad=1,0,1 ceil_mode=1 ; as=f16,bf16,f64
pool_max x=f32/1x8x7x7/nhwc window=3,3 stride=2,2 pad=1,1 indices=u8/1x8x4x4/nhwc ; as=bf16
pool_max x=f32/1x35x5x5/nhwc window=2,2 stride=1,1 ; as=f16
pool_max x=f32/1x1x130x3 window=2,2 stride=2,1 indices=i32/1x1x65x2 ; as=f64
pool_max x=f32/1x64x3x3 window=2,2 stride=1,1
pool_max x=f32/1x1x1x1 window=1,1 indices=i64/1x1x1x1 ; as=f16,bf16,f64
pool_max x=f32/3x2x6x6 window=1,1 stride=2,2 ; as=bf16
pool_max x=f32/1x2x4x4 window=2,2 stride=2,2 pad=2,2 indices=u8/1x2x4x4 ; as=f16
pool_max x=f32/1x1x1x66000 window=1,3 ; plain=1 fill=int
pool_max x=f32/66000x1x2x2 window=2,2 indices=i32/66000x1x1x1 ; plain=1 fill=int

pool_max x=f32/2x3x130x131 window=3,3 stride=2,2 pad=1,1 indices=i32/2x3x65x66 ; as=bf16
pool_max x=f32/1x2x300x257 window=3,3 stride=1,1 ; as=f16
pool_max x=f32/1x2x200x65 window=2,2 stride=150,2
pool_max x=f32/3x5x14x14 window=2,2 ; as=bf16
pool_max x=f32/1x3x40x33 window=19,17 stride=3,2 indices=i32/1x3x8x9
pool_max x=f32/2x16x7x9/nhwc window=3,3 stride=2,2 pad=1,1 ; as=bf16,f16
pool_max x=f32/2x16x9x7/nhwc window=3,3 stride=1,1 pad=1,1 indices=u8/2x16x9x7/nhwc ; as=bf16
pool_max x=f32/2x24x7x8/nhwc window=2,2 indices=i32/2x24x3x4/nhwc ; as=f16
pool_max x=f32/1x16x33x20/nhwc window=16,9 stride=2,3 ; as=bf16
pool_max x=f32/1x1030x3x2/nhwc window=2,2 stride=1,1 indices=i64/1x1030x2x1/nhwc ; as=bf16

# planes whose rows are whole vectors, or pairs; adjacent windows of one and of two vectors
pool_max x=bf16/3x5x13x16 window=3,3 stride=2,2 pad=1,1
pool_max x=f32/3x5x12x24 window=3,3 stride=2,2 ; as=f16
pool_max x=f32/3x5x12x12 window=3,3 stride=1,1 pad=1,1 ; as=bf16,f16
pool_max x=f32/3x5x14x14 window=3,3 stride=2,2 pad=1,1 ; as=bf16
pool_max x=f32/3x5x16x16 window=3,3 stride=2,2 pad=1,1 ceil_mode=1 ; as=bf16
pool_max x=bf16/2x3x32x32 window=8,8
pool_max x=bf16/2x3x32x32 window=8,8 indices=u8/2x3x4x4
pool_max x=bf16/2x64x33x33/nhwc window=3,3 stride=2,2 pad=1,1 ; as=f16
pool_max x=bf16/2x24x17x15/nhwc window=3,3 stride=1,1 pad=1,1 indices=i32/2x24x17x15/nhwc
pool_max x=f32/2x3x4x9x8 window=1,3,3 stride=1,2,2 pad=0,1,1 ; as=bf16
pool_max x=f32/2x3x4x9x7 window=1,2,2 indices=u8/2x3x4x4x3
pool_average x=f32/2x3x4x9x8 window=1,3,3 stride=1 pad=0,1,1 include_pad=0 ; as=f16

# average: divisors with and without the padding
pool_average x=f32/2x3x8x9 window=2,2 ; as=f16
pool_average x=f32/2x3x9x8 window=3,3 stride=2,2 pad=1,1 include_pad=0 ; as=f64
pool_average x=f32/1x5x7x7 window=3,3 stride=1,1 pad=1,1
pool_average x=f32/1x17x6x5 window=2,3 stride=1,2 include_pad=0 ; as=f16,bf16,f64
pool_average x=f32/2x4x11x10 window=3,2 stride=2,3 pad=1:0,0:1 ; as=bf16
pool_average x=f32/1x3x10x10 window=3,3 stride=2,2 ceil_mode=1 include_pad=0 ; as=f16
pool_average x=f32/1x3x10x11 window=3,3 stride=2,2 pad=1,1 ceil_mode=1 ; as=f64
pool_average x=f32/1x2x5x5 window=2,2 stride=3,3 pad=1,1 ceil_mode=1 include_pad=0
pool_average x=f32/1x2x12x12 window=3,3 stride=2,2 dilation=2,2 ; as=f16,bf16,f64
pool_average x=f32/1x2x9x13 window=2,3 stride=1,2 pad=1,2 dilation=3,2 include_pad=0 ; as=bf16
pool_average x=f32/2x33x4x4 ; as=f16
pool_average x=f32/2x4x7x5 window=0,2 include_pad=0 ; as=f64
pool_average x=f32/1x4x33 window=3 stride=2 pad=1
pool_average x=f32/2x3x64 window=64 include_pad=0 ; as=f16,bf16,f64
pool_average x=f32/1x3x6x5x7 window=2,2,2 ; as=bf16
pool_average x=f32/1x3x6x5x7 window=3,2,3 stride=2,1,2 pad=1,0,1 ceil_mode=1 include_pad=0 ; as=f16
pool_average x=f32/1x8x7x7/nhwc window=3,3 stride=2,2 pad=1,1 ; as=f64
pool_average x=f32/1x35x5x5/nhwc window=2,2 stride=1,1 include_pad=0
pool_average x=f32/1x1x130x3 window=2,2 stride=2,1 ; as=f16,bf16,f64
pool_average x=f32/1x64x3x3 window=2,2 stride=1,1 include_pad=0 ; as=bf16
pool_average x=f32/1x1x1x1 window=1,1 ; as=f16
pool_average x=f32/3x2x6x6 window=1,1 stride=2,2 include_pad=0 ; as=f64
pool_average x=f32/1x2x4x4 window=2,2 stride=2,2 pad=2,2
pool_average x=f32/1x1x1x66000 window=1,3 include_pad=0 ; plain=1 fill=int
pool_average x=f32/66000x1x2x2 window=2,2 ; plain=1 fill=int

pool_average x=f32/2x3x130x131 window=3,3 stride=2,2 pad=1,1 ; as=bf16
pool_average x=f32/2x3x64x48 window=16,16 ; as=bf16,f16
pool_average x=f32/1x2x400x35 window=100,2 stride=50,1 ; as=bf16
pool_average x=f32/2x16x32x32/nhwc window=16,16 ; as=bf16
pool_average x=f32/2x16x7x9/nhwc window=3,3 stride=2,2 pad=1,1 include_pad=0 ; as=bf16,f16
pool_average x=f32/1x24x40x9/nhwc window=32,3 stride=4,1 pad=3,1 ; as=f16

# the indices' dtypes
pool_max x=f32/2x3x7x8 window=3,3 stride=2,2 pad=1,1 indices=u8/2x3x4x4 ; as=bf16
pool_max x=f32/2x3x7x8 window=3,3 stride=2,2 pad=1,1 indices=i32/2x3x4x4 ; as=f16,f64
pool_max x=f32/2x3x7x8/nhwc window=3,3 stride=2,2 pad=1,1 indices=i32/2x3x4x4/nhwc
pool_max x=f32/2x16x9x7/nhwc window=3 stride=2 pad=1 indices=u8/2x16x5x4/nhwc ; as=bf16
pool_max x=f32/2x16x7x6/nhwc window=2 indices=i64/2x16x3x3/nhwc ; as=f16

# NaN wins at every position of a window, body and tail; zero sizes
pool_max x=f32/4x7x9x9 window=3,3 stride=1,1 indices=i32/4x7x7x7 ; fill=special as=f16,bf16,f64
pool_max x=f32/2x3x9x9 window=2,2 ; fill=nan,inf
pool_average x=f32/2x3x9x9 window=2,2 stride=1,1 ; fill=special as=bf16
pool_max x=f32/0x3x4x4 window=2,2 ; plain=1
pool_average x=f32/2x0x4x4 window=2,2 ; plain=1

# golden, worked by hand: ties, NaN, ceil mode, windows wholly in padding
pool_max x=f32/1x1x1x6 window=1,2 indices=i32/1x1x1x3 ; fill=zero x.is=4,4,1,2,7,7 y.is=4,2,7 indices.is=0,3,4 plain=1
pool_max x=f32/1x1x1x5 window=1,3 stride=1,1 indices=i32/1x1x1x3 ; fill=zero x.is=nan,1,2,3,nan y.is=nan,3,nan indices.is=0,3,4 plain=1
pool_max x=f32/1x1x1x5 window=1,2 ceil_mode=1 ; fill=zero x.is=1,2,3,4,5 y.is=2,4,5 plain=1
pool_max x=f32/1x1x1x2 window=1,2 stride=1,2 pad=0,2 indices=u8/1x1x1x3 ; fill=zero x.is=-5,-6 y.is=-inf,-5,-inf indices.is=255,0,255 plain=1
pool_average x=f32/1x1x1x5 window=1,2 ceil_mode=1 ; fill=zero x.is=1,2,3,4,5 y.is=1.5,3.5,5 plain=1
pool_average x=f32/1x1x1x4 window=1,3 stride=1,2 pad=0,1 ; fill=zero x.is=3,6,9,12 y.is=3,9 plain=1
pool_average x=f32/1x1x1x4 window=1,3 stride=1,2 pad=0,1 include_pad=0 ; fill=zero x.is=3,6,9,12 y.is=4.5,9 plain=1
pool_average x=f32/1x1x1x2 window=1,2 stride=1,2 pad=0,2 include_pad=0 ; fill=zero x.is=-5,-6 y.is=0,-5.5,0 plain=1

pool_average x=bf16/3x5x13x16 window=3,3 stride=2,2 pad=1,1 include_pad=0
pool_average x=f32/3x5x12x24 window=3,3 stride=2,2 ceil_mode=1 ; as=f16,bf16
pool_average x=f32/3x5x12x24 window=3,3 stride=1,1 pad=1,1 ; as=bf16
pool_average x=f32/3x5x13x24 window=3,3 stride=1,1 pad=1,1 include_pad=0 ; as=bf16
pool_average x=f32/3x5x14x14 window=3,3 stride=2,2 pad=1,1 ; as=bf16,f16
pool_average x=f32/3x5x14x14 window=2,2 ; as=bf16
pool_average x=f32/3x5x16x24 window=8,8 ; as=bf16,f16
pool_average x=f32/3x5x32x32 window=16,16 ; as=bf16
pool_average x=bf16/2x64x33x33/nhwc window=3,3 stride=2,2 pad=1,1 include_pad=0

# planes of depth one, with windows in the padding before and after
pool_max x=f32/1x8x1x9x9/nhwc window=1,3,3 stride=1,2,2 pad=1 ; plain=1
pool_average x=f32/1x8x1x6x5/nhwc window=1,2,2 stride=1,2,2 pad=0:1,0,0 ; plain=1

# small planes, several per block: a truncated last block and last word, rows of several pieces
pool_average x=bf16/5x9x14x14 window=3 stride=2 pad=1 ; as=f16
pool_average x=bf16/5x9x13x22 window=3 stride=2 pad=1 include_pad=0
pool_average x=f16/5x9x14x14 window=2
pool_max x=bf16/5x9x14x14 window=3 stride=2 pad=1 ; x.fill=special as=f16
pool_max x=f16/5x9x7x30 window=2
pool_max x=f32/3x3x36x28 window=3 stride=2 pad=1 indices=i64/3x3x18x14 ; x.fill=special as=f16,bf16
pool_max x=f32/2x3x28x300 window=3 stride=1 pad=1 indices=u8/2x3x28x300 ; x.fill=special as=bf16
pool_max x=f32/3x3x36x28 window=2 indices=i64/3x3x18x14 ; as=bf16
pool_max x=f32/1x2x8x8 window=3 stride=1 pad=1:6,1:1 indices=u8/1x2x13x8 ; as=bf16
pool_max x=f32/1x2x8x8 window=3 stride=2 pad=1:6,1:1 indices=u8/1x2x7x4 ; as=bf16
pool_max x=f32/1x2x8x8 window=3 stride=2 pad=1:6,1:1 ; as=bf16
pool_max x=f32/3x5x13x28 window=3 stride=1 pad=1 indices=u8/3x5x13x28 ; x.fill=special as=bf16,f16
pool_max x=f32/3x7x1x12 window=3 stride=1 pad=1 indices=i64/3x7x1x12 ; x.fill=int as=bf16
pool_max x=f32/5x9x5x4 window=3 stride=1 pad=1 indices=i64/5x9x5x4 ; x.fill=special as=bf16
pool_max x=f32/2x3x4x6x8 window=1,3,3 stride=1 pad=0,1,1 indices=i64/2x3x4x6x8 ; x.fill=int as=bf16
pool_max x=f32/2x12x40x31/nhwc window=9 stride=2 pad=3 ; as=bf16
pool_average x=f32/2x16x20x20/nhwc window=13 stride=1 pad=6 include_pad=0 ; as=bf16

# windows that reach far beyond x and its padding, where nothing counts
pool_average x=f32/2x3x4x5 window=1099511627776,2 ceil_mode=1 ; as=f64
pool_average x=f32/2x3x4x5/nhwc window=2,1099511627776 pad=1,2 ceil_mode=1 include_pad=0
pool_max x=f32/2x3x4x5 window=1099511627776,2 ceil_mode=1 indices=? ; as=f64
pool_max x=f32/2x3x4x5 window=3,1099511627776 dilation=1,2 pad=1 ceil_mode=1
pool_lp x=f32/2x3x4x5 window=1099511627776,2 ceil_mode=1 ; as=f64

# large windows with stride 1, five adjacent ones sharing their common part: bands of a plane, windows and bands wholly in padding
pool_max x=f32/2x8x13x17/nhwc window=5,6 stride=1 pad=2,3 ; as=bf16,f16
pool_max x=f32/1x8x40x40/nhwc window=5 stride=1 pad=20 ; as=bf16
pool_max x=f32/2x16x20x20/nhwc window=13,9 stride=1 pad=6,4 ; x.fill=special as=bf16,f16
pool_average x=f32/1x8x40x40/nhwc window=5 stride=1 pad=20 include_pad=0 ; as=bf16
pool_average x=f32/2x8x36x36/nhwc window=7 stride=1 ; as=bf16
pool_max x=f32/3x5x17x13 window=5,7 stride=1 pad=2,3 ; as=bf16,f16
pool_average x=f32/3x5x17x13 window=6,5 stride=1 pad=5:0,2:4 include_pad=0 ; as=bf16
pool_max x=f32/1x2x130x120 window=9 stride=1 pad=4 ; as=bf16
pool_average x=f32/1x2x130x120 window=9 stride=1 pad=20:4,4:20 ; as=f16
pool_average x=f32/1x2x20x1000 window=6 stride=1

# a whole plane of one row with counted padding above and below, or with a row of padding alone
pool_average x=f32/2x1x1x3 window=3 stride=4 pad=1,0 ; plain=1
pool_average x=f32/2x2x1x1x17 window=3,2,17 stride=9 pad=1,1:0,0 ; as=f64 plain=1
pool_average x=f32/2x1x1x3 window=1,3 stride=4 pad=1:0,0 ; plain=1
pool_average x=f32/2x3x1x7 window=1,7 stride=7 pad=0,0:3 ; plain=1

# adjacent windows several rows deep; and of one row, more of them than a device has threads, the last threads idle
pool_average x=f32/2x3x8x6x10 window=2,2,2 ; as=bf16,f16
pool_max x=f32/2x3x8x6x12 window=2,2,2 ; x.fill=special as=bf16,f16
pool_average x=f32/2x3x6x8x16 window=3,2,8 ; as=bf16
pool_max x=f32/2x3x6x8x16 window=2,4,16 ; as=bf16
pool_adaptive_average x=f32/2x3x8x6x12 y=f32/2x3x4x3x6
pool_max x=f32/2x33x16400 window=4 ; plain=1
pool_max x=f32/2x33x16400 window=8 indices=i32/2x33x2050 ; plain=1
pool_average x=f32/2x33x16400 window=4 ; plain=1

# 3x3 windows, stride 1, that keep an odd width: all remainders of a vector, rows shorter than one, a truncated last vector
pool_max x=f32/2x3x9x35 window=3 stride=1 pad=1 ; x.fill=special as=bf16,f16
pool_max x=f32/3x5x7x13 window=3 stride=1 pad=1 ; as=bf16
pool_max x=bf16/3x5x6x9 window=3 stride=1 pad=1
pool_max x=f16/3x5x11x7 window=3 stride=1 pad=1 ; x.fill=special
pool_max x=f32/3x5x4x1 window=3 stride=1 pad=1 ; as=bf16
pool_average x=f32/2x3x9x35 window=3 stride=1 pad=1 ; as=bf16,f16
pool_average x=f32/3x5x7x13 window=3 stride=1 pad=1 include_pad=0 ; as=bf16
pool_average x=f16/3x5x6x9 window=3 stride=1 pad=1 include_pad=0
pool_average x=bf16/3x5x11x7 window=3 stride=1 pad=1
pool_average x=f32/40x3x1x3 window=3 stride=1 pad=1 include_pad=0 ; as=f16

# windows that span a small plane: sizes in bytes a multiple of 16, of 4, of 2; plane counts not a multiple of 32
pool_average x=f32/5x7x7x7 ; as=bf16,f16
pool_max x=f32/5x7x7x7 window=7 ; x.fill=special as=bf16,f16
pool_average x=f32/3x67x7x7 ; as=bf16
pool_max x=f32/3x33x13x17 window=13,17 ; x.fill=special as=bf16
pool_average x=f32/3x11x8x6 window=8,6 include_pad=0 ; as=bf16,f16
pool_max x=f32/3x11x14x14 ; as=bf16,f16
pool_average x=f32/2x40x2x5x3 ; as=bf16,f16
pool_max x=f32/2x3x250 ; x.fill=special
pool_adaptive_average x=bf16/3x30x6x7 size=1

# means of elements near the largest
pool_average x=f32/2x3x8x8 window=2 ; fill=zero x.is=1e38,2e38,3e38 plain=1
pool_average x=f32/2x8x8x8/nhwc window=2 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16,f64
pool_average x=f32/2x3x8x8 window=2 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x3x14x14 window=3 stride=2 pad=1 include_pad=0 ; fill=const:-3e38 y.is=-3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x8x14x14/nhwc window=3 stride=2 pad=1 include_pad=0 ; fill=const:-3e38 y.is=-3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x3x14x14 window=3 stride=1 pad=1 include_pad=0 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x3x13x15 window=3 stride=1 pad=1 include_pad=0 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x3x20x20 window=7 stride=1 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x8x20x20/nhwc window=7 stride=1 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x8x20x20/nhwc window=6 stride=2 dilation=2 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x3x16x16 window=16 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_average x=f32/2x3x4x4x4 window=2 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16

# long sums of one sign, whose rounding errors add up: blocks of terms
pool_average x=f32/1x8x257x256/nhwc window=257,256 ; fill=const:0.1 plain=1 tier=full
pool_average x=f32/1x3x257x256 window=257,256 ; fill=const:0.1 plain=1 tier=full
pool_adaptive_average x=f32/1x8x1024x1024/nhwc size=1 ; fill=const:0.1 plain=1 tier=full
# averages of values near the largest, and of many
pool_average x=f32/2x3x16x16 window=2 ; x.is=1e38,3e38,2e38,2.5e38,3e38,3.4e38,3e38 as=bf16 plain=1
pool_average x=f32/2x3x16x16/nhwc window=3 pad=1 include_pad=0 ; x.is=1e38,3e38,2e38,2.5e38,3e38,3.4e38,3e38 as=bf16 plain=1
pool_adaptive_average x=f32/2x3x16x16 size=5 ; x.is=1e38,3e38,2e38,2.5e38,3e38,3.4e38,3e38 plain=1
pool_average x=f32/1x2x512x512 ; fill=const:0.1,pos plain=1
pool_average x=f32/1x2x512x512/nhwc ; fill=const:0.1,pos plain=1
pool_average x=f32/1x1x20000 window=9000 stride=500 dilation=2 ; fill=const:0.1,pos plain=1
pool_adaptive_average x=f32/1x2x512x512 size=1 ; fill=const:0.1,pos plain=1
pool_adaptive_average x=f32/1x2x512x512/nhwc size=1 ; fill=const:0.1,pos plain=1
# integers of 8 bits: maxima, equals, windows wholly in padding, where the least
pool_max x=i8/2x3x9x10 window=3 stride=2 pad=1 indices=? ; fill=bits
pool_max x=u8/2x3x9x10 window=3 stride=2 pad=1 indices=u8/2x3x5x5 ; fill=bits
pool_max x=u8/2x16x9x10/nhwc window=2 indices=? ; fill=int,bits
pool_max x=i8/1x2x4 window=1 stride=3 pad=2 indices=i64/1x2x3 ; fill=bits
pool_max x=u8/1x1x1 window=1 pad=1 ; x.is=7 y.is=0,7,0 plain=1
pool_max x=i8/1x1x1 window=1 pad=1 indices=? ; x.is=-7 y.is=-128,-7,-128 indices.is=-1,0,-1 plain=1
pool_max x=i8/2x2x4x5x6 window=2,3,2 dilation=1,2,1 ceil_mode=1 ; fill=bits
pool_max x=i8/2x3x20x20 ; fill=bits
pool_adaptive_max x=i8/2x3x9x10 size=4,3 indices=? ; fill=bits
pool_adaptive_max x=u8/2x8x9x10/nhwc size=1 ; fill=bits
pool_max x=i8/1x2x5x6 indices=? window=3 stride=2 pad=1 ; x.is=-91,107,12,-56,127,9,75,5,-49,64,16,1,76,-57,109,124,6,-103,50,-108,126,-27,18,84,11,124,106,28,29,14,-78,-60,87,87,105,113,119,94,-32,-42,13,105,9,-121,-65,-67,-106,-71,-127,0,-68,81,-120,88,13,-13,47,106,-7,72 y.is=107,107,127,76,126,124,124,126,84,119,94,113,119,94,105,13,106,106 indices.is=1,1,4,12,20,15,25,20,23,6,7,5,6,7,11,24,27,27 plain=1
# averages of integers of 8 bits: exact, one rounding, ties to even
pool_average x=i8/2x3x9x10 window=3 stride=2 pad=1 ; fill=bits
pool_average x=u8/2x3x9x10 window=3 stride=2 pad=1 include_pad=0 ; fill=bits
pool_average x=u8/2x16x9x10/nhwc window=2 ; fill=int,bits
pool_average x=i8/2x33x9x10/nhwc window=3 stride=2 pad=1 ceil_mode=1 include_pad=0 ; fill=bits
pool_average x=i8/2x2x4x5x6 window=2,3,2 dilation=1,2,1 ceil_mode=1 ; fill=bits
pool_average x=u8/2x3x20x20 ; fill=bits
pool_average x=i8/2x40x7x7/nhwc ; fill=bits
pool_average x=i8/1x2x40x41 window=17 ; fill=bits
pool_average x=u8/1x1x300x220 window=300,220 ; fill=bits
pool_average x=i8/1x3x5x6/101:1:18:3 window=2 ; fill=bits
pool_average x=u8/1x1x1 window=1 pad=1 ; x.is=7 y.is=0,7,0 plain=1
pool_average x=i8/1x1x8 window=2 ; x.is=1,2,2,3,-1,-2,-2,-3 y.is=2,2,-2,-2 plain=1
pool_average x=u8/1x1x6 window=2 ; x.is=0,1,254,255,255,255 y.is=0,254,255 plain=1
pool_adaptive_average x=i8/2x3x9x10 size=4,3 ; fill=bits
pool_adaptive_average x=u8/2x8x9x10/nhwc size=1 ; fill=bits
pool_adaptive_average x=u8/1x2x3x7x5 size=2,3,4 ; fill=bits
pool_adaptive_average x=i8/1x1x6 size=3 ; x.is=1,2,2,3,-1,-2 y.is=2,2,-2 plain=1
pool_average x=i8/1x1x6x7 window=3 stride=2 pad=1 ; x.is=-7,-62,61,114,-95,-122,112,4,-9,-30,112,115,75,-51,-10,-51,71,-121,-96,-47,-107,26,-113,9,114,70,90,74,99,-60,59,-79,-110,-59,125,-17,4,95,26,87,69,51 y.is=-8,21,22,2,-17,-2,35,4,-7,6,23,39 plain=1
pool_average x=u8/1x1x7x6 window=3 stride=1 pad=1 include_pad=0 ; x.is=208,118,172,14,143,83,167,53,108,136,145,63,32,246,247,45,176,34,210,77,10,150,218,212,60,22,23,193,169,142,120,18,158,3,39,55,16,101,208,149,134,79 y.is=136,138,100,120,97,108,137,150,127,132,93,107,131,128,119,137,131,141,108,103,113,137,149,158,84,78,73,107,131,139,56,81,97,120,107,103,64,104,106,115,76,77 plain=1
# large values: what is representable comes out
pool_average x=f32/1x1x2x2 window=2 ; fill=const:1e38 y.is=1e38 plain=1
pool_average x=f32/1x3x4x4/nhwc window=2 ; fill=const:1e38 y.is=1e38 plain=1

# long sums: one running f32 sum fails
pool_average x=f32/1x8x512x512/nhwc window=512 ; fill=const:0.1 plain=1
pool_average x=f32/1x8x512x512 window=512 ; fill=const:0.1 plain=1

# small windows with other padding down than across
pool_max x=bf16/2x16x10x11/nhwc window=3 stride=2 pad=0,1 indices=? ; as=f32
pool_max x=bf16/2x3x10x16 window=3 stride=2 pad=0,1 ; as=f32
pool_max x=bf16/2x3x9x15 window=3 stride=2 pad=1,0 indices=? ; as=f32
pool_average x=bf16/2x3x10x16 window=3 stride=1 pad=0,1 include_pad=0 ; as=f32
pool_average x=bf16/2x16x9x12/nhwc window=2 stride=2 pad=1,0 ; as=f32

# Few planes, lower than their windows, in bands.
pool_average x=f32/1x2x8x40 window=65,9 stride=2 pad=32,4 ; as=bf16
pool_max x=f32/1x2x8x40 window=65,9 stride=2 pad=32,4 ; as=f16
