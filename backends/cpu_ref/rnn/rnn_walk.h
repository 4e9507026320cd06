/* rnn_walk.h -- a layer's gradient, step by step from the last to the first: what rnn_back.c calls a walk. Included by it alone. */
#ifndef CPU_RNN_WALK_H
#define CPU_RNN_WALK_H
#include "rnn_cells.h"

enum { DY, DHT, DCT, X, Y, H0, C0, LENGTHS, GATES, CELLS, INNER, SEED, OFFSET, DX, DH0, DC0, SINGLES };
enum { W, R, PROJECTION, DW, DR, DPROJECTION, DBW, DBR, LISTS };

typedef struct problem {
  qn_rnn  a;
  int64_t steps, batch, inputs, hidden, state, directions, gates, kept, rows, n_lists;      /* state: units of h; rows: gates hidden */
  int64_t vectors, block, blocks, state_blocks;   /* units of a block, in vectors and in all; blocks of hidden, of state */
  bool    projected, before;
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
  real *x, *h;                            /* slopes; the same where the cell has no other of r h */
  real *in, *before, *out[2];             /* inputs; states before, of a direction; gradients by what a layer gives */
  real *panel, *step[2], *carry, *dc;     /* of each direction */
  real *of_full, *dh, *dh_step;           /* projection in panels; dh by place, and of a step */
  double *bias[2];                        /* sums of the slopes of w x and of r h: [direction][gate, unit] */
  void  *gemm;
  barrier barrier;
  uint64_t seed, offset;
} call;

static int64_t width_of(const problem *p) { return p->directions * p->state; }
static int64_t pitch(const problem *p) { return p->blocks * p->block; }         /* of a cell's state and of h */
static int64_t h_pitch(const problem *p) { return p->state_blocks * p->block; }
static int64_t line(const problem *p) { return p->directions * p->rows; }       /* of x and h */
static bool two_slopes(const problem *p) { return p->a.cell == QN_RNN_GRU && !p->before; }
/* Does anything read what step s leaves to the one before? */
static bool is_carried(const problem *p, int64_t s) { return s > 0 || p->one[DH0].value >= 0; }
static const operand *listed(const problem *p, int list, int64_t k) { return &p->list[list * p->n_lists + k]; }

static bool reversed(const problem *p, int64_t direction) { return p->a.direction == QN_RNN_BACKWARD || direction == 1; }
/* The place in time of step s; beyond a sequence's end, of the places that are left. */
static int64_t time_of(const call *c, int64_t direction, int64_t b, int64_t s)
{
  return s < c->length[b] && reversed(c->p, direction) ? c->length[b] - 1 - s : s;
}

/* ---- slopes of a block's units, of one step and sequence --------------------------------------------- */

/* n units of what layer l gave at time t, before dropout. */
static void read_output(const call *c, int64_t l, int64_t t, int64_t b, int64_t at, int64_t n, real *to)
{
  const operand *y = &c->p->one[Y], *inner = &c->p->one[INNER];
  if (l == c->p->a.layers - 1) read_row(c->launch, y, place_of(y, t, b, at, 0), y->stride[2], n, to);
  else read_row(c->launch, inner, place_of(inner, l, t, b, at), inner->stride[3], n, to);
}

static void read_before(const call *c, int64_t l, int64_t direction, int64_t s, int64_t b, int64_t unit0, int64_t n, real *to)
{
  const problem *p = c->p;
  const operand *h0 = &p->one[H0];
  if (s) read_output(c, l, time_of(c, direction, b, s - 1), b, direction * p->state + unit0, n, to);
  else if (h0->value >= 0) read_row(c->launch, h0, place_of(h0, l * p->directions + direction, b, unit0, 0), h0->stride[2], n, to);
  else memset(to, 0, (size_t)n * sizeof *to);
}

/* Is a step one place in time for all sequences? Then the rows of h are what the product by r takes, else `step` has them side by side. */
static bool in_place(const call *c, int64_t direction) { return !reversed(c->p, direction) || c->p->one[LENGTHS].value < 0; }
static const real *slopes_of(const call *c, int64_t direction, int64_t s, int64_t b, int64_t *step)
{
  const problem *p = c->p;
  *step = in_place(c, direction) ? line(p) : p->rows;
  if (!in_place(c, direction)) return c->step[s % 2] + (direction * p->batch + b) * p->rows;
  return c->h + ((reversed(p, direction) ? p->steps - 1 - s : s) * p->batch + b) * line(p) + direction * p->rows;
}

/* The slopes of gate g, of w x and of r h, to where they are kept, and to the biases' gradients. */
static void keep_slopes(const call *c, int64_t direction, int64_t s, int64_t b, int64_t g, int64_t unit0, int64_t n, const real *of_x,
                        const real *of_h)
{
  const problem *p = c->p;
  const int64_t row = direction * p->rows + g * p->hidden + unit0, at = (time_of(c, direction, b, s) * p->batch + b) * line(p) + row;
  memcpy(c->x + at, of_x, (size_t)n * sizeof *of_x);
  if (!in_place(c, direction))
    memcpy(c->step[s % 2] + (direction * p->batch + b) * p->rows + g * p->hidden + unit0, of_h, (size_t)n * sizeof *of_h);
  for (int64_t i = 0; i < n; i++) c->bias[0][row + i] += (double)of_x[i];
  if (!two_slopes(p)) return;
  memcpy(c->h + at, of_h, (size_t)n * sizeof *of_h);
  for (int64_t i = 0; i < n; i++) c->bias[1][row + i] += (double)of_h[i];
}

/* Step s of sequence b, for the units of one block: from dh, which becomes what reaches h beside r, to x, h and the step's slopes. With the
 * reset before, all but that of the reset gate. */
static void step_slopes(const call *c, int64_t l, int64_t direction, int64_t block, int64_t s, int64_t b, real *dh)
{
  const problem *p = c->p;
  const int64_t k = l * p->directions + direction, unit0 = block * p->block, n = qn_min_i64(p->block, p->hidden - unit0);
  const int64_t t = time_of(c, direction, b, s);
  const operand *gates = &p->one[GATES], *cells = &p->one[CELLS], *c0 = &p->one[C0];
  real gate[4][PIECE], d[4][PIECE] = { { 0 } }, raw[PIECE], old[PIECE] = { 0 }, q[PIECE];
  if (s >= c->length[b]) {
    for (int64_t g = 0; g < p->gates; g++) keep_slopes(c, direction, s, b, g, unit0, n, d[g], d[g]);
    return;
  }
  for (int64_t g = 0; g < p->kept; g++)
    read_row(c->launch, gates, place_of(gates, k, t, b, g * p->hidden + unit0), gates->stride[3], n, gate[g]);
  if (p->a.cell == QN_RNN_LSTM) {
    read_row(c->launch, cells, place_of(cells, k, t, b, unit0), cells->stride[3], n, raw);
    if (s) {
      read_row(c->launch, cells, place_of(cells, k, time_of(c, direction, b, s - 1), b, unit0), cells->stride[3], n, old);
      for (int64_t i = 0; i < n; i++) old[i] = bounded(old[i], (real)p->a.clip);
    } else if (c0->value >= 0)
      read_row(c->launch, c0, place_of(c0, k, b, unit0, 0), c0->stride[2], n, old);
    lstm_slopes((int)n, gate, raw, old, dh, c->dc + (direction * p->batch + b) * pitch(p) + unit0, (real)p->a.clip, d);
    memset(dh, 0, (size_t)n * sizeof *dh);
  } else if (p->a.cell == QN_RNN_GRU) {
    read_before(c, l, direction, s, b, unit0, n, old);
    if (p->before) gru_new_slopes((int)n, gate, old, dh, d);
    else gru_slopes((int)n, gate, old, dh, d, q);
  } else {
    read_output(c, l, t, b, direction * p->state + unit0, n, old);
    plain_slopes((int)n, old, dh, d[0], p->a.cell == QN_RNN_TANH);
    memset(dh, 0, (size_t)n * sizeof *dh);
  }
  for (int64_t g = p->before; g < p->gates; g++) keep_slopes(c, direction, s, b, g, unit0, n, d[g], two_slopes(p) && g == 2 ? q : d[g]);
}

/* ---- phases of a step, of one block ------------------------------------------------------------------- */

/* What dy adds to carry, in units of h. */
static void add_given(const call *c, int64_t l, int64_t direction, int64_t t, int64_t b, int64_t unit0, int64_t n, real *dh)
{
  const problem *p = c->p;
  const real *dy = c->out[(l + 1) % 2] + (t * p->batch + b) * width_of(p) + direction * p->state + unit0;
  for (int64_t i = 0; i < n; i++) dh[i] += dy[i];
}

/* With projection: dh of a block of h, by place and for the step. */
static void whole_dh(const call *c, int64_t l, int64_t direction, int64_t block, int64_t s)
{
  const problem *p = c->p;
  const int64_t unit0 = block * p->block, n = qn_min_i64(p->block, p->state - unit0);
  for (int64_t b = 0; b < p->batch; b++) {
    const int64_t t = time_of(c, direction, b, s);
    real *carry = c->carry + (direction * p->batch + b) * h_pitch(p) + unit0;
    real *of_step = c->dh_step + (direction * p->batch + b) * p->state + unit0;
    memset(of_step, 0, (size_t)n * sizeof *of_step);
    if (s < c->length[b]) {
      add_given(c, l, direction, t, b, unit0, n, carry);
      memcpy(of_step, carry, (size_t)n * sizeof *carry);
      memset(carry, 0, (size_t)n * sizeof *carry);
    }
    memcpy(c->dh + (t * p->batch + b) * width_of(p) + direction * p->state + unit0, of_step, (size_t)n * sizeof *of_step);
  }
}

/* sums [m][block] = start + rows of a [m][n_k] times the block's panel, of which `panel` is the first row */
static void by_panel(const problem *p, int64_t m, int64_t n_k, const real *a, int64_t a_step, const real *panel, const real *start,
                     int64_t start_step, real *sums)
{
  panel_product(p->vectors, m, n_k, a, a_step, panel, start, start_step, sums, p->block);
}

static void block_slopes(const call *c, int64_t l, int64_t direction, int64_t block, int64_t s)
{
  const problem *p = c->p;
  const int64_t unit0 = block * p->block, n = qn_min_i64(p->block, p->hidden - unit0), row0 = direction * p->batch;
  const real zero[PIECE] = { 0 };
  real full[GROUP * PIECE];
  for (int64_t b = 0; b < p->batch; b++) {
    const bool beyond = s >= c->length[b];
    real *dh = c->carry + (row0 + b) * h_pitch(p) + unit0;
    if (p->projected) {
      if (b % GROUP == 0)
        by_panel(p, qn_min_i64(GROUP, p->batch - b), p->state, c->dh_step + (row0 + b) * p->state, p->state,
                 c->of_full + (direction * p->blocks + block) * p->state * p->block, zero, 0, full);
      dh = full + b % GROUP * p->block;
    } else if (!beyond)
      add_given(c, l, direction, time_of(c, direction, b, s), b, unit0, n, dh);
    step_slopes(c, l, direction, block, s, b, dh);
  }
}

/* With the reset before: the slopes of the reset gate. */
static void block_resets(const call *c, int64_t l, int64_t direction, int64_t block, int64_t s)
{
  const problem *p = c->p;
  const int64_t k = l * p->directions + direction, unit0 = block * p->block, n = qn_min_i64(p->block, p->hidden - unit0);
  const operand *gates = &p->one[GATES];
  const real zero[PIECE] = { 0 };
  real sums[GROUP * PIECE], reset[PIECE], old[PIECE], d[PIECE];
  for (int64_t b = 0; b < p->batch; b++) {
    const int64_t at = direction * p->batch + b;
    if (b % GROUP == 0) {
      int64_t step;
      const real *slopes = slopes_of(c, direction, s, b, &step) + 2 * p->hidden;
      by_panel(p, qn_min_i64(GROUP, p->batch - b), p->hidden, slopes, step,
               c->panel + ((direction * p->state_blocks + block) * p->rows + 2 * p->hidden) * p->block, zero, 0, sums);
    }
    if (s >= c->length[b]) continue;
    read_row(c->launch, gates, place_of(gates, k, time_of(c, direction, b, s), b, unit0), gates->stride[3], n, reset);
    read_before(c, l, direction, s, b, unit0, n, old);
    gru_reset_slopes((int)n, reset, old, sums + b % GROUP * p->block, c->carry + at * h_pitch(p) + unit0, d);
    keep_slopes(c, direction, s, b, 0, unit0, n, d, d);
  }
}

/* What the step before gets: carry of a block of h. A sequence that the step is beyond keeps its own. */
static void block_carry(const call *c, int64_t direction, int64_t block, int64_t s)
{
  const problem *p = c->p;
  const real *panel = c->panel + (direction * p->state_blocks + block) * p->rows * p->block;
  real sums[GROUP * PIECE];
  for (int64_t b = 0; b < p->batch; b += GROUP) {
    const int64_t m = qn_min_i64(GROUP, p->batch - b), at = direction * p->batch + b;
    real *carry = c->carry + at * h_pitch(p) + block * p->block;
    int64_t step;
    const real *slopes = slopes_of(c, direction, s, b, &step);
    by_panel(p, m, p->before ? 2 * p->hidden : p->rows, slopes, step, panel, carry, h_pitch(p), sums);
    for (int64_t i = 0; i < m; i++)
      if (s < c->length[b + i]) memcpy(carry + i * h_pitch(p), sums + i * p->block, (size_t)p->block * sizeof *carry);
  }
}

/* ---- a layer ----------------------------------------------------------------------------------------- */

/* panel[row][unit] of the block's columns of w, 0 beyond them */
static void lay_panel(const call *c, const operand *w, int64_t rows, int64_t columns, int64_t block, real *panel)
{
  const problem *p = c->p;
  const int64_t unit0 = block * p->block, n = qn_min_i64(p->block, columns - unit0);
  for (int64_t row = 0; row < rows; row++, panel += p->block) {
    read_row(c->launch, w, row * w->stride[0] + unit0 * w->stride[1], w->stride[1], n, panel);
    for (int64_t i = n; i < p->block; i++) panel[i] = 0;
  }
}

/* Gradients by the states after the last step, or before the first, of a block of `width` units. */
static void states(const call *c, const operand *o, int64_t k, int64_t direction, int64_t width, int64_t row_pitch, int64_t block,
                   real *buffer, bool load)
{
  const problem *p = c->p;
  const int64_t unit0 = block * p->block, n = qn_min_i64(p->block, width - unit0);
  for (int64_t b = 0; b < p->batch; b++) {
    real *own = buffer + (direction * p->batch + b) * row_pitch + unit0;
    if (load) memset(own, 0, (size_t)p->block * sizeof *own);
    if (o->value < 0) continue;
    if (load) read_row(c->launch, o, place_of(o, k, b, unit0, 0), o->stride[2], n, own);
    else write_row(c->launch, o, place_of(o, k, b, unit0, 0), o->stride[2], n, own);
  }
}

/* Thread `me` of `threads` has an equal share of the blocks of both directions. */
static void walk_layer(call *c, int64_t l, int me, int threads)
{
  const problem *p = c->p;
  const int64_t items = p->directions * p->blocks, first = items * me / threads, end = items * (me + 1) / threads;
  const int64_t each = p->state_blocks, h_items = p->directions * each;
  const int64_t h_first = h_items * me / threads, h_end = h_items * (me + 1) / threads;
  for (int64_t e = first; e < end; e++) {
    const int64_t direction = e / p->blocks, block = e % p->blocks, k = l * p->directions + direction;
    if (p->projected)
      lay_panel(c, listed(p, PROJECTION, k), p->state, p->hidden, block, c->of_full + e * p->state * p->block);
    states(c, &p->one[DCT], k, direction, p->hidden, pitch(p), block, c->dc, true);
    for (int64_t g = 0; g < p->gates; g++)
      for (int64_t unit = block * p->block; unit < qn_min_i64(p->hidden, (block + 1) * p->block); unit++)
        c->bias[0][direction * p->rows + g * p->hidden + unit] = c->bias[1][direction * p->rows + g * p->hidden + unit] = 0;
  }
  for (int64_t e = h_first; e < h_end; e++) {
    if (p->before || is_carried(p, p->steps - 1))
      lay_panel(c, listed(p, R, l * p->directions + e / each), p->rows, p->state, e % each, c->panel + e * p->rows * p->block);
    states(c, &p->one[DHT], l * p->directions + e / each, e / each, p->state, h_pitch(p), e % each, c->carry, true);
  }
  for (int64_t s = p->steps - 1; s >= 0; s--) {
    if (p->projected) {
      for (int64_t e = h_first; e < h_end; e++) whole_dh(c, l, e / each, e % each, s);
      meet(&c->barrier, threads);
    }
    for (int64_t e = first; e < end; e++) block_slopes(c, l, e / p->blocks, e % p->blocks, s);
    meet(&c->barrier, threads);
    if (p->before) {
      for (int64_t e = first; e < end; e++) block_resets(c, l, e / p->blocks, e % p->blocks, s);
      meet(&c->barrier, threads);
    }
    for (int64_t e = h_first; e < h_end && is_carried(p, s); e++) block_carry(c, e / each, e % each, s);
  }
  for (int64_t e = first; e < end; e++)
    states(c, &p->one[DC0], l * p->directions + e / p->blocks, e / p->blocks, p->hidden, pitch(p), e % p->blocks, c->dc, false);
  for (int64_t e = h_first; e < h_end; e++)
    states(c, &p->one[DH0], l * p->directions + e / each, e / each, p->state, h_pitch(p), e % each, c->carry, false);
}
#endif
