/* matmul_gemm.c -- y = alpha a b + beta c + bias in f32 and f64 by OpenBLAS.
 *
 *   a [..., M, K]   b [..., K, N]   y [..., M, N], each running along one of its last two dims
 *
 * y is cut into tiles, each a call of its own on one thread: inside our parallel region OpenBLAS starts no threads. The order
 * of its sums may depend on a call's dims, so the tiles are chosen by the problem alone, and results do not depend on
 * the number of threads. */
#include <config.h>
#include "cpu_ref.h"
#ifdef QN_HAVE_OPENBLAS
#include <cblas.h>
#include <limits.h>
#include "gemm/gemm_epilogue.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- one tile --------------------------------------------------------------------------------- */

typedef struct matrix {
  cpu_operand at;                         /* over y's batch dims; the last two apart */
  enum CBLAS_TRANSPOSE order;             /* as stored, or transposed */
  int64_t row, column;                    /* strides; one of them is 1 */
  blasint ld;
} matrix;

typedef struct product {
  cpu_epilogue epilogue;                  /* alpha, beta, c, bias and y: for what BLAS does not do */
  matrix  a, b, y;
  bool    c_is_y;
  int64_t dim[QN_MAX_RANK];               /* of y */
  int64_t m, n, k, mc, nc, kc, tiles;
} product;

/* y = beta c + bias, in the tile */
static void begin_tile(const product *p, int64_t *index, int64_t mc, int64_t nc)
{
  cpu_epilogue begin = p->epilogue;
  const int32_t i = begin.rank - 2, j = begin.rank - 1;
  const bool along_m = p->y.row == 1 && p->y.column != 1;
  const int32_t axis = along_m ? i : j, across = along_m ? j : i;
  const int64_t from[2] = {index[i], index[j]}, lines = along_m ? nc : mc, length = along_m ? mc : nc;
  double zero[CPU_ROW_MAX];
  begin.alpha = 1;
  for (int64_t line = 0; line < lines; line++) {
    index[i] = from[0];
    index[j] = from[1];
    index[across] += line;
    for (int64_t done = 0; done < length; done += CPU_ROW_MAX) {
      const int64_t n = qn_min_i64(CPU_ROW_MAX, length - done);
      memset(zero, 0, sizeof zero);
      cpu_epilogue_row(&begin, index, axis, n, zero);
      index[axis] += n;
    }
  }
  index[i] = from[0];
  index[j] = from[1];
}

static void tile(const product *p, int64_t t)
{
  const cpu_epilogue *e = &p->epilogue;
  const int64_t down = qn_ceil_div(p->m, p->mc), across = qn_ceil_div(p->n, p->nc);
  const int64_t i = t % down * p->mc, j = t / down % across * p->nc;
  const blasint m = (blasint)qn_min_i64(p->mc, p->m - i), n = (blasint)qn_min_i64(p->nc, p->n - j);
  int64_t index[QN_MAX_RANK] = {0}, batch = t / down / across;
  for (int32_t d = e->rank - 3; d >= 0; d--) {
    index[d] = batch % p->dim[d];
    batch /= p->dim[d];
  }
  const int64_t bytes = qn_kit_bytes(p->y.at.dtype);
  const char *a = cpu_operand_at(&p->a.at, e->rank - 2, index) + i * p->a.row * bytes;
  const char *b = cpu_operand_at(&p->b.at, e->rank - 2, index) + j * p->b.column * bytes;
  char *y = cpu_operand_at(&p->y.at, e->rank - 2, index) + (i * p->y.row + j * p->y.column) * bytes;
  double beta = e->c.base ? e->beta : 0;
  index[e->rank - 2] = i;
  index[e->rank - 1] = j;
  if (e->bias.base || (beta != 0 && !p->c_is_y)) {
    begin_tile(p, index, m, n);
    beta = 1;
  }
  /* if y runs along m, tell BLAS columns: the same memory, no transpose */
  const enum CBLAS_ORDER order = p->y.column == 1 ? CblasRowMajor : CblasColMajor;
  int64_t k0 = 0;
  do {
    const blasint k = (blasint)qn_min_i64(p->kc, p->k - k0);
    if (e->type == CPU_GEMM_F32)
      cblas_sgemm(order, p->a.order, p->b.order, m, n, k, (float)e->alpha, (const float *)a, p->a.ld, (const float *)b,
                  p->b.ld, (float)beta, (float *)y, p->y.ld);
    else
      cblas_dgemm(order, p->a.order, p->b.order, m, n, k, e->alpha, (const double *)a, p->a.ld, (const double *)b,
                  p->b.ld, beta, (double *)y, p->y.ld);
    beta = 1;
    a += k * p->a.column * bytes;
    b += k * p->b.row * bytes;
    k0 += p->kc;
  } while (k0 < p->k);
}

/* ---- prepare ------------------------------------------------------------------------------------ */

#define TILES 8                           /* so that threads share evenly, if there is enough work */
#define TILE_WORK (4 << 20)               /* products that justify a call of their own */
#define SIDE 64                           /* least side of a tile when cutting for threads */
#define SIDE_MAX 1024                     /* longest side: beyond it a call is no faster */
#define LONGEST 4096                      /* terms of one call's sums if y is small or a vector, which OpenBLAS does not block, */
#define LONGEST_BLOCKED 65536             /*   and else */
#define SMALL 1024                        /* elements of such a y */
#define STEP 16                           /* sides are multiples of OpenBLAS's kernel sizes */

/* Accepts a matrix whose rows, or columns, are contiguous and do not overlap. */
static bool fits(matrix *x, const qn_request *request, int32_t value, int32_t rank, bool rows_in_y)
{
  const qn_value *v = &request->value[value];
  const int32_t i = v->rank - 2, j = v->rank - 1;
  const int64_t row = v->dim[i] == 1 ? 0 : v->stride[i], column = v->dim[j] == 1 ? 0 : v->stride[j];
  const bool along_rows = (v->stride[j] == 1 || v->dim[j] == 1) && (v->dim[i] == 1 || row >= v->dim[j]);
  const bool along_columns = (v->stride[i] == 1 || v->dim[i] == 1) && (v->dim[j] == 1 || column >= v->dim[i]);
  const int64_t ld = along_rows ? qn_max_i64(row, v->dim[j]) : qn_max_i64(column, v->dim[i]);
  if (!along_rows && !along_columns) return false;
  x->at = cpu_operand_of(request, value, rank);
  x->row = along_rows ? ld : 1;
  x->column = along_rows ? 1 : ld;
  x->ld = (blasint)ld;
  x->order = along_rows == rows_in_y ? CblasNoTrans : CblasTrans;
  return ld <= INT_MAX;
}

static void cut(product *p, int64_t batch)
{
  const double work = (double)p->m * (double)p->n * (double)p->k * (double)batch;
  const int64_t wanted = work / TILE_WORK < 1 ? 1 : work / TILE_WORK < TILES ? (int64_t)(work / TILE_WORK) : TILES;
  const int64_t longest = p->m == 1 || p->n == 1 || p->m * p->n <= SMALL ? LONGEST : LONGEST_BLOCKED;
  p->kc = qn_ceil_div(p->k, qn_max_i64(1, qn_ceil_div(p->k, longest)));
  p->mc = qn_min_i64(p->m, SIDE_MAX);
  p->nc = qn_min_i64(p->n, SIDE_MAX);
  while (batch * qn_ceil_div(p->m, p->mc) * qn_ceil_div(p->n, p->nc) < wanted
         && (p->mc >= 2 * SIDE || p->nc >= 2 * SIDE)) {
    int64_t *side = p->mc >= p->nc ? &p->mc : &p->nc;
    *side = qn_round_up(qn_ceil_div(*side, 2), STEP);
  }
  p->tiles = batch * qn_ceil_div(p->m, p->mc) * qn_ceil_div(p->n, p->nc);
}

static qn_status prepare(const qn_request *request, qn_prepared *out)
{
  const qn_node *node = &request->op[0];
  const int32_t a = qn_role(node, QN_ROLE_MATMUL_A), b = qn_role(node, QN_ROLE_MATMUL_B);
  const int32_t c = qn_role(node, QN_ROLE_MATMUL_C), y = qn_role(node, QN_ROLE_MATMUL_Y);
  const qn_value *v = request->value;
  const int32_t rank = v[y].rank;
  product p = {.m = v[y].dim[rank - 2], .n = v[y].dim[rank - 1], .k = v[a].dim[rank - 1]};

#ifndef _OPENMP
  return qn_refuse(out, "without OpenMP OpenBLAS cannot be told to use one thread", "", "a build with OpenMP", "%s", "");
#endif
  if (openblas_get_parallel() == OPENBLAS_THREAD)
    return qn_refuse(out, "this OpenBLAS starts threads of its own", "", "its OpenMP build", "its pthread build");
  if (v[a].dtype != QN_F32 && v[a].dtype != QN_F64)
    return qn_refuse(out, "BLAS has no products of this dtype", "a", "f32 or f64", "dtype %u", v[a].dtype);
  if (p.m > INT_MAX || p.n > INT_MAX || p.k > INT_MAX)
    return qn_refuse(out, "BLAS counts in 32 bits", "y", "dims below 2^31", "%s", "");
  const bool rows_in_y = v[y].stride[rank - 1] == 1 || v[y].dim[rank - 1] == 1;
  static const char layout[] = "contiguous rows or columns";
  if (!fits(&p.y, request, y, rank, rows_in_y)) return qn_refuse(out, "BLAS cannot express the strides", "y", layout, "%s", "");
  const bool rows = p.y.column == 1;
  if (!fits(&p.a, request, a, rank, rows)) return qn_refuse(out, "BLAS cannot express the strides", "a", layout, "%s", "");
  if (!fits(&p.b, request, b, rank, rows)) return qn_refuse(out, "BLAS cannot express the strides", "b", layout, "%s", "");

  int64_t batch = 1;
  for (int32_t d = 0; d < rank - 2; d++) batch *= v[y].dim[d];
  memcpy(p.dim, v[y].dim, sizeof p.dim);
  cut(&p, batch);
  p.c_is_y = c >= 0 && v[y].over == c;
  cpu_epilogue *e = &p.epilogue;
  e->isa = cpu_gemm_isa_of(request->device);
  e->type = cpu_gemm_type(v[y].dtype);
  e->rank = rank;
  e->alpha_at = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_ALPHA), rank);
  e->beta_at = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_BETA), rank);
  e->c = cpu_operand_of(request, c, rank);
  e->bias = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_BIAS), rank);
  e->y = cpu_operand_of(request, y, rank);

  return cpu_keep(out, &p, sizeof p);
}

/* ---- run ------------------------------------------------------------------------------------------ */

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  product p = *(const product *)prepared->state;
  const int threads = (int)qn_min_i64(launch->threads, p.tiles);
  cpu_epilogue_bind(&p.epilogue, launch->ptr);
  p.a.at.base = launch->ptr[p.a.at.value];
  p.b.at.base = launch->ptr[p.b.at.value];
  p.y.at.base = launch->ptr[p.y.at.value];
  if (p.epilogue.alpha == 0) p.k = 0;     /* must not read a or b; OpenBLAS's kernels for small matrices do */
#pragma omp parallel num_threads(threads)
  {
#ifdef _OPENMP
    if (!omp_in_parallel()) omp_set_num_threads(1);        /* a team of one: set for this implicit task only */
#endif
#pragma omp for schedule(dynamic)
    for (int64_t t = 0; t < p.tiles; t++) tile(&p, t);
  }
  return QN_OK;
}

static const qn_engine rows[] = {
  {.name = "gemm", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .prepare = prepare, .run = run, .release = cpu_release},
};
const qn_engine_list cpu_matmul_gemm = {rows, 1};

#else
const qn_engine_list cpu_matmul_gemm = {NULL, 0};          /* without OpenBLAS; matmul_blocked.c is next in the list */
#endif
