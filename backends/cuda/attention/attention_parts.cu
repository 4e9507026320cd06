/* attention_parts.cu -- what stands around attention, in f32, f16 and bf16, eight neighbours a thread in f32 arithmetic: the merge of two
 * sets of keys, rotary embeddings and their gradient; and writes into a paged cache, eight elements a thread or, of what needs no
 * conversion, 16 bytes.
 *
 *   merge    m = max(lse1, lse2)   w_i = exp(lse_i - m)   y = (w1 y1 + w2 y2) / (w1 + w2)   lse = m + ln(w1 + w2)
 *   rotary   y_a = x_a cos - x_b sin, y_b = x_b cos + x_a sin; the gradient with -sin
 *
 * Any strides, any alignment: what is not contiguous or not aligned is read element by element. Refused: f64, where it is not copied. */
#include "attention_cache.cuh"
#include "engines.h"

enum { THREADS = 256, V = 8, LEADS = QN_MAX_RANK - 1 };

struct rows { void *p; uint32_t dtype; int64_t stride[QN_MAX_RANK]; };         /* strides: of the leading dims, then of elements */

static void rows_fill(rows *t, const qn_value *v, int leads)
{
  t->dtype = v->dtype;
  for (int d = 0; d < v->rank; d++) t->stride[d == leads ? LEADS : d] = v->dim[d] > 1 ? v->stride[d] : 0;
}

/* ---- merge ------------------------------------------------------------------------------------------ */

struct merging {
  rows     y1, lse1, y2, lse2, y, lse;
  uint32_t n, lanes;                      /* rows; lanes of one, a power of two */
  int32_t  size, leads;
  cuda_divisor by[LEADS];
};

__device__ __forceinline__ int64_t offset_of(const rows &t, const uint32_t (&at)[LEADS], int leads)
{
  int64_t offset = 0;
  for (int d = 0; d < leads; d++) offset += at[d] * t.stride[d];
  return offset;
}

__global__ static void __launch_bounds__(THREADS) attention_merge(const __grid_constant__ merging p)
{
  const uint32_t thread = blockIdx.x * THREADS + threadIdx.x, row = thread / p.lanes, lane = thread % p.lanes;
  uint32_t at[LEADS], left = min(row, p.n - 1);             /* all lanes of a warp go on */
  for (int d = p.leads - 1; d >= 0; d--) left = cuda_quotient(left, p.by[d], &at[d]);
  const float l1 = ((const float *)p.lse1.p)[offset_of(p.lse1, at, p.leads)],
              l2 = ((const float *)p.lse2.p)[offset_of(p.lse2, at, p.leads)];
  const float m = l1 != l1 || l2 != l2 ? NAN : fmaxf(l1, l2);
  const bool none = m == -INFINITY, bad = m != m || m == INFINITY;
  const float w1 = none ? 0 : expf(l1 - m), w2 = none ? 0 : expf(l2 - m);
  const int64_t from1 = offset_of(p.y1, at, p.leads), from2 = offset_of(p.y2, at, p.leads), to = offset_of(p.y, at, p.leads);
  for (int c = lane * V; c < p.size && row < p.n; c += p.lanes * V) {
    const int n = min(p.size - c, (int)V);
    float a[V] = {}, b[V] = {};
    if (l1 != -INFINITY) vector_load(a, p.y1.p, p.y1.dtype, from1 + c * p.y1.stride[LEADS], p.y1.stride[LEADS], n);
    if (l2 != -INFINITY) vector_load(b, p.y2.p, p.y2.dtype, from2 + c * p.y2.stride[LEADS], p.y2.stride[LEADS], n);
#pragma unroll
    for (int i = 0; i < V; i++) {
      /* A part without keys counts for nothing, whatever it holds. */
      const float sum = (l1 != -INFINITY ? w1 * a[i] : 0) + (l2 != -INFINITY ? w2 * b[i] : 0);
      a[i] = bad ? NAN : none ? 0 : sum / (w1 + w2);
    }
    vector_store(a, p.y.p, p.y.dtype, to + c * p.y.stride[LEADS], p.y.stride[LEADS], n);
  }
  __syncwarp();                           /* lse may be lse1, which all lanes have read */
  if (lane == 0 && row < p.n && p.lse.p)
    ((float *)p.lse.p)[offset_of(p.lse, at, p.leads)] = bad ? NAN : none ? m : m + logf(w1 + w2);
}

struct merge_state { merging p; int32_t y1, lse1, y2, lse2, y, lse; uint32_t blocks; };

static bool three(uint32_t dtype) { return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16; }
static qn_status refuse_dtype(qn_prepared *out, const char *name, const qn_value *v)
{
  return qn_refuse(out, "f32, f16 or bf16", name, "one of them", "%s", qn_kit_name(v->dtype));
}

static qn_status prepare_merge(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  merge_state s = {};
  s.y1 = qn_role(op, QN_ROLE_ATTENTION_MERGE_Y1), s.lse1 = qn_role(op, QN_ROLE_ATTENTION_MERGE_LSE1);
  s.y2 = qn_role(op, QN_ROLE_ATTENTION_MERGE_Y2), s.lse2 = qn_role(op, QN_ROLE_ATTENTION_MERGE_LSE2);
  s.y = qn_role(op, QN_ROLE_ATTENTION_MERGE_Y), s.lse = qn_role(op, QN_ROLE_ATTENTION_MERGE_LSE);
  const qn_value *y = &r->value[s.y];
  merging *p = &s.p;
  const int leads = p->leads = y->rank - 1;
  const struct { int32_t value; rows *to; bool lse; const char *name; } of[] = {
    { s.y1, &p->y1, false, "y1" }, { s.y2, &p->y2, false, "y2" }, { s.y, &p->y, false, "y" },
    { s.lse1, &p->lse1, true, "lse1" }, { s.lse2, &p->lse2, true, "lse2" }, { s.lse, &p->lse, true, "lse" } };
  for (auto &t : of) {
    if (t.value < 0) continue;
    const qn_value *v = &r->value[t.value];
    if (t.lse ? v->dtype != QN_F32 : !three(v->dtype)) return refuse_dtype(out, t.name, v);
    if (v->align < qn_kit_bytes(v->dtype)) return qn_refuse(out, "elements at their own alignment", t.name, "", "%u", v->align);
    rows_fill(t.to, v, t.lse ? LEADS : leads);
  }
  double n = 1;
  for (int d = 0; d < leads; d++) n *= (double)y->dim[d], p->by[d] = cuda_divide_by(qn_max_i64(1, y->dim[d]));
  const int64_t size = y->dim[leads];
  for (p->lanes = 1; p->lanes < 32 && p->lanes * V < size; p->lanes *= 2) continue;
  if (n * p->lanes > INT32_MAX - THREADS || size > INT32_MAX / 2)
    return qn_refuse(out, "fewer than 2^31 pieces of 8 elements", "y", "", "%s", "more");
  p->n = (uint32_t)n, p->size = (int32_t)size;
  s.blocks = (uint32_t)qn_ceil_div((int64_t)p->n * p->lanes, THREADS);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run_merge(const qn_prepared *prepared, const qn_launch *launch)
{
  const merge_state *st = (const merge_state *)prepared->state;
  merging p = st->p;
  p.y1.p = launch->ptr[st->y1], p.lse1.p = launch->ptr[st->lse1], p.y2.p = launch->ptr[st->y2], p.lse2.p = launch->ptr[st->lse2];
  p.y.p = launch->ptr[st->y], p.lse.p = st->lse < 0 ? nullptr : launch->ptr[st->lse];
  if (!st->blocks) return QN_OK;
  attention_merge<<<st->blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return cuda_check(cudaGetLastError(), "attention_merge");
}

/* ---- rotary ------------------------------------------------------------------------------------------ */

struct turning {
  rows     x, cos, sin, y;
  const void *positions;                  /* NULL: a token's number */
  int64_t  positions_stride[2];
  uint32_t n;                             /* pieces */
  int32_t  positions_i64, pairs, rest, angles, interleaved; /* rest: elements beyond the pairs; angles: positions that there are */
  float    turn;
  cuda_divisor by_piece, by_token, by_head;
};

/* Piece k of a row: up to V pairs, or beyond them V elements that are copied. */
__global__ static void __launch_bounds__(THREADS) rotary(const __grid_constant__ turning p)
{
  const uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  if (thread >= p.n) return;
  uint32_t piece, t, h;
  const uint32_t b = cuda_quotient(cuda_quotient(cuda_quotient(thread, p.by_piece, &piece), p.by_token, &t), p.by_head, &h);
  const int64_t from = b * p.x.stride[0] + h * p.x.stride[1] + t * p.x.stride[2],
                to = b * p.y.stride[0] + h * p.y.stride[1] + t * p.y.stride[2], xs = p.x.stride[LEADS], ys = p.y.stride[LEADS];
  const int turned = (p.pairs + V - 1) / V, k = (int)piece * V;
  float x[2][V], y[2][V];
  if ((int)piece >= turned) {
    const int at = ((int)piece - turned) * V, d = 2 * p.pairs + at, n = min(p.rest - at, (int)V);
    vector_load(x[0], p.x.p, p.x.dtype, from + d * xs, xs, n);
    vector_store(x[0], p.y.p, p.y.dtype, to + d * ys, ys, n);
    return;
  }
  const int n = min(p.pairs - k, (int)V);
  int64_t at = t;
  if (p.positions) {
    const int64_t i = b * p.positions_stride[0] + t * p.positions_stride[1];
    at = p.positions_i64 ? ((const int64_t *)p.positions)[i] : ((const int32_t *)p.positions)[i];
  }
  const bool inside = at >= 0 && at < p.angles;
  float c[V], s[V];
  vector_load(c, p.cos.p, p.cos.dtype, (inside ? at : 0) * p.cos.stride[0] + k * p.cos.stride[LEADS], p.cos.stride[LEADS], inside ? n : 0);
  vector_load(s, p.sin.p, p.sin.dtype, (inside ? at : 0) * p.sin.stride[0] + k * p.sin.stride[LEADS], p.sin.stride[LEADS], inside ? n : 0);
  /* Halves, or neighbours: the first V of 2 n elements, then the others. */
  const int first = p.interleaved ? 2 * k : k, second = p.interleaved ? first + V : k + p.pairs;
  const int n1 = p.interleaved ? min(2 * n, (int)V) : n, n2 = p.interleaved ? max(2 * n - V, 0) : n;
  vector_load(x[0], p.x.p, p.x.dtype, from + first * xs, xs, n1);
  vector_load(x[1], p.x.p, p.x.dtype, from + second * xs, xs, n2);
#pragma unroll
  for (int i = 0; i < V; i++) {
    constexpr int half = V / 2;
    const float xa = p.interleaved ? x[i / half][2 * i % V] : x[0][i], xb = p.interleaved ? x[i / half][2 * i % V + 1] : x[1][i];
    const float sin = p.turn * s[i], ya = inside ? xa * c[i] - xb * sin : 0, yb = inside ? xb * c[i] + xa * sin : 0;
    if (p.interleaved) y[i / half][2 * i % V] = ya, y[i / half][2 * i % V + 1] = yb;
    else y[0][i] = ya, y[1][i] = yb;
  }
  vector_store(y[0], p.y.p, p.y.dtype, to + first * ys, ys, n1);
  vector_store(y[1], p.y.p, p.y.dtype, to + second * ys, ys, n2);
}

struct rotary_state { turning p; int32_t x, cos, sin, positions, y; uint32_t blocks; };

static qn_status prepare_rotary(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];          /* role numbers are the same in both directions */
  rotary_state s = {};
  s.x = qn_role(op, QN_ROLE_ROTARY_X), s.cos = qn_role(op, QN_ROLE_ROTARY_COS), s.sin = qn_role(op, QN_ROLE_ROTARY_SIN);
  s.positions = qn_role(op, QN_ROLE_ROTARY_POSITIONS), s.y = qn_role(op, QN_ROLE_ROTARY_Y);
  turning *p = &s.p;
  const struct { int32_t value; rows *to; int leads; const char *name; } of[] = {
    { s.x, &p->x, 3, "x" }, { s.y, &p->y, 3, "y" }, { s.cos, &p->cos, 1, "cos" }, { s.sin, &p->sin, 1, "sin" } };
  for (auto &t : of) {
    const qn_value *v = &r->value[t.value];
    if (!three(v->dtype)) return refuse_dtype(out, t.name, v);
    if (v->align < qn_kit_bytes(v->dtype)) return qn_refuse(out, "elements at their own alignment", t.name, "", "%u", v->align);
    rows_fill(t.to, v, t.leads);
  }
  const qn_value *x = &r->value[s.x], *cos = &r->value[s.cos];
  const int64_t pairs = cos->dim[1], rest = x->dim[3] - 2 * pairs, pieces = qn_ceil_div(pairs, V) + qn_ceil_div(rest, V);
  const double n = (double)x->dim[0] * (double)x->dim[1] * (double)x->dim[2] * (double)pieces;
  if (n > INT32_MAX - THREADS || x->dim[3] > INT32_MAX / 2 || cos->dim[0] > INT32_MAX)
    return qn_refuse(out, "fewer than 2^31 pieces of 8 elements, positions", "x", "", "%s", "more");
  if (s.positions >= 0) {
    const qn_value *v = &r->value[s.positions];
    p->positions_i64 = v->dtype == QN_I64;
    for (int d = 0; d < 2; d++) p->positions_stride[d] = v->dim[d] > 1 ? v->stride[d] : 0;
  }
  p->n = (uint32_t)n, p->pairs = (int32_t)pairs, p->rest = (int32_t)rest, p->angles = (int32_t)cos->dim[0];
  p->interleaved = ((const qn_rotation *)op->attr)->interleaved != 0, p->turn = op->op == QN_OP_ROTARY_BACKWARD ? -1 : 1;
  p->by_piece = cuda_divide_by(qn_max_i64(1, pieces)), p->by_token = cuda_divide_by(qn_max_i64(1, x->dim[2]));
  p->by_head = cuda_divide_by(qn_max_i64(1, x->dim[1]));
  s.blocks = (uint32_t)qn_ceil_div(p->n, THREADS);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run_rotary(const qn_prepared *prepared, const qn_launch *launch)
{
  const rotary_state *st = (const rotary_state *)prepared->state;
  turning p = st->p;
  p.x.p = launch->ptr[st->x], p.cos.p = launch->ptr[st->cos], p.sin.p = launch->ptr[st->sin], p.y.p = launch->ptr[st->y];
  p.positions = st->positions < 0 ? nullptr : launch->ptr[st->positions];
  if (!st->blocks) return QN_OK;
  rotary<<<st->blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return cuda_check(cudaGetLastError(), "rotary");
}

/* ---- cache ------------------------------------------------------------------------------------------- */

struct writing {
  rows     from, to;
  const void *slots;                      /* NULL: row by row */
  int64_t  slots_stride[2], places;
  uint32_t n;                             /* pieces of a row */
  int32_t  slots_i64, size;               /* size: elements of a row */
  cuda_divisor by_piece, by_token, by_head, by_page;
  cache_scale scale;
};

/* A piece: 16 bytes, elements of T; where it is converted V elements. */
template <class T, bool CONVERTED> __global__ static void __launch_bounds__(THREADS) cache_write(const __grid_constant__ writing p)
{
  constexpr int W = CONVERTED ? V : 16 / sizeof(T);
  const uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  if (thread >= p.n) return;
  uint32_t piece, t, h, place;
  const uint32_t b = cuda_quotient(cuda_quotient(cuda_quotient(thread, p.by_piece, &piece), p.by_token, &t), p.by_head, &h);
  const int64_t from = b * p.from.stride[0] + h * p.from.stride[1] + t * p.from.stride[2];
  int64_t to = b * p.to.stride[0] + h * p.to.stride[1] + t * p.to.stride[2];
  uint32_t page = b;
  if (p.slots) {
    const int64_t i = b * p.slots_stride[0] + t * p.slots_stride[1],
                  slot = p.slots_i64 ? ((const int64_t *)p.slots)[i] : ((const int32_t *)p.slots)[i];
    if (slot < 0 || slot >= p.places) return;
    page = cuda_quotient((uint32_t)slot, p.by_page, &place);
    to = page * p.to.stride[0] + h * p.to.stride[1] + place * p.to.stride[2];
  }
  const int64_t fs = p.from.stride[LEADS], ts = p.to.stride[LEADS];
  const int d = (int)piece * W, n = min(p.size - d, W);
  if constexpr (CONVERTED) {
    float x[V];
    vector_load(x, p.from.p, dtype3(p.from.dtype), from + d * fs, fs, n);
    cache_store(x, p.scale, { page, h, place }, p.to.p, p.to.dtype, to, d, ts, n);
    return;
  }
  const T *source = (const T *)p.from.p + from + d * fs;
  T *target = (T *)p.to.p + to + d * ts;
  if (fs == 1 && ts == 1 && n == W && vector_aligned(source, 16) && vector_aligned(target, 16)) {
    *(uint4 *)target = *(const uint4 *)source;
    return;
  }
  for (int i = 0; i < n; i++) target[i * ts] = source[i * fs];
}

struct write_state {
  writing copy, write;
  int32_t cache, x, slots, scale, y;
  uint32_t copy_blocks, write_blocks;
  const void *copies, *writes;
};

/* Rows of v, and how their pieces of so many elements are numbered; false: too many. */
static bool pieces_of(writing *p, const qn_value *v, int64_t piece, uint32_t *blocks)
{
  const int64_t pieces = qn_ceil_div(v->dim[3], piece);
  const double n = (double)v->dim[0] * (double)v->dim[1] * (double)v->dim[2] * (double)pieces;
  if (n > INT32_MAX - THREADS || v->dim[3] > INT32_MAX / 2) return false;
  rows_fill(&p->from, v, 3);
  p->n = (uint32_t)n, p->size = (int32_t)v->dim[3];
  p->by_piece = cuda_divide_by(qn_max_i64(1, pieces)), p->by_token = cuda_divide_by(qn_max_i64(1, v->dim[2]));
  p->by_head = cuda_divide_by(qn_max_i64(1, v->dim[1]));
  *blocks = (uint32_t)qn_ceil_div(p->n, THREADS);
  return true;
}

static qn_status prepare_write(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  write_state s = {};
  s.cache = qn_role(op, QN_ROLE_CACHE_WRITE_CACHE), s.x = qn_role(op, QN_ROLE_CACHE_WRITE_X);
  s.slots = qn_role(op, QN_ROLE_CACHE_WRITE_SLOTS), s.y = qn_role(op, QN_ROLE_CACHE_WRITE_NEW_CACHE);
  s.scale = qn_role(op, QN_ROLE_CACHE_WRITE_SCALE);
  const qn_value *cache = &r->value[s.cache], *x = &r->value[s.x], *y = &r->value[s.y], *slots = &r->value[s.slots];
  const int64_t bytes = qn_kit_bytes(y->dtype);
  const bool converted = x->dtype != y->dtype || s.scale >= 0;
  if (converted && !three(x->dtype)) return refuse_dtype(out, "x", x);
  if (converted && !cache_dtype(y->dtype))
    return qn_refuse(out, "a cache of at most 32 bits", "new_cache", "f32", "%s", qn_kit_name(y->dtype));
  if (s.scale >= 0 && !cache_scale_taken(&r->value[s.scale]))
    return qn_refuse(out, "aligned scales in f32", "scale", "f32", "%s", qn_kit_name(r->value[s.scale].dtype));
  if (x->align < qn_kit_bytes(x->dtype) || y->align < bytes || cache->align < bytes)
    return qn_refuse(out, "elements at their own alignment", "x", "", "%u", x->align);
  if (y->dim[0] * y->dim[2] > INT32_MAX || !pieces_of(&s.copy, cache, 16 / bytes, &s.copy_blocks) ||
      !pieces_of(&s.write, x, converted ? (int64_t)V : 16 / bytes, &s.write_blocks))
    return qn_refuse(out, "fewer than 2^31 pieces, places of the cache", "new_cache", "", "%s", "more");
  rows_fill(&s.copy.to, y, 3), rows_fill(&s.write.to, y, 3);
  s.write.places = y->dim[0] * y->dim[2], s.write.by_page = cuda_divide_by(qn_max_i64(1, y->dim[2]));
  s.write.slots_i64 = slots->dtype == QN_I64;
  for (int d = 0; d < 2; d++) s.write.slots_stride[d] = slots->dim[d] > 1 ? slots->stride[d] : 0;
  if (s.scale >= 0) cache_scale_of(&s.write.scale, &r->value[s.scale], y);
  s.copies = bytes == 1 ? (const void *)cache_write<uint8_t, false> : bytes == 2 ? (const void *)cache_write<uint16_t, false>
           : bytes == 4 ? (const void *)cache_write<uint32_t, false> : (const void *)cache_write<uint64_t, false>;
  s.writes = converted ? (const void *)cache_write<uint8_t, true> : s.copies;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run_write(const qn_prepared *prepared, const qn_launch *launch)
{
  const write_state *st = (const write_state *)prepared->state;
  writing copy = st->copy, write = st->write;
  copy.from.p = launch->ptr[st->cache], copy.to.p = write.to.p = launch->ptr[st->y];
  write.from.p = launch->ptr[st->x], write.slots = launch->ptr[st->slots];
  write.scale.p = st->scale < 0 ? nullptr : (const float *)launch->ptr[st->scale];
  void *first[] = { &copy }, *then[] = { &write };
  cudaStream_t stream = (cudaStream_t)launch->stream;
  qn_status s = QN_OK;
  if (copy.from.p != copy.to.p && st->copy_blocks)
    s = cuda_check(cudaLaunchKernel(st->copies, st->copy_blocks, THREADS, first, 0, stream), "cache_write");
  if (!s && st->write_blocks) s = cuda_check(cudaLaunchKernel(st->writes, st->write_blocks, THREADS, then, 0, stream), "cache_write");
  return s;
}

#define ROW(op, prepare, run) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, nullptr, nullptr, \
                                prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_ATTENTION_MERGE, prepare_merge, run_merge),
  ROW(QN_OP_ROTARY, prepare_rotary, run_rotary),
  ROW(QN_OP_ROTARY_BACKWARD, prepare_rotary, run_rotary),
  ROW(QN_OP_CACHE_WRITE, prepare_write, run_write),
};
CUDA_ENGINES(attention_parts) = { row, sizeof row / sizeof *row };
