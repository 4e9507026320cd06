# Copies, transposes, slices, padding, concatenation.

copy x=f32/4096x4096 ; name=copy.64MB
permute x=f32/4096x4096 perm=1,0 ; name=permute.transpose
permute x=bf16/4096x4096 perm=1,0 ; name=permute.transpose.bf16
permute x=i8/4096x4096 perm=1,0 ; name=permute.transpose.i8
copy x=f32/32x256x28x28 y=f32/32x256x28x28/nhwc ; name=copy.nchw-nhwc
copy x=f32/32x256x28x28/nhwc y=f32/32x256x28x28 ; name=copy.nhwc-nchw
copy x=f32/8x3x224x224 y=f32/8x3x224x224/nhwc ; name=copy.image
permute x=f32/16x384x16x64 perm=0,2,1,3 ; name=permute.heads
permute x=f32/64x64x64x16 perm=3,1,2,0 ; name=permute.4d
slice x=f32/4096x4096 start=0,1024 length=4096,1024 ; name=slice.columns
slice x=f32/4096x4096 step=2,2 ; name=slice.step2
slice x=f32/64x256x28x28 start=0,64,0,0 length=64,128,28,28 ; name=slice.channels
pad x=f32/32x64x56x56 pad=0,0,1,1 ; name=pad.image
pad x=f32/1000x1000 pad=0:24,0:24 ; name=pad.tile
pad_backward dy=f32/32x64x230x230 pad=0,0,3,3 mode=reflect ; name=pad_backward.image
concat x=[f32/32x64x56x56,f32/32x64x56x56] axis=1 ; name=concat.channels
concat x=[f32/4096x1024,f32/4096x1024,f32/4096x2048] axis=1 ; name=concat.columns
