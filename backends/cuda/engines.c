/* engines.c -- every engine file of the CUDA backend, best first within an op. */
#include <stddef.h>
#include "cuda_backend.h"

#ifdef HAVE_CUBLASLT
#define CUDA_CUBLASLT(X) X(matmul_cublaslt)
#else
#define CUDA_CUBLASLT(X)
#endif

#define CUDA_ENGINE_FILES(X)   \
  X(matmul_wgmma)              \
  X(matmul_thin)               \
  X(matmul_small)              \
  X(matmul_tiled)              \
  CUDA_CUBLASLT(X)             \
  X(matmul_direct)             \
  X(conv_wgmma)                \
  X(conv_mma)                  \
  X(conv_tf32)                 \
  X(conv_winograd)             \
  X(conv_narrow)               \
  X(conv_narrow_filter)        \
  X(conv_simt)                 \
  X(conv_simt_filter)          \
  X(conv_depthwise)            \
  X(conv_depthwise_filter)     \
  X(conv_depthwise_mma)        \
  X(conv_depthwise_mma_filter) \
  X(conv_depthwise_planes)     \
  X(conv_depthwise_planes_filter) \
  X(conv_grouped)              \
  X(conv_grouped_filter)       \
  X(conv_first)                \
  X(conv_first_data)           \
  X(conv_first_filter)         \
  X(conv_fft)                  \
  X(conv_by_group)             \
  X(conv_unfold)               \
  X(conv_channels_last)        \
  X(conv_as_image)             \
  X(conv_direct)               \
  X(attention_wgmma)           \
  X(attention_mma)             \
  X(attention_mma_backward)    \
  X(lrn_windows)               \
  X(lrn_planes)                \
  X(lrn)                       \
  X(lrn_taps)                  \
  X(affine_grid)               \
  X(sampling)                  \
  X(sampling_lists)            \
  X(sampling_planes)           \
  X(sampling_sorted)           \
  X(pointwise_program)         \
  X(pointwise_direct)          \
  X(softmax_rows)              \
  X(softmax_direct)            \
  X(norm_one_pass)             \
  X(norm_one_pass_backward)    \
  X(norm_rows)                 \
  X(norm_cluster)              \
  X(norm_planes)               \
  X(norm_pipeline)             \
  X(norm_stream)               \
  X(norm_bands)                \
  X(norm_ring)                 \
  X(norm_kept)                 \
  X(norm_groups)               \
  X(norm_split)                \
  X(norm_inference)            \
  X(norm_direct)               \
  X(loss_rows)                 \
  X(loss_direct)               \
  X(ctc_two_ended)             \
  X(ctc_direct)                \
  X(attention_direct)          \
  X(attention_parts_direct)    \
  X(rnn_direct)                \
  X(training_lists)            \
  X(training_direct)           \
  X(quantize_packed)           \
  X(quantize_direct)           \
  X(random_packed)             \
  X(random_direct)             \
  X(pool_runs)                 \
  X(pool_indexed)              \
  X(pool_recompute_planes)     \
  X(pool_recompute)            \
  X(pool_scatter_shared)       \
  X(pool_scatter)              \
  X(pool_strips)               \
  X(pool_flat)                 \
  X(pool_global)               \
  X(pool_planes)               \
  X(pool_vector)               \
  X(pool_tiles)                \
  X(pool_disjoint)             \
  X(pool_means)                \
  X(pool_scatter_planes)       \
  X(pool_backward)             \
  X(pool_lp)                   \
  X(pool_direct)               \
  X(pool_adaptive)             \
  X(resample_halves)           \
  X(resample_strips)           \
  X(resample_strips_backward)  \
  X(resample_direct)           \
  X(reduce_lines)              \
  X(reduce_direct)             \
  X(transform_tiled)           \
  X(transform_pad)             \
  X(transform_pad_backward)    \
  X(transform_pad_tiles)       \
  X(transform_direct)          \
  X(select_rows)               \
  X(select_lines)              \
  X(elements_direct)           \
  X(select_direct)

#define X(file) extern const qn_engine_list cuda_##file##_list;
CUDA_ENGINE_FILES(X)
#undef X

const qn_engine_list *const cuda_engines[] = {
#define X(file) &cuda_##file##_list,
  CUDA_ENGINE_FILES(X)
#undef X
  NULL
};
