/* ctc_direct.cu -- CTC loss and its gradient, in double, any strides: the lse of a frame by a warp, a sample's paths by a block.
 *
 * With S labels a sample has states 0..2S: even ones are blank, odd state s is label s/2. E(t,s) = x[state] - lse.
 *   A(t,s) = E(t,s) + ln of the sum of exp A(t-1,s'), s' = s, s-1, and s-2 if s is a label other than the one before
 *   B(t,s) = ln of the sum of exp (B + E)(t+1,s'), the same transitions reversed
 *   loss = -L, L = ln of the sum of exp A over the last two states of the last frame
 *   dx = g (exp(x - lse) - sum exp(A + B - L) over the states of the class), g = dy or dy / N */
#include "kit/direct.cuh"
#include "engines.h"

enum { THREADS = 256 };

struct problem {
  tensor  x, labels, x_lengths, label_lengths, loss, lse, dx;      /* for a gradient loss is dy */
  int64_t blank, zero_infinity, reduction, frames, samples, classes, longest, width;
  double *lses, *losses, *rows;           /* workspace: [T, N]; [N]; rows of states */

  __device__ int64_t frames_of(int64_t n) const { return clamped(x_lengths.load<int64_t>(n * x_lengths.stride[0]), frames); }
  __device__ int64_t states_of(int64_t n) const
  {
    return 2 * clamped(label_lengths.load<int64_t>(n * label_lengths.stride[0]), longest) + 1;
  }
  __device__ static int64_t clamped(int64_t length, int64_t most) { return length < 0 ? 0 : length > most ? most : length; }
  __device__ int64_t at(int64_t t, int64_t n, int64_t c) const { return t * x.stride[0] + n * x.stride[1] + c * x.stride[2]; }

  __device__ int64_t class_of(int64_t n, int64_t state) const
  {
    return state % 2 ? labels.load<int64_t>(n * labels.stride[0] + state / 2 * labels.stride[1]) : blank;
  }
  __device__ double emission(int64_t t, int64_t n, int64_t state, double of_frame) const
  {
    int64_t c = class_of(n, state);
    if (state % 2 && c == blank) return -INFINITY;
    return (c >= 0 && c < classes ? x.load<double>(at(t, n, c)) : 0) - of_frame;
  }
  __device__ bool may_skip(int64_t n, int64_t state) const
  {
    return state % 2 && state > 2 && class_of(n, state) != class_of(n, state - 2);
  }
};

/* ln(e^a + e^b) */
__device__ static double joined(double a, double b)
{
  if (a != a || b != b) return NAN;
  double m = fmax(a, b);
  return m == -INFINITY ? m : m + log1p(exp(fmin(a, b) - m));
}

/* A(t) of one state from row A(t-1). */
__device__ static double step_forward(const problem &p, int64_t t, int64_t n, int64_t i, double lse, const double *before)
{
  double sum = t == 0 ? (i < 2 ? 0 : -INFINITY) : before[i];
  if (t > 0 && i > 0) sum = joined(sum, before[i - 1]);
  if (t > 0 && p.may_skip(n, i)) sum = joined(sum, before[i - 2]);
  return sum + p.emission(t, n, i, lse);
}
/* B(t) of one state from row B(t+1); lse: of frame t+1. */
__device__ static double step_backward(const problem &p, int64_t t, int64_t n, int64_t i, int64_t states, bool last, double lse,
                                       const double *after)
{
  if (last) return i >= states - 2 ? 0 : -INFINITY;
  double sum = after[i] + p.emission(t + 1, n, i, lse);
  if (i + 1 < states) sum = joined(sum, after[i + 1] + p.emission(t + 1, n, i + 1, lse));
  if (i + 2 < states && p.may_skip(n, i + 2)) sum = joined(sum, after[i + 2] + p.emission(t + 1, n, i + 2, lse));
  return sum;
}
__device__ static double total(int64_t frames, int64_t states, const double *last)
{
  if (frames == 0) return states == 1 ? 0 : -INFINITY;
  return states == 1 ? last[0] : joined(last[states - 1], last[states - 2]);
}

/* ---- kernels --------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(THREADS) ctc_lse_direct(const __grid_constant__ problem p)
{
  const int lane = threadIdx.x % 32;
  for (int64_t f = blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32; f < p.frames * p.samples;
       f += (int64_t)gridDim.x * (THREADS / 32)) {
    int64_t t = f / p.samples, n = f % p.samples;
    double lse = 0;
    if (t < p.frames_of(n)) {
      double m = -INFINITY, s = 0;
      for (int64_t c = lane; c < p.classes; c += 32) m = fmax(m, p.x.load<double>(p.at(t, n, c)));
      for (int o = 16; o; o >>= 1) m = fmax(m, __shfl_xor_sync(~0u, m, o));
      if (m == -INFINITY) m = 0;
      for (int64_t c = lane; c < p.classes; c += 32) s += exp(p.x.load<double>(p.at(t, n, c)) - m);
      for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
      lse = m + log(s);
    }
    if (lane) continue;
    p.lses[f] = lse;
    if (p.lse.p) p.lse.store(t * p.lse.stride[0] + n * p.lse.stride[1], lse);
  }
}

__global__ static void __launch_bounds__(THREADS) ctc_direct(const __grid_constant__ problem p)
{
  for (int64_t n = blockIdx.x; n < p.samples; n += gridDim.x) {
    int64_t frames = p.frames_of(n), states = p.states_of(n);
    double *row = p.rows + n * 2 * p.width;
    for (int64_t t = 0; t < frames; t++) {
      for (int64_t i = threadIdx.x; i < states; i += THREADS)
        row[t % 2 * p.width + i] = step_forward(p, t, n, i, p.lses[t * p.samples + n], row + (t + 1) % 2 * p.width);
      __syncthreads();
    }
    if (threadIdx.x) continue;
    double l = total(frames, states, row + (frames + 1) % 2 * p.width);
    p.losses[n] = l == -INFINITY && p.zero_infinity ? 0 : -l;
    if (p.reduction == QN_REDUCTION_NONE) p.loss.store(n * p.loss.stride[0], p.losses[n]);
  }
}

__global__ static void ctc_reduce_direct(const __grid_constant__ problem p)
{
  double sum = 0;
  for (int64_t n = 0; n < p.samples; n++) sum += p.losses[n];
  p.loss.store(0, p.reduction == QN_REDUCTION_MEAN ? sum / p.samples : sum);
}

__global__ static void __launch_bounds__(THREADS) ctc_backward_direct(const __grid_constant__ problem p)
{
  for (int64_t n = blockIdx.x; n < p.samples; n += gridDim.x) {
    int64_t frames = p.frames_of(n), states = p.states_of(n);
    double *a = p.rows + n * (p.frames + 2) * p.width, *b = a + p.frames * p.width;
    double g = p.loss.load<double>(p.reduction == QN_REDUCTION_NONE ? n * p.loss.stride[0] : 0);
    if (p.reduction == QN_REDUCTION_MEAN) g /= p.samples;
    auto lse = [&](int64_t t) { return p.lse.load<double>(t * p.lse.stride[0] + n * p.lse.stride[1]); };
    for (int64_t t = 0; t < frames; t++) {
      for (int64_t i = threadIdx.x; i < states; i += THREADS) a[t * p.width + i] = step_forward(p, t, n, i, lse(t), a + (t - 1) * p.width);
      __syncthreads();
    }
    double l = total(frames, states, a + (frames - 1) * p.width);
    for (int64_t t = p.frames - 1; t >= 0; t--) {
      bool used = t < frames && l != -INFINITY, last = t == frames - 1;
      double *row = b + t % 2 * p.width, of_frame = used ? lse(t) : 0, of_next = used && !last ? lse(t + 1) : 0;
      for (int64_t i = threadIdx.x; i < states && used; i += THREADS)
        row[i] = step_backward(p, t, n, i, states, last, of_next, b + (t + 1) % 2 * p.width);
      __syncthreads();
      for (int64_t c = threadIdx.x; c < p.classes; c += THREADS) {
        double share = 0, dx = 0;
        for (int64_t i = 0; i < states && used; i++)
          if (p.class_of(n, i) == c) share += exp(a[t * p.width + i] + row[i] - l);
        if (used) dx = g * (exp(p.x.load<double>(p.at(t, n, c)) - of_frame) - share);
        p.dx.store(t * p.dx.stride[0] + n * p.dx.stride[1] + c * p.dx.stride[2], dx);
      }
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------ */

static problem problem_of(const kept *k, const qn_launch *launch, uint32_t x, uint32_t labels, uint32_t x_lengths, uint32_t label_lengths,
                          uint32_t loss, uint32_t lse)
{
  const qn_ctc *attr = (const qn_ctc *)k->attr;
  problem p = {};
  p.x = direct_tensor(k, launch, x, 0), p.labels = direct_tensor(k, launch, labels, 0);
  p.x_lengths = direct_tensor(k, launch, x_lengths, 0), p.label_lengths = direct_tensor(k, launch, label_lengths, 0);
  p.loss = direct_tensor(k, launch, loss, 0), p.lse = direct_tensor(k, launch, lse, 0);
  p.blank = attr->blank, p.zero_infinity = attr->zero_infinity, p.reduction = attr->reduction;
  p.frames = p.x.dim[0], p.samples = p.x.dim[1], p.classes = p.x.dim[2], p.longest = p.labels.dim[1];
  p.width = 2 * p.longest + 1;
  return p;
}

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  problem p = problem_of((const kept *)prepared->state, launch, QN_ROLE_CTC_LOSS_X, QN_ROLE_CTC_LOSS_LABELS, QN_ROLE_CTC_LOSS_X_LENGTHS,
                         QN_ROLE_CTC_LOSS_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_LOSS, QN_ROLE_CTC_LOSS_LSE);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  p.lses = (double *)launch->workspace;
  p.losses = p.lses + p.frames * p.samples;
  p.rows = p.losses + p.samples;
  ctc_lse_direct<<<direct_blocks(p.frames * p.samples, THREADS / 32), THREADS, 0, stream>>>(p);
  ctc_direct<<<direct_blocks(p.samples, 1), THREADS, 0, stream>>>(p);
  if (p.reduction != QN_REDUCTION_NONE) ctc_reduce_direct<<<1, 1, 0, stream>>>(p);
  return direct_launched("ctc_direct");
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  problem p = problem_of(k, launch, QN_ROLE_CTC_LOSS_BACKWARD_X, QN_ROLE_CTC_LOSS_BACKWARD_LABELS, QN_ROLE_CTC_LOSS_BACKWARD_X_LENGTHS,
                         QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_BACKWARD_DY, QN_ROLE_CTC_LOSS_BACKWARD_LSE);
  p.dx = direct_tensor(k, launch, QN_ROLE_CTC_LOSS_BACKWARD_DX, 0);
  p.rows = (double *)launch->workspace;
  ctc_backward_direct<<<direct_blocks(p.samples, 1), THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched("ctc_backward_direct");
}

/* Workspace. Forward: two rows of states a sample, lse of each frame, loss of each sample; gradient: a row a frame, plus two. */
static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool back = op->op == QN_OP_CTC_LOSS_BACKWARD;
  const qn_value *x = &r->value[qn_role(op, back ? QN_ROLE_CTC_LOSS_BACKWARD_X : QN_ROLE_CTC_LOSS_X)];
  const qn_value *labels = &r->value[qn_role(op, back ? QN_ROLE_CTC_LOSS_BACKWARD_LABELS : QN_ROLE_CTC_LOSS_LABELS)];
  double frames = (double)x->dim[0], samples = (double)x->dim[1], width = 2 * (double)labels->dim[1] + 1;
  double numbers = back ? samples * (frames + 2) * width : samples * (frames + 1 + 2 * width);
  out->workspace = numbers < 0x1p58 ? (uint64_t)numbers * sizeof(double) : (uint64_t)1 << 61;
  return direct_prepare(r, out);
}

#define ROW(op, function) { "direct", op, QN_CLASS_GENERIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                            nullptr, nullptr, prepare, nullptr, function, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CTC_LOSS, forward), ROW(QN_OP_CTC_LOSS_BACKWARD, backward) };
CUDA_ENGINES(ctc_direct) = { row, sizeof row / sizeof *row };
