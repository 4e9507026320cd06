/* transform_strided.c -- copy, permute, slice and concat as strided copies of bytes.
 *
 * A copy's dims are sorted by y's strides and merged where both tensors are contiguous. Then, by the fastest dim:
 *
 *   the same dim in x and y      rows, by memcpy
 *   another dim in x             the plane of both, in square blocks that stay in L1, of tiles that stay in registers (a transpose)
 *   nothing packed               element by element
 *
 * slice and concat copy from or to a part of a tensor. */
#include "cpu_ref.h"
#include "kit/simd.h"

enum { SIDE = 128,                        /* bytes on a side of a transposed block */
       STRIP = 256,                       /* rows of a plane per task */
       GRAIN = 1 << 17 };                 /* bytes that justify one more thread */

typedef struct copy {
  int32_t x, y;                           /* values of the request */
  int64_t x_first, y_first;               /* offsets, in elements */
  int64_t bytes;                          /* of an element */
  int32_t across;                         /* the dim that is fastest in x, if not the last; -1 */
  qn_nest nest;                           /* y, x */
} copy;

typedef struct transform {
  int64_t n;                              /* copies */
  copy    copy[];
} transform;

/* ---- rows of elements ----------------------------------------------------------------------------------- */

static void copy_row(char *restrict y, const char *restrict x, int64_t bytes, int64_t y_stride, int64_t x_stride, int64_t n)
{
  if (n > 0 && y_stride == 1 && x_stride == 1) {
    memcpy(y, x, (size_t)(n * bytes));
    return;
  }
  switch (bytes) {
  case 1: for (int64_t i = 0; i < n; i++) y[i * y_stride] = x[i * x_stride]; break;
  case 2: for (int64_t i = 0; i < n; i++) memcpy(y + 2 * i * y_stride, x + 2 * i * x_stride, 2); break;
  case 4: for (int64_t i = 0; i < n; i++) memcpy(y + 4 * i * y_stride, x + 4 * i * x_stride, 4); break;
  default: for (int64_t i = 0; i < n; i++) memcpy(y + 8 * i * y_stride, x + 8 * i * x_stride, 8); break;
  }
}

/* Interleaves a and b: their first halves, or their second. Inlined for a constant element size, as all below. */
typedef uint8_t tile_row __attribute__((vector_size(16)));
CPU_INLINE tile_row first_in_turn(tile_row a, tile_row b, size_t bytes)
{
  switch (bytes) {
  case 1:  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  case 2:  return __builtin_shufflevector(a, b, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
  case 4:  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  default: return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  }
}
CPU_INLINE tile_row second_in_turn(tile_row a, tile_row b, size_t bytes)
{
  switch (bytes) {
  case 1:  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  case 2:  return __builtin_shufflevector(a, b, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31);
  case 4:  return __builtin_shufflevector(a, b, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  default: return __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
}

/* A tile of as many rows as a row has elements: interleaving its halves log2 times transposes it. */
CPU_INLINE void transpose_tile(char *restrict y, int64_t y_pitch, const char *restrict x, int64_t x_pitch, size_t bytes)
{
  enum { MOST = sizeof(tile_row) };
  const size_t n = MOST / bytes;
  tile_row at[MOST], next[MOST];
#pragma GCC unroll 16
  for (size_t i = 0; i < n; i++) memcpy(&at[i], x + (int64_t)i * x_pitch, sizeof *at);
#pragma GCC unroll 4
  for (size_t done = 1; done < n; done *= 2) {
#pragma GCC unroll 16
    for (size_t i = 0; i < n / 2; i++) {
      next[2 * i] = first_in_turn(at[i], at[i + n / 2], bytes);
      next[2 * i + 1] = second_in_turn(at[i], at[i + n / 2], bytes);
    }
#pragma GCC unroll 16
    for (size_t i = 0; i < n; i++) at[i] = next[i];
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < n; i++) memcpy(y + (int64_t)i * y_pitch, &at[i], sizeof *at);
}

/* y[j][i] = x[i][j] for i < rows, j < columns; pitches in elements. */
CPU_INLINE void transpose_as(char *restrict y, int64_t y_pitch, const char *restrict x, int64_t x_pitch, int64_t rows, int64_t columns,
                             size_t bytes)
{
  char block[SIDE * SIDE];                /* x's columns as rows */
  const int64_t size = (int64_t)bytes, n = (int64_t)sizeof(tile_row) / size;
  const int64_t tiled_rows = rows / n * n, tiled_columns = columns / n * n;
  for (int64_t i = 0; i < tiled_rows; i += n)
    for (int64_t j = 0; j < tiled_columns; j += n)
      transpose_tile(block + j * SIDE + i * size, SIDE, x + (i * x_pitch + j) * size, x_pitch * size, bytes);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = i < tiled_rows ? tiled_columns : 0; j < columns; j++)
      memcpy(block + j * SIDE + i * size, x + (i * x_pitch + j) * size, bytes);
  for (int64_t j = 0; j < columns; j++) memcpy(y + j * y_pitch * size, block + j * SIDE, (size_t)rows * bytes);
}

static void transpose(char *y, int64_t y_pitch, const char *x, int64_t x_pitch, int64_t rows, int64_t columns, int64_t bytes)
{
  switch (bytes) {
  case 1: transpose_as(y, y_pitch, x, x_pitch, rows, columns, 1); break;
  case 2: transpose_as(y, y_pitch, x, x_pitch, rows, columns, 2); break;
  case 4: transpose_as(y, y_pitch, x, x_pitch, rows, columns, 4); break;
  default: transpose_as(y, y_pitch, x, x_pitch, rows, columns, 8); break;
  }
}

/* ---- a copy ------------------------------------------------------------------------------------------------ */

/* The dim along which x is contiguous, if y is along the last. */
static int32_t dim_across(const qn_nest *nest)
{
  const int32_t last = nest->rank - 1;
  if (last < 1 || nest->stride[0][last] != 1 || nest->stride[1][last] == 1) return -1;
  for (int32_t d = last - 1; d >= 0; d--)
    if (nest->stride[1][d] == 1 && nest->dim[d] >= 4 && nest->dim[last] >= 4) return d;
  return -1;
}

static int threads_for(const qn_launch *launch, int64_t bytes)
{
  return (int)qn_min_i64(launch->threads, 1 + bytes / GRAIN);
}

static int64_t places(const qn_nest *nest, int32_t rank)
{
  int64_t n = 1;
  for (int32_t d = 0; d < rank; d++) n *= nest->dim[d];
  return n;
}

static void run_rows(const copy *c, char *y, const char *x, int threads)
{
  const qn_nest *nest = &c->nest;
  const int32_t last = nest->rank - 1;
  const int64_t length = last < 0 ? 1 : nest->dim[last], rows = places(nest, last < 0 ? 0 : last);
  const int64_t y_stride = last < 0 ? 1 : nest->stride[0][last], x_stride = last < 0 ? 1 : nest->stride[1][last];
  if (rows == 1) {                        /* one long row: cut into pieces */
    const int64_t piece = qn_ceil_div(length, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
    for (int64_t i = 0; i < length; i += piece)
      copy_row(y + i * y_stride * c->bytes, x + i * x_stride * c->bytes, c->bytes, y_stride, x_stride,
               qn_min_i64(piece, length - i));
    return;
  }
  const int64_t share = qn_ceil_div(rows, threads);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int64_t first = 0; first < rows; first += share) {
    qn_walk walk;
    qn_walk_begin(&walk, nest, last, first);
    for (int64_t i = first; i < qn_min_i64(first + share, rows); i++, qn_walk_next(&walk))
      copy_row(y + walk.offset[0] * c->bytes, x + walk.offset[1] * c->bytes, c->bytes, y_stride, x_stride, length);
  }
}

static void run_planes(const copy *c, char *y, const char *x, int threads)
{
  const int32_t last = c->nest.rank - 1, across = c->across;
  const int64_t rows = c->nest.dim[last], columns = c->nest.dim[across];        /* x[rows][columns] to y[columns][rows] */
  const int64_t y_pitch = c->nest.stride[0][across], x_pitch = c->nest.stride[1][last], block = SIDE / c->bytes;
  qn_nest outer = c->nest;                /* without the plane's dims */
  outer.dim[across] = outer.dim[last] = 1;
  const int64_t strips = qn_ceil_div(rows, STRIP), tasks = places(&outer, outer.rank) * strips;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t task = 0; task < tasks; task++) {
    qn_walk walk;
    qn_walk_begin(&walk, &outer, outer.rank, task / strips);
    const int64_t first = task % strips * STRIP, end = qn_min_i64(first + STRIP, rows);
    for (int64_t j = 0; j < columns; j += block)
      for (int64_t i = first; i < end; i += block)
        transpose(y + (walk.offset[0] + j * y_pitch + i) * c->bytes, y_pitch,
                  x + (walk.offset[1] + i * x_pitch + j) * c->bytes, x_pitch,
                  qn_min_i64(block, end - i), qn_min_i64(block, columns - j), c->bytes);
  }
}

static void run_copy(const copy *c, const qn_launch *launch)
{
  char *y = (char *)launch->ptr[c->y] + c->y_first * c->bytes;
  const char *x = (const char *)launch->ptr[c->x] + c->x_first * c->bytes;
  const int threads = threads_for(launch, places(&c->nest, c->nest.rank) * c->bytes);
  if (c->across >= 0) run_planes(c, y, x, threads);
  else run_rows(c, y, x, threads);
}

/* ---- prepare: takes all that the ops are defined for ------------------------------------------------------------- */

/* y[first_y + i stride_y] = x[first_x + i stride_x] over dims of rank y.rank. */
static copy copy_of(const qn_node *node, int32_t x_arg, const qn_value *x, const qn_value *y, int64_t x_first, int64_t y_first)
{
  copy c = { .x = node->arg[x_arg], .y = node->arg[node->first[node->n_inputs]], .x_first = x_first, .y_first = y_first,
             .bytes = qn_kit_bytes(y->dtype) };
  qn_nest_begin(&c.nest, y);
  qn_nest_add(&c.nest, x);
  qn_nest_simplify(&c.nest);
  c.across = dim_across(&c.nest);
  return c;
}

static void concat_of(const qn_request *request, transform *t)
{
  const qn_node *node = &request->op[0];
  const qn_value *y = &request->value[node->arg[node->first[1]]];
  const int64_t named = ((const qn_axis *)node->attr)->axis, axis = named < 0 ? named + y->rank : named;
  int64_t start = 0;
  for (int32_t i = 0; i < node->first[1]; i++) {
    const qn_value *x = &request->value[node->arg[i]];
    qn_value part = *y;
    part.dim[axis] = x->dim[axis];
    if (x->dim[axis] > 0) t->copy[t->n++] = copy_of(node, i, x, &part, 0, start * y->stride[axis]);
    start += x->dim[axis];
  }
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_node *node = &request->op[0];
  if (node->op == QN_OP_SLICE && !qn_slices_forwards(node->attr, request->value[node->arg[0]].rank))
    return qn_refuse(prepared, "runs forwards", "step", "at least 1", "%s", "negative");
  const int64_t n = node->op == QN_OP_CONCAT ? node->first[1] : 1;
  transform *t = cpu_state(prepared, sizeof *t + (size_t)n * sizeof *t->copy);
  if (!t) return QN_NO_MEMORY;
  const qn_value *y = &request->value[node->arg[node->first[node->n_inputs]]];
  qn_value x = request->value[node->arg[0]];
  int64_t first = 0;
  switch (node->op) {
  case QN_OP_CONCAT: concat_of(request, t); break;
  case QN_OP_PERMUTE:
    for (int32_t d = 0; d < y->rank; d++) {
      const int64_t from = ((const qn_permutation *)node->attr)->axis[d];
      x.dim[d] = y->dim[d];
      x.stride[d] = request->value[node->arg[0]].stride[from];
    }
    t->copy[t->n++] = copy_of(node, 0, &x, y, 0, 0);
    break;
  case QN_OP_SLICE:
    for (int32_t d = 0; d < y->rank; d++) {
      first += ((const qn_slicing *)node->attr)->start[d] * x.stride[d];
      if (y->dim[d] > 1) x.stride[d] *= ((const qn_slicing *)node->attr)->step[d];      /* extent 1: any step will do */
      x.dim[d] = y->dim[d];
    }
    t->copy[t->n++] = copy_of(node, 0, &x, y, first, 0);
    break;
  default: t->copy[t->n++] = copy_of(node, 0, &x, y, 0, 0); break;
  }
  return QN_OK;
}

/* ---- run ------------------------------------------------------------------------------------------------------------- */

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const transform *t = prepared->state;
  for (int64_t i = 0; i < t->n; i++) run_copy(&t->copy[i], launch);
  return QN_OK;
}

#define ROW(anchor)                                                                                              \
  { .name = "strided", .op = anchor, .class_ = QN_CLASS_TUNED,                                                    \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare, .run = run, \
    .release = cpu_release }
static const qn_engine row[] = { ROW(QN_OP_COPY), ROW(QN_OP_PERMUTE), ROW(QN_OP_SLICE), ROW(QN_OP_CONCAT) };
const qn_engine_list cpu_transform_strided = { row, sizeof row / sizeof *row };
