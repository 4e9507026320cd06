/* collective_shm.c -- collectives between CPU contexts of one host, through memory that they share (shm.h).
 *
 * A list's tensors are a stream of bytes, each tensor packed and begun at a multiple of 16. It goes through the slots chunk by chunk:
 *   all_reduce      each rank writes its chunk; step; each reduces a slice of it, and writes that; step; each reads all slices
 *                   (a short one: each reduces all of it, without the second step)
 *   reduce_scatter  each writes the chunks of all shares; step; each reduces its own        all_to_all  the same, reading
 *   all_gather      each writes its chunk; step; each reads all       broadcast  the same, but only root writes
 *   send, recv      chunks through the box of the pair, of which two may be under way
 * An element is reduced from rank 0 on, in f32 (f64 in f64, integers wrapping), and rounded once: the same bits on every rank, however
 * the stream is divided. */
#include "shm.h"

enum { SHORT = 8192, BLOCK = 256 };

typedef struct state {
  uint32_t op, reduction;
  int32_t  n, scale;                      /* pieces; value of the request, -1: none */
  uint32_t scale_dtype;
  int32_t  root, peer;
  int64_t  total;                         /* bytes of the stream */
  qn_collective_line line;
  qn_collective_piece piece[];
} state;

/* ---- between tensors and the stream ------------------------------------------------------------- */

/* Bytes b0 to b1 of the stream of a share, to `stream` or (out) from it into y. */
static void copy(const state *k, const qn_launch *l, int64_t share, int64_t b0, int64_t b1, char *stream, bool out)
{
  for (int32_t i = 0; i < k->n; i++) {
    const qn_collective_piece *p = &k->piece[i];
    const qn_collective_side *s = out ? &p->y : &p->x;
    int64_t first, n;
    if (qn_collective_within(p, b0, b1, &first, &n))
      qn_collective_move(p, s, (char *)l->ptr[s->number] + share * s->step, first, n, stream + (p->begin + first * p->bytes - b0), out);
  }
}

static void copy_out(const state *k, const qn_launch *l, int64_t share, int64_t b0, int64_t b1, const char *stream)
{
  copy(k, l, share, b0, b1, (char *)(uintptr_t)stream, true);
}

/* ---- reductions ---------------------------------------------------------------------------------- */

static void join_f32(float *a, const float *b, uint32_t how)
{
  switch (how) {
  case QN_JOIN_MAX:  for (int i = 0; i < BLOCK; i++) a[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i]; break;
  case QN_JOIN_MIN:  for (int i = 0; i < BLOCK; i++) a[i] = a[i] < b[i] || a[i] != a[i] ? a[i] : b[i]; break;
  case QN_JOIN_PROD: for (int i = 0; i < BLOCK; i++) a[i] *= b[i]; break;
  default:                for (int i = 0; i < BLOCK; i++) a[i] += b[i];
  }
}

static void join_f64(double *a, const double *b, uint32_t how)
{
  switch (how) {
  case QN_JOIN_MAX:  for (int i = 0; i < BLOCK; i++) a[i] = a[i] > b[i] || a[i] != a[i] ? a[i] : b[i]; break;
  case QN_JOIN_MIN:  for (int i = 0; i < BLOCK; i++) a[i] = a[i] < b[i] || a[i] != a[i] ? a[i] : b[i]; break;
  case QN_JOIN_PROD: for (int i = 0; i < BLOCK; i++) a[i] *= b[i]; break;
  default:                for (int i = 0; i < BLOCK; i++) a[i] += b[i];
  }
}

static void join_whole(uint64_t *a, const uint64_t *b, uint32_t how)
{
  switch (how) {
  case QN_JOIN_MAX:  for (int i = 0; i < BLOCK; i++) a[i] = (int64_t)a[i] > (int64_t)b[i] ? a[i] : b[i]; break;
  case QN_JOIN_MIN:  for (int i = 0; i < BLOCK; i++) a[i] = (int64_t)a[i] < (int64_t)b[i] ? a[i] : b[i]; break;
  case QN_JOIN_PROD: for (int i = 0; i < BLOCK; i++) a[i] *= b[i]; break;
  default:                for (int i = 0; i < BLOCK; i++) a[i] += b[i];
  }
}

static void load_f32(float *to, const char *from, int64_t n, uint32_t dtype)
{
  uint16_t half[BLOCK];
  if (dtype == QN_F32) {
    memcpy(to, from, (size_t)n * sizeof *to);
    return;
  }
  memcpy(half, from, (size_t)n * sizeof *half);
  if (dtype == QN_BF16)
    for (int64_t i = 0; i < n; i++) to[i] = qn_bf16_to_f32(half[i]);
  else
    for (int64_t i = 0; i < n; i++) to[i] = qn_f16_to_f32(half[i]);
}

static void store_f32(char *to, const float *from, int64_t n, uint32_t dtype)
{
  uint16_t half[BLOCK];
  if (dtype == QN_F32) {
    memcpy(to, from, (size_t)n * sizeof *from);
    return;
  }
  for (int64_t i = 0; i < n; i++) half[i] = dtype == QN_BF16 ? qn_bf16_from_f32(from[i]) : qn_f16_from_f32(from[i]);
  memcpy(to, half, (size_t)n * sizeof *half);
}

/* One block of n elements at byte `at` of the last step's chunks: offset, of each rank's slot. */
static void reduce_f32(const shm *s, const state *k, uint32_t dtype, int64_t n, int64_t at, char *to)
{
  float acc[BLOCK] = { 0 }, row[BLOCK] = { 0 };
  for (int r = 0; r < s->size; r++) {
    float *into = r ? row : acc;
    load_f32(into, shm_theirs(s, r) + at, n, dtype);
    if (k->scale >= 0) {
      const float scale = (float)shm_scale(s, r);
      for (int i = 0; i < BLOCK; i++) into[i] *= scale;
    }
    if (r) join_f32(acc, row, k->reduction);
  }
  if (k->reduction == QN_JOIN_AVG)
    for (int i = 0; i < BLOCK; i++) acc[i] /= (float)s->size;
  store_f32(to, acc, n, dtype);
}

static void reduce_f64(const shm *s, const state *k, int64_t n, int64_t at, char *to)
{
  double acc[BLOCK] = { 0 }, row[BLOCK] = { 0 };
  for (int r = 0; r < s->size; r++) {
    double *into = r ? row : acc;
    memcpy(into, shm_theirs(s, r) + at, (size_t)n * sizeof *into);
    if (k->scale >= 0) {
      const double scale = shm_scale(s, r);
      for (int i = 0; i < BLOCK; i++) into[i] *= scale;
    }
    if (r) join_f64(acc, row, k->reduction);
  }
  if (k->reduction == QN_JOIN_AVG)
    for (int i = 0; i < BLOCK; i++) acc[i] /= s->size;
  memcpy(to, acc, (size_t)n * sizeof *acc);
}

static void reduce_whole(const shm *s, const state *k, uint32_t dtype, int64_t n, int64_t at, char *to)
{
  const int64_t bytes = qn_kit_bytes(dtype);
  uint64_t acc[BLOCK] = { 0 }, row[BLOCK] = { 0 };
  for (int r = 0; r < s->size; r++) {
    const char *from = shm_theirs(s, r) + at;
    for (int64_t i = 0; i < n; i++) (r ? row : acc)[i] = (uint64_t)qn_load_i64(from + i * bytes, dtype);
    if (r) join_whole(acc, row, k->reduction);
  }
  for (int64_t i = 0; i < n; i++) qn_store_i64(to + i * bytes, dtype, qn_wrap(dtype, (int64_t)acc[i]));
}

/* Bytes b0 to b1 of the stream, of which byte b0 is at `at` in each rank's slot, to `to`. */
static void reduce(const shm *s, const state *k, int64_t b0, int64_t b1, int64_t at, char *to)
{
  for (int32_t i = 0; i < k->n; i++) {
    const qn_collective_piece *p = &k->piece[i];
    int64_t first, n;
    if (!qn_collective_within(p, b0, b1, &first, &n)) continue;
    int64_t offset = p->begin + first * p->bytes - b0;
    for (int64_t e = 0; e < n; e += BLOCK, offset += BLOCK * p->bytes) {
      const int64_t few = qn_min_i64(BLOCK, n - e);
      if (p->dtype == QN_F64) reduce_f64(s, k, few, at + offset, to + offset);
      else if (qn_is_integer(p->dtype)) reduce_whole(s, k, p->dtype, few, at + offset, to + offset);
      else reduce_f32(s, k, p->dtype, few, at + offset, to + offset);
    }
  }
}

/* ---- the collectives ------------------------------------------------------------------------------ */

static qn_status all_reduce(shm *s, const state *k, const qn_launch *l, double scale)
{
  const int64_t size = s->size, slot = shm_slot_bytes(size);
  qn_status status = QN_OK;
  for (int64_t b0 = 0; b0 < k->total && !status; b0 += slot) {
    const int64_t n = qn_min_i64(slot, k->total - b0), part = qn_round_up(qn_ceil_div(n, size), 64);
    copy(k, l, 0, b0, b0 + n, shm_mine(s), false);
    if ((status = cpu_shm_step(s, b0 == 0, scale))) break;
    if (n <= SHORT) {
      reduce(s, k, b0, b0 + n, 0, l->workspace);
      copy_out(k, l, 0, b0, b0 + n, l->workspace);
      continue;
    }
    const int64_t mine = qn_min_i64(n, s->rank * part), end = qn_min_i64(n, mine + part);
    reduce(s, k, b0 + mine, b0 + end, mine, shm_mine(s));
    if ((status = cpu_shm_step(s, false, 0))) break;
    for (int64_t r = 0; r < size; r++) {
      const int64_t from = qn_min_i64(n, r * part), to = qn_min_i64(n, from + part);
      copy_out(k, l, 0, b0 + from, b0 + to, shm_theirs(s, (int)r));
    }
  }
  return status;
}

/* reduce_scatter and all_to_all: a chunk of each share. */
static qn_status by_shares(shm *s, const state *k, const qn_launch *l, double scale)
{
  const int64_t room = shm_slot_bytes(s->size) / s->size / 64 * 64;
  qn_status status = QN_OK;
  for (int64_t b0 = 0; b0 < k->total && !status; b0 += room) {
    const int64_t b1 = qn_min_i64(k->total, b0 + room);
    for (int64_t q = 0; q < s->size; q++) copy(k, l, q, b0, b1, shm_mine(s) + q * room, false);
    if ((status = cpu_shm_step(s, b0 == 0, scale))) break;
    if (k->op == QN_OP_REDUCE_SCATTER) {
      reduce(s, k, b0, b1, s->rank * room, l->workspace);
      copy_out(k, l, 0, b0, b1, l->workspace);
    } else
      for (int q = 0; q < s->size; q++) copy_out(k, l, q, b0, b1, shm_theirs(s, q) + s->rank * room);
  }
  return status;
}

/* all_gather and broadcast. */
static qn_status whole_chunks(shm *s, const state *k, const qn_launch *l)
{
  const bool gathers = k->op == QN_OP_ALL_GATHER;
  const int64_t slot = shm_slot_bytes(s->size);
  qn_status status = QN_OK;
  for (int64_t b0 = 0; b0 < k->total && !status; b0 += slot) {
    const int64_t b1 = qn_min_i64(k->total, b0 + slot);
    if (gathers || s->rank == k->root) copy(k, l, 0, b0, b1, shm_mine(s), false);
    if ((status = cpu_shm_step(s, b0 == 0, 0))) break;
    for (int q = 0; q < s->size && gathers; q++) copy_out(k, l, q, b0, b1, shm_theirs(s, q));
    if (!gathers) copy_out(k, l, 0, b0, b1, shm_theirs(s, k->root));
  }
  return status;
}

static qn_status between_two(shm *s, const state *k, const qn_launch *l)
{
  const bool sends = k->op == QN_OP_SEND;
  qn_status status = QN_OK;
  if (k->peer == s->rank)
    return cpu_host->error(QN_BAD_ARGUMENT, sends ? "send: peer: is this rank itself" : "recv: peer: is this rank itself");
  for (int64_t b0 = 0; b0 < k->total && !status; b0 += SHM_BOX) {
    const int64_t b1 = qn_min_i64(k->total, b0 + SHM_BOX);
    char *chunk;
    if ((status = cpu_shm_box_wait(s, k->peer, sends, b0 == 0, &chunk))) break;
    copy(k, l, 0, b0, b1, chunk, !sends);
    cpu_shm_box_pass(s, k->peer, sends);
  }
  for (int32_t i = 0; i < k->n && sends && !status; i++) {      /* y = x, through the workspace: their strides may differ */
    const qn_collective_piece *p = &k->piece[i];
    const int64_t end = p->begin + p->elements * p->bytes;
    if (l->ptr[p->x.number] == l->ptr[p->y.number]) continue;
    for (int64_t b0 = p->begin; b0 < end; b0 += SHM_BOX) {
      const int64_t b1 = qn_min_i64(end, b0 + SHM_BOX);
      copy(k, l, 0, b0, b1, l->workspace, false);
      copy_out(k, l, 0, b0, b1, l->workspace);
    }
  }
  return status;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *l)
{
  const state *k = prepared->state;
  const double scale = k->scale >= 0 ? qn_load_f64(l->ptr[k->scale], k->scale_dtype) : 1;
  shm *s;
  if (!l->ranks) return cpu_host->error(QN_BAD_ARGUMENT, "ctx: has joined no group, and the plan was made in one");
  qn_status status = cpu_shm_of(l->ranks, &s);
  if (status || (status = cpu_shm_begin(s, &k->line))) return status;
  switch (k->op) {
  case QN_OP_ALL_REDUCE:     status = all_reduce(s, k, l, scale); break;
  case QN_OP_REDUCE_SCATTER:
  case QN_OP_ALL_TO_ALL:     status = by_shares(s, k, l, scale); break;
  case QN_OP_ALL_GATHER:
  case QN_OP_BROADCAST:      status = whole_chunks(s, k, l); break;
  default:                   status = between_two(s, k, l);
  }
  cpu_shm_end(s);
  return status;
}

/* ---- preparation ----------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_node *op = &request->op[0];
  const qn_collective *a = op->attr;
  const int32_t n = op->first[1] - op->first[0];
  const int64_t size = request->demands->ranks;
  const bool reduces = op->op == QN_OP_ALL_REDUCE || op->op == QN_OP_REDUCE_SCATTER;
  if (size <= 1 || size > SHM_MOST) {
    snprintf(prepared->refusal.rule, sizeof prepared->refusal.rule, "it is for a group of 2 to %d ranks", SHM_MOST);
    snprintf(prepared->refusal.seen, sizeof prepared->refusal.seen, size ? "%lld" : "no group", (long long)size);
    return size ? QN_UNSUPPORTED : QN_NO_BACKEND;
  }
  qn_status status = qn_collective_fits(request, prepared);
  if (status) return status;
  state *k = cpu_state(prepared, sizeof *k + (size_t)n * sizeof *k->piece);
  if (!k) return QN_NO_MEMORY;
  k->op = op->op;
  k->reduction = (uint32_t)a->reduction;
  k->n = n;
  k->scale = reduces && op->first[2] > op->first[1] ? op->arg[op->first[1]] : -1;
  if (k->scale >= 0) k->scale_dtype = request->value[k->scale].dtype;
  k->root = (int32_t)a->root;
  k->peer = (int32_t)a->peer;
  for (int32_t i = 0; i < n; i++) {
    qn_collective_piece *p = &k->piece[i];
    *p = qn_collective_piece_of(request, i);
    p->begin = k->total;
    k->total += qn_round_up(p->elements * p->bytes, 16);
  }
  qn_collective_line_of(request, &k->line);
  prepared->workspace = (uint64_t)qn_min_i64(k->total, shm_slot_bytes(size));
  return QN_OK;
}

#define ROW(anchor)                                                                              \
  { .name = "shm", .op = anchor, .prepare = prepare, .run = run, .release = cpu_release,         \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE }

static const qn_engine row[] = {
  ROW(QN_OP_ALL_REDUCE), ROW(QN_OP_REDUCE_SCATTER), ROW(QN_OP_ALL_GATHER), ROW(QN_OP_BROADCAST),
  ROW(QN_OP_ALL_TO_ALL), ROW(QN_OP_SEND), ROW(QN_OP_RECV),
};
const qn_engine_list cpu_collective_shm = { row, sizeof row / sizeof *row };
