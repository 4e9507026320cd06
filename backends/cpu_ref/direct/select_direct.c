/* select_direct.c -- elements added, counted or ranked by index; and cumulative sums.
 *
 *   scatter_add   dx[a, l, b] = the sum of dy[a, i, b] over the i with indices[i] = l
 *   pad_backward  dx[j] = the sum of dy[i] over the i that pad fills from j
 *   one_hot       y[a, l, b] = on where indices[a, b] = l, else off
 *   top_k         y = the k largest along an axis, NaN above all, the first of equals first; indices = their positions
 *   sort          y = x along an axis in rising order, NaN above all, equals in their order; indices = where each was
 *   cumsum        y[i] = x[0] + ... + x[i] along an axis; exclusive: to i - 1; reverse: from the end; cumprod, cummax,
 *                 cummin likewise */
#include "direct.h"

/* ---- sums by index ----------------------------------------------------------------------------- */

static qn_status scatter_add(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const cpu_tensor dy = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ADD_DY, 0), dx = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ADD_DX, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ADD_INDICES, 0);
  const int32_t axis = (int32_t)((const qn_axis *)kept->attr)->axis;
#pragma omp parallel for num_threads(cpu_team(launch, dx.elements, indices.elements))
  for (int64_t i = 0; i < dx.elements; i++) {
    int64_t index[QN_MAX_RANK], from[2 * QN_MAX_RANK];
    cpu_sum sum = { 0 };
    cpu_place(i, dx.rank, dx.dim, index);
    for (int32_t d = 0; d < dx.rank; d++)
      if (d != axis) from[d < axis ? d : d + indices.rank - 1] = index[d];
    for (int64_t j = 0; j < indices.elements; j++) {
      cpu_place(j, indices.rank, indices.dim, from + axis);
      if (qn_load_i64(cpu_at(&indices, cpu_offset(indices.rank, from + axis, indices.stride)), indices.dtype) != index[axis]) continue;
      cpu_sum_add(&sum, cpu_get(&dy, cpu_offset(dy.rank, from, dy.stride)));
    }
    cpu_put(&dx, cpu_offset(dx.rank, index, dx.stride), cpu_sum_value(&sum));
  }
  return QN_OK;
}

/* ---- the gradient of pad ------------------------------------------------------------------------- */

/* Adds dy over the positions, in dims d and beyond, that are filled from `index`. */
static void add_images(cpu_sum *sum, const qn_padding *a, const cpu_tensor *dy, const cpu_tensor *dx, const int64_t *index, int32_t d,
                       int64_t offset)
{
  if (d == dy->rank) {
    cpu_sum_add(sum, cpu_get(dy, offset));
    return;
  }
  /* between the paddings each position is filled from its own: those of others are skipped. Negative pads leave less of it. */
  const int64_t own = a->pad_before[d] + index[d], begin = qn_max_i64(a->pad_before[d], 0), end = a->pad_before[d] + dx->dim[d];
  for (int64_t at = 0; at < dy->dim[d]; at++) {
    if (at >= begin && at < end) at = at <= own ? own : end;
    if (at < dy->dim[d] && cpu_pad_source(a, d, at, dx->dim[d]) == index[d])
      add_images(sum, a, dy, dx, index, d + 1, offset + at * dy->stride[d]);
  }
}

static qn_status pad_backward(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const cpu_tensor dy = cpu_tensor_of(p, launch, QN_ROLE_PAD_BACKWARD_DY, 0), dx = cpu_tensor_of(p, launch, QN_ROLE_PAD_BACKWARD_DX, 0);
#pragma omp parallel for num_threads(cpu_team(launch, dx.elements, 100))
  for (int64_t i = 0; i < dx.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_sum sum = { 0 };
    cpu_place(i, dx.rank, dx.dim, index);
    add_images(&sum, kept->attr, &dy, &dx, index, 0, 0);
    cpu_put(&dx, cpu_offset(dx.rank, index, dx.stride), cpu_sum_value(&sum));
  }
  return QN_OK;
}

/* ---- one_hot --------------------------------------------------------------------------------------- */

static qn_status one_hot(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_one_hot_encoding *a = kept->attr;
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_ONE_HOT_INDICES, 0), y = cpu_tensor_of(p, launch, QN_ROLE_ONE_HOT_Y, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 2))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], from = 0;
    cpu_place(i, y.rank, y.dim, index);
    for (int32_t d = 0; d < indices.rank; d++) from += index[d < a->axis ? d : d + 1] * indices.stride[d];
    cpu_put(&y, cpu_offset(y.rank, index, y.stride), qn_load_i64(cpu_at(&indices, from), indices.dtype) == index[a->axis] ? a->on : a->off);
  }
  return QN_OK;
}

/* ---- lines along an axis ----------------------------------------------------------------------------- */

/* The offset of line i of t, which runs along `axis`. */
static int64_t line_offset(const cpu_tensor *t, int64_t i, int64_t axis)
{
  int64_t offset = 0;
  for (int32_t d = t->rank - 1; d >= 0; d--) {
    if (d == axis) continue;
    offset += i % t->dim[d] * t->stride[d];
    i /= t->dim[d];
  }
  return offset;
}

/* A number of any dtype: floats in f, integers, which f might not hold, in i. */
typedef struct ranked { double f; int64_t i, place; } ranked;

static ranked ranked_at(const cpu_tensor *x, int64_t offset, int64_t place)
{
  ranked v = { 0, 0, place };
  if (qn_is_integer(x->dtype)) v.i = qn_load_i64(cpu_at(x, offset), x->dtype);
  else v.f = cpu_get(x, offset);
  return v;
}

static int comes_before(const ranked *a, const ranked *b, int smallest)
{
  const int a_nan = isnan(a->f), b_nan = isnan(b->f);
  if (a_nan != b_nan) return smallest ? b_nan : a_nan;
  if (!a_nan && a->f != b->f) return smallest ? a->f < b->f : a->f > b->f;
  if (a->i != b->i) return smallest ? a->i < b->i : a->i > b->i;
  return a->place < b->place;
}

static qn_status top_k(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_ranking *a = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_TOP_K_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_TOP_K_Y, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_TOP_K_INDICES, 0);
  const int64_t axis = a->axis, n = x.dim[axis], lines = x.elements / n;
#pragma omp parallel for num_threads(cpu_team(launch, lines, n * a->k))
  for (int64_t line = 0; line < lines; line++) {
    const int64_t from = line_offset(&x, line, axis), to = line_offset(&y, line, axis);
    const int64_t number = indices.p ? line_offset(&indices, line, axis) : 0;
    ranked last = { 0 };
    for (int64_t k = 0; k < a->k; k++) {
      ranked best = { .place = -1 };
      for (int64_t j = 0; j < n; j++) {
        const ranked v = ranked_at(&x, from + j * x.stride[axis], j);
        if ((k == 0 || comes_before(&last, &v, (int)a->smallest)) && (best.place < 0 || comes_before(&v, &best, (int)a->smallest)))
          best = v;
      }
      last = best;
      memcpy(cpu_at(&y, to + k * y.stride[axis]), cpu_at(&x, from + best.place * x.stride[axis]), (size_t)x.bytes);
      if (indices.p) qn_store_i64(cpu_at(&indices, number + k * indices.stride[axis]), indices.dtype, best.place);
    }
  }
  return QN_OK;
}

/* An element's place is the number of those that come before it. */
static qn_status sort(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_sorting *a = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_SORT_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_SORT_Y, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_SORT_INDICES, 0);
  const int64_t n = x.dim[a->axis];
#pragma omp parallel for num_threads(cpu_team(launch, x.elements, n * 4))
  for (int64_t i = 0; i < x.elements; i++) {
    const int64_t line = i / n, j = i % n, from = line_offset(&x, line, a->axis), step = x.stride[a->axis];
    const ranked v = ranked_at(&x, from + j * step, j);
    int64_t place = 0;
    for (int64_t k = 0; k < n; k++) {
      const ranked other = ranked_at(&x, from + k * step, k);
      place += comes_before(&other, &v, !a->descending);
    }
    memcpy(cpu_at(&y, line_offset(&y, line, a->axis) + place * y.stride[a->axis]), cpu_at(&x, from + j * step), (size_t)x.bytes);
    if (indices.p)
      qn_store_i64(cpu_at(&indices, line_offset(&indices, line, a->axis) + place * indices.stride[a->axis]), indices.dtype, j);
  }
  return QN_OK;
}

/* cumprod, cummax, cummin: of floats in f, of integers in whole. */
typedef struct running { long double f; int64_t whole; } running;

static running running_begin(uint32_t op, uint32_t dtype)
{
  if (op == QN_OP_CUMPROD) return (running){ 1, 1 };
  if (op == QN_OP_CUMMIN) return (running){ INFINITY, qn_largest(dtype) };
  return (running){ -INFINITY, qn_least(dtype) };
}

static void running_add(running *r, uint32_t op, const cpu_tensor *x, int64_t at)
{
  if (qn_is_integer(x->dtype)) {
    const int64_t v = qn_load_i64(cpu_at(x, at), x->dtype);
    if (op == QN_OP_CUMPROD) r->whole = (int64_t)((uint64_t)r->whole * (uint64_t)v);
    else if (op == QN_OP_CUMMIN ? v < r->whole : v > r->whole) r->whole = v;
  } else {
    const double v = cpu_get(x, at);
    if (op == QN_OP_CUMPROD) r->f *= v;
    else if (isnan(v) || (op == QN_OP_CUMMIN ? v < r->f : v > r->f)) r->f = v;
  }
}

static void running_store(const running *r, const cpu_tensor *y, int64_t at)
{
  if (qn_is_integer(y->dtype)) qn_store_i64(cpu_at(y, at), y->dtype, qn_wrap(y->dtype, r->whole));
  else cpu_put(y, at, (double)r->f);
}

static qn_status scan(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_scan *a = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_CUMPROD_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_CUMPROD_Y, 0);
  const int64_t axis = a->axis, n = x.dim[axis], lines = x.elements / n;
#pragma omp parallel for num_threads(cpu_team(launch, lines, n * 2))
  for (int64_t line = 0; line < lines; line++) {
    const int64_t from = line_offset(&x, line, axis), to = line_offset(&y, line, axis);
    running r = running_begin(kept->op, x.dtype);
    for (int64_t j = 0; j < n; j++) {
      const int64_t at = a->reverse ? n - 1 - j : j, target = to + at * y.stride[axis], source = from + at * x.stride[axis];
      running before = r;
      running_add(&r, kept->op, &x, source);
      running_store(a->exclusive ? &before : &r, &y, target);
    }
  }
  return QN_OK;
}

static qn_status cumsum(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_scan *a = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_CUMSUM_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_CUMSUM_Y, 0);
  const int64_t axis = a->axis, n = x.dim[axis], lines = x.elements / n;
#pragma omp parallel for num_threads(cpu_team(launch, lines, n * 2))
  for (int64_t line = 0; line < lines; line++) {
    const int64_t from = line_offset(&x, line, axis), to = line_offset(&y, line, axis);
    cpu_sum sum = { 0 };
    for (int64_t j = 0; j < n; j++) {
      const int64_t at = a->reverse ? n - 1 - j : j, source = from + at * x.stride[axis];
      if (a->exclusive) cpu_sum_store(&sum, &y, to + at * y.stride[axis]);
      if (qn_is_integer(x.dtype)) sum.integer += (uint64_t)qn_load_i64(cpu_at(&x, source), x.dtype);
      else cpu_sum_add(&sum, cpu_get(&x, source));
      if (!a->exclusive) cpu_sum_store(&sum, &y, to + at * y.stride[axis]);
    }
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_SCATTER_ADD, scatter_add),
  CPU_DIRECT_ROW(QN_OP_PAD_BACKWARD, pad_backward),
  CPU_DIRECT_ROW(QN_OP_ONE_HOT, one_hot),
  CPU_DIRECT_ROW(QN_OP_TOP_K, top_k),
  CPU_DIRECT_ROW(QN_OP_SORT, sort),
  CPU_DIRECT_ROW(QN_OP_CUMSUM, cumsum),
  CPU_DIRECT_ROW(QN_OP_CUMPROD, scan),
  CPU_DIRECT_ROW(QN_OP_CUMMAX, scan),
  CPU_DIRECT_ROW(QN_OP_CUMMIN, scan),
};
const qn_engine_list cpu_select_direct = { row, sizeof row / sizeof *row };
