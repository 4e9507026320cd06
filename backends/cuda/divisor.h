/* divisor.h -- division by a number that is known before a launch. */
#ifndef QN_CUDA_DIVISOR_H
#define QN_CUDA_DIVISOR_H
#include <stdint.h>

/* x / divisor for 0 <= x < 2^31 is x * multiplier >> shift. */
typedef struct cuda_divisor { uint32_t multiplier, shift; } cuda_divisor;

static inline cuda_divisor cuda_divide_by(int64_t divisor)
{
  uint32_t bits = 0;
  while ((int64_t)1 << bits < divisor) bits++;
  cuda_divisor d = { (uint32_t)((((uint64_t)1 << (31 + bits)) + (uint64_t)divisor - 1) / (uint64_t)divisor), 31 + bits };
  return d;
}
#ifdef __CUDACC__
__device__ __forceinline__ int cuda_quotient(int x, const cuda_divisor &d) { return (int)((uint64_t)(uint32_t)x * d.multiplier >> d.shift); }
#endif
#endif
