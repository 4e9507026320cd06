/* object.c -- memory of the objects that callers hold, so that the use of a destroyed one is told by a sentence.
 *
 * It is never given back: a destroyed object keeps the mark that its owner left in it until its memory serves for another, the
 * longest destroyed first and not before KEPT of its kind are destroyed. Reading a mark is then always defined; only a pointer kept
 * for so long that its object's memory serves again is taken for the new object. Contexts carry the process's generation, which
 * fork changes (context.c). */
#include "core.h"
#include <string.h>

qn_status qn__destroyed(const char *what)
{
  return qn__fail(QN_BAD_ARGUMENT, "%s: was destroyed; its memory may serve another by now", what);
}

void qn__log_destroyed(const char *what)
{
  qn__destroyed(what);
  qn__log(QN_LOG_ERROR, "%s", qn_last_error());
}

atomic_int qn__generation = QN__FIRST_GENERATION;
bool qn__workers_lost;

qn_status qn__context_alive(const qn_context *ctx)
{
  if (!ctx) return qn__fail(QN_BAD_ARGUMENT, "ctx: is NULL");
  if (qn__is_alive(ctx)) return QN_OK;
  if (!ctx->generation) return qn__destroyed("ctx");
  if (ctx->generation < QN__FIRST_GENERATION || ctx->generation > atomic_load(&qn__generation))
    return qn__fail(QN_BAD_ARGUMENT, "ctx: is no context");
  return qn__fail(QN_DEVICE, "ctx: was made before fork; make a context in the child");
}

enum { KEPT = 16 };

typedef struct head { struct head *next; uint64_t pad; } head;         /* before each object; keeps it 16-byte aligned */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct { head *first, *last; int n; } destroyed[QN_OBJECT_KINDS];

void qn__objects_in_child(void) { pthread_mutex_init(&lock, NULL); }

void *qn__object_new(int kind, size_t bytes)
{
  head *h = NULL;
  pthread_mutex_lock(&lock);
  if (destroyed[kind].n > KEPT) {
    h = destroyed[kind].first;
    destroyed[kind].first = h->next;
    destroyed[kind].n--;
  }
  pthread_mutex_unlock(&lock);
  if (h) {
    atomic_fetch_add_explicit(&qn__alloc_live, 1, memory_order_relaxed);
    return memset(h + 1, 0, bytes);
  }
  return (h = qn__alloc(sizeof *h + bytes)) ? h + 1 : NULL;
}

void qn__object_free(int kind, void *object)
{
  if (!object) return;
  head *h = (head *)object - 1;
  h->next = NULL;
  pthread_mutex_lock(&lock);
  if (destroyed[kind].n++) destroyed[kind].last->next = h;
  else destroyed[kind].first = h;
  destroyed[kind].last = h;
  pthread_mutex_unlock(&lock);
  atomic_fetch_sub_explicit(&qn__alloc_live, 1, memory_order_relaxed);
}
