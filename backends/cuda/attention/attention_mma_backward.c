/* attention_mma_backward.c -- attention's gradient by mma.sync: what the kernels of attention_mma_backward.cuh and of attention_whole.cuh
 * take, their launches.
 *
 * bf16 and f16 from compute capability 8.0 on, up to 256 elements of a key and of a value, and f32, by 3xTF32, up to 128 (zeros fill up to
 * the next shape), any number of queries, keys and heads, groups of query heads, causal masks and windows, lengths, bias, mask, blocks,
 * slopes, softcap, dropout, a sink and its gradient, the gradient of a bias, ragged tensors. Not taken here: a bias' gradient of ragged
 * tensors. */
#include "attention_mma_backward.h"
#include "engines.h"

typedef struct state {
  cuda_attention_gradient_request request;
  const cuda_attention_backward_kernels *kernels;
  const cuda_attention_whole_kernels *whole;                /* instead of passes, if not NULL */
  uint32_t grid[2], bias_grid, join_grid, whole_grid;       /* tiles of queries, of keys; parts of tiles of dbias; its elements, if it has
                                                             * parts; blocks that take heads */
} state;
enum { PASSES = 3 };

/* A tile before the first of ragged sequences reads statistics of two tiles behind the last, and drops them. */
static uint64_t statistics_bytes(const state *st)
{
  return (uint64_t)(cuda_attention_gradient_statistics(&st->request) + (st->request.ragged[0] ? 2 * CUDA_ATTENTION_BLOCK : 0)) * 8;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  if (r->device->arch_major < 8)
    return qn_refuse(out, "a device of compute capability 8.0 or more", "", "8.0", "%d.%d", (int)r->device->arch_major,
                     (int)r->device->arch_minor);
  state st = { 0 };
  const uint32_t dtype = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_Q)->dtype;
  const bool f32 = dtype == QN_F32;
  const qn_status s = cuda_attention_gradient_read(r, f32 ? 128 : 256, CUDA_ATTENTION_BLOCK, CUDA_ATTENTION_BLOCK, &st.request, out);
  if (s) return s;
  cuda_attention_gradient *a = &st.request.a;
  st.kernels = f32 ? cuda_attention_backward_f32 : dtype == QN_BF16 ? cuda_attention_backward_bf16 : cuda_attention_backward_f16;
  while (st.kernels->d < a->q.size || st.kernels->dv < a->v.size) st.kernels++;
  if (cuda_room(r) < st.kernels->pass[0].shared)
    return qn_refuse(out, "four tiles and their next in shared memory", "", "more of it", "%lld bytes", (long long)cuda_room(r));
  if (st.kernels->pass[2].shared && st.request.rows[CUDA_ATTENTION_DV] < 0)
    return qn_refuse(out, "values of more than 128 elements apart from keys", "v", "a tensor", "%s", "none");
  if (a->dbias_dim[0] && (st.request.ragged[0] || st.request.ragged[1]))
    return qn_refuse(out, "a bias' gradient, or ragged tensors, not both", "dbias", "none", "%s", "one");
  if (!f32 && a->group == 1 && a->queries <= CUDA_ATTENTION_BLOCK && a->keys <= CUDA_ATTENTION_BLOCK && st.kernels->d == 64
      && st.kernels->dv == 64 && !st.request.ragged[0] && !st.request.ragged[1]) {
    st.whole = dtype == QN_BF16 ? &cuda_attention_whole_bf16 : &cuda_attention_whole_f16;
    st.whole_grid = (uint32_t)qn_min_i64((int64_t)a->batch * a->heads, (int64_t)st.whole->blocks * r->device->units);
  }
  /* Where a dim of bias is spread, a block walks over it, or several share that, so that there are some for each unit. */
  const int64_t bias_tiles = (int64_t)a->dbias_dim[0] * a->dbias_dim[1] * qn_ceil_div(a->dbias_dim[2], CUDA_ATTENTION_BLOCK)
                           * qn_ceil_div(a->dbias_dim[3], st.kernels->bias_keys),
                all_tiles = (int64_t)a->batch * a->heads * qn_ceil_div(a->queries, CUDA_ATTENTION_BLOCK)
                          * qn_ceil_div(a->keys, st.kernels->bias_keys);
  if (bias_tiles > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 tiles", "dbias", "fewer", "%lld", (long long)bias_tiles);
  const int64_t elements = (int64_t)a->dbias_dim[0] * a->dbias_dim[1] * a->dbias_dim[2] * a->dbias_dim[3],
                row = a->dbias_dim[3] == 1 ? qn_max_i64(1, qn_ceil_div(a->keys, st.kernels->bias_keys)) : 1,      /* not shared */
                visits = bias_tiles ? all_tiles / bias_tiles / row : 1;
  a->dbias_parts = !bias_tiles || r->demands->determinism >= QN_DET_BATCH ? 1
                 : (int32_t)qn_max_i64(1, qn_min_i64(visits, 6 * r->device->units / bias_tiles));
  const uint64_t part = (uint64_t)elements * 4, fixed = statistics_bytes(&st), limit = r->demands->workspace_limit;
  while (a->dbias_parts > 1 && fixed + part * (uint64_t)a->dbias_parts > limit) a->dbias_parts--;
  if (a->dbias_parts > 1) out->traits &= ~(uint64_t)QN_TRAIT_BATCH_INVARIANT;
  st.bias_grid = (uint32_t)(bias_tiles * a->dbias_parts);
  st.join_grid = a->dbias_parts > 1 ? (uint32_t)qn_ceil_div(elements, 4) : 0;
  for (int i = 0; i < 2; i++) st.grid[i] = (uint32_t)cuda_attention_gradient_tiles(&st.request, i, CUDA_ATTENTION_BLOCK);

  out->workspace = fixed + (a->dbias_parts > 1 ? part * (uint64_t)a->dbias_parts : 0);
  out->numerics = (qn_numerics){ .accumulator = f32 ? QN_ACC_3XTF32 : QN_ACC_F32_TC, .store = f32 ? 0 : dtype };
  out->math = f32 ? QN_MATH_F32 : QN_MATH_STRICT;
  /* Two blocks a unit, together about 1900 operations a ns (250 TFLOP/s of an H100), one where there is no room for two; 3 products for
   * dq, 4 for dk and dv together, 5 one by one. A block begins and ends in 3.5 us. A whole head takes 8 us, three of a unit at a time. */
  const int resident = st.kernels->d > 192 ? 1 : 2, products[2] = { 6, st.kernels->pass[2].shared ? 10 : 8 };
  out->estimate = st.whole ? 5000 : 8000;
  if (st.whole)
    out->estimate += (double)qn_ceil_div((int64_t)a->batch * a->heads, st.whole->blocks * r->device->units)
                   * (st.request.changed && st.request.pointers[CUDA_ATTENTION_BIAS] < 0 ? 16000 : 8000);
  for (int i = 0; i < 2 && !st.whole; i++)
    out->estimate += (double)qn_ceil_div(st.grid[i], resident * r->device->units)
                   * (3500 + cuda_attention_gradient_visits(&st.request, i) * (i ? a->group : 1) * products[i] * CUDA_ATTENTION_BLOCK
                             * (st.kernels->d + st.kernels->dv) / 2 / (f32 ? 150 : st.request.changed ? 200 : 950));
  if (bias_tiles)
    out->estimate += (double)qn_ceil_div(st.bias_grid, resident * r->device->units) * ((double)all_tiles / st.bias_grid) * 4
                   * CUDA_ATTENTION_BLOCK * st.kernels->bias_keys * (st.kernels->d + st.kernels->dv) / 2 / (f32 ? 75 : 200);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  qn_status s = QN_OK;
  (void)r;
  if (st->whole)
    s = cuda_check(cudaFuncSetAttribute(st->whole->kernel[st->request.changed], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        st->whole->shared), "cudaFuncSetAttribute");
  for (int i = 0; i < PASSES && !s && !st->whole && st->kernels->pass[i].shared; i++)
    s = cuda_check(cudaFuncSetAttribute(st->kernels->pass[i].kernel[st->request.changed], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        st->kernels->pass[i].shared), "cudaFuncSetAttribute");
  if (!s && st->bias_grid)
    s = cuda_check(cudaFuncSetAttribute(st->kernels->bias, cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernels->bias_shared),
                   "cudaFuncSetAttribute");
  return s;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_attention_gradient a;
  cuda_attention_gradient_addresses(&st->request, launch, &a);
  a.statistics = launch->workspace, a.parts = a.statistics + statistics_bytes(st) / 4;
  const uint32_t rows = (uint32_t)(cuda_attention_gradient_statistics(&st->request) / CUDA_ATTENTION_BLOCK);
  qn_status s = st->whole
              ? cuda_attention_gradient_launch(st->whole->kernel[st->request.changed], st->whole_grid, 128, st->whole->shared, &a,
                                               launch->stream)
              : cuda_attention_gradient_launch(st->kernels->statistics, rows, 128, 0, &a, launch->stream);
  if ((a.q_starts || a.kv_starts) && !s)
    s = cuda_attention_gradient_launch(st->kernels->clear, (uint32_t)qn_min_i64(65536, qn_ceil_div((int64_t)a.heads
                                         * qn_max_i64(a.queries, a.keys), 8)), 128, 0, &a, launch->stream);
  for (int i = 0; i < PASSES && !s && !st->whole && st->kernels->pass[i].shared; i++)
    s = cuda_attention_gradient_launch(st->kernels->pass[i].kernel[st->request.changed], st->grid[st->kernels->pass[i].keys], 128,
                                       st->kernels->pass[i].shared, &a, launch->stream);
  if (a.dbias && !s)
    s = cuda_attention_gradient_launch(st->kernels->bias, st->bias_grid, 128, st->kernels->bias_shared, &a, launch->stream);
  if (st->join_grid && !s) s = cuda_attention_gradient_launch(st->kernels->bias_join, st->join_grid, 128, 0, &a, launch->stream);
  if (a.dsink && !s) s = cuda_attention_gradient_launch(st->kernels->sink, (uint32_t)a.heads, 1024, 0, &a, launch->stream);
  return s;
}

static const qn_engine row = { .name = "mma", .op = QN_OP_ATTENTION_BACKWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
                               .prepare = prepare, .build = build, .run = run, .release = cuda_release };
CUDA_ENGINES(attention_mma_backward) = { &row, 1 };
