/* problems.h -- random valid problems of every op in the schema, for tests of the notation. */
#ifndef QUERN_TESTS_PROBLEMS_H
#define QUERN_TESTS_PROBLEMS_H
#include <string.h>
#include <quern/tools.h>

typedef struct rng { uint64_t state; } rng;
static inline uint64_t rng_next(rng *r)         /* splitmix64 */
{
  uint64_t z = (r->state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline int rng_below(rng *r, int n) { return (int)(rng_next(r) % (uint64_t)n); }
static inline int rng_in(rng *r, int least, int most) { return least + rng_below(r, most - least + 1); }

enum { PROBLEM_VALUES = 48 };
/* One op being built, and the view that holds it. */
typedef struct problem {
  const qn_op_info *op;
  qn_node       node;
  qn_graph_view view;
  qn_value      value[PROBLEM_VALUES];
  double        literal[PROBLEM_VALUES];
  int32_t       first[QN_MAX_ROLES + 1], arg[PROBLEM_VALUES], pointer[PROBLEM_VALUES];
  union { uint64_t words[64]; char bytes[512]; } attr;
  int           n;
} problem;

static const uint32_t problem_floats[] = { QN_F64, QN_F32, QN_F16, QN_BF16 };

static inline void *problem_attr(problem *p, const char *name)
{
  for (uint32_t k = 0; k < p->op->n_attrs; k++)
    if (!strcmp(p->op->attr[k].name, name)) return p->attr.bytes + p->op->attr[k].offset;
  return NULL;
}

/* Strides: packed, channels last, transposed, with gaps, or (for inputs) broadcast. */
static inline void problem_strides(rng *r, qn_value *v, int input)
{
  int order[QN_MAX_RANK], style = rng_below(r, input ? 6 : 5);
  for (int i = 0; i < v->rank; i++) order[i] = i;
  if (style == 1 && v->rank >= 3) {
    for (int i = 1; i < v->rank - 1; i++) order[i] = i + 1;
    order[v->rank - 1] = 1;
  } else if (style == 2 && v->rank >= 2) {
    order[v->rank - 2] = v->rank - 1;
    order[v->rank - 1] = v->rank - 2;
  } else if (style == 3)
    for (int i = v->rank - 1; i > 0; i--) {
      int k = rng_below(r, i + 1), t = order[i];
      order[i] = order[k];
      order[k] = t;
    }
  int64_t stride = 1;
  for (int i = v->rank - 1; i >= 0; i--) {
    v->stride[order[i]] = stride;
    stride *= v->dim[order[i]] > 1 ? v->dim[order[i]] : 1;
    if (style == 4) stride += rng_below(r, 3);
  }
  if (style == 5 && v->rank) v->stride[rng_below(r, v->rank)] = 0;
}

static inline qn_value *problem_add(problem *p, uint32_t dtype, int rank, const int64_t *dim)
{
  qn_value *v = &p->value[p->n];
  p->arg[p->n] = p->n;
  p->n++;
  *v = (qn_value){ .dtype = dtype, .rank = rank, .over = -1 };
  for (int i = 0; i < rank; i++) v->dim[i] = dim[i];
  return v;
}
static inline qn_value *problem_input(rng *r, problem *p, uint32_t dtype, int rank, const int64_t *dim)
{
  qn_value *v = problem_add(p, dtype, rank, dim);
  problem_strides(r, v, 1);
  for (v->align = 16; rng_below(r, 6) == 0 && v->align > 8; ) v->align /= 2;
  return v;
}
static inline void problem_number(rng *r, problem *p, int host)
{
  static const double numbers[] = { 0, 1, -1, 0.5, 1e-3, 0.1, 1e300, -2.5e-7, 3 };
  int scalar = host || rng_below(r, 4);
  qn_value *v = problem_add(p, scalar ? QN_F64 : problem_floats[rng_below(r, 4)], 0, NULL);
  if (!scalar) return;                  /* a scalar on the device */
  v->flags = QN_VALUE_HOST;
  p->literal[p->n - 1] = numbers[rng_below(r, 9)];
}
/* An output: to be inferred, or given with strides of its own. */
static inline void problem_wanted(problem *p)
{
  qn_value *v = problem_add(p, 0, 0, NULL);
  v->rank = -1;
}

static inline void problem_dims(rng *r, int rank, int64_t *dim)
{
  for (int i = 0; i < rank; i++) dim[i] = rng_below(r, 12) ? rng_in(r, 1, 6) : 0;
}

static inline void problem_windowed(rng *r, problem *p, int spatial, int64_t *extent, int64_t *taps)
{
  int64_t *stride = problem_attr(p, "stride"), *dilation = problem_attr(p, "dilation"), *before = problem_attr(p, "pad");
  int64_t *after = before + 3;          /* qn_conv and qn_pool alike */
  for (int i = 0; i < spatial; i++) {
    taps[i] = rng_in(r, 1, 3);
    stride[i] = rng_in(r, 1, 3);
    dilation[i] = rng_in(r, 1, 2);
    before[i] = rng_below(r, 3);
    after[i] = rng_below(r, 2) ? before[i] : rng_below(r, 3);
    extent[i] = rng_in(r, 5, 9);
  }
}

static inline int64_t problem_places(const problem *p, int i, int64_t extent, int64_t taps)
{
  const qn_conv *g = (const qn_conv *)p->attr.bytes;
  int64_t room = extent + g->pad_before[i] + g->pad_after[i] - g->dilation[i] * (taps - 1) - 1;
  return room < 0 ? 0 : room / g->stride[i] + 1;
}

static inline void problem_contraction(rng *r, problem *p)
{
  static const uint32_t f8[] = { QN_E4M3, QN_E5M2 }, i8[] = { QN_I8, QN_U8 };
  int kind = rng_below(r, 6);
  uint32_t left = problem_floats[rng_below(r, 4)], right = left, sum = left;
  if (kind == 0) left = f8[rng_below(r, 2)], right = f8[rng_below(r, 2)], sum = QN_F32;
  if (kind == 1) left = i8[rng_below(r, 2)], right = i8[rng_below(r, 2)], sum = QN_I32;
  if (p->op->kind == QN_OP_MATMUL) {
    int rank = rng_in(r, 2, 4);
    int64_t a[4], b[4], y[4], m = rng_in(r, 1, 5), n = rng_in(r, 1, 5), k = rng_below(r, 5);
    for (int i = 0; i < rank - 2; i++) {
      y[i] = rng_in(r, 1, 3);
      a[i] = rng_below(r, 3) ? y[i] : 1;
      b[i] = a[i] == y[i] && rng_below(r, 2) ? 1 : y[i];
    }
    a[rank - 2] = y[rank - 2] = m;
    a[rank - 1] = b[rank - 2] = k;
    b[rank - 1] = y[rank - 1] = n;
    problem_input(r, p, left, rank, a);
    p->first[1] = p->n;
    problem_input(r, p, right, rank, b);
    p->first[2] = p->n;
    int c = rng_below(r, 2);
    if (c) problem_input(r, p, sum, rank, y);
    p->first[3] = p->n;
    if (rng_below(r, 2)) problem_input(r, p, sum == QN_I32 || rng_below(r, 2) ? sum : QN_F32, 1, &n);
    p->first[4] = p->n;
    if (sum != QN_I32 && rng_below(r, 2)) problem_number(r, p, 0);
    p->first[5] = p->n;
    if (sum != QN_I32 && c && rng_below(r, 2)) problem_number(r, p, 0);
    p->first[6] = p->n;
    return;
  }
  int spatial = rng_in(r, 1, 3), rank = spatial + 2;
  int64_t x[5], w[5], y[5], groups = rng_in(r, 1, 3);
  x[0] = y[0] = rng_in(r, 0, 3);
  w[1] = rng_in(r, 1, 3);
  x[1] = w[1] * groups;
  w[0] = y[1] = groups * rng_in(r, 1, 3);
  problem_windowed(r, p, spatial, x + 2, w + 2);
  ((qn_conv *)p->attr.bytes)->groups = groups;
  for (int i = 0; i < spatial; i++) y[i + 2] = problem_places(p, i, x[i + 2], w[i + 2]);
  uint32_t other = p->op->kind == QN_OP_CONV_FORWARD ? sum : left;
  if (p->op->kind == QN_OP_CONV_BACKWARD_DATA) problem_input(r, p, left, rank, y);
  else problem_input(r, p, left, rank, x);
  p->first[1] = p->n;
  if (p->op->kind == QN_OP_CONV_BACKWARD_FILTER) problem_input(r, p, right, rank, y);
  else problem_input(r, p, right, rank, w);
  p->first[2] = p->n;
  if (p->op->kind == QN_OP_CONV_FORWARD) {
    if (rng_below(r, 2)) problem_input(r, p, other, 1, &w[0]);
    p->first[3] = p->n;
    return;
  }
  if (rng_below(r, 2) || !y[2] || (spatial > 1 && !y[3]) || (spatial > 2 && !y[4])) {    /* given, as it cannot be inferred */
    const int64_t *dim = p->op->kind == QN_OP_CONV_BACKWARD_DATA ? x : w;
    problem_strides(r, problem_add(p, sum, rank, dim), 0);
    p->first[3] = p->n;
  }
}

static inline void problem_pooling(rng *r, problem *p)
{
  int spatial = rng_in(r, 1, 3), rank = spatial + 2;
  int64_t x[5] = { rng_in(r, 0, 3), rng_in(r, 1, 3) }, window[3], y[5];
  uint32_t dtype = problem_floats[rng_below(r, 4)];
  if (problem_attr(p, "size")) {
    int64_t *size = problem_attr(p, "size");
    for (int i = 0; i < spatial; i++) x[i + 2] = rng_in(r, 1, 9), size[i] = y[i + 2] = rng_in(r, 1, 9);
    y[0] = x[0], y[1] = x[1];
    if (problem_attr(p, "mode"))
      *(int64_t *)problem_attr(p, "mode") = rng_below(r, 3), *(int64_t *)problem_attr(p, "grid") = rng_below(r, 3);
    int64_t *up = problem_attr(p, "up"), *down = problem_attr(p, "down");
    for (int i = 0; i < spatial && up; i++) {           /* a scale factor that leaves one place */
      if (rng_below(r, 4)) continue;
      down[i] = rng_in(r, 1, 9), up[i] = (down[i] + x[i + 2] - 1) / x[i + 2] + rng_in(r, 0, 9);
      size[i] = y[i + 2] = x[i + 2] * up[i] / down[i];
    }
    problem_input(r, p, dtype, rank, p->op->forward ? y : x);
    p->first[1] = p->n;
    if (!p->op->forward) return;
    if (p->op->kind == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD) problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, rank, y);
    p->first[p->op->n_inputs] = p->n;
    problem_strides(r, problem_add(p, dtype, rank, x), 0);
    p->first[p->op->n_roles] = p->n;
    return;
  }
  problem_windowed(r, p, spatial, x + 2, window);
  qn_pool *g = (qn_pool *)p->attr.bytes;
  memcpy(g->window, window, sizeof window);
  g->ceil_mode = rng_below(r, 2);
  g->include_pad = rng_below(r, 2);
  if (rng_below(r, 4) == 0) memset(g->window, 0, sizeof g->window);
  if (rng_below(r, 4) == 0) memset(g->stride, 0, sizeof g->stride);
  if (!p->op->forward) {
    problem_input(r, p, dtype, rank, x);
    p->first[1] = p->n;
    return;
  }
  /* dy's dims are those inferred by the forward op */
  problem forward = { .op = qn_op_find(p->op->forward), .attr = p->attr };
  forward.first[1] = 1;
  problem_add(&forward, dtype, rank, x);
  for (int i = rank - 1, s = 1; i >= 0; i--) forward.value[0].stride[i] = s, s *= (int)(x[i] ? x[i] : 1);
  problem_wanted(&forward);
  for (uint32_t i = 2; i <= forward.op->n_roles; i++) forward.first[i] = 2;
  forward.pointer[1] = 1;
  forward.node = (qn_node){ .op = forward.op->kind, .n_roles = forward.op->n_roles, .attr = forward.attr.bytes,
                            .first = forward.first, .arg = forward.arg };
  forward.view = (qn_graph_view){ .struct_size = sizeof forward.view, .n_ops = 1, .n_values = 2, .n_pointers = 2, .n_ins = 1,
                                  .op = &forward.node, .value = forward.value, .pointer = forward.pointer };
  qn_graph *graph;
  if (qn_graph_make(&forward.view, &graph)) return;
  memcpy(y, qn_graph_inspect(graph)->value[1].dim, sizeof y);
  qn_graph_destroy(graph);
  problem_input(r, p, dtype, rank, y);
  p->first[1] = p->n;
  if (p->op->kind == QN_OP_POOL_MAX_BACKWARD) {
    int which = rng_in(r, 1, 3);
    if (which & 1) problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, rank, y);
    p->first[2] = p->n;
    if (which & 2) problem_input(r, p, dtype, rank, x);
    p->first[3] = p->n;
  }
  if (p->op->kind == QN_OP_POOL_LP_BACKWARD) {
    problem_input(r, p, dtype, rank, x);
    p->first[2] = p->n;
    problem_input(r, p, dtype, rank, y);
    p->first[3] = p->n;
  }
  problem_strides(r, problem_add(p, dtype, rank, x), 0);
  p->first[p->op->n_roles] = p->n;
}

static inline void problem_patches(rng *r, problem *p)
{
  int spatial = rng_in(r, 1, 3), back = p->op->forward != 0;
  int64_t x[5] = { rng_in(r, 0, 3), rng_in(r, 1, 3) }, y[5] = { x[0], x[1] }, *window = problem_attr(p, "window");
  uint32_t dtype = problem_floats[rng_below(r, 4)];
  qn_patches *a = (qn_patches *)p->attr.bytes;
  problem_windowed(r, p, spatial, x + 2, window);
  for (int i = 0; i < spatial; i++) {
    int64_t room = x[i + 2] + a->pad_before[i] + a->pad_after[i] - a->dilation[i] * (window[i] - 1) - 1;
    y[1] *= window[i];
    y[i + 2] = room < 0 ? 0 : room / a->stride[i] + 1;
  }
  problem_input(r, p, dtype, spatial + 2, back ? y : x);
  p->first[1] = p->n;
  if (!back) return;
  problem_strides(r, problem_add(p, dtype, spatial + 2, x), 0);
  p->first[2] = p->n;
}

static inline void problem_pointwise(rng *r, problem *p)
{
  static const uint32_t integers[] = { QN_I8, QN_U8, QN_I32, QN_I64 }, any[] = { QN_F32, QN_E4M3, QN_I8, QN_BOOL, QN_BF16 };
  int rank = rng_in(r, 0, 5), family = rng_below(r, 3);
  int64_t dim[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  uint32_t integer = integers[rng_below(r, 4)], first = 0;
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    char class_ = p->op->role[i].class_;
    uint32_t dtype = class_ == 'b' ? QN_BOOL : class_ == 'a' ? any[rng_below(r, 5)]
                   : class_ == 'd' || (strchr("nv", class_) && family == 0) ? integer
                   : family == 1 ? QN_F64 : problem_floats[rng_in(r, 1, 3)];
    if (i > 0 && class_ != 'b' && first && rng_below(r, 4) == 0) problem_number(r, p, rank == 0);
    else {
      int64_t own[QN_MAX_RANK];
      for (int k = 0; k < rank; k++) own[k] = i == 0 || rng_below(r, 3) ? dim[k] : 1;
      problem_input(r, p, dtype, rank, own);
      if (class_ != 'b') first = dtype;
    }
    p->first[i + 1] = p->n;
  }
  if (p->op->kind != QN_OP_CAST) return;
  problem_strides(r, problem_add(p, any[rng_below(r, 5)], rank, dim), 0);
  p->first[2] = p->n;
}

static inline void problem_indices(rng *r, problem *p, int rank)
{
  int64_t dim[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, rank, dim);
}

/* Pads of dim i, of extent n; the mode is drawn with the first. */
static inline void problem_pads(rng *r, problem *p, int i, int64_t n)
{
  int64_t *pad = problem_attr(p, "pad"), *mode = problem_attr(p, "mode");
  if (i == 0) *mode = rng_below(r, 4);
  int most = *mode == QN_PAD_REFLECT ? (int)n - 1 : n ? 2 : 0;
  if (*mode == QN_PAD_CONSTANT) most = 2;
  for (int side = 0; side < 2; side++) pad[i + side * QN_MAX_RANK] = most > 0 ? rng_below(r, (most > 2 ? 2 : most) + 1) : 0;
  if (n > 2 && rng_below(r, 4) == 0) pad[i + rng_below(r, 2) * QN_MAX_RANK] = -1;
}

static inline void problem_transform(rng *r, problem *p)
{
  int rank = rng_in(r, p->op->kind == QN_OP_CONCAT || p->op->kind == QN_OP_GATHER || p->op->kind == QN_OP_GATHER_ELEMENTS, 5);
  int64_t dim[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  uint32_t dtype = (uint32_t)rng_in(r, 1, QN_BOOL);
  int n = p->op->kind == QN_OP_CONCAT ? rng_in(r, 1, 4) : 1, axis = rng_below(r, rank + 1) - 1;
  for (int i = 0; i < n; i++) {
    if (n > 1) dim[axis < 0 ? rank - 1 : axis] = rng_below(r, 5);
    problem_input(r, p, dtype, rank, dim);
  }
  p->first[1] = p->n;
  if (p->op->kind == QN_OP_CONCAT) *(int64_t *)problem_attr(p, "axis") = axis;
  for (int i = 0; i < rank; i++) {
    if (p->op->kind == QN_OP_PERMUTE) {
      int64_t *perm = problem_attr(p, "perm"), k = rng_below(r, i + 1), t = perm[i];
      perm[i] = perm[k];
      perm[k] = t;
    } else if (p->op->kind == QN_OP_SLICE && dim[i]) {
      ((int64_t *)problem_attr(p, "start"))[i] = rng_below(r, (int)dim[i]);
      ((int64_t *)problem_attr(p, "step"))[i] = rng_below(r, 3) ? rng_in(r, 1, 3) : -rng_in(r, 1, 3);
      ((int64_t *)problem_attr(p, "length"))[i] = rng_below(r, 2);
    } else if (p->op->kind == QN_OP_PAD)
      problem_pads(r, p, i, dim[i]);
  }
  if (p->op->kind == QN_OP_PAD && rng_below(r, 2)) *(double *)problem_attr(p, "value") = -1.5;
  if (p->op->kind == QN_OP_GATHER_ELEMENTS) {
    dim[axis < 0 ? rank - 1 : axis] = rng_below(r, 5);
    problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, rank, dim);
  } else if (p->op->kind == QN_OP_GATHER) problem_indices(r, p, rng_below(r, 3));
  else return;
  p->first[2] = p->n;
  *(int64_t *)problem_attr(p, "axis") = axis;
}

static inline void problem_selection(rng *r, problem *p)      /* and scans */
{
  static const uint32_t integers[] = { QN_I8, QN_U8, QN_I32, QN_I64 };
  int rank = rng_in(r, 1, 4), axis = rng_below(r, rank);
  uint32_t kind = p->op->kind, dtype = p->op->role[0].class_ == 'n' &&
      rng_below(r, 3) == 0 ? integers[rng_below(r, 4)] : problem_floats[rng_below(r, 4)];
  int64_t dim[QN_MAX_RANK], dy[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  if (problem_attr(p, "axis")) *(int64_t *)problem_attr(p, "axis") = axis;
  if (kind == QN_OP_SCATTER_ELEMENTS || kind == QN_OP_SCATTER_ND) {
    const int named = rng_in(r, 1, rank);
    int64_t rows[QN_MAX_RANK] = { rng_below(r, 4), named };
    *(int64_t *)problem_attr(p, "mode") = rng_below(r, 5);
    problem_input(r, p, dtype, rank, dim);
    p->first[1] = p->n;
    if (kind == QN_OP_SCATTER_ND) problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, 2, rows);
    else dim[axis] = rng_below(r, 5), problem_input(r, p, QN_I64, rank, dim);
    p->first[2] = p->n;
    for (int i = named; i < rank; i++) rows[1 + i - named] = dim[i];
    problem_input(r, p, dtype, kind == QN_OP_SCATTER_ND ? 1 + rank - named : rank, kind == QN_OP_SCATTER_ND ? rows : dim);
    p->first[3] = p->n;
    return;
  }
  if (kind == QN_OP_IOTA) {
    for (int i = 0; i < 2; i++) problem_number(r, p, 0), p->first[i + 1] = p->n;
    problem_strides(r, problem_add(p, dtype, rank, dim), 0);
    p->first[3] = p->n;
    return;
  }
  if (kind == QN_OP_ONE_HOT) {
    problem_indices(r, p, rank);
    *(int64_t *)problem_attr(p, "depth") = rng_in(r, 1, 5);
    if (rng_below(r, 2)) *(double *)problem_attr(p, "on") = 0.9;
  } else if (kind == QN_OP_SCATTER_ADD) {
    int64_t named[2] = { rng_in(r, 1, 4), rng_in(r, 1, 4) };
    int n = rng_below(r, 3);
    for (int i = 0; i < rank - 1 + n; i++) dy[i] = i < axis ? dim[i] : i < axis + n ? named[i - axis] : dim[i - n + 1];
    problem_input(r, p, dtype, rank - 1 + n, dy);
    p->first[1] = p->n;
    problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, n, named);
    p->first[2] = p->n;
    problem_strides(r, problem_add(p, dtype, rank, dim), 0);
    p->first[3] = p->n;
    return;
  } else if (kind == QN_OP_PAD_BACKWARD) {
    for (int i = 0; i < rank; i++) {
      problem_pads(r, p, i, dim[i]);
      const int64_t *pad = (const int64_t *)problem_attr(p, "pad");
      dim[i] += pad[i] + pad[i + QN_MAX_RANK];
    }
    problem_input(r, p, dtype, rank, dim);
  } else {
    if (kind == QN_OP_TOP_K) {
      dim[axis] = rng_in(r, 1, 6);
      *(int64_t *)problem_attr(p, "k") = rng_in(r, 1, (int)dim[axis]);
      *(int64_t *)problem_attr(p, "smallest") = rng_below(r, 2);
    } else if (kind == QN_OP_SORT) {
      *(int64_t *)problem_attr(p, "descending") = rng_below(r, 2);
    } else {
      *(int64_t *)problem_attr(p, "exclusive") = rng_below(r, 2);
      *(int64_t *)problem_attr(p, "reverse") = rng_below(r, 2);
    }
    problem_input(r, p, dtype, rank, dim);
  }
  p->first[1] = p->n;
}

static inline void problem_rows(rng *r, problem *p)           /* softmax and reductions */
{
  int softmax = p->op->family == QN_FAMILY_SOFTMAX, rank = rng_in(r, softmax, 5);
  int64_t dim[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  static const uint32_t integers[] = { QN_I8, QN_U8, QN_I32, QN_I64 };
  uint32_t dtype = p->op->role[0].class_ == 'b' ? QN_BOOL
                 : p->op->role[0].class_ == 'n' && rng_below(r, 3) == 0 ? integers[rng_below(r, 4)] : problem_floats[rng_below(r, 4)];
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    problem_input(r, p, i && dtype != QN_F64 ? problem_floats[rng_in(r, 1, 3)] : dtype, rank, dim);
    p->first[i + 1] = p->n;
  }
  if (softmax) *(int64_t *)problem_attr(p, "axis") = rng_below(r, rank + 1) - 1;
  else *(uint64_t *)problem_attr(p, "axis") = rng_next(r) & ((1u << rank) - 1);
}

static inline void problem_normalization(rng *r, problem *p)
{
  int batch = p->op->kind == QN_OP_BATCH_NORM || p->op->kind == QN_OP_BATCH_NORM_BACKWARD || p->op->kind == QN_OP_BATCH_NORM_INFERENCE;
  int rank = rng_in(r, 1 + batch, 5), f64 = rng_below(r, 4) == 0;
  int64_t dim[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  uint64_t all = (UINT64_C(1) << rank) - 1, mask = rng_next(r) & all;
  *(uint64_t *)problem_attr(p, "axis") = mask;
  if (!mask) mask = batch ? all & ~UINT64_C(2) : UINT64_C(1) << (rank - 1);
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    int statistic = p->op->role[i].class_ == 'w', parameter = p->op->role[i].name[0] == 's';
    int64_t own[QN_MAX_RANK];
    for (int k = 0; k < rank; k++) own[k] = (statistic && mask >> k & 1) || (parameter && rng_below(r, 2)) ? 1 : dim[k];
    if (!(p->op->role[i].flags & QN_ROLE_OPTIONAL) || rng_below(r, 2))
      problem_input(r, p, f64 ? QN_F64 : statistic ? QN_F32 : problem_floats[rng_in(r, 1, 3)], rank, own);
    p->first[i + 1] = p->n;
  }
}

static inline void problem_local(rng *r, problem *p)
{
  int rank = rng_in(r, 2, 5), dtype = rng_below(r, 4);
  int64_t dim[QN_MAX_RANK];
  problem_dims(r, rank, dim);
  qn_local_norm *a = (qn_local_norm *)p->attr.bytes;
  a->size = rng_in(r, 1, 6);
  a->region = rank > 2 && rng_below(r, 2);
  int means = rng_below(r, 2);
  for (uint32_t i = 0; i < p->op->n_roles; i++) {
    int optional = p->op->role[i].flags & QN_ROLE_OPTIONAL, output = i >= p->op->n_inputs;
    if (output && (!optional || (means && rng_below(r, 2)))) problem_wanted(p);
    if (!output && (!optional || means)) problem_input(r, p, problem_floats[dtype], rank, dim);
    p->first[i + 1] = p->n;
  }
}

static inline void problem_sampling(rng *r, problem *p)
{
  int d = rng_in(r, 2, 3), dtype = rng_below(r, 4);
  int64_t n = rng_in(r, 1, 3), c = rng_in(r, 1, 3), grid[5] = { n }, x[5] = { n, c }, y[5] = { n, c }, theta[3] = { n, d, d + 1 };
  for (int i = 0; i < d; i++) grid[1 + i] = y[2 + i] = rng_in(r, 1, 5), x[2 + i] = rng_in(r, 1, 5);
  grid[d + 1] = d;
  qn_sampling *a = (qn_sampling *)p->attr.bytes;
  a->align_corners = rng_below(r, 2);
  if (problem_attr(p, "mode")) a->mode = rng_below(r, 3), a->padding = rng_below(r, 3);
  for (uint32_t i = 0; i < p->op->n_roles; i++) {
    const char *name = p->op->role[i].name;
    int points = strstr(name, "grid") || (!strcmp(name, "dy") && p->op->kind == QN_OP_AFFINE_GRID_BACKWARD),
        map = strstr(name, "theta") != NULL;
    int image = !strcmp(name, "x") || !strcmp(name, "dx"), output = i >= p->op->n_inputs;
    if (output && !image && strcmp(name, "grid")) break;
    const int64_t *dim = points ? grid : map ? theta : image ? x : y;
    uint32_t own = problem_floats[!dtype ? 0 : points || map ? rng_in(r, 1, 3) : dtype];
    if (output) problem_strides(r, problem_add(p, own, d + 2, dim), 0);
    else problem_input(r, p, own, map ? 3 : d + 2, dim);
    p->first[i + 1] = p->n;
  }
}

/* A key: an integer literal, or on the device. */
static inline void problem_key(rng *r, problem *p)
{
  qn_value *v = problem_add(p, rng_below(r, 2) ? QN_F64 : QN_I64, 0, NULL);
  if (v->dtype == QN_I64) return;
  v->flags = QN_VALUE_HOST;
  p->literal[p->n - 1] = rng_in(r, -3, 1000000);
}

static inline void problem_chance(rng *r, problem *p)
{
  int rank = rng_in(r, 0, 5), masked = rng_below(r, 2);
  int64_t dim[QN_MAX_RANK], octets = 1;
  problem_dims(r, rank, dim);
  for (int i = 0; i < rank; i++) octets *= dim[i];
  octets = (octets + 7) / 8;
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    const qn_role_info *role = &p->op->role[i];
    const int given = p->op->kind != QN_OP_DROPOUT_BACKWARD || masked == (role->class_ == 'o');
    if (role->class_ == 'f') problem_input(r, p, problem_floats[rng_below(r, 4)], rank, dim);
    else if (role->class_ == 'o' && given) problem_input(r, p, QN_U8, 1, &octets);
    else if (role->class_ == 'k' && given && (strcmp(role->name, "offset") || rng_below(r, 2))) problem_key(r, p);
    p->first[i + 1] = p->n;
  }
  if (p->op->role[0].class_ == 'f') return;
  problem_strides(r, problem_add(p, problem_floats[rng_below(r, 4)], rank, dim), 0);
  p->first[p->op->n_roles] = p->n;
}

static inline void problem_ctc(rng *r, problem *p)
{
  int reduction = rng_below(r, 3), f64 = rng_below(r, 4) == 0;
  int64_t x[3], one = 1;
  problem_dims(r, 3, x);
  x[2]++;                                 /* one is blank */
  int64_t labels[2] = { x[1], rng_in(r, 0, 4) }, frames[3] = { x[0], x[1], 1 };
  qn_ctc *a = (qn_ctc *)p->attr.bytes;
  a->blank = rng_below(r, (int)x[2]);
  a->zero_infinity = rng_below(r, 2);
  a->reduction = reduction;
  const int64_t *dy = reduction ? &one : labels;
  if (p->op->kind == QN_OP_CTC_LOSS_BACKWARD) problem_input(r, p, f64 ? QN_F64 : QN_F32, 1, dy);
  const struct { int rank; const int64_t *dim; } part[] = { { 3, x }, { 2, labels }, { 1, labels }, { 1, labels }, { 3, frames } };
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    const int k = (int)i - (p->op->kind == QN_OP_CTC_LOSS_BACKWARD), floating = k == 0 || k == 4;
    const uint32_t narrow = k == 0 ? problem_floats[rng_in(r, 1, 3)] : QN_F32;
    if (k >= 0) problem_input(r, p, !floating ? (rng_below(r, 2) ? QN_I32 : QN_I64) : f64 ? QN_F64 : narrow, part[k].rank, part[k].dim);
    p->first[i + 1] = p->n;
  }
}

static inline void problem_loss(rng *r, problem *p)
{
  if (p->op->kind == QN_OP_CTC_LOSS || p->op->kind == QN_OP_CTC_LOSS_BACKWARD) {
    problem_ctc(r, p);
    return;
  }
  int rank = rng_in(r, 1, 5), axis = rng_below(r, rank + 1) - 1, f64 = rng_below(r, 4) == 0;
  int64_t dim[QN_MAX_RANK], row[QN_MAX_RANK], one[QN_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };
  problem_dims(r, rank, dim);
  qn_entropy *a = (qn_entropy *)p->attr.bytes;
  a->axis = axis;
  a->ignore = rng_in(r, -3, 3);
  a->reduction = rng_below(r, 3);
  a->input = rng_below(r, 2);
  const char *absent = rng_below(r, 2) ? "labels" : "probabilities";
  int64_t classes = dim[axis < 0 ? rank - 1 : axis];
  for (int i = 0; i < rank; i++) row[i] = i == (axis < 0 ? rank - 1 : axis) ? 1 : dim[i];
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    const char *name = p->op->role[i].name;
    const int64_t *own = !strcmp(name, "x") || !strcmp(name, "probabilities") ? dim
                       : !strcmp(name, "count") || (!strcmp(name, "dy") && a->reduction) ? one : row;
    uint32_t dtype = p->op->role[i].class_ == 'i' ? (rng_below(r, 2) ? QN_I32 : QN_I64)
                   : f64 ? QN_F64 : own == dim ? problem_floats[rng_in(r, 1, 3)] : QN_F32;
    if (!strcmp(name, "weights")) { if (rng_below(r, 2)) problem_input(r, p, dtype, 1, &classes); }
    else if (!strcmp(name, absent) || (!strcmp(name, "lse") && a->input)) {}
    else if (strcmp(name, "count") || a->reduction == QN_REDUCTION_MEAN || rng_below(r, 2)) problem_input(r, p, dtype, rank, own);
    p->first[i + 1] = p->n;
  }
}

/* One or two layers of any cell; what may be absent is, now and then. */
static inline void problem_recurrent(rng *r, problem *p)
{
  qn_rnn *a = (qn_rnn *)p->attr.bytes;
  a->cell = rng_below(r, 4);
  a->layers = rng_in(r, 1, 2);
  a->direction = rng_below(r, a->layers == 1 ? 3 : 2);
  a->reset = rng_below(r, 2);
  if (rng_below(r, 3) == 0) a->clip = rng_in(r, 1, 5) / 7.0;
  if (rng_below(r, 3) == 0) a->dropout = rng_below(r, 5) / 7.0;
  const bool back = p->op->kind == QN_OP_RNN_BACKWARD, lstm = a->cell == QN_RNN_LSTM, projected = lstm && rng_below(r, 3) == 0;
  const int64_t directions = a->direction == QN_RNN_BOTH ? 2 : 1, each = a->layers * directions;
  const int64_t gates = lstm ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  const int64_t kept = a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_AFTER ? 4 : gates;
  const int64_t t = rng_in(r, 0, 4), b = rng_in(r, 0, 3), in = rng_in(r, 1, 5), h = rng_in(r, 1, 5), s = projected ? rng_in(r, 1, 5) : h;
  const uint32_t dtype = problem_floats[rng_below(r, 4)];
  const struct { const char *name; int rank; int64_t dim[4]; bool needed, never; } part[] = {
    { "x", 3, { t, b, in }, true, false }, { "y", 3, { t, b, directions * s }, true, false }, { "w", 2, { gates * h, in }, true, false },
    { "r", 2, { gates * h, s }, true, false }, { "bw", 1, { gates * h }, false, false }, { "br", 1, { gates * h }, false, false },
    { "projection", 2, { s, h }, projected, !projected }, { "h0", 3, { each, b, s }, false, false },
    { "c0", 3, { each, b, h }, false, !lstm },
    { "lengths", 1, { b }, false, false }, { "ht", 3, { each, b, s }, false, false }, { "ct", 3, { each, b, h }, false, !lstm },
    { "gates", 4, { each, t, b, kept * h }, back && gates > 1, gates == 1 }, { "cells", 4, { each, t, b, h }, back && lstm, !lstm },
    { "inner", 4, { a->layers - 1, t, b, directions * s }, back && a->layers > 1, a->layers == 1 } };
  for (uint32_t i = 0; i < p->op->n_roles; i++) {
    const qn_role_info *role = &p->op->role[i];
    const bool output = i >= p->op->n_inputs, key = role->class_ == 'k';
    const char *name = role->name[0] == 'd' ? role->name + 1 : role->name;
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
      if (key || strcmp(part[k].name, name)) continue;
      const bool needed = part[k].needed && (!output || i == p->op->n_inputs) && !(role->flags & QN_ROLE_OPTIONAL && name != role->name);
      const bool always = needed || (i == p->op->n_inputs) || !(role->flags & QN_ROLE_OPTIONAL);
      for (int64_t n = part[k].never || !(always || rng_below(r, 2)) ? 0 : role->flags & QN_ROLE_LIST ? each : 1, j = 0; j < n; j++) {
        int64_t dim[4];
        memcpy(dim, part[k].dim, sizeof dim);
        if (!strcmp(name, "w") && j >= directions) dim[1] = directions * s;
        if (output) problem_wanted(p);
        else problem_input(r, p, role->class_ == 'i' ? (rng_below(r, 2) ? QN_I32 : QN_I64) : dtype, part[k].rank, dim);
      }
    }
    if (key && (!strcmp(name, "seed") ? a->dropout > 0 && a->layers > 1 : rng_below(r, 2))) problem_input(r, p, QN_I64, 0, NULL);
    p->first[i + 1] = p->n;
  }
}

/* Blocks of any length, sometimes with a partial last one; all three ops. */
static inline void problem_quantization(rng *r, problem *p)
{
  static const uint32_t narrow[] = { QN_I8, QN_U8, QN_E4M3, QN_E5M2 };
  int rank = rng_in(r, 0, 4), whole = rng_below(r, 4) == 0, back = p->op->kind == QN_OP_DEQUANTIZE,
      dynamic = p->op->kind == QN_OP_QUANTIZE_DYNAMIC;
  int64_t dim[QN_MAX_RANK], scales[QN_MAX_RANK], *block = problem_attr(p, "block");
  problem_dims(r, rank, dim);
  for (int i = 0; i < rank; i++) {
    block[i] = whole ? 0 : rng_below(r, 4);
    scales[i] = !block[i] ? 1 : (dim[i] + block[i] - 1) / block[i];
  }
  uint32_t wide = problem_floats[rng_below(r, 4)], octet = narrow[rng_below(r, 4)];
  const int ranged = dynamic && (octet == QN_U8 || (octet == QN_I8 && rng_below(r, 2)));
  problem_input(r, p, back ? octet : wide != QN_F64 && !dynamic && rng_below(r, 4) == 0 ? QN_I32 : wide, rank, dim);
  p->first[1] = p->n;
  if (!dynamic) {
    int scalar = whole && rng_below(r, 2) ? 0 : rank;
    problem_input(r, p, rng_below(r, 3) ? wide : QN_E8M0, scalar, scales);
    p->first[2] = p->n;
    if ((octet == QN_I8 || octet == QN_U8) && rng_below(r, 2)) problem_input(r, p, octet, scalar, scales);
    p->first[3] = p->n;
  }
  if (back) return;                     /* y is wanted */
  problem_strides(r, problem_add(p, octet, rank, dim), 0);
  p->first[p->op->n_inputs + 1] = p->n;
  if (dynamic) {
    if (!ranged && rng_below(r, 2)) problem_strides(r, problem_add(p, QN_E8M0, rank, scales), 0);
    else problem_wanted(p);
    p->first[3] = p->n;
  }
  if (rng_below(r, 2)) problem_wanted(p);
  if (dynamic) p->first[4] = p->n;
  if (ranged) problem_wanted(p);
  p->first[p->op->n_roles] = p->n;
}

/* Lists of one length, scalars, and outputs: some lists over their inputs, some inferred, some absent. */
static inline void problem_training(rng *r, problem *p)
{
  int n = rng_in(r, 1, 3), f64 = rng_below(r, 4) == 0, velocity = rng_below(r, 2);
  uint32_t dtype[3];
  int rank[3];
  int64_t dim[3][QN_MAX_RANK];
  for (int i = 0; i < n; i++) {
    rank[i] = rng_in(r, 0, 4);
    problem_dims(r, rank[i], dim[i]);
    dtype[i] = f64 ? QN_F64 : problem_floats[rng_in(r, 1, 3)];
  }
  if (p->op->kind == QN_OP_SGD) ((qn_sgd_rule *)p->attr.bytes)->momentum = velocity ? 0.9 : 0;
  if (p->op->kind == QN_OP_RMSPROP) ((qn_rmsprop_rule *)p->attr.bytes)->momentum = velocity ? 0.9 : 0;
  if (p->op->kind == QN_OP_AMP_UPDATE) ((qn_loss_scaling *)p->attr.bytes)->interval = rng_in(r, 1, 3);
  for (uint32_t i = 0; i < p->op->n_roles; i++) {
    const qn_role_info *role = &p->op->role[i];
    int state = role->class_ == 'w', output = i >= p->op->n_inputs, list = role->flags & QN_ROLE_LIST;
    int left_out = strstr(role->name, "velocity") ? !velocity : role->flags & QN_ROLE_OPTIONAL && rng_below(r, 2);
    for (int k = 0; k < (list ? n : 1) && !left_out; k++) {
      if (output) problem_wanted(p);
      else if (list) problem_input(r, p, state ? (f64 ? QN_F64 : QN_F32) : dtype[k], rank[k], dim[k]);
      else if (role->class_ == 'k' && p->op->kind == QN_OP_AMP_UPDATE) problem_add(p, QN_I64, 0, NULL)->align = 8;
      else if (role->class_ == 'k') problem_key(r, p);
      else if (state) problem_add(p, QN_F32, 0, NULL)->align = 4;
      else problem_number(r, p, 0);
    }
    p->first[i + 1] = p->n;
  }
  for (uint32_t i = 0; i < p->op->n_inputs && rng_below(r, 3) == 0; i++)        /* in place */
    for (int k = 0, w = p->op->role[i].paired; w > 0 && k < p->first[w + 1] - p->first[w]; k++) {
      qn_value *x = &p->value[p->first[i] + k], *y = &p->value[p->first[w] + k];
      int zero = (x->flags & QN_VALUE_HOST) != 0;
      for (int d = 0; d < x->rank; d++) zero |= x->stride[d] == 0;
      if (zero || rng_below(r, 3) == 0) continue;
      *y = *x;
      y->over = p->first[i] + k;
    }
}

/* Attention with any of its options, dense, ragged or paged; for a gradient only what it has. */
static inline void problem_attention(rng *r, problem *p)
{
  const int back = p->op->kind == QN_OP_ATTENTION_BACKWARD, f64 = rng_below(r, 4) == 0, ragged = rng_below(r, 3) == 0,
            paged = !back && rng_below(r, 3) == 0, values = rng_below(r, 4), eights = !back && !f64 && rng_below(r, 4) == 0,
            drops = rng_below(r, 4) == 0;
  const int64_t group = rng_in(r, 1, 3), hkv = rng_in(r, 1, 2), h = group * hkv, b = rng_in(r, 1, 3), d = rng_in(r, 1, 5);
  const int64_t sq = rng_below(r, 6), skv = rng_below(r, 6), dv = values ? rng_in(r, 1, 5) : rng_in(r, 1, (int)d), n = rng_in(r, 1, 3);
  const int64_t total = paged ? n * skv : skv;
  const uint32_t wide = f64 ? QN_F64 : QN_F32, narrow = f64 ? QN_F64 : problem_floats[rng_in(r, 1, 3)];
  const uint32_t octets[] = { QN_E4M3, QN_E5M2, QN_I8 };
  qn_attention *a = (qn_attention *)p->attr.bytes;
  a->left = rng_in(r, -1, 3), a->right = rng_in(r, -1, 3), a->align = rng_below(r, 2), a->softcap = rng_below(r, 2) * 1.5;
  a->scale = rng_below(r, 2) * 0.5, a->dropout = drops * 0.25, a->value_size = values ? 0 : dv;
  a->block_q = rng_in(r, 1, 3), a->block_kv = 2;
  const int64_t q[4] = { ragged ? 1 : b, h, sq, d }, k[4] = { paged ? 4 : ragged ? 1 : b, hkv, skv, d }, v[4] = { k[0], hkv, skv, dv },
                y[4] = { q[0], h, sq, dv }, starts = b + 1, table[2] = { b, n };
  const int64_t blocks[4] = { rng_below(r, 2) ? b : 1, h, (sq + a->block_q - 1) / a->block_q, ((total + 1) / 2 + 7) / 8 };
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    const char *name = p->op->role[i].name;
    const int64_t broad[4] = { rng_below(r, 2) ? b : 1, rng_below(r, 2) ? h : 1, rng_below(r, 2) ? sq : 1,
                               rng_below(r, 2) ? total : 1 };
    const int integer = rng_below(r, 2) ? QN_I32 : QN_I64, half = rng_below(r, 2);
    const uint32_t operand = eights && rng_below(r, 2) ? octets[rng_below(r, 3)] : narrow;
    if (!strcmp(name, "q")) problem_input(r, p, operand, 4, q);
    else if (!strcmp(name, "k")) problem_input(r, p, operand, 4, k);
    else if (!strcmp(name, "v") && values) problem_input(r, p, operand, 4, v);
    else if (!strcmp(name, "y") || !strcmp(name, "dy")) problem_input(r, p, f64 ? QN_F64 : problem_floats[rng_in(r, 1, 3)], 4, y);
    else if (!strcmp(name, "lse") || (!strcmp(name, "dlse") && half)) problem_input(r, p, wide, 3, y);
    else if (!strcmp(name, "bias") && half) problem_input(r, p, narrow, 4, broad);
    else if (!strcmp(name, "mask") && half) problem_input(r, p, QN_BOOL, 4, broad);
    else if (!strcmp(name, "blocks") && half) problem_input(r, p, QN_U8, 4, blocks);
    else if (!strcmp(name, "slopes") && half) problem_input(r, p, wide, 1, &h);
    else if (!strcmp(name, "sink") && half) problem_input(r, p, wide, 1, &h);
    else if (!strcmp(name, "q_lengths") && half) problem_input(r, p, (uint32_t)integer, 1, &b);
    else if (!strcmp(name, "kv_lengths") && (half || paged)) problem_input(r, p, (uint32_t)integer, 1, &b);
    else if (!strcmp(name, "q_starts") && ragged) problem_input(r, p, (uint32_t)integer, 1, &starts);
    else if (!strcmp(name, "kv_starts") && ragged && !paged) problem_input(r, p, (uint32_t)integer, 1, &starts);
    else if (!strcmp(name, "pages") && paged) problem_input(r, p, (uint32_t)integer, 2, table);
    else if (strstr(name, "_scale") && half && (values || strcmp(name, "v_scale"))) problem_input(r, p, wide, 0, NULL);
    else if (!strcmp(name, "seed") && drops) problem_key(r, p);
    else if (!strcmp(name, "offset") && drops && half) problem_key(r, p);
    p->first[i + 1] = p->n;
  }
  for (uint32_t i = p->op->n_inputs; i < p->op->n_roles; i++) {
    const char *name = p->op->role[i].name;
    int given = i == p->op->n_inputs || !strcmp(name, "dk") || (!strcmp(name, "dv") ? values : rng_below(r, 2));
    for (uint32_t k = 0; k < p->op->n_inputs && name[0] == 'd' && given; k++)       /* dbias and dsink want bias and sink */
      if (!strcmp(p->op->role[k].name, name + 1)) given = p->first[k] < p->first[k + 1];
    if (given) problem_wanted(p);
    p->first[i + 1] = p->n;
  }
}

/* Merge, rotary, cache. */
static inline void problem_around_attention(rng *r, problem *p)
{
  const int f64 = rng_below(r, 4) == 0;
  const uint32_t wide = f64 ? QN_F64 : QN_F32;
  int64_t x[4], table[2] = { rng_in(r, 1, 9), 0 }, pages[4];
  problem_dims(r, 4, x);
  problem_dims(r, 4, pages);
  pages[1] = x[1], pages[3] = x[3];
  table[1] = rng_in(r, 0, (int)(x[3] / 2));
  const int64_t tokens[2] = { x[0], x[2] };
  for (uint32_t i = 0; i < p->op->n_inputs; i++) {
    const char *name = p->op->role[i].name;
    const uint32_t any = f64 ? QN_F64 : problem_floats[rng_in(r, 1, 3)];
    if (!strcmp(name, "cos") || !strcmp(name, "sin")) problem_input(r, p, any, 2, table);
    else if (!strcmp(name, "positions") ? rng_below(r, 2) : !strcmp(name, "slots"))
      problem_input(r, p, rng_below(r, 2) ? QN_I32 : QN_I64, 2, tokens);
    else if (!strcmp(name, "scale")) { if (rng_below(r, 2)) problem_input(r, p, wide, 0, NULL); }
    else if (!strcmp(name, "cache")) problem_input(r, p, !f64 && rng_below(r, 2) ? QN_E4M3 : any, 4, pages);
    else if (strstr(name, "lse")) problem_input(r, p, wide, 3, x);
    else if (strcmp(name, "positions")) problem_input(r, p, any, 4, x);
    p->first[i + 1] = p->n;
  }
}

/* Lists of tensors with any strides, in place where roles are paired; dim 0 in shares. */
static inline void problem_collective(rng *r, problem *p)
{
  static const uint32_t whole[] = { QN_I8, QN_U8, QN_I32, QN_I64 };
  qn_collective *a = (qn_collective *)p->attr.bytes;
  const uint32_t op = p->op->kind;
  const int n = rng_in(r, 1, 4), reduces = op == QN_OP_ALL_REDUCE || op == QN_OP_REDUCE_SCATTER, floats = rng_below(r, 2);
  const int shares = op == QN_OP_REDUCE_SCATTER || op == QN_OP_ALL_TO_ALL, gathers = op == QN_OP_ALL_GATHER;
  if (shares || gathers) a->ranks = rng_in(r, 1, 4);
  if (op == QN_OP_BROADCAST) a->root = rng_below(r, 4);
  if (op == QN_OP_SEND || op == QN_OP_RECV) a->peer = rng_below(r, 4);
  if (reduces) a->reduction = rng_below(r, 5);
  if (reduces && !floats && a->reduction == QN_JOIN_AVG) a->reduction = QN_JOIN_MAX;
  for (int k = 0; k < n; k++) {
    int64_t dim[QN_MAX_RANK];
    const int rank = rng_in(r, shares || gathers, 4);
    problem_dims(r, rank, dim);
    if (shares) dim[0] *= a->ranks;
    const uint32_t other = reduces || rng_below(r, 2) ? whole[rng_below(r, 4)] : QN_BOOL;
    problem_input(r, p, floats ? problem_floats[rng_below(r, 4)] : other, rank, dim);
  }
  p->first[1] = p->n;
  if (p->op->n_inputs == 2) {
    if (floats && a->reduction <= QN_JOIN_AVG && rng_below(r, 2)) problem_number(r, p, 0);
    p->first[2] = p->n;
  }
  const int lends = p->op->role[0].paired >= 0 && rng_below(r, 2);
  for (int k = 0; k < n; k++) {
    const qn_value x = p->value[k];
    int zero = 0;
    for (int d = 0; d < x.rank; d++) zero |= x.stride[d] == 0;
    problem_wanted(p);
    if (!lends || zero) continue;
    p->value[p->n - 1] = x;
    p->value[p->n - 1].over = k;
  }
  p->first[p->op->n_roles] = p->n;
}

/* An optional output that may take an optional input's memory is wanted if that input is given. */
static inline int problem_wants(rng *r, const problem *p, uint32_t output)
{
  if (output == p->op->n_inputs) return 1;
  if (p->op->kind == QN_OP_CROSS_ENTROPY && output == QN_ROLE_CROSS_ENTROPY_LSE && ((const qn_entropy *)p->attr.bytes)->input) return 0;
  for (uint32_t i = 0; i < p->op->n_inputs; i++)
    if (p->op->role[i].paired == (int32_t)output) return p->first[i] < p->first[i + 1];
  return rng_below(r, 2);
}

#include <kinds/problems.h>

/* Fills p with a random valid problem; its view is ready for qn_graph_make. */
static inline void problem_random(rng *r, const qn_op_info *op, problem *p)
{
  memset(p, 0, sizeof *p);
  p->op = op;
  if (op->attr_bytes) memcpy(p->attr.bytes, op->attr_default, op->attr_bytes);
  problem_of_kind(r, p);
  static const char *const real[] = { "slope", "alpha", "beta", "min", "eps", "momentum", "p", "mean", "deviation", "smoothing" };
  for (int i = 0; i < 10; i++)
    if (op->family != QN_FAMILY_TRAINING && problem_attr(p, real[i]) && rng_below(r, 2))
      *(double *)problem_attr(p, real[i]) = rng_below(r, 5) / 7.0 + (op->family == QN_FAMILY_POOLING);    /* lp's p must be at least 1 */
  const int settled = p->first[op->n_roles] > 0;
  for (uint32_t i = op->n_inputs; i < op->n_roles && !settled; i++) {
    if (!p->first[i + 1] && problem_wants(r, p, i)) problem_wanted(p);
    p->first[i + 1] = p->n;
  }
  int n = 0;
  for (int k = 0; k < p->n; k++)
    if (!(p->value[k].flags & QN_VALUE_HOST)) p->pointer[n++] = k;
  int ins = 0;
  while (ins < n && p->pointer[ins] < p->first[op->n_inputs]) ins++;
  p->node = (qn_node){ .op = op->kind, .n_roles = op->n_roles, .attr = op->attr_bytes ? p->attr.bytes : NULL,
                       .first = p->first, .arg = p->arg };
  p->view = (qn_graph_view){ .struct_size = sizeof p->view, .n_ops = 1, .n_values = (uint32_t)p->n, .n_pointers = (uint32_t)n,
                             .n_ins = (uint32_t)ins, .op = &p->node, .value = p->value, .literal = p->literal,
                             .pointer = p->pointer };
  /* in place, where roles are paired */
  if (op->family == QN_FAMILY_POINTWISE && rng_below(r, 4) == 0) {
    qn_value *x = &p->value[0], *y = &p->value[p->first[op->n_inputs]];
    int zero = 0;
    for (int i = 0; i < x->rank; i++) zero |= x->stride[i] == 0;
    if (!zero && op->role[op->n_inputs].class_ != 'b' && op->role[0].class_ != 'b' && op->kind != QN_OP_CAST) {
      *y = *x;
      y->over = 0;
    }
  }
}
#endif
