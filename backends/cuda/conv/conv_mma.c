/* conv_mma.c -- convolution and its gradients as implicit GEMM by mma.sync, on any device from compute capability 8.0 on.
 * Channels last; f16, bf16, and f32 as tf32 (math tf32) or 3xTF32 (math f32).
 *
 *   forward          y[(n,p), k]  = sum over taps r and channels c of x[n, p stride + r dilation - pad, c] w[k, r, c]
 *   backward data    dx[(n,x), c] = sum over taps r and filters k of dy[n, (x + pad - r dilation) / stride, k] w[k, r, c],
 *                                   for each residue of x modulo the stride, with the taps that divide evenly
 *   backward filter  dw[k, r, c]  = sum over pixels (n,p) of dy[(n,p), k] x[n, p stride + r dilation - pad, c]
 *
 * Threads gather the windows into shared memory by cp.async (conv_mma.cuh). A filter gradient has few tiles and a long sum over
 * pixels, so the pixels are split among CTAs; the partial sums go to workspace and are added in a fixed order by a second kernel. Small
 * planes of the other two have few tiles as well: their sums are split among as many as 16 CTAs, of which the last adds the parts in
 * order. Under `deterministic=batch` those two take the first tile that fits, unsplit, whatever the number of images. One to three
 * spatial dims; channels of a group in units of 16 bytes. Groups are products side by side in one launch. */
#include "conv_kernel.h"
#include "conv_mma.h"
#include "engines.h"
#include <math.h>

#define NAME(bm, bn) #bm "x" #bn,
static const char *const names[] = { CUDA_CONV_MMA_TILES(NAME) NULL };
#undef NAME

/* ---- which tile ------------------------------------------------------------------------------------ */

/* Nanoseconds of `tiles` tiles of `steps` stages each, in so many parts: an SM is bound by multiply-adds, copies or (alone) latency, in
 * 3xTF32 that of products one after another. The SM with the most tiles ends last. */
static double cost(const cuda_conv_mma_kernel *k, double tiles, double steps, int64_t parts, double bytes, int multiprocessors, bool split)
{
  double product = (double)k->bm * k->bn * k->bk / k->rate, copy = (k->bm + k->bn) * 64 / 32.0;      /* a stage has 64 bytes of each row */
  double work = product > copy ? product : copy, room = (double)multiprocessors * k->resident, cycles = 0;
  const double alone = split ? 2 * product : 400;
  tiles *= (double)parts, steps = ceil(steps / (double)parts);
  for (double left = tiles; left > 0; left -= room) {       /* full waves, then the remainder */
    double at_once = left < room ? ceil(left / multiprocessors) : k->resident;
    double rounds = left >= 2 * room ? (double)(int64_t)(left / room) : 1;
    cycles += rounds * (steps * (at_once * work > alone ? at_once * work : alone) + 2000.0 * k->bm * k->bn / 8 / k->threads);
    left -= (rounds - 1) * room;
  }
  double ns = cycles / 1.7, memory = bytes / (25.0 * multiprocessors);
  return 3000 + (ns > memory ? ns + 0.15 * memory : memory + 0.15 * ns);
}

/* The i-th number of parts worth a look; 0: no more. A filter gradient's, of `tiles`, fill the device once or twice. */
static int64_t parts_at(int i, const qn_request *r, const cuda_conv_problem *c, const cuda_conv_mma_kernel *k, int64_t tiles, int64_t steps)
{
  if (i == 0) return 1;
  if (c->mode == CUDA_CONV_FILTER)
    return i > 2 ? 0 : qn_min_i64(qn_min_i64(i * (int64_t)r->device->units * k->resident / tiles, steps / 8), 1024);
  return i > 4 || tiles > 1024 || steps >> i < 4 || r->demands->determinism >= QN_DET_BATCH ? 0 : (int64_t)1 << i;
}

/* Chooses the kernel and the number of partial sums. -1: none. */
static int choose(const qn_request *r, const cuda_conv_problem *c, const cuda_conv_mma_kernel *kernels, int64_t m, int64_t n,
                  double classes, double k, int64_t dw, bool split, int64_t *parts, double *least)
{
  double bytes = (double)qn_kit_bytes(c->x->dtype) * ((double)qn_elements(c->x) + (double)qn_elements(c->y) + (double)qn_elements(c->w));
  int best = -1;
  const bool one_order = r->demands->determinism >= QN_DET_BATCH && c->mode != CUDA_CONV_FILTER;
  for (int i = 0; i < CUDA_CONV_MMA_SIZES && !(one_order && best >= 0); i++) {
    const cuda_conv_mma_kernel *kernel = &kernels[i];
    if (!kernel->function || (r->variant && strcmp(r->variant, names[i])) || kernel->shared > (int64_t)r->device->shared_per_block)
      continue;
    int64_t tiles = qn_ceil_div(m, kernel->bm) * qn_ceil_div(n, kernel->bn);
    double steps = k / kernel->bk;
    int64_t p;
    for (int j = 0; (p = parts_at(j, r, c, kernel, tiles * (int64_t)classes, (int64_t)steps)) > 0; j++) {
      const int64_t kept = p * (c->mode == CUDA_CONV_FILTER ? dw : tiles * (int64_t)classes * kernel->bm * kernel->bn) * 4;
      if (p > 1 && (uint64_t)kept > r->demands->workspace_limit) break;
      double t = cost(kernel, (double)tiles * classes, steps, p, bytes, r->device->units, split);
      if (p > 1) t += c->mode == CUDA_CONV_FILTER ? 2000 + (double)kept / 2500 : 1200 + (double)p * kernel->bm * kernel->bn / 27;
      if (best < 0 || t < *least) best = i, *least = t, *parts = p;
    }
  }
  return best;
}

/* ---- prepare ---------------------------------------------------------------------------------------- */

/* The kernels for the dtype and math; tells out its numerics. */
static const cuda_conv_mma_kernel *kernels_of(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  uint32_t dtype = c->mode == CUDA_CONV_DATA ? c->y->dtype : c->x->dtype;
  bool tf32 = r->demands->math >= QN_MATH_TF32;
  out->math = dtype != QN_F32 ? QN_MATH_STRICT : tf32 ? QN_MATH_TF32 : QN_MATH_F32;
  out->numerics.accumulator = dtype != QN_F32 ? QN_ACC_F32_TC : tf32 ? QN_ACC_TF32 : QN_ACC_3XTF32;
  return (dtype == QN_BF16  ? cuda_conv_mma_bf16
          : dtype == QN_F16 ? cuda_conv_mma_f16
          : tf32            ? cuda_conv_mma_tf32
                            : cuda_conv_mma_3xtf32)[c->mode];
}

static qn_status check(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  bool data = c->mode == CUDA_CONV_DATA, forward = c->mode == CUDA_CONV_FORWARD;
  qn_status status = cuda_conv_wants_ampere(r, out);
  if (!status) status = cuda_conv_wants_channels_last(c->x, data ? "dx" : "x", out);
  if (!status) status = cuda_conv_wants_channels_last(c->w, "w", out);
  if (!status) status = cuda_conv_wants_channels_last(c->y, forward ? "y" : "dy", out);
  if (status) return status;
  int64_t unit = 16 / (int64_t)qn_kit_bytes((data ? c->y : c->x)->dtype), taps = c->size[0] * c->size[1] * c->size[2];
  if (c->channels / c->groups % unit)
    return qn_refuse(out, "channels of a group in units of 16 bytes", "x", unit == 8 ? "a multiple of 8" : "a multiple of 4", "%lld",
                     (long long)(c->channels / c->groups));
  if (!forward && c->filters / c->groups % unit)
    return qn_refuse(out, "filters of a group in units of 16 bytes", "dy", unit == 8 ? "a multiple of 8" : "a multiple of 4", "%lld",
                     (long long)(c->filters / c->groups));
  for (int d = 0; d < 3 && data; d++)
    if (c->stride[d] > CUDA_CONV_APART)
      return qn_refuse(out, "backward data of strides to 4", "dx", "1 to 4", "%lld", (long long)c->stride[d]);
  if ((double)taps * (double)qn_max_i64(c->channels, c->filters) > 1 << 30)
    return qn_refuse(out, "filters that 31 bits count", "w", "fewer", "%lld", (long long)taps);
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  cuda_chain chain;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (!status) status = check(r, &c, out);
  if (!status) status = cuda_conv_problem_chain(&c, r, &chain, out);
  if (status) return status;
  bool data = c.mode == CUDA_CONV_DATA, filter = c.mode == CUDA_CONV_FILTER;
  const qn_value *from = data ? c.y : c.x, *to = &r->value[chain.out];
  const int64_t channels = c.channels / c.groups, filters = c.filters / c.groups;             /* of a group */
  int64_t taps = c.size[0] * c.size[1] * c.size[2], images = c.x->dim[0], dw = c.filters * taps * channels, classes = c.groups;
  cuda_conv_mma g = { .images = (int32_t)images,
                      .channels = (int32_t)(from->dim[1] / c.groups),
                      .pitch = (int32_t)from->dim[1],
                      .size = { (int32_t)c.size[0], (int32_t)c.size[1] },
                      .taps = (int32_t)taps,
                      .out_dtype = to->dtype,
                      .steps = chain.steps };
  for (int d = 0; d < 3; d++) {
    g.in[d] = (int32_t)(data ? c.out[d] : c.in[d]);
    g.extent[d] = (int32_t)(data ? c.in[d] : c.out[d]);
    g.apart[d] = data ? (int32_t)c.stride[d] : 1;
    g.pace[d] = data ? 1 : (int32_t)c.stride[d];
    g.step[d] = (int32_t)(data ? c.dilation[d] * cuda_conv_every(&c, d) / c.stride[d] : c.dilation[d]);
    for (int i = 0; i < g.apart[d]; i++) g.spans[d][i] = cuda_conv_span_of(&c, d, i);
    classes *= g.apart[d];
  }
  int64_t pixels = images * g.spans[0][0].out * g.spans[1][0].out * g.spans[2][0].out;       /* of the largest class */
  int64_t m = filter ? filters : pixels,
          n = filter ? taps * channels
            : data   ? channels
                     : filters,
          k = filter ? pixels : taps * g.channels, parts = 1;
  double least = 0;
  const cuda_conv_mma_kernel *kernels = kernels_of(r, &c, out);
  int best = choose(r, &c, kernels, m, n, (double)classes, (double)k * (double)c.groups / (double)classes, dw,
                    out->numerics.accumulator == QN_ACC_3XTF32, &parts, &least);
  if (best < 0)
    return qn_refuse(out, "a tile that there is for this dtype, its stages in shared memory", "", "another, or more of it", "%llu",
                     (unsigned long long)r->device->shared_per_block);
  const cuda_conv_mma_kernel *kernel = &kernels[best];
  int64_t tiles_n = qn_ceil_div(n, kernel->bn), tiles = qn_ceil_div(m, kernel->bm) * tiles_n;
  if (tiles > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "", "", "%lld", (long long)tiles);
  if (classes > 65535) return qn_refuse(out, "a grid of blocks", "x", "at most 65535 groups, of each of the stride's remainders", "%lld",
                                        (long long)classes);
  g.n = (int32_t)n, g.k = (int32_t)k;
  g.tiles_n = (int32_t)tiles_n;
  g.out_row = filter ? n : n * c.groups, g.out_group = filter ? m * n : n;
  int64_t longest = k;                    /* sum of a class */
  if (data) {
    longest = g.channels;
    for (int d = 0; d < 3; d++) {
      int32_t most = 0;
      for (int i = 0; i < g.apart[d]; i++) most = g.spans[d][i].taps > most ? g.spans[d][i].taps : most;
      longest *= most;
    }
  }
  g.share = (int32_t)qn_round_up(qn_ceil_div(qn_max_i64(longest, 1), parts), kernel->bk);
  parts = qn_max_i64(qn_ceil_div(longest, g.share), 1);
  if (filter) {                                             /* dy as [filters][pixels] */
    g.other = (cuda_tiled_side){
      .row_stride = 1, .k_stride = c.filters, .batch_stride = { filters }, .rows = (int32_t)filters, .bytes = 16
    };
    g.by_w = cuda_divide_by(c.out[1]), g.by_hw = cuda_divide_by(c.out[0] * c.out[1]),
    g.by_dhw = cuda_divide_by(c.out[0] * c.out[1] * c.out[2]);
  } else {                                                  /* w as [filters][taps, channels] */
    g.other = (cuda_tiled_side){ .row_stride = k, .k_stride = 1, .batch_stride = { filters * k }, .rows = (int32_t)filters, .bytes = 16 };
  }
  if (filter && parts > 1) g.out_dtype = QN_F32, g.out_parts = dw;

  cuda_conv_kernel *launch = cuda_conv_kernel_begin(out, kernel->function, &g, sizeof g);
  if (!launch) return QN_NO_MEMORY;
  launch->grid[0] = (uint32_t)tiles, launch->grid[1] = (uint32_t)parts, launch->grid[2] = (uint32_t)classes;
  launch->threads = (uint32_t)kernel->threads, launch->shared = (uint32_t)kernel->shared;
  cuda_conv_kernel_pointer(launch, data ? c.y_at : c.x_at, offsetof(cuda_conv_mma, gathered));
  cuda_conv_kernel_pointer(launch, filter ? c.y_at : c.w_at, data ? offsetof(cuda_conv_mma, filters) : offsetof(cuda_conv_mma, other.p));
  if (!filter) {
    cuda_conv_kernel_steps(launch, out, &chain, offsetof(cuda_conv_mma, steps), offsetof(cuda_conv_mma, out));
    if (parts > 1)
      cuda_conv_kernel_splits(launch, out, parts, tiles * classes, (int64_t)kernel->bm * kernel->bn * 4, offsetof(cuda_conv_mma, parts));
  } else if (parts == 1) cuda_conv_kernel_pointer(launch, c.w_at, offsetof(cuda_conv_mma, out));
  else cuda_conv_kernel_parts(launch, out, &c, parts, dw, offsetof(cuda_conv_mma, out));
  if (r->demands->determinism >= QN_DET_BATCH) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  out->variant = names[best];
  out->estimate = least;
  return QN_OK;
}

#define ROW(op_) { .name = "mma", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .variants = names, \
                   .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, .prepare = prepare, \
                   .build = cuda_conv_kernel_build, .run = cuda_conv_kernel_run, .release = cuda_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_mma) = { rows, sizeof rows / sizeof *rows };
