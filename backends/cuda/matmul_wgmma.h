/* matmul_wgmma.h -- what the host and the kernel of matmul_wgmma share. */
#ifndef QN_CUDA_MATMUL_WGMMA_H
#define QN_CUDA_MATMUL_WGMMA_H
#include <cuda.h>
#include <quern/kit.h>
#include "divisor.h"
#include "steps.h"

/* f32 operands: where a sum is taken again, in plain f32. Tensor Cores read f32 in parts, of which Inf and what rounds to
 * it make NaN. */
typedef struct cuda_gemm_again {
  const float *a, *b;                     /* a NULL: never */
  int64_t  a_stride[4], b_stride[4];      /* row (of b: column), k, b0, b1 */
  int32_t  k;
} cuda_gemm_again;

typedef struct cuda_gemm {                /* the kernel's parameter */
  CUtensorMap a, b, y;                    /* y: only with store_map */
  void    *out;
  int64_t  out_stride[4];                 /* row, col, b0, b1 */
  uint32_t out_dtype;
  int32_t  store_map;                     /* y through the copy engine; of steps then only the next three are taken */
  const float *factor, *shift;            /* behind the bias, of each column; NULL: none */
  int32_t  column, relu;                  /* operand that is added to each column (-1: none), then max(v, 0) */
  int32_t  along;                         /* else: dim of the tile along which y is contiguous: 0 columns, 1 rows */
  int32_t  m, n, k_steps;
  int32_t  layout;                        /* 1: a has m contiguous, not k; 2: b has n */
  int32_t  tiles_m, tiles_n, batch0, batch1;
  int32_t  group;                         /* tiles of M that are walked before N advances */
  cuda_divisor by_batch, by_band, by_group, by_rest, by_batch0;         /* cuda_gemm_walk */
  int32_t  last_m, last_n;                /* no tile begins further on */
  int32_t  stage_bytes;                   /* that the copy engine brings for a step */
  /* rows of a in 2^class_bits classes (matmul_wgmma.cuh), class i beginning i class_shift % 64 k in a line */
  int32_t  class_bits, class_shift;
  int32_t  k_spare;                       /* what the last step has beyond k */
  int32_t  split_steps;                   /* of the k_steps, for each CTA of a cluster */
  int32_t  low;                           /* 3xTF32: b's low parts lie so many elements of k behind the high ones */
  cuda_gemm_again again;
  cuda_steps steps;
} cuda_gemm;

typedef struct cuda_gemm_kernel {
  int32_t bm, bn, splits;                 /* the CTAs of a cluster share k; then a cluster has one tile */
  int32_t threads, shared;
  const void *function;
} cuda_gemm_kernel;

/* Divisors for the walk over tiles: of a batch, of a band of `group` rows of tiles, of a column in it and in the last one. */
static inline void cuda_gemm_walk(cuda_gemm *g)
{
  int32_t rest = g->tiles_m % g->group;
  g->by_batch = cuda_divide_by(qn_max_i64((int64_t)g->tiles_m * g->tiles_n, 1));
  g->by_band = cuda_divide_by(qn_max_i64((int64_t)g->group * g->tiles_n, 1));
  g->by_group = cuda_divide_by(g->group), g->by_rest = cuda_divide_by(rest ? rest : g->group);
  g->by_batch0 = cuda_divide_by(g->batch0);
}

#ifdef __cplusplus
extern "C" {
#endif
/* matmul_wgmma.c: launches with programmatic serialisation, in clusters (1: none), as a split tile wants one. g: the kernel's parameter. */
qn_status cuda_gemm_launch(const void *g, const cuda_gemm_kernel *kernel, int grid, int cluster, void *stream, const char *name);

extern const cuda_gemm_kernel cuda_gemm_bf16[], cuda_gemm_f16[], cuda_gemm_tf32[], cuda_gemm_3xtf32[],      /* closed by bm 0 */
  *const cuda_gemm_f8[4], *const cuda_gemm_f8_raw[4], *const cuda_gemm_i8[4];     /* a e4m3 (s8), b likewise; b e5m2 (u8); a; both */
#ifdef __cplusplus
}
#endif
#endif
