/* wgmma.cuh -- the Tensor Core instruction of sm_90a: a warpgroup multiplies 64 x K by K x N from shared memory.
 *
 *   d (64 x N, registers) = a (64 x 32 bytes, descriptor) b (32 bytes x N, descriptor) + (accumulate ? d : 0)
 *
 * tf32's a may come from registers: mma_split_rows loads a stage of it, split in two for 3xTF32.
 * Thread t of the warpgroup holds N/2 of d: with w = t/32, g = t%32/4, q = t%4, d[4j], d[4j+1] are row 16w + g, columns 8j + 2q
 * and the next; d[4j+2], d[4j+3] the same columns of row 16w + g + 8.
 * Order: wgmma_fence, wgmma..., wgmma_commit, wgmma_wait<pending>; d must not be touched in between. */
#pragma once
#include "sm90.cuh"

/* Operand types. 16-bit ones may have either dim contiguous (ta, tb: 1 if k is not); others need k contiguous.
 * 3xTF32: f32 as the sum of two tf32, hi and lo; a b = lo hi + hi lo + hi hi, to within 2^-20 relative. */
enum { MMA_BF16, MMA_F16, MMA_TF32, MMA_E4M3, MMA_E4M3_E5M2, MMA_E5M2_E4M3, MMA_E5M2, MMA_S8, MMA_S8_U8, MMA_U8_S8, MMA_U8, MMA_3XTF32 };
template <int kind> struct mma_operand { typedef float acc; static constexpr int bytes = kind < MMA_TF32 ? 2 : kind == MMA_TF32 ? 4 : 1; };
template <> struct mma_operand<MMA_S8> { typedef int acc; static constexpr int bytes = 1; };
template <> struct mma_operand<MMA_S8_U8> { typedef int acc; static constexpr int bytes = 1; };
template <> struct mma_operand<MMA_U8_S8> { typedef int acc; static constexpr int bytes = 1; };
template <> struct mma_operand<MMA_U8> { typedef int acc; static constexpr int bytes = 1; };
template <> struct mma_operand<MMA_3XTF32> { typedef float acc; static constexpr int bytes = 4; };

/* Descriptor of a swizzled operand. span: bytes of a swizzled row (128, 64, 32). lbo: between span-wide chunks of a
 * k-strided operand; sbo: between groups of 8 rows. The base is aligned to 8 spans; adding bytes >> 4 moves it. */
__device__ __forceinline__ uint64_t mma_descriptor(uint32_t address, uint32_t lbo, uint32_t sbo, int span)
{
  uint64_t mode = span == 128 ? 1 : span == 64 ? 2 : 3;
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(lbo >> 4) << 16 | (uint64_t)(sbo >> 4) << 32 | mode << 62;
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending> __device__ __forceinline__ void wgmma_wait()
{
  asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(pending) : "memory");
}

#include "wgmma_instructions.cuh"

/* x = hi + lo: hi is x rounded to tf32, lo the remainder, of which the Tensor Cores take the first 11 bits: 2^-22 of x is lost. */
__device__ __forceinline__ void mma_split(float x, uint32_t &hi, uint32_t &lo)
{
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(hi) : "f"(x));
  lo = __float_as_uint(x - __uint_as_float(hi));
}

/* This warpgroup's 64 rows of 32 f32 (a swizzled stage), split: four k8 steps of a for wgmma_tf32. */
__device__ __forceinline__ void mma_split_rows(uint32_t rows, uint32_t (&hi)[16], uint32_t (&lo)[16])
{
  uint32_t lane = threadIdx.x % 32, turn = lane / 4, at = rows + (threadIdx.x % 128 / 32 * 16 + turn) * 128 + lane % 4 * 4;
#pragma unroll
  for (int i = 0; i < 16; i++) {
    float x;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(x) : "r"(at + (i & 1) * 1024 + (((uint32_t)(i / 2) ^ turn) << 4)) : "memory");
    mma_split(x, hi[i], lo[i]);
  }
}

/* The same for N columns beyond what one instruction takes: 320 are 192 and 128, so that chunks of b stay whole. */
template <int kind, int ta, int tb, int N>
__device__ __forceinline__ void wgmma_columns(typename mma_operand<kind>::acc (&d)[N / 2], uint64_t a, uint64_t b, int accumulate)
{
  typedef typename mma_operand<kind>::acc acc;
  if constexpr (N <= 256) {
    wgmma<kind, ta, tb>(d, a, b, accumulate);
  } else {
    static_assert(N == 320, "");
    wgmma<kind, ta, tb>(*(acc (*)[96])d, a, b, accumulate);
    wgmma<kind, ta, tb>(*(acc (*)[64])(d + 96), a, b + (192 * 128 >> 4), accumulate);
  }
}
