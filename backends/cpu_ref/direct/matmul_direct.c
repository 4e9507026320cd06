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

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_tensor a = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_A, 0), b = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_B, 0);
  const cpu_tensor c = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_C, 0), bias = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_BIAS, 0);
  const cpu_tensor alpha_t = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_ALPHA, 0);
  const cpu_tensor beta_t = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_BETA, 0);
  const cpu_tensor y = cpu_tensor_of(p, launch, QN_ROLE_MATMUL_Y, 0);
  const double alpha = scalar(&alpha_t, a.dtype, 1), beta = c.p ? scalar(&beta_t, a.dtype, 1) : 0;
  const int whole = qn_is_integer(y.dtype);               /* then alpha is 1 and beta 0 or 1 */
  const int64_t depth = alpha == 0 ? 0 : a.dim[a.rank - 1];

#pragma omp parallel for num_threads(cpu_team(launch, y.elements, depth))
  for (int64_t i = 0; i < y.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(i, y.rank, y.dim, index);
    const int64_t m = index[y.rank - 2], n = index[y.rank - 1];
    const int64_t row = broadcast_offset(&a, index, y.rank, 2) + m * a.stride[a.rank - 2];
    const int64_t column = broadcast_offset(&b, index, y.rank, 2) + n * b.stride[b.rank - 1];

    cpu_sum ab = { 0 };
    cpu_sum_products(&ab, depth, &a, row, a.stride[a.rank - 1], &b, column, b.stride[b.rank - 2]);

    cpu_sum sum = { 0 };
    sum.integer = ab.integer;
    if (depth > 0) {
      cpu_sum_add_product(&sum, alpha, ab.high);
      cpu_sum_add_product(&sum, alpha, cpu_sum_low(&ab));
    }
    if (beta != 0) {
      const int64_t at = broadcast_offset(&c, index, y.rank, 0);
      if (whole) sum.integer += (uint64_t)qn_load_i64(cpu_at(&c, at), c.dtype);
      else cpu_sum_add_product(&sum, beta, cpu_get(&c, at));
    }
    if (bias.p) {
      const int64_t at = n * bias.stride[0];
      if (whole) sum.integer += (uint64_t)qn_load_i64(cpu_at(&bias, at), bias.dtype);
      else cpu_sum_add(&sum, cpu_get(&bias, at));
    }
    cpu_sum_store(&sum, &y, cpu_offset(y.rank, index, y.stride));
  }
  return QN_OK;
}

static const qn_engine row[] = { CPU_DIRECT_ROW(QN_OP_MATMUL, run) };
const qn_engine_list cpu_matmul_direct = { row, 1 };
