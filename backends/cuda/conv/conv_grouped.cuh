/* conv_grouped.cuh -- shared by the engines for groups of few channels, f16 and bf16, channels last. A block has 64 channels of
 * the written tensor, or as many whole groups as fit, and 128 pixels at a time. A chunk, eight channels of a pixel, is a matrix
 * row for ldmatrix, wherever the pixel lies, so windows need no gathering.
 *
 * Groups whose channels are no multiple of eight are merged into one whose are, with a block-diagonal filter: the smallest power
 * of two of groups is taken, to 8, that makes eights of channels and filters. */
#pragma once
#include "conv_kernel.h"
#include "conv_tile.cuh"
#include "kit/vector.cuh"

enum { GROUPED_THREADS = 256, GROUPED_PIXELS = 128, GROUPED_SHARED = 112 << 10 };     /* so that two blocks fit an SM */

typedef struct grouped_shape {
  int32_t groups, channels, filters;      /* merged groups; channels and filters of one */
  int32_t merged;                         /* groups of the convolution in one of these */
  int32_t out[2], size[2], stride[2], dilation[2], before[2];            /* window geometry */
  int32_t beside;                         /* groups of a block */
  int32_t chunks;                         /* chunks of a group's pixel */
  int32_t pixel;                          /* bytes of a pixel of x in shared memory: all chunks and 16, against bank conflicts */
  int32_t line;                           /* bytes of a row of a tile of x in shared memory */
  int32_t tile_h, tile_w, x_h, x_w, tiles_h, tiles_w, tiles;
  int32_t side;                           /* rows of a tile of x copied at once */
  int32_t load;                           /* chunks of a pixel, all groups of a block */
  int32_t buffers;                        /* tiles of x in shared memory; 2: double buffered */
  int64_t w_stride[4];                    /* K, C, R, S */
} grouped_shape;

/* Byte offset of chunk i of a window `taps` wide. */
static __device__ __forceinline__ int grouped_chunk(const grouped_shape &f, int taps, int i)
{
  int tap = i / f.chunks, r = tap / taps, s = tap - r * taps;
  return r * f.dilation[0] * f.line + s * f.dilation[1] * f.pixel + (i - tap * f.chunks) * 16;
}
/* Pixel i of a tile as row << 16 | column; -1: beyond the tile. */
static __device__ __forceinline__ int grouped_place(const grouped_shape &f, int i)
{
  int h = i / f.tile_w, w = i - h * f.tile_w;
  return h < f.tile_h ? h << 16 | w : -1;
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Common refusals; fills everything but the tile. */
static inline qn_status grouped_shape_read(grouped_shape *f, cuda_conv_problem *c, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_read_halves(c, r, out);
  if (status) return status;
  if (c->groups < 2) return qn_refuse(out, "groups", "x", "two or more", "%lld", (long long)c->groups);
  int64_t channels = c->channels / c->groups, filters = c->filters / c->groups, merged = 1;
  while (merged < 8 && (channels * merged % 8 || filters * merged % 8)) merged *= 2;
  channels *= merged, filters *= merged;
  if (c->groups % merged) return qn_refuse(out, "groups that merge into eights of channels", "x", "a multiple of 8", "%lld", (long long)c->groups);
  if (channels > 64) return qn_refuse(out, "at most 64 channels in merged groups", "x", "64", "%lld", (long long)channels);
  if (filters > 64) return qn_refuse(out, "at most 64 filters in merged groups", "y", "64", "%lld", (long long)filters);
  memset(f, 0, sizeof *f);
  f->groups = (int32_t)(c->groups / merged), f->channels = (int32_t)channels, f->filters = (int32_t)filters, f->merged = (int32_t)merged;
  bool data = c->mode == CUDA_CONV_DATA;
  for (int d = 0; d < 2; d++) {
    f->out[d] = (int32_t)c->out[d], f->size[d] = (int32_t)c->size[d];
    f->stride[d] = (int32_t)c->stride[d], f->dilation[d] = (int32_t)c->dilation[d], f->before[d] = (int32_t)c->before[d];
  }
  int under = data ? f->filters : f->channels, written = data ? f->channels : f->filters, wide = 8;
  while (wide < written) wide *= 2;
  f->beside = 64 / wide;
  f->chunks = under / 8;
  f->pixel = f->beside * under * 2 + 16;
  f->load = f->beside * f->chunks;
  f->w_stride[0] = c->w->stride[0], f->w_stride[1] = c->w->stride[1], f->w_stride[2] = c->w_stride[0], f->w_stride[3] = c->w_stride[1];
  return QN_OK;
}

/* Bytes of a row of x_w pixels, padded so that the pixels of consecutive tile rows, too, avoid bank conflicts if possible. */
static inline int64_t grouped_line(const grouped_shape *f, int64_t x_w, int64_t tile_w)
{
  int64_t least = x_w * f->pixel;
  for (int64_t line = least; line < least + 128; line += 16)
    if ((line * f->stride[0] - tile_w * f->stride[1] * f->pixel) % 128 == 0) return line;
  return least;
}

/* Eight channels and filters a group, 3x3 windows, stride 1: tiles are then eight pixels wide, and their rows are whole matrices. */
static inline bool grouped_in_columns(const grouped_shape *f)
{
  return f->channels == 8 && f->filters == 8 && f->size[0] == 3 && f->size[1] == 3 && f->stride[0] == 1 && f->stride[1] == 1 &&
         f->dilation[0] == 1 && f->dilation[1] == 1;
}

/* Chooses the tile with the least work and traffic whose input fits `room` bytes; false: none does. */
static inline bool grouped_shape_tile(grouped_shape *f, int64_t images, int64_t room, bool columns)
{
  double least = 0;
  for (int w = columns ? 8 : 1; columns ? w == 8 : w <= f->out[1] && w <= GROUPED_PIXELS; w++) {
    int64_t h = qn_min_i64(GROUPED_PIXELS / w, f->out[0]);
    h = qn_ceil_div(f->out[0], qn_ceil_div(f->out[0], h));
    int64_t x_h = (h - 1) * f->stride[0] + (f->size[0] - 1) * f->dilation[0] + 1,
            x_w = (w - 1) * f->stride[1] + (f->size[1] - 1) * f->dilation[1] + 1;
    int64_t tiles_h = qn_ceil_div(f->out[0], h), tiles_w = qn_ceil_div(f->out[1], w);
    double cost = (double)(tiles_h * tiles_w) * (double)(x_h * x_w + 2 * GROUPED_PIXELS);
    if (x_h * grouped_line(f, x_w, w) > room || (least > 0 && cost >= least)) continue;
    least = cost;
    f->tile_h = (int32_t)h, f->tile_w = w, f->x_h = (int32_t)x_h, f->x_w = (int32_t)x_w;
    f->tiles_h = (int32_t)tiles_h, f->tiles_w = (int32_t)tiles_w, f->tiles = (int32_t)(images * tiles_h * tiles_w);
    f->line = (int32_t)grouped_line(f, x_w, w);
    f->side = tile_side(GROUPED_THREADS, f->x_w, f->load);
  }
  return least > 0;
}

/* The same with two buffers or, where that makes tiles much smaller, one. A block needs `fixed` bytes; a buffer `beside` besides
 * x, and `least` in total. */
static inline bool grouped_shape_fit(grouped_shape *f, const qn_device *device, int64_t images, int64_t fixed, int64_t beside,
                                     int64_t least, bool columns)
{
  int64_t room = qn_min_i64(GROUPED_SHARED, (int64_t)device->shared_per_block) - fixed;
  if (room < least || !grouped_shape_tile(f, images, room - beside, columns)) return false;
  grouped_shape one = *f;
  f->buffers = 2;
  if (room / 2 >= least && grouped_shape_tile(f, images, room / 2 - beside, columns) && f->tiles <= one.tiles + one.tiles / 4) return true;
  *f = one;
  f->buffers = 1;
  return true;
}

/* Blocks of that much shared memory that an SM holds, at most `most` (registers). */
static inline int64_t grouped_resident(int64_t shared, int64_t most) { return qn_min_i64(most, (227 << 10) / (shared + 1024)); }
