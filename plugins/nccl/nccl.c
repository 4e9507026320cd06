/* nccl.c -- collectives between GPUs by NCCL: a backend whose engines use the device of the backend cuda.
 *
 * A list is one group of NCCL's calls. The group's communicator is made at the first run, from an identifier that rank 0 hands out by the
 * group's own connections: first one that does not block, whose making is polled for until the deadline, while the group is watched; of that
 * one another for the calls, which blocks, since NCCL hands each launch of the first kind to a thread of its own. A call that is held up, as
 * connections are made or too much is enqueued, is ended by the group's guard: it aborts the communicator from its own thread. NCCL itself
 * does not see that ranks do different things, so before a problem first runs the ranks compare its line; not for send and recv, which
 * concern two of them.
 *
 * Partial sums are rounded to the tensors' dtype on the way, in an order of NCCL's: no trait is claimed. max and min lose NaN, and
 * vouch for finite data only. Refused: tensors with gaps or another order than row-major, a scale on the device of another dtype, avg
 * with a scale. */
#include <stdatomic.h>
#include <time.h>
#include "nccl_abi.h"

const qn_host *nccl_host;

/* ---- the communicator of a group --------------------------------------------------------------- */

enum { AGREED = 1024 };
typedef struct member {
  const qn_ranks *ranks;
  nccl_comm   comm;
  atomic_bool inside, aborted;            /* the context's thread is in NCCL with comm; comm is gone, or about to be */
  uint64_t    agreed[AGREED];             /* lines that all ranks have run: open addressing, 0: free */
} member;

static int64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static qn_status failed(const member *m, const char *call, nccl_result result)
{
  char why[900];
  const char *detail = nccl.ncclGetLastError(NULL);
  snprintf(why, sizeof why, "the group has failed: rank %d: %s: %s%s%.500s", m->ranks->rank, call, nccl.ncclGetErrorString(result),
           detail && *detail ? ": " : "", detail ? detail : "");
  return nccl_host->ranks_fail(m->ranks, why);          /* keeps the first sentence, of who aborted */
}

/* Until what `call` began on comm is under way on the device. A communicator that blocks is asked for errors only. */
static qn_status settle(const member *m, nccl_comm comm, const char *call, nccl_result result)
{
  int64_t since = 0, looked = 0;
  while (result == NCCL_IN_PROGRESS && !atomic_load(&m->aborted)) {
    const nccl_result asked = nccl.ncclCommGetAsyncError(comm, &result);
    if (asked) result = asked;
    if (result != NCCL_IN_PROGRESS) break;
    const int64_t t = now();
    if (!since) since = looked = t;
    if (t - since > 2) nanosleep(&(struct timespec){ 0, 50000 }, NULL);
    if (t - looked < 50) continue;
    looked = t;
    const qn_status status = nccl_host->ranks_watch(m->ranks);
    if (status) return status;
    if (t - since > m->ranks->deadline) {
      char why[200];
      snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for the other ranks in %s", m->ranks->rank,
               (double)m->ranks->deadline / 1000, call);
      return nccl_host->ranks_fail(m->ranks, why);
    }
  }
  return result ? failed(m, call, result) : QN_OK;
}

/* Of the guard: the context's thread may be in a run. It leaves NCCL soon, and comes in no more; but if it is held up there, aborting is
 * what lets it out, and that was its last call with comm. */
static void break_off(member *m)
{
  const nccl_comm comm = m->comm;
  if (atomic_exchange(&m->aborted, true)) return;
  for (const int64_t since = now(); atomic_load(&m->inside) && now() - since < 200;) nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
  nccl.ncclCommAbort(comm);
}

/* After a failure ranks are not waited for. */
static void leave(void *own, int has_failed)
{
  member *m = own;
  if (has_failed == QN_COLLECTIVE_BREAK) {
    break_off(m);
    return;
  }
  if (!atomic_load(&m->aborted)) (has_failed ? nccl.ncclCommAbort : nccl.ncclCommDestroy)(m->comm);
  nccl_host->free(m);
}

/* A communicator that blocks, of all ranks of `whole`, which does not. */
static qn_status split(member *m, nccl_comm whole)
{
  nccl_config config = NCCL_CONFIG_INIT(1);
  const nccl_result begun = nccl.ncclCommSplit(whole, 0, m->ranks->rank, &m->comm, &config);
  const qn_status status = settle(m, whole, "ncclCommSplit", begun ? begun : NCCL_IN_PROGRESS);
  return status || m->comm ? status : failed(m, "ncclCommSplit", NCCL_INTERNAL_ERROR);
}

static qn_status make(member *m)
{
  nccl_config config = NCCL_CONFIG_INIT(0);
  nccl_comm whole = NULL;
  struct offer { nccl_id id; int32_t error, reserved; } mine, *all;
  memset(&mine, 0, sizeof mine);
  if (!(all = nccl_host->alloc((size_t)m->ranks->size * sizeof *all))) return nccl_host->error(QN_NO_MEMORY, "no memory for a group");
  if (!m->ranks->rank) mine.error = nccl.ncclGetUniqueId(&mine.id);
  qn_status status = nccl_host->ranks_exchange(m->ranks, "a communicator of nccl", &mine, sizeof mine, all);
  const struct offer first = all[0];
  nccl_host->free(all);
  if (status) return status;
  if (first.error) return failed(m, "ncclGetUniqueId on rank 0", first.error);
  const nccl_result begun = nccl.ncclCommInitRankConfig(&whole, m->ranks->size, first.id, m->ranks->rank, &config);
  status = settle(m, whole, "ncclCommInitRankConfig", begun ? begun : NCCL_IN_PROGRESS);
  if (!status) status = split(m, whole);
  if (whole) (status ? nccl.ncclCommAbort : nccl.ncclCommDestroy)(whole);
  if (status && m->comm) nccl.ncclCommAbort(m->comm);
  return status;
}

static qn_status member_of(const qn_ranks *ranks, member **out)
{
  static const char key;
  void **own;
  qn_status status = nccl_host->ranks_slot(ranks, &key, leave, &own);
  if (status || (*out = *own)) return status;
  member *m = nccl_host->alloc(sizeof *m);
  if (!m) return nccl_host->error(QN_NO_MEMORY, "no memory for a group");
  m->ranks = ranks;
  if ((status = make(m))) {
    nccl_host->free(m);
    return status;
  }
  *out = m;
  __atomic_store_n(own, (void *)m, __ATOMIC_RELEASE);
  return nccl_host->ranks_watch(ranks);   /* the guard may have found nothing to abort */
}

/* The first time that a problem runs, all ranks must be at it. A full table only costs exchanges. */
static qn_status agree(member *m, const qn_collective_line *line)
{
  const uint64_t hash = line->hash ? line->hash : 1;
  size_t at = hash % AGREED;
  for (int tries = 0; tries < 8; tries++, at = (at + 1) % AGREED) {
    if (m->agreed[at] == hash) return QN_OK;
    if (!m->agreed[at]) break;
  }
  const qn_status status = nccl_host->ranks_exchange(m->ranks, line->text, NULL, 0, NULL);
  if (!status && !m->agreed[at]) m->agreed[at] = hash;
  return status;
}

/* ---- an op, kept from prepare to run --------------------------------------------------------------- */

typedef struct piece { int32_t x, y; size_t n, bytes; int dtype; } piece;      /* n: elements of x, or bytes where bits are moved */
typedef struct state {
  uint32_t op;
  int      reduction, root, peer, scale, scale_dtype, host_scale;      /* scale: value of the request, -1: none */
  int32_t  n;
  qn_collective_line line;
  piece    piece[];
} state;

static int nccl_dtype(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64: return NCCL_F64;
  case QN_F32: return NCCL_F32;
  case QN_F16: return NCCL_F16;
  case QN_BF16: return NCCL_BF16;
  case QN_I8: return NCCL_I8;
  case QN_U8: return NCCL_U8;
  case QN_I32: return NCCL_I32;
  default: return NCCL_I64;
  }
}

/* The dtype's number in Quern, for a scale. */
static uint32_t quern_dtype(int dtype)
{
  return dtype == NCCL_F64 ? QN_F64 : dtype == NCCL_F32 ? QN_F32 : dtype == NCCL_F16 ? QN_F16 : QN_BF16;
}

/* ---- run -------------------------------------------------------------------------------------------- */

static nccl_result enqueue_one(const state *k, const member *m, const piece *p, int op, const qn_launch *l)
{
  const char *x = l->ptr[p->x];
  char *y = l->ptr[p->y];
  const int size = m->ranks->size;
  const size_t share = p->n / (size_t)size;
  nccl_result e = NCCL_SUCCESS;
  switch (k->op) {
  case QN_OP_ALL_REDUCE:     return nccl.ncclAllReduce(x, y, p->n, p->dtype, op, m->comm, l->stream);
  case QN_OP_REDUCE_SCATTER: return nccl.ncclReduceScatter(x, y, share, p->dtype, op, m->comm, l->stream);
  case QN_OP_ALL_GATHER:     return nccl.ncclAllGather(x, y, p->n, p->dtype, m->comm, l->stream);
  case QN_OP_BROADCAST:      return nccl.ncclBroadcast(x, y, p->n, p->dtype, k->root, m->comm, l->stream);
  case QN_OP_RECV:           return nccl.ncclRecv(y, p->n, p->dtype, k->peer, m->comm, l->stream);
  case QN_OP_SEND:
    e = nccl.ncclSend(x, p->n, p->dtype, k->peer, m->comm, l->stream);
    if (!e && x != y) e = nccl.ncclSend(x, p->n, p->dtype, m->ranks->rank, m->comm, l->stream);      /* y = x */
    return e || x == y ? e : nccl.ncclRecv(y, p->n, p->dtype, m->ranks->rank, m->comm, l->stream);
  default:                                /* all_to_all: the version that has it as one call is too new */
    for (int q = 0; q < size && !e; q++) {
      e = nccl.ncclSend(x + (size_t)q * share, share, p->dtype, q, m->comm, l->stream);
      if (!e) e = nccl.ncclRecv(y + (size_t)q * share, share, p->dtype, q, m->comm, l->stream);
    }
    return e;
  }
}

/* NCCL's operator for tensors of this dtype; *own: made for this call. */
static nccl_result operator_for(const state *k, const member *m, int dtype, const qn_launch *l, int *op, bool *own)
{
  static const int of[] = { NCCL_SUM, NCCL_AVG, NCCL_MAX, NCCL_MIN, NCCL_PROD };
  *op = of[k->reduction];
  *own = k->scale >= 0;
  if (!*own) return NCCL_SUCCESS;
  double immediate = 0;
  void *scalar = l->ptr[k->scale];
  if (k->host_scale) {
    double scale = qn_load_f64(scalar, (uint32_t)k->scale_dtype);
    if (k->reduction == QN_JOIN_AVG) scale /= m->ranks->size;
    qn_store_f64(&immediate, quern_dtype(dtype), scale);
    scalar = &immediate;
  }
  return nccl.ncclRedOpCreatePreMulSum(op, scalar, dtype, k->host_scale ? NCCL_SCALAR_HOST : NCCL_SCALAR_DEVICE, m->comm);
}

enum { DTYPES = 10 };

/* In NCCL. What holds up a call is its end, after which comm is not looked at again if it was aborted. */
static nccl_result enqueue(const state *k, const member *m, const qn_launch *l)
{
  const bool reduces = k->op == QN_OP_ALL_REDUCE || k->op == QN_OP_REDUCE_SCATTER;
  const bool several = k->n > 1 || (k->op != QN_OP_BROADCAST && k->op != QN_OP_ALL_GATHER && !reduces);       /* else a group costs 0.3 us */
  int op[DTYPES];
  bool own[DTYPES] = { false }, known[DTYPES] = { false };
  nccl_result e = NCCL_SUCCESS;
  for (int32_t i = 0; i < k->n && reduces && !e; i++) {
    const int dtype = k->piece[i].dtype;
    if (known[dtype]) continue;
    known[dtype] = true;
    e = operator_for(k, m, dtype, l, &op[dtype], &own[dtype]);
  }
  if (!e && several) e = nccl.ncclGroupStart();
  if (!e) {
    for (int32_t i = 0; i < k->n && !e; i++)
      if (k->piece[i].n) e = enqueue_one(k, m, &k->piece[i], reduces ? op[k->piece[i].dtype] : 0, l);
    const nccl_result ended = several ? nccl.ncclGroupEnd() : e;
    if (!e || e == NCCL_IN_PROGRESS) e = ended;
  }
  for (int dtype = 0; dtype < DTYPES && !e && !atomic_load(&m->aborted); dtype++)
    if (own[dtype]) nccl.ncclRedOpDestroy(op[dtype], m->comm);
  return e;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *l)
{
  const state *k = prepared->state;
  const bool pair = k->op == QN_OP_SEND || k->op == QN_OP_RECV;
  member *m;
  if (!l->ranks) return nccl_host->error(QN_BAD_ARGUMENT, "ctx: has joined no group, and the plan was made in one");
  if (pair && k->peer == l->ranks->rank) return nccl_host->error(QN_BAD_ARGUMENT, "peer: is this rank itself");
  qn_status status = member_of(l->ranks, &m);
  if (status || (!pair && (status = agree(m, &k->line)))) return status;
  atomic_store(&m->inside, true);
  status = settle(m, m->comm, "an earlier collective", NCCL_IN_PROGRESS);       /* aborted: the group's failure */
  if (!status) status = settle(m, m->comm, qn_collective_name(k->op), enqueue(k, m, l));
  atomic_store(&m->inside, false);
  return status || !atomic_load(&m->aborted) ? status : nccl_host->ranks_watch(l->ranks);
}

/* ---- preparation ---------------------------------------------------------------------------------------- */

static qn_status check(const qn_request *r, const qn_node *op, qn_prepared *p, bool reduces)
{
  const qn_collective *a = op->attr;
  const qn_value *scale = reduces && op->first[2] > op->first[1] ? &r->value[op->arg[op->first[1]]] : NULL;
  if (r->demands->ranks < 1) {
    qn_refuse(p, "it is for a group", "", "a context that has joined one", "%s", "none");
    return QN_NO_BACKEND;
  }
  if (r->device->ordinal < 0) {
    qn_refuse(p, "NCCL works on a live device", "", "a device", "%s", r->device->model);
    return QN_NO_BACKEND;
  }
  const char *why;
  const qn_status status = qn_collective_fits(r, p);
  if (status) return status;
  if (!nccl_load(&why)) {
    qn_refuse(p, why, "", "", "%s", "");
    return QN_NO_BACKEND;
  }
  if (scale && !(scale->flags & QN_VALUE_HOST) && a->reduction == QN_JOIN_AVG)
    return qn_refuse(p, "avg is scaled by a number of the host only", "scale", "a host scalar", "%s", "on the device");
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    if (v == scale) continue;
    if (!qn_is_packed(v))
      return qn_refuse(p, "NCCL takes packed tensors", "x", "the last dim fastest, without gaps", "%s", "other strides");
    if (scale && !(scale->flags & QN_VALUE_HOST) && v->dtype != scale->dtype)
      return qn_refuse(p, "a scale on the device has the tensors' dtype", "scale", qn_kit_name(v->dtype), "%s", qn_kit_name(scale->dtype));
  }
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_collective *a = op->attr;
  const bool reduces = op->op == QN_OP_ALL_REDUCE || op->op == QN_OP_REDUCE_SCATTER;
  const int32_t n = op->first[1] - op->first[0], *y = op->arg + op->first[op->n_inputs];
  qn_status status = check(r, op, p, reduces);
  if (status) return status;
  state *k = nccl_host->alloc(sizeof *k + (size_t)n * sizeof *k->piece);
  if (!k) return nccl_host->error(QN_NO_MEMORY, "no memory for an engine's state");
  k->op = op->op;
  k->reduction = (int)a->reduction;
  k->root = (int)a->root;
  k->peer = (int)a->peer;
  k->n = n;
  k->scale = reduces && op->first[2] > op->first[1] ? op->arg[op->first[1]] : -1;
  if (k->scale >= 0) {
    k->scale_dtype = (int)r->value[k->scale].dtype;
    k->host_scale = (r->value[k->scale].flags & QN_VALUE_HOST) != 0;
  }
  for (int32_t i = 0; i < n; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    const size_t elements = (size_t)qn_elements(v), bytes = (size_t)qn_kit_bytes(v->dtype);
    k->piece[i] = (piece){ .x = op->arg[i], .y = y[i], .n = reduces ? elements : elements * bytes, .bytes = bytes,
                           .dtype = reduces ? nccl_dtype(v->dtype) : NCCL_U8 };
    if (reduces && qn_is_float(v->dtype)) p->numerics.store = v->dtype;
  }
  qn_collective_line_of(r, &k->line);
  if (reduces && (a->reduction == QN_JOIN_MAX || a->reduction == QN_JOIN_MIN) && p->numerics.store) {
    p->traits |= QN_TRAIT_FINITE_ONLY;
    p->math = QN_MATH_FAST;
  }
  p->state = k;
  return QN_OK;
}

static void release(qn_prepared *p) { nccl_host->free(p->state); }

#define ROW(anchor) { .name = "nccl", .op = anchor, .prepare = prepare, .run = run, .release = release }
static const qn_engine row[] = {
  ROW(QN_OP_ALL_REDUCE), ROW(QN_OP_REDUCE_SCATTER), ROW(QN_OP_ALL_GATHER), ROW(QN_OP_BROADCAST),
  ROW(QN_OP_ALL_TO_ALL), ROW(QN_OP_SEND), ROW(QN_OP_RECV),
};
static const qn_engine_list list = { row, sizeof row / sizeof *row };
static const qn_engine_list *const lists[] = { &list, NULL };

static const char *const variables[] = {
  "QUERN_NCCL", "path of the NCCL to open; unset: the one in the process, then of LD_LIBRARY_PATH, of the system", NULL };

static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "nccl", .version = QN_VERSION, .device_kind = "cuda", .engines = lists, .variables = variables,
};

qn_entry_fn QN_BACKEND_ENTRY(nccl);

QN_EXPORT qn_status QN_BACKEND_ENTRY(nccl)(const qn_host *host, const qn_backend **out)
{
  const char *why;
  if (host->struct_size < sizeof(qn_host) || host->abi_major != QN_ABI_MAJOR || host->abi_minor < 4) return QN_NO_BACKEND;
  nccl_host = host;
  *out = &backend;
  if (!nccl_find(&why)) return host->error(QN_NO_BACKEND, why);
  return QN_OK;
}
