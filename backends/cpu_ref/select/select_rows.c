/* select_rows.c -- rows by index (gather), their sums (scatter_add), and rows with one element set (one_hot).
 *
 * gather copies a row per index. In scatter_add each thread owns some rows of dx: it reads all indices, chains those of each row in
 * order, so that the order of addition does not depend on threads, and goes through dx once; a row is summed in place if dx is f32,
 * else in workspace, and after every BURST additions moved to totals in double. */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { STEP = 256,                        /* elements of dy widened at a time */
       BURST = 1024 };                    /* rows of dy added in f32 */

typedef struct rows {
  int32_t  in, indices, out;              /* values of the request */
  uint32_t in_dtype, index_dtype, out_dtype;
  int64_t  bytes, length, row_stride, count;      /* rows of the table, elements between them; number of indices */
  qn_nest  nest;                          /* gather: y, x, indices; one_hot: y's rows, indices; scatter_add: indices, dy */
  qn_nest  row;                           /* scatter_add: within a row of dx: dx, dy */
  int64_t  row_elements, out_step;
  int32_t  threads;                       /* scatter_add: that the workspace is sized for */
  bool     held, far, packed;             /* held: sums in workspace; far: totals too; packed: dx has no gaps */
  unsigned char on[8], off[8];
} rows;

static int64_t index_at(const rows *r, const void *indices, int64_t at)
{
  return r->index_dtype == QN_I64 ? ((const int64_t *)indices)[at] : ((const int32_t *)indices)[at];
}

static int64_t places(const qn_nest *nest, int32_t rank)
{
  int64_t n = 1;
  for (int32_t d = 0; d < rank; d++) n *= nest->dim[d];
  return n;
}

/* A nest over v's dims from `first` to `end` without dim `left_out`; the caller adds the strides of other tensors. */
static void nest_of(qn_nest *nest, const qn_value *v, int32_t first, int32_t end, int32_t left_out)
{
  *nest = (qn_nest){ .n = 1 };
  for (int32_t d = first; d < end; d++) {
    if (d == left_out) continue;
    nest->dim[nest->rank] = v->dim[d];
    nest->stride[0][nest->rank++] = v->stride[d];
  }
}

static const qn_value *value_of(const qn_request *request, uint32_t role)
{
  return &request->value[qn_role(&request->op[0], role)];
}

/* ---- gather ------------------------------------------------------------------------------------------------- */

static qn_status gather_prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_value *x = value_of(request, QN_ROLE_GATHER_X), *y = value_of(request, QN_ROLE_GATHER_Y);
  const qn_value *indices = value_of(request, QN_ROLE_GATHER_INDICES);
  const int32_t axis = (int32_t)((const qn_axis *)request->op[0].attr)->axis;
  rows r = { .in = qn_role(&request->op[0], QN_ROLE_GATHER_X), .out = qn_role(&request->op[0], QN_ROLE_GATHER_Y),
             .indices = qn_role(&request->op[0], QN_ROLE_GATHER_INDICES), .index_dtype = indices->dtype,
             .bytes = qn_kit_bytes(y->dtype), .length = x->dim[axis], .row_stride = x->stride[axis] };
  qn_nest_begin(&r.nest, y);
  r.nest.n = 3;
  for (int32_t d = 0; d < y->rank; d++) {
    const bool named = d >= axis && d < axis + indices->rank;
    r.nest.stride[1][d] = named ? 0 : x->stride[d < axis ? d : d - indices->rank + 1];
    r.nest.stride[2][d] = named ? indices->stride[d - axis] : 0;
  }
  qn_nest_simplify(&r.nest);
  if (r.nest.rank == 0) r.nest.rank = 1, r.nest.dim[0] = 1;
  return cpu_keep(prepared, &r, sizeof r);
}

/* Packed lines, each part of one table row, `apart` elements from line to line: with little work between two, so that the next
 * can be prefetched while one is copied. */
static void copy_lines(const rows *r, char *y, const char *x, const void *indices, int64_t lines, const int64_t apart[3], int64_t bytes)
{
  for (int64_t i = 0; i < lines; i++) {
    const int64_t index = index_at(r, indices, i * apart[2]);
    char *to = y + i * apart[0] * r->bytes;
    if (index >= 0 && index < r->length) memcpy(to, x + (i * apart[1] + index * r->row_stride) * r->bytes, (size_t)bytes);
    else memset(to, 0, (size_t)bytes);
  }
}

static qn_status gather_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const rows *r = prepared->state;
  const qn_nest *nest = &r->nest;
  const char *x = launch->ptr[r->in];
  char *y = launch->ptr[r->out];
  const void *indices = launch->ptr[r->indices];
  const int32_t last = nest->rank - 1, before = last - 1;
  const int64_t n = nest->dim[last], lines = places(nest, last), ys = nest->stride[0][last], xs = nest->stride[1][last];
  const int64_t step = nest->stride[2][last];             /* 0: one index for the whole line */
  const bool packed = step == 0 && ys == 1 && xs == 1;
  const int64_t in_row = packed && last > 0 ? nest->dim[before] : 1;
  const int64_t apart[3] = { last > 0 ? nest->stride[0][before] : 0, last > 0 ? nest->stride[1][before] : 0,
                             last > 0 ? nest->stride[2][before] : 0 };
  const int threads = cpu_threads(launch, lines * n * r->bytes / 4);
  const int64_t share = qn_ceil_div(lines, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < lines; first += share) {
    const int64_t end = qn_min_i64(first + share, lines);
    qn_walk walk;
    for (int64_t i = first, taken; i < end && packed; i += taken) {
      qn_walk_begin(&walk, nest, last, i);
      taken = qn_min_i64(in_row - i % in_row, end - i);
      copy_lines(r, y + walk.offset[0] * r->bytes, x + walk.offset[1] * r->bytes,
                 (const char *)indices + walk.offset[2] * qn_kit_bytes(r->index_dtype), taken, apart, n * r->bytes);
    }
    qn_walk_begin(&walk, nest, last, first);
    for (int64_t i = first; i < end && !packed; i++, qn_walk_next(&walk)) {
      char *to = y + walk.offset[0] * r->bytes;
      for (int64_t j = 0; j < n; j += step ? 1 : n) {
        const int64_t index = index_at(r, indices, walk.offset[2] + j * step), length = step ? 1 : n;
        const bool there = index >= 0 && index < r->length;
        const char *from = there ? x + (walk.offset[1] + j * xs + index * r->row_stride) * r->bytes : NULL;
        char *at = to + j * ys * r->bytes;
        for (int64_t k = 0; k < length; k++)
          if (there) memcpy(at + k * ys * r->bytes, from + k * xs * r->bytes, (size_t)r->bytes);
          else memset(at + k * ys * r->bytes, 0, (size_t)r->bytes);
      }
    }
  }
  return QN_OK;
}

/* ---- scatter_add ---------------------------------------------------------------------------------------------- */

/* Doubles of a thread's workspace: a row of totals, and one of sums. */
static int64_t room(const rows *r) { return (r->far ? r->row_elements : 0) + (r->held ? (r->row_elements + 1) / 2 : 0); }

static qn_status scatter_prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_value *dy = value_of(request, QN_ROLE_SCATTER_ADD_DY), *dx = value_of(request, QN_ROLE_SCATTER_ADD_DX);
  const qn_value *indices = value_of(request, QN_ROLE_SCATTER_ADD_INDICES);
  const int32_t axis = (int32_t)((const qn_axis *)request->op[0].attr)->axis;
  if (dx->dtype == QN_F64) return qn_refuse(prepared, "accumulates in f32", "dx", "f32, f16 or bf16", "%s", "f64");
  rows r = { .in = qn_role(&request->op[0], QN_ROLE_SCATTER_ADD_DY), .out = qn_role(&request->op[0], QN_ROLE_SCATTER_ADD_DX),
             .indices = qn_role(&request->op[0], QN_ROLE_SCATTER_ADD_INDICES), .index_dtype = indices->dtype, .in_dtype = dy->dtype,
             .out_dtype = dx->dtype, .bytes = qn_kit_bytes(dy->dtype), .length = dx->dim[axis], .row_stride = dx->stride[axis],
             .count = qn_elements(indices), .held = dx->dtype != QN_F32 };
  nest_of(&r.nest, indices, 0, indices->rank, -1);
  for (int32_t d = 0; d < indices->rank; d++) r.nest.stride[1][d] = dy->stride[axis + d];
  r.nest.n = 2;                           /* not simplified: additions follow the order of the indices */
  nest_of(&r.row, dx, 0, dx->rank, axis);
  r.row.n = 2;
  for (int32_t d = 0, i = 0; d < dx->rank; d++)
    if (d != axis) r.row.stride[1][i++] = dy->stride[d < axis ? d : d + indices->rank - 1];
  qn_nest_simplify(&r.row);
  if (r.row.rank == 0) r.row.rank = 1, r.row.dim[0] = r.row.stride[0][0] = r.row.stride[1][0] = 1;
  const int32_t last = r.row.rank - 1;
  if (r.row.stride[0][last] != 1 || r.row.stride[1][last] != 1)
    return qn_refuse(prepared, "rows are added element by element", "dy", "the order of dx's dims, without gaps", "%s", "");
  r.row_elements = places(&r.row, r.row.rank);
  if (r.held) {                           /* sums are packed; dx's own strides are used by the final copy */
    r.row.n = 3;
    int64_t step = 1;
    for (int32_t d = last; d >= 0; d--) {
      r.row.stride[2][d] = r.row.stride[0][d];
      r.row.stride[0][d] = step;
      step *= r.row.dim[d];
    }
  }
  r.packed = !r.held && last == 0 && r.row_stride == r.row_elements;
  r.threads = request->demands->threads;
  r.far = r.count > BURST;
  prepared->workspace = (uint64_t)(r.length + r.count) * 8 + (uint64_t)(r.threads * room(&r)) * 8;
  return cpu_keep(prepared, &r, sizeof r);
}

static void add_row(const rows *r, float *sum, const char *dy)
{
  const int32_t last = r->row.rank - 1;
  const int64_t n = r->row.dim[last], lines = r->row_elements / n;
  qn_walk walk;
  qn_walk_begin(&walk, &r->row, last, 0);
  for (int64_t i = 0; i < lines; i++, qn_walk_next(&walk)) {
    float *to = sum + walk.offset[0];
    const char *from = dy + walk.offset[1] * r->bytes;
    for (int64_t k = 0; k < n; k += STEP) {
      const int64_t step = qn_min_i64(STEP, n - k);
      float wide[STEP];
      row_to_f32(wide, from + k * r->bytes, r->in_dtype, step);
#pragma omp simd
      for (int64_t j = 0; j < step; j++) to[k + j] += wide[j];
    }
  }
}

/* Chains the indices of each row from `first` to `end`, in order: last[row] is the row's last index, -1 if none; next[] of an index is
 * the row's next one, and of the last its first. */
static void chain(const rows *r, const void *indices, int64_t first, int64_t end, int64_t *last, int64_t *next)
{
  for (int64_t row = first; row < end; row++) last[row] = -1;
  qn_walk walk;
  qn_walk_begin(&walk, &r->nest, r->nest.rank, 0);
  for (int64_t i = 0; i < r->count; i++, qn_walk_next(&walk)) {
    const int64_t row = index_at(r, indices, walk.offset[0]);
    if (row < first || row >= end) continue;
    next[i] = last[row] < 0 ? i : next[last[row]];
    if (last[row] >= 0) next[last[row]] = i;
    last[row] = i;
  }
}

/* Line by line: the sum of a row of dx moves to its total, or (at the end) back. */
static void move_row(const rows *r, float *sum, double *total, bool first, bool back)
{
  const int32_t inner = r->row.rank - 1;
  const int64_t n = r->row.dim[inner], lines = r->row_elements / n;
  qn_walk walk;
  qn_walk_begin(&walk, &r->row, inner, 0);
  for (int64_t i = 0; i < lines; i++, total += n, qn_walk_next(&walk)) {
    float *s = sum + walk.offset[0];
#pragma omp simd
    for (int64_t k = 0; k < n; k++) {
      const double all = (first ? 0 : total[k]) + (double)s[k];
      total[k] = all;
      s[k] = back ? (float)all : 0;
    }
  }
}

/* A row of dx: cleared unless it is already, summed, then narrowed. */
static void own_row(const rows *r, const qn_launch *launch, int64_t row, int64_t last, const int64_t *next, float *held, double *total)
{
  const int32_t inner = r->row.rank - 1;
  const int64_t n = r->row.dim[inner], lines = r->row_elements / n;
  float *sum = r->held ? held : (float *)launch->ptr[r->out] + row * r->row_stride;
  qn_walk walk;
  qn_walk_begin(&walk, &r->row, inner, 0);
  for (int64_t i = 0; i < lines && !r->packed; i++, qn_walk_next(&walk)) memset(sum + walk.offset[0], 0, (size_t)n * 4);
  int64_t terms = 0;
  for (int64_t i = last < 0 ? -1 : next[last]; i >= 0; i = i == last ? -1 : next[i]) {
    qn_walk_begin(&walk, &r->nest, r->nest.rank, i);
    add_row(r, sum, (const char *)launch->ptr[r->in] + walk.offset[1] * r->bytes);
    if (++terms % BURST == 0) move_row(r, sum, total, terms == BURST, false);
  }
  if (terms >= BURST) move_row(r, sum, total, false, true);
  qn_walk_begin(&walk, &r->row, inner, 0);
  for (int64_t i = 0; i < lines && r->held; i++, qn_walk_next(&walk))
    row_from_f32((char *)launch->ptr[r->out] + (row * r->row_stride + walk.offset[2]) * qn_kit_bytes(r->out_dtype),
                 sum + walk.offset[0], r->out_dtype, n);
}

/* Prefetches the row of dy that is added first, while dx is cleared. Inlined, as compilers drop calls without effect. */
CPU_INLINE void ask_row(const rows *r, const qn_launch *launch, int64_t index)
{
  qn_walk walk;
  qn_walk_begin(&walk, &r->nest, r->nest.rank, index);
  const char *dy = (const char *)launch->ptr[r->in] + walk.offset[1] * r->bytes;
  for (int64_t i = 0; i < qn_min_i64(r->row_elements, STEP) * r->bytes; i += 64) __builtin_prefetch(dy + i);
}

/* Rows of dx from `first` to `end`. Without gaps, rows up to the next one with an index are cleared together, by one memset. */
static void own_rows(const rows *r, const qn_launch *launch, int64_t first, int64_t end, float *held, double *total)
{
  int64_t *last = launch->workspace, *next = last + r->length;
  const int64_t n = r->row_elements;
  chain(r, launch->ptr[r->indices], first, end, last, next);
  for (int64_t row = first; row < end; row++) {
    const int64_t clear = row;
    while (r->packed && row < end && last[row] < 0) row++;
    if (r->packed && row < end) ask_row(r, launch, next[last[row]]);
    if (r->packed) memset((float *)launch->ptr[r->out] + clear * n, 0, (size_t)((qn_min_i64(row + 1, end) - clear) * n) * 4);
    if (row < end) own_row(r, launch, row, last[row], next, held, total);
  }
}

static qn_status scatter_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const rows *r = prepared->state;
  const int64_t useful = qn_min_i64(cpu_threads(launch, (r->count + r->length) * r->row_elements), r->threads);
  const int threads = (int)qn_min_i64(useful, r->length);
  double *mine = (double *)((int64_t *)launch->workspace + r->length + r->count);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++)
    own_rows(r, launch, r->length * t / threads, r->length * (t + 1) / threads,
             (float *)(mine + t * room(r) + (r->far ? r->row_elements : 0)), mine + t * room(r));
  return QN_OK;
}

/* ---- one_hot -------------------------------------------------------------------------------------------------- */

static qn_status one_hot_prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_one_hot_encoding *a = request->op[0].attr;
  const qn_value *indices = value_of(request, QN_ROLE_ONE_HOT_INDICES), *y = value_of(request, QN_ROLE_ONE_HOT_Y);
  rows r = { .indices = qn_role(&request->op[0], QN_ROLE_ONE_HOT_INDICES), .out = qn_role(&request->op[0], QN_ROLE_ONE_HOT_Y),
             .index_dtype = indices->dtype, .bytes = qn_kit_bytes(y->dtype), .length = a->depth, .out_step = y->stride[a->axis] };
  qn_store_f64(r.on, y->dtype, a->on);
  qn_store_f64(r.off, y->dtype, a->off);
  nest_of(&r.nest, y, 0, y->rank, (int32_t)a->axis);
  r.nest.n = 2;
  for (int32_t d = 0; d < indices->rank; d++) r.nest.stride[1][d] = indices->stride[d];
  qn_nest_simplify(&r.nest);
  return cpu_keep(prepared, &r, sizeof r);
}

static qn_status one_hot_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const rows *r = prepared->state;
  const int64_t count = places(&r->nest, r->nest.rank), step = r->out_step * r->bytes;
  const int threads = cpu_threads(launch, count * r->length);
  const int64_t share = qn_ceil_div(count, threads);
  bool zero = r->out_step == 1;           /* zero rows can be cleared by one memset */
  for (int64_t i = 0; i < r->bytes; i++) zero &= r->off[i] == 0;
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < count; first += share) {
    qn_walk walk;
    qn_walk_begin(&walk, &r->nest, r->nest.rank, first);
    for (int64_t i = first; i < qn_min_i64(first + share, count); i++, qn_walk_next(&walk)) {
      char *y = (char *)launch->ptr[r->out] + walk.offset[0] * r->bytes;
      const int64_t index = index_at(r, launch->ptr[r->indices], walk.offset[1]);
      if (zero) memset(y, 0, (size_t)(r->length * r->bytes));
      else for (int64_t k = 0; k < r->length; k++) memcpy(y + k * step, r->off, (size_t)r->bytes);
      if (index >= 0 && index < r->length) memcpy(y + index * step, r->on, (size_t)r->bytes);
    }
  }
  return QN_OK;
}

#define ROW(engine, anchor, prepare_, run_)                                                                         \
  { .name = engine, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE,    \
    .prepare = prepare_, .run = run_, .release = cpu_release }
static const qn_engine row[] = {
  ROW("rows", QN_OP_GATHER, gather_prepare, gather_run),
  ROW("rows", QN_OP_SCATTER_ADD, scatter_prepare, scatter_run),
  ROW("rows", QN_OP_ONE_HOT, one_hot_prepare, one_hot_run),
};
const qn_engine_list cpu_select_rows = { row, sizeof row / sizeof *row };
