# cross-entropy and its gradient: widths around vector lengths, labels ignored and out of range, smoothing, reductions, layouts.

# widths
cross_entropy x=f32/3x1 labels=i32/3x1 lse=? ; labels=0..0
cross_entropy x=f32/3x2 labels=i32/3x1 lse=? ; labels=0..1 as=bf16
cross_entropy x=f32/5x10 labels=i64/5x1 lse=? ; labels=0..9 as=f16,bf16,f64
cross_entropy x=f32/4x31 labels=i32/4x1 lse=? count=? ; labels=0..30
cross_entropy x=f32/4x32 labels=i32/4x1 ; labels=0..31 as=bf16
cross_entropy x=f32/4x33 labels=i32/4x1 lse=? smoothing=0.1 ; labels=0..32 as=f16
cross_entropy x=f32/2x257 labels=i32/2x1 lse=? smoothing=0.1 ; labels=0..256 as=bf16
cross_entropy x=f32/2x1000 labels=i64/2x1 lse=? smoothing=0.1 ; labels=0..999 as=bf16,f16,f64
cross_entropy x=bf16/2x1024 labels=i32/2x1 lse=? ; labels=0..1023
cross_entropy x=f32/2x4099 labels=i32/2x1 lse=? smoothing=0.3 ; labels=0..4098 as=bf16,f64
cross_entropy x=bf16/2x8192 labels=i64/2x1 lse=? ; labels=0..8191
cross_entropy x=f32/1x50257 labels=i64/1x1 lse=? smoothing=0.1 ; fill=signed labels=0..50256
cross_entropy x=bf16/3x32768 labels=i32/3x1 lse=? ; fill=signed:4 labels=0..32767
cross_entropy x=f32/300x10 labels=i32/300x1 lse=? ; labels=0..9

# labels: ignored, out of range
cross_entropy x=f32/40x7 labels=i32/40x1 lse=? count=? ignore=3 ; labels=-2..8
cross_entropy x=f32/40x7 labels=i64/40x1 lse=? ignore=-1 smoothing=0.2 ; labels=-2..8 as=bf16
cross_entropy x=f32/6x5 labels=i32/6x1 lse=? count=? ; labels.is=-100,0,-100,4,5,-1
cross_entropy x=f32/6x5 labels=i32/6x1 lse=? count=? reduction=mean ; labels.is=-100
cross_entropy x=f32/4x9 labels=i32/4x1 lse=? smoothing=1 ; labels=0..8

# values that must not overflow
cross_entropy x=f32/4x100 labels=i32/4x1 lse=? ; fill=far:1000,signed:80 labels=0..99 as=f64
cross_entropy x=f16/4x100 labels=i32/4x1 lse=? smoothing=0.1 ; fill=far:1000 labels=0..99
cross_entropy x=f32/3x2048 labels=i32/3x1 lse=? ; fill=ramp labels=0..2047

# reductions, over few and many rows
cross_entropy x=f32/5x10 labels=i64/5x1 reduction=mean lse=? count=? ; labels=0..9 as=f16,bf16,f64
cross_entropy x=f32/5x10 labels=i64/5x1 reduction=sum ; labels=0..9 as=bf16
cross_entropy x=f32/1000x10 labels=i32/1000x1 reduction=mean count=? ignore=4 ; labels=0..9
cross_entropy x=bf16/700x33 labels=i32/700x1 reduction=sum smoothing=0.1 lse=? ; labels=0..32
cross_entropy x=f32/70x1025 labels=i32/70x1 reduction=mean lse=? ; labels=0..1024
cross_entropy x=f32/1100x520 labels=i32/1100x1 reduction=mean lse=? count=? ; labels=0..519

# rows at any offset in a 16-byte word
cross_entropy x=bf16/9x1001 labels=i32/9x1 lse=? smoothing=0.1 ; labels=0..1000
cross_entropy x=f16/40x4099 labels=i32/40x1 reduction=mean lse=? ; labels=0..4098
cross_entropy_backward dy=f32/9x1 x=bf16/9x1001 labels=i32/9x1 lse=f32/9x1 smoothing=0.1 ; labels=0..1000
cross_entropy_backward dy=f32/9x1 x=f32/9x10 labels=i32/9x1 lse=f32/9x1 dx=x ; labels=-1..10 as=f16

# axes, strides, alignment
cross_entropy x=f32/3x7x4 labels=i32/3x1x4 axis=1 lse=? ; labels=0..6 as=bf16
cross_entropy x=f32/3x7x4x5/nhwc labels=i32/3x1x4x5 axis=1 lse=? reduction=mean ; labels=0..6 as=bf16
cross_entropy x=f32/7 labels=i32/1 lse=? ; labels=0..6
cross_entropy x=f32/7x5 labels=i32/1x5 axis=0 lse=? ; labels=0..6
cross_entropy x=f32/2x3x16 labels=i32/2x3x1 lse=f32/2x3x1/1:2:1 ; labels=0..15
cross_entropy x=f32/4x10/24:2 labels=i32/4x1/3:1 lse=? ; labels=0..9
cross_entropy x=f32/4x16@4 labels=i32/4x1 ; labels=0..15
cross_entropy x=bf16/5x9@2 labels=i64/5x1 lse=? ; labels=0..8
cross_entropy x=f32/4x10/0:1 labels=i32/4x1 ; labels=0..9
cross_entropy x=f32/0x10 labels=i32/0x1
cross_entropy x=f32/0x10 labels=i32/0x1 reduction=sum
cross_entropy x=f32/0x10 labels=i32/0x1 reduction=mean count=?

# gradients
cross_entropy_backward dy=f32/3x1 x=f32/3x7 labels=i32/3x1 lse=f32/3x1 ; labels=0..6 as=f64
cross_entropy_backward dy=f32/5x1 x=f32/5x10 labels=i64/5x1 lse=f32/5x1 smoothing=0.1 ; labels=0..9 as=f64
cross_entropy_backward dy=f32/40x1 x=bf16/40x7 labels=i32/40x1 lse=f32/40x1 ignore=3 smoothing=0.2 ; labels=-2..8
cross_entropy_backward dy=f32/1x1 x=f32/6x9 labels=i32/6x1 lse=f32/6x1 count=f32/1x1 reduction=mean ; labels=0..8 as=f64
cross_entropy_backward dy=f32/1x1 x=f16/6x9 labels=i32/6x1 lse=f32/6x1 count=f32/1x1 reduction=mean smoothing=0.1 ; labels=0..8
cross_entropy_backward dy=f32/1x1 x=f32/6x9 labels=i32/6x1 lse=f32/6x1 reduction=sum ; labels=0..8
cross_entropy_backward dy=f32/1x1 x=f32/300x33 labels=i32/300x1 lse=f32/300x1 count=f32/1x1 reduction=mean dx=bf16/300x33 ; labels=0..32
cross_entropy_backward dy=f32/2x1 x=bf16/2x8192 labels=i64/2x1 lse=f32/2x1 smoothing=0.1 ; labels=0..8191
cross_entropy_backward dy=f32/2x1 x=f32/2x4099 labels=i32/2x1 lse=f32/2x1 ; labels=0..4098
cross_entropy_backward dy=f32/3x1x4 x=f32/3x7x4 labels=i32/3x1x4 lse=f32/3x1x4 axis=1 smoothing=0.1 ; labels=0..6
cross_entropy_backward dy=f32/4x1 x=f32/4x10/24:2 labels=i32/4x1 lse=f32/4x1/3:1 dx=f32/4x10/10:1 ; labels=0..9
cross_entropy_backward dy=f32/4x1 x=f32/4x16 labels=i32/4x1 lse=f32/4x1 dx=x ; labels=0..15

# typical sizes of classifiers
in a bf16/12x20
in w bf16/20x10
in t i32/12x1
x = matmul a=a b=w
out l = cross_entropy x=x labels=t reduction=mean lse=s count=c smoothing=0.1
out s
out c

# a mean whose gradient underflows, or is beyond f32
cross_entropy_backward dy=f32/1x1 x=f32/1x3 labels=i32/1x1 lse=f32/1x1 count=f32/1x1 reduction=mean ; labels=0..2 dy.is=1.4e-45 count.is=3 lse.is=-80 x.is=1,2,3 plain=1
cross_entropy_backward dy=f32/1x1 x=f32/1x3 labels=i32/1x1 lse=f32/1x1 count=f32/1x1 reduction=mean ; labels=0..2 dy.is=3e38 count.is=1e-40 lse.is=500 x.is=1,2,3 plain=1

# few classes: several rows per warp, the last ones empty
cross_entropy x=f32/67x32 labels=i32/67x1 reduction=mean lse=? count=? ignore=3 ; labels=-1..33 as=bf16,f16
cross_entropy x=bf16/130x61 labels=i64/130x1 reduction=sum smoothing=0.1 lse=? ; labels=0..60
cross_entropy x=f32/64x29 labels=i32/64x1 smoothing=0.2 lse=? ; labels=0..28 x.fill=special
cross_entropy x=f32/67x101 labels=i32/67x1 reduction=mean lse=? count=? smoothing=0.1 ; labels=0..100 as=bf16

# an infinite dy multiplies the difference, not its terms
cross_entropy_backward dy=f32/4x13x1 x=bf16/4x13x17@2 labels=i32/4x13x1 lse=f32/4x13x1 ignore=0 ; fill=special seed=766 labels=-1..17

# terms of weight 0 are not added, not even infinite ones
cross_entropy x=f32/2x3 labels=i32/2x1 smoothing=1 ; x.is=-inf,0,1 labels=0..0 as=f64,bf16 plain=1
# long sums: one running f32 sum fails
cross_entropy x=f32/200000x2 labels=i32/200000x1 reduction=mean ; fill=const:0.1 labels=0..1 plain=1 kind=cpu

# terms of weight 0 are not added
cross_entropy x=f32/2x3 labels=i32/2x1 smoothing=1 ; fill=zero x.is=-inf,1,2,0,1,2 labels.is=0,2 loss.is=inf,1.4076059 loss.within=1e-6 plain=1

# large values: what is representable comes out
cross_entropy x=f32/67x101 labels=i32/67x1 lse=? count=? smoothing=0.1 reduction=mean ; fill=large,large:19 labels=0..100 as=bf16 plain=1
cross_entropy x=f32/3x1010 labels=i32/3x1 smoothing=0.1 ; fill=large:19,large labels=0..1009 as=bf16 plain=1

# class weights, soft labels, log-probabilities: widths, layouts, reductions
cross_entropy x=f32/5x10 labels=i64/5x1 weights=f32/10 lse=? count=? ; labels=0..9 as=f16,bf16,f64
cross_entropy x=f32/40x7 labels=i32/40x1 weights=f32/7 lse=? count=? ignore=3 smoothing=0.2 ; labels=-2..8 as=bf16
cross_entropy x=f32/70x33 labels=i32/70x1 weights=f32/33 reduction=mean count=? ignore=4 ; labels=0..32 weights.fill=pos as=f64
cross_entropy x=bf16/70x33 labels=i64/70x1 weights=f32/33 reduction=mean smoothing=0.1 count=? lse=? ; labels=-1..33 weights.fill=pos
cross_entropy x=f32/9x1030 labels=i32/9x1 weights=f32/1030 reduction=sum smoothing=0.1 ; labels=0..1029
cross_entropy x=f32/5x10 probabilities=f32/5x10 lse=? count=? ; as=f16,bf16,f64
cross_entropy x=f32/5x1025 probabilities=f32/5x1025 weights=f32/1025 smoothing=0.1 ; as=bf16
cross_entropy x=f32/41x7 probabilities=bf16/41x7 weights=f32/7 reduction=mean count=? lse=? ; probabilities.fill=pos as=f16
cross_entropy x=f32/41x7 probabilities=f32/41x7 reduction=sum ; probabilities.fill=pos as=f64
cross_entropy x=f32/5x10 labels=i64/5x1 input=log_probabilities count=? ; labels=-1..10 as=f16,bf16,f64
cross_entropy x=f32/50x10 labels=i64/50x1 weights=f32/10 input=log_probabilities count=? reduction=mean ignore=2 ; labels=0..9 weights.fill=pos
cross_entropy x=f32/5x600 labels=i32/5x1 weights=f32/600 input=log_probabilities smoothing=0.1 reduction=sum ; labels=0..599
cross_entropy x=f32/5x10 probabilities=f32/5x10 input=log_probabilities reduction=mean
cross_entropy x=f32/3x7x4x5/nhwc labels=i32/3x1x4x5 weights=f32/7 axis=1 lse=? reduction=mean ; labels=0..6 weights.fill=pos as=bf16
cross_entropy x=f32/3x7x4 probabilities=f32/3x7x4/56:1:7 weights=f32/7/2 axis=1 lse=? ; as=bf16
cross_entropy x=f32/7x5 probabilities=f32/7x5 axis=0 smoothing=0.3 lse=?
cross_entropy x=f32/7 probabilities=f32/7 weights=f32/7 count=?
cross_entropy x=f32/0x10 probabilities=f32/0x10 reduction=mean count=?
cross_entropy_backward dy=f32/5x1 x=f32/5x10 labels=i64/5x1 weights=f32/10 lse=f32/5x1 ; labels=-1..10 as=f64
cross_entropy_backward dy=f32/40x1 x=bf16/40x7 labels=i32/40x1 weights=f32/7 lse=f32/40x1 ignore=3 smoothing=0.2 ; labels=-2..8
cross_entropy_backward dy=f32/1x1 x=f32/6x9 labels=i32/6x1 weights=f32/9 lse=f32/6x1 count=f32/1x1 reduction=mean smoothing=0.1 ; labels=0..8 as=f64
cross_entropy_backward dy=f32/5x1 x=f32/5x1025 probabilities=f32/5x1025 weights=f32/1025 lse=f32/5x1 smoothing=0.1 dx=bf16/5x1025
cross_entropy_backward dy=f32/1x1 x=f16/6x9 probabilities=f32/6x9 lse=f32/6x1 count=f32/1x1 reduction=mean ; probabilities.fill=pos
cross_entropy_backward dy=f32/3x1x4 x=f32/3x7x4 probabilities=f32/3x7x4 weights=f32/7 lse=f32/3x1x4 axis=1 dx=x
cross_entropy_backward dy=f32/5x1 x=f32/5x10 labels=i64/5x1 weights=f32/10 input=log_probabilities ; labels=-1..10 as=f64
cross_entropy_backward dy=f32/1x1 x=bf16/50x10 labels=i64/50x1 count=f32/1x1 input=log_probabilities reduction=mean ignore=2 smoothing=0.1 dx=x ; labels=0..9
cross_entropy_backward dy=f32/5x1 x=f32/5x10 probabilities=f32/5x10 weights=f32/10 input=log_probabilities

# golden, from PyTorch, in f64
cross_entropy x=f64/4x3 labels=i64/4x1 weights=f64/3 lse=? ; x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 labels.is=2,0,-100,1 weights.is=0.5,2,1.25 loss.is=0.509507456,0.347056093,0,0.0494897803 lse.is=3.40760596,1.19411219,0,4.02474489 loss.within=1e-8 lse.within=1e-8 plain=1
cross_entropy x=f64/4x3 labels=i64/4x1 weights=f64/3 reduction=mean smoothing=0.1 count=? ; x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 labels.is=2,0,-100,1 weights.is=0.5,2,1.25 loss.is=0.377779345 count.is=3.75 loss.within=1e-8 plain=1
cross_entropy x=f64/4x3 probabilities=f64/4x3 weights=f64/3 smoothing=0.1 ; x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 probabilities.is=0.25,0.25,0.5,1,0,0,0.125,0.625,0.25,0,0.5,0.5 weights.is=0.5,2,1.25 loss.is=1.28450746,0.509531174,3.35332447,2.53928251 loss.within=1e-8 plain=1
cross_entropy x=f64/4x3 probabilities=f64/4x3 weights=f64/3 reduction=mean count=? ; x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 probabilities.is=0.25,0.25,0.5,1,0,0,0.125,0.625,0.25,0,0.5,0.5 weights.is=0.5,2,1.25 loss.is=1.90540842 count.is=4 loss.within=1e-8 plain=1
cross_entropy x=f64/4x3 labels=i64/4x1 weights=f64/3 input=log_probabilities reduction=mean ; x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 labels.is=2,0,-100,1 weights.is=0.5,2,1.25 loss.is=-3.2 loss.within=1e-15 plain=1
cross_entropy_backward dy=f64/1x1 x=f64/4x3 labels=i64/4x1 weights=f64/3 lse=f64/4x1 count=f64/1x1 reduction=mean smoothing=0.1 ; dy.is=1 x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 labels.is=2,0,-100,1 weights.is=0.5,2,1.25 lse.is=3.40760596,1.19411219,2.40760596,4.02474489 count.is=3.75 dx.is=0.0255657466,0.0637983792,-0.0893641259,-0.0478517259,-0.000687632217,0.0485393581,0,0,0,-0.00107016934,0.00300904976,-0.00193888042 dx.within=1e-8 plain=1
cross_entropy_backward dy=f64/1x1 x=f64/4x3 probabilities=f64/4x3 weights=f64/3 lse=f64/4x1 count=f64/1x1 reduction=mean smoothing=0.1 ; dy.is=1 x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 probabilities.is=0.25,0.25,0.5,1,0,0,0.125,0.625,0.25,0,0.5,0.5 weights.is=0.5,2,1.25 lse.is=3.40760596,1.19411219,2.40760596,4.02474489 count.is=4 dx.is=-0.00415711255,-0.0526890195,0.056846132,-0.044860993,-0.000644655203,0.0455056482,0.245788338,-0.262185783,0.0163974453,-0.00155790284,0.145508214,-0.143950311 dx.within=1e-8 plain=1
cross_entropy_backward dy=f64/1x1 x=f64/4x3 labels=i64/4x1 weights=f64/3 count=f64/1x1 reduction=mean input=log_probabilities ; dy.is=1 x.is=1,2,3,0.5,-1,0.25,2,0,1,-1,4,0 labels.is=2,0,-100,1 weights.is=0.5,2,1.25 count.is=3.75 dx.is=0,0,-0.333333333,-0.133333333,0,0,0,0,0,0,-0.533333333,0 dx.within=1e-8 plain=1

# the gradient by soft labels: as the other, without them; what has no weight gets none
cross_entropy_backward_probabilities dy=f32/5x1 x=f32/5x10 lse=f32/5x1 ; as=f64
cross_entropy_backward_probabilities dy=f32/5x1 x=bf16/5x10 weights=f32/10 lse=f32/5x1 smoothing=0.2
cross_entropy_backward_probabilities dy=f32/1x1 x=f16/6x9 weights=f32/9 lse=f32/6x1 count=f32/1x1 reduction=mean smoothing=0.1
cross_entropy_backward_probabilities dy=f32/1x1 x=f32/6x9 lse=f32/6x1 count=f32/1x1 reduction=mean ; as=f64
cross_entropy_backward_probabilities dy=f32/1x1 x=f32/6x9 lse=f32/6x1 reduction=sum dprobabilities=bf16/6x9
cross_entropy_backward_probabilities dy=f32/2x1 x=bf16/2x4099 weights=f32/4099 lse=f32/2x1 ; plain=1
cross_entropy_backward_probabilities dy=f32/3x1x4 x=f32/3x7x4 weights=f32/7/2 lse=f32/3x1x4 axis=1 ; as=bf16
cross_entropy_backward_probabilities dy=f32/1x5 x=f32/7x5 lse=f32/1x5 axis=0
cross_entropy_backward_probabilities dy=f32/3x1x4x5 x=f32/3x7x4x5/nhwc lse=f32/3x1x4x5 axis=1
cross_entropy_backward_probabilities dy=f32/4x1 x=f32/4x10/24:2 lse=f32/4x1/3:1
cross_entropy_backward_probabilities dy=f32/1 x=f32/7 lse=f32/1
cross_entropy_backward_probabilities dy=f32/5x1 x=f32/5x10 weights=f32/10 input=log_probabilities ; as=f64
cross_entropy_backward_probabilities dy=f32/1x1 x=bf16/50x10 count=f32/1x1 input=log_probabilities reduction=mean smoothing=0.1
cross_entropy_backward_probabilities dy=f32/4x1 x=f32/4x9 lse=f32/4x1 smoothing=1
cross_entropy_backward_probabilities dy=f32/0x1 x=f32/0x9 lse=f32/0x1
cross_entropy_backward_probabilities dy=f32/1x1 x=f32/1x3 weights=f32/3 lse=f32/1x1 ; dy.is=2 x.is=-inf,1,-inf weights.is=0,3,1 lse.is=1.5 dprobabilities.is=0,3,inf plain=1
cross_entropy_backward_probabilities dy=f64/1x1 x=f64/2x4 weights=f64/4 lse=f64/2x1 count=f64/1x1 reduction=mean smoothing=0.25 ; dy.is=0.75 x.is=0.5,-1,2,1.5,3,0,-0.5,1 weights.is=0.5,2,0,1.5 lse.is=2.6309780572365025,3.1950071985735939 count.is=2 dprobabilities.is=0.29966878929888319,2.0424251571955327,0,0.47713136789664945,0.027422887299411648,1.7971915491976467,0,0.9260186618982349 dprobabilities.within=1e-12 plain=1
