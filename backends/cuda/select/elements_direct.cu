/* elements_direct.cu -- an index for each element, or for each block of them; any strides and dtypes.
 *
 *   gather_elements    y[..., i, ...] = x[..., indices[..., i, ...], ...] along an axis, 0 for an index out of range
 *   scatter_elements   y = x, joined with the updates[..., j, ...] whose indices[..., j, ...] are the element's place along the axis
 *   scatter_nd         y = x, joined with the updates whose row of indices are the element's first places
 *   iota               y = start + i step, i the place along an axis
 *
 * An element of y a thread, which looks through the updates that may go there in row-major order, so the bits are always the same.
 * Floats are joined in double, integers modulo 2^64; without joining, bits are copied. */
#include "elements.cuh"

__global__ static void __launch_bounds__(256) gather_elements_direct(const __grid_constant__ elements s)
{
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK];
    place_in(i, s.y, s.y.rank, at);
    int64_t to = offset_in(s.y, at), index = s.indices.load<int64_t>(offset_in(s.indices, at));
    at[s.axis] = index;
    if (index >= 0 && index < s.x.dim[s.axis]) copy_bits(s.y, to, s.x, offset_in(s.x, at), s.bytes);
    else s.y.store(to, 0.0);
  }
}

/* ---- scatter --------------------------------------------------------------------------------------------- */

/* The offset of the update that follows number j for the element at `at`; -1: there is none. j is moved past it. */
__device__ static int64_t next_of_elements(const elements &s, int64_t *at, int64_t own, int64_t *j)
{
  int64_t found = -1;
  for (; *j < s.rows && found < 0; ++*j) {
    at[s.axis] = *j;
    if (s.indices.load<int64_t>(offset_in(s.indices, at)) == own) found = offset_in(s.updates, at);
  }
  at[s.axis] = own;
  return found;
}

__device__ static int64_t next_of_rows(const elements &s, const int64_t *at, int64_t *q)
{
  const int before = s.indices.rank - 1;
  for (; *q < s.rows; ++*q) {
    int64_t row[QN_MAX_RANK], first = 0, offset = 0;
    bool here = true;
    place_in(*q, s.indices, before, row);
    for (int d = 0; d < before; d++) first += row[d] * s.indices.stride[d], offset += row[d] * s.updates.stride[d];
    for (int k = 0; k < s.named && here; k++) here = s.indices.load<int64_t>(first + k * s.indices.stride[before]) == at[k];
    if (!here) continue;
    for (int d = s.named; d < s.y.rank; d++) offset += at[d] * s.updates.stride[before + d - s.named];
    ++*q;
    return offset;
  }
  return -1;
}

/* T: double or int64_t, in which updates are joined. */
template <class T> __global__ static void __launch_bounds__(128) scatter_direct(const __grid_constant__ elements s)
{
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK], j = 0, update = -1, next;
    place_in(i, s.y, s.y.rank, at);
    const int64_t from = offset_in(s.x, at), to = offset_in(s.y, at);
    for (int d = 0; d < s.y.rank && !s.named; d++)
      if (d != s.axis && at[d] >= s.indices.dim[d]) j = s.rows;         /* indices do not reach there */
    T v = s.mode == QN_SCATTER_NONE ? T(0) : s.x.load<T>(from);
    const int64_t own = at[s.axis];
    while ((next = s.named ? next_of_rows(s, at, &j) : next_of_elements(s, at, own, &j)) >= 0) {
      update = next;
      if (s.mode != QN_SCATTER_NONE) v = join(s.mode, v, s.updates.load<T>(next));
    }
    if (s.mode != QN_SCATTER_NONE) store_joined(s.y, to, v);
    else if (update < 0) copy_bits(s.y, to, s.x, from, s.bytes);
    else copy_bits(s.y, to, s.updates, update, s.bytes);
  }
}

__global__ static void __launch_bounds__(256) iota_direct(const __grid_constant__ elements s)
{
  const double start = s.start.p ? element_load<double>(s.start.p, 0, s.start.dtype) : s.start.value;
  const double step = s.step.p ? element_load<double>(s.step.p, 0, s.step.dtype) : s.step.value;
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK];
    place_in(i, s.y, s.y.rank, at);
    s.y.store(offset_in(s.y, at), __dadd_rn(start, __dmul_rn((double)at[s.axis], step)));
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status run_gather(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  elements s = {};
  s.x = direct_tensor(k, launch, QN_ROLE_GATHER_ELEMENTS_X, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_GATHER_ELEMENTS_Y, 0);
  s.indices = direct_tensor(k, launch, QN_ROLE_GATHER_ELEMENTS_INDICES, 0);
  s.axis = (int32_t)((const qn_axis *)k->attr)->axis;
  s.bytes = (int32_t)qn_kit_bytes(s.y.dtype);
  s.count = direct_elements(s.y);
  gather_elements_direct<<<direct_blocks(s.count, 256), 256, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("gather_elements_direct");
}

static qn_status run_scatter(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const elements s = scatter_of(k, launch);
  const unsigned blocks = direct_blocks(s.count, 128);
  if (qn_is_integer(s.y.dtype)) scatter_direct<int64_t><<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(s);
  else scatter_direct<double><<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("scatter_direct");
}

static qn_status run_iota(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  elements s = {};
  s.y = direct_tensor(k, launch, QN_ROLE_IOTA_Y, 0);
  s.start = direct_scalar(k, launch, QN_ROLE_IOTA_START, 0);
  s.step = direct_scalar(k, launch, QN_ROLE_IOTA_STEP, 0);
  s.axis = (int32_t)((const qn_axis *)k->attr)->axis;
  s.count = direct_elements(s.y);
  iota_direct<<<direct_blocks(s.count, 256), 256, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("iota_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_GATHER_ELEMENTS, run_gather),
  DIRECT_ROW(QN_OP_SCATTER_ELEMENTS, run_scatter),
  DIRECT_ROW(QN_OP_SCATTER_ND, run_scatter),
  DIRECT_ROW(QN_OP_IOTA, run_iota),
};
CUDA_ENGINES(elements_direct) = { row, sizeof row / sizeof *row };
