/* graph.c -- operation graphs: described, passed to cuDNN's heuristics, and run by one of the engines that these list.
 *
 * A variant is an index into that list: "h0" is the heuristics' first. By default prepare takes the first whose numerical
 * notes the demands allow and for which cuDNN can make a plan, which only trying shows; so plans are made here, not in build.
 *
 *   note                             what it means here
 *   nondeterministic                 no trait deterministic
 *   Tensor Core, down-converted      on f32: tf32, so math tf32
 *   reduced-precision reduction      partial sums in the output's dtype: math fast
 *   Winograd, FFT                    on f32, if the suite has a bound for it, math f32; else not taken
 *
 * The notes are incomplete: known omissions are given in the engine's peer_terms. */
#include <stdio.h>
#include <stdlib.h>
#include "peer.h"

const char *const peer_variants[] = { "h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9", NULL };
enum { MOST_CONFIGS = sizeof peer_variants / sizeof *peer_variants - 1 };

/* ---- describing --------------------------------------------------------------------------------- */

peer_graph *peer_graph_begin(const qn_request *r, qn_prepared *p, qn_status *status)
{
  *status = peer_live(r, p);
  if (*status) return NULL;
  *status = QN_NO_MEMORY;
  return p->state = r->host->alloc(sizeof(peer_graph));
}

cudnnBackendDescriptor_t peer_make(peer_graph *g, cudnnBackendDescriptorType_t type)
{
  cudnnBackendDescriptor_t d = NULL;
  if (!g->status && g->n_parts == PEER_PARTS) g->status = CUDNN_STATUS_INTERNAL_ERROR;
  if (!g->status && !(g->status = peer.cudnnBackendCreateDescriptor(type, &d))) g->part[g->n_parts++] = d;
  return d;
}

void peer_set(peer_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
              const void *v)
{
  if (!g->status) g->status = peer.cudnnBackendSetAttribute(d, name, type, n, v);
}

void peer_set_part(peer_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part)
{
  peer_set(g, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

void peer_finalize(peer_graph *g, cudnnBackendDescriptor_t d)
{
  if (!g->status) g->status = peer.cudnnBackendFinalize(d);
}

/* id: of a tensor in memory or passed at launch, from 1; 0: never in memory. */
static cudnnBackendDescriptor_t describe(peer_graph *g, cudnnDataType_t type, const peer_shape *s, int64_t id, int64_t align, bool by_value)
{
  const bool is_virtual = !id;
  cudnnBackendDescriptor_t d = peer_make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  if (is_virtual) id = 1000 + g->n_parts;
  peer_set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  peer_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, s->rank, s->dim);
  peer_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, s->rank, s->stride);
  peer_set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
  peer_set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  peer_set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  if (by_value) peer_set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  peer_finalize(g, d);
  return d;
}

/* The next tensor that a launch gives an address; its index. */
static int next(peer_graph *g, int32_t value)
{
  if (g->n_tensors == PEER_TENSORS) {
    g->status = g->status ? g->status : CUDNN_STATUS_INTERNAL_ERROR;
    return PEER_TENSORS - 1;
  }
  g->value[g->n_tensors] = value;
  return g->n_tensors++;
}

cudnnBackendDescriptor_t peer_between(peer_graph *g, cudnnDataType_t type, const peer_shape *s)
{
  return describe(g, type, s, 0, 16, false);
}

cudnnBackendDescriptor_t peer_tensor(peer_graph *g, const qn_request *r, int32_t value, uint32_t dtype, const peer_shape *s)
{
  if (value < 0) return peer_between(g, peer_type(dtype == QN_F64 ? QN_F64 : QN_F32), s);
  return describe(g, peer_type(dtype), s, next(g, value) + 1, r->value[value].align, false);
}

cudnnBackendDescriptor_t peer_scratch(peer_graph *g, const peer_shape *s)
{
  const int i = next(g, PEER_SCRATCH);
  size_t bytes = sizeof(float);
  for (int d = 0; d < s->rank; d++) bytes *= (size_t)s->dim[d];
  g->number[i].place = g->scratch;
  g->scratch += (bytes + 255) & ~(size_t)255;
  return describe(g, CUDNN_DATA_FLOAT, s, i + 1, 16, false);
}

static const peer_shape one_element = { 4, { 1, 1, 1, 1 }, { 1, 1, 1, 1 } };

cudnnBackendDescriptor_t peer_given(peer_graph *g, float number)
{
  const int i = next(g, PEER_NUMBER);
  g->number[i].f = number;
  return describe(g, CUDNN_DATA_FLOAT, &one_element, i + 1, sizeof number, true);
}

cudnnBackendDescriptor_t peer_given_int(peer_graph *g, int32_t number)
{
  const int i = next(g, PEER_NUMBER);
  g->number[i].i = number;
  return describe(g, CUDNN_DATA_INT32, &one_element, i + 1, sizeof number, true);
}

void peer_add(peer_graph *g, cudnnBackendDescriptor_t op)
{
  peer_finalize(g, op);
  if (g->n_ops == PEER_OPS) g->status = g->status ? g->status : CUDNN_STATUS_INTERNAL_ERROR;
  else g->op[g->n_ops++] = op;
}

void peer_add_bias(peer_graph *g, uint32_t dtype, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  cudnnDataType_t type = peer_type(dtype == QN_F64 ? QN_F64 : QN_F32);
  cudnnBackendDescriptor_t add = peer_make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  peer_set(g, add, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  peer_set(g, add, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
  peer_finalize(g, add);
  cudnnBackendDescriptor_t op = peer_make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, a);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  peer_set_part(g, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  peer_add(g, op);
}

/* ---- choosing ------------------------------------------------------------------------------------- */

static void say_last_error(const char *when)
{
  char detail[300] = "", said[400];
  peer.cudnnGetLastErrorString(detail, sizeof detail);
  snprintf(said, sizeof said, "cudnn: %s: %s", when, detail);
  peer_host->log(QN_LOG_DEBUG, said);
}

/* The heuristics' list, followed by the fallbacks'. */
typedef struct configs { int n; cudnnBackendDescriptor_t at[MOST_CONFIGS]; } configs;

static void list_configs(configs *c, cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
  cudnnBackendDescriptor_t heuristics = NULL, found[MOST_CONFIGS] = { NULL };
  int made = 0, room = MOST_CONFIGS - c->n;
  int64_t n = 0;
  if (peer.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics)) return;
  while (made < room && !peer.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &found[made])) made++;
  if (peer.cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph) ||
      peer.cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode) ||
      peer.cudnnBackendFinalize(heuristics) ||
      peer.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, found))
    n = 0;
  if (!n) say_last_error("no engines");
  if (n > made) n = made;
  for (int i = 0; i < made; i++) {
    if (i < n) c->at[c->n++] = found[i];
    else peer.cudnnBackendDestroyDescriptor(found[i]);
  }
  peer.cudnnBackendDestroyDescriptor(heuristics);
}

static uint32_t notes_of(cudnnBackendDescriptor_t config, int64_t *number)
{
  cudnnBackendDescriptor_t engine = NULL;
  cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  int64_t n = 0;
  uint32_t set = 0;
  if (peer.cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine)) return UINT32_MAX;
  if (peer.cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) ||
      peer.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT,
                                    &n, note))
    set = UINT32_MAX;
  else
    for (int64_t i = 0; i < n; i++) set |= 1u << note[i];
  if (peer.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &n, number)) *number = -1;
  peer.cudnnBackendDestroyDescriptor(engine);
  return set;
}

static bool noted(uint32_t notes, cudnnBackendNumericalNote_t note) { return notes >> note & 1; }

static bool listed(const int64_t *numbers, int64_t number)
{
  while (numbers && *numbers >= 0)
    if (*numbers++ == number) return true;
  return false;
}

/* Declares numerics from an engine's number and notes; false: it cannot be bounded. */
static bool declare(qn_prepared *p, int64_t number, uint32_t notes, const peer_terms *t)
{
  if (listed(t->broken, number)) return false;
  bool half = t->dtype == QN_F16 || t->dtype == QN_BF16, single = t->dtype == QN_F32;
  bool tile6 = noted(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6), tile4 = noted(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
  bool tile13 = noted(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
  bool winograd = noted(notes, CUDNN_NUMERICAL_NOTE_WINOGRAD) || tile4 || tile6 || tile13, fft = noted(notes, CUDNN_NUMERICAL_NOTE_FFT);
  bool tensor = noted(notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || noted(notes, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
      (single && t->tf32);
  bool reduces = t->reduces || listed(t->reduced, number);
  bool hidden = t->transforms && (single || t->reduces);              /* maybe a transform or tf32, noted or not */
  if ((winograd || fft) && !hidden && (!single || tensor)) return false;
  if (winograd && !hidden && (!t->winograd_filter || tile13)) return false;
  if (single && tensor && t->no_tf32) return false;
  p->numerics = (qn_numerics){ .accumulator = half ? QN_ACC_F32_TC : single && (tensor || hidden) ? QN_ACC_TF32 : QN_ACC_NATIVE };
  p->math = p->numerics.accumulator == QN_ACC_TF32 ? QN_MATH_TF32 : fft || winograd ? QN_MATH_F32 : QN_MATH_STRICT;
  p->traits = p->engine->traits | (tensor ? QN_TRAIT_TENSOR_CORES : 0);
  if (!noted(notes, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && !t->any_order) p->traits |= QN_TRAIT_DETERMINISTIC;
  if (fft || hidden) p->numerics.method = QN_METHOD_FFT;
  else if (winograd) {
    p->numerics.method = QN_METHOD_WINOGRAD;
    p->numerics.tile = (tile4 ? 4 : 6) - t->winograd_filter + 1;      /* Winograd: input tile less filter plus 1 is the output tile */
    p->numerics.filter = t->winograd_filter;
  }
  if (reduces || noted(notes, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) {
    p->traits |= QN_TRAIT_REDUCED;
    p->numerics.store = t->out_dtype;
  }
  if (hidden || reduces || t->loses || (single && t->tf32)) p->traits |= QN_TRAIT_FINITE_ONLY;
  if (p->traits & (QN_TRAIT_REDUCED | QN_TRAIT_FINITE_ONLY)) p->math = QN_MATH_FAST;
  return true;
}

static bool demands_allow(const qn_demands *d, const qn_prepared *p)
{
  return p->math <= d->math && p->workspace <= d->workspace_limit && (!d->determinism || p->traits & QN_TRAIT_DETERMINISTIC);
}

/* A plan for a listed config; NULL: cuDNN cannot make one after all. */
static cudnnBackendDescriptor_t make_plan(cudnnHandle_t handle, cudnnBackendDescriptor_t config, int64_t *workspace)
{
  cudnnBackendDescriptor_t plan = NULL;
  int64_t n = 0;
  if (peer.cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan)) return NULL;
  if (!peer.cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config) &&
      !peer.cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle) &&
      !peer.cudnnBackendFinalize(plan) &&
      !peer.cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &n, workspace) && n == 1)
    return plan;
  say_last_error("no plan");
  peer.cudnnBackendDestroyDescriptor(plan);
  return NULL;
}

/* The index in a variant "hN"; -1: any. */
static int wanted_of(const char *variant) { return variant ? atoi(variant + 1) : -1; }

static bool take(peer_graph *g, const qn_request *r, qn_prepared *p, const peer_terms *t, cudnnHandle_t handle, const configs *c, int i)
{
  int64_t workspace = 0, number = -1;
  uint32_t notes = notes_of(c->at[i], &number);
  char said[80];
  snprintf(said, sizeof said, "cudnn: %s is engine %lld, notes %#x", peer_variants[i], (long long)number, notes);
  peer_host->log(QN_LOG_DEBUG, said);
  p->workspace = g->scratch;
  if (notes == UINT32_MAX || !declare(p, number, notes, t) || !demands_allow(r->demands, p)) return false;
  g->plan = make_plan(handle, c->at[i], &workspace);
  p->workspace = g->scratch + (uint64_t)workspace;
  if (g->plan && demands_allow(r->demands, p)) return true;
  if (g->plan) peer.cudnnBackendDestroyDescriptor(g->plan);
  g->plan = NULL;
  return false;
}

qn_status peer_graph_choose(peer_graph *g, const qn_request *r, qn_prepared *p, const peer_terms *t)
{
  cudnnHandle_t handle;
  configs list = { 0 };
  int wanted = wanted_of(r->variant);
  qn_status s = peer_describe_begin(r->device, &handle);
  if (s) {
    peer_graph_release(p);
    return s;
  }
  cudnnBackendDescriptor_t graph = peer_make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  peer_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_ops, g->op);
  peer_set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  peer_finalize(g, graph);
  if (g->status) say_last_error("describing");
  else {
    list_configs(&list, graph, CUDNN_HEUR_MODE_A);
    list_configs(&list, graph, CUDNN_HEUR_MODE_FALLBACK);
  }
  for (int i = 0; i < list.n && !g->plan; i++)
    if ((wanted < 0 || wanted == i) && take(g, r, p, t, handle, &list, i)) p->variant = peer_variants[i];
  for (int i = 0; i < list.n; i++) peer.cudnnBackendDestroyDescriptor(list.at[i]);
  peer_describe_end();
  if (g->plan) return QN_OK;
  s = g->status ? qn_refuse(p, "cuDNN knows no such operation", "", "", "%s", peer.cudnnGetErrorString(g->status))
    : r->variant ? qn_refuse(p, "an engine of cuDNN's list that the demands allow", "", "another variant", "%s of %d", r->variant, list.n)
                 : qn_refuse(p, "an engine of cuDNN that it can plan and the demands allow", "", "", "none of the %d listed", list.n);
  peer_graph_release(p);
  return s;
}

/* ---- run, release --------------------------------------------------------------------------------- */

qn_status peer_graph_run(const qn_prepared *p, const qn_launch *launch)
{
  const peer_graph *g = p->state;
  cudnnBackendDescriptor_t pack = NULL;
  int64_t id[PEER_TENSORS];
  void *pointer[PEER_TENSORS], *workspace = (char *)launch->workspace + g->scratch;
  for (int i = 0; i < g->n_tensors; i++) {
    id[i] = i + 1;
    pointer[i] = g->value[i] >= 0 ? launch->ptr[g->value[i]] : g->value[i] == PEER_NUMBER ? (void *)&g->number[i]
        : (char *)launch->workspace + g->number[i].place;
  }
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e) e = peer.cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
  if (!e) e = peer.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, g->n_tensors, id);
  if (!e) e = peer.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, g->n_tensors, pointer);
  if (!e) e = peer.cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  if (!e) e = peer.cudnnBackendFinalize(pack);
  if (!e) e = peer.cudnnBackendExecute(launch->instance, g->plan, pack);
  if (pack) peer.cudnnBackendDestroyDescriptor(pack);
  return e ? peer_failed("cudnnBackendExecute", e) : QN_OK;
}

void peer_graph_release(qn_prepared *p)
{
  peer_graph *g = p->state;
  if (!g) return;
  if (g->plan) peer.cudnnBackendDestroyDescriptor(g->plan);
  while (g->n_parts > 0) peer.cudnnBackendDestroyDescriptor(g->part[--g->n_parts]);
  peer_host->free(g);
  p->state = NULL;
}
