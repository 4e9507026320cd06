/* infer_loss.c -- losses: rows of logits with a label each; samples with frames of logits and a label sequence. */
#include <string.h>
#include "problem.h"

/* Results are f64 for an f64 problem, else f32. */
static uint32_t result_of(const qn_value *x) { return x->dtype == QN_F64 ? QN_F64 : QN_F32; }

/* A result, or a forward result that the gradient takes. */
static qn_status settle_result(const qn__problem *p, uint32_t role, const qn_value *x, int rank, const int64_t *dim)
{
  qn_status status = qn__dtype_in(p, role, QN__BIT(result_of(x)));
  return status ? status : qn__settle(p, role, result_of(x), rank, dim);
}

static qn_status settle_gradient(const qn__problem *p, uint32_t role, const qn_value *x)
{
  qn_status status = qn__dtype_in(p, role, qn__kin(x->dtype));
  return status ? status : qn__settle(p, role, x->dtype, x->rank, x->dim);
}

static const int64_t one[QN_MAX_RANK] = { 1, 1, 1, 1, 1, 1, 1, 1 };

/* ---- cross-entropy ------------------------------------------------------------------------- */

/* The forward's lse and count: present where this gradient, or forward op, wants them. */
static qn_status check_saved(const qn__problem *p, bool backward, uint32_t lse, uint32_t count)
{
  const qn_entropy *a = p->attr;
  if (a->input == QN_LOG_PROBABILITIES && qn__arg(p, lse)) return qn__refuse(p, "lse", "is given; only logits have one");
  if (backward && a->input == QN_LOGITS && !qn__arg(p, lse)) return qn__refuse(p, "lse", "is missing; the gradient by logits wants it");
  if (backward && a->reduction == QN_REDUCTION_MEAN && !qn__arg(p, count))
    return qn__refuse(p, "count", "is missing; the gradient of a mean wants it");
  return QN_OK;
}

/* What has an element for each row, or one for each class or in all. */
static qn_status settle_rows(const qn__problem *p, const qn_value *x, uint32_t weights, uint32_t loss, uint32_t lse, uint32_t count)
{
  const qn_entropy *a = p->attr;
  int64_t row[QN_MAX_RANK];
  memcpy(row, x->dim, sizeof row);
  row[a->axis] = 1;
  qn_status status = settle_result(p, weights, x, 1, &x->dim[a->axis]);
  if (status) return status;
  if ((status = settle_result(p, loss, x, x->rank, a->reduction == QN_REDUCTION_NONE ? row : one))) return status;
  if ((status = settle_result(p, lse, x, x->rank, row))) return status;
  return settle_result(p, count, x, x->rank, one);
}

/* The gradient by probabilities, which it has no need of. */
static qn_status by_probabilities(const qn__problem *p)
{
  enum { LSE = QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_LSE, COUNT = QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_COUNT };
  const qn_value *x = qn__arg(p, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_X);
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &((qn_entropy *)p->attr)->axis, x->rank);
  if (status) return status;
  if ((status = check_saved(p, true, LSE, COUNT))) return status;
  if ((status = settle_rows(p, x, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_WEIGHTS, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DY,
                            LSE, COUNT)))
    return status;
  return settle_gradient(p, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DPROBABILITIES, x);
}

static qn_status cross_entropy(const qn__problem *p)
{
  static const struct roles { uint32_t x, labels, probabilities, weights, loss, lse, count; } roles[2] = {  /* in the gradient dy is loss */
    { QN_ROLE_CROSS_ENTROPY_X, QN_ROLE_CROSS_ENTROPY_LABELS, QN_ROLE_CROSS_ENTROPY_PROBABILITIES, QN_ROLE_CROSS_ENTROPY_WEIGHTS,
      QN_ROLE_CROSS_ENTROPY_LOSS, QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT },
    { QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES,
      QN_ROLE_CROSS_ENTROPY_BACKWARD_WEIGHTS, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY, QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE,
      QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT },
  };
  bool backward = p->op->kind == QN_OP_CROSS_ENTROPY_BACKWARD;
  qn_entropy *a = p->attr;
  const struct roles *r = &roles[backward];
  const qn_value *x = qn__arg(p, r->x);
  if (x->rank < 1) return qn__refuse(p, "x", "rank is 0; must be at least 1");
  qn_status status = qn__settle_axis(p, &a->axis, x->rank);
  if (status) return status;
  if (!qn__arg(p, r->labels) && !qn__arg(p, r->probabilities))
    return qn__refuse(p, "labels", "is missing, and so is probabilities; wants one");
  if (qn__arg(p, r->labels) && qn__arg(p, r->probabilities)) return qn__refuse(p, "probabilities", "is given beside labels; wants one");
  if ((status = check_saved(p, backward, r->lse, r->count))) return status;

  int64_t row[QN_MAX_RANK];
  memcpy(row, x->dim, sizeof row);
  row[a->axis] = 1;
  if ((status = qn__settle(p, r->labels, QN_I32, x->rank, row))) return status;
  if ((status = qn__dtype_in(p, r->probabilities, qn__kin(x->dtype)))) return status;
  if ((status = qn__settle(p, r->probabilities, x->dtype, x->rank, x->dim))) return status;
  if ((status = settle_rows(p, x, r->weights, r->loss, r->lse, r->count))) return status;
  return backward ? settle_gradient(p, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX, x) : QN_OK;
}

/* ---- connectionist temporal classification -------------------------------------------------- */

static qn_status ctc(const qn__problem *p)
{
  static const struct roles { uint32_t x, labels, x_lengths, label_lengths, loss, lse; } roles[2] = {
    { QN_ROLE_CTC_LOSS_X, QN_ROLE_CTC_LOSS_LABELS, QN_ROLE_CTC_LOSS_X_LENGTHS, QN_ROLE_CTC_LOSS_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_LOSS,
      QN_ROLE_CTC_LOSS_LSE },
    { QN_ROLE_CTC_LOSS_BACKWARD_X, QN_ROLE_CTC_LOSS_BACKWARD_LABELS, QN_ROLE_CTC_LOSS_BACKWARD_X_LENGTHS,
      QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_BACKWARD_DY, QN_ROLE_CTC_LOSS_BACKWARD_LSE },
  };
  bool backward = p->op->kind == QN_OP_CTC_LOSS_BACKWARD;
  const qn_ctc *a = p->attr;
  const struct roles *r = &roles[backward];
  const qn_value *x = qn__arg(p, r->x), *labels = qn__arg(p, r->labels);
  if (x->rank != 3) return qn__refuse(p, "x", "rank is %d; must be 3: frames, samples, classes", x->rank);
  if (labels->rank != 2) return qn__refuse(p, "labels", "rank is %d; must be 2: samples, labels of each", labels->rank);
  if (a->blank < 0 || a->blank >= x->dim[2])
    return qn__refuse(p, "blank", "is %lld; must be one of x's %lld classes", (long long)a->blank, (long long)x->dim[2]);

  int64_t samples[2] = { x->dim[1], labels->dim[1] }, frames[3] = { x->dim[0], x->dim[1], 1 };
  qn_status status = qn__settle(p, r->labels, QN_I32, 2, samples);
  if (status) return status;
  if ((status = qn__settle(p, r->x_lengths, QN_I32, 1, samples))) return status;
  if ((status = qn__settle(p, r->label_lengths, QN_I32, 1, samples))) return status;
  if ((status = settle_result(p, r->loss, x, 1, a->reduction == QN_REDUCTION_NONE ? samples : one))) return status;
  if ((status = settle_result(p, r->lse, x, 3, frames))) return status;
  return backward ? settle_gradient(p, QN_ROLE_CTC_LOSS_BACKWARD_DX, x) : QN_OK;
}

qn_status qn__infer_loss(const qn__problem *p)
{
  switch (p->op->kind) {
  case QN_OP_CTC_LOSS: case QN_OP_CTC_LOSS_BACKWARD: return ctc(p);
  case QN_OP_CROSS_ENTROPY_BACKWARD_PROBABILITIES: return by_probabilities(p);
  default: return cross_entropy(p);
  }
}
