/* conv_fft.c -- f32 convolution by Fourier transforms, for large filters: 32x32 tiles of both tensors are transformed
 * (conv_fft.cu), multiplied frequency by frequency as complex matrices, and transformed back. With an R x S filter a tile yields
 * 33 - R by 33 - S outputs.
 *
 *   forward, data   [bin][image, tile][C] conj([bin][K][C])                ->  [bin][image, tile][K]
 *   filter          conj([bin][K][image, tile]) [bin][C][image, tile]      ->  [bin][K][C]
 *
 * Backward data is the forward sum over dy with the filter reversed. A complex product is a real one of twice the size: b's rows
 * come in pairs (conv_fft.h), so real and imaginary parts come out side by side; it is delegated to the fastest matmul, except in
 * tf32, whose error would be relative to the largest sum. Any layout. Outputs that an Inf or NaN reached are recomputed directly,
 * so nothing spreads beyond its window. Refused: groups, stride, dilation, filters above 24. */
#include "conv_fft.h"
#include "conv_problem.h"
#include "conv_product.h"
#include "engines.h"

enum { MOST = 24 };                       /* rows and columns of a filter */

typedef struct state {
  cuda_product product;                   /* first, for cuda_product_release */
  cuda_fft_tiles a, b, y;                 /* of both factors and the product */
  cuda_fft_again again;                   /* without pointers */
  int32_t  a_at, b_at, y_at, bias_at;     /* value numbers; bias -1: none */
  int64_t  b_from;                        /* offset of its first element: the last tap, if the filter is reversed */
  int64_t  bias_stride;
  uint32_t bias_dtype;
  int64_t  m, n, k;                       /* complex sizes; n and k rounded up to even */
  int      pairs;
  uint64_t b_place, y_place, scratch;     /* offsets in workspace */
} state;

/* ---- the problem --------------------------------------------------------------------------------------------- */

/* Tiles, every `step` pixels, over the planes of v; outer: the dim of images (or filters), the other is the channels'. */
static cuda_fft_tiles tiles_of(const qn_value *v, int outer, bool in_rows, const int64_t tiles[2], const int64_t step[2],
                               const int64_t before[2], const int64_t reach[2])
{
  int inner = 1 - outer;
  cuda_fft_tiles t = { .outer_stride = v->stride[outer],
                       .inner_stride = v->stride[inner],
                       .outer = (int32_t)v->dim[outer],
                       .inner = (int32_t)v->dim[inner],
                       .in_rows = in_rows };
  for (int d = 0; d < 2; d++) {
    t.stride[d] = v->stride[2 + d], t.extent[d] = (int32_t)v->dim[2 + d];
    t.tiles[d] = (int32_t)tiles[d], t.step[d] = (int32_t)step[d], t.before[d] = (int32_t)before[d], t.reach[d] = (int32_t)reach[d];
  }
  return t;
}

static const int64_t one[2] = { 1, 1 }, none[2] = { 0, 0 }, whole[2] = { CUDA_FFT_SIDE, CUDA_FFT_SIDE };

static void describe(state *st, const cuda_conv_problem *c)
{
  bool data = c->mode == CUDA_CONV_DATA, filter = c->mode == CUDA_CONV_FILTER;
  int64_t step[2], tiles[2], before[2];
  for (int d = 0; d < 2; d++) {
    step[d] = CUDA_FFT_SIDE + 1 - c->size[d];
    tiles[d] = qn_ceil_div(data ? c->in[d] : c->out[d], step[d]);
    before[d] = data ? c->size[d] - 1 - c->before[d] : c->before[d];
  }
  const qn_value *from = data ? c->y : c->x;               /* the tensor under the windows */
  const cuda_fft_tiles over = tiles_of(from, 0, !filter, tiles, step, before, whole);
  cuda_fft_tiles in = filter ? tiles_of(c->y, 0, false, tiles, step, none, step)
                             : tiles_of(c->w, data ? 1 : 0, true, one, none, none, whole);
  if (data)
    for (int d = 0; d < 2; d++) {
      st->b_from += (c->size[d] - 1) * in.stride[d];
      in.stride[d] = -in.stride[d];
    }
  int64_t units = from->dim[0] * tiles[0] * tiles[1];
  if (filter) {
    st->a = in, st->b = over;
    st->y = tiles_of(c->w, 0, true, one, none, none, whole);
    st->a_at = c->y_at, st->b_at = c->x_at, st->y_at = c->w_at;
    st->m = c->filters, st->n = c->channels, st->k = units;
    st->pairs = -1;
  } else {
    st->a = over, st->b = in;
    st->y = tiles_of(data ? c->x : c->y, 0, true, tiles, step, none, step);
    st->a_at = data ? c->y_at : c->x_at, st->b_at = c->w_at, st->y_at = data ? c->x_at : c->y_at;
    st->m = units, st->n = data ? c->channels : c->filters, st->k = data ? c->filters : c->channels;
    st->pairs = 1;
  }
  st->n = qn_round_up(st->n, 2), st->k = qn_round_up(st->k, 2);
  cuda_fft_again *g = &st->again;
  *g = (cuda_fft_again){ .a_outer = over.outer_stride, .a_inner = over.inner_stride, .b_outer = in.outer_stride, .b_inner = in.inner_stride,
                         .inner = over.inner, .swapped = filter };
  if (filter) {                           /* sums run over images */
    g->a_outer = over.inner_stride, g->a_inner = over.outer_stride, g->b_outer = in.inner_stride, g->b_inner = in.outer_stride;
    g->inner = over.outer;
  }
  for (int d = 0; d < 2; d++) {
    g->a_stride[d] = over.stride[d], g->b_stride[d] = in.stride[d];
    g->a_extent[d] = over.extent[d], g->b_extent[d] = in.extent[d], g->before[d] = over.before[d];
  }
}

/* ---- the products ---------------------------------------------------------------------------------------------- */

static bool prepare_product(const qn_request *r, state *st)
{
  int64_t m = st->m, n = 2 * st->n, k = 2 * st->k;
  st->product.value[0] = cuda_product_matrix(CUDA_FFT_BINS, m * k, m, k, k, 1, 16, false);
  st->product.value[1] = cuda_product_matrix(CUDA_FFT_BINS, k * n, k, 1, n, k, 16, false);
  st->product.value[2] = cuda_product_matrix(CUDA_FFT_BINS, m * n, m, n, n, 1, 16, true);
  return cuda_product_prepare(&st->product, r, false);
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

static qn_status check(const qn_request *r, const cuda_conv_problem *c, qn_prepared *out)
{
  if (c->x->rank != 4) return qn_refuse(out, "two spatial dims", "x", "2", "%d", c->x->rank - 2);
  qn_status status = cuda_conv_wants_f32(c, out);
  if (status) return status;
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  for (int d = 0; d < 2; d++) {
    if (c->stride[d] != 1 || c->dilation[d] != 1)
      return qn_refuse(out, "stride and dilation of 1", "x", "1", "%lld", (long long)qn_max_i64(c->stride[d], c->dilation[d]));
    if (c->size[d] > MOST) return qn_refuse(out, "filters of at most 24 by 24", "w", "24", "%lld", (long long)c->size[d]);
  }
  if (r->device->shared_per_block < CUDA_FFT_SHARED)
    return qn_refuse(out, "the shared memory of a block of tiles", "", "a device with more", "%llu bytes",
                     (unsigned long long)r->device->shared_per_block);
  return QN_OK;
}

static uint64_t spectra_bytes(int64_t rows, int64_t columns) { return (uint64_t)qn_round_up(CUDA_FFT_BINS * rows * columns * 8, 256); }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status s = cuda_conv_problem_read(&c, r, out);
  if (!s) s = check(r, &c, out);
  if (s) return s;
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  describe(st, &c);
  st->bias_at = c.bias_at;
  if (c.bias_at >= 0) st->bias_dtype = r->value[c.bias_at].dtype, st->bias_stride = r->value[c.bias_at].stride[0];
  st->b_place = spectra_bytes(st->m, st->k);
  st->y_place = st->b_place + spectra_bytes(2 * st->n, st->k);
  st->scratch = st->y_place + spectra_bytes(st->m, st->n);
  int64_t columns = qn_max_i64(st->n, st->k);
  if (st->scratch > r->demands->workspace_limit || st->scratch > r->device->memory / 8 || qn_ceil_div(columns, CUDA_FFT_TILES) > 65535) {
    uint64_t bytes = st->scratch;
    cuda_product_release(out);
    return qn_refuse(out, "workspace for the transforms", "x", "below the limit and an eighth of memory", "%llu",
                     (unsigned long long)bytes);
  }
  if (!prepare_product(r, st)) {
    cuda_product_release(out);
    return qn_refuse(out, "products of f32 matrices", "x", "an engine for them, tf32 aside", "%s", "none");
  }
  const qn_prepared *answer = r->host->part_answer(st->product.part);
  double moved = (double)st->scratch + 4 * (double)(qn_elements(c.x) + qn_elements(c.y) + qn_elements(c.w));
  out->n_ops = 1;
  out->workspace = st->scratch + answer->workspace;
  out->counters = answer->counters;
  out->estimate = 8000 + moved / 1300 + answer->estimate;
  out->math = QN_MATH_F32;
  out->numerics = answer->numerics;
  out->numerics.method = QN_METHOD_FFT;
  out->traits = (out->traits & answer->traits) | (answer->traits & QN_TRAIT_TENSOR_CORES);
  if (out->workspace <= r->demands->workspace_limit) return QN_OK;
  cuda_product_release(out);
  return qn_refuse(out, "workspace for the products", "x", "a limit above it", "%llu", (unsigned long long)out->workspace);
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  qn_status s = cuda_fft_build();
  return s ? s : cuda_host->part_build(((state *)out->state)->product.part);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  char *base = launch->workspace;
  float *a = (float *)base, *b = (float *)(base + st->b_place), *y = (float *)(base + st->y_place);
  const float *a_planes = launch->ptr[st->a_at], *b_planes = (const float *)launch->ptr[st->b_at] + st->b_from;
  cuda_fft_again again = st->again;
  again.a = again.swapped ? b_planes : a_planes, again.b = again.swapped ? a_planes : b_planes;
  qn_status s = cuda_fft_transform(&st->b, b_planes, b, st->n, st->k, st->pairs, launch->stream);
  if (!s) s = cuda_fft_transform(&st->a, a_planes, a, st->m, st->k, 0, launch->stream);
  if (!s) s = cuda_host->part_run(st->product.part, launch, (void *[]){ a, b, y }, base + st->scratch, launch->counters);
  if (s) return s;
  return cuda_fft_restore(&st->y, y, launch->ptr[st->y_at], st->m, st->n, &again, st->bias_at >= 0 ? launch->ptr[st->bias_at] : NULL,
                          st->bias_dtype, st->bias_stride, launch->stream);
}

#define ROW(op_) { .name = "fft", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, \
                   .prepare = prepare, .build = build, .run = run, .release = cuda_product_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_fft) = { rows, sizeof rows / sizeof *rows };
