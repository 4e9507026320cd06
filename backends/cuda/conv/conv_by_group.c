/* conv_by_group.c -- grouped convolution as one convolution after another, each of a group's channels: slices of the tensors, with the
 * strides of the whole. One plan, made by the best engine for a slice, is run for each group. For few wide groups; a launch or more
 * for each.
 *
 *   x [N, G C, X] -> [N, C, X]   w [G K, C, R] -> [K, C, R]   y [N, G K, P] -> [N, K, P]   bias [G K] -> [K] */
#include "conv_part.h"
#include "engines.h"

typedef struct state {
  cuda_conv_part conv;                    /* of one group */
  int64_t groups;
  int64_t step[CUDA_CONV_ROLES];          /* bytes from one group to the next */
} state;

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const int64_t groups = ((const qn_conv *)r->op[0].attr)->groups;
  const int32_t filters = r->op[0].op == QN_OP_CONV_BACKWARD_FILTER ? (int32_t)r->op[0].n_inputs : 1;       /* their role */
  if (groups < 2) return qn_refuse(out, "groups", "x", "two or more", "%lld", (long long)groups);
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  cuda_conv_part *p = &st->conv;
  cuda_conv_part_begin(r, p);
  st->groups = groups;
  p->attr.groups = 1;
  for (int i = 0; i < p->n; i++) {
    qn_value *v = &p->value[i];
    const int dim = p->role[i] == filters || v->rank == 1 ? 0 : 1;
    v->dim[dim] /= groups;
    st->step[i] = v->dim[dim] * v->stride[dim] * qn_kit_bytes(v->dtype);
    while (st->step[i] % v->align) v->align /= 2;
  }
  const qn_prepared *answer = cuda_conv_part_delegate(r, p, out);
  if (!answer) {
    cuda_conv_part_release(out);
    return qn_refuse(out, "a tuned engine for one group", "x", "what one takes", "%lld groups", (long long)groups);
  }
  out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
  out->estimate = (answer->estimate * 1.08 + 2000) * (double)groups;  /* each waits for the one before */
  return QN_OK;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  const cuda_conv_part *p = &st->conv;
  qn_status status = QN_OK;
  for (int64_t g = 0; g < st->groups && !status; g++) {
    void *ptr[CUDA_CONV_ROLES];
    for (int i = 0; i < p->n; i++) ptr[i] = (char *)launch->ptr[p->at[i]] + g * st->step[i];
    status = cuda_host->part_run(p->part, launch, ptr, launch->workspace, launch->counters);
  }
  return status;
}

#define ROW(op_) { .name = "by_group", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = cuda_conv_part_build, .run = run, .release = cuda_conv_part_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_by_group) = { rows, sizeof rows / sizeof *rows };
