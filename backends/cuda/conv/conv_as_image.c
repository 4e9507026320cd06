/* conv_as_image.c -- convolution of one spatial dim as one of images of one line, so that every engine for two spatial dims takes it: views
 * of the tensors, and a delegation.
 *
 *   x [N, C, L] -> [N, C, 1, L]   w [K, C, R] -> [K, C, 1, R]   y [N, K, P] -> [N, K, 1, P] */
#include "conv_part.h"
#include "engines.h"

static void release(qn_prepared *p)
{
  cuda_conv_part_release(p->state);
  cuda_release(p);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const int32_t rank = r->value[r->op[0].arg[r->op[0].first[0]]].rank;
  if (rank != 3) return qn_refuse(out, "one spatial dim", "x", "1", "%d", rank - 2);
  cuda_conv_part *p = cuda_state(out, sizeof *p);
  if (!p) return QN_NO_MEMORY;
  cuda_conv_part_begin(r, p);
  qn_conv *c = &p->attr;
  c->stride[1] = c->stride[0], c->dilation[1] = c->dilation[0];
  c->pad_before[1] = c->pad_before[0], c->pad_after[1] = c->pad_after[0];
  c->stride[0] = c->dilation[0] = 1;
  c->pad_before[0] = c->pad_after[0] = 0;
  for (int i = 0; i < p->n; i++) {
    qn_value *v = &p->value[i];
    if (v->rank != 3) continue;           /* bias */
    v->rank = 4;
    v->dim[3] = v->dim[2], v->stride[3] = v->stride[2];
    v->stride[2] = v->dim[3] * v->stride[3], v->dim[2] = 1;
  }
  const qn_prepared *answer = cuda_conv_part_delegate(r, p, out);
  if (!answer) {
    release(out);
    return qn_refuse(out, "a tuned engine for two spatial dims", "x", "what one takes", "%s", "another");
  }
  out->traits = answer->traits;
  out->estimate = answer->estimate;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_host->part_build(((cuda_conv_part *)out->state)->part);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const cuda_conv_part *p = prepared->state;
  void *ptr[CUDA_CONV_ROLES];
  for (int i = 0; i < p->n; i++) ptr[i] = launch->ptr[p->at[i]];
  return cuda_host->part_run(p->part, launch, ptr, launch->workspace, launch->counters);
}

#define ROW(op_) { .name = "as_image", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_as_image) = { rows, sizeof rows / sizeof *rows };
