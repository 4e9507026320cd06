/* conv_unfold_row.cu -- convolution of few channels in 16 bits by engines that take a tap of 64 of them at once: where channels are
 * contiguous and rows are padded, neighbouring pixels continue each other, so that all taps along W are the channels of one pixel of a view.
 *
 *   x  [N, C, H, W] -> x0 [N, H, W + padding, C], a copy;  x' [N, S C, H, W'], a view of it whose pixels overlap: they lie C apart
 *   w  [K, C, R, S] -> w' [K, S C, R, 1], a copy           y  as it is
 *
 * C is padded with zeros to units of 16 bytes. A gradient by x of stride 1 is such a convolution of dy, with the filter reversed. One to
 * three spatial dims, any layout of x and w.
 *
 * Refused: what would have as many stages of 64 channels as before; other steps than 1 from tap to tap along W; groups; y that does not
 * lie packed, channels last (cuda/channels_last copies it). */
#include "conv_part.h"
#include "engines.h"
#include "kit/divisor.h"

enum { THREADS = 256, UNIT = 8, STAGE = 64 };               /* UNIT: elements of 16 bytes; STAGE: channels that a product takes at once */
enum { ROW_FORWARD, ROW_DATA, ROW_FILTER };

struct row_copy {                         /* x0 */
  int64_t stride[5];                      /* of x: N, C, D, H, W */
  int32_t channels, in, before;           /* C; W of x; zeros before a row */
  int32_t whole;                          /* 16 bytes of x can be read at once */
  cuda_divisor by_units, by_w, by_h, by_d;                  /* 16 bytes of a pixel, pixels of a row, rows, planes */
  uint32_t total;                         /* units of x0 */
};
struct row_filters {                      /* w' */
  int64_t stride[5], first;               /* of w: K, C, D, H, W, from this element on */
  int32_t channels, padded, size[3];
  uint32_t total;
};

typedef struct state {
  cuda_conv_part conv;
  int32_t  x, w;                          /* which of its values */
  int32_t  mode;
  uint64_t at_w, scratch;                 /* in workspace; x0 at 0 */
  row_copy u;
  row_filters f;
} state;

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

/* A thread writes one unit of a pixel. */
__global__ void __launch_bounds__(THREADS) row_unfold(uint4 *to, const uint16_t *x, const __grid_constant__ row_copy u)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= u.total) return;
  uint32_t unit, w, h, d;
  const uint32_t n = cuda_quotient(cuda_quotient(cuda_quotient(cuda_quotient(i, u.by_units, &unit), u.by_w, &w), u.by_h, &h), u.by_d, &d);
  const int column = (int)w - u.before;
  union { uint4 all; uint16_t each[UNIT]; } v = {};
  if ((uint32_t)column < (uint32_t)u.in) {
    const uint16_t *from = x + n * u.stride[0] + unit * UNIT * u.stride[1] + d * u.stride[2] + h * u.stride[3] + column * u.stride[4];
    if (u.whole) v.all = *(const uint4 *)from;
    else {
#pragma unroll
      for (int e = 0; e < UNIT; e++)
        if ((int)unit * UNIT + e < u.channels) v.each[e] = from[e * u.stride[1]];
    }
  }
  to[i] = v.all;
}

/* An element of w' [K, D, R, S, padded] from w, or of w from it. */
template <bool back>
__global__ void __launch_bounds__(THREADS) row_filters_move(uint16_t *packed, uint16_t *w, const __grid_constant__ row_filters f)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= f.total) return;
  const uint32_t c = i % f.padded, tap = i / f.padded, s = tap % f.size[2], line = tap / f.size[2], r = line % f.size[1],
                 plane = line / f.size[1], d = plane % f.size[0], k = plane / f.size[0];
  const bool there = (int)c < f.channels;
  uint16_t *at = w + f.first + k * f.stride[0] + c * f.stride[1] + d * f.stride[2] + r * f.stride[3] + s * f.stride[4];
  if (!back) packed[i] = there ? *at : 0;
  else if (there) *at = packed[i];
}

/* ---- what it refuses ------------------------------------------------------------------------------------------------- */

static qn_status check(const qn_request *r, const state *st, const qn_value *x, const qn_value *w, const qn_value *y, qn_prepared *out)
{
  const qn_conv *c = &st->conv.attr;
  const int across = x->rank - 3;         /* W */
  const bool data = st->mode == ROW_DATA;
  const int64_t channels = x->dim[1], taps = w->dim[w->rank - 1], padded = qn_round_up(channels, UNIT);
  if ((x->dtype != QN_F16 && x->dtype != QN_BF16) || w->dtype != x->dtype)
    return qn_refuse(out, "dtypes", data ? "dy" : "x", "f16 or bf16, both alike", "%s", qn_kit_name(x->dtype));
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  if (c->dilation[across] != 1) return qn_refuse(out, "dilation of 1 along W", "w", "1", "%lld", (long long)c->dilation[across]);
  for (int d = 0; d <= across && data; d++) {
    const int64_t reach = (w->dim[2 + d] - 1) * c->dilation[d];
    if (c->stride[d] != 1 || c->pad_before[d] > reach || c->pad_after[d] > reach)
      return qn_refuse(out, "stride of 1 in backward data, and no wider padding than the window", "dx", "1", "%lld",
                       (long long)c->stride[d]);
  }
  if (qn_ceil_div(taps * padded, STAGE) >= taps * qn_ceil_div(padded, STAGE))
    return qn_refuse(out, "few channels, several taps along W", data ? "dy" : "x", "32 channels, or less", "%lld", (long long)channels);
  if (!qn_is_channels_last(y)) return qn_refuse(out, "packed channels last", data ? "dx" : "y", "nhwc", "%s", "other strides");
  if (!qn_elements(x) || !qn_elements(y) || !qn_elements(w)) return qn_refuse(out, "something to sum", "x", "", "%s", "nothing");
  const double row = (double)y->dim[y->rank - 1] * (double)c->stride[across] + (double)taps;
  const double rows = (double)qn_elements(x) / (double)channels / (double)x->dim[x->rank - 1];
  if (rows * row * (double)padded > 2e9 || (double)qn_elements(w) * UNIT > 2e9)
    return qn_refuse(out, "elements that 31 bits count", "x", "", "%s", "more");
  return r->demands->workspace_limit ? QN_OK : qn_refuse(out, "workspace", "x", "a limit above 0", "%d", 0);
}

/* ---- prepare --------------------------------------------------------------------------------------------------------- */

/* Strides of N, C, D, H, W. */
static void strides_of(int64_t to[5], const qn_value *v)
{
  for (int i = 0; i < 5; i++) {
    const int d = i < 2 ? i : v->rank - 5 + i;
    to[i] = i < 2 || d >= 2 ? v->stride[d] : 0;
  }
}

static int64_t dim_of(const qn_value *v, int back) { return v->rank - back >= 2 ? v->dim[v->rank - back] : 1; }      /* 1: W, 2: H, 3: D */

/* How x and w are copied. width: pixels of a row of x0. */
static void describe(state *st, const qn_value *x, const qn_value *w, int64_t padded, int64_t width)
{
  const qn_conv *c = &st->conv.attr;
  const int across = x->rank - 3;
  const bool data = st->mode == ROW_DATA;
  row_copy *u = &st->u;
  row_filters *f = &st->f;
  strides_of(u->stride, x), strides_of(f->stride, w);
  u->channels = (int32_t)x->dim[1], u->in = (int32_t)dim_of(x, 1);
  u->before = (int32_t)(data ? dim_of(w, 1) - 1 - c->pad_before[across] : c->pad_before[across]);
  u->whole = x->dim[1] % UNIT == 0 && x->stride[1] == 1 && x->align >= 16;
  for (int d = 0; d < x->rank; d++)
    if (d != 1 && x->dim[d] > 1) u->whole = u->whole && x->stride[d] % UNIT == 0;
  u->by_units = cuda_divide_by(padded / UNIT), u->by_w = cuda_divide_by(width);
  u->by_h = cuda_divide_by(dim_of(x, 2)), u->by_d = cuda_divide_by(dim_of(x, 3));
  u->total = (uint32_t)(x->dim[0] * dim_of(x, 3) * dim_of(x, 2) * width * (padded / UNIT));
  f->channels = u->channels, f->padded = (int32_t)padded;
  for (int d = 0; d < 3; d++) f->size[d] = (int32_t)dim_of(w, 3 - d);
  f->total = (uint32_t)((data ? w->dim[1] : w->dim[0]) * f->size[0] * f->size[1] * f->size[2] * padded);
  if (!data) return;
  const int64_t filters = f->stride[0];
  f->stride[0] = f->stride[1], f->stride[1] = filters;
  for (int d = 0; d < 3; d++) f->first += (f->size[d] - 1) * f->stride[2 + d], f->stride[2 + d] = -f->stride[2 + d];
}

/* v [N, C, D, H, W] becomes [N, channels, D, H, wide], channels last, of pixels `apart` elements apart and rows of `width` of them. */
static void view(qn_value *v, int64_t channels, int64_t wide, int64_t apart, int64_t width)
{
  int64_t stride = apart * width;
  v->dim[1] = channels, v->stride[1] = 1;
  v->dim[v->rank - 1] = wide, v->stride[v->rank - 1] = apart;
  for (int d = v->rank - 2; d >= 2; d--) v->stride[d] = stride, stride *= v->dim[d];
  v->stride[0] = stride;
  v->align = 16;
}

/* The convolution of the views; a gradient by x becomes one of dy. */
static void geometry(cuda_conv_part *p, int mode, const qn_value *x, const qn_value *w, const qn_value *y)
{
  qn_conv *c = &p->attr;
  const int across = x->rank - 3;
  if (mode == ROW_DATA) {
    for (int d = 0; d < across; d++) {
      const int64_t reach = (w->dim[2 + d] - 1) * c->dilation[d];
      c->pad_before[d] = reach - c->pad_before[d];
      c->pad_after[d] = y->dim[2 + d] - x->dim[2 + d] + reach - c->pad_before[d];
    }
    p->node.op = QN_OP_CONV_FORWARD;
    p->node.n_roles = 4, p->node.n_inputs = 3;              /* x, w, no bias, y */
    p->first[2] = p->first[3] = 2, p->first[4] = 3;
  }
  c->pad_before[across] = c->pad_after[across] = 0;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const uint32_t op = r->op[0].op;
  state *st = (state *)cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  cuda_conv_part *p = &st->conv;
  cuda_conv_part_begin(r, p);
  st->mode = op == QN_OP_CONV_FORWARD ? ROW_FORWARD : op == QN_OP_CONV_BACKWARD_DATA ? ROW_DATA : ROW_FILTER;
  /* in role order x, w, bias, y; dy, w, dx; x, dy, dw */
  const int last = p->n - 1, y = st->mode == ROW_FILTER ? 1 : last;
  st->x = 0, st->w = st->mode == ROW_FILTER ? last : 1;
  const qn_value xv = p->value[st->x], wv = p->value[st->w], yv = p->value[y];
  qn_status status = check(r, st, &xv, &wv, &yv, out);
  if (status) {
    cuda_conv_part_release(out);
    return status;
  }
  const int64_t taps = dim_of(&wv, 1), padded = qn_round_up(xv.dim[1], UNIT), stride = p->attr.stride[xv.rank - 3];
  const int64_t wide = (dim_of(&yv, 1) - 1) * stride + 1, width = wide + taps - 1;
  describe(st, &xv, &wv, padded, width);
  geometry(p, st->mode, &xv, &wv, &yv);
  view(&p->value[st->x], taps * padded, wide, padded, width);
  qn_value *filters = &p->value[st->w];
  if (st->mode == ROW_DATA) filters->dim[0] = wv.dim[1];
  view(filters, taps * padded, 1, taps * padded, 1);
  const qn_prepared *answer = cuda_conv_part_delegate(r, p, out);
  if (!cuda_conv_part_plain(answer)) {
    cuda_conv_part_release(out);
    return qn_refuse(out, "a tuned engine for the view that sums by the formula", "x", "what one takes", "%s", "another");
  }
  const double copied = (double)st->u.total * 16, of_x = (double)qn_elements(&xv) * 2;
  const double given = of_x + (double)qn_elements(&yv) * (double)qn_kit_bytes(yv.dtype) + (double)qn_elements(&wv) * 2;
  st->at_w = (uint64_t)qn_round_up((int64_t)copied, 256);
  st->scratch = st->at_w + (uint64_t)qn_round_up((int64_t)st->f.total * 2, 256);
  out->workspace += st->scratch;
  if ((double)st->scratch > 2 * given + (1 << 20) || out->workspace > r->demands->workspace_limit) {
    const uint64_t workspace = out->workspace;
    cuda_conv_part_release(out);
    return qn_refuse(out, "a padded copy of at most twice the operands, within the workspace", "x", "more channels", "%llu bytes",
                     (unsigned long long)workspace);
  }
  out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;
  out->estimate = answer->estimate > 0 ? answer->estimate + 4500 + (copied + of_x) / 2200 : 0;
  return QN_OK;
}

/* ---- run ------------------------------------------------------------------------------------------------------------- */

static uint32_t blocks(uint32_t n) { return (n + THREADS - 1) / THREADS; }

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  const cuda_conv_part *p = &st->conv;
  const cudaStream_t stream = (cudaStream_t)launch->stream;
  char *base = (char *)launch->workspace;
  void *ptr[CUDA_CONV_ROLES];
  for (int i = 0; i < p->n; i++) ptr[i] = launch->ptr[p->at[i]];
  uint16_t *w = (uint16_t *)ptr[st->w], *packed = (uint16_t *)(base + st->at_w);
  row_unfold<<<blocks(st->u.total), THREADS, 0, stream>>>((uint4 *)base, (const uint16_t *)ptr[st->x], st->u);
  if (st->mode != ROW_FILTER) row_filters_move<false><<<blocks(st->f.total), THREADS, 0, stream>>>(packed, w, st->f);
  qn_status s = cuda_check(cudaGetLastError(), "row_unfold");
  ptr[st->x] = base, ptr[st->w] = packed;
  if (!s) s = cuda_host->part_run(p->part, launch, ptr, base + st->scratch, launch->counters);
  if (s || st->mode != ROW_FILTER) return s;
  row_filters_move<true><<<blocks(st->f.total), THREADS, 0, stream>>>(packed, w, st->f);
  return cuda_check(cudaGetLastError(), "row_filters_move");
}

#define ROW(op) { "unfold_row", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, \
                  prepare, cuda_conv_part_build, run, cuda_conv_part_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_unfold_row) = { rows, sizeof rows / sizeof *rows };
