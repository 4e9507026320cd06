# The memory-bound families, at sizes for a CPU; f32 unless the name says otherwise. For bench/torch_peer.py.

layer_norm x=f32/4096x1024 scale=f32/1x1024 shift=f32/1x1024 mean=? rstd=? ; name=layer_norm.1024
layer_norm x=bf16/4096x1024 scale=bf16/1x1024 shift=bf16/1x1024 ; name=layer_norm.1024.bf16
layer_norm_backward dy=f32/4096x1024 x=f32/4096x1024 scale=f32/1x1024 mean=f32/4096x1 rstd=f32/4096x1 dscale=? dshift=? ; name=layer_norm_backward.1024
rms_norm x=f32/4096x1024 scale=f32/1x1024 ; name=rms_norm.1024
layer_norm x=f32/16x32x8x784 axis=2,3 scale=f32/1x32x8x1 shift=f32/1x32x8x1 ; name=group_norm.32
layer_norm x=f32/16x32x8x784/200704:8:1:256 axis=2,3 scale=f32/1x32x8x1 shift=f32/1x32x8x1 ; name=group_norm.32.nhwc
layer_norm x=f32/16x256x28x28/nhwc axis=2,3 scale=f32/1x256x1x1 shift=f32/1x256x1x1 ; name=instance_norm.nhwc
layer_norm_backward dy=f32/16x32x8x784 x=f32/16x32x8x784 scale=f32/1x32x8x1 mean=f32/16x32x1x1 rstd=f32/16x32x1x1 axis=2,3 dscale=? dshift=? ; name=group_norm_backward.32
layer_norm_backward dy=f32/16x32x8x784/200704:8:1:256 x=f32/16x32x8x784/200704:8:1:256 scale=f32/1x32x8x1 mean=f32/16x32x1x1 rstd=f32/16x32x1x1 axis=2,3 dscale=? dshift=? ; name=group_norm_backward.32.nhwc
batch_norm x=f32/16x128x28x28 scale=f32/1x128x1x1 shift=f32/1x128x1x1 mean=? rstd=? ; name=batch_norm
batch_norm x=f32/16x128x28x28/nhwc scale=f32/1x128x1x1 shift=f32/1x128x1x1 mean=? rstd=? ; name=batch_norm.nhwc
batch_norm_backward dy=f32/16x128x28x28 x=f32/16x128x28x28 scale=f32/1x128x1x1 mean=f32/1x128x1x1 rstd=f32/1x128x1x1 dscale=? dshift=? ; name=batch_norm_backward
batch_norm_backward dy=f32/16x128x28x28/nhwc x=f32/16x128x28x28/nhwc scale=f32/1x128x1x1 mean=f32/1x128x1x1 rstd=f32/1x128x1x1 dscale=? dshift=? ; name=batch_norm_backward.nhwc
batch_norm_inference x=f32/16x128x28x28 mean=f32/1x128x1x1 var=f32/1x128x1x1 scale=f32/1x128x1x1 shift=f32/1x128x1x1 ; name=batch_norm_inference
batch_norm_inference x=f32/16x128x28x28/nhwc mean=f32/1x128x1x1 var=f32/1x128x1x1 scale=f32/1x128x1x1 shift=f32/1x128x1x1 ; name=batch_norm_inference.nhwc
layer_norm x=f64/1024x1024 scale=f64/1x1024 shift=f64/1x1024 ; name=layer_norm.1024.f64

pool_adaptive_average x=f32/8x128x56x56 size=7,7 ; name=adaptive_average
pool_adaptive_average x=f32/8x128x56x56/nhwc size=7,7 ; name=adaptive_average.nhwc
pool_adaptive_max x=f32/8x128x56x56 size=6,6 ; name=adaptive_max
pool_adaptive_average_backward dy=f32/8x128x7x7 dx=f32/8x128x56x56 ; name=adaptive_average_backward
pool_adaptive_max_backward dy=f32/8x128x7x7 indices=i64/8x128x7x7 dx=f32/8x128x56x56 ; name=adaptive_max_backward
pool_max_backward dy=f32/8x64x56x56 indices=u8/8x64x56x56 dx=f32/8x64x112x112 window=3 stride=2 pad=1 ; name=max_backward
pool_max_backward dy=f32/8x64x56x56/nhwc indices=i64/8x64x56x56/nhwc dx=f32/8x64x112x112/nhwc window=3 stride=2 pad=1 ; name=max_backward.nhwc
pool_average_backward dy=f32/8x64x56x56 dx=f32/8x64x112x112 window=2 ; name=average_backward
pool_lp x=f32/8x64x112x112 window=2 ; name=lp
pool_lp x=f32/8x64x112x112/nhwc window=2 ; name=lp.nhwc
pool_lp_backward dy=f32/8x64x56x56 x=f32/8x64x112x112 y=f32/8x64x56x56 dx=f32/8x64x112x112 window=2 ; name=lp_backward
pool_max x=f32/8x64x112x112 window=3 stride=2 pad=1 ; name=max
pool_max x=f32/8x64x112x112/nhwc window=3 stride=2 pad=1 ; name=max.nhwc
pool_average x=f32/8x128x56x56/nhwc window=2 ; name=average.nhwc
pool_average x=f32/16x1024x7x7 ; name=global
pool_average x=f32/16x1024x7x7/nhwc ; name=global.nhwc
pool_average_backward dy=f32/16x1024x1x1 dx=f32/16x1024x7x7 ; name=global_backward

resample x=f32/4x32x64x64 size=128,128 ; name=nearest
resample x=f32/4x32x64x64/nhwc size=128,128 ; name=nearest.nhwc
resample x=f32/4x32x64x64 size=128,128 mode=linear ; name=linear
resample x=f32/4x32x64x64/nhwc size=128,128 mode=linear ; name=linear.nhwc
resample x=f32/4x32x128x128 size=64,64 mode=linear ; name=linear.down
resample x=f32/4x32x64x64 size=128,128 mode=cubic ; name=cubic
resample_backward dy=f32/4x32x128x128 dx=f32/4x32x64x64 mode=linear ; name=linear_backward

lrn x=f32/8x64x56x56 ; name=lrn
lrn_backward dy=f32/8x64x56x56 x=f32/8x64x56x56 ; name=lrn_backward

affine_grid theta=f32/16x2x3 grid=f32/16x128x128x2 ; name=affine_grid
affine_grid_backward dy=f32/16x128x128x2 ; name=affine_grid_backward
grid_sample x=f32/4x32x128x128 grid=f32/4x128x128x2 ; name=grid_sample
grid_sample x=f32/4x32x128x128/nhwc grid=f32/4x128x128x2 ; name=grid_sample.nhwc
grid_sample_backward_data dy=f32/4x32x128x128 grid=f32/4x128x128x2 dx=f32/4x32x128x128 ; name=grid_sample_backward_data
grid_sample_backward_grid dy=f32/4x32x128x128 x=f32/4x32x128x128 grid=f32/4x128x128x2 ; name=grid_sample_backward_grid

quantize x=f32/1024x4096 scale=f32 zero_point=u8 y=u8/1024x4096 ; name=quantize.u8
quantize x=f32/1024x4096 scale=f32/1024x1 y=i8/1024x4096 ; name=quantize.i8.row
dequantize x=u8/1024x4096 scale=f32 zero_point=u8 y=f32/1024x4096 ; name=dequantize.u8
dequantize x=i8/1024x4096 scale=f32/1024x1 y=f32/1024x4096 ; name=dequantize.i8.row

cross_entropy x=f32/512x32000 labels=i64/512x1 reduction=mean lse=? count=? ; name=cross_entropy.32000
cross_entropy x=f32/4096x1000 labels=i64/4096x1 reduction=mean lse=? count=? ; name=cross_entropy.1000
cross_entropy x=bf16/4096x1000 labels=i64/4096x1 reduction=mean lse=? count=? ; name=cross_entropy.1000.bf16
cross_entropy_backward dy=f32/1x1 x=f32/4096x1000 labels=i64/4096x1 lse=f32/4096x1 count=f32/1x1 reduction=mean ; name=cross_entropy_backward.1000
ctc_loss x=f32/200x16x32 labels=i64/16x40 x_lengths=i64/16 label_lengths=i64/16 lse=? reduction=mean ; name=ctc_loss
ctc_loss x=f32/100x8x2000 labels=i64/8x20 x_lengths=i64/8 label_lengths=i64/8 lse=? reduction=mean ; name=ctc_loss.2000
ctc_loss_backward dy=f32/1 x=f32/200x16x32 labels=i64/16x40 x_lengths=i64/16 label_lengths=i64/16 lse=f32/200x16x1 reduction=sum ; name=ctc_loss_backward

adamw params=[f32/1024x1024,f32/1024x4096,f32/4096] grads=[f32/1024x1024,f32/1024x4096,f32/4096] m=[f32/1024x1024,f32/1024x4096,f32/4096] v=[f32/1024x1024,f32/1024x4096,f32/4096] step=i64 rate=0.001 decay=0.01 new_step=step new_params=params new_m=m new_v=v ; name=adamw
sgd params=[f32/1024x1024,f32/1024x4096,f32/4096] grads=[f32/1024x1024,f32/1024x4096,f32/4096] velocity=[f32/1024x1024,f32/1024x4096,f32/4096] momentum=0.9 step=i64 rate=0.1 new_step=step new_params=params new_velocity=velocity ; name=sgd
global_norm x=[f32/1024x1024,f32/1024x4096,f32/4096] limit=1 divisor=? ; name=global_norm
amp_unscale grads=[f32/1024x1024,f32/1024x4096,f32/4096] scale=f32 new_grads=grads ; name=amp_unscale

rng_uniform seed=1 y=f32/1024x4096 ; name=uniform
rng_normal seed=1 y=f32/1024x4096 ; name=normal
rng_bernoulli seed=1 y=f32/1024x4096 ; name=bernoulli
dropout x=f32/1024x4096 seed=1 p=0.1 mask=? ; name=dropout
dropout_backward dy=f32/1024x4096 mask=u8/524288 p=0.1 ; name=dropout_backward

gather x=f32/50257x256 indices=i64/8192 ; name=gather
scatter_add dy=f32/8192x256 indices=i64/8192 dx=f32/50257x256 ; name=scatter_add
one_hot indices=i64/8192 depth=512 ; name=one_hot
top_k x=f32/8192x64 k=8 indices=i64/8192x8 ; name=top_k.experts
top_k x=f32/64x50257 k=50 indices=i64/64x50 ; name=top_k.vocabulary
cumsum x=f32/4096x1024 ; name=cumsum.rows
cumsum x=f32/16x1024x256 axis=1 ; name=cumsum.middle
pad x=f32/8x64x112x112 pad=0,0,3,3 mode=reflect ; name=pad.reflect
pad x=f32/8x64x112x112 pad=0,0,1,1 ; name=pad.constant
pad x=f32/8x64x112x112/nhwc pad=0,0,1,1 mode=replicate ; name=pad.replicate.nhwc
pad_backward dy=f32/8x64x118x118 pad=0,0,3,3 mode=reflect ; name=pad_backward.reflect
pad_backward dy=f32/8x64x114x114/nhwc pad=0,0,1,1 mode=replicate ; name=pad_backward.replicate.nhwc
pad_backward dy=f32/8x64x114x114 pad=0,0,1,1 ; name=pad_backward.constant
