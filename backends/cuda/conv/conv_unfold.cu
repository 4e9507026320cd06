/* conv_unfold.cu -- gathers the windows of a convolution into the rows of a matrix, and adds such rows up again.
 *
 *   tiles   any layout: a block turns 64 windows by 64 taps through shared memory; read along the windows, written along the taps.
 *           Where cols is contiguous along the windows, nothing is turned
 *   runs    where 4 to 16 bytes of a window are contiguous in x and never straddle its edge: a thread moves one such unit; but units of
 *           less than 16 bytes of a row of x are turned by tiles
 *   fold    a thread adds the taps that hold one element of x, or four neighbouring channels */
#include <climits>
#include <type_traits>
#include "conv_unfold.h"
#include "kit/divisor.h"
#include "kit/vector.cuh"

enum { TILE = 64, THREADS = 256, WARPS = THREADS / 32, OUTSIDE = INT_MIN / 2 };

struct unfolding {
  cuda_unfold u;
  cuda_divisor groups, windows, out[2];   /* out: H, W */
  cuda_divisor units, channels, size[2];  /* runs: units of a row, of a pixel's channels, and of taps (H, W) */
  uint32_t total, tiles;                  /* runs: units in all; tiles: along k */
};

/* A window's first tap, or a tap within a window: offset in x and position. */
struct spot { int32_t offset, at[3]; };

__device__ __forceinline__ spot window_of(const unfolding &f, uint32_t p)
{
  const cuda_unfold &u = f.u;
  uint32_t o[3];
  o[0] = cuda_quotient(cuda_quotient(p, f.out[1], &o[2]), f.out[0], &o[1]);
  spot s = {};
#pragma unroll
  for (int d = 0; d < 3; d++) {
    s.at[d] = (int32_t)o[d] * u.step[d] - u.before[d];
    s.offset += s.at[d] * (int32_t)u.x_stride[2 + d];
  }
  return s;
}

__device__ __forceinline__ bool inside(const cuda_unfold &u, const spot &window, const spot &tap)
{
  bool in = true;
#pragma unroll
  for (int d = 0; d < 3; d++) in &= (uint32_t)(window.at[d] + tap.at[d]) < (uint32_t)u.in[d];
  return in;
}

/* ---- tiles ---------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ spot tap_of(const cuda_unfold &u, int k)
{
  if (k >= u.k) return spot{ 0, { OUTSIDE, 0, 0 } };
  int c = u.last ? k % u.channels : 0, rest = u.last ? k / u.channels : k, r[3];
  r[2] = rest % u.size[2], rest /= u.size[2];
  r[1] = rest % u.size[1], rest /= u.size[1];
  r[0] = rest % u.size[0];
  if (!u.last) c = rest / u.size[0];
  spot s = { c * (int32_t)u.x_stride[1], {} };
#pragma unroll
  for (int d = 0; d < 3; d++) {
    s.at[d] = r[d] * u.dilation[d];
    s.offset += s.at[d] * (int32_t)u.x_stride[2 + d];
  }
  return s;
}

/* across: cols is contiguous along the windows. back: x is written from cols. */
template <class T, bool across, bool back>
__global__ void __launch_bounds__(THREADS) unfold_tiles(const __grid_constant__ unfolding f, T *x, T *cols)
{
  constexpr int PITCH = TILE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1), EACH = sizeof(T) < 4 ? 4 / sizeof(T) : 1, LINE = TILE / EACH;
  __shared__ spot taps[TILE];
  __shared__ __align__(8) T tile[across ? 1 : TILE][PITCH];
  const cuda_unfold &u = f.u;
  const uint32_t tile_p = blockIdx.x / f.tiles, k0 = (blockIdx.x - tile_p * f.tiles) * TILE, p0 = tile_p * TILE;
  uint32_t g, n = cuda_quotient(blockIdx.y, f.groups, &g);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  x += n * u.x_stride[0] + (int64_t)g * u.channels * u.x_stride[1];
  cols += n * u.n_step + g * u.g_step;
  if (threadIdx.x < TILE) taps[threadIdx.x] = tap_of(u, k0 + threadIdx.x);
  spot window[2];
#pragma unroll
  for (int j = 0; j < 2; j++) {
    const uint32_t p = p0 + lane + 32 * j;
    window[j] = window_of(f, p);
    if (p >= f.windows.by) window[j].at[0] = OUTSIDE;
  }
  /* elements of a row, in words; those beyond k, within the row's pitch, are of no use to anyone */
  auto along = [&](auto move) {
#pragma unroll
    for (int i = 0; i < TILE * LINE / THREADS; i++) {
      const int e = i * THREADS + threadIdx.x, row = e / LINE, k = e % LINE * EACH;
      if (p0 + row < f.windows.by && (int)k0 + k < u.k) move(&cols[(p0 + row) * u.p_step + k0 + k], &tile[row][k]);
    }
  };
  typedef typename std::conditional<sizeof(T) == 8, uint64_t, uint32_t>::type word;
  if (back) along([](T *from, T *to) { *(word *)to = *(const word *)from; });
  __syncthreads();
#pragma unroll
  for (int i = 0; i < TILE / WARPS; i++) {
    const int k = warp + i * WARPS;
    const spot tap = taps[k];
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const bool there = inside(u, window[j], tap);
      const int64_t from = window[j].offset + tap.offset;
      if (back) {
        if (there) x[from] = tile[lane + 32 * j][k];
      } else if (!across) tile[lane + 32 * j][k] = there ? x[from] : 0;
      else if (p0 + lane + 32 * j < f.windows.by && (int)k0 + k < u.k)
        cols[(int64_t)(k0 + k) * u.k_step + p0 + lane + 32 * j] = there ? x[from] : 0;
    }
  }
  if (back || across) return;
  __syncthreads();
  along([](T *to, const T *from) { *(word *)to = *(const word *)from; });
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

template <class U, bool back>
__global__ void __launch_bounds__(THREADS) unfold_runs(const __grid_constant__ unfolding f, char *x, char *cols, int each)
{
  const cuda_unfold &u = f.u;
  U v[2];
  char *at[2] = {};
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const uint32_t e = blockIdx.x * (2 * THREADS) + i * THREADS + threadIdx.x;
    if (e >= f.total) break;
    uint32_t unit, p, g, c = 0, r[3];
    const uint32_t row = cuda_quotient(e, f.units, &unit), plane = cuda_quotient(row, f.windows, &p);
    const uint32_t n = cuda_quotient(plane, f.groups, &g);
    const spot window = window_of(f, p);
    uint32_t rest = unit;
    if (u.last) rest = cuda_quotient(rest, f.channels, &c);
    r[0] = cuda_quotient(cuda_quotient(rest, f.size[1], &r[2]), f.size[0], &r[1]);
    if (!u.last) c = r[0] / u.size[0], r[0] -= c * u.size[0], r[2] *= each;
    else c *= each;
    spot tap = { (int32_t)c * (int32_t)u.x_stride[1], {} };
#pragma unroll
    for (int d = 0; d < 3; d++) {
      tap.at[d] = (int32_t)r[d] * u.dilation[d];
      tap.offset += tap.at[d] * (int32_t)u.x_stride[2 + d];
    }
    char *in_x = x + (n * u.x_stride[0] + (int64_t)g * u.channels * u.x_stride[1] + window.offset + tap.offset) * u.bytes;
    char *in_cols = cols + (n * u.n_step + g * u.g_step + p * u.p_step + (int64_t)unit * each) * u.bytes;
    const bool there = inside(u, window, tap);
    v[i] = U{};
    if (back) {
      if (there) v[i] = *(const U *)in_cols, at[i] = in_x;
    } else {
      if (there) v[i] = *(const U *)in_x;
      at[i] = in_cols;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; i++)
    if (at[i]) *(U *)at[i] = v[i];
}

/* ---- fold ------------------------------------------------------------------------------------------------------- */

struct folding {
  cuda_unfold u;
  cuda_divisor in[3], channels;           /* channels: of all groups, in vectors */
  int32_t every[3], back[3];              /* from one tap that holds an element to the next: taps, and windows back */
  uint32_t total, dtype;
};

/* The first tap along d whose window may hold position q (of the first window's begin), and that window; size: none. */
__device__ __forceinline__ int first_tap(const folding &f, int d, int q, int *p)
{
  const int step = f.u.step[d];
  int r = 0;
  if (f.u.dilation[d] == 1) r = (q % step + step) % step;
  else
    while (r < f.every[d] && (q - r * f.u.dilation[d]) % step) r++;
  if (r >= f.every[d]) return INT_MAX / 2;
  *p = (q - r * f.u.dilation[d]) / step;
  return r;
}

template <class T, int V> __global__ void __launch_bounds__(THREADS) unfold_fold(const __grid_constant__ folding f, void *x, const T *cols)
{
  const cuda_unfold &u = f.u;
  const uint32_t e = blockIdx.x * THREADS + threadIdx.x;
  if (e >= f.total) return;
  uint32_t at[3], c, rest = e;
  if (u.last) rest = cuda_quotient(rest, f.channels, &c);
#pragma unroll
  for (int d = 2; d >= 0; d--) rest = cuda_quotient(rest, f.in[d], &at[d]);
  if (!u.last) rest = cuda_quotient(rest, f.channels, &c);
  c *= V;
  const uint32_t n = rest, g = c / u.channels, of = c - g * u.channels;
  const T *from = cols + n * u.n_step + g * u.g_step;
  int r0[3], p0[3];
#pragma unroll
  for (int d = 0; d < 3; d++) r0[d] = first_tap(f, d, (int)at[d] + u.before[d], &p0[d]);
  T sum[V] = {};
  for (int r = r0[0], o = p0[0]; r < u.size[0]; r += f.every[0], o -= f.back[0]) {
    if ((uint32_t)o >= (uint32_t)u.out[0]) continue;
    for (int s = r0[1], p = p0[1]; s < u.size[1]; s += f.every[1], p -= f.back[1]) {
      if ((uint32_t)p >= (uint32_t)u.out[1]) continue;
      const int64_t row = ((int64_t)o * u.out[1] + p) * u.out[2];
      const int tap = ((u.last ? 0 : (int)of * u.size[0]) + r) * u.size[1] + s;
      for (int t = r0[2], q = p0[2]; t < u.size[2]; t += f.every[2], q -= f.back[2]) {
        if ((uint32_t)q >= (uint32_t)u.out[2]) continue;
        int64_t k = (int64_t)tap * u.size[2] + t;
        if (u.last) k = k * u.channels + of;
        const T *term = from + (row + q) * u.p_step + k * u.k_step;
        if constexpr (V == 4) {
          const float4 v = *(const float4 *)term;
          sum[0] += v.x, sum[1] += v.y, sum[2] += v.z, sum[3] += v.w;
        } else sum[0] += *term;
      }
    }
  }
  const int64_t to = n * u.x_stride[0] + c * u.x_stride[1] + at[0] * u.x_stride[2] + at[1] * u.x_stride[3] + at[2] * u.x_stride[4];
  if constexpr (V == 4) vector_store(sum, x, f.dtype, to, 1, V);
  else if constexpr (T(0.5f) == T(0)) element_store_wrapped(x, to, f.dtype, sum[0]);
  else element_store(x, to, f.dtype, sum[0]);
}

/* ---- join ------------------------------------------------------------------------------------------------------- */

struct joining { int64_t n, parts, stride[5]; int32_t channels, size[3], last; uint32_t dtype; };

template <class T> __global__ void __launch_bounds__(THREADS) unfold_join(const __grid_constant__ joining j, void *dw, const T *from)
{
  const int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x;
  if (i >= j.n) return;
  T sum = 0;
#pragma unroll 8
  for (int64_t p = 0; p < j.parts; p++) sum += from[p * j.n + i];
  int64_t rest = i;
  int c = 0, r[3];
  if (j.last) c = (int)(rest % j.channels), rest /= j.channels;
#pragma unroll
  for (int d = 2; d >= 0; d--) r[d] = (int)(rest % j.size[d]), rest /= j.size[d];
  if (!j.last) c = (int)(rest % j.channels), rest /= j.channels;
  const int64_t to = rest * j.stride[0] + c * j.stride[1] + r[0] * j.stride[2] + r[1] * j.stride[3] + r[2] * j.stride[4];
  if constexpr (T(0.5f) == T(0)) element_store_wrapped(dw, to, j.dtype, sum);
  else element_store(dw, to, j.dtype, sum);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

static unfolding describe(const cuda_unfold *u)
{
  unfolding f = {};
  f.u = *u;
  f.groups = cuda_divide_by(u->groups);
  f.windows = cuda_divide_by((int64_t)u->out[0] * u->out[1] * u->out[2]);
  for (int i = 0; i < 2; i++) f.out[i] = cuda_divide_by(u->out[1 + i]), f.size[i] = cuda_divide_by(u->size[1 + i]);
  f.tiles = (uint32_t)qn_ceil_div(u->k, TILE);
  return f;
}

/* They are contiguous in every window, from a position that is a multiple of them, and all in x or all out of it. */
int cuda_unfold_run(const cuda_unfold *u)
{
  const int64_t extent = u->last ? u->channels : u->size[2], stride = u->last ? u->x_stride[1] : u->x_stride[4];
  bool whole = u->before[2] == 0 && (int64_t)(u->out[2] - 1) * u->step[2] + u->size[2] <= u->in[2];
  if (u->k_step != 1 || (stride != 1 && extent > 1) || (!u->last && u->dilation[2] != 1)) return 1;
  int run = 16 / u->bytes;
  for (; run > 1; run /= 2) {
    bool fits = extent % run == 0 && u->align >= (uint32_t)(run * u->bytes);
    for (int d = 0; d < 5; d++) fits = fits && (d == (u->last ? 1 : 4) || u->x_stride[d] % run == 0);
    if (u->last) fits = fits && (u->groups == 1 || u->channels % run == 0);
    else fits = fits && u->step[2] % run == 0 && u->before[2] % run == 0 && (whole || u->in[2] % run == 0);
    if (fits) break;
  }
  return run * u->bytes < 4 ? 1 : run;
}

template <class U> static void runs(unfolding f, char *x, char *cols, int each, bool back, cudaStream_t stream)
{
  f.units = cuda_divide_by(f.u.k / each);
  f.channels = cuda_divide_by(f.u.last ? f.u.channels / each : 1);
  if (!f.u.last) f.size[1] = cuda_divide_by(f.u.size[2] / each);
  f.total = (uint32_t)f.u.images * f.u.groups * f.windows.by * f.units.by;
  const unsigned blocks = (unsigned)qn_ceil_div(f.total, 2 * THREADS);
  if (back) unfold_runs<U, true><<<blocks, THREADS, 0, stream>>>(f, x, cols, each);
  else unfold_runs<U, false><<<blocks, THREADS, 0, stream>>>(f, x, cols, each);
}

template <class T> static void tiles(const unfolding &f, void *x, void *cols, bool back, cudaStream_t stream)
{
  const dim3 grid((unsigned)(f.tiles * qn_ceil_div(f.windows.by, TILE)), (unsigned)(f.u.images * f.u.groups));
  if (back) unfold_tiles<T, false, true><<<grid, THREADS, 0, stream>>>(f, (T *)x, (T *)cols);
  else if (f.u.k_step == 1) unfold_tiles<T, false, false><<<grid, THREADS, 0, stream>>>(f, (T *)x, (T *)cols);
  else unfold_tiles<T, true, false><<<grid, THREADS, 0, stream>>>(f, (T *)x, (T *)cols);
}

/* The same with so many elements of a row as one. */
static cuda_unfold widened(cuda_unfold u, int each)
{
  u.in[2] /= each, u.size[2] /= each, u.step[2] /= each, u.before[2] /= each;
  for (int d = 0; d < 4; d++) u.x_stride[d] /= each;
  u.k /= each, u.bytes *= each;
  u.n_step /= each, u.g_step /= each, u.p_step /= each;
  return u;
}

static qn_status move(const cuda_unfold *of, void *x, void *cols, bool back, cudaStream_t stream)
{
  int each = cuda_unfold_run(of);
  const int unit = each * of->bytes;
  const bool turns = each > 1 && unit < 16 && !of->last && of->k / each >= 16;
  const cuda_unfold wide = turns ? widened(*of, each) : *of, *u = &wide;
  const unfolding f = describe(u);
  if (turns) each = 1;
  if (each > 1) {
    if (unit == 16) runs<uint4>(f, (char *)x, (char *)cols, each, back, stream);
    else if (unit == 8) runs<uint64_t>(f, (char *)x, (char *)cols, each, back, stream);
    else runs<uint32_t>(f, (char *)x, (char *)cols, each, back, stream);
  } else if (u->bytes == 8) tiles<uint64_t>(f, x, cols, back, stream);
  else if (u->bytes == 4) tiles<uint32_t>(f, x, cols, back, stream);
  else if (u->bytes == 2) tiles<uint16_t>(f, x, cols, back, stream);
  else tiles<uint8_t>(f, x, cols, back, stream);
  return cuda_check(cudaGetLastError(), "conv_unfold");
}

qn_status cuda_unfold_gather(const cuda_unfold *u, const void *x, void *cols, void *stream)
{
  return move(u, (void *)x, cols, false, (cudaStream_t)stream);
}

qn_status cuda_unfold_scatter(const cuda_unfold *u, void *x, const void *cols, void *stream)
{
  return move(u, x, (void *)cols, true, (cudaStream_t)stream);
}

template <class T, int V> static void fold(folding f, void *x, const void *cols, cudaStream_t stream)
{
  f.channels = cuda_divide_by((int64_t)f.u.channels * f.u.groups / V);
  f.total = (uint32_t)f.u.images * f.channels.by * f.in[0].by * f.in[1].by * f.in[2].by;
  unfold_fold<T, V><<<(unsigned)qn_ceil_div(f.total, THREADS), THREADS, 0, stream>>>(f, x, (const T *)cols);
}

qn_status cuda_unfold_fold(const cuda_unfold *u, void *x, uint32_t dtype, const void *cols, void *stream)
{
  folding f = {};
  f.u = *u;
  f.dtype = dtype;
  for (int d = 0; d < 3; d++) {
    f.in[d] = cuda_divide_by(u->in[d]);
    for (f.every[d] = 1; (int64_t)u->dilation[d] * f.every[d] % u->step[d];) f.every[d]++;
    f.back[d] = u->dilation[d] * f.every[d] / u->step[d];
  }
  const bool fours = u->last && u->x_stride[1] == 1 && u->channels % 4 == 0 && u->k_step == 1;
  if (dtype == QN_F64) fold<double, 1>(f, x, cols, (cudaStream_t)stream);
  else if (dtype == QN_I32) fold<int32_t, 1>(f, x, cols, (cudaStream_t)stream);
  else if (fours) fold<float, 4>(f, x, cols, (cudaStream_t)stream);
  else fold<float, 1>(f, x, cols, (cudaStream_t)stream);
  return cuda_check(cudaGetLastError(), "unfold_fold");
}

qn_status cuda_unfold_join(const cuda_unfold *u, void *dw, uint32_t dtype, const int64_t w_stride[5], int64_t filters, const void *from,
                           int64_t parts, void *stream)
{
  joining j = { filters * u->k, parts, {}, u->channels, { u->size[0], u->size[1], u->size[2] }, u->last, dtype };
  for (int d = 0; d < 5; d++) j.stride[d] = w_stride[d];
  const unsigned blocks = (unsigned)qn_ceil_div(j.n, THREADS);
  if (dtype == QN_F64) unfold_join<double><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(j, dw, (const double *)from);
  else if (dtype == QN_I32) unfold_join<int32_t><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(j, dw, (const int32_t *)from);
  else unfold_join<float><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(j, dw, (const float *)from);
  return cuda_check(cudaGetLastError(), "unfold_join");
}
