/* pool_runs.cu -- pooling of small packed NCHW planes in f16 and bf16: a block copies a run of whole planes to shared memory,
 * computes there, and writes a run of y; both copies are contiguous 16-byte words, whatever the plane's size.
 *
 *   max       y = the largest tap inside x; NaN wins
 *   average   y = sum of taps inside x / divisor
 *
 * 3x3 windows of stride 2 and padding 1, or 2x2 of stride 2, rows of an even width: an output needs one 32-bit word (two columns)
 * of each row, and for 3x3 the upper half of the word to the left. A thread computes OUTPUTS of a row.
 * Refused: f32, indices, planes above 1 KB. */
#include <cuda_pipeline_primitives.h>
#include "pool.cuh"

/* PLANES: of a block at most; ALIGNED: a multiple of so many planes starts at a multiple of 16 bytes */
enum { THREADS = 128, OUTPUTS = 7, PLANES = 32, ALIGNED = 8 };

struct runs : pool {                      /* depth is folded away: in[0] is 1 */
  uint32_t count, per_block;              /* planes: in all, of a block */
  int32_t  even;                          /* all windows have the same divisor */
  float    share;                         /* 1 / divisor, valid if even */
  uint32_t segments;                      /* groups of OUTPUTS in a row of y */
  int32_t  at_y;                          /* byte offset of y in shared memory */
  cuda_divisor by_segments;
};

/* Copies `bytes` from shared memory to 16-byte aligned memory; the tail in 16-bit elements. */
__device__ __forceinline__ void store_run(char *to, const char *from, int bytes)
{
  for (int i = threadIdx.x; i < bytes / 16; i += THREADS) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
  for (int i = bytes / 16 * 8 + threadIdx.x; i < bytes / 2; i += THREADS) ((uint16_t *)to)[i] = ((const uint16_t *)from)[i];
}

template <int dtype, bool average, int SIZE> __global__ void __launch_bounds__(THREADS) pool_runs(const __grid_constant__ runs p)
{
  constexpr int BEFORE = SIZE - 2, STEP = 2;
  extern __shared__ uint4 stage[];
  uint16_t *const y = (uint16_t *)((char *)stage + p.at_y);
  const uint32_t plane = blockIdx.x * p.per_block;
  const int n = (int)min(p.per_block, p.count - plane), pitch = p.in[2] / 2, bytes = n * p.in[1] * p.in[2] * 2;
  const char *x = (const char *)p.x + (int64_t)plane * p.in[1] * p.in[2] * 2;
  for (int i = threadIdx.x; i < bytes / 16; i += THREADS) __pipeline_memcpy_async(&stage[i], x + i * 16, 16);
  __pipeline_commit();
  for (int i = bytes / 16 * 8 + threadIdx.x; i < bytes / 2; i += THREADS) ((uint16_t *)stage)[i] = ((const uint16_t *)x)[i];
  __pipeline_wait_prior(0);
  __syncthreads();
  for (int unit = threadIdx.x; unit < n * p.out[1] * (int)p.segments; unit += THREADS) {
    uint32_t segment;
    const int line = cuda_quotient(unit, p.by_segments, &segment), k = cuda_quotient(line, p.by_out[1]), oy = line - k * p.out[1],
              ox = segment * OUTPUTS;
    const int y0 = oy * STEP - BEFORE;
    const uint32_t *from = (const uint32_t *)stage + (k * p.in[1] + y0) * pitch + ox;
    if constexpr (average) {
      float column[2 * OUTPUTS + 1] = {};
#pragma unroll
      for (int r = 0; r < SIZE; r++, from += pitch) {
        if ((unsigned)(y0 + r) >= (unsigned)p.in[1]) continue;
        if (BEFORE && ox > 0) column[0] += word_get<dtype>(from[-1], 1);
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++)
          if (ox + i < pitch) column[2 * i + 1] += word_get<dtype>(from[i], 0), column[2 * i + 2] += word_get<dtype>(from[i], 1);
      }
      const int down = taps_beside(p, 1, y0, SIZE);
#pragma unroll
      for (int i = 0; i < OUTPUTS; i++) {
        if (ox + i >= p.out[2]) break;
        float v = column[2 * i + 1] + column[2 * i + 2];
        if (BEFORE) v += column[2 * i];
        v *= p.even ? p.share : p.inverse[down * taps_beside(p, 2, (ox + i) * STEP - BEFORE, SIZE)];
        if (pool_far<dtype>(v)) v = pool_far_mean(p, (int64_t)(plane + k) * p.in[1] * p.in[2], 0, oy, ox + i);
        y[line * p.out[2] + ox + i] = (uint16_t)closed<dtype>(v);
      }
    } else {
      const uint32_t none = dtype == QN_BF16 ? 0xff80ff80u : 0xfc00fc00u;
      uint32_t left = none, word[OUTPUTS];
#pragma unroll
      for (int i = 0; i < OUTPUTS; i++) word[i] = none;
#pragma unroll
      for (int r = 0; r < SIZE; r++, from += pitch) {
        if ((unsigned)(y0 + r) >= (unsigned)p.in[1]) continue;
        if (BEFORE && ox > 0) left = larger_pair<dtype>(left, from[-1]);
#pragma unroll
        for (int i = 0; i < OUTPUTS; i++)
          if (ox + i < pitch) word[i] = larger_pair<dtype>(word[i], from[i]);
      }
#pragma unroll
      for (int i = 0; i < OUTPUTS; i++) {
        if (ox + i >= p.out[2]) break;
        uint32_t v = larger_pair<dtype>(word[i], word[i] >> 16);
        if (BEFORE) v = larger_pair<dtype>(v, (i ? word[i - 1] : left) >> 16);
        y[line * p.out[2] + ox + i] = (uint16_t)v;
      }
    }
  }
  __syncthreads();
  store_run((char *)p.y + (int64_t)plane * p.out[1] * p.out[2] * 2, (const char *)y, n * p.out[1] * p.out[2] * 2);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype> static pool_kernel kernel_of(bool average, int size)
{
  if (size == 3) return average ? (pool_kernel)pool_runs<dtype, true, 3> : (pool_kernel)pool_runs<dtype, false, 3>;
  return average ? (pool_kernel)pool_runs<dtype, true, 2> : (pool_kernel)pool_runs<dtype, false, 2>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<runs> s = {};
  runs *p = &s.p;
  qn_status status = pool_read(&s, r, out);
  if (!status) status = pool_wants_planes(r, s.of, 2, out);
  if (status) return status;
  if (p->dtype == QN_F32) return qn_refuse(out, "dtypes", "x", "f16 or bf16", "%s", "f32");
  if (s.of.indices >= 0) return qn_refuse(out, "no indices", "indices", "absent", "%s", "present");
  if (!pool_fold(p, false)) return qn_refuse(out, "windows within a plane", "x", "depth 1", "depth %d", p->size[0]);
  bool square = !p->adaptive && p->size[1] == p->size[2] && p->dilation[1] == 1 && p->dilation[2] == 1;
  for (int d = 1; d < 3; d++) square = square && p->step[d] == 2 && p->before[d] == p->size[d] - 2 && p->out[d] <= (p->in[d] + 1) / 2;
  if (!square || (p->size[1] != 3 && p->size[1] != 2))
    return qn_refuse(out, "square windows with stride 2", "x", "3x3 with padding 1, or 2x2", "%dx%d", p->size[1], p->size[2]);
  const int64_t plane = (int64_t)p->in[1] * p->in[2] * 2, y_plane = (int64_t)p->out[1] * p->out[2] * 2;
  if (p->in[2] % 2 || plane > 1024) return qn_refuse(out, "even widths, planes of a kilobyte", "x", "14x14", "%dx%d", p->in[1], p->in[2]);
  p->count = (uint32_t)(qn_elements(&r->value[s.of.x]) / (plane / 2));
  p->segments = (uint32_t)qn_ceil_div(p->out[2], OUTPUTS);
  p->by_segments = cuda_divide_by(p->segments);
  p->even = pool_even(p);
  p->share = 1 / ((float)p->size[1] * (float)p->size[2]);
  const int64_t share = qn_ceil_div(p->count, 8 * (int64_t)r->device->units);      /* fewer planes a block if there are few */
  p->per_block = (uint32_t)qn_min_i64(PLANES, qn_round_up(share, ALIGNED));
  p->at_y = (int32_t)(p->per_block * plane);
  s.shared = (uint32_t)(p->per_block * (plane + y_plane));
  s.kernel = cuda_by_half(p->dtype, [&](auto dtype) { return kernel_of<dtype()>(p->average, p->size[1]); });
  return pool_keep(&s, THREADS * qn_ceil_div(p->count, p->per_block), THREADS, 2500, out);
}

static const qn_engine row[] = { POOL_ROWS(runs, "runs", prepare) };
CUDA_ENGINES(pool_runs) = { row, sizeof row / sizeof *row };
