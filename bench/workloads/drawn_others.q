# Norms, softmax, losses, selection, sums, copies, pointwise ops, pooling, resampling as networks run them. Drawn before anything was made for them,
# but for the last part.
layer_norm x=f16/50432x768 scale=f16/1x768 shift=f16/1x768 mean=? rstd=?
layer_norm x=bf16/8192x2560 scale=bf16/1x2560 shift=bf16/1x2560
layer_norm x=f32/6272x192 scale=f32/1x192 shift=f32/1x192
layer_norm x=f16/200704x96 scale=f16/1x96 shift=f16/1x96
layer_norm x=f32/12x384 scale=f32/1x384 shift=f32/1x384
layer_norm x=bf16/577x1408 scale=bf16/1x1408 shift=bf16/1x1408
layer_norm x=f32/128x20000 scale=f32/1x20000 shift=f32/1x20000
layer_norm x=f16/1000x50 scale=f16/1x50 shift=f16/1x50
layer_norm_backward dy=f16/50432x768 x=f16/50432x768 scale=f16/1x768 mean=f32/50432x1 rstd=f32/50432x1 dscale=? dshift=?
layer_norm_backward dy=bf16/4096x2560 x=bf16/4096x2560 scale=bf16/1x2560 mean=f32/4096x1 rstd=f32/4096x1 dscale=? dshift=?
layer_norm_backward dy=f32/6272x192 x=f32/6272x192 scale=f32/1x192 mean=f32/6272x1 rstd=f32/6272x1 dscale=? dshift=?
layer_norm_backward dy=f32/200704x96 x=f32/200704x96 scale=f32/1x96 mean=f32/200704x1 rstd=f32/200704x1 dscale=? dshift=?
layer_norm_backward dy=f16/197x1024 x=f16/197x1024 scale=f16/1x1024 mean=f32/197x1 rstd=f32/197x1 dscale=? dshift=?
rms_norm x=bf16/2048x5120 scale=bf16/1x5120
rms_norm x=bf16/1x4096 scale=bf16/1x4096
rms_norm x=f16/65536x128 scale=f16/1x128
rms_norm x=f32/777x3072 scale=f32/1x3072
rms_norm_backward dy=bf16/2048x5120 x=bf16/2048x5120 scale=bf16/1x5120 rstd=f32/2048x1 dscale=?
rms_norm_backward dy=f16/65536x128 x=f16/65536x128 scale=f16/1x128 rstd=f32/65536x1 dscale=?
batch_norm x=f16/64x64x112x112 scale=f32/1x64x1x1 shift=f32/1x64x1x1 mean=? rstd=?
batch_norm x=f32/64x256x56x56/nhwc scale=f32/1x256x1x1 shift=f32/1x256x1x1 mean=? rstd=?
batch_norm x=f32/256x16x32x32 scale=f32/1x16x1x1 shift=f32/1x16x1x1 mean=? rstd=?
batch_norm x=bf16/32x2048x7x7 scale=f32/1x2048x1x1 shift=f32/1x2048x1x1 mean=? rstd=?
batch_norm x=f32/512x300x1x1 scale=f32/1x300x1x1 shift=f32/1x300x1x1 mean=? rstd=?
batch_norm_backward dy=f16/64x64x112x112 x=f16/64x64x112x112 scale=f32/1x64x1x1 mean=f32/1x64x1x1 rstd=f32/1x64x1x1 dscale=? dshift=?
batch_norm_backward dy=f32/64x256x56x56/nhwc x=f32/64x256x56x56/nhwc scale=f32/1x256x1x1 mean=f32/1x256x1x1 rstd=f32/1x256x1x1 dscale=? dshift=?
batch_norm_backward dy=bf16/32x2048x7x7 x=bf16/32x2048x7x7 scale=f32/1x2048x1x1 mean=f32/1x2048x1x1 rstd=f32/1x2048x1x1 dscale=? dshift=?
batch_norm_backward dy=f32/256x16x32x32 x=f32/256x16x32x32 scale=f32/1x16x1x1 mean=f32/1x16x1x1 rstd=f32/1x16x1x1 dscale=? dshift=?
softmax x=f16/384x200x200
softmax x=f32/64x10
softmax x=bf16/2048x32000
softmax x=f32/16x50257
softmax x=f16/64x12x197x197
softmax x=f32/4x21x512x512 axis=1
softmax x=f16/8x2x256x256 axis=1
softmax x=f32/1000x1000x3
softmax_backward y=f16/384x200x200 dy=f16/384x200x200
softmax_backward y=f32/16x50257 dy=f32/16x50257
softmax_backward y=f16/64x12x197x197 dy=f16/64x12x197x197
cross_entropy x=f32/256x1000 labels=i64/256x1 lse=? ; labels=0..999
cross_entropy x=bf16/2048x32000 labels=i64/2048x1 lse=? ; labels=0..31999
cross_entropy x=f32/128x10 labels=i64/128x1 lse=? ; labels=0..9
gather x=bf16/128256x4096 indices=i64/2048
gather x=f16/30522x768 indices=i64/16384
gather x=f32/512x768 indices=i64/512
gather x=f32/1000000x16 indices=i64/26624
gather x=bf16/151936x896 indices=i64/4
scatter_add dy=f16/16384x768 indices=i64/16384 dx=f16/30522x768
scatter_add dy=f32/26624x16 indices=i64/26624 dx=f32/1000000x16
scatter_add dy=bf16/2048x4096 indices=i64/2048 dx=bf16/32000x4096
top_k x=f32/8x32000 k=50 indices=?
top_k x=bf16/4096x64 k=6 indices=?
top_k x=f32/1x151936 k=40 indices=?
top_k x=f32/2x16800 k=1000 indices=?
sort x=f32/1x100000 indices=?
sort x=f32/4096x100 indices=?
cumsum x=f32/128x1024
cumsum x=f32/1x1000000
cumsum x=f16/512x2048
argmax x=f32/1x128256 axis=1 y=i64/1x1
argmax x=f16/256x1000 axis=1 y=i64/256x1
argmax x=f32/4x21x512x512 axis=1 y=i64/4x1x512x512
reduce_sum x=f32/50432x768 axis=0
reduce_sum x=f16/64x64x112x112 axis=0,2,3
reduce_sum x=bf16/4096x4096 axis=0
reduce_sum x=f32/1000x7
reduce_mean x=f16/64x2048x7x7 axis=2,3
reduce_mean x=f32/32x197x768 axis=1
reduce_max x=f16/1024x333 axis=1
reduce_max x=f32/64x512x20 axis=2
reduce_sum x=f32/16777216
reduce_norm2 x=f32/8192x300 axis=1
permute x=f16/32x197x12x64 perm=0,2,1,3
permute x=bf16/8x1024x16x128 perm=0,2,1,3
permute x=f32/64x3x224x224 perm=0,2,3,1
permute x=f16/1536x49x3x32 perm=2,0,1,3
permute x=f32/100x200x300 perm=2,0,1
permute x=f16/16x64x64x64 perm=0,3,1,2
permute x=f32/1000x1001 perm=1,0
concat x=[f16/16x256x40x40,f16/16x128x40x40] axis=1
concat x=[bf16/8x1024x64,bf16/8x1024x64] axis=2
concat x=[f32/32x1x768,f32/32x196x768] axis=1
slice x=f16/50432x2304 start=0,768 length=50432,768
slice x=f32/8x3x600x800 start=0,0,10,20 length=8,3,512,512
pad x=f16/16x64x56x56 pad=0,0,1,1
pad x=f32/8x1x16000 pad=0,0,200 mode=reflect
copy x=f16/16x64x128x128 y=f16/16x64x128x128/nhwc
copy x=f32/32x512x7x7/nhwc y=f32/32x512x7x7
cast x=f32/4096x11008 y=bf16/4096x11008
cast x=f16/1000x1000 y=f32/1000x1000
add a=f16/50432x768 b=f16/50432x768
add a=f32/64x197x768 b=f32/1x197x768
add a=bf16/4096x4096 b=bf16/1x4096
mul a=f16/64x256x28x28 b=f16/64x256x1x1
mul a=f32/8x1024x1 b=f32/8x1024x2048
gelu x=f16/50432x3072
gelu_backward dy=f16/50432x3072 x=f16/50432x3072
silu x=bf16/2048x13824
relu x=f32/64x64x112x112
relu x=f16/100x100
sigmoid x=f32/8x1x512x512
add a=f32/17x33 b=f32/17x33
pool_max x=f16/64x64x112x112 window=3 stride=2 pad=1
pool_max x=f32/8x128x64x64 window=2 stride=2
pool_max x=f16/4x32x64x64x64 window=2 stride=2
pool_max x=f32/32x64x8000 window=4 stride=4
pool_max x=f16/16x512x13x13 window=5 stride=1 pad=2
pool_average x=f16/32x192x35x35 window=3 stride=1 pad=1
pool_average x=f32/64x128x56x56 window=2 stride=2
pool_average x=f32/8x64x16000 window=4 stride=2
pool_max_backward dy=f16/64x64x56x56 x=f16/64x64x112x112 window=3 stride=2 pad=1
pool_max_backward dy=f32/8x128x32x32 x=f32/8x128x64x64 window=2 stride=2
pool_average_backward dy=f32/64x128x28x28 dx=f32/64x128x56x56 window=2 stride=2
pool_average_backward dy=f16/32x192x35x35 dx=f16/32x192x35x35 window=3 stride=1 pad=1
resample x=f16/16x256x40x40 size=80,80
resample x=f32/8x64x64x64 size=128,128 mode=linear
resample x=f16/4x21x64x64 size=512,512 mode=linear
resample x=f32/8x3x480x640 size=224,224 mode=linear
resample_backward dy=f16/16x256x80x80 dx=f16/16x256x40x40
resample_backward dy=f32/8x64x128x128 dx=f32/8x64x64x64 mode=linear
dropout x=f16/50432x768 seed=1 p=0.1 mask=?
global_norm x=[f32/768x768,f32/768x3072,f32/3072x768,f32/768,f32/30522x768] limit=1 divisor=?

softmax x=f16/1000000x8
softmax x=f32/1000000x8
softmax x=bf16/200000x5
softmax x=f32/64x7
softmax_backward y=f32/1000x1000x3 dy=f32/1000x1000x3
scatter_add dy=f32/8192x256 indices=i64/8192 dx=f32/50257x256
scatter_add dy=f32/4096x64 indices=i32/4096 dx=f32/32000x64
cast x=bf16/4096x11008 y=f32/4096x11008
cast x=f32/100x100 y=f16/100x100
cast x=f32/64x3x224x224 y=f16/64x3x224x224
mul a=f32/4096x4096 b=bf16/4096x4096 y=f32/4096x4096
add a=f32/4096x4096 b=f16/1x4096 y=f16/4096x4096
lt a=f16/4096x4096 b=f16/4096x4096
gt a=f32/4096x4096 b=f32/4096x4096
