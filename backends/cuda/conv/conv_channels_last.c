/* conv_channels_last.c -- convolution in any layout, or with channels that are no multiple of 16 bytes, by engines for packed channels
 * last: operands are copied to workspace, the channels of each group padded with zeros where that pays, and the result is copied back
 * (conv_layout.cu). The convolution is delegated: as it is to the best engine, padded to cuda/wgmma, cuda/mma, cuda/grouped or
 * cuda/by_group. So are the ops that follow it one after another: what is copied back is the last one's result. f16, bf16 and f32.
 *
 * Refused: what needs more workspace than twice the operands, such as padded groups of one or two channels. */
#include <quern/program.h>
#include "conv_layout.h"
#include "cuda_backend.h"
#include "engines.h"
#include "program/chain.h"

enum { MAX_NODES = 6, MAX_ROLES = 8, MAX_VALUES = 32 };

/* Copies of the tensors as they are, or padded. */
typedef enum form { ALL, PADDED } form;

/* A tensor as given, and as the inner convolution sees it. */
typedef struct side {
  int32_t  at;                            /* its value number in the request */
  bool     moved, written;
  uint64_t offset, bytes;                 /* of the copy in workspace, if moved */
  cuda_relayout layout;
} side;

typedef struct state {
  int      n;
  side     side[MAX_VALUES];
  qn_value value[MAX_VALUES];             /* of the inner region */
  qn_node  node[MAX_NODES];
  int32_t  arg[MAX_NODES][MAX_ROLES], first[MAX_NODES][MAX_ROLES + 1];
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
  inner->dim[c] = channels;
  if (v->rank > 1) inner->dim[0] = n;
  s->moved = !qn_same_dims(v, inner) || (v->rank > 1 && (!qn_is_channels_last(v) || v->align < 16));
  if (!s->moved) return true;
  packed(inner);
  s->bytes = (uint64_t)qn_round_up(qn_elements(inner) * qn_kit_bytes(v->dtype), 256);
  return cuda_relayout_of(&s->layout, v, filters ? groups : v->rank == 1 ? 1 : v->dim[0], filters ? filters : 1, w ? 1 : groups, width);
}

/* How many of at most `most` ops may go between the copies: the convolution, and those that continue a chain from y. */
static uint32_t chain(const qn_request *r, int32_t y, uint32_t most)
{
  qn_program p;
  qn_program_link link;
  const char *why;
  const uint32_t n = most > 1 ? qn_program_read(&p, r, 1, qn_min_i64(most, MAX_NODES) - 1, y, &why) : 0;
  uint32_t k = 0;
  while (k < n && !qn_program_link_of(&p, k, &link)) k++;
  return 1 + k;
}

/* Delegates the inner convolution. */
static qn_status prepare_conv(const qn_request *r, state *st, uint32_t n_ops, bool pad)
{
  qn_request part = {
    .struct_size = sizeof part, .instance = r->instance, .op = st->node, .n_ops = n_ops, .n_values = (uint32_t)st->n, .value = st->value
  };
  if (!pad) return r->host->part_prepare(r, &part, NULL, &st->conv);
  const bool any_order = r->demands->determinism < QN_DET_BATCH || st->node[0].op == QN_OP_CONV_BACKWARD_FILTER;   /* else wgmma's tiles differ */
  const bool wgmma = r->device->arch_major == 9 && st->value[0].dtype != QN_F32 && any_order;
  const bool groups = ((const qn_conv *)st->node[0].attr)->groups > 1;
  qn_status s = r->host->part_prepare(r, &part, groups ? "cuda/grouped" : wgmma ? "cuda/wgmma" : "cuda/mma", &st->conv);
  if (s && groups) s = r->host->part_prepare(r, &part, "cuda/mma", &st->conv);
  if (s && groups) s = r->host->part_prepare(r, &part, "cuda/by_group", &st->conv);
  return s;
}

/* Channels are a multiple of it. */
static int64_t unit_of(const qn_request *r, form form)
{
  return form == PADDED ? 16 / qn_kit_bytes(r->value[r->op[0].arg[r->op[0].first[0]]].dtype) : 1;
}

/* The number in the inner region of what op k has as this role; new values are described. *fits: all can be copied. */
static int32_t number(const qn_request *r, state *st, uint32_t k, uint32_t n_ops, uint32_t role, form form, bool *fits)
{
  const qn_node *conv = &r->op[0], *op = &r->op[k];
  const int32_t at = op->arg[op->first[role]];
  const qn_value *v = &r->value[at];
  for (int i = 0; i < st->n; i++)
    if (st->side[i].at == at) return st->value[i].last_user = (int32_t)k, i;
  side *s = &st->side[st->n];
  qn_value *inner = &st->value[st->n];
  const bool made = role >= op->n_inputs, filter = conv->op == QN_OP_CONV_BACKWARD_FILTER;
  const int64_t unit = unit_of(r, form);
  s->at = at;
  s->written = made && k + 1 == n_ops;
  *inner = *v;
  inner->flags = (v->flags & QN_VALUE_HOST) | (s->written ? QN_VALUE_ESCAPE : 0);
  inner->producer = made ? (int32_t)k : -1;
  inner->last_user = made ? -1 : (int32_t)k;
  inner->over = -1;
  if (k == 0) {
    /* x [N, C, ...]  w [K, C / groups, ...]  y [N, K, ...]  bias [K], in role order */
    const int64_t groups = ((const qn_conv *)conv->attr)->groups;
    const bool is_w = filter ? made : role == 1, is_bias = conv->op == QN_OP_CONV_FORWARD && role == 2;
    const int64_t here = v->dim[is_bias ? 0 : 1], width = qn_round_up(is_w ? here : here / groups, unit);
    *fits &= describe(s, inner, v, groups, is_w ? qn_round_up(v->dim[0] / groups, unit) : 0, width, is_w);
  } else if (made || qn_same_dims(v, &r->value[conv->arg[conv->first[conv->n_inputs]]])) {
    *fits &= describe(s, inner, v, 1, 0, v->dim[1], false);
  }
  /* others are broadcast as they are */
  if (made && !s->written) s->moved = false;                /* it stays within the part */
  return st->n++;
}

/* Prepares the first n_ops ops into out, with a state of its own. */
static qn_status attempt(const qn_request *r, uint32_t n_ops, form form, qn_prepared *out)
{
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  bool moves = false, fits = true;
  double bytes = 0, copied = 0;
  for (uint32_t k = 0; k < n_ops; k++) {
    const qn_node *op = &r->op[k];
    st->node[k] = *op;
    st->node[k].first = st->first[k], st->node[k].arg = st->arg[k];
    for (uint32_t role = 0, n = 0; role < op->n_roles; role++) {      /* at most one value per role */
      if (op->first[role] < op->first[role + 1]) st->arg[k][n++] = number(r, st, k, n_ops, role, form, &fits);
      st->first[k][role + 1] = (int32_t)n;
    }
  }
  for (int i = 0; i < st->n; i++) {
    side *s = &st->side[i];
    const double given = (double)qn_elements(&r->value[s->at]) * (double)qn_kit_bytes(r->value[s->at].dtype);
    bytes += given;
    if (!s->moved) continue;
    s->offset = st->scratch;
    st->scratch += s->bytes;
    copied += 2000 + ((double)s->bytes + given) / 2200;
    moves = true;
  }
  if (!moves) return qn_refuse(out, "already packed channels last", "x", "another layout, or C no multiple of 16 bytes", "%s", "nhwc");
  if (!fits) return qn_refuse(out, "fewer than 2^31 pixels, tensors of 2 or 4 bytes an element", "x", "", "%s", "more");
  const qn_prepared *answer = prepare_conv(r, st, n_ops, form == PADDED) ? NULL : r->host->part_answer(st->conv);
  if (!answer || answer->class_ != QN_CLASS_TUNED)
    return qn_refuse(out, "a tuned engine for packed channels last", "x", "what one takes", "%s", "another");
  out->n_ops = answer->n_ops;
  out->workspace = st->scratch + answer->workspace;
  out->counters = answer->counters;
  out->estimate = answer->estimate > 0 ? answer->estimate + copied : 0;
  out->numerics = answer->numerics;
  out->math = answer->math;
  out->traits = answer->traits & ~(uint64_t)QN_TRAIT_PORTABLE;        /* copies round nothing */
  if ((double)st->scratch > 2 * bytes + (1 << 20))
    return qn_refuse(out, "copies of at most twice the operands", "x", "more channels a group", "%lld bytes", (long long)st->scratch);
  if (out->workspace > r->demands->workspace_limit)
    return qn_refuse(out, "workspace for copies", "x", "a limit above it", "%llu", (unsigned long long)out->workspace);
  return QN_OK;
}

/* Prepares as many of the ops that follow as the inner engine takes, at most `most` ops in all. */
static qn_status attempt_region(const qn_request *r, uint32_t most, form form, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *y = &r->value[op->arg[op->first[op->n_inputs]]];
  const qn_conv *c = op->attr;
  const bool follows = op->op == QN_OP_CONV_FORWARD && y->dim[1] / c->groups % unit_of(r, form) == 0;    /* else y's copy has other channels */
  uint32_t n = follows ? chain(r, op->arg[op->first[op->n_inputs]], most) : 1;
  for (;;) {
    const qn_status status = attempt(r, n, form, out);
    const uint32_t taken = status || !out->n_ops ? 1 : out->n_ops;
    if (n == 1 || taken == n) return status;
    release(out);
    n = taken;
  }
}

/* The time of the passes by which `here` leaves more ops than `there` does: each reads and writes y. */
static double passes(const qn_request *r, const qn_prepared *here, const qn_prepared *there)
{
  const qn_value *y = &r->value[r->op[0].arg[r->op[0].first[r->op[0].n_inputs]]];
  const uint32_t a = here->n_ops, b = there->n_ops;
  return a < b ? (b - a) * (2000 + 2.0 * (double)qn_elements(y) * (double)qn_kit_bytes(y->dtype) / 2200) : 0;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const uint32_t dtype = r->value[r->op[0].arg[r->op[0].first[0]]].dtype;
  if (dtype != QN_F16 && dtype != QN_BF16 && dtype != QN_F32)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(dtype));
  const bool by_time = r->demands->determinism < QN_DET_BATCH;              /* estimates depend on the batch */
  const qn_prepared blank = *out;
  qn_status first = QN_OK;
  bool found = false;
  for (form form = ALL; form <= PADDED; form++) {
    qn_prepared other = blank;
    const qn_status s = attempt_region(r, r->n_ops, form, &other);
    if (form == ALL) first = s;
    const bool better = !found || (by_time && other.estimate > 0 &&
                                   out->estimate + passes(r, out, &other) > other.estimate + passes(r, &other, out));
    if (s) {
      release(&other);
      if (!found && (form == ALL || s == QN_UNSUPPORTED)) out->refusal = other.refusal;
    } else if (better) {
      if (found) release(out);
      *out = other, found = true;
    } else release(&other);
  }
  return found ? QN_OK : first;
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
  void *ptr[MAX_VALUES];
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

#define ROW(op_, pattern_) \
  { .name = "channels_last", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
    .pattern = pattern_, .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine rows[] = {
  ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, NULL), ROW(QN_OP_CONV_BACKWARD_FILTER, NULL)
};
CUDA_ENGINES(conv_channels_last) = { rows, sizeof rows / sizeof *rows };
