/* attention_tiles.h -- shared by the fast engines of attention; static, compiled once per instruction set.
 *
 *   s_ij = scale q_i k_j (softcap, bias, ALiBi),   p_ij = e^(s_ij - lse_i),   y_i = sum_j p_ij v_j       over the keys j that i sees
 *
 *   lanes      the rows of all query heads that share a kv head are numbered one after another. PANEL of them side by side are the lanes
 *              of a few vectors, so scores are stored as [key][lane]: maxima and sums run down the lanes, and each product takes a tile
 *              of keys or values as it lies in memory, row by row
 *   masks      a lane sees the keys lo <= j < end, less those under a mask tensor. Keys that no lane of a panel sees are not computed
 *   not finite a value that is not finite is left out of the product, which would multiply it by the weight 0 of lanes that do not
 *              see it, and added to the lanes that do
 *   order      tiles of keys begin at the sequence's first key: a row's bits depend on its own sequence only */
#ifndef CPU_ATTENTION_TILES_H
#define CPU_ATTENTION_TILES_H
#include "kit/convert.h"
#include "cpu_ref.h"
#include "gemm/gemm_core.h"
#include "kit/pointwise_math.h"
#ifdef _OPENMP
#include <omp.h>
#endif

enum { AT_Q, AT_K, AT_V, AT_Y, AT_LSE, AT_MAX, AT_BIAS, AT_MASK, AT_SLOPES, AT_SINK, AT_Q_LENGTHS, AT_KV_LENGTHS, AT_Q_STARTS, AT_KV_STARTS,
       AT_PAGES, AT_BLOCKS, AT_SEED, AT_OFFSET, AT_DY, AT_DLSE, AT_DQ, AT_DK, AT_DV, AT_DSINK, AT_TENSORS };

enum { PANEL = 2 * CPU_LANES, PANEL_MOST = 32,   /* lanes: the columns of gemm_kernel.c's tile; of any instruction set */
       AT_ROWS = 128,                     /* in a block */
       KEYS = 192,                        /* in a tile: its scores for a panel stay in a first-level cache */
       RUN = 192,                         /* terms of a product at a time, likewise */
       DIM_MOST = 1024 };                 /* of a row: bounds the buffers on the stack */

#define CPU_GEMM_OF_(isa) cpu_gemm_##isa
#define CPU_GEMM_OF(isa)  CPU_GEMM_OF_(isa)
#define CPU_GEMM_OWN      CPU_GEMM_OF(QN_ISA)

typedef struct attention {
  int64_t  batch, heads, kv_heads, group, rows, keys, d, dv;         /* group: query heads to a kv head; rows, keys: longest */
  int64_t  page, n_pages;                 /* keys on a page, pages in the pool; 0: not paged */
  int64_t  left, right;                   /* -1: unbounded */
  bool     top_left, value_in_key;        /* the latter: v is the first dv elements of a key */
  float    scale, softcap, kept;          /* softcap 0: none; kept: 1 / (1 - p) of dropout */
  uint32_t dropped;                       /* of 65536: random bits below it drop a weight */
  int64_t  block_q, block_kv;
  int64_t  spans;                         /* backward: shares of a kv head's keys */
  int32_t  value[AT_TENSORS];             /* -1: absent */
  uint32_t dtype[AT_TENSORS];
  int64_t  bytes[AT_TENSORS], stride[AT_TENSORS][4];                 /* strides in elements, 0 where broadcast */
} attention;

/* A launch: where the tensors are. */
typedef struct attention_call {
  const attention *p;
  const cpu_gemm_isa *isa;
  char *at[AT_TENSORS];                   /* NULL: absent */
  uint64_t seed, offset;
} attention_call;

/* attention_tiles.c: describes the op of a request, or refuses what none of these engines does. */
qn_status cpu_attention_describe(const qn_request *request, qn_prepared *prepared, attention *p);
/* An estimate: every key of a kv head takes so many vectors of products in all; it is shared out in `blocks`. */
double cpu_attention_ns(const qn_request *request, const attention *p, double vectors, int64_t blocks);

extern const cpu_gemm_isa CPU_GEMM_OWN;
static inline void attention_bind(attention_call *c, const attention *p, const qn_launch *launch)
{
  memset(c, 0, sizeof *c);
  c->p = p;
  c->isa = &CPU_GEMM_OWN;
  for (int t = 0; t < AT_TENSORS; t++) c->at[t] = p->value[t] < 0 ? NULL : launch->ptr[p->value[t]];
  if (c->at[AT_SEED]) c->seed = (uint64_t)qn_load_i64(c->at[AT_SEED], p->dtype[AT_SEED]);
  if (c->at[AT_OFFSET]) c->offset = (uint64_t)qn_load_i64(c->at[AT_OFFSET], p->dtype[AT_OFFSET]);
}

/* A sequence of the batch: rows from token q_at on, keys from token kv_at on, of batch entry `entry` of the tensors. Row i sees keys
 * i + shift - left to i + shift + right. */
typedef struct sequence {
  int64_t batch, q_entry, kv_entry, q_at, kv_at, rows, keys, shift;
} sequence;

static inline int64_t int_at(const attention_call *c, int t, int64_t i)
{
  return qn_load_i64(c->at[t] + i * c->p->stride[t][0] * c->p->bytes[t], c->p->dtype[t]);
}

static inline sequence sequence_of(const attention_call *c, int64_t b)
{
  const attention *p = c->p;
  sequence s = { .batch = b, .q_entry = b, .kv_entry = b, .rows = p->rows, .keys = p->keys };
  if (c->at[AT_Q_STARTS]) {
    s.q_entry = 0;
    s.q_at = qn_min_i64(qn_max_i64(int_at(c, AT_Q_STARTS, b), 0), p->rows);
    s.rows = qn_min_i64(int_at(c, AT_Q_STARTS, b + 1), p->rows) - s.q_at;
  }
  if (c->at[AT_KV_STARTS]) {
    s.kv_entry = 0;
    s.kv_at = qn_min_i64(qn_max_i64(int_at(c, AT_KV_STARTS, b), 0), p->keys);
    s.keys = qn_min_i64(int_at(c, AT_KV_STARTS, b + 1), p->keys) - s.kv_at;
  }
  if (c->at[AT_Q_LENGTHS]) s.rows = qn_min_i64(s.rows, int_at(c, AT_Q_LENGTHS, b));
  if (c->at[AT_KV_LENGTHS]) s.keys = qn_min_i64(s.keys, int_at(c, AT_KV_LENGTHS, b));
  s.rows = qn_max_i64(s.rows, 0);
  s.keys = qn_max_i64(s.keys, 0);
  s.shift = p->top_left ? 0 : s.keys - s.rows;
  return s;
}

/* The keys that row i sees: lo <= j < end. */
static inline void band_of(const attention *p, const sequence *s, int64_t i, int64_t *lo, int64_t *end)
{
  *lo = p->left < 0 ? 0 : qn_max_i64(0, i + s->shift - p->left);
  *end = p->right < 0 ? s->keys : qn_max_i64(0, qn_min_i64(s->keys, i + s->shift + p->right + 1));
  if (*lo >= *end) *lo = *end = 0;
}

/* ---- addresses -------------------------------------------------------------------------------------------- */

static inline char *row_at(const attention_call *c, int t, int64_t entry, int64_t head, int64_t i)
{
  const int64_t *stride = c->p->stride[t];
  return c->at[t] + (entry * stride[0] + head * stride[1] + i * stride[2]) * c->p->bytes[t];
}

/* Key or value j of a sequence; NULL: on a page that is not there. */
static inline const char *key_at(const attention_call *c, int t, const sequence *s, int64_t kv_head, int64_t j)
{
  const attention *p = c->p;
  if (!p->page) return row_at(c, t, s->kv_entry, kv_head, s->kv_at + j);
  const int64_t page = qn_load_i64(c->at[AT_PAGES] + (s->batch * p->stride[AT_PAGES][0] + j / p->page * p->stride[AT_PAGES][1])
                                   * p->bytes[AT_PAGES], p->dtype[AT_PAGES]);
  return page < 0 || page >= p->n_pages ? NULL : row_at(c, t, page, kv_head, j % p->page);
}

/* The workspace of thread `mine` of an engine whose threads take `bytes` each. */
static inline float *area_at(char *workspace, int64_t bytes)
{
#ifdef _OPENMP
  workspace += omp_get_thread_num() * bytes;
#else
  (void)bytes;
#endif
  return (float *)(void *)workspace;
}

static inline void row_widen(const attention_call *c, int t, const char *row, int64_t n, float *to)
{
  if (!row) memset(to, 0, (size_t)n * sizeof *to);
  else c->isa->widen[c->p->dtype[t]](row, c->p->stride[t][3], n, to);
}

/* Element i of a vector of f32. */
static inline float f32_at(const attention_call *c, int t, int64_t i)
{
  return *(const float *)(const void *)(c->at[t] + i * c->p->stride[t][0] * 4);
}

/* ---- a panel of lanes --------------------------------------------------------------------------------------- */

typedef struct lanes {
  int32_t lo[PANEL], end[PANEL];          /* lanes beyond n see everything: their q is 0, and nothing is written for them */
  int32_t n, from, to;                    /* keys that some lane sees, */
  int32_t all_from, all_to;               /*   and those that every lane sees */
  int32_t row[PANEL], head[PANEL];
} lanes;

/* Lanes `first` on of the group of kv_head. */
static inline void lanes_of(lanes *l, const attention *p, const sequence *s, int64_t kv_head, int64_t first)
{
  l->n = (int32_t)qn_min_i64(PANEL, p->group * s->rows - first);
  l->from = l->all_to = (int32_t)s->keys;
  l->to = l->all_from = 0;
  for (int32_t r = 0; r < PANEL; r++) {
    l->lo[r] = 0;
    l->end[r] = INT32_MAX;
    if (r >= l->n) continue;
    const int64_t g = (first + r) / s->rows, i = first + r - g * s->rows;
    int64_t lo, end;
    band_of(p, s, i, &lo, &end);
    l->row[r] = (int32_t)i;
    l->head[r] = (int32_t)(kv_head * p->group + g);
    l->lo[r] = (int32_t)lo;
    l->end[r] = (int32_t)end;
    if (end > lo && l->lo[r] < l->from) l->from = l->lo[r];
    if (end > l->to) l->to = l->end[r];
    if (l->lo[r] > l->all_from) l->all_from = l->lo[r];
    if (l->end[r] < l->all_to) l->all_to = l->end[r];
  }
}

static inline bool lanes_masked(const lanes *l, int64_t from, int64_t to) { return from < l->all_from || to > l->all_to; }

/* ---- vectors ------------------------------------------------------------------------------------------------ */

#define V_STORE(to, v) memcpy(to, &(v), sizeof(v))
CPU_INLINE v_i32 v_load_i32(const int32_t *p)   { v_i32 v; memcpy(&v, p, sizeof v); return v; }

/* The larger; which, if one is NaN, is open. */
CPU_INLINE v_f32 v_max(v_f32 a, v_f32 b)
{
#if defined __AVX512F__
  return (v_f32)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined __AVX2__
  return (v_f32)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return v_select(a > b, a, b);
#endif
}

/* e^x, as m_exp for x up to 0 */
CPU_INLINE v_f32 v_exp(v_f32 x)
{
#if defined __AVX512F__
  x = (v_f32)_mm512_max_ps((__m512)v_all(-104.0f), (__m512)x);       /* NaN stays */
  const v_f32 n = (v_f32)_mm512_roundscale_ps((__m512)(x * 1.44269504f), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#else
#if defined __AVX2__
  x = (v_f32)_mm256_max_ps((__m256)v_all(-104.0f), (__m256)x);
#else
  x = v_select(x < -104.0f, v_all(-104.0f), x);
#endif
  const v_f32 shifted = x * 1.44269504f + M_ROUND, n = shifted - M_ROUND;
#endif
  const v_f32 r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  const v_f32 p = (((1.381446258e-03f * r + 8.368780836e-03f) * r + 4.166839272e-02f) * r + 1.666651964e-01f) * r + 4.999999404e-01f;
  const v_f32 y = (p * (r * r) + r) + 1.0f;
#if defined __AVX512F__
  return (v_f32)_mm512_scalef_ps((__m512)y, (__m512)n);
#else
  const v_i32 k = (v_i32)shifted - 0x4b400000, half = k >> 1;        /* the bits of M_ROUND */
  return y * (v_f32)((half + 127) << 23) * (v_f32)((k - half + 127) << 23);
#endif
}

/* ---- masks and what is added to scores ------------------------------------------------------------------------- */

/* `value` to keys at..at+n-1 of x[key][lane] that a lane's band leaves out, whatever there was. */
static inline void hide_band(const lanes *l, int64_t at, int64_t n, float value, float *x, int64_t ld)
{
  for (int h = 0; h < PANEL; h += CPU_LANES) {
    const v_i32 lo = v_load_i32(l->lo + h), end = v_load_i32(l->end + h);
    for (int64_t j = 0; j < n; j++) {
      const v_i32 key = (int32_t)(at + j) - (v_i32){ 0 };
      const v_f32 kept = v_select((key >= lo) & (key < end), v_load(x + j * ld + h), v_all(value));
      V_STORE(x + j * ld + h, kept);
    }
  }
}

/* Is there what hides keys besides the band? */
static inline bool hides(const attention_call *c) { return c->at[AT_MASK] || c->at[AT_BLOCKS] || c->p->page; }

/* The tensor that broadcasts over sequences, heads, queries and keys, at row i of a query head and key j. */
static inline const char *spread_at(const attention_call *c, int t, const sequence *s, int64_t head, int64_t i, int64_t j)
{
  const int64_t *stride = c->p->stride[t];
  return c->at[t] + (s->batch * stride[0] + head * stride[1] + (s->q_at + i) * stride[2] + (s->kv_at + j) * stride[3]) * c->p->bytes[t];
}

static inline bool block_open(const attention_call *c, const sequence *s, int64_t head, int64_t i, int64_t block)
{
  const int64_t *stride = c->p->stride[AT_BLOCKS];
  return c->at[AT_BLOCKS][s->batch * stride[0] + head * stride[1] + i / c->p->block_q * stride[2] + block / 8 * stride[3]] >> block % 8 & 1;
}

/* May row i of a query head see key j, the band aside? */
static inline bool allowed(const attention_call *c, const sequence *s, int64_t head, int64_t i, int64_t j)
{
  if (c->p->page && !key_at(c, AT_K, s, head / c->p->group, j)) return false;
  if (c->at[AT_MASK] && !*spread_at(c, AT_MASK, s, head, i, j)) return false;
  return !c->at[AT_BLOCKS] || block_open(c, s, head, i, j / c->p->block_kv);
}

/* Has dropout taken the weight of key j? */
static inline bool is_dropped(const attention_call *c, const sequence *s, int64_t head, int64_t i, int64_t j)
{
  const uint64_t stream = c->offset + ((uint64_t)(s->batch * c->p->heads + head) << 32);
  uint32_t w[4] = { (uint32_t)(j / 8), (uint32_t)i, (uint32_t)stream, (uint32_t)(stream >> 32) };
  if (!c->p->dropped) return false;
  qn_philox(w, c->seed);
  return (w[j % 8 / 2] >> 16 * (j % 2) & 0xffff) < c->p->dropped;
}

static inline bool lane_sees(const attention_call *c, const sequence *s, const lanes *l, int32_t r, int64_t j)
{
  return j >= l->lo[r] && j < l->end[r] && allowed(c, s, l->head[r], l->row[r], j);
}

/* hidden[key][lane] of keys at..at+n-1: 1 for what something but the band hides, else 0. scratch: 2 PANEL KEYS floats, of which hidden is
 * the second half. */
static inline const float *find_hidden(const attention_call *c, const sequence *s, const lanes *l, int64_t at, int64_t n, float *scratch)
{
  float *const hidden = scratch + PANEL * KEYS, all[KEYS];
  const int64_t *stride = c->p->stride[AT_MASK], step = stride[3];
  const bool one_head = l->head[0] == l->head[l->n - 1], shared = stride[2] == 0 && (stride[1] == 0 || one_head);
  const char *const mask = c->at[AT_MASK] && shared ? spread_at(c, AT_MASK, s, l->head[0], 0, at) : NULL;
  for (int64_t j = 0; j < n; j++)
    all[j] = (mask && !mask[j * step]) || (c->p->page && !key_at(c, AT_K, s, l->head[0] / c->p->group, at + j));
  if (!c->at[AT_BLOCKS] && (mask || !c->at[AT_MASK])) {
    for (int64_t j = 0; j < n; j++) for (int r = 0; r < PANEL; r++) hidden[j * PANEL + r] = all[j];
    return hidden;
  }
  for (int32_t r = 0; r < PANEL; r++) {
    float *const row = scratch + r * KEYS;
    memcpy(row, all, (size_t)n * sizeof *row);
    if (r >= l->n) continue;
    if (c->at[AT_MASK] && !shared) {
      const char *const own = spread_at(c, AT_MASK, s, l->head[r], l->row[r], at);
      if (step == 1) for (int64_t j = 0; j < n; j++) row[j] = own[j] ? row[j] : 1;
      else           for (int64_t j = 0; j < n; j++) row[j] = own[j * step] ? row[j] : 1;
    }
    for (int64_t j = 0; c->at[AT_BLOCKS] && j < n;) {
      const int64_t block = (at + j) / c->p->block_kv, end = qn_min_i64(n, (block + 1) * c->p->block_kv - at);
      const bool open = block_open(c, s, l->head[r], l->row[r], block);
      for (; j < end; j++) row[j] = open ? row[j] : 1;
    }
  }
  c->isa->turn(scratch, KEYS, PANEL, n, hidden, PANEL);
  return hidden;
}

/* `value` where hidden is not 0, whatever there was. */
static inline void put_hidden(const float *hidden, int64_t n, float value, float *x, int64_t ld)
{
  for (int64_t j = 0; j < n; j++)
    for (int h = 0; h < PANEL; h += CPU_LANES) {
      const v_f32 kept = v_select(v_load(hidden + j * PANEL + h) == 0, v_load(x + j * ld + h), v_all(value));
      V_STORE(x + j * ld + h, kept);
    }
}

/* Is there more to a score than its scale? */
static inline bool needs_edit(const attention_call *c) { return c->p->softcap > 0 || c->at[AT_BIAS] || c->at[AT_SLOPES]; }

static inline float slope_of(const attention_call *c, const sequence *s, int64_t head)
{
  const int64_t *stride = c->p->stride[AT_SLOPES];
  return *(const float *)(const void *)(c->at[AT_SLOPES] + (s->batch * stride[0] + head * stride[1]) * 4);
}

/* Products of keys at..at+n-1 become scores. scratch: 2 PANEL KEYS floats */
static inline void edit_scores(const attention_call *c, const sequence *s, const lanes *l, int64_t at, int64_t n, float *x, int64_t ld,
                               float *scratch)
{
  const attention *p = c->p;
  for (int64_t j = 0; j < n; j++)
    if (p->softcap > 0)
#pragma omp simd
      for (int r = 0; r < PANEL; r++) x[j * ld + r] = p->softcap * m_tanh(x[j * ld + r] * p->scale / p->softcap);
    else
#pragma omp simd
      for (int r = 0; r < PANEL; r++) x[j * ld + r] *= p->scale;
  if (c->at[AT_BIAS]) {
    float *const turned = scratch + PANEL * KEYS;
    for (int32_t r = 0; r < PANEL; r++)
      if (r >= l->n) memset(scratch + r * KEYS, 0, (size_t)n * sizeof *scratch);
      else c->isa->widen[p->dtype[AT_BIAS]](spread_at(c, AT_BIAS, s, l->head[r], l->row[r], at), p->stride[AT_BIAS][3], n,
                                            scratch + r * KEYS);
    c->isa->turn(scratch, KEYS, PANEL, n, turned, PANEL);
    for (int64_t j = 0; j < n; j++)
#pragma omp simd
      for (int r = 0; r < PANEL; r++) x[j * ld + r] += turned[j * PANEL + r];
  }
  if (c->at[AT_SLOPES]) {
    float slope[PANEL] = { 0 }, diagonal[PANEL] = { 0 };
    for (int32_t r = 0; r < l->n; r++) {
      slope[r] = slope_of(c, s, l->head[r]);
      diagonal[r] = (float)(l->row[r] + s->shift - at);
    }
    for (int64_t j = 0; j < n; j++)
#pragma omp simd
      for (int r = 0; r < PANEL; r++) x[j * ld + r] -= slope[r] * m_abs(diagonal[r] - (float)j);
  }
}

/* Dropout of the weights, or of their gradients, x[key][lane] of keys at..at+n-1. unread: a dropped one is 0 even if it was NaN. */
static inline void drop(const attention_call *c, const sequence *s, const lanes *l, int64_t at, int64_t n, bool unread, float *x,
                        int64_t ld)
{
  uint32_t row[PANEL], low[PANEL], high[PANEL], word[4][PANEL];
  const uint32_t least = c->p->dropped;
  for (int r = 0; r < PANEL; r++) {
    const uint64_t stream = c->offset + ((uint64_t)(s->batch * c->p->heads + (r < l->n ? l->head[r] : 0)) << 32);
    row[r] = r < l->n ? (uint32_t)l->row[r] : 0, low[r] = (uint32_t)stream, high[r] = (uint32_t)(stream >> 32);
  }
  for (int64_t eight = at / 8; eight * 8 < at + n; eight++) {
#pragma omp simd
    for (int r = 0; r < PANEL; r++) {
      uint32_t w[4] = { (uint32_t)eight, row[r], low[r], high[r] };
      qn_philox(w, c->seed);
      for (int i = 0; i < 4; i++) word[i][r] = w[i];
    }
    for (int64_t j = qn_max_i64(eight * 8, at); j < qn_min_i64(eight * 8 + 8, at + n); j++) {
      float *const to = x + (j - at) * ld;
      const uint32_t *const w = word[j % 8 / 2];
      const int shift = 16 * (int)(j % 2);
#pragma omp simd
      for (int r = 0; r < PANEL; r++) {
        const bool gone = (w[r] >> shift & 0xffff) < least;
        to[r] = (gone && unread ? 0 : to[r]) * (gone ? 0 : c->p->kept);
      }
    }
  }
}

/* ---- tiles and products -------------------------------------------------------------------------------------- */

/* Is any of n floats an infinity or NaN? */
static inline bool any_not_finite(const float *x, int64_t n)
{
  int32_t most = 0;
#pragma omp simd reduction(max: most)
  for (int64_t i = 0; i < n; i++) {
    const int32_t bits = m_bits(x[i]) & 0x7fffffff;
    most = bits > most ? bits : most;
  }
  return most >= 0x7f800000;
}

/* Keys from..to-1 as rows at a distance of ld floats. */
static inline void load_keys(const attention_call *c, const sequence *s, int64_t kv_head, int64_t from, int64_t to, float *tile, int64_t ld)
{
  for (int64_t j = from; j < to; j++, tile += ld) row_widen(c, AT_K, key_at(c, AT_K, s, kv_head, j), c->p->d, tile);
}

/* acc[i][j] (+)= sum over k of a[i a_row + k a_step] b[k][j], i < m and j < n; columns of b and acc are there up to a multiple of PANEL. */
static inline void product(const cpu_gemm_isa *isa, const float *a, int64_t a_row, int64_t a_step, int64_t m, int64_t n_k, const float *b,
                           int64_t b_ld, int64_t n, float *acc, int64_t ld, bool accumulate)
{
  const int64_t run = qn_ceil_div(n_k, qn_max_i64(1, qn_ceil_div(n_k, RUN)));
  for (int64_t j = 0; j < n; j += PANEL) {
#if defined QN_AVX2 && CPU_ISA_OF(QN_ISA) == CPU_ISA_avx512
    if (n - j <= PANEL / 2) isa = &cpu_gemm_avx2;                    /* whose tile is as wide as what is left */
#endif
    const int mr = isa->type[CPU_GEMM_F32].mr;
    for (int64_t k = 0; k < n_k; k += run)
      for (int64_t i = 0; i < m; i += mr) {
        const int rows = (int)qn_min_i64(mr, m - i);
        const void *row[16];
        for (int r = 0; r < rows; r++) row[r] = a + (i + r) * a_row + k * a_step;
        isa->type[CPU_GEMM_F32].micro(rows, qn_min_i64(run, n_k - k), row, a_step, b + k * b_ld + j, b_ld, acc + i * ld + j, ld,
                                      accumulate || k > 0);
      }
  }
}

/* to[k][lane] = row `lane` of tensor t: n lanes of `length` elements, zeros beyond n; row is scratch of PANEL rows */
static inline void load_panel(const attention_call *c, int t, const sequence *s, const lanes *l, int64_t length, float *row, float *to,
                              int64_t ld)
{
  const int64_t row_ld = cpu_gemm_ld(length, 4);
  for (int32_t r = 0; r < l->n; r++)
    row_widen(c, t, row_at(c, t, s->q_entry, l->head[r], s->q_at + l->row[r]), length, row + r * row_ld);
  memset(row + l->n * row_ld, 0, (size_t)((PANEL - l->n) * row_ld) * sizeof *row);
  c->isa->turn(row, row_ld, PANEL, length, to, ld);
}

/* ---- the end of a row --------------------------------------------------------------------------------------------- */

/* Joins the sink to row i of a query head and writes y = o / sum, lse and max; o is overwritten. */
static inline void finish_row(const attention_call *c, const sequence *s, int64_t head, int64_t i, float most, float sum, float *o)
{
  const attention *p = c->p;
  const int64_t at = s->q_at + i;
  const bool none = sum == 0;
  float lse = none ? -INFINITY : c->at[AT_LSE] ? most + m_log(sum) : most, by = none ? 0 : 1 / sum;
  if (c->at[AT_SINK]) {
    const float sink = f32_at(c, AT_SINK, head), top = f_larger(most, sink);
    if (!(sink < INFINITY)) lse = by = NAN;
    else if (none) lse = sink;
    else if (sink != -INFINITY) {
      const float old = m_exp(most - top), total = sum * old + m_exp(sink - top);
      by = old / total;
      lse = top + m_log(total);
    }
  }
  if (none && by == 0) memset(o, 0, (size_t)p->dv * sizeof *o);
#pragma omp simd
  for (int64_t d = 0; d < p->dv; d++) o[d] *= by;
  c->isa->narrow[p->dtype[AT_Y]](o, p->dv, row_at(c, AT_Y, s->q_entry, head, at), p->stride[AT_Y][3]);
  if (c->at[AT_LSE]) *(float *)(void *)row_at(c, AT_LSE, s->q_entry, head, at) = lse;
  if (c->at[AT_MAX]) *(float *)(void *)row_at(c, AT_MAX, s->q_entry, head, at) = most;
}

/* ---- tokens of no sequence --------------------------------------------------------------------------------------- */

/* Elements of tensor t, `length` of each token from..to-1 of every head (0: a statistic), become `value`. */
static inline void fill_tokens(const attention_call *c, int t, int64_t entry, int64_t heads, int64_t from, int64_t to, int64_t length,
                               float value)
{
  float row[DIM_MOST];
  if (!c->at[t]) return;
  for (int64_t d = 0; d < length; d++) row[d] = value;
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = from; i < to; i++) {
      if (length == 0) *(float *)(void *)row_at(c, t, entry, h, i) = value;
      else c->isa->narrow[c->p->dtype[t]](row, length, row_at(c, t, entry, h, i), c->p->stride[t][3]);
    }
}

typedef void fill_run(const attention_call *c, int64_t entry, int64_t from, int64_t to);
/* Calls fill for each run of tokens that no sequence owns, of queries or of keys. */
static inline void fill_unowned(const attention_call *c, bool keys, fill_run *fill)
{
  const attention *p = c->p;
  const bool ragged = c->at[keys ? AT_KV_STARTS : AT_Q_STARTS] != NULL;
  const int64_t tokens = keys ? p->keys : p->rows;
  int64_t owned = 0;
  if (!ragged && !c->at[keys ? AT_KV_LENGTHS : AT_Q_LENGTHS]) return;
  for (int64_t b = 0; b < p->batch; b++) {
    const sequence s = sequence_of(c, b);
    const int64_t from = keys ? s.kv_at : s.q_at, end = from + (keys ? s.keys : s.rows);
    if (!ragged) fill(c, b, end, tokens);
    else if (end > from) {
      fill(c, 0, owned, from);
      owned = qn_max_i64(owned, end);
    }
  }
  if (ragged) fill(c, 0, owned, tokens);
}

static inline void fill_forward(const attention_call *c, int64_t entry, int64_t from, int64_t to)
{
  fill_tokens(c, AT_Y, entry, c->p->heads, from, to, c->p->dv, 0);
  fill_tokens(c, AT_LSE, entry, c->p->heads, from, to, 0, -INFINITY);
  fill_tokens(c, AT_MAX, entry, c->p->heads, from, to, 0, -INFINITY);
}

static inline int attention_threads(const attention *p, const qn_launch *launch, int64_t tasks)
{
  const double work = (double)p->batch * (double)p->heads * (double)p->rows * (double)p->keys * (double)(p->d + p->dv) / 16;
  return (int)qn_min_i64(cpu_threads(launch, work < 0x1p40 ? (int64_t)work : INT64_C(1) << 40), qn_max_i64(tasks, 1));
}
#endif
