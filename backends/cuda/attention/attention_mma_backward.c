/* attention_mma_backward.c -- attention's gradient by mma.sync: what the kernels of attention_mma_backward.cuh take, their launches.
 *
 * bf16 and f16 from compute capability 8.0 on, up to 128 elements of a key and of a value (zeros fill up to the next shape), any number of
 * queries, keys and heads, groups of query heads, causal masks and windows, lengths, bias, mask, blocks, slopes, softcap, dropout, a sink
 * and its gradient. Not taken here: the gradient of a bias, ragged tensors. */
#include "attention_mma_backward.h"
#include "engines.h"

#define ROLE(NAME) QN_ROLE_ATTENTION_BACKWARD_##NAME
enum { N_ROWS = 8 };
static const struct { uint32_t role; size_t at; const char *name; } tensor[N_ROWS] = {
#define ROWS(NAME, field) { ROLE(NAME), offsetof(cuda_attention_backward, field), #field }
  ROWS(Q, q), ROWS(K, k), ROWS(V, v), ROWS(DY, dy), ROWS(Y, y), ROWS(DQ, dq), ROWS(DK, dk), ROWS(DV, dv),
};
/* Pointers that run fills in. */
static const struct { uint32_t role; size_t at; } pointer[] = {
#define POINTER(NAME, field) { ROLE(NAME), offsetof(cuda_attention_backward, field) }
  POINTER(LSE, lse), POINTER(DLSE, dlse), POINTER(SINK, sink), POINTER(DSINK, dsink), POINTER(Q_LENGTHS, q_lengths),
  POINTER(KV_LENGTHS, kv_lengths), POINTER(BIAS, bias), POINTER(MASK, mask), POINTER(BLOCKS, blocks),
  POINTER(SLOPES, slopes),
};
enum { N_POINTERS = sizeof pointer / sizeof *pointer };

typedef struct state {
  cuda_attention_backward a;              /* all but addresses */
  const cuda_attention_backward_kernels *kernels;
  const void *gradient[2];                /* of queries, of keys */
  uint32_t grid[2];
  int32_t  rows[N_ROWS], pointers[N_POINTERS], seed, offset;                   /* indices of values; -1: absent */
  bool     seed_host, offset_host;
  uint32_t seed_dtype, offset_dtype;
} state;

/* ---- prepare --------------------------------------------------------------------------------------------------------- */

static int32_t role(const qn_request *r, uint32_t which) { return qn_role(&r->op[0], which); }

static bool simple(const qn_request *r, qn_prepared *out)
{
  static const struct { uint32_t role; const char *name; } not_taken[] = {
    { ROLE(Q_STARTS), "q_starts" }, { ROLE(KV_STARTS), "kv_starts" }, { ROLE(DBIAS), "dbias" },
  };
  for (size_t i = 0; i < sizeof not_taken / sizeof *not_taken; i++)
    if (role(r, not_taken[i].role) >= 0) {
      qn_refuse(out, "neither ragged tensors nor the gradient of a bias", not_taken[i].name, "none", "%s", "one");
      return false;
    }
  return true;
}

/* 16 bytes a load: elements side by side, other strides of whole pieces. */
static bool loadable(const qn_value *v, const char *name, uint32_t dtype, bool wide, qn_prepared *out)
{
  if (v->dtype != dtype && !(wide && v->dtype == QN_F32))
    qn_refuse(out, wide ? "q's dtype or f32" : "q's dtype", name, qn_kit_name(dtype), "%s", qn_kit_name(v->dtype));
  else if (v->dim[3] % 8) qn_refuse(out, "rows of whole 8 elements", name, "a multiple of 8", "%lld", (long long)v->dim[3]);
  else if (v->stride[3] != 1) qn_refuse(out, "elements of a row side by side", name, "stride 1 of dim 3", "%lld", (long long)v->stride[3]);
  else if (v->align < 16) qn_refuse(out, "16-byte loads", name, "aligned to 16 bytes", "%u", v->align);
  else {
    for (int i = 0; i < 3; i++)
      if (v->dim[i] > 1 && v->stride[i] % 8) {
        qn_refuse(out, "strides of whole 8 elements", name, "a multiple of 8", "stride %lld", (long long)v->stride[i]);
        return false;
      }
    return true;
  }
  return false;
}

static void strides_of(int64_t *to, const qn_value *v, int n)
{
  for (int i = 0; i < n && v; i++) to[i] = v->dim[i] > 1 ? v->stride[i] : 0;
}

static bool read_rows(const qn_request *r, state *st, uint32_t dtype, int64_t value_size, qn_prepared *out)
{
  for (int i = 0; i < N_ROWS; i++) {
    cuda_attention_rows *to = (cuda_attention_rows *)((char *)&st->a + tensor[i].at);
    const qn_value *v = cuda_value(r, tensor[i].role);
    qn_value of_keys;
    st->rows[i] = role(r, tensor[i].role);
    if (!v && tensor[i].role == ROLE(DV)) continue;
    if (!v) {                             /* v: the first elements of k */
      of_keys = *cuda_value(r, ROLE(K)), of_keys.dim[3] = value_size;
      v = &of_keys, st->rows[i] = role(r, ROLE(K));
    }
    if (!loadable(v, tensor[i].name, dtype, i >= 4, out)) return false;
    strides_of(to->stride, v, 3);
    to->size = (int32_t)v->dim[3], to->f32 = v->dtype == QN_F32;
  }
  return true;
}

static void read_key(const qn_request *r, uint32_t which, int32_t *at, bool *host, uint32_t *dtype)
{
  const qn_value *v = cuda_value(r, which);
  *at = role(r, which);
  if (v) *host = v->flags & QN_VALUE_HOST, *dtype = v->dtype;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_attention *attr = r->op[0].attr;
  const qn_value *q = cuda_value(r, ROLE(Q)), *k = cuda_value(r, ROLE(K)), *v = cuda_value(r, ROLE(V)), *bias = cuda_value(r, ROLE(BIAS)),
                 *slopes = cuda_value(r, ROLE(SLOPES));
  const int64_t d = q->dim[3], dv = v ? v->dim[3] : attr->value_size, most = 1 << 29;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "a device of compute capability 8.0 or more", "", "8.0", "%d.%d", (int)r->device->arch_major,
                     (int)r->device->arch_minor);
  if (q->dtype != QN_BF16 && q->dtype != QN_F16)
    return qn_refuse(out, "16-bit operands", "q", "bf16 or f16", "%s", qn_kit_name(q->dtype));
  if (!simple(r, out)) return QN_UNSUPPORTED;
  state st = { .kernels = q->dtype == QN_BF16 ? cuda_attention_backward_bf16 : cuda_attention_backward_f16 };
  cuda_attention_backward *a = &st.a;
  while (st.kernels->d && (st.kernels->d < d || st.kernels->d < dv)) st.kernels++;
  if (!st.kernels->d)
    return qn_refuse(out, "at most 128 elements of a key and of a value", "q", "128", "%lld", (long long)qn_max_i64(d, dv));
  if (cuda_room(r) < st.kernels->shared[1])
    return qn_refuse(out, "four tiles and their next in shared memory", "", "more of it", "%lld bytes", (long long)cuda_room(r));
  if (!read_rows(r, &st, q->dtype, dv, out)) return QN_UNSUPPORTED;
  for (int i = 0; i < N_POINTERS; i++) st.pointers[i] = role(r, pointer[i].role);
  read_key(r, ROLE(SEED), &st.seed, &st.seed_host, &st.seed_dtype);
  read_key(r, ROLE(OFFSET), &st.offset, &st.offset_host, &st.offset_dtype);

  const int64_t heads[2] = { q->dim[1], k->dim[1] }, extent[2] = { q->dim[2], k->dim[2] };
  a->batch = (int32_t)q->dim[0], a->heads = (int32_t)heads[0], a->group = heads[1] ? (int32_t)(heads[0] / heads[1]) : 1;
  a->queries = (int32_t)extent[0], a->keys = (int32_t)extent[1];
  a->padded = (int32_t)qn_round_up(extent[0], CUDA_ATTENTION_BLOCK);
  for (int i = 0; i < 2; i++) {
    const int64_t tiles = qn_ceil_div(extent[i], CUDA_ATTENTION_BLOCK) * q->dim[0] * heads[i];
    if (extent[i] >= most || q->dim[0] * heads[0] * a->padded / 8 > INT32_MAX || tiles > INT32_MAX)
      return qn_refuse(out, "fewer than 2^29 queries and keys, 2^31 tiles, 2^34 rows of q", i ? "k" : "q", "fewer", "%lld",
                       (long long)qn_max_i64(tiles, extent[i]));
    /* A head's other side, and those that share it, within 32 MB. */
    const int64_t bytes = qn_max_i64(1, extent[!i] * (i ? a->group : 1) * (d + dv) * 2);
    a->section[!i] = (int32_t)qn_min_i64(qn_max_i64(1, q->dim[0] * heads[i]), qn_max_i64(1, (32 << 20) / bytes) * (i ? 1 : a->group));
    st.grid[i] = (uint32_t)tiles;
  }
  a->left = attr->left < 0 || attr->left >= most ? -1 : (int32_t)attr->left;
  a->right = attr->right < 0 || attr->right >= most ? -1 : (int32_t)attr->right;
  a->top_left = attr->align == QN_ALIGN_TOP_LEFT;
  a->scale = (float)(attr->scale == 0 ? 1 / sqrt((double)d) : attr->scale), a->scale_log2 = (float)(a->scale * 1.44269504088896340736);
  strides_of(a->lse_stride, cuda_value(r, ROLE(LSE)), 3), strides_of(a->dlse_stride, cuda_value(r, ROLE(DLSE)), 3);
  strides_of(&a->sink_stride, cuda_value(r, ROLE(SINK)), 1), strides_of(&a->dsink_stride, cuda_value(r, ROLE(DSINK)), 1);
  const qn_value *ql = cuda_value(r, ROLE(Q_LENGTHS)), *kl = cuda_value(r, ROLE(KV_LENGTHS));
  strides_of(&a->q_lengths_stride, ql, 1), a->q_lengths_i64 = ql && ql->dtype == QN_I64;
  strides_of(&a->kv_lengths_stride, kl, 1), a->kv_lengths_i64 = kl && kl->dtype == QN_I64;
  strides_of(a->bias_stride, bias, 4), strides_of(a->mask_stride, cuda_value(r, ROLE(MASK)), 4);
  strides_of(a->blocks_stride, cuda_value(r, ROLE(BLOCKS)), 4);
  a->block_q = (int32_t)qn_min_i64(attr->block_q, most), a->block_kv = (int32_t)qn_min_i64(attr->block_kv, most);
  if (slopes) strides_of(a->slopes_stride + (slopes->rank == 1), slopes, slopes->rank);
  if (bias) a->bias_dtype = bias->dtype;
  a->softcap = (float)attr->softcap, a->threshold = (uint32_t)(attr->dropout * 65536 + 0.5);
  a->kept = a->threshold < 65536 ? (float)(65536.0 / (65536 - a->threshold)) : 0;
  const bool changed = bias || slopes || role(r, ROLE(MASK)) >= 0 || role(r, ROLE(BLOCKS)) >= 0 || a->softcap > 0 || a->threshold;
  for (int i = 0; i < 2; i++) st.gradient[i] = st.kernels->gradients[i][changed];

  out->workspace = (uint64_t)a->batch * (uint64_t)a->heads * (uint64_t)a->padded * 8;
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC, .store = q->dtype };
  /* Two blocks a unit, together about 1900 operations a ns (250 TFLOP/s of an H100); 3 products for dq, 4 for dk and dv; half of the
   * tiles are not visited under a causal mask. */
  out->estimate = 8000;
  for (int i = 0; i < 2; i++) {
    const double other = (double)extent[!i], near = a->left < 0 || a->right < 0 ? other : (double)a->left + a->right + CUDA_ATTENTION_BLOCK,
                 seen = (near < other ? near : a->left < 0 && a->right < 0 ? other : 0.5 * other) + CUDA_ATTENTION_BLOCK / 2;
    out->estimate += (double)qn_ceil_div(st.grid[i], 2 * r->device->units) * seen * (i ? a->group * 8 : 6) * CUDA_ATTENTION_BLOCK
                   * st.kernels->d / (changed ? 400 : 950);
  }
  return cuda_keep(out, &st, sizeof st);
}

/* ---- build and run ----------------------------------------------------------------------------------------------------- */

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

static cuda_attention_key key_of(int32_t at, bool host, uint32_t dtype, void *const *ptr)
{
  cuda_attention_key key = { 0 };
  if (at >= 0 && host) key.value = qn_load_i64(ptr[at], dtype);
  else if (at >= 0) key.p = ptr[at];
  return key;
}

static qn_status launch_one(const void *kernel, uint32_t grid, uint32_t threads, int32_t shared, cuda_attention_backward *a, void *stream)
{
  void *args[] = { a };
  if (!grid) return QN_OK;
  return cuda_check(cudaLaunchKernel(kernel, (dim3){ grid, 1, 1 }, (dim3){ threads, 1, 1 }, args, (size_t)shared, stream),
                    "attention_mma_backward");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_attention_backward a = st->a;
  for (int i = 0; i < N_ROWS; i++)
    if (st->rows[i] >= 0) ((cuda_attention_rows *)((char *)&a + tensor[i].at))->p = launch->ptr[st->rows[i]];
  for (int i = 0; i < N_POINTERS; i++)
    if (st->pointers[i] >= 0) *(void **)((char *)&a + pointer[i].at) = launch->ptr[st->pointers[i]];
  a.seed = key_of(st->seed, st->seed_host, st->seed_dtype, launch->ptr);
  a.offset = key_of(st->offset, st->offset_host, st->offset_dtype, launch->ptr);
  a.statistics = launch->workspace;
  const uint32_t rows = (uint32_t)((int64_t)a.batch * a.heads * a.padded / 8);
  qn_status s = launch_one(st->kernels->statistics, rows, 128, 0, &a, launch->stream);
  for (int i = 1; i >= 0 && !s; i--) s = launch_one(st->gradient[i], st->grid[i], 128, st->kernels->shared[i], &a, launch->stream);
  if (a.dsink && !s) s = launch_one(st->kernels->sink, (uint32_t)a.heads, 1024, 0, &a, launch->stream);
  return s;
}

static const qn_engine row = { .name = "mma", .op = QN_OP_ATTENTION_BACKWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
                               .prepare = prepare, .build = build, .run = run, .release = cuda_release };
CUDA_ENGINES(attention_mma_backward) = { &row, 1 };
