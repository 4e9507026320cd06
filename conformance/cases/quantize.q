# quantization: formats, broadcast of scales, blocks around vector lengths, ties, saturation, non-finite values.

# one scale for the tensor, of rank 2 or none; tails of vectors
quantize x=f32/4x8 scale=f32/1x1 y=e4m3/4x8 amax=? ; as=f16,bf16,f64
quantize x=f32/7x11 scale=f32 y=e5m2/7x11 amax=? ; as=bf16,f64
quantize x=f32/3x5x7 scale=f32/1x1x1 zero_point=u8/1x1x1 y=u8/3x5x7 amax=? ; as=f16
quantize x=f32/1031 scale=f32/1 y=i8/1031 ; as=bf16
quantize x=f32/70000 scale=f32 y=e4m3/70000 amax=? ; as=bf16
quantize x=bf16/40x1030 scale=e8m0/1x1 y=e4m3/40x1030 amax=?
quantize x=f32 scale=f32 y=i8 amax=?
quantize x=f32/0x5 scale=f32/1x1 y=i8/0x5 amax=?
quantize x=f32/0x5 scale=f32/0x5 y=i8/0x5

# one for each row, column, channel, block, tile
quantize x=f32/5x24 scale=f32/5x1 zero_point=i8/5x1 y=i8/5x24 ; as=bf16
quantize x=f32/5x24 scale=f32/1x24 zero_point=u8/1x24 y=u8/5x24 ; as=bf16
quantize x=f32/5x24 scale=f32/5x24 y=e4m3/5x24
quantize x=f32/2x6x4x8 scale=f32/1x6x1x1 y=i8/2x6x4x8 amax=? ; as=f16
quantize x=f32/2x6x4x8 scale=f32/1x6x1x1 zero_point=i8/1x6x1x1 y=i8/2x6x4x8 ; as=bf16
quantize x=f32/2x6x4x8/nhwc scale=f32/1x6x1x1 y=i8/2x6x4x8/nhwc
quantize x=f32/2x3x7x7 scale=f32/1x3x1x1 y=i8/2x3x7x7
quantize x=bf16/6x96 scale=e8m0/6x3 y=e4m3/6x96 amax=?
quantize x=f32/6x100 scale=e8m0/6x4 y=e5m2/6x100 block=1,32
quantize x=f32/16x64 scale=f32/4x2 y=e4m3/16x64 ; as=bf16
quantize x=f32/20x72 scale=f32/3x3 y=e4m3/20x72 block=8,32 ; as=f64
quantize x=f32/2x3x4x16 scale=f32/2x1x4x2 y=i8/2x3x4x16
quantize x=f32/2x3x4x5x8 scale=f32/2x1x4x1x8 y=i8/2x3x4x5x8

# ties to even, both ways; saturation; results that the rounding of the quotient decides
quantize x=f32/32 scale=f32 zero_point=i8 y=i8/32 ; fill=int:100 scale.is=2 zero_point.is=3
quantize x=f32/32 scale=f32 zero_point=i8 y=i8/32 ; fill=int:100 scale.is=-2 zero_point.is=-128
quantize x=f32/1024 scale=f32 zero_point=u8 y=u8/1024 ; fill=int:2000 scale.is=4 zero_point.is=255
quantize x=f32/1024 scale=f32 y=e4m3/1024 ; fill=int:1000 scale.is=3
quantize x=f32/1024 scale=f32 y=e5m2/1024 ; fill=int:200000 scale.is=2
quantize x=f32/4096 scale=f32 y=i8/4096 ; fill=int:4000 scale.is=30
quantize x=f32/4096 scale=f32 zero_point=u8 y=u8/4096 ; fill=int:9000 scale.is=122
quantize x=f32/4096 scale=f32 y=e4m3/4096 ; fill=int:3000 scale.is=7.3
quantize x=f32/4096 scale=f32 y=e4m3/4096 ; fill=wide,tiny,all scale.is=0.37
quantize x=f16/65536 scale=f32 y=e4m3/65536 ; fill=all scale.is=1
quantize x=bf16/65536 scale=f32 y=i8/65536 ; fill=all scale.is=0.1
quantize x=bf16/65536 scale=e8m0 y=e5m2/65536 ; fill=all scale.is=8

# unusual scales
quantize x=f32/64 scale=f32/8 y=e4m3/64 ; scale.is=0,-0,inf,nan,1e38,1e-38,1e-45,-3
quantize x=f32/64 scale=f32/8 y=i8/64 ; scale.is=0,-0,inf,nan,1e38,1e-38,1e-45,-3 fill=special,tiny
quantize x=f32/256 scale=e8m0/8 y=e4m3/256 ; fill=tiny,special scale.fill=bits
quantize x=f32/64 scale=f32/64 y=e5m2/64 ; fill=bits

# dequantize
dequantize x=i8/5x24 scale=f32/5x1 zero_point=i8/5x1 ; as=f16,bf16,f64
dequantize x=u8/7x33 scale=f32/1x1 zero_point=u8/1x1 ; as=bf16
dequantize x=e4m3/256 scale=f32 ; fill=all scale.is=0.7
dequantize x=e5m2/256 scale=f32 y=f16/256 ; fill=all scale.is=-3
dequantize x=e5m2/256 scale=f16 y=bf16/256 ; fill=all scale.is=3
dequantize x=i8/256 scale=bf16 y=f32/256 ; fill=all scale.is=0.3
dequantize x=e4m3/6x96 scale=e8m0/6x3 y=bf16/6x96
dequantize x=e5m2/6x100 scale=e8m0/6x4 block=1,32
dequantize x=i8/6x96 scale=e8m0/6x3 y=f64/6x96 ; scale.fill=bits
dequantize x=e5m2/512 scale=e8m0/256 ; fill=bits scale.fill=all
dequantize x=e4m3/5x24 scale=f32/1x24 y=f16/5x24
dequantize x=u8/5x24 scale=f32/1x24 zero_point=u8/1x24
dequantize x=e4m3/16x64/t scale=f32/4x2 y=bf16/16x64/t
dequantize x=e4m3/16x64 scale=f32/4x2 y=bf16/16x64
dequantize x=i8/2x6x4x8 scale=f32/1x6x1x1 zero_point=i8/1x6x1x1
dequantize x=i8/70000 scale=f32
dequantize x=i8 scale=f32

# scales computed from x: MX, rows, tensor; lengths around lanes, warps, thread blocks
quantize_dynamic x=f32/6x96 y=e4m3/6x96 scale=e8m0/6x3 amax=? ; as=bf16,f16,f64
quantize_dynamic x=f32/33x64 y=e5m2/33x64 scale=e8m0/33x2 ; as=bf16
quantize_dynamic x=f32/5x128 y=i8/5x128 scale=e8m0/5x4 ; as=bf16 fill=signed:4,special,tiny,wide
quantize_dynamic x=f32/5x100 y=e4m3/5x100 scale=e8m0/5x4 block=1,32
quantize_dynamic x=f32/64x40 y=e4m3/64x40 scale=e8m0/2x40 ; as=bf16
quantize_dynamic x=f32/40x16 y=e4m3/40x16 scale=e8m0/40x1 ; as=bf16
quantize_dynamic x=f32/9x256 y=e4m3/9x256 block=1,128 amax=? ; as=bf16
quantize_dynamic x=f32/256x256 y=e4m3/256x256 block=128,128 ; as=bf16 fill=signed:4
quantize_dynamic x=f32/2x20x72 y=e4m3/2x20x72 block=1,8,32 amax=? ; as=bf16,f16
quantize_dynamic x=f32/20x72 y=i8/20x72 block=0,32 scale=e8m0/1x3 ; as=bf16
quantize_dynamic x=f32/20x72 y=i8/20x72 block=0,1 ; as=bf16
quantize_dynamic x=bf16/70x328 y=e5m2/70x328 block=32,1 scale=e8m0/3x328 amax=?
quantize_dynamic x=f32/5x8 y=i8/5x8 block=1,0 amax=? ; as=f16,bf16,f64
quantize_dynamic x=f32/5x200 y=i8/5x200 block=1,0 ; as=bf16
quantize_dynamic x=f32/5x1000 y=e4m3/5x1000 block=1,0 amax=? ; as=bf16
quantize_dynamic x=f32/3x1003 y=e4m3/3x1003 block=1,0
quantize_dynamic x=f32/3x2000 y=i8/3x2000 block=1,0 ; as=bf16
quantize_dynamic x=f32/2x8000 y=e5m2/2x8000 block=1,0 scale=e8m0/2x1 ; as=bf16
quantize_dynamic x=f32/2x20000 y=i8/2x20000 block=1,0 ; as=bf16 fill=signed:4
quantize_dynamic x=bf16/2x65536 y=e4m3/2x65536 block=1,0 ; fill=signed:4
quantize_dynamic x=f32/2x70000 y=e4m3/2x70000 block=1,0 ; fill=signed:4
quantize_dynamic x=f32/24x5 y=i8/24x5 block=0,1 amax=?
quantize_dynamic x=f32/7x11 y=e4m3/7x11 amax=? ; as=bf16,f16,f64
quantize_dynamic x=f32/9x9 y=i8/9x9 ; fill=zero,inf,nan
quantize_dynamic x=f32/100003 y=i8/100003 amax=? ; as=bf16 fill=signed:4
quantize_dynamic x=bf16/300x1000 y=e4m3/300x1000 scale=e8m0/1x1 ; fill=signed:4
quantize_dynamic x=f32/64x64 y=e4m3/64x64 scale=e8m0/64x2 ; fill=zero,inf,nan,tiny
quantize_dynamic x=f32/64x64 y=e4m3/64x64 block=1,0 amax=? ; fill=zero,inf,nan,tiny
quantize_dynamic x=f32/0x5 y=e4m3/0x5 amax=?
quantize_dynamic x=f32/3x0 y=e4m3/3x0 block=1,0 amax=?
quantize_dynamic x=f32 y=i8 scale=e8m0

# enough elements that a thread takes several vectors, and a thread block several times that
quantize x=f32/2800x1024 scale=f32 y=e4m3/2800x1024 amax=? ; fill=signed:4
quantize x=f32/1090x1000 scale=f32/1x1000 y=i8/1090x1000 ; fill=signed:4
dequantize x=i8/1090x1000 scale=f32/1x1000 ; fill=bits
dequantize x=i8/541x1024 scale=f32/541x1 ; fill=bits
quantize_dynamic x=f32/541x1024 y=e4m3/541x1024 scale=e8m0/541x32 ; fill=signed:4

# quantize and dequantize
in x f32/32x128
q = quantize_dynamic x=x y=e4m3/32x128 scale=s block=1,32
out y = dequantize x=q scale=s

in x bf16/8x24
in s f32/1x1
r = relu x=x
q = quantize x=r scale=s y=i8/8x24
out y = dequantize x=q scale=s

quantize_dynamic x=f32/400003 y=e4m3/400003 amax=? ; as=bf16 fill=signed:4

# golden: NaN counts as 0 in integers, to which zero_point is added
quantize x=f32/3 scale=f32 zero_point=u8 y=u8/3 ; fill=zero x.is=nan,1,-inf scale.is=1 zero_point.is=50 y.is=50,51,0 plain=1

# the range of x and 0, with a zero point: blocks, no values, one sign, what is no number, a range that overflows
quantize_dynamic x=f32/4x33 y=u8/4x33 zero_point=? amax=? ; fill=signed,pos,special,large as=bf16,f64
quantize_dynamic x=f32/4x33 y=i8/4x33 zero_point=? ; fill=signed,pos,special as=f16
quantize_dynamic x=f32/7x64 y=u8/7x64 zero_point=? block=1,0 ; fill=signed as=bf16
quantize_dynamic x=f32/7x70 y=u8/7x70 zero_point=? block=2,32 ; fill=signed
quantize_dynamic x=f32/6x5/t y=u8/6x5 zero_point=? block=0,1 ; fill=signed
quantize_dynamic x=f32/0x5 y=u8/0x5 zero_point=?
quantize_dynamic x=f32/1000 y=u8/1000 zero_point=u8/1 scale=f32/1 ; fill=signed,zero

# integer products requantized
quantize x=i32/4x33 scale=f32 zero_point=u8 y=u8/4x33 amax=? ; fill=int:5000 scale.is=37.5
quantize x=i32/4x33 scale=f32/1x33 y=i8/4x33 ; fill=int:5000 scale.fill=const:30
quantize x=i32/4x33 scale=f16/4x1 zero_point=i8/4x1 y=i8/4x33 ; fill=bits scale.fill=const:3e4
quantize x=i32/64 scale=e8m0/2 y=e4m3/64 block=32 ; fill=int:2000 scale.is=4,8

in a i8/5x24
in b i8/24x9
in s f32/1x9
acc = matmul a=a b=b y=i32/5x9
out y = quantize x=acc scale=s y=i8/5x9 ; s.fill=const:300

# golden, from ONNX's DynamicQuantizeLinear and QuantizeLinear of i32
quantize_dynamic x=f32/6 y=u8/6 zero_point=? ; x.is=0,2,-3,-2.5,1.34000003,0.5 y.is=153,255,0,26,221,179 scale.is=0.0196078438 scale.within=1e-7 zero_point.is=153 plain=1
quantize_dynamic x=f32/6 y=u8/6 zero_point=? ; x.is=-1,-2.0999999,-1.29999995,-2.5,-3.33999991,-4 y.is=191,121,172,96,42,0 scale.is=0.0156862754 scale.within=1e-7 zero_point.is=255 plain=1
quantize_dynamic x=f32/12 y=u8/12 zero_point=? ; x.is=1,2.0999999,1.29999995,2.5,3.33999991,4,1.5,2.5999999,3.9000001,4,3,2.34500003 y.is=64,134,83,159,213,255,96,166,249,255,191,149 scale.is=0.0156862754 scale.within=1e-7 zero_point.is=0 plain=1
quantize x=i32/3x4 scale=f32/1x4 zero_point=u8/1x4 y=u8/3x4 ; x.is=2336,-2425,1637,-2486,-3901,-230,-4567,1751,-2227,167,-2222,1548 scale.is=30.5,17.25,64,41.125 zero_point.is=128,100,3,255 y.is=205,0,29,195,0,87,0,255,55,110,0,255 plain=1
