# A spatial transformer: grids of affine maps with normally distributed entries, sampling by them, the gradients, each with its grid; and
# points at random positions.

affine_grid theta=f32/64x2x3 grid=f32/64x224x224x2 ; name=affine
affine_grid_backward dy=f32/64x224x224x2 ; name=affine_backward

in theta f32/16x2x3
in x f32/16x64x128x128
g = affine_grid theta=theta grid=f32/16x128x128x2
out y = grid_sample x=x grid=g ; name=sample

in theta f32/16x2x3
in x bf16/16x64x128x128/nhwc
g = affine_grid theta=theta grid=f32/16x128x128x2
out y = grid_sample x=x grid=g ; name=sample.nhwc

in theta f32/16x2x3
in dy f32/16x64x128x128
g = affine_grid theta=theta grid=f32/16x128x128x2
out dx = grid_sample_backward_data dy=dy grid=g dx=f32/16x64x128x128 ; name=backward_data

in theta f32/16x2x3
in dy bf16/16x64x128x128/nhwc
g = affine_grid theta=theta grid=f32/16x128x128x2
out dx = grid_sample_backward_data dy=dy grid=g dx=bf16/16x64x128x128/nhwc ; name=backward_data.nhwc

in theta f32/16x2x3
in dy f32/16x64x128x128
in x f32/16x64x128x128
g = affine_grid theta=theta grid=f32/16x128x128x2
out dg = grid_sample_backward_grid dy=dy x=x grid=g ; name=backward_grid

in theta f32/16x2x3
in dy bf16/16x64x128x128/nhwc
in x bf16/16x64x128x128/nhwc
g = affine_grid theta=theta grid=f32/16x128x128x2
out dg = grid_sample_backward_grid dy=dy x=x grid=g ; name=backward_grid.nhwc

grid_sample x=f32/16x64x128x128 grid=f32/16x128x128x2 ; name=sample.anywhere
grid_sample_backward_data dy=f32/16x64x128x128 grid=f32/16x128x128x2 dx=f32/16x64x128x128 ; name=backward_data.anywhere
grid_sample_backward_grid dy=f32/16x64x128x128 x=f32/16x64x128x128 grid=f32/16x128x128x2 ; name=backward_grid.anywhere
