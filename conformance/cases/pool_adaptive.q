# Adaptive pooling, lp pooling, and their gradients.

# windows that divide x, that do not, more windows than elements
pool_adaptive_max x=f32/2x3x8x9 size=4,3 indices=? ; as=f16,bf16,f64
pool_adaptive_max x=f32/2x3x7x5 size=3,4 indices=? ; as=f16,bf16
pool_adaptive_max x=f32/2x3x4x5 size=7,9 indices=i64/2x3x7x9 ; as=bf16
pool_adaptive_max x=f32/2x5x33 size=7
pool_adaptive_max x=f32/1x2x5x6x7 size=2,4,3 indices=? ; as=f16
pool_adaptive_max x=f32/2x19x13x10/nhwc size=5,3 indices=? ; as=bf16,f64
pool_adaptive_max x=f32/3x40x6x6/nhwc size=1,1
pool_adaptive_max x=f32/2x3x16x32 size=2,2 indices=? ; as=bf16
pool_adaptive_max x=f32/1x1x1x1 size=3,2 indices=?
pool_adaptive_average x=f32/2x3x8x9 size=4,3 ; as=f16,bf16,f64
pool_adaptive_average x=f32/2x3x7x5 size=3,4 ; as=f16,bf16
pool_adaptive_average x=f32/2x3x4x5 size=7,9 ; as=bf16
pool_adaptive_average x=f32/2x5x33 size=7
pool_adaptive_average x=f32/1x2x5x6x7 size=2,4,3 ; as=f16
pool_adaptive_average x=f32/2x19x13x10/nhwc size=5,3 ; as=bf16,f64
pool_adaptive_average x=f32/3x40x8x8/nhwc size=2,2 ; as=bf16
pool_adaptive_average x=f32/2x8x16x16 size=4,4 ; as=f16
pool_adaptive_average x=f32/2x3x16x16 size=2,2 ; as=bf16
pool_adaptive_average x=f32/1x3x300x7 size=2,2 ; plain=1

pool_adaptive_max_backward dy=f32/2x3x4x3 indices=i32/2x3x4x3 dx=f32/2x3x8x9 ; as=f16,bf16,f64
pool_adaptive_max_backward dy=f32/2x3x3x4 indices=i64/2x3x3x4 dx=f32/2x3x7x5 ; as=f16
pool_adaptive_max_backward dy=f32/2x3x7x9 indices=i32/2x3x7x9 dx=f32/2x3x4x5 ; as=bf16
pool_adaptive_max_backward dy=f32/1x2x2x4x3 indices=i32/1x2x2x4x3 dx=f32/1x2x5x6x7
pool_adaptive_max_backward dy=f32/2x19x5x3/nhwc indices=i32/2x19x5x3/nhwc dx=f32/2x19x13x10/nhwc ; as=bf16,f64
pool_adaptive_max_backward dy=f32/2x8x3x4/nhwc indices=i32/2x8x3x4/nhwc dx=f32/2x8x7x9/nhwc ; as=bf16
pool_adaptive_max_backward dy=f32/2x5x7 indices=i32/2x5x7 dx=f32/2x5x33
pool_adaptive_max_backward dy=f32/2x9x4x5 indices=i32/2x9x4x5 dx=f32/2x9x10x12 ; as=bf16
pool_adaptive_average_backward dy=f32/2x3x4x3 dx=f32/2x3x8x9 ; as=f16,bf16,f64
pool_adaptive_average_backward dy=f32/2x3x3x4 dx=f32/2x3x7x5 ; as=f16
pool_adaptive_average_backward dy=f32/2x3x7x9 dx=f32/2x3x4x5 ; as=bf16
pool_adaptive_average_backward dy=f32/1x2x2x4x3 dx=f32/1x2x5x6x7
pool_adaptive_average_backward dy=f32/2x19x5x3/nhwc dx=f32/2x19x13x10/nhwc ; as=bf16,f64
pool_adaptive_average_backward dy=f32/2x8x4x4 dx=f32/2x8x16x16 ; as=f16
pool_adaptive_average_backward dy=f32/2x9x4x5 dx=f32/2x9x10x12 ; as=bf16
pool_adaptive_average_backward dy=f32/5x8x3x4/nhwc dx=f32/5x8x7x9/nhwc ; as=bf16

pool_lp x=f32/2x3x8x9 window=2 ; as=f16,bf16,f64
pool_lp x=f32/2x3x9x8 window=3 stride=2 pad=1 p=3 ; as=bf16
pool_lp x=f32/1x5x7x7 window=3 stride=1 pad=1 p=1 ; as=f16
pool_lp x=f32/1x5x33 window=4 stride=3 dilation=2 p=2.5
pool_lp x=f32/1x2x5x6x7 window=2,3,2 p=1.5 ; as=f16
pool_lp x=f32/2x19x9x9/nhwc window=3 stride=2 ceil_mode=1 ; as=bf16
pool_lp x=f32/2x3x6x5 p=7
pool_lp x=f32/1x2x3x19 window=2,9 stride=1,9 pad=0,2 p=3 ; as=bf16
pool_lp x=f32/1x2x4x4 window=2 pad=2
pool_lp x=f32/1x2x4x4 window=2 ; x.fill=tiny plain=1
pool_lp x=f32/1x2x4x4 window=2 p=3 ; x.is=1e30,-1e30,3e38,1e-30 plain=1
pool_lp x=f32/1x2x4x4 window=2 ; x.is=1e30,-1e30,3e38,1e-30,0,1,nan,inf plain=1
pool_lp x=f32/3x5x13x16 window=3 stride=2 pad=1 ; as=f16,bf16
pool_lp x=f32/2x16x9x8/nhwc window=3 stride=2 pad=1 p=3 ; as=bf16
pool_lp_backward dy=f32/2x3x4x4 x=f32/2x3x8x9 y=f32/2x3x4x4 window=2 ; y.fill=pos as=f16,bf16,f64
pool_lp_backward dy=f32/2x3x5x4 x=f32/2x3x9x8 y=f32/2x3x5x4 window=3 stride=2 pad=1 p=3 ; y.fill=near as=bf16
pool_lp_backward dy=f32/1x5x7x7 x=f32/1x5x7x7 y=f32/1x5x7x7 window=3 stride=1 pad=1 p=1 ; y.fill=near as=f16
pool_lp_backward dy=f32/1x5x9 x=f32/1x5x33 y=f32/1x5x9 window=4 stride=3 dilation=2 p=2.5 ; y.fill=near
pool_lp_backward dy=f32/2x3x1x1 x=f32/2x3x6x5 y=f32/2x3x1x1 p=3 ; y.fill=near as=bf16
pool_lp_backward dy=f32/1x2x2x2 x=f32/1x2x3x19 y=f32/1x2x2x2 window=2,9 stride=1,9 pad=0,2 ; y.fill=near
pool_lp_backward dy=f32/1x2x2x2x3 x=f32/1x2x5x6x7 y=f32/1x2x2x2x3 window=2,3,2 p=1.5 ; y.fill=near as=f16
pool_lp_backward dy=f32/2x19x4x4/nhwc x=f32/2x19x9x9/nhwc y=f32/2x19x4x4/nhwc window=3 stride=2 ; y.fill=near as=bf16
pool_lp_backward dy=f32/1x2x2x2 x=f32/1x2x4x4 y=f32/1x2x2x2 window=2 ; y.is=0,1,2,0.5 plain=1
pool_lp_backward dy=f32/3x5x6x8 x=f32/3x5x12x16 y=f32/3x5x6x8 window=2 p=3 ; y.fill=near as=f16,bf16

# all windows of one size
pool_adaptive_average_backward dy=f32/2x8x1x2/nhwc dx=f32/2x8x5x6/nhwc ; as=bf16
pool_adaptive_average_backward dy=f32/3x5x1x1 dx=f32/3x5x7x7 ; as=f16
pool_lp x=f32/2x8x31x12/nhwc window=3 stride=2 pad=1 p=3 ; x.fill=special as=f16,bf16
pool_lp x=f32/2x8x11x12/nhwc window=2 p=2 ; x.fill=special as=bf16
pool_lp x=f32/2x3x11x12 window=2 stride=1 p=2 ; x.fill=special as=f16,bf16
pool_lp x=f32/2x3x11x12 window=2 stride=1 p=3 ; x.fill=special as=f16,bf16
pool_lp x=f32/2x3x11x13 window=5 stride=1 p=2 pad=2 ; x.fill=special as=f16,bf16
pool_lp x=f32/2x3x11x13 window=4,3 stride=2 p=1 ; x.fill=special as=f16,bf16

# norms in planes: small windows, any, sweeps, whole planes, bands; zero windows; tiny and huge taps; no tap
pool_lp x=f32/3x5x17x19 window=2 stride=1 p=3 ; as=f16,bf16
pool_lp x=f32/3x5x17x19 window=2 stride=1 pad=1 ; as=f16,bf16
pool_lp x=f32/2x5x17x19 window=3 stride=1 ; as=f16,bf16
pool_lp x=f32/2x5x17x19 window=3 stride=1 pad=1 p=4 ; as=f16,bf16
pool_lp x=f32/2x3x19x23 window=7,5 stride=1 pad=3,2 p=2 ; as=f16,bf16
pool_lp x=f32/2x3x19x23 window=5 stride=1 p=2.5 ; as=f16,bf16
pool_lp x=f32/70x3x7x7 ; as=f16,bf16
pool_lp x=f32/2x3x40x37 p=3 ; as=f16,bf16
pool_lp x=f32/1x2x150x149 window=2 stride=1 ; as=bf16
pool_lp x=f32/1x2x150x149 window=9 stride=1 pad=4 ; as=bf16
pool_lp x=f32/2x3x8x9 window=2 stride=1 ; x.fill=zero plain=1 as=f16,bf16
pool_lp x=f32/1x2x4x5 window=2 stride=1 ; x.fill=tiny plain=1 as=bf16
pool_lp x=f32/2x3x8x16 window=2 ; fill=zero,tiny plain=1 as=f16,bf16
pool_lp x=f32/1x2x4x5 window=2 stride=1 p=3 ; x.fill=tiny plain=1 as=bf16
pool_lp x=f32/1x2x8x9 window=5 stride=1 p=3 ; x.fill=tiny plain=1 as=bf16
pool_lp x=f32/1x2x4x5 window=2 stride=1 p=3 ; x.is=1e30,-1e30,3e38,1e-30,0,0,0 plain=1
pool_lp x=f32/1x2x4x4 window=2 stride=1 pad=2 p=2 ; as=bf16
pool_max x=f32/3x5x17x19 window=2 stride=1 ; as=f16,bf16
pool_max x=f32/3x5x17x19 indices=u8/3x5x16x18 window=2 stride=1 ; as=f16,bf16
pool_max x=f32/3x5x17x19 indices=i64/3x5x18x20 window=2 stride=1 pad=1 ; as=bf16
pool_average x=f32/3x5x17x19 window=2 stride=1 pad=1 include_pad=0 ; as=f16,bf16

# no windows: the gradient is 0
pool_adaptive_average_backward dy=f32/1x2x0x3 dx=f32/1x2x5x4
pool_adaptive_max_backward dy=f32/1x2x0x3 indices=i32/1x2x0x3 dx=f32/1x2x5x4

# averages, channels last, fewer windows than elements: overlap in both dims, in one, in none; one element more; bands of one row
pool_adaptive_average_backward dy=f32/2x16x7x7/nhwc dx=f32/2x16x25x26/nhwc ; as=f16,bf16
pool_adaptive_average_backward dy=f32/2x8x3x4/nhwc dx=f32/2x8x12x9/nhwc ; as=bf16
pool_adaptive_average_backward dy=f32/2x8x5x6/nhwc dx=f32/2x8x6x7/nhwc ; as=bf16
pool_adaptive_average_backward dy=f32/2x8x4x4/nhwc dx=f32/2x8x16x8/nhwc ; as=f16
pool_adaptive_average_backward dy=f32/2x8x4x1/nhwc dx=f32/2x8x4x9/nhwc ; as=bf16
pool_adaptive_average_backward dy=f32/2x8x3x9/nhwc dx=f32/2x8x7x4/nhwc ; as=bf16

# means of elements near the largest; long ones
pool_adaptive_average x=f32/2x5x7x9 size=3,4 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_adaptive_average x=f32/2x8x7x9/nhwc size=3,4 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_adaptive_average x=f32/2x5x8x8 size=4 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
pool_adaptive_average x=f32/1x8x401x403/nhwc size=2 ; fill=const:0.1 plain=1 tier=full
# large values: what is representable comes out
pool_adaptive_average x=f32/1x3x4x4 size=1 ; fill=const:1e38 y.is=1e38 plain=1

# long sums: one running f32 sum fails
pool_adaptive_average x=f32/1x2x512x512/nhwc size=1 ; fill=const:0.1 plain=1
pool_adaptive_average x=f32/1x2x512x512 size=1 ; fill=const:0.1 plain=1

# one window over all of x: norms, maxima with their places; every layout
pool_lp x=f32/2x16x23x24/nhwc ; as=f16,bf16
pool_lp x=f32/2x16x23x24/nhwc p=1 ; as=f16,bf16
pool_lp x=f32/2x16x23x24/nhwc p=3 ; as=f16,bf16
pool_lp x=f32/2x16x23x24/nhwc p=3 ; x.fill=special as=f16,bf16
pool_lp x=f32/2x16x9x8/nhwc window=9,8 p=2 ; fill=special,tiny as=bf16
pool_lp x=f32/2x5x9x8 p=1 ; x.fill=special as=bf16
pool_max x=f32/2x16x23x24/nhwc indices=i64/2x16x1x1 window=23,24 ; as=f16,bf16
pool_max x=f32/2x16x9x8/nhwc indices=i32/2x16x1x1 ; fill=special,int,const:-inf as=f16,bf16
pool_adaptive_max x=f32/2x16x9x8/nhwc indices=i64/2x16x1x1 size=1 ; fill=special,int as=f16
pool_max x=f32/1x8x3x4x5/nhwc indices=i64/1x8x1x1x1 window=3,4,5 ; fill=int
