# Shapes at the edges, of each family (convolutions: in their own files): one element, planes and lines of one element, empty, long.

# one element
matmul a=f32/1x1 b=f32/1x1 ; as=f16
add a=f32 b=f32 ; as=f64
sub a=f32 b=f32
mul a=f32 b=f32
div a=f32 b=f32
gelu x=f32/1
reduce_sum x=f32/1x1 axis=1
reduce_mean x=f32/1x1 axis=0
softmax x=f32/1x1
log_softmax x=f32/1x1
pool_max x=f32/1x1x1x1 window=1
pool_average x=f32/1x1x1x1 window=1
pool_adaptive_average x=f32/1x1x1x1 size=1
resample x=f32/1x1x1x1 y=f32/1x1x1x1
top_k x=f32/1x1 k=1 indices=i32/1x1 axis=1
cumsum x=f32/1x1 axis=1
layer_norm x=f32/1x1
rms_norm x=f32/1x1
batch_norm x=f32/1x1x1x1
lrn x=f32/1x1x1 size=1
grid_sample x=f32/1x1x1x1 grid=f32/1x1x1x2
cross_entropy x=f32/1x1 labels=i32/1x1 ; labels=0..0
ctc_loss x=f32/1x1x2 labels=i32/1x1 x_lengths=i32/1 label_lengths=i32/1 ; labels=1..1 x_lengths.is=1 label_lengths.is=1
sgd params=[f32/1] grads=[f32/1] step=i64 rate=0.5
global_norm x=[f32/1]

# planes and lines of one element
pool_max x=f32/3x7x1x1 window=3 pad=1 indices=i32/3x7x1x1 ; as=f16
pool_average x=f32/3x7x1x1 window=3 pad=1 include_pad=0
pool_max_backward dy=f32/3x7x1x1 x=f32/3x7x1x1 window=3 pad=1
pool_average_backward dy=f32/3x7x1x1 dx=f32/3x7x1x1 window=3 pad=1
pool_adaptive_average x=f32/3x7x1x1 size=3
pool_adaptive_average_backward dy=f32/3x7x3x3 dx=f32/3x7x1x1 size=3
resample x=f32/3x7x1x1 y=f32/3x7x2x3 mode=linear
resample_backward dy=f32/3x7x2x3 dx=f32/3x7x1x1 mode=linear
batch_norm x=f32/9x7x1x1 mean=? rstd=? ; as=f16
batch_norm_backward dy=f32/9x7x1x1 x=f32/9x7x1x1 mean=f32/1x7x1x1 rstd=f32/1x7x1x1
layer_norm x=f32/300x1 ; as=bf16
softmax x=f32/300x1
cross_entropy x=f32/30x1 labels=i32/30x1 reduction=mean ; labels=0..0
lrn x=f32/3x7x1x1 size=3
grid_sample x=f32/3x7x1x1 grid=f32/3x2x3x2
grid_sample_backward_data dy=f32/3x7x2x3 grid=f32/3x2x3x2 dx=f32/3x7x1x1
reduce_max x=f32/300x1 axis=1
cumsum x=f32/300x1 axis=1

# empty
matmul a=f32/0x5 b=f32/5x3
matmul a=f32/4x0 b=f32/0x3
gelu x=f32/0x7
softmax x=f32/0x7
softmax x=f32/7x0
log_softmax x=f32/0x7
pool_max x=f32/0x3x4x4 window=2
pool_average_backward dy=f32/0x3x2x2 dx=f32/0x3x4x4 window=2
resample x=f32/0x3x4 y=f32/0x3x7
top_k x=f32/0x9 k=2 indices=i32/0x2 axis=1
cumsum x=f32/5x0 axis=1
layer_norm x=f32/0x9
rms_norm x=f32/0x9
batch_norm_inference x=f32/0x3x4x4 mean=f32/1x3x1x1 var=f32/1x3x1x1
lrn x=f32/0x3x4 size=3
grid_sample x=f32/0x3x4x4 grid=f32/0x2x2x2
cross_entropy x=f32/0x5 labels=i32/0x1 ; labels=0..4
sgd params=[f32/0] grads=[f32/0] step=i64 rate=0.5
global_norm x=[f32/0]

# long
matmul a=f32/2x20011 b=f32/20011x3 ; fill=int,pos,const:0.1 as=bf16
gelu x=f32/200003 ; plain=1
softmax x=f32/2x20011 ; plain=1
reduce_sum x=f32/3x70001 axis=1 ; fill=pos,const:0.1 plain=1
reduce_mean x=f32/70001x3 axis=0 ; fill=pos,const:0.1 plain=1
reduce_norm2 x=f32/2x70001 axis=1 ; fill=pos,const:0.1 plain=1
layer_norm x=f32/2x20011 ; plain=1
rms_norm x=f32/2x20011 ; plain=1
cumsum x=f32/2x20011 axis=1 ; plain=1
