/* norm_runs.c -- normalization and its gradients in f32, where a group of elements that share statistics is one contiguous run
 * or several (layer and RMS norm, instance norm, batch norm with channels first).
 *
 *   y = h scale + shift, h = (x - mean) rstd        dx = rstd (g - mean g - h mean(g h)), g = dy scale
 *
 * A group is one thread's: a pass for the mean, one for the variance, one for y; from the cache where it fits. Parameters have
 * an element for each group, lie like a run, or (group norm, forward) have an element for each run. The gradients of the second kind
 * are added up by shares of the groups, or if those are few in a pass of its own, a block of columns by one thread: threads change
 * nothing. Sums: lanes of f32 over a piece, those in double.
 *
 * Forward x may be a sum a + b, written where others want it, and y goes through the pointwise ops that follow (pointwise_tile.h),
 * piece by piece. */
#include "convert.h"
#include "cpu_ref.h"
#include "pointwise_tile.h"

enum { SPAN = 2048,                       /* elements of a piece */
       COLUMNS = 256,                     /* of a block of dscale and dshift */
       SHARES = 16, LEAST_SHARE = 16 };   /* of groups, whose dscale and dshift are added up apart; groups of one */
enum { X, Y, DY, SCALE, SHIFT, MEAN, RSTD, VAR, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, DSCALE, DSHIFT, TENSORS };

typedef struct problem {
  bool     backward, centred, given;      /* given: mean and var are inputs */
  bool     along, by_run;                 /* parameters lie like a run, or have an element for each */
  int64_t  groups, runs, length;
  int64_t  shares;                        /* in which dscale and dshift along a run are added up; 0: in a pass of its own */
  int64_t  run_step[5];                   /* of x, y, dy, scale and shift, in elements */
  double   eps, momentum;
  int32_t  value[TENSORS];                /* -1: absent */
  uint32_t dtype[TENSORS];
  qn_nest  nest;                          /* the dims not normalized over */
  int32_t  second, sum;                   /* values that lie as x does: added to it, and what that gives; -1: absent */
  uint32_t sum_dtype;
  bool     followed;                      /* by the program; y's steps count its places then */
  cpu_program program;
  cpu_tile_fn *runner;
} problem;

/* ---- loops ----------------------------------------------------------------------------------------------- */

static float sum_of(const float *x, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += x[i];
  return s;
}

static float squares_of(const float *x, float mean, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += (x[i] - mean) * (x[i] - mean);
  return s;
}

static void normalize(float *y, const float *x, float mean, float rstd, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd;
}

/* The three at once, where scale and shift are there. */
static void normalize_all(float *y, const float *x, float mean, float rstd, float scale, float shift, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * scale + shift;
}

static void scale_all(float *y, const float *x, float by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * by;
}

static void scale_each(float *y, const float *x, const float *by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * by[i];
}

static void shift_all(float *y, float by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] += by;
}

static void shift_each(float *y, const float *by, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] += by[i];
}

static float dot_of(const float *a, const float *b, int64_t n)
{
  float s = 0;
#pragma omp simd reduction(+: s)
  for (int64_t i = 0; i < n; i++) s += a[i] * b[i];
  return s;
}

static void add_each(float *sum, const float *x, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void add_products(float *sum, const float *a, const float *b, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) sum[i] += a[i] * b[i];
}

static void gradient(float *dx, const float *g, const float *h, float rstd, float p, float q, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = rstd * (g[i] - (p + h[i] * q));
}

/* ---- a group ------------------------------------------------------------------------------------------------ */

typedef struct place {                    /* where a group's tensors are; NULL: absent */
  const problem *p;
  char   *at[TENSORS], *second, *sum;
  int64_t y;                              /* its place, if it is followed */
  float  *by_scale, *by_shift;            /* where the share's dscale and dshift are added up */
  void *const *ptr;                       /* of the launch */
} place;

static double number(const place *w, int t, double absent) { return w->at[t] ? qn_load_f64(w->at[t], w->p->dtype[t]) : absent; }
static float of_run(const place *w, int t, int64_t r) { return (float)qn_load_f64(w->at[t] + r * w->p->run_step[t] * qn_kit_bytes(w->p->dtype[t]), w->p->dtype[t]); }
static void put(const place *w, int t, double v) { if (w->at[t]) qn_store_f64(w->at[t], w->p->dtype[t], v); }

/* n elements from the i-th of run r on, as f32: where they are, or in buffer. */
static const float *piece(const place *w, int t, int64_t r, int64_t i, int64_t n, float *buffer)
{
  const int64_t step = t < 3 ? w->p->run_step[t] : 0;
  const char *from = w->at[t] + (r * step + i) * qn_kit_bytes(w->p->dtype[t]);
  if (w->p->dtype[t] == QN_F32) return (const float *)(const void *)from;
  row_to_f32(buffer, from, w->p->dtype[t], n);
  return buffer;
}

/* n elements of x, b added if it is a sum; buffer and other have room for them. */
static const float *piece_of_x(const place *w, int64_t r, int64_t i, int64_t n, float *buffer, float *other)
{
  const float *x = piece(w, X, r, i, n, buffer);
  if (!w->second) return x;
  row_to_f32(other, w->second + (r * w->p->run_step[X] + i) * qn_kit_bytes(w->p->dtype[X]), w->p->dtype[X], n);
#pragma omp simd
  for (int64_t k = 0; k < n; k++) buffer[k] = x[k] + other[k];
  return buffer;
}

static float *piece_out(const place *w, int64_t r, int64_t i, float *buffer)
{
  return w->p->dtype[Y] == QN_F32 && !w->p->followed ? (float *)(void *)w->at[Y] + r * w->p->run_step[Y] + i : buffer;
}
static void piece_done(const place *w, int64_t r, int64_t i, int64_t n, const float *buffer)
{
  if (w->p->followed) w->p->runner(&w->p->program, w->ptr, buffer, w->y + r * w->p->run_step[Y] + i, n);
  else if (w->p->dtype[Y] != QN_F32) row_from_f32(w->at[Y] + (r * w->p->run_step[Y] + i) * qn_kit_bytes(w->p->dtype[Y]), buffer, w->p->dtype[Y], n);
}

#define EACH_PIECE(p, r, i, n)                                     \
  for (int64_t r = 0; r < (p)->runs; r++)                          \
    for (int64_t i = 0, n; i < (p)->length && (n = qn_min_i64(SPAN, (p)->length - i), 1); i += SPAN)

static void forward_group(const place *w)
{
  const problem *p = w->p;
  const double n_all = (double)p->runs * (double)p->length;
  float from[SPAN], to[SPAN], parameter[SPAN];
  double mean = 0, var = 0;
  if (p->given) {
    mean = number(w, MEAN, 0);
    var = number(w, VAR, 0);
  } else {
    if (p->centred) {
      EACH_PIECE(p, r, i, n) mean += (double)sum_of(piece_of_x(w, r, i, n, from, to), n);
      mean /= n_all;
    }
    EACH_PIECE(p, r, i, n) var += (double)squares_of(piece_of_x(w, r, i, n, from, to), (float)mean, n);
    var /= n_all;
  }
  const double rstd = 1 / sqrt(var + p->eps), m = p->momentum;
  const float scale = p->along ? 1 : (float)number(w, SCALE, 1), shift = p->along ? 0 : (float)number(w, SHIFT, 0);
  EACH_PIECE(p, r, i, n) {
    float *y = piece_out(w, r, i, to);
    const float *x = piece_of_x(w, r, i, n, from, parameter);
    if (w->sum) row_from_f32(w->sum + (r * p->run_step[X] + i) * qn_kit_bytes(p->sum_dtype), x, p->sum_dtype, n);
    if (!p->along && w->at[SCALE] && w->at[SHIFT]) {
      normalize_all(y, x, (float)mean, (float)rstd, p->by_run ? of_run(w, SCALE, r) : scale, p->by_run ? of_run(w, SHIFT, r) : shift, n);
      piece_done(w, r, i, n, y);
      continue;
    }
    normalize(y, x, (float)mean, (float)rstd, n);
    if (p->along) {
      if (w->at[SCALE]) scale_each(y, y, piece(w, SCALE, 0, i, n, parameter), n);
      if (w->at[SHIFT]) shift_each(y, piece(w, SHIFT, 0, i, n, parameter), n);
    } else {
      if (w->at[SCALE]) scale_all(y, y, p->by_run ? of_run(w, SCALE, r) : scale, n);
      if (w->at[SHIFT]) shift_all(y, p->by_run ? of_run(w, SHIFT, r) : shift, n);
    }
    piece_done(w, r, i, n, y);
  }
  if (p->given) return;
  put(w, MEAN, mean);
  put(w, RSTD, rstd);
  put(w, NEW_MEAN, (1 - m) * number(w, RUNNING_MEAN, 0) + m * mean);
  put(w, NEW_VAR, (1 - m) * number(w, RUNNING_VAR, 0) + m * (n_all > 1 ? var * n_all / (n_all - 1) : var));
}

static void backward_group(const place *w)
{
  const problem *p = w->p;
  const double n_all = (double)p->runs * (double)p->length;
  const float mean = (float)number(w, MEAN, 0), rstd = (float)number(w, RSTD, 1), scale = p->along ? 1 : (float)number(w, SCALE, 1);
  float from[SPAN], given[SPAN], parameter[SPAN], h[SPAN], g[SPAN], to[SPAN];
  double sum_g = 0, sum_gh = 0, sum_dy = 0, sum_dyh = 0;
  for (int pass = 0; pass < 2; pass++) {
    const float a = (float)(p->centred ? sum_g / n_all : 0), b = (float)(sum_gh / n_all);
    EACH_PIECE(p, r, i, n) {
      const float *dy = piece(w, DY, r, i, n, given), *at = dy;
      normalize(h, piece(w, X, r, i, n, from), mean, rstd, n);
      if (w->at[SCALE]) {
        if (p->along) scale_each(g, dy, piece(w, SCALE, 0, i, n, parameter), n);
        else scale_all(g, dy, scale, n);
        at = g;
      }
      if (pass) {
        float *dx = piece_out(w, r, i, to);
        gradient(dx, at, h, rstd, a, b, n);
        piece_done(w, r, i, n, dx);
        if (w->by_scale) {
          add_products(w->by_scale + i, dy, h, n);
          add_each(w->by_shift + i, dy, n);
        }
        continue;
      }
      sum_g += (double)sum_of(at, n);
      sum_gh += (double)dot_of(at, h, n);
      if (!p->along && w->at[DSHIFT]) sum_dy += (double)sum_of(dy, n);
      if (!p->along && w->at[DSCALE]) sum_dyh += (double)dot_of(dy, h, n);
    }
  }
  if (p->along) return;
  put(w, DSCALE, sum_dyh);
  put(w, DSHIFT, sum_dy);
}

/* ---- prepare ---------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const char *const names[TENSORS] = { "x", "y", "dy", "scale", "shift", "mean", "rstd", "var", "running_mean", "running_var",
                                            "new_mean", "new_var", "dscale", "dshift" };

/* One element for each group. */
static bool for_each_group(const qn_value *v, const qn_value *x, uint64_t mask)
{
  for (int32_t d = 0; d < x->rank; d++)
    if (v->dim[d] != (mask >> d & 1 ? 1 : x->dim[d])) return false;
  return true;
}

/* x's dims and steps where it is normalized over. */
static bool like_a_run(const qn_value *v, const qn_value *x, uint64_t mask)
{
  for (int32_t d = 0; d < x->rank; d++)
    if (mask >> d & 1 ? v->dim[d] != x->dim[d] || (v->dim[d] != 1 && v->stride[d] != x->stride[d]) : v->dim[d] != 1) return false;
  return true;
}

/* x's dims or 1. */
static bool broadcasts(const qn_value *v, const qn_value *x)
{
  for (int32_t d = 0; d < x->rank; d++)
    if (v->dim[d] != 1 && v->dim[d] != x->dim[d]) return false;
  return true;
}

/* What lies between: the dims normalized over as runs, the others as a nest. */
static qn_status read_layout(const qn_value *const v[TENSORS], uint64_t mask, problem *p, qn_prepared *prepared)
{
  const qn_value *x = v[X];
  qn_nest walked = { .n = p->by_run ? 5 : 3 };
  p->nest = (qn_nest){ .n = TENSORS };
  p->groups = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    qn_nest *nest = mask >> d & 1 ? &walked : &p->nest;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < nest->n; t++) {
      const bool lone = t > DY && v[t] && v[t]->dim[d] == 1;            /* a parameter that lies like a run */
      nest->stride[t][nest->rank] = lone ? 0 : v[t] ? v[t]->stride[d] : t < 3 ? x->stride[d] : nest->stride[t - 1][nest->rank];
    }
    nest->rank++;
    if (nest == &p->nest) p->groups *= x->dim[d];
  }
  qn_nest_simplify(&p->nest);
  qn_nest_simplify(&walked);
  const int32_t last = walked.rank - 1;
  bool runs = walked.rank <= 2;
  for (int t = 0; t < walked.n && last >= 0; t++) runs &= t <= DY ? walked.stride[t][last] == 1 : !v[t] || walked.stride[t][last] == 0;
  if (!runs || (p->along && walked.rank == 2))
    return qn_refuse(prepared, "groups must be contiguous, or few runs that are", "x", "channels first, or the last dims", "%s", "other strides");
  p->length = last < 0 ? 1 : walked.dim[last];
  p->runs = walked.rank == 2 ? walked.dim[0] : 1;
  if (p->length < 16 && p->runs > 1) return qn_refuse(prepared, "runs must be long enough to be worth it", "x", "16 elements", "%lld", (long long)p->length);
  for (int t = 0; t < walked.n; t++) p->run_step[t] = walked.rank == 2 ? walked.stride[t][0] : 0;
  return QN_OK;
}

/* How many ops it takes: y's followers, if y can be counted by places, and then the addition that makes x. */
static uint32_t take_more(const qn_request *request, const qn_value *v[TENSORS], uint64_t mask, problem *p, qn_prepared *prepared)
{
  const int32_t x = p->value[X];
  const int taken = cpu_program_make(request, 1, request->n_ops - 1, p->value[Y], &p->program, prepared);
  if (taken > 0) {
    qn_value counted = *v[Y];
    const qn_value *const y = v[Y];
    cpu_count_places(&counted);
    v[Y] = &counted;
    p->followed = !read_layout(v, mask, p, prepared);
    v[Y] = y;
    if (!p->followed) read_layout(v, mask, p, prepared);
  }
  const uint32_t n = p->followed ? 1 + (uint32_t)taken : 1;
  const qn_node *add = n < request->n_ops ? &request->op[n] : NULL;
  if (!add || add->op != QN_OP_ADD || qn_role(add, QN_ROLE_ADD_Y) != x) return n;
  for (int32_t k = 0; k < 2; k++) {
    const qn_value *term = &request->value[add->arg[k]];
    if (term->producer >= 0 || term->dtype != v[X]->dtype || !qn_same_layout(term, v[X])) return n;
  }
  if (v[X]->flags & QN_VALUE_ESCAPE || v[X]->last_user > (int32_t)n) p->sum = x;
  p->sum_dtype = v[X]->dtype;
  p->value[X] = qn_role(add, QN_ROLE_ADD_A);
  p->second = qn_role(add, QN_ROLE_ADD_B);
  return n + 1;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *node = &request->op[0];
  const qn_norm *norm = node->attr;
  const qn_norm_roles a = qn_norm_roles_of(node->op);
  const int8_t role[TENSORS] = { a.x, a.y < 0 ? a.dx : a.y, a.dy, a.scale, a.shift, a.mean, a.rstd, a.var, a.running_mean, a.running_var,
                                 a.new_mean, a.new_var, a.dscale, a.dshift };
  problem p = { .backward = a.dy >= 0, .given = a.var >= 0, .eps = norm->eps, .momentum = norm->momentum, .second = -1, .sum = -1,
                .centred = node->op != QN_OP_RMS_NORM && node->op != QN_OP_RMS_NORM_BACKWARD };
  const qn_value *v[TENSORS];
  for (int t = 0; t < TENSORS; t++) {
    p.value[t] = qn_role_at(node, role[t]);
    v[t] = p.value[t] < 0 ? NULL : &request->value[p.value[t]];
    if (v[t]) p.dtype[t] = v[t]->dtype;
    if (v[t] && v[t]->dtype == QN_F64) return qn_refuse(prepared, "computes in f32", names[t], "f32, f16, bf16", "f64");
  }
  bool grouped = true, along = true;
  for (int t = SCALE; t < TENSORS; t++) {
    if (!v[t] || (t != SCALE && t != SHIFT && t != DSCALE && t != DSHIFT)) continue;
    grouped &= for_each_group(v[t], v[X], norm->mask);
    along &= like_a_run(v[t], v[X], norm->mask);
    p.by_run = !grouped && !along;
    if (p.by_run && (p.backward || !broadcasts(v[t], v[X])))
      return qn_refuse(prepared, "parameters have an element for each group, forward for each run, or lie like one", names[t], "either", "%s", "other dims or steps");
  }
  p.along = !grouped && !p.by_run;
  if ((status = read_layout(v, norm->mask, &p, prepared))) return status;
  prepared->n_ops = p.backward || request->n_ops == 1 ? 1 : take_more(request, v, norm->mask, &p, prepared);
  if (p.followed) p.runner = cpu_tile_runner(request->device);
  if (p.along && p.backward && (p.value[DSCALE] >= 0 || p.value[DSHIFT] >= 0)) {
    p.shares = p.groups >= 2 * LEAST_SHARE ? qn_min_i64(SHARES, p.groups / LEAST_SHARE) : 0;
    prepared->workspace = (uint64_t)(p.shares * 2 * p.length) * sizeof(float);
  }

  return cpu_keep(prepared, &p, sizeof p);
}

#endif

/* ---- run -------------------------------------------------------------------------------------------------------------- */

static void locate(place *w, const qn_walk *walk, const qn_launch *launch)
{
  for (int t = 0; t < TENSORS; t++)
    w->at[t] = w->p->value[t] < 0 || (t == Y && w->p->followed) ? NULL
             : (char *)launch->ptr[w->p->value[t]] + walk->offset[t] * qn_kit_bytes(w->p->dtype[t]);
  const problem *p = w->p;
  if (p->second >= 0) w->second = (char *)launch->ptr[p->second] + walk->offset[X] * qn_kit_bytes(p->dtype[X]);
  if (p->sum >= 0) w->sum = (char *)launch->ptr[p->sum] + walk->offset[X] * qn_kit_bytes(p->sum_dtype);
  if (p->followed) w->y = walk->offset[Y];
}

static void run_groups(const problem *p, const qn_launch *launch, int64_t first, int64_t end, float *sums)
{
  qn_walk walk;
  place w = { .p = p, .ptr = launch->ptr };
  if (sums) {
    memset(sums, 0, (size_t)(2 * p->length) * sizeof *sums);
    w.by_scale = sums, w.by_shift = sums + p->length;
  }
  qn_walk_begin(&walk, &p->nest, p->nest.rank, first);
  for (int64_t i = first; i < end; i++, qn_walk_next(&walk)) {
    locate(&w, &walk, launch);
    if (p->backward) backward_group(&w); else forward_group(&w);
  }
}

static void join_shares(const problem *p, const qn_launch *launch)
{
  for (int t = DSCALE; t <= DSHIFT; t++)
    for (int64_t j = 0; j < p->length && p->value[t] >= 0; j++) {
      const float *from = (const float *)launch->workspace + (t == DSHIFT) * p->length + j;
      double sum = 0;
      for (int64_t k = 0; k < p->shares; k++) sum += (double)from[2 * k * p->length];
      qn_store_f64((char *)launch->ptr[p->value[t]] + j * qn_kit_bytes(p->dtype[t]), p->dtype[t], sum);
    }
}

/* dscale and dshift that lie like a run: columns first to end, over all groups in order. */
static void run_columns(const problem *p, const qn_launch *launch, int64_t first, int64_t n)
{
  double by_scale[COLUMNS] = { 0 }, by_shift[COLUMNS] = { 0 };
  float from[COLUMNS], given[COLUMNS], h[COLUMNS];
  qn_walk walk;
  place w = { .p = p, .ptr = launch->ptr };
  qn_walk_begin(&walk, &p->nest, p->nest.rank, 0);
  for (int64_t i = 0; i < p->groups; i++, qn_walk_next(&walk)) {
    locate(&w, &walk, launch);
    const float *dy = piece(&w, DY, 0, first, n, given);
    normalize(h, piece(&w, X, 0, first, n, from), (float)number(&w, MEAN, 0), (float)number(&w, RSTD, 1), n);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
      by_scale[j] += (double)(dy[j] * h[j]);
      by_shift[j] += (double)dy[j];
    }
  }
  for (int t = DSCALE; t <= DSHIFT; t++)
    for (int64_t j = 0; j < n && w.at[t]; j++)
      qn_store_f64(w.at[t] + (first + j) * qn_kit_bytes(p->dtype[t]), p->dtype[t], t == DSCALE ? by_scale[j] : by_shift[j]);
}

CPU_RUNS(cpu_norm_runs_run);
qn_status CPU_NAME(cpu_norm_runs_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  const int64_t work = p->groups * p->runs * p->length * 4;
  const int64_t threads = qn_min_i64(cpu_threads(launch, work), p->groups), shares = p->shares ? p->shares : threads;
#pragma omp parallel for num_threads((int)threads) schedule(static, 1) if (threads > 1)
  for (int64_t k = 0; k < shares; k++)
    run_groups(p, launch, k * p->groups / shares, (k + 1) * p->groups / shares, p->shares ? (float *)launch->workspace + 2 * k * p->length : NULL);
  if (p->shares) {
    join_shares(p, launch);
    return QN_OK;
  }
  if (!p->backward || !p->along || (p->value[DSCALE] < 0 && p->value[DSHIFT] < 0)) return QN_OK;
  const int64_t blocks = qn_ceil_div(p->length, COLUMNS), team = qn_min_i64(cpu_threads(launch, work), blocks);
#pragma omp parallel for num_threads((int)team) schedule(static, 1) if (team > 1)
  for (int64_t block = 0; block < blocks; block++)
    run_columns(p, launch, block * COLUMNS, qn_min_i64(COLUMNS, p->length - block * COLUMNS));
  return QN_OK;
}

#ifdef CPU_BASELINE
#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
    .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run)                                                                                          \
  ROW(name, run, QN_OP_LAYER_NORM), ROW(name, run, QN_OP_LAYER_NORM_BACKWARD), ROW(name, run, QN_OP_RMS_NORM),    \
  ROW(name, run, QN_OP_RMS_NORM_BACKWARD), ROW(name, run, QN_OP_BATCH_NORM), ROW(name, run, QN_OP_BATCH_NORM_BACKWARD), \
  ROW(name, run, QN_OP_BATCH_NORM_INFERENCE),
static const qn_engine row[] = { CPU_COPIES(ROWS, "runs", cpu_norm_runs_run) };
const qn_engine_list cpu_norm_runs = { row, sizeof row / sizeof *row };
#endif
