/* main.c -- quern-conform: options. The work is in parent.c, worker.c and below. */
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"
#include "../../info/output.h"

struct qc_options qc_opt = {.cases = QC_CASES_DIR, .seed = 1, .tier = QC_DEFAULT, .runs = 2, .jobs = 1, .time_limit = 60, .device = -1};

static const char *worker;

enum { KEY_CASE = 1000, KEY_SEED, KEY_TIER, KEY_LIST, KEY_RANDOM, KEY_RUNS, KEY_TIME, KEY_CASES, KEY_MODEL, KEY_KILLS, KEY_VARIANTS,
       KEY_SKIPS, KEY_STACK, KEY_RANKS, KEY_WORKER };

static const struct argp_option options[] = {
  {"backend", 'b', "NAME,...", 0,
   "backends to judge, each in a process of its own (default: QUERN_BACKEND, else all that have a device here)", 0},
  {"engine", 'e', "ENGINE", 0, "only this one: [OP/]NAME[:VARIANT]", 0},
  {"filter", 'f', "TEXT", 0, "only items whose \"file:line problem\" holds TEXT, or matches it as a glob", 0},
  {"case", KEY_CASE, "LINE", 0, "only this problem, with its settings after ';'", 0},
  {"device-model", KEY_MODEL, "M", 0, "the live device narrowed to that model, such as a100 (default: QUERN_DEVICE_MODEL)", 0},
  {"cases", KEY_CASES, "DIR", 0, "the folder of .q files", 0},
  {"seed", KEY_SEED, "N", 0, "of fills and random cases (default 1)", 0},
  {"tier", KEY_TIER, "quick|default|full|long", 0, "how much; quick and long are no conformance run: long draws 10^8 elements a family",
   0},
  {"random", KEY_RANDOM, "N", 0, "N random problems besides", 0},
  {"jobs", 'j', "N", 0, "workers side by side, each on a point of its own (default 1)", 0},
  {"runs", KEY_RUNS, "N", 0, "in which a deterministic engine must give the same bits (default 2)", 0},
  {"time-limit", KEY_TIME, "S", 0, "seconds that a step may take (default 60; 0: no limit)", 0},
  {"kills", KEY_KILLS, "N", 0, "retire an engine after it failed N points of a worker", 0},
  {"variants", KEY_VARIANTS, "N", 0, "of an engine's variants a problem meets one in N, the next problem others (default 1: all)", 0},
  {"stack", KEY_STACK, "BYTES", 0, "plan and execute on a stack of that size", 0},
  {"ranks", KEY_RANKS, "N", 0, "the collectives instead (cases/ranks), by N processes that are a group; on GPUs rank r is on device r. "
   "0: as one of the ranks that mpirun, torchrun or srun started", 0},
  {"list", KEY_LIST, 0, 0, "print the items and run none", 0},
  {"skips", KEY_SKIPS, 0, 0, "print skipped items too", 0},
  {"verbose", 'v', 0, 0, "the worst ratio of each run", 0},
  {"worker", KEY_WORKER, "list|run|rank", OPTION_HIDDEN, 0, 0},
  {0, 0, 0, 0, 0, 0},
};

static uint64_t whole(const char *option, const char *arg, uint64_t least, uint64_t most, struct argp_state *state)
{
  char *end;
  errno = 0;
  uint64_t v = strtoull(arg, &end, 10);
  if (*arg < '0' || *arg > '9' || *end || errno || v < least || v > most)
    argp_error(state, "%s: '%s' is no whole number from %llu to %llu", option, arg, (unsigned long long)least,
               (unsigned long long)most);
  return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
  char *end;
  switch (key) {
  case 'b': qc_opt.backend = arg; break;
  case 'e': qc_opt.engine = arg; break;
  case 'f': qc_opt.filter = arg; break;
  case 'j': qc_opt.jobs = (int)whole("--jobs", arg, 1, 1024, state); break;
  case 'v': qc_opt.verbose = true; break;
  case KEY_CASE:
    if (qc_opt.line)
      argp_error(state, "one --case at a time; more of them go into a file of --cases");
    qc_opt.line = arg;
    break;
  case KEY_CASES: qc_opt.cases = arg; break;
  case KEY_MODEL: qc_opt.model = arg; break;
  case KEY_SKIPS: qc_opt.skips = true; break;
  case KEY_RANKS:
    qc_opt.ranks = (int)whole("--ranks", arg, 0, 64, state);
    if (!qc_opt.ranks)
      qc_opt.ranks = 1, worker = "rank";        /* of a group whose size the launcher says */
    break;
  case KEY_LIST: qc_opt.list = true; break;
  case KEY_WORKER: worker = arg; break;
  case KEY_SEED: qc_opt.seed = whole("--seed", arg, 0, UINT64_MAX, state); break;
  case KEY_RANDOM: qc_opt.random = (int)whole("--random", arg, 0, 1000000, state); break;
  case KEY_RUNS: qc_opt.runs = (int)whole("--runs", arg, 2, 1000000, state); break;
  case KEY_KILLS: qc_opt.kills = (int)whole("--kills", arg, 1, 1000000, state); break;
  case KEY_VARIANTS: qc_opt.variants = (int)whole("--variants", arg, 1, 1000, state); break;
  case KEY_STACK: qc_opt.stack = (int)whole("--stack", arg, 16384, 1 << 30, state); break;
  case KEY_TIME:
    qc_opt.time_limit = strtod(arg, &end);
    if (end == arg || *end || !(qc_opt.time_limit >= 0 && qc_opt.time_limit <= 1e6))
      argp_error(state, "--time-limit: '%s' is no number of seconds from 0 (no limit) to 1000000", arg);
    break;
  case KEY_TIER:
    qc_opt.tier = QC_QUICK;
    while (qc_opt.tier <= QC_LONG && strcmp(arg, qc_tiers[qc_opt.tier]))
      qc_opt.tier++;
    if (qc_opt.tier > QC_LONG)
      argp_error(state, "--tier: '%s': quick, default, full and long are known", arg);
    break;
  case ARGP_KEY_ARG: argp_error(state, "'%s': no arguments are taken beside options", arg); break;
  default: return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

struct kind { const char *name; bool here; };

static void look(void *user, const qn_backend_info *info, const qn_device *device)
{
  struct kind *kind = user;
  kind->here |= !strcmp(info->device_kind, kind->name) && device;
}

/* Backends that have a device here, in the registry's order. */
static void collect(void *user, const qn_backend_info *info)
{
  char **names = user;
  struct kind kind = {info->device_kind, false};
  if (info->status || !info->table || qn_each_device(look, &kind) || !kind.here)
    return;
  char *longer = *names ? qc_format("%s,%s", *names, info->name) : strdup(info->name);
  free(*names);
  *names = longer;
}

int main(int argc, char **argv)
{
  static const struct argp argp = {options, parse, NULL,
    "Judges the engines of a backend against the oracle, and the oracle against its formulas; writes TAP."
    "\vExit status: 0 all passed, 1 something failed, 2 it could not run, or standard output cannot be written.", NULL, NULL, NULL};
  output_guard();
  argp_program_version = "quern-conform " QN_VERSION;
  argp_err_exit_status = 2;
  argp_parse(&argp, argc, argv, 0, NULL, NULL);
  if (worker && !strcmp(worker, "rank")) {
    if (!qc_opt.backend)
      qc_opt.backend = getenv("QUERN_BACKEND") ? getenv("QUERN_BACKEND") : "cpu_ref";
    return qc_ranks_worker();
  }
  if (worker)
    return qc_worker_main(!strcmp(worker, "list"));
  const char *asked = qc_opt.backend ? qc_opt.backend : getenv("QUERN_BACKEND");
  char *names = asked && (*asked || qc_opt.backend) ? strdup(asked) : NULL;       /* an empty variable is unset */
  if (!names)
    qn_each_backend(collect, &names);
  if (!names) {
    fprintf(stderr, "quern-conform: no backend is usable; `quern-info doctor` says why\n");
    return 2;
  }
  enum { MOST = 32 };
  char *backend[MOST];
  int n = 0;
  for (char *s = strtok(names, ","); s; s = strtok(NULL, ",")) {
    if (n == MOST) {
      fprintf(stderr, "quern-conform: more than %d backends at once\n", MOST);
      return 2;
    }
    backend[n++] = s;
  }
  if (!n) {
    fprintf(stderr, "quern-conform: \"%s\" names no backend\n", names);
    return 2;
  }
  return qc_opt.ranks ? qc_ranks_main(backend, n, argv) : qc_parent_main(backend, n, argv);
}
