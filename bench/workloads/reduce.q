# Reductions: along rows, columns, both, planes of images.

reduce_sum x=f32/4096x4096 axis=1 ; name=reduce_sum.rows
reduce_mean x=f32/4096x4096 axis=1 ; name=reduce_mean.rows
reduce_max x=f32/4096x4096 axis=1 ; name=reduce_max.rows
reduce_norm2 x=f32/4096x4096 axis=1 ; name=reduce_norm2.rows
reduce_amax x=f32/4096x4096 axis=1 ; name=reduce_amax.rows
reduce_norm1 x=f32/4096x4096 axis=1 ; name=reduce_norm1.rows
reduce_prod x=f32/4096x4096 axis=1 ; name=reduce_prod.rows
reduce_sum x=f32/4096x4096 axis=0 ; name=reduce_sum.columns
reduce_sum x=f32/4096x4096 ; name=reduce_sum.all
reduce_max x=f32/4096x4096 axis=0 ; name=reduce_max.columns
reduce_max x=f32/4096x4096 ; name=reduce_max.all
reduce_mean x=f32/32x256x28x28 axis=2,3 ; name=reduce_mean.planes
reduce_mean x=f32/32x256x28x28/nhwc axis=2,3 ; name=reduce_mean.planes.nhwc
reduce_sum x=f32/32x256x28x28 axis=0,2,3 ; name=reduce_sum.bias
reduce_sum x=f32/32x256x28x28/nhwc axis=0,2,3 ; name=reduce_sum.bias.nhwc
reduce_sum x=f32/64x128x512 axis=1 ; name=reduce_sum.middle
argmax x=f32/4096x1000 axis=1 y=i32/4096x1 ; name=argmax.rows
argmax x=f32/32x19x128x128 axis=1 y=i64/32x1x128x128 ; name=argmax.segmentation
argmin x=f32/4096x4096 axis=0 y=i32/1x4096 ; name=argmin.columns
reduce_sum x=bf16/4096x4096 axis=1 ; name=reduce_sum.bf16.rows
reduce_sum x=f64/2048x2048 axis=1 ; name=reduce_sum.f64.rows
reduce_sum x=i32/4096x4096 axis=1 ; name=reduce_sum.i32.rows
