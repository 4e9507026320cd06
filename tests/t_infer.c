/* t_infer.c -- each op's rules: the outputs inferred, the problems refused and their error sentences. */
#include <string.h>
#include "language/problem.h"
#include "problems.h"
#include "tap.h"

static char text[4096];

/* ---- inferred outputs --------------------------------------------------------------------- */

static const struct { const char *line, *out; } found[] = {
  /* matmul */
  { "matmul a=f32/3x4 b=f32/4x5", "y=f32/3x5" },
  { "matmul a=f32/3x4/t b=f32/4x5/t", "y=f32/3x5" },
  { "matmul a=f64/2x1x3x0 b=f64/1x7x0x5", "y=f64/2x7x3x5" },
  { "matmul a=e4m3/3x4 b=e5m2/4x5", "y=f32/3x5" },
  { "matmul a=e4m3/3x4 b=e5m2/4x5 y=bf16/3x5 bias=bf16/5", "y=bf16/3x5" },
  { "matmul a=i8/3x4 b=u8/4x5 bias=i32/5 c=i32/3x5", "y=i32/3x5" },
  { "matmul a=bf16/3x4 b=bf16/4x5 bias=f32/5", "y=bf16/3x5" },
  { "matmul a=bf16/3x4 b=bf16/4x5 c=f32/3x5 beta=0.5", "y=f32/3x5" },
  /* convolution */
  { "conv_forward x=f32/2x3x8x9 w=f32/5x3x3x2 pad=1:0,0:2 stride=2,1 dilation=2,3", "y=f32/2x5x3x8" },
  { "conv_forward x=f16/2x4x8/nhwc w=f16/6x2x3 groups=2", "y=f16/2x6x6/nhwc" },
  { "conv_forward x=f32/1x2x3x4x5 w=f32/1x2x3x3x3 pad=1", "y=f32/1x1x3x4x5" },
  { "conv_forward x=f32/1x1x2x2 w=f32/1x1x3x3", "y=f32/1x1x0x0" },
  { "conv_forward x=f32/1x1x2x2 w=f32/1x1x3x3 dilation=1000000000000", "y=f32/1x1x0x0" },
  { "conv_forward x=i8/1x1x4x4 w=i8/1x1x3x3", "y=i32/1x1x2x2" },
  { "conv_forward x=f32/0x3x8x8 w=f32/4x3x3x3 bias=f32/4", "y=f32/0x4x6x6" },
  { "conv_forward x=f32/2x0x8x8 w=f32/4x0x3x3", "y=f32/2x4x6x6" },
  { "conv_backward_data dy=f32/2x5x3x8 w=f32/5x3x3x2 stride=2,1", "dx=f32/2x3x7x9" },
  { "conv_backward_data dy=f32/2x5x3x8 w=f32/5x3x3x2 stride=2,1 dx=f32/2x3x8x9", "dx=f32/2x3x8x9" },
  { "conv_backward_data dy=bf16/1x4x5/nhwc w=bf16/4x3x3 groups=2 dx=f32/1x6x7", "dx=f32/1x6x7" },
  { "conv_backward_filter x=f32/2x3x8x9 dy=f32/2x5x6x7", "dw=f32/5x3x3x3" },
  { "conv_backward_filter x=f32/2x3x224x224/nhwc dy=f32/2x64x112x112 stride=2 pad=3", "dw=f32/64x3x7x7/nhwc" },
  { "conv_backward_filter x=f32/2x3x224x224 dy=f32/2x64x112x112 stride=2 pad=3 dw=f32/64x3x8x8", "dw=f32/64x3x8x8" },
  /* softmax */
  { "softmax x=f32/2x3/t", "y=f32/2x3/t" },
  { "softmax x=f16/2x3 y=f32/2x3 axis=0", "y=f32/2x3" },
  { "softmax_backward y=f32/5 dy=bf16/5", "dx=f32/5" },
  { "log_softmax x=f64/0x4", "y=f64/0x4" },
  { "log_softmax_backward y=f64/5 dy=f64/5", "dx=f64/5" },
  /* normalization */
  { "layer_norm x=f16/2x3/t mean=? rstd=?", "y=f16/2x3/t mean=f32/2x1/t rstd=f32/2x1/t" },
  { "layer_norm x=f64/2x3x4 axis=0,2 rstd=?", "y=f64/2x3x4 rstd=f64/1x3x1" },
  { "layer_norm_backward dy=f32/2x3 x=bf16/2x3 mean=f32/2x1 rstd=f32/2x1 dscale=? dshift=?", "dx=bf16/2x3 dscale=f32/1x3 dshift=f32/1x3" },
  { "rms_norm x=f32/2x3 scale=bf16/1x3 y=f16/2x3", "y=f16/2x3" },
  { "rms_norm_backward dy=f32/2x3 x=f32/2x3 scale=f16/1x3 rstd=f32/2x1 dscale=?", "dx=f32/2x3 dscale=f16/1x3" },
  { "batch_norm x=f32/2x3x4x4/nhwc mean=? rstd=?", "y=f32/2x3x4x4/nhwc mean=f32/1x3x1x1/nhwc rstd=f32/1x3x1x1/nhwc" },
  { "batch_norm_backward dy=f32/2x3 x=f32/2x3 mean=f32/1x3 rstd=f32/1x3 dscale=?", "dx=f32/2x3 dscale=f32/1x3" },
  { "batch_norm_inference x=f32/2x3 mean=f32/1x3 var=f32/1x3", "y=f32/2x3" },
  /* losses */
  { "cross_entropy x=bf16/4x10 labels=i64/4x1 lse=? count=?", "loss=f32/4x1 lse=f32/4x1 count=f32/1x1" },
  { "cross_entropy x=f64/4x10x3 labels=i32/4x1x3 axis=1 reduction=mean", "loss=f64/1x1x1" },
  { "cross_entropy x=bf16/4x10x3 probabilities=f32/4x10x3 weights=f32/10 axis=1", "loss=f32/4x1x3" },
  { "cross_entropy_backward dy=f32/4x1 x=f16/4x10 labels=i32/4x1 weights=f32/10 input=log_probabilities", "dx=f16/4x10" },
  { "ctc_loss x=bf16/7x4x10 labels=i64/4x3 x_lengths=i32/4 label_lengths=i64/4 lse=?", "loss=f32/4 lse=f32/7x4x1" },
  { "ctc_loss x=f64/7x4x10 labels=i32/4x0 x_lengths=i32/4 label_lengths=i32/4 reduction=mean", "loss=f64/1" },
  { "ctc_loss_backward dy=f32/4 x=f16/7x4x10 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 lse=f32/7x4x1", "dx=f16/7x4x10" },
  { "cross_entropy_backward dy=f32/1x1 x=f16/4x10 labels=i32/4x1 lse=f32/4x1 count=f32/1x1 reduction=mean", "dx=f16/4x10" },
  { "cross_entropy_backward_probabilities dy=f32/4x1x3 x=f16/4x10x3 weights=f32/10 lse=f32/4x1x3 axis=1", "dprobabilities=f16/4x10x3" },
  { "attention_forward q=bf16/2x8x16x64 k=bf16/2x2x32x64 v=bf16/2x2x32x48 lse=? max=? amax=?",
    "y=bf16/2x8x16x48 lse=f32/2x8x16 max=f32/2x8x16 amax=f32" },
  { "attention_forward q=bf16/2x8x16x64/8192:64:512:1 k=bf16/2x2x32x64 value_size=48", "y=bf16/2x8x16x48/6144:48:384:1" },
  { "attention_forward q=e4m3/1x8x90x64 k=e5m2/9x2x16x64 v=i8/9x2x16x64 q_starts=i32/4 pages=i64/3x5 kv_lengths=i32/3 k_scale=f32/9x1x1x2",
    "y=f32/1x8x90x64" },
  { "attention_backward dy=f32/2x8x16x4 q=f16/2x8x16x8 k=f16/2x2x32x8 v=f16/2x2x32x4 y=f32/2x8x16x4 lse=f32/2x8x16 bias=f32/1x1x1x32 "
    "sink=f32/8 dv=? dbias=? dsink=?", "dq=f16/2x8x16x8 dk=f16/2x2x32x8 dv=f16/2x2x32x4 dbias=f32/1x1x1x32 dsink=f32/8" },
  { "attention_merge y1=bf16/5x8 lse1=f32/5 y2=f32/5x8 lse2=f32/5 lse=?", "y=bf16/5x8 lse=f32/5" },
  { "rotary x=bf16/2x8x16x64 cos=f32/99x16 sin=f32/99x16 positions=i32/1x16", "y=bf16/2x8x16x64" },
  { "rotary_backward dy=f64/2x8x16x64 cos=f64/99x16 sin=f64/99x16", "dx=f64/2x8x16x64" },
  { "cache_write cache=e4m3/9x2x16x64 x=bf16/2x2x4x64 slots=i32/2x4 scale=f32", "new_cache=e4m3/9x2x16x64" },
  /* collectives */
  { "all_reduce x=[f32/2x3/t,i8/4] reduction=max", "y=f32/2x3/t y=i8/4" },
  { "all_reduce x=[f32/4,bf16] scale=2 y=x", "y=f32/4 y=bf16" },
  { "reduce_scatter x=[f32/6x3/t,f16/3] ranks=3", "y=f32/2x3/t y=f16/1" },
  { "all_gather x=[e4m3/2x3/t,bool/0] ranks=4", "y=e4m3/8x3/t y=bool/0" },
  { "broadcast x=[i64/3,f64] root=7", "y=i64/3 y=f64" },
  { "all_to_all x=f32/6x3 ranks=2", "y=f32/6x3" },
  { "send x=bf16/2x3/t peer=1", "y=bf16/2x3/t" },
  { "recv x=[f32/4,u8/2] peer=3 y=x", "y=f32/4 y=u8/2" },
  /* training steps */
  { "sgd params=[f16/2x3/t,f16/4] grads=[f32/2x3,f32/4] step=1 rate=1 copy=?",
    "new_step=i64 new_params=f16/2x3/t new_params=f16/4 copy=f16/2x3/t copy=f16/4" },
  { "sgd params=[f32/4] grads=[f32/4] velocity=[f32/4] momentum=0.5 new_velocity=? step=i64 rate=f32 copy=[bf16/4]",
    "new_step=i64 new_params=f32/4 new_velocity=f32/4 copy=bf16/4" },
  { "adam params=[bf16/4,f32/3] grads=[bf16/4,f32/3] m=[f32/4,f32/3] v=[f32/4,f32/3] step=1 rate=1",
    "new_step=i64 new_params=bf16/4 new_params=f32/3 new_m=f32/4 new_m=f32/3 new_v=f32/4 new_v=f32/3" },
  { "rmsprop params=[f32/4] grads=[f32/4] v=[f32/4] step=1 rate=1", "new_step=i64 new_params=f32/4 new_v=f32/4" },
  { "rmsprop params=[f32/4] grads=[f32/4] v=[f32/4] velocity=[f32/4] new_velocity=? momentum=0.5 step=1 rate=1",
    "new_step=i64 new_params=f32/4 new_v=f32/4 new_velocity=f32/4" },
  { "lamb params=[bf16/4] grads=[f32/4] m=[f32/4] v=[f32/4] step=1 rate=1", "new_step=i64 new_params=bf16/4 new_m=f32/4 new_v=f32/4" },
  { "pool_max x=u8/1x2x5 window=2 indices=?", "y=u8/1x2x2 indices=i32/1x2x2" },
  { "pool_adaptive_max x=i8/1x2x5 size=2", "y=i8/1x2x2" },
  { "quantize x=i32/4x5 scale=f32/1x5 y=i8/4x5 amax=?", "y=i8/4x5 amax=f32/1x5" },
  { "quantize_dynamic x=f16/4x5 y=u8/4x5 block=1,0 zero_point=?", "y=u8/4x5 scale=f32/4x1 zero_point=u8/4x1" },
  { "adagrad params=[bf16/4] grads=[f32/4] v=[f32/4] step=1 rate=1", "new_step=i64 new_params=bf16/4 new_v=f32/4" },
  { "lion params=[f64/4] grads=[f64/4] m=[f64/4] step=1 rate=1", "new_step=i64 new_params=f64/4 new_m=f64/4" },
  { "amsgrad params=[f32/4] grads=[f32/4] m=[f32/4] v=[f32/4] peak=[f32/4] step=1 rate=1",
    "new_step=i64 new_params=f32/4 new_m=f32/4 new_v=f32/4 new_peak=f32/4" },
  { "adamw params=[f64/4] grads=[f64/4] m=[f64/4] v=[f64/4] step=1 rate=1", "new_step=i64 new_params=f64/4 new_m=f64/4 new_v=f64/4" },
  { "global_norm x=[f16/4,f32/5] divisor=?", "norm=f32 divisor=f32" },
  { "amp_unscale grads=[f16/4,f32/2x3/t] scale=2 new_grads=?", "found=f32 new_grads=f16/4 new_grads=f32/2x3/t" },
  { "amp_update scale=f32 good=i64 found=f32", "new_scale=f32 new_good=i64" },
  /* quantization */
  { "quantize x=bf16/4x64/t scale=f32/4x2 y=e4m3/4x64", "y=e4m3/4x64" },
  { "quantize x=f32/4x6 scale=e8m0/1x1 y=u8/4x6 zero_point=u8/1x1 amax=?", "y=u8/4x6 amax=f32/1x1" },
  { "quantize x=f64/4x6 scale=f64 y=i8/4x6 amax=?", "y=i8/4x6 amax=f64" },
  { "quantize x=f32/0x6 scale=f32/0x1 y=i8/0x6 amax=?", "y=i8/0x6 amax=f32/0x1" },
  { "dequantize x=i8/4x6/t scale=f16/4x1", "y=f16/4x6/t" },
  { "dequantize x=e5m2/4x64 scale=e8m0/4x2", "y=f32/4x64" },
  { "dequantize x=i8/4x6 scale=e8m0 y=f64/4x6", "y=f64/4x6" },
  { "quantize_dynamic x=f16/4x70 y=e4m3/4x70 block=1,32 amax=?", "y=e4m3/4x70 scale=f32/4x3 amax=f32/4x3" },
  { "quantize_dynamic x=f64/4x70 y=i8/4x70 block=3", "y=i8/4x70 scale=f64/2x24" },
  { "quantize_dynamic x=f32/0x6 y=i8/0x6 block=1,99", "y=i8/0x6 scale=f32/0x1" },
  /* random numbers and dropout */
  { "rng_uniform seed=1 y=f32/2x3/t", "y=f32/2x3/t" },
  { "rng_normal seed=i64 offset=3 y=f64/4", "y=f64/4" },
  { "rng_bernoulli seed=1 y=bool/0x4", "y=bool/0x4" },
  { "dropout x=f16/3x3 seed=1 mask=?", "y=f16/3x3 mask=u8/2" },
  { "dropout x=f32/2x8/t y=bf16/2x8 seed=i64 offset=i64 mask=?", "y=bf16/2x8 mask=u8/2" },
  { "dropout_backward dy=f32/2x3x4x4/nhwc mask=u8/12", "dx=f32/2x3x4x4/nhwc" },
  { "dropout_backward dy=bf16/5 seed=7 dx=f32/5", "dx=f32/5" },
  /* pooling */
  { "pool_max x=f32/2x3x7x8 window=3,2 stride=2", "y=f32/2x3x3x4" },
  { "pool_max x=f32/2x3x7x8 window=3,2 stride=2 ceil_mode=1 indices=?", "y=f32/2x3x3x4 indices=i32/2x3x3x4" },
  { "pool_max x=f32/2x3x8 window=3 stride=2 ceil_mode=1", "y=f32/2x3x4" },
  { "pool_max x=f32/2x3x4 window=1 stride=3 pad=1 ceil_mode=1", "y=f32/2x3x2" },   /* the third would start beyond */
  { "pool_max x=f32/2x3x8/nhwc indices=u8/2x3x1", "y=f32/2x3x1/nhwc indices=u8/2x3x1" },
  { "pool_average x=bf16/1x1x5x5 window=2", "y=bf16/1x1x2x2" },
  { "pool_average x=bf16/1x1x5x5", "y=bf16/1x1x1x1" },
  { "pool_average x=u8/1x1x5x5 window=2", "y=u8/1x1x2x2" }, { "pool_adaptive_average x=i8/1x1x5 size=2", "y=i8/1x1x2" },
  { "pool_average x=bf16/1x1x2 window=3", "y=bf16/1x1x0" },
  { "pool_max_backward dy=f32/1x1x2x2 indices=u8/1x1x2x2 window=2", "dx=f32/1x1x4x4" },
  { "pool_max_backward dy=f32/1x1x2x2 x=f32/1x1x5x5 window=2", "dx=f32/1x1x5x5" },
  { "pool_average_backward dy=f32/1x1x2 window=3 stride=2", "dx=f32/1x1x5" },
  { "pool_average_backward dy=f32/1x1x1 dx=f32/1x1x9", "dx=f32/1x1x9" },
  { "pool_adaptive_max x=f32/2x3x7x5 size=3,9 indices=?", "y=f32/2x3x3x9 indices=i32/2x3x3x9" },
  { "pool_adaptive_max_backward dy=f16/2x3x3 indices=i64/2x3x3 dx=f16/2x3x8", "dx=f16/2x3x8" },
  { "pool_adaptive_average x=f32/2x3x7/nhwc y=f32/2x3x4", "y=f32/2x3x4" },
  { "pool_adaptive_average_backward dy=f32/1x1x2x2 dx=f32/1x1x9x7", "dx=f32/1x1x9x7" },
  { "lrn x=f16/2x3x7x5/nhwc size=4", "y=f16/2x3x7x5/nhwc" },
  /* recurrent networks */
  { "rnn_forward x=f32/5x2x3 w=[f32/16x3] r=[f32/16x4] ht=? ct=? gates=? cells=?",
    "y=f32/5x2x4 ht=f32/1x2x4 ct=f32/1x2x4 gates=f32/1x5x2x16 cells=f32/1x5x2x4" },
  { "rnn_forward x=bf16/5x2x3 w=[bf16/12x3,bf16/12x3,bf16/12x8,bf16/12x8] r=[bf16/12x4,bf16/12x4,bf16/12x4,bf16/12x4] gates=? inner=? "
    "cell=gru layers=2 direction=both", "y=bf16/5x2x8 gates=bf16/4x5x2x16 inner=bf16/1x5x2x8" },
  { "rnn_forward x=f32/5x2x3 w=[f32/12x3] r=[f32/12x4] gates=? cell=gru reset=before", "y=f32/5x2x4 gates=f32/1x5x2x12" },
  { "rnn_forward x=f16/5x2x3 w=[f16/16x3] r=[f16/16x2] projection=[f16/2x4] c0=f32/1x2x4 ht=? ct=f32/1x2x4",
    "y=f16/5x2x2 ht=f16/1x2x2 ct=f32/1x2x4" },
  { "rnn_backward dy=f32/5x2x4 x=f32/5x2x3 y=f32/5x2x4 w=[f32/4x3] r=[f32/4x4] dw=? dr=? dbw=? dh0=? cell=relu",
    "dx=f32/5x2x3 dw=f32/4x3 dr=f32/4x4 dbw=f32/4 dh0=f32/1x2x4" },
  { "lrn x=f64/2x3", "y=f64/2x3" },
  { "lrn_backward dy=f32/2x3x8 x=f32/2x3x8 region=within", "dx=f32/2x3x8" },
  { "lrn x=bf16/2x3x8x8 means=bf16/2x3x8x8 region=within", "y=bf16/2x3x8x8" },
  { "lrn_backward dy=f32/2x3x8/nhwc x=f32/2x3x8 means=f32/2x3x8/8:0:1 dmeans=?", "dx=f32/2x3x8/nhwc dmeans=f32/2x3x8/nhwc" },
  { "affine_grid theta=f16/4x2x3 grid=f32/4x5x7x2", "grid=f32/4x5x7x2" },
  { "affine_grid_backward dy=f32/4x3x5x7x3", "dtheta=f32/4x3x4" },
  { "grid_sample x=bf16/2x3x7x5/nhwc grid=f32/2x4x9x2", "y=bf16/2x3x4x9/nhwc" },
  { "grid_sample_backward_data dy=f32/2x3x4x9 grid=f32/2x4x9x2 dx=f32/2x3x7x5", "dx=f32/2x3x7x5" },
  { "grid_sample_backward_grid dy=f16/2x3x4x9/nhwc x=f16/2x3x7x5 grid=f32/2x4x9x2", "dgrid=f32/2x4x9x2" },
  { "resample x=f16/2x3x7x5/nhwc size=3,9 mode=cubic", "y=f16/2x3x3x9/nhwc" },
  { "resample_backward dy=f32/2x3x8 dx=f32/2x3x5 mode=linear grid=align_corners", "dx=f32/2x3x5" },
  { "resample x=f16/2x3x7x5 size=3,9 mode=cubic antialias=1", "y=f16/2x3x3x9" },
  { "pool_lp x=f32/2x3x7x8 window=3,2 stride=2 p=3", "y=f32/2x3x3x4" },
  { "pool_lp_backward dy=f32/1x1x2 x=f32/1x1x5 y=f32/1x1x2 window=2", "dx=f32/1x1x5" },
  /* transforms */
  { "copy x=bool/3x4/t", "y=bool/3x4/t" },
  { "permute x=e4m3/2x3x4 perm=2,0,1", "y=e4m3/4x2x3" },
  { "slice x=i64/9x9 start=1,2 length=0,2 step=3,2", "y=i64/3x2" },
  { "slice x=i64/9 start=9", "y=i64/0" },
  { "pad x=f16/3x4 pad=1:2,0:3", "y=f16/6x7" },
  { "pad x=f16", "y=f16" },
  { "concat x=[u8/2x3,u8/2x0,u8/2x5]", "y=u8/2x8" },
  { "concat x=[u8/2x3,u8/4x3] axis=0", "y=u8/6x3" },
  { "pad x=f32/3x4 pad=2:1,3 mode=reflect", "y=f32/6x10" },
  { "pad x=f32/1 pad=9 mode=replicate", "y=f32/19" },
  { "gather x=i8/5x3 indices=i32/4x2", "y=i8/4x2x3" },
  { "gather x=bf16/5x3x2 indices=i64 axis=1", "y=bf16/5x2" },
  { "gather x=f32/5x3/t indices=i32/4", "y=f32/4x3/t" },
  /* selection, scans */
  { "scatter_add dy=bf16/4x2x3 indices=i32/4x2 dx=f32/5x3", "dx=f32/5x3" },
  { "pad_backward dy=f16/6x7 pad=1:2,0:3", "dx=f16/3x4" },
  { "one_hot indices=i32/2x3 depth=5", "y=f32/2x3x5" },
  { "one_hot indices=i64/2x3 depth=5 axis=0 y=bool/5x2x3", "y=bool/5x2x3" },
  { "top_k x=f32/2x3x9 k=4 indices=?", "y=f32/2x3x4 indices=i32/2x3x4" },
  { "top_k x=i8/9x2 k=4 axis=0 indices=i64/4x2", "y=i8/4x2 indices=i64/4x2" },
  { "cumsum x=bf16/2x3/t", "y=bf16/2x3/t" },
  { "cumsum x=i8/2x3 y=i64/2x3", "y=i64/2x3" },
  /* reductions */
  { "reduce_sum x=f32/2x3x4 axis=0,2", "y=f32/1x3x1" },
  { "reduce_sum x=i8/2x3 y=i64/1x1", "y=i64/1x1" },
  { "reduce_sum x=f32/0x3 axis=0", "y=f32/1x3" },
  { "reduce_mean x=bf16/2x3 y=f64/1x1", "y=f64/1x1" },
  { "reduce_prod x=u8/7", "y=u8/1" }, { "reduce_max x=i32/7", "y=i32/1" }, { "reduce_min x=i64/7", "y=i64/1" },
  { "reduce_norm1 x=f32", "y=f32" }, { "reduce_norm2 x=f32/4x4 axis=1", "y=f32/4x1" }, { "reduce_amax x=f64/3", "y=f64/1" },
  { "argmax x=f32/4x9 axis=1", "y=i32/4x1" }, { "argmin x=u8/4x9 y=i64/1x1", "y=i64/1x1" },
  { "argmax x=f32/65536x65536/0:1", "y=i64/1x1" },
  /* pointwise: broadcasting, scalars, kinds of numbers */
  { "add a=f32/3x1 b=f32/1x4", "y=f32/3x4" },
  { "add a=f32/1x4 b=f32/3x4/t", "y=f32/3x4/t" },
  { "add a=bf16/4 b=f32/4", "y=bf16/4" },
  { "add a=0.5 b=f16/4", "y=f16/4" },
  { "add a=f32/1 b=f32/1 y=f32/7", "y=f32/7" },
  { "add a=f32/1x0 b=f32/3x1", "y=f32/3x0" },
  { "add a=f32/3x4 b=f32/4", "y=f32/3x4" }, { "add a=f32/4 b=f32/2x3x1", "y=f32/2x3x4" }, { "relu x=f32/4 y=f32/2x4", "y=f32/2x4" },
  { "add a=f32 b=f32", "y=f32" },
  { "add a=1 b=2 y=f32/4", "y=f32/4" },
  { "sub a=i8/4 b=0.5", "y=i8/4" }, { "mul a=i64/4 b=i64/4", "y=i64/4" }, { "div a=f32/4 b=f64", "y=f32/4" },
  { "min a=u8/4 b=u8/4", "y=u8/4" }, { "max a=f64/4 b=f64/4", "y=f64/4" }, { "pow a=f32/4 b=2", "y=f32/4" },
  { "eq a=i32/4 b=i32/4", "y=bool/4" }, { "ne a=f32/4 b=f16/4", "y=bool/4" }, { "lt a=f32/4 b=0", "y=bool/4" },
  { "le a=f32/4 b=0", "y=bool/4" }, { "gt a=f32/4 b=0", "y=bool/4" }, { "ge a=f32 b=0", "y=bool" },
  { "logical_and a=bool/4 b=bool/4", "y=bool/4" }, { "logical_or a=bool/1 b=bool/4", "y=bool/4" }, { "logical_not x=bool/4", "y=bool/4" },
  { "select c=bool/4x1 a=f16/1x3 b=0", "y=f16/4x3" }, { "cast x=f32/4 y=e4m3/4", "y=e4m3/4" }, { "cast x=bool/1 y=f32/4", "y=f32/4" },
  { "neg x=i8/4", "y=i8/4" }, { "abs x=i32/4", "y=i32/4" }, { "sign x=f32/4", "y=f32/4" }, { "exp x=f32/4 y=bf16/4", "y=bf16/4" },
  { "log x=f32/4", "y=f32/4" }, { "sqrt x=f32/4", "y=f32/4" }, { "rsqrt x=f32/4", "y=f32/4" }, { "reciprocal x=f32/4", "y=f32/4" },
  { "erf x=f32/4", "y=f32/4" }, { "sin x=f32/4", "y=f32/4" }, { "cos x=f32/4", "y=f32/4" }, { "floor x=f32/4", "y=f32/4" },
  { "ceil x=f32/4", "y=f32/4" }, { "round x=f32/4", "y=f32/4" }, { "trunc x=f32/4", "y=f32/4" },
  { "relu x=f32/4 y=x", "y=f32/4" }, { "leaky_relu x=f32/4 slope=0.2", "y=f32/4" }, { "elu x=f32/4", "y=f32/4" },
  { "gelu x=f32/4", "y=f32/4" }, { "gelu_tanh x=f32/4", "y=f32/4" }, { "silu x=f32/4", "y=f32/4" }, { "sigmoid x=f32/4", "y=f32/4" },
  { "tanh x=f32/4", "y=f32/4" }, { "softplus x=f32/4", "y=f32/4" }, { "hardswish x=f32/4", "y=f32/4" }, { "mish x=f32/4", "y=f32/4" },
  { "gather_elements x=e4m3/4x5 indices=i32/3x9 axis=1", "y=e4m3/3x9" },
  { "scatter_elements x=f32/4x5 indices=i32/3x9 updates=f32/3x9 axis=-1 mode=add", "y=f32/4x5" },
  { "scatter_nd x=bool/4x5x6 indices=i64/2x3x2 updates=bool/2x3x6", "y=bool/4x5x6" },
  { "sort x=i8/4x5 axis=0 indices=?", "y=i8/4x5 indices=i32/4x5" }, { "iota start=1 step=0.5 y=f16/4x5", "y=f16/4x5" },
  { "unfold x=f16/2x3x9x8 window=3,2 stride=2 pad=1", "y=f16/2x18x5x5" },
  { "unfold_backward dy=f32/2x12x3x3 dx=f32/2x3x4x4 window=2", "dx=f32/2x3x4x4" },
  { "cumprod x=i8/4 y=i64/4", "y=i64/4" }, { "cummax x=f16/4 y=f32/4", "y=f32/4" }, { "cummin x=u8/4", "y=u8/4" },
  { "reduce_any x=bool/4x5 axis=1", "y=bool/4x1" }, { "reduce_all x=bool/4x5", "y=bool/1x1" },
  { "reduce_logsumexp x=bf16/4x5 axis=0 y=f32/1x5", "y=f32/1x5" }, { "reduce_variance x=f32/4x5 axis=1 correction=0", "y=f32/4x1" },
  { "argmax x=f32/4x5 axis=1 last=1", "y=i32/4x1" }, { "slice x=f32/7x8 start=6,0 step=-2,1 length=0", "y=f32/4x8" },
  { "pad x=f32/4x5 pad=-1:2,7 mode=wrap", "y=f32/5x19" }, { "pad_backward dy=f32/5x19 pad=-1:2,7 mode=wrap", "dx=f32/4x5" },
  { "resample x=f32/1x2x4 size=8 mode=cubic coefficient=-0.5 rounding=prefer_floor", "y=f32/1x2x8" },
  { "resample x=f32/1x2x5x7x3 up=14,1,1 down=20,2,3", "y=f32/1x2x3x3x1" }, { "resample x=f32/1x2x5 down=2 size=2", "y=f32/1x2x2" },
  { "resample_backward dy=f32/1x2x7 dx=f32/1x2x5 up=3 down=2", "dx=f32/1x2x5" },
  { "clip x=f32/4 min=0", "y=f32/4" },
  { "relu_backward dy=f32/4 x=f16/4", "dx=f32/4" }, { "leaky_relu_backward dy=f16/4 x=f32/4", "dx=f16/4" },
  { "elu_backward dy=f32/4 x=f32/4", "dx=f32/4" }, { "gelu_backward dy=f32/4 x=f32/4", "dx=f32/4" },
  { "gelu_tanh_backward dy=f32/4 x=f32/4", "dx=f32/4" }, { "silu_backward dy=f32/4 x=f32/4", "dx=f32/4" },
  { "sigmoid_backward dy=f32/4 x=f32/4", "dx=f32/4" }, { "tanh_backward dy=f32/4 x=f32/4", "dx=f32/4" },
  { "softplus_backward dy=f32/4 x=f32/4", "dx=f32/4" }, { "hardswish_backward dy=f32/4 x=f32/4", "dx=f32/4" },
  { "mish_backward dy=f32/4 x=f32/4", "dx=f32/4" }, { "clip_backward dy=f32/4 x=f32/4", "dx=f32/4" },
};

/* The outputs of a single-op graph in line notation: made by giving them to the op `copy` and printing that. */
static void print_outputs(const qn_graph *g)
{
  const qn_graph_view *v = qn_graph_inspect(g);
  const qn_op_info *op = qn_op_find(v->op[0].op);
  size_t n = 0;
  text[0] = 0;
  for (uint32_t r = op->n_inputs; r < op->n_roles; r++)
    for (int32_t k = v->op[0].first[r]; k < v->op[0].first[r + 1]; k++) {
      qn_value value[2] = { v->value[v->op[0].arg[k]], { .rank = -1, .over = -1 } };
      value[0].over = -1;
      qn_node copy = { .op = QN_OP_COPY, .n_roles = 2, .first = (int32_t[]){ 0, 1, 2 }, .arg = (int32_t[]){ 0, 1 } };
      qn_graph_view view = { .struct_size = sizeof view, .n_ops = 1, .n_values = 2, .n_pointers = 2, .n_ins = 1, .op = &copy,
                             .value = value, .pointer = (int32_t[]){ 0, 1 } };
      qn_graph *line;
      char copied[512];
      if (qn_graph_make(&view, &line)) return;
      qn_graph_print(line, copied, sizeof copied);
      qn_graph_destroy(line);
      n += (size_t)snprintf(text + n, sizeof text - n, "%s%s=%s", n ? " " : "", op->role[r].name, copied + strlen("copy x="));
    }
}

/* A pointwise op of numbers without a case above: y has its operands' dims, and their dtype or bool. */
static void test_plain(const qn_op_info *op)
{
  char line[256];
  size_t n = (size_t)snprintf(line, sizeof line, "%s", op->name);
  const char *dtype = op->role[0].class_ == 'd' ? "u8" : "f16";
  for (uint32_t r = 0; r < op->n_inputs; r++)
    n += (size_t)snprintf(line + n, sizeof line - n, " %s=%s/%s", op->role[r].name, dtype, r ? "1x3" : "4x1");
  qn_graph *g;
  qn_status status = qn_graph_parse(line, &g);
  if (!status) print_outputs(g);
  char want[64];
  snprintf(want, sizeof want, "%s=%s/%s", op->role[op->n_inputs].name, op->role[op->n_inputs].class_ == 'b' ? "bool" : dtype,
           op->n_inputs > 1 ? "4x3" : "4x1");
  if (!tap_ok(!status && !strcmp(text, want), "%s: %s", line, want)) tap_note("%s", status ? qn_last_error() : text);
  qn_graph_destroy(g);
}

static void test_found(void)
{
  bool seen[QN__KINDS] = { false };
  for (size_t i = 0; i < sizeof found / sizeof found[0]; i++) {
    qn_graph *g;
    qn_status status = qn_graph_parse(found[i].line, &g);
    if (!status) {
      print_outputs(g);
      seen[qn_graph_inspect(g)->op[0].op] = true;
    }
    if (!tap_ok(!status && !strcmp(text, found[i].out), "%s: %s", found[i].line, found[i].out))
      tap_note("%s", status ? qn_last_error() : text);
    qn_graph_destroy(g);
  }
  for (int i = 0; qn_op_at(i); i++) {
    const qn_op_info *op = qn_op_at(i);
    if (seen[op->kind]) continue;
    if (op->family == QN_FAMILY_POINTWISE) test_plain(op);
    else tap_ok(0, "%s has a case", op->name);
  }
}

/* ---- refusals ----------------------------------------------------------------------------- */

static const struct { const char *line, *has; } refused[] = {
  { "matmul a=f32/3x4 b=f32/5x6", "b: dims are 5x6, so K is 5; must be 4, as in a's 3x4" },
  { "matmul a=f32/4 b=f32/4x5", "a: rank is 1; must be at least 2" },
  { "matmul a=f32/2x3x4 b=f32/4x5", "b: rank is 2; must be a's, 3" },
  { "matmul a=f32/2x3x4 b=f32/3x4x5", "b: dim 0 is 3; must be a's, 2, or 1" },
  { "matmul a=f32/3x4 b=f16/4x5", "b: dtype is f16 beside a's f32" },
  { "matmul a=i32/3x4 b=i32/4x5", "b: dtype is i32 beside a's i32" },
  { "matmul a=bool/3x4 b=bool/4x5", "a: dtype is bool; accepted: f64 f32 f16 bf16 e4m3 e5m2 i8 u8 i32 i64" },
  { "matmul a=f32/3x4 b=f32/4x5 y=f64/3x5", "y: dtype is f64; accepted here: f32" },
  { "matmul a=bf16/3x4 b=bf16/4x5 y=f16/3x5", "y: dtype is f16; accepted here: f32 bf16" },
  { "matmul a=bf16/3x4 b=bf16/4x5 y=f32/3x5 c=bf16/3x5", "c: dtype is bf16; must be y's, f32" },
  { "matmul a=f32/3x4 b=f32/4x5 y=f32/5x3", "y: dims are 5x3; must be 3x5" },
  { "matmul a=f32/3x4 b=f32/4x5 c=f32/1x5", "c: dims are 1x5; must be y's, 3x5" },
  { "matmul a=f32/3x4 b=f32/4x5 bias=f32/3", "bias: dims are 3; must be 5" },
  { "matmul a=f32/3x4 b=f32/4x5 bias=f16/5", "bias: dtype is f16" },
  { "matmul a=f32/3x4 b=f32/4x5 beta=1", "beta: is given without c" },
  { "matmul a=i8/3x4 b=i8/4x5 alpha=1", "alpha: is given; integer products are not scaled" },
  { "matmul a=f32/3x4 b=f32/4x5 alpha=f32/1", "alpha: rank is 1; a scalar has rank 0" },
  { "matmul a=f32/3x4 b=f32/4x5 alpha=i32", "alpha: dtype is i32" },
  { "matmul a=f32/3x4 b=3", "b: is a host value" },
  { "matmul a=f32/1000000000x1 b=f32/1x1000000000", "y: 1000000000x1000000000 is more than memory can hold" },
  { "conv_forward x=f32/3x3 w=f32/3x3", "x: rank is 2; must be 3 to 5" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3", "w: rank is 3; must be x's, 4" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x2x3x3", "w: dim 1 is 2; times 1 groups it must be x's dim 1, 3" },
  { "conv_forward x=f32/1x4x8x8 w=f32/5x2x3x3 groups=2", "groups: is 2; must divide w's dim 0, 5" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x0x3", "w: dim 2 is 0; a filter has taps" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3x3 stride=0", "stride: entry 0 is 0; must be at least 1" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3x3 pad=0:-1", "pad: entry 0 is -1; must be at least 0" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3x3 groups=0", "groups: is 0; must be at least 1" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3x3 pad=9223372036854775807", "more than any tensor holds" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3x3 y=f32/1x4x8x8", "y: dims are 1x4x8x8; must be 1x4x6x6" },
  { "conv_forward x=f32/1x3x8x8 w=f32/4x3x3x3 bias=f32/3", "bias: dims are 3; must be 4" },
  { "conv_backward_data dy=f32/1x4x6x6 w=f32/4x3x3x3 dx=f32/1x3x9x8", "dx: dim 2 is 9, which gives 7 places; dy has 6" },
  { "conv_backward_data dy=f32/1x5x6x6 w=f32/4x3x3x3", "dy: dim 1 is 5; must be w's dim 0, 4" },
  { "conv_backward_data dy=f32/1x4x6x6 w=f32/4x3x3x3 dx=f32/1x2x8x8", "dx: dims are 1x2x8x8; must be 1x3x8x8" },
  { "conv_backward_filter x=f32/1x3x8x8 dy=f32/2x4x6x6", "dy: dim 0 is 2; must be x's, 1" },
  { "conv_backward_filter x=f32/1x3x8x8 dy=f32/1x4x6x6 dw=f32/4x3x4x3", "dw: dim 2 is 4, which gives 5 places; dy has 6" },
  { "conv_backward_filter x=f32/1x3x8x8 dy=f32/1x4x9x6", "dy: dim 2 is 9, which no dw gives" },
  { "conv_backward_filter x=f32/1x3x8x8 dy=f32/1x4x6x6 groups=2", "groups: is 2; must divide the channels, 3 of x and 4 of dy" },
  { "softmax x=f32", "x: rank is 0; must be at least 1" },
  { "softmax x=i32/4", "x: dtype is i32; accepted: f64 f32 f16 bf16" },
  { "softmax x=f32/4 y=f64/4", "y: dtype is f64; accepted here: f32 f16 bf16" },
  { "softmax x=f32/4 axis=-2", "axis: is -2; must be -1 (the last) or 0 to 0" },
  { "softmax_backward y=f32/4 dy=f32/5", "dy: dims are 5; must be y's, 4" },
  { "log_softmax x=f32/4 y=f32/5", "y: dims are 5; must be 4" },
  { "log_softmax_backward y=f32/4 dy=f64/4", "dy: dtype is f64" },
  { "layer_norm x=i32/4", "x: dtype is i32; accepted: f64 f32 f16 bf16" },
  { "layer_norm x=f32", "x: rank is 0; must be at least 1" },
  { "layer_norm x=f32/2x3 scale=f32/3", "scale: dims are 3; each must be 1 or x's, 2x3" },
  { "layer_norm x=f32/2x3 shift=f64/1x3", "shift: dtype is f64; accepted here: f32 f16 bf16" },
  { "layer_norm x=f16/2x3 mean=f16/2x1", "mean: dtype is f16; accepted: f64 f32" },
  { "layer_norm x=f32/2x3 rstd=f32/1x3", "rstd: dims are 1x3; must be 2x1" },
  { "layer_norm x=f32/2x3 eps=-1", "eps: is -1; must be finite and at least 0" },
  { "layer_norm_backward dy=f32/2x4 x=f32/2x3 mean=f32/2x1 rstd=f32/2x1", "dy: dims are 2x4; must be 2x3" },
  { "rms_norm x=f32/2x3 scale=f32/1x2", "scale: dims are 1x2" }, { "rms_norm x=f32/2x3 y=f32/2x4", "y: dims are 2x4; must be 2x3" },
  { "rms_norm_backward dy=f32/2x3 x=f32/2x3 scale=f32/1x3 rstd=f32/2x1 dscale=f32/2x3", "dscale: dims are 2x3; must be 1x3" },
  { "batch_norm x=f32/4", "x: rank is 1; must be at least 2" },
  { "batch_norm x=f32/2x3 running_mean=f32/1x3", "new_mean: and running_mean must be given both or neither" },
  { "batch_norm x=f32/2x3 momentum=2", "momentum: is 2; must be 0 to 1" },
  { "batch_norm_backward dy=f32/2x3 x=f32/2x3 mean=f32/2x1 rstd=f32/1x3", "mean: dims are 2x1; must be 1x3" },
  { "batch_norm_inference x=f32/2x3 mean=f32/1x3 var=f32/1x2", "var: dims are 1x2; must be 1x3" },
  { "quantize x=f32/4x6 scale=f32", "y: must be given: its dtype is what quantize is for" },
  { "quantize x=f32/4x6 scale=f32 y=f16/4x6", "y: dtype is f16; accepted: e4m3 e5m2 i8 u8" },
  { "quantize x=f32/4x6 scale=f32/4x4 y=i8/4x6", "block: must be given: 4 scales along dim 1 do not divide x's 6" },
  { "quantize x=f32/4x6 scale=f32/4 y=i8/4x6", "scale: rank is 1; must be 0 or x's, 2" },
  { "quantize x=f32/4x6 scale=f32/4x2 y=i8/4x6 block=1,2", "scale: dims are 4x2; must be 4x3" },
  { "quantize x=f32/4x6 scale=f64 y=i8/4x6", "scale: dtype is f64; accepted here: f32 f16 bf16 e8m0" },
  { "quantize x=f32/4x6 scale=f32 zero_point=u8 y=i8/4x6", "zero_point: dtype is u8; accepted here: i8" },
  { "quantize x=f32/4x6 scale=f32 zero_point=e4m3 y=e4m3/4x6", "zero_point: is given; e4m3 has none" },
  { "quantize x=f32/4x6 scale=f32/4x1 zero_point=i8 y=i8/4x6", "zero_point: dims are a scalar; must be 4x1" },
  { "dequantize x=i8/4x6 scale=f64 y=f32/4x6", "y: dtype is f32; accepted here: f64" },
  { "quantize_dynamic x=f32/4x6 y=i8/4x6 scale=f16/1x1", "scale: dtype is f16; accepted here: f32 e8m0" },
  { "ctc_loss x=f32/7x4 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4", "x: rank is 2; must be 3: frames, samples, classes" },
  { "attention_forward q=f32/8x16x64 k=f32/2x32x64", "q: rank is 3; must be 4: sequences, heads, queries, elements" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x3x32x64 v=f32/2x3x32x64", "k: has 3 heads; they must divide q's 8" },
  { "attention_forward q=f32/2x8x16x64 k=bf16/2x2x32x64 v=f32/2x2x32x64", "k: dtype is bf16; accepted here: f32 e4m3 e5m2 i8" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x2x32x64", "value_size: is 0; without v it must be 1 to 64, the size of a key" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x2x32x64 v=f32/2x2x32x64 bias=f32/2x8x16x31", "bias: dim 3 is 31; must be 32 or 1" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x2x32x64 v=f32/2x2x32x64 mask=bool/16x32",
    "mask: rank is 2; must be 4: 2x8x16x32, or 1 in any" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x2x32x64 v=f32/2x2x32x64 dropout=0.5", "seed: is missing; dropout wants it" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x2x32x64 v=f32/2x2x32x64 q_starts=i32/3", "q: dim 0 is 2; must be 1 beside q_starts" },
  { "attention_forward q=f32/2x8x1x64 k=f32/9x2x32x64 v=f32/9x2x32x64 pages=i32/2x4", "kv_lengths: is missing; pages want it" },
  { "attention_forward q=f32/2x8x16x64 k=f32/2x2x32x64 v=f32/2x2x32x64 k_scale=f32/2x3x1x1", "k_scale: dim 1 is 3; must divide 2" },
  { "attention_backward dy=f32/2x8x16x4 q=f32/2x8x16x8 k=f32/2x2x32x8 v=f32/2x2x32x4 y=f32/2x8x16x4 lse=f32/2x8x16", "dv: is missing" },
  { "attention_merge y1=f32/5x8 lse1=f32/5x8 y2=f32/5x8 lse2=f32/5", "lse1: dims are 5x8; must be 5" },
  { "rotary x=f32/2x8x16x64 cos=f32/16x33 sin=f32/16x33", "cos: dim 1 is 33; must be at most 32, the pairs of a row" },
  { "rotary_backward dy=f32/2x8x16x64 cos=f32/16x32 sin=f32/16x31", "sin: dims are 16x31; must be 16x32" },
  { "cache_write cache=f32/9x2x16x64 x=f32/2x3x4x64 slots=i32/2x4", "x: dims are 2x3x4x64; must be 2x2x4x64" },
  { "ctc_loss x=f32/7x4x9 labels=i32/4 x_lengths=i32/4 label_lengths=i32/4", "labels: rank is 1; must be 2: samples, labels of each" },
  { "ctc_loss x=f32/7x4x9 labels=i32/5x3 x_lengths=i32/4 label_lengths=i32/4", "labels: dims are 5x3; must be 4x3" },
  { "ctc_loss x=f32/7x4x9 labels=i32/4x3 x_lengths=i32/7 label_lengths=i32/4", "x_lengths: dims are 7; must be 4" },
  { "ctc_loss x=f32/7x4x9 labels=i32/4x3 x_lengths=i32/4 label_lengths=u8/4", "label_lengths: dtype is u8; accepted: i32 i64" },
  { "ctc_loss x=f32/7x4x9 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 blank=9", "blank: is 9; must be one of x's 9 classes" },
  { "ctc_loss x=f32/7x4x9 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 zero_infinity=2", "zero_infinity: is 2; must be 0 or 1" },
  { "ctc_loss_backward dy=f32/1 x=f32/7x4x9 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 lse=f32/7x4x1",
    "dy: dims are 1; must be 4" },
  { "ctc_loss_backward dy=f32/4 x=f32/7x4x9 labels=i32/4x3 x_lengths=i32/4 label_lengths=i32/4 lse=f64/7x4x1",
    "lse: dtype is f64; accepted here: f32" },
  { "cross_entropy x=f32 labels=i32", "x: rank is 0; must be at least 1" },
  { "cross_entropy x=f32/4x5 labels=i32/4", "labels: dims are 4; must be 4x1" },
  { "cross_entropy x=f32/4x5 labels=u8/4x1", "labels: dtype is u8; accepted: i32 i64" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 axis=2", "axis: is 2; must be -1 (the last) or 0 to 1" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 smoothing=-1", "smoothing: is -1; must be 0 to 1" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 reduction=3", "reduction: is 3; must be the number of one of none|mean|sum" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 lse=f64/4x1", "lse: dtype is f64; accepted here: f32" },
  { "cross_entropy x=f32/4x5", "labels: is missing, and so is probabilities; wants one" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 probabilities=f32/4x5", "probabilities: is given beside labels; wants one" },
  { "cross_entropy x=f32/4x5 probabilities=f64/4x5", "probabilities: dtype is f64; accepted here: f32 f16 bf16" },
  { "cross_entropy x=f32/4x5 probabilities=f32/4x1", "probabilities: dims are 4x1; must be 4x5" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 weights=f32/4", "weights: dims are 4; must be 5" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 weights=f64/5", "weights: dtype is f64; accepted here: f32" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 lse=? input=log_probabilities", "lse: is given; only logits have one" },
  { "cross_entropy x=f32/4x5 labels=i32/4x1 input=2", "input: is 2; must be the number of one of logits|log_probabilities" },
  { "cross_entropy_backward dy=f32/4x1 x=f32/4x5 labels=i32/4x1", "lse: is missing; the gradient by logits wants it" },
  { "cross_entropy_backward dy=f32/1x1 x=f32/4x5 labels=i32/4x1 lse=f32/4x1 reduction=mean",
    "count: is missing; the gradient of a mean wants it" },
  { "cross_entropy_backward dy=f32/1x1 x=f32/4x5 labels=i32/4x1 lse=f32/4x1", "dy: dims are 1x1; must be 4x1" },
  { "cross_entropy_backward_probabilities dy=f32/4x1 x=f32/4x5", "lse: is missing; the gradient by logits wants it" },
  { "cross_entropy_backward_probabilities dy=f32/4x1 x=f32/4x5 lse=f32/4x1 input=log_probabilities", "lse: is given; only logits have one" },
  { "cross_entropy_backward_probabilities dy=f32/1x1 x=f32/4x5 lse=f32/4x1 reduction=mean", "count: is missing" },
  { "cross_entropy_backward_probabilities dy=f32/4x1 x=f32/4x5 lse=f32/4x1 dprobabilities=f32/4x1",
    "dprobabilities: dims are 4x1; must be 4x5" },
  { "all_reduce x=[f32/4,i8/4] reduction=avg", "x: tensor 1 is of i8; avg wants floats" },
  { "all_reduce x=i32/4 scale=2", "x: tensor 0 is of i32; scale wants floats" },
  { "all_reduce x=f32/4 scale=2 reduction=max", "scale: is given; only sum and avg are scaled" },
  { "all_reduce x=bool/4", "x[0]: dtype is bool; accepted: f64 f32 f16 bf16 i8 u8 i32 i64" },
  { "all_reduce x=[f32/4,f32/5] y=[f32/4]", "y: has 1 tensors; must have as many as x, 2" },
  { "all_reduce x=f32/4 y=[f16/4]", "y: dtype of tensor 0 is f16; must be x's, f32" },
  { "reduce_scatter x=f32/7 ranks=2", "x: dim 0 of tensor 0 is 7, no multiple of the 2 ranks that share it" },
  { "reduce_scatter x=f32 ranks=2", "x: tensor 0 is a scalar; reduce_scatter works along dim 0" },
  { "all_gather x=f32/4 ranks=0", "ranks: is 0; must be at least 1" },
  { "all_gather x=f32/4 y=[f32/4] ranks=2", "y: dims are 4; must be 8" },
  { "all_gather x=f32/100000000000 ranks=1000000000", "y: dim 0 of tensor 0 would be more than memory can hold" },
  { "broadcast x=f32/4 root=-1", "root: is -1; must be at least 0" },
  { "all_to_all x=[f32/4,f32/6x2] ranks=4", "x: dim 0 of tensor 1 is 6, no multiple of the 4 ranks" },
  { "send x=f32/4 peer=-1", "peer: is -1; must be at least 0" },
  { "recv x=f32/4 y=[f32/5]", "y: dims are 5; must be 4" },
  { "sgd params=[f32/4] grads=[f32/4,f32/4] step=1 rate=1", "grads: has 2 tensors; must have as many as params, 1" },
  { "sgd params=[f32/4] grads=[f32/5] step=1 rate=1", "grads: dims are 5; must be 4" },
  { "sgd params=[f32/4] grads=[f64/4] step=1 rate=1", "grads: dtype of tensor 0 is f64, which does not stand with params's f32" },
  { "sgd params=[f32/4] grads=[f32/4] step=1 rate=1 momentum=0.5", "velocity: is missing; momentum wants it" },
  { "rmsprop params=[f32/4] grads=[f32/4] v=[f32/4] step=1 rate=1 momentum=0.5", "velocity: is missing; momentum wants it" },
  { "lamb params=[f32/4] grads=[f32/4] m=[f32/4] v=[f32/4] limit=0 step=1 rate=1", "limit: is 0; must be above 0" },
  { "pool_max x=i32/1x2x5 window=2", "x: dtype is i32; accepted here: f64 f32 f16 bf16 i8 u8" },
  { "pool_average x=i32/1x2x5 window=2", "x: dtype is i32; accepted here: f64 f32 f16 bf16 i8 u8" },
  { "pool_average_backward dy=u8/1x2x5 window=2", "dy: dtype is u8; accepted: f64 f32 f16 bf16" },
  { "quantize x=i8/4 scale=f32 y=i8/4", "x: dtype is i8; accepted here: f64 f32 f16 bf16 i32" },
  { "quantize x=i32/4 scale=f64 y=i8/4", "scale: dtype is f64; accepted here: f32 f16 bf16 e8m0" },
  { "quantize_dynamic x=f32/4 y=u8/4", "zero_point: is missing; y of u8 wants one" },
  { "quantize_dynamic x=f32/4 y=e4m3/4 zero_point=?", "zero_point: is given; e4m3 has none" },
  { "quantize_dynamic x=f32/4 y=u8/4 scale=e8m0/1 zero_point=?", "scale: dtype is e8m0; accepted here: f32" },
  { "adagrad params=[f32/4] grads=[f32/4] v=[f32/5] step=1 rate=1", "v: dims are 5; must be 4" },
  { "lion params=[f32/4] grads=[f32/4] m=[f32/4] step=1 rate=1 beta1=2", "beta1: is 2; must be 0 to 1" },
  { "amsgrad params=[f32/4] grads=[f32/4] m=[f32/4] v=[f32/4] peak=[f16/4] step=1 rate=1", "peak[0]: dtype is f16" },
  { "sgd params=[f32/4,f64/4] grads=[f32/4,f64/4] step=1 rate=1", "params: has tensors of f64 beside others" },
  { "adam params=[f32/4] grads=[f32/4] m=[f32/4] v=[f32/4] step=1 rate=1 beta2=1", "beta2: is 1; must be at least 0 and below 1" },
  { "adam params=[f32/4] grads=[f32/4] m=[f32/4] v=[f16/4] step=1 rate=1", "v[0]: dtype is f16; accepted: f64 f32" },
  { "adamw params=[f32/4] grads=[f32/4] m=[f32/4] v=[f32/4] step=1 rate=1 new_params=[bf16/4]", "new_params: dtype of tensor 0 is bf16" },
  { "global_norm x=[f32/4] limit=-1", "limit: is -1; must be above 0" },
  { "amp_unscale grads=[f32/4] scale=1 found=f64", "found: dtype is f64; accepted here: f32" },
  { "amp_update scale=f32/1 good=i64 found=f32", "scale: dims are 1; must be a scalar" },
  { "rng_uniform seed=1", "y: must be given: nothing else says its dtype and dims" },
  { "rng_uniform seed=f32 y=f32/4", "seed: dtype is f32; accepted: i64" },
  { "rng_uniform seed=i64/2 y=f32/4", "seed: rank is 1; a scalar has rank 0" },
  { "rng_uniform seed=1 y=f32/4 min=1 max=0", "max: is 0; must be at least min" },
  { "rng_normal seed=1 y=f32/4 deviation=inf", "deviation: is inf; must be finite and at least 0" },
  { "rng_bernoulli seed=1 y=f32/4 p=-1", "p: is -1; must be 0 to 1" },
  { "dropout x=f32/9 seed=1 mask=u8/1", "mask: dims are 1; must be 2" },
  { "dropout x=f32/9 seed=1 y=f32/8", "y: dims are 8; must be 9" },
  { "dropout_backward dy=f32/9 seed=1 mask=u8/2", "mask: or seed must be given, and one of them only" },
  { "dropout_backward dy=f32/9 mask=u8/2 offset=1", "offset: wants a seed beside it" },
  { "pool_max x=f32/4x4 window=2", "x: rank is 2; must be 3 to 5" },
  { "pool_max x=f32/1x1x8x8 window=-2", "window: entry 0 is -2; must be at least 0" },
  { "pool_max x=f32/1x1x8x8 window=2 ceil_mode=2", "ceil_mode: is 2; must be 0 or 1" },
  { "pool_max x=f32/1x1x40x40 indices=u8/1x1x1x1", "counts 255 taps; the window has 1600" },
  { "pool_max x=f32/1x1x8x8 window=2 y=f16/1x1x4x4", "y: dtype is f16; accepted here: f32" },
  { "pool_max x=f32/1x1x8x8 window=2 indices=i32/1x1x4x5", "indices: dims are 1x1x4x5; must be 1x1x4x4" },
  { "pool_max x=f32/1x1x8x8 window=2 indices=i8/1x1x4x4", "indices: dtype is i8; accepted: u8 i32 i64" },
  { "pool_max_backward dy=f32/1x1x4x4 window=2", "indices: is missing, and so is x" },
  { "pool_max_backward dy=f32/1x1x4x4 indices=i32/1x1x4x4", "dx: must be given, because the window is its whole extent" },
  { "pool_max_backward dy=f32/1x1x4x4 indices=i32/1x1x4x3 window=2", "indices: dims are 1x1x4x3; must be dy's" },
  { "pool_max_backward dy=f32/1x1x4x4 x=f32/1x1x9x12 window=2", "dy: dim 3 is 4; an extent of 12 has 6 windows" },
  { "pool_max_backward dy=f32/1x1x4x4 x=f16/1x1x8x8 window=2", "x: dtype is f16" },
  { "pool_average x=f32/1x1x8 include_pad=7", "include_pad: is 7; must be 0 or 1" },
  { "pool_average_backward dy=f32/1x2x4 dx=f32/1x1x8 window=2", "batch and channels" },
  { "pool_adaptive_max x=f32/1x1x8", "size: entry 0 is 0 and y is not given" },
  { "pool_adaptive_max x=f32/1x1x8 size=3 indices=u8/1x1x3", "indices: dtype is u8; accepted: i32 i64" },
  { "pool_adaptive_max_backward dy=f32/1x1x3 indices=i32/1x1x3", "dx: must be given: its extents are not in dy" },
  { "pool_adaptive_average x=f32/1x8 size=3", "x: rank is 2; must be 3 to 5" },
  { "pool_adaptive_average x=f32/1x1x0 size=3", "x: dim 2 is 0, which no place of y can be made of" },
  { "pool_adaptive_average x=f32/1x1x8 size=3 y=f32/1x1x4", "y: dims are 1x1x4; must be 1x1x3" },
  { "pool_adaptive_average_backward dy=f32/1x1x3 dx=f32/1x1x8 size=4", "size: entry 0 is 4; dy's dim 2 is 3" },
  { "lrn x=f32/8", "x: rank is 1; must be 2 to 5" },
  { "rnn_forward x=f32/2x3 w=[f32/8x3] r=[f32/8x2]", "x: rank is 2; must be 3: steps, sequences, features" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x4] r=[f32/9x2]", "r: has 9 rows; must have a multiple of the cell's 4 gates" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x4] r=[f32/8x3]", "r: dims are 8x3; without projection they must be 8x2" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x4] r=[f32/8x2] layers=3", "w: has 1 tensors; must have one for each layer and direction: 3 by 1" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x5] r=[f32/8x2]", "w: dims are 8x5; must be 8x4" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x4] r=[f16/8x2]", "r: dtype of tensor 0 is f16; accepted here: f32" },
  { "rnn_forward x=f32/2x3x4 w=[f32/2x4] r=[f32/2x2] cell=tanh c0=f32/1x3x2",
    "c0: is given, but cell is not lstm, which alone has a cell state" },
  { "rnn_forward x=f32/2x3x4 w=[f32/2x4] r=[f32/2x2] cell=tanh gates=?",
    "gates: is given, but cell has none; y and inner hold what backward needs" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x4] r=[f32/8x2] inner=?", "inner: is given, but layers is 1: nothing lies between layers" },
  { "rnn_forward x=f32/2x3x4 w=[f32/8x4,f32/8x2] r=[f32/8x2,f32/8x2] layers=2 dropout=0.5", "seed: is missing; dropout wants it" },
  { "rnn_forward x=f32/2x3x4 w=[f32/6x4] r=[f32/6x2] projection=[f32/2x2] cell=gru",
    "projection: is given, but cell is not lstm, which alone has one" },
  { "rnn_backward dy=f32/2x3x2 x=f32/2x3x4 y=f32/2x3x2 w=[f32/8x4] r=[f32/8x2]",
    "gates: is missing; the gradient of this cell wants what forward left in it" },
  { "lrn x=f32/2x8 region=within", "x: rank is 2; must be 3 to 5" },
  { "lrn x=f32/2x8 size=0", "size: is 0; must be at least 1" },
  { "lrn x=f32/2x8 alpha=-1", "alpha: is -1; must be finite and at least 0" },
  { "lrn x=f32/2x8 y=f16/2x8", "y: dtype is f16; accepted here: f32" },
  { "lrn_backward dy=f32/2x8 x=f32/2x9", "x: dims are 2x9; must be 2x8" },
  { "lrn x=f32/2x3x8 means=f32/2x1x8", "means: dims are 2x1x8; must be 2x3x8" },
  { "lrn x=f16/2x8 means=f32/2x8", "means: dtype is f32; accepted here: f16" },
  { "lrn_backward dy=f32/2x8 x=f32/2x8 dmeans=?", "dmeans: is wanted where no means are given" },
  { "affine_grid theta=f32/4x2x3", "grid: must be given: its extents are not in theta" },
  { "affine_grid theta=f32/4x3x3 grid=f32/4x5x7x2", "theta: dims are 4x3x3; must be Nx2x3 or Nx3x4" },
  { "affine_grid theta=f32/4x2x3 grid=f32/3x5x7x2", "grid: dims are 3x5x7x2; must be 4x5x7x2" },
  { "affine_grid theta=f32/4x2x3 grid=f32/4x5x7x2 align_corners=2", "align_corners: is 2; must be 0 or 1" },
  { "affine_grid_backward dy=f32/4x5x7x3", "dy: dims are 4x5x7x3; must be Nx...x2 of rank 4" },
  { "grid_sample x=f32/2x3x7 grid=f32/2x4x1", "x: rank is 3; must be 4 or 5" },
  { "grid_sample x=f32/2x3x7x5 grid=f32/2x4x9x3", "grid: dims are 2x4x9x3; must be 2x4x9x2" },
  { "grid_sample x=f32/2x3x7x5 grid=f64/2x4x9x2", "grid: dtype is f64; accepted here: f32 f16 bf16" },
  { "grid_sample x=f32/2x3x0x5 grid=f32/2x4x9x2", "x: dim 2 is 0; a point lies somewhere in it" },
  { "grid_sample x=f32/2x3x7x5 grid=f32/2x4x9x2 mode=3", "mode: is 3; must be the number of one of nearest|linear|cubic" },
  { "grid_sample_backward_data dy=f32/2x3x4x9 grid=f32/2x4x9x2", "dx: must be given: its extents are not in dy" },
  { "grid_sample_backward_data dy=f32/2x3x4x9 grid=f32/2x4x9x2 dx=f32/2x2x7x5", "dx: dims are 2x2x7x5; must be 2x3x7x5" },
  { "grid_sample_backward_grid dy=f32/2x3x4x8 x=f32/2x3x7x5 grid=f32/2x4x9x2", "dy: dims are 2x3x4x8; must be 2x3x4x9" },
  { "resample x=f32/1x1x8", "size: entry 0 is 0 and y is not given" },
  { "resample x=f32/1x1x8 size=4 antialias=1", "antialias: is 1; wants mode linear or cubic, and grid half_pixel" },
  { "resample x=f32/1x1x8 size=4 mode=linear antialias=1 grid=asymmetric", "antialias: is 1; wants mode linear or cubic" },
  { "resample x=f32/1x1x8 size=4 mode=linear antialias=2", "antialias: is 2; must be 0 or 1" },
  { "resample x=f32/1x1x8 size=4 grid=5", "grid: is 5; must be the number of one of half_pixel|align_corners|asymmetric" },
  { "resample x=f32/1x1x8 size=4 y=f16/1x1x4", "y: dtype is f16; accepted here: f32" },
  { "resample_backward dy=f32/1x1x8", "dx: must be given: its extents are not in dy" },
  { "resample x=f32/1x1x8 up=-1", "up: entry 0 is -1; must be at least 0" },
  { "resample x=f32/1x1x8 up=2 size=15", "size: entry 0 is 15; 8 places times 2/1 are 16" },
  { "resample x=f32/1x1x8 down=9", "up: entry 0: 8 places times 1/9 are none" },
  { "resample x=f32/1x1x8 up=288230376151711743", "up: entry 0 makes more than 288230376151711744 places" },
    { "resample x=f32/1x1x1 up=3 down=288230376151711744", "down: entry 0 is 288230376151711744; at most 72057594037927936" },
  { "resample_backward dy=f32/1x1x8 dx=f32/1x1x5 up=3 down=2", "size: entry 0 is 7; dy's dim 2 is 8" },
  { "pool_lp x=f32/1x1x8 p=0.5", "p: is 0.5; must be 1 to 1e6" },
  { "pool_lp_backward dy=f32/1x1x4 x=f32/1x1x8 y=f32/1x1x3 window=2", "y: dims are 1x1x3; must be dy's, 1x1x4" },
  { "copy x=f32/4 y=f32/5", "y: dims are 5; must be 4" },
  { "copy x=f32/4 y=f16/4", "y: dtype is f16; accepted here: f32" },
  { "copy x=3", "x: is a host value" },
  { "permute x=f32/2x3 perm=0,2", "perm: entry 1 is 2; must be 0 to 1" },
  { "permute x=f32/2x3 perm=0,0", "perm: names dim 0 twice" },
  { "slice x=f32/4 start=5", "start: entry 0 is 5; x's dim is 4" },
  { "slice x=f32/9 start=1 length=5 step=2", "length: entry 0 is 5; from 1 in steps of 2 x's dim of 9 has 4" },
  { "slice x=f32/9 step=0", "step: entry 0 is 0; must be at least 1" },
  { "pad x=f32/4 pad=-3", "pad: entry 0 is -3:-3" },
  { "pad x=f32/4 pad=1 y=f32/5", "y: dims are 5; must be 6" },
  { "concat x=[f32/2x3,f32/3x3]", "dims of [1] are 3x3; must be as [0]'s, 2x3, but for dim 1" },
  { "concat x=[f32/2x3,f16/2x3]", "dtype of [1] is f16; must be [0]'s, f32" },
  { "concat x=[f32]", "rank is 0; must be at least 1" },
  { "concat x=[f32/2] axis=1", "axis: is 1" },
  { "pad x=f32/4 pad=4 mode=reflect", "pad: entry 0 is 4; a reflection of x's dim of 4 reaches 3 at most" },
  { "pad x=f32/0 pad=1 mode=replicate", "pad: entry 0 is 1; x's dim is 0, which has nothing to repeat" },
  { "pad x=f32/4 mode=4", "mode: is 4; must be the number of one of constant|reflect|replicate" },
  { "gather x=f32 indices=i32/4", "x: rank is 0; must be at least 1" },
  { "gather x=f32/4 indices=f32/4", "indices: dtype is f32; accepted: i32 i64" },
  { "gather x=f32/4 indices=i32/4 axis=1", "axis: is 1; must be -1 (the last) or 0 to 0" },
  { "gather x=f32/1x1x1x1x1 indices=i32/1x1x1x1x1", "indices: rank is 5; with the other 4 dims of x that is more than 8" },
  { "gather_elements x=f32/4x5 indices=i32/5x3 axis=1", "indices: dims are 5x3; must be as many as x's, 4x5, and but for dim 1 no larger" },
  { "scatter_elements x=f32/4 indices=i32/3 updates=f32/4", "updates: dims are 4; must be 3" },
  { "scatter_elements x=f32/4 indices=i32/3 updates=f16/3", "updates: dtype is f16; must be x's, f32" },
  { "scatter_elements x=bool/4 indices=i32/3 updates=bool/3 mode=add", "mode: joins numbers, and bool is none" },
  { "scatter_nd x=f32/4x5 indices=i32/3x3 updates=f32/3", "indices: dims are 3x3; the last must be 1 to x's rank, 2" },
  { "scatter_nd x=f32/4x5 indices=i32/3x1 updates=f32/3", "updates: dims are 3; must be 3x5" },
  { "sort x=f32/4 y=f16/4", "y: dtype is f16" }, { "sort x=f32/4 axis=1", "axis" }, { "iota start=0 step=1", "y: must be given" },
  { "iota start=0 step=1 y=f32", "y: rank is 0" }, { "unfold x=f32/3x4 window=1", "x: rank is 2" },
  { "unfold x=f32/1x1x4 window=0", "window: entry 0 is 0" },
  { "unfold x=f32/1x1x4 window=2 y=f32/1x2x4", "y: dims are 1x2x4; must be 1x2x3" },
  { "unfold_backward dy=f32/2x12x3x3 window=2", "dx: must be given" },
  { "unfold_backward dy=f32/2x12x9 dx=f32/2x3x4x4 window=2", "dy: rank is 3; must be dx's, 4" },
  { "unfold_backward dy=f32/2x12x3x2 dx=f32/2x3x4x4 window=2", "dy: dims are 2x12x3x2; must be 2x12x3x3" },
  { "cumprod x=f32", "x: rank is 0" }, { "cummax x=i8/4 y=i32/4", "y: dtype is i32" },
  { "cummin x=i8/4 y=i32/4", "y: dtype is i32" },
  { "reduce_any x=f32/4", "x: dtype is f32" }, { "reduce_all x=bool/4 y=i8/1", "y: dtype is i8" },
  { "reduce_logsumexp x=i32/4", "x: dtype is i32" }, { "reduce_variance x=f32/4 correction=-1", "correction: is -1; must be at least 0" },
  { "slice x=f32/4 start=4 step=-1", "start: entry 0 is 4; a step backwards starts below x's dim of 4" },
  { "slice x=f32/4 step=0", "step: entry 0 is 0" },
  { "slice x=f32/4 start=3 step=-2 length=3", "length: entry 0 is 3" },
  { "pad x=f32/4 pad=-3:-2", "pad: entry 0 is -3:-2; x's dim of 4 has no more to cut off" },
  { "pad x=f32/0 pad=1 mode=wrap", "pad: entry 0 is 1; x's dim is 0" },
  { "scatter_add dy=f32/4x3 indices=i32/4", "dx: must be given: its dim along the axis is in neither dy nor indices" },
  { "scatter_add dy=f32/4x3 indices=i32/5 dx=f32/9x3", "dy: dims are 4x3; must be 5x3, which gather takes from dx by indices" },
  { "scatter_add dy=f32/4x3 indices=i32/4 dx=f64/9x3", "dx: dtype is f64" },
  { "pad_backward dy=f32/4 pad=3:2", "pad: entry 0 is 3:2; dy's dim is 4" },
  { "pad_backward dy=f32/7 pad=3:2 mode=reflect", "a reflection of x's dim of 2 reaches 1 at most" },
  { "one_hot indices=i32/4", "depth: is 0; must be at least 1" },
  { "one_hot indices=i32/4 depth=3 y=f32/4x4", "y: dims are 4x4; must be 4x3" },
  { "top_k x=f32/4 k=5", "k: is 5; must be 1 to x's dim 0, 4" }, { "top_k x=f32/4 smallest=2", "smallest: is 2; must be 0 or 1" },
  { "top_k x=f32/4 y=f16/1", "y: dtype is f16; accepted here: f32" },
  { "cumsum x=f32/4 exclusive=3", "exclusive: is 3; must be 0 or 1" }, { "cumsum x=i8/4 y=f32/4", "y: dtype is f32; accepted here:" },
  { "reduce_sum x=f32/4 y=i32/1", "y: dtype is i32; accepted here: f64 f32 f16 bf16" },
  { "reduce_sum x=i8/4 y=f32/1", "y: dtype is f32; accepted here: i8 i32 i64" },
  { "reduce_sum x=f32/4x4 y=f32/4", "y: dims are 4; must be 1x1" },
  { "reduce_mean x=i32/4", "x: dtype is i32" }, { "reduce_prod x=bool/4", "x: dtype is bool" },
  { "reduce_max x=i8/4 y=i32/1", "y: dtype is i32; accepted here: i8" }, { "reduce_min x=e4m3/4", "x: dtype is e4m3" },
  { "reduce_norm1 x=i8/4", "x: dtype" }, { "reduce_norm2 x=i8/4", "x: dtype" }, { "reduce_amax x=i8/4", "x: dtype" },
  { "argmax x=f32/4 y=f32/1", "y: dtype is f32; accepted: i32 i64" }, { "argmin x=f32/4 y=i8/1", "y: dtype is i8" },
  { "argmax x=f32/65536x65536/0:1 y=i32/1x1", "4294967296 elements are counted: use i64" },
  { "add a=f32/4 b=f32/5", "b: dims are 5; each must be 1 or that of the others, here dim 0 is 4" },
  { "add a=f32/4x4 b=f32/3", "b: dims are 1x3; each must be 1 or that of the others, here dim 1 is 4" },
  { "add a=f32/4x4 b=f32/4 y=f32/4", "a: rank is 2; must be at most y's, 1" },
  { "add a=f32/4 b=f64/4", "b: dtype is f64, which does not stand with a's f32; cast one of them" },
  { "add a=f32/4 b=i32", "b: is a scalar of dtype i32" },
  { "add a=f32/4 b=f32/4 y=f64/4", "y: dtype is f64, which does not stand with a's f32" },
  { "add a=f32/4 b=f32/4 y=f32/1", "y: dims are 1; must be 4" },
  { "add a=bool/4 b=bool/4", "a: dtype is bool; accepted" },
  { "sub a=i8/4 b=u8/4", "b: dtype is u8, which does not stand" }, { "mul a=i8/4 b=f32/4", "b: dtype is f32, which does not stand" },
  { "floor_divide a=f32/4 b=f32/4", "a: dtype is f32" }, { "max a=bool/4 b=i8/4", "b: dtype is i8" },
  { "min a=f32/4 b=f64/4", "b: dtype" }, { "max a=e5m2/4 b=0", "a: dtype is e5m2" },
  { "pow a=i32/4 b=2", "a: dtype is i32" },
  { "eq a=1 b=2", "a: is a scalar, as all inputs are" }, { "ne a=f32/4 b=i32/4", "b: dtype" },
  { "lt a=f32/4 b=0 y=f32/4", "y: dtype is f32; accepted: bool" },
  { "le a=bool/4 b=0", "a: dtype" }, { "gt a=f32/4 b=f64/4", "b: dtype" }, { "ge a=f64/4 b=f32/4", "b: dtype" },
  { "logical_and a=bool/4 b=i8/4", "b: dtype is i8; accepted: bool" }, { "logical_or a=f32/4 b=bool/4", "a: dtype" },
  { "logical_not x=u8/4", "x: dtype" }, { "select c=u8/4 a=f32/4 b=0", "c: dtype is u8; accepted: bool" },
  { "select c=bool/4 a=f32/4 b=i32/4", "b: dtype is i32, which does not stand with a's f32" },
  { "cast x=f32/4", "y: must be given: its dtype is what cast is for" }, { "cast x=f32/4 y=i8/5", "y: dims are 5; must be 4" },
  { "neg x=bool/4", "x: dtype" }, { "abs x=bool/4", "x: dtype" }, { "sign x=bool/4", "x: dtype" },
  { "relu x=f32/4 y=f32/4/0", "y: stride 0 is 0; only inputs may be broadcast" },
  { "relu x=f32/4x4 y=f32/4x4/2:1", "y: two of its elements have one address" },
  { "relu x=f32/9223372036854775807", "x: 9223372036854775807 at these strides is more than memory can hold" },
  { "relu x=f32/2x2/9223372036854775807:1", "more than memory can hold" },
};

static void test_refused(void)
{
  bool seen[QN__KINDS] = { false };
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    qn_graph *g;
    qn_status status = qn_graph_parse(refused[i].line, &g);
    char name[64] = "";
    sscanf(refused[i].line, "%63s", name);
    if (qn_op_named(name)) seen[qn_op_named(name)->kind] = true;
    bool right = status == QN_BAD_ARGUMENT && strstr(qn_last_error(), refused[i].has);
    if (!tap_ok(right, "%s: %s", refused[i].line, status ? qn_last_error() : "taken")) tap_note("wanted: %s", refused[i].has);
    qn_graph_destroy(g);
  }
  tap_ok(!qn_op_named(NULL) && !qn_op_named(""), "no name is no op's");
  /* functions share one rule: no f8, y has the operands' dims */
  for (int i = 0; qn_op_at(i); i++) {
    const qn_op_info *op = qn_op_at(i);
    if (seen[op->kind]) continue;
    char line[256];
    const char *dtype = op->role[0].class_ == 'd' ? "i32" : "f32";
    size_t n = (size_t)snprintf(line, sizeof line, "%s", op->name);
    for (uint32_t r = 0; r < op->n_inputs; r++)
      n += (size_t)snprintf(line + n, sizeof line - n, " %s=%s/4", op->role[r].name, r ? dtype : "e4m3");
    qn_graph *g;
    tap_ok(op->family == QN_FAMILY_POINTWISE && qn_graph_parse(line, &g) == QN_BAD_ARGUMENT, "%s: %s", line, qn_last_error());
    n = (size_t)snprintf(line, sizeof line, "%s", op->name);
    for (uint32_t r = 0; r <= op->n_inputs; r++)
      n += (size_t)snprintf(line + n, sizeof line - n, " %s=%s/%d", op->role[r].name, dtype, r < op->n_inputs ? 4 : 5);
    tap_ok(qn_graph_parse(line, &g) == QN_BAD_ARGUMENT, "%s: %s", line, qn_last_error());
  }
}

/* ---- attributes --------------------------------------------------------------------------- */

static void test_attributes(void)
{
  static const struct { const char *line, *attr; int64_t want[3]; } whole[] = {
    { "pool_max x=f32/1x1x8x6", "window", { 8, 6, 1 } }, { "pool_max x=f32/1x1x8x6", "stride", { 8, 6, 1 } },
    { "pool_max x=f32/1x1x8x6 window=2", "stride", { 2, 2, 1 } },
    { "conv_forward x=f32/1x1x8 w=f32/1x1x3 stride=2 pad=3", "stride", { 2, 1, 1 } },
    { "conv_forward x=f32/1x1x8 w=f32/1x1x3 stride=2 pad=3", "pad", { 3, 0, 0 } },
    { "slice x=f32/9x8 start=2,0 step=3,1", "length", { 3, 8, 1 } },
    { "permute x=f32/2x3 perm=1,0", "perm", { 1, 0, 2 } },
  };
  for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
    qn_graph *g;
    if (!tap_ok(!qn_graph_parse(whole[i].line, &g), "%s parses", whole[i].line)) continue;
    const qn_node *node = &qn_graph_inspect(g)->op[0];
    const qn_op_info *op = qn_op_find(node->op);
    for (uint32_t k = 0; k < op->n_attrs; k++)
      if (!strcmp(op->attr[k].name, whole[i].attr))
        tap_ok(!memcmp((const char *)node->attr + op->attr[k].offset, whole[i].want, sizeof whole[i].want), "its %s is completed",
               whole[i].attr);
    qn_graph_destroy(g);
  }
  qn_graph *g;
  tap_ok(!qn_graph_parse("softmax x=f32/2x3x4", &g) && ((const qn_axis *)qn_graph_inspect(g)->op[0].attr)->axis == 2,
         "the last axis has its number");
  qn_graph_destroy(g);
  tap_ok(!qn_graph_parse("reduce_sum x=f32/2x3x4", &g) && ((const qn_axes *)qn_graph_inspect(g)->op[0].attr)->mask == 7,
         "all dims have their mask");
  qn_graph_destroy(g);
}

/* An output with only the dtype to be inferred, as qn_graph_make accepts it. */
static void test_given_dims(void)
{
  static const int32_t first[] = { 0, 1, 2, 3 }, arg[] = { 0, 1, 2 };
  static const struct { uint32_t op; qn_value value[3]; uint32_t dtype; } table[] = {       /* dtype 0: is refused */
    { QN_OP_SCATTER_ADD, { { .dtype = QN_F32, .rank = 1, .dim = { 3 }, .stride = { 1 }, .over = -1 },
                           { .dtype = QN_I32, .rank = 1, .dim = { 3 }, .stride = { 1 }, .over = -1 },
                           { .rank = 1, .dim = { 5 }, .over = -1 } }, QN_F32 },
    { QN_OP_SCATTER_ADD, { { .dtype = QN_F32, .rank = 8, .dim = { 3, 1, 1, 1, 1, 1, 1, 1 }, .over = -1 },
                           { .dtype = QN_I32, .over = -1 }, { .rank = 9, .dim = { 3, 1, 1, 1, 1, 1, 1, 1 }, .over = -1 } }, 0 },
    { QN_OP_CONV_BACKWARD_DATA, { { .dtype = QN_F32, .rank = 3, .dim = { 1, 1, 0 }, .over = -1 },
                                  { .dtype = QN_F32, .rank = 3, .dim = { 1, 1, 1 }, .stride = { 1, 1, 1 }, .over = -1 },
                                  { .rank = 3, .dim = { 1, 1, -5 }, .over = -1 } }, 0 },
    { QN_OP_CONV_BACKWARD_DATA, { { .dtype = QN_F32, .rank = 3, .dim = { 1, 1, 2 }, .stride = { 2, 2, 1 }, .over = -1 },
                                  { .dtype = QN_F32, .rank = 3, .dim = { 1, 1, 1 }, .stride = { 1, 1, 1 }, .over = -1 },
                                  { .rank = 3, .dim = { 1, 1, INT64_MAX }, .over = -1 } }, 0 },
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const qn_node node = { .op = table[i].op, .n_roles = 3, .first = first, .arg = arg };
    const qn_graph_view view = { .struct_size = sizeof view, .n_ops = 1, .n_values = 3, .n_pointers = 3, .n_ins = 2, .op = &node,
                                 .value = table[i].value, .pointer = arg };
    qn_graph *g = NULL;
    qn_status status = qn_graph_make(&view, &g);
    tap_ok(table[i].dtype ? !status && qn_graph_inspect(g)->value[2].dtype == table[i].dtype : status == QN_BAD_ARGUMENT,
           "%s, the dims of its output given: %s", qn_op_find(table[i].op)->name, status ? qn_last_error() : "taken");
    qn_graph_destroy(g);
  }
}

/* Arrays that no line could express are refused too: literals that a role does not take, roles that overlap. */
static void test_bad_data(void)
{
  static const struct { const char *line; double number; bool taken; } table[] = {
    { "rng_uniform seed=7 y=f32/4", 8, true }, { "rng_uniform seed=7 y=f32/4", 0.5, false }, { "rng_uniform seed=7 y=f32/4", NAN, false },
    { "rng_uniform seed=7 y=f32/4", 0x1p63, false }, { "logical_and a=bool/4 b=1", 0, true }, { "logical_and a=bool/4 b=1", 2, false },
    { "add a=f32/4 b=1", NAN, true },
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    qn_graph *g = NULL, *h = NULL;
    if (!tap_ok(!qn_graph_parse(table[i].line, &g), "parsed: %s", table[i].line)) continue;
    qn_graph_view view = *qn_graph_inspect(g);
    double literal[8];
    for (uint32_t v = 0; v < view.n_values && v < 8; v++)
      literal[v] = view.value[v].flags & QN_VALUE_HOST ? table[i].number : view.literal[v];
    view.literal = literal;
    const qn_status status = qn_graph_make(&view, &h);
    tap_ok(table[i].taken ? !status : status == QN_BAD_ARGUMENT, "%s, with %g: %s", table[i].line, table[i].number,
           status ? qn_last_error() : "taken");
    qn_graph_destroy(h);
    qn_graph_destroy(g);
  }
  static const qn_value value[2] = { { .dtype = QN_F32, .rank = 1, .dim = { 3 }, .stride = { 1 }, .over = -1 }, { .over = -1 } };
  static const int32_t first[] = { 0, 1000000, 2 }, arg[] = { 0, 1 };
  const qn_node node = { .op = QN_OP_RELU, .n_roles = 2, .first = first, .arg = arg };
  const qn_graph_view view = { .struct_size = sizeof view, .n_ops = 1, .n_values = 2, .n_pointers = 2, .n_ins = 1, .op = &node,
                               .value = value, .pointer = arg };
  qn_graph *g = NULL;
  tap_ok(qn_graph_make(&view, &g) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "ends before it begins"),
         "a role that ends beyond the next: %s", qn_last_error());
}

/* ---- qn_infer --------------------------------------------------------------------------------- */

/* A random problem as a call without data, its outputs as open as the problem leaves them; false: qn_infer and qn_graph_make differ. */
static bool infers_as_graph(problem *p)
{
  qn_tensor t[PROBLEM_VALUES] = { { 0 } }, out[PROBLEM_VALUES];
  qn_arg arg[QN_MAX_ROLES];
  qn_graph *g = NULL;
  for (int k = 0; k < p->n; k++) {
    const qn_value *v = &p->value[k];
    t[k] = (qn_tensor){ .dtype = v->dtype, .rank = v->rank, .flags = v->flags & QN_VALUE_HOST ? QN_HOST : 0 };
    for (int d = 0; d < v->rank; d++) t[k].dim[d] = v->dim[d], t[k].stride[d] = v->stride[d];
  }
  for (uint32_t r = 0; r < p->op->n_roles; r++) {
    arg[r] = (qn_arg){ &t[p->first[r]], p->first[r + 1] - p->first[r] };
    bool open = r >= p->op->n_inputs && arg[r].n == 1 && !p->value[p->first[r]].dtype;
    if (open) arg[r].t = NULL;
  }
  const qn_op call = { p->op->kind, p->op->n_roles, p->node.attr, arg };
  for (int k = p->first[p->op->n_inputs]; k < p->n; k++) p->value[k].over = -1;       /* which would decide its strides */
  bool same = !qn_infer(&call, out) && !qn_graph_make(&p->view, &g);
  for (int k = p->first[p->op->n_inputs]; same && k < p->n; k++) {
    const qn_value *v = &qn_graph_inspect(g)->value[k];
    const qn_tensor *o = &out[k - p->first[p->op->n_inputs]];
    same = o->dtype == v->dtype && o->rank == v->rank && !o->data && !o->flags;
    for (int d = 0; d < v->rank; d++) same = same && o->dim[d] == v->dim[d] && o->stride[d] == v->stride[d];
  }
  qn_graph_destroy(g);
  return same;
}

static void test_infer(void)
{
  rng r = { 11 };
  for (int i = 0; qn_op_at(i); i++) {
    int wrong = 0;
    problem p;
    for (int n = 0; n < 200; n++) {
      problem_random(&r, qn_op_at(i), &p);
      wrong += !infers_as_graph(&p);
    }
    if (!tap_ok(!wrong, "%s: 200 times the outputs of a graph, without data", qn_op_at(i)->name))
      tap_note("%d; %s", wrong, qn_last_error());
  }
  /* a dtype given and dims wanted; what must be given; what is wrong */
  qn_tensor x = qn_tensor_2d(NULL, QN_F32, 3, 4), i32 = { .dtype = QN_I32, .rank = -1 }, out[2] = { { 0 } };
  const qn_op cast = { QN_OP_CAST, 2, NULL, (qn_arg[]){ { &x, 1 }, { &i32, 1 } } };
  tap_ok(!qn_infer(&cast, out) && out[0].dtype == QN_I32 && out[0].rank == 2 && out[0].dim[1] == 4 && out[0].stride[0] == 4,
         "cast: a dtype is given, the dims are found");
  const qn_op open = { QN_OP_CAST, 2, NULL, (qn_arg[]){ { &x, 1 }, { NULL, 1 } } };
  tap_ok(qn_infer(&open, out) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "must be given"), "%s", qn_last_error());
  const qn_op both = { QN_OP_TOP_K, 3, &(qn_ranking){ sizeof(qn_ranking), -1, 2, 0 }, (qn_arg[]){ { &x, 1 }, { NULL, 1 }, { NULL, 1 } } };
  tap_ok(!qn_infer(&both, out) && out[0].dim[1] == 2 && out[1].dim[1] == 2 && out[1].dtype != QN_F32,
         "top_k: two outputs, in the order of roles");
  const qn_op uneven = { QN_OP_MATMUL, 7, NULL, (qn_arg[]){ { &x, 1 }, { &x, 1 }, { 0 }, { 0 }, { 0 }, { 0 }, { NULL, 1 } } };
  tap_ok(qn_infer(&uneven, out) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "matmul: "), "%s", qn_last_error());
  const qn_op none = { QN_OP_RELU, 2, NULL, (qn_arg[]){ { NULL, 1 }, { NULL, 1 } } };
  tap_ok(qn_infer(&none, out) == QN_BAD_ARGUMENT && qn_infer(NULL, out) == QN_BAD_ARGUMENT && qn_infer(&cast, NULL) == QN_BAD_ARGUMENT,
         "no input, no op, nowhere to put it: refused");
}

/* The schema as a program compiled against it reads it. */
static void test_sizes(void)
{
  int wrong = 0;
  for (int i = 0; qn_op_at(i); i++) {
    const qn_op_info *op = qn_op_at(i);
    wrong += op->struct_size != sizeof *op || op->role_info_size != sizeof *op->role || op->attr_info_size != sizeof *op->attr;
    wrong += qn_op_role(op, op->n_roles - 1) != &op->role[op->n_roles - 1];
    wrong += op->n_attrs && qn_op_attr(op, op->n_attrs - 1) != &op->attr[op->n_attrs - 1];
  }
  tap_ok(!wrong, "the schema states its sizes");
}

/* The schema's statements on inputs, for programs that generate data. */
static void test_domains(void)
{
  static const struct { const char *line; int input; qn_domain is; } table[] = {
    { "relu x=f32/4", 0, { QN_FLOATS_ANY, 0, 0, 128 } },
    { "logical_not x=bool/4", 0, { QN_FLOATS_ANY, 0, 0, 2 } },
    { "log x=f32/4", 0, { QN_FLOATS_POSITIVE, 0, 0, 128 } },
    { "batch_norm_inference x=f32/2x3 mean=f32/1x3 var=f32/1x3", 2, { QN_FLOATS_POSITIVE, 0, 0, 128 } },
    { "sgd params=f32/4 grads=f32/4 step=i64 rate=f32 found=f32", 4, { QN_FLOATS_ZERO, 0, 0, 128 } },
    { "rnn_forward x=f32/3x2x4 w=[f32/20x4] r=[f32/20x5]", 2, { QN_FLOATS_SMALL, 0, 0, 128 } },
    { "gather x=f32/7x50 indices=i32/6 axis=-1", 1, { QN_FLOATS_ANY, 0, 0, 50 } },
    { "scatter_add dy=f32/6x2 indices=i32/6 dx=f32/9x2", 1, { QN_FLOATS_ANY, 0, 0, 9 } },
    { "one_hot indices=i32/6 depth=11 axis=0", 0, { QN_FLOATS_ANY, 0, 0, 11 } },
    { "pool_max_backward dy=f32/1x1x4x3 indices=u8/1x1x4x3 dx=f32/1x1x8x9 window=2,3", 1, { QN_FLOATS_ANY, 0, 0, 6 } },
    { "pool_max_backward dy=f32/1x1x4x3 indices=i32/1x1x4x3 dx=f32/1x1x8x9 window=2,3", 1, { QN_FLOATS_ANY, 0, 0, 72 } },
    { "cross_entropy x=f32/4x10x2 labels=i32/4x1x2 axis=1", 1, { QN_FLOATS_ANY, 0, 0, 10 } },
    { "ctc_loss x=f32/12x2x5 labels=i32/2x3 x_lengths=i32/2 label_lengths=i64/2", 1, { QN_FLOATS_ANY, 0, 1, 4 } },
    { "ctc_loss x=f32/12x2x5 labels=i32/2x3 x_lengths=i32/2 label_lengths=i64/2", 2, { QN_FLOATS_ANY, 0, 12, 1 } },
    { "ctc_loss x=f32/12x2x5 labels=i32/2x3 x_lengths=i32/2 label_lengths=i64/2", 3, { QN_FLOATS_ANY, 0, 3, 1 } },
    { "attention_forward q=f32/1x2x40x4 k=f32/9x2x8x4 value_size=4 q_starts=i32/5 pages=i32/4x3 kv_lengths=i32/4", 2,
      { QN_FLOATS_ANY, 0, INT32_MAX, 1 } },
    { "attention_forward q=f32/1x2x40x4 k=f32/9x2x8x4 value_size=4 q_starts=i32/5 pages=i32/4x3 kv_lengths=i32/4", 3,
      { QN_FLOATS_ANY, 1, 0, 41 } },
    { "attention_forward q=f32/1x2x40x4 k=f32/9x2x8x4 value_size=4 q_starts=i32/5 pages=i32/4x3 kv_lengths=i32/4", 4,
      { QN_FLOATS_ANY, 0, 0, 9 } },
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    qn_graph *g;
    qn_domain d = { -1, -1, -1, -1 };
    if (!qn_graph_parse(table[i].line, &g)) qn_input_domain(qn_graph_inspect(g), qn_graph_inspect(g)->pointer[table[i].input], &d);
    if (!tap_ok(!memcmp(&d, &table[i].is, sizeof d), "input %d of %s", table[i].input, table[i].line))
      tap_note("%d, %lld on %lld; %s", d.floats, (long long)d.range, (long long)d.from, qn_last_error());
    qn_graph_destroy(g);
  }
}

int main(void)
{
  test_found();
  test_refused();
  test_attributes();
  test_given_dims();
  test_bad_data();
  test_domains();
  test_infer();
  test_sizes();
  return tap_done();
}
