/* conv_winograd.cu -- the transforms of Winograd's convolution, before and after the products.
 *
 *   y  = A^T [ (G w G^T) o (B^T x B) ] A      a tile of m x m outputs from a x a inputs, a = m + r - 1
 *   dw = R^T [ (M dy M^T) o (B^T x B) ] R     r x r outputs, dy in the place of filters
 *
 * G, M: values of a polynomial of r or m coefficients at a points, which are 0, +-1, +-2, +-1/2 (as many as needed) and infinity,
 * divided by the products of the points' distances; A, R: the same without that division; B^T: coefficients of the products of
 * all points' factors but one. (Winograd 1980; Lavin, Gray 2016; Barabasz et al. 2020 for the points.)
 *
 * A block transforms tiles first along their columns, with threads in the memory order of the input, then, from shared memory,
 * along their rows, with threads in the memory order of the output. */
#include "conv_winograd.h"
#include "cuda_backend.h"
#include "kit/element.cuh"

/* ---- one dim ---------------------------------------------------------------------------------- */

/* For the pair of points p, -p: p, and the weight of their values; pair 0 is the point 0. */
__device__ constexpr float pair_point(int pair) { return pair == 1 ? 1.f : pair == 2 ? 2.f : .5f; }
template <int a> __device__ constexpr float pair_weight(int pair)
{
  return a == 4 ? (pair == 0 ? 1.f : 1 / 2.f)
       : a == 6 ? (pair == 0 ? 1 / 4.f : pair == 1 ? -1 / 6.f : 1 / 24.f)
                : (pair == 0 ? 1.f : pair == 1 ? -2 / 9.f : pair == 2 ? 1 / 90.f : 32 / 45.f);
}

/* t = G g */
template <int a, int n> __device__ __forceinline__ void evaluate(const float (&g)[n], float (&t)[a])
{
  t[0] = pair_weight<a>(0) * g[0];
#pragma unroll
  for (int pair = 1; pair < a / 2; pair++) {
    float even = 0, odd = 0, power = 1;
#pragma unroll
    for (int i = 0; i < n; i++, power *= pair_point(pair))
      if (i % 2) odd += power * g[i];
      else even += power * g[i];
    t[2 * pair - 1] = pair_weight<a>(pair) * (even + odd);
    t[2 * pair] = pair_weight<a>(pair) * (even - odd);
  }
  t[a - 1] = g[n - 1];
}

/* y = A^T t */
template <int a, int n> __device__ __forceinline__ void gather(const float (&t)[a], float (&y)[n])
{
#pragma unroll
  for (int i = 0; i < n; i++) y[i] = i == 0 ? t[0] : 0;
#pragma unroll
  for (int pair = 1; pair < a / 2; pair++) {
    float even = t[2 * pair - 1] + t[2 * pair], odd = t[2 * pair - 1] - t[2 * pair], power = 1;
#pragma unroll
    for (int i = 0; i < n; i++, power *= pair_point(pair)) y[i] += power * (i % 2 ? odd : even);
  }
  y[n - 1] += t[a - 1];
}

/* t = B^T d */
template <int a> __device__ __forceinline__ void combine(const float (&d)[a], float (&t)[a])
{
  if constexpr (a == 4) {
    t[0] = d[0] - d[2];
    t[1] = d[2] + d[1], t[2] = d[2] - d[1];
    t[3] = d[3] - d[1];
  } else if constexpr (a == 6) {
    t[0] = 4 * d[0] - 5 * d[2] + d[4];
    float even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    t[1] = even + odd, t[2] = even - odd;
    even = d[4] - d[2], odd = 2 * (d[3] - d[1]);
    t[3] = even + odd, t[4] = even - odd;
    t[5] = 4 * d[1] - 5 * d[3] + d[5];
  } else {
    static_assert(a == 8, "");
    t[0] = d[0] - d[6] + 5.25f * (d[4] - d[2]);
    float even = d[6] - 4.25f * d[4] + d[2], odd = d[5] - 4.25f * d[3] + d[1];
    t[1] = even + odd, t[2] = even - odd;
    even = d[6] - 1.25f * d[4] + .25f * d[2], odd = 2 * d[5] - 2.5f * d[3] + .5f * d[1];
    t[3] = even + odd, t[4] = even - odd;
    even = d[6] - 5 * d[4] + 4 * d[2], odd = .5f * d[5] - 2.5f * d[3] + 2 * d[1];
    t[5] = even + odd, t[6] = even - odd;
    t[7] = d[7] - d[1] + 5.25f * (d[3] - d[5]);
  }
}

/* B^T d for a whole line of a tile, G d for a shorter one. */
template <int a, int n> __device__ __forceinline__ void transform(const float (&d)[n], float (&t)[a])
{
  if constexpr (n == a) combine<a>(d, t);
  else evaluate<a, n>(d, t);
}

/* ---- images --------------------------------------------------------------------------------------- */

enum { THREADS = 256 };

struct images { cuda_conv_pixels at; cuda_winograd_tiles t; int32_t blocks_c; int64_t point_stride, part_stride, tile_stride, c_stride; };

/* A block has some tiles of some channels: more of the dim along which `to` is contiguous. */
template <int a, int n, bool across> struct image_block {
  static constexpr int few = a == 8 ? 4 : 8, T = across ? 32 : few, C = across ? few : 32, columns = T * n;
  static constexpr int threads = n == 6 ? 384 : THREADS;              /* a multiple of columns and of C, so that a thread keeps its own */
  /* padding against bank conflicts: tiles are n apart, so after 32 / skew of them the banks would repeat */
  static constexpr int skew = n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : 2;
  static constexpr int row = columns + T * skew / 32, plane = (a * row) | 1;
  static __device__ constexpr int at(int tile) { return tile * n + tile * skew / 32; }
};

/* One column of a tile; rows: bit mask of the pixels that exist. */
template <int a, int n> __device__ __forceinline__ void image_column(float *to, int row, const float *from, int64_t stride, unsigned rows)
{
  float d[n], t[a];
#pragma unroll
  for (int k = 0; k < n; k++) d[k] = rows >> k & 1 ? from[k * stride] : 0;
  transform<a, n>(d, t);
#pragma unroll
  for (int k = 0; k < a; k++) to[k * row] = t[k];
}

/* by_channel: `from` is contiguous along channels. */
template <int a, int n, bool across, bool by_channel> __global__ void __launch_bounds__((image_block<a, n, across>::threads))
winograd_images(float *to, const float *from, const __grid_constant__ images s)
{
  typedef image_block<a, n, across> block;
  constexpr int T = block::T, C = block::C;
  __shared__ float shared[C * block::plane];
  __shared__ int64_t from_at[T], to_at[T];
  __shared__ int first_w[T];
  __shared__ unsigned rows_of[T];
  int id = threadIdx.x, tile0 = blockIdx.x / s.blocks_c * T, c0 = (blockIdx.x - tile0 / T * s.blocks_c) * C;
  if (id < T) {
    int tile = tile0 + id, image = tile / s.t.image_tiles, rest = tile - image * s.t.image_tiles, line = rest / s.t.row_tiles,
        part = tile / s.t.share;
    int h = line * s.t.m + s.t.start_h;
    unsigned rows = 0;
    for (int k = 0; k < n; k++) rows |= (unsigned)(h + k >= 0 && h + k < s.at.h && tile < s.t.tiles) << k;
    rows_of[id] = rows;
    first_w[id] = (rest - line * s.t.row_tiles) * s.t.m + s.t.start_w;
    from_at[id] = image * s.at.n_stride + h * s.at.h_stride;
    to_at[id] = part * s.part_stride + (tile - part * s.t.share) * s.tile_stride;
  }
  __syncthreads();
  if constexpr (by_channel) {
    int c = id % C;
#pragma unroll 2
    for (int col = id / C; col < block::columns; col += block::threads / C) {
      int tile = col / n, w = first_w[tile] + col - tile * n;
      bool there = c0 + c < s.at.c && w >= 0 && w < s.at.w;
      image_column<a, n>(shared + c * block::plane + block::at(tile) + col - tile * n, block::row,
                         from + from_at[tile] + (c0 + c) * s.at.c_stride + w * s.at.w_stride, s.at.h_stride, there ? rows_of[tile] : 0);
    }
  } else {
    int col = id % block::columns, tile = col / n, w = first_w[tile] + col - tile * n;
    unsigned rows = w >= 0 && w < s.at.w ? rows_of[tile] : 0;
    const float *p = from + from_at[tile] + c0 * s.at.c_stride + w * s.at.w_stride;
#pragma unroll 2
    for (int c = id / block::columns; c < C; c += block::threads / block::columns)
      image_column<a, n>(shared + c * block::plane + block::at(tile) + col - tile * n, block::row, p + c * s.at.c_stride, s.at.h_stride,
                         c0 + c < s.at.c ? rows : 0);
  }
  __syncthreads();
#pragma unroll 2
  for (int i = id; i < T * C * a; i += block::threads) {
    int c = across ? i / T % C : i % C, tile = across ? i % T : i / C % T, x = i / (T * C);
    if (c0 + c >= s.at.c || tile0 + tile >= s.t.units) continue;
    const float *q = shared + c * block::plane + x * block::row + block::at(tile);
    float *p = to + x * a * s.point_stride + to_at[tile] + (c0 + c) * s.c_stride;
    float d[n], t[a];
#pragma unroll
    for (int k = 0; k < n; k++) d[k] = q[k];
    transform<a, n>(d, t);
#pragma unroll
    for (int k = 0; k < a; k++, p += s.point_stride) *p = t[k];
  }
}

template <int a, int n, bool across> static void launch_images(float *to, const float *from, images s, cudaStream_t stream)
{
  typedef image_block<a, n, across> block;
  s.blocks_c = (int32_t)qn_ceil_div(s.at.c, block::C);
  unsigned blocks = (unsigned)(qn_ceil_div(s.t.units, block::T) * s.blocks_c);
  if (s.at.c_stride == 1) winograd_images<a, n, across, true><<<blocks, block::threads, 0, stream>>>(to, from, s);
  else winograd_images<a, n, across, false><<<blocks, block::threads, 0, stream>>>(to, from, s);
}

template <int a, int m> static void launch_images(float *to, const float *from, const images &s, bool across, cudaStream_t stream)
{
  if (s.t.size == m) launch_images<a, m, true>(to, from, s, stream);
  else if (across) launch_images<a, a, true>(to, from, s, stream);
  else launch_images<a, a, false>(to, from, s, stream);
}

qn_status cuda_winograd_images(const cuda_winograd *f, float *to, const float *from, const cuda_conv_pixels *at,
                               const cuda_winograd_tiles *t, bool across, void *stream)
{
  images s = {};
  s.at = *at;
  s.t = *t;
  s.part_stride = (int64_t)t->share * at->c;
  s.point_stride = s.part_stride * (t->units / t->share);
  s.tile_stride = across ? 1 : at->c;
  s.c_stride = across ? t->share : 1;
  if (f->a == 4) launch_images<4, 2>(to, from, s, across, (cudaStream_t)stream);
  else if (f->a == 6) launch_images<6, 4>(to, from, s, across, (cudaStream_t)stream);
  else launch_images<8, 4>(to, from, s, across, (cudaStream_t)stream);
  return cuda_check(cudaGetLastError(), "winograd_images");
}

/* ---- filters --------------------------------------------------------------------------------------- */

template <int a, int r>
__global__ void __launch_bounds__(THREADS) winograd_filters(float *to, const float *from, const __grid_constant__ cuda_conv_filters f)
{
  int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x, n = (int64_t)f.rows * f.cols, row = i / f.cols;
  if (i >= n) return;
  const float *p = from + row * f.row_stride + (i - row * f.cols) * f.col_stride;
  float t[r][a];
#pragma unroll
  for (int x = 0; x < r; x++) {
    float g[r];
#pragma unroll
    for (int y = 0; y < r; y++)
      g[y] = f.reversed ? p[(r - 1 - y) * f.r_stride + (r - 1 - x) * f.s_stride] : p[y * f.r_stride + x * f.s_stride];
    evaluate<a, r>(g, t[x]);
  }
#pragma unroll
  for (int y = 0; y < a; y++) {
    float g[r], u[a];
#pragma unroll
    for (int x = 0; x < r; x++) g[x] = t[x][y];
    evaluate<a, r>(g, u);
#pragma unroll
    for (int x = 0; x < a; x++) to[(y * a + x) * n + i] = u[x];
  }
}

qn_status cuda_winograd_filters(const cuda_winograd *f, float *to, const float *from, const cuda_conv_filters *at, void *stream)
{
  unsigned blocks = (unsigned)qn_ceil_div((int64_t)at->rows * at->cols, THREADS);
  if (f->a == 4) winograd_filters<4, 3><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(to, from, *at);
  else if (f->a == 6) winograd_filters<6, 3><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(to, from, *at);
  else winograd_filters<8, 5><<<blocks, THREADS, 0, (cudaStream_t)stream>>>(to, from, *at);
  return cuda_check(cudaGetLastError(), "winograd_filters");
}

/* ---- outputs --------------------------------------------------------------------------------------- */

/* Recomputes the sum directly. */
static __device__ __noinline__ float output_again(const cuda_winograd_again &s, int image, int row, int h, int w)
{
  const cuda_conv_filters &f = s.filters;
  float sum = 0;
  for (int tap = 0; tap < f.taps; tap++) {
    int r = tap / f.taps_w, q = tap - r * f.taps_w, y = h + s.start_h + r, x = w + s.start_w + q;
    if (y < 0 || y >= s.at.h || x < 0 || x >= s.at.w) continue;
    if (f.reversed) r = f.taps / f.taps_w - 1 - r, q = f.taps_w - 1 - q;
    const float *p = s.pixels + image * s.at.n_stride + y * s.at.h_stride + x * s.at.w_stride;
    const float *g = s.other + row * f.row_stride + r * f.r_stride + q * f.s_stride;
    for (int c = 0; c < f.cols; c++) sum += p[c * s.at.c_stride] * g[c * f.col_stride];
  }
  return sum;
}

/* One line of a tile; a thread always computes the same element j, with row j of A^T. */
template <int a, int m> struct output_row {
  float power[a / 2], sign;
  int j;
  __device__ __forceinline__ output_row(int j) : sign(j % 2 ? -1 : 1), j(j)
  {
#pragma unroll
    for (int pair = 1; pair < a / 2; pair++) {
      power[pair] = 1;
#pragma unroll
      for (int k = 1; k < m; k++) power[pair] *= k <= j ? pair_point(pair) : 1;
    }
  }
  __device__ __forceinline__ float operator()(const float *t) const
  {
    float v = j == 0 ? t[0] : 0;
#pragma unroll
    for (int pair = 1; pair < a / 2; pair++) v += power[pair] * (t[2 * pair - 1] + sign * t[2 * pair]);
    return v + (j == m - 1 ? t[a - 1] : 0);
  }
};

template <int a, int m, bool by_channel>
__global__ void __launch_bounds__(THREADS)
    winograd_outputs(float *to, const float *from, const __grid_constant__ cuda_winograd_outputs s, int blocks_c)
{
  constexpr int T = a == 8 ? 4 : 8, C = 32, row = T * a, plane = (m * row) | 1, columns = T * m;
  __shared__ float shared[C * plane];
  __shared__ int64_t to_at[T];
  __shared__ int image[T], first_h[T], first_w[T];
  int id = threadIdx.x, tile0 = blockIdx.x / blocks_c * T, c0 = (blockIdx.x - tile0 / T * blocks_c) * C;
  if (id < T) {
    int tile = tile0 + id, n = tile / s.tiles.image_tiles, rest = tile - n * s.tiles.image_tiles, h = rest / s.tiles.row_tiles;
    image[id] = n;
    first_h[id] = tile < s.tiles.tiles ? h * m : s.at.h;
    first_w[id] = (rest - h * s.tiles.row_tiles) * m;
    to_at[id] = n * s.at.n_stride;
  }
  __syncthreads();
  int64_t point_stride = (int64_t)s.tiles.tiles * s.at.c;
  if (c0 + id % C < s.at.c) {
    const float *base = from + (int64_t)tile0 * s.at.c + c0 + id % C;
#pragma unroll 3
    for (int col = id / C; col < T * a; col += THREADS / C) {
      int tile = col / a;
      if (tile0 + tile >= s.tiles.tiles) break;
      const float *p = base + (col - tile * a) * point_stride + (int64_t)tile * s.at.c;
      float t[a], y[m];
#pragma unroll
      for (int k = 0; k < a; k++, p += a * point_stride) t[k] = *p;
      gather<a, m>(t, y);
#pragma unroll
      for (int k = 0; k < m; k++) shared[id % C * plane + k * row + col] = y[k];
    }
  }
  __syncthreads();
  auto finish = [&](float v, float *at, int n, int c, int h, int w) {
    if (!isfinite(v)) v = output_again(s.again, n, c, h, w);
    if (s.bias) v += element_load<float>(s.bias, c * s.bias_stride, s.bias_dtype);
    if (s.factor) v = fmaf(v, s.factor[c], s.shift[c]);
    *at = s.relu && v < 0 ? 0 : v;
  };
  if constexpr (by_channel) {
    int c = id % C;
    if (c0 + c >= s.at.c) return;
    output_row<a, m> line(id / C % m);
    for (int i = id / C; i < columns * m; i += THREADS / C) {
      int tile = i % columns / m, y = i / columns, h = first_h[tile] + y, w = first_w[tile] + line.j;
      if (h >= s.at.h || w >= s.at.w) continue;
      finish(line(shared + c * plane + y * row + tile * a),
             to + to_at[tile] + (c0 + c) * s.at.c_stride + h * s.at.h_stride + w * s.at.w_stride, image[tile], c0 + c, h, w);
    }
  } else {
    int tile = id % columns / m, y = id / columns % m;
    output_row<a, m> line(id % m);
    int h = first_h[tile] + y, w = first_w[tile] + line.j, last = min(C, s.at.c - c0);
    if (h >= s.at.h || w >= s.at.w) return;
    float *p = to + to_at[tile] + c0 * s.at.c_stride + h * s.at.h_stride + w * s.at.w_stride;
    const float *q = shared + y * row + tile * a;
#pragma unroll 2
    for (int c = id / (columns * m); c < last; c += THREADS / (columns * m))
      finish(line(q + c * plane), p + c * s.at.c_stride, image[tile], c0 + c, h, w);
  }
}

template <int a, int m> static void launch_outputs(float *to, const float *from, const cuda_winograd_outputs *s, cudaStream_t stream)
{
  int blocks_c = (int)qn_ceil_div(s->at.c, 32);
  unsigned blocks = (unsigned)(qn_ceil_div(s->tiles.tiles, a == 8 ? 4 : 8) * blocks_c);
  if (s->at.c_stride == 1) winograd_outputs<a, m, true><<<blocks, THREADS, 0, stream>>>(to, from, *s, blocks_c);
  else winograd_outputs<a, m, false><<<blocks, THREADS, 0, stream>>>(to, from, *s, blocks_c);
}

qn_status cuda_winograd_outputs_launch(const cuda_winograd *f, float *to, const float *from, const cuda_winograd_outputs *s, void *stream)
{
  if (f->a == 4) launch_outputs<4, 2>(to, from, s, (cudaStream_t)stream);
  else if (f->a == 6) launch_outputs<6, 4>(to, from, s, (cudaStream_t)stream);
  else launch_outputs<8, 4>(to, from, s, (cudaStream_t)stream);
  return cuda_check(cudaGetLastError(), "winograd_outputs");
}

/* ---- the gradient by filters ------------------------------------------------------------------------- */

static __device__ __noinline__ float gradient_again(const cuda_winograd_again &s, int row, int col, int r, int q)
{
  const cuda_conv_pixels &dy = s.gradient;
  float sum = 0;
  for (int n = 0; n < dy.n; n++)
    for (int h = 0; h < dy.h; h++) {
      int y = h + r + s.start_h;
      if (y < 0 || y >= s.at.h) continue;
      const float *p = s.pixels + n * s.at.n_stride + col * s.at.c_stride + y * s.at.h_stride;
      const float *g = s.other + n * dy.n_stride + row * dy.c_stride + h * dy.h_stride;
      for (int w = 0; w < dy.w; w++) {
        int x = w + q + s.start_w;
        if (x >= 0 && x < s.at.w) sum += p[x * s.at.w_stride] * g[w * dy.w_stride];
      }
    }
  return sum;
}

/* 32 filters' channels by the columns of their tiles. */
template <int a, int r>
__global__ void __launch_bounds__(32 * a)
    winograd_gradient(float *to, const float *from, const __grid_constant__ cuda_winograd_again s, int parts)
{
  __shared__ float shared[32][(r * a) | 1];
  const cuda_conv_filters &f = s.filters;
  int lane = threadIdx.x % 32, line = threadIdx.x / 32;
  int64_t n = (int64_t)f.rows * f.cols, i = blockIdx.x * (int64_t)32 + lane;
  if (i < n) {
    float t[a], y[r];
#pragma unroll
    for (int k = 0; k < a; k++) {
      const float *p = from + (k * a + line) * parts * n + i;
      t[k] = 0;
#pragma unroll 4
      for (int part = 0; part < parts; part++) t[k] += p[part * n];
    }
    gather<a, r>(t, y);
#pragma unroll
    for (int k = 0; k < r; k++) shared[lane][k * a + line] = y[k];
  }
  __syncthreads();
  if (line >= r || i >= n) return;
  float t[a], y[r];
#pragma unroll
  for (int k = 0; k < a; k++) t[k] = shared[lane][line * a + k];
  gather<a, r>(t, y);
  int row = (int)(i / f.cols), col = (int)(i - (int64_t)row * f.cols);
#pragma unroll
  for (int k = 0; k < r; k++) {
    float v = isfinite(y[k]) ? y[k] : gradient_again(s, row, col, line, k);
    to[row * f.row_stride + col * f.col_stride + line * f.r_stride + k * f.s_stride] = v;
  }
}

qn_status cuda_winograd_gradient(const cuda_winograd *f, float *to, const float *from, const cuda_winograd_again *s, int parts,
                                 void *stream)
{
  unsigned blocks = (unsigned)qn_ceil_div((int64_t)s->filters.rows * s->filters.cols, 32);
  if (f->a == 4) winograd_gradient<4, 3><<<blocks, 32 * 4, 0, (cudaStream_t)stream>>>(to, from, *s, parts);
  else if (f->a == 6) winograd_gradient<6, 3><<<blocks, 32 * 6, 0, (cudaStream_t)stream>>>(to, from, *s, parts);
  else winograd_gradient<8, 5><<<blocks, 32 * 8, 0, (cudaStream_t)stream>>>(to, from, *s, parts);
  return cuda_check(cudaGetLastError(), "winograd_gradient");
}
