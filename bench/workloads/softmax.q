# Softmax over the last dim (rows x columns), and over others.

softmax x=f32/8192x64 ; name=softmax.8192x64
softmax x=f32/4096x1000 ; name=softmax.4096x1000
softmax x=f32/512x8192 ; name=softmax.512x8192
softmax x=f32/64x65536 ; name=softmax.64x65536
softmax x=f32/16x32768 ; name=softmax.16x32768
softmax x=f32/1024x77 ; name=softmax.1024x77
log_softmax x=f32/8192x64 ; name=log_softmax.8192x64
log_softmax x=f32/4096x1000 ; name=log_softmax.4096x1000
log_softmax x=f32/512x8192 ; name=log_softmax.512x8192
log_softmax x=f32/64x65536 ; name=log_softmax.64x65536
log_softmax x=f32/16x32768 ; name=log_softmax.16x32768
log_softmax x=f32/1024x77 ; name=log_softmax.1024x77
softmax_backward y=f32/4096x1000 dy=f32/4096x1000 ; name=softmax_backward.4096x1000
log_softmax_backward y=f32/4096x1000 dy=f32/4096x1000 ; name=log_softmax_backward.4096x1000
softmax_backward y=f32/512x8192 dy=f32/512x8192 ; name=softmax_backward.512x8192
log_softmax_backward y=f32/512x8192 dy=f32/512x8192 ; name=log_softmax_backward.512x8192
softmax x=f32/32x19x128x128 axis=1 ; name=softmax.segmentation
softmax x=f32/8x256x4096 axis=1 ; name=softmax.middle
softmax x=f32/65536x32 axis=0 ; name=softmax.outer
softmax x=bf16/4096x1000 ; name=softmax.bf16.4096x1000
softmax x=f16/4096x1000 ; name=softmax.f16.4096x1000
