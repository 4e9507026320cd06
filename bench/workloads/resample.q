# Resampling: up and down, modes, and gradients.

resample x=f32/16x64x128x128 size=256,256 ; name=nearest.up2
resample x=bf16/32x128x64x64/nhwc size=128,128 ; name=nearest.up2.nhwc
resample x=f32/16x64x128x128 size=256,256 mode=linear ; name=linear.up2
resample x=bf16/32x128x64x64/nhwc size=128,128 mode=linear ; name=linear.up2.nhwc
resample x=f32/16x64x256x256 size=128,128 mode=linear ; name=linear.down2
resample x=f32/16x64x128x128 size=256,256 mode=cubic ; name=cubic.up2
resample x=bf16/4x32x32x64x64 size=64,128,128 mode=linear ; name=linear.3d
resample_backward dy=f32/16x64x256x256 dx=f32/16x64x128x128 ; name=nearest_backward.up2
resample_backward dy=f32/16x64x256x256 dx=f32/16x64x128x128 mode=linear ; name=linear_backward.up2
resample_backward dy=bf16/32x128x128x128/nhwc dx=bf16/32x128x64x64/nhwc mode=linear ; name=linear_backward.up2.nhwc
resample_backward dy=f32/16x64x256x256 dx=f32/16x64x128x128 mode=cubic ; name=cubic_backward.up2
resample x=f16/16x64x128x128 up=13 down=10 mode=linear ; name=linear.scale1.3.f16
