/* chain_fold.cu -- computes the rows of a folded normalization, (v + less) factor + shift (chain.h). */
#include "chain.h"
#include "kit/element.cuh"

struct fold {
  const void *p[CUDA_FOLD_TENSORS];
  uint32_t dtype[CUDA_FOLD_TENSORS];
  int64_t  stride[CUDA_FOLD_TENSORS];
  int32_t  channels;
  float    eps, *less, *factor, *shift;

  __device__ float get(int t, int c, float absent) const { return p[t] ? element_load<float>(p[t], c * stride[t], dtype[t]) : absent; }
};

__global__ static void __launch_bounds__(128) chain_fold(const __grid_constant__ fold f)
{
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c >= f.channels) return;
  f.less[c] = f.get(CUDA_FOLD_BIAS, c, 0) - f.get(CUDA_FOLD_MEAN, c, 0);
  f.factor[c] = f.get(CUDA_FOLD_SCALE, c, 1) / sqrtf(f.get(CUDA_FOLD_VAR, c, 1) + f.eps);
  f.shift[c] = f.get(CUDA_FOLD_SHIFT, c, 0);
}

qn_status cuda_chain_fold(const cuda_fold *f, void *const *ptr, float *rows, void *stream)
{
  fold k = {};
  for (int t = 0; t < CUDA_FOLD_TENSORS; t++) {
    k.p[t] = f->value[t] < 0 ? nullptr : ptr[f->value[t]];
    k.dtype[t] = f->dtype[t];
    k.stride[t] = f->stride[t];
  }
  k.channels = f->channels, k.eps = f->eps;
  k.less = rows, k.factor = rows + cuda_fold_pitch(f), k.shift = k.factor + cuda_fold_pitch(f);
  chain_fold<<<(unsigned)qn_ceil_div(f->channels, 128), 128, 0, (cudaStream_t)stream>>>(k);
  return cuda_check(cudaGetLastError(), "chain_fold");
}
