/* fake_cuda_order.h -- between the files of the stand-in for the CUDA runtime. */
#ifndef QUERN_TESTS_FAKE_CUDA_ORDER_H
#define QUERN_TESTS_FAKE_CUDA_ORDER_H
#include <stdbool.h>
#include <stddef.h>
#include <driver_types.h>

/* fake_cuda.c: notes a violation, for the test to ask for; returns error. */
cudaError_t broken(cudaError_t error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* fake_cuda_order.c */
enum { FAKE_READ, FAKE_WRITTEN };
cudaError_t fake_access(const char *what, const void *p, size_t bytes, int how, cudaStream_t stream);    /* by work enqueued now */
void        fake_enqueue(cudaStream_t stream);      /* work whose accesses are not known */
void        fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));      /* adds to what fake_noted returns */
const char *fake_noted(void);                       /* records, waits, captures and notes since the last call, in order */
const char *fake_judge_order(void);                 /* NULL, or what it wrongly accepts or refuses */
#endif
