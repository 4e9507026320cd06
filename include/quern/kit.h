/* kit.h -- what backends would otherwise each write again; static inlines only, C99 and C++, host code.
 *
 *   conversions   f16, bf16, e4m3, e5m2 from f32 or f64, rounded once to nearest even, and back, which is exact; e8m0 rounds down
 *   elements      one element of any dtype as a double or as an int64_t, at any alignment
 *   layouts       extents, packed and dense tests, merging of dims, walks
 *   roles         an op's arguments by role
 *   blocks        what shares a scale
 *   refusals      qn_refuse, the one-line way to say why not
 *   random        Philox, for the host and for CUDA's device code
 *
 * The rules where formats differ: an overflow gives Inf in f16, bf16 and f32, and the largest finite number in e4m3 and
 * e5m2 (an infinite input too); integers saturate; NaN gives NaN, or 0 in an integer; bool is "not equal to 0". A number
 * becomes an integer by rounding to nearest, ties to even. */
#ifndef QUERN_KIT_H
#define QUERN_KIT_H
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- bits ---------------------------------------------------------------------------------- */

static inline uint32_t qn_bits_of_f32(float x)     { uint32_t b; memcpy(&b, &x, sizeof b); return b; }
static inline uint64_t qn_bits_of_f64(double x)    { uint64_t b; memcpy(&b, &x, sizeof b); return b; }
static inline float    qn_f32_of_bits(uint32_t b)  { float x; memcpy(&x, &b, sizeof x); return x; }
static inline double   qn_f64_of_bits(uint64_t b)  { double x; memcpy(&x, &b, sizeof x); return x; }

/* ---- small floats -------------------------------------------------------------------------- */

/* The magnitude of a finite x in a format of `fraction` bits and this exponent bias, as its bits, without a limit above:
 * a result past the format's largest is the caller's to turn into Inf or the largest. */
static inline uint32_t qn_round_magnitude(double x, int fraction, int bias)
{
  const uint64_t bits = qn_bits_of_f64(x) & 0x7fffffffffffffffu;
  int exponent = (int)(bits >> 52) - 1023;
  const uint64_t significand = (bits & 0xfffffffffffffu) | 0x10000000000000u;
  int shift = 52 - fraction;
  if (exponent < 1 - bias) {              /* subnormal in the format: all share the least exponent */
    shift += 1 - bias - exponent;
    exponent = 1 - bias;
    if (shift > 54) return 0;             /* below half of the least; f64's own subnormals too */
  }
  const uint64_t odd = significand >> shift & 1;
  const uint64_t rounded = (significand + ((uint64_t)1 << (shift - 1)) - 1 + odd) >> shift;
  /* the leading bit, if there is one, counts 1 in the exponent; a carry out of the fraction counts another */
  return (uint32_t)(((uint64_t)(exponent + bias - 1) << fraction) + rounded);
}

static inline uint16_t qn_f16_from_f64(double x)
{
  const uint16_t sign = (uint16_t)(qn_bits_of_f64(x) >> 63 << 15);
  if (x != x) return 0x7e00;
  if (fabs(x) >= 65520.0) return sign | 0x7c00;            /* halfway between 65504 and 2^16: even is Inf */
  return sign | (uint16_t)qn_round_magnitude(x, 10, 15);
}

static inline uint16_t qn_bf16_from_f64(double x)
{
  const uint16_t sign = (uint16_t)(qn_bits_of_f64(x) >> 63 << 15);
  if (x != x) return 0x7fc0;
  if (fabs(x) >= (2 - 1 / 256.0) * 170141183460469231731687303715884105728.0)   /* halfway from the largest to 2^128 */
    return sign | 0x7f80;
  return sign | (uint16_t)qn_round_magnitude(x, 7, 127);
}

static inline uint8_t qn_e4m3_from_f64(double x)
{
  const uint8_t sign = (uint8_t)(qn_bits_of_f64(x) >> 63 << 7);
  if (x != x) return 0x7f;
  if (fabs(x) >= 448.0) return sign | 0x7e;
  return sign | (uint8_t)qn_round_magnitude(x, 3, 7);
}

static inline uint8_t qn_e5m2_from_f64(double x)
{
  const uint8_t sign = (uint8_t)(qn_bits_of_f64(x) >> 63 << 7);
  if (x != x) return 0x7f;
  if (fabs(x) >= 57344.0) return sign | 0x7b;
  return sign | (uint8_t)qn_round_magnitude(x, 2, 15);
}

static inline uint16_t qn_f16_from_f32(float x)  { return qn_f16_from_f64(x); }     /* f32 to f64 is exact */
static inline uint8_t  qn_e4m3_from_f32(float x) { return qn_e4m3_from_f64(x); }
static inline uint8_t  qn_e5m2_from_f32(float x) { return qn_e5m2_from_f64(x); }
static inline uint16_t qn_bf16_from_f32(float x)
{
  const uint32_t bits = qn_bits_of_f32(x);
  if (x != x) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float qn_f16_to_f32(uint16_t h)
{
  const uint32_t sign = (uint32_t)(h & 0x8000) << 16, magnitude = h & 0x7fff;
  if (magnitude >= 0x7c00) return qn_f32_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x0400) return qn_f32_of_bits(sign | ((magnitude << 13) + (112u << 23)));
  return (sign ? -5.9604644775390625e-8f : 5.9604644775390625e-8f) * (float)magnitude;
}
static inline float qn_bf16_to_f32(uint16_t h) { return qn_f32_of_bits((uint32_t)h << 16); }
static inline float qn_e4m3_to_f32(uint8_t b)
{
  const uint32_t sign = (uint32_t)(b & 0x80) << 24, magnitude = b & 0x7f;
  if (magnitude == 0x7f) return qn_f32_of_bits(sign | 0x7fc00000);
  if (magnitude >= 0x08) return qn_f32_of_bits(sign | ((magnitude << 20) + (120u << 23)));
  return (sign ? -0.001953125f : 0.001953125f) * (float)magnitude;
}
static inline float qn_e5m2_to_f32(uint8_t b) { return qn_f16_to_f32((uint16_t)(b << 8)); }   /* f16 cut short */

static inline double qn_f16_to_f64(uint16_t h)  { return qn_f16_to_f32(h); }
static inline double qn_bf16_to_f64(uint16_t h) { return qn_bf16_to_f32(h); }
static inline double qn_e4m3_to_f64(uint8_t b)  { return qn_e4m3_to_f32(b); }
static inline double qn_e5m2_to_f64(uint8_t b)  { return qn_e5m2_to_f32(b); }

static inline float  qn_e8m0_to_f32(uint8_t b) { return qn_f32_of_bits(b == 255 ? 0x7fc00000u : b ? (uint32_t)b << 23 : 0x00400000u); }
static inline double qn_e8m0_to_f64(uint8_t b) { return qn_e8m0_to_f32(b); }
/* The largest power of two that is not above x, at least 2^-127; of Inf and NaN, NaN. */
static inline uint8_t qn_e8m0_from_f64(double x)
{
  int exponent;
  if (!(x < 340282366920938463463374607431768211456.0)) return 255;
  if (x < 1.1754943508222875e-38) return 0;
  frexp(x, &exponent);
  return (uint8_t)(exponent - 1 + 127);
}

/* ---- dtypes -------------------------------------------------------------------------------- */

/* As qn_dtype_bytes, which backends cannot link. */
static inline int64_t qn_kit_bytes(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64: case QN_I64: return 8;
  case QN_F32: case QN_I32: return 4;
  case QN_F16: case QN_BF16: return 2;
  case QN_E4M3: case QN_E5M2: case QN_E8M0: case QN_I8: case QN_U8: case QN_BOOL: return 1;
  default: return 0;
  }
}
/* As qn_dtype_name. */
static inline const char *qn_kit_name(uint32_t dtype)
{
  switch (dtype) {
#define QN_KIT_NAME(name, value, text, bytes) case QN_##name: return text;
  QN_DTYPE_MAP(QN_KIT_NAME)
#undef QN_KIT_NAME
  default: return "?";
  }
}
static inline int qn_is_float(uint32_t dtype) { return dtype >= QN_F64 && dtype <= QN_E5M2; }
static inline int qn_is_integer(uint32_t dtype) { return dtype >= QN_I8 && dtype <= QN_I64; }   /* bool is neither */

/* The least and largest values of an integer dtype or bool. */
static inline int64_t qn_least(uint32_t dtype)
{
  switch (dtype) {
  case QN_I8:  return INT8_MIN;
  case QN_I32: return INT32_MIN;
  case QN_I64: return INT64_MIN;
  default:     return 0;
  }
}
static inline int64_t qn_largest(uint32_t dtype)
{
  switch (dtype) {
  case QN_I8:  return INT8_MAX;
  case QN_U8:  return UINT8_MAX;
  case QN_I32: return INT32_MAX;
  case QN_I64: return INT64_MAX;
  default:     return 1;
  }
}

static inline int64_t qn_i64_from_f64(double x)            /* nearest even, saturating, NaN 0 */
{
  if (x != x) return 0;
  if (x >= 9223372036854775808.0) return INT64_MAX;
  if (x <= -9223372036854775808.0) return INT64_MIN;
  return (int64_t)rint(x);
}

/* v as a double that any narrower format rounds as it would round v itself: what 53 bits cannot hold is kept as
 * one sticky last bit. */
static inline double qn_f64_sticky_from_i64(int64_t v)
{
  const uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  if (magnitude >> 53 == 0) return (double)v;
  const double x = (double)(int64_t)(magnitude >> 11 | ((magnitude & 0x7ff) != 0)) * 2048.0;
  return v < 0 ? -x : x;
}

/* The low bits of v as the integer dtype reads them: how integer arithmetic wraps. */
static inline int64_t qn_wrap(uint32_t dtype, int64_t v)
{
  const uint64_t u = (uint64_t)v;
  switch (dtype) {
  case QN_I8:  return (int64_t)((u & 0xff) ^ 0x80) - 0x80;
  case QN_U8:  return (int64_t)(u & 0xff);
  case QN_I32: return (int64_t)((u & 0xffffffffu) ^ 0x80000000u) - 0x80000000LL;
  default:     return v;
  }
}

/* ---- elements ------------------------------------------------------------------------------ */

static inline int64_t qn_load_i64(const void *p, uint32_t dtype);
static inline double qn_load_f64(const void *p, uint32_t dtype)
{
  double d;
  float f;
  uint16_t h;
  switch (dtype) {
  case QN_F64:  memcpy(&d, p, 8); return d;
  case QN_F32:  memcpy(&f, p, 4); return f;
  case QN_F16:  memcpy(&h, p, 2); return qn_f16_to_f64(h);
  case QN_BF16: memcpy(&h, p, 2); return qn_bf16_to_f64(h);
  case QN_E4M3: return qn_e4m3_to_f64(*(const uint8_t *)p);
  case QN_E5M2: return qn_e5m2_to_f64(*(const uint8_t *)p);
  case QN_E8M0: return qn_e8m0_to_f64(*(const uint8_t *)p);
  default:      return (double)qn_load_i64(p, dtype);
  }
}

static inline int64_t qn_load_i64(const void *p, uint32_t dtype)
{
  int32_t i;
  int64_t l;
  switch (dtype) {
  case QN_I8:   return *(const int8_t *)p;
  case QN_U8:   return *(const uint8_t *)p;
  case QN_BOOL: return *(const uint8_t *)p != 0;
  case QN_I32:  memcpy(&i, p, 4); return i;
  case QN_I64:  memcpy(&l, p, 8); return l;
  default:      return qn_i64_from_f64(qn_load_f64(p, dtype));
  }
}

static inline void qn_store_i64(void *p, uint32_t dtype, int64_t v);
static inline void qn_store_f64(void *p, uint32_t dtype, double x)
{
  const float f = (float)x;
  uint16_t h;
  switch (dtype) {
  case QN_F64:  memcpy(p, &x, 8); break;
  case QN_F32:  memcpy(p, &f, 4); break;
  case QN_F16:  h = qn_f16_from_f64(x); memcpy(p, &h, 2); break;
  case QN_BF16: h = qn_bf16_from_f64(x); memcpy(p, &h, 2); break;
  case QN_E4M3: *(uint8_t *)p = qn_e4m3_from_f64(x); break;
  case QN_E5M2: *(uint8_t *)p = qn_e5m2_from_f64(x); break;
  case QN_E8M0: *(uint8_t *)p = qn_e8m0_from_f64(x); break;
  case QN_BOOL: *(uint8_t *)p = x != 0; break;
  default:      qn_store_i64(p, dtype, qn_i64_from_f64(x)); break;
  }
}

/* Saturates, as a cast does; qn_wrap first where arithmetic is to wrap. */
static inline void qn_store_i64(void *p, uint32_t dtype, int64_t v)
{
  const int64_t low = qn_least(dtype), high = qn_largest(dtype);
  const int64_t within = v < low ? low : v > high ? high : v;
  const int32_t i = (int32_t)within;
  const double d = (double)v;
  switch (dtype) {
  case QN_I8:   *(int8_t *)p = (int8_t)within; break;
  case QN_U8:   *(uint8_t *)p = (uint8_t)within; break;
  case QN_BOOL: *(uint8_t *)p = v != 0; break;
  case QN_I32:  memcpy(p, &i, 4); break;
  case QN_I64:  memcpy(p, &v, 8); break;
  case QN_F64:  memcpy(p, &d, 8); break;
  default:      qn_store_f64(p, dtype, qn_f64_sticky_from_i64(v)); break;
  }
}

/* ---- whole numbers ------------------------------------------------------------------------- */

/* b > 0 in all of them; a of either sign, rounded as the name says. */
static inline int64_t qn_floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t qn_ceil_div(int64_t a, int64_t b)  { return a / b + (a % b > 0); }
static inline int64_t qn_round_up(int64_t a, int64_t b)  { return qn_ceil_div(a, b) * b; }
static inline int64_t qn_min_i64(int64_t a, int64_t b)   { return a < b ? a : b; }
static inline int64_t qn_max_i64(int64_t a, int64_t b)   { return a > b ? a : b; }

/* ---- layouts ------------------------------------------------------------------------------- */

static inline int64_t qn_elements(const qn_value *v)
{
  int64_t n = 1;
  for (int32_t i = 0; i < v->rank; i++) n *= v->dim[i];
  return n;
}

/* Elements from the first address to one past the last. */
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

/* Row-major without gaps, from dim `from` on. Strides of dims of 1 do not matter. */
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

/* Each address of the extent is exactly one element, in whatever order of dims. */
static inline int qn_is_dense(const qn_value *v)
{
  int64_t expected = 1;
  uint32_t seen = 0;
  for (int32_t found = 0; found < v->rank; found++) {      /* the dim whose stride is what the faster ones span */
    int32_t next = -1;
    for (int32_t i = 0; i < v->rank; i++)
      if (!(seen >> i & 1) && (v->dim[i] == 1 || v->stride[i] == expected)) { next = i; if (v->dim[i] == 1) break; }
    if (next < 0) return 0;
    seen |= 1u << next;
    expected *= v->dim[next];
  }
  return 1;
}

/* N, then spatial, then C fastest, without gaps (rank 3 to 5). */
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
static inline int qn_same_layout(const qn_value *a, const qn_value *b)       /* dims, and strides where they matter */
{
  if (!qn_same_dims(a, b)) return 0;
  for (int32_t i = 0; i < a->rank; i++) if (a->dim[i] != 1 && a->stride[i] != b->stride[i]) return 0;
  return 1;
}

/* Some tensors walked together: n rows of strides over the same dims; 0 where a tensor is broadcast. */
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

/* Adds v, of the nest's rank or 0, broadcast where its dim is 1. Returns its number; -1 if the nest is full. */
static inline int32_t qn_nest_add(qn_nest *nest, const qn_value *v)
{
  if (nest->n == QN_KIT_OPERANDS) return -1;
  for (int32_t i = 0; i < nest->rank; i++)
    nest->stride[nest->n][i] = v->rank == 0 || v->dim[i] == 1 ? 0 : v->stride[i];
  return nest->n++;
}

/* Reorders dims so that the first tensor's strides fall, drops dims of 1 and merges neighbours that every tensor
 * crosses in equal steps: the fewest loops. Only for work that may be done in any order. */
static inline void qn_nest_simplify(qn_nest *nest)
{
  int32_t rank = 0;
  for (int32_t i = 0; i < nest->rank; i++) {               /* insertion sort; dims of 1 stay behind */
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

/* A walk over the first `rank` dims of a nest, last dim fastest, from its i-th place: offset[t] is tensor t's, in elements. */
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

/* ---- roles --------------------------------------------------------------------------------- */

/* The value that fills a role of one tensor; -1: an absent optional one. */
static inline int32_t qn_role(const qn_node *node, uint32_t role)
{
  if (role >= node->n_roles || node->first[role] == node->first[role + 1]) return -1;
  return node->arg[node->first[role]];
}

/* Which role plays which part in an op of the normalization family; -1: it has none such. */
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

/* As qn_role, of a role that an op may not have: -1 where it has none. */
static inline int32_t qn_role_at(const qn_node *node, int8_t role) { return role < 0 ? -1 : qn_role(node, (uint32_t)role); }

/* Which role plays which part in an op of the random family; -1: it has none such. */
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

/* Which role plays which part in an op of the training family; -1: it has none such. */
typedef struct qn_step_roles {
  int8_t params, grads, m, v, step, rate, scale, found, new_step, new_params, new_m, new_v, copy;        /* m: sgd's velocity */
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
  case QN_OP_ADAMW:                       /* the same roles */
    r.params = QN_ROLE_ADAM_PARAMS, r.grads = QN_ROLE_ADAM_GRADS, r.m = QN_ROLE_ADAM_M, r.v = QN_ROLE_ADAM_V;
    r.step = QN_ROLE_ADAM_STEP, r.rate = QN_ROLE_ADAM_RATE, r.scale = QN_ROLE_ADAM_SCALE, r.found = QN_ROLE_ADAM_FOUND;
    r.new_step = QN_ROLE_ADAM_NEW_STEP, r.new_params = QN_ROLE_ADAM_NEW_PARAMS, r.new_m = QN_ROLE_ADAM_NEW_M;
    r.new_v = QN_ROLE_ADAM_NEW_V, r.copy = QN_ROLE_ADAM_COPY;
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

/* dim elements, of which each `block` neighbours share a scale, `stride` scales from the next. */
typedef struct qn_block_level { int64_t dim, block, stride; } qn_block_level;

/* The dims of a packed x as levels of blocks, innermost first, as few as may be: dims of 1 go, and a dim whose blocks follow one
 * another in the order of those inside it joins them. One scale for all is no level. block: the attribute, as core completed it. */
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

/* ---- random numbers ------------------------------------------------------------------------ */

#if defined(__CUDACC__)
#define QN_EITHER_SIDE static inline __host__ __device__
#elif defined(__GNUC__)
#define QN_EITHER_SIDE static inline __attribute__((always_inline))      /* so that a loop of them becomes vector code */
#else
#define QN_EITHER_SIDE static inline
#endif

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

/* The words of elements 4 block to 4 block + 3. */
QN_EITHER_SIDE void qn_random_words(uint32_t w[4], uint64_t seed, uint64_t offset, uint64_t block)
{
  w[0] = (uint32_t)block, w[1] = (uint32_t)(block >> 32), w[2] = (uint32_t)offset, w[3] = (uint32_t)(offset >> 32);
  qn_philox(w, seed);
}

/* How many of the 2^32 words an event of probability p has: those below. */
static inline uint64_t qn_chance_words(double p) { return (uint64_t)ceil(p * 4294967296.0); }

/* ---- refusals ------------------------------------------------------------------------------ */

/* return qn_refuse(p, "C must be a multiple of 8 for 16-byte loads", "x", "a multiple of 8", "%lld", (long long)c);
 * Where nothing was seen: "%s", "". */
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
