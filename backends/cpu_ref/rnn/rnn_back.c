/* rnn_back.c -- the gradient of recurrent networks: lstm with and without projection, gru with the reset after the product or before it,
 * tanh, relu.
 *
 * Of a layer (rnn_walk.h), both directions side by side: from the last step to the first, with dh = dy + what later steps leave
 *   (projection: dh = projection' dh)
 *   slopes of the gates' sums, from what forward left: of w x in X [place (step, sequence)][direction, gate, unit], of r h likewise in H
 *   (gru, reset before: that of the reset gate from r' times those of all n)
 *   dh of the step before = slopes times r (gru: + dh z)
 * Units are shared out among the threads in blocks, as columns of r too, so that only a step's slopes go from thread to thread, over a
 * barrier; each line in brackets is a phase of its own, after one more. r is laid out in panels first. Then, as products over all places
 * at once (gemm_core.h):
 *   dw = X' inputs      dr = H' states before      dx = X w      dprojection = dh' full, and the biases' gradients as sums of columns */
#include "rnn_walk.h"

/* ---- products over all places ---------------------------------------------------------------------- */

/* c [m, n] = a [m, k] b [k, n]; k may be cut in two, with a b for each. */
typedef struct gradient {
  const call *call;
  const real *a;
  int64_t a_row, a_step;                  /* strides along m and along k */
  const operand *b[2], *c;                /* b NULL: b_data, packed */
  const real *b_data;
  int64_t n, half;                        /* half: of k that the first b has */
  real *c_data;                           /* NULL: to c, from its row `first` on */
  int64_t c_row, first;
  bool three;                             /* c is [steps, batch, n] */
} gradient;

static void left_block(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t k0, int64_t kc, void *buffer, const void **row,
                       int64_t *step)
{
  const gradient *o = g->user;
  const int64_t ld = cpu_gemm_ld(g->kc, sizeof(real));
  const real *from = o->a + i0 * o->a_row + k0 * o->a_step;
  (void)batch;
  if (o->a_step != 1) cpu_gemm_lay(g->isa, CPU_REAL, from, o->a_row, o->a_step, mc, kc, buffer, ld);
  for (int64_t i = 0; i < mc; i++) row[i] = o->a_step != 1 ? (const real *)buffer + i * ld : from + i * o->a_row;
  *step = 1;
}
static const void *right_block(const cpu_gemm *g, int64_t batch, int64_t k0, int64_t kc, int64_t j0, int64_t nc, void *buffer,
                               int64_t *step)
{
  const gradient *o = g->user;
  const int64_t ld = *step = cpu_gemm_ld(g->nc, sizeof(real));
  (void)batch;
  for (int64_t k = k0, n; k < k0 + kc; k += n) {
    const int part = o->b[0] && k >= o->half;
    const operand *b = o->b[part];
    real *to = (real *)buffer + (k - k0) * ld;
    n = part || !b ? k0 + kc - k : qn_min_i64(k0 + kc, o->half) - k;
    if (!b) cpu_gemm_lay(g->isa, CPU_REAL, o->b_data + k * o->n + j0, o->n, 1, n, nc, to, ld);
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
    real *sums = (real *)acc + i * ld;
    if (o->three && t >= o->call->length[(i0 + i) % b]) memset(sums, 0, (size_t)nc * sizeof *sums);       /* where w may be infinite */
    if (o->c_data) {
      memcpy(o->c_data + (i0 + i) * o->c_row + j0, sums, (size_t)nc * sizeof *sums);
      continue;
    }
    const int64_t at = o->three ? place_of(o->c, t, (i0 + i) % b, j0, 0) : place_of(o->c, o->first + i0 + i, j0, 0, 0);
    write_row(o->call->launch, o->c, at, o->c->stride[o->three ? 2 : 1], nc, sums);
  }
}

enum { CPU_REAL_GEMM = CPU_REAL == QN_F64 ? CPU_GEMM_F64 : CPU_GEMM_F32 };
/* The blocking of a product; its workspace's bytes. */
static uint64_t plan_gemm(cpu_gemm *g, const cpu_gemm_isa *isa, int threads, int64_t m, int64_t n, int64_t k)
{
  *g = (cpu_gemm){ .isa = isa, .type = CPU_REAL_GEMM, .batch = 1, .m = m, .n = n, .k = k,
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

/* to [rows], from the sums that the walk made in double */
static void bias_gradient(const call *c, const operand *to, const double *sums)
{
  real narrow[64];
  for (int64_t j0 = 0, n; j0 < c->p->rows && to->value >= 0; j0 += n) {
    n = qn_min_i64(64, c->p->rows - j0);
    for (int64_t j = 0; j < n; j++) narrow[j] = (real)sums[j0 + j];
    write_row(c->launch, to, j0 * to->stride[0], to->stride[0], n, narrow);
  }
}

/* ---- what a layer took ------------------------------------------------------------------------------- */

/* What layer l took, by place; and of a direction the states before each step. Beyond a sequence's end 0. */
static void lay_inputs(const call *c, int64_t l, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = l ? width_of(p) : p->inputs, places = p->steps * p->batch;
  const operand *x = &p->one[X];
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < places; e++) {
    const int64_t t = e / p->batch, b = e % p->batch;
    real *to = c->in + e * inputs;
    if (t >= c->length[b]) memset(to, 0, (size_t)inputs * sizeof *to);
    else if (l == 0) read_row(c->launch, x, place_of(x, t, b, 0, 0), x->stride[2], inputs, to);
    else {
      read_output(c, l - 1, t, b, 0, inputs, to);
      if (p->a.dropout > 0) drop_row(c->seed, c->offset, p->a.dropout, ((l - 1) * places + e) * inputs, inputs, to);
    }
  }
}
/* reset: the state times the reset gate, which n's rows of r meet */
static void lay_before(const call *c, int64_t l, int64_t direction, bool reset, int threads)
{
  const problem *p = c->p;
  const operand *gates = &p->one[GATES];
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < p->steps * p->batch; e++) {
    const int64_t s = e / p->batch, b = e % p->batch, t = time_of(c, direction, b, s);
    real *to = c->before + (t * p->batch + b) * p->state, gate[PIECE];
    if (s >= c->length[b]) {
      memset(to, 0, (size_t)p->state * sizeof *to);
      continue;
    }
    read_before(c, l, direction, s, b, 0, p->state, to);
    for (int64_t j = 0; j < p->hidden && reset; j += PIECE) {
      const int64_t n = qn_min_i64(PIECE, p->hidden - j);
      read_row(c->launch, gates, place_of(gates, l * p->directions + direction, t, b, j), gates->stride[3], n, gate);
      for (int64_t i = 0; i < n; i++) to[j + i] *= gate[i];
    }
  }
}

/* What the projection met. */
static void lay_full(const call *c, int64_t k, int threads)
{
  const problem *p = c->p;
  const operand *gates = &p->one[GATES], *cells = &p->one[CELLS];
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < p->steps * p->batch; e++) {
    const int64_t t = e / p->batch, b = e % p->batch;
    real *to = c->before + e * p->hidden, raw[PIECE];
    if (t >= c->length[b]) {
      memset(to, 0, (size_t)p->hidden * sizeof *to);
      continue;
    }
    read_row(c->launch, gates, place_of(gates, k, t, b, 3 * p->hidden), gates->stride[3], p->hidden, to);
    for (int64_t j = 0; j < p->hidden; j += PIECE) {
      const int64_t n = qn_min_i64(PIECE, p->hidden - j);
      read_row(c->launch, cells, place_of(cells, k, t, b, j), cells->stride[3], n, raw);
#pragma omp simd
      for (int64_t i = 0; i < n; i++) to[j + i] *= cell_tanh(bounded(raw[i], (real)p->a.clip));
    }
  }
}

static void weight_gradients(const call *c, int64_t l, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = l ? width_of(p) : p->inputs, places = p->steps * p->batch, of_state = p->before ? 2 * p->hidden : p->rows;
  lay_inputs(c, l, threads);
  for (int64_t d = 0; d < p->directions; d++) {
    const int64_t k = l * p->directions + d;
    gradient w = { .call = c, .a = c->x + d * p->rows, .a_row = 1, .a_step = line(p), .b_data = c->in, .n = inputs, .c = listed(p, DW, k) };
    if (w.c->value >= 0) run_gemm(c, &w, p->rows, inputs, places);
    gradient r = { .call = c, .a = c->h + d * p->rows, .a_row = 1, .a_step = line(p), .b_data = c->before, .n = p->state,
                   .c = listed(p, DR, k) };
    if (r.c->value >= 0) {
      lay_before(c, l, d, false, threads);
      run_gemm(c, &r, of_state, p->state, places);
    }
    if (r.c->value >= 0 && p->before) {
      lay_before(c, l, d, true, threads);
      r.a += r.first = of_state;
      run_gemm(c, &r, p->hidden, p->state, places);
    }
    gradient projection = { .call = c, .a = c->dh + d * p->state, .a_row = 1, .a_step = width_of(p), .b_data = c->before, .n = p->hidden,
                            .c = listed(p, DPROJECTION, k) };
    if (projection.c->value >= 0) {
      lay_full(c, k, threads);
      run_gemm(c, &projection, p->state, p->hidden, places);
    }
    bias_gradient(c, listed(p, DBW, k), c->bias[0] + d * p->rows);
    bias_gradient(c, listed(p, DBR, k), c->bias[two_slopes(p)] + d * p->rows);
  }
}

static void input_gradient(const call *c, int64_t l, int threads)
{
  const problem *p = c->p;
  const int64_t inputs = l ? width_of(p) : p->inputs, places = p->steps * p->batch, k = l * p->directions;
  real *out = l ? c->out[l % 2] : NULL;
  const gradient x = { .call = c, .a = c->x, .a_row = line(p), .a_step = 1, .b = { listed(p, W, k), listed(p, W, k + p->directions - 1) },
                       .half = p->rows, .n = inputs, .c = &p->one[DX], .c_data = out, .c_row = inputs, .three = true };
  run_gemm(c, &x, places, inputs, line(p));
  if (!l || p->a.dropout == 0) return;
#pragma omp parallel for num_threads(threads) if (threads > 1)
  for (int64_t e = 0; e < places; e++)
    drop_row(c->seed, c->offset, p->a.dropout, ((l - 1) * places + e) * inputs, inputs, out + e * inputs);
}

/* ---- run ------------------------------------------------------------------------------------------------- */

/* Places the buffers from `next` on; returns their end. c->p alone is needed. */
static real *lay_out(call *c, real *next)
{
  const problem *p = c->p;
  const int64_t places = p->steps * p->batch, widest = p->a.layers > 1 ? qn_max_i64(p->inputs, width_of(p)) : p->inputs;
  c->x = take(&next, places * line(p));
  c->h = two_slopes(p) ? take(&next, places * line(p)) : c->x;
  c->in = take(&next, places * widest);
  c->before = take(&next, places * qn_max_i64(p->hidden, p->state));
  for (int i = 0; i < 2; i++) c->out[i] = take(&next, places * width_of(p));
  c->panel = take(&next, p->directions * p->state_blocks * p->rows * p->block);
  for (int i = 0; i < 2; i++) c->step[i] = take(&next, p->directions * p->batch * p->rows);
  c->carry = take(&next, p->directions * p->batch * h_pitch(p));
  c->dc = take(&next, p->directions * p->batch * pitch(p));
  c->of_full = take(&next, p->projected ? p->directions * p->blocks * p->state * p->block : 0);
  c->dh = take(&next, p->projected ? places * width_of(p) : 0);
  for (int i = 0; i < 2; i++) c->bias[i] = (double *)(void *)take(&next, line(p) * (int64_t)(sizeof(double) / sizeof(real)));
  c->dh_step = take(&next, p->projected ? p->directions * p->batch * p->state : 0);
  return next;
}

qn_status CPU_NAME(cpu_rnn_back_run)(const qn_prepared *prepared, const qn_launch *launch);
qn_status CPU_NAME(cpu_rnn_back_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  call c = { .p = p, .launch = launch, .isa = &CPU_GEMM_ISA, .length = launch->workspace };
  const operand *dy = &p->one[DY];
  c.gemm = (char *)launch->workspace + qn_round_up(p->batch * 8, 64);
  lay_out(&c, (real *)(void *)((char *)c.gemm + p->gemm_bytes));
  for (int64_t b = 0; b < p->batch; b++) c.length[b] = length_of(launch, &p->one[LENGTHS], b, p->steps);
  c.seed = key_of(launch, &p->one[SEED]), c.offset = key_of(launch, &p->one[OFFSET]);
  const int wanted = cpu_threads(launch, p->batch * p->rows * p->hidden / 4);
  const int threads = (int)qn_max_i64(1, qn_min_i64(wanted, p->directions * p->state_blocks));
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
/* The largest workspace of the products; the isa is that of the copy. */
static uint64_t gemm_bytes(const problem *p, const cpu_gemm_isa *isa)
{
  const int64_t places = p->steps * p->batch, width = width_of(p);
  const int64_t size[][3] = { { p->rows, p->inputs, places }, { p->rows, width, places }, { p->rows, p->state, places },
                              { 2 * p->hidden, p->state, places }, { p->hidden, p->state, places }, { p->state, p->hidden, places },
                              { places, p->inputs, line(p) }, { places, width, line(p) } };
  uint64_t most = 0;
  for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
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
  static const uint32_t lists[LISTS] = { ROLE(W), ROLE(R), ROLE(PROJECTION), ROLE(DW), ROLE(DR), ROLE(DPROJECTION), ROLE(DBW), ROLE(DBR) };
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_rnn *a = op->attr;
  const qn_value *x = &request->value[qn_role(op, ROLE(X))], *r = &request->value[qn_role(op, ROLE(R))];
  if ((x->dtype == QN_F64) != (CPU_REAL == QN_F64))
    return qn_refuse(prepared, "computes in " CPU_REAL_NAME, "x", CPU_REALS, "%s", qn_kit_name(x->dtype));

  problem p = { .a = *a, .steps = x->dim[0], .batch = x->dim[1], .inputs = x->dim[2], .state = r->dim[1], .rows = r->dim[0] };
  const bool avx512 = strstr(prepared->engine->name, "_avx512"), avx2 = strstr(prepared->engine->name, "_avx2");
  const int64_t lanes = (avx512 ? 64 : avx2 ? 32 : 16) / (int64_t)sizeof(real);
  const cpu_gemm_isa *isa = &cpu_gemm_baseline;
#ifdef QN_AVX2
  if (avx2) isa = &cpu_gemm_avx2;
#endif
#ifdef QN_AVX512
  if (avx512) isa = &cpu_gemm_avx512;
#endif
  p.directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  p.gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  p.hidden = p.rows / p.gates;
  p.projected = qn_role(op, ROLE(PROJECTION)) >= 0;
  p.before = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_BEFORE;
  p.kept = p.gates == 1 ? 0 : p.before ? 3 : 4;
  p.n_lists = a->layers * p.directions;
  p.vectors = p.hidden >= 8 * lanes ? 4 : 1;
  p.block = p.vectors * lanes;
  p.blocks = qn_ceil_div(p.hidden, p.block);
  p.state_blocks = qn_ceil_div(p.state, p.block);
  p.threads = request->demands->threads;
  const double widest = (double)p.inputs + 4 * (double)p.rows;
  if (widest * ((double)p.rows * 4 + (double)p.steps * (double)p.batch) > 0x1p50)
    return qn_refuse(prepared, "keeps slopes and inputs laid out", "x", "2^50 numbers of them", "%.0f", widest * (double)p.rows);
  p.gemm_bytes = gemm_bytes(&p, isa);

  problem *kept = cpu_state(prepared, sizeof p + (size_t)(LISTS * p.n_lists) * sizeof(operand));
  if (!kept) return QN_NO_MEMORY;
  *kept = p;
  call c = { .p = kept };
  prepared->workspace = (uint64_t)qn_round_up(p.batch * 8, 64) + p.gemm_bytes + (uint64_t)((char *)lay_out(&c, (real *)0) - (char *)0);
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
static const qn_engine row[] = { CPU_COPIES(ROW, "steps" CPU_REAL_SUFFIX, cpu_rnn_back_run) };
const qn_engine_list cpu_rnn_back = { row, sizeof row / sizeof *row };
#endif
