# Blocks of networks whose branches do not depend on one another: GoogLeNet, SqueezeNet, a transformer's three projections. Channels last,
# f16, batches of 1, 8 and 32; 16, 128 and 1024 rows. What lanes (QUERN_LANES) are for.

# inception_3a b1
in x f16/1x192x28x28/nhwc
in w1 f16/64x192x1x1/nhwc
in b1 f16/64
c1 = conv_forward x=x w=w1 bias=b1 pad=0
r1 = relu x=c1
in w2 f16/96x192x1x1/nhwc
in b2 f16/96
c2 = conv_forward x=x w=w2 bias=b2 pad=0
r2 = relu x=c2
in w3 f16/128x96x3x3/nhwc
in b3 f16/128
c3 = conv_forward x=r2 w=w3 bias=b3 pad=1
r3 = relu x=c3
in w4 f16/16x192x1x1/nhwc
in b4 f16/16
c4 = conv_forward x=x w=w4 bias=b4 pad=0
r4 = relu x=c4
in w5 f16/32x16x5x5/nhwc
in b5 f16/32
c5 = conv_forward x=r4 w=w5 bias=b5 pad=2
r5 = relu x=c5
p = pool_max x=x window=3 stride=1 pad=1
in w6 f16/32x192x1x1/nhwc
in b6 f16/32
c6 = conv_forward x=p w=w6 bias=b6 pad=0
r6 = relu x=c6
out y = concat x=[r1,r3,r5,r6] axis=1

# inception_4a b1
in x f16/1x480x14x14/nhwc
in w1 f16/192x480x1x1/nhwc
in b1 f16/192
c1 = conv_forward x=x w=w1 bias=b1 pad=0
r1 = relu x=c1
in w2 f16/96x480x1x1/nhwc
in b2 f16/96
c2 = conv_forward x=x w=w2 bias=b2 pad=0
r2 = relu x=c2
in w3 f16/208x96x3x3/nhwc
in b3 f16/208
c3 = conv_forward x=r2 w=w3 bias=b3 pad=1
r3 = relu x=c3
in w4 f16/16x480x1x1/nhwc
in b4 f16/16
c4 = conv_forward x=x w=w4 bias=b4 pad=0
r4 = relu x=c4
in w5 f16/48x16x5x5/nhwc
in b5 f16/48
c5 = conv_forward x=r4 w=w5 bias=b5 pad=2
r5 = relu x=c5
p = pool_max x=x window=3 stride=1 pad=1
in w6 f16/64x480x1x1/nhwc
in b6 f16/64
c6 = conv_forward x=p w=w6 bias=b6 pad=0
r6 = relu x=c6
out y = concat x=[r1,r3,r5,r6] axis=1

# fire b1
in x f16/1x128x55x55/nhwc
in ws f16/16x128x1x1/nhwc
in bs f16/16
cs = conv_forward x=x w=ws bias=bs pad=0
rs = relu x=cs
in w1 f16/64x16x1x1/nhwc
in b1 f16/64
c1 = conv_forward x=rs w=w1 bias=b1 pad=0
r1 = relu x=c1
in w3 f16/64x16x3x3/nhwc
in b3 f16/64
c3 = conv_forward x=rs w=w3 bias=b3 pad=1
r3 = relu x=c3
out y = concat x=[r1,r3] axis=1

# inception_3a b8
in x f16/8x192x28x28/nhwc
in w1 f16/64x192x1x1/nhwc
in b1 f16/64
c1 = conv_forward x=x w=w1 bias=b1 pad=0
r1 = relu x=c1
in w2 f16/96x192x1x1/nhwc
in b2 f16/96
c2 = conv_forward x=x w=w2 bias=b2 pad=0
r2 = relu x=c2
in w3 f16/128x96x3x3/nhwc
in b3 f16/128
c3 = conv_forward x=r2 w=w3 bias=b3 pad=1
r3 = relu x=c3
in w4 f16/16x192x1x1/nhwc
in b4 f16/16
c4 = conv_forward x=x w=w4 bias=b4 pad=0
r4 = relu x=c4
in w5 f16/32x16x5x5/nhwc
in b5 f16/32
c5 = conv_forward x=r4 w=w5 bias=b5 pad=2
r5 = relu x=c5
p = pool_max x=x window=3 stride=1 pad=1
in w6 f16/32x192x1x1/nhwc
in b6 f16/32
c6 = conv_forward x=p w=w6 bias=b6 pad=0
r6 = relu x=c6
out y = concat x=[r1,r3,r5,r6] axis=1

# inception_4a b8
in x f16/8x480x14x14/nhwc
in w1 f16/192x480x1x1/nhwc
in b1 f16/192
c1 = conv_forward x=x w=w1 bias=b1 pad=0
r1 = relu x=c1
in w2 f16/96x480x1x1/nhwc
in b2 f16/96
c2 = conv_forward x=x w=w2 bias=b2 pad=0
r2 = relu x=c2
in w3 f16/208x96x3x3/nhwc
in b3 f16/208
c3 = conv_forward x=r2 w=w3 bias=b3 pad=1
r3 = relu x=c3
in w4 f16/16x480x1x1/nhwc
in b4 f16/16
c4 = conv_forward x=x w=w4 bias=b4 pad=0
r4 = relu x=c4
in w5 f16/48x16x5x5/nhwc
in b5 f16/48
c5 = conv_forward x=r4 w=w5 bias=b5 pad=2
r5 = relu x=c5
p = pool_max x=x window=3 stride=1 pad=1
in w6 f16/64x480x1x1/nhwc
in b6 f16/64
c6 = conv_forward x=p w=w6 bias=b6 pad=0
r6 = relu x=c6
out y = concat x=[r1,r3,r5,r6] axis=1

# fire b8
in x f16/8x128x55x55/nhwc
in ws f16/16x128x1x1/nhwc
in bs f16/16
cs = conv_forward x=x w=ws bias=bs pad=0
rs = relu x=cs
in w1 f16/64x16x1x1/nhwc
in b1 f16/64
c1 = conv_forward x=rs w=w1 bias=b1 pad=0
r1 = relu x=c1
in w3 f16/64x16x3x3/nhwc
in b3 f16/64
c3 = conv_forward x=rs w=w3 bias=b3 pad=1
r3 = relu x=c3
out y = concat x=[r1,r3] axis=1

# inception_3a b32
in x f16/32x192x28x28/nhwc
in w1 f16/64x192x1x1/nhwc
in b1 f16/64
c1 = conv_forward x=x w=w1 bias=b1 pad=0
r1 = relu x=c1
in w2 f16/96x192x1x1/nhwc
in b2 f16/96
c2 = conv_forward x=x w=w2 bias=b2 pad=0
r2 = relu x=c2
in w3 f16/128x96x3x3/nhwc
in b3 f16/128
c3 = conv_forward x=r2 w=w3 bias=b3 pad=1
r3 = relu x=c3
in w4 f16/16x192x1x1/nhwc
in b4 f16/16
c4 = conv_forward x=x w=w4 bias=b4 pad=0
r4 = relu x=c4
in w5 f16/32x16x5x5/nhwc
in b5 f16/32
c5 = conv_forward x=r4 w=w5 bias=b5 pad=2
r5 = relu x=c5
p = pool_max x=x window=3 stride=1 pad=1
in w6 f16/32x192x1x1/nhwc
in b6 f16/32
c6 = conv_forward x=p w=w6 bias=b6 pad=0
r6 = relu x=c6
out y = concat x=[r1,r3,r5,r6] axis=1

# inception_4a b32
in x f16/32x480x14x14/nhwc
in w1 f16/192x480x1x1/nhwc
in b1 f16/192
c1 = conv_forward x=x w=w1 bias=b1 pad=0
r1 = relu x=c1
in w2 f16/96x480x1x1/nhwc
in b2 f16/96
c2 = conv_forward x=x w=w2 bias=b2 pad=0
r2 = relu x=c2
in w3 f16/208x96x3x3/nhwc
in b3 f16/208
c3 = conv_forward x=r2 w=w3 bias=b3 pad=1
r3 = relu x=c3
in w4 f16/16x480x1x1/nhwc
in b4 f16/16
c4 = conv_forward x=x w=w4 bias=b4 pad=0
r4 = relu x=c4
in w5 f16/48x16x5x5/nhwc
in b5 f16/48
c5 = conv_forward x=r4 w=w5 bias=b5 pad=2
r5 = relu x=c5
p = pool_max x=x window=3 stride=1 pad=1
in w6 f16/64x480x1x1/nhwc
in b6 f16/64
c6 = conv_forward x=p w=w6 bias=b6 pad=0
r6 = relu x=c6
out y = concat x=[r1,r3,r5,r6] axis=1

# fire b32
in x f16/32x128x55x55/nhwc
in ws f16/16x128x1x1/nhwc
in bs f16/16
cs = conv_forward x=x w=ws bias=bs pad=0
rs = relu x=cs
in w1 f16/64x16x1x1/nhwc
in b1 f16/64
c1 = conv_forward x=rs w=w1 bias=b1 pad=0
r1 = relu x=c1
in w3 f16/64x16x3x3/nhwc
in b3 f16/64
c3 = conv_forward x=rs w=w3 bias=b3 pad=1
r3 = relu x=c3
out y = concat x=[r1,r3] axis=1

# three projections m16
in x f16/16x1024
in wq f16/1024x1024
out yq = matmul a=x b=wq
in wk f16/1024x1024
out yk = matmul a=x b=wk
in wv f16/1024x1024
out yv = matmul a=x b=wv

# three projections m128
in x f16/128x1024
in wq f16/1024x1024
out yq = matmul a=x b=wq
in wk f16/1024x1024
out yk = matmul a=x b=wk
in wv f16/1024x1024
out yv = matmul a=x b=wv

# three projections m1024
in x f16/1024x1024
in wq f16/1024x1024
out yq = matmul a=x b=wq
in wk f16/1024x1024
out yk = matmul a=x b=wk
in wv f16/1024x1024
out yv = matmul a=x b=wv
