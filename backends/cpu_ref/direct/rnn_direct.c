/* rnn_direct.c -- recurrent networks and their gradients, step by step.
 *
 * Of a layer and direction, at a step with input x and the state h that the last step left (first h0, or 0; c likewise):
 *   lstm   i, f, o = s(w x + bw + r h + br), g = tanh(the same)      c' = f c + i g, bounded by clip      h' = o tanh(c')
 *   gru    r, z = s(w x + bw + r h + br)      h' = (1 - z) n + z h
 *          reset after: n = tanh(w x + bw + r q), q = r h + br         before: n = tanh(w x + bw + r (r h) + br)
 *   tanh, relu   h' = tanh or relu(w x + bw + r h + br)                 projection: h' becomes projection h'
 * A sequence's steps are 0 to length - 1, for direction backward the other way. The next layer's x is this one's h', of both directions
 * side by side, after dropout. The gradients are those of these formulas, from the last step to the first. */
#include <stdbool.h>
#include "direct.h"

typedef struct net {
  const qn_prepared *p;
  const qn_launch *launch;
  const qn_rnn *a;
  int back;                               /* the gradient */
  int64_t steps, batch, inputs, hidden, state, directions, gates, kept;     /* kept: what `gates` holds of a step, in units of hidden */
  cpu_tensor x, y, lengths, h0, c0, at_gates, at_cells, at_inner;
  cpu_tensor ht, ct;                      /* in the gradient dht and dct */
  int64_t seed, offset;
} net;

/* One layer and direction, number k in the lists. */
typedef struct cell {
  const net *n;
  int64_t k, layer, direction, inputs;
  cpu_tensor w, r, bw, br, projection;
} cell;

static cpu_tensor item(const net *n, uint32_t forward, uint32_t backward, int64_t k)
{
  return cpu_tensor_of(n->p, n->launch, n->back ? backward : forward, (int32_t)k);
}
#define BOTH(name) QN_ROLE_RNN_FORWARD_##name, QN_ROLE_RNN_BACKWARD_##name

static net net_of(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  net n = { .p = p, .launch = launch, .a = kept->attr, .back = kept->op == QN_OP_RNN_BACKWARD };
  n.x = item(&n, BOTH(X), 0), n.y = item(&n, BOTH(Y), 0), n.lengths = item(&n, BOTH(LENGTHS), 0);
  n.h0 = item(&n, BOTH(H0), 0), n.c0 = item(&n, BOTH(C0), 0);
  n.at_gates = item(&n, BOTH(GATES), 0), n.at_cells = item(&n, BOTH(CELLS), 0), n.at_inner = item(&n, BOTH(INNER), 0);
  n.ht = item(&n, QN_ROLE_RNN_FORWARD_HT, QN_ROLE_RNN_BACKWARD_DHT, 0);
  n.ct = item(&n, QN_ROLE_RNN_FORWARD_CT, QN_ROLE_RNN_BACKWARD_DCT, 0);
  const cpu_tensor seed = item(&n, BOTH(SEED), 0), offset = item(&n, BOTH(OFFSET), 0), r = item(&n, BOTH(R), 0);
  n.seed = seed.p ? qn_load_i64(seed.p, seed.dtype) : 0;
  n.offset = offset.p ? qn_load_i64(offset.p, offset.dtype) : 0;
  n.steps = n.x.dim[0], n.batch = n.x.dim[1], n.inputs = n.x.dim[2];
  n.directions = n.a->direction == QN_RNN_BOTH ? 2 : 1;
  n.gates = n.a->cell == QN_RNN_LSTM ? 4 : n.a->cell == QN_RNN_GRU ? 3 : 1;
  n.kept = n.a->cell == QN_RNN_GRU && n.a->reset == QN_RNN_RESET_AFTER ? 4 : n.gates;
  n.hidden = r.dim[0] / n.gates, n.state = r.dim[1];
  return n;
}

static cell cell_of(const net *n, int64_t layer, int64_t direction)
{
  const int64_t k = layer * n->directions + direction;
  return (cell){ n, k, layer, direction, layer ? n->directions * n->state : n->inputs, item(n, BOTH(W), k), item(n, BOTH(R), k),
                 n->back ? (cpu_tensor){ 0 } : cpu_tensor_of(n->p, n->launch, QN_ROLE_RNN_FORWARD_BW, (int32_t)k),
                 n->back ? (cpu_tensor){ 0 } : cpu_tensor_of(n->p, n->launch, QN_ROLE_RNN_FORWARD_BR, (int32_t)k),
                 item(n, BOTH(PROJECTION), k) };
}

static int64_t length_of(const net *n, int64_t b)
{
  if (!n->lengths.p) return n->steps;
  return qn_max_i64(0, qn_min_i64(qn_load_i64(cpu_at(&n->lengths, b * n->lengths.stride[0]), n->lengths.dtype), n->steps));
}
/* The place in time of a sequence's s-th step. */
static int64_t time_of(const cell *c, int64_t length, int64_t s)
{
  const bool reverse = c->n->a->direction == QN_RNN_BACKWARD || c->direction == 1;
  return reverse ? length - 1 - s : s;
}

static int64_t at3(const cpu_tensor *t, int64_t i, int64_t j, int64_t k) { return i * t->stride[0] + j * t->stride[1] + k * t->stride[2]; }
static int64_t at4(const cpu_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l)
{
  return at3(t, i, j, k) + l * t->stride[3];
}
static double get3(const cpu_tensor *t, int64_t i, int64_t j, int64_t k) { return t->p ? cpu_get(t, at3(t, i, j, k)) : 0; }
static void put3(const cpu_tensor *t, int64_t i, int64_t j, int64_t k, double x) { if (t->p) cpu_put(t, at3(t, i, j, k), x); }
static void put4(const cpu_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l, double x) { if (t->p) cpu_put(t, at4(t, i, j, k, l), x); }

static long double sigmoid(long double x) { return 1 / (1 + expl(-x)); }
static double bounded(const net *n, double c) { return c > n->a->clip ? n->a->clip : c < -n->a->clip ? -n->a->clip : c; }

/* What dropout makes of x, which belongs to element `at` of the layers' outputs, counted as `inner` is laid out. */
static double after_dropout(const net *n, int64_t at, double x)
{
  uint32_t w[4];
  if (n->a->dropout == 0) return x;
  qn_random_words(w, (uint64_t)n->seed, (uint64_t)n->offset, (uint64_t)at / 4);
  return w[at % 4] < n->a->dropout * 0x1p32 ? 0 : x / (1 - n->a->dropout);
}

/* s += the n elements of m from `at` on, `step` apart, times v. */
static void add_line(cpu_sum *s, const cpu_tensor *m, int64_t at, int64_t step, const double *v, int64_t n)
{
  for (int64_t i = 0; i < n; i += CPU_RUN) {
    double x[CPU_RUN];
    const int64_t few = qn_min_i64(n - i, CPU_RUN);
    cpu_load_run(x, few, cpu_at(m, at + i * step), step * m->bytes, m->dtype);
    cpu_sum_run(s, few, x, v + i);
  }
}
static void add_row(cpu_sum *s, const cpu_tensor *m, int64_t j, const double *v, int64_t n)
{
  add_line(s, m, j * m->stride[0], m->stride[1], v, n);
}
/* Of the rows from `first` on. */
static void add_column(cpu_sum *s, const cpu_tensor *m, int64_t first, int64_t j, const double *v, int64_t n)
{
  add_line(s, m, first * m->stride[0] + j * m->stride[1], m->stride[0], v, n);
}
static void add_bias(cpu_sum *s, const cpu_tensor *b, int64_t j)
{
  if (b->p) cpu_sum_add(s, cpu_get(b, j * b->stride[0]));
}

/* ---- forward ------------------------------------------------------------------------------- */

/* A sequence on its way through a layer: its states in double. */
typedef struct sequence { double *in, *h, *next, *c, *full, *gate; } sequence;

static int64_t sequence_size(const net *n) { return qn_max_i64(n->inputs, n->directions * n->state) + 2 * n->state + 6 * n->hidden; }
static sequence sequence_at(const net *n, double *p)
{
  sequence s = { .in = p };
  s.h = s.in + qn_max_i64(n->inputs, n->directions * n->state);
  s.next = s.h + n->state, s.c = s.next + n->state, s.full = s.c + n->hidden, s.gate = s.full + n->hidden;
  return s;
}

/* w x + bw and r h + br of row j, added to two sums or to one. */
static void sums(const cell *c, const sequence *s, int64_t j, const double *h, cpu_sum *of_x, cpu_sum *of_h)
{
  add_row(of_x, &c->w, j, s->in, c->inputs);
  add_bias(of_x, &c->bw, j);
  add_row(of_h, &c->r, j, h, c->n->state);
  add_bias(of_h, &c->br, j);
}
static long double joined(const cell *c, const sequence *s, int64_t j, const double *h)
{
  cpu_sum sum = { 0 };
  sums(c, s, j, h, &sum, &sum);
  return cpu_sum_total(&sum);
}

static void lstm(const cell *c, const sequence *s, int64_t t, int64_t b)
{
  const int64_t H = c->n->hidden;
  for (int64_t j = 0; j < H; j++) {
    const long double i = sigmoid(joined(c, s, j, s->h)), f = sigmoid(joined(c, s, H + j, s->h)), g = tanhl(joined(c, s, 2 * H + j, s->h));
    const long double o = sigmoid(joined(c, s, 3 * H + j, s->h));
    const double raw = (double)(f * s->c[j] + i * g);
    s->gate[j] = (double)i, s->gate[H + j] = (double)f, s->gate[2 * H + j] = (double)g, s->gate[3 * H + j] = (double)o;
    put4(&c->n->at_cells, c->k, t, b, j, raw);
    s->c[j] = bounded(c->n, raw);
    s->full[j] = (double)(o * tanhl(s->c[j]));
  }
}

static void gru(const cell *c, const sequence *s)
{
  const int64_t H = c->n->hidden;
  for (int64_t j = 0; j < 2 * H; j++) s->gate[j] = (double)sigmoid(joined(c, s, j, s->h));
  for (int64_t j = 0; j < H; j++) s->next[j] = s->gate[j] * s->h[j];
  for (int64_t j = 0; j < H; j++) {
    long double n, z = s->gate[H + j];
    if (c->n->a->reset == QN_RNN_RESET_AFTER) {
      cpu_sum of_x = { 0 }, q = { 0 };
      sums(c, s, 2 * H + j, s->h, &of_x, &q);
      n = tanhl(cpu_sum_total(&of_x) + s->gate[j] * cpu_sum_total(&q));
      s->gate[3 * H + j] = cpu_sum_value(&q);
    } else
      n = tanhl(joined(c, s, 2 * H + j, s->next));
    s->gate[2 * H + j] = (double)n;
    s->full[j] = (double)((1 - z) * n + z * s->h[j]);
  }
}

static void plain(const cell *c, const sequence *s)
{
  for (int64_t j = 0; j < c->n->hidden; j++) {
    const long double a = joined(c, s, j, s->h);
    s->full[j] = (double)(c->n->a->cell == QN_RNN_TANH ? tanhl(a) : a < 0 ? 0 : a);
  }
}

/* out [steps, batch, directions * state]: what the layer gives; below: what it takes, NULL for x. */
static void run_sequence(const cell *c, int64_t b, const sequence *s, const double *below, double *out)
{
  const net *n = c->n;
  const int64_t length = length_of(n, b), width = n->directions * n->state;
  for (int64_t j = 0; j < n->state; j++) s->h[j] = get3(&n->h0, c->k, b, j);
  for (int64_t j = 0; j < n->hidden; j++) s->c[j] = get3(&n->c0, c->k, b, j);
  for (int64_t step = 0; step < n->steps; step++) {
    const int64_t t = step < length ? time_of(c, length, step) : step;
    double *to = out + (t * n->batch + b) * width + c->direction * n->state;
    if (step >= length) {
      for (int64_t j = 0; j < n->state; j++) to[j] = 0;
      for (int64_t j = 0; j < n->kept * n->hidden; j++) put4(&n->at_gates, c->k, t, b, j, 0);
      for (int64_t j = 0; j < n->hidden; j++) put4(&n->at_cells, c->k, t, b, j, 0);
      continue;
    }
    for (int64_t i = 0; i < c->inputs; i++)
      s->in[i] = below ? below[(t * n->batch + b) * c->inputs + i] : get3(&n->x, t, b, i);
    if (n->a->cell == QN_RNN_LSTM) lstm(c, s, t, b);
    else if (n->a->cell == QN_RNN_GRU) gru(c, s);
    else plain(c, s);
    for (int64_t j = 0; j < n->kept * n->hidden; j++) put4(&n->at_gates, c->k, t, b, j, s->gate[j]);
    for (int64_t j = 0; j < n->state; j++) {
      cpu_sum sum = { 0 };
      if (c->projection.p) add_row(&sum, &c->projection, j, s->full, n->hidden);
      to[j] = s->h[j] = c->projection.p ? cpu_sum_value(&sum) : s->full[j];
    }
  }
  for (int64_t j = 0; j < n->state; j++) put3(&n->ht, c->k, b, j, s->h[j]);
  for (int64_t j = 0; j < n->hidden; j++) put3(&n->ct, c->k, b, j, s->c[j]);
}

/* Writes what layer l gave, and makes it what the next layer takes. */
static void hand_on(const net *n, int64_t l, double *out)
{
  const int64_t width = n->directions * n->state, all = n->steps * n->batch * width;
  const bool last = l == n->a->layers - 1;
#pragma omp parallel for num_threads(cpu_team(n->launch, all, 40))
  for (int64_t i = 0; i < all; i++) {
    const int64_t t = i / width / n->batch, b = i / width % n->batch, j = i % width;
    if (last) put3(&n->y, t, b, j, out[i]);
    else put4(&n->at_inner, l, t, b, j, out[i]);
    if (!last) out[i] = after_dropout(n, l * all + i, out[i]);
  }
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const net n = net_of(p, launch);
  const int64_t all = n.steps * n.batch * n.directions * n.state, sequences = n.directions * n.batch;
  double *buffer[2] = { launch->workspace, (double *)launch->workspace + all }, *states = buffer[1] + all;
  for (int64_t l = 0; l < n.a->layers; l++) {
    const double *below = l ? buffer[(l - 1) % 2] : NULL;
#pragma omp parallel for num_threads(cpu_team(launch, sequences, n.steps * n.gates * n.hidden * (n.inputs + n.state)))
    for (int64_t i = 0; i < sequences; i++) {
      const cell c = cell_of(&n, l, i / n.batch);
      const sequence s = sequence_at(&n, states + i * sequence_size(&n));
      run_sequence(&c, i % n.batch, &s, below, buffer[l % 2]);
    }
    hand_on(&n, l, buffer[l % 2]);
  }
  return QN_OK;
}

/* ---- backward ------------------------------------------------------------------------------ */

/* Of one layer and direction: gradients by what w x + bw and r h + br give, [steps, batch, gates hidden], and by h' [.., state]. */
typedef struct slopes { double *of_x, *of_h, *h; } slopes;

static double gate(const cell *c, int64_t t, int64_t b, int64_t g, int64_t j)
{
  return cpu_get(&c->n->at_gates, at4(&c->n->at_gates, c->k, t, b, g * c->n->hidden + j));
}
/* What the layer below gave, before dropout, or x. */
static double given(const net *n, int64_t l, int64_t t, int64_t b, int64_t i)
{
  if (l < 0) return get3(&n->x, t, b, i);
  return l == n->a->layers - 1 ? get3(&n->y, t, b, i) : cpu_get(&n->at_inner, at4(&n->at_inner, l, t, b, i));
}
/* The state before step s, and the cell's. */
static double h_before(const cell *c, int64_t length, int64_t s, int64_t b, int64_t j)
{
  return s == 0 ? get3(&c->n->h0, c->k, b, j) : given(c->n, c->layer, time_of(c, length, s - 1), b, c->direction * c->n->state + j);
}
static double cell_at(const cell *c, int64_t t, int64_t b, int64_t j)
{
  return cpu_get(&c->n->at_cells, at4(&c->n->at_cells, c->k, t, b, j));
}
static double c_before(const cell *c, int64_t length, int64_t s, int64_t b, int64_t j)
{
  return s == 0 ? get3(&c->n->c0, c->k, b, j) : bounded(c->n, cell_at(c, time_of(c, length, s - 1), b, j));
}

/* dc, the gradient by c' that later steps leave, becomes that by c. */
static void lstm_slopes(const cell *c, int64_t length, int64_t s, int64_t b, const double *dh, double *dc, double *d)
{
  const int64_t t = time_of(c, length, s), H = c->n->hidden;
  for (int64_t j = 0; j < H; j++) {
    const long double i = gate(c, t, b, 0, j), f = gate(c, t, b, 1, j), g = gate(c, t, b, 2, j), o = gate(c, t, b, 3, j);
    const double raw = cell_at(c, t, b, j);
    const long double tanh_c = tanhl(bounded(c->n, raw));
    const bool inside = !(fabs(raw) >= c->n->a->clip);
    const long double by_c = inside ? dc[j] + dh[j] * o * (1 - tanh_c * tanh_c) : 0;
    d[j] = (double)(by_c * g * i * (1 - i));
    d[H + j] = (double)(by_c * c_before(c, length, s, b, j) * f * (1 - f));
    d[2 * H + j] = (double)(by_c * i * (1 - g * g));
    d[3 * H + j] = (double)(dh[j] * tanh_c * o * (1 - o));
    dc[j] = (double)(by_c * f);
  }
}

/* direct[j]: what reaches h beside r. */
static void gru_slopes(const cell *c, int64_t length, int64_t s, int64_t b, const double *dh, double *direct, double *of_x, double *of_h)
{
  const int64_t t = time_of(c, length, s), H = c->n->hidden;
  const bool after = c->n->a->reset == QN_RNN_RESET_AFTER;
  for (int64_t j = 0; j < H; j++) {
    const long double z = gate(c, t, b, 1, j), n = gate(c, t, b, 2, j), h = h_before(c, length, s, b, j);
    of_x[H + j] = of_h[H + j] = (double)(dh[j] * (h - n) * z * (1 - z));
    of_x[2 * H + j] = of_h[2 * H + j] = (double)(dh[j] * (1 - z) * (1 - n * n));
    direct[j] = (double)(dh[j] * z);
  }
  for (int64_t j = 0; j < H; j++) {
    const long double r = gate(c, t, b, 0, j), dn = of_x[2 * H + j];
    cpu_sum by_rh = { 0 };
    if (!after) add_column(&by_rh, &c->r, 2 * H, j, of_x + 2 * H, H);
    const long double by_r = after ? dn * gate(c, t, b, 3, j) : cpu_sum_total(&by_rh) * h_before(c, length, s, b, j);
    of_x[j] = of_h[j] = (double)(by_r * r * (1 - r));
    if (after) of_h[2 * H + j] = (double)(dn * r);
    else direct[j] += (double)(cpu_sum_total(&by_rh) * r);
  }
}

/* dout: the gradient by what the layer gave; dc, carry and full: room for hidden, state and hidden numbers. */
static void sequence_slopes(const cell *c, int64_t b, const double *dout, const slopes *d, double *dc, double *carry, double *full)
{
  const net *n = c->n;
  const int64_t length = length_of(n, b), H = n->hidden, P = n->state, rows = n->gates * H, width = n->directions * P;
  const bool before = n->a->cell == QN_RNN_GRU && n->a->reset == QN_RNN_RESET_BEFORE;
  const cpu_tensor dh0 = cpu_tensor_of(n->p, n->launch, QN_ROLE_RNN_BACKWARD_DH0, 0);
  const cpu_tensor dc0 = cpu_tensor_of(n->p, n->launch, QN_ROLE_RNN_BACKWARD_DC0, 0);
  for (int64_t j = 0; j < P; j++) carry[j] = get3(&n->ht, c->k, b, j);
  for (int64_t j = 0; j < H; j++) dc[j] = get3(&n->ct, c->k, b, j);
  for (int64_t s = length - 1; s >= 0; s--) {
    const int64_t t = time_of(c, length, s), at = t * n->batch + b;
    double *of_x = d->of_x + at * rows, *of_h = d->of_h + at * rows, *dh = d->h + at * P;
    for (int64_t j = 0; j < P; j++) dh[j] = carry[j] + dout[at * width + c->direction * P + j], carry[j] = 0;
    for (int64_t j = 0; j < H; j++) {
      cpu_sum sum = { 0 };
      if (c->projection.p) add_column(&sum, &c->projection, 0, j, dh, P);
      full[j] = c->projection.p ? cpu_sum_value(&sum) : dh[j];
    }
    if (n->a->cell == QN_RNN_LSTM) {
      lstm_slopes(c, length, s, b, full, dc, of_x);
      memcpy(of_h, of_x, (size_t)rows * sizeof *of_h);
    } else if (n->a->cell == QN_RNN_GRU)
      gru_slopes(c, length, s, b, full, carry, of_x, of_h);
    else
      for (int64_t j = 0; j < H; j++) {
        const long double h = given(n, c->layer, t, b, c->direction * P + j);
        of_x[j] = of_h[j] = (double)(n->a->cell == QN_RNN_TANH ? full[j] * (1 - h * h) : h > 0 ? full[j] : 0);
      }
    for (int64_t j = 0; j < P; j++) {
      cpu_sum sum = { 0 };
      add_column(&sum, &c->r, 0, j, of_h, before ? 2 * H : rows);
      carry[j] += cpu_sum_value(&sum);
    }
  }
  for (int64_t j = 0; j < P; j++) put3(&dh0, c->k, b, j, carry[j]);
  for (int64_t j = 0; j < H; j++) put3(&dc0, c->k, b, j, dc[j]);
}

/* What element (row, i) of a weight's gradient multiplies the slope of its row with, at step s. */
enum { BY_W, BY_R, BY_PROJECTION };
static double factor(const cell *c, int which, int64_t length, int64_t s, int64_t b, int64_t row, int64_t i)
{
  const net *n = c->n;
  const int64_t t = time_of(c, length, s), all = n->steps * n->batch * c->inputs;
  if (which == BY_PROJECTION)
    return (double)(gate(c, t, b, 3, i) * tanhl(bounded(n, cell_at(c, t, b, i))));
  if (which == BY_W) {
    const double x = given(n, c->layer - 1, t, b, i);
    return c->layer ? after_dropout(n, (c->layer - 1) * all + (t * n->batch + b) * c->inputs + i, x) : x;
  }
  const double h = h_before(c, length, s, b, i);
  return n->a->cell == QN_RNN_GRU && n->a->reset == QN_RNN_RESET_BEFORE && row >= 2 * n->hidden ? h * gate(c, t, b, 0, i) : h;
}

/* to [rows, columns]: the sum over all steps of slope times factor. columns 0: a bias, whose factor is 1. Some rows are summed together,
 * since most have the same factors. */
static void weight_gradient(const cell *c, const cpu_tensor *to, int which, const double *slope, int64_t rows, int64_t columns)
{
  enum { TOGETHER = 16 };
  const net *n = c->n;
  const int64_t blocks = (rows + TOGETHER - 1) / TOGETHER, units = blocks * (columns ? columns : 1);     /* columns 0: a bias, */
  if (!to->p || !to->elements) return;                                    /*   or a weight of none */
#pragma omp parallel for num_threads(cpu_team(n->launch, units, n->steps * n->batch * 4 * TOGETHER))
  for (int64_t e = 0; e < units; e++) {
    const int64_t column = e / blocks, first = e % blocks * TOGETHER, last = qn_min_i64(first + TOGETHER, rows);
    cpu_sum sum[TOGETHER] = { { 0 } };
    for (int64_t b = 0; b < n->batch; b++)
      for (int64_t s = 0, length = length_of(n, b); s < length; s++) {
        const double *of_row = slope + (time_of(c, length, s) * n->batch + b) * rows;
        double by = 1;
        for (int64_t row = first; row < last; row++) {
          if (columns && (row == first || row == 2 * n->hidden)) by = factor(c, which, length, s, b, row, column);
          cpu_sum_add_product(&sum[row - first], of_row[row], by);
        }
      }
    for (int64_t row = first; row < last; row++)
      cpu_sum_store(&sum[row - first], to, row * to->stride[0] + (columns ? column * to->stride[1] : 0));
  }
}

/* The gradient by what layer l takes, of the slopes of all its directions: dx, or dout of the layer below. */
static void input_gradient(const net *n, int64_t l, const slopes *d, double *below)
{
  const int64_t rows = n->gates * n->hidden, inputs = l ? n->directions * n->state : n->inputs, all = n->steps * n->batch * inputs;
  const cpu_tensor dx = cpu_tensor_of(n->p, n->launch, QN_ROLE_RNN_BACKWARD_DX, 0);
#pragma omp parallel for num_threads(cpu_team(n->launch, all, n->directions * rows * 4))
  for (int64_t e = 0; e < all; e++) {
    const int64_t t = e / inputs / n->batch, b = e / inputs % n->batch, i = e % inputs;
    cpu_sum sum = { 0 };
    for (int64_t k = 0; k < n->directions && t < length_of(n, b); k++) {
      const cpu_tensor w = item(n, BOTH(W), l * n->directions + k);
      add_column(&sum, &w, 0, i, d[k].of_x + (t * n->batch + b) * rows, rows);
    }
    if (l) below[e] = after_dropout(n, (l - 1) * all + e, cpu_sum_value(&sum));
    else cpu_sum_store(&sum, &dx, at3(&dx, t, b, i));
  }
}

static cpu_tensor gradient(const cell *c, uint32_t role) { return cpu_tensor_of(c->n->p, c->n->launch, role, (int32_t)c->k); }

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  const net n = net_of(p, launch);
  const cpu_tensor dy = cpu_tensor_of(p, launch, QN_ROLE_RNN_BACKWARD_DY, 0);
  const int64_t width = n.directions * n.state, places = n.steps * n.batch, rows = n.gates * n.hidden, sequences = n.directions * n.batch;
  const int64_t own = 2 * n.hidden + n.state;
  double *dout = launch->workspace, *states = dout + places * width, *next = states + sequences * own;
  slopes d[2];
  for (int k = 0; k < n.directions; k++) {
    d[k].of_x = next, d[k].of_h = d[k].of_x + places * rows, d[k].h = d[k].of_h + places * rows;
    next = d[k].h + places * n.state;
  }
  for (int64_t e = 0; e < places * width; e++) dout[e] = get3(&dy, e / width / n.batch, e / width % n.batch, e % width);
  for (int64_t l = n.a->layers - 1; l >= 0; l--) {
#pragma omp parallel for num_threads(cpu_team(launch, sequences, n.steps * rows * n.state * 4))
    for (int64_t i = 0; i < sequences; i++) {
      const cell c = cell_of(&n, l, i / n.batch);
      double *room = states + i * own;
      sequence_slopes(&c, i % n.batch, dout, &d[c.direction], room, room + n.hidden, room + n.hidden + n.state);
    }
    for (int64_t k = 0; k < n.directions; k++) {
      const cell c = cell_of(&n, l, k);
      const cpu_tensor dw = gradient(&c, QN_ROLE_RNN_BACKWARD_DW), dr = gradient(&c, QN_ROLE_RNN_BACKWARD_DR);
      const cpu_tensor dbw = gradient(&c, QN_ROLE_RNN_BACKWARD_DBW), dbr = gradient(&c, QN_ROLE_RNN_BACKWARD_DBR);
      const cpu_tensor dprojection = gradient(&c, QN_ROLE_RNN_BACKWARD_DPROJECTION);
      weight_gradient(&c, &dw, BY_W, d[k].of_x, rows, c.inputs);
      weight_gradient(&c, &dr, BY_R, d[k].of_h, rows, n.state);
      weight_gradient(&c, &dbw, BY_W, d[k].of_x, rows, 0);
      weight_gradient(&c, &dbr, BY_R, d[k].of_h, rows, 0);
      weight_gradient(&c, &dprojection, BY_PROJECTION, d[k].h, n.state, n.hidden);
    }
    input_gradient(&n, l, d, dout);
  }
  return QN_OK;
}

/* ---- prepare ------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_rnn *a = op->attr;
  const int back = op->op == QN_OP_RNN_BACKWARD;
  const qn_value *x = &request->value[qn_role(op, back ? QN_ROLE_RNN_BACKWARD_X : QN_ROLE_RNN_FORWARD_X)];
  const qn_value *r = &request->value[qn_role(op, back ? QN_ROLE_RNN_BACKWARD_R : QN_ROLE_RNN_FORWARD_R)];
  const double places = (double)x->dim[0] * (double)x->dim[1], directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  const double rows = (double)r->dim[0], state = (double)r->dim[1], width = directions * state, inputs = fmax((double)x->dim[2], width);
  const double hidden = rows / (a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1), sequences = directions * (double)x->dim[1];
  const double forward_size = 2 * places * width + sequences * (inputs + 2 * state + 6 * hidden);
  const double backward_size = places * width + sequences * (2 * hidden + state) + directions * places * (2 * rows + state);
  const double bytes = (back ? backward_size : forward_size) * sizeof(double);
  const qn_status status = cpu_direct_prepare(request, p);
  p->workspace = bytes < 0x1p62 ? (uint64_t)bytes : (uint64_t)1 << 62;
  return status;
}

#define ROW(anchor, function)                                                                   \
  { .name = "direct", .op = anchor, .class_ = QN_CLASS_GENERIC,                                 \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,            \
    .prepare = prepare, .run = function, .release = cpu_release }
static const qn_engine row[] = { ROW(QN_OP_RNN_FORWARD, forward), ROW(QN_OP_RNN_BACKWARD, backward) };
const qn_engine_list cpu_rnn_direct = { row, sizeof row / sizeof *row };
