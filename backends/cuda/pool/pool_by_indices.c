/* pool_by_indices.c -- gradient of max pooling recomputed from x, as two parts: the maxima's indices by the best engine for the pooling
 * itself, into workspace, then the gradient by the best engine for indices.
 *
 *   y, indices = pool_max(x)     dx[x] = the sum of dy over the windows whose index is x
 *
 * Recomputing each window for each of the places below it reads taps x taps elements a place, 625 for windows of 5 x 5 with stride 1; so
 * they are 25 to find the indices and 25 to use them. Engines of small windows aside, only direct recomputes them: it gets such maxima
 * where the limit of workspace (QUERN_WORKSPACE_LIMIT) has no room for y and the indices. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/part.h"

typedef struct state {
  qn_part *part[2];                       /* x -> y, indices; dy, indices -> dx */
  int32_t  x, dy, dx;                     /* values of the request */
  uint64_t indices, scratch;              /* offsets in the workspace, where y comes first */
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (st) cuda_parts_release(st->part, 2);
  cuda_release(p);
}

/* dy's dims without gaps, channels last if dy has them so. */
static qn_value dense_like(const qn_value *dy, uint32_t dtype)
{
  qn_value v = *dy;
  const bool last = dy->dim[1] > 1 && dy->stride[1] == 1;
  int64_t stride = last ? dy->dim[1] : 1;
  for (int d = v.rank - 1; d >= 0; d--)
    if (last && d == 1) v.stride[d] = 1;
    else v.stride[d] = stride, stride *= v.dim[d];
  v.dtype = dtype, v.align = 256;
  return v;
}

/* A part of one op and three values; first: of its roles. */
static const qn_prepared *delegate(const qn_request *r, uint32_t op, uint32_t n_roles, uint32_t n_inputs, const int32_t *first,
                                   qn_value *value, qn_part **part)
{
  static const int32_t arg[] = { 0, 1, 2 };
  qn_node node = r->op[0];
  node.op = op, node.n_roles = n_roles, node.n_inputs = n_inputs, node.first = first, node.arg = arg;
  const qn_prepared *answer = cuda_part_prepare(r, &node, value, part) ? NULL : r->host->part_answer(*part);
  return answer && answer->class_ == QN_CLASS_TUNED ? answer : NULL;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_pool *attr = op->attr;
  const int32_t x = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_X), dy = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_DY),
                dx = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_DX);
  if (x < 0 || qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES) >= 0)
    return qn_refuse(out, "maxima recomputed from x", "x", "no indices", "%s", "indices");
  const qn_value *of_x = &r->value[x], *of_dy = &r->value[dy];
  double taps = 1;
  for (int d = 0; d < of_x->rank - 2; d++) taps *= (double)(attr->window[d] ? attr->window[d] : of_x->dim[2 + d]);
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->x = x, st->dy = dy, st->dx = dx;
  const qn_value y = dense_like(of_dy, of_x->dtype), indices = dense_like(of_dy, taps <= 255 ? QN_U8 : QN_I32);
  static const int32_t forward[] = { 0, 1, 2, 3 }, backward[] = { 0, 1, 2, 2, 3 };      /* backward has no x */
  const qn_prepared *one = delegate(r, QN_OP_POOL_MAX, 3, 1, forward, (qn_value[]){ *of_x, y, indices }, &st->part[0]),
                    *two = one ? delegate(r, op->op, 4, 3, backward, (qn_value[]){ *of_dy, indices, r->value[dx] }, &st->part[1]) : NULL;
  if (!two) {
    release(out);
    return qn_refuse(out, "tuned engines for the pooling with indices, and for its gradient from them", "x", "what they take", "%s",
                     "another");
  }
  const int64_t n = qn_elements(of_dy);
  st->indices = (uint64_t)qn_round_up(n * qn_kit_bytes(y.dtype), 256);
  st->scratch = st->indices + (uint64_t)qn_round_up(n * qn_kit_bytes(indices.dtype), 256);
  out->estimate = 500;
  cuda_parts_add(out, one, st->scratch), cuda_parts_add(out, two, st->scratch);
  out->math = two->math, out->numerics = two->numerics;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_parts_build(((state *)out->state)->part, 2);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  char *room = launch->workspace;
  void *first[] = { launch->ptr[st->x], room, room + st->indices };
  void *then[] = { launch->ptr[st->dy], room + st->indices, launch->ptr[st->dx] };
  const qn_status s = cuda_host->part_run(st->part[0], launch, first, room + st->scratch, launch->counters);
  return s ? s : cuda_host->part_run(st->part[1], launch, then, room + st->scratch, launch->counters);
}

static const qn_engine row = { .name = "by_indices", .op = QN_OP_POOL_MAX_BACKWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare,
                               .build = build, .run = run, .release = release };
CUDA_ENGINES(pool_by_indices) = { &row, 1 };
