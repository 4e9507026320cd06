/* shared_memory.h -- what a kernel may be launched with, and launches of blocks that know of one another (device.c). */
#ifndef QN_CUDA_SHARED_MEMORY_H
#define QN_CUDA_SHARED_MEMORY_H
#include "cuda_backend.h"
#ifdef __cplusplus
extern "C" {
#endif
/* Lets this kernel have all the shared memory that the current device gives a block. All plans of a kernel share the attribute, those of
 * contexts that see less of the device too: so it is never what one plan needs. */
qn_status cuda_allow_shared(const void *kernel);

/* In clusters of so many blocks (1: each by itself); or all there at once, for they wait for one another. shared: bytes of a block. */
enum { CUDA_TOGETHER = 0 };
qn_status cuda_launch_clusters(const void *kernel, unsigned blocks, unsigned cluster, unsigned threads, size_t shared, void **arguments,
                               const qn_launch *launch, const char *name);
#ifdef __cplusplus
}
#endif
#endif
