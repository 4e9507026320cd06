/* random.cuh -- shared by the random number and dropout engines: keys, uniform numbers, Philox rounds. */
#pragma once
#include <cstdint>
#include <quern/kit.h>

/* A key in host memory is read at launch (p stays NULL); one on the device (i64) is read by the kernel. */
struct random_key {
  const int64_t *p;
  int64_t value;
  __device__ uint64_t get() const { return (uint64_t)(p ? *p : value); }
};
static inline random_key random_key_of(const qn_value *v, const void *at)
{
  if (!v) return { nullptr, 0 };
  if (v->flags & QN_VALUE_HOST) return { nullptr, qn_load_i64(at, v->dtype) };
  return { (const int64_t *)at, 0 };
}

template <class T> __device__ __forceinline__ T random_uniform(uint32_t word) { return (T)(int32_t)(word >> 8) * T(0x1p-24); }

/* qn_random_words with mul.wide.u32, one instruction; the compiler's 64-bit products take two. */
__device__ __forceinline__ void random_round(uint32_t (&w)[4], uint32_t key0, uint32_t key1)
{
  uint64_t a, b;
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(a) : "r"(w[0]), "r"(0xd2511f53u));
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(b) : "r"(w[2]), "r"(0xcd9e8d57u));
  w[0] = (uint32_t)(b >> 32) ^ w[1] ^ key0;
  w[1] = (uint32_t)b;
  w[2] = (uint32_t)(a >> 32) ^ w[3] ^ key1;
  w[3] = (uint32_t)a;
}
__device__ __forceinline__ void random_words(uint32_t (&w)[4], uint64_t seed, uint64_t offset, uint64_t block)
{
  w[0] = (uint32_t)block, w[1] = (uint32_t)(block >> 32), w[2] = (uint32_t)offset, w[3] = (uint32_t)(offset >> 32);
#pragma unroll
  for (uint32_t round = 0; round < 10; round++)
    random_round(w, (uint32_t)seed + round * 0x9e3779b9u, (uint32_t)(seed >> 32) + round * 0xbb67ae85u);
}
