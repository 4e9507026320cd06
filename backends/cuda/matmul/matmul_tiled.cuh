/* matmul_tiled.cuh -- the matrix product for any device from sm_80 on: y = steps(a b), a [M, K], b [K, N], batched, any strides.
 *
 * A CTA computes one tile of y, or one of `splits` parts of its sum over k. Its threads prefetch both operands into a ring of
 * stages by cp.async of 16, 8 or 4 bytes, or, where alignment does not allow that, through registers element by element; a
 * Product multiplies the stages:
 *
 *   BM, BN, BK, threads, stages      the tile; k elements of a stage
 *   esize, rows_a, rows_b            bytes of an element; layout of a stage: rows contiguous, or k
 *   pad_a, pad_b                     bytes of padding of a stage's lines
 *   number, integer, sum[]           the thread's sums
 *   multiply(a, b)                   one stage, from shared memory
 *   put(tile, pitch)                 stores the sums into a tile in shared memory
 *   any                              accepts operands that cp.async cannot copy
 *   again                            recompute sums that are not finite in plain f32
 *
 * Partial sums of a split go to workspace; the CTA that arrives last adds them in the order of k. A CTA's sum of more than a block
 * of k is made block by block, each added to those before, in the same place.
 * The epilogue goes through shared memory and applies the steps to eight elements per thread at a time. */
#pragma once
#include "matmul_tiled.h"
#include "kit/sm80.cuh"
#include "program/steps.cuh"

/* ---- one stage of an operand ----------------------------------------------------------------------- */

/* Layout in shared memory: `outer` lines of `inner` elements, `pitch` bytes apart. A pad of 16 keeps 16-byte reads of 8 lines
 * free of bank conflicts, a pad of 32 reads of 8 words from each of 4 lines. */
template <int rows, int bk, int esize, bool rows_contiguous, int pad = 16> struct tiled_stage {
  static constexpr int outer = rows_contiguous ? bk : rows, inner = rows_contiguous ? rows : bk;
  static constexpr int pitch = inner * esize + pad, bytes = outer * pitch;
};

/* Copies a stage of which outer_left lines and inner_left elements exist; the rest is zero-filled. */
template <class stage, int esize, int threads, int width>
__device__ __forceinline__ void tiled_copy(uint32_t to, const char *from, int64_t stride, int outer_left, int inner_left)
{
  constexpr int per_line = stage::inner * esize / width, lines = threads / per_line, turns = (stage::outer + lines - 1) / lines;
  static_assert(threads % per_line == 0, "a line is copied at once");
  int line = threadIdx.x / per_line, at = threadIdx.x % per_line * width;
  int bytes = min(max(min(inner_left, (int)stage::inner) * esize - at, 0), width);  /* clamp first: inner_left * esize may reach 2^31 */
  from += line * stride + at;
  to += line * stage::pitch + at;
#pragma unroll 4
  for (int i = 0; i < turns; i++) {
    if (stage::outer % lines == 0 || line < stage::outer) copy_async<width>(to, from, line < outer_left ? bytes : 0);
    line += lines, from += lines * stride, to += lines * stage::pitch;
  }
}

/* Copies 32-bit words of any strides. A warp takes 8 neighbours along the contiguous dim in 4 lines: whole sectors, no bank conflicts. */
template <class stage, int threads, bool across_lines>
__device__ __forceinline__ void tiled_scatter(uint32_t to, const char *from, int64_t outer_stride, int64_t inner_stride, int outer_left,
                                              int inner_left)
{
  constexpr int eights = across_lines ? stage::outer : stage::inner;
#pragma unroll 4
  for (int i = 0; i < stage::outer * stage::inner / threads; i++) {
    int e = i * threads + threadIdx.x, x = e % 8 + e / 32 % (eights / 8) * 8, y = e / 8 % 4 + e / (4 * eights) * 4;
    int o = across_lines ? x : y, n = across_lines ? y : x;
    copy_async<4>(to + o * stage::pitch + n * 4, from + o * outer_stride + n * inner_stride, o < outer_left && n < inner_left ? 4 : 0);
  }
}

/* Smaller elements of any alignment and strides: through registers, packed into words along a line. */
template <class stage, int esize, int threads> struct tiled_words {
  static constexpr int per_word = 4 / esize, words = stage::inner / per_word, count = stage::outer * words / threads;
  uint32_t w[count];

  __device__ static void place(int i, bool across, int *o, int *q)
  {
    int e = i * threads + threadIdx.x;
    *o = across ? e % stage::outer : e / words;
    *q = across ? e / stage::outer : e % words;
  }
  __device__ void load(const char *from, int64_t outer_stride, int64_t inner_stride, int outer_left, int inner_left)
  {
    bool across = inner_stride != esize;
#pragma unroll
    for (int i = 0; i < count; i++) {
      int o, q;
      place(i, across, &o, &q);
      w[i] = 0;
#pragma unroll
      for (int j = 0; j < per_word; j++) {
        int n = q * per_word + j;
        const char *p = from + o * outer_stride + n * inner_stride;
        if (o < outer_left && n < inner_left) w[i] |= (uint32_t)(esize == 2 ? *(const uint16_t *)p : *(const uint8_t *)p) << 8 * esize * j;
      }
    }
  }
  __device__ void store(uint32_t to, bool across) const
  {
#pragma unroll
    for (int i = 0; i < count; i++) {
      int o, q;
      place(i, across, &o, &q);
      shared_store(to + o * stage::pitch + q * 4, w[i]);
    }
  }
};
template <class stage, int threads> struct tiled_words<stage, 4, threads> {          /* 32-bit words are always copied by cp.async */
  __device__ void load(const char *, int64_t, int64_t, int, int) {}
  __device__ void store(uint32_t, bool) const {}
};

/* An operand on its walk along k, from the tile's first row on. */
template <int rows, int bk, int esize, bool rows_contiguous, int threads, bool any, int pad = 16> struct tiled_operand {
  typedef tiled_stage<rows, bk, esize, rows_contiguous, pad> stage;
  const cuda_tiled_side &side;
  const char *from;                       /* at k 0 */
  int64_t outer_stride, inner_stride;     /* bytes */
  int rows_left;
  tiled_words<stage, esize, threads> words;

  __device__ tiled_operand(const cuda_tiled_side &s, int row0, int b0, int b1) : side(s)
  {
    from = (const char *)s.p + (row0 * s.row_stride + b0 * s.batch_stride[0] + b1 * s.batch_stride[1]) * esize;
    outer_stride = (rows_contiguous ? s.k_stride : s.row_stride) * esize;
    inner_stride = (rows_contiguous ? s.row_stride : s.k_stride) * esize;
    rows_left = s.rows - row0;
  }
  /* Starts loading k to k_end, at most bk, into `to`; complete after store() and a wait for the copies. */
  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
    const char *at = from + k * side.k_stride * esize;
    int outer_left = rows_contiguous ? k_end - k : rows_left, inner_left = rows_contiguous ? rows_left : k_end - k;
    switch (side.bytes) {
    case 16: tiled_copy<stage, esize, threads, 16>(to, at, outer_stride, outer_left, inner_left); break;
    case 8:  tiled_copy<stage, esize, threads, 8>(to, at, outer_stride, outer_left, inner_left); break;
    case 4:  tiled_copy<stage, esize, threads, 4>(to, at, outer_stride, outer_left, inner_left); break;
    default:
      if constexpr (!any) {
      } else if constexpr (esize == 4) {
        if (outer_stride == 4) tiled_scatter<stage, threads, true>(to, at, outer_stride, inner_stride, outer_left, inner_left);
        else tiled_scatter<stage, threads, false>(to, at, outer_stride, inner_stride, outer_left, inner_left);
      } else {
        words.load(at, outer_stride, inner_stride, outer_left, inner_left);
      }
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const
  {
    if (any && esize < 4 && side.bytes == 0) words.store(to, inner_stride != esize);
  }
};

/* ---- the epilogue ------------------------------------------------------------------------------------ */

struct tiled_place { int m0, n0, b0, b1; };

/* One sum in plain f32, straight from the formula, for sums that scaling or splitting of large or infinite terms has spoilt. */
static __device__ __noinline__ float tiled_sum_again(const cuda_tiled &g, int row, int col, int b0, int b1)
{
  const float *a = (const float *)g.a.p + row * g.a.row_stride + b0 * g.a.batch_stride[0] + b1 * g.a.batch_stride[1];
  const float *b = (const float *)g.b.p + col * g.b.row_stride + b0 * g.b.batch_stride[0] + b1 * g.b.batch_stride[1];
  float sum = 0;
  for (int k = 0; k < g.k; k++) sum += a[k * g.a.k_stride] * b[k * g.b.k_stride];
  return sum;
}

/* Takes the tile of sums from shared memory through the steps to y, eight at a time along y's contiguous dim; where that would not be in
 * whole units of 16 bytes, across it, so that neighbouring threads store neighbouring elements. Not inlined: the kernels of a file
 * share it. */
template <int BM, int BN, bool again>
__device__ __noinline__ void tiled_finish(const cuda_tiled &g, const float *tile, int pitch, const tiled_place &u)
{
  const int size = g.out_dtype == QN_F32 ? 4 : 2;
  const int64_t at = u.m0 * g.out_stride[0] + u.n0 * g.out_stride[1] + u.b0 * g.out_stride[2] + u.b1 * g.out_stride[3];
  const bool across = ((uintptr_t)g.out + at * size | g.out_stride[g.along ? 1 : 0] * size) & 15;
  const int down = g.along != across;     /* the eight are of a column */
  for (int i = threadIdx.x; i < BM * BN / 8; i += blockDim.x) {
    float v[8];
    int r, c, n;
    if (down) {
      r = across ? i / BN * 8 : i % (BM / 8) * 8, c = across ? i % BN : i / (BM / 8);
      n = u.n0 + c < g.b.rows ? min(8, g.a.rows - (u.m0 + r)) : 0;
    } else {
      r = across ? i % BM : i / (BN / 8), c = across ? i / BM * 8 : i % (BN / 8) * 8;
      n = u.m0 + r < g.a.rows ? min(8, g.b.rows - (u.n0 + c)) : 0;
    }
    if (n <= 0) continue;
#pragma unroll
    for (int e = 0; e < 8; e++) v[e] = tile[(r + (down ? e : 0)) * pitch + c + (down ? 0 : e)];
    int row = u.m0 + r, col = u.n0 + c;
    if (again) {
#pragma unroll
      for (int e = 0; e < 8; e++)
        if (e < n && !isfinite(v[e])) v[e] = tiled_sum_again(g, row + (down ? e : 0), col + (down ? 0 : e), u.b0, u.b1);
    }
    steps_apply(g.steps, v, row, col, u.b0, u.b1, down, n);
    store8(v, g.out, g.out_dtype, at + r * g.out_stride[0] + c * g.out_stride[1], g.out_stride[down ? 0 : 1], n);
  }
}

/* Integers wrap; the only operands, c and bias, are added. */
template <int BM, int BN>
__device__ __noinline__ void tiled_finish_integer(const cuda_tiled &g, const int32_t *tile, int pitch, const tiled_place &u)
{
  for (int i = threadIdx.x; i < BM * BN; i += blockDim.x) {
    int r = g.along ? i % BM : i / BN, c = g.along ? i / BM : i % BN, row = u.m0 + r, col = u.n0 + c;
    if (row >= g.a.rows || col >= g.b.rows) continue;
    uint32_t v = (uint32_t)tile[r * pitch + c];
    for (int k = 0; k < g.steps.n_operands; k++) {
      const cuda_operand &o = g.steps.operand[k];
      v += ((const uint32_t *)o.p)[row * o.stride[0] + col * o.stride[1] + u.b0 * o.stride[2] + u.b1 * o.stride[3]];
    }
    ((uint32_t *)g.out)[row * g.out_stride[0] + col * g.out_stride[1] + u.b0 * g.out_stride[2] + u.b1 * g.out_stride[3]] = v;
  }
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */

template <class Product> struct tiled_shape {
  typedef Product P;
  typedef tiled_operand<P::BM, P::BK, P::esize, P::rows_a, P::threads, P::any, P::pad_a> operand_a;
  typedef tiled_operand<P::BN, P::BK, P::esize, P::rows_b, P::threads, P::any, P::pad_b> operand_b;
  static constexpr int a_bytes = operand_a::stage::bytes, stage_bytes = a_bytes + operand_b::stage::bytes;
  static constexpr int pitch = P::BN + 4, tile_bytes = P::BM * pitch * 4;
  static constexpr int shared = P::stages * stage_bytes > tile_bytes ? P::stages * stage_bytes : tile_bytes;
};

/* This thread's partial sums of a split of a tile in workspace, Product::threads apart. */
template <class Product>
__device__ __forceinline__ typename Product::number *tiled_partial(const cuda_tiled_parts &g, int tile, int tiles, int split)
{
  constexpr int64_t size = (int64_t)(sizeof Product::sum / sizeof *Product::sum) * Product::threads;
  return (typename Product::number *)g.partial + (tile + (int64_t)split * tiles) * size + threadIdx.x;
}
/* Adds the sums of the CTA's earlier blocks to those of a block; unless it is the last, they are kept and p begins anew. */
template <class Product>
__device__ __forceinline__ void tiled_block(Product &p, typename Product::number *kept, bool first, bool last)
{
  constexpr int count = sizeof p.sum / sizeof *p.sum, threads = Product::threads;
#pragma unroll
  for (int i = 0; i < count; i++) {
    if (!first) p.sum[i] += kept[i * threads];
    if (last) continue;
    kept[i * threads] = p.sum[i];
    p.sum[i] = 0;
  }
}
/* Writes this CTA's partial sums to workspace. True for the CTA that arrives last: p then holds the total. */
template <class Product>
__device__ __forceinline__ bool tiled_join(const cuda_tiled_parts &g, Product &p, int tile, int tiles, int split)
{
  constexpr int count = sizeof p.sum / sizeof *p.sum, threads = Product::threads;
  __shared__ bool last;
  typedef typename Product::number number;
  number *first = tiled_partial<Product>(g, tile, tiles, 0), *mine = tiled_partial<Product>(g, tile, tiles, split);
#pragma unroll
  for (int i = 0; i < count; i++) __stcg(mine + i * threads, p.sum[i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&g.ticket[tile], 1) == (uint32_t)g.splits - 1;
    if (last) g.ticket[tile] = 0;
  }
  __syncthreads();
  if (!last) return false;
  __threadfence();
#pragma unroll
  for (int i = 0; i < count; i++) p.sum[i] = 0;
#pragma unroll 2
  for (int s = 0; s < g.splits; s++, first += (int64_t)tiles * count * threads)
#pragma unroll
    for (int i = 0; i < count; i++) p.sum[i] += __ldcg(first + i * threads);
  return true;
}

/* p += a b over k to k_end, through the ring. Operands have load(to, k, k_end), called once per stage in order, and store(to). */
template <class Product, class A, class B>
__device__ __forceinline__ void tiled_sum(Product &p, A &a, B &b, uint32_t ring, int k, int k_end)
{
  typedef tiled_shape<Product> shape;
  typedef Product P;
  int steps = (k_end - k + P::BK - 1) / P::BK, now = 0, ahead = 0;
#pragma unroll 1
  for (int step = 1 - P::stages; step < steps; step++) {    /* below 0 the ring only fills */
    if (step >= 0) {
      copy_async_wait<P::stages - 2>();
      __syncthreads();  /* all threads' copies have landed, and all have finished reading the stage that is refilled next */
    }
    bool more = step + P::stages - 1 < steps;
    uint32_t to = ring + ahead * shape::stage_bytes, at = ring + now * shape::stage_bytes;
    if (more) {
      a.load(to, k + (step + P::stages - 1) * P::BK, k_end);
      b.load(to + shape::a_bytes, k + (step + P::stages - 1) * P::BK, k_end);
    }
    copy_async_commit();
    if (step >= 0) {
      p.multiply(at, at + shape::a_bytes);
      if (++now == P::stages) now = 0;
    }
    if (more) {
      a.store(to);
      b.store(to + shape::a_bytes);
    }
    if (++ahead == P::stages) ahead = 0;
  }
}

template <class Product>
__global__ void __launch_bounds__(Product::threads, Product::resident) matmul_tiled(const __grid_constant__ cuda_tiled g)
{
  typedef tiled_shape<Product> shape;
  typedef Product P;
  extern __shared__ __align__(16) unsigned char shared[];
  uint32_t ring = shared_address(shared);

  int tiles = g.tiles_m * g.tiles_n, unit = blockIdx.x, t = unit % tiles, split = unit / tiles % g.parts.splits,
      batch = unit / tiles / g.parts.splits;
  int row = g.group * g.tiles_n, band = t / row, in_band = t - band * row, height = min(g.group, g.tiles_m - band * g.group);
  tiled_place u = { (band * g.group + in_band % height) * P::BM, in_band / height * P::BN, batch % g.batch0, batch / g.batch0 };
  int k = split * g.share, k_end = min(g.k, k + g.share);

  typename shape::operand_a a(g.a, u.m0, u.b0, u.b1);
  typename shape::operand_b b(g.b, u.n0, u.b0, u.b1);
  P p(threadIdx.x);
  const int tile = batch * tiles + t, all = tiles * (int)(gridDim.x / tiles / g.parts.splits);
#pragma unroll 1
  for (int from = k;;) {
    const int to = min(k_end - from, g.block) + from;
    tiled_sum(p, a, b, ring, from, to);
    if (P::integer || k_end - k <= g.block) break;
    tiled_block(p, tiled_partial<P>(g.parts, tile, all, split), from == k, to == k_end);
    if (to == k_end) break;
    from = to;
    __syncthreads();                      /* all have read the ring, which the next block fills */
  }
  if (g.parts.splits > 1 && !tiled_join(g.parts, p, tile, all, split)) return;

  __syncthreads();                        /* the ring's memory is reused for the tile */
  p.put((typename P::number *)shared, shape::pitch);
  __syncthreads();
  if constexpr (P::integer) tiled_finish_integer<P::BM, P::BN>(g, (const int32_t *)shared, shape::pitch, u);
  else tiled_finish<P::BM, P::BN, P::again>(g, (const float *)shared, shape::pitch, u);
}

/* Table entry of the kernels P<rows_a, rows_b>. */
#define TILED_KERNEL(P, rate)                                                                                              \
  { P<false, false>::BM, P<false, false>::BN, P<false, false>::BK, P<false, false>::threads, P<false, false>::resident, rate, \
    P<false, false>::rows_a == P<true, false>::rows_a ? (int)P<true, false>::rows_a : -1, !P<false, false>::any,            \
    { { tiled_shape<P<false, false>>::shared, tiled_shape<P<false, true>>::shared },                                        \
      { tiled_shape<P<true, false>>::shared, tiled_shape<P<true, true>>::shared } },                                        \
    { { (const void *)matmul_tiled<P<false, false>>, (const void *)matmul_tiled<P<false, true>> },                          \
      { (const void *)matmul_tiled<P<true, false>>, (const void *)matmul_tiled<P<true, true>> } } }
