# Local response normalization: AlexNet's and GoogLeNet's layers, and their gradients; divisive normalization of planes.

lrn x=f32/256x96x27x27 ; name=alexnet1
lrn x=f32/256x64x56x56 ; name=googlenet1
lrn x=bf16/256x64x56x56 ; name=googlenet1.bf16
lrn x=bf16/256x192x56x56/nhwc ; name=googlenet2.nhwc
lrn x=f32/64x64x56x56 size=3 region=within ; name=within
lrn_backward dy=f32/256x96x27x27 x=f32/256x96x27x27 ; name=alexnet1_backward
lrn_backward dy=f32/256x64x56x56 x=f32/256x64x56x56 ; name=googlenet1_backward
lrn_backward dy=bf16/256x192x56x56/nhwc x=bf16/256x192x56x56/nhwc ; name=googlenet2_backward.nhwc
lrn x=f32/64x64x56x56 means=f32/64x64x56x56 region=within ; name=divisive
lrn_backward dy=f32/64x64x56x56 x=f32/64x64x56x56 means=f32/64x64x56x56 region=within dmeans=? ; name=divisive_backward
lrn x=f32/256x96x27x27 size=9 ; name=nine
lrn_backward dy=f32/256x96x27x27 x=f32/256x96x27x27 size=9 ; name=nine_backward
lrn x=f32/64x64x56x56 means=f32/64x64x56x56 region=within size=7 ; name=divisive.7
lrn_backward dy=f32/64x64x56x56 x=f32/64x64x56x56 means=f32/64x64x56x56 region=within size=7 dmeans=? ; name=divisive.7_backward
