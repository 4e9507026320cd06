/* matmul_mma_tf32.cu -- the mma.sync kernels for f32: tf32, and 3xTF32. */
#include "matmul_mma.cuh"

template <bool A, bool B> using large = mma_product<mma_tf32, 2, 4, 4, 2, 64, 4, 2, 4, A, B, true>;
template <bool A, bool B> using medium = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 3, 4, A, B, true>;
template <bool A, bool B> using small = mma_product<mma_tf32, 1, 4, 1, 1, 128, 4, 3, 4, A, B, true>;
const cuda_tiled_kernel cuda_mma_tf32[] = { TILED_KERNEL(large, 220), TILED_KERNEL(medium, 160), TILED_KERNEL(small, 60) };

template <bool A, bool B> using large3 = mma_product<mma_tf32, 2, 4, 4, 2, 64, 4, 1, 4, A, B, true, true>;
template <bool A, bool B> using medium3 = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 3, 4, A, B, true, true>;
template <bool A, bool B> using small3 = mma_product<mma_tf32, 1, 4, 1, 1, 128, 4, 3, 4, A, B, true, true>;
const cuda_tiled_kernel cuda_mma_3xtf32[] = { TILED_KERNEL(large3, 110), TILED_KERNEL(medium3, 100), TILED_KERNEL(small3, 42) };
