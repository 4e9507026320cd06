/* elements_direct.c -- an index for each element, or for each block of them.
 *
 *   gather_elements    y[..., i, ...] = x[..., indices[..., i, ...], ...] along an axis, 0 for an index out of range
 *   scatter_elements   y = x, joined with the updates[..., j, ...] whose indices[..., j, ...] are the element's place along the axis
 *   scatter_nd         y = x, joined with the updates whose row of indices are the element's first places
 *   iota               y = start + i step, i the place along an axis
 *
 * Each output element looks through the updates that may go there, in row-major order. */
#include "direct.h"

static qn_status gather_elements(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_GATHER_ELEMENTS_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_GATHER_ELEMENTS_Y, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_GATHER_ELEMENTS_INDICES, 0);
  const int32_t axis = (int32_t)((const qn_axis *)kept->attr)->axis;
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 2))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);
    const int64_t to = cpu_offset(y.rank, index, y.stride);
    index[axis] = qn_load_i64(cpu_at(&indices, cpu_offset(indices.rank, index, indices.stride)), indices.dtype);
    if (index[axis] >= 0 && index[axis] < x.dim[axis])
      memcpy(cpu_at(&y, to), cpu_at(&x, cpu_offset(x.rank, index, x.stride)), (size_t)y.bytes);
    else memset(cpu_at(&y, to), 0, (size_t)y.bytes);
  }
  return QN_OK;
}

/* ---- scatter ------------------------------------------------------------------------------------ */

/* An element of y while updates join it: the value itself, and what it adds up to or multiplies to. */
typedef struct joined {
  int64_t     mode, whole;
  cpu_sum     sum;
  long double product;
  double      extreme;
  unsigned char bits[8];
} joined;

static void begin(joined *v, int64_t mode, const cpu_tensor *x, int64_t at)
{
  memset(v, 0, sizeof *v);
  v->mode = mode;
  memcpy(v->bits, cpu_at(x, at), (size_t)x->bytes);
  if (mode == QN_SCATTER_NONE) return;
  if (qn_is_integer(x->dtype)) v->whole = qn_load_i64(v->bits, x->dtype);
  else {
    v->product = v->extreme = qn_load_f64(v->bits, x->dtype);
    cpu_sum_add(&v->sum, v->extreme);
  }
}

static void join(joined *v, const cpu_tensor *updates, int64_t at)
{
  const unsigned char *bits = cpu_at(updates, at);
  memcpy(v->bits, bits, (size_t)updates->bytes);
  if (v->mode == QN_SCATTER_NONE) return;
  if (qn_is_integer(updates->dtype)) {
    const int64_t u = qn_load_i64(bits, updates->dtype);
    if (v->mode == QN_SCATTER_ADD) v->whole = (int64_t)((uint64_t)v->whole + (uint64_t)u);
    else if (v->mode == QN_SCATTER_MUL) v->whole = (int64_t)((uint64_t)v->whole * (uint64_t)u);
    else if (v->mode == QN_SCATTER_MAX ? u > v->whole : u < v->whole) v->whole = u;
  } else {
    const double u = qn_load_f64(bits, updates->dtype);
    cpu_sum_add(&v->sum, u);
    v->product *= u;
    if (isnan(u) || (v->mode == QN_SCATTER_MAX ? u > v->extreme : u < v->extreme)) v->extreme = u;
  }
}

static void finish(const joined *v, const cpu_tensor *y, int64_t to)
{
  if (v->mode == QN_SCATTER_NONE) memcpy(cpu_at(y, to), v->bits, (size_t)y->bytes);
  else if (qn_is_integer(y->dtype)) qn_store_i64(cpu_at(y, to), y->dtype, qn_wrap(y->dtype, v->whole));
  else cpu_put(y, to, v->mode == QN_SCATTER_ADD ? cpu_sum_value(&v->sum) : v->mode == QN_SCATTER_MUL ? (double)v->product : v->extreme);
}

static qn_status scatter_elements(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_scattering *a = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ELEMENTS_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ELEMENTS_Y, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ELEMENTS_INDICES, 0);
  const cpu_tensor updates = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ELEMENTS_UPDATES, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, indices.dim[a->axis] * 4))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], n = indices.dim[a->axis];
    joined v;
    cpu_place(i, y.rank, y.dim, index);
    begin(&v, a->mode, &x, cpu_offset(x.rank, index, x.stride));
    const int64_t to = cpu_offset(y.rank, index, y.stride), own = index[a->axis];
    for (int32_t d = 0; d < y.rank; d++)
      if (d != a->axis && index[d] >= indices.dim[d]) n = 0;
    for (int64_t j = 0; j < n; j++) {
      index[a->axis] = j;
      if (qn_load_i64(cpu_at(&indices, cpu_offset(y.rank, index, indices.stride)), indices.dtype) == own)
        join(&v, &updates, cpu_offset(y.rank, index, updates.stride));
    }
    finish(&v, &y, to);
  }
  return QN_OK;
}

static qn_status scatter_nd(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_scattering *a = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ND_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ND_Y, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ND_INDICES, 0);
  const cpu_tensor updates = cpu_tensor_of(p, launch, QN_ROLE_SCATTER_ND_UPDATES, 0);
  const int32_t before = indices.rank - 1, named = (int32_t)indices.dim[before];
  const int64_t rows = indices.elements / named;
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, rows * 4))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], row[2 * QN_MAX_RANK];
    joined v;
    cpu_place(i, y.rank, y.dim, index);
    begin(&v, a->mode, &x, cpu_offset(x.rank, index, x.stride));
    for (int64_t q = 0; q < rows; q++) {
      int here = 1;
      cpu_place(q, before, indices.dim, row);
      const int64_t at = cpu_offset(before, row, indices.stride);
      for (int32_t k = 0; k < named && here; k++)
        here = qn_load_i64(cpu_at(&indices, at + k * indices.stride[before]), indices.dtype) == index[k];
      if (!here) continue;
      for (int32_t d = named; d < y.rank; d++) row[before + d - named] = index[d];
      join(&v, &updates, cpu_offset(updates.rank, row, updates.stride));
    }
    finish(&v, &y, cpu_offset(y.rank, index, y.stride));
  }
  return QN_OK;
}

/* ---- iota ----------------------------------------------------------------------------------------- */

static qn_status iota(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const int64_t axis = ((const qn_axis *)kept->attr)->axis;
  const cpu_tensor y = cpu_tensor_of(p, launch, QN_ROLE_IOTA_Y, 0), from = cpu_tensor_of(p, launch, QN_ROLE_IOTA_START, 0);
  const cpu_tensor by = cpu_tensor_of(p, launch, QN_ROLE_IOTA_STEP, 0);
  const double start = cpu_get(&from, 0), step = cpu_get(&by, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 2))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK] = { 0 };
    cpu_place(i, y.rank, y.dim, index);
    cpu_put(&y, cpu_offset(y.rank, index, y.stride), start + (double)index[axis] * step);
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_GATHER_ELEMENTS, gather_elements),
  CPU_DIRECT_ROW(QN_OP_SCATTER_ELEMENTS, scatter_elements),
  CPU_DIRECT_ROW(QN_OP_SCATTER_ND, scatter_nd),
  CPU_DIRECT_ROW(QN_OP_IOTA, iota),
};
const qn_engine_list cpu_elements_direct = { row, sizeof row / sizeof *row };
