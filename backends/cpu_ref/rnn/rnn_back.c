/* rnn_back.c -- the gradient of recurrent networks in f32: lstm, gru with the reset after the product, tanh, relu; without projection.
 *
 * Of a layer, both directions side by side: from the last step to the first, with dh = dy + what later steps leave
 *   slopes of the gates' sums, from what forward left: of w x in X [place (step, sequence)][direction, gate, unit], of r h likewise in H
 *   dh of the step before = slopes times r (gru: + dh z)
 * Units are shared out among the threads in blocks, as columns of r too, so that only a step's slopes go from thread to thread, over a
 * barrier. r is laid out in panels first. Then, as products over all places at once (gemm_core.h):
 *   dw = X' inputs      dr = H' states before      dx = X w      and the biases' gradients as sums of columns */
#include "rnn_parts.h"

enum { DY, DHT, DCT, X, Y, H0, C0, LENGTHS, GATES, CELLS, INNER, SEED, OFFSET, DX, DH0, DC0, SINGLES };
enum { W, R, DW, DR, DBW, DBR, LISTS };
enum { PIECE = 4 * CPU_LANES };           /* most units of a block */

typedef struct problem {
  qn_rnn  a;
  int64_t steps, batch, inputs, hidden, directions, gates, rows, n_lists;     /* rows: gates times hidden */
  int64_t vectors, block, blocks;         /* units of a block, in vectors and in all */
  int     threads;
  uint64_t gemm_bytes;
  operand one[SINGLES];
  operand list[];                         /* LISTS times n_lists */
} problem;

typedef struct call {
  const problem *p;
  const qn_launch *launch;
  const cpu_gemm_isa *isa;
  int64_t *length;
  float *x, *h;                           /* slopes; the same where the cell has no other of r h */
  float *in, *before, *out[2];            /* inputs; states before, of a direction; gradients by what a layer gives */
  float *panel, *step[2], *carry, *dc;    /* of each direction */
  void  *gemm;
  barrier barrier;
  uint64_t seed, offset;
} call;

static int64_t width_of(const problem *p) { return p->directions * p->hidden; }
static int64_t pitch(const problem *p) { return p->blocks * p->block; }
static int64_t line(const problem *p) { return p->directions * p->rows; }       /* of x and h */
static bool two_slopes(const problem *p) { return p->a.cell == QN_RNN_GRU; }
static const operand *listed(const problem *p, int list, int64_t k) { return &p->list[list * p->n_lists + k]; }

static bool reversed(const problem *p, int64_t direction) { return p->a.direction == QN_RNN_BACKWARD || direction == 1; }
/* The place in time of step s; beyond a sequence's end, of the places that are left. */
static int64_t time_of(const call *c, int64_t direction, int64_t b, int64_t s)
{
  return s < c->length[b] && reversed(c->p, direction) ? c->length[b] - 1 - s : s;
}

/* ---- products over all places ---------------------------------------------------------------------- */

/* c [m, n] = a [m, k] b [k, n]; k may be cut in two, with a b for each. */
typedef struct gradient {
  const call *call;
  const float *a;
  int64_t a_row, a_step;                  /* strides along m and along k */
  const operand *b[2], *c;                /* b NULL: b_data, packed */
  const float *b_data;
  int64_t n, half;                        /* half: of k that the first b has */
  float *c_data;                          /* NULL: to c */
  int64_t c_row;
  bool three;                             /* c is [steps, batch, n] */
} gradient;

static void left_block(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t k0, int64_t kc, void *buffer, const void **row,
                       int64_t *step)
{
  const gradient *o = g->user;
  const int64_t ld = cpu_gemm_ld(g->kc, sizeof(float));
  const float *from = o->a + i0 * o->a_row + k0 * o->a_step;
  (void)batch;
  if (o->a_step != 1) cpu_gemm_lay(g->isa, QN_F32, from, o->a_row, o->a_step, mc, kc, buffer, ld);
  for (int64_t i = 0; i < mc; i++) row[i] = o->a_step != 1 ? (const float *)buffer + i * ld : from + i * o->a_row;
  *step = 1;
}
static const void *right_block(const cpu_gemm *g, int64_t batch, int64_t k0, int64_t kc, int64_t j0, int64_t nc, void *buffer,
                               int64_t *step)
{
  const gradient *o = g->user;
  const int64_t ld = *step = cpu_gemm_ld(g->nc, sizeof(float));
  (void)batch;
  for (int64_t k = k0, n; k < k0 + kc; k += n) {
    const int part = o->b[0] && k >= o->half;
    const operand *b = o->b[part];
    float *to = (float *)buffer + (k - k0) * ld;
    n = part || !b ? k0 + kc - k : qn_min_i64(k0 + kc, o->half) - k;
    if (!b) cpu_gemm_lay(g->isa, QN_F32, o->b_data + k * o->n + j0, o->n, 1, n, nc, to, ld);
    else
      cpu_gemm_lay(g->isa, b->dtype, data(o->call->launch, b, (k - (part ? o->half : 0)) * b->stride[0] + j0 * b->stride[1]), b->stride[0],
                   b->stride[1], n, nc, to, ld);
  }
  return buffer;
}
static void finish(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld)
{
  const gradient *o = g->user;
  (void)batch;
  for (int64_t i = 0; i < mc; i++) {
    const int64_t b = o->call->p->batch, t = (i0 + i) / b;
    float *sums = (float *)acc + i * ld;
    if (o->three && t >= o->call->length[(i0 + i) % b]) memset(sums, 0, (size_t)nc * sizeof *sums);       /* where w may be infinite */
    if (o->c_data) {
      memcpy(o->c_data + (i0 + i) * o->c_row + j0, sums, (size_t)nc * sizeof *sums);
      continue;
    }
    const int64_t at = o->three ? place_of(o->c, t, (i0 + i) % b, j0, 0) : place_of(o->c, i0 + i, j0, 0, 0);
    write_row(o->call->launch, o->c, at, o->c->stride[o->three ? 2 : 1], nc, sums);
  }
}

/* The blocking of a product; its workspace's bytes. */
static uint64_t plan_gemm(cpu_gemm *g, const cpu_gemm_isa *isa, int threads, int64_t m, int64_t n, int64_t k)
{
  *g = (cpu_gemm){ .isa = isa, .type = CPU_GEMM_F32, .batch = 1, .m = m, .n = n, .k = k,
                   .a = left_block, .b = right_block, .finish = finish };
  return m && n ? cpu_gemm_plan(g, threads) : 0;
}
static void run_gemm(const call *c, const gradient *o, int64_t m, int64_t n, int64_t k)
{
  cpu_gemm g;
  if (!m || !n) return;
  plan_gemm(&g, c->isa, c->p->threads, m, n, k);
  g.user = o;
  cpu_gemm_run(&g, c->launch->threads, c->gemm);
}

/* to [rows] = the sums of columns of slopes, in double */
static void bias_gradient(const call *c, const operand *to, const float *slopes, int threads)
{
  const problem *p = c->p;
  const int64_t places = p->steps * p->batch;
  if (to->value < 0) return;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t j0 = 0; j0 < p->rows; j0 += 64) {
    const int64_t n = qn_min_i64(64, p->rows - j0);
    double sum[64] = { 0 };
    float narrow[64];
    for (int64_t i = 0; i < places; i++)
      for (int64_t j = 0; j < n; j++) sum[j] += (double)slopes[i * line(p) + j0 + j];
    for (int64_t j = 0; j < n; j++) narrow[j] = (float)sum[j];
    write_row(c->launch, to, j0 * to->stride[0], to->stride[0], n, narrow);
  }
}

/* ---- slopes of a block's units, of one step and sequence --------------------------------------------- */

static void lstm_slopes(int n, float (*gate)[PIECE], const float *raw, const float *c, const float *dh, float *dc, float clip,
                        float (*d)[PIECE])
{
#pragma omp simd
  for (int i = 0; i < n; i++) {
    float bounded = raw[i] > clip ? clip : raw[i];
    bounded = bounded < -clip ? -clip : bounded;
    const float t = m_tanh(bounded), in = gate[0][i], forget = gate[1][i], g = gate[2][i], out = gate[3][i];
    const float by_c = m_abs(raw[i]) >= clip ? 0.0f : dc[i] + dh[i] * out * (1.0f - t * t);
    d[0][i] = by_c * g * (in * (1.0f - in));
    d[1][i] = by_c * c[i] * (forget * (1.0f - forget));
    d[2][i] = by_c * in * (1.0f - g * g);
    d[3][i] = dh[i] * t * (out * (1.0f - out));
    dc[i] = by_c * forget;
  }
}
/* d: the slopes of w x; q: that of r h in n. dh becomes what reaches h beside r. */
static void gru_slopes(int n, float (*gate)[PIECE], const float *h, float *dh, float (*d)[PIECE], float *q)
{
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const float r = gate[0][i], z = gate[1][i], new = gate[2][i], dn = dh[i] * (1.0f - z) * (1.0f - new * new);
    d[0][i] = dn * gate[3][i] * (r * (1.0f - r));
    d[1][i] = dh[i] * (h[i] - new) * (z * (1.0f - z));
    d[2][i] = dn;
    q[i] = dn * r;
    dh[i] = dh[i] * z;
  }
}
static void plain_slopes(int n, const float *y, const float *dh, float *d, bool is_tanh)
{
#pragma omp simd
  for (int i = 0; i < n; i++) d[i] = is_tanh ? dh[i] * (1.0f - y[i] * y[i]) : y[i] > 0.0f ? dh[i] : 0.0f;
}

/* n units of what layer l gave at time t, before dropout. */
static void read_output(const call *c, int64_t l, int64_t t, int64_t b, int64_t at, int64_t n, float *to)
{
  const operand *y = &c->p->one[Y], *inner = &c->p->one[INNER];
  if (l == c->p->a.layers - 1) read_row(c->launch, y, place_of(y, t, b, at, 0), y->stride[2], n, to);
  else read_row(c->launch, inner, place_of(inner, l, t, b, at), inner->stride[3], n, to);
}

/* Step s of sequence b, for the units of one block: from carry, which becomes what reaches h beside r, to x, h and the step's slopes. */
static void step_slopes(const call *c, int64_t l, int64_t direction, int64_t block, int64_t s, int64_t b)
{
  const problem *p = c->p;
  const int64_t k = l * p->directions + direction, unit0 = block * p->block, n = qn_min_i64(p->block, p->hidden - unit0);
  const int64_t t = time_of(c, direction, b, s), place = t * p->batch + b, own = (direction * p->batch + b) * pitch(p) + unit0;
  const operand *gates = &p->one[GATES], *cells = &p->one[CELLS], *c0 = &p->one[C0], *h0 = &p->one[H0];
  float gate[4][PIECE], d[4][PIECE], raw[PIECE], old[PIECE] = { 0 }, q[PIECE], *dh = c->carry + own;
  float *step = c->step[s % 2] + (direction * p->batch + b) * p->rows + unit0, *x = c->x + place * line(p) + direction * p->rows + unit0;
  float *h = c->h + place * line(p) + direction * p->rows + unit0;
  if (s >= c->length[b]) {
    for (int64_t g = 0; g < p->gates; g++) {
      memset(x + g * p->hidden, 0, (size_t)n * sizeof *x);
      memset(h + g * p->hidden, 0, (size_t)n * sizeof *h);
      memset(step + g * p->hidden, 0, (size_t)n * sizeof *step);
    }
    return;
  }
  const float *dy = c->out[(l + 1) % 2] + place * width_of(p) + direction * p->hidden + unit0;
  for (int64_t i = 0; i < n; i++) dh[i] += dy[i];
  for (int64_t g = 0; g < 4 && p->gates > 1; g++)
    read_row(c->launch, gates, place_of(gates, k, t, b, g * p->hidden + unit0), gates->stride[3], n, gate[g]);
  if (p->a.cell == QN_RNN_LSTM) {
    read_row(c->launch, cells, place_of(cells, k, t, b, unit0), cells->stride[3], n, raw);
    if (s) {
      const float clip = (float)p->a.clip;
      read_row(c->launch, cells, place_of(cells, k, time_of(c, direction, b, s - 1), b, unit0), cells->stride[3], n, old);
      for (int64_t i = 0; i < n; i++) old[i] = old[i] > clip ? clip : old[i] < -clip ? -clip : old[i];
    } else if (c0->value >= 0)
      read_row(c->launch, c0, place_of(c0, k, b, unit0, 0), c0->stride[2], n, old);
    lstm_slopes((int)n, gate, raw, old, dh, c->dc + own, (float)p->a.clip, d);
    memset(dh, 0, (size_t)n * sizeof *dh);
  } else if (p->a.cell == QN_RNN_GRU) {
    if (s) read_output(c, l, time_of(c, direction, b, s - 1), b, direction * p->hidden + unit0, n, old);
    else if (h0->value >= 0) read_row(c->launch, h0, place_of(h0, k, b, unit0, 0), h0->stride[2], n, old);
    gru_slopes((int)n, gate, old, dh, d, q);
  } else {
    read_output(c, l, t, b, direction * p->hidden + unit0, n, old);
    plain_slopes((int)n, old, dh, d[0], p->a.cell == QN_RNN_TANH);
    memset(dh, 0, (size_t)n * sizeof *dh);
  }
  for (int64_t g = 0; g < p->gates; g++) {
    const float *of_h = two_slopes(p) && g == 2 ? q : d[g];
    memcpy(x + g * p->hidden, d[g], (size_t)n * sizeof *x);
    memcpy(step + g * p->hidden, of_h, (size_t)n * sizeof *step);
    if (two_slopes(p)) memcpy(h + g * p->hidden, of_h, (size_t)n * sizeof *h);
  }
}

/* ---- a layer ----------------------------------------------------------------------------------------- */

/* panel[row][unit] of the block's columns of r, 0 beyond them */
static void lay_panel(const call *c, const operand *r, int64_t block, float *panel)
{
  const problem *p = c->p;
  const int64_t unit0 = block * p->block, n = qn_min_i64(p->block, p->hidden - unit0);
  for (int64_t row = 0; row < p->rows; row++, panel += p->block) {
    read_row(c->launch, r, row * r->stride[0] + unit0 * r->stride[1], r->stride[1], n, panel);
    for (int64_t i = n; i < p->block; i++) panel[i] = 0;
  }
}

static void states(const call *c, int64_t k, int64_t direction, int64_t block, bool load)
{
  const problem *p = c->p;
  const operand *h = &p->one[load ? DHT : DH0], *cell = &p->one[load ? DCT : DC0];
  const int64_t unit0 = block * p->block, n = qn_min_i64(p->block, p->hidden - unit0);
  for (int64_t b = 0; b < p->batch; b++) {
    float *carry = c->carry + (direction * p->batch + b) * pitch(p) + unit0, *dc = c->dc + (direction * p->batch + b) * pitch(p) + unit0;
    if (load) memset(carry, 0, (size_t)p->block * sizeof *carry), memset(dc, 0, (size_t)p->block * sizeof *dc);
    if (load && h->value >= 0) read_row(c->launch, h, place_of(h, k, b, unit0, 0), h->stride[2], n, carry);
    if (load && cell->value >= 0) read_row(c->launch, cell, place_of(cell, k, b, unit0, 0), cell->stride[2], n, dc);
    if (!load && h->value >= 0) write_row(c->launch, h, place_of(h, k, b, unit0, 0), h->stride[2], n, carry);
    if (!load && cell->value >= 0) write_row(c->launch, cell, place_of(cell, k, b, unit0, 0), cell->stride[2], n, dc);
  }
}

/* Thread `me` of `threads` has an equal share of the blocks of both directions. */
static void walk_layer(call *c, int64_t l, int me, int threads)
{
  const problem *p = c->p;
  const int64_t items = p->directions * p->blocks, first = items * me / threads, end = items * (me + 1) / threads;
  for (int64_t e = first; e < end; e++) {
    lay_panel(c, listed(p, R, l * p->directions + e / p->blocks), e % p->blocks, c->panel + e * p->rows * p->block);
    states(c, l * p->directions + e / p->blocks, e / p->blocks, e % p->blocks, true);
  }
  for (int64_t s = p->steps - 1; s >= 0; s--) {
    for (int64_t e = first; e < end; e++)
      for (int64_t b = 0; b < p->batch; b++) step_slopes(c, l, e / p->blocks, e % p->blocks, s, b);
    meet(&c->barrier, threads);
    for (int64_t e = first; e < end; e++)
      for (int64_t b = 0; b < p->batch; b += MOST_ROWS) {
        const int64_t n = qn_min_i64(MOST_ROWS, p->batch - b), at = e / p->blocks * p->batch + b;
        float sums[MOST_ROWS * PIECE], *carry = c->carry + at * pitch(p) + e % p->blocks * p->block;
        panel_product(p->vectors, n, p->rows, c->step[s % 2] + at * p->rows, p->rows, c->panel + e * p->rows * p->block, carry, pitch(p),
                      sums);
        for (int64_t i = 0; i < n; i++)
          if (s < c->length[b + i]) memcpy(carry + i * pitch(p), sums + i * p->block, (size_t)p->block * sizeof *carry);
      }
  }
  for (int64_t e = first; e < end; e++) states(c, l * p->directions + e / p->blocks, e / p->blocks, e % p->blocks, false);
}

/* x as dropout left element `at` of `inner`, or its gradient: n elements. */
static void drop(const call *c, int64_t at, int64_t n, float *x)
{
  const uint64_t dropped = qn_chance_words(c->p->a.dropout);
  const float scale = (float)(1 / (1 - c->p->a.dropout));
  uint32_t word[4];
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || (at + i) % 4 == 0) qn_random_words(word, c->seed, c->offset, (uint64_t)(at + i) / 4);
    x[i] = word[(at + i) % 4] < dropped ? 0.0f : x[i] * scale;
  }
}

/* What layer l took, by place; and of a direction the states before each step. Beyond a sequence's end 0. */
static void lay_inputs(const call *c, int64_t l, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = l ? width_of(p) : p->inputs, places = p->steps * p->batch;
  const operand *x = &p->one[X];
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < places; e++) {
    const int64_t t = e / p->batch, b = e % p->batch;
    float *to = c->in + e * inputs;
    if (t >= c->length[b]) memset(to, 0, (size_t)inputs * sizeof *to);
    else if (l == 0) read_row(c->launch, x, place_of(x, t, b, 0, 0), x->stride[2], inputs, to);
    else {
      read_output(c, l - 1, t, b, 0, inputs, to);
      if (p->a.dropout > 0) drop(c, ((l - 1) * places + e) * inputs, inputs, to);
    }
  }
}
static void lay_before(const call *c, int64_t l, int64_t direction, int threads)
{
  const problem *p = c->p;
  const operand *h0 = &p->one[H0];
  const int64_t k = l * p->directions + direction;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < p->steps * p->batch; e++) {
    const int64_t s = e / p->batch, b = e % p->batch;
    float *to = c->before + (time_of(c, direction, b, s) * p->batch + b) * p->hidden;
    if (s >= c->length[b] || (s == 0 && h0->value < 0)) memset(to, 0, (size_t)p->hidden * sizeof *to);
    else if (s == 0) read_row(c->launch, h0, place_of(h0, k, b, 0, 0), h0->stride[2], p->hidden, to);
    else read_output(c, l, time_of(c, direction, b, s - 1), b, direction * p->hidden, p->hidden, to);
  }
}

static void weight_gradients(const call *c, int64_t l, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = l ? width_of(p) : p->inputs, places = p->steps * p->batch;
  lay_inputs(c, l, threads);
  for (int64_t d = 0; d < p->directions; d++) {
    const int64_t k = l * p->directions + d;
    gradient w = { .call = c, .a = c->x + d * p->rows, .a_row = 1, .a_step = line(p), .b_data = c->in, .n = inputs, .c = listed(p, DW, k) };
    if (w.c->value >= 0) run_gemm(c, &w, p->rows, inputs, places);
    gradient r = { .call = c, .a = c->h + d * p->rows, .a_row = 1, .a_step = line(p), .b_data = c->before, .n = p->hidden,
                   .c = listed(p, DR, k) };
    if (r.c->value >= 0) {
      lay_before(c, l, d, threads);
      run_gemm(c, &r, p->rows, p->hidden, places);
    }
    bias_gradient(c, listed(p, DBW, k), c->x + d * p->rows, threads);
    bias_gradient(c, listed(p, DBR, k), c->h + d * p->rows, threads);
  }
}

static void input_gradient(const call *c, int64_t l, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = l ? width_of(p) : p->inputs, places = p->steps * p->batch, k = l * p->directions;
  float *out = l ? c->out[l % 2] : NULL;
  const gradient x = { .call = c, .a = c->x, .a_row = line(p), .a_step = 1, .b = { listed(p, W, k), listed(p, W, k + p->directions - 1) },
                       .half = p->rows, .n = inputs, .c = &p->one[DX], .c_data = out, .c_row = inputs, .three = true };
  run_gemm(c, &x, places, inputs, line(p));
  if (!l || p->a.dropout == 0) return;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < places; e++) drop(c, ((l - 1) * places + e) * inputs, inputs, out + e * inputs);
}

/* ---- run ------------------------------------------------------------------------------------------------- */

static float *take(float **next, int64_t floats)
{
  float *p = *next;
  *next += qn_round_up(floats, 16);
  return p;
}

/* Places the buffers from `next` on; returns their end. c->p alone is needed. */
static float *lay_out(call *c, float *next)
{
  const problem *p = c->p;
  const int64_t places = p->steps * p->batch, widest = p->a.layers > 1 ? qn_max_i64(p->inputs, width_of(p)) : p->inputs;
  c->x = take(&next, places * line(p));
  c->h = two_slopes(p) ? take(&next, places * line(p)) : c->x;
  c->in = take(&next, places * widest);
  c->before = take(&next, places * p->hidden);
  for (int i = 0; i < 2; i++) c->out[i] = take(&next, places * width_of(p));
  c->panel = take(&next, p->directions * p->blocks * p->rows * p->block);
  for (int i = 0; i < 2; i++) c->step[i] = take(&next, p->directions * p->batch * p->rows);
  c->carry = take(&next, p->directions * p->batch * pitch(p));
  c->dc = take(&next, p->directions * p->batch * pitch(p));
  return next;
}

qn_status CPU_NAME(cpu_rnn_back_run)(const qn_prepared *prepared, const qn_launch *launch);
qn_status CPU_NAME(cpu_rnn_back_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  call c = { .p = p, .launch = launch, .isa = &CPU_GEMM_ISA, .length = launch->workspace };
  const operand *lengths = &p->one[LENGTHS], *dy = &p->one[DY], *seed = &p->one[SEED], *offset = &p->one[OFFSET];
  c.gemm = (char *)launch->workspace + qn_round_up(p->batch * 8, 64);
  lay_out(&c, (float *)(void *)((char *)c.gemm + p->gemm_bytes));
  for (int64_t b = 0; b < p->batch; b++) {
    const int64_t given = lengths->value < 0 ? p->steps : qn_load_i64(data(launch, lengths, b * lengths->stride[0]), lengths->dtype);
    c.length[b] = qn_max_i64(0, qn_min_i64(given, p->steps));
  }
  c.seed = seed->value < 0 ? 0 : (uint64_t)qn_load_i64(data(launch, seed, 0), seed->dtype);
  c.offset = offset->value < 0 ? 0 : (uint64_t)qn_load_i64(data(launch, offset, 0), offset->dtype);
  const int wanted = cpu_threads(launch, p->batch * p->rows * p->hidden / 4);
  const int threads = (int)qn_max_i64(1, qn_min_i64(wanted, p->directions * p->blocks));
  for (int64_t e = 0; e < p->steps * p->batch; e++)
    read_row(launch, dy, place_of(dy, e / p->batch, e % p->batch, 0, 0), dy->stride[2], width_of(p),
             c.out[p->a.layers % 2] + e * width_of(p));
  for (int64_t l = p->a.layers - 1; l >= 0; l--) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
      int me = 0, team = 1;
#ifdef _OPENMP
      me = omp_get_thread_num(), team = omp_get_num_threads();
#endif
      walk_layer(&c, l, me, team);
    }
    weight_gradients(&c, l, threads);
    input_gradient(&c, l, threads);
  }
  return QN_OK;
}

/* ---- prepare --------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static operand operand_of(const qn_request *request, int32_t value)
{
  operand o = { .value = value };
  if (value < 0) return o;
  o.dtype = request->value[value].dtype;
  memcpy(o.stride, request->value[value].stride, sizeof o.stride);
  return o;
}

/* The largest workspace of the products; the isa is that of the copy. */
static uint64_t gemm_bytes(const problem *p, const cpu_gemm_isa *isa)
{
  const int64_t places = p->steps * p->batch, width = width_of(p);
  const int64_t size[5][3] = { { p->rows, p->inputs, places }, { p->rows, width, places }, { p->rows, p->hidden, places },
                               { places, p->inputs, line(p) }, { places, width, line(p) } };
  uint64_t most = 0;
  for (int i = 0; i < 5; i++) {
    cpu_gemm g;
    const uint64_t bytes = plan_gemm(&g, isa, p->threads, size[i][0], size[i][1], size[i][2]);
    most = bytes > most ? bytes : most;
  }
  return (uint64_t)qn_round_up((int64_t)most, 64);
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
#define ROLE(name) QN_ROLE_RNN_BACKWARD_##name
  static const uint32_t single[SINGLES] = { ROLE(DY), ROLE(DHT), ROLE(DCT), ROLE(X), ROLE(Y), ROLE(H0), ROLE(C0), ROLE(LENGTHS),
                                            ROLE(GATES), ROLE(CELLS), ROLE(INNER), ROLE(SEED), ROLE(OFFSET), ROLE(DX), ROLE(DH0),
                                            ROLE(DC0) };
  static const uint32_t lists[LISTS] = { ROLE(W), ROLE(R), ROLE(DW), ROLE(DR), ROLE(DBW), ROLE(DBR) };
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_rnn *a = op->attr;
  const qn_value *x = &request->value[qn_role(op, ROLE(X))], *r = &request->value[qn_role(op, ROLE(R))];
  if (x->dtype == QN_F64) return qn_refuse(prepared, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (qn_role(op, ROLE(PROJECTION)) >= 0) return qn_refuse(prepared, "a state is what its cell gives", "projection", "none", "one");
  if (a->cell == QN_RNN_GRU && a->reset != QN_RNN_RESET_AFTER)
    return qn_refuse(prepared, "all gates come of one product by h", "reset", "after", "before");

  problem p = { .a = *a, .steps = x->dim[0], .batch = x->dim[1], .inputs = x->dim[2], .hidden = r->dim[1], .rows = r->dim[0] };
  const bool avx512 = strstr(prepared->engine->name, "_avx512"), avx2 = strstr(prepared->engine->name, "_avx2");
  const int64_t lanes = avx512 ? 16 : avx2 ? 8 : 4;
  const cpu_gemm_isa *isa = &cpu_gemm_baseline;
#ifdef QN_AVX2
  if (avx2) isa = &cpu_gemm_avx2;
#endif
#ifdef QN_AVX512
  if (avx512) isa = &cpu_gemm_avx512;
#endif
  p.directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  p.gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  p.n_lists = a->layers * p.directions;
  p.vectors = p.hidden >= 8 * lanes ? 4 : 1;
  p.block = p.vectors * lanes;
  p.blocks = qn_ceil_div(p.hidden, p.block);
  p.threads = request->demands->threads;
  const double widest = (double)p.inputs + 4 * (double)p.rows;
  if (widest * ((double)p.rows * 4 + (double)p.steps * (double)p.batch) > 0x1p50)
    return qn_refuse(prepared, "keeps slopes and inputs laid out", "x", "2^50 numbers of them", "%.0f", widest * (double)p.rows);
  p.gemm_bytes = gemm_bytes(&p, isa);

  problem *kept = cpu_state(prepared, sizeof p + (size_t)(LISTS * p.n_lists) * sizeof(operand));
  if (!kept) return QN_NO_MEMORY;
  *kept = p;
  call c = { .p = kept };
  prepared->workspace = (uint64_t)qn_round_up(p.batch * 8, 64) + p.gemm_bytes + (uint64_t)((char *)lay_out(&c, (float *)0) - (char *)0);
  for (int i = 0; i < SINGLES; i++) kept->one[i] = operand_of(request, qn_role(op, single[i]));
  for (int i = 0; i < LISTS; i++)
    for (int64_t k = 0; k < p.n_lists; k++) {
      const int32_t at = op->first[lists[i]] + (int32_t)k;
      kept->list[i * p.n_lists + k] = operand_of(request, at < op->first[lists[i] + 1] ? op->arg[at] : -1);
    }
  return QN_OK;
}

CPU_RUNS(cpu_rnn_back_run);
#define ROW(name_, run_)                                                                                                                  \
  { .name = name_, .op = QN_OP_RNN_BACKWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare, .run = run_, \
    .release = cpu_release },
static const qn_engine row[] = { CPU_COPIES(ROW, "steps", cpu_rnn_back_run) };
const qn_engine_list cpu_rnn_back = { row, sizeof row / sizeof *row };
#endif
