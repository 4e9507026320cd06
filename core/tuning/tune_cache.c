/* tune_cache.c -- measurements, remembered in a file.
 *
 * The file has a header line, then one line per entry with fields separated by tabs:
 *   device model, demands, problem, backend/engine[:variant][|ops], the backend's version, nanoseconds
 * ops: how many of the problem's ops the engine was offered, if fewer than all was best; the time is for that many.
 * Engines are stored by name, never by number. A writer locks a file beside it, merges its entries with the present contents, writes
 * a temporary file and renames it, so concurrent processes lose nothing. Unreadable lines are skipped; a file with
 * another header is left alone. */
#include "config.h"
#include "tuning/tuning.h"
#include <errno.h>
#include <fcntl.h>
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
  qn__part_engine(&choice, part);
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
