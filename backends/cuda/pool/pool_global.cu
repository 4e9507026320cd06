/* pool_global.cu -- global pooling (one window covers the whole plane), adaptive too, of small packed NCHW planes in f16, bf16 and f32.
 *
 *   max       y = the largest of a plane; NaN wins
 *   average   y = sum of a plane / its size
 *
 * Each warp copies 32 planes to shared memory with cp.async, so all their loads are in flight at once; then each lane reduces one
 * plane. Lanes read pieces of G bytes. Bank conflicts: planes of whole 16-byte words are padded to an odd number of words; others
 * stay as loaded, with an odd number of pieces per plane or (rarely) a two-way conflict.
 * Refused: indices, padding, dilation, planes above 1024 bytes. */
#include <cuda_pipeline_primitives.h>
#include "engines.h"
#include "pool_far.cuh"

/* bytes of a plane, bytes of shared memory of a block, pieces a lane reads at once */
enum { LANES = 32, WARPS = 2, BYTES_MOST = 1024, SHARED = 48 << 10, BATCH = 4 };

struct planes : pool {
  uint32_t count;
  int32_t  bytes, apart, pieces;          /* bytes: of a plane; apart: distance of planes in shared memory */
  cuda_divisor by_words;                  /* G == 16 */
};

template <int G> struct piece;
template <> struct piece<2> { uint16_t bits; };
template <> struct piece<4> { uint32_t bits; };
template <> struct piece<16> { uint4 bits; };
template <int dtype, int G, int E> __device__ __forceinline__ void open(float (&v)[E], piece<G> q)
{
  if constexpr (G == 16) vector_open<dtype>(v, 0, q.bits);
  else if constexpr (dtype == QN_F32) v[0] = __uint_as_float(q.bits);
  else
#pragma unroll
    for (int i = 0; i < E; i++)
      v[i] = dtype == QN_BF16 ? bf16_to_float((uint16_t)(q.bits >> i * 16)) : f16_to_float((uint16_t)(q.bits >> i * 16));
}

template <int dtype, bool average, int G> __global__ void __launch_bounds__(LANES * WARPS) pool_global(const __grid_constant__ planes p)
{
  constexpr int esize = dtype == QN_F32 ? 4 : 2, E = G / esize;
  extern __shared__ uint4 stage[];
  const int lane = threadIdx.x % LANES;
  const uint32_t warp = threadIdx.x / LANES, first = (blockIdx.x * (blockDim.x / LANES) + warp) * LANES;
  if (first >= p.count) return;
  const int planes = (int)min((uint32_t)LANES, p.count - first), bytes = planes * p.bytes;
  char *const kept = (char *)stage + warp * LANES * p.apart;
  const char *const x = (const char *)p.x + (int64_t)first * p.bytes;
#pragma unroll 4
  for (int i = lane; i < bytes / 16; i += LANES)
    __pipeline_memcpy_async(kept + i * 16 + (G == 16 ? (int)cuda_quotient(i, p.by_words) * (p.apart - p.bytes) : 0), x + i * 16, 16);
  const int last = bytes / 16 * 16 + lane * esize;        /* the tail of x that is no whole 16-byte word */
  if (G < 16 && last < bytes) {
    if (dtype == QN_F32) *(uint32_t *)(kept + last) = *(const uint32_t *)(x + last);
    else *(uint16_t *)(kept + last) = *(const uint16_t *)(x + last);
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  if (lane >= planes) return;
  const piece<G> *const mine = (const piece<G> *)(kept + lane * p.apart);
  float f[BATCH];
#pragma unroll
  for (int b = 0; b < BATCH; b++) f[b] = average ? 0 : -INFINITY;
  const auto join = [](float a, float b) { return average ? a + b : larger(a, b); };
#pragma unroll 2
  for (int i = 0; i < p.pieces; i += BATCH)
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (i + b >= p.pieces) break;
      float v[E];
      open<dtype>(v, mine[i + b]);
#pragma unroll
      for (int e = 0; e < E; e++) f[b] = join(f[b], v[e]);
    }
  float v = join(join(f[0], f[1]), join(f[2], f[3]));
  if (average) {
    v /= (float)(p.pieces * E);
    if (pool_far<dtype>(v)) v = pool_far_mean(p, (int64_t)(first + lane) * p.pieces * E, 0, 0, 0);
  }
  element_store(p.y, first + lane, dtype, v);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { planes p; int32_t x, y; uint32_t threads, shared; kernel kernel; };

template <int dtype> static kernel choose(bool average, int piece)
{
  if constexpr (dtype != QN_F32)
    if (piece == 2) return average ? (kernel)pool_global<dtype, true, 2> : (kernel)pool_global<dtype, false, 2>;
  if (piece == 4) return average ? (kernel)pool_global<dtype, true, 4> : (kernel)pool_global<dtype, false, 4>;
  return average ? (kernel)pool_global<dtype, true, 16> : (kernel)pool_global<dtype, false, 16>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = cuda_value(r, QN_ROLE_POOL_MAX_X), *y = cuda_value(r, QN_ROLE_POOL_MAX_Y);
  qn_status status = pool_wants_floats(x, "x", out);
  if (!status) status = pool_wants_planes(op, x, y, x->align, out);
  if (status) return status;
  planes p = {};
  if (!pool_fill(&p, op, x, y)) return qn_refuse(out, "extents below 2^29", "x", "", "%s", "more");
  for (int d = 0; d < 3; d++)
    if (p.size[d] != p.in[d] || p.out[d] != 1 || p.before[d] || (p.in[d] > 1 && p.dilation[d] != 1) || (p.include_pad && p.after[d]))
      return qn_refuse(out, "one window that is all of a plane", "x", "the extent", "%d of %d", p.size[d], p.in[d]);
  const int esize = qn_kit_bytes(x->dtype);
  const int64_t size = (int64_t)p.in[0] * p.in[1] * p.in[2], bytes = size * esize, count = qn_elements(x) / size;
  if (bytes > BYTES_MOST) return qn_refuse(out, "small planes", "x", "1024 bytes", "%lld", (long long)bytes);
  if (count > INT32_MAX) return qn_refuse(out, "fewer than 2^31 planes", "x", "", "%lld", (long long)count);
  const int piece = bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : 2;
  p.count = (uint32_t)count;
  p.bytes = (int32_t)bytes, p.pieces = (int32_t)bytes / piece;
  p.apart = piece == 16 ? (p.pieces | 1) * 16 : p.bytes;
  p.by_words = cuda_divide_by(piece == 16 ? p.pieces : 1);
  state st = {};
  st.p = p, st.x = op->arg[0], st.y = op->arg[1];
  st.threads = LANES * WARPS * p.apart <= SHARED ? LANES * WARPS : LANES;
  st.shared = st.threads * (uint32_t)p.apart;
  st.kernel = x->dtype == QN_F32  ? choose<QN_F32>(p.average, piece)
            : x->dtype == QN_BF16 ? choose<QN_BF16>(p.average, piece)
                                  : choose<QN_F16>(p.average, piece);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  planes p = st->p;
  p.x = launch->ptr[st->x];
  p.y = launch->ptr[st->y];
  void *args[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, (unsigned)qn_ceil_div(p.count, st->threads), st->threads, args, st->shared,
                                     (cudaStream_t)launch->stream),
                    "pool_global");
}

#define ROW(op) { "global", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX), ROW(QN_OP_POOL_AVERAGE), ROW(QN_OP_POOL_ADAPTIVE_MAX),
                                 ROW(QN_OP_POOL_ADAPTIVE_AVERAGE) };
CUDA_ENGINES(pool_global) = { row, sizeof row / sizeof *row };
