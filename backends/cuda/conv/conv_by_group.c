/* conv_by_group.c -- grouped convolution as one convolution after another, each of a group's channels: slices of the tensors, with the
 * strides of the whole. One plan, made by the best engine for a slice, is run for each group. For few wide groups; a launch or more
 * for each.
 *
 *   x [N, G C, X] -> [N, C, X]   w [G K, C, R] -> [K, C, R]   y [N, G K, P] -> [N, K, P]   bias [G K] -> [K] */
#include "cuda_backend.h"
#include "engines.h"

enum { MAX_ROLES = 4 };

typedef struct state {
  int      n;
  int64_t  groups;
  int32_t  at[MAX_ROLES];                 /* value numbers in the request */
  int64_t  step[MAX_ROLES];               /* bytes from one group to the next */
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
  const bool filter = op->op == QN_OP_CONV_BACKWARD_FILTER;
  if (c->groups < 2) return qn_refuse(out, "groups", "x", "two or more", "%lld", (long long)c->groups);
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->groups = c->groups;
  st->attr = *c;
  st->attr.groups = 1;
  for (uint32_t role = 0; role < op->n_roles; role++) {     /* at most one value per role; bias may be absent */
    st->first[role] = st->n;
    if (op->first[role] == op->first[role + 1]) continue;
    const int i = st->n++;
    const bool written = role >= op->n_inputs, w = filter ? written : role == 1;
    st->arg[i] = i;
    st->at[i] = op->arg[op->first[role]];
    qn_value *v = &st->value[i];
    *v = r->value[st->at[i]];
    const int dim = w || v->rank == 1 ? 0 : 1;
    v->dim[dim] /= c->groups;
    st->step[i] = v->dim[dim] * v->stride[dim] * qn_kit_bytes(v->dtype);
    while (st->step[i] % v->align) v->align /= 2;
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
    return qn_refuse(out, "a tuned engine for one group", "x", "what one takes", "%lld groups", (long long)c->groups);
  }
  out->workspace = answer->workspace;
  out->counters = answer->counters;
  out->math = answer->math;
  out->traits = answer->traits & (QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES);
  out->numerics = answer->numerics;
  out->estimate = answer->estimate * (double)c->groups * 1.2;         /* each is small, and waits for the one before */
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
  qn_status status = QN_OK;
  for (int64_t g = 0; g < st->groups && !status; g++) {
    void *ptr[MAX_ROLES];
    for (int i = 0; i < st->n; i++) ptr[i] = (char *)launch->ptr[st->at[i]] + g * st->step[i];
    status = cuda_host->part_run(st->part, launch, ptr, launch->workspace, launch->counters);
  }
  return status;
}

#define ROW(op_) { .name = "by_group", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_by_group) = { rows, sizeof rows / sizeof *rows };
