/* vector.cuh -- loads and stores V neighbouring elements as floats in registers, by 16 bytes where contiguous and aligned. */
#pragma once
#include "element.cuh"

__device__ __forceinline__ bool vector_aligned(const void *p, int bytes) { return !((uintptr_t)p & (bytes - 1)); }

template <int V> __device__ __forceinline__ void vector_load_f32(float (&w)[V], const float *p, int64_t stride, int n)
{
  if (V % 4 == 0 && stride == 1 && n == V && vector_aligned(p, 16)) {
#pragma unroll
    for (int i = 0; i < V; i += 4) {
      float4 q = *(const float4 *)(p + i);
      w[i] = q.x, w[i + 1] = q.y, w[i + 2] = q.z, w[i + 3] = q.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) w[i] = i < n ? p[i * stride] : 0;
  }
}

template <int V> __device__ __forceinline__ void vector_load_16(uint32_t (&h)[V], const uint16_t *p, int64_t stride, int n)
{
  if (V == 8 && stride == 1 && n == V && vector_aligned(p, 16)) {
    uint4 q = *(const uint4 *)p;
    uint32_t word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
    for (int i = 0; i < V; i++) h[i] = i & 1 ? word[i / 2 & 3] >> 16 : word[i / 2 & 3] & 0xffff;
  } else if (V % 4 == 0 && stride == 1 && n == V && vector_aligned(p, 8)) {
#pragma unroll
    for (int k = 0; k < V; k += 4) {
      uint2 q = *(const uint2 *)(p + k);
      uint32_t word[2] = {q.x, q.y};
#pragma unroll
      for (int i = 0; i < 4; i++) h[(k + i) % V] = i & 1 ? word[i / 2] >> 16 : word[i / 2] & 0xffff;
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) h[i] = i < n ? p[i * stride] : 0;
  }
}

/* Loads base[at], base[at + stride], ..., of which the first n exist; the others are 0. stride 0: one element, broadcast. */
template <int V>
__device__ __forceinline__ void vector_load(float (&w)[V], const void *base, uint32_t dtype, int64_t at, int64_t stride, int n)
{
  if (dtype == QN_F32) {
    vector_load_f32(w, (const float *)base + at, stride, n);
  } else if (dtype == QN_BF16 || dtype == QN_F16) {
    uint32_t h[V];
    vector_load_16(h, (const uint16_t *)base + at, stride, n);
    if (dtype == QN_BF16) {
#pragma unroll
      for (int i = 0; i < V; i++) w[i] = __uint_as_float(h[i] << 16);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) w[i] = f16_to_float((uint16_t)h[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) w[i] = i < n ? element_load<float>(base, at + i * stride, dtype) : 0;
  }
}

template <int V>
__device__ __forceinline__ void vector_store(const float (&v)[V], void *base, uint32_t dtype, int64_t at, int64_t stride, int n)
{
  if (dtype == QN_F32) {
    float *p = (float *)base + at;
    if (V % 4 == 0 && stride == 1 && n == V && vector_aligned(p, 16)) {
#pragma unroll
      for (int i = 0; i < V; i += 4) *(float4 *)(p + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) if (i < n) p[i * stride] = v[i];
    }
  } else if (dtype == QN_BF16 || dtype == QN_F16) {
    uint16_t *p = (uint16_t *)base + at;
    constexpr int words = (V + 1) / 2;
    uint32_t word[words];
#pragma unroll
    for (int i = 0; i < words; i++) {
      float lo = v[2 * i], hi = v[2 * i + 1 < V ? 2 * i + 1 : 2 * i];
      word[i] = dtype == QN_BF16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
    }
    if (V == 8 && stride == 1 && n == V && vector_aligned(p, 16)) {
      *(uint4 *)p = make_uint4(word[0], word[1 % words], word[2 % words], word[3 % words]);
    } else if (V % 4 == 0 && stride == 1 && n == V && vector_aligned(p, 8)) {
#pragma unroll
      for (int k = 0; k < V; k += 4) *(uint2 *)(p + k) = make_uint2(word[k / 2 % words], word[(k / 2 + 1) % words]);
    } else {
#pragma unroll
      for (int i = 0; i < V; i++) if (i < n) p[i * stride] = (uint16_t)(word[i / 2] >> (i & 1 ? 16 : 0));
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) if (i < n) element_store(base, at + i * stride, dtype, v[i]);
  }
}

/* V neighbouring elements of bool, i8 or u8, which begin at a multiple of V bytes, by words. */
template <int V> struct alignas(V) vector_bytes { uint32_t word[V / 4]; };

__device__ __forceinline__ bool vector_is_bytes(uint32_t dtype) { return dtype == QN_BOOL || dtype == QN_I8 || dtype == QN_U8; }

template <int V> __device__ __forceinline__ void vector_load_bytes(float (&v)[V], const void *base, uint32_t dtype, int64_t at)
{
  const vector_bytes<V> q = *(const vector_bytes<V> *)((const uint8_t *)base + at);
#pragma unroll
  for (int i = 0; i < V; i++) {
    const uint32_t b = q.word[i / 4] >> i % 4 * 8 & 0xff;
    v[i] = dtype == QN_I8 ? (float)(int8_t)b : dtype == QN_U8 ? (float)b : (float)(b != 0);
  }
}
template <int V> __device__ __forceinline__ void vector_store_bytes(const float (&v)[V], void *base, uint32_t dtype, int64_t at)
{
  const float low = dtype == QN_I8 ? -128 : 0, high = dtype == QN_I8 ? 127 : 255;
  vector_bytes<V> q = {};
#pragma unroll
  for (int i = 0; i < V; i++) {
    const int b = dtype == QN_BOOL ? v[i] != 0 : v[i] != v[i] ? 0 : (int)rintf(fminf(fmaxf(v[i], low), high));
    q.word[i / 4] |= (b & 0xffu) << i % 4 * 8;
  }
  *(vector_bytes<V> *)((uint8_t *)base + at) = q;
}

/* The same for a known dtype with all V elements contiguous and aligned to 16 bytes: without branches, so that the loads of
 * several vectors can be in flight at once. A load may also be kept undecoded and opened later. */
template <int dtype> constexpr int vector_per_16 = dtype == QN_F32 ? 4 : 8;

template <int dtype> __device__ __forceinline__ const uint4 *vector_place(const void *base, int64_t at)
{
  return (const uint4 *)((const char *)base + at * (dtype == QN_F32 ? 4 : 2));
}
/* Decodes one load into v[k ...]. */
template <int dtype, int V> __device__ __forceinline__ void vector_open(float (&v)[V], int k, uint4 q)
{
  uint32_t word[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
  for (int i = 0; i < vector_per_16<dtype>; i++) {
    uint32_t h = word[dtype == QN_F32 ? i % 4 : i / 2];
    if (dtype == QN_F32) v[(k + i) % V] = __uint_as_float(h);
    else if (dtype == QN_BF16) v[(k + i) % V] = __uint_as_float(i & 1 ? h & 0xffff0000u : h << 16);
    else v[(k + i) % V] = f16_to_float((uint16_t)(i & 1 ? h >> 16 : h));
  }
}
template <int dtype, int V> __device__ __forceinline__ uint4 vector_close(const float (&v)[V], int k)
{
  uint32_t word[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (dtype == QN_F32) {
      word[i] = __float_as_uint(v[(k + i) % V]);
    } else {
      float lo = v[(k + 2 * i) % V], hi = v[(k + 2 * i + 1) % V];
      word[i] = dtype == QN_BF16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
    }
  }
  return make_uint4(word[0], word[1], word[2], word[3]);
}

template <int dtype, int V> __device__ __forceinline__ void vector_load_whole(float (&v)[V], const void *base, int64_t at)
{
#pragma unroll
  for (int k = 0; k < V; k += vector_per_16<dtype>) vector_open<dtype>(v, k, *vector_place<dtype>(base, at + k));
}

template <int dtype, int V> __device__ __forceinline__ void vector_store_whole(const float (&v)[V], void *base, int64_t at)
{
#pragma unroll
  for (int k = 0; k < V; k += vector_per_16<dtype>) *(uint4 *)vector_place<dtype>(base, at + k) = vector_close<dtype>(v, k);
}

/* The same with a streaming store: not read again soon. */
template <int dtype, int V> __device__ __forceinline__ void vector_store_once(const float (&v)[V], void *base, int64_t at)
{
#pragma unroll
  for (int k = 0; k < V; k += vector_per_16<dtype>) __stcs((uint4 *)vector_place<dtype>(base, at + k), vector_close<dtype>(v, k));
}

/* Eight undecoded elements: whole, of a dtype known at compile time; or (0) of any dtype, the first n of them existing, decoded
 * at once. Missing elements are `none`. */
template <int whole> struct packet {
  uint4 word[whole == QN_F32 ? 2 : 1];

  __device__ __forceinline__ void load(const void *base, uint32_t, int64_t at, int n, float none)
  {
    uint32_t h = whole == QN_F32 ? __float_as_uint(none) : whole == QN_BF16 ? pack_bf16(none, none) : pack_f16(none, none);
#pragma unroll
    for (int k = 0; k < (int)(sizeof word / 16); k++)
      word[k] = n > 0 ? *vector_place<whole>(base, at + k * vector_per_16<whole>) : make_uint4(h, h, h, h);
  }
  /* Streaming load, for data that is not read again; n: all or none. */
  __device__ __forceinline__ void load_once(const void *base, int64_t at, int n)
  {
#pragma unroll
    for (int k = 0; k < (int)(sizeof word / 16); k++)
      word[k] = n > 0 ? __ldcs(vector_place<whole>(base, at + k * vector_per_16<whole>)) : make_uint4(0, 0, 0, 0);
  }
  __device__ __forceinline__ void open(float (&v)[8]) const
  {
#pragma unroll
    for (int k = 0; k < (int)(sizeof word / 16); k++) vector_open<whole>(v, k * vector_per_16<whole>, word[k]);
  }
};
template <> struct packet<0> {
  float held[8];

  __device__ __forceinline__ void load(const void *base, uint32_t dtype, int64_t at, int n, float none)
  {
    vector_load(held, base, dtype, at, 1, n);
#pragma unroll
    for (int i = 0; i < 8; i++) held[i] = i < n ? held[i] : none;
  }
  __device__ __forceinline__ void open(float (&v)[8]) const
  {
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = held[i];
  }
};
