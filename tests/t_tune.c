/* t_tune.c -- measurements and their storage: the choice among engines, variants and splits, on the fake device, whose clock
 * only their work advances; and the file shared between processes. */
#include <quern/tools.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fake.h"
#include "tap.h"

static char file[64], option[128], text[4096];

static qn_context *tuner(const char *tune)
{
  snprintf(option, sizeof option, "tune_cache=%s", file);
  return context(tune, option);
}

/* Is the problem planned as one part, by that engine? */
static int gets(qn_context *ctx, const char *lines, const char *engine)
{
  int n;
  plan(ctx, lines, &n, NULL);
  return n == 1 && line_has(last_plan, 0, engine);
}

static const char *contents(void)
{
  FILE *f = fopen(file, "r");
  size_t got = f ? fread(text, 1, sizeof text - 1, f) : 0;
  if (f) fclose(f);
  text[got] = 0;
  return text;
}

static void write_text(const char *what)
{
  FILE *f = fopen(file, "w");
  if (f) {
    fputs(what, f);
    fclose(f);
  }
}

/* ---- the choice ------------------------------------------------------------------------------------------------ */

static void variants(void)
{
  qn_context *ctx = tuner("tune=measure");
  tap_ok(gets(ctx, "copy x=f32/64", "fake/timed:fast"), "measuring finds the faster variant");
  qn_context_destroy(ctx);
  tap_ok(strstr(contents(), "\tfake/timed:fast\t1\t") && strstr(text, "copy x=f32/64"), "and remembers it by name");
  ctx = tuner("tune=cached");
  tap_ok(gets(ctx, "copy x=f32/64", "fake/timed:fast"), "what is remembered is taken without measuring");
  tap_ok(gets(ctx, "copy x=f32/65", "fake/timed:slow"), "and only for its problem");
  qn_context_destroy(ctx);
  ctx = tuner("tune=measure");
  tap_ok(!qn_context_set(ctx, "engine", "copy=timed"), "measuring among pinned engines");
  tap_ok(gets(ctx, "copy x=f32/67", "fake/timed:fast"), "finds the fastest of their variants");
  tap_ok(!qn_context_set(ctx, "engine", "copy=timed:slow"), "a pinned variant");
  tap_ok(gets(ctx, "copy x=f32/67", "fake/timed:slow"), "stays, whatever is remembered");
  tap_ok(gets(ctx, "pad x=f32/8 pad=1", "fake/alone"), "an engine none of whose variants is for the problem competes as it is");
  qn_context_destroy(ctx);
}

static void splits(void)
{
  const char *slower = "in x f32/4x4\nz = log_softmax x=x axis=1\nt = tanh x=z\nout y = neg x=t\n";
  const char *faster = "in x f32/4x4\nz = log_softmax x=x axis=1\nt = neg x=z\nout y = neg x=t\n";
  int n;
  qn_context *ctx = tuner("tune=measure");
  plan(ctx, slower, &n, NULL);
  tap_ok(n == 2 && line_has(last_plan, 0, "fake/whole") && line_has(last_plan, 1, "fake/all"),
         "a fused part slower than its parts is split");
  tap_ok(gets(ctx, faster, "fake/whole"), "and a faster one is not");
  tap_ok(gets(ctx, "log_softmax x=f32/4x4 axis=1", "fake/whole"), "alone the fastest is taken");
  qn_context_destroy(ctx);
  ctx = tuner("tune=cached");
  plan(ctx, slower, &n, NULL);
  tap_ok(n == 2 && line_has(last_plan, 0, "fake/whole"), "that a part was split is remembered");
  plan(ctx, faster, &n, NULL);
  tap_ok(n == 1, "with its problem");
  qn_context_destroy(ctx);
}

static void data(void)
{
  qn_context *ctx = tuner("tune=measure");
  tap_ok(gets(ctx, "sgd params=f32/4 grads=f32/4 step=i64 rate=0.5 scale=1", "fake/by_data"),
         "each host scalar is measured with its own number");
  tap_ok(gets(ctx, "gather x=f32/50x2 indices=i32/64", "fake/by_data"), "and indices with places that are there");
  qn_context_destroy(ctx);
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

/* Another process replaces an entry that this one has read; then both continue. */
static void shared(void)
{
  char changed[sizeof text], *at;
  qn_context *ctx = tuner("tune=measure");
  gets(ctx, "copy x=f32/64", "fake/timed:fast");
  snprintf(changed, sizeof changed, "%s", contents());
  if ((at = strstr(changed, "copy x=f32/64\tfake/timed:fast"))) memcpy(strstr(at, "fast"), "slow", 4);
  write_text(changed);
  gets(ctx, "copy x=f32/70", "fake/timed:fast");
  tap_ok(at && strstr(contents(), "copy x=f32/64\tfake/timed:slow") && strstr(text, "copy x=f32/70\tfake/timed:fast"),
         "what another process has measured since is kept");
  qn_context_destroy(ctx);
}

static unsigned mode_of(void)
{
  struct stat st;
  return stat(file, &st) ? 0 : st.st_mode & 0777;
}

static void modes(void)
{
  const mode_t mask = umask(022);
  unlink(file);
  qn_context *ctx = tuner("tune=measure");
  gets(ctx, "copy x=f32/71", "fake/timed:fast");
  tap_ok(mode_of() == 0644, "a new file is for whom the umask leaves it: %o", mode_of());
  chmod(file, 0640);
  gets(ctx, "copy x=f32/72", "fake/timed:fast");
  tap_ok(mode_of() == 0640, "one that was there stays for whom it was: %o", mode_of());
  qn_context_destroy(ctx);
  umask(mask);
}

/* A symbolic link stays one: its target is replaced. */
static void linked(void)
{
  char real[sizeof file + 8];
  struct stat st;
  snprintf(real, sizeof real, "%s.real", file);
  qn_context *ctx = tuner("tune=measure");
  const int made = !rename(file, real) && !symlink(real, file);
  gets(ctx, "copy x=f32/73", "fake/timed:fast");
  tap_ok(made && !lstat(file, &st) && S_ISLNK(st.st_mode) && strstr(contents(), "copy x=f32/73"), "a link to a cache stays a link");
  qn_context_destroy(ctx);
  unlink(file);
  rename(real, file);
}

static char warned[512];
static void hear(void *user, int level, const char *message)
{
  (void)user;
  if (level == QN_LOG_WARN) snprintf(warned, sizeof warned, "%s", message);
}

/* Each under another folder name, since a table is read only once. */
static void refused(void)
{
  char path[sizeof file];
  snprintf(path, sizeof path, "%s", file);
  write_text("something else\n");
  qn_set_log(hear, NULL);
  snprintf(file, sizeof file, "/tmp/..%.40s", path);
  qn_context *ctx = tuner("tune=measure");
  gets(ctx, "copy x=f32/66", "");
  qn_context_destroy(ctx);
  tap_ok(!strcmp(contents(), "something else\n") && strstr(warned, "left alone"), "a file that is no tune cache is left alone: %s", warned);
  snprintf(file, sizeof file, "%.40s/below", path);
  ctx = tuner("tune=cached");
  gets(ctx, "copy x=f32/66", "");
  qn_context_destroy(ctx);
  qn_set_log(NULL, NULL);
  tap_ok(strstr(warned, "cannot be read") != NULL, "one that is named and cannot be read is warned of: %s", warned);
  snprintf(file, sizeof file, "%s", path);
}

static void nothing(int signal) { (void)signal; }

/* While another process holds the lock file, timer signals interrupt system calls. */
static void interrupted(void)
{
  char beside[80];
  int ready[2];
  char byte;
  snprintf(beside, sizeof beside, "%s.lock", file);
  qn_context *ctx = tuner("tune=measure");
  if (pipe(ready)) return;
  pid_t child = fork();
  if (child == 0) {
    int fd = open(beside, O_RDWR | O_CREAT, 0666);
    if (flock(fd, LOCK_EX) || write(ready[1], "x", 1) != 1) _exit(1);
    usleep(300000);
    _exit(0);
  }
  const struct itimerval often = { { 0, 20000 }, { 0, 20000 } }, never = { { 0, 0 }, { 0, 0 } };
  struct sigaction act = { .sa_handler = nothing }, old;
  const int held = read(ready[0], &byte, 1) == 1;
  sigaction(SIGALRM, &act, &old);
  setitimer(ITIMER_REAL, &often, NULL);
  gets(ctx, "copy x=f32/99", "fake/timed:fast");
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &old, NULL);
  while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
  tap_ok(held && strstr(contents(), "copy x=f32/99\t"), "signals do not keep a measurement from the file");
  close(ready[0]);
  close(ready[1]);
  qn_context_destroy(ctx);
}

static pid_t lingering;

static void fork_once(void *user, int level, const char *message)
{
  (void)user;
  (void)level;
  if (lingering || !strstr(message, "passed over")) return;
  lingering = fork();
  if (lingering) return;
  alarm(30);
  pause();
  _exit(0);
}

/* A child forked while the file is written must not keep the lock. */
static void forked(void)
{
  qn_context *ctx = tuner("tune=measure");
  gets(ctx, "copy x=f32/101", "");
  FILE *f = fopen(file, "a");
  if (f) {
    fputs("no entry\n", f);
    fclose(f);
  }
  qn_set_log(fork_once, NULL);
  alarm(20);                            /* a hang is a failure */
  gets(ctx, "copy x=f32/102", "");
  gets(ctx, "copy x=f32/103", "");
  alarm(0);
  qn_set_log(NULL, NULL);
  tap_ok(lingering > 0 && strstr(contents(), "copy x=f32/103\t"), "a child that lingers does not keep measurements from the file");
  if (lingering > 0) kill(lingering, SIGKILL);
  waitpid(lingering, NULL, 0);
  qn_context_destroy(ctx);
}

static char logged[2048];

static void keep(void *user, int level, const char *message)
{
  (void)user;
  if (level == QN_LOG_WARN) snprintf(logged, sizeof logged, "%s", message);
}

/* A problem whose operands do not fit into memory is planned, and the log says that it was not measured. */
static void without_memory(void)
{
  const char *const cpu[] = { "backend=cpu_ref", "tune=measure", option, NULL };
  qn_context *ctx;
  int n;
  unlink(file);
  snprintf(option, sizeof option, "tune_cache=%s", file);
  if (qn_context_create(cpu, &ctx)) return tap_skip(qn_last_error(), "measuring without memory");
  qn_set_log(keep, NULL);
#ifndef __SANITIZE_ADDRESS__                      /* which ends the process where memory runs out */
  plan(ctx, "relu x=f32/1099511627776000", &n, NULL);
  tap_ok(n == 1 && line_has(last_plan, 0, "cpu_ref/") && strstr(logged, "tune: relu x=f32/1099511627776000 is not measured") &&
         strstr(logged, "memory ran out"), "what could not be measured is planned, and why is said: %s", logged);
#endif
  qn_set_log(NULL, NULL);
  plan(ctx, "relu x=f32/100000", &n, NULL);
  tap_ok(n == 1 && strstr(contents(), "relu x=f32/100000"), "what could is remembered, on a CPU too");
  qn_context_destroy(ctx);
}

int main(void)
{
  char folder[] = "/tmp/quern-t-tune-XXXXXX", command[64];
  if (!mkdtemp(folder)) return 1;
  snprintf(file, sizeof file, "%s/file", folder);
  snprintf(plugin, sizeof plugin, QN_FAKE_PLUGINS "quern_fake.so");
  variants();
  splits();
  data();
  shared();
  modes();
  linked();
  interrupted();
  forked();
  refused();
  without_memory();
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command)) tap_note("%s is still there", folder);
  return tap_done();
}
