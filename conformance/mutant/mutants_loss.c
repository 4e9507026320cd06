/* mutants_loss.c -- bugs of losses: which rows count, what smoothing takes, where a label points; what frames may spell. */
#include <math.h>
#include "mutant.h"

static qn_entropy *attributes(struct mut_kept *k) { return (qn_entropy *)(void *)k->attr; }
static const qn_entropy *entropy(const struct mut_call *c) { return (const qn_entropy *)(const void *)c->k->original; }

static const qn_value *part(const struct mut_call *c, uint32_t role, void **p)
{
  const qn_value *v = mut_value(c->k, role);
  *p = v ? mut_pointer(c, role) : NULL;
  return v;
}

/* The mean divides by all rows, ignored ones too. */
void ls_mean_over_all(struct mut_call *c)
{
  void *pl, *p;
  const qn_value *labels = part(c, QN_ROLE_CROSS_ENTROPY_LABELS, &pl), *loss = part(c, QN_ROLE_CROSS_ENTROPY_LOSS, &p);
  if (!labels)
    return;
  double rows = (double)qn_elements(labels), count = 0;
  for (int64_t i = 0; i < qn_elements(labels); i++)
    count += (int64_t)mut_get(labels, pl, i) != entropy(c)->ignore;
  if (entropy(c)->reduction == QN_REDUCTION_MEAN && rows > 0)
    mut_put(loss, p, 0, mut_get(loss, p, 0) * count / rows);
}

/* The mean divides by the number of rows that count, not by the weights of their labels. */
void ls_mean_unweighted(struct mut_call *c)
{
  void *pl, *pw, *p;
  const qn_value *labels = part(c, QN_ROLE_CROSS_ENTROPY_LABELS, &pl), *loss = part(c, QN_ROLE_CROSS_ENTROPY_LOSS, &p);
  const qn_value *weights = part(c, QN_ROLE_CROSS_ENTROPY_WEIGHTS, &pw);
  double sum = 0, count = 0;
  for (int64_t i = 0; labels && weights && i < qn_elements(labels); i++) {
    int64_t label = (int64_t)mut_get(labels, pl, i);
    if (label == entropy(c)->ignore)
      continue;
    sum += label >= 0 && label < weights->dim[0] ? mut_get(weights, pw, label) : 1;
    count++;
  }
  if (entropy(c)->reduction == QN_REDUCTION_MEAN && count > 0)
    mut_put(loss, p, 0, mut_get(loss, p, 0) * sum / count);
}

bool ls_logits_always(struct mut_kept *k)
{
  bool shows = attributes(k)->input != QN_LOGITS;
  attributes(k)->input = QN_LOGITS;
  return shows;
}

bool ls_per_row(struct mut_kept *k)
{
  const qn_value *x = mut_value(k, QN_ROLE_CROSS_ENTROPY_X);
  return attributes(k)->reduction == QN_REDUCTION_NONE && attributes(k)->axis == x->rank - 1 && x->dtype != QN_F64 &&
         mut_value(k, QN_ROLE_CROSS_ENTROPY_LABELS) && !mut_value(k, QN_ROLE_CROSS_ENTROPY_WEIGHTS) && attributes(k)->input == QN_LOGITS;
}

/* The sum of exponentials without their maximum taken away, in f32. */
void ls_no_shift(struct mut_call *c)
{
  void *px, *pl, *p;
  const qn_value *x = part(c, QN_ROLE_CROSS_ENTROPY_X, &px), *loss = part(c, QN_ROLE_CROSS_ENTROPY_LOSS, &p);
  const qn_value *labels = part(c, QN_ROLE_CROSS_ENTROPY_LABELS, &pl);
  int64_t classes = x->dim[x->rank - 1];
  for (int64_t row = 0; row < qn_elements(loss); row++) {
    float s = 0;
    for (int64_t j = 0; j < classes; j++)
      s += expf((float)mut_get(x, px, row * classes + j));
    if ((int64_t)mut_get(labels, pl, row) != entropy(c)->ignore && !isfinite(s))
      mut_put(loss, p, row, (double)logf(s));
  }
}

/* A negative label counts from the last class. */
void ls_label_from_the_end(struct mut_call *c)
{
  const qn_value *labels = mut_value(c->k, QN_ROLE_CROSS_ENTROPY_LABELS), *x = mut_value(c->k, QN_ROLE_CROSS_ENTROPY_X);
  double classes = (double)x->dim[entropy(c)->axis];
  void *p = labels ? mut_copy(c, QN_ROLE_CROSS_ENTROPY_LABELS) : NULL;
  if (!labels)
    return;
  for (int64_t i = 0; i < qn_elements(labels); i++) {
    double label = mut_get(labels, p, i);
    if (label < 0 && label >= -classes && (int64_t)label != entropy(c)->ignore)
      mut_put(labels, p, i, label + classes);
  }
}

/* smoothing / (C - 1) to each of the other classes, none to the label's own. */
bool ls_smoothing_of_others(struct mut_kept *k)
{
  qn_entropy *a = attributes(k);
  double classes = (double)mut_value(k, QN_ROLE_CROSS_ENTROPY_X)->dim[a->axis];
  a->smoothing = classes > 1 ? fmin(a->smoothing * classes / (classes - 1), 1) : 0;
  return a->smoothing > 0 && a->smoothing < 1;
}

bool ls_ignore_is_fixed(struct mut_kept *k)
{
  bool shows = attributes(k)->ignore != -100;
  attributes(k)->ignore = -100;
  return shows;
}

bool ls_smoothing_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->smoothing > 0;
  attributes(k)->smoothing = 0;
  return shows;
}

void ls_mean_undivided(struct mut_call *c)
{
  const qn_value *count = mut_value(c->k, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT);
  if (count)
    mut_put(count, mut_copy(c, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT), 0, 1);
}

static void ones_for_weights(struct mut_call *c, uint32_t role)
{
  const qn_value *weights = mut_value(c->k, role);
  void *p = weights ? mut_copy(c, role) : NULL;
  for (int64_t i = 0; weights && i < qn_elements(weights); i++)
    mut_put(weights, p, i, 1);
}
void ls_weights_ignored(struct mut_call *c) { ones_for_weights(c, QN_ROLE_CROSS_ENTROPY_BACKWARD_WEIGHTS); }
void ls_soft_weights_ignored(struct mut_call *c) { ones_for_weights(c, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_WEIGHTS); }

/* Ignored rows keep the old contents of dx. */
void ls_keep(struct mut_call *c) { mut_keep(c, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX); }

void ls_ignored_unwritten(struct mut_call *c)
{
  void *pl, *p;
  const qn_value *labels = part(c, QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS, &pl), *dx = part(c, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX, &p);
  int64_t inner = 1, classes = dx->dim[entropy(c)->axis];
  if (!labels)
    return;
  for (int64_t d = entropy(c)->axis + 1; d < dx->rank; d++)
    inner *= dx->dim[d];
  for (int64_t i = 0; i < qn_elements(dx); i++)
    if ((int64_t)mut_get(labels, pl, i / (inner * classes) * inner + i % inner) == entropy(c)->ignore)
      mut_put(dx, p, i, mut_get(dx, c->scratch[0], i));
}

/* ---- connectionist temporal classification ---------------------------------------------------- */

static qn_ctc *ctc_attributes(struct mut_kept *k) { return (qn_ctc *)(void *)k->attr; }
static const qn_ctc *ctc(const struct mut_call *c) { return (const qn_ctc *)(const void *)c->k->original; }

void ls_last_frame_lost(struct mut_call *c)
{
  const qn_value *lengths = mut_value(c->k, QN_ROLE_CTC_LOSS_X_LENGTHS);
  double most = (double)mut_value(c->k, QN_ROLE_CTC_LOSS_X)->dim[0];
  void *p = mut_copy(c, QN_ROLE_CTC_LOSS_X_LENGTHS);
  for (int64_t i = 0; i < qn_elements(lengths); i++)
    mut_put(lengths, p, i, fmin(mut_get(lengths, p, i), most) - 1);
}

/* Two frames for two equal labels: the second label follows the first without a blank. */
void ls_repeats_skip(struct mut_call *c)
{
  void *px, *pl, *pt, *pn, *p;
  const qn_value *x = part(c, QN_ROLE_CTC_LOSS_X, &px), *labels = part(c, QN_ROLE_CTC_LOSS_LABELS, &pl),
      *loss = part(c, QN_ROLE_CTC_LOSS_LOSS, &p);
  const qn_value *frames = part(c, QN_ROLE_CTC_LOSS_X_LENGTHS, &pt), *length = part(c, QN_ROLE_CTC_LOSS_LABEL_LENGTHS, &pn);
  int64_t longest = labels->dim[1];
  for (int64_t n = 0; n < x->dim[1] && ctc(c)->reduction == QN_REDUCTION_NONE; n++) {
    double t = fmin(mut_get(frames, pt, n), (double)x->dim[0]), s = fmin(mut_get(length, pn, n), (double)longest);
    bool repeats = false;
    for (int64_t i = 1; i < (int64_t)s; i++)
      repeats |= mut_get(labels, pl, n * longest + i) == mut_get(labels, pl, n * longest + i - 1);
    if (repeats && t == s && isinf(mut_get(loss, p, n)))
      mut_put(loss, p, n, t);
  }
}

bool ls_blank_is_fixed(struct mut_kept *k)
{
  bool shows = ctc_attributes(k)->blank != 0;
  ctc_attributes(k)->blank = 0;
  return shows;
}

bool ls_infinity_kept(struct mut_kept *k)
{
  bool shows = ctc_attributes(k)->zero_infinity != 0;
  ctc_attributes(k)->zero_infinity = 0;
  return shows;
}

/* The mean over labels instead of samples. */
void ls_mean_by_labels(struct mut_call *c)
{
  void *pn, *p;
  const qn_value *length = part(c, QN_ROLE_CTC_LOSS_LABEL_LENGTHS, &pn), *loss = part(c, QN_ROLE_CTC_LOSS_LOSS, &p);
  double labels = 0;
  for (int64_t n = 0; n < length->dim[0]; n++)
    labels += fmax(mut_get(length, pn, n), 1);
  if (ctc(c)->reduction == QN_REDUCTION_MEAN)
    mut_put(loss, p, 0, mut_get(loss, p, 0) * (double)length->dim[0] / labels);
}

void ls_keep_frames(struct mut_call *c) { mut_keep(c, QN_ROLE_CTC_LOSS_BACKWARD_DX); }

void ls_beyond_unwritten(struct mut_call *c)
{
  void *pt, *p;
  const qn_value *frames = part(c, QN_ROLE_CTC_LOSS_BACKWARD_X_LENGTHS, &pt), *dx = part(c, QN_ROLE_CTC_LOSS_BACKWARD_DX, &p);
  for (int64_t i = 0; i < qn_elements(dx); i++)
    if ((double)(i / dx->dim[2] / dx->dim[1]) >= mut_get(frames, pt, i / dx->dim[2] % dx->dim[1]))
      mut_put(dx, p, i, mut_get(dx, c->scratch[0], i));
}

/* The gradient of the paths that spell nothing. */
void ls_no_labels(struct mut_call *c)
{
  const qn_value *length = mut_value(c->k, QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS);
  void *p = mut_copy(c, QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS);
  for (int64_t i = 0; i < qn_elements(length); i++)
    mut_put(length, p, i, 0);
}
