/* engines.c -- the engine files, each one line; within an op core asks them in this order. */
#include <config.h>
#include "cpu_ref.h"

/* A file compiled for each instruction set: the widest first. */
#ifdef QN_AVX512
#define AVX512(X, file) X(file##_avx512)
#else
#define AVX512(X, file)
#endif
#ifdef QN_AVX2
#define AVX2(X, file) X(file##_avx2)
#else
#define AVX2(X, file)
#endif
#define COPIES(X, file) AVX512(X, file) AVX2(X, file) X(file)

#define ENGINE_FILES(X)                                                                   \
  X(matmul_gemm)                                                                          \
  X(matmul_blocked)                                                                       \
  X(matmul_direct)                                                                        \
  X(conv_gemm)                                                                            \
  X(conv_gemm_filter)                                                                     \
  X(conv_direct)                                                                          \
  COPIES(X, softmax_rows)                                                                 \
  X(softmax_direct)                                                                       \
  COPIES(X, pool_planes)                                                                  \
  COPIES(X, pool_channels)                                                                \
  X(pool_direct)                                                                          \
  COPIES(X, reduce_rows)                                                                  \
  COPIES(X, reduce_cols)                                                                  \
  X(reduce_direct)                                                                        \
  X(transform_direct)                                                                     \
  COPIES(X, pointwise_tile)                                                               \
  X(pointwise_direct)

#define DECLARE(file) extern const qn_engine_list cpu_##file;
ENGINE_FILES(DECLARE)

#define ADDRESS(file) &cpu_##file,
const qn_engine_list *const cpu_engines[] = { ENGINE_FILES(ADDRESS) NULL };
