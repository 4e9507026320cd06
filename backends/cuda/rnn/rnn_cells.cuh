/* rnn_cells.cuh -- what kernels of recurrent networks share: tensors of a layer, sums of lanes, the formulas of the cells and
 * of their slopes. */
#pragma once
#include "kit/element.cuh"
#include "kit/functions.cuh"
#include "kit/random.cuh"
#include "rnn_problem.h"

/* ---- tensors ------------------------------------------------------------------------------------------- */

__device__ __forceinline__ int64_t rnn_at(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k = 0)
{
  return i * t.stride[0] + j * t.stride[1] + k * t.stride[2];
}
template <class T> __device__ __forceinline__ T rnn_get(const cuda_rnn_tensor &t, int64_t i, int64_t j = 0, int64_t k = 0)
{
  return t.p ? element_load<T>(t.p, rnn_at(t, i, j, k), t.dtype) : T(0);
}
template <class T> __device__ __forceinline__ void rnn_put(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k, T v)
{
  if (t.p) element_store(t.p, rnn_at(t, i, j, k), t.dtype, v);
}

/* The same where t most likely has this dtype. */
template <uint32_t dtype> __device__ __forceinline__ void rnn_put_as(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k, float v)
{
  if (!t.p) return;
  if (t.dtype == dtype) element_store(t.p, rnn_at(t, i, j, k), dtype, v);
  else element_store(t.p, rnn_at(t, i, j, k), t.dtype, v);
}

__device__ __forceinline__ int64_t rnn_length(const cuda_rnn &p, int64_t b)
{
  if (!p.lengths.p) return p.steps;
  const int64_t n = element_load<int64_t>(p.lengths.p, b * p.lengths.stride[0], p.lengths.dtype);
  return n < 0 ? 0 : n > p.steps ? p.steps : n;
}
/* The time of step s of a sequence this long; beyond its end, of the times that are left. */
__device__ __forceinline__ int64_t rnn_time(const cuda_rnn &p, int64_t length, int64_t s)
{
  return s < length && p.reversed ? length - 1 - s : s;
}

/* What dropout makes of element `at` of all that layers give, or of its gradient. */
template <class T> __device__ T rnn_dropped(const cuda_rnn &p, int64_t at, T v)
{
  if (p.dropout == 0) return v;
  uint32_t word[4];
  random_words(word, (uint64_t)(p.seed.p ? *p.seed.p : p.seed.value), (uint64_t)(p.offset.p ? *p.offset.p : p.offset.value),
               (uint64_t)at / 4);
  const uint32_t w = at % 4 == 0 ? word[0] : at % 4 == 1 ? word[1] : at % 4 == 2 ? word[2] : word[3];
  return w < p.dropout * 0x1p32 ? T(0) : T(v / (1 - p.dropout));
}

/* Element i, counted within its direction, of what the layer gives at time t, and of what the next one takes. */
template <class T> __device__ __forceinline__ void rnn_give(const cuda_rnn &p, int64_t t, int64_t b, int64_t i, T v)
{
  rnn_put(p.out, t, b, p.first + i, v);
  if (!p.next) return;
  const int64_t at = (t * p.batch + b) * p.width + p.first + i;
  element_store(p.next, at, p.dtype, rnn_dropped(p, p.layer * p.steps * p.batch * p.width + at, v));
}

template <uint32_t dtype> __device__ __forceinline__ void rnn_give_as(const cuda_rnn &p, int64_t t, int64_t b, int64_t i, float v)
{
  rnn_put_as<dtype>(p.out, t, b, p.first + i, v);
  if (!p.next) return;
  const int64_t at = (t * p.batch + b) * p.width + p.first + i;
  element_store(p.next, at, dtype, rnn_dropped(p, p.layer * p.steps * p.batch * p.width + at, v));
}

/* What a block reads at every step lies in shared memory: reading constants at a computed place, of one of several layers or directions,
 * takes longer. A copy by all threads, which then meet. */
template <class T> __device__ __forceinline__ const T &rnn_near(const T &given, T *room)
{
  for (uint32_t i = threadIdx.x; i < sizeof(T) / 4; i += blockDim.x) ((uint32_t *)room)[i] = ((const uint32_t *)&given)[i];
  return *room;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* Of 2 half sums a lane keeps those whose bit `half` is its own; then of half as many; at last sum lane % (2 half). */
template <int half, int N> __device__ __forceinline__ void rnn_fold(float (&sum)[N], int lane)
{
  if constexpr (half < 1) return;
  const bool upper = lane & half;
#pragma unroll
  for (int l = 0; l < half; l++) {
    const float keep = upper ? sum[l + half] : sum[l], give = upper ? sum[l] : sum[l + half];
    sum[l] = keep + __shfl_xor_sync(~0u, give, half);
  }
  if constexpr (half > 1) rnn_fold<half / 2>(sum, lane);
}

/* ---- functions ----------------------------------------------------------------------------------------- */

/* In float without branches, so that those of several gates and sequences overlap. e^-a, a from 0: 2^hi with hi = -a / ln 2 rounded, times
 * 1 + lo ln 2 for what the rounding left; a that is not below 110 gives 0, NaN stays. */
__device__ __forceinline__ float rnn_exp_negative(float a)
{
  a = a > 110.f ? 110.f : a;
  const float hi = a * -1.4426950216293335f, lo = fmaf(a, -1.4426950216293335f, -hi) + a * -1.925963033500e-8f, e = exp2f(hi);
  return fmaf(e, lo * 0.6931471824645996f, e);
}
__device__ __forceinline__ float rnn_sigmoid(float x)
{
  const float e = rnn_exp_negative(fabsf(x));
  return fn_ratio(x < 0 ? e : 1.f, 1 + e);
}
/* Below 0.6 x + x^3 p(x^2), p by least squares at Chebyshev's points, within 1.3 units of rounding; else (1 - e) / (1 + e), e = e^-2|x|. */
__device__ __forceinline__ float rnn_tanh(float x)
{
  const float y = x * x, e = rnn_exp_negative(2 * fabsf(x)), far = copysignf(fn_ratio(1 - e, 1 + e), x);
  float p = fmaf(-0.005819871090352535f, y, 0.02073395811021328f);
  p = fmaf(fmaf(fmaf(p, y, -0.05376627668738365f), y, 0.13331729173660278f), y, -0.33333292603492737f);
  return fabsf(x) < 0.6f ? fmaf(x * y, p, x) : far;
}
/* Either, where lanes of a warp differ in which. */
__device__ __forceinline__ float rnn_sigmoid_or_tanh(float x, bool is_tanh)
{
  const float a = fabsf(x), e = rnn_exp_negative(is_tanh ? 2 * a : a), ratio = fn_ratio(is_tanh ? 1 - e : x < 0 ? e : 1.f, 1 + e);
  const float y = x * x;
  float p = fmaf(-0.005819871090352535f, y, 0.02073395811021328f);
  p = fmaf(fmaf(fmaf(p, y, -0.05376627668738365f), y, 0.13331729173660278f), y, -0.33333292603492737f);
  return !is_tanh ? ratio : a < 0.6f ? fmaf(x * y, p, x) : copysignf(ratio, x);
}
__device__ __forceinline__ double rnn_sigmoid(double x) { return fn_sigmoid(x); }
__device__ __forceinline__ double rnn_tanh(double x) { return tanh(x); }

/* ---- cells --------------------------------------------------------------------------------------------- */

/* P: cuda_rnn, or what has of it the cell and the clip. */
template <class P, class T> __device__ __forceinline__ T rnn_bounded(const P &p, T c)
{
  return c > T(p.clip) ? T(p.clip) : c < T(-p.clip) ? T(-p.clip) : c;
}

/* gate: sums, becomes what is kept; c: becomes the state; raw: before clip. Returns h. */
template <class P, class T> __device__ __forceinline__ T rnn_lstm(const P &p, T (&gate)[4], T &c, T &raw)
{
  gate[0] = rnn_sigmoid(gate[0]), gate[1] = rnn_sigmoid(gate[1]), gate[2] = rnn_tanh(gate[2]), gate[3] = rnn_sigmoid(gate[3]);
  raw = gate[1] * c + gate[0] * gate[2];
  c = rnn_bounded(p, raw);
  return gate[3] * rnn_tanh(c);
}
/* gate[0], [1]: sums; [2]: that of x, [3]: that of h. */
template <class T> __device__ __forceinline__ T rnn_gru(T (&gate)[4], T old)
{
  gate[0] = rnn_sigmoid(gate[0]), gate[1] = rnn_sigmoid(gate[1]);
  gate[2] = rnn_tanh(gate[2] + gate[0] * gate[3]);
  return (1 - gate[1]) * gate[2] + gate[1] * old;
}
template <class P, class T> __device__ __forceinline__ T rnn_plain(const P &p, T sum)
{
  return p.cell == QN_RNN_TANH ? rnn_tanh(sum) : sum < 0 ? T(0) : sum;
}

/* gate: as kept, becomes the slopes of the sums; old: c of the step before; dc: becomes that of the step before. */
template <class P, class T>
__device__ __forceinline__ void rnn_lstm_slopes(const P &p, T (&gate)[4], T raw, T old, T dh, T &dc)
{
  const T i = gate[0], f = gate[1], g = gate[2], o = gate[3], t = rnn_tanh(rnn_bounded(p, raw));
  const T by_c = fabs(raw) >= T(p.clip) ? T(0) : dc + dh * o * (1 - t * t);
  gate[0] = by_c * g * (i * (1 - i));
  gate[1] = by_c * old * (f * (1 - f));
  gate[2] = by_c * i * (1 - g * g);
  gate[3] = dh * t * (o * (1 - o));
  dc = by_c * f;
}
/* of_h: the slope of r h in n; dh: becomes what reaches h beside r. */
template <class T> __device__ __forceinline__ void rnn_gru_slopes(T (&gate)[4], T old, T &dh, T &of_h)
{
  const T r = gate[0], z = gate[1], n = gate[2], dn = dh * (1 - z) * (1 - n * n);
  gate[0] = dn * gate[3] * (r * (1 - r));
  gate[1] = dh * (old - n) * (z * (1 - z));
  gate[2] = dn;
  of_h = dn * r;
  dh *= z;
}
template <class P, class T> __device__ __forceinline__ T rnn_plain_slope(const P &p, T y, T dh)
{
  return p.cell == QN_RNN_TANH ? dh * (1 - y * y) : y > 0 ? dh : T(0);
}
