/* library.h -- finds and loads a vendor's library at run time, for a backend that works without it; static inlines, host code.
 *
 * Libraries are loaded by absolute path, only from files and folders owned by root or this user and not writable by everyone,
 * never by bare name and never from the current directory; they stay loaded. Search order:
 *   QUERN_KEY          a path; if set, nothing else is tried
 *   this process       a copy that is already loaded: two copies would not share state
 *   LD_LIBRARY_PATH    its absolute folders
 *   folders            given by the caller */
#ifndef QUERN_LIBRARY_H
#define QUERN_LIBRARY_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE                       /* for dl_iterate_phdr, secure_getenv: include this before system headers, or define it */
#endif
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_library {
  void *handle;                           /* NULL: not loaded; `why` says what failed */
  char  path[512];
  char  why[1024];
} qn_library;

/* 1: a regular file (a folder) owned by root or this user and not writable by everyone (its group may write); else 0 and why. */
static inline int qn_library_trusted(const char *path, int folder, char *why, size_t bytes)
{
  struct stat st;
  if (stat(path, &st)) snprintf(why, bytes, "%s: %s", path, strerror(errno));
  else if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode)) snprintf(why, bytes, "%s: is not a %s", path, folder ? "folder" : "file");
  else if (st.st_mode & S_IWOTH) snprintf(why, bytes, "%s: is refused, since everyone may write it; chmod o-w", path);
  else if (st.st_uid != 0 && st.st_uid != geteuid())
    snprintf(why, bytes, "%s: is refused, since its owner (uid %u) is neither root nor this user", path, (unsigned)st.st_uid);
  else return 1;
  return 0;
}

/* 1 and lib->path: the file may be loaded, but is not yet; or 0 and lib->why. */
static inline int qn_library_at(qn_library *lib, const char *path)
{
  char folder[sizeof lib->path];
  const char *slash = strrchr(path, '/');
  if (path[0] != '/' || strlen(path) >= sizeof lib->path) {
    snprintf(lib->why, sizeof lib->why, "%.200s: is no absolute path, or a very long one", path);
    return 0;
  }
  snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  if (!qn_library_trusted(folder, 1, lib->why, sizeof lib->why) || !qn_library_trusted(path, 0, lib->why, sizeof lib->why)) return 0;
  snprintf(lib->path, sizeof lib->path, "%s", path);
  return 1;
}

typedef struct qn_library_search { const char *file; char *path; size_t bytes; } qn_library_search;

static inline int qn_library_is_loaded(struct dl_phdr_info *info, size_t size, void *user)
{
  const qn_library_search *search = (const qn_library_search *)user;
  const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
  (void)size;
  if (!slash || info->dlpi_name[0] != '/' || strcmp(slash + 1, search->file)) return 0;
  snprintf(search->path, search->bytes, "%s", info->dlpi_name);
  return 1;
}

static inline int qn_library_in_folder(qn_library *lib, const char *folder, int length, const char *file)
{
  char path[sizeof lib->path];
  if (folder[0] != '/' || snprintf(path, sizeof path, "%.*s/%s", length, folder, file) >= (int)sizeof path) return 0;
  return !access(path, R_OK) && qn_library_at(lib, path);
}

/* Finds it without loading. file: "libcublasLt.so.13"; folder: ended by NULL. 1 and lib->path, or 0 and lib->why. */
static inline int qn_library_find(qn_library *lib, const qn_host *host, const char *key, const char *file, const char *const folder[])
{
  char loaded[sizeof lib->path] = "";
  qn_library_search search = { file, loaded, sizeof loaded };
  const char *given = host->option(key), *more = NULL;
#ifdef __GLIBC__
  more = secure_getenv("LD_LIBRARY_PATH");
#endif
  memset(lib, 0, sizeof *lib);
  if (given && *given) return qn_library_at(lib, given);
  if (dl_iterate_phdr(qn_library_is_loaded, &search) && qn_library_at(lib, loaded)) return 1;
  for (; more && *more; more += strspn(more, ":")) {
    int length = (int)strcspn(more, ":");
    if (length && qn_library_in_folder(lib, more, length, file)) return 1;
    more += length;
  }
  for (; *folder; folder++)
    if (qn_library_in_folder(lib, *folder, (int)strlen(*folder), file)) return 1;
  if (!lib->why[0]) snprintf(lib->why, sizeof lib->why, "%s was not found; QUERN_%s=/path/to/it says where it lies", file, key);
  return 0;
}

/* Loads lib->path. Returns 1, or 0 and lib->why. */
static inline int qn_library_load(qn_library *lib)
{
  if (!lib->handle) lib->handle = dlopen(lib->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!lib->handle) {
    const char *said = dlerror();
    snprintf(lib->why, sizeof lib->why, "%s", said ? said : lib->path);
  }
  return lib->handle != NULL;
}

/* The address of that symbol, or NULL and lib->why. */
static inline void *qn_library_symbol(qn_library *lib, const char *name)
{
  void *p = dlsym(lib->handle, name);
  if (!p) snprintf(lib->why, sizeof lib->why, "%s has no %s", lib->path, name);
  return p;
}

#ifdef __cplusplus
}
#endif
#endif
