/* calls.c -- the typed calls of ops.h. Made by core/ops.awk from core/ops.def: do not edit. */
#include <quern/quern.h>

qn_status qn_matmul(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *c, const qn_tensor *bias, const qn_tensor *alpha, const qn_tensor *beta, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { c, c != NULL }, { bias, bias != NULL }, { alpha, alpha != NULL }, { beta, beta != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_MATMUL, 7, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_conv_forward(qn_context *ctx, const qn_conv *attr, const qn_tensor *x, const qn_tensor *w, const qn_tensor *bias, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { w, w != NULL }, { bias, bias != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_CONV_FORWARD, 4, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_conv_backward_data(qn_context *ctx, const qn_conv *attr, const qn_tensor *dy, const qn_tensor *w, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { w, w != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_CONV_BACKWARD_DATA, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_conv_backward_filter(qn_context *ctx, const qn_conv *attr, const qn_tensor *x, const qn_tensor *dy, const qn_tensor *dw)
{
  const qn_arg arg[] = { { x, x != NULL }, { dy, dy != NULL }, { dw, dw != NULL } };
  const qn_op op = { QN_OP_CONV_BACKWARD_FILTER, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_softmax(qn_context *ctx, const qn_axis *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SOFTMAX, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_softmax_backward(qn_context *ctx, const qn_axis *attr, const qn_tensor *y, const qn_tensor *dy, const qn_tensor *dx)
{
  const qn_arg arg[] = { { y, y != NULL }, { dy, dy != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_SOFTMAX_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_log_softmax(qn_context *ctx, const qn_axis *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LOG_SOFTMAX, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_log_softmax_backward(qn_context *ctx, const qn_axis *attr, const qn_tensor *y, const qn_tensor *dy, const qn_tensor *dx)
{
  const qn_arg arg[] = { { y, y != NULL }, { dy, dy != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_LOG_SOFTMAX_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_pool_max(qn_context *ctx, const qn_pool *attr, const qn_tensor *x, const qn_tensor *y, const qn_tensor *indices)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL }, { indices, indices != NULL } };
  const qn_op op = { QN_OP_POOL_MAX, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_pool_max_backward(qn_context *ctx, const qn_pool *attr, const qn_tensor *dy, const qn_tensor *indices, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { indices, indices != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_POOL_MAX_BACKWARD, 4, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_pool_average(qn_context *ctx, const qn_pool *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_POOL_AVERAGE, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_pool_average_backward(qn_context *ctx, const qn_pool *attr, const qn_tensor *dy, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_POOL_AVERAGE_BACKWARD, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_copy(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_COPY, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_permute(qn_context *ctx, const qn_permutation *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_PERMUTE, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_slice(qn_context *ctx, const qn_slicing *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SLICE, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_pad(qn_context *ctx, const qn_padding *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_PAD, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_concat(qn_context *ctx, const qn_axis *attr, const qn_tensor *x, int64_t n_x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, n_x }, { y, y != NULL } };
  const qn_op op = { QN_OP_CONCAT, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_sum(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_SUM, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_mean(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_MEAN, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_prod(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_PROD, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_max(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_MAX, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_min(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_MIN, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_norm1(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_NORM1, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_norm2(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_NORM2, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reduce_amax(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_REDUCE_AMAX, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_argmax(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ARGMAX, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_argmin(qn_context *ctx, const qn_axes *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ARGMIN, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_add(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ADD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_sub(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SUB, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_mul(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_MUL, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_div(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_DIV, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_min(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_MIN, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_max(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_MAX, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_pow(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_POW, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_eq(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_EQ, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_ne(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_NE, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_lt(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LT, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_le(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LE, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_gt(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_GT, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_ge(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_GE, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_logical_and(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LOGICAL_AND, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_logical_or(qn_context *ctx, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LOGICAL_OR, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_logical_not(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LOGICAL_NOT, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_select(qn_context *ctx, const qn_tensor *c, const qn_tensor *a, const qn_tensor *b, const qn_tensor *y)
{
  const qn_arg arg[] = { { c, c != NULL }, { a, a != NULL }, { b, b != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SELECT, 4, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_cast(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_CAST, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_neg(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_NEG, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_abs(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ABS, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_sign(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SIGN, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_exp(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_EXP, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_log(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LOG, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_sqrt(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SQRT, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_rsqrt(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_RSQRT, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_reciprocal(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_RECIPROCAL, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_erf(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ERF, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_sin(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SIN, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_cos(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_COS, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_floor(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_FLOOR, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_ceil(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_CEIL, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_round(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ROUND, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_relu(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_RELU, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_leaky_relu(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_LEAKY_RELU, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_elu(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_ELU, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_gelu(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_GELU, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_gelu_tanh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_GELU_TANH, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_silu(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SILU, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_sigmoid(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SIGMOID, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_tanh(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_TANH, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_softplus(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_SOFTPLUS, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_hardswish(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_HARDSWISH, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_mish(qn_context *ctx, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_MISH, 2, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_clip(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *x, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_CLIP, 2, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_relu_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_RELU_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_leaky_relu_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_LEAKY_RELU_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_elu_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_ELU_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_gelu_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_GELU_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_gelu_tanh_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_GELU_TANH_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_silu_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_SILU_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_sigmoid_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_SIGMOID_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_tanh_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_TANH_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_softplus_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_SOFTPLUS_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_hardswish_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_HARDSWISH_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_mish_backward(qn_context *ctx, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_MISH_BACKWARD, 3, NULL, arg };
  return qn_run(ctx, &op);
}

qn_status qn_clip_backward(qn_context *ctx, const qn_pointwise *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *dx)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { dx, dx != NULL } };
  const qn_op op = { QN_OP_CLIP_BACKWARD, 3, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_layer_norm(qn_context *ctx, const qn_norm *attr, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *shift, const qn_tensor *y, const qn_tensor *mean, const qn_tensor *rstd)
{
  const qn_arg arg[] = { { x, x != NULL }, { scale, scale != NULL }, { shift, shift != NULL }, { y, y != NULL }, { mean, mean != NULL }, { rstd, rstd != NULL } };
  const qn_op op = { QN_OP_LAYER_NORM, 6, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_layer_norm_backward(qn_context *ctx, const qn_norm *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *mean, const qn_tensor *rstd, const qn_tensor *dx, const qn_tensor *dscale, const qn_tensor *dshift)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { scale, scale != NULL }, { mean, mean != NULL }, { rstd, rstd != NULL }, { dx, dx != NULL }, { dscale, dscale != NULL }, { dshift, dshift != NULL } };
  const qn_op op = { QN_OP_LAYER_NORM_BACKWARD, 8, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_rms_norm(qn_context *ctx, const qn_norm *attr, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *y, const qn_tensor *rstd)
{
  const qn_arg arg[] = { { x, x != NULL }, { scale, scale != NULL }, { y, y != NULL }, { rstd, rstd != NULL } };
  const qn_op op = { QN_OP_RMS_NORM, 4, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_rms_norm_backward(qn_context *ctx, const qn_norm *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *rstd, const qn_tensor *dx, const qn_tensor *dscale)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { scale, scale != NULL }, { rstd, rstd != NULL }, { dx, dx != NULL }, { dscale, dscale != NULL } };
  const qn_op op = { QN_OP_RMS_NORM_BACKWARD, 6, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_batch_norm(qn_context *ctx, const qn_norm *attr, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *shift, const qn_tensor *running_mean, const qn_tensor *running_var, const qn_tensor *y, const qn_tensor *mean, const qn_tensor *rstd, const qn_tensor *new_mean, const qn_tensor *new_var)
{
  const qn_arg arg[] = { { x, x != NULL }, { scale, scale != NULL }, { shift, shift != NULL }, { running_mean, running_mean != NULL }, { running_var, running_var != NULL }, { y, y != NULL }, { mean, mean != NULL }, { rstd, rstd != NULL }, { new_mean, new_mean != NULL }, { new_var, new_var != NULL } };
  const qn_op op = { QN_OP_BATCH_NORM, 10, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_batch_norm_backward(qn_context *ctx, const qn_norm *attr, const qn_tensor *dy, const qn_tensor *x, const qn_tensor *scale, const qn_tensor *mean, const qn_tensor *rstd, const qn_tensor *dx, const qn_tensor *dscale, const qn_tensor *dshift)
{
  const qn_arg arg[] = { { dy, dy != NULL }, { x, x != NULL }, { scale, scale != NULL }, { mean, mean != NULL }, { rstd, rstd != NULL }, { dx, dx != NULL }, { dscale, dscale != NULL }, { dshift, dshift != NULL } };
  const qn_op op = { QN_OP_BATCH_NORM_BACKWARD, 8, attr, arg };
  return qn_run(ctx, &op);
}

qn_status qn_batch_norm_inference(qn_context *ctx, const qn_norm *attr, const qn_tensor *x, const qn_tensor *mean, const qn_tensor *var, const qn_tensor *scale, const qn_tensor *shift, const qn_tensor *y)
{
  const qn_arg arg[] = { { x, x != NULL }, { mean, mean != NULL }, { var, var != NULL }, { scale, scale != NULL }, { shift, shift != NULL }, { y, y != NULL } };
  const qn_op op = { QN_OP_BATCH_NORM_INFERENCE, 6, attr, arg };
  return qn_run(ctx, &op);
}
