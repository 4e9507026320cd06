/* attention_parts_direct.cu -- what stands around attention, any strides: the merge of two sets of keys, a row a warp, and rotary
 * embeddings, a pair a thread, in double; writes into a paged cache, an element a thread, in f32 or f64 as quantize's.
 *
 *   merge    m = max(lse1, lse2)   w_i = exp(lse_i - m)   y = (w1 y1 + w2 y2) / (w1 + w2)   lse = m + ln(w1 + w2)
 *   rotary   y_a = x_a cos - x_b sin, y_b = x_b cos + x_a sin; the gradient with -sin */
#include "kit/direct.cuh"
#include "engines.h"

enum { THREADS = 256 };

__device__ static int64_t offset_of(const tensor &t, int64_t i, const tensor &like, int rank)
{
  int64_t offset = 0;
  for (int d = rank - 1; d >= 0; d--) {
    int64_t q = i / like.dim[d];
    offset += (i - q * like.dim[d]) * t.stride[d];
    i = q;
  }
  return offset;
}

/* ---- merge ------------------------------------------------------------------------------------------ */

struct merging { tensor y1, lse1, y2, lse2, y, lse; int64_t rows, size; };

__global__ static void __launch_bounds__(THREADS) attention_merge_direct(const __grid_constant__ merging p)
{
  const int lane = threadIdx.x % 32, last = p.y.rank - 1;
  for (int64_t row = blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32; row < p.rows; row += (int64_t)gridDim.x * (THREADS / 32)) {
    double l1 = p.lse1.load<double>(offset_of(p.lse1, row, p.y, last)), l2 = p.lse2.load<double>(offset_of(p.lse2, row, p.y, last));
    double m = l1 != l1 || l2 != l2 ? NAN : fmax(l1, l2);
    bool none = m == -INFINITY, bad = m != m || m == INFINITY;
    double w1 = none ? 0 : exp(l1 - m), w2 = none ? 0 : exp(l2 - m);
    int64_t at1 = offset_of(p.y1, row, p.y, last), at2 = offset_of(p.y2, row, p.y, last), to = offset_of(p.y, row, p.y, last);
    for (int64_t c = lane; c < p.size; c += 32) {
      double sum = 0;
      if (l1 != -INFINITY) sum += w1 * p.y1.load<double>(at1 + c * p.y1.stride[last]);
      if (l2 != -INFINITY) sum += w2 * p.y2.load<double>(at2 + c * p.y2.stride[last]);
      p.y.store(to + c * p.y.stride[last], bad ? NAN : none ? 0 : sum / (w1 + w2));
    }
    __syncwarp();                         /* lse may be lse1, which all lanes have read */
    if (lane == 0 && p.lse.p) p.lse.store(offset_of(p.lse, row, p.y, last), bad ? NAN : none ? m : m + log(w1 + w2));
  }
}

static qn_status merge(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  merging p = {};
#define PART(field, ROLE) p.field = direct_tensor(k, launch, QN_ROLE_ATTENTION_MERGE_##ROLE, 0)
  PART(y1, Y1), PART(lse1, LSE1), PART(y2, Y2), PART(lse2, LSE2), PART(y, Y), PART(lse, LSE);
#undef PART
  p.size = p.y.dim[p.y.rank - 1];
  p.rows = direct_elements(p.lse1);
  attention_merge_direct<<<direct_blocks(p.rows, THREADS / 32), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("attention_merge_direct");
}

/* ---- rotary ------------------------------------------------------------------------------------------ */

struct turning { tensor x, cos, sin, positions, y; int64_t pairs, columns, n; bool interleaved; double turn; };

/* Column k of a row: the pair k, or beyond the pairs one element. */
__global__ static void __launch_bounds__(THREADS) rotary_direct(const __grid_constant__ turning p)
{
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < p.n; i += gridDim.x * (int64_t)THREADS) {
    int64_t k = i % p.columns, row = i / p.columns, t = row % p.x.dim[2], b = row / p.x.dim[2] / p.x.dim[1];
    int64_t from = offset_of(p.x, row, p.x, 3), to = offset_of(p.y, row, p.x, 3), at = t;
    if (k >= p.pairs) {
      int64_t d = k + p.pairs;
      p.y.store(to + d * p.y.stride[3], p.x.load<double>(from + d * p.x.stride[3]));
      continue;
    }
    if (p.positions.p)
      at = p.positions.load<int64_t>((p.positions.dim[0] == 1 ? 0 : b * p.positions.stride[0]) + t * p.positions.stride[1]);
    bool inside = at >= 0 && at < p.cos.dim[0];
    int64_t a = p.interleaved ? 2 * k : k, other = p.interleaved ? 2 * k + 1 : k + p.pairs;
    double xa = p.x.load<double>(from + a * p.x.stride[3]), xb = p.x.load<double>(from + other * p.x.stride[3]);
    double c = inside ? p.cos.load<double>(at * p.cos.stride[0] + k * p.cos.stride[1]) : 0;
    double s = inside ? p.turn * p.sin.load<double>(at * p.sin.stride[0] + k * p.sin.stride[1]) : 0;
    p.y.store(to + a * p.y.stride[3], inside ? xa * c - xb * s : 0);
    p.y.store(to + other * p.y.stride[3], inside ? xb * c + xa * s : 0);
  }
}

static qn_status rotary(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  turning p = {};                         /* role numbers are the same in both directions */
#define PART(field, ROLE) p.field = direct_tensor(k, launch, QN_ROLE_ROTARY_##ROLE, 0)
  PART(x, X), PART(cos, COS), PART(sin, SIN), PART(positions, POSITIONS), PART(y, Y);
#undef PART
  p.pairs = p.cos.dim[1], p.columns = p.x.dim[3] - p.pairs;
  p.n = p.x.dim[0] * p.x.dim[1] * p.x.dim[2] * p.columns;
  p.interleaved = ((const qn_rotation *)k->attr)->interleaved;
  p.turn = k->op == QN_OP_ROTARY_BACKWARD ? -1 : 1;
  rotary_direct<<<direct_blocks(p.n, THREADS), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("rotary_direct");
}

/* ---- cache ------------------------------------------------------------------------------------------- */

struct writing { tensor cache, x, slots, scale, y; int64_t n, kept; };

__device__ static void copy_element(const tensor &to, int64_t at, const tensor &from, int64_t source, int bytes)
{
  for (int i = 0; i < bytes; i++) ((uint8_t *)to.p)[at * bytes + i] = ((const uint8_t *)from.p)[source * bytes + i];
}

__device__ static int bytes_of(uint32_t dtype)
{
  return dtype == QN_F64 || dtype == QN_I64 ? 8 : dtype == QN_F32 || dtype == QN_I32 ? 4 : dtype == QN_F16 || dtype == QN_BF16 ? 2 : 1;
}

__global__ static void __launch_bounds__(THREADS) cache_copy_direct(const __grid_constant__ writing p)
{
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < p.kept; i += gridDim.x * (int64_t)THREADS)
    copy_element(p.y, offset_of(p.y, i, p.y, 4), p.cache, offset_of(p.cache, i, p.y, 4), bytes_of(p.y.dtype));
}

__global__ static void __launch_bounds__(THREADS) cache_write_direct(const __grid_constant__ writing p)
{
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < p.n; i += gridDim.x * (int64_t)THREADS) {
    int64_t d = i % p.x.dim[3], t = i / p.x.dim[3] % p.x.dim[2], h = i / p.x.dim[3] / p.x.dim[2] % p.x.dim[1];
    int64_t b = i / p.x.dim[3] / p.x.dim[2] / p.x.dim[1], slot = p.slots.load<int64_t>(b * p.slots.stride[0] + t * p.slots.stride[1]);
    if (slot < 0 || slot >= p.y.dim[0] * p.y.dim[2]) continue;
    const int64_t to[4] = { slot / p.y.dim[2], h, slot % p.y.dim[2], d };
    int64_t at = to[0] * p.y.stride[0] + h * p.y.stride[1] + to[2] * p.y.stride[2] + d * p.y.stride[3], from = offset_of(p.x, i, p.x, 4);
    if (!p.scale.p && p.x.dtype == p.y.dtype) {
      copy_element(p.y, at, p.x, from, bytes_of(p.y.dtype));
      continue;
    }
    int64_t block = 0;
    for (int k = 0; k < 4 && p.scale.p && p.scale.rank; k++) block += to[k] / (p.y.dim[k] / p.scale.dim[k]) * p.scale.stride[k];
    double s = p.scale.p ? p.scale.load<double>(block) : 1, x = p.x.load<double>(from);
    p.y.store(at, p.x.dtype == QN_F64 ? x / s : (double)__fdiv_rn((float)x, (float)s));
  }
}

static qn_status cache_write(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  writing p = {};
#define PART(field, ROLE) p.field = direct_tensor(k, launch, QN_ROLE_CACHE_WRITE_##ROLE, 0)
  PART(cache, CACHE), PART(x, X), PART(slots, SLOTS), PART(scale, SCALE), PART(y, NEW_CACHE);
#undef PART
  p.n = direct_elements(p.x), p.kept = direct_elements(p.y);
  if (p.cache.p != p.y.p) cache_copy_direct<<<direct_blocks(p.kept, THREADS), THREADS, 0, stream>>>(p);
  if (p.n) cache_write_direct<<<direct_blocks(p.n, THREADS), THREADS, 0, stream>>>(p);
  return direct_launched("cache_write_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_ATTENTION_MERGE, merge),
  DIRECT_ROW(QN_OP_ROTARY, rotary),
  DIRECT_ROW(QN_OP_ROTARY_BACKWARD, rotary),
  DIRECT_ROW(QN_OP_CACHE_WRITE, cache_write),
};
CUDA_ENGINES(attention_parts_direct) = { row, sizeof row / sizeof *row };
