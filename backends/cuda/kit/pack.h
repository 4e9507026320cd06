/* pack.h -- copies an operand of a product into rows of contiguous k, the layout that TMA and the Tensor Cores need. */
#ifndef QN_CUDA_PACK_H
#define QN_CUDA_PACK_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuda_pack {
  int64_t rows, k, row_stride, k_stride, batch[2], batch_stride[2];   /* of the source, in elements */
  int64_t pitch;                          /* of an output row, a multiple of 4 bytes; elements from k on are 0 */
  int32_t bytes;                          /* of an output element: 1, 2, 4 */
  uint32_t f8;                            /* source dtype e4m3 or e5m2, converted exactly to f16; else 0 */
  int32_t split;                          /* f32: tf32 high parts in the first half of a row, low parts in the second */
} cuda_pack;

/* One launch for n operands, 1 or 2. */
qn_status cuda_pack_launch(int n, const cuda_pack *p, void *const *to, const void *const *from, void *stream);
#ifdef __cplusplus
}
#endif
#endif
