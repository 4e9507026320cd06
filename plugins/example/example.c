/* example.c -- the smallest complete backend: one engine, relu of packed f32 tensors, for the device kind "cpu".
 *
 * Copy it, replace relu() by your kernel, refuse in prepare() what it does not take, and name it in the table.
 * docs/adding-an-engine.md goes through it step by step. */
#include <quern/kit.h>

static const qn_host *host;               /* core's functions for backends */

/* ---- the kernel: y = max(x, 0); propagates NaN ---------------------------------------------- */

static void relu(const float *x, float *y, int64_t n)
{
  for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

/* ---- what it refuses, and why ---------------------------------------------------------------- */

/* Host code that reads the description of the problem, never a pointer. Accepting is a promise that run() must keep. */
static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_value *x = &request->value[qn_role(request->op, QN_ROLE_RELU_X)];
  const qn_value *y = &request->value[qn_role(request->op, QN_ROLE_RELU_Y)];
  if (x->dtype != QN_F32) return qn_refuse(p, "the kernel reads f32", "x", "f32", "%s", qn_kit_name(x->dtype));
  if (y->dtype != QN_F32) return qn_refuse(p, "the kernel writes f32", "y", "f32", "%s", qn_kit_name(y->dtype));
  if (!qn_same_dims(x, y)) return qn_refuse(p, "the kernel broadcasts nothing", "x", "y's dims", "%s", "1 for many");
  if (!qn_is_packed(x) || !qn_is_packed(y))
    return qn_refuse(p, "the kernel walks one packed row", qn_is_packed(x) ? "y" : "x", "the last dim fastest, without gaps",
                     "%s", "other strides");

  p->n_ops = 1;                           /* takes the first of the ops offered: no fusion here */
  p->word[0] = (uint64_t)qn_elements(y);  /* for run(); more than 8 words go into p->state */
  p->word[1] = (uint64_t)request->op->arg[0];
  p->word[2] = (uint64_t)request->op->arg[1];
  return QN_OK;
}

/* ---- execution ------------------------------------------------------------------------------- */

/* Pointers are in the order of the request's values. May run in many threads at once. */
static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  relu(launch->ptr[p->word[1]], launch->ptr[p->word[2]], (int64_t)p->word[0]);
  return QN_OK;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static const qn_engine row[] = {
  { .name = "packed", .op = QN_OP_RELU, .class_ = QN_CLASS_TUNED,
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    .prepare = prepare, .run = run },
};
static const qn_engine_list list = { row, sizeof row / sizeof *row };
static const qn_engine_list *const engines[] = { &list, NULL };

static const qn_backend backend = {
  .struct_size = sizeof(qn_backend),
  .abi_minor   = QN_ABI_MINOR,
  .engine_size = sizeof(qn_engine),
  .name        = "example",
  .version     = "1",
  .device_kind = "cpu",                   /* the device kind whose memory and streams it uses; .device would bring its own */
  .engines     = engines,
};

/* The only symbol that a plugin exports. It refuses a libquern that is older than the headers it was compiled with: before minor 4
 * roles had other numbers, and qn_backend.open another form, which the size of qn_host does not tell. */
qn_entry_fn QN_BACKEND_ENTRY(example);
QN_EXPORT qn_status QN_BACKEND_ENTRY(example)(const qn_host *h, const qn_backend **out)
{
  if (h->struct_size < sizeof *h || h->abi_major != QN_ABI_MAJOR || h->abi_minor < 4) return QN_NO_BACKEND;
  host = h;
  *out = &backend;
  return QN_OK;
}
