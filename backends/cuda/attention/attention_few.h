/* attention_few.h -- what the host (attention_mma.c) knows of the kernels of attention_few.cuh. */
#ifndef QN_CUDA_ATTENTION_FEW_H
#define QN_CUDA_ATTENTION_FEW_H
#include "attention_mma.h"

/* At most `rows` rows, of d elements, or whole: of just that many. keys: of a warp's step, of which a page has some; threads: at most. */
enum { CUDA_FEW_PLAIN, CUDA_FEW_PAGED, CUDA_FEW_CHANGED };              /* changed: single scores are */
typedef struct cuda_few_kernel { int32_t d, rows, whole, form, keys, threads; const void *function; } cuda_few_kernel;
extern const cuda_few_kernel cuda_few_bf16[], cuda_few_f16[];           /* ended by d 0 */
#define CUDA_FEW_SHAPES(X) \
  X(64, 8, true, PLAIN) X(64, 8, true, PAGED) X(64, 8, true, CHANGED) X(64, 16, true, PLAIN) X(128, 8, true, PLAIN) X(128, 8, true, PAGED) \
  X(128, 8, false, PLAIN) X(128, 8, false, CHANGED) X(128, 16, true, PLAIN) X(128, 16, true, PAGED) X(128, 16, false, PLAIN) \
  X(128, 16, false, CHANGED) X(256, 8, true, PLAIN)
#define CUDA_FEW_KEYS(d) ((d) > 64 ? 16 : 32)
#define CUDA_FEW_THREADS(d, rows) ((d) * (rows) > 1024 ? 256 : 384)
/* Words of a warp's or a block's part: rows of sums, pairs of a maximum and a divisor; of 256 elements room for queries too. */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int32_t cuda_few_words(int32_t rows, int32_t d)
{
  const int32_t words = rows * (d + 4) + (rows + 1) / 2 * 4;
  return d > 128 && words < 4 * d ? 4 * d : words;
}
#endif
