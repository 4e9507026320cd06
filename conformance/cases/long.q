# The long tier: for each family problems of about 10^6 elements, repeated until it has drawn 10^8, so that an element which leaves its
# bound once in 10^6 is met.

matmul a=f32/1500x48 b=f32/48x500 ; tier=long fill=signed
matmul a=bf16/1500x48 b=bf16/48x500 y=f32/1500x500 ; tier=long fill=pos
conv_forward x=f32/8x16x40x40 w=f32/32x16x3x3 pad=1 ; tier=long fill=signed
conv_backward_data dy=f32/8x32x40x40 w=f32/32x16x3x3 dx=f32/8x16x40x40 pad=1 ; tier=long fill=signed
conv_backward_filter x=f32/4x64x20x20 dy=f32/4x256x20x20 dw=f32/256x64x3x3 pad=1 ; tier=long fill=signed

exp x=f32/1000000 ; tier=long fill=signed:80
log x=f32/1000000 ; tier=long fill=pos
tanh x=f32/1000000 ; tier=long fill=signed:4
sigmoid x=f32/1000000 ; tier=long fill=signed:30
erf x=f32/1000000 ; tier=long fill=signed:4
gelu x=f32/1000000 ; tier=long fill=signed:6
gelu_tanh x=f32/1000000 ; tier=long fill=signed:6
gelu_backward dy=f32/1000000 x=f32/1000000 ; tier=long fill=signed:6
silu x=f32/1000000 ; tier=long fill=signed:30
mish x=f32/1000000 ; tier=long fill=signed:30
softplus x=f32/1000000 ; tier=long fill=signed:30
sin x=f32/1000000 ; tier=long fill=signed:4
pow a=f32/1000000 b=f32/1000000 ; tier=long fill=pos b.fill=signed:4
div a=f32/1000000 b=f32/1000000 ; tier=long fill=wide

reduce_sum x=f32/100000x9 axis=1 ; tier=long fill=signed
reduce_mean x=f32/9x100000 axis=0 ; tier=long fill=signed
reduce_norm2 x=f32/100000x9 axis=1 ; tier=long fill=signed
reduce_prod x=f32/100000x9 axis=1 ; tier=long fill=near

softmax x=f32/70000x9 ; tier=long fill=signed:4
log_softmax x=f32/7x100000 axis=0 ; tier=long fill=signed:4
softmax_backward dy=f32/70000x9 y=f32/70000x9 ; tier=long fill=signed y.fill=pos

pool_average x=f32/2x20000x5x5 window=3 pad=1 ; tier=long fill=signed
pool_average_backward dy=f32/2x20000x5x5 dx=f32/2x20000x5x5 window=3 stride=1 pad=1 ; tier=long fill=signed
pool_lp x=f32/2x20000x5x5 window=2 p=3 ; tier=long fill=signed
pool_adaptive_average x=f32/2x20000x5x5 size=2 ; tier=long fill=signed

resample x=f32/2x2000x9x7 y=f32/2x2000x13x15 mode=linear ; tier=long fill=signed
resample x=f32/2x2000x9x7 y=f32/2x2000x13x15 mode=cubic ; tier=long fill=signed

scatter_add dy=f32/70000x9 indices=i64/70000 dx=f32/20000x9 ; tier=long labels=0..19999 fill=signed
cumsum x=f32/70000x13 axis=1 ; tier=long fill=signed

batch_norm x=f32/2x70000x3 scale=f32/1x70000x1 shift=f32/1x70000x1 mean=? rstd=? ; tier=long fill=signed:4
layer_norm x=f32/70000x9 scale=f32/1x9 shift=f32/1x9 mean=? rstd=? ; tier=long fill=signed:4
layer_norm x=f32/20000x40 ; tier=long fill=far:100
rms_norm x=f32/70000x9 scale=f32/1x9 rstd=? ; tier=long fill=signed:4
layer_norm_backward dy=f32/70000x9 x=f32/70000x9 scale=f32/1x9 mean=f32/70000x1 rstd=f32/70000x1 dscale=? dshift=? ; tier=long fill=signed rstd.fill=pos
batch_norm_backward dy=f32/2x70000x3 x=f32/2x70000x3 scale=f32/1x70000x1 mean=f32/1x70000x1 rstd=f32/1x70000x1 dscale=? dshift=? ; tier=long fill=signed rstd.fill=pos

affine_grid theta=f32/2000x2x3 grid=f32/2000x11x13x2 ; tier=long fill=signed
grid_sample x=f32/300x5x9x11 grid=f32/300x20x20x2 ; tier=long fill=signed:1.2

lrn x=f32/4x20x90x90 size=5 ; tier=long fill=signed:4

cross_entropy x=f32/70000x9 labels=i32/70000x1 lse=? ; tier=long labels=0..8 fill=signed:4
cross_entropy_backward dy=f32/70000x1 x=f32/70000x9 labels=i32/70000x1 lse=f32/70000x1 ; tier=long labels=0..8 fill=signed:4
ctc_loss x=f32/5x66000x4 labels=i32/66000x2 x_lengths=i32/66000 label_lengths=i32/66000 lse=? ; tier=long labels=1..3 fill=signed:4 x_lengths.fill=range:2..5 label_lengths.fill=range:0..2
ctc_loss_backward dy=f32/66000 x=f32/5x66000x4 labels=i32/66000x2 x_lengths=i32/66000 label_lengths=i32/66000 lse=f32/5x66000x1 ; tier=long labels=1..3 fill=signed:4 x_lengths.fill=range:2..5 label_lengths.fill=range:0..2

sgd params=[f32/700000] grads=[f32/700000] velocity=[f32/700000] new_velocity=velocity momentum=0.9 step=i64 rate=0.1 ; tier=long fill=signed
adam params=[f32/400000] grads=[f32/400000] m=[f32/400000] v=[f32/400000] step=i64 rate=0.1 ; tier=long fill=pos step.is=3

rng_normal seed=42 offset=i64 y=f32/1000000 ; tier=long
dropout x=f32/1000000 seed=42 offset=i64 p=0.1 ; tier=long fill=signed
