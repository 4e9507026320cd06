# connectionist temporal classification: lengths at their limits and beyond, repeats, samples without a path, layouts.

# one frame, one label, none
ctc_loss x=f32/1x3x4 labels=i32/3x1 x_lengths=i32/3 label_lengths=i64/3 lse=? blank=3 ; labels=0..2 x_lengths.is=1 label_lengths.is=0,1,1 as=bf16,f64
ctc_loss x=f32/5x2x3 labels=i32/2x0 x_lengths=i32/2 label_lengths=i32/2 lse=? ; x_lengths.is=5,3
ctc_loss x=f32/0x2x3 labels=i32/2x1 x_lengths=i32/2 label_lengths=i32/2 ; label_lengths.is=0,1
ctc_loss x=f32/4x0x3 labels=i32/0x2 x_lengths=i32/0 label_lengths=i32/0 reduction=sum

# lengths below 0, at their limits, beyond; labels out of range; labels equal to blank; repeats, which need a blank between
ctc_loss x=f32/6x8x5 labels=i64/8x4 x_lengths=i32/8 label_lengths=i32/8 lse=? blank=4 ; labels=-1..3 x_lengths.is=6,6,6,0,0,-3,9,4 label_lengths.is=4,2,-1,0,1,2,3,9 as=f16,f64
ctc_loss x=f32/6x8x5 labels=i64/8x4 x_lengths=i32/8 label_lengths=i32/8 zero_infinity=1 blank=4 ; labels=0..4 x_lengths.is=6,6,6,0,0,-3,9,4 label_lengths.is=4,2,-1,0,1,2,3,9
ctc_loss x=f32/7x6x4 labels=i32/6x4 x_lengths=i64/6 label_lengths=i64/6 lse=? ; labels.is=1,1,1,1,1,2,1,2,1,1,2,2,3,3,3,1,2,2,2,1,1,2,3,3 x_lengths.is=7 label_lengths.is=4
ctc_loss x=bf16/9x5x4 labels=i32/5x6 x_lengths=i32/5 label_lengths=i32/5 reduction=mean lse=? ; labels=1..3 x_lengths.is=9,8,9,7,9 label_lengths.is=3,2,0,1,2
ctc_loss x=f32/9x5x4 labels=i32/5x6 x_lengths=i32/5 label_lengths=i32/5 reduction=sum zero_infinity=1 ; labels=1..3 x_lengths.is=9,8,0,7,9 label_lengths.is=4,2,6,1,2 as=f64

# sums over many frames; numbers of states around a warp, a block and its capacity; numbers of classes around a vector
ctc_loss x=f32/70x3x29 labels=i32/3x31 x_lengths=i32/3 label_lengths=i32/3 lse=? ; labels=1..28 x_lengths.is=70,69,50 label_lengths.is=31,30,15
ctc_loss x=f32/40x3x33 labels=i32/3x32 x_lengths=i32/3 label_lengths=i32/3 lse=? blank=32 ; labels=0..31 x_lengths.is=40,39,38 label_lengths.is=32,31,1 as=f16
ctc_loss x=f32/150x2x12 labels=i32/2x70 x_lengths=i32/2 label_lengths=i32/2 ; labels=1..11 x_lengths.is=150,149 label_lengths.is=70,50
ctc_loss x=bf16/12x3x1100 labels=i64/3x4 x_lengths=i32/3 label_lengths=i32/3 lse=? ; labels=1..1099 x_lengths.is=12,11,9 label_lengths.is=4,3,2
ctc_loss x=f32/40x1x3 labels=i32/1x520 x_lengths=i32/1 label_lengths=i32/1 reduction=sum ; labels=1..2 x_lengths.is=40 label_lengths.is=20 plain=1
ctc_loss x=f32/20x4x1 labels=i32/4x2 x_lengths=i32/4 label_lengths=i32/4 ; labels=-1..0 x_lengths.is=20,19,3,1 label_lengths.is=0,1,2,1

# logits far from 0, some of them -Inf
ctc_loss x=f32/12x3x6 labels=i32/3x4 x_lengths=i32/3 label_lengths=i32/3 lse=? ; fill=far:300,signed:60 labels=1..5 x_lengths.is=12,11,9 label_lengths.is=4,3,2

# samples first; strides
ctc_loss x=f32/6x4x8/8:48:1 labels=i32/4x3/1:4 x_lengths=i32/4/2 label_lengths=i64/4/3 lse=f32/6x4x1/1:6:1 ; labels=1..7 x_lengths.is=6,5,4,6 label_lengths.is=3,2,1,0
ctc_loss x=f32/6x4x8/1:48:6 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 loss=f32/4/2 ; labels=1..7 x_lengths.is=6,5,4,6 label_lengths.is=3,2,1,0
ctc_loss x=f32/6x4x8/8:0:1 labels=i32/4x3/0:1 x_lengths=i32/4/0 label_lengths=i32/4 ; labels=1..7 x_lengths.is=6 label_lengths.is=3,2,1,0

# gradients
ctc_loss_backward dy=f32/8 x=f32/5x8x6 labels=i32/8x3 x_lengths=i32/8 label_lengths=i32/8 lse=f32/5x8x1 blank=5 ; labels=-1..4 x_lengths.is=5,5,4,3,0,-1,7,2 label_lengths.is=3,2,-1,1,0,2,3,3 as=bf16,f64
ctc_loss_backward dy=f32/1 x=f16/5x8x7 labels=i64/8x3 x_lengths=i64/8 label_lengths=i32/8 lse=f32/5x8x1 blank=6 reduction=mean ; labels=0..4 x_lengths.is=5,5,4,3,0,-1,7,5 label_lengths.is=3,2,-1,1,0,2,3,9
ctc_loss_backward dy=f32/1 x=f32/5x8x6 labels=i32/8x3 x_lengths=i32/8 label_lengths=i32/8 lse=f32/5x8x1 reduction=sum zero_infinity=1 dx=bf16/5x8x6 ; labels=-1..5 x_lengths.is=5,5,4,3,1,2,7,5 label_lengths.is=3,2,-1,1,0,2,3,9
ctc_loss_backward dy=f32/6 x=f32/7x6x4 labels=i32/6x4 x_lengths=i64/6 label_lengths=i64/6 lse=f32/7x6x1 ; labels.is=1,1,1,1,1,2,1,2,1,1,2,2,3,3,3,1,2,2,2,1,1,2,3,3 x_lengths.is=7 label_lengths.is=4 as=f64
ctc_loss_backward dy=f32/3 x=f32/70x3x29 labels=i32/3x31 x_lengths=i32/3 label_lengths=i32/3 lse=f32/70x3x1 ; labels=1..28 x_lengths.is=70,69,50 label_lengths.is=31,30,15
ctc_loss_backward dy=f32/3 x=f32/40x3x33 labels=i32/3x32 x_lengths=i32/3 label_lengths=i32/3 lse=f32/40x3x1 blank=32 ; labels=0..31 x_lengths.is=40,39,38 label_lengths.is=32,31,1 as=bf16
ctc_loss_backward dy=f32/2 x=f32/150x2x12 labels=i32/2x70 x_lengths=i32/2 label_lengths=i32/2 lse=f32/150x2x1 ; labels=1..11 x_lengths.is=150,149 label_lengths.is=70,50
ctc_loss_backward dy=f32/3 x=bf16/12x3x1100 labels=i64/3x4 x_lengths=i32/3 label_lengths=i32/3 lse=f32/12x3x1 ; labels=1..1099 x_lengths.is=12,11,9 label_lengths.is=4,3,2
ctc_loss_backward dy=f32/4/0 x=f32/6x4x8/8:48:1 labels=i32/4x3/1:4 x_lengths=i32/4/2 label_lengths=i64/4/3 lse=f32/6x4x1/1:6:1 dx=f32/6x4x8/32:8:1 ; labels=1..7 x_lengths.is=6,5,4,6 label_lengths.is=3,2,1,0
ctc_loss_backward dy=f32/4 x=f32/6x4x8/1:48:6 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 lse=f32/6x4x1 ; labels=1..7 x_lengths.is=6,5,4,6 label_lengths.is=3,2,1,0
ctc_loss_backward dy=f32/1 x=f32/1x1x2 labels=i32/1x1 x_lengths=i32/1 label_lengths=i32/1 lse=f32/1x1x1 ; labels=1..1 x_lengths.is=1 label_lengths.is=1

# typical sizes of a recogniser
in a bf16/12x2x20
in w bf16/1x20x6
in t i32/2x3
in n i32/2
in m i32/2
x = matmul a=a b=w
out l = ctc_loss x=x labels=t x_lengths=n label_lengths=m reduction=mean lse=s
out s ; labels=1..5 n.is=12,11 m.is=3,2

# a NaN does not mean that there is no path; a mean whose gradient underflows
ctc_loss_backward dy=f32/1 x=f32/2x1x3 labels=i32/1x2 x_lengths=i32/1 label_lengths=i32/1 lse=f32/2x1x1 ; labels=1..2 x_lengths.is=2 label_lengths.is=0 x.is=nan,1,2,0,1,2 lse.is=3 plain=1
ctc_loss_backward dy=f32/1 x=f32/2x3x3 labels=i32/3x1 x_lengths=i32/3 label_lengths=i32/3 lse=f32/2x3x1 reduction=mean ; labels=1..2 x_lengths.is=2 label_lengths.is=1 dy.is=1.4e-45 lse.is=-80 plain=1

# logits whose sums over a few frames overflow f32: cpu_ref takes such samples in double
ctc_loss x=f32/31x1x7 labels=i32/1x1 x_lengths=i32/1 label_lengths=i32/1 blank=4 ; fill=large kind=cpu labels=0..6 x_lengths.is=31 label_lengths.is=1
ctc_loss_backward dy=f32/5 x=bf16/33x5x33 labels=i32/5x3 x_lengths=i32/5 label_lengths=i64/5 lse=f32/33x5x1 blank=5 zero_infinity=1 ; fill=large kind=cpu labels=0..32 x_lengths.is=26,33,7,33,5 label_lengths.is=2,1,2,0,0
