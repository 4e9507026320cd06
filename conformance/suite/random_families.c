/* random_families.c -- random problems of the memory-bound families: norms, losses, resampling, sampling, selection, transforms,
 * quantization, training steps, recurrent networks. A line's settings follow its `;`. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

struct line {
  struct qc_dice *dice;
  const char *dtype, *exact;            /* dtype: of the problem's floats; exact: the computing type, f64 or f32 */
  char   text[3072];
  size_t n;
};

static int roll(struct line *l, int sides) { return (int)qc_roll(l->dice, sides); }
static bool now_and_then(struct line *l) { return roll(l, 4) == 0; }

static void put(struct line *l, const char *format, ...)
{
  va_list args;
  va_start(args, format);
  l->n += (size_t)vsnprintf(l->text + l->n, l->n < sizeof l->text ? sizeof l->text - l->n : 0, format, args);
  va_end(args);
}

/* Near the widths of vectors and tiles; few elements in total if there are many dims. Often 1 or 2: then strides are ambiguous,
 * groups have one element, and halves of a tile are empty. */
static int64_t extent(struct line *l, int rank)
{
  if (now_and_then(l))
    return 1 + roll(l, 2);
  static const int64_t extents[] = {1, 2, 3, 5, 7, 8, 9, 4, 6, 13, 16, 17, 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, 257};
  return extents[roll(l, rank < 2 ? 23 : rank < 3 ? 20 : rank < 4 ? 12 : 9)];
}

static void extents(struct line *l, int rank, int64_t *dim)
{
  for (int k = 0; k < rank; k++)
    dim[k] = extent(l, rank);
}

/* dtype/dims, now and then with another dim order in memory, with gaps, or minimally aligned. */
static void put_tensor(struct line *l, const char *dtype, int rank, const int64_t *dim)
{
  int order[QN_MAX_RANK];
  int64_t stride[QN_MAX_RANK], step = 1;
  bool turned = rank > 1 && now_and_then(l), spread = rank > 0 && roll(l, 6) == 0;
  put(l, "%s", dtype);
  for (int k = 0; k < rank; k++)
    put(l, "%c%lld", k ? 'x' : '/', (long long)dim[k]);
  for (int k = 0; k < rank; k++)
    order[k] = k;
  for (int k = rank - 1; k > 0 && turned; k--) {
    int other = roll(l, k + 1), kept = order[k];
    order[k] = order[other];
    order[other] = kept;
  }
  int gap = spread ? roll(l, rank) : -1;        /* the dim whose stride is enlarged */
  for (int k = rank - 1; k >= 0; k--) {
    stride[order[k]] = step += order[k] == gap ? step * (1 + roll(l, 2)) : 0;
    step *= dim[order[k]] ? dim[order[k]] : 1;
  }
  for (int k = 0; k < rank && (turned || spread); k++)
    put(l, "%c%lld", k ? ':' : '/', (long long)stride[k]);
  if (roll(l, 5) == 0)
    put(l, "@%d", (int)qn_dtype_bytes(qc_dtype_named(dtype, strlen(dtype))));
}

static void tensor(struct line *l, const char *role, const char *dtype, int rank, const int64_t *dim)
{
  put(l, " %s=", role);
  put_tensor(l, dtype, rank, dim);
}

static const char *one_of(struct line *l, int n, const char *const *names) { return names[roll(l, n)]; }

/* ---- norms -------------------------------------------------------------------------------- */

static void norm(struct line *l)
{
  static const char *const names[] = {"layer_norm", "rms_norm", "batch_norm", "batch_norm_inference",
                                      "layer_norm_backward", "rms_norm_backward", "batch_norm_backward"};
  enum { RMS = 1, BATCH = 2, INFERENCE = 3 };
  int kind = roll(l, 7), rank = 2 + roll(l, 3), of = kind < 4 ? kind : kind - 4;
  bool back = kind > 3, batch = of == BATCH || of == INFERENCE;
  unsigned all = (1u << rank) - 1, mask = !batch ? 1 + (unsigned)roll(l, (int)all) : now_and_then(l) ? 1 : all & ~2u;
  int64_t x[4], statistic[4], parameter[4];
  extents(l, rank, x);
  bool usual = !now_and_then(l);
  for (int k = 0; k < rank; k++) {
    statistic[k] = mask >> k & 1 ? 1 : x[k];
    parameter[k] = (usual ? (mask >> k & 1) != batch : roll(l, 2)) ? x[k] : 1;
  }
  const char *narrow = strcmp(l->dtype, "f64") && roll(l, 2) ? "f32" : l->dtype;
  put(l, "%s", names[kind]);
  if (back)
    tensor(l, "dy", l->dtype, rank, x);
  tensor(l, "x", l->dtype, rank, x);
  if (roll(l, 3))
    tensor(l, "scale", narrow, rank, parameter);
  if (!back && of != RMS && roll(l, 3))
    tensor(l, "shift", narrow, rank, parameter);
  if (back || of == INFERENCE) {
    if (of != RMS)
      tensor(l, "mean", l->exact, rank, statistic);
    tensor(l, of == INFERENCE ? "var" : "rstd", l->exact, rank, statistic);
  }
  if (back)
    put(l, "%s%s", roll(l, 3) ? " dscale=?" : "", of != RMS && roll(l, 3) ? " dshift=?" : "");
  if (!back && of != INFERENCE)
    put(l, "%s%s", of != RMS && roll(l, 2) ? " mean=?" : "", roll(l, 2) ? " rstd=?" : "");
  if (!back && of == BATCH && roll(l, 2)) {
    tensor(l, "running_mean", l->exact, rank, statistic);
    tensor(l, "running_var", l->exact, rank, statistic);
    put(l, " new_mean=? new_var=? momentum=%s", roll(l, 2) ? "0.1" : "1");
  }
  put(l, " axis=");
  for (int k = 0; k < rank; k++)
    if (mask >> k & 1)
      put(l, "%s%d", mask & ((1u << k) - 1) ? "," : "", k);
}

static void local(struct line *l)
{
  bool within = roll(l, 2), back = roll(l, 2), means = roll(l, 2);
  int rank = within ? 3 + roll(l, 3) : 2 + roll(l, 4);
  int64_t x[5];
  extents(l, rank, x);
  put(l, back ? "lrn_backward" : "lrn");
  if (back)
    tensor(l, "dy", l->dtype, rank, x);
  tensor(l, "x", l->dtype, rank, x);
  if (means)
    tensor(l, "means", l->dtype, rank, x);
  put(l, "%s size=%d alpha=%s beta=%s k=%s region=%s", means && back && roll(l, 2) ? " dmeans=?" : "", 1 + roll(l, within ? 3 : 8),
      roll(l, 2) ? "0.5" : "2", roll(l, 2) ? "0.75" : "0.5", roll(l, 2) ? "1" : "2", within ? "within" : "across");
}

/* ---- losses ------------------------------------------------------------------------------- */

static void cross_entropy(struct line *l)
{
  static const char *const reductions[] = {"none", "mean", "sum"};
  bool back = roll(l, 2), soft = roll(l, 3) == 0, likelihoods = roll(l, 4) == 0, by_soft = back && soft && roll(l, 2);
  int rank = 1 + roll(l, 3), axis = roll(l, rank), reduction = roll(l, 3);
  int64_t x[3], row[3], loss[3], one[3] = {1, 1, 1};
  extents(l, rank, x);
  for (int k = 0; k < rank; k++) {
    row[k] = k == axis ? 1 : x[k];
    loss[k] = reduction ? 1 : row[k];
  }
  put(l, "cross_entropy%s%s", back ? "_backward" : "", by_soft ? "_probabilities" : "");
  if (back)
    tensor(l, "dy", l->exact, rank, loss);
  tensor(l, "x", l->dtype, rank, x);
  if (soft && !by_soft)
    tensor(l, "probabilities", l->dtype, rank, x);
  else if (!soft)
    tensor(l, "labels", roll(l, 2) ? "i32" : "i64", rank, row);
  if (roll(l, 2))
    tensor(l, "weights", l->exact, 1, &x[axis]);
  if (back) {
    if (!likelihoods)
      tensor(l, "lse", l->exact, rank, row);
    if (reduction == 1)
      tensor(l, "count", l->exact, rank, one);
  } else
    put(l, "%s%s", roll(l, 2) && !likelihoods ? " lse=?" : "", roll(l, 2) ? " count=?" : "");
  if (likelihoods)
    put(l, " input=log_probabilities");
  put(l, " axis=%d reduction=%s", axis, reductions[reduction]);
  if (roll(l, 2))
    put(l, " smoothing=0.1");
  if (roll(l, 2))
    put(l, " ignore=0");
  if (!soft)
    put(l, " ; labels=%d..%lld", -roll(l, 2), (long long)x[axis]);
}

static void ctc(struct line *l)
{
  static const char *const reductions[] = {"none", "mean", "sum"};
  bool back = roll(l, 2);
  int reduction = roll(l, 3);
  int64_t frames = 1 + roll(l, 40), samples = 1 + roll(l, 5), classes = 1 + extent(l, 2), longest = roll(l, 12);
  int64_t x[3] = {frames, samples, classes}, labels[2] = {samples, longest}, lse[3] = {frames, samples, 1},
      loss[1] = {reduction ? 1 : samples};
  put(l, back ? "ctc_loss_backward" : "ctc_loss");
  if (back)
    tensor(l, "dy", l->exact, 1, loss);
  tensor(l, "x", l->dtype, 3, x);
  tensor(l, "labels", roll(l, 2) ? "i32" : "i64", 2, labels);
  tensor(l, "x_lengths", roll(l, 2) ? "i32" : "i64", 1, &samples);
  tensor(l, "label_lengths", roll(l, 2) ? "i32" : "i64", 1, &samples);
  if (back)
    tensor(l, "lse", l->exact, 3, lse);
  else if (roll(l, 2))
    put(l, " lse=?");
  put(l, " blank=%d zero_infinity=%d reduction=%s", roll(l, (int)classes), roll(l, 2), reductions[reduction]);
  put(l, " ; labels=0..%lld x_lengths.is=", (long long)classes - 1);
  for (int k = 0; k < samples; k++)
    put(l, "%s%lld", k ? "," : "", (long long)(roll(l, 3) ? frames : roll(l, (int)frames + 3) - 1));
  put(l, " label_lengths.is=");
  for (int k = 0; k < samples; k++)
    put(l, "%s%d", k ? "," : "", roll(l, (int)longest + 3) - 1);
}

/* ---- adaptive windows, and points over an image --------------------------------------------- */

static void put_sizes(struct line *l, const char *name, int n, const int64_t *size)
{
  put(l, " %s=", name);
  for (int k = 0; k < n; k++)
    put(l, "%s%lld", k ? "," : "", (long long)size[k]);
}

static void resized(struct line *l)
{
  static const char *const names[] = {"pool_adaptive_max", "pool_adaptive_average", "resample"};
  static const char *const modes[] = {"nearest", "linear", "cubic"}, *const grids[] = {"half_pixel", "align_corners", "asymmetric"};
  bool back = roll(l, 2);
  int kind = roll(l, 3), spatial = 1 + roll(l, 3), rank = spatial + 2;
  int64_t x[5], y[5];
  extents(l, rank, x);
  extents(l, rank, y);
  y[0] = x[0], y[1] = x[1];
  int64_t up[3], down[3];                 /* a scale factor that leaves one place */
  bool scaled = kind == 2 && roll(l, 3) == 0;
  for (int k = 0; scaled && k < spatial; k++) {
    down[k] = 1 + roll(l, 9);
    up[k] = (down[k] + x[k + 2] - 1) / x[k + 2] + roll(l, 12);
    y[k + 2] = x[k + 2] * up[k] / down[k];
  }
  put(l, "%s%s", names[kind], back ? "_backward" : "");
  tensor(l, back ? "dy" : "x", l->dtype, rank, back ? y : x);
  if (kind == 0 && (back || roll(l, 2)))
    tensor(l, "indices", roll(l, 2) ? "i32" : "i64", rank, y);
  tensor(l, back ? "dx" : "y", l->dtype, rank, back ? x : y);
  if (kind == 2 && roll(l, 4) == 0)
    put(l, " mode=%s antialias=1", roll(l, 2) ? "linear" : "cubic");
  else if (kind == 2)
    put(l, " mode=%s grid=%s", one_of(l, 3, modes), one_of(l, 3, grids));
  if (scaled) {
    put_sizes(l, "up", spatial, up);
    put_sizes(l, "down", spatial, down);
  }
}

static void pool_lp(struct line *l)
{
  static const char *const powers[] = {"1", "2", "3", "2.5"};
  bool back = roll(l, 2);
  int spatial = 1 + roll(l, 3), rank = spatial + 2;
  int64_t x[5], y[5], window[3], stride[3], pad[3];
  extents(l, rank, x);
  y[0] = x[0], y[1] = x[1];
  for (int k = 0; k < spatial; k++) {
    window[k] = 1 + roll(l, x[k + 2] < 4 ? (int)x[k + 2] : 4);
    stride[k] = 1 + roll(l, 3);
    pad[k] = roll(l, (int)window[k]);
    y[k + 2] = (x[k + 2] + 2 * pad[k] - window[k]) / stride[k] + 1;
  }
  put(l, back ? "pool_lp_backward" : "pool_lp");
  if (back)
    tensor(l, "dy", l->dtype, rank, y);
  tensor(l, "x", l->dtype, rank, x);
  tensor(l, "y", l->dtype, rank, y);
  put_sizes(l, "window", spatial, window);
  put_sizes(l, "stride", spatial, stride);
  put_sizes(l, "pad", spatial, pad);
  put(l, " p=%s%s", one_of(l, 4, powers), back ? " ; y.fill=near" : "");
}

static void sampled(struct line *l)
{
  static const char *const modes[] = {"nearest", "linear", "cubic"}, *const paddings[] = {"zeros", "border", "reflection"};
  int kind = roll(l, 5), d = 2 + roll(l, 2), rank = d + 2;
  int64_t x[5], y[5], grid[5], theta[3];
  extents(l, rank, x);
  extents(l, rank, y);
  y[0] = grid[0] = theta[0] = x[0], y[1] = x[1], grid[d + 1] = theta[1] = d, theta[2] = d + 1;
  memcpy(grid + 1, y + 2, (size_t)d * sizeof *grid);
  if (kind < 2) {
    put(l, kind ? "affine_grid_backward" : "affine_grid");
    tensor(l, kind ? "dy" : "theta", l->dtype, kind ? rank : 3, kind ? grid : theta);
    tensor(l, kind ? "dtheta" : "grid", l->dtype, kind ? 3 : rank, kind ? theta : grid);
    put(l, " align_corners=%d", roll(l, 2));
    return;
  }
  put(l, kind == 2 ? "grid_sample" : kind == 3 ? "grid_sample_backward_data" : "grid_sample_backward_grid");
  if (kind != 2)
    tensor(l, "dy", l->dtype, rank, y);
  if (kind != 3)
    tensor(l, "x", l->dtype, rank, x);
  tensor(l, "grid", l->exact, rank, grid);
  if (kind == 3)
    tensor(l, "dx", l->dtype, rank, x);
  put(l, " align_corners=%d mode=%s padding=%s", roll(l, 2), one_of(l, 3, modes), one_of(l, 3, paddings));
}

/* ---- elements by index ---------------------------------------------------------------------- */

static const char *any_dtype(struct line *l)
{
  static const char *const names[] = {"f32", "f16", "f64", "i8", "i32", "i64", "u8", "bool", "e4m3"};
  return one_of(l, 9, names);
}

static void indexed(struct line *l)
{
  bool back = roll(l, 2);
  int rank = 1 + roll(l, 3), indices = roll(l, 3), axis = roll(l, rank);
  int64_t x[3], at[2], y[5];
  extents(l, rank, x);
  extents(l, indices, at);
  for (int k = 0; k < rank + indices - 1; k++)
    y[k] = k < axis ? x[k] : k < axis + indices ? at[k - axis] : x[k - indices + 1];
  const char *dtype = back ? l->dtype : any_dtype(l);
  put(l, back ? "scatter_add" : "gather");
  tensor(l, back ? "dy" : "x", dtype, back ? rank + indices - 1 : rank, back ? y : x);
  tensor(l, "indices", roll(l, 2) ? "i32" : "i64", indices, at);
  tensor(l, back ? "dx" : "y", dtype, back ? rank : rank + indices - 1, back ? x : y);
  put(l, " axis=%d ; labels=-1..%lld", axis, (long long)x[axis]);
}

static void one_hot(struct line *l)
{
  int rank = 1 + roll(l, 2);
  int64_t at[2], depth = extent(l, 2);
  extents(l, rank, at);
  put(l, "one_hot");
  tensor(l, "indices", roll(l, 2) ? "i32" : "i64", rank, at);
  put(l, " axis=%d depth=%lld%s ; labels=-1..%lld", roll(l, rank + 1), (long long)depth, roll(l, 2) ? " on=0.5 off=-2" : "",
      (long long)depth);
}

static void lines_along(struct line *l)
{
  static const char *const integers[] = {"i8", "i32", "u8", "i64"};
  int rank = 1 + roll(l, 3), axis = roll(l, rank);
  int64_t x[3];
  extents(l, rank, x);
  bool scan = roll(l, 2);
  put(l, scan ? "cumsum" : "top_k");
  tensor(l, "x", now_and_then(l) ? one_of(l, 4, integers) : l->dtype, rank, x);
  if (scan) put(l, " axis=%d exclusive=%d reverse=%d", axis, roll(l, 2), roll(l, 2));
  else put(l, "%s axis=%d k=%d smallest=%d", roll(l, 2) ? " indices=?" : "", axis, 1 + roll(l, (int)x[axis]), roll(l, 2));
}

static void padded(struct line *l)
{
  static const char *const modes[] = {"constant", "reflect", "replicate"};
  bool back = roll(l, 2);
  int rank = 1 + roll(l, 4), mode = roll(l, 3);
  int64_t x[4], y[4] = {0}, before[4], after[4];
  extents(l, rank, x);
  for (int k = 0; k < rank; k++) {
    int most = mode == 1 && x[k] < 5 ? (int)x[k] - 1 : 4;         /* reflection needs a pad less than x's extent */
    before[k] = roll(l, 2) ? roll(l, most + 1) : 0;
    after[k] = roll(l, 2) ? roll(l, most + 1) : 0;
    y[k] = before[k] + x[k] + after[k];
  }
  const char *dtype = back ? l->dtype : any_dtype(l);
  put(l, back ? "pad_backward" : "pad");
  tensor(l, back ? "dy" : "x", dtype, rank, back ? y : x);
  tensor(l, back ? "dx" : "y", dtype, rank, back ? x : y);
  put(l, " mode=%s pad=", modes[mode]);
  for (int k = 0; k < rank; k++)
    put(l, "%s%lld:%lld", k ? "," : "", (long long)before[k], (long long)after[k]);
  if (!back && !mode)
    put(l, " value=1");
}

static void moved(struct line *l)
{
  int rank = 1 + roll(l, 4), kind = roll(l, 4), perm[4] = {0, 1, 2, 3}, axis = roll(l, rank);
  int64_t x[4], start[4], step[4];
  const char *dtype = any_dtype(l);
  extents(l, rank, x);
  put(l, kind == 0 ? "copy" : kind == 1 ? "permute" : kind == 2 ? "slice" : "concat");
  if (kind < 3)
    tensor(l, "x", dtype, rank, x);
  switch (kind) {
  case 0:
    tensor(l, "y", dtype, rank, x);
    break;
  case 1:
    for (int k = rank - 1; k > 0; k--) {
      int other = roll(l, k + 1), kept = perm[k];
      perm[k] = perm[other];
      perm[other] = kept;
    }
    put(l, " perm=");
    for (int k = 0; k < rank; k++)
      put(l, "%s%d", k ? "," : "", perm[k]);
    break;
  case 2:
    for (int k = 0; k < rank; k++) {
      start[k] = roll(l, (int)x[k]);
      step[k] = 1 + roll(l, 3);
    }
    put_sizes(l, "start", rank, start);
    put_sizes(l, "step", rank, step);
    break;
  default:
    put(l, " x=[");
    for (int k = 0, n = 1 + roll(l, 4); k < n; k++) {
      put(l, k ? "," : "");
      x[axis] = extent(l, rank);
      put_tensor(l, dtype, rank, x);
    }
    put(l, "] axis=%d", axis);
  }
}

/* ---- quantization --------------------------------------------------------------------------- */

static void quantized(struct line *l)
{
  static const char *const formats[] = {"i8", "e4m3", "e5m2", "u8"};
  int rank = 1 + roll(l, 3), kind = roll(l, 3);
  int64_t x[3], block[3], scale[3];
  extents(l, rank, x);
  for (int k = 0; k < rank; k++) {
    block[k] = roll(l, 2) ? 0 : roll(l, 2) ? 1 : 1 + roll(l, 40);
    scale[k] = block[k] ? (x[k] + block[k] - 1) / block[k] : 1;
  }
  const char *narrow = one_of(l, kind == 2 ? 3 : 4, formats), *by = now_and_then(l) ? "e8m0" : l->exact;
  bool whole = !strcmp(narrow, "i8") || !strcmp(narrow, "u8");
  put(l, kind == 0 ? "quantize" : kind == 1 ? "dequantize" : "quantize_dynamic");
  tensor(l, "x", kind == 1 ? narrow : l->dtype, rank, x);
  tensor(l, "scale", by, rank, scale);
  if (kind < 2 && whole && roll(l, 2))
    tensor(l, "zero_point", narrow, rank, scale);
  tensor(l, "y", kind == 1 ? l->dtype : narrow, rank, x);
  put(l, "%s", kind != 1 && roll(l, 2) ? " amax=?" : "");
  put_sizes(l, "block", rank, block);
}

/* ---- training steps --------------------------------------------------------------------------- */

static void put_list(struct line *l, const char *role, const char *dtype, int n, int64_t (*dim)[2])
{
  put(l, " %s=[", role);
  for (int k = 0; k < n; k++) {
    put(l, k ? "," : "");
    put_tensor(l, dtype, k % 3, dim[k]);
  }
  put(l, "]");
}

static void stepped(struct line *l)
{
  static const char *const names[] = {"sgd", "adam", "adamw", "global_norm", "amp_unscale"};
  int kind = roll(l, 5), n = 1 + roll(l, 5);
  int64_t dim[5][2];
  for (int k = 0; k < n; k++)
    extents(l, 2, dim[k]);
  put(l, "%s", names[kind]);
  if (kind > 2) {
    put_list(l, kind == 3 ? "x" : "grads", l->dtype, n, dim);
    put(l, "%s%s", kind == 4 || roll(l, 2) ? " scale=f32" : "", !roll(l, 2) ? "" : kind == 3 ? " divisor=? limit=1" : " new_grads=?");
    return;
  }
  const char *grads = strcmp(l->dtype, "f64") && now_and_then(l) ? "f16" : l->dtype;
  bool momentum = kind == 0 && roll(l, 2), over = roll(l, 2), on_device = roll(l, 2);
  put_list(l, "params", l->dtype, n, dim);
  put_list(l, "grads", grads, n, dim);
  if (momentum)
    put_list(l, "velocity", l->exact, n, dim);
  if (momentum)
    put(l, " new_velocity=%s momentum=0.5 nesterov=%d", over ? "velocity" : "?", roll(l, 2));
  if (kind) {
    put_list(l, "m", l->exact, n, dim);
    put_list(l, "v", l->exact, n, dim);
    put(l, "%s", over ? " new_m=m new_v=v" : "");
  }
  put(l, " step=%s rate=0.25%s%s%s decay=%s", on_device ? "i64" : "3", over ? " new_params=params" : "", roll(l, 2) ? " scale=4" : "",
      roll(l, 2) ? " found=f32" : "", roll(l, 2) ? "0" : "0.125");
  if (strcmp(l->dtype, "f64") && roll(l, 2))
    put_list(l, "copy", "bf16", n, dim);
  if (on_device)
    put(l, " ; step.is=%d", roll(l, 100));
}

/* ---- attention ----------------------------------------------------------------------------- */

static void broadcast(struct line *l, const char *role, const char *dtype, const int64_t *full)
{
  int64_t dim[4];
  for (int k = 0; k < 4; k++)
    dim[k] = roll(l, 2) ? full[k] : 1;
  tensor(l, role, dtype, 4, dim);
}

/* A few heads and sequences; any of the options, dense, ragged or paged. */
static void attention(struct line *l)
{
  static const char *const octets[] = {"e4m3", "e5m2", "i8"}, *const real[] = {"0", "0.3", "2"};
  bool back = roll(l, 2), ragged = now_and_then(l), paged = !back && now_and_then(l), values = roll(l, 5), drops = roll(l, 6) == 0;
  bool eights = !back && strcmp(l->dtype, "f64") && roll(l, 6) == 0;
  int64_t group = 1 + roll(l, 3), hkv = 1 + roll(l, 2), b = 1 + roll(l, 3), d = 1 + roll(l, 24), sq = extent(l, 3), skv = extent(l, 3);
  if (back)
    skv += ragged ? 8 : 2;                /* of a single key all weights are 1, and the gradients by q and k are 0: nothing to judge */
  int64_t h = group * hkv, dv = values ? 1 + roll(l, 24) : 1 + roll(l, (int)d), n = 1 + roll(l, 4);
  if (paged)
    skv = 1 + skv / n;
  const int64_t q[4] = {ragged ? 1 : b, h, sq, d}, k[4] = {paged ? 1 + roll(l, 9) : ragged ? 1 : b, hkv, skv, d};
  const int64_t v[4] = {k[0], hkv, skv, dv};
  const int64_t y[4] = {q[0], h, sq, dv}, full[4] = {b, h, sq, paged ? n * skv : skv}, starts = b + 1, table[2] = {b, n};
  int block_q = 1 + roll(l, 5), block_kv = 1 + roll(l, 5);
  const int64_t blocks[4] = {b, h, (sq + block_q - 1) / block_q, ((full[3] + block_kv - 1) / block_kv + 7) / 8};
  put(l, back ? "attention_backward" : "attention_forward");
  if (back)
    tensor(l, "dy", l->dtype, 4, y);
  tensor(l, "q", eights ? octets[roll(l, 3)] : l->dtype, 4, q);
  tensor(l, "k", eights ? octets[roll(l, 3)] : l->dtype, 4, k);
  if (values)
    tensor(l, "v", eights && roll(l, 2) ? octets[roll(l, 2)] : l->dtype, 4, v);
  if (back) {
    tensor(l, "y", l->dtype, 4, y);
    tensor(l, "lse", l->exact, 3, y);
    if (roll(l, 2))
      tensor(l, "dlse", l->exact, 3, y);
  }
  bool bias = roll(l, 3) == 0, sink = roll(l, 3) == 0, masked = roll(l, 4) == 0;
  if (bias)
    broadcast(l, "bias", l->dtype, full);
  if (roll(l, 4) == 0)
    broadcast(l, "mask", "bool", full);
  if (masked)
    tensor(l, "blocks", "u8", 4, blocks);
  if (roll(l, 4) == 0)
    tensor(l, "slopes", l->exact, 1, &h);
  if (sink)
    tensor(l, "sink", l->exact, 1, &h);
  if (roll(l, 4) == 0)
    tensor(l, "q_lengths", "i32", 1, &b);
  if (paged || roll(l, 4) == 0)
    tensor(l, "kv_lengths", roll(l, 2) ? "i32" : "i64", 1, &b);
  if (ragged)
    tensor(l, "q_starts", "i32", 1, &starts);
  if (ragged && !paged)
    tensor(l, "kv_starts", "i32", 1, &starts);
  if (paged)
    tensor(l, "pages", "i32", 2, table);
  if (drops)
    put(l, " seed=%d dropout=0.4", roll(l, 1000));
  if (back)
    put(l, "%s%s%s", values ? " dv=?" : "", bias && roll(l, 2) ? " dbias=?" : "", sink && roll(l, 2) ? " dsink=?" : "");
  else
    put(l, "%s%s%s", roll(l, 2) ? " lse=?" : "", roll(l, 2) ? " max=?" : "", roll(l, 4) ? "" : " amax=?");
  put(l, " left=%d right=%d align=%s softcap=%s scale=%s", roll(l, 2) ? -1 : roll(l, 9), roll(l, 2) ? -1 : roll(l, 4),
      roll(l, 2) ? "bottom_right" : "top_left", one_of(l, 3, real), eights ? "0.001" : one_of(l, 2, real));
  if (masked)
    put(l, " block_q=%d block_kv=%d", block_q, block_kv);
  if (!values)
    put(l, " value_size=%lld", (long long)dv);
  put(l, " ;%s%s", masked ? " blocks.fill=bits" : "", eights ? " fill=signed" : "");
}

static void around_attention(struct line *l)
{
  int kind = roll(l, 4);
  int64_t x[4], table[2], tokens[2], pages[4];
  extents(l, 4, x);
  table[0] = 1 + roll(l, 40), table[1] = roll(l, (int)x[3] / 2 + 1);
  tokens[0] = x[0], tokens[1] = x[2];
  pages[0] = 1 + roll(l, 6), pages[1] = x[1], pages[2] = extent(l, 4), pages[3] = x[3];
  if (kind == 0) {
    put(l, "attention_merge");
    tensor(l, "y1", l->dtype, 4, x);
    tensor(l, "lse1", l->exact, 3, x);
    tensor(l, "y2", l->dtype, 4, x);
    tensor(l, "lse2", l->exact, 3, x);
    put(l, "%s", roll(l, 2) ? " lse=?" : "");
  } else if (kind < 3) {
    put(l, kind == 1 ? "rotary" : "rotary_backward");
    tensor(l, kind == 1 ? "x" : "dy", l->dtype, 4, x);
    tensor(l, "cos", l->exact, 2, table);
    tensor(l, "sin", l->exact, 2, table);
    if (roll(l, 2))
      tensor(l, "positions", roll(l, 2) ? "i32" : "i64", 2, tokens);
    put(l, " interleaved=%d", roll(l, 2));
  } else {
    put(l, "cache_write");
    tensor(l, "cache", strcmp(l->dtype, "f64") && roll(l, 2) ? "e4m3" : l->dtype, 4, pages);
    tensor(l, "x", l->dtype, 4, x);
    tensor(l, "slots", roll(l, 2) ? "i32" : "i64", 2, tokens);
    put(l, "%s", roll(l, 2) ? " scale=" : "");
    if (l->text[l->n - 1] == '=')
      put(l, "%s", l->exact);
  }
}

/* ---- recurrent networks ------------------------------------------------------------------------ */

static void weights(struct line *l, const char *role, int n, int rank, int64_t rows, int64_t first, int64_t above, int directions)
{
  put(l, " %s=[", role);
  for (int k = 0; k < n; k++) {
    put(l, k ? "," : "");
    put_tensor(l, l->dtype, rank, (int64_t[]){rows, k < directions ? first : above});
  }
  put(l, "]");
}

static void recurrent(struct line *l)
{
  static const char *const cells[] = {"lstm", "gru", "tanh", "relu"}, *const ways[] = {"forward", "backward", "both"};
  static const int gates[] = {4, 3, 1, 1};
  bool back = roll(l, 2), before = roll(l, 2);
  int cell = roll(l, 4), way = roll(l, 3), layers = 1 + roll(l, 2), directions = way == 2 ? 2 : 1, n = layers * directions;
  bool lstm = cell == 0, projected = lstm && now_and_then(l), gated = cell < 2;
  int64_t steps = 1 + roll(l, 7), batch = 1 + roll(l, 4), inputs = 1 + roll(l, 9), hidden = 1 + roll(l, 17);
  int64_t state = projected ? 1 + roll(l, 9) : hidden, width = directions * state, rows = gates[cell] * hidden;
  int64_t kept = cell == 1 && before ? 3 : 4, x[3] = {steps, batch, inputs}, y[3] = {steps, batch, width}, h[3] = {n, batch, state};
  int64_t c[3] = {n, batch, hidden}, g[4] = {n, steps, batch, kept * hidden}, cs[4] = {n, steps, batch, hidden};
  int64_t inner[4] = {layers - 1, steps, batch, width};
  bool dropout = layers > 1 && roll(l, 2), h0 = roll(l, 2), c0 = lstm && roll(l, 2), lengths = roll(l, 2);
  put(l, back ? "rnn_backward" : "rnn_forward");
  if (back) {
    tensor(l, "dy", l->dtype, 3, y);
    if (roll(l, 2))
      tensor(l, "dht", l->dtype, 3, h);
    if (lstm && roll(l, 2))
      tensor(l, "dct", l->exact, 3, c);
  }
  tensor(l, "x", l->dtype, 3, x);
  if (back)
    tensor(l, "y", l->dtype, 3, y);
  weights(l, "w", n, 2, rows, inputs, width, directions);
  weights(l, "r", n, 2, rows, state, state, directions);
  if (!back && roll(l, 3))
    weights(l, "bw", n, 1, rows, 1, 1, directions);
  if (!back && roll(l, 3))
    weights(l, "br", n, 1, rows, 1, 1, directions);
  if (projected)
    weights(l, "projection", n, 2, state, hidden, hidden, directions);
  if (h0)
    tensor(l, "h0", l->dtype, 3, h);
  if (c0)
    tensor(l, "c0", l->exact, 3, c);
  if (lengths)
    tensor(l, "lengths", roll(l, 2) ? "i32" : "i64", 1, &batch);
  if (gated && (back || roll(l, 2)))
    tensor(l, "gates", l->dtype, 4, g);
  if (lstm && (back || roll(l, 2)))
    tensor(l, "cells", l->exact, 4, cs);
  if (layers > 1 && (back || roll(l, 2)))
    tensor(l, "inner", l->dtype, 4, inner);
  if (back)
    put(l, "%s%s%s%s%s%s%s", roll(l, 3) ? " dw=?" : "", roll(l, 3) ? " dr=?" : "", roll(l, 2) ? " dbw=?" : "", roll(l, 2) ? " dbr=?" : "",
        projected && roll(l, 2) ? " dprojection=?" : "", h0 && roll(l, 2) ? " dh0=?" : "", c0 && roll(l, 2) ? " dc0=?" : "");
  else
    put(l, "%s%s", roll(l, 2) ? " ht=?" : "", lstm && roll(l, 2) ? " ct=?" : "");
  put(l, " cell=%s direction=%s layers=%d", cells[cell], ways[way], layers);
  if (cell == 1)
    put(l, " reset=%s", before ? "before" : "after");
  if (lstm && now_and_then(l))
    put(l, " clip=0.25");
  if (dropout)
    put(l, " dropout=0.25 seed=%d", roll(l, 100));
  put(l, " ;");
  for (int k = 0; k < n; k++)
    put(l, " r%d.fill=signed:0.3", k);
  if (lengths) {
    put(l, " lengths.is=");
    for (int k = 0; k < batch; k++)
      put(l, "%s%d", k ? "," : "", roll(l, (int)steps + 3) - 1);
  }
}

char *qc_random_family(struct qc_dice *dice)
{
  static void (*const makers[])(struct line *) = {norm, norm, norm, local, cross_entropy, ctc, resized, resized, pool_lp, sampled, indexed,
                                                  one_hot, lines_along, padded, moved, quantized, stepped, attention, attention,
                                                  around_attention, recurrent};
  struct line l = {.dice = dice, .dtype = qc_random_float(dice)};
  l.exact = strcmp(l.dtype, "f64") ? "f32" : "f64";
  makers[roll(&l, sizeof makers / sizeof *makers)](&l);
  return l.n < sizeof l.text ? strdup(l.text) : NULL;
}
