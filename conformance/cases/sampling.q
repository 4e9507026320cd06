# affine_grid, grid_sample and their gradients: paddings, modes, ends, both layouts; points per warp, in threes, all in one place; more
# points of an image, and channels of a point, than a block's threads take at once.

affine_grid theta=f32/2x2x3 grid=f32/2x5x7x2 ; as=f16,bf16,f64
affine_grid theta=f32/2x2x3 grid=f32/2x47x45x2 align_corners=1 ; as=bf16
affine_grid theta=f32/2x2x3 grid=bf16/2x1x8x2 align_corners=1
affine_grid theta=f32/3x3x4 grid=f32/3x4x3x6x3 ; as=f16,bf16,f64
affine_grid theta=f32/1x3x4 grid=f32/1x2x2x3x3 align_corners=1
affine_grid_backward dy=f32/2x5x7x2 ; as=f16,bf16,f64
affine_grid_backward dy=f32/2x103x85x2 align_corners=1
affine_grid_backward dy=f32/2x3x4x5x3 ; as=f16

grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 ; as=f16,bf16,f64
grid_sample x=bf16/2x9x7x5 grid=f32/2x6x11x2
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=border ; as=bf16
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=reflection ; as=bf16
grid_sample x=f32/2x11x7x5 grid=f32/2x6x11x2 align_corners=1
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=border align_corners=1
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=reflection align_corners=1 ; as=f64
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=nearest ; as=f16,bf16
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=nearest padding=border align_corners=1
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=nearest padding=reflection
grid_sample x=f32/1x3x4x5x3 grid=f32/1x3x4x5x3 ; as=bf16,f64
grid_sample x=f32/1x3x4x5x3 grid=f32/1x3x4x5x3 padding=reflection mode=nearest
grid_sample x=f32/2x16x7x5/nhwc grid=f32/2x6x11x2 ; as=f16,bf16 tier=quick
grid_sample x=f32/2x5x7x5/nhwc grid=f32/2x6x11x2 padding=border
grid_sample x=f32/1x8x3x4x5/nhwc grid=f32/1x3x2x4x3 padding=reflection ; as=bf16
grid_sample x=f32/1x1x1x1 grid=f32/1x2x3x2 padding=border align_corners=1
grid_sample x=f32/1x262200x1x1 grid=f32/1x1x1x2 ; fill=signed plain=1

grid_sample_backward_data dy=f32/2x3x6x11 grid=f32/2x6x11x2 dx=f32/2x3x7x5 ; as=f16,bf16,f64
grid_sample_backward_data dy=bf16/2x9x6x11 grid=f32/2x6x11x2 dx=bf16/2x9x7x5 align_corners=1
grid_sample_backward_data dy=f32/2x3x6x11 grid=f32/2x6x11x2 dx=f32/2x3x4x5 padding=border
grid_sample_backward_data dy=f32/2x3x6x11 grid=f32/2x6x11x2 dx=f32/2x3x4x5 padding=reflection ; as=bf16
grid_sample_backward_data dy=f32/2x3x6x11 grid=f32/2x6x11x2 dx=f32/2x3x7x5 mode=nearest
grid_sample_backward_data dy=f32/1x3x3x4x5 grid=f32/1x3x4x5x3 dx=f32/1x3x4x5x3 ; as=bf16
grid_sample_backward_data dy=f32/2x16x6x11/nhwc grid=f32/2x6x11x2 dx=f32/2x16x7x5/nhwc ; as=bf16
grid_sample_backward_data dy=f32/2x5x6x11/nhwc grid=f32/2x6x11x2 dx=f32/2x5x4x5/nhwc padding=border
grid_sample_backward_data dy=f32/1x2x20x20 grid=f32/1x20x20x2 dx=f32/1x2x3x3 ; grid.fill=const:0.1 fill=signed,special
grid_sample_backward_data dy=f32/1x1x2x3 grid=f32/1x2x3x2 dx=f32/1x1x80x70

grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 ; as=f16,bf16,f64
grid_sample_backward_grid dy=bf16/2x9x6x11 x=bf16/2x9x7x5 grid=f32/2x6x11x2 align_corners=1
grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=border
grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=reflection ; as=bf16
grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 padding=reflection align_corners=1
grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=nearest
grid_sample_backward_grid dy=f32/1x3x3x4x5 x=f32/1x3x4x5x3 grid=f32/1x3x4x5x3 ; as=bf16
grid_sample_backward_grid dy=f32/2x16x6x11/nhwc x=f32/2x16x7x5/nhwc grid=f32/2x6x11x2 ; as=f16,bf16
grid_sample_backward_grid dy=f32/1x136x2x3/nhwc x=f32/1x136x3x2/nhwc grid=f32/1x2x3x2
grid_sample_backward_grid dy=f32/2x5x6x11/nhwc x=f32/2x5x7x5/nhwc grid=f32/2x6x11x2 padding=border
grid_sample x=f32/1x1x2x1 grid=f32/1x1x2x2 align_corners=1 mode=nearest ; x.is=3,-5 grid.is=0,1e-10,0,1 plain=1      # between two places

# grids computed where they are used
in theta f32/2x2x3
in x f32/2x5x7x5
g = affine_grid theta=theta grid=f32/2x6x11x2 align_corners=1
out y = grid_sample x=x grid=g

in theta bf16/2x3x4
in x bf16/2x2x3x4x5
g = affine_grid theta=theta grid=f32/2x3x4x5x3
out y = grid_sample x=x grid=g padding=reflection

in theta f32/2x2x3
in x bf16/2x16x7x5/nhwc
g = affine_grid theta=theta grid=f32/2x6x11x2
out y = grid_sample x=x grid=g padding=border

in theta f32/2x2x3
in x f32/2x8x7x5/nhwc
in dy f32/2x8x6x11/nhwc
g = affine_grid theta=theta grid=f32/2x6x11x2
out dg = grid_sample_backward_grid dy=dy x=x grid=g

in theta f32/2x2x3
g = affine_grid theta=theta grid=f32/2x6x11x2
out y = grid_sample x=g grid=g

# points that fit a block, many per cell
grid_sample_backward_data dy=f32/1x4x40x40/nhwc grid=f32/1x40x40x2 dx=f32/1x4x5x3/nhwc padding=border
grid_sample_backward_data dy=f32/1x4x40x40/nhwc grid=f32/1x40x40x2 dx=f32/1x4x3x3/nhwc ; grid.fill=const:0.1 fill=signed,special

in theta f32/2x2x3
in dy f32/2x8x6x9/nhwc
g = affine_grid theta=theta grid=f32/2x6x9x2
out dx = grid_sample_backward_data dy=dy grid=g dx=f32/2x8x7x5/nhwc ; tier=quick

# planes of 16-byte words in shared memory: several or one per stage, three stages and two, refilled, dy in words or not, many points
grid_sample x=f32/2x5x8x10 grid=f32/2x6x11x2 ; as=f16,bf16
grid_sample x=f32/1x7x128x124 grid=f32/1x5x7x2 padding=border
grid_sample x=bf16/2x3x8x10 grid=f32/2x6x11x2 padding=border align_corners=1
grid_sample_backward_grid dy=f32/2x19x6x11 x=f32/2x19x8x10 grid=f32/2x6x11x2 ; as=f16,bf16
grid_sample_backward_grid dy=f32/1x3x91x92 x=f32/1x3x4x4 grid=f32/1x91x92x2 padding=border align_corners=1
grid_sample x=f32/1x300x8x10 grid=f32/1x5x7x2
grid_sample_backward_grid dy=f32/1x5x5x8 x=f32/1x5x160x150 grid=f32/1x5x8x2 padding=border
grid_sample x=f32/7x3x160x162 grid=f32/7x128x160x2
grid_sample_backward_grid dy=f32/1x19x96x95 x=f32/1x19x40x36 grid=f32/1x96x95x2 ; as=f16,bf16
# sums that are subnormal before the factor of the image's width
grid_sample_backward_grid dy=f32/1x3x70x72 x=f32/1x3x160x152 grid=f32/1x70x72x2

# reflection repeats every 4 of a coordinate, exactly: points so far out that a position in elements would have lost its digits
grid_sample x=f64/1x1x4x5 grid=f64/1x2x2x2 padding=reflection ; fill=zero x.is=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19 grid.is=1e+30,1.2676506002282294e+30,4503599627370496.0,-4503599627370495.5,3e+300,-1e+17,2251799813685250.0,1.0000000000000002e+16 y.is=9.5,14.5,9.5,9.5 y.within=1e-14 plain=1
grid_sample x=f32/1x1x4x5 grid=f32/1x2x2x2 padding=reflection ; fill=zero x.is=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19 grid.is=1.0000000150474662e+30,1.2676506002282294e+30,1048576.5,-1048575.5,3.0000000054977558e+38,-9.999999843067494e+16,2097153.75,16777218.0 y.is=9.5,15.75,9.5,10.125 y.within=1e-06 plain=1
grid_sample x=f64/1x1x4x5 grid=f64/1x2x2x2 padding=reflection align_corners=1 mode=nearest ; fill=zero x.is=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19 grid.is=1e+30,1.2676506002282294e+30,4503599627370496.0,-4503599627370495.5,3e+300,-1e+17,2251799813685250.0,1.0000000000000002e+16 y.is=12,12,12,12 plain=1

# no points to add up: 0
affine_grid_backward dy=f32/2x3x0x2 ; dtheta.is=0 plain=1 as=f64,bf16
affine_grid_backward dy=f32/2x0x4x5x3 ; dtheta.is=0 plain=1
# shapes and values at the edges
grid_sample x=f64/1x1x3x3 grid=f64/1x1x2x2 padding=reflection ; grid.is=1e30,-1e30,0.5,0.25 fill=signed plain=1

# long sums: one running f32 sum fails
affine_grid_backward dy=f32/1x1x262144x2 ; fill=const:0.1 plain=1
grid_sample_backward_data dy=f32/1x1x200x180 grid=f32/1x200x180x2 dx=f32/1x1x1x2 padding=border ; fill=const:0.1 grid.fill=const:5 plain=1
grid_sample_backward_data dy=f32/1x2x200x180/nhwc grid=f32/1x200x180x2 dx=f32/1x2x1x2/nhwc padding=border ; fill=const:0.1 grid.fill=const:5 plain=1
