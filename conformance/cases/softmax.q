# softmax, log_softmax and their gradients.

# widths around vector lengths, along the last dim
softmax x=f32/3x1 ; as=f16,bf16,f64
log_softmax x=f32/3x1 ; as=f16,bf16,f64
softmax x=f32/3x2 ; as=bf16
softmax x=f32/3x3 ; as=f16
log_softmax x=f32/3x3 ; as=f16
log_softmax x=f32/3x5 ; as=f64
softmax x=f32/3x7
log_softmax x=f32/3x7
softmax x=f32/3x8 ; as=f16,bf16,f64
softmax x=f32/3x9 ; as=bf16
log_softmax x=f32/3x9 ; as=bf16
log_softmax x=f32/3x15 ; as=f16
softmax x=f32/3x16 ; as=f64
log_softmax x=f32/3x16 ; as=f64
softmax x=f32/3x17
softmax x=f32/3x31 ; as=f16,bf16,f64
log_softmax x=f32/3x31 ; as=f16,bf16,f64
log_softmax x=f32/3x32 ; as=bf16
softmax x=f32/3x33 ; as=f16
log_softmax x=f32/3x33 ; as=f16
softmax x=f32/3x63 ; as=f64
softmax x=f32/3x64
log_softmax x=f32/3x64
log_softmax x=f32/3x65 ; as=f16,bf16,f64
softmax x=f32/3x100 ; as=bf16
log_softmax x=f32/3x100 ; as=bf16
softmax x=f32/3x127 ; as=f16
softmax x=f32/3x128 ; as=f64
log_softmax x=f32/3x128 ; as=f64
log_softmax x=f32/3x129
softmax x=f32/3x255 ; as=f16,bf16,f64
log_softmax x=f32/3x255 ; as=f16,bf16,f64
softmax x=f32/3x257 ; as=bf16
softmax x=f32/2x1000 ; as=f16
log_softmax x=f32/2x1000 ; as=f16
log_softmax x=f32/2x1023 ; as=f64
softmax x=f32/2x1025
log_softmax x=f32/2x1025
softmax x=f32/2x4100 ; as=f16,bf16,f64

# rows of a warp, of blocks, and longer
softmax x=f32/2x1024 ; as=bf16
softmax x=f32/2x8200 ; as=bf16
log_softmax x=bf16/3x16384 ; as=f16
softmax x=f32/2x16385 ; as=f16
log_softmax x=f32/2x20008 ; as=bf16

# rows at any offset in a 16-byte word, by a warp, a block, several blocks; x and y at different offsets
softmax x=bf16/9x1001
log_softmax x=f16/9x4099
softmax x=bf16/5x33333
softmax x=bf16/9x33/33:1 y=bf16/9x33/40:1
softmax_backward y=f32/9x1001 dy=f32/9x1001 ; fill=signed:1 as=bf16
log_softmax_backward y=f32/9x4099 dy=f32/9x4099 ; fill=signed:1 as=f16
softmax_backward y=f32/5x20009 dy=f32/5x20009 ; fill=signed:1 as=bf16

# longer than on-chip storage
softmax x=f32/2x500009 ; plain=1
softmax_backward y=f32/2x250009 dy=f32/2x250009 ; fill=signed:1 plain=1

# their gradients
softmax_backward y=f32/3x1 dy=f32/3x1 ; fill=signed:1 as=f16,bf16,f64
log_softmax_backward y=f32/3x1 dy=f32/3x1 ; fill=signed:1 as=f16,bf16,f64
softmax_backward y=f32/3x2 dy=f32/3x2 ; fill=signed:1 as=bf16
log_softmax_backward y=f32/3x2 dy=f32/3x2 ; fill=signed:1 as=bf16
softmax_backward y=f32/3x7 dy=f32/3x7 ; fill=signed:1 as=f16
log_softmax_backward y=f32/3x7 dy=f32/3x7 ; fill=signed:1 as=f16
softmax_backward y=f32/3x16 dy=f32/3x16 ; fill=signed:1 as=f64
log_softmax_backward y=f32/3x16 dy=f32/3x16 ; fill=signed:1 as=f64
softmax_backward y=f32/3x33 dy=f32/3x33 ; fill=signed:1
log_softmax_backward y=f32/3x33 dy=f32/3x33 ; fill=signed:1
softmax_backward y=f32/3x65 dy=f32/3x65 ; fill=signed:1 as=f16,bf16,f64
log_softmax_backward y=f32/3x65 dy=f32/3x65 ; fill=signed:1 as=f16,bf16,f64
softmax_backward y=f32/3x129 dy=f32/3x129 ; fill=signed:1 as=bf16
log_softmax_backward y=f32/3x129 dy=f32/3x129 ; fill=signed:1 as=bf16
softmax_backward y=f32/3x1000 dy=f32/3x1000 ; fill=signed:1 as=f16
log_softmax_backward y=f32/3x1000 dy=f32/3x1000 ; fill=signed:1 as=f16

softmax_backward y=f32/2x4104 dy=f32/2x4104 ; fill=signed:1 as=bf16
log_softmax_backward y=f32/2x8192 dy=f32/2x8192 ; fill=signed:1 as=f16
softmax_backward y=f32/2x20008 dy=f32/2x20008 ; fill=signed:1 as=bf16

# other axes, layouts, ranks
softmax x=f32/5x9 axis=0 ; as=f16,bf16,f64
softmax x=f32/3x10x7 axis=1 ; as=bf16
log_softmax x=f32/2x10x4x5/nhwc axis=1 ; as=bf16
log_softmax x=f32/33x6 axis=0 ; as=f64
softmax x=f32/2x3x4x5x6 axis=3
softmax x=f32/9x17/1:9
softmax x=f32/9x17/40:2 y=f32/9x17/17:1
softmax x=f32/9x17@4 y=f32/9x17@4
softmax x=f32/33
softmax_backward y=f32/5x9 dy=f32/5x9 axis=0 ; as=bf16
log_softmax_backward y=f32/3x10x7 dy=f32/3x10x7 axis=1 ; as=f16
softmax_backward y=f32/9x17/1:9 dy=f32/9x17
softmax x=f32/70001x3 ; plain=1
log_softmax x=f32/3x70001 axis=0 ; plain=1
softmax x=bf16/5x33 y=f32/5x33
log_softmax x=f16/5x33 y=f32/5x33

# columns in 16-byte words: a block, parts in a cluster, few rows; separate parts
softmax x=f32/37x24 axis=0 ; as=f16,bf16
log_softmax x=f32/2x700x24 axis=1 ; as=bf16
softmax x=bf16/2x2x2056 axis=1
softmax_backward y=f32/37x24 dy=f32/37x24 axis=0 ; fill=signed:1 as=f16,bf16
softmax x=f32/9000x8 axis=0 ; plain=1 as=bf16
log_softmax_backward y=f16/9000x8 dy=f16/9000x8 axis=0 ; fill=signed:1 plain=1
log_softmax x=bf16/70001x16 axis=0 ; plain=1                              # more than all blocks' registers keep
softmax_backward y=f32/70001x12 dy=f32/70001x12 axis=0 ; fill=signed:1 plain=1
softmax_backward y=bf16/3001x80 dy=bf16/3001x80 axis=0 ; fill=signed:1 plain=1

# large values that need the shift by the maximum; one Inf, one NaN; rows of -Inf
softmax x=f32/7x65 ; fill=signed:88,signed:10000,far:1000 as=f16,bf16
log_softmax x=f32/7x65 ; fill=signed:88,signed:10000,far:1000 as=bf16,f64
softmax x=f32/60x9 ; fill=special as=f16,bf16,f64
log_softmax x=f32/60x9 ; fill=special as=bf16
softmax x=f32/60x35 ; fill=special
softmax x=f32/2x9 ; fill=const:-inf,const:0,const:5 as=bf16
log_softmax x=f32/2x9 ; fill=const:-inf,const:0
softmax x=f32/0x9 ; plain=1
softmax x=f32/9x0 ; plain=1

# products and exponentials that underflow or overflow and meet infinities; sums that overflow
softmax_backward y=f32/300x2 dy=f32/300x2 ; fill=signed,special,tiny,bits plain=1 as=f16,bf16
log_softmax_backward y=f32/300x3 dy=f32/300x3 ; fill=special,tiny,bits plain=1 as=f16,bf16
log_softmax_backward y=f16/300x3 dy=f16/300x3 ; fill=special seed=33 plain=1

# many short rows
softmax x=f32/400x3 ; fill=signed,special plain=1 as=f16
log_softmax x=bf16/300x8 ; fill=signed,special plain=1
softmax_backward y=f32/400x5 dy=f32/400x5 ; fill=signed:1 plain=1 as=bf16
softmax x=f32/40x3x6/100:8:1 y=f16/40x3x6 ; plain=1

# overlapping rows
softmax x=f32/9x7/2:1 y=f32/9x7 ; plain=1

# golden
softmax x=f32/1x4 ; fill=zero x.is=-inf,0,-inf,0 y.is=0,0.5,0,0.5 plain=1
softmax x=f32/1x2 ; fill=zero x.is=-inf,-inf y.is=nan plain=1
log_softmax x=f32/1x2 ; fill=zero x.is=-inf,3 y.is=-inf,0 plain=1

# products below the least normal number
softmax_backward y=f32/5x1 dy=f32/5x1 ; fill=special plain=1

# long sums: one running f32 sum fails
softmax x=f32/1x1048576 ; fill=const:0.1 plain=1

# large values: the difference from the maximum, not of two rounded products
softmax x=f32/3x100 ; fill=large,large:19,large:30 as=bf16 plain=1
log_softmax x=f32/3x100 ; fill=large:8,large:9,large as=bf16 plain=1
softmax x=f32/2x3000 ; fill=large,large:9 as=bf16 plain=1
softmax x=f32/100x16 axis=0 ; fill=large,large:9 as=bf16 plain=1
log_softmax x=f32/1x2 ; fill=zero x.is=1e9,0 y.is=0,-1e9 plain=1
