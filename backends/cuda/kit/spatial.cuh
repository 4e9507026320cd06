/* spatial.cuh -- shared by ops that map one spatial grid to another (pooling, resampling, sampling): geometry and work units.
 *
 * A unit is one output position for V neighbouring channels (V = 1: any layout) in each of L layers; these share index arithmetic
 * and weights, and their loads are in flight together. Units are numbered in memory order: with channels contiguous, channels are
 * innermost and images are the layers; otherwise the last spatial dim is innermost and channels are the layers. I is the index
 * type: int32_t for small problems, int64_t otherwise. */
#pragma once
#include "direct.cuh"

struct spatial {
  const void *in;
  void    *out;
  uint32_t in_dtype, out_dtype;
  int32_t  channels_last;
  /* channels: in vectors, 1 if not contiguous; layers; outer: images where channels are the layers, else 1 */
  int64_t  channels, layers, outer;
  int64_t  in_layer, out_layer;           /* strides between layers */
  int64_t  in_dim[3], out_dim[3];
  int64_t  in_stride[5], out_stride[5];   /* N, C, spatial */
};

template <class I> struct cell { I n, c, layer, o[3]; };

/* dim: extents of the grid of units: the output's, or coarser. */
template <class I, int V, int L> __device__ __forceinline__ cell<I> cell_of(const spatial &s, I unit, const int64_t *dim)
{
  cell<I> at;
  I groups = (I)s.channels / V, layers = ((I)s.layers + L - 1) / L;
  at.c = 0;
  if (s.channels_last) at.c = unit % groups * V, unit /= groups;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    at.o[d] = unit % (I)dim[d];
    unit /= (I)dim[d];
  }
  at.n = unit / layers;
  at.layer = (unit - at.n * layers) * L;
  return at;
}

template <class I, int V, int L> __device__ __forceinline__ cell<I> cell_of(const spatial &s, I unit)
{
  return cell_of<I, V, L>(s, unit, s.out_dim);
}

/* Offset of the cell's first layer; layer: stride between layers. */
template <class I> __device__ __forceinline__ int64_t image_of(const cell<I> &at, const int64_t stride[5], int64_t layer)
{
  return at.n * stride[0] + at.c * stride[1] + at.layer * layer;
}
template <class I> __device__ __forceinline__ int64_t offset_of(const cell<I> &at, const int64_t stride[5], int64_t layer)
{
  return image_of(at, stride, layer) + at.o[0] * stride[2] + at.o[1] * stride[3] + at.o[2] * stride[4];
}

/* One element of any dtype in double; or one or four aligned ones of f32, f16, bf16 in float. */
__device__ __forceinline__ void load(double (&v)[1], const void *p, uint32_t dtype, int64_t at)
{
  v[0] = element_load<double>(p, at, dtype);
}
__device__ __forceinline__ void store(const double (&v)[1], void *p, uint32_t dtype, int64_t at) { element_store(p, at, dtype, v[0]); }

__device__ __forceinline__ float float_of(uint32_t h, bool bf16) { return bf16 ? __uint_as_float(h << 16) : f16_to_float((uint16_t)h); }

template <int V> __device__ __forceinline__ void load(float (&v)[V], const void *p, uint32_t dtype, int64_t at)
{
  bool bf16 = dtype == QN_BF16;
  if constexpr (V == 1) {
    v[0] = dtype == QN_F32 ? ((const float *)p)[at] : float_of(((const uint16_t *)p)[at], bf16);
  } else if (dtype == QN_F32) {
    float4 q = *(const float4 *)((const float *)p + at);
    v[0] = q.x, v[1] = q.y, v[2] = q.z, v[3] = q.w;
  } else {
    uint2 q = *(const uint2 *)((const uint16_t *)p + at);
    v[0] = float_of(q.x & 0xffff, bf16), v[1] = float_of(q.x >> 16, bf16), v[2] = float_of(q.y & 0xffff, bf16),
    v[3] = float_of(q.y >> 16, bf16);
  }
}

template <int V> __device__ __forceinline__ void store(const float (&v)[V], void *p, uint32_t dtype, int64_t at)
{
  bool bf16 = dtype == QN_BF16;
  if constexpr (V == 1) {
    if (dtype == QN_F32) ((float *)p)[at] = v[0];
    else ((uint16_t *)p)[at] = bf16 ? float_to_bf16(v[0]) : float_to_f16(v[0]);
  } else if (dtype == QN_F32) {
    *(float4 *)((float *)p + at) = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    *(uint2 *)((uint16_t *)p + at) = bf16 ? make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]))
                                          : make_uint2(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]));
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

static inline void spatial_strides(const qn_value *v, int64_t *stride)
{
  for (int d = 0; d < v->rank; d++) stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
}

static inline void spatial_fill(spatial *s, const qn_value *in, const qn_value *out)
{
  s->in_dtype = in->dtype, s->out_dtype = out->dtype;
  s->channels_last = out->dim[1] > 1 && out->stride[1] == 1;
  s->channels = s->channels_last ? out->dim[1] : 1;
  s->layers = s->channels_last ? out->dim[0] : out->dim[1];
  s->outer = s->channels_last ? 1 : out->dim[0];
  for (int d = 0; d < 3; d++) s->in_dim[d] = s->out_dim[d] = 1;
  for (int d = 2; d < out->rank; d++) s->in_dim[d + 3 - out->rank] = in->dim[d], s->out_dim[d + 3 - out->rank] = out->dim[d];
  spatial_strides(in, s->in_stride);
  spatial_strides(out, s->out_stride);
  s->in_layer = s->in_stride[!s->channels_last], s->out_layer = s->out_stride[!s->channels_last];
}

static inline int64_t spatial_units(const spatial *s, int v, int l)
{
  return s->channels / v * s->out_dim[0] * s->out_dim[1] * s->out_dim[2] * qn_ceil_div(s->layers, l) * s->outer;
}

/* Do unit numbers, offsets and products of extents fit 31 bits? */
static inline bool spatial_small(const spatial *s)
{
  double most = 1;
  bool small = (double)spatial_units(s, 1, 1) < 1e9;
  for (int d = 0; d < 3; d++) {
    most *= (double)(s->in_dim[d] > s->out_dim[d] ? s->in_dim[d] : s->out_dim[d]);
    small = small && (double)s->in_dim[d] * (double)s->out_dim[d] < 1e8;
  }
  return small && most < 1e9;
}
