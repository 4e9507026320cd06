/* conv_pointwise_bf16.cu -- the kernels of conv_pointwise for bf16. */
#include "conv_pointwise.cuh"

template <bool rows_a> using s64x128 = mma_product<mma_bf16, 1, 4, 4, 2, 64, 3, 4, 2, rows_a, true>;
template <bool rows_a> using s32x128 = mma_product<mma_bf16, 1, 4, 2, 2, 64, 3, 5, 2, rows_a, true>;
template <bool rows_a> using t128x128 = mma_product<mma_bf16, 2, 4, 4, 2, 128, 3, 2, 2, rows_a, true>;
template <bool rows_a> using t64x128 = mma_product<mma_bf16, 2, 4, 2, 2, 128, 4, 2, 2, rows_a, true>;
template <bool rows_a> using t64x64 = mma_product<mma_bf16, 2, 2, 2, 2, 128, 4, 3, 2, rows_a, true>;
template <bool rows_a> using t32x64 = mma_product<mma_bf16, 1, 4, 2, 1, 128, 4, 4, 2, rows_a, true>;
typedef mma_product<mma_bf16, 2, 4, 4, 2, 128, 3, 2, 2, false, false> f128x128;
typedef mma_product<mma_bf16, 2, 2, 2, 2, 128, 3, 4, 2, false, false> f64x64;

cuda_pointwise_table cuda_pointwise_bf16 = {
  { POINTWISE_KERNEL(s64x128, 450), POINTWISE_KERNEL(s32x128, 300), POINTWISE_KERNEL(t128x128, 560), POINTWISE_KERNEL(t64x128, 450),
    POINTWISE_KERNEL(t64x64, 345), POINTWISE_KERNEL(t32x64, 250) },
  { {}, {}, POINTWISE_FILTER(f128x128, 560), {}, POINTWISE_FILTER(f64x64, 345), {} },
};
