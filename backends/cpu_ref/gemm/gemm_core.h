/* gemm_core.h -- the blocked matrix product that cpu_ref's contractions share.
 *
 *   C[i,j] = sum_k A[i,k] B[k,j],   i < m, j < n, k < k, in each of `batch` independent products
 *
 * An engine supplies three functions: how to lay out a block of A and one of B in rows, and what to do with a finished tile of C;
 * matmul, the three convolutions and their fused forms differ only in these.
 *
 *   rows       f16, bf16 and 8-bit floats are widened to f32 when laid out, i8 and u8 to i16
 *   order      an element is summed by ascending k in runs of kc, which are then added one after another (with split > 1,
 *              in `split` such sums, added in order). Runs and split depend on the problem only, and tile sizes do not
 *              affect the order: the number of threads never changes a bit
 *   demands    under `deterministic=batch` split is 1, so the order depends on k alone: a row has the bits that it has in any batch.
 *              Under `portable` the copy without instruction-set extensions runs, whose products and sums are not fused, as no
 *              two instruction sets fuse alike (whole numbers are exact in all)
 *   copies     gemm_kernel.c is compiled once per instruction set; the device description selects the one to run */
#ifndef CPU_GEMM_CORE_H
#define CPU_GEMM_CORE_H
#include <quern/backend.h>
#include <stdbool.h>

/* ---- one instruction set's kernels: gemm_kernel.c ----------------------------------------- */

enum { CPU_GEMM_F32, CPU_GEMM_F64, CPU_GEMM_I16, CPU_GEMM_TYPES };   /* of the rows; sums are f32, f64, i32 */

/* acc[i][j] (+)= sum_k a[i][k a_step] b[k b_step + j] for i < rows and j < nr; steps and ld in elements. The i16 kernel
 * takes pairs: an element of a row is two consecutive k. Reads and writes all nr columns. */
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
const cpu_gemm_isa *cpu_gemm_isa_of(const qn_device *device);       /* the widest that the device runs */
/* The copies as variants of an engine; picks the requested one or the widest that the demands allow, and refuses one that the device
 * lacks. Adds the traits that the order of summation has under the demands. */
extern const char *const cpu_gemm_variants[];
qn_status cpu_gemm_choose(const qn_request *request, qn_prepared *p, const cpu_gemm_isa **isa);
static inline bool cpu_gemm_one_order(const qn_request *request) { return request->demands->determinism >= QN_DET_BATCH; }

/* ---- the product: gemm_core.c ------------------------------------------------------------- */

#define CPU_GEMM_MC_MAX 528               /* limits on a tile's rows and on a run of f32 */
#define CPU_GEMM_KC_MAX 336

typedef struct cpu_gemm cpu_gemm;
struct cpu_gemm {
  const cpu_gemm_isa *isa;
  uint32_t type;
  int64_t  batch, m, n, k;
  int64_t  mc, nc, kc;                    /* a tile's rows and columns, a run's length (even) */
  int64_t  split;
  int      threads;                       /* that the workspace is sized for */
  bool     one_order;                     /* k is split by its length alone, whatever else there is: see demands */
  bool     b_ready;                       /* B is already laid out: no buffer is reserved for it */
  bool     keep_rows, keep_columns;       /* cut a tile's rows, or columns, last: laying out the other block is expensive.
                                           * With keep_rows a tile may be finished in strips of rows */

  /* Rows i0 to i0+mc-1 of A, k0 to k0+kc-1: sets row[i] and their step along k. `buffer` has room for them at a distance of
   * cpu_gemm_ld(kc) elements. Rows of i16 have step 1 and, if kc is odd, a zero after them. */
  void (*a)(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t k0, int64_t kc,
            void *buffer, const void **row, int64_t *step);
  /* Columns j0 to j0+nc-1 of B, k0 to k0+kc-1: returns the first row and the distance between rows. A row must be readable up to
   * a multiple of nr columns; `buffer` has room for rows at a distance of cpu_gemm_ld(nc) elements. */
  const void *(*b)(const cpu_gemm *g, int64_t batch, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                   void *buffer, int64_t *step);
  /* Consumes the tile, or a strip of it; may overwrite acc. */
  void (*finish)(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld);
  const void *user;
};

/* Chooses kc and split from isa, type, batch, m, n, k, and mc and nc also from the threads; returns the workspace's bytes. The
 * engine must compare these with the workspace limit. */
uint64_t cpu_gemm_plan(cpu_gemm *g, int threads);
/* An estimate of the inner loops' time in ns, on one thread: tiles whose rows or columns are few are filled up. */
double cpu_gemm_ns(const cpu_gemm *g);
#define CPU_VECTOR_NS 0.3                 /* a vector of products, in all estimates of contractions: only their ratios count */
/* threads: of the launch; at most as many as planned for are used. */
void cpu_gemm_run(const cpu_gemm *g, int threads, void *workspace);

/* A distance for rows of n elements that avoids shared cache sets and split cache lines. */
int64_t cpu_gemm_ld(int64_t n, size_t element);
size_t  cpu_gemm_row_bytes(uint32_t type);        /* bytes of an element of a row */
/* The accumulation type of a contraction of this dtype. */
uint32_t cpu_gemm_type(uint32_t dtype);

/* Lays out `rows` rows of n elements: dst[r ld + i] = src[r row_stride + i stride], reading memory in order. */
void cpu_gemm_lay(const cpu_gemm_isa *isa, uint32_t dtype, const void *src, int64_t row_stride, int64_t stride,
                  int64_t rows, int64_t n, void *dst, int64_t ld);

#endif
