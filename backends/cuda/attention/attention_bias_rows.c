/* attention_bias_rows.c -- attention with a 16-bit bias whose rows do not all begin at multiples of 16 bytes, as two parts: a copy of the
 * bias with rows that do, into workspace, and attention by the best engine for it. Not its gradient, which gained 2% (32 x 12 x 197 on an
 * H200: 88.5 us, and 89.8 by wgmma's estimate, which reads single elements).
 *
 * Kernels read rows of 197 or 49 keys, as images have them, element by element: 16 loads for two of 16 bytes. Networks share a bias
 * between their sequences, so it is small beside q, k and v. */
#include "cuda_backend.h"
#include "engines.h"
#include "kit/part.h"

enum { MAX_VALUES = 32 };

typedef struct state {
  qn_part *part[2];                       /* bias -> rows; the op with those */
  int32_t  bias, n_values;                /* bias: its argument */
  int32_t  value[MAX_VALUES];             /* of the request, by argument */
  uint64_t scratch;                       /* offset in the workspace, where the rows come first */
} state;

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (st) cuda_parts_release(st->part, 2);
  cuda_release(p);
}

/* ---- what it refuses ------------------------------------------------------------------------------------------------- */

static bool in_rows(const qn_value *bias)
{
  bool aligned = bias->align >= 16 && bias->stride[3] == 1;
  for (int d = 0; d < 3; d++) aligned &= bias->dim[d] == 1 || bias->stride[d] % 8 == 0;
  return aligned;
}

static qn_status refuse(const qn_request *r, qn_prepared *out, const qn_value *bias)
{
  if (!bias) return qn_refuse(out, "a bias", "bias", "given", "%s", "absent");
  if (bias->dtype != QN_F16 && bias->dtype != QN_BF16)
    return qn_refuse(out, "a bias of 16 bits", "bias", "f16 or bf16", "%s", qn_kit_name(bias->dtype));
  if (bias->dim[3] < 2) return qn_refuse(out, "a bias of each key", "bias", "keys in dim 3", "%s", "1");
  if (in_rows(bias)) return qn_refuse(out, "a bias whose rows must be moved", "bias", "one not aligned to 16 bytes", "%s", "one that is");
  if (r->op[0].first[r->op[0].n_roles] > MAX_VALUES)
    return qn_refuse(out, "arguments", "", "at most 32", "%d", (int)r->op[0].first[r->op[0].n_roles]);
  return QN_OK;
}

/* ---- prepare, build, run --------------------------------------------------------------------------------------------- */

static qn_value rows_of(const qn_value *bias)
{
  qn_value v = *bias;
  int64_t stride = qn_round_up(v.dim[3], 8);
  v.stride[3] = 1, v.align = 256, v.flags = 0;
  for (int d = 2; d >= 0; d--) v.stride[d] = stride, stride *= v.dim[d];
  return v;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *bias = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_BIAS);
  qn_status s = refuse(r, out, bias);
  if (s) return s;
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  const qn_value rows = rows_of(bias);
  qn_value value[MAX_VALUES];
  int32_t arg[MAX_VALUES];
  st->bias = op->first[QN_ROLE_ATTENTION_FORWARD_BIAS], st->n_values = op->first[op->n_roles];
  for (int32_t i = 0; i < st->n_values; i++) st->value[i] = op->arg[i], value[i] = r->value[op->arg[i]], arg[i] = i;
  value[st->bias] = rows;
  qn_node attention = *op;
  attention.arg = arg;
  const qn_prepared *of[2] = { NULL, NULL };
  if (!cuda_part_copy(r, bias, &rows, &st->part[0])) of[0] = r->host->part_answer(st->part[0]);
  if (of[0] && !cuda_part_prepare(r, &attention, value, &st->part[1])) of[1] = r->host->part_answer(st->part[1]);
  if (!of[1] || of[1]->class_ != QN_CLASS_TUNED) {
    release(out);
    return qn_refuse(out, "a tuned engine for attention with aligned rows of bias", "q", "what one takes", "%s", "another");
  }
  const int64_t n = rows.dim[0] * rows.stride[0];
  st->scratch = (uint64_t)qn_round_up(n * 2, 256);
  for (int i = 0; i < 2; i++) cuda_parts_add(out, of[i], st->scratch);
  out->traits |= of[1]->traits & QN_TRAIT_TENSOR_CORES;     /* a copy has none */
  out->math = of[1]->math, out->numerics = of[1]->numerics;
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
  void *ptr[MAX_VALUES], *copied[2] = { launch->ptr[st->value[st->bias]], room };
  for (int32_t i = 0; i < st->n_values; i++) ptr[i] = launch->ptr[st->value[i]];
  ptr[st->bias] = room;
  const qn_status s = cuda_host->part_run(st->part[0], launch, copied, room + st->scratch, launch->counters);
  return s ? s : cuda_host->part_run(st->part[1], launch, ptr, room + st->scratch, launch->counters);
}

static const qn_engine row[] = {
  { .name = "bias_rows", .op = QN_OP_ATTENTION_FORWARD, .class_ = QN_CLASS_TUNED,
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
    .prepare = prepare, .build = build, .run = run, .release = release },
};
CUDA_ENGINES(attention_bias_rows) = { row, sizeof row / sizeof *row };
