/* matmul_mma.cuh -- mma.sync as a Product of matmul_tiled.cuh: each warp has 16 QM by 16 QN sums.
 *
 * tf32: elements are multiplied by 2^24, so that subnormals keep their digits, and rounded to 11 bits; with `split` (3xTF32) the
 * remainder is kept as a second number, and both products of small by large are added. Overflow (from 2^91 on), or infinite elements,
 * makes a sum that is not finite; it is recomputed in plain f32 (tiled_sum_again). */
#pragma once
#include "matmul_tiled.cuh"

/* The register layout of load_matrices for 32-bit words: two by two, `next` and `other` bytes apart. */
template <int next, int other> __device__ __forceinline__ void load_words(uint32_t (&r)[4], uint32_t at)
{
#pragma unroll
  for (int i = 0; i < 4; i++) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r[i]) : "r"(at + i % 2 * next + i / 2 * other) : "memory");
}

/* f32, scaled, to tf32; with `split` the remainders too, of which the Tensor Cores take the first 11 bits. x c - (x c - x), with c = 2^13 + 1,
 * is x rounded to 11 bits, by the FP32 cores alone: conversions would take longer than the products. */
template <bool split> __device__ __forceinline__ void round_tf32(uint32_t (&large)[4], uint32_t (&small)[4])
{
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const float x = __uint_as_float(large[i]);
    if (split) {
      const float above = __fmul_rn(x, 8193 * 0x1p24f), rounded = __fadd_rn(above, fmaf(x, 0x1p24f, -above));
      large[i] = __float_as_uint(rounded), small[i] = __float_as_uint(fmaf(x, 0x1p24f, -rounded));
    } else {
      asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(large[i]) : "f"(x * 0x1p24f));
    }
  }
}

template <class mma, int WM, int WN, int QM, int QN, int BYTES, int STAGES, int RESIDENT, int ESIZE, bool ROWS_A, bool ROWS_B,
          bool TF32 = false, bool SPLIT = false>
struct mma_product {
  typedef typename mma::number number;
  static constexpr int BM = WM * QM * 16, BN = WN * QN * 16, BK = BYTES / ESIZE, threads = WM * WN * 32, stages = STAGES,
                       resident = RESIDENT;
  static constexpr int esize = ESIZE;
  static constexpr bool any = ESIZE == 4 || QM * QN < 8;
  static constexpr bool rows_a = ROWS_A, rows_b = ROWS_B, again = TF32, integer = sizeof(number) == 4 && number(0.5f) == number(0);
  static constexpr float scale = TF32 ? 0x1p-48f : 1;
  static constexpr bool words_a = rows_a && esize == 4, words_b = rows_b && esize == 4;   /* ldmatrix cannot transpose 32-bit words */
  static constexpr int pad_a = words_a ? 32 : 16, pad_b = words_b ? 32 : 16;
  typedef tiled_stage<BM, BK, esize, rows_a, pad_a> stage_a;
  typedef tiled_stage<BN, BK, esize, rows_b, pad_b> stage_b;
  number sum[QM * QN * 8];                /* [QM][2 QN][4] */
  uint32_t a_at, b_at;                    /* this lane's row of the first fragments */
  int row0, col0;

  __device__ mma_product(int t)
  {
    int lane = t % 32, warp = t / 32;
    row0 = warp / WN * QM * 16, col0 = warp % WN * QN * 16;
    a_at = words_a ? lane % 4 * stage_a::pitch + (row0 + lane / 4) * 4
         : rows_a ? (lane % 8 + lane / 16 * 8) * stage_a::pitch + (row0 + lane / 8 % 2 * 8) * esize
                  : (row0 + lane % 16) * stage_a::pitch + lane / 16 * 16;
    b_at = words_b ? lane % 4 * stage_b::pitch + (col0 + lane / 4) * 4
         : rows_b ? (lane % 8 + lane / 8 % 2 * 8) * stage_b::pitch + (col0 + lane / 16 * 8) * esize
                  : (col0 + lane % 8 + lane / 16 * 8) * stage_b::pitch + lane / 8 % 2 * 16;
    row0 += lane / 4, col0 += lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < QM * QN * 8; i++) sum[i] = 0;
  }

  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b)
  {
#pragma unroll
    for (int k = 0; k < BYTES; k += 32) {
      uint32_t x[QM][4], y[QN][4], x_small[QM][4], y_small[QN][4];
#pragma unroll
      for (int i = 0; i < QM; i++) {
        uint32_t at = a + a_at + (rows_a ? k / esize * stage_a::pitch + i * 16 * esize : i * 16 * stage_a::pitch + k);
        if (words_a) load_words<32, 4 * stage_a::pitch>(x[i], at);
        else load_matrices<rows_a>(x[i], at);
        if (TF32) round_tf32<SPLIT>(x[i], x_small[i]);
      }
#pragma unroll
      for (int j = 0; j < QN; j++) {
        uint32_t at = b + b_at + (rows_b ? k / esize * stage_b::pitch + j * 16 * esize : j * 16 * stage_b::pitch + k);
        if (words_b) load_words<4 * stage_b::pitch, 32>(y[j], at);
        else load_matrices<rows_b>(y[j], at);
        if (TF32) round_tf32<SPLIT>(y[j], y_small[j]);
      }
      if (SPLIT) {
#pragma unroll
        for (int i = 0; i < QM; i++)
#pragma unroll
          for (int j = 0; j < QN * 2; j++) mma::product(quad(i, j), x_small[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
#pragma unroll
        for (int i = 0; i < QM; i++)
#pragma unroll
          for (int j = 0; j < QN * 2; j++) mma::product(quad(i, j), x[i], y_small[j / 2][j % 2 * 2], y_small[j / 2][j % 2 * 2 + 1]);
      }
#pragma unroll
      for (int i = 0; i < QM; i++)
#pragma unroll
        for (int j = 0; j < QN * 2; j++) mma::product(quad(i, j), x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
    }
  }
  __device__ __forceinline__ number (&quad(int i, int j))[4] { return *(number (*)[4])(sum + (i * QN * 2 + j) * 4); }

  __device__ __forceinline__ void put(number *tile, int pitch)
  {
#pragma unroll
    for (int i = 0; i < QM; i++)
#pragma unroll
      for (int j = 0; j < QN * 2; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          number v = quad(i, j)[e];
          tile[(row0 + i * 16 + e / 2 * 8) * pitch + col0 + j * 8 + e % 2] = TF32 ? number(v * scale) : v;
        }
  }
};
