/* matmul_wgmma.c -- matrix products on Hopper's Tensor Cores: which problems, which tile, how it is launched.
 *
 *   y = chain(alpha a b + beta c + bias)     a, b f16 or bf16, either dim contiguous; y f16, bf16 or f32, any strides
 *
 * Wins wherever a row of each operand can be fetched in 16-byte units. Small outputs are summed in shares by several
 * multiprocessors (_k2, _k4); a skinny one has its operands exchanged (_t): a tile has at least 64 rows but as few as 16 columns. */
#include "chain.h"
#include "engines.h"
#include "matmul_wgmma.h"

/* ---- variants --------------------------------------------------------------------------------- */

/* A kernel's tile, the operands as they are or exchanged (t). */
typedef struct variant { int16_t bm, bn, splits, swap; } variant;
#define EACH(bm, bn, splits) { bm, bn, splits, 0 }, { bm, bn, splits, 1 },
static const variant variants[] = { CUDA_GEMM_TILES_16(EACH) };
#undef EACH
#define EACH(bm, bn, splits) #bm "x" #bn "_k" #splits, #bm "x" #bn "_k" #splits "_t",
static const char *const variant_names[] = { CUDA_GEMM_TILES_16(EACH) NULL };
#undef EACH
enum { n_variants = sizeof variants / sizeof *variants };

/* ---- the problem ------------------------------------------------------------------------------ */

/* An operand as a map sees it: `rows` by k, the other way round if rows are contiguous. */
typedef struct side { int32_t value; int64_t rows, row_stride, k_stride, batch_stride[2]; bool rows_contiguous; } side;

typedef struct problem {
  int64_t  m, n, k, batch[2];
  uint32_t dtype, out_dtype;
  side     a, b;
  int64_t  out_stride[4];
  int      esize;
} problem;

typedef struct state {
  cuda_gemm gemm;                         /* but for addresses */
  cuda_chain chain;
  const cuda_gemm_kernel *kernel;
  const void *function;
  const cuda_driver *driver;
  int32_t  grid;
  side     side_a, side_b;
  problem  problem;
} state;

static const cuda_gemm_kernel *kernels_of(uint32_t dtype)
{
  return dtype == QN_BF16 ? cuda_gemm_bf16 : dtype == QN_F16 ? cuda_gemm_f16 : NULL;
}

static int64_t stride_of(const qn_value *v, int d) { return d >= 0 && v->dim[d] > 1 ? v->stride[d] : 0; }

/* Leading dims of y merged into at most two, for all of v[n] at once. */
static bool merge_batch(const qn_value *y, const qn_value *const v[], int n, int64_t batch[2], int32_t inner[2], int64_t stride[][2])
{
  int groups = 0;
  batch[0] = batch[1] = 1;
  inner[0] = inner[1] = -1;
  for (int i = 0; i < n; i++) stride[i][0] = stride[i][1] = 0;
  for (int d = y->rank - 3; d >= 0; d--) {
    if (y->dim[d] == 1) continue;
    bool joins = groups > 0;
    for (int i = 0; i < n && joins; i++) joins = stride_of(v[i], d) == stride[i][groups - 1] * batch[groups - 1];
    if (!joins) {
      if (groups == 2) return false;
      inner[groups] = d;
      for (int i = 0; i < n; i++) stride[i][groups] = stride_of(v[i], d);
      groups++;
    }
    batch[groups - 1] *= y->dim[d];
  }
  return true;
}

/* Can the copy engine fetch it: one dim contiguous, every other stride and the address in units of 16 bytes. */
static bool side_fits(side *s, const qn_value *v, int64_t k, int esize)
{
  int64_t unit = 16 / esize;
  bool by_k = (s->k_stride == 1 || k == 1) && (s->rows == 1 || s->row_stride % unit == 0);
  bool by_rows = (s->row_stride == 1 || s->rows == 1) && (k == 1 || s->k_stride % unit == 0) && esize == 2;
  s->rows_contiguous = !by_k;
  return (by_k || by_rows) && v->align >= 16 && s->batch_stride[0] % unit == 0 && s->batch_stride[1] % unit == 0;
}

/* ---- which tile --------------------------------------------------------------------------------- */

/* Nanoseconds: what a k step takes (products, or bytes into shared memory), rounds, the fixed costs of a round, and the
 * bytes from memory. Constants read off an H200 (bench/reports). */
static double cost(const problem *p, int i, int units_of_device)
{
  int64_t rows = variants[i].swap ? p->n : p->m, cols = variants[i].swap ? p->m : p->n;
  int bm = variants[i].bm, bn = variants[i].bn, splits = variants[i].splits;
  int64_t tiles = qn_ceil_div(rows, bm) * qn_ceil_div(cols, bn) * p->batch[0] * p->batch[1];
  int64_t split_steps = qn_ceil_div(qn_ceil_div(p->k * p->esize, 128), splits);
  double product = bm / 64 * (bn < 64 ? 64 : bn) * 2.0, fill = (bm + bn) * 128 / 60.0;
  double step = product > fill ? product : fill;
  double epilogue = 300 + bm * bn / 16.0 + (bn / splits < 64 || variants[i].swap ? 1200 + bm * bn / 4.0 : 0);
  double join = splits > 1 ? 2000 + 4.0 * bm * bn * (splits - 1) / splits / 19 : 0;
  double rounds = (double)qn_ceil_div(tiles * splits, units_of_device);
  double work = (2000 + rounds * (split_steps * step + epilogue + join)) / 1.75;
  double memory = ((double)p->m * p->k + (double)p->n * p->k) * p->esize * (double)(p->batch[0] * p->batch[1]) / 4400;
  return (work > memory ? work + 0.15 * memory : memory + 0.15 * work) + 1000;
}

/* A split tile wants its cluster to itself, and a part of k for each of its CTAs. */
static bool variant_fits(const problem *p, int i, int units_of_device)
{
  int64_t steps = qn_ceil_div(p->k * p->esize, 128);
  int splits = variants[i].splits;
  if (splits == 1) return true;
  int64_t rows = variants[i].swap ? p->n : p->m, cols = variants[i].swap ? p->m : p->n;
  int64_t tiles = qn_ceil_div(rows, variants[i].bm) * qn_ceil_div(cols, variants[i].bn) * p->batch[0] * p->batch[1];
  int64_t share = qn_ceil_div(steps, splits), room = units_of_device / splits - (splits > 2 ? units_of_device / 44 : 0);
  return share * (splits - 1) < steps && tiles <= room;
}

/* ---- prepare -------------------------------------------------------------------------------------- */

static const char *const sides[2] = {"a", "b"};

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *a = cuda_value(r, QN_ROLE_MATMUL_A), *b = cuda_value(r, QN_ROLE_MATMUL_B), *y = cuda_value(r, QN_ROLE_MATMUL_Y);
  int c = qn_role(op, QN_ROLE_MATMUL_C), bias = qn_role(op, QN_ROLE_MATMUL_BIAS);
  int alpha = qn_role(op, QN_ROLE_MATMUL_ALPHA), beta = qn_role(op, QN_ROLE_MATMUL_BETA);
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  const cuda_gemm_kernel *kernels = kernels_of(a->dtype);
  if (!kernels || b->dtype != a->dtype) return qn_refuse(out, "dtypes", "a", "f16 or bf16", "%s", "another");
  int rank = y->rank;
  problem p = { .m = y->dim[rank - 2], .n = y->dim[rank - 1], .k = a->dim[rank - 1], .dtype = a->dtype, .esize = (int)qn_kit_bytes(a->dtype) };
  if (p.k == 0) return qn_refuse(out, "k is nothing", "a", "1 or more", "0");
  if (p.m > INT32_MAX || p.n > INT32_MAX || p.k > INT32_MAX) return qn_refuse(out, "dims beyond 2^31", "y", "less than 2^31", "more");
  if (alpha >= 0 && r->value[alpha].scalar == QN_SCALAR_ZERO) return qn_refuse(out, "nothing to multiply", "alpha", "not 0", "0");

  p.a = (side){ .value = qn_role(op, QN_ROLE_MATMUL_A), .rows = p.m, .row_stride = a->stride[rank - 2], .k_stride = a->stride[rank - 1] };
  p.b = (side){ .value = qn_role(op, QN_ROLE_MATMUL_B), .rows = p.n, .row_stride = b->stride[rank - 1], .k_stride = b->stride[rank - 2] };
  const qn_value *const together[] = { a, b, y, c >= 0 ? &r->value[c] : y };
  int64_t stride[4][2];
  cuda_out_dims dims = { { rank - 2, rank - 1, -1, -1 }, false };
  if (!merge_batch(y, together, 4, p.batch, dims.dim_of + 2, stride))
    return qn_refuse(out, "leading dims must merge into two", "y", "at most two runs of strides", "more");
  memcpy(p.a.batch_stride, stride[0], sizeof stride[0]);
  memcpy(p.b.batch_stride, stride[1], sizeof stride[1]);
  if (p.batch[0] * p.batch[1] > 65535) return qn_refuse(out, "batches beyond 65535", "y", "at most 65535", "%lld", (long long)(p.batch[0] * p.batch[1]));
  side *s[2] = { &p.a, &p.b };
  const qn_value *v[2] = { a, b };
  for (int i = 0; i < 2; i++)
    if (!side_fits(s[i], v[i], p.k, p.esize))
      return qn_refuse(out, "one dim contiguous, all else in units of 16 bytes", sides[i], "strides and address multiples of 16 bytes",
                         "%lld:%lld@%u", (long long)v[i]->stride[rank - 2], (long long)v[i]->stride[rank - 1], v[i]->align);

  /* which tile: the one asked for, or the cheapest */
  int best = -1;
  double least = 0;
  for (int i = 0; i < n_variants; i++) {
    if (r->variant && strcmp(r->variant, variant_names[i])) continue;
    if (!variant_fits(&p, i, r->device->units)) continue;
    double t = cost(&p, i, r->device->units);
    if (best < 0 || t < least) best = i, least = t;
  }
  if (best < 0) return qn_refuse(out, "a variant that this problem can be split into", "", "fewer shares, or more k", "%s", r->variant ? r->variant : "");
  int swap = variants[best].swap;
  if (swap) dims.dim_of[0] = rank - 1, dims.dim_of[1] = rank - 2;

  /* what happens to the sums */
  cuda_chain chain;
  cuda_chain_begin(&chain, qn_role(op, QN_ROLE_MATMUL_Y));
  bool ok = true;
  if (alpha >= 0 && r->value[alpha].scalar != QN_SCALAR_ONE) {
    int k = cuda_chain_operand(&chain, r, alpha, &dims);
    ok = k >= 0 && cuda_chain_step(&chain, CUDA_STEP_ALPHA, k, false, 0, 0);
  }
  if (ok && c >= 0 && beta >= 0 && r->value[beta].scalar != QN_SCALAR_ONE) {
    if (r->value[beta].scalar != QN_SCALAR_ZERO) {
      int k = cuda_chain_operand(&chain, r, beta, &dims);
      ok = k >= 0 && cuda_chain_operand(&chain, r, c, &dims) == k + 1 && cuda_chain_step(&chain, CUDA_STEP_BETA, k, false, 0, 0);
    }
  } else if (ok && c >= 0) {
    int k = cuda_chain_operand(&chain, r, c, &dims);
    ok = k >= 0 && cuda_chain_step(&chain, QN_OP_ADD, k, false, 0, 0);
  }
  if (ok && bias >= 0) {
    int k = cuda_chain_operand(&chain, r, bias, &dims);
    ok = k >= 0 && cuda_chain_step(&chain, QN_OP_ADD, k, false, 0, 0);
    if (ok) {                                               /* [N]: along y's last dim alone */
      int64_t *st = chain.steps.operand[k].stride, n_stride = r->value[bias].dim[0] > 1 ? r->value[bias].stride[0] : 0;
      memset(st, 0, sizeof chain.steps.operand[k].stride);
      st[swap ? 0 : 1] = n_stride;
    }
  }
  if (!ok) return qn_refuse(out, "scalars and c in dtypes that the epilogue reads", "c", "f16, bf16 or f32", "another");
  if (y->dtype != QN_F32 && y->dtype != QN_F16 && y->dtype != QN_BF16) return qn_refuse(out, "dtypes", "y", "f16, bf16 or f32", "another");
  cuda_chain_follow(&chain, r, &dims);
  const qn_value *to = &r->value[chain.out];
  p.out_dtype = to->dtype;

  state *st = r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  out->state = st;
  st->problem = p;
  st->chain = chain;
  st->side_a = swap ? p.b : p.a;
  st->side_b = swap ? p.a : p.b;
  st->kernel = kernels + best / 2;
  st->function = st->kernel->function[st->side_a.rows_contiguous][st->side_b.rows_contiguous];

  cuda_gemm *g = &st->gemm;
  int64_t steps = qn_ceil_div(p.k * p.esize, 128);
  int out_bytes = (int)qn_kit_bytes(to->dtype);
  for (int i = 0; i < 4; i++) g->out_stride[i] = stride_of(to, dims.dim_of[i]);
  g->out_dtype = to->dtype;
  g->m = (int32_t)st->side_a.rows;
  g->n = (int32_t)st->side_b.rows;
  g->k_steps = (int32_t)steps;
  g->tiles_m = (int32_t)qn_ceil_div(g->m, st->kernel->bm);
  g->tiles_n = (int32_t)qn_ceil_div(g->n, st->kernel->bn);
  g->batch0 = (int32_t)p.batch[0];
  g->batch1 = (int32_t)p.batch[1];
  g->group = 12;
  int splits = st->kernel->splits;
  g->split_steps = (int32_t)qn_ceil_div(steps, splits);
  g->steps = chain.steps;
  bool wide = g->out_stride[1] == 1 || g->n == 1;
  g->along = wide || g->out_stride[0] != 1 ? 0 : 1;
  g->store_map = cuda_chain_column_relu(&chain.steps, &g->column, &g->relu) && wide && to->align >= 16 && st->kernel->bn / splits >= (to->dtype == QN_F32 ? 32 : 64);
  for (int i = 0; i < 4; i++)
    if (i != 1 && g->out_stride[i] * out_bytes % 16) g->store_map = 0;
  if (g->n * out_bytes % 16) g->store_map = 0;               /* the copy engine clips in units of 16 bytes */
  int64_t tiles = (int64_t)g->tiles_m * g->tiles_n * g->batch0 * g->batch1, most = r->device->units / splits;
  st->grid = (int32_t)(tiles < most ? tiles : most) * splits;

  out->n_ops = chain.n_ops;
  out->variant = variant_names[best];
  out->estimate = least;
  out->math = QN_MATH_STRICT;
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC };
  return QN_OK;
}

/* ---- build ------------------------------------------------------------------------------------------ */

static qn_status encode(const cuda_driver *driver, CUtensorMap *map, uint32_t dtype, int64_t inner, int64_t outer, int64_t outer_stride,
                        const int64_t batch[2], const int64_t batch_stride[2], uint32_t box_inner, uint32_t box_outer, int span)
{
  int esize = (int)qn_kit_bytes(dtype);
  cuuint64_t dim[4] = { (cuuint64_t)inner, (cuuint64_t)outer, (cuuint64_t)batch[0], (cuuint64_t)batch[1] };
  int64_t pitch = outer > 1 ? outer_stride * esize : qn_ceil_div(inner * esize, 16) * 16;
  cuuint64_t stride[3] = { (cuuint64_t)pitch, batch[0] > 1 ? (cuuint64_t)(batch_stride[0] * esize) : (cuuint64_t)pitch,
                           batch[1] > 1 ? (cuuint64_t)(batch_stride[1] * esize) : (cuuint64_t)pitch };
  cuuint32_t box[4] = { box_inner, box_outer, 1, 1 }, one[4] = { 1, 1, 1, 1 };
  CUtensorMapDataType type = dtype == QN_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : dtype == QN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 :
                             CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  CUtensorMapSwizzle swizzle = span == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : span == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_32B;
  /* some address that is aligned; run puts in the true one */
  CUresult e = driver->tensor_map_tiled(map, type, 4, (void *)0x10000, dim, stride, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return e == CUDA_SUCCESS ? QN_OK : cuda_host->error(QN_INTERNAL, "cuda: matmul_wgmma: the driver refused a tensor map");
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  const problem *p = &st->problem;
  const cuda_gemm_kernel *k = st->kernel;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  if (s) return s;
  const cuda_driver *driver = st->driver;
  uint32_t unit = (uint32_t)(128 / p->esize);
  const side *a = &st->side_a, *b = &st->side_b;
  if (a->rows_contiguous)
    s = encode(driver, &st->gemm.a, p->dtype, a->rows, p->k, a->k_stride, p->batch, a->batch_stride, unit, unit, 128);
  else
    s = encode(driver, &st->gemm.a, p->dtype, p->k, a->rows, a->row_stride, p->batch, a->batch_stride, unit, (uint32_t)k->bm, 128);
  if (s) return s;
  if (b->rows_contiguous) {
    uint32_t span = (uint32_t)(k->bn * p->esize < 128 ? k->bn * p->esize : 128);
    s = encode(driver, &st->gemm.b, p->dtype, b->rows, p->k, b->k_stride, p->batch, b->batch_stride, span / (uint32_t)p->esize, unit, (int)span);
  } else {
    s = encode(driver, &st->gemm.b, p->dtype, p->k, b->rows, b->row_stride, p->batch, b->batch_stride, unit, (uint32_t)k->bn, 128);
  }
  if (s) return s;
  if (st->gemm.store_map)
    s = encode(driver, &st->gemm.y, p->out_dtype, st->gemm.n, st->gemm.m, st->gemm.out_stride[0], p->batch, st->gemm.out_stride + 2,
               p->out_dtype == QN_F32 ? 32 : 64, 64, 128);
  if (s) return s;
  return cuda_check(cudaFuncSetAttribute(st->function, cudaFuncAttributeMaxDynamicSharedMemorySize, k->shared), "cudaFuncSetAttribute");
}

/* ---- run ---------------------------------------------------------------------------------------------- */

qn_status cuda_gemm_launch(const void *g, const cuda_gemm_kernel *kernel, const void *function, int grid, void *stream, const char *name)
{
  cudaLaunchAttribute attributes[] = {
    { .id = cudaLaunchAttributeProgrammaticStreamSerialization, .val = { .programmaticStreamSerializationAllowed = 1 } },
    { .id = cudaLaunchAttributeClusterDimension, .val = { .clusterDim = { (unsigned)kernel->splits, 1, 1 } } },
  };
  cudaLaunchConfig_t config = { .gridDim = { (unsigned)grid, 1, 1 }, .blockDim = { (unsigned)kernel->threads, 1, 1 },
                                .dynamicSmemBytes = (size_t)kernel->shared, .stream = stream,
                                .attrs = attributes, .numAttrs = kernel->splits > 1 ? 2 : 1 };
  void *args[] = { (void *)g };
  return cuda_check(cudaLaunchKernelExC(&config, function, args), name);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_gemm g = st->gemm;
  void *y = launch->ptr[st->chain.out];
  st->driver->tensor_map_address(&g.a, launch->ptr[st->side_a.value]);
  st->driver->tensor_map_address(&g.b, launch->ptr[st->side_b.value]);
  if (g.store_map) st->driver->tensor_map_address(&g.y, y);
  g.out = y;
  cuda_chain_bind(&g.steps, &st->chain, launch->ptr);
  return cuda_gemm_launch(&g, st->kernel, st->function, st->grid, launch->stream, "matmul_wgmma");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = NULL;
}

static const qn_engine rows[] = {
  { .name = "wgmma", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES,
    .variants = variant_names, .prepare = prepare, .build = build, .run = run, .release = release },
};
const qn_engine_list cuda_matmul_wgmma_list = { rows, sizeof rows / sizeof *rows };
