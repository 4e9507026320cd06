/* conv_planes.cu -- convolution and its gradients as implicit GEMM by mma.sync in any layout, without a copy in memory: f32 as tf32 (math
 * tf32) or 3xTF32 (math f32), f16 and bf16 as tf32, which holds them. One to three spatial dims; any groups, channels, strides.
 *
 *                     a, BM rows                          b, BN columns    summed over
 *   forward           pixels of y: x at a tap             filters          channels, taps
 *   backward data     pixels of dx: dy at a tap           channels         filters, taps that reach these pixels
 *   backward filter   (channel, tap): x                   filters: dy      pixels of a part
 *
 * matmul_tiled.cuh's main loop; each element is a cp.async of its own (of 16 bits: goes through a register), neighbouring lanes along
 * the pixels; under a single tap four neighbouring pixels are. What a tap adds to a pixel's address stands in a table. Whether it falls
 * into padding is one test: a pixel has a bit for each tap along each dim that stays inside the tensor, a tap has those that it needs.
 * In backward data a stride divides dx's pixels into residue classes that see the same taps; one launch for all. A filter gradient's
 * partial sums go to workspace and are added in order. Sums that are not finite are made again in plain f32, without padding.
 *
 * Refused: more taps than the table holds, or bits than a word; tensors that 31 bits do not address. */
#include "conv_planes.cuh"
#include "engines.h"

/* ---- host ------------------------------------------------------------------------------------------------------------ */

/* rate: multiply-adds a cycle and SM, as measured on an H200 (tf32, 16 bits) */
struct planes_kernel {
  int32_t bm, bn, bk, threads, resident[2], rate[2], shared[2];          /* [filter] */
  const void *function[2][2];             /* [filter][by fours] */
};
/* Of P<rows_a, split>. */
#define KERNEL(P, split, half, rate, rate_filter) \
  { P<true, split>::BM, P<true, split>::BN, P<true, split>::BK, P<true, split>::threads, \
    { P<true, split>::resident, P<false, split>::resident }, { rate, rate_filter }, \
    { tiled_shape<P<true, split>>::shared + P<true, split>::BM * 4, tiled_shape<P<false, split>>::shared }, \
    { { (const void *)conv_planes<P<true, split>, half, 1, false>, (const void *)conv_planes<P<true, split>, half, 4, false> }, \
      { (const void *)conv_planes<P<false, split>, half, 1, true>, (const void *)conv_planes<P<false, split>, half, 4, true> } } }
template <bool rows_a, bool split> using large = mma_product<mma_tf32, 4, 2, 2, 2, 64, 4, 2, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using wide = mma_product<mma_tf32, 2, 4, 4, 2, 64, 4, 2, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using small = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 3, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using of_48 = mma_product<mma_tf32, 4, 1, 2, 3, 64, 4, rows_a ? 3 : 2, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using of_32 = mma_product<mma_tf32, 4, 1, 2, 2, 64, 4, 3, 4, rows_a, false, true, split>;
template <bool rows_a, bool split> using of_16 = mma_product<mma_tf32, 4, 1, 2, 1, 64, 4, 4, 4, rows_a, false, true, split>;
enum { ONE, THREE, HALVES, KINDS };       /* tf32, 3xTF32, 16-bit elements */
static const planes_kernel kernels[][KINDS] = {
  { KERNEL(large, false, false, 118, 90), KERNEL(large, true, false, 70, 60), KERNEL(large, false, true, 75, 75) },
  { KERNEL(small, false, false, 105, 90), KERNEL(small, true, false, 65, 60), KERNEL(small, false, true, 60, 60) },
  { KERNEL(of_48, false, false, 120, 80), KERNEL(of_48, true, false, 70, 55), KERNEL(of_48, false, true, 75, 60) },
  { KERNEL(of_32, false, false, 90, 85), KERNEL(of_32, true, false, 60, 50), KERNEL(of_32, false, true, 75, 60) },
  { KERNEL(of_16, false, false, 40, 30), KERNEL(of_16, true, false, 32, 25), KERNEL(of_16, false, true, 35, 28) },
  { KERNEL(wide, false, false, 150, 110), {}, {} },
};
static const char *const names[] = { "128x64", "64x64", "128x48", "128x32", "128x16", "128x128", nullptr };
enum { SIZES = sizeof kernels / sizeof *kernels };

/* Nanoseconds of so many tiles of so many stages of k. */
static double cost(const planes_kernel *k, bool filter, double tiles, double steps, double bytes, int units)
{
  const double each = (double)k->bm * k->bn * k->bk / k->rate[filter], room = (double)units * k->resident[filter];
  double cycles = 0;
  for (double left = tiles; left > 0; left -= room) {       /* full waves, then the remainder */
    const double rounds = left >= 2 * room ? (double)(int64_t)(left / room) : 1;
    const double deep = left >= room ? k->resident[filter] : left > units ? left / units : 1;
    const double stage = each * deep;
    cycles += rounds * (steps * (stage > 450 ? stage : 450) + 5000 + k->bm * k->bn / 2.5 * deep);
    left -= (rounds - 1) * room;
  }
  const double ns = cycles / 1.7, memory = bytes / (25.0 * units);
  return 3000 + (ns > memory ? ns + 0.15 * memory : memory + 0.15 * ns);
}

static void narrow_strides(int32_t (&to)[5], const int64_t (&from)[5])
{
  for (int i = 0; i < 5; i++) to[i] = (int32_t)from[i];
}

/* Are the pixels of all images in units of four that lie side by side, and aligned? */
static bool by_fours(const qn_value *v)
{
  int64_t pixels = 1;
  bool fits = v->align >= 4 * (uint32_t)qn_kit_bytes(v->dtype) && (v->dim[1] == 1 || v->stride[1] % 4 == 0);
  for (int d = v->rank - 1; d >= 2; d--) fits = fits && (v->dim[d] == 1 || v->stride[d] == pixels), pixels *= v->dim[d];
  return fits && pixels % 4 == 0 && (v->dim[0] == 1 || v->stride[0] % 4 == 0);
}

static qn_status check(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  qn_status status = cuda_conv_wants_ampere(r, out);
  if (status) return status;
  const qn_value *all[] = { c->x, c->w, c->y };
  for (int i = 0; i < 3; i++)
    if (qn_extent(all[i]) > INT32_MAX)
      return qn_refuse(out, "tensors that 31 bits address", cuda_conv_name(c, all[i]), "fewer than 2^31 elements", "%s", "more");
  if (c->size[0] * c->size[1] * c->size[2] > TAPS)
    return qn_refuse(out, "taps of a table", "w", "1024", "%lld", (long long)(c->size[0] * c->size[1] * c->size[2]));
  if (c->mode == CUDA_CONV_FILTER && !qn_is_packed(c->w) && !qn_is_channels_last(c->w))
    return qn_refuse(out, "packed filters", "dw", "nchw or nhwc", "%s", "other strides");
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  planes p = {};
  cuda_chain chain;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (status || (status = check(r, &c, out))) return status;
  const bool data = c.mode == CUDA_CONV_DATA, filter = c.mode == CUDA_CONV_FILTER;
  const qn_value *gathered = data ? c.y : c.x, *written = data ? c.x : filter ? c.w : c.y;
  const int kind = gathered->dtype != QN_F32 ? HALVES : r->demands->math >= QN_MATH_TF32 ? ONE : THREE;
  const int64_t channels = (data ? c.filters : c.channels) / c.groups, columns = (data ? c.channels : c.filters) / c.groups;
  int64_t classes = 1, taps = 1, pixels = c.x->dim[0], fields = 0;
  p.mode = c.mode;
  for (int d = 0; d < 3; d++) {
    p.in[d] = (int32_t)(data ? c.out[d] : c.in[d]), p.extent[d] = (int32_t)(data ? c.in[d] : c.out[d]), p.size[d] = (int32_t)c.size[d];
    p.apart[d] = data ? (int32_t)c.stride[d] : 1, p.pace[d] = data ? 1 : (int32_t)c.stride[d];
    p.step[d] = (int32_t)c.dilation[d], p.before[d] = (int32_t)c.before[d], p.every[d] = data ? cuda_conv_every(&c, d) : 1;
    const int64_t most = qn_ceil_div(c.size[d], p.every[d]), reach = (c.size[d] - 1) * c.dilation[d] - c.before[d];
    const bool whole = data ? reach < c.stride[d] && c.before[d] == 0 && c.in[d] <= c.out[d] * c.stride[d]
                            : c.before[d] == 0 && (c.out[d] - 1) * c.stride[d] + reach < c.in[d];
    p.field[d] = whole ? -1 : (int32_t)fields;
    fields += whole ? 0 : most;
    classes *= p.apart[d], taps *= most;
    pixels *= qn_ceil_div(p.extent[d], p.apart[d]);
  }
  if (fields > BITS)
    return qn_refuse(out, "bits of a word for taps that padding may hide", "w", "filters of fewer taps", "%lld", (long long)fields);
  const int64_t table = filter ? 0 : taps * (int64_t)sizeof(planes_tap);
  const int64_t m = filter ? channels * taps : pixels, k = filter ? pixels : channels * taps;
  if (qn_max_i64(m, k) > INT32_MAX - 512) return qn_refuse(out, "rows and sums that 31 bits count", "x", "fewer", "%s", "more");
  if (!filter) {
    qn_request alone = *r;
    if (c.x->rank != 4) alone.n_ops = 1;                    /* followers are addressed in two spatial dims */
    if ((status = cuda_conv_problem_bias_relu(&c, &alone, &chain, &p.column, &p.factor, &p.relu, out))) return status;
    written = &r->value[chain.out];
    if (qn_extent(written) > INT32_MAX)
      return qn_refuse(out, "tensors that 31 bits address", "y", "fewer than 2^31 elements", "%s", "more");
    p.steps = chain.steps;
  }
  bool fours = taps == 1 && classes == 1 && by_fours(gathered) && (!filter || by_fours(c.y));
  for (int d = 0; d < 3; d++) fours = fours && c.size[d] == 1 && c.stride[d] == 1 && c.in[d] == c.out[d] && p.field[d] < 0;
  int64_t stride[5];
  cuda_conv_strides(stride, gathered);
  narrow_strides(p.gathered_stride, stride);
  p.gathered_group = channels * stride[1];
  cuda_conv_strides(stride, filter ? c.y : c.w);
  p.other_group = (filter ? columns * stride[1] : (data ? channels : columns) * stride[0]);
  narrow_strides(p.other_stride, stride);
  if (data) p.other_stride[0] = (int32_t)stride[1], p.other_stride[1] = (int32_t)stride[0];
  cuda_conv_strides(stride, written);
  narrow_strides(p.out_stride, stride);
  p.along = filter || !(stride[1] == 1 && columns > 1);
  p.last = filter ? !qn_is_packed(c.w) : p.gathered_stride[1] == 1 && channels > 1;
  p.images = (int32_t)c.x->dim[0], p.channels = (int32_t)channels;
  p.m = (int32_t)m, p.n = (int32_t)columns, p.k = (int32_t)k;
  p.elements = columns * c.groups * m;
  for (int i = 0; i < 8; i++) {
    int64_t some = 1;
    for (int d = 0; d < 3; d++) some *= qn_ceil_div(c.size[d], p.every[d]) - (i >> d & 1);
    p.by[i] = cuda_divide_by(p.last ? channels : qn_max_i64(some, 1));
  }
  p.by_w = cuda_divide_by(p.extent[1]), p.by_hw = cuda_divide_by((int64_t)p.extent[0] * p.extent[1]);
  p.by_dhw = cuda_divide_by((int64_t)p.extent[0] * p.extent[1] * p.extent[2]);
  if (classes * c.groups > 65535) return qn_refuse(out, "a grid of blocks", "x", "at most 65535 groups, of each of the stride's remainders",
                                                   "%lld", (long long)(classes * c.groups));
  const double bytes =
    (double)qn_kit_bytes(gathered->dtype) * ((double)qn_elements(c.x) + (double)qn_elements(c.y) + (double)qn_elements(c.w));
  const double sum = filter ? (double)k : (double)channels * (double)(c.size[0] * c.size[1] * c.size[2]) / (double)classes;
  const bool one_order = r->demands->determinism >= QN_DET_BATCH && !filter;
  double least = 0;
  int64_t best_parts = 1;
  int best = -1;
  for (int i = 0; i < SIZES && !(one_order && best >= 0); i++) {
    const planes_kernel *kernel = &kernels[i][kind];
    if (!kernel->threads || (r->variant && strcmp(r->variant, names[i]))) continue;
    if (kernel->shared[filter] + table > (int64_t)r->device->shared_per_block) continue;
    const int64_t tiles = qn_ceil_div(m, kernel->bm) * qn_ceil_div(columns, kernel->bn);
    const int64_t room = (int64_t)r->device->units * kernel->resident[filter];
    for (int rounds = 1; rounds <= (filter ? 3 : 1); rounds++) {
      int64_t parts = 1;
      if (filter) parts = qn_max_i64(qn_min_i64(rounds * room / (tiles * c.groups), k / 128), qn_ceil_div(k, SUM));
      if (parts > 1 && (uint64_t)(parts * p.elements * 4) > r->demands->workspace_limit) continue;
      const double units = (double)(tiles * classes * c.groups * parts);
      double t = cost(kernel, filter, units, (double)qn_ceil_div((int64_t)(sum / (double)parts), kernel->bk), bytes, (int)r->device->units);
      if (parts > 1) t += 2000 + (double)(parts * p.elements * 4) / 2000;
      if (best < 0 || t < least) best = i, least = t, best_parts = parts;
    }
  }
  if (best < 0)
    return qn_refuse(out, "a tile whose stages fit into shared memory, workspace for partial sums", "", "more", "%llu",
                     (unsigned long long)r->device->shared_per_block);
  const planes_kernel *kernel = &kernels[best][kind];
  const int64_t tiles_n = qn_ceil_div(columns, kernel->bn), tiles = qn_ceil_div(m, kernel->bm) * tiles_n;
  if (tiles > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "", "", "%lld", (long long)tiles);
  p.tiles_n = (int32_t)tiles_n;
  p.dtype = gathered->dtype, p.out_dtype = written->dtype;
  p.share = (int32_t)qn_round_up(qn_ceil_div(k, best_parts), kernel->bk);
  const int64_t parts = filter ? qn_ceil_div(k, p.share) : 1;
  if (parts > 1) p.out_dtype = QN_F32;
  if (parts > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer pixels", "%lld", (long long)k);
  cuda_conv_kernel *launch = cuda_conv_kernel_begin(out, kernel->function[filter][fours], &p, sizeof p);
  if (!launch) return QN_NO_MEMORY;
  launch->grid[0] = (uint32_t)tiles, launch->grid[1] = (uint32_t)parts, launch->grid[2] = (uint32_t)(classes * c.groups);
  launch->threads = (uint32_t)kernel->threads;
  launch->shared = (uint32_t)(kernel->shared[filter] + table);
  cuda_conv_kernel_pointer(launch, data ? c.y_at : c.x_at, offsetof(planes, gathered));
  cuda_conv_kernel_pointer(launch, filter ? c.y_at : c.w_at, offsetof(planes, other));
  if (!filter) cuda_conv_kernel_steps(launch, out, &chain, offsetof(planes, steps), offsetof(planes, out));
  else if (parts == 1) cuda_conv_kernel_pointer(launch, c.w_at, offsetof(planes, out));
  else cuda_conv_kernel_parts(launch, out, &c, parts, p.elements, offsetof(planes, out));
  out->math = kind == ONE ? QN_MATH_TF32 : kind == THREE ? QN_MATH_F32 : QN_MATH_STRICT;
  out->numerics.accumulator = kind == ONE ? QN_ACC_TF32 : kind == THREE ? QN_ACC_3XTF32 : QN_ACC_F32_TC;
  if (r->demands->determinism >= QN_DET_BATCH) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  out->variant = names[best];
  /* gradients by the filter of planes took 0.4 to 0.9 of it, 0.7 in the median of 150 on an H200; those by x of strides from 5 on 1.7 */
  out->estimate = filter && p.gathered_stride[1] != 1 ? 0.75 * least : !filter && classes > 4 ? 1.7 * least : least;
  return QN_OK;
}

#define ROW(op, pattern) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, names, pattern, \
                           prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr),
                                 ROW(QN_OP_CONV_BACKWARD_FILTER, nullptr) };
CUDA_ENGINES(conv_planes) = { row, sizeof row / sizeof *row };
