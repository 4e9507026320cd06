/* rnn_steps.c -- recurrent networks: lstm with and without projection, gru with the reset after the product or before it, tanh, relu.
 *
 * Units are cut into blocks of a vector's lanes, which the threads share out for the whole of a layer: only the state h that all blocks
 * read goes from thread to thread, over a barrier at each step. A layer goes through its sequences in chunks of steps:
 *   the chunk's inputs are copied side by side, in the order of the steps       in [row = (step, sequence)][inputs]
 *   w x + biases of all its rows, as one product                                sums [block][row][gate][lane]
 *   step by step: + r h, then the gates while the sums are in cache             h, c [sequence][unit]
 * Where a step's second product needs what all units gave to the first, the step has a second phase, after one more barrier:
 *   projection: full = o tanh(c), then h = projection full        gru, reset before: reset times h, then n's sums + r of it
 * Of w and r each thread lays out its own blocks first: panels [block][k][gate][lane], of which a product reads a row of gates times
 * lanes for each k. Where a weight meets few rows, that costs more than it saves: then its rows are read as they stand. Both directions of
 * a layer go side by side. Chunks and tiles, and so the order of a sum, follow from the problem, not from the number of threads. */
#include "rnn_cells.h"

enum { X, H0, C0, LENGTHS, SEED, OFFSET, Y, HT, CT, GATES, CELLS, INNER, SINGLES };
enum { W, R, BW, BR, PROJECTION, LISTS };
enum { CHUNK = 384,                       /* rows of a chunk, at least */
       FEW = CPU_VECTOR_BYTES == 64 ? 64 : 32,  /* rows up to which a weight is read as it stands: in all, */
       FEW_EACH = 3,                      /*   and in each of its products */
       STRIP = 64 };                      /* numbers of a row of a weight widened at once */

typedef struct problem {
  qn_rnn  a;
  int64_t steps, batch, inputs, hidden, state, directions, gates, kept, n_lists;      /* state: units of h; hidden: of a cell */
  int64_t lanes, blocks, state_blocks, chunk;     /* chunk: its steps */
  bool    projected, before;              /* a second phase: the projection, n after the reset */
  operand one[SINGLES];
  operand list[];                         /* LISTS times n_lists */
} problem;

/* ---- products by a weight as it stands -------------------------------------------------------------- */

enum { DOT_ROWS = CPU_VECTOR_BYTES == 64 ? 4 : 2 };

/* to[j] = the sum of the lanes of v[j], j < nv */
CPU_INLINE void add_lanes(const int nv, const v_real *v, real *to)
{
#if defined __AVX512F__ && !defined CPU_REAL_F64
  for (int j = 0; j < nv; j++) to[j] = _mm512_reduce_add_ps((__m512)v[j]);
#elif defined __AVX2__ && !defined CPU_REAL_F64
  const __m256 low = _mm256_hadd_ps((__m256)v[0], (__m256)v[nv > 1 ? 1 : 0]);
  const __m256 high = nv > 2 ? _mm256_hadd_ps((__m256)v[2], (__m256)v[nv > 3 ? 3 : 2]) : low, all = _mm256_hadd_ps(low, high);
  real four[4];
  _mm_storeu_ps(four, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
  memcpy(to, four, (size_t)nv * sizeof *to);
#else
  for (int j = 0; j < nv; j++) {
    real x[LANES];
    memcpy(x, &v[j], sizeof x);
    for (int n = LANES / 2; n; n /= 2)
      for (int i = 0; i < n; i++) x[i] += x[i + n];
    to[j] = x[0];
  }
#endif
}

/* sums[i] += a[i] . w[j] for rows i of a and nv rows j of w, each of n_k numbers side by side; steps in elements */
CPU_INLINE void dots(const int rows, const int nv, const uint32_t dtype, int64_t n_k, const real *a, int64_t a_step, const char *w,
                     int64_t w_step, real *sums, int64_t row_step, int64_t gate_step)
{
  v_real sum[DOT_ROWS][MOST_GATES];
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[i][j] = (v_real){ 0 };
  int64_t k = 0;
  for (; k + LANES <= n_k; k += LANES) {
    v_real x[DOT_ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) x[i] = v_load_real(a + i * a_step + k);
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      const v_real column = v_load_as(w, j * w_step + k, dtype);
#pragma GCC unroll 4
      for (int i = 0; i < rows; i++) sum[i][j] += x[i] * column;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++) {
    real total[MOST_GATES];
    add_lanes(nv, sum[i], total);
    for (int j = 0; j < nv; j++) {
      for (int64_t t = k; t < n_k; t++) total[j] += a[i * a_step + t] * load_as(w, j * w_step + t, dtype);
      sums[i * row_step + j * gate_step] += total[j];
    }
  }
}
CPU_INLINE void dots_in(const uint32_t dtype, int64_t gates, int64_t rows, int64_t n_k, const real *a, int64_t a_step, const char *w,
                        int64_t w_step, real *sums, int64_t row_step, int64_t gate_step)
{
  int64_t i = 0;
  for (; i + DOT_ROWS <= rows; i += DOT_ROWS) {
    const real *x = a + i * a_step;
    real *to = sums + i * row_step;
    if (gates == 4) dots(DOT_ROWS, 4, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
    else if (gates == 3) dots(DOT_ROWS, 3, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
    else if (gates == 2) dots(DOT_ROWS, 2, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
    else dots(DOT_ROWS, 1, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
  }
  for (; i < rows; i++) {
    const real *x = a + i * a_step;
    real *to = sums + i * row_step;
    if (gates == 4) dots(1, 4, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
    else if (gates == 3) dots(1, 3, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
    else if (gates == 2) dots(1, 2, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
    else dots(1, 1, dtype, n_k, x, a_step, w, w_step, to, row_step, gate_step);
  }
}
static void dots_of(uint32_t dtype, int64_t gates, int64_t rows, int64_t n_k, const real *a, int64_t a_step, const char *w, int64_t w_step,
                    real *sums, int64_t row_step, int64_t gate_step)
{
  if (CPU_REAL == QN_F32 && dtype == QN_BF16) dots_in(QN_BF16, gates, rows, n_k, a, a_step, w, w_step, sums, row_step, gate_step);
  else if (CPU_REAL == QN_F32 && dtype == QN_F16) dots_in(QN_F16, gates, rows, n_k, a, a_step, w, w_step, sums, row_step, gate_step);
  else dots_in(CPU_REAL, gates, rows, n_k, a, a_step, w, w_step, sums, row_step, gate_step);
}

/* ---- one call ------------------------------------------------------------------------------------------ */

/* A weight of one layer and direction, or some gates of it: as it stands, or in panels. */
typedef struct weight {
  const operand *from;
  int64_t first, gates, units, columns;   /* its first row; units of a gate */
  const char *rows;                       /* NULL: in panels */
  real   *panels;
} weight;

/* The buffers of a direction. */
typedef struct side {
  real   *in, *sums, *start;              /* start: biases of the sums, [block][gate][lane]; of gru also those of r h, after them */
  real   *h[2], *c, *between;             /* between: what the first phase of a step leaves to the second */
  real   *panels[3];
  weight  w, r, second;                   /* second: of the second phase */
} side;

typedef struct call {
  const problem *p;
  const qn_launch *launch;
  int64_t *length;
  real    *out[2];                        /* what a layer gives to the next: [step][sequence][direction, unit] */
  side     side[2];
  barrier  barrier;
  uint64_t seed, offset;
} call;

static int64_t pitch(const problem *p) { return p->blocks * p->lanes; }        /* of a cell's state and of h, in elements */
static int64_t h_pitch(const problem *p) { return p->state_blocks * p->lanes; }
static int64_t width_of(const problem *p) { return p->directions * p->state; }
static int64_t widest(const problem *p) { return p->a.layers > 1 ? qn_max_i64(p->inputs, width_of(p)) : p->inputs; }
static bool two_phases(const problem *p) { return p->projected || p->before; }
static const operand *listed(const problem *p, int list, int64_t k) { return &p->list[list * p->n_lists + k]; }

/* May a weight that meets `rows` rows in all, `each` at a time, be read as it stands? */
static bool as_it_stands(const operand *w, int64_t rows, int64_t each)
{
  return w->stride[1] == 1 && rows <= FEW * (each <= FEW_EACH ? 1000 : 1) && each <= FEW;
}

static weight weight_of(const call *c, const operand *from, int64_t first, int64_t gates, int64_t units, int64_t columns, real *panels,
                        int64_t each)
{
  const problem *p = c->p;
  const bool stands = as_it_stands(from, p->steps * p->batch, each);
  return (weight){ from, first, gates, units, columns,
                   stands ? data(c->launch, from, first * from->stride[0]) : NULL, panels };
}

/* ---- weights of a block --------------------------------------------------------------------------------- */

/* panel[k][gate][lane] of the block's units, 0 beyond them */
static void lay_panel(const call *c, const weight *w, int64_t block)
{
  const operand *from = w->from;
  const int64_t step = w->gates * LANES, units = qn_min_i64(LANES, w->units - block * LANES), row_step = from->stride[0];
  const bool in_place = from->dtype == CPU_REAL && from->stride[1] == 1;
  real strip[LANES][STRIP], *panel = w->panels + block * w->columns * step;
  if (w->rows) return;
  for (int64_t i = 0; i < w->columns * step && units < LANES; i++) panel[i] = 0;
  for (int64_t g = 0; g < w->gates; g++) {
    const int64_t first = (w->first + g * w->units + block * LANES) * row_step;
    for (int64_t k = 0; k < w->columns; k += STRIP) {
      const int64_t n = qn_min_i64(STRIP, w->columns - k);
      const real *rows = in_place ? (const real *)(const void *)data(c->launch, from, first + k) : strip[0];
      for (int64_t i = 0; i < units && !in_place; i++)
        read_row(c->launch, from, first + i * row_step + k * from->stride[1], from->stride[1], n, strip[i]);
      turn(rows, in_place ? row_step : STRIP, units, n, panel + k * step + g * LANES, step);
    }
  }
}

/* Where the sums of a block start: both biases; of gru's n only that of w x, and that of r h for itself. */
static void lay_biases(const call *c, const operand *bw, const operand *br, int64_t block, real *start)
{
  const problem *p = c->p;
  const int64_t units = qn_min_i64(LANES, p->hidden - block * LANES), step = p->gates * LANES;
  real *own = start + p->blocks * step;
  memset(start + block * step, 0, (size_t)step * sizeof(real));
  memset(own + block * step, 0, (size_t)step * sizeof(real));
  for (int64_t g = 0; g < p->gates; g++) {
    real x[2][LANES] = { { 0 } };
    const int64_t at = g * p->hidden + block * LANES;
    if (bw->value >= 0) read_row(c->launch, bw, at * bw->stride[0], bw->stride[0], units, x[0]);
    if (br->value >= 0) read_row(c->launch, br, at * br->stride[0], br->stride[0], units, x[1]);
    const bool apart = p->a.cell == QN_RNN_GRU && !p->before && g == 2;
    for (int64_t i = 0; i < units; i++) {
      start[block * step + g * LANES + i] = apart ? x[0][i] : x[0][i] + x[1][i];
      own[block * step + g * LANES + i] = x[1][i];
    }
  }
}

/* ---- products ------------------------------------------------------------------------------------------- */

/* sums [rows][gate][lane] = start + the block's rows of w times rows of a; start_step 0: the same for all rows. May be in place. */
static void product(const weight *w, int64_t block, int64_t rows, const real *a, int64_t a_step, const real *start, int64_t start_step,
                    real *sums, int64_t sums_step)
{
  const int64_t step = w->gates * LANES, units = qn_min_i64(LANES, w->units - block * LANES), row_step = w->from->stride[0];
  if (!w->rows) {
    panel_product(w->gates, rows, w->columns, a, a_step, w->panels + block * w->columns * step, start, start_step, sums, sums_step);
    return;
  }
  for (int64_t i = 0; i < rows && sums != start; i++) memcpy(sums + i * sums_step, start + i * start_step, (size_t)step * sizeof *sums);
  const int64_t row_bytes = row_step * qn_kit_bytes(w->from->dtype);
  const char *own = w->rows + block * LANES * row_bytes;
  if (w->gates == 1)                      /* several units at once in the place of gates */
    for (int64_t unit = 0, n; unit < units; unit += n) {
      n = qn_min_i64(MOST_GATES, units - unit);
      dots_of(w->from->dtype, n, rows, w->columns, a, a_step, own + unit * row_bytes, row_step, sums + unit, sums_step, 1);
    }
  else
    for (int64_t unit = 0; unit < units; unit++)
      dots_of(w->from->dtype, w->gates, rows, w->columns, a, a_step, own + unit * row_bytes, w->units * row_step, sums + unit, sums_step,
              LANES);
}

/* ---- a layer ------------------------------------------------------------------------------------------- */

static bool reversed(const problem *p, int64_t direction) { return p->a.direction == QN_RNN_BACKWARD || direction == 1; }
/* The place in time of step s; beyond a sequence's end, of the places that are left. */
static int64_t time_of(const call *c, int64_t direction, int64_t b, int64_t s)
{
  return s < c->length[b] && reversed(c->p, direction) ? c->length[b] - 1 - s : s;
}

/* The rows of a chunk of n steps from `first` on, those of thread `me`. */
static void copy_inputs(const call *c, int64_t layer, int64_t first, int64_t n, int me, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = layer ? width_of(p) : p->inputs, rows = n * p->batch, all = p->directions * rows;
  const operand *x = &p->one[X];
  for (int64_t e = all * me / threads; e < all * (me + 1) / threads; e++) {
    const int64_t direction = e / rows, s = first + e % rows / p->batch, b = e % p->batch, t = time_of(c, direction, b, s);
    real *to = c->side[direction].in + e % rows * inputs;
    if (s >= c->length[b]) memset(to, 0, (size_t)inputs * sizeof *to);
    else if (layer) memcpy(to, c->out[(layer - 1) % 2] + (t * p->batch + b) * inputs, (size_t)inputs * sizeof *to);
    else read_row(c->launch, x, t * x->stride[0] + b * x->stride[1], x->stride[2], inputs, to);
  }
}

/* Stores n units from unit0 on of what the layer gives at time t, and in training what backward needs. */
static void store_out(const call *c, int64_t layer, int64_t direction, int64_t t, int64_t b, int64_t unit0, int64_t n, const real *h)
{
  const problem *p = c->p;
  const operand *y = &p->one[Y], *inner = &p->one[INNER];
  const int64_t at = direction * p->state + unit0;
  if (layer == p->a.layers - 1) {
    write_row(c->launch, y, place_of(y, t, b, at, 0), y->stride[2], n, h);
    return;
  }
  memcpy(c->out[layer % 2] + (t * p->batch + b) * width_of(p) + at, h, (size_t)n * sizeof *h);
  if (inner->value >= 0) write_row(c->launch, inner, place_of(inner, layer, t, b, at), inner->stride[3], n, h);
}
static void store_kept(const call *c, int64_t layer, int64_t direction, int64_t t, int64_t b, int64_t unit0, int64_t n, const real *gate,
                       const real *raw)
{
  const problem *p = c->p;
  const operand *gates = &p->one[GATES], *cells = &p->one[CELLS];
  const int64_t k = layer * p->directions + direction;
  for (int64_t g = 0; g < p->kept && gates->value >= 0; g++)
    write_row(c->launch, gates, place_of(gates, k, t, b, g * p->hidden + unit0), gates->stride[3], n, gate + g * LANES);
  if (cells->value >= 0) write_row(c->launch, cells, place_of(cells, k, t, b, unit0), cells->stride[3], n, raw);
}

/* ---- a step of the units of one block --------------------------------------------------------------------- */

/* Step s, number `at` of its chunk; all of it, or what goes before the second phase. */
static void step_block(const call *c, const side *d, int64_t layer, int64_t direction, int64_t block, int64_t s, int64_t at)
{
  const problem *p = c->p;
  const int64_t step = p->gates * LANES, rows = p->chunk * p->batch;
  const int64_t unit0 = block * LANES, n = qn_min_i64(LANES, p->hidden - unit0);
  const real *old = d->h[s % 2];
  real *next = p->projected ? d->between : d->h[(s + 1) % 2];
  const bool gru = p->a.cell == QN_RNN_GRU && !p->before;
  real raw[LANES], kept[MOST_GATES * LANES];
  for (int64_t b0 = 0; b0 < p->batch; b0 += GROUP) {
    const int64_t m = qn_min_i64(GROUP, p->batch - b0);
    real *sums = d->sums + (block * rows + at * p->batch + b0) * step, n_of_x[GROUP][LANES];
    for (int64_t i = 0; i < m && gru; i++) {      /* n's sums of x and of h stay apart */
      memcpy(n_of_x[i], sums + i * step + 2 * LANES, sizeof n_of_x[i]);
      memcpy(sums + i * step + 2 * LANES, d->start + (p->blocks + block) * step + 2 * LANES, sizeof n_of_x[i]);
    }
    product(&d->r, block, m, old + b0 * h_pitch(p), h_pitch(p), sums, step, sums, step);
    for (int64_t i = 0; i < m; i++) {
      const int64_t b = b0 + i, place = b * pitch(p) + unit0;
      real *h = next + place;
      if (p->before) {
        gru_reset(sums + i * step, old + place, d->between + place);
        continue;
      }
      if (s >= c->length[b]) {
        memset(kept, 0, sizeof kept);
        memset(raw, 0, sizeof raw);
        store_kept(c, layer, direction, s, b, unit0, n, kept, raw);
        if (p->projected) memset(h, 0, LANES * sizeof *h);
        else memcpy(h, old + place, LANES * sizeof *h), store_out(c, layer, direction, s, b, unit0, n, raw);
        continue;
      }
      const int64_t t = time_of(c, direction, b, s);
      memcpy(kept, sums + i * step, (size_t)step * sizeof *kept);
      if (p->a.cell == QN_RNN_LSTM) lstm_gates(kept, d->c + place, h, raw, (real)p->a.clip);
      else if (gru) gru_gates(kept, n_of_x[i], old + place, h);
      else plain_gates(kept, h, p->a.cell == QN_RNN_TANH);
      store_kept(c, layer, direction, t, b, unit0, n, kept, raw);
      if (!p->projected) store_out(c, layer, direction, t, b, unit0, n, h);
    }
  }
}

/* The second phase, of units of h. */
static void finish_block(const call *c, const side *d, int64_t layer, int64_t direction, int64_t block, int64_t s, int64_t at)
{
  const problem *p = c->p;
  const int64_t step = p->gates * LANES, rows = p->chunk * p->batch, unit0 = block * LANES, n = qn_min_i64(LANES, p->state - unit0);
  const real zero[MOST_GATES * LANES] = { 0 };
  for (int64_t b0 = 0; b0 < p->batch; b0 += GROUP) {
    const int64_t m = qn_min_i64(GROUP, p->batch - b0);
    real *sums = p->before ? d->sums + (block * rows + at * p->batch + b0) * step : NULL, given[GROUP][LANES];
    const real *of_all = d->between + b0 * pitch(p);
    if (p->before) product(&d->second, block, m, of_all, pitch(p), sums + 2 * LANES, step, sums + 2 * LANES, step);
    else product(&d->second, block, m, of_all, pitch(p), zero, 0, given[0], LANES);
    for (int64_t i = 0; i < m; i++) {
      const int64_t b = b0 + i, place = b * h_pitch(p) + unit0;
      const bool beyond = s >= c->length[b];
      const int64_t t = beyond ? s : time_of(c, direction, b, s);
      const real *old = d->h[s % 2] + place;
      real *h = d->h[(s + 1) % 2] + place;
      if (beyond) memcpy(h, old, LANES * sizeof *h);
      else if (p->before) gru_new(sums + i * step, old, h);
      else memcpy(h, given[i], sizeof given[i]);
      if (p->before) store_kept(c, layer, direction, t, b, unit0, n, beyond ? zero : sums + i * step, zero);
      store_out(c, layer, direction, t, b, unit0, n, beyond ? zero : h);
    }
  }
}

/* States before the first step, or after the last, of the units of one block. */
static void move_states(const call *c, const operand *o, int64_t k, real *states, int64_t width, int64_t row_pitch, int64_t block,
                        bool load)
{
  const int64_t unit0 = block * LANES, n = qn_min_i64(LANES, width - unit0);
  for (int64_t b = 0; b < c->p->batch; b++) {
    real *own = states + b * row_pitch + unit0;
    if (load) memset(own, 0, LANES * sizeof *own);
    if (o->value < 0) continue;
    if (load) read_row(c->launch, o, place_of(o, k, b, unit0, 0), o->stride[2], n, own);
    else write_row(c->launch, o, place_of(o, k, b, unit0, 0), o->stride[2], n, own);
  }
}

/* What the layer gave, as dropout leaves it to the next. */
static void drop(const call *c, int64_t layer, int me, int threads)
{
  const problem *p = c->p;
  const int64_t all = p->steps * p->batch * width_of(p), first = all * me / threads, end = all * (me + 1) / threads;
  drop_row(c->seed, c->offset, p->a.dropout, layer * all + first, end - first, c->out[layer % 2] + first);
}

/* A layer: thread `me` of `threads` has an equal share of the blocks of both directions. */
static void run_layer(call *c, int64_t layer, const side sides[2], int me, int threads)
{
  const problem *p = c->p;
  const int64_t columns = layer ? width_of(p) : p->inputs, step = p->gates * LANES, rows = p->chunk * p->batch;
  const int64_t items = p->directions * p->blocks, first = items * me / threads, end = items * (me + 1) / threads;
  const int64_t h_items = p->directions * p->state_blocks, h_first = h_items * me / threads, h_end = h_items * (me + 1) / threads;
  for (int64_t e = first; e < end; e++) {
    const int64_t direction = e / p->blocks, block = e % p->blocks, k = layer * p->directions + direction;
    const side *d = &sides[direction];
    lay_panel(c, &d->w, block);
    lay_panel(c, &d->r, block);
    lay_biases(c, listed(p, BW, k), listed(p, BR, k), block, d->start);
    move_states(c, &p->one[C0], k, d->c, p->hidden, pitch(p), block, true);
  }
  for (int64_t e = h_first; e < h_end; e++) {
    const side *d = &sides[e / p->state_blocks];
    if (two_phases(p)) lay_panel(c, &d->second, e % p->state_blocks);
    move_states(c, &p->one[H0], layer * p->directions + e / p->state_blocks, d->h[0], p->state, h_pitch(p), e % p->state_blocks, true);
  }
  for (int64_t s0 = 0; s0 < p->steps; s0 += p->chunk) {
    const int64_t n = qn_min_i64(p->chunk, p->steps - s0);
    copy_inputs(c, layer, s0, n, me, threads);
    meet(&c->barrier, threads);
    for (int64_t e = first; e < end; e++) {
      const side *d = &sides[e / p->blocks];
      const int64_t block = e % p->blocks;
      product(&d->w, block, n * p->batch, d->in, columns, d->start + block * step, 0, d->sums + block * rows * step, step);
    }
    for (int64_t s = s0; s < s0 + n; s++) {
      for (int64_t e = first; e < end; e++) step_block(c, &sides[e / p->blocks], layer, e / p->blocks, e % p->blocks, s, s - s0);
      meet(&c->barrier, threads);
      if (!two_phases(p)) continue;
      for (int64_t e = h_first; e < h_end; e++)
        finish_block(c, &sides[e / p->state_blocks], layer, e / p->state_blocks, e % p->state_blocks, s, s - s0);
      meet(&c->barrier, threads);
    }
  }
  for (int64_t e = first; e < end; e++)
    move_states(c, &p->one[CT], layer * p->directions + e / p->blocks, sides[e / p->blocks].c, p->hidden, pitch(p), e % p->blocks, false);
  for (int64_t e = h_first; e < h_end; e++)
    move_states(c, &p->one[HT], layer * p->directions + e / p->state_blocks, sides[e / p->state_blocks].h[p->steps % 2], p->state,
                h_pitch(p), e % p->state_blocks, false);
  if (layer < p->a.layers - 1 && p->a.dropout > 0) {
    drop(c, layer, me, threads);
    meet(&c->barrier, threads);
  }
}

/* ---- run ------------------------------------------------------------------------------------------------- */

/* Places the buffers from `next` on; returns their end. c->p alone is needed. */
static real *lay_out(call *c, real *next)
{
  const problem *p = c->p;
  const int64_t block = p->gates * p->lanes, rows = p->chunk * p->batch;
  for (int64_t d = 0; d < p->directions; d++) {
    side *s = &c->side[d];
    s->in = take(&next, rows * widest(p));
    s->sums = take(&next, p->blocks * rows * block);
    s->start = take(&next, p->blocks * 2 * block);
    for (int i = 0; i < 2; i++) s->h[i] = take(&next, p->batch * h_pitch(p));
    s->c = take(&next, p->batch * pitch(p));
    s->between = take(&next, two_phases(p) ? p->batch * pitch(p) : 0);
    s->panels[0] = take(&next, p->blocks * block * widest(p));
    s->panels[1] = take(&next, p->blocks * block * p->state);
    s->panels[2] = take(&next, p->projected ? h_pitch(p) * p->hidden : 0);
  }
  for (int i = 0; i < 2 && p->a.layers > 1; i++) c->out[i] = take(&next, p->steps * p->batch * width_of(p));
  return next;
}

/* The weights of a layer and direction. With the reset before, r's panels of the first two gates come first, then those of n. */
static void set_weights(const call *c, int64_t layer, int64_t direction, side *d)
{
  const problem *p = c->p;
  const int64_t k = layer * p->directions + direction, each = qn_min_i64(p->chunk, p->steps) * p->batch, first = p->before ? 2 : p->gates;
  d->w = weight_of(c, listed(p, W, k), 0, p->gates, p->hidden, layer ? width_of(p) : p->inputs, d->panels[0], each);
  d->r = weight_of(c, listed(p, R, k), 0, first, p->hidden, p->state, d->panels[1], p->batch);
  if (p->before)
    d->second = weight_of(c, listed(p, R, k), 2 * p->hidden, 1, p->hidden, p->state, d->panels[1] + 2 * pitch(p) * p->state, p->batch);
  if (p->projected) d->second = weight_of(c, listed(p, PROJECTION, k), 0, 1, p->state, p->hidden, d->panels[2], p->batch);
}

qn_status CPU_NAME(cpu_rnn_steps_run)(const qn_prepared *prepared, const qn_launch *launch);
qn_status CPU_NAME(cpu_rnn_steps_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  call c = { .p = p, .launch = launch, .length = launch->workspace };
  lay_out(&c, (real *)(void *)(c.length + qn_round_up(p->batch, 8)));
  for (int64_t b = 0; b < p->batch; b++) c.length[b] = length_of(launch, &p->one[LENGTHS], b, p->steps);
  c.seed = key_of(launch, &p->one[SEED]), c.offset = key_of(launch, &p->one[OFFSET]);
  const int64_t work = p->batch * p->hidden * p->gates * (p->inputs + p->state) / 8;
  const int threads = (int)qn_min_i64(cpu_threads(launch, work), p->directions * p->blocks);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int me = 0, team = 1;
#ifdef _OPENMP
    me = omp_get_thread_num(), team = omp_get_num_threads();
#endif
    for (int64_t l = 0; l < p->a.layers; l++) {
      side own[2] = { c.side[0], c.side[1] };
      for (int64_t d = 0; d < p->directions; d++) set_weights(&c, l, d, &own[d]);
      run_layer(&c, l, own, me, team);
    }
  }
  return QN_OK;
}

/* ---- prepare --------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  static const uint32_t single[SINGLES] = {
    QN_ROLE_RNN_FORWARD_X, QN_ROLE_RNN_FORWARD_H0, QN_ROLE_RNN_FORWARD_C0, QN_ROLE_RNN_FORWARD_LENGTHS, QN_ROLE_RNN_FORWARD_SEED,
    QN_ROLE_RNN_FORWARD_OFFSET, QN_ROLE_RNN_FORWARD_Y, QN_ROLE_RNN_FORWARD_HT, QN_ROLE_RNN_FORWARD_CT, QN_ROLE_RNN_FORWARD_GATES,
    QN_ROLE_RNN_FORWARD_CELLS, QN_ROLE_RNN_FORWARD_INNER };
  static const uint32_t listed_roles[LISTS] = {
    QN_ROLE_RNN_FORWARD_W, QN_ROLE_RNN_FORWARD_R, QN_ROLE_RNN_FORWARD_BW, QN_ROLE_RNN_FORWARD_BR,
    QN_ROLE_RNN_FORWARD_PROJECTION };
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_rnn *a = op->attr;
  const qn_value *x = &request->value[qn_role(op, QN_ROLE_RNN_FORWARD_X)], *r = &request->value[qn_role(op, QN_ROLE_RNN_FORWARD_R)];
  if ((x->dtype == QN_F64) != (CPU_REAL == QN_F64))
    return qn_refuse(prepared, "computes in " CPU_REAL_NAME, "x", CPU_REALS, "%s", qn_kit_name(x->dtype));

  problem p = { .a = *a, .steps = x->dim[0], .batch = x->dim[1], .inputs = x->dim[2], .state = r->dim[1] };
  p.directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  p.gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  p.hidden = r->dim[0] / p.gates;
  p.projected = qn_role(op, QN_ROLE_RNN_FORWARD_PROJECTION) >= 0;
  p.before = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_BEFORE;
  p.kept = p.gates == 1 ? 0 : p.before ? 3 : 4;
  p.n_lists = a->layers * p.directions;
  p.lanes = strstr(prepared->engine->name, "_avx512") ? 64 : strstr(prepared->engine->name, "_avx2") ? 32 : 16;
  p.lanes /= (int64_t)sizeof(real);
  p.blocks = qn_ceil_div(p.hidden, p.lanes);
  p.state_blocks = qn_ceil_div(p.state, p.lanes);
  p.chunk = qn_max_i64(1, qn_min_i64(p.steps, qn_ceil_div(CHUNK, qn_max_i64(1, p.batch))));
  const double size = (double)qn_max_i64(p.inputs, 2 * p.hidden) + (double)p.hidden;
  if (size * ((double)p.hidden * 16 + (double)p.steps * (double)p.batch) > 0x1p50)
    return qn_refuse(prepared, "keeps its weights and inputs laid out", "x", "2^50 numbers of them", "%.0f", size * (double)p.hidden);

  problem *kept = cpu_state(prepared, sizeof p + (size_t)(LISTS * p.n_lists) * sizeof(operand));
  if (!kept) return QN_NO_MEMORY;
  *kept = p;
  call c = { .p = kept };
  prepared->workspace = (uint64_t)(qn_round_up(p.batch, 8) * 8) + (uint64_t)((char *)lay_out(&c, (real *)0) - (char *)0);
  for (int i = 0; i < SINGLES; i++) kept->one[i] = operand_of(request, qn_role(op, single[i]));
  for (int i = 0; i < LISTS; i++)
    for (int64_t k = 0; k < p.n_lists; k++) {
      const int32_t at = op->first[listed_roles[i]] + (int32_t)k;
      kept->list[i * p.n_lists + k] = operand_of(request, at < op->first[listed_roles[i] + 1] ? op->arg[at] : -1);
    }
  return QN_OK;
}

CPU_RUNS(cpu_rnn_steps_run);
#define ROW(name_, run_)                                                                                         \
  { .name = name_, .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare, .run = run_, \
    .release = cpu_release },
static const qn_engine row[] = { CPU_COPIES(ROW, "steps" CPU_REAL_SUFFIX, cpu_rnn_steps_run) };
const qn_engine_list cpu_rnn_steps = { row, sizeof row / sizeof *row };
#endif
