/* norm_runs.c -- normalization and its gradients where a group of elements that share statistics is one contiguous run
 * or several (layer and RMS norm, instance norm, batch norm with channels first).
 *
 *   y = h scale + shift, h = (x - mean) rstd        dx = rstd (g - mean g - h mean(g h)), g = dy scale
 *
 * A group is done by one thread: a pass for the mean, one for the variance, one for y, in cache if it fits. Parameters have
 * one element per group, or are laid out like a run, or (group norm) have one element per run. dscale and dshift of the second kind are
 * summed in shares of the groups, or if groups are few in a separate pass, a block of columns per thread; of the third kind each run's
 * sums are stored and merged: the number of threads changes nothing. Sums use f32 lanes over a piece, and double over pieces.
 *
 * In f32, forward, x may be a sum a + b, stored if needed elsewhere, and y passes through the pointwise ops that follow
 * (pointwise_tile.h), piece by piece. */
#include <quern/program.h>
#include "kit/convert.h"
#include "cpu_ref.h"
#include "norm_range.h"
#include "norm_runs_loops.h"
#include "kit/pointwise_tile.h"

enum { SPAN = 4096 / sizeof(real),        /* elements of a piece */
       ROOM = SPAN + 128 / sizeof(real),  /* of its buffer: neighbours a page apart would wait for each other's stores */
       SHORTEST_RUN = 16,                 /* elements, where a group has several */
       COLUMNS = 256,                     /* of a block of dscale and dshift */
       SHARES = 16,                       /* of groups whose dscale and dshift are summed separately, */
       LEAST_SHARE = 16, MOST_SHARE = 2048 };     /*   and groups of one */
enum { X, Y, DY, SCALE, SHIFT, MEAN, RSTD, VAR, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN, NEW_VAR, DSCALE, DSHIFT, TENSORS };

typedef struct problem {
  bool     backward, centred, given;      /* given: mean and var are inputs */
  bool     along, by_run;                 /* parameters are laid out like a run, or have an element per run */
  int64_t  groups, runs, length;
  int64_t  shares;                        /* for dscale and dshift along a run; 0: a separate pass */
  int64_t  joined;                        /* groups whose runs share dscale and dshift, `groups / joined` apart; 0: not wanted */
  int64_t  run_step[TENSORS];             /* in elements */
  double   eps, momentum;
  int32_t  value[TENSORS];                /* -1: absent */
  uint32_t dtype[TENSORS];
  qn_nest  nest;                          /* the dims not normalized over */
  int32_t  second, sum;                   /* x is a sum: the value added to it, and the result; -1: not */
  uint32_t sum_dtype;
  bool     followed;                      /* y goes to the program; its steps then count its elements */
#ifndef CPU_REAL_F64
  cpu_program program;
  cpu_tile_fn *runner;
#endif
} problem;

/* ---- a group ------------------------------------------------------------------------------------------------ */

typedef struct place {                    /* addresses of a group's tensors; NULL: absent */
  const problem *p;
  char   *at[TENSORS], *second, *sum;
  int64_t y;                              /* its element number, if followed */
  const real *scale, *shift;              /* along a run, if that is one piece */
  real   (*kept)[ROOM];                   /* room for pieces of both */
  real   *by_scale, *by_shift;            /* accumulators of the share's dscale and dshift */
  double *by_run;                         /* [2, runs]: of the group */
  void *const *ptr;                       /* of the current launch */
} place;

static double number(const place *w, int t, double absent) { return w->at[t] ? qn_load_f64(w->at[t], w->p->dtype[t]) : absent; }
static void put(const place *w, int t, double v) { if (w->at[t]) qn_store_f64(w->at[t], w->p->dtype[t], v); }

/* The parameter of run r: the run's own, or the group's. */
static real of_run(const place *w, int t, int64_t r, double absent)
{
  if (!w->at[t]) return (real)absent;
  return (real)qn_load_f64(w->at[t] + (w->p->by_run ? r * w->p->run_step[t] : 0) * qn_kit_bytes(w->p->dtype[t]), w->p->dtype[t]);
}

static const real *widened(const char *from, uint32_t dtype, int64_t n, real *buffer)
{
  if (dtype == CPU_REAL) return (const real *)(const void *)from;
  row_to_real(buffer, from, dtype, n);
  return buffer;
}

/* n elements of run r from the i-th on: in place, or converted into buffer. */
static const real *piece(const place *w, int t, int64_t r, int64_t i, int64_t n, real *buffer)
{
  const int64_t step = t < 3 ? w->p->run_step[t] : 0;
  return widened(w->at[t] + (r * step + i) * qn_kit_bytes(w->p->dtype[t]), w->p->dtype[t], n, buffer);
}

/* n elements of x, plus b if x is a sum; uses buffer and other. */
static const real *piece_of_x(const place *w, int64_t r, int64_t i, int64_t n, real *buffer, real *other)
{
  const real *x = piece(w, X, r, i, n, buffer);
  if (!w->second) return x;
  const real *b = widened(w->second + (r * w->p->run_step[X] + i) * qn_kit_bytes(w->p->dtype[X]), w->p->dtype[X], n, other);
#pragma omp simd
  for (int64_t k = 0; k < n; k++) buffer[k] = x[k] + b[k];
  return buffer;
}

/* n elements of scale or shift laid out like a run; absent shift: -0, which changes no sum. */
static const real *parameter(const place *w, int t, int64_t i, int64_t n, real *buffer)
{
  const real *kept = t == SCALE ? w->scale : w->shift;
  if (kept) return kept;
  if (w->at[t]) return piece(w, t, 0, i, n, buffer);
  for (int64_t k = 0; k < n; k++) buffer[k] = t == SCALE ? 1 : (real)-0.0;
  return buffer;
}

static real *piece_out(const place *w, int64_t r, int64_t i, real *buffer)
{
  return w->p->dtype[Y] == CPU_REAL && !w->p->followed ? (real *)(void *)w->at[Y] + r * w->p->run_step[Y] + i : buffer;
}
static void piece_done(const place *w, int64_t r, int64_t i, int64_t n, const real *buffer)
{
  const int64_t at = r * w->p->run_step[Y] + i;
#ifndef CPU_REAL_F64
  if (w->p->followed) {
    w->p->runner(&w->p->program, w->ptr, buffer, w->y + at, n);
    return;
  }
#endif
  if (w->p->dtype[Y] != CPU_REAL) row_from_real(w->at[Y] + at * qn_kit_bytes(w->p->dtype[Y]), buffer, w->p->dtype[Y], n);
}

#define EACH_PIECE(p, r, i, n)                                     \
  for (int64_t r = 0; r < (p)->runs; r++)                          \
    for (int64_t i = 0, n; i < (p)->length && (n = qn_min_i64(SPAN, (p)->length - i), 1); i += SPAN)

static bool one_piece(const problem *p) { return p->runs == 1 && p->length <= SPAN; }

/* Of the group's elements times `by`, a power of two. whole: the group, if it is one piece; else read into from and other. */
typedef struct statistics { double mean, var; real by; } statistics;

static const real *scaled_piece(const place *w, int64_t r, int64_t i, int64_t n, real by, real *from, real *other)
{
  const real *x = piece_of_x(w, r, i, n, from, other);
  if (by == 1) return x;
  multiply(from, x, by, n);
  return from;
}

static statistics statistics_of(const place *w, const real *whole, real by, real *from, real *other)
{
  const problem *p = w->p;
  const double n_all = (double)p->runs * (double)p->length;
  total sum = { 0 }, rest = { 0 }, squares = { 0 };
  if (p->centred) EACH_PIECE(p, r, i, n) add_sum(&sum, whole ? whole : scaled_piece(w, r, i, n, by, from, other), n);
  const real about = (real)(total_of(&sum) / n_all);
  EACH_PIECE(p, r, i, n) {
    const real *x = whole ? whole : scaled_piece(w, r, i, n, by, from, other);
    if (p->centred) add_spread_about(&rest, &squares, x, about, n);
    else add_squares(&squares, x, n);
  }
  const double off = isfinite(about) ? total_of(&rest) / n_all : 0;
  return (statistics){ (double)about + off, norm_var(total_of(&squares) / n_all, off), by };
}

/* The power of two that brings a group's elements near 1. */
static real power_of(const place *w, real *from, real *other)
{
  real most = 0;
  EACH_PIECE(w->p, r, i, n) most = largest_of(piece_of_x(w, r, i, n, from, other), most, n);
  return norm_power(most, w->p->eps);
}

static void forward_group(const place *w)
{
  const problem *p = w->p;
  real from[ROOM], to[ROOM], (*buffer)[ROOM] = w->kept;
  const real *whole = one_piece(p) ? piece_of_x(w, 0, 0, p->length, from, to) : NULL;       /* read once */
  statistics s;
  if (p->given) {
    const real by = norm_power_given(number(w, MEAN, 0));
    s = (statistics){ number(w, MEAN, 0) * by, number(w, VAR, 0) * by * by, by };
  } else {
    s = statistics_of(w, whole, 1, from, to);
    if (!norm_is_plain(s.mean, s.var, p->eps)) s = statistics_of(w, whole = NULL, power_of(w, from, to), from, to);
  }
  const double rstd = 1 / sqrt(s.var + p->eps * s.by * s.by), m = p->momentum;
  const real by_rstd = norm_rstd(rstd);
  EACH_PIECE(p, r, i, n) {
    const real *x = whole ? whole : piece_of_x(w, r, i, n, from, to);
    if (w->sum) row_from_real(w->sum + (r * p->run_step[X] + i) * qn_kit_bytes(p->sum_dtype), x, p->sum_dtype, n);
    if (s.by != 1) multiply(from, x, s.by, n), x = from;
    real *y = piece_out(w, r, i, to);
    if (p->along)
      normalize_each(y, x, (real)s.mean, by_rstd, parameter(w, SCALE, i, n, buffer[0]), parameter(w, SHIFT, i, n, buffer[1]), n);
    else normalize_all(y, x, (real)s.mean, by_rstd, of_run(w, SCALE, r, 1), of_run(w, SHIFT, r, -0.0), n);
    piece_done(w, r, i, n, y);
  }
  if (p->given) return;
  const double n_all = (double)p->runs * (double)p->length, mean = s.mean / s.by, var = s.var / s.by / s.by;
  put(w, MEAN, mean);
  put(w, RSTD, rstd * s.by);
  put(w, NEW_MEAN, (1 - m) * number(w, RUNNING_MEAN, 0) + m * mean);
  put(w, NEW_VAR, (1 - m) * number(w, RUNNING_VAR, 0) + m * (n_all > 1 ? var * n_all / (n_all - 1) : var));
}

/* A piece of run r: adds its sums for dscale and dshift and, weighted by its scale, those of the group. */
static void add_run(const place *w, double *sum, double *along, const real *dy, const real *x, real mean, real rstd, int64_t r, int64_t n)
{
  const real scale = of_run(w, SCALE, r, 1);
  double s = 0, t = 0;
  add_all(&s, &t, dy, x, mean, rstd, n);
  if (w->by_run) w->by_run[r] += t, w->by_run[w->p->runs + r] += s;
  if (isinf(scale)) {                     /* term by term, since each has its own sign */
    s = t = 0;
    for (int64_t i = 0; i < n; i++) s += (double)(dy[i] * scale), t += (double)(dy[i] * scale * ((x[i] - mean) * rstd));
    *sum += s, *along += t;
  } else *sum += (double)scale * s, *along += (double)scale * t;
}

static void backward_group(const place *w)
{
  const problem *p = w->p;
  const bool one_scale = !p->along && !p->by_run;
  const double n_all = (double)p->runs * (double)p->length, scale = one_scale ? number(w, SCALE, 1) : 1;
  const double finite = isinf(scale) ? NAN : scale;        /* NaN whatever the signs: Inf - Inf */
  const real mean = (real)number(w, MEAN, 0), rstd = (real)number(w, RSTD, 1);
  real from[ROOM], given[ROOM], *buffer = w->kept[0], to[ROOM];
  const real *x = NULL, *dy = NULL;
  double sum = 0, along = 0;
  EACH_PIECE(p, r, i, n) {
    x = piece(w, X, r, i, n, from), dy = piece(w, DY, r, i, n, given);
    if (p->along) add_each(&sum, &along, dy, x, mean, rstd, parameter(w, SCALE, i, n, buffer), n);
    else if (p->by_run) add_run(w, &sum, &along, dy, x, mean, rstd, r, n);
    else add_all(&sum, &along, dy, x, mean, rstd, n);
  }
  if (one_scale) {
    put(w, DSCALE, along);
    put(w, DSHIFT, sum);
  }
  const real a = (real)(p->centred ? finite * sum / n_all : 0), b = (real)(finite * along / n_all);
  EACH_PIECE(p, r, i, n) {
    if (!one_piece(p)) x = piece(w, X, r, i, n, from), dy = piece(w, DY, r, i, n, given);
    if (w->by_scale) add_by_place(w->by_scale + i, w->by_shift + i, dy, x, mean, rstd, n);
    real *dx = piece_out(w, r, i, to);
    if (p->along) gradient_each(dx, dy, x, mean, rstd, parameter(w, SCALE, i, n, buffer), a, b, n);
    else gradient_all(dx, dy, x, mean, rstd, p->by_run ? of_run(w, SCALE, r, 1) : (real)scale, a, b, n);
    piece_done(w, r, i, n, dx);
  }
}

/* ---- prepare ---------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static const char *const names[TENSORS] = { "x", "y", "dy", "scale", "shift", "mean", "rstd", "var", "running_mean", "running_var",
                                            "new_mean", "new_var", "dscale", "dshift" };

/* Has v one element per group? */
static bool for_each_group(const qn_value *v, const qn_value *x, uint64_t mask)
{
  for (int32_t d = 0; d < x->rank; d++)
    if (v->dim[d] != (mask >> d & 1 ? 1 : x->dim[d])) return false;
  return true;
}

/* Has v x's dims and strides where normalized over? */
static bool like_a_run(const qn_value *v, const qn_value *x, uint64_t mask)
{
  for (int32_t d = 0; d < x->rank; d++)
    if (mask >> d & 1 ? v->dim[d] != x->dim[d] || (v->dim[d] != 1 && v->stride[d] != x->stride[d]) : v->dim[d] != 1) return false;
  return true;
}

/* Is each dim of v x's or 1? */
static bool broadcasts(const qn_value *v, const qn_value *x)
{
  for (int32_t d = 0; d < x->rank; d++)
    if (v->dim[d] != 1 && v->dim[d] != x->dim[d]) return false;
  return true;
}

/* Splits the layout: the dims normalized over into runs, the others into a nest. */
static qn_status read_layout(const qn_value *const v[TENSORS], uint64_t mask, problem *p, qn_prepared *prepared)
{
  const qn_value *x = v[X];
  qn_nest walked = { .n = p->by_run ? TENSORS : 3 };
  p->nest = (qn_nest){ .n = TENSORS };
  p->groups = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    qn_nest *nest = mask >> d & 1 ? &walked : &p->nest;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < nest->n; t++) {
      const bool lone = t > DY && v[t] && v[t]->dim[d] == 1;            /* a parameter laid out like a run */
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
    return qn_refuse(prepared, "groups must be contiguous, or few runs that are", "x", "channels first, or the last dims", "%s",
                     "other strides");
  p->length = last < 0 ? 1 : walked.dim[last];
  p->runs = walked.rank == 2 ? walked.dim[0] : 1;
  if (p->length < SHORTEST_RUN && p->runs > 1)
    return qn_refuse(prepared, "length of contiguous groups", "x", "at least 16", "%lld", (long long)p->length);
  for (int t = 0; t < walked.n; t++) p->run_step[t] = walked.rank == 2 ? walked.stride[t][0] : 0;
  return QN_OK;
}

/* The same; but with statistics given each run is a group of its own if it is long enough, so that memory is walked in order, image by
 * image: of *mask the innermost dims are left. */
static qn_status read_groups(const qn_value *const v[TENSORS], uint64_t *mask, problem *p, qn_prepared *prepared)
{
  uint64_t inner = 0;
  for (int32_t d = v[X]->rank - 1; d >= 0 && *mask >> d & 1; d--) inner |= (uint64_t)1 << d;
  const bool apart = p->given && !p->along && !p->by_run && inner;
  if (apart && !read_layout(v, inner, p, prepared) && p->length >= SHORTEST_RUN) return *mask = inner, QN_OK;
  return read_layout(v, *mask, p, prepared);
}

/* Are both summed over the same dims? */
static bool summed_alike(const problem *p, int a, int b)
{
  bool alike = (p->run_step[a] == 0) == (p->run_step[b] == 0);
  for (int32_t d = 0; d < p->nest.rank; d++) alike &= (p->nest.stride[a][d] == 0) == (p->nest.stride[b][d] == 0);
  return alike;
}

/* Finds the outer dims whose groups share dscale and dshift; the inner ones have their own. */
static qn_status count_joined(const qn_value *const v[TENSORS], problem *p, qn_prepared *prepared)
{
  p->joined = 1;
  int32_t d = 0;
  const int t = v[DSCALE] ? DSCALE : DSHIFT;
  for (; d < p->nest.rank && p->nest.stride[t][d] == 0; d++) p->joined *= p->nest.dim[d];
  bool own = p->runs == 1 || p->run_step[t] != 0;
  for (; d < p->nest.rank; d++) own &= p->nest.stride[t][d] != 0;
  if (own && (!v[DSCALE] || !v[DSHIFT] || summed_alike(p, DSCALE, DSHIFT))) return QN_OK;
  return qn_refuse(prepared, "gradients of parameters have an element for each run", names[t], "1 along the outer dims alone", "%s",
                   "other dims");
}

#ifndef CPU_REAL_F64
/* How many ops are taken: the ops after y, if y's elements can be numbered in order, and the addition that produces x. */
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
  qn_program before;
  int32_t term[2];
  if (n == request->n_ops || qn_program_read_before(&before, request, n, 1, x) || !qn_program_is_sum(&before, request, term)) return n;
  if (before.step[0].write) p->sum = x;
  p->sum_dtype = v[X]->dtype;
  p->value[X] = term[0];
  p->second = term[1];
  return n + 1;
}
#endif

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
    if (v[t] && (v[t]->dtype == QN_F64) != (CPU_REAL == QN_F64))
      return qn_refuse(prepared, "computes in " CPU_REAL_NAME, names[t], CPU_REALS, "%s", qn_kit_name(v[t]->dtype));
  }
  bool grouped = true, along = true;
  for (int t = SCALE; t < TENSORS; t++) {
    if (!v[t] || (t != SCALE && t != SHIFT && t != DSCALE && t != DSHIFT)) continue;
    grouped &= for_each_group(v[t], v[X], norm->mask);
    along &= like_a_run(v[t], v[X], norm->mask);
    p.by_run = !grouped && !along;
    if (p.by_run && !broadcasts(v[t], v[X]))
      return qn_refuse(prepared, "parameters have an element for each group or run, or are strided like one", names[t], "either", "%s",
                       "other dims or steps");
  }
  p.along = !grouped && !p.by_run;
  uint64_t mask = norm->mask;
  if ((status = read_groups(v, &mask, &p, prepared))) return status;
  if (p.backward && p.length * p.runs == 1)     /* per group or per run? depends on the number of groups: other bits */
    return qn_refuse(prepared, "gradients by one element are no sums", "x", "2 elements to normalize over", "%s", "1");
#ifndef CPU_REAL_F64
  prepared->n_ops = p.backward || request->n_ops == 1 ? 1 : take_more(request, v, mask, &p, prepared);
  if (p.followed) p.runner = cpu_tile_runner(request->device);
#endif
  const bool wanted = p.value[DSCALE] >= 0 || p.value[DSHIFT] >= 0;
  if (p.by_run && wanted) {
    if ((status = count_joined(v, &p, prepared))) return status;
    prepared->workspace = (uint64_t)(p.groups * 2 * p.runs) * sizeof(double);
  }
  if (p.along && wanted) {
    p.shares = p.groups >= 2 * LEAST_SHARE ? qn_max_i64(qn_min_i64(SHARES, p.groups / LEAST_SHARE), p.groups / MOST_SHARE) : 0;
    prepared->workspace = (uint64_t)(p.shares * 2 * p.length) * sizeof(real);
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

static void run_groups(const problem *p, const qn_launch *launch, int64_t first, int64_t end, real *sums)
{
  double *const by_run = launch->workspace;
  qn_walk walk;
  real kept[2][ROOM];
  place w = { .p = p, .kept = kept, .ptr = launch->ptr };
  if (sums) {
    memset(sums, 0, (size_t)(2 * p->length) * sizeof *sums);
    w.by_scale = sums, w.by_shift = sums + p->length;
  }
  qn_walk_begin(&walk, &p->nest, p->nest.rank, first);
  for (int64_t i = first; i < end; i++, qn_walk_next(&walk)) {
    locate(&w, &walk, launch);
    if (p->joined) {
      w.by_run = by_run + i * 2 * p->runs;
      memset(w.by_run, 0, (size_t)(2 * p->runs) * sizeof *by_run);
    }
    if (p->along && one_piece(p) && i == first) {
      w.scale = parameter(&w, SCALE, 0, p->length, kept[0]);
      w.shift = parameter(&w, SHIFT, 0, p->length, kept[1]);
    }
    if (p->backward) backward_group(&w); else forward_group(&w);
  }
}

static void join_shares(const problem *p, const qn_launch *launch)
{
  for (int t = DSCALE; t <= DSHIFT; t++)
    for (int64_t j = 0; j < p->length && p->value[t] >= 0; j++) {
      const real *from = (const real *)launch->workspace + (t == DSHIFT) * p->length + j;
      double sum = 0;
      for (int64_t k = 0; k < p->shares; k++) sum += (double)from[2 * k * p->length];
      qn_store_f64((char *)launch->ptr[p->value[t]] + j * qn_kit_bytes(p->dtype[t]), p->dtype[t], sum);
    }
}

static void join_runs(const problem *p, const qn_launch *launch)
{
  const double *by_run = launch->workspace;
  const int64_t own = p->groups / p->joined;
  qn_walk walk;
  place w = { .p = p, .ptr = launch->ptr };
  qn_walk_begin(&walk, &p->nest, p->nest.rank, 0);
  for (int64_t i = 0; i < own; i++, qn_walk_next(&walk)) {
    locate(&w, &walk, launch);
    for (int t = DSCALE; t <= DSHIFT; t++)
      for (int64_t r = 0; r < p->runs && w.at[t]; r++) {
        double sum = 0;
        for (int64_t k = i; k < p->groups; k += own) sum += by_run[(2 * k + (t == DSHIFT)) * p->runs + r];
        qn_store_f64(w.at[t] + r * p->run_step[t] * qn_kit_bytes(p->dtype[t]), p->dtype[t], sum);
      }
  }
}

/* dscale and dshift laid out like a run: n columns from `first` on, over all groups in order. */
static void run_columns(const problem *p, const qn_launch *launch, int64_t first, int64_t n)
{
  double by_scale[COLUMNS] = { 0 }, by_shift[COLUMNS] = { 0 };
  real from[COLUMNS], given[COLUMNS];
  qn_walk walk;
  place w = { .p = p, .ptr = launch->ptr };
  qn_walk_begin(&walk, &p->nest, p->nest.rank, 0);
  for (int64_t i = 0; i < p->groups; i++, qn_walk_next(&walk)) {
    locate(&w, &walk, launch);
    const real *dy = piece(&w, DY, 0, first, n, given), *x = piece(&w, X, 0, first, n, from);
    const real mean = (real)number(&w, MEAN, 0), rstd = (real)number(&w, RSTD, 1);
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
      by_scale[j] += (double)(dy[j] * ((x[j] - mean) * rstd));
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
    run_groups(p, launch, k * p->groups / shares, (k + 1) * p->groups / shares,
               p->shares ? (real *)launch->workspace + 2 * k * p->length : NULL);
  if (p->shares) {
    join_shares(p, launch);
    return QN_OK;
  }
  if (p->joined) join_runs(p, launch);
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
static const qn_engine row[] = { CPU_COPIES(ROWS, "runs" CPU_REAL_SUFFIX, cpu_norm_runs_run) };
const qn_engine_list cpu_norm_runs = { row, sizeof row / sizeof *row };
#endif
