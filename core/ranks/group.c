/* group.c -- groups: options and launchers' variables, parts, and what engines may ask of a group. */
#include "config.h"
#include "group.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const qn__group_variables[] = {
  "QUERN_GROUP", "where the ranks of a group meet: env (default), none, tcp://host:port, file:///path",
  "QUERN_PORT", "the port of rank 0 that ranks meet at (default: MASTER_PORT + 1)",
  "QUERN_DEADLINE", "seconds that ranks wait for each other (default 300)",
  NULL, NULL };

qn_status qn__group_alive(const qn_group *g)
{
  if (!g) return qn__fail(QN_BAD_ARGUMENT, "group: is NULL");
  return g->process == getpid() ? QN_OK : qn__fail(QN_DEVICE, "group: was made before fork; make a group in the child");
}

/* ---- options ------------------------------------------------------------------------------- */

typedef struct asked { const char *at, *rank, *size, *local_rank, *deadline; } asked;

static qn_status read_options(const char *const options[], asked *a)
{
  static const char *const key[] = { "at", "rank", "size", "local_rank", "deadline" };
  const char **value[] = { &a->at, &a->rank, &a->size, &a->local_rank, &a->deadline };
  for (int i = 0; options && options[i]; i++) {
    const char *equals = strchr(options[i], '=');
    bool known = false;
    for (size_t k = 0; equals && k < sizeof key / sizeof *key; k++)
      if (strlen(key[k]) == (size_t)(equals - options[i]) && !strncmp(key[k], options[i], strlen(key[k]))) {
        *value[k] = equals + 1;
        known = true;
      }
    if (!known)
      return qn__fail(QN_BAD_ARGUMENT, "options: \"%s\": known are at, rank, size, local_rank, deadline, each as key=value", options[i]);
  }
  return QN_OK;
}

static const char *variable(const char *name)
{
  const char *value = qn__screened(name);
  return value && *value ? value : NULL;
}

/* The launcher's variables: rank, size, and the rank among those of its host. */
static const char *const launcher[][3] = {
  { "RANK", "WORLD_SIZE", "LOCAL_RANK" },
  { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK" },
  { "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID" },
  { "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID" },
};
enum { LAUNCHERS = sizeof launcher / sizeof *launcher };

static qn_status whole(const char *name, const char *text, long least, long most, int *out)
{
  char *end;
  errno = 0;
  const long v = strtol(text, &end, 10);
  if (errno || end == text || *end || v < least || v > most)
    return qn__fail(QN_BAD_ARGUMENT, "%s: \"%s\" is not a whole number from %ld to %ld", name, text, least, most);
  *out = (int)v;
  return QN_OK;
}

enum { MOST_RANKS = 65536 };

/* Sets rank, size and local rank; *launched: some launcher says them. */
static qn_status who_am_i(qn_group *g, const asked *a, bool *launched)
{
  int rank = 0, size = 1, l = 0, local;
  qn_status status = QN_OK;
  while (l < LAUNCHERS && !(variable(launcher[l][0]) && variable(launcher[l][1]))) l++;
  *launched = l < LAUNCHERS || a->size;
  const char *said[3] = { a->rank, a->size, a->local_rank };
  for (int k = 0; k < 3 && l < LAUNCHERS; k++)
    if (!said[k]) said[k] = variable(launcher[l][k]);
  if (said[1]) status = whole("size", said[1], 1, MOST_RANKS, &size);
  if (!status && said[0]) status = whole("rank", said[0], 0, size - 1, &rank);
  if (!status && size > 1 && !said[0]) status = qn__fail(QN_BAD_ARGUMENT, "rank: is not given, of a group of %d", size);
  local = rank;
  if (!status && said[2]) status = whole("local_rank", said[2], 0, MOST_RANKS, &local);
  g->ranks.rank = g->meeting.rank = rank;
  g->ranks.size = g->meeting.size = size;
  g->ranks.local_rank = local;
  return status;
}

static qn_status set_deadline(qn_group *g, const char *text)
{
  char *end;
  if (!text) text = variable("QUERN_DEADLINE");
  const double s = text ? strtod(text, &end) : 300;
  if (text && (end == text || *end || !(s >= 0.001 && s <= 1e6)))
    return qn__fail(QN_BAD_ARGUMENT, "deadline: \"%s\" is not a number of seconds from 0.001 to 1000000", text);
  g->ranks.deadline = g->meeting.deadline = (int64_t)(s * 1000);
  return QN_OK;
}

/* On one host, without an address: a file named by the launcher's job, or by the process that started all ranks. */
static qn_status file_of_job(const qn_group *g, qn__place_to_meet *at)
{
  static const char *const job[] = { "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID" };
  const char *folder = variable("TMPDIR"), *here = variable("OMPI_COMM_WORLD_LOCAL_SIZE"), *hosts = variable("SLURM_NNODES");
  const char *step = variable("SLURM_STEP_ID");
  uint64_t hash = UINT64_C(14695981039346656037);             /* FNV-1a */
  char text[256];
  if ((here && atoi(here) != g->ranks.size) || (hosts && atoi(hosts) > 1))
    return qn__fail(QN_BAD_ARGUMENT, "at: the ranks are on several hosts; set MASTER_ADDR to rank 0's and QUERN_PORT to a port that is "
                    "free there");
  snprintf(text, sizeof text, "parent %d", (int)getppid());
  for (size_t i = 0; i < sizeof job / sizeof *job; i++)
    if (variable(job[i])) {
      snprintf(text, sizeof text, "%.200s %.40s", variable(job[i]), step ? step : "");
      break;
    }
  for (const char *s = text; *s; s++) hash = (hash ^ (unsigned char)*s) * UINT64_C(1099511628211);
  snprintf(at->path, sizeof at->path, "%.400s/quern-%u-%016llx", folder ? folder : "/tmp", (unsigned)geteuid(), (unsigned long long)hash);
  if (!g->ranks.rank) unlink(at->path);   /* of a run that was killed */
  return QN_OK;
}

static qn_status find_place(const qn_group *g, const char *text, qn__place_to_meet *at)
{
  const char *host = variable("MASTER_ADDR"), *port = variable("QUERN_PORT"), *master = variable("MASTER_PORT"), *colon;
  int number = 0;
  qn_status status = QN_OK;
  at->listener = -1;
  if (!strncmp(text, "file:///", 8)) {
    if (strlen(text + 7) >= sizeof at->path) return qn__fail(QN_BAD_ARGUMENT, "at: \"%s\" is too long", text);
    strcpy(at->path, text + 7);
    return QN_OK;
  }
  if (!strncmp(text, "tcp://", 6)) {
    if (!(colon = strrchr(text + 6, ':')) || colon == text + 6 || (size_t)(colon - text - 6) >= sizeof at->host)
      return qn__fail(QN_BAD_ARGUMENT, "at: \"%s\" is not of the form tcp://host:port", text);
    snprintf(at->host, sizeof at->host, "%.*s", (int)(colon - text - 6), text + 6);
    if (!(status = whole("at: port", colon + 1, 1, 65535, &number))) snprintf(at->port, sizeof at->port, "%d", number);
    return status;
  }
  if (strcmp(text, "env"))
    return qn__fail(QN_BAD_ARGUMENT, "at: \"%s\" is not known; known are env, none, tcp://host:port, file:///path", text);
  if (!host && !port) return file_of_job(g, at);
  if (!port && !master) return qn__fail(QN_BAD_ARGUMENT, "at: MASTER_ADDR is set, but neither QUERN_PORT nor MASTER_PORT");
  if ((status = whole(port ? "QUERN_PORT" : "MASTER_PORT", port ? port : master, 1, 65534, &number))) return status;
  snprintf(at->host, sizeof at->host, "%.255s", host ? host : "127.0.0.1");
  snprintf(at->port, sizeof at->port, "%d", port ? number : number + 1);
  return QN_OK;
}

/* ---- create, split, destroy ------------------------------------------------------------------- */

static qn_group *new_group(void)
{
  qn_group *g = qn__alloc(sizeof *g);
  if (!g) {
    qn__fail(QN_NO_MEMORY, "no memory for a group");
    return NULL;
  }
  g->process = getpid();
  pthread_mutex_init(&g->meeting.lock, NULL);
  g->ranks.struct_size = sizeof g->ranks;
  g->ranks.core = g;
  return g;
}

qn_status qn_group_create(const char *const options[], qn_group **group_p)
{
  qn__place_to_meet at = { .listener = -1 };
  asked a = { 0 };
  bool launched = false;
  if (!group_p) return qn__fail(QN_BAD_ARGUMENT, "group_p: is NULL");
  qn_status status = read_options(options, &a);
  if (status) return status;
  if (!a.at) a.at = variable("QUERN_GROUP");
  if (!a.at) a.at = "env";
  qn_group *g = new_group();
  if (!g) return QN_NO_MEMORY;
  if (!strcmp(a.at, "none")) a.rank = "0", a.size = "1";
  if (!(status = who_am_i(g, &a, &launched)) && !(status = set_deadline(g, a.deadline)) && g->ranks.size > 1 &&
      !(status = find_place(g, a.at, &at)))
    status = qn__meet(&g->meeting, &at);
  if (status) qn_group_destroy(g);
  else *group_p = g;
  return status;
}

typedef struct part { int32_t colour, key; uint64_t token; char host[256], port[16]; } part;

/* Before rank b in a part? */
static bool comes_first(const part *p, int a, int b) { return p[a].key != p[b].key ? p[a].key < p[b].key : a < b; }

qn_status qn_group_split(qn_group *group, int colour, int key, qn_group **part_p)
{
  qn_status status = qn__group_alive(group);
  qn__place_to_meet at = { .listener = -1 };
  if (status) return status;
  if (!part_p) return qn__fail(QN_BAD_ARGUMENT, "part_p: is NULL");
  if (colour < -1) return qn__fail(QN_BAD_ARGUMENT, "colour: is %d; must be at least -1", colour);
  const int size = group->ranks.size, me = group->ranks.rank;
  qn_group *g = new_group();
  part *all = qn__alloc((size_t)size * sizeof *all), mine = { .colour = colour, .key = key };
  if (!g || !all) status = qn__fail(QN_NO_MEMORY, "no memory for a group");
  if (!status && size > 1 && colour >= 0) status = qn__listener(&group->meeting, &at);
  snprintf(mine.host, sizeof mine.host, "%s", at.host);
  snprintf(mine.port, sizeof mine.port, "%s", at.port);
  mine.token = at.token;
  if (!status) status = qn__meeting_exchange(&group->meeting, "split", &mine, sizeof mine, all);
  int first = me, rank = 0, count = 0;
  for (int r = 0; r < size && !status; r++) {
    if (all[r].colour != colour) continue;
    count++;
    rank += comes_first(all, r, me);
    if (comes_first(all, r, first)) first = r;
  }
  if (!status && colour >= 0) {
    g->ranks.deadline = g->meeting.deadline = group->ranks.deadline;
    g->ranks.local_rank = group->ranks.local_rank;
    g->ranks.rank = g->meeting.rank = rank;
    g->ranks.size = g->meeting.size = count;
    if (rank) {                           /* calls the first one; its own door is closed there */
      snprintf(at.host, sizeof at.host, "%s", all[first].host);
      snprintf(at.port, sizeof at.port, "%s", all[first].port);
      at.token = all[first].token;
    }
    status = qn__meet(&g->meeting, &at);
    if (!status) *part_p = g;
  } else if (!status) *part_p = NULL;
  if (at.listener >= 0) close(at.listener);
  if (g && (status || colour < 0)) qn_group_destroy(g);
  qn__free(all);
  return status;
}

void qn__slots_end(qn__slot *slot, int failed)
{
  for (int i = 0; i < QN__SLOTS; i++) {
    if (slot[i].own) slot[i].leave(slot[i].own, failed);
    slot[i] = (qn__slot){ 0 };
  }
}

void qn_group_destroy(qn_group *group)
{
  if (!group) return;
  if (group->process == getpid()) {
    if (group->ctx && group->leave(group->ctx, NULL)) {         /* which goes on using it */
      qn__log(QN_LOG_ERROR, "a group is not destroyed: %s", qn_last_error());
      return;
    }
    qn__slots_end(group->slot, 1);
    qn__meeting_end(&group->meeting);
    pthread_mutex_destroy(&group->meeting.lock);
  }
  qn__free(group);
}

int qn_group_rank(const qn_group *group) { return group ? group->ranks.rank : 0; }
int qn_group_size(const qn_group *group) { return group ? group->ranks.size : 1; }
int qn_group_local_rank(const qn_group *group) { return group ? group->ranks.local_rank : 0; }

qn_status qn_group_status(qn_group *group)
{
  const qn_status status = qn__group_alive(group);
  return status ? status : qn__meeting_watch(&group->meeting);
}

qn_status qn_group_exchange(qn_group *group, const void *mine, size_t bytes, void *all)
{
  const qn_status status = qn__group_alive(group);
  if (status) return status;
  if (bytes > 1 << 20) return qn__fail(QN_BAD_ARGUMENT, "bytes: is %zu; at most 1048576 are exchanged", bytes);
  if (bytes && (!mine || !all)) return qn__fail(QN_BAD_ARGUMENT, "%s: is NULL", mine ? "all" : "mine");
  return qn__meeting_exchange(&group->meeting, "qn_group_exchange", mine, bytes, all);
}

/* ---- what engines call ---------------------------------------------------------------------------- */

const qn_ranks *qn__context_ranks(const qn_context *ctx) { return ctx->group ? &ctx->group->ranks : NULL; }

qn_status qn__ranks_exchange(const qn_ranks *ranks, const char *what, const void *mine, size_t bytes, void *all)
{
  return qn__meeting_exchange(&((qn_group *)ranks->core)->meeting, what, mine, bytes, all);
}

qn_status qn__ranks_watch(const qn_ranks *ranks) { return qn__meeting_watch(&((qn_group *)ranks->core)->meeting); }

qn_status qn__ranks_fail(const qn_ranks *ranks, const char *sentence)
{
  return qn__meeting_fail(&((qn_group *)ranks->core)->meeting, sentence);
}

qn_status qn__ranks_slot(const qn_ranks *ranks, const void *key, void (*leave)(void *own, int failed), void ***out)
{
  qn_group *g = ranks->core;
  for (int i = 0; i < QN__SLOTS; i++) {
    qn__slot *s = &g->slot[i];
    if (s->key && s->key != key) continue;
    if (!s->key) {                        /* else the guard may be reading it */
      s->key = key;
      s->leave = leave;
    }
    *out = &s->own;
    return QN_OK;
  }
  return qn__fail(QN_INTERNAL, "more than %d backends carry a group's collectives", QN__SLOTS);
}
