/* attention_decode.c -- attention's forward for a few rows against many keys, in f32: what generating a token does.
 *
 *   for a part of a sequence's keys:   s = q k'     m = max s     p = e^(s - m)     l = sum p     o = p v
 *   then, over the parts in order:     y = sum o e^(m - M) / L,   M = max m,   L = sum l e^(m - M)
 *
 * Keys and values are read once, in place; the rows of all query heads that share a kv head are done together. The parts depend on the
 * sequence's length alone, so neither the batch nor the threads change a bit. */
#include "attention_tiles.h"

enum { ROWS = 16,                         /* most rows of a group */
       FEW = CPU_LANES,                   /* fewer rows widen narrow keys and values as they load them, each for itself */
       PART = 1024,                       /* most keys of a part */
       TILE = 32,                         /* keys whose rows stay in a first-level cache while all rows use them */
       STRIP = 8 };                       /* vectors of sums in flight */

/* A thread's workspace: queries padded to whole vectors, scores, sums of values; a tile of widened keys or values. */
typedef struct area {
  float *q, *s, *o, *tile;
  uint8_t *seen;                          /* [ROWS][PART]: does a row see a key? */
  int64_t d, dv, bytes;                   /* d, dv: with the padding */
} area;

static area area_of(const attention *p, float *base)
{
  const int64_t d = qn_round_up(p->d, PANEL_MOST / 2), dv = qn_round_up(p->dv, PANEL_MOST / 2);
  area a = { .q = base, .s = base + ROWS * d, .d = d, .dv = dv };
  a.o = a.s + ROWS * PART;
  a.tile = a.o + ROWS * dv;
  a.seen = (uint8_t *)(a.tile + TILE * qn_max_i64(d, dv));
  a.bytes = (ROWS * (d + PART + dv) + TILE * qn_max_i64(d, dv)) * 4 + ROWS * PART;
  return a;
}

/* What a part leaves for each row: m, l and o. */
static int64_t parts_most(const attention *p) { return qn_max_i64(1, qn_ceil_div(p->keys, PART)); }
static int64_t part_floats(const attention *p) { return 2 + p->dv; }

/* ---- products of rows ---------------------------------------------------------------------------------------- */

/* to[k] = the sum of x[k]'s lanes */
CPU_INLINE void sums_of_8(const v_f32 *x, float *to)
{
#if defined __AVX2__
  __m256 y[8];
  for (int k = 0; k < 8; k++) {
#if defined __AVX512F__
    y[k] = _mm512_castps512_ps256((__m512)x[k]) + _mm512_extractf32x8_ps((__m512)x[k], 1);
#else
    y[k] = (__m256)x[k];
#endif
  }
  const __m256 a = _mm256_hadd_ps(_mm256_hadd_ps(y[0], y[1]), _mm256_hadd_ps(y[2], y[3]));
  const __m256 b = _mm256_hadd_ps(_mm256_hadd_ps(y[4], y[5]), _mm256_hadd_ps(y[6], y[7]));
  _mm256_storeu_ps(to, _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31));
#else
  for (int k = 0; k < 8; k++) {
    float sum = 0;
    for (int i = 0; i < CPU_LANES; i++) sum += x[k][i];
    to[k] = sum;
  }
#endif
}

/* s[j] = q k_j for n keys; d: a multiple of a vector. s has room for a multiple of 8. */
CPU_INLINE void dots(const float *q, const char *const *key, int64_t n, int64_t d, uint32_t dtype, float *s)
{
  for (int64_t j = 0; j < n; j += 8) {
    const char *k[8];
    v_f32 sum[8];
    for (int t = 0; t < 8; t++) {
      k[t] = key[j + t < n ? j + t : n - 1];
      sum[t] = v_all(0);
    }
    for (int64_t i = 0; i < d; i += CPU_LANES) {
      const v_f32 x = v_load(q + i);
#pragma GCC unroll 8
      for (int t = 0; t < 8; t++) sum[t] += x * v_load_as(k[t], i, dtype);
    }
    sums_of_8(sum, s + j);
  }
}

/* o += sum over n keys of p[j] v_j, elements i to i + vectors CPU_LANES - 1 */
CPU_INLINE void add_strip(const float *p, const char *const *value, int64_t n, int64_t i, const int vectors, uint32_t dtype, float *o)
{
  v_f32 sum[STRIP];
#pragma GCC unroll 8
  for (int t = 0; t < vectors; t++) sum[t] = v_load(o + i + t * CPU_LANES);
  for (int64_t j = 0; j < n; j++) {
#pragma GCC unroll 8
    for (int t = 0; t < vectors; t++) sum[t] += p[j] * v_load_as(value[j], i + t * CPU_LANES, dtype);
  }
#pragma GCC unroll 8
  for (int t = 0; t < vectors; t++) V_STORE(o + i + t * CPU_LANES, sum[t]);
}
CPU_INLINE void add_values(const float *p, const char *const *value, int64_t n, int64_t dv, uint32_t dtype, float *o)
{
  int64_t i = 0;
  for (; i + STRIP * CPU_LANES <= dv; i += STRIP * CPU_LANES) add_strip(p, value, n, i, STRIP, dtype, o);
  for (; i + 4 * CPU_LANES <= dv; i += 4 * CPU_LANES) add_strip(p, value, n, i, 4, dtype, o);
  for (; i < dv; i += CPU_LANES) add_strip(p, value, n, i, 1, dtype, o);
}

static void dots_of(const float *q, const char *const *key, int64_t n, int64_t d, uint32_t dtype, float *s)
{
  if (dtype == QN_F32) dots(q, key, n, d, QN_F32, s);
  else if (dtype == QN_BF16) dots(q, key, n, d, QN_BF16, s);
  else dots(q, key, n, d, QN_F16, s);
}
static void values_of(const float *p, const char *const *value, int64_t n, int64_t dv, uint32_t dtype, float *o)
{
  if (dtype == QN_F32) add_values(p, value, n, dv, QN_F32, o);
  else if (dtype == QN_BF16) add_values(p, value, n, dv, QN_BF16, o);
  else add_values(p, value, n, dv, QN_F16, o);
}

/* ---- a part ------------------------------------------------------------------------------------------------- */

/* Rows of keys or values at..at+n-1, which `rows` rows are to meet: in place where they are whole vectors without gaps, else widened; returns
 * their dtype. */
static uint32_t rows_of(const attention_call *c, int t, const sequence *s, int64_t kv_head, int64_t at, int64_t n, int64_t length,
                        int64_t rows, float *tile, const char **row)
{
  const int64_t padded = qn_round_up(length, PANEL_MOST / 2);
  bool in_place = c->p->stride[t][3] == 1 && length % CPU_LANES == 0 && (rows < FEW || c->p->dtype[t] == QN_F32);
  for (int64_t j = 0; j < n; j++) {
    row[j] = key_at(c, t, s, kv_head, at + j);
    in_place &= row[j] != NULL;
  }
  if (in_place) return c->p->dtype[t];
  const int64_t *const stride = c->p->stride[t];
  const bool turned = stride[2] == 1 && stride[3] != 1 && !c->p->page;                   /* an element's keys lie side by side */
  if (turned) cpu_gemm_lay(c->isa, c->p->dtype[t], row[0], 1, stride[3], n, length, tile, padded);
  for (int64_t j = 0; j < n; j++) {
    if (!turned) row_widen(c, t, row[j], length, tile + j * padded);
    memset(tile + j * padded + length, 0, (size_t)(padded - length) * sizeof *tile);
    row[j] = (const char *)(tile + j * padded);
  }
  return QN_F32;
}

/* seen: which of keys at..at+n-1 row i may see, the band aside; there: keys on pages that exist. */
static void see_keys(const attention_call *c, const sequence *s, int64_t head, int64_t i, int64_t at, int64_t n, const uint8_t *there,
                     uint8_t *seen)
{
  const int64_t step = c->p->stride[AT_MASK][3];
  const char *const mask = c->at[AT_MASK] ? spread_at(c, AT_MASK, s, head, i, at) : NULL;
  for (int64_t j = 0; j < n; j++) seen[j] = there[j] && (!mask || mask[j * step]);
  for (int64_t j = 0; j < n && c->at[AT_BLOCKS]; j++) seen[j] = seen[j] && block_open(c, s, head, i, (at + j) / c->p->block_kv);
}

/* Products of row i with keys at..at+n-1 become scores. */
static void edit_row(const attention_call *c, const sequence *s, int64_t head, int64_t i, int64_t at, int64_t n, const uint8_t *seen,
                     float *x)
{
  const attention *p = c->p;
  const float cap = p->softcap;
  if (cap > 0)
#pragma omp simd
    for (int64_t j = 0; j < n; j++) x[j] = cap * m_tanh(x[j] * p->scale / cap);
  else
#pragma omp simd
    for (int64_t j = 0; j < n; j++) x[j] *= p->scale;
  if (c->at[AT_BIAS]) {
    float bias[PART];
    c->isa->widen[p->dtype[AT_BIAS]](spread_at(c, AT_BIAS, s, head, i, at), p->stride[AT_BIAS][3], n, bias);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) x[j] += bias[j];
  }
  if (c->at[AT_SLOPES]) {
    const float slope = slope_of(c, s, head), diagonal = (float)(i + s->shift - at);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) x[j] -= slope * m_abs(diagonal - (float)j);
  }
  if (hides(c)) for (int64_t j = 0; j < n; j++) x[j] = seen[j] ? x[j] : -INFINITY;
}

/* Scores become weights; m and l. */
static void weigh(float *s, int64_t n, float scale, float *m, float *l)
{
  float most = -INFINITY, sum = 0;
  int32_t bad = 0;
#pragma omp simd reduction(max: most) reduction(|: bad)
  for (int64_t j = 0; j < n; j++) {
    most = s[j] > most ? s[j] : most;
    bad |= s[j] != s[j];
  }
  *m = bad ? NAN : most * scale;
  const float base = most == -INFINITY ? 0 : bad ? NAN : most;
#pragma omp simd reduction(+: sum)
  for (int64_t j = 0; j < n; j++) {
    const float e = m_exp((s[j] - base) * scale);
    s[j] = e;
    sum += e;
  }
  *l = sum;
}

/* Keys from..to-1 for all rows of a kv head; out: m, l and o of each row, `apart` floats apart. */
static void part(const attention_call *c, const sequence *s, int64_t kv_head, int64_t from, int64_t to, const area *a, float *out,
                 int64_t apart)
{
  const attention *p = c->p;
  const bool edited = needs_edit(c) || hides(c), one_by_one = hides(c) || p->dropped;
  const float scale = edited ? 1.0f : p->scale;
  const int64_t rows = p->group * s->rows;
  const char *row[TILE];
  uint8_t there[PART];
  int64_t lo[ROWS], end[ROWS], head[ROWS], index[ROWS], begin = to, stop = from;      /* begin, stop: of the keys that any row sees */
  for (int64_t r = 0; r < rows; r++) {
    head[r] = kv_head * p->group + r / s->rows;
    index[r] = r % s->rows;
    band_of(p, s, index[r], &lo[r], &end[r]);
    lo[r] = qn_max_i64(lo[r], from);
    end[r] = qn_min_i64(end[r], to);
    if (lo[r] < end[r]) begin = qn_min_i64(begin, lo[r]), stop = qn_max_i64(stop, end[r]);
    row_widen(c, AT_Q, row_at(c, AT_Q, s->q_entry, head[r], s->q_at + index[r]), p->d, a->q + r * a->d);
    memset(a->q + r * a->d + p->d, 0, (size_t)(a->d - p->d) * sizeof *a->q);
  }
  for (int64_t j = begin; j < stop; j++) there[j - from] = !p->page || key_at(c, AT_K, s, kv_head, j);
  const int64_t d = qn_round_up(p->d, CPU_LANES), dv = qn_round_up(p->dv, CPU_LANES);
  for (int64_t at = begin; at < stop; at += TILE) {
    const int64_t n = qn_min_i64(TILE, stop - at);
    const uint32_t dtype = rows_of(c, AT_K, s, kv_head, at, n, p->d, rows, a->tile, row);
    for (int64_t r = 0; r < rows; r++) dots_of(a->q + r * a->d, row, n, d, dtype, a->s + r * PART + at - from);
  }
  for (int64_t r = 0; r < rows; r++) {
    float *const mine = out + r * apart, *const scores = a->s + r * PART + lo[r] - from;
    uint8_t *const seen = a->seen + r * PART + lo[r] - from;
    if (one_by_one && end[r] > lo[r]) see_keys(c, s, head[r], index[r], lo[r], end[r] - lo[r], there + lo[r] - from, seen);
    if (edited && end[r] > lo[r]) edit_row(c, s, head[r], index[r], lo[r], end[r] - lo[r], seen, scores);
    weigh(scores, end[r] - lo[r], scale, &mine[0], &mine[1]);
  }
  memset(a->o, 0, (size_t)(rows * a->dv) * sizeof *a->o);
  for (int64_t at = begin; at < stop; at += TILE) {
    const int64_t n = qn_min_i64(TILE, stop - at);
    const uint32_t dtype = rows_of(c, AT_V, s, kv_head, at, n, p->dv, rows, a->tile, row);
    for (int64_t r = 0; r < rows; r++) {
      const float *const weight = a->s + r * PART - from;
      const uint8_t *const seen = a->seen + r * PART - from;
      const int64_t first = qn_max_i64(lo[r], at), last = qn_min_i64(end[r], at + n);
      float mine[TILE];
      const char *value[TILE];
      int64_t count = 0;
      for (int64_t j = first; j < last && one_by_one; j++) {         /* a weight of 0 times what a row does not see may be NaN */
        mine[count] = weight[j], value[count] = row[j - at];
        count += seen[j] && !is_dropped(c, s, head[r], index[r], j);
      }
      if (one_by_one) values_of(mine, value, count, dv, dtype, a->o + r * a->dv);
      else if (last > first) values_of(weight + first, row + (first - at), last - first, dv, dtype, a->o + r * a->dv);
    }
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < p->dv; i++) out[r * apart + 2 + i] = p->kept * a->o[r * a->dv + i];
}

/* ---- run ---------------------------------------------------------------------------------------------------- */

static int64_t parts_of(const sequence *s) { return qn_max_i64(1, qn_ceil_div(s->keys, PART)); }

/* Joins the parts of a row; part k is `apart` floats after the one before. o: scratch. */
static void join(const attention_call *c, const sequence *s, int64_t head, int64_t i, const float *in, int64_t parts, int64_t apart,
                 float *o)
{
  float most = -INFINITY, sum = 0;
  for (int64_t k = 0; k < parts; k++) most = f_larger(most, in[k * apart]);
  memset(o, 0, (size_t)c->p->dv * sizeof *o);
  for (int64_t k = 0; k < parts; k++) {
    const float *const from = in + k * apart, by = from[0] == -INFINITY ? 0 : m_exp(from[0] - most);
    sum += from[1] * by;
#pragma omp simd
    for (int64_t d = 0; d < c->p->dv; d++) o[d] += from[2 + d] * by;
  }
  finish_row(c, s, head, i, most, sum, o);
}

CPU_RUNS(cpu_attention_decode_run);
qn_status CPU_NAME(cpu_attention_decode_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const attention *const p = prepared->state;
  const int64_t parts = parts_most(p), tasks = p->batch * p->kv_heads * parts, apart = part_floats(p), each = p->group * p->rows * apart;
  const int64_t bytes = area_of(p, NULL).bytes;
  const int threads = attention_threads(p, launch, tasks);
  char *const areas = launch->workspace;
  float *const results = (float *)(void *)(areas + launch->threads * bytes);
  attention_call c;
  attention_bind(&c, p, launch);
  fill_unowned(&c, false, fill_forward);
#pragma omp parallel num_threads(threads) if (threads > 1)
  {
    const area a = area_of(p, area_at(areas, bytes));
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; task++) {
      const sequence s = sequence_of(&c, task / parts / p->kv_heads);
      const int64_t k = task % parts, here = parts_of(&s), length = qn_round_up(qn_ceil_div(s.keys, here), TILE);
      if (k >= here || s.rows == 0) continue;
      part(&c, &s, task / parts % p->kv_heads, qn_min_i64(s.keys, k * length), qn_min_i64(s.keys, (k + 1) * length), &a,
           results + task * each, apart);
    }
#pragma omp for schedule(static)
    for (int64_t i = 0; i < p->batch * p->kv_heads; i++) {
      const sequence s = sequence_of(&c, i / p->kv_heads);
      for (int64_t r = 0; r < p->group * s.rows; r++)
        join(&c, &s, i % p->kv_heads * p->group + r / s.rows, r % s.rows, results + i * parts * each + r * apart, parts_of(&s), each, a.o);
    }
  }
  return QN_OK;
}

/* ---- prepare: more rows are attention_tiles.c's --------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  attention p;
  if (status || (status = cpu_attention_describe(request, prepared, &p))) return status;
  if (p.value[AT_Q_STARTS] >= 0)
    return qn_refuse(prepared, "the rows of a sequence are not known beforehand", "q_starts", "none", "%s", "");
  if (p.group * p.rows > ROWS)
    return qn_refuse(prepared, "keeps the scores of all rows that share a kv head", "q", "16 rows for each", "%lld",
                     (long long)(p.group * p.rows));
  prepared->workspace = (uint64_t)(request->demands->threads * area_of(&p, NULL).bytes
                                   + p.batch * p.kv_heads * parts_most(&p) * p.group * p.rows * part_floats(&p) * 4);
  /* As measured, for a key: an exponential and the sum of a vector's lanes for each row, and the products; widening. */
  const double lanes = cpu_gemm_isa_of(request->device)->type[CPU_GEMM_F32].nr / 2, d = (double)(p.d + p.dv);
  const double rows = (double)(p.group * p.rows), widened = p.dtype[AT_K] == QN_F32 ? 0 : rows < lanes ? rows : lanes - 1;
  prepared->estimate = cpu_attention_ns(request, &p, (rows * (128 + 1.3 * d) + widened * 0.6 * d) / lanes, parts_most(&p));
  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_)                                                                                              \
  { .name = name_, .op = QN_OP_ATTENTION_FORWARD, .class_ = QN_CLASS_TUNED,                                             \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, .prepare = prepare, .run = run_, .release = cpu_release },
static const qn_engine row[] = { CPU_COPIES(ROW, "decode", cpu_attention_decode_run) };
const qn_engine_list cpu_attention_decode = { row, sizeof row / sizeof *row };
#endif
