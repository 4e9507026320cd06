/* pointwise_program.cu -- any pointwise region on f16, bf16 and f32, in one pass over memory.
 *
 * A region becomes a program of at most MAX_STEPS steps: result = op(a, b, c), where an operand is the previous step's result, a
 * slot (a value needed later, kept in shared memory by the thread that computed it), a tensor, or a scalar. A thread takes V
 * neighbouring elements along the innermost dim through the whole program; all threads are in the same step at the same time, so
 * interpretation costs a few instructions per V elements. Grids are one-trip: one vector per thread. Where all tensors have one
 * dtype and are whole aligned vectors (or broadcast along the innermost dim), the first few that are read are loaded before the
 * program starts, so that their loads overlap. A single step on packed tensors has a kernel of its own, and so has a cast of them.
 *
 * Refuses f64 and integer arithmetic, but not casts to them. */
#include "cuda_backend.h"
#include "engines.h"
#include <quern/program.h>
#include "kit/functions.cuh"
#include "kit/functions_listed.cuh"
#include "kit/vector.cuh"

enum { MAX_STEPS = 32, MAX_TENSORS = 12, MAX_SLOTS = 8, MAX_RANK = 4, MAX_INPUTS = 3, MAX_EARLY = 3,
       MOST_KEPT = 40 };                  /* elements a thread keeps in slots: 40 KB of shared memory a block */
enum { FROM_NONE, FROM_BEFORE, FROM_SLOT, FROM_TENSOR, FROM_SCALAR, FROM_EARLY /* ... + MAX_EARLY */ };

struct source { uint8_t from, index; };
struct step {
  uint16_t op;
  source   in[MAX_INPUTS];
  int8_t   slot, out;                     /* slot that keeps the result; tensor it is stored to; -1: none */
  float    alpha, beta;
};
struct operand {
  void    *p;
  uint32_t dtype;
  int64_t  stride[MAX_RANK];              /* innermost first */
};
struct program {
  int32_t  n_steps, rank;
  uint32_t vectors;                       /* in total */
  uint32_t row_vectors;                   /* along the innermost dim */
  uint32_t dim[MAX_RANK];                 /* innermost first */
  int32_t  n_early;
  operand  early[MAX_EARLY];              /* whole: the tensors loaded first */
  float    value[MAX_TENSORS];            /* scalars */
  step     steps[MAX_STEPS];
  operand  tensor[MAX_TENSORS];
};

/* ---- kernel ------------------------------------------------------------------------------------------ */

/* Light functions leave the kernel few registers, hence many loads in flight; a second kernel has the heavy ones too, a third also
 * those of functions.def. */
enum { LIGHT, HEAVY, LISTED };
#define LIGHT_UNARY(X) X(NEG) X(ABS) X(SIGN) X(FLOOR) X(CEIL) X(ROUND) X(TRUNC) X(RELU) X(LEAKY_RELU) X(HARDSWISH) X(CLIP)
#define LIGHT_BINARY(X) X(ADD) X(SUB) X(MUL) X(MIN) X(MAX) X(RELU_BACKWARD) X(LEAKY_RELU_BACKWARD) X(HARDSWISH_BACKWARD) X(CLIP_BACKWARD)
#define HEAVY_UNARY(X) X(EXP) X(LOG) X(SQRT) X(RSQRT) X(RECIPROCAL) X(ERF) X(SIN) X(COS) X(ELU) X(GELU) X(GELU_TANH) X(SILU) \
  X(SIGMOID) X(TANH) X(SOFTPLUS) X(MISH)
#define HEAVY_BINARY(X) X(DIV) X(POW) X(ELU_BACKWARD) X(GELU_BACKWARD) X(GELU_TANH_BACKWARD) X(SILU_BACKWARD) X(SIGMOID_BACKWARD) \
  X(TANH_BACKWARD) X(SOFTPLUS_BACKWARD) X(MISH_BACKWARD)
#define UNARY(name) case QN_OP_##name: _Pragma("unroll") for (int i = 0; i < V; i++) \
    a[i] = fn_unary(QN_OP_##name, a[i], s.alpha, s.beta); break;
#define BINARY(name) case QN_OP_##name: _Pragma("unroll") for (int i = 0; i < V; i++) \
    a[i] = fn_binary(QN_OP_##name, a[i], b[i], s.alpha, s.beta); break;
#define PLAIN(name, expression) case QN_OP_##name: _Pragma("unroll") for (int i = 0; i < V; i++) a[i] = expression; break;

template <int V> __device__ __forceinline__ void apply_heavy(const step &s, float (&a)[V], const float (&b)[V])
{
  switch (s.op) {
  HEAVY_UNARY(UNARY)
  HEAVY_BINARY(BINARY)
  }
}

template <int V> __device__ __forceinline__ void apply_listed(const step &s, float (&a)[V], const float (&b)[V])
{
  switch (s.op) {
#define QN_FUNCTION(OP, half_ulps, oracle, fast) PLAIN(OP, fn_listed(QN_OP_##OP, a[i], b[i]))
#include <quern/functions.def>
  default: apply_heavy(s, a, b); break;
  }
}

template <int V, int weight> __device__ __forceinline__ void apply(const step &s, float (&a)[V], const float (&b)[V], const float (&c)[V])
{
  switch (s.op) {
  LIGHT_UNARY(UNARY)
  LIGHT_BINARY(BINARY)
  PLAIN(EQ, a[i] == b[i])
  PLAIN(NE, a[i] != b[i])
  PLAIN(LT, a[i] < b[i])
  PLAIN(LE, a[i] <= b[i])
  PLAIN(GT, a[i] > b[i])
  PLAIN(GE, a[i] >= b[i])
  PLAIN(LOGICAL_AND, a[i] != 0 && b[i] != 0)
  PLAIN(LOGICAL_OR, a[i] != 0 || b[i] != 0)
  PLAIN(LOGICAL_NOT, a[i] == 0)
  PLAIN(SELECT, a[i] != 0 ? b[i] : c[i])
  case QN_OP_CAST: break;                 /* the store converts */
  default:
    if (weight == LISTED) apply_listed(s, a, b);
    else if (weight == HEAVY) apply_heavy(s, a, b);
    break;
  }
}

/* whole: all tensors have that dtype and are whole aligned 16-byte vectors, or broadcast along dim 0. With one dim, the last
 * vector may be partial. */
enum { SCATTERED = QN_DTYPE_NONE };

template <int V, int THREADS, int whole> struct machine {
  const program &p;
  float (*slots)[V][THREADS];             /* each thread's own column */
  uint32_t index[MAX_RANK];
  int n;                                  /* elements of this vector that exist */
  uint4 early[whole ? MAX_EARLY : 1];     /* undecoded; of a broadcast tensor its first element */

  __device__ __forceinline__ int64_t at(const operand &o) const
  {
    int64_t offset = index[0] * o.stride[0];
    if (p.rank > 1) {
#pragma unroll
      for (int d = 1; d < MAX_RANK; d++)
        if (d < p.rank) offset += index[d] * o.stride[d];
    }
    return offset;
  }
  __device__ __forceinline__ uint4 bytes(const operand &o) const
  {
    const char *from = (const char *)vector_place<whole>(o.p, at(o));
    if (o.stride[0] == 0) return make_uint4(whole == QN_F32 ? *(const uint32_t *)from : *(const uint16_t *)from, 0, 0, 0);
    if (n == V) return *(const uint4 *)from;
    uint32_t word[4] = {};
#pragma unroll
    for (int i = 0; i < V; i++)
      if (i < n)
        word[i * 4 / V] |= whole == QN_F32 ? ((const uint32_t *)from)[i] : (uint32_t)((const uint16_t *)from)[i] << (i & 1 ? 16 : 0);
    return make_uint4(word[0], word[1], word[2], word[3]);
  }
  /* This vector of a tensor of single bytes is whole words. */
  __device__ __forceinline__ bool in_words(const operand &o) const
  {
    return vector_is_bytes(o.dtype) && o.stride[0] == 1 && n == V && ((uintptr_t)o.p + at(o)) % V == 0;
  }
  __device__ __forceinline__ void open(float (&v)[V], uint4 q, bool repeats) const
  {
    if (repeats) {
      uint32_t h = whole == QN_F32 ? q.x : q.x << 16 | q.x;
      q = make_uint4(h, h, h, h);
    }
    vector_open<whole>(v, 0, q);
  }
  __device__ __forceinline__ void fetch(float (&v)[V], source s, const float (&before)[V]) const
  {
    switch (s.from) {
    case FROM_BEFORE:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = before[i];
      break;
    case FROM_SLOT:
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = slots[s.index][i][threadIdx.x];
      break;
    case FROM_EARLY:
      if (whole) open(v, early[0], p.early[0].stride[0] == 0);
      break;
    case FROM_EARLY + 1:
      if (whole) open(v, early[whole ? 1 : 0], p.early[1].stride[0] == 0);
      break;
    case FROM_EARLY + 2:
      if (whole) open(v, early[whole ? 2 : 0], p.early[2].stride[0] == 0);
      break;
    case FROM_TENSOR: {
      const operand &o = p.tensor[s.index];
      if (whole) open(v, bytes(o), o.stride[0] == 0);
      else if (in_words(o)) vector_load_bytes(v, o.p, o.dtype, at(o));
      else vector_load(v, o.p, o.dtype, at(o), o.stride[0], n);
      break;
    }
    case FROM_SCALAR: {
      const operand &o = p.tensor[s.index];
      float x = o.p ? element_load<float>(o.p, 0, o.dtype) : p.value[s.index];
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = x;
      break;
    }
    }
  }
  __device__ __forceinline__ void store(const float (&v)[V], const operand &o) const
  {
    if (whole && n == V) vector_store_whole<whole ? whole : QN_F32>(v, o.p, at(o));
    else if (!whole && in_words(o)) vector_store_bytes(v, o.p, o.dtype, at(o));
    else vector_store(v, o.p, whole ? whole : o.dtype, at(o), o.stride[0], n);
  }
};

template <int V, int THREADS, int weight, int whole>
__global__ void __launch_bounds__(THREADS, 1024 / THREADS) pointwise_program(const __grid_constant__ program p)
{
  extern __shared__ float shared[];
  uint32_t vector = blockIdx.x * THREADS + threadIdx.x;
  if (vector >= p.vectors) return;
  machine<V, THREADS, whole> m = { p, (float (*)[V][THREADS])shared, {}, V, {} };
  if (p.rank == 1) {
    m.index[0] = vector * V;
  } else {
    uint32_t rest = vector / p.row_vectors;
    m.index[0] = (vector - rest * p.row_vectors) * V;
#pragma unroll
    for (int d = 1; d < MAX_RANK; d++)
      if (d < p.rank) {
        uint32_t q = d + 1 < p.rank ? rest / p.dim[d] : 0;
        m.index[d] = rest - q * p.dim[d];
        rest = q;
      }
  }
  m.n = (int)min((uint32_t)V, p.dim[0] - m.index[0]);
  if (whole) {
#pragma unroll
    for (int e = 0; e < MAX_EARLY; e++)
      if (e < p.n_early) m.early[whole ? e : 0] = m.bytes(p.early[e]);
  }
  float a[V] = {};
#pragma unroll 1
  for (int k = 0; k < p.n_steps; k++) {
    const step &s = p.steps[k];
    float b[V], c[V];
    if (!whole && s.in[2].from) m.fetch(c, s.in[2], a);       /* select: its condition has another dtype */
    if (s.in[1].from) m.fetch(b, s.in[1], a);
    if (s.in[0].from != FROM_BEFORE) m.fetch(a, s.in[0], a);
    apply<V, weight>(s, a, b, c);
    if (s.slot >= 0)
#pragma unroll
      for (int i = 0; i < V; i++) m.slots[s.slot][i][threadIdx.x] = a[i];
    if (s.out >= 0) m.store(a, p.tensor[s.out]);
  }
}

/* One step of one or two packed operands, in whole vectors. A light step has the occupancy that memory bandwidth needs; a heavy
 * one shares its overhead between two vectors per thread. The commonest heavy functions have kernels of their own, with few registers. */
template <int weight> constexpr int flat_vectors = weight == HEAVY ? 2 : 1;
#define SINGLE(X) X(GELU) X(GELU_TANH) X(SILU) X(SIGMOID) X(TANH)

template <int weight, int whole, uint32_t single = 0>
__global__ void __launch_bounds__(256, (single ? 1536 : weight ? 1024 : 2048) / 256) pointwise_flat(const __grid_constant__ program p)
{
  constexpr int per_16 = vector_per_16<whole>, N = flat_vectors<weight>, V = N * per_16;
  const step &s = p.steps[0];
  uint32_t first = blockIdx.x * (256 * N) + threadIdx.x;
  constexpr int operands = single ? 1 : 2;
  uint4 q[operands][N];
#pragma unroll
  for (int e = 0; e < operands; e++)
    if (e < p.n_early)
#pragma unroll
      for (int k = 0; k < N; k++)
        if (first + 256 * k < p.vectors) q[e][k] = ((const uint4 *)p.early[e].p)[first + 256 * k];
  float v[operands][V];
#pragma unroll
  for (int i = 0; i < operands; i++) {
    if (!single && s.in[i].from == FROM_SCALAR) {
      const operand &o = p.tensor[s.in[i].index];
      float x = o.p ? element_load<float>(o.p, 0, o.dtype) : p.value[s.in[i].index];
#pragma unroll
      for (int j = 0; j < V; j++) v[i][j] = x;
    } else if (single || s.in[i].from == FROM_EARLY) {
#pragma unroll
      for (int k = 0; k < N; k++) vector_open<whole>(v[i], k * per_16, q[0][k]);
    } else if (i == 1) {
#pragma unroll
      for (int k = 0; k < N; k++) vector_open<whole>(v[i], k * per_16, q[operands - 1][k]);
    }
  }
  if constexpr (single) {
#pragma unroll
    for (int j = 0; j < V; j++) v[0][j] = fn_unary(single, v[0][j], s.alpha, s.beta);
  } else {
    apply<V, weight>(s, v[0], v[operands - 1], v[operands - 1]);
  }
#pragma unroll
  for (int k = 0; k < N; k++)
    if (first + 256 * k < p.vectors) ((uint4 *)p.tensor[s.out].p)[first + 256 * k] = vector_close<whole>(v[0], k * per_16);
}

/* A cast of packed tensors. */
template <int from, int to> __global__ void __launch_bounds__(256, 2048 / 256) pointwise_cast(const __grid_constant__ program p)
{
  const uint32_t vector = blockIdx.x * 256 + threadIdx.x;
  if (vector >= p.vectors) return;
  float v[8];
  vector_load_whole<from>(v, p.tensor[0].p, vector * (int64_t)8);
  vector_store_whole<to>(v, p.tensor[1].p, vector * (int64_t)8);
}

typedef const void *kernel;

/* NULL: casts between these dtypes have no kernel of their own. */
static kernel cast_kernel(uint32_t from, uint32_t to)
{
#define CAST(a, b) if (from == QN_##a && to == QN_##b) return (kernel)pointwise_cast<QN_##a, QN_##b>;
  CAST(F32, BF16) CAST(F32, F16) CAST(BF16, F32) CAST(F16, F32) CAST(BF16, F16) CAST(F16, BF16)
#undef CAST
  return nullptr;
}

/* ---- from a region to a program ------------------------------------------------------------------------ */

struct state {
  program p;
  int32_t n_tensors;
  int32_t number[MAX_TENSORS];            /* value index of each tensor in the request */
  uint8_t host[MAX_TENSORS];
  int32_t wide, slots, weight;            /* wide: V is 8, a 16-byte word of the narrower dtype */
  uint8_t early[MAX_EARLY];               /* tensors loaded first */
  bool flat, cast;                        /* one step, packed; such a cast, between two of f32, bf16 and f16 */
  uint32_t whole;                         /* the common dtype, or 0 */
};

struct compiler {
  const qn_request *r;
  const qn_program *from;
  state *st;
};

static bool small_float(uint32_t dtype) { return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16; }

/* NULL if the step is supported (f32 arithmetic, logic, or a cast of a dtype that f32 holds exactly), else what is wanted. */
static const char *step_fits(const qn_request *r, const qn_program *p, const qn_program_step *s)
{
  bool logic = s->op == QN_OP_LOGICAL_AND || s->op == QN_OP_LOGICAL_OR || s->op == QN_OP_LOGICAL_NOT, cast = s->op == QN_OP_CAST;
  if (s->op == QN_OP_BATCH_NORM_INFERENCE) return "a pointwise op";
  for (int i = 0; i < MAX_INPUTS && s->operand[i] != QN_NO_OPERAND; i++) {
    const qn_value *v = &r->value[qn_program_value(p, s->operand[i])];
    bool condition = logic || (s->op == QN_OP_SELECT && i == 0), byte = v->dtype == QN_BOOL || v->dtype == QN_I8 || v->dtype == QN_U8;
    /* what is rounded or clamped on being stored cannot be used by later steps */
    if (s->operand[i] >= 0 && p->step[s->operand[i]].op == QN_OP_CAST && p->step[s->operand[i]].exact) return "no casts between";
    if (v->rank == 0 && qn_is_float(v->dtype) && !cast) continue;
    if (condition ? v->dtype != QN_BOOL : cast ? !(qn_is_float(v->dtype) && v->dtype != QN_F64) && !byte : !small_float(v->dtype))
      return "operands of f16, bf16 or f32";
  }
  if (cast) return nullptr;
  bool comparison = (s->op >= QN_OP_EQ && s->op <= QN_OP_GE) || s->op == QN_OP_ISNAN || s->op == QN_OP_ISFINITE;
  if (logic || comparison) return s->to == QN_BOOL ? nullptr : "results of bool";
  return small_float(s->to) ? nullptr : "results of f16, bf16 or f32";
}

/* Index among the tensors, added if new; -1: no room. */
static int tensor_of(compiler *c, int32_t value)
{
  state *st = c->st;
  for (int i = 0; i < st->n_tensors; i++)
    if (st->number[i] == value) return i;
  if (st->n_tensors == MAX_TENSORS) return -1;
  st->number[st->n_tensors] = value;
  st->host[st->n_tensors] = (c->r->value[value].flags & QN_VALUE_HOST) != 0;
  st->p.tensor[st->n_tensors].dtype = c->r->value[value].dtype;
  return st->n_tensors++;
}

static int32_t weight(uint32_t op)
{
#define CASE(name) case QN_OP_##name:
  switch (op) {
  HEAVY_UNARY(CASE) HEAVY_BINARY(CASE) return HEAVY;
  default: return fn_is_listed(op) ? LISTED : LIGHT;
  }
#undef CASE
}

/* Compiles the program's steps; NULL, or the reason why not. */
static const char *compile(compiler *c)
{
  state *st = c->st;
  const qn_program *from = c->from;
  int32_t slot_of[MAX_SLOTS];             /* the step whose result each slot keeps, or -1 */
  memset(st, 0, sizeof *st);
  memset(slot_of, 0xff, sizeof slot_of);
  for (int32_t k = 0; k < (int32_t)from->n; k++) {
    const qn_program_step *is = &from->step[k];
    step *s = &st->p.steps[k];
    s->op = (uint16_t)is->op;
    st->weight = st->weight > weight(is->op) ? st->weight : weight(is->op);
    s->alpha = (float)is->alpha;
    s->beta = (float)is->beta;
    s->slot = s->out = -1;
    for (int i = 0; i < MAX_INPUTS && is->operand[i] != QN_NO_OPERAND; i++) {
      const int operand = is->operand[i];
      int at = 0;
      if (operand >= 0 && operand == k - 1) {
        s->in[i].from = FROM_BEFORE;
      } else if (operand >= 0) {
        while (slot_of[at] != operand) at++;
        s->in[i] = { FROM_SLOT, (uint8_t)at };
      } else {
        const int32_t value = qn_program_value(from, operand);
        if ((at = tensor_of(c, value)) < 0) return "at most 12 tensors";
        s->in[i] = { (uint8_t)(c->r->value[value].rank == 0 ? FROM_SCALAR : FROM_TENSOR), (uint8_t)at };
      }
    }
    for (int j = 0; j < MAX_SLOTS; j++)
      if (slot_of[j] >= 0 && from->step[slot_of[j]].last <= k) slot_of[j] = -1;
    if (is->write) {
      int at = tensor_of(c, is->value);
      if (at < 0) return "at most 12 tensors";
      s->out = (int8_t)at;
    }
    if (is->last > k + 1) {
      int j = 0;
      while (j < MAX_SLOTS && slot_of[j] >= 0) j++;
      if (j == MAX_SLOTS) return "at most 8 values kept at once";
      slot_of[j] = k;
      s->slot = (int8_t)j;
      if (j >= st->slots) st->slots = j + 1;
    }
  }
  st->p.n_steps = (int32_t)from->n;
  return nullptr;
}

/* Marks the first tensors that the program reads to be loaded early. */
static void fetch_early(state *st)
{
  program *p = &st->p;
  for (int k = 0; k < p->n_steps; k++)
    for (int i = 0; i < MAX_INPUTS; i++) {
      source *s = &p->steps[k].in[i];
      if (s->from != FROM_TENSOR) continue;
      int e = 0;
      while (e < p->n_early && st->early[e] != s->index) e++;
      if (e == MAX_EARLY) continue;
      if (e == p->n_early) st->early[p->n_early++] = s->index;
      s->from = (uint8_t)(FROM_EARLY + e);
    }
}

/* Merges dims of y as far as all tensors allow, and chooses V by contiguity and alignment. */
static const char *lay_out(compiler *c, const qn_value *y)
{
  state *st = c->st;
  program *p = &st->p;
  qn_nest nest = {};                      /* of rank 0: strides of 0 */
  qn_nest_begin(&nest, y);
  for (int i = 0; i < st->n_tensors; i++) qn_nest_add(&nest, &c->r->value[st->number[i]]);
  qn_nest_simplify(&nest);
  if (nest.rank > MAX_RANK) return "at most 4 dims that do not merge";
  if (nest.rank == 0) nest.rank = 1, nest.dim[0] = 1;
  p->rank = nest.rank;
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    if (nest.dim[from] > INT32_MAX) return "dims below 2^31";
    p->dim[d] = (uint32_t)nest.dim[from];
    for (int i = 0; i < st->n_tensors; i++) p->tensor[i].stride[d] = nest.stride[i + 1][from];
  }
  size_t most = 0;
  bool halves = false;
  for (int i = 0; i < st->n_tensors; i++) {
    const size_t bytes = c->r->value[st->number[i]].rank > 0 ? qn_kit_bytes(p->tensor[i].dtype) : 0;
    most = bytes > most ? bytes : most;
    halves |= bytes == 2;
  }
  st->wide = st->slots * 8 <= MOST_KEPT && (most <= 2 || (halves && most == 4));
  int v = st->wide ? 8 : 4;
  bool packed = nest.rank == 1 && p->dim[0] % (uint32_t)v == 0;
  st->whole = nest.rank == 1 || p->dim[0] % (uint32_t)v == 0 ? st->p.tensor[st->n_tensors - 1].dtype : 0;
  for (int i = 0; i < st->n_tensors; i++) {
    const qn_value *t = &c->r->value[st->number[i]];
    if (t->rank == 0) continue;
    const int64_t *stride = p->tensor[i].stride;
    bool lies = t->dtype == st->whole && (stride[0] == 0 || (stride[0] == 1 && t->align >= 16));
    for (int d = 1; d < nest.rank; d++) lies &= stride[0] == 0 || stride[d] % v == 0;
    if (!lies) st->whole = 0;
  }
  if (!small_float(st->whole)) st->whole = 0;
  p->row_vectors = (uint32_t)qn_ceil_div(p->dim[0], v);
  if (st->slots * v > MOST_KEPT) return "fewer values kept at once";
  double vectors = p->row_vectors;
  for (int d = 1; d < nest.rank; d++) vectors *= p->dim[d];
  if (vectors > 2e9) return "fewer than 2^31 vectors";
  p->vectors = p->row_vectors;
  for (int d = 1; d < nest.rank; d++) p->vectors *= p->dim[d];
  if (st->whole) fetch_early(st);
  for (int i = 0; i < st->n_tensors; i++) packed &= c->r->value[st->number[i]].rank == 0 || p->tensor[i].stride[0] == 1;
  st->flat = st->whole && packed && p->n_steps == 1;
  st->cast = !st->whole && packed && p->n_steps == 1 && p->steps[0].op == QN_OP_CAST && cast_kernel(p->tensor[0].dtype, p->tensor[1].dtype);
  for (int i = 0; i < st->n_tensors; i++) st->cast &= c->r->value[st->number[i]].align >= 16;
  return nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  qn_program program;
  const char *why = nullptr, *end;
  const qn_value *y = &r->value[r->op[0].arg[r->op[0].first[r->op[0].n_inputs]]];
  uint32_t read = qn_program_read(&program, r, 0, r->n_ops < MAX_STEPS ? r->n_ops : (uint32_t)MAX_STEPS, -1, &end), n = 0;
  while (n < read && !(why = step_fits(r, &program, &program.step[n]))) n++;
  if (n == 0) return qn_refuse(out, why ? why : end, "", "", "%s", "");
  compiler c = { r, &program, (state *)cuda_state(out, sizeof *c.st) };
  if (!c.st) return QN_NO_MEMORY;
  for (; n > 0; n--) {                    /* as many as fit */
    qn_program_cut(&program, r, n);
    if (!(why = compile(&c)) && !(why = lay_out(&c, y))) break;
  }
  if (n == 0) {
    cuda_release(out);
    return qn_refuse(out, why, "", "", "%s", "");
  }
  out->n_ops = n;
  return QN_OK;
}

/* [weight][scattered narrow, scattered wide, whole f32, bf16, f16, flat f32, bf16, f16] */
#define KERNELS(weight)                                                                                     \
  { (kernel)pointwise_program<4, 256, weight, SCATTERED>, (kernel)pointwise_program<8, 256, weight, SCATTERED>,  \
    (kernel)pointwise_program<4, 256, weight, QN_F32>, (kernel)pointwise_program<8, 256, weight, QN_BF16>,       \
    (kernel)pointwise_program<8, 256, weight, QN_F16>, (kernel)pointwise_flat<weight, QN_F32>,                   \
    (kernel)pointwise_flat<weight, QN_BF16>, (kernel)pointwise_flat<weight, QN_F16> }
static const kernel kernels[3][8] = { KERNELS(LIGHT), KERNELS(HEAVY), KERNELS(LISTED) };

/* of_dtype: 0 f32, 1 bf16, 2 f16. NULL: the op has no kernel of its own. */
static const kernel *single_kernel(uint32_t op, int of_dtype)
{
#define CASE(name) \
  case QN_OP_##name: { \
    static const kernel of[] = { (kernel)pointwise_flat<HEAVY, QN_F32, QN_OP_##name>, (kernel)pointwise_flat<HEAVY, QN_BF16, QN_OP_##name>, \
                                 (kernel)pointwise_flat<HEAVY, QN_F16, QN_OP_##name> }; \
    return &of[of_dtype]; \
  }
  switch (op) {
  SINGLE(CASE)
  default: return nullptr;
  }
#undef CASE
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  program p = st->p;
  for (int i = 0; i < st->n_tensors; i++) {
    void *at = launch->ptr[st->number[i]];
    if (st->host[i]) p.value[i] = (float)qn_load_f64(at, p.tensor[i].dtype);
    else p.tensor[i].p = at;
  }
  for (int e = 0; e < p.n_early; e++) p.early[e] = p.tensor[st->early[e]];
  cudaStream_t stream = (cudaStream_t)launch->stream;
  const int threads = 256;
  const int each = threads * (st->flat && st->weight == HEAVY ? flat_vectors<HEAVY> : 1);
  unsigned blocks = (p.vectors + each - 1) / each;
  size_t shared = (size_t)st->slots * (st->wide ? 8 : 4) * threads * sizeof(float);
  int how = st->whole == QN_F32 ? 2 : st->whole == QN_BF16 ? 3 : st->whole == QN_F16 ? 4 : st->wide ? 1 : 0;
  const kernel *single = st->flat ? single_kernel(p.steps[0].op, how - 2) : nullptr;
  const kernel k = st->cast ? cast_kernel(p.tensor[0].dtype, p.tensor[1].dtype) : single ? *single : kernels[st->weight][how + (st->flat ? 3 : 0)];
  void *args[] = { &p };
  return cuda_check(cudaLaunchKernel(k, blocks, threads, args, shared, stream), "pointwise_program");
}

static const qn_engine row[] = {
  { "program", QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, QN_CLASS_TUNED,
    QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(pointwise_program) = { row, 1 };
