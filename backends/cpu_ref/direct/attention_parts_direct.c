/* attention_parts_direct.c -- what stands around attention: the merge of two sets of keys, rotary embeddings, writes into a paged cache.
 *
 *   merge    m = max(lse1, lse2)   w_i = exp(lse_i - m)   y = (w1 y1 + w2 y2) / (w1 + w2)   lse = m + ln(w1 + w2)
 *   rotary   y_a = x_a cos - x_b sin, y_b = x_b cos + x_a sin; the gradient with -sin
 *   cache    new_cache = cache, then x / scale at each token's slot */
#include <stdbool.h>
#include "direct.h"

/* ---- merge -------------------------------------------------------------------------------------- */

static qn_status merge(const qn_prepared *p, const qn_launch *launch)
{
#define TENSOR(ROLE) cpu_tensor_of(p, launch, QN_ROLE_ATTENTION_MERGE_##ROLE, 0)
  const cpu_tensor y1 = TENSOR(Y1), y2 = TENSOR(Y2), lse1 = TENSOR(LSE1), lse2 = TENSOR(LSE2), y = TENSOR(Y), lse = TENSOR(LSE);
#undef TENSOR
  const int32_t rank = y.rank;
#pragma omp parallel for num_threads(cpu_team(launch, lse1.elements, y.dim[rank - 1] * 4 + 100))
  for (int64_t row = 0; row < lse1.elements; row++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(row, rank - 1, y.dim, index);
    const long double l1 = cpu_get(&lse1, cpu_offset(rank - 1, index, lse1.stride));
    const long double l2 = cpu_get(&lse2, cpu_offset(rank - 1, index, lse2.stride));
    const long double m = isnan(l1) || isnan(l2) ? NAN : fmaxl(l1, l2);
    const bool none = m == -INFINITY, bad = isnan(m) || m == INFINITY;
    const long double w1 = none ? 0 : expl(l1 - m), w2 = none ? 0 : expl(l2 - m);
    for (index[rank - 1] = 0; index[rank - 1] < y.dim[rank - 1]; index[rank - 1]++) {
      long double sum = 0;
      if (l1 != -INFINITY) sum += w1 * cpu_get(&y1, cpu_offset(rank, index, y1.stride));
      if (l2 != -INFINITY) sum += w2 * cpu_get(&y2, cpu_offset(rank, index, y2.stride));
      cpu_put(&y, cpu_offset(rank, index, y.stride), (double)(bad ? NAN : none ? 0 : sum / (w1 + w2)));
    }
    if (lse.p) cpu_put(&lse, cpu_offset(rank - 1, index, lse.stride), (double)(bad ? NAN : none ? m : m + logl(w1 + w2)));
  }
  return QN_OK;
}

/* ---- rotary ------------------------------------------------------------------------------------- */

static qn_status rotary(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;        /* role numbers are the same in both directions */
  const cpu_tensor x = cpu_tensor_of(p, launch, QN_ROLE_ROTARY_X, 0), y = cpu_tensor_of(p, launch, QN_ROLE_ROTARY_Y, 0);
  const cpu_tensor cos = cpu_tensor_of(p, launch, QN_ROLE_ROTARY_COS, 0), sin = cpu_tensor_of(p, launch, QN_ROLE_ROTARY_SIN, 0);
  const cpu_tensor positions = cpu_tensor_of(p, launch, QN_ROLE_ROTARY_POSITIONS, 0);
  const int64_t pairs = cos.dim[1], interleaved = ((const qn_rotation *)kept->attr)->interleaved;
  const long double turn = kept->op == QN_OP_ROTARY_BACKWARD ? -1 : 1;
  const int64_t rows = x.dim[0] * x.dim[1] * x.dim[2];
#pragma omp parallel for num_threads(cpu_team(launch, rows, x.dim[3] * 4))
  for (int64_t row = 0; row < rows; row++) {
    int64_t index[4];
    cpu_place(row, 3, x.dim, index);
    int64_t at = index[2];
    if (positions.p)
      at = qn_load_i64(cpu_at(&positions, (positions.dim[0] == 1 ? 0 : index[0] * positions.stride[0]) + index[2] * positions.stride[1]),
                       positions.dtype);
    const bool inside = at >= 0 && at < cos.dim[0];
    const int64_t from = cpu_offset(3, index, x.stride), to = cpu_offset(3, index, y.stride);
    for (int64_t k = 0; k < pairs; k++) {
      const int64_t a = interleaved ? 2 * k : k, b = interleaved ? 2 * k + 1 : k + pairs;
      const long double xa = cpu_get(&x, from + a * x.stride[3]), xb = cpu_get(&x, from + b * x.stride[3]);
      const long double c = inside ? cpu_get(&cos, at * cos.stride[0] + k * cos.stride[1]) : 0;
      const long double s = inside ? turn * cpu_get(&sin, at * sin.stride[0] + k * sin.stride[1]) : 0;
      cpu_put(&y, to + a * y.stride[3], inside ? (double)(xa * c - xb * s) : 0);
      cpu_put(&y, to + b * y.stride[3], inside ? (double)(xb * c + xa * s) : 0);
    }
    for (int64_t d = 2 * pairs; d < x.dim[3]; d++) cpu_put(&y, to + d * y.stride[3], cpu_get(&x, from + d * x.stride[3]));
  }
  return QN_OK;
}

/* ---- cache -------------------------------------------------------------------------------------- */

static void write_token(const cpu_tensor *x, const cpu_tensor *scale, const cpu_tensor *y, const int64_t token[4], int64_t slot)
{
  int64_t to[4] = { slot / y->dim[2], token[1], slot % y->dim[2], 0 }, from[4] = { token[0], token[1], token[2], 0 }, block[4];
  for (int64_t d = 0; d < y->dim[3]; d++) {
    to[3] = from[3] = d;
    unsigned char *at = cpu_at(y, cpu_offset(4, to, y->stride));
    const unsigned char *source = cpu_at(x, cpu_offset(4, from, x->stride));
    if (!scale->p && x->dtype == y->dtype) {
      memcpy(at, source, (size_t)y->bytes);
      continue;
    }
    double s = 1, value = qn_load_f64(source, x->dtype);
    for (int i = 0; i < 4 && scale->p && scale->rank; i++) block[i] = to[i] / (y->dim[i] / scale->dim[i]);
    if (scale->p) s = cpu_get(scale, cpu_offset(scale->rank, block, scale->stride));
    value = x->dtype == QN_F64 ? value / s : (float)value / (float)s;
    qn_store_f64(at, y->dtype, y->dtype == QN_I8 ? (isnan(value) ? 0 : rint(value)) : value);
  }
}

static qn_status cache_write(const qn_prepared *p, const qn_launch *launch)
{
#define TENSOR(ROLE) cpu_tensor_of(p, launch, QN_ROLE_CACHE_WRITE_##ROLE, 0)
  const cpu_tensor cache = TENSOR(CACHE), y = TENSOR(NEW_CACHE), x = TENSOR(X), slots = TENSOR(SLOTS), scale = TENSOR(SCALE);
#undef TENSOR
  const int64_t tokens = x.dim[0] * x.dim[1] * x.dim[2], places = y.dim[0] * y.dim[2];
  if (cache.p != y.p)
#pragma omp parallel for num_threads(cpu_team(launch, y.elements, 8))
    for (int64_t i = 0; i < y.elements; i++) {
      int64_t index[4];
      cpu_place(i, 4, y.dim, index);
      memcpy(cpu_at(&y, cpu_offset(4, index, y.stride)), cpu_at(&cache, cpu_offset(4, index, cache.stride)), (size_t)y.bytes);
    }
  for (int64_t i = 0; i < tokens; i++) {  /* one after the other: the last of two tokens of one slot stays */
    int64_t token[4];
    cpu_place(i, 3, x.dim, token);
    const int64_t slot = qn_load_i64(cpu_at(&slots, token[0] * slots.stride[0] + token[2] * slots.stride[1]), slots.dtype);
    if (slot >= 0 && slot < places) write_token(&x, &scale, &y, token, slot);
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_ATTENTION_MERGE, merge),
  CPU_DIRECT_ROW(QN_OP_ROTARY, rotary),
  CPU_DIRECT_ROW(QN_OP_ROTARY_BACKWARD, rotary),
  CPU_DIRECT_ROW(QN_OP_CACHE_WRITE, cache_write),
};
const qn_engine_list cpu_attention_parts_direct = { row, sizeof row / sizeof *row };
