/* conv_part.h -- a convolution handed to another engine as a part of other dims: its tensors as views of the request's, its node, its
 * delegation. The engine changes attr and the views between the two calls. */
#ifndef QN_CUDA_CONV_PART_H
#define QN_CUDA_CONV_PART_H
#include "kit/part.h"

enum { CUDA_CONV_ROLES = 4 };

typedef struct cuda_conv_part {
  int      n;
  int32_t  at[CUDA_CONV_ROLES];           /* value numbers in the request */
  int32_t  role[CUDA_CONV_ROLES];
  qn_value value[CUDA_CONV_ROLES];
  int32_t  arg[CUDA_CONV_ROLES], first[CUDA_CONV_ROLES + 1];
  qn_node  node;
  qn_conv  attr;
  qn_part *part;
} cuda_conv_part;

/* p lies in an engine's state, which stays where it is. */
static inline void cuda_conv_part_begin(const qn_request *r, cuda_conv_part *p)
{
  const qn_node *op = &r->op[0];
  p->attr = *(const qn_conv *)op->attr;
  for (uint32_t role = 0; role < op->n_roles; role++) {     /* at most one value per role; bias may be absent */
    p->first[role] = p->n;
    if (op->first[role] == op->first[role + 1]) continue;
    const int i = p->n++;
    p->arg[i] = i, p->at[i] = op->arg[op->first[role]], p->role[i] = (int32_t)role;
    qn_value *v = &p->value[i];
    *v = r->value[p->at[i]];
    cuda_part_value(v, role >= op->n_inputs);
  }
  p->first[op->n_roles] = p->n;
  p->node = *op;
  p->node.attr = &p->attr, p->node.first = p->first, p->node.arg = p->arg;
}

/* Asks the best tuned engine, and takes over what it says of memory, numerics, math and traits; NULL: none takes it. */
static inline const qn_prepared *cuda_conv_part_delegate(const qn_request *r, cuda_conv_part *p, qn_prepared *out)
{
  qn_request part;
  memset(&part, 0, sizeof part);
  part.struct_size = sizeof part, part.instance = r->instance, part.op = &p->node, part.n_ops = 1;
  part.n_values = (uint32_t)p->n, part.value = p->value;
  const qn_prepared *answer = r->host->part_prepare(r, &part, NULL, &p->part) ? NULL : r->host->part_answer(p->part);
  if (!answer || answer->class_ != QN_CLASS_TUNED) return NULL;
  out->workspace = answer->workspace;
  out->counters = answer->counters;
  out->math = answer->math;
  out->numerics = answer->numerics;
  out->traits = answer->traits;
  return answer;
}

/* Does it sum by the formula? What others lose is known of the shapes that they are for, not of a view's. */
static inline bool cuda_conv_part_plain(const qn_prepared *answer) { return answer && answer->numerics.method == QN_METHOD_DIRECT; }

/* Release and build, of engines whose state begins with a cuda_conv_part. */
static inline void cuda_conv_part_release(qn_prepared *p)
{
  cuda_conv_part *of = (cuda_conv_part *)p->state;
  if (of) cuda_parts_release(&of->part, 1);
  cuda_release(p);
}
static inline qn_status cuda_conv_part_build(const qn_request *r, qn_prepared *p)
{
  (void)r;
  return cuda_parts_build(&((cuda_conv_part *)p->state)->part, 1);
}
#endif
