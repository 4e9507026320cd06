/* conv_winograd.c -- f32 convolution by Winograd's minimal filtering: tiles and filters are transformed, multiplied as one
 * product for each point of a tile, and transformed back. The products are delegated to the fastest matmul, except in tf32, whose
 * 11 bits the transforms would reduce to 3.
 *
 *   winograd_2x2    F(2x2, 3x3)                  9/4 fewer multiplications
 *   winograd_4x4    F(4x4, 3x3), F(4x4, 5x5)     4, 25/4
 *
 *   forward, data   [points][tiles][C] [points][C][K] -> [points][tiles][K]
 *   filter          [points][parts][K][tiles] [points][parts][tiles][C] -> [points][parts][K][C], parts added in order
 *
 * Any layout; two spatial dims, one group, stride and dilation 1. Outputs whose tile holds an Inf or NaN are recomputed directly,
 * so nothing spreads beyond its window. */
#include "conv_problem.h"
#include "conv_product.h"
#include "conv_winograd.h"
#include "engines.h"

typedef struct state {
  cuda_product product;                   /* first, for cuda_product_release */
  cuda_winograd f;
  cuda_conv_problem problem;              /* its value pointers are invalid in run */
  cuda_winograd_tiles left, right;        /* of x (data: dy); filter: of dy and of x */
  cuda_winograd_outputs outputs;
  cuda_conv_pixels from;
  cuda_chain chain;
  int32_t  bias, factor, parts;           /* bias, factor: operands of the chain, -1: none */
  uint64_t at_right, at_product, at_rows, scratch;          /* offsets in workspace; at_rows: of the fold */
} state;

static cuda_conv_pixels pixels_of(const qn_value *v)
{
  return (cuda_conv_pixels){ v->stride[0], v->stride[1], v->stride[2], v->stride[3],
                             (int32_t)v->dim[0], (int32_t)v->dim[1], (int32_t)v->dim[2], (int32_t)v->dim[3], 0, 0 };
}

/* ---- the products ------------------------------------------------------------------------------ */

/* y [batch][m][n] = a [batch][m][k] b [batch][n][k], packed rows. */
static qn_status prepare_product(const qn_request *r, state *st, int64_t batch, int64_t m, int64_t n, int64_t k)
{
  st->product.value[0] = cuda_product_matrix(batch, m * k, m, k, k, 1, 16, false);
  st->product.value[1] = cuda_product_matrix(batch, k * n, k, 1, n, k, 16, false);
  st->product.value[2] = cuda_product_matrix(batch, m * n, m, n, n, 1, 16, true);
  return cuda_product_prepare(&st->product, r, false) ? QN_OK : QN_UNSUPPORTED;
}

/* ---- prepare -------------------------------------------------------------------------------------- */

static qn_status check(const cuda_conv_problem *p, const cuda_winograd *f, qn_prepared *out)
{
  if (p->x->rank != 4) return qn_refuse(out, "two spatial dims", "x", "2", "%d", p->x->rank - 2);
  qn_status status = cuda_conv_wants_f32(p, out);
  if (status) return status;
  if (p->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)p->groups);
  for (int d = 0; d < 2; d++) {
    if (p->stride[d] != 1 || p->dilation[d] != 1)
      return qn_refuse(out, "stride and dilation of 1", "x", "1", "%lld", (long long)qn_max_i64(p->stride[d], p->dilation[d]));
    if (p->size[d] != f->r)
      return qn_refuse(out, f->m == 2 ? "filters of 3 by 3" : "filters of 3 by 3 or 5 by 5", "w", "3", "%lld", (long long)p->size[d]);
  }
  return QN_OK;
}

static cuda_winograd_tiles tiles_of(const cuda_winograd *f, const int64_t grid[2], int64_t images, int size, int64_t before_h,
                                    int64_t before_w)
{
  int32_t row = (int32_t)qn_ceil_div(grid[1], f->m), image = (int32_t)qn_ceil_div(grid[0], f->m) * row, all = (int32_t)images * image;
  return (cuda_winograd_tiles){ .m = f->m, .size = size, .start_h = (int32_t)-before_h, .start_w = (int32_t)-before_w,
                                .row_tiles = row, .image_tiles = image, .tiles = all, .share = all, .units = all };
}

static uint64_t bytes_of(const state *st, int64_t rows, int64_t cols)
{
  return (uint64_t)qn_round_up(st->f.a * st->f.a * rows * cols * 4, 256);
}

/* y, or dx by dy: tiles of the gathered tensor by filters. */
static qn_status prepare_outputs(const qn_request *r, state *st)
{
  const cuda_conv_problem *p = &st->problem;
  const cuda_winograd *f = &st->f;
  bool data = p->mode == CUDA_CONV_DATA;
  const qn_value *from = data ? p->y : p->x, *to = data ? p->x : p->y;
  const int64_t *grid = data ? p->in : p->out;
  int64_t before[2];
  for (int d = 0; d < 2; d++) before[d] = data ? f->r - 1 - p->before[d] : p->before[d];
  int row = data ? 1 : 0;                                   /* rows of the transformed filters: C, or K */
  st->from = pixels_of(from);
  st->left = tiles_of(f, grid, from->dim[0], f->a, before[0], before[1]);
  st->outputs = (cuda_winograd_outputs){ .tiles = st->left, .at = pixels_of(to) };
  st->outputs.again = (cuda_winograd_again){ .at = st->from,
                                             .start_h = st->left.start_h,
                                             .start_w = st->left.start_w,
                                             .filters = { .row_stride = p->w->stride[row],
                                                          .col_stride = p->w->stride[1 - row],
                                                          .r_stride = p->w->stride[2],
                                                          .s_stride = p->w->stride[3],
                                                          .rows = (int32_t)p->w->dim[row],
                                                          .cols = (int32_t)p->w->dim[1 - row],
                                                          .taps = f->r * f->r,
                                                          .taps_w = f->r,
                                                          .reversed = data } };
  const cuda_conv_filters *w = &st->outputs.again.filters;
  st->parts = 1;
  st->at_right = bytes_of(st, st->left.tiles, w->cols);
  st->at_product = st->at_right + bytes_of(st, w->rows, w->cols);
  st->scratch = st->at_product + bytes_of(st, st->left.tiles, w->rows);
  return prepare_product(r, st, f->a * f->a, st->left.tiles, w->rows, w->cols);
}

/* dw: tiles of dy by tiles of x, in enough parts to fill the device. */
static qn_status prepare_gradient(const qn_request *r, state *st)
{
  const cuda_conv_problem *p = &st->problem;
  const cuda_winograd *f = &st->f;
  int64_t k = p->filters, c = p->channels, points = f->a * f->a, blocks = points * qn_ceil_div(k, 128) * qn_ceil_div(c, 128);
  cuda_winograd_tiles tiles = tiles_of(f, p->out, p->y->dim[0], f->m, 0, 0);
  st->parts = 1;
  while (st->parts < 16 && blocks * st->parts < r->device->units && tiles.tiles >= 512 * st->parts) st->parts *= 2;
  tiles.share = (int32_t)qn_round_up(qn_ceil_div(tiles.tiles, st->parts), 32);
  tiles.units = tiles.share * st->parts;
  st->left = st->right = tiles;
  st->right.size = f->a;
  st->right.start_h = (int32_t)-p->before[0], st->right.start_w = (int32_t)-p->before[1];
  st->from = pixels_of(p->y);
  st->outputs.again = (cuda_winograd_again){ .at = pixels_of(p->x),
                                             .gradient = st->from,
                                             .start_h = st->right.start_h,
                                             .start_w = st->right.start_w,
                                             .filters = { .row_stride = p->w->stride[0],
                                                          .col_stride = p->w->stride[1],
                                                          .r_stride = p->w->stride[2],
                                                          .s_stride = p->w->stride[3],
                                                          .rows = (int32_t)k,
                                                          .cols = (int32_t)c,
                                                          .taps = f->r * f->r,
                                                          .taps_w = f->r } };
  st->at_right = bytes_of(st, tiles.units, k);
  st->at_product = st->at_right + bytes_of(st, tiles.units, c);
  st->scratch = st->at_product + bytes_of(st, st->parts * k, c);
  return prepare_product(r, st, points * st->parts, k, c, tiles.share);
}

/* Bias, fold and relu are fused into the output transform, which writes f32. */
static qn_status prepare_chain(const qn_request *r, state *st, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_bias_relu(&st->problem, r, &st->chain, &st->bias, &st->factor, &st->outputs.relu, out);
  if (status) return status;
  st->outputs.at = pixels_of(&r->value[st->chain.out]);
  if (st->bias >= 0) {
    st->outputs.bias_stride = st->chain.steps.operand[st->bias].stride[1];
    st->outputs.bias_dtype = st->chain.steps.operand[st->bias].dtype;
  }
  st->at_rows = st->scratch;
  st->scratch += (uint64_t)qn_round_up((int64_t)cuda_chain_bytes(&st->chain), 256);
  out->n_ops = st->chain.n_ops;
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out, int m)
{
  cuda_conv_problem p;
  qn_status status = cuda_conv_problem_read(&p, r, out);
  if (status) return status;
  int size = m == 4 && p.size[0] == 5 ? 5 : 3;
  cuda_winograd f = { .m = m, .r = size, .a = m + size - 1 };
  status = check(&p, &f, out);
  if (status) return status;
  const int64_t *grid = p.mode == CUDA_CONV_DATA ? p.in : p.out;
  if ((double)p.x->dim[0] * (double)(grid[0] + m) * (double)(grid[1] + m) > 1e9)
    return qn_refuse(out, "fewer than 2^30 pixels", "x", "", "%s", "more");

  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->f = f;
  st->problem = p;
  out->n_ops = 1;
  if (p.mode == CUDA_CONV_FILTER) {
    status = prepare_gradient(r, st);
  } else {
    status = prepare_outputs(r, st);
    if (!status && (status = prepare_chain(r, st, out))) {
      cuda_product_release(out);
      return status;
    }
  }
  if (status) {
    cuda_product_release(out);
    return qn_refuse(out, "a matmul that keeps f32's digits", "", "", "%s", "none");
  }
  const qn_prepared *answer = r->host->part_answer(st->product.part);
  out->workspace = st->scratch + answer->workspace;
  out->counters = answer->counters;
  if (out->workspace > r->demands->workspace_limit || out->workspace > r->device->memory / 8) {
    unsigned long long bytes = out->workspace;
    cuda_product_release(out);
    return qn_refuse(out, "workspace for transformed tiles", "", "below the limit and an eighth of memory", "%llu bytes", bytes);
  }
  out->math = answer->math > QN_MATH_F32 ? answer->math : QN_MATH_F32;
  out->traits = answer->traits & (QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES);
  out->numerics = answer->numerics;
  out->numerics.method = QN_METHOD_WINOGRAD;
  out->numerics.tile = f.m, out->numerics.filter = f.r;
  double moved = (double)st->scratch + 4 * ((double)qn_elements(p.x) + (double)qn_elements(p.y));
  out->estimate = answer->estimate + 7000 + moved / 3000;
  return QN_OK;
}

static qn_status prepare_2x2(const qn_request *r, qn_prepared *out) { return prepare(r, out, 2); }
static qn_status prepare_4x4(const qn_request *r, qn_prepared *out) { return prepare(r, out, 4); }

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_host->part_build(((state *)out->state)->product.part);
}

/* ---- run ------------------------------------------------------------------------------------------- */

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  const cuda_conv_problem *c = &st->problem;
  char *base = launch->workspace;
  float *left = (float *)base, *right = (float *)(base + st->at_right), *product = (float *)(base + st->at_product);
  const float *x = launch->ptr[c->x_at], *w = launch->ptr[c->w_at], *y = launch->ptr[c->y_at];
  bool filter = c->mode == CUDA_CONV_FILTER;
  cuda_winograd_outputs o = st->outputs;
  const float *from = c->mode == CUDA_CONV_FORWARD ? x : y;
  o.again.pixels = filter ? x : from;
  o.again.other = filter ? y : w;
  qn_status s = cuda_winograd_images(&st->f, left, from, &st->from, &st->left, filter, launch->stream);
  if (!s && filter) s = cuda_winograd_images(&st->f, right, x, &o.again.at, &st->right, true, launch->stream);
  else if (!s) s = cuda_winograd_filters(&st->f, right, w, &o.again.filters, launch->stream);
  if (!s) s = cuda_host->part_run(st->product.part, launch, (void *[]){ left, right, product }, base + st->scratch, launch->counters);
  if (s) return s;
  if (filter) return cuda_winograd_gradient(&st->f, launch->ptr[c->w_at], product, &o.again, st->parts, launch->stream);
  cuda_steps steps = st->chain.steps;
  if ((s = cuda_chain_start(&steps, &st->chain, launch, base + st->at_rows))) return s;
  if (st->factor >= 0) o.factor = steps.operand[st->factor].p, o.shift = steps.operand[st->factor + 1].p;
  if (st->bias >= 0) o.bias = steps.operand[st->bias].p;
  return cuda_winograd_outputs_launch(&st->f, launch->ptr[st->chain.out], product, &o, launch->stream);
}

#define ROWS(op_) \
  { .name = "winograd_4x4", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
    .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, \
    .prepare = prepare_4x4, .build = build, .run = run, .release = cuda_product_release }, \
  { .name = "winograd_2x2", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
    .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, \
    .prepare = prepare_2x2, .build = build, .run = run, .release = cuda_product_release }
static const qn_engine rows[] = { ROWS(QN_OP_CONV_FORWARD), ROWS(QN_OP_CONV_BACKWARD_DATA), ROWS(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_winograd) = { rows, sizeof rows / sizeof *rows };
