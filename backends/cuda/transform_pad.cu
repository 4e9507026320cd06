/* transform_pad.cu -- pad at the speed of memory: a thread writes 16 bytes of a y without gaps, wherever they lie in its rows.
 *
 * Most units lie inside one row of x: their bytes are loaded as aligned vectors and shifted to where they belong, as x's row stands
 * askew to y's by its padding. The others go element by element, each from where its mode shows it. */
#include "cuda_backend.h"
#include "engines.h"
#include "pad.cuh"

enum { THREADS = 256 };

struct filling : padding { uint32_t units; uint64_t value; };

/* The place among x's n that `at` shows; -1: none, but the value. */
__device__ __forceinline__ int shown(int mode, uint32_t at, uint32_t before, uint32_t n)
{
  int from = (int)(at - before);
  if (from >= 0 && from < (int)n) return from;
  if (mode == QN_PAD_REFLECT) return from < 0 ? -from : 2 * ((int)n - 1) - from;
  return mode == QN_PAD_REPLICATE ? (from < 0 ? 0 : (int)n - 1) : -1;
}

/* Where in x the row of y of this number comes from, in bytes; -1: nowhere. */
__device__ __forceinline__ int64_t row_source(const filling &p, uint32_t row)
{
  int64_t offset = 0;
  bool inside = true;
#pragma unroll
  for (int d = 1; d < PAD_DIMS; d++)
    if (d < p.rank) {
      uint32_t q = d + 1 < p.rank ? cuda_quotient(row, p.by_out[d]) : 0;
      int from = shown(p.mode, row - q * p.out_dim[d], p.before[d], p.in_dim[d]);
      inside &= from >= 0;
      offset += from * p.in_stride[d];
      row = q;
    }
  return inside ? offset : -1;
}

/* A unit that begins with element `first` of y, at place `at` of its row, element by element. */
template <class T> __device__ __forceinline__ void fill_unit(const filling &p, uint32_t first, uint32_t row, uint32_t at)
{
  constexpr int V = 16 / sizeof(T);
  union { uint4 whole; T element[V]; } out;
  int64_t from = row_source(p, row), next = row_source(p, ++row);       /* of the next row once, for all lanes whose units go on there */
#pragma unroll
  for (int i = 0; i < V; i++) {
    int source = shown(p.mode, at, p.before[0], p.in_dim[0]);
    if (first + i >= p.elements) out.element[i] = T();
    else out.element[i] = from >= 0 && source >= 0 ? *(const T *)(p.in + from + source * (int64_t)sizeof(T)) : (T)p.value;
    if (++at == p.out_dim[0]) {
      at = 0;
      from = next;
      if (p.out_dim[0] < V) next = row_source(p, ++row);
    }
  }
  if (p.elements - first >= V) {
    *(uint4 *)(p.out + (int64_t)first * sizeof(T)) = out.whole;
  } else {
    for (int i = 0; i < V; i++)
      if (first + i < p.elements) *(T *)(p.out + (int64_t)(first + i) * sizeof(T)) = out.element[i];
  }
}

/* The block gathers the units that want it element by element, so that few warps go that long way. */
template <class T> __global__ static void __launch_bounds__(THREADS) transform_pad(const __grid_constant__ filling p)
{
  constexpr int V = 16 / sizeof(T);
  __shared__ uint32_t later[THREADS], count;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x, first = unit * V;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (unit < p.units) {
    uint32_t row = cuda_quotient(first, p.by_out[0]), left = first - row * p.out_dim[0] - p.before[0];  /* wraps where before x's row */
    bool inner = left < p.in_dim[0] && p.in_dim[0] - left >= V;
    int64_t from = inner ? row_source(p, row) : -1, byte = from + (int64_t)left * (int64_t)sizeof(T);
    if (from >= 0 && byte + ASKEW <= p.in_bytes) *(uint4 *)(p.out + (int64_t)first * sizeof(T)) = load_askew<sizeof(T)>(p.in + byte);
    else later[atomicAdd(&count, 1)] = first;
  }
  __syncthreads();
  if (threadIdx.x >= count) return;
  first = later[threadIdx.x];
  uint32_t row = cuda_quotient(first, p.by_out[0]);
  fill_unit<T>(p, first, row, first - row * p.out_dim[0]);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { filling p; int32_t x, y, bytes; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *x = cuda_value(r, QN_ROLE_PAD_X), *y = cuda_value(r, QN_ROLE_PAD_Y);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  int esize = (int)qn_kit_bytes(y->dtype);
  if (!qn_is_dense(y) || y->align < 16) return qn_refuse(out, "16 bytes are stored at once", "y", "no gaps, 16-byte alignment", "%s", "");
  if (qn_elements(y) > INT32_MAX) return qn_refuse(out, "elements are counted in 31 bits", "y", "below 2^31", "%lld", (long long)qn_elements(y));
  filling p = {};
  if (!pad_fill(&p, a, x, y)) return qn_refuse(out, "at most 6 dims that do not merge", "y", "6", "%d", y->rank);
  p.units = (uint32_t)qn_ceil_div(p.elements, 16 / esize);
  qn_store_f64(&p.value, y->dtype, a->value);
  if (p.in_dim[0] > 1 && p.in_stride[0] != esize) return qn_refuse(out, "rows contiguous in both", "x", "the order of y's dims", "%s", "");
  pad_state st = {};
  st.p = p;
  st.x = qn_role(&r->op[0], QN_ROLE_PAD_X), st.y = qn_role(&r->op[0], QN_ROLE_PAD_Y);
  st.bytes = esize;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  unsigned blocks = (st->p.units + THREADS - 1) / THREADS;
  filling p = st->p;
  p.in = (const char *)launch->ptr[st->x];
  p.out = (char *)launch->ptr[st->y];
  switch (st->bytes) {
  case 8:  transform_pad<uint64_t><<<blocks, THREADS, 0, stream>>>(p); break;
  case 4:  transform_pad<uint32_t><<<blocks, THREADS, 0, stream>>>(p); break;
  case 2:  transform_pad<uint16_t><<<blocks, THREADS, 0, stream>>>(p); break;
  default: transform_pad<uint8_t><<<blocks, THREADS, 0, stream>>>(p); break;
  }
  return cuda_check(cudaGetLastError(), "transform_pad");
}

static const qn_engine row[] = {
  { "units", QN_OP_PAD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
const qn_engine_list cuda_transform_pad_list = { row, sizeof row / sizeof *row };
