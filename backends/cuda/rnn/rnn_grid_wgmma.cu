/* rnn_grid_wgmma.cu -- the forward kernel of rnn_grid.cuh by wgmma: 64 lines of weights lie in shared memory from the first step to the
 * last, a step's h of up to COLUMNS sequences beside them; each of two warpgroups copies its half of the depth and multiplies it while the
 * rest is under way. Their sums take the place of h when both have done. Compute capability 9.0. */
#include "rnn_grid.cuh"
#include "kit/wgmma.cuh"

template <bool bf16, int COLUMNS, int BLOCKS> struct rnn_wgmma {         /* 256 BLOCKS numbers along the depth */
  typedef uint16_t number;
  static constexpr uint32_t dtype = bf16 ? QN_BF16 : QN_F16;
  static constexpr bool resident = true;
  static constexpr int lines = 64, slices = 2, pieces = 0, group = 0, laid = 0;
  static constexpr int CHUNKS = 2 * BLOCKS;       /* of 64 numbers of a warpgroup */
  uint32_t weights, tile;                 /* in shared memory: [chunk][row][128 bytes], swizzled */

  static __device__ __forceinline__ uint16_t pack(float x) { return bf16 ? float_to_bf16(x) : float_to_f16(x); }
  static __device__ __forceinline__ float open(uint16_t x) { return bf16 ? bf16_to_float(x) : f16_to_float(x); }
  static __device__ __forceinline__ uint32_t place(int rows, int row, int piece)
  {
    return (piece / 8 * rows + row) * 128 + ((piece % 8 ^ row % 8) << 4);
  }
  __device__ __forceinline__ void load(const cuda_rnn_grid &p, const void *from, int64_t row_step, const rnn_lines &of, int, float *room)
  {
    weights = shared_address(room), tile = shared_address(room + p.sums_at);
    for (int i = threadIdx.x; i < lines * BLOCKS * 32; i += CUDA_RNN_GRID_THREADS) {
      const int l = i / (BLOCKS * 32), piece = i % (BLOCKS * 32);
      const int64_t row = of.row(l);
      const bool there = row >= 0 && piece * 8 < p.depth;
      copy_async<16>(weights + place(lines, l, piece), (const uint16_t *)from + (there ? row * row_step + piece * 8 : 0), there ? 16 : 0);
    }
    copy_async_commit();
    copy_async_wait<0>();
    proxy_fence();
  }
  __device__ __forceinline__ void multiply(const cuda_rnn_grid &p, const uint16_t *from, float *sums) const
  {
    const int half = threadIdx.x / 128, t = threadIdx.x % 128, lane = t % 32, pitch = cuda_rnn_grid_pitch(p.batch_share);
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
#pragma unroll
      for (int i = t; i < COLUMNS * 8; i += 128) {
        const int b = i / 8, piece = (half * CHUNKS + c) * 8 + i % 8;
        const bool there = piece * 8 < p.depth && b < p.batch_share;
        copy_async<16>(tile + place(COLUMNS, b, piece), from + (there ? (int64_t)b * p.depth + piece * 8 : 0), there ? 16 : 0);
      }
      if (c % 2) copy_async_commit();
    }
    float d[COLUMNS / 2] = {};
    multiply_from<0>(d, half);
    wgmma_wait<0>();
    __syncthreads();                      /* h has been read: sums may lie there */
    float *to = sums + (half * lines + t / 32 * 16 + lane / 4) * pitch + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < COLUMNS / 8; j++) {
      if (8 * j >= p.batch_share) break;
      *(float2 *)(to + 8 * j) = make_float2(d[4 * j], d[4 * j + 1]);
      *(float2 *)(to + 8 * pitch + 8 * j) = make_float2(d[4 * j + 2], d[4 * j + 3]);
    }
  }
  template <int turn> __device__ __forceinline__ void multiply_from(float (&d)[COLUMNS / 2], int half) const
  {
    copy_async_wait<BLOCKS - 1 - turn>();
    proxy_fence();
    group_sync(1 + half, 128);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const uint32_t chunk = half * CHUNKS + 2 * turn + i / 4, k = i % 4 * 32;
      wgmma<bf16 ? MMA_BF16 : MMA_F16, 0, 0>(d, mma_descriptor(weights + chunk * lines * 128 + k, 0, 1024, 128),
                                             mma_descriptor(tile + chunk * COLUMNS * 128 + k, 0, 1024, 128), turn > 0 || i > 0);
    }
    wgmma_commit();
    if constexpr (turn + 1 < BLOCKS) multiply_from<turn + 1>(d, half);
  }
};

template <bool bf16, int COLUMNS, int BLOCKS> static cuda_rnn_grid_kernel forward_of()
{
  typedef rnn_wgmma<bf16, COLUMNS, BLOCKS> W;
  return { W::lines, 256 * BLOCKS, 0, 0, 0, COLUMNS, (const void *)rnn_grid_forward<W>, nullptr };
}
#define ALL(bf16) { forward_of<bf16, 16, 4>(), forward_of<bf16, 32, 4>(), forward_of<bf16, 64, 2>(), {} }
const cuda_rnn_grid_kernel cuda_rnn_grid_wgmma_f16[] = ALL(false);
const cuda_rnn_grid_kernel cuda_rnn_grid_wgmma_bf16[] = ALL(true);
