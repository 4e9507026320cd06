/* attention_mma_backward_f32.cu -- the kernels of attention_mma_backward.cuh on f32, by 3xTF32. */
#include "attention_mma_backward.cuh"

#define KERNELS(d, dv) ATTENTION_BACKWARD_KERNELS(MMA_3XTF32, d, dv)
const cuda_attention_backward_kernels cuda_attention_backward_f32[] = { CUDA_ATTENTION_BACKWARD_SHAPES_F32(KERNELS) {} };
