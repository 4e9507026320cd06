/* kit.h -- helpers that backends share; static inlines only, C99 and C++, host code.
 *
 *   numbers       conversions between dtypes, one element of any (number.h)
 *   layouts       extents, packed and dense tests, merging of dims, iteration
 *   roles         an op's arguments by role
 *   blocks        which elements share a quantization scale
 *   counters      of steps, of a loss scale
 *   random        Philox
 *   refusals      qn_refuse, to say in one line why not
 *
 * Functions marked QN_EITHER_SIDE may also be called in CUDA device code. */
#ifndef QUERN_KIT_H
#define QUERN_KIT_H
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <quern/backend.h>
#include <quern/number.h>
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__CUDACC__)
#define QN_EITHER_SIDE static inline __host__ __device__
#elif defined(__GNUC__)
#define QN_EITHER_SIDE static inline __attribute__((always_inline))      /* inlined, so that a loop over one vectorises */
#else
#define QN_EITHER_SIDE static inline
#endif

/* ---- layouts ------------------------------------------------------------------------------- */

static inline int64_t qn_elements(const qn_value *v)
{
  int64_t n = 1;
  for (int32_t i = 0; i < v->rank; i++) n *= v->dim[i];
  return n;
}

/* Number of elements from the first address to one past the last. */
static inline int64_t qn_extent(const qn_value *v)
{
  int64_t last = 0;
  for (int32_t i = 0; i < v->rank; i++) {
    if (v->dim[i] == 0) return 0;
    last += (v->dim[i] - 1) * v->stride[i];
  }
  return last + 1;
}
static inline int64_t qn_extent_bytes(const qn_value *v) { return qn_extent(v) * qn_kit_bytes(v->dtype); }

/* Row-major without gaps, from dim `from` on. Strides of dims of 1 are ignored. */
static inline int qn_is_packed_from(const qn_value *v, int32_t from)
{
  int64_t expected = 1;
  for (int32_t i = v->rank - 1; i >= from; i--) {
    if (v->dim[i] != 1 && v->stride[i] != expected) return 0;
    expected *= v->dim[i];
  }
  return 1;
}
static inline int qn_is_packed(const qn_value *v) { return qn_is_packed_from(v, 0); }

/* Each address of the extent is exactly one element, in any order of dims. */
static inline int qn_is_dense(const qn_value *v)
{
  int64_t expected = 1;
  uint32_t seen = 0;
  for (int32_t found = 0; found < v->rank; found++) {      /* find the dim whose stride is the span of the faster ones */
    int32_t next = -1;
    for (int32_t i = 0; i < v->rank; i++)
      if (!(seen >> i & 1) && (v->dim[i] == 1 || v->stride[i] == expected)) { next = i; if (v->dim[i] == 1) break; }
    if (next < 0) return 0;
    seen |= 1u << next;
    expected *= v->dim[next];
  }
  return 1;
}

/* Order N, spatial, C (C fastest), without gaps; rank 3 to 5. */
static inline int qn_is_channels_last(const qn_value *v)
{
  if (v->rank < 3) return 0;
  int64_t expected = v->dim[1];
  if (v->dim[1] != 1 && v->stride[1] != 1) return 0;
  for (int32_t i = v->rank - 1; i >= 2; i--) {
    if (v->dim[i] != 1 && v->stride[i] != expected) return 0;
    expected *= v->dim[i];
  }
  return v->dim[0] == 1 || v->stride[0] == expected;
}

static inline int qn_same_dims(const qn_value *a, const qn_value *b)
{
  if (a->rank != b->rank) return 0;
  for (int32_t i = 0; i < a->rank; i++) if (a->dim[i] != b->dim[i]) return 0;
  return 1;
}
static inline int qn_same_layout(const qn_value *a, const qn_value *b)       /* same dims, and same strides where dim > 1 */
{
  if (!qn_same_dims(a, b)) return 0;
  for (int32_t i = 0; i < a->rank; i++) if (a->dim[i] != 1 && a->stride[i] != b->stride[i]) return 0;
  return 1;
}

/* A loop nest over several tensors: n rows of strides over the same dims; stride 0 where a tensor is broadcast. */
#define QN_KIT_OPERANDS 16
typedef struct qn_nest {
  int32_t n, rank;
  int64_t dim[QN_MAX_RANK];
  int64_t stride[QN_KIT_OPERANDS][QN_MAX_RANK];
} qn_nest;

/* Begins a nest over v's dims with v as its first tensor. */
static inline void qn_nest_begin(qn_nest *nest, const qn_value *v)
{
  nest->n = 1;
  nest->rank = v->rank;
  for (int32_t i = 0; i < v->rank; i++) {
    nest->dim[i] = v->dim[i];
    nest->stride[0][i] = v->stride[i];
  }
}

/* Adds v, of the nest's rank or rank 0, broadcast where its dim is 1. Returns its index; -1 if the nest is full. */
static inline int32_t qn_nest_add(qn_nest *nest, const qn_value *v)
{
  if (nest->n == QN_KIT_OPERANDS) return -1;
  for (int32_t i = 0; i < nest->rank; i++)
    nest->stride[nest->n][i] = v->rank == 0 || v->dim[i] == 1 ? 0 : v->stride[i];
  return nest->n++;
}

/* Sorts dims by the first tensor's stride, largest first, drops dims of 1 and merges neighbours that are contiguous in every
 * tensor, for the fewest loops. Only for work whose order does not matter. */
static inline void qn_nest_simplify(qn_nest *nest)
{
  int32_t rank = 0;
  for (int32_t i = 0; i < nest->rank; i++) {               /* insertion sort; dims of 1 are skipped */
    const int64_t dim = nest->dim[i];
    int64_t stride[QN_KIT_OPERANDS];
    int32_t at = rank;
    if (dim == 1) continue;
    for (int32_t t = 0; t < nest->n; t++) stride[t] = nest->stride[t][i];
    for (; at > 0 && nest->stride[0][at - 1] < stride[0]; at--) {
      nest->dim[at] = nest->dim[at - 1];
      for (int32_t t = 0; t < nest->n; t++) nest->stride[t][at] = nest->stride[t][at - 1];
    }
    nest->dim[at] = dim;
    for (int32_t t = 0; t < nest->n; t++) nest->stride[t][at] = stride[t];
    rank++;
  }
  int32_t kept = 0;
  for (int32_t i = 0; i < rank; i++) {
    int merges = kept > 0;
    for (int32_t t = 0; t < nest->n && merges; t++)
      merges = nest->stride[t][kept - 1] == nest->stride[t][i] * nest->dim[i];
    if (merges) nest->dim[kept - 1] *= nest->dim[i];
    else nest->dim[kept++] = nest->dim[i];
    for (int32_t t = 0; t < nest->n; t++) nest->stride[t][kept - 1] = nest->stride[t][i];
  }
  nest->rank = kept;
}

/* Iterates over the first `rank` dims of a nest, last dim fastest, from iteration i on: offset[t] is tensor t's, in elements. */
typedef struct qn_walk {
  const qn_nest *nest;
  int32_t rank;
  int64_t index[QN_MAX_RANK];
  int64_t offset[QN_KIT_OPERANDS];
} qn_walk;

static inline void qn_walk_begin(qn_walk *w, const qn_nest *nest, int32_t rank, int64_t i)
{
  w->nest = nest;
  w->rank = rank;
  for (int32_t t = 0; t < nest->n; t++) w->offset[t] = 0;
  for (int32_t d = rank - 1; d >= 0; d--) {
    w->index[d] = i % nest->dim[d];
    i /= nest->dim[d];
    for (int32_t t = 0; t < nest->n; t++) w->offset[t] += w->index[d] * nest->stride[t][d];
  }
}

static inline void qn_walk_next(qn_walk *w)
{
  const qn_nest *nest = w->nest;
  for (int32_t d = w->rank - 1; d >= 0; d--) {
    if (++w->index[d] < nest->dim[d]) {
      for (int32_t t = 0; t < nest->n; t++) w->offset[t] += nest->stride[t][d];
      return;
    }
    w->index[d] = 0;
    for (int32_t t = 0; t < nest->n; t++) w->offset[t] -= (nest->dim[d] - 1) * nest->stride[t][d];
  }
}

/* Does a slice go forwards in all dims? Does a pad only add, and nothing that comes round again? Most engines take no others. */
static inline int qn_slices_forwards(const qn_slicing *a, int32_t rank)
{
  for (int32_t d = 0; d < rank; d++)
    if (a->step[d] < 0) return 0;
  return 1;
}
static inline int qn_pads_outwards(const qn_padding *a, int32_t rank)
{
  for (int32_t d = 0; d < rank; d++)
    if (a->pad_before[d] < 0 || a->pad_after[d] < 0) return 0;
  return a->mode != QN_PAD_WRAP;
}

/* X/P in the coordinates of spatial dim d: of the extents, or of a scale factor. */
static inline void qn_resample_ratio(const qn_resampling *a, int d, int64_t *x, int64_t *y)
{
  if (a->up[d]) *x = a->down[d], *y = a->up[d];
}

/* nearest takes the floor of `over / under` after this: the coordinate rounded as the attribute says. */
static inline void qn_round_place(const qn_resampling *a, int64_t *over, int64_t *under)
{
  const int64_t usual = a->grid == QN_GRID_ASYMMETRIC ? QN_ROUNDING_FLOOR : QN_ROUNDING_PREFER_CEIL;
  const int64_t how = a->rounding ? a->rounding : usual, down = how == QN_ROUNDING_PREFER_FLOOR;
  if (how == QN_ROUNDING_CEIL) *over += *under - 1;
  if (how != QN_ROUNDING_PREFER_FLOOR && how != QN_ROUNDING_PREFER_CEIL) return;
  *over = 2 * *over + *under - down;
  *under *= 2;
}

/* ---- roles --------------------------------------------------------------------------------- */

/* The value of a role that takes one tensor; -1: optional and absent. */
static inline int32_t qn_role(const qn_node *node, uint32_t role)
{
  if (role >= node->n_roles || node->first[role] == node->first[role + 1]) return -1;
  return node->arg[node->first[role]];
}

/* The role numbers of an op of the normalization family; -1: the op has no such role. */
typedef struct qn_norm_roles {
  int8_t x, dy, scale, shift, mean, rstd, var, running_mean, running_var, y, new_mean, new_var, dx, dscale, dshift;
} qn_norm_roles;

static inline qn_norm_roles qn_norm_roles_of(uint32_t op)
{
  qn_norm_roles r;
  memset(&r, -1, sizeof r);
  switch (op) {
  case QN_OP_LAYER_NORM:
    r.x = QN_ROLE_LAYER_NORM_X, r.scale = QN_ROLE_LAYER_NORM_SCALE, r.shift = QN_ROLE_LAYER_NORM_SHIFT;
    r.y = QN_ROLE_LAYER_NORM_Y, r.mean = QN_ROLE_LAYER_NORM_MEAN, r.rstd = QN_ROLE_LAYER_NORM_RSTD;
    break;
  case QN_OP_RMS_NORM:
    r.x = QN_ROLE_RMS_NORM_X, r.scale = QN_ROLE_RMS_NORM_SCALE, r.y = QN_ROLE_RMS_NORM_Y, r.rstd = QN_ROLE_RMS_NORM_RSTD;
    break;
  case QN_OP_BATCH_NORM:
    r.x = QN_ROLE_BATCH_NORM_X, r.scale = QN_ROLE_BATCH_NORM_SCALE, r.shift = QN_ROLE_BATCH_NORM_SHIFT;
    r.running_mean = QN_ROLE_BATCH_NORM_RUNNING_MEAN, r.running_var = QN_ROLE_BATCH_NORM_RUNNING_VAR;
    r.y = QN_ROLE_BATCH_NORM_Y, r.mean = QN_ROLE_BATCH_NORM_MEAN, r.rstd = QN_ROLE_BATCH_NORM_RSTD;
    r.new_mean = QN_ROLE_BATCH_NORM_NEW_MEAN, r.new_var = QN_ROLE_BATCH_NORM_NEW_VAR;
    break;
  case QN_OP_BATCH_NORM_INFERENCE:
    r.x = QN_ROLE_BATCH_NORM_INFERENCE_X, r.mean = QN_ROLE_BATCH_NORM_INFERENCE_MEAN, r.var = QN_ROLE_BATCH_NORM_INFERENCE_VAR;
    r.scale = QN_ROLE_BATCH_NORM_INFERENCE_SCALE, r.shift = QN_ROLE_BATCH_NORM_INFERENCE_SHIFT, r.y = QN_ROLE_BATCH_NORM_INFERENCE_Y;
    break;
  case QN_OP_RMS_NORM_BACKWARD:
    r.dy = QN_ROLE_RMS_NORM_BACKWARD_DY, r.x = QN_ROLE_RMS_NORM_BACKWARD_X, r.scale = QN_ROLE_RMS_NORM_BACKWARD_SCALE;
    r.rstd = QN_ROLE_RMS_NORM_BACKWARD_RSTD, r.dx = QN_ROLE_RMS_NORM_BACKWARD_DX, r.dscale = QN_ROLE_RMS_NORM_BACKWARD_DSCALE;
    break;
  case QN_OP_LAYER_NORM_BACKWARD:
  case QN_OP_BATCH_NORM_BACKWARD:       /* the same roles */
    r.dy = QN_ROLE_LAYER_NORM_BACKWARD_DY, r.x = QN_ROLE_LAYER_NORM_BACKWARD_X, r.scale = QN_ROLE_LAYER_NORM_BACKWARD_SCALE;
    r.mean = QN_ROLE_LAYER_NORM_BACKWARD_MEAN, r.rstd = QN_ROLE_LAYER_NORM_BACKWARD_RSTD, r.dx = QN_ROLE_LAYER_NORM_BACKWARD_DX;
    r.dscale = QN_ROLE_LAYER_NORM_BACKWARD_DSCALE, r.dshift = QN_ROLE_LAYER_NORM_BACKWARD_DSHIFT;
  }
  return r;
}

/* As qn_role, but role may be -1: then -1. */
static inline int32_t qn_role_at(const qn_node *node, int8_t role) { return role < 0 ? -1 : qn_role(node, (uint32_t)role); }

/* Must an engine that takes this set of the region's ops (bit i: op[i]) write value v, a result of one of them? */
static inline int qn_must_write(const qn_request *r, uint64_t taken, int32_t v)
{
  int read = 0;
  if (r->value[v].flags & QN_VALUE_ESCAPE || r->value[v].last_user >= (int32_t)r->n_ops) return 1;
  for (uint32_t i = 0; i < r->n_ops; i++)
    for (int32_t a = 0; a < r->op[i].first[r->op[i].n_inputs]; a++) {
      const int32_t u = r->op[i].arg[a];
      if (u != v && !(r->view && r->value[u].flags & QN_VALUE_VIEW && r->view[u].of == v)) continue;
      if (!(taken >> i & 1)) return 1;
      read = 1;
    }
  return !read;
}

/* The role numbers of an op of the random family; -1: the op has no such role. */
typedef struct qn_random_roles { int8_t x, y, mask, mask_out, seed, offset; } qn_random_roles;

static inline qn_random_roles qn_random_roles_of(uint32_t op)
{
  qn_random_roles r;
  memset(&r, -1, sizeof r);
  switch (op) {
  case QN_OP_DROPOUT:
    r.x = QN_ROLE_DROPOUT_X, r.seed = QN_ROLE_DROPOUT_SEED, r.offset = QN_ROLE_DROPOUT_OFFSET;
    r.y = QN_ROLE_DROPOUT_Y, r.mask_out = QN_ROLE_DROPOUT_MASK;
    break;
  case QN_OP_DROPOUT_BACKWARD:
    r.x = QN_ROLE_DROPOUT_BACKWARD_DY, r.mask = QN_ROLE_DROPOUT_BACKWARD_MASK, r.seed = QN_ROLE_DROPOUT_BACKWARD_SEED;
    r.offset = QN_ROLE_DROPOUT_BACKWARD_OFFSET, r.y = QN_ROLE_DROPOUT_BACKWARD_DX;
    break;
  default:                                /* the rng_ ops have the same roles */
    r.seed = QN_ROLE_RNG_UNIFORM_SEED, r.offset = QN_ROLE_RNG_UNIFORM_OFFSET, r.y = QN_ROLE_RNG_UNIFORM_Y;
  }
  return r;
}

/* The role numbers of an op of the training family; -1: the op has no such role. */
typedef struct qn_step_roles {
  int8_t params, grads, m, v, step, rate, scale, found, new_step, new_params, new_m, new_v, copy;        /* m: a velocity, too */
  int8_t peak, new_peak;
} qn_step_roles;

static inline qn_step_roles qn_step_roles_of(uint32_t op)
{
  qn_step_roles r;
  memset(&r, -1, sizeof r);
  switch (op) {
  case QN_OP_SGD:
    r.params = QN_ROLE_SGD_PARAMS, r.grads = QN_ROLE_SGD_GRADS, r.m = QN_ROLE_SGD_VELOCITY, r.step = QN_ROLE_SGD_STEP;
    r.rate = QN_ROLE_SGD_RATE, r.scale = QN_ROLE_SGD_SCALE, r.found = QN_ROLE_SGD_FOUND, r.new_step = QN_ROLE_SGD_NEW_STEP;
    r.new_params = QN_ROLE_SGD_NEW_PARAMS, r.new_m = QN_ROLE_SGD_NEW_VELOCITY, r.copy = QN_ROLE_SGD_COPY;
    break;
  case QN_OP_ADAM:
  case QN_OP_ADAMW: case QN_OP_LAMB:      /* the same roles */
    r.params = QN_ROLE_ADAM_PARAMS, r.grads = QN_ROLE_ADAM_GRADS, r.m = QN_ROLE_ADAM_M, r.v = QN_ROLE_ADAM_V;
    r.step = QN_ROLE_ADAM_STEP, r.rate = QN_ROLE_ADAM_RATE, r.scale = QN_ROLE_ADAM_SCALE, r.found = QN_ROLE_ADAM_FOUND;
    r.new_step = QN_ROLE_ADAM_NEW_STEP, r.new_params = QN_ROLE_ADAM_NEW_PARAMS, r.new_m = QN_ROLE_ADAM_NEW_M;
    r.new_v = QN_ROLE_ADAM_NEW_V, r.copy = QN_ROLE_ADAM_COPY;
    break;
  case QN_OP_AMSGRAD:
    r.params = QN_ROLE_AMSGRAD_PARAMS, r.grads = QN_ROLE_AMSGRAD_GRADS, r.m = QN_ROLE_AMSGRAD_M, r.v = QN_ROLE_AMSGRAD_V;
    r.peak = QN_ROLE_AMSGRAD_PEAK, r.step = QN_ROLE_AMSGRAD_STEP, r.rate = QN_ROLE_AMSGRAD_RATE, r.scale = QN_ROLE_AMSGRAD_SCALE;
    r.found = QN_ROLE_AMSGRAD_FOUND, r.new_step = QN_ROLE_AMSGRAD_NEW_STEP, r.new_params = QN_ROLE_AMSGRAD_NEW_PARAMS;
    r.new_m = QN_ROLE_AMSGRAD_NEW_M, r.new_v = QN_ROLE_AMSGRAD_NEW_V, r.new_peak = QN_ROLE_AMSGRAD_NEW_PEAK, r.copy = QN_ROLE_AMSGRAD_COPY;
    break;
  case QN_OP_RMSPROP:
    r.params = QN_ROLE_RMSPROP_PARAMS, r.grads = QN_ROLE_RMSPROP_GRADS, r.m = QN_ROLE_RMSPROP_VELOCITY, r.v = QN_ROLE_RMSPROP_V;
    r.step = QN_ROLE_RMSPROP_STEP, r.rate = QN_ROLE_RMSPROP_RATE, r.scale = QN_ROLE_RMSPROP_SCALE, r.found = QN_ROLE_RMSPROP_FOUND;
    r.new_step = QN_ROLE_RMSPROP_NEW_STEP, r.new_params = QN_ROLE_RMSPROP_NEW_PARAMS, r.new_m = QN_ROLE_RMSPROP_NEW_VELOCITY;
    r.new_v = QN_ROLE_RMSPROP_NEW_V, r.copy = QN_ROLE_RMSPROP_COPY;
    break;
  case QN_OP_ADAGRAD:
    r.params = QN_ROLE_ADAGRAD_PARAMS, r.grads = QN_ROLE_ADAGRAD_GRADS, r.v = QN_ROLE_ADAGRAD_V, r.step = QN_ROLE_ADAGRAD_STEP;
    r.rate = QN_ROLE_ADAGRAD_RATE, r.scale = QN_ROLE_ADAGRAD_SCALE, r.found = QN_ROLE_ADAGRAD_FOUND;
    r.new_step = QN_ROLE_ADAGRAD_NEW_STEP, r.new_params = QN_ROLE_ADAGRAD_NEW_PARAMS, r.new_v = QN_ROLE_ADAGRAD_NEW_V;
    r.copy = QN_ROLE_ADAGRAD_COPY;
    break;
  case QN_OP_LION:
    r.params = QN_ROLE_LION_PARAMS, r.grads = QN_ROLE_LION_GRADS, r.m = QN_ROLE_LION_M, r.step = QN_ROLE_LION_STEP;
    r.rate = QN_ROLE_LION_RATE, r.scale = QN_ROLE_LION_SCALE, r.found = QN_ROLE_LION_FOUND, r.new_step = QN_ROLE_LION_NEW_STEP;
    r.new_params = QN_ROLE_LION_NEW_PARAMS, r.new_m = QN_ROLE_LION_NEW_M, r.copy = QN_ROLE_LION_COPY;
    break;
  case QN_OP_GLOBAL_NORM:
    r.grads = QN_ROLE_GLOBAL_NORM_X, r.scale = QN_ROLE_GLOBAL_NORM_SCALE;
    break;
  case QN_OP_AMP_UNSCALE:
    r.grads = QN_ROLE_AMP_UNSCALE_GRADS, r.scale = QN_ROLE_AMP_UNSCALE_SCALE, r.new_params = QN_ROLE_AMP_UNSCALE_NEW_GRADS;
  }
  return r;
}

/* ---- blocks of quantization ---------------------------------------------------------------- */

/* dim elements, each `block` neighbours of which share a scale; the next block's scale is `stride` scales further. */
typedef struct qn_block_level { int64_t dim, block, stride; } qn_block_level;

/* The dims of a packed x as levels of blocks, innermost first, as few as possible: dims of 1 are dropped, and a dim whose blocks
 * continue those of the dims inside it is merged with them. A single scale gives no level. block: the attribute as completed by core. */
static inline int32_t qn_block_levels(const qn_value *x, const qn_value *scale, const int64_t *block, qn_block_level *out)
{
  int32_t n = 0;
  for (int32_t d = x->rank - 1; d >= 0; d--) {
    const qn_block_level outer = { x->dim[d], block[d] ? block[d] : x->dim[d], block[d] ? scale->stride[d] : 0 };
    qn_block_level *in = n ? &out[n - 1] : NULL;
    if (outer.dim == 1) continue;
    if (in && in->block == in->dim) {
      in->block = outer.block * in->dim;
      in->stride = outer.stride;
      in->dim *= outer.dim;
    } else if (in && outer.block == 1 && in->dim % in->block == 0 && outer.stride == in->dim / in->block * in->stride)
      in->dim *= outer.dim;
    else out[n++] = outer;
  }
  return n == 1 && out[0].block == out[0].dim ? 0 : n;
}

/* ---- counters ------------------------------------------------------------------------------ */

/* n + 1, saturating at the largest integer. */
QN_EITHER_SIDE int64_t qn_count_on(int64_t n) { return n < INT64_MAX ? n + 1 : n; }

/* ---- random numbers ------------------------------------------------------------------------ */

QN_EITHER_SIDE void qn_philox_round(uint32_t w[4], uint32_t key0, uint32_t key1)
{
  const uint64_t a = (uint64_t)0xd2511f53u * w[0], b = (uint64_t)0xcd9e8d57u * w[2];
  w[0] = (uint32_t)(b >> 32) ^ w[1] ^ key0;
  w[1] = (uint32_t)b;
  w[2] = (uint32_t)(a >> 32) ^ w[3] ^ key1;
  w[3] = (uint32_t)a;
}

/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011): the counter in w becomes four random words. */
QN_EITHER_SIDE void qn_philox(uint32_t w[4], uint64_t key)
{
  const uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32), s0 = 0x9e3779b9u, s1 = 0xbb67ae85u;
  qn_philox_round(w, k0, k1);
  qn_philox_round(w, k0 + s0, k1 + s1);
  qn_philox_round(w, k0 + 2 * s0, k1 + 2 * s1);
  qn_philox_round(w, k0 + 3 * s0, k1 + 3 * s1);
  qn_philox_round(w, k0 + 4 * s0, k1 + 4 * s1);
  qn_philox_round(w, k0 + 5 * s0, k1 + 5 * s1);
  qn_philox_round(w, k0 + 6 * s0, k1 + 6 * s1);
  qn_philox_round(w, k0 + 7 * s0, k1 + 7 * s1);
  qn_philox_round(w, k0 + 8 * s0, k1 + 8 * s1);
  qn_philox_round(w, k0 + 9 * s0, k1 + 9 * s1);
}

/* The random words of elements 4 block to 4 block + 3. */
QN_EITHER_SIDE void qn_random_words(uint32_t w[4], uint64_t seed, uint64_t offset, uint64_t block)
{
  w[0] = (uint32_t)block, w[1] = (uint32_t)(block >> 32), w[2] = (uint32_t)offset, w[3] = (uint32_t)(offset >> 32);
  qn_philox(w, seed);
}

/* Bounds the intermediates of rng_normal: |mean| plus the largest deviation. A normal number made from 24 bits is less than
 * 5.9 deviations from its mean. */
static inline double qn_normal_reach(double mean, double deviation) { return fabs(mean) + 6 * deviation; }

/* An event of probability p happens for this many of the 2^32 words: those below the result. */
static inline uint64_t qn_chance_words(double p) { return (uint64_t)ceil(p * 4294967296.0); }

/* ---- refusals ------------------------------------------------------------------------------ */

/* Usage: return qn_refuse(p, "C must be a multiple of 8 for 16-byte loads", "x", "a multiple of 8", "%lld", (long long)c);
 * If there is no value to show: "%s", "". Returns QN_UNSUPPORTED. */
#if defined(__GNUC__)
__attribute__((format(printf, 5, 6)))
#endif
static inline qn_status qn_refuse(qn_prepared *p, const char *rule, const char *tensor, const char *needed,
                                  const char *seen_format, ...)
{
  va_list args;
  memset(&p->refusal, 0, sizeof p->refusal);
  snprintf(p->refusal.rule, sizeof p->refusal.rule, "%s", rule);
  snprintf(p->refusal.tensor, sizeof p->refusal.tensor, "%s", tensor);
  snprintf(p->refusal.needed, sizeof p->refusal.needed, "%s", needed);
  va_start(args, seen_format);
  vsnprintf(p->refusal.seen, sizeof p->refusal.seen, seen_format, args);
  va_end(args);
  return QN_UNSUPPORTED;
}

#ifdef __cplusplus
}
#endif
#endif
