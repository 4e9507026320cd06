/* lrn.cu -- local response normalization and its gradient; with means, divisive normalization.
 *
 *   y  = x b^-beta, b = k + alpha/n sum x^2        dx = g - 2 alpha beta/n x sum(g x/b), g = dy b^-beta, over the mirrored window
 *   with means m: (x - m)^2 for x^2, and sum(g' x'/b' (x - m')) for x sum(g x/b); dmeans = 2 alpha beta/n g x/b sum(x - m)
 *
 * windows: of three and five, packed, in registers, also with means: a thread makes some neighbours of some rows, and what lies beside them
 * comes from the lanes beside it. tiles: of any size, packed in either layout, a tile in shared memory by a block: the channels of some
 * places, or the planes of some channels, so that it has whole windows. Their sums are taken along one dim after the other, four neighbours
 * by a thread. direct: any strides and sizes, in double, an element by a thread; a gradient finds the sums of its neighbours' windows again.
 * Means in other windows, and planes too large for a tile: lrn_taps.cu. */
#include "cuda_backend.h"
#include "engines.h"
#include "lrn.cuh"
#include "spatial.cuh"
#include "vector.cuh"

enum { THREADS = 256, WINDOW_THREADS = 128, DIRECT_THREADS = 128, MOST_FLOATS = 12288 };        /* of one array of a tile: four of them fit a block */

struct tiles {
  const void *in, *x;                     /* in: dy, or x */
  void    *out;
  uint32_t dtype;
  int32_t  dims, before, after;           /* dims that the window covers; its reach */
  int32_t  elements, floats;              /* of a tile; with what rounds it up to vectors */
  int32_t  vectors, rows, shift;          /* are 16 bytes moved at once; the tile in memory: rows, 2^shift threads for each */
  int64_t  step, pitch;                   /* from row to row in memory, and in the tile */
  int64_t  length, tile_step, extent;     /* of a tile in a run; from group of tiles to group; of a group's runs */
  int32_t  one_run;                       /* rows go on where the one before ends */
  int64_t  tiles, blocks;                 /* all; in a group, `length` apart */
  dim      along[3];
  float    k, alpha, beta;                /* alpha/n */
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* V elements of a dtype that is known, as 16 bytes; or of any, alone. */
template <uint32_t dtype, int V> __device__ __forceinline__ void fetch(float (&v)[V], const tiles &s, const void *from, int64_t at)
{
  if constexpr (V == 1) load(v, from, s.dtype, at);
  else vector_load_whole<dtype>(v, from, at);
}
template <uint32_t dtype, int V> __device__ __forceinline__ void put(const float (&v)[V], const tiles &s, int64_t at)
{
  if constexpr (V == 1) store(v, s.out, s.dtype, at);
  else vector_store_whole<dtype>(v, s.out, at);
}

/* A thread's part of a tile: one column of vectors. */
template <int V> struct column {
  int32_t row, rows_apart, i, length, left;
  int64_t at;

  __device__ __forceinline__ column(const tiles &s, int64_t tile)
  {
    int64_t group = s.blocks == 1 ? tile : tile / s.blocks, block = (tile - group * s.blocks) * s.length;
    row = threadIdx.x >> s.shift, rows_apart = THREADS >> s.shift;
    i = (threadIdx.x & ((1 << s.shift) - 1)) * V;
    length = (int32_t)s.length, left = (int32_t)min(s.length, s.extent - block);
    at = group * s.tile_step + block + i;
  }
  /* Is there a vector in row r of the tile, and of memory? */
  __device__ __forceinline__ bool in_tile(const tiles &s, int32_t r) const { return r < s.rows && (s.one_run ? r * (int32_t)s.pitch + i : i) < length; }
  __device__ __forceinline__ bool there(const tiles &s, int32_t r) const { return r < s.rows && (s.one_run ? r * (int32_t)s.pitch + i : i) < left; }
};

template <uint32_t dtype, int V> __device__ __forceinline__ void load_as(float *to, const tiles &s, const void *from, int64_t tile)
{
  constexpr int BATCH = V == 8 ? 2 : 4;   /* loads in flight */
  column<V> c(s, tile);
  for (int32_t r = c.row; r < s.rows; r += BATCH * c.rows_apart) {
    float v[BATCH][V];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int32_t at = r + b * c.rows_apart;
#pragma unroll
      for (int j = 0; j < V; j++) v[b][j] = 0;
      if (c.there(s, at)) fetch<dtype>(v[b], s, from, c.at + at * s.step);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int32_t at = r + b * c.rows_apart;
      if (!c.in_tile(s, at)) continue;
      float *p = to + at * (int32_t)s.pitch + c.i;
      if constexpr (V == 1) p[0] = v[b][0];
      else
#pragma unroll
        for (int j = 0; j < V; j += 4) *(float4 *)(p + j) = make_float4(v[b][j], v[b][j + 1], v[b][j + 2], v[b][j + 3]);
    }
  }
}

template <uint32_t dtype, int V> __device__ __forceinline__ void store_as(const float *from, const tiles &s, int64_t tile)
{
  column<V> c(s, tile);
  for (int32_t r = c.row; r < s.rows; r += c.rows_apart) {
    const float *p = from + r * (int32_t)s.pitch + c.i;
    float v[V];
    if (!c.there(s, r)) continue;
    if constexpr (V == 1) v[0] = p[0];
    else
#pragma unroll
      for (int j = 0; j < V; j += 4) *(float4 *)(v + j) = *(const float4 *)(p + j);
    put<dtype>(v, s, c.at + r * s.step);
  }
}

__device__ __forceinline__ void load_tile(float *to, const tiles &s, const void *from, int64_t tile)
{
  if (!s.vectors) load_as<0, 1>(to, s, from, tile);
  else if (s.dtype == QN_F32) load_as<QN_F32, 4>(to, s, from, tile);
  else if (s.dtype == QN_BF16) load_as<QN_BF16, 8>(to, s, from, tile);
  else load_as<QN_F16, 8>(to, s, from, tile);
}

__device__ __forceinline__ void store_tile(const float *from, const tiles &s, int64_t tile)
{
  if (!s.vectors) store_as<0, 1>(from, s, tile);
  else if (s.dtype == QN_F32) store_as<QN_F32, 4>(from, s, tile);
  else if (s.dtype == QN_BF16) store_as<QN_BF16, 8>(from, s, tile);
  else store_as<QN_F16, 8>(from, s, tile);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

template <bool square> __device__ __forceinline__ void add(float (&sum)[4], float4 q)
{
  sum[0] += square ? q.x * q.x : q.x, sum[1] += square ? q.y * q.y : q.y;
  sum[2] += square ? q.z * q.z : q.z, sum[3] += square ? q.w * q.w : q.w;
}

/* sum[j] = the sum of from (or of its squares) over the window around element e + j along one dim. */
template <bool square> __device__ __forceinline__ void window(float (&sum)[4], const float *from, const dim &d, int32_t e, int32_t elements, int32_t back, int32_t ahead)
{
#pragma unroll
  for (int j = 0; j < 4; j++) sum[j] = 0;
  if (d.inner % 4 == 0) {                 /* the four are at one index */
    int32_t i = index_of(d, e);
    int32_t low = -min(back, i), high = min(ahead, d.n - 1 - i);
    if (high - low == 4) {                /* the usual window, whole */
#pragma unroll
      for (int o = 0; o < 5; o++) add<square>(sum, *(const float4 *)(from + e + (low + o) * d.inner));
    } else {
      for (int32_t o = low; o <= high; o++) add<square>(sum, *(const float4 *)(from + e + o * d.inner));
    }
  } else if (d.inner == 1 && d.n % 4 == 0 && back <= 4 && ahead <= 4) {       /* and here in one row, which has four or none more */
    int32_t i = index_of(d, e);
    float4 none = make_float4(0, 0, 0, 0), own = *(const float4 *)(from + e);
    float4 left = i ? *(const float4 *)(from + e - 4) : none, right = i + 4 < d.n ? *(const float4 *)(from + e + 4) : none;
    float w[12] = { left.x, left.y, left.z, left.w, own.x, own.y, own.z, own.w, right.x, right.y, right.z, right.w };
#pragma unroll
    for (int o = -4; o <= 4; o++)
      if (-o <= back && o <= ahead)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[j] += square ? w[4 + j + o] * w[4 + j + o] : w[4 + j + o];
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (e + j >= elements) continue;
      int32_t i = index_of(d, e + j), high = min(ahead, d.n - 1 - i);
      for (int32_t o = -min(back, i); o <= high; o++) {
        float v = from[e + j + o * d.inner];
        sum[j] += square ? v * v : v;
      }
    }
  }
}

template <bool backward> __global__ static void __launch_bounds__(THREADS) lrn_tile(const __grid_constant__ tiles s)
{
  extern __shared__ float4 shared[];
  int32_t elements = s.elements;
  float *x = (float *)shared, *to = x + s.floats, *g = backward ? to + s.floats : x, *other = (backward ? g : to) + s.floats, *from = x;
  int64_t tile = blockIdx.x;
  load_tile(g, s, s.in, tile);
  if (backward) load_tile(x, s, s.x, tile);
  __syncthreads();
  for (int d = 0; d < s.dims; d++) {
    for (int32_t e = 4 * threadIdx.x; e < elements; e += 4 * THREADS) {
      float sum[4];
      if (d == 0) window<true>(sum, from, s.along[0], e, elements, s.before, s.after);
      else window<false>(sum, from, s.along[d], e, elements, s.before, s.after);
      if (d == s.dims - 1) {
        float4 own = *(const float4 *)(g + e), at = *(const float4 *)(x + e);
        float v[4] = { own.x, own.y, own.z, own.w }, w[4] = { at.x, at.y, at.z, at.w };
#pragma unroll
        for (int j = 0; j < 4; j++) {
          float b = s.k + s.alpha * sum[j];
          v[j] *= power(b, s.beta);
          sum[j] = backward ? __fdividef(v[j] * w[j], b) : v[j];
        }
        if (backward) *(float4 *)(g + e) = make_float4(v[0], v[1], v[2], v[3]);
      }
      *(float4 *)(to + e) = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
    __syncthreads();
    from = to;
    to = other, other = from;
  }
  for (int d = 0; d < s.dims && backward; d++) {
    for (int32_t e = 4 * threadIdx.x; e < elements; e += 4 * THREADS) {
      float sum[4];
      window<false>(sum, from, s.along[d], e, elements, s.after, s.before);
      if (d == s.dims - 1) {
        float4 own = *(const float4 *)(g + e), at = *(const float4 *)(x + e);
        float by = 2 * s.alpha * s.beta;
        *(float4 *)(g + e) = make_float4(own.x - by * (at.x * sum[0]), own.y - by * (at.y * sum[1]), own.z - by * (at.z * sum[2]), own.w - by * (at.w * sum[3]));
      } else {
        *(float4 *)(to + e) = make_float4(sum[0], sum[1], sum[2], sum[3]);
      }
    }
    __syncthreads();
    from = to;
    to = other, other = from;
  }
  store_tile(backward ? g : from, s, tile);
}

/* ---- windows in registers ------------------------------------------------------------------------------------------- */

struct grids {
  const void *in, *x, *means;             /* in: dy, or x */
  void    *out, *dmeans;
  int32_t  rows, pitch;                   /* of a grid; elements of a row */
  divisor  by_width, by_strips;           /* vectors of a row; strips of S rows of a grid */
  uint32_t units;
  bool     bf16, quarters;                /* of 16 bits; is beta 3/4 */
  float    k, alpha, beta;                /* alpha/n */
};

/* V elements as they lie in memory, which is 16 or 32 bits for each. */
template <bool narrow, int V> struct words {
  static constexpr int N = narrow ? (V + 1) / 2 : V;
  uint32_t word[N];

  __device__ __forceinline__ void load(const void *from, int64_t at, bool there)
  {
#pragma unroll
    for (int i = 0; i < N; i++) word[i] = 0;
    if (!there) return;
    if constexpr (narrow && V == 1) word[0] = ((const uint16_t *)from)[at];
    else if constexpr (N == 1) word[0] = *(const uint32_t *)((const char *)from + at * (narrow ? 2 : 4));
    else {
      uint4 q = *(const uint4 *)((const char *)from + at * (narrow ? 2 : 4));
      word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
    }
  }
  __device__ __forceinline__ void open(float *v, bool bf16) const
  {
    if (!narrow) {
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = __uint_as_float(word[i]);
    } else if (bf16) {
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = __uint_as_float(i & 1 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = f16_to_float((uint16_t)(word[i / 2] >> 16 * (i & 1)));
    }
  }
  __device__ __forceinline__ void close(const float *v, bool bf16)
  {
#pragma unroll
    for (int i = 0; i < N; i++) {
      if (!narrow) word[i] = __float_as_uint(v[i]);
      else if (bf16) word[i] = pack_bf16(v[2 * i], V == 1 ? 0 : v[(2 * i + 1) % V]);
      else word[i] = pack_f16(v[2 * i], V == 1 ? 0 : v[(2 * i + 1) % V]);
    }
  }
  __device__ __forceinline__ void store(void *to, int64_t at) const
  {
    if constexpr (narrow && V == 1) ((uint16_t *)to)[at] = (uint16_t)word[0];
    else if constexpr (N == 1) *(uint32_t *)((char *)to + at * (narrow ? 2 : 4)) = word[0];
    else *(uint4 *)((char *)to + at * (narrow ? 2 : 4)) = make_uint4(word[0], word[1], word[2], word[3]);
  }
};

/* Where a thread is. Of windows that reach across a row, lanes 0 and 31 only lend what they hold. */
template <int V, int S, bool lanes> struct spot {
  int32_t row;
  int64_t at;                             /* of its first row's element */
  bool first, last, makes;                /* in its row; does it make something */

  __device__ __forceinline__ spot(const grids &s)
  {
    uint32_t thread = blockIdx.x * WINDOW_THREADS + threadIdx.x, lane = threadIdx.x & 31, unit = thread, column, strip;
    if (lanes) unit = (uint32_t)max((int32_t)(thread / 32 * 30 + lane) - 1, 0);
    makes = unit < s.units && !(lanes && (lane == 0 || lane == 31));
    uint32_t line = s.by_width.of(min(unit, s.units - 1), &column), grid = s.by_strips.of(line, &strip);
    row = strip * S;
    at = ((int64_t)grid * s.rows + row) * s.pitch + column * V;
    first = column == 0, last = column * V + V == s.pitch;
  }
};

/* v between H elements of the lane before and H of the next; 0 beyond the row. */
template <int V, int H> __device__ __forceinline__ void widen(float (&w)[V + 2 * H], const float (&v)[V], bool first, bool last)
{
#pragma unroll
  for (int i = 0; i < V; i++) w[H + i] = v[i];
#pragma unroll
  for (int i = 0; i < H; i++) {
    float before = __shfl_up_sync(~0u, v[V - H + i], 1), after = __shfl_down_sync(~0u, v[i], 1);
    w[i] = first ? 0 : before, w[H + V + i] = last ? 0 : after;
  }
}

/* p = b^-beta, root = b^-1/2. */
template <int V> __device__ __forceinline__ void powers(float (&p)[V], float (&root)[V], const float (&b)[V], const grids &s)
{
#pragma unroll
  for (int j = 0; j < V; j++) asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root[j]) : "f"(b[j]));
  if (s.quarters) {
#pragma unroll
    for (int j = 0; j < V; j++) {
      asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(p[j]) : "f"(root[j]));
      p[j] *= root[j];
    }
  } else {
#pragma unroll
    for (int j = 0; j < V; j++) p[j] = power(b[j], s.beta);
  }
}

template <bool narrow, int V, int A, int B, int S, bool divisive, bool backward> __global__ static void __launch_bounds__(WINDOW_THREADS) lrn_windows(const __grid_constant__ grids s)
{
  constexpr int R = A / 2, H = B / 2, T = backward ? S + 2 * R : S, ROWS = T + 2 * R;         /* windows; rows of x */
  spot<V, S, (B > 1)> at(s);
  int32_t top = at.row - (backward ? R : 0);              /* of the first window's middle */
  words<narrow, V> x[ROWS], dy[backward ? T : 1], m[divisive ? T : 1], o;
#pragma unroll
  for (int i = 0; i < ROWS; i++) x[i].load(s.x, at.at + (int64_t)(top - R + i - at.row) * s.pitch, (uint32_t)(top - R + i) < (uint32_t)s.rows);
#pragma unroll
  for (int t = 0; t < T; t++) {
    bool there = (uint32_t)(top + t) < (uint32_t)s.rows;
    int64_t place = at.at + (int64_t)(top + t - at.row) * s.pitch;
    if (backward) dy[t].load(s.in, place, there);
    if (divisive) m[t].load(s.means, place, there);
  }

  float sum[T][V], distance[divisive && backward ? T : 1][V], g[T][V], gathered[backward ? S : 1][V], by = 2 * s.alpha * s.beta;
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    float v[V], w[V + 2 * H];
    x[i].open(v, s.bf16);
    widen<V, H>(w, v, at.first, at.last);
    bool there = (uint32_t)(top - R + i) < (uint32_t)s.rows;
#pragma unroll
    for (int j = 0; j < V; j++) {                         /* a window begins with row i */
      if (i < T) sum[i % T][j] = 0;
      if (divisive && backward && i < T) distance[i % T][j] = 0;
    }
    if constexpr (!divisive) {
#pragma unroll
      for (int j = 0; j < V; j++) {
        float q = w[j] * w[j];
#pragma unroll
        for (int b = 1; b < B; b++) q += w[j + b] * w[j + b];
#pragma unroll
        for (int t = 0; t < T; t++)
          if (t <= i && i < t + A) sum[t][j] += q;
      }
    } else if (there) {
#pragma unroll
      for (int t = 0; t < T; t++)
        if (t <= i && i < t + A) {
          float mean[V];
          m[t].open(mean, s.bf16);
#pragma unroll
          for (int j = 0; j < V; j++)
#pragma unroll
            for (int b = 0; b < B; b++) {
              float d = w[j + b] - mean[j];
              if ((j + b < H && at.first) || (j + b >= H + V && at.last)) d = 0;
              sum[t][j] += d * d;
              if constexpr (backward) distance[t][j] += d;
            }
        }
    }

    constexpr int none = 0;
    const int t = i - 2 * R, u = t - 2 * R;               /* whose window is whole now, and of these windows that hold it */
    if (t < none) continue;
    float b[V], p[V], root[V];
    x[t + R].open(v, s.bf16);
#pragma unroll
    for (int j = 0; j < V; j++) b[j] = s.k + s.alpha * sum[t][j];
    powers<V>(p, root, b, s);
    if constexpr (!backward) {
#pragma unroll
      for (int j = 0; j < V; j++) v[j] *= p[j];
      o.close(v, s.bf16);
      if (at.makes && at.row + t < s.rows) o.store(s.out, at.at + (int64_t)t * s.pitch);
    } else {
      float r[V], mean[V], wide_mean[V + 2 * H];
      dy[t].open(g[t], s.bf16);
#pragma unroll
      for (int j = 0; j < V; j++) {
        g[t][j] *= p[j];
        r[j] = g[t][j] * v[j] * (root[j] * root[j]);
        if (t < S) gathered[t % S][j] = 0;
      }
      widen<V, H>(w, r, at.first, at.last);
      if constexpr (divisive) {
        m[t].open(mean, s.bf16);
        widen<V, H>(wide_mean, mean, at.first, at.last);
        if (t >= R && t < R + S && s.dmeans && at.makes && top + t < s.rows) {
#pragma unroll
          for (int j = 0; j < V; j++) r[j] = by * (r[j] * distance[t][j]);
          o.close(r, s.bf16);
          o.store(s.dmeans, at.at + (int64_t)(t - R) * s.pitch);
        }
      }
#pragma unroll
      for (int c = 0; c < S; c++)
        if (c <= t && t < c + A) {
          x[c + 2 * R].open(v, s.bf16);
#pragma unroll
          for (int j = 0; j < V; j++)
#pragma unroll
            for (int d = 0; d < B; d++) gathered[c][j] += divisive ? w[j + d] * (v[j] - wide_mean[j + d]) : w[j + d];
        }
      if (u < 0) continue;
      x[u + 2 * R].open(v, s.bf16);
#pragma unroll
      for (int j = 0; j < V; j++) v[j] = g[u + R][j] - by * (divisive ? gathered[u][j] : v[j] * gathered[u][j]);
      o.close(v, s.bf16);
      if (at.makes && at.row + u < s.rows) o.store(s.out, at.at + (int64_t)u * s.pitch);
    }
  }
}

/* ---- direct ------------------------------------------------------------------------------------------------------ */

struct problem {
  grid    x, means, dy, out, dmeans;      /* means, dmeans: p is NULL where there are none */
  int64_t elements, first[5], count[5];   /* offsets of a window that may lie in x: from, how many */
  double  k, alpha, beta;                 /* alpha/n */

  __device__ int64_t taps() const { return count[0] * count[1] * count[2] * count[3] * count[4]; }
  __device__ int64_t offset(const grid &t, const int64_t at[5]) const { return t.at(at[0], at[1], at + 2); }
  /* Tap t of the window around `at`, or of the mirrored one. */
  __device__ bool tap(const int64_t at[5], int64_t t, bool mirrored, int64_t to[5]) const
  {
    bool inside = true;
    for (int d = 4; d >= 0; d--) {
      int64_t q = t / count[d], o = first[d] + t - q * count[d];
      t = q;
      to[d] = mirrored ? at[d] - o : at[d] + o;
      inside &= to[d] >= 0 && to[d] < x.dim[d];
    }
    return inside;
  }
  __device__ double mean(const int64_t at[5]) const { return means.p ? means.load<double>(offset(means, at)) : 0; }
  /* The sum of x - m over the window around `at`, or of its squares. */
  __device__ double distances(const int64_t at[5], bool squared) const
  {
    double sum = 0, m = mean(at);
    int64_t to[5];
    for (int64_t t = 0; t < taps(); t++)
      if (tap(at, t, false, to)) {
        double v = x.load<double>(offset(x, to)) - m;
        sum += squared ? v * v : v;
      }
    return sum;
  }
  __device__ double base(const int64_t at[5]) const { return k + alpha * distances(at, true); }
  /* dy x b^-(beta+1) */
  __device__ double share(const int64_t at[5]) const { return dy.load<double>(offset(dy, at)) * x.load<double>(offset(x, at)) * pow(base(at), -beta - 1); }
};

template <bool backward> __global__ static void __launch_bounds__(DIRECT_THREADS) lrn_direct(const __grid_constant__ problem s)
{
  for (int64_t i = blockIdx.x * (int64_t)DIRECT_THREADS + threadIdx.x; i < s.elements; i += (int64_t)gridDim.x * DIRECT_THREADS) {
    int64_t at[5], from[5], rest = i;
    for (int d = 4; d >= 0; d--) at[d] = rest % s.x.dim[d], rest /= s.x.dim[d];
    double v = s.x.load<double>(s.offset(s.x, at)), f = pow(s.base(at), -s.beta), sum = 0;
    if (backward) {
      for (int64_t t = 0; t < s.taps(); t++)
        if (s.tap(at, t, true, from)) sum += s.share(from) * (v - s.mean(from));
      v = s.dy.load<double>(s.offset(s.dy, at)) * f - 2 * s.alpha * s.beta * sum;
      if (s.dmeans.p) s.dmeans.store(s.offset(s.dmeans, at), 2 * s.alpha * s.beta * (s.share(at) * s.distances(at, false)));
    } else {
      v *= f;
    }
    s.out.store(s.offset(s.out, at), v);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct tiles_state { tiles s; const void *kernel; roles at; uint32_t shared; };

static const void *const kernels[] = { (const void *)lrn_tile<false>, (const void *)lrn_tile<true> };

/* Neighbours that a tile takes of `extent` that its window does not cover, beside `rest` that it does: some rows of 128 bytes. */
static int64_t breadth(int64_t extent, int64_t rest, uint32_t dtype)
{
  int64_t n = dtype == QN_F32 ? 32 : 64;
  while (n < 256 && n * rest < 2048) n *= 2;
  while (n > 4 && n * rest > 8192) n /= 2;
  return qn_min_i64(n, qn_round_up(extent, 4));
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  bool backward = op->op == QN_OP_LRN_BACKWARD, within = a->region == QN_LOCAL_WITHIN;
  tiles_state st = { {}, NULL, roles_of(op), 0 };
  tiles *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  if (st.at.means >= 0) return qn_refuse(out, "sums are of x alone", "means", "none", "%s", "some");
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  bool packed = qn_is_packed(x), alike = packed || qn_is_channels_last(x), aligned = true;
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) alike &= qn_same_layout(x, &r->value[op->arg[i]]), aligned &= r->value[op->arg[i]].align >= 16;
  if (!alike) return qn_refuse(out, "tensors are packed and alike, channels first or last", "x", "one layout", "%s", "strides");
  int64_t places = 1, channels = x->dim[1], images = x->dim[0], length, runs = 1;
  for (int d = 2; d < x->rank; d++) places *= x->dim[d];
  bool last = !packed || places == 1;
  double all = (double)images * (double)channels * (double)places, n = 1;
  if ((within ? places : channels) > MOST_FLOATS) return qn_refuse(out, "a window's dims lie in shared memory", "x", "12288 places at most", "%lld", (long long)(within ? places : channels));
  s->dtype = x->dtype;
  s->before = (int32_t)qn_min_i64((a->size - 1) / 2, MOST_FLOATS), s->after = (int32_t)qn_min_i64(a->size / 2, MOST_FLOATS);
  if (within ? !last : last) {            /* what a window covers lies together: a tile is some of those, one after the other */
    int64_t whole = within ? places : channels;
    length = qn_max_i64(1, 4096 / whole) * whole;
    s->tile_step = 0, s->step = 0, s->extent = images * channels * places, s->tiles = 1;
  } else {
    int64_t beside = last ? channels : places;
    runs = last ? places : channels;
    length = breadth(beside, runs, x->dtype);
    s->step = s->extent = beside;
    s->tile_step = places * channels, s->tiles = images;
  }
  if (within) {
    s->dims = x->rank - 2;
    int64_t inner = last ? length : 1;
    for (int d = s->dims - 1; d >= 0; inner *= x->dim[2 + d], d--) set_dim(&s->along[d], x->dim[2 + d], inner), n *= (double)a->size;
  } else {
    s->dims = 1, n = (double)a->size;
    set_dim(&s->along[0], channels, last ? 1 : length);
  }
  int64_t v = x->dtype == QN_F32 ? 4 : 8;
  s->vectors = length % v == 0 && s->step % v == 0 && s->extent % v == 0 && s->tile_step % v == 0 && aligned;
  if (!s->vectors) v = 1;
  s->elements = (int32_t)(runs * length), s->floats = (int32_t)qn_round_up(runs * length, 4);
  s->length = length;
  s->one_run = runs == 1;
  s->pitch = s->one_run ? THREADS * v : length;
  s->rows = (int32_t)(s->one_run ? qn_ceil_div(length, s->pitch) : runs);
  if (s->one_run) s->step = s->pitch;
  while (s->shift < 8 && v << s->shift < length) s->shift++;
  s->blocks = qn_ceil_div(s->extent, length);
  s->tiles *= s->blocks;
  s->k = (float)a->k, s->alpha = (float)(a->alpha / n), s->beta = (float)a->beta;
  st.shared = (uint32_t)(s->floats * ((backward ? 3 : 2) + (s->dims > 1)) * 4);
  if (st.shared > r->device->shared_per_block || s->tiles > 0x7fffffff)
    return qn_refuse(out, "a tile lies in shared memory", "x", "fewer places in a window's dims", "%u bytes", st.shared);
  st.kernel = kernels[backward];
  out->estimate = 2500 + all * op->first[op->n_roles] * (double)qn_kit_bytes(x->dtype) / 3500;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *r, qn_prepared *p)
{
  const tiles_state *st = (const tiles_state *)p->state;
  return cuda_check(cudaFuncSetAttribute(st->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)r->device->shared_per_block), "lrn");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const tiles_state *st = (const tiles_state *)p->state;
  tiles s = st->s;
  s.in = launch->ptr[st->at.in], s.x = launch->ptr[st->at.x], s.out = launch->ptr[st->at.out];
  void *args[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3((unsigned)s.tiles), dim3(THREADS), args, st->shared, (cudaStream_t)launch->stream), "lrn");
}

struct windows_state { grids s; const void *kernel; roles at; unsigned blocks; };

struct shape { uint8_t narrow, v, down, across, divisive, rows[2]; const void *kernel[2]; };      /* rows, kernel: forward, backward */

template <bool narrow, int V, int A, int B, bool divisive, int F, int G> constexpr shape shape_of()
{
  return { narrow, V, A, B, divisive, { F, G }, { (const void *)lrn_windows<narrow, V, A, B, F, divisive, false>, (const void *)lrn_windows<narrow, V, A, B, G, divisive, true> } };
}

static const shape shapes[] = {
  shape_of<false, 1, 5, 1, false, 8, 8>(), shape_of<true, 2, 5, 1, false, 8, 8>(), shape_of<true, 1, 5, 1, false, 8, 8>(),
  shape_of<false, 4, 1, 5, false, 2, 1>(), shape_of<true, 8, 1, 5, false, 2, 1>(),
  shape_of<false, 4, 3, 3, false, 4, 4>(), shape_of<true, 8, 3, 3, false, 4, 4>(),
  shape_of<false, 4, 5, 5, false, 4, 4>(), shape_of<true, 8, 5, 5, false, 4, 4>(),
  shape_of<false, 4, 5, 5, true, 4, 4>(), shape_of<true, 8, 5, 5, true, 4, 2>(),
};

static qn_status windows_prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  bool backward = op->op == QN_OP_LRN_BACKWARD, within = a->region == QN_LOCAL_WITHIN, alike = true;
  windows_state st = { {}, NULL, roles_of(op), 0 };
  grids *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  bool narrow = x->dtype != QN_F32, divisive = st.at.means >= 0, packed = qn_is_packed(x);
  uint32_t align = 16;
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    alike &= qn_same_layout(x, v), align = v->align < align ? v->align : align;
  }
  if (!alike || !(packed || (!within && qn_is_channels_last(x)))) return qn_refuse(out, "tensors are packed and alike", "x", within ? "channels first" : "one layout", "%s", "strides");
  if (within && x->rank != 4) return qn_refuse(out, "windows lie in planes", "x", "rank 4", "%d", (int)x->rank);
  if (!(a->k >= 1e-30 && a->alpha >= 0)) return qn_refuse(out, "what is raised to a power is no subnormal", "", "k of 1e-30 or more, alpha of 0 or more", "k=%g", a->k);
  int64_t all = qn_elements(x), channels = x->dim[1], places = all / x->dim[0] / channels, rows = x->dim[0] * places, pitch = channels;
  bool last = !packed || places == 1;
  if (within) rows = x->dim[2], pitch = x->dim[3];
  else if (!last) rows = channels, pitch = places;
  if (all > 0x7fffffff) return qn_refuse(out, "elements are counted in 31 bits", "x", "fewer", "%lld", (long long)all);
  int64_t down = within || !last ? a->size : 1, across = within || last ? a->size : 1;
  for (const shape *k = shapes; !st.kernel && k < shapes + sizeof shapes / sizeof *shapes; k++) {
    if (k->narrow != narrow || k->down != down || k->across != across || k->divisive != divisive) continue;
    if (pitch % k->v != 0 || align < (uint32_t)k->v * (narrow ? 2 : 4)) continue;
    int64_t strips = qn_ceil_div(rows, k->rows[backward]), units = all / (rows * pitch) * strips * (pitch / k->v);
    s->by_width = divisor_of(pitch / k->v), s->by_strips = divisor_of(strips), s->units = (uint32_t)units;
    st.kernel = k->kernel[backward], st.blocks = (unsigned)qn_ceil_div(qn_ceil_div(units, across > 1 ? 30 : 32), WINDOW_THREADS / 32);
  }
  if (!st.kernel) return qn_refuse(out, "windows and vectors are those that kernels were made for", "x", "size 5 (within also 3), rows of whole vectors of 16 bytes", "size %lld", (long long)a->size);
  s->rows = (int32_t)rows, s->pitch = (int32_t)pitch;
  s->bf16 = x->dtype == QN_BF16, s->quarters = a->beta == 0.75;
  s->k = (float)a->k, s->alpha = (float)(a->alpha / (double)(within ? a->size * a->size : a->size)), s->beta = (float)a->beta;
  out->estimate = 2200 + (double)all * op->first[op->n_roles] * (double)qn_kit_bytes(x->dtype) / 3700;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status windows_run(const qn_prepared *p, const qn_launch *launch)
{
  const windows_state *st = (const windows_state *)p->state;
  grids s = st->s;
  s.in = launch->ptr[st->at.in], s.x = launch->ptr[st->at.x], s.out = launch->ptr[st->at.out];
  if (st->at.means >= 0) s.means = launch->ptr[st->at.means];
  if (st->at.dmeans >= 0) s.dmeans = launch->ptr[st->at.dmeans];
  void *args[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks), dim3(WINDOW_THREADS), args, 0, (cudaStream_t)launch->stream), "lrn");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_local_norm *a = (const qn_local_norm *)k->attr;
  bool backward = k->op == QN_OP_LRN_BACKWARD;
  tensor x = direct_tensor(k, launch, QN_ROLE_LRN_X + backward, 0);
  problem s = {};
  s.x = direct_grid(x);
  s.dy = direct_grid(direct_tensor(k, launch, 0, 0));
  s.out = direct_grid(direct_tensor(k, launch, QN_ROLE_LRN_Y + backward, 0));
  s.means = direct_grid(direct_tensor(k, launch, QN_ROLE_LRN_MEANS + backward, 0));
  if (backward) s.dmeans = direct_grid(direct_tensor(k, launch, QN_ROLE_LRN_BACKWARD_DMEANS, 0));
  s.elements = direct_elements(x);
  s.k = a->k, s.alpha = a->alpha, s.beta = a->beta;
  for (int d = 0; d < 5; d++) {
    bool covered = a->region == QN_LOCAL_ACROSS ? d == 1 : d >= 7 - x.rank;
    int64_t size = covered ? a->size : 1;
    s.first[d] = -qn_min_i64((size - 1) / 2, s.x.dim[d] - 1);
    s.count[d] = qn_min_i64(size / 2, s.x.dim[d] - 1) - s.first[d] + 1;
    s.alpha /= (double)size;
  }
  unsigned blocks = direct_blocks(s.elements, DIRECT_THREADS);
  if (backward) lrn_direct<true><<<blocks, DIRECT_THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  else lrn_direct<false><<<blocks, DIRECT_THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("lrn");
}

#define ROWS(op)                                                                                                                 \
  { "windows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,          \
    windows_prepare, nullptr, windows_run, cuda_release },                                                                        \
  { "tiles", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,            \
    prepare, build, run, cuda_release },                                                                                         \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_LRN), ROWS(QN_OP_LRN_BACKWARD) };
const qn_engine_list cuda_lrn_list = { row, sizeof row / sizeof *row };
