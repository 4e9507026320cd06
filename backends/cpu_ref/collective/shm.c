/* shm.c -- a segment without a name, which the other ranks open through rank 0's /proc entry: nothing is left behind, whoever is
 * killed. Ranks wait by futex, wake now and then to look whether the group has failed, and give up at the deadline. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "shm.h"

static int64_t now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); }

/* Returns when the word no longer has that value, or after some milliseconds. */
static void sleep_on(_Atomic uint32_t *word, uint32_t value)
{
  const struct timespec some = { 0, 20000000 };
  syscall(SYS_futex, word, FUTEX_WAIT, value, &some, NULL, 0);
}

/* ---- failures ---------------------------------------------------------------------------------- */

static void wake_all(shm *s)
{
  for (int r = 0; r < s->size; r++) wake(&s->lane[r].step);
  for (int i = 0; i < s->size * s->size; i++) {
    wake(&s->box[i].sent);
    wake(&s->box[i].taken);
  }
}

static qn_status fail(shm *s, const char *sentence)
{
  const qn_status status = cpu_host->ranks_fail(s->ranks, sentence);
  atomic_store(&s->head->failed, 1);
  wake_all(s);
  return status;
}

static qn_status look(shm *s)
{
  const qn_status status = cpu_host->ranks_watch(s->ranks);
  if (!status || atomic_exchange(&s->head->failed, 1)) return status;
  wake_all(s);
  return status;
}

static qn_status mismatch(shm *s, int other, const char *doing)
{
  char why[1000];
  snprintf(why, sizeof why, "the ranks run different problems: rank %d \"%s\", and rank %d \"%.399s\"", s->rank, s->line->text, other,
           doing);
  return fail(s, why);
}

static qn_status give_up(shm *s, int whom)
{
  const shm_lane *l = &s->lane[whom];
  char why[1000];
  const bool busy = atomic_load(&l->busy);
  if (atomic_load(&l->gone))
    snprintf(why, sizeof why, "the group has failed: rank %d has left it, and rank %d runs \"%s\"", whom, s->rank, s->line->text);
  else
    snprintf(why, sizeof why, "the group has failed: rank %d waited %.3g s, its deadline, for rank %d, at \"%s\"; rank %d %s%.399s%s",
             s->rank, (double)s->ranks->deadline / 1000, whom, s->line->text, whom, busy ? "is at \"" : "runs no collective",
             busy ? l->doing : "", busy ? "\"" : "");
  return fail(s, why);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static inline bool reached(_Atomic uint32_t *word, uint32_t want)
{
  return (int32_t)(atomic_load_explicit(word, memory_order_acquire) - want) >= 0;
}

static inline void relax(void)
{
#if defined __x86_64__ || defined __i386__
  __builtin_ia32_pause();
#endif
}

/* Until rank `whom` has brought the word to `want`. */
static qn_status wait_for(shm *s, _Atomic uint32_t *word, _Atomic uint32_t *waiters, uint32_t want, int whom)
{
  for (int i = 0; i < s->spins; i++) {
    if (reached(word, want)) return QN_OK;
    relax();
  }
  qn_status status = QN_OK;
  const int64_t until = now() + s->ranks->deadline;
  atomic_fetch_add(waiters, 1);
  while (!status && !reached(word, want)) {
    const uint32_t seen = atomic_load(word);
    if ((int32_t)(seen - want) >= 0) break;
    sleep_on(word, seen);
    if (reached(word, want)) break;
    if (atomic_load(&s->lane[whom].gone) || now() >= until) status = look(s) ? QN_DEVICE : give_up(s, whom);
    else status = look(s);
    if (!status && atomic_load(&s->head->failed) && now() >= until - s->ranks->deadline + 2000)
      status = fail(s, "the group has failed on another rank");       /* whose sentence has not come */
  }
  atomic_fetch_sub(waiters, 1);
  return status;
}

static void post(_Atomic uint32_t *word, _Atomic uint32_t *waiters, uint32_t value)
{
  atomic_store(word, value);
  if (atomic_load(waiters)) wake(word);
}

/* ---- collectives ---------------------------------------------------------------------------------- */

qn_status cpu_shm_begin(shm *s, const qn_collective_line *line)
{
  shm_lane *me = &s->lane[s->rank];
  s->line = line;
  if (atomic_load_explicit(&s->head->failed, memory_order_relaxed)) {
    const qn_status status = look(s);
    return status ? status : fail(s, "the group has failed on another rank");
  }
  memcpy(me->doing, line->text, sizeof me->doing);
  atomic_store_explicit(&me->busy, 1, memory_order_release);
  return QN_OK;
}

void cpu_shm_end(shm *s) { atomic_store_explicit(&s->lane[s->rank].busy, 0, memory_order_release); }

qn_status cpu_shm_step(shm *s, bool first, double scale)
{
  shm_lane *me = &s->lane[s->rank];
  const uint32_t step = ++s->step;
  if (first) {
    me->hash[step & 1] = s->line->hash;
    me->scale[step & 1] = scale;
  } else me->hash[step & 1] = 0;
  post(&me->step, &me->waiters, step);
  for (int i = 1; i < s->size; i++) {
    const int r = (s->rank + i) % s->size;
    const qn_status status = wait_for(s, &s->lane[r].step, &s->lane[r].waiters, step, r);
    if (status) return status;
  }
  for (int r = 0; r < s->size; r++)
    if (s->lane[r].hash[step & 1] != me->hash[step & 1]) return mismatch(s, r, s->lane[r].doing);
  return QN_OK;
}

static shm_box *box_of(const shm *s, int peer, bool sends)
{
  return &s->box[sends ? s->rank * s->size + peer : peer * s->size + s->rank];
}

qn_status cpu_shm_box_wait(shm *s, int peer, bool sends, bool first, char **chunk)
{
  shm_box *b = box_of(s, peer, sends);
  const uint32_t mine = atomic_load(sends ? &b->sent : &b->taken);
  /* a message's first chunk waits until the one before was taken whole: it writes the box's problem */
  qn_status status = sends ? wait_for(s, &b->taken, &b->taken_waiters, mine - (first ? 0 : 1), peer)
                           : wait_for(s, &b->sent, &b->sent_waiters, mine + 1, peer);
  if (status) return status;
  if (first && sends) {
    b->hash = s->line->hash;
    memcpy(b->doing, s->line->text, sizeof b->doing);
  } else if (first && b->hash != s->line->hash) return mismatch(s, peer, b->doing);
  *chunk = s->chunk + (2 * (size_t)(b - s->box) + (mine & 1)) * SHM_BOX;
  return QN_OK;
}

void cpu_shm_box_pass(shm *s, int peer, bool sends)
{
  shm_box *b = box_of(s, peer, sends);
  if (sends) post(&b->sent, &b->sent_waiters, atomic_load(&b->sent) + 1);
  else post(&b->taken, &b->taken_waiters, atomic_load(&b->taken) + 1);
}

/* ---- the segment ------------------------------------------------------------------------------------ */

static void leave(void *own, int failed)
{
  shm *s = own;
  (void)failed;
  atomic_store(&s->lane[s->rank].gone, 1);
  wake_all(s);
  munmap(s->head, s->bytes);
  cpu_host->free(s);
}

static size_t up(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

static size_t lay_out(shm *s, char *at)
{
  const size_t n = (size_t)s->size, lanes = up(sizeof(shm_head)), boxes = lanes + up(n * sizeof(shm_lane));
  const size_t slots = boxes + up(n * n * sizeof(shm_box)), chunks = slots + 2 * n * (size_t)shm_slot_bytes(s->size);
  if (at) {
    s->head = (shm_head *)at;
    s->lane = (shm_lane *)(at + lanes);
    s->box = (shm_box *)(at + boxes);
    s->slot = at + slots;
    s->chunk = at + chunks;
  }
  return chunks + 2 * n * n * SHM_BOX;
}

typedef struct offer { uint64_t nonce; int32_t process, file, error, reserved; } offer;

/* errno's number on failure. */
static int map(shm *s, int file)
{
  void *p = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED) return errno;
  lay_out(s, p);
  return 0;
}

/* Rank 0's; not what has the same number on another host. */
static int open_theirs(shm *s, const offer *from)
{
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)from->process, (int)from->file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = map(s, file);
  close(file);
  return error ? error : s->head->nonce == from->nonce ? 0 : ENOENT;
}

/* Two exchanges: rank 0 says where the segment is; each says whether it has it. */
static qn_status make(shm *s, offer *all)
{
  offer mine = { .process = (int32_t)getpid(), .file = -1 };
  int file = -1;
  if (!s->rank) {
    file = memfd_create("quern group", MFD_CLOEXEC);
    mine.file = file;
    if (file < 0 || ftruncate(file, (off_t)s->bytes) || getrandom(&mine.nonce, sizeof mine.nonce, 0) < 0) mine.error = errno;
    else if (!(mine.error = map(s, file))) s->head->nonce = mine.nonce;
  }
  qn_status status = cpu_host->ranks_exchange(s->ranks, "memory shared by cpu_ref/shm", &mine, sizeof mine, all);
  if (!status) {
    const offer first = all[0];
    if (s->rank) mine.error = first.error ? first.error : open_theirs(s, &first);
    status = cpu_host->ranks_exchange(s->ranks, "memory shared by cpu_ref/shm, opened", &mine, sizeof mine, all);
  }
  if (file >= 0) close(file);
  for (int r = 0; r < s->size && !status; r++)
    if (all[r].error) {
      char why[200];
      snprintf(why, sizeof why, "the group has failed: rank %d cannot open memory shared with rank 0 (%s); all ranks of cpu_ref/shm must "
               "be processes of one user on one host", r, strerror(all[r].error));
      status = cpu_host->ranks_fail(s->ranks, why);
    }
  return status;
}

qn_status cpu_shm_of(const qn_ranks *ranks, shm **out)
{
  static const char key;
  void **own;
  qn_status status = cpu_host->ranks_slot(ranks, &key, leave, &own);
  if (status || (*out = *own)) return status;
  shm *s = cpu_host->alloc(sizeof *s);
  offer *all = cpu_host->alloc((size_t)ranks->size * sizeof *all);
  if (!s || !all) status = cpu_host->error(QN_NO_MEMORY, "no memory for a group");
  else {
    s->ranks = ranks;
    s->rank = ranks->rank;
    s->size = ranks->size;
    s->spins = sysconf(_SC_NPROCESSORS_ONLN) >= s->size ? 2000 : 20;
    s->bytes = lay_out(s, NULL);
    status = make(s, all);
    if (status && s->head) munmap(s->head, s->bytes);
  }
  cpu_host->free(all);
  if (status) cpu_host->free(s);
  else *own = *out = s;
  return status;
}
