/* infer_attention.c -- attention, its merge, rotary embeddings and writes into a paged cache. */
#include <string.h>
#include "problem.h"

#define EIGHTS (QN__F8S | QN__BIT(QN_I8))

/* The roles that forward and backward share, by their numbers in each. NONE: it has no such role. */
enum { NONE = 99 };
struct roles { uint32_t q, k, v, bias, mask, blocks, slopes, sink, q_lengths, kv_lengths, q_starts, kv_starts, pages, seed, offset; };
#define SHARED(OP, PAGES)                                                                                              \
  { QN_ROLE_##OP##_Q, QN_ROLE_##OP##_K, QN_ROLE_##OP##_V, QN_ROLE_##OP##_BIAS, QN_ROLE_##OP##_MASK, QN_ROLE_##OP##_BLOCKS, \
    QN_ROLE_##OP##_SLOPES, QN_ROLE_##OP##_SINK, QN_ROLE_##OP##_Q_LENGTHS, QN_ROLE_##OP##_KV_LENGTHS, QN_ROLE_##OP##_Q_STARTS,  \
    QN_ROLE_##OP##_KV_STARTS, PAGES, QN_ROLE_##OP##_SEED, QN_ROLE_##OP##_OFFSET }
static const struct roles forward = SHARED(ATTENTION_FORWARD, QN_ROLE_ATTENTION_FORWARD_PAGES),
                          backward = SHARED(ATTENTION_BACKWARD, NONE);

/* What dims and dtypes say of a problem, from which the rest follows. */
struct extents {
  int64_t  b, h, hkv, sq, skv, d, dv;     /* b: sequences; sq, skv: as bias and mask count them */
  uint32_t dtype, exact;                  /* of the operands that have no 8 bits, 0: all have; of statistics */
};

static qn_status check_rank(const qn__problem *p, uint32_t role, int rank, const char *dims)
{
  const qn_value *v = qn__arg(p, role);
  return !v || v->rank == rank ? QN_OK : qn__refuse(p, qn__role_name(p, role), "rank is %d; must be %d: %s", (int)v->rank, rank, dims);
}

/* q, k and v: those without 8 bits have one dtype. */
static qn_status check_dtypes(const qn__problem *p, const struct roles *r, bool eights, struct extents *e)
{
  const uint32_t operand[3] = { r->q, r->k, r->v };
  e->dtype = 0;
  for (int i = 0; i < 3; i++) {
    const qn_value *v = qn__arg(p, operand[i]);
    qn_status status = qn__dtype_in(p, operand[i], QN__FLOATS | (eights ? EIGHTS : 0));
    if (status) return status;
    if (!v || EIGHTS & QN__BIT(v->dtype)) continue;
    if (e->dtype && (status = qn__dtype_in(p, operand[i], QN__BIT(e->dtype) | (eights ? EIGHTS : 0)))) return status;
    e->dtype = v->dtype;
  }
  return QN_OK;
}

static qn_status check_starts(const qn__problem *p, uint32_t role, const qn_value *tokens, const char *name, int64_t *b)
{
  const qn_value *starts = qn__arg(p, role);
  *b = tokens->dim[0];
  if (!starts) return QN_OK;
  qn_status status = check_rank(p, role, 1, "one more than sequences");
  if (status) return status;
  if (starts->dim[0] < 1) return qn__refuse(p, qn__role_name(p, role), "has 0 elements; must have one more than there are sequences");
  if (tokens->dim[0] != 1)
    return qn__refuse(p, name, "dim 0 is %lld; must be 1 beside %s, which divides its tokens into sequences", (long long)tokens->dim[0],
                      qn__role_name(p, role));
  *b = starts->dim[0] - 1;
  return QN_OK;
}

/* The pages of k, and from them the extent of keys. */
static qn_status check_pages(const qn__problem *p, const struct roles *r, const qn_value *k, struct extents *e, int64_t *b)
{
  const qn_value *pages = qn__arg(p, r->pages);
  qn_status status = check_rank(p, r->pages, 2, "sequences, pages of each");
  if (status) return status;
  if (qn__arg(p, r->kv_starts)) return qn__refuse(p, "kv_starts", "is given beside pages; keys have one or the other");
  if (!qn__arg(p, r->kv_lengths)) return qn__refuse(p, "kv_lengths", "is missing; pages want it");
  if (__builtin_mul_overflow(pages->dim[1], k->dim[2], &e->skv) || e->skv > QN__MAX_ELEMENTS)
    return qn__refuse(p, "pages", "%lld pages of %lld keys for a sequence are more than memory can hold", (long long)pages->dim[1],
                      (long long)k->dim[2]);
  *b = pages->dim[0];
  return QN_OK;
}

static qn_status check_values_of(const qn__problem *p, const struct roles *r, const qn_value *k, struct extents *e)
{
  const qn_attention *a = p->attr;
  const qn_value *v = qn__arg(p, r->v);
  if (v) {
    if (a->value_size) return qn__refuse(p, "value_size", "is %lld, but v is given; must be 0", (long long)a->value_size);
    int64_t dim[4] = { k->dim[0], k->dim[1], k->dim[2], v->rank == 4 ? v->dim[3] : 1 };
    e->dv = dim[3];
    return qn__settle(p, r->v, 0, 4, dim);
  }
  if (a->value_size < 1 || a->value_size > e->d)
    return qn__refuse(p, "value_size", "is %lld; without v it must be 1 to %lld, the size of a key", (long long)a->value_size,
                      (long long)e->d);
  e->dv = a->value_size;
  return QN_OK;
}

static qn_status check_operands(const qn__problem *p, const struct roles *r, struct extents *e)
{
  const qn_value *q = qn__arg(p, r->q), *k = qn__arg(p, r->k);
  const bool paged = r->pages != NONE && qn__arg(p, r->pages);
  int64_t b = 0;
  qn_status status;
  if ((status = check_rank(p, r->q, 4, "sequences, heads, queries, elements"))) return status;
  status = check_rank(p, r->k, 4, paged ? "pages, heads, keys of a page, elements" : "sequences, heads, keys, elements");
  if (status) return status;
  e->h = q->dim[1], e->hkv = k->dim[1], e->sq = q->dim[2], e->skv = k->dim[2], e->d = q->dim[3];
  if (e->d < 1) return qn__refuse(p, "q", "dim 3 is 0; must be at least 1");
  if (k->dim[3] != e->d) return qn__refuse(p, "k", "dim 3 is %lld; must be q's, %lld", (long long)k->dim[3], (long long)e->d);
  if (e->hkv ? e->h % e->hkv : e->h)
    return qn__refuse(p, "k", "has %lld heads; they must divide q's %lld", (long long)e->hkv, (long long)e->h);
  if ((status = check_starts(p, r->q_starts, q, "q", &e->b))) return status;
  if ((status = paged ? check_pages(p, r, k, e, &b) : check_starts(p, r->kv_starts, k, "k", &b))) return status;
  if (b != e->b)
    return qn__refuse(p, paged ? "pages" : qn__arg(p, r->kv_starts) ? "kv_starts" : "k", "is of %lld sequences; q is of %lld", (long long)b,
                      (long long)e->b);
  return check_values_of(p, r, k, e);
}

/* dims of a tensor that broadcasts: each is full or 1. */
static qn_status check_broadcast(const qn__problem *p, uint32_t role, int rank, const int64_t *full)
{
  const qn_value *v = qn__arg(p, role);
  if (!v) return QN_OK;
  qn_value right = { .rank = rank };
  for (int i = 0; i < rank; i++) right.dim[i] = full[i];
  for (int i = 0; i < rank && v->rank == rank; i++)
    if (v->dim[i] != 1 && v->dim[i] != full[i])
      return qn__refuse(p, qn__role_name(p, role), "dim %d is %lld; must be %lld or 1", i, (long long)v->dim[i], (long long)full[i]);
  if (v->rank == rank) return QN_OK;
  return qn__refuse(p, qn__role_name(p, role), "rank is %d; must be %d: %s, or 1 in any", (int)v->rank, rank, qn__dims(&right).s);
}

static int64_t blocks_of(int64_t n, int64_t block) { return n / block + (n % block > 0); }

static qn_status check_masks(const qn__problem *p, const struct roles *r, const struct extents *e)
{
  const qn_attention *a = p->attr;
  const qn_value *blocks = qn__arg(p, r->blocks), *slopes = qn__arg(p, r->slopes);
  const int64_t full[4] = { e->b, e->h, e->sq, e->skv }, of_head[2] = { e->b, e->h };
  qn_status status;
  if ((status = check_broadcast(p, r->bias, 4, full)) || (status = check_broadcast(p, r->mask, 4, full))) return status;
  if (e->dtype && (status = qn__dtype_in(p, r->bias, qn__kin(e->dtype)))) return status;
  if (blocks) {
    const int64_t rows = blocks_of(e->sq, a->block_q), bytes = blocks_of(blocks_of(e->skv, a->block_kv), 8);
    if ((status = check_rank(p, r->blocks, 4, "sequences, heads, query blocks, bytes of key blocks"))) return status;
    const int64_t dim[4] = { blocks->dim[0] == 1 ? 1 : e->b, blocks->dim[1] == 1 ? 1 : e->h, rows, bytes };
    if ((status = qn__settle(p, r->blocks, QN_U8, 4, dim))) return status;
  }
  if (slopes && slopes->rank == 2) status = check_broadcast(p, r->slopes, 2, of_head);
  else status = qn__settle(p, r->slopes, e->exact, 1, &e->h);
  if (status || (status = qn__settle(p, r->sink, e->exact, 1, &e->h))) return status;
  if ((status = qn__dtype_in(p, r->slopes, QN__BIT(e->exact))) || (status = qn__dtype_in(p, r->sink, QN__BIT(e->exact)))) return status;
  if ((status = qn__settle(p, r->q_lengths, QN_I32, 1, &e->b)) || (status = qn__settle(p, r->kv_lengths, QN_I32, 1, &e->b))) return status;
  if (a->dropout > 0 && !qn__arg(p, r->seed)) return qn__refuse(p, "seed", "is missing; dropout wants it");
  if (qn__arg(p, r->offset) && !qn__arg(p, r->seed)) return qn__refuse(p, "offset", "wants a seed beside it");
  return QN_OK;
}

/* A scale of the tensor `of`: one, or one for each block of it. */
static qn_status check_scale(const qn__problem *p, uint32_t role, const qn_value *of, uint32_t exact)
{
  const qn_value *scale = qn__arg(p, role);
  if (!scale) return QN_OK;
  qn_status status = qn__dtype_in(p, role, QN__BIT(exact));
  if (status || !scale->rank) return status;
  if (!of) return qn__refuse(p, qn__role_name(p, role), "rank is %d; must be 0", (int)scale->rank);
  if (scale->rank != of->rank)
    return qn__refuse(p, qn__role_name(p, role), "rank is %d; must be 0 or %d", (int)scale->rank, (int)of->rank);
  for (int i = 0; i < of->rank; i++)
    if (scale->dim[i] ? of->dim[i] % scale->dim[i] : of->dim[i])
      return qn__refuse(p, qn__role_name(p, role), "dim %d is %lld; must divide %lld", i, (long long)scale->dim[i], (long long)of->dim[i]);
  return QN_OK;
}

static qn_status settle_statistic(const qn__problem *p, uint32_t role, uint32_t exact, int rank, const int64_t *dim)
{
  qn_status status = qn__dtype_in(p, role, QN__BIT(exact));
  return status ? status : qn__settle(p, role, exact, rank, dim);
}

static qn_status settle_mixing(const qn__problem *p, uint32_t role, uint32_t dtype, uint32_t set, int rank, const int64_t *dim)
{
  qn_status status = qn__dtype_in(p, role, set);
  return status ? status : qn__settle(p, role, dtype, rank, dim);
}

static qn_status attention_forward(const qn__problem *p)
{
  const struct roles *r = &forward;
  const qn_value *q = qn__arg(p, r->q), *y = qn__arg(p, QN_ROLE_ATTENTION_FORWARD_Y), *v = qn__arg(p, r->v);
  struct extents e;
  qn_status status = check_dtypes(p, r, true, &e);
  if (status) return status;
  const uint32_t kin = e.dtype ? qn__kin(e.dtype) : QN__FLOATS;
  if ((status = qn__dtype_in(p, QN_ROLE_ATTENTION_FORWARD_Y, kin | QN__F8S))) return status;
  e.exact = e.dtype == QN_F64 || (!e.dtype && y->dtype == QN_F64) ? QN_F64 : QN_F32;
  if ((status = check_operands(p, r, &e)) || (status = check_masks(p, r, &e))) return status;
  if (!v && qn__arg(p, QN_ROLE_ATTENTION_FORWARD_V_SCALE))
    return qn__refuse(p, "v_scale", "is given without v, whose place the keys take with their own scale");
  if ((status = check_scale(p, QN_ROLE_ATTENTION_FORWARD_Q_SCALE, q, e.exact))) return status;
  if ((status = check_scale(p, QN_ROLE_ATTENTION_FORWARD_K_SCALE, qn__arg(p, r->k), e.exact))) return status;
  if ((status = check_scale(p, QN_ROLE_ATTENTION_FORWARD_V_SCALE, v, e.exact))) return status;
  if ((status = check_scale(p, QN_ROLE_ATTENTION_FORWARD_Y_SCALE, NULL, e.exact))) return status;

  const int64_t dim[4] = { q->dim[0], q->dim[1], q->dim[2], e.dv };
  if ((status = qn__settle(p, QN_ROLE_ATTENTION_FORWARD_Y, e.dtype ? e.dtype : QN_F32, 4, dim))) return status;
  if ((status = settle_statistic(p, QN_ROLE_ATTENTION_FORWARD_LSE, e.exact, 3, dim))) return status;
  if ((status = settle_statistic(p, QN_ROLE_ATTENTION_FORWARD_MAX, e.exact, 3, dim))) return status;
  return settle_statistic(p, QN_ROLE_ATTENTION_FORWARD_AMAX, e.exact, 0, NULL);
}

static qn_status attention_backward(const qn__problem *p)
{
  const struct roles *r = &backward;
  const qn_value *q = qn__arg(p, r->q), *k = qn__arg(p, r->k), *v = qn__arg(p, r->v), *bias = qn__arg(p, r->bias);
  struct extents e;
  qn_status status = check_dtypes(p, r, false, &e);
  if (status) return status;
  const uint32_t kin = qn__kin(e.dtype);
  e.exact = e.dtype == QN_F64 ? QN_F64 : QN_F32;
  if ((status = check_operands(p, r, &e)) || (status = check_masks(p, r, &e))) return status;

  const int64_t dim[4] = { q->dim[0], q->dim[1], q->dim[2], e.dv };
  if ((status = settle_mixing(p, QN_ROLE_ATTENTION_BACKWARD_DY, e.dtype, kin, 4, dim))) return status;
  if ((status = settle_mixing(p, QN_ROLE_ATTENTION_BACKWARD_Y, e.dtype, kin, 4, dim))) return status;
  if ((status = settle_statistic(p, QN_ROLE_ATTENTION_BACKWARD_LSE, e.exact, 3, dim))) return status;
  if ((status = settle_statistic(p, QN_ROLE_ATTENTION_BACKWARD_DLSE, e.exact, 3, dim))) return status;

  if (!v && qn__arg(p, QN_ROLE_ATTENTION_BACKWARD_DV)) return qn__refuse(p, "dv", "is given without v; the values' gradient is part of dk");
  if (v && !qn__arg(p, QN_ROLE_ATTENTION_BACKWARD_DV)) return qn__refuse(p, "dv", "is missing; v has a gradient");
  if (!bias && qn__arg(p, QN_ROLE_ATTENTION_BACKWARD_DBIAS)) return qn__refuse(p, "dbias", "is given without bias");
  if (!qn__arg(p, r->sink) && qn__arg(p, QN_ROLE_ATTENTION_BACKWARD_DSINK)) return qn__refuse(p, "dsink", "is given without sink");
  if ((status = settle_mixing(p, QN_ROLE_ATTENTION_BACKWARD_DQ, e.dtype, kin, 4, q->dim))) return status;
  if ((status = settle_mixing(p, QN_ROLE_ATTENTION_BACKWARD_DK, e.dtype, kin, 4, k->dim))) return status;
  if (v && (status = settle_mixing(p, QN_ROLE_ATTENTION_BACKWARD_DV, e.dtype, kin, 4, v->dim))) return status;
  if (bias && (status = settle_mixing(p, QN_ROLE_ATTENTION_BACKWARD_DBIAS, bias->dtype, kin, 4, bias->dim))) return status;
  return settle_statistic(p, QN_ROLE_ATTENTION_BACKWARD_DSINK, e.exact, 1, &e.h);
}

static qn_status merge(const qn__problem *p)
{
  const qn_value *y1 = qn__arg(p, QN_ROLE_ATTENTION_MERGE_Y1);
  const uint32_t exact = y1->dtype == QN_F64 ? QN_F64 : QN_F32, kin = qn__kin(y1->dtype);
  qn_status status;
  if (y1->rank < 1) return qn__refuse(p, "y1", "rank is 0; must be at least 1");
  if ((status = settle_mixing(p, QN_ROLE_ATTENTION_MERGE_Y2, y1->dtype, kin, y1->rank, y1->dim))) return status;
  if ((status = settle_mixing(p, QN_ROLE_ATTENTION_MERGE_Y, y1->dtype, kin, y1->rank, y1->dim))) return status;
  if ((status = settle_statistic(p, QN_ROLE_ATTENTION_MERGE_LSE1, exact, y1->rank - 1, y1->dim))) return status;
  if ((status = settle_statistic(p, QN_ROLE_ATTENTION_MERGE_LSE2, exact, y1->rank - 1, y1->dim))) return status;
  return settle_statistic(p, QN_ROLE_ATTENTION_MERGE_LSE, exact, y1->rank - 1, y1->dim);
}

/* Role numbers are the same in both directions. */
static qn_status rotary(const qn__problem *p)
{
  const qn_value *x = qn__arg(p, QN_ROLE_ROTARY_X), *cos = qn__arg(p, QN_ROLE_ROTARY_COS);
  const qn_value *positions = qn__arg(p, QN_ROLE_ROTARY_POSITIONS);
  const uint32_t kin = qn__kin(x->dtype);
  qn_status status;
  if ((status = check_rank(p, QN_ROLE_ROTARY_X, 4, "sequences, heads, tokens, elements"))) return status;
  if ((status = check_rank(p, QN_ROLE_ROTARY_COS, 2, "positions, pairs"))) return status;
  if (cos->dim[1] > x->dim[3] / 2)
    return qn__refuse(p, "cos", "dim 1 is %lld; must be at most %lld, the pairs of a row", (long long)cos->dim[1],
                      (long long)(x->dim[3] / 2));
  if ((status = qn__dtype_in(p, QN_ROLE_ROTARY_COS, kin))) return status;
  if ((status = settle_mixing(p, QN_ROLE_ROTARY_SIN, cos->dtype, kin, 2, cos->dim))) return status;
  if (positions) {
    const int64_t dim[2] = { positions->rank == 2 && positions->dim[0] == 1 ? 1 : x->dim[0], x->dim[2] };
    if ((status = qn__settle(p, QN_ROLE_ROTARY_POSITIONS, QN_I32, 2, dim))) return status;
  }
  return settle_mixing(p, QN_ROLE_ROTARY_Y, x->dtype, kin, 4, x->dim);
}

static qn_status cache_write(const qn__problem *p)
{
  const qn_value *cache = qn__arg(p, QN_ROLE_CACHE_WRITE_CACHE), *x = qn__arg(p, QN_ROLE_CACHE_WRITE_X);
  const bool floats = QN__FLOATS & QN__BIT(x->dtype);
  qn_status status;
  if ((status = check_rank(p, QN_ROLE_CACHE_WRITE_CACHE, 4, "pages, heads, places of a page, elements"))) return status;
  if ((status = check_rank(p, QN_ROLE_CACHE_WRITE_X, 4, "sequences, heads, tokens, elements"))) return status;
  if ((status = qn__dtype_in(p, QN_ROLE_CACHE_WRITE_CACHE, floats ? qn__kin(x->dtype) | EIGHTS : QN__BIT(x->dtype)))) return status;
  const int64_t dim[4] = { x->dim[0], cache->dim[1], x->dim[2], cache->dim[3] };
  if ((status = qn__settle(p, QN_ROLE_CACHE_WRITE_X, 0, 4, dim))) return status;
  const int64_t tokens[2] = { x->dim[0], x->dim[2] };
  if ((status = qn__settle(p, QN_ROLE_CACHE_WRITE_SLOTS, QN_I32, 2, tokens))) return status;
  if (!floats && qn__arg(p, QN_ROLE_CACHE_WRITE_SCALE))
    return qn__refuse(p, "scale", "is given; %s is stored as it is", qn_dtype_name(x->dtype));
  if ((status = check_scale(p, QN_ROLE_CACHE_WRITE_SCALE, cache, x->dtype == QN_F64 ? QN_F64 : QN_F32))) return status;
  return settle_mixing(p, QN_ROLE_CACHE_WRITE_NEW_CACHE, cache->dtype, QN__BIT(cache->dtype), 4, cache->dim);
}

qn_status qn__infer_attention(const qn__problem *p)
{
  switch (p->op->kind) {
  case QN_OP_ATTENTION_FORWARD: return attention_forward(p);
  case QN_OP_ATTENTION_BACKWARD: return attention_backward(p);
  case QN_OP_ATTENTION_MERGE: return merge(p);
  case QN_OP_CACHE_WRITE: return cache_write(p);
  default: return rotary(p);
  }
}
