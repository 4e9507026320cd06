/* mutants_pointwise.c -- bugs of pointwise functions and transforms: NaN, subnormals, tails, guards, scratch, attributes. */
#include <stdatomic.h>
#include "mutant.h"

/* The last role of these ops is their one output. */
static const qn_value *output(const struct mut_call *c, void **p)
{
  uint32_t role = c->k->node.n_roles - 1;
  *p = mut_pointer(c, role);
  return mut_value(c->k, role);
}

void pw_nan_to_zero(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p);
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (isnan(mut_get(y, p, i)))
      mut_put(y, p, i, 0);
}

bool pw_tanh_form(struct mut_kept *k)
{
  k->node.op = QN_OP_GELU_TANH;
  return true;
}

void pw_subnormals_flushed(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p);
  double least = y->dtype == QN_F16 ? 0x1p-14 : y->dtype == QN_F64 ? 0x1p-1022 : 0x1p-126;
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (fabs(mut_get(y, p, i)) < least)
      mut_put(y, p, i, 0);
}

/* The vector body propagates NaN, the scalar tail uses C's fmax. */
void pw_tail_drops_nan(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p), *a = mut_value(c->k, 0), *b = mut_value(c->k, 1);
  int64_t n = qn_elements(y);
  if (!qn_is_float(y->dtype) || a->rank != y->rank || b->rank != y->rank || qn_elements(a) != n || qn_elements(b) != n)
    return;
  for (int64_t i = n / 8 * 8; i < n; i++)
    mut_put(y, p, i, fmax(mut_get(a, mut_pointer(c, 0), i), mut_get(b, mut_pointer(c, 1), i)));
}

void pw_writes_past_end(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p);
  ((char *)p)[qn_extent_bytes(y)] = 0;
}

static volatile double sink;

void pw_reads_past_end(struct mut_call *c)
{
  const qn_value *a = mut_value(c->k, 0);
  const volatile char *p = mut_pointer(c, 0);
  sink = p[qn_extent_bytes(a) + 31];
}

bool pw_beta_ignored(struct mut_kept *k)
{
  qn_pointwise *a = (qn_pointwise *)(void *)k->attr;
  bool shows = a->beta != 1;
  a->beta = 1;
  return shows;
}

/* a times the rounded reciprocal of b */
void pw_by_reciprocal(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p), *a = mut_value(c->k, 0), *b = mut_value(c->k, 1);
  if (y->dtype != QN_F32 || qn_elements(a) != qn_elements(y) || qn_elements(b) != qn_elements(y))
    return;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    float inverse = (float)(1 / mut_get(b, mut_pointer(c, 1), i));
    mut_put(y, p, i, (float)mut_get(a, mut_pointer(c, 0), i) * inverse);
  }
}

/* A simulated race: the last bit of one element, in one of `one_of` calls. */
static void race(struct mut_call *c, int one_of)
{
  static atomic_int calls;
  void *p;
  const qn_value *y = output(c, &p);
  if (atomic_fetch_add(&calls, 1) % one_of == one_of - 1 && qn_elements(y) > 2)
    *((char *)p + mut_offset(y, 1, NULL) * qn_kit_bytes(y->dtype)) ^= 1;
}

void pw_not_deterministic(struct mut_call *c) { race(c, 2); }
void pw_seldom_otherwise(struct mut_call *c) { race(c, 8); }

void pw_input_overwritten(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, 0);
  if (qn_elements(x) > 1)
    ((char *)mut_pointer(c, 0))[0] ^= 1;
}

void pw_workspace_overrun(struct mut_call *c)
{
  char *end = (char *)c->launch->workspace + c->k->bug->workspace;
  end[0] = 1;                             /* direct asks for no workspace of its own here */
}

/* A cache in the workspace, assumed to be zero on first use. */
void pw_trusts_workspace(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p);
  const unsigned char *seen = c->launch->workspace;
  if (seen[0] && qn_elements(y))
    mut_put(y, p, 0, seen[0]);
}

/* relu'(0) = 1 */
void pw_kink_on_wrong_side(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p), *dy = mut_value(c->k, 0), *x = mut_value(c->k, 1);
  if (qn_elements(dy) != qn_elements(y) || qn_elements(x) != qn_elements(y))
    return;
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (mut_get(x, mut_pointer(c, 1), i) == 0)
      mut_put(y, p, i, mut_get(dy, mut_pointer(c, 0), i));
}

/* Where tanh has rounded to 1 the slope keeps an earlier value. */
void pw_half_far_out(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p), *x = mut_value(c->k, 1);
  if (qn_elements(x) != qn_elements(y))
    return;
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (mut_get(x, mut_pointer(c, 1), i) > 1000)
      mut_put(y, p, i, mut_get(y, p, i) / 2);
}

void pw_cast_truncates(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p), *x = mut_value(c->k, 0);
  if (!(y->dtype == QN_BF16 || y->dtype == QN_F16))
    return;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    double v = mut_get(x, mut_pointer(c, 0), i), rounded = mut_get(y, p, i);
    if (fabs(rounded) > fabs(v) && !isinf(rounded))
      *((uint16_t *)p + mut_offset(y, i, NULL)) -= 1;
  }
}

/* ---- transforms --------------------------------------------------------------------------- */

/* Copied as numbers: a signalling NaN comes out quiet. */
void tr_nan_quieted(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p);
  if (y->dtype != QN_F32 && y->dtype != QN_F16 && y->dtype != QN_BF16)
    return;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    char *at = (char *)p + mut_offset(y, i, NULL) * qn_kit_bytes(y->dtype);
    if (isnan(mut_get(y, p, i)))
      at[qn_kit_bytes(y->dtype) - (y->dtype == QN_F16 ? 1 : 2)] |= (char)(y->dtype == QN_F16 ? 2 : 0x40);
  }
}

bool tr_step_ignored(struct mut_kept *k)
{
  qn_slicing *s = (qn_slicing *)(void *)k->attr;
  bool shows = false;
  for (int d = 0; d < mut_value(k, 0)->rank; d++) {
    shows |= s->step[d] != 1 && mut_value(k, 1)->dim[d] > 1;
    s->step[d] = 1;
  }
  return shows;
}

bool tr_value_ignored(struct mut_kept *k)
{
  qn_padding *pad = (qn_padding *)(void *)k->attr;
  bool shows = pad->value != 0;
  pad->value = 0;
  return shows;
}

/* The first element after the seam repeats the one before it. */
void tr_seam(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p), *x = mut_value(c->k, 0);
  int64_t bytes = qn_kit_bytes(y->dtype);
  if (c->k->first[1] < 2 || y->rank < 1)
    return;
  int64_t axis = ((const qn_axis *)(const void *)c->k->original)->axis;
  axis = axis < 0 ? axis + y->rank : axis;
  if (x->dim[axis] < 1 || x->dim[axis] >= y->dim[axis])
    return;
  char *behind = (char *)p + x->dim[axis] * y->stride[axis] * bytes;
  memcpy(behind, behind - y->stride[axis] * bytes, (size_t)bytes);
}

/* A vector store over a row's end writes into the gap before the next. */
void tr_gap_written(struct mut_call *c)
{
  void *p;
  const qn_value *y = output(c, &p);
  int64_t bytes = qn_kit_bytes(y->dtype);
  if (y->rank > 1 && qn_extent(y) > qn_elements(y))
    ((char *)p)[((y->dim[y->rank - 1] - 1) * y->stride[y->rank - 1] + 1) * bytes] ^= 1;
}
