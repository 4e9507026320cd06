/* conv_fold.cu -- what conv_fold.h says: read off the request, and made anew in each run, before the convolution. */
#include "conv_fold.h"
#include "cuda_backend.h"
#include "element.cuh"

const uint32_t cuda_conv_fold_also[] = { QN_OP_BATCH_NORM_INFERENCE, 0 };

struct fold {
  const void *p[CUDA_FOLD_TENSORS];
  uint32_t dtype[CUDA_FOLD_TENSORS];
  int64_t  stride[CUDA_FOLD_TENSORS];
  int32_t  channels;
  float    eps, *factors, *addends;

  __device__ float get(int t, int c, float absent) const { return p[t] ? element_load<float>(p[t], c * stride[t], dtype[t]) : absent; }
};

__global__ static void __launch_bounds__(128) conv_fold(const __grid_constant__ fold f)
{
  int c = blockIdx.x * 128 + threadIdx.x;
  if (c >= f.channels) return;
  float factor = f.get(CUDA_FOLD_SCALE, c, 1) / sqrtf(f.get(CUDA_FOLD_VAR, c, 1) + f.eps);
  f.factors[c] = factor;
  f.addends[c] = (f.get(CUDA_FOLD_BIAS, c, 0) - f.get(CUDA_FOLD_MEAN, c, 0)) * factor + f.get(CUDA_FOLD_SHIFT, c, 0);
}

/* One element for each channel; element: the channel's dim. */
static bool by_channel(cuda_conv_fold *f, const qn_request *r, int t, int32_t value, int channel_dim)
{
  f->value[t] = value;
  if (value < 0) return true;
  const qn_value *v = &r->value[value];
  f->dtype[t] = v->dtype;
  f->stride[t] = v->dim[channel_dim] == 1 ? 0 : v->stride[channel_dim];
  return v->producer < 0 && v->dim[channel_dim] == f->channels && qn_elements(v) == f->channels &&
         (v->dtype == QN_F32 || v->dtype == QN_F16 || v->dtype == QN_BF16);
}

/* Op k, if it alone reads this value. */
static const qn_node *only_reader(const qn_request *r, int32_t value, uint32_t k, uint32_t op)
{
  const qn_value *v = &r->value[value];
  return k < r->n_ops && r->op[k].op == op && !(v->flags & QN_VALUE_ESCAPE) && v->last_user == (int32_t)k ? &r->op[k] : nullptr;
}

bool cuda_conv_fold_read(cuda_conv_fold *f, const qn_request *r, int32_t written, int32_t bias)
{
  const qn_norm_roles role = qn_norm_roles_of(QN_OP_BATCH_NORM_INFERENCE);
  const qn_node *norm = only_reader(r, written, 1, QN_OP_BATCH_NORM_INFERENCE);
  if (!norm || qn_role_at(norm, role.x) != written) return false;
  f->channels = (int32_t)r->value[written].dim[1];
  f->eps = (float)((const qn_norm *)norm->attr)->eps;
  const bool all = by_channel(f, r, CUDA_FOLD_BIAS, bias, 0) && by_channel(f, r, CUDA_FOLD_MEAN, qn_role_at(norm, role.mean), 1) &&
                   by_channel(f, r, CUDA_FOLD_VAR, qn_role_at(norm, role.var), 1) && by_channel(f, r, CUDA_FOLD_SCALE, qn_role_at(norm, role.scale), 1) &&
                   by_channel(f, r, CUDA_FOLD_SHIFT, qn_role_at(norm, role.shift), 1);
  if (!all) return false;
  f->out = qn_role_at(norm, role.y);
  f->n_ops = 2;
  const qn_node *relu = only_reader(r, f->out, 2, QN_OP_RELU);
  f->relu = relu && r->value[qn_role(relu, QN_ROLE_RELU_Y)].dtype == r->value[f->out].dtype;
  if (f->relu) f->out = qn_role(relu, QN_ROLE_RELU_Y), f->n_ops = 3;
  return true;
}

qn_status cuda_conv_fold_run(const cuda_conv_fold *f, void *const *ptr, float *factors, float *addends, void *stream)
{
  fold k = {};
  for (int t = 0; t < CUDA_FOLD_TENSORS; t++) {
    k.p[t] = f->value[t] < 0 ? nullptr : ptr[f->value[t]];
    k.dtype[t] = f->dtype[t];
    k.stride[t] = f->stride[t];
  }
  k.channels = f->channels, k.eps = f->eps, k.factors = factors, k.addends = addends;
  conv_fold<<<(unsigned)qn_ceil_div(f->channels, 128), 128, 0, (cudaStream_t)stream>>>(k);
  return cuda_check(cudaGetLastError(), "conv_fold");
}
