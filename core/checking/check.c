/* check.c -- QUERN_BACKEND=check: a device that computes on the CPU and is as strict as a GPU, to find a program's faults without one.
 *
 *   memory     tensors must lie in memory from qn_alloc; any other pointer is an error with a sentence. The host cannot touch that
 *              memory: while no work runs it is protected, and the signal that ends the program then comes with a sentence
 *   late       work and copies are kept until someone waits: qn_context_synchronize, a copy that is not _async, the context's end.
 *              The target of an _async copy holds 0xff bytes until then
 *   waiting    work that meets another context's memory whose work nobody has waited for is an error; so is an _async copy whose host
 *              memory changed before it was made
 *
 * It brings no engines: those of the CPU's backends ride on it. Each step of its plans is wrapped in one that copies the launch and
 * keeps it. */
#include "config.h"
#include "language/problem.h"
#include <quern/kit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef struct range { uintptr_t begin, end; bool written; } range;
typedef struct event { struct timespec at; struct stream *stream; atomic_ulong asked, run; } event;   /* its recordings: kept, and run */
typedef struct block { char *p; size_t bytes; struct block *next; } block;

/* Kept work; the fields that its run function needs. */
typedef struct item {
  struct item *next;
  qn_status  (*run)(struct item *);
  void        *to;
  const void  *from;
  size_t       bytes;
  uint64_t     known;                     /* fill: the byte; to the device: the hash of what is copied */
  void       (*fn)(void *);
  qn_plan     *plan;
  void       (*release)(qn_plan *);
  const qn__step *step;
  qn_launch    launch;
  uint32_t     n;
  range       *range;
} item;

typedef struct stream {
  pthread_mutex_t draining;               /* one thread runs its work */
  item *first, **last;
  qn_status status;                       /* of work that failed since the last synchronisation, with its sentence */
  char     *why;
  struct stream *next;
} stream;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;        /* guards the lists; not held while work runs */
static block  *blocks;
static stream *streams;
static int     running;                   /* threads that run kept work: memory is open */

void qn__check_in_child(void) { pthread_mutex_init(&lock, NULL); }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static size_t pages(size_t bytes)
{
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

/* Call with the lock held. */
static void protect(int how)
{
  for (const block *b = blocks; b; b = b->next) mprotect(b->p, pages(b->bytes), how);
}

static void open_memory(void)
{
  pthread_mutex_lock(&lock);
  if (!running++) protect(PROT_READ | PROT_WRITE);
  pthread_mutex_unlock(&lock);
}

static void close_memory(void)
{
  pthread_mutex_lock(&lock);
  if (!--running) protect(PROT_NONE);
  pthread_mutex_unlock(&lock);
}

static qn_status alloc(const qn_device *dev, size_t bytes, void **p)
{
  block *b = qn__alloc(sizeof *b);
  void *at = b ? mmap(NULL, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  (void)dev;
  if (at == MAP_FAILED) {
    qn__free(b);
    return qn__fail(QN_NO_MEMORY, "check: no memory of %zu bytes", bytes);
  }
  *p = b->p = at;
  b->bytes = bytes;
  pthread_mutex_lock(&lock);
  if (running) mprotect(at, pages(bytes), PROT_READ | PROT_WRITE);
  b->next = blocks;
  blocks = b;
  pthread_mutex_unlock(&lock);
  return QN_OK;
}

static void wait_for_all(void);

/* As on a GPU, memory is given back when no work uses it. */
static void give_back(const qn_device *dev, void *p)
{
  block *b = NULL;
  (void)dev;
  wait_for_all();
  pthread_mutex_lock(&lock);
  for (block **at = &blocks; *at; at = &(*at)->next)
    if ((*at)->p == p) {
      b = *at;
      *at = b->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  if (!b) qn__log(QN_LOG_ERROR, "check: qn_free of %p, which is no memory from qn_alloc", p);
  else munmap(b->p, pages(b->bytes));
  qn__free(b);
}

/* The block in which any of these bytes lie. */
static const block *block_of(uintptr_t begin, uintptr_t end)
{
  const block *b = blocks;
  while (b && ((uintptr_t)b->p >= end || (uintptr_t)b->p + b->bytes <= begin)) b = b->next;
  return b;
}

static qn_status check_memory(const char *name, const void *p, uint64_t bytes)
{
  const uintptr_t begin = (uintptr_t)p, end = begin + bytes;
  if (!bytes) return QN_OK;
  pthread_mutex_lock(&lock);
  const block *b = block_of(begin, end);
  const bool whole = b && begin >= (uintptr_t)b->p && end <= (uintptr_t)b->p + b->bytes;
  const size_t has = b ? b->bytes : 0;
  pthread_mutex_unlock(&lock);
  if (whole) return QN_OK;
  if (b) return qn__fail(QN_BAD_ARGUMENT, "check: %s: its %llu bytes at %p leave their block of %zu bytes", name, (unsigned long long)bytes, p, has);
  return qn__fail(QN_BAD_ARGUMENT, "check: %s: %p is not memory of the device; tensors must come from qn_alloc, for a GPU cannot read "
                  "the host's memory", name, p);
}

static qn_status check_host(const char *name, const void *p, uint64_t bytes)
{
  pthread_mutex_lock(&lock);
  const bool ours = block_of((uintptr_t)p, (uintptr_t)p + bytes) != NULL;
  pthread_mutex_unlock(&lock);
  return ours ? qn__fail(QN_BAD_ARGUMENT, "check: %s: %p is the device's memory, and should be the host's", name, p) : QN_OK;
}

/* ---- the host's own touch ------------------------------------------------------------------------------------------ */

static struct sigaction before;

/* Says why, then lets what was there before have the signal. */
static void touched(int signal, siginfo_t *info, void *context)
{
  static const char text[] = "quern: error: check: the host touched the device's memory, from qn_alloc, or memory after it; "
                             "on a GPU this ends the program too: use qn_copy_to_device and qn_copy_to_host\n";
  const uintptr_t at = (uintptr_t)info->si_addr;
  (void)context;
  for (const block *b = blocks; b; b = b->next)
    if (at >= (uintptr_t)b->p && at < (uintptr_t)b->p + pages(b->bytes)) {
      if (write(2, text, sizeof text - 1) < 0) break;
      break;
    }
  sigaction(signal, &before, NULL);
}

/* Called with the devices' lock held, once for each model that the device is narrowed to. */
static qn_status open_device(qn_device *dev)
{
  static bool installed;
  const struct sigaction ours = { .sa_sigaction = touched, .sa_flags = SA_SIGINFO };
  (void)dev;
  if (!installed && sigaction(SIGSEGV, &ours, &before)) return qn__fail(QN_SYSTEM, "check: SIGSEGV cannot be handled");
  installed = true;
  return QN_OK;
}

/* ---- kept work ----------------------------------------------------------------------------------------------------- */

/* Runs what a stream keeps, up to an event (NULL: all); what fails is said, and returned by the next synchronisation. */
static void drain(stream *s, const event *until)
{
  pthread_mutex_lock(&s->draining);
  open_memory();
  for (;;) {
    pthread_mutex_lock(&lock);
    item *i = s->first;
    pthread_mutex_unlock(&lock);
    if (!i || (until && until->run == until->asked)) break;
    qn_status status = i->run(i);
    if (status) qn__log(QN_LOG_ERROR, "%s", qn_last_error());
    if (status && !s->status) {
      s->status = status;
      s->why = qn__strdup(qn_last_error());
    }
    pthread_mutex_lock(&lock);
    if (!(s->first = i->next)) s->last = &s->first;
    pthread_mutex_unlock(&lock);
    if (i->plan) i->release(i->plan);
    qn__free(i);
  }
  close_memory();
  pthread_mutex_unlock(&s->draining);
}

static void wait_for_all(void)
{
  for (stream *s = streams; s; s = s->next)
    if (s->first) drain(s, NULL);
}

/* Does another stream keep work that meets these ranges, one of them writing? */
static const item *conflict(const stream *mine, const item *i)
{
  for (const stream *s = streams; s; s = s->next)
    for (const item *k = s == mine ? NULL : s->first; k; k = k->next)
      for (uint32_t a = 0; a < i->n; a++)
        for (uint32_t b = 0; b < k->n; b++)
          if ((i->range[a].written || k->range[b].written) && i->range[a].begin < k->range[b].end && k->range[b].begin < i->range[a].end)
            return k;
  return NULL;
}

/* Takes *from, an item without memory of its own, with n ranges and `more` bytes after them. */
static qn_status make(const item *from, uint32_t n, size_t more, item **out)
{
  item *i = *out = qn__alloc(sizeof *i + n * sizeof(range) + more);
  if (!i) return qn__fail(QN_NO_MEMORY, "check: no memory to keep work");
  *i = *from;
  i->range = (range *)(i + 1);
  return QN_OK;
}

static void add_range(item *i, const void *p, uint64_t bytes, bool written)
{
  if (p && bytes) i->range[i->n++] = (range){ (uintptr_t)p, (uintptr_t)p + bytes, written };
}

static qn_status keep(void *native, item *i)
{
  stream *s = streams;
  qn_status status = QN_OK;
  pthread_mutex_lock(&lock);
  while (s && s != native) s = s->next;
  if (!s) status = qn__fail(QN_BAD_ARGUMENT, "check: the stream is none of this device's");
  else if (conflict(s, i))
    status = qn__fail(QN_NOT_READY, "check: this works on memory that work of another context still uses, which nobody has waited for; "
                      "call qn_context_synchronize on that context first");
  else {
    *s->last = i;
    s->last = &i->next;
    if (i->plan) atomic_fetch_add(&i->plan->refs, 1);
  }
  pthread_mutex_unlock(&lock);
  if (status) qn__free(i);
  return status;
}

/* ---- streams and copies ---------------------------------------------------------------------------------------------- */

static qn_status stream_create(const qn_device *dev, void **native)
{
  stream *s = qn__alloc(sizeof *s);
  (void)dev;
  if (!s) return qn__fail(QN_NO_MEMORY, "check: no memory for a stream");
  s->last = &s->first;
  pthread_mutex_init(&s->draining, NULL);
  pthread_mutex_lock(&lock);
  s->next = streams;
  streams = s;
  pthread_mutex_unlock(&lock);
  *native = s;
  return QN_OK;
}

static qn_status stream_synchronize(const qn_device *dev, void *native)
{
  stream *s = native;
  (void)dev;
  drain(s, NULL);
  const qn_status status = s->status ? qn__fail(s->status, "%s", s->why ? s->why : "check: work failed") : QN_OK;
  qn__free(s->why);
  s->status = QN_OK;
  s->why = NULL;
  return status;
}

static void stream_destroy(const qn_device *dev, void *native)
{
  stream_synchronize(dev, native);
  pthread_mutex_lock(&lock);
  for (stream **at = &streams; *at; at = &(*at)->next)
    if (*at == native) {
      *at = (*at)->next;
      break;
    }
  pthread_mutex_unlock(&lock);
  pthread_mutex_destroy(&((stream *)native)->draining);
  qn__free(native);
}

static qn_status stream_wait(const qn_device *dev, void *native, void *other)
{
  (void)dev, (void)native;
  drain(other, NULL);
  return QN_OK;
}

static uint64_t hash(const unsigned char *p, size_t bytes)
{
  uint64_t h = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * UINT64_C(1099511628211);
  return h;
}

static qn_status copy_on_device(item *i)
{
  memmove(i->to, i->from, i->bytes);
  return QN_OK;
}

static qn_status copy_in(item *i)
{
  memcpy(i->to, i->from, i->bytes);
  if (hash(i->from, i->bytes) == i->known) return QN_OK;
  return qn__fail(QN_DEVICE, "check: the host memory at %p changed before an asynchronous copy to the device was made; wait for it first "
                  "(qn_context_synchronize)", i->from);
}

static qn_status copy_out(item *i)
{
  const unsigned char *to = i->to;
  size_t same = 0;
  while (same < i->bytes && to[same] == 0xff) same++;
  memcpy(i->to, i->from, i->bytes);
  if (same == i->bytes) return QN_OK;
  return qn__fail(QN_DEVICE, "check: the host memory at %p changed before an asynchronous copy to it was made; wait for it first "
                  "(qn_context_synchronize)", i->to);
}

static qn_status copy(const qn_device *dev, void *to, const void *from, size_t bytes, int kind, void *native)
{
  item *i;
  qn_status status = kind == QN_COPY_TO_HOST ? check_host("the target of a copy", to, bytes) : check_memory("the target of a copy", to, bytes);
  (void)dev;
  if (!status)
    status = kind == QN_COPY_TO_DEVICE ? check_host("the source of a copy", from, bytes) : check_memory("the source of a copy", from, bytes);
  const item one = { .run = kind == QN_COPY_TO_DEVICE ? copy_in : kind == QN_COPY_TO_HOST ? copy_out : copy_on_device, .to = to, .from = from,
                     .bytes = bytes, .known = !status && kind == QN_COPY_TO_DEVICE ? hash(from, bytes) : 0 };
  if (status || (status = make(&one, 2, 0, &i))) return status;
  add_range(i, to, bytes, true);
  add_range(i, from, bytes, false);
  if ((status = keep(native, i))) return status;
  if (kind == QN_COPY_TO_HOST) memset(to, 0xff, bytes);
  return QN_OK;
}

static qn_status do_fill(item *i)
{
  memset(i->to, (int)i->known, i->bytes);
  return QN_OK;
}

static qn_status fill(const qn_device *dev, void *to, int byte, size_t bytes, void *native)
{
  item *i;
  qn_status status = check_memory("the target of a fill", to, bytes);
  (void)dev;
  if (status || (status = make(&(item){ .run = do_fill, .to = to, .known = (uint64_t)byte, .bytes = bytes }, 1, 0, &i))) return status;
  add_range(i, to, bytes, true);
  return keep(native, i);
}

static qn_status do_call(item *i)
{
  i->fn(i->to);
  return QN_OK;
}

static qn_status host_call(const qn_device *dev, void *native, void (*fn)(void *), void *arg)
{
  item *i;
  qn_status status = make(&(item){ .run = do_call, .fn = fn, .to = arg }, 0, 0, &i);
  (void)dev;
  return status ? status : keep(native, i);
}

/* ---- events ---------------------------------------------------------------------------------------------------------- */

static qn_status event_create(const qn_device *dev, void **e)
{
  (void)dev;
  return (*e = qn__alloc(sizeof(event))) ? QN_OK : qn__fail(QN_NO_MEMORY, "check: no memory for an event");
}

static void event_destroy(const qn_device *dev, void *e)
{
  (void)dev;
  wait_for_all();                         /* its recording may be kept */
  qn__free(e);
}

static void read_clock(void *e)
{
  clock_gettime(CLOCK_MONOTONIC, &((event *)e)->at);
  ((event *)e)->run++;
}

static qn_status event_record(const qn_device *dev, void *e, void *native)
{
  ((event *)e)->stream = native;
  const qn_status status = host_call(dev, native, read_clock, e);
  if (!status) ((event *)e)->asked++;
  return status;
}

/* Runs at once what is waited for, and no more: what nobody waits for is still kept, where `keep` finds it. Its failure is the waiting
 * stream's. */
static qn_status event_wait(const qn_device *dev, void *native, void *e)
{
  const event *of = e;
  stream *from = of->stream, *to = native;
  (void)dev;
  if (!from || from == to) return QN_OK;
  drain(from, of);
  if (!from->status || to->status) return QN_OK;
  to->status = from->status;
  to->why = from->why;
  from->status = QN_OK;
  from->why = NULL;
  return QN_OK;
}

static qn_status event_elapsed(const qn_device *dev, void *start, void *stop, double *ns)
{
  const event *from = start, *to = stop;
  (void)dev;
  drain(to->stream, NULL);
  if (from->stream != to->stream) drain(from->stream, NULL);
  *ns = (double)(to->at.tv_sec - from->at.tv_sec) * 1e9 + (double)(to->at.tv_nsec - from->at.tv_nsec);
  return QN_OK;
}

/* ---- plans ------------------------------------------------------------------------------------------------------------- */

static qn_status work(item *i) { return i->step->part->engine->run(&i->step->part->prepared, &i->launch); }

typedef struct late { qn__wrapper wrapper; qn_plan *plan; void (*release)(qn_plan *); const qn__step *step; } late;

/* Checks the pointers, and keeps the launch with copies of the pointers and of the host scalars. */
static qn_status run(const qn_prepared *outer, const qn_launch *launch)
{
  const late *l = outer->state;
  const qn_part *part = l->step->part;
  const qn_request *r = &part->request;
  const size_t scalars = r->n_values * sizeof(void *);
  item *i;
  qn_status status = QN_OK;
  for (uint32_t v = 0; v < r->n_values && !status; v++) {
    qn__value_text name;
    if (launch->ptr[v] && !(r->value[v].flags & QN_VALUE_HOST))
      status = check_memory(qn__value_name(&l->plan->graph->view, part->value_of[v], name), launch->ptr[v],
                            (uint64_t)qn_extent_bytes(&r->value[v]));
  }
  if (!status && part->prepared.workspace) status = check_memory("workspace", launch->workspace, part->prepared.workspace);
  const item kept = { .run = work, .plan = l->plan, .release = l->release, .step = l->step, .launch = *launch };
  if (!status) status = make(&kept, r->n_values + 2, scalars + r->n_values * 8, &i);
  if (status) return status;
  void **ptr = (void **)(i->range + r->n_values + 2);
  char *scalar = (char *)ptr + scalars;
  for (uint32_t v = 0; v < r->n_values; v++) {
    const qn_value *value = &r->value[v];
    ptr[v] = launch->ptr[v];
    if (ptr[v] && value->flags & QN_VALUE_HOST) ptr[v] = memcpy(scalar + 8 * v, ptr[v], qn_dtype_bytes(value->dtype));
    else add_range(i, ptr[v], (uint64_t)qn_extent_bytes(value), part->use[v] == QN_USE_WRITTEN);
  }
  add_range(i, launch->workspace, part->prepared.workspace, true);
  i->launch.ptr = ptr;
  return keep(launch->stream, i);
}

static qn__backend *self(void);

bool qn__checks(const qn__device *dev) { return dev->provider == self(); }

static void free_late(qn__wrapper *w) { qn__free(w); }

qn_status qn__check_wrap(const qn_context *ctx, qn_plan *p, void (*release)(qn_plan *))
{
  for (uint32_t s = 0; s < p->n_steps && qn__checks(ctx->dev); s++) {
    late *l = qn__alloc(sizeof *l);
    if (!l) return qn__fail(QN_NO_MEMORY, "check: no memory for a plan");
    *l = (late){ .plan = p, .release = release, .step = &p->step[s] };
    qn__step_wrap(p, &p->step[s], &l->wrapper, run, free_late);
  }
  return QN_OK;
}

/* ---- the backend ----------------------------------------------------------------------------------------------------------- */

static qn_device_ops ops;                 /* the CPU's, but for what is above */
static int32_t no_engines[QN__KINDS + 1];
static const qn_backend table = { .struct_size = sizeof table, .abi_minor = QN_ABI_MINOR, .engine_size = sizeof(qn_engine), .name = "check",
                                  .version = QN_VERSION, .device_kind = "cpu", .device = &ops };
static qn__backend backend = { .table = &table, .name = "check", .path = "(built in)", .instance = -1, .by_op = no_engines, .first = no_engines,
                               .variables = (const char *const[]){ NULL } };

static qn__backend *self(void) { return &backend; }

static void set_up(const qn__backend *b)
{
  while (b && !(b->table && !b->status && b->device && !strcmp(b->table->device_kind, "cpu"))) b = b->next;
  if (!b) return;
  ops = *b->device;
  ops.open = open_device;
  ops.stream_create = stream_create;
  ops.stream_destroy = stream_destroy;
  ops.stream_synchronize = stream_synchronize;
  ops.stream_wait = stream_wait;
  ops.alloc = alloc;
  ops.free = give_back;
  ops.copy = copy;
  ops.fill = fill;
  ops.event_create = event_create;
  ops.event_destroy = event_destroy;
  ops.event_record = event_record;
  ops.event_elapsed = event_elapsed;
  ops.event_create_untimed = event_create;
  ops.event_wait = event_wait;
  ops.host_call = host_call;
  backend.device = &ops;
}

qn_status qn__check_backend(const qn__backend *all, qn__backend **out)
{
  pthread_mutex_lock(&lock);
  if (!backend.device) set_up(all);
  pthread_mutex_unlock(&lock);
  *out = &backend;
  return backend.device ? QN_OK : qn__fail(QN_NO_BACKEND, "check: no backend here provides the CPU, on which it computes");
}
