/* cnn_digits_graphs.h -- the network of cnn_digits.c as graphs, one op per line.
 *
 * The caller provides memory for `in` and `out` lines; a tensor has the same name in all graphs (NAME_ is the new value that replaces
 * NAME). $N is the batch, $C1 and $C2 the channels, $F the features after the last pool, $P the parameters, $L the layout,
 * $T the activations' dtype: f32, or with --amp f16 or bf16. Of several ranks $N is one's batch, $R their number, $S = $P / $R, $Q the
 * gradients of the last layer. Lines that begin with + apply only with --norm, with - only without; with ~ only with --amp, with ! only
 * without; with * only where ranks share gradients, with / only elsewhere. */

static const char picture_text[] =
  "in image  f32/$Nx1x8x8\n"
  "in down   f32/1x1x32x8\n"            /* bilinear resampling is a matrix on either side, */
  "in across f32/1x1x8x32/t\n"          /* the right one transposed by its strides */
  "in colour f32/1x3x1x1\n"
  "tall   = matmul a=down b=image\n"
  "grey   = matmul a=tall b=across\n"
  "out x  = mul a=grey b=colour y=$T/$Nx3x32x32/$L\n";

/* The network's inputs, in training and inference. */
#define NETWORK_INPUTS \
  "in x      $T/$Nx3x32x32/$L\n" \
  "in w1     $T/$C1x3x3x3/$L\n" \
  "-in b1    f32/$C1\n" \
  "+in b1    f32/1x$C1x1x1\n" \
  "+in s1    f32/1x$C1x1x1\n" \
  "+in mean1 f32/1x$C1x1x1\n" \
  "+in var1  f32/1x$C1x1x1\n" \
  "in w2     $T/$C2x$C1x3x3/$L\n" \
  "-in b2    f32/$C2\n" \
  "+in b2    f32/1x$C2x1x1\n" \
  "+in s2    f32/1x$C2x1x1\n" \
  "+in mean2 f32/1x$C2x1x1\n" \
  "+in var2  f32/1x$C2x1x1\n"

static const char forward_text[] =
  NETWORK_INPUTS
  "-n1    = conv_forward x=x w=w1 bias=b1 pad=1\n"
  "+z1    = conv_forward x=x w=w1 pad=1\n"
  "+n1    = batch_norm x=z1 scale=s1 shift=b1 running_mean=mean1 running_var=var1 mean=m1 rstd=r1 new_mean=mean1_ new_var=var1_\n"
  "out a1 = relu x=n1\n"
  "out p1 = pool_max x=a1 window=2\n"
  "-n2    = conv_forward x=p1 w=w2 bias=b2 pad=1\n"
  "+z2    = conv_forward x=p1 w=w2 pad=1\n"
  "+n2    = batch_norm x=z2 scale=s2 shift=b2 running_mean=mean2 running_var=var2 mean=m2 rstd=r2 new_mean=mean2_ new_var=var2_\n"
  "out a2 = relu x=n2\n"
  "out p2 = pool_max x=a2 window=2\n"
  "+out z1\n"
  "+out m1\n"
  "+out r1\n"
  "+out mean1_ over mean1\n"
  "+out var1_ over var1\n"
  "+out z2\n"
  "+out m2\n"
  "+out r2\n"
  "+out mean2_ over mean2\n"
  "+out var2_ over var2\n";

/* As forward, with the statistics kept from training; then the index of the largest of the ten scores. f is p2's memory as a matrix: a
 * reshape is just another declaration in another graph. */
static const char look_text[] =
  NETWORK_INPUTS
  "-n1    = conv_forward x=x w=w1 bias=b1 pad=1\n"
  "+z1    = conv_forward x=x w=w1 pad=1\n"
  "+n1    = batch_norm_inference x=z1 mean=mean1 var=var1 scale=s1 shift=b1\n"
  "a1     = relu x=n1\n"
  "p1     = pool_max x=a1 window=2\n"
  "-n2    = conv_forward x=p1 w=w2 bias=b2 pad=1\n"
  "+z2    = conv_forward x=p1 w=w2 pad=1\n"
  "+n2    = batch_norm_inference x=z2 mean=mean2 var=var2 scale=s2 shift=b2\n"
  "a2     = relu x=n2\n"
  "out p2 = pool_max x=a2 window=2\n";
static const char classify_text[] =
  "in f      $T/$Nx$F\n"
  "in w3     $T/$Fx10\n"
  "in b3     f32/10\n"
  "scores  = matmul a=f b=w3 bias=b3 y=f32/$Nx10\n"
  "out guess = argmax x=scores axis=1 y=i32/$Nx1\n";

/* total sums the loss over the steps of an epoch. The gradients are those of loss_scale times the loss, so that small ones
 * are not lost in f16; in f32 it is 1. */
static const char loss_text[] =
  "in f      $T/$Nx$F\n"
  "in f_t    $T/$Fx$N/t\n"
  "in w3     $T/$Fx10\n"
  "in w3_t   $T/10x$F/t\n"
  "in b3     f32/10\n"
  "in label  i32/$Nx1\n"
  "in total  f32/1x1\n"
  "in loss_scale f32/1x1\n"
  "scores  = matmul a=f b=w3 bias=b3 y=f32/$Nx10\n"
  "loss    = cross_entropy x=scores labels=label reduction=mean lse=lse count=count\n"
  "out total_ over total = add a=total b=loss\n"
  "dscores = cross_entropy_backward dy=loss_scale x=scores labels=label lse=lse count=count reduction=mean dx=$T/$Nx10\n"
  "out dw3 = matmul a=f_t b=dscores y=f32/$Fx10\n"
  "out db3 = reduce_sum x=dscores axis=0 y=f32/1x10\n"
  "out df  = matmul a=dscores b=w3_t\n";

/* relu_backward tests where its input was positive, which is where its output is.
 *
 * Of several ranks each has the gradients of its own digits, and the mean over ranks is the gradient of all. They go in three buckets, each
 * as soon as it is complete; on a GPU the plan computes the gradients of earlier layers meanwhile, on another stream. */
static const char backward_text[] =
  "in x      $T/$Nx3x32x32/$L\n"
  "in a1     $T/$Nx$C1x32x32/$L\n"
  "in p1     $T/$Nx$C1x16x16/$L\n"
  "in a2     $T/$Nx$C2x16x16/$L\n"
  "in dp2    $T/$Nx$C2x8x8/$L\n"
  "in w2     $T/$C2x$C1x3x3/$L\n"
  "*in g_late f32/$Q\n"
  "+in z1    $T/$Nx$C1x32x32/$L\n"
  "+in s1    f32/1x$C1x1x1\n"
  "+in m1    f32/1x$C1x1x1\n"
  "+in r1    f32/1x$C1x1x1\n"
  "+in z2    $T/$Nx$C2x16x16/$L\n"
  "+in s2    f32/1x$C2x1x1\n"
  "+in m2    f32/1x$C2x1x1\n"
  "+in r2    f32/1x$C2x1x1\n"
  "*out g_late_ over g_late = all_reduce x=g_late reduction=avg\n"
  "da2     = pool_max_backward dy=dp2 x=a2 window=2\n"
  "-dz2    = relu_backward dy=da2 x=a2\n"
  "-db2    = reduce_sum x=dz2 axis=0,2,3 y=f32/1x$C2x1x1\n"
  "+dn2    = relu_backward dy=da2 x=a2\n"
  "+dz2    = batch_norm_backward dy=dn2 x=z2 scale=s2 mean=m2 rstd=r2 dscale=ds2 dshift=db2\n"
  "dw2     = conv_backward_filter x=p1 dy=dz2 pad=1 dw=f32/$C2x$C1x3x3/$L\n"
  "*[dw2_,db2_] = all_reduce x=[dw2,db2] reduction=avg\n"
  "dp1     = conv_backward_data dy=dz2 w=w2 pad=1 dx=$T/$Nx$C1x16x16/$L\n"
  "da1     = pool_max_backward dy=dp1 x=a1 window=2\n"
  "-dz1    = relu_backward dy=da1 x=a1\n"
  "-db1    = reduce_sum x=dz1 axis=0,2,3 y=f32/1x$C1x1x1\n"
  "+dn1    = relu_backward dy=da1 x=a1\n"
  "+dz1    = batch_norm_backward dy=dn1 x=z1 scale=s1 mean=m1 rstd=r1 dscale=ds1 dshift=db1\n"
  "dw1     = conv_backward_filter x=x dy=dz1 pad=1 dw=f32/$C1x3x3x3/$L\n"
  "*[dw1_,db1_] = all_reduce x=[dw1,db1] reduction=avg\n"
  "*out dw1_\n"
  "*out db1_\n"
  "*out dw2_\n"
  "*out db2_\n"
  "/out dw1\n"
  "/out db1\n"
  "/out dw2\n"
  "/out db2\n"
  "+out ds1\n"
  "+out ds2\n";

/* With --shard each rank keeps and updates a share of the parameters, and of Adam's state, only: a reduced share of the gradients in, all
 * parameters out. */
static const char shard_text[] =
  "in g f32/$P\n"
  "in share f32/$S\n"
  "in m f32/$S\n"
  "in v f32/$S\n"
  "in steps i64\n"
  "in rate f32\n"
  "gs = reduce_scatter x=g ranks=$R reduction=avg\n"
  "steps_ = adam params=[share] grads=[gs] m=[m] v=[v] step=steps rate=rate new_params=[share_] new_m=[m_] new_v=[v_]\n"
  "out p = all_gather x=share_ ranks=$R\n"
  "out steps_ over steps\n"
  "out share_ over share\n"
  "out m_ over m\n"
  "out v_ over v\n";

/* Adam on all parameters, state in place: they are contiguous, so its lists have one vector each. With --amp the
 * gradients are checked first; a step that found an overflow changes nothing, and the loss scale is halved, all on the device.
 * low: the parameters in the activations' dtype, for the next forward pass. */
static const char update_text[] =
  "in p f32/$P\n"
  "in g f32/$P\n"
  "in m f32/$P\n"
  "in v f32/$P\n"
  "in steps i64\n"
  "in rate f32\n"
  "~in scale f32\n"
  "~in good i64\n"
  "~found = amp_unscale grads=[g] scale=scale\n"
  "!steps_ = adam params=[p] grads=[g] m=[m] v=[v] step=steps rate=rate new_params=[p_] new_m=[m_] new_v=[v_]\n"
  "~steps_ = adam params=[p] grads=[g] m=[m] v=[v] step=steps rate=rate scale=scale found=found new_params=[p_] new_m=[m_] new_v=[v_] copy=[low:$T/$P]\n"
  "~out scale_ over scale = amp_update scale=scale good=good found=found interval=200 new_good=good_\n"
  "~out good_ over good\n"
  "~out low\n"
  "out steps_ over steps\n"
  "out p_ over p\n"
  "out m_ over m\n"
  "out v_ over v\n";
