/* rnn_steps.c -- recurrent networks in f32: lstm, gru with the reset after the product, tanh, relu; without projection.
 *
 * Units are cut into blocks of a vector's lanes, which the threads share out for the whole of a layer: only the state h that all blocks
 * read goes from thread to thread, over a barrier at each step. A layer goes through its sequences in chunks of steps:
 *   the chunk's inputs are copied side by side, in the order of the steps       in [row = (step, sequence)][inputs]
 *   w x + biases of all its rows, as one product                                sums [block][row][gate][lane]
 *   step by step: + r h, then the gates while the sums are in registers         h, c [sequence][unit]
 * Of w and r each thread lays out its own blocks first: panels [block][k][gate][lane], of which a product reads a row of gates times
 * lanes for each k. Where a weight meets few rows, that costs more than it saves: then its rows are read as they stand. Both directions of
 * a layer go side by side. Sums are made by ascending k, x before h; neither threads nor chunks change their order. */
#include "rnn_parts.h"

enum { X, H0, C0, LENGTHS, SEED, OFFSET, Y, HT, CT, GATES, CELLS, INNER, SINGLES };
enum { W, R, BW, BR, LISTS };
enum { CHUNK = 384,                       /* rows of a chunk, at least */
       FEW = 64, FEW_EACH = 3,            /* rows up to which a weight is read as it stands: in all, and in each of its products */
       STRIP = 64 };                      /* numbers of a row of a weight widened at once */

typedef struct problem {
  qn_rnn  a;
  int64_t steps, batch, inputs, hidden, directions, gates, kept, n_lists;
  int64_t lanes, blocks, chunk;           /* chunk: its steps */
  operand one[SINGLES];
  operand list[];                         /* LISTS times n_lists */
} problem;

/* ---- products by a weight as it stands -------------------------------------------------------------- */

enum { DOT_ROWS = CPU_VECTOR_BYTES == 64 ? 4 : 2 };

CPU_INLINE float sum_of(v_f32 v)
{
#if defined __AVX512F__
  return _mm512_reduce_add_ps((__m512)v);
#else
  float x[CPU_LANES];
  memcpy(x, &v, sizeof v);
  for (int n = CPU_LANES / 2; n; n /= 2)
    for (int i = 0; i < n; i++) x[i] += x[i + n];
  return x[0];
#endif
}

/* sums[i] += a[i] . w[j] for rows i of a and nv rows j of w, each of n_k numbers side by side; steps in floats */
CPU_INLINE void dots(const int rows, const int nv, int64_t n_k, const float *a, int64_t a_step, const float *w, int64_t w_step, float *sums,
                     int64_t row_step, int64_t gate_step)
{
  v_f32 sum[DOT_ROWS][MOST_GATES];
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) sum[i][j] = v_all(0);
  int64_t k = 0;
  for (; k + CPU_LANES <= n_k; k += CPU_LANES) {
    v_f32 x[DOT_ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) x[i] = v_load(a + i * a_step + k);
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      const v_f32 column = v_load(w + j * w_step + k);
#pragma GCC unroll 4
      for (int i = 0; i < rows; i++) sum[i][j] += x[i] * column;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < nv; j++) {
      float s = sum_of(sum[i][j]);
      for (int64_t t = k; t < n_k; t++) s += a[i * a_step + t] * w[j * w_step + t];
      sums[i * row_step + j * gate_step] += s;
    }
}

/* ---- one call ------------------------------------------------------------------------------------------ */

/* A weight of one layer and direction: as it stands, or in panels. */
typedef struct weight {
  const float *rows;                      /* of `step` floats; NULL: in panels */
  float  *panels;
  int64_t step, columns;
} weight;

/* The buffers of a direction. */
typedef struct side {
  float  *in, *sums, *start;              /* start: biases of the sums, [block][gate][lane]; of gru also those of r h, after them */
  float  *h[2], *c;
  weight  w, r;
} side;

typedef struct call {
  const problem *p;
  const qn_launch *launch;
  int64_t *length;
  float   *out[2];                        /* what a layer gives to the next: [step][sequence][direction, unit] */
  side     side[2];
  barrier  barrier;
  uint64_t seed, offset;
} call;

static int64_t pitch(const problem *p) { return p->blocks * p->lanes; }        /* of a state, in floats */
static int64_t width_of(const problem *p) { return p->directions * p->hidden; }
static int64_t widest(const problem *p) { return p->a.layers > 1 ? qn_max_i64(p->inputs, width_of(p)) : p->inputs; }

/* May a weight that meets `rows` rows in all, `each` at a time, be read as it stands? */
static bool as_it_stands(const operand *w, int64_t rows, int64_t each)
{
  return w->dtype == QN_F32 && w->stride[1] == 1 && rows <= FEW * (each <= FEW_EACH ? 1000 : 1) && each <= FEW;
}

static float *take(float **next, int64_t floats)
{
  float *p = *next;
  *next += qn_round_up(floats, 16);
  return p;
}

/* ---- weights of a block --------------------------------------------------------------------------------- */

/* panel[k][gate][lane] of the block's units, 0 beyond them */
static void lay_panel(const call *c, const operand *w, int64_t block, int64_t columns, float *panel)
{
  const problem *p = c->p;
  const int64_t step = p->gates * CPU_LANES, units = qn_min_i64(CPU_LANES, p->hidden - block * CPU_LANES);
  const bool in_place = w->dtype == QN_F32 && w->stride[1] == 1;
  float strip[CPU_LANES][STRIP];
  for (int64_t i = 0; i < columns * step && units < CPU_LANES; i++) panel[i] = 0;
  for (int64_t g = 0; g < p->gates; g++) {
    const int64_t first = (g * p->hidden + block * CPU_LANES) * w->stride[0];
    for (int64_t k = 0; k < columns; k += STRIP) {
      const int64_t n = qn_min_i64(STRIP, columns - k);
      const float *from = in_place ? (const float *)(const void *)data(c->launch, w, first + k) : strip[0];
      for (int64_t i = 0; i < units && !in_place; i++)
        read_row(c->launch, w, first + i * w->stride[0] + k * w->stride[1], w->stride[1], n, strip[i]);
      CPU_GEMM_ISA.turn(from, in_place ? w->stride[0] : STRIP, units, n, panel + k * step + g * CPU_LANES, step);
    }
  }
}

/* Where the sums of a block start: both biases; of gru's n only that of w x, and that of r h for itself. */
static void lay_biases(const call *c, const operand *bw, const operand *br, int64_t block, float *start)
{
  const problem *p = c->p;
  const int64_t units = qn_min_i64(CPU_LANES, p->hidden - block * CPU_LANES), step = p->gates * CPU_LANES;
  float *own = start + p->blocks * step;
  memset(start + block * step, 0, (size_t)step * sizeof(float));
  memset(own + block * step, 0, (size_t)step * sizeof(float));
  for (int64_t g = 0; g < p->gates; g++) {
    float x[2][CPU_LANES] = { { 0 } };
    const int64_t at = g * p->hidden + block * CPU_LANES;
    if (bw->value >= 0) read_row(c->launch, bw, at * bw->stride[0], bw->stride[0], units, x[0]);
    if (br->value >= 0) read_row(c->launch, br, at * br->stride[0], br->stride[0], units, x[1]);
    const bool apart = p->a.cell == QN_RNN_GRU && g == 2;
    for (int64_t i = 0; i < units; i++) {
      start[block * step + g * CPU_LANES + i] = apart ? x[0][i] : x[0][i] + x[1][i];
      own[block * step + g * CPU_LANES + i] = x[1][i];
    }
  }
}

/* ---- products ------------------------------------------------------------------------------------------- */

/* sums [rows][gate][lane] = start + the block's rows of w times rows of a; start_step 0: the same for all rows. May be in place. */
static void product(const problem *p, const weight *w, int64_t block, int64_t rows, const float *a, int64_t a_step, const float *start,
                    int64_t start_step, float *sums)
{
  const int64_t step = p->gates * CPU_LANES, units = qn_min_i64(CPU_LANES, p->hidden - block * CPU_LANES);
  if (!w->rows) {
    panel_product(p->gates, rows, w->columns, a, a_step, w->panels + block * w->columns * step, start, start_step, sums);
    return;
  }
  for (int64_t i = 0; i < rows && (sums != start); i++) memcpy(sums + i * step, start + i * start_step, (size_t)step * sizeof(float));
  const int64_t apart = p->hidden * w->step;      /* from gate to gate */
  for (int64_t unit = 0; unit < units; unit++) {
    const float *row = w->rows + (block * CPU_LANES + unit) * w->step;
    float *to = sums + unit;
    int64_t i = 0;
    for (; i + DOT_ROWS <= rows; i += DOT_ROWS)
      if (p->gates == 4) dots(DOT_ROWS, 4, w->columns, a + i * a_step, a_step, row, apart, to + i * step, step, CPU_LANES);
      else if (p->gates == 3) dots(DOT_ROWS, 3, w->columns, a + i * a_step, a_step, row, apart, to + i * step, step, CPU_LANES);
      else dots(DOT_ROWS, 1, w->columns, a + i * a_step, a_step, row, apart, to + i * step, step, CPU_LANES);
    for (; i < rows; i++)
      if (p->gates == 4) dots(1, 4, w->columns, a + i * a_step, a_step, row, apart, to + i * step, step, CPU_LANES);
      else if (p->gates == 3) dots(1, 3, w->columns, a + i * a_step, a_step, row, apart, to + i * step, step, CPU_LANES);
      else dots(1, 1, w->columns, a + i * a_step, a_step, row, apart, to + i * step, step, CPU_LANES);
  }
}

/* ---- gates, of a block and sequence -------------------------------------------------------------------- */

/* s: the sums, which become what `gates` holds. raw: the cell state before clip. */
static void lstm_gates(float *s, float *c, float *h, float *raw, float clip)
{
#pragma omp simd
  for (int i = 0; i < CPU_LANES; i++) {
    const float in = m_sigmoid(s[i]), forget = m_sigmoid(s[CPU_LANES + i]), g = m_tanh(s[2 * CPU_LANES + i]);
    const float out = m_sigmoid(s[3 * CPU_LANES + i]), next = forget * c[i] + in * g;
    float bounded = next > clip ? clip : next;
    bounded = bounded < -clip ? -clip : bounded;
    s[i] = in, s[CPU_LANES + i] = forget, s[2 * CPU_LANES + i] = g, s[3 * CPU_LANES + i] = out;
    raw[i] = next;
    c[i] = bounded;
    h[i] = out * m_tanh(bounded);
  }
}
/* of_x: w x + bw of n; s[2] is r h + br of it. What `gates` holds has a fourth part. */
static void gru_gates(float *s, const float *of_x, const float *old, float *h)
{
#pragma omp simd
  for (int i = 0; i < CPU_LANES; i++) {
    const float reset = m_sigmoid(s[i]), z = m_sigmoid(s[CPU_LANES + i]), q = s[2 * CPU_LANES + i], n = m_tanh(of_x[i] + reset * q);
    s[i] = reset, s[CPU_LANES + i] = z, s[2 * CPU_LANES + i] = n, s[3 * CPU_LANES + i] = q;
    h[i] = n + z * (old[i] - n);
  }
}
static void plain_gates(const float *s, float *h, bool is_tanh)
{
#pragma omp simd
  for (int i = 0; i < CPU_LANES; i++) h[i] = is_tanh ? m_tanh(s[i]) : s[i] < 0.0f ? 0.0f : s[i];
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
    float *to = c->side[direction].in + e % rows * inputs;
    if (s >= c->length[b]) memset(to, 0, (size_t)inputs * sizeof *to);
    else if (layer) memcpy(to, c->out[(layer - 1) % 2] + (t * p->batch + b) * inputs, (size_t)inputs * sizeof *to);
    else read_row(c->launch, x, t * x->stride[0] + b * x->stride[1], x->stride[2], inputs, to);
  }
}

/* Stores n units from unit0 on of what the layer gives at time t, and in training what backward needs. */
static void store_step(const call *c, int64_t layer, int64_t direction, int64_t t, int64_t b, int64_t unit0, int64_t n, const float *h,
                       const float *gate, const float *raw)
{
  const problem *p = c->p;
  const operand *y = &p->one[Y], *gates = &p->one[GATES], *cells = &p->one[CELLS], *inner = &p->one[INNER];
  const int64_t k = layer * p->directions + direction, at = direction * p->hidden + unit0;
  if (layer < p->a.layers - 1) {
    memcpy(c->out[layer % 2] + (t * p->batch + b) * width_of(p) + at, h, (size_t)n * sizeof *h);
    if (inner->value >= 0) write_row(c->launch, inner, place_of(inner, layer, t, b, at), inner->stride[3], n, h);
  } else
    write_row(c->launch, y, t * y->stride[0] + b * y->stride[1] + at * y->stride[2], y->stride[2], n, h);
  for (int64_t g = 0; g < p->kept && gates->value >= 0; g++)
    write_row(c->launch, gates, place_of(gates, k, t, b, g * p->hidden + unit0), gates->stride[3], n, gate + g * CPU_LANES);
  if (cells->value >= 0) write_row(c->launch, cells, place_of(cells, k, t, b, unit0), cells->stride[3], n, raw);
}

/* Step s, number `at` of its chunk, for the units of one block. */
static void step_block(const call *c, const side *d, int64_t layer, int64_t direction, int64_t block, int64_t s, int64_t at)
{
  const problem *p = c->p;
  const int64_t step = p->gates * CPU_LANES, rows = p->chunk * p->batch;
  const int64_t unit0 = block * CPU_LANES, n = qn_min_i64(CPU_LANES, p->hidden - unit0);
  const float *old = d->h[s % 2];
  float *next = d->h[(s + 1) % 2];
  const bool gru = p->a.cell == QN_RNN_GRU, few = d->r.rows != NULL;
  const int most = few ? MOST_ROWS : most_rows(p->gates);
  float sums[(MOST_ROWS * MOST_GATES + 1) * CPU_LANES], raw[CPU_LANES], kept[MOST_GATES * CPU_LANES];
  for (int64_t b0 = 0; b0 < p->batch; b0 += most) {
    const int64_t m = qn_min_i64(most, p->batch - b0);
    float *of_x = d->sums + (block * rows + at * p->batch + b0) * step;
    float n_of_x[MOST_ROWS][CPU_LANES];
    for (int64_t i = 0; i < m && gru; i++) {      /* n's sums of x and of h stay apart */
      memcpy(n_of_x[i], of_x + i * step + 2 * CPU_LANES, sizeof n_of_x[i]);
      memcpy(of_x + i * step + 2 * CPU_LANES, d->start + (p->blocks + block) * step + 2 * CPU_LANES, sizeof n_of_x[i]);
    }
    product(p, &d->r, block, m, old + b0 * pitch(p), pitch(p), of_x, step, sums);
    for (int64_t i = 0; i < m; i++) {
      const int64_t b = b0 + i, place = b * pitch(p) + unit0;
      const bool beyond = s >= c->length[b];
      float *own = sums + i * step, *h = next + place;
      memcpy(kept, own, (size_t)step * sizeof *kept);
      if (beyond) {
        memcpy(h, old + place, CPU_LANES * sizeof *h);
        memset(kept, 0, sizeof kept);
        memset(raw, 0, sizeof raw);
        store_step(c, layer, direction, s, b, unit0, n, raw, kept, raw);
        continue;
      }
      if (p->a.cell == QN_RNN_LSTM) lstm_gates(kept, d->c + place, h, raw, (float)p->a.clip);
      else if (gru) gru_gates(kept, n_of_x[i], old + place, h);
      else plain_gates(kept, h, p->a.cell == QN_RNN_TANH);
      store_step(c, layer, direction, time_of(c, direction, b, s), b, unit0, n, h, kept, raw);
    }
  }
}

static const operand *listed(const problem *p, int list, int64_t k) { return &p->list[list * p->n_lists + k]; }

static weight weight_of(const call *c, const operand *w, float *panels, int64_t columns, int64_t rows, int64_t each)
{
  const bool stands = as_it_stands(w, rows, each);
  return (weight){ stands ? (const float *)(const void *)data(c->launch, w, 0) : NULL, panels, w->stride[0], columns };
}

/* States before the first step and after the last, of the units of one block. */
static void load_states(const call *c, int64_t k, const side *d, int64_t block)
{
  const problem *p = c->p;
  const operand *h0 = &p->one[H0], *c0 = &p->one[C0];
  const int64_t unit0 = block * CPU_LANES, n = qn_min_i64(CPU_LANES, p->hidden - unit0);
  for (int64_t b = 0; b < p->batch; b++) {
    float *h = d->h[0] + b * pitch(p) + unit0, *cell = d->c + b * pitch(p) + unit0;
    memset(h, 0, CPU_LANES * sizeof *h);
    memset(cell, 0, CPU_LANES * sizeof *cell);
    if (h0->value >= 0) read_row(c->launch, h0, k * h0->stride[0] + b * h0->stride[1] + unit0 * h0->stride[2], h0->stride[2], n, h);
    if (c0->value >= 0) read_row(c->launch, c0, k * c0->stride[0] + b * c0->stride[1] + unit0 * c0->stride[2], c0->stride[2], n, cell);
  }
}
static void store_states(const call *c, int64_t k, const side *d, int64_t block)
{
  const problem *p = c->p;
  const operand *ht = &p->one[HT], *ct = &p->one[CT];
  const int64_t unit0 = block * CPU_LANES, n = qn_min_i64(CPU_LANES, p->hidden - unit0);
  for (int64_t b = 0; b < p->batch; b++) {
    const int64_t at = b * pitch(p) + unit0;
    if (ht->value >= 0) write_row(c->launch, ht, place_of(ht, k, b, unit0, 0), ht->stride[2], n, d->h[p->steps % 2] + at);
    if (ct->value >= 0) write_row(c->launch, ct, place_of(ct, k, b, unit0, 0), ct->stride[2], n, d->c + at);
  }
}

/* What the layer gave, as dropout leaves it to the next. */
static void drop(const call *c, int64_t layer, int me, int threads)
{
  const problem *p = c->p;
  const int64_t all = p->steps * p->batch * width_of(p), first = all * me / threads, end = all * (me + 1) / threads;
  const uint64_t dropped = qn_chance_words(p->a.dropout);
  const float scale = (float)(1 / (1 - p->a.dropout));
  float *out = c->out[layer % 2];
  uint32_t word[4];
  for (int64_t i = first; i < end; i++) {
    const uint64_t at = (uint64_t)(layer * all + i);
    if (i == first || at % 4 == 0) qn_random_words(word, c->seed, c->offset, at / 4);
    out[i] = word[at % 4] < dropped ? 0.0f : out[i] * scale;
  }
}

/* A layer: thread `me` of `threads` has an equal share of the blocks of both directions. */
static void run_layer(call *c, int64_t layer, const side sides[2], int me, int threads)
{
  const problem *p = c->p;
  const int64_t columns = layer ? width_of(p) : p->inputs, items = p->directions * p->blocks, first = items * me / threads;
  const int64_t end = items * (me + 1) / threads, step = p->gates * CPU_LANES, rows = p->chunk * p->batch;
  for (int64_t e = first; e < end; e++) {
    const int64_t direction = e / p->blocks, block = e % p->blocks, k = layer * p->directions + direction;
    const side *d = &sides[direction];
    if (!d->w.rows) lay_panel(c, listed(p, W, k), block, columns, d->w.panels + block * columns * step);
    if (!d->r.rows) lay_panel(c, listed(p, R, k), block, p->hidden, d->r.panels + block * p->hidden * step);
    lay_biases(c, listed(p, BW, k), listed(p, BR, k), block, d->start);
    load_states(c, k, d, block);
  }
  for (int64_t s0 = 0; s0 < p->steps; s0 += p->chunk) {
    const int64_t n = qn_min_i64(p->chunk, p->steps - s0);
    copy_inputs(c, layer, s0, n, me, threads);
    meet(&c->barrier, threads);
    for (int64_t e = first; e < end; e++) {
      const side *d = &sides[e / p->blocks];
      const int64_t block = e % p->blocks;
      product(p, &d->w, block, n * p->batch, d->in, columns, d->start + block * step, 0, d->sums + block * rows * step);
    }
    for (int64_t s = s0; s < s0 + n; s++) {
      for (int64_t e = first; e < end; e++) step_block(c, &sides[e / p->blocks], layer, e / p->blocks, e % p->blocks, s, s - s0);
      meet(&c->barrier, threads);
    }
  }
  for (int64_t e = first; e < end; e++) store_states(c, layer * p->directions + e / p->blocks, &sides[e / p->blocks], e % p->blocks);
  if (layer < p->a.layers - 1 && p->a.dropout > 0) {
    drop(c, layer, me, threads);
    meet(&c->barrier, threads);
  }
}

/* ---- run ------------------------------------------------------------------------------------------------- */

static void set_up(call *c, const qn_launch *launch)
{
  const problem *p = c->p;
  const int64_t block = p->gates * CPU_LANES, rows = p->chunk * p->batch;
  const operand *lengths = &p->one[LENGTHS];
  c->length = launch->workspace;
  float *next = (float *)(void *)(c->length + qn_round_up(p->batch, 8));
  for (int64_t b = 0; b < p->batch; b++) {
    const int64_t given = lengths->value < 0 ? p->steps : qn_load_i64(data(c->launch, lengths, b * lengths->stride[0]), lengths->dtype);
    c->length[b] = qn_max_i64(0, qn_min_i64(given, p->steps));
  }
  for (int64_t d = 0; d < p->directions; d++) {
    side *s = &c->side[d];
    s->in = take(&next, rows * widest(p));
    s->sums = take(&next, p->blocks * rows * block);
    s->start = take(&next, p->blocks * 2 * block);
    s->h[0] = take(&next, p->batch * pitch(p)), s->h[1] = take(&next, p->batch * pitch(p)), s->c = take(&next, p->batch * pitch(p));
    s->w.panels = take(&next, p->blocks * block * widest(p));
    s->r.panels = take(&next, p->blocks * block * p->hidden);
  }
  for (int i = 0; i < 2 && p->a.layers > 1; i++) c->out[i] = take(&next, p->steps * p->batch * width_of(p));
  const operand *seed = &p->one[SEED], *offset = &p->one[OFFSET];
  c->seed = seed->value < 0 ? 0 : (uint64_t)qn_load_i64(data(c->launch, seed, 0), seed->dtype);
  c->offset = offset->value < 0 ? 0 : (uint64_t)qn_load_i64(data(c->launch, offset, 0), offset->dtype);
}

qn_status CPU_NAME(cpu_rnn_steps_run)(const qn_prepared *prepared, const qn_launch *launch);
qn_status CPU_NAME(cpu_rnn_steps_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  call c = { .p = p, .launch = launch };
  set_up(&c, launch);
  const int64_t work = p->batch * p->hidden * p->gates * (p->inputs + p->hidden) / 8;
  const int threads = (int)qn_min_i64(cpu_threads(launch, work), p->directions * p->blocks);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    int me = 0, team = 1;
#ifdef _OPENMP
    me = omp_get_thread_num(), team = omp_get_num_threads();
#endif
    for (int64_t l = 0; l < p->a.layers; l++) {
      side own[2] = { c.side[0], c.side[1] };
      for (int64_t d = 0; d < p->directions; d++) {
        const int64_t k = l * p->directions + d, columns = l ? width_of(p) : p->inputs;
        own[d].w = weight_of(&c, listed(p, W, k), own[d].w.panels, columns, p->steps * p->batch, qn_min_i64(p->chunk, p->steps) * p->batch);
        own[d].r = weight_of(&c, listed(p, R, k), own[d].r.panels, p->hidden, p->steps * p->batch, p->batch);
      }
      run_layer(&c, l, own, me, team);
    }
  }
  return QN_OK;
}

/* ---- prepare --------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static int64_t floats_of(const problem *p)
{
  const int64_t block = p->gates * p->lanes, rows = p->chunk * p->batch;
  const int64_t side = rows * widest(p) + p->blocks * (rows * block + 2 * block) + 3 * p->batch * pitch(p)
                     + p->blocks * block * (widest(p) + p->hidden);
  return p->directions * (side + 64) + (p->a.layers > 1 ? 2 * p->steps * p->batch * width_of(p) : 0);
}

static operand operand_of(const qn_request *request, int32_t value)
{
  operand o = { .value = value };
  if (value < 0) return o;
  o.dtype = request->value[value].dtype;
  memcpy(o.stride, request->value[value].stride, sizeof o.stride);
  return o;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  static const uint32_t single[SINGLES] = {
    QN_ROLE_RNN_FORWARD_X, QN_ROLE_RNN_FORWARD_H0, QN_ROLE_RNN_FORWARD_C0, QN_ROLE_RNN_FORWARD_LENGTHS, QN_ROLE_RNN_FORWARD_SEED,
    QN_ROLE_RNN_FORWARD_OFFSET, QN_ROLE_RNN_FORWARD_Y, QN_ROLE_RNN_FORWARD_HT, QN_ROLE_RNN_FORWARD_CT, QN_ROLE_RNN_FORWARD_GATES,
    QN_ROLE_RNN_FORWARD_CELLS, QN_ROLE_RNN_FORWARD_INNER };
  static const uint32_t listed_roles[LISTS] = {
    QN_ROLE_RNN_FORWARD_W, QN_ROLE_RNN_FORWARD_R, QN_ROLE_RNN_FORWARD_BW, QN_ROLE_RNN_FORWARD_BR };
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_rnn *a = op->attr;
  const qn_value *x = &request->value[qn_role(op, QN_ROLE_RNN_FORWARD_X)], *r = &request->value[qn_role(op, QN_ROLE_RNN_FORWARD_R)];
  if (x->dtype == QN_F64) return qn_refuse(prepared, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (qn_role(op, QN_ROLE_RNN_FORWARD_PROJECTION) >= 0)
    return qn_refuse(prepared, "a state is what its cell gives", "projection", "none", "one");
  if (a->cell == QN_RNN_GRU && a->reset != QN_RNN_RESET_AFTER)
    return qn_refuse(prepared, "all gates come of one product by h", "reset", "after", "before");

  problem p = { .a = *a, .steps = x->dim[0], .batch = x->dim[1], .inputs = x->dim[2], .hidden = r->dim[1] };
  p.directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  p.gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  p.kept = p.gates == 1 ? 0 : 4;
  p.n_lists = a->layers * p.directions;
  p.lanes = strstr(prepared->engine->name, "_avx512") ? 16 : strstr(prepared->engine->name, "_avx2") ? 8 : 4;
  p.blocks = qn_ceil_div(p.hidden, p.lanes);
  p.chunk = qn_max_i64(1, qn_min_i64(p.steps, qn_ceil_div(CHUNK, qn_max_i64(1, p.batch))));
  const double size = (double)qn_max_i64(p.inputs, 2 * p.hidden) + (double)p.hidden;
  if (size * ((double)p.hidden * 16 + (double)p.steps * (double)p.batch) > 0x1p50)
    return qn_refuse(prepared, "keeps its weights and inputs laid out", "x", "2^50 numbers of them", "%.0f", size * (double)p.hidden);
  prepared->workspace = (uint64_t)(qn_round_up(p.batch, 8) * 8 + (floats_of(&p) + 1024) * 4);

  problem *kept = cpu_state(prepared, sizeof p + (size_t)(LISTS * p.n_lists) * sizeof(operand));
  if (!kept) return QN_NO_MEMORY;
  *kept = p;
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
static const qn_engine row[] = { CPU_COPIES(ROW, "steps", cpu_rnn_steps_run) };
const qn_engine_list cpu_rnn_steps = { row, sizeof row / sizeof *row };
#endif
