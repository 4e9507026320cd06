/* conv_channels_last.c -- convolution in any layout, or with channels that are no multiple of 16 bytes, by engines for packed channels
 * last: operands are copied to workspace, channels padded with zeros, and the result is copied back. The copies and the convolution are
 * delegated. f16, bf16 and f32, one group. */
#include "cuda_backend.h"
#include "engines.h"

enum { MAX_ROLES = 4 };

/* A tensor as given, and as the inner convolution sees it. */
typedef struct side {
  int32_t  at;                            /* its value number in the request */
  bool     moved, written, padded;
  qn_value outer, inner;                  /* inner: packed channels last, channel dims rounded up */
  uint64_t offset, bytes;                 /* in workspace, if moved */
  qn_value pair[2];                       /* the copy's x and y */
  qn_node  node;
  qn_part *copy;
} side;

typedef struct state {
  int      n;
  side     side[MAX_ROLES];
  qn_value value[MAX_ROLES];              /* of the inner convolution */
  int32_t  arg[MAX_ROLES], first[MAX_ROLES + 1];
  qn_node  node;
  qn_conv  attr;
  qn_part *conv;
  uint64_t scratch;                       /* offset of the parts' own workspace */
} state;

static const int32_t one_each[] = { 0, 1, 2, 3, 4 };

static void packed(qn_value *v)
{
  int64_t stride = 1;
  if (v->rank > 1) v->stride[1] = 1, stride = v->dim[1];
  for (int d = v->rank - 1; d >= 2; d--) v->stride[d] = stride, stride *= v->dim[d];
  v->stride[0] = stride;
  v->align = 16;
}

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (!st) return;
  for (int i = 0; i < st->n; i++)
    if (st->side[i].copy) cuda_host->part_release(st->side[i].copy);
  if (st->conv) cuda_host->part_release(st->conv);
  cuda_release(p);
}

/* Describes the inner tensor of side s; c, k: its dims of channels and filters, -1: none; unit: channels in 16 bytes. */
static void describe(side *s, const qn_value *v, int c, int k, int64_t unit)
{
  s->outer = s->inner = *v;
  if (c >= 0) s->inner.dim[c] = qn_round_up(v->dim[c], unit);
  if (k >= 0) s->inner.dim[k] = qn_round_up(v->dim[k], unit);
  s->padded = !qn_same_dims(&s->outer, &s->inner);
  s->moved = s->padded || (v->rank > 1 && (!qn_is_channels_last(v) || v->align < 16));
  if (s->moved) packed(&s->inner);
  s->inner.over = -1;
  s->bytes = s->moved ? (uint64_t)qn_round_up(qn_elements(&s->inner) * qn_kit_bytes(v->dtype), 256) : 0;
}

/* v as a value of a one-op request, read or written. */
static qn_value alone(qn_value v, bool written)
{
  v.flags = written ? QN_VALUE_ESCAPE : 0;
  v.producer = written ? 0 : -1;
  v.last_user = written ? -1 : 0;
  v.over = -1;
  return v;
}

/* Prepares the copy between the two, over the outer tensor's elements. */
static qn_status prepare_copy(const qn_request *r, side *s)
{
  qn_value inner = s->inner;
  memcpy(inner.dim, s->outer.dim, sizeof inner.dim);
  s->pair[0] = alone(s->written ? inner : s->outer, false);
  s->pair[1] = alone(s->written ? s->outer : inner, true);
  s->node = (qn_node){ .op = QN_OP_COPY, .family = QN_FAMILY_TRANSFORM, .n_roles = 2, .n_inputs = 1, .first = one_each, .arg = one_each };
  qn_request part = { .struct_size = sizeof part, .instance = r->instance, .op = &s->node, .n_ops = 1, .n_values = 2, .value = s->pair };
  return r->host->part_prepare(r, &part, NULL, &s->copy);
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static qn_status prepare_parts(const qn_request *r, state *st, qn_prepared *out)
{
  qn_request part = {
    .struct_size = sizeof part, .instance = r->instance, .op = &st->node, .n_ops = 1, .n_values = (uint32_t)st->n, .value = st->value
  };
  const bool any_order = r->demands->determinism < QN_DET_BATCH || st->node.op == QN_OP_CONV_BACKWARD_FILTER;   /* else wgmma's tiles differ */
  const bool wgmma = r->device->arch_major == 9 && st->value[0].dtype != QN_F32 && any_order;
  qn_status s = r->host->part_prepare(r, &part, wgmma ? "cuda/wgmma" : "cuda/mma", &st->conv);
  if (s) return s;
  const qn_prepared *answer = r->host->part_answer(st->conv);
  uint64_t own = answer->workspace;
  out->counters = answer->counters;
  out->estimate = answer->estimate;
  out->numerics = answer->numerics;
  out->math = answer->math;
  out->traits |= answer->traits & QN_TRAIT_BATCH_INVARIANT;     /* the copies round nothing */
  for (int i = 0; i < st->n; i++) {
    side *d = &st->side[i];
    if (!d->moved) continue;
    d->offset = st->scratch;
    st->scratch += d->bytes;
    if ((s = prepare_copy(r, d))) return s;
    answer = r->host->part_answer(d->copy);
    own = most(own, answer->workspace);
    out->counters = most(out->counters, answer->counters);
    out->estimate += 2000 + (double)d->bytes / (d->padded ? 1000 : 2000);
  }
  out->workspace = st->scratch + own;
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_conv *c = op->attr;
  bool forward = op->op == QN_OP_CONV_FORWARD, filter = op->op == QN_OP_CONV_BACKWARD_FILTER;
  const qn_value *first = &r->value[op->arg[op->first[0]]];
  if (first->dtype != QN_F16 && first->dtype != QN_BF16 && first->dtype != QN_F32)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(first->dtype));
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  bool moves = false;
  for (uint32_t role = 0; role < op->n_roles; role++) {     /* at most one value per role; bias may be absent */
    st->first[role] = st->n;
    if (op->first[role] == op->first[role + 1]) continue;
    side *s = &st->side[st->n];
    s->at = op->arg[op->first[role]];
    s->written = role >= op->n_inputs;
    const qn_value *v = &r->value[s->at];
    /* x [N, C, ...]  w [K, C, ...]  y [N, K, ...]  bias [K], in role order */
    bool is_w = filter ? s->written : role == 1, is_bias = forward && role == 2;
    bool is_y = forward ? s->written : role == (filter ? 1u : 0u);
    describe(s, v, is_y || is_bias ? -1 : 1, is_w || is_bias ? 0 : is_y ? 1 : -1, 16 / (int64_t)qn_kit_bytes(first->dtype));
    moves |= s->moved;
    st->arg[st->n] = st->n;
    st->value[st->n++] = alone(s->inner, s->written);
  }
  st->first[op->n_roles] = st->n;
  st->attr = *c;
  st->node = *op;
  st->node.attr = &st->attr;
  st->node.first = st->first;
  st->node.arg = st->arg;
  if (!moves) {
    release(out);
    return qn_refuse(out, "already packed channels last", "x", "another layout, or C no multiple of 16 bytes", "%s", "nhwc");
  }
  qn_status s = prepare_parts(r, st, out);
  if (s || out->workspace > r->demands->workspace_limit) {
    release(out);
    return s ? qn_refuse(out, "an engine for packed channels last", "x", "what cuda/wgmma or cuda/mma takes", "%s", "another problem")
             : qn_refuse(out, "workspace for copies", "x", "a limit above it", "%llu", (unsigned long long)out->workspace);
  }
  out->n_ops = 1;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  (void)r;
  qn_status s = cuda_host->part_build(st->conv);
  for (int i = 0; i < st->n && !s; i++)
    if (st->side[i].copy) s = cuda_host->part_build(st->side[i].copy);
  return s;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  char *base = launch->workspace;
  void *ptr[MAX_ROLES], *scratch = base + st->scratch;
  for (int i = 0; i < st->n; i++) ptr[i] = st->side[i].moved ? base + st->side[i].offset : launch->ptr[st->side[i].at];
  for (int i = 0; i < st->n; i++) {
    const side *s = &st->side[i];
    if (!s->moved || s->written) continue;
    qn_status status = s->padded ? cuda_check(cudaMemsetAsync(ptr[i], 0, s->bytes, launch->stream), "cudaMemsetAsync") : QN_OK;
    if (!status) status = cuda_host->part_run(s->copy, launch, (void *[]){ launch->ptr[s->at], ptr[i] }, scratch, launch->counters);
    if (status) return status;
  }
  qn_status status = cuda_host->part_run(st->conv, launch, ptr, scratch, launch->counters);
  for (int i = 0; i < st->n && !status; i++) {
    const side *s = &st->side[i];
    if (s->moved && s->written)
      status = cuda_host->part_run(s->copy, launch, (void *[]){ ptr[i], launch->ptr[s->at] }, scratch, launch->counters);
  }
  return status;
}

#define ROW(op_) { .name = "channels_last", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
const qn_engine_list cuda_conv_channels_last_list = { rows, sizeof rows / sizeof *rows };
