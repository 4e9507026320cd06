/* divisor.cuh -- quotients by a number that the host knows, without a division. */
#pragma once
#include <cstdint>

struct divisor {
  uint32_t d, inverse;                    /* floor((2^32 - 1) / d): an estimate by it is right or one less */

  __device__ __forceinline__ uint32_t of(uint32_t n, uint32_t *rest) const
  {
    uint32_t q = __umulhi(n, inverse), r = n - q * d;
    bool more = r >= d;
    *rest = more ? r - d : r;
    return q + more;
  }
};
static inline divisor divisor_of(int64_t d) { return { (uint32_t)d, 0xffffffffu / (uint32_t)d }; }
