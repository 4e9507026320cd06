/* training_lists.c -- sgd, adam and adamw in f32 over lists of dense tensors, each read once and written once; the norm of a list,
 * and unscaling and checking of gradients.
 *
 * A list is cut into spans, shared among threads across tensors. Sums are stored per span and added in order. */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { SPAN = 2048 };
enum { P, G, M, V, NEW_P, NEW_M, NEW_V, COPY, LISTS };

typedef struct item { int32_t value[LISTS]; uint32_t dtype[LISTS]; int64_t first, n; } item;     /* first: span; n: elements */
typedef struct problem {
  uint32_t op;
  union { qn_sgd_rule sgd; qn_adam_rule adam; qn_norm_limit norm; } a;
  int32_t  step, rate, scale, found, new_step, norm, divisor;     /* values of the request; -1: absent */
  qn_value scalar[4];                     /* step, rate, scale, found as they are declared */
  int64_t  spans;
  int32_t  n;
  item     list[];
} problem;

/* ---- loops ----------------------------------------------------------------------------------------------- */

typedef struct factors { float b1, c1, b2, c2, eps, decay, rate, size, unbias2, unscale; bool nesterov; } factors;   /* c: 1 - b */

static void sgd_span(float *restrict p, const float *restrict g, float *restrict m, const factors *f, int64_t n)
{
  const float momentum = f->b1, decay = f->decay, rate = f->rate, unscale = f->unscale, ahead = f->nesterov ? 1 : 0;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float gi = g[i] * unscale + decay * p[i], u = momentum * m[i] + gi;
    m[i] = u;
    p[i] -= rate * (ahead != 0 ? gi + momentum * u : u);
  }
}

static void adam_span(float *restrict p, const float *restrict g, float *restrict m, float *restrict v, const factors *f, bool apart,
                      int64_t n)
{
  const float b1 = f->b1, c1 = f->c1, b2 = f->b2, c2 = f->c2, eps = f->eps, size = f->size, unbias2 = f->unbias2, unscale = f->unscale;
  const float within = apart ? 0 : f->decay, beside = apart ? f->rate * f->decay : 0;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float pi = p[i], gi = g[i] * unscale + within * pi;
    const float mi = b1 * m[i] + c1 * gi, vi = b2 * v[i] + c2 * (gi * gi);
    m[i] = mi;
    v[i] = vi;
    p[i] = pi - (size * (mi / (sqrtf(vi * unbias2) + eps)) + beside * pi);
  }
}

CPU_INLINE v_f64 squares_of(const float *x)
{
  float half __attribute__((vector_size(CPU_VECTOR_BYTES / 2)));
  memcpy(&half, x, sizeof half);
  const v_f64 e = __builtin_convertvector(half, v_f64);
  return e * e;
}

/* Four sums to hide the latency of an addition; prefetches, as there is little other work. */
static double squares(const float *x, int64_t n)
{
  enum { L = CPU_LANES_F64, SOON = 1024 };
  v_f64 a = { 0 }, b = a, c = a, d = a;
  double s = 0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L) {
    __builtin_prefetch(x + i + SOON);
    a += squares_of(x + i);
    b += squares_of(x + i + L);
    c += squares_of(x + i + 2 * L);
    d += squares_of(x + i + 3 * L);
  }
  a += b, c += d, a += c;
  for (int k = 0; k < L; k++) s += a[k];
  for (; i < n; i++) s += (double)x[i] * (double)x[i];
  return s;
}

/* Multiplies, and returns whether any result is infinite or NaN (exponent all ones). y may be x. */
static bool unscaled(float *y, const float *x, float by, int64_t n)
{
  int32_t found = 0;
#pragma omp simd reduction(|: found)
  for (int64_t i = 0; i < n; i++) {
    const uint32_t bits = qn_bits_of_f32(x[i]);
    found |= (bits & 0x7f800000) == 0x7f800000;
    y[i] = x[i] * by;
  }
  return found;
}

/* ---- a span ---------------------------------------------------------------------------------------------------- */

static void load(float *to, const item *t, int list, const qn_launch *launch, int64_t at, int64_t n)
{
  if (t->value[list] < 0) memset(to, 0, (size_t)n * sizeof *to);
  else row_to_f32(to, (const char *)launch->ptr[t->value[list]] + at * qn_kit_bytes(t->dtype[list]), t->dtype[list], n);
}
static void store(const float *from, const item *t, int list, const qn_launch *launch, int64_t at, int64_t n)
{
  if (t->value[list] >= 0) row_from_f32((char *)launch->ptr[t->value[list]] + at * qn_kit_bytes(t->dtype[list]), from, t->dtype[list], n);
}

/* A gradient's elements: in place, or converted into buffer. */
static const float *gradient(float *buffer, const item *t, const qn_launch *launch, int64_t at, int64_t n)
{
  if (t->dtype[G] == QN_F32) return (const float *)launch->ptr[t->value[G]] + at;
  load(buffer, t, G, launch, at, n);
  return buffer;
}

/* A tensor that a step updates: in place if it is f32 and its output shares its memory; else a copy in buffer for close_list to store. */
static float *open_list(float *buffer, const item *t, int from, int to, const qn_launch *launch, int64_t at, int64_t n)
{
  const bool stays = t->value[from] >= 0 && t->value[to] >= 0 && t->dtype[from] == QN_F32 && t->dtype[to] == QN_F32
                  && launch->ptr[t->value[from]] == launch->ptr[t->value[to]];
  if (stays) return (float *)launch->ptr[t->value[to]] + at;
  load(buffer, t, from, launch, at, n);
  return buffer;
}
static void close_list(const float *list, const float *buffer, const item *t, int to, const qn_launch *launch, int64_t at, int64_t n)
{
  if (list == buffer) store(list, t, to, launch, at, n);
}

static void step_span(const problem *q, const item *t, const factors *f, bool found, const qn_launch *launch, int64_t at, int64_t n)
{
  float buffer[4][SPAN];
  float *p = open_list(buffer[0], t, P, NEW_P, launch, at, n), *m = open_list(buffer[1], t, M, NEW_M, launch, at, n);
  float *v = open_list(buffer[2], t, V, NEW_V, launch, at, n);
  if (!found) {
    const float *g = gradient(buffer[3], t, launch, at, n);
    if (q->op == QN_OP_SGD) sgd_span(p, g, m, f, n);
    else adam_span(p, g, m, v, f, q->op == QN_OP_ADAMW, n);
  }
  close_list(p, buffer[0], t, NEW_P, launch, at, n);
  close_list(m, buffer[1], t, NEW_M, launch, at, n);
  close_list(v, buffer[2], t, NEW_V, launch, at, n);
  store(p, t, COPY, launch, at, n);
}

static const item *item_of(const problem *q, int64_t span)
{
  int32_t low = 0, high = q->n - 1;       /* binary search: the last that begins at or before */
  while (low < high) {
    const int32_t middle = (low + high + 1) / 2;
    if (q->list[middle].first <= span) low = middle; else high = middle - 1;
  }
  return &q->list[low];
}

/* ---- run ------------------------------------------------------------------------------------------------------------ */

static double scalar(const problem *q, int which, int32_t value, const qn_launch *launch, double absent)
{
  return value < 0 ? absent : qn_load_f64(launch->ptr[value], q->scalar[which].dtype);
}

static factors factors_of(const problem *q, double rate, double scale, int64_t t)
{
  factors f = { .rate = (float)rate, .unscale = (float)(1 / scale) };
  if (q->op == QN_OP_SGD) {
    f.b1 = (float)q->a.sgd.momentum, f.decay = (float)q->a.sgd.decay, f.nesterov = q->a.sgd.nesterov;
    return f;
  }
  const qn_adam_rule *a = &q->a.adam;
  f.b1 = (float)a->beta1, f.c1 = (float)(1 - a->beta1), f.b2 = (float)a->beta2, f.c2 = (float)(1 - a->beta2);
  f.eps = (float)a->eps, f.decay = (float)a->decay;
  f.size = (float)(rate / (1 - pow(a->beta1, (double)t)));
  f.unbias2 = (float)(1 / (1 - pow(a->beta2, (double)t)));
  return f;
}

CPU_RUNS(cpu_training_lists_run);
qn_status CPU_NAME(cpu_training_lists_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *q = prepared->state;
  const bool sums = q->op == QN_OP_GLOBAL_NORM, checks = q->op == QN_OP_AMP_UNSCALE;
  const double scale = scalar(q, 2, q->scale, launch, 1);
  const bool found = scalar(q, 3, q->found, launch, 0) != 0;
  const int64_t steps = q->step < 0 ? 0 : qn_load_i64(launch->ptr[q->step], q->scalar[0].dtype), t = qn_count_on(steps);
  const factors f = sums || checks ? (factors){ .unscale = (float)(1 / scale) } : factors_of(q, scalar(q, 1, q->rate, launch, 0), scale, t);
  double *kept = launch->workspace;
  const int threads = cpu_threads(launch, q->spans * SPAN * 2);
  int any = q->spans > 0 && (scale == 0 || isnan(scale));
#pragma omp parallel for num_threads(threads) schedule(static) reduction(|: any) if (threads > 1)
  for (int64_t span = 0; span < q->spans; span++) {
    const item *i = item_of(q, span);
    const int64_t at = (span - i->first) * SPAN, n = qn_min_i64(SPAN, i->n - at);
    if (!sums && !checks) {
      step_span(q, i, &f, found, launch, at, n);
      continue;
    }
    float buffer[SPAN];
    const float *g = gradient(buffer, i, launch, at, n);
    if (sums) {
      kept[span] = squares(g, n);
      continue;
    }
    const bool in_place = i->value[NEW_P] >= 0 && i->dtype[NEW_P] == QN_F32;
    any |= unscaled(in_place ? (float *)launch->ptr[i->value[NEW_P]] + at : buffer, g, f.unscale, n);
    if (!in_place) store(buffer, i, NEW_P, launch, at, n);
  }
  if (q->new_step >= 0) qn_store_i64(launch->ptr[q->new_step], QN_I64, found ? steps : t);
  if (checks) *(float *)launch->ptr[q->norm] = any ? 1 : 0;
  if (!sums) return QN_OK;
  double sum = 0;
  for (int64_t span = 0; span < q->spans; span++) sum += kept[span];
  const double norm = sqrt(sum) / scale, over = norm / q->a.norm.limit;
  *(float *)launch->ptr[q->norm] = (float)norm;
  if (q->divisor >= 0) *(float *)launch->ptr[q->divisor] = (float)(scale * (over <= 1 ? 1 : over));
  return QN_OK;
}

/* ---- prepare ---------------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status read_lists(const qn_request *request, qn_prepared *prepared, const int8_t role[LISTS], problem *q)
{
  const qn_node *op = &request->op[0];
  for (int32_t i = 0; i < q->n; i++) {
    item *t = &q->list[i];
    const qn_value *like = &request->value[op->arg[op->first[role[G]] + i]];
    for (int l = 0; l < LISTS; l++) {
      const bool given = role[l] >= 0 && op->first[role[l]] < op->first[role[l] + 1];
      t->value[l] = given ? op->arg[op->first[role[l]] + i] : -1;
      if (!given) continue;
      const qn_value *v = &request->value[t->value[l]];
      t->dtype[l] = v->dtype;
      if (v->dtype == QN_F64) return qn_refuse(prepared, "computes in f32", "", "f32, f16, bf16", "f64");
      if (!qn_is_dense(v) || !qn_same_layout(v, like))
        return qn_refuse(prepared, "tensors must be dense, and strided alike in all lists", "", "dense", "tensor %d", (int)i);
    }
    t->first = q->spans;
    t->n = qn_elements(like);
    q->spans += qn_ceil_div(t->n, SPAN);
  }
  return QN_OK;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  if (op->op == QN_OP_SGD && ((const qn_sgd_rule *)op->attr)->dampening != 0)
    return qn_refuse(prepared, "adds all of the gradient", "dampening", "0", "%g", ((const qn_sgd_rule *)op->attr)->dampening);
  const qn_step_roles r = qn_step_roles_of(op->op);
  const int8_t role[LISTS] = { r.params, r.grads, r.m, r.v, r.new_params, r.new_m, r.new_v, r.copy };
  const int32_t n = op->first[r.grads + 1] - op->first[r.grads];
  problem *q = cpu_state(prepared, sizeof *q + (size_t)n * sizeof *q->list);
  if (!q) return QN_NO_MEMORY;
  q->op = op->op;
  q->n = n;
  if (op->attr) memcpy(&q->a, op->attr, (size_t)*(const uint64_t *)op->attr);
  q->step = qn_role_at(op, r.step), q->rate = qn_role_at(op, r.rate), q->scale = qn_role_at(op, r.scale);
  q->found = qn_role_at(op, r.found), q->new_step = qn_role_at(op, r.new_step);
  q->norm = op->op == QN_OP_GLOBAL_NORM || op->op == QN_OP_AMP_UNSCALE ? op->arg[op->first[op->n_inputs]] : -1;
  q->divisor = op->op == QN_OP_GLOBAL_NORM ? qn_role(op, QN_ROLE_GLOBAL_NORM_DIVISOR) : -1;
  const int32_t scalars[] = { q->step, q->rate, q->scale, q->found };
  for (int i = 0; i < 4; i++)
    if (scalars[i] >= 0) q->scalar[i] = request->value[scalars[i]];
  status = read_lists(request, prepared, role, q);
  if (status) {
    cpu_release(prepared);
    return status;
  }
  if (op->op == QN_OP_GLOBAL_NORM) prepared->workspace = (uint64_t)q->spans * sizeof(double);
  return QN_OK;
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run)                                                                                          \
  ROW(name, run, QN_OP_SGD), ROW(name, run, QN_OP_ADAM), ROW(name, run, QN_OP_ADAMW), ROW(name, run, QN_OP_GLOBAL_NORM), \
  ROW(name, run, QN_OP_AMP_UNSCALE),
static const qn_engine row[] = { CPU_COPIES(ROWS, "lists", cpu_training_lists_run) };
const qn_engine_list cpu_training_lists = { row, sizeof row / sizeof *row };
#endif
