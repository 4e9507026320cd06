# Normalization at the sizes of transformers and convolutional networks, in bf16 and f32; names as in the anchor list.

layer_norm x=bf16/16384x8192 scale=bf16/1x8192 shift=bf16/1x8192 ; name=layernorm.16384x8192
rms_norm x=bf16/16384x8192 scale=bf16/1x8192 ; name=rmsnorm.16384x8192
layer_norm x=bf16/16384x1024 scale=bf16/1x1024 shift=bf16/1x1024 ; name=layernorm.16384x1024
rms_norm x=bf16/16384x1024 scale=bf16/1x1024 ; name=rmsnorm.16384x1024
layer_norm x=bf16/4096x4096 scale=bf16/1x4096 shift=bf16/1x4096 ; name=layernorm.4096x4096
rms_norm x=bf16/4096x4096 scale=bf16/1x4096 ; name=rmsnorm.4096x4096
layer_norm x=bf16/512x65536 scale=bf16/1x65536 shift=bf16/1x65536 ; name=layernorm.512x65536
rms_norm x=bf16/512x65536 scale=bf16/1x65536 ; name=rmsnorm.512x65536
layer_norm x=f32/16384x4096 scale=f32/1x4096 shift=f32/1x4096 mean=? rstd=? ; name=layernorm.f32.16384x4096
layer_norm_backward dy=bf16/16384x8192 x=bf16/16384x8192 scale=bf16/1x8192 mean=f32/16384x1 rstd=f32/16384x1 dscale=? dshift=? ; name=layernorm.bwd.16384x8192
layer_norm_backward dy=bf16/16384x1024 x=bf16/16384x1024 scale=bf16/1x1024 mean=f32/16384x1 rstd=f32/16384x1 dscale=? dshift=? ; name=layernorm.bwd.16384x1024
rms_norm_backward dy=bf16/4096x4096 x=bf16/4096x4096 scale=bf16/1x4096 rstd=f32/4096x1 dscale=? ; name=rmsnorm.bwd.4096x4096
batch_norm x=bf16/128x256x56x56/nhwc scale=f32/1x256x1x1 shift=f32/1x256x1x1 mean=? rstd=? ; name=batchnorm.n128.c256.56x56.nhwc
batch_norm x=bf16/128x64x112x112/nhwc scale=f32/1x64x1x1 shift=f32/1x64x1x1 mean=? rstd=? ; name=batchnorm.n128.c64.112x112.nhwc
batch_norm x=bf16/128x512x14x14/nhwc scale=f32/1x512x1x1 shift=f32/1x512x1x1 mean=? rstd=? ; name=batchnorm.n128.c512.14x14.nhwc
batch_norm x=bf16/128x256x56x56 scale=f32/1x256x1x1 shift=f32/1x256x1x1 mean=? rstd=? ; name=batchnorm.n128.c256.56x56.nchw
batch_norm x=bf16/128x64x112x112 scale=f32/1x64x1x1 shift=f32/1x64x1x1 mean=? rstd=? ; name=batchnorm.n128.c64.112x112.nchw
batch_norm x=bf16/128x512x14x14 scale=f32/1x512x1x1 shift=f32/1x512x1x1 mean=? rstd=? ; name=batchnorm.n128.c512.14x14.nchw
batch_norm_backward dy=bf16/128x256x56x56/nhwc x=bf16/128x256x56x56/nhwc scale=f32/1x256x1x1 mean=f32/1x256x1x1 rstd=f32/1x256x1x1 dscale=? dshift=? ; name=batchnorm.bwd.n128.c256.56x56.nhwc
batch_norm_backward dy=bf16/128x256x56x56 x=bf16/128x256x56x56 scale=f32/1x256x1x1 mean=f32/1x256x1x1 rstd=f32/1x256x1x1 dscale=? dshift=? ; name=batchnorm.bwd.n128.c256.56x56.nchw
batch_norm_inference x=bf16/128x256x56x56/nhwc mean=f32/1x256x1x1 var=f32/1x256x1x1 scale=f32/1x256x1x1 shift=f32/1x256x1x1 ; name=batchnorm.inference.n128.c256.56x56.nhwc
layer_norm x=bf16/128x32x8x3136 axis=2,3 scale=bf16/1x32x8x1 shift=bf16/1x32x8x1 ; name=groupnorm.g32.n128.c256.56x56.nchw
layer_norm x=bf16/128x32x2x12544 axis=2,3 scale=bf16/1x32x2x1 shift=bf16/1x32x2x1 ; name=groupnorm.g32.n128.c64.112x112.nchw
layer_norm x=bf16/128x32x16x196 axis=2,3 scale=bf16/1x32x16x1 shift=bf16/1x32x16x1 ; name=groupnorm.g32.n128.c512.14x14.nchw
layer_norm x=bf16/512x32x16x196 axis=2,3 scale=bf16/1x32x16x1 shift=bf16/1x32x16x1 ; name=groupnorm.g32.n512.c512.14x14.nchw
layer_norm x=bf16/128x32x8x3136/802816:8:1:256 axis=2,3 scale=bf16/1x32x8x1 shift=bf16/1x32x8x1 ; name=groupnorm.g32.n128.c256.56x56.nhwc
layer_norm x=bf16/128x32x2x12544/802816:2:1:64 axis=2,3 scale=bf16/1x32x2x1 shift=bf16/1x32x2x1 ; name=groupnorm.g32.n128.c64.112x112.nhwc
layer_norm x=bf16/512x32x16x196/100352:16:1:512 axis=2,3 scale=bf16/1x32x16x1 shift=bf16/1x32x16x1 ; name=groupnorm.g32.n512.c512.14x14.nhwc
layer_norm_backward dy=bf16/128x32x8x3136 x=bf16/128x32x8x3136 axis=2,3 scale=bf16/1x32x8x1 mean=f32/128x32x1x1 rstd=f32/128x32x1x1 dscale=? dshift=? ; name=groupnorm.bwd.g32.n128.c256.56x56.nchw
layer_norm_backward dy=bf16/128x32x8x3136/802816:8:1:256 x=bf16/128x32x8x3136/802816:8:1:256 axis=2,3 scale=bf16/1x32x8x1 mean=f32/128x32x1x1 rstd=f32/128x32x1x1 dscale=? dshift=? ; name=groupnorm.bwd.g32.n128.c256.56x56.nhwc
batch_norm x=bf16/128x2048x7x7 scale=f32/1x2048x1x1 shift=f32/1x2048x1x1 mean=? rstd=? ; name=batchnorm.n128.c2048.7x7.nchw
batch_norm x=bf16/128x512x28x28 scale=f32/1x512x1x1 shift=f32/1x512x1x1 mean=? rstd=? ; name=batchnorm.n128.c512.28x28.nchw
layer_norm x=bf16/128x32x8x784/200704:8:1:256 scale=bf16/1x32x8x1 shift=bf16/1x32x8x1 axis=2,3 ; name=groupnorm.g32.n128.c256.28x28.nhwc
layer_norm_backward dy=bf16/512x32x16x196/100352:16:1:512 x=bf16/512x32x16x196/100352:16:1:512 scale=bf16/1x32x16x1 mean=f32/512x32x1x1 rstd=f32/512x32x1x1 dscale=? dshift=? axis=2,3 ; name=groupnorm.bwd.g32.n512.c512.14x14.nhwc
layer_norm_backward dy=bf16/128x32x2x12544/802816:2:1:64 x=bf16/128x32x2x12544/802816:2:1:64 scale=bf16/1x32x2x1 mean=f32/128x32x1x1 rstd=f32/128x32x1x1 dscale=? dshift=? axis=2,3 ; name=groupnorm.bwd.g32.n128.c64.112x112.nhwc
layer_norm_backward dy=bf16/128x32x8x784/200704:8:1:256 x=bf16/128x32x8x784/200704:8:1:256 scale=bf16/1x32x8x1 mean=f32/128x32x1x1 rstd=f32/128x32x1x1 dscale=? dshift=? axis=2,3 ; name=groupnorm.bwd.g32.n128.c256.28x28.nhwc
batch_norm_backward dy=bf16/128x512x14x14 x=bf16/128x512x14x14 scale=f32/1x512x1x1 mean=f32/1x512x1x1 rstd=f32/1x512x1x1 dscale=? dshift=? ; name=batchnorm.bwd.n128.c512.14x14.nchw
batch_norm_backward dy=bf16/128x2048x7x7 x=bf16/128x2048x7x7 scale=f32/1x2048x1x1 mean=f32/1x2048x1x1 rstd=f32/1x2048x1x1 dscale=? dshift=? ; name=batchnorm.bwd.n128.c2048.7x7.nchw
batch_norm_backward dy=bf16/128x512x28x28 x=bf16/128x512x28x28 scale=f32/1x512x1x1 mean=f32/1x512x1x1 rstd=f32/1x512x1x1 dscale=? dshift=? ; name=batchnorm.bwd.n128.c512.28x28.nchw
batch_norm_backward dy=bf16/32x2048x7x7/nhwc x=bf16/32x2048x7x7/nhwc scale=f32/1x2048x1x1 mean=f32/1x2048x1x1 rstd=f32/1x2048x1x1 dscale=? dshift=? ; name=batchnorm.bwd.n32.c2048.7x7.nhwc
layer_norm x=bf16/128x1048576 scale=bf16/1x1048576 shift=bf16/1x1048576 ; name=layernorm.128x1048576
rms_norm x=f32/64x1048576 scale=f32/1x1048576 ; name=rmsnorm.f32.64x1048576

# a U-Net's group norm, channels last, whose groups are no power of two channels; layer norm's gradient under autocast
layer_norm x=f16/1x32x10x4096/1310720:10:1:320 axis=2,3 scale=f16/1x32x10x1 shift=f16/1x32x10x1 ; name=groupnorm.g32.n1.c320.64x64.nhwc
layer_norm x=f32/1x32x10x16384/5242880:10:1:320 axis=2,3 scale=f32/1x32x10x1 shift=f32/1x32x10x1 ; name=groupnorm.f32.g32.n1.c320.128x128.nhwc
layer_norm x=f16/1x4x20x65536 axis=2,3 scale=f16/1x4x20x1 shift=f16/1x4x20x1 ; name=groupnorm.g4.n1.c80.256x256.nchw
layer_norm_backward dy=f16/4x32x10x4096/1310720:10:1:320 x=f16/4x32x10x4096/1310720:10:1:320 axis=2,3 scale=f32/1x32x10x1 mean=f32/4x32x1x1 rstd=f32/4x32x1x1 dscale=? dshift=? ; name=groupnorm.bwd.g32.n4.c320.64x64.nhwc
layer_norm_backward dy=f16/1x32x40x4096/5242880:40:1:1280 x=f16/1x32x40x4096/5242880:40:1:1280 axis=2,3 scale=f32/1x32x40x1 mean=f32/1x32x1x1 rstd=f32/1x32x1x1 dscale=? dshift=? ; name=groupnorm.bwd.g32.n1.c1280.64x64.nhwc
layer_norm_backward dy=bf16/4096x768 x=bf16/4096x768 scale=f32/1x768 mean=f32/4096x1 rstd=f32/4096x1 dscale=f32/1x768 dshift=f32/1x768 ; name=layernorm.bwd.autocast.4096x768
# word vectors: rows that are no whole 16-byte words
layer_norm x=f16/4096x300 scale=f16/1x300 shift=f16/1x300 mean=? rstd=? ; name=layernorm.4096x300
layer_norm_backward dy=f16/4096x300 x=f16/4096x300 scale=f16/1x300 mean=f32/4096x1 rstd=f32/4096x1 dscale=f16/1x300 dshift=f16/1x300 ; name=layernorm.bwd.4096x300
# a residual stream in f32, normalized for products in 16 bits
layer_norm x=f32/16384x1024 scale=f32/1x1024 shift=f32/1x1024 y=bf16/16384x1024 ; name=layernorm.f32_to_bf16

# with the residual sum before it, which is also an output; with the ops that follow
in a bf16/16384x8192
in b bf16/16384x8192
in g bf16/1x8192
out s = add a=a b=b
out y = rms_norm x=s scale=g ; name=add.rmsnorm.16384x8192

in a bf16/65536x1024
in b bf16/65536x1024
in g bf16/1x1024
in h bf16/1x1024
out s = add a=a b=b
out y = layer_norm x=s scale=g shift=h ; name=add.layernorm.65536x1024

in x bf16/16384x4096
in r bf16/16384x4096
in g bf16/1x4096
n = rms_norm x=x scale=g
out y = add a=n b=r ; name=rmsnorm.add.16384x4096

in x bf16/128x32x8x3136/802816:8:1:256
in g bf16/1x32x8x1
in h bf16/1x32x8x1
n = layer_norm x=x scale=g shift=h axis=2,3
out y = silu x=n ; name=groupnorm.silu.n128.c256.56x56.nhwc

in x bf16/128x32x8x3136
in g bf16/1x32x8x1
in h bf16/1x32x8x1
n = layer_norm x=x scale=g shift=h axis=2,3
out y = silu x=n ; name=groupnorm.silu.n128.c256.56x56.nchw

in x bf16/128x256x56x56/nhwc
in r bf16/128x256x56x56/nhwc
in g f32/1x256x1x1
in h f32/1x256x1x1
n = batch_norm x=x scale=g shift=h mean=m rstd=v
s = add a=n b=r
out y = relu x=s
out m
out v ; name=batchnorm.add.relu.n128.c256.56x56.nhwc

in x bf16/128x256x56x56
in r bf16/128x256x56x56
in g f32/1x256x1x1
in h f32/1x256x1x1
n = batch_norm x=x scale=g shift=h mean=m rstd=v
s = add a=n b=r
out y = relu x=s
out m
out v ; name=batchnorm.add.relu.n128.c256.56x56.nchw

in x bf16/128x256x56x56/nhwc
in m f32/1x256x1x1
in v f32/1x256x1x1
in g f32/1x256x1x1
in h f32/1x256x1x1
n = batch_norm_inference x=x mean=m var=v scale=g shift=h
out y = relu x=n ; name=batchnorm.inference.relu.n128.c256.56x56.nhwc

# given statistics folded into a convolution, next to the same convolution with a bias
in x bf16/128x64x56x56/nhwc
in w bf16/256x64x1x1/nhwc
in m f32/1x256x1x1
in v f32/1x256x1x1
in g f32/1x256x1x1
in h f32/1x256x1x1
y0 = conv_forward x=x w=w
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; name=conv.batchnorm.relu.n128.c64.k256.56x56.1x1

in x bf16/128x64x56x56/nhwc
in w bf16/256x64x1x1/nhwc
in b bf16/256
y0 = conv_forward x=x w=w bias=b
out y = relu x=y0 ; name=conv.bias.relu.n128.c64.k256.56x56.1x1

in x bf16/128x128x28x28/nhwc
in w bf16/128x128x3x3/nhwc
in m f32/1x128x1x1
in v f32/1x128x1x1
in g f32/1x128x1x1
in h f32/1x128x1x1
y0 = conv_forward x=x w=w pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; name=conv.batchnorm.relu.n128.c128.k128.28x28.3x3

in x bf16/128x128x28x28/nhwc
in w bf16/128x128x3x3/nhwc
in b bf16/128
y0 = conv_forward x=x w=w bias=b pad=1
out y = relu x=y0 ; name=conv.bias.relu.n128.c128.k128.28x28.3x3

# and into others: depthwise, a first layer, f32, a batch of one
in x bf16/128x144x56x56/nhwc
in w bf16/144x1x3x3/nhwc
in m f32/1x144x1x1
in v f32/1x144x1x1
in g f32/1x144x1x1
in h f32/1x144x1x1
y0 = conv_forward x=x w=w groups=144 pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; name=conv.batchnorm.relu.n128.c144.56x56.depthwise

in x bf16/128x3x224x224/nhwc
in w bf16/64x3x7x7/nhwc
in m f32/1x64x1x1
in v f32/1x64x1x1
in g f32/1x64x1x1
in h f32/1x64x1x1
y0 = conv_forward x=x w=w pad=3 stride=2
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; name=conv.batchnorm.relu.n128.c3.k64.224x224.7x7

in x f32/32x64x56x56/nhwc
in w f32/64x64x3x3/nhwc
in m f32/1x64x1x1
in v f32/1x64x1x1
in g f32/1x64x1x1
in h f32/1x64x1x1
y0 = conv_forward x=x w=w pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; name=conv.batchnorm.relu.n32.c64.k64.56x56.3x3.f32

in x bf16/1x256x14x14/nhwc
in w bf16/256x256x3x3/nhwc
in m f32/1x256x1x1
in v f32/1x256x1x1
in g f32/1x256x1x1
in h f32/1x256x1x1
y0 = conv_forward x=x w=w pad=1
y1 = batch_norm_inference x=y0 mean=m var=v scale=g shift=h
out y = relu x=y1 ; name=conv.batchnorm.relu.n1.c256.k256.14x14.3x3
