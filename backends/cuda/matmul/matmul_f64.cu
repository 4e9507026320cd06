/* matmul_f64.cu -- y = alpha a b + beta c + bias in f64 on Tensor Cores, by mma.sync of 8 x 8 sums over 4 of k, from compute capability
 * 8.0 on. Any strides.
 *
 *   a [..., M, K]   b [..., K, N]   c, y [..., M, N]   bias [N]   leading dims broadcast
 *
 * A block computes a tile of y; operands come by cp.async, a number at a time, into a ring of stages whose rows lie 160 bytes apart: the
 * fragments' loads (4 rows by 4 of k) meet no bank twice. A sum is made in blocks of BLOCK of k, each added to those before in
 * workspace. Where there are few tiles, k is split; the last block of a tile to end adds the parts in order. */
#include "engines.h"
#include "matmul_problem.h"
#include "kit/element.cuh"
#include "kit/sm80.cuh"

enum { BK = 16, PITCH = BK + 4, STAGES = 3, BLOCK = 4096 };

struct side {
  const double *p;
  int64_t row_stride, k_stride, batch_stride[2];
  int32_t rows, across;                   /* across: rows are contiguous, not k */
};
struct number { const void *p; uint32_t dtype; double value; };       /* p NULL: value */
struct products {
  side    a, b;
  double *y, *partial;
  const double *c, *bias;                 /* NULL: none */
  int64_t y_stride[4], c_stride[4], bias_stride;            /* rows, columns, batches */
  number  alpha, beta;
  int32_t k, share, splits, tiles_m, tiles_n, batch0;
  uint32_t *tickets;
};

__device__ __forceinline__ double value_of(const number &s) { return s.p ? element_load<double>(s.p, 0, s.dtype) : s.value; }

__device__ __forceinline__ void multiply_add(double (&d)[2], double a, double b)
{
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(b));
}

/* WM by WN warps of QM by QN fragments. */
template <int WM_, int WN_, int QM_, int QN_, int RESIDENT_> struct shape {
  static constexpr int WM = WM_, WN = WN_, QM = QM_, QN = QN_, RESIDENT = RESIDENT_, BM = WM * QM * 8, BN = WN * QN * 8,
                       THREADS = WM * WN * 32, SUMS = QM * QN * 2, STAGE = (BM + BN) * PITCH * 8, SHARED = STAGES * STAGE;
};

/* Starts copying ROWS rows of k to k_end, at most BK. A warp takes 8 neighbours along what is contiguous, 4 times. */
template <int ROWS, int THREADS>
__device__ __forceinline__ void load(uint32_t to, const side &s, const double *from, int rows, int k, int k_end)
{
#pragma unroll 4
  for (int i = 0; i < ROWS * BK / THREADS; i++) {
    const int e = i * THREADS + threadIdx.x, r = s.across ? e % 8 + e / 32 % (ROWS / 8) * 8 : e / 8 % 4 + e / (4 * BK) * 4,
              kk = s.across ? e / 8 % 4 + e / (4 * ROWS) * 4 : e % 8 + e / 32 % (BK / 8) * 8;
    const bool is = r < rows && k + kk < k_end;
    copy_async<8>(to + (r * PITCH + kk) * 8, is ? from + r * s.row_stride + (k + kk) * s.k_stride : from, is ? 8 : 0);
  }
}

template <class S> __global__ void __launch_bounds__(S::THREADS, S::RESIDENT) matmul_f64(const __grid_constant__ products p)
{
  constexpr int THREADS = S::THREADS, QM = S::QM, QN = S::QN, SUMS = S::SUMS;
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ bool last;
  const uint32_t ring = shared_address(shared), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int tiles = p.tiles_m * p.tiles_n, tile = blockIdx.x / p.splits, split = blockIdx.x % p.splits, batch = tile / tiles,
            b0 = batch % p.batch0, b1 = batch / p.batch0, m0 = tile % tiles % p.tiles_m * S::BM, n0 = tile % tiles / p.tiles_m * S::BN;
  const double *a = p.a.p + m0 * p.a.row_stride + b0 * p.a.batch_stride[0] + b1 * p.a.batch_stride[1],
               *b = p.b.p + n0 * p.b.row_stride + b0 * p.b.batch_stride[0] + b1 * p.b.batch_stride[1];
  const int row0 = warp / S::WN * QM * 8, col0 = warp % S::WN * QN * 8, begin = split * p.share, end = min(p.k, begin + p.share);
  const double alpha = value_of(p.alpha);
  double sum[QM][QN][2] = {};
  /* This thread's part of a split, THREADS apart. */
  auto part = [&](int of) { return p.partial + ((int64_t)tile * p.splits + of) * (SUMS * THREADS) + threadIdx.x; };
  const int steps = alpha == 0 ? 0 : (end - begin + BK - 1) / BK;      /* alpha 0: a and b are not read */
  auto start = [&](int n, int stage) {    /* the copies of block n of BK */
    const int k = begin + n * BK;
    if (n < steps) {
      load<S::BM, THREADS>(ring + stage * S::STAGE, p.a, a, p.a.rows - m0, k, end);
      load<S::BN, THREADS>(ring + stage * S::STAGE + S::BM * PITCH * 8, p.b, b, p.b.rows - n0, k, end);
    }
    copy_async_commit();
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) start(i, i);
  int stage = 0, ahead = STAGES - 1;
#pragma unroll 1
  for (int n = 0; n < steps; n++) {
    copy_async_wait<STAGES - 2>();
    __syncthreads();                      /* all have read the stage that is loaded next */
    start(n + STAGES - 1, ahead);
    if (n && n % (BLOCK / BK) == 0) {
      double *kept = part(split);
#pragma unroll
      for (int i = 0; i < SUMS; i++) {
        double &s = sum[i / 2 / QN][i / 2 % QN][i % 2];
        kept[i * THREADS] = n == BLOCK / BK ? s : kept[i * THREADS] + s, s = 0;
      }
    }
    const double *at = (const double *)(shared + stage * S::STAGE) + (row0 + lane / 4) * PITCH + lane % 4,
                 *bt = (const double *)(shared + stage * S::STAGE) + (S::BM + col0 + lane / 4) * PITCH + lane % 4;
#pragma unroll
    for (int k = 0; k < BK; k += 4) {
      double x[QM], y[QN];
#pragma unroll
      for (int i = 0; i < QM; i++) x[i] = at[i * 8 * PITCH + k];
#pragma unroll
      for (int j = 0; j < QN; j++) y[j] = bt[j * 8 * PITCH + k];
#pragma unroll
      for (int i = 0; i < QM; i++)
#pragma unroll
        for (int j = 0; j < QN; j++) multiply_add(sum[i][j], x[i], y[j]);
    }
    if (++stage == STAGES) stage = 0;
    if (++ahead == STAGES) ahead = 0;
  }
  copy_async_wait<0>();
  if (steps > BLOCK / BK) {
    const double *kept = part(split);
#pragma unroll
    for (int i = 0; i < SUMS; i++) sum[i / 2 / QN][i / 2 % QN][i % 2] += kept[i * THREADS];
  }
  if (p.splits > 1) {
    double *mine = part(split);
#pragma unroll
    for (int i = 0; i < SUMS; i++) __stcg(mine + i * THREADS, sum[i / 2 / QN][i / 2 % QN][i % 2]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicAdd(p.tickets + tile, 1) == (uint32_t)p.splits - 1;
      if (last) p.tickets[tile] = 0;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
#pragma unroll
    for (int i = 0; i < SUMS; i++) sum[i / 2 / QN][i / 2 % QN][i % 2] = __ldcg(part(0) + i * THREADS);
#pragma unroll 1
    for (int s = 1; s < p.splits; s++)
#pragma unroll
      for (int i = 0; i < SUMS; i++) sum[i / 2 / QN][i / 2 % QN][i % 2] += __ldcg(part(s) + i * THREADS);
  }

  const double beta = p.c ? value_of(p.beta) : 0;
  const int64_t y0 = b0 * p.y_stride[2] + b1 * p.y_stride[3], c0 = b0 * p.c_stride[2] + b1 * p.c_stride[3];
#pragma unroll
  for (int i = 0; i < QM; i++)
#pragma unroll
    for (int j = 0; j < QN; j++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int row = m0 + row0 + i * 8 + lane / 4, col = n0 + col0 + j * 8 + lane % 4 * 2 + e;
        if (row >= p.a.rows || col >= p.b.rows) continue;
        double v = alpha == 0 ? 0 : alpha * sum[i][j][e];
        if (p.c && beta != 0) v += beta * p.c[c0 + row * p.c_stride[0] + col * p.c_stride[1]];
        if (p.bias) v += p.bias[col * p.bias_stride];
        p.y[y0 + row * p.y_stride[0] + col * p.y_stride[1]] = v;
      }
}

typedef shape<2, 4, 8, 4, 1> large;
typedef shape<2, 2, 4, 4, 3> small;
static const struct kernel { const void *function; int bm, bn, threads, resident, shared; } kernels[] = {
#define KERNEL(S) { (const void *)matmul_f64<S>, S::BM, S::BN, S::THREADS, S::RESIDENT, S::SHARED }
  KERNEL(large), KERNEL(small)
};

struct state {
  products p;
  const kernel *kernel;
  uint32_t blocks;
  int32_t  a, b, c, bias, y, alpha, beta; /* values of the request; -1: absent */
  uint32_t scalar[2];                     /* dtypes of alpha, beta */
  bool     host[2];
};

static side side_of(const cuda_matmul_side *s)
{
  return { nullptr, s->row_stride, s->k_stride, { s->batch_stride[0], s->batch_stride[1] }, (int32_t)s->rows,
           s->row_stride <= 1 && s->k_stride > 1 };
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  if (r->device->arch_major < 8)
    return qn_refuse(out, "compute capability 8.0 or above", "", "8.0", "%d.%d", (int)r->device->arch_major, (int)r->device->arch_minor);
  cuda_matmul m;
  qn_status status = cuda_matmul_read(r, out, &m);
  if (status) return status;
  const qn_node *op = &r->op[0];
  state s = {};
  s.a = m.a.value, s.b = m.b.value, s.c = qn_role(op, QN_ROLE_MATMUL_C), s.bias = qn_role(op, QN_ROLE_MATMUL_BIAS);
  s.y = qn_role(op, QN_ROLE_MATMUL_Y), s.alpha = qn_role(op, QN_ROLE_MATMUL_ALPHA), s.beta = qn_role(op, QN_ROLE_MATMUL_BETA);
  const int32_t numbers[] = { s.a, s.b, s.y, s.c, s.bias };
  for (int i = 0; i < 5; i++) {
    const qn_value *v = numbers[i] < 0 ? nullptr : &r->value[numbers[i]];
    if (v && v->dtype != QN_F64) return qn_refuse(out, "f64 throughout", i < 2 ? i ? "b" : "a" : "y", "f64", "%s", qn_kit_name(v->dtype));
    if (v && v->align < 8) return qn_refuse(out, "elements at their own alignment", "a", "8 bytes", "%u", v->align);
  }
  for (int i = 0; i < 2; i++) {
    const int32_t of = i ? s.beta : s.alpha;
    if (of >= 0) s.scalar[i] = r->value[of].dtype, s.host[i] = r->value[of].flags & QN_VALUE_HOST;
  }

  products *p = &s.p;
  p->a = side_of(&m.a), p->b = side_of(&m.b);
  for (int i = 0; i < 4; i++) {
    p->y_stride[i] = cuda_stride(&r->value[s.y], m.dims.dim_of[i]);
    if (s.c >= 0) p->c_stride[i] = cuda_stride(&r->value[s.c], m.dims.dim_of[i]);
  }
  if (s.bias >= 0) p->bias_stride = cuda_stride(&r->value[s.bias], 0);
  p->k = (int32_t)m.k, p->batch0 = (int32_t)m.batch[0];

  /* The larger tile where all have work by it; k in parts of at least 256 where even the smaller ones are too few. */
  const bool one_order = r->demands->determinism >= QN_DET_BATCH;
  const double batches = (double)m.batch[0] * (double)m.batch[1];
  auto tiles_of = [&](const kernel *k) { return (double)qn_ceil_div(m.m, k->bm) * (double)qn_ceil_div(m.n, k->bn) * batches; };
  const kernel *k = s.kernel = &kernels[one_order || tiles_of(kernels) < r->device->units || kernels->shared > cuda_room(r)];
  if (k->shared > cuda_room(r)) return qn_refuse(out, "tiles in shared memory", "", "that many bytes", "%d", k->shared);
  const double tiles = tiles_of(k), room = (double)r->device->units * k->resident;
  int64_t splits = one_order || tiles > room ? 1 : qn_min_i64((int64_t)(room / fmax(1, tiles)), qn_min_i64(m.k / 256, 64));
  const double part = (double)k->bm * k->bn * 8;
  while (splits > 1 && tiles * splits * part > (double)r->demands->workspace_limit) splits--;
  if (splits < 1) splits = 1;
  p->share = (int32_t)qn_round_up(qn_ceil_div(m.k, splits), BK);
  splits = p->splits = (int32_t)qn_ceil_div(m.k, p->share);
  if (tiles * splits > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "y", "", "%s", "more");
  p->tiles_m = (int32_t)qn_ceil_div(m.m, k->bm), p->tiles_n = (int32_t)qn_ceil_div(m.n, k->bn);
  s.blocks = (uint32_t)(tiles * splits);
  if (splits > 1 || p->share > BLOCK) {
    if (tiles * splits * part > (double)r->demands->workspace_limit)
      return qn_refuse(out, "sums of at most 4096 terms, else parts of them in workspace", "a", "", "k of %lld", (long long)m.k);
    out->workspace = (uint64_t)(tiles * splits * part);
  }
  if (splits > 1) out->counters = (uint64_t)tiles * 4;
  if (one_order) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  const kernel *k = ((const state *)out->state)->kernel;
  return cuda_check(cudaFuncSetAttribute(k->function, cudaFuncAttributeMaxDynamicSharedMemorySize, k->shared), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  products p = st->p;
  auto at = [&](int32_t value) { return value < 0 ? nullptr : (double *)launch->ptr[value]; };
  auto scalar = [&](int32_t value, int i) {
    number n = { nullptr, st->scalar[i], 1 };
    if (value >= 0 && st->host[i]) n.value = qn_load_f64(launch->ptr[value], st->scalar[i]);
    else if (value >= 0) n.p = launch->ptr[value];
    return n;
  };
  p.a.p = at(st->a), p.b.p = at(st->b), p.c = at(st->c), p.bias = at(st->bias), p.y = at(st->y);
  p.alpha = scalar(st->alpha, 0), p.beta = scalar(st->beta, 1);
  p.partial = (double *)launch->workspace, p.tickets = (uint32_t *)launch->counters;
  if (!st->blocks) return QN_OK;
  void *args[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel->function, st->blocks, st->kernel->threads, args, st->kernel->shared,
                                     (cudaStream_t)launch->stream), "matmul_f64");
}

static const qn_engine row[] = {
  { "dmma", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, prepare, build, run,
    cuda_release },
};
CUDA_ENGINES(matmul_f64) = { row, 1 };
