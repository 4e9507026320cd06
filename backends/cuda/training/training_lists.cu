/* training_lists.cu -- sgd, adam, adamw, global_norm and amp_unscale over a whole list of dense tensors in one launch
 * (multi-tensor apply), in f32, each element read once and written once.
 *
 * The tensors' addresses are kernel arguments, up to 32 KB; a longer list takes several launches. A block has a chunk of one
 * tensor, found by binary search over the tensors' first chunks. The block that finishes last writes the norm, or whether a
 * non-finite value was found, and the step count. Refused: f64, mixed dtypes in a list, tensors with gaps or different layouts. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/sums.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256, V = 4, FEW = 24, MANY = 400 };
enum { STEP_CHUNK = THREADS * V, READ_CHUNK = 32 * STEP_CHUNK };           /* elements of a block: step; reductions */
enum { READ_AHEAD = 4, WRITTEN = 8 };     /* vectors of a thread in flight: read only; when writing, all of its chunk */
enum { P, G, M, S, NEW_P, NEW_M, NEW_S, COPY, LISTS };     /* M, S: first and second moments; norm and unscale use G and NEW_P */

/* first: its first chunk; dtype: of G; aligned: all to 16 bytes */
struct entry { void *p[LISTS]; int64_t n; uint32_t first; uint16_t dtype, aligned; };

struct number { const void *p; uint32_t dtype; double value; };            /* p NULL: use value */
struct common {
  uint32_t op, dtype_p, dtype_g, dtype_copy;
  int32_t  n, nesterov, closes;           /* closes: last launch of the list */
  double   b1, b2, log_b1, log_b2, eps, decay, limit;       /* sgd: b1 is the momentum; logs to base 2 */
  number   step, rate, scale, found;
  int64_t *new_step;
  float   *norm, *divisor;                /* norm: for amp_unscale the `found` flag */
  double  *part;                          /* partial sum of each chunk */
  uint32_t base, *ticket, *flag;          /* base: chunks of earlier launches */
};
template <int most> struct lists : common { entry list[most]; };
static_assert(sizeof(lists<MANY>) <= 32764, "the most that a launch takes");

__device__ __forceinline__ double value_of(const number &s) { return s.p ? element_load<double>(s.p, 0, s.dtype) : s.value; }

template <int most> __device__ __forceinline__ const entry &entry_of(const lists<most> &a, uint32_t chunk)
{
  int low = 0, high = a.n - 1;            /* last entry with first <= chunk */
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (a.list[middle].first <= chunk) low = middle;
    else high = middle - 1;
  }
  return a.list[low];
}

/* Is this thread's block the last of the list to arrive? Wraps the ticket to 0. */
__device__ __forceinline__ bool last_to_come(const common &a)
{
  return a.closes && atomicInc(a.ticket, gridDim.x - 1) == gridDim.x - 1;
}
__device__ static bool last_block(const common &a)
{
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = last_to_come(a);
    __threadfence();
  }
  __syncthreads();
  return last;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

struct factors { float b1, c1, b2, c2, eps, decay, rate, size, unbias2, unscale; };        /* c: 1 - b */

template <int op> __device__ __forceinline__ void move(const factors &f, int nesterov, float &p, float g, float &m, float &s)
{
  g *= f.unscale;
  if (op != QN_OP_ADAMW) g = fmaf(f.decay, p, g);
  if (op == QN_OP_SGD) {
    m = fmaf(f.b1, m, g);
    p -= f.rate * (nesterov ? fmaf(f.b1, m, g) : m);
    return;
  }
  m = fmaf(f.b1, m, f.c1 * g);
  s = fmaf(f.b2, s, f.c2 * (g * g));
  float by = f.size * (m / (sqrtf(s * f.unbias2) + f.eps));
  if (op == QN_OP_ADAMW) by = fmaf(f.rate * f.decay, p, by);
  p -= by;
}

template <int op> __device__ static factors factors_of(const common &a)
{
  double rate = value_of(a.rate), t = rint(value_of(a.step)) + 1;
  factors f = { (float)a.b1, (float)(1 - a.b1), (float)a.b2, (float)(1 - a.b2), (float)a.eps, (float)a.decay, (float)rate, 0, 0,
                (float)(1 / value_of(a.scale)) };
  if (op != QN_OP_SGD) {
    f.size = (float)(rate / (1 - exp2(t * a.log_b1)));
    f.unbias2 = (float)(1 / (1 - exp2(t * a.log_b2)));
  }
  return f;
}

/* Loads four elements raw, for a later open(); 16-bit ones are in the first half. */
__device__ __forceinline__ uint4 fetch(const void *base, uint32_t dtype, int64_t at)
{
  if (dtype == QN_F32) return *vector_place<QN_F32>(base, at);
  uint2 half = *(const uint2 *)((const uint16_t *)base + at);
  return make_uint4(half.x, half.y, 0, 0);
}
__device__ __forceinline__ void open(float (&v)[V], uint32_t dtype, uint4 q)
{
  const uint32_t word[V] = { q.x, q.y, q.z, q.w };
#pragma unroll
  for (int i = 0; i < V; i++) {
    uint32_t h = word[i / 2] >> i % 2 * 16;
    v[i] = dtype == QN_F32 ? __uint_as_float(word[i]) : dtype == QN_BF16 ? bf16_to_float((uint16_t)h) : f16_to_float((uint16_t)h);
  }
}

template <int op, int most> __global__ static void __launch_bounds__(THREADS, 6) training_step(const __grid_constant__ lists<most> a)
{
  const entry &e = entry_of(a, blockIdx.x);
  const int64_t at = (int64_t)(blockIdx.x - e.first) * STEP_CHUNK + threadIdx.x * V;
  const int n = (int)max(min(e.n - at, (int64_t)V), (int64_t)0);
  const bool found = value_of(a.found) != 0, whole = e.aligned && n == V;
  __shared__ factors shared;
  uint4 raw[4] = {};
  if (whole) {                            /* all loads in flight before the first is used */
    raw[P] = fetch(e.p[P], a.dtype_p, at);
    raw[G] = fetch(e.p[G], a.dtype_g, at);
    if (e.p[M]) raw[M] = fetch(e.p[M], QN_F32, at);
    if (op != QN_OP_SGD) raw[S] = fetch(e.p[S], QN_F32, at);
  }
  if (threadIdx.x == 0) shared = factors_of<op>(a);
  __syncthreads();
  float p[V], g[V], m[V], s[V];
  open(p, a.dtype_p, raw[P]), open(g, a.dtype_g, raw[G]), open(m, QN_F32, raw[M]), open(s, QN_F32, raw[S]);
  if (!whole) {
    vector_load(p, e.p[P], dtype3(a.dtype_p), at, 1, n);
    vector_load(g, e.p[G], dtype3(a.dtype_g), at, 1, n);
    if (e.p[M]) vector_load(m, e.p[M], QN_F32, at, 1, n);
    if (op != QN_OP_SGD) vector_load(s, e.p[S], QN_F32, at, 1, n);
  }
  const factors f = shared;
#pragma unroll
  for (int i = 0; i < V; i++)
    if (!found) move<op>(f, a.nesterov, p[i], g[i], m[i], s[i]);
  vector_store(p, e.p[NEW_P], dtype3(a.dtype_p), at, 1, n);
  if (e.p[NEW_M]) vector_store(m, e.p[NEW_M], QN_F32, at, 1, n);
  if (op != QN_OP_SGD) vector_store(s, e.p[NEW_S], QN_F32, at, 1, n);
  if (e.p[COPY]) vector_store(p, e.p[COPY], dtype3(a.dtype_copy), at, 1, n);
  /* new_step may alias step: this thread has read it and is done with it; the last block to get here writes the next value. No
   * other thread waits for the ticket. */
  if (threadIdx.x == 0 && last_to_come(a)) {
    const int64_t step = a.step.p ? *(const int64_t *)a.step.p : (int64_t)a.step.value;
    *a.new_step = found ? step : qn_count_on(step);
  }
}

/* ---- norms and checks ---------------------------------------------------------------------------------------------- */

/* Elements of a block that also writes. */
__host__ __device__ static inline int write_chunk(uint32_t dtype) { return THREADS * WRITTEN * (dtype == QN_F32 ? 4 : 8); }

/* Calls the visitor with n elements in 16-byte vectors, several in flight, and writes back what it leaves. */
template <int dtype, bool writes, class F>
__device__ __forceinline__ void visit_vectors(const void *from, void *to, int64_t at, int n, F visitor)
{
  constexpr int E = vector_per_16<dtype>, K = writes ? WRITTEN : READ_AHEAD;
#pragma unroll 1
  for (int first = threadIdx.x * E; first < n; first += THREADS * E * K) {
    uint4 q[K];
#pragma unroll
    for (int k = 0; k < K; k++)
      q[k] = first + k * THREADS * E + E <= n ? *vector_place<dtype>(from, at + first + k * THREADS * E) : make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[E];
      vector_open<dtype>(v, 0, q[k]);
      visitor(v);
      if (writes && first + k * THREADS * E + E <= n)
        *(uint4 *)vector_place<dtype>(to, at + first + k * THREADS * E) = vector_close<dtype>(v, 0);
    }
  }
  const int rest = n - n % E + threadIdx.x;
  if (rest >= n) return;
  float v[1] = { element_load<float>(from, at + rest, dtype) };
  visitor(v);
  if (writes) element_store(to, at + rest, dtype, v[0]);
}
template <bool writes, class F> __device__ __forceinline__ void visit(const entry &e, uint32_t chunk, F visitor)
{
  const int most = writes ? write_chunk(e.dtype) : READ_CHUNK;
  const int64_t at = (int64_t)(chunk - e.first) * most;
  const int n = (int)min(e.n - at, (int64_t)most);
  const uint32_t dtype = dtype3(e.dtype);
  if (!e.aligned) {
    for (int i = threadIdx.x * V; i < n; i += THREADS * V) {
      float v[V];                         /* 0 beyond the end */
      vector_load(v, e.p[G], dtype, at + i, 1, min(n - i, (int)V));
      visitor(v);
      if (writes) vector_store(v, e.p[NEW_P], dtype, at + i, 1, min(n - i, (int)V));
    }
  } else if (dtype == QN_F32) {
    visit_vectors<QN_F32, writes>(e.p[G], e.p[NEW_P], at, n, visitor);
  } else if (dtype == QN_BF16) {
    visit_vectors<QN_BF16, writes>(e.p[G], e.p[NEW_P], at, n, visitor);
  } else {
    visit_vectors<QN_F16, writes>(e.p[G], e.p[NEW_P], at, n, visitor);
  }
}

template <int most> __global__ static void __launch_bounds__(THREADS) training_norm(const __grid_constant__ lists<most> a)
{
  double sum = 0;
  visit<false>(entry_of(a, blockIdx.x), blockIdx.x, [&](auto &v) {
    for (float g : v) sum += (double)g * (double)g;
  });
  sum = block_sum<THREADS>(sum);
  if (threadIdx.x == 0) a.part[a.base + blockIdx.x] = sum;
  if (!last_block(a)) return;
  sum = 0;
#pragma unroll 8
  for (uint32_t i = threadIdx.x; i < a.base + gridDim.x; i += THREADS) sum += __ldcg(a.part + i);
  sum = block_sum<THREADS>(sum);
  if (threadIdx.x) return;
  double scale = value_of(a.scale), length = sqrt(sum) / scale, over = length / a.limit;
  *a.norm = (float)length;
  if (a.divisor) *a.divisor = (float)(scale * (over <= 1 ? 1 : over));     /* keeps NaN */
}

template <int most> __global__ static void __launch_bounds__(THREADS) training_unscale(const __grid_constant__ lists<most> a)
{
  const double scale = value_of(a.scale);
  const float by = (float)(1 / scale);
  const entry &e = entry_of(a, blockIdx.x);
  bool any = scale == 0 || isnan(scale);
  auto unscale = [&](auto &v) {
    for (float &g : v) {
      any |= !isfinite(g);
      g *= by;
    }
  };
  if (e.p[NEW_P]) visit<true>(e, blockIdx.x, unscale);
  else visit<false>(e, blockIdx.x, unscale);
  any = __syncthreads_or(any);
  if (threadIdx.x) return;                /* no other thread waits for the ticket */
  if (any) {
    *(volatile uint32_t *)a.flag = 1;
    __threadfence();
  }
  if (!last_to_come(a)) return;
  __threadfence();
  *a.norm = __ldcg(a.flag) ? 1 : 0;
  *a.flag = 0;
}

/* ---- prepare, run ---------------------------------------------------------------------------------------------------- */

struct item { int32_t number[LISTS]; uint32_t dtype; int64_t n; };          /* value numbers of the request; -1: absent */
struct state {
  common  c;
  int32_t step, rate, scale, found, new_step, norm, divisor;
  qn_value scalar[4];                     /* their descriptions */
  int32_t n;
  int64_t chunks;
  item    list[1];                        /* n of them */
};

static bool is_step(uint32_t op) { return op != QN_OP_GLOBAL_NORM && op != QN_OP_AMP_UNSCALE; }
static int64_t chunks_of(const state *s, const item *t)
{
  return qn_ceil_div(t->n, is_step(s->c.op) ? STEP_CHUNK : t->number[NEW_P] >= 0 ? write_chunk(t->dtype) : READ_CHUNK);
}

static qn_status read_attributes(state *s, const qn_node *op)
{
  if (op->op == QN_OP_SGD) {
    const qn_sgd_rule *a = (const qn_sgd_rule *)op->attr;
    s->c.b1 = a->momentum, s->c.decay = a->decay, s->c.nesterov = (int32_t)a->nesterov;
  } else if (op->op == QN_OP_GLOBAL_NORM) {
    s->c.limit = ((const qn_norm_limit *)op->attr)->limit;
  } else if (op->op != QN_OP_AMP_UNSCALE) {
    const qn_adam_rule *a = (const qn_adam_rule *)op->attr;
    s->c.b1 = a->beta1, s->c.b2 = a->beta2, s->c.eps = a->eps, s->c.decay = a->decay;
    s->c.log_b1 = log2(a->beta1), s->c.log_b2 = log2(a->beta2);
  }
  return QN_OK;
}

static qn_status read_lists(state *s, const qn_request *r, qn_prepared *out, const int8_t *role)
{
  const qn_node *op = &r->op[0];
  for (int i = 0; i < s->n; i++) {
    item *t = &s->list[i];
    const qn_value *like = &r->value[op->arg[op->first[role[G]] + i]];
    t->n = qn_elements(like);
    t->dtype = like->dtype;
    for (int l = 0; l < LISTS; l++) {
      bool given = role[l] >= 0 && op->first[role[l]] < op->first[role[l] + 1];
      t->number[l] = given ? op->arg[op->first[role[l]] + i] : -1;
      if (!given) continue;
      const qn_value *v = &r->value[t->number[l]], *first = &r->value[op->arg[op->first[role[l]]]];
      if (v->dtype == QN_F64) return qn_refuse(out, "computes in f32", "", "f32, f16 or bf16", "%s", "f64");
      if (is_step(op->op) && v->dtype != first->dtype)
        return qn_refuse(out, "the tensors of a list must have one dtype", "", qn_kit_name(first->dtype), "%s", qn_kit_name(v->dtype));
      if (!qn_is_dense(v) || !qn_same_layout(v, like))
        return qn_refuse(out, "tensors must lie dense, and alike in all lists", "", "dense", "tensor %d", i);
      if (l == P) s->c.dtype_p = v->dtype;
      if (l == G) s->c.dtype_g = v->dtype;
      if (l == COPY) s->c.dtype_copy = v->dtype;
    }
    s->chunks += chunks_of(s, t);
  }
  if (s->chunks == 0) return qn_refuse(out, "at least one element", "", "an element", "%s", "none");
  if (s->chunks > INT32_MAX) return qn_refuse(out, "fewer than 2^31 chunks", "", "", "%lld", (long long)s->chunks);
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  if (op->op == QN_OP_SGD && ((const qn_sgd_rule *)op->attr)->dampening != 0)
    return qn_refuse(out, "adds all of the gradient", "dampening", "0", "%g", ((const qn_sgd_rule *)op->attr)->dampening);
  const qn_step_roles roles = qn_step_roles_of(op->op);
  const int8_t role[LISTS] = { roles.params, roles.grads, roles.m, roles.v, roles.new_params, roles.new_m, roles.new_v, roles.copy };
  int n = op->first[roles.grads + 1] - op->first[roles.grads];
  state *s = (state *)cuda_state(out, sizeof *s + (size_t)n * sizeof(item));
  if (!s) return QN_NO_MEMORY;
  s->n = n;
  s->c.op = op->op;
  read_attributes(s, op);
  s->step = qn_role_at(op, roles.step), s->rate = qn_role_at(op, roles.rate), s->scale = qn_role_at(op, roles.scale);
  s->found = qn_role_at(op, roles.found), s->new_step = qn_role_at(op, roles.new_step);
  s->norm = !is_step(op->op) ? op->arg[op->first[op->n_inputs]] : -1;
  s->divisor = op->op == QN_OP_GLOBAL_NORM ? qn_role(op, QN_ROLE_GLOBAL_NORM_DIVISOR) : -1;
  const int32_t scalars[] = { s->step, s->rate, s->scale, s->found };
  for (int i = 0; i < 4; i++)
    if (scalars[i] >= 0) s->scalar[i] = r->value[scalars[i]];
  qn_status status = read_lists(s, r, out, role);
  if (status) {
    cuda_release(out);
    return status;
  }
  if (op->op == QN_OP_GLOBAL_NORM) out->workspace = (uint64_t)s->chunks * sizeof(double);
  out->counters = 8;
  return QN_OK;
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }
static number scalar_of(const state *s, int which, int32_t value, const qn_launch *launch, double absent)
{
  if (value < 0) return { nullptr, QN_F64, absent };
  const void *at = launch->ptr[value];
  if (s->scalar[which].flags & QN_VALUE_HOST) return { nullptr, QN_F64, qn_load_f64(at, s->scalar[which].dtype) };
  return { at, s->scalar[which].dtype, 0 };
}

template <int most> static const void *kernel_of(uint32_t op)
{
  switch (op) {
  case QN_OP_SGD:         return (const void *)training_step<QN_OP_SGD, most>;
  case QN_OP_ADAM:        return (const void *)training_step<QN_OP_ADAM, most>;
  case QN_OP_ADAMW:       return (const void *)training_step<QN_OP_ADAMW, most>;
  case QN_OP_GLOBAL_NORM: return (const void *)training_norm<most>;
  default:                return (const void *)training_unscale<most>;
  }
}

/* Launches the tensors from *next on, as many as one launch takes; empty ones are skipped. */
template <int most> static qn_status launch_some(const state *s, const qn_launch *launch, common *c, int *next)
{
  lists<most> a;
  (common &)a = *c;
  a.n = 0;
  uint32_t chunks = 0;
  for (; *next < s->n && a.n < most; ++*next) {
    const item *t = &s->list[*next];
    if (!t->n) continue;
    entry *e = &a.list[a.n++];
    e->aligned = true;
    for (int l = 0; l < LISTS; l++) {
      e->p[l] = pointer(launch, t->number[l]);
      e->aligned &= (uintptr_t)e->p[l] % 16 == 0;
    }
    e->n = t->n;
    e->first = chunks;
    e->dtype = (uint16_t)t->dtype;
    chunks += (uint32_t)chunks_of(s, t);
  }
  memset(a.list + a.n, 0, (size_t)(most - a.n) * sizeof *a.list);         /* kernel arguments must not contain uninitialised stack memory */
  a.closes = c->base + chunks == (uint32_t)s->chunks;
  c->base += chunks;
  void *arguments[] = { &a };
  return cuda_check(cudaLaunchKernel(kernel_of<most>(a.op), dim3(chunks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream),
                    "training_lists");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = (const state *)prepared->state;
  common c = s->c;
  c.step = scalar_of(s, 0, s->step, launch, 0), c.rate = scalar_of(s, 1, s->rate, launch, 0);
  c.scale = scalar_of(s, 2, s->scale, launch, 1), c.found = scalar_of(s, 3, s->found, launch, 0);
  c.new_step = (int64_t *)pointer(launch, s->new_step);
  c.norm = (float *)pointer(launch, s->norm), c.divisor = (float *)pointer(launch, s->divisor);
  c.part = (double *)launch->workspace;
  c.ticket = (uint32_t *)launch->counters, c.flag = c.ticket + 1;
  qn_status status = QN_OK;
  for (int next = 0; c.base < (uint32_t)s->chunks && !status;)
    status = s->n - next <= FEW ? launch_some<FEW>(s, launch, &c, &next) : launch_some<MANY>(s, launch, &c, &next);
  return status;
}

#define ROW(op) { "lists", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_SGD), ROW(QN_OP_ADAM), ROW(QN_OP_ADAMW), ROW(QN_OP_GLOBAL_NORM), ROW(QN_OP_AMP_UNSCALE),
};
CUDA_ENGINES(training_lists) = { row, sizeof row / sizeof *row };
