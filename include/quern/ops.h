/* ops.h -- the ops, one typed call for each; a chapter of quern.h, which includes it.
 *
 * Every call: (ctx, [attributes], inputs in the order of their roles, outputs). Attributes may be NULL for the defaults, and so may the
 * tensors that `quern-info ops` marks with "?": a product's c, bias, alpha, beta; scale, shift, kept statistics, indices, masks, offset...
 * Outputs' dims must be given and right (a refusal says what they should be). Work is enqueued on ctx's stream, which no call waits for.
 *
 * Arithmetic: f16 and bf16 are computed and summed in f32, f32 in f32, f64 in f64, i8 and u8 products in i32 exactly, and
 * rounded once, to nearest even, to the output. Integer arithmetic wraps. A zero dim makes an op a no-op. Attributes that are real
 * numbers are meant to be in the range of that arithmetic: beside f32 one of 1e39 may count as Inf, an eps of 1e-50 as 0.
 *
 * Each prototype is compiled against the schema (core/ops.def): where they differ the build fails. */
#ifndef QUERN_OPS_H
#define QUERN_OPS_H
#include <math.h>
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- contractions ------------------------------------------------------------------------- */

/* y = alpha a b + beta c + bias
 *
 * a [..., M, K]   b [..., K, N]   c [..., M, N]   bias [N]   y [..., M, N]
 * The leading dims of a and b are equal or 1 (broadcast); a transpose is a view (qn_transposed) and costs nothing.
 * alpha, beta: scalars, absent: alpha 1, beta 1 if c is given. beta wants c. c may be y's own memory.
 * dtypes: a and b alike, f64 f32 f16 bf16; y and c the same, or f32 where a is f16 or bf16.
 *         e4m3 and e5m2 in any mixture, y and c f32, f16 or bf16. i8 and u8 in any mixture: y, c and bias i32, no alpha or beta.
 *         bias: y's dtype or f32.
 * Traps: alpha 0 never reads a or b, beta 0 never reads c, K 0 writes beta c + bias. */
qn_status qn_matmul(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *c,
                    const qn_tensor *bias, const qn_tensor *alpha, const qn_tensor *beta, const qn_tensor *y);

/* Geometry of a convolution; entries beyond the tensor's spatial dims (1 to 3) are ignored. */
typedef struct qn_conv {
  uint64_t struct_size;
  int64_t  stride[3];                 /* >= 1 */
  int64_t  dilation[3];               /* >= 1; 1: taps side by side */
  int64_t  pad_before[3], pad_after[3];   /* >= 0, zeros around x */
  int64_t  groups;                    /* divides C and K; groups = C is depthwise */
} qn_conv;
#define QN_CONV_INIT { sizeof(qn_conv), {1,1,1}, {1,1,1}, {0,0,0}, {0,0,0}, 1 }

/* Cross-correlation (the filter is not flipped), 1 to 3 spatial dims:
 *   y[n,k,p] = sum_{c,r} w[k,c,r] x[n, g(k) C/groups + c, p stride + r dilation - pad_before] + bias[k]
 *
 * x [N, C, spatial]   w [K, C/groups, taps]   bias [K]   y [N, K, P]
 * P = (X + pad_before + pad_after - dilation (R-1) - 1) / stride + 1, at least 0
 * dtypes: as matmul's, x and w in the place of a and b.
 * Trap: an engine leaves a tap in the padding out, or multiplies 0 by the filter's element, which makes y NaN where that is NaN or Inf.
 * So in the gradients: dx may be NaN by a term beyond dy, dw by one in x's padding. */
qn_status qn_conv_forward(qn_context *ctx, const qn_conv *conv, const qn_tensor *x, const qn_tensor *w,
                          const qn_tensor *bias, const qn_tensor *y);
/* dx = the gradient of sum(dy conv_forward(x, w)) by x.   dy [N, K, P]   w [K, C/groups, taps]   dx [N, C, spatial]
 * dx's dims choose among those that give dy's P (what others call output padding). dtypes: as the forward's, dx in the place of y. */
qn_status qn_conv_backward_data(qn_context *ctx, const qn_conv *conv, const qn_tensor *dy, const qn_tensor *w,
                                const qn_tensor *dx);
/* dw = the gradient of sum(dy conv_forward(x, w)) by w.   x [N, C, spatial]   dy [N, K, P]   dw [K, C/groups, taps]
 * The gradient by bias is qn_reduce_sum of dy over all dims but 1. dtypes: as the forward's, dw in the place of y. */
qn_status qn_conv_backward_filter(qn_context *ctx, const qn_conv *conv, const qn_tensor *x, const qn_tensor *dy,
                                  const qn_tensor *dw);

/* ---- softmax ------------------------------------------------------------------------------ */

typedef struct qn_axis {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
} qn_axis;
#define QN_AXIS_INIT { sizeof(qn_axis), -1 }

/* Along `axis`, any rank >= 1, all tensors of one shape; dtypes f64 f32 f16 bf16, mixed as pointwise's.
 *   softmax:      y = exp(x - m) / s        m = max x,  s = sum exp(x - m)        dx = y (dy - sum y dy)
 *   log_softmax:  y = x - m - ln s                                                dx = dy - exp(y) sum dy
 * A row with NaN or +Inf, and one all -Inf, is NaN throughout. Backward takes the forward's y. */
qn_status qn_softmax(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *y);
qn_status qn_softmax_backward(qn_context *ctx, const qn_axis *axis, const qn_tensor *y, const qn_tensor *dy,
                              const qn_tensor *dx);
qn_status qn_log_softmax(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *y);
qn_status qn_log_softmax_backward(qn_context *ctx, const qn_axis *axis, const qn_tensor *y, const qn_tensor *dy,
                                  const qn_tensor *dx);

/* ---- normalization ------------------------------------------------------------------------ */

typedef struct qn_norm {
  uint64_t struct_size;
  uint64_t mask;                      /* bit i: dim i is normalized over; 0: layer and rms the last, batch all but dim 1 */
  double   eps;                       /* >= 0, added to the variance */
  double   momentum;                  /* batch_norm: the weight of this batch in the running statistics, 0 to 1 */
} qn_norm;
#define QN_NORM_INIT { sizeof(qn_norm), 0, 1e-5, 0.1 }

/* Over the n elements of x that share their place in the dims not normalized over:
 *   mean = sum x / n      var = sum (x - mean)^2 / n, never as a difference of squares      rstd = 1 / sqrt(var + eps)
 *   layer_norm, batch_norm:  y = (x - mean) rstd scale + shift
 *   rms_norm:                y = x rstd scale,  rstd = 1 / sqrt(sum x^2 / n + eps)
 *
 * x, y [dims]   scale, shift [dims, any of them 1]   mean, rstd [dims, those normalized over being 1]
 * dtypes: x and y f32 f16 bf16 in any mixture, scale and shift too, statistics f32; or all f64.
 * Instance norm is layer_norm over the spatial dims; group norm is it over a view of x as [N, G, C/G, spatial].
 * Over nothing mean and rstd are NaN. (Ba, Kiros, Hinton 2016; Zhang, Sennrich 2019; Ioffe, Szegedy 2015; Wu, He 2018.) */
qn_status qn_layer_norm(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *scale,
                        const qn_tensor *shift, const qn_tensor *y, const qn_tensor *mean, const qn_tensor *rstd);
/* With h = (x - mean) rstd, g = dy scale:   dx = rstd (g - mean g - h mean(g h))
 *   dscale = sum dy h, dshift = sum dy, each summed along the dims where it has 1 and x has more. dscale has scale's dims. */
qn_status qn_layer_norm_backward(qn_context *ctx, const qn_norm *norm, const qn_tensor *dy, const qn_tensor *x,
                                 const qn_tensor *scale, const qn_tensor *mean, const qn_tensor *rstd,
                                 const qn_tensor *dx, const qn_tensor *dscale, const qn_tensor *dshift);
qn_status qn_rms_norm(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *scale,
                      const qn_tensor *y, const qn_tensor *rstd);
/* With h = x rstd, g = dy scale:   dx = rstd (g - h mean(g h))   dscale = sum dy h */
qn_status qn_rms_norm_backward(qn_context *ctx, const qn_norm *norm, const qn_tensor *dy, const qn_tensor *x,
                               const qn_tensor *scale, const qn_tensor *rstd, const qn_tensor *dx, const qn_tensor *dscale);
/* In training: statistics of this batch. Spatial by default; per activation with mask 1.
 *   new_mean = (1 - momentum) running_mean + momentum mean      new_var likewise with n / (n - 1) var (n = 1: var)
 * new_mean and new_var may take running_mean's and running_var's memory; each wants its counterpart. */
qn_status qn_batch_norm(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *scale,
                        const qn_tensor *shift, const qn_tensor *running_mean, const qn_tensor *running_var,
                        const qn_tensor *y, const qn_tensor *mean, const qn_tensor *rstd, const qn_tensor *new_mean,
                        const qn_tensor *new_var);
qn_status qn_batch_norm_backward(qn_context *ctx, const qn_norm *norm, const qn_tensor *dy, const qn_tensor *x,
                                 const qn_tensor *scale, const qn_tensor *mean, const qn_tensor *rstd,
                                 const qn_tensor *dx, const qn_tensor *dscale, const qn_tensor *dshift);
/* With statistics that are given: y = (x - mean) / sqrt(var + eps) scale + shift */
qn_status qn_batch_norm_inference(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *mean,
                                  const qn_tensor *var, const qn_tensor *scale, const qn_tensor *shift, const qn_tensor *y);

/* ---- normalization by neighbours ---------------------------------------------------------- */

typedef struct qn_local_norm {
  uint64_t struct_size;
  int64_t  size;                      /* of the window, >= 1, in each dim that it covers */
  double   alpha, beta, k;            /* finite, >= 0 */
  int64_t  region;                    /* QN_LOCAL_... */
} qn_local_norm;
#define QN_LOCAL_NORM_INIT { sizeof(qn_local_norm), 5, 1e-4, 0.75, 1, 0 }
enum { QN_LOCAL_ACROSS = 0, QN_LOCAL_WITHIN = 1 };
/* x [N, C, X], y and means alike, 0 to 3 spatial dims (within: 1 to 3), f64 f32 f16 bf16, all of one dtype. Local response
 * normalization, and with means (NULL: m is 0) divisive normalization:
 *   y = x b^-beta      b = k + alpha/n s      s = the sum of (x - m)^2 over the window around y's place, m the mean there
 *   dx = dy b^-beta - 2 alpha beta/n t        t = the sum of r (x - m) over the places whose windows hold dx's; r and m are theirs
 *   dmeans = 2 alpha beta/n r d (or NULL)     d = the sum of x - m over the window; r = dy x b^-(beta+1)
 * across: the window covers `size` channels and n = size. within: `size` places in each spatial dim of the channel, and n is their
 * product. It begins floor((size - 1)/2) before the place, so an even one reaches further ahead, as cuDNN's and ONNX's do (PyTorch's
 * reaches further back). What of it lies outside x adds nothing to s and still counts in n. Traps: cuDNN's default k is 2; in
 * AlexNet's paper alpha is not divided by n. (Krizhevsky, Sutskever, Hinton 2012; within: Caffe's.)
 *
 * cudnnDivisiveNormalization is region=within, its n, alpha, beta, K are size, alpha, beta, k, and its n to the power of the spatial
 * dims is n here. Traps: x is divided, not x - m; local contrast normalization subtracts averages first (pool_average, sub) and
 * divides what is left. means need be none: any values, such as another kernel's. The gradients take them as independent of x:
 * where they are made of x, what dmeans gives by way of that is to be added to dx. Means for all channels have stride 0 in C.
 * (Jarrett, Kavukcuoglu, Ranzato, LeCun 2009: there the weights are a Gaussian's, and the divisor is the larger of the deviation and a
 * constant.) */
qn_status qn_lrn(qn_context *ctx, const qn_local_norm *norm, const qn_tensor *x, const qn_tensor *means, const qn_tensor *y);
qn_status qn_lrn_backward(qn_context *ctx, const qn_local_norm *norm, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *means,
                          const qn_tensor *dx, const qn_tensor *dmeans);

/* ---- losses ------------------------------------------------------------------------------- */

enum { QN_REDUCTION_NONE = 0, QN_REDUCTION_MEAN = 1, QN_REDUCTION_SUM = 2 };
typedef struct qn_entropy {
  uint64_t struct_size;
  int64_t  axis;                      /* of classes; -1: the last */
  int64_t  ignore;                    /* the label of rows that do not count */
  double   smoothing;                 /* 0 to 1: how much of a label is spread over all classes */
  int64_t  reduction;                 /* QN_REDUCTION_...: a loss for each row, their mean over the rows that count, their sum */
} qn_entropy;
#define QN_ENTROPY_INIT { sizeof(qn_entropy), -1, -100, 0, QN_REDUCTION_NONE }

/* From logits x, a row of C along `axis`, and its label:
 *   lse = ln sum exp x      loss = lse - (1 - smoothing) x[label] - smoothing mean x
 * x [dims]   labels i32 or i64, lse [dims, the axis being 1]   loss [as labels; reduced: all dims 1]   count [all dims 1]
 * dtypes: x f32 f16 bf16, the results f32; or all f64. count: how many rows count; the backward of a mean wants it.
 * A row whose label is `ignore` has loss 0 and lse 0, and is not read. Any other label that is no class reads x as 0 there.
 * A row with NaN or +Inf has lse NaN, one all -Inf -Inf. The mean over no row is NaN. (Label smoothing: Szegedy and others 2016.) */
qn_status qn_cross_entropy(qn_context *ctx, const qn_entropy *entropy, const qn_tensor *x, const qn_tensor *labels,
                           const qn_tensor *loss, const qn_tensor *lse, const qn_tensor *count);
/* dx = g (exp(x - lse) - (1 - smoothing) [class = label] - smoothing / C), g = dy, of a mean dy / count; 0 in ignored rows.
 * dy has loss's dims. */
qn_status qn_cross_entropy_backward(qn_context *ctx, const qn_entropy *entropy, const qn_tensor *dy, const qn_tensor *x,
                                    const qn_tensor *labels, const qn_tensor *lse, const qn_tensor *count, const qn_tensor *dx);

typedef struct qn_ctc {
  uint64_t struct_size;
  int64_t  blank;                     /* the class that spells nothing */
  int64_t  zero_infinity;             /* 1: a sample that no path spells has loss 0 */
  int64_t  reduction;                 /* QN_REDUCTION_...: a loss for each sample, their mean over all N, their sum */
} qn_ctc;
#define QN_CTC_INIT { sizeof(qn_ctc), 0, 0, QN_REDUCTION_NONE }

/* Connectionist temporal classification. A path picks a class in every frame; it spells what is left of it when runs of a class
 * are made one and blanks are taken out. From logits x, with p = exp(x - lse):
 *   lse = ln sum exp x over the classes of a frame      loss = -ln sum over the paths that spell labels of the product of their p
 * x [T, N, C]: frames, samples, classes   labels i32 or i64 [N, S]   x_lengths, label_lengths i32 or i64 [N]
 * lse [T, N, 1]   loss [N], reduced [1]      [N, T, C] is a view with strides. Logarithms of probabilities are logits too.
 * dtypes: x f32 f16 bf16, the results f32; or all f64.
 * Sample n has its first x_lengths[n] frames and its first label_lengths[n] labels; what lies beyond is not read, and lse is 0
 * there. A length below 0 is 0, one beyond T or S is T or S. A label that is no class reads x as 0. No path spells blank.
 * A sample that no path spells (one with fewer frames than labels and repeats, say) has loss +Inf, or 0 with zero_infinity.
 * NaN, +Inf, or nothing but -Inf in a frame makes its sample's loss NaN.
 * Trap: the mean is not weighed by lengths; some divide each loss by its label's length first.
 * (Graves, Fernandez, Gomez, Schmidhuber 2006.) */
qn_status qn_ctc_loss(qn_context *ctx, const qn_ctc *ctc, const qn_tensor *x, const qn_tensor *labels, const qn_tensor *x_lengths,
                      const qn_tensor *label_lengths, const qn_tensor *loss, const qn_tensor *lse);
/* dx = g (exp(x - lse) - P(class)), g = dy, of a mean dy / N; P(c): the share, in the sum over paths, of those with c in this frame.
 * 0 beyond a sample's frames and in a sample that no path spells. lse is all that the forward leaves: the gradient sums over the paths
 * anew, in a workspace of about 12 N T (S + 1) bytes for f32. dy has loss's dims. */
qn_status qn_ctc_loss_backward(qn_context *ctx, const qn_ctc *ctc, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *labels,
                               const qn_tensor *x_lengths, const qn_tensor *label_lengths, const qn_tensor *lse, const qn_tensor *dx);

/* ---- steps of training -------------------------------------------------------------------- */

/* A list role is a pointer to n tensors; lists of one call have one length, and their i-th tensors the same dims. One launch does
 * all of a list. Scalars that are on the device are read when the work runs, so that a recorded step moves on by itself.
 *
 * Of sgd, adam and adamw:
 *   params, grads   f32 f16 bf16 in any mixture, or all f64        velocity, m, v   f32 (f64)
 *   step            i64: steps taken before; new_step = t = step + 1 below; the largest i64 stays
 *   rate            the step size
 *   scale           g = grads / scale: a loss scale, or global_norm's divisor; absent: 1
 *   found           not 0: every output is its input, and no gradient is read into it
 *   new_...         may take its input's memory, tensor by tensor       copy   new_params, rounded to another dtype: the weights
 *                   that the next forward pass reads */
typedef struct qn_sgd_rule {
  uint64_t struct_size;
  double   momentum;                  /* 0: no velocity is kept */
  int64_t  nesterov;                  /* 1: params -= rate (g + momentum new_velocity) */
  double   decay;                     /* added to g, times params */
} qn_sgd_rule;
#define QN_SGD_INIT { sizeof(qn_sgd_rule), 0, 0, 0 }
/* g = grads / scale + decay params      new_velocity = momentum velocity + g      new_params = params - rate new_velocity
 * Without momentum velocity and new_velocity are absent, and params move by rate g. */
qn_status qn_sgd(qn_context *ctx, const qn_sgd_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                      int64_t n_grads, const qn_tensor *velocity, int64_t n_velocity, const qn_tensor *step,
                      const qn_tensor *rate, const qn_tensor *scale, const qn_tensor *found, const qn_tensor *new_step,
                      const qn_tensor *new_params, int64_t n_new_params, const qn_tensor *new_velocity,
                      int64_t n_new_velocity, const qn_tensor *copy, int64_t n_copy);
typedef struct qn_adam_rule {
  uint64_t struct_size;
  double   beta1, beta2;              /* 0 to 1, not 1 */
  double   eps;                       /* >= 0 */
  double   decay;
} qn_adam_rule;
#define QN_ADAM_INIT { sizeof(qn_adam_rule), 0.9, 0.999, 1e-8, 0 }
/* new_m = beta1 m + (1 - beta1) g      new_v = beta2 v + (1 - beta2) g^2
 * new_params = params - rate (new_m / (1 - beta1^t)) / (sqrt(new_v / (1 - beta2^t)) + eps)
 * adam: g = grads / scale + decay params. adamw: g = grads / scale, and rate decay params is taken off too.
 * (Kingma, Ba 2015; Loshchilov, Hutter 2019.) */
qn_status qn_adam(qn_context *ctx, const qn_adam_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                       int64_t n_grads, const qn_tensor *m, int64_t n_m, const qn_tensor *v, int64_t n_v, const qn_tensor *step,
                       const qn_tensor *rate, const qn_tensor *scale, const qn_tensor *found, const qn_tensor *new_step,
                       const qn_tensor *new_params, int64_t n_new_params, const qn_tensor *new_m, int64_t n_new_m,
                       const qn_tensor *new_v, int64_t n_new_v, const qn_tensor *copy, int64_t n_copy);
qn_status qn_adamw(qn_context *ctx, const qn_adam_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                        int64_t n_grads, const qn_tensor *m, int64_t n_m, const qn_tensor *v, int64_t n_v, const qn_tensor *step,
                        const qn_tensor *rate, const qn_tensor *scale, const qn_tensor *found, const qn_tensor *new_step,
                        const qn_tensor *new_params, int64_t n_new_params, const qn_tensor *new_m, int64_t n_new_m,
                        const qn_tensor *new_v, int64_t n_new_v, const qn_tensor *copy, int64_t n_copy);

typedef struct qn_norm_limit {
  uint64_t struct_size;
  double   limit;                     /* > 0 */
} qn_norm_limit;
#define QN_NORM_LIMIT_INIT { sizeof(qn_norm_limit), INFINITY }
/* norm = sqrt(sum of the squares of all elements of all x) / scale      divisor = scale max(1, norm / limit)
 * norm, divisor: rank 0, f32 (of f64: f64). A step that takes divisor as its scale is clipped by the global norm, and unscaled,
 * without a pass of its own over the gradients. */
qn_status qn_global_norm(qn_context *ctx, const qn_norm_limit *limit, const qn_tensor *x, int64_t n_x, const qn_tensor *scale,
                         const qn_tensor *norm, const qn_tensor *divisor);

/* new_grads = grads / scale, f32 f16 bf16 as grads, or none: found alone. found: rank 0, f32 (f64): 1 where any element of grads
 * is infinite or NaN, else 0. */
qn_status qn_amp_unscale(qn_context *ctx, const qn_tensor *grads, int64_t n_grads, const qn_tensor *scale, const qn_tensor *found,
                         const qn_tensor *new_grads, int64_t n_new_grads);
typedef struct qn_loss_scaling {
  uint64_t struct_size;
  double   growth, backoff;           /* > 0, finite */
  int64_t  interval;                  /* >= 1: good steps before the scale grows */
} qn_loss_scaling;
#define QN_LOSS_SCALING_INIT { sizeof(qn_loss_scaling), 2, 0.5, 2000 }
/* found is 0: good + 1, and when that is `interval`, growth scale (unless that is infinite) and 0. Else: backoff scale and 0.
 * scale and found f32 or f64, good i64, all of rank 0 and on the device. (Micikevicius and others 2018.) */
qn_status qn_amp_update(qn_context *ctx, const qn_loss_scaling *scaling, const qn_tensor *scale, const qn_tensor *good,
                        const qn_tensor *found, const qn_tensor *new_scale, const qn_tensor *new_good);

/* ---- random numbers and dropout ----------------------------------------------------------- */

typedef struct qn_uniform {
  uint64_t struct_size;
  double   min, max;                  /* finite, min <= max */
} qn_uniform;
#define QN_UNIFORM_INIT { sizeof(qn_uniform), 0, 1 }
typedef struct qn_gauss {
  uint64_t struct_size;
  double   mean, deviation;           /* finite, deviation >= 0 */
} qn_gauss;
#define QN_GAUSS_INIT { sizeof(qn_gauss), 0, 1 }
typedef struct qn_chance {
  uint64_t struct_size;
  double   p;                         /* 0 to 1: of a one; of dropping */
} qn_chance;
#define QN_CHANCE_INIT { sizeof(qn_chance), 0.5 }

/* Element i, counted row-major whatever the strides, has word i % 4 of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011) with
 *   key = seed      counter = (i / 4, offset)      each 64 bits, the low 32 first
 * on every backend. seed, offset: i64 scalars; offset absent: 0. Those on the device are read when the work runs, so a recording
 * that also adds 1 to its offset draws other numbers at each replay. Two calls with one seed and other offsets never share a word.
 * y's dims and dtype must be given.
 *
 * rng_uniform:    y = min + (max - min) u, u the word's upper 24 bits / 2^24, rounded once from f64: f64 f32 f16 bf16, the same
 *                 bits everywhere. Trap: rounding may give max, which 1 in 2^12 elements is in f16, 1 in 2^9 in bf16.
 * rng_normal:     y = mean + deviation r (cos t, sin t) for elements 2k, 2k + 1, by Box and Muller: with v and u of their words,
 *                 r = sqrt(-2 ln(v + 2^-24)), t = 2 pi u; |r| <= 5.77. Last bits differ between backends. f64 f32 f16 bf16.
 * rng_bernoulli:  y = word < 2^32 p: any dtype, the same bits everywhere. */
qn_status qn_rng_uniform(qn_context *ctx, const qn_uniform *uniform, const qn_tensor *seed, const qn_tensor *offset,
                         const qn_tensor *y);
qn_status qn_rng_normal(qn_context *ctx, const qn_gauss *gauss, const qn_tensor *seed, const qn_tensor *offset,
                        const qn_tensor *y);
qn_status qn_rng_bernoulli(qn_context *ctx, const qn_chance *chance, const qn_tensor *seed, const qn_tensor *offset,
                           const qn_tensor *y);

/* y = 0 where the element's word < 2^32 p (a NaN too), else x / (1 - p)
 * x, y [dims], f32 f16 bf16 in any mixture or f64   mask [ceil(elements / 8)] u8: bit i % 8 of octet i / 8, the low one first, is 1
 * where element i was kept; bits beyond the last element are 0. */
qn_status qn_dropout(qn_context *ctx, const qn_chance *chance, const qn_tensor *x, const qn_tensor *seed,
                     const qn_tensor *offset, const qn_tensor *y, const qn_tensor *mask);
/* dx = 0 where y was 0 by chance, else dy / (1 - p). Wants the forward's mask, or its seed and offset to draw it again. */
qn_status qn_dropout_backward(qn_context *ctx, const qn_chance *chance, const qn_tensor *dy, const qn_tensor *mask,
                              const qn_tensor *seed, const qn_tensor *offset, const qn_tensor *dx);

/* ---- quantization ------------------------------------------------------------------------- */

/* How many neighbours share a scale, along each dim: 0 for all of them. Of x [R, K]: 0,0 is one scale for the tensor, 1,0 one for
 * each row, 0,1 one for each column, 1,32 one for each 32 of a row (the blocks of OCP's MX formats), 128,128 one for each tile.
 * scale, zero_point and amax have x's rank and dims ceil(x's / block), 1 where block is 0; in the last block fewer may share.
 * Where scale is given and block is 0, its dims tell: all of x's dim for 1, else x's / scale's, which must divide. One scale for
 * the tensor may also be a rank-0 tensor.
 *
 * Formats: i8 and u8 whole numbers, e4m3 and e5m2 of OCP's 8-bit floats (largest 448 and 57344). Every result is defined bit by
 * bit: the quotient or product is rounded to f32 (to f64 where x, or y, is f64), and that to the result, to nearest even.
 * Beyond the format's range, infinities included, y is its largest number (i8: -128 to 127). NaN stays NaN; among integers it
 * counts as 0, so that y is zero_point. There is no gradient by x but the caller's choice of one (usually dy); that of dequantize by x
 * is none. */
typedef struct qn_blocks {
  uint64_t struct_size;
  int64_t  block[8];                  /* >= 0 */
} qn_blocks;
#define QN_BLOCKS_INIT { sizeof(qn_blocks), {0,0,0,0,0,0,0,0} }

/* y = round(x / scale) + zero_point, saturated      amax = max |x| over what shares a scale
 * x f32 f16 bf16, scale any of these or e8m0, amax f32; or x, scale and amax f64, scale also e8m0. y i8 u8 e4m3 e5m2, its dtype must
 * be given. zero_point: y's dtype, i8 or u8 alone; absent: 0.
 * amax is what a delayed scale of the next step is made from: NaN if any is, 0 over nothing.
 * Traps: scale divides, it is not the factor by which some libraries multiply; a scale of 0 gives the largest or NaN.
 * (As ONNX's QuantizeLinear, but that zero_point is added before saturating for every dtype.) */
qn_status qn_quantize(qn_context *ctx, const qn_blocks *blocks, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *zero_point,
                      const qn_tensor *y, const qn_tensor *amax);
/* y = (x - zero_point) scale
 * x i8 u8 e4m3 e5m2, scale and y f32 f16 bf16 in any mixture or both f64; scale e8m0 beside any y. Default dtype of y: scale's, f32
 * beside e8m0. zero_point as above. */
qn_status qn_dequantize(qn_context *ctx, const qn_blocks *blocks, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *zero_point,
                        const qn_tensor *y);
/* As quantize, by scales that are made from x: in one pass where a block fits the machine's registers.
 *   scale f32 (of f64: f64)   amax / the largest y (448, 57344, i8: 127); 1 where that is 0
 *   scale e8m0                2^(floor(log2 amax) - emax), emax 8 of e4m3, 15 of e5m2, 6 of i8; at least 2^-127; NaN where amax is NaN
 *                             or infinite: with block 32 the conversion of OCP's Microscaling Formats (MX) 1.0, 6.3
 * y i8 e4m3 e5m2; scale f32 unless given. A block with NaN or an infinity dequantizes to NaN throughout.
 * Trap: i8 are whole numbers here; MXINT8 reads them as 64ths, by scales 64 times these. */
qn_status qn_quantize_dynamic(qn_context *ctx, const qn_blocks *blocks, const qn_tensor *x, const qn_tensor *y, const qn_tensor *scale,
                              const qn_tensor *amax);

/* ---- pooling ------------------------------------------------------------------------------ */

typedef struct qn_pool {
  uint64_t struct_size;
  int64_t  window[3];                 /* >= 1; 0: the whole extent (global pooling) */
  int64_t  stride[3];                 /* >= 1; 0: the window's */
  int64_t  dilation[3];               /* >= 1 */
  int64_t  pad_before[3], pad_after[3];   /* >= 0 */
  int64_t  ceil_mode;                 /* 1: P rounds up; a window never starts beyond the input plus left padding */
  int64_t  include_pad;               /* average: 1 counts the declared padding in the divisor, never the overhang */
  double   p;                         /* lp: the exponent, >= 1 */
} qn_pool;
#define QN_POOL_INIT { sizeof(qn_pool), {0,0,0}, {0,0,0}, {1,1,1}, {0,0,0}, {0,0,0}, 0, 1, 2.0 }

/* x [N, C, spatial]   y, indices [N, C, P], 1 to 3 spatial dims, P as a convolution's, f64 f32 f16 bf16, y of x's dtype, dx of dy's.
 * pool_max: NaN wins; ties go to the first in row-major order; a window wholly in padding gives -Inf.
 *   indices: u8 counts taps in the window, i32 and i64 places in x's spatial plane, both row-major; 255 and -1 where
 *   the window lies wholly in padding. u8 wants at most 255 taps.
 * pool_average: y = sum x / taps, those in padding counted or not by include_pad; a window wholly in padding gives 0.
 * pool_max_backward wants indices, or x to find them again; an index out of range adds nowhere. */
qn_status qn_pool_max(qn_context *ctx, const qn_pool *pool, const qn_tensor *x, const qn_tensor *y,
                      const qn_tensor *indices);
qn_status qn_pool_max_backward(qn_context *ctx, const qn_pool *pool, const qn_tensor *dy, const qn_tensor *indices,
                               const qn_tensor *x, const qn_tensor *dx);
qn_status qn_pool_average(qn_context *ctx, const qn_pool *pool, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pool_average_backward(qn_context *ctx, const qn_pool *pool, const qn_tensor *dy, const qn_tensor *dx);

/* pool_lp: y = (sum |x|^p)^(1/p) over the taps inside x, 0 where there is none; neither overflows nor underflows in between. NaN wins.
 * pool_lp_backward wants x and the forward's y: dx = the sum of dy sign(x) (|x|/y)^(p-1) over the windows that hold the place, where
 * a y of 0 adds 0. */
qn_status qn_pool_lp(qn_context *ctx, const qn_pool *pool, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pool_lp_backward(qn_context *ctx, const qn_pool *pool, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *y,
                              const qn_tensor *dx);

typedef struct qn_adaptive {
  uint64_t struct_size;
  int64_t  size[3];                   /* P, in each spatial dim; 0: as y (in a gradient dy) has it */
} qn_adaptive;
#define QN_ADAPTIVE_INIT { sizeof(qn_adaptive), {0,0,0} }
/* x [N, C, X]   y, indices [N, C, P], 1 to 3 spatial dims, f64 f32 f16 bf16, y of x's dtype. In each dim window i begins at
 * floor(i X / P) and ends before ceil((i + 1) X / P), so that the windows share out x whatever P is; neighbours may meet in one place.
 * Maxima as pool_max's, indices (i32, i64) are places in x's spatial plane; an index that is not in its window adds nowhere.
 * The gradients want dx given: X is not in dy. */
qn_status qn_pool_adaptive_max(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *x, const qn_tensor *y,
                               const qn_tensor *indices);
qn_status qn_pool_adaptive_max_backward(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *dy, const qn_tensor *indices,
                                        const qn_tensor *dx);
qn_status qn_pool_adaptive_average(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pool_adaptive_average_backward(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *dy, const qn_tensor *dx);

/* ---- resampling --------------------------------------------------------------------------- */

typedef struct qn_resampling {
  uint64_t struct_size;
  int64_t  size[3];                   /* P, in each spatial dim; 0: as y (in the gradient dy) has it */
  int64_t  mode;                      /* QN_RESAMPLE_... */
  int64_t  grid;                      /* QN_GRID_... */
} qn_resampling;
#define QN_RESAMPLING_INIT { sizeof(qn_resampling), {0,0,0}, 0, 0 }
enum { QN_RESAMPLE_NEAREST = 0, QN_RESAMPLE_LINEAR = 1, QN_RESAMPLE_CUBIC = 2 };
enum { QN_GRID_HALF_PIXEL = 0, QN_GRID_ALIGN_CORNERS = 1, QN_GRID_ASYMMETRIC = 2 };
/* x [N, C, X]   y [N, C, P], 1 to 3 spatial dims, f64 f32 f16 bf16, y of x's dtype. In each dim y's place i stands in x at
 *   half_pixel (i + 1/2) X/P - 1/2    align_corners i (X - 1)/(P - 1), 0 where P is 1    asymmetric i X/P
 * nearest takes one place: floor((i + 1/2) X/P), the align_corners point rounded (halves up), or floor(i X/P); linear the two around
 * the point (one beyond the edge is the edge); cubic four, by Keys' kernel with a = -3/4, likewise. Weights multiply over the dims; a
 * tap of weight 0 is not read. linear is bilinear and trilinear in 2 and 3 dims. The gradient wants dx given: X is not in dy; it is
 * gathered, so always the same bits. */
qn_status qn_resample(qn_context *ctx, const qn_resampling *resampling, const qn_tensor *x, const qn_tensor *y);
qn_status qn_resample_backward(qn_context *ctx, const qn_resampling *resampling, const qn_tensor *dy, const qn_tensor *dx);

/* ---- sampling: a spatial transformer ------------------------------------------------------ */

typedef struct qn_sampling {
  uint64_t struct_size;
  int64_t  align_corners;             /* -1 and 1 are 0: the outer edges, 1: the middles of the first and last place */
  int64_t  mode;                      /* QN_RESAMPLE_NEAREST or QN_RESAMPLE_LINEAR */
  int64_t  padding;                   /* QN_SAMPLE_... */
} qn_sampling;
#define QN_SAMPLING_INIT { sizeof(qn_sampling), 0, 1, 0 }
enum { QN_SAMPLE_ZEROS = 0, QN_SAMPLE_BORDER = 1, QN_SAMPLE_REFLECTION = 2 };
/* theta [N, 2, 3]   grid [N, H, W, 2], or theta [N, 3, 4]   grid [N, D, H, W, 3]; f64, or f32 f16 bf16 mixed
 *   grid[n, h, w] = theta[n] (x, y, 1)      x = (2w + 1)/W - 1, or with align_corners 2w/(W - 1) - 1, 0 where W is 1; y from h and H
 * (or theta (x, y, z, 1), z from d). grid must be given: its extents are not in theta. mode and padding are not looked at. dtheta [N, 2, 3]
 * or [N, 3, 4] is the sum over the points of dy (x, y, 1). */
qn_status qn_affine_grid(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *theta, const qn_tensor *grid);
qn_status qn_affine_grid_backward(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *dy, const qn_tensor *dtheta);
/* x [N, C, H, W]   grid [N, P, Q, 2]   y [N, C, P, Q], or x [N, C, D, H, W]   grid [N, P, Q, R, 3]   y [N, C, P, Q, R]; f64, or f32 f16
 * bf16, y and dx of x's dtype, grid of any of those three (bf16 has too few digits for most images). The first coordinate of a point
 * lies along W, the second along H, the third along D. In an extent of n, g lies at
 *   ((g + 1) n - 1)/2, or with align_corners (g + 1)(n - 1)/2
 * zeros: x is 0 beyond its ends. border: a point beyond is moved to the first or last place. reflection: it is mirrored at the ends (the
 * outer edges, or with align_corners the middles of the first and last place) until inside, then moved as border does. nearest takes one
 * place, halves to the even one; linear the two around the point in each dim; a tap of weight 0 is not read. A point that is NaN, or
 * infinite and reflected, gives NaN, and nothing to dx.
 * backward_data: dx = the sum of dy times weight; dx must be given: its extents are not in dy. Points are sorted by place, so always
 * the same bits. backward_grid: dgrid = the sum over channels of dy times the slope of x between its taps, towards the place above where
 * a point stands on one; 0 for nearest and where a point is moved to the border, or stands on it. (Jaderberg and others 2015.) */
qn_status qn_grid_sample(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *x, const qn_tensor *grid, const qn_tensor *y);
qn_status qn_grid_sample_backward_data(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *dy, const qn_tensor *grid,
                                       const qn_tensor *dx);
qn_status qn_grid_sample_backward_grid(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *dy, const qn_tensor *x,
                                       const qn_tensor *grid, const qn_tensor *dgrid);

/* ---- transforms: the same values elsewhere, any dtype, bits kept -------------------------- */

typedef struct qn_permutation {
  uint64_t struct_size;
  int64_t  axis[QN_MAX_RANK];         /* y's dim i is x's dim axis[i]; entries beyond the rank are ignored */
} qn_permutation;
#define QN_PERMUTATION_INIT { sizeof(qn_permutation), {0,1,2,3,4,5,6,7} }
typedef struct qn_slicing {
  uint64_t struct_size;
  int64_t  start[QN_MAX_RANK];        /* >= 0 */
  int64_t  length[QN_MAX_RANK];       /* 0: to the end */
  int64_t  step[QN_MAX_RANK];         /* >= 1 */
} qn_slicing;
#define QN_SLICING_INIT { sizeof(qn_slicing), {0,0,0,0,0,0,0,0}, {0,0,0,0,0,0,0,0}, {1,1,1,1,1,1,1,1} }
typedef struct qn_padding {
  uint64_t struct_size;
  int64_t  pad_before[QN_MAX_RANK], pad_after[QN_MAX_RANK];   /* >= 0 */
  double   value;                     /* of QN_PAD_CONSTANT; converted to the dtype as cast does */
  int64_t  mode;                      /* QN_PAD_... */
} qn_padding;
#define QN_PADDING_INIT { sizeof(qn_padding), {0,0,0,0,0,0,0,0}, {0,0,0,0,0,0,0,0}, 0.0, 0 }
enum { QN_PAD_CONSTANT = 0,           /* value */
       QN_PAD_REFLECT = 1,            /* x mirrored, its edge not repeated: c b [a b c] b a; pads below x's dim */
       QN_PAD_REPLICATE = 2 };        /* x's edge: a a [a b c] c c */

qn_status qn_copy(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);         /* same dims and dtype */
/* y.dim[i] = x.dim[axis[i]] */
qn_status qn_permute(qn_context *ctx, const qn_permutation *permutation, const qn_tensor *x, const qn_tensor *y);
/* y[i] = x[start + i step] in each dim */
qn_status qn_slice(qn_context *ctx, const qn_slicing *slicing, const qn_tensor *x, const qn_tensor *y);
/* y.dim[i] = pad_before[i] + x.dim[i] + pad_after[i]. Its gradient: dx = the sum of dy over the places that x was copied to, floats
 * alone; dims from dy's less the pads. */
qn_status qn_pad(qn_context *ctx, const qn_padding *padding, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pad_backward(qn_context *ctx, const qn_padding *padding, const qn_tensor *dy, const qn_tensor *dx);
/* n_x tensors, alike but for their dim along the axis (-1: the last), end to end in y. n_x >= 1. */
qn_status qn_concat(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, int64_t n_x, const qn_tensor *y);

/* ---- elements by their number ------------------------------------------------------------- */

/* x [A..., L, B...]  indices [I...], i32 or i64   y [A..., I..., B...]: y[a, i, b] = x[a, indices[i], b], where L is x's dim `axis`
 * (default 0; -1: the last). Rows of a table by number (an embedding) are axis 0. Any dtype, bits kept; an index below 0 or
 * from L on reads as 0, whatever x holds.
 * scatter_add, its gradient: dx[a, l, b] = the sum of dy[a, i, b] over the i with indices[i] = l, and 0 where there is none; an
 * index out of range adds nowhere. dx must be given: L is in neither dy nor indices. Floats f64 f32 f16 bf16, summed in f32 (f64 in
 * f64), always the same bits. dx may be wider or narrower than dy. */
qn_status qn_gather(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *indices, const qn_tensor *y);
qn_status qn_scatter_add(qn_context *ctx, const qn_axis *axis, const qn_tensor *dy, const qn_tensor *indices, const qn_tensor *dx);
#define QN_GATHER_INIT { sizeof(qn_axis), 0 }

typedef struct qn_one_hot_encoding {
  uint64_t struct_size;
  int64_t  axis;                      /* of y; -1: the last */
  int64_t  depth;                     /* y's dim there; must be set */
  double   on, off;                   /* converted to y's dtype as cast does */
} qn_one_hot_encoding;
#define QN_ONE_HOT_INIT { sizeof(qn_one_hot_encoding), -1, 0, 1.0, 0.0 }
/* indices [A..., B...], i32 or i64   y [A..., depth, B...], any dtype (default f32): on where the index is the place along the axis,
 * else off. An index out of range gives off throughout. */
qn_status qn_one_hot(qn_context *ctx, const qn_one_hot_encoding *encoding, const qn_tensor *indices, const qn_tensor *y);

typedef struct qn_ranking {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
  int64_t  k;                         /* 1 to x's dim there */
  int64_t  smallest;                  /* 1: the k smallest, rising */
} qn_ranking;
#define QN_TOP_K_INIT { sizeof(qn_ranking), -1, 1, 0 }
/* x [dims]   y, indices [dims, k along the axis]: the k largest, the largest first, and where along the axis they stood (i32 or i64;
 * NULL: not wanted). Of equals (-0 and 0 are) the first comes first. NaN is larger than any number. Floats f64 f32 f16 bf16, i8 u8
 * i32 i64; y as x. k = x's dim sorts. */
qn_status qn_top_k(qn_context *ctx, const qn_ranking *ranking, const qn_tensor *x, const qn_tensor *y, const qn_tensor *indices);

typedef struct qn_scan {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
  int64_t  exclusive;                 /* 1: y begins with 0 and leaves the last x out */
  int64_t  reverse;                   /* 1: from the end */
} qn_scan;
#define QN_SCAN_INIT { sizeof(qn_scan), -1, 0, 0 }
/* x, y [dims]: y[i] = x[0] + ... + x[i] along the axis (exclusive: to x[i - 1]; reverse: x[i] + ... + x[last]). Floats f64 f32 f16
 * bf16, y any float that stands with x; i8 u8 i32 i64, where sums wrap in y's dtype, which is i32, i64 or x's own. The gradient is
 * cumsum of dy the other way. */
qn_status qn_cumsum(qn_context *ctx, const qn_scan *scan, const qn_tensor *x, const qn_tensor *y);

/* ---- reductions --------------------------------------------------------------------------- */

typedef struct qn_axes {
  uint64_t struct_size;
  uint64_t mask;                      /* bit i: dim i is reduced; 0: all dims */
} qn_axes;
#define QN_AXES_INIT { sizeof(qn_axes), 0 }

/* x [dims]   y [dims, those reduced being 1]. Floats f64 f32 f16 bf16; sum, prod, max, min, argmax, argmin also
 * i8 u8 i32 i64 (sum and prod wrap in y's dtype, which is i32, i64 or x's own). y: x's dtype, or any float for a float x.
 * Over nothing: sum 0, prod 1, max -Inf, min +Inf (integers: their least and largest), mean NaN, norms and amax 0,
 * argmax and argmin -1. max, min, amax: NaN wins; argmax, argmin: the place (i32 or i64), row-major in the reduced dims, of the first
 * NaN, else of the first extreme. The gradients are pointwise: of sum and mean a broadcast, of norm2 x dy / y, and so on. */
qn_status qn_reduce_sum(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_reduce_mean(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_reduce_prod(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_reduce_max(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_reduce_min(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_reduce_norm1(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);  /* sum |x| */
qn_status qn_reduce_norm2(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);  /* sqrt(sum x^2) */
qn_status qn_reduce_amax(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);   /* max |x| */
qn_status qn_argmax(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_argmin(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);

/* ---- pointwise ---------------------------------------------------------------------------- */

/* All operands have y's rank, each dim y's or 1 (broadcast); or rank 0, a scalar, converted to the type of the computation. f16, bf16 and
 * f32 mix freely and compute in f32; f64 tensors stand only with f64; integers (i8 u8 i32 i64) only with their like, in add, sub, mul, min,
 * max, comparisons, select, neg, abs, sign, and wrap. Comparisons give bool (0 or 1), which logical_... and select's c are; cast takes all.
 * NaN goes through, min, max, relu and clip included; compared it is false, but for ne. An input alike in dtype and strides may be y. */
qn_status qn_add(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a + b */
qn_status qn_sub(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a - b */
qn_status qn_mul(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a b */
qn_status qn_div(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a / b */
/* y = the smaller; NaN if either is */
qn_status qn_min(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
/* y = the larger; NaN if either is */
qn_status qn_max(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
qn_status qn_pow(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a^b as C's pow */

qn_status qn_eq(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a == b */
qn_status qn_ne(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a != b */
qn_status qn_lt(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a < b */
qn_status qn_le(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a <= b */
qn_status qn_gt(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a > b */
qn_status qn_ge(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a >= b */
qn_status qn_logical_and(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a and b */
qn_status qn_logical_or(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a or b */
qn_status qn_logical_not(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = not x */

/* y = a where c, else b */
qn_status qn_select(qn_context *ctx, const qn_tensor *c, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
qn_status qn_cast(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = x in y's dtype */

qn_status qn_neg(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = -x */
qn_status qn_abs(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = |x| */
qn_status qn_sign(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = -1, 0 or 1; NaN stays */
qn_status qn_exp(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = e^x */
qn_status qn_log(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = ln x */
qn_status qn_sqrt(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the root of x */
qn_status qn_rsqrt(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = 1 / sqrt(x) */
qn_status qn_reciprocal(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = 1 / x */
qn_status qn_erf(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = 2/sqrt(pi) integral_0^x exp(-t^2) dt */
qn_status qn_sin(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = sin x */
qn_status qn_cos(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = cos x */
qn_status qn_floor(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the largest integer <= x */
qn_status qn_ceil(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the smallest integer >= x */
qn_status qn_round(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the nearest integer, ties to even */

/* Activations. Their parameters, by the function: leaky_relu alpha = slope; elu alpha; silu, softplus beta;
 * clip alpha = min, beta = max, neither of them NaN. Each function has an INIT with its defaults. */
typedef struct qn_pointwise {
  uint64_t struct_size;
  double   alpha, beta;
} qn_pointwise;
#define QN_LEAKY_RELU_INIT { sizeof(qn_pointwise), 0.01, 0.0 }
#define QN_ELU_INIT        { sizeof(qn_pointwise), 1.0, 0.0 }
#define QN_SILU_INIT       { sizeof(qn_pointwise), 0.0, 1.0 }
#define QN_SOFTPLUS_INIT   { sizeof(qn_pointwise), 0.0, 1.0 }
#define QN_CLIP_INIT       { sizeof(qn_pointwise), -INFINITY, INFINITY }

qn_status qn_relu(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = max(x, 0); NaN stays */
/* y = x > 0 ? x : slope x */
qn_status qn_leaky_relu(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y);
/* y = x > 0 ? x : alpha (e^x - 1) */
qn_status qn_elu(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y);
qn_status qn_gelu(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = x (1 + erf(x / sqrt 2)) / 2 */
/* y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 */
qn_status qn_gelu_tanh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);
/* y = x / (1 + e^(-beta x)); also called swish */
qn_status qn_silu(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y);
qn_status qn_sigmoid(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = 1 / (1 + e^-x) */
qn_status qn_tanh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = tanh x */
/* y = ln(1 + e^(beta x)) / beta */
qn_status qn_softplus(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y);
qn_status qn_hardswish(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = x min(max(x + 3, 0), 6) / 6 */
qn_status qn_mish(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = x tanh(ln(1 + e^x)) */
/* y = min(max(x, min), max); NaN stays */
qn_status qn_clip(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y);

/* Their gradients: dx = dy f'(x). At a kink relu, leaky_relu and elu take the side of the smaller x: relu'(0) = 0; clip gives 0 at
 * either end. */
/* dx = x > 0 ? dy : 0 */
qn_status qn_relu_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = x > 0 ? dy : slope dy */
qn_status qn_leaky_relu_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = x > 0 ? dy : alpha e^x dy */
qn_status qn_elu_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy ((1 + erf(x/sqrt 2))/2 + x e^(-x^2/2)/sqrt(2 pi)) */
qn_status qn_gelu_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy times the derivative of gelu_tanh at x */
qn_status qn_gelu_tanh_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy s (1 + beta x (1 - s)), s = sigmoid(beta x) */
qn_status qn_silu_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy s (1 - s), s = sigmoid(x) */
qn_status qn_sigmoid_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy (1 - tanh(x)^2) */
qn_status qn_tanh_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy sigmoid(beta x) */
qn_status qn_softplus_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy (x <= -3 ? 0 : x >= 3 ? 1 : (2x + 3)/6) */
qn_status qn_hardswish_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = dy (t + x s (1 - t^2)), t = tanh(softplus(x)), s = sigmoid(x) */
qn_status qn_mish_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);
/* dx = min < x < max ? dy : 0 */
qn_status qn_clip_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx);

#ifdef __cplusplus
}
#endif
#endif
