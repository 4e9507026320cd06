# Windows side by side (im2col), and their gradient (col2im).

# without padding, with stride, dilation, padding on one side, padding that whole windows are in
unfold x=f32/2x3x9x8 window=3 ; as=f16,bf16,f64
unfold x=f32/2x3x9x11 window=3,2 stride=2,3 pad=1 ; as=bf16
unfold x=f32/2x2x13x7 window=2,3 dilation=2,1 pad=0:2,1:0 ; as=f16
unfold x=f32/1x2x4x4 window=2 pad=3 stride=2
unfold x=f32/2x5x33 window=5 stride=2 pad=2 ; as=f64
unfold x=f32/1x2x5x6x7 window=2,3,2 stride=1,2,3 pad=1,0,1 ; as=bf16
unfold x=f32/2x3x6x5 window=1
unfold x=f32/2x7x8x9/nhwc window=3 pad=1 ; as=f16
unfold x=f32/3x4x10x10 window=3 y=f32/3x36x8x8/2304:1:288:36
unfold x=f32/3x1x6x6/36:0:6:1 window=2
# no window, no channel, no image
unfold x=f32/2x3x4x4 window=5
unfold x=f32/2x0x4x4 window=2
unfold x=f32/0x3x4x4 window=2
unfold_backward dy=f32/2x27x7x6 window=3 dx=f32/2x3x9x8 ; as=f16,bf16,f64
unfold_backward dy=f32/2x18x5x4 window=3,2 stride=2,3 pad=1 dx=f32/2x3x9x11 ; as=bf16
unfold_backward dy=f32/2x12x13x6 window=2,3 dilation=2,1 pad=0:2,1:0 dx=f32/2x2x13x7 ; as=f16
unfold_backward dy=f32/1x8x5x5 window=2 pad=3 stride=2 dx=f32/1x2x4x4
unfold_backward dy=f32/2x25x17 window=5 stride=2 pad=2 dx=f32/2x5x33 ; as=f64
unfold_backward dy=f32/1x24x6x2x3 window=2,3,2 stride=1,2,3 pad=1,0,1 dx=f32/1x2x5x6x7 ; as=bf16
unfold_backward dy=f32/2x63x8x9 window=3 pad=1 dx=f32/2x7x8x9/nhwc ; as=f16
unfold_backward dy=f32/2x12x2x2/48:1:24:12 window=2 stride=3 dx=f32/2x3x6x6
# elements that no window holds
unfold_backward dy=f32/1x4x2x2 window=2 stride=3 dx=f32/1x1x6x6
unfold_backward dy=f32/2x75x0x0 window=5 dx=f32/2x3x4x4
# many windows at one element
unfold_backward dy=f32/1x1024x31x32 window=32,32 dx=f32/1x1x62x63 ; tier=full
# torch 2: nn.functional.unfold and fold of 0, 1, ...
unfold x=f32/1x1x3x3 window=2 ; fill=zero x.is=0,1,2,3,4,5,6,7,8 y.is=0,1,3,4,1,2,4,5,3,4,6,7,4,5,7,8 plain=1
unfold_backward dy=f32/1x4x2x2 window=2 dx=f32/1x1x3x3 ; fill=zero dy.is=0,1,3,4,1,2,4,5,3,4,6,7,4,5,7,8 dx.is=0,2,2,6,16,10,6,14,8 plain=1
