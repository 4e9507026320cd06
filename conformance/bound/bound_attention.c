/* bound_attention.c -- attention, its gradient, the merge of two parts, rotary embeddings.
 *
 * u: unit roundoff of the computing type; c(n): of a sum of n terms (qc_sum_error); c'(n) the same without the rounding of stored
 * terms, for sums whose terms stay in registers. An engine that rounds P or dS to a narrow dtype declares it as `store`.
 *
 *   score     e_s = scale (c'(D) + 4u) S + 6u |x| + input errors, S = sum |q||k|; softcap adds 8u |s|, bias and slope u (|s| + their size)
 *   weight    d_j = e_s + (3|s - m| + 2|m| + 8) u, relative; d = sum P (exp(d_j) - 1), of the divisor; the sink is one more term
 *   sums over keys are rescaled block by block, at most every 16 keys: r = (8 + n/16) u
 *   y         e = sum P|v| (exp(d_j) - 1) + (c(n) + r) sum P|v| + |y| (d + c'(n) + r + 4u) + t sum |v|
 *   lse       e = d + c'(n) + r + u (2|m| + 2|ln of the divisor| + 2|lse| + 4);   max: the largest e_s of those that may be it
 *   P         e_P = P (exp(e_s + e_lse + (3|s - lse| + 2|lse| + 8) u) - 1)
 *   D         e_D = c'(Dv) sum |dy||y| + u |dlse|;   dP: e = n c'(Dv) sum |dy||v| + u n |dP|
 *   dS        e = e_P (|dP - D| + e_dP + e_D) + P (e_dP + e_D + 2u (|dP| + |D|)) + 3u |dS|
 *   dq, dk    e = sum (scale e_dS (1 - t^2) + |scale dS| (2|t| e_s / softcap + 8u)) |k| + (c(n) + 4u) sum |scale dS k|
 *   dv, dbias, dsink likewise
 *   merge     shares w_i, d_i = (2|lse_i - m| + 2|m| + 4) u + e_lse:   e = sum w |y_i| (d_i + 4u) + |y| sum w d_i
 *             lse: sum w e_lse + u (6 + 2|m| + 2|lse|)
 *   rotary    e = 3u (|x_a cos| + |x_b sin|) + input errors
 *
 * t: the size below which a weight or dS may be lost. Where a non-finite value meets a weight that may be 0, or a sum may overflow,
 * nothing is known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

struct scene {
  struct qc_node *n;
  const qn_attention *a;
  const struct qc_value *q, *k, *v, *bias, *mask, *blocks, *slopes, *sink, *q_lengths, *kv_lengths, *q_starts, *kv_starts, *pages;
  const struct qc_value *q_scale, *k_scale, *v_scale;
  const struct qc_numerics *numerics;
  struct qc_numerics plain;               /* without stored terms */
  int64_t  sequences, heads, group, sq, skv, d, dv;
  double   scale, kept, u, tiny, lost, store;
  uint32_t threshold;
  uint64_t seed, offset;
};

/* One query: its sequence, and what it knows of each key. */
struct row {
  int64_t b, h, i, q0, k0, nq, nk, shift, at;   /* at: the row's number among those of q */
  double *s, *e, *t;                      /* the score, its error, tanh of the softcap */
  int64_t *place;                         /* the key's row number in k; -1: not seen */
};

static int64_t integer(const struct qc_value *v, int64_t i)
{
  int32_t narrow;
  int64_t wide;
  if (v->q.dtype == QN_I64) {
    memcpy(&wide, (const char *)v->twin + 8 * i, sizeof wide);
    return wide;
  }
  memcpy(&narrow, (const char *)v->twin + 4 * i, sizeof narrow);
  return narrow;
}
static int64_t clamped(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }

/* ---- the problem's geometry ------------------------------------------------------------------------ */

static void extent(const struct qc_value *starts, const struct qc_value *lengths, int64_t b, int64_t tokens, int64_t *first, int64_t *n)
{
  *first = 0;
  *n = tokens;
  if (starts) {
    int64_t end = clamped(integer(starts, b + 1), tokens);
    *first = clamped(integer(starts, b), tokens);
    *n = end > *first ? end - *first : 0;
  }
  if (lengths)
    *n = clamped(integer(lengths, b), *n);
}

/* Packed index into a tensor that broadcasts over sequences, heads, queries and keys. */
static int64_t spread(const struct qc_value *v, int64_t b, int64_t h, int64_t i, int64_t j)
{
  const int64_t index[4] = {b, h, i, j};
  int64_t at = 0;
  for (int k = 0; k < 4; k++)
    at = at * v->q.dim[k] + (v->q.dim[k] == 1 ? 0 : index[k]);
  return at;
}

static int64_t place_of(const struct scene *s, const struct row *r, int64_t j)
{
  const int64_t *dim = s->k->q.dim, at = r->i + r->shift, g = r->h / s->group;
  if ((s->a->left >= 0 && j < at - s->a->left) || (s->a->right >= 0 && j > at + s->a->right))
    return -1;
  if (s->mask && !((const char *)s->mask->twin)[spread(s->mask, r->b, r->h, r->q0 + r->i, r->k0 + j)])
    return -1;
  if (s->blocks) {
    int64_t block = j / s->a->block_kv, byte = spread(s->blocks, r->b, r->h, r->i / s->a->block_q, block / 8);
    if (!(((const unsigned char *)s->blocks->twin)[byte] >> block % 8 & 1))
      return -1;
  }
  if (!s->pages)
    return ((s->kv_starts ? 0 : r->b) * dim[1] + g) * dim[2] + r->k0 + j;
  int64_t page = integer(s->pages, r->b * s->pages->q.dim[1] + j / dim[2]);
  return page < 0 || page >= dim[0] ? -1 : (page * dim[1] + g) * dim[2] + j % dim[2];
}

/* The scale of element `at` of v. */
static double scale_of(const struct qc_value *scale, const struct qc_value *v, int64_t at)
{
  int64_t block[4], of = 0;
  if (!scale)
    return 1;
  for (int k = 3; k >= 0; k--) {
    block[k] = scale->q.rank ? at % v->q.dim[k] / (v->q.dim[k] / scale->q.dim[k]) : 0;
    at /= v->q.dim[k];
  }
  for (int k = 0; k < scale->q.rank; k++)
    of = of * scale->q.dim[k] + block[k];
  return scale->y[of];
}

static double element(const struct qc_value *v, const struct qc_value *scale, int64_t at, double *e)
{
  double of = scale_of(scale, v, at);
  *e = v->e ? v->e[at] * fabs(of) : 0;
  return of * (v->y ? v->y[at] : qc_decode(v->q.dtype, (const char *)v->twin + at * (int64_t)qn_dtype_bytes(v->q.dtype)));
}
static double value_at(const struct scene *s, int64_t place, int64_t column, double *e)
{
  return s->v ? element(s->v, s->v_scale, place * s->dv + column, e) : element(s->k, s->k_scale, place * s->d + column, e);
}

/* Philox 4x32-10, as qn_attention_forward's page says. */
static bool dropped(const struct scene *s, const struct row *r, int64_t j)
{
  if (!s->threshold)
    return false;
  uint64_t offset = s->offset + ((uint64_t)(r->b * s->heads + r->h) << 32);
  uint32_t c[4] = {(uint32_t)(j / 8), (uint32_t)r->i, (uint32_t)offset, (uint32_t)(offset >> 32)};
  uint32_t key[2] = {(uint32_t)s->seed, (uint32_t)(s->seed >> 32)};
  for (int round = 0; round < 10; round++) {
    uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
    c[0] = (uint32_t)(b >> 32) ^ c[1] ^ key[0];
    c[1] = (uint32_t)b;
    c[2] = (uint32_t)(a >> 32) ^ c[3] ^ key[1];
    c[3] = (uint32_t)a;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return (c[j % 8 / 2] >> 16 * (j % 2) & 0xffff) < s->threshold;
}

/* ---- scores ------------------------------------------------------------------------------------------ */

static void score(const struct scene *s, struct row *r, int64_t j)
{
  double x = 0, size = 0, inexact = 0, u = s->u;
  bool infinite = false;                /* by its operands: exactly so */
  for (int64_t c = 0; c < s->d; c++) {
    double eq, ek, q = element(s->q, s->q_scale, r->at * s->d + c, &eq), k = element(s->k, s->k_scale, r->place[j] * s->d + c, &ek);
    x += q * k;
    size += fabs(q * k);
    infinite |= !isfinite(q) || !isfinite(k);
    inexact += fabs(q) * ek + fabs(k) * eq + eq * ek;
  }
  double e = s->scale * ((qc_sum_error(&s->plain, s->n->compute, (double)s->d) + 4 * u) * size + inexact);
  if (qc_overflows(s->n->compute, size) || qc_overflows(s->n->compute, size * s->scale) || !isfinite(size))
    e = INFINITY;
  x *= s->scale;
  e = infinite ? 0 : e + 6 * u * fabs(x) + 2 * s->tiny;
  r->t[j] = 0;
  if (s->a->softcap > 0) {
    r->t[j] = tanh(x / s->a->softcap);
    x = s->a->softcap * r->t[j];
    e += 8 * u * fabs(x);
  }
  if (s->bias) {
    int64_t at = spread(s->bias, r->b, r->h, r->q0 + r->i, r->k0 + j);
    x += s->bias->y[at];
    e += s->bias->e[at] + 2 * u * (fabs(x) + fabs(s->bias->y[at]));
  }
  if (s->slopes) {
    const qn_value *q = &s->slopes->q;
    int64_t at = q->rank == 1 ? r->h : (q->dim[0] == 1 ? 0 : r->b * q->dim[1]) + (q->dim[1] == 1 ? 0 : r->h);
    double far = fabs((double)(r->i + r->shift - j));
    x -= s->slopes->y[at] * far;
    e += s->slopes->e[at] * far + 2 * u * (fabs(s->slopes->y[at]) * far + fabs(x));
  }
  r->s[j] = x;
  r->e[j] = isfinite(x) || e == INFINITY ? e : 0;
}

/* at: row number among q's. False: the token belongs to no sequence. */
static bool row_of(const struct scene *s, struct row *r, int64_t at)
{
  int64_t token = at % s->sq, storage = at / s->sq / s->heads;
  r->at = at;
  r->h = at / s->sq % s->heads;
  for (r->b = s->q_starts ? 0 : storage; r->b < (s->q_starts ? s->sequences : storage + 1); r->b++) {
    extent(s->q_starts, s->q_lengths, r->b, s->sq, &r->q0, &r->nq);
    extent(s->kv_starts, s->kv_lengths, r->b, s->skv, &r->k0, &r->nk);
    r->i = token - r->q0;
    if (r->i < 0 || r->i >= r->nq)
      continue;
    r->shift = s->a->align == QN_ALIGN_TOP_LEFT ? 0 : r->nk - r->nq;
    for (int64_t j = 0; j < r->nk; j++)
      if ((r->place[j] = place_of(s, r, j)) >= 0)
        score(s, r, j);
    return true;
  }
  return false;
}

static struct row row_make(const struct scene *s)
{
  size_t bytes = (size_t)s->skv * 8 + 8;
  return (struct row){.s = qc_alloc(bytes), .e = qc_alloc(bytes), .t = qc_alloc(bytes), .place = qc_alloc(bytes)};
}
static void row_free(struct row *r)
{
  free(r->s);
  free(r->e);
  free(r->t);
  free(r->place);
}

/* An error beside the value that it belongs to. */
static double known(double y, double e) { return isfinite(y) && !isfinite(e) ? QC_ANY : isnan(e) ? 0 : e; }

/* ---- forward ----------------------------------------------------------------------------------------- */

struct outputs { struct qc_value *y, *lse, *max; double scale, *amax; };

static void row_forward(const struct scene *s, struct row *r, const struct outputs *o)
{
  double m = -INFINITY, w = 0, mean = 0, u = s->u, seen = 0, most = 0;
  for (int64_t j = 0; j < r->nk; j++) {
    if (r->place[j] < 0)
      continue;
    m = isnan(m) || isnan(r->s[j]) ? NAN : fmax(m, r->s[j]);
    seen++;
  }
  double peak = m;
  if (s->sink)
    m = isnan(m) || isnan(s->sink->y[r->h]) ? NAN : fmax(m, s->sink->y[r->h]);
  bool any = false;
  for (int64_t j = 0; j < r->nk; j++)
    any |= r->place[j] >= 0 && r->e[j] == INFINITY;
  for (int64_t j = 0; j < r->nk && isfinite(m); j++)
    if (r->place[j] >= 0)
      w += exp(r->s[j] - m);
  if (s->sink && isfinite(m)) {
    double sink = s->sink->y[r->h], p = exp(sink - m);
    w += p;
    if (p > 0)
      mean += p * expm1(s->sink->e[r->h] + (3 * fabs(sink - m) + 2 * fabs(m) + 8) * u);
  }
  double *d = qc_alloc((size_t)r->nk * 8 + 8), *p = qc_alloc((size_t)r->nk * 8 + 8);
  for (int64_t j = 0; j < r->nk && isfinite(m); j++) {
    if (r->place[j] < 0)
      continue;
    p[j] = exp(r->s[j] - m) / w;
    d[j] = isfinite(r->s[j]) ? expm1(r->e[j] + (3 * fabs(r->s[j] - m) + 2 * fabs(m) + 8) * u) : 0;
    mean += p[j] > 0 ? p[j] * w * d[j] : 0;
    if (r->s[j] + 2 * r->e[j] >= peak - 2 * most || r->s[j] == peak)
      most = fmax(most, r->e[j]);
  }
  mean = isfinite(m) && w > 0 ? mean / w : 0;
  double rescale = (8 + seen / 16) * u, c = qc_sum_error(s->numerics, s->n->compute, seen);
  double plain = qc_sum_error(&s->plain, s->n->compute, seen) + rescale;
  for (int64_t column = 0; column < s->dv; column++) {
    int64_t at = r->at * s->dv + column;
    double size = 0, e = 0, y = o->y->y[at] / o->scale, all = 0;
    bool open = any;
    for (int64_t j = 0; j < r->nk && isfinite(m); j++) {
      if (r->place[j] < 0)
        continue;
      double ev, v = value_at(s, r->place[j], column, &ev), kept = dropped(s, r, j) ? 0 : s->kept;
      open |= !isfinite(v) && !(kept * exp(r->s[j] - m) > 4 * s->lost);
      size += kept * p[j] * fabs(v);
      e += kept * p[j] * (fabs(v) * (d[j] + u) + ev * (1 + d[j]));
      all += fabs(v);
    }
    e += (c + rescale) * size + fabs(y) * (mean + plain + 4 * u) + s->lost * s->kept * all + 2 * s->tiny;
    e *= 1.01 + mean;
    open |= qc_overflows(s->n->compute, size * (w > 1 ? w : 1));
    o->y->e[at] = open ? QC_ANY : known(o->y->y[at], e * fabs(o->scale) + 2 * u * fabs(y * o->scale));
    if (o->amax)
      *o->amax = *o->amax == QC_ANY || open || !isfinite(e) ? QC_ANY : fmax(*o->amax, e);
  }
  free(d);
  free(p);
  double e = log1p(mean) + plain + u * (2 * fabs(m) + 2 * fabs(log(w)) + 4);
  if (o->lse)
    o->lse->e[r->at] = any ? QC_ANY : isfinite(m) ? e + 2 * u * fabs(o->lse->y[r->at]) : 0;
  if (o->max)
    o->max->e[r->at] = any ? QC_ANY : isfinite(peak) ? most : 0;
}

static void forward(const struct scene *s)
{
  struct qc_value *amax = qc_role(s->n, "amax"), *y_scale = qc_role(s->n, "y_scale");
  double of_amax = 0;
  struct outputs o = {qc_role(s->n, "y"), qc_role(s->n, "lse"), qc_role(s->n, "max"), y_scale ? y_scale->y[0] : 1, amax ? &of_amax : NULL};
  struct row r = row_make(s);
  for (int64_t at = 0; at < s->q->q.dim[0] * s->heads * s->sq; at++)
    if (row_of(s, &r, at))
      row_forward(s, &r, &o);
  if (amax)
    amax->e[0] = of_amax;
  row_free(&r);
}

/* ---- backward ---------------------------------------------------------------------------------------- */

/* An output of sums: the sums of its terms' errors and of their sizes. */
struct sums { struct qc_value *v; double *e, *size; double n; };

static struct sums sums_make(const struct scene *s, const char *role, double n)
{
  struct qc_value *v = qc_role(s->n, role);
  size_t bytes = v ? (size_t)v->n * 8 + 8 : 8;
  return (struct sums){v, qc_alloc(bytes), qc_alloc(bytes), n};
}
static void sums_settle(const struct scene *s, struct sums *sums)
{
  double c = qc_sum_error(s->numerics, s->n->compute, sums->n) + 4 * s->u;
  for (int64_t i = 0; sums->v && i < sums->v->n; i++) {
    double e = sums->e[i] + c * sums->size[i] + (sums->size[i] > 0 ? sums->n * s->tiny : 0);
    bool open = !isfinite(e) || qc_overflows(s->n->compute, sums->size[i]);
    sums->v->e[i] = open ? QC_ANY : e;
  }
  free(sums->e);
  free(sums->size);
}

struct gradients { struct sums dq, dk, dv, dbias, dsink; const struct qc_value *dy, *y, *lse, *dlse; };

static void pair_backward(const struct scene *s, const struct row *r, struct gradients *g, int64_t j, double big_d, double of_d)
{
  double u = s->u, lse = g->lse->y[r->at], away = r->s[j] - lse, p = exp(away), kept = dropped(s, r, j) ? 0 : s->kept;
  double ep = p * expm1(r->e[j] + g->lse->e[r->at] + (3 * fabs(away) + 2 * fabs(lse) + 8) * u) + s->lost, dp = 0, size = 0, inexact = 0;
  const double *dy = g->dy->y + r->at * s->dv, *edy = g->dy->e + r->at * s->dv;
  for (int64_t c = 0; c < s->dv && kept > 0; c++) {
    double ev, v = value_at(s, r->place[j], c, &ev);
    dp += dy[c] * v;
    size += fabs(dy[c] * v);
    inexact += fabs(dy[c]) * ev + fabs(v) * edy[c] + ev * edy[c];
  }
  double edp = kept * (qc_sum_error(&s->plain, s->n->compute, (double)s->dv) * size + inexact) + u * kept * fabs(dp) + 2 * s->tiny;
  dp *= kept;
  double ds = p * (dp - big_d), eds = ep * (fabs(dp - big_d) + edp + of_d) + p * (edp + of_d + 2 * u * (fabs(dp) + fabs(big_d)))
      + 3 * u * fabs(ds) + s->tiny;
  if (qc_overflows(s->n->compute, p * fmax(kept, 1)))
    ep = INFINITY;                        /* lse is not that of these scores */
  if (ep == INFINITY || qc_overflows(s->n->compute, p * (kept * size + fabs(big_d))))
    eds = INFINITY;
  double slope = 1 - r->t[j] * r->t[j], inner = s->scale * fabs(ds) * slope;
  double of_slope = s->a->softcap > 0 ? fmin(1, 2 * fabs(r->t[j]) * r->e[j] / s->a->softcap + 8 * u) : 0;
  double ein = s->scale * (eds * (slope + of_slope) + fabs(ds) * of_slope) + 3 * u * inner + s->lost * (1 + s->scale);
  for (int64_t c = 0; c < s->d; c++) {
    int64_t at_q = r->at * s->d + c, at_k = r->place[j] * s->d + c;
    double q = fabs(s->q->y[at_q]), k = fabs(s->k->y[at_k]);
    g->dq.e[at_q] += ein * (k + s->k->e[at_k]) + inner * s->k->e[at_k];
    g->dq.size[at_q] += inner * k;
    g->dk.e[at_k] += ein * (q + s->q->e[at_q]) + inner * s->q->e[at_q];
    g->dk.size[at_k] += inner * q;
  }
  struct sums *of_v = s->v ? &g->dv : &g->dk;
  for (int64_t c = 0; c < s->dv; c++) {
    int64_t at = r->place[j] * (s->v ? s->dv : s->d) + c;
    of_v->e[at] += kept * ep * (fabs(dy[c]) + edy[c]) + kept * p * (edy[c] + u * fabs(dy[c]));
    of_v->size[at] += kept * p * fabs(dy[c]);
  }
  if (!g->dbias.v)
    return;
  int64_t at = spread(g->dbias.v, r->b, r->h, r->q0 + r->i, r->k0 + j);
  g->dbias.e[at] += eds + s->lost;
  g->dbias.size[at] += fabs(ds);
}

static void row_backward(const struct scene *s, const struct row *r, struct gradients *g)
{
  double lse = g->lse->y[r->at], d = 0, size = 0, e = 0, u = s->u;
  if (lse == -INFINITY)
    return;
  for (int64_t c = r->at * s->dv; c < (r->at + 1) * s->dv; c++) {
    d += g->dy->y[c] * g->y->y[c];
    size += fabs(g->dy->y[c] * g->y->y[c]);
    e += fabs(g->dy->y[c]) * g->y->e[c] + fabs(g->y->y[c]) * g->dy->e[c] + g->dy->e[c] * g->y->e[c];
  }
  e += qc_sum_error(&s->plain, s->n->compute, (double)s->dv) * size + 2 * s->tiny;
  if (g->dlse) {
    d -= g->dlse->y[r->at];
    e += g->dlse->e[r->at] + u * (fabs(d) + fabs(g->dlse->y[r->at]));
  }
  for (int64_t j = 0; j < r->nk; j++)
    if (r->place[j] >= 0)
      pair_backward(s, r, g, j, d, e);
  if (!g->dsink.v)
    return;
  double sink = s->sink->y[r->h], p = exp(sink - lse);
  double ep = p * expm1(s->sink->e[r->h] + g->lse->e[r->at] + (3 * fabs(sink - lse) + 2 * fabs(lse) + 8) * u) + s->lost;
  g->dsink.e[r->h] += ep * (fabs(d) + e) + p * e + 2 * u * p * fabs(d);
  g->dsink.size[r->h] += p * fabs(d);
}

static void backward(const struct scene *s)
{
  double queries = (double)(s->group * s->sq), pairs = (double)(s->sequences * s->heads) * (double)s->sq * (double)s->skv;
  const struct qc_value *dbias = qc_role(s->n, "dbias");
  struct gradients g = {
    .dq = sums_make(s, "dq", (double)s->skv), .dk = sums_make(s, "dk", s->v ? queries : 2 * queries), .dv = sums_make(s, "dv", queries),
    .dbias = sums_make(s, "dbias", dbias && dbias->n ? ceil(pairs / (double)dbias->n) : 1),
    .dsink = sums_make(s, "dsink", (double)(s->sequences * s->sq)),
    .dy = qc_role(s->n, "dy"), .y = qc_role(s->n, "y"), .lse = qc_role(s->n, "lse"), .dlse = qc_role(s->n, "dlse"),
  };
  struct row r = row_make(s);
  for (int64_t at = 0; at < s->q->q.dim[0] * s->heads * s->sq; at++)
    if (row_of(s, &r, at))
      row_backward(s, &r, &g);
  row_free(&r);
  struct sums *all[] = {&g.dq, &g.dk, &g.dv, &g.dbias, &g.dsink};
  for (int i = 0; i < 5; i++)
    sums_settle(s, all[i]);
}

/* ---- attention --------------------------------------------------------------------------------------- */

static void attention(struct qc_node *n, const struct qc_numerics *k)
{
  struct scene s = {
    .n = n, .a = n->attr, .numerics = k, .q = qc_role(n, "q"), .k = qc_role(n, "k"), .v = qc_role(n, "v"), .bias = qc_role(n, "bias"),
    .mask = qc_role(n, "mask"), .blocks = qc_role(n, "blocks"), .slopes = qc_role(n, "slopes"), .sink = qc_role(n, "sink"),
    .q_lengths = qc_role(n, "q_lengths"), .kv_lengths = qc_role(n, "kv_lengths"), .q_starts = qc_role(n, "q_starts"),
    .kv_starts = qc_role(n, "kv_starts"), .pages = qc_role(n, "pages"), .q_scale = qc_role(n, "q_scale"),
    .k_scale = qc_role(n, "k_scale"), .v_scale = qc_role(n, "v_scale"), .u = qc_unit(n->compute), .tiny = qc_half_ulp(n->compute, 0),
    .lost = qc_least_normal(n->compute),
  };
  qn_numerics *plain = qc_alloc((size_t)k->n * sizeof *plain + 8);
  for (int i = 0; i < k->n; i++) {
    plain[i] = k->part[i];
    plain[i].store = 0;
    s.store = k->part[i].store ? fmax(s.store, qc_half_ulp(k->part[i].store, 0)) : s.store;
  }
  s.lost += s.store;
  s.plain = (struct qc_numerics){plain, k->n, k->random, k->special};
  s.sequences = s.q_starts ? s.q_starts->q.dim[0] - 1 : s.q->q.dim[0];
  s.heads = s.q->q.dim[1];
  s.group = s.k->q.dim[1] ? s.heads / s.k->q.dim[1] : 1;
  s.sq = s.q->q.dim[2];
  s.skv = s.pages ? s.pages->q.dim[1] * s.k->q.dim[2] : s.k->q.dim[2];
  s.d = s.q->q.dim[3];
  s.dv = s.v ? s.v->q.dim[3] : s.a->value_size;
  s.scale = s.a->scale > 0 ? s.a->scale : 1 / sqrt((double)s.d);
  s.threshold = (uint32_t)(s.a->dropout * 65536 + 0.5);
  s.kept = s.threshold < 65536 ? 65536.0 / (65536 - s.threshold) : 0;
  const struct qc_value *seed = qc_role(n, "seed"), *offset = qc_role(n, "offset");
  s.seed = seed ? (uint64_t)(seed->q.flags & QN_VALUE_HOST ? (int64_t)seed->literal : integer(seed, 0)) : 0;
  s.offset = offset ? (uint64_t)(offset->q.flags & QN_VALUE_HOST ? (int64_t)offset->literal : integer(offset, 0)) : 0;
  if (n->op->kind == QN_OP_ATTENTION_FORWARD)
    forward(&s);
  else
    backward(&s);
  free(plain);
}

/* ---- merge, rotary -------------------------------------------------------------------------------------- */

static void merge(struct qc_node *n)
{
  const struct qc_value *y[2] = {qc_role(n, "y1"), qc_role(n, "y2")}, *l[2] = {qc_role(n, "lse1"), qc_role(n, "lse2")};
  struct qc_value *out = n->out[0], *lse = qc_role(n, "lse");
  double u = qc_unit(n->compute), tiny = qc_half_ulp(n->compute, 0), least = qc_least_normal(n->compute);
  int64_t size = out->q.dim[out->q.rank - 1];
  for (int64_t row = 0; row < l[0]->n; row++) {
    double m = fmax(l[0]->y[row], l[1]->y[row]), w[2], d[2], mean = 0, moved = 0, total;
    if (isnan(l[0]->y[row]) || isnan(l[1]->y[row]) || !isfinite(m))
      continue;                           /* NaN, or 0: no error */
    total = exp(l[0]->y[row] - m) + exp(l[1]->y[row] - m);
    for (int i = 0; i < 2; i++) {
      w[i] = exp(l[i]->y[row] - m) / total;
      d[i] = w[i] > 0 ? expm1((2 * fabs(l[i]->y[row] - m) + 2 * fabs(m) + 4) * u + l[i]->e[row]) : 0;
      mean += w[i] * d[i];
      moved += w[i] * l[i]->e[row];
    }
    for (int64_t at = row * size; at < (row + 1) * size; at++) {
      double e = fabs(out->y[at]) * (mean + 4 * u) + 2 * tiny;
      bool open = false;
      for (int i = 0; i < 2; i++) {
        if (l[i]->y[row] == -INFINITY)
          continue;
        open |= !isfinite(y[i]->y[at]) && w[i] < 4 * least;
        open |= qc_overflows(n->compute, 4 * y[i]->y[at]);
        e += w[i] * (fabs(y[i]->y[at]) * (d[i] + 4 * u) + y[i]->e[at] * (1 + d[i])) + least * fabs(y[i]->y[at]);
      }
      out->e[at] = open ? QC_ANY : known(out->y[at], e * (1 + mean));
    }
    if (lse)
      lse->e[row] = moved * (1 + mean) + u * (6 + 2 * fabs(m) + 2 * fabs(lse->y[row]));
  }
}

static void rotary(struct qc_node *n)
{
  const struct qc_value *x = n->in[0], *cosine = qc_role(n, "cos"), *sine = qc_role(n, "sin"), *positions = qc_role(n, "positions");
  const qn_rotation *a = n->attr;
  struct qc_value *y = n->out[0];
  int64_t size = x->q.dim[3], pairs = cosine->q.dim[1];
  double u = qc_unit(n->compute), tiny = qc_half_ulp(n->compute, 0);
  for (int64_t i = 0; i < y->n; i++) {
    int64_t column = i % size, token = i / size % x->q.dim[2], b = i / size / x->q.dim[2] / x->q.dim[1];
    int64_t at = !positions ? token : integer(positions, (positions->q.dim[0] == 1 ? 0 : b * x->q.dim[2]) + token);
    y->e[i] = column < 2 * pairs ? 0 : x->e[i];
    if (column >= 2 * pairs || at < 0 || at >= cosine->q.dim[0])
      continue;
    int64_t k = a->interleaved ? column / 2 : column % pairs, c = at * pairs + k;
    int64_t other = a->interleaved ? i - column + (column ^ 1) : column < pairs ? i + pairs : i - pairs;
    double p = fabs(x->y[i] * cosine->y[c]), q = fabs(x->y[other] * sine->y[c]);
    double e = 3 * u * (p + q) + 3 * tiny;
    e += x->e[i] * (fabs(cosine->y[c]) + cosine->e[c]) + fabs(x->y[i]) * cosine->e[c];
    e += x->e[other] * (fabs(sine->y[c]) + sine->e[c]) + fabs(x->y[other]) * sine->e[c];
    y->e[i] = qc_overflows(n->compute, p) || qc_overflows(n->compute, q) || qc_overflows(n->compute, p + q) ? QC_ANY : known(y->y[i], e);
  }
}

/* Writes move what they write, divided by a scale and rounded where the cache has another dtype: a whole step apart, of what is apart at
 * all. Integers are defined bit by bit. */
static void cache_write(struct qc_node *n)
{
  const struct qc_value *cache = n->in[0], *x = n->in[1], *slots = n->in[2];
  struct qc_value *y = n->out[0];
  const int64_t heads = x->q.dim[1], tokens = x->q.dim[2], size = x->q.dim[3], pages = y->q.dim[0], page = y->q.dim[2];
  if (qc_inputs_exact(n) || !y->e) return;
  const struct qc_value *scale = qc_role(n, "scale");
  const bool moves = (!scale || scale->is_input) && qc_is_float(y->q.dtype);
  for (int64_t i = 0; i < y->n; i++) y->e[i] = moves ? cache->e[i] : QC_ANY;
  for (int64_t i = 0; i < x->n && moves; i++) {
    const int64_t b = i / size / tokens / heads, h = i / size / tokens % heads, t = i / size % tokens;
    const int64_t slot = integer(slots, b * tokens + t);
    if (slot < 0 || slot >= pages * page) continue;
    const int64_t at = ((slot / page * heads + h) * page + slot % page) * size + i % size;
    const double e = x->e[i] / fabs(scale_of(scale, y, at));
    const double rounding = x->q.dtype == y->q.dtype && !scale ? 0 : 2 * qc_half_ulp(y->q.dtype, fabs(y->y[at]) + e);
    y->e[at] = x->e[i] == 0 ? 0 : x->e[i] == QC_ANY ? QC_ANY : known(y->y[at], e + rounding);
  }
}

void qc_bound_attention(struct qc_node *n, const struct qc_numerics *k)
{
  switch (n->op->kind) {
  case QN_OP_ATTENTION_FORWARD: case QN_OP_ATTENTION_BACKWARD: attention(n, k); break;
  case QN_OP_ATTENTION_MERGE: merge(n); break;
  case QN_OP_CACHE_WRITE: cache_write(n); break;
  default: rotary(n);
  }
}
