/* conv_pointwise.c -- convolution with filters of one tap over planes (NCHW), and its gradients, as one product for all images by mma.sync:
 * f16, bf16, f32 as tf32 (math tf32) or 3xTF32 (math f32). One to three spatial dims, groups, any strides of images and channels.
 *
 *   forward           y [f, (n, p)]  = w [f, c] x [c, (n, p)] (+ bias, normalization, relu)
 *   backward data     dx [c, (n, p)] = w' [c, f] dy [f, (n, p)]
 *   backward filter   dw [f, c]      = dy [f, (n, p)] x' [(n, p), c]
 *
 * Nothing is copied or packed, the images need not begin on 16 bytes, and a tile's pixels may be of several images: small planes fill
 * the tiles that a batch of products would leave half empty. A filter gradient's partial sums go to workspace and are added in order.
 *
 * Refused: strides, padding, several taps; pixels that do not lie side by side in units of 4 bytes. */
#include "conv_pointwise.h"
#include "engines.h"
#include "kit/shared_memory.h"

#define EACH(name) name,
static const char *const names[] = { CUDA_POINTWISE_TILES(EACH) NULL };
#undef EACH

/* ---- operands ---------------------------------------------------------------------------------------------------------- */

/* Reads a tensor whose spatial dims are one run of elements. */
static bool read_side(const qn_value *v, int64_t groups, cuda_pointwise_side *side)
{
  int64_t pixels = 1;
  for (int d = v->rank - 1; d >= 2; d--) {
    if (v->dim[d] > 1 && v->stride[d] != pixels) return false;
    pixels *= v->dim[d];
  }
  const int64_t channel = v->dim[1] > 1 ? v->stride[1] : 0;
  *side = (cuda_pointwise_side){ NULL, v->dim[0] > 1 ? v->stride[0] : 0, channel, v->dim[1] / groups * channel };
  return true;
}

/* Is the tensor, of so many pixels an image, in aligned units of so many bytes? */
static bool in_units(const qn_value *v, const cuda_pointwise_side *side, int64_t pixels, int64_t bytes)
{
  const int64_t size = qn_kit_bytes(v->dtype);
  return v->align >= bytes && (pixels | side->image | side->channel) * size % bytes == 0;
}

/* Bytes of a copy of filters: 16, 8 or 4; 0: element by element. */
static int32_t copy_bytes(const cuda_tiled_side *w, uint32_t align, int64_t k, int64_t groups, int64_t size, bool rows)
{
  const int64_t inner = rows ? w->row_stride : w->k_stride, outer = rows ? w->k_stride : w->row_stride;
  if (inner != 1 && (rows ? w->rows : k) > 1) return 0;
  for (int64_t bytes = 16; bytes >= 4; bytes /= 2)
    if (align >= bytes && outer * size % bytes == 0 && (groups == 1 || w->batch_stride[0] * size % bytes == 0)) return (int32_t)bytes;
  return 0;
}

static qn_status check(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  qn_status status = cuda_conv_wants_ampere(r, out);
  for (int d = 0; d < 3 && !status; d++) {
    if (c->size[d] != 1) return qn_refuse(out, "filters of one tap", "w", "1", "%lld", (long long)c->size[d]);
    if (c->stride[d] != 1 || c->before[d] || c->in[d] != c->out[d])
      return qn_refuse(out, "as many pixels of y as of x", "x", "no stride, no padding", "%s", "other");
  }
  if (status) return status;
  if (c->mode == CUDA_CONV_FILTER && !qn_is_packed(c->w) && !qn_is_channels_last(c->w))
    return qn_refuse(out, "packed filters", "dw", "nchw or nhwc", "%s", "other strides");
  if (c->groups > 65535) return qn_refuse(out, "a grid of blocks", "x", "at most 65535 groups", "%lld", (long long)c->groups);
  return QN_OK;
}

/* Reads the ops that follow: as many as are a bias, a fold and a relu. */
static qn_status read_chain(const cuda_conv_problem *c, const qn_request *r, cuda_chain *chain, cuda_pointwise *g, qn_prepared *out)
{
  const cuda_out_dims dims = { { 3, 1, 0, 2 }, CUDA_BY_DIMS };
  for (qn_request some = *r; ; some.n_ops = chain->n_ops - 1) {
    if (c->x->rank != 4) some.n_ops = 1;                    /* followers are addressed in two spatial dims */
    qn_status status = cuda_chain_begin_conv(chain, r, c->mode == CUDA_CONV_FORWARD ? c->y_at : c->x_at, c->bias_at, out);
    if (status) return status;
    cuda_chain_follow(chain, &some, &dims);
    const qn_value *to = &r->value[chain->out];
    if (chain->n_ops == 1) {
      g->column = c->bias_at >= 0 ? 0 : -1, g->factor = -1, g->relu = 0;   /* alone it may have any stride */
      break;
    }
    if (cuda_chain_column_relu(chain, &g->column, &g->factor, &g->relu) && cuda_conv_is_float(to)) break;
  }
  g->steps = chain->steps;
  return QN_OK;
}

typedef struct state {
  cuda_conv_kernel kernel;                /* first, as conv_kernel.c's functions take it */
  bool early;                             /* started while the kernel before it ends */
} state;

/* ---- which tile -------------------------------------------------------------------------------------------------------- */

/* bytes: of all tensors; size, unit: of an element, of a copy of pixels */
typedef struct sums { int64_t m, n, k, groups, parts; double bytes; int size, unit, units; } sums;

/* Cycles of a wave of tiles, `deep` of them on each multiprocessor: the constants are fitted to 120 times on an H200, those of the gradient
 * by the filters to 30. A stage takes what its products and copies do, or the latency that its successors in the ring do not hide. */
static double wave(const cuda_pointwise_kernel *t, const sums *s, bool filter, double deep)
{
  const double steps = (double)qn_ceil_div(qn_ceil_div(s->k, s->parts), t->bk), products = (double)t->bm * t->bn * t->bk / t->rate;
  if (filter) {
    const double latency = 1400, stage = products * deep > latency / (t->stages - 1) ? products * deep : latency / (t->stages - 1);
    return latency + 2100 + (steps - 1) * stage + t->bm * t->bn / 29.0 * deep;
  }
  const double latency = 1750, width = (double)t->bk * s->size, copies = t->bn * width / s->unit + t->bm * width / 16;
  const double each = products * (s->size == 2 ? 0.25 : 0.48) + copies * 0.33, least = width * 7.5 * (1 + 0.13 * (deep - 1));
  double stage = each * deep > latency / (t->stages - 1) ? each * deep : latency / (t->stages - 1);
  if (stage < least) stage = least;
  const double cycles = latency + 100 + (steps - 1) * stage + each * deep + t->bm * t->bn / 8.7 * deep;
  return cycles * (deep > 1 ? 1 : 1.16) * (s->unit > 4 ? 1 : 1.3);          /* a tile alone waits longer; copies of 4 bytes are slow */
}

/* Nanoseconds: full waves and the remainder, or the memory traffic if that takes longer. */
static double cost(const cuda_pointwise_kernel *t, const sums *s, bool filter)
{
  const int64_t blocks = qn_ceil_div(s->m, t->bm) * qn_ceil_div(s->n, t->bn) * s->groups * s->parts, room = (int64_t)s->units * t->resident;
  const double full = (double)(blocks / room), rest = (double)qn_ceil_div(blocks % room, s->units);
  const double cycles = full * wave(t, s, filter, t->resident) + (rest > 0 ? wave(t, s, filter, rest) : 0);
  const double memory = s->bytes / ((filter ? 20 : 12.9) * s->units), ns = cycles / 1.75;
  double total = (filter ? 3000 : 1430) + (ns > memory ? ns + 0.2 * memory : memory + 0.2 * ns);
  if (s->parts > 1) total += 1500 + (double)(s->parts * s->m * s->n * s->groups * 4) / 2500;
  return filter || s->size == 2 ? total : 0.8 * total;      /* f32: measured again, 120 times of one list */
}

/* Bytes of shared memory for so many stages of k: the tile takes the place of the ring. */
static int64_t shared_of(const cuda_pointwise_kernel *t, bool rows, int64_t steps)
{
  return qn_max_i64(qn_min_i64(steps, t->stages) * t->stage[rows], t->tile);
}

static const cuda_pointwise_kernel *kernels_of(const qn_request *r, uint32_t dtype, bool filter, qn_prepared *out)
{
  const bool tf32 = r->demands->math >= QN_MATH_TF32;
  out->math = dtype != QN_F32 ? QN_MATH_STRICT : tf32 ? QN_MATH_TF32 : QN_MATH_F32;
  out->numerics.accumulator = dtype != QN_F32 ? QN_ACC_F32_TC : tf32 ? QN_ACC_TF32 : QN_ACC_3XTF32;
  return (dtype == QN_BF16  ? cuda_pointwise_bf16
          : dtype == QN_F16 ? cuda_pointwise_f16
          : tf32            ? cuda_pointwise_tf32
                            : cuda_pointwise_3xtf32)[filter];
}

/* ---- prepare ------------------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  cuda_chain chain = { 0 };
  cuda_pointwise g = { .column = -1, .factor = -1 };
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (!status) status = check(r, &c, out);
  if (status) return status;
  const bool data = c.mode == CUDA_CONV_DATA, filter = c.mode == CUDA_CONV_FILTER;
  if (!filter && (status = read_chain(&c, r, &chain, &g, out))) return status;
  const qn_value *read = data ? c.y : c.x, *written = filter ? c.w : &r->value[chain.out];
  const int64_t channels = c.channels / c.groups, filters = c.filters / c.groups;             /* of a group */
  const int64_t pixels = c.in[0] * c.in[1] * c.in[2], all = pixels * c.x->dim[0], size = (int64_t)qn_kit_bytes(read->dtype);
  if (!read_side(read, c.groups, &g.read) || !(filter ? read_side(c.y, c.groups, &g.dy) : read_side(written, c.groups, &g.out)))
    return qn_refuse(out, "planes", cuda_conv_name(&c, read), "pixels side by side", "%s", "other strides");
  for (g.bytes = 16; g.bytes >= 4; g.bytes /= 2)
    if (in_units(read, &g.read, pixels, g.bytes) && (!filter || in_units(c.y, &g.dy, pixels, g.bytes))) break;
  if (g.bytes < 4)
    return qn_refuse(out, "pixels in units of 4 bytes", cuda_conv_name(&c, read), "an even number of them", "%lld", (long long)pixels);
  const int64_t m = data ? channels : filters, n = filter ? channels : all, k = filter ? all : data ? filters : channels;
  if (qn_max_i64(qn_max_i64(m, n), k) > INT32_MAX - 512)
    return qn_refuse(out, "rows, columns and sums that 31 bits count", "x", "fewer", "%s", "more");
  const int32_t block = cuda_tiled_block((int)size);
  if (!filter && k > block) return qn_refuse(out, "a running sum", "w", "fewer channels", "%lld", (long long)k);
  bool rows = false;
  if (!filter) {
    const int64_t by_filter = c.w->dim[0] > 1 ? c.w->stride[0] : 0, by_channel = c.w->dim[1] > 1 ? c.w->stride[1] : 0;
    g.w = (cuda_tiled_side){ .row_stride = data ? by_channel : by_filter, .k_stride = data ? by_filter : by_channel,
                             .batch_stride = { filters * by_filter }, .rows = (int32_t)m };
    rows = g.w.k_stride > 1 && g.w.row_stride <= 1;
    g.w.bytes = copy_bytes(&g.w, c.w->align, k, c.groups, size, rows);
    for (g.each = 4; g.each > 1 && !in_units(written, &g.out, pixels, g.each * qn_kit_bytes(written->dtype)); ) g.each /= 2;
  }

  const cuda_pointwise_kernel *kernels = kernels_of(r, read->dtype, filter, out);
  const double bytes = (double)(qn_elements(c.x) * qn_kit_bytes(c.x->dtype)) + (double)(qn_elements(c.y) * qn_kit_bytes(c.y->dtype)) +
                       (double)(qn_elements(c.w) * size);
  const bool one_order = r->demands->determinism >= QN_DET_BATCH && !filter;
  int best = -1;
  double least = 0;
  int64_t best_parts = 1;
  for (int i = 0; names[i] && !(one_order && best >= 0); i++) {
    const cuda_pointwise_kernel *t = &kernels[i];
    if (!t->threads || (r->variant && strcmp(r->variant, names[i]))) continue;
    if (shared_of(t, rows, t->stages) > (int64_t)r->device->shared_per_block) continue;
    if (!filter && t->aligned_only && (!g.w.bytes || one_order)) continue;
    const int64_t tiles = qn_ceil_div(m, t->bm) * qn_ceil_div(n, t->bn), room = (int64_t)r->device->units * t->resident;
    for (int half = 1; half <= (filter ? 2 : 1); half++) {  /* a gradient by the filters: as many parts as fill the device, or half of it */
      sums s = { m, n, k, c.groups, 1, bytes, (int)size, g.bytes, (int)r->device->units };
      if (filter) s.parts = qn_max_i64(qn_min_i64(room / half / (tiles * c.groups), k / (2 * t->bk)), qn_ceil_div(k, block));
      if (s.parts < 1) s.parts = 1;
      if (s.parts > 65535 || (s.parts > 1 && (uint64_t)(s.parts * qn_elements(c.w) * 4) > r->demands->workspace_limit)) continue;
      const double ns = cost(t, &s, filter);
      if (best < 0 || ns < least) best = i, least = ns, best_parts = s.parts;
    }
  }
  if (best < 0)
    return qn_refuse(out, "a tile for filters as they are aligned, its stages in shared memory, workspace for partial sums", "w", "another",
                     "%s", r->variant ? r->variant : "none");
  const cuda_pointwise_kernel *t = &kernels[best];
  const int64_t tiles_m = qn_ceil_div(m, t->bm), tiles = tiles_m * qn_ceil_div(n, t->bn);
  if (tiles > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "", "", "%lld", (long long)tiles);
  g.m = (int32_t)m, g.n = (int32_t)n, g.k = (int32_t)k, g.tiles_m = (int32_t)tiles_m;
  g.by_pixels = cuda_divide_by(pixels);
  g.share = (int32_t)qn_round_up(qn_ceil_div(k, best_parts), t->bk);
  g.elements = qn_elements(c.w);
  const int64_t parts = filter ? qn_ceil_div(k, g.share) : 1;
  g.out_dtype = parts > 1 ? QN_F32 : written->dtype;

  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  cuda_conv_kernel *launch = &st->kernel;
  launch->function = t->function[rows];
  memcpy(launch->parameters.byte, &g, sizeof g);
  launch->grid[0] = (uint32_t)tiles, launch->grid[1] = (uint32_t)parts, launch->grid[2] = (uint32_t)c.groups;
  launch->threads = (uint32_t)t->threads, launch->shared = (uint32_t)shared_of(t, rows, qn_ceil_div(filter ? g.share : k, t->bk));
  cuda_conv_kernel_pointer(launch, data ? c.y_at : c.x_at, offsetof(cuda_pointwise, read.p));
  cuda_conv_kernel_pointer(launch, filter ? c.y_at : c.w_at, filter ? offsetof(cuda_pointwise, dy.p) : offsetof(cuda_pointwise, w.p));
  if (!filter) cuda_conv_kernel_steps(launch, out, &chain, offsetof(cuda_pointwise, steps), offsetof(cuda_pointwise, out.p));
  else if (parts == 1) cuda_conv_kernel_pointer(launch, c.w_at, offsetof(cuda_pointwise, out.p));
  else cuda_conv_kernel_parts(launch, out, &c, parts, g.elements, offsetof(cuda_pointwise, out.p));
  if (one_order) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  out->variant = names[best];
  out->estimate = out->math == QN_MATH_TF32 ? least * 1.25 : least;    /* tf32 took 1.2 to 1.4 times as long */
  return QN_OK;
}

/* ---- build, run ------------------------------------------------------------------------------------------------------------ */

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  struct cudaFuncAttributes has;
  qn_status status = cuda_conv_kernel_build(r, out);
  if (!status) status = cuda_check(cudaFuncGetAttributes(&has, st->kernel.function), "cudaFuncGetAttributes");
  if (!status) st->early = has.ptxVersion >= 90;            /* code for older devices does not wait */
  return status;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  return cuda_conv_kernel_start(&st->kernel, launch, st->early);
}

#define ROW(op_) { .name = "pointwise", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .variants = names, .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, .prepare = prepare, \
                   .build = build, .run = run, .release = cuda_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_pointwise) = { rows, sizeof rows / sizeof *rows };
