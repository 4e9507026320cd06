/* t_loader.c -- a defective plugin is refused with a sentence, as is one of an old minor version; one with a shorter table, or of a later
 * minor, is accepted; the variables that backends read are known.
 *
 * Plugins are copies of tests/plugin.c named after their defect, and files damaged here, in a folder of our own that is also on
 * QUERN_PLUGIN_PATH. Arguments: the folders where the three test plugins were built. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <quern/tools.h>
#include "tap.h"

static char folder[] = "/tmp/quern-loader-XXXXXX";
static char *image;                               /* of the correct plugin */
static size_t image_bytes;

static void must(int ok, const char *what)
{
  if (ok) return;
  printf("Bail out! %s: %s\n", what, strerror(errno));
  exit(1);
}

static void *read_file(const char *path, size_t *bytes)
{
  struct stat st;
  int fd = open(path, O_RDONLY);
  must(fd >= 0 && !fstat(fd, &st), path);
  char *p = malloc((size_t)st.st_size + 1);
  must(p && read(fd, p, (size_t)st.st_size) == st.st_size, path);
  close(fd);
  *bytes = (size_t)st.st_size;
  return p;
}

/* Writes a plugin quern_NAME.so with these bytes; returns its path, valid until the next call. */
static const char *make(const char *name, const void *bytes, size_t n, mode_t mode)
{
  static char path[256];
  snprintf(path, sizeof path, "%s/quern_%s.so", folder, name);
  unlink(path);                                   /* the old file may be mapped */
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
  must(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && !fchmod(fd, mode), path);
  close(fd);
  return path;
}

static qn_status try(const char *backend)
{
  char option[300];
  const char *const options[] = { option, NULL };
  qn_context *ctx = NULL;
  snprintf(option, sizeof option, "backend=%s", backend);
  qn_status status = qn_context_create(options, &ctx);
  qn_context_destroy(ctx);
  return status;
}

/* Asked for by path, it must be refused with a sentence that has the path and the word. */
static void refused(const char *path, const char *about, const char *word)
{
  qn_status status = try(path);
  const char *said = qn_last_error();
  if (!tap_ok(status == QN_NO_BACKEND && strstr(said, *path == '/' ? folder : path) && strstr(said, word), "refused: %s", about))
    tap_note("%s: status %d, \"%s\"; wanted status %d and \"%s\"", path, status, said, QN_NO_BACKEND, word);
}

static void misbehaves(const char *name, const char *about, const char *word)
{
  refused(make(name, image, image_bytes, 0700), about, word);
}

static void truncated(size_t bytes)
{
  char name[64], about[64];
  snprintf(name, sizeof name, "truncated_%zu", bytes);
  snprintf(about, sizeof about, "truncated to %zu of %zu bytes", bytes, image_bytes);
  refused(make(name, image, bytes, 0700), about, "");
}

/* Warnings logged; and the test plugins' variables as listed, with their values. */
static char warnings[4096];
static void hear(void *user, int level, const char *message)
{
  (void)user;
  if (level == QN_LOG_WARN) strncat(warnings, message, sizeof warnings - strlen(warnings) - 1);
}

static int heard_debug;
static void hear_debug(void *user, int level, const char *message)
{
  (void)user;
  (void)message;
  heard_debug += level == QN_LOG_DEBUG;
}

static void see_setting(void *user, const qn_setting_info *s)
{
  int *shown = user;
  if (!strcmp(s->variable, "QUERN_TEST_SWITCH")) *shown += !*s->key && !strcmp(s->value, "on") && !strcmp(s->origin, "environment");
  if (!strcmp(s->variable, "QUERN_TEST_LIBRARY")) *shown += !*s->key && !strcmp(s->value, "/nowhere");
}

/* Before anything else is loaded: a backend's variables are known, even if it failed; others get a warning. */
static void check_variables(void)
{
  int shown = 0;
  make("fails", image, image_bytes, 0700);
  setenv("QUERN_TEST_SWITCH", "on", 1);
  setenv("QUERN_TEST_LIBRARY", "/nowhere", 1);
  setenv("QUERN_TEST_SWITCHES", "on", 1);
  qn_set_log(hear, NULL);
  tap_ok(!try(make("good", image, image_bytes, 0700)), "a plugin that is right is taken") ||
    (tap_note("%s", qn_last_error()), 0);
  qn_set_log(NULL, NULL);
  tap_ok(strstr(warnings, "QUERN_TEST_SWITCHES is not") && !strstr(warnings, "QUERN_TEST_SWITCH is") &&
         !strstr(warnings, "QUERN_TEST_LIBRARY"), "variables that backends name are not warned of, another is") ||
         (tap_note("%s", warnings), 0);
  tap_ok(!qn_each_setting(NULL, see_setting, &shown) && shown >= 2, "and are shown among the settings");
}

/* While another thread is held in a plugin's entry, the list of backends must show no incomplete one. */
static char entered[300];
static void *load_held(void *status)
{
  *(qn_status *)status = try(make("held", image, image_bytes, 0700));
  return NULL;
}

static struct { int n, half_made; pthread_t loader; qn_status status; } walk;
static void see_whole(void *user, const qn_backend_info *info)
{
  (void)user;
  if (!walk.n++) {
    snprintf(entered, sizeof entered, "%s/quern_held.so.entered", folder);
    must(!pthread_create(&walk.loader, NULL, load_held, &walk.status), "a thread");
    while (access(entered, F_OK)) usleep(1000);
  }
  walk.half_made += !info->status && (!info->table || !*info->name);
}

static int asked;
static void ask(void *user, int level, const char *message)
{
  (void)user;
  (void)level;
  if (!strcmp(message, "held")) asked = !qn_each_backend(see_whole, NULL) + (try("no such backend") == QN_NO_BACKEND);
}

static void check_half_made(void)
{
  qn_set_log(ask, NULL);
  qn_each_backend(see_whole, NULL);
  must(!unlink(entered), entered);
  pthread_join(walk.loader, NULL);
  qn_set_log(NULL, NULL);
  tap_ok(walk.n && !walk.half_made && !walk.status, "a backend is listed when it is whole, not while it is loaded");
  tap_ok(asked == 2, "who hears what was logged meanwhile may ask for backends");
}

/* The log level is the process's: a context's option sets it, and creating another context does not reset it. */
static void check_log(void)
{
  const char *const loud[] = { "log=debug", NULL }, *const quiet[] = { "log=warn", NULL };
  qn_context *a = NULL, *b = NULL, *c = NULL;
  qn_status status = qn_context_create(loud, &a);
  if (!status) status = qn_context_create(NULL, &b);
  heard_debug = 0;
  qn_set_log(hear_debug, NULL);
  try("/nonexistent/quern_first.so");
  tap_ok(!status && heard_debug, "a context's log level stays when another context is made");
  if (!status) status = qn_context_create(quiet, &c);
  if (!status) status = qn_context_set(a, "threads", "1");
  heard_debug = 0;
  try("/nonexistent/quern_second.so");
  tap_ok(!status && !heard_debug, "until an option changes it");
  qn_set_log(NULL, NULL);
  qn_context_destroy(a);
  qn_context_destroy(b);
  qn_context_destroy(c);
}

/* Explaining on a model reads options as a context does. */
static void count_verdict(void *user, const qn_verdict *v)
{
  *(int *)user += !strcmp(v->backend, "apart");
}

static void check_model_options(void)
{
  char apart[300], option[320], path[320];
  const char *const options[] = { option, "backend=apart", NULL }, *const malformed[] = { "threads", NULL };
  qn_graph *graph;
  int n = 0;
  snprintf(apart, sizeof apart, "%s/apart", folder);
  snprintf(path, sizeof path, "%s/quern_apart.so", apart);
  must(!mkdir(apart, 0700) && !rename(make("apart", image, image_bytes, 0700), path), path);
  snprintf(option, sizeof option, "plugin_path=%s", apart);
  must(!qn_graph_parse("matmul a=f32/4x4 b=f32/4x4", &graph), "a graph");
  tap_ok(qn_explain(options, "generic", graph, count_verdict, &n) == QN_UNSUPPORTED && n == 1,
         "a model's backend is found by plugin_path: %s", qn_last_error());
  tap_ok(qn_explain(malformed, "generic", graph, count_verdict, &n) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "key=value"), "%s",
         qn_last_error());
  qn_graph_destroy(graph);
}

static void see_second(void *user, const qn_backend_info *info)
{
  if (strstr(info->path, "/second/") && info->status == QN_NO_BACKEND && strstr(info->why, "found first")) ++*(int *)user;
}

/* Of two files found with the same name the first is used in all cases; the other reports so. */
static void check_second(void)
{
  char path[300], option[320];
  const char *const options[] = { option, "backend=test", NULL };
  qn_context *ctx = NULL;
  int n = 0;
  snprintf(path, sizeof path, "%s/second", folder);
  snprintf(option, sizeof option, "plugin_path=%s", path);
  must(!mkdir(path, 0700), path);
  strcat(path, "/quern_good.so");
  must(!link(make("good", image, image_bytes, 0700), path), path);
  qn_status status = qn_context_create(options, &ctx);
  tap_ok(!status && !qn_each_backend(see_second, &n) && n == 1, "a second backend of the same name is found, and not taken") ||
    (tap_note("status %d, %d, \"%s\"", status, n, qn_last_error()), 0);
  qn_context_destroy(ctx);
}

struct seen { int good, earlier, later, bad, bad_without_why; };
static void see(void *user, const qn_backend_info *info)
{
  struct seen *seen = user;
  if (strncmp(info->path, folder, strlen(folder))) return;
  if (!info->status && !strcmp(info->name, "test")) seen->good++;
  if (!info->status && !strcmp(info->name, "earlier")) seen->earlier++;
  if (!info->status && !strcmp(info->name, "later")) seen->later++;
  if (info->status && info->path[0]) seen->bad++;
  if (info->status && !info->why[0]) seen->bad_without_why++;
}

int main(int argc, char **argv)
{
  size_t v2_bytes, none_bytes;
  must(argc == 4, "arguments: three plugins");
  must(mkdtemp(folder) != NULL, folder);
  image = read_file(argv[1], &image_bytes);
  char *v2 = read_file(argv[2], &v2_bytes), *none = read_file(argv[3], &none_bytes);
  const char *others = getenv("QUERN_PLUGIN_PATH");               /* cpu_ref, which provides the device, may be there */
  char path_list[4096];
  snprintf(path_list, sizeof path_list, "%s%s%s", folder, others ? ":" : "", others ? others : "");
  setenv("QUERN_PLUGIN_PATH", path_list, 1);
  setenv("QUERN_LOG", "warn", 1);

  check_variables();
  tap_ok(!try(make("earlier", image, image_bytes, 0700)), "one with a shorter table is taken") ||
    (tap_note("%s", qn_last_error()), 0);
  tap_ok(!try(make("later", image, image_bytes, 0700)), "one of a later minor, with longer structs, is taken") ||
    (tap_note("%s", qn_last_error()), 0);

  refused(make("v2", v2, v2_bytes, 0700), "of another ABI major",
          "is a backend of ABI 2; this library, " QN_VERSION ", loads those of ABI 1");
  refused(make("none", none, none_bytes, 0700), "without an entry", "quern_plugin_entry_v1");
  misbehaves("fails", "its entry fails, and says why", "the moon is in the wrong house");
  misbehaves("fails_silently", "its entry fails, and does not say why", "");
  misbehaves("odd_status", "its entry returns no status", "");
  misbehaves("no_table", "no table", "table");
  misbehaves("short_table", "a table of 8 bytes", "8 bytes");
  misbehaves("huge_table", "a table of 4 GB", "bytes");
  misbehaves("short_rows", "rows of 3 bytes", "3 bytes");
  misbehaves("odd_rows", "rows of a size that no struct has", "rows");
  misbehaves("no_name", "no name", "name");
  misbehaves("bad_name", "a name with a slash", "name");
  misbehaves("long_name", "a name too long to print", "name");
  misbehaves("no_version", "no version", "version");
  misbehaves("no_kind", "no device kind", "device kind");
  misbehaves("no_engines", "no engines", "engines");
  misbehaves("row_without_run", "an engine without run", "run");
  misbehaves("row_without_name", "an engine without a name", "name");
  misbehaves("empty_device", "a device table with nothing in it", "device");
  misbehaves("short_device", "a device table of 24 bytes", "24 bytes");
  misbehaves("torn_device", "a device table with three of the streams' four", "streams");
  misbehaves("torn_waits", "a device table with one of the waits' two", "event_create_untimed and event_wait");
  misbehaves("old_minor", "roles as before minor 4", "compile it anew");

  /* dlopen maps more of a truncated file than there is: touching that would kill the process. */
  static const size_t few[] = { 0, 1, 4, 63, 64, 200, 1000, 4096 };
  for (size_t i = 0; i < sizeof few / sizeof *few; i++) truncated(few[i]);
  for (int i = 1; i < 8; i++) truncated(image_bytes * (size_t)i / 8);
  refused(make("text", "this is no shared object\n", 25, 0700), "a text file", "");

  refused(make("writable", image, image_bytes, 0777), "a file that everyone may write", "writ");
  {
    char path[300];
    snprintf(path, sizeof path, "%s/open", folder);
    must(!mkdir(path, 0700) && !chmod(path, 0777), path);
    strcat(path, "/quern_good.so");
    must(!link(make("good", image, image_bytes, 0700), path), path);
    refused(path, "a file in a folder that everyone may write", "writ");
  }
  if (geteuid() == 0) {
    const char *path = make("foreign", image, image_bytes, 0755);
    must(!chown(path, 12345, 12345), path);
    refused(path, "a file that belongs to someone else", "owner");
  } else tap_skip("needs root", "refused: a file that belongs to someone else");
  {
    char path[300];
    snprintf(path, sizeof path, "%s/quern_missing.so", folder);
    refused(path, "a file that is not there", "");
    must(!chdir(folder), folder);
    refused("./quern_good.so", "a relative path", "absolute");
    refused("open/quern_good.so", "a relative path that begins with a name", "absolute");
    tap_ok(try("quern_good.so") == QN_NO_BACKEND, "refused: a file's name where a backend's belongs");
    tap_ok(try("nonesuch") == QN_NO_BACKEND && strstr(qn_last_error(), "nonesuch"), "refused: a name that nobody bears");
    snprintf(path, sizeof path, "%s/quern_folder.so", folder);
    must(!mkdir(path, 0700), path);
    refused(path, "a folder", "folder");
  }
  qn_status status = try("test");
  tap_ok(!status, "the good one is also found by its name, in QUERN_PLUGIN_PATH") || (tap_note("%s", qn_last_error()), 0);
  check_second();
  status = try(make("unknown_kind", image, image_bytes, 0700));
  tap_ok(status == QN_NO_BACKEND && strstr(qn_last_error(), "abacus"), "refused: a device kind that nobody provides") ||
    (tap_note("status %d, \"%s\"", status, qn_last_error()), 0);

  check_half_made();
  check_log();
  check_model_options();
  struct seen seen = { 0, 0, 0, 0, 0 };
  status = qn_each_backend(see, &seen);
  tap_ok(!status && seen.good >= 1 && seen.earlier == 1 && seen.later == 1, "qn_each_backend shows the good ones");
  tap_ok(seen.bad >= 30 && !seen.bad_without_why, "and the bad ones, each with its sentence") ||
    (tap_note("%d bad, %d without a sentence", seen.bad, seen.bad_without_why), 0);
  qn_context *ctx = NULL;
  tap_ok(!qn_context_create(NULL, &ctx), "bad plugins beside it do not disturb who asks for none of them") ||
    (tap_note("%s", qn_last_error()), 0);
  qn_context_destroy(ctx);

  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (system(command)) tap_note("%s is still there", folder);
  free(image);
  free(v2);
  free(none);
  return tap_done();
}
