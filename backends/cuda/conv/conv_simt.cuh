/* conv_simt.cuh -- shared by the engines that have windows as planes in shared memory, in f32 (conv_simt.cu on FP32 cores, conv_halo.cu on
 * Tensor Cores): the problem, what a block has of it, the copy of windows, the choice of a tile. f16 and bf16 become f32 as they are copied.
 *
 * A block has some filters of a group and a tile of pixels, which may span small images. The inputs that the tile sees are copied once,
 * each plane with its halo. An image here is a plane of H by W: taps along D count as channels. In backward data with a stride the
 * pixels of dx fall into residue classes, each a convolution of stride 1 (conv_problem.h). Those of few channels may be joined: a block
 * then has all classes of H and W, as filters (class, channel) of the taps that any class sees, and copies its windows once. */
#pragma once
#include "conv_kernel.h"
#include "conv_store.cuh"
#include "kit/divisor.h"
#include "kit/sm80.cuh"

enum { SIMT_THREADS = 128, SIMT_WARPS = SIMT_THREADS / 32, SIMT_TERMS = 4096, SIMT_FILTERS = 32, SIMT_NONE = INT32_MIN };

struct simt {
  const void *x, *w;
  void    *y;
  uint32_t dtype, out_dtype;              /* of x and w; of y */
  int32_t  channels, filters;             /* summed over and written, of a group */
  int32_t  block_k, blocks_k;             /* filters of a block; blocks of a group */
  int32_t  in[3];                         /* of x: H, W, D */
  int32_t  apart[3], pace[3], step[3];    /* of y's pixels of a class; of windows in x; of taps */
  cuda_conv_span spans[3][CUDA_CONV_APART + 1];             /* the last: of all classes, where they are joined */
  int32_t  joined, extent[2];             /* channels of a class, 0: not joined; y's H and W */
  int32_t  images, planes;                /* N; planes of y of the largest class */
  int32_t  together, tile_h, tile_w, tiles_h, tiles_w;      /* a tile: images, rows, columns */
  int32_t  x_h, pitch, plane;             /* of its windows in shared memory */
  int32_t  last;                          /* windows of neighbouring channels are neighbours in x, and copied together */
  int32_t  vector;                        /* elements of a row copied at once: such rows begin at whole vectors, and end there */
  /* pixels of a tile's image, of its row; vectors of a row; images of a tile; padded filters */
  cuda_divisor by_tile, by_row, by_vectors, by_together, by_k;
  int32_t  chunk;                         /* planes (channel, tap along D) at a time */
  int32_t  terms;                         /* halo: taps of that many planes, in eights */
  int32_t  column, factor, relu;          /* operands of bias and fold (-1: none) */
  int64_t  x_stride[5], w_stride[5], y_stride[5];           /* N, C, H, W, D; w: written, summed over, taps */
  int64_t  w_group;                       /* from one group's filters to the next's */
  cuda_steps steps;
};

/* What a block computes; !exists: nothing, its class is smaller than others. */
struct simt_block {
  int residue[3], planes_y;               /* planes_y: of y, of the class */
  int group, k0, block_k;                 /* its filters, from the group's first */
  int image0, h0, w0, lead;               /* its tile; lead: elements of a row of windows before the first that is seen */
  bool exists;
  const simt &p;

  __device__ __forceinline__ simt_block(const simt &p) : p(p)
  {
    int rest = p.joined ? blockIdx.z * (p.apart[0] * p.apart[1]) : blockIdx.z;
    residue[1] = rest % p.apart[1], rest /= p.apart[1];
    residue[0] = rest % p.apart[0], residue[2] = rest / p.apart[0];
    planes_y = p.images * deep().out;
    exists = planes_y && down().out && across().out;
    group = blockIdx.y / p.blocks_k, k0 = (blockIdx.y - group * p.blocks_k) * p.block_k, block_k = min(p.block_k, p.filters - k0);
    const int tiles = p.tiles_h * p.tiles_w, tile = blockIdx.x % tiles;
    image0 = blockIdx.x / tiles * p.together, h0 = tile / p.tiles_w * p.tile_h, w0 = tile % p.tiles_w * p.tile_w;
    lead = (w0 * p.pace[1] - across().before) & (p.vector - 1);
  }
  __device__ __forceinline__ const cuda_conv_span &down() const { return p.spans[0][p.joined ? CUDA_CONV_APART : residue[0]]; }
  __device__ __forceinline__ const cuda_conv_span &across() const { return p.spans[1][p.joined ? CUDA_CONV_APART : residue[1]]; }
  __device__ __forceinline__ const cuda_conv_span &deep() const { return p.spans[2][residue[2]]; }

  /* Vectors of an image's windows. */
  __device__ __forceinline__ int vectors() const { return p.x_h * (p.pitch / p.vector); }
  /* Lays out where each vector of an image's windows lies in x, from the first's place on: the same for all planes and images. */
  __device__ __forceinline__ void find_windows(int *offsets) const
  {
    const int top = h0 * p.pace[0] - down().before, left = w0 * p.pace[1] - across().before - lead;
    for (int e = threadIdx.x; e < vectors(); e += SIMT_THREADS) {
      uint32_t w, h = cuda_quotient(e, p.by_vectors, &w);
      w *= p.vector;
      const bool inside = (unsigned)(top + (int)h) < (unsigned)p.in[0] && (unsigned)(left + (int)w) < (unsigned)p.in[1];
      offsets[e] = inside ? (int)h * (int)p.x_stride[2] + (int)w * (int)p.x_stride[3] : SIMT_NONE;
    }
  }
  /* Calls run(from, to, there) for the windows of each image in planes `first` to first + here - 1, which lie in `windows` as
   * [plane][image][row][column]: place in x, in shared memory, whether the plane exists. A warp has an image's windows. */
  template <class F> __device__ __forceinline__ void each_image(uint32_t windows, int first, int here, F run) const
  {
    const int64_t corner = (h0 * p.pace[0] - down().before) * p.x_stride[2] + (w0 * p.pace[1] - across().before - lead) * p.x_stride[3];
    for (int job = threadIdx.x / 32; job < here * p.together; job += SIMT_WARPS) {
      uint32_t image, i = cuda_quotient(job, p.by_together, &image);
      int c = first + i, r = 0, n = image0 + image, d = 0;
      const bool there = n < planes_y;
      if (deep().taps > 1) c /= deep().taps, r = first + i - c * deep().taps;         /* no divisions for images */
      if (deep().out > 1) n /= deep().out, d = image0 + image - n * deep().out;
      const int depth = d * p.pace[2] + r * p.step[2] - deep().before;
      run(n * p.x_stride[0] + (group * p.channels + c) * p.x_stride[1] + depth * p.x_stride[4] + corner,
          windows + (i * p.plane + image * p.x_h * p.pitch) * 4, there && (unsigned)depth < (unsigned)p.in[2]);
    }
  }

  /* Begins to copy them. */
  template <int vector> __device__ __forceinline__ void copy_windows(uint32_t windows, const int *offsets, int first, int here) const
  {
    const int all = vectors();
    each_image(windows, first, here, [&](int64_t from, uint32_t to, bool there) {
      const float *x = (const float *)p.x + from;
#pragma unroll 2
      for (int e = threadIdx.x % 32; e < all; e += 32) {
        const int at = offsets[e];
        const bool real = there && at != SIMT_NONE;
        copy_async<4 * vector>(to + e * 4 * vector, real ? x + at : (const float *)p.x, real ? 4 * vector : 0);
      }
    });
  }
  /* Widens windows of 16 bits, every `step`th from `lane` on, times `scale`; eight loads are under way before the first is stored. */
  template <int vector>
  __device__ __forceinline__ void widen(float *to, float scale, const uint16_t *x, const int *offsets, bool there, int lane, int step) const
  {
    constexpr int BATCH = 8;
    struct alignas(2 * vector) narrow { uint16_t element[vector]; };
    struct alignas(4 * vector) wide { float element[vector]; };
    const int all = vectors();
    for (int e0 = lane; e0 < all; e0 += step * BATCH) {
      narrow v[BATCH];
#pragma unroll
      for (int i = 0; i < BATCH; i++) {
        const int e = e0 + step * i, at = e < all ? offsets[e] : SIMT_NONE;
        v[i] = there && at != SIMT_NONE ? *(const narrow *)(x + at) : narrow();
      }
#pragma unroll
      for (int i = 0; i < BATCH; i++) {
        wide u;
#pragma unroll
        for (int j = 0; j < vector; j++)
          u.element[j] = (p.dtype == QN_F16 ? f16_to_float(v[i].element[j]) : bf16_to_float(v[i].element[j])) * scale;
        if (e0 + step * i < all) ((wide *)to)[e0 + step * i] = u;
      }
    }
  }
  template <bool halves, int vector>
  __device__ __forceinline__ void take_windows(float *windows, float scale, const int *offsets, int first, int here) const
  {
    if constexpr (halves)
      each_image(0, first, here, [&](int64_t from, uint32_t to, bool there) {
        widen<vector>(windows + to / 4, scale, (const uint16_t *)p.x + from, offsets, there, threadIdx.x % 32, 32);
      });
    else copy_windows<vector>(shared_address(windows), offsets, first, here);
  }
  /* The same where channels are contiguous: eight neighbouring threads have eight channels of a place, of f32 a sector. */
  template <bool halves>
  __device__ __forceinline__ void take_channels(float *windows, float scale, const int *offsets, int first, int here) const
  {
    const int64_t corner = (h0 * p.pace[0] - down().before) * p.x_stride[2] + (w0 * p.pace[1] - across().before - lead) * p.x_stride[3];
    const int all = vectors(), mine = threadIdx.x % 8;
    for (int image = 0; image < p.together; image++) {
      int n = image0 + image, d = 0;
      bool there = n < planes_y;
      if (deep().out > 1) n /= deep().out, d = image0 + image - n * deep().out;
      const int depth = d * p.pace[2] - deep().before;
      there = there && (unsigned)depth < (unsigned)p.in[2];
      const int64_t from = n * p.x_stride[0] + group * p.channels + first + depth * p.x_stride[4] + corner;
      float *to = windows + image * p.x_h * p.pitch;
      if constexpr (halves)
        for (int i = mine; i < here; i += 8)
          widen<1>(to + i * p.plane, scale, (const uint16_t *)p.x + from + i, offsets, there, threadIdx.x / 8, SIMT_THREADS / 8);
      else
        for (int e = threadIdx.x / 8; e < all; e += SIMT_THREADS / 8) {
          const int at = offsets[e];
          const bool real = there && at != SIMT_NONE;
#pragma unroll 2
          for (int i = mine; i < here; i += 8)
            copy_async<4>(shared_address(to) + (i * p.plane + e) * 4, (const float *)p.x + (real ? from + at + i : 0), real ? 4 : 0);
        }
    }
  }
  /* halves: done, times `scale`; otherwise begun. */
  template <bool halves>
  __device__ __forceinline__ void take_windows(float *windows, float scale, const int *offsets, int first, int here) const
  {
    if (p.last) take_channels<halves>(windows, scale, offsets, first, here);
    else if (p.vector == 4) take_windows<halves, 4>(windows, scale, offsets, first, here);
    else if (p.vector == 2) take_windows<halves, 2>(windows, scale, offsets, first, here);
    else take_windows<halves, 1>(windows, scale, offsets, first, here);
  }
  /* A filter's element likewise; !real: 0. */
  template <bool halves> __device__ __forceinline__ void take_filter(float *to, float scale, int64_t at, bool real) const
  {
    if constexpr (halves) *to = real ? element_load<float>(p.w, at, p.dtype == QN_F16 ? QN_F16 : QN_BF16) * scale : 0;
    else copy_async<4>(shared_address(to), (const float *)p.w + (real ? at : 0), real ? 4 : 0);
  }

  /* Where pixel q of the tile lies in y, but for its channel; -1: it does not exist. row, column: its place in y's plane. */
  __device__ __forceinline__ int64_t place(int q) const
  {
    int row, column;
    return place(q, &row, &column);
  }
  __device__ __forceinline__ int64_t place(int q, int *row, int *column) const
  {
    uint32_t at, w, image = cuda_quotient(q, p.by_tile, &at), h = cuda_quotient(at, p.by_row, &w);
    int plane = image0 + image, n = plane, d = 0;
    if (deep().out > 1) n /= deep().out, d = plane - n * deep().out;
    h += h0, w += w0;
    if ((int)image >= p.together || plane >= planes_y || (int)h >= down().out || (int)w >= across().out) return -1;
    *row = h * p.apart[0] + residue[0], *column = w * p.apart[1] + residue[1];
    return n * p.y_stride[0] + *row * p.y_stride[2] + *column * p.y_stride[3] + (d * p.apart[2] + residue[2]) * p.y_stride[4];
  }
};

/* Pixel q of the group's filter k, of the class with these windows, in plain f32, added of what exists. */
static __device__ __forceinline__ float simt_sum_again(const simt &p, const simt_block &b, const cuda_conv_span &down,
                                                       const cuda_conv_span &across, int q, int k)
{
  uint32_t at, w0, image = cuda_quotient(q, p.by_tile, &at), h0 = cuda_quotient(at, p.by_row, &w0);
  const cuda_conv_span &deep = b.deep();
  const int plane = b.image0 + image, n = plane / deep.out, d0 = plane - n * deep.out;
  float sum = 0;
  for (int c = 0; c < p.channels; c++)
    for (int a = 0; a < deep.taps; a++)
      for (int r = 0; r < down.taps; r++)
        for (int s = 0; s < across.taps; s++) {
          const int d = d0 * p.pace[2] + a * p.step[2] - deep.before, h = (b.h0 + (int)h0) * p.pace[0] + r * p.step[0] - down.before,
                    w = (b.w0 + (int)w0) * p.pace[1] + s * p.step[1] - across.before;
          if ((unsigned)d >= (unsigned)p.in[2] || (unsigned)h >= (unsigned)p.in[0] || (unsigned)w >= (unsigned)p.in[1]) continue;
          const int64_t x = n * p.x_stride[0] + (b.group * p.channels + c) * p.x_stride[1] + h * p.x_stride[2] + w * p.x_stride[3] +
                            d * p.x_stride[4],
                        tap = b.group * p.w_group + k * p.w_stride[0] + c * p.w_stride[1] +
                              (down.tap + r * down.tap_step) * p.w_stride[2] + (across.tap + s * across.tap_step) * p.w_stride[3] +
                              (deep.tap + a * deep.tap_step) * p.w_stride[4];
          sum = fmaf(element_load<float>(p.x, x, dtype3(p.dtype)), element_load<float>(p.w, tap, dtype3(p.dtype)), sum);
        }
  return sum;
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Bytes read and written. */
static inline double simt_bytes(const simt *p, const cuda_conv_problem *c)
{
  const qn_value *x = c->mode == CUDA_CONV_DATA ? c->y : c->x, *y = x == c->x ? c->y : c->x;
  return (double)qn_elements(x) * (double)qn_kit_bytes(p->dtype) + (double)qn_elements(y) * (double)qn_kit_bytes(p->out_dtype);
}

/* Taps of the class with the most, along dim d. */
static inline int simt_taps(const simt *p, int d)
{
  int most = 0;
  if (p->joined && d < 2) return p->spans[d][CUDA_CONV_APART].taps;
  for (int i = 0; i < p->apart[d]; i++) most = p->spans[d][i].taps > most ? p->spans[d][i].taps : most;
  return most;
}

/* The tile of at most `pixels`, of `most` images, with the fewest tiles, whose windows, their offsets, and `fixed` + by_tap bytes for each
 * tap of a plane fit into `room`; returns their bytes, 0: none. */
static inline int64_t simt_tile(simt *p, int pixels, int64_t most, int64_t room, int64_t fixed, int64_t by_tap)
{
  const int out_h = p->spans[0][0].out, out_w = p->spans[1][0].out, taps_h = simt_taps(p, 0), taps_w = simt_taps(p, 1);
  const int64_t taps = (int64_t)taps_h * taps_w, planes = p->channels * qn_max_i64(1, p->spans[2][0].taps);
  p->together = 1;
  p->tile_w = out_w < pixels ? out_w : (int)qn_ceil_div(out_w, qn_ceil_div(out_w, pixels));
  for (int rows = (int)qn_min_i64(out_h, pixels / p->tile_w); rows > 0; rows = rows / 2) {
    p->tile_h = (int)qn_ceil_div(out_h, qn_ceil_div(out_h, rows));
    if (p->tile_h == out_h && p->tile_w == out_w) p->together = (int)qn_min_i64(qn_min_i64(pixels / (out_h * out_w), p->planes), most);
    for (; p->together > 0; p->together /= 2) {
      const int64_t x_h = (int64_t)(p->tile_h - 1) * p->pace[0] + (int64_t)(taps_h > 0 ? taps_h - 1 : 0) * p->step[0] + 1;
      const int64_t x_w = (int64_t)(p->tile_w - 1) * p->pace[1] + (int64_t)(taps_w > 0 ? taps_w - 1 : 0) * p->step[1] + 1;
      const int64_t pitch = qn_round_up(x_w + p->vector - 1, p->vector), whole = p->together * x_h * pitch;
      const int64_t plane = p->last ? qn_round_up(whole + 4, 8) - 4 : whole;           /* eight channels in banks of their own */
      if (plane * 4 > room) continue;     /* strides and dilations make it as large as they are */
      p->x_h = (int32_t)x_h, p->pitch = (int32_t)pitch, p->plane = (int32_t)plane;
      const int64_t each = plane * 4 + taps * by_tap, others = fixed + x_h * (pitch / p->vector) * 4;
      p->chunk = (int)qn_min_i64((room - others) / each, planes);
      if (p->last && p->chunk > 8) p->chunk -= p->chunk % 8;
      if (p->chunk > 0) {
        p->by_tile = cuda_divide_by(p->tile_h * p->tile_w), p->by_row = cuda_divide_by(p->tile_w);
        p->by_vectors = cuda_divide_by(p->pitch / p->vector), p->by_together = cuda_divide_by(p->together);
        p->tiles_h = (int)qn_ceil_div(out_h, p->tile_h), p->tiles_w = (int)qn_ceil_div(out_w, p->tile_w);
        return others + p->chunk * each;
      }
    }
    p->together = 1;
  }
  return 0;
}

/* Common refusals; fills everything but the tile and the filters of a block. */
static inline qn_status simt_read(simt *p, cuda_conv_problem *c, cuda_chain *chain, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read_volume(c, r, out);
  if (status || (status = cuda_conv_wants_ampere(r, out))) return status;
  const bool data = c->mode == CUDA_CONV_DATA;
  const int64_t channels = (data ? c->filters : c->channels) / c->groups, filters = (data ? c->channels : c->filters) / c->groups;
  for (int d = 0; d < 3; d++) {
    if (data && c->stride[d] > CUDA_CONV_APART)
      return qn_refuse(out, "backward data of strides to 4", "dx", "1 to 4", "%lld", (long long)c->stride[d]);
    p->in[d] = (int32_t)(data ? c->out[d] : c->in[d]);
    p->apart[d] = data ? (int32_t)c->stride[d] : 1;
    p->pace[d] = data ? 1 : (int32_t)c->stride[d];
    p->step[d] = (int32_t)(data ? c->dilation[d] * cuda_conv_every(c, d) / c->stride[d] : c->dilation[d]);
    for (int i = 0; i < p->apart[d]; i++) p->spans[d][i] = cuda_conv_span_of(c, d, i);
  }
  const double terms = (double)channels * simt_taps(p, 0) * simt_taps(p, 1) * simt_taps(p, 2);
  if (terms > SIMT_TERMS) return qn_refuse(out, "at most 4096 terms in a sum", "w", "4096", "%.0f", terms);
  qn_request alone = *r;
  if (c->x->rank != 4) alone.n_ops = 1;                     /* followers are addressed in two spatial dims */
  if ((status = cuda_conv_problem_bias_relu(c, &alone, chain, &p->column, &p->factor, &p->relu, out))) return status;
  const qn_value *x = data ? c->y : c->x, *y = &r->value[chain->out];
  p->dtype = x->dtype, p->out_dtype = y->dtype;
  if (x->dtype == QN_F32 && y->dtype != QN_F32) return qn_refuse(out, "dtypes", "y", "f32", "%s", qn_kit_name(y->dtype));
  p->channels = (int32_t)channels, p->filters = (int32_t)filters;
  p->blocks_k = (int32_t)qn_ceil_div(filters, SIMT_FILTERS);
  p->block_k = (int32_t)qn_ceil_div(filters, p->blocks_k);
  p->images = (int32_t)c->x->dim[0], p->planes = p->images * p->spans[2][0].out;
  cuda_conv_strides(p->x_stride, x);
  cuda_conv_strides(p->y_stride, y);
  cuda_conv_strides(p->w_stride, c->w);
  for (int d = 0; d < 2; d++)             /* of a dim of 1 it says nothing, and may be huge */
    if (x->dim[d] == 1) p->x_stride[d] = 0;
  for (int d = 0; d < 3; d++)
    if (p->in[d] == 1) p->x_stride[2 + d] = 0;
  double reach = 4;                       /* of the offsets of windows, which begin in the padding, at a whole vector */
  for (int d = 0; d < 2; d++) {
    int before = 0;
    for (int i = 0; i < p->apart[d]; i++) before = p->spans[d][i].before > before ? p->spans[d][i].before : before;
    reach += (double)(p->in[d] - 1 + before) * (double)p->x_stride[2 + d];
  }
  if (reach > INT32_MAX)
    return qn_refuse(out, "a plane, with its padding, of fewer than 2^31 elements", data ? "dy" : "x", "", "%.0f", reach);
  if (qn_extent(c->w) > INT32_MAX)
    return qn_refuse(out, "a filter of fewer than 2^31 elements", "w", "", "%lld", (long long)qn_extent(c->w));
  p->w_group = (data ? channels : filters) * c->w->stride[0];
  if (data) p->w_stride[0] = c->w->stride[1], p->w_stride[1] = c->w->stride[0];
  p->steps = chain->steps;
  p->vector = 1;
  while (p->vector < 4 && p->x_stride[3] == 1 && p->in[1] % (2 * p->vector) == 0 &&
         x->align >= 2 * (uint32_t)p->vector * (uint32_t)qn_kit_bytes(x->dtype)) {
    bool whole = true;
    for (int d = 0; d < x->rank - 1; d++) whole = whole && (x->dim[d] == 1 || x->stride[d] % (2 * p->vector) == 0);
    if (!whole) break;
    p->vector *= 2;
  }
  return QN_OK;
}
