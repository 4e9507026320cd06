/* matmul_small.cu -- products of short sums or of many small matrices, at any alignment: 16 bits, and f32 as 3xTF32.
 *
 *   y = chain(alpha a b + beta c + bias)     either dim of an operand contiguous; any strides of y
 *
 *   32x32    the warps of a CTA share k, 16 of every 256 each (f32: 8 of 128), and their sums are added in a fixed order: few
 *            tiles, which would end before a ring of stages is full
 *   64x64    the warps share the tile: the many products of attention over 49, 50, 197 or 257 tokens, whose lines no TMA takes
 *
 * Lines of an operand are copied by cp.async in aligned 16-byte pieces, starting at the last aligned address before their first
 * element, so that a line stays as misaligned as in memory, and its reader shifts it; an operand whose lines are all aligned is read by
 * ldmatrix. A short k is in flight all at once. */
#include "engines.h"
#include "kit/early.h"
#include "matmul_problem.h"
#include "matmul_words.cuh"

/* A CTA's tile, of whose sums a warp has 32 x 32 over 1 / WAYS of k. */
template <int TILE, int WAYS, int ESIZE, int DEPTH, int STAGES, int RESIDENT> struct small_shape {
  static constexpr int tile = TILE, ways = WAYS, esize = ESIZE, depth = DEPTH, stages = STAGES, resident = RESIDENT,
                       across = TILE / 32, threads = 32 * across * across * WAYS, pitch = TILE + 4,     /* floats of a line of sums */
                       k_of = 32 / ESIZE, steps = DEPTH / WAYS / k_of;                                  /* of an mma; a warp's in a stage */
  template <bool rows_contiguous> using stage = tiled_stage<TILE, DEPTH, ESIZE, rows_contiguous, rows_contiguous && ESIZE == 4 ? 32 : 16>;
};

/* ---- an operand ------------------------------------------------------------------------------------ */

/* An operand on its walk along k, for tiled_sum. A line has the same misalignment in every stage. */
template <class shape, bool rows_contiguous> struct small_operand {
  typedef typename shape::template stage<rows_contiguous> stage;
  static constexpr int parts = stage::inner * shape::esize / 16 + 1, lines = shape::threads / parts, turns = (stage::outer + lines - 1) / lines;
  const char *first;                      /* the tile's first element at k 0 */
  int64_t pitch, pace;                    /* bytes from line to line, and for each k */
  int rows_left;

  __device__ small_operand(const cuda_tiled_side &s, int row0, int b0, int b1)
  {
    first = (const char *)s.p + (row0 * s.row_stride + b0 * s.batch_stride[0] + b1 * s.batch_stride[1]) * shape::esize;
    pitch = (rows_contiguous ? s.k_stride : s.row_stride) * shape::esize, pace = s.k_stride * shape::esize;
    rows_left = s.rows - row0;
  }
  __device__ __forceinline__ int shift(int line) const { return ((uint32_t)(uintptr_t)first + line * (uint32_t)pitch) & 15; }

  __device__ __forceinline__ void load(uint32_t to, int k, int k_end)
  {
    const int line0 = threadIdx.x / parts, part = threadIdx.x % parts;
    const int outer_left = rows_contiguous ? k_end - k : rows_left, inner_left = min(rows_contiguous ? rows_left : k_end - k, stage::inner);
    if (line0 >= lines) return;
    const char *from = first + k * pace + line0 * pitch;
#pragma unroll
    for (int i = 0; i < turns; i++, from += lines * pitch) {
      const int line = i * lines + line0, turn = (int)((uintptr_t)from & 15);
      if ((i + 1) * lines > stage::outer && line >= stage::outer) break;
      const int there = line < outer_left ? turn + inner_left * shape::esize - part * 16 : 0;
      copy_async<16>(to + line * stage::pitch + part * 16, from - turn + part * 16, min(max(there, 0), 16));
    }
  }
  __device__ __forceinline__ void store(uint32_t) const {}
};

/* This lane's elements of a stage, in words: of each group i of eight of its warp's 32 rows, in each step the 4 bytes of k from
 * 4 q on (half 0), or 16 bytes further (half 1); q = lane % 4. Of 16 bits the lower k is in the lower half.
 * Lines eight (f32: four) apart are alike misaligned. */
template <class shape, bool rows_contiguous, bool is_a> struct small_elements {
  typedef typename shape::template stage<rows_contiguous> stage;
  static constexpr int per_word = 4 / shape::esize;
  uint32_t at, next = 0;                  /* byte offset; to the next k of a word, rows contiguous */
  int turn = 0, odd;                      /* of unaligned_word */
  bool aligned;                           /* each line, for ldmatrix */

  /* row0: the warp's first row; k0: its first k in a stage. */
  __device__ small_elements(const small_operand<shape, rows_contiguous> &o, int row0, int k0)
  {
    const int lane = threadIdx.x % 32, row = row0 + lane / 4, k = k0 + lane % 4 * per_word;
    odd = shape::esize == 2 && ((uint32_t)(uintptr_t)o.first | (uint32_t)o.pitch) & 2;
    aligned = aligned_words<shape::esize, rows_contiguous> && !(((uint32_t)(uintptr_t)o.first | (uint32_t)o.pitch) & 15);
    if (aligned) {
      at = aligned_place<shape::esize, rows_contiguous, is_a>(stage::pitch, row0, k0);
    } else if constexpr (rows_contiguous) {
      at = k * stage::pitch + o.shift(k) + row * shape::esize, next = stage::pitch + o.shift(k + 1) - o.shift(k);
    } else {
      const uint32_t from = row * stage::pitch + o.shift(row) + k * shape::esize;
      at = from & ~3u, turn = (from & 2) * 8;
    }
  }
  __device__ __forceinline__ uint32_t word(uint32_t operand, int i, int half, int step) const
  {
    const int further = rows_contiguous ? (step * shape::k_of + half * shape::k_of / 2) * stage::pitch + i * 8 * shape::esize
                                        : i * 8 * stage::pitch + half * 16 + step * 32;
    return unaligned_word<shape::esize, rows_contiguous>(operand + at + further, next, turn, odd);
  }
  /* Of both groups of 16 rows, in mma.sync's order. */
  __device__ __forceinline__ void words(uint32_t (&w)[2][4], uint32_t operand, int step) const
  {
    if (aligned) {
#pragma unroll
      for (int i = 0; i < 2; i++)
        load_matrices<rows_contiguous>(w[i], operand + at + (rows_contiguous ? step * shape::k_of * stage::pitch + i * 16 * shape::esize
                                                                             : i * 16 * stage::pitch + step * 32));
      return;
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) w[i][j] = word(operand, i * 2 + (is_a ? j % 2 : j / 2), is_a ? j / 2 : j % 2, step);
  }
};

/* ---- the kernel -------------------------------------------------------------------------------------- */

/* A Product of matmul_tiled.cuh. */
template <class shape, class mma, bool ROWS_A, bool ROWS_B> struct small_product {
  static constexpr int BM = shape::tile, BN = shape::tile, BK = shape::depth, threads = shape::threads, stages = shape::stages;
  static constexpr int esize = shape::esize, pad_a = esize == 4 && ROWS_A ? 32 : 16, pad_b = esize == 4 && ROWS_B ? 32 : 16;
  static constexpr bool rows_a = ROWS_A, rows_b = ROWS_B, any = false, split = esize == 4;
  small_elements<shape, rows_a, true> a;
  small_elements<shape, rows_b, false> b;
  float sum[2][4][4];                     /* [16 rows][8 columns][fragment] */
  int left;                               /* k left from this warp's first one in the next stage; 0 or less: nothing to do */

  static __device__ int way() { return threadIdx.x / 32 % shape::ways; }
  static __device__ int row0() { return threadIdx.x / 32 / shape::ways / shape::across * 32; }
  static __device__ int col0() { return threadIdx.x / 32 / shape::ways % shape::across * 32; }

  __device__ small_product(const small_operand<shape, rows_a> &oa, const small_operand<shape, rows_b> &ob, int k)
    : a(oa, row0(), way() * shape::steps * shape::k_of), b(ob, col0(), way() * shape::steps * shape::k_of), sum{},
      left(row0() < oa.rows_left && col0() < ob.rows_left ? k - way() * shape::steps * shape::k_of : 0) {}

  __device__ __forceinline__ void multiply(uint32_t stage_a, uint32_t stage_b)
  {
#pragma unroll
    for (int step = 0; step < shape::steps; step++) {
      if (left <= step * shape::k_of) break;
      uint32_t x[2][4], y[2][4];
      a.words(x, stage_a, step), b.words(y, stage_b, step);
      multiply_words<mma, split, 2>(sum, x, y);
    }
    left -= shape::depth;
  }
  /* Stores the sums as a tile; those of warps that share k as a tile for each, then adds them all into the first. */
  __device__ __forceinline__ void put(float *tile) const
  {
    constexpr int pitch = shape::pitch;
    constexpr float scale = split ? 0x1p-48f : 1;
    const int lane = threadIdx.x % 32;
    float *to = tile + (way() * shape::tile + row0() + lane / 4) * pitch + col0() + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        *(float2 *)(to + i * 16 * pitch + j * 8) = make_float2(sum[i][j][0] * scale, sum[i][j][1] * scale);
        *(float2 *)(to + (i * 16 + 8) * pitch + j * 8) = make_float2(sum[i][j][2] * scale, sum[i][j][3] * scale);
      }
    if constexpr (shape::ways > 1) {
      static_assert(shape::tile * shape::tile == threads * 2, "two sums a thread");
      __syncthreads();
      float2 *mine = (float2 *)(tile + threadIdx.x / 16 * pitch + threadIdx.x % 16 * 2), all = *mine;
#pragma unroll
      for (int w = 1; w < shape::ways; w++) {
        float2 v = mine[w * shape::tile * pitch / 2];
        all.x += v.x, all.y += v.y;
      }
      *mine = all;
    }
  }
};

/* Has the row vectors' elements of n columns from col on, such as a bias, brought to L2, while the sums are made. */
__device__ __forceinline__ void steps_prefetch(const cuda_steps &steps, int col, int n, int b0, int b1)
{
  const int c = threadIdx.x * 8;
#pragma unroll 1
  for (int i = 0; i < steps.n_operands && c < n; i++) {
    const cuda_operand &o = steps.operand[i];
    if (o.p && !o.stride[0] && o.stride[1] == 1)
      prefetch_L2((const char *)o.p + (col + c + b0 * o.stride[2] + b1 * o.stride[3]) * (o.dtype == QN_F32 ? 4 : 2));
  }
}

template <class shape, class mma, bool rows_a, bool rows_b>
__global__ void __launch_bounds__(shape::threads, shape::resident) matmul_small(const __grid_constant__ cuda_tiled g)
{
  extern __shared__ __align__(16) unsigned char shared[];
  int tiles = g.tiles_m * g.tiles_n, batch = blockIdx.x / tiles, t = blockIdx.x - batch * tiles;
  tiled_place u = { t % g.tiles_m * shape::tile, t / g.tiles_m * shape::tile, batch % g.batch0, batch / g.batch0 };
  small_operand<shape, rows_a> a(g.a, u.m0, u.b0, u.b1);
  small_operand<shape, rows_b> b(g.b, u.n0, u.b0, u.b1);
  small_product<shape, mma, rows_a, rows_b> p(a, b, g.k);
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* earlier kernels of the stream may still write a and b */
#endif
  steps_prefetch(g.steps, u.n0, min(g.b.rows - u.n0, shape::tile), u.b0, u.b1);
  tiled_sum(p, a, b, shared_address(shared), 0, g.k);
  __syncthreads();                        /* the ring's memory is reused for the tiles */
  p.put((float *)shared);
  __syncthreads();
  tiled_finish<shape::tile, shape::tile, shape::esize == 4>(g, (const float *)shared, shape::pitch, u);
}

/* ---- host ---------------------------------------------------------------------------------------------- */

enum { SHARED_K, SHARED_TILE, N_VARIANTS };
static const char *const variants[] = { "32x32", "64x64", nullptr };
typedef small_shape<32, 16, 2, 256, 4, 1> shared_k;
typedef small_shape<32, 16, 4, 128, 4, 1> shared_k_f32;
typedef small_shape<64, 1, 2, 64, 3, 5> shared_tile;
typedef small_shape<64, 1, 4, 32, 3, 4> shared_tile_f32;

struct kernel { const void *function; int32_t tile, threads, ways, depth, stages, stage, sums; };       /* bytes of a stage, and of the sums */
#define KERNEL(shape, mma, rows_a, rows_b)                                                                                    \
  { (const void *)matmul_small<shape, mma, rows_a, rows_b>, shape::tile, shape::threads, shape::ways, shape::depth, shape::stages, \
    tiled_shape<small_product<shape, mma, rows_a, rows_b>>::stage_bytes, shape::ways * shape::tile * shape::pitch * 4 }
#define KERNELS(shape, mma) { { KERNEL(shape, mma, false, false), KERNEL(shape, mma, false, true) }, \
                              { KERNEL(shape, mma, true, false), KERNEL(shape, mma, true, true) } }
static const kernel kernels[3][N_VARIANTS][2][2] = {         /* [dtype][variant][a has rows contiguous][b has] */
  { KERNELS(shared_k, mma_bf16), KERNELS(shared_tile, mma_bf16) },
  { KERNELS(shared_k, mma_f16), KERNELS(shared_tile, mma_f16) },
  { KERNELS(shared_k_f32, mma_tf32), KERNELS(shared_tile_f32, mma_tf32) },
};

struct state { cuda_tiled tiled; cuda_chain chain; int32_t value_a, value_b, grid, early, shared; kernel with; };

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

static int64_t tiles_of(const cuda_matmul *m, const kernel *k)
{
  return qn_ceil_div(m->m, k->tile) * qn_ceil_div(m->n, k->tile) * m->batch[0] * m->batch[1];
}

/* Bytes for so many stages. A short sum needs less than the whole ring: more CTAs find room. */
static int32_t shared_of(const kernel *k, int64_t stages)
{
  return (int32_t)qn_max_i64(qn_min_i64(stages, k->stages) * k->stage, k->sums);
}

/* Nanoseconds, fitted on an H200: the launch; then per tile of a multiprocessor its start and end, and its stages. bias: that the steps
 * load, eight elements after eight. */
static double estimate(const cuda_matmul *m, const kernel *k, int variant, bool bias, int32_t units)
{
  const int64_t tiles = tiles_of(m, k);
  const bool f32 = m->a.dtype == QN_F32;
  if (variant == SHARED_K) return 2700 + (double)qn_ceil_div(tiles, units) * (1000 + (f32 ? 1500 : 1400) * ((double)m->k / k->depth));
  const double each = (double)tiles / units, stages = (double)qn_ceil_div(m->k, k->depth);
  if (f32) return 2700 + (each + 1) * (600 + (bias ? 700 : 0) + 950 * stages);
  return 2700 + (each > 1 ? each : 1) * (200 + (bias ? 4000 : 0) + 1050 * stages);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  qn_status status = cuda_matmul_read_floats(r, out, &m);
  if (status) return status;
  const bool f32 = m.a.dtype == QN_F32;
  bool rows_a, rows_b;
  if (!lies(&m.a, m.k, &rows_a) || !lies(&m.b, m.k, &rows_b))
    return qn_refuse(out, "operands with a contiguous dim", rows_a ? "a" : "b", "a stride of 1", "%s", "none");

  state s = {};
  const bool bias = qn_role(&r->op[0], QN_ROLE_MATMUL_BIAS) >= 0;
  int best = -1;
  for (int v = 0; v < N_VARIANTS; v++) {
    const kernel *k = &kernels[f32 ? 2 : m.a.dtype == QN_F16][v][rows_a][rows_b];
    if (r->variant && strcmp(r->variant, variants[v])) continue;
    if (m.k > (int64_t)cuda_tiled_block(f32 ? 4 : 2) * k->ways || tiles_of(&m, k) > INT32_MAX) continue;
    if (shared_of(k, k->stages) > (int64_t)r->device->shared_per_block) continue;
    const double ns = estimate(&m, k, v, bias, r->device->units);
    if (best < 0 || ns < out->estimate) best = v, out->estimate = ns, s.with = *k;
  }
  if (best < 0)
    return qn_refuse(out, "a tile for this problem", "y", "fewer than 2^31, shared memory for one, and a sum of at most 32768 terms (f32: "
                     "8192) for each warp that shares it", "%s", r->variant ? r->variant : "neither");

  status = cuda_matmul_chain(r, out, &m, &s.chain);
  if (status) return status;
  const qn_value *y = &r->value[s.chain.out];
  cuda_tiled *t = &s.tiled;
  t->a = side_of(&m.a), t->b = side_of(&m.b);
  for (int i = 0; i < 4; i++) t->out_stride[i] = cuda_stride(y, m.dims.dim_of[i]);
  t->out_dtype = y->dtype;
  t->along = t->out_stride[1] != 1 && t->out_stride[0] == 1;
  t->k = (int32_t)m.k;
  t->tiles_m = (int32_t)qn_ceil_div(m.m, s.with.tile), t->tiles_n = (int32_t)qn_ceil_div(m.n, s.with.tile);
  t->batch0 = (int32_t)m.batch[0];
  t->steps = s.chain.steps;
  s.value_a = m.a.value, s.value_b = m.b.value, s.grid = (int32_t)tiles_of(&m, &s.with);
  s.shared = shared_of(&s.with, qn_ceil_div(m.k, s.with.depth));
  out->n_ops = s.chain.n_ops;
  out->variant = variants[best];
  if (f32) out->math = QN_MATH_F32;
  out->numerics.accumulator = f32 ? QN_ACC_3XTF32 : QN_ACC_F32_TC;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  state *s = (state *)out->state;
  const qn_status status = cuda_check(
    cudaFuncSetAttribute(s->with.function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_of(&s->with, s->with.stages)),
    "cudaFuncSetAttribute");
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
  return cuda_launch_early(s->with.function, s->early, (uint32_t)s->grid, (uint32_t)s->with.threads, (uint32_t)s->shared, &t, launch,
                           "matmul_small");
}

static const qn_engine row[] = {
  { "small", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES,
    variants, nullptr, prepare, build, run, cuda_release },
};
CUDA_ENGINES(matmul_small) = { row, sizeof row / sizeof *row };
