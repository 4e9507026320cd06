/* quantize_packed.h -- quantization of packed tensors as its kernels see it, and which kernels there are. */
#ifndef QN_CUDA_QUANTIZE_PACKED_H
#define QN_CUDA_QUANTIZE_PACKED_H
#include "cuda_backend.h"
#include "divisor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_QUANTIZE_THREADS = 256, CUDA_QUANTIZE_VECTORS = 4,    /* of a block; of a thread, 16 bytes of floats each */
       CUDA_QUANTIZE_KEPT = 8,            /* and of a tile */
       /* threads of a block that keeps what it can; vectors of each in registers */
       CUDA_QUANTIZE_KEEPERS = 1024, CUDA_QUANTIZE_HELD = 6,
       CUDA_QUANTIZE_LEVELS = 3, CUDA_QUANTIZE_COLUMN = 32 };       /* of blocks; rows of a block that is a column, at most */

typedef struct cuda_quantization {
  const void *x;                          /* floats; in dequantize y, which is written */
  uint8_t    *y;                          /* octets */
  void       *scale, *amax;
  const uint8_t *zero;
  uint32_t   *part;                       /* magnitudes, the largest of each block of threads */
  uint32_t   *met;                        /* blocks that have told theirs */
  uint32_t    y_dtype, scale_dtype, parts;        /* parts: 0 where the scale is given */
  uint32_t    again, kept;                /* vectors that are read twice, the first ones; of a thread in shared memory */
  uint32_t    vectors;                    /* whole ones */
  int32_t     tail;                       /* elements after them */
  int32_t     levels;                     /* of blocks, innermost first; 0: one scale */
  cuda_divisor dim[CUDA_QUANTIZE_LEVELS], block[CUDA_QUANTIZE_LEVELS];       /* innermost in vectors */
  uint32_t    stride[CUDA_QUANTIZE_LEVELS];
  uint32_t    lanes;                      /* of a block */
  bool        powers;                     /* scales are e8m0 */
  uint32_t    high, rows, pitch, tiles;   /* of tiles and columns: rows of a block, rows and vectors of x in two dims, tiles */
  uint32_t    steps, step_rows, step_columns;      /* of a thread: vectors; in its tile, from one to the next */
  cuda_divisor across, wide;              /* tiles (each: vectors) beside one another, the vectors of a tile */
} cuda_quantization;

/* Of floats of one dtype. [1]: a scale for each element of the last dim. */
typedef struct cuda_quantize_kernels {
  const void *spread[2], *back[2], *lanes, *tiles[5], *columns, *extreme, *kept, *clear;
} cuda_quantize_kernels;
cuda_quantize_kernels cuda_quantize_kernels_of(uint32_t dtype);

#ifdef __cplusplus
}
#endif
#endif
