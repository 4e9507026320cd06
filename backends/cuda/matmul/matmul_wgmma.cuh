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
 * Epilogues: (1) the plain one goes through shared memory in slices of 128 bytes, stored by TMA, which also clips at the edges;
 * (2) with steps, odd strides or alignments a slice is staged in f32 or i32, and each thread takes eight elements at a time
 * through the chain and stores them.
 *
 * A split sum is shared by the CTAs of a cluster, each with its part of k. Each then finishes its part of the columns: the other
 * CTAs send their sums of those straight into its shared memory, and an mbarrier there counts the bytes. */
#pragma once
#include "matmul_wgmma_sum.cuh"
#include "program/steps.cuh"

struct gemm_unit {
  int m0, n0, b0, b1;
  int k0, steps;                          /* the windows of k begin k0 elements before k 0; number of k steps */
  int rows[3];                            /* coordinates in the maps of a and y: m0, b0, b1; with row classes: class, row in the class, 0 */
};

__device__ __forceinline__ gemm_unit gemm_unit_at(const cuda_gemm &g, int tile, int bm, int bn)
{
  gemm_unit u;
  uint32_t t, in_band, down, b0;
  int batch = cuda_quotient(tile, g.by_batch, &t), band = cuda_quotient(t, g.by_band, &in_band);
  int n = cuda_quotient(in_band, (band + 1) * g.group > g.tiles_m ? g.by_rest : g.by_group, &down);
  int tile_m = band * g.group + down, of = tile_m & ((1 << g.class_bits) - 1);
  u.m0 = min((tile_m >> g.class_bits) * bm, g.last_m);
  u.n0 = min(n * bn, g.last_n);
  u.b1 = cuda_quotient(batch, g.by_batch0, &b0);
  u.b0 = b0;
  u.k0 = of * g.class_shift % 64;
  u.steps = g.k_steps + (u.k0 > g.k_spare);
  u.rows[0] = g.class_bits ? of : u.m0, u.rows[1] = g.class_bits ? u.m0 : u.b0, u.rows[2] = u.b1;
  return u;
}

/* The plain epilogue's arithmetic on 8 count columns from n0 on: bias, factor and shift of each column, and relu. */
template <int count> __device__ __forceinline__ void gemm_column_relu(const cuda_gemm &g, float *d, int n0)
{
  if (g.column >= 0) {
    const cuda_operand &o = g.steps.operand[g.column];
#pragma unroll
    for (int j = 0; j < count; j++) {
      int col = min(n0 + j * 8, g.n - 8) + threadIdx.x % 4 * 2;        /* n is a multiple of 8 here; columns beyond n are not stored */
      float a, b;
      if (o.dtype == QN_F32) {
        a = ((const float *)o.p)[col], b = ((const float *)o.p)[col + 1];
      } else {
        uint16_t lo = ((const uint16_t *)o.p)[col], hi = ((const uint16_t *)o.p)[col + 1];
        a = o.dtype == QN_BF16 ? bf16_to_float(lo) : f16_to_float(lo);
        b = o.dtype == QN_BF16 ? bf16_to_float(hi) : f16_to_float(hi);
      }
      d[4 * j] += a, d[4 * j + 1] += b, d[4 * j + 2] += a, d[4 * j + 3] += b;
    }
  }
  if (g.factor) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      int col = min(n0 + j * 8, g.n - 8) + threadIdx.x % 4 * 2;
      float2 by = *(const float2 *)(g.factor + col), more = *(const float2 *)(g.shift + col);
      d[4 * j] = fmaf(d[4 * j], by.x, more.x), d[4 * j + 1] = fmaf(d[4 * j + 1], by.y, more.y);
      d[4 * j + 2] = fmaf(d[4 * j + 2], by.x, more.x), d[4 * j + 3] = fmaf(d[4 * j + 3], by.y, more.y);
    }
  }
  if (g.relu) {
#pragma unroll
    for (int i = 0; i < 4 * count; i++) d[i] = d[i] < 0 ? 0 : d[i];
  }
}
template <int count> __device__ __forceinline__ void gemm_column_relu(const cuda_gemm &g, int *d, int n0)
{
  if (g.column < 0) return;
#pragma unroll
  for (int j = 0; j < count; j++) {
    const int *p = (const int *)g.steps.operand[g.column].p + min(n0 + j * 8, g.n - 8) + threadIdx.x % 4 * 2;
    d[4 * j] += p[0], d[4 * j + 1] += p[1], d[4 * j + 2] += p[0], d[4 * j + 3] += p[1];
  }
}
__device__ __forceinline__ void store_pair(uint32_t at, float a, float b)
{
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" :: "r"(at), "f"(a), "f"(b) : "memory");
}
__device__ __forceinline__ void store_pair(uint32_t at, int a, int b)
{
  asm volatile("st.shared.v2.s32 [%0], {%1, %2};" :: "r"(at), "r"(a), "r"(b) : "memory");
}

/* Begins a slice of 64 rows by 128 bytes: returns where to write it; gemm_slice_end has put(from, column) store it by TMA.
 * half: which half of staging is next. */
__device__ __forceinline__ uint32_t gemm_slice_begin(uint32_t staging, int id, int &half)
{
  uint32_t to = staging + half * 8192;
  half ^= 1;
  if (threadIdx.x % 128 == 0) tma_store_wait_read<1>();     /* the slice before last has been read out of this half */
  group_sync(id, 128);
  return to;
}
template <class F> __device__ __forceinline__ void gemm_slice_end(uint32_t from, int column, int id, const F &put)
{
  proxy_fence();
  group_sync(id, 128);
  if (threadIdx.x % 128 == 0) {
    put(from, column);
    tma_store_commit();
  }
}

__device__ __forceinline__ void load_eight(float (&v)[8], uint32_t at)
{
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(at) : "memory");
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]) : "r"(at + 16) : "memory");
}
__device__ __forceinline__ void load_eight(int (&v)[8], uint32_t at)
{
  asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at) : "memory");
  asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];" : "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7]) : "r"(at + 16) : "memory");
}

/* Stores N columns of this warpgroup's sums by TMA. */
template <int N, class T, class F> __device__ __forceinline__ void gemm_store_map(const cuda_gemm &g, T (&d)[N / 2], const gemm_unit &u,
                                                                                  uint32_t staging, int id, int &half, const F &put)
{
  constexpr bool is_float = T(0.5f) != T(0);
  int t = threadIdx.x % 128, warp = t / 32, lane = t % 32;
  if (is_float && g.out_dtype != QN_F32) {
#pragma unroll
    for (int s = 0; s < N / 64; s++) {
      if (u.n0 + s * 64 >= g.n) break;
      gemm_column_relu<8>(g, d + s * 32, u.n0 + s * 64);
      uint32_t to = gemm_slice_begin(staging, id, half);
      uint32_t at = to + (warp * 16 + lane % 16) * 128, chunk = lane / 16, turn = lane & 7;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const T *p = d + s * 32 + j * 8;
        uint32_t r0, r1, r2, r3;
        if (g.out_dtype == QN_BF16) {
          r0 = pack_bf16(p[0], p[1]), r1 = pack_bf16(p[2], p[3]), r2 = pack_bf16(p[4], p[5]), r3 = pack_bf16(p[6], p[7]);
        } else {
          r0 = pack_f16(p[0], p[1]), r1 = pack_f16(p[2], p[3]), r2 = pack_f16(p[4], p[5]), r3 = pack_f16(p[6], p[7]);
        }
        store_matrix(at + (((j * 2 + chunk) ^ turn) << 4), r0, r1, r2, r3);
      }
      gemm_slice_end(to, u.n0 + s * 64, id, put);
    }
  } else {
#pragma unroll
    for (int s = 0; s < N / 32; s++) {
      if (u.n0 + s * 32 >= g.n) break;
      gemm_column_relu<4>(g, d + s * 16, u.n0 + s * 32);
      uint32_t to = gemm_slice_begin(staging, id, half);
      int row = warp * 16 + lane / 4, chunk = lane % 4 / 2, word = lane % 2 * 8;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const T *p = d + s * 16 + j * 4;
        uint32_t at = to + row * 128 + (((j * 2 + chunk) ^ (row & 7)) << 4) + word;
        store_pair(at, p[0], p[1]);
        store_pair(at + 1024, p[2], p[3]);
      }
      gemm_slice_end(to, u.n0 + s * 32, id, put);
    }
  }
}

/* f32 operands: is any of this warpgroup's sums not finite? The same answer in all its threads. */
template <int count> __device__ __forceinline__ bool gemm_not_finite(const float (&d)[count], int id)
{
  float probe = 0;
#pragma unroll
  for (int i = 0; i < count; i++) probe = fmaf(d[i], 0.f, probe);
  return group_any(probe != 0, id, 128);
}
/* One sum recomputed in plain f32. */
__device__ __forceinline__ float gemm_again(const cuda_gemm_again &g, int row, int col, int b0, int b1)
{
  const float *a = g.a + row * g.a_stride[0] + b0 * g.a_stride[2] + b1 * g.a_stride[3];
  const float *b = g.b + col * g.b_stride[0] + b0 * g.b_stride[2] + b1 * g.b_stride[3];
  float sum = 0;
#pragma unroll 1
  for (int64_t k = 0; k < g.k; k++) sum = fmaf(a[k * g.a_stride[1]], b[k * g.b_stride[1]], sum);
  return sum;
}
/* Recomputes elements that are not finite, after TMA has stored them. (No branch here may touch the accumulators, or ptxas would
 * serialise the products.) */
__device__ __forceinline__ void gemm_mend(const cuda_gemm &g, const gemm_unit &u, int row0, int columns, int id)
{
  if (threadIdx.x % 128 == 0) tma_store_wait<0>();
  group_sync(id, 128);
#pragma unroll 1
  for (int i = threadIdx.x % 128; i < 64 * columns; i += 128) {
    int row = row0 + i / columns, col = u.n0 + i % columns;
    if (row >= g.m || col >= g.n) continue;
    int64_t at = row * g.out_stride[0] + col * g.out_stride[1] + u.b0 * g.out_stride[2] + u.b1 * g.out_stride[3];
    float v[8];
    load8(v, g.out, g.out_dtype, at, 1, 1);
    if (isfinite(v[0]) && !(g.relu && v[0] == 0)) continue;  /* relu has turned -Inf into 0 */
    v[0] = gemm_again(g.again, row, col, u.b0, u.b1);
    steps_apply(g.steps, v, row, col, u.b0, u.b1, 0, 1);
    store8(v, g.out, g.out_dtype, at, 1, 1);
  }
}

/* Stages slices of 32 columns (or N, if fewer) in f32 or i32; each thread takes eight elements at a time through the steps.
 * again: recomputes sums that are not finite. */
template <int N, bool again, class T>
__device__ __forceinline__ void gemm_store_steps(const cuda_gemm &g, T (&d)[N / 2], const gemm_unit &u, int row0, T *staging, int id)
{
  constexpr int width = N < 32 ? N : 32, pitch = 36, slices = N / width;
  int t = threadIdx.x % 128, warp = t / 32, lane = t % 32;
#pragma unroll 1
  for (int s = 0; s < slices; s++) {
    if (u.n0 + s * width >= g.n) break;
    if (s == 0 && t == 0) tma_store_wait_read<0>();         /* staging was last read by the other epilogue's stores */
    group_sync(id, 128);
    T *to = staging + (warp * 16 + lane / 4) * pitch + lane % 4 * 2;
#pragma unroll
    for (int k = 0; k < slices; k++)                        /* k == s, with constant indices */
      if (k == s) {
#pragma unroll
        for (int j = 0; j < width / 8; j++) {
          const T *p = d + (k * width / 8 + j) * 4;
          store_pair(shared_address(to + j * 8), p[0], p[1]);
          store_pair(shared_address(to + j * 8 + 8 * pitch), p[2], p[3]);
        }
      }
    group_sync(id, 128);
#pragma unroll 1
    for (int i = t; i < 64 * width / 8; i += 128) {
      T v[8];
      int r, c, n;
      if (g.along == 0) {
        r = i / (width / 8), c = i % (width / 8) * 8;
        load_eight(v, shared_address(staging + r * pitch + c));
        n = g.n - (u.n0 + s * width + c);
        if (row0 + r >= g.m) n = 0;
      } else {
        r = i % 8 * 8, c = i / 8;
#pragma unroll
        for (int e = 0; e < 8; e++) v[e] = staging[(r + e) * pitch + c];
        n = g.m - (row0 + r);
        if (u.n0 + s * width + c >= g.n) n = 0;
      }
      if (n <= 0) continue;
      n = min(n, 8);
      int row = row0 + r, col = u.n0 + s * width + c;
      if (again && g.again.a) {
#pragma unroll
        for (int e = 0; e < 8; e++)
          if (e < n && !isfinite((float)v[e])) v[e] = gemm_again(g.again, row + (g.along ? e : 0), col + (g.along ? 0 : e), u.b0, u.b1);
      }
      steps_apply(g.steps, v, row, col, u.b0, u.b1, g.along, n);
      store8(v, g.out, g.out_dtype, row * g.out_stride[0] + col * g.out_stride[1] + u.b0 * g.out_stride[2] + u.b1 * g.out_stride[3],
             g.out_stride[g.along ? 0 : 1], n);
    }
  }
  group_sync(id, 128);                                      /* staging is free again */
}

/* Stores N columns of sums by whichever epilogue applies. again: as in gemm_store_steps. */
template <int N, bool again = false, class T, class F>
__device__ __forceinline__ void gemm_store(const cuda_gemm &g, T (&d)[N / 2], const gemm_unit &u, int row0, uint32_t slices, T *slices_word,
                                           int id, int &half, const F &put)
{
  if (N >= 64 && g.store_map) {
    bool mend = false;
    if constexpr (again) mend = gemm_not_finite(d, id);
    gemm_store_map<N>(g, d, u, slices, id, half, put);
    if (again && mend) gemm_mend(g, u, row0, N, id);
  } else {
    gemm_store_steps<N, again>(g, d, u, row0, slices_word, id);
  }
}

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
          switch (g.layout) {             /* every path multiplies, or ptxas would serialise the products */
          case 3:  gemm_multiply<kind, BN, 1, 1>(ring, d, group, count); break;
          case 2:  gemm_multiply<kind, BN, 0, 1>(ring, d, group, count); break;
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

      int row0 = u.m0 + group * 64;
      uint32_t slices = ring.staging + group * 2 * shape::slice_bytes;
      acc *slices_word = (acc *)(ring.shared + (slices - ring.data));
      constexpr bool again = mma_operand<kind>::bytes == 4;
      auto put = [&](uint32_t from, int column) {
        tma_store(&g.y, from, column, u.rows[0] + (g.class_bits ? 0 : group * 64), u.rows[1] + (g.class_bits ? group * 64 : 0), u.rows[2]);
      };
      if constexpr (splits == 1) {
        gemm_store<BN, again>(g, d, u, row0, slices, slices_word, 1 + group, half, put);
      } else {                                              /* each cluster has one tile */
        constexpr int part = BN / splits;
        float e[part / 2];
        gemm_join<BN, splits>(d, e, ring, group);
        u.n0 += cluster_rank() * part;
        gemm_store<part, again>(g, e, u, row0, slices, slices_word, 1 + group, half, put);
      }
    }
    if (threadIdx.x % 128 == 0) tma_store_wait_read<0>();   /* the stores must have read shared memory before the CTA exits */
  }
}

/* The kernel of a tile for long sums; of large outputs the large tiles, of small ones the small. */
template <int kind, int BM, int BN, int splits, bool turned = false> constexpr const void *gemm_in_blocks()
{
  if constexpr (splits == 1 && (BM == 128 ? BN >= 128 && !turned : BN == 64 || BN == 16))         /* turned: too many registers */
    return (const void *)matmul_wgmma<kind, BM, BN, splits, false, true, turned>;
  return nullptr;
}
