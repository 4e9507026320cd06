/* divisor.h -- unsigned division by a number that is known before the launch, as a multiplication and a shift. */
#ifndef QN_CUDA_DIVISOR_H
#define QN_CUDA_DIVISOR_H
#include <stdint.h>

/* n / by for n below 2^31 is (n * multiplier / 2^32 + n) / 2^shift. */
typedef struct cuda_divisor { uint32_t by, multiplier, shift; } cuda_divisor;

/* by: 1 to 2^31. */
static inline cuda_divisor cuda_divide_by(int64_t by)
{
  uint64_t d = (uint64_t)by;
  uint32_t bits = 0;
  while ((uint64_t)1 << bits < d) bits++;
  cuda_divisor divisor = { (uint32_t)d, (uint32_t)(((((uint64_t)1 << bits) - d) << 32) / d + 1), bits };
  return divisor;
}
#ifdef __CUDACC__
__device__ __forceinline__ uint32_t cuda_quotient(uint32_t n, const cuda_divisor &d) { return (__umulhi(n, d.multiplier) + n) >> d.shift; }
__device__ __forceinline__ uint32_t cuda_quotient(uint32_t n, const cuda_divisor &d, uint32_t *rest)
{
  uint32_t q = cuda_quotient(n, d);
  *rest = n - q * d.by;
  return q;
}
#endif
#endif
