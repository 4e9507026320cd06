/* matmul_mma_i8.cu -- the mma.sync kernels for i8. In shared memory k is always contiguous. */
#include "matmul_mma.cuh"

template <bool, bool> using large = mma_product<mma_i8, 2, 4, 4, 2, 64, 4, 2, 1, false, false>;
template <bool, bool> using medium = mma_product<mma_i8, 2, 2, 2, 2, 64, 4, 3, 1, false, false>;
template <bool, bool> using small = mma_product<mma_i8, 1, 4, 1, 1, 128, 4, 3, 1, false, false>;
const cuda_tiled_kernel cuda_mma_i8[] = { TILED_KERNEL(large, 1100), TILED_KERNEL(medium, 700), TILED_KERNEL(small, 400) };
