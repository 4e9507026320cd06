/* matmul_problem.c -- reads a matmul request for the engines that compute it in tiles. */
#include "matmul_problem.h"

/* Merges the leading dims of y into at most two, for all n values in v at once. */
static bool merge_batch(const qn_value *y, const qn_value *const v[], int n, int64_t batch[2], int32_t inner[2], int64_t stride[][2])
{
  int groups = 0;
  batch[0] = batch[1] = 1;
  inner[0] = inner[1] = -1;
  for (int i = 0; i < n; i++) stride[i][0] = stride[i][1] = 0;
  for (int d = y->rank - 3; d >= 0; d--) {
    if (y->dim[d] == 1) continue;
    bool joins = groups > 0;
    for (int i = 0; i < n && joins; i++) joins = cuda_stride(v[i], d) == stride[i][groups - 1] * batch[groups - 1];
    if (!joins) {
      if (groups == 2) return false;
      inner[groups] = d;
      for (int i = 0; i < n; i++) stride[i][groups] = cuda_stride(v[i], d);
      groups++;
    }
    batch[groups - 1] *= y->dim[d];
  }
  return true;
}

qn_status cuda_matmul_read(const qn_request *r, qn_prepared *out, cuda_matmul *p)
{
  const qn_node *op = &r->op[0];
  const qn_value *a = cuda_value(r, QN_ROLE_MATMUL_A), *b = cuda_value(r, QN_ROLE_MATMUL_B), *y = cuda_value(r, QN_ROLE_MATMUL_Y);
  const qn_value *c = cuda_value(r, QN_ROLE_MATMUL_C), *alpha = cuda_value(r, QN_ROLE_MATMUL_ALPHA);
  int rank = y->rank;
  *p = (cuda_matmul){ .m = y->dim[rank - 2], .n = y->dim[rank - 1], .k = a->dim[rank - 1] };
  if (p->k == 0) return qn_refuse(out, "k is nothing", "a", "1 or more", "0");
  const int64_t most = INT32_MAX - (1 << 16);  /* so that the end of the last tile, and of the last split of k, fits into 31 bits */
  if (p->m > most || p->n > most || p->k > most)
    return qn_refuse(out, "dims below 2^31, by the most that a tile has", "y", "less", "%s", "more");
  if (alpha && alpha->scalar == QN_SCALAR_ZERO) return qn_refuse(out, "nothing to multiply", "alpha", "not 0", "0");

  const qn_value *const together[] = { a, b, y, c ? c : y };
  int64_t stride[4][2];
  p->dims = (cuda_out_dims){ { rank - 2, rank - 1, -1, -1 }, CUDA_BY_DIMS };
  if (!merge_batch(y, together, 4, p->batch, p->dims.dim_of + 2, stride))
    return qn_refuse(out, "leading dims must merge into two", "y", "at most two runs of strides", "more");
  p->a = (cuda_matmul_side){ .value = qn_role(op, QN_ROLE_MATMUL_A), .dtype = a->dtype, .align = a->align, .rows = p->m,
    .row_stride = cuda_stride(a, rank - 2), .k_stride = cuda_stride(a, rank - 1), .batch_stride = { stride[0][0], stride[0][1] } };
  p->b = (cuda_matmul_side){ .value = qn_role(op, QN_ROLE_MATMUL_B), .dtype = b->dtype, .align = b->align, .rows = p->n,
    .row_stride = cuda_stride(b, rank - 1), .k_stride = cuda_stride(b, rank - 2), .batch_stride = { stride[1][0], stride[1][1] } };
  return QN_OK;
}

qn_status cuda_matmul_read_floats(const qn_request *r, qn_prepared *out, cuda_matmul *p)
{
  if (r->device->arch_major < 8)
    return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  const qn_status status = cuda_matmul_read(r, out, p);
  if (status) return status;
  const bool f32 = p->a.dtype == QN_F32;
  if ((p->a.dtype != QN_BF16 && p->a.dtype != QN_F16 && !f32) || p->b.dtype != p->a.dtype)
    return qn_refuse(out, "dtypes", "a", "both f16, both bf16 or both f32", "%s, %s", qn_kit_name(p->a.dtype), qn_kit_name(p->b.dtype));
  const cuda_matmul_side *least = p->a.align < p->b.align ? &p->a : &p->b;
  if (least->align < qn_kit_bytes(p->a.dtype))
    return qn_refuse(out, "elements at their own alignment", least == &p->a ? "a" : "b", f32 ? "4 bytes" : "2 bytes", "%u", least->align);
  return QN_OK;
}

qn_status cuda_matmul_chain(const qn_request *r, qn_prepared *out, const cuda_matmul *p, cuda_chain *chain)
{
  const qn_node *op = &r->op[0];
  int c = qn_role(op, QN_ROLE_MATMUL_C), bias = qn_role(op, QN_ROLE_MATMUL_BIAS);
  int alpha = qn_role(op, QN_ROLE_MATMUL_ALPHA), beta = qn_role(op, QN_ROLE_MATMUL_BETA);
  uint32_t dtype = cuda_value(r, QN_ROLE_MATMUL_Y)->dtype;
  bool integer = dtype == QN_I32, ok = true;
  cuda_chain_begin(chain, qn_role(op, QN_ROLE_MATMUL_Y));
  if (dtype != QN_F32 && dtype != QN_F16 && dtype != QN_BF16 && !integer)
    return qn_refuse(out, "a dtype that the epilogue writes", "y", "f16, bf16, f32 or i32", "%s", qn_kit_name(dtype));
  if (alpha >= 0 && r->value[alpha].scalar != QN_SCALAR_ONE) {
    int k = cuda_chain_operand(chain, r, alpha, &p->dims);
    ok = k >= 0 && cuda_chain_step(chain, CUDA_STEP_ALPHA, k, false, 0, 0);
  }
  if (ok && c >= 0 && beta >= 0 && r->value[beta].scalar != QN_SCALAR_ONE) {
    if (r->value[beta].scalar != QN_SCALAR_ZERO) {
      int k = cuda_chain_operand(chain, r, beta, &p->dims);
      ok = k >= 0 && cuda_chain_operand(chain, r, c, &p->dims) == k + 1 && cuda_chain_step(chain, CUDA_STEP_BETA, k, false, 0, 0);
    }
  } else if (ok && c >= 0) {
    int k = cuda_chain_operand(chain, r, c, &p->dims);
    ok = k >= 0 && cuda_chain_step(chain, QN_OP_ADD, k, false, 0, 0);
  }
  if (ok && bias >= 0) {                                    /* [N]: varies along y's last dim only */
    int k = chain->steps.n_operands;
    ok = cuda_chain_operand(chain, r, bias, &p->dims) == k && cuda_chain_step(chain, QN_OP_ADD, k, false, 0, 0);
    int64_t stride = cuda_stride(&r->value[bias], 0), *to = chain->steps.operand[k].stride;
    for (int i = 0; ok && i < 4; i++) to[i] = p->dims.dim_of[i] == cuda_value(r, QN_ROLE_MATMUL_Y)->rank - 1 ? stride : 0;
  }
  if (!ok) return qn_refuse(out, "scalars, c and bias in dtypes that the epilogue reads", "c", "f16, bf16 or f32; i32 with i32", "another");
  if (!integer) cuda_chain_follow(chain, r, &p->dims);
  return QN_OK;
}
