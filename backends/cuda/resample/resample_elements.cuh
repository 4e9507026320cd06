/* resample_elements.cuh -- shared by the strip engines: raw loads, vector stores, addresses of layers, and what both directions refuse. */
#pragma once
#include "resample.cuh"
#include "kit/sm80.cuh"

template <uint32_t T> constexpr int size_of = T == QN_F32 ? 4 : 2;

template <uint32_t T, int V> struct raw {      /* V elements: 16 bytes, or one */
  uint32_t word[V == 1 ? 1 : 4];

  __device__ __forceinline__ void load(bool there, const char *p)
  {
    if constexpr (V == 1) {
      word[0] = 0;
      if (there) word[0] = T == QN_F32 ? __ldg((const uint32_t *)p) : __ldg((const uint16_t *)p);
    } else {
      uint4 q = {};
      if (there) q = __ldg((const uint4 *)p);
      word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
    }
  }
  __device__ __forceinline__ float get(int i) const
  {
    if constexpr (T == QN_F32) return __uint_as_float(word[i]);
    else if constexpr (T == QN_BF16) return __uint_as_float(i & 1 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
    else return f16_to_float((uint16_t)(i & 1 ? word[i / 2] >> 16 : word[i / 2]));
  }
};

/* A lane's two columns: in one word (PAIRS), or apart. */
template <uint32_t T, bool PAIRS> struct raw_columns {
  uint32_t word[PAIRS && T != QN_F32 ? 1 : 2];

  __device__ __forceinline__ void load(int x, const char *p)
  {
    if constexpr (PAIRS && T == QN_F32) {
      const uint2 v = __ldg((const uint2 *)p);
      word[0] = v.x, word[1] = v.y;
    } else word[x] = PAIRS || T == QN_F32 ? __ldg((const uint32_t *)p) : __ldg((const uint16_t *)p);
  }
  __device__ __forceinline__ float get(int x) const
  {
    if constexpr (T == QN_F32) return __uint_as_float(word[x]);
    else if constexpr (!PAIRS) return float_of(word[x], T == QN_BF16);
    else
      return T == QN_BF16 ? __uint_as_float(x ? word[0] & 0xffff0000u : word[0] << 16)
                          : f16_to_float((uint16_t)(x ? word[0] >> 16 : word[0]));
  }
};

/* Stores N elements as one vector of 16 or 8 bytes, or one element. */
template <uint32_t T, int N> __device__ __forceinline__ void put(const float *v, char *p)
{
  if constexpr (N == 1) {
    if constexpr (T == QN_F32) *(float *)p = v[0];
    else *(uint16_t *)p = T == QN_BF16 ? float_to_bf16(v[0]) : float_to_f16(v[0]);
  } else if constexpr (T == QN_F32) {
    *(float4 *)p = make_float4(v[0], v[1], v[2], v[3]);
  } else {
    uint32_t word[4];
#pragma unroll
    for (int i = 0; i < N / 2; i++) word[i] = T == QN_BF16 ? pack_bf16(v[2 * i], v[2 * i + 1]) : pack_f16(v[2 * i], v[2 * i + 1]);
    if constexpr (N == 8) *(uint4 *)p = make_uint4(word[0], word[1], word[2], word[3]);
    else *(uint2 *)p = make_uint2(word[0], word[1]);
  }
}

/* Stores a thread's part of a line: C columns of V channels for each of L layers. */
template <uint32_t T, int V, int C, int L>
__device__ __forceinline__ void put_line(const spatial &s, const float (&v)[L][C * V], int layers, char *to, int column, bool together)
{
#pragma unroll
  for (int l = 0; l < L; l++, to += s.out_layer * size_of<T>) {
    if (l >= layers) break;
    if (C == 1 || together) put<T, C * V>(v[l], to);
    else
#pragma unroll
      for (int c = 0; c < C; c++)
        if (column + c < s.out_dim[2]) put<T, V>(v[l] + c * V, to + c * s.out_stride[4] * size_of<T>);
  }
}

/* Addresses of the input's layers, `more` elements on; missing layers repeat the first. */
template <int L>
__device__ __forceinline__ void first_of(const char *(&from)[L], const spatial &s, const cell<int32_t> &at, int64_t more, int size)
{
#pragma unroll
  for (int l = 0; l < L; l++) {
    from[l] = (const char *)s.in + (image_of(at, s.in_stride, s.in_layer) + (at.layer + l < s.layers ? l * s.in_layer : 0) + more) * size;
    asm volatile("" : "+l"(from[l]));     /* keeps the address in a register instead of recomputing it for each load */
  }
}

/* ---- host ---------------------------------------------------------------------------------------------------------- */

/* Are all vectors of v channels aligned? */
static inline bool has_vectors(const spatial &s, int v, const qn_value *in, const qn_value *out)
{
  bool whole = s.channels_last && s.channels % v == 0 && s.in_stride[1] == 1 && in->align >= 16 && out->align >= 16;
  for (int d = 0; d < 5; d++)
    if (d != 1) whole = whole && s.in_stride[d] % v == 0 && s.out_stride[d] % v == 0;
  return whole;
}

/* Common checks and geometry; *v: channels of a vector, or 1. */
static inline qn_status strips_begin(resampling *s, int *v, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *in = &r->value[op->arg[0]], *to = &r->value[op->arg[1]];
  if (in->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  if (in->dtype != to->dtype) return qn_refuse(out, "one dtype", "y", qn_kit_name(in->dtype), "%s", qn_kit_name(to->dtype));
  const qn_resampling *a = (const qn_resampling *)op->attr;
  if (a->antialias) return qn_refuse(out, "kernels as wide as their taps", "antialias", "0", "%s", "1");
  if (a->mode == QN_RESAMPLE_CUBIC && a->coefficient != -0.75)
    return qn_refuse(out, "Keys' kernel of -3/4", "coefficient", "-0.75", "%g", a->coefficient);
  *s = resampling_of(a, op->op == QN_OP_RESAMPLE, in, to);
  if (!spatial_small(s)) return qn_refuse(out, "positions fit 32 bits", "x", "fewer", "%lld", (long long)spatial_units(s, 1, 1));
  for (int d = 0; d < 3; d++)             /* as spatial_small asks of the extents, of a scale factor's fraction */
    if (s->dim[d].places * s->dim[d].ratio_points > 100000000)
      return qn_refuse(out, "positions fit 32 bits", "up", "x's extent times up is at most 10^8", "%lld",
                       (long long)s->dim[d].ratio_points);
  *v = in->dtype == QN_F32 ? 4 : 8;
  if (!has_vectors(*s, *v, in, to)) *v = 1;
  return QN_OK;
}
