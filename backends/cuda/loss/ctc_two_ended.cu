/* ctc_two_ended.cu -- CTC loss and its gradient in f32 where the classes of a frame are contiguous: the recursion runs from both
 * ends at once.
 *
 * The recursion over frames is serial, so its latency is what a sample costs. One group of threads goes forward from the first
 * frame, another backward from the last; the loss is known where they meet, after half the frames. Both run the same code:
 * backward is forward with frames and labels reversed. Thread k holds two states, the blank before label k and label k; a step
 * needs only label k-1 from a neighbour: one word of shared memory and one barrier.
 *
 *   frames    lse of each frame, and log2 p of blank and labels, packed for the recursion           whole device
 *   paths     a sample a block. For a gradient both groups go on after they met: each combines with what the other left in every
 *             frame, and writes the states' shares there
 *   gradient  exp(x - lse) minus the shares of the class, added in label order                      whole device
 *
 * Logarithms are base 2. Every SETTLE frames a group subtracts its maximum, rounded to an integer, from its states, so that long
 * paths keep their precision. Refused: f64, classes that are not contiguous, more than 511 labels. */
#include "cuda_backend.h"
#include "engines.h"
#include "logits.cuh"
#include "kit/sm90.cuh"

enum { FEW_THREADS = 128, MOST_THREADS = 512, SETTLE = 16, SECOND = 1 << 30 };        /* FEW, MOST: threads of a group */

struct samples {
  const void  *x, *labels, *x_lengths, *label_lengths;
  const float *dy;
  void     *dx;
  float    *loss, *lse;                   /* input of a gradient */
  float    *e;                            /* [N, T, 1 + S]: log2 p of blank, then of labels */
  float    *path;                         /* [N, T, 2, S + 1]: A or B of blanks, of labels; later their shares */
  float    *settled;                      /* [N, T]: what has been subtracted from A or B */
  float    *total;                        /* [N]: log2 of the sum over all paths */
  int32_t  *next;                         /* [N, S]: next label of the same class, S: none; + SECOND: there is an earlier one */
  double   *losses;                       /* [N] */
  uint32_t *ticket;
  uint32_t  x_dtype, dx_dtype, label_dtype, x_length_dtype, label_length_dtype;
  int32_t   blank, zero_infinity, reduction, threads;              /* threads: of a group */
  int32_t   frames, samples, classes, longest;
  int64_t   x_frame, x_sample, dx_frame, dx_sample, lse_frame, lse_sample, label_sample, label_step;
  int64_t   x_length_step, label_length_step, loss_step;

  __device__ __forceinline__ static int64_t integer(const void *p, uint32_t dtype, int64_t i)
  {
    return dtype == QN_I64 ? ((const int64_t *)p)[i] : ((const int32_t *)p)[i];
  }
  __device__ __forceinline__ static int clamped(int64_t length, int most) { return (int)(length < 0 ? 0 : length > most ? most : length); }
  __device__ __forceinline__ int frames_of(int64_t n) const
  {
    return clamped(integer(x_lengths, x_length_dtype, n * x_length_step), frames);
  }
  __device__ __forceinline__ int labels_of(int64_t n) const
  {
    return clamped(integer(label_lengths, label_length_dtype, n * label_length_step), longest);
  }
  __device__ __forceinline__ int64_t label(int64_t n, int k) const
  {
    return integer(labels, label_dtype, n * label_sample + k * label_step);
  }
  __device__ __forceinline__ bool is_class(int64_t c) const { return c >= 0 && c < classes; }
  /* row: n T + t */
  __device__ __forceinline__ float *e_of(int row) const { return e + (int64_t)row * (1 + longest); }
  __device__ __forceinline__ float *path_of(int row) const { return path + (int64_t)row * (2 * longest + 2); }
};

__device__ __forceinline__ float log2_of(float x)         /* subnormal x gives that of 0 */
{
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/* log2(2^a + 2^b [+ 2^c]) */
__device__ __forceinline__ float add2(float a, float b)
{
  float by = joint::shift(fmaxf(a, b));
  return by + log2_of(fn_exp2(a - by) + fn_exp2(b - by));
}
__device__ __forceinline__ float add3(float a, float b, float c)
{
  float by = joint::shift(fmaxf(fmaxf(a, b), c));
  return by + log2_of(fn_exp2(a - by) + fn_exp2(b - by) + fn_exp2(c - by));
}

/* ---- frames ------------------------------------------------------------------------------------------------------- */

/* Writes the packed log2 p of a frame whose logits begin at `at`. */
__device__ __forceinline__ void leave_emissions(const samples &s, int n, int t, int64_t at, float lse, int lane, int threads)
{
  float *e = s.e_of(n * s.frames + t);
  for (int k = lane, labels = s.labels_of(n); k <= labels; k += threads) {
    int64_t c = k ? s.label(n, k - 1) : s.blank;
    float x = s.is_class(c) ? element_load<float>(s.x, at + c, s.x_dtype) : 0;
    e[k] = k && c == s.blank ? -INFINITY : (x - lse) * 1.44269504f;
  }
}

/* threads: per frame. */
template <int threads, int whole> __global__ static void __launch_bounds__(256) ctc_frames(const __grid_constant__ samples s)
{
  __shared__ joint shared[8];
  const int f = (int)(blockIdx.x * (256 / threads) + threadIdx.x / threads), t = f / s.samples, n = f - t * s.samples;
  const int lane = threadIdx.x % threads;
  if (t >= s.frames) return;
  const int64_t at = t * s.x_frame + n * s.x_sample;
  float lse = 0;
  if (t < s.frames_of(n)) {
    joint j = join_threads<threads>(read_row<threads, 4, whole>(s.x, s.x_dtype, at, (int)s.classes, 0), shared);
    lse = joint::shift(j.m) + logf(j.s);
    leave_emissions(s, n, t, at, lse, lane, threads);
  }
  if (s.lse && lane == 0) s.lse[t * s.lse_frame + n * s.lse_sample] = lse;
}

/* For a gradient, where lse is given; a frame a warp. */
__global__ static void __launch_bounds__(256) ctc_emissions(const __grid_constant__ samples s)
{
  const int f = (int)(blockIdx.x * 8 + threadIdx.x / 32), t = f / s.samples, n = f - t * s.samples;
  if (t < s.frames && t < s.frames_of(n))
    leave_emissions(s, n, t, t * s.x_frame + n * s.x_sample, s.lse[t * s.lse_frame + n * s.lse_sample], threadIdx.x % 32, 32);
}

/* ---- paths -------------------------------------------------------------------------------------------------------- */

/* What a step reads: log2 p of its frame, and (after the meeting) what the other group left there. */
struct fetched { float eb, el, b, l, settled; };

/* A thread of a group. Forward its blank is k and its label k; backward they are S - k and S - 1 - k. */
struct walker {
  const samples &s;
  int     row, frames, labels, k, blank, label, threads, group;
  bool    skip;                           /* may go from label k-1 to label k */
  float   b, l, settled;
  float  *edge;                           /* shared, [2][threads + 1]: label k-1 */
  float  *most;                           /* shared, [16]: maxima of warps */

  __device__ __forceinline__ void meet() const
  {
    if (threads == 32) __syncwarp();
    else group_sync(1 + group, threads);
  }
  __device__ __forceinline__ int row_of(int j) const { return row + (group ? frames - 1 - j : j); }
  __device__ __forceinline__ bool has_blank() const { return k <= labels; }
  __device__ __forceinline__ bool has_label() const { return k < labels; }

  /* For the j-th frame of this direction. */
  template <bool met> __device__ __forceinline__ fetched fetch(int j) const
  {
    fetched f = { 0, -INFINITY, 0, 0, 0 };
    if (j >= frames) return f;
    const float *e = s.e_of(row_of(j));
    f.eb = __ldg(e);
    if (has_label()) f.el = __ldg(e + 1 + label);
    if (met) {
      const float *path = s.path_of(row_of(j));
      if (has_blank()) f.b = path[blank];
      if (has_label()) f.l = path[s.longest + 1 + label];
      f.settled = s.settled[row_of(j)];
    }
    return f;
  }

  /* Step j without the emission. Step 0 enters states 0 and 1 from outside. */
  __device__ __forceinline__ void move(int j)
  {
    float *at = edge + (j & 1) * (threads + 1);
    if (k == 0) at[0] = j ? -INFINITY : 0;
    at[k + 1] = l;
    meet();
    float from = at[k], next = add2(b, from);
    l = add3(l, b, skip ? from : -INFINITY);
    b = next;
  }

  __device__ __forceinline__ void settle()
  {
    float m = fmaxf(has_blank() ? b : -INFINITY, has_label() ? l : -INFINITY);
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    if (threads > 32) {
      if (threadIdx.x % 32 == 0) most[k / 32] = m;
      meet();
      m = most[0];
      for (int w = 1; w < threads / 32; w++) m = fmaxf(m, most[w]);
    }
    if (m - m != 0) return;               /* infinite: leave as is */
    m = rintf(m);
    b -= m, l -= m, settled += m;
  }

  /* Stores A or B of frame j, or the shares 2^(A + B + off). */
  __device__ __forceinline__ void leave(int j, float of_blank, float of_label, float of_settled) const
  {
    float *path = s.path_of(row_of(j));
    if (has_blank()) path[blank] = of_blank;
    if (has_label()) path[s.longest + 1 + label] = of_label;
    if (k == 0) s.settled[row_of(j)] = of_settled;
  }

  /* Steps first..last-1, with AHEAD frames' loads in flight. met: combine with the other group's results and the total over all
   * paths, split into an integer and the rest. */
  template <bool leaves, bool met, int AHEAD> __device__ __forceinline__ void walk(int first, int last, float whole, float rest)
  {
    fetched ahead[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++) ahead[u] = fetch<met>(first + u);
    for (int j0 = first; j0 < last; j0 += AHEAD) {
#pragma unroll
      for (int u = 0; u < AHEAD; u++) {
        const int j = j0 + u;
        if (j >= last) break;
        const fetched here = ahead[u];
        ahead[u] = fetch<met>(j + AHEAD);
        move(j);
        float ub = b, ul = l, off = settled;                  /* B excludes its frame's emission, A includes it */
        b += here.eb, l += here.el;
        if (!group) ub = b, ul = l;
        if (met) {
          off += here.settled - whole;
          leave(j, fn_exp2(ub + here.b + off - rest), fn_exp2(ul + here.l + off - rest), 0);
        } else if (leaves) {
          leave(j, ub, ul, off);
        }
        if (j % SETTLE == SETTLE - 1) settle();
      }
    }
  }
};

/* Links the labels of equal class. */
__device__ __forceinline__ void chain_labels(const samples &s, int n, int labels)
{
  for (int k = threadIdx.x; k < labels; k += blockDim.x) {
    int64_t c = s.label(n, k);
    int next = k + 1, before = 0;
    while (next < labels && s.label(n, next) != c) next++;
    while (before < k && s.label(n, before) != c) before++;
    s.next[(int64_t)n * s.longest + k] = (next < labels ? next : s.longest) | (before < k ? SECOND : 0);
  }
}

/* Dynamic shared memory, in floats: edges of both groups, [2][2][threads + 1]; both groups' states at the meeting, [4][threads]. */
template <bool gradient, int most_threads>
__global__ static void __launch_bounds__(2 * most_threads) ctc_paths(const __grid_constant__ samples s)
{
  extern __shared__ float memory[];
  __shared__ float most[2][16], totals[2], from_end;
  __shared__ bool last_block;
  const int n = (int)blockIdx.x;
  const int threads = s.threads, group = threadIdx.x / threads, k = threadIdx.x % threads;
  const int frames = s.frames_of(n), labels = s.labels_of(n), half = group ? frames / 2 : (frames + 1) / 2;
  const int blank = group ? labels - k : k, label = group ? labels - 1 - k : k;
  const int before = group ? label + 1 : label - 1;
  const bool skip = k < labels && (k == 0 || s.label(n, label) != s.label(n, before));
  walker w = { s, n * s.frames, frames, labels, k, blank, label, threads, group, skip, -INFINITY, -INFINITY, 0,
               memory + group * 2 * (threads + 1), most[group] };
  float *states = memory + 4 * (threads + 1);              /* [2][2][threads]: A and B, of blanks, of labels */
  if (gradient) chain_labels(s, n, labels);

  w.template walk<gradient, false, 8>(0, half, 0, 0);
  float b = w.b, l = w.l;
  if (group && frames > 0) w.move(half);
  if (w.has_blank()) states[2 * group * threads + blank] = w.b;
  if (w.has_label()) states[(2 * group + 1) * threads + label] = w.l;
  w.b = b, w.l = l;
  if (group && k == 0) from_end = w.settled;
  __syncthreads();
  if (threadIdx.x < 32) {
    float m = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i <= labels; i += 32)
      m = fmaxf(m, fmaxf(states[i] + states[2 * threads + i], i < labels ? states[threads + i] + states[3 * threads + i] : -INFINITY));
    for (int o = 16; o; o >>= 1) m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
    float by = joint::shift(m);
    for (int i = threadIdx.x; i <= labels; i += 32)
      sum += fn_exp2(states[i] + states[2 * threads + i] - by) +
             (i < labels ? fn_exp2(states[threads + i] + states[3 * threads + i] - by) : 0);
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (threadIdx.x == 0) {
      totals[0] = w.settled + from_end;
      totals[1] = frames ? by + log2_of(sum) : labels ? -INFINITY : 0;
    }
  }
  __syncthreads();
  if (gradient) {
    if (threadIdx.x == 0) s.total[n] = totals[0] + totals[1];
    if (totals[1] != -INFINITY) w.template walk<true, true, most_threads == FEW_THREADS ? 8 : 2>(half, frames, totals[0], totals[1]);
    return;
  }

  if (threadIdx.x == 0) {
    double l2 = (double)totals[0] + totals[1], loss = l2 == -INFINITY && s.zero_infinity ? 0 : l2 * -0.693147180559945309;
    if (s.reduction == QN_REDUCTION_NONE) {
      s.loss[n * s.loss_step] = (float)loss;
    } else {
      s.losses[n] = loss;
      __threadfence();
      last_block = atomicInc(s.ticket, gridDim.x - 1) == gridDim.x - 1;          /* wraps to 0 for the next launch */
    }
  }
  if (s.reduction == QN_REDUCTION_NONE) return;
  __syncthreads();
  if (!last_block || threadIdx.x >= 32) return;
  __threadfence();
  double sum = 0;
  for (int i = threadIdx.x; i < s.samples; i += 32) sum += __ldcg(s.losses + i);
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (threadIdx.x == 0) *s.loss = (float)(s.reduction == QN_REDUCTION_MEAN ? sum / (double)s.samples : sum);
}

/* ---- gradient ----------------------------------------------------------------------------------------------------- */

template <int threads> __device__ __forceinline__ float sum_threads(float v, float *shared)
{
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threads > 32) {
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < threads / 32; w++) v += shared[w];
  }
  return v;
}

/* threads: per frame. */
template <int threads, int whole> __global__ static void __launch_bounds__(256) ctc_gradient(const __grid_constant__ samples s)
{
  __shared__ float shared[8];
  const int f = (int)(blockIdx.x * (256 / threads) + threadIdx.x / threads), t = f / s.samples, n = f - t * s.samples;
  const int lane = threadIdx.x % threads;
  if (t >= s.frames) return;
  const int64_t at = t * s.x_frame + n * s.x_sample, to = t * s.dx_frame + n * s.dx_sample;
  const bool spelt = t < s.frames_of(n) && s.total[n] != -INFINITY;
  const float lse = spelt ? s.lse[t * s.lse_frame + n * s.lse_sample] : 0;
  float g = s.dy[n * s.loss_step];
  if (s.reduction == QN_REDUCTION_MEAN) g /= (float)s.samples;
  for (int c = lane * LOGITS_V; c < s.classes; c += threads * LOGITS_V) {
    const int count = min(s.classes - c, (int)LOGITS_V);
    float v[LOGITS_V] = {};
    if (spelt) {
      if (whole) vector_load_whole<whole>(v, s.x, at + c);
      else vector_load(v, s.x, s.x_dtype, at + c, 1, count);
#pragma unroll
      for (int i = 0; i < LOGITS_V; i++) v[i] = g * exp_of(v[i] - lse);
    }
    if (whole) vector_store_whole<whole>(v, s.dx, to + c);
    else vector_store(v, s.dx, s.dx_dtype, to + c, 1, count);
  }
  if (!spelt) return;

  /* Elements stored above are overwritten by other threads of the frame only after sum_threads' barrier (or __syncwarp). */
  const int labels = s.labels_of(n);
  const float *share = s.path_of(n * s.frames + t), *of_label = share + s.longest + 1, *e = s.e_of(n * s.frames + t);
  const int32_t *next = s.next + (int64_t)n * s.longest;
  float of_blank = 0;
  for (int k = lane; k <= labels; k += threads) of_blank += share[k];
  of_blank = sum_threads<threads>(of_blank, shared);
  if (threads == 32) __syncwarp();
  if (lane == 0) element_store(s.dx, to + s.blank, s.dx_dtype, g * (fn_exp2(e[0]) - of_blank));
  for (int k = lane; k < labels; k += threads) {
    int64_t c = s.label(n, k);
    if (next[k] & SECOND || !s.is_class(c) || c == s.blank) continue;
    float sum = of_label[k];
    for (int i = next[k]; i < s.longest; i = next[i] & ~SECOND) sum += of_label[i];
    element_store(s.dx, to + c, s.dx_dtype, g * (fn_exp2(e[1 + k]) - sum));
  }
}

/* ---- prepare, run -------------------------------------------------------------------------------------------------- */

enum { X, DX, LABELS, X_LENGTHS, LABEL_LENGTHS, LOSS, LSE, TENSORS };      /* for a gradient LOSS is dy */

struct state {
  samples  s;
  int32_t  number[TENSORS];               /* value numbers of the request; -1: absent */
  bool     backward;
  const void *frames, *paths, *gradient;
  unsigned frame_blocks, rows_a_block;
  uint64_t path, settled, total, next, losses;              /* offsets in the workspace, after e */
};

/* f16 uses the generic kernel, whose loads are as wide where possible. */
template <int threads> static const void *frames_kernel(uint32_t whole)
{
  switch (whole) {
  case QN_F32:  return (const void *)ctc_frames<threads, QN_F32>;
  case QN_BF16: return (const void *)ctc_frames<threads, QN_BF16>;
  default:      return (const void *)ctc_frames<threads, 0>;
  }
}
template <int threads> static const void *gradient_kernel(uint32_t whole)
{
  switch (whole) {
  case QN_F32:  return (const void *)ctc_gradient<threads, QN_F32>;
  case QN_BF16: return (const void *)ctc_gradient<threads, QN_BF16>;
  default:      return (const void *)ctc_gradient<threads, 0>;
  }
}

/* Allocates n elements of workspace. */
static uint64_t take(uint64_t *at, int64_t n, int64_t bytes)
{
  uint64_t from = *at;
  *at += (uint64_t)qn_round_up(n * bytes, 256);
  return from;
}

static qn_status prepare(const qn_request *request, qn_prepared *out)
{
  const qn_node *op = &request->op[0];
  const qn_ctc *attr = (const qn_ctc *)op->attr;
  static const char *const names[TENSORS] = { "x", "dx", "labels", "x_lengths", "label_lengths", "loss", "lse" };
  static const int8_t forward[TENSORS] = { QN_ROLE_CTC_LOSS_X, -1, QN_ROLE_CTC_LOSS_LABELS, QN_ROLE_CTC_LOSS_X_LENGTHS,
                                           QN_ROLE_CTC_LOSS_LABEL_LENGTHS, QN_ROLE_CTC_LOSS_LOSS, QN_ROLE_CTC_LOSS_LSE };
  static const int8_t backward[TENSORS] = { QN_ROLE_CTC_LOSS_BACKWARD_X,
                                            QN_ROLE_CTC_LOSS_BACKWARD_DX,
                                            QN_ROLE_CTC_LOSS_BACKWARD_LABELS,
                                            QN_ROLE_CTC_LOSS_BACKWARD_X_LENGTHS,
                                            QN_ROLE_CTC_LOSS_BACKWARD_LABEL_LENGTHS,
                                            QN_ROLE_CTC_LOSS_BACKWARD_DY,
                                            QN_ROLE_CTC_LOSS_BACKWARD_LSE };
  state s = {};
  s.backward = op->op == QN_OP_CTC_LOSS_BACKWARD;
  const qn_value *v[TENSORS];
  for (int t = 0; t < TENSORS; t++) {
    s.number[t] = qn_role_at(op, (s.backward ? backward : forward)[t]);
    v[t] = s.number[t] < 0 ? nullptr : &request->value[s.number[t]];
  }
  const qn_value *x = v[X], *labels = v[LABELS];
  if (x->dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16 or bf16", "%s", "f64");
  for (int t = X; t <= DX; t++)
    if (v[t] && v[t]->stride[2] != 1 && x->dim[2] > 1)
      return qn_refuse(out, "the classes of a frame must lie side by side", names[t], "stride 1", "%lld", (long long)v[t]->stride[2]);
  if (labels->dim[1] >= MOST_THREADS)
    return qn_refuse(out, "a thread for each label of a sample, and one", "labels", "at most 511 for a sample", "%lld",
                     (long long)labels->dim[1]);
  if (x->dim[0] * x->dim[1] > INT32_MAX / 2 || x->dim[2] > INT32_MAX / 2)
    return qn_refuse(out, "32-bit numbers of frames and of classes", "x", "fewer than 2^30", "%s", "more");

  samples *c = &s.s;
  c->frames = (int32_t)x->dim[0], c->samples = (int32_t)x->dim[1], c->classes = (int32_t)x->dim[2], c->longest = (int32_t)labels->dim[1];
  c->threads = (int32_t)qn_round_up(c->longest + 1, 32);
  c->blank = (int32_t)attr->blank, c->zero_infinity = (int32_t)attr->zero_infinity, c->reduction = (int32_t)attr->reduction;
  c->x_dtype = x->dtype, c->label_dtype = labels->dtype;
  c->x_length_dtype = v[X_LENGTHS]->dtype, c->label_length_dtype = v[LABEL_LENGTHS]->dtype;
  c->x_frame = x->stride[0], c->x_sample = x->stride[1];
  c->label_sample = labels->stride[0], c->label_step = labels->stride[1];
  c->x_length_step = v[X_LENGTHS]->stride[0], c->label_length_step = v[LABEL_LENGTHS]->stride[0];
  c->loss_step = c->reduction == QN_REDUCTION_NONE ? v[LOSS]->stride[0] : 0;
  if (v[LSE]) c->lse_frame = v[LSE]->stride[0], c->lse_sample = v[LSE]->stride[1];

  const int64_t rows = x->dim[0] * x->dim[1];
  bool whole = x->align >= 16 && c->classes % LOGITS_V == 0 && c->x_frame % LOGITS_V == 0 && c->x_sample % LOGITS_V == 0;
  uint64_t at = 0;
  take(&at, rows * (1 + c->longest), 4);
  if (s.backward) {
    c->dx_dtype = v[DX]->dtype;
    c->dx_frame = v[DX]->stride[0], c->dx_sample = v[DX]->stride[1];
    whole &= v[DX]->dtype == x->dtype && v[DX]->align >= 16 && c->dx_frame % LOGITS_V == 0 && c->dx_sample % LOGITS_V == 0;
    s.path = take(&at, rows * 2 * (1 + c->longest), 4);
    s.settled = take(&at, rows, 4);
    s.total = take(&at, c->samples, 4);
    s.next = take(&at, x->dim[1] * c->longest, 4);
  } else if (c->reduction != QN_REDUCTION_NONE) {
    s.losses = take(&at, c->samples, 8);
    out->counters = 4;
  }
  out->workspace = at;
  bool wide = c->classes > 1024;
  uint32_t dtype = whole ? x->dtype : 0;
  s.frames = s.backward ? (const void *)ctc_emissions : wide ? frames_kernel<256>(dtype) : frames_kernel<32>(dtype);
  s.gradient = wide ? gradient_kernel<256>(dtype) : gradient_kernel<32>(dtype);
  bool few = c->threads <= FEW_THREADS;
  s.paths = s.backward ? (few ? (const void *)ctc_paths<true, FEW_THREADS> : (const void *)ctc_paths<true, MOST_THREADS>)
                       : (few ? (const void *)ctc_paths<false, FEW_THREADS> : (const void *)ctc_paths<false, MOST_THREADS>);
  s.rows_a_block = wide ? 1 : 8;
  s.frame_blocks = (unsigned)qn_ceil_div(rows, s.backward ? 8 : s.rows_a_block);

  return cuda_keep(out, &s, sizeof s);
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  samples c = s->s;
  char *memory = (char *)launch->workspace;
  c.x = pointer(launch, s->number[X]), c.dx = pointer(launch, s->number[DX]), c.labels = pointer(launch, s->number[LABELS]);
  c.x_lengths = pointer(launch, s->number[X_LENGTHS]), c.label_lengths = pointer(launch, s->number[LABEL_LENGTHS]);
  c.lse = (float *)pointer(launch, s->number[LSE]);
  c.dy = c.loss = (float *)pointer(launch, s->number[LOSS]);
  c.e = (float *)memory;
  c.path = (float *)(memory + s->path), c.settled = (float *)(memory + s->settled), c.total = (float *)(memory + s->total);
  c.next = (int32_t *)(memory + s->next), c.losses = (double *)(memory + s->losses);
  c.ticket = (uint32_t *)launch->counters;
  void *arguments[] = { &c };
  cudaStream_t stream = (cudaStream_t)launch->stream;
  const size_t shared = (4 * (size_t)(c.threads + 1) + 4 * (size_t)c.threads) * sizeof(float);
  qn_status status = cuda_check(cudaLaunchKernel(s->frames, dim3(s->frame_blocks), dim3(256), arguments, 0, stream), "ctc_frames");
  if (!status)
    status = cuda_check(cudaLaunchKernel(s->paths, dim3((unsigned)c.samples), dim3(2 * (unsigned)c.threads), arguments, shared, stream),
                        "ctc_paths");
  if (status || !s->backward) return status;
  const unsigned blocks = (unsigned)qn_ceil_div((int64_t)c.frames * c.samples, s->rows_a_block);
  return cuda_check(cudaLaunchKernel(s->gradient, dim3(blocks), dim3(256), arguments, 0, stream), "ctc_gradient");
}

#define ROW(op) { "two_ended", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CTC_LOSS), ROW(QN_OP_CTC_LOSS_BACKWARD) };
CUDA_ENGINES(ctc_two_ended) = { row, sizeof row / sizeof *row };
