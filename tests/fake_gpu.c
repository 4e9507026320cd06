/* fake_gpu.c -- a device of kind "cuda" that is host memory, and what plugins/nccl needs of NCCL for all_reduce of f32 and messages, for
 * t_nccl: ranks are processes, a communicator is memory that they share. The same file is the plugin and QUERN_NCCL.
 *
 *   streams     a thread that does what is enqueued, in order. There is room for few: enqueueing more waits, as a GPU's driver does
 *   captures    lists of work, that communicators are not freed before
 *   waiting     making a communicator, its first call of each size, and the work itself wait for the other ranks, until it is aborted
 *
 * A communicator that was destroyed or aborted ends the process of who uses it again.
 *
 * FAKE_NCCL=making|made|connecting: this rank dies there; stalling: it sleeps as it connects; slow: it takes its time as it destroys a
 * communicator; error: its communicator has an error after its third call. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "../plugins/nccl/nccl_abi.h"

static void rest(void) { nanosleep(&(struct timespec){ 0, 100000 }, NULL); }

/* ---- communicators ----------------------------------------------------------------------------------------- */

enum { MOST_RANKS = 8, FLOATS = 4096, SIZES = 64 };
typedef struct shared {
  atomic_int arrived[MOST_RANKS], sent[MOST_RANKS][MOST_RANKS];
  float x[2][MOST_RANKS][FLOATS], mail[MOST_RANKS][MOST_RANKS][FLOATS];
} shared;

struct ncclComm {
  shared *all;
  char    name[64];
  int     rank, ranks, blocks, round, calls, n_sizes, parts;
  size_t  size[SIZES];                    /* connected */
  atomic_int aborted, state, graphs, gone;      /* state: of ncclCommGetAsyncError */
  int     taken[MOST_RANKS];              /* messages */
  atomic_int at;                          /* rounds of work */
};

/* True: all ranks have come to this point as often as this one; false: aborted. The first half of the counts is the host's. */
static bool all_come(nccl_comm c, int *rounds, int first)
{
  const int n = ++*rounds;
  atomic_fetch_add(&c->all->arrived[c->rank + first], 1);
  for (int r = 0; r < c->ranks; r++)
    while (atomic_load(&c->all->arrived[r + first]) < n) {
      if (atomic_load(&c->aborted)) return false;
      rest();
    }
  return true;
}

static bool is_at(const char *where)
{
  const char *said = getenv("FAKE_NCCL");
  return said && !strcmp(said, where);
}

static void die_at(const char *where)
{
  if (is_at(where)) raise(SIGKILL);
}

static void must_live(nccl_comm c)
{
  if (atomic_load(&c->gone)) fprintf(stderr, "fake_gpu: a communicator is used that is gone\n"), abort();
}

typedef struct making { nccl_comm parent, own; nccl_comm *out; } making;
static void *make(void *arg)
{
  making *m = arg;
  die_at("making");
  const bool came = all_come(m->own, &m->own->round, 0);
  shm_unlink(m->own->name);               /* all have it, or nobody needs it */
  if (m->out) *m->out = m->own;
  if (m->parent) die_at("made");
  atomic_store(&(m->parent ? m->parent : m->own)->state, came ? NCCL_SUCCESS : NCCL_INTERNAL_ERROR);
  free(m);
  return NULL;
}

static nccl_comm new_comm(const char *name, int ranks, int rank, int blocks)
{
  nccl_comm c = calloc(1, sizeof *c);
  const int fd = shm_open(name, O_RDWR | O_CREAT, 0600);
  if (!c || fd < 0 || ftruncate(fd, sizeof(shared))) abort();
  c->all = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  snprintf(c->name, sizeof c->name, "%s", name);
  c->rank = rank, c->ranks = ranks, c->blocks = blocks;
  return c;
}

static void *begin(void *arg)
{
  pthread_t thread;
  if (pthread_create(&thread, NULL, make, arg)) abort();
  pthread_detach(thread);
  return NULL;
}

QN_EXPORT nccl_result ncclGetVersion(int *version) { return *version = 22800, NCCL_SUCCESS; }
QN_EXPORT const char *ncclGetErrorString(nccl_result result) { return result == 6 ? "remote error" : "error"; }
QN_EXPORT const char *ncclGetLastError(nccl_comm comm) { return (void)comm, ""; }

QN_EXPORT nccl_result ncclGetUniqueId(nccl_id *id)
{
  static int made;
  snprintf(id->internal, sizeof id->internal, "/quern-fake-%d-%d", (int)getpid(), ++made);
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclCommInitRankConfig(nccl_comm *comm, int ranks, nccl_id id, int rank, nccl_config *config)
{
  making *m = calloc(1, sizeof *m);
  if (!m || config->blocking) return 4;
  *comm = m->own = new_comm(id.internal, ranks, rank, 0);
  atomic_store(&m->own->state, NCCL_IN_PROGRESS);
  begin(m);
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclCommSplit(nccl_comm comm, int colour, int key, nccl_comm *part, nccl_config *config)
{
  making *m = calloc(1, sizeof *m);
  char name[sizeof comm->name + 8];
  if (!m || comm->blocks || colour) return 4;
  snprintf(name, sizeof name, "%.50s-%d", comm->name, ++comm->parts);
  *m = (making){ comm, new_comm(name, comm->ranks, key, config->blocking), part };
  atomic_store(&comm->state, NCCL_IN_PROGRESS);
  begin(m);
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclCommGetAsyncError(nccl_comm comm, nccl_result *state)
{
  must_live(comm);
  *state = is_at("error") && comm->calls > 2 ? 6 : atomic_load(&comm->state);
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclCommDestroy(nccl_comm comm)
{
  must_live(comm);
  if (is_at("slow")) nanosleep(&(struct timespec){ 0, 400000000 }, NULL);
  while (atomic_load(&comm->graphs)) rest();          /* also when aborted, as NCCL does */
  atomic_store(&comm->gone, 1);                       /* its memory is kept: work may look at it */
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclCommAbort(nccl_comm comm)
{
  atomic_store(&comm->aborted, 1);
  return ncclCommDestroy(comm);
}

/* ---- streams ------------------------------------------------------------------------------------------------ */

enum { ROOM = 16, MOST_CAPTURED = 64 };
typedef struct work { nccl_comm comm; const void *from; void *to; size_t bytes; int peer; } work;
/* comm: an all_reduce, or without `to` or `from` a message; else a copy */
typedef struct graph { work w[MOST_CAPTURED]; int n; } graph;
typedef struct stream {
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  pthread_t       thread;
  work   queue[ROOM];
  int    begun, done, asked;              /* counts of work */
  bool   ends;
  graph *captures;
} stream;

static void all_reduce(const work *w)
{
  nccl_comm c = w->comm;
  int round = atomic_load(&c->at);
  const size_t n = w->bytes / sizeof(float);
  float (*x)[FLOATS] = c->all->x[round & 1];
  if (!atomic_load(&c->aborted)) memcpy(x[c->rank], w->from, w->bytes);
  if (!all_come(c, &round, 0 + MOST_RANKS / 2)) return;
  for (size_t i = 0; i < n; i++) {
    float sum = 0;
    for (int r = 0; r < c->ranks; r++) sum += x[r][i];
    ((float *)w->to)[i] = sum;
  }
  atomic_store(&c->at, round);
}

/* To peer, or from it. */
static void message(const work *w)
{
  nccl_comm c = w->comm;
  const int from = w->from ? c->rank : w->peer, to = w->from ? w->peer : c->rank;
  if (w->from) {
    memcpy(c->all->mail[from][to], w->from, w->bytes);
    atomic_fetch_add(&c->all->sent[from][to], 1);
    return;
  }
  while (atomic_load(&c->all->sent[from][to]) == c->taken[from]) {
    if (atomic_load(&c->aborted)) return;
    rest();
  }
  c->taken[from]++;
  memcpy(w->to, c->all->mail[from][to], w->bytes);
}

static void *stream_main(void *arg)
{
  stream *s = arg;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (s->begun == s->asked && !s->ends) pthread_cond_wait(&s->changed, &s->lock);
    if (s->begun == s->asked) break;
    const work w = s->queue[s->begun++ % ROOM];
    pthread_mutex_unlock(&s->lock);
    if (w.comm && w.from && w.to) all_reduce(&w);
    else if (w.comm) message(&w);
    else memcpy(w.to, w.from, w.bytes);
    pthread_mutex_lock(&s->lock);
    s->done++;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static void push(stream *s, work w)
{
  if (s->captures) {
    if (s->captures->n == MOST_CAPTURED) abort();
    s->captures->w[s->captures->n++] = w;
    if (w.comm) atomic_fetch_add(&w.comm->graphs, 1);
    return;
  }
  pthread_mutex_lock(&s->lock);
  while (s->asked - s->done >= ROOM) pthread_cond_wait(&s->changed, &s->lock);
  s->queue[s->asked++ % ROOM] = w;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

/* ---- calls --------------------------------------------------------------------------------------------------- */

QN_EXPORT nccl_result ncclGroupStart(void) { return NCCL_SUCCESS; }
QN_EXPORT nccl_result ncclGroupEnd(void) { return NCCL_SUCCESS; }

QN_EXPORT nccl_result ncclAllReduce(const void *x, void *y, size_t n, int dtype, int op, nccl_comm comm, void *on)
{
  must_live(comm);
  if (dtype != NCCL_F32 || op != NCCL_SUM || n > FLOATS || !comm->blocks) return 4;
  int known = 0;
  while (known < comm->n_sizes && comm->size[known] != n) known++;
  if (known == comm->n_sizes) {
    die_at("connecting");
    if (is_at("stalling")) sleep(6), _exit(0);
    if (!all_come(comm, &comm->round, 0)) return NCCL_INTERNAL_ERROR;
    if (known < SIZES) comm->size[comm->n_sizes++] = n;
  }
  comm->calls++;
  push(on, (work){ comm, x, y, n * sizeof(float), 0 });
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclSend(const void *x, size_t n, int dtype, int peer, nccl_comm comm, void *on)
{
  must_live(comm);
  if (dtype != NCCL_U8 || n > FLOATS * sizeof(float) || peer == comm->rank) return 4;
  push(on, (work){ comm, x, NULL, n, peer });
  return NCCL_SUCCESS;
}

QN_EXPORT nccl_result ncclRecv(void *y, size_t n, int dtype, int peer, nccl_comm comm, void *on)
{
  must_live(comm);
  if (dtype != NCCL_U8 || n > FLOATS * sizeof(float) || peer == comm->rank) return 4;
  push(on, (work){ comm, NULL, y, n, peer });
  return NCCL_SUCCESS;
}

#define ABSENT(name, arguments) QN_EXPORT nccl_result name arguments; QN_EXPORT nccl_result name arguments { return 4; }
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(ncclRedOpCreatePreMulSum, (int *op, void *scalar, int dtype, int residence, nccl_comm comm))
ABSENT(ncclRedOpDestroy, (int op, nccl_comm comm))
ABSENT(ncclReduceScatter, (const void *x, void *y, size_t n, int dtype, int op, nccl_comm comm, void *on))
ABSENT(ncclAllGather, (const void *x, void *y, size_t n, int dtype, nccl_comm comm, void *on))
ABSENT(ncclBroadcast, (const void *x, void *y, size_t n, int dtype, int root, nccl_comm comm, void *on))

/* ---- the device ------------------------------------------------------------------------------------------------ */

static const qn_host *host;

static qn_status count(int32_t *n) { return *n = 1, QN_OK; }
static qn_status describe(int32_t ordinal, qn_device *d)
{
  d->ordinal = ordinal;
  strcpy(d->kind, "cuda");
  strcpy(d->name, "a device for tests");
  strcpy(d->model, "fake");
  d->threads = 1;
  return QN_OK;
}
static qn_status alloc(const qn_device *d, size_t bytes, void **p)
{
  *p = aligned_alloc(256, (bytes + 255) / 256 * 256);
  return *p ? QN_OK : host->error(QN_NO_MEMORY, "no memory");
}
static stream *streams[16];
static qn_status stream_synchronize(const qn_device *d, void *on)
{
  stream *s = on;
  pthread_mutex_lock(&s->lock);
  while (s->done != s->asked) pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
  return QN_OK;
}
/* After all work, as cudaFree does. */
static void release(const qn_device *d, void *p)
{
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
    if (streams[i]) stream_synchronize(d, streams[i]);
  free(p);
}
static qn_status stream_create(const qn_device *d, void **out)
{
  size_t i = 0;
  stream *s = *out = calloc(1, sizeof *s);
  while (i < sizeof streams / sizeof *streams && streams[i]) i++;
  if (!s || i == sizeof streams / sizeof *streams) return QN_NO_MEMORY;
  streams[i] = s;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  return pthread_create(&s->thread, NULL, stream_main, s) ? host->error(QN_SYSTEM, "no thread") : QN_OK;
}
static void stream_destroy(const qn_device *d, void *on)
{
  stream *s = on;
  pthread_mutex_lock(&s->lock);
  s->ends = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  pthread_join(s->thread, NULL);
  for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
    if (streams[i] == s) streams[i] = NULL;
  free(s);
}
static qn_status stream_done(const qn_device *d, void *on, int *yes)
{
  stream *s = on;
  pthread_mutex_lock(&s->lock);
  *yes = s->done == s->asked;
  pthread_mutex_unlock(&s->lock);
  return QN_OK;
}
static qn_status stream_wait(const qn_device *d, void *on, void *other) { return stream_synchronize(d, other); }
static qn_status copy(const qn_device *d, void *to, const void *from, size_t bytes, int kind, void *on)
{
  push(on, (work){ NULL, from, to, bytes, 0 });
  return QN_OK;
}
static qn_status fill(const qn_device *d, void *p, int byte, size_t bytes, void *on)
{
  const qn_status status = stream_synchronize(d, on);
  memset(p, byte, bytes);
  return status;
}
static qn_status event_create(const qn_device *d, void **e) { return *e = malloc(1), *e ? QN_OK : QN_NO_MEMORY; }
static void event_destroy(const qn_device *d, void *e) { free(e); }
static qn_status event_record(const qn_device *d, void *e, void *on) { return QN_OK; }
static qn_status event_elapsed(const qn_device *d, void *start, void *stop, double *ns) { return *ns = 0, QN_OK; }
static qn_status capture_begin(const qn_device *d, void *on)
{
  return (((stream *)on)->captures = calloc(1, sizeof(graph))) ? QN_OK : QN_NO_MEMORY;
}
static qn_status capture_end(const qn_device *d, void *on, void **recording)
{
  *recording = ((stream *)on)->captures;
  ((stream *)on)->captures = NULL;
  return QN_OK;
}
static qn_status recording_launch(const qn_device *d, void *recording, void *on)
{
  const graph *g = recording;
  for (int i = 0; i < g->n; i++) push(on, g->w[i]);
  return QN_OK;
}
static void recording_destroy(const qn_device *d, void *recording)
{
  const graph *g = recording;
  for (int i = 0; i < g->n; i++)
    if (g->w[i].comm) atomic_fetch_sub(&g->w[i].comm->graphs, 1);
  free(recording);
}
static qn_status capturing(const qn_device *d, void *on, int *yes) { return *yes = ((stream *)on)->captures != NULL, QN_OK; }

static const qn_device_ops device_ops = {
  .struct_size = sizeof(qn_device_ops), .count = count, .describe = describe, .alloc = alloc, .free = release, .copy = copy, .fill = fill,
  .stream_create = stream_create, .stream_destroy = stream_destroy, .stream_synchronize = stream_synchronize, .stream_wait = stream_wait,
  .stream_done = stream_done, .event_create = event_create, .event_destroy = event_destroy, .event_record = event_record,
  .event_elapsed = event_elapsed, .capture_begin = capture_begin, .capture_end = capture_end, .recording_launch = recording_launch,
  .recording_destroy = recording_destroy, .capturing = capturing,
};

static const qn_engine_list *const lists[] = { NULL };
static const qn_backend backend = {
  .struct_size = sizeof backend, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine), .name = "gpu", .version = QN_VERSION,
  .device_kind = "cuda", .device = &device_ops, .engines = lists,
};

qn_entry_fn QN_BACKEND_ENTRY(gpu);

QN_EXPORT qn_status QN_BACKEND_ENTRY(gpu)(const qn_host *h, const qn_backend **out)
{
  host = h;
  *out = &backend;
  return QN_OK;
}
