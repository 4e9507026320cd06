/* onednn.c -- oneDNN (libdnnl 2) as a Quern backend, for use and for comparison with our CPU engines.
 *
 * Only f32, by direct algorithms. If an op lets oneDNN choose layouts, inputs are reordered into scratch before it and
 * outputs after it, inside the measured time, as a framework with plain tensors must do too. oneDNN's results may depend
 * on the number of threads, so no engine here claims to be deterministic. */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include "onednn.h"

static const qn_host *host;
static dnnl_engine_t engine;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_engine(void)
{
  if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
    engine = NULL;
}

/* ---- prepare --------------------------------------------------------------------------------- */

onednn_state *onednn_begin(const qn_request *request, qn_prepared *p)
{
  (void)request;
  pthread_once(&once, make_engine);
  p->state = engine ? host->alloc(sizeof(onednn_state)) : NULL;
  return p->state;
}

bool onednn_add(onednn_state *s, const qn_request *request, qn_prepared *p, int role, int32_t value)
{
  static const char *const name[ONEDNN_TENSORS] = { "the first", "the second", "the third", "the fourth", "the fifth", "the sixth",
                                                    "the seventh", "the eighth" };
  const qn_value *v = &request->value[value];
  onednn_tensor *t = &s->tensor[s->n];
  if (v->dtype != QN_F32 || v->flags & QN_VALUE_HOST) {
    qn_refuse(p, "f32 tensors alone are asked of oneDNN", name[s->n], "f32", "%s",
              v->flags & QN_VALUE_HOST ? "a number" : qn_kit_name(v->dtype));
    return false;
  }
  for (int i = 0; i < v->rank; i++) {
    if (v->dim[i] > ONEDNN_LONGEST) {
      qn_refuse(p, "oneDNN counts along a dim in 32 bits", name[s->n], "dims of up to 1073741824", "%lld", (long long)v->dim[i]);
      return false;
    }
  }
  if (role == DNNL_ARG_BIAS && v->dim[0] > 1 && v->stride[0] != 1) {
    qn_refuse(p, "oneDNN reads a bias as if it had no gaps", "bias", "a stride of 1", "%lld", (long long)v->stride[0]);
    return false;
  }
  t->role = role;
  t->value = value;
  t->output = v->producer == 0;           /* by our op; its inputs may come from other ops of the region */
  s->n++;
  onednn_view(s, v->rank, v->dim, v->stride);
  if (t->given.ndims)
    return true;
  qn_refuse(p, "oneDNN knows no such strides", name[s->n - 1], "strides without broadcast", "%s", "");
  return false;
}

onednn_state *onednn_begin_with(const qn_request *request, qn_prepared *p, int n, const int *role)
{
  onednn_state *s = onednn_begin(request, p);
  bool added = s != NULL;
  for (int i = 0; i < n && added; i++)
    added = onednn_add(s, request, p, role[i], request->op[0].arg[i]);
  if (added)
    return s;
  onednn_refused(p, QN_UNSUPPORTED);
  return NULL;
}

void onednn_add_own(onednn_state *s, int role)
{
  s->tensor[s->n++] = (onednn_tensor){ .role = role, .value = -1, .output = true };
}

/* A dim of 1 may have any stride, but oneDNN's matmul fails if it is shorter than the inner extent. To oneDNN a tensor without dims
 * has no element, so a scalar gets a dim of 1. */
void onednn_view(onednn_state *s, int rank, const int64_t *dim, const int64_t *stride)
{
  onednn_tensor *t = &s->tensor[s->n - 1];
  dnnl_dims_t dims = { 1 }, strides = { 1 };
  int64_t behind = 1;
  for (int i = rank - 1; i >= 0; i--) {
    dims[i] = dim[i];
    strides[i] = dim[i] == 1 ? behind : stride[i];
    behind = qn_max_i64(behind, strides[i] * dim[i]);
  }
  if (dnnl_memory_desc_init_by_strides(&t->given, rank ? rank : 1, dims, dnnl_f32, strides) != dnnl_success)
    memset(&t->given, 0, sizeof t->given);
}

dnnl_memory_desc_t onednn_any(const dnnl_memory_desc_t *given)
{
  dnnl_memory_desc_t any = *given;
  any.format_kind = dnnl_format_kind_any;
  return any;
}

/* ---- layouts, scratch ------------------------------------------------------------------------ */

static size_t scratch_of(const_dnnl_primitive_desc_t desc)
{
  return desc ? dnnl_memory_desc_get_size(dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0)) : 0;
}

/* Decides the layouts and the workspace: copies first, then the primitives' own scratch. */
static void lay_out(onednn_state *s, qn_prepared *p)
{
  size_t used = 0;
  for (int i = 0; i < s->n; i++) {
    onednn_tensor *t = &s->tensor[i];
    t->wanted = *dnnl_primitive_desc_query_md(s->desc, dnnl_query_exec_arg_md, t->role);
    if (!t->wanted.ndims && s->first_desc)
      t->wanted = *dnnl_primitive_desc_query_md(s->first_desc, dnnl_query_exec_arg_md, t->role);
    t->copied = t->value < 0 || !dnnl_memory_desc_equal(&t->given, &t->wanted);
    t->offset = used;
    used += t->copied ? (size_t)qn_round_up((int64_t)dnnl_memory_desc_get_size(&t->wanted), 256) : 0;
  }
  s->scratch = used;
  p->workspace = used + (size_t)qn_max_i64((int64_t)scratch_of(s->first_desc), (int64_t)scratch_of(s->desc));
}

static dnnl_status_t describe(dnnl_primitive_desc_t *desc, const qn_request *request, const_dnnl_op_desc_t op,
                              const_dnnl_primitive_desc_t hint)
{
  dnnl_primitive_attr_t attr;
  int threads = omp_get_max_threads();
  if (dnnl_primitive_attr_create(&attr) != dnnl_success)
    return dnnl_out_of_memory;
  dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  omp_set_num_threads(request->demands->threads);       /* oneDNN divides work and sizes scratch when a primitive is described */
  dnnl_status_t status = dnnl_primitive_desc_create(desc, op, attr, engine, hint);
  omp_set_num_threads(threads);
  dnnl_primitive_attr_destroy(attr);
  return status;
}

bool onednn_first(onednn_state *s, const qn_request *request, const_dnnl_op_desc_t op)
{
  return describe(&s->first_desc, request, op, NULL) == dnnl_success;
}

qn_status onednn_finish(onednn_state *s, const qn_request *request, qn_prepared *p, const_dnnl_op_desc_t op)
{
  dnnl_status_t status = describe(&s->desc, request, op, s->first_desc);
  if (status == dnnl_out_of_memory)
    return onednn_refused(p, QN_NO_MEMORY);
  if (status != dnnl_success)
    return onednn_refused(p, qn_refuse(p, "oneDNN has no implementation for this", "", "", "its status %d", (int)status));
  lay_out(s, p);
  if (p->traits & QN_TRAIT_FINITE_ONLY)
    p->math = QN_MATH_FAST;
  return QN_OK;
}

qn_status onednn_refused(qn_prepared *p, qn_status status)
{
  onednn_release(p);
  if (status == QN_UNSUPPORTED && !p->refusal.rule[0])
    qn_refuse(p, "oneDNN made no CPU engine", "", "", "%s", "");
  return status;
}

/* ---- build, run, release --------------------------------------------------------------------- */

static qn_status failed(const char *sentence)
{
  return host->error(QN_INTERNAL, sentence);
}

static bool make_reorder(onednn_tensor *t)
{
  dnnl_primitive_desc_t desc;
  const dnnl_memory_desc_t *from = t->output ? &t->wanted : &t->given, *to = t->output ? &t->given : &t->wanted;
  if (dnnl_reorder_primitive_desc_create(&desc, from, engine, to, engine, NULL) != dnnl_success)
    return false;
  bool made = dnnl_primitive_create(&t->reorder, desc) == dnnl_success;
  dnnl_primitive_desc_destroy(desc);
  return made;
}

qn_status onednn_build(const qn_request *request, qn_prepared *p)
{
  onednn_state *s = p->state;
  int threads = omp_get_max_threads();
  omp_set_num_threads(request->demands->threads);
  bool made = dnnl_primitive_create(&s->primitive, s->desc) == dnnl_success;
  if (made && s->first_desc)
    made = dnnl_primitive_create(&s->first, s->first_desc) == dnnl_success;
  for (int i = 0; i < s->n && made; i++)
    if (s->tensor[i].copied && s->tensor[i].value >= 0)
      made = make_reorder(&s->tensor[i]);
  omp_set_num_threads(threads);
  return made ? QN_OK : failed("oneDNN could not create a primitive that it had described");
}

/* Memory objects of one execution: for each tensor the caller's and, if there is one, the copy; then scratch. */
typedef struct memories { dnnl_memory_t given[ONEDNN_TENSORS], copy[ONEDNN_TENSORS], scratch; } memories;

static bool make_memories(const onednn_state *s, const qn_launch *launch, memories *m)
{
  char *workspace = launch->workspace;
  const_dnnl_primitive_desc_t larger = scratch_of(s->first_desc) > scratch_of(s->desc) ? s->first_desc : s->desc;
  const dnnl_memory_desc_t *scratch = dnnl_primitive_desc_query_md(larger, dnnl_query_scratchpad_md, 0);
  memset(m, 0, sizeof *m);
  bool made = dnnl_memory_create(&m->scratch, scratch, engine, workspace + s->scratch) == dnnl_success;
  for (int i = 0; i < s->n && made; i++) {
    const onednn_tensor *t = &s->tensor[i];
    if (t->value >= 0)
      made = dnnl_memory_create(&m->given[i], &t->given, engine, launch->ptr[t->value]) == dnnl_success;
    if (made && t->copied)
      made = dnnl_memory_create(&m->copy[i], &t->wanted, engine, workspace + t->offset) == dnnl_success;
  }
  return made;
}

static void free_memories(const onednn_state *s, memories *m)
{
  for (int i = 0; i < s->n; i++) {
    dnnl_memory_destroy(m->given[i]);
    dnnl_memory_destroy(m->copy[i]);
  }
  dnnl_memory_destroy(m->scratch);
}

static bool copy(const onednn_state *s, int i, memories *m, dnnl_stream_t stream)
{
  const onednn_tensor *t = &s->tensor[i];
  if (!t->copied || t->value < 0)
    return true;
  dnnl_exec_arg_t arg[] = { { DNNL_ARG_FROM, t->output ? m->copy[i] : m->given[i] },
                            { DNNL_ARG_TO, t->output ? m->given[i] : m->copy[i] } };
  return dnnl_primitive_execute(t->reorder, stream, 2, arg) == dnnl_success;
}

static bool execute(const onednn_state *s, memories *m, dnnl_stream_t stream)
{
  dnnl_exec_arg_t arg[ONEDNN_TENSORS + 1];
  bool good = true;
  for (int i = 0; i < s->n; i++) {
    if (!s->tensor[i].output)
      good = good && copy(s, i, m, stream);
    arg[i] = (dnnl_exec_arg_t){ s->tensor[i].role, s->tensor[i].copied ? m->copy[i] : m->given[i] };
  }
  arg[s->n] = (dnnl_exec_arg_t){ DNNL_ARG_SCRATCHPAD, m->scratch };
  if (s->first)
    good = good && dnnl_primitive_execute(s->first, stream, s->n + 1, arg) == dnnl_success;
  good = good && dnnl_primitive_execute(s->primitive, stream, s->n + 1, arg) == dnnl_success;
  good = good && dnnl_stream_wait(stream) == dnnl_success;
  for (int i = 0; i < s->n; i++)
    if (s->tensor[i].output)
      good = good && copy(s, i, m, stream);
  return good && dnnl_stream_wait(stream) == dnnl_success;
}

qn_status onednn_run(const qn_prepared *p, const qn_launch *launch)
{
  const onednn_state *s = p->state;
  memories m;
  int threads = omp_get_max_threads();
  omp_set_num_threads(launch->threads);           /* a per-thread setting */
  bool good = make_memories(s, launch, &m) && execute(s, &m, launch->instance);
  free_memories(s, &m);
  omp_set_num_threads(threads);
  return good ? QN_OK : failed("oneDNN failed to execute a primitive");
}

void onednn_release(qn_prepared *p)
{
  onednn_state *s = p->state;
  if (!s)
    return;
  for (int i = 0; i < s->n; i++)
    dnnl_primitive_destroy(s->tensor[i].reorder);
  dnnl_primitive_destroy(s->first);
  dnnl_primitive_destroy(s->primitive);
  dnnl_primitive_desc_destroy(s->first_desc);
  dnnl_primitive_desc_destroy(s->desc);
  host->free(s);
  p->state = NULL;
}

/* ---- the backend: each context has a stream ---------------------------------------------------- */

static qn_status open_stream(const qn_open *with, void **instance)
{
  (void)with;
  dnnl_stream_t own = NULL;
  pthread_once(&once, make_engine);
  if (!engine || dnnl_stream_create(&own, engine, dnnl_stream_default_flags) != dnnl_success)
    return host->error(QN_DEVICE, "oneDNN made no CPU engine");
  *instance = own;
  return QN_OK;
}

static void close_stream(void *instance)
{
  dnnl_stream_destroy(instance);
}

static const qn_engine_list *const lists[] = { &onednn_conv, &onednn_lrn, &onednn_matmul, &onednn_norm, &onednn_softmax, &onednn_pool,
                                               &onednn_resampling, &onednn_pointwise, &onednn_reduction, NULL };

static qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "onednn", .device_kind = "cpu", .engines = lists, .open = open_stream, .close = close_stream,
};

QN_EXPORT qn_status QN_BACKEND_ENTRY(onednn)(const qn_host *h, const qn_backend **out);
QN_EXPORT qn_status QN_BACKEND_ENTRY(onednn)(const qn_host *h, const qn_backend **out)
{
  static char version[32];
  const dnnl_version_t *v = dnnl_version();
  if (h->struct_size < sizeof *h || h->abi_major != QN_ABI_MAJOR || h->abi_minor < 4)
    return QN_NO_BACKEND;
  host = h;
  if (v->major != DNNL_VERSION_MAJOR)
    return h->error(QN_NO_BACKEND, "oneDNN's library is of another major version than the headers this was built with");
  snprintf(version, sizeof version, "%d.%d.%d", v->major, v->minor, v->patch);
  backend.version = version;
  *out = &backend;
  return QN_OK;
}
