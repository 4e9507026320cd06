/* loss_direct.cu -- cross_entropy from logits and its gradient, in double, any strides and dtypes, along any dim: a row a block.
 *
 *   lse = m + ln sum exp(x - m), m = max x      loss = lse - (1 - smoothing) x[label] - smoothing mean x
 *   dx = g (exp(x - lse) - (1 - smoothing) [label] - smoothing / C), g = dy or dy / count
 *
 * For a reduced loss one block adds all rows in order. */
#include "kit/direct.cuh"
#include "engines.h"

enum { THREADS = 256 };

struct problem {
  tensor  x, labels, loss, lse, count, dx;          /* for a gradient loss is dy */
  int32_t axis;
  int64_t ignore, reduction, rows, classes;
  double  smoothing;

  /* The index in x of a row's first element. */
  __device__ void begin(int64_t row, int64_t index[QN_MAX_RANK]) const
  {
    for (int d = labels.rank - 1; d >= 0; d--) {
      int64_t q = row / labels.dim[d];
      index[d] = row - q * labels.dim[d];
      row = q;
    }
  }
};

__device__ static int64_t at(const tensor &t, const int64_t *index)        /* t may have extent 1 in some dims */
{
  int64_t offset = 0;
  for (int d = 0; d < t.rank; d++) offset += t.dim[d] == 1 ? 0 : index[d] * t.stride[d];
  return offset;
}

struct add { static constexpr double none = 0; __device__ static double of(double a, double b) { return a + b; } };
struct larger { static constexpr double none = -INFINITY; __device__ static double of(double a, double b) { return fmax(a, b); } };
/* A fixed reduction tree; all threads get the result. */
template <class Op> __device__ static double block_reduce(double v)
{
  __shared__ double part[THREADS / 32];
  for (int o = 16; o; o >>= 1) v = Op::of(v, __shfl_xor_sync(~0u, v, o));
  __syncthreads();                        /* part[] has been read */
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = Op::none;
  for (int w = 0; w < THREADS / 32; w++) v = Op::of(v, part[w]);
  return v;
}

/* All threads get the loss. */
__device__ static double row_loss(const problem &p, const int64_t *index, int64_t label)
{
  int64_t from = at(p.x, index), step = p.x.stride[p.axis];
  double m = -INFINITY, s = 0, sum = 0, lse = 0, loss = 0;
  if (label != p.ignore) {
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) m = fmax(m, p.x.load<double>(from + j * step));
    m = block_reduce<larger>(m);
    if (m == -INFINITY) m = 0;
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) {
      double x = p.x.load<double>(from + j * step);
      s += exp(x - m);
      sum += x;
    }
    lse = m + log(block_reduce<add>(s));
    loss = lse;
    if (label >= 0 && label < p.classes && p.smoothing < 1) loss -= (1 - p.smoothing) * p.x.load<double>(from + label * step);
    if (p.smoothing > 0) loss -= p.smoothing * block_reduce<add>(sum) / p.classes;
  }
  if (p.lse.p && threadIdx.x == 0) p.lse.store(at(p.lse, index), lse);
  return loss;
}

__global__ static void __launch_bounds__(THREADS) loss_direct(const __grid_constant__ problem p)
{
  int64_t index[QN_MAX_RANK], count = 0;
  double sum = 0;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    p.begin(row, index);
    int64_t label = p.labels.load<int64_t>(at(p.labels, index));
    double loss = row_loss(p, index, label);
    if (p.reduction == QN_REDUCTION_NONE && threadIdx.x == 0) p.loss.store(at(p.loss, index), loss);
    sum += loss;
    count += label != p.ignore;
  }
  if (p.reduction == QN_REDUCTION_NONE && !p.count.p) return;
  /* a single block, which saw every row */
  if (threadIdx.x) return;
  if (p.count.p) p.count.store(0, (double)count);
  if (p.reduction != QN_REDUCTION_NONE) p.loss.store(0, p.reduction == QN_REDUCTION_MEAN ? sum / count : sum);
}

__global__ static void __launch_bounds__(THREADS) loss_backward_direct(const __grid_constant__ problem p)
{
  int64_t index[QN_MAX_RANK];
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    p.begin(row, index);
    int64_t label = p.labels.load<int64_t>(at(p.labels, index)), from = at(p.x, index), to = at(p.dx, index);
    double g = p.loss.load<double>(at(p.loss, index)), lse = p.lse.load<double>(at(p.lse, index));
    if (p.reduction == QN_REDUCTION_MEAN) g /= p.count.load<double>(0);
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) {
      double dx = 0;
      if (label != p.ignore)
        dx = g *
             (exp(p.x.load<double>(from + j * p.x.stride[p.axis]) - lse) - (j == label ? 1 - p.smoothing : 0) - p.smoothing / p.classes);
      p.dx.store(to + j * p.dx.stride[p.axis], dx);
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------- */

static problem problem_of(const kept *k, const qn_launch *launch, uint32_t x, uint32_t labels, uint32_t loss, uint32_t lse, uint32_t count)
{
  const qn_entropy *attr = (const qn_entropy *)k->attr;
  problem p = {};
  p.x = direct_tensor(k, launch, x, 0), p.labels = direct_tensor(k, launch, labels, 0), p.loss = direct_tensor(k, launch, loss, 0);
  p.lse = direct_tensor(k, launch, lse, 0), p.count = direct_tensor(k, launch, count, 0);
  p.axis = (int32_t)attr->axis;
  p.ignore = attr->ignore, p.reduction = attr->reduction, p.smoothing = attr->smoothing;
  p.rows = direct_elements(p.labels);
  p.classes = p.x.dim[p.axis];
  return p;
}

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  problem p = problem_of((const kept *)prepared->state, launch, QN_ROLE_CROSS_ENTROPY_X, QN_ROLE_CROSS_ENTROPY_LABELS,
                         QN_ROLE_CROSS_ENTROPY_LOSS, QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT);
  bool joined = p.reduction != QN_REDUCTION_NONE || p.count.p;
  loss_direct<<<joined ? 1 : direct_blocks(p.rows, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("loss_direct");
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  problem p = problem_of(k, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS,
                         QN_ROLE_CROSS_ENTROPY_BACKWARD_DY, QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT);
  p.dx = direct_tensor(k, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX, 0);
  loss_backward_direct<<<direct_blocks(p.rows, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("loss_backward_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_CROSS_ENTROPY, forward),
  DIRECT_ROW(QN_OP_CROSS_ENTROPY_BACKWARD, backward),
};
CUDA_ENGINES(loss_direct) = { row, sizeof row / sizeof *row };
