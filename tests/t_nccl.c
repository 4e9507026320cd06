/* t_nccl.c -- collectives by plugins/nccl on the stand-in for a GPU and NCCL, fake_gpu.c: what works; and a rank that dies, or is late, while
 * communicators are made, while a call connects, while work waits on the device, and while calls wait for room there: the others fail in
 * time, with a sentence, and recordings that hold a communicator keep nobody waiting. GROUP_KILLS, GROUP_SEED as in t_group. */
#include <stdbool.h>
#include "ranks.h"

enum { N = 1000 };

static float *device(place_in *p)
{
  void *x = NULL;
  qn_alloc(p->ctx, N * sizeof(float), &x);
  return x;
}

/* Sums i + rank over the ranks, there and back. */
static qn_status round_trip(place_in *p, float *x, int64_t n, int *right)
{
  float host[N];
  for (int i = 0; i < n; i++) host[i] = (float)(i + p->rank);
  qn_status status = qn_copy_to_device(p->ctx, x, host, (size_t)n * sizeof *host);
  if (!status) status = sum(p, x, n);
  if (!status) status = qn_copy_to_host(p->ctx, host, x, (size_t)n * sizeof *host);
  for (int i = 0; i < n && !status; i++) *right &= host[i] == (float)(p->size * i + p->size * (p->size - 1) / 2);
  return status;
}

static void sums(place_in *p)
{
  float *x = device(p);
  int right = 1;
  qn_status status = QN_OK;
  for (int round = 0; round < 30 && !status; round++) status = round_trip(p, x, 1 + round * 53 % N, &right);
  if (status) failed(p, status, now());
  p->mine->ok = right;
  qn_free(p->ctx, x);
}

static qn_status recorded(place_in *p, float *x, qn_recording **r)
{
  qn_status status = sum(p, x, N);
  if (!status) status = qn_record_begin(p->ctx);
  if (!status) status = sum(p, x, N);
  return status ? status : qn_record_end(p->ctx, r);
}

static void replays(place_in *p)
{
  float *x = device(p), host[N] = { 1, 2, 3 };
  qn_recording *r = NULL;
  qn_status status = qn_copy_to_device(p->ctx, x, host, sizeof host);
  if (!status) status = recorded(p, x, &r);
  for (int i = 0; i < 3 && !status; i++) status = qn_recording_replay(p->ctx, r);
  if (!status) status = qn_copy_to_host(p->ctx, host, x, sizeof host);
  if (status) failed(p, status, now());
  const float four = (float)(p->size * p->size * p->size * p->size);
  p->mine->ok = host[0] == four && host[2] == 3 * four;
  qn_recording_destroy(r);
  qn_free(p->ctx, x);
}

/* A group is left, and ended, while a recording holds its communicator; another works meanwhile. */
static void leaves(place_in *p)
{
  float *x = device(p);
  qn_recording *r = NULL;
  int right = 1;
  const double since = now();
  qn_status status = recorded(p, x, &r);
  if (!status) status = qn_context_join(p->ctx, NULL);
  if (!status && !qn_recording_replay(p->ctx, r)) status = QN_INTERNAL;
  if (!status) status = qn_context_join(p->ctx, p->group);
  if (!status) status = round_trip(p, x, N, &right);
  if (status) failed(p, status, since);
  p->mine->ok = right && now() - since < 12;
  qn_recording_destroy(r);
  qn_free(p->ctx, x);
}

/* Rank 1 dies where FAKE_NCCL says. */
static const char *where;
static void dies_there(place_in *p)
{
  float *x = device(p);
  const double since = now();
  if (p->rank == 1) setenv("FAKE_NCCL", where, 1);
  qn_status status = sum(p, x, N);
  if (!status) status = qn_context_synchronize(p->ctx);
  if (status) failed(p, status, since);
}

/* Rank 1 dies when the communicators are made, while the others are held up in that, before anything of theirs could be aborted; they wait
 * for messages of its, which no exchange precedes. */
static void dies_unseen(place_in *p)
{
  qn_collective from = QN_COLLECTIVE_INIT;
  const qn_tensor t = qn_tensor_1d(device(p), QN_F32, N);
  const double since = now();
  from.peer = p->rank == 1 ? 0 : 1;
  setenv("FAKE_NCCL", p->rank == 1 ? "made" : "slow", 1);
  qn_status status = qn_recv(p->ctx, &from, &t, 1, &t, 1);
  if (!status) status = qn_context_synchronize(p->ctx);
  if (status) failed(p, status, since);
}

static void messages(place_in *p)
{
  float *x = device(p), host[N];
  qn_collective next = QN_COLLECTIVE_INIT, last = QN_COLLECTIVE_INIT;
  for (int i = 0; i < N; i++) host[i] = (float)(i + p->rank);
  next.peer = (p->rank + 1) % p->size, last.peer = (p->rank + p->size - 1) % p->size;
  const qn_tensor t = qn_tensor_1d(x, QN_F32, N);
  qn_status status = qn_copy_to_device(p->ctx, x, host, sizeof host);
  if (!status) status = qn_send(p->ctx, &next, &t, 1, &t, 1);
  if (!status) status = qn_recv(p->ctx, &last, &t, 1, &t, 1);
  if (!status) status = qn_copy_to_host(p->ctx, host, x, sizeof host);
  if (status) failed(p, status, now());
  p->mine->ok = host[N - 1] == (float)(N - 1 + (int)last.peer);
  qn_free(p->ctx, x);
}

/* Rank 1 dies, or sleeps, after three calls; the others go on, as `calls` says. What comes after a failure fails alike; and the context
 * serves without the group. */
static void (*meanwhile)(place_in *p);
static int64_t times;
static bool replaying;
static void after_three(place_in *p)
{
  float *x = device(p), host[4] = { 0 };
  qn_recording *r = NULL;
  int right = 1;
  qn_status status = QN_OK;
  for (int i = 0; i < 3 && !status; i++) status = round_trip(p, x, N, &right);
  if (!status && replaying) status = recorded(p, x, &r);
  if (!status) status = qn_context_synchronize(p->ctx);
  if (p->rank == 1 && meanwhile) meanwhile(p);
  const double since = now();
  for (int64_t i = 0; i < times && !status; i++) {
    status = r ? qn_recording_replay(p->ctx, r) : sum(p, x, N);
    for (int k = 0; k < 100 && !r && times == 2 && !status; k++) status = qn_copy_to_device_async(p->ctx, x + 4, host, sizeof host);
  }
  if (!status) status = qn_context_synchronize(p->ctx);
  if (status) failed(p, status, since);
  const double told = now();
  const bool again = sum(p, x, N) == QN_DEVICE && !strcmp(qn_last_error(), p->mine->text);
  const bool left = !qn_context_join(p->ctx, NULL) && now() - told < 3;
  const bool serves = !qn_copy_to_device(p->ctx, x, host, sizeof host) && !qn_copy_to_host(p->ctx, host, x, sizeof host);
  if (!again || !left || !serves) p->mine->status = QN_INTERNAL;
  qn_recording_destroy(r);
  qn_free(p->ctx, x);
}

static void dies(place_in *p) { (void)p; kill(getpid(), SIGKILL); }
static void sleeps(place_in *p) { (void)p; pause_for(3 * deadline), _exit(0); }

/* Calls, waits and replays, of sizes that connect now and then. */
static void until_failure(place_in *p)
{
  float *x = device(p);
  qn_recording *r = NULL;
  double since = now();
  qn_status status = recorded(p, x, &r);
  for (int i = 0; i < 1000000 && !status; i++) {
    since = now();
    status = i % 3 ? qn_recording_replay(p->ctx, r) : sum(p, x, 1 + i % 50);
    if (!status && i % 100 == 0) status = qn_context_synchronize(p->ctx);
  }
  failed(p, status, since);
  qn_recording_destroy(r);
  qn_free(p->ctx, x);
}

static void errs(place_in *p)
{
  float *x = device(p);
  const double since = now();
  qn_status status = QN_OK;
  if (p->rank == 1) setenv("FAKE_NCCL", "error", 1);
  for (int i = 0; i < 100 && !status; i++)
    if (!(status = sum(p, x, N))) status = qn_context_synchronize(p->ctx);
  if (status) failed(p, status, since);
}

static void after(const char *name, void (*what)(place_in *), int64_t n, bool with_recording, const char *one, const char *two)
{
  meanwhile = what;
  times = n;
  replaying = with_recording;
  fails(name, 3, after_three, 1, one, two);
}

int main(void)
{
  setenv("QUERN_PLUGIN_PATH", QN_GPU_PLUGINS, 1);
  setenv("QUERN_NCCL", QN_FAKE_NCCL, 1);
  backend = "backend=nccl,gpu";
  if (access(QN_FAKE_NCCL, R_OK)) {
    printf("1..0 # SKIP plugins are not built\n");
    return 0;
  }
  if (!ranks_begin()) {
    printf("Bail out! no shared memory\n");
    return 1;
  }
  works("2 ranks", 2, sums);
  works("4 ranks", 4, sums);
  works("3 ranks, recorded", 3, replays);
  works("messages around a ring", 3, messages);
  deadline = 6;                           /* deaths are seen at once, but processors may be busy */
  works("a group is left while a recording holds its communicator", 2, leaves);
  where = "making";
  fails("a rank dies while communicators are made", 3, dies_there, 1, "rank 1", "ended without leaving");
  where = "connecting";
  fails("a rank dies while a call connects", 3, dies_there, 1, "rank 1", "ended without leaving");
  fails("a rank dies before the others have a communicator", 3, dies_unseen, 1, "rank 1", "ended without leaving");
  after("a rank dies, work waits", dies, 1, false, "rank 1", "ended without leaving");
  after("a rank dies, calls wait for room", dies, 1000, false, "rank 1", "ended without leaving");
  after("a rank dies, other launches wait for room", dies, 2, false, "rank 1", "ended without leaving");
  after("a rank dies, replays wait for room", dies, 1000, true, "rank 1", "ended without leaving");
  fails("a communicator has an error", 3, errs, -1, "rank 1", "remote error");
  random_kills(getenv("GROUP_KILLS") ? atoi(getenv("GROUP_KILLS")) : 6, until_failure);
  deadline = 2;
  where = "stalling";
  fails("a rank is late while a call connects", 3, dies_there, 1, "waited 2 s", "its deadline");
  after("a rank is late, work waits", sleeps, 1, false, "waited 2 s", "its deadline");
  after("a rank is late, calls wait for room", sleeps, 1000, false, "waited 2 s", "its deadline");
  rmdir(folder);
  return tap_done();
}
