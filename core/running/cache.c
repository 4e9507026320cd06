/* cache.c -- the plan cache: one table per device, shared by its contexts, bounded, reference-counted.
 *
 * If several threads miss the same problem at once it is planned once: the first marks it, the others wait. Refusals
 * are cached too. Each context keeps a table of recent plans in front of it, so that a hit there takes no lock. */
#include "config.h"
#include "core.h"
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 8192, MOST = 4096 };

typedef struct pending { const uint64_t *key; uint32_t n_words; uint64_t hash; struct pending *next; } pending;

struct qn__cache {
  pthread_mutex_t lock;
  pthread_cond_t  done;
  qn_plan        *bucket[BUCKETS];
  pending        *making;
  uint64_t        clock;
  int             n;
  struct qn__cache *next;               /* another device's */
};

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct qn__cache *caches;

static void set_up(struct qn__cache *c)
{
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->done, NULL);
  c->making = NULL;
}

/* The threads that were planning do not exist in the child. */
void qn__caches_in_child(void)
{
  pthread_mutex_init(&opening, NULL);
  for (struct qn__cache *c = caches; c; c = c->next) set_up(c);
}

qn_status qn__cache_open(qn__device *dev)
{
  pthread_mutex_lock(&opening);
  if (!dev->cache && (dev->cache = qn__alloc(sizeof *dev->cache))) {
    set_up(dev->cache);
    dev->cache->next = caches;
    caches = dev->cache;
  }
  const bool open = dev->cache != NULL;
  pthread_mutex_unlock(&opening);
  return open ? QN_OK : qn__fail(QN_NO_MEMORY, "no memory for a cache of plans");
}

static bool same(const uint64_t *a, uint32_t n, uint64_t hash_a, const uint64_t *b, uint32_t m, uint64_t hash_b)
{
  return hash_a == hash_b && n == m && !memcmp(a, b, n * sizeof *a);
}

static qn_plan *find(struct qn__cache *c, const uint64_t *key, uint32_t n, uint64_t hash)
{
  qn_plan *p = c->bucket[hash % BUCKETS];
  while (p && !same(p->key, p->n_words, p->hash, key, n, hash)) p = p->chain;
  if (p) p->used = ++c->clock;
  return p;
}

static bool is_made(const struct qn__cache *c, const uint64_t *key, uint32_t n, uint64_t hash)
{
  for (const pending *m = c->making; m; m = m->next)
    if (same(m->key, m->n_words, m->hash, key, n, hash)) return true;
  return false;
}

/* When over the limit, removes the least recently used plan of a stretch of buckets, for the caller to release; contexts that still
 * use it keep it alive. */
static qn_plan *evict(struct qn__cache *c, uint64_t hash)
{
  qn_plan **oldest = NULL;
  for (int i = 1; i < BUCKETS && (i < 64 || !oldest); i++)
    for (qn_plan **p = &c->bucket[(hash + (uint64_t)i) % BUCKETS]; *p; p = &(*p)->chain)
      if (!oldest || (*p)->used < (*oldest)->used) oldest = p;
  if (!oldest) return NULL;
  qn_plan *gone = *oldest;
  *oldest = gone->chain;
  gone->chain = NULL;
  c->n--;
  return gone;
}

static void forget_mark(struct qn__cache *c, pending *mark)
{
  pending **m = &c->making;
  while (*m != mark) m = &(*m)->next;
  *m = mark->next;
  pthread_cond_broadcast(&c->done);
}

qn_status qn__cache_get(struct qn__cache *c, const uint64_t *key, uint32_t n_words, uint64_t hash,
                        qn_status (*make)(void *arg, qn_plan **out), void *arg, qn_plan **out)
{
  pending mark = { key, n_words, hash, NULL };
  qn_plan *p, *gone = NULL;
  pthread_mutex_lock(&c->lock);
  while (!(p = find(c, key, n_words, hash)) && is_made(c, key, n_words, hash)) pthread_cond_wait(&c->done, &c->lock);
  if (p) atomic_fetch_add(&p->refs, 1);
  else {
    mark.next = c->making;
    c->making = &mark;
  }
  pthread_mutex_unlock(&c->lock);
  if (p) {
    *out = p;
    return QN_OK;
  }

  qn_status status = make(arg, &p);
  uint64_t *copy = status ? NULL : qn__alloc(n_words * sizeof *copy);
  if (!status && !copy) {
    qn__plan_release(p);
    status = qn__fail(QN_NO_MEMORY, "no memory to keep a plan");
  }
  pthread_mutex_lock(&c->lock);
  forget_mark(c, &mark);
  if (copy) {
    p->key = memcpy(copy, key, n_words * sizeof *copy);
    p->n_words = n_words;
    p->hash = hash;
    p->used = ++c->clock;
    p->chain = c->bucket[hash % BUCKETS];
    c->bucket[hash % BUCKETS] = p;
    atomic_fetch_add(&p->refs, 1);
    if (++c->n > MOST) gone = evict(c, hash);
  }
  pthread_mutex_unlock(&c->lock);
  qn__plan_release(gone);                                       /* without the lock held: engines free their state */
  if (!status) *out = p;
  return status;
}
