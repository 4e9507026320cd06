/* problem.c -- a problem within the suite: its values as packed arrays, its inputs filled, its reference computed op by
 * op on the f64 twin. Strides, alignment and shared memory matter only to buffer.c; here all is packed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

int64_t qc_elements(const qn_value *q)
{
  int64_t n = 1;
  for (int k = 0; k < q->rank; k++)
    n *= q->dim[k];
  return n;
}

int64_t qc_offset(const qn_value *q, int64_t i)
{
  int64_t at = 0;
  for (int k = q->rank - 1; k >= 0; k--) {
    at += i % q->dim[k] * q->stride[k];
    i /= q->dim[k];
  }
  return at;
}

static uint32_t compute_dtype(const struct qc_node *n)
{
  uint32_t dtype = 0;
  for (int i = 0; i < n->n_in; i++) {
    const qn_value *q = &n->in[i]->q;
    bool scalar = q->rank == 0 && i > 0;
    if (qc_is_float(q->dtype) && !scalar && !(q->flags & QN_VALUE_HOST))
      dtype = q->dtype == QN_F64 || dtype == QN_F64 ? QN_F64 : QN_F32;
  }
  if (!dtype)
    dtype = qc_is_float(n->out[0]->q.dtype) ? (n->out[0]->q.dtype == QN_F64 ? QN_F64 : QN_F32) : n->out[0]->q.dtype;
  return dtype;
}

struct qc_value *qc_role(const struct qc_node *n, const char *role)
{
  for (int i = 0; i < n->n_in; i++)
    if (!strcmp(n->op->role[n->in_role[i]].name, role))
      return n->in[i];
  for (int i = 0; i < n->n_out; i++)
    if (!strcmp(n->op->role[n->out_role[i]].name, role))
      return n->out[i];
  return NULL;
}

static bool make_node(struct qc_problem *p, struct qc_node *n, const qn_node *from)
{
  n->op = qn_op_find(from->op);
  n->attr = from->attr;
  n->divisor = 1;
  n->node = *from;
  for (uint32_t r = 0; r < from->n_roles; r++) {
    for (int a = from->first[r]; a < from->first[r + 1]; a++) {
      struct qc_value *v = &p->value[from->arg[a]];
      if (r < from->n_inputs) {
        if (n->n_in == 64)
          return false;
        n->in_role[n->n_in] = (int)r;
        n->in[n->n_in++] = v;
      } else {
        if (n->n_out == 64)
          return false;
        n->out_role[n->n_out] = (int)r;
        n->out[n->n_out++] = v;
      }
    }
  }
  n->compute = compute_dtype(n);
  return true;
}

struct qc_problem *qc_problem_make(const char *lines, char *why, size_t bytes)
{
  qn_graph *graph;
  if (qn_graph_parse(lines, &graph)) {
    snprintf(why, bytes, "%s", qn_last_error());
    return NULL;
  }
  const qn_graph_view *view = qn_graph_inspect(graph);
  if (view->n_pointers > QC_MAX_POINTERS || view->n_ops > QC_MAX_OPS) {
    snprintf(why, bytes, "%u tensors and %u ops; the suite has room for %d and %d", view->n_pointers, view->n_ops, QC_MAX_POINTERS,
             QC_MAX_OPS);
    qn_graph_destroy(graph);
    return NULL;
  }
  struct qc_problem *p = qc_alloc(sizeof *p);
  p->graph = graph;
  p->view = view;
  p->value = qc_alloc(p->view->n_values * sizeof *p->value);
  p->node = qc_alloc(p->view->n_ops * sizeof *p->node);
  for (uint32_t i = 0; i < p->view->n_values; i++) {
    struct qc_value *v = &p->value[i];
    v->q = p->view->value[i];
    qc_value_name(p->view, i, v->name, sizeof v->name);
    v->n = qc_elements(&v->q);
    v->literal = p->view->literal ? p->view->literal[i] : 0;
    v->raw = qc_alloc((size_t)v->n * qn_dtype_bytes(v->q.dtype) + 8);
    if (qc_is_float(v->q.dtype)) {
      v->y = qc_alloc((size_t)v->n * sizeof *v->y + 8);
      v->e = qc_alloc((size_t)v->n * sizeof *v->e + 8);
      v->twin = v->y;
    } else {
      v->twin = qc_alloc((size_t)v->n * qn_dtype_bytes(v->q.dtype) + 8);
    }
  }
  for (uint32_t i = 0; i < p->view->n_pointers; i++) {
    struct qc_value *v = &p->value[p->view->pointer[i]];
    v->is_input = i < p->view->n_ins;
    v->is_output = i >= p->view->n_ins;
  }
  for (uint32_t k = 0; k < p->view->n_ops; k++) {
    if (!make_node(p, &p->node[k], &p->view->op[k])) {
      snprintf(why, bytes, "more tensors than the suite has room for");
      qc_problem_free(p);
      return NULL;
    }
  }
  return p;
}

void qc_problem_free(struct qc_problem *p)
{
  if (!p)
    return;
  qc_bounds_free(p);
  for (uint32_t k = 0; k < p->view->n_ops; k++) {
    qc_twin_free(p->node[k].twin);
    qc_twin_free(p->node[k].absolute);
    free(p->node[k].s);
  }
  for (uint32_t i = 0; i < p->view->n_values; i++) {
    if (p->value[i].twin != p->value[i].y)
      free(p->value[i].twin);
    free(p->value[i].raw);
    free(p->value[i].stated);
    free(p->value[i].rounded);
    free(p->value[i].y);
    free(p->value[i].e);
  }
  free(p->node);
  free(p->value);
  qn_graph_destroy(p->graph);
  free(p);
}

/* ---- filling ------------------------------------------------------------------------------ */

bool qc_steps_apart(const qn_value *q)
{
  int64_t reach = 0;
  bool apart = true, taken[QN_MAX_RANK] = {false};
  for (int round = 0; round < q->rank; round++) {
    int least = -1;
    for (int k = 0; k < q->rank; k++)
      if (!taken[k] && (least < 0 || q->stride[k] < q->stride[least]))
        least = k;
    taken[least] = true;
    apart &= q->dim[least] == 1 || q->stride[least] > reach;
    reach += q->dim[least] == 1 ? 0 : (q->dim[least] - 1) * q->stride[least];
  }
  return apart;
}

struct place { int64_t offset, index; };
static int by_offset(const void *a, const void *b)
{
  const struct place *p = a, *q = b;
  return p->offset != q->offset ? (p->offset > q->offset) - (p->offset < q->offset) : (p->index > q->index) - (p->index < q->index);
}

/* Elements of an input that share an address (stride 0, overlapping rows) get one value: that of the smallest index. False: they
 * had different ones. */
static bool settle_shared(struct qc_value *v)
{
  if (qc_steps_apart(&v->q) || !v->n)
    return true;
  const size_t bytes = qn_dtype_bytes(v->q.dtype);
  struct place *place = qc_alloc((size_t)v->n * sizeof *place);
  bool same = true;
  for (int64_t i = 0; i < v->n; i++)
    place[i] = (struct place){qc_offset(&v->q, i), i};
  qsort(place, (size_t)v->n, sizeof *place, by_offset);
  for (int64_t i = 1; i < v->n; i++) {
    if (place[i].offset != place[i - 1].offset)
      continue;
    char *to = (char *)v->raw + (size_t)place[i].index * bytes;
    const char *from = (const char *)v->raw + (size_t)place[i - 1].index * bytes;
    same &= !memcmp(to, from, bytes);
    memcpy(to, from, bytes);
  }
  free(place);
  return same;
}

/* Parses "1,2,nan" into packed elements; a short list repeats, one too long is an error. */
static bool stated_values(const char *text, uint32_t dtype, int64_t n, void *raw)
{
  size_t bytes = qn_dtype_bytes(dtype);
  const char *s = text;
  int64_t given = 1;
  for (const char *c = text; *c; c++)
    given += *c == ',';
  if (given > n && n)
    return false;
  for (int64_t i = 0; i < n; i++) {
    char *end;
    double x = strtod(s, &end);
    if (end == s)
      return false;
    if (dtype == QN_I64) {
      int64_t whole = strtoll(s, &end, 10);
      memcpy((char *)raw + (size_t)i * bytes, &whole, bytes);
    } else {
      qc_encode(dtype, x, (char *)raw + (size_t)i * bytes);
    }
    s = *end == ',' ? end + 1 : text;
    if (*end && *end != ',')
      return false;
  }
  return true;
}

/* Values for rank-0 operands: exact in every dtype, none of them neutral. */
static const double scalar_values[] = {2, -3, 0.5, -0.25, 4, 1.5};

/* Integers that name places in other tensors of an attention op that reads them. */
static bool fill_places(struct qc_problem *p, struct qc_value *v, uint64_t seed)
{
  for (uint32_t k = 0; k < p->view->n_ops; k++) {
    const struct qc_node *n = &p->node[k];
    struct qc_value *by_role[QN_MAX_ROLES] = {0};
    const char *role = NULL;
    for (int i = 0; i < n->n_in && n->op->family == QN_FAMILY_ATTENTION; i++) {
      by_role[n->in_role[i]] = n->in[i];
      role = n->in[i] == v ? n->op->role[n->in_role[i]].name : role;
    }
    if (role && qc_fill_places(v, role, qc_places(n->op, by_role, role), seed))
      return true;
  }
  return false;
}

static bool fill_input(struct qc_problem *p, struct qc_value *v, int index, const char *settings, const char *how,
                       uint64_t seed, char *why, size_t bytes)
{
  char key[64], text[8192];
  snprintf(key, sizeof key, "%s.is", v->name);
  if (qc_setting(settings, key, text, sizeof text)) {
    if (!stated_values(text, v->q.dtype, v->n, v->raw)) {
      snprintf(why, bytes, "%s=%s: not a list of at most %lld numbers", key, text, (long long)v->n);
      return false;
    }
    p->random = false;
    for (int64_t k = 0; k < v->n && v->y; k++)
      p->special |= !isfinite(qc_decode(v->q.dtype, (char *)v->raw + (size_t)k * qn_dtype_bytes(v->q.dtype)));
    if (settle_shared(v))
      return true;
    snprintf(why, bytes, "%s: elements that share an address are given more than one value", key);
    return false;
  }
  snprintf(key, sizeof key, "%s.fill", v->name);
  bool own = qc_setting(settings, key, text, sizeof text);
  if (!own && v->q.rank == 0) {
    size_t pick = (size_t)(qc_hash(seed, 99, (uint64_t)index) % (sizeof scalar_values / sizeof *scalar_values));
    qc_encode(v->q.dtype, scalar_values[pick], v->raw);
    return true;
  }
  const struct qc_node *n = &p->node[0];
  if (!own && !strcmp(v->name, "indices") && p->view->n_ops == 1 && n->op->family == QN_FAMILY_POOLING) {
    qc_fill_taps(v, n->op, n->attr, &n->out[0]->q, seed);
    settle_shared(v);
    return true;
  }
  if (!own && fill_places(p, v, seed)) {
    settle_shared(v);
    return true;
  }
  if (!own && (v->q.dtype == QN_I32 || v->q.dtype == QN_I64) && qc_setting(settings, "labels", key, sizeof key)) {
    snprintf(text, sizeof text, "range:%s", key);
    own = true;
  }
  how = own ? text : how;
  if (!qc_fill(v, how, seed, index, 3)) {
    snprintf(why, bytes, "fill '%s' is not known; conformance/suite/fill.c lists them", how);
    return false;
  }
  p->special |= qc_fill_is_special(how);
  p->random &= qc_fill_is_random(how);
  settle_shared(v);
  return true;
}

/* A golden case: the oracle itself must give the stated values, and so must engines (run.c). */
static bool check_stated(const struct qc_problem *p, const char *settings, char *why, size_t bytes)
{
  for (uint32_t i = 0; i < p->view->n_values; i++) {
    struct qc_value *v = &p->value[i];
    char key[64], text[8192];
    snprintf(key, sizeof key, "%s.is", v->name);
    if (!v->is_output || !qc_setting(settings, key, text, sizeof text))
      continue;
    if (!v->stated)
      v->stated = qc_alloc((size_t)v->n * qn_dtype_bytes(v->q.dtype) + 8);
    if (!stated_values(text, v->q.dtype, v->n, v->stated)) {
      snprintf(why, bytes, "%s=%s: not a list of at most %lld numbers", key, text, (long long)v->n);
      return false;
    }
    snprintf(key, sizeof key, "%s.within", v->name);
    v->within = qc_setting(settings, key, text, sizeof text) ? strtod(text, NULL) : 0;
    struct qc_verdict d;
    qc_compare_stated(v, NULL, &d);
    if (d.failed) {
      snprintf(why, bytes, "the oracle gives %s[%lld] = %.9g, the case states %.9g", v->name, (long long)d.worst, d.got, d.want);
      return false;
    }
  }
  return true;
}

/* A 64-bit integer as a double from which a narrower float is rounded as from the integer itself (Boldo, Melquiond 2008): what does
 * not fit goes to the neighbour whose last bit is 1. */
static void round_to_odd(struct qc_node *n)
{
  for (int64_t i = 0; i < n->out[0]->n; i++) {
    int64_t whole;
    memcpy(&whole, (const char *)n->in[0]->twin + (size_t)i * sizeof whole, sizeof whole);
    uint64_t size = whole < 0 ? -(uint64_t)whole : (uint64_t)whole, kept = size;
    int spare = size >> 53 ? 64 - __builtin_clzll(size) - 53 : 0;
    kept = kept >> spare << spare;
    if (kept != size)
      kept |= 1ull << spare;
    n->out[0]->y[i] = whole < 0 ? -(double)kept : (double)kept;
  }
}

bool qc_problem_fill(struct qc_problem *p, const char *settings, const char *how, uint64_t seed, char *why, size_t bytes)
{
  p->random = true;
  p->special = false;
  qc_bounds_free(p);
  for (uint32_t k = 0; k < p->view->n_ops; k++) {
    free(p->node[k].s);
    p->node[k].s = NULL;
  }
  for (uint32_t i = 0; i < p->view->n_values; i++) {
    struct qc_value *v = &p->value[i];
    free(v->rounded);
    v->rounded = NULL;
    v->exact = v->is_input || v->q.flags & QN_VALUE_HOST;
    if (v->e)
      memset(v->e, 0, (size_t)v->n * sizeof *v->e);
    if (v->q.flags & QN_VALUE_HOST) {
      qc_encode(v->q.dtype, v->literal, v->raw);
      if (v->y)
        v->y[0] = v->literal;
    } else if (v->is_input) {
      if (!fill_input(p, v, (int)i, settings, how, seed, why, bytes))
        return false;
      size_t size = qn_dtype_bytes(v->q.dtype);
      if (v->y) {
        for (int64_t k = 0; k < v->n; k++)
          v->y[k] = qc_decode(v->q.dtype, (char *)v->raw + (size_t)k * size);
      } else {
        memcpy(v->twin, v->raw, (size_t)v->n * size);
      }
    }
  }
  for (uint32_t k = 0; k < p->view->n_ops; k++) {
    struct qc_node *n = &p->node[k];
    bool moves = n->op->family == QN_FAMILY_TRANSFORM;
    for (int i = 0; i < n->n_in; i++)
      moves &= n->in[i]->is_input;
    n->out[0]->bitwise = moves;
    if (moves) {
      qc_transform_bits(n);
      continue;
    }
    /* defined bit by bit, or by its own dtype's range */
    if (n->op->family == QN_FAMILY_QUANTIZATION || n->op->kind == QN_OP_AMP_UPDATE || n->op->kind == QN_OP_CACHE_WRITE) {
      qc_native_bits(n);
      continue;
    }
    if (!n->twin)
      n->twin = qc_twin_make(n);
    qc_twin_run(n->twin, NULL, NULL);
    if (n->op->kind == QN_OP_CAST && n->in[0]->q.dtype == QN_I64 && n->out[0]->y && n->out[0]->q.dtype != QN_F64)
      round_to_odd(n);
  }
  return check_stated(p, settings, why, bytes);
}

bool qc_is_vouched_for(const struct qc_problem *p, uint64_t traits)
{
  const bool finite = traits & QN_TRAIT_FINITE_ONLY, flushes = traits & QN_TRAIT_FLUSHES;
  bool vouched = !(finite && p->special);
  for (uint32_t i = 0; i < p->view->n_values && (finite || flushes); i++) {
    const struct qc_value *v = &p->value[i];
    const bool wide = v->q.dtype == QN_F64;
    const double most = wide ? 0x1p340 : 0x1p40, least = wide ? 0x1p-900 : 0x1p-100;
    for (int64_t k = 0; k < v->n && vouched && v->is_input && v->y; k++)
      vouched = v->y[k] == 0 || !((finite && fabs(v->y[k]) >= most) || (flushes && fabs(v->y[k]) < least));
  }
  return vouched;
}
