/* transform_pad.c -- pad and its gradient, a row per thread, along the padded tensor's fastest dim.
 *
 * Forward, a row is x's, between elements of `value` or of x itself. Backward, a row of dx is the sum of the rows of dy that show it
 * (the inner one, then its images by mirroring or repetition, dim by dim), each with its own ends folded in; for constant padding it is a
 * copy of the inner one. pad moves any dtype; transform_pad_f64.c is the gradient in f64. */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { GRAIN = 1 << 17,                   /* bytes that justify one more thread */
       STEP = 256 };                      /* elements of dy widened at a time */

typedef struct padding {                  /* dims by descending strides of the padded tensor; the last is the row */
  int32_t  inner, outer, rank;            /* values of the request: x and y, or dx and dy */
  int32_t  threads;                       /* backward: that the workspace is sized for */
  bool     held, copied;                  /* backward: held: sums in workspace, else in dx; copied: nothing is added, rows are dy's */
  uint32_t dtype, sum_dtype;              /* of the padded tensor; of dx, which may be another */
  int64_t  bytes, mode;
  int64_t  dim[QN_MAX_RANK], padded[QN_MAX_RANK], before[QN_MAX_RANK];
  int64_t  stride[QN_MAX_RANK], padded_stride[QN_MAX_RANK];
  unsigned char value[8];
} padding;

/* The position among 0..n-1 that a position outside them shows; -1: none, but the value. */
static int64_t shown(int64_t mode, int64_t from, int64_t n)
{
  if (mode == QN_PAD_REFLECT) return from < 0 ? -from : 2 * (n - 1) - from;
  return mode == QN_PAD_REPLICATE ? (from < 0 ? 0 : n - 1) : -1;
}

static int64_t rows_of(const padding *p, const int64_t *dim)
{
  int64_t rows = 1;
  for (int32_t d = 0; d < p->rank - 1; d++) rows *= dim[d];
  return rows;
}

/* A row's index in all dims but the last; and the next row's. */
static void find_row(const padding *p, const int64_t *dim, int64_t row, int64_t *at)
{
  for (int32_t d = p->rank - 2; d >= 0; d--) at[d] = row % dim[d], row /= dim[d];
}
static void next_row(const padding *p, const int64_t *dim, int64_t *at)
{
  for (int32_t d = p->rank - 2; d >= 0; d--) {
    if (++at[d] < dim[d]) return;
    at[d] = 0;
  }
}

static int threads_for(const qn_launch *launch, const padding *p, int64_t rows, const int64_t *dim)
{
  return (int)qn_min_i64(qn_min_i64(launch->threads, rows), 1 + rows * dim[p->rank - 1] * p->bytes / GRAIN);
}

static void copy_row(char *y, const char *x, int64_t bytes, int64_t y_stride, int64_t x_stride, int64_t n)
{
  const bool odd = bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8;       /* widened to bytes */
  if (n <= 0) return;
  if (x_stride == 1 && y_stride == 1) memcpy(y, x, (size_t)(n * bytes));
  else if (odd || (x_stride != 1 && y_stride != 1))
    for (int64_t i = 0; i < n; i++) memcpy(y + i * y_stride * bytes, x + i * x_stride * bytes, (size_t)bytes);
  else if (x_stride != 1) gather_row(y, x, bytes, x_stride, n);
  else scatter_row(y, x, bytes, y_stride, n);
}

/* ---- forward ------------------------------------------------------------------------------------------------ */

#ifndef CPU_REAL_F64
/* n positions of y from `from` on, all outside x. */
static void pad_edge(const padding *p, char *y, const char *x, int64_t from, int64_t n)
{
  const int32_t last = p->rank - 1;
  const int64_t step = p->mode == QN_PAD_REFLECT ? -p->stride[last] : 0, place = shown(p->mode, from, p->dim[last]);
  copy_row(y, place < 0 ? (const char *)p->value : x + place * p->stride[last] * p->bytes, p->bytes, p->padded_stride[last], step, n);
}

static void pad_row(const padding *p, char *y, const char *x, const int64_t *at)
{
  const int32_t last = p->rank - 1;
  bool inside = true;
  for (int32_t d = 0; d < last; d++) {
    int64_t from = at[d] - p->before[d];
    y += at[d] * p->padded_stride[d] * p->bytes;
    if (from < 0 || from >= p->dim[d]) from = shown(p->mode, from, p->dim[d]);
    inside &= from >= 0;
    if (inside) x += from * p->stride[d] * p->bytes;
  }
  const int64_t stride = p->padded_stride[last], before = inside ? p->before[last] : p->padded[last], step = stride * p->bytes;
  pad_edge(p, y, x, -before, before);
  if (!inside) return;
  copy_row(y + before * step, x, p->bytes, stride, p->stride[last], p->dim[last]);
  const int64_t done = before + p->dim[last];
  pad_edge(p, y + done * step, x, p->dim[last], p->padded[last] - done);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const padding *p = prepared->state;
  const int64_t rows = rows_of(p, p->padded);
  const int threads = threads_for(launch, p, rows, p->padded);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) {
    int64_t row = rows * t / threads, at[QN_MAX_RANK];
    find_row(p, p->padded, row, at);
    for (; row < rows * (t + 1) / threads; row++, next_row(p, p->padded, at)) pad_row(p, launch->ptr[p->outer], launch->ptr[p->inner], at);
  }
  return QN_OK;
}
#endif

/* ---- backward ----------------------------------------------------------------------------------------------- */

/* The k-th position of the padded tensor in dim d that shows position j; -1: no more. */
static int64_t image(const padding *p, int32_t d, int64_t j, int64_t k)
{
  const int64_t n = p->dim[d], here = j + p->before[d], after = p->padded[d] - p->before[d] - n;
  if (k == 0) return here;
  if (p->mode == QN_PAD_REPLICATE) {
    const int64_t left = j == 0 ? p->before[d] : 0, right = j == n - 1 ? after : 0;
    return k <= left ? here - k : k <= left + right ? here + k - left : -1;
  }
  if (p->mode != QN_PAD_REFLECT) return -1;
  const bool left = j > 0 && j <= p->before[d], right = j < n - 1 && n - 1 - j <= after;
  return k == 1 && left ? p->before[d] - j : k == 1 + left && right ? here + 2 * (n - 1 - j) : -1;
}

/* sum += dy, or, the first time, sum = dy. */
static void add_inside(const padding *p, real *sum, const char *dy, bool first)
{
  const int32_t last = p->rank - 1;
  const int64_t stride = p->padded_stride[last];
  for (int64_t i = 0; i < p->dim[last]; i += STEP) {
    const int64_t n = qn_min_i64(STEP, p->dim[last] - i);
    const char *from = dy + i * stride * p->bytes;
    char packed[STEP * sizeof(real)];
    real wide[STEP];
    if (stride != 1) gather_row(packed, from, p->bytes, stride, n), from = packed;
    row_to_real(first ? sum + i : wide, from, p->dtype, n);
    if (first) continue;
#pragma omp simd
    for (int64_t k = 0; k < n; k++) sum[i + k] += wide[k];
  }
}

/* n positions of dy from `from` on, all outside dx. */
static void add_edge(const padding *p, real *sum, const char *dy, int64_t from, int64_t n)
{
  const int32_t last = p->rank - 1;
  double total = 0;                       /* of many that show one element */
  for (int64_t i = 0; i < n; i++) {
    const double v = qn_load_f64(dy + i * p->padded_stride[last] * p->bytes, p->dtype);
    if (p->mode == QN_PAD_REPLICATE) total += v;
    else sum[shown(p->mode, from + i, p->dim[last])] += (real)v;
  }
  if (p->mode == QN_PAD_REPLICATE && n > 0) sum[shown(p->mode, from, p->dim[last])] += (real)total;
}

/* Adds the rows of dy that show row `at`; recursive, dims d and beyond still to choose. */
static void add_rows(const padding *p, real *sum, const char *dy, const int64_t *at, int32_t d, bool first)
{
  const int32_t last = p->rank - 1;
  if (d < last) {
    int64_t place;
    for (int64_t k = 0; (place = image(p, d, at[d], k)) >= 0; k++)
      add_rows(p, sum, dy + place * p->padded_stride[d] * p->bytes, at, d + 1, first && k == 0);
    return;
  }
  const int64_t before = p->before[last], done = before + p->dim[last], step = p->padded_stride[last] * p->bytes;
  add_inside(p, sum, dy + before * step, first);
  if (p->mode == QN_PAD_CONSTANT) return;
  add_edge(p, sum, dy, -before, before);
  add_edge(p, sum, dy + done * step, p->dim[last], p->padded[last] - done);
}

static void cut_row(const padding *p, char *dx, const char *dy, const int64_t *at)
{
  const int32_t last = p->rank - 1;
  int64_t to = 0, from = p->before[last] * p->padded_stride[last];
  for (int32_t d = 0; d < last; d++) to += at[d] * p->stride[d], from += (at[d] + p->before[d]) * p->padded_stride[d];
  copy_row(dx + to * p->bytes, dy + from * p->bytes, p->bytes, p->stride[last], p->padded_stride[last], p->dim[last]);
}

static void unpad_row(const padding *p, char *dx, const char *dy, const int64_t *at, real *held)
{
  const int32_t last = p->rank - 1;
  const int64_t bytes = qn_kit_bytes(p->sum_dtype);
  for (int32_t d = 0; d < last; d++) dx += at[d] * p->stride[d] * bytes;
  real *sum = p->held ? held : (real *)(void *)dx;
  add_rows(p, sum, dy, at, 0, true);
  if (!p->held) return;
  for (int64_t i = 0; i < p->dim[last]; i += STEP) {
    const int64_t n = qn_min_i64(STEP, p->dim[last] - i);
    char narrow[STEP * sizeof(real)];
    row_from_real(narrow, sum + i, p->sum_dtype, n);
    copy_row(dx + i * p->stride[last] * bytes, narrow, bytes, p->stride[last], 1, n);
  }
}

static qn_status run_backward(const qn_prepared *prepared, const qn_launch *launch)
{
  const padding *p = prepared->state;
  const int64_t rows = rows_of(p, p->dim), n = p->dim[p->rank - 1];
  const int threads = (int)qn_min_i64(threads_for(launch, p, rows, p->dim), p->threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++) {
    real *held = p->held ? (real *)launch->workspace + t * qn_round_up(n, 16) : NULL;
    int64_t row = rows * t / threads, at[QN_MAX_RANK];
    find_row(p, p->dim, row, at);
    for (; row < rows * (t + 1) / threads; row++, next_row(p, p->dim, at))
      if (p->copied) cut_row(p, launch->ptr[p->inner], launch->ptr[p->outer], at);
      else unpad_row(p, launch->ptr[p->inner], launch->ptr[p->outer], at, held);
  }
  return QN_OK;
}

/* ---- prepare: forward takes everything, backward what is summed in `real` --------------------------------------------- */

/* Sorts dims by descending strides of the padded tensor, drops those of 1, and merges a dim without padding into the one before it. */
static padding padding_of(const qn_request *request, int32_t inner, int32_t outer)
{
  const qn_padding *attr = request->op[0].attr;
  const qn_value *x = &request->value[inner], *y = &request->value[outer];
  padding p = { .inner = inner, .outer = outer, .dtype = y->dtype, .sum_dtype = x->dtype, .bytes = qn_kit_bytes(y->dtype),
                .mode = attr->mode };
  qn_store_f64(p.value, y->dtype, attr->value);
  for (int32_t d = 0; d < y->rank; d++) {
    if (y->dim[d] == 1 && x->dim[d] == 1) continue;
    int32_t at = p.rank++;
    for (; at > 0 && p.padded_stride[at - 1] < y->stride[d]; at--) {
      p.dim[at] = p.dim[at - 1];
      p.padded[at] = p.padded[at - 1];
      p.stride[at] = p.stride[at - 1];
      p.padded_stride[at] = p.padded_stride[at - 1];
      p.before[at] = p.before[at - 1];
    }
    p.dim[at] = x->dim[d];
    p.padded[at] = y->dim[d];
    p.stride[at] = x->stride[d];
    p.padded_stride[at] = y->stride[d];
    p.before[at] = attr->pad_before[d];
  }
  if (p.rank == 0) p.dim[0] = p.padded[0] = p.stride[0] = p.padded_stride[0] = p.rank = 1;
  for (int32_t d = p.rank - 1; d > 0; d--) {
    const int64_t n = p.dim[d];
    if (d != p.rank - 1 || n != p.padded[d] || p.stride[d - 1] != n * p.stride[d] ||
        p.padded_stride[d - 1] != n * p.padded_stride[d]) break;
    if (p.mode != QN_PAD_CONSTANT && p.dim[d - 1] != p.padded[d - 1]) break;   /* mirrors whole rows, not elements */
    p.dim[d - 1] *= n;
    p.padded[d - 1] *= n;
    p.before[d - 1] *= n;
    p.stride[d - 1] = p.stride[d];
    p.padded_stride[d - 1] = p.padded_stride[d];
    p.rank--;
  }
  return p;
}

#ifndef CPU_REAL_F64
/* Packed trailing dims that are only shown whole are treated as one element. */
static void widen_elements(padding *p)
{
  const int32_t last = p->rank - 1;
  const int64_t n = p->dim[last];
  bool whole = last > 0 && p->mode != QN_PAD_CONSTANT && n == p->padded[last] && p->stride[last] == 1 && p->padded_stride[last] == 1;
  for (int32_t d = 0; d < last && whole; d++) whole = p->stride[d] % n == 0 && p->padded_stride[d] % n == 0;
  if (!whole) return;
  for (int32_t d = 0; d < last; d++) p->stride[d] /= n, p->padded_stride[d] /= n;
  p->bytes *= n;
  p->rank--;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  if (!qn_pads_outwards(request->op[0].attr, request->value[request->op[0].arg[0]].rank))
    return qn_refuse(prepared, "pads outwards", "pad", "not negative, mode constant, reflect or replicate", "%s", "");
  padding p = padding_of(request, qn_role(&request->op[0], QN_ROLE_PAD_X), qn_role(&request->op[0], QN_ROLE_PAD_Y));
  widen_elements(&p);
  return cpu_keep(prepared, &p, sizeof p);
}
#endif

static qn_status prepare_backward(const qn_request *request, qn_prepared *prepared)
{
  if (!qn_pads_outwards(request->op[0].attr, request->value[request->op[0].arg[0]].rank))
    return qn_refuse(prepared, "pads outwards", "pad", "not negative, mode constant, reflect or replicate", "%s", "");
  padding p = padding_of(request, qn_role(&request->op[0], QN_ROLE_PAD_BACKWARD_DX), qn_role(&request->op[0], QN_ROLE_PAD_BACKWARD_DY));
  if ((p.dtype == QN_F64) != (CPU_REAL == QN_F64))          /* f64 never mixes with other dtypes */
    return qn_refuse(prepared, "accumulates in " CPU_REAL_NAME, "dx", CPU_REALS, "%s", qn_kit_name(p.dtype));
  p.copied = p.mode == QN_PAD_CONSTANT && p.dtype == p.sum_dtype;
  p.held = !p.copied && (p.sum_dtype != CPU_REAL || p.stride[p.rank - 1] != 1);
  p.threads = request->demands->threads;
  if (p.held) prepared->workspace = (uint64_t)(p.threads * qn_round_up(p.dim[p.rank - 1], 16)) * sizeof(real);
  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(anchor, prepare_, run_)                                                                               \
  { .name = "rows" CPU_REAL_SUFFIX, .op = anchor, .class_ = QN_CLASS_TUNED,                                                        \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare_, .run = run_, \
    .release = cpu_release }
static const qn_engine row[] = {
#ifndef CPU_REAL_F64
  ROW(QN_OP_PAD, prepare, run),
#endif
  ROW(QN_OP_PAD_BACKWARD, prepare_backward, run_backward),
};
const qn_engine_list cpu_transform_pad = { row, sizeof row / sizeof *row };
