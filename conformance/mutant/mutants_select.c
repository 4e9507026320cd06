/* mutants_select.c -- bugs of gather, scatter_add, pad's modes, one_hot, top_k and cumsum: indices out of range, edges, ties. */
#include "mutant.h"

/* ---- indices ------------------------------------------------------------------------------- */

static int64_t rows_of(const struct mut_call *c, uint32_t table)
{
  return mut_value(c->k, table)->dim[((const qn_axis *)(const void *)c->k->original)->axis];
}

/* Applies `change` to each index. */
static void change_indices(struct mut_call *c, uint32_t table, int64_t (*change)(int64_t index, int64_t rows))
{
  const qn_value *indices = mut_value(c->k, QN_ROLE_GATHER_INDICES);
  void *p = mut_copy(c, QN_ROLE_GATHER_INDICES);
  for (int64_t i = 0; i < qn_elements(indices); i++)
    mut_put(indices, p, i, (double)change((int64_t)mut_get(indices, p, i), rows_of(c, table)));
}

static int64_t clamped(int64_t index, int64_t rows) { return qn_max_i64(0, qn_min_i64(index, rows - 1)); }
static int64_t wrapped(int64_t index, int64_t rows) { return index < 0 ? index + rows : index; }

void sl_index_clamped(struct mut_call *c) { change_indices(c, QN_ROLE_GATHER_X, clamped); }
void sl_index_wrapped(struct mut_call *c) { change_indices(c, QN_ROLE_GATHER_X, wrapped); }
void sl_adds_at_edge(struct mut_call *c)  { change_indices(c, QN_ROLE_SCATTER_ADD_DX, clamped); }

/* Stores instead of adding: of equal indices the last wins. */
void sl_last_one_kept(struct mut_call *c)
{
  const qn_value *indices = mut_value(c->k, QN_ROLE_SCATTER_ADD_INDICES);
  void *p = mut_copy(c, QN_ROLE_SCATTER_ADD_INDICES);
  int64_t n = qn_min_i64(qn_elements(indices), 200);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      if (mut_get(indices, p, i) == mut_get(indices, p, j)) {
        mut_put(indices, p, i, -1);
        break;
      }
}

/* ---- edges --------------------------------------------------------------------------------- */

static qn_padding *padding(struct mut_kept *k) { return (qn_padding *)(void *)k->attr; }

bool sl_edge_is_value(struct mut_kept *k)
{
  bool shows = padding(k)->mode == QN_PAD_REPLICATE;
  padding(k)->mode = QN_PAD_CONSTANT;
  return shows;
}

bool sl_edge_lost(struct mut_kept *k)
{
  bool shows = padding(k)->mode != QN_PAD_CONSTANT;
  padding(k)->mode = QN_PAD_CONSTANT;
  return shows;
}

/* The mirror is one element too far, so the edge appears twice. */
void sl_edge_twice(struct mut_call *c)
{
  const qn_padding *a = (const qn_padding *)(const void *)c->k->original;
  const qn_value *y = mut_value(c->k, QN_ROLE_PAD_Y);
  int last = y->rank - 1;
  int64_t bytes = qn_kit_bytes(y->dtype), before = a->pad_before[last];
  if (a->mode != QN_PAD_REFLECT)
    return;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    int64_t at[QN_MAX_RANK], offset = mut_offset(y, i, at);
    char *p = (char *)mut_pointer(c, QN_ROLE_PAD_Y) + offset * bytes;
    if (at[last] < before)
      memcpy(p, p + (2 * (before - at[last]) - 1) * y->stride[last] * bytes, (size_t)bytes);
  }
}

bool sl_on_is_one(struct mut_kept *k)
{
  qn_one_hot_encoding *a = (qn_one_hot_encoding *)(void *)k->attr;
  bool shows = a->on != 1 || a->off != 0;
  a->on = 1;
  a->off = 0;
  return shows;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* Of two equal neighbours the later comes first. */
void sl_later_tie(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_TOP_K_Y), *indices = mut_value(c->k, QN_ROLE_TOP_K_INDICES);
  if (!indices || ((const qn_ranking *)(const void *)c->k->original)->axis != y->rank - 1)
    return;
  int64_t k = y->dim[y->rank - 1];
  void *p = mut_pointer(c, QN_ROLE_TOP_K_INDICES);
  for (int64_t i = 0; i + 1 < qn_elements(y); i++)
    if ((i + 1) % k && mut_get(y, mut_pointer(c, QN_ROLE_TOP_K_Y), i) == mut_get(y, mut_pointer(c, QN_ROLE_TOP_K_Y), i + 1)) {
      double first = mut_get(indices, p, i);
      mut_put(indices, p, i, mut_get(indices, p, i + 1));
      mut_put(indices, p, i + 1, first);
      i++;
    }
}

void sl_nan_least(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, QN_ROLE_TOP_K_X);
  void *p = mut_copy(c, QN_ROLE_TOP_K_X);
  for (int64_t i = 0; i < qn_elements(x) && qn_is_float(x->dtype); i++)
    if (isnan(mut_get(x, p, i)))
      mut_put(x, p, i, -INFINITY);
}

bool sl_exclusive_ignored(struct mut_kept *k)
{
  qn_scan *a = (qn_scan *)(void *)k->attr;
  bool shows = a->exclusive;
  a->exclusive = 0;
  return shows;
}

/* The carry is lost at each block of 256. */
void sl_carry_lost(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, QN_ROLE_CUMSUM_X), *y = mut_value(c->k, QN_ROLE_CUMSUM_Y);
  const qn_scan *a = (const qn_scan *)(const void *)c->k->original;
  if (a->axis != x->rank - 1 || a->reverse || a->exclusive)
    return;
  int64_t n = x->dim[x->rank - 1];
  void *p = mut_pointer(c, QN_ROLE_CUMSUM_Y);
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (i % n >= 256)
      mut_put(y, p, i, (i % n % 256 ? mut_get(y, p, i - 1) : 0) + mut_get(x, mut_pointer(c, QN_ROLE_CUMSUM_X), i));
}

/* ---- an index for each element, sorting, scans ---------------------------------------------- */

bool sl_stored_not_added(struct mut_kept *k)
{
  qn_scattering *a = (qn_scattering *)(void *)k->attr;
  bool shows = a->mode == QN_SCATTER_ADD;
  a->mode = QN_SCATTER_NONE;
  return shows;
}

bool sl_max_is_min(struct mut_kept *k)
{
  qn_scattering *a = (qn_scattering *)(void *)k->attr;
  bool shows = a->mode == QN_SCATTER_MAX;
  a->mode = QN_SCATTER_MIN;
  return shows;
}

bool sl_always_rising(struct mut_kept *k)
{
  qn_sorting *a = (qn_sorting *)(void *)k->attr;
  bool shows = a->descending != 0;
  a->descending = 0;
  return shows;
}

bool sl_direction_ignored(struct mut_kept *k)
{
  qn_scan *a = (qn_scan *)(void *)k->attr;
  bool shows = a->reverse != 0;
  a->reverse = 0;
  return shows;
}

bool sl_wrap_is_edge(struct mut_kept *k)
{
  qn_padding *a = (qn_padding *)(void *)k->attr;
  bool shows = a->mode == QN_PAD_WRAP;
  a->mode = QN_PAD_REPLICATE;
  return shows;
}
