/* pool_strips.cu -- pooling of packed f16, bf16 and f32 planes (NCHW) without shared memory: a thread takes a vector of V neighbouring
 * columns and walks down the lines of x, each of which it reads once.
 *
 *   max       y = the largest tap inside x, NaN above all, the first of equals; no tap inside: -Inf
 *   average   y = sum of taps inside x / divisor, 0 where none is
 *
 * strips: square windows of SIZE every STEP, BEFORE columns of padding to the left, known to the compiler: what a line gives to the
 * V / STEP windows above it is made once, for all the lines of outputs that share it.
 * tiles: windows side by side of V 2^k columns: 2^k neighbouring threads join what they found. */
#include "cuda_backend.h"
#include "engines.h"
#include "pool.cuh"

enum { THREADS = 256, BATCH = 4, TILE_BATCH = 8 };        /* lines in flight */

struct strips : pool {                    /* in[0] and what else it knows of a third dim are 1; band: lines of outputs of a thread */
  int32_t  bands, vectors;                /* threads for the lines of a plane; vectors of a line */
  int32_t  lanes;                         /* tiles: vectors of a window */
  int32_t  whole;                         /* strips: a thread's outputs of a line lie as one vector */
  float    inverse;                       /* of the divisor, if it is the same for all windows; else 0 */
  uint32_t threads;
};

template <bool average> __device__ __forceinline__ float nothing() { return average ? 0.f : -INFINITY; }
template <bool average> __device__ __forceinline__ float taken(float v, float a) { return average ? v + a : v >= a || v != v ? v : a; }

/* ---- elements as they came --------------------------------------------------------------------------------- */

template <int dtype> constexpr int bytes_of = dtype == QN_F32 ? 4 : 2;
template <int dtype> __device__ __forceinline__ float element(const void *x, int64_t at)
{
  if (dtype == QN_F32) return ((const float *)x)[at];
  uint16_t h = ((const uint16_t *)x)[at];
  return dtype == QN_BF16 ? bf16_to_float(h) : f16_to_float(h);
}
template <int dtype> __device__ __forceinline__ void element_put(void *y, int64_t at, float v)
{
  if (dtype == QN_F32) ((float *)y)[at] = v;
  else ((uint16_t *)y)[at] = dtype == QN_BF16 ? float_to_bf16(v) : float_to_f16(v);
}

template <int dtype, int V> struct bits {                 /* 4, 8 or 16 bytes */
  static constexpr int words = V * bytes_of<dtype> / 4;
  uint32_t word[words];

  __device__ __forceinline__ void load(const void *x, int64_t at)
  {
    const char *p = (const char *)x + at * bytes_of<dtype>;
    if (words == 4) {
      uint4 q = *(const uint4 *)p;
      word[0] = q.x, word[1 % words] = q.y, word[2 % words] = q.z, word[3 % words] = q.w;
    } else if (words == 2) {
      uint2 q = *(const uint2 *)p;
      word[0] = q.x, word[1 % words] = q.y;
    } else {
      word[0] = *(const uint32_t *)p;
    }
  }
  __device__ __forceinline__ void store(void *y, int64_t at) const
  {
    char *p = (char *)y + at * bytes_of<dtype>;
    if (words == 4) *(uint4 *)p = make_uint4(word[0], word[1 % words], word[2 % words], word[3 % words]);
    else if (words == 2) *(uint2 *)p = make_uint2(word[0], word[1 % words]);
    else *(uint32_t *)p = word[0];
  }
  __device__ __forceinline__ float get(int i) const
  {
    if (dtype == QN_F32) return __uint_as_float(word[i % words]);
    uint32_t h = word[i / 2 % words];
    if (dtype == QN_BF16) return __uint_as_float(i & 1 ? h & 0xffff0000u : h << 16);
    return f16_to_float((uint16_t)(i & 1 ? h >> 16 : h));
  }
  __device__ __forceinline__ void set(const float *v)
  {
#pragma unroll
    for (int i = 0; i < words; i++)
      word[i] = dtype == QN_F32 ? __float_as_uint(v[i]) : dtype == QN_BF16 ? pack_bf16(v[2 * i], v[2 * i + 1]) : pack_f16(v[2 * i], v[2 * i + 1]);
  }
};

/* ---- strips ---------------------------------------------------------------------------------------------------- */

template <int dtype, int V, int SIZE, int STEP, int BEFORE> struct strip {
  static constexpr int outputs = V / STEP, beyond = (outputs - 1) * STEP + SIZE - BEFORE - V, after = beyond > 0 ? beyond : 0;
  bits<dtype, V> middle;
  float side[BEFORE + after + 1];         /* columns before and after the vector; those before only of a warp's first lane */

  template <bool average> __device__ __forceinline__ void load(const strips &p, int64_t plane, int line, int x0)
  {
    bool here = (unsigned)line < (unsigned)p.in[1];
    int64_t at = plane + (int64_t)line * p.in[2] + x0;
    if (here) middle.load(p.x, at);
    else {
      float none[V];
#pragma unroll
      for (int i = 0; i < V; i++) none[i] = nothing<average>();
      middle.set(none);
    }
#pragma unroll
    for (int i = 0; i < BEFORE + after; i++) {
      int c = i < BEFORE ? i - BEFORE : V + i - BEFORE;
      bool mine = i >= BEFORE || threadIdx.x % 32 == 0;
      side[i] = here && mine && (unsigned)(x0 + c) < (unsigned)p.in[2] ? element<dtype>(p.x, at + c) : nothing<average>();
    }
  }
  /* What the line gives to each window. The lane before has the columns before. */
  template <bool average> __device__ __forceinline__ void join(float (&f)[outputs], int x0)
  {
    float v[BEFORE + V + after];
#pragma unroll
    for (int i = 0; i < BEFORE; i++) {
      float a = __shfl_up_sync(~0u, middle.get(V - BEFORE + i), 1);
      if (threadIdx.x % 32) side[i] = x0 ? a : nothing<average>();
    }
#pragma unroll
    for (int i = 0; i < BEFORE + V + after; i++) v[i] = i < BEFORE ? side[i] : i < BEFORE + V ? middle.get(i - BEFORE) : side[i - V];
#pragma unroll
    for (int o = 0; o < outputs; o++) {
      f[o] = v[o * STEP];
#pragma unroll
      for (int c = 1; c < SIZE; c++) f[o] = taken<average>(f[o], v[o * STEP + c]);
    }
  }
};

template <int dtype, bool average, int V, int SIZE, int STEP, int BEFORE>
__global__ void __launch_bounds__(THREADS) pool_strips(const __grid_constant__ strips p)
{
  typedef strip<dtype, V, SIZE, STEP, BEFORE> line_strip;
  constexpr int N = line_strip::outputs, ROWS = BATCH / STEP, KEPT = SIZE - STEP;
  uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  bool here = thread < p.threads;         /* all lanes stay */
  thread = min(thread, p.threads - 1);
  uint32_t q = thread / p.vectors, k = q / p.bands;
  int x0 = (int)(thread - q * p.vectors) * V, o0 = (int)(q - k * p.bands) * p.band, end = here ? min(o0 + p.band, p.out[1]) : 0, ox = x0 / STEP;
  int64_t from = (int64_t)k * p.in[1] * p.in[2], to = (int64_t)k * p.out[1] * p.out[2] + ox;
  int y0 = o0 * STEP - p.before[1], rows = -1;
  float kept[KEPT ? KEPT : 1][N], inverse[N];
#pragma unroll
  for (int n = 0; n < N; n++) inverse[n] = p.inverse;
#pragma unroll
  for (int i = 0; i < KEPT; i++) {
    line_strip s;
    s.template load<average>(p, from, y0 + i, x0);
    s.template join<average>(kept[i], x0);
  }
#pragma unroll 1
  for (int o = o0; o < o0 + p.band; o += ROWS) {
    line_strip s[ROWS * STEP];
    int line = o * STEP - p.before[1] + KEPT;
#pragma unroll
    for (int i = 0; i < ROWS * STEP; i++) s[i].template load<average>(p, from, line + i, x0);
    float f[KEPT + ROWS * STEP][N];
#pragma unroll
    for (int i = 0; i < KEPT; i++)
#pragma unroll
      for (int n = 0; n < N; n++) f[i][n] = kept[i][n];
#pragma unroll
    for (int i = 0; i < ROWS * STEP; i++) s[i].template join<average>(f[KEPT + i], x0);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      if (o + r >= end) break;
      float v[N < 2 ? 2 : N];
#pragma unroll
      for (int n = 0; n < N; n++) {
        v[n] = f[r * STEP][n];
#pragma unroll
        for (int i = 1; i < SIZE; i++) v[n] = taken<average>(v[n], f[r * STEP + i][n]);
      }
      if (average && p.inverse == 0) {    /* divisors differ */
        int now = taps_of(p, 1, (o + r) * STEP - p.before[1], SIZE);
        if (now != rows) {                /* at an edge */
          rows = now;
#pragma unroll
          for (int n = 0; n < N; n++) inverse[n] = 1 / (float)max(1, rows * taps_of(p, 2, (ox + n) * STEP - BEFORE, SIZE));
        }
      }
      if (average)
#pragma unroll
        for (int n = 0; n < N; n++) v[n] *= inverse[n];
      int64_t at = to + (int64_t)(o + r) * p.out[2];
      if (N * bytes_of<dtype> >= 4 && p.whole) {
        bits<dtype, N * bytes_of<dtype> >= 4 ? N : 2> b;
        b.set(v);
        b.store(p.y, at);
      } else {
#pragma unroll
        for (int n = 0; n < N; n++)
          if (ox + n < p.out[2]) element_put<dtype>(p.y, at + n, v[n]);
      }
    }
#pragma unroll
    for (int i = 0; i < KEPT; i++)
#pragma unroll
      for (int n = 0; n < N; n++) kept[i][n] = f[ROWS * STEP + i][n];
  }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

template <int dtype, bool average, int V> __global__ void __launch_bounds__(THREADS) pool_tiles(const __grid_constant__ strips p)
{
  uint32_t thread = min(blockIdx.x * THREADS + threadIdx.x, p.threads - 1);   /* all lanes stay: of the last, some repeat it */
  uint32_t q = thread / p.vectors, k = q / p.out[1];
  int vector = (int)(thread - q * p.vectors), o = (int)(q - k * p.out[1]);
  int64_t at = ((int64_t)k * p.in[1] + o * p.size[1]) * p.in[2] + vector * V;
  float f[V], v;
#pragma unroll
  for (int i = 0; i < V; i++) f[i] = nothing<average>();
#pragma unroll 1
  for (int r = 0; r < p.size[1]; r += TILE_BATCH) {
    bits<dtype, V> b[TILE_BATCH];
#pragma unroll
    for (int i = 0; i < TILE_BATCH; i++)
      if (r + i < p.size[1]) b[i].load(p.x, at + (int64_t)(r + i) * p.in[2]);
#pragma unroll
    for (int i = 0; i < TILE_BATCH; i++)
      if (r + i < p.size[1])
#pragma unroll
        for (int j = 0; j < V; j++) f[j] = taken<average>(f[j], b[i].get(j));
  }
  v = f[0];
#pragma unroll
  for (int j = 1; j < V; j++) v = taken<average>(v, f[j]);
  for (int apart = 1; apart < p.lanes; apart *= 2) v = taken<average>(v, __shfl_down_sync(~0u, v, apart));
  if (average) v *= 1 / ((float)p.size[1] * (float)p.size[2]);
  if (vector % p.lanes == 0) element_put<dtype>(p.y, ((int64_t)k * p.out[1] + o) * p.out[2] + vector / p.lanes, v);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { strips p; int32_t x, y; kernel kernel; };

template <int dtype, bool average, int V> static kernel choose_window(const strips &p)
{
  bool square = p.size[1] == p.size[2] && p.step[1] == p.step[2];
  int size = square ? p.size[1] : 0, step = p.step[1], before = p.before[2];
  if (size == 3 && step == 2 && before == 1) return (kernel)pool_strips<dtype, average, V, 3, 2, 1>;
  if (size == 3 && step == 2 && before == 0) return (kernel)pool_strips<dtype, average, V, 3, 2, 0>;
  if (size == 3 && step == 1 && before == 1) return (kernel)pool_strips<dtype, average, V, 3, 1, 1>;
  if (size == 2 && step == 2 && before == 0) return (kernel)pool_strips<dtype, average, V, 2, 2, 0>;
  return nullptr;
}
template <int dtype, bool average> static kernel choose_width(strips *p)
{
  constexpr int wide = vector_per_16<dtype>;
  int lanes = p->size[2] / wide;
  bool tiles = p->step[1] == p->size[1] && p->step[2] == p->size[2] && p->in[1] == p->out[1] * p->size[1] && p->in[2] == p->out[2] * p->size[2] && !p->before[1] &&
               !p->before[2] && p->size[2] % wide == 0 && lanes <= 32 && !(lanes & (lanes - 1));
  int V = p->in[2] % wide == 0 ? wide : 2;
  if (p->in[2] % V) return nullptr;
  p->vectors = p->in[2] / V;
  p->lanes = tiles ? lanes : 0;
  if (tiles) return (kernel)pool_tiles<dtype, average, wide>;
  return V == wide ? choose_window<dtype, average, wide>(*p) : choose_window<dtype, average, 2>(*p);
}
template <int dtype> static kernel choose(strips *p, bool average) { return average ? choose_width<dtype, true>(p) : choose_width<dtype, false>(p); }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = cuda_value(r, QN_ROLE_POOL_MAX_X), *y = cuda_value(r, QN_ROLE_POOL_MAX_Y);
  if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "another");
  if (pool_indices(op) >= 0) return qn_refuse(out, "no indices", "indices", "absent", "%s", "present");
  if (x->rank > 4) return qn_refuse(out, "1 or 2 spatial dims", "x", "2", "%d", x->rank - 2);
  if (!qn_is_packed(x) || !qn_is_packed(y)) return qn_refuse(out, "packed planes", "x", "nchw", "%s", "strides");
  if (x->align < 16 || y->align < 16) return qn_refuse(out, "16-byte alignment", "x", "16", "%u", x->align < y->align ? x->align : y->align);
  strips p = {};
  if (!pool_fill(&p, op, x, y)) return qn_refuse(out, "extents below 2^29", "x", "", "%s", "more");
  if (p.adaptive) return qn_refuse(out, "windows of one size", "x", "extents that y's divide", "%dx%d", p.in[1], p.in[2]);
  for (int d = 1; d < 3; d++)
    if (p.size[d] > 1 && p.dilation[d] != 1) return qn_refuse(out, "dilation 1", "x", "1", "%d", p.dilation[d]);
  bool average = pool_is_average(op->op);
  kernel kernel = x->dtype == QN_F32 ? choose<QN_F32>(&p, average) : x->dtype == QN_BF16 ? choose<QN_BF16>(&p, average) : choose<QN_F16>(&p, average);
  if (!kernel)
    return qn_refuse(out, "an even width, and small windows or such side by side that are a power of two of vectors wide", "x", "3x3 every 1 or 2, 2x2 every 2, 8 or 16 wide",
                     "%dx%d", p.size[1], p.size[2]);
  int V = p.in[2] / p.vectors, outputs = V / p.step[2];
  if (!p.lanes && p.out[2] > p.vectors * outputs) return qn_refuse(out, "outputs of a line above its vectors", "y", "fewer", "%d", p.out[2]);
  int64_t count = qn_elements(x) / ((int64_t)p.in[1] * p.in[2]);
  int64_t bands = 1, rows = BATCH / qn_min_i64(p.step[1], 2);       /* a band: whole steps of the loop */
  while (p.out[1] > 2 * rows * bands && count * p.vectors * bands < (int64_t)r->device->units * 3072) bands *= 2;
  p.band = (int32_t)qn_round_up(qn_ceil_div(p.out[1], bands), rows);
  p.bands = (int32_t)qn_ceil_div(p.out[1], p.band);
  double threads = (double)count * p.vectors * (p.lanes ? p.out[1] : p.bands);
  if (threads > INT32_MAX) return qn_refuse(out, "fewer than 2^31 threads", "x", "", "%s", "more");
  p.threads = (uint32_t)threads;
  bool even = p.include_pad;
  for (int d = 1; d < 3; d++) even &= (p.out[d] - 1) * p.step[d] + p.size[d] <= p.in[d] + p.before[d] + p.after[d];
  p.inverse = even ? 1 / ((float)p.size[1] * (float)p.size[2]) : 0;
  p.whole = !p.lanes && p.out[2] == p.vectors * outputs;
  state st = {};
  st.p = p, st.x = op->arg[0], st.y = op->arg[1], st.kernel = kernel;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  strips p = st->p;
  p.x = launch->ptr[st->x];
  p.y = launch->ptr[st->y];
  void *args[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, (p.threads + THREADS - 1) / THREADS, THREADS, args, 0, (cudaStream_t)launch->stream), "pool_strips");
}

#define ROW(op) { "strips", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX), ROW(QN_OP_POOL_AVERAGE), ROW(QN_OP_POOL_ADAPTIVE_MAX), ROW(QN_OP_POOL_ADAPTIVE_AVERAGE) };
const qn_engine_list cuda_pool_strips_list = { row, sizeof row / sizeof *row };
