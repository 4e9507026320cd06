/* matmul_in_parts.cu -- products of long sums with few results, as the products of parts of k, which are many, and their sums:
 *
 *   part[p] = a[:, k of p] b[k of p, :]      a batch, by the best engine for it, in f32 to workspace
 *   y = chain(alpha (part[0] + part[1] + ...) + beta c + bias)      in a fixed order
 *
 * A weights' gradient is such: 96 x 96 results of 25088 terms each, four tiles of 64 x 64 for 132 multiprocessors. Engines that divide k
 * themselves have one CTA add up a tile's parts, so that there can be few of them.
 * Parts are alike, in whole units of 16 bytes; what of k is left then is one more, shorter part, by another launch.
 * Refused: results enough to fill the device, batches of two runs of strides. */
#include "engines.h"
#include "kit/early.h"
#include "kit/part.h"
#include "matmul_problem.h"
#include "program/steps.cuh"

enum { LANES = 32, SLICES = 8, TILE = 64, SHORTEST = 128, MOST = 1024 };   /* SHORTEST: k of a part; MOST: parts */

/* ---- the sum of the parts -------------------------------------------------------------------------- */

struct join {
  const float *part;                      /* [batch][parts][rows][columns] */
  void    *y;
  int32_t  parts, rows, columns, eights;  /* eights: of a row's columns */
  int64_t  units;                         /* eights of a batch */
  uint32_t y_dtype;
  int64_t  y_stride[4];                   /* row, column, batches */
  cuda_steps steps;
};

/* A lane has half an eight of results; the slices of a block share the parts. Grid: units, batches. */
__global__ void __launch_bounds__(LANES * SLICES) matmul_join(const __grid_constant__ join t)
{
  __shared__ __align__(16) float sums[SLICES][LANES * 4];
  const int lane = threadIdx.x % LANES, slice = threadIdx.x / LANES;
  const int64_t unit = blockIdx.x * (int64_t)(LANES / 2) + lane / 2, size = (int64_t)t.rows * t.columns;
  const int row = (int)(unit / t.eights), column = (int)(unit - (int64_t)row * t.eights) * 8 + lane % 2 * 4;
  const int there = unit < t.units ? min(4, t.columns - column) : 0;
  const float *from = t.part + blockIdx.y * t.parts * size + (int64_t)row * t.columns + column;
  float sum[4] = {};
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();        /* the parts are still being made */
#endif
  if (there == 4 && t.columns % 4 == 0) {
#pragma unroll 8
    for (int p = slice; p < t.parts; p += SLICES) {
      const float4 v = *(const float4 *)(from + p * size);
      sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
    }
  } else {
#pragma unroll 4
    for (int p = slice; p < t.parts; p += SLICES)
#pragma unroll
      for (int i = 0; i < 4; i++)
        if (i < there) sum[i] += from[p * size + i];
  }
  *(float4 *)(sums[slice] + lane * 4) = make_float4(sum[0], sum[1], sum[2], sum[3]);
  __syncthreads();

  const int64_t mine = blockIdx.x * (int64_t)(LANES / 2) + threadIdx.x;
  if (threadIdx.x >= LANES / 2 || mine >= t.units) return;
  const int r = (int)(mine / t.eights), c = (int)(mine - (int64_t)r * t.eights) * 8, n = min(8, t.columns - c);
  float v[8] = {};
#pragma unroll
  for (int s = 0; s < SLICES; s++)
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] += sums[s][threadIdx.x * 8 + i];
  steps_apply(t.steps, v, r, c, blockIdx.y, 0, 0, n);
  store8(v, t.y, t.y_dtype, r * t.y_stride[0] + c * t.y_stride[1] + blockIdx.y * t.y_stride[2], t.y_stride[1], n);
}

/* ---- parts ------------------------------------------------------------------------------------------- */

struct division { int64_t parts, k, rest; };                /* alike parts, of so many k each; k of one more */

struct state {
  qn_part *part[2];                       /* of the alike parts; of the rest */
  join     sum;
  cuda_chain chain;
  int64_t  at_a, at_b, at_rest;           /* where the rest begins: bytes of the operands; elements of the workspace */
  uint64_t scratch;                       /* offset of the parts' own workspace */
  int32_t  a, b, early, batches;
};

static void release(qn_prepared *p)
{
  state *s = (state *)p->state;
  if (s) cuda_parts_release(s->part, 2);
  cuda_release(p);
}

/* About so many parts, whole ones if k can be so divided. */
static division divide(int64_t k, int64_t about)
{
  for (int64_t n = about; n > about / 2; n--)
    if (k % (8 * n) == 0) return { n, k / n, 0 };
  const int64_t each = qn_round_up(qn_ceil_div(k, about), 8);
  return { k / each, each, k % each };
}

/* An operand or the results of n parts of k, or their first one of `rest` k, as a value. rows, columns: of the matrix; strides in elements. */
static qn_value value_of(uint32_t dtype, uint32_t align, int64_t batches, int64_t batch_stride, int64_t n, int64_t part_stride, int64_t rows,
                         int64_t row_stride, int64_t columns, int64_t column_stride)
{
  qn_value v = {};
  v.dtype = dtype, v.align = align, v.rank = 4;
  const int64_t dim[] = { batches, n, rows, columns }, stride[] = { batch_stride, part_stride, row_stride, column_stride };
  for (int i = 0; i < 8; i++) v.dim[i] = i < 4 ? dim[i] : 1;
  for (int i = 0; i < 4; i++) v.stride[i] = stride[i];
  return v;
}

/* The product of n parts of k each, as a part of the engine; NULL: no tuned engine takes it. all: parts in a batch of results. */
static const qn_prepared *delegate(const qn_request *r, const cuda_matmul *m, int64_t n, int64_t k, int64_t all, qn_part **part)
{
  static const int32_t first[] = { 0, 1, 2, 2, 2, 2, 2, 3 }, arg[] = { 0, 1, 2 };
  const int64_t size = m->m * m->n;
  qn_value value[] = {
    value_of(m->a.dtype, m->a.align, m->batch[0], m->a.batch_stride[0], n, k * m->a.k_stride, m->m, m->a.row_stride, k, m->a.k_stride),
    value_of(m->b.dtype, m->b.align, m->batch[0], m->b.batch_stride[0], n, k * m->b.k_stride, k, m->b.k_stride, m->n, m->b.row_stride),
    value_of(QN_F32, n > 1 || size % 4 == 0 ? 16 : 4, m->batch[0], all * size, n, size, m->m, m->n, m->n, 1),
  };
  qn_node node = r->op[0];
  node.first = first, node.arg = arg;
  const qn_prepared *answer = cuda_part_prepare(r, &node, value, part) ? NULL : r->host->part_answer(*part);
  return answer && answer->class_ == QN_CLASS_TUNED && answer->estimate > 0 ? answer : NULL;
}

/* Nanoseconds of adding up: the launch, which the products' end hides in part, and the parts, which L2 holds. */
static double joining(const cuda_matmul *m, int64_t parts)
{
  return 2900 + (double)(m->m * m->n * m->batch[0]) * ((double)parts * 8 + 4) / 4000;
}

/* ---- prepare, build, run ------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_matmul m;
  qn_status status = cuda_matmul_read_floats(r, out, &m);
  if (status) return status;
  if (m.batch[1] > 1) return qn_refuse(out, "leading dims must merge into one", "y", "one run of strides", "%s", "two");
  const int64_t tiles = qn_ceil_div(m.m, TILE) * qn_ceil_div(m.n, TILE) * m.batch[0], most = r->device->units / tiles;
  if (most < 2)
    return qn_refuse(out, "too few results to fill the device", "y", "", "%lld tiles of 64 x 64", (long long)tiles);
  if (m.k < 2 * SHORTEST) return qn_refuse(out, "a sum of parts of 128 terms or more", "a", "256", "%lld", (long long)m.k);
  if (m.batch[0] > 65535) return qn_refuse(out, "batches of a grid's height", "y", "65535", "%lld", (long long)m.batch[0]);

  state *s = (state *)cuda_state(out, sizeof *s);
  if (!s) return QN_NO_MEMORY;
  status = cuda_matmul_chain(r, out, &m, &s->chain);
  if (status) {
    release(out);
    return status;
  }
  /* one tile for each multiprocessor, or half a one: engines have tiles of twice that size */
  const int64_t size = m.m * m.n;
  division best = {};
  double least = 0;
  for (int64_t about = most, tries = 0; tries < 2; tries++, about *= 2) {
    const division d = divide(m.k, qn_min_i64(qn_min_i64(about, MOST), m.k / SHORTEST));
    const int64_t all = d.parts + (d.rest > 0);
    if (all < 2 || (tries && d.parts == best.parts) || (uint64_t)(all * size * m.batch[0]) * 4 > r->demands->workspace_limit) continue;
    qn_part *part[2] = {};
    const qn_prepared *of = delegate(r, &m, d.parts, d.k, all, &part[0]), *rest = d.rest && of ? delegate(r, &m, 1, d.rest, all, &part[1]) : NULL;
    const double ns = !of || (d.rest && !rest) ? 0 : of->estimate + (rest ? rest->estimate : 0) + joining(&m, all);
    const bool better = ns > 0 && (!least || ns < least);
    if (better) least = ns, best = d;
    cuda_parts_release(better ? s->part : part, 2);
    for (int i = 0; i < 2 && better; i++) s->part[i] = part[i];
  }
  if (!least) {
    release(out);
    return qn_refuse(out, "a tuned engine for parts of the sum, and workspace for them", "a", "what one takes", "%s", "another");
  }
  const qn_value *y = &r->value[s->chain.out];
  const int esize = (int)qn_kit_bytes(m.a.dtype);
  const int64_t all = best.parts + (best.rest > 0), begins = best.parts * best.k;
  join *t = &s->sum;
  t->parts = (int32_t)all, t->rows = (int32_t)m.m, t->columns = (int32_t)m.n;
  t->eights = (int32_t)qn_ceil_div(m.n, 8), t->units = m.m * t->eights;
  t->y_dtype = y->dtype, t->steps = s->chain.steps;
  for (int i = 0; i < 4; i++) t->y_stride[i] = cuda_stride(y, m.dims.dim_of[i]);
  s->a = m.a.value, s->b = m.b.value, s->batches = (int32_t)m.batch[0];
  s->at_a = begins * m.a.k_stride * esize, s->at_b = begins * m.b.k_stride * esize, s->at_rest = best.parts * size;
  s->scratch = (uint64_t)qn_round_up(all * size * m.batch[0] * 4, 256);
  for (int i = 0; i < 2 && s->part[i]; i++) {
    const qn_prepared *of = r->host->part_answer(s->part[i]);
    cuda_parts_add(out, of, s->scratch);
    if (i == 0 || of->math > out->math) out->math = of->math, out->numerics = of->numerics;
  }
  out->estimate = least;
  out->n_ops = s->chain.n_ops;
  return QN_OK;
}

static qn_status build(const qn_request *, qn_prepared *out)
{
  state *s = (state *)out->state;
  const qn_status status = cuda_parts_build(s->part, 2);
  return status ? status : cuda_waits_itself((const void *)matmul_join, &s->early);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = (const state *)prepared->state;
  join t = s->sum;
  char *room = (char *)launch->workspace, *a = (char *)launch->ptr[s->a], *b = (char *)launch->ptr[s->b];
  void *alike[] = { a, b, room }, *rest[] = { a + s->at_a, b + s->at_b, room + s->at_rest * 4 };
  qn_status status = cuda_host->part_run(s->part[0], launch, alike, room + s->scratch, launch->counters);
  if (!status && s->part[1]) status = cuda_host->part_run(s->part[1], launch, rest, room + s->scratch, launch->counters);
  if (status) return status;
  t.part = (const float *)room, t.y = launch->ptr[s->chain.out];
  cuda_chain_bind(&t.steps, &s->chain, launch->ptr);
  void *arguments[] = { &t };
  const dim3 grid((unsigned)qn_ceil_div(t.units, LANES / 2), (unsigned)s->batches);
  return cuda_launch_kernel((const void *)matmul_join, s->early, grid, LANES * SLICES, 0, arguments, launch->stream, "matmul_in_parts");
}

static const qn_engine row[] = {
  { "in_parts", QN_OP_MATMUL, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr,
    prepare, build, run, release },
};
CUDA_ENGINES(matmul_in_parts) = { row, sizeof row / sizeof *row };
