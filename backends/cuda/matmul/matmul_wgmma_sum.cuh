/* matmul_wgmma_sum.cuh -- a tile's sums on Hopper's Tensor Cores: the ring of stages that a producer fills and consumers multiply from,
 * and the sums that the CTAs of a cluster share (matmul_wgmma.cuh says how they work together). */
#pragma once
#include "matmul_wgmma.h"
#include "matmul_wgmma_turned.cuh"

template <int kind, int BM, int BN, int splits, bool promoted = false> struct gemm_shape {
  static constexpr int esize = mma_operand<kind>::bytes;
  static constexpr int bk = 128 / esize, mma_steps = 4;
  static constexpr int groups = BM / 64, threads = 128 * (groups + 1);
  static constexpr int a_bytes = BM * 128, b_bytes = BN * 128, stage_bytes = a_bytes + b_bytes * (kind == MMA_3XTF32 ? 2 : 1);
  static constexpr int b_span = BN * esize < 128 ? BN * esize : 128;      /* b with n contiguous: bytes of a swizzled row */
  static constexpr int slice_bytes = 8192;                  /* 64 rows of 128 bytes */
  static constexpr int staging = groups * 2 * slice_bytes;
  static constexpr int join_bytes = (splits - 1) * BM * (BN / splits) * 4;
  static_assert(join_bytes <= staging, "the others' sums have no room");
  static constexpr int room = 232448 - 1024 - 512 - staging;
  static constexpr int stages = room / stage_bytes > 12 ? 12 : room / stage_bytes;
  static constexpr int shared = stages * stage_bytes + staging + 1024 + 512;
  static constexpr int piece = BN > 128 ? 128 : BN;        /* columns promoted together */
  static constexpr bool spare_registers = groups == 2 && BN + (promoted ? piece : 0) >= 256;
};

/* Clears the first stages, before the ring is made. */
template <class shape> __device__ __forceinline__ void gemm_clear(unsigned char *raw, int stages)
{
  const uint32_t data = (shared_address(raw) + 1023) & ~1023u;
  for (int i = threadIdx.x; i < min(stages, shape::stages) * shape::stage_bytes / 16; i += shape::threads)
    asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};" :: "r"(data + i * 16), "r"(0) : "memory");
  if (stages) proxy_fence();
}

/* A CTA's ring of stages and a position in it: each thread that fills or empties stages keeps its own position. */
template <class shape> struct gemm_ring {
  unsigned char *shared;
  uint32_t data, staging, full, empty, joined;
  int stage, phase;

  __device__ __forceinline__ gemm_ring(unsigned char *raw) : stage(0), phase(0)
  {
    shared = (unsigned char *)(((uintptr_t)raw + 1023) & ~(uintptr_t)1023);
    data = shared_address(shared);
    staging = data + shape::stages * shape::stage_bytes;
    full = staging + shape::staging;
    empty = full + 8 * shape::stages;
    joined = empty + 8 * shape::stages;
    if (threadIdx.x == 0) {
      for (int i = 0; i < shape::stages; i++) {
        barrier_init(full + 8 * i, 1);
        barrier_init(empty + 8 * i, 4 * shape::groups);
      }
      barrier_init(joined, 1);
      barrier_init_fence();
      if (shape::join_bytes) barrier_expect(joined, shape::join_bytes);
    }
    __syncthreads();
    if (shape::join_bytes) cluster_arrive();                /* gemm_join waits for the other CTAs' */
  }
  __device__ __forceinline__ uint32_t a() const { return data + stage * shape::stage_bytes; }
  __device__ __forceinline__ uint32_t b() const { return a() + shape::a_bytes; }
  __device__ __forceinline__ uint32_t slices(int group) const { return staging + group * 2 * shape::slice_bytes; }       /* a warpgroup's staging */
  __device__ __forceinline__ void next() { if (++stage == shape::stages) stage = 0, phase ^= 1; }
  /* Producer: waits for the stage to be free, sets the byte count of its full barrier and returns that barrier. */
  __device__ __forceinline__ uint32_t claim(uint32_t bytes = shape::stage_bytes)
  {
    barrier_wait(empty + 8 * stage, phase ^ 1);
    barrier_expect(full + 8 * stage, bytes);
    return full + 8 * stage;
  }
  /* Consumer: waits for the stage to be filled; release: each warp reports that it has read stage `read`. */
  __device__ __forceinline__ void wait() const { barrier_wait(full + 8 * stage, phase); }
  __device__ __forceinline__ void release(int read) const { if (threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * read); }
};

/* Adds up a split sum: e gets this CTA's columns, the rank-th part of the tile's. What the other CTAs send arrives in the staging
 * area and is added in a fixed order. */
template <int BN, int splits, class shape>
__device__ __forceinline__ void gemm_join(float (&d)[BN / 2], float (&e)[BN / 2 / splits], const gemm_ring<shape> &ring, int group)
{
  constexpr int part = BN / 2 / splits, quads = part / 4, row = 128 * 16;        /* row: 16 bytes for each thread */
  uint32_t rank = cluster_rank(), at = ring.slices(group) + threadIdx.x % 128 * 16;
  cluster_wait();                         /* the other CTAs' barriers are initialised */
#pragma unroll
  for (int to = 0; to < splits; to++) {
    if (to == rank) continue;
    uint32_t there = cluster_address(at + ((rank - to + splits) % splits - 1) * quads * row, to), bar = cluster_address(ring.joined, to);
#pragma unroll
    for (int q = 0; q < quads; q++) {
      const float *p = d + to * part + 4 * q;
      cluster_send(there + q * row, p[0], p[1], p[2], p[3], bar);
    }
  }
#pragma unroll
  for (int i = 0; i < part; i++) {        /* e[i] = d[rank * part + i], with constant indices */
    e[i] = d[i];
#pragma unroll
    for (int to = 1; to < splits; to++) e[i] = to == rank ? d[to * part + i] : e[i];
  }
  barrier_wait(ring.joined, 0);
#pragma unroll
  for (int next = 1; next < splits; next++) {               /* from the CTA of rank (rank + next) % splits */
#pragma unroll
    for (int q = 0; q < quads; q++) {
      float v[4];
      asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
                   : "r"(at + ((next - 1) * quads + q) * row) : "memory");
#pragma unroll
      for (int i = 0; i < 4; i++) e[4 * q + i] += v[i];
    }
  }
}

/* d = sum of the products of the next `count` >= 1 stages, for the rows of warpgroup `group`. ta, tb: m, n are contiguous, not k. */
template <int kind, int BN, int ta, int tb, class shape, class acc>
__device__ __forceinline__ void gemm_multiply(gemm_ring<shape> &ring, acc (&d)[BN / 2], int group, int count)
{
  constexpr int span = tb ? shape::b_span : 128, step_a = (ta ? 16 * 128 : 32) >> 4, step_b = (tb ? 16 * span : 32) >> 4;
  uint64_t desc_a = mma_descriptor(ring.data + group * 8192, 16, 1024, 128);
  uint64_t desc_b = mma_descriptor(ring.data + shape::a_bytes, tb ? span * shape::bk : 16, 8 * span, span);
  int previous = 0, i = 0;
  do {                                    /* not a for: a path around the loop would make ptxas serialise the products */
    ring.wait();
    uint64_t a = desc_a + ring.stage * (shape::stage_bytes >> 4), b = desc_b + ring.stage * (shape::stage_bytes >> 4);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < shape::mma_steps; k++) wgmma_columns<kind, ta, tb, BN>(d, a + k * step_a, b + k * step_b, i > 0 || k > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (i > 0) ring.release(previous);
    previous = ring.stage;
    ring.next();
  } while (++i < count);
  wgmma_wait<0>();
  ring.release(previous);
}

/* The same for tf32 with m or n contiguous: while a stage is being multiplied, the next one is turned; in registers only if there is room. */
template <int BN, bool ta, bool tb, class shape>
__device__ __forceinline__ void gemm_multiply_turned(gemm_ring<shape> &ring, float (&d)[BN / 2], int group, int count)
{
  constexpr bool ahead = shape::groups * BN < 2 * 128;
  uint32_t rows[16], next[16];
  auto turn = [&] {
    ring.wait();
    if (tb) turned_columns<BN, shape::groups * 128>(ring.b(), 1 + shape::groups);
  };
  turn();
  if (ta) turned_rows(ring.a() + group * 8192, rows);
  int i = 0;
  do {
    const uint64_t a = mma_descriptor(ring.a() + group * 8192, 16, 1024, 128), b = mma_descriptor(ring.b(), 16, 1024, 128);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < shape::mma_steps; k++) {
      if constexpr (ta) wgmma_tf32(d, rows + 4 * k, b + k * 2, i > 0 || k > 0);
      else wgmma<MMA_TF32, 0, 0>(d, a + k * 2, b + k * 2, i > 0 || k > 0);
    }
    wgmma_commit();
    const int stage = ring.stage;
    ring.next();
    if (++i < count) {
      turn();
      if (ta && ahead) turned_rows(ring.a() + group * 8192, next);
    }
    wgmma_wait<0>();
    ring.release(stage);
    if (ta && !ahead && i < count) turned_rows(ring.a() + group * 8192, rows);
    if constexpr (ta && ahead) {
#pragma unroll
      for (int k = 0; k < 16; k++) {
        asm volatile("" : "+r"(next[k]));                   /* not before the wait: the products read the registers */
        rows[k] = next[k];
      }
    }
  } while (i < count);
}

/* The same with each stage's products separate: three per step for 3xTF32, the smallest first, or (promoted) added in f32, in
 * halves where registers cannot hold both sums. */
template <int kind, int BN, bool ta, class shape>
__device__ __forceinline__ void gemm_multiply_apart(gemm_ring<shape> &ring, float (&d)[BN / 2], int group, int count)
{
  uint64_t desc_a = mma_descriptor(ring.data + group * 8192, 16, 1024, 128),
           desc_b = mma_descriptor(ring.data + shape::a_bytes, 16, 1024, 128);
  int i = 0;
  if constexpr (kind != MMA_3XTF32) {
#pragma unroll
    for (int j = 0; j < BN / 2; j++) d[j] = 0;
  }
  do {
    ring.wait();
    uint64_t a = desc_a + ring.stage * (shape::stage_bytes >> 4), b = desc_b + ring.stage * (shape::stage_bytes >> 4);
    if constexpr (kind == MMA_3XTF32) {
      uint32_t hi[16], lo[16];
      if constexpr (ta) {
        uint32_t rows[16];
        turned_rows(ring.a() + group * 8192, rows);
#pragma unroll
        for (int j = 0; j < 16; j++) mma_split(__uint_as_float(rows[j]), hi[j], lo[j]);
      } else {
        mma_split_rows(ring.a() + group * 8192, hi, lo);
      }
      wgmma_fence();
#pragma unroll
      for (int k = 0; k < shape::mma_steps; k++) {
        wgmma_tf32(d, lo + 4 * k, b + k * 2, i > 0 || k > 0);
        wgmma_tf32(d, hi + 4 * k, b + (shape::b_bytes >> 4) + k * 2, 1);
        wgmma_tf32(d, hi + 4 * k, b + k * 2, 1);
      }
      wgmma_commit();
      wgmma_wait<0>();
    } else {
      constexpr int piece = shape::piece;
      float part[piece / 2];
#pragma unroll
      for (int h = 0; h < BN / piece; h++) {
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < shape::mma_steps; k++) wgmma<kind, 0, 0>(part, a + k * 2, b + h * (piece * 128 >> 4) + k * 2, k > 0);
        wgmma_commit();
        wgmma_wait<0>();
#pragma unroll
        for (int j = 0; j < piece / 2; j++) {
          asm volatile("" : "+f"(part[j]));                 /* keeps the reads after the wait */
          d[h * piece / 2 + j] += part[j];
        }
      }
    }
    ring.release(ring.stage);
    ring.next();
  } while (++i < count);
}

/* Adds this thread's sums of the earlier blocks of k to those of a block and, unless it is the last, keeps the total. */
template <int count> __device__ __forceinline__ void gemm_block(const cuda_gemm &g, float (&d)[count], bool first, bool last)
{
  const int workers = (int)blockDim.x - 128;
  float *const kept = g.kept + (int64_t)blockIdx.x * count * workers + threadIdx.x - 128;
#pragma unroll
  for (int i = 0; i < count; i++) {
    if (!first) d[i] += kept[i * workers];
    if (!last) kept[i * workers] = d[i];
  }
}
