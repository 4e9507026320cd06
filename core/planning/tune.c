/* tune.c -- measurements: the tune cache file, and measuring anew.
 *
 * The file has a header line, then one line per entry with fields separated by tabs:
 *   device model, demands, problem, backend/engine[:variant][|ops], the backend's version, nanoseconds
 * ops: how many of the problem's ops the engine was offered, if fewer than all was best; the time is for that many.
 * Engines are stored by name, never by number. A writer locks a file beside it, merges its entries with the present contents, writes
 * a temporary file and renames it, so concurrent processes lose nothing. Unreadable lines are skipped; a file with
 * another header is left alone. */
#include "config.h"
#include "core.h"
#include <errno.h>
#include <fcntl.h>
#include <quern/kit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER "quern-tune 1\n"

typedef struct entry {
  char *key, *choice, *version;
  double ns;
  bool ours;                              /* measured here and not yet in the file; for all others the file is authoritative */
  struct entry *next;
} entry;

enum { BUCKETS = 512 };
typedef struct table { char *path; bool named; int n; entry *bucket[BUCKETS]; struct table *next; } table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;        /* guards tables and entries, which are never freed */
static pthread_mutex_t remembering = PTHREAD_MUTEX_INITIALIZER; /* one writer at a time; taken before lock, held while a file is written */
static table *tables;

void qn__tune_in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  pthread_mutex_init(&remembering, NULL);
}

/* ---- the file ---------------------------------------------------------------------------------------------- */

static unsigned bucket_of(const char *key)
{
  uint32_t hash = 2166136261u;          /* FNV-1a */
  for (; *key; key++) hash = (hash ^ (unsigned char)*key) * 16777619u;
  return (hash ^ hash >> 16) % BUCKETS;
}

static entry *find(const table *t, const char *key)
{
  entry *e = t->bucket[bucket_of(key)];
  while (e && strcmp(e->key, key)) e = e->next;
  return e;
}

static void put(table *t, const char *key, const char *choice, const char *version, double ns, bool ours)
{
  entry *e = find(t, key);
  char *c = qn__strdup(choice), *v = qn__strdup(version);
  if (!e && (e = qn__alloc(sizeof *e))) {
    if ((e->key = qn__strdup(key))) {
      entry **head = &t->bucket[bucket_of(key)];
      e->next = *head;
      *head = e;
      t->n++;
    } else {
      qn__free(e);
      e = NULL;
    }
  }
  if (!e || !c || !v) {                                         /* a measurement that cannot be stored is made again */
    qn__free(c);
    qn__free(v);
    return;
  }
  qn__free(e->choice);
  qn__free(e->version);
  e->choice = c;
  e->version = v;
  e->ns = ns < 1 ? 1 : ns;                                      /* written as an integer, and 0 means none */
  e->ours = ours;
}

/* Fields 0 to 2, model, demands and problem, form the key; false: not such a line. */
static bool parse_line(table *t, char *line)
{
  char *field[6], *rest = line, *end;
  for (int i = 0; i < 6; i++)
    if (!(field[i] = strsep(&rest, "\t")) || !*field[i]) return false;
  if (rest) return false;
  double ns = strtod(field[5], &end);
  if (*end || !(ns > 0) || !strchr(field[3], '/')) return false;
  field[1][-1] = field[2][-1] = '\t';                           /* join the key's fields again */
  const entry *e = find(t, field[0]);
  if (!e || !e->ours) put(t, field[0], field[3], field[4], ns, false);
  return true;
}

/* False: there is a file, but it is not a tune cache or cannot be read. */
static bool read_file(table *t)
{
  char *line = NULL;
  size_t room = 0;
  ssize_t n;
  bool ours = true;
  int skipped = 0;
  struct stat st;
  if (!stat(t->path, &st) && !S_ISREG(st.st_mode)) {            /* rename would replace a device such as /dev/null */
    qn__log(QN_LOG_WARN, "tune cache %s: is no regular file; it is left alone", t->path);
    return false;
  }
  FILE *f = fopen(t->path, "re");
  if (!f && errno == ENOENT) return true;
  if (!f) {
    qn__log(t->named ? QN_LOG_WARN : QN_LOG_INFO, "tune cache %s: cannot be read: %s", t->path, strerror(errno));
    return false;
  }
  if ((n = getline(&line, &room, f)) > 0 && strcmp(line, HEADER)) ours = false;
  while (ours && (n = getline(&line, &room, f)) > 0) {
    if (line[n - 1] == '\n') line[n - 1] = 0;
    if ((size_t)n != strlen(line) + 1 || !parse_line(t, line)) skipped++;
  }
  free(line);
  fclose(f);
  if (!ours) qn__log(QN_LOG_WARN, "tune cache %s: is not one, or of another version; it is left alone", t->path);
  if (skipped) qn__log(QN_LOG_WARN, "tune cache %s: %d lines were passed over", t->path, skipped);
  return ours;
}

/* But not the user's home, nor what it lies in: without a home there is nobody to remember anything for. */
static void make_folders(const char *path)
{
  const char *home = qn__screened("HOME");
  char *copy = qn__strdup(path);
  for (char *p = copy ? strchr(copy + 1, '/') : NULL; p; p = strchr(p + 1, '/')) {
    const size_t n = (size_t)(p - copy);
    if (home && !strncmp(home, copy, n) && (!home[n] || home[n] == '/')) continue;
    *p = 0;
    mkdir(copy, 0777);
    *p = '/';
  }
  qn__free(copy);
}

static void print_entries(const table *t, qn_text *text)
{
  qn__text_add(text, "%s", HEADER);
  for (int i = 0; i < BUCKETS; i++)
    for (const entry *e = t->bucket[i]; e; e = e->next) qn__text_add(text, "%s\t%s\t%s\t%.0f\n", e->key, e->choice, e->version, e->ns);
}

/* Keeps the permissions of the file that it replaces; a new file gets the user's default. */
static bool replace(const char *path, const char *temporary, const qn_text *text)
{
  struct stat old;
  const bool was = !stat(path, &old);
  unlink(temporary);                                            /* left by a dead process with the same pid */
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  bool ok = f && (!was || !fchmod(fd, old.st_mode & 07777)) && fwrite(text->s, 1, text->len, f) == text->len && !fflush(f) && !fsync(fd);
  ok = ok && !rename(temporary, path);
  const int saved = errno;
  if (f) fclose(f);
  else if (fd >= 0) close(fd);
  if (fd >= 0 && !ok) unlink(temporary);
  errno = saved;
  return ok;
}

/* Waits for the lock file, retrying if a signal interrupts. */
static int lock_file(int guard)
{
  int status;
  while ((status = flock(guard, LOCK_EX)) && errno == EINTR) {}
  return status;
}

/* Called with `remembering` held; takes `lock` only while it reads, so that a look-up does not wait for the disk. */
static void write_file(table *t)
{
  qn_text beside = {0}, temporary = {0}, text = {0};
  int guard = -1;
  bool ours = true;
  make_folders(t->path);
  char *real = realpath(t->path, NULL);                         /* resolve a symbolic link */
  const char *path = real ? real : t->path;
  qn__text_add(&beside, "%s.lock", path);
  qn__text_add(&temporary, "%s.%ld", path, (long)getpid());
  if (beside.failed || temporary.failed) goto done;
  guard = open(beside.s, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (guard < 0 || lock_file(guard)) goto fail;
  qn__lock(&lock);
  if ((ours = read_file(t))) print_entries(t, &text);
  qn__unlock(&lock);
  if (!ours || text.failed) goto done;
  if (!replace(path, temporary.s, &text)) goto fail;
  qn__lock(&lock);
  for (int i = 0; i < BUCKETS; i++)
    for (entry *e = t->bucket[i]; e; e = e->next) e->ours = false;
  qn__unlock(&lock);
  goto done;
fail:
  qn__log(QN_LOG_WARN, "tune cache %s: is not written: %s", t->path, strerror(errno));
done:
  if (guard >= 0) {
    flock(guard, LOCK_UN);                /* explicit: closing would not unlock if a child forked meanwhile holds the descriptor */
    close(guard);
  }
  free(real);
  qn__free(beside.s);
  qn__free(temporary.s);
  qn__free(text.s);
}

/* The table of a context's file, read on first use; NULL: no path, or no memory. Call with the lock held. */
static table *table_of(const qn__policy *policy)
{
  qn_text path = {0};
  const char *given = policy->settings.text[QN_SET_TUNE_CACHE];
  table *t;
  if (given) qn__text_add(&path, "%s", given);
  else qn__tune_default_path(&path);
  for (t = tables; t && path.s && strcmp(t->path, path.s); t = t->next) {}
  if (!t && path.s && !path.failed && (t = qn__alloc(sizeof *t))) {
    t->path = path.s;
    t->named = given;
    path.s = NULL;
    t->next = tables;
    tables = t;
    read_file(t);
  }
  qn__free(path.s);
  return t;
}

/* ---- look-up and store ---------------------------------------------------------------------------------------- */

/* pinned: only pinned engines competed, so the entry says nothing of the others. */
static char *key_of(const qn__planning *pc, const qn__offers *offers, bool pinned)
{
  const qn_demands *d = &pc->policy->demands;
  qn_text t = {0};
  qn__text_add(&t, "%s\td%u,m%u,w%llu,t%d", pc->device->model, d->determinism, d->math, (unsigned long long)d->workspace_limit,
               d->threads);
  for (int i = 0; i < pc->policy->n_backends; i++) qn__text_add(&t, ",%s", pc->policy->backend[i]->name);
  if (pinned) qn__text_add(&t, ",engine=%s", pc->policy->settings.text[QN_SET_ENGINE]);
  for (int i = 0; i < offers->n; i++) {                         /* the offers are mostly one */
    if (i && offers->offer[i] == offers->offer[0]) continue;
    qn__text_add(&t, i ? " || " : "\t");
    qn__request_print(&t, &offers->offer[i]->request, ~UINT64_C(0), NULL, NULL);
  }
  if (!t.failed) return t.s;
  qn__free(t.s);
  return NULL;
}

bool qn__tune_lookup(const qn__planning *pc, const qn__offers *offers, bool pinned, qn__choice *out)
{
  bool found = false;
  qn__lock(&lock);
  const table *t = table_of(pc->policy);
  char *key = t && t->n ? key_of(pc, offers, pinned) : NULL;       /* with an empty cache skip the printing */
  const entry *e = key ? find(t, key) : NULL;
  if (e) out->ns = e->ns;
  if (e) found = (size_t)snprintf(out->name, sizeof out->name, "%s", e->choice) < sizeof out->name &&
                 (size_t)snprintf(out->version, sizeof out->version, "%s", e->version) < sizeof out->version;
  qn__unlock(&lock);
  qn__free(key);
  return found;
}

void qn__tune_remember(const qn__planning *pc, const qn__offers *offers, const qn_part *part, bool cut, bool pinned)
{
  qn_text choice = {0};
  char *key = key_of(pc, offers, pinned);
  qn__text_add(&choice, "%s/%s%s%s", part->backend->name, part->engine->name, part->prepared.variant ? ":" : "",
               part->prepared.variant ? part->prepared.variant : "");
  if (cut) qn__text_add(&choice, "|%u", part->request.n_ops);
  qn__lock(&remembering);
  qn__lock(&lock);
  table *t = table_of(pc->policy);
  bool add = t && key && !choice.failed && !strchr(key, '\n');
  if (add) put(t, key, choice.s, part->backend->table->version, part->ns, true);
  qn__unlock(&lock);
  if (add) write_file(t);
  qn__unlock(&remembering);
  qn__free(key);
  qn__free(choice.s);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 9, TILE = 65536, LINE = 64 };
#define TOO_SLOW 4.0                      /* an engine is dropped when its fastest run is this many times the best: one run may have met
                                           * other work on its processor, two in a row seldom do */
#define HOPELESS 20.0                     /* dropped after its first run, if slower than this */
#define LOADING 2e7                       /* ... with this allowance, in ns, for loading code */
#define PATIENCE 1e9                      /* after so many ns of runs three rounds are enough */

typedef struct trial { qn_part *part; void **ptr; double ns[ROUNDS], fastest; int n; bool out; } trial;   /* ptr: its values' */

typedef struct bench {
  const qn__planning *pc;
  const qn_device_ops *ops;
  const qn_device *dev;
  const qn_part *made;                    /* the part whose values the buffers were made for */
  void **ptr;                             /* private buffers, one for each of its values */
  void  *workspace, *counters;
  void  *flush; size_t flush_bytes;       /* written before each run, so that inputs come from memory, not cache; NULL on a CPU, */
  bool   evicts;                          /*   whose operands alone are evicted, unless they are larger than the cache */
  double *host;                           /* storage for values that are host scalars */
  void  *start, *stop;
} bench;

/* Fills with numbers of ordinary size: zeros, NaN and subnormals change timings. */
static qn_status fill(const bench *b, const qn_request *r, uint32_t value)
{
  const qn_graph_view view = { .struct_size = sizeof view, .n_ops = r->n_ops, .n_values = r->n_values, .op = r->op, .value = r->value };
  const uint32_t dtype = r->value[value].dtype;
  const uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[value]);
  size_t each = qn_dtype_bytes(dtype), n = TILE / each;
  char *tile = qn__alloc(TILE);
  uint64_t seed = 88172645463325252u;
  qn_domain domain;
  qn_status status = tile ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory to measure");
  qn_input_domain(&view, (int32_t)value, &domain);
  const double last = fmax(1, (double)qn_elements(&r->value[value]) - 1);
  for (size_t i = 0; i < n && tile; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    double x = (double)(seed >> 11) * 0x1p-53;
    if (qn_is_float(dtype))
      qn_store_f64(tile + i * each, dtype, domain.floats == QN_FLOATS_ZERO ? 0 : domain.floats == QN_FLOATS_POSITIVE ? x
                                              : (2 * x - 1) / (domain.floats == QN_FLOATS_SMALL ? 32 : 1));
    else qn_store_i64(tile + i * each, dtype, domain.from + (int64_t)(domain.rising ? (double)i * (double)(domain.range - 1) / last
                                                                                   : x * (double)domain.range));
  }
  for (uint64_t at = 0; at < bytes && !status; at += TILE)
    status = b->ops->copy(b->dev, (char *)b->ptr[value] + at, tile, bytes - at < TILE ? bytes - at : TILE, QN_COPY_TO_DEVICE,
                          b->pc->ctx->stream);
  if (!status && b->ops->stream_synchronize) status = b->ops->stream_synchronize(b->dev, b->pc->ctx->stream);
  qn__free(tile);
  return status;
}

/* A CPU's cache may be that of a large server, of which this program has a share: writing twice its size takes longer than all runs. */
#if defined(__x86_64__) && defined(__GNUC__)
static bool can_evict(void) { return true; }

static void evict(const char *p, uint64_t bytes)
{
  for (uint64_t at = 0; at < bytes; at += LINE) __builtin_ia32_clflush(p + at);
  __builtin_ia32_mfence();
}
#else
static bool can_evict(void) { return false; }
static void evict(const char *p, uint64_t bytes) { (void)p, (void)bytes; }
#endif

/* Is the value in the memory of another one of the request? */
static bool is_borrowed(const qn_request *r, uint32_t i) { return r->value[i].over >= 0 || r->value[i].flags & QN_VALUE_VIEW; }

static void evict_operands(const bench *b, const qn_request *r)
{
  uint64_t all = 0;
  for (int turn = 0; turn < 2; turn++)
    for (uint32_t i = 0; i < r->n_values && all < 2 * b->dev->cache; i++) {
      const uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[i]);
      if (r->value[i].flags & QN_VALUE_HOST || is_borrowed(r, i)) continue;
      if (turn == 0) all += bytes;
      else evict(b->ptr[i], bytes);
    }
}

static qn_status allocate(bench *b, const qn_request *r, uint64_t workspace, uint64_t counters)
{
  qn_status status = QN_OK;
  for (uint32_t i = 0; i < r->n_values && !status; i++) {
    uint64_t bytes = (uint64_t)qn_extent_bytes(&r->value[i]);
    if (r->value[i].flags & QN_VALUE_HOST) {
      b->ptr[i] = &b->host[i];
      qn_store_f64(b->ptr[i], r->value[i].dtype, b->made->literal[i]);
    } else if (is_borrowed(r, i)) continue;
    else if (!(status = b->ops->alloc(b->dev, bytes ? bytes : 1, &b->ptr[i]))) status = fill(b, r, i);
  }
  for (uint32_t i = 0; i < r->n_values; i++)
    if (r->value[i].over >= 0) b->ptr[i] = b->ptr[r->value[i].over];
  for (uint32_t i = 0; i < r->n_values && !status; i++)
    if (r->value[i].flags & QN_VALUE_VIEW)
      b->ptr[i] = (char *)b->ptr[r->view[i].of] + r->view[i].offset * (int64_t)qn_dtype_bytes(r->value[i].dtype);
  if (!status && workspace) status = b->ops->alloc(b->dev, workspace, &b->workspace);
  if (!status && counters && !(status = b->ops->alloc(b->dev, counters, &b->counters)))
    status = b->ops->fill(b->dev, b->counters, 0, counters, b->pc->ctx->stream);
  b->evicts = can_evict() && !strcmp(b->dev->kind, "cpu");
  if (!status && b->ops->stream_create && !b->evicts) {
    b->flush_bytes = 2 * (size_t)b->dev->cache;
    status = b->ops->alloc(b->dev, b->flush_bytes, &b->flush);
  }
  if (!status) status = b->ops->event_create(b->dev, &b->start);
  if (!status) status = b->ops->event_create(b->dev, &b->stop);
  return status;
}

static void release(bench *b, const qn_request *r)
{
  for (uint32_t i = 0; b->ptr && i < r->n_values; i++)
    if (b->ptr[i] && !(r->value[i].flags & QN_VALUE_HOST) && !is_borrowed(r, i)) b->ops->free(b->dev, b->ptr[i]);
  if (b->workspace) b->ops->free(b->dev, b->workspace);
  if (b->counters) b->ops->free(b->dev, b->counters);
  if (b->flush) b->ops->free(b->dev, b->flush);
  if (b->start) b->ops->event_destroy(b->dev, b->start);
  if (b->stop) b->ops->event_destroy(b->dev, b->stop);
  qn__free(b->ptr);
  qn__free(b->host);
}

/* On a device with streams the cache is flushed first, on the device; the launches are enqueued while that runs, so their
 * host cost is not in the time, as it would not be in a recording's. */
static qn_status time_once(bench *b, trial *t, double *ns)
{
  const qn_context *ctx = b->pc->ctx;
  qn_launch launch = { .struct_size = sizeof launch, .stream = ctx->stream, .ptr = t->ptr, .workspace = b->workspace,
    .counters = b->counters, .device = b->dev, .threads = t->part->demands.threads, .core = b->pc->ctx,
    .instance = t->part->backend->instance >= 0 ? ctx->instance[t->part->backend->instance] : NULL };
  qn_status status = b->flush ? b->ops->fill(b->dev, b->flush, 0, b->flush_bytes, ctx->stream) : QN_OK;
  if (b->evicts) evict_operands(b, &t->part->request);
  if (!status) status = b->ops->event_record(b->dev, b->start, ctx->stream);
  if (!status) status = t->part->engine->run(&t->part->prepared, &launch);
  if (!status) status = b->ops->event_record(b->dev, b->stop, ctx->stream);
  return status ? status : b->ops->event_elapsed(b->dev, b->start, b->stop, ns);
}

static int by_time(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double median(const trial *t)
{
  double sorted[ROUNDS];
  memcpy(sorted, t->ns, sizeof sorted);
  qsort(sorted, (size_t)t->n, sizeof *sorted, by_time);
  return sorted[t->n / 2];
}

static bool timed(bench *b, trial *t, double *ns)
{
  if (time_once(b, t, ns)) t->out = true;
  else if (*ns < t->fastest || t->fastest == 0) t->fastest = *ns;
  return !t->out;
}

/* All engines in turn, round by round, after one warm-up run. */
static void race(bench *b, trial *t, int n)
{
  double least = 1e300, all = 0, ns;
  for (int i = 0; i < n; i++)
    if (timed(b, &t[i], &ns)) {
      t[i].out = ns > HOPELESS * least && ns > LOADING;
      if (ns < least) least = ns;
    }
  for (int round = 0; round < ROUNDS && !(round >= 3 && all > PATIENCE); round++) {
    for (int i = 0; i < n; i++)
      if (!t[i].out && timed(b, &t[i], &ns)) {
        t[i].ns[t[i].n++] = ns;
        all += ns;
        if (ns < least) least = ns;
      }
    for (int i = 0; i < n; i++)
      if (!t[i].out) t[i].out = t[i].fastest > TOO_SLOW * least;
  }
}

/* The buffers as the values of a part that takes the same ops, of another pattern's region perhaps. */
static void **pointers_for(const bench *b, const qn_part *part)
{
  void **ptr = qn__alloc((part->request.n_values + 1) * sizeof *ptr);
  for (uint32_t v = 0; ptr && v < part->request.n_values; v++)
    for (uint32_t k = 0; k < b->made->request.n_values && !ptr[v]; k++)
      if (part->value_of ? part->value_of[v] == b->made->value_of[k] : v == k) ptr[v] = b->ptr[k];
  return ptr;
}

static int by_name(const qn_part *a, const qn_part *b)
{
  int c = strcmp(a->backend->name, b->backend->name);
  if (!c) c = strcmp(a->engine->name, b->engine->name);
  if (!c) c = strcmp(a->prepared.variant ? a->prepared.variant : "", b->prepared.variant ? b->prepared.variant : "");
  return c;
}

/* Among those near the best the first by name wins, so that cold processes agree. */
qn_status qn__tune_measure(const qn__planning *pc, qn_part **part, int n, int *best)
{
  const qn_request *r = &part[0]->request;
  bench b = { .pc = pc, .made = part[0], .ops = pc->ctx->dev->ops, .dev = &pc->ctx->dev->desc };
  uint64_t workspace = 0, counters = 0;
  trial *t = qn__alloc((size_t)n * sizeof *t);
  qn_status status = QN_OK;
  qn_text problem = {0}, now = {0};
  qn__request_print(&problem, r, part[0]->prepared.taken, part[0]->literal, NULL);
  qn__text_add(&now, "measuring %d engine%s on %s", n, n == 1 ? "" : "s", problem.s ? problem.s : "a problem");
  if (now.s) qn__progress(now.s);
  qn__free(now.s);
  b.ptr = qn__alloc(r->n_values * sizeof *b.ptr);
  b.host = qn__alloc(r->n_values * sizeof *b.host);
  if (!t || !b.ptr || !b.host) status = qn__fail(QN_NO_MEMORY, "no memory to measure");
  for (int i = 0; i < n && !status; i++) {
    t[i].part = part[i];
    if (part[i]->prepared.workspace > workspace) workspace = part[i]->prepared.workspace;
    if (part[i]->prepared.counters > counters) counters = part[i]->prepared.counters;
  }
  if (!status) status = allocate(&b, r, workspace, counters);
  for (int i = 0; i < n && !status; i++)
    if (!(t[i].ptr = pointers_for(&b, part[i]))) status = qn__fail(QN_NO_MEMORY, "no memory to measure");
  if (!status) {
    double least = 1e300;
    race(&b, t, n);
    *best = -1;
    for (int i = 0; i < n; i++)
      if (!t[i].out && median(&t[i]) < least) least = median(&t[i]);
    for (int i = 0; i < n; i++)
      if (!t[i].out && median(&t[i]) <= QN__NEAR_TIE * least && (*best < 0 || by_name(part[i], part[*best]) < 0)) *best = i;
    if (*best < 0) status = qn__fail(QN_INTERNAL, "every engine failed as it was measured: %s", qn_last_error());
    else part[*best]->ns = median(&t[*best]) < 1 ? 1 : median(&t[*best]);
  }
  qn__progress("");
  if (status)
    qn__log(QN_LOG_WARN, "tune: %s is not measured, and gets the engine that estimates choose: %s", problem.s ? problem.s : "a problem",
            qn_last_error());
  qn__free(problem.s);
  release(&b, r);
  for (int i = 0; t && i < n; i++) qn__free(t[i].ptr);
  qn__free(t);
  return status;
}
