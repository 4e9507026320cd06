/* patches_direct.cu -- windows side by side, and their gradient; any strides and dtypes, one copy or one sum a thread, in double.
 *
 *   x [N, C, X]   y [N, C taps, P]   1 to 3 spatial dims, taps numbered row-major
 *   unfold    y[n, c taps + r, p] = tap r of window p of x's channel c; 0 outside of x
 *   backward  dx[x] = the sum of dy over the windows and taps that are at x, gathered, without atomics */
#include "kit/direct.cuh"
#include "engines.h"

struct patches {
  windows w;
  grid    x, y;                           /* or dx, dy */
  int64_t taps, elements;
};

__device__ __forceinline__ void place5(int64_t i, const grid &g, int64_t at[5])
{
  for (int d = 4; d >= 0; d--) {
    const int64_t q = i / g.dim[d];
    at[d] = i - q * g.dim[d];
    i = q;
  }
}

__global__ static void __launch_bounds__(128) unfold_direct(const __grid_constant__ patches v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5], r[3], from[3];
    place5(i, v.y, at);
    v.w.tap(at[1] % v.taps, r);
    const bool inside = v.w.input(at + 2, r, from);
    v.y.store(v.y.at(at[0], at[1], at + 2), inside ? v.x.load<double>(v.x.at(at[0], at[1] / v.taps, from)) : 0.0);
  }
}

__global__ static void __launch_bounds__(128) unfold_backward_direct(const __grid_constant__ patches v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t at[5];
    place5(i, v.x, at);
    double sum = 0;
    for (int64_t tap = v.taps - 1; tap >= 0; tap--) {     /* the last tap belongs to the first window */
      int64_t r[3], o[3];
      v.w.tap(tap, r);
      if (v.w.output(at + 2, r, o)) sum += v.y.load<double>(v.y.at(at[0], at[1] * v.taps + tap, o));
    }
    v.x.store(v.x.at(at[0], at[1], at + 2), sum);
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_patches *a = (const qn_patches *)k->attr;
  const bool back = k->op == QN_OP_UNFOLD_BACKWARD;
  const tensor x = direct_tensor(k, launch, back ? QN_ROLE_UNFOLD_BACKWARD_DX : QN_ROLE_UNFOLD_X, 0);
  const tensor y = direct_tensor(k, launch, back ? QN_ROLE_UNFOLD_BACKWARD_DY : QN_ROLE_UNFOLD_Y, 0);
  patches v = {};
  v.x = direct_grid(x);
  v.y = direct_grid(y);
  v.taps = 1;
  v.elements = direct_elements(back ? x : y);
  for (int d = 0; d < 3; d++) {
    const int from = d - (5 - x.rank);
    const bool here = from >= 0;
    v.w.size[d] = here ? a->window[from] : 1;
    v.w.step[d] = here ? a->stride[from] : 1;
    v.w.dilation[d] = here ? a->dilation[from] : 1;
    v.w.before[d] = here ? a->pad_before[from] : 0;
    v.w.after[d] = here ? a->pad_after[from] : 0;
    v.w.inputs[d] = v.x.dim[2 + d];
    v.w.outputs[d] = v.y.dim[2 + d];
    v.taps *= v.w.size[d];
  }
  const unsigned blocks = direct_blocks(v.elements, 128);
  if (back) unfold_backward_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  else unfold_direct<<<blocks, 128, 0, (cudaStream_t)launch->stream>>>(v);
  return direct_launched("patches_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_UNFOLD, run),
  DIRECT_ROW(QN_OP_UNFOLD_BACKWARD, run),
};
CUDA_ENGINES(patches_direct) = { row, sizeof row / sizeof *row };
