/* gradient_move.c -- lines of a gradient that follow from dims rather than from formulas: sums over what was broadcast, and where the
 * elements of a transform went. */
#include <quern/kit.h>
#include "gradient.h"

static const qn__term absent = { QN__ABSENT, 0 };

static qn__terms one(qn__gradient *g, qn__term t)
{
  qn__terms list = { 1, qn__keep(g, sizeof *list.t) };
  if (!list.t) return (qn__terms){ 0 };
  list.t[0] = t;
  return list;
}

/* Are its elements next to each other, in some order of its dims? */
static bool is_packed(const qn_value *v)
{
  int64_t stride = 1;
  uint32_t left = (1u << v->rank) - 1;
  for (int i = 0; i < v->rank; i++) {
    int next = -1;
    for (int d = v->rank - 1; d >= 0; d--)
      if (left >> d & 1 && (v->stride[d] == stride || v->dim[d] == 1) && (next < 0 || v->dim[d] == 1)) next = d;
    if (next < 0) return false;
    left &= ~(1u << next);
    if (v->dim[next] > 1) stride *= v->dim[next];
  }
  return true;
}

void qn__output_strides(const qn_value *v, int64_t *stride)
{
  if (is_packed(v)) memcpy(stride, v->stride, sizeof v->stride);
  else qn__pack(v->rank, v->dim, stride, NULL);
}

void qn__output_tensor(qn_text *text, uint32_t dtype, const qn_value *v)
{
  qn_value out = *v;
  out.dtype = dtype;
  out.align = 16;
  qn__output_strides(v, out.stride);
  qn__print_tensor(text, &out);
}

/* ---- dims of a gradient: those of what it belongs to -------------------------------------------- */

/* Without dim `axis`, whose extent is 1. */
static qn__term without_dim(qn__gradient *g, qn__term x, int axis)
{
  if (g->place < 0) {
    const qn_value index = { .dtype = QN_I32 };
    g->place = qn__gradient_write(g, "cast x=0 y=%t", absent, absent, &index).value;
  }
  return qn__gradient_write(g, axis ? "gather x=%a indices=%b axis=1" : "gather x=%a indices=%b", x, (qn__term){ g->place, 0 }, NULL);
}

static qn__term sum_over(qn__gradient *g, qn__term x, uint32_t mask)
{
  qn_text text = { 0 };
  if (!mask) return x;
  qn__text_add(&text, "reduce_sum x=");
  qn__term_add(g, &text, x);
  qn__text_add(&text, " axis=");
  for (int i = 0, n = 0; i < QN_MAX_RANK; i++)
    if (mask >> i & 1) qn__text_add(&text, "%s%d", n++ ? "," : "", i);
  return qn__gradient_line(g, &text);
}

qn__term qn__fit(qn__gradient *g, qn__term t, const qn_value *v)
{
  if (g->status || t.value == QN__ABSENT) return absent;
  if (t.value == QN__NUMBER) return t.number == 0 ? absent : qn__gradient_write(g, "cast x=%a y=%t", t, absent, v);
  uint32_t sum = 0;
  bool larger = false;
  const qn_value *x = qn__value_of(g, t);
  for (int i = 0; i < x->rank; i++) {
    if (x->dim[i] != 1 && (!v->rank || v->dim[i] == 1)) sum |= 1u << i;
    larger = larger || (v->rank && v->dim[i] != x->dim[i] && x->dim[i] == 1);
  }
  larger = larger || x->rank < v->rank;
  t = sum_over(g, t, sum);
  while (!g->status && !v->rank && qn__value_of(g, t)->rank) t = without_dim(g, t, 0);
  if (!g->status && qn__value_of(g, t)->dtype != v->dtype) {
    qn_value to = larger ? *qn__value_of(g, t) : *v;
    to.dtype = v->dtype;
    t = qn__gradient_write(g, "cast x=%a y=%t", t, absent, &to);
  }
  return larger ? qn__gradient_write(g, "mul a=%a b=1 y=%t", t, absent, v) : t;
}

/* ---- words of gradients.def ------------------------------------------------------------------- */

static qn__terms transposed(qn__gradient *g, const qn_node *node, qn__term x, int axis)
{
  const int rank = qn__value_of(g, x)->rank;
  qn_text text = { 0 };
  (void)node, (void)axis;
  qn__text_add(&text, "permute x=");
  qn__term_add(g, &text, x);
  qn__text_add(&text, " perm=");
  for (int i = 0; i < rank; i++) qn__text_add(&text, "%s%d", i ? "," : "", i < rank - 2 ? i : 2 * rank - 3 - i);
  return one(g, qn__gradient_line(g, &text));
}

/* A tensor of rank 1: the sums over all dims but one, axis or the last. */
static qn__terms sum_along(qn__gradient *g, const qn_node *node, qn__term x, int axis)
{
  const int rank = qn__value_of(g, x)->rank, along = axis < 0 ? rank - 1 : axis;
  uint32_t others = 0;
  (void)node;
  for (int i = 0; i < rank; i++)
    if (i != along && qn__value_of(g, x)->dim[i] != 1) others |= 1u << i;
  x = sum_over(g, x, others);
  for (int i = 0; i < rank - 1; i++) x = without_dim(g, x, i >= along);
  return one(g, x);
}

static qn__terms unpermuted(qn__gradient *g, const qn_node *node, qn__term x, int axis)
{
  const qn_permutation *p = node->attr;
  const int rank = qn__value_of(g, x)->rank;
  qn_text text = { 0 };
  (void)axis;
  qn__text_add(&text, "permute x=");
  qn__term_add(g, &text, x);
  for (int i = 0; i < rank; i++)
    for (int k = 0; k < rank; k++)
      if (p->axis[k] == i) qn__text_add(&text, "%s%d", i ? "," : " perm=", k);
  return one(g, qn__gradient_line(g, &text));
}

/* The elements of a slice at their places in zeros: those taken in steps by their indices, dim by dim; then the others by padding. */
static qn__terms unsliced(qn__gradient *g, const qn_node *node, qn__term x, int axis)
{
  const qn_slicing *s = node->attr;
  const qn_value *whole = &g->v->value[node->arg[0]];
  qn_value part = g->v->value[node->arg[node->first[1]]];
  qn_text text = { 0 };
  bool pads = false;
  (void)axis;
  for (int i = 0; i < part.rank; i++) {
    pads = pads || (s->step[i] == 1 && part.dim[i] != whole->dim[i]);
    if (s->step[i] == 1) continue;
    qn__text_add(&text, "iota start=%lld step=%lld y=i64/%lld", (long long)s->start[i], (long long)s->step[i], (long long)part.dim[i]);
    const qn__term index = qn__gradient_line(g, &text);
    part.dim[i] = whole->dim[i];
    qn__pack(part.rank, part.dim, part.stride, NULL);
    qn__text_add(&text, "scatter_add dy=");
    qn__term_add(g, &text, x);
    qn__text_add(&text, " indices=");
    qn__term_add(g, &text, index);
    qn__text_add(&text, " axis=%d dx=", i);
    qn__output_tensor(&text, part.dtype, &part);
    x = qn__gradient_line(g, &text);
  }
  if (!pads) return one(g, x);
  qn__text_add(&text, "pad x=");
  qn__term_add(g, &text, x);
  qn__text_add(&text, " pad=");
  for (int i = 0; i < part.rank; i++) {
    const long long before = s->step[i] == 1 ? (long long)s->start[i] : 0;
    qn__text_add(&text, "%s%lld:%lld", i ? "," : "", before, (long long)(whole->dim[i] - part.dim[i]) - before);
  }
  return one(g, qn__gradient_line(g, &text));
}

/* The parts of what concat joined. */
static qn__terms parts(qn__gradient *g, const qn_node *node, qn__term x, int axis)
{
  const int32_t n = node->first[1] - node->first[0];
  qn__terms list = { n, qn__keep(g, (size_t)n * sizeof *list.t) };
  int64_t start = 0;
  axis = (int)((const qn_axis *)node->attr)->axis;
  for (int32_t k = 0; k < n && !g->status; k++) {
    const qn_value *part = &g->v->value[node->arg[k]];
    qn_text text = { 0 };
    list.t[k] = absent;
    if (!part->dim[axis]) continue;     /* of no element there is no gradient, and a slice's length of 0 means something else */
    qn__text_add(&text, "slice x=");
    qn__term_add(g, &text, x);
    for (int i = 0; i < part->rank; i++) qn__text_add(&text, "%s%lld", i ? "," : " start=", i == axis ? (long long)start : 0);
    for (int i = 0; i < part->rank; i++) qn__text_add(&text, "%s%lld", i ? "," : " length=", i == axis ? (long long)part->dim[i] : 0);
    list.t[k] = qn__gradient_line(g, &text);
    start += part->dim[axis];
  }
  return g->status ? (qn__terms){ 0 } : list;
}

const qn__move *qn__move_named(qn__span name)
{
  static const qn__move moves[] = { { "transposed", transposed }, { "sum_along", sum_along }, { "unpermuted", unpermuted },
                                    { "unsliced", unsliced }, { "parts", parts } };
  for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++)
    if (qn__same(name, moves[i].name)) return &moves[i];
  return NULL;
}
