/* conv_tf32.c -- f32 convolution and its gradients as implicit products on Hopper's Tensor Cores, in tf32: one product (tf32), or
 * three of high and low parts, which keep f32's digits (3xtf32). Any layout.
 *
 *   forward          y[(n,p), k]      = sum over taps r and channels c of x[n, p stride + r dilation - pad, c] w[r, c, k]
 *   backward data    dx[(n,x), c]     = the same of dy, spread by its stride, and the filters turned round
 *   backward filter  dw[(r, c), k]    = sum over pixels (n,p) of x[n, p stride + r dilation - pad, c] dy[(n,p), k]
 *
 * Workspace holds what the product wants made of its operands: the gathered one (x, dy) with its channels last, unless it lies
 * so, or with few channels its windows beside one another; the other one (w, dy) packed for shared memory. A gradient by the filter is
 * summed in parts, side by side, and these in order. Two spatial dims, one group. */
#include "chain.h"
#include "conv_tf32.h"
#include "engines.h"

static const char *const variant_names[] = { "128x64", "128x128", NULL };

typedef enum mode { FORWARD, DATA, FILTER } mode;

typedef struct state {
  cuda_conv_tf32 product;
  cuda_chain chain;
  const cuda_conv_tf32_kernel *kernel;
  const cuda_driver *driver;
  mode     mode;
  bool     split, packs, unfolds;         /* the other operand into two parts; the gathered one is copied, as windows */
  int32_t  gathered, other, grid, step[2];        /* values; strides H, W by which dy is spread */
  uint64_t at_packed, at_parts, at_rows;  /* places in workspace; the gathered copy comes first; of what the chain folds */
  cuda_conv_pixels pixels, gradient;
  cuda_conv_unfold unfold;
  cuda_conv_filters filters;
  /* the gathered tensor's map: C, W, H, N */
  int64_t  dim[4], stride[3];
  int32_t  lower[2], upper[2], pace[2];   /* W, H */
} state;

static cuda_conv_pixels pixels_of(const qn_value *v)
{
  return (cuda_conv_pixels){ v->stride[0], v->stride[1], v->stride[2], v->stride[3],
                             (int32_t)v->dim[0], (int32_t)v->dim[1], (int32_t)v->dim[2], (int32_t)v->dim[3] };
}

/* Channels contiguous, all else in units of 16 bytes: the copy engine takes it as it lies. */
static bool in_place(const qn_value *v)
{
  bool ok = v->align >= 16 && (v->stride[1] == 1 || v->dim[1] == 1);
  for (int d = 0; d < 4; d++)
    if (d != 1 && v->dim[d] > 1) ok = ok && v->stride[d] % 4 == 0 && v->stride[d] > 0;
  return ok;
}

static qn_status check(const qn_conv *c, const qn_value *x, const qn_value *w, const qn_value *y, qn_prepared *out)
{
  if (x->rank != 4) return qn_refuse(out, "two spatial dims", "x", "2", "%d", x->rank - 2);
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  const uint32_t other = x->dtype != QN_F32 ? x->dtype : w->dtype != QN_F32 ? w->dtype : y->dtype;
  if (other != QN_F32) return qn_refuse(out, "dtypes", "x", "f32, and of the others", "%s", qn_kit_name(other));
  for (int d = 0; d < 2; d++) {
    int64_t reach = (w->dim[2 + d] - 1) * c->dilation[d];
    if (c->stride[d] > 8 || reach > 120 || c->pad_before[d] > 120 || c->pad_after[d] > 120)
      return qn_refuse(out, "strides to 8, windows and padding to 120", "w", "smaller", "%lld", (long long)reach);
  }
  double pixels = (double)x->dim[0] * (double)((x->dim[2] + 8) * (x->dim[3] + 8) + y->dim[2] * y->dim[3] * c->stride[0] * c->stride[1]);
  if (pixels > 2e9 || x->dim[1] > 1 << 20 || y->dim[1] > 1 << 20) return qn_refuse(out, "fewer than 2^31 pixels", "x", "", "%s", "more");
  return QN_OK;
}

/* Nanoseconds of the product, by the clocks that a k step and a tile's end took on an H200. */
static double cost(const cuda_conv_tf32_kernel *k, mode mode, bool split, int64_t units, int64_t share, int multiprocessors)
{
  static const double step[2][2][2] = { { { 1000, 1075 }, { 1620, 2020 } }, { { 1250, 1490 }, { 1750, 2540 } } };     /* [filter][split][128 columns] */
  double rounds = (double)qn_ceil_div(units, multiprocessors);
  return (3000 + rounds * ((double)share * step[mode == FILTER][split][k->bn == 128] + 1000 + 62.0 * k->bn)) / 1.75 + 1000;
}

static qn_status prepare(const qn_request *r, qn_prepared *out, bool split)
{
  const qn_node *op = &r->op[0];
  const qn_conv *c = op->attr;
  mode mode = op->op == QN_OP_CONV_FORWARD ? FORWARD : op->op == QN_OP_CONV_BACKWARD_DATA ? DATA : FILTER;
  int x = qn_role(op, mode == FORWARD ? QN_ROLE_CONV_FORWARD_X : mode == DATA ? QN_ROLE_CONV_BACKWARD_DATA_DX : QN_ROLE_CONV_BACKWARD_FILTER_X);
  int w = qn_role(op, mode == FORWARD ? QN_ROLE_CONV_FORWARD_W : mode == DATA ? QN_ROLE_CONV_BACKWARD_DATA_W : QN_ROLE_CONV_BACKWARD_FILTER_DW);
  int y = qn_role(op, mode == FORWARD ? QN_ROLE_CONV_FORWARD_Y : mode == DATA ? QN_ROLE_CONV_BACKWARD_DATA_DY : QN_ROLE_CONV_BACKWARD_FILTER_DY);
  const qn_value *vx = &r->value[x], *vw = &r->value[w], *vy = &r->value[y];
  int gathered = mode == DATA ? y : x, other = mode == FILTER ? y : w;
  const qn_value *from = &r->value[gathered];
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  qn_status status = check(c, vx, vw, vy, out);
  if (status) return status;

  /* what happens to the sums */
  cuda_chain chain;
  cuda_out_dims dims = { { 3, 1, 0, -1 }, CUDA_BY_DIMS };
  cuda_chain_begin(&chain, mode == FORWARD ? y : mode == DATA ? x : w);
  int bias = mode == FORWARD ? qn_role(op, QN_ROLE_CONV_FORWARD_BIAS) : -1;
  if (bias >= 0) {
    cuda_out_dims row = { { -1, 0, -1, -1 }, CUDA_BY_DIMS };       /* [K], along columns */
    int k = cuda_chain_operand(&chain, r, bias, &row);
    if (k < 0) return qn_refuse(out, "dtypes", "bias", "f16, bf16 or f32", "%s", qn_kit_name(r->value[bias].dtype));
    cuda_chain_step(&chain, QN_OP_ADD, k, false, 0, 0);
  }
  if (mode != FILTER) cuda_chain_follow(&chain, r, &dims);
  const qn_value *to = &r->value[chain.out];
  int64_t row_stride = to->dim[3] > 1 ? to->stride[3] : to->stride[2];
  if (mode != FILTER && to->dim[2] > 1 && to->dim[3] > 1 && to->stride[2] != to->stride[3] * to->dim[3]) {
    if (chain.n_ops == 1) return qn_refuse(out, "H and W as one dim", mode == DATA ? "dx" : "y", "a stride of H that is W times that of W", "%lld", (long long)to->stride[2]);
    qn_request alone = *r;
    alone.n_ops = 1;
    return prepare(&alone, out, split);
  }

  /* the product's dims: rows in blocks, columns, k steps */
  int64_t taps = vw->dim[2] * vw->dim[3], pixels_x = vx->dim[0] * vx->dim[2] * vx->dim[3], pixels_y = vy->dim[0] * vy->dim[2] * vy->dim[3];
  int64_t channels = from->dim[1];
  bool unfolds = mode != DATA && channels <= 8 && taps > 1 && channels * taps <= 1024;
  int64_t depth = unfolds ? channels * taps : channels, tap_steps = unfolds ? 1 : taps, columns = mode == DATA ? vx->dim[1] : vy->dim[1];
  int64_t chunks = qn_ceil_div(depth, mode == FILTER ? 64 : 32), row_blocks = tap_steps * chunks;
  int64_t rows = mode == FORWARD ? pixels_y : mode == DATA ? pixels_x : row_blocks * 64;
  int64_t tiles_m = qn_ceil_div(rows, CUDA_TF32_ROWS), steps = mode == FILTER ? qn_ceil_div(pixels_y, CUDA_TF32_DEPTH) : row_blocks;
  if (steps > INT32_MAX || steps == 0 || tiles_m > INT32_MAX / CUDA_TF32_ROWS) return qn_refuse(out, "something to sum, and not too much", "x", "", "%s", "");
  bool spreads = mode == DATA && (c->stride[0] > 1 || c->stride[1] > 1), packs = unfolds || spreads || !in_place(from);
  int64_t seen_h = spreads ? (from->dim[2] - 1) * c->stride[0] + 1 : unfolds ? vy->dim[2] : from->dim[2];
  int64_t seen_w = spreads ? (from->dim[3] - 1) * c->stride[1] + 1 : unfolds ? vy->dim[3] : from->dim[3];

  /* which tile, and how many parts */
  const cuda_conv_tf32_kernel *kernels = split ? cuda_conv_tf32_three : cuda_conv_tf32_one;
  int best = -1;
  int64_t parts = 1;
  double least = 0;
  for (int i = 0; variant_names[i]; i++) {
    if (r->variant && strcmp(r->variant, variant_names[i])) continue;
    int64_t tiles = tiles_m * qn_ceil_div(columns, kernels[i].bn);
    for (int64_t p = 1; p <= (mode == FILTER ? qn_min_i64(qn_max_i64(4 * r->device->units / tiles, 1), steps) : 1); p++) {
      int64_t share = qn_ceil_div(steps, p);
      if (share * (p - 1) >= steps) continue;
      double t = cost(&kernels[i], mode, split, tiles * p, share, r->device->units) + (mode == FILTER ? (double)(p * rows * columns) * 8 / 3000 : 0);
      if (best < 0 || t < least) best = i, least = t, parts = p;
    }
  }
  if (best < 0) return qn_refuse(out, "one of its variants", "", "128x64 or 128x128", "%s", r->variant ? r->variant : "");
  const cuda_conv_tf32_kernel *kernel = &kernels[best];
  int64_t tiles_n = qn_ceil_div(columns, kernel->bn);
  uint64_t copy = packs ? (uint64_t)(from->dim[0] * seen_h * seen_w * qn_round_up(depth, 4)) * 4 : 0;
  uint64_t packed = (uint64_t)(steps * tiles_n * kernel->bn) * 128 * (split ? 2 : 1);
  uint64_t at_packed = (uint64_t)qn_round_up((int64_t)copy, 256), at_parts = at_packed + packed;
  uint64_t at_rows = at_parts + (mode == FILTER ? (uint64_t)(parts * columns * tiles_m * CUDA_TF32_ROWS) * 4 : 0), workspace = at_rows + cuda_chain_bytes(&chain);
  if (workspace > r->demands->workspace_limit) return qn_refuse(out, "workspace for operands laid out anew", "", "a limit above it", "%llu", (unsigned long long)workspace);
  if (tiles_m * tiles_n * parts > INT32_MAX || copy / 4 / 2048 > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "", "", "%s", "more");

  state st = { 0 };
  cuda_conv_tf32 *g = &st.product;
  st.chain = chain;
  st.kernel = kernel;
  st.mode = mode;
  st.split = split, st.packs = packs, st.unfolds = unfolds;
  st.gathered = gathered, st.other = other;
  st.at_packed = at_packed, st.at_parts = at_parts, st.at_rows = at_rows;
  st.pixels = pixels_of(from);
  st.gradient = pixels_of(vy);
  st.step[0] = spreads ? (int32_t)c->stride[0] : 1, st.step[1] = spreads ? (int32_t)c->stride[1] : 1;
  st.unfold = (cuda_conv_unfold){ (int32_t)vy->dim[2], (int32_t)vy->dim[3], (int32_t)vw->dim[2], (int32_t)vw->dim[3], (int32_t)c->stride[0], (int32_t)c->stride[1],
                                   (int32_t)c->pad_before[0], (int32_t)c->pad_before[1], (int32_t)c->dilation[0], (int32_t)c->dilation[1] };
  int row = mode == DATA ? 1 : 0;                           /* rows of the packed filters: K, or C */
  st.filters = (cuda_conv_filters){ .row_stride = vw->stride[row], .col_stride = vw->stride[1 - row], .r_stride = vw->stride[2], .s_stride = vw->stride[3],
    .rows = (int32_t)vw->dim[row], .cols = (int32_t)vw->dim[1 - row], .taps = (int32_t)taps, .taps_w = (int32_t)vw->dim[3], .unfolded = unfolds, .reversed = mode == DATA };

  /* windows over the gathered tensor, as it is or as it is copied; maps name W before H */
  const qn_value *grid = mode == DATA ? vx : vy;            /* whose pixels they belong to */
  for (int d = 0; d < 2; d++) {
    int at = 1 - d;
    int64_t reach = (vw->dim[2 + at] - 1) * c->dilation[at], before = mode == DATA ? reach - c->pad_before[at] : c->pad_before[at];
    st.lower[d] = unfolds ? 0 : (int32_t)-before;
    st.upper[d] = unfolds ? 0 : (int32_t)(mode == DATA ? vx->dim[2 + at] - (at ? seen_w : seen_h) - before : c->pad_after[at] - reach);
    st.pace[d] = unfolds || mode == DATA ? 1 : (int32_t)c->stride[at];
  }
  if (st.upper[0] < -128 || st.upper[0] > 127 || st.upper[1] < -128 || st.upper[1] > 127)
    return qn_refuse(out, "windows that end within 128 of the edge", "x", "", "%s", "");
  st.dim[0] = packs ? qn_round_up(depth, 4) : depth, st.dim[1] = seen_w, st.dim[2] = seen_h, st.dim[3] = from->dim[0];
  st.stride[0] = packs ? st.dim[0] : from->stride[3];
  st.stride[1] = packs ? st.dim[0] * seen_w : from->stride[2];
  st.stride[2] = packs ? st.dim[0] * seen_w * seen_h : from->stride[0];
  for (int d = 0; d < 3; d++)                               /* a dim of 1 may have any stride */
    if (st.dim[d + 1] == 1) st.stride[d] = d ? st.stride[d - 1] * st.dim[d] : qn_round_up(st.dim[0], 4);

  g->m = (int32_t)(mode == FILTER ? tiles_m * CUDA_TF32_ROWS : rows);
  g->n = (int32_t)columns;
  g->tiles_m = (int32_t)tiles_m, g->tiles_n = (int32_t)tiles_n;
  g->parts = (int32_t)parts;
  g->k_steps = (int32_t)steps;
  g->share = (int32_t)qn_ceil_div(steps, parts);
  g->taps_w = unfolds ? 1 : (int32_t)vw->dim[3];
  g->chunks = (int32_t)chunks;
  g->blocks = (int32_t)row_blocks;
  g->image_w = (int32_t)grid->dim[3];
  g->image_hw = (int32_t)(grid->dim[2] * grid->dim[3]);
  g->stride_w = st.pace[0], g->stride_h = st.pace[1];
  g->start_w = st.lower[0], g->start_h = st.lower[1];
  g->dilation_w = unfolds ? 0 : (int32_t)c->dilation[1], g->dilation_h = unfolds ? 0 : (int32_t)c->dilation[0];
  g->steps = chain.steps;
  if (mode == FILTER) {                                     /* parts: [part][column][row] */
    g->along = 1;
    g->image_rows = g->m;
    g->out_dtype = QN_F32;
    g->out_stride[0] = 1, g->out_stride[1] = g->m;
    g->part_stride = g->m * columns;
  } else {
    g->image_rows = (int32_t)(to->dim[2] * to->dim[3]);
    g->out_dtype = to->dtype;
    g->out_stride[0] = row_stride, g->out_stride[1] = to->stride[1], g->out_stride[2] = to->stride[0];
    g->along = row_stride == 1 && !(to->stride[1] == 1 && to->dim[1] > 1);
  }
  int64_t units = tiles_m * tiles_n * parts;
  st.grid = (int32_t)qn_min_i64(units, r->device->units);

  out->n_ops = chain.n_ops;
  out->variant = variant_names[best];
  out->workspace = workspace;
  out->estimate = least + (double)copy / 1700 + (double)packed / 2500 + (packs ? 2500 : 1500) + (mode == FILTER ? 1500 : 0);
  out->math = split ? QN_MATH_F32 : QN_MATH_TF32;
  out->numerics = (qn_numerics){ .accumulator = split ? QN_ACC_3XTF32 : QN_ACC_TF32 };
  return cuda_keep(out, &st, sizeof st);
}

static qn_status prepare_one(const qn_request *r, qn_prepared *out) { return prepare(r, out, false); }
static qn_status prepare_three(const qn_request *r, qn_prepared *out) { return prepare(r, out, true); }

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  if (s) return s;
  cuuint64_t dim[4], stride[3];
  for (int i = 0; i < 4; i++) dim[i] = (cuuint64_t)st->dim[i];
  for (int i = 0; i < 3; i++) stride[i] = (cuuint64_t)(st->stride[i] * 4);
  cuuint32_t pace[4] = { 1, (cuuint32_t)st->pace[0], (cuuint32_t)st->pace[1], 1 };
  CUresult e = st->driver->tensor_map_im2col(&st->product.a, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, (void *)0x10000, dim, stride, st->lower, st->upper, 32,
                                             st->mode == FILTER ? CUDA_TF32_DEPTH : CUDA_TF32_ROWS, pace, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                             CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (e != CUDA_SUCCESS) return cuda_host->error(QN_INTERNAL, "cuda: conv_tf32: the driver refused a tensor map");
  return cuda_check(cudaFuncSetAttribute(st->kernel->function[st->mode == FILTER], cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernel->shared), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_conv_tf32 g = st->product;
  char *workspace = launch->workspace;
  float *packed = (float *)(workspace + st->at_packed), *parts = (float *)(workspace + st->at_parts);
  void *gathered = launch->ptr[st->gathered];
  const float *other = launch->ptr[st->other];
  qn_status s = QN_OK;
  if (st->unfolds) s = cuda_conv_pack_windows(launch->workspace, gathered, &st->pixels, &st->unfold, launch->stream);
  else if (st->packs) s = cuda_conv_pack_pixels(launch->workspace, gathered, &st->pixels, st->step[0], st->step[1], launch->stream);
  if (!s && st->mode == FILTER) s = cuda_conv_pack_gradient(packed, other, &st->gradient, st->kernel->bn, st->split, launch->stream);
  else if (!s) s = cuda_conv_pack_filters(packed, other, &st->filters, st->kernel->bn, st->split, launch->stream);
  if (s) return s;
  st->driver->tensor_map_address(&g.a, st->packs ? launch->workspace : gathered);
  g.b = packed;
  g.out = st->mode == FILTER ? parts : launch->ptr[st->chain.out];
  if ((s = cuda_chain_start(&g.steps, &st->chain, launch, workspace + st->at_rows))) return s;
  s = cuda_conv_tf32_launch(&g, st->kernel, st->mode == FILTER, st->grid, launch->stream);
  if (!s && st->mode == FILTER)
    s = cuda_conv_join_filters(launch->ptr[st->chain.out], parts, &st->filters, g.parts, g.m, g.chunks * 64, launch->stream);
  return s;
}

#define ROWS(op_) \
  { .name = "3xtf32", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, .variants = variant_names, \
    .also = op_ == QN_OP_CONV_FORWARD ? cuda_chain_also : NULL, .prepare = prepare_three, .build = build, .run = run, .release = cuda_release }, \
  { .name = "tf32", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, .variants = variant_names, \
    .also = op_ == QN_OP_CONV_FORWARD ? cuda_chain_also : NULL, .prepare = prepare_one, .build = build, .run = run, .release = cuda_release }
static const qn_engine rows[] = { ROWS(QN_OP_CONV_FORWARD), ROWS(QN_OP_CONV_BACKWARD_DATA), ROWS(QN_OP_CONV_BACKWARD_FILTER) };
const qn_engine_list cuda_conv_tf32_list = { rows, sizeof rows / sizeof *rows };
