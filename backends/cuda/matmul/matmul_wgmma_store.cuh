/* matmul_wgmma_store.cuh -- the epilogue of a tile on Hopper: from a warpgroup's sums to y.
 *
 * (1) The plain one (cuda_plain: a bias, a factor and shift by columns or by rows, a matrix added, relu) goes through shared memory in
 * slices of 64 rows by 128 bytes, stored by TMA, which also clips at the edges. What it reads comes through the ring of stages behind
 * the tile's last step of k, and so is on its way while the tile is being multiplied: first a stage with the vectors of columns, then
 * the added matrix, a slice in the place of a's rows of each stage.
 * (2) With other steps, odd strides or alignments a slice is staged in f32 or i32, and each thread takes eight elements at a time
 * through the chain and stores them: along columns, along rows, or, where y's columns are contiguous but in no eights, down a column,
 * so that neighbouring threads store neighbouring elements. Vectors and relu with nothing behind are applied before, as in (1). */
#pragma once
#include "matmul_wgmma_sum.cuh"
#include "kit/sm80.cuh"
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

/* ---- the plain epilogue ---------------------------------------------------------------------------------------------- */

/* A slice of 16-bit elements of a tile of N columns lies in boxes of so many, as TMA stores them, side by side. */
template <int N> constexpr int gemm_box = N % 64 ? 16 : 64;
/* Where in it the 16 bytes are that lane `lane` % 16 of a warp has of row `row`: columns 16 j + 8 `chunk` on. */
template <int N> __device__ __forceinline__ uint32_t gemm_chunk(int row, int j, uint32_t chunk)
{
  if (gemm_box<N> == 64) return row * 128 + (((j * 2 + chunk) ^ (row & 7)) << 4);
  return j * 2048 + row * 32 + ((chunk ^ (row >> 2 & 1)) << 4);
}

/* The vectors of a tile: (v + bias) factor + shift. By rows, those of a thread's two rows of each slice; by columns, the stage of the ring
 * that has them all. */
enum { GEMM_VECTOR = 1280 };              /* bytes of the stage for each */
struct gemm_vectors { float bias[2], factor[2], shift[2]; uint32_t stage; };
__device__ __forceinline__ gemm_vectors gemm_vectors_of(const cuda_gemm &g, const gemm_unit &u, int group, uint32_t stage)
{
  gemm_vectors by = { { 0, 0 }, { 1, 1 }, { 0, 0 }, stage };
  if (!g.plain.by_row) return by;
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const int in_tile = group * 64 + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4 + 8 * i;
    const int row = min(g.class_bits ? (u.m0 + in_tile) << g.class_bits | u.rows[0] : u.m0 + in_tile, g.m - 1);
    auto get = [&](int k) {
      const cuda_operand &o = g.steps.operand[k];
      return element_load<float>(o.p, row * o.stride[0] + u.b0 * o.stride[2] + u.b1 * o.stride[3], o.dtype);
    };
    if (g.plain.bias >= 0) by.bias[i] = get(g.plain.bias);
    if (g.plain.factor >= 0) by.factor[i] = get(g.plain.factor), by.shift[i] = get(g.plain.factor + 1);
  }
  return by;
}

/* Do the vectors of the columns from n0 on come through the ring? */
__device__ __forceinline__ bool gemm_staged(const cuda_gemm &g, int n0) { return g.staged && n0 < g.n; }

/* The producer loads the vectors of the tile's columns n0 to n0 + N. */
template <int N, class shape>
__device__ __forceinline__ void gemm_load_vectors(const cuda_gemm &g, const gemm_unit &u, int n0, gemm_ring<shape> &ring)
{
  const int columns = min(N, g.n - n0);
  const bool bias = g.plain.bias >= 0, factor = g.plain.factor >= 0;
  const int bytes = bias ? columns * (g.steps.operand[g.plain.bias].dtype == QN_F32 ? 4 : 2) : 0;
  const uint32_t bar = ring.claim(bytes + (factor ? columns * 8 : 0));
  auto load = [&](uint32_t to, const cuda_operand &o, int size) {
    bulk_load(to, (const char *)o.p + (n0 + u.b0 * o.stride[2] + u.b1 * o.stride[3]) * size, columns * size, bar);
  };
  if (bias) load(ring.a(), g.steps.operand[g.plain.bias], bytes / columns);
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (factor) load(ring.a() + (i + 1) * GEMM_VECTOR, g.steps.operand[g.plain.factor + i], 4);
  ring.next();
}

/* Applies them to 8 count columns from `column` of the tile on; columns beyond n are not stored. */
template <int count> __device__ __forceinline__ void gemm_scale(const cuda_gemm &g, const gemm_vectors &by, float *d, int column)
{
  if (g.plain.by_row) {
#pragma unroll
    for (int i = 0; i < 4 * count; i++) d[i] = fmaf(d[i] + by.bias[i % 4 / 2], by.factor[i % 4 / 2], by.shift[i % 4 / 2]);
    return;
  }
  const uint32_t mine = column + threadIdx.x % 4 * 2;
  auto pair = [&](int vector, int j) {
    const uint32_t at = by.stage + vector * GEMM_VECTOR + (mine + j * 8) * 4;
    float2 two;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(two.x), "=f"(two.y) : "r"(at) : "memory");
    return two;
  };
  auto add = [&](float *d, float2 more) { d[0] += more.x, d[1] += more.y, d[2] += more.x, d[3] += more.y; };
  if (g.plain.bias >= 0) {
    const uint32_t dtype = g.steps.operand[g.plain.bias].dtype;
    if (dtype == QN_F32) {
#pragma unroll
      for (int j = 0; j < count; j++) add(d + 4 * j, pair(0, j));
    } else {
#pragma unroll
      for (int j = 0; j < count; j++) {
        uint32_t w;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(w) : "r"(by.stage + (mine + j * 8) * 2) : "memory");
        add(d + 4 * j, dtype == QN_BF16 ? make_float2(bf16_to_float((uint16_t)w), bf16_to_float(w >> 16))
                                        : make_float2(f16_to_float((uint16_t)w), f16_to_float(w >> 16)));
      }
    }
  }
  if (g.plain.factor >= 0) {
#pragma unroll
    for (int j = 0; j < count; j++) {
      const float2 by = pair(1, j), more = pair(2, j);
      d[4 * j] = fmaf(d[4 * j], by.x, more.x), d[4 * j + 1] = fmaf(d[4 * j + 1], by.y, more.y);
      d[4 * j + 2] = fmaf(d[4 * j + 2], by.x, more.x), d[4 * j + 3] = fmaf(d[4 * j + 3], by.y, more.y);
    }
  }
}
/* A consumer's hold of the stage with the vectors. */
struct gemm_taken {
  int stage;
  uint32_t at;
  template <class shape> __device__ __forceinline__ gemm_taken(const cuda_gemm &g, const gemm_unit &u, gemm_ring<shape> &ring)
    : stage(-1), at(0)
  {
    if (!gemm_staged(g, u.n0)) return;
    ring.wait();
    stage = ring.stage, at = ring.a();
    ring.next();
  }
  template <class shape> __device__ __forceinline__ void release(const gemm_ring<shape> &ring) const
  {
    if (stage < 0) return;
    __syncwarp();
    ring.release(stage);
  }
};
/* Of integers, only a bias of columns, from memory. */
template <int count> __device__ __forceinline__ void gemm_bias(const cuda_gemm &g, int *d, int n0)
{
  if (g.plain.bias < 0) return;
#pragma unroll
  for (int j = 0; j < count; j++) {                         /* n is a multiple of 8 here */
    const int *p = (const int *)g.steps.operand[g.plain.bias].p + min(n0 + j * 8, g.n - 8) + threadIdx.x % 4 * 2;
    d[4 * j] += p[0], d[4 * j + 1] += p[1], d[4 * j + 2] += p[0], d[4 * j + 3] += p[1];
  }
}
template <int count, class T> __device__ __forceinline__ void gemm_relu(const cuda_gemm &g, T *d)
{
  if (!g.plain.relu) return;
#pragma unroll
  for (int i = 0; i < 4 * count; i++) d[i] = d[i] < 0 ? 0 : d[i];
}

/* Are the tile's N columns stored by TMA? The producer and the consumers agree. */
template <int N> __device__ __forceinline__ bool gemm_by_map(const cuda_gemm &g) { return N >= 64 && g.store_map; }

/* The producer loads the added matrix: slices of 64 columns (f32: 32) of the tile's BM rows, from column n0 on. */
template <int BM, int N, class shape> __device__ __forceinline__ void gemm_load_added(const cuda_gemm &g, const gemm_unit &u, int n0,
                                                                                      gemm_ring<shape> &ring)
{
  const int width = g.out_dtype == QN_F32 ? 32 : 64, box = g.out_dtype == QN_F32 ? 32 : gemm_box<N>;
  for (int column = n0; column < min(n0 + N, g.n); column += width, ring.next()) {
    const int boxes = (min(width, n0 + N - column) + box - 1) / box;
    const uint32_t bar = ring.claim(BM * 128 * (boxes * box) / width);
#pragma unroll
    for (int c = 0; c < BM / 64; c++)
      for (int i = 0; i < boxes; i++)
        tma_load(ring.a() + c * 8192 + i * 2048, &g.added, column + i * box, u.rows[0] + (g.class_bits ? 0 : c * 64),
                 u.rows[1] + (g.class_bits ? c * 64 : 0), u.rows[2], bar);
  }
}

/* The producer loads what the plain epilogue reads of N columns from n0 on. */
template <int BM, int N, class shape> __device__ __forceinline__ void gemm_load_plain(const cuda_gemm &g, const gemm_unit &u, int n0,
                                                                                      gemm_ring<shape> &ring)
{
  if (gemm_staged(g, n0)) gemm_load_vectors<N>(g, u, n0, ring);
  if (gemm_by_map<N>(g) && g.plain.added >= 0) gemm_load_added<BM, N>(g, u, n0, ring);
}

/* A consumer adds the next slice: of 16-bit elements by ldmatrix, which gives a thread those of its sums; of f32 by pairs. */
template <int N, int count, class shape> __device__ __forceinline__ void gemm_add_16(gemm_ring<shape> &ring, float *d, int group, bool bf16)
{
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  ring.wait();
#pragma unroll
  for (int j = 0; j < count; j++) {
    uint32_t w[4];
    load_matrices<false>(w, ring.a() + group * 8192 + gemm_chunk<N>(warp * 16 + lane % 16, j, lane / 16));
#pragma unroll
    for (int i = 0; i < 4; i++) {
      d[8 * j + 2 * i] += bf16 ? bf16_to_float((uint16_t)w[i]) : f16_to_float((uint16_t)w[i]);
      d[8 * j + 2 * i + 1] += bf16 ? bf16_to_float(w[i] >> 16) : f16_to_float(w[i] >> 16);
    }
  }
  __syncwarp();
  ring.release(ring.stage);
  ring.next();
}
template <class shape> __device__ __forceinline__ void gemm_add_32(gemm_ring<shape> &ring, float *d, int group)
{
  const int row = threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4, chunk = threadIdx.x % 4 / 2, word = threadIdx.x % 2 * 8;
  ring.wait();
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const uint32_t at = ring.a() + group * 8192 + row * 128 + (((j * 2 + chunk) ^ (row & 7)) << 4) + word;
    float a[2], b[2];
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a[0]), "=f"(a[1]) : "r"(at) : "memory");
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(b[0]), "=f"(b[1]) : "r"(at + 1024) : "memory");
    d[4 * j] += a[0], d[4 * j + 1] += a[1], d[4 * j + 2] += b[0], d[4 * j + 3] += b[1];
  }
  __syncwarp();
  ring.release(ring.stage);
  ring.next();
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

/* A slice of a tile of N columns, 16-bit elements: its 16 count columns from `column` on, of which TMA stores those before n. */
template <int N, int count, class shape, class F>
__device__ __forceinline__ void gemm_slice_16(const cuda_gemm &g, const gemm_vectors &by, float *d, int n0, int column,
                                              gemm_ring<shape> &ring, int group, int &half, const F &put)
{
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  if (g.plain.any) {
    gemm_scale<2 * count>(g, by, d, column);
    if (g.plain.added >= 0) gemm_add_16<N, count>(ring, d, group, g.out_dtype == QN_BF16);
    gemm_relu<2 * count>(g, d);
  }
  const uint32_t to = gemm_slice_begin(ring.slices(group), 1 + group, half);
#pragma unroll
  for (int j = 0; j < count; j++) {
    const float *p = d + j * 8;
    uint32_t r0, r1, r2, r3;
    if (g.out_dtype == QN_BF16) {
      r0 = pack_bf16(p[0], p[1]), r1 = pack_bf16(p[2], p[3]), r2 = pack_bf16(p[4], p[5]), r3 = pack_bf16(p[6], p[7]);
    } else {
      r0 = pack_f16(p[0], p[1]), r1 = pack_f16(p[2], p[3]), r2 = pack_f16(p[4], p[5]), r3 = pack_f16(p[6], p[7]);
    }
    store_matrix(to + gemm_chunk<N>(warp * 16 + lane % 16, j, lane / 16), r0, r1, r2, r3);
  }
  gemm_slice_end(to, n0 + column, 1 + group, [&](uint32_t from, int column) {
    constexpr int box = gemm_box<N>;
    for (int i = 0; i < 16 * count / box && column + i * box < g.n; i++) put(from + i * 2048, column + i * box);
  });
}

/* Stores N columns of this warpgroup's sums by TMA. */
template <int N, class T, class shape, class F>
__device__ __forceinline__ void gemm_store_map(const cuda_gemm &g, T (&d)[N / 2], const gemm_unit &u, gemm_ring<shape> &ring, int group,
                                               int &half, const F &put)
{
  constexpr bool is_float = T(0.5f) != T(0);
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const gemm_taken taken(g, u, ring);
  const gemm_vectors by = gemm_vectors_of(g, u, group, taken.at);
  if (is_float && g.out_dtype != QN_F32) {
    if constexpr (is_float) {
#pragma unroll
      for (int s = 0; s < N / 64; s++) {
        if (u.n0 + s * 64 >= g.n) break;
        gemm_slice_16<N, 4>(g, by, d + s * 32, u.n0, s * 64, ring, group, half, put);
      }
      if constexpr (N % 64 != 0)
        if (u.n0 + N / 64 * 64 < g.n)
          gemm_slice_16<N, N % 64 / 16>(g, by, d + N / 64 * 32, u.n0, N / 64 * 64, ring, group, half, put);
    }
  } else {
#pragma unroll
    for (int s = 0; s < N / 32; s++) {
      if (u.n0 + s * 32 >= g.n) break;
      if constexpr (is_float) gemm_scale<4>(g, by, d + s * 16, s * 32);
      else gemm_bias<4>(g, d + s * 16, u.n0 + s * 32);
      if constexpr (is_float) if (g.plain.added >= 0) gemm_add_32(ring, d + s * 16, group);
      gemm_relu<4>(g, d + s * 16);
      uint32_t to = gemm_slice_begin(ring.slices(group), 1 + group, half);
      int row = warp * 16 + lane / 4, chunk = lane % 4 / 2, word = lane % 2 * 8;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const T *p = d + s * 16 + j * 4;
        uint32_t at = to + row * 128 + (((j * 2 + chunk) ^ (row & 7)) << 4) + word;
        store_pair(at, p[0], p[1]);
        store_pair(at + 1024, p[2], p[3]);
      }
      gemm_slice_end(to, u.n0 + s * 32, 1 + group, put);
    }
  }
  taken.release(ring);
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
    if (isfinite(v[0]) && !(g.plain.relu && v[0] == 0)) continue;  /* relu has turned -Inf into 0 */
    v[0] = gemm_again(g.again, row, col, u.b0, u.b1);
    steps_apply(g.steps, v, row, col, u.b0, u.b1, 0, 1);
    store8(v, g.out, g.out_dtype, at, 1, 1);
  }
}

/* ---- the steps, eight elements at a time -------------------------------------------------------------------------------- */

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

/* Stages slices of 32 columns (or 16, if N is in no 32) in f32 or i32; each thread takes eight elements at a time through the steps.
 * again: recomputes sums that are not finite. */
template <int N, bool again, class T>
__device__ __forceinline__ void gemm_store_steps(const cuda_gemm &g, T (&d)[N / 2], const gemm_unit &u, int row0, T *staging, int id)
{
  constexpr int width = N % 32 ? 16 : 32, pitch = 36, slices = N / width;
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
        r = g.along == 1 ? i % 8 * 8 : i / width * 8, c = g.along == 1 ? i / 8 : i % width;
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
      steps_apply(g.steps, v, row, col, u.b0, u.b1, g.along != 0, n);
      store8(v, g.out, g.out_dtype, row * g.out_stride[0] + col * g.out_stride[1] + u.b0 * g.out_stride[2] + u.b1 * g.out_stride[3],
             g.out_stride[g.along ? 0 : 1], n);
    }
  }
  group_sync(id, 128);                                      /* staging is free again */
}

/* Stores N columns of sums by whichever epilogue applies. again: as in gemm_store_steps. */
template <int N, bool again = false, class T, class shape, class F>
__device__ __forceinline__ void gemm_store(const cuda_gemm &g, T (&d)[N / 2], const gemm_unit &u, gemm_ring<shape> &ring, int group,
                                           int &half, const F &put)
{
  constexpr bool is_float = T(0.5f) != T(0);
  const int row0 = u.m0 + group * 64, id = 1 + group;
  if (gemm_by_map<N>(g)) {
    bool mend = false;
    if constexpr (again) mend = gemm_not_finite(d, id);
    gemm_store_map<N>(g, d, u, ring, group, half, put);
    if (again && mend) gemm_mend(g, u, row0, N, id);
  } else {
    if constexpr (is_float) {
      if (g.scaled && u.n0 < g.n) {
        const gemm_taken taken(g, u, ring);
        gemm_scale<N / 8>(g, gemm_vectors_of(g, u, group, taken.at), d, 0);
        gemm_relu<N / 8>(g, d);
        taken.release(ring);
      }
    }
    gemm_store_steps<N, again>(g, d, u, row0, (T *)(ring.shared + (ring.slices(group) - ring.data)), id);
  }
}
