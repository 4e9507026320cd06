/* attention_tiles_backward.c -- attention's gradients by tiles, in f32; no row of scores is ever stored whole.
 *
 *   D_i = sum dy_i y_i - dlse_i
 *   for each tile of keys: for each block of rows:
 *     p = e^(s - lse)     g = p (v dy' - D) scale     dv += p dy     dk += g q     dq += g' k        s, p, g as [key][row]
 *
 * The keys of a kv head, with all rows that see them, are done by one thread: dk and dv of a tile, and dq of all its rows, are sums in
 * f32 of its own. Where kv heads are few, each is shared out among spans, which take its tiles in turn and whose dq are added in order. How
 * many depends on the problem only, so no order depends on the threads. See attention_tiles.h for how scores lie. */
#include <float.h>
#include "attention_tiles.h"

enum { TASKS = 16,                        /* wanted, for threads to share */
       PARTIALS = 32 << 20 };             /* bytes of all spans' dq */

/* A thread's workspace. */
typedef struct area {
  float *k, *v, *dk, *dv;                 /* of a tile: [KEYS][k_ld] or [v_ld] */
  float *q, *dy, *q_lane, *dy_lane;       /* of a block: [ROWS][k_ld] or [v_ld], and in panels [d][PANEL], [dv][PANEL] */
  float *p, *g;                           /* [KEYS][p_ld] */
  float *factor, *scratch;                /* softcap's slope; rows to be turned */
  float *dq, *lse, *delta;                /* of all rows of a kv head: [k_ld] each; e^(x - lse) and D */
  int64_t k_ld, v_ld, p_ld, bytes;
} area;

static area area_of(const attention *p, float *base)
{
  area a = { .k_ld = cpu_gemm_ld(qn_round_up(p->d, PANEL_MOST), 4), .v_ld = cpu_gemm_ld(qn_round_up(p->dv, PANEL_MOST), 4),
             .p_ld = cpu_gemm_ld(AT_ROWS, 4) };
  const int64_t lanes = p->group * p->rows;
  int64_t at = 0;
#define TAKE(field, floats) a.field = base + at, at += qn_round_up(floats, 64)
  TAKE(k, KEYS * a.k_ld);
  TAKE(v, KEYS * a.v_ld);
  TAKE(dk, KEYS * a.k_ld);
  TAKE(dv, KEYS * a.v_ld);
  TAKE(q, AT_ROWS * a.k_ld);
  TAKE(dy, AT_ROWS * a.v_ld);
  TAKE(q_lane, AT_ROWS * p->d);
  TAKE(dy_lane, AT_ROWS * p->dv);
  TAKE(p, KEYS * a.p_ld);
  TAKE(g, KEYS * a.p_ld);
  TAKE(factor, p->softcap > 0 ? KEYS * PANEL_MOST : 0);
  TAKE(scratch, 2 * KEYS * PANEL_MOST);
  TAKE(dq, p->spans > 1 ? 0 : lanes * a.k_ld);
  TAKE(lse, lanes);
  TAKE(delta, lanes);
#undef TAKE
  a.bytes = at * 4;
  return a;
}

/* ---- a block of rows against a tile of keys ------------------------------------------------------------------- */

/* Rows of tensor t for the lanes of a panel: as rows, zero-padded to ld, and turned. A row that is not finite is zeros in `rows`, and
 * flagged; returns whether there is any. */
static bool load_lanes(const attention_call *c, int t, const sequence *s, const lanes *l, int64_t length, float *rows, int64_t ld,
                       float *turned, uint8_t *odd)
{
  bool any = false;
  for (int32_t r = 0; r < PANEL; r++) {
    float *const row = rows + r * ld;
    const int64_t n = r < l->n ? length : 0;
    if (n) row_widen(c, t, row_at(c, t, s->q_entry, l->head[r], s->q_at + l->row[r]), length, row);
    memset(row + n, 0, (size_t)(ld - n) * sizeof *row);
    odd[r] = any_not_finite(row, length);
    any |= odd[r];
  }
  c->isa->turn(rows, ld, PANEL, length, turned, PANEL);
  for (int32_t r = 0; any && r < PANEL; r++) if (odd[r]) memset(rows + r * ld, 0, (size_t)length * sizeof *rows);
  return any;
}

/* p: scores, g: v dy'; they become e^(s - lse) and p (g - D) scale, times softcap's slope. n keys of a panel. Where lse is Inf
 * both are 0. */
static void differentiate(float *p, float *g, int64_t ld, int64_t n, float scale, float outer, const float *lse, const float *delta,
                          const float *factor)
{
  for (int h = 0; h < PANEL; h += CPU_LANES) {
    const v_f32 base = v_load(lse + h), mean = v_load(delta + h);
    for (int64_t j = 0; j < n; j++) {
      float *const p_at = p + j * ld + h, *const g_at = g + j * ld + h;
      const v_f32 e = v_select(base != INFINITY, v_exp(v_load(p_at) * scale - base), v_all(0));
      v_f32 x = e * outer * (v_load(g_at) - mean);
      if (factor) x *= v_load(factor + j * PANEL + h);
      x = v_select(base != INFINITY, x, v_all(0));
      V_STORE(p_at, e);
      V_STORE(g_at, x);
    }
  }
}

/* acc[key] += weight[key][lane] row(lane) for the lanes whose row was left out, and the keys they see */
static void add_odd_lanes(const attention_call *c, int t, const sequence *s, const lanes *l, int64_t length, const uint8_t *odd, int64_t at,
                          int64_t n, const float *weight, int64_t w_ld, float *acc, int64_t ld)
{
  float row[DIM_MOST];
  for (int32_t r = 0; r < l->n; r++) {
    if (!odd[r]) continue;
    row_widen(c, t, row_at(c, t, s->q_entry, l->head[r], s->q_at + l->row[r]), length, row);
    for (int64_t j = 0; j < n; j++)
      if (lane_sees(c, s, l, r, at + j)) for (int64_t d = 0; d < length; d++) acc[j * ld + d] += weight[j * w_ld + r] * row[d];
  }
}

/* dq of a panel's lanes += g' k over keys begin..end-1 of the tile at `at`, those that are not finite for the lanes that see them only */
static void add_queries(const attention_call *c, const sequence *s, const lanes *l, const area *a, int64_t at, int64_t begin, int64_t end,
                        const float *g, const uint8_t *odd, bool any_odd, float *dq)
{
  float *const k = a->k + begin * a->k_ld;
  if (!any_odd) {
    product(c->isa, g, 1, a->p_ld, l->n, end - begin, k, a->k_ld, c->p->d, dq, a->k_ld, true);
    return;
  }
  for (int64_t j = 0; j < end - begin; j++)
    for (int32_t r = 0; r < l->n; r++)
      if (!odd[begin + j] || lane_sees(c, s, l, r, at + begin + j))
        for (int64_t d = 0; d < c->p->d; d++) dq[r * a->k_ld + d] += g[j * a->p_ld + r] * k[j * a->k_ld + d];
}

/* Lanes `first` on against the tile of n keys at `at`. */
static void block(const attention_call *c, const sequence *s, int64_t kv_head, int64_t first, int64_t at, int64_t n, const uint8_t *odd_key,
                  bool any_odd_key, const area *a)
{
  const attention *p = c->p;
  const bool edited = needs_edit(c);
  const float scale = edited ? 1.0f : p->scale;
  const int64_t here = qn_min_i64(AT_ROWS, p->group * s->rows - first), panels = qn_ceil_div(here, PANEL);
  lanes l[AT_ROWS / PANEL];
  uint8_t odd_q[AT_ROWS], odd_dy[AT_ROWS];
  bool any_q = false, any_dy = false;
  int64_t begin = n, end = 0;
  for (int64_t i = 0; i < panels; i++) {
    lanes_of(&l[i], p, s, kv_head, first + i * PANEL);
    begin = qn_min_i64(begin, qn_max_i64(l[i].from - at, 0));
    end = qn_max_i64(end, qn_min_i64(l[i].to - at, n));
  }
  if (begin >= end) return;
  for (int64_t i = 0; i < panels; i++) {
    const int64_t from = qn_max_i64(l[i].from - at, 0), to = qn_max_i64(from, qn_min_i64(l[i].to - at, n)), keys = to - from;
    float *const x = a->p + from * a->p_ld + i * PANEL, *const g = a->g + from * a->p_ld + i * PANEL;
    float *const q_lane = a->q_lane + i * PANEL * p->d, *const dy_lane = a->dy_lane + i * PANEL * p->dv;
    for (int64_t j = begin; j < end; j++)
      if (j < from || j >= to) {
        memset(a->p + j * a->p_ld + i * PANEL, 0, PANEL * sizeof *x);
        memset(a->g + j * a->p_ld + i * PANEL, 0, PANEL * sizeof *g);
      }
    any_q |= load_lanes(c, AT_Q, s, &l[i], p->d, a->q + i * PANEL * a->k_ld, a->k_ld, q_lane, odd_q + i * PANEL);
    any_dy |= load_lanes(c, AT_DY, s, &l[i], p->dv, a->dy + i * PANEL * a->v_ld, a->v_ld, dy_lane, odd_dy + i * PANEL);
    if (from == to) continue;
    product(c->isa, a->k + from * a->k_ld, a->k_ld, 1, keys, p->d, q_lane, PANEL, PANEL, x, a->p_ld, false);
    product(c->isa, a->v + from * a->v_ld, a->v_ld, 1, keys, p->dv, dy_lane, PANEL, PANEL, g, a->p_ld, false);
    if (p->softcap > 0)
      for (int64_t j = 0; j < keys; j++)
#pragma omp simd
        for (int r = 0; r < PANEL; r++) {
          const float t = m_tanh(x[j * a->p_ld + r] * p->scale / p->softcap);
          a->factor[j * PANEL + r] = 1.0f - t * t;
        }
    if (edited) edit_scores(c, s, &l[i], at + from, keys, x, a->p_ld, a->scratch);
    if (p->dropped) drop(c, s, &l[i], at + from, keys, true, g, a->p_ld);
    differentiate(x, g, a->p_ld, keys, scale, p->scale, a->lse + first + i * PANEL, a->delta + first + i * PANEL,
                  p->softcap > 0 ? a->factor : NULL);
    if (p->dropped) drop(c, s, &l[i], at + from, keys, false, x, a->p_ld);
    if (hides(c)) {
      const float *const hidden = find_hidden(c, s, &l[i], at + from, keys, a->scratch);
      put_hidden(hidden, keys, 0, x, a->p_ld);
      put_hidden(hidden, keys, 0, g, a->p_ld);
    }
    if (lanes_masked(&l[i], at + from, at + to)) {
      hide_band(&l[i], at + from, keys, 0, x, a->p_ld);
      hide_band(&l[i], at + from, keys, 0, g, a->p_ld);
    }
    add_queries(c, s, &l[i], a, at, from, to, g, odd_key, any_odd_key, a->dq + (first + i * PANEL) * a->k_ld);
  }
  const float *const weight = a->p + begin * a->p_ld, *const g = a->g + begin * a->p_ld;
  product(c->isa, weight, a->p_ld, 1, end - begin, here, a->dy, a->v_ld, p->dv, a->dv + begin * a->v_ld, a->v_ld, true);
  product(c->isa, g, a->p_ld, 1, end - begin, here, a->q, a->k_ld, p->d, a->dk + begin * a->k_ld, a->k_ld, true);
  for (int64_t i = 0; i < panels && (any_q || any_dy); i++) {
    add_odd_lanes(c, AT_DY, s, &l[i], p->dv, odd_dy + i * PANEL, at + begin, end - begin, weight + i * PANEL, a->p_ld,
                  a->dv + begin * a->v_ld, a->v_ld);
    add_odd_lanes(c, AT_Q, s, &l[i], p->d, odd_q + i * PANEL, at + begin, end - begin, g + i * PANEL, a->p_ld,
                  a->dk + begin * a->k_ld, a->k_ld);
  }
}

/* ---- a span of the keys of a kv head --------------------------------------------------------------------------------------- */

/* D and what is subtracted from scores, of all rows (Inf: nothing is seen, weights are 0); the gradient of the sinks, if any, to
 * dsink[head]. */
static void begin_rows(const attention_call *c, const sequence *s, int64_t kv_head, const area *a, double *dsink)
{
  const attention *p = c->p;
  float y[DIM_MOST], dy[DIM_MOST];
  for (int64_t g = 0; g < p->group; g++) {
    const int64_t head = kv_head * p->group + g;
    double sum = 0;
    for (int64_t i = 0; i < s->rows; i++) {
      float dot = 0;
      row_widen(c, AT_Y, row_at(c, AT_Y, s->q_entry, head, s->q_at + i), p->dv, y);
      row_widen(c, AT_DY, row_at(c, AT_DY, s->q_entry, head, s->q_at + i), p->dv, dy);
#pragma omp simd reduction(+: dot)
      for (int64_t d = 0; d < p->dv; d++) dot += y[d] * dy[d];
      const float lse = *(const float *)(const void *)row_at(c, AT_LSE, s->q_entry, head, s->q_at + i);
      if (c->at[AT_DLSE]) dot -= *(const float *)(const void *)row_at(c, AT_DLSE, s->q_entry, head, s->q_at + i);
      a->delta[g * s->rows + i] = dot;
      a->lse[g * s->rows + i] = lse == -INFINITY ? INFINITY : lse == INFINITY ? FLT_MAX : lse;
      if (dsink && lse != -INFINITY) sum -= exp((double)f32_at(c, AT_SINK, head) - (double)lse) * (double)dot;
    }
    if (dsink) dsink[head] = sum;
  }
}

static void span(const attention_call *c, const sequence *s, int64_t kv_head, int64_t number, const area *a, double *dsink)
{
  const attention *p = c->p;
  const int64_t rows = p->group * s->rows;
  uint8_t odd[KEYS];
  begin_rows(c, s, kv_head, a, number == 0 ? dsink : NULL);
  memset(a->dq, 0, (size_t)(rows * a->k_ld) * sizeof *a->dq);
  for (int64_t at = number * KEYS; at < s->keys; at += p->spans * KEYS) {
    const int64_t n = qn_min_i64(KEYS, s->keys - at);
    bool any_odd = false;
    for (int64_t j = 0; j < n; j++) {
      float *const k = a->k + j * a->k_ld;
      row_widen(c, AT_K, key_at(c, AT_K, s, kv_head, at + j), p->d, k);
      row_widen(c, AT_V, key_at(c, AT_V, s, kv_head, at + j), p->dv, a->v + j * a->v_ld);
      memset(k + p->d, 0, (size_t)(a->k_ld - p->d) * sizeof *k);
      odd[j] = any_not_finite(k, p->d);
      any_odd |= odd[j];
    }
    memset(a->dk, 0, (size_t)(n * a->k_ld) * sizeof *a->dk);
    memset(a->dv, 0, (size_t)(n * a->v_ld) * sizeof *a->dv);
    for (int64_t first = 0; first < rows; first += AT_ROWS) block(c, s, kv_head, first, at, n, odd, any_odd, a);
    for (int64_t j = 0; j < n; j++) {
      float *const dk = a->dk + j * a->k_ld, *const dv = a->dv + j * a->v_ld;
      if (p->value_in_key) for (int64_t d = 0; d < p->dv; d++) dk[d] += dv[d];
      else c->isa->narrow[p->dtype[AT_DV]](dv, p->dv, row_at(c, AT_DV, s->kv_entry, kv_head, s->kv_at + at + j), p->stride[AT_DV][3]);
      c->isa->narrow[p->dtype[AT_DK]](dk, p->d, row_at(c, AT_DK, s->kv_entry, kv_head, s->kv_at + at + j), p->stride[AT_DK][3]);
    }
  }
}

/* Adds the spans' dq, `apart` floats from one to the next, to the first and writes it: lanes first..end-1 of a kv head. */
static void write_queries(const attention_call *c, const sequence *s, int64_t kv_head, int64_t first, int64_t end, float *dq, int64_t ld,
                          int64_t apart)
{
  const attention *p = c->p;
  for (int64_t n = first; n < end; n++) {
    float *const to = dq + n * ld;
    for (int64_t k = 1; k < p->spans; k++)
#pragma omp simd
      for (int64_t d = 0; d < p->d; d++) to[d] += to[k * apart + d];
    c->isa->narrow[p->dtype[AT_DQ]](to, p->d, row_at(c, AT_DQ, s->q_entry, kv_head * p->group + n / s->rows, s->q_at + n % s->rows),
                                    p->stride[AT_DQ][3]);
  }
}

/* ---- run ---------------------------------------------------------------------------------------------------------- */

static void fill_queries(const attention_call *c, int64_t entry, int64_t from, int64_t to)
{
  fill_tokens(c, AT_DQ, entry, c->p->heads, from, to, c->p->d, 0);
}
static void fill_keys(const attention_call *c, int64_t entry, int64_t from, int64_t to)
{
  fill_tokens(c, AT_DK, entry, c->p->kv_heads, from, to, c->p->d, 0);
  fill_tokens(c, AT_DV, entry, c->p->kv_heads, from, to, c->p->dv, 0);
}

CPU_RUNS(cpu_attention_tiles_backward_run);
qn_status CPU_NAME(cpu_attention_tiles_backward_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const attention *const p = prepared->state;
  const int64_t heads = p->batch * p->kv_heads, lanes = p->group * p->rows, bytes = area_of(p, NULL).bytes;
  const int threads = attention_threads(p, launch, heads * p->spans);
  double *const dsinks = (double *)(void *)((char *)launch->workspace + launch->threads * bytes);
  float *const partials = (float *)(void *)(dsinks + qn_round_up(p->batch * p->heads, 8));
  attention_call c;
  attention_bind(&c, p, launch);
  fill_unowned(&c, false, fill_queries);
  fill_unowned(&c, true, fill_keys);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    area a = area_of(p, area_at(launch->workspace, bytes));
    const int64_t apart = lanes * a.k_ld;
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < heads * p->spans; task++) {
      const int64_t b = task / p->spans / p->kv_heads, head = task / p->spans % p->kv_heads;
      const sequence s = sequence_of(&c, b);
      if (p->spans > 1) a.dq = partials + task * apart;
      span(&c, &s, head, task % p->spans, &a, c.at[AT_DSINK] ? dsinks + b * p->heads : NULL);
      if (p->spans == 1) write_queries(&c, &s, head, 0, p->group * s.rows, a.dq, a.k_ld, 0);
    }
    const int64_t blocks = p->spans > 1 ? qn_ceil_div(lanes, AT_ROWS) : 0;
#pragma omp for schedule(static)
    for (int64_t task = 0; task < heads * blocks; task++) {
      const sequence s = sequence_of(&c, task / blocks / p->kv_heads);
      const int64_t first = task % blocks * AT_ROWS, end = qn_min_i64(first + AT_ROWS, p->group * s.rows);
      write_queries(&c, &s, task / blocks % p->kv_heads, first, end, partials + task / blocks * p->spans * apart, a.k_ld, apart);
    }
  }
  for (int64_t h = 0; c.at[AT_DSINK] && h < p->heads; h++) {
    double sum = 0;
    for (int64_t b = 0; b < p->batch; b++) sum += dsinks[b * p->heads + h];
    *(float *)(void *)(c.at[AT_DSINK] + h * p->stride[AT_DSINK][0] * 4) = (float)sum;
  }
  return QN_OK;
}

/* ---- prepare ------------------------------------------------------------------------------------------------------ */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  attention p;
  if (status || (status = cpu_attention_describe(request, prepared, &p))) return status;
  const int64_t heads = p.batch * p.kv_heads, dq = p.group * p.rows * area_of(&p, NULL).k_ld * 4;
  p.spans = 1;
  if (cpu_gemm_one_order(request)) prepared->traits |= QN_TRAIT_BATCH_INVARIANT;
  else if (heads > 0)
    p.spans = qn_max_i64(1, qn_min_i64(qn_min_i64(qn_ceil_div(TASKS, heads), qn_ceil_div(p.keys, KEYS)), PARTIALS / (heads * dq + 1)));
  prepared->workspace = (uint64_t)(request->demands->threads * area_of(&p, NULL).bytes + qn_round_up(p.batch * p.heads, 8) * 8
                                   + (p.spans > 1 ? heads * p.spans * dq : 0));
  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_)                                                                                              \
  { .name = name_, .op = QN_OP_ATTENTION_BACKWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,          \
    .prepare = prepare, .run = run_, .release = cpu_release },
static const qn_engine row[] = { CPU_COPIES(ROW, "tiles", cpu_attention_tiles_backward_run) };
const qn_engine_list cpu_attention_tiles_backward = { row, sizeof row / sizeof *row };
#endif
