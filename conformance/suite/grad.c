/* grad.c -- checks the oracle against its formulas, in f64; no backend is under test.
 *
 * Gradients: every op with a `forward` in the schema is the gradient of sum(dy forward(...)) by the inputs that its outputs are
 * named after. Central differences, h = cbrt(eps): along each element in turn up to 64, else along 12 random directions.
 * Adjoints: for linear ops <A x, dy> = <x, A* dy>; on integers both sides are exact, so they must be equal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* The arguments of an op, in the order of its roles. */
enum { ARGUMENTS = 64 };
struct arguments {
  int n, role[ARGUMENTS];
  struct qc_value *value[ARGUMENTS];
};

static void argue(struct arguments *a, uint32_t role, struct qc_value *v)
{
  if (a->n == ARGUMENTS)
    qc_tap_bail("grad.c: an op of more arguments than its arrays hold");
  a->role[a->n] = (int)role;
  a->value[a->n++] = v;
}

/* An op built by hand. */
struct built {
  struct qc_node node;
  int32_t first[QN_MAX_ROLES + 1], arg[ARGUMENTS];
};

static void build_of(struct built *b, const qn_op_info *op, const void *attr, const struct arguments *a)
{
  memset(b, 0, sizeof *b);
  struct qc_node *n = &b->node;
  n->op = op;
  n->attr = attr;
  n->compute = QN_F64;
  n->node = (qn_node){op->kind, op->family, attr, op->n_roles, op->n_inputs, b->first, b->arg};
  int count = 0;
  for (int r = 0; r < (int)op->n_roles; r++) {
    b->first[r] = count;
    for (; count < a->n && a->role[count] == r; count++) {
      b->arg[count] = count;
      if (r < (int)op->n_inputs) {
        n->in_role[n->n_in] = r;
        n->in[n->n_in++] = a->value[count];
      } else {
        n->out_role[n->n_out] = r;
        n->out[n->n_out++] = a->value[count];
      }
    }
  }
  b->first[op->n_roles] = count;
  n->twin = qc_twin_make(n);
}

/* One value for each role, or NULL. */
static void build(struct built *b, const qn_op_info *op, const void *attr, struct qc_value *const by_role[])
{
  struct arguments a = {0};
  for (uint32_t r = 0; r < op->n_roles; r++)
    if (by_role[r])
      argue(&a, r, by_role[r]);
  build_of(b, op, attr, &a);
}

static const qn_value random_key = {.dtype = QN_I64, .over = -1};       /* the key of a backward op that is given none: 0 */

static struct qc_value *new_value(const qn_value *like)
{
  struct qc_value *v = qc_alloc(sizeof *v);
  v->q = *like;
  v->q.flags &= QN_VALUE_HOST;
  v->n = qc_elements(like);
  if (qc_is_float(like->dtype)) {
    v->q.dtype = QN_F64;
    v->twin = v->y = qc_alloc((size_t)v->n * 8 + 8);
  } else {
    v->twin = qc_alloc((size_t)v->n * 8 + 8);
  }
  return v;
}

static void free_value(struct qc_value *v)
{
  if (v)
    free(v->twin);
  free(v);
}

static double dot(const double *a, const double *b, int64_t n, double *magnitude)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isinf(a[i]) || isinf(b[i]))     /* a window wholly in padding has no gradient */
      continue;
    sum += a[i] * b[i];
    if (magnitude)
      *magnitude += fabs(a[i] * b[i]);
  }
  return sum;
}

static void fill(struct qc_value *v, int tensor, bool integer, uint64_t seed)
{
  for (int64_t i = 0; !v->y && i < v->n; i++) {         /* indices, some of them out of range */
    int64_t place = (int64_t)(qc_hash(seed, (uint64_t)tensor, (uint64_t)i) % 6) - 1;
    memcpy((char *)v->twin + (size_t)i * qn_dtype_bytes(v->q.dtype), &place, qn_dtype_bytes(v->q.dtype));
  }
  for (int64_t i = 0; v->y && i < v->n; i++) {
    uint64_t h = qc_hash(seed, (uint64_t)tensor, (uint64_t)i);
    v->y[i] = integer ? (double)(h % 7) - 3 : ((double)(h >> 11) * 0x1p-53 - 0.5) * 8;
    if (!integer && fabs(v->y[i] * 2 - nearbyint(v->y[i] * 2)) < 1e-3)
      v->y[i] += 1e-2;                  /* away from kinks, which are at multiples of 1/2 */
  }
}

/* ---- finite differences ------------------------------------------------------------------- */

static int role_index(const qn_op_info *op, const char *name)
{
  for (uint32_t r = 0; r < op->n_roles; r++)
    if (!strcmp(op->role[r].name, name))
      return (int)r;
  return -1;
}

/* The outputs of a forward op that its gradient is given gradients by. */
struct weighted {
  int n;
  struct qc_value *y[QN_MAX_ROLES], *dy[QN_MAX_ROLES];
};

/* One direction: true if the difference quotient agrees with the gradient. */
static bool agrees(struct built *f, struct qc_value *wrt, const struct weighted *sums, const double *grad, const double *direction,
                   double *numeric, double *analytic)
{
  const double h = 6.0554544523933429e-6;       /* cbrt(2^-52) */
  double *kept = qc_alloc((size_t)wrt->n * 8 + 8), magnitude = 0, scale = 0, side[2] = {0, 0};
  memcpy(kept, wrt->y, (size_t)wrt->n * 8);
  for (int s = 0; s < 2; s++) {
    for (int64_t i = 0; i < wrt->n; i++)
      wrt->y[i] = kept[i] + (s ? -h : h) * direction[i];
    qc_twin_run(f->node.twin, NULL, NULL);
    for (int k = 0; k < sums->n; k++)
      side[s] += dot(sums->dy[k]->y, sums->y[k]->y, sums->y[k]->n, &scale);
  }
  memcpy(wrt->y, kept, (size_t)wrt->n * 8);
  free(kept);
  *numeric = (side[0] - side[1]) / (2 * h);
  *analytic = dot(grad, direction, wrt->n, &magnitude);
  return fabs(*numeric - *analytic) <= 1e-6 * (magnitude + scale) + 1e-9;
}

static bool compare_directions(struct built *f, struct qc_value *wrt, const struct weighted *sums, const double *grad)
{
  double *direction = qc_alloc((size_t)wrt->n * 8 + 8);
  bool ok = true;
  int64_t n = wrt->n <= 64 ? wrt->n : 12;
  for (int64_t d = 0; d < n && ok; d++) {
    for (int64_t i = 0; i < wrt->n; i++)
      direction[i] = wrt->n <= 64 ? i == d : (qc_hash(3, (uint64_t)d, (uint64_t)i) & 1 ? 1 : -1);
    double numeric, analytic;
    ok = agrees(f, wrt, sums, grad, direction, &numeric, &analytic);
    if (!ok)
      qc_say_fail("verdict", "direction %lld: finite difference %.9g, gradient %.9g", (long long)d, numeric, analytic);
  }
  free(direction);
  return ok;
}

/* The i-th value of a role among the arguments of an op; NULL: absent. prefix: "d" for the role called d and the name. */
static struct qc_value *find(const qn_op_info *op, const struct arguments *a, const char *prefix, const char *name, int i)
{
  const size_t n = strlen(prefix);
  for (int k = 0; k < a->n; k++) {
    const char *role = op->role[a->role[k]].name;
    if (!strncmp(role, prefix, n) && !strcmp(role + n, name) && i-- == 0)
      return a->value[k];
  }
  return NULL;
}

static struct arguments arguments_of(const struct qc_node *n)
{
  struct arguments a = {0};
  for (int i = 0; i < n->n_in; i++)
    argue(&a, (uint32_t)n->in_role[i], n->in[i]);
  for (int i = 0; i < n->n_out; i++)
    argue(&a, (uint32_t)n->out_role[i], n->out[i]);
  return a;
}

/* Values for the forward op: what the gradient is given, by name, and what it is to be by: that has the gradient's dims, which broadcasting
 * may have extended, and may be absent among what is given (a bias). */
static struct arguments forward_values(const qn_op_info *forward, const qn_op_info *op, const struct arguments *back, const qn_value *dy,
                                       const char *wrt)
{
  struct arguments a = {0};
  struct qc_value *by_role[QN_MAX_ROLES] = {0};
  for (uint32_t r = 0; r < forward->n_roles; r++) {
    const char *name = forward->role[r].name;
    for (int i = 0;; i++) {
      const struct qc_value *same = find(op, back, "", name, i), *by = strcmp(name, wrt) ? same : find(op, back, "d", name, i);
      const qn_value *like = i == 0 && r == forward->n_inputs ? dy : by ? &by->q : NULL;
      if (!like && i == 0 && forward->role[r].class_ == 'k' && !(forward->role[r].flags & QN_ROLE_OPTIONAL))
        like = &random_key;
      if (!like)
        break;
      struct qc_value *v = new_value(like);
      if (same && same->q.flags & QN_VALUE_HOST)
        v->literal = same->literal;
      else if (!(forward->family == QN_FAMILY_ATTENTION && qc_fill_places(v, name, qc_places(forward, by_role, name), qc_opt.seed)))
        fill(v, (int)r + 100 * i, false, qc_opt.seed);
      for (int64_t k = 0; v->y && k < v->n && forward->family == QN_FAMILY_RECURRENT; k++)
        v->y[k] /= 8;                   /* gates that are open halfway */
      if (i == 0)
        by_role[r] = v;
      argue(&a, r, v);
    }
  }
  return a;
}

/* Output o of the backward op: the gradient by the forward input that it is named after. */
static bool gradient_agrees(const struct qc_node *node, int o)
{
  const qn_op_info *op = node->op, *forward = qn_op_find(op->forward);
  const struct arguments all = arguments_of(node);
  bool broadcasts = op->family == QN_FAMILY_POINTWISE;          /* then one element of dy may serve many: here it is expanded */
  const int at = node->n_in + o;                                /* of the output among the arguments */
  int index = 0;
  while (index < o && node->out_role[o - index - 1] == node->out_role[o])
    index++;
  const char *output = op->role[all.role[at]].name;             /* "dx": by x */
  const qn_value *dy = broadcasts ? &node->out[o]->q : &qc_role(node, "dy")->q;
  struct arguments f_args = forward_values(forward, op, &all, dy, output + 1), b_args = {0};
  struct weighted sums = {0};
  struct qc_value *own[ARGUMENTS] = {0};
  for (int k = 0; k < all.n; k++) {
    const qn_role_info *role = &op->role[all.role[k]];
    struct qc_value *v, *y = role->name[0] == 'd' && k < node->n_in ? find(forward, &f_args, "", role->name + 1, 0) : NULL;
    if (!strcmp(role->name, "dy"))
      for (int i = 0; i < f_args.n && (!y || f_args.role[i] <= (int)forward->n_inputs); i++)
        y = f_args.role[i] == (int)forward->n_inputs ? f_args.value[i] : y;
    if (k >= node->n_in || y) {
      v = own[k] = new_value(y ? &y->q : &all.value[k]->q);
      if (y) {
        fill(v, 50 + sums.n, false, qc_opt.seed);
        sums.y[sums.n] = y;
        sums.dy[sums.n++] = v;
      }
    } else {
      int i = 0;
      while (i < k && all.role[k - i - 1] == all.role[k])
        i++;
      v = find(forward, &f_args, "", role->name, i);
    }
    if (v)
      argue(&b_args, (uint32_t)all.role[k], v);
  }
  struct built f, b;
  build_of(&f, forward, node->attr, &f_args);
  build_of(&b, op, node->attr, &b_args);
  qc_twin_run(f.node.twin, NULL, NULL);         /* y, indices, statistics */
  for (int k = 0; k < sums.n; k++)
    for (int64_t i = 0; i < sums.y[k]->n; i++)
      if (isinf(sums.y[k]->y[i]))
        sums.dy[k]->y[i] = 0;
  qc_twin_run(b.node.twin, NULL, NULL);
  bool ok = compare_directions(&f, find(forward, &f_args, "", output + 1, index), &sums, own[at]->y);
  if (!ok)
    qc_say_fail("output", "%s", output);
  qc_twin_free(f.node.twin);
  qc_twin_free(b.node.twin);
  for (int k = 0; k < f_args.n; k++)
    free_value(f_args.value[k]);
  for (int k = 0; k < all.n; k++)
    free_value(own[k]);
  return ok;
}

int qc_check_gradient(const struct qc_item *item)
{
  char why[512];
  struct qc_problem *p = qc_problem_make(item->line, why, sizeof why);
  if (!p) {
    qc_say_fail("why", "\"%s\"", why);
    return QC_FAIL;
  }
  bool ok = true;
  for (int o = 0; o < p->node[0].n_out; o++)
    ok &= gradient_agrees(&p->node[0], o);
  qc_problem_free(p);
  return ok ? QC_OK : QC_FAIL;
}

/* ---- adjoints ----------------------------------------------------------------------------- */

static bool equal(const char *what, double a, double b, bool exact)
{
  if (a == b || (!exact && fabs(a - b) <= 1e-12 * (fabs(a) + fabs(b) + 1)))
    return true;
  qc_say_fail("verdict", "%s: %.17g and %.17g", what, a, b);
  return false;
}

/* kind(inputs...) into a new value of `like`'s dims, and its dot product with other. */
static double dot_with(uint32_t kind, const void *attr, const char *const names[], struct qc_value *const values[],
                       const qn_value *like, const double *other)
{
  const qn_op_info *op = qn_op_find(kind);
  struct qc_value *by_role[QN_MAX_ROLES] = {0}, *out = new_value(like);
  for (int i = 0; names[i]; i++)
    by_role[role_index(op, names[i])] = values[i];
  by_role[op->n_inputs] = out;
  struct built b;
  build(&b, op, attr, by_role);
  qc_twin_run(b.node.twin, NULL, NULL);
  double sum = dot(out->y, other, out->n, NULL);
  qc_twin_free(b.node.twin);
  free_value(out);
  return sum;
}

/* <conv(x, w), dy> = <x, backward_data(dy, w)> = <w, backward_filter(x, dy)> */
static bool conv_adjoint(struct qc_node *n, struct qc_value *x, struct qc_value *w, struct qc_value *dy)
{
  static const char *const forward[] = {"x", "w", NULL}, *const data[] = {"dy", "w", NULL}, *const filter[] = {"x", "dy", NULL};
  double a = dot_with(QN_OP_CONV_FORWARD, n->attr, forward, (struct qc_value *[]){x, w}, &dy->q, dy->y);
  double b = dot_with(QN_OP_CONV_BACKWARD_DATA, n->attr, data, (struct qc_value *[]){dy, w}, &x->q, x->y);
  double c = dot_with(QN_OP_CONV_BACKWARD_FILTER, n->attr, filter, (struct qc_value *[]){x, dy}, &w->q, w->y);
  return equal("<conv(x,w),dy> and <x,backward_data(dy,w)>", a, b, true) &&
         equal("<conv(x,w),dy> and <w,backward_filter(x,dy)>", a, c, true);
}

static struct qc_value *transposed(const struct qc_value *v)
{
  struct qc_value *t = new_value(&v->q);
  int r = v->q.rank;
  int64_t rows = v->q.dim[r - 2], cols = v->q.dim[r - 1], plane = rows * cols;
  t->q.dim[r - 2] = cols;
  t->q.dim[r - 1] = rows;
  for (int64_t i = 0; i < v->n; i++)
    t->y[i / plane * plane + i % cols * rows + i % plane / cols] = v->y[i];
  return t;
}

/* <a b, dy> = <a, dy b'> = <b, a' dy>, batch dims alike */
static bool matmul_adjoint(struct qc_value *a, struct qc_value *b, struct qc_value *dy)
{
  static const char *const names[] = {"a", "b", NULL};
  struct qc_value *at = transposed(a), *bt = transposed(b);
  double forward = dot_with(QN_OP_MATMUL, NULL, names, (struct qc_value *[]){a, b}, &dy->q, dy->y);
  double by_a = dot_with(QN_OP_MATMUL, NULL, names, (struct qc_value *[]){dy, bt}, &a->q, a->y);
  double by_b = dot_with(QN_OP_MATMUL, NULL, names, (struct qc_value *[]){at, dy}, &b->q, b->y);
  free_value(at);
  free_value(bt);
  return equal("<ab,dy> and <a,dy b'>", forward, by_a, true) && equal("<ab,dy> and <b,a'dy>", forward, by_b, true);
}

/* <pool(x), dy> = <x, backward(dy)>; for max with the forward's indices */
static bool pool_adjoint(struct qc_node *n, struct qc_value *x, struct qc_value *dy)
{
  static const char *const forward[] = {"x", NULL}, *const max[] = {"dy", "indices", NULL}, *const average[] = {"dy", NULL};
  if (n->op->kind == QN_OP_POOL_AVERAGE) {
    double a = dot_with(QN_OP_POOL_AVERAGE, n->attr, forward, (struct qc_value *[]){x}, &dy->q, dy->y);
    double b = dot_with(QN_OP_POOL_AVERAGE_BACKWARD, n->attr, average, (struct qc_value *[]){dy}, &x->q, x->y);
    return equal("<average(x),dy> and <x,backward(dy)>", a, b, false);
  }
  qn_value place = dy->q;
  place.dtype = QN_I64;
  struct qc_value *indices = new_value(&place), *y = new_value(&dy->q), *by_role[QN_MAX_ROLES] = {x, y, indices};
  struct built b;
  build(&b, n->op, n->attr, by_role);
  qc_twin_run(b.node.twin, NULL, NULL);
  qc_twin_free(b.node.twin);
  double a = dot(y->y, dy->y, y->n, NULL);
  double c = dot_with(QN_OP_POOL_MAX_BACKWARD, n->attr, max, (struct qc_value *[]){dy, indices}, &x->q, x->y);
  free_value(indices);
  free_value(y);
  return equal("<max(x),dy> and <x,backward(dy,indices)>", a, c, true);
}

int qc_check_adjoint(const struct qc_item *item)
{
  char why[512];
  struct qc_problem *p = qc_problem_make(item->line, why, sizeof why);
  if (!p) {
    qc_say_fail("why", "\"%s\"", why);
    return QC_FAIL;
  }
  struct qc_node *n = &p->node[0];
  struct qc_value *x = new_value(&n->in[0]->q), *w = n->n_in > 1 ? new_value(&n->in[1]->q) : NULL;
  struct qc_value *dy = new_value(&n->out[0]->q);
  bool ok = true;
  fill(x, 1, true, qc_opt.seed);
  fill(dy, 2, true, qc_opt.seed);
  if (w)
    fill(w, 3, true, qc_opt.seed);
  switch (n->op->kind) {
  case QN_OP_CONV_FORWARD: ok = conv_adjoint(n, x, w, dy); break;
  case QN_OP_MATMUL:       ok = matmul_adjoint(x, w, dy); break;
  default:                 ok = pool_adjoint(n, x, dy);
  }
  free_value(x);
  free_value(w);
  free_value(dy);
  qc_problem_free(p);
  return ok ? QC_OK : QC_FAIL;
}
