/* conv_fold.h -- normalization by given statistics behind a convolution, as a factor and an addend for each channel. */
#ifndef QN_CUDA_CONV_FOLD_H
#define QN_CUDA_CONV_FOLD_H
#include <stdbool.h>
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_FOLD_BIAS, CUDA_FOLD_MEAN, CUDA_FOLD_VAR, CUDA_FOLD_SCALE, CUDA_FOLD_SHIFT, CUDA_FOLD_TENSORS };
typedef struct cuda_conv_fold {
  int32_t  value[CUDA_FOLD_TENSORS];      /* of the request; -1: absent */
  uint32_t dtype[CUDA_FOLD_TENSORS];
  int64_t  stride[CUDA_FOLD_TENSORS];     /* from channel to channel */
  int32_t  channels, out;                 /* out: what it ends in */
  uint32_t n_ops;                         /* taken, the convolution included */
  bool     relu;
  float    eps;
} cuda_conv_fold;

extern const uint32_t cuda_conv_fold_also[];              /* for rows of engines that fold */

/* Whether batch_norm_inference, and then perhaps relu, is all that becomes of what the convolution writes. */
bool cuda_conv_fold_read(cuda_conv_fold *f, const qn_request *r, int32_t written, int32_t bias);
/* factors[c] = scale / sqrt(var + eps), addends[c] = (bias - mean) factor + shift */
qn_status cuda_conv_fold_run(const cuda_conv_fold *f, void *const *ptr, float *factors, float *addends, void *stream);
#ifdef __cplusplus
}
#endif
#endif
