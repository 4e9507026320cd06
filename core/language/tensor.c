/* tensor.c -- dtypes' names and sizes, and constructors of tensor views. These check nothing: the call that uses a
 * tensor does. */
#include <string.h>
#include "problem.h"

size_t qn_dtype_bytes(uint32_t dtype)
{
  switch (dtype) {
#define DTYPE_BYTES(name, value, text, bytes) case QN_##name: return bytes;
  QN_DTYPE_MAP(DTYPE_BYTES)
#undef DTYPE_BYTES
  default: return 0;
  }
}

const char *qn_dtype_name(uint32_t dtype)
{
  switch (dtype) {
#define DTYPE_NAME(name, value, text, bytes) case QN_##name: return text;
  QN_DTYPE_MAP(DTYPE_NAME)
#undef DTYPE_NAME
  default: return "?";
  }
}

/* Products saturate: a tensor too large for any memory must not wrap to a small one before it is refused. */
static int64_t times(int64_t a, int64_t b)
{
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

void qn__pack(int rank, const int64_t *dim, int64_t *stride, const int *order)
{
  int64_t step = 1;
  for (int i = rank - 1; i >= 0; i--) {
    int d = order ? order[i] : i;
    stride[d] = step;
    step = times(step, dim[d] > 1 ? dim[d] : 1);
  }
}

qn_tensor qn_tensor_make(void *data, uint32_t dtype, int rank, const int64_t *dim)
{
  qn_tensor t = { .data = data, .dtype = dtype, .rank = dim ? rank : -(rank != 0) };    /* without dims: rank -1, which calls refuse */
  if (t.rank < 0 || rank > QN_MAX_RANK) return t;
  if (rank) memcpy(t.dim, dim, (size_t)rank * sizeof *dim);
  qn__pack(rank, t.dim, t.stride, NULL);
  return t;
}

qn_tensor qn_tensor_1d(void *data, uint32_t dtype, int64_t n)
{
  return qn_tensor_make(data, dtype, 1, (const int64_t[]){ n });
}

qn_tensor qn_tensor_2d(void *data, uint32_t dtype, int64_t rows, int64_t cols)
{
  return qn_tensor_make(data, dtype, 2, (const int64_t[]){ rows, cols });
}

qn_tensor qn_tensor_nchw(void *data, uint32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w)
{
  return qn_tensor_make(data, dtype, 4, (const int64_t[]){ n, c, h, w });
}

qn_tensor qn_tensor_nhwc(void *data, uint32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w)
{
  qn_tensor t = qn_tensor_nchw(data, dtype, n, c, h, w);
  qn__pack(4, t.dim, t.stride, (const int[]){ 0, 2, 3, 1 });
  return t;
}

qn_tensor qn_scalar(const void *host_value, uint32_t dtype)
{
  return (qn_tensor){ .data = (void *)host_value, .dtype = dtype, .flags = QN_HOST };
}

qn_tensor qn_transposed(const qn_tensor *t)
{
  qn_tensor v = t ? *t : (qn_tensor){0};
  if (v.rank < 2 || v.rank > QN_MAX_RANK) return v;
  const int i = v.rank - 2, j = v.rank - 1;
  v.dim[i] = t->dim[j];
  v.dim[j] = t->dim[i];
  v.stride[i] = t->stride[j];
  v.stride[j] = t->stride[i];
  return v;
}

int64_t qn_tensor_elements(const qn_tensor *t)
{
  if (!t || t->rank < 0 || t->rank > QN_MAX_RANK) return 0;
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) {
    if (t->dim[i] <= 0) return 0;
    n = times(n, t->dim[i]);
  }
  return n;
}
