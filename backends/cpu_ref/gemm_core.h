/* gemm_core.h -- the blocked product that cpu_ref's contractions share.
 *
 *   C[i,j] = sum_k A[i,k] B[k,j],   i < m, j < n, k < k, in each of `batch` independent products
 *
 * An engine says how a block of A and of B is laid out in rows, and what becomes of a finished tile of C; so matmul,
 * convolution in its three directions and their fused forms differ in those three functions alone.
 *
 *   rows       f16, bf16 and 8-bit floats are widened to f32 as they are laid out, i8 and u8 to i16
 *   order      an element is summed by ascending k, in runs of kc that are then added one after the other (with split > 1,
 *              in `split` such sums, added in order). Runs and split depend on the problem alone, and how large tiles are
 *              orders no sum: the number of threads never changes a bit
 *   copies     gemm_kernel.c is compiled once for each instruction set; the device description says which one runs */
#ifndef CPU_GEMM_CORE_H
#define CPU_GEMM_CORE_H
#include <quern/backend.h>
#include <stdbool.h>

/* ---- one instruction set's kernels: gemm_kernel.c ----------------------------------------- */

enum { CPU_GEMM_F32, CPU_GEMM_F64, CPU_GEMM_I16, CPU_GEMM_TYPES };   /* of the rows; sums are f32, f64, i32 */

/* acc[i][j] (+)= sum_k a[i][k a_step] b[k b_step + j] for i < rows and j < nr; steps and ld in elements. The i16 kernel
 * sees pairs: an element of a row is two neighbours in k. Reads and writes nr columns whole. */
typedef void cpu_gemm_micro(int rows, int64_t k, const void *const *a, int64_t a_step, const void *b, int64_t b_step,
                            void *acc, int64_t ld, int accumulate);
/* dst[i] = src[i stride] as the row type of the dtype: f64 for f64, i16 for i8 and u8, else f32 */
typedef void cpu_widen(const void *src, int64_t stride, int64_t n, void *dst);
/* dst[i stride] = src[i], rounded to nearest even */
typedef void cpu_narrow(const void *src, int64_t n, void *dst, int64_t stride);

typedef struct cpu_gemm_isa {
  const char *name;
  struct { int mr, nr; cpu_gemm_micro *micro; } type[CPU_GEMM_TYPES];
  cpu_widen  *widen[QN_DTYPE_COUNT];
  cpu_narrow *narrow[QN_DTYPE_COUNT];                               /* from f32 (to f64: from f64; to i32: from i32) */
  /* dst[c dst_ld + r] = src[r src_ld + c] */
  void (*turn)(const float *src, int64_t src_ld, int64_t rows, int64_t columns, float *dst, int64_t dst_ld);
} cpu_gemm_isa;
extern const cpu_gemm_isa cpu_gemm_baseline, cpu_gemm_avx2, cpu_gemm_avx512;
const cpu_gemm_isa *cpu_gemm_isa_of(const qn_device *device);       /* the widest that it runs */
/* The copies as variants of an engine, and the one that is asked for, or the widest; it refuses what the device lacks. */
extern const char *const cpu_gemm_variants[];
qn_status cpu_gemm_choose(const qn_request *request, qn_prepared *p, const cpu_gemm_isa **isa);

/* ---- the product: gemm_core.c ------------------------------------------------------------- */

#define CPU_GEMM_MC_MAX 528               /* bounds of a tile's rows and of a run of f32 */
#define CPU_GEMM_KC_MAX 336

typedef struct cpu_gemm cpu_gemm;
struct cpu_gemm {
  const cpu_gemm_isa *isa;
  uint32_t type;
  int64_t  batch, m, n, k;
  int64_t  mc, nc, kc;                    /* a tile's rows and columns, a run's length (even) */
  int64_t  split;
  int      threads;                       /* that the workspace is cut for */
  bool     b_ready;                       /* B comes laid out: no buffer is set aside for it */
  bool     keep_rows, keep_columns;       /* a tile's rows, or columns, are cut last: laying out the other block is dear.
                                           * With keep_rows a tile may be finished by strips of its rows */

  /* Rows i0 to i0+mc-1 of A, k0 to k0+kc-1: row[i] and their step along k. `buffer` has room for them at a distance of
   * cpu_gemm_ld(kc) elements. Rows of i16 have step 1 and, where kc is odd, a zero after them. */
  void (*a)(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t k0, int64_t kc,
            void *buffer, const void **row, int64_t *step);
  /* Columns j0 to j0+nc-1 of B, k0 to k0+kc-1: its first row and the distance between rows. A row must be readable to
   * a multiple of nr columns; `buffer` has room for rows at a distance of cpu_gemm_ld(nc) elements. */
  const void *(*b)(const cpu_gemm *g, int64_t batch, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                   void *buffer, int64_t *step);
  /* Takes the tile, or a strip of it; acc may be written over. */
  void (*finish)(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld);
  const void *user;
};

/* Chooses kc and split from isa, type, batch, m, n, k, and mc and nc from the threads as well; gives the workspace's bytes. Less
 * workspace than `limit` is not promised: the engine compares. */
uint64_t cpu_gemm_plan(cpu_gemm *g, int threads);
/* threads: of the launch; more than planned for are not used. */
void cpu_gemm_run(const cpu_gemm *g, int threads, void *workspace);

/* The distance between rows of n elements that neither share cache sets nor split lines. */
int64_t cpu_gemm_ld(int64_t n, size_t element);
size_t  cpu_gemm_row_bytes(uint32_t type);        /* of an element of a row */
/* The type in which a contraction of these dtypes is summed. */
uint32_t cpu_gemm_type(uint32_t dtype);

/* Lays `rows` rows of n elements out: dst[r ld + i] = src[r row_stride + i stride], walking memory in its order. */
void cpu_gemm_lay(const cpu_gemm_isa *isa, uint32_t dtype, const void *src, int64_t row_stride, int64_t stride,
                  int64_t rows, int64_t n, void *dst, int64_t ld);

#endif
