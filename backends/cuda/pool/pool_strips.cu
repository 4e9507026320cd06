/* pool_strips.cu -- max, average and (p = 2) lp pooling of packed NCHW planes in f16, bf16 and f32 straight from global memory: a thread
 * loads a vector of V neighbouring columns of several rows of x, all loads in flight at once.
 *
 * Rows of 2x2 or 3x3 windows are reduced once to the V / STEP windows over the vector; windows that tile the plane, V 2^k columns wide, by
 * shuffles of 2^k neighbouring lanes.
 * Refused: odd widths, dilation, unequal adaptive windows; strips with indices. */
#include "pool_found.cuh"

/* tiles: rows in flight; windows of a thread; rows of a deep window */
enum { THREADS = 128, TILE_BATCH = 8, SEVERAL = 4, DEEP_MOST = 16 };

struct strips : pool {                    /* depth is folded away (in[0] is 1), except in tiles */
  int32_t  vectors;                       /* of a row */
  int32_t  lanes, lane_bits, lines;       /* tiles: vectors of a window's row, a power of two; rows of a window */
  int32_t  each;                          /* tiles: windows of a thread */
  int32_t  whole, even;  /* strips: a thread's outputs of a row are stored as one vector; all windows have the same divisor */
  float    share;                         /* 1 / divisor, valid if even */
  uint32_t threads;
  cuda_divisor by_vectors, by_bands, by_high;     /* bands: of a column of outputs, one a thread; high: size[1] */
};

template <int mode> __device__ __forceinline__ float nothing() { return mode == MAX || mode == MAX_INDEX ? -INFINITY : 0.f; }
/* Adds tap a to the reduction v. */
template <int mode> __device__ __forceinline__ float taken(float v, float a) { return mode == MAX ? larger(v, a) : v + a; }
template <int dtype, int mode> __device__ __forceinline__ float seen(float a) { return mode == SQUARES ? lp_tap<dtype>(a, 2) : a; }

template <int dtype, int V> using packed = words<V * bytes_of<dtype> / 4>;       /* of 4, 8 or 16 bytes */

/* ---- strips ---------------------------------------------------------------------------------------------------- */

/* Rows of outputs a thread: two where they share most rows of x; more for narrow vectors. */
__host__ __device__ constexpr int rows_of(int v, int size, int step) { return v > 2 ? (2 * step < size ? 2 : 1) : size == 2 ? 4 : 2; }

template <int dtype, int mode, int V, int SIZE, int STEP, int BEFORE> struct strip {
  static constexpr int outputs = V / STEP, beyond = (outputs - 1) * STEP + SIZE - BEFORE - V, after = beyond > 0 ? beyond : 0;
  static constexpr bool paired = mode == MAX && dtype != QN_F32;  /* 16-bit maxima are reduced two at a time, in their storage format */
  static constexpr int found = paired ? (outputs + 1) / 2 : outputs;
  typedef std::conditional_t<paired, uint32_t, float> join_type;
  packed<dtype, V> middle;
  uint32_t side[BEFORE + after + 1];      /* columns left and right of the vector */

  /* at: address of the vector; here: its row is inside x. */
  __device__ __forceinline__ void load(const strips &p, const char *at, bool here, int x0)
  {
    const uint32_t none = closed<dtype>(nothing<mode>());
#pragma unroll
    for (int i = 0; i < V * bytes_of<dtype> / 4; i++) middle.v[i] = dtype == QN_F32 ? none : none << 16 | none;
#pragma unroll
    for (int i = 0; i < BEFORE + after; i++) side[i] = none;
    if (!here) return;
    middle = *(const packed<dtype, V> *)at;
#pragma unroll
    for (int i = 0; i < BEFORE + after; i++) {
      int c = i < BEFORE ? i - BEFORE : V + i - BEFORE;
      if ((unsigned)(x0 + c) < (unsigned)p.in[2]) side[i] = element<dtype>(at, c);
    }
  }
  /* The word that holds column c; above(): in its upper half. */
  __device__ __forceinline__ uint32_t word(int c) const
  {
    return c < 0 ? side[c + BEFORE] : c >= V ? side[c - V + BEFORE] : middle.v[c * bytes_of<dtype> / 4];
  }
  static __device__ __forceinline__ bool above(int c) { return dtype != QN_F32 && c >= 0 && c < V && c % 2; }
  /* Tap c of window o of the row, or of its windows 2 o and 2 o + 1. */
  __device__ __forceinline__ join_type tap(int o, int c) const
  {
    const int a = o * (paired ? 2 : 1) * STEP - BEFORE + c, b = 2 * o + 1 < outputs ? a + STEP : a;
    if constexpr (!paired) return seen<dtype, mode>(word_get<dtype>(word(a), above(a)));
    else return __byte_perm(word(a), word(b), (above(a) ? 0x32 : 0x10) | (above(b) ? 0x7600 : 0x5400));
  }
  static __device__ __forceinline__ join_type both(join_type a, join_type b)
  {
    if constexpr (paired) return larger_pair<dtype>(a, b);
    else return taken<mode>(a, b);
  }
  /* The row's part of each window, or of two windows at once. */
  __device__ __forceinline__ void join(join_type (&f)[found]) const
  {
#pragma unroll
    for (int o = 0; o < found; o++) {
      f[o] = tap(o, 0);
#pragma unroll
      for (int c = 1; c < SIZE; c++) f[o] = both(f[o], tap(o, c));
    }
  }
};

template <int dtype, int mode, int V, int SIZE, int STEP, int BEFORE>
__global__ void __launch_bounds__(THREADS) pool_strips(const __grid_constant__ strips p)
{
  typedef strip<dtype, mode, V, SIZE, STEP, BEFORE> line;
  constexpr int N = line::outputs, ROWS = rows_of(V, SIZE, STEP), LINES = (ROWS - 1) * STEP + SIZE;
  uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  if (thread >= p.threads) return;
  uint32_t q = cuda_quotient(thread, p.by_vectors), k = cuda_quotient(q, p.by_bands);
  int x0 = (int)(thread - q * p.vectors) * V, o0 = (int)(q - k * p.by_bands.by) * ROWS, ox = x0 / STEP, y0 = o0 * STEP - p.before[1];
  int64_t from = (int64_t)k * p.in[1] * p.in[2], to = ((int64_t)k * p.out[1] + o0) * p.out[2] + ox;
  line s[LINES];
  const char *at = (const char *)p.x + (from + y0 * p.in[2] + x0) * bytes_of<dtype>;
  int pitch = p.in[2] * bytes_of<dtype>;
#pragma unroll
  for (int i = 0; i < LINES; i++, at += pitch) s[i].load(p, at, (unsigned)(y0 + i) < (unsigned)p.in[1], x0);
  typename line::join_type f[ROWS][line::found];
#pragma unroll
  for (int i = 0; i < LINES; i++) {
    typename line::join_type g[line::found];
    s[i].join(g);
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      if (i >= r * STEP && i < r * STEP + SIZE)
#pragma unroll
        for (int n = 0; n < line::found; n++) f[r][n] = i == r * STEP ? g[n] : line::both(f[r][n], g[n]);
  }
  int left = 0, right = 0;                /* taps across, of the first and the last window; all between have SIZE */
  if (mode == AVERAGE && !p.even)
    left = taps_beside(p, 2, x0 - BEFORE, SIZE), right = taps_beside(p, 2, x0 - BEFORE + (N - 1) * STEP, SIZE);
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (o0 + r >= p.out[1]) break;
    constexpr int many = N > 1 ? N : per_word<dtype>;
    packed<dtype, many> b;
    bool plain = true;                    /* the sum of squares is in range, or of zeros, as rectifiers leave them */
    if constexpr (line::paired) {
#pragma unroll
      for (int n = 0; n < line::found; n++) b.v[n] = f[r][n];
    } else {
      float v[N > 1 ? N : 2];
      int down = mode == AVERAGE ? taps_beside(p, 1, y0 + r * STEP, SIZE) : 0;
#pragma unroll
      for (int n = 0; n < N; n++) v[n] = f[r][n];
      if (mode == AVERAGE && p.even)
#pragma unroll
        for (int n = 0; n < N; n++) v[n] *= p.share;
      if (mode == AVERAGE && !p.even)
#pragma unroll
        for (int n = 0; n < N; n++) v[n] *= p.inverse[down * (n == 0 ? left : n == N - 1 ? right : SIZE)];
      if (N == 1) v[1] = 0;
      if (mode == AVERAGE)
        pool_mend<dtype>(v, min((int)N, p.out[2] - ox), [&](int n) { return pool_far_mean(p, from, 0, o0 + r, ox + n); });
      if (mode == SQUARES)
#pragma unroll
        for (int n = 0; n < N; n++) plain &= v[n] == 0 || (v[n] > LP_LEAST && v[n] < INFINITY), v[n] = sqrtf(v[n]);
      if (N == 1) v[1] = v[0];
#pragma unroll
      for (int i = 0; i < many / per_word<dtype>; i++) b.v[i] = word_of<dtype>(v + i * per_word<dtype>);
    }
    int64_t place = to + r * p.out[2];
    if (N > 1 && p.whole) *(packed<dtype, many> *)((char *)p.y + place * bytes_of<dtype>) = b;
    else
#pragma unroll
      for (int n = 0; n < N; n++)
        if (ox + n < p.out[2]) element_put<dtype>(p.y, place + n, b.v[n / per_word<dtype>] >> n % per_word<dtype> * 16);
    if (mode == SQUARES && !plain)
#pragma unroll 1
      for (int n = 0; n < N && ox + n < p.out[2]; n++)
        element_put<dtype>(p.y, place + n, closed<dtype>(lp_scaled(p, from, 0, o0 + r, ox + n)));
  }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

/* Windows that tile the plane; they may be deep, and a thread has several of those that are one row. */

/* TILES: windows a thread handles, THREADS apart; more than one only for one-row windows. The slices of a deep window are in[1]
 * rows apart. */
template <int dtype, int mode, int V, int TILES> __global__ void __launch_bounds__(THREADS) pool_tiles(const __grid_constant__ strips p)
{
  constexpr int LINES = TILES > 1 ? 1 : TILE_BATCH;       /* rows in flight */
  const int lines = TILES > 1 ? 1 : p.lines;
  uint32_t q[TILES], k[TILES];
  int vector[TILES], o[TILES], row[TILES][V];             /* row: of each column's maximum */
  const char *at[TILES];
  float f[TILES][V];
#pragma unroll
  for (int t = 0; t < TILES; t++) {
    /* clamped, not returned: all lanes take part in the shuffles */
    const uint32_t thread = min((blockIdx.x * TILES + t) * THREADS + threadIdx.x, p.threads - 1);
    q[t] = cuda_quotient(thread, p.by_vectors), k[t] = cuda_quotient(q[t], p.by_bands);
    vector[t] = (int)(thread - q[t] * p.vectors), o[t] = (int)(q[t] - k[t] * p.out[1]);
    at[t] = (const char *)p.x + (((int64_t)k[t] * p.size[0] * p.in[1] + o[t] * p.size[1]) * p.in[2] + vector[t] * V) * bytes_of<dtype>;
#pragma unroll
    for (int j = 0; j < V; j++) f[t][j] = nothing<mode>(), row[t][j] = 0;
  }
#pragma unroll 1
  for (int r = 0; r < lines; r += LINES) {
    packed<dtype, V> b[TILES][LINES];
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int i = 0; i < LINES; i++)
        if (r + i < lines)
          b[t][i] = load_words<V * bytes_of<dtype> / 4>(
            at[t], (int64_t)((r + i + (int)cuda_quotient(r + i, p.by_high) * (p.in[1] - p.size[1])) * p.in[2]) * bytes_of<dtype>);
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
      for (int i = 0; i < LINES; i++)
        if (r + i < lines)
#pragma unroll
          for (int j = 0; j < V; j++) {
            float a = element_of<dtype>(b[t][i], j);
            if (mode != MAX_INDEX) f[t][j] = taken<mode>(f[t][j], a);
            else if (a > f[t][j] || (a != a && f[t][j] == f[t][j])) f[t][j] = a, row[t][j] = r + i;
          }
  }
#pragma unroll
  for (int t = 0; t < TILES; t++) {
    const int across = p.size[2], first = (vector[t] & (p.lanes - 1)) * V;
    float v = f[t][0];
    int tap = row[t][0] * across + first;
    if (mode == MAX_INDEX) {
#pragma unroll
      for (int j = 1; j < V; j++) join_taps(v, tap, f[t][j], row[t][j] * across + first + j);
      for (int apart = 1; apart < p.lanes; apart *= 2) {
        float a = __shfl_down_sync(~0u, v, apart);
        join_taps(v, tap, a, __shfl_down_sync(~0u, tap, apart));
      }
    } else {
#pragma unroll
      for (int j = 1; j < V; j++) v = taken<mode>(v, f[t][j]);
      for (int apart = 1; apart < p.lanes; apart *= 2) v = taken<mode>(v, __shfl_down_sync(~0u, v, apart));
    }
    if (first) continue;
    if (mode == AVERAGE) v *= p.share;
    if (mode == AVERAGE && pool_far<dtype>(v))
      v = pool_far_mean(p, (int64_t)k[t] * p.size[0] * p.in[1] * p.in[2], 0, o[t], vector[t] >> p.lane_bits);
    const int64_t to = (int64_t)q[t] * p.out[2] + (vector[t] >> p.lane_bits);
    element_put<dtype>(p.y, to, closed<dtype>(v));
    if (mode != MAX_INDEX) continue;
    int r = tap / across, place = (o[t] * p.size[1] + r) * p.in[2] + vector[t] * V + tap - r * across;
    element_store_wrapped(p.indices, to, p.index_dtype, p.index_dtype == QN_U8 ? tap : place);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

template <int dtype, int mode, int V> static pool_kernel strips_of(const strips &p)
{
  const int window = p.before[2] < 10 ? 10 * square_step(&p) + p.before[2] : 0;      /* rows may have other padding */
  constexpr bool norm = mode == SQUARES;
  return cuda_pick<321, 220, norm ? 220 : 320, norm ? 220 : 311>(window, [](auto w) {
    return (pool_kernel)pool_strips<dtype, mode, V, w() / 100, w() / 10 % 10, w() % 10>;
  });
}
/* Do the windows tile the plane, with rows of a power of two of vectors? */
static bool takes_tiles(const pool &p, int V, int mode)
{
  const int lanes = p.size[2] / V;
  bool side_by_side = mode != SQUARES;
  for (int d = 0; d < 3; d++) side_by_side &= (p.step[d] == p.size[d] || p.out[d] == 1) && p.in[d] == p.out[d] * p.size[d] && !p.before[d];
  return side_by_side && p.size[2] % V == 0 && lanes <= 32 && !(lanes & (lanes - 1));
}
/* many: more vectors than the device holds threads. */
template <int dtype> static pool_kernel choose(strips *p, int mode, bool many)
{
  constexpr int wide = vector_per_16<dtype>;
  const bool deep = p->size[0] > 1, tiles = takes_tiles(*p, wide, mode), narrow = deep && !tiles;
  if (narrow && !takes_tiles(*p, 2, mode)) return nullptr;
  int V = p->in[2] % wide == 0 && !narrow ? wide : 2;
  if (p->in[2] % V) return nullptr;
  p->vectors = p->in[2] / V;
  p->lanes = tiles || narrow ? p->size[2] / V : 0;
  while (1 << p->lane_bits < p->lanes) p->lane_bits++;
  p->each = many && tiles && p->lines == 1 ? SEVERAL : 1;
  if (narrow) return cuda_pick<AVERAGE, MAX>(mode, [](auto m) { return (pool_kernel)pool_tiles<dtype, m(), 2, 1>; });
  if (tiles)
    return cuda_pick<AVERAGE, MAX, MAX_INDEX>(mode, [&](auto m) {
      return p->each > 1 ? (pool_kernel)pool_tiles<dtype, m(), wide, SEVERAL> : (pool_kernel)pool_tiles<dtype, m(), wide, 1>;
    });
  if (V == wide) return cuda_pick<AVERAGE, MAX, SQUARES>(mode, [&](auto m) { return strips_of<dtype, m(), wide>(*p); });
  return cuda_pick<AVERAGE, MAX>(mode, [&](auto m) { return strips_of<dtype, m(), 2>(*p); });
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<strips> s = {};
  strips &p = s.p;
  qn_status status = pool_read(&s, r, out);
  if (!status) status = pool_wants_planes(r, s.of, 2, out);
  if (status) return status;
  const bool lp = r->op[0].op == QN_OP_POOL_LP, index = s.of.indices >= 0;
  if (p.adaptive) return qn_refuse(out, "windows of one size", "x", "extents that y's divide", "%dx%d", p.in[1], p.in[2]);
  if (!pool_fold(&p, index && p.index_dtype != QN_U8) && (index || p.size[0] == 1 || p.size[0] * (int64_t)p.size[1] > DEEP_MOST))
    return qn_refuse(out, "windows within a plane, or few lines without indices", "x", "depth 1, or 16 lines", "depth %d", p.size[0]);
  for (int d = 0; d < 3; d++)
    if (p.size[d] > 1 && p.dilation[d] != 1) return qn_refuse(out, "dilation 1", "x", "1", "%d", p.dilation[d]);
  if (lp && p.p != 2) return qn_refuse(out, "norms, and no other powers", "p", "2", "%g", p.p);
  const int mode = lp ? SQUARES : p.average ? AVERAGE : index ? MAX_INDEX : MAX;
  p.lines = p.size[0] * p.size[1];
  const int64_t elements = qn_elements(&r->value[s.of.x]);
  const bool many = elements * qn_kit_bytes(p.dtype) / 16 > 2048 * (int64_t)r->device->units;
  s.kernel = cuda_by_dtype(p.dtype, [&](auto dtype) { return choose<dtype()>(&p, mode, many); });
  if (!s.kernel)
    return qn_refuse(out, "an even width; small windows (of maxima without indices), or side by side a power of two of vectors wide", "x",
                     "3x3 with stride 1 or 2, 2x2 with stride 2, 8 or 16 wide", "%dx%d", p.lines, p.size[2]);
  const int V = p.in[2] / p.vectors, outputs = V / p.step[2];
  if (!p.lanes && p.out[2] > p.vectors * outputs) return qn_refuse(out, "outputs above their vectors", "y", "fewer", "%d", p.out[2]);
  const int64_t count = elements / ((int64_t)p.size[0] * p.in[1] * p.in[2]);
  const int64_t bands = p.lanes ? p.out[1] : qn_ceil_div(p.out[1], rows_of(V, p.size[1], p.step[1]));
  const double threads = (double)count * p.vectors * (double)bands;
  if (threads > INT32_MAX) return qn_refuse(out, "fewer than 2^31 threads", "x", "", "%s", "more");
  p.threads = (uint32_t)threads;
  p.by_vectors = cuda_divide_by((uint32_t)p.vectors), p.by_bands = cuda_divide_by((uint32_t)bands), p.by_high = cuda_divide_by(p.size[1]);
  p.share = 1 / ((float)p.lines * (float)p.size[2]);
  p.even = pool_even(&p);
  p.whole = !p.lanes && p.out[2] == p.vectors * outputs;
  return pool_keep(&s, qn_ceil_div(p.threads, p.each), THREADS, 2400, out);
}

static const qn_engine row[] = { POOL_ROWS(strips, "strips", prepare), pool_row<strips>("strips", QN_OP_POOL_LP, prepare) };
CUDA_ENGINES(pool_strips) = { row, sizeof row / sizeof *row };
