/* fake_cuda_order.h -- between the files of the stand-in for the CUDA runtime. */
#ifndef QUERN_TESTS_FAKE_CUDA_ORDER_H
#define QUERN_TESTS_FAKE_CUDA_ORDER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#include <driver_types.h>

/* fake_cuda.c: notes a violation, for the test to ask for; returns error. */
cudaError_t broken(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

cudaError_t fake_last(cudaError_t error);           /* sets the runtime's last error, and returns it */
int         fake_generation(void);                  /* major compute capability of the current device */

/* fake_cuda_memory.c */
bool        fake_in_memory(uint64_t at);
bool        fake_allocated(uint64_t at, uint64_t bytes);      /* one allocation holds the whole range */
const char *fake_beside(uint64_t at);               /* describes an address outside all allocations, for a sentence */

/* fake_cuda_maps.c: what stands for the driver's functions */
CUresult fake_encode_tiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dim,
                           const cuuint64_t *stride, const cuuint32_t *box, const cuuint32_t *step, CUtensorMapInterleave interleave,
                           CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
CUresult fake_encode_im2col(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank, void *address, const cuuint64_t *dim,
                            const cuuint64_t *stride, const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
                            const cuuint32_t *step, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                            CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill);
CUresult fake_replace_address(CUtensorMap *to, void *address);

/* fake_cuda_order.c */
enum { FAKE_READ, FAKE_WRITTEN };
cudaError_t fake_access(const char *what, const void *p, size_t bytes, int how, cudaStream_t stream);    /* by work enqueued now */
void        fake_enqueue(cudaStream_t stream);      /* work whose accesses are not known */
void        fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));      /* adds to what fake_noted returns */
const char *fake_noted(void);                       /* records, waits, captures and notes since the last call, in order */
const char *fake_judge_order(void);                 /* NULL, or what it wrongly accepts or refuses */
#endif
