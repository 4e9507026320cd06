/* matmul_tiled.c -- matrix products on any device from compute capability 8.0 on: choice of tile and split of k, launch.
 *
 *   y = chain(alpha a b + beta c + bias)     any strides, any alignment
 *
 *   mma    Tensor Cores by mma.sync: bf16, f16, i8, f32 as tf32 (math tf32) or 3xTF32 (math f32)
 *   simt   f32 on FP32 cores (math strict)
 *
 * Where there are fewer tiles than multiprocessors, k is split among CTAs (_k2, _k4, ...); the last CTA of a tile adds the parts
 * in order, so that results do not depend on timing. Under `deterministic=batch` k is not split, and the first tile that fits is taken,
 * whatever the number of rows. The kernels are in matmul_tiled.cuh. */
#include "engines.h"
#include "matmul_problem.h"
#include "matmul_tiled.h"

/* ---- variants --------------------------------------------------------------------------------- */

static const int splits_of[] = { 1, 2, 4, 8, 16 };
enum { N_SPLITS = sizeof splits_of / sizeof *splits_of };
#define EACH(bm, bn) #bm "x" #bn "_k1", #bm "x" #bn "_k2", #bm "x" #bn "_k4", #bm "x" #bn "_k8", #bm "x" #bn "_k16",
static const char *const mma_variants[] = { CUDA_TILED_TILES(EACH) NULL };
static const char *const simt_variants[] = { CUDA_TILED_SIMT_TILES(EACH) NULL };
#undef EACH

typedef struct state {
  cuda_tiled tiled;                       /* all but addresses */
  cuda_chain chain;
  int32_t    value_a, value_b, grid;
  const cuda_tiled_kernel *kernel;
  int32_t    rows_a, rows_b;
} state;

/* ---- operands ------------------------------------------------------------------------------------ */

/* Chooses an operand's layout in shared memory (rows contiguous or k) and returns the bytes of one copy; 0: element by element. */
static int32_t copy_bytes(const cuda_matmul_side *s, int64_t k, int esize, bool rows_contiguous)
{
  int64_t inner = rows_contiguous ? s->row_stride : s->k_stride, extent = rows_contiguous ? s->rows : k;
  int64_t outer = rows_contiguous ? s->k_stride : s->row_stride;
  if (inner != 1 && extent > 1) return 0;
  for (int32_t w = 16; w >= 4; w /= 2)
    if (s->align >= (uint32_t)w && outer * esize % w == 0 && s->batch_stride[0] * esize % w == 0 && s->batch_stride[1] * esize % w == 0)
      return w;
  return 0;
}

static bool wants_rows(const cuda_tiled_kernel *kernel, const cuda_matmul_side *s)
{
  return kernel->lies >= 0 ? kernel->lies : s->k_stride > 1 && s->row_stride <= 1;
}

/* ---- which tile ------------------------------------------------------------------------------------ */

/* Nanoseconds, without the launch. A multiprocessor works through the stages of its tiles at the rate of products, of copies or
 * (with few CTAs) of latency; scattered words cost extra instructions. Constants fitted on an H200. */
static double cost(const cuda_matmul *p, const cuda_tiled_kernel *k, int splits, int64_t units, const int32_t bytes[2], int multiprocessors)
{
  int esize = (int)qn_kit_bytes(p->a.dtype);
  int64_t steps = qn_ceil_div(qn_ceil_div(p->k, k->bk), splits);
  double product = (double)k->bm * k->bn * k->bk / k->rate;
  double copy = 0, scatter = 0, latency = 220;
  for (int i = 0; i < 2; i++) {
    double elements = (double)(i ? k->bn : k->bm) * k->bk;
    if (bytes[i]) copy += elements * esize / (bytes[i] == 16 ? 40 : bytes[i] * 2);
    else if (esize == 4) scatter += elements / 2;
    else copy += elements / 4, latency = 3500;
  }
  double work = (product > copy ? product : copy) + scatter, cycles = 0;
  int64_t room = (int64_t)multiprocessors * k->resident;
  for (int64_t left = units; left > 0; left -= room) {      /* full waves, then the remainder */
    int64_t at_once = qn_ceil_div(left < room ? left : room, multiprocessors), rounds = left / room > 1 ? left / room : 1;
    double step = at_once * work > latency ? at_once * work : latency;
    cycles += (double)rounds * (steps * step + 2000.0 * k->bm * k->bn / 8 / k->threads);
    left -= (rounds - 1) * room;
  }
  if (splits > 1) cycles += 2000 + splits * (k->bm * k->bn / 16.0);
  double memory = ((double)p->m * p->k + (double)p->n * p->k) * esize * (double)(p->batch[0] * p->batch[1]) / (25.0 * multiprocessors);
  double ns = cycles / 1.7;
  return ns > memory ? ns + 0.15 * memory : memory + 0.15 * ns;
}

/* ---- prepare ---------------------------------------------------------------------------------------- */

static qn_status prepare_with(const qn_request *r, qn_prepared *out, const cuda_matmul *p, const cuda_tiled_kernel *kernels,
                              const char *const *names, double launch)
{
  int esize = (int)qn_kit_bytes(p->a.dtype), best = -1;
  int64_t batches = p->batch[0] * p->batch[1];
  double least = 0;
  const bool one_order = r->demands->determinism >= QN_DET_BATCH;
  for (int v = 0; names[v] && !(one_order && best >= 0); v++) {
    const cuda_tiled_kernel *k = &kernels[v / N_SPLITS];
    int splits = splits_of[v % N_SPLITS];
    int64_t tiles = qn_ceil_div(p->m, k->bm) * qn_ceil_div(p->n, k->bn) * batches, steps = qn_ceil_div(p->k, k->bk);
    bool rows[2] = { wants_rows(k, &p->a), wants_rows(k, &p->b) };
    int32_t bytes[2] = { copy_bytes(&p->a, p->k, esize, rows[0]), copy_bytes(&p->b, p->k, esize, rows[1]) };
    if (r->variant && strcmp(r->variant, names[v])) continue;
    if (one_order && (splits > 1 || k->aligned_only)) continue;       /* a row alone may be aligned as the others are not */
    if (tiles * splits > INT32_MAX || (k->aligned_only && (!bytes[0] || !bytes[1]))) continue;
    if (k->shared[rows[0]][rows[1]] > (int64_t)r->device->shared_per_block) continue;
    /* every split needs a part of k, and workspace for its partial sums, as do sums of several blocks */
    if (splits > 1 && (qn_ceil_div(steps, splits) * (splits - 1) >= steps || tiles > 1024)) continue;
    if ((splits > 1 || p->k > cuda_tiled_block(esize)) && (uint64_t)(tiles * splits) * k->bm * k->bn * 4 > r->demands->workspace_limit)
      continue;
    double t = launch + cost(p, k, splits, tiles * splits, bytes, r->device->units);
    if (best < 0 || t < least) best = v, least = t;
  }
  if (best < 0)
    return qn_refuse(out, "a variant for this problem", "", "fewer shares, or a smaller tile where operands are not aligned to 4 bytes",
                     "%s", r->variant ? r->variant : "");

  cuda_chain chain;
  qn_status status = cuda_matmul_chain(r, out, p, &chain);
  if (status) return status;
  state st = { 0 };
  const cuda_tiled_kernel *k = st.kernel = &kernels[best / N_SPLITS];
  const qn_value *to = &r->value[chain.out];
  cuda_tiled *t = &st.tiled;
  st.chain = chain;
  st.value_a = p->a.value;
  st.value_b = p->b.value;
  st.rows_a = wants_rows(k, &p->a);
  st.rows_b = wants_rows(k, &p->b);
  t->a = (cuda_tiled_side){ .row_stride = p->a.row_stride,
                            .k_stride = p->a.k_stride,
                            .batch_stride = { p->a.batch_stride[0], p->a.batch_stride[1] },
                            .rows = (int32_t)p->m,
                            .bytes = copy_bytes(&p->a, p->k, esize, st.rows_a) };
  t->b = (cuda_tiled_side){ .row_stride = p->b.row_stride,
                            .k_stride = p->b.k_stride,
                            .batch_stride = { p->b.batch_stride[0], p->b.batch_stride[1] },
                            .rows = (int32_t)p->n,
                            .bytes = copy_bytes(&p->b, p->k, esize, st.rows_b) };
  for (int i = 0; i < 4; i++) t->out_stride[i] = cuda_stride(to, p->dims.dim_of[i]);
  t->out_dtype = to->dtype;
  t->along = t->out_stride[1] != 1 && t->out_stride[0] == 1;
  t->k = (int32_t)p->k;
  t->parts.splits = splits_of[best % N_SPLITS];
  t->share = (int32_t)(qn_ceil_div(qn_ceil_div(p->k, k->bk), t->parts.splits) * k->bk);
  t->block = cuda_tiled_block(esize);
  t->tiles_m = (int32_t)qn_ceil_div(p->m, k->bm);
  t->tiles_n = (int32_t)qn_ceil_div(p->n, k->bn);
  t->batch0 = (int32_t)p->batch[0];
  t->group = 12;
  t->steps = chain.steps;
  int64_t tiles = (int64_t)t->tiles_m * t->tiles_n * batches;
  st.grid = (int32_t)(tiles * t->parts.splits);

  if (t->parts.splits > 1 || t->share > t->block) out->workspace = (uint64_t)st.grid * (uint64_t)(k->bm * k->bn * 4);
  if (t->parts.splits > 1) out->counters = (uint64_t)tiles * 4;
  out->n_ops = chain.n_ops;
  out->variant = names[best];
  out->estimate = least;
  if (one_order) out->traits |= QN_TRAIT_BATCH_INVARIANT;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status refuse_dtypes(qn_prepared *out, const cuda_matmul *p, const char *takes)
{
  return qn_refuse(out, "operands of one dtype", p->a.dtype != p->b.dtype ? "b" : "a",
                   p->a.dtype != p->b.dtype ? qn_kit_name(p->a.dtype) : takes, "%s",
                   qn_kit_name(p->a.dtype != p->b.dtype ? p->b.dtype : p->a.dtype));
}

static qn_status refuse_device(const qn_request *r, qn_prepared *out)
{
  return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
}

static qn_status prepare_mma(const qn_request *r, qn_prepared *out)
{
  cuda_matmul p;
  if (r->device->arch_major < 8) return refuse_device(r, out);
  qn_status status = cuda_matmul_read(r, out, &p);
  if (status) return status;
  bool tf32 = r->demands->math >= QN_MATH_TF32;
  const cuda_tiled_kernel *kernels = p.a.dtype == QN_BF16 ? cuda_mma_bf16
                                   : p.a.dtype == QN_F16  ? cuda_mma_f16
                                   : p.a.dtype == QN_I8   ? cuda_mma_i8
                                   : p.a.dtype != QN_F32  ? NULL
                                   : tf32                 ? cuda_mma_tf32
                                                          : cuda_mma_3xtf32;
  if (!kernels || p.a.dtype != p.b.dtype) return refuse_dtypes(out, &p, "f16, bf16, f32 or i8");
  if (p.a.dtype == QN_F32 && (p.a.align < 4 || p.b.align < 4))
    return qn_refuse(out, "elements at their own alignment", p.a.align < 4 ? "a" : "b", "4 bytes", "%u",
                     p.a.align < 4 ? p.a.align : p.b.align);
  status = prepare_with(r, out, &p, kernels, mma_variants, 3000);
  if (status) return status;
  if (p.a.dtype == QN_I8 && out->traits & QN_TRAIT_BATCH_INVARIANT && out->n_ops == 1) out->traits |= QN_TRAIT_PORTABLE;    /* exact */
  out->math = p.a.dtype != QN_F32 ? QN_MATH_STRICT : tf32 ? QN_MATH_TF32 : QN_MATH_F32;
  out->numerics.accumulator = p.a.dtype == QN_I8 ? QN_ACC_NATIVE : p.a.dtype != QN_F32 ? QN_ACC_F32_TC : tf32 ? QN_ACC_TF32 : QN_ACC_3XTF32;
  return QN_OK;
}

static qn_status prepare_simt(const qn_request *r, qn_prepared *out)
{
  cuda_matmul p;
  if (r->device->arch_major < 8) return refuse_device(r, out);
  qn_status status = cuda_matmul_read(r, out, &p);
  if (status) return status;
  if (p.a.dtype != QN_F32 || p.b.dtype != QN_F32) return refuse_dtypes(out, &p, "f32");
  if (p.a.align < 4 || p.b.align < 4)
    return qn_refuse(out, "elements at their own alignment", p.a.align < 4 ? "a" : "b", "4 bytes", "%u",
                     p.a.align < 4 ? p.a.align : p.b.align);
  return prepare_with(r, out, &p, cuda_simt_f32, simt_variants, 500);
}

/* ---- build, run ---------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  (void)r;
  return cuda_check(cudaFuncSetAttribute(st->kernel->function[st->rows_a][st->rows_b], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         st->kernel->shared[st->rows_a][st->rows_b]), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_tiled t = st->tiled;
  t.a.p = launch->ptr[st->value_a];
  t.b.p = launch->ptr[st->value_b];
  t.out = launch->ptr[st->chain.out];
  t.parts.partial = launch->workspace;
  t.parts.ticket = launch->counters;
  cuda_chain_bind(&t.steps, &st->chain, launch->ptr);
  void *args[] = { &t };
  return cuda_check(cudaLaunchKernel(st->kernel->function[st->rows_a][st->rows_b], (dim3){ (unsigned)st->grid, 1, 1 },
                                     (dim3){ (unsigned)st->kernel->threads, 1, 1 }, args,
                                     (size_t)st->kernel->shared[st->rows_a][st->rows_b], launch->stream),
                    "matmul_tiled");
}

static const qn_engine rows[] = {
  { .name = "mma", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES,
    .variants = mma_variants, .prepare = prepare_mma, .build = build, .run = run, .release = cuda_release },
  { .name = "simt", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
    .variants = simt_variants, .prepare = prepare_simt, .build = build, .run = run, .release = cuda_release },
};
CUDA_ENGINES(matmul_tiled) = { rows, sizeof rows / sizeof *rows };
