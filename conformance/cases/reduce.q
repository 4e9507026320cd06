# Reductions.

# every reduction: all dims, the last, the first, the middle, several; widths around vector lengths
reduce_sum x=f32/37 ; as=f16,bf16,f64
reduce_sum x=f32/5x33 axis=1 ; as=bf16
reduce_sum x=f32/33x6 axis=0 ; as=f16
reduce_sum x=f32/4x17x9 axis=1 ; as=f64
reduce_sum x=f32/3x4x5x6 axis=0,2
reduce_sum x=f32/2x3x4x5 axis=1,2,3 ; as=f16,bf16,f64
reduce_sum x=f32/7x1 axis=1 ; as=bf16
reduce_sum x=f32/1x65 axis=0 ; as=f16
reduce_sum x=f32/2x9x8x7/nhwc axis=2,3 ; as=f64
reduce_sum x=f32/64x64 axis=1
reduce_sum x=f32/129x31 axis=0 ; as=f16,bf16,f64
reduce_mean x=f32/37 ; as=bf16
reduce_mean x=f32/5x33 axis=1 ; as=f16
reduce_mean x=f32/33x6 axis=0 ; as=f64
reduce_mean x=f32/4x17x9 axis=1
reduce_mean x=f32/3x4x5x6 axis=0,2 ; as=f16,bf16,f64
reduce_mean x=f32/2x3x4x5 axis=1,2,3 ; as=bf16
reduce_mean x=f32/7x1 axis=1 ; as=f16
reduce_mean x=f32/1x65 axis=0 ; as=f64
reduce_mean x=f32/2x9x8x7/nhwc axis=2,3
reduce_mean x=f32/64x64 axis=1 ; as=f16,bf16,f64
reduce_mean x=f32/129x31 axis=0 ; as=bf16
reduce_prod x=f32/37 ; as=f16
reduce_prod x=f32/5x33 axis=1 ; as=f64
reduce_prod x=f32/33x6 axis=0
reduce_prod x=f32/4x17x9 axis=1 ; as=f16,bf16,f64
reduce_prod x=f32/3x4x5x6 axis=0,2 ; as=bf16
reduce_prod x=f32/2x3x4x5 axis=1,2,3 ; as=f16
reduce_prod x=f32/7x1 axis=1 ; as=f64
reduce_prod x=f32/1x65 axis=0
reduce_prod x=f32/2x9x8x7/nhwc axis=2,3 ; as=f16,bf16,f64
reduce_prod x=f32/64x64 axis=1 ; as=bf16
reduce_prod x=f32/129x31 axis=0 ; as=f16
reduce_max x=f32/37 ; as=f64
reduce_max x=f32/5x33 axis=1
reduce_max x=f32/33x6 axis=0 ; as=f16,bf16,f64
reduce_max x=f32/4x17x9 axis=1 ; as=bf16
reduce_max x=f32/3x4x5x6 axis=0,2 ; as=f16
reduce_max x=f32/2x3x4x5 axis=1,2,3 ; as=f64
reduce_max x=f32/7x1 axis=1
reduce_max x=f32/1x65 axis=0 ; as=f16,bf16,f64
reduce_max x=f32/2x9x8x7/nhwc axis=2,3 ; as=bf16
reduce_max x=f32/64x64 axis=1 ; as=f16
reduce_max x=f32/129x31 axis=0 ; as=f64
reduce_min x=f32/37
reduce_min x=f32/5x33 axis=1 ; as=f16,bf16,f64
reduce_min x=f32/33x6 axis=0 ; as=bf16
reduce_min x=f32/4x17x9 axis=1 ; as=f16
reduce_min x=f32/3x4x5x6 axis=0,2 ; as=f64
reduce_min x=f32/2x3x4x5 axis=1,2,3
reduce_min x=f32/7x1 axis=1 ; as=f16,bf16,f64
reduce_min x=f32/1x65 axis=0 ; as=bf16
reduce_min x=f32/2x9x8x7/nhwc axis=2,3 ; as=f16
reduce_min x=f32/64x64 axis=1 ; as=f64
reduce_min x=f32/129x31 axis=0
reduce_norm1 x=f32/37 ; as=f16,bf16,f64
reduce_norm1 x=f32/5x33 axis=1 ; as=bf16
reduce_norm1 x=f32/33x6 axis=0 ; as=f16
reduce_norm1 x=f32/4x17x9 axis=1 ; as=f64
reduce_norm1 x=f32/3x4x5x6 axis=0,2
reduce_norm1 x=f32/2x3x4x5 axis=1,2,3 ; as=f16,bf16,f64
reduce_norm1 x=f32/7x1 axis=1 ; as=bf16
reduce_norm1 x=f32/1x65 axis=0 ; as=f16
reduce_norm1 x=f32/2x9x8x7/nhwc axis=2,3 ; as=f64
reduce_norm1 x=f32/64x64 axis=1
reduce_norm1 x=f32/129x31 axis=0 ; as=f16,bf16,f64
reduce_norm2 x=f32/37 ; as=bf16
reduce_norm2 x=f32/5x33 axis=1 ; as=f16
reduce_norm2 x=f32/33x6 axis=0 ; as=f64
reduce_norm2 x=f32/4x17x9 axis=1
reduce_norm2 x=f32/3x4x5x6 axis=0,2 ; as=f16,bf16,f64
reduce_norm2 x=f32/2x3x4x5 axis=1,2,3 ; as=bf16
reduce_norm2 x=f32/7x1 axis=1 ; as=f16
reduce_norm2 x=f32/1x65 axis=0 ; as=f64
reduce_norm2 x=f32/2x9x8x7/nhwc axis=2,3
reduce_norm2 x=f32/64x64 axis=1 ; as=f16,bf16,f64
reduce_norm2 x=f32/129x31 axis=0 ; as=bf16
reduce_amax x=f32/37 ; as=f16
reduce_amax x=f32/5x33 axis=1 ; as=f64
reduce_amax x=f32/33x6 axis=0
reduce_amax x=f32/4x17x9 axis=1 ; as=f16,bf16,f64
reduce_amax x=f32/3x4x5x6 axis=0,2 ; as=bf16
reduce_amax x=f32/2x3x4x5 axis=1,2,3 ; as=f16
reduce_amax x=f32/7x1 axis=1 ; as=f64
reduce_amax x=f32/1x65 axis=0
reduce_amax x=f32/2x9x8x7/nhwc axis=2,3 ; as=f16,bf16,f64
reduce_amax x=f32/64x64 axis=1 ; as=bf16
reduce_amax x=f32/129x31 axis=0 ; as=f16
argmax x=f32/37 y=i64/1 ; as=f16,bf16,f64
argmax x=f32/5x33 y=i32/5x1 axis=1 ; as=bf16
argmax x=f32/33x6 y=i64/1x6 axis=0 ; as=f16
argmax x=f32/4x17x9 y=i32/4x1x9 axis=1 ; as=f64
argmax x=f32/3x4x5x6 y=i64/1x4x1x6 axis=0,2
argmax x=f32/2x3x4x5 y=i32/2x1x1x1 axis=1,2,3 ; as=f16,bf16,f64
argmax x=f32/7x1 y=i64/7x1 axis=1 ; as=bf16
argmax x=f32/1x65 y=i32/1x65 axis=0 ; as=f16
argmax x=f32/64x64 y=i32/64x1 axis=1
argmax x=f32/129x31 y=i64/1x31 axis=0 ; as=f16,bf16,f64
argmin x=f32/37 y=i32/1 ; as=bf16
argmin x=f32/5x33 y=i64/5x1 axis=1 ; as=f16
argmin x=f32/33x6 y=i32/1x6 axis=0 ; as=f64
argmin x=f32/4x17x9 y=i64/4x1x9 axis=1
argmin x=f32/3x4x5x6 y=i32/1x4x1x6 axis=0,2 ; as=f16,bf16,f64
argmin x=f32/2x3x4x5 y=i64/2x1x1x1 axis=1,2,3 ; as=bf16
argmin x=f32/7x1 y=i32/7x1 axis=1 ; as=f16
argmin x=f32/1x65 y=i64/1x65 axis=0 ; as=f64
argmin x=f32/64x64 y=i64/64x1 axis=1 ; as=f16,bf16,f64
argmin x=f32/129x31 y=i32/1x31 axis=0 ; as=bf16
argmax x=f32/2x9x8x7/nhwc y=i32/2x1x1x7 axis=1,2 ; fill=int

# long rows, and rows around powers of two
reduce_sum x=f32/100003 ; as=f16,bf16,f64
reduce_sum x=f32/3x65537 axis=1 ; as=bf16
reduce_mean x=f32/65537x3 axis=0 ; as=f16
reduce_norm2 x=f32/2x40000 axis=1
reduce_max x=f32/70001x3 axis=1 ; plain=1
# not quick: 70001 blocks of a generic engine take the emulator minutes
reduce_sum x=f32/70001x2 axis=1 ; plain=1 tier=default
reduce_max x=f32/4x127 axis=1 ; as=bf16
reduce_max x=f32/4x128 axis=1
reduce_min x=f32/4x255 axis=1
argmax x=f32/4x1025 y=i32/4x1 axis=1
reduce_sum x=f32/16x256 axis=1 ; fill=ipos,pos as=f16,bf16
reduce_sum x=f32/33x33x33 axis=0,1,2 ; as=bf16
reduce_sum x=f32/2x3x2x3x2x3x2x3 axis=1,3,5,7

# several runs per result, in one part and in more; columns narrower and wider than a block
reduce_sum x=f32/64x5x32x32 axis=0,2,3 ; as=bf16
reduce_max x=f32/3x2x7x41 axis=0,2,3 ; as=f16
reduce_mean x=f32/40x3x16x24 axis=0,2,3
reduce_sum x=f32/9x2x4100 axis=0,2 ; as=bf16
reduce_sum x=f32/3000x8 axis=0 ; as=bf16
reduce_max x=f32/3000x10 axis=0
reduce_norm2 x=f32/900x24 axis=0 ; as=f16
reduce_prod x=f32/700x264 axis=0 ; fill=const:1,const:-1
reduce_sum x=f32/300x1040 axis=0 ; as=bf16,f16
reduce_sum x=f32/70x6x50x16 axis=0,2 ; as=bf16
reduce_amax x=f32/8x512 axis=1 ; as=bf16
reduce_norm1 x=f32/5x4104 axis=1 ; as=bf16

# another dtype for the result
reduce_sum x=bf16/9x100 y=f32/9x1 axis=1
reduce_mean x=f16/9x100 y=f32/9x1 axis=1
reduce_sum x=f32/9x100 y=bf16/9x1 axis=1
reduce_norm2 x=bf16/5x77 y=f32/5x1 axis=1
reduce_amax x=f32/9x100 y=f16/9x1 axis=1

# f16 whose squares overflow f16
reduce_norm2 x=f16/4x64 y=f32/4x1 axis=1 ; fill=signed:60000
reduce_sum x=f16/4x64 y=f32/4x1 axis=1 ; fill=signed:60000

# integers
reduce_sum x=i8/9x50 y=i32/9x1 axis=1
reduce_sum x=u8/4x1000 y=i64/4x1 axis=1
reduce_sum x=i32/77
reduce_sum x=i64/5x7 axis=0
reduce_sum x=i32/64x64 axis=1 ; fill=bits
reduce_sum x=i32/129x40 axis=0 ; fill=bits
reduce_norm1 x=f64/3x300x16 y=f32/3x1x16 axis=1
reduce_prod x=i32/4x9 axis=1 ; fill=ipos,bits
reduce_max x=i8/5x40 axis=1
reduce_min x=u8/5x40 axis=0
reduce_max x=i64/33
argmax x=i32/5x40 y=i64/5x1 axis=1
argmin x=u8/5x40 y=i32/5x1 axis=1
reduce_sum x=i32/9x70 axis=0 ; fill=bits
reduce_prod x=i64/300x9 axis=0 ; fill=bits
reduce_min x=i64/3x5000 axis=1 ; fill=bits
reduce_max x=i8/70x33 axis=0
argmin x=i32/70x33 y=i32/1x33 axis=0 ; fill=int
argmax x=i8/4x9000 y=i64/4x1 axis=1 ; fill=int
reduce_sum x=i32/2x40000 ; fill=bits plain=1
reduce_min x=i8/9x70/t axis=1
argmin x=f64/3x5000 y=i64/3x1 axis=1 ; fill=special,int
argmax x=f64/70x33 y=i32/1x33 axis=0 ; fill=special,int

# strides, misalignment, broadcast
reduce_sum x=f32/5x33/1:5 axis=1
reduce_max x=f32/5x33/70:2 axis=1
reduce_mean x=f32/5x33/0:1 axis=0
reduce_sum x=f32/5x33@4 axis=1 ; as=f64
argmax x=f32/6x7/1:6 y=i32/6x1 axis=1 ; fill=int,special

# NaN, Inf
reduce_max x=f32/40x9 axis=1 ; fill=special,nan,inf as=f16,bf16,f64
reduce_min x=f32/9x40 axis=0 ; fill=special,nan,inf as=bf16
reduce_amax x=f32/40x9 axis=1 ; fill=special,nan,inf
argmax x=f32/40x9 y=i64/40x1 axis=1 ; fill=special,nan,zero as=bf16
argmin x=f32/40x33 y=i32/40x1 axis=1 ; fill=special,nan,zero
reduce_max x=f32/9x20 axis=1 ; fill=const:-inf as=f16,bf16
reduce_min x=f32/20x9 axis=0 ; fill=const:inf as=f16,bf16
reduce_sum x=f32/40x9 axis=1 ; fill=special as=f16,bf16,f64
reduce_norm2 x=f32/40x9 axis=1 ; fill=special

# over nothing, and zero sizes
reduce_sum x=f32/3x0 axis=1 ; fill=zero y.is=0 plain=1 as=bf16,f64
reduce_prod x=f32/3x0 axis=1 ; fill=zero y.is=1 plain=1
reduce_mean x=f32/3x0 axis=1 ; fill=zero y.is=nan plain=1
reduce_max x=f32/3x0 axis=1 ; fill=zero y.is=-inf plain=1
reduce_min x=f32/3x0 axis=1 ; fill=zero y.is=inf plain=1
reduce_norm1 x=f32/3x0 axis=1 ; fill=zero y.is=0 plain=1
reduce_norm2 x=f32/3x0 axis=1 ; fill=zero y.is=0 plain=1
reduce_amax x=f32/3x0 axis=1 ; fill=zero y.is=0 plain=1
reduce_max x=i32/3x0 axis=1 ; fill=zero y.is=-2147483648 plain=1
argmax x=f32/3x0 y=i32/3x1 axis=1 ; fill=zero y.is=-1 plain=1
reduce_sum x=f32/0x3 axis=1 ; plain=1

# golden: the first of equals, the first NaN wins
argmax x=f32/6 y=i32/1 ; fill=zero x.is=1,7,3,7,7,0 y.is=1 plain=1
argmin x=f32/6 y=i64/1 ; fill=zero x.is=1,0,3,0,7,0 y.is=1 plain=1
argmax x=f32/6 y=i32/1 ; fill=zero x.is=1,7,nan,9,nan,0 y.is=2 plain=1
argmax x=f32/2x3 y=i32/1x1 ; fill=zero x.is=1,5,2,5,3,4 y.is=1 plain=1

# many rows of few columns: blocks whose parts meet in a cluster; more of them, one block each
reduce_sum x=bf16/1500x1024 axis=0 ; plain=1
reduce_min x=f32/2001x840 axis=0 ; plain=1
reduce_norm2 x=bf16/2001x840 axis=0 ; plain=1
reduce_max x=f32/1030x3208 axis=0 ; plain=1 as=bf16
# so many short rows that fewer than 32 lanes take one
reduce_sum x=bf16/70000x24 axis=1 ; plain=1

# sums that overflow in one order and not in another; overlapping rows
reduce_mean x=bf16/64x5 axis=0 ; fill=bits plain=1
reduce_sum x=f32/9x7/2:1 axis=1 ; plain=1

# means and norms of numbers near the largest
reduce_mean x=f32/3x50 axis=1 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
reduce_mean x=f32/3x64 axis=1 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1 as=bf16
reduce_mean x=f32/64x40 axis=0 ; fill=const:-3e38 y.is=-3e38 y.within=1e-6 plain=1 as=bf16
reduce_mean x=f32/4x6x5x8 axis=0,2 ; fill=zero x.is=3e38,2e38,-1e38 plain=1 as=bf16
reduce_mean x=f32/3000x64 axis=0 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1
reduce_norm2 x=f32/3x16 axis=1 ; fill=const:5e37 y.is=2e38 plain=1
reduce_norm2 x=f64/3x16 axis=1 ; fill=const:2e200 y.is=8e200 plain=1

# long sums of one sign, whose rounding errors add up: blocks of terms
reduce_sum x=f32/3000000 ; fill=const:0.1 plain=1 tier=full as=f64
reduce_sum x=f32/400000x8 axis=0 ; fill=const:0.1 plain=1 tier=full as=f64
# means of values near the largest
reduce_mean x=f32/3x1000 axis=1 ; x.is=1e38,3e38,2e38,2.5e38,3e38,3.4e38,3e38 plain=1
reduce_mean x=f32/1000x3 axis=0 ; x.is=1e38,3e38,2e38,2.5e38,3e38,3.4e38,3e38 plain=1

# any, all; logsumexp; variance; the last of equals
reduce_any x=bool/7x33 axis=1 ; fill=int:1,bits,zero,one
reduce_any x=bool/5x6x7 axis=0,2 ; fill=int:1
reduce_any x=bool/5x6x7 ; fill=zero,one
reduce_any x=bool/9x8/1:9 axis=0 ; fill=int:1
reduce_any x=bool/3x0 axis=1
reduce_all x=bool/7x33 axis=1 ; fill=int:1,bits,zero,one
reduce_all x=bool/5x6x7 axis=0,2 ; fill=int:1
reduce_all x=bool/5x6x7 ; fill=zero,one
reduce_all x=bool/9x8/1:9 axis=0 ; fill=int:1
reduce_all x=bool/3x0 axis=1
reduce_any x=bool/3x2 axis=1 ; fill=zero x.is=0,0,0,1,1,1 y.is=0,1,1 plain=1
reduce_all x=bool/3x2 axis=1 ; fill=zero x.is=0,0,0,1,1,1 y.is=0,0,1 plain=1
reduce_logsumexp x=f32/7x33 axis=1 ; as=f16,bf16,f64
reduce_logsumexp x=f32/5x6x7 axis=0,2 ; as=f64
reduce_logsumexp x=f32/3001 ; as=f16
reduce_logsumexp x=f32/9x8/1:9 axis=0 ; as=bf16
reduce_logsumexp x=bf16/6x300 axis=1 y=f32/6x1
reduce_logsumexp x=f32/3x1 axis=1
reduce_logsumexp x=f32/2x500 axis=1 ; fill=far:1000,large:30,finite,tiny
reduce_variance x=f32/7x33 axis=1 ; as=f16,bf16,f64
reduce_variance x=f32/5x6x7 axis=0,2 ; as=f64
reduce_variance x=f32/3001 ; as=f16
reduce_variance x=f32/9x8/1:9 axis=0 ; as=bf16
reduce_variance x=bf16/6x300 axis=1 y=f32/6x1
reduce_variance x=f32/3x1 axis=1
reduce_variance x=f32/2x500 axis=1 ; fill=far:1000,large:30,finite,tiny
reduce_variance x=f32/7x33 axis=1 correction=0 ; as=f16,f64
reduce_variance x=f32/3x2 axis=1 correction=5
reduce_variance x=f32/3x0 axis=1
reduce_logsumexp x=f32/3x0 axis=1
reduce_variance x=f64/4 ; fill=zero x.is=1.5,-2,7,3.25 y.is=14.015625 y.within=1e-14 plain=1
reduce_variance x=f64/4 correction=0 ; fill=zero x.is=1.5,-2,7,3.25 y.is=10.51171875 y.within=1e-14 plain=1
reduce_logsumexp x=f64/4 ; fill=zero x.is=1.5,-2,7,3.25 y.is=7.027350469648225 y.within=1e-14 plain=1
reduce_logsumexp x=f32/3x2 axis=1 ; fill=zero x.is=-inf,-inf,inf,0,nan,1 y.is=-inf,inf,nan plain=1
reduce_logsumexp x=f32/2 ; fill=zero x.is=3e38,-3e38 y.is=3e38 plain=1
argmax x=f32/7x33 axis=1 last=1 ; fill=int:2,special as=f16,f64
argmax x=i32/5x6x7 axis=0,2 last=1 ; fill=int:2
argmax x=u8/300 last=1 ; fill=int:2
argmax x=f32/3x0 axis=1 last=1
argmin x=f32/7x33 axis=1 last=1 ; fill=int:2,special as=f16,f64
argmin x=i32/5x6x7 axis=0,2 last=1 ; fill=int:2
argmin x=u8/300 last=1 ; fill=int:2
argmin x=f32/3x0 axis=1 last=1
argmax x=f32/6 last=1 ; fill=zero x.is=1,3,2,3,0,0 y.is=3 plain=1
argmin x=f32/6 last=1 ; fill=zero x.is=1,nan,2,nan,0,0 y.is=3 plain=1
# large values: what is representable comes out
reduce_mean x=f32/3x4 axis=1 ; fill=const:3e38 y.is=3e38 plain=1
reduce_mean x=f32/70x300 axis=0 ; fill=const:3e38 y.is=3e38 y.within=1e-6 plain=1
reduce_norm2 x=f32/3x40 axis=1 ; fill=large:30 plain=1

# long sums: one running f32 sum fails
reduce_sum x=f32/1048576x2 axis=0 ; fill=const:0.1 plain=1
reduce_sum x=f32/2x1048576 axis=1 ; fill=const:0.1 plain=1
reduce_norm2 x=f32/1048576x2 axis=0 ; fill=const:0.1 plain=1

# a sum beyond f64's range has a mean within it
reduce_mean x=f64/3x4 axis=1 ; fill=const:1e308 y.is=1e308 plain=1
reduce_mean x=f64/70x300 axis=0 ; fill=const:1e308 y.is=1e308 y.within=1e-11 plain=1
reduce_mean x=f64/2x4 axis=0 ; fill=zero x.is=1e308,-1e308,inf,1e-310,1e308,-1e308,1,3e-310 y.is=1e308,-1e308,inf,2e-310 plain=1
reduce_mean x=f64/200000x3 axis=0 ; fill=const:-1e308 y.is=-1e308 y.within=1e-11 plain=1
reduce_mean x=f64/3x200000 axis=1 ; fill=const:1e308 y.is=1e308 y.within=1e-11 plain=1
