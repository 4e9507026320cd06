# Pointwise functions: every one, its gradient, and all forms of operands.

# every function of one operand: a tail after each vector length, every 16-bit pattern, a spread of f32
neg x=f32/37 ; as=f16,bf16,f64
neg x=bf16/65536 ; fill=all plain=1
neg x=f16/65536 ; fill=all plain=1 tier=full
neg x=f32/3001 ; fill=signed:100,wide,finite plain=1
abs x=f32/38 ; as=f16,bf16,f64
abs x=f16/65536 ; fill=all plain=1
abs x=bf16/65536 ; fill=all plain=1 tier=full
abs x=f32/3001 ; fill=signed:100,wide,finite plain=1
sign x=f32/39 ; as=f16,bf16,f64
sign x=bf16/65536 ; fill=all plain=1
sign x=f16/65536 ; fill=all plain=1 tier=full
sign x=f32/3001 ; fill=signed:100,wide,finite plain=1
exp x=f32/40 ; as=f16,bf16,f64
exp x=f16/65536 ; fill=all plain=1
exp x=bf16/65536 ; fill=all plain=1 tier=full
exp x=f32/3001 ; fill=signed:100,wide,finite plain=1
log x=f32/41 ; as=f16,bf16,f64
log x=bf16/65536 ; fill=all plain=1
log x=f16/65536 ; fill=all plain=1 tier=full
log x=f32/3001 ; fill=signed:100,wide,finite plain=1
sqrt x=f32/42 ; as=f16,bf16,f64
sqrt x=f16/65536 ; fill=all plain=1
sqrt x=bf16/65536 ; fill=all plain=1 tier=full
sqrt x=f32/3001 ; fill=signed:100,wide,finite plain=1
rsqrt x=f32/43 ; as=f16,bf16,f64
rsqrt x=bf16/65536 ; fill=all plain=1
rsqrt x=f16/65536 ; fill=all plain=1 tier=full
rsqrt x=f32/3001 ; fill=signed:100,wide,finite plain=1
reciprocal x=f32/44 ; as=f16,bf16,f64
reciprocal x=f16/65536 ; fill=all plain=1
reciprocal x=bf16/65536 ; fill=all plain=1 tier=full
reciprocal x=f32/3001 ; fill=signed:100,wide,finite plain=1
erf x=f32/45 ; as=f16,bf16,f64
erf x=bf16/65536 ; fill=all plain=1
erf x=f16/65536 ; fill=all plain=1 tier=full
erf x=f32/3001 ; fill=signed:100,wide,finite plain=1
sin x=f32/46 ; as=f16,bf16,f64
sin x=f16/65536 ; fill=all plain=1
sin x=bf16/65536 ; fill=all plain=1 tier=full
sin x=f32/3001 ; fill=signed:100,wide,finite plain=1
cos x=f32/47 ; as=f16,bf16,f64
cos x=bf16/65536 ; fill=all plain=1
cos x=f16/65536 ; fill=all plain=1 tier=full
cos x=f32/3001 ; fill=signed:100,wide,finite plain=1
floor x=f32/48 ; as=f16,bf16,f64
floor x=f16/65536 ; fill=all plain=1
floor x=bf16/65536 ; fill=all plain=1 tier=full
floor x=f32/3001 ; fill=signed:100,wide,finite plain=1
ceil x=f32/49 ; as=f16,bf16,f64
ceil x=bf16/65536 ; fill=all plain=1
ceil x=f16/65536 ; fill=all plain=1 tier=full
ceil x=f32/3001 ; fill=signed:100,wide,finite plain=1
round x=f32/50 ; as=f16,bf16,f64
round x=f16/65536 ; fill=all plain=1
round x=bf16/65536 ; fill=all plain=1 tier=full
round x=f32/3001 ; fill=signed:100,wide,finite,signed:1e7,signed:3e9,signed:3e38 plain=1
trunc x=f32/50 ; as=f16,bf16,f64
trunc x=bf16/65536 ; fill=all plain=1
trunc x=f16/65536 ; fill=all plain=1 tier=full
trunc x=f32/3001 ; fill=signed:100,wide,finite,signed:1e7,signed:3e9,signed:3e38 plain=1
relu x=f32/51 ; as=f16,bf16,f64
relu x=bf16/65536 ; fill=all plain=1
relu x=f16/65536 ; fill=all plain=1 tier=full
relu x=f32/3001 ; fill=signed:100,wide,finite plain=1
leaky_relu x=f32/52 ; as=f16,bf16,f64
leaky_relu x=f16/65536 ; fill=all plain=1
leaky_relu x=bf16/65536 ; fill=all plain=1 tier=full
leaky_relu x=f32/3001 ; fill=signed:100,wide,finite plain=1
leaky_relu x=f32/5x33 slope=0.2 ; as=bf16,f64
elu x=f32/53 ; as=f16,bf16,f64
elu x=bf16/65536 ; fill=all plain=1
elu x=f16/65536 ; fill=all plain=1 tier=full
elu x=f32/3001 ; fill=signed:100,wide,finite plain=1
elu x=f32/5x33 alpha=1.5 ; as=bf16,f64
gelu x=f32/54 ; as=f16,bf16,f64
gelu x=f16/65536 ; fill=all plain=1
gelu x=bf16/65536 ; fill=all plain=1 tier=full
gelu x=f32/3001 ; fill=signed:100,wide,finite plain=1
gelu_tanh x=f32/55 ; as=f16,bf16,f64
gelu_tanh x=bf16/65536 ; fill=all plain=1
gelu_tanh x=f16/65536 ; fill=all plain=1 tier=full
gelu_tanh x=f32/3001 ; fill=signed:100,wide,finite plain=1
silu x=f32/56 ; as=f16,bf16,f64
silu x=f16/65536 ; fill=all plain=1
silu x=bf16/65536 ; fill=all plain=1 tier=full
silu x=f32/3001 ; fill=signed:100,wide,finite plain=1
silu x=f32/5x33 beta=1.702 ; as=bf16,f64
sigmoid x=f32/57 ; as=f16,bf16,f64
sigmoid x=bf16/65536 ; fill=all plain=1
sigmoid x=f16/65536 ; fill=all plain=1 tier=full
sigmoid x=f32/3001 ; fill=signed:100,wide,finite plain=1
tanh x=f32/58 ; as=f16,bf16,f64
tanh x=f16/65536 ; fill=all plain=1
tanh x=bf16/65536 ; fill=all plain=1 tier=full
tanh x=f32/3001 ; fill=signed:100,wide,finite plain=1
softplus x=f32/59 ; as=f16,bf16,f64
softplus x=bf16/65536 ; fill=all plain=1
softplus x=f16/65536 ; fill=all plain=1 tier=full
softplus x=f32/3001 ; fill=signed:100,wide,finite plain=1
softplus x=f32/5x33 beta=2 ; as=bf16,f64
hardswish x=f32/60 ; as=f16,bf16,f64
hardswish x=f16/65536 ; fill=all plain=1
hardswish x=bf16/65536 ; fill=all plain=1 tier=full
hardswish x=f32/3001 ; fill=signed:100,wide,finite plain=1
mish x=f32/61 ; as=f16,bf16,f64
mish x=bf16/65536 ; fill=all plain=1
mish x=f16/65536 ; fill=all plain=1 tier=full
mish x=f32/3001 ; fill=signed:100,wide,finite plain=1
clip x=f32/62 ; as=f16,bf16,f64
clip x=f16/65536 ; fill=all plain=1
clip x=bf16/65536 ; fill=all plain=1 tier=full
clip x=f32/3001 ; fill=signed:100,wide,finite plain=1
clip x=f32/5x33 min=-1 max=0.5 ; as=bf16,f64

# their gradients
relu_backward dy=f32/3x11 x=f32/3x11 ; as=f16,bf16,f64
relu_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
relu_backward dy=f32/945 x=f32/945 ; fill=special plain=1
relu_backward dy=bf16/65536 x=bf16/65536 ; fill=all dy.fill=ipos plain=1
leaky_relu_backward dy=f32/3x12 x=f32/3x12 ; as=f16,bf16,f64
leaky_relu_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
leaky_relu_backward dy=f16/65536 x=f16/65536 ; fill=all dy.fill=ipos plain=1
leaky_relu_backward dy=f32/7x9 x=f32/7x9 slope=0.2 ; as=bf16
elu_backward dy=f32/3x13 x=f32/3x13 ; as=f16,bf16,f64
elu_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
elu_backward dy=bf16/65536 x=bf16/65536 ; fill=all dy.fill=ipos plain=1
elu_backward dy=f32/7x9 x=f32/7x9 alpha=1.5 ; as=bf16
gelu_backward dy=f32/3x14 x=f32/3x14 ; as=f16,bf16,f64
gelu_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
gelu_backward dy=f16/65536 x=f16/65536 ; fill=all dy.fill=ipos plain=1
gelu_tanh_backward dy=f32/3x15 x=f32/3x15 ; as=f16,bf16,f64
gelu_tanh_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
gelu_tanh_backward dy=bf16/65536 x=bf16/65536 ; fill=all dy.fill=ipos plain=1
silu_backward dy=f32/3x16 x=f32/3x16 ; as=f16,bf16,f64
silu_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
silu_backward dy=f16/65536 x=f16/65536 ; fill=all dy.fill=ipos plain=1
silu_backward dy=f32/7x9 x=f32/7x9 beta=1.702 ; as=bf16
sigmoid_backward dy=f32/3x17 x=f32/3x17 ; as=f16,bf16,f64
sigmoid_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
sigmoid_backward dy=bf16/65536 x=bf16/65536 ; fill=all dy.fill=ipos plain=1
tanh_backward dy=f32/3x18 x=f32/3x18 ; as=f16,bf16,f64
tanh_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
tanh_backward dy=f16/65536 x=f16/65536 ; fill=all dy.fill=ipos plain=1
softplus_backward dy=f32/3x19 x=f32/3x19 ; as=f16,bf16,f64
softplus_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
softplus_backward dy=bf16/65536 x=bf16/65536 ; fill=all dy.fill=ipos plain=1
softplus_backward dy=f32/7x9 x=f32/7x9 beta=2 ; as=bf16
hardswish_backward dy=f32/3x20 x=f32/3x20 ; as=f16,bf16,f64
hardswish_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
hardswish_backward dy=f16/65536 x=f16/65536 ; fill=all dy.fill=ipos plain=1
mish_backward dy=f32/3x21 x=f32/3x21 ; as=f16,bf16,f64
mish_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
mish_backward dy=bf16/65536 x=bf16/65536 ; fill=all dy.fill=ipos plain=1
clip_backward dy=f32/3x22 x=f32/3x22 ; as=f16,bf16,f64
clip_backward dy=f32/2053 x=f32/2053 ; fill=signed:20,finite plain=1
clip_backward dy=f16/65536 x=f16/65536 ; fill=all dy.fill=ipos plain=1
clip_backward dy=f32/7x9 x=f32/7x9 min=-1 max=0.5 ; as=bf16

# two operands: shapes, broadcast in each dim, literal and device scalars
add a=f32/63 b=f32/63 ; as=f16,bf16,f64
add a=f32/4x5x7 b=f32/1x5x1 ; as=f16
add a=f32/1x33 b=f32/6x1 ; as=bf16
add a=f32/35 b=1.5 ; as=f16,bf16
add a=f32/3x17 b=f32 ; as=f64
add a=2 b=f32/19
add a=i32/77 b=i32/77
add a=i8/5x9 b=i8/1x9
add a=u8/130 b=u8/130
add a=i64/33 b=i64/33
sub a=f32/64 b=f32/64 ; as=f16,bf16,f64
sub a=f32/4x5x7 b=f32/1x5x1 ; as=bf16
sub a=f32/1x33 b=f32/6x1 ; as=f64
sub a=f32/35 b=1.5 ; as=f16,bf16
sub a=f32/3x17 b=f32 ; as=f64
sub a=2 b=f32/19
sub a=i32/77 b=i32/77
sub a=i8/5x9 b=i8/1x9
sub a=u8/130 b=u8/130
sub a=i64/33 b=i64/33
mul a=f32/65 b=f32/65 ; as=f16,bf16,f64
mul a=f32/4x5x7 b=f32/1x5x1 ; as=f64
mul a=f32/1x33 b=f32/6x1 ; as=f16
mul a=f32/35 b=1.5 ; as=f16,bf16
mul a=f32/3x17 b=f32 ; as=f64
mul a=2 b=f32/19
mul a=i32/77 b=i32/77
mul a=i8/5x9 b=i8/1x9
mul a=u8/130 b=u8/130
mul a=i64/33 b=i64/33
div a=f32/66 b=f32/66 ; as=f16,bf16,f64
div a=f32/4x5x7 b=f32/1x5x1 ; as=f16
div a=f32/1x33 b=f32/6x1 ; as=bf16
div a=f32/35 b=1.5 ; as=f16,bf16
div a=f32/3x17 b=f32 ; as=f64
div a=2 b=f32/19
min a=f32/67 b=f32/67 ; as=f16,bf16,f64
min a=f32/4x5x7 b=f32/1x5x1 ; as=bf16
min a=f32/1x33 b=f32/6x1 ; as=f64
min a=f32/35 b=1.5 ; as=f16,bf16
min a=f32/3x17 b=f32 ; as=f64
min a=2 b=f32/19
min a=i32/77 b=i32/77
min a=i8/5x9 b=i8/1x9
min a=u8/130 b=u8/130
min a=i64/33 b=i64/33
max a=f32/68 b=f32/68 ; as=f16,bf16,f64
max a=f32/4x5x7 b=f32/1x5x1 ; as=f64
max a=f32/1x33 b=f32/6x1 ; as=f16
max a=f32/35 b=1.5 ; as=f16,bf16
max a=f32/3x17 b=f32 ; as=f64
max a=2 b=f32/19
max a=i32/77 b=i32/77
max a=i8/5x9 b=i8/1x9
max a=u8/130 b=u8/130
max a=i64/33 b=i64/33
pow a=f32/69 b=f32/69 ; as=f16,bf16,f64
pow a=f32/4x5x7 b=f32/1x5x1 ; as=f16
pow a=f32/1x33 b=f32/6x1 ; as=bf16
pow a=f32/35 b=1.5 ; as=f16,bf16
pow a=f32/3x17 b=f32 ; as=f64
pow a=2 b=f32/19
eq a=f32/5x13 b=f32/5x13 ; fill=int,special as=f16,bf16,f64
eq a=f32/5x13 b=f32/1x13 ; fill=int,special
eq a=i32/99 b=i32/99
eq a=f32/41 b=0 ; fill=int,special
eq a=i8/64 b=i8/64 ; fill=int
ne a=f32/5x13 b=f32/5x13 ; fill=int,special as=f16,bf16,f64
ne a=f32/5x13 b=f32/1x13 ; fill=int,special
ne a=i32/99 b=i32/99
ne a=f32/41 b=0 ; fill=int,special
ne a=i8/64 b=i8/64 ; fill=int
lt a=f32/5x13 b=f32/5x13 ; fill=int,special as=f16,bf16,f64
lt a=f32/5x13 b=f32/1x13 ; fill=int,special
lt a=i32/99 b=i32/99
lt a=f32/41 b=0 ; fill=int,special
lt a=i8/64 b=i8/64 ; fill=int
le a=f32/5x13 b=f32/5x13 ; fill=int,special as=f16,bf16,f64
le a=f32/5x13 b=f32/1x13 ; fill=int,special
le a=i32/99 b=i32/99
le a=f32/41 b=0 ; fill=int,special
le a=i8/64 b=i8/64 ; fill=int
gt a=f32/5x13 b=f32/5x13 ; fill=int,special as=f16,bf16,f64
gt a=f32/5x13 b=f32/1x13 ; fill=int,special
gt a=i32/99 b=i32/99
gt a=f32/41 b=0 ; fill=int,special
gt a=i8/64 b=i8/64 ; fill=int
ge a=f32/5x13 b=f32/5x13 ; fill=int,special as=f16,bf16,f64
ge a=f32/5x13 b=f32/1x13 ; fill=int,special
ge a=i32/99 b=i32/99
ge a=f32/41 b=0 ; fill=int,special
ge a=i8/64 b=i8/64 ; fill=int
logical_and a=bool/77 b=bool/77
logical_or a=bool/3x33 b=bool/1x33
logical_not x=bool/65
select c=bool/67 a=f32/67 b=f32/67 ; as=f16,bf16,f64
select c=bool/4x1x9 a=f32/4x5x9 b=f32/1x5x1 ; as=bf16
select c=bool/31 a=i32/31 b=i32/31
select c=bool/33 a=f32/33 b=0.5

# mixed dtypes compute in f32
add a=f16/33 b=bf16/33 y=f32/33
mul a=bf16/5x7 b=f32/5x7 y=bf16/5x7
add a=f32/65 b=f32/65 y=f16/65
sub a=f16/65 b=f32/65 y=f16/65
exp x=bf16/77 y=f32/77
gelu x=f32/77 y=bf16/77

# ranks 1 to 8, strides, broadcast by stride 0, an operand twice
add a=f32/1 b=f32/1
relu x=f32
add a=f32/2x2x2x2x2x2x2x2 b=f32/2x1x2x1x2x1x2x1
mul a=f32/3x1x4x1x5 b=f32/1x2x1x6x5
add a=f32/4x6/0:1 b=f32/4x6/1:4
add a=f32/2x5x4x6/nhwc b=f32/1x5x1x1 y=f32/2x5x4x6/nhwc ; as=bf16
mul a=f32/2x5x4x6/nhwc b=f32/2x5x4x6
exp x=f32/5x7/1:5 y=f32/5x7/21:3
add a=f32/70001x2 b=f32/1x2 ; plain=1
add a=f32/3x70001 b=f32/3x1 ; plain=1
relu x=f32/9 ; x.offset=1 y.offset=3
add a=f32/33@4 b=f32/33@8 y=f32/33@4 ; as=f64

# whole vectors, with operands repeated along or across rows
add a=f32/2x16x4x6/nhwc b=f32/1x16x1x1 y=f32/2x16x4x6/nhwc ; as=bf16,f16
mul a=f32/2x5x4x8 b=f32/1x5x1x1 ; as=bf16,f16
sub a=f32/6x1x40 b=f32/1x7x40 ; as=bf16
div a=f32/1x1x24 b=f32/3x5x1 ; as=f16
relu x=f32/4x16/24:1 y=f32/4x16 ; as=bf16
add a=f32/1003 b=f32/1003 ; as=bf16,f16

# NaN in every lane, of the vector body and the tail
max a=f32/15 b=f32/15 ; fill=special as=f16,bf16,f64
min a=f32/15 b=f32/15 ; fill=special as=f16,bf16,f64
max a=f32/7 b=f32/7 ; a.fill=nan fill=signed as=bf16
min a=f32/31 b=f32/31 ; b.fill=nan fill=signed as=bf16
relu x=f32/31 ; fill=special,nan as=f16,bf16,f64
clip x=f32/31 min=-1 max=1 ; fill=special,nan as=bf16

# in place
relu x=f32/5x13 y=x ; as=bf16
add a=f32/7x9 b=f32/7x9 y=a
sub a=f32/7x9 b=f32/7x9 y=b ; as=f16
gelu_backward dy=f32/44 x=f32/44 dx=dy

# zero sizes
add a=f32/0x5 b=f32/0x5 ; plain=1
exp x=f32/4x0 ; plain=1
add a=f32/1x5 b=f32/0x5 ; plain=1

# scalars alone
add a=f32 b=f32 ; as=f16,f64
sub a=f32 b=f32 ; fill=zero a.is=6 b.is=2 y.is=4 plain=1
mul a=f32 b=f32 ; fill=zero a.is=6 b.is=2 y.is=12 plain=1
div a=f32 b=f32 ; fill=zero a.is=6 b.is=2 y.is=3 plain=1
gelu x=f32 ; as=f16,f64
tanh_backward dy=f32 x=f32 ; as=f16,f64

# few elements spread over more than 2^31 elements of memory
relu x=f32/3x2/1100000000:1 ; plain=1 fill=int

# golden: rounding to even, the sign of zero, NaN
round x=f32/6 ; fill=zero x.is=0.5,1.5,2.5,-0.5,-1.5,-2.5 y.is=0,2,2,-0,-2,-2 plain=1
trunc x=f32/6 ; fill=zero x.is=2.7,-2.7,0.5,-0.5,1e30,nan y.is=2,-2,0,-0,1e30,nan plain=1
sign x=f32/5 ; fill=zero x.is=-3,0,7,nan,-inf y.is=-1,0,1,nan,-1 plain=1
relu x=f32/4 ; fill=zero x.is=nan,-1,0,2 y.is=nan,0,0,2 plain=1
clip x=f32/4 min=-1 max=1 ; fill=zero x.is=nan,-2,0.5,3 y.is=nan,-1,0.5,1 plain=1
max a=f32/4 b=f32/4 ; fill=zero a.is=nan,1,-inf,2 b.is=0,nan,-5,inf y.is=nan,nan,-5,inf plain=1
min a=f32/4 b=f32/4 ; fill=zero a.is=nan,1,-inf,2 b.is=0,nan,-5,inf y.is=nan,nan,-inf,2 plain=1
relu_backward dy=f32/3 x=f32/3 ; fill=zero dy.is=3,4,5 x.is=-1,0,1 dx.is=0,0,5 plain=1
hardswish_backward dy=f32/5 x=f32/5 ; fill=zero dy.is=6 x.is=-4,-3,0,3,4 dx.is=0,0,3,6,6 plain=1
abs x=i8/3 ; fill=zero x.is=-128,-5,5 y.is=-128,5,5 plain=1
add a=i8/2 b=i8/2 ; fill=zero a.is=127,-128 b.is=1,-1 y.is=-128,127 plain=1
mul a=u8/2 b=u8/2 ; fill=zero a.is=16,255 b.is=17,255 y.is=16,1 plain=1

# select with a scalar condition
select c=bool a=f32/31 b=f32/1 ; as=f16,f64
select c=bool a=i64/9 b=2

# a single input, or a gradient's, that is broadcast
relu x=f32/1x5 y=f32/3x5 ; as=bf16,f64
relu x=f32/300x1 y=f32/300x7 ; as=f16
relu x=f32 y=f32/3x50
neg x=i32/1x70 y=i32/3x70
relu_backward dy=f32/3x1 x=f32/1x70
gelu_backward dy=f32/1x70 x=f32/3x70 ; as=bf16
gelu_backward dy=f32 x=f32/70
gelu_backward dy=0.5 x=f32/70

# an operand with overlapping rows
add a=f32/9x8/3:1 b=f32/9x8 ; fill=signed plain=1

# golden: the ends of clip have slope 0
clip_backward dy=f32/5 x=f32/5 min=-1 max=1 ; fill=zero dy.is=7 x.is=-2,-1,0,1,2 dx.is=0,0,7,0,0 plain=1

# gradients near the largest number, where the slope's factors might overflow
tanh_backward dy=f32/6 x=f32/6 ; dy.is=3e38,1e38,-3e38 x.is=0,-20,40,-60,100,-1000 plain=1
silu_backward dy=f32/6 x=f32/6 ; dy.is=3e38,1e38,-3e38 x.is=0,-20,-40,-60,-100,-1000 plain=1
mish_backward dy=f32/6 x=f32/6 ; dy.is=3e38,1e38,-3e38 x.is=0,-20,-40,-60,-100,-1000 plain=1
gelu_tanh_backward dy=f32/6 x=f32/6 ; dy.is=3e38,1e38,-3e38 x.is=0,-2,-4,-6,-9,-1000 plain=1
gelu_tanh_backward dy=f32/6 x=f32/6 ; dy.is=1,-1,2,1,1,1 x.is=7.6,-7.6,100,-1000,3e5,-1e20 plain=1 as=f64
tanh_backward dy=f32/2053 x=f32/2053 ; fill=bits plain=1
silu_backward dy=f32/2053 x=f32/2053 ; fill=bits plain=1
mish_backward dy=f32/2053 x=f32/2053 ; fill=bits plain=1

# values near the largest: a result that can be represented comes out, whatever a product on the way to it would be
exp x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
exp x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
log x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
log x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
sqrt x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
sqrt x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
rsqrt x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
rsqrt x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
reciprocal x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
reciprocal x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
erf x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
erf x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
relu x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
relu x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
elu x=f64/15 alpha=3 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
elu x=f32/15 alpha=3 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
gelu x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
gelu x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
gelu_tanh x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
gelu_tanh x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
silu x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
silu x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
silu x=f64/15 beta=2.5 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
silu x=f32/15 beta=2.5 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
silu x=f64/15 beta=-2.5 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
silu x=f32/15 beta=-2.5 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
sigmoid x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
sigmoid x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
tanh x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
tanh x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
softplus x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
softplus x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
softplus x=f64/15 beta=2.5 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
softplus x=f32/15 beta=2.5 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
softplus x=f64/15 beta=-2.5 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
softplus x=f32/15 beta=-2.5 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
hardswish x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
hardswish x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
mish x=f64/15 ; fill=zero x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
mish x=f32/15 ; fill=zero x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
elu_backward dy=f64/90 x=f64/90 alpha=3 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
elu_backward dy=f32/90 x=f32/90 alpha=3 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
gelu_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
gelu_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
gelu_tanh_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
gelu_tanh_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
silu_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
silu_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
silu_backward dy=f64/90 x=f64/90 beta=2.5 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
silu_backward dy=f32/90 x=f32/90 beta=2.5 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
sigmoid_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
sigmoid_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
tanh_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
tanh_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
softplus_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
softplus_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
softplus_backward dy=f64/90 x=f64/90 beta=2.5 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
softplus_backward dy=f32/90 x=f32/90 beta=2.5 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
hardswish_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
hardswish_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
mish_backward dy=f64/90 x=f64/90 ; fill=zero dy.is=1,-2,1e300,-1e308,0.3,1e-300,7 x.is=1e308,-1e308,1.7e308,-1.7e308,1e200,-1e200,1e160,-1e160,1e20,-1e20,1e5,-1e5,1e-300,-1e-310,0 plain=1
mish_backward dy=f32/90 x=f32/90 ; fill=zero dy.is=1,-2,1e30,-3e38,0.3,1e-30,7 x.is=3e38,-3e38,1.2e38,-1.2e38,1e30,-1e30,2e19,-2e19,1e13,-1e13,1e5,-1e5,1e-37,-1e-40,0 plain=1 as=bf16
hardswish x=f64/2 ; fill=zero x.is=1e308,-1e308 y.is=1e308,0 plain=1
softplus x=f64/4 beta=2 ; fill=zero x.is=1e308,-1e308,1.7e308,0 y.is=1e308,0,1.7e308,0.34657359027997264 y.within=1e-15 plain=1
hardswish x=f32/2 ; fill=zero x.is=3e38,-3e38 y.is=3e38,0 plain=1 as=bf16
softplus x=f32/4 beta=2 ; fill=zero x.is=3e38,-3e38,2e38,0 y.is=3e38,0,2e38,0.34657359 y.within=1e-6 plain=1
silu_backward dy=f32/2 x=f32/2 beta=2 ; fill=zero dy.is=1 x.is=3e38,-3e38 dx.is=1,0 plain=1

# functions of functions.def: a tail, every 16-bit pattern, a spread of f32, near the largest
log1p x=f32/70 ; as=f16,bf16,f64
log1p x=f16/65536 ; fill=all plain=1
log1p x=bf16/65536 ; fill=all plain=1 tier=full
log1p x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
log1p x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
expm1 x=f32/71 ; as=f16,bf16,f64
expm1 x=f16/65536 ; fill=all plain=1
expm1 x=bf16/65536 ; fill=all plain=1 tier=full
expm1 x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
expm1 x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
exp2 x=f32/72 ; as=f16,bf16,f64
exp2 x=f16/65536 ; fill=all plain=1
exp2 x=bf16/65536 ; fill=all plain=1 tier=full
exp2 x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
exp2 x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
log2 x=f32/73 ; as=f16,bf16,f64
log2 x=f16/65536 ; fill=all plain=1
log2 x=bf16/65536 ; fill=all plain=1 tier=full
log2 x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
log2 x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
log10 x=f32/73 ; as=f16,bf16,f64
log10 x=f16/65536 ; fill=all plain=1
log10 x=bf16/65536 ; fill=all plain=1 tier=full
log10 x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
log10 x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
tan x=f32/74 ; as=f16,bf16,f64
tan x=f16/65536 ; fill=all plain=1
tan x=bf16/65536 ; fill=all plain=1 tier=full
tan x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
tan x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
asin x=f32/75 ; as=f16,bf16,f64
asin x=f16/65536 ; fill=all plain=1
asin x=bf16/65536 ; fill=all plain=1 tier=full
asin x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
asin x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
acos x=f32/76 ; as=f16,bf16,f64
acos x=f16/65536 ; fill=all plain=1
acos x=bf16/65536 ; fill=all plain=1 tier=full
acos x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
acos x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
atan x=f32/77 ; as=f16,bf16,f64
atan x=f16/65536 ; fill=all plain=1
atan x=bf16/65536 ; fill=all plain=1 tier=full
atan x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
atan x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
sinh x=f32/78 ; as=f16,bf16,f64
sinh x=f16/65536 ; fill=all plain=1
sinh x=bf16/65536 ; fill=all plain=1 tier=full
sinh x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
sinh x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
cosh x=f32/79 ; as=f16,bf16,f64
cosh x=f16/65536 ; fill=all plain=1
cosh x=bf16/65536 ; fill=all plain=1 tier=full
cosh x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
cosh x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
asinh x=f32/80 ; as=f16,bf16,f64
asinh x=f16/65536 ; fill=all plain=1
asinh x=bf16/65536 ; fill=all plain=1 tier=full
asinh x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
asinh x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
acosh x=f32/81 ; as=f16,bf16,f64
acosh x=f16/65536 ; fill=all plain=1
acosh x=bf16/65536 ; fill=all plain=1 tier=full
acosh x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
acosh x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
atanh x=f32/82 ; as=f16,bf16,f64
atanh x=f16/65536 ; fill=all plain=1
atanh x=bf16/65536 ; fill=all plain=1 tier=full
atanh x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
atanh x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
isnan x=f32/83 ; as=f16,bf16,f64
isnan x=f16/65536 ; fill=all plain=1
isnan x=bf16/65536 ; fill=all plain=1 tier=full
isnan x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
isnan x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
isfinite x=f32/84 ; as=f16,bf16,f64
isfinite x=f16/65536 ; fill=all plain=1
isfinite x=bf16/65536 ; fill=all plain=1 tier=full
isfinite x=f32/3001 ; fill=signed:1,signed:100,wide,finite,tiny,signed:1e15,signed:3e38 plain=1
isfinite x=f64/301 ; fill=signed:1,signed:100,wide,special plain=1
log1p x=f32/2053 ; fill=bits plain=1
tan x=f32/2053 ; fill=bits plain=1
prelu x=f32/2x5x7 slope=f32/1x5x1 ; as=f16,bf16,f64
prelu x=f32/2053 slope=0.25 ; fill=special plain=1
prelu x=f16/64 slope=f32/64 ; fill=special plain=1
mod a=f32/66 b=f32/66 ; as=f16,bf16,f64
mod a=f32/4x5x7 b=f32/1x5x1 ; fill=signed:100 b.fill=signed:3 as=f16,f64
mod a=f32/2053 b=f32/2053 ; fill=special,bits plain=1
mod a=f32/35 b=1.5 ; fill=signed:1e6
mod a=2.5 b=f32/19
fmod a=f32/66 b=f32/66 ; as=f16,bf16,f64
fmod a=f32/4x5x7 b=f32/1x5x1 ; fill=signed:100 b.fill=signed:3 as=f16,f64
fmod a=f32/2053 b=f32/2053 ; fill=special,bits plain=1
fmod a=f32/35 b=1.5 ; fill=signed:1e6
fmod a=2.5 b=f32/19
div a=i32/77 b=i32/77 ; fill=bits,int:20
div a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
div a=u8/130 b=u8/130 ; fill=bits,int:9
div a=i64/33 b=i64/33 ; fill=bits,int:40
div a=i32/300 b=3 ; fill=bits
mod a=i32/77 b=i32/77 ; fill=bits,int:20
mod a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
mod a=u8/130 b=u8/130 ; fill=bits,int:9
mod a=i64/33 b=i64/33 ; fill=bits,int:40
mod a=i32/300 b=3 ; fill=bits
fmod a=i32/77 b=i32/77 ; fill=bits,int:20
fmod a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
fmod a=u8/130 b=u8/130 ; fill=bits,int:9
fmod a=i64/33 b=i64/33 ; fill=bits,int:40
fmod a=i32/300 b=3 ; fill=bits
floor_divide a=i32/77 b=i32/77 ; fill=bits,int:20
floor_divide a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
floor_divide a=u8/130 b=u8/130 ; fill=bits,int:9
floor_divide a=i64/33 b=i64/33 ; fill=bits,int:40
floor_divide a=i32/300 b=3 ; fill=bits
bitwise_and a=i32/77 b=i32/77 ; fill=bits,int:20
bitwise_and a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
bitwise_and a=u8/130 b=u8/130 ; fill=bits,int:9
bitwise_and a=i64/33 b=i64/33 ; fill=bits,int:40
bitwise_and a=i32/300 b=3 ; fill=bits
bitwise_or a=i32/77 b=i32/77 ; fill=bits,int:20
bitwise_or a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
bitwise_or a=u8/130 b=u8/130 ; fill=bits,int:9
bitwise_or a=i64/33 b=i64/33 ; fill=bits,int:40
bitwise_or a=i32/300 b=3 ; fill=bits
bitwise_xor a=i32/77 b=i32/77 ; fill=bits,int:20
bitwise_xor a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
bitwise_xor a=u8/130 b=u8/130 ; fill=bits,int:9
bitwise_xor a=i64/33 b=i64/33 ; fill=bits,int:40
bitwise_xor a=i32/300 b=3 ; fill=bits
shift_left a=i32/77 b=i32/77 ; fill=bits,int:20
shift_left a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
shift_left a=u8/130 b=u8/130 ; fill=bits,int:9
shift_left a=i64/33 b=i64/33 ; fill=bits,int:40
shift_left a=i32/300 b=3 ; fill=bits
shift_right a=i32/77 b=i32/77 ; fill=bits,int:20
shift_right a=i8/5x9 b=i8/1x9 ; fill=bits,int:7
shift_right a=u8/130 b=u8/130 ; fill=bits,int:9
shift_right a=i64/33 b=i64/33 ; fill=bits,int:40
shift_right a=i32/300 b=3 ; fill=bits
bitwise_not x=i8/256 ; fill=bits
bitwise_not x=u8/256 ; fill=bits
bitwise_not x=i32/77 ; fill=bits
bitwise_not x=i64/33 ; fill=bits
# bool among bool
eq a=bool/7x33 b=bool/7x1 ; fill=int:1
eq a=bool/300 b=1 ; fill=int:1
ne a=bool/7x33 b=bool/7x1 ; fill=int:1
ne a=bool/300 b=1 ; fill=int:1
max a=bool/7x33 b=bool/7x1 ; fill=int:1
max a=bool/300 b=1 ; fill=int:1
min a=bool/7x33 b=bool/7x1 ; fill=int:1
min a=bool/300 b=1 ; fill=int:1
select c=bool/7x33 a=bool/1x33 b=bool/7x33 ; fill=int:1
select c=bool/300 a=bool/300 b=0 ; fill=int:1

# golden, from NumPy: signs, zeros, the ends of integers, divisors of 0
mod a=f32/13 b=f32/13 ; fill=zero a.is=7,-7,7,-7,0,-0,6,-6,5.5,inf,1,-1,1 b.is=3,3,-3,-3,3,3,-3,3,0,2,inf,inf,nan y.is=1,2,-2,-1,0,0,-0,0,nan,nan,1,inf,nan plain=1 as=f64
fmod a=f32/13 b=f32/13 ; fill=zero a.is=7,-7,7,-7,0,-0,6,-6,5.5,inf,1,-1,1 b.is=3,3,-3,-3,3,3,-3,3,0,2,inf,inf,nan y.is=1,-1,1,-1,0,-0,0,-0,nan,nan,1,-1,nan plain=1 as=f64
mod a=i8/12 b=i8/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-128,-128,127,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,127,-1 y.is=1,2,-2,-1,0,0,0,0,0,0,0,0 plain=1
fmod a=i8/12 b=i8/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-128,-128,127,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,127,-1 y.is=1,-1,1,-1,0,0,0,0,0,0,0,0 plain=1
floor_divide a=i8/12 b=i8/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-128,-128,127,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,127,-1 y.is=2,-3,-3,2,2,-2,0,0,-128,-128,1,0 plain=1
div a=i8/12 b=i8/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-128,-128,127,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,127,-1 y.is=2,-2,-2,2,2,-2,0,0,-128,-128,1,0 plain=1
shift_left a=i8/7 b=i8/7 ; fill=zero a.is=1,3,127,-128,5,-5,1 b.is=1,7,1,1,8,2,0 y.is=2,-128,-2,0,0,-20,1 plain=1
shift_right a=i8/7 b=i8/7 ; fill=zero a.is=1,3,127,-128,5,-5,1 b.is=1,7,1,1,8,2,0 y.is=0,0,63,-64,0,-2,1 plain=1
bitwise_and a=i8/7 b=i8/7 ; fill=zero a.is=1,3,127,-128,5,-5,1 b.is=1,7,1,1,8,2,0 y.is=1,3,1,0,0,2,0 plain=1
bitwise_or a=i8/7 b=i8/7 ; fill=zero a.is=1,3,127,-128,5,-5,1 b.is=1,7,1,1,8,2,0 y.is=1,7,127,-127,13,-5,1 plain=1
bitwise_xor a=i8/7 b=i8/7 ; fill=zero a.is=1,3,127,-128,5,-5,1 b.is=1,7,1,1,8,2,0 y.is=0,4,126,-127,13,-7,1 plain=1
mod a=i32/12 b=i32/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-2147483648,-2147483648,2147483647,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,2147483647,-1 y.is=1,2,-2,-1,0,0,0,0,0,0,0,0 plain=1
fmod a=i32/12 b=i32/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-2147483648,-2147483648,2147483647,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,2147483647,-1 y.is=1,-1,1,-1,0,0,0,0,0,0,0,0 plain=1
floor_divide a=i32/12 b=i32/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-2147483648,-2147483648,2147483647,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,2147483647,-1 y.is=2,-3,-3,2,2,-2,0,0,-2147483648,-2147483648,1,0 plain=1
div a=i32/12 b=i32/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-2147483648,-2147483648,2147483647,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,2147483647,-1 y.is=2,-2,-2,2,2,-2,0,0,-2147483648,-2147483648,1,0 plain=1
shift_left a=i32/7 b=i32/7 ; fill=zero a.is=1,3,2147483647,-2147483648,5,-5,1 b.is=1,31,1,1,32,2,0 y.is=2,-2147483648,-2,0,0,-20,1 plain=1
shift_right a=i32/7 b=i32/7 ; fill=zero a.is=1,3,2147483647,-2147483648,5,-5,1 b.is=1,31,1,1,32,2,0 y.is=0,0,1073741823,-1073741824,0,-2,1 plain=1
bitwise_and a=i32/7 b=i32/7 ; fill=zero a.is=1,3,2147483647,-2147483648,5,-5,1 b.is=1,31,1,1,32,2,0 y.is=1,3,1,0,0,2,0 plain=1
bitwise_or a=i32/7 b=i32/7 ; fill=zero a.is=1,3,2147483647,-2147483648,5,-5,1 b.is=1,31,1,1,32,2,0 y.is=1,31,2147483647,-2147483647,37,-5,1 plain=1
bitwise_xor a=i32/7 b=i32/7 ; fill=zero a.is=1,3,2147483647,-2147483648,5,-5,1 b.is=1,31,1,1,32,2,0 y.is=0,28,2147483646,-2147483647,37,-7,1 plain=1
mod a=i64/12 b=i64/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-9223372036854775808,-9223372036854775808,9223372036854775807,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,9223372036854775807,-1 y.is=1,2,-2,-1,0,0,0,0,0,0,0,0 plain=1
fmod a=i64/12 b=i64/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-9223372036854775808,-9223372036854775808,9223372036854775807,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,9223372036854775807,-1 y.is=1,-1,1,-1,0,0,0,0,0,0,0,0 plain=1
floor_divide a=i64/12 b=i64/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-9223372036854775808,-9223372036854775808,9223372036854775807,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,9223372036854775807,-1 y.is=2,-3,-3,2,2,-2,0,0,-9223372036854775808,-9223372036854775808,1,0 plain=1
div a=i64/12 b=i64/12 ; fill=zero a.is=7,-7,7,-7,6,-6,5,-5,-9223372036854775808,-9223372036854775808,9223372036854775807,0 b.is=3,3,-3,-3,3,3,0,0,-1,1,9223372036854775807,-1 y.is=2,-2,-2,2,2,-2,0,0,-9223372036854775808,-9223372036854775808,1,0 plain=1
shift_left a=i64/7 b=i64/7 ; fill=zero a.is=1,3,9223372036854775807,-9223372036854775808,5,-5,1 b.is=1,63,1,1,64,2,0 y.is=2,-9223372036854775808,-2,0,0,-20,1 plain=1
shift_right a=i64/7 b=i64/7 ; fill=zero a.is=1,3,9223372036854775807,-9223372036854775808,5,-5,1 b.is=1,63,1,1,64,2,0 y.is=0,0,4611686018427387903,-4611686018427387904,0,-2,1 plain=1
bitwise_and a=i64/7 b=i64/7 ; fill=zero a.is=1,3,9223372036854775807,-9223372036854775808,5,-5,1 b.is=1,63,1,1,64,2,0 y.is=1,3,1,0,0,2,0 plain=1
bitwise_or a=i64/7 b=i64/7 ; fill=zero a.is=1,3,9223372036854775807,-9223372036854775808,5,-5,1 b.is=1,63,1,1,64,2,0 y.is=1,63,9223372036854775807,-9223372036854775807,69,-5,1 plain=1
bitwise_xor a=i64/7 b=i64/7 ; fill=zero a.is=1,3,9223372036854775807,-9223372036854775808,5,-5,1 b.is=1,63,1,1,64,2,0 y.is=0,60,9223372036854775806,-9223372036854775807,69,-7,1 plain=1
mod a=u8/5 b=u8/5 ; fill=zero a.is=7,200,255,0,6 b.is=3,7,255,3,0 y.is=1,4,0,0,0 plain=1
fmod a=u8/5 b=u8/5 ; fill=zero a.is=7,200,255,0,6 b.is=3,7,255,3,0 y.is=1,4,0,0,0 plain=1
floor_divide a=u8/5 b=u8/5 ; fill=zero a.is=7,200,255,0,6 b.is=3,7,255,3,0 y.is=2,28,1,0,0 plain=1
div a=u8/5 b=u8/5 ; fill=zero a.is=7,200,255,0,6 b.is=3,7,255,3,0 y.is=2,28,1,0,0 plain=1
shift_left a=u8/7 b=u8/7 ; fill=zero a.is=1,3,255,0,5,5,1 b.is=1,7,1,1,8,2,0 y.is=2,128,254,0,0,20,1 plain=1
shift_right a=u8/7 b=u8/7 ; fill=zero a.is=1,3,255,0,5,5,1 b.is=1,7,1,1,8,2,0 y.is=0,0,127,0,0,1,1 plain=1
bitwise_and a=u8/7 b=u8/7 ; fill=zero a.is=1,3,255,0,5,5,1 b.is=1,7,1,1,8,2,0 y.is=1,3,1,0,0,0,0 plain=1
bitwise_or a=u8/7 b=u8/7 ; fill=zero a.is=1,3,255,0,5,5,1 b.is=1,7,1,1,8,2,0 y.is=1,7,255,1,13,7,1 plain=1
bitwise_xor a=u8/7 b=u8/7 ; fill=zero a.is=1,3,255,0,5,5,1 b.is=1,7,1,1,8,2,0 y.is=0,4,254,1,13,7,1 plain=1
shift_right a=i32/2 b=i32/2 ; fill=zero a.is=-8,8 b.is=-1 y.is=-1,0 plain=1
prelu x=f32/4 slope=f32/4 ; fill=zero x.is=-2,0,3,nan slope.is=0.5,7,7,1 y.is=-1,0,3,nan plain=1
isnan x=f32/4 ; fill=zero x.is=nan,inf,-inf,0 y.is=1,0,0,0 plain=1 as=f16,bf16,f64
isfinite x=f32/4 ; fill=zero x.is=nan,inf,-inf,0 y.is=0,0,0,1 plain=1 as=f16,bf16,f64
log1p x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=-0.6931471805599453,9.999950000333332e-06,0.22314355131420976,1.0986122886681098 y.within=1e-14 plain=1
expm1 x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=-0.3934693402873666,1.0000050000166668e-05,0.2840254166877415,6.38905609893065 y.within=1e-14 plain=1
exp2 x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=0.7071067811865476,1.0000069314958282,1.189207115002721,4 y.within=1e-14 plain=1
log10 x=f64/5 ; fill=zero x.is=-0.5,0,1e-05,1000,2 y.is=nan,-inf,-5,3,0.30102999566398120 y.within=1e-15 plain=1
log2 x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=nan,-16.609640474436812,-2,1 y.within=1e-14 plain=1
tan x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=-0.5463024898437905,1.0000000000333334e-05,0.25534192122103627,-2.185039863261519 y.within=1e-14 plain=1
atan x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=-0.4636476090008061,9.999999999666668e-06,0.24497866312686414,1.1071487177940904 y.within=1e-14 plain=1
sinh x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=-0.5210953054937474,1.0000000000166668e-05,0.2526123168081683,3.6268604078470186 y.within=1e-14 plain=1
cosh x=f64/4 ; fill=zero x.is=-0.5,1e-05,0.25,2 y.is=1.1276259652063807,1.00000000005,1.0314130998795732,3.7621956910836314 y.within=1e-14 plain=1
asin x=f64/4 ; fill=zero x.is=-1,-0.3,0.9,1.5 y.is=-1.5707963267948966,-0.30469265401539747,1.1197695149986342,nan y.within=1e-14 plain=1
acos x=f64/4 ; fill=zero x.is=-1,-0.3,0.9,1.5 y.is=3.141592653589793,1.8754889808102941,0.45102681179626236,nan y.within=1e-14 plain=1
asinh x=f64/4 ; fill=zero x.is=-30,0.0001,2,9 y.is=-4.09462222433053,9.999999983333334e-05,1.4436354751788103,2.8934439858858716 y.within=1e-14 plain=1
acosh x=f64/4 ; fill=zero x.is=0.5,1,1.5,90 y.is=nan,0,0.9624236501192069,5.192925985263684 y.within=1e-14 plain=1
atanh x=f64/4 ; fill=zero x.is=-0.9,0.0001,0.5,1 y.is=-1.4722194895832204,0.00010000000033333334,0.5493061443340549,inf y.within=1e-14 plain=1
# large values: what is representable comes out
hardswish x=f64/4 ; fill=zero x.is=1e308,-1e308,3,0 y.is=1e308,0,3,0 plain=1
softplus x=f64/3 ; fill=zero x.is=1e308,-1e308,800 y.is=1e308,0,800 plain=1
elu_backward dy=f32/7x9 x=f32/7x9 alpha=1.5 ; fill=large plain=1
silu_backward dy=f32/7x9 x=f32/7x9 beta=1.702 ; fill=large plain=1

# operands of fewer dims have leading ones
add a=f32/4x5x7 b=f32/7 ; as=f16,bf16,f64
add a=f32/7 b=f32/2x3x7 ; as=f16
add a=f32/5x1 b=f32/4x1x7
mul a=i32/3x8 b=i32/8
eq a=f32/6x5 b=f32/5
select c=bool/5 a=f32/6x5 b=f32/1
prelu x=f32/2x3x4 slope=f32/3x1 ; as=bf16
relu x=f32/5 y=f32/3x5
gelu_backward dy=f32/2x3x5 x=f32/5
sub a=f32/4x6/1:4 b=f32/6/2 ; as=f64
add a=f32/4x5x7 b=f32/7@4 y=a
add a=f32/2x3 b=f32/3 ; fill=zero a.is=1,2,3,4,5,6 b.is=10,20,30 y.is=11,22,33,14,25,36 plain=1
