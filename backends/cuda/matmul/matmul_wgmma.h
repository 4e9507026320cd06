/* matmul_wgmma.h -- shared by the host and kernel sides of matmul_wgmma. */
#ifndef QN_CUDA_MATMUL_WGMMA_H
#define QN_CUDA_MATMUL_WGMMA_H
#include <cuda.h>
#include <quern/kit.h>
#include "kit/divisor.h"
#include "program/plain.h"

/* f32 operands, to recompute a sum in plain f32. Tensor Cores read f32 in parts: Inf, and what rounds to Inf, would give NaN. */
typedef struct cuda_gemm_again {
  const float *a, *b;                     /* a NULL: never */
  int64_t  a_stride[4], b_stride[4];      /* row (of b: column), k, b0, b1 */
  int32_t  k;
} cuda_gemm_again;

typedef struct cuda_gemm {                /* the kernel's parameter */
  CUtensorMap a, b, y, added;             /* y: only with store_map; added: only with plain.added */
  void    *out;
  int64_t  out_stride[4];                 /* row, col, b0, b1 */
  uint32_t out_dtype;
  int32_t  store_map;                     /* y is stored by TMA; the steps are no more than `plain` */
  cuda_plain plain;
  int32_t  scaled;                        /* without store_map: it is all that is done, and adds no matrix; steps has none */
  int32_t  staged;                        /* it has vectors of columns, which come through the ring of stages */
  int32_t  along;                         /* without store_map, y is contiguous along 0 columns, in eights; 1 rows; 2 columns */
  int32_t  m, n, k_steps;
  int32_t  layout;                        /* bit 0: a has m contiguous, not k; bit 1: b has n */
  int32_t  tiles_m, tiles_n, batch0, batch1;
  int32_t  group;                         /* tile rows visited before advancing along N (L2 locality) */
  cuda_divisor by_batch, by_band, by_group, by_rest, by_batch0;         /* cuda_gemm_walk */
  int32_t  last_m, last_n;                /* the last tile begins here at the latest */
  int32_t  stage_bytes;                   /* bytes that TMA delivers per step */
  int32_t  clear;                         /* stages to be cleared at first: all k is one step, of which TMA delivers only what exists */
  /* rows of a are in 2^class_bits classes (matmul_wgmma.cuh); class i begins (i class_shift) % 64 elements into a cache line */
  int32_t  class_bits, class_shift;
  int32_t  k_spare;                       /* elements by which the last step exceeds k */
  int32_t  split_steps;                   /* k steps of each CTA in a cluster */
  int32_t  low;                           /* 3xTF32: offset in k of b's low parts from its high parts */
  float    *kept;                         /* sums over blocks of k: those of the blocks so far, a tile for each CTA */
  cuda_gemm_again again;
  cuda_steps steps;
} cuda_gemm;

typedef struct cuda_gemm_kernel {
  int32_t bm, bn, splits;                 /* splits: CTAs of a cluster share k; a cluster then has one tile */
  int32_t threads, shared;
  const void *function, *in_blocks;       /* in_blocks: for sums of more than cuda_gemm_block steps; NULL: none */
} cuda_gemm_kernel;

/* Stages of k that one running sum of the Tensor Cores, which truncate, may have; INT32_MAX: any number. esize: of an element. */
#ifdef __CUDACC__
__host__ __device__ constexpr
#else
static inline
#endif
int32_t cuda_gemm_block(int esize) { return esize == 4 ? 256 : esize == 2 ? 512 : INT32_MAX; }

/* Divisors for the tile walk: tiles of a batch, of a band of `group` tile rows, of a column of a full and of the last band. */
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
/* matmul_wgmma.c: launches with programmatic serialisation in clusters (1: none), as split tiles need. g: the kernel's parameter. */
qn_status cuda_gemm_launch(const void *g, const cuda_gemm_kernel *kernel, int grid, int cluster, void *stream, const char *name);

extern const cuda_gemm_kernel cuda_gemm_bf16[], cuda_gemm_f16[], cuda_gemm_tf32[], cuda_gemm_3xtf32[],      /* terminated by bm 0 */
  cuda_gemm_tf32_turned[],                /* tf32's, for operands with rows contiguous; function NULL: none */
  /* index: neither, b, a, both operands e5m2 (u8); the others are e4m3 (s8) */
  *const cuda_gemm_f8[4], *const cuda_gemm_f8_raw[4], *const cuda_gemm_i8[4];
#ifdef __cplusplus
}
#endif
#endif
