# The anchor list (compared with a GPU's incumbents) in bf16: matmul (b transposed, as PyTorch's linear layers store it), convolutions
# in three directions, memory-bound ops. For a GPU.

matmul a=bf16/8192x8192 b=bf16/8192x8192/t ; name=matmul.bf16.m8192.n8192.k8192
matmul a=bf16/4096x4096 b=bf16/4096x4096/t ; name=matmul.bf16.m4096.n4096.k4096
matmul a=bf16/2048x2048 b=bf16/2048x2048/t ; name=matmul.bf16.m2048.n2048.k2048
matmul a=bf16/1024x1024 b=bf16/1024x1024/t ; name=matmul.bf16.m1024.n1024.k1024
matmul a=bf16/512x512 b=bf16/512x512/t ; name=matmul.bf16.m512.n512.k512
matmul a=bf16/4096x4096 b=bf16/4096x14336/t ; name=matmul.bf16.m4096.n14336.k4096
matmul a=bf16/4096x14336 b=bf16/14336x4096/t ; name=matmul.bf16.m4096.n4096.k14336
matmul a=bf16/128x8192 b=bf16/8192x8192/t ; name=matmul.bf16.m128.n8192.k8192
matmul a=bf16/64x8192 b=bf16/8192x8192/t ; name=matmul.bf16.m64.n8192.k8192
matmul a=bf16/16x8192 b=bf16/8192x8192/t ; name=matmul.bf16.m16.n8192.k8192
matmul a=bf16/1x8192 b=bf16/8192x8192/t ; name=matmul.bf16.m1.n8192.k8192
matmul a=bf16/1000x1000 b=bf16/1000x1000/t ; name=matmul.bf16.m1000.n1000.k1000
matmul a=bf16/129x513 b=bf16/513x257/t ; name=matmul.bf16.m129.n257.k513
matmul a=f16/8192x8192 b=f16/8192x8192/t ; name=matmul.f16.m8192.n8192.k8192
matmul a=f16/4096x4096 b=f16/4096x4096/t ; name=matmul.f16.m4096.n4096.k4096
matmul a=f16/2048x2048 b=f16/2048x2048/t ; name=matmul.f16.m2048.n2048.k2048
matmul a=f16/1024x1024 b=f16/1024x1024/t ; name=matmul.f16.m1024.n1024.k1024
matmul a=f16/512x512 b=f16/512x512/t ; name=matmul.f16.m512.n512.k512
matmul a=f16/4096x4096 b=f16/4096x14336/t ; name=matmul.f16.m4096.n14336.k4096
matmul a=f16/4096x14336 b=f16/14336x4096/t ; name=matmul.f16.m4096.n4096.k14336
matmul a=f16/128x8192 b=f16/8192x8192/t ; name=matmul.f16.m128.n8192.k8192
matmul a=f16/64x8192 b=f16/8192x8192/t ; name=matmul.f16.m64.n8192.k8192
matmul a=f16/16x8192 b=f16/8192x8192/t ; name=matmul.f16.m16.n8192.k8192
matmul a=f16/1x8192 b=f16/8192x8192/t ; name=matmul.f16.m1.n8192.k8192
matmul a=f16/1000x1000 b=f16/1000x1000/t ; name=matmul.f16.m1000.n1000.k1000
matmul a=f16/129x513 b=f16/513x257/t ; name=matmul.f16.m129.n257.k513

# convolutions, nhwc
conv_forward x=bf16/64x3x224x224/nhwc w=bf16/64x3x7x7/nhwc stride=2 pad=3 ; name=rn50.conv1.fwd
conv_forward x=bf16/64x64x56x56/nhwc w=bf16/64x64x1x1/nhwc ; name=rn50.2a.1x1.fwd
conv_forward x=bf16/64x64x56x56/nhwc w=bf16/64x64x3x3/nhwc pad=1 ; name=rn50.2b.3x3.fwd
conv_forward x=bf16/64x64x56x56/nhwc w=bf16/256x64x1x1/nhwc ; name=rn50.2c.1x1.fwd
conv_forward x=bf16/64x128x56x56/nhwc w=bf16/128x128x3x3/nhwc stride=2 pad=1 ; name=rn50.3b.3x3.s2.fwd
conv_forward x=bf16/64x128x28x28/nhwc w=bf16/128x128x3x3/nhwc pad=1 ; name=rn50.3b.3x3.fwd
conv_forward x=bf16/64x256x56x56/nhwc w=bf16/512x256x1x1/nhwc stride=2 ; name=rn50.3ds.s2.fwd
conv_forward x=bf16/64x128x28x28/nhwc w=bf16/512x128x1x1/nhwc ; name=rn50.3c.1x1.fwd
conv_forward x=bf16/64x256x14x14/nhwc w=bf16/256x256x3x3/nhwc pad=1 ; name=rn50.4b.3x3.fwd
conv_forward x=bf16/64x256x28x28/nhwc w=bf16/256x256x3x3/nhwc stride=2 pad=1 ; name=rn50.4b.3x3.s2.fwd
conv_forward x=bf16/64x256x14x14/nhwc w=bf16/1024x256x1x1/nhwc ; name=rn50.4c.1x1.fwd
conv_forward x=bf16/64x512x7x7/nhwc w=bf16/512x512x3x3/nhwc pad=1 ; name=rn50.5b.3x3.fwd
conv_forward x=bf16/64x512x7x7/nhwc w=bf16/2048x512x1x1/nhwc ; name=rn50.5c.1x1.fwd
conv_forward x=bf16/16x320x64x64/nhwc w=bf16/320x320x3x3/nhwc pad=1 ; name=unet.3x3.320.fwd
conv_forward x=bf16/32x512x28x28/nhwc w=bf16/512x512x3x3/nhwc pad=1 ; name=vgg.3x3.512.fwd
conv_forward x=bf16/64x144x56x56/nhwc w=bf16/144x1x3x3/nhwc pad=1 groups=144 ; name=dw.3x3.144.fwd
conv_forward x=bf16/64x384x14x14/nhwc w=bf16/384x1x7x7/nhwc pad=3 groups=384 ; name=convnext.dw.7x7.384.fwd
conv_forward x=bf16/64x256x28x28/nhwc w=bf16/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext.g32.fwd
conv_forward x=bf16/64x3x32x32/nhwc w=bf16/64x3x3x3/nhwc pad=1 ; name=effcnn.conv1.fwd
conv_forward x=bf16/64x64x16x16/nhwc w=bf16/128x64x3x3/nhwc pad=1 ; name=effcnn.conv2.fwd
conv_forward x=bf16/128x96x27x27/nhwc w=bf16/256x96x5x5/nhwc pad=2 ; name=alexnet.conv2.5x5.fwd
conv_backward_data dy=bf16/64x64x112x112/nhwc w=bf16/64x3x7x7/nhwc dx=bf16/64x3x224x224/nhwc stride=2 pad=3 ; name=rn50.conv1.bwd_data
conv_backward_data dy=bf16/64x64x56x56/nhwc w=bf16/64x64x1x1/nhwc dx=bf16/64x64x56x56/nhwc ; name=rn50.2a.1x1.bwd_data
conv_backward_data dy=bf16/64x64x56x56/nhwc w=bf16/64x64x3x3/nhwc dx=bf16/64x64x56x56/nhwc pad=1 ; name=rn50.2b.3x3.bwd_data
conv_backward_data dy=bf16/64x256x56x56/nhwc w=bf16/256x64x1x1/nhwc dx=bf16/64x64x56x56/nhwc ; name=rn50.2c.1x1.bwd_data
conv_backward_data dy=bf16/64x128x28x28/nhwc w=bf16/128x128x3x3/nhwc dx=bf16/64x128x56x56/nhwc stride=2 pad=1 ; name=rn50.3b.3x3.s2.bwd_data
conv_backward_data dy=bf16/64x128x28x28/nhwc w=bf16/128x128x3x3/nhwc dx=bf16/64x128x28x28/nhwc pad=1 ; name=rn50.3b.3x3.bwd_data
conv_backward_data dy=bf16/64x512x28x28/nhwc w=bf16/512x256x1x1/nhwc dx=bf16/64x256x56x56/nhwc stride=2 ; name=rn50.3ds.s2.bwd_data
conv_backward_data dy=bf16/64x512x28x28/nhwc w=bf16/512x128x1x1/nhwc dx=bf16/64x128x28x28/nhwc ; name=rn50.3c.1x1.bwd_data
conv_backward_data dy=bf16/64x256x14x14/nhwc w=bf16/256x256x3x3/nhwc dx=bf16/64x256x14x14/nhwc pad=1 ; name=rn50.4b.3x3.bwd_data
conv_backward_data dy=bf16/64x256x14x14/nhwc w=bf16/256x256x3x3/nhwc dx=bf16/64x256x28x28/nhwc stride=2 pad=1 ; name=rn50.4b.3x3.s2.bwd_data
conv_backward_data dy=bf16/64x1024x14x14/nhwc w=bf16/1024x256x1x1/nhwc dx=bf16/64x256x14x14/nhwc ; name=rn50.4c.1x1.bwd_data
conv_backward_data dy=bf16/64x512x7x7/nhwc w=bf16/512x512x3x3/nhwc dx=bf16/64x512x7x7/nhwc pad=1 ; name=rn50.5b.3x3.bwd_data
conv_backward_data dy=bf16/64x2048x7x7/nhwc w=bf16/2048x512x1x1/nhwc dx=bf16/64x512x7x7/nhwc ; name=rn50.5c.1x1.bwd_data
conv_backward_data dy=bf16/16x320x64x64/nhwc w=bf16/320x320x3x3/nhwc dx=bf16/16x320x64x64/nhwc pad=1 ; name=unet.3x3.320.bwd_data
conv_backward_data dy=bf16/32x512x28x28/nhwc w=bf16/512x512x3x3/nhwc dx=bf16/32x512x28x28/nhwc pad=1 ; name=vgg.3x3.512.bwd_data
conv_backward_data dy=bf16/64x144x56x56/nhwc w=bf16/144x1x3x3/nhwc dx=bf16/64x144x56x56/nhwc pad=1 groups=144 ; name=dw.3x3.144.bwd_data
conv_backward_data dy=bf16/64x384x14x14/nhwc w=bf16/384x1x7x7/nhwc dx=bf16/64x384x14x14/nhwc pad=3 groups=384 ; name=convnext.dw.7x7.384.bwd_data
conv_backward_data dy=bf16/64x256x28x28/nhwc w=bf16/256x8x3x3/nhwc dx=bf16/64x256x28x28/nhwc pad=1 groups=32 ; name=resnext.g32.bwd_data
conv_backward_data dy=bf16/64x64x32x32/nhwc w=bf16/64x3x3x3/nhwc dx=bf16/64x3x32x32/nhwc pad=1 ; name=effcnn.conv1.bwd_data
conv_backward_data dy=bf16/64x128x16x16/nhwc w=bf16/128x64x3x3/nhwc dx=bf16/64x64x16x16/nhwc pad=1 ; name=effcnn.conv2.bwd_data
conv_backward_data dy=bf16/128x256x27x27/nhwc w=bf16/256x96x5x5/nhwc dx=bf16/128x96x27x27/nhwc pad=2 ; name=alexnet.conv2.5x5.bwd_data
conv_backward_filter x=bf16/64x3x224x224/nhwc dy=bf16/64x64x112x112/nhwc dw=bf16/64x3x7x7/nhwc stride=2 pad=3 ; name=rn50.conv1.bwd_filter
conv_backward_filter x=bf16/64x64x56x56/nhwc dy=bf16/64x64x56x56/nhwc dw=bf16/64x64x1x1/nhwc ; name=rn50.2a.1x1.bwd_filter
conv_backward_filter x=bf16/64x64x56x56/nhwc dy=bf16/64x64x56x56/nhwc dw=bf16/64x64x3x3/nhwc pad=1 ; name=rn50.2b.3x3.bwd_filter
conv_backward_filter x=bf16/64x64x56x56/nhwc dy=bf16/64x256x56x56/nhwc dw=bf16/256x64x1x1/nhwc ; name=rn50.2c.1x1.bwd_filter
conv_backward_filter x=bf16/64x128x56x56/nhwc dy=bf16/64x128x28x28/nhwc dw=bf16/128x128x3x3/nhwc stride=2 pad=1 ; name=rn50.3b.3x3.s2.bwd_filter
conv_backward_filter x=bf16/64x128x28x28/nhwc dy=bf16/64x128x28x28/nhwc dw=bf16/128x128x3x3/nhwc pad=1 ; name=rn50.3b.3x3.bwd_filter
conv_backward_filter x=bf16/64x256x56x56/nhwc dy=bf16/64x512x28x28/nhwc dw=bf16/512x256x1x1/nhwc stride=2 ; name=rn50.3ds.s2.bwd_filter
conv_backward_filter x=bf16/64x128x28x28/nhwc dy=bf16/64x512x28x28/nhwc dw=bf16/512x128x1x1/nhwc ; name=rn50.3c.1x1.bwd_filter
conv_backward_filter x=bf16/64x256x14x14/nhwc dy=bf16/64x256x14x14/nhwc dw=bf16/256x256x3x3/nhwc pad=1 ; name=rn50.4b.3x3.bwd_filter
conv_backward_filter x=bf16/64x256x28x28/nhwc dy=bf16/64x256x14x14/nhwc dw=bf16/256x256x3x3/nhwc stride=2 pad=1 ; name=rn50.4b.3x3.s2.bwd_filter
conv_backward_filter x=bf16/64x256x14x14/nhwc dy=bf16/64x1024x14x14/nhwc dw=bf16/1024x256x1x1/nhwc ; name=rn50.4c.1x1.bwd_filter
conv_backward_filter x=bf16/64x512x7x7/nhwc dy=bf16/64x512x7x7/nhwc dw=bf16/512x512x3x3/nhwc pad=1 ; name=rn50.5b.3x3.bwd_filter
conv_backward_filter x=bf16/64x512x7x7/nhwc dy=bf16/64x2048x7x7/nhwc dw=bf16/2048x512x1x1/nhwc ; name=rn50.5c.1x1.bwd_filter
conv_backward_filter x=bf16/16x320x64x64/nhwc dy=bf16/16x320x64x64/nhwc dw=bf16/320x320x3x3/nhwc pad=1 ; name=unet.3x3.320.bwd_filter
conv_backward_filter x=bf16/32x512x28x28/nhwc dy=bf16/32x512x28x28/nhwc dw=bf16/512x512x3x3/nhwc pad=1 ; name=vgg.3x3.512.bwd_filter
conv_backward_filter x=bf16/64x144x56x56/nhwc dy=bf16/64x144x56x56/nhwc dw=bf16/144x1x3x3/nhwc pad=1 groups=144 ; name=dw.3x3.144.bwd_filter
conv_backward_filter x=bf16/64x384x14x14/nhwc dy=bf16/64x384x14x14/nhwc dw=bf16/384x1x7x7/nhwc pad=3 groups=384 ; name=convnext.dw.7x7.384.bwd_filter
conv_backward_filter x=bf16/64x256x28x28/nhwc dy=bf16/64x256x28x28/nhwc dw=bf16/256x8x3x3/nhwc pad=1 groups=32 ; name=resnext.g32.bwd_filter
conv_backward_filter x=bf16/64x3x32x32/nhwc dy=bf16/64x64x32x32/nhwc dw=bf16/64x3x3x3/nhwc pad=1 ; name=effcnn.conv1.bwd_filter
conv_backward_filter x=bf16/64x64x16x16/nhwc dy=bf16/64x128x16x16/nhwc dw=bf16/128x64x3x3/nhwc pad=1 ; name=effcnn.conv2.bwd_filter
conv_backward_filter x=bf16/128x96x27x27/nhwc dy=bf16/128x256x27x27/nhwc dw=bf16/256x96x5x5/nhwc pad=2 ; name=alexnet.conv2.5x5.bwd_filter

# memory
softmax x=bf16/16384x8192 ; name=softmax.16384x8192
gelu x=bf16/16384x8192 ; name=gelu.16384x8192
relu x=bf16/16384x8192 ; name=relu.16384x8192
reduce_sum x=bf16/16384x8192 axis=1 ; name=sum.dim1.16384x8192
reduce_sum x=bf16/16384x8192 axis=0 ; name=sum.dim0.16384x8192
permute x=bf16/16384x8192 perm=1,0 ; name=transpose.16384x8192
softmax x=bf16/16384x1024 ; name=softmax.16384x1024
gelu x=bf16/16384x1024 ; name=gelu.16384x1024
relu x=bf16/16384x1024 ; name=relu.16384x1024
reduce_sum x=bf16/16384x1024 axis=1 ; name=sum.dim1.16384x1024
reduce_sum x=bf16/16384x1024 axis=0 ; name=sum.dim0.16384x1024
permute x=bf16/16384x1024 perm=1,0 ; name=transpose.16384x1024
softmax x=bf16/4096x4096 ; name=softmax.4096x4096
gelu x=bf16/4096x4096 ; name=gelu.4096x4096
relu x=bf16/4096x4096 ; name=relu.4096x4096
reduce_sum x=bf16/4096x4096 axis=1 ; name=sum.dim1.4096x4096
reduce_sum x=bf16/4096x4096 axis=0 ; name=sum.dim0.4096x4096
permute x=bf16/4096x4096 perm=1,0 ; name=transpose.4096x4096
softmax x=bf16/512x65536 ; name=softmax.512x65536
gelu x=bf16/512x65536 ; name=gelu.512x65536
relu x=bf16/512x65536 ; name=relu.512x65536
reduce_sum x=bf16/512x65536 axis=1 ; name=sum.dim1.512x65536
reduce_sum x=bf16/512x65536 axis=0 ; name=sum.dim0.512x65536
permute x=bf16/512x65536 perm=1,0 ; name=transpose.512x65536
pool_max x=bf16/128x256x56x56/nhwc window=3 stride=2 pad=1 ; name=maxpool.3x3.s2.n128.c256.56x56.nhwc
pool_average x=bf16/128x256x56x56/nhwc window=3 stride=2 pad=1 ; name=avgpool.3x3.s2.n128.c256.56x56.nhwc
pool_average x=bf16/128x256x56x56/nhwc window=8 ; name=adaptive.avgpool.7x7.n128.c256.56x56.nhwc
pool_max x=bf16/128x64x112x112/nhwc window=3 stride=2 pad=1 ; name=maxpool.3x3.s2.n128.c64.112x112.nhwc
pool_average x=bf16/128x64x112x112/nhwc window=3 stride=2 pad=1 ; name=avgpool.3x3.s2.n128.c64.112x112.nhwc
pool_average x=bf16/128x64x112x112/nhwc window=16 ; name=adaptive.avgpool.7x7.n128.c64.112x112.nhwc
pool_max x=bf16/128x512x14x14/nhwc window=3 stride=2 pad=1 ; name=maxpool.3x3.s2.n128.c512.14x14.nhwc
pool_average x=bf16/128x512x14x14/nhwc window=3 stride=2 pad=1 ; name=avgpool.3x3.s2.n128.c512.14x14.nhwc
pool_average x=bf16/128x512x14x14/nhwc window=2 ; name=adaptive.avgpool.7x7.n128.c512.14x14.nhwc
pool_max x=bf16/128x256x56x56 window=3 stride=2 pad=1 ; name=maxpool.3x3.s2.n128.c256.56x56.nchw
pool_average x=bf16/128x256x56x56 window=3 stride=2 pad=1 ; name=avgpool.3x3.s2.n128.c256.56x56.nchw
pool_average x=bf16/128x256x56x56 window=8 ; name=adaptive.avgpool.7x7.n128.c256.56x56.nchw
pool_max x=bf16/128x64x112x112 window=3 stride=2 pad=1 ; name=maxpool.3x3.s2.n128.c64.112x112.nchw
pool_average x=bf16/128x64x112x112 window=3 stride=2 pad=1 ; name=avgpool.3x3.s2.n128.c64.112x112.nchw
pool_average x=bf16/128x64x112x112 window=16 ; name=adaptive.avgpool.7x7.n128.c64.112x112.nchw
pool_max x=bf16/128x512x14x14 window=3 stride=2 pad=1 ; name=maxpool.3x3.s2.n128.c512.14x14.nchw
pool_average x=bf16/128x512x14x14 window=3 stride=2 pad=1 ; name=avgpool.3x3.s2.n128.c512.14x14.nchw
pool_average x=bf16/128x512x14x14 window=2 ; name=adaptive.avgpool.7x7.n128.c512.14x14.nchw
