/* norm_nests.h -- the loop nests of a normalization over all its tensors: the dims within a group, and the outer dims. */
#ifndef QN_CUDA_NORM_NESTS_H
#define QN_CUDA_NORM_NESTS_H
#include <quern/kit.h>

typedef struct cuda_norm_nests {
  qn_nest  walked, outer;                 /* merged where possible */
  int64_t  length, groups;                /* elements of a group; number of groups */
} cuda_norm_nests;

/* number: values of the request, x first, -1 for an absent one (strides 0). `walked` of them take part in the inner nest, `all`
 * in the outer. */
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

/* Refuses a parameter (values from `first` on) that varies within a group or, if `own`, is shared between groups. */
static inline qn_status cuda_norm_by_group(const qn_request *r, const int32_t *number, const char *const *name, int32_t first, int32_t all,
                                           bool own, qn_prepared *out)
{
  const uint64_t mask = ((const qn_norm *)r->op[0].attr)->mask;
  const qn_value *x = &r->value[number[0]];
  for (int32_t t = first; t < all; t++)
    for (int32_t d = 0; d < x->rank && number[t] >= 0; d++) {
      const int64_t dim = r->value[number[t]].dim[d];
      if (mask >> d & 1 ? dim != 1 : own && dim != x->dim[d])
        return qn_refuse(out, "a parameter has one element for each group", name[t],
                         own ? "1 along the dims normalized over, x's dims along the others" : "1 along the dims normalized over", "%lld",
                         (long long)dim);
    }
  return QN_OK;
}

/* For x, y, scale, shift, mean, rstd in this order: refuses all but rows of whole 16-byte words of one dtype at one stride, with
 * parameters shared by all rows. step: from row to row, in words for the first four, in elements for mean and rstd. */
static inline qn_status cuda_norm_word_rows(const qn_request *r, const int32_t *number, const cuda_norm_nests *n, int64_t *step,
                                            qn_prepared *out)
{
  const qn_value *x = &r->value[number[0]];
  const int64_t per_word = 16 / qn_kit_bytes(x->dtype);
  bool whole = n->walked.rank == 1;
  for (int t = 0; t < 6; t++) step[t] = number[t] >= 0 && n->outer.rank ? n->outer.stride[t][0] : 0;
  for (int t = 0; t < 4 && whole; t++) {
    const qn_value *v = number[t] < 0 ? NULL : &r->value[number[t]];
    whole = !v ||
            (n->walked.stride[t][0] == 1 && v->dtype == x->dtype && v->align >= 16 && step[t] % per_word == 0 && (t < 2 || step[t] == 0));
    step[t] /= per_word;
  }
  if (whole) return QN_OK;
  return qn_refuse(out, "tensors of one dtype, in 16-byte words, contiguous where they are normalized over; parameters alike for all rows",
                   "x", "", "%s", "others");
}
#endif
