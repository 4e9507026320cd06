/* gemm_tile.h -- the tile of gemm_kernel.c for one element type: included by that file only, once for each SCALAR, VECTOR,
 * STEP. Has no include guard, and undefines its parameters. */

INLINE void TILE(const int rows, int64_t n_k, const void *const *a, int64_t a_step, const SCALAR *b, int64_t b_step,
                 SCALAR *acc, int64_t ld, int accumulate)
{
  enum { LANES = VECTOR_BYTES / sizeof(SCALAR) };
  typedef VECTOR unaligned __attribute__((aligned(1), may_alias));
  VECTOR sum[MR][NV];
  const SCALAR *row[MR];
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++) {
    row[i] = a[i];
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) sum[i][j] = (VECTOR){0};
  }
  for (int64_t k = 0, at = 0; k < n_k; k++, at += a_step, b += b_step) {
    VECTOR column[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) column[j] = *(const unaligned *)(b + j * LANES);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
      SCALAR x = row[i][at];
#pragma GCC unroll 4
      for (int j = 0; j < NV; j++) sum[i][j] = STEP(sum[i][j], x, column[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) {
      unaligned *to = (unaligned *)(acc + i * ld + j * LANES);
      if (accumulate) sum[i][j] += *to;
      *to = sum[i][j];
    }
}

static void MICRO(int rows, int64_t k, const void *const *a, int64_t a_step, const void *b, int64_t b_step,
                  void *acc, int64_t ld, int accumulate)
{
  switch (rows) {
#if MR > 6
  case 12: TILE(12, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 11: TILE(11, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 10: TILE(10, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 9:  TILE(9, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 8:  TILE(8, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 7:  TILE(7, k, a, a_step, b, b_step, acc, ld, accumulate); return;
#endif
  case 6:  TILE(6, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 5:  TILE(5, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 4:  TILE(4, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 3:  TILE(3, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  case 2:  TILE(2, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  default: TILE(1, k, a, a_step, b, b_step, acc, ld, accumulate); return;
  }
}

#undef SCALAR
#undef VECTOR
#undef STEP
#undef TILE
#undef MICRO
