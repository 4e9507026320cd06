/* norm_layout.cuh -- what the normalizations share: tensors numbered alike, the arguments of every kernel, an op read (roles, dtypes, the
 * nests of the dims within a group and of the others), the layouts that kernels are made for, the offset of a group in each tensor, and
 * parameters in registers.
 *
 *   with h = (x - mean) rstd, g = dy scale, over groups of elements that share mean and rstd = 1 / sqrt(var + eps):
 *   y = h scale + shift                              and what an engine fuses behind it
 *   dx = rstd (g - mean g - h mean(g h)), dscale = sum dy h, dshift = sum dy         rms_norm: mean and mean g are 0 */
#pragma once
#include "cuda_backend.h"
#include "engines.h"
#include "kit/dispatch.cuh"
#include "kit/divisor.h"
#include "kit/element.cuh"
#include "kit/shared_memory.h"
#include "kit/vector.cuh"

/* Y is dx for a gradient. The first PARAMETERS_END have x's dims within a group, or 1; the others have one element for each group. */
enum { X, Y, DY, SCALE, SHIFT, DSCALE, DSHIFT, PARAMETERS_END, MEAN = PARAMETERS_END, RSTD, VAR, RUNNING_MEAN, RUNNING_VAR, NEW_MEAN,
       NEW_VAR, TENSORS };
enum { MAX_OUTER = 4 };
static const char *const norm_names[TENSORS] = { "x", "y", "dy", "scale", "shift", "dscale", "dshift", "mean", "rstd", "var",
                                                 "running_mean", "running_var", "new_mean", "new_var" };

struct norm_problem {
  int32_t  number[TENSORS];               /* values of the request; -1: absent, with strides of 0 */
  uint32_t dtype[TENSORS];
  qn_nest  in, outer;                     /* dims within a group; the others; merged where possible */
  int64_t  length, groups;                /* elements of a group; number of groups */
  int64_t  bytes;                         /* of an element of x */
  bool     centred, backward, batch;      /* batch: batch_norm or its gradient */
  double   moved;                         /* bytes read and written, if x (and dy) are read once */
};

/* What every kernel is given; its other arguments follow. */
struct norm_args {
  void    *p[TENSORS];                    /* NULL: absent */
  uint32_t dtype[TENSORS];
  float    eps, momentum, inverse, unbiased;      /* inverse: 1 / group length n; unbiased: 1 / (n - 1) */
  bool     centred;

  /* Element `at` of a parameter; of the statistics, which are f32. */
  __device__ __forceinline__ float parameter(int t, int64_t at, float absent) const
  {
    return p[t] ? element_load<float>(p[t], at, dtype3(dtype[t])) : absent;
  }
  __device__ __forceinline__ float statistic(int t, int64_t at) const { return p[t] ? ((const float *)p[t])[at] : 0; }
  __device__ __forceinline__ void put(int t, int64_t at, float v) const { if (p[t]) ((float *)p[t])[at] = v; }
};

struct norm_roles { int8_t of[TENSORS]; };                /* -1: the op has no such tensor */
static inline norm_roles norm_roles_of(uint32_t op)
{
  const qn_norm_roles a = qn_norm_roles_of(op);
  return { { a.x, a.y < 0 ? a.dx : a.y, a.dy, a.scale, a.shift, a.dscale, a.dshift, a.mean, a.rstd, a.var, a.running_mean, a.running_var,
             a.new_mean, a.new_var } };
}

/* Refuses devices below `major` (9: without clusters), and tensors of dtypes other than f16, bf16 and f32. */
static inline qn_status norm_open(const qn_request *r, int32_t major, norm_problem *p, norm_args *a, qn_prepared *out)
{
  const uint32_t op = r->op[0].op;
  const norm_roles roles = norm_roles_of(op);
  const qn_norm *norm = (const qn_norm *)r->op[0].attr;
  if (major == 9 ? !cuda_has_clusters(r->device) : r->device->arch_major < major)
    return qn_refuse(out, major == 9 ? "made for compute capability 9.0 alone" : "made for compute capability 8.0 and up", "",
                     major == 9 ? "9.0" : "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  memset(p, 0, sizeof *p);
  p->in.n = PARAMETERS_END, p->outer.n = TENSORS;
  p->length = p->groups = 1;
  for (int t = 0; t < TENSORS; t++) {
    p->number[t] = qn_role_at(&r->op[0], roles.of[t]);
    if (p->number[t] < 0) continue;
    const uint32_t dtype = p->dtype[t] = r->value[p->number[t]].dtype;
    if (dtype != QN_F32 && dtype != QN_F16 && dtype != QN_BF16)
      return qn_refuse(out, "dtypes", norm_names[t], "f16, bf16 or f32", "%s", qn_kit_name(dtype));
  }
  const qn_value *x = &r->value[p->number[X]];
  for (int32_t d = 0; d < x->rank; d++) {
    const bool in = norm->mask >> d & 1;
    qn_nest *nest = in ? &p->in : &p->outer;
    nest->dim[nest->rank] = x->dim[d];
    for (int32_t t = 0; t < nest->n; t++) {
      const qn_value *v = p->number[t] < 0 ? nullptr : &r->value[p->number[t]];
      nest->stride[t][nest->rank] = !v || v->dim[d] == 1 ? 0 : v->stride[d];
    }
    nest->rank++;
    *(in ? &p->length : &p->groups) *= x->dim[d];
  }
  qn_nest_simplify(&p->in);
  qn_nest_simplify(&p->outer);
  p->bytes = qn_kit_bytes(x->dtype);
  memcpy(a->dtype, p->dtype, sizeof a->dtype);
  a->eps = (float)norm->eps, a->momentum = (float)norm->momentum;
  a->inverse = 1 / (float)p->length, a->unbiased = 1 / (float)qn_max_i64(1, p->length - 1);
  a->centred = p->centred = op != QN_OP_RMS_NORM && op != QN_OP_RMS_NORM_BACKWARD;
  p->backward = p->number[DY] >= 0, p->batch = op == QN_OP_BATCH_NORM || op == QN_OP_BATCH_NORM_BACKWARD;
  p->moved = (double)p->groups * (double)p->length * (double)p->bytes * (p->backward ? 3 : 2);
  return QN_OK;
}

/* ---- layouts: each returns the rule that is broken, or NULL ------------------------------------------------------------------------ */

/* x, y and dy of one dtype, in whole vectors of E elements, aligned to 16 bytes, from group to group (and, `lines`, line to line). */
static inline bool norm_whole(const qn_request *r, const norm_problem *p, int64_t E, int from, bool lines)
{
  bool whole = true;
  for (int t = X; t <= DY; t++) {
    if (p->number[t] < 0) continue;
    const qn_value *v = &r->value[p->number[t]];
    whole &= v->dtype == p->dtype[X] && v->align >= 16;
    if (lines) whole &= p->in.rank == 0 || p->in.stride[t][0] % E == 0;
    for (int d = 0; d < p->outer.rank - from; d++) whole &= p->outer.stride[t][d] % E == 0;
  }
  return whole;
}

/* Rows: groups are contiguous, and so are their parameters, which all of them share. */
static inline bool norm_rows(const norm_problem *p)
{
  bool rows = p->in.rank <= 1;
  for (int t = X; t < PARAMETERS_END; t++) {
    if (p->number[t] < 0) continue;
    rows &= p->in.rank == 0 || p->in.stride[t][0] == 1;
    for (int d = 0; d < p->outer.rank && t > DY; d++) rows &= p->outer.stride[t][d] == 0;
  }
  return rows;
}
/* The same at one step, in whole 16-byte words of one dtype; scale and shift of that too, or (*wide) of f32. step: from row to row, x, y
 * and dy in words, others in elements. */
static inline bool norm_word_rows(const qn_request *r, const norm_problem *p, int64_t (&step)[TENSORS], bool *wide)
{
  const int64_t E = 16 / p->bytes;
  bool whole = norm_rows(p) && p->in.rank == 1 && p->length % E == 0 && p->outer.rank <= 1 && norm_whole(r, p, E, 0, false), alike = true;
  *wide = true;
  for (int t = X; t < TENSORS; t++) {
    step[t] = p->outer.rank ? p->outer.stride[t][0] / (t <= DY ? E : 1) : 0;
    if (p->number[t] < 0 || t < SCALE || t > SHIFT) continue;
    whole &= r->value[p->number[t]].align >= 16;
    alike &= p->dtype[t] == p->dtype[X], *wide &= p->dtype[t] == QN_F32;
  }
  *wide &= !alike;
  return whole && (alike || *wide);
}
/* Other rows: the bytes, at most 16, of which all rows of x, y and dy are multiples and begin at multiples; 0: not of one dtype. */
static inline int32_t norm_row_unit(const qn_request *r, const norm_problem *p)
{
  int64_t unit = 16;
  const auto divide = [&](int64_t bytes) { while (bytes % unit) unit /= 2; };
  divide(p->length * p->bytes);
  for (int t = X; t <= DY; t++) {
    if (p->number[t] < 0) continue;
    const qn_value *v = &r->value[p->number[t]];
    if (v->dtype != p->dtype[X]) return 0;
    divide(v->align);
    for (int d = 0; d < p->outer.rank; d++) divide(p->outer.stride[t][d] * p->bytes);
  }
  return (int32_t)unit;
}

/* Were a dim of 1 longer, would the rows still lie at one step, in whole words? So a row has the same kind alone as among others. */
static inline bool norm_lone_rows(const qn_request *r, const norm_problem *p)
{
  const uint64_t mask = ((const qn_norm *)r->op[0].attr)->mask;
  for (int t = X; t < TENSORS; t++) {
    if (p->number[t] < 0 || (t > DY && t < MEAN)) continue;
    const qn_value *v = &r->value[p->number[t]];
    for (int d = v->rank - 1, inner = -1; d >= 0; d--) {
      if (mask >> d & 1) continue;
      if (v->dim[d] == 1) {
        if (t <= DY && v->stride[d] * p->bytes % 16) return false;
        if (inner >= 0 && v->stride[d] != v->stride[inner] * v->dim[inner] && v->stride[d] != v->stride[inner]) return false;
      }
      inner = d;
    }
  }
  return true;
}

/* Channels: in contiguous groups each parameter serves a group, or one of its channels, of *repeat consecutive elements, at least `least`;
 * 0: there are no parameters. */
static inline const char *norm_channels(const norm_problem *p, int64_t least, int64_t *repeat)
{
  const int last = p->in.rank - 1;
  bool contiguous = last <= 1;
  int64_t step = 1;
  *repeat = 0;
  for (int d = last; d >= 0; step *= p->in.dim[d--])
    for (int t = X; t <= DY; t++) contiguous &= p->number[t] < 0 || p->in.stride[t][d] == step;
  if (!contiguous) return "groups are contiguous";
  for (int t = SCALE; t < PARAMETERS_END; t++) {
    if (p->number[t] < 0) continue;
    const int64_t from = last < 0 ? 0 : p->in.stride[t][0], to = last < 0 ? 0 : p->in.stride[t][last];
    const int64_t here = from == 0 && to == 0 ? p->length : last == 1 && from == 1 && to == 0 ? p->in.dim[1] : 0;
    if (here < least || (*repeat && here != *repeat))
      return "parameters have an element for a group, or for each of its channels, of 16 bytes or more";
    *repeat = here;
  }
  return nullptr;
}

/* Runs: a group has a contiguous run in each of many lines, beside those of other groups, which the last outer dim numbers; x, y and dy
 * are in whole words. */
static inline const char *norm_runs(const qn_request *r, const norm_problem *p, int64_t *run)
{
  const qn_nest &in = p->in, &outer = p->outer;
  const int last = in.rank - 1, g = outer.rank - 1;
  if (last < 0 || last > 1 || g < 0 || g >= MAX_OUTER) return "lines at one step, with a run of each group, counted by up to 4 dims";
  *run = last == 1 ? in.dim[1] : 1;
  for (int t = X; t <= DY; t++)
    if (p->number[t] >= 0 &&
        (in.stride[t][0] < *run * outer.dim[g] || outer.stride[t][g] != *run || (last == 1 && in.stride[t][1] != 1)))
      return "a line has a run of each of its groups, side by side";
  if (!norm_whole(r, p, 16 / p->bytes, 1, true) || *run * outer.dim[g] * p->bytes % 16)
    return "x, dy and y of one dtype, lines in whole words aligned to 16 bytes";
  return p->backward && !qn_same_layout(&r->value[p->number[DY]], &r->value[p->number[X]]) ? "dy lies as x does" : nullptr;
}

/* ---- items: groups, or some neighbouring ones, numbered by the outer dims ----------------------------------------------------------- */

struct norm_items {
  int32_t  rank;                          /* the outer dims, innermost first */
  cuda_divisor by[MAX_OUTER];
  int64_t  stride[TENSORS][MAX_OUTER];

  /* The offset of an item in tensor t. */
  __device__ __forceinline__ int64_t place(int item, int t) const
  {
    int64_t at = 0;
#pragma unroll
    for (int d = 0; d < MAX_OUTER; d++) {
      if (d == rank) break;
      const int q = cuda_quotient(item, by[d]);
      at += (item - q * (int)by[d].by) * stride[t][d];
      item = q;
    }
    return at;
  }
};
/* Items of `together` neighbouring groups of the last dim. */
static inline bool norm_number(const qn_nest &nest, int64_t together, norm_items *items)
{
  if (nest.rank > MAX_OUTER) return false;
  items->rank = nest.rank;
  for (int d = 0; d < nest.rank; d++) {
    const int from = nest.rank - 1 - d;
    items->by[d] = cuda_divide_by(d == 0 ? nest.dim[from] / together : nest.dim[from]);
    for (int t = 0; t < nest.n; t++) items->stride[t][d] = nest.stride[t][from] * (d == 0 ? together : 1);
  }
  return true;
}

/* ---- a block's slice of a row's parameters, kept in registers across rows as raw 16-byte words ----------------------------------------*/

/* Word `at` of a parameter; `absent`: value where there is no such parameter. */
template <int dtype> __device__ __forceinline__ void parameter_word(uint4 &w, const void *p, float absent, int at, bool there = true)
{
  float v[vector_per_16<dtype>];
#pragma unroll
  for (int e = 0; e < vector_per_16<dtype>; e++) v[e] = absent;
  w = p && there ? __ldg((const uint4 *)p + at) : vector_close<dtype>(v, 0);
}
/* Words first, first + apart, ..., n of them. */
template <int dtype, int N>
__device__ __forceinline__ void parameter_words(uint4 (&w)[N], const void *p, float absent, int first, int apart, int n)
{
#pragma unroll
  for (int k = 0; k < N; k++) parameter_word<dtype>(w[k], p, absent, first + k * apart, k < n);
}
/* Keeps the compiler from hoisting the conversion to f32 out of the row loop, which would double the registers. */
template <int N> __device__ __forceinline__ void parameter_stay(uint4 (&w)[N])
{
#pragma unroll
  for (int k = 0; k < N; k++) asm volatile("" : "+r"(w[k].x), "+r"(w[k].y), "+r"(w[k].z), "+r"(w[k].w));
}
