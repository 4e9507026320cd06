/* matmul_wgmma_turned.cuh -- f32 operands with rows contiguous, not k, for wgmma, which reads tf32 from shared memory with k contiguous only.
 *
 * TMA delivers a stage of such an operand as boxes of up to 32 rows by 32 lines of k, swizzled. Of the left operand each thread loads
 * the elements that wgmma takes from its registers. The right operand is turned in place, by all consumers: each reads four k of some
 * columns, and once all have, writes them where a stage with k contiguous has them. */
#pragma once
#include "kit/wgmma.cuh"

/* Byte offset of an element in a stage of boxes whose lines have `span` bytes. */
template <int span> __device__ __forceinline__ uint32_t turned_at(uint32_t k, uint32_t row)
{
  constexpr uint32_t rows = span / 4;
  const uint32_t in_box = row % rows, turn = span == 128 ? k % 8 : k / 2 % 4;
  return row / rows * 32 * span + k * span + ((in_box / 4 ^ turn) << 4) + in_box % 4 * 4;
}

/* This warpgroup's 64 rows of 32 k, from `rows` on: four k8 steps of a for wgmma_tf32. */
__device__ __forceinline__ void turned_rows(uint32_t rows, uint32_t (&a)[16])
{
  const uint32_t lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane / 4;
#pragma unroll
  for (int i = 0; i < 16; i++)
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(a[i]) : "r"(rows + turned_at<128>(lane % 4 + i / 2 * 4, row + i % 2 * 8)) : "memory");
}

/* Turns a stage of BN columns by 32 k; `threads` consumers call it, with a barrier of their own. */
template <int BN, int threads> __device__ __forceinline__ void turned_columns(uint32_t columns, int barrier)
{
  constexpr int span = BN * 4 < 128 ? BN * 4 : 128, each = BN * 8 / threads;
  static_assert(BN * 8 % threads == 0, "whole turns");
  const int t = threadIdx.x % threads;
  uint32_t word[each][4];
#pragma unroll
  for (int i = 0; i < each; i++)
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const int e = i * threads + t;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word[i][k]) : "r"(columns + turned_at<span>(e / BN * 4 + k, e % BN)) : "memory");
    }
  group_sync(barrier, threads);
#pragma unroll
  for (int i = 0; i < each; i++) {
    const int e = i * threads + t, column = e % BN, chunk = e / BN;
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" :: "r"(columns + column * 128 + ((chunk ^ column % 8) << 4)), "r"(word[i][0]),
                 "r"(word[i][1]), "r"(word[i][2]), "r"(word[i][3]) : "memory");
  }
  proxy_fence();                          /* wgmma reads shared memory by another way than stores */
  group_sync(barrier, threads);
}
