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

# antialias: kernels as wide as their taps, down, up and both, weights inside x alone
resample x=f32/2x3x9 size=4 mode=linear antialias=1 ; as=f16,bf16,f64
resample x=f32/2x3x31x20 size=7,20 mode=linear antialias=1 ; as=bf16
resample x=f32/2x3x5x7 size=9,3 mode=cubic antialias=1 coefficient=-0.5 ; as=f64
resample x=f32/2x8x13x17/nhwc size=5,6 mode=cubic antialias=1 ; as=bf16
resample x=f32/1x2x6x7x8 size=3,9,2 mode=linear antialias=1
resample x=f32/1x2x1x1 size=3,1 mode=cubic antialias=1
resample x=f32/1x3x200 size=1 mode=linear antialias=1
resample_backward dy=f32/2x3x4 dx=f32/2x3x9 mode=linear antialias=1 ; as=bf16,f64
resample_backward dy=f32/2x3x7x20 dx=f32/2x3x31x20 mode=linear antialias=1
resample_backward dy=f32/2x3x9x3 dx=f32/2x3x5x7 mode=cubic antialias=1 coefficient=-0.5 ; as=f64
resample_backward dy=f32/2x8x5x6/nhwc dx=f32/2x8x13x17/nhwc mode=cubic antialias=1 ; as=bf16
resample_backward dy=f32/1x2x3x9x2 dx=f32/1x2x6x7x8 mode=linear antialias=1
# golden, from PyTorch, in f64
resample x=f64/1x1x5x7 size=2,3 mode=linear antialias=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2,3,0,1,0.5,1,-1,2,2,-3,4,1,0,2,1,-2,1.5,3 y.is=0.8977272727,0.4679144385,1.203733766,0.5178571429,0.7807486631,0.9277597403 y.within=1e-9 plain=1
resample_backward dy=f64/1x1x2x3 dx=f64/1x1x5x7 mode=linear antialias=1 ; dy.is=-1,0,1,2,-2,-1 dx.is=-0.1136363636,-0.1363636364,-0.06818181818,-3.532527806e-17,0.06818181818,0.1363636364,0.1136363636,-0.1136363636,-0.1417112299,-0.08957219251,-0.03743315508,0.05653170359,0.1504965623,0.1298701299,0.08116883117,0.07066462949,-0.05825057296,-0.1871657754,-0.1069518717,-0.02673796791,0,0.275974026,0.2830404889,-0.0269289534,-0.3368983957,-0.2704354469,-0.2039724981,-0.1298701299,0.2272727273,0.2352941176,-0.01336898396,-0.2620320856,-0.2179144385,-0.1737967914,-0.1136363636 dx.within=1e-9 plain=1
resample x=f64/1x1x5x7 size=3,9 mode=linear antialias=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2,3,0,1,0.5,1,-1,2,2,-3,4,1,0,2,1,-2,1.5,3 y.is=1.428571429,0.4285714286,0.9126984127,1.444444444,-1,0.2777777778,2.031746032,1.94047619,-0.4642857143,-1.666666667,0.3333333333,1.975308642,1.864197531,-1.333333333,1.604938272,0.962962963,0.3518518519,1.5,0.7857142857,0.5476190476,0.5555555556,0.873015873,1.428571429,0.09523809524,-0.3650793651,0.8571428571,3.428571429 y.within=1e-9 plain=1
resample_backward dy=f64/1x1x3x9 dx=f64/1x1x5x7 mode=linear antialias=1 ; dy.is=-1,0,1,2,-2,-1,0,1,2,-2,-1,0,1,2,-2,-1,0,1,2,-2,-1,0,1,2,-2,-1,0 dx.is=-0.5714285714,0.3174603175,1.142857143,-1.015873016,-0.4444444444,0.380952381,1.333333333,-0.9470899471,0.08994708995,1.029982363,-0.3668430335,-0.7777777778,0.1622574956,1.222222222,-1.296296296,-0.3703703704,0.4320987654,0.987654321,-1.111111111,-0.3086419753,0.5555555556,0.05291005291,-0.9576719577,-0.0176366843,1.014109347,-0.1587301587,-0.885361552,0.07936507937,0.7619047619,-1.079365079,-0.253968254,0.8253968254,0.380952381,-1.015873016,-0.1904761905 dx.within=1e-9 plain=1
resample x=f64/1x1x5x7 size=2,3 mode=cubic coefficient=-0.5 antialias=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2,3,0,1,0.5,1,-1,2,2,-3,4,1,0,2,1,-2,1.5,3 y.is=0.8397389802,0.5870156953,1.15120174,0.4792358875,0.8075359473,0.9370767373 y.within=1e-9 plain=1
resample_backward dy=f64/1x1x2x3 dx=f64/1x1x5x7 mode=cubic coefficient=-0.5 antialias=1 ; dy.is=-1,0,1,2,-2,-1 dx.is=-0.1588366786,-0.1787520434,-0.08248941533,0.02620306557,0.1113430061,0.1707818313,0.143033486,-0.1350928845,-0.1612361506,-0.1049177427,-0.02442054411,0.07802698125,0.1686641714,0.1498210299,0.1063266438,0.08359380581,-0.08096525511,-0.2005336651,-0.1398530418,-0.02259728495,0.01461615635,0.3326241606,0.3165348654,-0.04549770898,-0.3481264426,-0.3378428545,-0.2106449052,-0.1226674595,0.2990933358,0.2890215615,-0.02431275231,-0.2907292514,-0.2958247075,-0.200590161,-0.1237531518 dx.within=1e-9 plain=1
resample x=f64/1x1x5x7 size=3,9 mode=cubic coefficient=-0.5 antialias=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2,3,0,1,0.5,1,-1,2,2,-3,4,1,0,2,1,-2,1.5,3 y.is=1.534729176,0.246978022,0.9898174528,1.771858183,-1.107692308,0.06222433259,2.516418698,2.25728022,-0.781679563,-1.940044035,0.3712624585,2.492662775,1.992857371,-1.465116279,2.089191948,0.9880594634,-0.0301910299,1.649600936,0.7639963587,0.4673076923,0.4344201752,0.9031339031,1.569230769,0.03686820724,-0.8188034188,0.7656593407,3.722667274 y.within=1e-9 plain=1
resample_backward dy=f64/1x1x3x9 dx=f64/1x1x5x7 mode=cubic coefficient=-0.5 antialias=1 ; dy.is=-1,0,1,2,-2,-1,0,1,2,-2,-1,0,1,2,-2,-1,0,1,2,-2,-1,0,1,2,-2,-1,0 dx.is=-0.5624850511,0.3488718866,1.301927345,-1.15749808,-0.5010371324,0.4429021141,1.370968291,-1.140253149,0.1363053147,1.280993116,-0.4193614406,-1.039401741,0.2530601621,1.358711404,-1.404711121,-0.4200818647,0.5830473638,1.082240725,-1.331865888,-0.3202131589,0.6487932464,0.1170729436,-1.191115292,0.006674841731,1.208326646,-0.1384535807,-1.121762033,0.1185409103,0.9787533844,-1.278288857,-0.2601402171,0.8377324784,0.603350935,-1.242363802,-0.1492407014 dx.within=1e-9 plain=1

# by a scale factor that is not the ratio of the extents; forward and backward, each mode, grid and layout
resample x=f32/2x3x5x7 up=3,7 down=2,10 ; as=f16,bf16,f64
resample x=f32/2x3x5x7 up=13,3 down=10,5 grid=asymmetric rounding=prefer_floor ; as=bf16
resample x=f32/2x3x5x7 up=13,3 down=10,5 mode=linear ; as=f16,bf16,f64
resample x=f32/2x3x5x7 down=2 up=1,3 mode=linear grid=asymmetric ; as=bf16
resample x=f32/2x19x6x5/nhwc up=23,17 down=10,8 mode=linear ; as=bf16,f64
resample x=f32/2x16x6x5/nhwc up=19 down=10 mode=cubic ; as=f16
resample x=f32/2x3x5x7 up=17,7 down=9,10 mode=cubic ; as=bf16,f64
resample x=f32/1x2x4x5x6 up=7,3,13 down=4,5,7 mode=linear ; as=f16
resample x=f32/1x2x4x5x6 up=7,3,13 down=4,5,7 mode=cubic
resample x=f32/1x2x2x3x60 up=8,8,2 down=5,5,1 mode=linear
resample x=f32/1x2x33 up=1000003 down=500000 mode=linear ; as=bf16
resample x=f32/2x3x5x7 up=3,7 down=2,10 mode=linear grid=align_corners
resample x=f32/2x3x5x7 up=3,7 down=2,10 mode=linear antialias=1 ; as=bf16,f64
resample x=f32/1x2x6x7x8 up=4,9,3 down=9,7,8 mode=cubic antialias=1
resample_backward dy=f32/2x3x7x4 dx=f32/2x3x5x7 up=3,7 down=2,10 ; as=f16,f64
resample_backward dy=f32/2x3x6x4 dx=f32/2x3x5x7 up=13,3 down=10,5 mode=linear ; as=bf16
resample_backward dy=f32/2x3x2x10 dx=f32/2x3x5x7 up=1,3 down=2,2 mode=linear grid=asymmetric
resample_backward dy=f32/2x16x11x9/nhwc dx=f32/2x16x6x5/nhwc up=19 down=10 mode=linear ; as=f16,bf16
resample_backward dy=f32/2x3x10x14 dx=f32/2x3x5x7 up=21 down=10 mode=linear ; as=bf16
resample_backward dy=f32/2x3x9x4 dx=f32/2x3x5x7 up=17,7 down=9,10 mode=cubic ; as=f64
resample_backward dy=f32/1x2x7x3x11 dx=f32/1x2x4x5x6 up=7,3,13 down=4,5,7 mode=linear
resample_backward dy=f32/2x3x7x4 dx=f32/2x3x5x7 up=3,7 down=2,10 mode=linear antialias=1 ; as=bf16,f64
resample_backward dy=f32/2x8x5x7/nhwc dx=f32/2x8x13x17/nhwc up=4,7 down=10,16 mode=cubic antialias=1
# golden, from ONNX's reference implementation, whose scale factors are of f32
resample x=f64/1x1x5x7 up=3,7 down=2,10 mode=linear ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.5,0.8928571429,-1.875,-2.25,-0.5982142857,1.107142857,-0.4285714286,-1.75,-2.556547619,1.18452381,0.8660714286,-1.208333333,2.00297619,0.6369047619,0.2589285714,-1.041666667,1.205357143,-0.3392857143,0.8571428571,-0.3125,-0.3511904762,-1.017857143,0.7202380952,0.2708333333,1.172619048,-0.375,-2.827380952,-0.1458333333 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=7,13 down=10,10 mode=linear grid=asymmetric ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.5,2.5,1.153846154,-0.5384615385,-1.884615385,-3.230769231,-1.961538462,-0.9038461538,-0.75,-0.75,-0.8049450549,0.6785714286,1.57967033,0.6208791209,-0.3131868132,-1.291208791,-0.1923076923,2.357142857,-1.035714286,2.041208791,-0.3049450549,-1.755494505,1.401098901,2.554945055,-0.4230769231,-0.3956043956,2.857142857 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=13,7 down=10,10 mode=cubic ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=3.006001325,0.9969097061,-2.134306183,-2.470301554,-2.571542821,1.687278909,0.07575553217,-2.192134678,-1.325476762,1.391553122,0.7752711348,-1.700230754,3.212494564,-0.158886286,0.4809176911,-0.9653396569,-0.6052366687,-1.535779364,1.940362037,-0.0438850699,0.8597290356,-0.3824548593,-2.520312595,0.266839046 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=7,17 down=10,10 mode=cubic grid=asymmetric coefficient=-0.5 ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.5,2.678098381,2.198809415,0.5895580053,-0.6730602384,-1.648280516,-2.956747338,-3.386780143,-1.700183302,-0.753969565,-0.7542239428,-1.047375739,-1.513433654,-0.8655752119,1.855496217,2.299141371,0.9653108235,0.1016602733,-0.7215582924,-1.816387189,-0.7608195981,2.238058062,-1.442418635,1.993456134,2.709675954,-2.497958216,-2.46104064,1.403020609,3.054045699,2.637758933,-1.478322881,-1.457021224,2.757174076 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=17,3 down=10,10 rounding=prefer_floor ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.5,-3.5,2.5,-3.5,-3.5,-2,2.75,1.5,2.75,1.5,3,3,3,3,-3.75,0 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=17,3 down=10,10 grid=asymmetric rounding=floor ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.5,-1.75,2.5,-1.75,-3.75,1.25,-3.75,1.25,3.25,0,3.25,0,-1.75,1.5,3,-4 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=17,9 down=10,10 rounding=ceil ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.5,0,-1.75,-3.5,-1,-0.75,-3.5,4,1.25,-2,-0.5,3.75,-3.5,4,1.25,-2,-0.5,3.75,2.75,-0.75,0,1.5,-3.5,0.5,3,-3.5,1.5,3,-2.25,3.25,3,-3.5,1.5,3,-2.25,3.25,-3.75,1.75,-4,0,-0.5,-2.25,-3.75,1.75,-4,0,-0.5,-2.25 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=13,9 down=10,20 mode=linear antialias=1 ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=2.012987013,-1.289325843,-1.569767442,-0.6979270729,0.165298185,-0.3266994633,-0.275974026,0.6608686258,-0.268783542,1.811938062,0.3259507347,-0.7562611807,0.03371628372,0.4836862576,0.5675313059,-0.1145104895,-0.9432800346,-0.5367844365 y.within=1e-5 plain=1
resample x=f64/1x1x5x7 up=3,13 down=5,10 mode=cubic coefficient=-0.5 antialias=1 ; x.is=2.5,2.5,0,-1.75,-3.5,-1,-0.75,-3.75,-3.5,4,1.25,-2,-0.5,3.75,3.25,2.75,-0.75,-0,1.5,-3.5,0.5,-1.75,3,-3.5,1.5,3,-2.25,3.25,3,-3.75,1.75,-4,0,-0.5,-2.25 y.is=-0.1559999056,-0.3290657534,0.7721852029,1.713308378,-0.413840006,-2.695354287,-2.159135794,-0.1211664998,1.168645314,0.2707703165,1.254981077,0.7723576251,-0.3189215657,0.8569985175,1.483346144,-0.980813938,-1.763696613,2.214841645,1.178115739,-0.1333724137,-0.7870997757,-0.853833148,-1.740507825,0.8694201443,0.1725971377,-1.151500869,0.04284793191 y.within=1e-5 plain=1
