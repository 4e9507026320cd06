/* ctc_direct.c -- connectionist temporal classification from logits, and its gradient.
 *
 * State s of a sample with S labels, 0 <= s <= 2S, is the blank if s is even, else label s/2. E(t,s) = x[class of s] - lse.
 *   A(t,s) = E(t,s) + ln of the sum of exp A(t-1,s') over s' = s, s-1, and s-2 if s is a label that differs from the previous one
 *   B(t,s) = ln of the sum of exp (B + E)(t+1,s'), the same steps the other way
 * A starts with 0 in states 0 and 1, B with 0 in 2S and 2S-1.   L = ln of the sum of exp (A + B), the same in any frame    loss = -L
 *   dx = g (exp(x - lse) - sum exp(A + B - L) over the states of the class), g = dy or dy / N */
#include <stdbool.h>
#include "direct.h"

typedef struct problem {
  cpu_tensor x, labels, x_lengths, label_lengths, loss, lse, dx;        /* in the gradient, dy in place of loss */
  const qn_ctc *a;
  int64_t frames, samples, classes, longest;
  long double *rows;                      /* workspace of each sample, sized in prepare */
} problem;

/* One sample. */
typedef struct sample { const problem *p; int64_t n, frames, states; } sample;

static int64_t length_of(const cpu_tensor *t, int64_t n, int64_t most)
{
  const int64_t length = qn_load_i64(cpu_at(t, n * t->stride[0]), t->dtype);
  return qn_max_i64(0, qn_min_i64(length, most));
}
static sample sample_of(const problem *p, int64_t n)
{
  return (sample){ p, n, length_of(&p->x_lengths, n, p->frames), 2 * length_of(&p->label_lengths, n, p->longest) + 1 };
}

static int64_t class_of(const sample *s, int64_t state)
{
  const cpu_tensor *labels = &s->p->labels;
  if (state % 2 == 0) return s->p->a->blank;
  return qn_load_i64(cpu_at(labels, s->n * labels->stride[0] + state / 2 * labels->stride[1]), labels->dtype);
}
static long double logit(const sample *s, int64_t t, int64_t class)
{
  const int64_t index[3] = { t, s->n, class };
  return class >= 0 && class < s->p->classes ? cpu_get(&s->p->x, cpu_offset(3, index, s->p->x.stride)) : 0;
}
static long double emission(const sample *s, int64_t t, int64_t state, long double lse)
{
  const int64_t class = class_of(s, state);
  return state % 2 && class == s->p->a->blank ? -INFINITY : logit(s, t, class) - lse;
}
static bool may_skip(const sample *s, int64_t state) { return state % 2 && state > 2 && class_of(s, state) != class_of(s, state - 2); }

/* ln(e^a + e^b) */
static long double joined(long double a, long double b)
{
  if (isnan(a) || isnan(b)) return NAN;
  const long double m = fmaxl(a, b);
  return m == -INFINITY ? m : m + log1pl(expl(fminl(a, b) - m));
}

static long double log_sum_exp(const sample *s, int64_t t)
{
  long double m = -INFINITY, sum = 0;
  for (int64_t c = 0; c < s->p->classes; c++) m = fmaxl(m, logit(s, t, c));
  if (m == -INFINITY) m = 0;
  for (int64_t c = 0; c < s->p->classes; c++) sum += expl(logit(s, t, c) - m);
  return m + logl(sum);
}
static int64_t lse_at(const sample *s, int64_t t) { return t * s->p->lse.stride[0] + s->n * s->p->lse.stride[1]; }

/* A(t) from A(t-1), which may be the same row. */
static void step_forward(const sample *s, int64_t t, long double lse, const long double *before, long double *row)
{
  for (int64_t i = s->states - 1; i >= 0; i--) {
    long double sum = t == 0 ? (i < 2 ? 0 : -INFINITY) : before[i];
    if (t > 0 && i > 0) sum = joined(sum, before[i - 1]);
    if (t > 0 && may_skip(s, i)) sum = joined(sum, before[i - 2]);
    row[i] = sum + emission(s, t, i, lse);
  }
}
/* B(t) from (B + E)(t+1), in place. */
static void step_backward(const sample *s, int64_t t, long double *row)
{
  const bool last = t == s->frames - 1;
  for (int64_t i = 0; i < s->states; i++) {
    long double sum = last ? (i >= s->states - 2 ? 0 : -INFINITY) : row[i];
    if (!last && i + 1 < s->states) sum = joined(sum, row[i + 1]);
    if (!last && i + 2 < s->states && may_skip(s, i + 2)) sum = joined(sum, row[i + 2]);
    row[i] = sum;
  }
}
static long double total(const sample *s, const long double *last)
{
  if (s->frames == 0) return s->states == 1 ? 0 : -INFINITY;
  return s->states == 1 ? last[0] : joined(last[s->states - 1], last[s->states - 2]);
}

/* ---- forward ------------------------------------------------------------------------------- */

static double sample_loss(const problem *p, int64_t n)
{
  const sample s = sample_of(p, n);
  long double *row = p->rows + n * (2 * p->longest + 1);
  for (int64_t t = 0; t < p->frames; t++) {
    const long double lse = t < s.frames ? log_sum_exp(&s, t) : 0;
    if (t < s.frames) step_forward(&s, t, lse, row, row);
    if (p->lse.p) cpu_put(&p->lse, lse_at(&s, t), (double)lse);
  }
  const long double l = total(&s, row);
  const double loss = l == -INFINITY && p->a->zero_infinity ? 0 : (double)-l;
  if (p->a->reduction == QN_REDUCTION_NONE) cpu_put(&p->loss, n * p->loss.stride[0], loss);
  return loss;
}

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  problem p = {
    .x = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_X, 0), .labels = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_LABELS, 0),
    .x_lengths = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_X_LENGTHS, 0),
    .label_lengths = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_LABEL_LENGTHS, 0),
    .loss = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_LOSS, 0), .lse = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_LSE, 0),
    .a = ((const cpu_kept *)prepared->state)->attr, .rows = launch->workspace,
  };
  p.frames = p.x.dim[0], p.samples = p.x.dim[1], p.classes = p.x.dim[2], p.longest = p.labels.dim[1];
  if (p.a->reduction == QN_REDUCTION_NONE) {
#pragma omp parallel for num_threads(cpu_team(launch, p.samples, p.frames * (p.classes + p.longest) * 16))
    for (int64_t n = 0; n < p.samples; n++) sample_loss(&p, n);
    return QN_OK;
  }
  long double sum = 0;
  for (int64_t n = 0; n < p.samples; n++) sum += sample_loss(&p, n);
  cpu_put(&p.loss, 0, (double)(p.a->reduction == QN_REDUCTION_MEAN ? sum / p.samples : sum));
  return QN_OK;
}

/* ---- backward ------------------------------------------------------------------------------ */

static void frame_gradient(const sample *s, int64_t t, long double g, long double lse, long double l, const long double *a,
                           const long double *b)
{
  const cpu_tensor *to = &s->p->dx;
  for (int64_t c = 0; c < s->p->classes; c++) {
    const int64_t index[3] = { t, s->n, c };
    long double share = 0, dx = 0;
    for (int64_t i = 0; i < s->states && t < s->frames; i++)
      if (class_of(s, i) == c) share += expl(a[i] + b[i] - l);
    if (t < s->frames && l != -INFINITY) dx = g * (expl(logit(s, t, c) - lse) - share);
    cpu_put(to, cpu_offset(3, index, to->stride), (double)dx);
  }
}

static void sample_gradient(const problem *p, int64_t n)
{
  const sample s = sample_of(p, n);
  const int64_t width = 2 * p->longest + 1;
  long double *a = p->rows + n * (p->frames + 1) * width, *b = a + p->frames * width;
  const bool reduced = p->a->reduction != QN_REDUCTION_NONE;
  long double g = cpu_get(&p->loss, reduced ? 0 : n * p->loss.stride[0]);
  if (p->a->reduction == QN_REDUCTION_MEAN) g /= p->samples;
  for (int64_t t = 0; t < s.frames; t++) step_forward(&s, t, cpu_get(&p->lse, lse_at(&s, t)), a + (t - 1) * width, a + t * width);
  const long double l = total(&s, a + (s.frames - 1) * width);
  for (int64_t t = p->frames - 1; t >= 0; t--) {
    const long double lse = t < s.frames ? cpu_get(&p->lse, lse_at(&s, t)) : 0;
    if (t < s.frames) step_backward(&s, t, b);
    frame_gradient(&s, t, g, lse, l, a + t * width, b);
    for (int64_t i = 0; i < s.states && t < s.frames; i++) b[i] += emission(&s, t, i, lse);
  }
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  problem p = {
    .x = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_X, 0),
        .labels = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_LABELS, 0),
        .x_lengths = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_X_LENGTHS, 0),
        .label_lengths = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS, 0),
        .loss = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_DY, 0),
        .lse = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_LSE, 0),
        .dx = cpu_tensor_of(prepared, launch, QN_ROLE_CTC_LOSS_BACKWARD_DX, 0), .a = ((const cpu_kept *)prepared->state)->attr,
        .rows = launch->workspace,
  };
  p.frames = p.x.dim[0], p.samples = p.x.dim[1], p.classes = p.x.dim[2], p.longest = p.labels.dim[1];
#pragma omp parallel for num_threads(cpu_team(launch, p.samples, p.frames * (p.classes + 1) * (p.longest + 8)))
  for (int64_t n = 0; n < p.samples; n++) sample_gradient(&p, n);
  return QN_OK;
}

/* ---- prepare ------------------------------------------------------------------------------- */

/* A row of states per sample; in the gradient one per frame and one more. */
static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const bool back = op->op == QN_OP_CTC_LOSS_BACKWARD;
  const qn_value *x = &request->value[qn_role(op, back ? QN_ROLE_CTC_LOSS_BACKWARD_X : QN_ROLE_CTC_LOSS_X)];
  const qn_value *labels = &request->value[qn_role(op, back ? QN_ROLE_CTC_LOSS_BACKWARD_LABELS : QN_ROLE_CTC_LOSS_LABELS)];
  const double bytes = (double)x->dim[1] * (double)(back ? x->dim[0] + 1 : 1) * (2 * (double)labels->dim[1] + 1) * sizeof(long double);
  const qn_status status = cpu_direct_prepare(request, p);
  p->workspace = bytes < 0x1p62 ? (uint64_t)bytes : (uint64_t)1 << 62;
  return status;
}

#define ROW(anchor, function)                                                                   \
  { .name = "direct", .op = anchor, .class_ = QN_CLASS_GENERIC,                                 \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,            \
    .prepare = prepare, .run = function, .release = cpu_release }
static const qn_engine row[] = { ROW(QN_OP_CTC_LOSS, forward), ROW(QN_OP_CTC_LOSS_BACKWARD, backward) };
const qn_engine_list cpu_ctc_direct = { row, sizeof row / sizeof *row };
