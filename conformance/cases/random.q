# random numbers and dropout: sizes around blocks of 4, bytes and spans, keys of 64 bits, layouts, masks stored and redrawn.

# sizes; literal keys
rng_uniform seed=1 y=f32/1
rng_uniform seed=1 y=f32/3 ; as=f16,bf16,f64
rng_uniform seed=42 offset=7 y=f32/1027 ; as=bf16
rng_uniform seed=-1 offset=-1 y=f32/37x11 ; as=f16,f64
rng_uniform seed=9007199254740991 offset=4294967296 y=f32/260
rng_uniform seed=5 y=f32/9 min=-2 max=6 ; as=f16,f64
rng_uniform seed=5 y=f32/2050 min=0.1 max=0.3 ; as=bf16
rng_uniform seed=5 y=f32/7 min=3 max=3
rng_normal seed=1 y=f32/1 ; as=f64
rng_normal seed=1 y=f32/7 ; as=f16,bf16,f64
rng_normal seed=8 offset=3 y=f32/4099 ; as=bf16,f64
rng_normal seed=8 y=f32/33x5 mean=-2 deviation=0.5 ; as=f16
rng_normal seed=8 y=f32/9 mean=7 deviation=0
rng_normal seed=8 y=f32/4099 mean=3e38 deviation=2e38       # within f32, but not all that is on the way
rng_bernoulli seed=1 y=f32/1030 ; as=f16,bf16,f64
rng_bernoulli seed=2 y=bool/100 p=0.1
rng_bernoulli seed=2 offset=1 y=i8/3x5x7 p=0.9
rng_bernoulli seed=2 y=i64/65 p=0.3333333333333333
rng_bernoulli seed=2 y=e4m3/12
rng_bernoulli seed=3 y=bf16/100 p=0
rng_bernoulli seed=3 y=f32/100 p=1

# keys on the device, of 64 bits
rng_uniform seed=i64 offset=i64 y=f32/517 ; seed.is=-81985529216486896 offset.is=1311768467463790320 as=bf16
rng_uniform seed=i64 y=f64/9 ; seed.is=9223372036854775807
rng_normal seed=i64 offset=i64 y=f32/1000
rng_bernoulli seed=i64 offset=3 y=u8/40 p=0.7 ; seed.is=1234567890123456789
dropout x=f32/1000 seed=i64 offset=i64 mask=? ; seed.is=1234567890123456789 offset.is=-5
dropout_backward dy=f32/1000 seed=i64 offset=i64 ; seed.is=1234567890123456789 offset.is=-5

# elements are numbered row-major whatever the strides
rng_uniform seed=4 y=f32/6x10/t
rng_normal seed=4 y=f32/2x3x4x5/nhwc
rng_bernoulli seed=4 y=bf16/6x10/24:2
rng_uniform seed=4 y=f16/37@2

# dropout: sizes around bytes and spans, mixed dtypes, p at its limits, strides, in place
dropout x=f32/1 seed=1 mask=?
dropout x=f32/7 seed=1 mask=? ; as=f16,bf16,f64
dropout x=f32/8 seed=1 mask=? p=0.25
dropout x=f32/9x13 seed=11 offset=2 p=0.1 mask=? ; as=f16,bf16,f64
dropout x=f32/2049 seed=11 p=0.75 ; as=bf16
dropout x=bf16/64x96 seed=3 p=0.2 mask=?
dropout x=bf16/40x33 seed=3 y=f32/40x33
dropout x=f32/40x33 seed=3 y=f16/40x33 mask=?
dropout x=f32/100 seed=3 p=0 mask=?
dropout x=f32/100 seed=3 p=1 mask=?
dropout x=f32/6x10/t seed=3 mask=? ; as=bf16
dropout x=f32/6x10 y=f32/6x10/t seed=3
dropout x=f32/2x3x4x5/nhwc seed=3 mask=?
dropout x=f32/5x8/0:1 seed=3 mask=?
dropout x=f32/100 seed=3 mask=u8/13/3
dropout x=bf16/37@2 y=bf16/37@2 seed=3
dropout x=f32/100 seed=3 y=x mask=?
dropout x=f32 seed=3 mask=?
dropout x=f32/3x0 seed=3 mask=?
dropout_backward dy=f32/7 seed=1 ; as=f64
dropout_backward dy=f32/7 mask=u8/1 ; as=f64
dropout_backward dy=f32/9x13 seed=11 offset=2 p=0.1 ; as=f16,bf16,f64
dropout_backward dy=f32/9x13 mask=u8/15 p=0.1 ; as=f16,bf16,f64
dropout_backward dy=bf16/64x96 mask=u8/768 p=0.2
dropout_backward dy=f32/2049 mask=u8/257 p=0.75 dx=bf16/2049
dropout_backward dy=f32/2049 seed=6 p=0.75 dx=bf16/2049
dropout_backward dy=f32/6x10/t mask=u8/8/2
dropout_backward dy=f32/100 seed=3 p=1
dropout_backward dy=f32/100 mask=u8/13 dx=dy p=0.3

# in graphs: between a producer of x and a reader of y
in x f32/9x13
in b f32/9x13
s = add a=x b=b
d = dropout x=s seed=11 p=0.5
out y = mul a=d b=b
