/* fake_cuda_maps.c -- the tensor maps of the stand-in for the CUDA runtime, by the documentation of cuTensorMapEncodeTiled and
 * cuTensorMapEncodeIm2col. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "fake_cuda_order.h"

typedef struct map { uint64_t span; } map;      /* what a map holds: bytes from its address to its last element */

static CUresult bad_map(const char *format, ...) __attribute__((format(printf, 1, 2)));
static CUresult bad_map(const char *format, ...)
{
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  broken(cudaErrorInvalidValue, "tensor map: %s", text);
  fake_last(cudaSuccess);                 /* the driver's errors do not set the runtime's */
  return CUDA_ERROR_INVALID_VALUE;
}

static unsigned type_bytes(CUtensorMapDataType type)
{
  switch ((int)type) {
  case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
  case CU_TENSOR_MAP_DATA_TYPE_UINT16: case CU_TENSOR_MAP_DATA_TYPE_FLOAT16: case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
  case CU_TENSOR_MAP_DATA_TYPE_UINT32: case CU_TENSOR_MAP_DATA_TYPE_INT32: case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
  case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ: case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32: case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ: return 4;
  case CU_TENSOR_MAP_DATA_TYPE_UINT64: case CU_TENSOR_MAP_DATA_TYPE_INT64: case CU_TENSOR_MAP_DATA_TYPE_FLOAT64: return 8;
  default: return 0;
  }
}

/* Common to both kinds; inner: bytes of a box along dim 0. */
static CUresult check_map(CUtensorMap *to, CUtensorMapDataType type, unsigned rank, const void *address, const cuuint64_t *dim,
                          const cuuint64_t *stride, const cuuint32_t *step, uint64_t inner, CUtensorMapInterleave interleave,
                          CUtensorMapSwizzle swizzle)
{
  static const unsigned spans[] = { 16, 32, 64, 128 };    /* bytes, per swizzle mode */
  const unsigned bytes = type_bytes(type);
  uint64_t span = bytes;
  if (fake_generation() < 9) return bad_map("devices before 9.0 have none");
  if ((uintptr_t)to % _Alignof(CUtensorMap)) return bad_map("it lies at an address that is no multiple of %zu", _Alignof(CUtensorMap));
  if (!bytes || interleave || (unsigned)swizzle >= sizeof spans / sizeof *spans)
    return bad_map("a type, interleave or swizzle that this stand-in does not know");
  if ((uintptr_t)address % 16) return bad_map("an address that is no multiple of 16");
  for (unsigned i = 0; i < rank; i++) {
    if (!dim[i] || dim[i] > UINT64_C(1) << 32) return bad_map("dim %u is %llu; 1 to 2^32 are allowed", i, (unsigned long long)dim[i]);
    if (i && (!step[i] || step[i] > 8)) return bad_map("the step along dim %u is %u; 1 to 8 are allowed", i, step[i]);
    if (i && (stride[i - 1] % 16 || stride[i - 1] >= UINT64_C(1) << 40))
      return bad_map("the stride of dim %u is %llu bytes; multiples of 16 below 2^40 are allowed", i, (unsigned long long)stride[i - 1]);
    span += (dim[i] - 1) * (i ? stride[i - 1] : bytes);
  }
  if (!inner || inner % 16) return bad_map("a box has %llu bytes along dim 0; multiples of 16 are allowed", (unsigned long long)inner);
  if (swizzle && inner > spans[swizzle])
    return bad_map("a box has %llu bytes along dim 0, the swizzle %u", (unsigned long long)inner, spans[swizzle]);
  *(map *)to = (map){ span };
  return CUDA_SUCCESS;
}

CUresult fake_encode_tiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dim,
                           const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
  (void)promotion, (void)fill;
  if (rank < 1 || rank > 5) return bad_map("its rank is %u; 1 to 5 are allowed", rank);
  for (unsigned i = 0; i < rank; i++)
    if (!box[i] || box[i] > 256) return bad_map("a box has %u elements along dim %u; 1 to 256 are allowed", box[i], i);
  return check_map(to, type, rank, address, dim, stride, step, (uint64_t)box[0] * type_bytes(type), interleave, swizzle);
}

CUresult fake_encode_im2col(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dim,
                            const cuuint64_t *stride, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
                            const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                            CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
  static const int corner[] = { 32768, 128, 16 };         /* -corner to corner - 1, by rank */
  (void)promotion, (void)fill;
  if (rank < 3 || rank > 5) return bad_map("its rank is %u; 3 to 5 are allowed", rank);
  for (unsigned i = 0; i < rank - 2; i++) {
    const int most = corner[rank - 3];
    if (lower[i] < -most || lower[i] >= most || upper[i] < -most || upper[i] >= most)
      return bad_map("corners of %d and %d along dim %u; %d to %d are allowed", lower[i], upper[i], i + 1, -most, most - 1);
    if ((int64_t)dim[i + 1] + upper[i] - lower[i] <= 0)
      return bad_map("corners of %d and %d leave nothing of dim %u", lower[i], upper[i], i + 1);
  }
  if (channels > 256) return bad_map("%u channels of a pixel; 256 is the most", channels);
  if (pixels < 1 || pixels > 1024) return bad_map("%u pixels of a column; 1 to 1024 are allowed", pixels);
  return check_map(to, type, rank, address, dim, stride, step, (uint64_t)channels * type_bytes(type), interleave, swizzle);
}

CUresult fake_replace_address(CUtensorMap *to, void *address)
{
  const uint64_t at = (uint64_t)(uintptr_t)address, span = ((const map *)to)->span;
  if ((uintptr_t)to % _Alignof(CUtensorMap)) return bad_map("it lies at an address that is no multiple of %zu", _Alignof(CUtensorMap));
  if (at % 16) return bad_map("an address that is no multiple of 16");
  if (!fake_allocated(at, span)) return bad_map("it spans %llu bytes, from %s", (unsigned long long)span, fake_beside(at));
  return CUDA_SUCCESS;
}
