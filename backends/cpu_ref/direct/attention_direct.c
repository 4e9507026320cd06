/* attention_direct.c -- attention and its gradient, query by query and key by key. Little is kept: a score is computed again for
 * whoever wants it, but for the first ones of a row; a row's and a key's outputs in strips of columns.
 *
 *   s_j = softcap(scale q k_j) + bias - slope |i + shift - j| over the keys that i sees; others are never read
 *   y = sum w_j n_j v_j / (sum w_j + exp(sink - m)), w_j = exp(s_j - m), n_j the keep factor of dropout       lse = m + ln of the divisor
 *   P_j = exp(s_j - lse)      D = dy y - dlse      dS_j = P_j (n_j dy v_j - D)      t = tanh of the softcap
 *   dq = scale sum dS_j (1 - t^2) k_j      dk_j = scale sum dS_j (1 - t^2) q_i      dv_j = sum n_j P_j dy_i
 *   dbias = sum dS      dsink = -sum exp(sink - lse) D */
#include <stdbool.h>
#include "direct.h"

enum { STRIP = CPU_COLUMNS, KEPT = 512 };    /* columns of one row summed together; scores, or pairs, that are kept */

typedef struct problem {
  cpu_tensor q, k, v, bias, mask, blocks, slopes, sink, q_lengths, kv_lengths, q_starts, kv_starts, pages;
  cpu_tensor q_scale, k_scale, v_scale, y_scale, y, lse, max, amax, dy, dlse, dq, dk, dv, dbias, dsink;
  const qn_attention *a;
  int64_t  sequences, heads, group, d, dv_size;
  long double scale, kept;                  /* kept: 1 / (1 - p) */
  uint32_t threshold;                       /* of 65536: a weight whose bits are below it is dropped */
  uint64_t seed, offset;
} problem;

/* A sequence: its first token in q and in k, its extents, the diagonal. */
typedef struct sequence { int64_t b, q0, k0, nq, nk, shift; } sequence;

/* ---- tensors ---------------------------------------------------------------------------------- */

static int64_t integer(const cpu_tensor *t, int64_t offset) { return qn_load_i64(cpu_at(t, offset), t->dtype); }
static int64_t clamped(int64_t x, int64_t most) { return qn_max_i64(0, qn_min_i64(x, most)); }

static void extent(const cpu_tensor *starts, const cpu_tensor *lengths, int64_t b, int64_t tokens, int64_t *first, int64_t *n)
{
  *first = 0;
  *n = tokens;
  if (starts->p) {
    *first = clamped(integer(starts, b * starts->stride[0]), tokens);
    *n = qn_max_i64(0, clamped(integer(starts, (b + 1) * starts->stride[0]), tokens) - *first);
  }
  if (lengths->p) *n = clamped(integer(lengths, b * lengths->stride[0]), *n);
}

static sequence sequence_of(const problem *p, int64_t b)
{
  sequence s = { .b = b };
  extent(&p->q_starts, &p->q_lengths, b, p->q.dim[2], &s.q0, &s.nq);
  extent(&p->kv_starts, &p->kv_lengths, b, p->pages.p ? p->pages.dim[1] * p->k.dim[2] : p->k.dim[2], &s.k0, &s.nk);
  s.shift = p->a->align == QN_ALIGN_TOP_LEFT ? 0 : s.nk - s.nq;
  return s;
}

/* An operand's value: the element, times the scale of its block. */
static double value(const cpu_tensor *t, const cpu_tensor *scale, const int64_t index[4])
{
  int64_t block[4];
  const double x = cpu_get(t, cpu_offset(4, index, t->stride));
  if (!scale->p) return x;
  for (int i = 0; i < 4 && scale->rank; i++) block[i] = index[i] / (t->dim[i] / scale->dim[i]);
  return x * cpu_get(scale, cpu_offset(scale->rank, block, scale->stride));
}

static void query_place(const problem *p, const sequence *s, int64_t h, int64_t i, int64_t index[4])
{
  index[0] = p->q_starts.p ? 0 : s->b;
  index[1] = h;
  index[2] = s->q0 + i;
}
static bool key_place(const problem *p, const sequence *s, int64_t h, int64_t j, int64_t index[4])
{
  index[0] = p->kv_starts.p ? 0 : s->b;
  index[1] = h / p->group;
  index[2] = s->k0 + j;
  if (!p->pages.p) return true;
  const int64_t size = p->k.dim[2];
  index[0] = integer(&p->pages, s->b * p->pages.stride[0] + j / size * p->pages.stride[1]);
  index[2] = j % size;
  return index[0] >= 0 && index[0] < p->k.dim[0];
}

/* Where a tensor that broadcasts over sequences, heads, queries and keys has the element. */
static int64_t spread_offset(const cpu_tensor *t, const sequence *s, int64_t h, int64_t i, int64_t j)
{
  const int64_t index[4] = { s->b, h, s->q0 + i, s->k0 + j };
  int64_t offset = 0;
  for (int d = 0; d < 4; d++) offset += t->dim[d] == 1 ? 0 : index[d] * t->stride[d];
  return offset;
}

/* ---- what a query sees ------------------------------------------------------------------------- */

static bool seen(const problem *p, const sequence *s, int64_t h, int64_t i, int64_t j)
{
  const qn_attention *a = p->a;
  const int64_t at = i + s->shift;
  int64_t index[4];
  if (a->left >= 0 && j < at - a->left) return false;
  if (a->right >= 0 && j > at + a->right) return false;
  if (p->mask.p && !*cpu_at(&p->mask, spread_offset(&p->mask, s, h, i, j))) return false;
  if (p->blocks.p) {
    const int64_t block = j / a->block_kv;
    const int64_t offset = (p->blocks.dim[0] == 1 ? 0 : s->b * p->blocks.stride[0]) + (p->blocks.dim[1] == 1 ? 0 : h * p->blocks.stride[1])
                         + i / a->block_q * p->blocks.stride[2] + block / 8 * p->blocks.stride[3];
    if (!(*cpu_at(&p->blocks, offset) >> block % 8 & 1)) return false;
  }
  return key_place(p, s, h, j, index);
}

static bool dropped(const problem *p, const sequence *s, int64_t h, int64_t i, int64_t j)
{
  if (!p->threshold) return false;
  const uint64_t low = UINT64_C(0xffffffff), head = (uint64_t)(s->b * p->heads + h), offset = p->offset + (head << 32);
  uint64_t c[4] = { (uint64_t)j / 8 & low, (uint64_t)i & low, offset & low, offset >> 32 };
  cpu_philox(c, p->seed);
  return (c[j % 8 / 2] >> 16 * (j % 2) & 0xffff) < p->threshold;
}

static long double slope_of(const problem *p, const sequence *s, int64_t h)
{
  const cpu_tensor *t = &p->slopes;
  if (t->rank == 1) return cpu_get(t, h * t->stride[0]);
  return cpu_get(t, (t->dim[0] == 1 ? 0 : s->b * t->stride[0]) + (t->dim[1] == 1 ? 0 : h * t->stride[1]));
}

/* The sum of products of two rows: of n elements along the last dim, from these places. */
static long double dot(const cpu_tensor *a, const int64_t at_a[4], const cpu_tensor *b, const int64_t at_b[4], int64_t n)
{
  cpu_sum sum = { 0 };
  cpu_sum_products(&sum, n, a, cpu_offset(3, at_a, a->stride), a->stride[3], b, cpu_offset(3, at_b, b->stride), b->stride[3]);
  return cpu_sum_total(&sum);
}

/* The final score of a key that is seen, and the derivative of its softcap. */
static long double score(const problem *p, const sequence *s, int64_t h, int64_t i, int64_t j, long double *slope)
{
  int64_t at_q[4], at_k[4];
  cpu_sum sum = { 0 };
  query_place(p, s, h, i, at_q);
  key_place(p, s, h, j, at_k);
  for (int64_t d = 0; d < p->d && (p->q_scale.p || p->k_scale.p); d++) {
    at_q[3] = at_k[3] = d;
    cpu_sum_add_product(&sum, value(&p->q, &p->q_scale, at_q), value(&p->k, &p->k_scale, at_k));
  }
  long double x = p->scale * (p->q_scale.p || p->k_scale.p ? cpu_sum_total(&sum) : dot(&p->q, at_q, &p->k, at_k, p->d));
  *slope = 1;
  if (p->a->softcap > 0) {
    const long double t = tanhl(x / p->a->softcap), c = coshl(x / p->a->softcap);
    x = p->a->softcap * t;
    *slope = 1 / (c * c);
  }
  if (p->bias.p) x += cpu_get(&p->bias, spread_offset(&p->bias, s, h, i, j));
  if (p->slopes.p) x -= slope_of(p, s, h) * (long double)qn_max_i64(i + s->shift - j, j - i - s->shift);
  return x;
}

/* Products of one weight with each of n columns of a row that begins at `index`. */
static void add_row(cpu_columns *sum, double weight, const cpu_tensor *t, const cpu_tensor *scale, int64_t index[4], int64_t first,
                    int64_t n)
{
  double x[STRIP];
  index[3] = first;
  if (!scale || !scale->p) cpu_load_run(x, n, cpu_at(t, cpu_offset(4, index, t->stride)), t->stride[3] * t->bytes, t->dtype);
  else
    for (int64_t c = 0; c < n; c++, index[3]++) x[c] = value(t, scale, index);
  cpu_columns_add(sum, n, weight, x);
}

static long double sink_of(const problem *p, int64_t h) { return p->sink.p ? cpu_get(&p->sink, h * p->sink.stride[0]) : -INFINITY; }

/* ---- forward ----------------------------------------------------------------------------------- */

/* The largest score of a row; NaN if one is, -Inf if it sees nothing. The first scores are kept. */
static long double row_max(const problem *p, const sequence *s, int64_t h, int64_t i, long double kept[KEPT])
{
  long double most = -INFINITY, slope;
  for (int64_t j = 0; j < s->nk; j++) {
    if (!seen(p, s, h, i, j)) continue;
    const long double x = score(p, s, h, i, j, &slope);
    if (j < KEPT) kept[j] = x;
    most = isnan(x) || isnan(most) ? NAN : fmaxl(most, x);
  }
  return most;
}

/* One token of one head; i -1: it belongs to no sequence. Returns max |y|. */
static double one_row(const problem *p, const sequence *s, int64_t h, int64_t i, int64_t index[4])
{
  long double kept[KEPT];
  const long double most = i >= 0 ? row_max(p, s, h, i, kept) : -INFINITY, sink = i >= 0 ? sink_of(p, h) : -INFINITY;
  const long double m = isnan(sink) || isnan(most) ? NAN : fmaxl(most, sink);
  long double divisor = 0, slope;
  double amax = 0, multiplier = p->y_scale.p ? cpu_get(&p->y_scale, 0) : 1;
  for (int64_t first = 0; first == 0 || first < p->dv_size; first += STRIP) {      /* once even without columns, for the divisor */
    const int64_t n = qn_min_i64(STRIP, p->dv_size - first);
    cpu_columns sum = { 0 };
    cpu_sum weights = { 0 };
    for (int64_t j = 0; isfinite(most) && isfinite(m) && j < s->nk; j++) {
      if (!seen(p, s, h, i, j)) continue;
      const double w = (double)expl((j < KEPT ? kept[j] : score(p, s, h, i, j, &slope)) - m);
      int64_t at[4];
      cpu_sum_add(&weights, w);
      if (dropped(p, s, h, i, j)) continue;
      key_place(p, s, h, j, at);
      add_row(&sum, w, p->v.p ? &p->v : &p->k, p->v.p ? &p->v_scale : &p->k_scale, at, first, n);
    }
    divisor = !isfinite(m) && m != -INFINITY ? NAN : m == -INFINITY ? 0 : cpu_sum_total(&weights) + expl(sink - m);
    for (int64_t c = 0; c < n; c++) {
      index[3] = first + c;
      const cpu_sum column = cpu_column(&sum, c);
      const long double total = cpu_sum_total(&column);
      const double y = isnan(divisor) ? NAN : divisor == 0 || total == 0 ? 0 : (double)(total * p->kept / divisor);
      amax = isnan(y) || isnan(amax) ? NAN : fmax(amax, fabs(y));
      cpu_put(&p->y, cpu_offset(4, index, p->y.stride), y * multiplier);
    }
  }
  const long double lse = isnan(divisor) ? NAN : divisor == 0 ? -INFINITY : m + logl(divisor);
  if (p->lse.p) cpu_put(&p->lse, cpu_offset(3, index, p->lse.stride), (double)lse);
  if (p->max.p) cpu_put(&p->max, cpu_offset(3, index, p->max.stride), (double)most);
  return amax;
}

/* The sequence that owns a token of q (of k), and its place there, -1: none. */
static int64_t owner(const problem *p, bool keys, int64_t storage, int64_t token, sequence *s)
{
  const bool ragged = keys ? p->kv_starts.p != NULL : p->q_starts.p != NULL;
  for (int64_t b = ragged ? 0 : storage; b < (ragged ? p->sequences : storage + 1); b++) {
    *s = sequence_of(p, b);
    const int64_t at = token - (keys ? s->k0 : s->q0);
    if (at >= 0 && at < (keys ? s->nk : s->nq)) return at;
  }
  return -1;
}

static qn_status run_forward(const problem *p, const qn_launch *launch)
{
  const int64_t rows = p->q.dim[0] * p->heads * p->q.dim[2];
  double amax = 0;
#pragma omp parallel for num_threads(cpu_team(launch, rows, p->k.dim[2] * (p->d + p->dv_size) * 4))
  for (int64_t row = 0; row < rows; row++) {
    int64_t index[4];
    sequence s;
    cpu_place(row, 3, p->q.dim, index);
    const double most = one_row(p, &s, index[1], owner(p, false, index[0], index[2], &s), index);
    if (!p->amax.p) continue;
#pragma omp critical
    amax = isnan(most) || isnan(amax) ? NAN : fmax(amax, most);
  }
  if (p->amax.p) cpu_put(&p->amax, 0, amax);
  return QN_OK;
}

/* ---- backward ---------------------------------------------------------------------------------- */

typedef struct pair { long double p, ds, inner; } pair;       /* n P; dS; and through the softcap, times scale */

static long double row_d(const problem *p, const sequence *s, int64_t h, int64_t i)
{
  int64_t at[4];
  query_place(p, s, h, i, at);
  return dot(&p->dy, at, &p->y, at, p->dv_size) - (p->dlse.p ? cpu_get(&p->dlse, cpu_offset(3, at, p->dlse.stride)) : 0);
}
static double row_lse(const problem *p, const sequence *s, int64_t h, int64_t i)
{
  int64_t at[4];
  query_place(p, s, h, i, at);
  return cpu_get(&p->lse, cpu_offset(3, at, p->lse.stride));
}

static pair pair_of(const problem *p, const sequence *s, int64_t h, int64_t i, int64_t j, long double d)
{
  long double slope;
  int64_t at[4], at_v[4];
  const double lse = row_lse(p, s, h, i);
  if (lse == -INFINITY) return (pair){ 0, 0, 0 };
  const long double weight = expl(score(p, s, h, i, j, &slope) - lse), keep = dropped(p, s, h, i, j) ? 0 : p->kept;
  query_place(p, s, h, i, at);
  key_place(p, s, h, j, at_v);
  const long double dp = keep > 0 ? dot(&p->dy, at, p->v.p ? &p->v : &p->k, at_v, p->dv_size) : 0;
  const long double ds = weight * (keep * dp - d);
  return (pair){ keep * weight, ds, p->scale * ds * slope };
}

static void put_columns(const cpu_tensor *t, int64_t index[4], const cpu_columns *sum, int64_t first, int64_t n)
{
  for (int64_t c = 0; c < n; c++) {
    const cpu_sum column = cpu_column(sum, c);
    index[3] = first + c;
    cpu_put(t, cpu_offset(4, index, t->stride), cpu_sum_value(&column));
  }
}

static void query_gradient(const problem *p, int64_t row)
{
  int64_t index[4], at[4];
  sequence s;
  cpu_place(row, 3, p->q.dim, index);
  const int64_t h = index[1], i = owner(p, false, index[0], index[2], &s);
  const long double d = i >= 0 ? row_d(p, &s, h, i) : 0;
  double kept[KEPT];                        /* dS through the softcap, for the strips after the first */
  for (int64_t first = 0; first < p->d; first += STRIP) {
    const int64_t n = qn_min_i64(STRIP, p->d - first);
    cpu_columns sum = { 0 };
    for (int64_t j = 0; i >= 0 && j < s.nk; j++) {
      if (!seen(p, &s, h, i, j)) continue;
      const double ds = first > 0 && j < KEPT ? kept[j] : (double)pair_of(p, &s, h, i, j, d).inner;
      if (j < KEPT) kept[j] = ds;
      key_place(p, &s, h, j, at);
      add_row(&sum, ds, &p->k, NULL, at, first, n);
    }
    put_columns(&p->dq, index, &sum, first, n);
  }
}

/* What a key's gradients take from a query. */
typedef struct weights { double inner, p; } weights;

/* Columns first .. of a key's gradient, and the same of its value's; where there is no v, both are k's. The weights of the first queries
 * are kept for the strips after the first. */
static void key_strip(const problem *p, const sequence *s, int64_t g, int64_t j, int64_t first, weights kept[KEPT], int64_t index[4])
{
  const int64_t n = qn_min_i64(STRIP, p->d - first), n_v = qn_min_i64(STRIP, p->dv_size - first);
  cpu_columns sum = { 0 }, of_v = { 0 };
  for (int64_t h = g * p->group, number = 0; h < (g + 1) * p->group && j >= 0; h++)
    for (int64_t i = 0; i < s->nq; i++) {
      int64_t at[4];
      weights w;
      if (!seen(p, s, h, i, j)) continue;
      if (first > 0 && number < KEPT) {
        w = kept[number];
      } else {
        const pair pair = pair_of(p, s, h, i, j, row_d(p, s, h, i));
        w = (weights){ (double)pair.inner, (double)pair.p };
      }
      if (number < KEPT) kept[number++] = w;
      query_place(p, s, h, i, at);
      if (n > 0) add_row(&sum, w.inner, &p->q, NULL, at, first, n);
      if (n_v > 0) add_row(p->v.p ? &of_v : &sum, w.p, &p->dy, NULL, at, first, n_v);
    }
  put_columns(&p->dk, index, &sum, first, n);
  if (p->v.p) put_columns(&p->dv, index, &of_v, first, n_v);
}

static void key_gradient(const problem *p, int64_t row)
{
  int64_t index[4];
  sequence s;
  weights kept[KEPT];
  cpu_place(row, 3, p->k.dim, index);
  const int64_t g = index[1], j = owner(p, true, index[0], index[2], &s);
  for (int64_t first = 0; first < qn_max_i64(p->d, p->dv_size); first += STRIP) key_strip(p, &s, g, j, first, kept, index);
}

static void bias_gradient(const problem *p, int64_t element)
{
  const int64_t *dim = p->dbias.dim;
  int64_t index[4];
  cpu_sum sum = { 0 };
  cpu_place(element, 4, dim, index);
  for (int64_t b = dim[0] == 1 ? 0 : index[0]; b < (dim[0] == 1 ? p->sequences : index[0] + 1); b++) {
    const sequence s = sequence_of(p, b);
    for (int64_t h = dim[1] == 1 ? 0 : index[1]; h < (dim[1] == 1 ? p->heads : index[1] + 1); h++)
      for (int64_t i = 0; i < s.nq; i++) {
        if (dim[2] != 1 && s.q0 + i != index[2]) continue;
        const long double d = row_d(p, &s, h, i);
        for (int64_t j = 0; j < s.nk; j++)
          if ((dim[3] == 1 || s.k0 + j == index[3]) && seen(p, &s, h, i, j)) cpu_sum_add(&sum, (double)pair_of(p, &s, h, i, j, d).ds);
      }
  }
  cpu_put(&p->dbias, cpu_offset(4, index, p->dbias.stride), cpu_sum_value(&sum));
}

static void sink_gradient(const problem *p, int64_t h)
{
  cpu_sum sum = { 0 };
  for (int64_t b = 0; b < p->sequences; b++) {
    const sequence s = sequence_of(p, b);
    for (int64_t i = 0; i < s.nq; i++) {
      const double lse = row_lse(p, &s, h, i);
      if (lse != -INFINITY) cpu_sum_add(&sum, -(double)(expl(sink_of(p, h) - lse) * row_d(p, &s, h, i)));
    }
  }
  cpu_put(&p->dsink, h * p->dsink.stride[0], cpu_sum_value(&sum));
}

static qn_status run_backward(const problem *p, const qn_launch *launch)
{
  const int64_t queries = p->q.dim[0] * p->heads * p->q.dim[2], keys = p->k.dim[0] * p->k.dim[1] * p->k.dim[2];
#pragma omp parallel for num_threads(cpu_team(launch, queries, p->k.dim[2] * (p->d + p->dv_size) * 4))
  for (int64_t row = 0; row < queries; row++) query_gradient(p, row);
#pragma omp parallel for num_threads(cpu_team(launch, keys, p->q.dim[2] * (p->d + p->dv_size) * 4))
  for (int64_t row = 0; row < keys; row++) key_gradient(p, row);
  if (p->dbias.p)
#pragma omp parallel for num_threads(cpu_team(launch, p->dbias.elements, (p->d + p->dv_size) * 8))
    for (int64_t i = 0; i < p->dbias.elements; i++) bias_gradient(p, i);
  for (int64_t h = 0; h < p->heads && p->dsink.p; h++) sink_gradient(p, h);
  return QN_OK;
}

/* ---- rows --------------------------------------------------------------------------------------- */

static uint64_t key(cpu_tensor t) { return t.p ? (uint64_t)qn_load_i64(t.p, t.dtype) : 0; }

#define TENSOR(OP, ROLE) cpu_tensor_of(prepared, launch, QN_ROLE_##OP##_##ROLE, 0)
#define SHARED(OP)                                                                                            \
  .q = TENSOR(OP, Q), .k = TENSOR(OP, K), .v = TENSOR(OP, V), .bias = TENSOR(OP, BIAS), .mask = TENSOR(OP, MASK), \
  .blocks = TENSOR(OP, BLOCKS), .slopes = TENSOR(OP, SLOPES), .sink = TENSOR(OP, SINK), .q_lengths = TENSOR(OP, Q_LENGTHS), \
  .kv_lengths = TENSOR(OP, KV_LENGTHS), .q_starts = TENSOR(OP, Q_STARTS), .kv_starts = TENSOR(OP, KV_STARTS), \
  .a = ((const cpu_kept *)prepared->state)->attr, .seed = key(TENSOR(OP, SEED)), .offset = key(TENSOR(OP, OFFSET))

static void complete(problem *p)
{
  p->sequences = p->q_starts.p ? p->q_starts.dim[0] - 1 : p->q.dim[0];
  p->heads = p->q.dim[1];
  p->group = p->k.dim[1] ? p->heads / p->k.dim[1] : 1;
  p->d = p->q.dim[3];
  p->dv_size = p->v.p ? p->v.dim[3] : p->a->value_size;
  p->scale = p->a->scale > 0 ? p->a->scale : 1 / sqrtl((long double)p->d);
  p->threshold = (uint32_t)(p->a->dropout * 65536 + 0.5);
  p->kept = p->threshold < 65536 ? 65536.0L / (65536 - p->threshold) : 0;
}

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  problem p = {
    SHARED(ATTENTION_FORWARD), .pages = TENSOR(ATTENTION_FORWARD, PAGES), .q_scale = TENSOR(ATTENTION_FORWARD, Q_SCALE),
    .k_scale = TENSOR(ATTENTION_FORWARD, K_SCALE), .v_scale = TENSOR(ATTENTION_FORWARD, V_SCALE),
    .y_scale = TENSOR(ATTENTION_FORWARD, Y_SCALE), .y = TENSOR(ATTENTION_FORWARD, Y), .lse = TENSOR(ATTENTION_FORWARD, LSE),
    .max = TENSOR(ATTENTION_FORWARD, MAX), .amax = TENSOR(ATTENTION_FORWARD, AMAX),
  };
  complete(&p);
  return run_forward(&p, launch);
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  problem p = {
    SHARED(ATTENTION_BACKWARD), .y = TENSOR(ATTENTION_BACKWARD, Y), .lse = TENSOR(ATTENTION_BACKWARD, LSE),
    .dy = TENSOR(ATTENTION_BACKWARD, DY), .dlse = TENSOR(ATTENTION_BACKWARD, DLSE), .dq = TENSOR(ATTENTION_BACKWARD, DQ),
    .dk = TENSOR(ATTENTION_BACKWARD, DK), .dv = TENSOR(ATTENTION_BACKWARD, DV), .dbias = TENSOR(ATTENTION_BACKWARD, DBIAS),
    .dsink = TENSOR(ATTENTION_BACKWARD, DSINK),
  };
  complete(&p);
  return run_backward(&p, launch);
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_ATTENTION_FORWARD, forward),
  CPU_DIRECT_ROW(QN_OP_ATTENTION_BACKWARD, backward),
};
const qn_engine_list cpu_attention_direct = { row, sizeof row / sizeof *row };
