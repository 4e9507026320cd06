/* pool_gradient.cuh -- shared by the pooling gradient engines: their problem, and bit tricks for the places of maxima. */
#pragma once
#include "pool.cuh"

/* how: where maxima come from: u8 indices (tap number), i64 or i32 indices (offset in the plane), or x; MEANS, LP: the other gradients */
enum { BY_TAP, BY_PLACE, BY_X, MEANS, LP };

struct strides { int32_t c, z, y, x; };   /* within an image */

struct gradient : pool {
  strides  of_x, of_dy, of_dx, of_index;  /* of lp's gradient, of_index and index_stride are y's */
  int32_t  flat;                          /* depth 1 */
  int32_t  even;                          /* average: all windows have the same divisor */
  float    share;                         /* average: 1 / window size, valid if even */
  cuda_divisor by_size[3], by_dilation[3];
};

/* An offset below 2^31; -1: none. */
template <class I> __device__ __forceinline__ int place_among(I index) { return index == (int)index ? (int)index : -1; }

template <int dtype, int C> __device__ __forceinline__ void fetch(float (&v)[C], const void *base, int at)
{
  if constexpr (C == 1) v[0] = edge_load<dtype>(base, at);
  else vector_load_whole<dtype>(v, base, at);
}
/* The indices of C channels of a window of image n, at their offset in it. */
template <class I, int C> __device__ __forceinline__ void indices_load(int64_t (&v)[C], const void *base, int64_t at)
{
  const several<I, C> all = *(const several<I, C> *)((const I *)base + at);
#pragma unroll
  for (int i = 0; i < C; i++) v[i] = all.v[i];
}
template <int C> __device__ __forceinline__ void indices_load(int64_t (&v)[C], const gradient &p, uint32_t n, int at)
{
  const int64_t from = n * p.index_stride[0] + at;
  if (p.index_dtype == QN_U8) indices_load<uint8_t>(v, p.indices, from);
  else if (p.index_dtype == QN_I32) indices_load<int32_t>(v, p.indices, from);
  else indices_load<int64_t>(v, p.indices, from);
}

/* Visits rows begin..end-1 with the loads of AHEAD rows in flight: load(line, row) reads a row; step(row, turn, line, next) uses it and
 * calls next() to load a later one into the same registers. turn: 0 to TURNS - 1, known at compile time, for what rotates. */
template <class line, int AHEAD, int TURNS = AHEAD, class L, class F>
__device__ __forceinline__ void look_ahead(int begin, int end, L load, F step)
{
  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], min(begin + a, end - 1));
#pragma unroll 1
  for (int first = begin; first < end; first += TURNS)
#pragma unroll
    for (int turn = 0; turn < TURNS; turn++) {
      const int row = first + turn;
      if (TURNS > 1 && row >= end) break;
      step(row, turn, ahead[turn % AHEAD], [&] { load(ahead[turn % AHEAD], min(row + AHEAD, end - 1)); });
    }
}

/* Stores N neighbours in one aligned access. */
template <int dtype, int N> __device__ __forceinline__ void neighbours_store(void *base, int at, const float *v)
{
  words<N / per_word<dtype>> w;
#pragma unroll
  for (int i = 0; i < N / per_word<dtype>; i++) w.v[i] = word_of<dtype>(v + i * per_word<dtype>);
  *(words<N / per_word<dtype>> *)((stored<dtype> *)base + at) = w;
}

/* The tap number that `place` has in the window whose first tap is `begin`, in a plane of that width; not below SIZE^2: none. */
template <int SIZE> __device__ __forceinline__ uint32_t tap_of(int place, int begin, int width)
{
  int column = place - begin, row = 0;
#pragma unroll
  for (int r = 1; r < SIZE; r++)
    if (place - begin >= r * width) column -= width, row = r;
  return (unsigned)column < SIZE ? row * SIZE + column : 255;
}

/* ---- maxima: floats compared as integers, predicated sums --------------------------------------------------------- */

/* Canonical bits of the floats of a word, so that equal values have equal bits: -0 becomes 0, all NaN alike. */
template <int dtype> __device__ __forceinline__ uint32_t plain(uint32_t w)
{
  if constexpr (dtype == QN_F32) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(__fadd_rn(__uint_as_float(w), 0.f));          /* the NaN of a sum is 0x7fffffff */
#else
    const float v = __uint_as_float(w) + 0.f;
    return v == v ? __float_as_uint(v) : 0x7fffffffu;
#endif
  } else if constexpr (dtype == QN_BF16) {                  /* the NaN of a sum is 0x7fff */
    const __nv_bfloat162 sum = __hadd2(*(const __nv_bfloat162 *)&w, __floats2bfloat162_rn(0, 0));
    return *(const uint32_t *)&sum;
  } else {
    const __half2 sum = __hadd2(*(const __half2 *)&w, __floats2half2_rn(0, 0));
    return *(const uint32_t *)&sum;
  }
}

/* The floats of a word as unsigned integers in the same order, NaN largest; no float maps to 0. */
template <int dtype> __device__ __forceinline__ uint32_t order_of(uint32_t w)
{
  const uint32_t b = plain<dtype>(w);
  return dtype == QN_F32 ? b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u) : b ^ ((b >> 15 & 0x10001u) * 0xffffu | 0x80008000u);
}

/* if (a == b) sum += v, as a predicated add; compilers emit add and select. */
__device__ __forceinline__ void add_where(float &sum, uint32_t a, uint32_t b, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; setp.eq.u32 p, %1, %2; @p add.f32 %0, %0, %3; }" : "+f"(sum) : "r"(a), "r"(b), "f"(v));
#else
  if (a == b) sum += v;
#endif
}

/* Are two words equal, or, of words of two floats, the lower (half 0) or upper (half 1) halves? Written so that the result is a
 * register, not a predicate. */
template <int dtype, int half> __device__ __forceinline__ bool same(uint32_t x, uint32_t y)
{
  constexpr uint32_t mask = dtype == QN_F32 ? ~0u : half ? 0xffff0000u : 0xffffu;
#ifdef __CUDA_ARCH__
  uint32_t is;
  asm("{ .reg .pred p; .reg .b32 t; xor.b32 t, %1, %2; and.b32 t, t, %3; setp.eq.u32 p, t, 0; selp.u32 %0, 1, 0, p; }"
      : "=r"(is)
      : "r"(x), "r"(y), "n"(mask));
  return is;
#else
  return ((x ^ y) & mask) == 0;
#endif
}

/* Adds v to a if x is the largest, else to b if y is, else to c; x, y, largest: canonical words, of which the lower or (half 1)
 * the upper half is compared. begun: how many of a, b, c already hold a sum; the others are assigned. */
template <int dtype, int half = 0, int begun = 3>
__device__ __forceinline__ void add_to_first(float &a, float &b, float &c, uint32_t x, uint32_t y, uint32_t largest, float v)
{
  const bool first = same<dtype, half>(x, largest), second = same<dtype, half>(y, largest);
  if (begun < 1) a = first ? v : 0;
  else add_where(a, first, 1, v);
  const float rest = first ? 0 : v;
  if (begun < 2) b = second ? rest : 0;
  else add_where(b, second, 1, rest);
  if (begun < 3) c = second ? 0 : rest;
  else add_where(c, second, 0, rest);
}

/* if (bits has `bit`) sum += v; written so that the compiler extracts many bits of a word into predicates at once. */
__device__ __forceinline__ void add_at_bit(float &sum, uint32_t bits, int bit, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; .reg .b32 b; and.b32 b, %1, %2; setp.ne.u32 p, b, 0; @p add.f32 %0, %0, %3; }"
      : "+f"(sum)
      : "r"(bits), "r"(1u << bit), "f"(v));
#else
  if (bits >> bit & 1) sum += v;
#endif
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* The strides within an image, in 32 bits; false: the image is too large. */
static inline bool within_image(strides *s, const int64_t *stride, const pool *p, const int32_t *extent)
{
  double reach = (double)p->c * (double)stride[1];
  for (int d = 0; d < 3; d++) reach += (double)extent[d] * (double)stride[2 + d];
  s->c = (int32_t)stride[1], s->z = (int32_t)stride[2], s->y = (int32_t)stride[3], s->x = (int32_t)stride[4];
  return reach < INT32_MAX;
}

/* Reads a gradient: its tensors, their dtype, the geometry. dy is input 0 of all, dx the only output. */
template <class P> static inline qn_status gradient_read(pool_state<P> *s, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  gradient *p = &s->p;
  const bool lp = op->op == QN_OP_POOL_LP_BACKWARD;
  pool_tensors of = { -1, -1, op->arg[0], op->arg[op->first[op->n_inputs]], -1 };
  if (op->op == QN_OP_POOL_MAX_BACKWARD) of.indices = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES);
  if (op->op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD) of.indices = qn_role(op, QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES);
  if (op->op == QN_OP_POOL_MAX_BACKWARD && of.indices < 0) of.x = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_X);
  if (lp) of.x = qn_role(op, QN_ROLE_POOL_LP_BACKWARD_X), of.y = qn_role(op, QN_ROLE_POOL_LP_BACKWARD_Y);
  const qn_status status = pool_read(s, of, r, out);
  if (status) return status;
  pool_strides(&r->value[of.dx], p->dx_stride);
  if (of.indices >= 0 || lp) pool_strides(&r->value[lp ? of.y : of.indices], p->index_stride);
  s->how = lp ? LP : p->average ? MEANS : of.x >= 0 ? BY_X : p->index_dtype == QN_U8 ? BY_TAP : BY_PLACE;
  if (!within_image(&p->of_x, p->x_stride, p, p->in) || !within_image(&p->of_dx, p->dx_stride, p, p->in) ||
      !within_image(&p->of_dy, p->y_stride, p, p->out) || !within_image(&p->of_index, p->index_stride, p, p->out))
    return qn_refuse(out, "images within 2^31 elements", "dx", "", "%s", "more");
  p->flat = p->in[0] == 1 && p->out[0] == 1 && p->before[0] == 0;
  p->even = pool_even(p);
  for (int d = 0; d < 3; d++)
    p->by_step[d] = cuda_divide_by(p->step[d]), p->by_size[d] = cuda_divide_by(p->size[d]),
    p->by_dilation[d] = cuda_divide_by(p->dilation[d]);
  p->share = 1 / ((float)p->size[0] * (float)p->size[1] * (float)p->size[2]);
  return QN_OK;
}

/* Channels a thread: 16 bytes of them if every layout allows it, else 1. */
template <class P> static inline int gradient_channels(const pool_state<P> *s, const qn_request *r)
{
  const int32_t value[] = { s->of.dx, s->of.dy, s->of.x, s->of.y >= 0 ? s->of.y : s->of.indices };
  const int64_t *stride[4] = { s->p.dx_stride, s->p.y_stride };
  uint32_t whole, align = 16;
  int n = 2;
  for (int i = 0; i < 4; i++) {
    if (value[i] < 0) continue;
    if (i >= 2) stride[n++] = i == 2 ? s->p.x_stride : s->p.index_stride;
    if (r->value[value[i]].align < align) align = r->value[value[i]].align;
  }
  return pool_channels(&s->p, stride, n, align, &whole);
}
