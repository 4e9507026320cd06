# Normalization as transformers and convolutional networks have it, in bf16 and f32; names as the anchor list's.

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
