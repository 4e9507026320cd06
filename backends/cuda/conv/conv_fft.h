/* conv_fft.h -- convolution by Fourier transforms of 32x32 tiles: geometry shared by host (conv_fft.c) and kernels (conv_fft.cu). */
#ifndef QN_CUDA_CONV_FFT_H
#define QN_CUDA_CONV_FFT_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A real tile of 1024 values has a transform of 32 x 17 complex bins, of which columns 0 and 16 are symmetric: 514 independent ones. */
enum { CUDA_FFT_SIDE = 32, CUDA_FFT_BINS = 514 };

/* Tiles of a block; its shared memory, with one pad column. */
enum { CUDA_FFT_TILES = 16, CUDA_FFT_SHARED = CUDA_FFT_BINS * (CUDA_FFT_TILES + 1) * 8 };

/* Planes of a tensor and the tiles laid over them. A plane is element (outer, inner); its tile (i, j) begins at pixel (i step -
 * before) and takes `reach` pixels each way. */
typedef struct cuda_fft_tiles {
  int64_t outer_stride, inner_stride, stride[2];           /* of the tensor, in elements */
  int32_t outer, inner, extent[2];                         /* number of planes; pixels of a plane */
  int32_t tiles[2], step[2], before[2], reach[2];
  int32_t in_rows;  /* matrix rows are (outer, tile) and columns inner; otherwise rows are inner and columns (outer, tile) */
} cuda_fft_tiles;

/* Direct computation of an output, for tiles whose transform spread an Inf or NaN:
 *   over i of inner, and pixels (r, s) of b's plane:  a[a_outer, i, h + r - before, w + s - before] b[b_outer, i, r, s] */
typedef struct cuda_fft_again {
  const float *a, *b;
  int64_t a_outer, a_inner, a_stride[2], b_outer, b_inner, b_stride[2];
  int32_t inner, a_extent[2], b_extent[2], before[2];
  int32_t swapped;                        /* b's outer is the row, a's the column */
} cuda_fft_again;

/* spectra[bin][row][columns], complex. With `pairs` each row is followed by itself times pairs * i (1 or -1), so that a real
 * product of a row of x with rows of conj(w) gives real and imaginary parts side by side. Rows and columns beyond the planes are 0. */
qn_status cuda_fft_transform(const cuda_fft_tiles *t, const float *planes, float *spectra, int64_t rows, int64_t columns, int pairs,
                             void *stream);
/* Inverse: writes the first `reach` pixels of each tile to planes (outer = row's image, inner = column). bias: NULL, or one for
 * each column. */
qn_status cuda_fft_restore(const cuda_fft_tiles *t, const float *spectra, float *planes, int64_t rows, int64_t columns,
                           const cuda_fft_again *again, const void *bias, uint32_t bias_dtype, int64_t bias_stride, void *stream);
qn_status cuda_fft_build(void);
#ifdef __cplusplus
}
#endif
#endif
