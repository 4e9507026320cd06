# resample and its gradient: modes, grids, up, down, and extents of 1.

resample x=f32/2x3x5x7 size=9,4 ; as=f16,bf16,f64
resample x=f32/2x3x5x7 size=10,14 grid=align_corners ; as=bf16
resample x=f32/2x3x5x7 size=3,20 grid=asymmetric ; as=f16
resample x=f32/1x2x33 size=7 ; as=bf16
resample x=f32/1x2x4x5x6 size=3,8,6
resample x=f32/2x19x6x5/nhwc size=11,3 ; as=bf16
resample x=f32/2x3x5x7 size=9,4 mode=linear ; as=f16,bf16,f64
resample x=f32/2x3x5x7 size=10,14 mode=linear grid=align_corners ; as=bf16
resample x=f32/2x3x5x7 size=3,20 mode=linear grid=asymmetric ; as=f16
resample x=f32/1x2x33 size=70 mode=linear
resample x=f32/1x2x4x5x6 size=3,8,6 mode=linear ; as=f16
resample x=f32/1x2x2x3x33 size=3,5,198 mode=linear ; as=bf16          # columns of more than one warp
resample x=f32/1x1x2x3x64 size=3,8,128 mode=linear                    # of a whole one
resample x=f32/1x2x1x5 size=4,1 mode=linear grid=align_corners
resample x=f32/2x19x6x5/nhwc size=12,10 mode=linear ; as=bf16,f64
resample x=f32/2x16x6x5/nhwc size=12,10 mode=linear grid=align_corners ; as=f16,bf16
resample x=f32/1x3x64x64 size=128,128 mode=linear ; as=bf16
resample x=f32/2x3x5x7 size=9,4 mode=cubic ; as=f16,bf16,f64
resample x=f32/2x3x5x7 size=10,14 mode=cubic grid=align_corners ; as=bf16
resample x=f32/2x3x5x7 size=3,20 mode=cubic grid=asymmetric ; as=f16
resample x=f32/1x2x33 size=70 mode=cubic
resample x=f32/1x2x4x5x6 size=3,8,6 mode=cubic
resample x=f32/2x16x6x5/nhwc size=12,10 mode=cubic ; as=bf16,f64
resample x=f32/1x1x1x1 size=3,2 mode=cubic
resample x=f32/1x2x70001 size=3 ; plain=1

resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x7 ; as=f16,bf16,f64
resample_backward dy=f32/2x3x10x14 dx=f32/2x3x5x7 grid=align_corners ; as=bf16
resample_backward dy=f32/2x3x3x20 dx=f32/2x3x5x7 grid=asymmetric
resample_backward dy=f32/1x2x3x8x6 dx=f32/1x2x4x5x6
resample_backward dy=f32/2x19x11x3/nhwc dx=f32/2x19x6x5/nhwc ; as=bf16
resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x7 mode=linear ; as=f16,bf16,f64
resample_backward dy=f32/2x3x10x14 dx=f32/2x3x5x7 mode=linear grid=align_corners ; as=bf16
resample_backward dy=f32/2x3x3x20 dx=f32/2x3x5x7 mode=linear grid=asymmetric ; as=f16
resample_backward dy=f32/1x2x70 dx=f32/1x2x33 mode=linear
resample_backward dy=f32/1x2x3x8x6 dx=f32/1x2x4x5x6 mode=linear
resample_backward dy=f32/1x2x3x40 dx=f32/1x2x2x3 mode=linear ; as=bf16
resample_backward dy=f32/1x2x4x1 dx=f32/1x2x1x5 mode=linear grid=align_corners
resample_backward dy=f32/2x16x12x10/nhwc dx=f32/2x16x6x5/nhwc mode=linear ; as=f16,bf16
resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x7 mode=cubic ; as=f16,f64
resample_backward dy=f32/2x3x10x14 dx=f32/2x3x5x7 mode=cubic grid=align_corners ; as=bf16
resample_backward dy=f32/2x3x3x20 dx=f32/2x3x5x7 mode=cubic grid=asymmetric
resample_backward dy=f32/2x16x12x10/nhwc dx=f32/2x16x6x5/nhwc mode=cubic
resample_backward dy=f32/1x1x3x2 dx=f32/1x1x1x1 mode=cubic
resample_backward dy=f32/1x2x1x3x5 dx=f32/1x2x4x3x5 mode=linear ; plain=1
resample_backward dy=f32/1x2x1x5x4 dx=f32/1x2x3x3x2 mode=cubic grid=align_corners ; plain=1

# exactly twice the rows and columns, wider than a warp
resample_backward dy=f32/2x3x14x24 dx=f32/2x3x7x12 mode=linear ; as=f16,bf16
resample_backward dy=f32/1x5x10x148 dx=f32/1x5x5x74 mode=linear

# volumes with an even number of columns, some planes unused
resample x=f32/1x2x5x9x64 size=11,18,128 mode=linear ; as=f16,bf16
resample x=bf16/1x2x15x5x50 size=3,10,99 mode=linear

# sums of weighted taps that overflow
resample x=f32/2x16x6x5/nhwc y=f32/2x16x12x10/nhwc mode=cubic ; fill=bits plain=1

# no gradients to add up: 0
resample_backward dy=f32/2x3x0 dx=f32/2x3x4 ; dx.is=0 plain=1 as=f64,bf16
resample_backward dy=f32/2x3x0x5 dx=f32/2x3x4x5 mode=linear ; dx.is=0 plain=1
resample_backward dy=f32/2x8x0x0/nhwc dx=f32/2x8x4x6/nhwc mode=cubic grid=align_corners ; dx.is=0 plain=1

# other roundings of nearest (ONNX's), other cubic coefficients
resample x=f32/2x3x5 size=8 grid=half_pixel rounding=prefer_floor ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=half_pixel rounding=prefer_floor
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=half_pixel rounding=prefer_floor
resample x=f32/2x3x5 size=8 grid=align_corners rounding=prefer_floor ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=align_corners rounding=prefer_floor
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=align_corners rounding=prefer_floor
resample x=f32/2x3x5 size=8 grid=asymmetric rounding=prefer_floor ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=asymmetric rounding=prefer_floor
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=asymmetric rounding=prefer_floor
resample x=f32/1x2x3x4x5 size=6,2,5 rounding=prefer_floor
resample x=f32/2x3x5 size=8 grid=half_pixel rounding=prefer_ceil ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=half_pixel rounding=prefer_ceil
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=half_pixel rounding=prefer_ceil
resample x=f32/2x3x5 size=8 grid=align_corners rounding=prefer_ceil ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=align_corners rounding=prefer_ceil
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=align_corners rounding=prefer_ceil
resample x=f32/2x3x5 size=8 grid=asymmetric rounding=prefer_ceil ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=asymmetric rounding=prefer_ceil
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=asymmetric rounding=prefer_ceil
resample x=f32/1x2x3x4x5 size=6,2,5 rounding=prefer_ceil
resample x=f32/2x3x5 size=8 grid=half_pixel rounding=floor ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=half_pixel rounding=floor
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=half_pixel rounding=floor
resample x=f32/2x3x5 size=8 grid=align_corners rounding=floor ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=align_corners rounding=floor
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=align_corners rounding=floor
resample x=f32/2x3x5 size=8 grid=asymmetric rounding=floor ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=asymmetric rounding=floor
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=asymmetric rounding=floor
resample x=f32/1x2x3x4x5 size=6,2,5 rounding=floor
resample x=f32/2x3x5 size=8 grid=half_pixel rounding=ceil ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=half_pixel rounding=ceil
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=half_pixel rounding=ceil
resample x=f32/2x3x5 size=8 grid=align_corners rounding=ceil ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=align_corners rounding=ceil
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=align_corners rounding=ceil
resample x=f32/2x3x5 size=8 grid=asymmetric rounding=ceil ; as=f16,f64
resample x=bf16/2x8x7x6/nhwc size=3,13 grid=asymmetric rounding=ceil
resample_backward dy=f32/2x3x8x4 dx=f32/2x3x5x9 grid=asymmetric rounding=ceil
resample x=f32/1x2x3x4x5 size=6,2,5 rounding=ceil
resample x=f32/2x3x5x6 size=9,4 mode=cubic coefficient=-0.5 ; as=bf16,f64
resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x6 mode=cubic grid=align_corners coefficient=-0.5 ; as=f64
resample x=f32/2x3x5x6 size=9,4 mode=cubic coefficient=-1 ; as=bf16,f64
resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x6 mode=cubic grid=align_corners coefficient=-1 ; as=f64
resample x=f32/2x3x5x6 size=9,4 mode=cubic coefficient=0.25 ; as=bf16,f64
resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x6 mode=cubic grid=align_corners coefficient=0.25 ; as=f64
resample x=f32/1x1x4 size=8 grid=half_pixel rounding=prefer_floor ; fill=zero x.is=1,2,3,4 y.is=1,1,2,2,3,3,4,4 plain=1
resample x=f32/1x1x4 size=8 grid=half_pixel rounding=floor ; fill=zero x.is=1,2,3,4 y.is=1,1,1,2,2,3,3,4 plain=1
resample x=f32/1x1x4 size=8 grid=asymmetric rounding=ceil ; fill=zero x.is=1,2,3,4 y.is=1,2,2,3,3,4,4,4 plain=1
resample x=f32/1x1x4 size=8 grid=align_corners rounding=prefer_floor ; fill=zero x.is=1,2,3,4 y.is=1,1,2,2,3,3,4,4 plain=1
resample x=f32/1x1x4 size=8 grid=asymmetric rounding=prefer_ceil ; fill=zero x.is=1,2,3,4 y.is=1,2,2,3,3,4,4,4 plain=1
# shapes and values at the edges
resample_backward dy=f32/2x3x0 dx=f32/2x3x4 ; fill=zero dx.is=0 plain=1

# long sums: one running f32 sum fails
resample_backward dy=f32/1x12x512x512/nhwc dx=f32/1x12x1x1/nhwc ; fill=const:0.1 as=bf16 plain=1
resample_backward dy=f32/1x40x128x900/nhwc dx=f32/1x40x1x1/nhwc ; fill=const:0.1 plain=1
resample_backward dy=f32/1x1x70000x2 dx=f32/1x1x1x2 ; fill=const:0.1 plain=1
