/* conv_wgmma.c -- convolution and its gradients as implicit products on Hopper's Tensor Cores, channels last, f16 and bf16.
 *
 *   forward          y[(n,p), k]  = sum over taps r and channels c of x[n, p stride + r dilation - pad, c] w[k, r, c]
 *   backward data    dx[(n,x), c] = sum over taps r and filters k of dy[n, x + pad - r dilation, k] w[k, r, c]      dy spread by
 *                                   its stride first, in workspace
 *   backward filter  dw[k, r, c]  = sum over pixels (n,p) of dy[(n,p), k] x[n, p stride + r dilation - pad, c]      a tap is a batch
 *
 * The copy engine gathers the windows (im2col maps); the rest is matmul_wgmma.cuh. A gradient by the filter has few tiles and
 * many pixels: parts of the pixels are summed side by side into workspace and joined in order. Wins with 64 channels or more. Two
 * spatial dims, one group, channels in eights. */
#include "chain.h"
#include "conv_layout.h"
#include "engines.h"
#include "matmul_wgmma.h"

#define NAME(bm, bn, splits) #bm "x" #bn "_k" #splits,
static const char *const variant_names[] = { CUDA_CONV_TILES(NAME) NULL };
static const char *const filter_variant_names[] = { CUDA_CONV_FILTER_TILES(NAME) NULL };
#undef NAME

typedef struct state {
  cuda_gemm  gemm;
  cuda_chain chain;
  const cuda_gemm_kernel *kernel;
  const cuda_driver *driver;
  int32_t    a, b, grid, mode, parts, spread[2];            /* spread: strides H, W of dy; 0: none */
  uint32_t   dtype, out_dtype, final_dtype;                 /* out: what the product writes */
  /* the gathered tensor's map, and the other operand's: {columns, taps or rows, rows or 1, 1} */
  int64_t    gathered_dim[4], gathered_stride[3];           /* C, W, H, N */
  int32_t    lower[2], upper[2], step[2];                   /* W, H */
  int64_t    spread_dim[4], spread_stride[3];               /* dy: N, H, W, C */
  int64_t    other_dim[4], other_stride[3];
} state;

typedef struct shape {                    /* x, w, y of the forward convolution, whichever of them is written */
  const qn_value *x, *w, *y;
  const qn_conv  *conv;
} shape;

static bool eights(const qn_value *v)     /* channels contiguous, all else in units of 16 bytes */
{
  bool ok = v->align >= 16 && v->dim[1] % 8 == 0 && v->stride[1] == 1;
  for (int d = 0; d < 4; d++)
    if (d != 1 && v->dim[d] > 1) ok = ok && v->stride[d] % 8 == 0;
  return ok;
}

static qn_status check(const shape *s, int mode, qn_prepared *out)
{
  const qn_conv *c = s->conv;
  if (s->x->rank != 4) return qn_refuse(out, "two spatial dims", "x", "2", "%d", s->x->rank - 2);
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  if (!eights(s->x)) return qn_refuse(out, "channels last, in eights, aligned to 16 bytes", "x", "nhwc with C a multiple of 8", "C %lld", (long long)s->x->dim[1]);
  if (!eights(s->w) || !qn_is_channels_last(s->w))
    return qn_refuse(out, "packed filters, channels last, in eights", "w", "nhwc with C a multiple of 8", "C %lld", (long long)s->w->dim[1]);
  if (!eights(s->y) || !qn_is_channels_last(s->y))
    return qn_refuse(out, "packed channels last, in eights", "y", "nhwc with K a multiple of 8", "K %lld", (long long)s->y->dim[1]);
  for (int d = 0; d < 2; d++) {
    int64_t reach = (s->w->dim[2 + d] - 1) * c->dilation[d], before = c->pad_before[d], after = c->pad_after[d];
    if (c->stride[d] > 8 || reach > 120 || before > 120 || after > 120)
      return qn_refuse(out, "strides to 8, windows and padding to 120", "w", "smaller", "%lld", (long long)reach);
  }
  if (mode == CUDA_GEMM_BACKWARD_DATA && !qn_is_channels_last(s->x)) return qn_refuse(out, "packed channels last", "dx", "nhwc", "%s", "other strides");
  double pixels = (double)s->x->dim[0] * (double)qn_max_i64(s->x->dim[2] * s->x->dim[3], s->y->dim[2] * s->y->dim[3]);
  if (pixels > 2e9 || s->x->dim[1] > 1 << 24 || s->y->dim[1] > 1 << 24) return qn_refuse(out, "fewer than 2^31 pixels", "x", "", "%s", "more");
  return QN_OK;
}

/* Nanoseconds, as matmul_wgmma.c has it, with the rate at which windows come into shared memory. */
static double cost(const cuda_gemm_kernel *k, int64_t m, int64_t n, int64_t batch, int64_t steps, int units)
{
  int64_t tiles = qn_ceil_div(m, k->bm) * qn_ceil_div(n, k->bn) * batch, share = qn_ceil_div(steps, k->splits);
  if (k->splits > 1 && (share * (k->splits - 1) >= steps || tiles > units / k->splits - (k->splits > 2 ? units / 44 : 0))) return -1;
  double product = k->bm / 64 * k->bn * 2.0, fill = (k->bm + k->bn) * 128 / 30.0, step = product > fill ? product : fill;
  double rounds = (double)qn_ceil_div(tiles * k->splits, units);
  double round = (double)share * step + 600 + k->bm * k->bn / 12.0 + (k->splits > 1 ? 2000 + 4.0 * k->bm * k->bn / 19 : 0);
  return (2500 + rounds * round) / 1.75 + 1000;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int mode = op->op == QN_OP_CONV_FORWARD ? CUDA_GEMM_FORWARD : op->op == QN_OP_CONV_BACKWARD_DATA ? CUDA_GEMM_BACKWARD_DATA : CUDA_GEMM_BACKWARD_FILTER;
  int x = qn_role(op, mode == CUDA_GEMM_FORWARD ? QN_ROLE_CONV_FORWARD_X : mode == CUDA_GEMM_BACKWARD_DATA ? QN_ROLE_CONV_BACKWARD_DATA_DX : QN_ROLE_CONV_BACKWARD_FILTER_X);
  int w = qn_role(op, mode == CUDA_GEMM_FORWARD ? QN_ROLE_CONV_FORWARD_W : mode == CUDA_GEMM_BACKWARD_DATA ? QN_ROLE_CONV_BACKWARD_DATA_W : QN_ROLE_CONV_BACKWARD_FILTER_DW);
  int y = qn_role(op, mode == CUDA_GEMM_FORWARD ? QN_ROLE_CONV_FORWARD_Y : mode == CUDA_GEMM_BACKWARD_DATA ? QN_ROLE_CONV_BACKWARD_DATA_DY : QN_ROLE_CONV_BACKWARD_FILTER_DY);
  shape s = { &r->value[x], &r->value[w], &r->value[y], op->attr };
  const qn_conv *c = s.conv;
  int gathered = mode == CUDA_GEMM_BACKWARD_DATA ? y : x, other = mode == CUDA_GEMM_BACKWARD_FILTER ? y : w;
  int written = mode == CUDA_GEMM_FORWARD ? y : mode == CUDA_GEMM_BACKWARD_DATA ? x : w;
  uint32_t dtype = r->value[gathered].dtype;
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  if ((dtype != QN_F16 && dtype != QN_BF16) || r->value[other].dtype != dtype) return qn_refuse(out, "dtypes", "x", "f16 or bf16", "%s", "another");
  uint32_t written_dtype = r->value[written].dtype;
  if (written_dtype != QN_F32 && written_dtype != QN_F16 && written_dtype != QN_BF16) return qn_refuse(out, "dtypes", "y", "f16, bf16 or f32", "%s", "another");
  qn_status status = check(&s, mode, out);
  if (status) return status;

  /* the product's dims, and which tile */
  int64_t taps = s.w->dim[2] * s.w->dim[3], pixels_x = s.x->dim[0] * s.x->dim[2] * s.x->dim[3], pixels_y = s.y->dim[0] * s.y->dim[2] * s.y->dim[3];
  int64_t channels = s.w->dim[1], filters = s.w->dim[0];
  int64_t m = mode == CUDA_GEMM_FORWARD ? pixels_y : mode == CUDA_GEMM_BACKWARD_DATA ? pixels_x : filters;
  int64_t n = mode == CUDA_GEMM_FORWARD ? filters : channels, batch = mode == CUDA_GEMM_BACKWARD_FILTER ? taps : 1;
  int64_t chunks = qn_ceil_div(mode == CUDA_GEMM_FORWARD ? channels : filters, 64);
  int64_t steps = mode == CUDA_GEMM_BACKWARD_FILTER ? qn_ceil_div(pixels_y, 64) : taps * chunks;
  if (steps > INT32_MAX || batch > 4096 || steps == 0) return qn_refuse(out, "something to sum, and not too much", "x", "", "%s", "");
  const cuda_gemm_kernel *kernels = dtype == QN_BF16 ? (mode == CUDA_GEMM_FORWARD ? cuda_conv_forward_bf16 : mode == CUDA_GEMM_BACKWARD_DATA ? cuda_conv_data_bf16 : cuda_conv_filter_bf16)
                                                     : (mode == CUDA_GEMM_FORWARD ? cuda_conv_forward_f16 : mode == CUDA_GEMM_BACKWARD_DATA ? cuda_conv_data_f16 : cuda_conv_filter_f16);
  const char *const *names = mode == CUDA_GEMM_BACKWARD_FILTER ? filter_variant_names : variant_names;
  int best = -1;
  int64_t parts = 1, dw = m * n * batch;                    /* parts: of the pixels, for the gradient by the filter */
  double least = 0;
  for (int i = 0; names[i]; i++) {
    if (r->variant && strcmp(r->variant, names[i])) continue;
    int64_t tiles = qn_ceil_div(m, kernels[i].bm) * qn_ceil_div(n, kernels[i].bn) * batch;
    for (int rounds = 0; rounds <= (mode == CUDA_GEMM_BACKWARD_FILTER ? 2 : 0); rounds++) {
      int64_t p = rounds == 0 ? 1 : qn_min_i64(rounds * (int64_t)r->device->units / tiles, steps / 8);
      if (p < 1 || (rounds && p == 1) || p > 1024 || (p > 1 && (uint64_t)(p * dw * 4) > r->demands->workspace_limit)) continue;
      double t = cost(&kernels[i], m, n, batch * p, qn_ceil_div(steps, p), r->device->units);
      if (t < 0) continue;
      if (p > 1) t += 2000 + (double)(p * dw * 4) / 2500;
      if (best < 0 || t < least) best = i, least = t, parts = p;
    }
  }
  uint64_t workspace = parts > 1 ? (uint64_t)(parts * dw * 4) : 0;
  bool spread = mode == CUDA_GEMM_BACKWARD_DATA && (c->stride[0] > 1 || c->stride[1] > 1);
  int64_t spread_h = (s.y->dim[2] - 1) * c->stride[0] + 1, spread_w = (s.y->dim[3] - 1) * c->stride[1] + 1;
  if (spread) workspace = (uint64_t)(s.y->dim[0] * spread_h * spread_w * s.y->dim[1] * 2);
  if (workspace > r->demands->workspace_limit) return qn_refuse(out, "workspace for dy spread by its stride", "dy", "a limit above it", "%llu", (unsigned long long)workspace);
  if (best < 0) return qn_refuse(out, "a variant that this problem can be split into", "", "fewer shares", "%s", r->variant ? r->variant : "");

  /* what happens to the sums */
  cuda_chain chain;
  cuda_out_dims dims = { { -1, -1, -1, -1 }, mode != CUDA_GEMM_BACKWARD_FILTER };
  cuda_chain_begin(&chain, written);
  int bias = mode == CUDA_GEMM_FORWARD ? qn_role(op, QN_ROLE_CONV_FORWARD_BIAS) : -1;
  if (bias >= 0) {
    cuda_out_dims row = { { -1, 0, -1, -1 }, false };       /* [K], along columns */
    int k = cuda_chain_operand(&chain, r, bias, &row);
    if (k < 0) return qn_refuse(out, "dtypes", "bias", "f16, bf16 or f32", "%s", "another");
    cuda_chain_step(&chain, QN_OP_ADD, k, false, 0, 0);
  }
  if (mode != CUDA_GEMM_BACKWARD_FILTER) cuda_chain_follow(&chain, r, &dims);
  const qn_value *to = &r->value[chain.out];
  if (!qn_is_channels_last(to)) {                           /* a follower's output may lie otherwise: leave it to others */
    if (chain.n_ops == 1) return qn_refuse(out, "packed channels last", "y", "nhwc", "%s", "other strides");
    qn_request alone = *r;
    alone.n_ops = 1;
    return prepare(&alone, out);
  }

  state *st = r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  out->state = st;
  st->chain = chain;
  st->kernel = &kernels[best];
  st->mode = mode;
  st->a = mode == CUDA_GEMM_BACKWARD_FILTER ? other : gathered;
  st->b = mode == CUDA_GEMM_BACKWARD_FILTER ? gathered : other;
  st->dtype = dtype;
  st->out_dtype = parts > 1 ? (uint32_t)QN_F32 : to->dtype;
  st->final_dtype = to->dtype;

  const qn_value *from = &r->value[gathered], *beside = &r->value[other];
  cuda_gemm *g = &st->gemm;
  const qn_value *grid = mode == CUDA_GEMM_BACKWARD_DATA ? s.x : s.y;          /* whose pixels the gathered windows belong to */
  for (int d = 0; d < 2; d++) {                             /* maps name W before H */
    int at = 1 - d;
    int64_t reach = (s.w->dim[2 + at] - 1) * c->dilation[at];
    int64_t pad = mode == CUDA_GEMM_BACKWARD_DATA ? reach - c->pad_before[at] : c->pad_before[at];
    int64_t stride = mode == CUDA_GEMM_BACKWARD_DATA ? 1 : c->stride[at];
    st->lower[d] = (int32_t)-pad;
    st->upper[d] = (int32_t)(mode == CUDA_GEMM_BACKWARD_DATA ? s.x->dim[2 + at] - (at ? spread_w : spread_h) - pad : c->pad_after[at] - reach);
    st->step[d] = (int32_t)stride;
  }
  if (st->upper[0] < -128 || st->upper[0] > 127 || st->upper[1] < -128 || st->upper[1] > 127) {
    r->host->free(st);
    out->state = NULL;
    return qn_refuse(out, "windows that end within 128 of the edge", "x", "", "%s", "");
  }
  g->conv = (cuda_gemm_conv){ .taps_w = (int32_t)s.w->dim[3], .taps = (int32_t)taps, .chunks = (int32_t)chunks,
    .out_w = (int32_t)grid->dim[3], .out_hw = (int32_t)(grid->dim[2] * grid->dim[3]), .stride_w = st->step[0], .stride_h = st->step[1],
    .start_w = st->lower[0], .start_h = st->lower[1], .dilation_w = (int32_t)c->dilation[1], .dilation_h = (int32_t)c->dilation[0] };
  int64_t dim[4] = { from->dim[1], from->dim[3], from->dim[2], from->dim[0] };
  int64_t stride[3] = { from->stride[3], from->stride[2], from->stride[0] };
  if (spread) {
    st->spread[0] = (int32_t)c->stride[0], st->spread[1] = (int32_t)c->stride[1];
    dim[1] = spread_w, dim[2] = spread_h;
    stride[0] = dim[0], stride[1] = dim[0] * spread_w, stride[2] = dim[0] * spread_w * spread_h;
    memcpy(st->spread_dim, (int64_t[]){ from->dim[0], from->dim[2], from->dim[3], from->dim[1] }, sizeof st->spread_dim);
    memcpy(st->spread_stride, (int64_t[]){ from->stride[0], from->stride[2], from->stride[3] }, sizeof st->spread_stride);
  }
  for (int d = 0; d < 3; d++)                               /* a dim of 1 may have any stride */
    if (dim[d + 1] == 1) stride[d] = d ? stride[d - 1] * dim[d] : dim[0];
  memcpy(st->gathered_dim, dim, sizeof dim);
  memcpy(st->gathered_stride, stride, sizeof stride);
  if (mode == CUDA_GEMM_BACKWARD_FILTER) {                  /* dy as [pixels][filters] */
    st->other_dim[0] = beside->dim[1], st->other_dim[1] = pixels_y, st->other_dim[2] = 1;
    st->other_stride[0] = beside->dim[1], st->other_stride[1] = beside->dim[1] * pixels_y;
  } else {                                                  /* w as [filters][taps][channels] */
    st->other_dim[0] = channels, st->other_dim[1] = taps, st->other_dim[2] = filters;
    st->other_stride[0] = channels, st->other_stride[1] = channels * taps;
  }

  st->other_dim[3] = 1;

  int splits = st->kernel->splits, out_bytes = parts > 1 ? 4 : (int)qn_kit_bytes(to->dtype);
  g->m = (int32_t)m;
  g->n = (int32_t)n;
  g->k_steps = (int32_t)qn_ceil_div(steps, parts);
  g->tiles_m = (int32_t)qn_ceil_div(m, st->kernel->bm);
  g->tiles_n = (int32_t)qn_ceil_div(n, st->kernel->bn);
  g->batch0 = (int32_t)batch;
  g->batch1 = (int32_t)parts;
  g->group = 12;
  g->split_steps = (int32_t)qn_ceil_div(g->k_steps, splits);
  g->out_dtype = parts > 1 ? QN_F32 : to->dtype;
  g->out_stride[3] = dw;
  st->parts = (int32_t)parts;
  g->out_stride[0] = mode == CUDA_GEMM_BACKWARD_FILTER ? channels * taps : n;
  g->out_stride[1] = 1;
  g->out_stride[2] = mode == CUDA_GEMM_BACKWARD_FILTER ? channels : 0;
  g->steps = chain.steps;
  g->store_map = cuda_chain_column_relu(&chain.steps, &g->column, &g->relu) && to->align >= 16 && n * out_bytes % 16 == 0 && st->kernel->bn / splits >= (out_bytes == 4 ? 32 : 64);
  int64_t tiles = (int64_t)g->tiles_m * g->tiles_n * batch * parts, most = r->device->units / splits;
  st->grid = (int32_t)(tiles < most ? tiles : most) * splits;

  out->n_ops = chain.n_ops;
  out->variant = names[best];
  out->workspace = workspace;
  out->estimate = least;
  out->math = QN_MATH_STRICT;
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC };
  return QN_OK;
}

static qn_status refused_map(CUresult e)
{
  return e == CUDA_SUCCESS ? QN_OK : cuda_host->error(QN_INTERNAL, "cuda: conv_wgmma: the driver refused a tensor map");
}

static qn_status tiled(const cuda_driver *driver, CUtensorMap *map, uint32_t dtype, const int64_t dim[4], const int64_t stride[3], uint32_t box0, uint32_t box1, uint32_t box2)
{
  int esize = (int)qn_kit_bytes(dtype);
  cuuint64_t d[4] = { (cuuint64_t)dim[0], (cuuint64_t)dim[1], (cuuint64_t)dim[2], (cuuint64_t)dim[3] };
  cuuint64_t st[3] = { (cuuint64_t)(stride[0] * esize), (cuuint64_t)(stride[1] * esize), (cuuint64_t)((dim[3] > 1 ? stride[2] : stride[1] * dim[2]) * esize) };
  cuuint32_t box[4] = { box0, box1, box2, 1 }, one[4] = { 1, 1, 1, 1 };
  CUtensorMapDataType type = dtype == QN_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : dtype == QN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return refused_map(driver->tensor_map_tiled(map, type, 4, (void *)0x10000, d, st, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                              CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  cuda_gemm *g = &st->gemm;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  if (s) return s;
  CUtensorMapDataType type = st->dtype == QN_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint64_t d[4], stride[3];
  for (int i = 0; i < 4; i++) d[i] = (cuuint64_t)st->gathered_dim[i];
  for (int i = 0; i < 3; i++) stride[i] = (cuuint64_t)(st->gathered_stride[i] * 2);
  cuuint32_t step[4] = { 1, (cuuint32_t)st->step[0], (cuuint32_t)st->step[1], 1 };
  bool filter = st->mode == CUDA_GEMM_BACKWARD_FILTER;
  s = refused_map(st->driver->tensor_map_im2col(filter ? &g->b : &g->a, type, 4, (void *)0x10000, d, stride, st->lower, st->upper, 64,
                                                filter ? 64 : (cuuint32_t)st->kernel->bm, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  if (s) return s;
  if (filter) s = tiled(st->driver, &g->a, st->dtype, st->other_dim, st->other_stride, 64, 64, 1);
  else s = tiled(st->driver, &g->b, st->dtype, st->other_dim, st->other_stride, 64, 1, st->mode == CUDA_GEMM_FORWARD ? (uint32_t)st->kernel->bn : 64);
  if (s) return s;
  if (g->store_map) {
    int64_t dim[4] = { g->n, g->m, g->batch0, g->batch1 }, st2[3] = { g->out_stride[0], filter ? g->out_stride[2] : g->out_stride[0] * g->m, g->out_stride[3] };
    s = tiled(st->driver, &g->y, st->out_dtype, dim, st2, st->out_dtype == QN_F32 ? 32 : 64, 64, 1);
    if (s) return s;
  }
  return cuda_check(cudaFuncSetAttribute(st->kernel->function[0][0], cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernel->shared), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_gemm g = st->gemm;
  void *y = launch->ptr[st->chain.out], *a = launch->ptr[st->a], *product = st->parts > 1 ? launch->workspace : y;
  if (st->spread[0]) {
    qn_status s = cuda_conv_spread(launch->workspace, a, st->spread_dim, st->spread_stride, st->spread[0], st->spread[1], launch->stream);
    if (s) return s;
    a = launch->workspace;
  }
  st->driver->tensor_map_address(&g.a, a);
  st->driver->tensor_map_address(&g.b, launch->ptr[st->b]);
  if (g.store_map) st->driver->tensor_map_address(&g.y, product);
  g.out = product;
  cuda_chain_bind(&g.steps, &st->chain, launch->ptr);
  qn_status s = cuda_gemm_launch(&g, st->kernel, st->kernel->function[0][0], st->grid, launch->stream, "conv_wgmma");
  if (!s && st->parts > 1) s = cuda_conv_join(y, st->final_dtype, product, st->parts, g.out_stride[3], launch->stream);
  return s;
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = NULL;
}

#define ROW(op_, names) { .name = "wgmma", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                          .variants = names, .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = {
  ROW(QN_OP_CONV_FORWARD, variant_names), ROW(QN_OP_CONV_BACKWARD_DATA, variant_names), ROW(QN_OP_CONV_BACKWARD_FILTER, filter_variant_names),
};
const qn_engine_list cuda_conv_wgmma_list = { rows, sizeof rows / sizeof *rows };
