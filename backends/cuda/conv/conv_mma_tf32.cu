/* conv_mma_tf32.cu -- the convolution kernels by mma.sync on f32: tf32, and 3xTF32. */
#include "conv_mma.cuh"

template <bool rows_a, bool rows_b> using large = mma_product<mma_tf32, 2, 4, 4, 2, 64, 4, 2, 4, rows_a, rows_b, true>;
template <bool rows_a, bool rows_b> using small = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 3, 4, rows_a, rows_b, true>;
template <bool rows_a, bool rows_b> using slim = mma_product<mma_tf32, 4, 1, 2, 2, 64, 4, 3, 4, rows_a, rows_b, true>;
template <bool rows_a, bool rows_b> using flat = mma_product<mma_tf32, 1, 4, 2, 2, 64, 4, 3, 4, rows_a, rows_b, true>;
cuda_conv_mma_table cuda_conv_mma_tf32 = {
  { CONV_MMA_KERNEL(large, 220, CUDA_CONV_FORWARD, false, false), CONV_MMA_KERNEL(small, 180, CUDA_CONV_FORWARD, false, false),
    CONV_MMA_KERNEL(slim, 150, CUDA_CONV_FORWARD, false, false), {} },
  { CONV_MMA_KERNEL(large, 220, CUDA_CONV_DATA, false, true), CONV_MMA_KERNEL(small, 180, CUDA_CONV_DATA, false, true),
    CONV_MMA_KERNEL(slim, 150, CUDA_CONV_DATA, false, true), {} },
  { CONV_MMA_KERNEL(large, 220, CUDA_CONV_FILTER, true, true), CONV_MMA_KERNEL(small, 180, CUDA_CONV_FILTER, true, true),
    {}, CONV_MMA_KERNEL(flat, 150, CUDA_CONV_FILTER, true, true) },
};

/* (128x128 took up to twice as long as 64x64.) */
template <bool rows_a, bool rows_b> using small3 = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 3, 4, rows_a, rows_b, true, true>;
template <bool rows_a, bool rows_b> using slim3 = mma_product<mma_tf32, 4, 1, 2, 2, 64, 4, 3, 4, rows_a, rows_b, true, true>;
template <bool rows_a, bool rows_b> using flat3 = mma_product<mma_tf32, 1, 4, 2, 2, 64, 4, 3, 4, rows_a, rows_b, true, true>;
cuda_conv_mma_table cuda_conv_mma_3xtf32 = {
  { {}, CONV_MMA_KERNEL(small3, 93, CUDA_CONV_FORWARD, false, false), CONV_MMA_KERNEL(slim3, 80, CUDA_CONV_FORWARD, false, false), {} },
  { {}, CONV_MMA_KERNEL(small3, 93, CUDA_CONV_DATA, false, true), CONV_MMA_KERNEL(slim3, 80, CUDA_CONV_DATA, false, true), {} },
  { {}, CONV_MMA_KERNEL(small3, 93, CUDA_CONV_FILTER, true, true), {}, CONV_MMA_KERNEL(flat3, 80, CUDA_CONV_FILTER, true, true) },
};
