/* pool_direct.cu -- pooling and its gradients in double, any layout and dtype: one window, or one sum over windows, for each output
 * element.
 *
 *   x [N, C, X]   y, indices [N, C, P]   1 to 3 spatial dims; adaptive: window o covers floor(o X / P) up to ceil((o + 1) X / P)
 *   max       y = the largest tap inside x; NaN wins, the first of equals counts; no tap inside: -Inf,
 *             or the least integer
 *   average   y = sum of taps inside x / divisor; the divisor counts those taps, or (include_pad) those inside x and its declared
 *             padding, but never what ceil_mode adds beyond; no tap inside: 0
 *   lp        y = (sum of |tap|^p)^(1/p) over the taps inside x; dx[x] = the sum of dy sign(x) (|x|/y)^(p-1), 0 where y is 0
 *   backward  dx[x] = the sum of dy over the windows whose maximum came from x, or of dy / divisor over those that cover x:
 *   gathered, without atomics */
#include "kit/direct.cuh"
#include "engines.h"

struct pooling {
  grid    x, y, dx, dy, indices;          /* p NULL: absent; y is lp's in a gradient */
  int64_t elements;
  int64_t size[3], step[3], dilation[3], before[3], after[3], in[3], out[3];
  int32_t adaptive, include_pad;
  double  p;                              /* lp: the exponent */

  __device__ int64_t begin(int d, int64_t o) const { return adaptive ? o * in[d] / out[d] : o * step[d] - before[d]; }
  __device__ int64_t count(int d, int64_t o) const
  {
    return adaptive ? ((o + 1) * in[d] + out[d] - 1) / out[d] - begin(d, o) : size[d];
  }
};

/* visit(position, number) for the taps of window o that lie inside x, in row-major order. */
template <class F> __device__ static void for_taps(const pooling &v, const int64_t o[3], F visit)
{
  const int64_t size[3] = { v.count(0, o[0]), v.count(1, o[1]), v.count(2, o[2]) };
  for (int64_t tap = 0; tap < size[0] * size[1] * size[2]; tap++) {
    const int64_t r[3] = { tap / size[2] / size[1], tap / size[2] % size[1], tap % size[2] };
    int64_t at[3];
    bool inside = true;
    for (int d = 0; d < 3; d++) at[d] = v.begin(d, o[d]) + r[d] * v.dilation[d], inside &= at[d] >= 0 && at[d] < v.in[d];
    if (inside) visit(at, tap);
  }
}

/* visit(o, tap) for the windows that cover position `at` of x, in row-major order, with the tap that it is of them. */
template <class F> __device__ static void for_windows(const pooling &v, const int64_t at[3], F visit)
{
  int64_t first[3], last[3], o[3];
  for (int d = 0; d < 3; d++) {
    const int64_t from = at[d] + v.before[d] - (v.size[d] - 1) * v.dilation[d];
    first[d] = v.adaptive ? at[d] * v.out[d] / v.in[d] : from > 0 ? (from + v.step[d] - 1) / v.step[d] : 0;
    last[d] = v.adaptive ? ((at[d] + 1) * v.out[d] + v.in[d] - 1) / v.in[d] - 1
                         : min((at[d] + v.before[d]) / v.step[d], v.out[d] - 1);
  }
  for (o[0] = first[0]; o[0] <= last[0]; o[0]++)
    for (o[1] = first[1]; o[1] <= last[1]; o[1]++)
      for (o[2] = first[2]; o[2] <= last[2]; o[2]++) {
        int64_t tap = 0;
        bool covers = true;
        for (int d = 0; d < 3; d++) {
          const int64_t from = at[d] - v.begin(d, o[d]);
          covers &= from % v.dilation[d] == 0, tap = tap * v.count(d, o[d]) + from / v.dilation[d];
        }
        if (covers) visit(o, tap);
      }
}

/* The largest tap of a window, its number, and as `index` what is stored for it: u8: its number in the window, i32, i64: its offset in
 * x's spatial plane; none inside x: -1. */
struct largest { double value; int64_t tap, index; };
__device__ static largest maximum(const pooling &v, int64_t n, int64_t c, const int64_t o[3])
{
  largest best = { -INFINITY, -1, v.indices.p && v.indices.dtype == QN_U8 ? 255 : -1 };
  for_taps(v, o, [&](const int64_t at[3], int64_t tap) {
    const double here = v.x.load<double>(v.x.at(n, c, at));
    if (best.tap < 0 || here > best.value || (here != here && best.value == best.value))
      best = { here, tap, v.indices.dtype == QN_U8 ? tap : (at[0] * v.in[1] + at[1]) * v.in[2] + at[2] };
  });
  return best;
}

__device__ static double divisor(const pooling &v, const int64_t o[3])
{
  int64_t count = 1;                      /* the window is a box: count each dim, multiply */
  for (int d = 0; d < 3; d++) {
    int64_t n = 0;
    for (int64_t r = 0; r < v.count(d, o[d]); r++) {
      const int64_t at = v.begin(d, o[d]) + r * v.dilation[d];
      n += v.include_pad ? at < v.in[d] + v.after[d] : at >= 0 && at < v.in[d];
    }
    count *= n;
  }
  return (double)count;
}

/* The mean of a window's taps times `unit`, a power of 2, in blocks of 4096 taps. */
__device__ static double mean_of(const pooling &v, const int64_t at[5], double unit)
{
  double sum = 0, block = 0;
  bool any = false;
  int64_t blocks = 0;
  for_taps(v, at + 2, [&](const int64_t from[3], int64_t tap) {
    if (tap / 4096 != blocks) sum += block, block = 0, blocks = tap / 4096;
    block += v.x.load<double>(v.x.at(at[0], at[1], from)) * unit, any = true;
  });
  return any ? (sum + block) / divisor(v, at + 2) : 0;
}

/* Scaled by the largest tap, so that no power overflows or underflows. */
__device__ static double norm_of(const pooling &v, const int64_t at[5])
{
  double most = 0, sum = 0;
  for (int pass = 0; pass < 2; pass++)
    for_taps(v, at + 2, [&](const int64_t from[3], int64_t) {
      const double here = fabs(v.x.load<double>(v.x.at(at[0], at[1], from)));
      if (pass == 0) most = here != here || here > most ? here : most;
      else if (most > 0 && most < INFINITY) sum += v.p == 2 ? here / most * (here / most) : pow(here / most, v.p);
    });
  return sum > 0 ? most * (v.p == 2 ? sqrt(sum) : pow(sum, 1 / v.p)) : most;
}

enum { MAX, AVERAGE, LP };

/* y at a place, and the index there. */
template <int how> __device__ static double reduced(const pooling &v, const int64_t at[5])
{
  if (how == LP) return norm_of(v, at);
  if (how == AVERAGE) {
    const double mean = mean_of(v, at, 1);
    return fabs(mean) < INFINITY ? mean : mean_of(v, at, 0x1p-64) * 0x1p64;       /* the sum of f64 overflowed */
  }
  const largest most = maximum(v, at[0], at[1], at + 2);
  if (v.indices.p) v.indices.store(v.indices.at(at[0], at[1], at + 2), most.index);
  return most.value;
}

/* dx at a place. */
template <int how> __device__ static double gradient(const pooling &v, const int64_t at[5])
{
  const int64_t here = (at[2] * v.in[1] + at[3]) * v.in[2] + at[4];
  const double x = how == LP ? v.x.load<double>(v.x.at(at[0], at[1], at + 2)) : 0, sign = x > 0 ? 1 : x < 0 ? -1 : x;
  double sum = 0;
  for_windows(v, at + 2, [&](const int64_t o[3], int64_t tap) {
    const double dy = v.dy.load<double>(v.dy.at(at[0], at[1], o));
    if (how == AVERAGE) {
      sum += dy / divisor(v, o);
    } else if (how == LP) {
      const double norm = v.y.load<double>(v.y.at(at[0], at[1], o));
      if (norm != 0) sum += dy * sign * (v.p == 2 ? fabs(x) / norm : pow(fabs(x) / norm, v.p - 1));
    } else if (v.indices.p ? v.indices.load<int64_t>(v.indices.at(at[0], at[1], o)) == (v.indices.dtype == QN_U8 ? tap : here)
                           : maximum(v, at[0], at[1], o).tap == tap) {
      sum += dy;
    }
  });
  return sum;
}

template <int how, bool backward> __global__ static void __launch_bounds__(128) pool_direct(const __grid_constant__ pooling v)
{
  const grid &to = backward ? v.dx : v.y;
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5], rest = i;
    for (int d = 4; d >= 0; d--) at[d] = rest % to.dim[d], rest /= to.dim[d];
    to.store(to.at(at[0], at[1], at + 2), backward ? gradient<how>(v, at) : reduced<how>(v, at));
  }
}

/* Only the extents of x and y are used; pool NULL: adaptive. */
static void windows_of(pooling *v, const qn_pool *pool, const grid &x, const grid &y, int rank)
{
  v->adaptive = !pool;
  if (pool) v->include_pad = pool->include_pad != 0, v->p = pool->p;
  for (int d = 0; d < 3; d++) {
    const int from = d - (5 - rank);
    v->in[d] = x.dim[2 + d], v->out[d] = y.dim[2 + d], v->size[d] = v->step[d] = v->dilation[d] = 1;
    if (!pool || from < 0) continue;
    v->size[d] = pool->window[from] ? pool->window[from] : v->in[d], v->step[d] = pool->stride[from] ? pool->stride[from] : v->size[d];
    v->dilation[d] = pool->dilation[from], v->before[d] = pool->pad_before[from], v->after[d] = pool->pad_after[from];
  }
  const bool counted = v->size[0] * v->size[1] * v->size[2] <= 255;      /* u8 indices count all taps of the window */
  for (int d = 0; d < 3 && !counted; d++)                 /* drop taps that never reach x or its padding */
    v->size[d] = qn_min_i64(v->size[d], qn_ceil_div(v->before[d] + v->in[d] + v->after[d], v->dilation[d]));
}

/* x_role, indices_role, y_role: of the op's x, indices, and (lp's gradient) y; -1: it has none. */
template <int how, bool backward, bool adaptive, int x_role, int indices_role = -1, int y_role = 1>
static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  pooling v = {};
  const tensor to = direct_tensor(k, launch, backward ? (uint32_t)k->n_roles - 1 : 1, 0), from = direct_tensor(k, launch, 0, 0);
  const auto of = [&](int role) {
    return role >= 0 && direct_count(k, (uint32_t)role) ? direct_grid(direct_tensor(k, launch, (uint32_t)role, 0)) : grid{};
  };
  v.x = of(x_role), v.indices = of(indices_role);
  if (backward) v.dy = direct_grid(from), v.dx = direct_grid(to);
  if (!backward || how == LP) v.y = of(y_role);
  v.elements = direct_elements(to);
  const grid x = direct_grid(backward ? to : from), y = direct_grid(backward ? from : to);
  windows_of(&v, adaptive ? nullptr : (const qn_pool *)k->attr, x, y, to.rank);
  pool_direct<how, backward><<<direct_blocks(v.elements, 128), 128, 0, (cudaStream_t)launch->stream>>>(v);
  return direct_launched("pool_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_POOL_MAX, (run<MAX, false, false, QN_ROLE_POOL_MAX_X, QN_ROLE_POOL_MAX_INDICES>)),
  DIRECT_ROW(QN_OP_POOL_AVERAGE, (run<AVERAGE, false, false, QN_ROLE_POOL_AVERAGE_X>)),
  DIRECT_ROW(QN_OP_POOL_LP, (run<LP, false, false, QN_ROLE_POOL_LP_X>)),
  DIRECT_ROW(QN_OP_POOL_ADAPTIVE_MAX, (run<MAX, false, true, QN_ROLE_POOL_ADAPTIVE_MAX_X, QN_ROLE_POOL_ADAPTIVE_MAX_INDICES>)),
  DIRECT_ROW(QN_OP_POOL_ADAPTIVE_AVERAGE, (run<AVERAGE, false, true, QN_ROLE_POOL_ADAPTIVE_AVERAGE_X>)),
  DIRECT_ROW(QN_OP_POOL_MAX_BACKWARD, (run<MAX, true, false, QN_ROLE_POOL_MAX_BACKWARD_X, QN_ROLE_POOL_MAX_BACKWARD_INDICES>)),
  DIRECT_ROW(QN_OP_POOL_AVERAGE_BACKWARD, (run<AVERAGE, true, false, -1>)),
  DIRECT_ROW(QN_OP_POOL_LP_BACKWARD, (run<LP, true, false, QN_ROLE_POOL_LP_BACKWARD_X, -1, QN_ROLE_POOL_LP_BACKWARD_Y>)),
  DIRECT_ROW(QN_OP_POOL_ADAPTIVE_MAX_BACKWARD, (run<MAX, true, true, -1, QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES>)),
  DIRECT_ROW(QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD, (run<AVERAGE, true, true, -1>)),
};
CUDA_ENGINES(pool_direct) = { row, sizeof row / sizeof *row };
