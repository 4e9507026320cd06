/* softmax_direct.cu -- softmax, log_softmax and their gradients along any dim, in double, any strides and dtypes: a row a warp.
 *
 *   softmax       y = exp(x - m) / s        dx = y (dy - sum y dy)        m = max x,  s = sum exp(x - m)
 *   log_softmax   y = x - m - ln s          dx = dy - exp(y) sum dy
 *
 * A row with NaN or +Inf, or of all -Inf, has s = NaN and so is NaN throughout. */
#include "kit/direct.cuh"
#include "engines.h"
#include "kit/sums.cuh"

struct rows {
  tensor  t[3];                           /* in role order */
  int32_t axis, logarithm;
  int64_t count;
};

/* Offset of the i-th row of t. */
__device__ static int64_t row_begin(const tensor &t, int axis, int64_t i)
{
  int64_t offset = 0;
  for (int d = t.rank - 1; d >= 0; d--) {
    if (d == axis) continue;
    offset += i % t.dim[d] * t.stride[d];
    i /= t.dim[d];
  }
  return offset;
}

__global__ static void __launch_bounds__(256) softmax_direct(const __grid_constant__ rows r)
{
  const tensor &x = r.t[0], &y = r.t[1];
  int lane = threadIdx.x % 32;
  int64_t n = x.dim[r.axis], xs = x.stride[r.axis], ys = y.stride[r.axis];
  for (int64_t i = blockIdx.x * (int64_t)8 + threadIdx.x / 32; i < r.count; i += (int64_t)gridDim.x * 8) {
    int64_t from = row_begin(x, r.axis, i), to = row_begin(y, r.axis, i);
    double m = -INFINITY, s = 0;
    for (int64_t j = lane; j < n; j += 32) m = fmax(m, x.load<double>(from + j * xs));
    for (int o = 16; o; o >>= 1) m = fmax(m, __shfl_xor_sync(~0u, m, o));
    for (int64_t j = lane; j < n; j += 32) s += exp(x.load<double>(from + j * xs) - m);
    s = warp_sum(s);
    double ln = log(s);
    for (int64_t j = lane; j < n; j += 32) {
      double v = x.load<double>(from + j * xs) - m;
      y.store(to + j * ys, r.logarithm ? v - ln : exp(v) / s);
    }
  }
}

__global__ static void __launch_bounds__(256) softmax_backward_direct(const __grid_constant__ rows r)
{
  const tensor &y = r.t[0], &dy = r.t[1], &dx = r.t[2];
  int lane = threadIdx.x % 32;
  int64_t n = y.dim[r.axis], ys = y.stride[r.axis], dys = dy.stride[r.axis], dxs = dx.stride[r.axis];
  for (int64_t i = blockIdx.x * (int64_t)8 + threadIdx.x / 32; i < r.count; i += (int64_t)gridDim.x * 8) {
    int64_t from = row_begin(y, r.axis, i), by = row_begin(dy, r.axis, i), to = row_begin(dx, r.axis, i);
    double s = 0;
    for (int64_t j = lane; j < n; j += 32) {
      double v = dy.load<double>(by + j * dys);
      s += r.logarithm ? v : y.load<double>(from + j * ys) * v;
    }
    s = warp_sum(s);
    for (int64_t j = lane; j < n; j += 32) {
      double v = y.load<double>(from + j * ys), w = dy.load<double>(by + j * dys);
      dx.store(to + j * dxs, r.logarithm ? w - exp(v) * s : v * (w - s));
    }
  }
}

static rows rows_of(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  rows r = {};
  for (int i = 0; i < k->n_roles; i++) r.t[i] = direct_tensor(k, launch, (uint32_t)i, 0);
  int64_t axis = ((const qn_axis *)k->attr)->axis;
  r.axis = (int32_t)(axis < 0 ? axis + r.t[0].rank : axis);
  r.count = direct_elements(r.t[0]) / r.t[0].dim[r.axis];
  r.logarithm = k->op == QN_OP_LOG_SOFTMAX || k->op == QN_OP_LOG_SOFTMAX_BACKWARD;
  return r;
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  rows r = rows_of(p, launch);
  softmax_direct<<<direct_blocks(r.count, 8), 256, 0, (cudaStream_t)launch->stream>>>(r);
  return direct_launched("softmax_direct");
}

static qn_status backward(const qn_prepared *p, const qn_launch *launch)
{
  rows r = rows_of(p, launch);
  softmax_backward_direct<<<direct_blocks(r.count, 8), 256, 0, (cudaStream_t)launch->stream>>>(r);
  return direct_launched("softmax_backward_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_SOFTMAX, forward),
  DIRECT_ROW(QN_OP_LOG_SOFTMAX, forward),
  DIRECT_ROW(QN_OP_SOFTMAX_BACKWARD, backward),
  DIRECT_ROW(QN_OP_LOG_SOFTMAX_BACKWARD, backward),
};
CUDA_ENGINES(softmax_direct) = { row, sizeof row / sizeof *row };
