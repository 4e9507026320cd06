/* bound_recurrent.c -- recurrent networks: the formulas once more, on numbers that carry how far a computed one may be from them.
 *
 * A number is y, known within e. u: unit roundoff of the computing type, s: a half of its least subnormal
 *   sum of n products     e = sum (|a| e_b + |b| e_a + e_a e_b) + c(n) sum |a b| + n s
 *   product, other steps  e likewise, and u for each rounding
 *   s(a), tanh a          e_a times the largest slope between a - e_a and a + e_a, and 8u
 * From step to step h is also rounded to x's dtype, and so is in the gradient what enters a product by w or r. The error thus follows the
 * recurrence itself: it dies out or grows as this network's own slopes have it. A state that may lie on either side of clip or of relu's
 * kink has any gradient. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <quern/kit.h>
#include "conform.h"

struct near { double y, e; };

/* Of either op. They are asked for so often that their names are looked for once. */
enum role {
  X, R, LENGTHS, SEED, OFFSET, W, BW, BR, PROJECTION, GATES, CELLS, H0, C0, HT, CT, Y, INNER, DHT, DCT, DH0, DC0, DX, DY, DW, DR,
  DBW, DBR, DPROJECTION, ROLES
};
static const char *const roles[ROLES] = {
  "x", "r", "lengths", "seed", "offset", "w", "bw", "br", "projection", "gates", "cells", "h0", "c0", "ht", "ct", "y", "inner",
  "dht", "dct", "dh0", "dc0", "dx", "dy", "dw", "dr", "dbw", "dbr", "dprojection"
};

/* The op under judgement, its sizes, and roundings of its computing type. */
struct net {
  struct qc_node *n;
  struct qc_value *const *first[ROLES];
  int64_t count[ROLES];
  const struct qc_numerics *k;
  const qn_rnn *a;
  double u, tiny, lost;                 /* lost: of an operand in tf32 near zero, or of its low part */
  uint32_t dtype;                       /* of x and of what lies between steps */
  bool gru_after, gru_before;
  int64_t steps, batch, inputs, hidden, state, directions, gates, kept, layers, width;
};

/* The i-th value of a role; NULL: absent. */
static struct qc_value *item(const struct net *r, enum role role, int64_t i)
{
  return i < r->count[role] ? r->first[role][i] : NULL;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

static struct near settled(double y, double e) { return (struct near){y, isnan(e) || e < 0 ? INFINITY : e}; }
static struct near of(const struct qc_value *v, int64_t i)
{
  return v ? settled(v->y[i], v->e[i]) : (struct near){0, 0};
}
static void set(struct qc_value *v, int64_t i, struct near x)
{
  if (v)
    v->e[i] = x.e == INFINITY || isnan(x.e) ? QC_ANY : x.e;
}

/* In a gradient, which a state multiplies with what may be 0, nothing is asked of what is not finite. */
static struct near settle_finite(const struct net *r, struct near x)
{
  return isfinite(x.y) && !qc_overflows(r->n->compute, x.y) ? x : (struct near){x.y, INFINITY};
}

static struct near times(const struct net *r, struct near a, struct near b)
{
  double y = a.y * b.y;
  return settled(y, fabs(a.y) * b.e + fabs(b.y) * a.e + a.e * b.e + r->u * fabs(y) + r->tiny);
}
static struct near plus(const struct net *r, struct near a, struct near b)
{
  return settled(a.y + b.y, a.e + b.e + r->u * fabs(a.y + b.y));
}
static struct near rounded(const struct net *r, struct near x)          /* to x's dtype, or not */
{
  if (qc_overflows(r->dtype, x.y))
    return (struct near){x.y, INFINITY};
  return isfinite(x.y) ? settled(x.y, x.e + qc_half_ulp(r->dtype, fabs(x.y) + x.e)) : x;
}

struct sum { double y, size, sides, e, terms; bool wild; };
static void add(struct sum *s, struct near a, struct near b)
{
  s->y += a.y * b.y;
  s->size += fabs(a.y * b.y);
  s->sides += fabs(a.y) + fabs(b.y);
  s->e += fabs(a.y) * b.e + fabs(b.y) * a.e + a.e * b.e;
  s->terms++;
  s->wild |= !isfinite(a.y) || !isfinite(b.y);
}
static void add_one(struct sum *s, struct near a) { add(s, a, (struct near){1, 0}); }
static struct near total(const struct net *r, const struct sum *s)
{
  if (s->wild)                          /* Inf and NaN come out of any order */
    return settled(s->y, s->e > 0 ? s->e : 0);
  if (qc_overflows(r->n->compute, s->size))
    return (struct near){s->y, INFINITY};
  return settled(s->y, s->e + (qc_sum_error(r->k, r->n->compute, s->terms) + 2 * r->u) * s->size + s->terms * r->tiny + s->sides * r->lost);
}

static double away(struct near a) { return fmax(fabs(a.y) - a.e, 0); }
static struct near sigmoid(const struct net *r, struct near a)
{
  double y = 1 / (1 + exp(-a.y)), d = exp(-away(a)), slope = d / ((1 + d) * (1 + d));
  return isnan(a.y) || a.e == INFINITY ? (struct near){y, a.e} : settled(y, a.e * slope + 8 * r->u * y + qc_least_normal(r->n->compute));
}
static struct near tangent(const struct net *r, struct near a)
{
  double y = tanh(a.y), c = cosh(away(a));
  return isnan(a.y) || a.e == INFINITY ? (struct near){y, a.e} : settled(y, a.e / (c * c) + 8 * r->u * fabs(y) + r->tiny);
}
/* x (1 - x), and 1 - x^2: the slopes of both by their own results */
static struct near slope_of_sigmoid(const struct net *r, struct near x)
{
  double size = fabs(x.y) + x.y * x.y;
  return settled(x.y * (1 - x.y), fabs(1 - 2 * x.y) * x.e + x.e * x.e + 3 * r->u * size + r->tiny);
}
static struct near slope_of_tanh(const struct net *r, struct near x)
{
  return settled(1 - x.y * x.y, 2 * fabs(x.y) * x.e + x.e * x.e + 3 * r->u * (1 + x.y * x.y));
}
static struct near bounded(const struct net *r, struct near c)
{
  double clip = r->a->clip;
  if (isnan(c.y) || !(fabs(c.y) + c.e >= clip))
    return c;
  return settled(fmin(fmax(c.y, -clip), clip), c.e + r->u * clip);
}

/* ---- both ops ------------------------------------------------------------------------------------------------------ */

/* Among inputs or outputs; those of a role follow each other. */
static void look_for(struct net *r, int role, struct qc_value *const *value, const int *number, int n)
{
  for (int i = 0; i < n; i++)
    if (!strcmp(r->n->op->role[number[i]].name, roles[role]) && !r->count[role]++)
      r->first[role] = value + i;
}

static struct net net_of(struct qc_node *n, const struct qc_numerics *k)
{
  const qn_rnn *a = n->attr;
  struct net r = {.n = n, .k = k, .a = a, .u = qc_unit(n->compute), .tiny = qc_half_ulp(n->compute, 0)};
  for (int role = 0; role < ROLES; role++) {
    look_for(&r, role, n->in, n->in_role, n->n_in);
    look_for(&r, role, n->out, n->out_role, n->n_out);
  }
  const struct qc_value *x = item(&r, X, 0), *w = item(&r, R, 0);
  r.dtype = x->q.dtype;
  for (int i = 0; i < k->n; i++)        /* half of the spacing, 2^-136 */
    if (k->part[i].accumulator == QN_ACC_TF32 || k->part[i].accumulator == QN_ACC_3XTF32)
      r.lost = 0x1p-137;
  r.gru_after = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_AFTER;
  r.gru_before = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_BEFORE;
  r.steps = x->q.dim[0], r.batch = x->q.dim[1], r.inputs = x->q.dim[2], r.layers = a->layers;
  r.directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  r.gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  r.kept = r.gru_after ? 4 : r.gates;
  r.hidden = w->q.dim[0] / r.gates, r.state = w->q.dim[1], r.width = r.directions * r.state;
  return r;
}

static int64_t length_of(const struct net *r, int64_t b)
{
  const struct qc_value *v = item(r, LENGTHS, 0);
  if (!v)
    return r->steps;
  double length = qc_decode(v->q.dtype, (const char *)v->twin + (size_t)b * qn_dtype_bytes(v->q.dtype));
  return (int64_t)fmax(0, fmin(length, (double)r->steps));
}
static int64_t time_of(const struct net *r, int64_t direction, int64_t length, int64_t s)
{
  return r->a->direction == QN_RNN_BACKWARD || direction ? length - 1 - s : s;
}

/* What dropout makes of element i of layer l's output. */
static struct near dropped(const struct net *r, int64_t l, int64_t i, struct near x)
{
  const struct qc_value *seed = item(r, SEED, 0), *offset = item(r, OFFSET, 0);
  int64_t key[2] = {0, 0}, at = l * r->steps * r->batch * r->width + i;
  uint32_t word[4];
  if (r->a->dropout == 0)
    return x;
  for (int j = 0; j < 2; j++) {
    const struct qc_value *v = j ? offset : seed;
    if (v)
      key[j] = v->y ? (int64_t)v->y[0] : (int64_t)qc_decode(v->q.dtype, v->twin);
  }
  qn_random_words(word, (uint64_t)key[0], (uint64_t)key[1], (uint64_t)at / 4);
  if (word[at % 4] < r->a->dropout * 0x1p32)
    return (struct near){0, 0};
  struct near scaled = times(r, x, (struct near){1 / (1 - r->a->dropout), 2 * r->u / (1 - r->a->dropout)});
  return rounded(r, scaled);
}

static struct near *numbers(int64_t n) { return qc_alloc((size_t)n * sizeof(struct near) + 16); }

/* ---- forward ------------------------------------------------------------------------------------------------------- */

struct cell { int64_t k, inputs; const struct qc_value *w, *r, *bw, *br, *projection; };
static struct cell cell_of(const struct net *r, int64_t l, int64_t d)
{
  int64_t k = l * r->directions + d;
  return (struct cell){k, l ? r->width : r->inputs, item(r, W, k), item(r, R, k), item(r, BW, k), item(r, BR, k),
                       item(r, PROJECTION, k)};
}

static void add_x(const struct cell *c, struct sum *s, int64_t row, const struct near *x)
{
  for (int64_t i = 0; i < c->inputs; i++)
    add(s, of(c->w, row * c->inputs + i), x[i]);
  if (c->bw)
    add_one(s, of(c->bw, row));
}
static void add_h(const struct net *r, const struct cell *c, struct sum *s, int64_t row, const struct near *h)
{
  for (int64_t i = 0; i < r->state; i++)
    add(s, of(c->r, row * r->state + i), h[i]);
  if (c->br)
    add_one(s, of(c->br, row));
}
static struct near gate_sum(const struct net *r, const struct cell *c, int64_t row, const struct near *x, const struct near *h)
{
  struct sum s = {0};
  add_x(c, &s, row, x);
  add_h(r, c, &s, row, h);
  return total(r, &s);
}

/* One step: h and c become the next; gate is what `gates` holds, raw the cell state before clip. */
static void step(const struct net *r, const struct cell *c, const struct near *x, struct near *h, struct near *cells, struct near *gate,
                 struct near *raw, struct near *full)
{
  int64_t H = r->hidden;
  for (int64_t j = 0; j < H && r->gates == 4; j++) {
    struct near i = gate[j] = sigmoid(r, gate_sum(r, c, j, x, h)), f = gate[H + j] = sigmoid(r, gate_sum(r, c, H + j, x, h));
    struct near g = gate[2 * H + j] = tangent(r, gate_sum(r, c, 2 * H + j, x, h));
    struct near o = gate[3 * H + j] = sigmoid(r, gate_sum(r, c, 3 * H + j, x, h));
    raw[j] = plus(r, times(r, f, cells[j]), times(r, i, g));
    raw[j].e += r->u * fabs(raw[j].y);
    cells[j] = bounded(r, raw[j]);
    full[j] = times(r, o, tangent(r, cells[j]));
  }
  for (int64_t j = 0; j < 2 * H && r->gates == 3; j++)
    gate[j] = sigmoid(r, gate_sum(r, c, j, x, h));
  for (int64_t j = 0; j < H && r->gates == 3; j++)
    raw[j] = r->gru_before ? rounded(r, times(r, gate[j], h[j])) : h[j];
  for (int64_t j = 0; j < H && r->gates == 3; j++) {
    struct sum s = {0}, q = {0};
    add_x(c, &s, 2 * H + j, x);
    add_h(r, c, r->gru_before ? &s : &q, 2 * H + j, raw);
    struct near inner = total(r, &s), n, z = gate[H + j], old = h[j];
    if (r->gru_after) {
      gate[3 * H + j] = total(r, &q);
      inner = plus(r, inner, times(r, gate[j], gate[3 * H + j]));
    }
    n = gate[2 * H + j] = tangent(r, inner);
    double e = fabs(old.y - n.y) * z.e + fabs(1 - z.y) * n.e + fabs(z.y) * old.e + z.e * (n.e + old.e);
    full[j] = settled((1 - z.y) * n.y + z.y * old.y, e + 4 * r->u * (fabs(n.y) + fabs(old.y)));
  }
  for (int64_t j = 0; j < H && r->gates == 1; j++) {
    struct near a = gate_sum(r, c, j, x, h);
    full[j] = r->a->cell == QN_RNN_TANH ? tangent(r, a) : a.y < 0 ? settled(0, fmax(a.y + a.e, 0)) : a;
  }
  for (int64_t j = 0; j < r->state; j++) {
    struct sum s = {0};
    for (int64_t i = 0; i < H && c->projection; i++)
      add(&s, of(c->projection, j * H + i), rounded(r, full[i]));
    h[j] = c->projection ? total(r, &s) : full[j];
  }
}

static void run_layer(const struct net *r, int64_t l, int64_t d, const struct near *in, struct near *out)
{
  struct cell c = cell_of(r, l, d);
  struct qc_value *gates = item(r, GATES, 0), *cells = item(r, CELLS, 0);
  struct near *h = numbers(r->state), *cell = numbers(r->hidden), *gate = numbers(4 * r->hidden), *raw = numbers(r->hidden),
      *full = numbers(r->hidden);
  for (int64_t b = 0; b < r->batch; b++) {
    int64_t length = length_of(r, b), own = c.k * r->batch + b;
    for (int64_t j = 0; j < r->state; j++)
      h[j] = of(item(r, H0, 0), own * r->state + j);
    for (int64_t j = 0; j < r->hidden; j++)
      cell[j] = of(item(r, C0, 0), own * r->hidden + j);
    for (int64_t s = 0; s < length; s++) {
      int64_t t = time_of(r, d, length, s), at = t * r->batch + b, place = (c.k * r->steps + t) * r->batch + b;
      step(r, &c, in + at * c.inputs, h, cell, gate, raw, full);
      for (int64_t j = 0; j < r->kept * r->hidden; j++)
        set(gates, place * r->kept * r->hidden + j, gate[j]);
      for (int64_t j = 0; j < r->hidden; j++)
        set(cells, place * r->hidden + j, raw[j]);
      for (int64_t j = 0; j < r->state; j++) {
        out[at * r->width + d * r->state + j] = h[j];
        h[j] = rounded(r, h[j]);
      }
    }
    for (int64_t j = 0; j < r->state; j++)
      set(item(r, HT, 0), own * r->state + j, length ? h[j] : of(item(r, H0, 0), own * r->state + j));
    for (int64_t j = 0; j < r->hidden; j++)
      set(item(r, CT, 0), own * r->hidden + j, cell[j]);
  }
  free(h);
  free(cell);
  free(gate);
  free(raw);
  free(full);
}

static void forward(const struct net *r)
{
  int64_t places = r->steps * r->batch, all = places * r->width;
  struct qc_value *x = item(r, X, 0);
  struct near *in = numbers(places * (r->inputs > r->width ? r->inputs : r->width)), *out = numbers(all);
  for (int64_t i = 0; i < x->n; i++)
    in[i] = of(x, i);
  for (int64_t l = 0; l < r->layers; l++) {
    memset(out, 0, (size_t)all * sizeof *out);
    for (int64_t d = 0; d < r->directions; d++)
      run_layer(r, l, d, in, out);
    for (int64_t i = 0; i < all; i++) {
      if (l == r->layers - 1)
        set(item(r, Y, 0), i, out[i]);
      else
        set(item(r, INNER, 0), l * all + i, out[i]);
      if (l < r->layers - 1)
        in[i] = dropped(r, l, i, rounded(r, out[i]));
    }
  }
  free(in);
  free(out);
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

/* Of one layer and direction, by place (step and sequence): gradients by what w x + bw and r h + br give, and by h'. */
struct slopes { struct near *x, *h, *state; };

static struct near output_of(const struct net *r, int64_t l, int64_t at, int64_t i)    /* of layer l; -1: x */
{
  if (l < 0)
    return of(item(r, X, 0), at * r->inputs + i);
  if (l == r->layers - 1)
    return of(item(r, Y, 0), at * r->width + i);
  return of(item(r, INNER, 0), (l * r->steps * r->batch + at) * r->width + i);
}
static struct near h_before(const struct net *r, int64_t l, int64_t d, int64_t length, int64_t s, int64_t b, int64_t j)
{
  if (s == 0)
    return of(item(r, H0, 0), ((l * r->directions + d) * r->batch + b) * r->state + j);
  return output_of(r, l, time_of(r, d, length, s - 1) * r->batch + b, d * r->state + j);
}

static struct near gate_of(const struct net *r, int64_t k, int64_t at, int64_t g, int64_t j)
{
  return of(item(r, GATES, 0), (k * r->steps * r->batch + at) * r->kept * r->hidden + g * r->hidden + j);
}
static struct near cell_of_step(const struct net *r, int64_t k, int64_t at, int64_t j)
{
  return of(item(r, CELLS, 0), (k * r->steps * r->batch + at) * r->hidden + j);
}

static void lstm_slopes(const struct net *r, const struct cell *c, int64_t d, int64_t length, int64_t s, int64_t b, const struct near *dh,
                        struct near *dc, struct near *slope)
{
  int64_t H = r->hidden, at = time_of(r, d, length, s) * r->batch + b;
  for (int64_t j = 0; j < H; j++) {
    struct near i = gate_of(r, c->k, at, 0, j), f = gate_of(r, c->k, at, 1, j), g = gate_of(r, c->k, at, 2, j);
    struct near o = gate_of(r, c->k, at, 3, j);
    struct near raw = cell_of_step(r, c->k, at, j), t = tangent(r, bounded(r, raw)), old;
    old = s ? bounded(r, cell_of_step(r, c->k, time_of(r, d, length, s - 1) * r->batch + b, j))
            : of(item(r, C0, 0), (c->k * r->batch + b) * H + j);
    struct near by_c = plus(r, dc[j], times(r, times(r, dh[j], o), slope_of_tanh(r, t)));
    if (isfinite(r->a->clip) && fabs(fabs(raw.y) - r->a->clip) <= raw.e + r->u * r->a->clip)
      by_c.e = INFINITY;
    else if (fabs(raw.y) > r->a->clip)
      by_c = (struct near){0, 0};
    slope[j] = times(r, times(r, by_c, g), slope_of_sigmoid(r, i));
    slope[H + j] = times(r, times(r, by_c, old), slope_of_sigmoid(r, f));
    slope[2 * H + j] = times(r, times(r, by_c, i), slope_of_tanh(r, g));
    slope[3 * H + j] = times(r, times(r, dh[j], t), slope_of_sigmoid(r, o));
    dc[j] = settle_finite(r, times(r, by_c, f));
  }
}

static void gru_slopes(const struct net *r, const struct cell *c, int64_t l, int64_t d, int64_t length, int64_t s, int64_t b,
                       const struct near *dh, struct near *direct, struct near *x, struct near *by_h)
{
  int64_t H = r->hidden, at = time_of(r, d, length, s) * r->batch + b;
  for (int64_t j = 0; j < H; j++) {
    struct near z = gate_of(r, c->k, at, 1, j), n = gate_of(r, c->k, at, 2, j), old = h_before(r, l, d, length, s, b, j);
    struct near other = settled(1 - z.y, z.e + r->u * (1 + fabs(z.y)));
    struct near apart = settled(old.y - n.y, old.e + n.e + r->u * (fabs(old.y) + fabs(n.y)));
    x[H + j] = by_h[H + j] = rounded(r, settle_finite(r, times(r, times(r, dh[j], apart), slope_of_sigmoid(r, z))));
    x[2 * H + j] = by_h[2 * H + j] = rounded(r, settle_finite(r, times(r, times(r, dh[j], other), slope_of_tanh(r, n))));
    direct[j] = times(r, dh[j], z);
  }
  for (int64_t j = 0; j < H; j++) {
    struct near reset = gate_of(r, c->k, at, 0, j), by_r;
    if (r->gru_after)
      by_r = times(r, x[2 * H + j], gate_of(r, c->k, at, 3, j));
    else {
      struct sum sum = {0};
      for (int64_t i = 0; i < H; i++)
        add(&sum, of(c->r, (2 * H + i) * H + j), x[2 * H + i]);
      struct near product = settle_finite(r, total(r, &sum));
      by_r = times(r, product, h_before(r, l, d, length, s, b, j));
      direct[j] = plus(r, direct[j], times(r, product, reset));
    }
    x[j] = by_h[j] = times(r, by_r, slope_of_sigmoid(r, reset));
    if (r->gru_after)
      by_h[2 * H + j] = times(r, x[2 * H + j], reset);
  }
}

static void sequence_slopes(const struct net *r, const struct cell *c, int64_t l, int64_t d, int64_t b, const struct near *dout,
                            const struct slopes *to)
{
  int64_t H = r->hidden, P = r->state, rows = r->gates * H, length = length_of(r, b), own = c->k * r->batch + b;
  struct near *carry = numbers(P), *dc = numbers(H), *full = numbers(H);
  for (int64_t j = 0; j < P; j++)
    carry[j] = of(item(r, DHT, 0), own * P + j);
  for (int64_t j = 0; j < H; j++)
    dc[j] = of(item(r, DCT, 0), own * H + j);
  for (int64_t s = length - 1; s >= 0; s--) {
    int64_t at = time_of(r, d, length, s) * r->batch + b;
    struct near *x = to->x + at * rows, *h = to->h + at * rows, *dh = to->state + at * P;
    for (int64_t j = 0; j < P; j++) {
      dh[j] = plus(r, carry[j], dout[at * r->width + d * P + j]);
      if (c->projection)
        dh[j] = rounded(r, dh[j]);
      carry[j] = (struct near){0, 0};
    }
    for (int64_t j = 0; j < H; j++) {
      struct sum sum = {0};
      for (int64_t i = 0; i < P && c->projection; i++)
        add(&sum, of(c->projection, i * H + j), dh[i]);
      full[j] = settle_finite(r, c->projection ? total(r, &sum) : dh[j]);
    }
    if (r->gates == 4)
      lstm_slopes(r, c, d, length, s, b, full, dc, x);
    else if (r->gates == 3)
      gru_slopes(r, c, l, d, length, s, b, full, carry, x, h);
    for (int64_t j = 0; j < H && r->gates == 1; j++) {
      struct near y = output_of(r, l, at, d * P + j);
      x[j] = times(r, full[j], slope_of_tanh(r, y));
      if (r->a->cell == QN_RNN_RELU)
        x[j] = y.e > 0 && fabs(y.y) <= y.e ? (struct near){0, INFINITY} : y.y > 0 ? full[j] : (struct near){0, 0};
    }
    for (int64_t i = 0; i < rows; i++) {
      x[i] = rounded(r, settle_finite(r, x[i]));
      h[i] = r->gates == 3 ? rounded(r, settle_finite(r, h[i])) : x[i];
    }
    for (int64_t j = 0; j < P; j++) {
      struct sum sum = {0};
      for (int64_t i = 0; i < (r->gru_before ? 2 * H : rows); i++)
        add(&sum, of(c->r, i * P + j), h[i]);
      carry[j] = settle_finite(r, plus(r, carry[j], total(r, &sum)));
    }
  }
  for (int64_t j = 0; j < P; j++)
    set(item(r, DH0, 0), own * P + j, carry[j]);
  for (int64_t j = 0; j < H; j++)
    set(item(r, DC0, 0), own * H + j, dc[j]);
  free(carry);
  free(dc);
  free(full);
}

enum { BY_W, BY_R, BY_PROJECTION };
static struct near factor(const struct net *r, int which, int64_t l, int64_t d, int64_t length, int64_t s, int64_t b, int64_t row,
                          int64_t i)
{
  int64_t k = l * r->directions + d, at = time_of(r, d, length, s) * r->batch + b;
  if (which == BY_PROJECTION)
    return rounded(r, times(r, gate_of(r, k, at, 3, i), tangent(r, bounded(r, cell_of_step(r, k, at, i)))));
  if (which == BY_W)
    return l ? dropped(r, l - 1, at * r->width + i, output_of(r, l - 1, at, i)) : output_of(r, -1, at, i);
  struct near h = h_before(r, l, d, length, s, b, i);
  return r->gru_before && row >= 2 * r->hidden ? rounded(r, times(r, h, gate_of(r, k, at, 0, i))) : h;
}

/* to [rows, columns] of layer l and direction d; columns 0: a bias. */
static void weight_gradient(const struct net *r, enum role role, int which, int64_t l, int64_t d, const struct near *slope, int64_t rows,
                            int64_t columns)
{
  struct qc_value *to = item(r, role, l * r->directions + d);
  for (int64_t e = 0; to && e < to->n; e++) {
    int64_t row = columns ? e / columns : e;
    struct sum sum = {0};
    for (int64_t b = 0; b < r->batch; b++)
      for (int64_t s = 0, length = length_of(r, b); s < length; s++) {
        struct near a = slope[(time_of(r, d, length, s) * r->batch + b) * rows + row];
        if (columns)
          add(&sum, a, factor(r, which, l, d, length, s, b, row, e % columns));
        else
          add_one(&sum, a);
      }
    sum.terms = fmax(sum.terms, (double)(r->steps * r->batch));         /* zeros beyond a sequence's end may be added */
    set(to, e, settle_finite(r, total(r, &sum)));
  }
}

static void input_gradient(const struct net *r, int64_t l, const struct slopes *slope, struct near *below)
{
  int64_t rows = r->gates * r->hidden, inputs = l ? r->width : r->inputs, all = r->steps * r->batch * inputs;
  for (int64_t e = 0; e < all; e++) {
    int64_t at = e / inputs, b = at % r->batch, t = at / r->batch;
    struct sum sum = {0};
    for (int64_t d = 0; d < r->directions && t < length_of(r, b); d++)
      for (int64_t j = 0; j < rows; j++)
        add(&sum, of(item(r, W, l * r->directions + d), j * inputs + e % inputs), slope[d].x[at * rows + j]);
    struct near x = settle_finite(r, total(r, &sum));
    if (l)
      below[e] = dropped(r, l - 1, e, rounded(r, x));
    else
      set(item(r, DX, 0), e, x);
  }
}

static void backward(const struct net *r)
{
  int64_t places = r->steps * r->batch, rows = r->gates * r->hidden;
  struct near *dout = numbers(places * r->width);
  struct slopes slope[2];
  for (int64_t d = 0; d < 2; d++)
    slope[d] = (struct slopes){numbers(places * rows), numbers(places * rows), numbers(places * r->state)};
  for (int64_t i = 0; i < places * r->width; i++)
    dout[i] = of(item(r, DY, 0), i);
  for (int64_t l = r->layers - 1; l >= 0; l--) {
    for (int64_t d = 0; d < r->directions; d++) {
      struct cell c = cell_of(r, l, d);
      for (int64_t b = 0; b < r->batch; b++)
        sequence_slopes(r, &c, l, d, b, dout, &slope[d]);
      weight_gradient(r, DW, BY_W, l, d, slope[d].x, rows, c.inputs);
      weight_gradient(r, DR, BY_R, l, d, slope[d].h, rows, r->state);
      weight_gradient(r, DBW, BY_W, l, d, slope[d].x, rows, 0);
      weight_gradient(r, DBR, BY_R, l, d, slope[d].h, rows, 0);
      weight_gradient(r, DPROJECTION, BY_PROJECTION, l, d, slope[d].state, r->state, r->hidden);
    }
    input_gradient(r, l, slope, dout);
  }
  free(dout);
  for (int d = 0; d < 2; d++) {
    free(slope[d].x);
    free(slope[d].h);
    free(slope[d].state);
  }
}

void qc_bound_recurrent(struct qc_node *n, const struct qc_numerics *k)
{
  struct net r = net_of(n, k);
  if (n->op->kind == QN_OP_RNN_FORWARD)
    forward(&r);
  else
    backward(&r);
}
