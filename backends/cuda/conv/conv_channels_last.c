/* conv_channels_last.c -- convolution in any layout, or with channels that are no multiple of 16 bytes, by engines for packed channels
 * last: operands are copied to workspace, the channels of each group padded with zeros where that pays, and the result is copied back
 * (conv_layout.cu). The convolution is delegated: as it is to the best engine, padded to cuda/wgmma, cuda/mma, cuda/grouped or
 * cuda/by_group. f16, bf16 and f32.
 *
 * Refused: what needs more workspace than twice the operands, such as padded groups of one or two channels. */
#include "conv_layout.h"
#include "cuda_backend.h"
#include "engines.h"

enum { MAX_ROLES = 4 };

/* A tensor as given, and as the inner convolution sees it. */
typedef struct side {
  int32_t  at;                            /* its value number in the request */
  bool     moved, written;
  uint64_t offset, bytes;                 /* of the copy in workspace, if moved */
  cuda_relayout layout;
} side;

typedef struct state {
  int      n;
  side     side[MAX_ROLES];
  qn_value value[MAX_ROLES];              /* of the inner convolution */
  int32_t  arg[MAX_ROLES], first[MAX_ROLES + 1];
  qn_node  node;
  qn_part *conv;
  uint64_t scratch;                       /* offset of the part's own workspace */
} state;

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
  if (st && st->conv) cuda_host->part_release(st->conv);
  cuda_release(p);
}

/* The inner tensor for v, and how to copy: filters, width: those of a group, padded; 0: the dim is not in groups. */
static bool describe(side *s, qn_value *inner, const qn_value *v, int64_t groups, int64_t filters, int64_t width, bool w)
{
  const int c = v->rank == 1 ? 0 : 1;
  const int64_t channels = w ? width : groups * width, n = filters ? groups * filters : v->dim[0];
  *inner = *v;
  inner->dim[c] = channels;
  if (v->rank > 1) inner->dim[0] = n;
  s->moved = !qn_same_dims(v, inner) || (v->rank > 1 && (!qn_is_channels_last(v) || v->align < 16));
  inner->flags = s->written ? QN_VALUE_ESCAPE : 0;
  inner->producer = s->written ? 0 : -1;
  inner->last_user = s->written ? -1 : 0;
  inner->over = -1;
  if (!s->moved) return true;
  packed(inner);
  s->bytes = (uint64_t)qn_round_up(qn_elements(inner) * qn_kit_bytes(v->dtype), 256);
  return cuda_relayout_of(&s->layout, v, filters ? groups : v->rank == 1 ? 1 : v->dim[0], filters ? filters : 1, w ? 1 : groups, width);
}

/* Delegates the inner convolution. */
static qn_status prepare_conv(const qn_request *r, state *st, bool pad)
{
  qn_request part = {
    .struct_size = sizeof part, .instance = r->instance, .op = &st->node, .n_ops = 1, .n_values = (uint32_t)st->n, .value = st->value
  };
  if (!pad) return r->host->part_prepare(r, &part, NULL, &st->conv);
  const bool any_order = r->demands->determinism < QN_DET_BATCH || st->node.op == QN_OP_CONV_BACKWARD_FILTER;   /* else wgmma's tiles differ */
  const bool wgmma = r->device->arch_major == 9 && st->value[0].dtype != QN_F32 && any_order;
  const bool groups = ((const qn_conv *)st->node.attr)->groups > 1;
  qn_status s = r->host->part_prepare(r, &part, groups ? "cuda/grouped" : wgmma ? "cuda/wgmma" : "cuda/mma", &st->conv);
  if (s && groups) s = r->host->part_prepare(r, &part, "cuda/mma", &st->conv);
  if (s && groups) s = r->host->part_prepare(r, &part, "cuda/by_group", &st->conv);
  return s;
}

/* Prepares with or without padding into out, with a state of its own. */
static qn_status attempt(const qn_request *r, bool pad, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_conv *c = op->attr;
  const bool forward = op->op == QN_OP_CONV_FORWARD, filter = op->op == QN_OP_CONV_BACKWARD_FILTER;
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  const int64_t unit = pad ? 16 / qn_kit_bytes(r->value[op->arg[op->first[0]]].dtype) : 1;
  bool moves = false, fits = true;
  double bytes = 0, copied = 0;
  for (uint32_t role = 0; role < op->n_roles; role++) {     /* at most one value per role; bias may be absent */
    st->first[role] = st->n;
    if (op->first[role] == op->first[role + 1]) continue;
    side *s = &st->side[st->n];
    s->at = op->arg[op->first[role]];
    s->written = role >= op->n_inputs;
    const qn_value *v = &r->value[s->at];
    /* x [N, C, ...]  w [K, C / groups, ...]  y [N, K, ...]  bias [K], in role order */
    const bool is_w = filter ? s->written : role == 1, is_bias = forward && role == 2;
    const int64_t here = v->dim[is_bias ? 0 : 1], width = qn_round_up(is_w ? here : here / c->groups, unit);
    fits &= describe(s, &st->value[st->n], v, c->groups, is_w ? qn_round_up(v->dim[0] / c->groups, unit) : 0, width, is_w);
    bytes += (double)qn_elements(v) * (double)qn_kit_bytes(v->dtype);
    if (s->moved) {
      s->offset = st->scratch;
      st->scratch += s->bytes;
      copied += 2000 + ((double)s->bytes + (double)qn_elements(v) * (double)qn_kit_bytes(v->dtype)) / 2200;
      moves = true;
    }
    st->arg[st->n] = st->n;
    st->n++;
  }
  st->first[op->n_roles] = st->n;
  st->node = *op;
  st->node.first = st->first;
  st->node.arg = st->arg;
  if (!moves) return qn_refuse(out, "already packed channels last", "x", "another layout, or C no multiple of 16 bytes", "%s", "nhwc");
  if (!fits) return qn_refuse(out, "fewer than 2^31 pixels, a bias of 2 or 4 bytes an element", "x", "", "%s", "more");
  const qn_prepared *answer = prepare_conv(r, st, pad) ? NULL : r->host->part_answer(st->conv);
  if (!answer || answer->class_ != QN_CLASS_TUNED)
    return qn_refuse(out, "a tuned engine for packed channels last", "x", "what one takes", "%s", "another");
  out->workspace = st->scratch + answer->workspace;
  out->counters = answer->counters;
  out->estimate = answer->estimate > 0 ? answer->estimate + copied : 0;
  out->numerics = answer->numerics;
  out->math = answer->math;
  out->traits = answer->traits & (QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES | QN_TRAIT_BATCH_INVARIANT);     /* copies round nothing */
  if ((double)st->scratch > 2 * bytes + (1 << 20))
    return qn_refuse(out, "copies of at most twice the operands", "x", "more channels a group", "%lld bytes", (long long)st->scratch);
  if (out->workspace > r->demands->workspace_limit)
    return qn_refuse(out, "workspace for copies", "x", "a limit above it", "%llu", (unsigned long long)out->workspace);
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const uint32_t dtype = r->value[r->op[0].arg[r->op[0].first[0]]].dtype;
  if (dtype != QN_F16 && dtype != QN_BF16 && dtype != QN_F32)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(dtype));
  qn_prepared padded = *out;
  const qn_status plain = attempt(r, false, out), s = attempt(r, true, &padded);
  const bool by_time = r->demands->determinism < QN_DET_BATCH;              /* estimates depend on the batch */
  const bool take_padded = !s && (plain || (by_time && padded.estimate > 0 && out->estimate > padded.estimate));
  if (plain || take_padded) release(out);
  if (s || !take_padded) release(&padded);
  if (take_padded) *out = padded;
  else if (plain) out->refusal = s == QN_UNSUPPORTED ? padded.refusal : out->refusal;
  return take_padded ? QN_OK : plain;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_host->part_build(((state *)out->state)->conv);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  char *base = launch->workspace;
  void *ptr[MAX_ROLES];
  qn_status status = QN_OK;
  for (int i = 0; i < st->n && !status; i++) {
    const side *s = &st->side[i];
    ptr[i] = s->moved ? base + s->offset : launch->ptr[s->at];
    if (s->moved && !s->written) status = cuda_relayout_run(&s->layout, launch->ptr[s->at], ptr[i], false, launch->stream);
  }
  if (!status) status = cuda_host->part_run(st->conv, launch, ptr, base + st->scratch, launch->counters);
  for (int i = 0; i < st->n && !status; i++) {
    const side *s = &st->side[i];
    if (s->moved && s->written) status = cuda_relayout_run(&s->layout, launch->ptr[s->at], ptr[i], true, launch->stream);
  }
  return status;
}

#define ROW(op_) { .name = "channels_last", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_channels_last) = { rows, sizeof rows / sizeof *rows };
