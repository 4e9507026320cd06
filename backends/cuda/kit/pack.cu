/* pack.cu -- packs operands from any strides into rows of contiguous k: through tiles in shared memory; f32 may be split for
 * 3xTF32, f8 converted to f16.
 *
 * A tile is read along the dim with the smaller stride and written along k in 4-byte words. f32 that is already contiguous along
 * k is copied in 16-byte units; other rows of contiguous k are read by element. */
#include <cstdint>
#include "early.h"
#include "element.cuh"
#include "pack.h"
#include "wgmma.cuh"

enum { PACK_ROWS = 32, PACK_K = 64, PACK_THREADS = 256 };

struct pack_pair { cuda_pack pack[2]; void *to[2]; const void *from[2]; };

static __device__ __forceinline__ __nv_fp8_interpretation_t pack_format(const cuda_pack &p)
{
  return p.f8 == QN_E4M3 ? __NV_E4M3 : __NV_E5M2;
}

/* In the output's type. */
template <class T, class From> __device__ __forceinline__ T pack_element(const cuda_pack &p, From v)
{
  if constexpr (sizeof(T) == sizeof(From)) return v;
  else return __nv_cvt_fp8_to_halfraw(v, pack_format(p)).x;
}

/* A tile with contiguous k, any alignment. from, to: its first row. */
template <class T, class From>
__device__ __forceinline__ void pack_rows(const cuda_pack &p, T *to, const From *from, int64_t row0, int64_t k0)
{
  constexpr int each = 16 / sizeof(T), parts = PACK_K / each;
#pragma unroll
  for (int at = threadIdx.x; at < PACK_ROWS * parts; at += PACK_THREADS) {
    int r = at / parts;
    int64_t k = k0 + at % parts * each;
    if (row0 + r >= p.rows || k >= p.pitch) continue;
    const From *row = from + r * p.row_stride + k;
    union { T element[each]; uint4 all; } unit;
    if constexpr (sizeof(From) < sizeof(T)) {               /* 8 bytes to 16 */
      if (k + each <= p.k && (uintptr_t)row % 8 == 0) {
        union { __nv_fp8x2_storage_t pair[4]; uint2 all; } f8 = { .all = *(const uint2 *)row };
#pragma unroll
        for (int e = 0; e < 4; e++) {
          __half2_raw h = __nv_cvt_fp8x2_to_halfraw2(f8.pair[e], pack_format(p));
          unit.element[2 * e] = h.x, unit.element[2 * e + 1] = h.y;
        }
        *(uint4 *)(to + r * p.pitch + k) = unit.all;
        continue;
      }
    }
#pragma unroll
    for (int e = 0; e < each; e++) unit.element[e] = k + e < p.k ? pack_element<T>(p, row[e]) : (T)0;
    *(uint4 *)(to + r * p.pitch + k) = unit.all;
  }
}

template <class T, class From>
__device__ __forceinline__ void pack_operand(const cuda_pack &p, uint32_t *to, const From *from, unsigned char *shared)
{
  constexpr int per_word = 4 / sizeof(T), words = PACK_K / per_word, width = PACK_K + per_word;
  T *tile = (T *)shared;                                    /* PACK_ROWS by width */
  int64_t pitch = p.pitch / per_word, end = p.split ? p.pitch / 2 : p.pitch;          /* pitch in words, end in elements */
  int64_t k0 = blockIdx.x * (int64_t)PACK_K;
  const uint32_t bands = (uint32_t)((p.rows + PACK_ROWS - 1) / PACK_ROWS), all = bands * (uint32_t)(p.batch[0] * p.batch[1]);
  const bool along_rows = p.row_stride < p.k_stride && p.rows > 1;
  if (k0 >= end) return;
  constexpr int turns = PACK_ROWS * PACK_K / PACK_THREADS;
  /* this thread's first element to be read, and the step to its next; its first word to be written */
  const int r = along_rows ? threadIdx.x % PACK_ROWS : threadIdx.x / PACK_K;
  const int k = along_rows ? threadIdx.x / PACK_ROWS : threadIdx.x % PACK_K;
  const int down = along_rows ? 0 : PACK_THREADS / PACK_K, across = along_rows ? PACK_THREADS / PACK_ROWS : 0;
  const int64_t step = down * p.row_stride + across * p.k_stride;
  constexpr int lines = PACK_THREADS / words;
  const int line = threadIdx.x / words, w = threadIdx.x % words;
  for (uint32_t i = blockIdx.y; i < all; i += gridDim.y) {
    const uint32_t batch = i / bands, b1 = batch / (uint32_t)p.batch[0], b0 = batch - b1 * (uint32_t)p.batch[0];
    const int64_t row0 = (i - batch * bands) * (int64_t)PACK_ROWS;
    const From *base = from + b0 * p.batch_stride[0] + b1 * p.batch_stride[1];
    if (p.k_stride == 1 && !p.split && p.pitch * sizeof(T) % 16 == 0) {
      pack_rows(p, (T *)to + (batch * p.rows + row0) * p.pitch, base + row0 * p.row_stride, row0, k0);
      continue;
    }
    const From *at = base + (row0 + r) * p.row_stride + (k0 + k) * p.k_stride;
    const int rows_left = (int)min(p.rows - row0, (int64_t)PACK_ROWS) - r, k_left = (int)min(p.k - k0, (int64_t)PACK_K) - k;
    T v[turns];                           /* all are under way before the first is needed */
#pragma unroll
    for (int j = 0; j < turns; j++) {
      v[j] = 0;
      if (j * down < rows_left && j * across < k_left) v[j] = pack_element<T>(p, at[j * step]);
    }
#pragma unroll
    for (int j = 0; j < turns; j++) tile[(r + j * down) * width + k + j * across] = v[j];
    __syncthreads();
    uint32_t *row = to + (batch * p.rows + row0 + line) * pitch + k0 / per_word + w;
    if (k0 + w * per_word < end)
#pragma unroll
      for (int j = 0; j < PACK_ROWS / lines; j++, row += lines * pitch) {
        if (row0 + line + j * lines >= p.rows) break;
        const uint32_t word = *(const uint32_t *)&tile[(line + j * lines) * width + w * per_word];
        if (sizeof(T) == 4 && p.split) mma_split(__uint_as_float(word), row[0], row[end]);
        else row[0] = word;
      }
    __syncthreads();
  }
}

/* Is the operand 4-byte, contiguous along k, and aligned to 16 bytes throughout? */
static __device__ __forceinline__ bool pack_straight(const cuda_pack &p, const void *from)
{
  return p.bytes == 4 && p.k_stride == 1 && !((p.row_stride | p.batch_stride[0] | p.batch_stride[1] | p.pitch | p.k) & 3) &&
         !((uintptr_t)from & 15);
}

static __device__ __forceinline__ void pack_words(const cuda_pack &p, float4 *to, const float4 *from)
{
  constexpr int quads = PACK_K / 4;
  int64_t pitch = p.pitch / 4, end = p.split ? pitch / 2 : pitch, bands = (p.rows + PACK_ROWS - 1) / PACK_ROWS;
  int64_t quad = blockIdx.x * (int64_t)quads + threadIdx.x % quads;
  if (quad >= end) return;
  for (int64_t i = blockIdx.y; i < bands * p.batch[0] * p.batch[1]; i += gridDim.y) {
    int64_t band = i % bands, batch = i / bands, b1 = batch / p.batch[0], b0 = batch - b1 * p.batch[0];
    const float4 *base = from + (b0 * p.batch_stride[0] + b1 * p.batch_stride[1]) / 4 + quad;
#pragma unroll
    for (int j = 0; j < PACK_ROWS * quads / PACK_THREADS; j++) {
      int64_t row = band * PACK_ROWS + threadIdx.x / quads + j * (PACK_THREADS / quads);
      if (row >= p.rows) break;
      float4 v = quad * 4 < p.k ? base[row * (p.row_stride / 4)] : make_float4(0, 0, 0, 0);
      float4 *at = to + (batch * p.rows + row) * pitch + quad;
      if (p.split) {
        uint4 hi, lo;
        mma_split(v.x, hi.x, lo.x), mma_split(v.y, hi.y, lo.y), mma_split(v.z, hi.z, lo.z), mma_split(v.w, hi.w, lo.w);
        *(uint4 *)at = hi, *(uint4 *)(at + end) = lo;
      } else {
        *at = v;
      }
    }
  }
}

/* Grid: tiles along k; bands of rows; operands. */
__global__ void __launch_bounds__(PACK_THREADS) pack(const __grid_constant__ pack_pair both)
{
  __shared__ __align__(16) unsigned char shared[PACK_ROWS * (PACK_K + 1) * 4];
  const cuda_pack &p = both.pack[blockIdx.z];
  uint32_t *to = (uint32_t *)both.to[blockIdx.z];
  const void *from = both.from[blockIdx.z];
  grid_dependents_launch();
  grid_dependency_wait();
  if (pack_straight(p, from)) pack_words(p, (float4 *)to, (const float4 *)from);
  else if (p.f8) pack_operand<uint16_t>(p, to, (const uint8_t *)from, shared);
  else if (p.bytes == 4) pack_operand<uint32_t>(p, to, (const uint32_t *)from, shared);
  else if (p.bytes == 2) pack_operand<uint16_t>(p, to, (const uint16_t *)from, shared);
  else pack_operand<uint8_t>(p, to, (const uint8_t *)from, shared);
}

qn_status cuda_pack_launch(int n, const cuda_pack *p, void *const *to, const void *const *from, void *stream)
{
  pack_pair both = {};
  int64_t columns = 0, bands = 0;
  for (int i = 0; i < n; i++) {
    both.pack[i] = p[i];
    both.to[i] = to[i];
    both.from[i] = from[i];
    columns = qn_max_i64(columns, qn_ceil_div(p[i].split ? p[i].pitch / 2 : p[i].pitch, PACK_K));
    bands = qn_max_i64(bands, qn_ceil_div(p[i].rows, PACK_ROWS) * p[i].batch[0] * p[i].batch[1]);
  }
  void *arguments[] = { &both };
  return cuda_launch_kernel((const void *)pack, true, dim3((unsigned)columns, (unsigned)qn_min_i64(bands, 65535), (unsigned)n),
                            PACK_THREADS, 0, arguments, stream, "pack");
}
