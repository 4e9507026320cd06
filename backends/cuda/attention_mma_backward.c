/* attention_mma_backward.c -- attention's gradient by mma.sync: what the kernels of attention_mma_backward.cuh take, their launches.
 *
 * bf16 and f16 from compute capability 8.0 on, up to 128 elements of a key and of a value (zeros fill up to the next shape), any number of
 * queries, keys and heads, groups of query heads, causal masks and windows, lengths, bias, mask, blocks, slopes, softcap, dropout, a sink
 * and its gradient. Not taken here: the gradient of a bias, ragged tensors. */
#include "attention_mma_backward.h"
#include "engines.h"

typedef struct state {
  cuda_attention_gradient_request request;
  const cuda_attention_backward_kernels *kernels;
  const void *gradient[2];                /* of queries, of keys */
  uint32_t grid[2];
} state;

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  if (r->device->arch_major < 8)
    return qn_refuse(out, "a device of compute capability 8.0 or more", "", "8.0", "%d.%d", (int)r->device->arch_major,
                     (int)r->device->arch_minor);
  state st = { 0 };
  const qn_status s = cuda_attention_gradient_read(r, 128, CUDA_ATTENTION_BLOCK, CUDA_ATTENTION_BLOCK, &st.request, out);
  if (s) return s;
  cuda_attention_gradient *a = &st.request.a;
  st.kernels = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_Q)->dtype == QN_BF16 ? cuda_attention_backward_bf16 : cuda_attention_backward_f16;
  while (st.kernels->d < a->q.size || st.kernels->d < a->v.size) st.kernels++;
  if (cuda_room(r) < st.kernels->shared[1])
    return qn_refuse(out, "four tiles and their next in shared memory", "", "more of it", "%lld bytes", (long long)cuda_room(r));
  for (int i = 0; i < 2; i++) {
    st.gradient[i] = st.kernels->gradients[i][st.request.changed];
    st.grid[i] = (uint32_t)cuda_attention_gradient_tiles(a, i, CUDA_ATTENTION_BLOCK);
  }

  out->workspace = (uint64_t)a->batch * (uint64_t)a->heads * (uint64_t)a->padded * 8;
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC, .store = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_Q)->dtype };
  /* Two blocks a unit, together about 1900 operations a ns (250 TFLOP/s of an H100); 3 products for dq, 4 for dk and dv. */
  out->estimate = 8000;
  for (int i = 0; i < 2; i++)
    out->estimate += (double)qn_ceil_div(st.grid[i], 2 * r->device->units) * cuda_attention_gradient_visits(a, i)
                   * (i ? a->group * 8 : 6) * CUDA_ATTENTION_BLOCK * st.kernels->d / (st.request.changed ? 400 : 950);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  qn_status s = QN_OK;
  (void)r;
  for (int i = 0; i < 2 && !s; i++)
    s = cuda_check(cudaFuncSetAttribute(st->gradient[i], cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernels->shared[i]),
                   "cudaFuncSetAttribute");
  return s;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_attention_gradient a;
  cuda_attention_gradient_addresses(&st->request, launch, &a);
  a.statistics = launch->workspace;
  const uint32_t rows = (uint32_t)((int64_t)a.batch * a.heads * a.padded / 8);
  qn_status s = cuda_attention_gradient_launch(st->kernels->statistics, rows, 128, 0, &a, launch->stream);
  for (int i = 1; i >= 0 && !s; i--)
    s = cuda_attention_gradient_launch(st->gradient[i], st->grid[i], 128, st->kernels->shared[i], &a, launch->stream);
  if (a.dsink && !s) s = cuda_attention_gradient_launch(st->kernels->sink, (uint32_t)a.heads, 1024, 0, &a, launch->stream);
  return s;
}

static const qn_engine row = { .name = "mma", .op = QN_OP_ATTENTION_BACKWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
                               .prepare = prepare, .build = build, .run = run, .release = cuda_release };
CUDA_ENGINES(attention_mma_backward) = { &row, 1 };
