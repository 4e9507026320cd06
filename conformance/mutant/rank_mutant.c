/* rank_mutant.c -- the backend of seeded bugs in collectives: each delegates to cpu_ref/shm with something wrong before or after.
 * `quern-conform --ranks` must catch each (ranks.tap). */
#include <stdlib.h>
#include <string.h>
#include <quern/kit.h>

static const qn_host *host;

enum bug { DROPPED_RANK, STALE_BUFFER, NO_SCALE, SUM_OF_HALVES, WRONG_ROOT, NEXT_SLICE, TURNED_SHARES, OWN_SHARES, LAST_ELEMENT, BUGS };
static const char *const names[] = { "dropped_rank", "stale_buffer", "no_scale", "sum_of_halves", "wrong_root", "next_slice",
                                     "turned_shares", "own_shares", "last_element" };

typedef struct kept {
  enum bug bug;
  qn_part *part;
  int32_t  x, y, scale;                   /* values: the first tensors of the lists; -1: none */
  size_t   values;
  qn_value vx, vy;
  char    *first;                         /* STALE_BUFFER: x of the first call */
} kept;

static int64_t extent(const qn_value *v) { return qn_extent_bytes(v) + 16; }

/* The i-th element in row-major order. */
static char *at(const qn_value *v, void *p, int64_t i)
{
  int64_t offset = 0;
  for (int d = v->rank - 1; d >= 0; d--) {
    offset += i % v->dim[d] * v->stride[d];
    i /= v->dim[d];
  }
  return (char *)p + offset * qn_kit_bytes(v->dtype);
}

/* Element i becomes what element i + shift was. */
static void turn(const qn_value *v, void *p, int64_t shift)
{
  const int64_t n = qn_elements(v);
  char *copy = malloc((size_t)extent(v));
  if (!copy) abort();                     /* a test backend may abort */
  memcpy(copy, p, (size_t)qn_extent_bytes(v));
  for (int64_t i = 0; i < n; i++) memcpy(at(v, p, i), at(v, copy, (i + shift) % n), (size_t)qn_kit_bytes(v->dtype));
  free(copy);
}

static void round_to_half(const qn_value *v, void *p)
{
  for (int64_t i = 0; i < qn_elements(v); i++)
    qn_store_f64(at(v, p, i), v->dtype, qn_f16_to_f64(qn_f16_from_f64(qn_load_f64(at(v, p, i), v->dtype))));
}

static qn_status run(const qn_prepared *p, const qn_launch *l)
{
  kept *k = p->state;
  const int rank = l->ranks ? l->ranks->rank : 0, size = l->ranks ? l->ranks->size : 1;
  const int64_t share = qn_elements(&k->vx) / size;
  void *ptr[64], *x = malloc((size_t)extent(&k->vx));
  double one = 1;
  if (!x) return QN_NO_MEMORY;
  memcpy(ptr, l->ptr, k->values * sizeof *ptr);
  memcpy(x, ptr[k->x], (size_t)qn_extent_bytes(&k->vx));
  const int lent = ptr[k->x] == ptr[k->y];
  if (k->bug == DROPPED_RANK && rank == size - 1) memset(x, 0, (size_t)qn_extent_bytes(&k->vx));
  if (k->bug == NEXT_SLICE) turn(&k->vx, x, share);
  if (k->bug == OWN_SHARES) turn(&k->vx, x, share * rank);
  if (k->bug == SUM_OF_HALVES && k->vx.dtype == QN_F32) round_to_half(&k->vx, x);
  if (k->bug == NO_SCALE && k->scale >= 0) {
    qn_store_f64(&one, QN_F64, 1);
    ptr[k->scale] = &one;
  }
  if (k->bug == STALE_BUFFER) {
    if (!k->first && (k->first = malloc((size_t)extent(&k->vx)))) memcpy(k->first, x, (size_t)qn_extent_bytes(&k->vx));
    else memcpy(x, k->first, (size_t)qn_extent_bytes(&k->vx));
  }
  if (lent) memcpy(ptr[k->x], x, (size_t)qn_extent_bytes(&k->vx));
  else ptr[k->x] = x;
  const qn_status status = host->part_run(k->part, l, ptr, l->workspace, l->counters);
  if (k->bug == TURNED_SHARES) turn(&k->vy, ptr[k->y], qn_elements(&k->vx));
  if (k->bug == LAST_ELEMENT) memset(at(&k->vy, ptr[k->y], qn_elements(&k->vy) - 1), 0x5a, (size_t)qn_kit_bytes(k->vy.dtype));
  free(x);
  return status;
}

static void release(qn_prepared *p)
{
  kept *k = p->state;
  host->part_release(k->part);
  free(k->first);
  free(k);
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  enum bug bug = 0;
  while (bug < BUGS && strcmp(names[bug], p->engine->name)) bug++;
  const qn_node *op = &request->op[0];
  qn_request r = *request;
  qn_node one = *op;
  qn_collective attr = *(const qn_collective *)op->attr;
  qn_value value[64];
  kept *k;
  if (request->n_values > 64 || !qn_elements(&request->value[op->arg[0]])) return QN_UNSUPPORTED;
  if (!(k = calloc(1, sizeof *k))) return QN_NO_MEMORY;
  k->bug = bug;
  k->values = request->n_values;
  k->x = op->arg[op->first[0]];
  k->y = op->arg[op->first[op->n_inputs]];
  k->scale = op->n_inputs > 1 && op->first[2] > op->first[1] ? op->arg[op->first[1]] : -1;
  k->vx = request->value[k->x];
  k->vy = request->value[k->y];
  memcpy(value, request->value, request->n_values * sizeof *value);
  value[k->x].align = 1;
  if (bug == NO_SCALE && k->scale >= 0) value[k->scale].dtype = QN_F64;
  if (bug == WRONG_ROOT) attr.root = (attr.root + 1) % (request->demands->ranks > 0 ? request->demands->ranks : 1);
  one.attr = &attr;
  r.op = &one;
  r.n_ops = 1;
  r.value = value;
  const qn_status status = host->part_prepare(request, &r, "cpu_ref/shm", &k->part);
  if (status) {
    free(k);
    return status;
  }
  p->workspace = host->part_answer(k->part)->workspace;
  p->state = k;
  return QN_OK;
}

static qn_status build(const qn_request *request, qn_prepared *p)
{
  (void)request;
  return host->part_build(((kept *)p->state)->part);
}

#define ROW(id, anchor) { .name = #id, .op = anchor, .prepare = prepare, .build = build, .run = run, .release = release }
static const qn_engine row[] = {
  ROW(dropped_rank, QN_OP_ALL_REDUCE),
  ROW(stale_buffer, QN_OP_ALL_REDUCE),
  ROW(no_scale, QN_OP_ALL_REDUCE),
  ROW(sum_of_halves, QN_OP_ALL_REDUCE),
  ROW(wrong_root, QN_OP_BROADCAST),
  ROW(next_slice, QN_OP_REDUCE_SCATTER),
  ROW(turned_shares, QN_OP_ALL_GATHER),
  ROW(own_shares, QN_OP_ALL_TO_ALL),
  ROW(last_element, QN_OP_RECV), ROW(last_element, QN_OP_SEND),
};
static const qn_engine_list list = { row, sizeof row / sizeof *row };
static const qn_engine_list *const engines[] = { &list, NULL };

static const qn_backend backend = {
  .struct_size = sizeof(qn_backend), .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "rank_mutant", .version = QN_VERSION, .device_kind = "cpu", .engines = engines,
};

qn_entry_fn QN_BACKEND_ENTRY(rank_mutant);

QN_EXPORT qn_status QN_BACKEND_ENTRY(rank_mutant)(const qn_host *h, const qn_backend **out)
{
  if (h->struct_size < sizeof(qn_host) || h->abi_major != QN_ABI_MAJOR) return QN_NO_BACKEND;
  host = h;
  *out = &backend;
  return QN_OK;
}
