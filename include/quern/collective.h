/* collective.h -- for engines of collectives: what ranks must agree on, as text and as a number; a list's tensors as a stream. Static
 * inline, as kit.h.
 *
 * Gradients are collectives, too. The loss is the sum over all ranks of each one's; dy and dx are a rank's gradients of it by its y and x,
 * s its scale (none: 1), P the number of ranks.
 *   y = all_reduce x              dx = s all_reduce dy; of avg: s times the avg of dy
 *       of max or min             dx = all_reduce dy where x = y, else 0 (where ranks share the extreme, divided among them)
 *       of prod                   dx = y / x all_reduce dy, where x is not 0
 *   y = reduce_scatter x          dx = s all_gather dy; of avg: s / P of it
 *   y = all_gather x              dx = reduce_scatter dy
 *   y = broadcast x               dx = all_reduce dy on the root (a reduction to the root would do), 0 elsewhere
 *   y = all_to_all x              dx = all_to_all dy
 *   send x to q, which receives y dx = what q sends back, its dy; a rank that sends in the one direction receives in the other
 * So a graph of collectives is differentiated by a graph of collectives, whose lines come in the reverse order on all ranks.
 * tests/t_collectives.c holds them to it: by <A x, dy> = <x, A' dy>, summed over ranks in f64, and by differences. */
#ifndef QUERN_COLLECTIVE_H
#define QUERN_COLLECTIVE_H
#include <stdio.h>
#include <quern/kit.h>

/* What a slot's leave is called with, instead of whether the group has failed, from another thread while the context's may be in the engine:
 * what waits on the device, or in that call, is to end at once; the pointer stays, for another call of leave follows. An engine stores its
 * pointer as one atomic word, and watches the group once more before it uses what it points to. */
enum { QN_COLLECTIVE_BREAK = 2 };

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

/* ---- tensors as a stream ------------------------------------------------------------------------- */

/* Where a tensor, or the shares of it, are on one side. */
typedef struct qn_collective_side {
  int32_t number;                         /* value of the request */
  int32_t packed;                         /* a share's elements follow each other */
  int64_t stride[QN_MAX_RANK];
  int64_t step;                           /* bytes from one share to the next */
} qn_collective_side;

/* A tensor of a list, as a part of a stream: what is sent of one share. */
typedef struct qn_collective_piece {
  uint32_t dtype;
  int32_t  rank;
  int64_t  bytes, elements;               /* of an element; of a share */
  int64_t  dim[QN_MAX_RANK];
  int64_t  begin, units;                  /* where in the stream; what an element takes of it */
  qn_collective_side x, y;
} qn_collective_piece;

static inline qn_collective_side qn_collective_side_of(const qn_value *v, int32_t number, const qn_collective_piece *p)
{
  qn_collective_side s = { number, 1, { 0 }, 0 };
  int64_t expected = 1;
  memcpy(s.stride, v->stride, sizeof s.stride);
  for (int32_t d = p->rank - 1; d >= 0; d--) {
    if (p->dim[d] > 1 && s.stride[d] != expected) s.packed = 0;
    expected *= p->dim[d];
  }
  if (p->rank && v->dim[0] != p->dim[0]) s.step = p->dim[0] * v->stride[0] * p->bytes;
  return s;
}

/* The i-th tensor of the request's first op, without its place in a stream. */
static inline qn_collective_piece qn_collective_piece_of(const qn_request *r, int32_t i)
{
  const qn_node *op = &r->op[0];
  const int32_t x = op->arg[op->first[0] + i], y = op->arg[op->first[op->n_inputs] + i];
  const qn_value *vx = &r->value[x], *vy = &r->value[y], *share = op->op == QN_OP_REDUCE_SCATTER ? vy : vx;
  qn_collective_piece p;
  memset(&p, 0, sizeof p);
  p.dtype = vx->dtype;
  p.rank = vx->rank;
  p.bytes = p.units = qn_kit_bytes(vx->dtype);
  p.elements = 1;
  memcpy(p.dim, share->dim, sizeof p.dim);
  if (op->op == QN_OP_ALL_TO_ALL) p.dim[0] /= ((const qn_collective *)op->attr)->ranks;
  for (int32_t d = 0; d < p.rank; d++) p.elements *= p.dim[d];
  p.x = qn_collective_side_of(vx, x, &p);
  p.y = qn_collective_side_of(vy, y, &p);
  return p;
}

static inline void qn_collective_move_run(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, int64_t bytes)
{
  if (to_step == bytes && from_step == bytes) {
    memcpy(to, from, (size_t)(n * bytes));
    return;
  }
  for (int64_t i = 0; i < n; i++) memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

/* n elements of a share from the first-th on, to `packed` or (out) from it. */
static inline void qn_collective_move(const qn_collective_piece *p, const qn_collective_side *s, char *tensor, int64_t first, int64_t n,
                                      char *packed, int out)
{
  if (s->packed || !p->rank) {
    char *at = tensor + first * p->bytes;
    memcpy(out ? at : packed, out ? packed : at, (size_t)(n * p->bytes));
    return;
  }
  int64_t index[QN_MAX_RANK];
  for (int32_t d = p->rank - 1; d >= 0; d--) {
    index[d] = first % p->dim[d];
    first /= p->dim[d];
  }
  const int32_t last = p->rank - 1;
  const int64_t step = s->stride[last] * p->bytes;
  while (n > 0) {
    const int64_t run = qn_min_i64(n, p->dim[last] - index[last]);
    int64_t offset = 0;
    for (int32_t d = 0; d < p->rank; d++) offset += index[d] * s->stride[d];
    char *at = tensor + offset * p->bytes;
    if (out) qn_collective_move_run(at, step, packed, p->bytes, run, p->bytes);
    else qn_collective_move_run(packed, p->bytes, at, step, run, p->bytes);
    packed += run * p->bytes;
    n -= run;
    index[last] += run;
    for (int32_t d = last; d > 0 && index[d] == p->dim[d]; d--) {
      index[d] = 0;
      index[d - 1]++;
    }
  }
}

/* The elements of a piece that are in units b0 to b1 of the stream; 0: none. */
static inline int qn_collective_within(const qn_collective_piece *p, int64_t b0, int64_t b1, int64_t *first, int64_t *n)
{
  const int64_t from = qn_max_i64(b0, p->begin), to = qn_min_i64(b1, p->begin + p->elements * p->units);
  if (from >= to) return 0;
  *first = (from - p->begin) / p->units;
  *n = (to - from) / p->units;
  return 1;
}

#endif
