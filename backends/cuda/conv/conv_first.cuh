/* conv_first.cuh -- shared by the engines for a network's first layer (few input channels, f16 and bf16), by mma.sync.
 *
 *   x [N, C, H, W] channels last, C small   w [K, C, R, S]   y [N, K, P, Q] channels last
 *
 * A row of a window, S C elements, is contiguous in memory. It is cut into chunks of eight elements, the k of the Tensor Core
 * products; the last chunk of a row ends in elements that do not belong to the window and are masked.
 * In shared memory the pitch of a pixel is C elements, or C + 1 (one zero of padding) where windows must begin at even elements. */
#pragma once
#include "conv_kernel.h"
#include "kit/sm80.cuh"
#include "kit/vector.cuh"

typedef struct first_shape {
  int32_t channels, filters, in[2], out[2], size[2], stride[2], before[2];
  int32_t dilation;                       /* of rows; along a row there is none */
  int32_t pitch;                          /* of pixels in shared memory, in elements */
  int32_t run;                            /* elements of a window's row: S pitch */
  int32_t chunks, all;                    /* chunks of a window's row; of the window */
  int32_t tile_h, tile_w, x_h, x_w;       /* outputs of a tile, tile_w a multiple of 16; its input tile */
  int32_t tiles_h, tiles_w, tiles;
  int32_t row;                            /* words of an input row in shared memory */
  int32_t reciprocal;                     /* 2^20 / pitch, rounded up; exact up to 4095 */
  int64_t w_stride[4];                    /* K, C, R, S */
} first_shape;

static __device__ __forceinline__ uint32_t shared_word(uint32_t from)
{
  uint32_t word;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from) : "memory");
  return word;
}

static __device__ __forceinline__ uint32_t shared_half(uint32_t from)
{
  uint16_t half;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(half) : "r"(from) : "memory");
  return half;
}

/* Loads the input tile of a block, zeros outside. Two elements at a time, because pixels may begin anywhere; several words of a
 * row are in flight. */
template <int WORDS>
static __device__ __forceinline__ void first_load(uint32_t to, const first_shape &f, const uint16_t *x, int n, int y0, int x0)
{
  int top = y0 * f.stride[0] - f.before[0], left = x0 * f.stride[1] - f.before[1];
  const uint16_t *image = x + (int64_t)n * f.in[0] * f.in[1] * f.channels;
  for (int i = threadIdx.x / 32; i < f.x_h; i += blockDim.x / 32) {
    bool inside = (uint32_t)(top + i) < (uint32_t)f.in[0];
    const uint16_t *from = image + (int64_t)(top + i) * f.in[1] * f.channels;
    for (int first = threadIdx.x % 32; first < f.row; first += 32 * WORDS) {
      uint32_t half[WORDS][2];
#pragma unroll
      for (int k = 0; k < WORDS; k++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          int at = 2 * (first + 32 * k) + e, j = (int)((uint32_t)at * (uint32_t)f.reciprocal >> 20), c = at - j * f.pitch,
              column = left + j;
          half[k][e] = inside && first + 32 * k < f.row && (uint32_t)column < (uint32_t)f.in[1] && c < f.channels
                         ? from[column * f.channels + c]
                         : 0;
        }
#pragma unroll
      for (int k = 0; k < WORDS; k++)
        if (first + 32 * k < f.row) shared_store(to + (i * f.row + first + 32 * k) * 4, half[k][0] | half[k][1] << 16);
    }
  }
}

/* The image and first output of tile number `tile`. */
static __device__ __forceinline__ void first_tile(const first_shape &f, int tile, int *n, int *y0, int *x0)
{
  int rest = tile / f.tiles_w;
  *x0 = (tile - rest * f.tiles_w) * f.tile_w;
  *n = rest / f.tiles_h;
  *y0 = (rest - *n * f.tiles_h) * f.tile_h;
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Common refusals. even: windows must begin at even elements. */
static inline qn_status first_shape_read(first_shape *f, cuda_conv_problem *c, const qn_request *r, bool even, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read(c, r, out);
  if (!status) status = cuda_conv_wants_ampere(r, out);
  if (!status) status = cuda_conv_wants_halves(c, out);
  if (!status) status = cuda_conv_wants_channels_last(c->y, "y", out);
  if (status) return status;
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  if (c->channels >= 8) return qn_refuse(out, "few channels", "x", "less than 8", "C %lld", (long long)c->channels);
  if (c->filters % 8) return qn_refuse(out, "filters in eights", "y", "K a multiple of 8", "K %lld", (long long)c->filters);
  if (!qn_is_channels_last(c->x)) return qn_refuse(out, "packed channels last", "x", "nhwc", "%s", "other strides");
  if (c->dilation[1] != 1) return qn_refuse(out, "taps side by side along a row", "w", "dilation 1", "%lld", (long long)c->dilation[1]);
  if (c->size[0] * c->size[1] > 256 || c->stride[0] > 32 || c->stride[1] > 32 || c->dilation[0] > 32)
    return qn_refuse(out, "windows of at most 256 taps, strides to 32", "w", "", "%lld", (long long)(c->size[0] * c->size[1]));
  memset(f, 0, sizeof *f);
  f->channels = (int32_t)c->channels, f->filters = (int32_t)c->filters;
  for (int d = 0; d < 2; d++) {
    f->in[d] = (int32_t)c->in[d], f->out[d] = (int32_t)c->out[d], f->size[d] = (int32_t)c->size[d];
    f->stride[d] = (int32_t)c->stride[d], f->before[d] = (int32_t)c->before[d];
  }
  f->dilation = (int32_t)c->dilation[0];
  f->pitch = even && c->channels * c->stride[1] % 2 ? f->channels + 1 : f->channels;
  f->run = f->size[1] * f->pitch;
  f->chunks = (int32_t)qn_ceil_div(f->run, 8);
  f->all = f->chunks * f->size[0];
  f->reciprocal = (int32_t)qn_ceil_div(1 << 20, f->pitch);
  f->w_stride[0] = c->w->stride[0], f->w_stride[1] = c->w->stride[1], f->w_stride[2] = c->w_stride[0], f->w_stride[3] = c->w_stride[1];
  return QN_OK;
}

/* Bytes of shared memory of the input tile, including what a chunk reads beyond a row's end. */
static inline int64_t first_x_bytes(const first_shape *f) { return ((int64_t)f->x_h * f->row + 16) * 4; }

/* Sets the tile to th x tw outputs. */
static inline void first_shape_tile(first_shape *f, int64_t images, int th, int tw)
{
  f->tile_h = th, f->tile_w = tw;
  f->x_h = (th - 1) * f->stride[0] + (f->size[0] - 1) * f->dilation + 1;
  f->x_w = (tw - 1) * f->stride[1] + f->size[1];
  f->row = (int32_t)qn_ceil_div(f->x_w * f->pitch, 2);
  f->tiles_h = (int32_t)qn_ceil_div(f->out[0], th), f->tiles_w = (int32_t)qn_ceil_div(f->out[1], tw);
  f->tiles = (int32_t)(images * f->tiles_h * f->tiles_w);
}
