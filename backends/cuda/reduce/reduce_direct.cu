/* reduce_direct.cu -- y = one number from all of x along some dims, the fallback: one block per element, in a fixed order.
 *
 *   variance = sum (x - mean)^2 / (n - correction)   logsumexp = ln sum e^x   any, all: max, min of bool
 *   sum, mean, prod, max, min   norm1 = sum |x|   norm2 = sqrt(sum x^2)   amax = max |x|   argmax, argmin = where, row-major
 *
 * Floats in double, integers modulo 2^64. Over nothing: 0, NaN, 1, -Inf, +Inf (integers: least, largest), 0, 0, 0, -1. NaN wins
 * in max, min, amax; argmax and argmin give the first NaN, else the first of equals. */
#include "kit/direct.cuh"
#include "engines.h"

enum { THREADS = 128 };

struct reduction {
  uint32_t op;                            /* any, all: as reduce_max, reduce_min */
  int32_t  rank;                          /* of the reduced dims */
  bool     last;                          /* of equal extremes */
  int64_t  correction;
  tensor   x, y;
  int64_t  count, elements, dim[QN_MAX_RANK], stride[QN_MAX_RANK];
};

__device__ static int64_t inner_place(const reduction &r, int64_t j)
{
  int64_t offset = 0;
  for (int d = r.rank - 1; d >= 0; d--) {
    int64_t q = j / r.dim[d];
    offset += (j - q * r.dim[d]) * r.stride[d];
    j = q;
  }
  return offset;
}

/* A thread's partial result, and how two are combined. T: double or int64_t. */
template <class T> struct found { T value; int64_t where; };

template <class T> __device__ static found<T> join(uint32_t op, bool last, found<T> a, found<T> b)
{
  switch (op) {
  case QN_OP_REDUCE_PROD: return { (T)(a.value * b.value), 0 };
  case QN_OP_REDUCE_MAX: case QN_OP_REDUCE_MIN: case QN_OP_REDUCE_AMAX: case QN_OP_ARGMAX: case QN_OP_ARGMIN: {
    if (a.where < 0) return b;
    if (b.where < 0) return a;
    bool least = op == QN_OP_REDUCE_MIN || op == QN_OP_ARGMIN, a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool a_first = (a.where < b.where) != last;
    if (a_nan || b_nan) return a_nan && (!b_nan || a_first) ? a : b;
    if (a.value == b.value) return a_first ? a : b;
    return (least ? a.value < b.value : a.value > b.value) ? a : b;
  }
  default: return { (T)(a.value + b.value), 0 };
  }
}

__device__ static void extreme(double *v, uint32_t, bool largest) { *v = largest ? INFINITY : -INFINITY; }
__device__ static void extreme(int64_t *v, uint32_t dtype, bool largest) { *v = integer_clamp(largest ? INT64_MAX : INT64_MIN, dtype); }

template <class T> __device__ static found<T> nothing(uint32_t op, uint32_t dtype)
{
  found<T> f = { 0, 0 };
  switch (op) {
  case QN_OP_REDUCE_PROD: f.value = 1; break;
  case QN_OP_REDUCE_MAX: case QN_OP_ARGMAX: extreme(&f.value, dtype, false), f.where = -1; break;
  case QN_OP_REDUCE_MIN: case QN_OP_ARGMIN: extreme(&f.value, dtype, true), f.where = -1; break;
  case QN_OP_REDUCE_AMAX: f.where = -1; break;
  default: break;
  }
  return f;
}

template <class T> __device__ static found<T> seen(uint32_t op, T v, int64_t j)
{
  switch (op) {
  case QN_OP_REDUCE_NORM1: case QN_OP_REDUCE_AMAX: return { v < T(0) ? T(-v) : v, j };
  case QN_OP_REDUCE_NORM2: return { (T)(v * v), j };
  default: return { v, j };
  }
}

/* A mean or norm of numbers so large that their sum or squares overflow is taken again of the numbers in this unit. */
constexpr double FAR = 0x1p-600;
__device__ static bool overflows(uint32_t op, double v)
{
  return (op == QN_OP_REDUCE_MEAN || op == QN_OP_REDUCE_NORM2) && !(fabs(v) < INFINITY);
}
__device__ static bool overflows(uint32_t, int64_t) { return false; }

__device__ static void finish(const reduction &r, int64_t to, found<double> f, double unit)
{
  switch (r.op) {
  case QN_OP_REDUCE_MEAN: f.value = f.value / (double)r.count / unit; break;
  case QN_OP_REDUCE_NORM2: f.value = sqrt(f.value) / unit; break;
  case QN_OP_ARGMAX: case QN_OP_ARGMIN: r.y.store(to, f.where); return;
  default: break;
  }
  r.y.store(to, f.value);
}

__device__ static void finish(const reduction &r, int64_t to, found<int64_t> f, int64_t)
{
  element_store_wrapped(r.y.p, to, r.y.dtype, r.op == QN_OP_ARGMAX || r.op == QN_OP_ARGMIN ? f.where : f.value);
}

template <class T> __global__ static void __launch_bounds__(THREADS) reduce_direct(const __grid_constant__ reduction r)
{
  __shared__ T value[THREADS];
  __shared__ int64_t where[THREADS];
  for (int64_t i = blockIdx.x; i < r.elements; i += gridDim.x) {
    int64_t from = place(r.x, r.y, i);    /* position 0 along the reduced dims, where y has size 1 */
    found<T> f;
    for (T unit = 1;; unit = (T)FAR) {
      f = nothing<T>(r.op, r.x.dtype);
      for (int64_t j = threadIdx.x; j < r.count; j += THREADS)
        f = join(r.op, r.last, f, seen(r.op, (T)(r.x.load<T>(from + inner_place(r, j)) * unit), j));
      value[threadIdx.x] = f.value;
      where[threadIdx.x] = f.where;
      for (int half = THREADS / 2; half; half >>= 1) {
        __syncthreads();
        if (threadIdx.x < half) {
          f = join(r.op, r.last, f, { value[threadIdx.x + half], where[threadIdx.x + half] });
          value[threadIdx.x] = f.value;
          where[threadIdx.x] = f.where;
        }
      }
      __syncthreads();
      const bool again = unit == 1 && overflows(r.op, value[0]);
      if (threadIdx.x == 0 && !again) finish(r, place(r.y, r.y, i), f, unit);
      __syncthreads();
      if (!again) break;
    }
  }
}

/* The sum, or the largest (NaN wins), of the block's values in each thread. */
__device__ static double block_join(double *shared, double v, bool largest)
{
  shared[threadIdx.x] = v;
  for (int half = THREADS / 2; half; half >>= 1) {
    __syncthreads();
    if (threadIdx.x < half) {
      const double a = shared[threadIdx.x], b = shared[threadIdx.x + half];
      shared[threadIdx.x] = !largest ? a + b : a != a || a >= b ? a : b;
    }
  }
  __syncthreads();
  v = shared[0];
  __syncthreads();
  return v;
}

/* In two passes: the mean or the largest, then what is about it. A mean is of x / n, which does not overflow. */
__global__ static void __launch_bounds__(THREADS) reduce_about_direct(const __grid_constant__ reduction r)
{
  __shared__ double shared[THREADS];
  const bool variance = r.op == QN_OP_REDUCE_VARIANCE;
  for (int64_t i = blockIdx.x; i < r.elements; i += gridDim.x) {
    const int64_t from = place(r.x, r.y, i);
    double middle = variance ? 0 : -INFINITY, sum = 0;
    for (int64_t j = threadIdx.x; j < r.count; j += THREADS) {
      const double v = r.x.load<double>(from + inner_place(r, j));
      middle = variance ? middle + v / (double)r.count : middle != middle || middle >= v ? middle : v;
    }
    middle = block_join(shared, middle, !variance);
    const bool finite = fabs(middle) < INFINITY;
    for (int64_t j = threadIdx.x; j < r.count && (variance || finite); j += THREADS) {
      const double far = r.x.load<double>(from + inner_place(r, j)) - middle;
      sum += variance ? far * far : exp(far);
    }
    sum = block_join(shared, sum, false);
    const double left = r.count > r.correction ? (double)(r.count - r.correction) : 0;
    if (threadIdx.x == 0) r.y.store(place(r.y, r.y, i), variance ? sum / left : finite ? middle + log(sum) : middle);
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  uint64_t mask = ((const qn_axes *)k->attr)->mask;
  reduction r = {};
  r.op = k->op == QN_OP_REDUCE_ANY ? (uint32_t)QN_OP_REDUCE_MAX : k->op == QN_OP_REDUCE_ALL ? (uint32_t)QN_OP_REDUCE_MIN : k->op;
  r.last = ((const qn_axes *)k->attr)->last != 0;
  r.correction = ((const qn_axes *)k->attr)->correction;
  r.x = direct_tensor(k, launch, 0, 0);
  r.y = direct_tensor(k, launch, 1, 0);
  r.count = 1;
  r.elements = direct_elements(r.y);
  for (int d = 0; d < r.x.rank; d++) {
    if (mask != 0 && !(mask >> d & 1)) continue;
    r.dim[r.rank] = r.x.dim[d];
    r.stride[r.rank++] = r.x.stride[d];
    r.count *= r.x.dim[d];
  }
  unsigned blocks = direct_blocks(r.elements, 1);
  if (r.op == QN_OP_REDUCE_VARIANCE || r.op == QN_OP_REDUCE_LOGSUMEXP)
    reduce_about_direct<<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(r);
  else if (qn_is_float(r.x.dtype)) reduce_direct<double><<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(r);
  else reduce_direct<int64_t><<<blocks, THREADS, 0, (cudaStream_t)launch->stream>>>(r);
  return direct_launched("reduce_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_REDUCE_SUM, run),
  DIRECT_ROW(QN_OP_REDUCE_MEAN, run),
  DIRECT_ROW(QN_OP_REDUCE_PROD, run),
  DIRECT_ROW(QN_OP_REDUCE_MAX, run),
  DIRECT_ROW(QN_OP_REDUCE_MIN, run),
  DIRECT_ROW(QN_OP_REDUCE_NORM1, run),
  DIRECT_ROW(QN_OP_REDUCE_NORM2, run),
  DIRECT_ROW(QN_OP_REDUCE_AMAX, run),
  DIRECT_ROW(QN_OP_ARGMAX, run),
  DIRECT_ROW(QN_OP_ARGMIN, run),
  DIRECT_ROW(QN_OP_REDUCE_ANY, run),
  DIRECT_ROW(QN_OP_REDUCE_ALL, run),
  DIRECT_ROW(QN_OP_REDUCE_LOGSUMEXP, run),
  DIRECT_ROW(QN_OP_REDUCE_VARIANCE, run),
};
CUDA_ENGINES(reduce_direct) = { row, sizeof row / sizeof *row };
