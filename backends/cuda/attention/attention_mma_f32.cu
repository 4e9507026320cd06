/* attention_mma_f32.cu -- the kernels of attention_mma.cuh on f32, by 3xTF32. */
#include "attention_mma.cuh"

#define KERNEL(d, bn, rows) ATTENTION_MANY(MMA_3XTF32, d, bn, rows)
const cuda_attention_many_kernel cuda_attention_many_f32[] = { CUDA_ATTENTION_MANY_SHAPES_F32(KERNEL) {} };
