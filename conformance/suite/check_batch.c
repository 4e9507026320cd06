/* check_batch.c -- the trait `batch_invariant`: the last row of a batch, computed alone, has the same bits as among the
 * others. A row is an image, a matmul's row of a and y, a pointwise slice: whatever the op treats as independent. */
#include <stdlib.h>
#include <string.h>
#include "conform.h"

/* ---- which dim counts rows ------------------------------------------------------------------ */

static bool is(const char *role, const char *name) { return !strcmp(role, name); }

/* The first dim of every tensor. */
int qc_rows_first(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  (void)n, (void)v, (void)role;
  return 0;
}

/* The first dim of what has as many rows as the result. */
int qc_rows_alike(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  (void)role;
  return v->q.dim[0] == n->out[0]->q.dim[0] ? 0 : QC_EACH_ROW;
}

/* The first dim, unless the op works along it. */
int qc_rows_axis(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  (void)v, (void)role;
  const int rank = n->out[0]->q.rank;
  int64_t axis = qc_attr_int(n->op, n->attr, "axis", 0, 0, 0);
  return axis == 0 || rank < 2 || axis == -rank ? QC_NO_ROWS : 0;
}

int qc_rows_reduced(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  (void)v, (void)role;
  uint64_t mask = ((const qn_axes *)n->attr)->mask;
  return mask == 0 || mask & 1 ? QC_NO_ROWS : 0;
}

int qc_rows_conv(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  (void)n, (void)v;
  return is(role, "w") || is(role, "bias") ? QC_EACH_ROW : 0;
}

int qc_rows_matmul(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  const qn_value *y = &n->out[0]->q;
  if (y->rank > 2 && y->dim[0] > 1)
    return v->q.rank == y->rank && v->q.dim[0] == y->dim[0] ? 0 : QC_EACH_ROW;
  return is(role, "b") || is(role, "bias") || v->q.dim[v->q.rank - 2] == 1 ? QC_EACH_ROW : v->q.rank - 2;
}

/* If reduced, rows are added up. */
int qc_rows_loss(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  const qn_entropy *a = n->attr;
  if (a->axis == 0 || n->out[0]->q.rank < 2 || a->reduction != QN_REDUCTION_NONE) return QC_NO_ROWS;
  return is(role, "weights") ? QC_EACH_ROW : qc_rows_alike(n, v, role);
}

int qc_rows_ctc(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  (void)role;
  return ((const qn_ctc *)n->attr)->reduction != QN_REDUCTION_NONE ? QC_NO_ROWS : v->q.rank == 3;
}

/* dscale and dshift add up over the rows that share them. */
int qc_rows_norm(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  return ((const qn_norm *)n->attr)->mask & 1 ? QC_NO_ROWS : qc_rows_alike(n, v, role);
}

/* Rows are sequences; what has another first dim, or 1 for all, belongs to each. */
int qc_rows_attention(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  static const char *const none[] = {"q_starts", "kv_starts", "pages", "slots", "dbias", "dsink", "amax", "cos", "sin"};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (is(role, none[i]))
      return i < 7 ? QC_NO_ROWS : QC_EACH_ROW;
  if (n->op->kind == QN_OP_ATTENTION_FORWARD || n->op->kind == QN_OP_ATTENTION_BACKWARD)
    if (((const qn_attention *)n->attr)->dropout > 0)
      return QC_NO_ROWS;                /* draws by the sequence's number */
  return v->q.dim[0] == n->out[0]->q.dim[0] && v->q.rank != 1 ? 0 : is(role, "q_lengths") || is(role, "kv_lengths") ? 0 : QC_EACH_ROW;
}

/* Dropout counts elements of the whole batch, weights' gradients add up over it. */
int qc_rows_recurrent(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  if (n->op->kind == QN_OP_RNN_BACKWARD || ((const qn_rnn *)n->attr)->dropout > 0)
    return QC_NO_ROWS;
  return is(role, "lengths") ? 0 : v->q.rank < 3 ? QC_EACH_ROW : v->q.rank - 2;
}

static int batch_dim(const struct qc_node *n, const struct qc_value *v, const char *role)
{
  return v->q.rank ? qc_rows(n, v, role) : QC_EACH_ROW;
}

/* ---- the last row alone --------------------------------------------------------------------- */

bool qc_has_rows(const struct qc_problem *p)
{
  const struct qc_node *n = &p->node[0];
  bool has = false;
  for (int i = 0; p->view->n_ops == 1 && i < n->n_in + n->n_out; i++) {
    const struct qc_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    int dim = batch_dim(n, v, n->op->role[i < n->n_in ? n->in_role[i] : n->out_role[i - n->n_in]].name);
    if (dim == QC_NO_ROWS)
      return false;
    has |= dim >= 0;
  }
  return has;
}

/* Are the rows consecutive, without gaps, each laid out as it would be alone? And no parameter ambiguous between shared and per row? */
bool qc_rows_apart(const struct qc_problem *p)
{
  const struct qc_node *n = &p->node[0];
  bool rows = false;
  for (int i = 0; i < n->n_in + n->n_out; i++) {
    const struct qc_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    const char *role = n->op->role[i < n->n_in ? n->in_role[i] : n->out_role[i - n->n_in]].name;
    const int dim = batch_dim(n, v, role);
    if (dim == QC_NO_ROWS)
      return false;
    if (dim < 0 || v->q.dim[dim] < 2)
      continue;
    rows = true;
    if (n->op->family == QN_FAMILY_NORMALIZATION && (!strcmp(role, "scale") || !strcmp(role, "shift")))
      return false;
    int64_t row = 1;                    /* span of a row */
    for (int k = 0; k < v->q.rank; k++)
      row += k == dim ? 0 : (v->q.dim[k] - 1) * v->q.stride[k];
    if (v->q.stride[dim] != row)
      return false;
  }
  return rows;
}

/* The last index along `dim` of packed elements, packed. */
static void last_slice(const qn_value *q, int dim, const char *from, char *to)
{
  size_t size = qn_dtype_bytes(q->dtype), inner = size;
  int64_t outer = 1;
  for (int k = 0; k < q->rank; k++) {
    if (k < dim)
      outer *= q->dim[k];
    if (k > dim)
      inner *= (size_t)q->dim[k];
  }
  for (int64_t o = 0; o < outer; o++)
    memcpy(to + (size_t)o * inner, from + ((size_t)(o + 1) * (size_t)q->dim[dim] - 1) * inner, inner);
}

/* Do all outputs with rows have the bits of the last row of `all`, the results of p? dim: of p's inputs, then outputs. */
static bool same_rows(const struct qc_problem *p, const struct qc_problem *one, const int *dim, void *const *all, void *const *alone,
                      char *why, size_t bytes)
{
  const struct qc_node *n = &p->node[0];
  bool same = true;
  for (int o = 0; o < n->n_out && same; o++) {
    const struct qc_value *y = one->node[0].out[o];
    const size_t size = (size_t)y->n * qn_dtype_bytes(y->q.dtype);
    uint32_t at = one->view->n_ins;
    if (dim[n->n_in + o] < 0)
      continue;
    while (&one->value[one->view->pointer[at]] != y)
      at++;
    char *want = qc_alloc(size + 1);
    last_slice(&n->out[o]->q, dim[n->n_in + o], all[at], want);
    same = !memcmp(want, alone[at], size);
    snprintf(why, bytes, "%s: its last row alone has other bits than among the others", y->name);
    free(want);
  }
  return same;
}

enum qc_rows qc_check_batch(const struct qc_engine *e, const char *math, const struct qc_problem *p, void *const *raw, char *why,
                            size_t bytes)
{
  const struct qc_node *n = &p->node[0];
  int dim[64 + 64];
  bool rows = false, alike = true;      /* alike: a row alone has the layout that it has among the others, and rows do not interleave */
  if (!qc_has_rows(p))
    return QC_ROWS_UNSEEN;
  struct qc_draft *d = qc_draft_of(p->graph);
  for (int i = 0; i < n->n_in + n->n_out; i++) {
    const struct qc_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
    int role = i < n->n_in ? n->in_role[i] : n->out_role[i - n->n_in];
    dim[i] = batch_dim(n, v, n->op->role[role].name);
    if (dim[i] >= 0) {
      alike &= qc_steps_apart(&v->q) || v->q.stride[dim[i]] == 0;
      rows |= d->value[v - p->value].dim[dim[i]] > 1;
      d->value[v - p->value].dim[dim[i]] = 1;
    }
  }
  char *lines = rows && alike ? qc_draft_text(d) : NULL;
  qc_draft_free(d);
  struct qc_problem *one = lines ? qc_problem_make(lines, why, bytes) : NULL;
  free(lines);
  enum qc_rows result = QC_ROWS_UNSEEN;
  qn_plan *plan;
  qn_status status;
  if (one && qc_plan_pinned(e, math, one->graph, &plan, &status)) {
    void *results[QC_MAX_POINTERS];
    qc_results_make(one, results);
    for (int i = 0; i < n->n_in; i++) {
      struct qc_value *to = one->node[0].in[i];
      if (dim[i] >= 0)
        last_slice(&n->in[i]->q, dim[i], n->in[i]->raw, to->raw);
      else
        memcpy(to->raw, n->in[i]->raw, (size_t)to->n * qn_dtype_bytes(to->q.dtype));
    }
    bool same = !qc_execute(plan, one, QC_AT_END, false, 5, results, why, bytes) && same_rows(p, one, dim, raw, results, why, bytes);
    result = same ? QC_ROWS_SAME : QC_ROWS_DIFFER;
    qc_results_free(results);
    qn_plan_destroy(plan);
  }
  qc_problem_free(one);
  return result;
}
