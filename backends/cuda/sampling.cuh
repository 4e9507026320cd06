/* sampling.cuh -- points that a tensor names in an image: where they lie, their taps, and how threads share them out.
 *
 * T computes: float, or double for direct. I counts: int32_t for small problems, int64_t for all. */
#pragma once
#include "spatial.cuh"

struct points {
  const void *grid;
  uint32_t grid_dtype;
  int32_t  dims, mode, padding, align_corners;
  int64_t  extent[3], point[3];           /* of the image, of the grid: dims that are missing come first and have one place */
  int64_t  grid_stride[5];                /* N, the grid's dims, its coordinates */
};

/* One dim of a point: place `below` weighs weight[0], the next weight[1], where they are in the image; slope: what both change by as the
 * coordinate grows. */
template <class T, class I> struct axis { I below; bool in[2]; T weight[2], slope; };

/* at, mirrored at low and high until between them; *slope turns with each. */
template <class T> __device__ __forceinline__ T mirrored(T at, T low, T high, T *slope)
{
  if (high <= low) return *slope = 0, low;
  T span = high - low, from = fabs(at - low), turns = floor(from / span), rest = from - turns * span;
  bool odd = turns - 2 * floor(turns / 2) != 0;
  if (odd != (at < low)) *slope = -*slope;
  return odd ? high - rest : low + rest;
}

template <class T, class I> __device__ __forceinline__ axis<T, I> axis_of(const points &s, T g, I n)
{
  axis<T, I> a = {};
  T last = (T)(n - 1), p = s.align_corners ? (g + 1) / 2 * last : ((g + 1) * (T)n - 1) / 2;
  a.slope = s.align_corners ? last / 2 : (T)n / 2;
  if (s.padding == QN_SAMPLE_REFLECTION) p = s.align_corners ? mirrored<T>(p, 0, last, &a.slope) : mirrored<T>(p, T(-0.5), last + T(0.5), &a.slope);
  if (s.padding != QN_SAMPLE_ZEROS) {
    if (!(p > 0 && p < last)) a.slope = 0;
    p = p > 0 ? p : 0;
    p = p < last ? p : last;
  }
  if (!(p > -1 && p < (T)n)) return a;
  if (s.mode == QN_RESAMPLE_NEAREST) {
    a.below = (I)rint(p);
    a.in[0] = a.below >= 0 && a.below < n;
    a.weight[0] = a.in[0];
    a.slope = 0;
    return a;
  }
  T under = floor(p), t = p - under;
  a.below = (I)under;
  a.in[0] = a.below >= 0, a.in[1] = a.below + 1 < n;
  a.weight[0] = a.in[0] ? 1 - t : T(0), a.weight[1] = a.in[1] ? t : T(0);
  return a;
}

/* The axes of the point at this place of image n's grid of at most D dims; true: it is nowhere (NaN, or infinite and mirrored). */
template <class T, class I, int D = 3> __device__ __forceinline__ bool axes_of(const points &s, I n, const I (&at)[3], axis<T, I> (&a)[3])
{
  bool nan = false;
  int64_t from = n * s.grid_stride[0] + at[0] * s.grid_stride[1] + at[1] * s.grid_stride[2] + at[2] * s.grid_stride[3];
#pragma unroll
  for (int d = 0; d < 3; d++) {
    if (d < 3 - D || d < 3 - s.dims) {
      a[d] = { 0, { true, false }, { 1, 0 }, 0 };
      continue;
    }
    T g[1];
    load(g, s.grid, s.grid_dtype, from + (2 - d) * s.grid_stride[4]);
    nan |= g[0] != g[0] || (s.padding == QN_SAMPLE_REFLECTION && fabs(g[0]) == T(INFINITY));
    a[d] = axis_of<T, I>(s, g[0], (I)s.extent[d]);
  }
  return nan;
}

/* Tap k: bit 2 - d tells which of dim d's two places. */
template <class I> __device__ __forceinline__ int tap_bit(int k, int d) { return k >> (2 - d) & 1; }

/* ---- elements of 4 bytes, or of 2 in one of two formats ---------------------------------------------------------------- */

template <int BYTES> __device__ __forceinline__ uint32_t fetch_element(const char *p)
{
  return BYTES == 4 ? __ldg((const uint32_t *)p) : __ldg((const uint16_t *)p);
}
template <int BYTES> __device__ __forceinline__ float element_of(uint32_t word, bool bf16)
{
  return BYTES == 4 ? __uint_as_float(word) : float_of(word, bf16);
}
template <int BYTES> __device__ __forceinline__ void put_element(char *p, float v, bool bf16)
{
  if (BYTES == 4) *(float *)p = v;
  else *(uint16_t *)p = bf16 ? float_to_bf16(v) : float_to_f16(v);
}

/* ---- threads and channels ------------------------------------------------------------------------------------------ */

/* A unit: one place of a grid or an image, and some channels: vectors `lanes` apart where channels are innermost, else `each` in a row. */
struct share {
  int32_t last;                           /* channels are innermost */
  int64_t channels, lanes, each;
};

template <class I> struct unit_place { I n, at[3], lane; };

template <class I> __device__ __forceinline__ unit_place<I> unit_of(const share &s, const int64_t (&dim)[3], I unit)
{
  unit_place<I> u;
  u.lane = 0;
  if (s.last) u.lane = unit % (I)s.lanes, unit /= (I)s.lanes;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    u.at[d] = unit % (I)dim[d];
    unit /= (I)dim[d];
  }
  if (!s.last) u.lane = unit % (I)s.lanes, unit /= (I)s.lanes;
  u.n = unit;
  return u;
}

template <class I, int V> struct channels_of {
  I c, step, end;
  __device__ __forceinline__ channels_of(const share &s, I lane)
  {
    c = lane * (s.last ? V : (I)s.each), step = s.last ? (I)s.lanes * V : 1;
    end = (I)s.channels;
    if (!s.last && c + (I)s.each < end) end = c + (I)s.each;
  }
};

/* ---- host ---------------------------------------------------------------------------------------------------------- */

static inline points points_of(const void *attr, const qn_value *grid, const qn_value *image)
{
  const qn_sampling *a = (const qn_sampling *)attr;
  points s = { NULL, grid->dtype, grid->rank - 2, (int32_t)a->mode, (int32_t)a->padding, (int32_t)a->align_corners, { 1, 1, 1 }, { 1, 1, 1 }, {} };
  s.grid_stride[0] = grid->stride[0], s.grid_stride[4] = grid->stride[grid->rank - 1];
  for (int d = 0; d < s.dims; d++) {
    s.extent[3 - s.dims + d] = image->dim[2 + d];
    s.point[3 - s.dims + d] = grid->dim[1 + d];
    s.grid_stride[4 - s.dims + d] = grid->stride[1 + d];
  }
  return s;
}
