/* resample_strips.cu -- resampling of f16, bf16 and f32 and its gradient, by threads that walk down the lines of a grid.
 *
 *   y    the sum over the taps around its point of the product of each dim's weight times x; a tap of weight 0 is not read
 *   dx   the sum over the points that have it as a tap of dy times its weight, gathered
 *
 * A thread has a band of lines of its output, V channels of one column (channels last, 16 bytes) or C columns, in L layers, for which
 * geometry and weights are worked out once. It joins what a line of its input gives to its columns once for all the lines above it:
 * forward the last TAPS such lines are held and weighed for each line of y; backward each is added to the TAPS lines of dx under it. */
#include "engines.h"
#include "resample.cuh"

enum { THREADS = 128, KEPT = 8 };         /* weights of a column's points that a thread keeps */

struct strips : resampling {
  int32_t  bf16, paired;                  /* paired: two columns of the output lie as one word */
  int32_t  band;                          /* lines of a thread */
  int64_t  cells[3];                      /* depth, bands, C columns each */
  uint32_t units;
};

/* ---- elements as they came --------------------------------------------------------------------------------------- */

template <int E, int V> struct raw {      /* V of E bytes, 16 bytes or one element */
  static constexpr int words = V == 1 ? 1 : 4;
  uint32_t word[words];

  __device__ __forceinline__ void load(bool there, const char *p)
  {
    uint4 q = {};
    if (there) {
      if (words == 4) q = *(const uint4 *)p;
      else q.x = E == 4 ? *(const uint32_t *)p : *(const uint16_t *)p;
    }
    word[0] = q.x, word[1 % words] = words > 1 ? q.y : q.x, word[2 % words] = words > 1 ? q.z : q.x, word[3 % words] = words > 1 ? q.w : q.x;
  }
  __device__ __forceinline__ float get(int i, bool bf16) const
  {
    if (E == 4) return __uint_as_float(word[i % words]);
    uint32_t h = word[i / 2 % words];
    return float_of(i & 1 ? h >> 16 : h & 0xffff, bf16);
  }
};

template <int E, int N> __device__ __forceinline__ void put(const float *v, void *base, int64_t at, bool bf16)
{
  char *p = (char *)base + at * E;
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < (N * E + 3) / 4; i++)
    word[i] = E == 4 ? __float_as_uint(v[i]) : bf16 ? pack_bf16(v[2 * i], v[N > 1 ? 2 * i + 1 : 2 * i]) : pack_f16(v[2 * i], v[N > 1 ? 2 * i + 1 : 2 * i]);
  if (N * E == 16) *(uint4 *)p = make_uint4(word[0], word[1], word[2], word[3]);
  else if (N * E == 4) *(uint32_t *)p = word[0];
  else *(uint16_t *)p = (uint16_t)word[0];
}

/* A thread's share of a line: W = C V elements of each of L layers. */
template <int E, int V, int C, int L> __device__ __forceinline__ void put_line(const strips &s, const float (&v)[L][C * V], int layers, int64_t at, int column)
{
#pragma unroll
  for (int l = 0; l < L; l++) {
    if (l >= layers) break;
    int64_t to = at + l * s.out_layer;
    if (C == 1) put<E, V>(v[l], s.out, to, s.bf16);
    else if (s.paired) put<E, C * V>(v[l], s.out, to, s.bf16);
    else
#pragma unroll
      for (int c = 0; c < C; c++)
        if (column + c < s.out_dim[2]) put<E, V>(v[l] + c * V, s.out, to + c * s.out_stride[4], s.bf16);
  }
}

/* ---- forward ------------------------------------------------------------------------------------------------------- */

template <int E, int MODE, int V, int C, int L>
__global__ static void __launch_bounds__(THREADS) resample_strips(const __grid_constant__ strips s)
{
  typedef point<float, int32_t, MODE> spot;
  constexpr int TAPS = spot::TAPS, W = C * V;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  const cell<int32_t> at = cell_of<int32_t, V, L>(s, (int32_t)unit, s.cells);
  const int layers = (int)s.layers - at.layer, column = at.o[2] * C;
  const int64_t from = image_of(at, s.in_stride, s.in_layer);
  const spot depth(s.dim[0], at.o[0]);
  float deep[TAPS], across[C][TAPS], line[TAPS][L][W];
  int64_t place[C][TAPS];
  depth.weights(s.dim[0], deep);
#pragma unroll
  for (int c = 0; c < C; c++) {
    spot p(s.dim[2], min(column + c, (int)s.out_dim[2] - 1));
    p.weights(s.dim[2], across[c]);
#pragma unroll
    for (int k = 0; k < TAPS; k++) place[c][k] = from + p.place(s.dim[2], k) * s.in_stride[4];
  }
  auto join = [&](float (&f)[L][W], int y) {
#pragma unroll
    for (int a = 0; a < TAPS; a++) {
      if (a && deep[a] == 0) continue;
      int64_t row = depth.place(s.dim[0], a) * s.in_stride[2] + y * s.in_stride[3];
      raw<E, V> q[L][C][TAPS];
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
          const char *tap = (const char *)s.in + (row + place[c][k]) * E;
          bool read = MODE != QN_RESAMPLE_CUBIC ? k == 0 || across[c][k] != 0 : across[c][k] != 0 && deep[a] != 0;     /* a first weight of 0 is cubic's */
#pragma unroll
          for (int l = 0; l < L; l++, tap += s.in_layer * E) q[l][c][k].load(read && l < layers, tap);
        }
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
          float w = deep[a] * across[c][k];
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int v = 0; v < V; v++) {
              float &sum = f[l][c * V + v], x = q[l][c][k].get(v, s.bf16);
              sum = MODE == QN_RESAMPLE_NEAREST ? x : a || k ? fmaf(w, x, sum) : w * x;
            }
        }
    }
  };
  int o = at.o[1] * s.band, end = min(o + s.band, (int)s.out_dim[1]);
  spot p(s.dim[1], o);
  int64_t to = image_of(at, s.out_stride, s.out_layer) + at.o[0] * s.out_stride[2] + o * s.out_stride[3] + column * s.out_stride[4];
  int next = p.below + spot::FIRST;       /* the line to be joined next, in a count that knows no edges */
#pragma unroll 1
  for (; o < end; o++, p.next(s.dim[1]), to += s.out_stride[3]) {
    int last = p.below + spot::FIRST + TAPS - 1;
    next = max(next, last - TAPS + 1);
#pragma unroll 1
    for (; next <= last; next++) {
#pragma unroll
      for (int k = 0; k + 1 < TAPS; k++)
#pragma unroll
        for (int l = 0; l < L; l++)
#pragma unroll
          for (int i = 0; i < W; i++) line[k][l][i] = line[k + 1][l][i];
      join(line[TAPS - 1], clamp(next, (int)s.in_dim[1] - 1));
    }
    float down[TAPS], v[L][W];
    p.weights(s.dim[1], down);
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
      if (k && down[k] == 0) continue;
#pragma unroll
      for (int l = 0; l < L; l++)
#pragma unroll
        for (int i = 0; i < W; i++) v[l][i] = k ? fmaf(down[k], line[k][l][i], v[l][i]) : MODE != QN_RESAMPLE_CUBIC || down[0] != 0 ? down[0] * line[0][l][i] : 0;
    }
    put_line<E, V, C, L>(s, v, layers, to, column);
  }
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

template <int E, int MODE, int V, int C, int L>
__global__ static void __launch_bounds__(THREADS) resample_strips_backward(const __grid_constant__ strips s)
{
  typedef point<float, int32_t, MODE> spot;
  constexpr int TAPS = spot::TAPS, W = C * V;
  __shared__ float kept[KEPT][C][THREADS];
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  const cell<int32_t> at = cell_of<int32_t, V, L>(s, (int32_t)unit, s.cells);
  const int layers = (int)s.layers - at.layer, column = at.o[2] * C;
  const int64_t from = image_of(at, s.in_stride, s.in_layer);
  auto across = [&](int i, int c) { return weight_in<float, int32_t, MODE>(s.dim[2], i, column + c); };
  auto none = [&](int i) {
    bool all = true;
#pragma unroll
    for (int c = 0; c < C; c++) all &= across(i, c) == 0;
    return all;
  };
  int depth[2], points[2], lines[2], unused;                /* from, to */
  points_near<int32_t>(s.dim[0], at.o[0], &depth[0], &depth[1]);
  points_near<int32_t>(s.dim[2], column, &points[0], &unused);
  points_near<int32_t>(s.dim[2], min(column + C, (int)s.out_dim[2]) - 1, &unused, &points[1]);
  while (points[0] < points[1] && none(points[0])) points[0]++;
  while (points[0] < points[1] && none(points[1] - 1)) points[1]--;
  const int few = min(points[1], points[0] + KEPT);
  for (int i = points[0]; i < few; i++)
#pragma unroll
    for (int c = 0; c < C; c++) kept[i - points[0]][c][threadIdx.x] = across(i, c);

  int row = at.o[1] * s.band, begin = row, end = min(row + s.band, (int)s.out_dim[1]);
  points_near<int32_t>(s.dim[1], begin, &lines[0], &unused);
  points_near<int32_t>(s.dim[1], end - 1, &unused, &lines[1]);
  spot p(s.dim[1], lines[0]);
  row = min(row, p.place(s.dim[1], 0));
  float sum[TAPS][L][W] = {};             /* of lines row, row + 1, ... */
  int64_t to = image_of(at, s.out_stride, s.out_layer) + at.o[0] * s.out_stride[2] + column * s.out_stride[4];
  auto advance = [&] {
    if (row >= begin) put_line<E, V, C, L>(s, sum[0], layers, to + row * s.out_stride[3], column);
#pragma unroll
    for (int k = 0; k < TAPS; k++)
#pragma unroll
      for (int l = 0; l < L; l++)
#pragma unroll
        for (int i = 0; i < W; i++) sum[k][l][i] = k + 1 < TAPS ? sum[(k + 1) % TAPS][l][i] : 0;
    row++;
  };
#pragma unroll 1
  for (int y = lines[0]; y < lines[1]; y++, p.next(s.dim[1])) {
    int first = p.place(s.dim[1], 0);
    if (first >= end) break;
#pragma unroll 1
    while (row < first) advance();
    float f[L][W] = {};
#pragma unroll 1
    for (int z = depth[0]; z < depth[1]; z++) {
      float deep = s.dim[0].points == 1 ? 1.f : weight_in<float, int32_t, MODE>(s.dim[0], z, at.o[0]);
      if (deep == 0) continue;
      int64_t line = from + z * s.in_stride[2] + y * s.in_stride[3];
      auto take = [&](int i, const float (&w)[C]) {
        bool any = false;
        raw<E, V> q[L];
        const char *point = (const char *)s.in + (line + i * s.in_stride[4]) * E;
#pragma unroll
        for (int c = 0; c < C; c++) any |= w[c] != 0;
#pragma unroll
        for (int l = 0; l < L; l++, point += s.in_layer * E) q[l].load(any && l < layers, point);
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int v = 0; v < V; v++) {
              float &sum = f[l][c * V + v], x = q[l].get(v, s.bf16);
              if (C == 1) sum = fmaf(deep * w[c], x, sum);
              else if (w[c] != 0) sum = fmaf(deep * w[c], x, sum);
            }
      };
#pragma unroll 4
      for (int i = points[0]; i < few; i++) {
        float w[C];
#pragma unroll
        for (int c = 0; c < C; c++) w[c] = kept[i - points[0]][c][threadIdx.x];
        take(i, w);
      }
#pragma unroll 1
      for (int i = few; i < points[1]; i++) {
        float w[C];
#pragma unroll
        for (int c = 0; c < C; c++) w[c] = across(i, c);
        take(i, w);
      }
    }
    float weight[TAPS];
    p.weights(s.dim[1], weight);
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
      float w = MODE == QN_RESAMPLE_NEAREST ? 1 : 0;        /* of all taps that are at this line: at an edge several */
      if (MODE != QN_RESAMPLE_NEAREST)
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) w += p.place(s.dim[1], tap) == row + k ? weight[tap] : 0;
      if (w == 0) continue;
#pragma unroll
      for (int l = 0; l < L; l++)
#pragma unroll
        for (int i = 0; i < W; i++) sum[k][l][i] = fmaf(w, f[l][i], sum[k][l][i]);
    }
  }
#pragma unroll 1
  while (row < end) advance();
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct strips_state { strips s; int32_t in, out; kernel kernel; };

/* Layers of a thread: what fits its registers and keeps enough loads in flight. */
template <int E, int MODE, int V, bool forward> static kernel kernel_of(strips *s, int *layers)
{
  constexpr int C = V == 1 && E == 2 ? 2 : 1, L = MODE == QN_RESAMPLE_CUBIC ? (V == 1 && C == 1 ? 2 : 1) : V > 1 ? 2 : 4 / C;
  s->cells[0] = s->out_dim[0], s->cells[2] = qn_ceil_div(s->out_dim[2], C);
  s->paired = C == 2 && s->out_dim[2] % 2 == 0 && s->out_stride[4] == 1;
  for (int d = 0; d < 4; d++) s->paired &= s->out_stride[d] % 2 == 0;
  *layers = L;
  if constexpr (forward) return (kernel)resample_strips<E, MODE, V, C, L>;
  else return (kernel)resample_strips_backward<E, MODE, V, C, L>;
}
template <int E, int V, bool forward> static kernel choose_mode(strips *s, int *layers)
{
  if (s->mode == QN_RESAMPLE_NEAREST) return kernel_of<E, QN_RESAMPLE_NEAREST, V, forward>(s, layers);
  if (s->mode == QN_RESAMPLE_LINEAR) return kernel_of<E, QN_RESAMPLE_LINEAR, V, forward>(s, layers);
  return kernel_of<E, QN_RESAMPLE_CUBIC, V, forward>(s, layers);
}
template <bool forward> static kernel choose(strips *s, bool vectors, bool wide, int *layers)
{
  if (wide) return vectors ? choose_mode<4, 4, forward>(s, layers) : choose_mode<4, 1, forward>(s, layers);
  return vectors ? choose_mode<2, 8, forward>(s, layers) : choose_mode<2, 1, forward>(s, layers);
}

/* Do vectors of v channels lie at multiples of their size? */
static bool has_vectors(const spatial *s, int v, const qn_value *in, const qn_value *out)
{
  bool whole = s->channels_last && s->channels % v == 0 && s->in_stride[1] == 1 && in->align >= 16 && out->align >= 16;
  for (int d = 0; d < 5; d++)
    if (d != 1) whole = whole && s->in_stride[d] % v == 0 && s->out_stride[d] % v == 0;
  return whole;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *in = &r->value[op->arg[0]], *to = &r->value[op->arg[1]];
  bool forward = op->op == QN_OP_RESAMPLE;
  if (in->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  if (in->dtype != to->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(in->dtype), "%s", qn_kit_name(to->dtype));
  strips s = {};
  (resampling &)s = resampling_of((const qn_resampling *)op->attr, forward, in, to);
  if (!spatial_small(&s)) return qn_refuse(out, "places are counted in 31 bits", "x", "fewer", "%lld", (long long)spatial_units(&s, 1, 1));
  s.bf16 = in->dtype == QN_BF16;
  bool wide = in->dtype == QN_F32, vectors = has_vectors(&s, wide ? 4 : 8, in, to);
  int layers, v = vectors ? (wide ? 4 : 8) : 1;
  kernel kernel = forward ? choose<true>(&s, vectors, wide, &layers) : choose<false>(&s, vectors, wide, &layers);
  s.paired &= to->align >= 4;
  /* Bands: as long as they leave the device threads enough, for the lines at their ends are joined twice. */
  int64_t rows = s.out_dim[1], across = s.channels / v * s.cells[0] * s.cells[2] * qn_ceil_div(s.layers, layers) * s.outer;
  int64_t bands = qn_min_i64(qn_ceil_div(rows, 4), qn_max_i64(qn_ceil_div(rows, 32), qn_ceil_div((int64_t)r->device->units * 4096, across)));
  s.band = (int32_t)qn_ceil_div(rows, bands);
  s.cells[1] = qn_ceil_div(rows, s.band);
  s.units = (uint32_t)(across * s.cells[1]);

  strips_state st = {};
  st.s = s;
  st.in = op->arg[0], st.out = op->arg[1];
  st.kernel = kernel;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const strips_state *st = (const strips_state *)p->state;
  strips s = st->s;
  s.in = launch->ptr[st->in];
  s.out = launch->ptr[st->out];
  void *arguments[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3((s.units + THREADS - 1) / THREADS), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream), "resample_strips");
}

#define ROW(op) { "strips", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_RESAMPLE), ROW(QN_OP_RESAMPLE_BACKWARD) };
const qn_engine_list cuda_resample_strips_list = { row, sizeof row / sizeof *row };
