# Adaptive and lp pooling, and their gradients.

pool_adaptive_average x=f32/64x256x56x56 size=7,7 ; name=average.56-7
pool_adaptive_average x=bf16/64x256x56x56/nhwc size=7,7 ; name=average.56-7.nhwc
pool_adaptive_average x=bf16/64x512x50x50/nhwc size=7,7 ; name=average.50-7.nhwc
pool_adaptive_max x=f32/64x256x56x56 size=7,7 indices=? ; name=max.56-7
pool_adaptive_max x=f32/64x512x50x50 size=6,6 ; name=max.50-6
pool_adaptive_average_backward dy=f32/64x256x7x7 dx=f32/64x256x56x56 ; name=average_backward.56-7
pool_adaptive_average_backward dy=bf16/64x512x7x7/nhwc dx=bf16/64x512x50x50/nhwc ; name=average_backward.50-7.nhwc
pool_adaptive_max_backward dy=f32/64x256x7x7 indices=i32/64x256x7x7 dx=f32/64x256x56x56 ; name=max_backward.56-7
pool_lp x=f32/32x64x112x112 window=2 ; name=lp.2
pool_lp x=bf16/32x64x112x112/nhwc window=3 stride=2 pad=1 p=3 ; name=lp.3.nhwc
pool_lp_backward dy=f32/32x64x56x56 x=f32/32x64x112x112 y=f32/32x64x56x56 window=2 ; name=lp_backward.2
pool_adaptive_average x=f16/8x96x112x112/nhwc size=1 ; name=squeeze.112.nhwc
