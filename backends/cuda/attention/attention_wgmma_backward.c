/* attention_wgmma_backward.c -- attention's gradient on Hopper's Tensor Cores: what the kernels of attention_wgmma_backward.cuh and of
 * attention_wgmma_backward_wide.cuh take, their launches.
 *
 * bf16 and f16 up to 256 elements of a key and of a value (zeros fill up to the next shape), any number of queries, keys and heads,
 * groups of query heads, causal masks and windows, lengths, bias, mask, slopes, softcap, a sink and its gradient. Not taken here: blocks,
 * dropout, a softcap before a bias or slopes, a bias' gradient, ragged tensors; values within keys where the wide kernels sum up dk and dv
 * in different threads. Blocks of keys add to dq in any order, or, if bits must be the same from run to run, in one; or, for few queries, a
 * block takes whole heads. */
#include "attention_mma_backward.h"
#include "attention_wgmma.h"
#include "attention_wgmma_backward.h"
#include "engines.h"
#include "kit/early.h"

enum { Q, K, V, DY, N_MAPS, BIAS = N_MAPS };
static const uint32_t mapped[N_MAPS] = { QN_ROLE_ATTENTION_BACKWARD_Q, QN_ROLE_ATTENTION_BACKWARD_K, QN_ROLE_ATTENTION_BACKWARD_V,
                                         QN_ROLE_ATTENTION_BACKWARD_DY };
static const char *const variants[] = { "any_order", "one_order", "held", NULL };

typedef struct state {
  cuda_attention_gradient_request request;
  cuda_attention_gradient_maps maps;      /* all but addresses */
  const cuda_attention_wgmma_backward_kernels *kernels;
  const cuda_attention_backward_kernels *shared;            /* statistics, the sink's gradient */
  const cuda_driver *driver;
  qn_value tensor[N_MAPS + 1];            /* and bias */
  uint32_t grid, tiles;                   /* of keys, of queries */
  int32_t  order;
} state;

static cuda_attention_rows *rows_of(cuda_attention_gradient *a, int i)
{
  return i == Q ? &a->q : i == K ? &a->k : i == V ? &a->v : &a->dy;
}

/* ---- prepare --------------------------------------------------------------------------------------------------------- */

/* Heads of a group that one block adds up. Blocks of keys that see all queries should fill the last round of multiprocessors; where they
 * see fewer and fewer, the longest begin, and twice as many blocks as multiprocessors even out. In one order a block waits at each head
 * for its neighbour, which sees more: so it has one. */
static int32_t share_of(const cuda_attention_gradient *a, int64_t blocks, int64_t units, bool ordered)
{
  const bool uneven = a->left >= 0 || a->right >= 0;
  if (ordered) return uneven ? 1 : a->group;                /* whatever the batch */
  for (int32_t share = a->group; share > 1; share--) {
    const int64_t parts = qn_ceil_div(a->group, share), n = blocks * parts;
    if (qn_ceil_div(a->group, parts) != share) continue;
    if (uneven ? 10 * n >= 19 * units : 10 * blocks * a->group >= 8 * units * qn_ceil_div(n, units) * share) return share;
  }
  return 1;
}

/* Heads whose queries, dy and sums of dq stay in L2 (those of a group are visited one after the other): at most `most`, and each section
 * as large, since the last one ends alone. */
static int32_t section_of(int64_t heads, int64_t most)
{
  int64_t n = qn_min_i64(qn_max_i64(1, most), qn_max_i64(1, heads)), even = n;
  while (heads % even) even--;
  return (int32_t)(2 * even >= n ? even : qn_ceil_div(heads, qn_ceil_div(heads, n)));
}

/* Elements of a row of dq's sums. */
static int32_t sums_row(const state *st) { return (st->kernels->d + 63) / 64 * 64; }
/* Elements of rows of q, with those that fill up tiles and shapes. */
static double elements_of(const state *st)
{
  return (double)st->request.a.batch * st->request.a.heads * st->request.a.padded * sums_row(st);
}
/* Whole rows of keys for each query, which TMA takes. */
static bool bias_in_tiles(const qn_value *bias, const cuda_attention_gradient *a)
{
  if (!bias || bias->dtype == QN_F32 || bias->dim[2] != a->queries || bias->dim[3] != a->keys || bias->stride[3] != 1 || bias->align < 16)
    return false;
  for (int d = 0; d < 3; d++)
    if (bias->dim[d] > 1 && (bias->stride[d] < 1 || bias->stride[d] % 8)) return false;
  return true;
}
static double products_ns(const state *st, double queries)  /* of a block of keys, by so many queries */
{
  const cuda_attention_wgmma_backward_kernels *k = st->kernels;
  const cuda_attention_gradient *a = &st->request.a;
  const int operations = 6 * k->d + 4 * k->dv;
  const bool costly = st->request.pointers[CUDA_ATTENTION_SLOPES] >= 0 || a->softcap > 0
                   || (st->request.pointers[CUDA_ATTENTION_BIAS] >= 0 && a->bias_stride[2] && !st->maps.bias_tiles);
  return queries * k->bn * (k->bn == 64 ? operations / 2200. : (operations + 200) / 5600.)
         * (costly ? 1.6 : st->request.changed ? 1.1 : 1);
}
/* A block's 5 products at up to 4900 operations a ns (650 TFLOP/s of an H200) and, beside them, what each pair of a query and a key costs;
 * its beginning and end; dq's sums are cleared, added up and read in memory. Blocks of 64 keys add so often that L2 is what they wait
 * for. */
static double added_ns(const state *st, int32_t units, uint64_t parts)
{
  const cuda_attention_gradient *a = &st->request.a;
  return 12000 + (elements_of(st) * 14 + (double)parts * 2) / 2500
         + (double)qn_ceil_div(st->grid, units)
           * (4000 + products_ns(st, cuda_attention_gradient_visits(&st->request, 1) * a->share)
                     * (st->order == CUDA_ATTENTION_ONE_ORDER ? 1.05 : 1));
}
static bool may_hold(const state *st)
{
  const cuda_attention_gradient *a = &st->request.a;
  return st->kernels->of[st->request.changed].gradient[CUDA_ATTENTION_HELD] && a->group == 1
      && a->padded <= (st->kernels->d > 32 ? 2 : 4) * st->kernels->bm;
}
static double held_ns(const state *st, int32_t units)
{
  const cuda_attention_gradient *a = &st->request.a;
  return 8000 + elements_of(st) * 6 / 2500
         + (double)qn_ceil_div((int64_t)a->batch * a->heads, units)
           * (1500 + (double)qn_ceil_div(a->keys, st->kernels->bn) * (2500 + products_ns(st, a->padded)));
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "a device of compute capability 9.0", "", "9.0", "%d.%d", (int)r->device->arch_major, (int)r->device->arch_minor);
  const qn_value *q = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_Q), *k = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_K),
                 *v = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_V);
  static const char *const name[N_MAPS] = { "q", "k", "v", "dy" };
  const int64_t value_size = v ? v->dim[3] : ((const qn_attention *)r->op[0].attr)->value_size;
  const bool bf16 = q->dtype == QN_BF16;
  if (q->dtype == QN_F32) return qn_refuse(out, "16-bit operands", "q", "bf16 or f16", "%s", "f32");
  state st = { .kernels = bf16 ? cuda_attention_wgmma_backward_bf16 : cuda_attention_wgmma_backward_f16,
               .shared = bf16 ? cuda_attention_backward_bf16 : cuda_attention_backward_f16,
               .order = r->demands->determinism >= QN_DET_RUN ? CUDA_ATTENTION_ONE_ORDER : CUDA_ATTENTION_ANY_ORDER };
  for (;; st.kernels++) {
    while (st.kernels[1].d && (st.kernels->d < q->dim[3] || st.kernels->dv < value_size)) st.kernels++;
    const qn_status s = cuda_attention_gradient_read(r, 256, st.kernels->bm, st.kernels->bn, &st.request, out);
    if (s) return s;
    if (st.kernels->of[st.request.changed].finish) break;
  }
  const cuda_attention_wgmma_backward_kernels *kernels = st.kernels;
  if (kernels->bn == 64 && !v) return qn_refuse(out, "rows of values that are wide apart from keys", "v", "a tensor", "%s", "none");
  if (st.request.a.threshold || st.request.pointers[CUDA_ATTENTION_BLOCKS] >= 0 || st.request.pointers[CUDA_ATTENTION_DBIAS] >= 0)
    return qn_refuse(out, "neither dropout, blocks nor a bias' gradient", "", "none", "%s", "one");
  if (st.request.a.softcap > 0 && (st.request.pointers[CUDA_ATTENTION_BIAS] >= 0 || st.request.pointers[CUDA_ATTENTION_SLOPES] >= 0))
    return qn_refuse(out, "a softcap, or what is added to scores, not both", "", "one", "%s", "both");
  if (st.request.pointers[CUDA_ATTENTION_BIAS] >= 0 && fabsf(st.request.a.scale) < 1e-20f)
    return qn_refuse(out, "a scale by which biases can be divided", "scale", "1e-20 or more", "%g", (double)st.request.a.scale);
  if (st.request.ragged[0] || st.request.ragged[1])
    return qn_refuse(out, "tensors that are not ragged", st.request.ragged[0] ? "q_starts" : "kv_starts", "none", "%s", "one");
  cuda_attention_gradient *a = &st.request.a;
  if (!a->keys || !a->queries) return qn_refuse(out, "tensor maps have no empty dims", a->keys ? "q" : "k", "at least one row", "%s", "0");
  for (int i = 0; i < N_MAPS; i++) {
    const qn_value *of = cuda_value(r, mapped[i]);
    st.tensor[i] = of ? *of : *k;
    st.tensor[i].dim[3] = rows_of(a, i)->size;
    for (int d = 0; d < 3; d++)
      if (st.tensor[i].dim[d] > 1 && st.tensor[i].stride[d] < 1)
        return qn_refuse(out, "strides of tensor maps, which are positive", name[i], "at least 8", "%lld",
                         (long long)st.tensor[i].stride[d]);
  }
  const qn_value *bias = cuda_value(r, QN_ROLE_ATTENTION_BACKWARD_BIAS);
  st.maps.bias_tiles = kernels->bn == 128 && bias_in_tiles(bias, a);
  if (st.maps.bias_tiles) st.tensor[BIAS] = *bias;
  for (int i = 0; i < CUDA_ATTENTION_ORDERS && r->variant; i++)
    if (!strcmp(r->variant, variants[i])) st.order = i;
  const int64_t blocks = cuda_attention_gradient_tiles(&st.request, 1, kernels->bn);
  if (st.order == CUDA_ATTENTION_HELD && !may_hold(&st))
    return qn_refuse(out, "dq's sums in shared memory: heads without groups, rows of 64 elements, two tiles", "q",
                     kernels->d > 32 ? "256 queries" : "512 queries", "%d", (int)a->queries);
  a->share = share_of(a, blocks, r->device->units, st.order == CUDA_ATTENTION_ONE_ORDER);
  a->shares = (int32_t)qn_ceil_div(a->group, a->share);
  st.grid = (uint32_t)(blocks * a->shares);
  st.tiles = (uint32_t)cuda_attention_gradient_tiles(&st.request, 0, kernels->bm);
  a->section[0] = section_of((int64_t)a->batch * (a->heads / a->group), (24 << 20) / ((int64_t)a->padded * sums_row(&st) * 8))
                * a->shares;

  const uint64_t rows = (uint64_t)a->batch * (uint64_t)a->heads * (uint64_t)a->padded;
  const uint64_t parts = a->shares == 1 ? 0 : (uint64_t)st.grid * (uint64_t)kernels->bn * (uint64_t)(kernels->d + kernels->dv) * 4;
  out->estimate = added_ns(&st, r->device->units, parts);
  if (may_hold(&st) && !r->variant && r->demands->determinism < QN_DET_BATCH && held_ns(&st, r->device->units) < out->estimate)
    st.order = CUDA_ATTENTION_HELD, out->traits &= ~(uint64_t)QN_TRAIT_BATCH_INVARIANT;
  if (st.order == CUDA_ATTENTION_HELD) {
    out->estimate = held_ns(&st, r->device->units), out->workspace = rows * 8;
    st.grid = (uint32_t)qn_min_i64(r->device->units, (int64_t)a->batch * a->heads);
  } else {
    a->sums_row = sums_row(&st), a->n_turns = (int32_t)(1 + 2 * (int64_t)st.tiles);
    out->workspace = rows * 8 + rows * (uint64_t)a->sums_row * 4 + parts + (uint64_t)a->n_turns * 4;
  }
  if (st.order == CUDA_ATTENTION_ANY_ORDER) out->traits &= ~(uint64_t)(QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT);
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC, .store = q->dtype };
  out->variant = variants[st.order];
  return cuda_keep(out, &st, sizeof st);
}

/* ---- build and run ----------------------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  for (int i = 0; i < N_MAPS && !s; i++)
    s = cuda_attention_map(st->driver, &st->maps.map[i], &st->tensor[i], i == Q || i == DY ? st->kernels->bm : st->kernels->bn);
  if (st->maps.bias_tiles && !s) s = cuda_attention_map(st->driver, &st->maps.map[BIAS], &st->tensor[BIAS], 64);
  if (s) return s;
  return cuda_check(cudaFuncSetAttribute(st->kernels->of[st->request.changed].gradient[st->order],
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernels->shared), "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  const cuda_attention_wgmma_backward_of *of = &st->kernels->of[st->request.changed];
  cuda_attention_gradient a;
  cuda_attention_gradient_maps maps = st->maps;
  cuda_attention_gradient_addresses(&st->request, launch, &a);
  for (int i = 0; i < N_MAPS; i++) st->driver->tensor_map_address(&maps.map[i], rows_of(&a, i)->p);
  if (maps.bias_tiles) st->driver->tensor_map_address(&maps.map[BIAS], (void *)a.bias);
  const int64_t rows = (int64_t)a.batch * a.heads * a.padded;
  const bool joined = a.shares > 1;
  a.sums = launch->workspace, a.statistics = a.sums + rows * a.sums_row, a.parts = a.statistics + rows * 2;
  if (st->order != CUDA_ATTENTION_HELD)
    a.turns = (uint32_t *)(a.parts + (joined ? (int64_t)st->grid * st->kernels->bn * (st->kernels->d + st->kernels->dv) : 0));
  qn_status s = cuda_attention_gradient_launch(st->shared->statistics, (uint32_t)(rows / CUDA_ATTENTION_BLOCK), 128, 0, &a, launch->stream);
  void *args[] = { &a, &maps };
  if (!s)
    s = cuda_launch_kernel(of->gradient[st->order], true, (dim3){ st->grid, 1, 1 }, (uint32_t)st->kernels->threads,
                           (uint32_t)st->kernels->shared, args, launch->stream, "attention_wgmma_backward");
  if (st->order != CUDA_ATTENTION_HELD && !s)
    s = cuda_launch_kernel(of->finish, true, (dim3){ st->tiles, 1, 1 }, 256, 0, args, launch->stream, "attention_wgmma_backward");
  if (joined && !s)
    s = cuda_attention_gradient_launch(of->join, st->grid / (uint32_t)a.shares * 2, 128, 0, &a, launch->stream);
  if (a.dsink && !s) s = cuda_attention_gradient_launch(st->shared->sink, (uint32_t)a.heads, 1024, 0, &a, launch->stream);
  return s;
}

static const qn_engine row = { .name = "wgmma", .op = QN_OP_ATTENTION_BACKWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
                               .variants = variants, .prepare = prepare, .build = build, .run = run, .release = cuda_release };
CUDA_ENGINES(attention_wgmma_backward) = { &row, 1 };
