/* mutant.c -- the backend: delegation to cpu_ref/direct with a bug's hooks around it, and the table. */
#include "mutant.h"

static const qn_host *host;

static const struct mut_bug bugs[] = {
#define BUG(kind, id, a, b, c, bytes) { #id, QN_OP_##kind, a, b, c, bytes },
#include "mutants.h"
#undef BUG
};

/* ---- what hooks use ----------------------------------------------------------------------- */

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
    abort();                              /* a mutant may */
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
    return qn_refuse(p, "a mutant takes few tensors", "", "32", "%d", n);
  struct mut_kept *k = host->alloc(sizeof *k);
  if (!k)
    return host->error(QN_NO_MEMORY, "no memory for a mutant");
  k->bug = find_bug(p->engine);
  k->node = *op;
  for (int32_t i = 0; i < n; i++) {
    k->arg[i] = i;
    k->value[i] = k->altered[i] = request->value[op->arg[i]];
    k->altered[i].over = -1;              /* hooks may put a copy in an input's place */
    p->word[i / 8] |= (uint64_t)(op->arg[i] & 0xff) << (i % 8 * 8);
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
  p->n_ops = 1;
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
    ptr[i] = launch->ptr[p->word[i / 8] >> (i % 8 * 8) & 0xff];
  own.ptr = ptr;
  struct mut_call c = {.k = k, .launch = &own};
  memcpy(c.ptr, ptr, sizeof ptr);
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

static const qn_engine rows[] = {
#define BUG(kind, id, a, b, c, bytes) \
  { .name = #id, .op = QN_OP_##kind, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, \
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
