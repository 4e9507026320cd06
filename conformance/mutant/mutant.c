/* mutant.c -- the backend: delegates to cpu_ref/direct with a bug's hooks around it; and the table. */
#include "mutant.h"

static const qn_host *host;

static const struct mut_bug bugs[] = {
#define BUG(kind, id, a, b, c, bytes) { #id, QN_OP_##kind, a, b, c, bytes },
#include "mutants.h"
#undef BUG
};

/* ---- functions for hooks ------------------------------------------------------------------ */

static int32_t value_index(const struct mut_kept *k, uint32_t role)
{
  return k->first[role] == k->first[role + 1] ? -1 : k->arg[k->first[role]];
}

const qn_value *mut_value(const struct mut_kept *k, uint32_t role)
{
  int32_t i = value_index(k, role);
  return i < 0 ? NULL : &k->value[i];
}

qn_value *mut_altered(struct mut_kept *k, uint32_t role)
{
  int32_t i = value_index(k, role);
  return i < 0 ? NULL : &k->altered[i];
}

void *mut_pointer(const struct mut_call *c, uint32_t role)
{
  int32_t i = value_index(c->k, role);
  return i < 0 ? NULL : c->launch->ptr[i];
}

static void *copied(struct mut_call *c, const qn_value *v, const void *from)
{
  size_t bytes = (size_t)qn_extent_bytes(v);
  void *p = malloc(bytes + 16);
  if (!p || c->n_scratch == MUT_SCRATCH)
    abort();                              /* a test backend may abort */
  if (bytes)
    memcpy(p, from, bytes);
  return c->scratch[c->n_scratch++] = p;
}

void *mut_copy(struct mut_call *c, uint32_t role)
{
  int32_t i = value_index(c->k, role);
  return c->ptr[i] = copied(c, &c->k->value[i], c->launch->ptr[i]);
}

void *mut_keep(struct mut_call *c, uint32_t role)
{
  int32_t i = value_index(c->k, role);
  return copied(c, &c->k->value[i], c->launch->ptr[i]);
}

int64_t mut_offset(const qn_value *v, int64_t i, int64_t *at)
{
  int64_t offset = 0;
  for (int k = v->rank - 1; k >= 0; k--) {
    int64_t index = i % v->dim[k];
    i /= v->dim[k];
    offset += index * v->stride[k];
    if (at)
      at[k] = index;
  }
  return offset;
}

double mut_get(const qn_value *v, const void *p, int64_t i)
{
  return qn_load_f64((const char *)p + mut_offset(v, i, NULL) * qn_kit_bytes(v->dtype), v->dtype);
}

void mut_put(const qn_value *v, void *p, int64_t i, double x)
{
  qn_store_f64((char *)p + mut_offset(v, i, NULL) * qn_kit_bytes(v->dtype), v->dtype, x);
}

static void keep_second(struct mut_kept *k, int32_t between)
{
  const qn_node *second = &k->request->op[1];
  k->n_ops = 2;
  k->between = between;
  k->more = *second;
  memcpy(k->more_first, second->first, (second->n_roles + 1) * sizeof *k->more_first);
  for (int32_t a = 0; a < second->first[second->n_roles]; a++) {
    k->more_number[a] = second->arg[a];
    k->more_value[a] = k->request->value[second->arg[a]];
  }
  if (second->attr) {
    uint64_t bytes;
    memcpy(&bytes, second->attr, sizeof bytes);
    memcpy(k->more_attr, second->attr, bytes < sizeof k->more_attr ? bytes : sizeof k->more_attr);
  }
}

static bool has_second(const struct mut_kept *k, uint32_t kind)
{
  const qn_request *r = k->request;
  return r->n_ops >= 2 && r->op[1].op == kind && r->op[1].first[r->op[1].n_roles] <= MUT_MORE;
}

bool mut_take(struct mut_kept *k, uint32_t output_role, uint32_t second_op)
{
  const qn_request *r = k->request;
  int32_t y = value_index(k, output_role);
  if (y < 0 || !has_second(k, second_op))
    return false;
  const qn_value *made = &r->value[k->number[y]];
  const qn_node *second = &r->op[1];
  int32_t out = second->arg[second->first[second->n_inputs]];
  bool read = false;
  for (int32_t a = 0; a < second->first[second->n_inputs]; a++)
    read |= second->arg[a] == k->number[y];
  if (!read || made->flags & QN_VALUE_ESCAPE || made->last_user != 1 || !qn_same_dims(made, &r->value[out]) ||
      made->dtype != r->value[out].dtype)
    return false;
  keep_second(k, k->number[y]);
  k->number[y] = out;
  k->value[y] = k->altered[y] = r->value[out];
  k->altered[y].over = -1;
  return true;
}

bool mut_take_before(struct mut_kept *k, uint32_t input_role, uint32_t second_op)
{
  int32_t x = value_index(k, input_role);
  if (x < 0 || !has_second(k, second_op) || k->request->value[k->number[x]].producer != 1)
    return false;
  keep_second(k, k->number[x]);
  return true;
}

void *mut_scratch(struct mut_call *c, uint32_t role)
{
  int32_t i = value_index(c->k, role);
  void *p = calloc(1, (size_t)qn_extent_bytes(&c->k->value[i]) + 16);
  if (!p || c->n_scratch == MUT_SCRATCH)
    abort();                              /* a test backend may abort */
  return c->ptr[i] = c->scratch[c->n_scratch++] = p;
}

const qn_value *mut_more(const struct mut_call *c, uint32_t role, void **p)
{
  const struct mut_kept *k = c->k;
  int32_t i = k->more_first[role];
  if (i == k->more_first[role + 1])
    return NULL;
  *p = c->more[i];
  return &k->more_value[i];
}

/* ---- the engine --------------------------------------------------------------------------- */

static void release(qn_prepared *p)
{
  struct mut_kept *k = p->state;
  if (k)
    host->part_release(k->part);
  host->free(k);
  p->state = NULL;
}

static const struct mut_bug *find_bug(const qn_engine *e)
{
  for (size_t i = 0; i < sizeof bugs / sizeof *bugs; i++)
    if (bugs[i].op == e->op && !strcmp(bugs[i].name, e->name))
      return &bugs[i];
  return NULL;
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  int32_t n = op->first[op->n_roles];
  if (n > MUT_VALUES)
    return qn_refuse(p, "a mutant takes few tensors", "", "64", "%d", n);
  struct mut_kept *k = host->alloc(sizeof *k);
  if (!k)
    return host->error(QN_NO_MEMORY, "no memory for a mutant");
  k->bug = find_bug(p->engine);
  k->request = request;
  k->n_ops = 1;
  k->node = *op;
  for (int32_t i = 0; i < n; i++) {
    k->arg[i] = i;
    k->value[i] = k->altered[i] = request->value[op->arg[i]];
    k->altered[i].over = -1;              /* hooks may replace an input by a copy */
    k->number[i] = op->arg[i];
  }
  memcpy(k->first, op->first, (op->n_roles + 1) * sizeof *k->first);
  if (op->attr) {
    uint64_t bytes;                       /* attribute structs begin with their size */
    memcpy(&bytes, op->attr, sizeof bytes);
    memcpy(k->attr, op->attr, bytes < sizeof k->attr ? bytes : sizeof k->attr);
    memcpy(k->original, k->attr, sizeof k->attr);
    k->node.attr = k->attr;
  }
  k->node.first = k->first;
  k->node.arg = k->arg;
  p->state = k;
  if (k->bug->alter && !k->bug->alter(k)) {
    release(p);
    return qn_refuse(p, "the bug would not show", "", "another problem", "%s", "this one");
  }
  qn_request part = *request;
  part.op = &k->node;
  part.n_ops = 1;
  part.value = k->altered;
  part.n_values = (uint32_t)n;
  part.variant = NULL;
  qn_status status = host->part_prepare(request, &part, "cpu_ref/direct", &k->part);
  if (status) {
    release(p);
    return qn_refuse(p, "cpu_ref/direct refuses", "", "", "%s", "");
  }
  const qn_prepared *answer = host->part_answer(k->part);
  k->request = NULL;
  p->n_ops = k->n_ops;
  p->numerics = k->numerics;              /* the bound of an ordinary engine, not the oracle's sharper one */
  p->math = k->numerics.method == QN_METHOD_DIRECT ? QN_MATH_STRICT : QN_MATH_F32;
  p->workspace = qn_round_up((int64_t)answer->workspace, 256) + (int64_t)k->bug->workspace;
  p->counters = answer->counters;
  return QN_OK;
}

static qn_status build(const qn_request *request, qn_prepared *p)
{
  (void)request;
  return host->part_build(((struct mut_kept *)p->state)->part);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const struct mut_kept *k = p->state;
  void *ptr[MUT_VALUES];
  qn_launch own = *launch;
  int32_t n = k->first[k->node.n_roles];
  for (int32_t i = 0; i < n; i++)
    ptr[i] = launch->ptr[k->number[i]];
  own.ptr = ptr;
  struct mut_call c = {.k = k, .launch = &own};
  memcpy(c.ptr, ptr, sizeof ptr);
  for (int32_t a = 0; k->n_ops > 1 && a < k->more_first[k->more.n_roles]; a++)
    c.more[a] = launch->ptr[k->more_number[a]];
  if (k->bug->before)
    k->bug->before(&c);
  qn_status status = host->part_run(k->part, launch, c.ptr, launch->workspace, launch->counters);
  if (!status && k->bug->after)
    k->bug->after(&c);
  for (int i = 0; i < c.n_scratch; i++)
    free(c.scratch[i]);
  return status;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const uint32_t after[] = { QN_OP_BATCH_NORM_INFERENCE, 0 };     /* what mut_take may take after a convolution */
static const qn_pattern pattern = { .struct_size = sizeof pattern, .closing = 1, .after = after };

static const qn_engine rows[] = {
#define BUG(kind, id, a, b, c, bytes) \
  { .name = #id, .op = QN_OP_##kind, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .pattern = &pattern, \
    .prepare = prepare, .build = build, .run = run, .release = release },
#include "mutants.h"
#undef BUG
};
static const qn_engine_list list = { rows, sizeof rows / sizeof *rows };
static const qn_engine_list *const engines[] = { &list, NULL };

static const qn_backend backend = {
  .struct_size = sizeof(qn_backend),
  .abi_minor   = QN_ABI_MINOR,
  .engine_size = sizeof(qn_engine),
  .name        = "mutant",
  .version     = QN_VERSION,
  .device_kind = "cpu",
  .engines     = engines,
};

qn_entry_fn QN_BACKEND_ENTRY(mutant);

QN_EXPORT qn_status QN_BACKEND_ENTRY(mutant)(const qn_host *h, const qn_backend **out)
{
  if (h->struct_size < sizeof(qn_host) || h->abi_major != QN_ABI_MAJOR)
    return QN_NO_BACKEND;
  host = h;
  *out = &backend;
  return QN_OK;
}
