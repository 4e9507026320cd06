/* conv_pointwise_tf32.cu -- the kernels of conv_pointwise for f32: tf32, and 3xTF32. */
#include "conv_pointwise.cuh"

template <bool rows_a> using s64x128 = mma_product<mma_tf32, 1, 4, 4, 2, 64, 3, 4, 4, rows_a, true, true>;
template <bool rows_a> using s32x128 = mma_product<mma_tf32, 1, 4, 2, 2, 64, 3, 4, 4, rows_a, true, true>;
template <bool rows_a> using t128x128 = mma_product<mma_tf32, 2, 4, 4, 2, 128, 3, 2, 4, rows_a, true, true>;
template <bool rows_a> using t64x128 = mma_product<mma_tf32, 2, 4, 2, 2, 128, 4, 2, 4, rows_a, true, true>;
template <bool rows_a> using t64x64 = mma_product<mma_tf32, 2, 2, 2, 2, 128, 4, 3, 4, rows_a, true, true>;
template <bool rows_a> using t32x64 = mma_product<mma_tf32, 1, 4, 2, 1, 128, 4, 4, 4, rows_a, true, true>;
typedef mma_product<mma_tf32, 2, 4, 4, 2, 128, 3, 2, 4, false, false, true> f128x128;
typedef mma_product<mma_tf32, 2, 2, 2, 2, 128, 3, 4, 4, false, false, true> f64x64;

cuda_pointwise_table cuda_pointwise_tf32 = {
  { POINTWISE_KERNEL(s64x128, 145), POINTWISE_KERNEL(s32x128, 95), POINTWISE_KERNEL(t128x128, 160), POINTWISE_KERNEL(t64x128, 145),
    POINTWISE_KERNEL(t64x64, 120), POINTWISE_KERNEL(t32x64, 80) },
  { {}, {}, POINTWISE_FILTER(f128x128, 220), {}, POINTWISE_FILTER(f64x64, 180), {} },
};

template <bool rows_a> using p64x128 = mma_product<mma_tf32, 1, 4, 4, 2, 64, 4, 3, 4, rows_a, true, true, true>;
template <bool rows_a> using p64x64 = mma_product<mma_tf32, 2, 2, 2, 2, 64, 4, 4, 4, rows_a, true, true, true>;
typedef mma_product<mma_tf32, 2, 2, 2, 2, 128, 3, 4, 4, false, false, true, true> q64x64;

cuda_pointwise_table cuda_pointwise_3xtf32 = {
  { POINTWISE_KERNEL(p64x128, 75), {}, {}, {}, POINTWISE_KERNEL(p64x64, 70), {} },
  { {}, {}, {}, {}, POINTWISE_FILTER(q64x64, 90), {} },
};
