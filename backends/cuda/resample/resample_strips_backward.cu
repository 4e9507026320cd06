/* resample_strips_backward.cu -- gradient of resampling (nearest, linear, cubic), f16, bf16 and f32, gathered: threads walk down dx.
 *
 *   dx = the sum over the outputs that have it as a tap of dy times its weight
 *
 * A thread has a band of lines of dx, V channels of one column (channels contiguous, 16 bytes) or one element, in L layers that
 * share weights. It reduces a line of dy to its column once and adds it to the TAPS lines of dx that use it. */
#include "engines.h"
#include "resample_elements.cuh"

enum { THREADS = 128, MANY = 4096, AHEAD = 2, MOST = 16384 };      /* AHEAD: lines of dy prefetched to L2; MOST: terms of a running sum */

/* The outputs that have input j as a tap with a weight: less than MODE pixels away; nearest: in j up to j + 1. */
template <int MODE> __device__ __forceinline__ void points_of(const ruler &r, int32_t j, int32_t *begin, int32_t *end)
{
  constexpr int before = MODE, after = MODE == QN_RESAMPLE_NEAREST ? 1 : MODE;
  *begin = 0, *end = (int32_t)r.points;
  if (r.step == 0) return;
  auto first_beyond = [&](int32_t over) {                   /* the first output whose position exceeds over / under */
    over -= (int32_t)r.first;
    return over < 0 ? 0 : min((int32_t)cuda_quotient((uint32_t)over, r.by_step) + 1, (int32_t)r.points);
  };
  *begin = first_beyond((j - before) * (int32_t)r.under - (MODE == QN_RESAMPLE_NEAREST));
  *end = first_beyond((j + after) * (int32_t)r.under - 1);
}

struct gradient : resampling {
  int32_t  band;                          /* lines of dx of a block */
  uint32_t units;                         /* threads: a column of dx, V of its channels, L layers each */
  cuda_divisor by_channels, by_columns, by_layers, by_blocks, by_bands;
};

/* A line of dy: byte offset; the first line of dx that it adds to; weights of that and the next lines. */
template <int TAPS> struct line_of_dy { int64_t from; int32_t row; float weight[TAPS]; };

/* All threads of a block add the same lines of dy to the same lines of dx, so they list these in shared memory together. The
 * weights of a column's first KEPT outputs (all of them at scale 2) stay in registers. */
template <uint32_t T, int MODE, int V, int L>
__global__ static void __launch_bounds__(THREADS, V > 1 && MODE == QN_RESAMPLE_CUBIC ? 4 : 8)
    resample_strips_backward(const __grid_constant__ gradient s)
{
  typedef point<float, int32_t, MODE> spot;
  constexpr int TAPS = spot::TAPS, KEPT = MODE == QN_RESAMPLE_NEAREST ? 2 : 2 * TAPS, E = size_of<T>;
  __shared__ line_of_dy<TAPS> list[THREADS];
  uint32_t block, band, channel, column, group;
  const int plane = (int)cuda_quotient(cuda_quotient(blockIdx.x, s.by_blocks, &block), s.by_bands, &band);
  const bool mine = block * THREADS + threadIdx.x < s.units;
  const uint32_t unit = mine ? block * THREADS + threadIdx.x : 0;
  const uint32_t n = cuda_quotient(cuda_quotient(cuda_quotient(unit, s.by_channels, &channel), s.by_columns, &column), s.by_layers, &group);
  const int begin = (int)band * s.band, end = min(begin + s.band, (int)s.out_dim[1]);
  const int layer = (int)group * L, layers = mine ? (int)s.layers - layer : 0;
  int points[2], lines[2], depths[2], unused;               /* of dy: begin, end */
  points_of<MODE>(s.dim[2], (int)column, &points[0], &points[1]);
  points_of<MODE>(s.dim[1], begin, &lines[0], &unused);
  points_of<MODE>(s.dim[1], end - 1, &unused, &lines[1]);
  points_of<MODE>(s.dim[0], plane, &depths[0], &depths[1]);
  const int deep = depths[1] - depths[0], steps = (lines[1] - lines[0]) * deep, count = points[1] - points[0];

  const cell<int32_t> at = { (int32_t)n, (int32_t)channel * V, layer, { plane, begin, (int32_t)column } };
  const char *from[L];
  first_of<L>(from, s, at, points[0] * s.in_stride[4], E);
  const int64_t beside = s.in_stride[4] * E;
  const bool near = V > 1 || beside == E; /* offsets that fit the load instruction's immediate */
  auto across = [&](int i) { return weight_in<float, int32_t, MODE>(s.dim[2], points[0] + i, (int)column); };
  float kept[KEPT];
#pragma unroll
  for (int i = 0; i < KEPT; i++) kept[i] = i < count ? across(i) : 0;

  int row = begin;
  float sum[TAPS][L][V] = {};             /* of lines row, row + 1, ... */
  char *to = (char *)s.out + offset_of(at, s.out_stride, s.out_layer) * E;
  auto advance = [&] {
    put_line<T, V, 1, L>(s, sum[0], layers, to, (int)column, true);
    to += s.out_stride[3] * E;
#pragma unroll
    for (int k = 0; k < TAPS; k++)
#pragma unroll
      for (int l = 0; l < L; l++)
#pragma unroll
        for (int i = 0; i < V; i++) sum[k][l][i] = k + 1 < TAPS ? sum[(k + 1) % TAPS][l][i] : 0;
    row++;
  };
#pragma unroll 1
  for (int first = 0; first < steps; first += THREADS) {
    __syncthreads();
    if (first + (int)threadIdx.x < steps) {
      const int step = first + (int)threadIdx.x, y = step / deep, z = depths[0] + step - y * deep;
      const spot p(s.dim[1], lines[0] + y);
      const float part = s.dim[0].places == 1 ? 1.f : weight_in<float, int32_t, MODE>(s.dim[0], z, plane);
      line_of_dy<TAPS> &line = list[threadIdx.x];
      line.from = (z * s.in_stride[2] + (lines[0] + y) * s.in_stride[3]) * E;
      line.row = max(p.place(s.dim[1], 0), begin);
      float weight[TAPS];
      p.weights(s.dim[1], weight);
#pragma unroll
      for (int k = 0; k < TAPS; k++) {
        float w = MODE == QN_RESAMPLE_NEAREST && k == 0 ? 1 : 0;        /* at an edge several taps are clamped to this line */
        if (MODE != QN_RESAMPLE_NEAREST)
#pragma unroll
          for (int tap = 0; tap < TAPS; tap++) w += p.place(s.dim[1], tap) == line.row + k ? weight[tap] : 0;
        line.weight[k] = line.row + k < end ? w * part : 0;
      }
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < min(steps - first, (int)THREADS); i++) {
      const line_of_dy<TAPS> line = list[i];
      const int64_t ahead = list[min(i + AHEAD, min(steps - first, (int)THREADS) - 1)].from;
#pragma unroll
      for (int l = 0; l < L; l++) prefetch_L2(from[l] + ahead);
#pragma unroll 1
      while (row < line.row) advance();
      float f[L][V] = {};
      if (near) {
        raw<T, V> q[KEPT][L];
#pragma unroll
        for (int l = 0; l < L; l++) {
          const char *here = from[l] + line.from;
          asm volatile("" : "+l"(here));    /* keeps one base register */
#pragma unroll
          for (int i = 0; i < KEPT; i++)
            if (kept[i] != 0) q[i][l].load(true, here + i * (V == 1 ? E : beside));
        }
#pragma unroll
        for (int i = 0; i < KEPT; i++)
          if (kept[i] != 0)
#pragma unroll
            for (int l = 0; l < L; l++)
#pragma unroll
              for (int v = 0; v < V; v++) f[l][v] = fmaf(kept[i], q[i][l].get(v), f[l][v]);
      }
#pragma unroll 1
      for (int i = near ? KEPT : 0; i < count; i++) {
        const float w = across(i);
        raw<T, V> more[L];
#pragma unroll
        for (int l = 0; l < L; l++) more[l].load(w != 0, from[l] + line.from + i * beside);
#pragma unroll
        for (int l = 0; l < L; l++)
#pragma unroll
          for (int v = 0; v < V; v++) f[l][v] = fmaf(w, more[l].get(v), f[l][v]);
      }
#pragma unroll
      for (int k = 0; k < TAPS; k++)
        if (line.weight[k] != 0)
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int v = 0; v < V; v++) sum[k][l][v] = fmaf(line.weight[k], f[l][v], sum[k][l][v]);
    }
  }
#pragma unroll 1
  while (row < end) advance();
}

/* ---- host ---------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct strips_state { gradient s; kernel kernel; uint32_t blocks; int32_t dy, dx; };

/* Kernel and layers of a thread: what fits registers with enough loads in flight. */
struct plan { kernel kernel; int layers; };

template <uint32_t T, int MODE> static plan choose_vectors(bool vectors)
{
  constexpr int V = T == QN_F32 ? 4 : 8, L = MODE == QN_RESAMPLE_CUBIC ? 2 : 4;
  if (vectors) return { (kernel)resample_strips_backward<T, MODE, V, 1>, 1 };
  return { (kernel)resample_strips_backward<T, MODE, 1, L>, L };
}
template <uint32_t T> static plan choose(int32_t mode, bool vectors)
{
  if (mode == QN_RESAMPLE_NEAREST) return choose_vectors<T, QN_RESAMPLE_NEAREST>(vectors);
  if (mode == QN_RESAMPLE_LINEAR) return choose_vectors<T, QN_RESAMPLE_LINEAR>(vectors);
  return choose_vectors<T, QN_RESAMPLE_CUBIC>(vectors);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  strips_state st = { {}, NULL, 0, op->arg[0], op->arg[1] };
  gradient &s = st.s;
  int v = 1;
  qn_status status = strips_begin(&s, &v, r, out);
  if (status) return status;
  for (int d = 0; d < 3; d++) {           /* nearest's lists of outputs do not know of places clamped to an edge */
    const ruler &place = s.dim[d];
    if (s.mode == QN_RESAMPLE_NEAREST && place.points &&
        (place.first < 0 || (place.first + (place.points - 1) * place.step) / place.under >= place.places))
      return qn_refuse(out, "nearest places lie inside", "rounding", "another", "%s", "beyond an edge");
  }
  double gathered[3];                     /* of dy in each dim, for one place of dx */
  for (int d = 0; d < 3; d++) {
    const double all = s.dim[d].points;
    gathered[d] = fmin(all, 2 + all / (double)s.out_dim[d] * (s.mode == QN_RESAMPLE_NEAREST ? 1 : 2 * s.mode));
  }
  const double longest = fmax(gathered[0] * gathered[1], gathered[2]);
  if (longest > MOST) return qn_refuse(out, "sums are made in f32", "dy", "at most 16384 lines or columns for one of dx", "%.0f", longest);
  const uint32_t dtype = r->value[st.dx].dtype;
  const plan plan = dtype == QN_F32  ? choose<QN_F32>(s.mode, v > 1)
                  : dtype == QN_BF16 ? choose<QN_BF16>(s.mode, v > 1)
                                     : choose<QN_F16>(s.mode, v > 1);
  st.kernel = plan.kernel;
  const int64_t channels = s.channels / v, layers = qn_ceil_div(s.layers, plan.layers), units = channels * s.out_dim[2] * layers * s.outer;
  /* Bands: as long as they leave enough threads, since the lines of dy at their ends are read twice. */
  const int64_t steps = s.out_dim[1], all = units * s.out_dim[0];
  int64_t bands = qn_min_i64(qn_ceil_div(steps, 4),
                             qn_max_i64(qn_ceil_div(steps, 32), qn_ceil_div((int64_t)r->device->units * (MANY >> s.mode), all)));
  s.band = (int32_t)qn_ceil_div(steps, bands), bands = qn_ceil_div(steps, s.band);
  s.units = (uint32_t)units;
  const int64_t blocks = qn_ceil_div(units, THREADS);
  s.by_channels = cuda_divide_by(channels), s.by_columns = cuda_divide_by(s.out_dim[2]), s.by_layers = cuda_divide_by(layers);
  s.by_blocks = cuda_divide_by(blocks), s.by_bands = cuda_divide_by(bands);
  st.blocks = (uint32_t)(blocks * bands * s.out_dim[0]);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  strips_state st = *(const strips_state *)p->state;
  st.s.in = launch->ptr[st.dy], st.s.out = launch->ptr[st.dx];
  void *arguments[] = { &st.s };
  return cuda_check(cudaLaunchKernel(st.kernel, dim3(st.blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream),
                    "resample_strips");
}

static const qn_engine row[] = {
  { "strips", QN_OP_RESAMPLE_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(resample_strips_backward) = { row, sizeof row / sizeof *row };
