/* conv_as_image.c -- convolution of one spatial dim as one of images of one line, so that every engine for two spatial dims takes it: views
 * of the tensors, and a delegation.
 *
 *   x [N, C, L] -> [N, C, 1, L]   w [K, C, R] -> [K, C, 1, R]   y [N, K, P] -> [N, K, 1, P] */
#include "cuda_backend.h"
#include "engines.h"

enum { MAX_ROLES = 4 };

typedef struct state {
  int      n;
  int32_t  at[MAX_ROLES];                 /* value numbers in the request */
  qn_value value[MAX_ROLES];
  int32_t  arg[MAX_ROLES], first[MAX_ROLES + 1];
  qn_node  node;
  qn_conv  attr;
  qn_part *part;
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (st && st->part) cuda_host->part_release(st->part);
  cuda_release(p);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_conv *c = op->attr;
  const int32_t rank = r->value[op->arg[op->first[0]]].rank;
  if (rank != 3) return qn_refuse(out, "one spatial dim", "x", "1", "%d", rank - 2);
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->attr = *c;
  st->attr.stride[1] = c->stride[0], st->attr.dilation[1] = c->dilation[0];
  st->attr.pad_before[1] = c->pad_before[0], st->attr.pad_after[1] = c->pad_after[0];
  st->attr.stride[0] = st->attr.dilation[0] = 1;
  st->attr.pad_before[0] = st->attr.pad_after[0] = 0;
  for (uint32_t role = 0; role < op->n_roles; role++) {     /* at most one value per role; bias may be absent */
    st->first[role] = st->n;
    if (op->first[role] == op->first[role + 1]) continue;
    const int i = st->n++;
    const bool written = role >= op->n_inputs;
    st->arg[i] = i;
    st->at[i] = op->arg[op->first[role]];
    qn_value *v = &st->value[i];
    *v = r->value[st->at[i]];
    if (v->rank == 3) {
      v->rank = 4;
      v->dim[3] = v->dim[2], v->stride[3] = v->stride[2];
      v->stride[2] = v->dim[3] * v->stride[3], v->dim[2] = 1;
    }
    v->flags = written ? QN_VALUE_ESCAPE : 0;
    v->producer = written ? 0 : -1;
    v->last_user = written ? -1 : 0;
    v->over = -1;
  }
  st->first[op->n_roles] = st->n;
  st->node = *op;
  st->node.attr = &st->attr;
  st->node.first = st->first;
  st->node.arg = st->arg;
  qn_request part = {
    .struct_size = sizeof part, .instance = r->instance, .op = &st->node, .n_ops = 1, .n_values = (uint32_t)st->n, .value = st->value
  };
  const qn_prepared *answer = r->host->part_prepare(r, &part, NULL, &st->part) ? NULL : r->host->part_answer(st->part);
  if (!answer || answer->class_ != QN_CLASS_TUNED) {
    release(out);
    return qn_refuse(out, "a tuned engine for two spatial dims", "x", "what one takes", "%s", "another");
  }
  out->workspace = answer->workspace;
  out->counters = answer->counters;
  out->math = answer->math;
  out->traits = answer->traits;
  out->numerics = answer->numerics;
  out->estimate = answer->estimate;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_host->part_build(((state *)out->state)->part);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  void *ptr[MAX_ROLES];
  for (int i = 0; i < st->n; i++) ptr[i] = launch->ptr[st->at[i]];
  return cuda_host->part_run(st->part, launch, ptr, launch->workspace, launch->counters);
}

#define ROW(op_) { .name = "as_image", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_as_image) = { rows, sizeof rows / sizeof *rows };
