/* registry.c -- finds and loads backends: the built-in ones, then quern_*.so of QUERN_PLUGIN_PATH and of libdir/quern/1.
 *
 * Code is loaded by absolute path, only from files and folders owned by root or this user and not writable by everyone,
 * and is never unloaded: threads, exit handlers and OpenMP workers may still run in it. A backend is appended to the list
 * once it is complete, and never removed: the list is read without a lock. */
#include "config.h"
#include "core.h"
#include <quern/library.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef QN_BUILTIN_LIST
#define QN_BUILTIN_LIST(X)
#endif
#define DECLARE(name) extern qn_entry_fn qn__builtin_##name;
QN_BUILTIN_LIST(DECLARE)
#define ROW(name) { #name, qn__builtin_##name },
static const struct { const char *name; qn_entry_fn *entry; } builtin[] = { QN_BUILTIN_LIST(ROW) { NULL, NULL } };

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;   /* one load at a time */
static qn__backend *_Atomic first;
static bool built_in, searched;
static int n_instances;

void qn__registry_in_child(void) { pthread_mutex_init(&loading, NULL); }

/* ---- one table, checked and indexed -------------------------------------------------------------- */

bool qn__anchors(const qn_engine *row, const qn_op_info *op)
{
  return row->op == op->kind || row->op == (op->family | QN_ANCHOR_FAMILY);
}

const qn_engine *qn_backend_engine(const qn_backend *table, int i)
{
  if (!table || i < 0) return NULL;
  for (const qn_engine_list *const *l = table->engines; *l; l++) {
    if ((uint32_t)i < (*l)->n) return (const qn_engine *)((const char *)(*l)->row + (size_t)i * table->engine_size);
    i -= (int)(*l)->n;
  }
  return NULL;
}

/* May the string be a field of a tune cache line? */
static bool is_word(const char *s)
{
  size_t n = 0;
  while (s[n] && (unsigned char)s[n] >= ' ') n++;
  return !s[n] && n < sizeof ((qn__choice *)0)->version;
}

static qn_status index_engines(qn__backend *b)
{
  const qn_backend *t = b->table;
  size_t size = t->engine_size < sizeof(qn_engine) ? t->engine_size : sizeof(qn_engine);
  int n = 0, pairs = 0;
  while (qn_backend_engine(t, n)) n++;
  b->engine = qn__alloc((size_t)(n + 1) * sizeof *b->engine);
  b->first = qn__alloc((size_t)(qn__n_ops + 1) * sizeof *b->first);
  if (!b->engine || !b->first) return qn__fail(QN_NO_MEMORY, "backend %s: no memory for its table", b->name);
  for (int i = 0; i < n; i++) {
    qn_engine *row = &b->engine[b->n_engines];
    memcpy(row, qn_backend_engine(t, i), size);
    if (!row->name || !row->prepare || !row->run)
      return qn__fail(QN_NO_BACKEND, "%s: row %d of its engines lacks a name, prepare or run", b->path, i);
    if (!is_word(row->name))
      return qn__fail(QN_NO_BACKEND, "%s: the name of row %d of its engines has over 63 bytes, or control characters", b->path, i);
    b->n_engines++;
  }
  for (int pass = 0; pass < 2; pass++) {
    pairs = 0;
    for (int op = 0; op < qn__n_ops; op++) {
      b->first[op] = pairs;
      for (int i = 0; i < b->n_engines; i++)
        if (qn__anchors(&b->engine[i], &qn__ops[op])) {
          if (pass) b->by_op[pairs] = i;
          pairs++;
        }
    }
    b->first[qn__n_ops] = pairs;
    if (!pass && !(b->by_op = qn__alloc((size_t)(pairs + 1) * sizeof *b->by_op)))
      return qn__fail(QN_NO_MEMORY, "backend %s: no memory for its table", b->name);
  }
  return QN_OK;
}

/* The oldest struct sizes of this ABI major: a table must cover at least these. */
#define BACKEND_LEAST (offsetof(qn_backend, engines) + sizeof(void *))
#define ENGINE_LEAST  (offsetof(qn_engine, run) + sizeof(void (*)(void)))
#define DEVICE_LEAST  (offsetof(qn_device_ops, host_call) + sizeof(void (*)(void)))
#define VARIABLES_END (offsetof(qn_backend, variables) + sizeof(void *))
#define MOST_BYTES    65536

static qn_status check_table(const char *path, const qn_backend *t)
{
  if (!t) return qn__fail(QN_NO_BACKEND, "%s: its entry gave no table", path);
  if (t->struct_size < BACKEND_LEAST || t->struct_size > MOST_BYTES)
    return qn__fail(QN_NO_BACKEND, "%s: its table has %u bytes, at least %zu are needed", path, t->struct_size, BACKEND_LEAST);
  if (t->engine_size < ENGINE_LEAST || t->engine_size > MOST_BYTES || t->engine_size % _Alignof(qn_engine))
    return qn__fail(QN_NO_BACKEND, "%s: its rows have %u bytes, at least %zu and a multiple of %zu are needed", path,
                    t->engine_size, ENGINE_LEAST, _Alignof(qn_engine));
  if (!t->name || !*t->name || strpbrk(t->name, "/,: ") || !is_word(t->name))
    return qn__fail(QN_NO_BACKEND, "%s: its name is missing, too long, or has one of \"/,: \" in it", path);
  if (t->abi_minor < 4)
    return qn__fail(QN_NO_BACKEND, "%s: it is compiled for minor %u of quern/backend.h, whose roles and open were others; at least minor 4 "
                    "is needed: compile it anew", path, t->abi_minor);
  if (!t->version || !t->device_kind || !*t->device_kind || strlen(t->device_kind) > 15 || !t->engines)
    return qn__fail(QN_NO_BACKEND, "%s: its table lacks a version, a device kind or a list of engines", path);
  if (!is_word(t->version)) return qn__fail(QN_NO_BACKEND, "%s: its version has over 63 bytes, or control characters", path);
  return QN_OK;
}

/* Functions that a device has no use for are left out, but only in whole groups. */
static qn_status adopt_device(qn__backend *b, const qn_device_ops *theirs)
{
  if (!theirs) return QN_OK;
  if (theirs->struct_size < DEVICE_LEAST || theirs->struct_size > MOST_BYTES)
    return qn__fail(QN_NO_BACKEND, "%s: its device table has %llu bytes, at least %zu are needed", b->path,
                    (unsigned long long)theirs->struct_size, DEVICE_LEAST);
  qn_device_ops *d = qn__alloc(sizeof *d);
  if (!d) return qn__fail(QN_NO_MEMORY, "%s: no memory for its device table", b->path);
  memcpy(d, theirs, theirs->struct_size < sizeof *d ? (size_t)theirs->struct_size : sizeof *d);
  b->device = d;
  if (!d->count || !d->describe || !d->alloc || !d->free || !d->copy || !d->fill || !d->event_create || !d->event_destroy ||
      !d->event_record || !d->event_elapsed)
    return qn__fail(QN_NO_BACKEND, "%s: its device table lacks count, describe, alloc, free, copy, fill or one of the events' four",
                    b->path);
  int streams = !!d->stream_create + !!d->stream_destroy + !!d->stream_synchronize + !!d->stream_wait;
  int captures = !!d->capture_begin + !!d->capture_end + !!d->recording_launch + !!d->recording_destroy + !!d->capturing;
  if (!d->enter != !d->leave || streams % 4 || captures % 5 || !d->alloc_host != !d->free_host || !d->models != !d->describe_model ||
      !d->event_create_untimed != !d->event_wait || (d->event_wait && !streams))
    return qn__fail(QN_NO_BACKEND, "%s: its device table has a part only of: enter and leave, the four of streams, the five of captures, "
                    "alloc_host and free_host, models and describe_model, event_create_untimed and event_wait (with streams)", b->path);
  return QN_OK;
}

static qn__backend *by_name(const char *name)
{
  for (qn__backend *b = first; b; b = b->next)
    if (b->table && !strcmp(b->name, name)) return b;
  return NULL;
}

/* found: by searching, not by a path given; it is then used by name, and the first backend of a name counts. */
static qn_status adopt(qn__backend *b, qn_entry_fn *entry, bool found)
{
  const qn_backend *t = NULL;
  qn__fail(QN_OK, "%s", "");
  qn_status status = entry(&qn__host, &t);
  if (t && t->struct_size >= VARIABLES_END && t->struct_size <= MOST_BYTES && t->variables) b->variables = t->variables;
  if (status) {
    const char *said = qn_last_error();
    return qn__fail(QN_NO_BACKEND, "%s: its entry failed: %s", b->path, *said ? said : qn_status_text(status));
  }
  if ((status = check_table(b->path, t))) return status;
  const qn__backend *same = found ? by_name(t->name) : NULL;
  if (same) return qn__fail(QN_NO_BACKEND, "%s: is a second backend %s; the one found first, %s, stands", b->path, t->name, same->path);
  char *name = qn__strdup(t->name);
  if (!name) return qn__fail(QN_NO_MEMORY, "%s: no memory for its name", b->path);
  qn__free(b->name);
  b->name = name;
  b->table = t;
  if (!(status = adopt_device(b, t->device))) status = index_engines(b);
  if (!status && t->open && n_instances == QN__INSTANCES)
    status = qn__fail(QN_NO_BACKEND, "%s: %d backends that open instances are here already", b->path, QN__INSTANCES);
  if (!status && t->open) b->instance = n_instances++;
  if (status) b->table = NULL;
  return status;
}

/* ---- files ---------------------------------------------------------------------------------------- */

/* Refuses a file or folder that others could have written. */
static qn_status trusted(const char *path, bool folder)
{
  char why[1024];
  return qn_library_trusted(path, folder, why, sizeof why) ? QN_OK : qn__fail(QN_NO_BACKEND, "%s", why);
}

/* dlopen maps what the headers promise; with a truncated file it touches pages beyond the end, and the process dies of SIGBUS. So
 * check that all segments are there. A file that is not ELF is left to dlopen's own error. */
static qn_status whole(const char *path)
{
  ElfW(Ehdr) h;
  ElfW(Phdr) part;
  struct stat st;
  uint64_t end = 0;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return qn__fail(QN_NO_BACKEND, "%s: %s", path, strerror(errno));
  bool read = !fstat(fd, &st) && pread(fd, &h, sizeof h, 0) == sizeof h && !memcmp(h.e_ident, ELFMAG, SELFMAG) &&
              h.e_phentsize == sizeof part;
  if (read && h.e_shoff) end = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
  for (int i = 0; read && i < h.e_phnum; i++) {
    uint64_t at = h.e_phoff + (uint64_t)i * sizeof part;
    if (pread(fd, &part, sizeof part, (off_t)at) != sizeof part) end = UINT64_MAX;
    else if (part.p_offset + part.p_filesz > end) end = part.p_offset + part.p_filesz;
  }
  close(fd);
  if (read && end > (uint64_t)st.st_size)
    return qn__fail(QN_NO_BACKEND, "%s: is cut short: its headers speak of more than its %lld bytes", path, (long long)st.st_size);
  return QN_OK;
}

static qn_status load(qn__backend *b, bool found)
{
  char folder[4096];
  const char *slash = strrchr(b->path, '/');
  qn_status status;
  if (b->path[0] != '/') return qn__fail(QN_NO_BACKEND, "%s: a path to a backend must be absolute", b->path);
  if ((size_t)(slash - b->path) >= sizeof folder) return qn__fail(QN_NO_BACKEND, "%s: the path is too long", b->path);
  memcpy(folder, b->path, (size_t)(slash - b->path));
  folder[slash - b->path] = 0;
  if ((status = trusted(*folder ? folder : "/", true)) || (status = trusted(b->path, false)) ||
      (status = whole(b->path))) return status;

  void *so = dlopen(b->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!so) {
    const char *said = dlerror();
    return qn__fail(QN_NO_BACKEND, "%s: cannot be loaded: %s", b->path, said ? said : "no reason given");
  }
  void *symbol = dlsym(so, "quern_plugin_entry_v1");
  /* dlsym also searches dependencies; the entry must be in the file itself */
  struct link_map *map = NULL;
  Dl_info where;
  if (symbol && !dlinfo(so, RTLD_DI_LINKMAP, &map) && dladdr(symbol, &where) && map &&
      (uintptr_t)where.dli_fbase != (uintptr_t)map->l_addr)
    symbol = NULL;
  for (int major = 1; !symbol && major < 100; major++) {
    char name[32];
    snprintf(name, sizeof name, "quern_plugin_entry_v%d", major);
    if (major != QN_ABI_MAJOR && dlsym(so, name))
      return qn__fail(QN_NO_BACKEND, "%s: is a backend of ABI %d; this library, %s, loads those of ABI %d", b->path, major, qn_version(),
                      QN_ABI_MAJOR);
  }
  if (!symbol) return qn__fail(QN_NO_BACKEND, "%s: exports no quern_plugin_entry_v%d; it is no Quern backend", b->path, QN_ABI_MAJOR);
  qn_entry_fn *entry;
  memcpy(&entry, &symbol, sizeof entry);                      /* ISO C does not convert void * to a function pointer */
  return adopt(b, entry, found);
}

/* ---- the list --------------------------------------------------------------------------------------- */

static qn__backend *make(const char *name, const char *path)
{
  static const char *const none[] = { NULL };
  qn__backend *b = qn__alloc(sizeof *b);
  if (!b) return NULL;
  b->variables = none;
  b->instance = -1;
  b->name = qn__strdup(name);
  b->path = qn__strdup(path);
  if (b->name && b->path) return b;
  qn__free(b->name);
  qn__free(b->path);
  qn__free(b);
  return NULL;
}

/* Publishes b: from here on other threads read it. */
static void join(qn__backend *b, qn_status status)
{
  qn__backend *_Atomic *end = &first;
  b->status = status;
  if (status) {
    b->why = qn__strdup(qn_last_error());
    qn__log(QN_LOG_DEBUG, "backend skipped: %s", b->why ? b->why : "");
  } else qn__log(QN_LOG_DEBUG, "backend %s %s from %s, %d engines", b->name, b->table->version, b->path, b->n_engines);
  while (*end) end = &(*end)->next;
  *end = b;
}

static qn__backend *by_path(const char *path)
{
  for (qn__backend *b = first; b; b = b->next)
    if (!strcmp(b->path, path)) return b;
  return NULL;
}

static qn__backend *load_path(const char *path, bool found)
{
  const char *base = strrchr(path, '/');
  qn__backend *b = by_path(path);
  if (!b && (b = make(base ? base + 1 : path, path))) join(b, load(b, found));
  return b;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* missing: the log level for a folder that does not exist. */
static void load_folder(const char *folder, int missing)
{
  char **file = NULL;
  int n = 0;
  struct dirent *e;
  if (folder[0] != '/') {
    qn__log(QN_LOG_WARN, "QUERN_PLUGIN_PATH: \"%s\" is skipped, since it is not absolute", folder);
    return;
  }
  DIR *dir = opendir(folder);
  if (!dir) {
    qn__log(missing, "no plugins in %s: %s", folder, strerror(errno));
    return;
  }
  while ((e = readdir(dir))) {
    size_t len = strlen(e->d_name);
    if (strncmp(e->d_name, "quern_", 6) || len < 10 || strcmp(e->d_name + len - 3, ".so")) continue;
    qn_text path = {0};
    char **grown = qn__realloc(file, (size_t)n * sizeof *file, (size_t)(n + 1) * sizeof *file);
    qn__text_add(&path, "%s/%s", folder, e->d_name);
    if (!grown || path.failed) {
      qn__free(path.s);
      if (grown) file = grown;
      break;
    }
    file = grown;
    file[n++] = path.s;
  }
  closedir(dir);
  if (n) qsort(file, (size_t)n, sizeof *file, by_text);         /* for an order that does not depend on the file system */
  for (int i = 0; i < n; i++) {
    load_path(file[i], true);
    qn__free(file[i]);
  }
  qn__free(file);
}

static void load_folders(const char *path)
{
  char *copy = path ? qn__strdup(path) : NULL, *rest = copy, *folder;
  while (rest && (folder = strsep(&rest, ":")))
    if (*folder) load_folder(folder, QN_LOG_WARN);
  qn__free(copy);
}

static void take_built_in(void)
{
  if (built_in) return;
  built_in = true;
  for (int i = 0; builtin[i].name; i++) {
    qn__backend *b = make(builtin[i].name, "(built in)");
    if (b) join(b, adopt(b, builtin[i].entry, true));
  }
}

static void search(void)
{
  take_built_in();
  if (searched) return;
  searched = true;
  load_folders(qn__environment(QN_SET_PLUGIN_PATH));
#ifdef QN_PLUGINDIR
  load_folder(QN_PLUGINDIR, QN_LOG_DEBUG);
#endif
}

qn__backend *qn__backends(void)
{
  qn__lock(&loading);
  search();
  qn__unlock(&loading);
  return first;
}

qn__backend *qn__backends_here(void) { return first; }

void qn__backends_also(const qn__settings *s)
{
  if (s->origin[QN_SET_PLUGIN_PATH] < QN_FROM_CONTEXT) return;
  qn__lock(&loading);
  search();
  load_folders(s->text[QN_SET_PLUGIN_PATH]);
  qn__unlock(&loading);
}

qn_status qn__backend_get(const char *name, qn__backend **out)
{
  if (!strcmp(name, "check")) return qn__check_backend(qn__backends(), out);    /* in no list: only for those who ask for it */
  qn__lock(&loading);
  take_built_in();
  qn__backend *b = strchr(name, '/') ? NULL : by_name(name);
  if (!b) {                               /* a name that is already loaded runs no other plugin's code */
    search();
    b = strchr(name, '/') ? load_path(name, false) : by_name(name);
  }
  qn__unlock(&loading);
  if (b && !b->status) {
    *out = b;
    return QN_OK;
  }
  if (b) return qn__fail(b->status, "%s", b->why ? b->why : "no memory");
  qn_text known = {0};
  for (qn__backend *k = first; k; k = k->next) {
    if (k->table) qn__text_add(&known, "%s%s", known.len ? ", " : "", k->name);
    size_t len = strlen(name);
    if (!k->table && !strncmp(k->name, "quern_", 6) && !strncmp(k->name + 6, name, len) && !strcmp(k->name + 6 + len, ".so")) {
      qn__free(known.s);
      return qn__fail(QN_NO_BACKEND, "backend %s cannot be had: %s", name, k->why ? k->why : "no memory");
    }
  }
  qn_status status = qn__fail(QN_NO_BACKEND, "backend \"%s\" is not here; known are %s (QUERN_PLUGIN_PATH names more folders)",
                              name, known.s ? known.s : "none");
  qn__free(known.s);
  return status;
}

qn_status qn_each_backend(void (*row)(void *, const qn_backend_info *), void *user)
{
  if (!row) return qn__fail(QN_BAD_ARGUMENT, "row: is NULL");
  for (qn__backend *b = qn__backends(); b; b = b->next) {
    qn_backend_info info = { sizeof info, b->table ? b->name : "", b->table ? b->table->version : "",
                             b->table ? b->table->device_kind : "", b->path, b->status, b->why ? b->why : "", b->table };
    row(user, &info);
  }
  return QN_OK;
}
