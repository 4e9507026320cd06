/* gemm_follow.h -- fuses what follows a contraction: a program (pointwise_tile.h) to which the epilogue passes rows of sums, still in
 * cache. The contraction's output is stored only if it is needed elsewhere, and is not rounded in between. */
#ifndef CPU_GEMM_FOLLOW_H
#define CPU_GEMM_FOLLOW_H
#include "cpu_ref.h"
#include "gemm_epilogue.h"
#include "kit/pointwise_tile.h"

typedef struct cpu_follow {
  cpu_program program;
  cpu_tile_fn *runner;
  int32_t taken;                          /* ops; 0: nothing follows */
  void *const *ptr;                       /* of the current launch */
} cpu_follow;

/* Reads it from the request, whose first op produces y. *counted becomes the request for the contraction to use, in which y has the
 * strides of its packed order; the caller frees its values. False: out of memory, error already set. */
static inline bool cpu_follow_read(cpu_follow *f, const qn_request *request, int32_t y, qn_request *counted, qn_prepared *p)
{
  qn_value *value = cpu_host->alloc(request->n_values * sizeof *value);
  if (!value) {
    cpu_host->error(QN_NO_MEMORY, "no memory for a fused contraction's values");
    return false;
  }
  memcpy(value, request->value, request->n_values * sizeof *value);
  *counted = *request;
  counted->value = value;
  f->taken = request->n_ops > 1 ? cpu_program_make(request, 1, request->n_ops - 1, y, &f->program, p) : 0;
  f->runner = cpu_tile_runner(request->device);
  if (f->taken > 0) cpu_count_places(&value[y]);
  return true;
}

static inline void cpu_follow_row(const cpu_epilogue *e, int64_t place, int64_t n, const void *sum)
{
  const cpu_follow *f = e->user;
  f->runner(&f->program, f->ptr, sum, place, n);
}

static inline void cpu_follow_bind(cpu_follow *f, cpu_epilogue *e, void *const *ptr)
{
  f->ptr = ptr;
  e->follow = cpu_follow_row;
  e->user = f;
}
#endif
