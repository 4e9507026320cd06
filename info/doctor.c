/* doctor.c -- settings and their origins; common problems of a machine's setup. */
#include <dlfcn.h>
#include <dirent.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <quern/library.h>
#include "info.h"

/* ---- config ------------------------------------------------------------------------------------- */

static void print_setting(void *user, const qn_setting_info *s)
{
  (void)user;
  printf("%-16s %-24s %-12s %s\n", *s->key ? s->key : "-", s->value && *s->value ? s->value : "-", s->origin, s->variable);
  printf("%17s%s\n", "", s->text);
}

int info_config(const char *const options[], const char *only)
{
  qn_context *ctx;
  (void)only;
  qn_status status = qn_context_create(options, &ctx);
  if (status)
    return info_fail(status);
  printf("%-16s %-24s %-12s %s\n", "setting", "value", "origin", "variable");
  status = qn_each_setting(ctx, print_setting, NULL);
  qn_context_destroy(ctx);
  return status ? info_fail(status) : 0;
}

/* ---- doctor: folders and plugins ------------------------------------------------------------------ */

static bool said(bool good, const char *what, const char *detail)
{
  printf("%-6s %s%s%s\n", good ? "ok" : "FAULT", what, *detail ? ": " : "", detail);
  return good;
}

/* The loader's criteria. */
static bool check_permissions(const char *path, bool folder)
{
  char why[1024];
  return qn_library_trusted(path, folder, why, sizeof why) || said(false, why, "");
}

static bool check_folder(const char *path)
{
  bool good = true;
  int plugins = 0;
  char text[64];
  if (access(path, F_OK)) {
    printf("note   %s: no such folder\n", path);
    return true;
  }
  if (!check_permissions(path, true))
    return false;
  DIR *dir = opendir(path);
  if (!dir)
    return said(false, path, strerror(errno));
  for (struct dirent *entry; (entry = readdir(dir));) {
    size_t n = strlen(entry->d_name);
    if (n < 10 || strncmp(entry->d_name, "quern_", 6) || strcmp(entry->d_name + n - 3, ".so"))
      continue;
    char file[4096];
    snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    good &= check_permissions(file, false);
    plugins++;
  }
  closedir(dir);
  snprintf(text, sizeof text, "%d plugin%s", plugins, plugins == 1 ? "" : "s");
  return good ? said(true, path, text) : false;
}

static bool check_folders(const char *const options[])
{
  bool good = true;
  const char *path = secure_getenv("QUERN_PLUGIN_PATH"), key[] = "plugin_path=";
  for (int i = 0; options[i]; i++)
    if (!strncmp(options[i], key, sizeof key - 1))
      path = options[i] + sizeof key - 1;
  char *copy = path ? strdup(path) : NULL, *save = NULL;
  for (char *dir = copy ? strtok_r(copy, ":", &save) : NULL; dir; dir = strtok_r(NULL, ":", &save))
    good &= check_folder(dir);
  free(copy);
  return check_folder(QN_PLUGINDIR) && good;
}

static void check_backend(void *user, const qn_backend_info *b)
{
  bool *good = user;
  char text[1024];
  if (b->status) {
    snprintf(text, sizeof text, "%s%s%s", strstr(b->why, b->path) ? "" : b->path, strstr(b->why, b->path) ? "" : ": ", b->why);
    *good = said(false, *b->name ? b->name : "a plugin", text);
  } else {
    snprintf(text, sizeof text, "version %s, %s", b->version, b->path);
    said(true, b->name, text);
  }
}

/* ---- doctor: the tune cache ------------------------------------------------------------------------ */

/* The nearest folder above a file that is there. */
static void folder_above(char *path)
{
  do {
    char *slash = strrchr(path, '/');
    if (slash == path || !slash)
      strcpy(path, slash ? "/" : ".");
    else
      *slash = '\0';
  } while (access(path, F_OK) && strcmp(path, "/") && strcmp(path, "."));
}

/* Measurements are written beside the file, then renamed; a home that does not exist is not made. */
static void check_cache(void *user, const qn_setting_info *s)
{
  bool *good = user;
  char folder[4096], text[8192];
  const char *home = secure_getenv("HOME"), *why = NULL;
  if (strcmp(s->key, "tune_cache") || !*s->value || strlen(s->value) >= sizeof folder)
    return;
  strcpy(folder, s->value);
  folder_above(folder);
  if (!access(s->value, F_OK) && access(s->value, R_OK))
    why = strerror(errno);
  else if (access(folder, W_OK | X_OK))
    why = strerror(errno);
  else if (home && !strncmp(s->value, home, strlen(home)) && access(home, F_OK))
    why = "the home folder does not exist";
  snprintf(text, sizeof text, "%s%s%s%s", s->value, why ? " cannot be written: " : "", why ? why : "",
           why ? "; tune=measure will remember nothing, QUERN_TUNE_CACHE names another file" : "");
  if (why && !strcmp(s->origin, "default"))
    printf("note   tune cache: %s\n", text);
  else
    *good &= said(!why, "tune cache", text);
}

/* ---- doctor: libraries in this process ------------------------------------------------------------- */

/* Looks up a function of a loaded library, whatever its scope. */
static void *loaded_symbol(const char *path, const char *name)
{
  void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  void *symbol = library ? dlsym(library, name) : NULL;
  if (library)
    dlclose(library);
  return symbol;
}

typedef struct runtimes { int openmp, openblas; } runtimes;

static int look_at_library(struct dl_phdr_info *info, size_t bytes, void *user)
{
  runtimes *found = user;
  const char *path = info->dlpi_name, *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  (void)bytes;
  if (!strncmp(name, "libgomp", 7) || !strncmp(name, "libomp", 6) || !strncmp(name, "libiomp", 7)) {
    int (*threads)(void) = (int (*)(void))loaded_symbol(path, "omp_get_max_threads");
    printf("ok     OpenMP: %s, %d threads\n", path, threads ? threads() : 0);
    found->openmp++;
  }
  if (strstr(name, "openblas") || !strncmp(name, "libblas", 7)) {
    char *(*config)(void) = (char *(*)(void))loaded_symbol(path, "openblas_get_config");
    int (*parallel)(void) = (int (*)(void))loaded_symbol(path, "openblas_get_parallel");
    if (config) {
      printf("%s OpenBLAS: %s, %s\n", parallel && parallel() == 2 ? "ok    " : "note  ", path, config());
      if (parallel && parallel() != 2)
        printf("       this is not its OpenMP build (Debian: libopenblas0-openmp), so its threads come on top of ours\n");
      found->openblas++;
    }
  }
  return 0;
}

/* Waiting OpenMP threads spin by default, and on a busy machine take the time of those that work. */
static void check_waiting(void)
{
  const char *policy = getenv("OMP_WAIT_POLICY");
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  double load[1];
  if (policy)
    printf("ok     OpenMP: OMP_WAIT_POLICY=%s\n", policy);
  else
    printf("note   OpenMP: threads that wait spin; where other programs use the processors, OMP_WAIT_POLICY=passive makes CPU engines "
           "8 to 20 times faster\n");
  if (getloadavg(load, 1) == 1 && load[0] > (double)processors)
    printf("note   this machine is busy: %.1f runnable threads on %ld processors%s\n", load[0], processors,
           policy ? "" : "; set OMP_WAIT_POLICY=passive");
}

static void check_libraries(void)
{
  runtimes found = { 0, 0 };
  dl_iterate_phdr(look_at_library, &found);
  if (!found.openmp)
    printf("note   OpenMP: none is loaded, CPU engines use one thread\n");
  else
    check_waiting();
  if (found.openmp > 1)
    printf("note   OpenMP: %d run-time libraries in one process, whose threads compete\n", found.openmp);
  if (!found.openblas)
    printf("note   OpenBLAS: none is loaded, CPU matrix products use our own loop\n");
}

/* The driver as any CUDA program would find it; whether Quern has a backend for it is reported separately. */
static void check_cuda_driver(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!driver) {
    printf("note   CUDA driver: none (libcuda.so.1 cannot be opened)\n");
    return;
  }
  int (*version)(int *) = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");
  int v = 0;
  if (version && !version(&v))
    printf("ok     CUDA driver: supports CUDA %d.%d\n", v / 1000, v % 1000 / 10);
  else
    printf("FAULT  CUDA driver: libcuda.so.1 is there and does not answer\n");
}

static void count_device(void *user, const qn_backend_info *b, const qn_device *d)
{
  int *n = user;
  ++*n;
  printf("ok     device %s:%d: %s, by %s\n", d->kind, d->ordinal, d->name, b->name);
}

int info_doctor(const char *const options[], const char *only)
{
  bool good = true;
  int devices = 0;
  qn_context *ctx;
  (void)only;
  printf("ok     libquern %s\n", qn_version());
  good &= check_folders(options);
  qn_each_backend(check_backend, &good);
  qn_each_device(count_device, &devices);
  if (!devices)
    good = said(false, "devices", "no backend found a usable one");
  check_libraries();
  check_cuda_driver();
  if (qn_context_create(options, &ctx)) {
    good = said(false, "a context with the settings in force", qn_last_error());
  } else {
    said(true, "a context with the settings in force", qn_context_device(ctx));
    qn_each_setting(ctx, check_cache, &good);
    qn_context_destroy(ctx);
  }
  return good ? 0 : 1;
}
