/* matmul_wgmma_room.h -- what of a tile's epilogue the ring of stages has room for, as the host must know before it chooses a tile. */
#ifndef QN_CUDA_MATMUL_WGMMA_ROOM_H
#define QN_CUDA_MATMUL_WGMMA_ROOM_H
#include "matmul_wgmma.h"

/* The stage with the vectors of columns is held until the tile is stored, while the slices of an added matrix, of `columns` columns each,
 * come one after another: were there more than the other stages, the producer would wait for the held one, and the consumers for it.
 * copies: of b in a stage (3xTF32: 2). */
static inline bool cuda_gemm_room(const cuda_gemm_kernel *k, int copies, int columns)
{
  const int stage = (k->bm + k->bn * copies) * 128, staging = k->bm / 64 * 2 * 8192, stages = (k->shared - staging - 1024 - 512) / stage;
  return qn_ceil_div(k->bn / k->splits, columns) < stages;
}
#endif
