/* conv_tf32.cu -- kernel of conv_tf32: 128 gathered rows by BN packed columns, tf32 wgmma.
 *
 * A producer warp fills a ring of stages of 32 k: windows of the gathered tensor (TMA im2col), and the packed operand, high and
 * low part, stored in shared memory order. Two consumer warpgroups of 64 rows multiply them, in tf32 straight from shared memory, a stage
 * while the next is waited for. Otherwise they load the gathered operand to registers, where it is transposed if its rows are channels
 * (gradient by the filter), and for three products split:
 *
 *   x = high + low, high the 11 leading bits, low the rest      x w = high high' + high low' + low high' (+ low low', left out)
 *
 * Infinity must not meet a low part of 0: where x is infinite, 1 stands for it beside low parts, and where the packed operand is
 * infinite its low part is that and its high part 1. */
#include "conv_tf32.h"
#include "cuda_backend.h"
#include "program/steps.cuh"
#include "kit/divisor.h"
#include "kit/early.h"
#include "kit/wgmma.cuh"

template <int BN, int products> struct conv_tf32_shape {
  static constexpr int a_bytes = CUDA_TF32_ROWS * 128, half_b = BN * 128, b_bytes = half_b * (products == 3 ? 2 : 1);
  static constexpr int stage_bytes = a_bytes + b_bytes, staging = 2 * 9216;
  static constexpr int room = (232448 - 1024 - 512 - staging) / stage_bytes, stages = room > 8 ? 8 : room;
  static constexpr int shared = stages * stage_bytes + staging + 1024 + 512;
  static constexpr bool spare_registers = BN > 128;
};

struct conv_unit { int m, n, part, first, last; };          /* tile coordinates; range of k steps of the partial sum, or the class */

template <bool filter> __device__ __forceinline__ conv_unit conv_unit_at(const cuda_conv_tf32 &g, int i)
{
  conv_unit u;
  int tiles = g.tiles_m * g.tiles_n;
  if (!filter && g.turns) {                                 /* a block gets each class in turn: as many run as are a multiple of them */
    u.part = (i + i / (int)gridDim.x) % g.parts;
    i /= g.parts;
  } else {
    u.part = i / tiles;
    i -= u.part * tiles;
  }
  u.m = i / g.tiles_n;                                      /* neighbouring blocks gather the same rows */
  u.n = i - u.m * g.tiles_n;
  u.first = filter ? u.part * g.share : g.classes.of[u.part].start;
  u.last = filter ? min(u.first + g.share, g.k_steps) : u.first + g.classes.of[u.part].steps;
  return u;
}

/* Where a unit's stages come from: 128 pixels of 32 channels at a tap; or (filter) four blocks of 32 channels at a tap each, 32 pixels. What
 * does not change from stage to stage is found once; there are no divisions by what is known only in the kernel. */
template <bool filter> struct conv_source {
  const cuda_conv_tf32 &g;
  int w, h, d, n;                         /* where the first pixel's window begins */
  int c[4], s[4], r[4], q[4];             /* the blocks' channels and taps, W, H, D */
  const cuda_conv_class &k;

  __device__ __forceinline__ void from_pixel(int pixel)
  {
    uint32_t rest, column, plane;
    const uint32_t image = cuda_quotient(pixel, g.by_hw, &rest), row = cuda_quotient(rest, g.by_w, &column);
    w = column * g.stride_w + g.start_w, h = row * g.stride_h + g.start_h;
    n = image, d = 0;
    if (g.planes) n = cuda_quotient(image, g.by_planes, &plane), d = plane * g.stride_d + g.start_d;
  }
  __device__ __forceinline__ conv_source(const cuda_conv_tf32 &g, const conv_unit &u) : g(g), k(g.classes.of[filter ? 0 : u.part])
  {
    from_pixel(filter ? 0 : u.m * CUDA_TF32_ROWS);
    c[0] = 0, s[0] = k.first[0], r[0] = k.first[1], q[0] = k.first[2];
#pragma unroll
    for (int i = 0; i < (filter ? 4 : 0); i++) {
      const int at = min(u.m * 4 + i, g.blocks - 1), tap = at / g.chunks, line = tap / g.taps_w;
      c[i] = (at - tap * g.chunks) * 32, s[i] = tap - line * g.taps_w;
      q[i] = line / g.taps_h, r[i] = line - q[i] * g.taps_h;
    }
  }
  __device__ __forceinline__ void fetch(int step, uint32_t to, uint32_t bar)
  {
    if (filter) from_pixel(step * CUDA_TF32_DEPTH);
#pragma unroll
    for (int i = 0; i < (filter ? 4 : 1); i++) {
      const uint32_t part = to + i * 4096;
      const int dw = s[i] * g.dilation_w, dh = r[i] * g.dilation_h;
      if (g.planes) tma_load_im2col(part, &g.a, c[i], w, h, d, n, dw, dh, q[i] * g.dilation_d, bar);
      else tma_load_im2col(part, &g.a, c[i], w, h, n, dw, dh, bar);
    }
    if (filter || (c[0] += 32) < g.chunks * 32) return;
    c[0] = 0;                             /* the next tap */
    if (++s[0] == k.first[0] + k.taps[0]) {
      s[0] = k.first[0];
      if (++r[0] == k.first[1] + k.taps[1]) r[0] = k.first[1], q[0]++;
    }
  }
};

/* This thread's fragments of 64 rows by 32 k, for four instructions, from swizzled rows of 128 bytes. */
template <bool filter> __device__ __forceinline__ void conv_fragments(float (&a)[4][4], uint32_t from)
{
  int warp = threadIdx.x % 128 / 32, g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
#pragma unroll
  for (int k = 0; k < 4; k++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      uint32_t at;
      if (filter) {             /* memory rows are pixels; k = q is pixel 2q and k = q + 4 the next, which matches the packing */
        int pixel = k * 8 + 2 * q + i / 2, c = warp % 2 * 16 + g + i % 2 * 8;
        at = warp / 2 * 4096 + pixel * 128 + (((c >> 2) ^ (pixel & 7)) << 4) + (c & 3) * 4;
      } else {
        at = (warp * 16 + g + i % 2 * 8) * 128 + (((k * 2 + i / 2) ^ g) << 4) + q * 4;
      }
      asm volatile("ld.shared.f32 %0, [%1];" : "=f"(a[k][i]) : "r"(from + at) : "memory");
    }
}

/* The stages of a unit, from `stage` and `phase` on, in tf32, both operands from shared memory; b: the packed one's descriptor. */
template <class shape, int BN>
__device__ __forceinline__ void conv_multiply(float (&d)[BN / 2], uint32_t ring, uint64_t b, uint32_t full, int group, int count,
                                              int &stage, int &phase)
{
  const uint64_t a = mma_descriptor(ring + group * 8192, 16, 1024, 128);
  const uint32_t empty = full + 8 * shape::stages;
  const bool first = threadIdx.x % 32 == 0;
  int previous = 0, step = 0;
  do {                                    /* do: a path around the loop would make ptxas serialise the products */
    const uint64_t at = stage * (shape::stage_bytes >> 4);
    barrier_wait(full + 8 * stage, phase);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) wgmma<MMA_TF32, 0, 0>(d, a + at + k * 2, b + at + k * 2, step > 0 || k > 0);
    wgmma_commit();
    wgmma_wait<1>();
    if (first && step > 0) barrier_arrive(empty + 8 * previous);
    previous = stage;
    if (++stage == shape::stages) stage = 0, phase ^= 1;
  } while (++step < count);
  wgmma_wait<0>();
  if (first) barrier_arrive(empty + 8 * previous);
}

/* The same of transposed rows, or with the products of high and low parts: rows from registers. */
template <class shape, int BN, int products, bool filter>
__device__ __forceinline__ void conv_multiply_apart(float (&d)[BN / 2], uint32_t ring, uint64_t high, uint32_t full, int group, int count,
                                                    int &stage, int &phase)
{
  const uint64_t low = high + (shape::half_b >> 4);
  const uint32_t empty = full + 8 * shape::stages;
  int step = 0;
  do {                                    /* do: as above */
    float a[4][4];
    uint32_t top[4][4], beside[4][4], rest[4][4];
    uint64_t b = stage * (shape::stage_bytes >> 4);
    barrier_wait(full + 8 * stage, phase);
    conv_fragments<filter>(a, ring + stage * shape::stage_bytes + group * 8192);
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        uint32_t bits = __float_as_uint(a[k][j]);
        bool infinite = (bits & 0x7fffffff) == 0x7f800000;
        top[k][j] = a[k][j] == a[k][j] ? bits & 0xffffe000 : 0x7fffffff;
        beside[k][j] = infinite ? (bits & 0x80000000) | 0x3f800000 : top[k][j];
        rest[k][j] = infinite ? 0 : __float_as_uint(a[k][j] - __uint_as_float(top[k][j]));
      }
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; k++) {
      wgmma_tf32(d, top[k], high + b + k * 2, step > 0 || k > 0);
      if constexpr (products == 3) {
        wgmma_tf32(d, beside[k], low + b + k * 2, 1);
        wgmma_tf32(d, rest[k], high + b + k * 2, 1);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
    if (threadIdx.x % 32 == 0) barrier_arrive(empty + 8 * stage);
    if (++stage == shape::stages) stage = 0, phase ^= 1;
  } while (++step < count);
}

/* Applies the steps to `count` elements, along rows (along 1) from row `at` of an image on or along columns (along 0) from col
 * on, and stores those within limit (W, H, D; NULL: all). from: elements to the part's first. */
__device__ __forceinline__ void conv_emit(const cuda_conv_tf32 &g, float (&v)[8], int image, int at, int col, int64_t from,
                                          const int32_t *limit, int count)
{
  while (true) {
    int n = g.along ? min(count, g.image_rows - at) : count;
    float w[8];
#pragma unroll
    for (int i = 0; i < 8; i++) w[i] = v[i];
    steps_apply(g.steps, w, at, col, image, 0, g.along, n);
    uint32_t row, line, whole = cuda_quotient(cuda_quotient(image, g.by_rows, &row), g.by_lines, &line);
    const int wide = !limit ? n : (int)row >= limit[1] || (int)line >= limit[2] ? 0 : g.along ? min(n, limit[0] - at)
                     : at < limit[0] ? n : 0;
    if (wide > 0)
      store8(w, g.out, g.out_dtype, from + at * g.out_stride[0] + col * g.out_stride[1] + whole * g.out_stride[2] +
                                      row * g.out_stride[3] + line * g.out_stride[4],
             g.out_stride[g.along ? 0 : 1], wide);
    count -= n;
    if (count <= 0) return;
    image++, at = 0;                      /* the rest belongs to the next image */
    for (; n > 0; n--)
#pragma unroll
      for (int i = 0; i < 7; i++) v[i] = v[i + 1];
  }
}

/* Stores slices of 32 columns through shared memory, in the order in which out is contiguous; a thread takes eight elements, twice. */
template <int BN>
__device__ __forceinline__ void conv_store(const cuda_conv_tf32 &g, float (&d)[BN / 2], int row0, int col0, int64_t out,
                                           const int32_t *limit, float *staging, int id)
{
  int t = threadIdx.x % 128, warp = t / 32, lane = t % 32;
  int row_pitch = g.along ? 1 : 36, col_pitch = g.along ? 68 : 1;
  int row[2], col[2], image[2], at[2];
#pragma unroll
  for (int i = 0; i < 2; i++) {
    row[i] = g.along ? t % 8 * 8 : t / 4 + 32 * i;
    col[i] = g.along ? t / 8 + 16 * i : t % 4 * 8;
    image[i] = (row0 + row[i]) / g.image_rows;
    at[i] = row0 + row[i] - image[i] * g.image_rows;
  }
  float *to = staging + (warp * 16 + lane / 4) * row_pitch + lane % 4 * 2 * col_pitch;
#pragma unroll 1
  for (int s = 0; s < BN / 32; s++) {
    int col_s = col0 + s * 32;
    if (col_s >= g.n) break;
    group_sync(id, 128);
#pragma unroll
    for (int k = 0; k < BN / 32; k++)                       /* k == s, with constant register indices */
      if (k == s) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const float *p = d + (k * 4 + j) * 4;
          to[j * 8 * col_pitch] = p[0];
          to[(j * 8 + 1) * col_pitch] = p[1];
          to[j * 8 * col_pitch + 8 * row_pitch] = p[2];
          to[(j * 8 + 1) * col_pitch + 8 * row_pitch] = p[3];
        }
      }
    group_sync(id, 128);
    float v[2][8];
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const float4 *from = (const float4 *)(staging + row[i] * row_pitch + col[i] * col_pitch);
      float4 lo = from[0], hi = from[1];
      v[i][0] = lo.x, v[i][1] = lo.y, v[i][2] = lo.z, v[i][3] = lo.w, v[i][4] = hi.x, v[i][5] = hi.y, v[i][6] = hi.z, v[i][7] = hi.w;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
      int r = row0 + row[i], c = col_s + col[i];
      if (r < g.m && c < g.n) conv_emit(g, v[i], image[i], at[i], c, out, limit, min(8, g.along ? g.m - r : g.n - c));
    }
  }
}

template <int BN, int products, bool filter> __global__ void __launch_bounds__(384, 1) conv_tf32(const __grid_constant__ cuda_conv_tf32 g)
{
  typedef conv_tf32_shape<BN, products> shape;
  extern __shared__ unsigned char shared_raw[];
  unsigned char *shared = (unsigned char *)(((uintptr_t)shared_raw + 1023) & ~(uintptr_t)1023);
  uint32_t ring = shared_address(shared), full = ring + shape::stages * shape::stage_bytes + shape::staging,
           empty = full + 8 * shape::stages;
  if (threadIdx.x == 0) {
    tma_prefetch_map(&g.a);
    for (int i = 0; i < shape::stages; i++) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, 8);
    }
    barrier_init_fence();
  }
  __syncthreads();
  grid_dependents_launch();
  grid_dependency_wait();

  int units = g.tiles_m * g.tiles_n * g.parts, warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0), stage = 0, phase = 0;
  if (warpgroup == 0) {
    if (shape::spare_registers) registers_lower<40>();
    if (threadIdx.x == 0) {
      for (int i = blockIdx.x; i < units; i += gridDim.x) {
        conv_unit u = conv_unit_at<filter>(g, i);
        conv_source<filter> source(g, u);
        for (int step = u.first; step < u.last; step++) {
          uint32_t bar = full + 8 * stage, a = ring + stage * shape::stage_bytes;
          barrier_wait(empty + 8 * stage, phase ^ 1);
          barrier_expect(bar, shape::stage_bytes);
          source.fetch(step, a, bar);
          bulk_load(a + shape::a_bytes, (const char *)g.b + ((int64_t)step * g.tiles_n + u.n) * shape::b_bytes, shape::b_bytes, bar);
          if (++stage == shape::stages) stage = 0, phase ^= 1;
        }
      }
    }
    return;
  }
  if (shape::spare_registers) registers_raise<232>();
  const int group = warpgroup - 1;
  const uint64_t b = mma_descriptor(ring + shape::a_bytes, 16, 1024, 128);
  float *staging = (float *)(shared + shape::stages * shape::stage_bytes) + group * 2304;
  for (int i = blockIdx.x; i < units; i += gridDim.x) {
    conv_unit u = conv_unit_at<filter>(g, i);
    float d[BN / 2];
    if constexpr (products == 1 && !filter) conv_multiply<shape, BN>(d, ring, b, full, group, u.last - u.first, stage, phase);
    else conv_multiply_apart<shape, BN, products, filter>(d, ring, b, full, group, u.last - u.first, stage, phase);
    const cuda_conv_class &k = g.classes.of[filter ? 0 : u.part];
    conv_store<BN>(g, d, u.m * CUDA_TF32_ROWS + group * 64, u.n * BN, filter ? u.part * g.part_stride : k.out,
                   filter || g.parts == 1 ? NULL : k.limit, staging, 1 + group);
  }
}

#define KERNEL(bn, products) { bn, conv_tf32_shape<bn, products>::shared, \
  { (const void *)conv_tf32<bn, products, false>, (const void *)conv_tf32<bn, products, true> } }
const cuda_conv_tf32_kernel cuda_conv_tf32_one[] = {
  KERNEL(64, 1), KERNEL(128, 1), { 192, conv_tf32_shape<192, 1>::shared, { nullptr, (const void *)conv_tf32<192, 1, true> } }
};
const cuda_conv_tf32_kernel cuda_conv_tf32_three[] = { KERNEL(64, 3), KERNEL(128, 3), {} };

qn_status cuda_conv_tf32_launch(const cuda_conv_tf32 *g, const cuda_conv_tf32_kernel *kernel, bool filter, int grid, void *stream)
{
  void *arguments[] = { (void *)g };
  return cuda_launch_kernel(kernel->function[filter], true, dim3(grid), 384, (uint32_t)kernel->shared, arguments, stream, "conv_tf32");
}
