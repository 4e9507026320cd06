/* matmul_direct.c -- y = alpha a b + beta c + bias, one sum for each element of y.
 *
 *   a [..., M, K]   b [..., K, N]   c, y [..., M, N]   bias [N]   leading dims broadcast */
#include "direct.h"

/* A tensor's offset at an index of y, broadcast: dims align at the last, a dim of 1 has one element. Skips the last `last` dims. */
static int64_t broadcast_offset(const cpu_tensor *t, const int64_t *index, int32_t rank, int32_t last)
{
  int64_t offset = 0;
  for (int32_t d = 0; d < t->rank - last; d++)
    if (t->dim[d] > 1) offset += index[d + rank - t->rank] * t->stride[d];
  return offset;
}

/* A scalar in the computing type; `absent` if there is none. */
static double scalar(const cpu_tensor *t, uint32_t operand_dtype, double absent)
{
  if (!t->p) return absent;
  const double x = cpu_get(t, 0);
  return operand_dtype == QN_F64 ? x : (float)x;
}

/* Products of a row of a with TOGETHER columns of b: the row is read once for all of them. */
enum { TOGETHER = 16 };
static void products(cpu_sum *sum, int64_t columns, int64_t depth, const cpu_tensor *a, int64_t row, const cpu_tensor *b, int64_t column)
{
  const int64_t a_step = a->stride[a->rank - 1], b_step = b->stride[b->rank - 2], next = b->stride[b->rank - 1];
  for (int64_t n = 0; n < columns && qn_is_integer(a->dtype); n++)
    cpu_sum_products(&sum[n], depth, a, row, a_step, b, column + n * next, b_step);
  for (int64_t k = 0; k < depth && !qn_is_integer(a->dtype); k += CPU_RUN) {
    double x[CPU_RUN], y[CPU_RUN];
    const int64_t few = qn_min_i64(depth - k, CPU_RUN);
    cpu_load_run(x, few, cpu_at(a, row + k * a_step), a_step * a->bytes, a->dtype);
    for (int64_t n = 0; n < columns; n++) {
      cpu_load_run(y, few, cpu_at(b, column + n * next + k * b_step), b_step * b->bytes, b->dtype);
      cpu_sum_run(&sum[n], few, x, y);
    }
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_tensor a = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_A, 0), b = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_B, 0);
  const cpu_tensor c = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_C, 0), bias = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_BIAS, 0);
  const cpu_tensor alpha_t = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_ALPHA, 0);
  const cpu_tensor beta_t = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_BETA, 0);
  const cpu_tensor y = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_Y, 0);
  const double alpha = scalar(&alpha_t, a.dtype, 1), beta = c.p ? scalar(&beta_t, a.dtype, 1) : 0;
  const int whole = qn_is_integer(y.dtype);               /* then alpha is 1 and beta 0 or 1 */
  const int64_t depth = alpha == 0 ? 0 : a.dim[a.rank - 1], width = y.dim[y.rank - 1], blocks = (width + TOGETHER - 1) / TOGETHER;
  const int64_t rows = width ? y.elements / width : 0;

#pragma omp parallel for num_threads(cpu_team(launch, y.elements, depth))
  for (int64_t i = 0; i < rows * blocks; i++) {
    int64_t index[QN_MAX_RANK];
    const int64_t first = i % blocks * TOGETHER, columns = qn_min_i64(width - first, TOGETHER);
    cpu_place(i / blocks * width + first, y.rank, y.dim, index);
    cpu_sum ab[TOGETHER] = { { 0 } };
    products(ab, columns, depth, &a, broadcast_offset(&a, index, y.rank, 2) + index[y.rank - 2] * a.stride[a.rank - 2],
             &b, broadcast_offset(&b, index, y.rank, 2) + first * b.stride[b.rank - 1]);
    for (int64_t k = 0; k < columns; k++, index[y.rank - 1]++) {
      cpu_sum sum = { 0 };
      sum.integer = ab[k].integer;
      if (depth > 0) {
        cpu_sum_add_product(&sum, alpha, ab[k].high);
        cpu_sum_add_product(&sum, alpha, cpu_sum_low(&ab[k]));
      }
      if (beta != 0) {
        const int64_t at = broadcast_offset(&c, index, y.rank, 0);
        if (whole) sum.integer += (uint64_t)qn_load_i64(cpu_at(&c, at), c.dtype);
        else cpu_sum_add_product(&sum, beta, cpu_get(&c, at));
      }
      if (bias.p) {
        const int64_t at = (first + k) * bias.stride[0];
        if (whole) sum.integer += (uint64_t)qn_load_i64(cpu_at(&bias, at), bias.dtype);
        else cpu_sum_add(&sum, cpu_get(&bias, at));
      }
      cpu_sum_store(&sum, &y, cpu_offset(y.rank, index, y.stride));
    }
  }
  return QN_OK;
}

static const qn_engine row[] = { CPU_DIRECT_ROW(QN_OP_MATMUL, run) };
const qn_engine_list cpu_matmul_direct = { row, 1 };
