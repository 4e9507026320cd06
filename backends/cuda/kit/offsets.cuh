/* offsets.cuh -- where the elements of dims that do not merge lie. */
#pragma once
#include <stdint.h>

/* Offset of element i over these dims, innermost first. */
__device__ __forceinline__ int64_t offset_of(uint32_t i, int rank, const uint32_t *dim, const int64_t *stride)
{
  int64_t offset = 0;
  for (int d = 0; d < rank; d++) {
    uint32_t q = d + 1 < rank ? i / dim[d] : 0;
    offset += (i - q * dim[d]) * stride[d];
    i = q;
  }
  return offset;
}
