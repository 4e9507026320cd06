/* conv_grouped.cuh -- what the engines for groups of few channels share. A block has 64 channels of the written tensor, or as many
 * whole groups as fit, and 128 pixels at a time. A run of eight channels of a pixel, a chunk, is a row of the matrices that
 * ldmatrix reads, wherever the pixel lies: so a window's chunks need no gathering. */
#pragma once
#include "conv_problem.h"
#include "conv_tile.cuh"
#include "vector.cuh"

enum { GROUPED_THREADS = 256, GROUPED_PIXELS = 128, GROUPED_SHARED = 100 << 10 };

typedef struct grouped_shape {
  int32_t groups, channels, filters;      /* channels, filters: of a group */
  int32_t in[2], out[2], size[2], stride[2], dilation[2], before[2];     /* in, out: of the tensor under the windows, and the windows */
  int32_t beside;                         /* groups of a block */
  int32_t chunks, all;                    /* of a pixel of a group; of a window */
  int32_t pixel;                          /* bytes of a pixel of x in shared memory: all chunks and 16, so that eight lie in other banks */
  int32_t tile_h, tile_w, x_h, x_w, tiles_h, tiles_w, tiles;
  int32_t load;                           /* chunks of a pixel, all groups */
  int64_t w_stride[4];                    /* K, C, R, S */
} grouped_shape;

static __device__ __forceinline__ void grouped_tile(const grouped_shape &f, int tile, int *n, int *y0, int *x0)
{
  int rest = tile / f.tiles_w;
  *x0 = (tile - rest * f.tiles_w) * f.tile_w;
  *n = rest / f.tiles_h;
  *y0 = (rest - *n * f.tiles_h) * f.tile_h;
}
/* Where chunk i of a window lies from its first pixel on, in bytes. */
static __device__ __forceinline__ int grouped_chunk(const grouped_shape &f, int i)
{
  int tap = i / f.chunks, r = tap / f.size[1], s = tap - r * f.size[1];
  return (r * f.dilation[0] * f.x_w + s * f.dilation[1]) * f.pixel + (i - tap * f.chunks) * 16;
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Refuses what all have in common, else fills in all but the tile. */
static inline qn_status grouped_shape_read(grouped_shape *f, cuda_conv_problem *c, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read(c, r, out);
  if (status) return status;
  uint32_t dtype = c->mode == CUDA_CONV_DATA ? c->y->dtype : c->x->dtype;
  if (r->device->arch_major < 8) return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  if (dtype != QN_F16 && dtype != QN_BF16) return qn_refuse(out, "dtypes", "x", "f16 or bf16", "%s", "another");
  if (c->groups < 2) return qn_refuse(out, "groups", "x", "two or more", "%lld", (long long)c->groups);
  int64_t channels = c->channels / c->groups, filters = c->filters / c->groups;
  if (channels % 8 || channels > 64) return qn_refuse(out, "channels of a group in eights, to 64", "x", "8, 16, ... 64", "%lld", (long long)channels);
  if (filters % 8 || filters > 64) return qn_refuse(out, "filters of a group in eights, to 64", "y", "8, 16, ... 64", "%lld", (long long)filters);
  if (!qn_is_channels_last(c->x) || c->x->align < 16) return qn_refuse(out, "packed channels last, aligned to 16 bytes", "x", "nhwc", "%s", "other strides");
  if (!qn_is_channels_last(c->y) || c->y->align < 16) return qn_refuse(out, "packed channels last, aligned to 16 bytes", "y", "nhwc", "%s", "other strides");
  memset(f, 0, sizeof *f);
  f->groups = (int32_t)c->groups, f->channels = (int32_t)channels, f->filters = (int32_t)filters;
  bool data = c->mode == CUDA_CONV_DATA;
  for (int d = 0; d < 2; d++) {
    f->size[d] = (int32_t)c->size[d];
    f->dilation[d] = (int32_t)c->dilation[d];
    f->stride[d] = data ? 1 : (int32_t)c->stride[d];
    f->in[d] = (int32_t)(data ? (c->out[d] - 1) * c->stride[d] + 1 : c->in[d]);       /* of dy, spread by its stride */
    f->out[d] = (int32_t)(data ? c->in[d] : c->out[d]);
    f->before[d] = (int32_t)(data ? (c->size[d] - 1) * c->dilation[d] - c->before[d] : c->before[d]);
  }
  int under = data ? f->filters : f->channels, written = data ? f->channels : f->filters, wide = 8;
  while (wide < written) wide *= 2;
  f->beside = 64 / wide;
  f->chunks = under / 8;
  f->all = f->chunks * f->size[0] * f->size[1];
  f->pixel = f->beside * under * 2 + 16;
  f->load = f->beside * f->chunks;
  f->w_stride[0] = c->w->stride[0], f->w_stride[1] = c->w->stride[1], f->w_stride[2] = c->w_stride[0], f->w_stride[3] = c->w_stride[1];
  return QN_OK;
}

/* The tile with the least work and traffic whose pixels below fit into `room` bytes; false: none does. */
static inline bool grouped_shape_tile(grouped_shape *f, int64_t images, int64_t room)
{
  double least = 0;
  for (int w = 1; w <= f->out[1] && w <= GROUPED_PIXELS; w++) {
    int64_t h = qn_min_i64(GROUPED_PIXELS / w, f->out[0]);
    h = qn_ceil_div(f->out[0], qn_ceil_div(f->out[0], h));
    int64_t x_h = (h - 1) * f->stride[0] + (f->size[0] - 1) * f->dilation[0] + 1, x_w = (w - 1) * f->stride[1] + (f->size[1] - 1) * f->dilation[1] + 1;
    int64_t tiles_h = qn_ceil_div(f->out[0], h), tiles_w = qn_ceil_div(f->out[1], w);
    double cost = (double)(tiles_h * tiles_w) * (double)(x_h * x_w + 2 * GROUPED_PIXELS);
    if (x_h * x_w * f->pixel > room || (least > 0 && cost >= least)) continue;
    least = cost;
    f->tile_h = (int32_t)h, f->tile_w = w, f->x_h = (int32_t)x_h, f->x_w = (int32_t)x_w;
    f->tiles_h = (int32_t)tiles_h, f->tiles_w = (int32_t)tiles_w, f->tiles = (int32_t)(images * tiles_h * tiles_w);
  }
  return least > 0;
}
