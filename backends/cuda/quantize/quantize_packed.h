/* quantize_packed.h -- parameters and kernel table of quantization of packed tensors. */
#ifndef QN_CUDA_QUANTIZE_PACKED_H
#define QN_CUDA_QUANTIZE_PACKED_H
#include "cuda_backend.h"
#include "kit/divisor.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_QUANTIZE_THREADS = 256, CUDA_QUANTIZE_VECTORS = 4,    /* threads of a block; vectors a thread (16 bytes of floats each) */
       CUDA_QUANTIZE_KEPT = 8,            /* vectors a thread keeps of a tile */
       /* the `kept` kernel: threads of a block; vectors a thread keeps in registers */
       CUDA_QUANTIZE_KEEPERS = 1024, CUDA_QUANTIZE_HELD = 6,
       CUDA_QUANTIZE_LEVELS = 3, CUDA_QUANTIZE_COLUMN = 32 };       /* LEVELS: of blocks; COLUMN: most rows of a block that is a column */

typedef struct cuda_quantization {
  const void *x;                          /* floats; for dequantize this is y, the output */
  uint8_t    *y;                          /* the 8-bit tensor */
  void       *scale, *amax;
  const uint8_t *zero;
  uint32_t   *part;                       /* largest magnitude of each thread block */
  uint32_t   *met;                        /* counter of blocks that have written theirs */
  uint32_t    y_dtype, scale_dtype, parts;        /* parts: thread blocks that wrote `part`; 0: the scale is given */
  uint32_t    again, kept;  /* `kept`: vectors, from the first on, that must be read twice; vectors a thread keeps in shared memory */
  uint32_t    vectors;                    /* whole vectors */
  int32_t     tail;                       /* elements after the last whole vector */
  int32_t     levels;                     /* levels of blocks, innermost first; 0: one scale */
  cuda_divisor dim[CUDA_QUANTIZE_LEVELS], block[CUDA_QUANTIZE_LEVELS];       /* innermost in vectors */
  uint32_t    stride[CUDA_QUANTIZE_LEVELS];
  uint32_t    lanes;                      /* lanes that share a block */
  bool        powers;                     /* scales are e8m0 */
  uint32_t    high, rows, pitch, tiles;   /* tiles, columns: rows of a block; rows, and vectors of a row, of x as a matrix; tiles */
  uint32_t    steps, step_rows, step_columns;      /* vectors a thread; in its tile, rows and columns from one to the next */
  cuda_divisor across, wide;              /* tiles (each: vectors) of a row; vectors of a tile's row */
} cuda_quantization;

/* The kernels for one float dtype. [1]: one scale for each element of the last dim. */
typedef struct cuda_quantize_kernels {
  const void *spread[2], *back[2], *lanes, *tiles[5], *columns, *extreme, *kept, *clear;
} cuda_quantize_kernels;
cuda_quantize_kernels cuda_quantize_kernels_of(uint32_t dtype);

#ifdef __cplusplus
}
#endif
#endif
