# Transforms: bits are moved unchanged.

# any dtype, including NaN payloads
copy x=f32/5x13 ; as=f16,bf16,f64
copy x=e4m3/33
copy x=i8/7x9
copy x=i64/5x5
copy x=bool/65 ; fill=int
copy x=i32/3x4x5 y=i32/3x4x5/1:3:12
copy x=f32/6x7/1:6 y=f32/6x7
copy x=f32/2x5x3x4/nhwc y=f32/2x5x3x4 ; as=bf16
copy x=f32/2x5x3x4 y=f32/2x5x3x4/nhwc ; as=f16
copy x=u8/37x41/t y=u8/37x41
copy x=f32/4x6/0:1 y=f32/4x6
copy x=f32/3x2/1100000000:1 y=f32/3x2 ; plain=1
copy x=f32/65/2 y=f32/65
copy x=f32/2x2x2x2x2x2x2x2 y=f32/2x2x2x2x2x2x2x2/1:2:4:8:16:32:64:128
copy x=f32/70001x3 ; plain=1
copy x=f32/0x3 ; plain=1
copy x=f32

permute x=f32/5x7 perm=1,0 ; as=f16,bf16,f64
permute x=f32/3x5x7 perm=2,0,1 ; as=bf16
permute x=f32/3x5x7 perm=0,2,1
permute x=f32/2x3x4x5 perm=0,2,3,1 ; as=f16
permute x=f32/2x3x4x5 perm=3,2,1,0
permute x=f32/33x65 perm=1,0
permute x=u8/64x64 perm=1,0
permute x=u8/72x132 perm=1,0
permute x=f32/70x66 perm=1,0 ; as=bf16
permute x=f64/17x31 perm=1,0
permute x=f32/2x2x2x2x2x2x2x2 perm=7,6,5,4,3,2,1,0
permute x=f32/1x5x1x3 perm=3,0,1,2
permute x=f32/5x7/10:1 perm=1,0
permute x=f32/7 perm=0

slice x=f32/9x11 start=2,3 length=4,5 ; as=f16,bf16,f64
slice x=f32/9x11 step=2,3
slice x=f32/9x11 start=1,0 step=3,1 length=2,11 ; as=bf16
slice x=f32/3x5x7x9/nhwc start=0,1,2,3 length=3,2,3,4
slice x=i32/100 start=99
slice x=f32/40 start=1 length=38
slice x=u8/5x67 start=0,1
slice x=f32/2x3x2x3x2x3x2x3 start=1,0,1,0,1,0,1,0

pad x=f32/5x7 pad=1,2 ; as=f16,bf16,f64
pad x=f32/5x7 pad=0:3,2:0 value=-1.5 ; as=bf16
pad x=f32/2x3x4x5 pad=0,0,1:2,3:1
pad x=f32/2x3x4x5/nhwc pad=0,1,1,1 value=7
pad x=i32/9 pad=4 value=-3
pad x=u8/5x5 pad=1 value=300
pad x=f32/33 pad=0:1 value=inf
pad x=f32/3x0 pad=0:0,2:1 value=4 ; plain=1
pad x=f32/65537 pad=1 ; plain=1

concat x=[f32/3x5,f32/4x5] axis=0 ; as=f16,bf16,f64
concat x=[f32/3x5,f32/3x1,f32/3x9] axis=1 ; as=bf16
concat x=[f32/3x5]
concat x=[f32/2x3x4x5/nhwc,f32/2x2x4x5/nhwc] axis=1
concat x=[f32/2x3x4x5,f32/2x2x4x5/nhwc] axis=1
concat x=[u8/7,u8/9,u8/1,u8/33]
concat x=[f32/3x0,f32/3x2] axis=1 ; plain=1
concat x=[i64/2x2,i64/2x3] axis=-1
concat x=[f32/17x3/1:17,f32/17x5] axis=1

# pad by elements of x
pad x=f32/5x7 pad=1:4,2:6 mode=reflect ; as=f16,bf16,f64
pad x=f32/5x7 pad=1:9,2:12 mode=replicate ; as=f16,bf16
pad x=f32/2x3x9x8 pad=0,0,3,1:2 mode=reflect ; as=bf16
pad x=f32/2x3x9x8/nhwc pad=0,0,3,1:2 mode=replicate ; as=f16
pad x=u8/2x3x4x5/nhwc y=u8/2x3x6x7/252:1:42:6 pad=0,0,1,1 mode=reflect ; as=bf16
pad x=u8/3x70 pad=0,5 mode=reflect
pad x=u8/3x9 pad=1,0:1                                   # bytes stored by twos
pad x=bf16/3x13 pad=1,2:1 mode=reflect                  # halves by twos
pad x=i64/3x7 pad=2,0 mode=replicate
pad x=f32/1 pad=4:2 mode=replicate
pad x=f32/65 pad=64:64 mode=reflect
pad x=f32/4x256 pad=1,4 mode=reflect
pad x=f32/4x256 pad=0,8 value=3
pad x=i8/2 pad=1 value=1.5 ; x.is=7,-3 y.is=2,7,-3,2 plain=1
pad x=bool/1 pad=1 value=0.5 ; x.is=0 y.is=1,0,1 plain=1
permute x=f32/70x3x5x16 perm=3,1,2,0 ; as=bf16                           # narrow lines that run on
permute x=u8/72x3x12x20 perm=3,1,2,0
permute x=u8/2x8x8x3 perm=0,3,1,2 ; as=bf16,f32                          # few channels, apart and together
permute x=u8/2x3x8x8 perm=0,2,3,1 ; as=bf16,f32
permute x=bf16/3x4x16 perm=0,2,1
permute x=f32/16x2 perm=1,0

# a step larger than the dim takes one element
slice x=f32/9x50 step=288230376151711744,3 ; as=u8
pad x=u8/3x5x101 pad=0,1,3:2 mode=reflect ; as=bf16,f32                  # long runs, out of step
pad x=bf16/2x7x60 pad=1,2:0,5:9 value=2 ; as=u8,f32
pad x=u8/2x3x20001 pad=0,1:0,1:2 mode=replicate ; as=f16
pad x=bf16/2x150x221 pad=0,2:3,1:2 mode=reflect ; as=u8,f32             # planes in tiles
pad x=u8/2x90x300 pad=1:0,120:60,3 value=9 ; as=f32
pad x=f16/2x80x500 pad=0,90:1,2:1 mode=replicate ; as=i8
pad x=f32/2x70x130 pad=0,69:50,4 mode=reflect ; as=u8

# an index for each element: every axis, shorter than x in other dims, out of range, strides, all widths
gather_elements x=f32/5x7 indices=i32/3x9 axis=1 ; labels=-1..7 as=f16,bf16,f64
gather_elements x=f32/5x7 indices=i64/8x7 ; labels=0..5
gather_elements x=i8/4x3x5 indices=i32/4x6x2 axis=1 ; labels=0..2
gather_elements x=e4m3/4x3x5 indices=i64/2x3x9 axis=-1 ; labels=-3..9
gather_elements x=bool/300 indices=i32/500 ; labels=0..299
gather_elements x=i64/6x5/1:6 indices=i32/6x4/1:6 axis=1 y=i64/6x4/7:1 ; labels=0..4
gather_elements x=f32/5x7 indices=i32/0x7
gather_elements x=f32/0x7 indices=i32/3x7 ; labels=0..3
gather_elements x=f32/3x4 indices=i64/2x4 ; fill=zero x.is=0,1,2,3,4,5,6,7,8,9,10,11 indices.is=2,0,1,1,0,0,2,1 y.is=8,1,6,7,0,1,10,7 plain=1

# slices backwards
slice x=f32/17 start=16 step=-1 ; as=f16,f64
slice x=i8/5x9 start=4,8 step=-2,-3
slice x=f32/6x7x8 start=0,6,1 step=1,-1,2 length=0,4,3 ; as=bf16
slice x=f32/5x1 start=4,0 step=-4,-9 ; as=e4m3
slice x=f32/9x8/1:9 start=8,0 step=-1,1 y=f32/9x8/8:1
slice x=f32/5 start=4 step=-2 ; fill=zero x.is=1,2,3,4,5 y.is=5,3,1 plain=1

# pads that come round again, and that cut off
pad x=f32/7 pad=3:5 mode=wrap ; as=f16,f64
pad x=f32/3 pad=10:11 mode=wrap
pad x=i8/5x6x7 pad=1:0,0:6,3:2 mode=wrap
pad x=f32/5x6 pad=-1:2,3:-2 mode=wrap
pad x=f32/5x6 pad=-1:2,3:-2 value=7 ; as=bf16
pad x=f32/5x6 pad=-1:2,3:-2 mode=reflect
pad x=f32/5x6 pad=-1:2,3:-2 mode=replicate
pad x=f32/5x6 pad=-6:7,-4:0
pad x=f32/5x6 pad=-5:0,0
pad x=f32/6 pad=3:-8 mode=reflect
pad x=f32/6 pad=-8:5 mode=reflect
pad x=f32/4 pad=3:6 mode=wrap ; fill=zero x.is=1,2,3,4 y.is=2,3,4,1,2,3,4,1,2,3,4,1,2 plain=1
pad x=f32/4 pad=-1:2 value=9 ; fill=zero x.is=1,2,3,4 y.is=2,3,4,9,9 plain=1
