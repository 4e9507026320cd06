/* early.cuh -- launches of kernels that may begin while the one before them ends, if their code waits for it (griddepcontrol). */
#pragma once
#include "cuda_backend.h"

/* Does the kernel, as compiled for this device, wait? Code for devices before sm_90 does not. */
static inline qn_status cuda_waits_itself(const void *function, int32_t *waits)
{
  cudaFuncAttributes has;
  const qn_status status = cuda_check(cudaFuncGetAttributes(&has, function), "cudaFuncGetAttributes");
  if (!status) *waits = has.ptxVersion >= 90;
  return status;
}

static inline qn_status cuda_launch_early(const void *function, bool early, uint32_t blocks, uint32_t threads, uint32_t shared,
                                          void *argument, const qn_launch *launch, const char *name)
{
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads), config.dynamicSmemBytes = shared;
  config.stream = (cudaStream_t)launch->stream, config.attrs = &attribute, config.numAttrs = early ? 1 : 0;
  void *arguments[] = { argument };
  return cuda_check(cudaLaunchKernelExC(&config, function, arguments), name);
}
