/* matmul_simt.cu -- f32 products on FP32 cores, for math strict: a Product of matmul_tiled.cuh, warps of 16 QM by 32 QN sums,
 * each thread QM x QN quads of 4 x 4. Stages have rows contiguous, so that a quad's four elements are one load. */
#include "matmul_tiled.cuh"

template <int WM, int WN, int QM, int QN, int DEPTH, int STAGES, int RESIDENT> struct simt_product {
  typedef float number;
  static constexpr int BM = WM * QM * 16, BN = WN * QN * 32, BK = DEPTH, threads = WM * WN * 32, stages = STAGES, resident = RESIDENT;
  static constexpr int esize = 4;
  static constexpr bool any = true;
  static constexpr bool rows_a = true, rows_b = true, again = false, integer = false;
  static constexpr int pad_a = 16, pad_b = 16;
  typedef tiled_stage<BM, BK, 4, true> stage_a;
  typedef tiled_stage<BN, BK, 4, true> stage_b;
  float sum[QM * QN * 16];                /* [QM][4][QN][4] */
  int row0, col0;

  __device__ simt_product(int t)
  {
    int lane = t % 32, warp = t / 32;
    row0 = warp / WN * QM * 16 + lane / 8 * 4, col0 = warp % WN * QN * 32 + lane % 8 * 4;
#pragma unroll
    for (int i = 0; i < QM * QN * 16; i++) sum[i] = 0;
  }
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b)
  {
    a += row0 * 4, b += col0 * 4;
#pragma unroll
    for (int k = 0; k < BK; k++) {
      float x[QM * 4], y[QN * 4];
#pragma unroll
      for (int i = 0; i < QM; i++) shared_load(x + i * 4, a + k * stage_a::pitch + i * 64);
#pragma unroll
      for (int j = 0; j < QN; j++) shared_load(y + j * 4, b + k * stage_b::pitch + j * 128);
#pragma unroll
      for (int i = 0; i < QM * 4; i++)
#pragma unroll
        for (int j = 0; j < QN * 4; j++) sum[i * QN * 4 + j] = fmaf(x[i], y[j], sum[i * QN * 4 + j]);
    }
  }
  __device__ __forceinline__ void put(float *tile, int pitch)
  {
#pragma unroll
    for (int i = 0; i < QM * 4; i++)
#pragma unroll
      for (int j = 0; j < QN; j++) {
        const float *s = sum + (i * QN + j) * 4;
        *(float4 *)(tile + (row0 + i / 4 * 16 + i % 4) * pitch + col0 + j * 32) = make_float4(s[0], s[1], s[2], s[3]);
      }
  }
};

template <bool, bool> using large = simt_product<4, 2, 2, 2, 16, 3, 2>;
template <bool, bool> using medium = simt_product<2, 2, 2, 1, 16, 4, 4>;
template <bool, bool> using small = simt_product<1, 4, 1, 1, 32, 4, 2>;
const cuda_tiled_kernel cuda_simt_f32[] = { TILED_KERNEL(large, 90), TILED_KERNEL(medium, 70), TILED_KERNEL(small, 50) };
