/* elements_sorted.cu -- scatter_elements and scatter_nd: the updates are sorted by the place of y that they name (select_order.cuh), so that
 * each place is joined with its own in their order. x is copied to y first, unless it is y.
 *
 * Joined as by direct, in double or modulo 2^64: the same bits. Refused: 2^31 updates, places or elements of a place. */
#include "elements.cuh"
#include "select_order.cuh"

struct joining : elements {
  uint32_t places, inner;                 /* that updates name; elements of y at each */
  tiles    tile;                          /* of the updates, for the sort */
  uint32_t *counts;                       /* workspace */
};

/* The place that update i names, in row-major order; `places` if it is out of range. */
__device__ __forceinline__ uint2 entry_at(const joining &s, const uint2 *from, uint32_t i)
{
  if (from) return from[i];
  const int before = s.named ? s.indices.rank - 1 : s.indices.rank, dims = s.named ? s.named : s.y.rank;
  int64_t at[QN_MAX_RANK], offset = 0, target = 0;
  place_in(i, s.indices, before, at);
  for (int d = 0; d < before; d++) offset += at[d] * s.indices.stride[d];
  for (int d = 0; d < dims; d++) {
    const int64_t index = s.named       ? s.indices.load<int64_t>(offset + d * s.indices.stride[before])
                          : d == s.axis ? s.indices.load<int64_t>(offset)
                                        : at[d];
    if (index < 0 || index >= s.y.dim[d]) return make_uint2(s.places, i);
    target = target * s.y.dim[d] + index;
  }
  return make_uint2((uint32_t)target, i);
}

__global__ static void __launch_bounds__(256) elements_copy(const __grid_constant__ joining s)
{
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK];
    place_in(i, s.y, s.y.rank, at);
    copy_bits(s.y, offset_in(s.y, at), s.x, offset_in(s.x, at), s.bytes);
  }
}

/* The offset of update i, for the element of y at `at`. */
__device__ __forceinline__ int64_t update_of(const joining &s, uint32_t i, const int64_t *at)
{
  const int before = s.named ? s.indices.rank - 1 : s.indices.rank;
  int64_t row[QN_MAX_RANK], offset = 0;
  place_in(i, s.indices, before, row);
  for (int d = 0; d < before; d++) offset += row[d] * s.updates.stride[d];
  for (int d = s.named; d < s.y.rank && s.named; d++) offset += at[d] * s.updates.stride[before + d - s.named];
  return offset;
}

/* A thread for each element of each update; the first update of a place does the work for all. T: double or int64_t. */
template <class T> __global__ static void __launch_bounds__(128) elements_join(const __grid_constant__ joining s, const uint2 *list)
{
  const int64_t thread = blockIdx.x * (int64_t)128 + threadIdx.x;
  uint32_t j = (uint32_t)(thread / s.inner);
  if (j >= s.tile.n || list[j].x >= s.places || (j && list[j - 1].x == list[j].x)) return;
  const uint32_t target = list[j].x;
  int64_t at[QN_MAX_RANK];
  place_in((int64_t)target * s.inner + thread % s.inner, s.y, s.y.rank, at);
  const int64_t to = offset_in(s.y, at);
  if (s.mode == QN_SCATTER_NONE) {
    while (j + 1 < s.tile.n && list[j + 1].x == target) j++;
    copy_bits(s.y, to, s.updates, update_of(s, list[j].y, at), s.bytes);
    return;
  }
  T v = s.y.load<T>(to);
  for (; j < s.tile.n && list[j].x == target; j++) v = join(s.mode, v, s.updates.load<T>(update_of(s, list[j].y, at)));
  store_joined(s.y, to, v);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *y = cuda_value(r, QN_ROLE_SCATTER_ELEMENTS_Y), *indices = cuda_value(r, QN_ROLE_SCATTER_ELEMENTS_INDICES);
  const int64_t named = r->op[0].op == QN_OP_SCATTER_ND ? indices->dim[indices->rank - 1] : 1, n = qn_elements(indices) / named;
  int64_t places = 1;
  for (int d = 0; d < (r->op[0].op == QN_OP_SCATTER_ND ? (int)named : y->rank); d++) places *= y->dim[d];
  if (n == 0 || n > INT32_MAX || places >= INT32_MAX || qn_elements(y) / places > INT32_MAX)
    return qn_refuse(out, "updates and places are counted in 31 bits", "indices", "1 to 2^31 - 1", "%lld", (long long)n);
  const qn_status status = direct_prepare(r, out);
  if (status) return status;
  const tiles tile = tiles_of(n);
  out->workspace = 2 * sizeof(uint2) * (uint64_t)n + (tile.count > 1 ? (uint64_t)tile.count * BINS * 4 : 0);
  return QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  joining s = {};
  (elements &)s = scatter_of(k, launch);
  int64_t inner = 1;
  for (int d = s.named; d < s.y.rank && s.named; d++) inner *= s.y.dim[d];
  s.inner = (uint32_t)inner, s.places = (uint32_t)(s.count / inner);
  s.tile = tiles_of(direct_elements(s.indices) / (s.named ? s.named : 1));
  uint2 *const list = (uint2 *)launch->workspace, *const other = list + s.tile.n;
  s.counts = (uint32_t *)(other + s.tile.n);
  if (s.y.p != s.x.p) {
    const qn_value *x = &k->value[k->first[QN_ROLE_SCATTER_ELEMENTS_X]], *y = &k->value[k->first[QN_ROLE_SCATTER_ELEMENTS_Y]];
    if (qn_is_dense(y) && !memcmp(x->stride, y->stride, sizeof *x->stride * (size_t)x->rank)) {
      const qn_status status = cuda_check(cudaMemcpyAsync(s.y.p, s.x.p, (size_t)(s.count * s.bytes), cudaMemcpyDeviceToDevice, stream), "copy");
      if (status) return status;
    } else {
      elements_copy<<<direct_blocks(s.count, 256), 256, 0, stream>>>(s);
    }
  }
  sort_list(s, s.places, list, other, stream);              /* `places` itself is a key */
  const unsigned blocks = direct_blocks(s.tile.n * inner, 128);
  if (qn_is_integer(s.y.dtype)) elements_join<int64_t><<<blocks, 128, 0, stream>>>(s, list);
  else elements_join<double><<<blocks, 128, 0, stream>>>(s, list);
  return direct_launched("elements_sorted");
}

static const qn_engine row[] = {
  { "sorted", QN_OP_SCATTER_ELEMENTS, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
  { "sorted", QN_OP_SCATTER_ND, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(elements_sorted) = { row, sizeof row / sizeof *row };
