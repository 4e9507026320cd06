/* attention_chain.cu -- what stands between a projection and attention in one launch: rms_norm of each head, rotary embedding, the write
 * into a paged cache, which may be of 8 bits with scales. Queries and keys go together where both are views of one projection.
 *
 *   n = x rstd scale, rstd = 1 / sqrt(sum x^2 / D + eps)      y = rotary(n)      new_cache[slot] = y / cache_scale
 *
 * A link of the chain is what there is of the three for one tensor. A row of D elements is held by neighbouring lanes of a warp, eight
 * elements a lane, so the norm's sum and the other half of a pair are shuffles; between two steps values are rounded to the dtype of the
 * tensor that is not written. Decoding one token is bound by launches: five ops become one.
 *
 * Refused: rows of more than 256 elements; halves of pairs that do not fill whole lanes; f64; rstd as a result; a cache that is copied
 * (left to the next op); a rotary embedding or a norm without company: `rows` are as good. */
#include "attention_cache.cuh"
#include "engines.h"

enum { THREADS = 128, V = 8, MOST = 32 * V, LINKS = 2 };

struct operand { void *p; uint32_t dtype; int64_t stride[4]; };       /* p NULL: absent. [B, H, S, D]; angles [P, 1, 1, R/2] */
struct tokens { const void *p; int64_t stride[2]; int32_t i64; };     /* a number for each token [B, S] */

struct link {
  operand  x, scale, cos, sin, y, cache;
  tokens   positions, slots;
  int64_t  places;                        /* of the cache */
  uint32_t n, lanes;                      /* rows; lanes of one, a power of two */
  int32_t  size, pairs, angles, interleaved;          /* elements of a row; pairs that turn; positions that there are */
  uint32_t normed;                        /* 0: no norm; else the dtype of its result */
  float    eps;
  cuda_divisor by_token, by_head, by_page;
  cache_scale cache_by;
};
struct links { link of[LINKS]; uint32_t first_blocks; };              /* blocks of the first link; the second has the others */

__device__ __forceinline__ int64_t number_of(const tokens &t, uint32_t b, uint32_t s)
{
  const int64_t i = b * t.stride[0] + s * t.stride[1];
  return t.i64 ? ((const int64_t *)t.p)[i] : ((const int32_t *)t.p)[i];
}
__device__ __forceinline__ float rounded(float v, uint32_t dtype)
{
  return dtype == QN_F16 ? f16_to_float(float_to_f16(v)) : dtype == QN_BF16 ? bf16_to_float(float_to_bf16(v)) : v;
}
__device__ __forceinline__ int64_t row_of(const operand &t, uint32_t b, uint32_t h, uint32_t s)
{
  return b * t.stride[0] + h * t.stride[1] + s * t.stride[2];
}
/* The power of two by which the largest of a row becomes about 1, so that squares neither overflow nor vanish; at most 2^60, for eps has
 * its square. */
__device__ __forceinline__ float unit_of(float largest)
{
  const int e = (int)(__float_as_uint(largest) >> 23 & 255) - 127;
  return __uint_as_float((uint32_t)(127 - max(-60, min(e, 126))) << 23);
}

/* 1 / rms of a row of which this lane has x. */
__device__ __forceinline__ float rstd_of(const float (&x)[V], const link &c)
{
  float sum = 0, unit = 1;
  const auto squares = [&] {
    sum = 0;
#pragma unroll
    for (int i = 0; i < V; i++) sum += (x[i] * unit) * (x[i] * unit);
    for (int o = c.lanes / 2; o; o /= 2) sum += __shfl_xor_sync(~0u, sum, o, 32);
  };
  squares();
  if (__any_sync(~0u, !(sum < 0x1p100f && sum > 0x1p-100f))) {        /* rows of zeros too, and NaN: nothing changes for them */
    float largest = 0;
#pragma unroll
    for (int i = 0; i < V; i++) largest = fmaxf(largest, fabsf(x[i]));
    for (int o = c.lanes / 2; o; o /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, o, 32));
    unit = unit_of(largest);
    squares();
  }
  return unit / sqrtf(sum / c.size + c.eps * unit * unit);
}

/* CONVERTED: a cache has scales, or 8 bits. */
template <bool CONVERTED> __global__ static void __launch_bounds__(THREADS) attention_chain(const __grid_constant__ links p)
{
  const bool other = blockIdx.x >= p.first_blocks;
  const link &c = p.of[other];
  const uint32_t thread = (blockIdx.x - (other ? p.first_blocks : 0)) * THREADS + threadIdx.x, row = thread / c.lanes;
  const int lane = (int)(thread % c.lanes), at = lane * V;
  const bool live = row < c.n;            /* the lanes of a warp stay together */
  const int n = live ? max(0, min(c.size - at, (int)V)) : 0;
  uint32_t s, h;
  const uint32_t b = cuda_quotient(cuda_quotient(live ? row : 0, c.by_token, &s), c.by_head, &h);

  float x[V];
  vector_load(x, c.x.p, dtype3(c.x.dtype), row_of(c.x, b, h, s) + at * c.x.stride[3], c.x.stride[3], n);
  if (c.normed) {
    const float rstd = rstd_of(x, c);
    float scale[V];
    if (c.scale.p)
      vector_load(scale, c.scale.p, dtype3(c.scale.dtype), row_of(c.scale, b, h, s) + at * c.scale.stride[3], c.scale.stride[3], n);
#pragma unroll
    for (int i = 0; i < V; i++) x[i] = rounded(x[i] * rstd * (c.scale.p ? scale[i] : 1), c.normed);
  }

  /* The partner's elements: of the other half, in the same register of another lane, or the neighbour in this lane. */
  const int half = c.pairs / V;           /* lanes of a half */
  const bool second = !c.interleaved && lane >= half;
  float partner[V];
#pragma unroll
  for (int i = 0; i < V; i++)
    partner[i] = c.interleaved ? x[i ^ 1] : __shfl_sync(~0u, x[i], (int)(threadIdx.x % 32) + (second ? -half : half), 32);
  if (at < 2 * c.pairs) {
    const int64_t position = c.positions.p ? number_of(c.positions, b, s) : s;
    const bool inside = position >= 0 && position < c.angles;
    const int k = c.interleaved ? at / 2 : second ? at - c.pairs : at;
    const int angles = inside && live ? min(c.pairs - k, c.interleaved ? V / 2 : V) : 0;
    const int64_t from = inside ? position : 0;
    float cos[V], sin[V];
    vector_load(cos, c.cos.p, dtype3(c.cos.dtype), from * c.cos.stride[0] + k * c.cos.stride[3], c.cos.stride[3], angles);
    vector_load(sin, c.sin.p, dtype3(c.sin.dtype), from * c.sin.stride[0] + k * c.sin.stride[3], c.sin.stride[3], angles);
#pragma unroll
    for (int i = 0; i < V; i++) {
      if (at + i >= 2 * c.pairs) break;   /* elements beyond the pairs stay */
      const float co = c.interleaved ? cos[i / 2] : cos[i], si = c.interleaved ? sin[i / 2] : sin[i];
      const bool minus = c.interleaved ? i % 2 == 0 : !second;
      x[i] = inside ? x[i] * co + (minus ? -partner[i] : partner[i]) * si : 0;
    }
  }
  if (!live) return;
#pragma unroll
  for (int i = 0; i < V; i++) x[i] = rounded(x[i], c.y.dtype);
  if (c.y.p) vector_store(x, c.y.p, dtype3(c.y.dtype), row_of(c.y, b, h, s) + at * c.y.stride[3], c.y.stride[3], n);
  const int64_t slot = c.cache.p ? number_of(c.slots, b, s) : -1;
  if (slot < 0 || slot >= c.places) return;
  uint32_t place;
  const uint32_t page = cuda_quotient((uint32_t)slot, c.by_page, &place);
  const int64_t to = row_of(c.cache, page, h, place);
  if constexpr (CONVERTED) cache_store(x, c.cache_by, { page, h, place }, c.cache.p, c.cache.dtype, to, at, c.cache.stride[3], n);
  else vector_store(x, c.cache.p, dtype3(c.cache.dtype), to + at * c.cache.stride[3], c.cache.stride[3], n);
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

/* The values of a link, of the request; -1: absent, or not written. */
struct values { int32_t x, scale, cos, sin, positions, y, slots, cache, cache_by; };
struct state { links of; values number[LINKS]; uint32_t blocks; bool converted; };

static bool three(const qn_value *v)
{
  return (v->dtype == QN_F32 || v->dtype == QN_F16 || v->dtype == QN_BF16) && v->align >= qn_kit_bytes(v->dtype);
}

static void operand_of(operand *t, const qn_value *v)
{
  t->dtype = v->dtype;
  for (int d = 0; d < 4; d++) t->stride[d] = v->dim[d] > 1 ? v->stride[d] : 0;
}
static void angles_of(operand *t, const qn_value *v)
{
  t->dtype = v->dtype, t->stride[0] = v->dim[0] > 1 ? v->stride[0] : 0, t->stride[3] = v->dim[1] > 1 ? v->stride[1] : 0;
}
static void tokens_of(tokens *t, const qn_value *v)
{
  t->i64 = v->dtype == QN_I64;
  for (int d = 0; d < 2; d++) t->stride[d] = v->dim[d] > 1 ? v->stride[d] : 0;
}

/* The value that `read` is, or is a view of; axis[d]: the dim of that value along which dim d of the view goes. -1: a view that leaves
 * elements out. */
static int32_t seen_through(const qn_request *r, int32_t read, int (&axis)[4])
{
  const qn_value *v = &r->value[read];
  for (int d = 0; d < 4; d++) axis[d] = d;
  if (!r->view || !(v->flags & QN_VALUE_VIEW)) return read;
  const qn_value *whole = &r->value[r->view[read].of];
  unsigned used = 0;
  if (r->view[read].offset || whole->rank != 4 || v->rank != 4) return -1;
  for (int d = 0; d < 4; d++) {
    for (axis[d] = 0; axis[d] < 4; axis[d]++)
      if (!(used >> axis[d] & 1) && whole->dim[axis[d]] == v->dim[d] && (v->dim[d] == 1 || whole->stride[axis[d]] == v->stride[d])) break;
    if (axis[d] == 4) return -1;
    used |= 1u << axis[d];
  }
  return r->view[read].of;
}

/* The op of that kind, beyond the anchor, that reads `value` in role `role`, as it is or through a view; -1: none. */
static int32_t reader_of(const qn_request *r, uint32_t kind, uint32_t role, int32_t value, int (&axis)[4])
{
  for (uint32_t i = 1; i < r->n_ops && i < 64; i++)
    if (r->op[i].op == kind && seen_through(r, qn_role(&r->op[i], role), axis) == value) return (int32_t)i;
  return -1;
}

/* The norm before a rotary embedding. axis: the dims of its tensors along which those of the embedding go. */
static const char *norm_open(const qn_request *r, uint32_t at, const int (&axis)[4], link *c, values *number)
{
  const qn_node *op = &r->op[at];
  const qn_norm *attr = (const qn_norm *)op->attr;
  const int32_t from = qn_role(op, QN_ROLE_RMS_NORM_X), to = qn_role(op, QN_ROLE_RMS_NORM_Y);
  if (attr->mask != 1u << axis[3] || qn_role(op, QN_ROLE_RMS_NORM_RSTD) >= 0) return "a norm over a head's elements, without rstd";
  c->normed = r->value[to].dtype, c->eps = (float)attr->eps;
  number->x = from, number->scale = qn_role(op, QN_ROLE_RMS_NORM_SCALE);
  const struct { int32_t value; operand *to; } of[] = { { from, &c->x }, { number->scale, &c->scale } };
  for (auto &t : of) {
    if (t.value < 0) continue;
    const qn_value *v = &r->value[t.value];
    if (!three(v)) return "f32, f16 and bf16";
    t.to->dtype = v->dtype;
    for (int d = 0; d < 4; d++) t.to->stride[d] = v->dim[axis[d]] > 1 ? v->stride[axis[d]] : 0;
  }
  return nullptr;
}

static const char *rotary_open(const qn_request *r, uint32_t at, link *c, values *number)
{
  const qn_node *op = &r->op[at];
  const int32_t in = qn_role(op, QN_ROLE_ROTARY_X);
  number->cos = qn_role(op, QN_ROLE_ROTARY_COS), number->sin = qn_role(op, QN_ROLE_ROTARY_SIN);
  number->positions = qn_role(op, QN_ROLE_ROTARY_POSITIONS), number->y = qn_role(op, QN_ROLE_ROTARY_Y);
  const qn_value *x = &r->value[in], *cos = &r->value[number->cos], *sin = &r->value[number->sin], *y = &r->value[number->y];
  if (!three(x) || !three(y) || !three(cos) || !three(sin)) return "f32, f16 and bf16";
  if (!c->normed) number->x = in, operand_of(&c->x, x);
  operand_of(&c->y, y), angles_of(&c->cos, cos), angles_of(&c->sin, sin);
  if (cos->dim[0] > INT32_MAX) return "fewer than 2^31 positions";
  c->angles = (int32_t)cos->dim[0], c->pairs = (int32_t)cos->dim[1];
  c->interleaved = ((const qn_rotation *)op->attr)->interleaved != 0;
  if (!c->interleaved && c->pairs % V) return "halves of a multiple of 8 elements";
  if (number->positions >= 0) tokens_of(&c->positions, &r->value[number->positions]);
  return nullptr;
}

/* The write of y into a cache, if it is one that this kernel does. */
static bool write_open(const qn_request *r, uint32_t at, link *c, values *number)
{
  const qn_node *op = &r->op[at];
  const int32_t cache = qn_role(op, QN_ROLE_CACHE_WRITE_NEW_CACHE), slots = qn_role(op, QN_ROLE_CACHE_WRITE_SLOTS);
  const int32_t scale = qn_role(op, QN_ROLE_CACHE_WRITE_SCALE);
  const qn_value *v = &r->value[cache];
  const bool in_place = v->over == qn_role(op, QN_ROLE_CACHE_WRITE_CACHE);
  if (!in_place || !cache_dtype(v->dtype) || v->align < qn_kit_bytes(v->dtype) || v->dim[0] * v->dim[2] > INT32_MAX) return false;
  if (scale >= 0 && !cache_scale_taken(&r->value[scale])) return false;
  if (scale >= 0) cache_scale_of(&c->cache_by, &r->value[scale], v);
  operand_of(&c->cache, v), tokens_of(&c->slots, &r->value[slots]);
  c->places = v->dim[0] * v->dim[2], c->by_page = cuda_divide_by(qn_max_i64(1, v->dim[2]));
  number->cache = cache, number->slots = slots, number->cache_by = scale;
  return true;
}

/* Reads the link that begins with op `at`, the anchor or a sibling, and adds what it takes of the request to *taken. Returns the rule that
 * is broken, or NULL. */
static const char *link_open(const qn_request *r, uint32_t at, link *c, values *number, uint64_t *taken)
{
  int axis[4] = { 0, 1, 2, 3 }, as[4];
  uint64_t mine = 1ull << at;
  uint32_t turned = at;                   /* the rotary embedding */
  const char *broken = nullptr;
  *c = link();
  *number = { -1, -1, -1, -1, -1, -1, -1, -1, -1 };
  if (r->op[at].op == QN_OP_RMS_NORM) {
    const int32_t to = qn_role(&r->op[at], QN_ROLE_RMS_NORM_Y), reader = reader_of(r, QN_OP_ROTARY, QN_ROLE_ROTARY_X, to, axis);
    if (reader < 0 || qn_must_write(r, mine | 1ull << reader, to)) return "a rotary embedding that alone reads the norm's result";
    turned = (uint32_t)reader;
    broken = norm_open(r, at, axis, c, number);
    mine |= 1ull << turned;
  }
  if (!broken) broken = rotary_open(r, turned, c, number);
  if (broken) return broken;
  const qn_value *y = &r->value[number->y];
  const int32_t write = reader_of(r, QN_OP_CACHE_WRITE, QN_ROLE_CACHE_WRITE_X, number->y, as);
  if (write >= 0 && as[0] == 0 && as[1] == 1 && as[2] == 2 && write_open(r, (uint32_t)write, c, number)) mine |= 1ull << write;
  const int64_t *const d = y->dim;
  if (d[3] > MOST) return "rows of at most 256 elements";
  for (c->lanes = 1; c->lanes * V < d[3]; c->lanes *= 2) continue;
  const double n = (double)d[0] * (double)d[1] * (double)d[2];
  if (n * c->lanes > INT32_MAX - THREADS) return "fewer than 2^31 pieces of 8 elements";
  c->size = (int32_t)d[3], c->n = (uint32_t)n;
  c->by_token = cuda_divide_by(qn_max_i64(1, d[2])), c->by_head = cuda_divide_by(qn_max_i64(1, d[1]));
  *taken |= mine;
  return nullptr;
}

/* The links of the anchors (rms_norm or rotary) among the request's ops: the first must be one, the second may. No link overwrites
 * what another reads: a region is cut before an op that would. */
static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n_ops && i < 64 && n < LINKS; i++) {
    if (r->op[i].op != r->op[0].op) continue;
    const char *broken = link_open(r, i, &s.of.of[n], &s.number[n], &out->taken);
    if (!broken) n++;
    else if (i == 0) return qn_refuse(out, broken, "x", "", "%s", "another problem");
  }
  if (!(out->taken & (out->taken - 1)))
    return qn_refuse(out, "a norm before the rotary embedding, a write in place behind it, or another of the same tensor", "x", "", "%s",
                     "it alone");
  for (uint32_t k = 0; k < n; k++) {
    link *c = &s.of.of[k];
    if (!qn_must_write(r, out->taken, s.number[k].y)) s.number[k].y = -1;
    s.converted |= s.number[k].cache >= 0 && (s.number[k].cache_by >= 0 || !three(&r->value[s.number[k].cache]));
    const uint32_t blocks = (uint32_t)qn_ceil_div((int64_t)c->n * c->lanes, THREADS);
    if (k == 0) s.of.first_blocks = blocks;
    s.blocks += blocks;
  }
  return cuda_keep(out, &s, sizeof s);
}

/* ---- run --------------------------------------------------------------------------------------------------------- */

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  links p = st->of;
  const auto at = [&](int32_t value) { return value < 0 ? nullptr : launch->ptr[value]; };
  for (int k = 0; k < LINKS && p.of[k].lanes; k++) {
    const values &of = st->number[k];
    link *c = &p.of[k];
    c->x.p = at(of.x), c->scale.p = at(of.scale), c->cos.p = at(of.cos), c->sin.p = at(of.sin), c->y.p = at(of.y);
    c->cache.p = at(of.cache), c->positions.p = at(of.positions), c->slots.p = at(of.slots);
    c->cache_by.p = (const float *)at(of.cache_by);
  }
  if (!st->blocks) return QN_OK;
  if (st->converted) attention_chain<true><<<st->blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  else attention_chain<false><<<st->blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return cuda_check(cudaGetLastError(), "attention_chain");
}

static const uint32_t behind_norm[] = { QN_OP_ROTARY, QN_OP_CACHE_WRITE, 0 }, behind_rotary[] = { QN_OP_CACHE_WRITE, 0 };
static const qn_pattern norm_pattern = { sizeof(qn_pattern), LINKS - 1, 0, 0, 1, behind_norm, nullptr },
                        rotary_pattern = { sizeof(qn_pattern), LINKS - 1, 0, 0, 1, behind_rotary, nullptr };
#define ROW(op, pattern) { "chain", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, &pattern, \
                           prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_RMS_NORM, norm_pattern), ROW(QN_OP_ROTARY, rotary_pattern) };
CUDA_ENGINES(attention_chain) = { row, sizeof row / sizeof *row };
