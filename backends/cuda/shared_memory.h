/* shared_memory.h -- what a kernel may be launched with (device.c). */
#ifndef QN_CUDA_SHARED_MEMORY_H
#define QN_CUDA_SHARED_MEMORY_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif
/* Lets this kernel have all the shared memory that the current device gives a block. All plans of a kernel share the attribute, those of
 * contexts that see less of the device too: so it is never what one plan needs. */
qn_status cuda_allow_shared(const void *kernel);
#ifdef __cplusplus
}
#endif
#endif
