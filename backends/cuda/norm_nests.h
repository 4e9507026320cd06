/* norm_nests.h -- the dims that a normalization walks, and those that its groups are counted by, of its tensors together. */
#ifndef QN_CUDA_NORM_NESTS_H
#define QN_CUDA_NORM_NESTS_H
#include <quern/kit.h>

typedef struct cuda_norm_nests {
  qn_nest  walked, outer;                 /* simplified */
  int64_t  length, groups;                /* elements of a group; how many there are */
} cuda_norm_nests;

/* number: values of the request, x first, -1 for an absent one, which moves nowhere; the first `walked` of all are walked. */
static inline cuda_norm_nests cuda_norm_nests_of(const qn_request *r, const int32_t *number, int32_t walked, int32_t all)
{
  const qn_norm *norm = (const qn_norm *)r->op[0].attr;
  const qn_value *x = &r->value[number[0]];
  cuda_norm_nests n;
  n.walked.n = walked, n.outer.n = all;
  n.walked.rank = n.outer.rank = 0;
  n.length = n.groups = 1;
  for (int32_t d = 0; d < x->rank; d++) {
    const bool in = norm->mask >> d & 1;
    qn_nest *nest = in ? &n.walked : &n.outer;
    nest->dim[nest->rank] = x->dim[d];
    for (int32_t t = 0; t < nest->n; t++) {
      const qn_value *v = number[t] < 0 ? NULL : &r->value[number[t]];
      nest->stride[t][nest->rank] = !v || v->dim[d] == 1 ? 0 : v->stride[d];
    }
    nest->rank++;
    *(in ? &n.length : &n.groups) *= x->dim[d];
  }
  qn_nest_simplify(&n.walked);
  qn_nest_simplify(&n.outer);
  return n;
}
#endif
