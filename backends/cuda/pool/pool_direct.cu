/* pool_direct.cu -- max, average and lp pooling and their gradients in double: one window, or one sum over windows, for each
 * output element; any layout and dtype.
 *
 *   x [N, C, X]   y, indices [N, C, P]   1 to 3 spatial dims
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
  windows w;
  grid    x, y, dx, dy, indices;          /* p NULL: absent */
  int64_t elements;
  int32_t include_pad;
  double  p;                              /* lp: the exponent */
};

__device__ static void place5(int64_t i, const int64_t dim[5], int64_t at[5])
{
  for (int d = 4; d >= 0; d--) {
    int64_t q = i / dim[d];
    at[d] = i - q * dim[d];
    i = q;
  }
}

/* The number of the tap that holds the maximum of window o; -1: none inside x. */
__device__ static int64_t maximum(const pooling &v, const grid &x, int64_t n, int64_t c, const int64_t o[3], double *value)
{
  int64_t best = -1, taps = v.w.taps();
  *value = -INFINITY;
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t r[3], at[3];
    v.w.tap(tap, r);
    if (!v.w.input(o, r, at)) continue;
    double here = x.load<double>(x.at(n, c, at));
    if (best < 0 || here > *value || (here != here && *value == *value)) best = tap, *value = here;
  }
  return best;
}

/* The index stored for a tap: u8: its number in the window; i32, i64: its offset in x's spatial plane. */
__device__ static int64_t index_of(const pooling &v, uint32_t dtype, const int64_t o[3], int64_t tap)
{
  int64_t r[3], at[3];
  if (dtype == QN_U8) return tap < 0 ? 255 : tap;
  if (tap < 0) return -1;
  v.w.tap(tap, r);
  v.w.input(o, r, at);
  return (at[0] * v.w.inputs[1] + at[1]) * v.w.inputs[2] + at[2];
}

__device__ static double divisor(const pooling &v, const int64_t o[3])
{
  int64_t count = 1;                      /* the window is a box: count each dim, multiply */
  for (int d = 0; d < 3; d++) {
    int64_t n = 0;
    for (int64_t r = 0; r < v.w.size[d]; r++) {
      int64_t at = o[d] * v.w.step[d] + r * v.w.dilation[d] - v.w.before[d];
      n += v.include_pad ? at < v.w.inputs[d] + v.w.after[d] : at >= 0 && at < v.w.inputs[d];
    }
    count *= n;
  }
  return (double)count;
}

__global__ static void __launch_bounds__(128) pool_max_direct(const __grid_constant__ pooling v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5];
    double value;
    place5(i, v.y.dim, at);
    int64_t tap = maximum(v, v.x, at[0], at[1], at + 2, &value);
    v.y.store(v.y.at(at[0], at[1], at + 2), value);
    if (v.indices.p) v.indices.store(v.indices.at(at[0], at[1], at + 2), index_of(v, v.indices.dtype, at + 2, tap));
  }
}

__global__ static void __launch_bounds__(128) pool_max_backward_direct(const __grid_constant__ pooling v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5], taps = v.w.taps();
    double sum = 0, value;
    place5(i, v.dx.dim, at);
    for (int64_t tap = taps - 1; tap >= 0; tap--) {         /* the last tap belongs to the first window */
      int64_t r[3], o[3];
      v.w.tap(tap, r);
      if (!v.w.output(at + 2, r, o)) continue;
      bool chosen = v.indices.p ? v.indices.load<int64_t>(v.indices.at(at[0], at[1], o)) == index_of(v, v.indices.dtype, o, tap)
                                : maximum(v, v.x, at[0], at[1], o, &value) == tap;
      if (chosen) sum += v.dy.load<double>(v.dy.at(at[0], at[1], o));
    }
    v.dx.store(v.dx.at(at[0], at[1], at + 2), sum);
  }
}

/* The mean of a window's taps times `unit`, a power of 2, in blocks of 4096 taps. */
__device__ static double mean_of(const pooling &v, const int64_t at[5], double unit)
{
  double sum = 0, block = 0;
  const int64_t taps = v.w.taps();
  bool any = false;
  for (int64_t tap = 0; tap < taps; tap++) {
    int64_t r[3], from[3];
    if (tap % 4096 == 0) sum += block, block = 0;
    v.w.tap(tap, r);
    if (!v.w.input(at + 2, r, from)) continue;
    block += v.x.load<double>(v.x.at(at[0], at[1], from)) * unit;
    any = true;
  }
  return any ? (sum + block) / divisor(v, at + 2) : 0;
}

__global__ static void __launch_bounds__(128) pool_average_direct(const __grid_constant__ pooling v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5];
    place5(i, v.y.dim, at);
    double mean = mean_of(v, at, 1);
    if (!(fabs(mean) < INFINITY)) mean = mean_of(v, at, 0x1p-64) * 0x1p64;      /* the sum of f64 overflowed */
    v.y.store(v.y.at(at[0], at[1], at + 2), mean);
  }
}

__global__ static void __launch_bounds__(128) pool_average_backward_direct(const __grid_constant__ pooling v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5], taps = v.w.taps();
    double sum = 0;
    place5(i, v.dx.dim, at);
    for (int64_t tap = taps - 1; tap >= 0; tap--) {
      int64_t r[3], o[3];
      v.w.tap(tap, r);
      if (v.w.output(at + 2, r, o)) sum += v.dy.load<double>(v.dy.at(at[0], at[1], o)) / divisor(v, o);
    }
    v.dx.store(v.dx.at(at[0], at[1], at + 2), sum);
  }
}

/* Scaled by the largest tap, so that no power overflows or underflows. */
__global__ static void __launch_bounds__(128) pool_lp_direct(const __grid_constant__ pooling v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5], taps = v.w.taps();
    double most = 0, sum = 0;
    place5(i, v.y.dim, at);
    for (int pass = 0; pass < 2; pass++)
      for (int64_t tap = 0; tap < taps; tap++) {
        int64_t r[3], from[3];
        v.w.tap(tap, r);
        if (!v.w.input(at + 2, r, from)) continue;
        double here = fabs(v.x.load<double>(v.x.at(at[0], at[1], from)));
        if (pass == 0) most = here != here || here > most ? here : most;
        else if (most > 0 && most < INFINITY) sum += v.p == 2 ? here / most * (here / most) : pow(here / most, v.p);
      }
    v.y.store(v.y.at(at[0], at[1], at + 2), sum > 0 ? most * (v.p == 2 ? sqrt(sum) : pow(sum, 1 / v.p)) : most);
  }
}

__global__ static void __launch_bounds__(128) pool_lp_backward_direct(const __grid_constant__ pooling v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5], taps = v.w.taps();
    double sum = 0;
    place5(i, v.dx.dim, at);
    double here = v.x.load<double>(v.x.at(at[0], at[1], at + 2)), sign = here > 0 ? 1 : here < 0 ? -1 : here;
    for (int64_t tap = taps - 1; tap >= 0; tap--) {
      int64_t r[3], o[3];
      v.w.tap(tap, r);
      if (!v.w.output(at + 2, r, o)) continue;
      double norm = v.y.load<double>(v.y.at(at[0], at[1], o));
      if (norm != 0)
        sum += v.dy.load<double>(v.dy.at(at[0], at[1], o)) * sign * (v.p == 2 ? fabs(here) / norm : pow(fabs(here) / norm, v.p - 1));
    }
    v.dx.store(v.dx.at(at[0], at[1], at + 2), sum);
  }
}

/* Only the extents of x and y are used. */
static void windows_of(pooling *v, const kept *k, const grid &x, const grid &y, int rank)
{
  const qn_pool *pool = (const qn_pool *)k->attr;
  int missing = 5 - rank;
  v->include_pad = pool->include_pad != 0;
  v->p = pool->p;
  for (int d = 0; d < 3; d++) {
    int from = d - missing;
    bool here = from >= 0;
    v->w.size[d] = !here ? 1 : pool->window[from] ? pool->window[from] : x.dim[2 + d];
    v->w.step[d] = !here ? 1 : pool->stride[from] ? pool->stride[from] : v->w.size[d];
    v->w.dilation[d] = !here ? 1 : pool->dilation[from];
    v->w.before[d] = !here ? 0 : pool->pad_before[from];
    v->w.after[d] = !here ? 0 : pool->pad_after[from];
    v->w.inputs[d] = x.dim[2 + d];
    v->w.outputs[d] = y.dim[2 + d];
  }
  bool counted = v->w.size[0] * v->w.size[1] * v->w.size[2] <= 255;      /* u8 indices count all taps of the window */
  for (int d = 0; d < 3 && !counted; d++)                 /* drop taps that never reach x or its padding */
    v->w.size[d] = qn_min_i64(v->w.size[d], qn_ceil_div(v->w.before[d] + v->w.inputs[d] + v->w.after[d], v->w.dilation[d]));
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  pooling v = {};
  tensor x = direct_tensor(k, launch, QN_ROLE_POOL_MAX_X, 0), y = direct_tensor(k, launch, QN_ROLE_POOL_MAX_Y, 0);
  v.x = direct_grid(x);
  v.y = direct_grid(y);
  v.elements = direct_elements(y);
  windows_of(&v, k, v.x, v.y, x.rank);
  unsigned blocks = direct_blocks(v.elements, 128);
  if (k->op == QN_OP_POOL_MAX) {
    if (direct_count(k, QN_ROLE_POOL_MAX_INDICES)) v.indices = direct_grid(direct_tensor(k, launch, QN_ROLE_POOL_MAX_INDICES, 0));
    pool_max_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  } else if (k->op == QN_OP_POOL_LP) {
    pool_lp_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  } else {
    pool_average_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  }
  return direct_launched("pool_direct");
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  bool max = k->op == QN_OP_POOL_MAX_BACKWARD, lp = k->op == QN_OP_POOL_LP_BACKWARD;
  pooling v = {};
  tensor dx = direct_tensor(k, launch,
                            max  ? QN_ROLE_POOL_MAX_BACKWARD_DX
                            : lp ? QN_ROLE_POOL_LP_BACKWARD_DX
                                 : QN_ROLE_POOL_AVERAGE_BACKWARD_DX,
                            0);
  v.dx = direct_grid(dx);
  v.dy = direct_grid(direct_tensor(k, launch, QN_ROLE_POOL_MAX_BACKWARD_DY, 0));
  v.elements = direct_elements(dx);
  windows_of(&v, k, v.dx, v.dy, dx.rank);
  unsigned blocks = direct_blocks(v.elements, 128);
  if (max) {
    if (direct_count(k, QN_ROLE_POOL_MAX_BACKWARD_INDICES))
      v.indices = direct_grid(direct_tensor(k, launch, QN_ROLE_POOL_MAX_BACKWARD_INDICES, 0));
    if (direct_count(k, QN_ROLE_POOL_MAX_BACKWARD_X)) v.x = direct_grid(direct_tensor(k, launch, QN_ROLE_POOL_MAX_BACKWARD_X, 0));
    pool_max_backward_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  } else if (lp) {
    v.x = direct_grid(direct_tensor(k, launch, QN_ROLE_POOL_LP_BACKWARD_X, 0));
    v.y = direct_grid(direct_tensor(k, launch, QN_ROLE_POOL_LP_BACKWARD_Y, 0));
    pool_lp_backward_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  } else {
    pool_average_backward_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  }
  return direct_launched("pool_backward_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_POOL_MAX, forward),
  DIRECT_ROW(QN_OP_POOL_AVERAGE, forward),
  DIRECT_ROW(QN_OP_POOL_MAX_BACKWARD, backward),
  DIRECT_ROW(QN_OP_POOL_AVERAGE_BACKWARD, backward),
  DIRECT_ROW(QN_OP_POOL_LP, forward),
  DIRECT_ROW(QN_OP_POOL_LP_BACKWARD, backward),
};
CUDA_ENGINES(pool_direct) = { row, sizeof row / sizeof *row };
