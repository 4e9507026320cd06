# lrn and its gradient: both regions and layouts, windows odd, even, wider than x; runs of whole vectors and others; means.

lrn x=f32/2x7x3x5 ; as=f16,bf16,f64
lrn x=f32/2x16x6x6 alpha=0.5 beta=0.75 k=2 ; as=f16,bf16
lrn x=f32/2x9x70 size=4 alpha=2 beta=0.5 ; as=bf16
lrn x=f32/3x5 size=3 alpha=1 beta=1.5 ; as=f16
lrn x=f32/2x4x5 size=1 alpha=1 k=0.5
lrn x=f32/1x3x2x2x3 size=11 alpha=4 ; as=bf16,f64
lrn x=f32/2x19x6x5/nhwc alpha=0.5 ; as=bf16
lrn x=f32/2x16x6x5/nhwc alpha=0.5 ; as=f16,bf16
lrn x=f32/2x24x5x5/nhwc size=4 alpha=3 beta=0.6 k=0 ; as=bf16 fill=near
lrn x=f32/2x24x5x5/nhwc size=14 alpha=3
lrn x=f32/1x96x13x13 beta=0 ; as=bf16
lrn x=f32/2x3x7x6 size=3 alpha=2 region=within ; as=f16,bf16,f64
lrn x=f32/2x3x8x12 size=4 alpha=2 beta=0.5 region=within ; as=bf16
lrn x=f32/1x2x33 size=5 alpha=2 region=within
lrn x=f32/1x2x4x5x8 size=3 alpha=2 region=within ; as=f16
lrn x=f32/2x12x5x7/nhwc size=3 alpha=2 region=within ; as=bf16
lrn x=f32/1x70x4x4/nhwc size=5 alpha=2 region=within
# rows of whole vectors, of planes and of channels, up to the warp's lanes and beyond
lrn x=f32/2x5x11x16 size=3 alpha=2 region=within ; as=f16,bf16
lrn x=f32/1x9x7x24 alpha=2 beta=0.6 region=within ; as=bf16
lrn x=f32/2x16x37x5/nhwc alpha=0.5 ; as=bf16
# n exceeds 64 bits
lrn x=f32/1x3x20x1 size=1000000000000 alpha=1e25 region=within ; plain=1

# means: 1 to 3 dims, the largest window of a thread's rows, whole vectors; an expanded square would cancel (far); means for all channels
lrn x=f32/2x3x7x6 means=f32/2x3x7x6 size=3 alpha=2 region=within ; as=f16,bf16,f64
lrn x=f32/1x2x9x8 means=f32/1x2x9x8 size=4 alpha=2 beta=0.5 region=within ; fill=far:100
lrn x=f32/1x2x33 means=f32/1x2x33 size=6 alpha=2 region=within
lrn x=f32/1x2x3x4x5 means=f32/1x2x3x4x5 size=3 alpha=2 region=within ; as=bf16
lrn x=f32/2x8x5x7/nhwc means=f32/2x8x5x7/nhwc size=5 alpha=2 region=within ; as=f16
lrn x=f32/1x3x4x5 means=f32/1x3x4x5/60:0:5:1 size=3 alpha=2 region=within
lrn x=f32/2x7x5x8 means=f32/2x7x5x8 alpha=2
lrn x=f32/1x9x7x24 means=f32/1x9x7x24 alpha=2 region=within ; as=bf16
# wider than a warp, mean far from 0, one row
lrn x=f32/1x1x19x144 means=f32/1x1x19x144 alpha=2 region=within ; as=f16,bf16
lrn x=f32/1x2x13x16 means=f32/1x2x13x16 alpha=2 region=within ; x.fill=far:100 means.fill=far:100
lrn x=f32/1x5x1x8 means=f32/1x5x1x8 alpha=2 region=within

lrn_backward dy=f32/2x7x3x5 x=f32/2x7x3x5 alpha=0.5 ; as=f16,bf16,f64
lrn_backward dy=f32/2x16x6x6 x=f32/2x16x6x6 alpha=0.5 k=2 ; as=f16,bf16
lrn_backward dy=f32/1x5x70 x=f32/1x5x70 size=4 alpha=2 beta=0.5 ; as=bf16
lrn_backward dy=f32/1x37x6x7 x=f32/1x37x6x7 alpha=0.5 ; as=bf16
lrn_backward dy=f32/3x5 x=f32/3x5 size=3 alpha=1 beta=1.5
lrn_backward dy=f32/1x19x3x2/nhwc x=f32/1x19x3x2/nhwc alpha=0.5
lrn_backward dy=f32/1x16x3x3/nhwc x=f32/1x16x3x3/nhwc size=2 alpha=0.5 ; as=bf16
lrn_backward dy=f32/2x3x5x6 x=f32/2x3x5x6 size=3 alpha=2 region=within ; as=bf16,f64
lrn_backward dy=f32/1x2x3x4x4 x=f32/1x2x3x4x4 size=2 alpha=2 region=within
lrn_backward dy=f32/1x8x4x4/nhwc x=f32/1x8x4x4/nhwc size=3 alpha=2 region=within ; as=f16
lrn_backward dy=f32/2x5x11x16 x=f32/2x5x11x16 size=3 alpha=2 region=within ; as=bf16
lrn_backward dy=f32/1x9x7x24 x=f32/1x9x7x24 alpha=2 beta=0.6 region=within ; as=f16
lrn_backward dy=f32/2x16x37x5/nhwc x=f32/2x16x37x5/nhwc alpha=0.5 ; as=bf16

lrn_backward dy=f32/2x3x5x6 x=f32/2x3x5x6 means=f32/2x3x5x6 size=3 alpha=2 region=within dmeans=? ; as=f16,bf16,f64
lrn_backward dy=f32/1x2x6x8 x=f32/1x2x6x8 means=f32/1x2x6x8 size=4 alpha=2 beta=0.5 region=within ; x.fill=far:100 means.fill=far:100
lrn_backward dy=f32/1x2x6x8 x=f32/1x2x6x8 means=f32/1x2x6x8 size=4 alpha=2 beta=0.5 region=within dmeans=? ; x.fill=far:100 means.fill=far:100
lrn_backward dy=f32/1x2x3x4x4 x=f32/1x2x3x4x4 means=f32/1x2x3x4x4 size=2 alpha=2 region=within dmeans=?
lrn_backward dy=f32/1x8x4x4/nhwc x=f32/1x8x4x4/nhwc means=f32/1x8x4x4/nhwc size=3 alpha=2 region=within dmeans=? ; as=bf16
lrn_backward dy=f32/2x7x5x8 x=f32/2x7x5x8 means=f32/2x7x5x8 alpha=2 dmeans=?
lrn_backward dy=f32/1x9x7x24 x=f32/1x9x7x24 means=f32/1x9x7x24 alpha=2 region=within dmeans=? ; as=bf16

# planes wider than a warp, mean far from 0, one vector; several strips, the last one smaller
lrn_backward dy=f32/1x1x9x144 x=f32/1x1x9x144 means=f32/1x1x9x144 alpha=2 beta=0.6 region=within dmeans=? ; as=f16,bf16
lrn_backward dy=f32/1x2x13x16 x=f32/1x2x13x16 means=f32/1x2x13x16 alpha=2 region=within dmeans=? ; x.fill=far:100 means.fill=far:100
lrn_backward dy=f32/1x2x4x4 x=f32/1x2x4x4 means=f32/1x2x4x4 alpha=2 region=within
lrn_backward dy=f32/1x1x61x72 x=f32/1x1x61x72 means=f32/1x1x61x72 alpha=2 region=within dmeans=? ; as=bf16
lrn_backward dy=f32/2x1x61x72 x=f32/2x1x61x72 means=f32/2x1x61x72 alpha=2 region=within dmeans=? ; plain=1
lrn_backward dy=f32/3x7x57x56 x=f32/3x7x57x56 means=f32/3x7x57x56 alpha=2 region=within dmeans=? ; plain=1 kind=cuda

# a power that underflows and meets infinities; one that overflows
lrn x=f32/2x7x6x5 k=1e-05 beta=8.5 alpha=0.5 ; fill=signed,tiny plain=1
lrn_backward dy=f32/2x7x6x5 x=f32/2x7x6x5 beta=8.5 alpha=0.5 ; fill=special,tiny plain=1
lrn_backward dy=f32/2x7x6x5 x=f32/2x7x6x5 means=f32/2x7x6x5 size=3 beta=8.5 alpha=0.5 region=within dmeans=? ; fill=special plain=1
lrn_backward dy=f32/2x7x6x5 x=f32/2x7x6x5 k=0.001 beta=8.5 alpha=0.5 ; fill=special,bits plain=1 as=bf16

# squares beyond the range
lrn x=f32/2x8x5x5 size=5 ; x.is=1e20,-3e30,2e25,1,1e19 plain=1
lrn x=f32/2x8x5x5/nhwc size=3 region=within ; x.is=1e20,-3e30,2e25,1,1e19 plain=1
lrn_backward dy=f32/2x8x5x5 x=f32/2x8x5x5 size=4 ; x.is=1e20,-3e19,2e20,1e18,1e19 plain=1

# planes of an odd size, one element a lane; strips down the channels
lrn x=f32/2x70x5x7 alpha=0.5 ; as=f16,bf16
lrn_backward dy=f32/2x70x5x7 x=f32/2x70x5x7 alpha=0.5 ; as=f16,bf16
lrn_backward dy=f32/3x33x1x3 x=f32/3x33x1x3 alpha=2 k=2 beta=0.6 ; as=f16,bf16

# b beyond 2^126, where its reciprocal is subnormal
lrn x=f32/3x33x1x3 alpha=2 k=2 beta=0.6 ; fill=large:19 as=bf16
lrn_backward dy=f32/3x33x1x3 x=f32/3x33x1x3 alpha=2 k=2 beta=0.6 ; fill=large:19 as=bf16
lrn_backward dy=f32/2x9x6x8 x=f32/2x9x6x8 size=3 alpha=18 region=within ; fill=large:18.6 as=bf16
lrn_backward dy=f32/2x3x9x8 x=f32/2x3x9x8 means=f32/2x3x9x8 alpha=50 region=within dmeans=? ; fill=large:18.3 as=bf16
