/* attention_mma_backward_f16.cu -- the kernels of attention_mma_backward.cuh on f16. */
#include "attention_mma_backward.cuh"

#define KERNELS(d, dv, ...) ATTENTION_BACKWARD_KERNELS(MMA_F16, d, dv, __VA_ARGS__)
#define VALUES(d, dv) ATTENTION_PASS(MMA_F16, d, dv, true, false)
const cuda_attention_backward_kernels cuda_attention_backward_f16[] = { CUDA_ATTENTION_BACKWARD_SHAPES(KERNELS, VALUES) {} };
