/* norm_direct.cu -- normalization, forward and backward, in double, over any dims, layouts and dtypes: one block for each group
 * of elements that share statistics.
 *
 *   mean = sum x / n    var = sum (x - mean)^2 / n    rstd = 1 / sqrt(var + eps)    y = (x - mean) rstd scale + shift
 *   rms_norm: mean is 0, var = sum x^2 / n
 *   with h = (x - mean) rstd, g = dy scale:   dx = rstd (g - sum g / n - h sum(g h) / n)    rms_norm: without sum g
 *   dscale = sum dy h    dshift = sum dy */
#include "kit/direct.cuh"
#include "norm_layout.cuh"
#include "kit/sums.cuh"

enum { THREADS = 256 };

struct problem {
  tensor   t[TENSORS];
  uint64_t mask;                          /* of the dims within a group */
  int64_t  groups, n;
  double   eps, momentum;
  int32_t  centred;

  /* The index of element j of group i. */
  __device__ void place(int64_t i, int64_t j, int64_t index[QN_MAX_RANK]) const
  {
    for (int d = t[X].rank - 1; d >= 0; d--) {
      bool walked = mask >> d & 1;
      int64_t from = walked ? j : i, q = from / t[X].dim[d];
      index[d] = from - q * t[X].dim[d];
      if (walked) j = q;
      else i = q;
    }
  }
};

/* The offset in t of an index of x; t has x's dim or 1 in each. */
__device__ static int64_t broadcast(const tensor &t, const int64_t *index)
{
  int64_t offset = 0;
  for (int d = 0; d < t.rank; d++)
    if (t.dim[d] != 1) offset += index[d] * t.stride[d];
  return offset;
}
__device__ static double value(const tensor &t, const int64_t *index, double absent)
{
  return t.p ? t.load<double>(broadcast(t, index)) : absent;
}
__device__ static void put(const tensor &t, const int64_t *index, double v)
{
  if (t.p) t.store(broadcast(t, index), v);
}

/* Values of f64 whose squares overflow are measured again with this unit, a power of 2. */
constexpr double FAR = 0x1p-600;

/* Mean and variance of group i's elements times `unit`. The mean's own error, all that a constant group has, is taken off. */
__device__ static void measure(const problem &a, int64_t i, double unit, double *mean, double *var)
{
  int64_t index[QN_MAX_RANK];
  double sum = 0, beside = 0, squares = 0;
  for (int64_t j = threadIdx.x; a.centred && j < a.n; j += THREADS) {
    a.place(i, j, index);
    sum += value(a.t[X], index, 0) * unit;
  }
  sum = a.centred ? block_sum<THREADS>(sum) / a.n : 0;
  for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
    a.place(i, j, index);
    const double d = value(a.t[X], index, 0) * unit - sum;
    beside += d;
    squares += d * d;
  }
  beside = a.centred ? block_sum<THREADS>(beside) / a.n : 0;
  if (!(fabs(beside) < INFINITY)) beside = 0;
  *mean = sum + beside;
  *var = block_sum<THREADS>(squares) / a.n - beside * beside;
}

__global__ static void __launch_bounds__(THREADS) norm_direct(const __grid_constant__ problem a)
{
  int64_t index[QN_MAX_RANK];
  for (int64_t i = blockIdx.x; i < a.groups; i += gridDim.x) {
    double mean = 0, var = 0, unit = 1;
    a.place(i, 0, index);
    if (a.t[VAR].p) {
      mean = value(a.t[MEAN], index, 0);
      var = value(a.t[VAR], index, 0);
    } else {
      for (bool again = false;; again = true) {
        measure(a, i, unit, &mean, &var);
        if (again || fabs(var) < INFINITY) break;
        unit = FAR;
      }
    }
    double rstd = 1 / sqrt(var + a.eps * unit * unit);
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      a.place(i, j, index);
      double h = (value(a.t[X], index, 0) * unit - mean) * rstd;
      put(a.t[Y], index, h * value(a.t[SCALE], index, 1) + value(a.t[SHIFT], index, 0));
    }
    if (threadIdx.x == 0) {
      a.place(i, 0, index);
      rstd *= unit, mean /= unit, var = var / unit / unit;
      if (!a.t[VAR].p) put(a.t[MEAN], index, mean);
      put(a.t[RSTD], index, rstd);
      put(a.t[NEW_MEAN], index, (1 - a.momentum) * value(a.t[RUNNING_MEAN], index, 0) + a.momentum * mean);
      if (a.n > 1) var *= (double)a.n / (a.n - 1);
      put(a.t[NEW_VAR], index, (1 - a.momentum) * value(a.t[RUNNING_VAR], index, 0) + a.momentum * var);
    }
  }
}

/* ---- backward: y is dx ---------------------------------------------------------------------------- */

__device__ static double h_at(const problem &a, const int64_t *index)
{
  return (value(a.t[X], index, 0) - value(a.t[MEAN], index, 0)) * value(a.t[RSTD], index, 1);
}

__global__ static void __launch_bounds__(THREADS) norm_backward_direct(const __grid_constant__ problem a)
{
  int64_t index[QN_MAX_RANK];
  for (int64_t i = blockIdx.x; i < a.groups; i += gridDim.x) {
    double sum = 0, along = 0;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      a.place(i, j, index);
      double g = value(a.t[DY], index, 0) * value(a.t[SCALE], index, 1);
      sum += g;
      along += g * h_at(a, index);
    }
    sum = a.centred ? block_sum<THREADS>(sum) / a.n : 0;
    along = block_sum<THREADS>(along) / a.n;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      a.place(i, j, index);
      double g = value(a.t[DY], index, 0) * value(a.t[SCALE], index, 1);
      put(a.t[Y], index, value(a.t[RSTD], index, 1) * (g - sum - h_at(a, index) * along));
    }
  }
}

/* y is dscale (products) or dshift; a group is the elements of x that share one parameter. */
__global__ static void __launch_bounds__(THREADS) norm_parameter_direct(const __grid_constant__ problem a, int products)
{
  int64_t index[QN_MAX_RANK];
  for (int64_t i = blockIdx.x; i < a.groups; i += gridDim.x) {
    double sum = 0;
    for (int64_t j = threadIdx.x; j < a.n; j += THREADS) {
      a.place(i, j, index);
      double dy = value(a.t[DY], index, 0);
      sum += products ? dy * h_at(a, index) : dy;
    }
    sum = block_sum<THREADS>(sum);
    a.place(i, 0, index);
    if (threadIdx.x == 0) put(a.t[Y], index, sum);
  }
}

/* ---- host ------------------------------------------------------------------------------------------- */

static void walk(problem *a, uint64_t mask)
{
  a->mask = mask;
  a->groups = a->n = 1;
  for (int d = 0; d < a->t[X].rank; d++) *(mask >> d & 1 ? &a->n : &a->groups) *= a->t[X].dim[d];
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_norm *attr = (const qn_norm *)k->attr;
  const norm_roles roles = norm_roles_of(k->op);
  const bool backward = roles.of[DY] >= 0;
  problem a = {};
  for (int t = 0; t < TENSORS; t++) a.t[t] = roles.of[t] < 0 ? tensor{} : direct_tensor(k, launch, (uint32_t)roles.of[t], 0);
  a.eps = attr->eps;
  a.momentum = attr->momentum;
  a.centred = k->op != QN_OP_RMS_NORM && k->op != QN_OP_RMS_NORM_BACKWARD;
  walk(&a, attr->mask);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (backward) norm_backward_direct<<<direct_blocks(a.groups, 1), THREADS, 0, stream>>>(a);
  else norm_direct<<<direct_blocks(a.groups, 1), THREADS, 0, stream>>>(a);
  for (int products = 0; backward && products < 2; products++) {
    a.t[Y] = a.t[products ? DSCALE : DSHIFT];
    if (!a.t[Y].p) continue;
    uint64_t mask = 0;
    for (int d = 0; d < a.t[Y].rank; d++) mask |= (uint64_t)(a.t[Y].dim[d] == 1) << d;
    walk(&a, mask);
    norm_parameter_direct<<<direct_blocks(a.groups, 1), THREADS, 0, stream>>>(a, products);
  }
  return direct_launched("norm_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_LAYER_NORM, run), DIRECT_ROW(QN_OP_LAYER_NORM_BACKWARD, run),
  DIRECT_ROW(QN_OP_RMS_NORM, run),   DIRECT_ROW(QN_OP_RMS_NORM_BACKWARD, run),
  DIRECT_ROW(QN_OP_BATCH_NORM, run), DIRECT_ROW(QN_OP_BATCH_NORM_BACKWARD, run),
  DIRECT_ROW(QN_OP_BATCH_NORM_INFERENCE, run),
};
CUDA_ENGINES(norm_direct) = { row, sizeof row / sizeof *row };
