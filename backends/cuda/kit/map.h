/* map.h -- tensor maps (TMA) of up to four dims, in tiles of shared memory. */
#ifndef QN_CUDA_MAP_H
#define QN_CUDA_MAP_H
#include "cuda_backend.h"

/* dim: innermost first; stride: of dims 1 to 3, in elements of esize bytes; box: elements of a tile. refused: the message if the
 * driver does. The address is any aligned one: run writes the real one. */
static inline qn_status cuda_map_tiled(const cuda_driver *driver, CUtensorMap *map, CUtensorMapDataType type, int esize, const int64_t dim[4],
                                       const int64_t stride[3], const cuuint32_t box[4], CUtensorMapSwizzle swizzle,
                                       CUtensorMapL2promotion fetch, const char *refused)
{
  cuuint64_t extent[4], pitch[3];
  const cuuint32_t one[4] = { 1, 1, 1, 1 };
  for (int d = 0; d < 4; d++) extent[d] = (cuuint64_t)dim[d];
  for (int d = 0; d < 3; d++) pitch[d] = dim[d + 1] > 1 ? (cuuint64_t)(stride[d] * esize) : (cuuint64_t)qn_round_up(dim[0] * esize, 16);
  const CUresult e = driver->tensor_map_tiled(map, type, 4, (void *)0x10000, extent, pitch, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                              fetch, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return e == CUDA_SUCCESS ? QN_OK : cuda_host->error(QN_INTERNAL, refused);
}
#endif
