# layer, RMS and batch normalization and their gradients: widths, axes, layouts, parameters, statistics.

# widths around vector lengths, along the last dim
layer_norm x=f32/3x1
layer_norm x=f32/3x2 ; as=bf16
layer_norm x=f32/3x7 scale=f32/1x7 shift=f32/1x7 mean=? rstd=? ; as=f16,f64
# the first element an outlier: distances taken from it cost the others their digits
layer_norm x=f32/3x10 mean=? rstd=? ; x.is=30972.0293,2697.35938,407.703094,2307.91431,1793.29407,-702.351074,1471.98975,4983.08789,-937.181396,381.485809
layer_norm x=f32/3x8 scale=f32/1x8 mean=? rstd=? ; as=bf16
layer_norm x=f32/3x9 shift=f32/1x9
layer_norm x=f32/3x17 scale=f32/1x17 shift=f32/1x17 rstd=? ; as=f16,bf16,f64
layer_norm x=f32/3x31 mean=? ; as=bf16
layer_norm x=f32/3x33 scale=f32/1x33 shift=f32/1x33 ; as=f16
layer_norm x=f32/5x64 scale=f32/1x64 shift=f32/1x64 mean=? rstd=? ; as=bf16,f64
layer_norm x=f32/2x127 mean=? rstd=? ; as=f16
layer_norm x=f32/2x128 scale=f32/1x128 shift=f32/1x128
layer_norm x=f32/2x257 scale=f32/1x257 shift=f32/1x257 mean=? rstd=? ; as=bf16
layer_norm x=f32/2x1000 scale=f32/1x1000 shift=f32/1x1000 mean=? rstd=? ; as=bf16,f16
layer_norm x=bf16/2x1024 scale=f32/1x1024 shift=f32/1x1024 mean=? rstd=?
layer_norm x=f32/2x4099 scale=f32/1x4099 shift=f32/1x4099 mean=? rstd=? ; as=bf16,f64
layer_norm x=bf16/2x8192 scale=bf16/1x8192 shift=bf16/1x8192 mean=? rstd=?
layer_norm x=f32/1x70001 mean=? rstd=? ; fill=signed plain=1
rms_norm x=f32/3x1
rms_norm x=f32/3x7 scale=f32/1x7 rstd=? ; as=f16,bf16,f64
rms_norm x=f32/3x8 rstd=? ; as=bf16
rms_norm x=f32/3x33 scale=f32/1x33
rms_norm x=f32/5x64 scale=f32/1x64 rstd=? ; as=bf16,f64
rms_norm x=f32/2x257 scale=f32/1x257 ; as=f16
rms_norm x=bf16/2x1024 scale=f32/1x1024 rstd=?
rms_norm x=f32/2x4099 scale=f32/1x4099 rstd=? ; as=bf16
rms_norm x=bf16/2x8192 scale=bf16/1x8192

# many short rows, and one
layer_norm x=f32/300x10 scale=f32/1x10 shift=f32/1x10 mean=? rstd=?
layer_norm x=bf16/1000x24 mean=? rstd=?
layer_norm x=f32/1x5

# cancellation: a mean far from zero relative to the deviation, constant rows, large and zero eps
layer_norm x=f32/3x100 mean=? rstd=? ; fill=far:1000
layer_norm x=bf16/3x100 mean=? rstd=? ; fill=far:64
layer_norm x=f32/2x4096 mean=? rstd=? ; fill=far:256 plain=1
batch_norm x=f32/4x3x5x5 mean=? rstd=? ; fill=far:1000
layer_norm x=f32/3x64 ; fill=const:3
layer_norm x=f32/3x64 eps=0.5 mean=? rstd=?
layer_norm x=f32/3x64 eps=0 mean=? rstd=? ; fill=signed
rms_norm x=f32/3x64 eps=0 rstd=? ; fill=signed
rms_norm x=f32/3x64 eps=2

# axes: several, the first, all; instance norm; group norm as a view with split channels
layer_norm x=f32/3x4x5 axis=1,2 scale=f32/1x4x5 shift=f32/1x4x5 mean=? rstd=? ; as=bf16
layer_norm x=f32/7x5 axis=0 mean=? rstd=? ; as=f64
layer_norm x=f32/3x4x5 axis=1 scale=f32/1x4x1 mean=? rstd=? ; as=f16
layer_norm x=f32/3x4x5 axis=0,1,2 mean=? rstd=?
layer_norm x=f32/3x4x5 axis=0,2 mean=? rstd=?
layer_norm x=f32/2x3x6x5 axis=2,3 scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=bf16
layer_norm x=f32/2x3x6x5/nhwc axis=2,3 scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=bf16
layer_norm x=f32/2x2x4x9 axis=2,3 scale=f32/1x2x4x1 shift=f32/1x2x4x1 mean=? rstd=? ; as=bf16
layer_norm x=f32/2x2x4x9/72:4:1:8 axis=2,3 scale=f32/1x2x4x1 shift=f32/1x2x4x1 mean=? rstd=? ; as=bf16
rms_norm x=f32/3x4x5 axis=1,2 scale=f32/1x4x5 rstd=?
rms_norm x=f32/7x5 axis=0 ; as=f64

# strides, alignment, broadcast inputs, shared memory
layer_norm x=f32/3x8/20:2 scale=f32/1x8/0:3 shift=f32/1x8 mean=? rstd=?
layer_norm x=f32/4x6/t scale=f32/1x6 mean=? rstd=?
layer_norm x=f32/4x16@4 scale=f32/1x16@4 y=f32/4x16@4
layer_norm x=bf16/5x9@2 y=bf16/5x9@2 mean=? rstd=?
layer_norm x=f32/4x5/0:1 mean=?
layer_norm x=bf16/4x64 scale=f32/1x64 shift=f32/1x64 y=f32/4x64
layer_norm x=f32/4x64 scale=bf16/1x64 shift=f16/1x64 y=bf16/4x64
layer_norm x=f32/4x64 scale=f32/4x64 shift=f32/4x1
rms_norm x=f32/3x8/20:2 scale=f32/1x8 rstd=?
rms_norm x=bf16/4x64 scale=f32/1x64 y=f32/4x64

# gradients
layer_norm_backward dy=f32/3x7 x=f32/3x7 mean=f32/3x1 rstd=f32/3x1
layer_norm_backward dy=f32/3x7 x=f32/3x7 scale=f32/1x7 mean=f32/3x1 rstd=f32/3x1 dscale=? dshift=? ; as=f64
layer_norm_backward dy=bf16/3x7 x=bf16/3x7 scale=f32/1x7 mean=f32/3x1 rstd=f32/3x1 dscale=? dshift=?
layer_norm_backward dy=f32/5x64 x=f32/5x64 scale=f32/1x64 mean=f32/5x1 rstd=f32/5x1 dscale=?
layer_norm_backward dy=f32/5x64 x=f32/5x64 scale=f32/1x64 mean=f32/5x1 rstd=f32/5x1 dshift=?
layer_norm_backward dy=bf16/2x1000 x=bf16/2x1000 scale=bf16/1x1000 mean=f32/2x1 rstd=f32/2x1 dscale=f32/1x1000 dshift=f32/1x1000
layer_norm_backward dy=f32/300x33 x=f32/300x33 scale=f32/1x33 mean=f32/300x1 rstd=f32/300x1 dscale=? dshift=?
layer_norm_backward dy=f32/2x4099 x=f32/2x4099 scale=f32/1x4099 mean=f32/2x1 rstd=f32/2x1 dscale=? dshift=? ; as=f64
layer_norm_backward dy=f16/40x128 x=f16/40x128 scale=f16/1x128 mean=f32/40x1 rstd=f32/40x1 dscale=? dshift=?
layer_norm_backward dy=f32/3x4x5 x=f32/3x4x5 mean=f32/3x1x1 rstd=f32/3x1x1 axis=1,2 dscale=? dshift=?
layer_norm_backward dy=f32/2x3x6x5/nhwc x=f32/2x3x6x5/nhwc scale=f32/1x3x1x1 mean=f32/2x3x1x1 rstd=f32/2x3x1x1 axis=2,3 dscale=? dshift=?
layer_norm_backward dy=f32/3x8/20:2 x=f32/3x8/9:1 mean=f32/3x1 rstd=f32/3x1 dx=f32/3x8/8:1
rms_norm_backward dy=f32/3x7 x=f32/3x7 rstd=f32/3x1
rms_norm_backward dy=f32/3x7 x=f32/3x7 scale=f32/1x7 rstd=f32/3x1 dscale=? ; as=f64
rms_norm_backward dy=bf16/5x64 x=bf16/5x64 scale=bf16/1x64 rstd=f32/5x1 dscale=f32/1x64
rms_norm_backward dy=f32/300x33 x=f32/300x33 scale=f32/1x33 rstd=f32/300x1 dscale=?
rms_norm_backward dy=f32/2x4099 x=f32/2x4099 scale=f32/1x4099 rstd=f32/2x1 dscale=?
layer_norm_backward dy=f32/7x5 x=f32/7x5 mean=f32/1x5 rstd=f32/1x5 axis=0 ; as=f64
rms_norm_backward dy=f32/7x5 x=f32/7x5 rstd=f32/1x5 axis=0 ; as=f64

# batch norm: spatial in both layouts, per activation, rank 2 to 5, running statistics in place
batch_norm x=f32/4x3x5x5 scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=bf16,f16,f64
batch_norm x=f32/4x3x5x5/nhwc scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=bf16
batch_norm x=f32/8x16x6x6/nhwc scale=f32/1x16x1x1 shift=f32/1x16x1x1 mean=? rstd=? ; as=bf16
batch_norm x=f32/2x40x3x7/nhwc mean=? rstd=? ; as=bf16
batch_norm x=f32/2x3x16x16 scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=f64
batch_norm x=f32/9x5 scale=f32/1x5 shift=f32/1x5 mean=? rstd=? ; as=f64
batch_norm x=f32/9x65 mean=? rstd=? ; as=bf16
batch_norm x=f32/4x3x7 scale=f32/1x3x1 mean=? rstd=?
batch_norm x=f32/2x3x3x4x5 scale=f32/1x3x1x1x1 shift=f32/1x3x1x1x1 mean=? rstd=?
batch_norm x=f32/6x3x2x2 axis=0 scale=f32/1x3x2x2 shift=f32/1x3x2x2 mean=? rstd=?
batch_norm x=f32/4x3x5x5 running_mean=f32/1x3x1x1 running_var=f32/1x3x1x1 new_mean=running_mean new_var=running_var
batch_norm x=f32/4x16x5x5/nhwc scale=f32/1x16x1x1 shift=f32/1x16x1x1 running_mean=f32/1x16x1x1 running_var=f32/1x16x1x1 mean=? rstd=? new_mean=running_mean new_var=running_var
batch_norm x=bf16/4x3x5x5/nhwc scale=f32/1x3x1x1 shift=f32/1x3x1x1 running_mean=f32/1x3x1x1 running_var=f32/1x3x1x1 mean=? rstd=? new_mean=? new_var=? momentum=0.25
batch_norm x=f32/1x3x1x1 running_mean=f32/1x3x1x1 running_var=f32/1x3x1x1 new_mean=? new_var=?
batch_norm x=f32/4x3x5x5 running_var=f32/1x3x1x1 new_var=? momentum=1
batch_norm_backward dy=f32/4x3x5x5 x=f32/4x3x5x5 scale=f32/1x3x1x1 mean=f32/1x3x1x1 rstd=f32/1x3x1x1 dscale=? dshift=? ; as=f64
batch_norm_backward dy=f32/4x3x5x5/nhwc x=f32/4x3x5x5/nhwc scale=f32/1x3x1x1 mean=f32/1x3x1x1 rstd=f32/1x3x1x1 dscale=? dshift=?
batch_norm_backward dy=bf16/8x16x6x6/nhwc x=bf16/8x16x6x6/nhwc scale=f32/1x16x1x1 mean=f32/1x16x1x1 rstd=f32/1x16x1x1 dscale=? dshift=?
batch_norm_backward dy=bf16/2x3x16x16 x=bf16/2x3x16x16 scale=f32/1x3x1x1 mean=f32/1x3x1x1 rstd=f32/1x3x1x1 dscale=? dshift=?
batch_norm_backward dy=f32/9x5 x=f32/9x5 mean=f32/1x5 rstd=f32/1x5 dscale=? dshift=? ; as=f64
batch_norm_backward dy=f32/6x3x2x2 x=f32/6x3x2x2 axis=0 mean=f32/1x3x2x2 rstd=f32/1x3x2x2 dscale=? dshift=?
batch_norm_inference x=f32/4x3x5x5 mean=f32/1x3x1x1 var=f32/1x3x1x1 scale=f32/1x3x1x1 shift=f32/1x3x1x1 ; as=f64
batch_norm_inference x=bf16/4x3x5x5/nhwc mean=f32/1x3x1x1 var=f32/1x3x1x1 scale=f32/1x3x1x1 shift=f32/1x3x1x1
batch_norm_inference x=f32/9x5 mean=f32/1x5 var=f32/1x5 ; as=f64
batch_norm_inference x=f32/6x3x2x2 axis=0 mean=f32/1x3x2x2 var=f32/1x3x2x2 shift=f32/1x3x2x2

# rows of whole vectors; more than the blocks take at once; rows of several blocks
layer_norm x=bf16/9x3000 scale=f32/1x3000 shift=bf16/1x3000 mean=? rstd=?
layer_norm x=bf16/3x20000 scale=bf16/1x20000 shift=bf16/1x20000 mean=? rstd=? ; plain=1
rms_norm x=f16/2x131072 scale=f32/1x131072 rstd=? ; plain=1
layer_norm x=bf16/3x2x4x72 axis=2,3 scale=bf16/1x2x4x1 shift=bf16/1x2x4x1 mean=? rstd=?
layer_norm x=f32/3x2x4x9 axis=2,3 scale=f32/1x2x4x1 shift=f32/1x2x4x1 mean=? rstd=? ; as=bf16
layer_norm x=bf16/2x2x8x3136 axis=2,3 scale=f32/1x2x8x1 shift=f32/1x2x8x1 mean=? rstd=? ; plain=1
layer_norm x=f32/2x3x4x19 axis=2,3 scale=f32/1x3x4x1 ; as=bf16,f64
layer_norm x=f32/2x3x4x19 axis=2,3 shift=f32/1x3x4x1 ; plain=1

# gradients of parameters summed in shares of the groups
layer_norm_backward dy=f32/37x20 x=f32/37x20 scale=f32/1x20 mean=f32/37x1 rstd=f32/37x1 dscale=? dshift=? ; as=bf16,f64
rms_norm_backward dy=f32/300x33 x=f32/300x33 scale=f32/1x33 rstd=f32/300x1 dscale=? ; plain=1
layer_norm x=bf16/2x4x16x2048/131072:16:1:64 axis=2,3 scale=bf16/1x4x16x1 mean=? rstd=? ; plain=1
layer_norm x=bf16/4x6x64 axis=2 scale=f32/4x1x64 shift=bf16/1x6x64 mean=? rstd=?
layer_norm_backward dy=bf16/2200x24 x=bf16/2200x24 scale=bf16/1x24 mean=f32/2200x1 rstd=f32/2200x1 dscale=? dshift=? ; plain=1
rms_norm_backward dy=bf16/140x4104 x=bf16/140x4104 scale=bf16/1x4104 rstd=f32/140x1 dscale=? ; plain=1
layer_norm_backward dy=f16/9x1032 x=f16/9x1032 scale=f16/1x1032 mean=f32/9x1 rstd=f32/9x1 dscale=? dshift=?
layer_norm_backward dy=bf16/9x2056 x=bf16/9x2056 scale=f32/1x2056 mean=f32/9x1 rstd=f32/9x1 dscale=? dshift=?
layer_norm_backward dy=bf16/5x17000 x=bf16/5x17000 scale=bf16/1x17000 mean=f32/5x1 rstd=f32/5x1 dscale=? dshift=? ; plain=1
layer_norm_backward dy=bf16/2x65537 x=bf16/2x65537 scale=bf16/1x65537 mean=f32/2x1 rstd=f32/2x1 dscale=? dshift=? ; plain=1
batch_norm x=bf16/16x264x9x9/nhwc scale=f32/1x264x1x1 shift=f32/1x264x1x1 mean=? rstd=? ; plain=1
batch_norm x=f16/8x3x64x72 scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=?
batch_norm x=bf16/16x5x14x14 scale=f32/1x5x1x1 shift=f32/1x5x1x1 mean=? rstd=?
batch_norm_backward dy=bf16/16x64x10x10/nhwc x=bf16/16x64x10x10/nhwc scale=f32/1x64x1x1 mean=f32/1x64x1x1 rstd=f32/1x64x1x1 dscale=? dshift=?
batch_norm_backward dy=bf16/8x3x64x72 x=bf16/8x3x64x72 scale=f32/1x3x1x1 mean=f32/1x3x1x1 rstd=f32/1x3x1x1 dscale=? dshift=?
batch_norm x=f64/40x600 scale=f64/1x600 mean=? rstd=? ; plain=1
batch_norm_backward dy=f64/40x600 x=f64/40x600 scale=f64/1x600 mean=f64/1x600 rstd=f64/1x600 dscale=? dshift=? ; plain=1

# group and instance norm, channels last: rows of several chunks, groups wider than a band, parameters per outer dim, one row;
# and their gradients, in both layouts
layer_norm x=f32/2x3x12x480/17280:12:1:36 axis=2,3 scale=f32/1x3x12x1 shift=f32/1x3x12x1 mean=? rstd=? ; as=bf16,f64
layer_norm x=f32/1x2x1030x9/18540:1030:1:2060 axis=2,3 scale=f32/1x2x1030x1 shift=f32/1x2x1030x1 mean=? rstd=?
layer_norm x=f32/5x3x4x9/108:4:1:12 axis=2,3 scale=f32/5x3x4x1 shift=f32/5x3x4x1
rms_norm x=f32/3x4x6 axis=2 scale=f32/1x4x6 rstd=?
layer_norm_backward dy=f32/2x3x4x9/108:4:1:12 x=f32/2x3x4x9/108:4:1:12 scale=f32/1x3x4x1 mean=f32/2x3x1x1 rstd=f32/2x3x1x1 axis=2,3 dscale=? dshift=? ; as=bf16,f64
layer_norm_backward dy=f32/4x2x130x67/17420:130:1:260 x=f32/4x2x130x67/17420:130:1:260 scale=f32/1x2x130x1 mean=f32/4x2x1x1 rstd=f32/4x2x1x1 axis=2,3 dscale=? ; plain=1
rms_norm_backward dy=f32/2x3x4x9/108:4:1:12 x=f32/2x3x4x9/108:4:1:12 scale=f32/1x3x4x1 rstd=f32/2x3x1x1 axis=2,3 dscale=?
layer_norm_backward dy=f32/2x3x4x19 x=f32/2x3x4x19 scale=f32/1x3x4x1 mean=f32/2x3x1x1 rstd=f32/2x3x1x1 axis=2,3 dscale=? dshift=? ; as=bf16,f64
layer_norm_backward dy=f32/3x5x6x6 x=f32/3x5x6x6 scale=f32/1x5x1x1 mean=f32/3x5x1x1 rstd=f32/3x5x1x1 axis=2,3 dscale=? dshift=?
layer_norm_backward dy=bf16/2x2x3x3001 x=bf16/2x2x3x3001 scale=f32/1x2x3x1 mean=f32/2x2x1x1 rstd=f32/2x2x1x1 axis=2,3 dshift=? ; plain=1

# nothing to normalize over, and no rows
layer_norm x=f32/0x5 mean=? rstd=?
layer_norm x=f32/3x0 mean=? rstd=?
batch_norm x=f32/0x3x4x4

# in graphs: after a residual add, before an activation
in a f32/4x64
in b f32/4x64
in g f32/1x64
in h f32/1x64
s = add a=a b=b
out y = layer_norm x=s scale=g shift=h ; as=bf16

in x f32/4x3x5x5
in g f32/1x3x1x1
in h f32/1x3x1x1
in r f32/4x3x5x5
n = batch_norm x=x scale=g shift=h
s = add a=n b=r
out y = relu x=s ; as=bf16

# group norm, channels last, with more than 1344 channels
layer_norm x=bf16/2x8x208x36/59904:208:1:1664 axis=2,3 scale=bf16/1x8x208x1 shift=bf16/1x8x208x1 mean=? rstd=? ; plain=1

# gradients of group norm, held on chip: vectors of two channels, several units per channel, more items than resident blocks, an image
# of several blocks, lane counts that are no power of two, a group in one cluster and in more
layer_norm_backward dy=f32/2x3x8x19 x=f32/2x3x8x19 scale=f32/1x3x8x1 mean=f32/2x3x1x1 rstd=f32/2x3x1x1 axis=2,3 dscale=? dshift=? ; as=bf16 plain=1
rms_norm_backward dy=f32/3x5x8x49 x=f32/3x5x8x49 scale=f32/1x5x8x1 rstd=f32/3x5x1x1 axis=2,3 dscale=? ; as=f16 plain=1
layer_norm_backward dy=bf16/700x8x2x32 x=bf16/700x8x2x32 scale=bf16/1x8x2x1 mean=f32/700x8x1x1 rstd=f32/700x8x1x1 axis=2,3 dscale=? ; plain=1
layer_norm_backward dy=bf16/3x5x8x300/12000:8:1:40 x=bf16/3x5x8x300/12000:8:1:40 scale=f32/1x5x8x1 mean=f32/3x5x1x1 rstd=f32/3x5x1x1 axis=2,3 dscale=? dshift=? ; plain=1
layer_norm_backward dy=bf16/2x4x16x3000/192000:16:1:64 x=bf16/2x4x16x3000/192000:16:1:64 mean=f32/2x4x1x1 rstd=f32/2x4x1x1 axis=2,3 dshift=bf16/1x4x16x1 ; plain=1
rms_norm_backward dy=f32/5x16x77/1232:1:16 x=f32/5x16x77/1232:1:16 scale=f32/1x16x1 rstd=f32/5x16x1 axis=2 dscale=? ; plain=1
layer_norm_backward dy=f32/2x1x4x30000 x=f32/2x1x4x30000 scale=f32/1x1x4x1 mean=f32/2x1x1x1 rstd=f32/2x1x1x1 axis=2,3 dscale=? dshift=? ; plain=1
layer_norm_backward dy=bf16/2x1x8x32000 x=bf16/2x1x8x32000 scale=bf16/1x1x8x1 mean=f32/2x1x1x1 rstd=f32/2x1x1x1 axis=2,3 dscale=? dshift=? ; plain=1

# long rows, in a ring of slices: more rows than slots
layer_norm x=f32/9x557056 scale=f32/1x557056 rstd=? ; fill=signed plain=1 kind=cuda

# gradients of parameters that vary with the group, and of one that does not
layer_norm_backward dy=bf16/2x3x16x40 x=bf16/2x3x16x40 scale=f32/1x3x16x1 mean=f32/2x3x1x1 rstd=f32/2x3x1x1 axis=2,3 dscale=? dshift=f32/1x1x16x1 ; plain=1

# group norm, a group held on chip: vectors of two channels, several groups per block, one channel per group
layer_norm x=f32/2x4x16x49 axis=2,3 scale=f32/1x4x16x1 shift=f32/1x4x16x1 mean=? rstd=? ; as=bf16 plain=1
layer_norm x=bf16/2x3x8x3136 axis=2,3 scale=f32/1x3x8x1 shift=f32/1x3x8x1 ; plain=1
layer_norm x=f16/5x8x16x16 axis=2,3 scale=f16/1x8x1x1 shift=f16/1x8x1x1 mean=? ; plain=1
rms_norm x=f32/3x2x8x44 axis=2,3 scale=f32/1x2x8x1 rstd=? ; as=bf16 plain=1 tier=quick

in x bf16/2x4x8x120
in g bf16/1x4x8x1
in h bf16/1x4x8x1
n = layer_norm x=x scale=g shift=h axis=2,3
out y = gelu x=n ; plain=1

# gradients of rows held in a block's registers: several per block, which loops; one
layer_norm_backward dy=bf16/1100x600 x=bf16/1100x600/608:1 scale=bf16/1x600 mean=f32/1100x1 rstd=f32/1100x1 dscale=? dshift=? ; plain=1
rms_norm_backward dy=bf16/140x2048 x=bf16/140x2048 scale=bf16/1x2048 rstd=f32/140x1 dscale=f32/1x2048 ; plain=1
layer_norm_backward dy=f16/7x4104 x=f16/7x4104 mean=f32/7x1 rstd=f32/7x1 dshift=? ; plain=1

# bands: of one block, and of a cluster; channels first, with planes that fill no words, or two that share one
layer_norm x=bf16/2x8x8x3136/200704:8:1:64 axis=2,3 scale=bf16/1x8x8x1 shift=bf16/1x8x8x1 mean=? rstd=? ; plain=1
layer_norm x=f32/1x8x4x3001/96032:4:1:32 axis=2,3 scale=f32/1x8x4x1 shift=f32/1x8x4x1 mean=? rstd=? ; plain=1
layer_norm x=f16/2x32x2x12544/802816:2:1:64 axis=2,3 scale=f16/1x32x2x1 shift=f16/1x32x2x1 mean=? rstd=? ; plain=1 kind=cuda
batch_norm x=bf16/128x8x14x14 scale=f32/1x8x1x1 shift=f32/1x8x1x1 running_mean=f32/1x8x1x1 running_var=f32/1x8x1x1 mean=? rstd=? new_mean=? new_var=? ; plain=1
batch_norm x=bf16/128x32x7x7 scale=f32/1x32x1x1 shift=f32/1x32x1x1 mean=? rstd=? ; plain=1
batch_norm x=f16/16x48x3x2 scale=f32/1x48x1x1 shift=f32/1x48x1x1 mean=? rstd=?

# bands that resident blocks take in turn: words of one channel, of two; a few words per thread, and many
batch_norm x=f16/2x8512x4x4 scale=f32/1x8512x1x1 shift=f32/1x8512x1x1 mean=? rstd=? ; plain=1
batch_norm x=bf16/5x1080x14x14 scale=f32/1x1080x1x1 shift=f32/1x1080x1x1 running_mean=f32/1x1080x1x1 running_var=f32/1x1080x1x1 mean=? rstd=? new_mean=? new_var=? ; plain=1
batch_norm x=f32/4x1056x7x7 scale=f32/1x1056x1x1 rstd=? ; fill=far:1000 plain=1
batch_norm x=bf16/40x2128x7x7 shift=f32/1x2128x1x1 mean=? ; plain=1 kind=cuda
batch_norm_backward dy=bf16/6x2160x7x7 x=bf16/6x2160x7x7 scale=f32/1x2160x1x1 mean=f32/1x2160x1x1 rstd=f32/1x2160x1x1 dscale=? dshift=? ; plain=1
batch_norm_backward dy=f32/3x3264x3x4 x=f32/3x3264x3x4 mean=f32/1x3264x1x1 rstd=f32/1x3264x1x1 dshift=? ; plain=1
batch_norm_backward dy=f16/64x272x14x14 x=f16/64x272x14x14 scale=f32/1x272x1x1 mean=f32/1x272x1x1 rstd=f32/1x272x1x1 dscale=? dshift=? ; plain=1 kind=cuda

in x bf16/3x544x7x7
in g f32/1x544x1x1
n = batch_norm x=x scale=g
out y = silu x=n

# rows of a cluster's blocks, the last one with less, or as much; of a ring of 17 parts, of 35
rms_norm x=f16/3x40000 scale=f16/1x40000 rstd=? ; plain=1
layer_norm x=f32/5x20004 scale=f32/1x20004 shift=f32/1x20004 mean=? rstd=? ; plain=1
layer_norm x=bf16/3x65536 scale=bf16/1x65536 shift=bf16/1x65536 mean=? rstd=? ; plain=1
rms_norm x=f32/4x32768 scale=f32/1x32768 rstd=? ; plain=1
layer_norm x=f16/1x131072 ; plain=1
rms_norm x=bf16/27x262152 scale=bf16/1x262152 ; plain=1 kind=cuda
layer_norm x=bf16/9x557072 scale=bf16/1x557072 shift=bf16/1x557072 mean=? rstd=? ; plain=1 kind=cuda

# gradients of bands
layer_norm_backward dy=bf16/2x8x8x3136/200704:8:1:64 x=bf16/2x8x8x3136/200704:8:1:64 axis=2,3 scale=bf16/1x8x8x1 mean=f32/2x8x1x1 rstd=f32/2x8x1x1 dscale=? dshift=? ; plain=1
layer_norm_backward dy=f32/1x8x4x3001/96032:4:1:32 x=f32/1x8x4x3001/96032:4:1:32 axis=2,3 scale=f32/1x8x4x1 mean=f32/1x8x1x1 rstd=f32/1x8x1x1 dscale=? dshift=? ; plain=1
layer_norm_backward dy=f16/2x32x2x12544/802816:2:1:64 x=f16/2x32x2x12544/802816:2:1:64 axis=2,3 scale=f16/1x32x2x1 mean=f32/2x32x1x1 rstd=f32/2x32x1x1 dscale=? dshift=? ; plain=1 kind=cuda
batch_norm_backward dy=bf16/128x8x14x14 x=bf16/128x8x14x14 scale=f32/1x8x1x1 mean=f32/1x8x1x1 rstd=f32/1x8x1x1 dscale=? dshift=? ; plain=1
batch_norm_backward dy=bf16/128x32x7x7 x=bf16/128x32x7x7 scale=f32/1x32x1x1 mean=f32/1x32x1x1 rstd=f32/1x32x1x1 dscale=? ; plain=1

in x bf16/2x4x8x120/3840:8:1:32
in g bf16/1x4x8x1
in h bf16/1x4x8x1
n = layer_norm x=x scale=g shift=h axis=2,3
out y = silu x=n

in x f16/2x4x8x120/3840:8:1:32
n = layer_norm x=x axis=2,3
out y = silu x=n beta=-2.5

# e^-x beyond f32, with a subnormal or zero result
in x bf16/2x4x8x120/3840:8:1:32
n = layer_norm x=x axis=2,3
out y = silu x=n beta=60

in x bf16/2x4x8x120/3840:8:1:32
in g bf16/1x4x8x1
n = layer_norm x=x scale=g axis=2,3
out y = gelu_tanh x=n

# subnormal means, and differences before scaling
rms_norm x=f32/2x3 scale=f32/1x3 ; x.is=3,1e-43,2.1e-43,-2,5e-44,1.3e-43 scale.is=1,7.1,-6.7 plain=1
layer_norm x=f32/2x4 scale=f32/1x4 ; x.is=0,0,0,1e-43 scale.is=1,7.1,-6.7,3 plain=1

# the difference times rstd may overflow, not its terms
layer_norm_backward dy=f32/1x8x4/32:1:8 x=f32/1x8x4/32:1:8 axis=2 scale=f32/1x8x1 mean=f32/1x8x1 rstd=f32/1x8x1 dscale=? ; dy.is=1,2,3,4,5,7,9 x.is=1e-20,-3e-20,2e-20,1e-21,0 mean.is=0 rstd.is=1e20 scale.is=1e25 plain=1

# with given statistics: more rows and groups than a block takes, whole vectors and others; parameters with gaps; gaps between images
batch_norm_inference x=f32/5x264x9x9/nhwc mean=f32/1x264x1x1 var=f32/1x264x1x1 scale=f32/1x264x1x1 shift=f32/1x264x1x1 ; as=bf16,f16
batch_norm_inference x=f32/3x16x3x3/nhwc mean=f32/1x16x1x1/32:2:1:1 var=f32/1x16x1x1/48:3:1:1 shift=f32/1x16x1x1 ; as=bf16,f16
batch_norm_inference x=f32/9x4x24x48 mean=f32/1x4x1x1 var=f32/1x4x1x1 scale=f32/1x4x1x1 shift=f32/1x4x1x1 ; as=bf16,f16
batch_norm_inference x=f32/70x3x5x7 mean=f32/1x3x1x1/9:3:1:1 var=f32/1x3x1x1 scale=f32/1x3x1x1 ; as=bf16,f16
batch_norm_inference x=f32/3x8x4x4/200:16:4:1 mean=f32/1x8x1x1 var=f32/1x8x1x1 scale=f32/1x8x1x1 ; as=bf16
batch_norm_inference x=f32/3x8x4x4/200:1:40:8 mean=f32/1x8x1x1 var=f32/1x8x1x1 scale=f32/1x8x1x1 ; as=bf16
batch_norm_inference x=bf16/4x16x4x4/nhwc@2 mean=f32/1x16x1x1@4 var=f32/1x16x1x1 scale=f32/1x16x1x1

in x f32/3x16x9x9/nhwc
in m f32/1x16x1x1
in v f32/1x16x1x1
in g f32/1x16x1x1
n = batch_norm_inference x=x mean=m var=v scale=g eps=0.25
out y = relu x=n ; as=bf16,f16

in x f32/3x16x9x9/nhwc
in r f32/3x16x9x9/nhwc
in m f32/1x16x1x1
in v f32/1x16x1x1
in h f32/1x16x1x1
n = batch_norm_inference x=x mean=m var=v shift=h
s = add a=n b=r
out y = relu x=s ; as=bf16,f16

in x f32/9x4x24x48
in r f32/9x4x24x48
in m f32/1x4x1x1
in v f32/1x4x1x1
n = batch_norm_inference x=x mean=m var=v
t = tanh x=n
out y = mul a=t b=r ; as=bf16,f16

# groups of one element: a row alone has one parameter too, and must give the same bits
rms_norm_backward dy=f32/3x1 x=f32/3x1 scale=f32/1x1 rstd=f32/3x1 dscale=? ; fill=near plain=1
layer_norm_backward dy=f32/3x1 x=f32/3x1 scale=f32/3x1 mean=f32/3x1 rstd=f32/3x1 dscale=? ; fill=near plain=1

# more items than an H200 has blocks or teams of blocks: each takes several
layer_norm_backward dy=f32/41x2x32x856/54784:32:1:64 x=f32/41x2x32x856/54784:32:1:64 axis=2,3 scale=f32/1x2x32x1 mean=f32/41x2x1x1 rstd=f32/41x2x1x1 dscale=? dshift=? ; plain=1 fill=signed kind=cuda
layer_norm_backward dy=bf16/1200x8x8x5/320:8:1:64 x=bf16/1200x8x8x5/320:8:1:64 axis=2,3 scale=f32/1x8x8x1 mean=f32/1200x8x1x1 rstd=f32/1200x8x1x1 dscale=? dshift=? ; plain=1 fill=signed
layer_norm_backward dy=bf16/2700x8x8x5/320:8:1:64 x=bf16/2700x8x8x5/320:8:1:64 axis=2,3 scale=f32/1x8x8x1 mean=f32/2700x8x1x1 rstd=f32/2700x8x1x1 dscale=? dshift=? ; plain=1 fill=signed kind=cuda
layer_norm x=bf16/2700x8x8x5/320:8:1:64 axis=2,3 scale=bf16/1x8x8x1 mean=? rstd=? ; plain=1 fill=signed kind=cuda
layer_norm x=f32/520x8x4x24/768:4:1:32 axis=2,3 scale=f32/1x8x4x1 shift=f32/1x8x4x1 mean=? rstd=? ; plain=1 kind=cuda
rms_norm_backward dy=f16/1200x16x5/80:1:16 x=f16/1200x16x5/80:1:16 axis=2 scale=f16/1x16x1 rstd=f32/1200x16x1 dscale=? ; plain=1 fill=signed

# group norm, channels last: words of two groups, of one, of one per element
layer_norm x=f32/3x32x10x700/224000:10:1:320 axis=2,3 scale=f32/1x32x10x1 shift=f32/1x32x10x1 mean=? rstd=? ; as=bf16 plain=1 kind=cuda
layer_norm x=bf16/5x32x16x196/100352:16:1:512 axis=2,3 scale=bf16/1x32x16x1 shift=bf16/1x32x16x1 mean=? rstd=? ; plain=1
layer_norm x=f16/3x32x2x1801/115264:2:1:64 axis=2,3 scale=f32/1x32x2x1 ; plain=1
layer_norm x=bf16/4x8x8x50/3200:8:1:64 axis=2,3 scale=bf16/1x8x8x1 mean=? rstd=? ; fill=signed:4,bits plain=1

# squares and products beyond f32
layer_norm x=bf16/16x8 scale=bf16/1x8 mean=? rstd=? ; fill=signed:4,bits plain=1
rms_norm x=bf16/16x7 scale=bf16/1x7 rstd=? ; fill=signed:4,bits plain=1
batch_norm_inference x=f32/4x3x5x5/nhwc mean=f32/1x3x1x1 var=f32/1x3x1x1 scale=f32/1x3x1x1 shift=f32/1x3x1x1 ; fill=signed:4,bits var.fill=pos plain=1
rms_norm_backward dy=bf16/16x8 x=bf16/16x8 scale=bf16/1x8 rstd=f32/16x1 dscale=? axis=1 ; fill=signed:4,bits plain=1

# a parameter along the normalized dims, where one group has as many channels as it has elements
batch_norm_inference x=f32/2x1x2x1 mean=f32/1x1x1x1 var=f32/1x1x1x1 scale=f32/1x1x2x1 ; fill=pos plain=1
batch_norm_inference x=f32/3x4x5/nhwc mean=f32/1x4x1 var=f32/1x4x1 shift=f32/1x4x5 ; fill=pos plain=1
batch_norm_inference x=f32/3x4x8 mean=f32/1x4x1 var=f32/1x4x1 scale=f32/3x1x1 ; fill=pos plain=1

# a subnormal scale must not lose digits to an early product
batch_norm_backward dy=f32/2x8x4x3 x=f32/2x8x4x3 scale=f32/1x8x4x3 mean=f32/1x8x4x3/288:36:9:3 rstd=f32/1x8x4x3@4 dscale=? dshift=? axis=0 ; fill=special seed=8695

# a first element far from all others: a shift by it would leave the mean few digits
layer_norm x=bf16/1200x8x8x5/320:8:1:64 scale=bf16/1x8x8x1 shift=bf16/1x8x8x1 mean=? rstd=? axis=2,3 ; fill=special plain=1

# groups of one value: 0, and nothing but the rounding of the mean, in any layout
layer_norm x=f32/3x100 mean=? rstd=? ; fill=zero x.is=123457 y.is=0 plain=1 as=bf16,f64
layer_norm x=f32/2x10000 mean=? rstd=? ; fill=zero x.is=3000.7 y.is=0 plain=1 as=bf16,f64
layer_norm x=f32/3x1024 mean=? rstd=? ; fill=zero x.is=3000.7 y.is=0 plain=1 as=bf16
layer_norm x=f32/5x2000 ; fill=zero x.is=3000.7 y.is=0 plain=1 as=bf16,f64
batch_norm x=f32/8x4x32x32/nhwc mean=? rstd=? ; fill=zero x.is=100.3 y.is=0 plain=1 as=bf16
batch_norm x=f32/8x4x32x32 mean=? rstd=? ; fill=zero x.is=100.3 y.is=0 plain=1 as=bf16
batch_norm x=f32/64x6x7x7 mean=? rstd=? running_mean=f32/1x6x1x1 running_var=f32/1x6x1x1 new_mean=? new_var=? momentum=1 ; fill=zero x.is=1.7 y.is=0 plain=1
batch_norm x=f32/4x64x14x14/nhwc mean=? rstd=? running_mean=f32/1x64x1x1 running_var=f32/1x64x1x1 new_mean=? new_var=? momentum=1 ; fill=zero x.is=1.7 y.is=0 plain=1
layer_norm x=f32/8x32x8x196 axis=2,3 scale=f32/1x32x8x1 shift=f32/1x32x8x1 ; fill=zero x.is=1.7 y.is=0.5 scale.is=2 shift.is=0.5 plain=1 as=bf16
layer_norm x=f32/8x32x8x196/50176:8:1:256 axis=2,3 scale=f32/1x32x8x1 shift=f32/1x32x8x1 ; fill=zero x.is=1.7 y.is=0.5 scale.is=2 shift.is=0.5 plain=1 as=bf16
layer_norm x=f32/8x32x3x196/18816:3:1:96 axis=2,3 scale=f32/1x32x3x1 shift=f32/1x32x3x1 ; fill=zero x.is=1.7 y.is=0.5 scale.is=2 shift.is=0.5 plain=1 as=bf16

# finite values whose squares overflow
layer_norm x=f32/2x4 mean=? rstd=? ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=-1.3416408,-0.4472136,0.4472136,1.3416408 y.within=1e-6 mean.is=2.5e30 mean.within=1e-6 rstd.is=8.94427191e-31 rstd.within=1e-36 plain=1
layer_norm x=f32/3x1024 ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=-1.3416408,-0.4472136,0.4472136,1.3416408 y.within=1e-6 plain=1
layer_norm x=f32/3x5000 ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=-1.3416408,-0.4472136,0.4472136,1.3416408 y.within=1e-6 plain=1
layer_norm x=bf16/3x1024 ; fill=zero x.is=-1e30,1e30 y.is=-1,1 y.within=1e-6 plain=1
rms_norm x=f32/2x4 rstd=? ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=0.36514837,0.73029674,1.0954451,1.4605935 y.within=1e-6 plain=1
rms_norm x=f32/2x1024 rstd=? ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=0.36514837,0.73029674,1.0954451,1.4605935 y.within=1e-6 plain=1
layer_norm x=f64/2x4 ; fill=zero x.is=1e200,2e200,3e200,4e200 y.is=-1.3416407864998738,-0.4472135954999579,0.4472135954999579,1.3416407864998738 y.within=1e-14 plain=1
batch_norm x=f32/8x4x32x32/nhwc mean=? rstd=? ; fill=zero x.is=-1e30,-1e30,-1e30,-1e30,1e30,1e30,1e30,1e30 plain=1
batch_norm x=f32/8x4x32x32 mean=? rstd=? ; fill=zero x.is=-1e30,1e30 y.is=-1,1 y.within=1e-6 plain=1
layer_norm x=f32/8x32x8x196 axis=2,3 scale=f32/1x32x8x1 shift=f32/1x32x8x1 ; fill=zero x.is=-1e30,1e30 y.is=-1,1 y.within=1e-6 scale.is=1 shift.is=0 plain=1 as=bf16
layer_norm x=f32/8x32x8x196/50176:8:1:256 axis=2,3 scale=f32/1x32x8x1 shift=f32/1x32x8x1 ; fill=zero x.is=-1e30,1e30 y.is=-1,1 y.within=1e-6 scale.is=1 shift.is=0 plain=1 as=bf16

# the same of rows too long for a block's registers
layer_norm x=bf16/2x24576 mean=? rstd=? ; fill=zero x.is=3000.7 y.is=0 plain=1 kind=cuda as=f32
layer_norm x=bf16/2x24576 mean=? rstd=? ; fill=zero x.is=-1e30,1e30 y.is=-1,1 y.within=1e-6 plain=1 kind=cuda as=f32
layer_norm x=bf16/2x262144 scale=bf16/1x262144 shift=bf16/1x262144 mean=? rstd=? ; fill=zero x.is=1.7 y.is=0.5 scale.is=2 shift.is=0.5 plain=1 kind=cuda
layer_norm x=bf16/2x262144 scale=bf16/1x262144 shift=bf16/1x262144 mean=? rstd=? ; fill=zero x.is=-1e30,1e30 y.is=-1,1 y.within=1e-6 scale.is=1 shift.is=0 plain=1 kind=cuda
# a constant channel, whose mean must not drift, in each layout
batch_norm x=f32/8x4x32x32/nhwc mean=? rstd=? ; fill=const:100.3,const:1.7 plain=1
batch_norm x=f32/8x4x32x32 mean=? rstd=? ; fill=const:100.3,const:1.7 plain=1
layer_norm x=f32/3x5000 mean=? rstd=? ; fill=const:3000.7,const:123457 plain=1 as=f16,f64
layer_norm x=f32/2x32x2x300/19200:2:1:64 axis=2,3 mean=? rstd=? ; fill=const:100.3 plain=1

# values near the ends of the range: what is representable comes out
layer_norm x=f32/3x4 eps=0 mean=? rstd=? ; x.is=1e30,2e30,3e30,4e30 plain=1 as=bf16
layer_norm x=f32/3x1000 scale=f32/1x1000 shift=f32/1x1000 mean=? rstd=? ; x.is=3e38,-1e38,2e38,-3e38,2e37 plain=1
layer_norm x=f32/3x1000 eps=0 mean=? rstd=? ; x.is=1e-30,3e-30,2e-30,1.5e-30,-1e-30 plain=1
rms_norm x=f32/3x1000 rstd=? ; x.is=3e38,-1e38,2e38,-3e38,2e37 plain=1
rms_norm x=f32/3x1000 eps=0 rstd=? ; x.is=1e-30,3e-30,2e-30,1.5e-30,-1e-30 plain=1
batch_norm x=f32/40x5 eps=0 mean=? rstd=? ; x.is=3e38,-1e38,2e38,-3e38,2e37 plain=1
batch_norm x=f32/4x3x20 eps=0 mean=? rstd=? ; x.is=1e30,2e-30,3e30,4e-30 plain=1
# a constant group gives 0 within the rounding of its mean
batch_norm x=f32/8x4x32x32/nhwc scale=f32/1x4x1x1 shift=f32/1x4x1x1 mean=? rstd=? ; fill=const:100.3,const:1.7 scale.fill=one shift.fill=zero plain=1
batch_norm x=f32/8x4x32x32 scale=f32/1x4x1x1 shift=f32/1x4x1x1 mean=? rstd=? ; fill=const:100.3,const:1.7 scale.fill=one shift.fill=zero plain=1
batch_norm x=f16/8x4x32x32/nhwc ; fill=const:100.3 plain=1
batch_norm x=bf16/8x4x32x32/nhwc ; fill=const:100.3 plain=1
batch_norm x=f64/8x4x32x32/nhwc ; fill=const:100.3 plain=1
layer_norm x=f32/3x100 ; fill=const:123457 plain=1
layer_norm x=f32/3x10000 ; fill=const:3000.7 plain=1
layer_norm x=f32/8x40x6x6/nhwc axis=1,2,3 ; fill=const:3000.7 plain=1
layer_norm x=f32/1x8x4x3001/96032:4:1:32 axis=2,3 ; fill=const:100.3 plain=1

# large values: what is representable comes out
layer_norm x=f32/1x4 rstd=? ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=-1.3416408,-0.4472136,0.4472136,1.3416408 y.within=1e-6 plain=1
layer_norm x=f32/3x1000 rstd=? ; fill=large:30,large plain=1
rms_norm x=f32/1x4 ; fill=zero x.is=1e30,2e30,3e30,4e30 y.is=0.36514837,0.73029674,1.0954451,1.4605935 y.within=1e-6 plain=1
batch_norm x=f32/4x3x5x5 ; fill=large:30,large plain=1
batch_norm x=f32/4x3x5x5/nhwc ; fill=large:30,large plain=1

# long sums: one running f32 sum fails
batch_norm x=f32/1x2x1024x512 mean=? rstd=? ; fill=pos plain=1
batch_norm x=f32/1x2x1024x512/nhwc mean=? rstd=? ; fill=pos plain=1

# rows of 16 bits with a scale of f32, one of each number of threads (autocast); f32 rows of a block of 1024 threads
layer_norm_backward dy=bf16/40x96 x=bf16/40x96 scale=f32/1x96 mean=f32/40x1 rstd=f32/40x1 dscale=? dshift=? ; as=f16 plain=1
layer_norm_backward dy=bf16/5x768 x=bf16/5x768 scale=f32/1x768 mean=f32/5x1 rstd=f32/5x1 dscale=f32/1x768 dshift=f32/1x768 ; plain=1
rms_norm_backward dy=f16/5x4096 x=f16/5x4096 scale=f32/1x4096 rstd=f32/5x1 ; plain=1
layer_norm_backward dy=bf16/3x8200 x=bf16/3x8200 scale=f32/1x8200 mean=f32/3x1 rstd=f32/3x1 ; plain=1
rms_norm x=f32/3x12288 scale=f32/1x12288 rstd=? ; plain=1
layer_norm x=bf16/2x20480 scale=f32/1x20480 shift=f32/1x20480 mean=? rstd=? ; plain=1

# groups cut into chunks: channels last in runs that are no power of two (U-Nets), a line in several blocks or in no whole vectors, images;
# channels first beyond a multiprocessor, with parameters by channel or element
layer_norm x=f16/1x32x10x300/96000:10:1:320 axis=2,3 scale=f32/1x32x10x1 shift=f32/1x32x10x1 mean=? rstd=? ; as=bf16 plain=1
layer_norm x=f32/3x4x20x200/16000:20:1:80 axis=2,3 scale=f32/1x4x20x1 shift=f32/1x4x1x1 mean=? ; plain=1
rms_norm x=bf16/2x3x5x150/2250:5:1:15 axis=2,3 scale=bf16/1x3x5x1 rstd=? ; as=f32 plain=1
layer_norm x=f16/2x4x3x40000/480000:3:1:12 axis=2,3 scale=f16/2x4x3x1 shift=f16/1x1x3x1 ; plain=1
layer_norm_backward dy=f16/1x32x10x300/96000:10:1:320 x=f16/1x32x10x300/96000:10:1:320 axis=2,3 scale=f32/1x32x10x1 mean=f32/1x32x1x1 rstd=f32/1x32x1x1 dscale=? dshift=? ; as=bf16 plain=1
layer_norm_backward dy=f32/3x4x20x200/16000:20:1:80 x=f32/3x4x20x200/16000:20:1:80 axis=2,3 scale=f32/1x4x20x1 mean=f32/3x4x1x1 rstd=f32/3x4x1x1 dscale=? dshift=f16/1x4x20x1 ; plain=1
rms_norm_backward dy=bf16/2x3x5x150/2250:5:1:15 x=bf16/2x3x5x150/2250:5:1:15 axis=2,3 scale=f32/1x3x5x1 rstd=f32/2x3x1x1 dscale=bf16/1x3x5x1 ; as=f32 plain=1
layer_norm_backward dy=f16/8x32x20x20/nhwc x=f16/8x32x20x20/nhwc axis=2,3 mean=f32/8x32x1x1 rstd=f32/8x32x1x1 ; as=f32 plain=1
layer_norm_backward dy=bf16/2x48x13x11/nhwc x=bf16/2x48x13x11/nhwc axis=2,3 scale=bf16/1x48x1x1 mean=f32/2x48x1x1 rstd=f32/2x48x1x1 dscale=? dshift=? ; plain=1
layer_norm x=f16/2x2x20x6000 axis=2,3 scale=f16/1x2x20x1 shift=f16/1x2x20x1 mean=? rstd=? ; as=f32 plain=1
layer_norm x=f32/1x100001 scale=f32/1x100001 shift=bf16/1x100001 rstd=? ; plain=1
rms_norm x=bf16/2x70008 scale=f32/1x70008 ; as=f32 plain=1

in x f16/2x4x12x300/14400:12:1:48
in g f32/1x4x12x1
in h f32/1x4x12x1
n = layer_norm x=x scale=g shift=h axis=2,3
out y = silu x=n ; plain=1

in x f16/1x2x12x9000
in g f32/1x2x12x1
in r f16/1x2x12x9000
n = layer_norm x=x scale=g axis=2,3
s = add a=n b=r
out y = silu x=s ; plain=1

# huge elements beside small ones that a large scale brings back: in the unit of squares that do not overflow those would lose their digits
rms_norm x=f32/2x4 scale=f32/1x4 ; x.is=3e19,1.1e-18,-2.3e-18,3.3e-18 scale.is=1,1e30,1.7e30,-1e30 plain=1 as=bf16
rms_norm x=f32/3x1024 scale=f32/1x1024 rstd=? ; x.is=3e20,1.1e-17,-2.3e-17,3.3e-17 scale.is=1,1e30,1.7e30,-1e30 plain=1 as=bf16

# rows that are no whole 16-byte words, or lie otherwise than at one step: by units of 8, 4 and 2 bytes
layer_norm x=f16/5x300 scale=f16/1x300 shift=f16/1x300 mean=? rstd=? ; as=f32,bf16 plain=1
layer_norm x=bf16/9x1030 scale=f32/1x1030 shift=bf16/1x1030 mean=? rstd=? ; as=f32 plain=1
rms_norm x=f16/3x5001 scale=f16/1x5001 rstd=? ; as=f32 plain=1
layer_norm x=bf16/2x20010 scale=f32/1x20010 shift=f32/1x20010 ; plain=1
rms_norm x=bf16/3x4x64/640:128:1 axis=2 scale=bf16/1x1x64 rstd=? y=bf16/3x4x64/1024:200:1 ; as=f32 plain=1
layer_norm x=f32/7x12/14:1@8 y=f32/7x12/13:1@4 mean=? rstd=? ; plain=1
layer_norm_backward dy=f16/70x300 x=f16/70x300 scale=f16/1x300 mean=f32/70x1 rstd=f32/70x1 dscale=? dshift=? ; as=f32,bf16 plain=1
layer_norm_backward dy=bf16/9x1030 x=bf16/9x1030 scale=f32/1x1030 mean=f32/9x1 rstd=f32/9x1 dscale=? dshift=f32/1x1030 ; as=f32 plain=1
layer_norm_backward dy=bf16/5x3001 x=bf16/5x3001 mean=f32/5x1 rstd=f32/5x1 dshift=? ; as=f32 plain=1
rms_norm_backward dy=bf16/3x4x64/640:128:1 x=bf16/3x4x64/640:128:1 axis=2 scale=bf16/1x1x64 rstd=f32/3x4x1 dscale=? dx=bf16/3x4x64/1024:200:1 ; as=f32 plain=1
rms_norm_backward dy=f16/3x9001 x=f16/3x9001 scale=f32/1x9001 rstd=f32/3x1 dscale=? ; as=f32 plain=1
layer_norm_backward dy=bf16/2x12288 x=bf16/2x12288 scale=bf16/1x12288 mean=f32/2x1 rstd=f32/2x1 dscale=? dshift=? ; as=f32 plain=1
# the loads beyond such a row's end are 0: -mean rstd overflows there
layer_norm_backward dy=f32/1x35 x=f32/1x35 mean=f32/1x1 rstd=f32/1x1 ; x.is=2e36 mean.is=2e36 rstd.is=316 plain=1

# several dtypes; groups of several nests, or with an inner stride; parameters of each row; long rows numbered by dims that do not merge
layer_norm x=bf16/5x1024 scale=bf16/1x1024 shift=bf16/1x1024 mean=? rstd=? y=f32/5x1024 ; plain=1
rms_norm x=f32/3x3001 scale=f16/1x3001 y=f16/3x3001 ; plain=1
layer_norm x=bf16/6x16x64/3072:192:1 axis=1,2 scale=bf16/1x16x64 mean=? rstd=? ; as=f32 plain=1
layer_norm x=f32/3x8/20:2 mean=? rstd=? ; plain=1
layer_norm x=f32/4x64 scale=f32/4x64 shift=f32/4x1 ; plain=1
rms_norm x=f32/2x2x2x17000/100000:40000:17003:1 axis=3 rstd=? ; plain=1
layer_norm_backward dy=f32/5x1024 x=bf16/5x1024 scale=bf16/1x1024 mean=f32/5x1 rstd=f32/5x1 dscale=? dshift=? ; plain=1
layer_norm_backward dy=f16/2x2051 x=f32/2x2051 scale=bf16/1x2051 mean=f32/2x1 rstd=f32/2x1 dscale=? dshift=? dx=bf16/2x2051 ; plain=1
layer_norm_backward dy=f32/2x9001 x=bf16/2x9001 scale=f32/1x9001 mean=f32/2x1 rstd=f32/2x1 dscale=? dshift=? ; plain=1
rms_norm_backward dy=bf16/1x20001 x=f32/1x20001 rstd=f32/1x1 dx=f32/1x20001 ; plain=1
rms_norm_backward dy=f16/40x50 x=f32/40x50 scale=f32/1x50 rstd=f32/40x1 dscale=? dx=f16/40x50 ; plain=1
layer_norm_backward dy=f32/3x1101 x=bf16/3x1101 scale=f32/1x1101 mean=f32/3x1 rstd=f32/3x1 dscale=? dshift=? ; plain=1

# rows that lie at an odd step: of whole words, so that a row alone could be taken otherwise
layer_norm_backward dy=f32/2x20000/20001:1 x=f32/2x20000/20001:1 mean=f32/2x1 rstd=f32/2x1 dshift=? ; plain=1 tier=full
rms_norm_backward dy=f32/3x1024/1025:1 x=f32/3x1024/1025:1 scale=f32/1x1024 rstd=f32/3x1 dscale=? ; plain=1

# few channels last, in chunks of a line a thread and of several
batch_norm x=f32/8x3x14x15/nhwc scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=f16,bf16
batch_norm x=f32/2x3x150x151/nhwc scale=f32/1x3x1x1 shift=f32/1x3x1x1 mean=? rstd=? ; as=f16
batch_norm x=f32/8x8x14x15/nhwc mean=? rstd=? ; as=bf16
batch_norm_backward dy=f32/8x3x14x15/nhwc x=f32/8x3x14x15/nhwc scale=f32/1x3x1x1 mean=f32/1x3x1x1 rstd=f32/1x3x1x1 dscale=? dshift=? ; as=f16,bf16
batch_norm_backward dy=f32/4x16x14x15/nhwc x=f32/4x16x14x15/nhwc scale=f32/1x16x1x1 mean=f32/1x16x1x1 rstd=f32/1x16x1x1 dscale=? dshift=? ; as=bf16
