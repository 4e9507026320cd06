/* collective.h -- for engines of collectives: what ranks must agree on, as text and as a number. Static inline, as kit.h. */
#ifndef QUERN_COLLECTIVE_H
#define QUERN_COLLECTIVE_H
#include <stdio.h>
#include <quern/kit.h>

/* A problem without what may differ between ranks: strides, alignment, what shares memory. Ranks whose hashes differ do not fit
 * each other; text is for the error. A send and its recv have the same hash if their tensors fit. */
typedef struct qn_collective_line { uint64_t hash; char text[400]; } qn_collective_line;

static inline const char *qn_collective_name(uint32_t op)
{
  switch (op) {
  case QN_OP_ALL_REDUCE:     return "all_reduce";
  case QN_OP_REDUCE_SCATTER: return "reduce_scatter";
  case QN_OP_ALL_GATHER:     return "all_gather";
  case QN_OP_BROADCAST:      return "broadcast";
  case QN_OP_ALL_TO_ALL:     return "all_to_all";
  case QN_OP_SEND:           return "send";
  default:                   return "recv";
  }
}

static inline uint64_t qn_collective_mix(uint64_t h, uint64_t x)
{
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 32;
}

/* The request's first op, a collective. */
static inline void qn_collective_line_of(const qn_request *r, qn_collective_line *line)
{
  static const char *const reduction[] = { "sum", "avg", "max", "min", "prod" };
  const qn_node *op = &r->op[0];
  const qn_collective *a = (const qn_collective *)op->attr;
  const int pair = op->op == QN_OP_SEND || op->op == QN_OP_RECV;
  const int reduces = op->op == QN_OP_ALL_REDUCE || op->op == QN_OP_REDUCE_SCATTER;
  const int32_t n = op->first[1] - op->first[0];
  size_t at = (size_t)snprintf(line->text, sizeof line->text, "%s x=[", qn_collective_name(op->op));
  uint64_t h = qn_collective_mix(pair ? (uint64_t)QN_OP_SEND : (uint64_t)op->op, (uint64_t)n);
  for (int32_t k = 0; k < n; k++) {
    const qn_value *x = &r->value[op->arg[op->first[0] + k]];
    const int room = at < sizeof line->text - 260;      /* of a tensor's text, and of what follows the list */
    h = qn_collective_mix(h, x->dtype | (uint64_t)x->rank << 8);
    if (room) at += (size_t)snprintf(line->text + at, sizeof line->text - at, "%s%s", k ? "," : "", qn_kit_name(x->dtype));
    else if (k < n - 1 && line->text[at - 1] != '.') at += (size_t)snprintf(line->text + at, sizeof line->text - at, ",...");
    for (int32_t d = 0; d < x->rank; d++) {
      h = qn_collective_mix(h, (uint64_t)x->dim[d]);
      if (room) at += (size_t)snprintf(line->text + at, sizeof line->text - at, "%c%lld", d ? 'x' : '/', (long long)x->dim[d]);
    }
  }
  at += (size_t)snprintf(line->text + at, sizeof line->text - at, "]");
  if (n > 1) at += (size_t)snprintf(line->text + at, sizeof line->text - at, " (%d tensors)", (int)n);
  if (reduces) at += (size_t)snprintf(line->text + at, sizeof line->text - at, " reduction=%s", reduction[a->reduction]);
  if (op->op == QN_OP_BROADCAST) at += (size_t)snprintf(line->text + at, sizeof line->text - at, " root=%lld", (long long)a->root);
  if (pair) at += (size_t)snprintf(line->text + at, sizeof line->text - at, " peer=%lld", (long long)a->peer);
  if (reduces) h = qn_collective_mix(h, (uint64_t)a->reduction);
  if (op->op == QN_OP_BROADCAST) h = qn_collective_mix(h, (uint64_t)a->root);
  line->hash = h;
}

/* Does the problem fit the group? Sets the refusal if not. */
static inline qn_status qn_collective_fits(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_collective *a = (const qn_collective *)op->attr;
  const int64_t size = r->demands->ranks > 0 ? r->demands->ranks : 1;
  const int shares = op->op == QN_OP_REDUCE_SCATTER || op->op == QN_OP_ALL_GATHER || op->op == QN_OP_ALL_TO_ALL;
  const int pair = op->op == QN_OP_SEND || op->op == QN_OP_RECV;
  const int64_t one = op->op == QN_OP_BROADCAST ? a->root : pair ? a->peer : 0;
  qn_refusal *f = &p->refusal;
  if (shares && a->ranks != size) {
    snprintf(f->rule, sizeof f->rule, "ranks must be the number of ranks of the context's group");
    snprintf(f->seen, sizeof f->seen, "%lld", (long long)a->ranks);
    snprintf(f->needed, sizeof f->needed, "%lld", (long long)size);
    return QN_UNSUPPORTED;
  }
  if (one >= size) {
    snprintf(f->rule, sizeof f->rule, "%s must be a rank of the context's group", pair ? "peer" : "root");
    snprintf(f->seen, sizeof f->seen, "%lld", (long long)one);
    snprintf(f->needed, sizeof f->needed, "less than %lld", (long long)size);
    return QN_UNSUPPORTED;
  }
  return QN_OK;
}

#endif
