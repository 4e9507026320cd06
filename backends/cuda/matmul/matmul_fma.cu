/* matmul_fma.cu -- products of short sums on FP32 cores: f32, f16 and bf16, operands at any strides.
 *
 *   y = chain(alpha a b + beta c + bias)     k of at most 8192
 *
 *   64x64    128 threads of 8 x 4 sums
 *   32x32    128 threads of 2 x 4 sums: few tiles
 *
 * The first layer behind a table's 13 columns or a point's 3 coordinates, attention over 77 tokens in f32: sums that end before a ring of
 * stages is full, of lines that no TMA and few copies of 16 bytes take, where splitting f32 for the Tensor Cores takes as long as the
 * products. Operands come element by element, neighbours together, into stages with rows contiguous; a short k is in flight all at once.
 * Most sums go from registers to y, the bias with them; others through shared memory. */
#include "engines.h"
#include "kit/early.h"
#include "matmul_problem.h"
#include "matmul_tiled.cuh"
#include "program/plain.h"

enum { THREADS = 128, DEPTH = 32, STAGES = 4, LONGEST = 8192 };             /* DEPTH: k of a stage; LONGEST: terms of a running sum */
enum { BY_ROWS, BY_K, IN_VECTORS };       /* neighbouring threads take neighbouring rows; eight k of a row; four rows each, by 16 bytes */

struct fma_problem {                      /* the kernel's parameter */
  cuda_tiled tiled;
  int32_t by[2];                          /* a, b: how it is read */
  int32_t direct, bias, relu;             /* direct: from registers to y, with these steps alone; bias: its operand's index, -1: none */
};

/* ---- an operand ------------------------------------------------------------------------------------ */

/* A thread's share of an operand's stages, for tiled_sum: f32 is copied without registers. */
template <int TILE, class T> struct fma_operand {
  typedef tiled_stage<TILE, DEPTH, 4, true> stage;
  static constexpr int each = TILE * DEPTH / THREADS, step = THREADS / TILE, passes = TILE / 16;      /* k of BY_ROWS; rows of BY_K */
  static constexpr bool copied = sizeof(T) == 4;
  const T *from;                          /* its first element at k 0 */
  int64_t row_stride, k_stride;
  int row, k, left, by, count = 0;        /* of the first element; rows left from it on; k that there are in the stage being loaded */
  float v[copied ? 1 : each];

  __device__ fma_operand(const cuda_tiled_side &s, int row0, int b0, int b1, int how) : row_stride(s.row_stride), k_stride(s.k_stride), by(how)
  {
    const int t = threadIdx.x;
    row = by == BY_ROWS ? t % TILE : by == BY_K ? t / 32 * 4 + t % 32 / 8 : t % (TILE / 4) * 4;
    k = by == BY_ROWS ? t / TILE : by == BY_K ? t % 8 : t / (TILE / 4);
    left = s.rows - row0 - row;
    from = (const T *)s.p + (row0 + row) * row_stride + b0 * s.batch_stride[0] + b1 * s.batch_stride[1] + k * k_stride;
  }
  /* Calls f(i, offset in a stage, address, is it a row of the operand) for each of its elements whose k exist. */
  template <class F> __device__ __forceinline__ void elements(const T *p, F f) const
  {
    const uint32_t at = k * stage::pitch + row * 4;
    if (by == BY_K) {
#pragma unroll
      for (int i = 0; i < each; i++) {
        const int r = i % passes * 16, further = i / passes * 8;
        if (k + further < count) f(i, at + further * stage::pitch + r * 4, p + r * row_stride + further * k_stride, r < left);
      }
    } else {
#pragma unroll
      for (int i = 0; i < each; i++, p += step * k_stride)
        if (k + i * step < count) f(i, at + i * step * stage::pitch, p, 0 < left);
    }
  }
  __device__ __forceinline__ void load(uint32_t to, int k0, int k_end)
  {
    const T *p = from + k0 * k_stride;
    count = k_end - k0;
    if constexpr (copied) {
      if (by == IN_VECTORS) {
        constexpr int lines = THREADS / (TILE / 4);
        const int bytes = min(max(left, 0), 4) * 4;
#pragma unroll
        for (int i = 0; i < DEPTH / lines; i++, p += lines * k_stride)
          if (k + i * lines < count) copy_async<16>(to + (k + i * lines) * stage::pitch + row * 4, (const char *)p, bytes);
      } else {
        elements(p, [&](int, uint32_t at, const T *q, bool there) { copy_async<4>(to + at, (const char *)q, there ? 4 : 0); });
      }
    } else {
      elements(p, [&](int i, uint32_t, const T *q, bool there) { v[i] = there ? float(*q) : 0; });
    }
  }
  __device__ __forceinline__ void store(uint32_t to) const
  {
    if constexpr (!copied) elements(from, [&](int i, uint32_t at, const T *, bool) { shared_store(to + at, __float_as_uint(v[i])); });
  }
};

/* ---- the kernel ------------------------------------------------------------------------------------- */

/* A Product of matmul_tiled.cuh. */
template <int TILE> struct fma_product {
  static constexpr int BM = TILE, BN = TILE, BK = DEPTH, threads = THREADS, stages = STAGES, esize = 4, pad_a = 16, pad_b = 16;
  static constexpr bool rows_a = true, rows_b = true, any = true;
  static constexpr int across = TILE / 4, rows = TILE * across / THREADS, pitch = (TILE + 4) * 4;     /* threads of a row; rows of a thread */
  float sum[rows][4];
  int row, column, left;                  /* of its first sum; k left in the next stage and after it */

  __device__ fma_product(int k) : sum{}, row(threadIdx.x / across * rows), column(threadIdx.x % across * 4), left(k) {}
  __device__ __forceinline__ void add(uint32_t a, uint32_t b)
  {
    float x[rows], y[4];
    if constexpr (rows == 2) {
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(a) : "memory");
    } else {
#pragma unroll
      for (int i = 0; i < rows; i += 4) shared_load(x + i, a + i * 4);
    }
    shared_load(y, b);
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
  }
  __device__ __forceinline__ void multiply(uint32_t a, uint32_t b)
  {
    a += row * 4, b += column * 4;
    if (left >= DEPTH) {
#pragma unroll 16
      for (int k = 0; k < DEPTH; k++) add(a + k * pitch, b + k * pitch);
    } else {
#pragma unroll 2
      for (int k = 0; k < left; k++) add(a + k * pitch, b + k * pitch);
    }
    left -= DEPTH;
  }
};

/* Four neighbouring elements of y, whole and aligned. */
__device__ __forceinline__ void fma_put(void *y, uint32_t dtype, int64_t at, const float (&v)[4])
{
  if (dtype == QN_F32) *(float4 *)((float *)y + at) = make_float4(v[0], v[1], v[2], v[3]);
  else *(uint2 *)((uint16_t *)y + at) = dtype == QN_BF16 ? make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]))
                                                         : make_uint2(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]));
}

template <int TILE, class T> __global__ void __launch_bounds__(THREADS, TILE == 64 ? 4 : 6) matmul_fma(const __grid_constant__ fma_problem p)
{
  extern __shared__ __align__(16) unsigned char shared[];
  const cuda_tiled &g = p.tiled;
  const int tiles = g.tiles_m * g.tiles_n, batch = blockIdx.x / tiles, t = blockIdx.x - batch * tiles;
  const tiled_place u = { t % g.tiles_m * TILE, t / g.tiles_m * TILE, batch % g.batch0, batch / g.batch0 };
  fma_operand<TILE, T> a(g.a, u.m0, u.b0, u.b1, p.by[0]), b(g.b, u.n0, u.b0, u.b1, p.by[1]);
  fma_product<TILE> s(g.k);
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* earlier kernels of the stream may still write the operands */
#endif
  const int column = u.n0 + s.column;
  const bool stores = p.direct && column < g.b.rows;
  float bias[4] = {};
  if (stores && p.bias >= 0) {            /* on its way while the sums are made */
    const cuda_operand &o = g.steps.operand[p.bias];
    int64_t at = column * o.stride[1] + u.b0 * o.stride[2] + u.b1 * o.stride[3];
#pragma unroll
    for (int i = 0; i < 4; i++, at += o.stride[1])
      bias[i] = o.dtype == QN_F32 ? ((const float *)o.p)[at] : o.dtype == QN_BF16 ? bf16_to_float(((const uint16_t *)o.p)[at])
                                                                                   : f16_to_float(((const uint16_t *)o.p)[at]);
  }
  tiled_sum(s, a, b, shared_address(shared), 0, g.k);

  if (p.direct) {
    if (!stores) return;
    int64_t at = (u.m0 + s.row) * g.out_stride[0] + column + u.b0 * g.out_stride[2] + u.b1 * g.out_stride[3];
#pragma unroll
    for (int i = 0; i < s.rows; i++, at += g.out_stride[0]) {
      if (u.m0 + s.row + i >= g.a.rows) break;
      float v[4];
#pragma unroll
      for (int j = 0; j < 4; j++) {
        v[j] = s.sum[i][j];
        if (p.bias >= 0) v[j] += bias[j];
        if (p.relu) v[j] = fn_unary(QN_OP_RELU, v[j], 0.f, 0.f);
      }
      fma_put(g.out, g.out_dtype, at, v);
    }
    return;
  }
  __syncthreads();                        /* the ring's memory is reused for the sums */
  float *const tile = (float *)shared + s.row * (TILE + 4) + s.column;
#pragma unroll
  for (int i = 0; i < s.rows; i++) *(float4 *)(tile + i * (TILE + 4)) = make_float4(s.sum[i][0], s.sum[i][1], s.sum[i][2], s.sum[i][3]);
  __syncthreads();
  tiled_finish<TILE, TILE, false>(g, (const float *)shared, TILE + 4, u);
}

/* ---- host ---------------------------------------------------------------------------------------------- */

enum { LARGE, SMALL, N_VARIANTS };
static const char *const variants[] = { "64x64", "32x32", nullptr };
static const int tile_of[] = { 64, 32 }, stage_of[] = { tiled_shape<fma_product<64>>::stage_bytes, tiled_shape<fma_product<32>>::stage_bytes };
static const void *const kernels[3][N_VARIANTS] = {
  { (const void *)matmul_fma<64, __nv_bfloat16>, (const void *)matmul_fma<32, __nv_bfloat16> },
  { (const void *)matmul_fma<64, __half>, (const void *)matmul_fma<32, __half> },
  { (const void *)matmul_fma<64, float>, (const void *)matmul_fma<32, float> },
};

struct state { fma_problem p; cuda_chain chain; const void *function; int32_t value_a, value_b, early, shared, variant; uint32_t blocks; };

static cuda_tiled_side side_of(const cuda_matmul_side *s)
{
  cuda_tiled_side side = {};
  side.row_stride = s->row_stride, side.k_stride = s->k_stride, side.rows = (int32_t)s->rows;
  side.batch_stride[0] = s->batch_stride[0], side.batch_stride[1] = s->batch_stride[1];
  return side;
}

static int64_t tiles_of(const cuda_matmul *m, int variant)
{
  return qn_ceil_div(m->m, tile_of[variant]) * qn_ceil_div(m->n, tile_of[variant]) * m->batch[0] * m->batch[1];
}

/* Bytes for so many stages, at least of a tile of sums. A short sum needs less than the whole ring: more CTAs find room. */
static int32_t shared_of(int variant, int64_t stages)
{
  const int tile = tile_of[variant];
  return (int32_t)qn_max_i64(qn_min_i64(stages, STAGES) * stage_of[variant], tile * (tile + 4) * 4);
}

static int32_t read_by(const cuda_matmul_side *s, int64_t k)
{
  if (s->dtype == QN_F32 && s->row_stride == 1 && s->align >= 16 && (s->k_stride | s->batch_stride[0] | s->batch_stride[1]) % 4 == 0)
    return IN_VECTORS;
  return s->k_stride == 1 && k >= 8 ? BY_K : BY_ROWS;
}

/* Are y's rows whole units of four elements, and the chain no more than a bias of columns and relu? */
static bool stores_directly(const cuda_matmul *m, const cuda_chain *chain, const qn_value *y, const cuda_tiled *t, cuda_plain *plain)
{
  bool fits = cuda_chain_plain(chain, plain) && plain->factor < 0 && plain->added < 0 && !plain->by_row && m->n % 4 == 0 &&
              (plain->bias < 0 || y->over != chain->value[plain->bias]);
  for (int i = 0; i < 4; i++) fits = fits && (i == 1 ? t->out_stride[1] == 1 : t->out_stride[i] % 4 == 0);
  return fits && y->align >= 4 * qn_kit_bytes(y->dtype);
}

/* Nanoseconds, fitted on an H200: the launch and the first stage; then per tile of a multiprocessor its start and end, and its k, whose
 * loads a lone tile waits for; the traffic of memory. A lone small tile waits for little else. */
static double estimate(const cuda_matmul *m, int variant, bool direct, int bytes, int out_bytes, int32_t units)
{
  const double each = (double)tiles_of(m, variant) / units, batches = (double)(m->batch[0] * m->batch[1]);
  if (variant != LARGE && each <= 1) return 1700 + 29.0 * (double)m->k;
  const double tile = (variant == LARGE ? 300 : 350) * (direct ? 1 : 2) + (double)m->k * (variant != LARGE ? 17 : m->k <= 48 ? 38 : 46);
  const double work = (each > 1.4 ? each : 1.4) * tile,
               memory = (((double)m->m + (double)m->n) * (double)m->k * bytes + (double)m->m * (double)m->n * out_bytes) * batches / 3800;
  return 3000 + (work > memory ? work + 0.2 * memory : memory + 0.2 * work);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  qn_status status = cuda_matmul_read_floats(r, out, &m);
  if (status) return status;
  if (m.k > LONGEST) return qn_refuse(out, "a running sum", "a", "k of at most 8192", "%lld", (long long)m.k);
  const qn_value *first = cuda_value(r, QN_ROLE_MATMUL_Y);
  if (cuda_stride(first, first->rank - 1) > 1 && cuda_stride(first, first->rank - 2) == 1) {     /* y along its rows: its transpose */
    const cuda_matmul_side a = m.a;
    m.a = m.b, m.b = a, m.m = m.a.rows, m.n = m.b.rows;
    m.dims.dim_of[0] = m.dims.dim_of[1], m.dims.dim_of[1]--;
  }
  state s = {};
  status = cuda_matmul_chain(r, out, &m, &s.chain);
  if (status) return status;
  const qn_value *y = &r->value[s.chain.out];
  const int dtype = m.a.dtype == QN_F32 ? 2 : m.a.dtype == QN_F16;
  cuda_plain plain;
  cuda_tiled *t = &s.p.tiled;
  t->a = side_of(&m.a), t->b = side_of(&m.b);
  for (int i = 0; i < 4; i++) t->out_stride[i] = cuda_stride(y, m.dims.dim_of[i]);
  t->out_dtype = y->dtype;
  t->along = t->out_stride[1] != 1 && t->out_stride[0] == 1;
  t->k = (int32_t)m.k, t->batch0 = (int32_t)m.batch[0];
  t->steps = s.chain.steps;
  s.p.direct = stores_directly(&m, &s.chain, y, t, &plain);
  s.p.bias = plain.bias, s.p.relu = plain.relu;
  s.p.by[0] = read_by(&m.a, m.k), s.p.by[1] = read_by(&m.b, m.k);
  int best = -1;
  for (int v = 0; v < N_VARIANTS; v++) {
    if ((r->variant && strcmp(r->variant, variants[v])) || tiles_of(&m, v) > INT32_MAX) continue;
    const double ns = estimate(&m, v, s.p.direct, dtype == 2 ? 4 : 2, (int)qn_kit_bytes(y->dtype), r->device->units);
    if (best < 0 || ns < out->estimate) best = v, out->estimate = ns;
  }
  if (best < 0) return qn_refuse(out, "fewer than 2^31 tiles", "y", "fewer rows, columns or batches", "%s", "more");
  t->tiles_m = (int32_t)qn_ceil_div(m.m, tile_of[best]), t->tiles_n = (int32_t)qn_ceil_div(m.n, tile_of[best]);
  s.function = kernels[dtype][best];
  s.value_a = m.a.value, s.value_b = m.b.value, s.blocks = (uint32_t)tiles_of(&m, best), s.variant = best;
  s.shared = shared_of(best, qn_ceil_div(m.k, DEPTH));
  out->n_ops = s.chain.n_ops;
  out->variant = variants[best];
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  state *s = (state *)out->state;
  const qn_status status = cuda_check(cudaFuncSetAttribute(s->function, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_of(s->variant, STAGES)),
                                      "cudaFuncSetAttribute");
  return status ? status : cuda_waits_itself(s->function, &s->early);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = (const state *)prepared->state;
  fma_problem p = s->p;
  p.tiled.a.p = launch->ptr[s->value_a];
  p.tiled.b.p = launch->ptr[s->value_b];
  p.tiled.out = launch->ptr[s->chain.out];
  cuda_chain_bind(&p.tiled.steps, &s->chain, launch->ptr);
  return cuda_launch_early(s->function, s->early, s->blocks, THREADS, (uint32_t)s->shared, &p, launch, "matmul_fma");
}

static const qn_engine row[] = {
  { "fma", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, variants, nullptr,
    prepare, build, run, cuda_release },
};
CUDA_ENGINES(matmul_fma) = { row, sizeof row / sizeof *row };
