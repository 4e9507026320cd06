/* early.h -- launches of kernels that may begin while the one before them ends, if their code waits for it (griddepcontrol). */
#ifndef QN_CUDA_EARLY_H
#define QN_CUDA_EARLY_H
#include <string.h>
#include "cuda_backend.h"

/* early: it may. arguments: the addresses of the kernel's. */
static inline qn_status cuda_launch_kernel(const void *function, bool early, dim3 blocks, uint32_t threads, uint32_t shared,
                                           void **arguments, void *stream, const char *name)
{
  cudaLaunchAttribute attribute;
  cudaLaunchConfig_t config;
  memset(&attribute, 0, sizeof attribute);
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.gridDim = blocks;
  config.blockDim.x = threads, config.blockDim.y = config.blockDim.z = 1;
  config.dynamicSmemBytes = shared;
  config.stream = (cudaStream_t)stream;
  config.attrs = &attribute, config.numAttrs = early;
  return cuda_check(cudaLaunchKernelExC(&config, function, arguments), name);
}

/* Does the kernel, as compiled for this device, wait? Code for devices before sm_90 does not. */
static inline qn_status cuda_waits_itself(const void *function, int32_t *waits)
{
  struct cudaFuncAttributes has;
  const qn_status status = cuda_check(cudaFuncGetAttributes(&has, function), "cudaFuncGetAttributes");
  if (!status) *waits = has.ptxVersion >= 90;
  return status;
}

#ifdef __CUDACC__
/* A kernel of one argument in a grid of one dim. */
static inline qn_status cuda_launch_early(const void *function, bool early, uint32_t blocks, uint32_t threads, uint32_t shared,
                                          void *argument, const qn_launch *launch, const char *name)
{
  void *arguments[] = { argument };
  return cuda_launch_kernel(function, early, dim3(blocks), threads, shared, arguments, launch->stream, name);
}
#endif
#endif
