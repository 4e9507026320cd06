/* shared_memory.h -- shared-memory limits of kernels, and cluster and cooperative launches (device.c). */
#ifndef QN_CUDA_SHARED_MEMORY_H
#define QN_CUDA_SHARED_MEMORY_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif
/* Raises the kernel's limit to all the shared memory the current device gives a block. The attribute is shared by all plans of a
 * kernel, also those of contexts limited to less, so it must never be set to what one plan needs. */
qn_status cuda_allow_shared(const void *kernel);

/* Launches in clusters of `cluster` blocks (1: no clusters), or (CUDA_TOGETHER) cooperatively, all blocks resident. shared: bytes
 * per block. */
enum { CUDA_TOGETHER = 0 };
qn_status cuda_launch_clusters(const void *kernel, unsigned blocks, unsigned cluster, unsigned threads, size_t shared, void **arguments,
                               const qn_launch *launch, const char *name);
#ifdef __cplusplus
}
#endif
#endif
