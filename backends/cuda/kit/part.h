/* part.h -- a part that an engine hands to another (host->part_prepare): its values, which nothing else uses, and one of a single op. */
#ifndef QN_CUDA_PART_H
#define QN_CUDA_PART_H
#include "cuda_backend.h"

static inline void cuda_part_value(qn_value *v, bool written)
{
  v->flags = (v->flags & QN_VALUE_HOST) | (written ? QN_VALUE_ESCAPE : 0);
  v->producer = written ? 0 : -1, v->last_user = written ? -1 : 0, v->over = -1;
}

/* op's arguments are the values in order, each once; the best engine takes it. */
static inline qn_status cuda_part_prepare(const qn_request *r, const qn_node *op, qn_value *value, qn_part **part)
{
  const int32_t n = op->first[op->n_roles];
  for (int32_t i = 0; i < n; i++) cuda_part_value(&value[i], i >= op->first[op->n_inputs]);
  qn_request of;
  memset(&of, 0, sizeof of);
  of.struct_size = sizeof of, of.instance = r->instance, of.op = op, of.n_ops = 1, of.n_values = (uint32_t)n, of.value = value;
  return r->host->part_prepare(r, &of, NULL, part);
}

/* Of the n parts of an engine, which run one after the other; NULL: there is none. */
static inline void cuda_parts_release(qn_part *const *part, int n)
{
  for (int i = 0; i < n; i++)
    if (part[i]) cuda_host->part_release(part[i]);
}
static inline qn_status cuda_parts_build(qn_part *const *part, int n)
{
  qn_status s = QN_OK;
  for (int i = 0; i < n && !s; i++)
    if (part[i]) s = cuda_host->part_build(part[i]);
  return s;
}
/* A part's answer joined to the engine's: scratch behind what the engine keeps in the workspace, and counters, are used in turn. */
static inline void cuda_parts_add(qn_prepared *out, const qn_prepared *answer, uint64_t kept)
{
  if (out->workspace < kept + answer->workspace) out->workspace = kept + answer->workspace;
  if (out->counters < answer->counters) out->counters = answer->counters;
  out->estimate += answer->estimate, out->traits &= answer->traits;
}

/* A copy of x with the strides that `to` has. */
static inline qn_status cuda_part_copy(const qn_request *r, const qn_value *x, const qn_value *to, qn_part **part)
{
  static const int32_t one_each[] = { 0, 1, 2 };
  qn_value pair[] = { *x, *to };
  const qn_node node = { .op = QN_OP_COPY, .family = QN_FAMILY_TRANSFORM, .attr = NULL, .n_roles = 2, .n_inputs = 1, .first = one_each,
                         .arg = one_each };
  return cuda_part_prepare(r, &node, pair, part);
}
#endif
