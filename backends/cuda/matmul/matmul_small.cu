/* matmul_small.cu -- 16-bit products so short that they would end before a ring of stages is full, at any alignment.
 *
 *   y = chain(alpha a b + beta c + bias)     either dim of an operand contiguous; any strides of y
 *
 * A CTA computes 32 x 32 of y; its warps share k, 16 of every 256 each, and their sums are added in a fixed order. Lines of an
 * operand are copied by cp.async in aligned 16-byte pieces, starting at the last aligned address before their first element, so
 * that a line stays as misaligned as in memory, and its reader shifts it. A short k is in flight all at once. */
#include <climits>
#include "engines.h"
#include "kit/early.cuh"
#include "matmul_problem.h"
#include "matmul_tiled.cuh"

enum { TILE = 32, WARPS = 16, DEPTH = 16 * WARPS, THREADS = 32 * WARPS, STAGES = 4, TILE_PITCH = TILE + 4 };

/* ---- an operand ------------------------------------------------------------------------------------ */

/* An operand on its walk along k: this thread's pieces of a stage's lines. A line has the same misalignment in every stage. */
template <bool rows_contiguous> struct small_operand {
  typedef tiled_stage<TILE, DEPTH, 2, rows_contiguous> stage;
  static constexpr int parts = stage::pitch / 16, count = stage::outer * parts, turns = (count + THREADS - 1) / THREADS;
  const char *from[turns];                /* address in the next stage */
  int bytes[turns];                       /* valid bytes from there on; k contiguous: less those of k */
  uint32_t base, pitch;                   /* address of the tile's first line and distance of lines, low 32 bits */
  int rows_left;
  int64_t pace;                           /* bytes between two stages */

  __device__ small_operand(const cuda_tiled_side &s, int row0, int b0, int b1)
  {
    const char *first = (const char *)s.p + (row0 * s.row_stride + b0 * s.batch_stride[0] + b1 * s.batch_stride[1]) * 2;
    int64_t stride = (rows_contiguous ? s.k_stride : s.row_stride) * 2;
    base = (uint32_t)(uintptr_t)first, pitch = (uint32_t)stride;
    rows_left = s.rows - row0;
    pace = DEPTH * s.k_stride * 2;
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int e = i * THREADS + threadIdx.x, line = e / parts, part = e % parts;
      from[i] = first + line * stride - shift(line) + part * 16;
      bytes[i] = shift(line) - part * 16 + (rows_contiguous ? min(rows_left, (int)TILE) * 2 : line < rows_left ? 0 : INT_MIN / 4 * 3);
    }
  }
  __device__ __forceinline__ int shift(int line) const { return (base + line * pitch) & 15; }

  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
#pragma unroll
    for (int i = 0; i < turns; i++) {
      int e = i * THREADS + threadIdx.x, line = e / parts;
      if ((i + 1) * THREADS > count && e >= count) break;
      int there = rows_contiguous ? (line < k_end - k ? bytes[i] : 0) : bytes[i] + (k_end - k) * 2;
      copy_async<16>(to + line * stage::pitch + e % parts * 16, from[i], min(max(there, 0), 16));
      from[i] += pace;
    }
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* This thread's elements of a stage: in each group i of eight rows those at k 2q, 2q + 1 (half 0) or 8 further (half 1) of its
 * warp's 16 k, q = lane % 4. The lower k is in the lower half of the word. */
template <bool rows_contiguous> struct small_elements {
  typedef tiled_stage<TILE, DEPTH, 2, rows_contiguous> stage;
  int at[4], turn[4];  /* at: byte offset for each i (rows contiguous: for each k); turn: bits to shift a pair down in two words */
  int odd;                                /* can a pair straddle two words? */

  __device__ small_elements(const small_operand<rows_contiguous> &o)
  {
    int lane = threadIdx.x % 32, row = lane / 4, k = threadIdx.x / 32 * 16 + lane % 4 * 2;
    odd = (o.base | o.pitch) & 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      int line = rows_contiguous ? k + i / 2 * 8 + i % 2 : row + i * 8;
      int from = line * stage::pitch + o.shift(line) + (rows_contiguous ? row : k) * 2;
      at[i] = rows_contiguous ? from : from & ~3, turn[i] = (from & 2) * 8;
    }
  }
  __device__ __forceinline__ uint32_t pair(uint32_t operand, int i, int half) const
  {
    uint32_t lo, hi;
    if (rows_contiguous) {
      asm volatile("ld.shared.u16 %0, [%1];" : "=r"(lo) : "r"(operand + at[half * 2] + i * 16) : "memory");
      asm volatile("ld.shared.u16 %0, [%1];" : "=r"(hi) : "r"(operand + at[half * 2 + 1] + i * 16) : "memory");
      return lo | hi << 16;
    }
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(lo) : "r"(operand + at[i] + half * 16) : "memory");
    hi = 0;
    asm volatile("{.reg .pred p; setp.ne.b32 p, %2, 0; @p ld.shared.u32 %0, [%1];}"
                 : "+r"(hi)
                 : "r"(operand + at[i] + half * 16 + 4), "r"(odd)
                 : "memory");
    return __funnelshift_r(lo, hi, turn[i]);
  }
};

/* ---- the kernel -------------------------------------------------------------------------------------- */

/* A Product of matmul_tiled.cuh. */
template <class mma, bool ROWS_A, bool ROWS_B> struct small_product {
  static constexpr int BM = TILE, BN = TILE, BK = DEPTH, threads = THREADS, stages = STAGES, esize = 2;
  static constexpr bool rows_a = ROWS_A, rows_b = ROWS_B, any = false;
  static constexpr int pad_a = 16, pad_b = 16;
  small_elements<rows_a> a;
  small_elements<rows_b> b;
  float sum[2][4][4];                     /* [16 rows][8 columns][fragment] */
  int left;                               /* k left from this warp's first one in the next stage */

  __device__ small_product(const small_operand<rows_a> &a, const small_operand<rows_b> &b, int k)
    : a(a), b(b), sum{}, left(k - threadIdx.x / 32 * 16) {}
  __device__ __forceinline__ void multiply(uint32_t stage_a, uint32_t stage_b)
  {
    left -= DEPTH;
    if (left <= -DEPTH) return;
    uint32_t x[2][4], y[4][2];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) x[i][j] = a.pair(stage_a, i * 2 + j % 2, j / 2);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 2; j++) y[i][j] = b.pair(stage_b, i, j);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) mma::product(sum[i][j], x[i], y[j][0], y[j][1]);
  }
  /* Stores each warp's sums as a tile of its own, then adds them all into the first. */
  __device__ __forceinline__ void put(float *tile) const
  {
    int lane = threadIdx.x % 32;
    float *to = tile + threadIdx.x / 32 * TILE * TILE_PITCH + lane / 4 * TILE_PITCH + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        *(float2 *)(to + i * 16 * TILE_PITCH + j * 8) = make_float2(sum[i][j][0], sum[i][j][1]);
        *(float2 *)(to + (i * 16 + 8) * TILE_PITCH + j * 8) = make_float2(sum[i][j][2], sum[i][j][3]);
      }
    __syncthreads();
    float2 *mine = (float2 *)(tile + threadIdx.x / 16 * TILE_PITCH + threadIdx.x % 16 * 2), all = *mine;
#pragma unroll
    for (int w = 1; w < WARPS; w++) {
      float2 v = mine[w * TILE * TILE_PITCH / 2];
      all.x += v.x, all.y += v.y;
    }
    *mine = all;
  }
};
static_assert(TILE * TILE == THREADS * 2, "two sums a thread");

template <class mma, bool rows_a, bool rows_b>
__global__ void __launch_bounds__(THREADS, 1) matmul_small(const __grid_constant__ cuda_tiled g)
{
  extern __shared__ __align__(16) unsigned char shared[];
  int tiles = g.tiles_m * g.tiles_n, batch = blockIdx.x / tiles, t = blockIdx.x - batch * tiles;
  tiled_place u = { t % g.tiles_m * TILE, t / g.tiles_m * TILE, batch % g.batch0, batch / g.batch0 };
  small_operand<rows_a> a(g.a, u.m0, u.b0, u.b1);
  small_operand<rows_b> b(g.b, u.n0, u.b0, u.b1);
  small_product<mma, rows_a, rows_b> p(a, b, g.k);
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* earlier kernels of the stream may still write a and b */
#endif
  tiled_sum(p, a, b, shared_address(shared), 0, g.k);
  __syncthreads();                        /* the ring's memory is reused for the tiles */
  p.put((float *)shared);
  __syncthreads();
  tiled_finish<TILE, TILE, false>(g, (const float *)shared, TILE_PITCH, u);
}

/* ---- host ---------------------------------------------------------------------------------------------- */

template <class mma, bool rows_a, bool rows_b> struct small_kernel {
  static constexpr int ring = STAGES * tiled_shape<small_product<mma, rows_a, rows_b>>::stage_bytes, tiles = WARPS * TILE * TILE_PITCH * 4;
  static constexpr int shared = ring > tiles ? ring : tiles;
};
struct kernel { const void *function; int32_t shared; };
#define KERNEL(mma, rows_a, rows_b) { (const void *)matmul_small<mma, rows_a, rows_b>, small_kernel<mma, rows_a, rows_b>::shared }
#define KERNELS(mma) { { KERNEL(mma, false, false), KERNEL(mma, false, true) }, { KERNEL(mma, true, false), KERNEL(mma, true, true) } }
static const kernel kernels[2][2][2] = { KERNELS(mma_bf16), KERNELS(mma_f16) };       /* [f16][a has rows contiguous][b has] */

struct state { cuda_tiled tiled; cuda_chain chain; int32_t value_a, value_b, grid, early; kernel with; };

/* Is either dim contiguous, and which? */
static bool lies(const cuda_matmul_side *s, int64_t k, bool *rows_contiguous)
{
  *rows_contiguous = s->k_stride != 1 && k > 1;
  return !*rows_contiguous || s->row_stride == 1 || s->rows == 1;
}

static cuda_tiled_side side_of(const cuda_matmul_side *s)
{
  cuda_tiled_side side = {};
  side.row_stride = s->row_stride, side.k_stride = s->k_stride, side.rows = (int32_t)s->rows;
  side.batch_stride[0] = s->batch_stride[0], side.batch_stride[1] = s->batch_stride[1];
  return side;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  qn_status status = cuda_matmul_read(r, out, &m);
  if (status) return status;
  if ((m.a.dtype != QN_BF16 && m.a.dtype != QN_F16) || m.b.dtype != m.a.dtype)
    return qn_refuse(out, "dtypes", "a", "both f16 or both bf16", "%s, %s", qn_kit_name(m.a.dtype), qn_kit_name(m.b.dtype));
  bool rows_a, rows_b;
  if (!lies(&m.a, m.k, &rows_a) || !lies(&m.b, m.k, &rows_b))
    return qn_refuse(out, "operands with a contiguous dim", rows_a ? "a" : "b", "a stride of 1", "%s", "none");
  int64_t tiles_m = qn_ceil_div(m.m, TILE), tiles_n = qn_ceil_div(m.n, TILE), tiles = tiles_m * tiles_n * m.batch[0] * m.batch[1];
  if (m.k > 1 << 20) return qn_refuse(out, "one running sum of each warp", "a", "k of at most 2^20", "%lld", (long long)m.k);
  if (tiles > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "y", "", "%s", "more");

  state s = {};
  status = cuda_matmul_chain(r, out, &m, &s.chain);
  if (status) return status;
  s.with = kernels[m.a.dtype == QN_F16][rows_a][rows_b];
  if (s.with.shared > (int64_t)r->device->shared_per_block)
    return qn_refuse(out, "its shared memory", "", "a device with more", "%d bytes", s.with.shared);
  const qn_value *y = &r->value[s.chain.out];
  cuda_tiled *t = &s.tiled;
  t->a = side_of(&m.a), t->b = side_of(&m.b);
  for (int i = 0; i < 4; i++) t->out_stride[i] = cuda_stride(y, m.dims.dim_of[i]);
  t->out_dtype = y->dtype;
  t->along = t->out_stride[1] != 1 && t->out_stride[0] == 1;
  t->k = (int32_t)m.k;
  t->tiles_m = (int32_t)tiles_m, t->tiles_n = (int32_t)tiles_n;
  t->batch0 = (int32_t)m.batch[0];
  t->steps = s.chain.steps;
  s.value_a = m.a.value, s.value_b = m.b.value, s.grid = (int32_t)tiles;
  out->n_ops = s.chain.n_ops;
  out->numerics.accumulator = QN_ACC_F32_TC;
  /* measured on an H200: the launch; then per tile of a multiprocessor its start and end, and its stages */
  out->estimate = 2700 + (double)qn_ceil_div(tiles, r->device->units) * (1000 + 1400 * ((double)m.k / DEPTH));
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  state *s = (state *)out->state;
  const qn_status status = cuda_check(
    cudaFuncSetAttribute(s->with.function, cudaFuncAttributeMaxDynamicSharedMemorySize, s->with.shared), "cudaFuncSetAttribute");
  return status ? status : cuda_waits_itself(s->with.function, &s->early);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = (const state *)prepared->state;
  cuda_tiled t = s->tiled;
  t.a.p = launch->ptr[s->value_a];
  t.b.p = launch->ptr[s->value_b];
  t.out = launch->ptr[s->chain.out];
  cuda_chain_bind(&t.steps, &s->chain, launch->ptr);
  return cuda_launch_early(s->with.function, s->early, (uint32_t)s->grid, THREADS, (uint32_t)s->with.shared, &t, launch, "matmul_small");
}

static const qn_engine row[] = {
  { "small", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES,
    nullptr, nullptr, prepare, build, run, cuda_release },
};
CUDA_ENGINES(matmul_small) = { row, sizeof row / sizeof *row };
