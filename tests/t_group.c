/* t_group.c -- groups: ranks as processes and as threads, parts of a group, graphs and recordings with collectives; and faults: a rank
 * that is killed, late, gone or at another problem makes the others fail within the deadline, with a sentence, and never hang.
 *
 * Each test forks its ranks before any context exists; what a rank saw goes through shared memory. GROUP_KILLS=N: that many ranks are
 * killed at random moments (default 12), by GROUP_SEED. */
#include "ranks.h"

/* ---- what must work -------------------------------------------------------------------------------- */

static void sums(place_in *p)
{
  enum { N = 1000 };
  float x[N];
  int right = 1;
  for (int round = 0; round < 20 && !p->mine->status; round++) {
    const int64_t n = 1 + (round * 53) % N;
    for (int i = 0; i < n; i++) x[i] = (float)(i + round + p->rank);
    const double since = now();
    const qn_status status = sum(p, x, n);
    if (status) failed(p, status, since);
    for (int i = 0; i < n; i++) right &= x[i] == (float)(p->size * (i + round) + p->size * (p->size - 1) / 2);
    p->mine->calls++;
  }
  if (!p->mine->status) p->mine->status = qn_context_synchronize(p->ctx);
  p->mine->ok = right;
}

/* Work that is kept until someone waits. */
static void late_sums(place_in *p)
{
  float *x;
  qn_alloc(p->ctx, 64, (void **)&x);
  float host[16];
  for (int i = 0; i < 16; i++) host[i] = (float)(i + p->rank);
  qn_copy_to_device(p->ctx, x, host, sizeof host);
  const qn_status status = sum(p, x, 16);
  if (status || qn_copy_to_host(p->ctx, host, x, sizeof host)) failed(p, QN_DEVICE, now());
  p->mine->ok = host[5] == (float)(5 * p->size + p->size * (p->size - 1) / 2);
  qn_free(p->ctx, x);
}

/* One tensor, and the same elements as a list of pieces, in another order of memory: the same bits. */
static void pieces(place_in *p)
{
  enum { N = 100003 };
  static const int64_t cut[] = { 0, 1, 7, 4099, 65536 + 12, N };
  float *whole = malloc(2 * N * sizeof *whole), *list = whole + N;
  qn_tensor t[5];
  srand(7 + (unsigned)p->rank);
  for (int i = 0; i < N; i++) whole[i] = list[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  for (int k = 0; k < 5; k++) t[k] = qn_tensor_1d(list + cut[k], QN_F32, cut[k + 1] - cut[k]);
  qn_status status = sum(p, whole, N);
  if (!status) status = qn_all_reduce(p->ctx, NULL, t, 5, NULL, t, 5);
  if (status) failed(p, status, now());
  p->mine->ok = !memcmp(whole, list, N * sizeof *whole);
  free(whole);
}

/* A graph that computes, sums over the ranks and computes on, executed, recorded and replayed. */
static void in_graph(place_in *p)
{
  static const char lines[] = "in a f32/40 | in b f32/5x3 | c = mul a=a b=a | [d,e] = all_reduce x=[c,b] reduction=avg | "
                              "out f = neg x=d | out e over b";
  qn_graph *g = NULL;
  qn_plan *plan = NULL;
  qn_recording *rec = NULL;
  float a[40], b[15], f[40];
  void *const pointer[] = { a, b, f, b };
  int right = 1;
  qn_status status = qn_graph_parse(lines, &g);
  if (!status) status = qn_plan_create(p->ctx, g, &plan);
  for (int round = 0; round < 4 && !status; round++) {
    for (int i = 0; i < 40; i++) a[i] = (float)((i + p->rank + round) % 5);
    for (int i = 0; i < 15; i++) b[i] = (float)(p->rank * i + round);
    if (round == 1 && !(status = qn_record_begin(p->ctx))) {
      status = qn_plan_execute(p->ctx, plan, pointer);
      if (!status) status = qn_record_end(p->ctx, &rec);
    }
    if (!status) status = round ? qn_recording_replay(p->ctx, rec) : qn_plan_execute(p->ctx, plan, pointer);
    for (int i = 0; i < 40; i++) {
      float want = 0;
      for (int r = 0; r < p->size; r++) want += (float)((i + r + round) % 5 * ((i + r + round) % 5));
      right &= f[i] == -(want / (float)p->size);
    }
    for (int i = 0; i < 15; i++) right &= b[i] == (float)(p->size * (p->size - 1) / 2 * i) / (float)p->size + (float)round;
  }
  if (status) failed(p, status, now());
  p->mine->ok = right;
  qn_recording_destroy(rec);
  qn_plan_destroy(plan);
  qn_graph_destroy(g);
}

/* Even and odd ranks apart, in reverse order; and one rank in no part. Then the whole group again. */
static void parts(place_in *p)
{
  qn_group *g = NULL, *none = (qn_group *)1;
  float x[3] = { (float)p->rank, 1, 0 };
  qn_status status = qn_group_split(p->group, p->rank % 2, -p->rank, &g);
  if (!status) status = qn_context_join(p->ctx, NULL);
  if (!status) status = qn_context_join(p->ctx, g);
  if (!status) status = sum(p, x, 3);
  int want = 0, members = 0;
  for (int r = p->rank % 2; r < p->size; r += 2) want += r, members++;
  p->mine->ok = x[0] == (float)want && x[1] == (float)members && qn_group_size(g) == members &&
                qn_group_rank(g) == (p->size - 1 - p->rank) / 2;
  qn_group_destroy(g);
  if (!status) status = qn_group_split(p->group, p->rank ? 0 : -1, 0, &none);
  p->mine->ok &= p->rank ? qn_group_size(none) == p->size - 1 : none == NULL;
  if (p->rank) qn_group_destroy(none);
  if (!status) status = qn_context_join(p->ctx, p->group);
  if (!status) status = sum(p, x, 1);
  if (status) failed(p, status, now());
}

/* Plans and recordings outlive their group; what they hold is for its size alone. Two times: the second time they come back. */
static void other_group(place_in *p)
{
  static const char lines[] = "in a f32/300000 | [b,c] = all_reduce x=[a,a] reduction=avg | out d = add a=b b=c";
  qn_graph *g = NULL;
  qn_plan *plan = NULL;
  qn_recording *rec = NULL;
  qn_group *half = NULL;
  enum { N = 300000 };
  float *a = malloc(2 * N * sizeof *a), *d = a + N;
  void *const pointer[] = { a, d };
  char want[64];
  int right = 1;
  for (int i = 0; i < N; i++) a[i] = (float)p->rank;
  qn_status status = qn_graph_parse(lines, &g);
  if (!status) status = qn_plan_create(p->ctx, g, &plan);
  if (!status) status = qn_record_begin(p->ctx);
  if (!status) status = qn_plan_execute(p->ctx, plan, pointer);
  if (!status) status = qn_record_end(p->ctx, &rec);
  if (!status) status = qn_group_split(p->group, p->rank % 2, 0, &half);
  snprintf(want, sizeof want, "group of %d ranks", p->size);
  for (int round = 0; round < 2 && !status; round++) {
    status = qn_context_join(p->ctx, half);
    right &= qn_plan_execute(p->ctx, plan, pointer) == QN_BAD_ARGUMENT && strstr(qn_last_error(), want);
    right &= qn_context_reserve(p->ctx, plan) == QN_BAD_ARGUMENT;
    right &= qn_recording_replay(p->ctx, rec) == QN_BAD_ARGUMENT && strstr(qn_last_error(), want);
    if (!status) status = qn_context_join(p->ctx, p->group);
    memset(d, 0, N * sizeof *d);
    if (!status) status = round ? qn_recording_replay(p->ctx, rec) : qn_plan_execute(p->ctx, plan, pointer);
    right &= d[N - 1] == (float)(p->size - 1);
  }
  if (status) failed(p, status, now());
  p->mine->ok = right;
  qn_recording_destroy(rec);
  qn_plan_destroy(plan);
  qn_graph_destroy(g);
  qn_context_join(p->ctx, NULL);
  qn_group_destroy(half);
  free(a);
}

static void talk(place_in *p)
{
  float x[30000];
  qn_collective to = QN_COLLECTIVE_INIT, from = QN_COLLECTIVE_INIT;
  const qn_tensor t = qn_tensor_1d(x, QN_F32, 30000);
  qn_status status = QN_OK;
  to.peer = (p->rank + 1) % p->size;
  from.peer = (p->rank + p->size - 1) % p->size;
  for (int i = 0; i < 30000; i++) x[i] = (float)p->rank;
  for (int round = 0; round < p->size && !status; round++) {    /* around the ring, the first rank sends first */
    if (!p->rank) status = qn_send(p->ctx, &to, &t, 1, &t, 1);
    if (!status) status = qn_recv(p->ctx, &from, &t, 1, &t, 1);
    for (int i = 0; i < 30000 && p->rank; i++) x[i] += 1;
    if (!status && p->rank) status = qn_send(p->ctx, &to, &t, 1, &t, 1);
  }
  if (status) failed(p, status, now());
  p->mine->ok = x[29999] == (float)(p->size * (p->size - 1) + (p->rank ? p->rank : 0) - (p->rank ? p->size - 1 : 0));
}

/* ---- faults ------------------------------------------------------------------------------------------ */

static void until_failure(place_in *p)
{
  float x[40000];
  for (p->mine->calls = 0; p->mine->calls < 1000000; p->mine->calls++) {
    const double since = now();
    for (int i = 0; i < 100; i++) x[i] = 1;
    const qn_status status = sum(p, x, p->mine->calls % 3 ? 100 : 40000);
    if (!status) continue;
    failed(p, status, since);
    return;
  }
}

static void slow(place_in *p)
{
  if (p->rank == 1) pause_for(deadline * 0.5);
  sums(p);
}

static void too_slow(place_in *p)
{
  float x[4] = { 0 };
  if (sum(p, x, 4)) return;
  if (p->rank == 1) pause_for(deadline * 2);
  const double since = now();
  failed(p, sum(p, x, 4), since);
  char first[200];
  snprintf(first, sizeof first, "%s", qn_last_error());
  const double again = now();
  p->mine->ok = sum(p, x, 4) == QN_DEVICE && !strncmp(first, qn_last_error(), sizeof first - 1) && now() - again < 0.5 &&
                qn_group_status(p->group);
}

static void other_sizes(place_in *p)
{
  float x[12] = { 0 };
  if (sum(p, x, 3)) return;
  const double since = now();
  failed(p, sum(p, x, p->rank == 2 ? 9 : 8), since);
  if (sum(p, x, 8) != QN_DEVICE) p->mine->status = QN_OK;
  qn_group_destroy(p->group);             /* the ranks are all there: they make another group */
  p->group = NULL;
  part(p);
  if (join(p, p->rank, p->size) || sum(p, x, 3)) p->mine->status = QN_OK;
}

static void other_ops(place_in *p)
{
  float x[12] = { 0 };
  const qn_tensor t = qn_tensor_1d(x, QN_F32, 12);
  qn_collective a = QN_COLLECTIVE_INIT;
  a.peer = 0;
  if (sum(p, x, 3)) return;
  const double since = now();
  failed(p, p->rank ? qn_recv(p->ctx, &a, &t, 1, &t, 1) : qn_all_reduce(p->ctx, NULL, &t, 1, NULL, &t, 1), since);
}

static void other_message(place_in *p)
{
  float x[12] = { 0 };
  const qn_tensor t = qn_tensor_1d(x, QN_F32, p->rank ? 12 : 11);
  qn_collective a = QN_COLLECTIVE_INIT;
  a.peer = !p->rank;
  const double since = now();
  qn_status status = p->rank ? qn_recv(p->ctx, &a, &t, 1, &t, 1) : qn_send(p->ctx, &a, &t, 1, &t, 1);
  if (!status && !p->rank) status = sum(p, x, 1);     /* a short message is away before it is taken */
  failed(p, status, since);
}

static void one_leaves(place_in *p)
{
  float x[4] = { 0 };
  if (sum(p, x, 4)) return;
  if (p->rank == 1) return;
  const double since = now();
  failed(p, sum(p, x, 4), since);
}

/* ---- options -------------------------------------------------------------------------------------------- */

static void refused(const char *words, const char *const options[])
{
  qn_group *g = NULL;
  const qn_status status = qn_group_create(options, &g);
  if (!tap_ok(status == QN_BAD_ARGUMENT && strstr(qn_last_error(), words), "refused: %s", options[0]))
    tap_note("%d: %s", status, qn_last_error());
}

static void check_options(void)
{
  qn_group *g = NULL;
  unsetenv("RANK"), unsetenv("WORLD_SIZE");
  refused("is not known", (const char *const[]){ "at=nowhere", "rank=0", "size=2", NULL });
  refused("known are", (const char *const[]){ "colour=3", NULL });
  refused("rank: is not given", (const char *const[]){ "size=2", NULL });
  refused("whole number from 0 to 1", (const char *const[]){ "rank=2", "size=2", NULL });
  refused("number of seconds", (const char *const[]){ "deadline=soon", NULL });
  refused("tcp://host:port", (const char *const[]){ "at=tcp://nohost", "rank=0", "size=2", NULL });
  tap_ok(!qn_group_create(NULL, &g) && qn_group_size(g) == 1 && qn_group_rank(g) == 0 && !qn_group_status(g),
         "no launcher: a group of one");
  qn_group_destroy(g);
  const double since = now();
  const char *const alone[] = { place, "rank=0", "size=2", "deadline=0.2", NULL };
  tap_ok(qn_group_create(alone, &g) == QN_DEVICE && strstr(qn_last_error(), "for rank 1") && now() - since < 5,
         "a rank that does not come is named");
  tap_ok(access(place + strlen("at=file://"), F_OK) != 0, "and the file is gone");
  setenv("RANK", "1", 1), setenv("WORLD_SIZE", "2", 1), setenv("MASTER_ADDR", "127.0.0.1", 1), setenv("MASTER_PORT", "1", 1);
  tap_ok(qn_group_create((const char *const[]){ "deadline=0.2", NULL }, &g) == QN_DEVICE && strstr(qn_last_error(), "for rank 0"),
         "rank 1 waits for rank 0 no longer than the deadline");
}

/* ---- a rank of a launcher's ------------------------------------------------------------------------------- */

static const launched tests[] = {
  { "sums", sums, NULL, NULL, 20 },
  { "in_graph", in_graph, NULL, NULL, 20 },
  { "parts", parts, NULL, NULL, 20 },
  { "other_group", other_group, NULL, NULL, 20 },
  { "talk", talk, NULL, NULL, 20 },
  { "slow", slow, NULL, NULL, 8 },
  { "other_sizes", other_sizes, "f32/8]", "f32/9]", 20 },
  { "other_message", other_message, "f32/11]", "f32/12]", 20 },
  { "other_ops", other_ops, "all_reduce x=[f32/12]", "recv x=[f32/12]", 4 },
  { "too_slow", too_slow, "for rank 1", "its deadline", 4 },
  { "killed", until_failure, "ended without leaving", "", 20 },
};

int main(int argc, char **argv)
{
  const char *kills = getenv("GROUP_KILLS");
  if (argc > 1) return launched_rank("t_group", argv[1], tests, tests + sizeof tests / sizeof *tests);
  if (!ranks_begin()) return 2;

  for (int n = 1; n <= 4; n++) {
    char name[64];
    snprintf(name, sizeof name, "all_reduce, %d rank%s", n, n > 1 ? "s" : "");
    const int ended = run_ranks(n, sums, -1, 0);
    test(name, ended, all_ok(n), n);
  }
  backend = "backend=check";
  works("on the checking device", 3, late_sums);
  backend = "backend=cpu_ref";
  works("a list has the bits of one tensor", 3, pieces);
  works("in a graph, in place, recorded", 2, in_graph);
  works("parts of a group", 4, parts);
  works("a plan and a recording in a group of another size", 4, other_group);
  works("messages around a ring", 3, talk);
  works_in_threads("three ranks in threads of one process", 1, 3, sums);

  deadline = 4;
  works("a slow rank is waited for", 3, slow);
  fails("different sizes: both lines", 3, other_sizes, -1, "f32/8]", "f32/9]");
  fails("different messages: both lines", 2, other_message, -1, "f32/11]", "f32/12]");
  fails("a rank that leaves", 3, one_leaves, 1, "rank 1 has left", "");
  for (int victim = 0; victim < 3; victim += 2) {
    char name[64], who[32];
    snprintf(name, sizeof name, "rank %d is killed", victim);
    snprintf(who, sizeof who, "rank %d ended", victim);
    const int ended = run_ranks(4, until_failure, victim, 0.3);
    test(name, ended, all_failed(4, victim, who, ""), 4);
  }
  fails("different ops: both lines, at the deadline", 2, other_ops, -1, "all_reduce x=[f32/12]", "recv x=[f32/12]");
  const int ended = run_ranks(3, too_slow, -1, 0);
  test("a rank that is too slow is named, the failure stays", ended,
       all_failed(3, -1, "for rank 1", "its deadline") && all[0].ok && all[1].ok && all[2].ok, 3);
  random_kills(kills ? atoi(kills) : 12, until_failure);
  check_options();
  tap_ok(!rmdir(folder), "nothing is left behind");
  return tap_done();
}
