/* conv_narrow_filter.cu -- gradient by the filter of f32 convolution with 3x3 filters of at most four channels (a first layer), on FP32
 * cores: the sums are too short for Tensor Cores to pay for a new layout of the operands. Rows with contiguous W.
 *
 *   dw[k, c, r, s] = sum over images and outputs (p, q) of dy[n, k, p, q] x[n, c, p + r - pad, q + s - pad]
 *
 * Tiles of dy (64 filters by 4x32) and x are double buffered in shared memory. A warp has one channel and a share of the tile, a
 * thread the nine taps of eight filters, four outputs of a row at a time. Each block leaves a partial sum in workspace; these are
 * added in order. */
#include "conv_kernel.h"
#include "engines.h"
#include "kit/sm80.cuh"

enum { CHANNELS = 4, WARPS = 12, THREADS = 32 * WARPS, SLICE = 64, ROWS = 4, COLUMNS = 32, QUADS = COLUMNS / 4, MINE = 8, TAPS = 9 };
/* in floats: of a filter, a row, a channel */
enum { DY_PITCH = ROWS * COLUMNS + 16, X_PITCH = COLUMNS + 4, X_PLANE = (ROWS + 2) * X_PITCH };
enum { STAGE = SLICE * DY_PITCH + CHANNELS * X_PLANE, SHARED = 2 * STAGE * 4 };

struct narrow_filter {
  const float *x, *dy;
  float   *parts;                         /* [part][K][C][3][3] */
  int32_t  channels, filters, in[2], out[2], before[2];
  int32_t  across, image, tiles;          /* tiles of a row, of an image, in total */
  int64_t  x_stride[4], dy_stride[3];
};

__device__ __forceinline__ void fetch(const narrow_filter &p, uint32_t to, int n, int y0, int x0, int k0)
{
  for (int i = threadIdx.x; i < SLICE * ROWS * QUADS; i += THREADS) {
    int quad = i % QUADS, row = i / QUADS % ROWS, k = i / (QUADS * ROWS);
    bool there = k0 + k < p.filters && y0 + row < p.out[0] && x0 + 4 * quad < p.out[1];
    const float *from = there ? p.dy + n * p.dy_stride[0] + (k0 + k) * p.dy_stride[1] + (y0 + row) * p.dy_stride[2] + x0 + 4 * quad : p.dy;
    copy_async<16>(to + (k * DY_PITCH + row * COLUMNS + 4 * quad) * 4, from, there ? 16 : 0);
  }
  for (int i = threadIdx.x; i < p.channels * (ROWS + 2) * (COLUMNS + 2); i += THREADS) {
    int line = i / (COLUMNS + 2), column = i - line * (COLUMNS + 2), c = line / (ROWS + 2), row = line - c * (ROWS + 2);
    int h = y0 + row - p.before[0], w = x0 + column - p.before[1];
    bool there = (unsigned)h < (unsigned)p.in[0] && (unsigned)w < (unsigned)p.in[1];
    const float *from = there ? p.x + n * p.x_stride[0] + c * p.x_stride[1] + h * p.x_stride[2] + w * p.x_stride[3] : p.x;
    copy_async<4>(to + (SLICE * DY_PITCH + line * X_PITCH + column) * 4, from, there ? 4 : 0);
  }
  copy_async_commit();
}

__global__ void __launch_bounds__(THREADS, 1) conv_narrow_filter(const __grid_constant__ narrow_filter p)
{
  extern __shared__ float4 shared[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, channel = warp % p.channels, share = warp / p.channels, shares = WARPS / p.channels;
  int group = lane / 4, position = lane % 4, k0 = blockIdx.y * SLICE, stage = 0;       /* filters group, group + 8, ... */
  float sum[MINE][TAPS] = {};
  auto begin = [&](int tile, int at, int *rows, int *quads) {
    int n = tile / p.image, rest = tile - n * p.image, y = rest / p.across, y0 = y * ROWS, x0 = (rest - y * p.across) * COLUMNS;
    if (at >= 0) fetch(p, shared_address(shared) + at * STAGE * 4, n, y0, x0, k0);
    *rows = p.out[0] - y0, *quads = (p.out[1] - x0) / 4;
  };
  int rows, quads;
  begin(blockIdx.x, 0, &rows, &quads);
  for (int tile = blockIdx.x; tile < p.tiles; tile += gridDim.x, stage ^= 1) {
    bool more = tile + (int)gridDim.x < p.tiles;
    if (more) begin(tile + gridDim.x, stage ^ 1, &rows, &quads);
    begin(tile, -1, &rows, &quads);
    if (more) copy_async_wait<1>();
    else copy_async_wait<0>();
    __syncthreads();
    const float *dy = (const float *)shared + stage * STAGE, *x = dy + SLICE * DY_PITCH + channel * X_PLANE;
    for (int unit = share * 4 + position; unit < ROWS * QUADS; unit += 4 * shares) {
      int row = unit / QUADS, quad = unit % QUADS;
      if (row >= rows || quad >= quads) continue;
      float seen[3][6];
#pragma unroll
      for (int r = 0; r < 3; r++) {
        const float *from = x + (row + r) * X_PITCH + 4 * quad;
        float4 a = *(const float4 *)from;
        float2 b = *(const float2 *)(from + 4);
        seen[r][0] = a.x, seen[r][1] = a.y, seen[r][2] = a.z, seen[r][3] = a.w, seen[r][4] = b.x, seen[r][5] = b.y;
      }
#pragma unroll
      for (int i = 0; i < MINE; i++) {
        float4 d = *(const float4 *)(dy + (group + 8 * i) * DY_PITCH + row * COLUMNS + 4 * quad);
#pragma unroll
        for (int r = 0; r < 3; r++)
#pragma unroll
          for (int s = 0; s < 3; s++) {
            float v = sum[i][r * 3 + s];
            v = fmaf(d.x, seen[r][s], v), v = fmaf(d.y, seen[r][s + 1], v), v = fmaf(d.z, seen[r][s + 2], v),
            v = fmaf(d.w, seen[r][s + 3], v);
            sum[i][r * 3 + s] = v;
          }
      }
    }
    __syncthreads();
  }

  /* adds the positions of a warp, then the shares in order */
  float *sums = (float *)shared;          /* [share][channel][filter][tap] */
#pragma unroll
  for (int i = 0; i < MINE; i++)
#pragma unroll
    for (int t = 0; t < TAPS; t++) {
      float v = sum[i][t];
      v += __shfl_xor_sync(~0u, v, 1);
      v += __shfl_xor_sync(~0u, v, 2);
      if (position == 0) sums[((share * p.channels + channel) * SLICE + group + 8 * i) * TAPS + t] = v;
    }
  __syncthreads();
  int each = p.channels * TAPS;
  float *part = p.parts + ((int64_t)blockIdx.x * p.filters + k0) * each;
  for (int i = threadIdx.x; i < SLICE * each; i += THREADS) {
    int k = i / each, rest = i - k * each, c = rest / TAPS;
    if (k0 + k >= p.filters) break;
    const float *from = sums + (c * SLICE + k) * TAPS + rest - c * TAPS;
    float v = *from;
    for (int s = 1; s < shares; s++) v += from[s * p.channels * SLICE * TAPS];
    part[i] = v;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read(&c, r, out);
  if (status || (status = cuda_conv_wants_ampere(r, out)) || (status = cuda_conv_wants_narrow(&c, out))) return status;
  if (!qn_is_packed(c.w)) return qn_refuse(out, "packed filters", "dw", "nchw", "%s", "other strides");
  if (!cuda_conv_rows_of_vectors(c.y))
    return qn_refuse(out, "rows of whole vectors of 16 bytes", "dy", "a multiple of 4", "%lld", (long long)c.out[1]);
  narrow_filter p = {};
  p.channels = (int32_t)c.channels, p.filters = (int32_t)c.filters;
  for (int d = 0; d < 2; d++) p.in[d] = (int32_t)c.in[d], p.out[d] = (int32_t)c.out[d], p.before[d] = (int32_t)c.before[d];
  for (int d = 0; d < 4; d++) p.x_stride[d] = c.x->stride[d];
  for (int d = 0; d < 3; d++) p.dy_stride[d] = c.y->stride[d];
  int64_t across = qn_ceil_div(c.out[1], COLUMNS), image = across * qn_ceil_div(c.out[0], ROWS), tiles = image * c.x->dim[0];
  int64_t slices = qn_ceil_div(c.filters, SLICE), elements = c.filters * c.channels * TAPS;
  if (slices > 65535) return qn_refuse(out, "a grid of blocks", "dy", "fewer filters", "%lld", (long long)c.filters);
  p.across = (int32_t)across, p.image = (int32_t)image, p.tiles = (int32_t)tiles;
  int64_t parts = cuda_conv_shares_of_sum(r, out, tiles, r->device->units / slices, elements);
  if (parts < 1) return QN_UNSUPPORTED;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, (const void *)conv_narrow_filter, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)slices;
  k->threads = THREADS, k->shared = SHARED;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(narrow_filter, x));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(narrow_filter, dy));
  cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(narrow_filter, parts));
  double rounds = (double)qn_ceil_div(tiles, parts) * (double)qn_ceil_div(parts * slices, r->device->units);
  out->estimate = 6000 + rounds * (500 + 350 * (double)c.channels) + (double)(parts * elements) * 4 / 1500;
  return QN_OK;
}

static const qn_engine row[] = {
  { "narrow", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC,
    nullptr, nullptr, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_narrow_filter) = { row, sizeof row / sizeof *row };
