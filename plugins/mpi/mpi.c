/* mpi.c -- collectives over MPI, between hosts or processes of one: a backend whose engines work on the memory of cpu_ref's device.
 *
 * A list's tensors of 64 KB and more go alone, the smaller ones packed into streams, one for each of MPI's types: moved bits are bytes;
 * f16 and bf16, which MPI lacks, are reduced as f32, and rounded once; sums and products of integers, which wrap, are unsigned (of
 * bytes by our own operator: Open MPI's may saturate). A stream goes in chunks. How it is cut depends on dtypes and dims only, which
 * are the same on all ranks: strides, addresses and the scale are not, and decide whether MPI reads and writes the tensors themselves
 * or the workspace.
 *   all_reduce      MPI_Iallreduce                all_gather  MPI_Iallgatherv       broadcast   MPI_Ibcast
 *   reduce_scatter  MPI_Ireduce_scatter_block     all_to_all  MPI_Ialltoallv        send, recv  MPI_Isend, MPI_Irecv
 * The order of a sum is MPI's: no trait is claimed. Before each collective the ranks agree that it is the same (member.c). */
#include <limits.h>
#include "member.h"

const qn_host *mpi_host;

enum { ALONE = 1 << 16, CHUNK = 1 << 20, BLOCK = 512, KINDS = 6 };

/* MPI's type of a stream's units, for sums and products, and for max and min. */
typedef struct kind { int64_t bytes; MPI_Datatype adds, picks; } kind;

static kind kind_of(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64: return (kind){ 8, MPI_DOUBLE, MPI_DOUBLE };
  case QN_I8:  return (kind){ 1, MPI_UINT8_T, MPI_INT8_T };
  case QN_U8:  return (kind){ 1, MPI_UINT8_T, MPI_UINT8_T };
  case QN_I32: return (kind){ 4, MPI_UINT32_T, MPI_INT32_T };
  case QN_I64: return (kind){ 8, MPI_UINT64_T, MPI_INT64_T };
  default:     return (kind){ 4, MPI_FLOAT, MPI_FLOAT };
  }
}

typedef struct stream {
  uint32_t dtype;                         /* of its units, where they are reduced */
  int32_t  piece;                         /* the only one; -1: those that name this stream */
  int64_t  bytes, total, chunk;           /* of a unit; units of a share; of a share at once */
  MPI_Datatype type;
  bool     x_here, y_here;                /* MPI can use the tensor itself */
} stream;

typedef struct state {
  uint32_t op, reduction;
  int32_t  n, n_streams, size, scale;     /* scale: value of the request, -1: none */
  uint32_t scale_dtype;
  int32_t  root, peer;
  bool     reduces;
  qn_collective_line line;
  stream  *stream;
  int32_t *of;                            /* the stream of each piece */
  qn_collective_piece *piece;
} state;

/* What runs: of one launch. */
typedef struct work { const state *k; const stream *s; const qn_launch *l; mpi_member *m; double scale; } work;

/* ---- between tensors and streams --------------------------------------------------------------- */

static void load_block(void *to, const char *from, int64_t n, uint32_t dtype, double scale)
{
  if (dtype == QN_F64) {
    double *d = to;
    memcpy(d, from, (size_t)n * sizeof *d);
    for (int64_t i = 0; i < n; i++) d[i] *= scale;
    return;
  }
  float *f = to;
  uint16_t half[BLOCK];
  if (dtype == QN_F32) memcpy(f, from, (size_t)n * sizeof *f);
  else memcpy(half, from, (size_t)n * sizeof *half);
  if (dtype == QN_BF16)
    for (int64_t i = 0; i < n; i++) f[i] = qn_bf16_to_f32(half[i]);
  else if (dtype == QN_F16)
    for (int64_t i = 0; i < n; i++) f[i] = qn_f16_to_f32(half[i]);
  if (scale != 1)
    for (int64_t i = 0; i < n; i++) f[i] *= (float)scale;
}

static void store_block(char *to, const float *from, int64_t n, uint32_t dtype)
{
  uint16_t half[BLOCK];
  for (int64_t i = 0; i < n; i++) half[i] = dtype == QN_BF16 ? qn_bf16_from_f32(from[i]) : qn_f16_from_f32(from[i]);
  memcpy(to, half, (size_t)n * sizeof *half);
}

static bool is_half(uint32_t dtype) { return dtype == QN_F16 || dtype == QN_BF16; }

/* n elements from the first-th on of a share that begins at `tensor`, to units at `at`. */
static void take(const work *w, const qn_collective_piece *p, char *tensor, int64_t first, int64_t n, char *at)
{
  char raw[BLOCK * 8];
  if (!w->k->reduces || (!is_half(p->dtype) && w->scale == 1)) {
    qn_collective_move(p, &p->x, tensor, first, n, at, 0);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t few = qn_min_i64(BLOCK, n - i);
    qn_collective_move(p, &p->x, tensor, first + i, few, raw, 0);
    load_block(at + i * w->s->bytes, raw, few, p->dtype, w->scale);
  }
}

static void give(const work *w, const qn_collective_piece *p, char *tensor, int64_t first, int64_t n, char *at)
{
  char raw[BLOCK * 2];
  float block[BLOCK];
  if (!w->k->reduces || !is_half(p->dtype)) {
    qn_collective_move(p, &p->y, tensor, first, n, at, 1);
    return;
  }
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t few = qn_min_i64(BLOCK, n - i);
    memcpy(block, at + i * w->s->bytes, (size_t)few * sizeof *block);
    store_block(raw, block, few, p->dtype);
    qn_collective_move(p, &p->y, tensor, first + i, few, raw, 1);
  }
}

/* Units b0 to b1 of a share, to `at` or (out) from it into y. */
static void copy(const work *w, int64_t share, int64_t b0, int64_t b1, char *at, bool out)
{
  const int32_t which = (int32_t)(w->s - w->k->stream);
  for (int32_t i = 0; i < w->k->n; i++) {
    const qn_collective_piece *p = &w->k->piece[i];
    const qn_collective_side *side = out ? &p->y : &p->x;
    int64_t first, n;
    if (w->k->of[i] != which || !qn_collective_within(p, b0, b1, &first, &n)) continue;
    char *tensor = (char *)w->l->ptr[side->number] + share * side->step, *units = at + (p->begin + first * p->units - b0) * w->s->bytes;
    if (out) give(w, p, tensor, first, n, units);
    else take(w, p, tensor, first, n, units);
  }
}

/* The mean of n sums. */
static void divide(const work *w, char *at, int64_t n)
{
  float *f = (float *)(void *)at;
  double *d = (double *)(void *)at;
  if (w->s->dtype == QN_F64)
    for (int64_t i = 0; i < n; i++) d[i] /= w->m->ranks->size;
  else
    for (int64_t i = 0; i < n; i++) f[i] /= (float)w->m->ranks->size;
}

/* ---- a chunk: units b0 to b1 of each share ------------------------------------------------------- */

static char *address(const work *w, bool out)
{
  const qn_collective_piece *p = &w->k->piece[w->s->piece];
  return w->l->ptr[out ? p->y.number : p->x.number];
}

static MPI_Op operator_of(const work *w)
{
  const bool max = w->k->reduction == QN_JOIN_MAX;
  const bool bytes = w->s->bytes == 1;
  switch (w->k->reduction) {
  case QN_JOIN_PROD: return bytes ? w->m->prod_u8 : MPI_PROD;
  case QN_JOIN_MAX: case QN_JOIN_MIN: break;
  default: return bytes ? w->m->sum_u8 : MPI_SUM;
  }
  if (w->s->dtype == QN_F64) return max ? w->m->max_f64 : w->m->min_f64;
  if (w->s->dtype == QN_F32) return max ? w->m->max_f32 : w->m->min_f32;
  return max ? MPI_MAX : MPI_MIN;
}

static qn_status all_reduce(const work *w, int64_t b0, int64_t b1)
{
  const bool here = w->s->x_here && w->s->y_here && w->scale == 1;
  const int64_t n = b1 - b0;
  char *y = w->s->y_here ? address(w, true) + b0 * w->s->bytes : w->l->workspace;
  const char *x = here ? address(w, false) + b0 * w->s->bytes : y;
  MPI_Request request;
  if (!here) copy(w, 0, b0, b1, y, false);
  const int error = MPI_Iallreduce(x == y ? MPI_IN_PLACE : x, y, (int)n, w->s->type, operator_of(w), w->m->comm, &request);
  const qn_status status = mpi_wait(w->m, "MPI_Iallreduce", error, &request, -1);
  if (status) return status;
  if (w->k->reduction == QN_JOIN_AVG) divide(w, y, n);
  if (!w->s->y_here) copy(w, 0, b0, b1, y, true);
  return QN_OK;
}

static qn_status reduce_scatter(const work *w, int64_t b0, int64_t b1)
{
  const bool here = w->s->x_here && w->scale == 1 && b1 - b0 == w->s->total;
  const int64_t n = b1 - b0;
  char *stage = w->l->workspace;
  const char *x = here ? address(w, false) : stage;
  char *y = w->s->y_here ? address(w, true) + b0 * w->s->bytes : stage + (here ? 0 : w->k->size * n * w->s->bytes);
  MPI_Request request;
  for (int64_t q = 0; q < w->k->size && !here; q++) copy(w, q, b0, b1, stage + q * n * w->s->bytes, false);
  const int error = MPI_Ireduce_scatter_block(x, y, (int)n, w->s->type, operator_of(w), w->m->comm, &request);
  const qn_status status = mpi_wait(w->m, "MPI_Ireduce_scatter_block", error, &request, -1);
  if (status) return status;
  if (w->k->reduction == QN_JOIN_AVG) divide(w, y, n);
  if (!w->s->y_here) copy(w, 0, b0, b1, y, true);
  return QN_OK;
}

/* Counts and displacements, which MPI reads until the request has ended. */
static void spread(int *count, int *at, int size, int64_t n, int64_t step)
{
  for (int q = 0; q < size; q++) {
    count[q] = (int)n;
    at[q] = (int)(q * step);
  }
}

/* all_gather and all_to_all. */
static qn_status shares(const work *w, int64_t b0, int64_t b1)
{
  const bool gathers = w->k->op == QN_OP_ALL_GATHER;
  const int size = w->m->ranks->size;     /* as MPI takes it, and `numbers` has room for */
  const int64_t n = b1 - b0, total = w->s->total;
  int *count = w->m->numbers, *x_at = count + size, *y_at = x_at + size;
  char *stage = w->l->workspace, *x = stage, *y = stage;
  MPI_Request request;
  int error;
  if (w->s->x_here) x = address(w, false) + b0;
  else y += (gathers ? 1 : size) * n;
  if (w->s->y_here) y = address(w, true) + b0;
  spread(count, x_at, size, n, w->s->x_here ? total : n);
  spread(count, y_at, size, n, w->s->y_here ? total : n);
  for (int64_t q = 0; q < (gathers ? 1 : size) && !w->s->x_here; q++) copy(w, q, b0, b1, x + q * n, false);
  if (gathers) error = MPI_Iallgatherv(x, (int)n, MPI_BYTE, y, count, y_at, MPI_BYTE, w->m->comm, &request);
  else error = MPI_Ialltoallv(x, count, x_at, MPI_BYTE, y, count, y_at, MPI_BYTE, w->m->comm, &request);
  const qn_status status = mpi_wait(w->m, gathers ? "MPI_Iallgatherv" : "MPI_Ialltoallv", error, &request, -1);
  for (int64_t q = 0; q < size && !w->s->y_here && !status; q++) copy(w, q, b0, b1, y + q * n, true);
  return status;
}

static qn_status broadcast(const work *w, int64_t b0, int64_t b1)
{
  char *y = w->s->y_here ? address(w, true) + b0 : w->l->workspace;
  const bool there = w->s->x_here && w->s->y_here && address(w, false) == address(w, true);
  MPI_Request request;
  if (w->k->root == w->m->ranks->rank && !there) copy(w, 0, b0, b1, y, false);
  const int error = MPI_Ibcast(y, (int)(b1 - b0), MPI_BYTE, w->k->root, w->m->comm, &request);
  const qn_status status = mpi_wait(w->m, "MPI_Ibcast", error, &request, -1);
  if (!status && !w->s->y_here) copy(w, 0, b0, b1, y, true);
  return status;
}

/* send's y is its x. */
static qn_status between_two(const work *w, int64_t b0, int64_t b1)
{
  const bool sends = w->k->op == QN_OP_SEND, there = w->s->x_here && w->s->y_here && address(w, false) == address(w, true);
  const int peer = w->k->peer, n = (int)(b1 - b0);
  char *at = w->s->y_here ? address(w, true) + b0 : w->l->workspace;
  MPI_Request request;
  int error;
  if (sends && !there) copy(w, 0, b0, b1, at, false);
  if (sends) error = MPI_Isend(at, n, MPI_BYTE, peer, MPI_TAG_DATA, w->m->comm, &request);
  else error = MPI_Irecv(at, n, MPI_BYTE, peer, MPI_TAG_DATA, w->m->comm, &request);
  const qn_status status = mpi_wait(w->m, sends ? "MPI_Isend" : "MPI_Irecv", error, &request, peer);
  if (!status && !w->s->y_here) copy(w, 0, b0, b1, at, true);
  return status;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *l)
{
  const state *k = prepared->state;
  const bool pair = k->op == QN_OP_SEND || k->op == QN_OP_RECV;
  work w = { k, NULL, l, NULL, k->scale >= 0 ? qn_load_f64(l->ptr[k->scale], k->scale_dtype) : 1 };
  if (!l->ranks) return mpi_host->error(QN_BAD_ARGUMENT, "ctx: has joined no group, and the plan was made in one");
  if (pair && k->peer == l->ranks->rank) return mpi_host->error(QN_BAD_ARGUMENT, "peer: is this rank itself");
  if (!k->n_streams) return QN_OK;
  qn_status status = mpi_member_of(l->ranks, &w.m);
  if (!status) status = pair ? mpi_agree_with(w.m, &k->line, k->peer, k->op == QN_OP_SEND) : mpi_agree(w.m, &k->line);
  for (int32_t i = 0; i < k->n_streams && !status; i++) {
    w.s = &k->stream[i];
    for (int64_t b0 = 0; b0 < w.s->total && !status; b0 += w.s->chunk) {
      const int64_t b1 = qn_min_i64(w.s->total, b0 + w.s->chunk);
      switch (k->op) {
      case QN_OP_ALL_REDUCE:     status = all_reduce(&w, b0, b1); break;
      case QN_OP_REDUCE_SCATTER: status = reduce_scatter(&w, b0, b1); break;
      case QN_OP_ALL_GATHER:
      case QN_OP_ALL_TO_ALL:     status = shares(&w, b0, b1); break;
      case QN_OP_BROADCAST:      status = broadcast(&w, b0, b1); break;
      default:                   status = between_two(&w, b0, b1);
      }
    }
  }
  return status;
}

/* ---- preparation ---------------------------------------------------------------------------------- */

static qn_status check(const qn_request *r, qn_prepared *p)
{
  const char *missing;
  if (r->demands->ranks < 2) {
    qn_refuse(p, "it is for a group of 2 ranks and more", "", "", r->demands->ranks ? "%d" : "no group", (int)r->demands->ranks);
    return r->demands->ranks ? QN_UNSUPPORTED : QN_NO_BACKEND;
  }
  const qn_status status = qn_collective_fits(r, p);
  if (status) return status;
  if (!(missing = mpi_missing())) return QN_OK;
  qn_refuse(p, missing, "", "mpirun -n N program", "%s", "");
  return QN_NO_BACKEND;
}

/* The stream of a small tensor of this dtype: one for each of MPI's types, one for all that is moved. */
static int32_t shared_stream(state *k, uint32_t dtype)
{
  const uint32_t as = !k->reduces ? QN_U8 : is_half(dtype) ? QN_F32 : dtype;
  for (int32_t i = 0; i < k->n_streams; i++)
    if (k->stream[i].piece < 0 && k->stream[i].dtype == as) return i;
  k->stream[k->n_streams] = (stream){ .dtype = as, .piece = -1 };
  return k->n_streams++;
}

static void add(state *k, int32_t i)
{
  qn_collective_piece *p = &k->piece[i];
  const bool alone = p->elements * p->bytes >= ALONE;
  k->of[i] = -1;
  if (!p->elements) return;
  if (alone) k->stream[k->of[i] = k->n_streams++] = (stream){ .dtype = is_half(p->dtype) ? QN_F32 : p->dtype, .piece = i };
  else k->of[i] = shared_stream(k, p->dtype);
  stream *s = &k->stream[k->of[i]];
  const kind type = kind_of(s->dtype);
  s->bytes = k->reduces ? type.bytes : 1;
  s->type = !k->reduces ? MPI_BYTE : k->reduction == QN_JOIN_MAX || k->reduction == QN_JOIN_MIN ? type.picks : type.adds;
  p->units = k->reduces ? 1 : p->bytes;
  p->begin = s->total;
  s->total += alone || k->reduces ? p->elements * p->units : qn_round_up(p->elements * p->bytes, 16);
}

/* May MPI use the tensor itself, whose shares are at multiples of their size? */
static bool is_here(const state *k, const stream *s, const qn_collective_side *side)
{
  const qn_collective_piece *p = &k->piece[s->piece];
  if (!side->packed || (k->reduces && is_half(p->dtype))) return false;
  return !side->step || (side->step == p->elements * p->bytes && side->step * k->size <= INT_MAX);
}

static uint64_t cut(state *k, stream *s)
{
  const bool by_shares = k->op == QN_OP_REDUCE_SCATTER || k->op == QN_OP_ALL_GATHER || k->op == QN_OP_ALL_TO_ALL;
  const int64_t at_once = CHUNK / s->bytes / (by_shares ? k->size : 1) / 16 * 16;
  int64_t stages = 0;
  s->chunk = qn_min_i64(s->total, qn_max_i64(at_once, 16));
  if (s->piece >= 0) {
    s->x_here = is_here(k, s, &k->piece[s->piece].x);
    s->y_here = is_here(k, s, &k->piece[s->piece].y);
  }
  const bool all_of_x = s->x_here && (k->op != QN_OP_REDUCE_SCATTER || (k->scale < 0 && s->chunk == s->total));
  if (by_shares && !all_of_x) stages += k->op == QN_OP_ALL_GATHER ? 1 : k->size;
  if (!s->y_here) stages += k->op == QN_OP_ALL_GATHER || k->op == QN_OP_ALL_TO_ALL ? k->size : 1;
  return (uint64_t)(stages * s->chunk * s->bytes);
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const qn_collective *a = op->attr;
  const int32_t n = op->first[1] - op->first[0];
  const qn_status status = check(r, p);
  if (status) return status;
  const size_t streams = (size_t)n + KINDS;
  state *k = mpi_host->alloc(sizeof *k + streams * sizeof *k->stream + (size_t)n * (sizeof *k->piece + sizeof *k->of));
  if (!k) return mpi_host->error(QN_NO_MEMORY, "no memory for an engine's state");
  k->stream = (stream *)(k + 1);
  k->piece = (qn_collective_piece *)(k->stream + streams);
  k->of = (int32_t *)(k->piece + n);
  k->op = op->op;
  k->reduction = (uint32_t)a->reduction;
  k->n = n;
  k->size = r->demands->ranks;
  k->reduces = op->op == QN_OP_ALL_REDUCE || op->op == QN_OP_REDUCE_SCATTER;
  k->scale = k->reduces && op->first[2] > op->first[1] ? op->arg[op->first[1]] : -1;
  if (k->scale >= 0) k->scale_dtype = r->value[k->scale].dtype;
  k->root = (int32_t)a->root;
  k->peer = (int32_t)a->peer;
  for (int32_t i = 0; i < n; i++) {
    k->piece[i] = qn_collective_piece_of(r, i);
    add(k, i);
  }
  for (int32_t i = 0; i < k->n_streams; i++) p->workspace = (uint64_t)qn_max_i64((int64_t)p->workspace, (int64_t)cut(k, &k->stream[i]));
  qn_collective_line_of(r, &k->line);
  if (mpi_has_more_hosts()) p->estimate = 1;          /* before engines of one host, which say yes and cannot */
  p->state = k;
  return QN_OK;
}

static void release(qn_prepared *p) { mpi_host->free(p->state); }

#define ROW(anchor) { .name = "mpi", .op = anchor, .prepare = prepare, .run = run, .release = release }
static const qn_engine row[] = {
  ROW(QN_OP_ALL_REDUCE), ROW(QN_OP_REDUCE_SCATTER), ROW(QN_OP_ALL_GATHER), ROW(QN_OP_BROADCAST),
  ROW(QN_OP_ALL_TO_ALL), ROW(QN_OP_SEND), ROW(QN_OP_RECV),
};
static const qn_engine_list list = { row, sizeof row / sizeof *row };
static const qn_engine_list *const lists[] = { &list, NULL };

static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine),
  .name = "mpi", .version = QN_VERSION, .device_kind = "cpu", .engines = lists,
};

qn_entry_fn QN_BACKEND_ENTRY(mpi);

QN_EXPORT qn_status QN_BACKEND_ENTRY(mpi)(const qn_host *host, const qn_backend **out)
{
  if (host->struct_size < sizeof(qn_host) || host->abi_major != QN_ABI_MAJOR || host->abi_minor < 4) return QN_NO_BACKEND;
  mpi_host = host;
  *out = &backend;
  return QN_OK;
}
