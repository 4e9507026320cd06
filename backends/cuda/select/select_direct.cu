/* select_direct.cu -- scatter_add, pad_backward, one_hot, top_k, sort, cumsum, cumprod, cummax, cummin; any strides
 * and dtypes, in double.
 *
 *   scatter_add   dx[a, l, b] = the sum of dy[a, i, b] over the i with indices[i] = l     an element a thread
 *   pad_backward  dx[j] = the sum of dy[i] over the i that pad fills from j               an element a thread
 *   one_hot       y[a, l, b] = on where indices[a, b] = l, else off                       an element a thread
 *   top_k         y = the k largest along an axis, the largest first                      a line a warp, k passes
 *   sort          y[the number of those before x[i]] = x[i] along an axis                 an element a thread
 *   cumsum        y[i] = x[0] + ... + x[i] along an axis; cumprod, cummax, cummin likewise   a line a thread */
#include "kit/direct.cuh"
#include "engines.h"

struct selection {
  tensor  x, y, indices;                  /* x: the input with values; indices: input or output */
  int32_t axis;
  int64_t count;                          /* elements (threads) or lines (warps) */
  int64_t places, k;                      /* number of indices; top_k's k */
  int32_t mode, smallest, exclusive, reverse;
  int32_t joins;                          /* of a scan: QN_OP_CUMPROD, QN_OP_CUMMAX, QN_OP_CUMMIN */
  bool    outwards;                       /* pad_backward: nothing is cut off, and nothing comes round */
  int64_t before[QN_MAX_RANK];            /* pad_backward */
  double  on, off;
};

/* Offset of line i of t along `axis`. */
__device__ __forceinline__ int64_t line_begin(const tensor &t, int axis, int64_t i)
{
  int64_t offset = 0;
  for (int d = t.rank - 1; d >= 0; d--) {
    if (d == axis) continue;
    int64_t q = i / t.dim[d];
    offset += (i - q * t.dim[d]) * t.stride[d];
    i = q;
  }
  return offset;
}

enum { BLOCK = 4096 };                    /* terms of one running sum; longer sums are made in blocks */

#define FOR_EACH(i, n) \
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

/* ---- gathered sums --------------------------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(128) scatter_add_direct(const __grid_constant__ selection s)
{
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK], from = 0;
    double sum = 0, blocks = 0;
    place_in(i, s.y, s.y.rank, at);
    for (int d = 0; d < s.y.rank; d++)
      if (d != s.axis) from += at[d] * s.x.stride[d < s.axis ? d : d + s.indices.rank - 1];
    for (int64_t j = 0; j < s.places; j++) {
      int64_t named[QN_MAX_RANK], source = from;
      if (j % BLOCK == 0) blocks += sum, sum = 0;
      place_in(j, s.indices, s.indices.rank, named);
      if (s.indices.load<int64_t>(offset_in(s.indices, named)) != at[s.axis]) continue;
      for (int d = 0; d < s.indices.rank; d++) source += named[d] * s.x.stride[s.axis + d];
      sum += s.x.load<double>(source);
    }
    s.y.store(offset_in(s.y, at), blocks + sum);
  }
}

/* The k-th index of dim d that pad fills from x's index `at`; -1: there are fewer. */
__device__ __forceinline__ int64_t image_of(const selection &s, int d, int64_t at, int64_t k)
{
  int64_t n = s.y.dim[d], before = s.before[d], after = s.x.dim[d] - before - n;
  if (!s.outwards) {                      /* wrapped or cut off: found by a search */
    for (int64_t i = 0; i < s.x.dim[d]; i++) {
      int64_t from = i - before;
      if (from < 0 || from >= n) {
        if (s.mode == QN_PAD_CONSTANT) continue;
        if (s.mode == QN_PAD_REFLECT) from = from < 0 ? -from : 2 * (n - 1) - from;
        else if (s.mode == QN_PAD_REPLICATE) from = from < 0 ? 0 : n - 1;
        else from = from < 0 ? n - 1 - (-from - 1) % n : from % n;
      }
      if (from == at && k-- == 0) return i;
    }
    return -1;
  }
  if (k == 0) return before + at;
  if (s.mode == QN_PAD_REFLECT) {
    bool left = at >= 1 && at <= before, right = at <= n - 2 && at >= n - 1 - after;
    if (left && k == 1) return before - at;
    return right && k == 1 + left ? before + 2 * (n - 1) - at : -1;
  }
  if (s.mode == QN_PAD_REPLICATE) {
    int64_t left = at == 0 ? before : 0, right = at == n - 1 ? after : 0;
    if (k <= left) return k - 1;
    return k - left <= right ? before + n + k - left - 1 : -1;
  }
  return -1;
}

__global__ static void __launch_bounds__(128) pad_backward_direct(const __grid_constant__ selection s)
{
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK], number[QN_MAX_RANK] = {}, image[QN_MAX_RANK];
    double sum = 0;
    int d;
    place_in(i, s.y, s.y.rank, at);
    bool shown = true;
    for (d = 0; d < s.y.rank; d++) shown &= (image[d] = image_of(s, d, at[d], 0)) >= 0;
    if (shown) do {                       /* over the images in all dims, the last fastest */
      sum += s.x.load<double>(offset_in(s.x, image));
      for (d = s.y.rank - 1; d >= 0; d--) {
        image[d] = image_of(s, d, at[d], ++number[d]);
        if (image[d] >= 0) break;
        image[d] = image_of(s, d, at[d], number[d] = 0);
      }
    } while (d >= 0);
    s.y.store(offset_in(s.y, at), sum);
  }
}

/* ---- one_hot ------------------------------------------------------------------------------------------------ */

__global__ static void __launch_bounds__(256) one_hot_direct(const __grid_constant__ selection s)
{
  FOR_EACH(i, s.count) {
    int64_t at[QN_MAX_RANK], from = 0;
    place_in(i, s.y, s.y.rank, at);
    for (int d = 0; d < s.indices.rank; d++) from += at[d < s.axis ? d : d + 1] * s.indices.stride[d];
    s.y.store(offset_in(s.y, at), s.indices.load<int64_t>(from) == at[s.axis] ? s.on : s.off);
  }
}

/* ---- lines -------------------------------------------------------------------------------------------------- */

/* A float in f, or an integer (which a double might not hold) in i. */
struct ranked { double f; int64_t i, place; };

__device__ __forceinline__ bool comes_before(const ranked &a, const ranked &b, bool smallest)
{
  bool a_nan = a.f != a.f, b_nan = b.f != b.f;
  if (b.place < 0 || a.place < 0) return b.place < 0 && a.place >= 0;
  if (a_nan != b_nan) return smallest ? b_nan : a_nan;
  if (!a_nan && a.f != b.f) return smallest ? a.f < b.f : a.f > b.f;
  if (a.i != b.i) return smallest ? a.i < b.i : a.i > b.i;
  return a.place < b.place;
}

__device__ __forceinline__ ranked ranked_at(const tensor &x, int64_t offset, int64_t place)
{
  ranked v = { 0, 0, place };
  if (x.dtype >= QN_I8) v.i = x.load<int64_t>(offset);
  else v.f = x.load<double>(offset);
  return v;
}

__device__ static void copy_bits(const tensor &y, int64_t to, const tensor &x, int64_t from)
{
  switch (x.dtype) {
  case QN_F64: case QN_I64: ((uint64_t *)y.p)[to] = ((const uint64_t *)x.p)[from]; break;
  case QN_F32: case QN_I32: ((uint32_t *)y.p)[to] = ((const uint32_t *)x.p)[from]; break;
  case QN_F16: case QN_BF16: ((uint16_t *)y.p)[to] = ((const uint16_t *)x.p)[from]; break;
  default: ((uint8_t *)y.p)[to] = ((const uint8_t *)x.p)[from]; break;
  }
}

__global__ static void __launch_bounds__(256) top_k_direct(const __grid_constant__ selection s)
{
  int lane = threadIdx.x % 32;
  int64_t n = s.x.dim[s.axis], step = s.x.stride[s.axis];
  for (int64_t line = blockIdx.x * (int64_t)8 + threadIdx.x / 32; line < s.count; line += (int64_t)gridDim.x * 8) {
    int64_t from = line_begin(s.x, s.axis, line), to = line_begin(s.y, s.axis, line);
    int64_t number = s.indices.p ? line_begin(s.indices, s.axis, line) : 0;
    ranked last = { 0, 0, -1 };
    for (int64_t k = 0; k < s.k; k++) {
      ranked best = { 0, 0, -1 };
      for (int64_t j = lane; j < n; j += 32) {
        ranked v = ranked_at(s.x, from + j * step, j);
        if ((k == 0 || comes_before(last, v, s.smallest)) && comes_before(v, best, s.smallest)) best = v;
      }
      for (int o = 16; o; o >>= 1) {
        ranked other;
        other.f = __shfl_xor_sync(~0u, best.f, o);
        other.i = __shfl_xor_sync(~0u, best.i, o);
        other.place = __shfl_xor_sync(~0u, best.place, o);
        if (comes_before(other, best, s.smallest)) best = other;
      }
      last = best;
      if (lane == 0) {
        copy_bits(s.y, to + k * s.y.stride[s.axis], s.x, from + best.place * step);
        if (s.indices.p) s.indices.store(number + k * s.indices.stride[s.axis], best.place);
      }
    }
  }
}

__global__ static void __launch_bounds__(128) sort_direct(const __grid_constant__ selection s)
{
  const int64_t n = s.x.dim[s.axis], step = s.x.stride[s.axis];
  FOR_EACH(i, s.count) {
    const int64_t line = i / n, j = i - line * n, from = line_begin(s.x, s.axis, line);
    const ranked v = ranked_at(s.x, from + j * step, j);
    int64_t place = 0;
    for (int64_t k = 0; k < n; k++) place += comes_before(ranked_at(s.x, from + k * step, k), v, s.smallest);
    copy_bits(s.y, line_begin(s.y, s.axis, line) + place * s.y.stride[s.axis], s.x, from + j * step);
    if (s.indices.p) s.indices.store(line_begin(s.indices, s.axis, line) + place * s.indices.stride[s.axis], j);
  }
}

template <class T> __device__ __forceinline__ void store_sum(const tensor &y, int64_t at, T sum) { y.store(at, sum); }
template <> __device__ __forceinline__ void store_sum(const tensor &y, int64_t at, int64_t sum)
{
  element_store_wrapped(y.p, at, y.dtype, sum);
}

template <class T> __global__ static void __launch_bounds__(128) cumsum_direct(const __grid_constant__ selection s)
{
  int64_t n = s.x.dim[s.axis];
  FOR_EACH(line, s.count) {
    int64_t from = line_begin(s.x, s.axis, line), to = line_begin(s.y, s.axis, line);
    T sum = 0, blocks = 0;
    for (int64_t j = 0; j < n; j++) {
      int64_t at = s.reverse ? n - 1 - j : j;
      if (j % BLOCK == 0) blocks += sum, sum = 0;
      if (s.exclusive) store_sum(s.y, to + at * s.y.stride[s.axis], (T)(blocks + sum));
      sum += s.x.load<T>(from + at * s.x.stride[s.axis]);
      if (!s.exclusive) store_sum(s.y, to + at * s.y.stride[s.axis], (T)(blocks + sum));
    }
  }
}

/* cumprod, cummax, cummin. none: what the first of an exclusive scan is. */
template <class T> __global__ static void __launch_bounds__(128) scan_direct(const __grid_constant__ selection s, T none)
{
  const int64_t n = s.x.dim[s.axis];
  FOR_EACH(line, s.count) {
    const int64_t from = line_begin(s.x, s.axis, line), to = line_begin(s.y, s.axis, line);
    T v = none;
    for (int64_t j = 0; j < n; j++) {
      const int64_t at = s.reverse ? n - 1 - j : j;
      if (s.exclusive) store_sum(s.y, to + at * s.y.stride[s.axis], v);
      const T x = s.x.load<T>(from + at * s.x.stride[s.axis]);
      v = s.joins == QN_OP_CUMPROD ? (T)(v * x) : v != v || (s.joins == QN_OP_CUMMIN ? v <= x : v >= x) ? v : x;
      if (!s.exclusive) store_sum(s.y, to + at * s.y.stride[s.axis], v);
    }
  }
}

/* ---- host --------------------------------------------------------------------------------------------------- */

static qn_status run_sums(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  selection s = {};
  s.x = direct_tensor(k, launch, 0, 0);
  if (k->op == QN_OP_SCATTER_ADD) {
    s.y = direct_tensor(k, launch, QN_ROLE_SCATTER_ADD_DX, 0);
    s.indices = direct_tensor(k, launch, QN_ROLE_SCATTER_ADD_INDICES, 0);
    s.axis = (int32_t)((const qn_axis *)k->attr)->axis;
    s.places = direct_elements(s.indices);
  } else {
    const qn_padding *a = (const qn_padding *)k->attr;
    s.y = direct_tensor(k, launch, QN_ROLE_PAD_BACKWARD_DX, 0);
    s.mode = (int32_t)a->mode;
    memcpy(s.before, a->pad_before, sizeof s.before);
    s.outwards = qn_pads_outwards(a, s.y.rank);
  }
  s.count = direct_elements(s.y);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (k->op == QN_OP_SCATTER_ADD) scatter_add_direct<<<direct_blocks(s.count, 128), 128, 0, stream>>>(s);
  else pad_backward_direct<<<direct_blocks(s.count, 128), 128, 0, stream>>>(s);
  return direct_launched("select_direct");
}

static qn_status run_one_hot(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_one_hot_encoding *a = (const qn_one_hot_encoding *)k->attr;
  selection s = {};
  s.indices = direct_tensor(k, launch, QN_ROLE_ONE_HOT_INDICES, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_ONE_HOT_Y, 0);
  s.axis = (int32_t)a->axis;
  s.on = a->on, s.off = a->off;
  s.count = direct_elements(s.y);
  one_hot_direct<<<direct_blocks(s.count, 256), 256, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("one_hot_direct");
}

static qn_status run_top_k(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_ranking *a = (const qn_ranking *)k->attr;
  selection s = {};
  s.x = direct_tensor(k, launch, QN_ROLE_TOP_K_X, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_TOP_K_Y, 0);
  s.indices = direct_tensor(k, launch, QN_ROLE_TOP_K_INDICES, 0);
  s.axis = (int32_t)a->axis, s.k = a->k, s.smallest = a->smallest != 0;
  s.count = direct_elements(s.x) / s.x.dim[s.axis];
  top_k_direct<<<direct_blocks(s.count, 8), 256, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("top_k_direct");
}

static qn_status run_cumsum(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_scan *a = (const qn_scan *)k->attr;
  selection s = {};
  s.x = direct_tensor(k, launch, QN_ROLE_CUMSUM_X, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_CUMSUM_Y, 0);
  s.axis = (int32_t)a->axis, s.exclusive = a->exclusive != 0, s.reverse = a->reverse != 0;
  s.count = direct_elements(s.x) / s.x.dim[s.axis];
  unsigned blocks = direct_blocks(s.count, 128);
  if (qn_is_integer(s.x.dtype)) cumsum_direct<int64_t><<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(s);
  else cumsum_direct<double><<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("cumsum_direct");
}

static qn_status run_sort(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_sorting *a = (const qn_sorting *)k->attr;
  selection s = {};
  s.x = direct_tensor(k, launch, QN_ROLE_SORT_X, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_SORT_Y, 0);
  s.indices = direct_tensor(k, launch, QN_ROLE_SORT_INDICES, 0);
  s.axis = (int32_t)a->axis, s.smallest = !a->descending;
  s.count = direct_elements(s.x);
  sort_direct<<<direct_blocks(s.count, 128), 128, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("sort_direct");
}

static qn_status run_scan(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_scan *a = (const qn_scan *)k->attr;
  selection s = {};
  s.x = direct_tensor(k, launch, QN_ROLE_CUMPROD_X, 0);
  s.y = direct_tensor(k, launch, QN_ROLE_CUMPROD_Y, 0);
  s.axis = (int32_t)a->axis, s.exclusive = a->exclusive != 0, s.reverse = a->reverse != 0;
  s.joins = (int32_t)k->op;
  s.count = direct_elements(s.x) / s.x.dim[s.axis];
  const unsigned blocks = direct_blocks(s.count, 128);
  if (qn_is_integer(s.x.dtype))
    scan_direct<int64_t><<<blocks, 128, 0, (cudaStream_t)launch->stream>>>
      (s, k->op == QN_OP_CUMPROD ? 1 : k->op == QN_OP_CUMMIN ? qn_largest(s.x.dtype) : qn_least(s.x.dtype));
  else scan_direct<double><<<blocks, 128, 0, (cudaStream_t)launch->stream>>>
      (s, k->op == QN_OP_CUMPROD ? 1 : k->op == QN_OP_CUMMIN ? INFINITY : -INFINITY);
  return direct_launched("scan_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_SCATTER_ADD, run_sums),
  DIRECT_ROW(QN_OP_PAD_BACKWARD, run_sums),
  DIRECT_ROW(QN_OP_ONE_HOT, run_one_hot),
  DIRECT_ROW(QN_OP_TOP_K, run_top_k),
  DIRECT_ROW(QN_OP_SORT, run_sort),
  DIRECT_ROW(QN_OP_CUMSUM, run_cumsum),
  DIRECT_ROW(QN_OP_CUMPROD, run_scan),
  DIRECT_ROW(QN_OP_CUMMAX, run_scan),
  DIRECT_ROW(QN_OP_CUMMIN, run_scan),
};
CUDA_ENGINES(select_direct) = { row, sizeof row / sizeof *row };
