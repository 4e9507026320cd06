/* attention_tiles.c -- attention's forward by tiles, in f32; no row of scores is ever stored whole.
 *
 *   for a block of rows: for each tile of keys:
 *     s = k q'     m' = max(m, max s)     p = e^(s - m')     l = l e^(m - m') + sum p     o = o e^(m - m') + v' p
 *   y = o / l,     lse = m + ln l,     max = m
 *
 * A block of rows is done by one thread. Narrow dtypes are widened tile by tile. See attention_tiles.h for how scores lie. */
#include "attention_tiles.h"

/* A thread's workspace. */
typedef struct area {
  float *q, *o, *m, *l;                   /* a panel each: [d][PANEL], [dv][PANEL], [PANEL] */
  float *k, *v, *s, *row;                 /* tiles: [KEYS][ld], [dv / mr][KEYS][mr], [KEYS][PANEL]; rows to be turned */
  int64_t bytes;
} area;

static area area_of(const attention *p, float *base)
{
  area a;
  int64_t at = 0;
#define TAKE(field, floats) a.field = base + at, at += qn_round_up(floats, 64)
  TAKE(q, p->d * AT_ROWS);
  TAKE(o, p->dv * AT_ROWS);
  TAKE(m, AT_ROWS);
  TAKE(l, AT_ROWS);
  TAKE(k, KEYS * cpu_gemm_ld(p->d, 4));
  TAKE(v, KEYS * (p->dv + 16));
  TAKE(s, KEYS * PANEL_MOST);
  TAKE(row, PANEL_MOST * qn_max_i64(cpu_gemm_ld(qn_max_i64(p->d, p->dv), 4), 2 * KEYS));
#undef TAKE
  a.bytes = at * 4;
  return a;
}

/* ---- a tile ------------------------------------------------------------------------------------------------- */

/* Values from..to-1 of a sequence as the rows of a product by v': chunks of mr elements, each with all keys. What is not finite is left out
 * and its rows flagged; returns whether there is any. */
static bool load_values(const attention_call *c, const sequence *s, int64_t kv_head, int64_t from, int64_t to, int mr, float *tile,
                        uint8_t *odd)
{
  const attention *p = c->p;
  float row[DIM_MOST + 16];
  bool any = false;
  memset(row + p->dv, 0, 16 * sizeof *row);
  for (int64_t j = from; j < to; j++) {
    row_widen(c, AT_V, key_at(c, AT_V, s, kv_head, j), p->dv, row);
    odd[j - from] = any_not_finite(row, p->dv);
    any |= odd[j - from];
    if (odd[j - from]) memset(row, 0, (size_t)p->dv * sizeof *row);
    float *into = tile + (j - from) * mr;
    if (mr == 12) for (int64_t d = 0; d < p->dv; d += 12, into += KEYS * 12) memcpy(into, row + d, 12 * sizeof *row);
    else          for (int64_t d = 0; d < p->dv; d += 6, into += KEYS * 6) memcpy(into, row + d, 6 * sizeof *row);
  }
  return any;
}

/* o[d][lane] += sum over keys of v[key][d] p[key][lane], keys first..end-1 of the tile */
static void add_values(const attention_call *c, const float *tile, int64_t first, int64_t end, const float *weight, float *o)
{
  const int mr = c->isa->type[CPU_GEMM_F32].mr;
  for (int64_t d = 0; d < c->p->dv; d += mr, tile += KEYS * mr) {
    const int rows = (int)qn_min_i64(mr, c->p->dv - d);
    const void *row[16];
    for (int r = 0; r < rows; r++) row[r] = tile + first * mr + r;
    c->isa->type[CPU_GEMM_F32].micro(rows, end - first, row, mr, weight, PANEL, o + d * PANEL, PANEL, 1);
  }
}

/* The same of the values that load_values left out, for the lanes that see them. */
static void add_odd_values(const attention_call *c, const sequence *s, const lanes *l, int64_t kv_head, int64_t at, int64_t n,
                           const uint8_t *odd, const float *weight, float *o)
{
  float row[DIM_MOST];
  for (int64_t j = 0; j < n; j++) {
    if (!odd[j]) continue;
    row_widen(c, AT_V, key_at(c, AT_V, s, kv_head, at + j), c->p->dv, row);
    for (int32_t r = 0; r < l->n; r++)
      if (lane_sees(c, s, l, r, at + j) && !is_dropped(c, s, l->head[r], l->row[r], at + j))
        for (int64_t d = 0; d < c->p->dv; d++) o[d * PANEL + r] += weight[j * PANEL + r] * row[d];
  }
}

CPU_INLINE v_f32 larger(v_f32 m, v_f32 x, const bool exact) { return exact ? v_larger(m, x) : v_max(m, x); }

/* Scores of n keys, still to be scaled, become weights relative to the new maximum; o, m and l follow. exact_max: the maximum is NaN if a
 * score is; else it may be any (the sums are NaN then). */
CPU_INLINE void weigh(float *s, int64_t n, float scale, float *m, float *l, float *o, int64_t dv, const bool exact_max)
{
  v_f32 most[2] = { v_all(-INFINITY), v_all(-INFINITY) }, other[2] = { most[0], most[1] };
  int64_t j = 0;
  for (; j + 2 <= n; j += 2)
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      most[h] = larger(most[h], v_load(s + j * PANEL + h * CPU_LANES), exact_max);
      other[h] = larger(other[h], v_load(s + (j + 1) * PANEL + h * CPU_LANES), exact_max);
    }
  for (; j < n; j++)
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) most[h] = larger(most[h], v_load(s + j * PANEL + h * CPU_LANES), exact_max);
  v_f32 base[2], sum[2] = { v_all(0), v_all(0) }, factor[2];
  bool moved = false;
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) {
    const v_f32 before = v_load(m + h * CPU_LANES), now = larger(before, larger(most[h], other[h], exact_max), exact_max);
    base[h] = v_select(now == -INFINITY, v_all(0), now);
    factor[h] = v_exp((before - base[h]) * scale);
    V_STORE(m + h * CPU_LANES, now);
    const v_i32 differs = factor[h] != 1.0f;
    for (int r = 0; r < CPU_LANES; r++) moved |= differs[r] != 0;
  }
  for (j = 0; j < n; j++)
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      float *const at = s + j * PANEL + h * CPU_LANES;
      const v_f32 e = v_exp((v_load(at) - base[h]) * scale);          /* 1 at the maximum, however large */
      sum[h] += e;
      V_STORE(at, e);
    }
#pragma GCC unroll 2
  for (int h = 0; h < 2; h++) {
    const v_f32 total = v_load(l + h * CPU_LANES) * factor[h] + sum[h];
    V_STORE(l + h * CPU_LANES, total);
  }
  for (int64_t d = 0; moved && d < dv; d++)
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      const v_f32 x = v_load(o + d * PANEL + h * CPU_LANES) * factor[h];
      V_STORE(o + d * PANEL + h * CPU_LANES, x);
    }
}

/* ---- a block of rows ------------------------------------------------------------------------------------------ */

static void finish_panel(const attention_call *c, const sequence *s, const lanes *l, float scale, const float *m, const float *sum,
                         const float *o, float *row)
{
  const int64_t dv = c->p->dv, ld = cpu_gemm_ld(dv, 4);
  c->isa->turn(o, PANEL, dv, PANEL, row, ld);
  for (int32_t r = 0; r < l->n; r++) finish_row(c, s, l->head[r], l->row[r], m[r] * scale, sum[r], row + r * ld);
}

/* Lanes `first` on, AT_ROWS of them, of a kv head's group. */
static void block(const attention_call *c, const sequence *s, int64_t kv_head, int64_t first, const area *a)
{
  const attention *p = c->p;
  const int mr = c->isa->type[CPU_GEMM_F32].mr;
  const bool edited = needs_edit(c);
  const float scale = edited ? 1.0f : p->scale;
  const int64_t panels = qn_ceil_div(qn_min_i64(AT_ROWS, p->group * s->rows - first), PANEL), k_ld = cpu_gemm_ld(p->d, 4);
  lanes l[AT_ROWS / PANEL];
  uint8_t odd[KEYS];
  int64_t from = s->keys, to = 0;
  for (int64_t i = 0; i < panels; i++) {
    lanes_of(&l[i], p, s, kv_head, first + i * PANEL);
    from = qn_min_i64(from, l[i].from);
    to = qn_max_i64(to, l[i].to);
    load_panel(c, AT_Q, s, &l[i], p->d, a->row, a->q + i * p->d * PANEL, PANEL);
    for (int r = 0; r < PANEL; r++) a->m[i * PANEL + r] = -INFINITY;
  }
  memset(a->l, 0, (size_t)(panels * PANEL) * sizeof *a->l);
  memset(a->o, 0, (size_t)(panels * PANEL * p->dv) * sizeof *a->o);
  for (int64_t at = from / KEYS * KEYS; at < to; at += KEYS) {
    const int64_t n = qn_min_i64(KEYS, to - at);
    load_keys(c, s, kv_head, at, at + n, a->k, k_ld);
    const bool any_odd = load_values(c, s, kv_head, at, at + n, mr, a->v, odd);
    for (int64_t i = 0; i < panels; i++) {
      const int64_t begin = qn_max_i64(l[i].from - at, 0), end = qn_min_i64(n, l[i].to - at);
      float *const o = a->o + i * p->dv * PANEL, *const weight = a->s;
      if (begin >= end) continue;
      product(c->isa, a->k + begin * k_ld, k_ld, 1, end - begin, p->d, a->q + i * p->d * PANEL, PANEL, PANEL, weight, PANEL, false);
      if (edited) edit_scores(c, s, &l[i], at + begin, end - begin, weight, PANEL, a->row);
      if (hides(c))
        put_hidden(find_hidden(c, s, &l[i], at + begin, end - begin, a->row), end - begin, -INFINITY, weight, PANEL);
      if (lanes_masked(&l[i], at + begin, at + end)) hide_band(&l[i], at + begin, end - begin, -INFINITY, weight, PANEL);
      if (c->at[AT_MAX]) weigh(weight, end - begin, scale, a->m + i * PANEL, a->l + i * PANEL, o, p->dv, true);
      else weigh(weight, end - begin, scale, a->m + i * PANEL, a->l + i * PANEL, o, p->dv, false);
      if (p->dropped) drop(c, s, &l[i], at + begin, end - begin, false, weight, PANEL);
      add_values(c, a->v, begin, end, weight, o);
      if (any_odd) add_odd_values(c, s, &l[i], kv_head, at + begin, end - begin, odd + begin, weight, o);
    }
  }
  for (int64_t i = 0; i < panels; i++)
    finish_panel(c, s, &l[i], scale, a->m + i * PANEL, a->l + i * PANEL, a->o + i * p->dv * PANEL, a->row);
}

/* ---- run --------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_attention_tiles_run);
qn_status CPU_NAME(cpu_attention_tiles_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const attention *const p = prepared->state;
  const int64_t blocks = qn_ceil_div(p->group * p->rows, AT_ROWS), tasks = p->batch * p->kv_heads * blocks;
  const int64_t bytes = area_of(p, NULL).bytes;
  const int threads = attention_threads(p, launch, tasks);
  attention_call c;
  attention_bind(&c, p, launch);
  fill_unowned(&c, false, fill_forward);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const area a = area_of(p, area_at(launch->workspace, bytes));
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) {
      const int64_t first = (blocks - 1 - task % blocks) * AT_ROWS, head = task / blocks % p->kv_heads;    /* the longest first */
      const sequence s = sequence_of(&c, task / blocks / p->kv_heads);
      if (first < p->group * s.rows) block(&c, &s, head, first, &a);
    }
  }
  return QN_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const int8_t forward_role[AT_TENSORS] = {
#define ROLE(name) [AT_##name] = QN_ROLE_ATTENTION_FORWARD_##name + 1      /* 0: none */
  ROLE(Q), ROLE(K), ROLE(V), ROLE(Y), ROLE(LSE), ROLE(MAX), ROLE(BIAS), ROLE(MASK), ROLE(BLOCKS), ROLE(SLOPES), ROLE(SINK), ROLE(Q_LENGTHS),
  ROLE(KV_LENGTHS), ROLE(Q_STARTS), ROLE(KV_STARTS), ROLE(PAGES), ROLE(SEED), ROLE(OFFSET)
#undef ROLE
};
static const int8_t backward_role[AT_TENSORS] = {
#define ROLE(name) [AT_##name] = QN_ROLE_ATTENTION_BACKWARD_##name + 1
  ROLE(Q), ROLE(K), ROLE(V), ROLE(Y), ROLE(LSE), ROLE(BIAS), ROLE(MASK), ROLE(BLOCKS), ROLE(SLOPES), ROLE(SINK), ROLE(Q_LENGTHS),
  ROLE(KV_LENGTHS), ROLE(Q_STARTS), ROLE(KV_STARTS), ROLE(SEED), ROLE(OFFSET), ROLE(DY), ROLE(DLSE), ROLE(DQ), ROLE(DK),
  ROLE(DV), ROLE(DSINK)
#undef ROLE
};

/* Strides of t; 0 where it broadcasts. slopes [B|1, H] or [H] take the places of sequence and head. */
static void describe_tensor(attention *p, int t, const qn_value *v)
{
  const int32_t at = t == AT_SLOPES && v->rank == 1 ? 1 : 0;
  const bool spread = t == AT_BIAS || t == AT_MASK || t == AT_BLOCKS || t == AT_SLOPES;
  p->dtype[t] = v->dtype;
  p->bytes[t] = qn_kit_bytes(v->dtype);
  for (int32_t i = 0; i < v->rank; i++) p->stride[t][at + i] = spread && v->dim[i] == 1 ? 0 : v->stride[i];
  if (t == AT_BLOCKS && v->dim[2] == 1) p->stride[t][2] = 0;
}

qn_status cpu_attention_describe(const qn_request *request, qn_prepared *prepared, attention *p)
{
  const qn_node *node = &request->op[0];
  const bool backward = node->op == QN_OP_ATTENTION_BACKWARD;
  const qn_attention *a = node->attr;
  const qn_value *v[AT_TENSORS];
  memset(p, 0, sizeof *p);
  for (int t = 0; t < AT_TENSORS; t++) {
    p->value[t] = qn_role_at(node, (int8_t)((backward ? backward_role : forward_role)[t] - 1));
    v[t] = p->value[t] < 0 ? NULL : &request->value[p->value[t]];
    if (v[t]) describe_tensor(p, t, v[t]);
  }
  static const struct { int t; const char *name; } floats[] = { { AT_Q, "q" }, { AT_K, "k" }, { AT_V, "v" }, { AT_Y, "y" },
                                                                { AT_BIAS, "bias" } };
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (v[floats[i].t] && v[floats[i].t]->dtype != QN_F32 && v[floats[i].t]->dtype != QN_F16 && v[floats[i].t]->dtype != QN_BF16)
      return qn_refuse(prepared, "computes in f32", floats[i].name, "f32, f16, bf16", "%s", qn_kit_name(v[floats[i].t]->dtype));
  static const uint32_t scaled[] = {
    QN_ROLE_ATTENTION_FORWARD_Q_SCALE, QN_ROLE_ATTENTION_FORWARD_K_SCALE, QN_ROLE_ATTENTION_FORWARD_V_SCALE,
    QN_ROLE_ATTENTION_FORWARD_Y_SCALE, QN_ROLE_ATTENTION_FORWARD_AMAX
  };
  for (size_t i = 0; i < sizeof scaled / sizeof *scaled && !backward; i++)
    if (qn_role(node, scaled[i]) >= 0) return qn_refuse(prepared, "has no scales", "", "no scale and no amax", "%s", "");
  if (backward && qn_role(node, QN_ROLE_ATTENTION_BACKWARD_DBIAS) >= 0)
    return qn_refuse(prepared, "does not sum the bias's gradient", "dbias", "none", "%s", "");

  const qn_value *q = v[AT_Q], *k = v[AT_K], *pages = v[AT_PAGES];
  p->batch = v[AT_Q_STARTS] ? v[AT_Q_STARTS]->dim[0] - 1 : q->dim[0];
  p->heads = q->dim[1], p->kv_heads = k->dim[1], p->group = p->kv_heads ? p->heads / p->kv_heads : 1;
  p->rows = q->dim[2], p->keys = pages ? pages->dim[1] * k->dim[2] : k->dim[2];
  if (pages) p->page = k->dim[2], p->n_pages = k->dim[0];
  p->d = q->dim[3], p->dv = v[AT_V] ? v[AT_V]->dim[3] : a->value_size;
  p->left = a->left, p->right = a->right, p->top_left = a->align == QN_ALIGN_TOP_LEFT;
  p->block_q = a->block_q, p->block_kv = a->block_kv;
  p->scale = (float)(a->scale > 0 ? a->scale : 1 / sqrt((double)p->d));
  p->softcap = (float)a->softcap;
  p->dropped = (uint32_t)(a->dropout * 65536 + 0.5);
  p->kept = p->dropped < 65536 ? 65536.0f / (float)(65536 - p->dropped) : 0;
  if (!v[AT_V]) {
    p->value_in_key = true;
    p->value[AT_V] = p->value[AT_K];
    describe_tensor(p, AT_V, k);
  }
  if (qn_max_i64(p->d, p->dv) > DIM_MOST)
    return qn_refuse(prepared, "keeps a row of a head on the stack", p->d > DIM_MOST ? "q" : "v", "at most 1024 elements", "%lld",
                     (long long)qn_max_i64(p->d, p->dv));
  if (p->keys > INT32_MAX / 2 || p->group * p->rows > INT32_MAX / 2)
    return qn_refuse(prepared, "counts rows and keys in 32 bits", p->keys > INT32_MAX / 2 ? "k" : "q", "fewer than 2^30", "%s", "");
  return QN_OK;
}

double cpu_attention_ns(const qn_request *request, const attention *p, double vectors, int64_t blocks)
{
  const int64_t tasks = p->batch * p->kv_heads * blocks, threads = qn_max_i64(1, qn_min_i64(request->demands->threads, tasks));
  return CPU_VECTOR_NS * vectors * (double)(p->batch * p->kv_heads) * (double)p->keys / (double)threads + 1;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  attention p;
  if (status || (status = cpu_attention_describe(request, prepared, &p))) return status;
  prepared->workspace = (uint64_t)(request->demands->threads * area_of(&p, NULL).bytes);
  /* As measured, for a key: the exponentials of a panel and its products, two vectors each; the key and its value are laid out. */
  const int64_t lanes = cpu_gemm_isa_of(request->device)->type[CPU_GEMM_F32].nr / 2, panels = qn_ceil_div(p.group * p.rows, 2 * lanes);
  const double d = (double)(p.d + p.dv);
  prepared->estimate = cpu_attention_ns(request, &p, (double)panels * (60 + 2 * d) + 8 * d / (double)lanes,
                                        qn_ceil_div(p.group * p.rows, AT_ROWS));
  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_)                                                                                              \
  { .name = name_, .op = QN_OP_ATTENTION_FORWARD, .class_ = QN_CLASS_TUNED,                                             \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, .prepare = prepare, .run = run_, .release = cpu_release },
static const qn_engine row[] = { CPU_COPIES(ROW, "tiles", cpu_attention_tiles_run) };
const qn_engine_list cpu_attention_tiles = { row, sizeof row / sizeof *row };
#endif
