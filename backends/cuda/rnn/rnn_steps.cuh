/* rnn_steps.cuh -- kernels of a step (rnn_steps.cu, rnn_steps_four.cu) are launched while the ones before them end, and wait for these. */
#pragma once
#include "kit/early.h"
#include "rnn_cells.cuh"

/* From here on the next kernel may come, and all earlier ones have ended. */
__device__ __forceinline__ void rnn_wait_before()
{
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

static inline qn_status rnn_launch_step(void (*kernel)(cuda_rnn, int64_t), bool early, dim3 blocks, uint32_t threads, const cuda_rnn *p,
                                        int64_t s, void *stream, const char *name)
{
  void *arguments[] = { (void *)p, &s };
  return cuda_launch_kernel((const void *)kernel, early, blocks, threads, 0, arguments, stream, name);
}
