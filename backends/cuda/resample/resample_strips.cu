/* resample_strips.cu -- resampling (nearest, linear, cubic) of f16, bf16 and f32: threads walk down the lines of y.
 *
 *   y = the sum over its taps of the product of each dim's weight times x; taps of weight 0 are not read
 *
 * A thread has a band of lines, V channels of one column (channels contiguous, 16 bytes) or C columns, in L layers that share
 * index arithmetic and weights. It reduces a line of x across once for all lines of y: the last TAPS reduced lines are kept in
 * registers and weighted for each. Linear in three dims, a thread (resample_volumes) or a warp (resample_warps) has some lines of
 * its columns and walks down the planes in the same way. Refused: f64, mixed dtypes, cubic in three dims. */
#include "engines.h"
#include "resample_elements.cuh"

enum { THREADS = 128 };

struct strips : resampling {
  int32_t  together;                      /* C columns of y form an aligned vector */
  int32_t  band;                          /* lines, or planes, of a thread's walk */
  int64_t  cells[3];                      /* extents of the grid of units: depth, lines, columns */
  uint32_t units;
};

/* A thread's columns: weights of the taps and their byte offsets in a line. A sample exactly on a pixel (`exact`) has one tap
 * that counts; the offsets of the others point there too. */
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
  /* Reduces line `row` of each layer to the columns. */
  template <int V, int L>
  __device__ __forceinline__ void join(float (&f)[L][C * V], const char *const (&from)[L], int row, int32_t stride) const
  {
    raw<T, V> q[L][C][TAPS];
#pragma unroll
    for (int l = 0; l < L; l++) {
      const char *line = from[l] + (int64_t)row * stride;
      asm volatile("" : "+l"(line));      /* keeps one base register instead of a sum of three terms for each load */
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
  char *to = (char *)s.out +
             (image_of(at, s.out_stride, s.out_layer) + at.o[0] * s.out_stride[2] + o * s.out_stride[3] + column * s.out_stride[4]) * E;
  const int64_t down_line = s.out_stride[3] * E;
  int next = p.below + spot::FIRST;       /* the line to be reduced next, not clamped */
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
      put_line<T, V, C, L>(s, line[0], layers, to, column, s.together);
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
        for (int i = 0; i < W; i++)
          v[l][i] = k ? fmaf(down[k], line[k][l][i], v[l][i]) : MODE != QN_RESAMPLE_CUBIC || down[0] != 0 ? down[0] * line[0][l][i] : 0;
    }
    put_line<T, V, C, L>(s, v, layers, to, column, s.together);
  }
}

/* Linear in three dims: a thread has R lines as well and walks down the planes, keeping the last two, reduced to its points. */
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
  char *to = (char *)s.out +
             (image_of(at, s.out_stride, s.out_layer) + o * s.out_stride[2] + row * s.out_stride[3] + column * s.out_stride[4]) * E;
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
      put_line<T, V, C, 1>(s, v, 1, there, column, s.together);
    }
  }
}

/* The same for single channels: a warp has R lines of at most 128 columns. It interpolates planes and lines at x's columns (at
 * most 64, two a lane) and then across, through shared memory. For wider or very narrow lines lanes would idle; threads are
 * better there. */
struct volumes : resampling {
  int32_t  together, band, cols;          /* as in strips; columns of a warp */
  uint32_t units;                         /* warps */
  cuda_divisor by_tiles, by_rows, by_bands, by_channels;
};

template <uint32_t T, int R, bool PAIRS>
__global__ static void __launch_bounds__(THREADS, PAIRS ? 4 : T == QN_F32 ? 5 : 6)
    resample_warps(const __grid_constant__ volumes s)
{
  typedef point<float, int32_t, QN_RESAMPLE_LINEAR> spot;
  constexpr int E = size_of<T>, C = 4, X = 2;
  static_assert(R == 4, "a column's lines are one word of shared memory");
  __shared__ float4 shared[THREADS / 32][X * 36 + 1];      /* padded against bank conflicts: neighbouring samples are two columns apart */
  const uint32_t unit = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (unit >= s.units) return;
  uint32_t tile, group, band, channel;
  const uint32_t n =
    cuda_quotient(cuda_quotient(cuda_quotient(cuda_quotient(unit, s.by_tiles, &tile), s.by_rows, &group), s.by_bands, &band),
                  s.by_channels, &channel);
  const int first = (int)tile * s.cols, row = (int)group * R, rows = (int)s.out_dim[1] - row,
            left = min(s.cols, (int)s.out_dim[2] - first) - lane * C;
  const int begin = spot(s.dim[2], first).place(s.dim[2], 0);
  float right[C], down[R];
  int place[C][2];                        /* in shared memory */
#pragma unroll
  for (int c = 0; c < C; c++) {
    const spot p(s.dim[2], min(first + min(lane * C + c, s.cols - 1), (int)s.out_dim[2] - 1));
    float w[2];
    p.weights(s.dim[2], w);
    right[c] = w[1];
    for (int k = 0; k < 2; k++) {
      const int at = p.place(s.dim[2], k) - begin;
      place[c][k] = k && p.rest == 0 ? X * 36 : at + at / 8;
    }
  }
  uint32_t line[R][2];                    /* byte offsets in a plane */
#pragma unroll
  for (int r = 0; r < R; r++) {
    const spot p(s.dim[1], min(row + r, (int)s.out_dim[1] - 1));
    float w[2];
    p.weights(s.dim[1], w);
    down[r] = w[1];
    for (int k = 0; k < 2; k++) {
      line[r][k] = (uint32_t)p.place(s.dim[1], k) * (uint32_t)s.in_stride[3] * E;
      asm volatile("" : "+r"(line[r][k]));  /* keeps the offset in a register instead of recomputing it for each plane */
    }
  }
  const int own = PAIRS ? 2 * lane : lane, column = own + own / 8;        /* a lane's columns: neighbours where two are a word */
  const char *from[PAIRS ? 1 : X];
#pragma unroll
  for (int x = 0; x < (PAIRS ? 1 : X); x++)
    from[x] = (const char *)s.in +
              (n * s.in_stride[0] + channel * s.in_stride[1] +
               min(begin + x * 32 + own, (int)s.in_dim[2] - X + !PAIRS) * s.in_stride[4]) * E;

  const bool whole = s.together && left >= C && rows >= R;
  float plane[2][R][X];
  float4 (&mine)[X * 36 + 1] = shared[threadIdx.x / 32];
  if (lane == 0) mine[X * 36] = make_float4(0, 0, 0, 0);     /* the second tap of a sample exactly on a pixel */
  int o = (int)band * s.band, end = min(o + s.band, (int)s.out_dim[0]);
  spot p(s.dim[0], o);
  char *to = (char *)s.out +
             (n * s.out_stride[0] + channel * s.out_stride[1] + o * s.out_stride[2] + row * s.out_stride[3] +
              (first + lane * C) * s.out_stride[4]) * E;
  int next = p.below;
  /* raw elements of the next plane; with PAIRS prefetched while the current one is stored */
  raw_columns<T, PAIRS> q[R][2];
  auto fetch = [&] {
    const int64_t plane_bytes = clamp(next, (int)s.in_dim[0] - 1) * s.in_stride[2] * E;
#pragma unroll
    for (int x = 0; x < (PAIRS ? 1 : X); x++) {
      const char *at = from[x] + plane_bytes;
      asm volatile("" : "+l"(at));
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int k = 0; k < 2; k++) q[r][k].load(x, at + line[r][k]);
    }
  };
  if (PAIRS) fetch();
#pragma unroll 1
  for (; o < end; o++, p.next(s.dim[0]), to += s.out_stride[2] * E) {
    if (PAIRS && next < p.below) next = p.below, fetch();   /* planes were skipped */
    next = max(next, p.below);
#pragma unroll 1
    while (next <= p.below + 1) {
      if (!PAIRS) fetch();
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int x = 0; x < X; x++) {
          plane[0][r][x] = plane[1][r][x];
          plane[1][r][x] = (1 - down[r]) * q[r][0].get(x);
          if (down[r] != 0) plane[1][r][x] = fmaf(down[r], q[r][1].get(x), plane[1][r][x]);
        }
      next++;
      if (PAIRS) fetch();
    }
    float deep[2];
    p.weights(s.dim[0], deep);
#pragma unroll
    for (int x = 0; x < X; x++) {
      float v[R];
#pragma unroll
      for (int r = 0; r < R; r++) {
        v[r] = deep[0] * plane[0][r][x];
        if (deep[1] != 0) v[r] = fmaf(deep[1], plane[1][r][x], v[r]);
      }
      mine[column + x * (PAIRS ? 1 : 36)] = make_float4(v[0], v[1], v[2], v[3]);
    }
    __syncwarp();
    float v[R][C];
#pragma unroll
    for (int c = 0; c < C; c++) {
      const float4 a = mine[place[c][0]], b = mine[place[c][1]];
      const float u = 1 - right[c];
      v[0][c] = fmaf(right[c], b.x, u * a.x), v[1][c] = fmaf(right[c], b.y, u * a.y);
      v[2][c] = fmaf(right[c], b.z, u * a.z), v[3][c] = fmaf(right[c], b.w, u * a.w);
    }
    __syncwarp();
    char *there = to;
#pragma unroll
    for (int r = 0; r < R; r++, there += s.out_stride[3] * E) {
      if (whole) put<T, C>(v[r], there);
      else
#pragma unroll
        for (int c = 0; c < C; c++)
          if (r < rows && c < left) put<T, 1>(v[r] + c, there + c * s.out_stride[4] * E);
    }
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct strips_state { union { strips s; volumes deep; }; kernel kernel; uint32_t blocks; int32_t in, out; };

/* Kernel and work of a thread: what fits registers with enough loads in flight; walk: the dim that it walks down. */
struct plan { kernel kernel; int columns, lines, layers, walk; };

/* Does a warp hold a whole line of x, with at least three quarters of its lanes busy? */
static bool fills_warps(const resampling &s) { return s.in_dim[2] <= 64 && s.out_dim[2] >= 96 * qn_ceil_div(s.out_dim[2], 128); }

template <uint32_t T, int MODE, int V> static plan plan_of(const resampling &s, bool pairs)
{
  constexpr bool CUBIC = MODE == QN_RESAMPLE_CUBIC, NEAREST = MODE == QN_RESAMPLE_NEAREST;
  constexpr int C = V > 1 ? 1 : 4, R = V > 1 ? 2 : 4, FLAT = CUBIC ? 1 : V == 1 && NEAREST ? 4 : 2;
  if constexpr (MODE == QN_RESAMPLE_LINEAR)
    if (s.in_dim[0] > 1) {
      if constexpr (V == 1)
        if (fills_warps(s)) return { pairs ? (kernel)resample_warps<T, R, true> : (kernel)resample_warps<T, R, false>, C, R, 1, 0 };
      return { (kernel)resample_volumes<T, V, C, R>, C, R, 1, 0 };
    }
  return { (kernel)resample_strips<T, MODE, V, C, FLAT>, C, 1, FLAT, 1 };
}
template <uint32_t T, int V> static plan choose_mode(const resampling &s, bool pairs)
{
  if (s.mode == QN_RESAMPLE_NEAREST) return plan_of<T, QN_RESAMPLE_NEAREST, V>(s, pairs);
  if (s.mode == QN_RESAMPLE_LINEAR) return plan_of<T, QN_RESAMPLE_LINEAR, V>(s, pairs);
  return plan_of<T, QN_RESAMPLE_CUBIC, V>(s, pairs);
}
template <uint32_t T> static plan choose(const resampling &s, bool vectors, bool pairs)
{
  return vectors ? choose_mode<T, T == QN_F32 ? 4 : 8>(s, false) : choose_mode<T, 1>(s, pairs);
}

/* Are two columns of x an aligned word, also at a warp's first column? */
static bool has_pairs(const resampling &s, const qn_value *in)
{
  bool whole = s.out_dim[2] <= 128 && s.in_dim[2] % 2 == 0 && s.in_stride[4] == 1 && in->align >= 2u * (unsigned)qn_kit_bytes(in->dtype);
  for (int d = 0; d < 4; d++) whole = whole && s.in_stride[d] % 2 == 0;
  return whole;
}

/* The grid of warps: columns split evenly, in units of a lane's; bands as below. */
static void divide(volumes *s, strips_state *st, const plan &plan, int units)
{
  const int64_t steps = s->out_dim[0], columns = s->out_dim[2], rows = qn_ceil_div(s->out_dim[1], plan.lines),
                tiles = qn_ceil_div(columns, 32 * plan.columns);
  const int64_t n = s->channels_last ? s->layers : s->outer, channels = s->channels_last ? s->channels : s->layers,
                warps = tiles * rows * channels * n;
  int64_t bands = qn_min_i64(qn_ceil_div(steps, 4), qn_max_i64(qn_ceil_div(steps, 64), qn_ceil_div((int64_t)units * 64, warps)));
  s->cols = (int32_t)qn_round_up(qn_ceil_div(columns, tiles), plan.columns);
  s->band = (int32_t)qn_ceil_div(steps, bands), bands = qn_ceil_div(steps, s->band);
  s->units = (uint32_t)(warps * bands);
  s->by_tiles = cuda_divide_by(tiles), s->by_rows = cuda_divide_by(rows), s->by_bands = cuda_divide_by(bands),
  s->by_channels = cuda_divide_by(channels);
  st->blocks = (uint32_t)qn_ceil_div(s->units, THREADS / 32);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  strips_state st = { {}, NULL, 0, op->arg[0], op->arg[1] };
  strips &s = st.s;
  int v = 1;
  qn_status status = strips_begin(&s, &v, r, out);
  if (status) return status;
  const qn_value *in = &r->value[st.in], *to = &r->value[st.out];
  const bool pairs = has_pairs(s, in);
  const plan plan = in->dtype == QN_F32  ? choose<QN_F32>(s, v > 1, pairs)
                  : in->dtype == QN_BF16 ? choose<QN_BF16>(s, v > 1, pairs)
                                         : choose<QN_F16>(s, v > 1, pairs);
  st.kernel = plan.kernel;
  if (s.mode == QN_RESAMPLE_CUBIC && s.out_dim[0] * s.in_dim[0] > 1)
    return qn_refuse(out, "cubic in two dims at most", "x", "rank 3 or 4", "rank %d", in->rank);
  if (s.in_dim[2] * s.in_stride[4] > 1 << 28 || s.in_stride[3] > 1 << 28)
    return qn_refuse(out, "places of a line are counted in 31 bits", "x", "fewer", "%lld", (long long)(s.in_dim[2] * s.in_stride[4]));
  s.together = s.out_dim[2] % plan.columns == 0 && s.out_stride[4] == 1 &&
               to->align >= (uint32_t)(plan.columns * (in->dtype == QN_F32 ? 4 : 2));
  for (int d = 0; d < 4; d++) s.together &= s.out_stride[d] % plan.columns == 0;
  if (s.mode == QN_RESAMPLE_LINEAR && s.in_dim[0] > 1 && v == 1 && fills_warps(s)) {
    if (s.in_dim[1] * s.in_stride[3] > 1 << 28)
      return qn_refuse(out, "places of a plane are counted in 31 bits", "x", "fewer", "%lld", (long long)(s.in_dim[1] * s.in_stride[3]));
    volumes deep = {};
    (resampling &)deep = s;
    deep.together = s.together;
    st.deep = deep;
    divide(&st.deep, &st, plan, r->device->units);
    return cuda_keep(out, &st, sizeof st);
  }
  s.cells[0] = s.out_dim[0], s.cells[1] = qn_ceil_div(s.out_dim[1], plan.lines), s.cells[2] = qn_ceil_div(s.out_dim[2], plan.columns);
  /* Bands: as long as they leave enough threads, since the lines (planes) at their ends are reduced twice. */
  int64_t steps = s.out_dim[plan.walk],
          across = s.channels / v * s.cells[!plan.walk] * s.cells[2] * qn_ceil_div(s.layers, plan.layers) * s.outer;
  int64_t bands = qn_min_i64(qn_ceil_div(steps, 4),
                             qn_max_i64(qn_ceil_div(steps, 32),
                                        qn_ceil_div((int64_t)r->device->units * (v == 1 && plan.walk ? 8192 : 4096), across)));
  s.band = (int32_t)qn_ceil_div(steps, bands);
  s.cells[plan.walk] = qn_ceil_div(steps, s.band);
  s.units = (uint32_t)(across * s.cells[plan.walk]);
  st.blocks = (s.units + THREADS - 1) / THREADS;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  strips_state st = *(const strips_state *)p->state;
  st.s.in = launch->ptr[st.in], st.s.out = launch->ptr[st.out];   /* `deep` begins with the same fields */
  void *arguments[] = { &st.s };
  return cuda_check(cudaLaunchKernel(st.kernel, dim3(st.blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream),
                    "resample_strips");
}

static const qn_engine row[] = {
  { "strips", QN_OP_RESAMPLE, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(resample_strips) = { row, sizeof row / sizeof *row };
