/* member.c -- MPI's start and end, a group's communicator, and waits that end by the group's deadline.
 *
 * MPI has no deadlines, and its calls that wait cannot be given up. So collectives are begun without blocking and tested for, while
 * the group is watched; what only blocks (MPI_Init, MPI_Comm_create_group) runs in a thread that is left behind if it comes too late.
 * A request cannot be ended either: after a failure with one under way, this process uses MPI no more, so that nobody writes to memory
 * that has long been given to others. Ranks that run different problems are found out before anything is under way.
 *
 * Who is late, at a deadline: a rank that gives up asks the others what they wait for; those that wait answer. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "member.h"

static atomic_bool abandoned;             /* with requests under way */

static int64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void rest(long microseconds) { nanosleep(&(struct timespec){ 0, microseconds * 1000 }, NULL); }

/* Sets the sentence of a failure with requests under way. */
static qn_status give_up(const mpi_member *m, const char *why)
{
  atomic_store(&abandoned, true);
  return mpi_host->ranks_fail(m->ranks, why);
}

static qn_status failed(const mpi_member *m, const char *call, int error)
{
  char text[MPI_MAX_ERROR_STRING] = "", why[900];
  int n = 0;
  MPI_Error_string(error, text, &n);
  snprintf(why, sizeof why, "the group has failed: rank %d: %s: %.500s", m->ranks->rank, call, text);
  return give_up(m, why);
}

/* ---- the process's MPI -------------------------------------------------------------------------- */

/* Variables by which a launcher of MPI numbers its processes. */
static const char *launched_as(void)
{
  static const char *const name[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK" };
  for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
    const char *value = getenv(name[i]);
    if (value && *value) return value;
  }
  return NULL;
}

static bool is_up(void)
{
  int begun = 0;
  return !MPI_Initialized(&begun) && begun;
}

const char *mpi_missing(void)
{
  int over = 0;
  if (!MPI_Finalized(&over) && over) return "MPI has been finalized in this process";
  if (atomic_load(&abandoned)) return "a group over MPI has failed in this process, with requests that MPI cannot end";
  return is_up() || launched_as() ? NULL : "the process was not started by mpirun, nor has it initialized MPI itself";
}

bool mpi_has_more_hosts(void)
{
  const char *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), *all = getenv("OMPI_COMM_WORLD_SIZE");
  if (!here) here = getenv("MPI_LOCALNRANKS"), all = getenv("PMI_SIZE");
  return here && all && atoi(here) < atoi(all);
}

static pid_t starter;

/* At exit, where MPI was started here: waits for the job's other ranks, as MPI does; mpirun ends the job where one has died. */
static void finish(void)
{
  int over = 1;
  if (getpid() != starter || atomic_load(&abandoned) || MPI_Finalized(&over) || over) return;
  MPI_Finalize();
}

/* ---- calls that block --------------------------------------------------------------------------- */

typedef struct errand {
  pthread_mutex_t lock;
  pthread_cond_t  done_now;
  bool  done;
  int (*fn)(struct errand *);
  int   result, level;                    /* MPI's; of threads */
  int   size, tag, *who;                  /* to create: ranks of the job */
  MPI_Comm comm;
} errand;

static int start(errand *e)
{
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&once);
  int error = MPI_SUCCESS;
  if (is_up()) error = MPI_Query_thread(&e->level);
  else {
    error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &e->level);
    starter = getpid();
    atexit(finish);
  }
  pthread_mutex_unlock(&once);
  return error;
}

static int create(errand *e)
{
  MPI_Group world, ours;
  int error = MPI_Comm_group(MPI_COMM_WORLD, &world);
  if (error) return error;
  error = MPI_Group_incl(world, e->size, e->who, &ours);
  if (!error) {
    error = MPI_Comm_create_group(MPI_COMM_WORLD, ours, e->tag, &e->comm);
    MPI_Group_free(&ours);
  }
  MPI_Group_free(&world);
  return error ? error : MPI_Comm_set_errhandler(e->comm, MPI_ERRORS_RETURN);
}

static int dissolve(errand *e) { return MPI_Comm_free(&e->comm); }

static void *run_errand(void *arg)
{
  errand *e = arg;
  const int result = e->fn(e);
  pthread_mutex_lock(&e->lock);
  e->result = result;
  e->done = true;
  pthread_cond_signal(&e->done_now);
  pthread_mutex_unlock(&e->lock);
  return NULL;
}

/* Waits for e, while the group is watched; what comes too late keeps e, and whatever it points to. */
static qn_status waited_for(const mpi_member *m, errand *e, const char *call)
{
  const int64_t until = now() + m->ranks->deadline;
  qn_status status = QN_OK;
  pthread_mutex_lock(&e->lock);
  while (!e->done && !status) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += 20000000;
    if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
    pthread_cond_timedwait(&e->done_now, &e->lock, &t);
    if (e->done || (status = mpi_host->ranks_watch(m->ranks)) || now() < until) continue;
    char why[200];
    snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for %s", m->ranks->rank,
             (double)m->ranks->deadline / 1000, call);
    status = give_up(m, why);
  }
  const int result = e->done ? e->result : MPI_SUCCESS;
  pthread_mutex_unlock(&e->lock);
  if (status) atomic_store(&abandoned, true);
  return status ? status : result ? failed(m, call, result) : QN_OK;
}

static errand *new_errand(int (*fn)(errand *), int size)
{
  errand *e = mpi_host->alloc(sizeof *e + (size_t)size * sizeof *e->who);
  if (!e) return NULL;
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->done_now, NULL);
  e->fn = fn;
  e->size = size;
  e->who = (int *)(e + 1);
  return e;
}

/* Where it fails e is no longer the caller's: freed, or the thread's, which still runs. */
static qn_status send_out(const mpi_member *m, errand *e, const char *call)
{
  pthread_t thread;
  const int error = pthread_create(&thread, NULL, run_errand, e);
  if (error) {
    char why[200];
    snprintf(why, sizeof why, "the group has failed: rank %d: no thread for %s: %s", m->ranks->rank, call, strerror(error));
    mpi_host->free(e);
    return mpi_host->ranks_fail(m->ranks, why);
  }
  const qn_status status = waited_for(m, e, call);
  pthread_mutex_lock(&e->lock);
  const bool done = e->done;
  pthread_mutex_unlock(&e->lock);
  if (done) pthread_join(thread, NULL);
  else pthread_detach(thread);
  if (done && status) mpi_host->free(e);
  return status;
}

/* ---- waiting -------------------------------------------------------------------------------------- */

/* MPI reads a note when it will: it is not freed. */
static void send_note(const mpi_member *m, int to, int tag)
{
  MPI_Request request;
  mpi_note *note = malloc(sizeof *note);
  if (!note) return;
  *note = m->note;
  if (MPI_Isend(note, sizeof *note, MPI_BYTE, to, tag, m->comm, &request) == MPI_SUCCESS) MPI_Request_free(&request);
}

/* Takes a note that has come; -1: none has. */
static int take_note(const mpi_member *m, int tag, mpi_note *note)
{
  MPI_Status from;
  int come = 0;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, m->comm, &come, &from) || !come) return -1;
  if (MPI_Recv(note, sizeof *note, MPI_BYTE, from.MPI_SOURCE, tag, m->comm, MPI_STATUS_IGNORE)) return -1;
  note->text[sizeof note->text - 1] = 0;
  return from.MPI_SOURCE;
}

static void answer(const mpi_member *m)
{
  mpi_note note;
  for (int r; (r = take_note(m, MPI_TAG_QUESTION, &note)) >= 0;) send_note(m, r, MPI_TAG_ANSWER);
}

static void mismatch(char *why, size_t bytes, int one, const char *its, int other, const char *others)
{
  snprintf(why, bytes, "the ranks run different problems: rank %d \"%.399s\", and rank %d \"%.399s\"", one, its, other, others);
}

/* At the deadline: those that wait too answer soon, though the processors may be busy; who does not is late. */
static qn_status too_late(mpi_member *m, const char *call, int peer)
{
  const int size = m->ranks->size, me = m->ranks->rank;
  const int64_t until = now() + 500 + qn_min_i64(m->ranks->deadline / 3, 5000);
  char why[1000], who[200] = "";
  bool *here = mpi_host->alloc((size_t)size);
  int heard = 1, other = -1;
  size_t n = 0;
  mpi_note note, theirs = { 0 };
  qn_status status = QN_OK;
  if (!here) return give_up(m, "the group has failed: its deadline has passed");
  here[me] = true;
  for (int r = 0; r < size; r++)
    if (r != me && (peer < 0 || r == peer)) send_note(m, r, MPI_TAG_QUESTION);
  while (now() < until && heard < (peer < 0 ? size : 2) && !(status = mpi_host->ranks_watch(m->ranks))) {
    int tag = MPI_TAG_QUESTION, r = take_note(m, tag, &note);
    if (r < 0) r = take_note(m, tag = MPI_TAG_ANSWER, &note);
    if (r < 0) {
      rest(1000);
      continue;
    }
    if (tag == MPI_TAG_QUESTION) send_note(m, r, MPI_TAG_ANSWER);
    heard += !here[r] && (peer < 0 || r == peer);
    here[r] = true;
    if (note.hash != m->note.hash && (other < 0 || r == peer)) other = r, theirs = note;
  }
  for (int r = 0; r < size; r++)
    if (!here[r] && (peer < 0 || r == peer) && n < sizeof who - 16)
      n += (size_t)snprintf(who + n, sizeof who - n, "%s%d", n ? ", " : "", r);
  mpi_host->free(here);
  if (status) {
    atomic_store(&abandoned, true);
    return status;
  }
  if (!n && other >= 0) mismatch(why, sizeof why, me, m->note.text, other, theirs.text);
  else
    snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for %s%s, at \"%.399s\" (%s)", me,
             (double)m->ranks->deadline / 1000, n ? "rank " : "the other ranks, which are there", who, m->note.text, call);
  return give_up(m, why);
}

/* resting: it may be long until the others come, and no data are under way, which move only while MPI is called. */
static qn_status wait_for(mpi_member *m, const char *call, int error, MPI_Request *request, int peer, bool resting)
{
  int64_t since = 0, looked = 0;
  for (int i = 0; !error;) {
    int done = 0;
    if ((error = MPI_Test(request, &done, MPI_STATUS_IGNORE)) || done) break;
    if (i < m->spins) {
      i++;
      continue;
    }
    const int64_t t = now();
    if (!since) since = looked = t;
    if (resting && t - since > 20) rest(100);
    else sched_yield();
    if (t - looked < 20) continue;
    looked = t;
    const qn_status status = mpi_host->ranks_watch(m->ranks);
    if (status) {
      atomic_store(&abandoned, true);
      return status;
    }
    answer(m);
    if (t - since > m->ranks->deadline) return too_late(m, call, peer);
  }
  return error ? failed(m, call, error) : QN_OK;
}

qn_status mpi_wait(mpi_member *m, const char *call, int error, MPI_Request *request, int peer)
{
  return wait_for(m, call, error, request, peer, false);
}

/* ---- agreement -------------------------------------------------------------------------------------- */

static void begin(mpi_member *m, const qn_collective_line *line)
{
  m->note.hash = line->hash;
  memcpy(m->note.text, line->text, sizeof m->note.text);
}

/* Nothing is under way: all ranks know that the problems differ, and tell them. */
static qn_status tell_all(mpi_member *m)
{
  char why[1000];
  int one = 0, other = 0;
  mpi_note *all = mpi_host->alloc((size_t)m->ranks->size * sizeof *all);
  if (!all) return mpi_host->ranks_fail(m->ranks, "the ranks run different problems");
  const qn_status status = mpi_host->ranks_exchange(m->ranks, "problems that differ", &m->note, sizeof m->note, all);
  while (!status && other < m->ranks->size - 1 && all[other].hash == all[0].hash) other++;
  if (!status) mismatch(why, sizeof why, one, all[one].text, other, all[other].text);
  mpi_host->free(all);
  m->differed = !status;
  return status ? status : mpi_host->ranks_fail(m->ranks, why);
}

/* The largest hash and the largest complement of one are those of each, or the ranks differ. */
qn_status mpi_agree(mpi_member *m, const qn_collective_line *line)
{
  MPI_Request request;
  begin(m, line);
  m->mine[0] = line->hash;
  m->mine[1] = ~line->hash;
  const int error = MPI_Iallreduce(m->mine, m->most, 2, MPI_UINT64_T, MPI_MAX, m->comm, &request);
  const qn_status status = wait_for(m, "MPI_Iallreduce", error, &request, -1, true);
  return status ? status : m->most[0] == m->mine[0] && m->most[1] == m->mine[1] ? QN_OK : tell_all(m);
}

qn_status mpi_agree_with(mpi_member *m, const qn_collective_line *line, int peer, bool sends)
{
  MPI_Request request;
  mpi_note *theirs = sends ? NULL : malloc(sizeof *theirs);
  begin(m, line);
  if (sends) {
    const int error = MPI_Isend(&m->note, sizeof m->note, MPI_BYTE, peer, MPI_TAG_NOTE, m->comm, &request);
    return wait_for(m, "MPI_Isend", error, &request, peer, true);
  }
  if (!theirs) return mpi_host->error(QN_NO_MEMORY, "no memory for a message's line");
  const int error = MPI_Irecv(theirs, sizeof *theirs, MPI_BYTE, peer, MPI_TAG_NOTE, m->comm, &request);
  qn_status status = wait_for(m, "MPI_Irecv", error, &request, peer, true);
  if (status) return status;               /* theirs may still be written to */
  if (theirs->hash != line->hash) {
    char why[1000];
    theirs->text[sizeof theirs->text - 1] = 0;
    mismatch(why, sizeof why, peer, theirs->text, m->ranks->rank, line->text);
    status = give_up(m, why);
  }
  free(theirs);
  return status;
}

/* ---- a group's communicator ------------------------------------------------------------------------ */

static void max_f32(void *in, void *inout, int *n, MPI_Datatype *unused)
{
  const float *a = in;
  float *b = inout;
  (void)unused;
  for (int i = 0; i < *n; i++) b[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];
}

static void min_f32(void *in, void *inout, int *n, MPI_Datatype *unused)
{
  const float *a = in;
  float *b = inout;
  (void)unused;
  for (int i = 0; i < *n; i++) b[i] = b[i] < a[i] || b[i] != b[i] ? b[i] : a[i];
}

static void max_f64(void *in, void *inout, int *n, MPI_Datatype *unused)
{
  const double *a = in;
  double *b = inout;
  (void)unused;
  for (int i = 0; i < *n; i++) b[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];
}

static void min_f64(void *in, void *inout, int *n, MPI_Datatype *unused)
{
  const double *a = in;
  double *b = inout;
  (void)unused;
  for (int i = 0; i < *n; i++) b[i] = b[i] < a[i] || b[i] != b[i] ? b[i] : a[i];
}

static void sum_u8(void *in, void *inout, int *n, MPI_Datatype *unused)
{
  const uint8_t *a = in;
  uint8_t *b = inout;
  (void)unused;
  for (int i = 0; i < *n; i++) b[i] = (uint8_t)(b[i] + a[i]);
}

static void prod_u8(void *in, void *inout, int *n, MPI_Datatype *unused)
{
  const uint8_t *a = in;
  uint8_t *b = inout;
  (void)unused;
  for (int i = 0; i < *n; i++) b[i] = (uint8_t)(b[i] * a[i]);
}

enum { OPERATORS = 6 };

static void make_operators(mpi_member *m)
{
  const struct { MPI_User_function *fn; MPI_Op *op; } own[OPERATORS] = {
    { max_f32, &m->max_f32 }, { min_f32, &m->min_f32 }, { max_f64, &m->max_f64 }, { min_f64, &m->min_f64 },
    { sum_u8, &m->sum_u8 }, { prod_u8, &m->prod_u8 },
  };
  for (int i = 0; i < OPERATORS; i++) MPI_Op_create(own[i].fn, 1, own[i].op);
}

/* The communicator stays where the group has failed: to free it all would have to come. */
static void leave(void *own, int has_failed)
{
  mpi_member *m = own;
  int over = 1;
  if (atomic_load(&abandoned) || MPI_Finalized(&over) || over) return;      /* what is under way uses m */
  MPI_Op *const op[OPERATORS] = { &m->max_f32, &m->min_f32, &m->max_f64, &m->min_f64, &m->sum_u8, &m->prod_u8 };
  for (int i = 0; i < OPERATORS; i++) MPI_Op_free(op[i]);
  errand *e = has_failed ? NULL : new_errand(dissolve, 0);
  if (e) {
    e->comm = m->comm;
    if (!send_out(m, e, "MPI_Comm_free")) mpi_host->free(e);
  }
  mpi_host->free(m);
}

typedef struct offer { uint64_t job; int32_t rank, tag; } offer;

static offer my_offer(void)
{
  static atomic_int groups;
  const char *job = getenv("PMIX_NAMESPACE");
  offer o = { 0 };
  for (; job && *job; job++) o.job = qn_collective_mix(o.job, (unsigned char)*job);
  if (is_up()) MPI_Comm_rank(MPI_COMM_WORLD, &o.rank);
  else o.rank = atoi(launched_as());
  o.tag = (o.rank * 61 + atomic_fetch_add(&groups, 1)) & 0x7fff;
  return o;
}

/* Why the group's ranks are not processes of one MPI; false: they are. */
static bool apart(const offer *all, int size, char *why, size_t bytes)
{
  for (int r = 0; r < size; r++)
    for (int q = 0; q < r; q++) {
      const bool same = all[r].rank == all[q].rank;
      if (!same && all[r].job == all[q].job) continue;
      snprintf(why, bytes, "the group has failed: ranks %d and %d %s; over MPI each is a process of one job of mpirun", q, r,
               same ? "are one process to MPI" : "are of two jobs");
      return true;
    }
  return false;
}

static qn_status make(mpi_member *m)
{
  const int size = m->ranks->size;
  char why[300];
  errand *e = new_errand(start, 0), *c = new_errand(create, size);
  offer mine = my_offer(), *all = mpi_host->alloc((size_t)size * sizeof *all);
  qn_status status = e && c && all ? QN_OK : mpi_host->error(QN_NO_MEMORY, "no memory for a group");
  if (!status) status = mpi_host->ranks_exchange(m->ranks, "a communicator of mpi", &mine, sizeof mine, all);
  if (!status && apart(all, size, why, sizeof why)) status = mpi_host->ranks_fail(m->ranks, why);
  for (int r = 0; r < size && !status; r++) c->who[r] = all[r].rank;
  if (!status) c->tag = all[0].tag;
  mpi_host->free(all);
  if (status) {
    mpi_host->free(e), mpi_host->free(c);
    return status;
  }
  if ((status = send_out(m, e, "MPI_Init_thread"))) {
    mpi_host->free(c);
    return status;
  }
  int rank = 0;
  if (e->level < MPI_THREAD_MULTIPLE)
    status = mpi_host->ranks_fail(m->ranks, "the group has failed: MPI is not at the level MPI_THREAD_MULTIPLE, which Quern needs");
  else if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) || rank != mine.rank)
    status = mpi_host->ranks_fail(m->ranks, "the group has failed: the launcher's number of this process is not MPI's");
  mpi_host->free(e);
  if (status) mpi_host->free(c);
  if (status || (status = send_out(m, c, "MPI_Comm_create_group"))) return status;
  m->comm = c->comm;
  mpi_host->free(c);
  make_operators(m);
  return QN_OK;
}

qn_status mpi_member_of(const qn_ranks *ranks, mpi_member **out)
{
  static const char key;
  void **own;
  qn_status status = mpi_host->ranks_slot(ranks, &key, leave, &own);
  if (status) return status;
  if ((status = mpi_host->ranks_watch(ranks))) {      /* others may have requests under way; all keep away from MPI alike */
    if (!*own || !((mpi_member *)*own)->differed) atomic_store(&abandoned, true);
    return status;
  }
  const char *missing = mpi_missing();
  if (missing) return mpi_host->error(QN_NO_BACKEND, missing);
  if ((*out = *own)) return QN_OK;
  mpi_member *m = mpi_host->alloc(sizeof *m + 3 * (size_t)ranks->size * sizeof *m->numbers);
  if (!m) return mpi_host->error(QN_NO_MEMORY, "no memory for a group");
  m->ranks = ranks;
  m->spins = sysconf(_SC_NPROCESSORS_ONLN) >= ranks->size ? 2000 : 20;
  if ((status = make(m))) mpi_host->free(m);
  else *own = *out = m;
  return status;
}
