/* pool_cells.cu -- gradients of pooling of any layout, f16, bf16 and f32: what the engines for particular windows and layouts leave.
 *
 *   max       dx[x] = the sum of dy over the windows whose maximum came from x, by indices or recomputed from x
 *   average   dx[x] = the sum of dy / divisor over the windows that cover x
 *
 * cells: 2x2 or 3x3 windows in the last two dims, known at compile time. A thread computes a cell of dx, some rows by two
 *   columns, of a vector of channels (NHWC) or of one channel (planes that bands refuses), and reads each window that covers the
 *   cell once.
 * scatter_planes: maxima by index on packed NCHW planes, windows up to 32 without dilation or gaps: a warp accumulates a tile of dx
 *   in shared memory. It walks the rows of windows that reach into the tile, a window a lane, and adds dy at the place of each
 *   window's maximum. Neighbouring lanes whose windows overlap take turns, so no two add to one address; the order of the sums is
 *   fixed.
 * gather: any windows. A thread computes V neighbours (channels or columns, whichever is contiguous) or one place, in ROWS rows. */
#include "pool_gradient.cuh"
#include "kit/words.cuh"

enum { THREADS = 128 };

template <int dtype> __device__ __forceinline__ const void *image_of(const void *base, uint32_t n, int64_t stride)
{
  return (const char *)base + n * stride * (dtype == QN_F32 ? 4 : 2);
}

template <int dtype, int C> __device__ __forceinline__ void fetch(float (&v)[C], const void *base, int at)
{
  if constexpr (C == 1) v[0] = edge_load<dtype>(base, at);
  else vector_load_whole<dtype>(v, base, at);
}
template <class I, int C> __device__ __forceinline__ void fetch_indices(I (&v)[C], const void *base, int at)
{
  const I *from = (const I *)base + at;
  if constexpr (C == 1) v[0] = *from;
  else if constexpr (sizeof v == 4) *(uint32_t *)v = *(const uint32_t *)from;
  else if constexpr (sizeof v == 8) *(uint2 *)v = *(const uint2 *)from;
  else
#pragma unroll
    for (int i = 0; i < (int)sizeof v / 16; i++) ((uint4 *)v)[i] = ((const uint4 *)from)[i];
}

/* The windows whose extent includes any of the places place..end-1; with dilation some of them may have no tap there. */
struct range { int begin, end; };
__device__ __forceinline__ range windows_over(const pool &p, int d, int place, int end)
{
  range r;
  int other;
  windows_over(p, d, place, &r.begin, &other);
  windows_over(p, d, end - 1, &other, &r.end);
  return { r.begin, r.end + 1 };
}

/* ---- cells --------------------------------------------------------------------------------------------------- */

__host__ __device__ constexpr int rows_of(int c) { return c > 1 ? 2 : 8; }

/* The tap numbers of C channels of a window, one byte each, from indices; mark: number of the first tap of this depth slice. */
template <int how, int SIZE, int C>
__device__ __forceinline__ void taps_by_index(uint32_t (&tap)[(C + 3) / 4], const void *indices, int at, uint32_t mark, int begin,
                                              int width)
{
  if constexpr (how == BY_PLACE) {
    alignas(16) int64_t index[C];
    fetch_indices(index, indices, at);
#pragma unroll
    for (int i = 0; i < C; i++) {
      uint32_t t = tap_of<SIZE>(place_among(index[i]), begin, width);
      tap[i / 4] = i % 4 ? tap[i / 4] | t << 8 * (i % 4) : t;
    }
  } else if constexpr (C == 1) {
    tap[0] = ((const uint8_t *)indices)[at] - mark;
  } else {
#pragma unroll
    for (int k = 0; k < C / 4; k++) tap[k] = __vsub4(((const uint32_t *)((const uint8_t *)indices + at))[k], mark * 0x01010101u);
  }
}

/* The tap numbers of all windows over a cell, recomputed from x; the maximum of a row is found once for all windows that share it.
 * at: the cell's offset in the image. */
template <class over, int dtype, int C, int SIZE, int STEP>
__device__ __forceinline__ void taps_by_x(uint32_t (&tap)[over::DOWN][over::ACROSS][over::WORDS], const gradient &p, const void *image,
                                          int at, int y0, int x0)
{
  constexpr int LINES = (over::DOWN - 1) * STEP + SIZE, COLUMNS = (over::ACROSS - 1) * STEP + SIZE;
  float best[over::DOWN][over::ACROSS][C];
  int   chosen[over::DOWN][over::ACROSS][C];
#pragma unroll
  for (int j = 0; j < over::DOWN; j++)    /* start from the first tap inside x; -Inf never replaces it */
#pragma unroll
    for (int k = 0; k < over::ACROSS; k++)
#pragma unroll
      for (int i = 0; i < C; i++)
        best[j][k][i] = -INFINITY, chosen[j][k][i] = max(-(y0 + over::begin(j)), 0) * SIZE + max(-(x0 + over::begin(k)), 0);
#pragma unroll
  for (int l = 0; l < LINES; l++) {
    const int y = over::begin(0) + l;
    float v[COLUMNS][C];
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
      const int x = over::begin(0) + c;
#pragma unroll
      for (int i = 0; i < C; i++) v[c][i] = -INFINITY;
      if ((unsigned)(y0 + y) < (unsigned)p.in[1] && (unsigned)(x0 + x) < (unsigned)p.in[2])
        fetch<dtype>(v[c], image, at + y * p.of_x.y + (C == 1 ? x : x * p.of_x.x));
    }
#pragma unroll
    for (int k = 0; k < over::ACROSS; k++)
#pragma unroll
      for (int i = 0; i < C; i++) {
        float most = v[k * STEP][i];
        int   column = max(-(x0 + over::begin(k)), 0);
#pragma unroll
        for (int c = 0; c < SIZE; c++) {
          float a = v[k * STEP + c][i];
          if (!(a <= most) && most == most) most = a, column = c;
        }
#pragma unroll
        for (int j = 0; j < over::DOWN; j++)
          if (l >= j * STEP && l < j * STEP + SIZE && !(most <= best[j][k][i]) && best[j][k][i] == best[j][k][i])
            best[j][k][i] = most, chosen[j][k][i] = (l - j * STEP) * SIZE + column;
      }
  }
#pragma unroll
  for (int j = 0; j < over::DOWN; j++)
#pragma unroll
    for (int k = 0; k < over::ACROSS; k++)
#pragma unroll
      for (int i = 0; i < C; i++) tap[j][k][i / 4] = i % 4 ? tap[j][k][i / 4] | chosen[j][k][i] << 8 * (i % 4) : chosen[j][k][i];
}

template <int dtype, int how, int C, int SIZE, int STEP, int BEFORE>
__global__ void __launch_bounds__(THREADS) pool_cells(const __grid_constant__ gradient p)
{
  typedef cover<rows_of(C), C, SIZE, STEP, BEFORE> over;
  constexpr int ROWS = over::ROWS, COLUMNS = over::COLUMNS, DOWN = over::DOWN, ACROSS = over::ACROSS;
  constexpr int LINES = STEP > 1 || how == BY_X ? DOWN : C > 1 ? 1 : 2;     /* rows of windows whose loads are in flight together */
  static_assert(DOWN % LINES == 0, "whole batches of lines");
  uint32_t at[4], n = blockIdx.x * THREADS + threadIdx.x;
  if (n >= p.units) return;
#pragma unroll
  for (int d = 0; d < 4; d++) n = cuda_quotient(n, p.by_cell[d], &at[d]);
  const int column = (int)at[C > 1], row = (int)at[1 + (C > 1)], z = (int)at[2 + (C > 1)], c = C > 1 ? (int)at[0] * C : (int)at[3];
  const int x0 = column * COLUMNS, y0 = row * ROWS, ox = column * (COLUMNS / STEP) + over::first, oy = row * (ROWS / STEP) + over::first;
  const void *dy_image = image_of<dtype>(p.dy, n, p.y_stride[0]),
             *indices = (const char *)p.indices + n * p.index_stride[0] * (how == BY_PLACE ? 8 : 1);
  float sum[ROWS][COLUMNS][C] = {};
  range deep = { 0, 1 };
  if (!p.flat) deep = windows_over(p, 0, z, z + 1);
#pragma unroll 1
  for (int oz = deep.begin; oz < deep.end; oz++) {
    uint32_t depth = 0, rest = 0;         /* depth: which slice of the window this plane is */
    if (!p.flat) depth = cuda_quotient(z - window_begin(p, 0, oz), p.by_dilation[0], &rest);
    if (rest) continue;
    const int from = c * p.of_dy.c + oz * p.of_dy.z + oy * p.of_dy.y + (C == 1 ? ox : ox * p.of_dy.x);
    const int index = c * p.of_index.c + oz * p.of_index.z + oy * p.of_index.y + (C == 1 ? ox : ox * p.of_index.x),
              corner = (z * p.in[1] + y0) * p.in[2] + x0;
    uint32_t tap[DOWN][ACROSS][over::WORDS];
    if (how == BY_X)
      taps_by_x<over, dtype, C, SIZE, STEP>(tap, p, image_of<dtype>(p.x, n, p.x_stride[0]),
                                            c * p.of_x.c + z * p.of_x.z + y0 * p.of_x.y + (C == 1 ? x0 : x0 * p.of_x.x), y0, x0);
#pragma unroll
    for (int j0 = 0; j0 < DOWN; j0 += LINES) {
      float dy[LINES][ACROSS][C];
#pragma unroll
      for (int l = 0; l < LINES; l++)
#pragma unroll
        for (int k = 0; k < ACROSS; k++) {
          const int j = j0 + l;
#pragma unroll
          for (int i = 0; i < C; i++) dy[l][k][i] = 0;
#pragma unroll
          for (int i = 0; how <= BY_PLACE && i < over::WORDS; i++) tap[j][k][i] = ~0u;
          if ((unsigned)(oy + j) >= (unsigned)p.out[1] || (unsigned)(ox + k) >= (unsigned)p.out[2]) continue;
          fetch<dtype>(dy[l][k], dy_image, from + j * p.of_dy.y + (C == 1 ? k : k * p.of_dy.x));
          if (how <= BY_PLACE)
            taps_by_index<how, SIZE, C>(tap[j][k], indices, index + j * p.of_index.y + (C == 1 ? k : k * p.of_index.x),
                                        depth * (SIZE * SIZE), corner + over::begin(j) * p.in[2] + over::begin(k), p.in[2]);
        }
      if (how == AVERAGE && !p.even) {
#pragma unroll
        for (int l = 0; l < LINES; l++)
#pragma unroll
          for (int k = 0; k < ACROSS; k++) {
            const float share = p.inverse[taps_beside(p, 1, y0 + over::begin(j0 + l), SIZE) * taps_beside(p, 2, x0 + over::begin(k), SIZE)];
#pragma unroll
            for (int i = 0; i < C; i++) dy[l][k][i] *= share;
          }
      }
#pragma unroll
      for (int l = 0; l < LINES; l++) {
        const int j = j0 + l;
        float line[COLUMNS][C] = {};      /* average: what a row of windows adds to each column */
#pragma unroll
        for (int k = 0; k < ACROSS; k++)
#pragma unroll
          for (int i = 0; i < C; i++) {
            const uint32_t chosen = how == AVERAGE ? 0 : C == 1 ? tap[j][k][0] : tap[j][k][i / 4] >> 8 * (i % 4) & 255;
#pragma unroll
            for (int b = 0; b < COLUMNS; b++) {
              if (!over::covers(k, b)) continue;
              if (how == AVERAGE) line[b][i] += dy[l][k][i];
              else
#pragma unroll
                for (int a = 0; a < ROWS; a++)
                  if (over::covers(j, a)) add_where(sum[a][b][i], chosen, over::tap(j, a) * SIZE + over::tap(k, b), dy[l][k][i]);
            }
          }
        if (how == AVERAGE)
#pragma unroll
          for (int a = 0; a < ROWS; a++)
            if (over::covers(j, a))
#pragma unroll
              for (int b = 0; b < COLUMNS; b++)
#pragma unroll
                for (int i = 0; i < C; i++) sum[a][b][i] += line[b][i];
      }
    }
  }
  char *to = (char *)image_of<dtype>(p.dx, n, p.dx_stride[0]) +
             (int64_t)(c * p.of_dx.c + z * p.of_dx.z + y0 * p.of_dx.y + (C == 1 ? x0 : x0 * p.of_dx.x)) * (dtype == QN_F32 ? 4 : 2);
#pragma unroll
  for (int a = 0; a < ROWS; a++) {
    if (y0 + a >= p.in[1]) break;
    if (how == AVERAGE && p.even)
#pragma unroll
      for (int b = 0; b < COLUMNS; b++)
#pragma unroll
        for (int i = 0; i < C; i++) sum[a][b][i] *= p.share;
    if constexpr (C > 1) {
      vector_store_whole<dtype>(sum[a][0], to, a * p.of_dx.y);
      if (x0 + 1 < p.in[2]) vector_store_whole<dtype>(sum[a][1], to, a * p.of_dx.y + p.of_dx.x);
    } else if (!p.pairs) {
      edge_store<dtype>(to, a * p.of_dx.y, sum[a][0][0]);
      if (x0 + 1 < p.in[2]) edge_store<dtype>(to, a * p.of_dx.y + 1, sum[a][1][0]);
    } else {
      pair_store<dtype>(to, a * p.of_dx.y, sum[a][0][0], sum[a][1][0]);
    }
  }
}

/* ---- any windows --------------------------------------------------------------------------------------------- */

enum { ROWS = 4 };                        /* rows of dx a thread */

__device__ __forceinline__ bool holds(const gradient &p, int d, int begin, int size, int place)
{
  bool within = (unsigned)(place - begin) < (unsigned)((size - 1) * p.dilation[d] + 1);
  if (p.dilation[d] > 1 && within) {
    uint32_t rest;
    cuda_quotient(place - begin, p.by_dilation[d], &rest);
    within = rest == 0;
  }
  return within;
}

/* The offset of a tap, from its number; -1: no such tap, or outside x. */
__device__ __forceinline__ int place_of_tap(const gradient &p, const window &w, uint32_t tap)
{
  uint32_t r[3];
  uint32_t beyond = cuda_quotient(cuda_quotient(cuda_quotient(tap, p.by_size[2], &r[2]), p.by_size[1], &r[1]), p.by_size[0], &r[0]);
  int at[3];
  bool inside = beyond == 0;
#pragma unroll
  for (int d = 0; d < 3; d++) at[d] = w.begin[d] + (int)r[d] * p.dilation[d], inside &= (unsigned)at[d] < (unsigned)p.in[d];
  return inside ? (at[0] * p.in[1] + at[1]) * p.in[2] + at[2] : -1;
}

/* The offset of a window's maximum: the first of equals, the first NaN; -1: no tap inside x. */
template <int dtype, int U>
__device__ __forceinline__ void maximum(int (&place)[U], const gradient &p, const void *image, int base, const window &w)
{
  float best[U];
#pragma unroll
  for (int i = 0; i < U; i++) place[i] = -1, best[i] = -INFINITY;
#pragma unroll 1
  for (int r0 = 0; r0 < w.size[0]; r0++)
#pragma unroll 1
    for (int r1 = 0; r1 < w.size[1]; r1++)
#pragma unroll 1
      for (int r2 = 0; r2 < w.size[2]; r2++) {
        int z = w.begin[0] + r0 * p.dilation[0], y = w.begin[1] + r1 * p.dilation[1], x = w.begin[2] + r2 * p.dilation[2];
        if ((unsigned)z >= (unsigned)p.in[0] || (unsigned)y >= (unsigned)p.in[1] || (unsigned)x >= (unsigned)p.in[2]) continue;
        float v[U];
        fetch<dtype>(v, image, base + z * p.of_x.z + y * p.of_x.y + x * p.of_x.x);
#pragma unroll
        for (int i = 0; i < U; i++)
          if (place[i] < 0 || v[i] > best[i] || (v[i] != v[i] && best[i] == best[i]))
            best[i] = v[i], place[i] = (z * p.in[1] + y) * p.in[2] + x;
      }
}

template <int dtype, int U, bool by_x>
__device__ __forceinline__ void places_of(int (&place)[U], const gradient &p, uint32_t n, int c, int index, const window &w)
{
  const char *indices = (const char *)p.indices;
  if (by_x) {
    maximum<dtype>(place, p, image_of<dtype>(p.x, n, p.x_stride[0]), c * p.of_x.c, w);
  } else if (p.index_dtype == QN_U8) {
    alignas(16) uint8_t tap[U];
    fetch_indices(tap, indices + n * p.index_stride[0], index);
#pragma unroll
    for (int i = 0; i < U; i++) place[i] = place_of_tap(p, w, tap[i]);
  } else if (p.index_dtype == QN_I32) {
    alignas(16) int32_t at[U];
    fetch_indices(at, indices + n * p.index_stride[0] * 4, index);
#pragma unroll
    for (int i = 0; i < U; i++) place[i] = at[i];
  } else {
    alignas(16) int64_t at[U];
    fetch_indices(at, indices + n * p.index_stride[0] * 8, index);
#pragma unroll
    for (int i = 0; i < U; i++) place[i] = place_among(at[i]);
  }
}

template <int dtype, int V, bool columns, bool by_x>
__global__ void __launch_bounds__(THREADS) pool_gather(const __grid_constant__ gradient p)
{
  constexpr int U = columns ? 1 : V;      /* values of dy per window */
  uint32_t at[4], n = blockIdx.x * THREADS + threadIdx.x;
  if (n >= p.units) return;
#pragma unroll
  for (int d = 0; d < 4; d++) n = cuda_quotient(n, p.by_cell[d], &at[d]);
  const bool last = !columns || (V == 1 && p.channels_last);
  const int c = (int)(last ? at[0] * U : at[3]), x = (int)(last ? at[1] : at[0] * V), y = (int)(last ? at[2] : at[1]) * ROWS,
            z = (int)(last ? at[3] : at[2]);
  const int pitch = p.in[2], here = (z * p.in[1] + y) * pitch + x;
  const void *dy_image = image_of<dtype>(p.dy, n, p.y_stride[0]);
  const range deep = windows_over(p, 0, z, z + 1), high = windows_over(p, 1, y, min(y + ROWS, p.in[1])),
              wide = windows_over(p, 2, x, x + (columns ? V : 1));
  float sum[ROWS][V] = {};
#pragma unroll 1
  for (int oz = deep.begin; oz < deep.end; oz++)
#pragma unroll 1
    for (int oy = high.begin; oy < high.end; oy++)
#pragma unroll 1
      for (int ox = wide.begin; ox < wide.end; ox++) {
        const int o[3] = { oz, oy, ox };
        const window w = window_of(p, o);
        if (p.dilation[0] > 1 && !holds(p, 0, w.begin[0], w.size[0], z)) continue;
        float dy[U];
        int place[U] = {};
        fetch<dtype>(dy, dy_image, c * p.of_dy.c + oz * p.of_dy.z + oy * p.of_dy.y + ox * p.of_dy.x);
        if (p.average) {
          const float share = p.even ? p.share : 1 / divisor_of(p, w);
#pragma unroll
          for (int i = 0; i < U; i++) dy[i] *= share;
        } else {
          places_of<dtype, U, by_x>(place, p, n, c, c * p.of_index.c + oz * p.of_index.z + oy * p.of_index.y + ox * p.of_index.x, w);
        }
        bool column[columns ? V : 1];
#pragma unroll
        for (int i = 0; i < (columns ? V : 1); i++) column[i] = holds(p, 2, w.begin[2], w.size[2], x + i);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          if (!holds(p, 1, w.begin[1], w.size[1], y + r)) continue;
#pragma unroll
          for (int i = 0; i < V; i++)
            if (column[columns ? i : 0] && (p.average || place[i % U] - here == r * pitch + (columns ? i : 0))) sum[r][i] += dy[i % U];
        }
      }
  void *to = (void *)image_of<dtype>(p.dx, n, p.dx_stride[0]);
  int beyond = c * p.of_dx.c + z * p.of_dx.z + y * p.of_dx.y + x * p.of_dx.x;
#pragma unroll
  for (int r = 0; r < ROWS; r++, beyond += p.of_dx.y) {
    if (y + r >= p.in[1]) break;
    if constexpr (V == 1) edge_store<dtype>(to, beyond, sum[r][0]);
    else vector_store_whole<dtype>(sum[r], to, beyond);
  }
}

/* ---- planes by index, any windows without gaps -------------------------------------------------------------------- */

enum { WARPS = 4, BATCH = 4, MEMORY = 8 << 10 };          /* BATCH: loads of a lane in flight; MEMORY: bytes of shared memory of a warp */

struct pieces : gradient {
  uint32_t warps;
  int32_t  bands, band, tiles, tile;      /* bands of a plane, rows of one; tiles of a row, columns of one */
  int32_t  pitch, rows;                   /* of the tile in shared memory */
  int32_t  turns;                         /* turns that overlapping neighbours take */
  cuda_divisor by_bands, by_tiles, by_width, by_depth;      /* depth: planes of a channel, as indices count them */
};

template <int dtype, int how> __global__ void __launch_bounds__(WARPS * 32) pool_scatter_planes(const __grid_constant__ pieces p)
{
  extern __shared__ float memory[];
  const uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= p.warps) return;
  uint32_t band, tile, z;
  const uint32_t plane = cuda_quotient(cuda_quotient(warp, p.by_tiles, &tile), p.by_bands, &band);
  cuda_quotient(plane, p.by_depth, &z);
  const int top = (int)band * p.band, end = min(top + p.band, p.in[1]), left = (int)tile * p.tile, right = min(left + p.tile, p.in[2]);
  int oy_begin, oy_end, ox_begin, ox_end, other;
  windows_over(p, 1, top, &oy_begin, &other), windows_over(p, 1, end - 1, &other, &oy_end), oy_end++;
  windows_over(p, 2, left, &ox_begin, &other), windows_over(p, 2, right - 1, &other, &ox_end), ox_end++;
  const int y_base = min(oy_begin * p.step[1] - p.before[1], top), x_base = min(ox_begin * p.step[2] - p.before[2], left);
  float *const sums = memory + threadIdx.x / 32 * (p.pitch * p.rows);
  for (int i = lane; i < p.pitch * p.rows; i += 32) sums[i] = 0;
  __syncwarp();

  const int64_t windows = (int64_t)plane * p.out[1] * p.out[2];
  const uint32_t turn = lane % (uint32_t)p.turns;
  int oy = oy_begin, ox0 = ox_begin;
#pragma unroll 1
  while (oy < oy_end && ox0 < ox_end) {
    float v[BATCH];
    int place[BATCH], y[BATCH], x[BATCH];  /* index of the maximum (offset or tap number); first row and column of its window */
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int ox = ox0 + (int)lane;
      y[b] = oy * p.step[1] - p.before[1], x[b] = ox * p.step[2] - p.before[2];
      v[b] = 0, place[b] = -1;
      if (oy < oy_end && ox < ox_end) {
        const int64_t at = windows + oy * p.out[2] + ox;
        v[b] = edge_load<dtype>(p.dy, at);
        place[b] = how == BY_TAP           ? ((const uint8_t *)p.indices)[at]
                 : p.index_dtype == QN_I32 ? ((const int32_t *)p.indices)[at]
                                           : place_among(((const int64_t *)p.indices)[at]);
      }
      ox0 += 32;
      if (ox0 >= ox_end) ox0 = ox_begin, oy++;
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      uint32_t r, c;
      if (how == BY_TAP) {
        r = cuda_quotient((uint32_t)max(place[b], 0), p.by_size[2], &c);
      } else {
        r = cuda_quotient((uint32_t)max(place[b], 0), p.by_width, &c);
        r -= z * p.in[1] + y[b], c -= x[b];
      }
      const uint32_t mine = place[b] >= 0 && r < (uint32_t)p.size[1] && c < (uint32_t)p.size[2] ? turn : ~0u;
      float *const sum = sums + (y[b] - y_base + (int)r) * p.pitch + x[b] - x_base + (int)c;
#pragma unroll 1
      for (int t = 0; t < p.turns; t++) {
        if (mine == (uint32_t)t) *sum += v[b];
        __syncwarp();
      }
    }
  }

  const float *from = sums + (top - y_base) * p.pitch + left - x_base;
  char *to = (char *)p.dx + (((int64_t)plane * p.in[1] + top) * p.in[2] + left) * (dtype == QN_F32 ? 4 : 2);
  for (int row = top; row < end; row++, from += p.pitch, to += p.in[2] * (dtype == QN_F32 ? 4 : 2)) {
    if (p.pairs)
      for (int x = 2 * (int)lane; x < right - left; x += 64) pair_store<dtype>(to, x, from[x], from[x + 1]);
    else
      for (int x = (int)lane; x < right - left; x += 32) edge_store<dtype>(to, x, from[x]);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* Sets the grid and keeps the state. */
static qn_status keep(pool_state<gradient> *s, const int64_t cells[4], qn_prepared *out)
{
  double units = (double)s->p.n;
  for (int d = 0; d < 4; d++) units *= (double)cells[d], s->p.by_cell[d] = cuda_divide_by(cells[d]);
  if (units > INT32_MAX) return qn_refuse(out, "fewer than 2^31 cells", "dx", "", "%s", "more");
  s->p.units = (uint32_t)units;
  return pool_keep(s, s->p.units, THREADS, out);
}

/* Rare combinations are left to gather. */
template <int dtype, int how, int C> static pool_kernel cells_by_window(int window)
{
  if constexpr (how != BY_X)
    if (window == 321) return (pool_kernel)pool_cells<dtype, how, C, 3, 2, 1>;
  if (window == 220) return (pool_kernel)pool_cells<dtype, how, C, 2, 2, 0>;
  if constexpr (C > 1 && how <= BY_PLACE)
    if (window == 320) return (pool_kernel)pool_cells<dtype, how, C, 3, 2, 0>;
  if constexpr (C > 1 && how != BY_X)
    if (window == 311) return (pool_kernel)pool_cells<dtype, how, C, 3, 1, 1>;
  return nullptr;
}
template <int dtype, int C> static pool_kernel cells_of(int how, int window)
{
  if constexpr (C > 1)
    if (how == BY_X) return cells_by_window<dtype, BY_X, C>(window);
  return how == AVERAGE ? cells_by_window<dtype, AVERAGE, C>(window)
       : how == BY_X    ? nullptr
       : how == BY_TAP  ? cells_by_window<dtype, BY_TAP, C>(window)
                        : cells_by_window<dtype, BY_PLACE, C>(window);
}
template <int dtype> static pool_kernel cells_of(int how, int window, bool vectors)
{
  return vectors ? cells_of<dtype, vector_per_16<dtype>>(how, window) : cells_of<dtype, 1>(how, window);
}

static qn_status prepare_cells(const qn_request *r, qn_prepared *out)
{
  pool_state<gradient> s = {};
  const qn_status status = gradient_read(&s, r, out);
  if (status != QN_OK) return status;
  gradient *p = &s.p;
  const qn_value *dx = &r->value[s.of.dx];
  if (p->size[0] > 1 && s.of.x >= 0) return qn_refuse(out, "maxima of planes by x", "x", "indices", "%d deep", p->size[0]);
  if (p->size[0] > 1 && p->average && !p->even)
    return qn_refuse(out, "windows of as many taps", "dx", "no padding left out", "%d deep", p->size[0]);
  if (p->in[2] < p->size[2]) return qn_refuse(out, "rows as wide as a window", "dx", "3", "%d", p->in[2]);
  int v = gradient_channels(&s, r);
  if (v == 1 && !(p->dx_stride[4] == 1 && p->y_stride[4] == 1 && p->x_stride[4] == 1 && (s.of.indices < 0 || p->index_stride[4] == 1)))
    return qn_refuse(out, "columns side by side, or channels in vectors", "dx", "nchw or nhwc", "%s", "other strides");
  if (s.of.indices >= 0 && p->index_dtype == QN_I32) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  const int window = square_of(p), how = p->average ? AVERAGE : s.of.x >= 0 ? BY_X : p->index_dtype == QN_U8 ? BY_TAP : BY_PLACE;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) { return cells_of<dtype()>(how, window, v > 1); });
  if (!s.kernel)
    return qn_refuse(out, "small squares of windows", "dx", "3x3 with stride 1 or 2, or 2x2 with stride 2",
                     "%dx%d", p->size[1], p->size[2]);
  p->pairs = p->in[2] % 2 == 0 && dx->align >= 8 && p->dx_stride[1] % 2 == 0 && pool_steps(p->dx_stride, 2);
  const int64_t across = qn_ceil_div(p->in[2], 2), down = qn_ceil_div(p->in[1], rows_of(v));
  const int64_t one[4] = { across, down, p->in[0], p->c }, several[4] = { p->c / v, across, down, p->in[0] };
  return keep(&s, v > 1 ? several : one, out);
}

static qn_status prepare_scatter(const qn_request *r, qn_prepared *out)
{
  pool_state<pieces> s = {};
  pieces *p = &s.p;
  qn_status status = gradient_read(&s, r, out);
  if (!status) status = pool_wants_planes(r, s.of, 0, out);
  if (status) return status;
  if (s.of.indices < 0) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  p->by_depth = cuda_divide_by(p->in[0]);
  if (!pool_fold(p, false)) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  for (int d = 1; d < 3; d++)
    if ((p->size[d] > 1 && p->dilation[d] != 1) || p->step[d] > p->size[d] || p->size[d] > 32)
      return qn_refuse(out, "windows of at most 32, without dilation or gaps", "dx", "3", "%d", p->size[d]);
  const bool taps = p->index_dtype == QN_U8;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) {
    return taps ? (pool_kernel)pool_scatter_planes<dtype(), BY_TAP> : (pool_kernel)pool_scatter_planes<dtype(), BY_PLACE>;
  });
  const qn_value *dx = &r->value[s.of.dx];
  if (qn_elements(dx) > INT32_MAX) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");
  const int64_t count = qn_elements(dx) / ((int64_t)p->in[1] * p->in[2]);

  /* choose the tile: whole rows first, as many as shared memory holds */
  const int64_t beyond = 2 * (p->size[2] - 1), most = MEMORY / 4;
  p->tile = p->in[2] <= 512 ? p->in[2] : (int32_t)(512 / p->step[2] * p->step[2]);
  p->pitch = (int32_t)(p->tile + beyond);
  const int64_t rows = qn_max_i64(most / p->pitch - 2 * (p->size[1] - 1), 1);
  p->bands = (int32_t)qn_ceil_div(p->in[1], rows);
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], p->bands), p->step[1]);
  p->bands = (int32_t)qn_ceil_div(p->in[1], p->band);
  p->rows = (int32_t)(qn_min_i64(p->band, p->in[1]) + 2 * (p->size[1] - 1));
  p->tiles = (int32_t)qn_ceil_div(p->in[2], p->tile);
  p->turns = (int32_t)qn_ceil_div(p->size[2], p->step[2]);
  const int64_t shared = WARPS * (int64_t)p->pitch * p->rows * 4;
  if (shared > 48 << 10) return qn_refuse(out, "a row and its windows in 12 KB", "dx", "narrower", "%lld", (long long)shared);
  if ((double)count * p->bands * p->tiles > INT32_MAX / 32) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  p->warps = (uint32_t)(count * p->bands * p->tiles);
  p->by_bands = cuda_divide_by(p->bands), p->by_tiles = cuda_divide_by(p->tiles), p->by_width = cuda_divide_by(p->in[2]);
  p->pairs = p->in[2] % 2 == 0 && p->tile % 2 == 0 && dx->align >= 8;
  s.shared = (uint32_t)shared;
  return pool_keep(&s, 32 * (int64_t)p->warps, 32 * WARPS, out);
}

template <int dtype> static pool_kernel gather_of(bool channels, bool columns, bool by_x)
{
  constexpr int V = vector_per_16<dtype>;
  if (channels) return by_x ? (pool_kernel)pool_gather<dtype, V, false, true> : (pool_kernel)pool_gather<dtype, V, false, false>;
  if (columns) return (pool_kernel)pool_gather<dtype, V, true, false>;
  return by_x ? (pool_kernel)pool_gather<dtype, 1, true, true> : (pool_kernel)pool_gather<dtype, 1, true, false>;
}

static qn_status prepare_gather(const qn_request *r, qn_prepared *out)
{
  pool_state<gradient> s = {};
  const qn_status status = gradient_read(&s, r, out);
  if (status != QN_OK) return status;
  gradient *p = &s.p;
  const qn_value *dx = &r->value[s.of.dx];
  int v = dx->dtype == QN_F32 ? 4 : 8;
  bool channels = gradient_channels(&s, r) > 1,
       columns = s.of.x < 0 && p->in[2] % v == 0 && p->dx_stride[4] == 1 && dx->align >= 16;
  for (int d = 0; d < 4; d++) columns &= p->dx_stride[d] % v == 0;
  p->channels_last = dx->dim[1] > 1 && dx->stride[1] == 1 && !columns;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) { return gather_of<dtype()>(channels, columns, s.of.x >= 0); });
  bool last = channels || p->channels_last;
  const int64_t c = p->c, down = qn_ceil_div(p->in[1], ROWS), across = columns ? p->in[2] / v : p->in[2];
  const int64_t first[4] = { across, down, p->in[0], c }, behind[4] = { channels ? c / v : c, across, down, p->in[0] };
  return keep(&s, last ? behind : first, out);
}

static const qn_engine row[] = {
  pool_row<gradient>("cells", QN_OP_POOL_MAX_BACKWARD, prepare_cells),
  pool_row<gradient>("cells", QN_OP_POOL_AVERAGE_BACKWARD, prepare_cells),
  pool_row<pieces>("scatter_planes", QN_OP_POOL_MAX_BACKWARD, prepare_scatter),
  pool_row<gradient>("gather", QN_OP_POOL_MAX_BACKWARD, prepare_gather),
  pool_row<gradient>("gather", QN_OP_POOL_AVERAGE_BACKWARD, prepare_gather),
};
CUDA_ENGINES(pool_cells) = { row, sizeof row / sizeof *row };
