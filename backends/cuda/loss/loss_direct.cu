/* loss_direct.cu -- cross_entropy and its gradients, in double, any strides and dtypes, along any dim: a row a block.
 *
 *   lse = m + ln sum exp(x - m), m = max x; 0 for log-probabilities      loss = sum t w (lse - x)
 *   dx = g (exp(x - lse) sum t w - t w), for log-probabilities -g t w; g = dy or dy / count
 *   dprobabilities = g (1 - smoothing) w (lse - x), 0 where (1 - smoothing) w is 0
 *   t = (1 - smoothing) [label] + smoothing / C, or with probabilities in place of [label]; terms whose t or w is 0 are left out
 *
 * For a reduced loss one block adds all rows in order. */
#include "kit/direct.cuh"
#include "engines.h"

enum { THREADS = 256 };

struct problem {
  tensor  x, labels, probabilities, weights, loss, lse, count, dx;         /* for a gradient loss is dy */
  int32_t axis;
  int64_t ignore, reduction, rows, classes, dim[QN_MAX_RANK];              /* dim: x's, 1 along the axis */
  double  smoothing;
  bool    logits, plain;                  /* plain: labels alone, and logits */

  /* The index in x of a row's first element. */
  __device__ void begin(int64_t row, int64_t index[QN_MAX_RANK]) const
  {
    for (int d = x.rank - 1; d >= 0; d--) {
      int64_t q = row / dim[d];
      index[d] = row - q * dim[d];
      row = q;
    }
  }
  __device__ double weight(int64_t c) const        /* 1 for a label of no class */
  {
    return weights.p && c >= 0 && c < classes ? weights.load<double>(c * weights.stride[0]) : 1;
  }
  __device__ bool known(int64_t label) const { return label >= 0 && label < classes; }
  __device__ bool counts(int64_t label) const { return !labels.p || label != ignore; }
  /* t w of a class; from: where the row's probabilities begin. */
  __device__ double share(int64_t from, int64_t label, int64_t c) const
  {
    double whole = probabilities.p ? probabilities.load<double>(from + c * probabilities.stride[axis]) : c == label, w = weight(c);
    double t = (smoothing < 1 && whole != 0 ? (1 - smoothing) * whole : 0) + smoothing / classes;
    return t != 0 && w != 0 ? t * w : 0;
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

__device__ static int64_t label_of(const problem &p, const int64_t *index)
{
  return p.labels.p ? p.labels.load<int64_t>(at(p.labels, index)) : -1;
}

/* All threads get the sum of t w, or of t w (lse - x). */
template <bool of_x> __device__ static double sum_of_shares(const problem &p, const int64_t *index, int64_t label, double lse)
{
  int64_t from = at(p.x, index), parts = p.probabilities.p ? at(p.probabilities, index) : 0;
  bool all = p.probabilities.p || p.smoothing > 0, known = p.known(label);
  double sum = 0;
  for (int64_t j = (all ? 0 : label) + threadIdx.x; j < (all ? p.classes : known ? label + 1 : label); j += THREADS) {
    double tw = p.share(parts, label, j);
    if (tw != 0) sum += of_x ? (lse - p.x.load<double>(from + j * p.x.stride[p.axis])) * tw : tw;
  }
  sum = block_reduce<add>(sum);
  if (p.labels.p && !known && p.smoothing < 1) sum += (1 - p.smoothing) * (of_x ? lse : 1);
  return sum;
}

/* All threads get the loss. */
__device__ static double row_loss(const problem &p, const int64_t *index, int64_t label)
{
  int64_t from = at(p.x, index), step = p.x.stride[p.axis];
  double m = -INFINITY, s = 0, sum = 0, lse = 0, loss = 0;
  if (p.counts(label) && !p.logits) loss = sum_of_shares<true>(p, index, label, 0);
  else if (p.counts(label)) {
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) m = fmax(m, p.x.load<double>(from + j * step));
    m = block_reduce<larger>(m);
    if (m == -INFINITY) m = 0;
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) {
      double x = p.x.load<double>(from + j * step);
      s += exp(x - m);
      sum += x;
    }
    lse = m + log(block_reduce<add>(s));
    if (p.plain) {
      loss = lse;
      if (p.known(label) && p.smoothing < 1) loss -= (1 - p.smoothing) * p.x.load<double>(from + label * step);
      if (p.smoothing > 0) loss -= p.smoothing * block_reduce<add>(sum) / p.classes;
    } else {
      loss = sum_of_shares<true>(p, index, label, lse);
    }
  }
  if (p.lse.p && threadIdx.x == 0) p.lse.store(at(p.lse, index), lse);
  return loss;
}

__global__ static void __launch_bounds__(THREADS) loss_direct(const __grid_constant__ problem p)
{
  int64_t index[QN_MAX_RANK];
  double sum = 0, count = 0;
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    p.begin(row, index);
    int64_t label = label_of(p, index);
    double loss = row_loss(p, index, label);
    if (p.reduction == QN_REDUCTION_NONE && threadIdx.x == 0) p.loss.store(at(p.loss, index), loss);
    sum += loss;
    if (p.counts(label)) count += p.weight(label);
  }
  if (p.reduction == QN_REDUCTION_NONE && !p.count.p) return;
  /* a single block, which saw every row */
  if (threadIdx.x) return;
  if (p.count.p) p.count.store(0, count);
  if (p.reduction != QN_REDUCTION_NONE) p.loss.store(0, p.reduction == QN_REDUCTION_MEAN ? sum / count : sum);
}

__global__ static void __launch_bounds__(THREADS) loss_backward_direct(const __grid_constant__ problem p)
{
  int64_t index[QN_MAX_RANK];
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    p.begin(row, index);
    int64_t label = label_of(p, index), from = at(p.x, index), to = at(p.dx, index);
    int64_t parts = p.probabilities.p ? at(p.probabilities, index) : 0;
    double g = p.loss.load<double>(at(p.loss, index)), lse = p.logits ? p.lse.load<double>(at(p.lse, index)) : 0;
    double total = p.plain ? 1 : p.logits ? sum_of_shares<false>(p, index, label, 0) : 0;
    if (p.reduction == QN_REDUCTION_MEAN) g /= p.count.load<double>(0);
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) {
      double dx = 0;
      if (p.counts(label))
        dx = g * ((total != 0 ? exp(p.x.load<double>(from + j * p.x.stride[p.axis]) - lse) * total : 0) - p.share(parts, label, j));
      p.dx.store(to + j * p.dx.stride[p.axis], dx);
    }
  }
}

/* dx here is dprobabilities. */
__global__ static void __launch_bounds__(THREADS) loss_backward_probabilities_direct(const __grid_constant__ problem p)
{
  int64_t index[QN_MAX_RANK];
  for (int64_t row = blockIdx.x; row < p.rows; row += gridDim.x) {
    p.begin(row, index);
    int64_t from = at(p.x, index), to = at(p.dx, index);
    double g = p.loss.load<double>(at(p.loss, index)), lse = p.logits ? p.lse.load<double>(at(p.lse, index)) : 0;
    if (p.reduction == QN_REDUCTION_MEAN) g /= p.count.load<double>(0);
    for (int64_t j = threadIdx.x; j < p.classes; j += THREADS) {
      double w = (1 - p.smoothing) * p.weight(j);
      p.dx.store(to + j * p.dx.stride[p.axis], w != 0 ? g * w * (lse - p.x.load<double>(from + j * p.x.stride[p.axis])) : 0);
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------- */

enum { ABSENT = 255 };                    /* a role that the op lacks */

static problem problem_of(const kept *k, const qn_launch *launch, const uint8_t role[7])
{
  const qn_entropy *attr = (const qn_entropy *)k->attr;
  problem p = {};
  tensor *all[7] = { &p.x, &p.labels, &p.probabilities, &p.weights, &p.loss, &p.lse, &p.count };
  for (int i = 0; i < 7; i++)
    if (role[i] != ABSENT) *all[i] = direct_tensor(k, launch, role[i], 0);
  p.axis = (int32_t)attr->axis;
  p.ignore = attr->ignore, p.reduction = attr->reduction, p.smoothing = attr->smoothing;
  p.logits = attr->input == QN_LOGITS, p.plain = p.logits && p.labels.p && !p.weights.p;
  p.classes = p.x.dim[p.axis];
  p.rows = 1;
  for (int d = 0; d < p.x.rank; d++) p.rows *= p.dim[d] = d == p.axis ? 1 : p.x.dim[d];
  return p;
}

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  static const uint8_t role[7] = { QN_ROLE_CROSS_ENTROPY_X, QN_ROLE_CROSS_ENTROPY_LABELS, QN_ROLE_CROSS_ENTROPY_PROBABILITIES,
    QN_ROLE_CROSS_ENTROPY_WEIGHTS, QN_ROLE_CROSS_ENTROPY_LOSS, QN_ROLE_CROSS_ENTROPY_LSE, QN_ROLE_CROSS_ENTROPY_COUNT };
  problem p = problem_of((const kept *)prepared->state, launch, role);
  bool joined = p.reduction != QN_REDUCTION_NONE || p.count.p;
  loss_direct<<<joined ? 1 : direct_blocks(p.rows, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("loss_direct");
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  static const uint8_t role[7] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_X, QN_ROLE_CROSS_ENTROPY_BACKWARD_LABELS,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES, QN_ROLE_CROSS_ENTROPY_BACKWARD_WEIGHTS, QN_ROLE_CROSS_ENTROPY_BACKWARD_DY,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_LSE, QN_ROLE_CROSS_ENTROPY_BACKWARD_COUNT };
  const kept *k = (const kept *)prepared->state;
  problem p = problem_of(k, launch, role);
  p.dx = direct_tensor(k, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_DX, 0);
  loss_backward_direct<<<direct_blocks(p.rows, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("loss_backward_direct");
}

static qn_status backward_probabilities(const qn_prepared *prepared, const qn_launch *launch)
{
  static const uint8_t role[7] = { QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_X, ABSENT, ABSENT,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_WEIGHTS, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DY,
    QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_LSE, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_COUNT };
  const kept *k = (const kept *)prepared->state;
  problem p = problem_of(k, launch, role);
  p.dx = direct_tensor(k, launch, QN_ROLE_CROSS_ENTROPY_BACKWARD_PROBABILITIES_DPROBABILITIES, 0);
  loss_backward_probabilities_direct<<<direct_blocks(p.rows, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("loss_backward_probabilities_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_CROSS_ENTROPY, forward),
  DIRECT_ROW(QN_OP_CROSS_ENTROPY_BACKWARD, backward),
  DIRECT_ROW(QN_OP_CROSS_ENTROPY_BACKWARD_PROBABILITIES, backward_probabilities),
};
CUDA_ENGINES(loss_direct) = { row, sizeof row / sizeof *row };
