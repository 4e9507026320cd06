/* conv_depthwise.cuh -- what the depthwise kernels share: a thread's two neighbouring channels, and rows of them. */
#pragma once
#include "sm80.cuh"
#include "vector.cuh"

template <int dtype> struct pair_of { typedef uint32_t type; };
template <> struct pair_of<QN_F32> { typedef float2 type; };
template <int dtype> __device__ __forceinline__ float2 pair_floats(typename pair_of<dtype>::type v)
{
  if constexpr (dtype == QN_F32) return v;
  else if constexpr (dtype == QN_BF16) return make_float2(__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u));
  else return make_float2(f16_to_float((uint16_t)v), f16_to_float((uint16_t)(v >> 16)));
}
template <int dtype> __device__ __forceinline__ typename pair_of<dtype>::type pair_raw(float2 v)
{
  if constexpr (dtype == QN_F32) return v;
  else return dtype == QN_BF16 ? pack_bf16(v.x, v.y) : pack_f16(v.x, v.y);
}
__device__ __forceinline__ void pair_add(float2 &sum, float2 a, float2 b)
{
  sum.x = fmaf(a.x, b.x, sum.x);
  sum.y = fmaf(a.y, b.y, sum.y);
}

/* ---- tiles in shared memory: rows of pixels, PITCH pairs of channels each, of which the first few are used ---- */

enum { PITCH = 32 };

struct plane {                            /* packed channels last */
  const void *p;
  int32_t  h, w, channels;
};

/* Starts copying `rows` x `columns` pixels from (top, left) of image n, with zeros where there are none; pairs: of channels from
 * `channel` on, a multiple of 16 bytes. reciprocal: 2^16 / (16-byte chunks of a pixel), rounded up. */
template <int dtype> __device__ __forceinline__ void tile_load(uint32_t to, const plane &x, int n, int top, int left, int rows, int columns, int channel, int chunks, int reciprocal)
{
  constexpr int bytes = dtype == QN_F32 ? 4 : 2;
  const char *image = (const char *)x.p + ((int64_t)n * x.h * x.w * x.channels + channel) * bytes;
  int left_over = (x.channels - channel) * bytes / 16, warps = blockDim.x / 32;
  for (int i = threadIdx.x / 32; i < rows; i += warps) {
    bool inside = (uint32_t)(top + i) < (uint32_t)x.h;
    const char *row = image + ((int64_t)(top + i) * x.w + left) * x.channels * bytes;
    uint32_t at = to + i * columns * (PITCH * 2 * bytes);
    for (int k = threadIdx.x % 32; k < columns * chunks; k += 32) {
      int j = k * reciprocal >> 16, chunk = k - j * chunks;
      bool there = inside && (uint32_t)(left + j) < (uint32_t)x.w && chunk < left_over;
      const char *from = there ? row + j * x.channels * bytes + chunk * 16 : (const char *)x.p;
      copy_async<16>(at + j * (PITCH * 2 * bytes) + chunk * 16, from, there ? 16 : 0);
    }
  }
}
__device__ __forceinline__ void tile_wait()      /* for this thread's copies; __syncthreads for the others' */
{
  copy_async_commit();
  copy_async_wait<0>();
}
