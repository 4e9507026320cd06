/* attention_gradient.c -- reads a request for attention's gradient: what its engines on Tensor Cores have in common. */
#include "attention_gradient.h"

#define ROLE(NAME) QN_ROLE_ATTENTION_BACKWARD_##NAME
static const struct { uint32_t role; size_t at; const char *name; } tensor[CUDA_ATTENTION_ROWS_READ] = {
#define ROWS(NAME, field) { ROLE(NAME), offsetof(cuda_attention_gradient, field), #field }
  ROWS(Q, q), ROWS(K, k), ROWS(V, v), ROWS(DY, dy), ROWS(Y, y), ROWS(DQ, dq), ROWS(DK, dk), ROWS(DV, dv),
};
/* Pointers that a launch fills in. */
static const struct { uint32_t role; size_t at; } pointer[CUDA_ATTENTION_POINTERS] = {
#define POINTER(NAME, field) { ROLE(NAME), offsetof(cuda_attention_gradient, field) }
  POINTER(LSE, lse), POINTER(DLSE, dlse), POINTER(SINK, sink), POINTER(DSINK, dsink), POINTER(Q_LENGTHS, q_lengths),
  POINTER(KV_LENGTHS, kv_lengths), POINTER(BIAS, bias), POINTER(MASK, mask), POINTER(BLOCKS, blocks),
  POINTER(SLOPES, slopes), POINTER(Q_STARTS, q_starts), POINTER(KV_STARTS, kv_starts), POINTER(DBIAS, dbias),
};

static int32_t role(const qn_request *r, uint32_t which) { return qn_role(&r->op[0], which); }

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

static bool read_rows(const qn_request *r, uint32_t dtype, int64_t value_size, cuda_attention_gradient_request *to, qn_prepared *out)
{
  for (int i = 0; i < CUDA_ATTENTION_ROWS_READ; i++) {
    cuda_attention_rows *rows = (cuda_attention_rows *)((char *)&to->a + tensor[i].at);
    const qn_value *v = cuda_value(r, tensor[i].role);
    qn_value of_keys;
    to->rows[i] = role(r, tensor[i].role);
    if (!v && tensor[i].role == ROLE(DV)) continue;
    if (!v) {                             /* v: the first elements of k */
      of_keys = *cuda_value(r, ROLE(K)), of_keys.dim[3] = value_size;
      v = &of_keys, to->rows[i] = role(r, ROLE(K));
    }
    if (!loadable(v, tensor[i].name, dtype, i >= 4, out)) return false;
    strides_of(rows->stride, v, 3);
    rows->size = (int32_t)v->dim[3], rows->f32 = v->dtype == QN_F32;
  }
  return true;
}

cuda_attention_key_request cuda_attention_key_read(const qn_request *r, uint32_t which)
{
  const qn_value *v = cuda_value(r, which);
  return (cuda_attention_key_request){ .index = role(r, which), .host = v && v->flags & QN_VALUE_HOST, .dtype = v ? v->dtype : 0 };
}
cuda_attention_key cuda_attention_key_at(cuda_attention_key_request of, const qn_launch *launch)
{
  cuda_attention_key key = { 0 };
  if (of.index >= 0 && of.host) key.value = qn_load_i64(launch->ptr[of.index], of.dtype);
  else if (of.index >= 0) key.p = launch->ptr[of.index];
  return key;
}

static void read_scores(const qn_request *r, const qn_attention *attr, cuda_attention_gradient_request *to)
{
  cuda_attention_gradient *a = &to->a;
  const qn_value *bias = cuda_value(r, ROLE(BIAS)), *dbias = cuda_value(r, ROLE(DBIAS)), *slopes = cuda_value(r, ROLE(SLOPES));
  strides_of(a->bias_stride, bias, 4), strides_of(a->mask_stride, cuda_value(r, ROLE(MASK)), 4);
  strides_of(a->blocks_stride, cuda_value(r, ROLE(BLOCKS)), 4);
  a->block_q = (int32_t)qn_min_i64(attr->block_q, 1 << 29), a->block_kv = (int32_t)qn_min_i64(attr->block_kv, 1 << 29);
  if (slopes) strides_of(a->slopes_stride + (slopes->rank == 1), slopes, slopes->rank);
  if (bias) a->bias_dtype = bias->dtype;
  if (dbias) {
    strides_of(a->dbias_stride, dbias, 4), a->dbias_dtype = dbias->dtype;
    for (int i = 0; i < 4; i++) a->dbias_dim[i] = (int32_t)dbias->dim[i];
  }
  a->softcap = (float)attr->softcap, a->threshold = (uint32_t)(attr->dropout * 65536 + 0.5);
  a->kept = a->threshold < 65536 ? (float)(65536.0 / (65536 - a->threshold)) : 0;
  to->changed = bias || slopes || role(r, ROLE(MASK)) >= 0 || role(r, ROLE(BLOCKS)) >= 0 || a->softcap > 0 || a->threshold;
}

qn_status cuda_attention_gradient_read(const qn_request *r, int64_t most, int64_t tile, int64_t keys, cuda_attention_gradient_request *to,
                                       qn_prepared *out)
{
  const qn_attention *attr = r->op[0].attr;
  const qn_value *q = cuda_value(r, ROLE(Q)), *k = cuda_value(r, ROLE(K)), *v = cuda_value(r, ROLE(V));
  const int64_t d = q->dim[3], dv = v ? v->dim[3] : attr->value_size, rows = 1 << 29;
  if (q->dtype != QN_BF16 && q->dtype != QN_F16 && q->dtype != QN_F32)
    return qn_refuse(out, "operands of 16 bits or f32", "q", "bf16, f16 or f32", "%s", qn_kit_name(q->dtype));
  if (d > most || dv > most) {
    char needed[24];
    snprintf(needed, sizeof needed, "%d", (int)most);
    return qn_refuse(out, "so many elements of a key and of a value at most", "q", needed, "%lld", (long long)qn_max_i64(d, dv));
  }
  if (!read_rows(r, q->dtype, dv, to, out)) return QN_UNSUPPORTED;
  for (int i = 0; i < CUDA_ATTENTION_POINTERS; i++) to->pointers[i] = role(r, pointer[i].role);
  to->seed = cuda_attention_key_read(r, ROLE(SEED)), to->offset = cuda_attention_key_read(r, ROLE(OFFSET));

  cuda_attention_gradient *a = &to->a;
  const qn_value *starts[2] = { cuda_value(r, ROLE(Q_STARTS)), cuda_value(r, ROLE(KV_STARTS)) };
  const int64_t heads[2] = { q->dim[1], k->dim[1] }, extent[2] = { q->dim[2], k->dim[2] },
                batch = starts[0] ? starts[0]->dim[0] - 1 : starts[1] ? starts[1]->dim[0] - 1 : q->dim[0];
  if (batch < 1 && (starts[0] || starts[1]))
    return qn_refuse(out, "at least one sequence", starts[0] ? "q_starts" : "kv_starts", "2 elements", "%lld", (long long)batch + 1);
  a->batch = (int32_t)batch, a->heads = (int32_t)heads[0];
  a->group = a->share = heads[1] ? (int32_t)(heads[0] / heads[1]) : 1, a->shares = 1;
  a->queries = (int32_t)extent[0], a->keys = (int32_t)extent[1];
  const int64_t padded = starts[0] ? (extent[0] / tile + batch) * tile : qn_round_up(extent[0], tile);
  a->padded = (int32_t)padded;
  for (int i = 0; i < 2; i++) {
    const int64_t tiles = (starts[i] ? extent[i] / (i ? keys : tile) + batch : qn_ceil_div(extent[i], i ? keys : tile) * batch) * heads[i];
    if (extent[i] >= rows || padded > INT32_MAX || (starts[0] ? 1 : batch) * heads[0] * padded / 8 > INT32_MAX || tiles > INT32_MAX)
      return qn_refuse(out, "fewer than 2^29 queries and keys, 2^31 tiles, 2^34 rows of q", i ? "k" : "q", "fewer", "%lld",
                       (long long)qn_max_i64(tiles, extent[i]));
    /* A head's other side, and those that share it, within 32 MB. */
    const int64_t bytes = qn_max_i64(1, extent[!i] * (i ? a->group : 1) * (d + dv) * 2);
    a->section[!i] = (int32_t)qn_min_i64(qn_max_i64(1, batch * heads[i]), qn_max_i64(1, (32 << 20) / bytes) * (i ? 1 : a->group));
  }
  a->left = attr->left < 0 || attr->left >= rows ? -1 : (int32_t)attr->left;
  a->right = attr->right < 0 || attr->right >= rows ? -1 : (int32_t)attr->right;
  a->top_left = attr->align == QN_ALIGN_TOP_LEFT;
  a->scale = (float)(attr->scale == 0 ? 1 / sqrt((double)d) : attr->scale), a->scale_log2 = (float)(a->scale * 1.44269504088896340736);
  strides_of(a->lse_stride, cuda_value(r, ROLE(LSE)), 3), strides_of(a->dlse_stride, cuda_value(r, ROLE(DLSE)), 3);
  strides_of(&a->sink_stride, cuda_value(r, ROLE(SINK)), 1), strides_of(&a->dsink_stride, cuda_value(r, ROLE(DSINK)), 1);
  const qn_value *ql = cuda_value(r, ROLE(Q_LENGTHS)), *kl = cuda_value(r, ROLE(KV_LENGTHS));
  strides_of(&a->q_lengths_stride, ql, 1), a->q_lengths_i64 = ql && ql->dtype == QN_I64;
  strides_of(&a->kv_lengths_stride, kl, 1), a->kv_lengths_i64 = kl && kl->dtype == QN_I64;
  strides_of(&a->q_starts_stride, starts[0], 1), a->q_starts_i64 = starts[0] && starts[0]->dtype == QN_I64;
  strides_of(&a->kv_starts_stride, starts[1], 1), a->kv_starts_i64 = starts[1] && starts[1]->dtype == QN_I64;
  to->ragged[0] = starts[0], to->ragged[1] = starts[1];
  read_scores(r, attr, to);
  return QN_OK;
}

int64_t cuda_attention_gradient_statistics(const cuda_attention_gradient_request *of)
{
  return (int64_t)(of->ragged[0] ? 1 : of->a.batch) * of->a.heads * of->a.padded;
}

int64_t cuda_attention_gradient_tiles(const cuda_attention_gradient_request *of, int which, int64_t tile)
{
  const cuda_attention_gradient *a = &of->a;
  const int64_t rows = which ? a->keys : a->queries;
  return (of->ragged[which] ? rows / tile + a->batch : qn_ceil_div(rows, tile) * a->batch) * (which ? a->heads / a->group : a->heads);
}

double cuda_attention_gradient_visits(const cuda_attention_gradient_request *of, int which)
{
  const cuda_attention_gradient *a = &of->a;
  const double other = (double)(which ? a->queries : a->keys) / (of->ragged[!which] ? (double)qn_max_i64(1, a->batch) : 1),
               near = a->left < 0 || a->right < 0 ? other : (double)a->left + a->right + CUDA_ATTENTION_BLOCK;
  return (near < other ? near : a->left < 0 && a->right < 0 ? other : 0.5 * other) + CUDA_ATTENTION_BLOCK / 2;
}

void cuda_attention_gradient_addresses(const cuda_attention_gradient_request *from, const qn_launch *launch, cuda_attention_gradient *a)
{
  *a = from->a;
  for (int i = 0; i < CUDA_ATTENTION_ROWS_READ; i++)
    if (from->rows[i] >= 0) ((cuda_attention_rows *)((char *)a + tensor[i].at))->p = launch->ptr[from->rows[i]];
  for (int i = 0; i < CUDA_ATTENTION_POINTERS; i++)
    if (from->pointers[i] >= 0) *(void **)((char *)a + pointer[i].at) = launch->ptr[from->pointers[i]];
  a->seed = cuda_attention_key_at(from->seed, launch), a->offset = cuda_attention_key_at(from->offset, launch);
}

qn_status cuda_attention_gradient_launch(const void *kernel, uint32_t grid, uint32_t threads, int32_t shared, cuda_attention_gradient *a,
                                         void *stream)
{
  void *args[] = { a };
  if (!grid) return QN_OK;
  return cuda_check(cudaLaunchKernel(kernel, (dim3){ grid, 1, 1 }, (dim3){ threads, 1, 1 }, args, (size_t)shared, stream),
                    "attention_backward");
}
