/* conv_fft.cu -- 32x32 tiles to and from their Fourier transforms (conv_fft.h).
 *
 * A block takes 16 tiles that are neighbouring columns of the matrix, 16 threads a tile. A thread transforms two rows as the real
 * and imaginary part of one sequence in registers, then, after a transposition through shared memory, a column of the result;
 * columns 0 and 16, which are real, share one thread. The inverse runs backwards. Bins are written 16 neighbours at a time. */
#include "conv_fft.h"
#include "kit/element.cuh"
#include "kit/shared_memory.h"

enum { SIDE = CUDA_FFT_SIDE, BINS = CUDA_FFT_BINS, TILES = CUDA_FFT_TILES, THREADS = 256, SHARED = CUDA_FFT_SHARED };
enum { ROW = SIDE + 1, TILE = SIDE * ROW + 1, SPREAD = TILES + 1 };      /* pitches in shared memory: floats, floats, complex */
static_assert(BINS * SPREAD * 8 == SHARED && TILES * TILE * 4 <= SHARED, "room for bins, and for tiles");

/* ---- one sequence of 32 ------------------------------------------------------------------------------------ */

__device__ constexpr int reversed(int i) { return (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4; }

/* v times exp(-2 pi i k / 32), or its inverse. */
template <bool inverse> __device__ __forceinline__ float2 turn(float2 v, int k)
{
  constexpr float cosine[17] = { 1, 0.98078528040323044913f, 0.92387953251128675613f, 0.83146961230254523708f, 0.70710678118654752440f,
    0.55557023301960222474f, 0.38268343236508977173f, 0.19509032201612826785f, 0, -0.19509032201612826785f, -0.38268343236508977173f,
    -0.55557023301960222474f, -0.70710678118654752440f, -0.83146961230254523708f, -0.92387953251128675613f, -0.98078528040323044913f, -1 };
  if (k == 0) return v;
  if (k == 8) return inverse ? make_float2(-v.y, v.x) : make_float2(v.y, -v.x);
  float c = cosine[k], s = k < 8 ? cosine[8 - k] : cosine[k - 8];
  if (!inverse) s = -s;
  return make_float2(v.x * c - v.y * s, v.x * s + v.y * c);
}

/* In place, unscaled; element k of the transform ends up at reversed(k). */
template <bool inverse> __device__ __forceinline__ void transform(float2 (&v)[SIDE])
{
#pragma unroll
  for (int half = SIDE / 2; half > 0; half /= 2)
#pragma unroll
    for (int i = 0; i < SIDE / 2; i++) {
      int k = i % half, a = i / half * 2 * half + k, b = a + half;
      float2 u = v[a], w = v[b];
      v[a] = make_float2(u.x + w.x, u.y + w.y);
      v[b] = turn<inverse>(make_float2(u.x - w.x, u.y - w.y), k * (SIDE / 2 / half));
    }
}

/* ---- tiles --------------------------------------------------------------------------------------------------- */

/* Number of bin (u, v). Columns 0 and 16 have 17 independent bins each: column 16's take the free places of column 0, and two more. */
__device__ __forceinline__ int bin_of(int u, int v)
{
  if (v < 16) return u * 16 + v;
  return u < 15 ? (u + 17) * 16 : 497 + u;
}

struct place { int64_t at; int32_t h, w; };       /* of a tile: offset of its plane, -1: none; its first pixel */

__device__ __forceinline__ place place_of(const cuda_fft_tiles &t, int row, int column)
{
  int unit = t.in_rows ? row : column, inner = t.in_rows ? column : row;
  int rest = unit / t.tiles[1], j = unit - rest * t.tiles[1], outer = rest / t.tiles[0], i = rest - outer * t.tiles[0];
  bool there = outer < t.outer && inner < t.inner;
  return { there ? outer * t.outer_stride + inner * t.inner_stride : -1, i * t.step[0] - t.before[0], j * t.step[1] - t.before[1] };
}

/* Calls f(tile, row, column) for this thread's pixels, in an order in which neighbouring threads access contiguous memory. */
template <class F> __device__ __forceinline__ void each_pixel(bool planes_inside, const F &f)
{
  int t = threadIdx.x;
  if (planes_inside) {
    for (int s = t / TILES; s < SIDE; s += THREADS / TILES)
#pragma unroll 8
      for (int r = 0; r < SIDE; r++) f(t % TILES, r, s);
  } else {
#pragma unroll 2
    for (int tile = 0; tile < TILES; tile++)
#pragma unroll
      for (int r = t / SIDE; r < SIDE; r += THREADS / SIDE) f(tile, r, t % SIDE);
  }
}

__global__ void __launch_bounds__(THREADS, 3)
    fft_transform(const __grid_constant__ cuda_fft_tiles t, const float *planes, float2 *spectra, int64_t rows, int columns, int pairs)
{
  extern __shared__ float tiles[];
  __shared__ place places[TILES];
  float2 *spread = (float2 *)tiles;       /* [bin][tile], reuses the memory */
  int row = blockIdx.x, column = blockIdx.y * TILES, tile = threadIdx.x / 16, j = threadIdx.x % 16;
  if (threadIdx.x < TILES) places[threadIdx.x] = place_of(t, row, column + threadIdx.x);
  __syncthreads();
  each_pixel(t.in_rows && t.inner_stride == 1, [&](int at, int r, int s) {
    place p = places[at];
    int h = p.h + r, w = p.w + s;
    bool there = p.at >= 0 && r < t.reach[0] && s < t.reach[1] && (uint32_t)h < (uint32_t)t.extent[0] &&
                 (uint32_t)w < (uint32_t)t.extent[1];
    tiles[at * TILE + r * ROW + s] = there ? planes[p.at + h * t.stride[0] + w * t.stride[1]] : 0;
  });
  __syncthreads();

  float2 v[SIDE];
  float *mine = tiles + tile * TILE, *first = mine + 2 * j * ROW, *second = first + ROW;
#pragma unroll
  for (int s = 0; s < SIDE; s++) v[s] = make_float2(first[s], second[s]);
  transform<false>(v);
  /* separate the two rows' transforms: columns 0 and 16 (real) as one pair, then 1 to 15 */
  first[0] = v[reversed(0)].x, first[1] = v[reversed(16)].x;
  second[0] = v[reversed(0)].y, second[1] = v[reversed(16)].y;
#pragma unroll
  for (int k = 1; k < 16; k++) {
    float2 a = v[reversed(k)], b = v[reversed(SIDE - k)];
    first[2 * k] = (a.x + b.x) / 2, first[2 * k + 1] = (a.y - b.y) / 2;
    second[2 * k] = (a.y + b.y) / 2, second[2 * k + 1] = (b.x - a.x) / 2;
  }
  __syncwarp();
#pragma unroll
  for (int r = 0; r < SIDE; r++) v[r] = make_float2(mine[r * ROW + 2 * j], mine[r * ROW + 2 * j + 1]);
  transform<false>(v);
  __syncthreads();
  if (j) {
#pragma unroll
    for (int u = 0; u < SIDE; u++) spread[bin_of(u, j) * SPREAD + tile] = v[reversed(u)];
  } else {
#pragma unroll
    for (int u = 0; u <= 16; u++) {
      float2 a = v[reversed(u)], b = v[reversed((SIDE - u) % SIDE)];
      spread[bin_of(u, 0) * SPREAD + tile] = make_float2((a.x + b.x) / 2, (a.y - b.y) / 2);
      spread[bin_of(u, 16) * SPREAD + tile] = make_float2((a.y + b.y) / 2, (b.x - a.x) / 2);
    }
  }
  __syncthreads();
  int64_t lines = pairs ? 2 * rows : rows, line = pairs ? 2 * row : row;
  if (column + j < columns)
    for (int bin = tile; bin < BINS; bin += THREADS / 16) {
      float2 z = spread[bin * SPREAD + j], *to = spectra + (bin * lines + line) * columns + column + j;
      to[0] = z;
      if (pairs) to[columns] = make_float2(-pairs * z.y, pairs * z.x);
    }
}

/* ---- and back -------------------------------------------------------------------------------------------------- */

__device__ __noinline__ float sum_again(const cuda_fft_again &g, int row, int column, int h, int w)
{
  const float *a = g.a + (g.swapped ? column : row) * g.a_outer, *b = g.b + (g.swapped ? row : column) * g.b_outer;
  float sum = 0;
  for (int i = 0; i < g.inner; i++)
    for (int r = 0; r < g.b_extent[0]; r++)
      for (int s = 0; s < g.b_extent[1]; s++) {
        int y = h + r - g.before[0], x = w + s - g.before[1];
        if ((uint32_t)y < (uint32_t)g.a_extent[0] && (uint32_t)x < (uint32_t)g.a_extent[1])
          sum = fmaf(a[i * g.a_inner + y * g.a_stride[0] + x * g.a_stride[1]], b[i * g.b_inner + r * g.b_stride[0] + s * g.b_stride[1]],
                     sum);
      }
  return sum;
}

__global__ void __launch_bounds__(THREADS, 3)
    fft_restore(const __grid_constant__ cuda_fft_tiles t, const float2 *spectra, float *planes, int64_t rows, int columns,
                const __grid_constant__ cuda_fft_again again, const void *bias, uint32_t bias_dtype, int64_t bias_stride)
{
  extern __shared__ float tiles[];
  __shared__ place places[TILES];
  float2 *spread = (float2 *)tiles;
  int row = blockIdx.x, column = blockIdx.y * TILES, tile = threadIdx.x / 16, j = threadIdx.x % 16;
  if (threadIdx.x < TILES) places[threadIdx.x] = place_of(t, row, column + threadIdx.x);
#pragma unroll 8
  for (int bin = tile; bin < BINS; bin += THREADS / 16)
    spread[bin * SPREAD + j] = column + j < columns ? spectra[((int64_t)bin * rows + row) * columns + column + j] : make_float2(0, 0);
  __syncthreads();
  float2 v[SIDE];
  if (j) {
#pragma unroll
    for (int u = 0; u < SIDE; u++) v[u] = spread[bin_of(u, j) * SPREAD + tile];
  } else {
#pragma unroll
    for (int u = 0; u <= 16; u++) {       /* column 0 plus i times column 16 */
      float2 a = spread[bin_of(u, 0) * SPREAD + tile], b = spread[bin_of(u, 16) * SPREAD + tile];
      v[u] = make_float2(a.x - b.y, a.y + b.x);
      v[(SIDE - u) % SIDE] = u % 16 ? make_float2(a.x + b.y, b.x - a.y) : v[u];
    }
  }
  transform<true>(v);
  __syncthreads();
  float *mine = tiles + tile * TILE, *first = mine + 2 * j * ROW, *second = first + ROW;
#pragma unroll
  for (int r = 0; r < SIDE; r++) mine[r * ROW + 2 * j] = v[reversed(r)].x, mine[r * ROW + 2 * j + 1] = v[reversed(r)].y;
  __syncwarp();
  v[0] = make_float2(first[0], second[0]);
  v[16] = make_float2(first[1], second[1]);
#pragma unroll
  for (int k = 1; k < 16; k++) {          /* first + i second, and its conjugate counterpart */
    float2 a = make_float2(first[2 * k], first[2 * k + 1]), b = make_float2(second[2 * k], second[2 * k + 1]);
    v[k] = make_float2(a.x - b.y, a.y + b.x);
    v[SIDE - k] = make_float2(a.x + b.y, b.x - a.y);
  }
  transform<true>(v);
#pragma unroll
  for (int s = 0; s < SIDE; s++) first[s] = v[reversed(s)].x, second[s] = v[reversed(s)].y;
  __syncthreads();
  each_pixel(t.in_rows && t.inner_stride == 1, [&](int at, int r, int s) {
    place p = places[at];
    int h = p.h + r, w = p.w + s;
    if (p.at < 0 || r >= t.reach[0] || s >= t.reach[1] || h >= t.extent[0] || w >= t.extent[1]) return;
    float sum = tiles[at * TILE + r * ROW + s] * (1.f / (SIDE * SIDE));
    if (!isfinite(sum)) sum = sum_again(again, t.in_rows ? row / (t.tiles[0] * t.tiles[1]) : row, column + at, h, w);
    if (bias) sum += element_load<float>(bias, (column + at) * bias_stride, bias_dtype);
    planes[p.at + h * t.stride[0] + w * t.stride[1]] = sum;
  });
}

/* ---- host ------------------------------------------------------------------------------------------------------ */

qn_status cuda_fft_build(void)
{
  qn_status s = cuda_allow_shared((const void *)fft_transform);
  return s ? s : cuda_allow_shared((const void *)fft_restore);
}

static dim3 grid_of(int64_t rows, int64_t columns) { return dim3((unsigned)rows, (unsigned)qn_ceil_div(columns, TILES)); }

qn_status cuda_fft_transform(const cuda_fft_tiles *t, const float *planes, float *spectra, int64_t rows, int64_t columns, int pairs,
                             void *stream)
{
  fft_transform<<<grid_of(rows, columns), THREADS, SHARED, (cudaStream_t)stream>>>(*t, planes, (float2 *)spectra, rows, (int)columns,
                                                                                   pairs);
  return cuda_check(cudaGetLastError(), "fft_transform");
}

qn_status cuda_fft_restore(const cuda_fft_tiles *t, const float *spectra, float *planes, int64_t rows, int64_t columns,
                           const cuda_fft_again *again, const void *bias, uint32_t bias_dtype, int64_t bias_stride, void *stream)
{
  fft_restore<<<grid_of(rows, columns), THREADS, SHARED, (cudaStream_t)stream>>>(*t, (const float2 *)spectra, planes, rows, (int)columns,
                                                                                 *again, bias, bias_dtype, bias_stride);
  return cuda_check(cudaGetLastError(), "fft_restore");
}
