# matmul: tails, transposes, batches, scalars, bias, memory shared with c, zero sizes, 8-bit types.

# sizes around 1..33: every remainder of a tile, in each dim
matmul a=f32/1x12 b=f32/12x8 ; as=bf16 plain=1
matmul a=f32/2x23 b=f32/23x15 ; as=f16,bf16
matmul a=f32/3x1 b=f32/1x22 ; as=f64 plain=1
matmul a=f32/4x12 b=f32/12x29 ; as=bf16
matmul a=f32/5x23 b=f32/23x3 ; as=f16,bf16 plain=1
matmul a=f32/6x1 b=f32/1x10 ; as=f64
matmul a=f32/7x12 b=f32/12x17 ; as=bf16 plain=1
matmul a=f32/8x23 b=f32/23x24 ; as=f16,bf16
matmul a=f32/9x1 b=f32/1x31 ; as=f64 plain=1
matmul a=f32/10x12 b=f32/12x5 ; as=bf16
matmul a=f32/11x23 b=f32/23x12 ; as=f16,bf16 plain=1
matmul a=f32/12x1 b=f32/1x19 ; as=f64
matmul a=f32/13x12 b=f32/12x26 ; as=bf16 plain=1
matmul a=f32/14x23 b=f32/23x33 ; as=f16,bf16
matmul a=f32/15x1 b=f32/1x7 ; as=f64 plain=1
matmul a=f32/16x12 b=f32/12x14 ; as=bf16
matmul a=f32/17x23 b=f32/23x21 ; as=f16,bf16 plain=1
matmul a=f32/18x1 b=f32/1x28 ; as=f64
matmul a=f32/19x12 b=f32/12x2 ; as=bf16 plain=1
matmul a=f32/20x23 b=f32/23x9 ; as=f16,bf16
matmul a=f32/21x1 b=f32/1x16 ; as=f64 plain=1
matmul a=f32/22x12 b=f32/12x23 ; as=bf16
matmul a=f32/23x23 b=f32/23x30 ; as=f16,bf16 plain=1
matmul a=f32/24x1 b=f32/1x4 ; as=f64
matmul a=f32/25x12 b=f32/12x11 ; as=bf16 plain=1
matmul a=f32/26x23 b=f32/23x18 ; as=f16,bf16
matmul a=f32/27x1 b=f32/1x25 ; as=f64 plain=1
matmul a=f32/28x12 b=f32/12x32 ; as=bf16
matmul a=f32/29x23 b=f32/23x6 ; as=f16,bf16 plain=1
matmul a=f32/30x1 b=f32/1x13 ; as=f64
matmul a=f32/31x12 b=f32/12x20 ; as=bf16 plain=1
matmul a=f32/32x23 b=f32/23x27 ; as=f16,bf16
matmul a=f32/33x1 b=f32/1x1 ; as=f64 plain=1

# powers of two and their neighbours
matmul a=f32/63x63 b=f32/63x64 ; as=f16,bf16,f64
matmul a=f32/64x64 b=f32/64x65 ; as=f16,bf16,f64
matmul a=f32/65x65 b=f32/65x66 ; as=f16,bf16,f64
matmul a=f32/127x127 b=f32/127x128 ; as=f16,bf16,f64
matmul a=f32/128x128 b=f32/128x129 ; as=f16,bf16,f64
matmul a=f32/129x129 b=f32/129x130 ; as=f16,bf16,f64
matmul a=f32/5x255 b=f32/255x257
matmul a=f32/257x3 b=f32/3x255
matmul a=f32/1x1024 b=f32/1024x1 ; as=f16,bf16,f64
matmul a=f32/1024x1 b=f32/1x33
matmul a=f32/1x33 b=f32/33x1000 ; as=f16
matmul a=f32/300x64 b=f32/64x1

# long sums: only exact fills detect one missing term
matmul a=f32/3x5000 b=f32/5000x5 ; as=f16,bf16,f64 tier=default
matmul a=f32/2x65537 b=f32/65537x2 ; as=bf16 plain=1
matmul a=f32/8x2048 b=f32/2048x8 ; fill=ipos,pos as=f16,bf16
matmul a=f16/4x4096 b=f16/4096x4 y=f32/4x4 ; fill=ipos,pos,signed

# transposes and other strides
matmul a=f32/31x33 b=f32/33x17/t ; as=f16,bf16,f64
matmul a=f32/64x64 b=f32/64x64/t ; as=bf16
matmul a=f32/31x33/t b=f32/33x17 ; as=f16,bf16,f64
matmul a=f32/64x64/t b=f32/64x64 ; as=bf16
matmul a=f32/31x33/t b=f32/33x17/t ; as=f16,bf16,f64
matmul a=f32/64x64/t b=f32/64x64/t ; as=bf16
matmul a=f32/5x7 b=f32/7x9 y=f32/5x9/t
matmul a=f32/5x7/1:5 b=f32/7x9/20:2 y=f32/5x9/30:3
matmul a=f32/5x7/0:1 b=f32/7x9/9:0
matmul a=f32/16x16@4 b=f32/16x16@8 y=f32/16x16@4
matmul a=f32/9x9 b=f32/9x9 ; a.offset=1 b.offset=3

# the longest sums in other layouts (more below): of one sign, since with mixed signs they are smaller than the bound of any order
matmul a=f32/2x65537/196612:3 b=f32/65537x2/7:3 y=f32/2x2/7:3 ; fill=int,ipos plain=1

# rows at any offset in a cache line, enough of them to be handled in 8, 4, 2 classes of equal offset; a pitch beyond k
matmul a=bf16/1000x200 b=bf16/200x72/t
matmul a=bf16/1000x1024/1032:1 b=bf16/1024x64/t bias=bf16/64 ; kind=cuda
matmul a=f16/500x336 b=f16/336x136/t y=f32/500x136
matmul a=bf16/250x352 b=bf16/352x304/t

# batches, broadcast batches
matmul a=f32/3x5x7 b=f32/3x7x9 ; as=f16,bf16,f64
matmul a=f32/3x5x7 b=f32/1x7x9 ; as=bf16
matmul a=f32/1x5x7 b=f32/3x7x9
matmul a=f32/2x3x4x5 b=f32/2x3x5x6
matmul a=f32/2x1x4x5 b=f32/1x3x5x6 ; as=f64
matmul a=f32/1x2x1x2x3x4 b=f32/2x1x2x1x4x3
matmul a=f32/65537x1x2 b=f32/65537x2x1 ; plain=1 fill=int
matmul a=f32/4x17x19/323:1:17 b=f32/4x19x16

# alpha, beta, c, bias: as literals (host) and as tensors (device)
matmul a=f32/17x19 b=f32/19x23 alpha=2 ; as=f16,bf16,f64
matmul a=f32/17x19 b=f32/19x23 c=f32/17x23 ; as=f16,bf16,f64
matmul a=f32/17x19 b=f32/19x23 c=f32/17x23 beta=-2 ; as=bf16
matmul a=f32/17x19 b=f32/19x23 c=f32/17x23 alpha=-0.5 beta=3 ; as=f16,f64
matmul a=f32/17x19 b=f32/19x23 c=f32/17x23 alpha=f32 beta=f32 ; as=bf16
matmul a=f32/17x19 b=f32/19x23 alpha=f64
matmul a=f32/17x19 b=f32/19x23 bias=f32/23 ; as=f16,bf16,f64
matmul a=f32/33x65 b=f32/65x31 c=f32/33x31 bias=f32/31 alpha=2 beta=0.5 ; as=f16,bf16
matmul a=f32/17x19 b=f32/19x23 bias=f32/23 alpha=-3
matmul a=bf16/17x19 b=bf16/19x23 bias=f32/23
matmul a=f16/8x16 b=f16/16x8 c=f32/8x8 y=f32/8x8 beta=2
matmul a=f32/2x7x5 b=f32/2x5x9 c=f32/2x7x9 bias=f32/9 beta=2 ; as=f64
matmul a=f32/17x19 b=f32/19x23 alpha=0.1 ; as=f64

# alpha 0 never reads a and b, beta 0 never reads c
matmul a=f32/9x17 b=f32/17x10 c=f32/9x10 alpha=0 beta=2 ; a.fill=nan b.fill=inf fill=int as=bf16,f64
matmul a=f32/9x17 b=f32/17x10 c=f32/9x10 beta=0 ; c.fill=nan fill=int,signed as=f16,bf16,f64
matmul a=f32/33x17 b=f32/17x40 c=f32/33x40 beta=0 ; c.fill=nan fill=int
matmul a=f32/65x30 b=f32/30x129 c=f32/65x129 alpha=2 beta=0 ; c.fill=nan fill=int,signed
matmul a=f32/9x17 b=f32/17x10 alpha=f32 c=f32/9x10 beta=f32 ; alpha.is=0 beta.is=2 a.fill=nan b.fill=nan fill=int
matmul a=f32/9x17 b=f32/17x10 alpha=f32 c=f32/9x10 beta=f32 ; alpha.is=3 beta.is=0 c.fill=nan fill=int,signed
matmul a=f32/9x17 b=f32/17x10 alpha=0 ; a.fill=nan fill=int

# Under `deterministic=batch` a long sum is split for no number of rows.
matmul a=f32/64x4096 b=f32/4096x64 ; fill=signed

# f64: tiles in part and several, parts of k, every order of the operands' dims, scalars and c
matmul a=f64/3x9000 b=f64/9000x5
matmul a=f64/150x40 b=f64/40x270/t alpha=0.5
matmul a=f64/2x70x600/t b=f64/1x600x130 c=f64/2x70x130 bias=f64/130 beta=3
matmul a=f64/17x19 b=f64/19x23 c=f64/17x23 alpha=f64 beta=f64 y=f64/17x23/t
matmul a=f64/2x3x33x21 b=f64/2x1x21x40

# c in y's memory
matmul a=f32/17x19 b=f32/19x23 c=f32/17x23 beta=2 y=c ; as=f16,bf16,f64
matmul a=f32/17x19 b=f32/19x23 c=f32/17x23 y=c ; as=bf16
matmul a=f32/64x70 b=f32/70x64 c=f32/64x64 beta=-1 alpha=2 y=c

# zero sizes; K = 0 writes beta c + bias
matmul a=f32/0x5 b=f32/5x3 ; plain=1
matmul a=f32/4x5 b=f32/5x0 ; plain=1
matmul a=f32/4x0 b=f32/0x3 ; plain=1 as=f16,bf16,f64
matmul a=f32/4x0 b=f32/0x3 c=f32/4x3 beta=2 bias=f32/3 ; plain=1 as=bf16
matmul a=f32/0x4x5 b=f32/0x5x3 ; plain=1

# NaN and Inf must reach their outputs and no others
matmul a=f32/7x9 b=f32/9x11 ; fill=special as=f16,bf16,f64
matmul a=f32/33x3 b=f32/3x65 ; fill=special as=bf16
matmul a=f32/17x19 b=f32/19x23 bias=f32/23 ; fill=int bias.fill=special
matmul a=f32/5x6 b=f32/6x7 ; fill=tiny,wide as=f64

# 8-bit floats and integers
matmul a=e4m3/17x32 b=e4m3/32x24 y=f32/17x24
matmul a=e4m3/16x64 b=e4m3/64x16 y=bf16/16x16
matmul a=e5m2/17x32 b=e4m3/32x24 y=f32/17x24
matmul a=e5m2/16x64 b=e5m2/64x16 y=f16/16x16
matmul a=e4m3/16x300 b=e4m3/300x16 y=f16/16x16
matmul a=i8/17x33 b=i8/33x19
matmul a=u8/17x33 b=i8/33x19
matmul a=u8/64x64 b=u8/64x64
matmul a=i8/5x1000 b=u8/1000x7
matmul a=i8/17x33 b=i8/33x19 c=i32/17x19
matmul a=i8/7x9 b=i8/9x11 bias=i32/11

# Tensor Cores' edges: tiles of 64 to 256, k steps of 128 bytes, rows in units of 16 bytes or not, packed operands
matmul a=f32/64x64 b=f32/64x64/t ; fill=int,signed,special
matmul a=f32/129x260 b=f32/260x68/t ; fill=int,signed,pos
matmul a=f32/200x96 b=f32/96x300 ; fill=int,signed,special
matmul a=f32/100x33/t b=f32/33x130 c=f32/100x130 beta=2 bias=f32/130
matmul a=f32/66x1000 b=f32/1000x52/t bias=f32/52 alpha=-2
matmul a=f32/3x1000 b=f32/1000x260/t ; fill=int,signed,special
matmul a=f32/260x1000 b=f32/1000x5 y=f32/260x5/t
matmul a=f32/3x70x44 b=f32/3x44x72/t
matmul a=f32/2x3x70x44 b=f32/1x3x44x72
matmul a=f32/128x4096 b=f32/4096x128/t ; fill=int,pos
matmul a=f32/192x320 b=f32/320x320/t ; fill=wide,finite,tiny
matmul a=bf16/2x65537@2 b=bf16/65537x2@2 y=bf16/2x2@2 ; fill=int,ipos plain=1
matmul a=bf16/129x513 b=bf16/513x257/t
matmul a=bf16/65x77/t b=bf16/77x91 y=f32/65x91 c=f32/65x91
matmul a=bf16/3x65x70 b=bf16/1x70x91 bias=f32/91
matmul a=e4m3/129x260 b=e4m3/260x68/t y=bf16/129x68
matmul a=e4m3/64x1024 b=e5m2/1024x96 y=f32/64x96 alpha=0.5 bias=f32/96 ; fill=int,pos,signed
matmul a=e5m2/3x512 b=e4m3/512x260/t y=f16/3x260
matmul a=e5m2/70x48/t b=e5m2/48x200 y=f32/70x200 c=f32/70x200 beta=-1
matmul a=e4m3/2x70x128 b=e4m3/1x128x72/t y=f32/2x70x72
matmul a=e4m3/136x2048 b=e4m3/2048x128/t y=f32/136x128 ; fill=int,pos
matmul a=i8/129x260 b=i8/260x68/t
matmul a=i8/64x1024 b=u8/1024x96 bias=i32/96
matmul a=u8/3x512 b=i8/512x260/t c=i32/3x260
matmul a=u8/70x48/t b=u8/48x200 y=i32/70x200/t
matmul a=i8/2x200x128 b=i8/1x128x264/t bias=i32/264

# tiles and splits of k, with tails in every dim; operands copied by 16, 8 and 4 bytes, or element by element
matmul a=f32/129x513 b=f32/513x257/t ; as=bf16,f16
matmul a=f32/131x96 b=f32/96x136 ; as=bf16,f16
matmul a=f32/68x1100@8 b=f32/1100x20/t@8 ; as=bf16,f16
matmul a=f32/70x514@4 b=f32/514x66@4 ; as=bf16,f16
matmul a=f32/72x700/t b=f32/700x136 ; as=bf16,f16
matmul a=f32/70x700/t@4 b=f32/700x130/t@4 ; as=bf16
matmul a=f32/33x70/201:2 b=f32/70x66/3:211 ; as=bf16,f16
matmul a=f32/3x33x161 b=f32/3x161x34 c=f32/3x33x34 bias=f32/34 beta=2 ; as=bf16,f16
matmul a=f32/2x130x40/1:80:2 b=f32/1x40x70 y=f32/2x130x70/1:2:260 ; as=bf16
matmul a=f32/33x2049 b=f32/2049x65 alpha=f32 y=f32/33x65/t ; as=bf16
matmul a=f32/35x1001/t b=f32/1001x67/t ; as=bf16,f16
matmul a=bf16/40x200 b=bf16/200x48/t ; a.offset=1 b.offset=3
matmul a=i8/129x513 b=i8/513x130
matmul a=i8/70x640 b=i8/640x65/t
matmul a=i8/72x512/t b=i8/512x136@8 c=i32/72x136 bias=i32/136
matmul a=i8/2x20x1030 b=i8/2x1030x17/t@2 y=i32/2x20x17/340:1:20

# Inf beside subnormals; sums whose terms are far from 1
matmul a=f32/70x33 b=f32/33x66 ; fill=special,tiny
matmul a=f32/17x33 b=f32/33x70 ; fill=const:1e18,const:-1e-22
matmul a=f32/17x700 b=f32/700x70/t ; fill=finite

# few elements spread over more than 2^31 elements of memory
matmul a=f32/2x3/2200000000:1 b=f32/3x2 ; plain=1 fill=int
matmul a=f32/2x3 b=f32/3x2 y=f32/2x2/2200000000:1 ; plain=1 fill=int

# 16 or fewer rows or columns: k divided among blocks; the long operand with contiguous rows; small k
matmul a=f32/7x3000 b=f32/3000x10 bias=f32/10
matmul a=f32/2x5x1100 b=f32/2x1100x9/t ; fill=int a.fill=special
matmul a=f32/300x70/t b=f32/70x13 bias=f32/13
matmul a=f32/3x11x65 b=f32/3x65x150
matmul a=f32/64x10 b=f32/10x300/t
matmul a=f32/1x1x32x8 b=f32/5x3x8x7 alpha=0.5 c=f32/5x3x32x7 beta=2
matmul a=f32/70x16 b=f32/16x19 y=f32/70x19/t

# an operand with overlapping rows, as of a framed signal
matmul a=f32/20x9/3:1 b=f32/9x6 ; plain=1

# one whole tile: what is read beyond it is the next page
matmul a=f32/8x8 b=f32/8x8 ; fill=int plain=1
matmul a=f32/16x16 b=f32/16x16 ; fill=int plain=1
# sums over so many products of one sign that they are made in blocks
matmul a=f32/3x70000 b=f32/70000x5 ; fill=const:0.1 plain=1 tier=full as=f64,bf16,f16
matmul a=f32/24x100000 b=f32/100000x40 ; fill=const:0.1 plain=1 tier=full kind=cuda
matmul a=f32/24x100000/t b=f32/100000x40 ; fill=const:0.1 plain=1 tier=full kind=cuda
matmul a=bf16/130x150000 b=bf16/150000x136 ; fill=const:0.1 plain=1 tier=full kind=cuda
matmul a=f16/64x150000 b=f16/150000x64 y=f32/64x64 ; fill=const:0.1 plain=1 tier=full kind=cuda
matmul a=bf16/130x300000 b=bf16/300000x136 y=f32/130x136 ; fill=const:0.1 plain=1 tier=full kind=cuda
matmul a=f32/2x1048576 b=f32/1048576x2 ; fill=const:0.1 plain=1 tier=full kind=cuda

# long sums: one running f32 sum fails
matmul a=f32/1x70001 b=f32/70001x2 ; fill=const:0.1 plain=1 tier=default
matmul a=f32/3x70001 b=f32/70001x1 ; fill=const:0.1 plain=1 tier=default
matmul a=f32/1x262144 b=f32/262144x4 ; fill=const:0.1,pos plain=1 tier=default
matmul a=f32/8x262144 b=f32/262144x8 ; fill=const:0.1 plain=1 tier=default
# 32 or fewer rows or columns of 16 bits, k contiguous: loads of 16, 8, 4 and 2 bytes, k shared by warps, both ways round, in batches
matmul a=f16/8x28 b=f16/28x70/t bias=f16/70 ; as=bf16
matmul a=f16/37x72 b=f16/72x5/t ; as=bf16
matmul a=f16/13x514 b=f16/514x40/t
matmul a=bf16/2x3x27x81 b=bf16/2x3x81x50/t y=f32/2x3x27x50
matmul a=f16/1x70001 b=f16/70001x2/t ; fill=const:0.1 plain=1

# a matrix added to a tile's sums as they are stored: beyond the edge of a tile, of f32, in place, in batches, of sums in shares, of few
# lines of k; pitches that TMA has and has not
matmul a=bf16/200x192 b=bf16/192x328 c=bf16/200x328 ; as=f16
matmul a=f32/136x100/t b=f32/100x136 c=f32/136x136
matmul a=bf16/300x128 b=bf16/128x264/t c=bf16/300x264 y=c
matmul a=f16/2x3x72x64 b=f16/2x3x64x72 c=f16/2x3x72x72 ; as=f32
matmul a=bf16/96x2100 b=bf16/2100x64 c=bf16/96x64
matmul a=bf16/130x24/t b=bf16/24x136 c=bf16/130x136
matmul a=bf16/130x70 b=bf16/70x136 c=f32/130x136/160:1 y=f32/130x136
matmul a=e4m3/130x256 b=e4m3/256x136/t c=f16/130x136 y=f16/130x136

# vectors by columns that come beside a tile: of 16 bits, f32, in no units of 16 bytes, beyond the edge, with a matrix; y in no such units
matmul a=bf16/200x192 b=bf16/192x360/t bias=bf16/360 ; as=f16
matmul a=bf16/140x64 b=bf16/64x200/t bias=f32/200
matmul a=f16/70x72 b=f16/72x88 bias=f16/88@2
matmul a=f16/3x49x32 b=f16/3x32x49 bias=f16/49 ; as=f32
matmul a=bf16/130x64 b=bf16/64x131/t c=bf16/130x131
matmul a=bf16/8x1100 b=bf16/1100x72/t bias=bf16/72

# f32 behind tiles of 16 bits: 160 columns are no whole chunks of 128 bytes of these, but are of those
matmul a=f16/136x128 b=f16/128x160/t y=f32/136x160

# attention over tokens in no eights: lines of operands and of y at any offset, y along its rows; more than a stage, and a chain behind
matmul a=f32/5x49x49 b=f32/5x49x32 ; as=f16,bf16
matmul a=f32/2x65x33/t b=f32/2x33x65/t y=f32/2x65x65/t ; as=f16
matmul a=f32/3x67x150 b=f32/3x150x65 c=f32/3x67x65 bias=f32/65 ; as=bf16

# small matrices of aligned lines, few and many, to 32 columns and beyond, either dim contiguous
matmul a=f32/270x17x16 b=f32/270x16x40/t ; as=f16
matmul a=f16/3x64x48/t b=f16/3x48x64 bias=f16/64 ; as=bf16
matmul a=f32/270x20x24/t b=f32/270x24x16 ; as=bf16
matmul a=f32/4x33x40 b=f32/4x40x56/t c=f32/4x33x56 ; as=f16
matmul a=f16/2x72x200 b=f16/2x200x88 ; as=bf16,f32

# few results of long sums, as a weights' gradient has: alike parts of k, and a shorter one; either dim contiguous; batches; a chain behind
matmul a=f32/24x1600/t b=f32/1600x40 ; as=f16,bf16
matmul a=f32/21x1031/t b=f32/1031x13 bias=f32/13 ; as=f16
matmul a=f32/33x1000 b=f32/1000x65/t c=f32/33x65 beta=0.5 alpha=2 ; as=bf16
matmul a=f32/2x20x777 b=f32/2x777x36 y=f32/2x20x36/720:1:20 ; as=bf16
matmul a=f16/40x2104/t b=f16/2104x24 y=f32/40x24
matmul a=f32/16x1200/t b=f32/1200x12 ; fill=signed,special as=bf16

# short sums: fewer k than a stage, one more, several; with a bias; in and in no units of four columns; y along its rows
matmul a=f32/130x3 b=f32/3x68/t bias=f32/68 ; as=f16,bf16
matmul a=f32/67x13 b=f32/13x77/t bias=f32/77 ; as=bf16
matmul a=f32/3x65x39/t b=f32/3x39x44 y=f32/3x65x44/t ; as=f16
matmul a=f16/100x33 b=f16/33x132/t bias=f32/132 y=f32/100x132

# one row, few rows, by columns that are contiguous: the warps of a block share k
matmul a=f32/1x301 b=f32/301x130 bias=f32/130
matmul a=f32/3x3x500 b=f32/3x500x70
matmul a=f32/90x77/t b=f32/77x13 c=f32/90x13
