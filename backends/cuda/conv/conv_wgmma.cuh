/* conv_wgmma.cuh -- matmul_wgmma.cuh's kernel with one operand gathered from windows, channels last (implicit GEMM).
 *
 *                     a, BM rows                    b, BN columns                        summed over
 *   forward           pixels of x at a tap          filters                              taps, channels
 *   backward data     pixels of dy at a tap         channels of filters                  taps, filters
 *   backward filter   filters of dy                 channels of x, 64 of each tap        pixels, from part b1 on
 *
 * A long sum of few tiles has parts (b1) in these two as well: each keeps its sums in workspace, and the warpgroup that comes last adds
 * them in order and goes on.
 *
 * Backward data: a stride divides dx's pixels into residue classes. Each is a stride-1 convolution over dy with the taps that
 * reach it, a batch (b0) of the product; a class that no tap reaches is set to 0. Classes with most taps come first. */
#pragma once
#include <type_traits>
#include "conv_wgmma.h"
#include "matmul/matmul_wgmma.cuh"

/* A tile of the product, with its own register split and ring of stages. */
template <int kind, int BM, int BN, int splits> struct conv_shape : gemm_shape<kind, BM, BN, splits> {
  typedef gemm_shape<kind, BM, BN, splits> base;
  static constexpr bool spare_registers = base::groups == 4 || BM * BN >= 128 * 256;
  static constexpr int producer_registers = base::groups == 4 ? 32 : 40, consumer_registers = base::groups == 4 ? 112 : 232;
};

struct conv_pixel { int n, d, h, w; };
__device__ __forceinline__ conv_pixel conv_pixel_at(const cuda_conv_grid &v, int pixel)
{
  conv_pixel at;
  at.n = cuda_quotient(pixel, v.by_dhw);
  pixel -= at.n * v.dhw;
  at.d = cuda_quotient(pixel, v.by_hw);
  pixel -= at.d * v.hw;
  at.h = cuda_quotient(pixel, v.by_w);
  at.w = pixel - at.h * v.w;
  return at;
}
/* The gathered tensor's pixel at the first tap. */
__device__ __forceinline__ conv_pixel conv_window_at(const cuda_conv_grid &v, int pixel)
{
  conv_pixel at = conv_pixel_at(v, pixel);
  at.w = at.w * v.stride[0] + v.start[0];
  at.h = at.h * v.stride[1] + v.start[1];
  at.d = at.d * v.stride[2] + v.start[2];
  return at;
}
__device__ __forceinline__ void conv_gather(const cuda_conv &p, uint32_t to, const CUtensorMap *map, int c, const conv_pixel &at, int w,
                                            int h, int d, uint32_t bar)
{
  if (p.volume) tma_load_im2col(to, map, c, at.w, at.h, at.d, at.n, w, h, d, bar);
  else tma_load_im2col(to, map, c, at.w, at.h, at.n, w, h, bar);
}

/* The steps of k that a unit has of its tile's, and how many parts share these. */
struct conv_share { int first, steps, parts; };
template <int mode> __device__ __forceinline__ conv_share conv_share_of(const cuda_conv &p, const gemm_unit &u)
{
  const int each = p.gemm.k_steps;
  if (mode == CUDA_CONV_FILTER) return { 0, each, 1 };
  const int all = p.grid[mode == CUDA_CONV_DATA ? u.b0 : 0].taps * p.chunks, first = u.b1 * each;
  return { first, min(all - first, each), p.gemm.batch1 > 1 ? (all + each - 1) / each : 1 };      /* steps < 0: a part too many */
}

/* Keeps this warpgroup's part of a sum. True for the last of `parts`: d is then the total. tile: of `tiles` */
template <int BM, int BN>
__device__ __forceinline__ bool conv_join(const cuda_conv &p, float (&d)[BN / 2], int tile, int tiles, int part, int parts, int group)
{
  const int t = threadIdx.x % 128, at = tile * (BM / 64) + group;
  const int64_t apart = (int64_t)tiles * (BM / 64) * p.eights * 128;
  float4 *first = (float4 *)p.gemm.kept + (int64_t)at * p.eights * 128 + t, *mine = first + part * apart;
#pragma unroll
  for (int i = 0; i < BN / 8; i++)
    if (i < p.eights) __stcg(mine + i * 128, make_float4(d[4 * i], d[4 * i + 1], d[4 * i + 2], d[4 * i + 3]));
  __threadfence();
  group_sync(1 + group, 128);
  bool last = false;
  if (t == 0 && (last = atomicAdd(p.ticket + at, 1) == (uint32_t)parts - 1)) p.ticket[at] = 0;
  if (!group_any(last, 1 + group, 128)) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < BN / 2; i++) d[i] = 0;
#pragma unroll 1
  for (int s = 0; s < parts; s++, first += apart)
#pragma unroll
    for (int i = 0; i < BN / 8; i++)
      if (i < p.eights) {
        const float4 v = __ldcg(first + i * 128);
        d[4 * i] += v.x, d[4 * i + 1] += v.y, d[4 * i + 2] += v.z, d[4 * i + 3] += v.w;
      }
  return true;
}

/* The producer for forward and backward data: tap by tap, and for each its channels. */
template <class shape, int mode, int BN> struct conv_taps {
  const cuda_conv &p;
  const cuda_conv_grid &v;
  const gemm_unit &u;
  conv_pixel window;
  int chunk, w, h, d;

  __device__ __forceinline__ conv_taps(const cuda_conv &p_, const gemm_unit &u_, int step)
    : p(p_), v(p_.grid[mode == CUDA_CONV_DATA ? u_.b0 : 0]), u(u_)
  {
    window = conv_window_at(v, u.m0);
    int tap = step / p.chunks;
    chunk = step - tap * p.chunks;
    d = tap / v.taps_hw;
    tap -= d * v.taps_hw;
    h = tap / v.taps_w;
    w = tap - h * v.taps_w;
  }
  __device__ __forceinline__ void fetch(uint32_t a, uint32_t b, uint32_t bar)
  {
    int k = chunk * shape::bk, tap = v.weight[3] + w * v.weight[0] + h * v.weight[1] + d * v.weight[2];
    conv_gather(p, a, &p.gathered[mode == CUDA_CONV_DATA ? u.b0 : 0], k, window, w * v.step[0], h * v.step[1], d * v.step[2], bar);
    if (mode == CUDA_CONV_FORWARD) {
      constexpr int boxes = (BN + 255) / 256, rows = BN / boxes;
#pragma unroll
      for (int c = 0; c < boxes; c++) tma_load(b + c * rows * 128, &p.gemm.b, k, tap, u.n0 + c * rows, 0, bar);
    } else {
#pragma unroll
      for (int c = 0; c < BN / 64; c++) tma_load(b + c * 8192, &p.gemm.b, u.n0 + c * 64, tap, k, 0, bar);
    }
    if (++chunk < p.chunks) return;
    chunk = 0;
    if (++w < v.taps_w) return;
    w = 0;
    if (++h * v.taps_w == v.taps_hw) h = 0, d++;
  }
};

/* The producer for backward filter: 64 pixels at a time. */
template <class shape, int BM, int BN> struct conv_pixels {
  const cuda_conv &p;
  const gemm_unit &u;
  int pixel, channel[BN / 64], tap[BN / 64];                /* tap: its offsets in the window, W, H, D in 8 bits each */

  __device__ __forceinline__ conv_pixels(const cuda_conv &p_, const gemm_unit &u_, int step) : p(p_), u(u_)
  {
    const cuda_conv_grid &v = p.grid[0];
    pixel = (u.b1 * p.gemm.k_steps + step) * 64;            /* past the last pixel both operands read as 0 */
#pragma unroll
    for (int c = 0; c < BN / 64; c++) {
      int chunk = u.n0 / 64 + c, t = chunk / p.chunks;
      bool there = t < v.taps;
      channel[c] = (there ? chunk - t * p.chunks : p.chunks) * 64;
      int d = t / v.taps_hw, h = (t - d * v.taps_hw) / v.taps_w, w = t - d * v.taps_hw - h * v.taps_w;
      tap[c] = there ? d * v.step[2] << 16 | h * v.step[1] << 8 | w * v.step[0] : 0;
    }
  }
  __device__ __forceinline__ void fetch(uint32_t a, uint32_t b, uint32_t bar)
  {
    conv_pixel window = conv_window_at(p.grid[0], pixel);
#pragma unroll
    for (int c = 0; c < BM / 64; c++) tma_load(a + c * 8192, &p.gemm.a, u.m0 + c * 64, pixel, 0, 0, bar);
#pragma unroll
    for (int c = 0; c < BN / 64; c++)
      conv_gather(p, b + c * 8192, &p.gathered[0], channel[c], window, tap[c] & 0xff, tap[c] >> 8 & 0xff, tap[c] >> 16, bar);
    pixel += 64;
  }
};

/* Stores a slice of a tile, 64 rows from row0 on. */
template <int mode> __device__ __forceinline__ void conv_put(const cuda_conv &p, const gemm_unit &u, uint32_t from, int column, int row0)
{
  if (mode == CUDA_CONV_FORWARD) {
    tma_store(&p.gemm.y, from, column, row0, 0, 0);
  } else if (mode == CUDA_CONV_DATA) {
    const cuda_conv_grid &v = p.grid[u.b0];
    if (row0 >= v.pixels) return;
    conv_pixel at = conv_pixel_at(v, row0);
    if (p.volume) tma_store_im2col(&p.written[u.b0], from, column, at.w, at.h, at.d, at.n);
    else tma_store_im2col(&p.written[u.b0], from, column, at.w, at.h, at.n);
  } else {
    int tap = column / 64 / p.chunks;
    tma_store(&p.gemm.y, from, column - tap * p.chunks * 64, tap, row0, u.b1);
  }
}

/* Stores a tile of zeros: every slice from the same staging. */
template <int BN, class F>
__device__ __forceinline__ void conv_zero(const cuda_gemm &g, const gemm_unit &u, uint32_t staging, int id, int &half, const F &put)
{
  int t = threadIdx.x % 128, width = g.out_dtype == QN_F32 ? 32 : 64;
  uint32_t from = staging + half * 8192;
  half ^= 1;
  if (t == 0) tma_store_wait_read<1>();
  group_sync(id, 128);
#pragma unroll
  for (int i = 0; i < 4; i++) asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(from + (i * 128 + t) * 16), "r"(0) : "memory");
  proxy_fence();
  group_sync(id, 128);
  if (t == 0) {
    for (int column = u.n0; column < min(u.n0 + BN, g.n); column += width) put(from, column);
    tma_store_commit();
  }
}

template <int kind, int BM, int BN, int splits, int mode>
__global__ void __launch_bounds__(128 * (BM / 64 + 1), 1) conv_wgmma(const __grid_constant__ cuda_conv p)
{
  constexpr int ta = mode == CUDA_CONV_FILTER, tb = mode != CUDA_CONV_FORWARD;
  typedef conv_shape<kind, BM, BN, splits> shape;
  extern __shared__ unsigned char shared_raw[];
  const cuda_gemm &g = p.gemm;
  if (threadIdx.x == 0) {
    tma_prefetch_map(&p.gathered[0]);
    tma_prefetch_map(mode == CUDA_CONV_FILTER ? &g.a : &g.b);
    if (g.store_map) tma_prefetch_map(mode == CUDA_CONV_DATA ? &p.written[0] : &g.y);
  }
  gemm_ring<shape> ring(shared_raw);
  grid_dependents_launch();
  grid_dependency_wait();

  int tiles = g.tiles_m * g.tiles_n * g.batch0 * g.batch1, stride = gridDim.x / splits, share = splits > 1 ? cluster_rank() : 0;
  int warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);

  if (warpgroup == 0) {
    if (shape::spare_registers) registers_lower<shape::producer_registers>();
    if (threadIdx.x == 0) {
      for (int tile = blockIdx.x / splits; tile < tiles; tile += stride) {
        gemm_unit u = gemm_unit_at(g, tile, BM, BN);
        const conv_share of = conv_share_of<mode>(p, u);
        int step = of.first + share * g.split_steps, last = of.first + (splits > 1 ? min(of.steps, (share + 1) * g.split_steps) : of.steps);
        if (step >= last) continue;
        std::conditional_t<mode == CUDA_CONV_FILTER, conv_pixels<shape, BM, BN>, conv_taps<shape, mode, BN>> source(p, u, step);
        for (; step < last; step++, ring.next()) {
          uint32_t bar = ring.claim();
          source.fetch(ring.a(), ring.b(), bar);
        }
        if (mode != CUDA_CONV_FILTER) gemm_load_plain<BM, BN / splits>(g, u, u.n0 + share * (BN / splits), ring);
      }
    }
  } else {
    if (shape::spare_registers) registers_raise<shape::consumer_registers>();
    int group = warpgroup - 1, half = 0;
    for (int tile = blockIdx.x / splits; tile < tiles; tile += stride) {
      gemm_unit u = gemm_unit_at(g, tile, BM, BN);
      int row0 = u.m0 + group * 64;
      const conv_share of = conv_share_of<mode>(p, u);
      if (of.steps <= 0 && u.b1 > 0) continue;
      int count = splits > 1 ? min(of.steps - share * g.split_steps, g.split_steps) : of.steps;
      auto put = [&](uint32_t from, int column) { conv_put<mode>(p, u, from, column, row0); };
      if (mode == CUDA_CONV_DATA && count == 0) {
        conv_zero<BN>(g, u, ring.slices(group), 1 + group, half, put);
      } else {
        float d[BN / 2];
        gemm_multiply<kind, BN, ta, tb>(ring, d, group, count);
        if constexpr (mode != CUDA_CONV_FILTER && cuda_conv_in_parts(BM, BN, splits)) {
          const int all = g.tiles_m * g.tiles_n * g.batch0, part = u.b1;
          if (of.parts > 1 && !conv_join<BM, BN>(p, d, tile - part * all, all, part, of.parts, group)) continue;
          u.b1 = 0;
        }
        if constexpr (splits == 1) {
          if (mode == CUDA_CONV_FILTER) gemm_store_map<BN>(g, d, u, ring, group, half, put);
          else gemm_store<BN>(g, d, u, ring, group, half, put);
        } else {                                            /* the host gives each cluster one tile */
          constexpr int part = BN / splits;
          float e[part / 2];
          gemm_join<BN, splits>(d, e, ring, group);
          u.n0 += share * part;
          if (mode == CUDA_CONV_FILTER) gemm_store_map<part>(g, e, u, ring, group, half, put);
          else gemm_store<part>(g, e, u, ring, group, half, put);
          break;                                            /* tells the compiler that nothing is kept for another iteration */
        }
      }
    }
    if (threadIdx.x % 128 == 0) tma_store_wait_read<0>();
  }
}

/* The kernel table of a file that has defined CONV_KIND, the dtype. */
#define CONV_KERNEL(bm, bn, splits, mode)                                                                                      \
  { bm, bn, splits, gemm_shape<CONV_KIND, bm, bn, splits>::threads, gemm_shape<CONV_KIND, bm, bn, splits>::shared,             \
    (const void *)conv_wgmma<CONV_KIND, bm, bn, splits, mode>, nullptr },
#define CONV_FORWARD(bm, bn, splits, step, tile) CONV_KERNEL(bm, bn, splits, CUDA_CONV_FORWARD)
#define CONV_DATA(bm, bn, splits, step, tile)    CONV_KERNEL(bm, bn, splits, CUDA_CONV_DATA)
#define CONV_FILTER(bm, bn, splits, step, tile)  CONV_KERNEL(bm, bn, splits, CUDA_CONV_FILTER)
#define CONV_KERNELS \
  { { CUDA_CONV_FORWARD_TILES(CONV_FORWARD) }, { CUDA_CONV_DATA_TILES(CONV_DATA) }, { CUDA_CONV_FILTER_TILES(CONV_FILTER) } }
