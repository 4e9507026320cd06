# gather and its gradient, one_hot, top_k, cumsum, the gradient of pad. labels: indices, some of them out of range.

# table rows by index, at the edges of vectors
gather x=f32/7x5 indices=i32/4 ; labels=-1..7 as=f16,bf16,f64
gather x=f32/9x16 indices=i64/3x5 ; labels=0..8 as=bf16
gather x=f16/33x24 indices=i32/70 ; labels=-2..33
gather x=f32/6x5x7 indices=i32/2x3 axis=1 ; labels=0..4 as=f16
gather x=f32/6x5x7 indices=i32/11 axis=-1 ; labels=0..7
gather x=e4m3/5x33 indices=i64/6 ; labels=0..4
gather x=i8/5x3 indices=i32/6 ; labels=-1..5
gather x=i64/5x3 indices=i64/6 ; labels=-1..5
gather x=bool/65x4 indices=i32/9 ; labels=0..64
gather x=f32/5 indices=i32 ; labels=0..4
gather x=f32/4x5 indices=i32 axis=1 ; labels=0..4
gather x=f32/3x4/t indices=i32/5 ; labels=0..2
gather x=f32/40x130/136:1 indices=i32/9/2 ; labels=0..39
gather x=f32/1000x3 indices=i32/70001 ; labels=0..999 plain=1
gather x=f32/3x0 indices=i32/4 ; labels=0..2 plain=1
gather x=f32/0x3 indices=i32/4 ; labels=0..2 plain=1

# the same sums in any order of the indices; one index repeated often, most never used
scatter_add dy=f32/4x5 indices=i32/4 dx=f32/7x5 ; labels=-1..7 as=f16,bf16,f64
scatter_add dy=f32/3x5x16 indices=i64/3x5 dx=f32/9x16 ; labels=0..8 as=bf16
scatter_add dy=bf16/70x24 indices=i32/70 dx=f32/33x24 ; labels=-2..33
scatter_add dy=f32/6x2x3x7 indices=i32/2x3 dx=f32/6x5x7 axis=1 ; labels=0..4 as=f16
scatter_add dy=f32/6x5x11 indices=i32/11 dx=f32/6x5x7 axis=-1 ; labels=0..7
scatter_add dy=f32/9000x4 indices=i32/9000 dx=f32/3x4 ; labels=0..3 plain=1
scatter_add dy=f32/2100x8 indices=i32/2100 dx=f32/1000x8 ; labels=0..1200 plain=1
scatter_add dy=f32/700x1 indices=i64/700 dx=f32/70000x1 ; labels=0..69999 plain=1 fill=int
scatter_add dy=f32/66000x1 indices=i32/66000 dx=f32/300x1 ; labels=0..299 plain=1 fill=int
scatter_add dy=f32/5 indices=i32 dx=f32/4x5 ; labels=0..3
scatter_add dy=f32/40x33/40:1 indices=i32/40 dx=f32/6x33/36:1 ; labels=0..5 as=bf16
scatter_add dy=f32/0x3 indices=i32/0 dx=f32/4x3 ; plain=1
# runs of equal indices of every length, in several blocks; most indices equal, or none in range; rows by the million, or of few elements
scatter_add dy=f32/5000x8 indices=i64/5000 dx=f32/100x8 ; labels=0..99 plain=1 as=bf16
scatter_add dy=f32/3000x20 indices=i32/3000 dx=f32/1024x20 ; labels=-40..30 plain=1 as=f16
scatter_add dy=bf16/700x132 indices=i32/700 dx=bf16/700x132 ; labels=0..699 plain=1
scatter_add dy=bf16/1100x36 indices=i32/1100 dx=f32/33x36 ; labels=7..7 plain=1
scatter_add dy=f32/600x3x5 indices=i32/600x3 dx=f32/40x5 ; labels=0..2 plain=1
scatter_add dy=f32/700x4 indices=i32/700 dx=f32/9x4 ; labels=-1..-1 plain=1
scatter_add dy=f32/70x1 indices=i64/70 dx=f32/1200000x1 ; labels=0..1199999 plain=1 fill=int
scatter_add dy=f32/700x12 indices=i32/700 dx=f32/9001x12 ; labels=0..9010 plain=1
scatter_add dy=f16/900x16 indices=i32/900 dx=f32/5000x16 ; labels=4093..4099 plain=1
scatter_add dy=f32/2x900x5 indices=i32/900 dx=f32/2x6x5 axis=1 ; labels=0..5 plain=1 as=bf16
scatter_add dy=f32/300x8300 indices=i32/300 dx=f32/70x8300 ; labels=0..99 plain=1

pad_backward dy=f32/8x9 pad=1:2,2:0 ; as=f16,bf16,f64
pad_backward dy=f32/9x11 pad=3:1,2:4 mode=reflect ; as=f16,bf16,f64
pad_backward dy=f32/2x3x9x8 pad=0,0,2,1 mode=reflect
pad_backward dy=f32/2x29x11 pad=0,2:1,3:2 mode=reflect ; as=bf16
pad_backward dy=f32/9x11 pad=3:1,2:5 mode=replicate ; as=f16,f64
pad_backward dy=f32/2x3x9x8/nhwc pad=0,0,2,3 mode=replicate ; as=bf16,f64
pad_backward dy=bf16/4x70 pad=0,6:1 mode=reflect dx=f32/4x63
pad_backward dy=f32/60 pad=59:0 mode=replicate
pad_backward dy=f32/59 pad=29:0 mode=reflect

one_hot indices=i32/9 depth=5 ; labels=-1..5
one_hot indices=i64/3x4 depth=7 on=0.9 off=0.1 y=f16/3x4x7 ; labels=0..6
one_hot indices=i32/3x40 depth=33 axis=1 y=bf16/3x33x40 ; labels=0..32
one_hot indices=i32/6 depth=17 axis=0 y=i8/17x6 ; labels=0..16
one_hot indices=i32/6 depth=17 y=e5m2/6x17 on=2 ; labels=0..16
one_hot indices=i64/6 depth=17 y=bool/6x17 ; labels=0..16
one_hot indices=i32 depth=3 y=f64/3 ; labels=0..2
one_hot indices=i32/700 depth=129 ; labels=0..128
one_hot indices=i32/40 depth=3 y=i8/40x3 ; labels=-1..3

# ties, rows of every length, all elements chosen
top_k x=f32/5x9 k=3 indices=? ; as=f16,bf16,f64
top_k x=f32/5x9 k=9 smallest=1 indices=i64/5x9 ; as=bf16
top_k x=f32/3x257 k=17 indices=? ; as=f16,bf16
top_k x=f32/3x257 k=17 smallest=1 indices=?
top_k x=f32/2x1500 k=100 indices=? ; as=bf16
top_k x=f32/3x1000 k=50 indices=? ; as=f16,bf16
top_k x=f32/2x1024 k=128 smallest=1 indices=? ; fill=special,signed
top_k x=i32/9x1000 k=128 indices=? ; fill=int:3,bits
top_k x=f32/7x4x5 k=2 axis=1 indices=? ; as=f16
top_k x=f32/7x4x5 k=7 axis=0
top_k x=i8/4x300 k=40 indices=? ; fill=int,bits
top_k x=u8/4x33 k=33 indices=? ; fill=int,bits
top_k x=i32/4x33 k=8 smallest=1 indices=? ; fill=int,bits
top_k x=i64/4x33 k=8 indices=i64/4x8 ; fill=int,bits
top_k x=f32/2x5000 k=1 indices=?
top_k x=f32/2x5000 k=2000 indices=? ; fill=int,special plain=1
top_k x=f32/70x64 k=5 indices=?
top_k x=f32/6 k=3 indices=i32/3 ; x.is=nan,1,inf,nan,-0,0 indices.is=0,3,2 plain=1
# long lines: in parts or not, any alignment and stride, more equals than are sorted, one value
top_k x=f32/3x1025 k=1 indices=? ; as=bf16
top_k x=bf16/40x1301 k=7 indices=? ; plain=1
top_k x=f16/2x20001 k=50 indices=i64/2x50 smallest=1 ; fill=special,signed
top_k x=f32/2x9000 k=1024 indices=?
top_k x=f32/2x9000 k=1100 indices=? ; fill=int plain=1
top_k x=i8/3x30011 k=300 indices=? ; fill=bits
top_k x=i32/2x7000 k=40 indices=? ; fill=int:3,bits
top_k x=f32/2x5003 k=9 indices=? ; fill=const:1
top_k x=bf16/6x5003/5003:1@2 k=33 indices=? ; x.offset=1 plain=1
top_k x=f32/1200x3 k=5 axis=0 indices=? ; as=bf16
top_k x=f32/3x5000x2 k=20 axis=1 indices=? smallest=1 ; fill=int,signed plain=1 as=f16

cumsum x=f32/5x9 ; as=f16,bf16,f64
cumsum x=f32/5x9 axis=0 reverse=1 ; as=bf16
cumsum x=f32/3x1000 exclusive=1 ; as=f16
cumsum x=f32/3x1000 exclusive=1 reverse=1
cumsum x=f32/2x5000 ; as=bf16
cumsum x=bf16/3x4100 reverse=1 y=f32/3x4100
cumsum x=f32/4x33x70 axis=1 ; as=f16
cumsum x=f32/3x300x5 axis=1 exclusive=1
cumsum x=i8/3x300 ; fill=int,bits
cumsum x=i8/3x300 y=i32/3x300 ; fill=int,bits
cumsum x=u8/3x40 y=i64/3x40 reverse=1 ; fill=bits
cumsum x=i32/2x40 axis=0 ; fill=int,bits
cumsum x=i64/2x40 exclusive=1 ; fill=int,bits
cumsum x=f32/1x1
cumsum x=f32/4x1 exclusive=1
cumsum x=f32/0x4 ; plain=1
# short lines; lines side by side: of all lengths and numbers, in parts, whole numbers, strided
cumsum x=f32/700x5 ; as=bf16
cumsum x=bf16/70x37 exclusive=1 reverse=1
cumsum x=i32/9x130
cumsum x=f32/1100x197 ; as=f16 plain=1
cumsum x=f32/1030x512/516:1 reverse=1 ; as=bf16 plain=1
cumsum x=f32/1030x510 exclusive=1 ; plain=1
cumsum x=f32/4096x10 axis=0 ; as=bf16 plain=1
cumsum x=bf16/197x64 axis=0 reverse=1
cumsum x=bf16/197x256 axis=0 exclusive=1 ; plain=1
cumsum x=f32/9x7x300 axis=1 exclusive=1 reverse=1 ; as=f16
cumsum x=f32/600x8x2 axis=1 ; as=bf16
cumsum x=f32/3x1500x40 axis=1 reverse=1 exclusive=1 ; plain=1
cumsum x=i32/9000x3 axis=0 ; fill=int plain=1
cumsum x=i64/300x16 axis=0 y=i32/300x16 ; fill=bits,int:3
cumsum x=i64/3x1500 ; fill=bits,int:3 plain=1
cumsum x=u8/2100x8 axis=0 y=i64/2100x8 reverse=1 exclusive=1 ; plain=1
cumsum x=f32/90x30x4/1:90:2700 axis=1 y=f32/90x30x4 ; as=f16
cumsum x=f32/2600/3 ; as=bf16 plain=1
cumsum x=f32/2x70001 ; plain=1 fill=int
pad_backward dy=f32/3x11x106 pad=0,1:2,3:2 mode=reflect ; as=f16,bf16    # long runs, out of step
pad_backward dy=bf16/3x9x150 pad=0:1,2,5:6 mode=replicate ; as=f32
pad_backward dy=bf16/3x5x10003 pad=0,1,3:4 ; as=f32
pad_backward dy=f32/2x133x70 pad=0,3:2,3 mode=reflect ; as=f16,bf16    # rows of whole vectors, in tiles
pad_backward dy=bf16/2x7x4102 pad=0,1,5:1 mode=reflect ; as=f32
pad_backward dy=f32/3x300x39 pad=0,40:2,4:3 mode=reflect ; as=bf16
pad_backward dy=f32/3x90x45@4 pad=0,2:0,1:4 mode=replicate ; as=f16 dy.offset=1
pad_backward dy=bf16/2x60x83 pad=0,1,2:1 ; as=f32

# sums of so many terms of one sign that they are made in blocks
scatter_add dy=f32/300000x4 indices=i32/300000 dx=f32/2x4 ; dy.fill=const:0.1 labels=0..0 plain=1 tier=full as=f64
cumsum x=f32/300000 ; fill=const:0.1 plain=1 tier=full as=f64
cumsum x=f32/300000x4 axis=0 ; fill=const:0.1 plain=1 tier=full
# many additions to one place
scatter_add dy=f32/70000x3 indices=i32/70000 dx=f32/2x3 ; labels=0..0 fill=const:0.1,pos as=bf16 plain=1

# the gradients of such pads
pad_backward dy=f32/15 pad=3:5 mode=wrap ; as=f16,f64
pad_backward dy=f32/24 pad=10:11 mode=wrap
pad_backward dy=f32/6x7 pad=-1:2,3:-2 mode=wrap
pad_backward dy=f32/6x7 pad=-1:2,3:-2 ; as=bf16
pad_backward dy=f32/6x7 pad=-1:2,3:-2 mode=reflect
pad_backward dy=f32/6x7 pad=-1:2,3:-2 mode=replicate
pad_backward dy=f32/1 pad=3:-8 mode=reflect dx=f32/6
pad_backward dy=f32/3 pad=-8:5 mode=reflect dx=f32/6

# updates put in or joined, an index for each element: duplicates, out of range, fewer than x, in place, all modes
scatter_elements x=f32/5x7 indices=i32/3x9 updates=f32/3x9 axis=1 mode=none ; labels=-1..7 as=f16,bf16,f64
scatter_elements x=i32/9x4 indices=i64/20x3 updates=i32/20x3 mode=none ; labels=0..8
scatter_elements x=i8/40 indices=i32/200 updates=i8/200 y=x mode=none ; labels=0..39
scatter_nd x=f32/5x6x7 indices=i32/4x3x2 updates=f32/4x3x7 mode=none ; labels=-1..5 as=f16,f64
scatter_nd x=u8/6x5 indices=i64/9x1 updates=u8/9x5 y=x mode=none ; labels=0..5
scatter_elements x=f32/5x7 indices=i32/3x9 updates=f32/3x9 axis=1 mode=add ; labels=-1..7 as=f16,bf16,f64
scatter_elements x=i32/9x4 indices=i64/20x3 updates=i32/20x3 mode=add ; labels=0..8
scatter_elements x=i8/40 indices=i32/200 updates=i8/200 y=x mode=add ; labels=0..39
scatter_nd x=f32/5x6x7 indices=i32/4x3x2 updates=f32/4x3x7 mode=add ; labels=-1..5 as=f16,f64
scatter_nd x=u8/6x5 indices=i64/9x1 updates=u8/9x5 y=x mode=add ; labels=0..5
scatter_elements x=f32/5x7 indices=i32/3x9 updates=f32/3x9 axis=1 mode=mul ; fill=near labels=-1..7 as=f16,bf16,f64
scatter_elements x=i32/9x4 indices=i64/20x3 updates=i32/20x3 mode=mul ; labels=0..8
scatter_elements x=i8/40 indices=i32/200 updates=i8/200 y=x mode=mul ; labels=0..39
scatter_nd x=f32/5x6x7 indices=i32/4x3x2 updates=f32/4x3x7 mode=mul ; fill=near labels=-1..5 as=f16,f64
scatter_nd x=u8/6x5 indices=i64/9x1 updates=u8/9x5 y=x mode=mul ; labels=0..5
scatter_elements x=f32/5x7 indices=i32/3x9 updates=f32/3x9 axis=1 mode=max ; fill=int,signed,special labels=-1..7 as=f16,bf16,f64
scatter_elements x=i32/9x4 indices=i64/20x3 updates=i32/20x3 mode=max ; labels=0..8
scatter_elements x=i8/40 indices=i32/200 updates=i8/200 y=x mode=max ; labels=0..39
scatter_nd x=f32/5x6x7 indices=i32/4x3x2 updates=f32/4x3x7 mode=max ; fill=int,signed,special labels=-1..5 as=f16,f64
scatter_nd x=u8/6x5 indices=i64/9x1 updates=u8/9x5 y=x mode=max ; labels=0..5
scatter_elements x=f32/5x7 indices=i32/3x9 updates=f32/3x9 axis=1 mode=min ; fill=int,signed,special labels=-1..7 as=f16,bf16,f64
scatter_elements x=i32/9x4 indices=i64/20x3 updates=i32/20x3 mode=min ; labels=0..8
scatter_elements x=i8/40 indices=i32/200 updates=i8/200 y=x mode=min ; labels=0..39
scatter_nd x=f32/5x6x7 indices=i32/4x3x2 updates=f32/4x3x7 mode=min ; fill=int,signed,special labels=-1..5 as=f16,f64
scatter_nd x=u8/6x5 indices=i64/9x1 updates=u8/9x5 y=x mode=min ; labels=0..5
scatter_elements x=f32/300x30 indices=i32/500x30 updates=f32/500x30 axis=0 mode=add ; labels=-10..299 as=bf16    # several tiles of updates
scatter_elements x=bf16/3x900 indices=i64/3x1700 updates=bf16/3x1700 axis=1 mode=none ; labels=0..899
scatter_nd x=f32/60x30x7 indices=i32/3000x2 updates=f32/3000x7 mode=add ; labels=-1..29 as=f16
scatter_elements x=bool/30 indices=i32/20 updates=bool/20 ; labels=0..29
scatter_elements x=e5m2/5x6/1:5 indices=i32/5x6 updates=e5m2/5x6/1:5 axis=0 y=e5m2/5x6/9:1 ; labels=0..4
scatter_nd x=i64/3x4x5 indices=i32/7x3 updates=i64/7 ; labels=0..3
scatter_nd x=bf16/30 indices=i32/1 updates=bf16 ; labels=0..29
scatter_nd x=f32/9x4x5/30:6:1 indices=i64/7x1 updates=f32/7x4x5 y=f32/9x4x5/30:6:1 mode=none ; labels=-1..8 as=bf16
scatter_nd x=f32/3x4 indices=i32/0x1 updates=f32/0x4
scatter_elements x=f32/3x4 indices=i32/3x0 updates=f32/3x0 axis=1
scatter_elements x=f32/2x3 indices=i64/2x3 updates=f32/2x3 mode=add ; fill=zero x.is=1,2,3,4,5,6 indices.is=0,1,1,1,1,0 updates.is=10,20,30,40,50,60 y.is=11,2,63,44,75,36 plain=1
scatter_elements x=f32/2x3 indices=i64/2x3 updates=f32/2x3 mode=mul ; fill=zero x.is=1,2,3,4,5,6 indices.is=0,1,1,1,1,0 updates.is=10,20,30,40,50,60 y.is=10,2,180,160,5000,180 plain=1
scatter_elements x=f32/2x3 indices=i64/2x3 updates=f32/2x3 mode=max ; fill=zero x.is=1,2,3,4,5,6 indices.is=0,1,1,1,1,0 updates.is=10,20,30,40,50,60 y.is=10,2,60,40,50,30 plain=1
scatter_elements x=f32/2x3 indices=i64/2x3 updates=f32/2x3 mode=min ; fill=zero x.is=1,2,3,4,5,6 indices.is=0,1,1,1,1,0 updates.is=10,20,30,40,50,60 y.is=1,2,3,4,5,6 plain=1
scatter_elements x=f32/3 indices=i32/4 updates=f32/4 ; fill=zero x.is=1,2,3 indices.is=1,1,5,-1 updates.is=7,8,9,10 y.is=1,8,3 plain=1
scatter_nd x=f32/2x2 indices=i32/3x2 updates=f32/3 ; fill=zero x.is=1,2,3,4 indices.is=0,1,1,1,0,1 updates.is=7,8,9 y.is=1,9,3,8 plain=1

# sorting: both orders, equals, NaN, dtypes, strides, lines longer than what fits at once
sort x=f32/77 indices=? ; as=f16,bf16,f64
sort x=f32/77 descending=1 indices=i64/77 ; as=f16,f64
sort x=i8/9x300 indices=?
sort x=u8/5x17 axis=0 descending=1 indices=?
sort x=i32/3x129 indices=? ; fill=bits,int:3
sort x=i64/3x65 indices=? descending=1 ; fill=bits,int:3
sort x=f32/4x5x6/1:4:20 axis=1 indices=?
sort x=f32/3000 indices=? ; fill=special,signed
sort x=f32/2x1 indices=?
sort x=f32/0x4
sort x=f32/5001 indices=? descending=1 ; fill=special,signed
sort x=bf16/3x4100 indices=? ; fill=special,signed as=f16
sort x=i32/2x6001 indices=i64/2x6001 descending=1 ; fill=bits,int:3
sort x=i8/2x2500 indices=? ; fill=bits
sort x=u8/4000 descending=1 ; fill=bits
sort x=f32/3000x2 axis=0 indices=? ; as=bf16
top_k x=f32/2x5000 k=3000 indices=? smallest=1 ; as=f16
sort x=bf16/6x1000 descending=1
sort x=i64/3x2100 indices=? ; fill=bits,int:3
sort x=f64/2x4500 indices=i64/2x4500 descending=1 ; fill=special,signed plain=1
sort x=f64/4x5x300/1:4:20 axis=2 indices=?
sort x=i8/3x200 descending=1 indices=? ; fill=bits
top_k x=f64/3x2200 k=50 indices=i64/3x50 smallest=1 ; fill=special,signed
top_k x=u8/2x1000 k=128 smallest=1 indices=? ; fill=bits
sort x=f32/8 descending=0 indices=i64/8 ; fill=zero x.is=3,nan,-1,0,-inf,3,inf,2 y.is=-inf,-1,0,2,3,3,inf,nan indices.is=4,2,3,7,0,5,6,1 plain=1
sort x=f32/8 descending=1 indices=i64/8 ; fill=zero x.is=3,nan,-1,0,-inf,3,inf,2 y.is=nan,inf,3,3,2,0,-1,-inf indices.is=1,6,0,5,7,3,2,4 plain=1

# counting up
iota start=0 step=1 y=i64/300
iota start=-2.5 step=0.5 y=f32/9x33 ; as=f16,bf16,f64
iota start=f32 step=f64 y=f32/5x7 axis=0
iota start=100 step=1 y=i8/50
iota start=3 step=-2 y=u8/7
iota start=0 step=0.1 y=f64/1000
iota start=0 step=1 y=f32/4x5/1:4 axis=0
iota start=1 step=0.5 y=i32/5 ; y.is=1,2,2,2,3 plain=1

# products and maxima of all before
cumprod x=f32/77 ; as=f16,bf16,f64
cumprod x=f32/5x33 axis=0 exclusive=1 ; as=f64
cumprod x=f32/5x6x7 axis=1 reverse=1 ; as=bf16
cumprod x=i32/3x70 exclusive=1 reverse=1
cumprod x=i8/200
cumprod x=u8/3x9 axis=0
cumprod x=i64/33 ; fill=bits,int:3
cumprod x=f32/6x5/1:6 axis=0 y=f32/6x5/5:1
cumprod x=f32/3x0
cumprod x=f16/300 y=f32/300
cummax x=f32/77 ; as=f16,bf16,f64
cummax x=f32/5x33 axis=0 exclusive=1 ; as=f64
cummax x=f32/5x6x7 axis=1 reverse=1 ; as=bf16
cummax x=i32/3x70 exclusive=1 reverse=1
cummax x=i8/200
cummax x=u8/3x9 axis=0
cummax x=i64/33 ; fill=bits,int:3
cummax x=f32/6x5/1:6 axis=0 y=f32/6x5/5:1
cummax x=f32/3x0
cummax x=f16/300 y=f32/300
cumprod x=i8/40 y=i32/40 ; fill=int:3
cumprod x=f32/5 ; fill=zero x.is=2,3,0.5,-1,4 y.is=2,6,3,-3,-12 plain=1
cumprod x=f32/3 exclusive=1 reverse=1 ; fill=zero x.is=2,3,5 y.is=15,5,1 plain=1
cummax x=f32/6 ; fill=zero x.is=1,3,2,nan,9,-1 y.is=1,3,3,nan,nan,nan plain=1
cummax x=f32/3 exclusive=1 ; fill=zero x.is=2,3,5 y.is=-inf,2,3 plain=1
cummin x=f32/77 ; as=f16,bf16,f64
cummin x=f32/5x33 axis=0 exclusive=1 ; as=f64
cummin x=f32/5x6x7 axis=1 reverse=1 ; as=bf16
cummin x=i32/3x70 exclusive=1 reverse=1
cummin x=i8/200
cummin x=u8/3x9 axis=0
cummin x=i64/33 ; fill=bits,int:3
cummin x=f32/6x5/1:6 axis=0 y=f32/6x5/5:1
cummin x=f32/3x0
cummin x=f16/300 y=f32/300
cummin x=f32/6 ; fill=zero x.is=3,1,2,nan,-9,1 y.is=3,1,1,nan,nan,nan plain=1
cummin x=f32/3 exclusive=1 ; fill=zero x.is=5,3,2 y.is=inf,5,3 plain=1
cummin x=i8/4 exclusive=1 reverse=1 ; fill=zero x.is=5,-3,2,0 y.is=-3,0,0,127 plain=1
# long sums: one running f32 sum fails
scatter_add dy=f32/1048576 indices=i32/1048576 dx=f32/2 ; fill=const:0.1 indices.fill=zero plain=1
pad_backward dy=f32/1x70000 pad=0,69990:0 mode=replicate ; fill=const:0.1 plain=1
