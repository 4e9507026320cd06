# Cross-entropy at the sizes of language models and image classifiers.

cross_entropy x=bf16/8192x32000 labels=i64/8192x1 reduction=mean lse=? count=? ; name=entropy.bf16.8192x32000 labels=0..31999
cross_entropy x=bf16/2048x128256 labels=i64/2048x1 reduction=mean lse=? count=? ; name=entropy.bf16.2048x128256 labels=0..128255
cross_entropy x=f32/16384x4096 labels=i64/16384x1 lse=? smoothing=0.1 ; name=entropy.f32.16384x4096 labels=0..4095
cross_entropy x=bf16/4096x1000 labels=i64/4096x1 reduction=mean lse=? count=? ; name=entropy.bf16.4096x1000 labels=0..999
cross_entropy x=f32/64x10 labels=i32/64x1 reduction=mean lse=? count=? ; name=entropy.f32.64x10 labels=0..9
cross_entropy_backward dy=f32/1x1 x=bf16/8192x32000 labels=i64/8192x1 lse=f32/8192x1 count=f32/1x1 reduction=mean ; name=entropy.bwd.bf16.8192x32000 labels=0..31999
cross_entropy_backward dy=f32/16384x1 x=f32/16384x4096 labels=i64/16384x1 lse=f32/16384x1 smoothing=0.1 ; name=entropy.bwd.f32.16384x4096 labels=0..4095
cross_entropy_backward dy=f32/1x1 x=bf16/4096x1000 labels=i64/4096x1 lse=f32/4096x1 count=f32/1x1 reduction=mean ; name=entropy.bwd.bf16.4096x1000 labels=0..999
cross_entropy_backward dy=f32/1x1 x=f32/64x10 labels=i32/64x1 lse=f32/64x1 count=f32/1x1 reduction=mean ; name=entropy.bwd.f32.64x10 labels=0..9
cross_entropy_backward_probabilities dy=f32/1x1 x=f32/4096x1000 lse=f32/4096x1 count=f32/1x1 reduction=mean ; name=entropy.bwd_soft.f32.4096x1000
