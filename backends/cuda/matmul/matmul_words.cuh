/* matmul_words.cuh -- what kernels for operands at any alignment share: a line lies in shared memory as misaligned as it was, and whoever
 * reads it shifts it into mma.sync's registers. */
#pragma once
#include "matmul_mma.cuh"

/* Four bytes of k at `from`. rows_contiguous: of 16 bits the next k is `next` bytes further. Otherwise k is contiguous; of 16 bits the word may
 * straddle two, if `odd`: it is `turn` bits further up in them. The lower k is in the lower half. */
template <int esize, bool rows_contiguous> __device__ __forceinline__ uint32_t unaligned_word(uint32_t from, uint32_t next, int turn, int odd)
{
  uint32_t low, high = 0;
  if constexpr (esize == 2 && rows_contiguous) {
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(low) : "r"(from) : "memory");
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(high) : "r"(from + next) : "memory");
    return low | high << 16;
  }
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(low) : "r"(from) : "memory");
  if constexpr (esize == 4) return low;
  asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p ld.shared.u32 %0, [%1];}" : "+r"(high) : "r"(from + 4), "r"(odd) : "memory");
  return __funnelshift_r(low, high, turn);
}

/* The words of 16 rows of an operand whose lines are all aligned, by ldmatrix, in mma.sync's order: a's (b: y's columns) groups of eight rows
 * are the words' first (second) bit. Is it possible for such elements? */
template <int esize, bool rows_contiguous> constexpr bool aligned_words = esize == 2 || !rows_contiguous;

/* Where this lane reads them: line bytes apart, row: the first of 16, k: the first of a step. */
template <int esize, bool rows_contiguous, bool is_a> __device__ __forceinline__ uint32_t aligned_place(uint32_t line, int row, int k)
{
  const int lane = threadIdx.x % 32, group = is_a ? lane / 8 % 2 : lane / 16, half = is_a ? lane / 16 : lane / 8 % 2;
  return rows_contiguous ? (k + half * (16 / esize) + lane % 8) * line + (row + group * 8) * esize
                         : (row + group * 8 + lane % 8) * line + k * esize + half * 16;
}

/* Adds the products of a step of k: a warp's 16 QM rows x by its 32 columns y. f32 is split in two (3xTF32), the products of remainders first. */
template <class mma, bool split, int QM>
__device__ __forceinline__ void multiply_words(float (&sum)[QM][4][4], uint32_t (&x)[QM][4], uint32_t (&y)[2][4])
{
  uint32_t x_small[QM][4], y_small[2][4];
  if (split) {
#pragma unroll
    for (int i = 0; i < QM; i++) round_tf32<true>(x[i], x_small[i]);
#pragma unroll
    for (int i = 0; i < 2; i++) round_tf32<true>(y[i], y_small[i]);
  }
#pragma unroll
  for (int term = split ? 0 : 2; term < 3; term++)
#pragma unroll
    for (int i = 0; i < QM; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const uint32_t(&with)[4] = term == 1 ? y_small[j / 2] : y[j / 2];
        mma::product(sum[i][j], term == 0 ? x_small[i] : x[i], with[j % 2 * 2], with[j % 2 * 2 + 1]);
      }
}
