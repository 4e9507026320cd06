/* pool_lanes.cuh -- shared by pooling gradients, channels last (NHWC), in which a lane owns a 32-bit word of channels of a strip
 * of dx columns and walks down a band of rows. */
#pragma once
#include "pool_gradient.cuh"
#include "kit/vector.cuh"

struct lanes : gradient {
  int32_t  band, images;                  /* rows of a band; images whose channels are packed together into warps, so that few lanes idle */
  uint32_t warps;
  /* extents of the grid: strips of columns; warps of the packed channels; bands; lanes of a pixel */
  cuda_divisor by_strips, by_chunks, by_bands, by_lanes;
};

/* ---- words of channels ------------------------------------------------------------------------------------------ */

template <int dtype> constexpr int per_word = dtype == QN_F32 ? 1 : 2;

template <int dtype> __device__ __forceinline__ float channel(uint32_t w, int i)
{
  if (dtype == QN_F32) return __uint_as_float(w);
  if (dtype == QN_BF16) return __uint_as_float(i ? w & 0xffff0000u : w << 16);
  return f16_to_float((uint16_t)(i ? w >> 16 : w));
}
template <int dtype> __device__ __forceinline__ uint32_t word_of(const float *v)
{
  return dtype == QN_F32  ? __float_as_uint(v[0])
       : dtype == QN_BF16 ? pack_bf16(v[0], v[per_word<dtype> - 1])
                          : pack_f16(v[0], v[per_word<dtype> - 1]);
}

/* ---- a strip ------------------------------------------------------------------------------------------------------ */

struct strip { int n, x0, top, end, c; };            /* rows top..end-1 of dx; c: this lane's first channel */

__device__ __forceinline__ bool strip_of(strip &s, const lanes &p, uint32_t warp, int columns, int channels)
{
  uint32_t chunk, column, band, lane;
  const uint32_t first =
    cuda_quotient(cuda_quotient(cuda_quotient(warp, p.by_chunks, &chunk), p.by_strips, &column), p.by_bands, &band) * p.images;
  const uint32_t image = cuda_quotient(chunk * 32 + threadIdx.x % 32, p.by_lanes, &lane);
  s.n = (int)(first + image);
  s.x0 = (int)column * columns;
  s.top = (int)band * p.band, s.end = min(s.top + p.band, p.in[1]);
  s.c = (int)lane * channels;
  return warp < p.warps && image < (uint32_t)p.images && s.n < (int)p.n;
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

enum { IN_FLIGHT = 32, WARPS = 4 };       /* IN_FLIGHT: warps wanted per SM, if bands of 16 rows yield as many; WARPS: of a block */

struct lanes_state { lanes p; gradient_roles of; const void *kernel; uint32_t shared; };

/* What all these engines refuse, and the roles. */
static inline qn_status lanes_fill(lanes_state *s, const qn_request *r, qn_prepared *out)
{
  lanes *p = &s->p;
  qn_status status = gradient_fill(p, &s->of, r, out);
  if (status != QN_OK) return status;
  if (gradient_channels(p, &s->of, r) == 1)
    return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "other strides");
  if (!p->flat) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  if (p->in[2] < p->size[2]) return qn_refuse(out, "rows as wide as a window", "dx", "3", "%d", p->in[2]);
  const int64_t *stride[] = { p->x_stride, p->dx_stride, p->y_stride, p->index_stride };
  for (int t = 0; t < 4; t++) {           /* the image dim need not be outermost in memory */
    const int32_t *extent = t < 2 ? p->in : p->out;
    double reach = (double)p->n * (double)stride[t][0] + p->c;
    for (int d = 1; d < 3; d++) reach += (double)extent[d] * (double)stride[t][2 + d];
    if (reach * (t < 3 ? 4 : 8) >= 4294967296.0) return qn_refuse(out, "tensors of less than 4 GiB", "dx", "", "%s", "more");
  }
  return QN_OK;
}

/* The grid of warps for strips of `columns` columns and lanes of `channels` channels. */
static inline qn_status lanes_keep(lanes_state *s, const qn_request *r, int64_t columns, int64_t channels, qn_prepared *out)
{
  lanes *p = &s->p;
  const int64_t strips = qn_ceil_div(p->in[2], columns), pixel = qn_ceil_div(p->c, channels);
  int64_t across = INT64_MAX;             /* warps of all images' channels */
  for (int64_t images = 1; images <= qn_min_i64(32, p->n); images *= 2) {
    const int64_t warps = qn_ceil_div(p->n, images) * qn_ceil_div(images * pixel, 32);
    if (warps < across) across = warps, p->images = (int32_t)images;
  }
  across *= strips;
  const int64_t bands = qn_max_i64(qn_ceil_div(p->in[1], 1024),
                                   qn_min_i64(qn_ceil_div(p->in[1], 16), qn_ceil_div(IN_FLIGHT * (int64_t)r->device->units, across)));
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], bands), 2);
  const int64_t whole = qn_ceil_div(p->in[1], p->band);
  if ((double)across * (double)whole >= INT32_MAX / 32) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  p->warps = (uint32_t)(across * whole);
  p->by_strips = cuda_divide_by(strips), p->by_chunks = cuda_divide_by(qn_ceil_div(p->images * pixel, 32)),
  p->by_bands = cuda_divide_by(whole), p->by_lanes = cuda_divide_by(pixel);
  return cuda_keep(out, s, sizeof *s);
}

static inline qn_status lanes_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const lanes_state *st = (const lanes_state *)prepared->state;
  lanes p = st->p;
  p.dy = launch->ptr[st->of.dy];
  p.dx = launch->ptr[st->of.dx];
  p.x = st->of.x >= 0 ? launch->ptr[st->of.x] : nullptr;
  p.indices = st->of.indices >= 0 ? launch->ptr[st->of.indices] : nullptr;
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, (p.warps + WARPS - 1) / WARPS, WARPS * 32, arguments, st->shared,
                                     (cudaStream_t)launch->stream),
                    prepared->engine->name);
}
