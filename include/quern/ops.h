/* ops.h -- the ops, one typed call each; a chapter of quern.h, which includes it.
 *
 * Every call takes (ctx, [attributes], inputs, outputs), the tensors in the schema's order of roles. NULL attributes mean the
 * defaults. A tensor may be NULL if `quern-info ops` marks it with "?": c, bias, alpha, beta; scale, shift, saved statistics,
 * indices, masks, offset... The caller allocates outputs and gives their dims, which must be the ones stated here (the error says
 * what they should be). A call enqueues its work on ctx's stream and does not wait. It returns QN_BAD_ARGUMENT for an invalid
 * argument, QN_UNSUPPORTED if no engine takes the problem under the demands in force, or another status of quern.h.
 *
 * Arithmetic: f16 and bf16 compute and accumulate in f32, f32 in f32, f64 in f64, products of i8 and u8 exactly in i32; the result is
 * rounded once to the output's dtype, to nearest even. Integer arithmetic wraps. A zero dim makes an op a no-op. Attributes of type
 * double should be within the range of the computing type: with f32 tensors 1e39 may act as Inf, an eps of 1e-50 as 0.
 *
 * A call of many tensors takes them in a struct that opargs.h declares, with a field for each role; begin with its INIT and set those
 * that you have.
 *
 * Each prototype is compiled against the schema (core/ops.def): a difference fails the build. */
#ifndef QUERN_OPS_H
#define QUERN_OPS_H
#include <math.h>
#include <quern/quern.h>
#include <quern/opargs.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- contractions ------------------------------------------------------------------------- */

/* y = alpha a b + beta c + bias
 *
 * a [..., M, K]   b [..., K, N]   c [..., M, N]   bias [N]   y [..., M, N]
 * Each leading dim of a and b is equal or 1 (broadcast). A transpose is a view (qn_transposed) and costs nothing.
 * alpha, beta: scalars; absent: 1. beta needs c. c may share y's memory.
 * dtypes: a and b the same, f64 f32 f16 bf16; y and c the same as a, or f32 where a is f16 or bf16.
 *         a, b in any mixture of e4m3 and e5m2: y and c f32, f16 or bf16. Any mixture of i8 and u8: y, c, bias i32, no alpha or beta.
 *         bias: y's dtype or f32.
 * Traps: alpha 0 never reads a or b, beta 0 never reads c, K = 0 gives beta c + bias. */
qn_status qn_matmul(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *c,
                    const qn_tensor *bias, const qn_tensor *alpha, const qn_tensor *beta, const qn_tensor *y);

/* Geometry of a convolution; entries beyond the tensor's spatial dims (1 to 3) are ignored. */
typedef struct qn_conv {
  uint64_t struct_size;
  int64_t  stride[3];                 /* >= 1 */
  int64_t  dilation[3];               /* >= 1; 1: adjacent taps */
  int64_t  pad_before[3], pad_after[3];   /* >= 0; zeros around x */
  int64_t  groups;                    /* divides C and K; groups = C is depthwise */
} qn_conv;
#define QN_CONV_INIT { sizeof(qn_conv), {1,1,1}, {1,1,1}, {0,0,0}, {0,0,0}, 1 }

/* Cross-correlation (the filter is not flipped), 1 to 3 spatial dims:
 *   y[n,k,p] = sum_{c,r} w[k,c,r] x[n, g(k) C/groups + c, p stride + r dilation - pad_before] + bias[k]
 *
 * x [N, C, spatial]   w [K, C/groups, taps]   bias [K]   y [N, K, P]      g(k): the group of k
 * P = (X + pad_before + pad_after - dilation (R-1) - 1) / stride + 1, at least 0, with X, R the extents of x and w in that dim
 * dtypes: as matmul's, with x and w for a and b.
 * Trap: an engine may skip a tap that lies in the padding or multiply 0 by its filter element, which gives NaN if that is NaN or
 * Inf. The same holds for the gradients: a term outside dy may make dx NaN, one in x's padding may make dw NaN. */
qn_status qn_conv_forward(qn_context *ctx, const qn_conv *conv, const qn_tensor *x, const qn_tensor *w,
                          const qn_tensor *bias, const qn_tensor *y);
/* dx = the gradient of sum(dy conv_forward(x, w)) by x.   dy [N, K, P]   w [K, C/groups, taps]   dx [N, C, spatial]
 * Several dims of dx may lead to dy's P; dx's own dims choose (elsewhere called output padding). dtypes: the forward's, dx for y. */
qn_status qn_conv_backward_data(qn_context *ctx, const qn_conv *conv, const qn_tensor *dy, const qn_tensor *w,
                                const qn_tensor *dx);
/* dw = the gradient of sum(dy conv_forward(x, w)) by w.   x [N, C, spatial]   dy [N, K, P]   dw [K, C/groups, taps]
 * The gradient by bias is qn_reduce_sum of dy over all dims but dim 1. dtypes: the forward's, with dw for y. */
qn_status qn_conv_backward_filter(qn_context *ctx, const qn_conv *conv, const qn_tensor *x, const qn_tensor *dy,
                                  const qn_tensor *dw);

/* ---- softmax ------------------------------------------------------------------------------ */

typedef struct qn_axis {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
} qn_axis;
#define QN_AXIS_INIT { sizeof(qn_axis), -1 }

/* Along `axis`, any rank >= 1, all tensors of the same dims; dtypes f64 f32 f16 bf16, mixed as in the pointwise ops.
 *   softmax:      y = exp(x - m) / s        m = max x,  s = sum exp(x - m)        dx = y (dy - sum y dy)
 *   log_softmax:  y = x - m - ln s                                                dx = dy - exp(y) sum dy
 * A row that has a NaN or +Inf, or is all -Inf, is NaN throughout. backward takes the forward's y, not x. */
qn_status qn_softmax(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *y);
qn_status qn_softmax_backward(qn_context *ctx, const qn_axis *axis, const qn_tensor *y, const qn_tensor *dy,
                              const qn_tensor *dx);
qn_status qn_log_softmax(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *y);
qn_status qn_log_softmax_backward(qn_context *ctx, const qn_axis *axis, const qn_tensor *y, const qn_tensor *dy,
                                  const qn_tensor *dx);

/* ---- normalization ------------------------------------------------------------------------ */

typedef struct qn_norm {
  uint64_t struct_size;
  uint64_t mask;                      /* bit i: normalize over dim i; 0: layer and rms the last dim, batch all but dim 1 */
  double   eps;                       /* >= 0, added to the variance */
  double   momentum;                  /* batch_norm: the weight of this batch in the running statistics, 0 to 1 */
} qn_norm;
#define QN_NORM_INIT { sizeof(qn_norm), 0, 1e-5, 0.1 }

/* Over the n elements of x that have the same index in the dims not normalized over:
 *   mean = sum x / n      var = sum (x - mean)^2 / n, never E[x^2] - mean^2      rstd = 1 / sqrt(var + eps)
 *   layer_norm, batch_norm:  y = (x - mean) rstd scale + shift
 *   rms_norm:                y = x rstd scale,  rstd = 1 / sqrt(sum x^2 / n + eps)
 *
 * x, y [dims]   scale, shift [dims, any of them 1]   mean, rstd [dims, 1 where normalized over]
 * dtypes: x, y, scale and shift f32 f16 bf16 in any mixture, statistics f32; or all f64.
 * Instance norm is layer_norm over the spatial dims; group norm is the same over a view of x as [N, G, C/G, spatial].
 * If n is 0, mean and rstd are NaN. (Ba, Kiros, Hinton 2016; Zhang, Sennrich 2019; Ioffe, Szegedy 2015; Wu, He 2018.) */
qn_status qn_layer_norm(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *scale,
                        const qn_tensor *shift, const qn_tensor *y, const qn_tensor *mean, const qn_tensor *rstd);
/* With h = (x - mean) rstd, g = dy scale:   dx = rstd (g - mean g - h mean(g h))
 *   dscale = sum dy h, dshift = sum dy, each summed over the dims where it has 1 and x has more. dscale has scale's dims. */
qn_status qn_layer_norm_backward(qn_context *ctx, const qn_norm *norm, const qn_tensor *dy, const qn_tensor *x,
                                 const qn_tensor *scale, const qn_tensor *mean, const qn_tensor *rstd,
                                 const qn_tensor *dx, const qn_tensor *dscale, const qn_tensor *dshift);
qn_status qn_rms_norm(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *scale,
                      const qn_tensor *y, const qn_tensor *rstd);
/* With h = x rstd, g = dy scale:   dx = rstd (g - h mean(g h))   dscale = sum dy h */
qn_status qn_rms_norm_backward(qn_context *ctx, const qn_norm *norm, const qn_tensor *dy, const qn_tensor *x,
                               const qn_tensor *scale, const qn_tensor *rstd, const qn_tensor *dx, const qn_tensor *dscale);
/* For training: uses this batch's statistics. The default mask normalizes over N and the spatial dims; mask 1 is per activation.
 *   new_mean = (1 - momentum) running_mean + momentum mean      new_var the same with n / (n - 1) var (n = 1: with var)
 * new_mean and new_var may share running_mean's and running_var's memory; each needs its counterpart. */
qn_status qn_batch_norm(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *scale,
                        const qn_tensor *shift, const qn_tensor *running_mean, const qn_tensor *running_var,
                        const qn_tensor *y, const qn_tensor *mean, const qn_tensor *rstd, const qn_tensor *new_mean,
                        const qn_tensor *new_var);
qn_status qn_batch_norm_backward(qn_context *ctx, const qn_norm *norm, const qn_tensor *dy, const qn_tensor *x,
                                 const qn_tensor *scale, const qn_tensor *mean, const qn_tensor *rstd,
                                 const qn_tensor *dx, const qn_tensor *dscale, const qn_tensor *dshift);
/* With given statistics: y = (x - mean) / sqrt(var + eps) scale + shift */
qn_status qn_batch_norm_inference(qn_context *ctx, const qn_norm *norm, const qn_tensor *x, const qn_tensor *mean,
                                  const qn_tensor *var, const qn_tensor *scale, const qn_tensor *shift, const qn_tensor *y);

/* ---- normalization by neighbours ---------------------------------------------------------- */

typedef struct qn_local_norm {
  uint64_t struct_size;
  int64_t  size;                      /* of the window, >= 1, in each dim that it spans */
  double   alpha, beta, k;            /* finite, >= 0 */
  int64_t  region;                    /* QN_LOCAL_ACROSS or QN_LOCAL_WITHIN */
} qn_local_norm;
#define QN_LOCAL_NORM_INIT { sizeof(qn_local_norm), 5, 1e-4, 0.75, 1, 0 }
enum { QN_LOCAL_ACROSS = 0, QN_LOCAL_WITHIN = 1 };
/* x [N, C, X]   y, means as x; 0 to 3 spatial dims (within: 1 to 3); f64 f32 f16 bf16, all tensors of one dtype. Local response
 * normalization; given means (NULL: m = 0), divisive normalization:
 *   y = x b^-beta      b = k + alpha/n s      s = the sum of (x - m)^2 over the window at y's position, m the mean given there
 *   dx = dy b^-beta - 2 alpha beta/n t        t = the sum of r (x - m) over the positions whose window holds dx's; r, m theirs
 *   dmeans = 2 alpha beta/n r d (or NULL)     d = the sum of x - m over the window; r = dy x b^-(beta+1)
 * across: the window spans `size` channels, n = size. within: it spans `size` elements in each spatial dim of the channel, and n is
 * the product of these. It begins floor((size - 1)/2) before the position, so one of even size reaches further forward, as in cuDNN
 * and ONNX (PyTorch's reaches further back). What lies outside x adds nothing to s but counts in n. Traps: cuDNN's default k is
 * 2; in AlexNet's paper alpha is not divided by n. (Krizhevsky, Sutskever, Hinton 2012; within: Caffe.)
 *
 * cudnnDivisiveNormalization is region=within, its n, alpha, beta, K being size, alpha, beta, k, and its n to the power of the number
 * of spatial dims being n here. Traps: x is divided, not x - m; for local contrast normalization subtract averages first
 * (pool_average, sub) and divide the result. means may hold any values, such as averages by another kernel. The gradients treat means
 * as independent of x: if they are computed from x, propagate dmeans through that and add it to dx. For one mean plane shared by
 * all channels give means a stride of 0 in C. (Jarrett, Kavukcuoglu, Ranzato, LeCun 2009, where the weights are Gaussian
 * and the divisor is the larger of the deviation and a constant.) */
qn_status qn_lrn(qn_context *ctx, const qn_local_norm *norm, const qn_tensor *x, const qn_tensor *means, const qn_tensor *y);
qn_status qn_lrn_backward(qn_context *ctx, const qn_local_norm *norm, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *means,
                          const qn_tensor *dx, const qn_tensor *dmeans);

/* ---- attention ---------------------------------------------------------------------------- */

typedef struct qn_attention {
  uint64_t struct_size;
  double   scale;                     /* of the scores; 0: 1/sqrt(D) */
  int64_t  left, right;               /* keys before and after the diagonal that a query sees, itself inclusive; -1: all. right 0: causal */
  int64_t  align;                     /* where the diagonal ends: QN_ALIGN_... */
  double   softcap;                   /* c of c tanh(score / c); 0: none */
  double   dropout;                   /* probability of dropping a weight, 0 <= p < 1, taken to the nearest 1/65536 */
  int64_t  value_size;                /* without v: Dv, the leading elements of each key row that are its value */
  int64_t  block_q, block_kv;         /* what one bit of blocks covers */
} qn_attention;
#define QN_ATTENTION_INIT { sizeof(qn_attention), 0, -1, -1, 0, 0, 0, 0, 128, 128 }
enum { QN_ALIGN_BOTTOM_RIGHT = 0, QN_ALIGN_TOP_LEFT = 1 };

/* For each sequence b of B, head h of H and query i, over the keys j that it sees, with key head g = h / (H/Hkv):
 *   s_j = softcap(scale sum_d q[b,h,i,d] k[b,g,j,d]) + bias[b,h,i,j] - slopes[h] |i + shift - j|
 *   m = max s_j      lse = ln(sum exp s_j + exp sink[h])      P_j = exp(s_j - lse)      y = sum_j P_j v[b,g,j]
 *
 * q [B, H, Sq, D]   k [B, Hkv, Skv, D]   v [B, Hkv, Skv, Dv]   y [B, H, Sq, Dv]   lse, max [B, H, Sq]   amax a scalar: max |y|
 * Hkv divides H (groups of query heads share a key head). Heads are strides: BSHD or packed q, k, v are views. v absent: each value is
 * the first `value_size` elements of its key (latent attention), Dv = value_size.
 * bias, mask [B|1, H|1, Sq|1, Skv|1]: added to the score; true: may be seen   slopes [H] or [B|1, H] (ALiBi)   sink [H]
 * blocks [B|1, H|1, ceil(Sq/block_q), ceil(ceil(Skv/block_kv)/8)] u8: bit n % 8 of byte n / 8, lowest first, 0 hides key block n
 * Which keys are seen: those that lengths, window, mask and blocks all admit.
 *   lengths   q_lengths, kv_lengths [B]: queries and keys of each sequence; below 0 counts as 0, above the extent as the extent
 *   window    i + shift - left <= j <= i + shift + right; shift = keys - queries of the sequence (its actual lengths), so that the
 *             last query sees the last key; align=top_left: 0
 *   ragged    q_starts [B+1]: q, y, lse have dims [1, H, T, ..], and sequence b owns tokens q_starts[b] to q_starts[b+1] - 1; kv_starts
 *             the same for k, v [1, Hkv, T, ..]. i and j count within the sequence; lengths shorten it. bias and mask are then
 *             indexed along queries (keys) by the token's place among all T; starts must not fall and end within T
 *   paged     pages [B, n]: k, v have dims [pages, Hkv, page, ..], key j lies on page pages[b, j / page] at place j % page, and
 *             Skv is n page. Wants kv_lengths. Entries past the length are not read; keys of a page that does not exist are not seen
 * q_scale, k_scale, v_scale: an element's value is element x scale; y_scale: y y_scale is stored. Each of rank 0, or of its tensor's
 * rank, with dims that divide those of the tensor as stored (blocks of it share a scale). y_scale has rank 0.
 * dropout: P_j is 0 with probability p, else P_j / (1 - p); lse is without it. With t = p rounded to 65536ths, weight (b, h, i, j) is 0
 * if its 16 bits are below t: half j % 2 (the low first) of word j % 8 / 2 of Philox 4x32-10 with key = seed, counter = (j / 8, i, offset +
 * (b H + h) 2^32), of 32, 32 and 64 bits. So a sequence drops the same weights dense, ragged and paged. seed, offset: scalars as in
 * rng_uniform; dropout above 0 needs seed.
 * dtypes: q, k, v each e4m3, e5m2, i8, or all others of them one of f64 f32 f16 bf16; bias a float that mixes with it; y one that does,
 * or e4m3 or e5m2 (default: the dtype of q, k, v; f32 where all have 8 bits); lse, max, amax, slopes, sink and scales f32, with f64: f64.
 * A query that sees no key, or only scores of -Inf, has y 0, lse -Inf (with a sink: the sink) and max -Inf. Rows past a sequence's
 * end and tokens of no sequence have y 0, lse and max -Inf. Values and keys that no query sees are never read into a result, even if NaN.
 * Traps: bottom right is FlashAttention's and vLLM's causal mask; PyTorch's is_causal is top left. cuDNN's left bound is left + 1, its
 * default scale 1. FlashInfer's lse has base 2. A bias of -Inf is no mask: its weight is 0, but 0 times a NaN or Inf value is NaN; so may
 * be a dropped one's. An engine may round P to the dtype of q before the product with v.
 * (Vaswani and others 2017; online: Milakov, Gimelshein 2018, Dao and others 2022.) */
qn_status qn_attention_forward(qn_context *ctx, const qn_attention *attention, const qn_attention_forward_args *args);
/* With P from lse, n the keep factor of dropout (0 or 1/(1 - p)) and t = tanh of the softcap (0 without):
 *   D = sum_d dy y - dlse      dP_j = n_j sum_d dy v_j      dS_j = P_j (dP_j - D)
 *   dq = scale sum_j dS_j (1 - t_j^2) k_j      dk_j = scale sum_{h of g, i} dS_j (1 - t_j^2) q_i      dv_j = sum n_j P_j dy_i
 *   dbias = sum of dS over the dims where bias has 1      dsink = - sum_{b,i} exp(sink - lse) D
 * y, lse: the forward's. dlse: the gradient by lse, absent: 0. Without v there is no dv; values' gradient is added to dk's first elements.
 * Gradients have the dims of what they belong to; they are 0 for rows that see no key, keys that nobody sees, tokens of no sequence.
 * dtypes: q, k, v one of f64 f32 f16 bf16; dy, y, bias and the gradients any that mix with it. */
qn_status qn_attention_backward(qn_context *ctx, const qn_attention *attention, const qn_attention_backward_args *args);
/* Joins attention over two sets of keys (a shared prefix, chunks, other devices'):
 *   y = (e^lse1 y1 + e^lse2 y2) / (e^lse1 + e^lse2)      lse = ln(e^lse1 + e^lse2)
 * y1, y2, y [dims, Dv]   lse1, lse2, lse [dims]; f32 f16 bf16 mixed, lse f32; or all f64. A part with lse -Inf is not read; if both are so,
 * y is 0. A NaN or +Inf in either makes the row NaN. y may share y1's memory, lse lse1's. With a sink count it in one part only. */
qn_status qn_attention_merge(qn_context *ctx, const qn_tensor *y1, const qn_tensor *lse1, const qn_tensor *y2, const qn_tensor *lse2,
                             const qn_tensor *y, const qn_tensor *lse);

typedef struct qn_rotation {
  uint64_t struct_size;
  int64_t  interleaved;               /* 0: pairs are (k, k + R/2); 1: (2k, 2k + 1) */
} qn_rotation;
#define QN_ROTATION_INIT { sizeof(qn_rotation), 0 }
/* Rotary position embedding. For the pair k of a row at position p, k from 0 to R/2 - 1:
 *   y_a = x_a cos[p, k] - x_b sin[p, k]      y_b = x_b cos[p, k] + x_a sin[p, k]      the gradient has -sin
 * x, y [B, H, S, D]   cos, sin [P, R/2], R <= D: elements from R on are copied   positions [B|1, S] i32 or i64; absent: p = s
 * dtypes: f32 f16 bf16 in any mixture, or all f64. At a position outside 0..P-1 the pairs are 0. y may share x's memory.
 * Traps: Llama's and NeoX's pairs are halves, GPT-J's interleaved. Only what is to be turned comes first: R counts from element 0.
 * (Su and others 2021.) */
qn_status qn_rotary(qn_context *ctx, const qn_rotation *rotation, const qn_tensor *x, const qn_tensor *cos, const qn_tensor *sin,
                    const qn_tensor *positions, const qn_tensor *y);
qn_status qn_rotary_backward(qn_context *ctx, const qn_rotation *rotation, const qn_tensor *dy, const qn_tensor *cos, const qn_tensor *sin,
                             const qn_tensor *positions, const qn_tensor *dx);
/* new_cache = cache, with token (b, s) of x at its slot: page slots[b, s] / page, place slots[b, s] % page; nowhere if the slot is
 * negative or beyond the cache.
 * cache, new_cache [pages, Hkv, page, D]   x [B, Hkv, S, D]   slots [B, S] i32 or i64   scale of rank 0, or rank 4 with dims that divide
 * cache's. new_cache may share cache's memory, and then only the tokens' elements are touched.
 * dtypes: x as cache, any; or both float, cache also e4m3 e5m2 i8: x / scale (absent: 1) is stored, rounded and saturated as by quantize.
 * Trap: what two tokens of one slot leave there is not specified. */
qn_status qn_cache_write(qn_context *ctx, const qn_tensor *cache, const qn_tensor *x, const qn_tensor *slots, const qn_tensor *scale,
                         const qn_tensor *new_cache);

/* ---- losses ------------------------------------------------------------------------------- */

enum { QN_REDUCTION_NONE = 0, QN_REDUCTION_MEAN = 1, QN_REDUCTION_SUM = 2 };
enum { QN_LOGITS = 0, QN_LOG_PROBABILITIES = 1 };
typedef struct qn_entropy {
  uint64_t struct_size;
  int64_t  axis;                      /* the dim of classes; -1: the last */
  int64_t  ignore;                    /* the label that marks rows to leave out */
  double   smoothing;                 /* 0 to 1: the share of a label that is spread over all classes */
  int64_t  reduction;                 /* QN_REDUCTION_...: a loss per row, their mean over the rows that count, or their sum */
  int64_t  input;                     /* QN_LOGITS or QN_LOG_PROBABILITIES: what x is */
} qn_entropy;
#define QN_ENTROPY_INIT { sizeof(qn_entropy), -1, -100, 0, QN_REDUCTION_NONE, QN_LOGITS }

/* From logits x, a row of C classes along `axis` for each label or each C probabilities:
 *   lse = ln sum exp x      loss = sum over classes c of t_c weights_c (lse - x_c)
 *   t_c = (1 - smoothing) [c = label] + smoothing / C      or (1 - smoothing) probabilities_c + smoothing / C
 * From log-probabilities (negative log likelihood) the same with lse = 0.
 * x [dims]   labels i32 or i64, lse [dims, 1 along axis], or probabilities [dims]   weights [C]; absent: all 1
 * loss [labels' dims; reduced: all dims 1]   count [all dims 1]   One of labels and probabilities; no lse for log-probabilities.
 * dtypes: x, probabilities f32 f16 bf16, weights and results f32; or all f64.
 * count: what the mean divides the sum by: the weights of the labels of rows that are not ignored, without weights their number; for
 * probabilities the number of rows, weights or not. Needed by the backward of a mean.
 * A row whose label is `ignore` is not read; its loss and lse are 0. For any other label outside 0..C-1, x[label] is taken as 0, its
 * weight as 1. Rows with probabilities are never ignored; that they add up to 1 is not checked.
 * Terms with t or a weight of 0 are not added: with smoothing 1, x[label] may be -Inf.
 * lse is NaN for a row with NaN or +Inf, -Inf for one of all -Inf. The mean over no rows is NaN. (Smoothing: Szegedy et al. 2016.)
 * Trap: PyTorch's and ONNX's weighted means divide by the weights of the labels, as here, smoothed or not. */
qn_status qn_cross_entropy(qn_context *ctx, const qn_entropy *entropy, const qn_tensor *x, const qn_tensor *labels,
                           const qn_tensor *probabilities, const qn_tensor *weights, const qn_tensor *loss, const qn_tensor *lse,
                           const qn_tensor *count);
/* dx_c = g (exp(x_c - lse) sum over classes of t weights - t_c weights_c); from log-probabilities without the first term; 0 in
 * ignored rows. g = dy, or dy / count for a mean. dy has loss's dims. lse is needed unless x are log-probabilities. */
qn_status qn_cross_entropy_backward(qn_context *ctx, const qn_entropy *entropy, const qn_tensor *dy, const qn_tensor *x,
                                    const qn_tensor *labels, const qn_tensor *probabilities, const qn_tensor *weights,
                                    const qn_tensor *lse, const qn_tensor *count, const qn_tensor *dx);
/* The gradient by soft labels: dprobabilities_c = g (1 - smoothing) weights_c (lse - x_c), 0 where that share of weights_c is 0; dtypes,
 * g and lse as above, dims and dtype of dprobabilities as probabilities in the forward, which are not read. For distillation into both
 * networks, and for labels that are learnt. */
qn_status qn_cross_entropy_backward_probabilities(qn_context *ctx, const qn_entropy *entropy, const qn_tensor *dy, const qn_tensor *x,
                                                  const qn_tensor *weights, const qn_tensor *lse, const qn_tensor *count,
                                                  const qn_tensor *dprobabilities);

typedef struct qn_ctc {
  uint64_t struct_size;
  int64_t  blank;                     /* the class that stands for no label */
  int64_t  zero_infinity;             /* 1: a sample with no valid path has loss 0 */
  int64_t  reduction;                 /* QN_REDUCTION_...: a loss per sample, their mean over all N, or their sum */
} qn_ctc;
#define QN_CTC_INIT { sizeof(qn_ctc), 0, 0, QN_REDUCTION_NONE }

/* Connectionist temporal classification. A path picks one class per frame; it spells the sequence left after runs of the same class
 * are collapsed to one and blanks removed. From logits x, with p = exp(x - lse):
 *   lse = ln sum exp x over the classes of a frame      loss = -ln sum over the paths that spell labels of the product of their p
 * x [T, N, C]: frames, samples, classes   labels i32 or i64 [N, S]   x_lengths, label_lengths i32 or i64 [N]
 * lse [T, N, 1]   loss [N], reduced [1]      For [N, T, C] pass a view with permuted strides. Log-probabilities serve as logits.
 * dtypes: x f32 f16 bf16, results f32; or all f64.
 * Sample n has x_lengths[n] frames and label_lengths[n] labels; what lies beyond is not read, and lse is 0 there. A length
 * below 0 counts as 0, one above T or S as T or S. For a label outside 0..C-1, x is taken as 0. No path spells the blank.
 * A sample that no path spells (say one with fewer frames than labels plus repeats) has loss +Inf, or 0 with zero_infinity.
 * A frame with NaN or +Inf, or of all -Inf, makes its sample's loss NaN.
 * Trap: the mean is not weighted by lengths; some libraries first divide each loss by its label length.
 * (Graves, Fernandez, Gomez, Schmidhuber 2006.) */
qn_status qn_ctc_loss(qn_context *ctx, const qn_ctc *ctc, const qn_tensor *x, const qn_tensor *labels, const qn_tensor *x_lengths,
                      const qn_tensor *label_lengths, const qn_tensor *loss, const qn_tensor *lse);
/* dx = g (exp(x - lse) - P(class)), g = dy, or dy / N for a mean; P(c) = the probability, given the labels, that the path has c in
 * this frame. 0 beyond a sample's frames and in a sample that no path spells. Only lse is kept from the forward: the sums over
 * paths are computed again, in about 12 N T (S + 1) bytes of workspace for f32. dy has loss's dims. */
qn_status qn_ctc_loss_backward(qn_context *ctx, const qn_ctc *ctc, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *labels,
                               const qn_tensor *x_lengths, const qn_tensor *label_lengths, const qn_tensor *lse, const qn_tensor *dx);

/* ---- recurrent networks ----------------------------------------------------------------------- */

typedef struct qn_rnn {
  uint64_t struct_size;
  int64_t  cell;                      /* QN_RNN_LSTM, _GRU, _TANH or _RELU */
  int64_t  layers;                    /* >= 1 */
  int64_t  direction;                 /* QN_RNN_FORWARD, _BACKWARD (from each sequence's last step to its first) or _BOTH */
  int64_t  reset;                     /* of GRU: QN_RNN_RESET_AFTER or _BEFORE the recurrent product */
  double   clip;                      /* of LSTM, > 0: the bound of a cell state's magnitude; INFINITY: none */
  double   dropout;                   /* between layers, 0 <= dropout < 1 */
} qn_rnn;
#define QN_RNN_INIT { sizeof(qn_rnn), 0, 1, 0, 0, INFINITY, 0 }
enum { QN_RNN_LSTM = 0, QN_RNN_GRU = 1, QN_RNN_TANH = 2, QN_RNN_RELU = 3 };
enum { QN_RNN_FORWARD = 0, QN_RNN_BACKWARD = 1, QN_RNN_BOTH = 2 };
enum { QN_RNN_RESET_AFTER = 0, QN_RNN_RESET_BEFORE = 1 };

/* Layers of a cell that goes along a sequence. At a step with input x, state h (and cell state c) of the step before, s = sigmoid:
 *   lstm   i, f, o = s(w x + bw + r h + br)     g = tanh(the same)     c' = f c + i g, bounded by clip     h' = o tanh(c')
 *   gru    r, z = s(w x + bw + r h + br)        h' = (1 - z) n + z h
 *          reset=after:  n = tanh(w x + bw + r (r h + br))             reset=before: n = tanh(w x + bw + r (r h) + br), r h first
 *   tanh, relu   h' = tanh(...) or max(..., 0) of w x + bw + r h + br
 * With projection (lstm only) h' is projection o tanh(c'). The next layer takes h' of both directions side by side, after dropout.
 *
 * T steps, B sequences, I features, H the cell's size, P of its state h (H, or the rows of projection), L layers, D directions (1, both 2),
 * G gates: lstm 4 in the order i f g o, gru 3 in the order r z n, tanh and relu 1. Lists have L D tensors: layer 0 forward, layer 0
 * backward, layer 1 ...:
 *   x [T, B, I]   w [G H, I], above the first layer [G H, D P]   r [G H, P]   bw, br [G H]   projection [P, H]
 *   h0, ht [L D, B, P]   c0, ct [L D, B, H]   lengths [B], below 0 as 0, above T as T   y [T, B, D P], both: forward's P, then backward's
 * bw, br, h0, c0 absent: 0; lengths absent: T. ht and ct are the states after each sequence's last step of its direction; of a sequence
 * of length 0, h0 and c0. Beyond a sequence's end x is not used and y is 0. Batch-major tensors are the same with other strides.
 * Dropout zeroes an element of a layer's output where qn_dropout of (seed, offset) would zero the element of `inner`, and divides the
 * others by 1 - dropout; never y. seed is needed where dropout is not 0 and layers above 1; offset absent: 0.
 *
 * What backward needs, and forward writes where asked (0 beyond a sequence's end):
 *   gates  lstm [L D, T, B, 4 H] i f g o; gru [L D, T, B, 4 H] r z n and r h + br of n's rows; reset=before [L D, T, B, 3 H]
 *   cells  lstm [L D, T, B, H], f c + i g before clip             inner [L - 1, T, B, D P]: y of all layers but the last, before dropout
 * dtypes: f64 f32 f16 bf16, all tensors of x's; bw, br, c0, ct, cells also f32 beside f16 and bf16. lengths: i32 or i64.
 * c goes from step to step in the computing type, h in that or in x's dtype.
 * Traps: other libraries order the gates otherwise (ONNX i o f g and z r n, Keras z r n), and transpose the matrices; quern/rnn.h
 * converts. ONNX's clip bounds what enters the gates, not c, and its GRU has reset=before. (Hochreiter, Schmidhuber 1997; Cho et al.
 * 2014.) */
qn_status qn_rnn_forward(qn_context *ctx, const qn_rnn *rnn, const qn_rnn_forward_args *args);
/* The gradients of sum(dy y) + sum(dht ht) + sum(dct ct) by x, w, r, bw, br, projection, h0, c0, each of its tensor's dims; dht, dct
 * absent: 0. x, y, w, r, projection, h0, c0, lengths, seed and offset are forward's; gates (lstm, gru), cells (lstm) and inner (layers
 * above 1) what it left. Beyond a sequence's end dy is not used and dx is 0. A cell state that clip bounds passes no gradient on.
 * dtypes: x's; dw, dr, dbw, dbr, dprojection, dct and dc0 also f32 beside f16 and bf16. */
qn_status qn_rnn_backward(qn_context *ctx, const qn_rnn *rnn, const qn_rnn_backward_args *args);

/* ---- training steps ----------------------------------------------------------------------- */

/* A list role is a pointer to n tensors. All lists of a call have the same length, and their i-th tensors the same dims. One call
 * processes the whole list. Scalars on the device are read when the work runs, so that a recorded step advances at each replay.
 *
 * Roles of sgd, adam and the other rules:
 *   params, grads   f32 f16 bf16 in any mixture, or all f64        velocity, m, v, peak   f32 (with f64: f64)
 *   step            i64: steps taken so far; new_step = t = step + 1, saturating at the largest i64
 *   rate            the learning rate
 *   scale           divides the gradients, g = grads / scale: a loss scale, or global_norm's divisor; absent: 1. A negative one
 *                   goes uphill: PyTorch's maximize
 *   found           if not 0, skip: every output is a copy of its input, whatever the gradients hold
 *   new_...         may share its input's memory, tensor by tensor
 *   copy            new_params rounded to another dtype: the weights that the next forward pass reads */
typedef struct qn_sgd_rule {
  uint64_t struct_size;
  double   momentum;                  /* 0: without velocity */
  int64_t  nesterov;                  /* 1: params -= rate (g + momentum new_velocity) */
  double   decay;                     /* weight decay: decay params is added to g */
  double   dampening;                 /* new_velocity adds (1 - dampening) g; the first step (step 0) all of g */
} qn_sgd_rule;
#define QN_SGD_INIT { sizeof(qn_sgd_rule), 0, 0, 0, 0 }
/* g = grads / scale + decay params      new_velocity = momentum velocity + g      new_params = params - rate new_velocity
 * With momentum 0, velocity and new_velocity must be absent, and new_params = params - rate g. */
qn_status qn_sgd(qn_context *ctx, const qn_sgd_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                      int64_t n_grads, const qn_tensor *velocity, int64_t n_velocity, const qn_tensor *step,
                      const qn_tensor *rate, const qn_tensor *scale, const qn_tensor *found, const qn_tensor *new_step,
                      const qn_tensor *new_params, int64_t n_new_params, const qn_tensor *new_velocity,
                      int64_t n_new_velocity, const qn_tensor *copy, int64_t n_copy);
typedef struct qn_adam_rule {
  uint64_t struct_size;
  double   beta1, beta2;              /* 0 <= beta < 1 */
  double   eps;                       /* >= 0 */
  double   decay;
} qn_adam_rule;
#define QN_ADAM_INIT { sizeof(qn_adam_rule), 0.9, 0.999, 1e-8, 0 }
/* new_m = beta1 m + (1 - beta1) g      new_v = beta2 v + (1 - beta2) g^2
 * new_params = params - rate (new_m / (1 - beta1^t)) / (sqrt(new_v / (1 - beta2^t)) + eps)
 * adam: g = grads / scale + decay params. adamw: g = grads / scale, and rate decay params is subtracted as well.
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

typedef struct qn_rmsprop_rule {
  uint64_t struct_size;
  double   alpha;                     /* 0 to 1 */
  double   momentum;                  /* 0: without velocity */
  double   eps, decay;
} qn_rmsprop_rule;
#define QN_RMSPROP_INIT { sizeof(qn_rmsprop_rule), 0.99, 0, 1e-8, 0 }
/* g = grads / scale + decay params      new_v = alpha v + (1 - alpha) g^2      new_velocity = momentum velocity + g / (sqrt(new_v) + eps)
 * new_params = params - rate new_velocity. With momentum 0, velocity and new_velocity must be absent. (As torch.optim.RMSprop.) */
qn_status qn_rmsprop(qn_context *ctx, const qn_rmsprop_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                     int64_t n_grads, const qn_tensor *v, int64_t n_v, const qn_tensor *velocity, int64_t n_velocity, const qn_tensor *step,
                     const qn_tensor *rate, const qn_tensor *scale, const qn_tensor *found, const qn_tensor *new_step,
                     const qn_tensor *new_params, int64_t n_new_params, const qn_tensor *new_v, int64_t n_new_v,
                     const qn_tensor *new_velocity, int64_t n_new_velocity, const qn_tensor *copy, int64_t n_copy);
typedef struct qn_adagrad_rule {
  uint64_t struct_size;
  double   slowing;                   /* rate / (1 + slowing step): PyTorch's lr_decay */
  double   eps, decay;
} qn_adagrad_rule;
#define QN_ADAGRAD_INIT { sizeof(qn_adagrad_rule), 0, 1e-10, 0 }
/* g = grads / scale + decay params      new_v = v + g^2      new_params = params - rate / (1 + slowing step) g / (sqrt(new_v) + eps)
 * (Duchi, Hazan, Singer 2011.) */
qn_status qn_adagrad(qn_context *ctx, const qn_adagrad_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                     int64_t n_grads, const qn_tensor *v, int64_t n_v, const qn_tensor *step, const qn_tensor *rate, const qn_tensor *scale,
                     const qn_tensor *found, const qn_tensor *new_step, const qn_tensor *new_params, int64_t n_new_params,
                     const qn_tensor *new_v, int64_t n_new_v, const qn_tensor *copy, int64_t n_copy);
typedef struct qn_lion_rule {
  uint64_t struct_size;
  double   beta1, beta2, decay;       /* 0 <= beta <= 1 */
} qn_lion_rule;
#define QN_LION_INIT { sizeof(qn_lion_rule), 0.9, 0.99, 0 }
/* g = grads / scale      new_params = params - rate (sign(beta1 m + (1 - beta1) g) + decay params)      new_m = beta2 m + (1 - beta2) g
 * sign(0) = 0, NaN stays. (Chen and others 2023.) */
qn_status qn_lion(qn_context *ctx, const qn_lion_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                  int64_t n_grads, const qn_tensor *m, int64_t n_m, const qn_tensor *step, const qn_tensor *rate, const qn_tensor *scale,
                  const qn_tensor *found, const qn_tensor *new_step, const qn_tensor *new_params, int64_t n_new_params,
                  const qn_tensor *new_m, int64_t n_new_m, const qn_tensor *copy, int64_t n_copy);
/* adam with new_peak = max(peak, new_v) in new_v's place below the fraction; NaN wins. (Reddi, Kale, Kumar 2018.) */
qn_status qn_amsgrad(qn_context *ctx, const qn_adam_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
                     int64_t n_grads, const qn_tensor *m, int64_t n_m, const qn_tensor *v, int64_t n_v, const qn_tensor *peak,
                     int64_t n_peak, const qn_tensor *step, const qn_tensor *rate, const qn_tensor *scale, const qn_tensor *found,
                     const qn_tensor *new_step, const qn_tensor *new_params, int64_t n_new_params, const qn_tensor *new_m, int64_t n_new_m,
                     const qn_tensor *new_v, int64_t n_new_v, const qn_tensor *new_peak, int64_t n_new_peak, const qn_tensor *copy,
                     int64_t n_copy);

typedef struct qn_lamb_rule {
  uint64_t struct_size;
  double   beta1, beta2, eps, decay;  /* as in qn_adam_rule */
  double   limit;                     /* > 0: the largest |params| / |u| that counts; inf: any */
} qn_lamb_rule;
#define QN_LAMB_INIT { sizeof(qn_lamb_rule), 0.9, 0.999, 1e-6, 0, INFINITY }
/* g = grads / scale, new_m and new_v as for adam      u = (new_m / (1 - beta1^t)) / (sqrt(new_v / (1 - beta2^t)) + eps) + decay params
 * new_params = params - rate r u      r = min(|params| / |u|, limit) for each tensor of the list, | | its norm; 1 where one of them is 0
 * Trap: implementations differ: here both means are corrected for their bias, and gradients are clipped only by scale (global_norm's
 * divisor). (You and others 2020.) */
qn_status qn_lamb(qn_context *ctx, const qn_lamb_rule *rule, const qn_tensor *params, int64_t n_params, const qn_tensor *grads,
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
 * norm, divisor: rank 0, f32 (with f64: f64). Pass divisor as the scale of an sgd or adam step to clip by the global norm and
 * unscale without another pass over the gradients. */
qn_status qn_global_norm(qn_context *ctx, const qn_norm_limit *limit, const qn_tensor *x, int64_t n_x, const qn_tensor *scale,
                         const qn_tensor *norm, const qn_tensor *divisor);

/* new_grads = grads / scale, f32 f16 bf16 as grads; or leave the list out (n 0) to get found only. found: rank 0, f32 (with f64: f64):
 * 1 if any element of grads is infinite or NaN, or would become so for a scale of 0 or NaN; else 0. */
qn_status qn_amp_unscale(qn_context *ctx, const qn_tensor *grads, int64_t n_grads, const qn_tensor *scale, const qn_tensor *found,
                         const qn_tensor *new_grads, int64_t n_new_grads);
typedef struct qn_loss_scaling {
  uint64_t struct_size;
  double   growth, backoff;           /* > 0, finite */
  int64_t  interval;                  /* >= 1: consecutive good steps before the scale grows */
} qn_loss_scaling;
#define QN_LOSS_SCALING_INIT { sizeof(qn_loss_scaling), 2, 0.5, 2000 }
#define QN_LEAST_LOSS_SCALE 1.1754943508222875e-38       /* f32's least normal number; a scale of 0 would make NaNs of gradients */
/* If found is 0: new_good = good + 1; when that reaches `interval`, new_scale = growth scale (unless infinite) and new_good = 0.
 * Else (also if found is NaN): new_scale = backoff scale, but at least QN_LEAST_LOSS_SCALE, and new_good = 0.
 * All rank 0 on the device: scale and found f32 or f64, good i64.
 * (Micikevicius and others 2018.) */
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
  double   p;                         /* 0 to 1: probability of a one, or of dropping */
} qn_chance;
#define QN_CHANCE_INIT { sizeof(qn_chance), 0.5 }

/* Element i, counted row-major whatever the strides, uses word i % 4 of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011) with
 *   key = seed      counter = (i / 4, offset)      each 64 bits, the low 32 first
 * on every backend. seed, offset: i64 scalars; offset absent: 0. On the device they are read when the work runs, so a recording that
 * also adds 1 to its offset draws new numbers at each replay. Calls with the same seed and different offsets never share a word.
 * y's dims and dtype must be given.
 *
 * rng_uniform:    y = min + (max - min) u, u = the word's upper 24 bits / 2^24, rounded once from f64: f64 f32 f16 bf16, the same
 *                 bits everywhere. Trap: rounding may give max: for 1 element in 2^12 of f16, 1 in 2^9 of bf16.
 * rng_normal:     y = mean + deviation r (cos t, sin t) for elements 2k and 2k + 1 (Box-Muller), with v and u from their words:
 *                 r = sqrt(-2 ln(v + 2^-24)), t = 2 pi u; |r| <= 5.77. Backends may differ in the last bits. f64 f32 f16 bf16.
 * rng_bernoulli:  y = 1 if word < 2^32 p, else 0: any dtype, the same bits everywhere. */
qn_status qn_rng_uniform(qn_context *ctx, const qn_uniform *uniform, const qn_tensor *seed, const qn_tensor *offset,
                         const qn_tensor *y);
qn_status qn_rng_normal(qn_context *ctx, const qn_gauss *gauss, const qn_tensor *seed, const qn_tensor *offset,
                        const qn_tensor *y);
qn_status qn_rng_bernoulli(qn_context *ctx, const qn_chance *chance, const qn_tensor *seed, const qn_tensor *offset,
                           const qn_tensor *y);

/* y = 0 if the element's word < 2^32 p (even if x is NaN), else x / (1 - p)
 * x, y [dims], f32 f16 bf16 in any mixture, or f64   mask [ceil(elements / 8)] u8: bit i % 8 of byte i / 8, lowest bit first, is 1
 * if element i was kept; bits beyond the last element are 0. */
qn_status qn_dropout(qn_context *ctx, const qn_chance *chance, const qn_tensor *x, const qn_tensor *seed,
                     const qn_tensor *offset, const qn_tensor *y, const qn_tensor *mask);
/* dx = 0 where the forward dropped, else dy / (1 - p). Needs the forward's mask, or its seed and offset to draw it again. */
qn_status qn_dropout_backward(qn_context *ctx, const qn_chance *chance, const qn_tensor *dy, const qn_tensor *mask,
                              const qn_tensor *seed, const qn_tensor *offset, const qn_tensor *dx);

/* ---- quantization ------------------------------------------------------------------------- */

/* The block size in each dim, the number of neighbours that share a scale; 0: the whole dim. For x [R, K]: 0,0 is one scale for the
 * tensor, 1,0 one per row, 0,1 one per column, 1,32 one per 32 elements of a row (the blocks of OCP's MX formats), 128,128 one per
 * tile. scale, zero_point and amax have x's rank and dims ceil(x's / block), 1 where block is 0; the last block may be partial.
 * If block is 0 in a dim and scale is given, scale's dim decides: 1 means the whole dim, else block = x's / scale's, which must
 * divide. One scale for the tensor may also be a rank-0 tensor.
 *
 * Formats: integers i8 and u8; OCP's 8-bit floats e4m3 and e5m2 (largest 448 and 57344). Every result is defined bit by bit: the
 * quotient or product is rounded to f32 (to f64 where x, or y, is f64), then to the result's dtype, to nearest even. Beyond
 * the format's range, infinities included, y saturates (i8: to -128 or 127). NaN stays NaN; in integers it counts as 0, so that y is
 * zero_point. There are no gradient ops: by quantize's x the caller chooses one (usually dy). */
typedef struct qn_blocks {
  uint64_t struct_size;
  int64_t  block[8];                  /* >= 0 */
} qn_blocks;
#define QN_BLOCKS_INIT { sizeof(qn_blocks), {0,0,0,0,0,0,0,0} }

/* y = round(x / scale) + zero_point, saturated      amax = max |x| over each block
 * x f32 f16 bf16, scale any of these or e8m0, amax f32; or x and amax f64, scale f64 or e8m0; or x i32, sums of integer products, the
 * rest as for f32, the quotient in f64. y i8 u8 e4m3 e5m2, its dtype must be given. zero_point: y's dtype, i8 or u8 only; absent: 0.
 * amax is for a delayed scale, computed for the next step: NaN if any element is, 0 over nothing.
 * Traps: scale divides, while some libraries' multiplies; a scale of 0 gives the largest value or NaN.
 * (As ONNX's QuantizeLinear, except that zero_point is added before saturating for every dtype.) */
qn_status qn_quantize(qn_context *ctx, const qn_blocks *blocks, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *zero_point,
                      const qn_tensor *y, const qn_tensor *amax);
/* y = (x - zero_point) scale
 * x i8 u8 e4m3 e5m2; scale and y f32 f16 bf16 in any mixture, or both f64; scale e8m0 with any y. y's default dtype: scale's, or
 * f32 if scale is e8m0. zero_point as above. */
qn_status qn_dequantize(qn_context *ctx, const qn_blocks *blocks, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *zero_point,
                        const qn_tensor *y);
/* As quantize, with scales computed from x; one pass over x where a block fits in registers.
 *   scale f32 (with f64: f64)   amax / the largest y (448, 57344, i8: 127); 1 where that is 0
 *   scale e8m0                  2^(floor(log2 amax) - emax), emax 8 for e4m3, 15 for e5m2, 6 for i8; at least 2^-127; NaN where amax
 *                               is NaN or infinite. With block 32: the conversion of OCP Microscaling Formats (MX) 1.0, 6.3
 * y i8 e4m3 e5m2; scale f32 unless given. With zero_point, i8 or u8 as y, whose least is then q, the range of x is covered instead,
 *   low = min(0, min x), high = max(0, max x)      scale f32 (with f64: f64)   (high - low) / 255; 1 where that is 0
 *   zero_point = round(q - low / scale), NaN counts as 0, saturated      y = round(x / scale) + zero_point
 * as ONNX's DynamicQuantizeLinear; y u8 wants it. A block that holds NaN or an infinity dequantizes to NaN throughout.
 * Trap: i8 are integers here; MXINT8 reads them as 64ths, with scales 64 times these. */
qn_status qn_quantize_dynamic(qn_context *ctx, const qn_blocks *blocks, const qn_tensor *x, const qn_tensor *y, const qn_tensor *scale,
                              const qn_tensor *amax, const qn_tensor *zero_point);

/* ---- pooling ------------------------------------------------------------------------------ */

typedef struct qn_pool {
  uint64_t struct_size;
  int64_t  window[3];                 /* >= 1; 0: the whole extent (global pooling) */
  int64_t  stride[3];                 /* >= 1; 0: the window's extent */
  int64_t  dilation[3];               /* >= 1 */
  int64_t  pad_before[3], pad_after[3];   /* >= 0 */
  int64_t  ceil_mode;                 /* 1: P rounds up; a window never starts beyond the input plus left padding */
  int64_t  include_pad;               /* average: 1 counts the declared padding in the divisor, but never what ceil_mode adds */
  double   p;                         /* lp: the exponent, >= 1 */
} qn_pool;
#define QN_POOL_INIT { sizeof(qn_pool), {0,0,0}, {0,0,0}, {1,1,1}, {0,0,0}, {0,0,0}, 0, 1, 2.0 }

/* x [N, C, spatial]   y, indices [N, C, P], 1 to 3 spatial dims, P as in convolution; f64 f32 f16 bf16, y of x's dtype, dx of dy's.
 * pool_max, also i8 u8: NaN wins; ties go to the first in row-major order; a window wholly in padding gives -Inf, the least integer.
 *   indices: u8 is the tap's number in the window (at most 255 taps), i32 and i64 the position in x's spatial plane, both row-major;
 *   255 or -1 for a window wholly in padding.
 * pool_average, also i8 u8, whose quotient is exact but for one rounding to the nearest integer, ties to even: y = sum x / taps, taps in
 * padding counted if include_pad; a window wholly in padding gives 0.
 * pool_max_backward takes indices, or x to find them again; an out-of-range index adds nowhere. */
qn_status qn_pool_max(qn_context *ctx, const qn_pool *pool, const qn_tensor *x, const qn_tensor *y,
                      const qn_tensor *indices);
qn_status qn_pool_max_backward(qn_context *ctx, const qn_pool *pool, const qn_tensor *dy, const qn_tensor *indices,
                               const qn_tensor *x, const qn_tensor *dx);
qn_status qn_pool_average(qn_context *ctx, const qn_pool *pool, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pool_average_backward(qn_context *ctx, const qn_pool *pool, const qn_tensor *dy, const qn_tensor *dx);

/* pool_lp: y = (sum |x|^p)^(1/p) over the taps inside x, 0 if there are none; intermediates neither overflow nor underflow. NaN wins.
 * pool_lp_backward takes x and the forward's y: dx = the sum of dy sign(x) (|x|/y)^(p-1) over the windows that hold the element;
 * windows with y = 0 add 0. */
qn_status qn_pool_lp(qn_context *ctx, const qn_pool *pool, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pool_lp_backward(qn_context *ctx, const qn_pool *pool, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *y,
                              const qn_tensor *dx);

typedef struct qn_patches {
  uint64_t struct_size;
  int64_t  window[3], stride[3], dilation[3];   /* >= 1 */
  int64_t  pad_before[3], pad_after[3];         /* >= 0 */
} qn_patches;
#define QN_PATCHES_INIT { sizeof(qn_patches), {1,1,1}, {1,1,1}, {1,1,1}, {0,0,0}, {0,0,0} }
/* x [N, C, X]   y [N, C taps, P], 1 to 3 spatial dims, P as in convolution; f64 f32 f16 bf16, y of x's dtype.
 * y[n, c taps + r, p] = tap r (row-major) of window p of channel c; 0 in padding: im2col, so that a convolution is a product of
 * w [K, C taps] and y. Where y is packed its P are one dim of a matrix. The gradient is col2im: it needs dx's dims given. */
qn_status qn_unfold(qn_context *ctx, const qn_patches *patches, const qn_tensor *x, const qn_tensor *y);
qn_status qn_unfold_backward(qn_context *ctx, const qn_patches *patches, const qn_tensor *dy, const qn_tensor *dx);

typedef struct qn_adaptive {
  uint64_t struct_size;
  int64_t  size[3];                   /* P, in each spatial dim; 0: take it from y (for a gradient: from dy) */
} qn_adaptive;
#define QN_ADAPTIVE_INIT { sizeof(qn_adaptive), {0,0,0} }
/* x [N, C, X]   y, indices [N, C, P], 1 to 3 spatial dims; f64 f32 f16 bf16, forward also i8 u8, y as x. In each dim window i begins at
 * floor(i X / P) and ends before ceil((i + 1) X / P), so the windows cover x whatever P is; neighbours may overlap by one element.
 * Maxima as in pool_max; indices (i32, i64) are positions in x's spatial plane, and one outside its window adds nowhere.
 * The gradients need dx's dims given: X cannot be inferred from dy. */
qn_status qn_pool_adaptive_max(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *x, const qn_tensor *y,
                               const qn_tensor *indices);
qn_status qn_pool_adaptive_max_backward(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *dy, const qn_tensor *indices,
                                        const qn_tensor *dx);
qn_status qn_pool_adaptive_average(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pool_adaptive_average_backward(qn_context *ctx, const qn_adaptive *adaptive, const qn_tensor *dy, const qn_tensor *dx);

/* ---- resampling --------------------------------------------------------------------------- */

typedef struct qn_resampling {
  uint64_t struct_size;
  int64_t  size[3];                   /* P, in each spatial dim; 0: take it from y (for the gradient: from dy) */
  int64_t  mode;                      /* QN_RESAMPLE_... */
  int64_t  grid;                      /* QN_GRID_... */
  int64_t  rounding;                  /* QN_ROUNDING_...: nearest's, of a coordinate */
  double   coefficient;               /* cubic's a; finite */
  int64_t  antialias;                 /* 1: linear and cubic by half_pixel widen their kernel where y has fewer elements than x */
  int64_t  up[3], down[3];            /* a scale factor of up/down in each spatial dim; up 0: none (with down > 1: 1) */
} qn_resampling;
#define QN_RESAMPLING_INIT { sizeof(qn_resampling), {0,0,0}, 0, 0, 0, -0.75, 0, {0,0,0}, {1,1,1} }
enum { QN_RESAMPLE_NEAREST = 0, QN_RESAMPLE_LINEAR = 1, QN_RESAMPLE_CUBIC = 2 };
enum { QN_GRID_HALF_PIXEL = 0, QN_GRID_ALIGN_CORNERS = 1, QN_GRID_ASYMMETRIC = 2 };
enum { QN_ROUNDING_AUTO = 0,          /* asymmetric: floor, else prefer_ceil */
       QN_ROUNDING_PREFER_FLOOR = 1,  /* to the nearest, halves down */
       QN_ROUNDING_PREFER_CEIL = 2,   /* to the nearest, halves up */
       QN_ROUNDING_FLOOR = 3, QN_ROUNDING_CEIL = 4 };
/* x [N, C, X]   y [N, C, P], 1 to 3 spatial dims; f64 f32 f16 bf16, y of x's dtype. In each dim y's element i is at x coordinate
 *   half_pixel (i + 1/2) X/P - 1/2    align_corners i (X - 1)/(P - 1), 0 where P is 1    asymmetric i X/P
 * With a scale factor P = floor(X up/down), which size and y must agree with, and X/P is down/up here and below: PyTorch's scale_factor
 * (recompute_scale_factor off), ONNX's scales; align_corners takes no more than P from it, as PyTorch's (ONNX's divides by X up/down - 1,
 * which no attribute gives). It is a fraction so that places are exact: 0.7 is up=7 down=10, 1/3 is down=3 alone.
 * nearest takes one element, at the coordinate rounded: floor((i + 1/2) X/P) by half_pixel, floor(i X/P) by asymmetric, unless rounding
 * says another (ONNX's nearest_mode, whose default is prefer_floor). linear takes the
 * two around the coordinate, cubic four, by Keys' kernel with a = coefficient (PyTorch's and ONNX's -3/4, some
 * others' -1/2); elements beyond the edge repeat the edge. With antialias the kernel is X/P times as wide where P < X, elements beyond the
 * edge are left out, and weights are divided by their sum: PyTorch's antialias (whose cubic has a = -1/2), ONNX's with exclude_outside.
 * Weights multiply over
 * the dims (linear is bilinear in 2 dims, trilinear in 3); a tap of weight 0 is not read. The gradient needs dx's dims given: X
 * cannot be inferred from dy. It gathers, so its bits are always the same. */
qn_status qn_resample(qn_context *ctx, const qn_resampling *resampling, const qn_tensor *x, const qn_tensor *y);
qn_status qn_resample_backward(qn_context *ctx, const qn_resampling *resampling, const qn_tensor *dy, const qn_tensor *dx);

/* ---- sampling: a spatial transformer ------------------------------------------------------ */

typedef struct qn_sampling {
  uint64_t struct_size;
  int64_t  align_corners;             /* -1 and 1 are, with 0, the outer edges; with 1, the centres of the first and last element */
  int64_t  mode;                      /* QN_RESAMPLE_NEAREST, QN_RESAMPLE_LINEAR or QN_RESAMPLE_CUBIC */
  int64_t  padding;                   /* QN_SAMPLE_... */
} qn_sampling;
#define QN_SAMPLING_INIT { sizeof(qn_sampling), 0, 1, 0 }
enum { QN_SAMPLE_ZEROS = 0, QN_SAMPLE_BORDER = 1, QN_SAMPLE_REFLECTION = 2 };
/* theta [N, 2, 3]   grid [N, H, W, 2], or theta [N, 3, 4]   grid [N, D, H, W, 3]; f64, or f32 f16 bf16 mixed
 *   grid[n, h, w] = theta[n] (x, y, 1)      x = (2w + 1)/W - 1, or with align_corners 2w/(W - 1) - 1, 0 where W is 1; y from h and H
 * (in 3-D: theta (x, y, z, 1), z from d). grid's dims must be given: they cannot be inferred from theta. mode and padding are
 * ignored. dtheta [N, 2, 3] or [N, 3, 4] = the sum over the points of dy (x, y, 1). */
qn_status qn_affine_grid(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *theta, const qn_tensor *grid);
qn_status qn_affine_grid_backward(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *dy, const qn_tensor *dtheta);
/* x [N, C, H, W]   grid [N, P, Q, 2]   y [N, C, P, Q], or x [N, C, D, H, W]   grid [N, P, Q, R, 3]   y [N, C, P, Q, R]; f64, or f32
 * f16 bf16: y and dx of x's dtype, grid any of the three (bf16 is too coarse for most images). A point's first coordinate is along
 * W, the second along H, the third along D. In a dim of extent n, coordinate g is at position
 *   ((g + 1) n - 1)/2, or with align_corners (g + 1)(n - 1)/2
 * zeros: x is 0 outside. border: a point outside moves to the first or last element. reflection: it is mirrored at the ends (the
 * outer edges, or with align_corners the centres of the first and last element) until inside, then clamped as by border. nearest
 * takes one element, halves to even; linear the two around the point in each dim; a tap of weight 0 is not read. cubic takes four in
 * each dim, weighted by Keys' kernel with coefficient -0.75; not the point but each of its taps is moved or mirrored, and the point
 * has a slope everywhere. A point that is NaN, or infinite where the mode is cubic or the padding reflection, gives NaN and adds
 * nothing to dx.
 * backward_data: dx = the sum of dy times weight; dx's dims must be given. Points are sorted by position, so the bits are always
 * the same. backward_grid: dgrid = the sum over channels of dy times the slope of x between its taps (at a tap: the slope towards the
 * next one); 0 for nearest, and for a point moved to the border or on it. (Jaderberg and others 2015.) */
qn_status qn_grid_sample(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *x, const qn_tensor *grid, const qn_tensor *y);
qn_status qn_grid_sample_backward_data(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *dy, const qn_tensor *grid,
                                       const qn_tensor *dx);
qn_status qn_grid_sample_backward_grid(qn_context *ctx, const qn_sampling *sampling, const qn_tensor *dy, const qn_tensor *x,
                                       const qn_tensor *grid, const qn_tensor *dgrid);

/* ---- transforms: the same values elsewhere, any dtype, bits unchanged --------------------- */

typedef struct qn_permutation {
  uint64_t struct_size;
  int64_t  axis[QN_MAX_RANK];         /* y's dim i is x's dim axis[i]; entries beyond the rank are ignored */
} qn_permutation;
#define QN_PERMUTATION_INIT { sizeof(qn_permutation), {0,1,2,3,4,5,6,7} }
typedef struct qn_slicing {
  uint64_t struct_size;
  int64_t  start[QN_MAX_RANK];        /* >= 0 */
  int64_t  length[QN_MAX_RANK];       /* 0: to the end; backwards: to the beginning */
  int64_t  step[QN_MAX_RANK];         /* not 0; negative: backwards (with start at the last, a flip) */
} qn_slicing;
#define QN_SLICING_INIT { sizeof(qn_slicing), {0,0,0,0,0,0,0,0}, {0,0,0,0,0,0,0,0}, {1,1,1,1,1,1,1,1} }
typedef struct qn_padding {
  uint64_t struct_size;
  int64_t  pad_before[QN_MAX_RANK], pad_after[QN_MAX_RANK];   /* negative: cut off as many */
  double   value;                     /* for QN_PAD_CONSTANT; converted to the dtype as by cast */
  int64_t  mode;                      /* QN_PAD_... */
} qn_padding;
#define QN_PADDING_INIT { sizeof(qn_padding), {0,0,0,0,0,0,0,0}, {0,0,0,0,0,0,0,0}, 0.0, 0 }
enum { QN_PAD_CONSTANT = 0,           /* value */
       QN_PAD_REFLECT = 1,            /* x mirrored without repeating its edge: c b [a b c] b a; each pad is less than x's dim */
       QN_PAD_REPLICATE = 2,          /* x's edge repeated: a a [a b c] c c */
       QN_PAD_WRAP = 3 };             /* x again and again: b c [a b c] a b */

qn_status qn_copy(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);         /* same dims and dtype */
/* y.dim[i] = x.dim[axis[i]] */
qn_status qn_permute(qn_context *ctx, const qn_permutation *permutation, const qn_tensor *x, const qn_tensor *y);
/* y[i] = x[start + i step] in each dim */
qn_status qn_slice(qn_context *ctx, const qn_slicing *slicing, const qn_tensor *x, const qn_tensor *y);
/* y.dim[i] = pad_before[i] + x.dim[i] + pad_after[i]. The gradient: dx = the sum of dy over the places that x was copied to, floats
 * only; dx's dims are dy's less the pads. */
qn_status qn_pad(qn_context *ctx, const qn_padding *padding, const qn_tensor *x, const qn_tensor *y);
qn_status qn_pad_backward(qn_context *ctx, const qn_padding *padding, const qn_tensor *dy, const qn_tensor *dx);
/* y = the n_x >= 1 tensors x end to end along `axis` (-1: the last), the only dim in which they may differ. */
qn_status qn_concat(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, int64_t n_x, const qn_tensor *y);

/* ---- elements by index -------------------------------------------------------------------- */

/* x [A..., L, B...]  indices [I...], i32 or i64   y [A..., I..., B...]: y[a, i, b] = x[a, indices[i], b], where L is x's dim `axis`
 * (default 0; -1: the last). An embedding lookup is axis 0. Any dtype, bits unchanged; an index outside 0..L-1 reads as 0.
 * scatter_add, its gradient: dx[a, l, b] = the sum of dy[a, i, b] over the i with indices[i] = l, 0 if there are none; an index out
 * of range adds nowhere. dx's dims must be given: L is in neither dy nor indices. Floats f64 f32 f16 bf16, accumulated in f32 (f64 in
 * f64), always the same bits. dx may be wider or narrower than dy. */
qn_status qn_gather(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *indices, const qn_tensor *y);
qn_status qn_scatter_add(qn_context *ctx, const qn_axis *axis, const qn_tensor *dy, const qn_tensor *indices, const qn_tensor *dx);
#define QN_GATHER_INIT { sizeof(qn_axis), 0 }

/* An index for each element. x [dims]   indices, y [as many dims; but for `axis` no larger than x's]:
 *   y[..., i, ...] = x[..., indices[..., i, ...], ...]      any dtype, bits unchanged; an index out of range reads as 0
 * (torch.gather, ONNX's GatherElements, take_along_axis; negative indices are out of range). The gradient by x is scatter_elements
 * with mode add of dy into zeros. */
qn_status qn_gather_elements(qn_context *ctx, const qn_axis *axis, const qn_tensor *x, const qn_tensor *indices, const qn_tensor *y);

typedef struct qn_scattering {
  uint64_t struct_size;
  int64_t  axis;                      /* scatter_elements; -1: the last */
  int64_t  mode;                      /* QN_SCATTER_... */
} qn_scattering;
#define QN_SCATTERING_INIT { sizeof(qn_scattering), 0, 0 }
enum { QN_SCATTER_NONE = 0, QN_SCATTER_ADD = 1, QN_SCATTER_MUL = 2, QN_SCATTER_MAX = 3, QN_SCATTER_MIN = 4 };
/* y = x, where updates replace the element that an index names, or join it by mode; y may be x. x, y [dims], updates of x's dtype.
 *   scatter_elements   indices, updates [as many dims; but for `axis` no larger than x's]: to y[..., indices[..., i, ...], ...]
 *   scatter_nd         indices [Q..., K]   updates [Q..., x's dims from K on]: to y[indices[q, 0], ..., indices[q, K - 1], ...]
 * none: any dtype; of several updates to one element the last in row-major order stays. add, mul, max, min: numbers; floats are joined
 * in f32 (f64) and rounded once, integers wrap, NaN wins; always the same bits. An index out of range writes nowhere. */
qn_status qn_scatter_elements(qn_context *ctx, const qn_scattering *scattering, const qn_tensor *x, const qn_tensor *indices,
                              const qn_tensor *updates, const qn_tensor *y);
qn_status qn_scatter_nd(qn_context *ctx, const qn_scattering *scattering, const qn_tensor *x, const qn_tensor *indices,
                        const qn_tensor *updates, const qn_tensor *y);

typedef struct qn_one_hot_encoding {
  uint64_t struct_size;
  int64_t  axis;                      /* the new dim of y; -1: the last */
  int64_t  depth;                     /* y's extent there; must be set */
  double   on, off;                   /* converted to y's dtype as by cast */
} qn_one_hot_encoding;
#define QN_ONE_HOT_INIT { sizeof(qn_one_hot_encoding), -1, 0, 1.0, 0.0 }
/* indices [A..., B...], i32 or i64   y [A..., depth, B...], any dtype (default f32): `on` where the position along axis equals the
 * index, else `off`. An index out of range gives `off` throughout. */
qn_status qn_one_hot(qn_context *ctx, const qn_one_hot_encoding *encoding, const qn_tensor *indices, const qn_tensor *y);

typedef struct qn_ranking {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
  int64_t  k;                         /* 1 to x's extent along axis */
  int64_t  smallest;                  /* 1: the k smallest, ascending */
} qn_ranking;
#define QN_TOP_K_INIT { sizeof(qn_ranking), -1, 1, 0 }
/* x [dims]   y, indices [dims, k along axis]: the k largest in descending order, and their positions along axis (i32 or i64; NULL: not
 * wanted). Among equal elements (-0 equals 0) the lower position comes first. NaN is larger than any number. Floats f64 f32 f16
 * bf16, i8 u8 i32 i64; y of x's dtype. With k = x's extent this sorts. */
qn_status qn_top_k(qn_context *ctx, const qn_ranking *ranking, const qn_tensor *x, const qn_tensor *y, const qn_tensor *indices);

typedef struct qn_sorting {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
  int64_t  descending;                /* 1: the largest first */
} qn_sorting;
#define QN_SORTING_INIT { sizeof(qn_sorting), -1, 0 }
/* x, y, indices [dims]: x along axis in ascending order, and where each element was (i32 or i64; NULL: not wanted). Equal elements (-0
 * equals 0) keep their order; NaN is larger than any number. Dtypes as top_k's. */
qn_status qn_sort(qn_context *ctx, const qn_sorting *sorting, const qn_tensor *x, const qn_tensor *y, const qn_tensor *indices);

/* y [dims] = start + i step at place i along axis, in f64, then converted to y's dtype (floats f64 f32 f16 bf16, i8 u8 i32 i64) as by
 * cast. A tensor of one value: qn_cast of a scalar. */
qn_status qn_iota(qn_context *ctx, const qn_axis *axis, const qn_tensor *start, const qn_tensor *step, const qn_tensor *y);

typedef struct qn_scan {
  uint64_t struct_size;
  int64_t  axis;                      /* -1: the last */
  int64_t  exclusive;                 /* 1: y[i] leaves out x[i], so the first y is 0 */
  int64_t  reverse;                   /* 1: sum from the end */
} qn_scan;
#define QN_SCAN_INIT { sizeof(qn_scan), -1, 0, 0 }
/* x, y [dims]: y[i] = x[0] + ... + x[i] along axis (exclusive: to x[i - 1]; reverse: x[i] + ... + x[last]). Floats: x and y f32 f16
 * bf16 in any mixture, or both f64. Integers i8 u8 i32 i64 wrap in y's dtype, which is i32, i64 or x's own. The gradient is
 * cumsum of dy in the other direction. */
qn_status qn_cumsum(qn_context *ctx, const qn_scan *scan, const qn_tensor *x, const qn_tensor *y);
/* The same with products (the first of an exclusive one is 1), and with maxima and minima (-Inf or Inf, or the least or the largest
 * integer; NaN wins; an integer y is of x's dtype). */
qn_status qn_cumprod(qn_context *ctx, const qn_scan *scan, const qn_tensor *x, const qn_tensor *y);
qn_status qn_cummax(qn_context *ctx, const qn_scan *scan, const qn_tensor *x, const qn_tensor *y);
qn_status qn_cummin(qn_context *ctx, const qn_scan *scan, const qn_tensor *x, const qn_tensor *y);

/* ---- reductions --------------------------------------------------------------------------- */

typedef struct qn_axes {
  uint64_t struct_size;
  uint64_t mask;                      /* bit i: reduce dim i; 0: all dims */
  int64_t  last;                      /* argmax, argmin; 1: of equals the last */
  int64_t  correction;                /* variance: sums are divided by n - correction */
} qn_axes;
#define QN_AXES_INIT     { sizeof(qn_axes), 0, 0, 0 }
#define QN_VARIANCE_INIT { sizeof(qn_axes), 0, 0, 1 }

/* x [dims]   y [dims, 1 where reduced]. Floats f64 f32 f16 bf16; sum, prod, max, min, argmax, argmin also i8 u8 i32 i64 (sum and prod
 * wrap in y's dtype, which is i32, i64 or x's own). y: x's dtype, or for a float x any float.
 * Over nothing: sum 0, prod 1, max -Inf, min +Inf (integers: the least and largest value), mean NaN, norms and amax 0,
 * argmax and argmin -1. max, min, amax: NaN wins. argmax, argmin: y is i32 or i64, the position, row-major in the reduced dims, of
 * the first NaN, else of the first extreme; with last=1 of the last.
 * The gradients are pointwise: of sum and mean a broadcast, of norm2 x dy / y, etc. */
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
/* Of bool. Over nothing: any is false, all is true. */
qn_status qn_reduce_any(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
qn_status qn_reduce_all(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
/* y = ln sum e^x of floats, without overflow of e^x; over nothing -Inf. */
qn_status qn_reduce_logsumexp(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);
/* y = sum (x - mean x)^2 / (n - correction) of floats, n - correction not below 0; about the mean, never as a difference of squares.
 * correction: 1 (QN_VARIANCE_INIT, as PyTorch) is the unbiased variance, 0 (NumPy) that of a population. Over nothing, or one element
 * less 1: NaN. */
qn_status qn_reduce_variance(qn_context *ctx, const qn_axes *axes, const qn_tensor *x, const qn_tensor *y);

/* ---- pointwise ---------------------------------------------------------------------------- */

/* Operands have y's rank, or fewer dims, then the last, each as y's or 1 (broadcast); of rank 0: a scalar, converted. f16, bf16 and f32
 * mix freely and compute in f32; f64 mixes with nothing else. Integers (i8 u8 i32 i64) go with their own dtype only, in add, sub, mul,
 * div, mod, fmod, min, max, comparisons, select, neg, abs, sign, and wrap; bool in eq, ne, min, max, select. Comparisons
 * give bool (0 or 1), the dtype of logical_...'s operands and select's c; cast takes all.
 * NaN propagates, through min, max, relu and clip too; comparisons with NaN are false, except ne.
 * y may share the memory of an input of the same dtype and strides. */
qn_status qn_add(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a + b */
qn_status qn_sub(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a - b */
qn_status qn_mul(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a b */
/* y = a / b; of integers towards zero, as C and ONNX do, and 0 where b is 0. PyTorch's quotient of integers is a float: cast first. */
qn_status qn_div(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
/* y = the smaller; NaN if either is */
qn_status qn_min(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
/* y = the larger; NaN if either is */
qn_status qn_max(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
qn_status qn_pow(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = a^b as C's pow */
/* The remainders of division: mod's has b's sign (Python, NumPy, torch.remainder, ONNX's Mod), fmod's a's (C, torch.fmod, ONNX's Mod with
 * fmod=1). Where b is 0, NaN; of integers 0. mod(a, inf) is a, or inf if a < 0. */
qn_status qn_mod(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
qn_status qn_fmod(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
/* y = floor(a / b) of integers i8 u8 i32 i64; 0 where b is 0 */
qn_status qn_floor_divide(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
/* Of integers i8 u8 i32 i64, bit by bit. For bool: logical_and, logical_or, ne, logical_not. */
qn_status qn_bitwise_and(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = the bits set in both */
qn_status qn_bitwise_or(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);  /* y = the bits set in either */
/* y = the bits set in one of them */
qn_status qn_bitwise_xor(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
qn_status qn_bitwise_not(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the bits not set in x */
/* y = a 2^b, wrapped; y = floor(a / 2^b). A b that is negative or not below the dtype's number of bits moves all bits out: y = 0, and
 * of shift_right -1 where a < 0. */
qn_status qn_shift_left(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);
qn_status qn_shift_right(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y);

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
/* y = x in y's dtype, rounded to nearest even; beyond its range f32, f16 and bf16 become Inf, 8-bit floats and integers saturate.
 * NaN to an integer is 0; to bool all but 0 is true.
 * Trap: C, ONNX and PyTorch truncate floats on the way to integers, so that 2.7 gives 2; here it gives 3. qn_trunc first gives theirs. */
qn_status qn_cast(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);

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
qn_status qn_trunc(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the integer part of x */
qn_status qn_log1p(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = ln(1 + x), exact near 0 */
qn_status qn_expm1(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = e^x - 1, exact near 0 */
qn_status qn_exp2(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = 2^x */
qn_status qn_log2(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the logarithm of x to base 2 */
qn_status qn_log10(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the logarithm of x to base 10 */
qn_status qn_tan(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = tan x */
qn_status qn_asin(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = arcsin x; NaN beyond -1 to 1 */
qn_status qn_acos(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = arccos x; NaN beyond -1 to 1 */
qn_status qn_atan(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = arctan x */
qn_status qn_sinh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = sinh x */
qn_status qn_cosh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = cosh x */
qn_status qn_asinh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the inverse of sinh at x */
qn_status qn_acosh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the inverse of cosh at x; NaN below 1 */
qn_status qn_atanh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);  /* y = the inverse of tanh at x; NaN beyond -1 to 1 */
/* y bool: whether x (f64 f32 f16 bf16) is NaN; whether it is neither infinite nor NaN */
qn_status qn_isnan(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);
qn_status qn_isfinite(qn_context *ctx, const qn_tensor *x, const qn_tensor *y);

/* Activations. What alpha and beta mean: leaky_relu alpha = slope; elu alpha; silu, softplus beta;
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

/* y = x > 0 ? x : slope x, where slope is a tensor: one element, or one per channel as 1xCx1x1 */
qn_status qn_prelu(qn_context *ctx, const qn_tensor *x, const qn_tensor *slope, const qn_tensor *y);

/* Their gradients: dx = dy f'(x). At a kink relu, leaky_relu and elu take the derivative from below: relu'(0) = 0. clip gives 0 at
 * both ends. */
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

/* ---- collectives: tensors joined with those of the other ranks of a group (group.h) -------- */

typedef struct qn_collective {        /* each call reads only what is named with it */
  uint64_t struct_size;
  int64_t  reduction;                 /* QN_JOIN_... */
  int64_t  ranks;                     /* how many the group has: they decide dims, so a problem line says them */
  int64_t  root;                      /* broadcast */
  int64_t  peer;                      /* send, recv: the other rank */
} qn_collective;
#define QN_COLLECTIVE_INIT { sizeof(qn_collective), 0, 1, 0, 0 }
enum { QN_JOIN_SUM = 0, QN_JOIN_AVG = 1, QN_JOIN_MAX = 2, QN_JOIN_MIN = 3, QN_JOIN_PROD = 4 };

/* With P ranks, of which this is r; x[q] is that of rank q. x and y are lists of n tensors, y[k] for x[k]; a list goes as one message.
 *   all_reduce      y = x[0] + ... + x[P-1], the same on every rank, in ranks' order: the same bits however a list is divided
 *   reduce_scatter  y = that sum's share r of P along dim 0, which P must divide
 *   all_gather      y = x[0], ..., x[P-1] one after the other along dim 0
 *   broadcast       y = x[root]; other ranks' x is not read
 *   all_to_all      share q of y along dim 0 = share r of x[q]
 *   send, recv      recv's y = x of the send by `peer`, which names this rank as its peer; send's y = its own x. recv's x is not read
 * reduction: sum; avg, the sum divided by P; max, min; prod. With sum and avg each x is first multiplied by its rank's scale (rank 0;
 * NULL: 1). f16 and bf16 are added up in f32 and rounded once; integers wrap, and have neither avg nor scale; NaN wins. The others move
 * bits of any dtype. attr: reduction (all_reduce, reduce_scatter), ranks (reduce_scatter, all_gather, all_to_all), root, peer.
 *
 * y may be x in all_reduce, broadcast, send and recv. Without a group a context is a group of one rank: y = scale x, or y = x.
 * Every rank calls the same collectives on tensors of the same dtypes and dims in the same order; strides may differ. A rank that
 * calls another one, is late by the group's deadline, or dies makes the call fail on the others, and from then on all calls of the
 * group (QN_DEVICE, with a sentence that names the rank; of two problems it shows both lines). send waits for recv where the message
 * is long: of two ranks that exchange messages one sends first, and the other receives first. A collective is not measured by
 * tune=measure: ranks might choose differently. */
qn_status qn_all_reduce(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *scale,
                        const qn_tensor *y, int64_t n_y);
qn_status qn_reduce_scatter(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *scale,
                            const qn_tensor *y, int64_t n_y);
qn_status qn_all_gather(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *y, int64_t n_y);
qn_status qn_broadcast(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *y, int64_t n_y);
qn_status qn_all_to_all(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *y, int64_t n_y);
qn_status qn_send(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *y, int64_t n_y);
qn_status qn_recv(qn_context *ctx, const qn_collective *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *y, int64_t n_y);

#ifdef __cplusplus
}
#endif
#endif
