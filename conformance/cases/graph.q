# Graphs: what a planner fuses, judged as if each intermediate were rounded to its dtype.

in x f32/2x5x7x7
in w f32/6x5x3x3
in b f32/1x6x1x1
y0 = conv_forward x=x w=w pad=1
y1 = add a=y0 b=b
out y = relu x=y1 ; as=bf16,f16

in x f32/2x8x7x7/nhwc
in w f32/16x8x3x3/nhwc
in r f32/2x16x7x7/nhwc
y0 = conv_forward x=x w=w pad=1
y1 = add a=y0 b=r
out y = relu x=y1 ; as=bf16

in x f32/1x6x9x9
in w f32/6x1x3x3
y0 = conv_forward x=x w=w groups=6 pad=1
out y = clip x=y0 min=0 max=6 ; as=f16

in dy f32/2x6x5x5
in w f32/6x4x3x3
in x f32/2x4x7x7
dx = conv_backward_data dy=dy w=w dx=f32/2x4x7x7
out g = relu_backward dy=dx x=x ; as=bf16,f16

in dy f32/2x6x7x7/nhwc
in w f32/6x8x3x3/nhwc
in r f32/2x8x7x7/nhwc
dx = conv_backward_data dy=dy w=w dx=f32/2x8x7x7/nhwc pad=1
out g = add a=dx b=r

in x bf16/1x48x9x9/nhwc
in w bf16/48x24x3x3/nhwc
in r bf16/1x48x9x9/nhwc
y0 = conv_forward x=x w=w groups=2 pad=1
y1 = add a=y0 b=r
out y = relu x=y1

in dy bf16/1x16x5x5/nhwc
in w bf16/16x8x3x3/nhwc
in x bf16/1x16x9x9/nhwc
dx = conv_backward_data dy=dy w=w dx=bf16/1x16x9x9/nhwc pad=1 stride=2 groups=2
out g = relu_backward dy=dx x=x

in x f32/1x8x9x9/nhwc
in w f32/8x1x3x3/nhwc
in b f32/1x8x1x1
y0 = conv_forward x=x w=w groups=8 pad=1
y1 = add a=y0 b=b
out y = silu x=y1 ; as=bf16

in a f32/3x17x19
in b f32/3x19x23
in r f32/3x17x23
y0 = matmul a=a b=b alpha=0.5
y1 = add a=y0 b=r
out y = relu x=y1

in a f32/33x47
in b f32/47x29
in bias f32/1x29
y0 = matmul a=a b=b
y1 = add a=y0 b=bias
out y = gelu x=y1 ; as=bf16,f16

in a f32/17x19
in b f32/19x23
in c f32/23
y0 = matmul a=a b=b bias=c
out y = silu x=y0

in a f32/17x64
in b f32/64x32
in r f32/17x32
y0 = matmul a=a b=b
y1 = mul a=y0 b=0.125
out z = add a=y1 b=r
out y = tanh x=z ; as=bf16

in x f32/5x1000
y0 = mul a=x b=2
y1 = add a=y0 b=1
y2 = relu x=y1
out y = mul a=y2 b=x ; as=bf16,f16,f64

in g f32/3001
in p f32/3001
in m f32/3001
in v f32/3001
in rate f32
m0 = mul a=m b=0.9
m1 = mul a=g b=0.1
out m2 over m = add a=m0 b=m1
v0 = mul a=v b=0.999
g2 = mul a=g b=g
v1 = mul a=g2 b=0.001
out v2 over v = add a=v0 b=v1
d0 = abs x=v2
d1 = sqrt x=d0
d2 = add a=d1 b=1e-8
s0 = div a=m2 b=d2
s1 = mul a=s0 b=rate
out p2 over p = sub a=p b=s1

in x f32/9x33
y0 = exp x=x
out y = reduce_sum x=y0 axis=1 ; as=bf16

in x f32/9x33
in y f32/9x33
d = sub a=x b=y
q = mul a=d b=d
out l = reduce_mean x=q ; as=f16

in x f32/2x3x8x8
in w f32/4x3x3x3
y0 = conv_forward x=x w=w pad=1
y1 = relu x=y0
out y = pool_max x=y1 window=2,2 ; as=bf16

in x f32/4x12
in w f32/12x8
in v f32/8x5
h0 = matmul a=x b=w
h1 = relu x=h0
z = matmul a=h1 b=v
out y = log_softmax x=z ; as=bf16

in x f32/6x10
m = reduce_max x=x axis=1
d = sub a=x b=m
e = exp x=d
s = reduce_sum x=e axis=1
out y = div a=e b=s

in x f32/5x9
in c bool/5x9
y0 = neg x=x
y1 = select c=c a=x b=y0
out y = cast x=y1 y=bf16/5x9

in x f32/5x9
out a = relu x=x
out b = neg x=a
out c = add a=a b=b

in x f32/3x4
in y f32/3x5
z = concat x=[x,y] axis=1
p = permute x=z perm=1,0
out w = mul a=p b=p

in x bf16/4x33
in w bf16/33x17
y0 = matmul a=x b=w y=f32/4x17
y1 = gelu_tanh x=y0
out y = cast x=y1 y=bf16/4x17

# gradients of pooling followed by those of an activation and a bias: a channel's sum in several parts, and in one
in d f32/30x5x6x8
in x f32/30x5x12x16
g = pool_max_backward dy=d x=x window=2
out h = relu_backward dy=g x=x
out b = reduce_sum x=h axis=0,2,3 ; as=bf16

in d f16/2x3x4x4
in x f16/2x3x8x8
g = pool_average_backward dy=d dx=f16/2x3x8x8 window=2
h = mul a=g b=x
out b = reduce_sum x=h axis=0,2,3

# a bias, a per-channel addition, and relu after f32 sums
in x f32/2x5x9x7
in w f32/6x5x3x3
in b f32/6
y0 = conv_forward x=x w=w bias=b pad=1
out y = relu x=y0

in x f32/2x5x9x7/nhwc
in w f32/6x5x3x3
in b f32/1x6x1x1
y0 = conv_forward x=x w=w pad=1
y1 = add a=y0 b=b
out y = relu x=y1

# an op read by the anchor that has the dims of its output: not a follower
in a f32/16x16
in b f32/16x16
a2 = relu x=a
out y = matmul a=a2 b=b

# after a normalization: a residual and activations; whole vectors, a row of several blocks, statistics wanted, a scalar
in x f32/5x64
in g f32/1x64
in h f32/1x64
in r f32/5x64
n = layer_norm x=x scale=g shift=h
s = add a=r b=n
out y = relu x=s ; as=bf16,f16

in x f32/5x67
in r f32/5x67
n = layer_norm x=x
out y = add a=n b=r ; as=bf16

in x f32/3x1024
in r f32/3x1024
n = rms_norm x=x
t = silu x=n
s = mul a=t b=0.5
out y = add a=s b=r ; as=bf16

in x bf16/2x131080
in g bf16/1x131080
in r bf16/2x131080
n = layer_norm x=x scale=g rstd=v
out y = add a=n b=r
out v

in x f32/4x16x8x8/nhwc
in g f32/1x16x1x1
in h f32/1x16x1x1
in r f32/4x16x8x8/nhwc
n = batch_norm x=x scale=g shift=h
s = add a=n b=r
out y = relu x=s ; as=bf16,f16

in x f32/4x3x8x8
in r f32/4x3x8x8
n = batch_norm x=x
t = gelu x=n
out y = mul a=t b=r ; as=bf16

in x f32/4x16x5x5/nhwc
in m f32/1x16x1x1
in v f32/1x16x1x1
in r f32/4x16x5x5/nhwc
n = batch_norm_inference x=x mean=m var=v
out y = add a=n b=r ; as=bf16

in x f32/3x2x4x16
in g f32/1x2x4x1
in r f32/3x2x4x16
n = layer_norm x=x scale=g axis=2,3
s = add a=n b=r
out y = silu x=s ; as=bf16

in x bf16/3x2x8x25/400:8:1:16
in g bf16/1x2x8x1
in r bf16/3x2x8x25/400:8:1:16
n = layer_norm x=x scale=g axis=2,3
s = add a=n b=r
out y = relu x=s

# before one: the sum alone, read elsewhere too, and with an activation after it
in a f32/5x72
in b f32/5x72
in g f32/1x72
out s = add a=a b=b
out y = rms_norm x=s scale=g ; as=bf16,f16

in a bf16/9x1032
in b bf16/9x1032
in g bf16/1x1032
in h f32/1x1032
s = add a=a b=b
out y = layer_norm x=s scale=g shift=h

in a f32/5x64
in b f32/5x64
out s = add a=a b=b
n = layer_norm x=s
out y = gelu x=n ; as=bf16

in a f32/2x131080
in b f32/2x131080
out s = add a=a b=b
out y = rms_norm x=s ; plain=1

# the sum is read by an op on which the norm's follower depends: not one region
in a f32/5x64
in b f32/5x64
in w f32/64x64
s = add a=a b=b
n = layer_norm x=s
m = matmul a=s b=w
out y = add a=n b=m

# a convolution with normalization by given statistics folded in; with a bias, a residual and activations
in x f32/2x8x7x7/nhwc
in w f32/16x8x3x3/nhwc
in m f32/1x16x1x1
in v f32/1x16x1x1
in g f32/1x16x1x1
in h f32/1x16x1x1
in r f32/2x16x7x7/nhwc
y0 = conv_forward x=x w=w pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
y2 = add a=y1 b=r
out y = relu x=y2 ; as=bf16,f16

in x f32/2x5x9x7
in w f32/6x5x3x3
in b f32/6
in m f32/1x6x1x1
in v f32/1x6x1x1
y0 = conv_forward x=x w=w bias=b pad=1
y1 = batch_norm_inference x=y0 mean=m var=v eps=0.5
out y = silu x=y1

in x bf16/2x64x9x9/nhwc
in w bf16/72x64x1x1/nhwc
in m f32/1x72x1x1
in v f32/1x72x1x1
in g bf16/1x72x1x1
in h bf16/1x72x1x1
y0 = conv_forward x=x w=w
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1

in x bf16/1x48x9x9/nhwc
in w bf16/48x24x3x3/nhwc
in m f32/1x48x1x1
in v f32/1x48x1x1
in h f32/1x48x1x1
y0 = conv_forward x=x w=w groups=2 pad=1
out y = batch_norm_inference x=y0 mean=m var=v shift=h eps=0.5

in x f32/1x8x9x9/nhwc
in w f32/8x1x3x3/nhwc
in m f32/1x8x1x1
in v f32/1x8x1x1
in g f32/1x8x1x1
in h f32/1x8x1x1
y0 = conv_forward x=x w=w groups=8 pad=1
out y = batch_norm_inference x=y0 mean=m var=v scale=g shift=h eps=0.125 ; as=bf16

in x bf16/2x3x20x20/nhwc
in w bf16/64x3x7x7/nhwc
in m f32/1x64x1x1
in v f32/1x64x1x1
in g f32/1x64x1x1
in h f32/1x64x1x1
y0 = conv_forward x=x w=w pad=3 stride=2
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1

# few channels in f32, with relu; a depthwise window in shared memory, with a bias; a residual before it, and a second one
in x f32/2x4x9x12
in w f32/6x4x3x3
in m f32/1x6x1x1
in v f32/1x6x1x1
in h f32/1x6x1x1
y0 = conv_forward x=x w=w pad=1
y1 = batch_norm_inference x=y0 mean=m var=v shift=h eps=0.25
out y = relu x=y1

in x f32/1x16x11x11/nhwc
in w f32/16x1x5x5/nhwc
in b f32/16
in m f32/1x16x1x1
in v f32/1x16x1x1
in g f32/1x16x1x1
y0 = conv_forward x=x w=w bias=b groups=16 pad=2
y1 = batch_norm_inference x=y0 mean=m var=v scale=g eps=0.25
out y = relu x=y1 ; as=bf16,f16

in x f32/2x8x7x7/nhwc
in w f32/16x8x3x3/nhwc
in r f32/2x16x7x7/nhwc
in m f32/1x16x1x1
in v f32/1x16x1x1
in g f32/1x16x1x1
in h f32/1x16x1x1
y0 = conv_forward x=x w=w pad=1
y1 = add a=y0 b=r
y2 = batch_norm_inference x=y1 mean=m var=v scale=g eps=0.25
y3 = batch_norm_inference x=y2 mean=h var=v eps=0.5
out y = relu x=y3 ; as=bf16

# depthwise, more channels than one pass takes
in x f32/1x1030x2x3/nhwc
in w f32/1030x1x3x3/nhwc
y0 = conv_forward x=x w=w groups=1030 pad=1
out y = silu x=y0

# The anchor's output is also read by an op that is not fused.

in a f32/17x19
in b f32/19x23
h = matmul a=a b=b
out y = relu x=h
out s = reduce_sum x=h axis=1 ; as=bf16

in x f32/2x5x7x7
in w f32/6x5x3x3
h = conv_forward x=x w=w pad=1
out y = relu x=h
out s = reduce_sum x=h axis=1

in x f32/1x6x9x9
in w f32/6x1x3x3
h = conv_forward x=x w=w groups=6 pad=1
out y = relu x=h
out s = reduce_sum x=h axis=1

in dy f32/2x6x7x7/nhwc
in w f32/6x8x3x3/nhwc
h = conv_backward_data dy=dy w=w dx=f32/2x8x7x7/nhwc pad=1
out y = relu x=h
out s = reduce_sum x=h axis=1

in x f32/7x64
in w f32/1x64
h = layer_norm x=x scale=w
out y = relu x=h
out s = reduce_sum x=h axis=1

# what precedes a convolution that reads its input in a layout of its own
in x f32/2x16x12x12
in w f32/16x16x3x3
r = relu x=x
out y = conv_forward x=r w=w pad=1

# the result of a no-op cast is used after its operand's memory is taken by another output
in a f32/5000
c = cast x=a y=f32/5000
out p over a = mul a=a b=2
out q = neg x=c

# a value in two roles of the anchor
in a f32/1x64
in b f32/1x64
s = add a=a b=b
out y = rms_norm x=s scale=s

# a side producer with two followers precedes both; also if the second is cut off
in a f32/6x8
in b f32/6x8
in c f32/6x8
s = sub a=b b=a
n = layer_norm x=c
m = mul a=s b=n
out u = add a=m b=b
r = relu x=m
out v over a = mul a=r b=s

in x f32/2x4x6x6
in w f32/4x4x3x3
y = conv_forward x=x w=w pad=1
s = abs x=x
r = relu x=y
out u = add a=s b=r
out v over x = mul a=s b=x

# a factor that overflows when rounded to tf32: relu would turn the sum into 0, which it is not; and an infinite factor
in a f32/64x4
in b f32/4x4
h = matmul a=a b=b
out y = relu x=h ; a.is=-3.4028235e38,100,0,0,inf,0,0,0 b.is=1e-37,1e-37,1e-37,1e-37,1,1,1,1,0,0,0,0,0,0,0,0

# i64 scalars keep digits that a double would lose
in a i64
b = add a=a b=1
out c = sub a=b b=a ; a.is=9007199254740992 c.is=1

# an engine that takes fewer ops than follow must read nothing of the rest
in x bf16/8x16x6x6/nhwc
y = batch_norm x=x
z = mul a=y b=0.5
out w = cast x=z y=f32/8x16x6x6/nhwc

# the last op has an empty output and is not in the plan; its inputs are in the workspace beside the engine's own part
in x f64/5x3x1x1
in w f64/4x3x3x3
y0 = conv_forward x=x w=w pad=1
y1 = relu x=y0
out y = pool_max x=y1 window=2 ; plain=1

# a sum over nothing is not fused: it goes to the generic engine by itself
in t f32/2x2x3
in x f32/2x0x7x5
in dy f32/2x0x6x5
g = affine_grid theta=t grid=f32/2x6x5x2
out dg = grid_sample_backward_grid dy=dy x=x grid=g ; plain=1

# depthwise on planes: what follows is fused in every layout; per channel, per image, an activation's gradient behind strided classes
in x f32/2x6x9x10
in w f32/6x1x3x3
in m f32/1x6x1x1
in v f32/1x6x1x1
in g f32/1x6x1x1
in h f32/1x6x1x1
y0 = conv_forward x=x w=w groups=6 pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h eps=0.125
out y = relu x=y1 ; as=bf16,f16

in x f16/2x5x14x11
in w f16/5x1x5x5
in b f16/5
in s f16/2x5x1x1
in r f16/2x5x7x6
y0 = conv_forward x=x w=w bias=b groups=5 pad=2 stride=2
y1 = mul a=y0 b=s
y2 = silu x=y1
out y = add a=y2 b=r ; as=f32

in x bf16/2x3x5x6x7
in w bf16/3x1x3x3x3
in r bf16/2x3x5x6x7
y0 = conv_forward x=x w=w groups=3 pad=1
y1 = add a=y0 b=r
out y = hardswish x=y1 ; as=f32

in dy f32/2x4x5x5
in w f32/4x1x3x3
in x f32/2x4x9x10
dx = conv_backward_data dy=dy w=w groups=4 pad=1 stride=2 dx=f32/2x4x9x10
out g = relu_backward dy=dx x=x ; as=bf16

# behind a convolution of planes: its product takes what follows, across the rows of its result, in one chunk and in several
in x f32/2x24x6x8
in w f32/16x24x1x1
in b f32/16
in m f32/1x16x1x1
in v f32/1x16x1x1
in g f32/1x16x1x1
in h f32/1x16x1x1
in r f32/2x16x6x8
y0 = conv_forward x=x w=w bias=b
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
y2 = add a=y1 b=r
out y = relu x=y2 ; as=f16,bf16

in x f32/7x3x40x37
in w f32/8x3x7x7
in b f32/8
in r f32/7x8x40x37
in c f32/1x8x1x1
y0 = conv_forward x=x w=w bias=b pad=3
y1 = mul a=c b=y0
out y = sub a=r b=y1 ; as=f16

in x f32/1x2x65x60
in w f32/4x2x9x9
in r f32/1x4x57x52
in m f32/1x4x1x1
in v f32/1x4x1x1
y0 = conv_forward x=x w=w
y1 = batch_norm_inference x=y0 mean=m var=v
out y = add a=r b=y1 ; as=f16

in x f32/2x24x6x8
in w f32/16x12x1x1
in b f32/16
in s f32/2x16x1x1
in c f32
y0 = conv_forward x=x w=w bias=b groups=2
y1 = mul a=y0 b=c
y2 = mul a=y1 b=s
y3 = add a=y0 b=y2
out y = relu x=y2
out z = neg x=y3

# Views: permutes and slices that are read where they are, where each reader has as good an engine for them.

in a f32/24x32
in b f32/40x32
t = permute x=b perm=1,0
out y = matmul a=a b=t ; as=bf16,f16,f64

in a f32/24x64
in b f32/64x40
s = slice x=a start=3,1 length=20,63
t = slice x=b start=1,0
out y = matmul a=s b=t ; as=bf16

in q f32/2x5x4x8
in k f32/2x7x4x8
in v f32/2x7x4x8
qh = permute x=q perm=0,2,1,3
kt = permute x=k perm=0,2,3,1
vh = permute x=v perm=0,2,1,3
s = matmul a=qh b=kt
p = softmax x=s
o = matmul a=p b=vh
t = permute x=o perm=0,2,1,3
out y = relu x=t ; as=bf16

in x f32/3x8x9
r = relu x=x
s = slice x=r start=0,1,2 step=1,2,3
p = permute x=s perm=2,0,1
u = slice x=p start=1,0,0
out y = mul a=u b=u
out z = reduce_sum x=s axis=1,2
out w = softmax x=u axis=2

in x f32/2x8x9x9
w0 = relu x=x
s = slice x=w0 start=0,0,1,1 length=2,8,7,7
in w f32/6x8x3x3
c = conv_forward x=s w=w pad=1
t = slice x=c start=0,2,0,0
out y = pool_max x=t window=2
out z = rms_norm x=s

in a f32/9x9
t = permute x=a perm=1,0
d = sub a=a b=t
out b over a = add a=a b=d
out y = matmul a=t b=b

in x f32/6x6
f = slice x=x start=5,0 step=-1,1
t = permute x=f perm=1,0
out y = add a=t b=x
out z = reduce_max x=t axis=1

# an op that reads another result of the op that it follows
in x f32/6x256
n = layer_norm x=x mean=m
out y = mul a=n b=m ; as=f16

in x f32/6x256
n = rms_norm x=x rstd=r
s = relu x=n
out y = sub a=r b=s

in x f32/4x6x8x8
n = batch_norm x=x mean=m rstd=r
s = mul a=n b=r
out y = add a=s b=m

# results that nobody reads, inside a chain and behind it
in a f32/4x9
b = neg x=a
out c = relu x=b
d = mul a=b b=b

in x bf16/5x33
in w bf16/33x17
y = matmul a=x b=w
out z = relu x=y
u = exp x=y

# filters of one tap over planes, and images of one pixel
in x f32/2x24x6x6
in w f32/40x24x1x1
in b f32/40
in m f32/1x40x1x1
in v f32/1x40x1x1
in g f32/1x40x1x1
in h f32/1x40x1x1
y0 = conv_forward x=x w=w bias=b
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; as=f16

in x f32/9x24x1x1
in w f32/40x24x1x1
in b f32/40
in r f32/9x40x1x1
y0 = conv_forward x=x w=w bias=b
y1 = sigmoid x=y0
out y = mul a=y1 b=r ; as=f16

# batch norm of planes that are in no whole vectors: relu goes with it, a sum does not
in x f32/3x5x3x7
in m f32/1x5x1x1
in v f32/1x5x1x1
in g f32/1x5x1x1
in h f32/1x5x1x1
n = batch_norm_inference x=x mean=m var=v scale=g shift=h
out y = relu x=n ; as=f16,bf16

in x f16/2x6x5x5
in m f32/1x6x1x1
in v f32/1x6x1x1
in z f16/2x6x5x5
n = batch_norm_inference x=x mean=m var=v
s = add a=n b=z
out y = relu x=s

# convolutions in other layouts, whose followers go between the copies: channels as they are, padded, in groups, shared with another op
in x f16/2x16x9x11
in w f16/24x16x3x3
in m f32/1x24x1x1
in v f32/1x24x1x1
in g f32/1x24x1x1
in h f32/1x24x1x1
in r f16/2x24x9x11
y0 = conv_forward x=x w=w pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
y2 = add a=y1 b=r
out y = relu x=y2 ; as=bf16

in x bf16/2x3x13x10
in w bf16/24x3x3x3
in b bf16/24
y0 = conv_forward x=x w=w bias=b pad=1 stride=2
y1 = relu x=y0
out y = cast x=y1 y=f32/2x24x7x5 ; as=f16

in x f16/2x16x9x11
in w f16/20x8x3x3
y0 = conv_forward x=x w=w pad=1 groups=2
out y = gelu x=y0

in x bf16/2x16x9x11
in w bf16/24x16x3x3
out y0 = conv_forward x=x w=w pad=1
y1 = mul a=y0 b=y0
out y = relu x=y1

# products whose bias goes by columns or by rows, and a matrix added behind it; rows that a factor multiplies
in a bf16/140x96
in b bf16/96x136
in v bf16/1x136
in r bf16/140x136
p = matmul a=a b=b
q = add a=p b=v
s = add a=q b=r
out y = relu x=s ; as=f16,f32

in a f16/140x96
in b f16/96x136
in v f16/140x1
in r f16/140x136
p = matmul a=a b=b
q = add a=p b=v
s = add a=q b=r
out y = relu x=s ; as=f32

in a bf16/3x72x64
in b bf16/3x64x136
in v f32/1x72x1
in f f32/1x72x1
in h f32/1x72x1
p = matmul a=a b=b
q = add a=p b=v
s = mul a=q b=f
out y = add a=s b=h

in a f16/200x96
in b f16/96x72
in f f32/1x72@4
in h f32/1x72
p = matmul a=a b=b
s = mul a=p b=f
out y = add a=s b=h

# a convolution and its shortcut: several tiles of channels and of pixels, and planes whose norm goes by rows
in x bf16/2x64x9x9/nhwc
in w bf16/328x64x1x1/nhwc
in m f32/1x328x1x1
in v f32/1x328x1x1
in g bf16/1x328x1x1
in h bf16/1x328x1x1
in r bf16/2x328x9x9/nhwc
y0 = conv_forward x=x w=w
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
y2 = add a=y1 b=r
out y = relu x=y2 ; as=f16

in x bf16/1x512x5x5/nhwc
in w bf16/72x512x3x3/nhwc
in b bf16/72
in r bf16/1x72x5x5/nhwc
y0 = conv_forward x=x w=w bias=b pad=1
out y = add a=y0 b=r

in x bf16/2x72x8x8
in w bf16/136x72x1x1
in m f32/1x136x1x1
in v f32/1x136x1x1
in g bf16/1x136x1x1
in h bf16/1x136x1x1
in r bf16/2x136x8x8
y0 = conv_forward x=x w=w
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
y2 = add a=y1 b=r
out y = relu x=y2 ; as=f16


in a i8/70x64
in b i8/64x72/t
in v i32/70x1
p = matmul a=a b=b
out y = add a=p b=v

# so many slices of an added matrix that they come round to the stage with the vectors
in a bf16/140x96
in b bf16/96x264
in v bf16/1x264
in r bf16/140x264
p = matmul a=a b=b
q = add a=p b=v
s = add a=q b=r
out y = relu x=s ; as=f16,f32

# channels last in, planes out: images of pixels and what is added to them, or is one to an image and channel
in x f16/2x16x9x8/nhwc
in w f16/24x16x3x3/nhwc
in r f16/2x24x9x8
y0 = conv_forward x=x w=w y=f16/2x24x9x8 pad=1
y1 = add a=y0 b=r
out y = relu x=y1

in x f16/3x64x6x7/nhwc
in w f16/40x64x3x3/nhwc
in b f16/40
in r f16/3x40x1x1
y0 = conv_forward x=x w=w bias=b y=f16/3x40x6x7 pad=1
y1 = mul a=y0 b=r
out y = relu x=y1
