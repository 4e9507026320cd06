/* matmul_mma_bf16.cu -- the mma.sync kernels for bf16. */
#include "matmul_mma.cuh"

template <bool ta, bool tb> using large = mma_product<mma_bf16, 2, 4, 4, 2, 64, 4, 2, 2, ta, tb>;
template <bool ta, bool tb> using medium = mma_product<mma_bf16, 2, 2, 2, 2, 64, 4, 3, 2, ta, tb>;
template <bool ta, bool tb> using small = mma_product<mma_bf16, 1, 4, 1, 1, 128, 4, 3, 2, ta, tb>;

const cuda_tiled_kernel cuda_mma_bf16[] = { TILED_KERNEL(large, 560), TILED_KERNEL(medium, 345), TILED_KERNEL(small, 200) };
