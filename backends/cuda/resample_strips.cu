/* resample_strips.cu -- resampling of f16, bf16 and f32 and its gradient, by threads that walk down the lines of a grid.
 *
 *   y    the sum over the taps around its point of the product of each dim's weight times x; a tap of weight 0 is not read
 *   dx   the sum over the points that have it as a tap of dy times its weight, gathered
 *
 * A thread has a band of lines of its output, V channels of one column (channels last, 16 bytes) or C columns, in L layers, for which
 * geometry and weights are worked out once. It joins what a line of its input gives to its columns once for all the lines above it:
 * forward the last TAPS such lines are held and weighed for each line of y; backward each is added to the TAPS lines of dx under it.
 * Linear in three dims a thread has some lines of its columns, and walks down the planes in the same way. */
#include "engines.h"
#include "resample.cuh"

enum { THREADS = 128 };

struct strips : resampling {
  int32_t  together;                      /* C columns of the output lie as one word of memory */
  int32_t  band;                          /* steps of a thread down the lines, or the depths */
  int64_t  cells[3];                      /* depths, lines, columns in what a thread has of each */
  uint32_t units;
};

/* ---- elements as they came --------------------------------------------------------------------------------------- */

template <uint32_t T> constexpr int size_of = T == QN_F32 ? 4 : 2;

template <uint32_t T, int V> struct raw {      /* V elements: 16 bytes, or one */
  uint32_t word[V == 1 ? 1 : 4];

  __device__ __forceinline__ void load(bool there, const char *p)
  {
    if constexpr (V == 1) {
      word[0] = 0;
      if (there) word[0] = T == QN_F32 ? __ldg((const uint32_t *)p) : __ldg((const uint16_t *)p);
    } else {
      uint4 q = {};
      if (there) q = __ldg((const uint4 *)p);
      word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
    }
  }
  __device__ __forceinline__ float get(int i) const
  {
    if constexpr (T == QN_F32) return __uint_as_float(word[i]);
    else if constexpr (T == QN_BF16) return __uint_as_float(i & 1 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
    else return f16_to_float((uint16_t)(i & 1 ? word[i / 2] >> 16 : word[i / 2]));
  }
};

/* N elements to where a word of them lies: 16 or 8 bytes, or one. */
template <uint32_t T, int N> __device__ __forceinline__ void put(const float *v, char *p)
{
  if constexpr (N == 1) {
    if constexpr (T == QN_F32) *(float *)p = v[0];
    else *(uint16_t *)p = T == QN_BF16 ? float_to_bf16(v[0]) : float_to_f16(v[0]);
  } else if constexpr (T == QN_F32) {
    *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    uint32_t word[4];
#pragma unroll
    for (int i = 0; i < N / 2; i++) word[i] = T == QN_BF16 ? pack_bf16(v[2 * i], v[2 * i + 1]) : pack_f16(v[2 * i], v[2 * i + 1]);
    if constexpr (N == 8) *(uint4 *)p = make_uint4(word[0], word[1], word[2], word[3]);
    else *(uint2 *)p = make_uint2(word[0], word[1]);
  }
}

/* A thread's share of a line: C V elements of each of L layers. */
template <uint32_t T, int V, int C, int L> __device__ __forceinline__ void put_line(const strips &s, const float (&v)[L][C * V], int layers, char *to, int column)
{
#pragma unroll
  for (int l = 0; l < L; l++, to += s.out_layer * size_of<T>) {
    if (l >= layers) break;
    if (C == 1 || s.together) put<T, C * V>(v[l], to);
    else
#pragma unroll
      for (int c = 0; c < C; c++)
        if (column + c < s.out_dim[2]) put<T, V>(v[l] + c * V, to + c * s.out_stride[4] * size_of<T>);
  }
}

/* Where the input's layers begin, `more` elements on; where there are fewer than L, the first instead. */
template <int L> __device__ __forceinline__ void first_of(const char *(&from)[L], const strips &s, const cell<int32_t> &at, int64_t more, int size)
{
#pragma unroll
  for (int l = 0; l < L; l++) {
    from[l] = (const char *)s.in + (image_of(at, s.in_stride, s.in_layer) + (at.layer + l < s.layers ? l * s.in_layer : 0) + more) * size;
    asm volatile("" : "+l"(from[l]));     /* a register, not worked out anew for each load */
  }
}

/* ---- forward ------------------------------------------------------------------------------------------------------- */

/* The columns of a thread: for each the weights of its taps, and how many bytes from a line's first they lie. Where a point is at a place
 * the other taps weigh nothing and do not count: that place is read instead. */
template <uint32_t T, int MODE, int C> struct columns {
  static constexpr int TAPS = point<float, int32_t, MODE>::TAPS, SELF = MODE == QN_RESAMPLE_CUBIC;
  float   weight[C][TAPS];
  uint32_t place[C][TAPS];
  bool    exact[C];

  __device__ __forceinline__ columns(const strips &s, int first)
  {
#pragma unroll
    for (int c = 0; c < C; c++) {
      point<float, int32_t, MODE> p(s.dim[2], min(first + c, (int)s.out_dim[2] - 1));
      p.weights(s.dim[2], weight[c]);
      exact[c] = MODE != QN_RESAMPLE_NEAREST && p.rest == 0;
#pragma unroll
      for (int k = 0; k < TAPS; k++) place[c][k] = (uint32_t)p.place(s.dim[2], exact[c] ? SELF : k) * (uint32_t)s.in_stride[4] * size_of<T>;
    }
  }
  /* What line `row` of each layer gives to them. */
  template <int V, int L> __device__ __forceinline__ void join(float (&f)[L][C * V], const char *const (&from)[L], int row, int32_t stride) const
  {
    raw<T, V> q[L][C][TAPS];
#pragma unroll
    for (int l = 0; l < L; l++) {
      const char *line = from[l] + (int64_t)row * stride;
      asm volatile("" : "+l"(line));      /* one sum, not one of three terms for each load */
#pragma unroll
      for (int c = 0; c < C; c++)
#pragma unroll
        for (int k = 0; k < TAPS; k++) q[l][c][k].load(true, line + place[c][k]);
    }
#pragma unroll
    for (int i = 0; i < TAPS; i++)
#pragma unroll
      for (int l = 0; l < L; l++)
#pragma unroll
        for (int c = 0; c < C; c++)
#pragma unroll
          for (int v = 0; v < V; v++) {
            const int k = (SELF + i) % TAPS;
            float &sum = f[l][c * V + v], x = q[l][c][k].get(v);
            if (i == 0) sum = MODE == QN_RESAMPLE_NEAREST ? x : weight[c][k] * x;
            else if (!exact[c]) sum = fmaf(weight[c][k], x, sum);
          }
  }
};

template <uint32_t T, int MODE, int V, int C, int L>
__global__ static void __launch_bounds__(THREADS) resample_strips(const __grid_constant__ strips s)
{
  typedef point<float, int32_t, MODE> spot;
  constexpr int TAPS = spot::TAPS, W = C * V, E = size_of<T>;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  const cell<int32_t> at = cell_of<int32_t, V, L>(s, (int32_t)unit, s.cells);
  const int layers = (int)s.layers - at.layer, column = at.o[2] * C;
  const char *from[L];
  first_of<L>(from, s, at, spot(s.dim[0], at.o[0]).place(s.dim[0], 0) * s.in_stride[2], E);
  const columns<T, MODE, C> across(s, column);
  const int32_t line_bytes = (int32_t)s.in_stride[3] * E;
  float line[TAPS][L][W];
  int o = at.o[1] * s.band, end = min(o + s.band, (int)s.out_dim[1]);
  spot p(s.dim[1], o);
  char *to = (char *)s.out + (image_of(at, s.out_stride, s.out_layer) + at.o[0] * s.out_stride[2] + o * s.out_stride[3] + column * s.out_stride[4]) * E;
  const int64_t down_line = s.out_stride[3] * E;
  int next = p.below + spot::FIRST;       /* the line to be joined next, in a count that knows no edges */
#pragma unroll 1
  for (; o < end; o++, p.next(s.dim[1]), to += down_line) {
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
      across.template join<V, L>(line[TAPS - 1], from, clamp(next, (int)s.in_dim[1] - 1), line_bytes);
    }
    if (MODE == QN_RESAMPLE_NEAREST) {
      put_line<T, V, C, L>(s, line[0], layers, to, column);
      continue;
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
    put_line<T, V, C, L>(s, v, layers, to, column);
  }
}

/* Linear in three dims: a thread has R lines as well and walks down their depths. It holds what the last two planes of x give to its points. */
template <uint32_t T, int V, int C, int R>
__global__ static void __launch_bounds__(THREADS) resample_volumes(const __grid_constant__ strips s)
{
  typedef point<float, int32_t, QN_RESAMPLE_LINEAR> spot;
  constexpr int W = C * V, E = size_of<T>;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  const cell<int32_t> at = cell_of<int32_t, V, 1>(s, (int32_t)unit, s.cells);
  const int column = at.o[2] * C, row = at.o[1] * R, rows = (int)s.out_dim[1] - row;
  const char *from[1];
  first_of<1>(from, s, at, 0, E);
  const columns<T, QN_RESAMPLE_LINEAR, C> across(s, column);
  const int32_t line_bytes = (int32_t)s.in_stride[3] * E;
  int below[R];
  float down[R], plane[2][R][1][W];
#pragma unroll
  for (int r = 0; r < R; r++) {
    spot p(s.dim[1], min(row + r, (int)s.out_dim[1] - 1));
    float w[2];
    p.weights(s.dim[1], w);
    below[r] = p.below, down[r] = w[1];
  }
  auto join = [&](float (&f)[R][1][W], int z) {
    const char *const layer[1] = { from[0] + z * s.in_stride[2] * E };
    float line[2][1][W];
    int next = below[0];
#pragma unroll
    for (int r = 0; r < R; r++) {
      next = max(next, below[r]);
#pragma unroll 1
      for (; next <= below[r] + 1; next++) {
#pragma unroll
        for (int i = 0; i < W; i++) line[0][0][i] = line[1][0][i];
        across.template join<V, 1>(line[1], layer, clamp(next, (int)s.in_dim[1] - 1), line_bytes);
      }
#pragma unroll
      for (int i = 0; i < W; i++) {
        f[r][0][i] = (1 - down[r]) * line[0][0][i];
        if (down[r] != 0) f[r][0][i] = fmaf(down[r], line[1][0][i], f[r][0][i]);
      }
    }
  };
  int o = at.o[0] * s.band, end = min(o + s.band, (int)s.out_dim[0]);
  spot p(s.dim[0], o);
  char *to = (char *)s.out + (image_of(at, s.out_stride, s.out_layer) + o * s.out_stride[2] + row * s.out_stride[3] + column * s.out_stride[4]) * E;
  int next = p.below;
#pragma unroll 1
  for (; o < end; o++, p.next(s.dim[0]), to += s.out_stride[2] * E) {
    next = max(next, p.below);
#pragma unroll 1
    for (; next <= p.below + 1; next++) {
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int i = 0; i < W; i++) plane[0][r][0][i] = plane[1][r][0][i];
      join(plane[1], clamp(next, (int)s.in_dim[0] - 1));
    }
    float deep[2];
    p.weights(s.dim[0], deep);
    char *there = to;
#pragma unroll
    for (int r = 0; r < R; r++, there += s.out_stride[3] * E) {
      if (r >= rows) break;
      float v[1][W];
#pragma unroll
      for (int i = 0; i < W; i++) {
        v[0][i] = deep[0] * plane[0][r][0][i];
        if (deep[1] != 0) v[0][i] = fmaf(deep[1], plane[1][r][0][i], v[0][i]);
      }
      put_line<T, V, C, 1>(s, v, 1, there, column);
    }
  }
}

/* ---- backward ------------------------------------------------------------------------------------------------------ */

/* Points that have place j as a tap of some weight: those less than MODE places from it; nearest's from j to before j + 1. */
template <int MODE> __device__ __forceinline__ void points_of(const ruler &r, int32_t j, int32_t *begin, int32_t *end)
{
  constexpr int before = MODE, after = MODE == QN_RESAMPLE_NEAREST ? 1 : MODE;
  *begin = 0, *end = (int32_t)r.points;
  if (r.step == 0) return;
  auto first_beyond = [&](int32_t over) {                   /* the first point that lies further than over / under */
    over -= (int32_t)r.first;
    return over < 0 ? 0 : min((int32_t)cuda_quotient((uint32_t)over, r.by_step) + 1, (int32_t)r.points);
  };
  *begin = first_beyond((j - before) * (int32_t)r.under - (MODE == QN_RESAMPLE_NEAREST));
  *end = first_beyond((j + after) * (int32_t)r.under - 1);
}

/* A thread has one column; the weights of its first KEPT points, as many as there are where y has twice x's places, stay in registers. */
template <uint32_t T, int MODE, int V, int L>
__global__ static void __launch_bounds__(THREADS) resample_strips_backward(const __grid_constant__ strips s)
{
  typedef point<float, int32_t, MODE> spot;
  constexpr int TAPS = spot::TAPS, KEPT = MODE == QN_RESAMPLE_NEAREST ? 2 : 2 * TAPS, E = size_of<T>;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  const cell<int32_t> at = cell_of<int32_t, V, L>(s, (int32_t)unit, s.cells);
  const int layers = (int)s.layers - at.layer, column = at.o[2];
  int depth[2], points[2], lines[2], unused;                /* from, to */
  points_of<MODE>(s.dim[0], at.o[0], &depth[0], &depth[1]);
  points_of<MODE>(s.dim[2], column, &points[0], &points[1]);
  const char *from[L];
  first_of<L>(from, s, at, points[0] * s.in_stride[4], E);
  const int64_t beside = s.in_stride[4] * E;
  const bool near = V > 1 || beside == E; /* at offsets that instructions hold */
  auto across = [&](int i) { return weight_in<float, int32_t, MODE>(s.dim[2], i, column); };
  float kept[KEPT];
#pragma unroll
  for (int i = 0; i < KEPT; i++) kept[i] = points[0] + i < points[1] ? across(points[0] + i) : 0;

  int row = at.o[1] * s.band, begin = row, end = min(row + s.band, (int)s.out_dim[1]);
  points_of<MODE>(s.dim[1], begin, &lines[0], &unused);
  points_of<MODE>(s.dim[1], end - 1, &unused, &lines[1]);
  spot p(s.dim[1], lines[0]);
  row = min(row, p.place(s.dim[1], 0));
  float sum[TAPS][L][V] = {};             /* of lines row, row + 1, ... */
  char *to = (char *)s.out + (image_of(at, s.out_stride, s.out_layer) + at.o[0] * s.out_stride[2] + row * s.out_stride[3] + column * s.out_stride[4]) * E;
  auto advance = [&] {
    if (row >= begin) put_line<T, V, 1, L>(s, sum[0], layers, to, column);
#pragma unroll
    for (int k = 0; k < TAPS; k++)
#pragma unroll
      for (int l = 0; l < L; l++)
#pragma unroll
        for (int i = 0; i < V; i++) sum[k][l][i] = k + 1 < TAPS ? sum[(k + 1) % TAPS][l][i] : 0;
    row++, to += s.out_stride[3] * E;
  };
#pragma unroll 1
  for (int y = lines[0]; y < lines[1]; y++, p.next(s.dim[1])) {
    int first = p.place(s.dim[1], 0);
    if (first >= end) break;
#pragma unroll 1
    while (row < first) advance();
    float f[L][V] = {};
#pragma unroll 1
    for (int z = depth[0]; z < depth[1]; z++) {
      float deep = s.dim[0].points == 1 ? 1.f : weight_in<float, int32_t, MODE>(s.dim[0], z, at.o[0]);
      if (deep == 0) continue;
      const int64_t line = (z * s.in_stride[2] + y * s.in_stride[3]) * E;
      if (near) {
        raw<T, V> q[KEPT][L];
#pragma unroll
        for (int l = 0; l < L; l++)
#pragma unroll
          for (int i = 0; i < KEPT; i++) q[i][l].load(kept[i] != 0, from[l] + line + i * (V == 1 ? E : beside));
#pragma unroll
        for (int i = 0; i < KEPT; i++)
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int v = 0; v < V; v++) f[l][v] = fmaf(deep * kept[i], q[i][l].get(v), f[l][v]);
      }
#pragma unroll 1
      for (int i = near ? KEPT : 0; i < points[1] - points[0]; i++) {
        float w = across(points[0] + i);
        raw<T, V> more[L];
#pragma unroll
        for (int l = 0; l < L; l++) more[l].load(w != 0, from[l] + line + i * beside);
#pragma unroll
        for (int l = 0; l < L; l++)
#pragma unroll
          for (int v = 0; v < V; v++) f[l][v] = fmaf(deep * w, more[l].get(v), f[l][v]);
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
        for (int i = 0; i < V; i++) sum[k][l][i] = fmaf(w, f[l][i], sum[k][l][i]);
    }
  }
#pragma unroll 1
  while (row < end) advance();
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct strips_state { strips s; int32_t in, out; kernel kernel; };

/* What a thread has: what fits its registers and keeps enough loads in flight; the dim that it walks down. */
struct plan { kernel kernel; int columns, lines, layers, walk; };

template <uint32_t T, int MODE, int V> static plan plan_of(const strips &s, bool forward)
{
  constexpr bool CUBIC = MODE == QN_RESAMPLE_CUBIC, NEAREST = MODE == QN_RESAMPLE_NEAREST;
  constexpr int C = V > 1 ? 1 : 4, R = V > 1 ? 2 : 4, FLAT = CUBIC ? 1 : V == 1 && NEAREST ? 4 : 2, BACK = V > 1 ? 1 : CUBIC ? 2 : 4;
  if (!forward) return { (kernel)resample_strips_backward<T, MODE, V, BACK>, 1, 1, BACK, 1 };
  if constexpr (MODE == QN_RESAMPLE_LINEAR)
    if (s.in_dim[0] > 1) return { (kernel)resample_volumes<T, V, C, R>, C, R, 1, 0 };
  return { (kernel)resample_strips<T, MODE, V, C, FLAT>, C, 1, FLAT, 1 };
}
template <uint32_t T, int V> static plan choose_mode(const strips &s, bool forward)
{
  if (s.mode == QN_RESAMPLE_NEAREST) return plan_of<T, QN_RESAMPLE_NEAREST, V>(s, forward);
  if (s.mode == QN_RESAMPLE_LINEAR) return plan_of<T, QN_RESAMPLE_LINEAR, V>(s, forward);
  return plan_of<T, QN_RESAMPLE_CUBIC, V>(s, forward);
}
template <uint32_t T> static plan choose(const strips &s, bool forward, bool vectors)
{
  return vectors ? choose_mode<T, T == QN_F32 ? 4 : 8>(s, forward) : choose_mode<T, 1>(s, forward);
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
  if (forward && s.mode == QN_RESAMPLE_CUBIC && s.out_dim[0] * s.in_dim[0] > 1) return qn_refuse(out, "cubic in two dims at most", "x", "rank 3 or 4", "rank %d", in->rank);
  int v = in->dtype == QN_F32 ? 4 : 8;
  bool vectors = has_vectors(&s, v, in, to);
  if (!vectors) v = 1;
  const plan plan = in->dtype == QN_F32 ? choose<QN_F32>(s, forward, vectors) : in->dtype == QN_BF16 ? choose<QN_BF16>(s, forward, vectors) : choose<QN_F16>(s, forward, vectors);
  if (s.in_dim[2] * s.in_stride[4] > 1 << 28 || s.in_stride[3] > 1 << 28) return qn_refuse(out, "places of a line are counted in 31 bits", "x", "fewer", "%lld", (long long)(s.in_dim[2] * s.in_stride[4]));
  s.together = s.out_dim[2] % plan.columns == 0 && s.out_stride[4] == 1 && to->align >= (uint32_t)(plan.columns * (in->dtype == QN_F32 ? 4 : 2));
  for (int d = 0; d < 4; d++) s.together &= s.out_stride[d] % plan.columns == 0;
  s.cells[0] = s.out_dim[0], s.cells[1] = qn_ceil_div(s.out_dim[1], plan.lines), s.cells[2] = qn_ceil_div(s.out_dim[2], plan.columns);
  /* Bands: as long as they leave the device threads enough, for the lines (planes) at their ends are joined twice. */
  int64_t steps = s.out_dim[plan.walk], across = s.channels / v * s.cells[!plan.walk] * s.cells[2] * qn_ceil_div(s.layers, plan.layers) * s.outer;
  int64_t bands = qn_min_i64(qn_ceil_div(steps, 4), qn_max_i64(qn_ceil_div(steps, 32), qn_ceil_div((int64_t)r->device->units * (forward && v == 1 && plan.walk ? 8192 : 4096), across)));
  s.band = (int32_t)qn_ceil_div(steps, bands);
  s.cells[plan.walk] = qn_ceil_div(steps, s.band);
  s.units = (uint32_t)(across * s.cells[plan.walk]);

  strips_state st = {};
  st.s = s;
  st.in = op->arg[0], st.out = op->arg[1];
  st.kernel = plan.kernel;
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
