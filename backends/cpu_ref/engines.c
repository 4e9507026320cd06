/* engines.c -- one line per engine file; within an op core asks them in this order. */
#include "cpu_ref.h"

#define ENGINE_FILES(X)                                                                   \
  X(conv_depthwise)                                                                       \
  X(gemm_fused)                                                                           \
  X(matmul_gemm)                                                                          \
  X(matmul_blocked)                                                                       \
  X(matmul_direct)                                                                        \
  X(conv_channels)                                                                       \
  X(conv_subpixel)                                                                        \
  X(conv_gemm)                                                                            \
  X(conv_channels_filter)                                                                \
  X(conv_depthwise_filter)                                                               \
  X(conv_gemm_filter)                                                                     \
  X(conv_direct)                                                                          \
  X(softmax_rows)                                                                         \
  X(softmax_direct)                                                                       \
  X(norm_columns)                                                                         \
  X(norm_columns_f64)                                                                     \
  X(norm_runs)                                                                            \
  X(norm_runs_f64)                                                                        \
  X(norm_direct)                                                                          \
  X(attention_decode)                                                                     \
  X(attention_tiles)                                                                      \
  X(attention_tiles_backward)                                                             \
  X(loss_rows)                                                                            \
  X(loss_rows_f64)                                                                        \
  X(ctc_rows)                                                                             \
  X(ctc_direct)                                                                           \
  X(rnn_steps)                                                                            \
  X(rnn_back)                                                                             \
  X(rnn_direct)                                                                           \
  X(loss_direct)                                                                          \
  X(attention_direct)                                                                     \
  X(attention_parts_direct)                                                               \
  X(training_lists)                                                                       \
  X(training_direct)                                                                      \
  X(quantize_runs)                                                                        \
  X(quantize_direct)                                                                      \
  X(random_packed)                                                                        \
  X(random_direct)                                                                        \
  X(pool_planes)                                                                          \
  X(pool_planes_f64)                                                                      \
  X(pool_adaptive_planes)                                                                 \
  X(pool_channels)                                                                        \
  X(pool_channels_f64)                                                                    \
  X(pool_lp)                                                                              \
  X(pool_direct)                                                                          \
  X(affine_rows)                                                                          \
  X(sampling_points)                                                                      \
  X(sampling_direct)                                                                      \
  X(lrn_tiles)                                                                            \
  X(lrn_direct)                                                                           \
  X(resample_lists)                                                                       \
  X(resample_lists_f64)                                                                   \
  X(resample_direct)                                                                      \
  X(pool_adaptive_direct)                                                                 \
  X(reduce_rows)                                                                          \
  X(reduce_cols)                                                                          \
  X(reduce_direct)                                                                        \
  X(transform_strided)                                                                    \
  X(transform_pad)                                                                        \
  X(transform_pad_f64)                                                                    \
  X(transform_direct)                                                                     \
  X(select_rows)                                                                          \
  X(select_lines)                                                                         \
  X(select_direct)                                                                        \
  X(elements_direct)                                                                      \
  X(pointwise_tile)                                                                       \
  X(pointwise_direct)

#define DECLARE(file) extern const qn_engine_list cpu_##file;
ENGINE_FILES(DECLARE)

#define ADDRESS(file) &cpu_##file,
const qn_engine_list *const cpu_engines[] = { ENGINE_FILES(ADDRESS) NULL };
