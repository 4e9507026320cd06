/* conv_mma_f16.cu -- the convolution kernels by mma.sync on f16. */
#include "conv_mma.cuh"

template <bool rows_a, bool rows_b> using large = mma_product<mma_f16, 2, 4, 4, 2, 64, 4, 2, 2, rows_a, rows_b>;
template <bool rows_a, bool rows_b> using small = mma_product<mma_f16, 2, 2, 2, 2, 64, 4, 3, 2, rows_a, rows_b>;
template <bool rows_a, bool rows_b> using slim = mma_product<mma_f16, 4, 1, 2, 2, 64, 4, 4, 2, rows_a, rows_b>;
template <bool rows_a, bool rows_b> using flat = mma_product<mma_f16, 1, 4, 2, 2, 64, 4, 4, 2, rows_a, rows_b>;

cuda_conv_mma_table cuda_conv_mma_f16 = {
  { CONV_MMA_KERNEL(large, 560, CUDA_CONV_FORWARD, false, false), CONV_MMA_KERNEL(small, 345, CUDA_CONV_FORWARD, false, false),
    CONV_MMA_KERNEL(slim, 280, CUDA_CONV_FORWARD, false, false), {} },
  { CONV_MMA_KERNEL(large, 560, CUDA_CONV_DATA, false, true), CONV_MMA_KERNEL(small, 345, CUDA_CONV_DATA, false, true),
    CONV_MMA_KERNEL(slim, 280, CUDA_CONV_DATA, false, true), {} },
  { CONV_MMA_KERNEL(large, 560, CUDA_CONV_FILTER, true, true), CONV_MMA_KERNEL(small, 345, CUDA_CONV_FILTER, true, true),
    {}, CONV_MMA_KERNEL(flat, 280, CUDA_CONV_FILTER, true, true) },
};
