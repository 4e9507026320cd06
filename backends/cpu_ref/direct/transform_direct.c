/* transform_direct.c -- the same elements at other positions, byte for byte.
 *
 *   copy     y[i] = x[i]                    permute  y[i] = x[j] with j[axis[d]] = i[d]
 *   slice    y[i] = x[start + i step]       pad      y[i] = x[i - pad_before], or value
 *            or, by its mode, x mirrored at its edges or its edges repeated
 *   concat   y = the x one after the other along an axis
 *   gather   y[a, i, b] = x[a, indices[i], b], 0 for an index out of range */
#include "direct.h"

static void copy_element(const cpu_tensor *y, int64_t to, const cpu_tensor *x, int64_t from)
{
  memcpy(cpu_at(y, to), cpu_at(x, from), (size_t)y->bytes);
}

static qn_status copy(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_COPY_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_COPY_Y, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 1))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);
    copy_element(&y, cpu_offset(y.rank, index, y.stride), &x, cpu_offset(x.rank, index, x.stride));
  }
  return QN_OK;
}

static qn_status permute(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_permutation *permutation = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_PERMUTE_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_PERMUTE_Y, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 1))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], from[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);
    for (int32_t d = 0; d < y.rank; d++) from[permutation->axis[d]] = index[d];
    copy_element(&y, cpu_offset(y.rank, index, y.stride), &x, cpu_offset(x.rank, from, x.stride));
  }
  return QN_OK;
}

static qn_status slice(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_slicing *slicing = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_SLICE_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_SLICE_Y, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 1))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], from[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);
    for (int32_t d = 0; d < y.rank; d++) from[d] = slicing->start[d] + index[d] * slicing->step[d];
    copy_element(&y, cpu_offset(y.rank, index, y.stride), &x, cpu_offset(x.rank, from, x.stride));
  }
  return QN_OK;
}

static qn_status pad(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_padding *padding = kept->attr;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_PAD_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_PAD_Y, 0);
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 1))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], from[QN_MAX_RANK];
    int inside = 1;
    cpu_place(i, y.rank, y.dim, index);
    for (int32_t d = 0; d < y.rank; d++) {
      from[d] = cpu_pad_source(padding, d, index[d], x.dim[d]);
      inside &= from[d] >= 0;
    }
    const int64_t to = cpu_offset(y.rank, index, y.stride);
    if (inside) copy_element(&y, to, &x, cpu_offset(x.rank, from, x.stride));
    else cpu_put(&y, to, padding->value);
  }
  return QN_OK;
}

static qn_status concat(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const cpu_tensor y = cpu_tensor_of(p, launch, QN_ROLE_CONCAT_Y, 0);
  const int64_t named = ((const qn_axis *)kept->attr)->axis, axis = named < 0 ? named + y.rank : named;
  int64_t start = 0;                      /* of this x along the axis */
  for (int32_t k = 0; k < cpu_count(p, QN_ROLE_CONCAT_X); k++) {
    const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_CONCAT_X, k);
#pragma omp parallel for num_threads(cpu_team(launch, x.elements, 1))
    for (int64_t i = 0; i < x.elements; i++) {
      int64_t index[QN_MAX_RANK];
      cpu_place(i, x.rank, x.dim, index);
      const int64_t from = cpu_offset(x.rank, index, x.stride);
      index[axis] += start;
      copy_element(&y, cpu_offset(y.rank, index, y.stride), &x, from);
    }
    start += x.dim[axis];
  }
  return QN_OK;
}

static qn_status gather(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_GATHER_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_GATHER_Y, 0);
  const cpu_tensor indices = cpu_tensor_of(p, launch, QN_ROLE_GATHER_INDICES, 0);
  const int32_t axis = (int32_t)((const qn_axis *)kept->attr)->axis;
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 2))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK], from[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);
    for (int32_t d = 0; d < x.rank; d++)
      if (d != axis) from[d] = index[d < axis ? d : d + indices.rank - 1];
    from[axis] = qn_load_i64(cpu_at(&indices, cpu_offset(indices.rank, index + axis, indices.stride)), indices.dtype);
    const int64_t to = cpu_offset(y.rank, index, y.stride);
    if (from[axis] >= 0 && from[axis] < x.dim[axis]) copy_element(&y, to, &x, cpu_offset(x.rank, from, x.stride));
    else memset(cpu_at(&y, to), 0, (size_t)y.bytes);
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_COPY, copy),
  CPU_DIRECT_ROW(QN_OP_PERMUTE, permute),
  CPU_DIRECT_ROW(QN_OP_SLICE, slice),
  CPU_DIRECT_ROW(QN_OP_PAD, pad),
  CPU_DIRECT_ROW(QN_OP_CONCAT, concat),
  CPU_DIRECT_ROW(QN_OP_GATHER, gather),
};
const qn_engine_list cpu_transform_direct = { row, sizeof row / sizeof *row };
