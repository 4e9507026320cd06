/* mutants_attention.c -- bugs of attention and what stands around it: which keys a query sees, what joins the scores, what the results
 * leave out. */
#include <math.h>
#include "mutant.h"

static qn_attention *attributes(struct mut_kept *k) { return (qn_attention *)(void *)k->attr; }
static const qn_attention *attention(const struct mut_call *c) { return (const qn_attention *)(const void *)c->k->original; }
static bool is_backward(const struct mut_kept *k) { return k->node.op == QN_OP_ATTENTION_BACKWARD; }

#define ROLE(k, NAME) (is_backward(k) ? QN_ROLE_ATTENTION_BACKWARD_##NAME : QN_ROLE_ATTENTION_FORWARD_##NAME)

/* ---- before: an input's elements, changed in a copy ------------------------------------------------ */

static void change(struct mut_call *c, uint32_t role, double (*to)(const struct mut_call *, double))
{
  const qn_value *v = mut_value(c->k, role);
  if (!v)
    return;
  void *p = mut_copy(c, role);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, to(c, mut_get(v, p, i)));
}

static double zero(const struct mut_call *c, double x) { return (void)c, 0 * x; }
static double inverse(const struct mut_call *c, double x) { return (void)c, 1 / x; }
static double negative(const struct mut_call *c, double x) { return (void)c, -x; }
static double endless(const struct mut_call *c, double x) { return (void)c, x < 0 ? x : 1e9; }
static double one_more(const struct mut_call *c, double x) { return (void)c, x + 1; }

static double scale_of(const struct mut_call *c)
{
  return attention(c)->scale > 0 ? attention(c)->scale : 1 / sqrt((double)mut_value(c->k, ROLE(c->k, Q))->dim[3]);
}
static double scaled(const struct mut_call *c, double x) { return x * scale_of(c); }

void at_kv_lengths_ignored(struct mut_call *c) { change(c, ROLE(c->k, KV_LENGTHS), endless); }
void at_one_key_more(struct mut_call *c) { change(c, ROLE(c->k, KV_LENGTHS), one_more); }
void at_q_lengths_ignored(struct mut_call *c) { change(c, ROLE(c->k, Q_LENGTHS), endless); }
void at_sink_scaled(struct mut_call *c) { change(c, ROLE(c->k, SINK), scaled); }
void at_dlse_ignored(struct mut_call *c) { change(c, QN_ROLE_ATTENTION_BACKWARD_DLSE, zero); }
void at_y_scale_divides(struct mut_call *c) { change(c, QN_ROLE_ATTENTION_FORWARD_Y_SCALE, inverse); }
void at_turned_back(struct mut_call *c) { change(c, QN_ROLE_ROTARY_SIN, negative); }
void at_scale_multiplies(struct mut_call *c) { change(c, QN_ROLE_CACHE_WRITE_SCALE, inverse); }
void at_slots_shifted(struct mut_call *c) { change(c, QN_ROLE_CACHE_WRITE_SLOTS, one_more); }

/* Bits of a byte from the highest. */
void at_bits_reversed(struct mut_call *c)
{
  const uint32_t role = ROLE(c->k, BLOCKS);
  const qn_value *v = mut_value(c->k, role);
  if (!v)
    return;
  void *p = mut_copy(c, role);
  for (int64_t i = 0; i < qn_elements(v); i++) {
    int byte = (int)mut_get(v, p, i), reversed = 0;
    for (int bit = 0; bit < 8; bit++)
      reversed |= (byte >> bit & 1) << (7 - bit);
    mut_put(v, p, i, reversed);
  }
}

/* A negative slot counts from the end. */
void at_slots_wrap(struct mut_call *c)
{
  const qn_value *slots = mut_value(c->k, QN_ROLE_CACHE_WRITE_SLOTS), *cache = mut_value(c->k, QN_ROLE_CACHE_WRITE_CACHE);
  void *p = mut_copy(c, QN_ROLE_CACHE_WRITE_SLOTS);
  for (int64_t i = 0; i < qn_elements(slots); i++)
    if (mut_get(slots, p, i) < 0)
      mut_put(slots, p, i, (double)(cache->dim[0] * cache->dim[2]) - 1);
}

void at_positions_ignored(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, QN_ROLE_ROTARY_POSITIONS);
  if (!v)
    return;
  void *p = mut_copy(c, QN_ROLE_ROTARY_POSITIONS);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, (double)(i % v->dim[1]));
}

/* ---- alter ---------------------------------------------------------------------------------------------- */

/* The other corner of the diagonal. */
bool at_other_corner(struct mut_kept *k)
{
  attributes(k)->align = !attributes(k)->align;
  return attributes(k)->left >= 0 || attributes(k)->right >= 0;
}

/* left is the number of keys up to the diagonal, which it includes. */
bool at_left_counts_itself(struct mut_kept *k) { return attributes(k)->left-- > 0; }

bool at_left_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->left >= 0;
  attributes(k)->left = -1;
  return shows;
}
bool at_right_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->right >= 0;
  attributes(k)->right = -1;
  return shows;
}
bool at_scale_is_one(struct mut_kept *k)
{
  bool shows = attributes(k)->scale == 0 && mut_value(k, ROLE(k, Q))->dim[3] > 1;
  attributes(k)->scale = 1;
  return shows;
}
bool at_softcap_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->softcap > 0;
  attributes(k)->softcap = 0;
  return shows;
}
bool at_dropout_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->dropout > 0;
  attributes(k)->dropout = 0;
  return shows;
}
bool at_drops(struct mut_kept *k) { return attributes(k)->dropout > 0; }

/* One slice along a dim serves all. */
static bool stuck(struct mut_kept *k, uint32_t role, int dim)
{
  qn_value *v = mut_altered(k, role);
  if (!v || v->rank <= dim || v->dim[dim] < 2)
    return false;
  v->stride[dim] = 0;
  return true;
}
bool at_first_kv_head(struct mut_kept *k) { return stuck(k, ROLE(k, V), 1); }
bool at_first_slope(struct mut_kept *k)
{
  const qn_value *slopes = mut_value(k, ROLE(k, SLOPES));
  return slopes && stuck(k, ROLE(k, SLOPES), slopes->rank - 1);
}
bool at_first_bias_row(struct mut_kept *k) { return stuck(k, ROLE(k, BIAS), 2); }
bool at_first_mask(struct mut_kept *k) { return stuck(k, ROLE(k, MASK), 0); }
bool at_first_block_row(struct mut_kept *k) { return stuck(k, ROLE(k, BLOCKS), 2); }
bool at_first_page_table(struct mut_kept *k) { return stuck(k, QN_ROLE_ATTENTION_FORWARD_PAGES, 0); }
bool at_first_key_scale(struct mut_kept *k) { return stuck(k, QN_ROLE_ATTENTION_FORWARD_K_SCALE, 1); }
bool at_pairs_otherwise(struct mut_kept *k)
{
  qn_rotation *a = (qn_rotation *)(void *)k->attr;
  a->interleaved = !a->interleaved;
  return mut_value(k, QN_ROLE_ROTARY_COS)->dim[1] > 1;
}
bool at_has_slots(struct mut_kept *k) { return qn_elements(mut_value(k, QN_ROLE_CACHE_WRITE_SLOTS)) > 0; }

/* ---- after ---------------------------------------------------------------------------------------------- */

static void change_output(struct mut_call *c, uint32_t role, double factor)
{
  const qn_value *v = mut_value(c->k, role);
  for (int64_t i = 0; v && i < qn_elements(v); i++)
    mut_put(v, mut_pointer(c, role), i, factor * mut_get(v, mut_pointer(c, role), i));
}

void at_base_2(struct mut_call *c) { change_output(c, QN_ROLE_ATTENTION_FORWARD_LSE, 1 / log(2)); }
void at_kept_unscaled(struct mut_call *c) { change_output(c, QN_ROLE_ATTENTION_FORWARD_Y, 1 - attention(c)->dropout); }
void at_values_unscaled(struct mut_call *c) { change_output(c, QN_ROLE_ATTENTION_BACKWARD_DV, 1 - attention(c)->dropout); }
void at_dq_unscaled(struct mut_call *c) { change_output(c, QN_ROLE_ATTENTION_BACKWARD_DQ, 1 / scale_of(c)); }
void at_dbias_scaled(struct mut_call *c) { change_output(c, QN_ROLE_ATTENTION_BACKWARD_DBIAS, scale_of(c)); }
void at_dsink_positive(struct mut_call *c) { change_output(c, QN_ROLE_ATTENTION_BACKWARD_DSINK, -1); }

/* The statistic of a row and head of lse's order. */
static double sink_at(const struct mut_call *c, const qn_value *lse, int64_t i)
{
  const qn_value *sink = mut_value(c->k, QN_ROLE_ATTENTION_FORWARD_SINK);
  return sink ? mut_get(sink, mut_pointer(c, QN_ROLE_ATTENTION_FORWARD_SINK), i / lse->dim[2] % lse->dim[1]) : -INFINITY;
}
void at_sink_not_in_lse(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, QN_ROLE_ATTENTION_FORWARD_LSE);
  void *p = mut_pointer(c, QN_ROLE_ATTENTION_FORWARD_LSE);
  for (int64_t i = 0; v && i < qn_elements(v); i++)
    mut_put(v, p, i, log(exp(mut_get(v, p, i)) - exp(sink_at(c, v, i))));
}
void at_sink_in_max(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, QN_ROLE_ATTENTION_FORWARD_MAX);
  void *p = mut_pointer(c, QN_ROLE_ATTENTION_FORWARD_MAX);
  for (int64_t i = 0; v && i < qn_elements(v); i++)
    mut_put(v, p, i, fmax(mut_get(v, p, i), sink_at(c, v, i)));
}

/* y's rows without keys are 0/0. */
void at_nothing_seen_is_nan(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_ATTENTION_FORWARD_Y), *lse = mut_value(c->k, QN_ROLE_ATTENTION_FORWARD_LSE);
  void *py = mut_pointer(c, QN_ROLE_ATTENTION_FORWARD_Y), *pl = mut_pointer(c, QN_ROLE_ATTENTION_FORWARD_LSE);
  for (int64_t i = 0; lse && i < qn_elements(y); i++)
    if (mut_get(lse, pl, i / y->dim[3]) == -INFINITY)
      mut_put(y, py, i, NAN);
}
/* Half an ulp of bf16 too large. */
void at_y_in_bf16(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, QN_ROLE_ATTENTION_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_ATTENTION_FORWARD_Y);
  for (int64_t i = 0; i < qn_elements(v) && v->dtype == QN_F32; i++)
    mut_put(v, p, i, (double)(float)(mut_get(v, p, i) * (1 + 0x1p-9)));
}

/* Keys past a sequence's end keep the old gradient. */
void at_keep_dk(struct mut_call *c) { mut_keep(c, QN_ROLE_ATTENTION_BACKWARD_DK); }
void at_past_end_unwritten(struct mut_call *c)
{
  const qn_value *dk = mut_value(c->k, QN_ROLE_ATTENTION_BACKWARD_DK), *n = mut_value(c->k, QN_ROLE_ATTENTION_BACKWARD_KV_LENGTHS);
  void *p = mut_pointer(c, QN_ROLE_ATTENTION_BACKWARD_DK);
  for (int64_t i = 0; n && i < qn_elements(dk) && dk->dim[0] == n->dim[0]; i++) {
    int64_t at[4];
    mut_offset(dk, i, at);
    if ((double)at[2] >= mut_get(n, mut_pointer(c, QN_ROLE_ATTENTION_BACKWARD_KV_LENGTHS), at[0]))
      mut_put(dk, p, i, mut_get(dk, c->scratch[0], i));
  }
}

/* Parts of no keys weigh e^0. */
void at_empty_part_counts(struct mut_call *c)
{
  const qn_value *lse = mut_value(c->k, QN_ROLE_ATTENTION_MERGE_LSE2);
  void *p = mut_copy(c, QN_ROLE_ATTENTION_MERGE_LSE2);
  for (int64_t i = 0; i < qn_elements(lse); i++)
    if (mut_get(lse, p, i) == -INFINITY)
      mut_put(lse, p, i, 0);
}
void at_merged_in_base_2(struct mut_call *c)
{
  const qn_value *lse = mut_value(c->k, QN_ROLE_ATTENTION_MERGE_LSE2);
  void *p = mut_copy(c, QN_ROLE_ATTENTION_MERGE_LSE2);
  for (int64_t i = 0; i < qn_elements(lse); i++)
    mut_put(lse, p, i, log(2) * mut_get(lse, p, i));
}

/* What is not turned is not copied either. */
void at_rest_lost(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_ROTARY_Y), *cosine = mut_value(c->k, QN_ROLE_ROTARY_COS);
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (i % y->dim[3] >= 2 * cosine->dim[1])
      mut_put(y, mut_pointer(c, QN_ROLE_ROTARY_Y), i, 0);
}
