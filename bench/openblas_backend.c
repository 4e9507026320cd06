/* openblas_backend.c -- OpenBLAS called directly: y = a b by one cblas_sgemm or cblas_dgemm per matrix of a batch.
 * quern-bench compares matrix products with it; it takes only what BLAS can do in place. */
#include <cblas.h>
#include <string.h>
#include <quern/backend.h>
#include <quern/kit.h>
#ifdef _OPENMP
#include <omp.h>
#else                                   /* then OpenBLAS's own settings apply */
static int omp_get_max_threads(void) { return 1; }
static void omp_set_num_threads(int n) { (void)n; }
#endif

/* A matrix as BLAS sees it: row-major, or transposed. */
typedef struct matrix { CBLAS_TRANSPOSE transpose; blasint step; } matrix;

/* indices into word: what run needs, set by prepare */
enum { M, N, K, BATCH, A, B, C };       /* A, B, C: (step << 1 | transposed) */

static int as_blas(const qn_value *v, int64_t *word)
{
  int64_t rows = v->dim[v->rank - 2], columns = v->dim[v->rank - 1];
  int64_t down = v->stride[v->rank - 2], along = v->stride[v->rank - 1];
  if (columns == 1)                     /* strides of dims of 1 are ignored */
    along = 1;
  if (rows == 1)
    down = along == 1 ? columns : 1;
  if (along == 1 && down >= columns)
    *word = down << 1;
  else if (down == 1 && along >= rows)
    *word = along << 1 | 1;
  else
    return 0;
  return 1;
}

static matrix unpack(uint64_t word)
{
  return (matrix){ word & 1 ? CblasTrans : CblasNoTrans, (blasint)(word >> 1) };
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const qn_value *v = request->value;
  const qn_value *a = &v[qn_role(op, QN_ROLE_MATMUL_A)], *b = &v[qn_role(op, QN_ROLE_MATMUL_B)];
  const qn_value *y = &v[qn_role(op, QN_ROLE_MATMUL_Y)];
  int64_t word[3];
  for (uint32_t role = QN_ROLE_MATMUL_C; role < QN_ROLE_MATMUL_Y; role++)
    if (qn_role(op, role) >= 0)
      return qn_refuse(p, "only y = a b is asked of OpenBLAS", "", "a and b alone", "%s", "more operands");
  if (a->dtype != b->dtype || y->dtype != a->dtype || (a->dtype != QN_F32 && a->dtype != QN_F64))
    return qn_refuse(p, "one dtype that BLAS has", "a", "f32 or f64 throughout", "%u", a->dtype);
  int64_t batch = 1;
  for (int32_t i = 0; i < y->rank - 2; i++) {
    batch *= y->dim[i];
    if (a->dim[i] != b->dim[i])
      return qn_refuse(p, "no broadcast in the batch", "a", "b's leading dims", "%lld", (long long)a->dim[i]);
  }
  if (batch > 1 && !(qn_is_packed(y) && qn_is_packed(a) && qn_is_packed(b)))
    return qn_refuse(p, "matrices of a batch one after the other", "", "packed operands", "%s", "strides");
  if (!as_blas(a, &word[0]) || !as_blas(b, &word[1]) || !as_blas(y, &word[2]) || word[2] & 1)
    return qn_refuse(p, "rows or columns without gaps", "", "a stride of 1", "%s", "");
  p->word[M] = (uint64_t)y->dim[y->rank - 2];
  p->word[N] = (uint64_t)y->dim[y->rank - 1];
  p->word[K] = (uint64_t)a->dim[a->rank - 1];
  p->word[BATCH] = (uint64_t)batch << 1 | (a->dtype == QN_F64);
  memcpy(&p->word[A], word, sizeof word);
  return QN_OK;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  blasint m = (blasint)p->word[M], n = (blasint)p->word[N], k = (blasint)p->word[K];
  matrix a = unpack(p->word[A]), b = unpack(p->word[B]), c = unpack(p->word[C]);
  int doubles = p->word[BATCH] & 1, threads = omp_get_max_threads();
  omp_set_num_threads(launch->threads);           /* a per-thread setting, which OpenBLAS's OpenMP build follows */
  for (uint64_t i = 0; i < p->word[BATCH] >> 1; i++) {
    size_t am = i * (size_t)m * (size_t)k, bm = i * (size_t)k * (size_t)n, cm = i * (size_t)m * (size_t)n;
    if (doubles)
      cblas_dgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, 1, (const double *)launch->ptr[0] + am, a.step,
                  (const double *)launch->ptr[1] + bm, b.step, 0, (double *)launch->ptr[2] + cm, c.step);
    else
      cblas_sgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, 1, (const float *)launch->ptr[0] + am, a.step,
                  (const float *)launch->ptr[1] + bm, b.step, 0, (float *)launch->ptr[2] + cm, c.step);
  }
  omp_set_num_threads(threads);
  return QN_OK;
}

static const qn_engine rows[] = {
  { .name = "gemm", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .prepare = prepare, .run = run },
};
static const qn_engine_list list = { rows, sizeof rows / sizeof rows[0] };
static const qn_engine_list *const lists[] = { &list, NULL };

static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "openblas", .version = QN_VERSION, .device_kind = "cpu", .engines = lists,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(openblas)(const qn_host *host, const qn_backend **out);
QN_EXPORT qn_status QN_BACKEND_ENTRY(openblas)(const qn_host *host, const qn_backend **out)
{
  if (host->abi_major != QN_ABI_MAJOR)
    return QN_NO_BACKEND;
  *out = &backend;
  return QN_OK;
}
