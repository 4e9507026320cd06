/* status.c -- used by every file of core: error sentences, the log, memory with fault injection,
 * growing strings. */
#include "config.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core.h"

const char *qn_version(void)
{
  return QN_VERSION;
}

/* ---- errors ------------------------------------------------------------------------------- */

/* Long enough for the list of every engine's reasons; longer ones end in "...". */
enum { SENTENCE_BYTES = 4096 };
static _Thread_local char sentence[SENTENCE_BYTES];

const char *qn_status_text(qn_status status)
{
  switch (status) {
  case QN_OK: return "no error";
#define STATUS_TEXT(name, value, text) case QN_##name: return text;
  QN_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
  default: return "a number that is no status";
  }
}

const char *qn_last_error(void)
{
  return sentence;
}

static void mark_truncated(char *s, size_t bytes, int length)
{
  if (length >= (int)bytes) memcpy(s + bytes - 4, "...", 4);
}

qn_status qn__fail(qn_status status, const char *format, ...)
{
  char fresh[SENTENCE_BYTES];           /* the arguments may quote the current sentence */
  va_list args;
  va_start(args, format);
  int length = vsnprintf(fresh, sizeof fresh, format, args);
  va_end(args);
  mark_truncated(fresh, sizeof fresh, length);
  memcpy(sentence, fresh, strlen(fresh) + 1);
  return status;
}

/* ---- log ---------------------------------------------------------------------------------- */

atomic_int qn__log_level = QN_LOG_WARN;

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static void (*log_fn)(void *user, int level, const char *message);
static void *log_user;

void qn_set_log(void (*fn)(void *user, int level, const char *message), void *user)
{
  pthread_mutex_lock(&log_lock);
  log_fn = fn;
  log_user = user;
  pthread_mutex_unlock(&log_lock);
}

void qn__log_in_child(void) { pthread_mutex_init(&log_lock, NULL); }

/* What this thread logged while holding locks, to be delivered when it has released them: the callback may call the library. */
static _Thread_local struct { int locks; qn_text kept; } saved;      /* level, text, 0; level, text, 0; ... */

/* Warnings are of what the user can change, and one is enough. Once 256 different ones were logged, later ones may be repeated. */
static bool warned_before(const char *message)
{
  static _Atomic uint64_t warned[256];
  uint64_t hash = 14695981039346656037u;          /* FNV-1a */
  for (; *message; message++) hash = (hash ^ (unsigned char)*message) * 1099511628211u;
  for (unsigned i = 0; i < 256; i++) {
    uint64_t there = 0;
    if (atomic_compare_exchange_strong(&warned[(hash + i) % 256], &there, hash | 1)) return false;
    if (there == (hash | 1)) return true;
  }
  return false;
}

static void say(int level, const char *message)
{
  static const char *const name[] = { "error", "warning", "info", "debug", "plan" };
  pthread_mutex_lock(&log_lock);
  void (*fn)(void *, int, const char *) = log_fn;
  void *user = log_user;
  pthread_mutex_unlock(&log_lock);
  if (!fn && level == QN_LOG_WARN && warned_before(message)) return;
  char before[SENTENCE_BYTES];            /* the callback may fail at something and set its own */
  memcpy(before, sentence, strlen(sentence) + 1);
  if (fn) fn(user, level, message);
  else fprintf(stderr, "quern: %s: %s\n", name[level], message);
  memcpy(sentence, before, strlen(before) + 1);
}

void qn__progress(const char *text)
{
  pthread_mutex_lock(&log_lock);
  const bool shown = !log_fn && qn__logs(QN_LOG_WARN) && isatty(2);
  pthread_mutex_unlock(&log_lock);
  if (shown) fprintf(stderr, *text ? "\r\033[Kquern: %.100s" : "\r\033[K%s", text);
}

void qn__log(int level, const char *format, ...)
{
  if (!qn__logs(level)) return;
  char message[2048];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(message, sizeof message, format, args);
  va_end(args);
  mark_truncated(message, sizeof message, length);
  if (!saved.locks) say(level, message);
  else qn__text_add(&saved.kept, "%c%s%c", '0' + level, message, 0);
}

void qn__lock(pthread_mutex_t *lock)
{
  pthread_mutex_lock(lock);
  saved.locks++;
}

void qn__unlock(pthread_mutex_t *lock)
{
  pthread_mutex_unlock(lock);
  if (--saved.locks) return;
  qn_text kept = saved.kept;
  saved.kept = (qn_text){ 0 };
  for (size_t at = 0; at < kept.len; at += strlen(kept.s + at) + 1) say(kept.s[at] - '0', kept.s + at + 1);
  qn__free(kept.s);
}

/* ---- memory ------------------------------------------------------------------------------- */

atomic_long qn__alloc_count, qn__alloc_live, qn__fail_alloc_at;

/* Counts one allocation; true if a test wants it to fail. */
static bool count_allocation(void)
{
  atomic_fetch_add_explicit(&qn__alloc_count, 1, memory_order_relaxed);
  return atomic_load_explicit(&qn__fail_alloc_at, memory_order_relaxed) > 0
      && atomic_fetch_sub_explicit(&qn__fail_alloc_at, 1, memory_order_relaxed) == 1;
}

void *qn__alloc(size_t bytes)
{
  void *p = count_allocation() ? NULL : calloc(1, bytes ? bytes : 1);
  if (p) atomic_fetch_add_explicit(&qn__alloc_live, 1, memory_order_relaxed);
  return p;
}

void *qn__realloc(void *p, size_t old_bytes, size_t bytes)
{
  if (count_allocation()) return NULL;
  char *grown = realloc(p, bytes ? bytes : 1);
  if (grown && !p) atomic_fetch_add_explicit(&qn__alloc_live, 1, memory_order_relaxed);
  if (grown && bytes > old_bytes) memset(grown + old_bytes, 0, bytes - old_bytes);
  return grown;
}

void *qn__grown(void *list, int n, int *cap, size_t element_bytes)
{
  if (n < *cap) return list;
  const int more = *cap ? 2 * *cap : 16;
  void *grown = qn__realloc(list, (size_t)n * element_bytes, (size_t)more * element_bytes);
  if (grown) *cap = more;
  return grown;
}

char *qn__strdup(const char *s)
{
  size_t bytes = strlen(s) + 1;
  char *copy = qn__alloc(bytes);
  return copy ? memcpy(copy, s, bytes) : NULL;
}

void qn__free(void *p)
{
  if (p) atomic_fetch_sub_explicit(&qn__alloc_live, 1, memory_order_relaxed);
  free(p);
}

/* ---- text --------------------------------------------------------------------------------- */

static bool text_reserve(qn_text *t, size_t more)
{
  if (t->failed) return false;
  if (t->len + more <= t->cap) return true;
  size_t cap = t->cap ? 2 * t->cap : 256;
  while (cap < t->len + more) cap *= 2;
  char *s = qn__realloc(t->s, t->cap, cap);
  if (!s) {
    t->failed = true;
    return false;
  }
  t->s = s;
  t->cap = cap;
  return true;
}

void qn__text_add(qn_text *t, const char *format, ...)
{
  if (!text_reserve(t, 1)) return;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(t->s + t->len, t->cap - t->len, format, args);
  va_end(args);
  if (length < 0) return;
  if (t->len + (size_t)length >= t->cap) {
    t->s[t->len] = '\0';
    if (!text_reserve(t, (size_t)length + 1)) return;
    va_start(args, format);
    vsnprintf(t->s + t->len, t->cap - t->len, format, args);
    va_end(args);
  }
  t->len += (size_t)length;
}

/* A text that could not grow comes out empty: a truncated problem line would be another problem. */
size_t qn__text_out(qn_text *t, char *buffer, size_t bytes)
{
  size_t length = t->failed ? 0 : t->len;
  if (buffer && bytes) {
    size_t n = length < bytes ? length : bytes - 1;
    if (n) memcpy(buffer, t->s, n);
    buffer[n] = '\0';
  }
  qn__free(t->s);
  *t = (qn_text){ 0 };
  return length;
}

/* ---- the environment ------------------------------------------------------------------------------------------- */

const char *qn__screened(const char *name)
{
#ifdef HAVE_SECURE_GETENV
  return secure_getenv(name);
#else
  return getenv(name);
#endif
}
