/* matmul_wgmma.cuh -- the Hopper matrix product: y = steps(a b), a [M, K], b [K, N], batched.
 *
 * Persistent: one CTA per multiprocessor walks over units of work, each a tile of y or one of `splits` parts of its sum. A
 * producer warp fills a ring of stages (128 bytes of k) of both operands by TMA; BM/64 consumer
 * warpgroups of 64 rows each multiply from it by wgmma with one k step in flight, so that a stage is released while the next is
 * being multiplied. The ring keeps filling during a unit's epilogue. 16-bit operands may have either
 * dim contiguous: the wgmma descriptors do the transposing, no copy does. So may f32, turned in shared memory on its way to wgmma
 * (matmul_wgmma_turned.cuh). 8-bit operands have k contiguous.
 *
 * Row classes: rows whose pitch is no multiple of 128 bytes begin anywhere in a cache line, and a TMA box of them touches twice
 * the lines. Every 2^bits-th row begins at the same offset in a line, though. A tile takes rows of a of one such class, with its
 * windows of k moved back by that offset, and so reads whole lines (b, in the same windows, does not).
 *
 * TMA is several times slower with rows beyond an operand, which it must fill with zeros. The last tile is therefore moved back
 * where two CTAs may store the same sums (plain epilogue, no split), and where there is only one tile its box is as high as the
 * operand: the rest of shared memory feeds sums that are never stored. So with lines of k: where there are fewer than a step has, the
 * box has only those, and what it leaves of the stages is cleared once.
 *
 * 3xTF32: a is split in registers on its way to wgmma; b is split beforehand, its low parts behind the high ones.
 *
 * 8-bit floats: the Tensor Core's sums keep 13 bits; `promoted` adds each stage's 128 terms to sums in f32.
 *
 * `blocks`, for long sums: a CTA adds the Tensor Core's sums of every block of k in f32 to those of the blocks before, which wait in
 * workspace.
 *
 * A split sum is shared by the CTAs of a cluster, each with its part of k. Each then finishes its part of the columns: the other
 * CTAs send their sums of those straight into its shared memory, and an mbarrier there counts the bytes. */
#pragma once
#include "matmul_wgmma_store.cuh"

/* Loads one stage of both operands, for k step `step` of unit u. */
template <class shape, int BM, int BN> __device__ __forceinline__ void gemm_load(const cuda_gemm &g, const gemm_unit &u, int step,
                                                                                 uint32_t a, uint32_t b, uint32_t bar)
{
  int k = step * shape::bk - u.k0;
  if (shape::esize > 1 && g.layout & 1) {
#pragma unroll
    for (int c = 0; c < BM / shape::bk; c++)
      tma_load(a + c * 128 * shape::bk, &g.a, u.m0 + c * shape::bk, k, u.b0, u.b1, bar);
  } else {
    tma_load(a, &g.a, k, u.rows[0], u.rows[1], u.rows[2], bar);
  }
  if (shape::esize > 1 && g.layout & 2) {
    constexpr int chunk = shape::b_span / shape::esize;
#pragma unroll
    for (int c = 0; c < BN / chunk; c++)
      tma_load(b + c * shape::b_span * shape::bk, &g.b, u.n0 + c * chunk, k, u.b0, u.b1, bar);
  } else {
    tma_load(b, &g.b, k, u.n0, u.b0, u.b1, bar);
    if (shape::stage_bytes > shape::a_bytes + shape::b_bytes) tma_load(b + shape::b_bytes, &g.b, k + g.low, u.n0, u.b0, u.b1, bar);
  }
}

/* turned: f32 of which some operand has its rows contiguous. */
template <int kind, int BM, int BN, int splits, bool promoted = false, bool blocks = false, bool turned = false>
__global__ void __launch_bounds__(128 * (BM / 64 + 1), 1) matmul_wgmma(const __grid_constant__ cuda_gemm g)
{
  typedef gemm_shape<kind, BM, BN, splits, promoted> shape;
  typedef typename mma_operand<kind>::acc acc;
  extern __shared__ unsigned char shared_raw[];
  if (threadIdx.x == 0) {
    tma_prefetch_map(&g.a), tma_prefetch_map(&g.b);
    if (g.store_map) tma_prefetch_map(&g.y);
  }
  gemm_clear<shape>(shared_raw, g.clear);
  gemm_ring<shape> ring(shared_raw);
  grid_dependents_launch();
  grid_dependency_wait();                                   /* earlier kernels of the stream may still write a and b */

  int tiles = g.tiles_m * g.tiles_n * g.batch0 * g.batch1, stride = gridDim.x / splits,
      first = splits > 1 ? cluster_rank() * g.split_steps : 0;
  int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);

  if (warpgroup == 0) {
    if (shape::spare_registers) registers_lower<40>();
    if (threadIdx.x == 0) {
      for (int tile = blockIdx.x / splits; tile < tiles; tile += stride) {
        gemm_unit u = gemm_unit_at(g, tile, BM, BN);
        int last = splits > 1 ? min(u.steps, first + g.split_steps) : u.steps;
        for (int step = first; step < last; step++, ring.next()) {
          uint32_t bar = ring.claim(g.stage_bytes);
          gemm_load<shape, BM, BN>(g, u, step, ring.a(), ring.b(), bar);
        }
        gemm_load_plain<BM, BN / splits>(g, u, u.n0 + (splits > 1 ? cluster_rank() * (BN / splits) : 0), ring);
      }
    }
  } else {
    if (shape::spare_registers) registers_raise<232>();
    int group = warpgroup - 1, half = 0;
    for (int tile = blockIdx.x / splits; tile < tiles; tile += stride) {
      gemm_unit u = gemm_unit_at(g, tile, BM, BN);
      acc d[BN / 2];
      int count = splits > 1 ? min(u.steps - first, g.split_steps) : u.steps;
      auto multiply = [&](int count) {
        if constexpr (kind == MMA_3XTF32) {
          if (g.layout) gemm_multiply_apart<kind, BN, true>(ring, d, group, count);
          else gemm_multiply_apart<kind, BN, false>(ring, d, group, count);
        } else if constexpr (promoted) {
          gemm_multiply_apart<kind, BN, false>(ring, d, group, count);
        } else if constexpr (shape::esize != 2 && !turned) {
          gemm_multiply<kind, BN, 0, 0>(ring, d, group, count);
        } else if constexpr (turned) {
          switch (g.layout) {
          case 3:  gemm_multiply_turned<BN, true, true>(ring, d, group, count); break;
          case 2:  gemm_multiply_turned<BN, false, true>(ring, d, group, count); break;
          default: gemm_multiply_turned<BN, true, false>(ring, d, group, count);
          }
        } else {
          constexpr int chunks = BN < 64 || BN % 64 == 0;   /* else b has no rows in whole chunks, and k contiguous */
          switch (g.layout) {             /* every path multiplies, or ptxas would serialise the products */
          case 3:  gemm_multiply<kind, BN, 1, chunks>(ring, d, group, count); break;
          case 2:  gemm_multiply<kind, BN, 0, chunks>(ring, d, group, count); break;
          case 1:  gemm_multiply<kind, BN, 1, 0>(ring, d, group, count); break;
          default: gemm_multiply<kind, BN, 0, 0>(ring, d, group, count);
          }
        }
      };
      if constexpr (!blocks) multiply(count);
      else {
        constexpr int most = cuda_gemm_block(shape::esize);
        int done = 0;
        do {
          const int some = min(count - done, most);
          multiply(some);
          gemm_block(g, d, done == 0, done + some == count);
          done += some;
        } while (done < count);
      }

      constexpr bool again = mma_operand<kind>::bytes == 4;
      auto put = [&](uint32_t from, int column) {
        tma_store(&g.y, from, column, u.rows[0] + (g.class_bits ? 0 : group * 64), u.rows[1] + (g.class_bits ? group * 64 : 0), u.rows[2]);
      };
      if constexpr (splits == 1) {
        gemm_store<BN, again>(g, d, u, ring, group, half, put);
      } else {                                              /* each cluster has one tile */
        constexpr int part = BN / splits;
        float e[part / 2];
        gemm_join<BN, splits>(d, e, ring, group);
        u.n0 += cluster_rank() * part;
        gemm_store<part, again>(g, e, u, ring, group, half, put);
      }
    }
    if (threadIdx.x % 128 == 0) tma_store_wait_read<0>();   /* the stores must have read shared memory before the CTA exits */
  }
}

/* The kernel of a tile for long sums; of large outputs the large tiles, of small ones the small. */
template <int kind, int BM, int BN, int splits, bool turned = false> constexpr const void *gemm_in_blocks()
{
  if constexpr (splits == 1 && (BM == 128 ? BN % 128 == 0 && !turned : BN == 64 || BN == 16))     /* turned: too many registers */
    return (const void *)matmul_wgmma<kind, BM, BN, splits, false, true, turned>;
  return nullptr;
}
