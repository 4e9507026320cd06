/* ctc_rows.c -- connectionist temporal classification in f32, where the classes of a frame are contiguous.
 *
 * Each sample is done by one thread. Its states (ctc_direct.c) form a row, which one vector loop advances by a frame: the states
 * that lead to a state are its neighbours, and forbidden skips get -Inf added. To keep precision over long paths, a row is
 * rescaled now and then to a maximum of 0, and the shift accumulated apart, in double.
 * The gradient runs forward, keeping the rows, then backward, computing each state's share on the way.
 * A sample with logits so large that the sums of a few frames would overflow is done again in double, state by state. */
#include "cpu_ref.h"
#include "logits.h"

enum { X, DX, LABELS, X_LENGTHS, LABEL_LENGTHS, LOSS, LSE, TENSORS };     /* in the gradient, LOSS is dy */
enum { AHEAD = 2, SETTLE = 16 };          /* -Infs before and after a row; frames between rescalings */

typedef struct problem {
  qn_ctc   a;
  bool     backward;
  int64_t  frames, samples, classes, longest;
  int32_t  value[TENSORS];                /* -1: absent */
  uint32_t dtype[TENSORS];
  int64_t  step[TENSORS], frame[TENSORS], label;          /* bytes from sample to sample, frame to frame, label to label */
  int64_t  of_sample;                     /* bytes of workspace per sample */
} problem;

/* One sample, and its part of the workspace. */
typedef struct sample {
  const problem *p;
  char    *at[TENSORS];
  int64_t  frames, labels, states;
  double  *settled;                       /* [T + 1]: the total shift of each kept row */
  int64_t *class;                         /* [S] */
  float   *skip, *e;                      /* as row: 0 if the state may be reached from the state two before, else -Inf; logits - lse */
  float   *row[2], *kept;                 /* [-AHEAD to states + AHEAD]; kept: T of those */
  double  *wide_e, *wide_row[2], *wide_kept;                /* the same in double */
  float   *logit, *share, *out;           /* [C] */
} sample;

/* ---- a frame's step ------------------------------------------------------------------------ */

/* y(s) = e(s) + ln of the sum of exp x(s), x(s-1), x(s-2) + skip(s); there are two elements before x. */
static void step(float *restrict y, const float *restrict x, const float *restrict skip, const float *restrict e, int64_t states)
{
#pragma omp simd
  for (int64_t s = 0; s < states; s++) {
    const float a = x[s], b = x[s - 1], c = x[s - 2] + skip[s];
    float m = a > b ? a : b;
    m = c > m ? c : m;
    m = m == -INFINITY ? 0 : m;
    y[s] = m + m_log(m_exp(a - m) + m_exp(b - m) + m_exp(c - m)) + e[s];
  }
}
/* The reverse step, without e: from x(s), x(s+1) and x(s+2) + skip(s+2). */
static void step_back(float *restrict y, const float *restrict x, const float *restrict skip, int64_t states)
{
#pragma omp simd
  for (int64_t s = 0; s < states; s++) {
    const float a = x[s], b = x[s + 1], c = x[s + 2] + skip[s + 2];
    float m = a > b ? a : b;
    m = c > m ? c : m;
    m = m == -INFINITY ? 0 : m;
    y[s] = m + m_log(m_exp(a - m) + m_exp(b - m) + m_exp(c - m));
  }
}

/* Subtracts a row's maximum from it, and returns it. */
static double settle(float *y, int64_t states)
{
  const float m = logits_largest(y, -INFINITY, states);
  if (m - m != 0) return 0;               /* infinite */
#pragma omp simd
  for (int64_t s = 0; s < states; s++) y[s] -= m;
  return m;
}

static double joined(double a, double b)
{
  const double m = a > b ? a : b;
  return a != a || b != b ? NAN : m == -INFINITY ? m : m + log1p(exp((a > b ? b : a) - m));
}

/* ---- a sample ------------------------------------------------------------------------------ */

static int64_t length_of(const char *at, uint32_t dtype, int64_t most)
{
  return qn_max_i64(0, qn_min_i64(qn_load_i64(at, dtype), most));
}

static int64_t pitch_of(const problem *p) { return AHEAD + 2 * p->longest + 1 + AHEAD; }
static void lay_out(const problem *p, sample *s, void *memory)
{
  const int64_t pitch = pitch_of(p);
  s->class = memory;
  s->settled = (double *)(void *)(s->class + p->longest);
  double *wide = s->settled + (p->backward ? p->frames + 1 : 0) + AHEAD;
  s->wide_e = wide, s->wide_row[0] = wide + pitch, s->wide_row[1] = wide + 2 * pitch, s->wide_kept = wide + 3 * pitch;
  float *f = (float *)(void *)(s->wide_kept + (p->backward ? p->frames * pitch : 0) - AHEAD) + AHEAD;
  s->skip = f;
  s->e = f + pitch;
  s->row[0] = f + 2 * pitch;
  s->row[1] = f + 3 * pitch;
  s->kept = f + 4 * pitch;
  s->logit = s->kept + (p->backward ? p->frames * pitch : 0) - AHEAD;
  s->share = s->logit + p->classes;
  s->out = s->share + p->classes;
}

static void blank_row(float *row, int64_t states)
{
  for (int64_t s = -AHEAD; s < states + AHEAD; s++) row[s] = -INFINITY;
}

static void sample_begin(sample *s, const problem *p, const qn_launch *launch, int64_t n)
{
  *s = (sample){ .p = p };
  lay_out(p, s, (char *)launch->workspace + n * p->of_sample);
  for (int t = 0; t < TENSORS; t++) s->at[t] = p->value[t] < 0 ? NULL : (char *)launch->ptr[p->value[t]] + n * p->step[t];
  s->frames = length_of(s->at[X_LENGTHS], p->dtype[X_LENGTHS], p->frames);
  s->labels = length_of(s->at[LABEL_LENGTHS], p->dtype[LABEL_LENGTHS], p->longest);
  s->states = 2 * s->labels + 1;
  blank_row(s->skip, s->states);
  s->skip[s->states] = 0;                 /* beyond the last state the row is -Inf except in the first step */
  for (int64_t i = 0; i < s->labels; i++) {
    s->class[i] = qn_load_i64(s->at[LABELS] + i * p->label, p->dtype[LABELS]);
    if (i == 0 || s->class[i] != s->class[i - 1]) s->skip[2 * i + 1] = 0;
  }
  blank_row(s->row[0], s->states);
  blank_row(s->row[1], s->states);
}

static const float *logits_of(const sample *s, int64_t t)
{
  return logits_open(s->at[X] + t * s->p->frame[X], s->p->dtype[X], s->p->classes, s->logit);
}
/* True if sums of a few frames of these may overflow. */
static bool emissions(const sample *s, const float *x, float lse)
{
  const float blank = x[s->p->a.blank] - lse;
  float most = fabsf(x[s->p->a.blank]);
  for (int64_t i = 0; i < s->labels; i++) {
    const int64_t c = s->class[i];
    const float label = c >= 0 && c < s->p->classes ? x[c] : 0;
    s->e[2 * i] = blank;
    s->e[2 * i + 1] = c == s->p->a.blank ? -INFINITY : label - lse;
    most = fabsf(label) > most && fabsf(label) < INFINITY ? fabsf(label) : most;
  }
  s->e[2 * s->labels] = blank;
  return (most > 1e30f && most < INFINITY) || (fabsf(lse) > 1e30f && fabsf(lse) < INFINITY);
}
static void wide_emissions(const sample *s, const float *x, double lse)
{
  for (int64_t i = 0; i < s->states; i++) {
    const int64_t c = i % 2 ? s->class[i / 2] : s->p->a.blank;
    s->wide_e[i] = i % 2 && c == s->p->a.blank ? -INFINITY : (c >= 0 && c < s->p->classes ? (double)x[c] : 0) - lse;
  }
}
static float *lse_of(const sample *s, int64_t t) { return (float *)(void *)(s->at[LSE] + t * s->p->frame[LSE]); }

static float frame_lse(const sample *s, const float *x)
{
  const float m = logits_largest(x, -INFINITY, s->p->classes), shift = m == -INFINITY ? 0 : m;
  return shift + logf(logits_sum_of_exp(x, shift, s->p->classes));
}

/* ln of the sum of exp over the last row's two end states, b the one before; a row of one state has no other. */
static double total(const sample *s, double a, double b)
{
  if (s->frames == 0) return s->labels ? -INFINITY : 0;
  return s->labels ? joined(a, b) : a;
}

/* The row before the first frame: a single path, from which one step leads to states 0 and 1. */
static float *before_first(const sample *s)
{
  s->row[1][-1] = 0;
  return s->row[1];
}

/* ---- in double ------------------------------------------------------------------------------- */

static double joined_three(double a, double b, double c)
{
  double m = a > b ? a : b;
  m = c > m ? c : m;
  return m > -INFINITY ? m + log(exp(a - m) + exp(b - m) + exp(c - m)) : a + b + c;
}

static void wide_blank(double *row, int64_t states)
{
  for (int64_t s = -AHEAD; s < states + AHEAD; s++) row[s] = -INFINITY;
}

/* Forward; keeps the rows for the gradient, which is given each frame's lse. Returns ln of the sum over all paths. */
static double wide_forward(const sample *s, bool keep)
{
  double *from = s->wide_row[1], *spare = s->wide_row[0];
  wide_blank(from, s->states), wide_blank(spare, s->states);
  from[-1] = 0;
  for (int64_t t = 0; t < s->frames; t++) {
    double *to = keep ? s->wide_kept + t * pitch_of(s->p) : spare;
    if (keep) wide_blank(to, s->states);
    const float *x = logits_of(s, t);
    wide_emissions(s, x, (double)(keep ? *lse_of(s, t) : frame_lse(s, x)));
    for (int64_t i = 0; i < s->states; i++)
      to[i] = joined_three(from[i], from[i - 1], from[i - 2] + (double)s->skip[i]) + s->wide_e[i];
    if (t == 0) from[-1] = -INFINITY;
    spare = from, from = to;
  }
  return total(s, from[s->states - 1], from[s->states - 2]);
}

static void frame_gradient(const sample *s, int64_t t, const float *x, float lse, float g, const float *row);

/* The frames from `used` on have no gradient. */
static void clear_from(const sample *s, int64_t used)
{
  const problem *p = s->p;
  for (int64_t t = used; t < p->frames; t++) memset(s->at[DX] + t * p->frame[DX], 0, (size_t)(p->classes * qn_kit_bytes(p->dtype[DX])));
}

static void wide_backward(const sample *s, float g)
{
  const double l = wide_forward(s, true);
  const int64_t used = l == -INFINITY ? 0 : s->frames;
  clear_from(s, used);
  double *ahead = s->wide_row[0], *row = s->wide_row[1];
  wide_blank(ahead, s->states);
  ahead[s->states] = 0;
  for (int64_t t = used - 1; t >= 0; t--) {
    const float *x = logits_of(s, t), lse = *lse_of(s, t);
    const double *a = s->wide_kept + t * pitch_of(s->p);
    wide_emissions(s, x, (double)lse);
    for (int64_t i = 0; i < s->states; i++) {
      row[i] = joined_three(ahead[i], ahead[i + 1], ahead[i + 2] + (double)s->skip[i + 2]);
      s->row[0][i] = (float)exp(a[i] + row[i] - l);
    }
    ahead[s->states] = -INFINITY;
    for (int64_t i = 0; i < s->states; i++) ahead[i] = row[i] + s->wide_e[i];
    frame_gradient(s, t, x, lse, g, s->row[0]);
  }
}

/* ---- forward, backward --------------------------------------------------------------------- */

static double forward_sample(const sample *s)
{
  const problem *p = s->p;
  float *from = before_first(s), *to = s->row[0];
  double settled = 0;
  bool far = false;
  for (int64_t t = 0; t < s->frames; t++) {
    const float *x = logits_of(s, t), lse = frame_lse(s, x);
    far = emissions(s, x, lse) || far;
    step(to, from, s->skip, s->e, s->states);
    if (t % SETTLE == SETTLE - 1) settled += settle(to, s->states);
    if (s->at[LSE]) *lse_of(s, t) = lse;
    if (t == 0) from[-1] = -INFINITY;
    float *next = from;
    from = to, to = next;
  }
  for (int64_t t = s->frames; t < p->frames && s->at[LSE]; t++) *lse_of(s, t) = 0;
  const double l = far ? wide_forward(s, false) : settled + total(s, (double)from[s->states - 1], (double)from[s->states - 2]);
  return l == -INFINITY && p->a.zero_infinity ? 0 : -l;
}

/* row: the share of each state. */
static void frame_gradient(const sample *s, int64_t t, const float *x, float lse, float g, const float *row)
{
  const problem *p = s->p;
  char *to = s->at[DX] + t * p->frame[DX];
  float *dx = p->dtype[DX] == QN_F32 ? (float *)(void *)to : s->out, of_blank = row[0];
  logits_gradient(dx, x, lse, g, 0, p->classes);
  for (int64_t i = 0; i < s->labels; i++) {
    const int64_t c = s->class[i];
    of_blank += row[2 * i + 2];
    if (c >= 0 && c < p->classes) s->share[c] += row[2 * i + 1];
  }
  s->share[p->a.blank] += of_blank;
  dx[p->a.blank] = g * (m_exp(x[p->a.blank] - lse) - s->share[p->a.blank]);
  for (int64_t i = 0; i < s->labels; i++) {
    const int64_t c = s->class[i];
    if (c >= 0 && c < p->classes) dx[c] = g * (m_exp(x[c] - lse) - s->share[c]);
  }
  s->share[p->a.blank] = 0;
  for (int64_t i = 0; i < s->labels; i++)
    if (s->class[i] >= 0 && s->class[i] < p->classes) s->share[s->class[i]] = 0;
  if (dx == s->out) row_from_f32(to, dx, p->dtype[DX], p->classes);
}

static void backward_sample(const sample *s)
{
  const problem *p = s->p;
  const int64_t pitch = pitch_of(p);
  const float *from = before_first(s);
  float g = *(const float *)(const void *)s->at[LOSS];
  bool far = false;
  if (p->a.reduction == QN_REDUCTION_MEAN) g /= (float)p->samples;
  for (int64_t t = 0; t < s->frames; t++) {
    float *row = s->kept + t * pitch;
    blank_row(row, s->states);
    far = emissions(s, logits_of(s, t), *lse_of(s, t)) || far;
    step(row, from, s->skip, s->e, s->states);
    s->settled[t + 1] = s->settled[t] + (t % SETTLE == SETTLE - 1 ? settle(row, s->states) : 0);
    from = row;
  }
  if (far) {
    wide_backward(s, g);
    return;
  }
  const double l = s->settled[s->frames] + total(s, (double)from[s->states - 1], (double)from[s->states - 2]);
  const int64_t used = l == -INFINITY ? 0 : s->frames;
  clear_from(s, used);

  float *ahead = s->row[0], *row = s->row[1];
  double settled = 0;
  blank_row(row, s->states);
  ahead[s->states] = 0;                   /* mirrors before_first: one step from the last two states */
  for (int64_t t = used - 1; t >= 0; t--) {
    const float *x = logits_of(s, t), lse = *lse_of(s, t), *a = s->kept + t * pitch;
    const double off = s->settled[t + 1] + settled - l;
    step_back(row, ahead, s->skip, s->states);
    ahead[s->states] = -INFINITY;
    emissions(s, x, lse);
    for (int64_t i = 0; i < s->states; i++) ahead[i] = row[i] + s->e[i];
    if (t % SETTLE == 0) settled += settle(ahead, s->states);
#pragma omp simd
    for (int64_t i = 0; i < s->states; i++) row[i] = m_exp((float)((double)(a[i] + row[i]) + off));
    frame_gradient(s, t, x, lse, g, row);
  }
}

/* ---- run ------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_ctc_rows_run);
qn_status CPU_NAME(cpu_ctc_rows_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  const bool joint = !p->backward && p->a.reduction != QN_REDUCTION_NONE;
  double *losses = (double *)(void *)((char *)launch->workspace + p->samples * p->of_sample);
  const int64_t threads = qn_min_i64(cpu_threads(launch, p->samples * p->frames * (p->classes + 8 * p->longest)), p->samples);
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 1) if (threads > 1)
  for (int64_t n = 0; n < p->samples; n++) {
    sample s;
    sample_begin(&s, p, launch, n);
    if (p->backward) {
      memset(s.share, 0, (size_t)p->classes * sizeof *s.share);
      s.settled[0] = 0;
      backward_sample(&s);
      continue;
    }
    const double loss = forward_sample(&s);
    if (joint) losses[n] = loss;
    else *(float *)(void *)s.at[LOSS] = (float)loss;
  }
  if (!joint) return QN_OK;
  double sum = 0;
  for (int64_t n = 0; n < p->samples; n++) sum += losses[n];
  *(float *)launch->ptr[p->value[LOSS]] = (float)(p->a.reduction == QN_REDUCTION_MEAN ? sum / (double)p->samples : sum);
  return QN_OK;
}

/* ---- prepare --------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const int8_t forward_role[TENSORS] = { QN_ROLE_CTC_LOSS_X, -1, QN_ROLE_CTC_LOSS_LABELS, QN_ROLE_CTC_LOSS_X_LENGTHS,
                                              QN_ROLE_CTC_LOSS_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_LOSS, QN_ROLE_CTC_LOSS_LSE };
static const int8_t backward_role[TENSORS] = { QN_ROLE_CTC_LOSS_BACKWARD_X, QN_ROLE_CTC_LOSS_BACKWARD_DX, QN_ROLE_CTC_LOSS_BACKWARD_LABELS,
  QN_ROLE_CTC_LOSS_BACKWARD_X_LENGTHS, QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_BACKWARD_DY,
  QN_ROLE_CTC_LOSS_BACKWARD_LSE };

static int64_t workspace_of(const problem *p)
{
  const int64_t kept = p->backward ? p->frames : 0;
  const int64_t doubles = p->longest + (p->backward ? p->frames + 1 : 0) + (kept + 3) * pitch_of(p);
  const int64_t floats = (kept + 4) * pitch_of(p) + (p->backward ? 3 : 1) * p->classes;
  return qn_round_up(8 * doubles + 4 * floats, 64);
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  problem p = { .a = *(const qn_ctc *)op->attr, .backward = op->op == QN_OP_CTC_LOSS_BACKWARD };
  const int8_t *role = p.backward ? backward_role : forward_role;
  const qn_value *v[TENSORS];
  for (int t = 0; t < TENSORS; t++) {
    p.value[t] = qn_role_at(op, role[t]);
    v[t] = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    if (!v[t]) continue;
    const int64_t bytes = qn_kit_bytes(v[t]->dtype);
    const bool framed = v[t]->rank == 3;
    p.dtype[t] = v[t]->dtype;
    p.step[t] = v[t]->dim[framed] > 1 ? v[t]->stride[framed] * bytes : 0;
    p.frame[t] = framed ? v[t]->stride[0] * bytes : 0;
  }
  const qn_value *x = v[X];
  if (x->dtype == QN_F64) return qn_refuse(prepared, "computes in f32", "x", "f32, f16, bf16", "f64");
  for (int t = X; t <= DX; t++)
    if (v[t] && v[t]->stride[2] != 1 && x->dim[2] > 1)
      return qn_refuse(prepared, "the classes of a frame must be contiguous", t == X ? "x" : "dx", "stride 1", "%lld",
                       (long long)v[t]->stride[2]);
  p.frames = x->dim[0], p.samples = x->dim[1], p.classes = x->dim[2], p.longest = v[LABELS]->dim[1];
  p.label = v[LABELS]->stride[1] * qn_kit_bytes(v[LABELS]->dtype);
  if ((double)p.samples * (double)p.frames * (double)p.longest > 0x1p50)
    return qn_refuse(prepared, "keeps a row of states for each frame", "labels", "2^50 in all", "%lld for a frame", (long long)p.longest);
  p.of_sample = workspace_of(&p);
  prepared->workspace = (uint64_t)(p.samples * (p.of_sample + (int64_t)sizeof(double)));

  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run) ROW(name, run, QN_OP_CTC_LOSS), ROW(name, run, QN_OP_CTC_LOSS_BACKWARD),
static const qn_engine row[] = { CPU_COPIES(ROWS, "rows", cpu_ctc_rows_run) };
const qn_engine_list cpu_ctc_rows = { row, sizeof row / sizeof *row };
#endif
