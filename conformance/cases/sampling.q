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

# cubic: four taps a dim, each of which the padding moves
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=cubic ; as=f16,bf16,f64
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=cubic padding=border align_corners=1 ; as=bf16
grid_sample x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=cubic padding=reflection ; as=f64
grid_sample x=f32/2x3x2x3 grid=f32/2x6x11x2 mode=cubic padding=reflection align_corners=1
grid_sample x=f32/1x2x1x1 grid=f32/1x3x4x2 mode=cubic padding=reflection align_corners=1
grid_sample x=f32/2x2x3x4x5 grid=f32/2x2x3x4x3 mode=cubic padding=border ; as=f64
grid_sample x=f32/2x8x7x5/nhwc grid=f16/2x6x11x2 y=f32/2x8x6x11/nhwc mode=cubic
grid_sample x=f32/1x2x4x5 grid=f32/1x2x2x2 mode=cubic padding=border ; grid.is=1e30,-1e30,nan,0,inf,0,0.25,-0.5
grid_sample x=f32/1x2x4x5 grid=f32/1x2x2x2 mode=cubic ; grid.is=1e30,-1e30,nan,0,inf,0,1.5,-1.25
grid_sample_backward_data dy=f32/2x3x6x11 grid=f32/2x6x11x2 dx=f32/2x3x7x5 mode=cubic ; as=bf16,f64
grid_sample_backward_data dy=f32/2x3x6x11 grid=f32/2x6x11x2 dx=f32/2x3x7x5 mode=cubic padding=border align_corners=1
grid_sample_backward_data dy=f32/2x3x6x11/nhwc grid=f32/2x6x11x2 dx=f32/2x3x7x5/nhwc mode=cubic padding=reflection
grid_sample_backward_data dy=f32/1x2x2x3x4 grid=f32/1x2x3x4x3 dx=f32/1x2x3x2x4 mode=cubic padding=reflection align_corners=1 ; as=f64
grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=cubic ; as=bf16,f64
grid_sample_backward_grid dy=f32/2x3x6x11 x=f32/2x3x7x5 grid=f32/2x6x11x2 mode=cubic padding=border align_corners=1
grid_sample_backward_grid dy=f32/2x3x6x11/nhwc x=f32/2x3x7x5/nhwc grid=f32/2x6x11x2 mode=cubic padding=reflection
grid_sample_backward_grid dy=f32/1x2x2x3x4 x=f32/1x2x3x2x4 grid=f32/1x2x3x4x3 mode=cubic padding=border ; as=f64

in theta f32/2x2x3
in x f32/2x3x7x5
g = affine_grid theta=theta grid=f32/2x6x11x2
out y = grid_sample x=x grid=g mode=cubic padding=border

# golden, from PyTorch, in f64
grid_sample x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=zeros align_corners=0 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 y.is=0.6400674492,1.200318176,-0.003159,0 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x4 grid=f64/1x1x4x2 dx=f64/1x1x3x4 mode=cubic padding=zeros align_corners=0 ; dy.is=1,-2,0.5,3 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dx.is=-0.04458295898,-0.2668850332,-0.7086730957,0.08791743164,0.6180251465,-0.5616319043,-1.246063232,0.165996334,0.4279724121,0.01354614258,0.1826477051,-0.02422485352 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x4 x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=zeros align_corners=0 ; dy.is=1,-2,0.5,3 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dgrid.is=2.816226797,5.02225418,6.733601074,5.71794873,-0.02457,-0.00820125,0,0 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=zeros align_corners=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 y.is=1.253257066,1.114904602,-0.115160375,0.120765186 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x4 grid=f64/1x1x4x2 dx=f64/1x1x3x4 mode=cubic padding=zeros align_corners=1 ; dy.is=1,-2,0.5,3 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dx.is=-0.07387467773,-0.2211899512,-0.4525997441,0.3608618652,0.8976491699,-0.5721525879,-1.374545936,0.1633548926,0.2985130371,0.1494040518,0.01266561035,-0.08887258301 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x4 x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=zeros align_corners=1 ; dy.is=1,-2,0.5,3 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dgrid.is=6.414153398,2.749233164,10.99282104,3.246288574,0.054860625,0.1788110156,-1.416061143,2.817854341 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=border align_corners=0 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 y.is=0.7567634531,1.085695068,0.464,-0.534 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x4 grid=f64/1x1x4x2 dx=f64/1x1x3x4 mode=cubic padding=border align_corners=0 ; dy.is=1,-2,0.5,3 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dx.is=-0.07929636328,-0.2238735586,-0.5990844727,0.5914575195,0.8016856152,-0.5616319043,-1.246063232,0.153267334,0.482360748,-0.1932445371,1.562647705,1.811775146 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x4 x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=border align_corners=0 ; dy.is=1,-2,0.5,3 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dgrid.is=0.2387371875,5.608229063,8.298823242,4.434169922,-4.213063232e-16,-0.23625,35.73,-2.823746237e-15 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=border align_corners=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 y.is=1.084137188,1.064510864,0.046860125,-2.068113281 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x4 grid=f64/1x1x4x2 dx=f64/1x1x3x4 mode=cubic padding=border align_corners=1 ; dy.is=1,-2,0.5,3 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dx.is=-0.06911239453,-0.1935813086,-0.4068830664,0.6542017695,0.8300841309,-0.5721525879,-1.374545936,0.1420518926,0.2307782637,-0.2107231348,2.575862596,0.8940197754 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x4 x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=border align_corners=1 ; dy.is=1,-2,0.5,3 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dgrid.is=6.093801562,1.90125,11.65361572,2.57437207,0.327875625,0.247381875,21.62320313,-2.915222855e-15 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=reflection align_corners=0 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 y.is=0.6493317188,1.085695068,0.62097,0.7309829375 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x4 grid=f64/1x1x4x2 dx=f64/1x1x3x4 mode=cubic padding=reflection align_corners=0 ; dy.is=1,-2,0.5,3 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dx.is=-0.08412029297,-0.2504101289,-0.3731757227,0.8279717695,0.8327894043,-0.7983069434,0.06457114258,1.860985459,0.5033308887,0.01934207227,0.07047958008,-0.1734572285 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x4 x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=reflection align_corners=0 ; dy.is=1,-2,0.5,3 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dgrid.is=1.3642125,6.116934375,8.298823242,4.434169922,3.5871,-0.33125625,19.96915219,7.328626875 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=reflection align_corners=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 y.is=0.9263968945,1.094835876,1.697069,-0.1172546465 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x4 grid=f64/1x1x4x2 dx=f64/1x1x3x4 mode=cubic padding=reflection align_corners=1 ; dy.is=1,-2,0.5,3 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dx.is=-0.07387467773,-0.2802224189,-0.009859861328,0.456519458,0.8483928906,-0.9431699063,0.8902393594,1.269037656,0.2985130371,0.1238884189,0.01730800195,-0.09677195801 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x4 x=f64/1x1x3x4 grid=f64/1x1x4x2 mode=cubic padding=reflection align_corners=1 ; dy.is=1,-2,0.5,3 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5 grid.is=-0.9,0.3,0.1,-0.25,1.3,-1.2,0.55,2.1 dgrid.is=4.148618555,2.899513477,10.3044397,2.978705566,2.676645,0.3579871875,14.23859449,11.43488865 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x2x9 grid=f64/1x1x3x2 mode=cubic padding=reflection align_corners=0 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 y.is=-0.6068769766,0.2842325058,1.101264063 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x3 grid=f64/1x1x3x2 dx=f64/1x1x2x9 mode=cubic padding=reflection align_corners=0 ; dy.is=1,-2,0.5 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 dx.is=0.5993679688,-0.02061796875,0.1717937622,-1.263465699,-0.3972987036,0.1232745776,-0.0051789375,0,0,-0.08155546875,0.00280546875,0.05032342529,-0.4483975825,0.5790760474,0.2141199536,-0.02424684375,0,0 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x3 x=f64/1x1x2x9 grid=f64/1x1x3x2 mode=cubic padding=reflection align_corners=0 ; dy.is=1,-2,0.5 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 dgrid.is=17.29719984,-1.811101553,-12.60490814,-3.902393005,-4.317046875,-0.00534375 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x2x9 grid=f64/1x1x3x2 mode=cubic padding=reflection align_corners=1 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 y.is=-0.3459065,0.3596132812,-0.206832 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x3 grid=f64/1x1x3x2 dx=f64/1x1x2x9 mode=cubic padding=reflection align_corners=1 ; dy.is=1,-2,0.5 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 dx.is=0.34992,0.171072,0.11266425,-1.011423,-0.36969625,0.1547875,-0.006762,0,0,0.01008,0.004928,0.06733575,-0.524577,0.36969625,0.1892125,-0.017238,0,0 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x3 x=f64/1x1x2x9 grid=f64/1x1x3x2 mode=cubic padding=reflection align_corners=1 ; dy.is=1,-2,0.5 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 dgrid.is=10.8004275,-1.066065,-9.503671875,-2.71828125,-9.66048,0.03294 dgrid.within=1e-9 plain=1
grid_sample x=f64/1x1x2x9 grid=f64/1x1x3x2 mode=cubic padding=border align_corners=0 ; x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 y.is=-1.208,1,2.5 y.within=1e-9 plain=1
grid_sample_backward_data dy=f64/1x1x1x3 grid=f64/1x1x3x2 dx=f64/1x1x2x9 mode=cubic padding=border align_corners=0 ; dy.is=1,-2,0.5 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 dx.is=-1.546875,0,0,0,0,0,0,0,0.676,-0.453125,0,0,0,0,0,0,0,0.824 dx.within=1e-9 plain=1
grid_sample_backward_grid dy=f64/1x1x1x3 x=f64/1x1x2x9 grid=f64/1x1x3x2 mode=cubic padding=border align_corners=0 ; dy.is=1,-2,0.5 x.is=1,-2,3,0.5,0,4,-1,2,2.5,1,-3,1.5,2,0.25,-4,1,5,-2 grid.is=1.95,0.3,-1.85,-0.25,3.1,-5.2 dgrid.is=-4.575759771e-15,-4.455,1.352043477e-14,-1.110223025e-16,-2.86345947e-16,-6.672967734e-16 dgrid.within=1e-9 plain=1
