/* lrn_taps.cu -- divisive normalization, and local response normalization of planes too large for a tile: windows are summed tap
 * by tap from global memory (L1 serves the reuse), in any dense layout.
 *
 *   y  = x b^-beta, b = k + alpha/n sum (x - m)^2, m the mean at the window's centre or 0; gradients as in lrn.cu
 *
 * Not separable: expanding the square would cancel. An element a thread; a gradient first writes b^-beta and g x/b of every
 * window to workspace, then gathers them. Refused: f64; layouts that differ or have gaps; 2^31 elements and more. */
#include "cuda_backend.h"
#include "engines.h"
#include "lrn.cuh"
#include "kit/spatial.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256 };

/* An element a thread, in memory order. A gradient takes two launches: first b^-beta and g x/b of every window. */
struct taps {
  const void *in, *x, *means;             /* in: dy, or x; means NULL: 0 */
  void    *out, *dmeans;
  float   *power, *ratio;                 /* workspace: b^-beta, g x/b */
  uint32_t dtype;
  int32_t  elements, before, after;
  dim      along[3];                      /* strides in memory; dims that the window does not cover have extent 1 */
  float    k, alpha, beta;                /* alpha already divided by n */

  __device__ __forceinline__ float at(const void *from, int32_t e) const
  {
    float v[1];
    load(v, from, dtype, e);
    return v[0];
  }
  __device__ __forceinline__ float mean(int32_t e) const { return means ? at(means, e) : 0; }
  __device__ __forceinline__ void put(void *to, int32_t e, float f) const
  {
    float v[1] = { f };
    store(v, to, dtype, e);
  }
  /* Calls `tap` with each element of the window around e that reaches `back` and `ahead`. */
  template <class function> __device__ __forceinline__ void each(int32_t e, int32_t back, int32_t ahead, function tap) const
  {
    int32_t low[3], high[3];
#pragma unroll
    for (int d = 0; d < 3; d++) {
      int32_t i = index_of(along[d], e);
      low[d] = -min(back, i), high[d] = min(ahead, along[d].n - 1 - i);
    }
#pragma unroll 1
    for (int32_t o0 = low[0]; o0 <= high[0]; o0++)
#pragma unroll 1
      for (int32_t o1 = low[1]; o1 <= high[1]; o1++)
        for (int32_t o2 = low[2]; o2 <= high[2]; o2++) tap(e + o0 * along[0].inner + o1 * along[1].inner + o2 * along[2].inner);
  }
};

template <bool backward> __global__ static void __launch_bounds__(THREADS) lrn_taps(const __grid_constant__ taps s)
{
  int32_t e = blockIdx.x * THREADS + threadIdx.x;
  if (e >= s.elements) return;
  float m = s.mean(e), squares = 0, distances = 0;
  s.each(e, s.before, s.after, [&](int32_t at) {
    float d = s.at(s.x, at) - m;
    squares += d * d, distances += d;
  });
  float x = s.at(s.x, e), b = s.k + s.alpha * squares, p = power(b, s.beta);
  if constexpr (backward) {
    float ratio = quotient(s.at(s.in, e) * p * x, b);
    s.power[e] = p, s.ratio[e] = ratio;
    if (s.dmeans) s.put(s.dmeans, e, 2 * s.alpha * s.beta * (ratio * distances));
  } else {
    s.put(s.out, e, x * p);
  }
}

__global__ static void __launch_bounds__(THREADS) lrn_taps_gather(const __grid_constant__ taps s)
{
  int32_t e = blockIdx.x * THREADS + threadIdx.x;
  if (e >= s.elements) return;
  float x = s.at(s.x, e), sum = 0;
  s.each(e, s.after, s.before, [&](int32_t at) { sum += s.ratio[at] * (x - s.mean(at)); });
  s.put(s.out, e, s.at(s.in, e) * s.power[e] - 2 * s.alpha * s.beta * sum);
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct taps_state { taps s; roles at; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  bool backward = op->op == QN_OP_LRN_BACKWARD, within = a->region == QN_LOCAL_WITHIN;
  taps_state st = { {}, roles_of(op) };
  taps *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  bool alike = qn_is_dense(x);
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) alike &= qn_same_layout(x, &r->value[op->arg[i]]);
  if (!alike) return qn_refuse(out, "tensors are alike and without gaps", "x", "one layout", "%s", "strides");
  int64_t all = qn_elements(x);
  if (all > 0x7fffff00) return qn_refuse(out, "elements are counted in 31 bits", "x", "fewer", "%lld", (long long)all);
  double n = 1, window = 1;
  for (int d = 0; d < 3; d++) set_dim(&s->along[d], 1, 1);
  for (int d = within ? 2 : 1, to = within ? 5 - x->rank : 2; to < 3; d++, to++) {
    if (x->dim[d] > 1) set_dim(&s->along[to], x->dim[d], x->stride[d]);
    n *= (double)a->size, window *= (double)qn_min_i64(a->size, x->dim[d]);
  }
  s->dtype = x->dtype, s->elements = (int32_t)all;
  s->before = (int32_t)qn_min_i64((a->size - 1) / 2, all), s->after = (int32_t)qn_min_i64(a->size / 2, all);
  s->k = (float)a->k, s->alpha = (float)(a->alpha / n), s->beta = (float)a->beta;
  out->workspace = backward ? (uint64_t)all * 2 * sizeof(float) : 0;
  out->estimate = (backward ? 5000 : 3000) +
                  (double)all * ((op->first[op->n_roles] * (double)qn_kit_bytes(x->dtype) + (backward ? 24 : 0)) / 3500 +
                                 window * (backward ? 3 : 1) / 4000);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const taps_state *st = (const taps_state *)p->state;
  taps s = st->s;
  s.in = launch->ptr[st->at.in], s.x = launch->ptr[st->at.x], s.out = launch->ptr[st->at.out];
  if (st->at.means >= 0) s.means = launch->ptr[st->at.means];
  if (st->at.dmeans >= 0) s.dmeans = launch->ptr[st->at.dmeans];
  s.power = (float *)launch->workspace, s.ratio = s.power + s.elements;
  unsigned blocks = direct_blocks(s.elements, THREADS);
  if (p->engine->op == QN_OP_LRN_BACKWARD) {
    lrn_taps<true><<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s);
    lrn_taps_gather<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  } else {
    lrn_taps<false><<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  }
  return direct_launched("lrn");
}

#define ROW(op) { "taps", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LRN), ROW(QN_OP_LRN_BACKWARD) };
CUDA_ENGINES(lrn_taps) = { row, sizeof row / sizeof *row };
