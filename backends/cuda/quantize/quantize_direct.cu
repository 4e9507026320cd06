/* quantize_direct.cu -- quantize, dequantize and quantize_dynamic, any strides and blocks, in f32 or f64: first one thread block
 * per scaling block computes its amax, scale and zero point, if wanted, then an element a thread. */
#include "kit/direct.cuh"
#include "engines.h"
#include "quantize.cuh"

enum { THREADS = 256 };

struct problem {
  tensor  x, scale, zero, y, amax;
  bool    dynamic, back, wide;            /* wide: computed in f64 */
  int64_t block[QN_MAX_RANK];             /* block extents along each of x's dims; 0: the whole dim */
  int64_t blocks[QN_MAX_RANK], n_blocks;  /* number of blocks along each dim, and in total */
  int64_t elements;
};

__device__ static void split(int64_t i, int rank, const int64_t *dim, int64_t *index)
{
  for (int d = rank - 1; d >= 0; d--) {
    int64_t q = i / dim[d];
    index[d] = i - q * dim[d];
    i = q;
  }
}
__device__ static int64_t at(const tensor &t, const int64_t *index)
{
  int64_t offset = 0;
  for (int d = 0; d < t.rank; d++) offset += index[d] * t.stride[d];
  return offset;
}

/* 255 steps from low to high, apart where their distance is not representable; and the place of 0 in them. */
template <class T> __device__ static void cover_range(const problem &p, const int64_t *block, T low, T high)
{
  T scale = (high - low) / 255;
  if (isinf(scale)) scale = high / 255 - low / 255;
  if (scale == 0) scale = 1;
  p.scale.store(at(p.scale, block), scale);
  p.zero.store(at(p.zero, block), (p.y.dtype == QN_I8 ? T(-128) : T(0)) - low / scale);
}

/* ---- amax per block: magnitudes compared as bits, so that NaN is the largest ------------------------------------------------ */

__global__ static void __launch_bounds__(THREADS) quantize_blocks(const __grid_constant__ problem p)
{
  __shared__ unsigned long long part[THREADS / 32];
  __shared__ double ends[2][THREADS / 32];
  for (int64_t b = blockIdx.x; b < p.n_blocks; b += gridDim.x) {
    int64_t block[QN_MAX_RANK], extent[QN_MAX_RANK], index[QN_MAX_RANK], n = 1;
    unsigned long long most = 0;
    double low = 0, high = 0;
    split(b, p.x.rank, p.blocks, block);
    for (int d = 0; d < p.x.rank; d++) {
      extent[d] = p.block[d] ? min(p.block[d], p.x.dim[d] - block[d] * p.block[d]) : p.x.dim[d];
      n *= extent[d];
    }
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
      split(i, p.x.rank, extent, index);
      for (int d = 0; d < p.x.rank; d++) index[d] += block[d] * p.block[d];
      const double x = p.x.load<double>(at(p.x, index));
      most = max(most, (unsigned long long)__double_as_longlong(fabs(x)));
      low = fmin(low, x), high = fmax(high, x);
    }
    for (int o = 16; o; o >>= 1) {
      most = max(most, __shfl_xor_sync(~0u, most, o));
      low = fmin(low, __shfl_xor_sync(~0u, low, o)), high = fmax(high, __shfl_xor_sync(~0u, high, o));
    }
    __syncthreads();                      /* part[] has been read */
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most, ends[0][threadIdx.x / 32] = low, ends[1][threadIdx.x / 32] = high;
    __syncthreads();
    if (threadIdx.x) continue;
    for (int w = 1; w < THREADS / 32; w++) most = max(most, part[w]), low = fmin(low, ends[0][w]), high = fmax(high, ends[1][w]);
    double amax = __longlong_as_double((long long)most);
    if (p.amax.p) p.amax.store(at(p.amax, block), amax);
    if (!p.dynamic) continue;
    if (amax != amax) low = high = amax;
    if (p.zero.p && p.wide) cover_range<double>(p, block, low, high);
    else if (p.zero.p) cover_range<float>(p, block, (float)low, (float)high);
    if (p.zero.p) continue;
    int64_t to = at(p.scale, block);
    if (p.scale.dtype == QN_E8M0) ((uint8_t *)p.scale.p)[to] = power_scale(amax, p.y.dtype);
    else if (p.wide) p.scale.store(to, plain_scale(amax, p.y.dtype));
    else p.scale.store(to, plain_scale((float)amax, p.y.dtype));
  }
}

/* ---- elements --------------------------------------------------------------------------------------- */

template <class T> __device__ static void one_element(const problem &p, const int64_t *index, const int64_t *block)
{
  T x = p.x.load<T>(at(p.x, index)), scale = scale_load<T>(p.scale.p, at(p.scale, block), p.scale.dtype),
    zero = p.zero.p ? p.zero.load<T>(at(p.zero, block)) : T(0);
  int64_t to = at(p.y, index);
  if (p.back) p.y.store(to, (x - zero) * scale);
  else if (p.y.dtype == QN_E4M3 || p.y.dtype == QN_E5M2) p.y.store(to, x / scale);
  else {
    T q = x / scale;
    p.y.store(to, (q != q ? T(0) : rint(q)) + zero);
  }
}

__global__ static void __launch_bounds__(THREADS) quantize_elements(const __grid_constant__ problem p)
{
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < p.elements; i += gridDim.x * (int64_t)THREADS) {
    int64_t index[QN_MAX_RANK], block[QN_MAX_RANK];
    split(i, p.x.rank, p.x.dim, index);
    for (int d = 0; d < p.x.rank; d++) block[d] = p.block[d] ? index[d] / p.block[d] : 0;
    if (p.wide) one_element<double>(p, index, block);
    else one_element<float>(p, index, block);
  }
}

/* ---- host ------------------------------------------------------------------------------------------- */

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  problem p = {};
  p.x = direct_tensor(k, launch, 0, 0);
  p.dynamic = k->op == QN_OP_QUANTIZE_DYNAMIC, p.back = k->op == QN_OP_DEQUANTIZE;
  if (p.dynamic) {
    p.y = direct_tensor(k, launch, QN_ROLE_QUANTIZE_DYNAMIC_Y, 0), p.scale = direct_tensor(k, launch, QN_ROLE_QUANTIZE_DYNAMIC_SCALE, 0);
    p.amax = direct_tensor(k, launch, QN_ROLE_QUANTIZE_DYNAMIC_AMAX, 0);
    p.zero = direct_tensor(k, launch, QN_ROLE_QUANTIZE_DYNAMIC_ZERO_POINT, 0);
  } else {                                /* dequantize has the same roles, without amax */
    p.scale = direct_tensor(k, launch, QN_ROLE_QUANTIZE_SCALE, 0), p.zero = direct_tensor(k, launch, QN_ROLE_QUANTIZE_ZERO_POINT, 0);
    p.y = direct_tensor(k, launch, QN_ROLE_QUANTIZE_Y, 0);
    if (!p.back) p.amax = direct_tensor(k, launch, QN_ROLE_QUANTIZE_AMAX, 0);
  }
  p.wide = p.x.dtype == QN_F64 || p.y.dtype == QN_F64 || p.x.dtype == QN_I32;
  p.elements = direct_elements(p.x), p.n_blocks = 1;
  for (int d = 0; d < p.x.rank; d++) {
    p.block[d] = ((const qn_blocks *)k->attr)->block[d];
    p.blocks[d] = p.block[d] ? qn_ceil_div(p.x.dim[d], p.block[d]) : 1;
    p.n_blocks *= p.blocks[d];
  }
  if (p.dynamic || p.amax.p) quantize_blocks<<<direct_blocks(p.n_blocks, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  if (p.elements) quantize_elements<<<direct_blocks(p.elements, THREADS), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("quantize_direct");
}

static const qn_engine row[] = { DIRECT_ROW(QN_OP_QUANTIZE, run), DIRECT_ROW(QN_OP_DEQUANTIZE, run),
                                 DIRECT_ROW(QN_OP_QUANTIZE_DYNAMIC, run) };
CUDA_ENGINES(quantize_direct) = { row, sizeof row / sizeof *row };
