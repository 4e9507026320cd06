/* fuzz_tune.c -- any bytes as a tune cache file: it is read, or left alone with a warning, and what was read is written back
 * so that it reads the same. */
#include "config.h"
#include <sys/mman.h>
#include "../core/tuning/tune_cache.c"      /* for its static functions; libcore's copy is then not linked */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void forget(table *t)
{
  for (int i = 0; i < BUCKETS; i++)
    for (entry *e = t->bucket[i], *next; e; e = next) {
      next = e->next;
      qn__free(e->key);
      qn__free(e->choice);
      qn__free(e->version);
      qn__free(e);
    }
  memset(t->bucket, 0, sizeof t->bucket);
  t->n = 0;
}

static void quiet(void *user, int level, const char *message) { (void)user, (void)level, (void)message; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static table first, again;
  static char path[64];
  static int file = -1;
  if (file < 0) {
    if ((file = memfd_create("tune", 0)) < 0) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    first.path = again.path = path;
    qn_set_log(quiet, NULL);
  }
  if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size) abort();
  bool ours = read_file(&first);
  if (!ours && first.n) abort();
  for (int i = 0; i < BUCKETS; i++)
    for (const entry *e = first.bucket[i]; e; e = e->next)
      if (!(e->ns > 0) || strchr(e->key, '\n') || strchr(e->choice, '\t') || strchr(e->version, '\t')) abort();
  qn_text text = {0};
  print_entries(&first, &text);
  if (text.failed || ftruncate(file, 0) || pwrite(file, text.s, text.len, 0) != (ssize_t)text.len) abort();
  qn__free(text.s);
  if (!read_file(&again)) abort();
  for (int i = 0; i < BUCKETS; i++)
    for (const entry *e = first.bucket[i]; e; e = e->next) {
      const entry *same = find(&again, e->key);
      if (!same || strcmp(same->choice, e->choice) || strcmp(same->version, e->version)) abort();
    }
  forget(&first);
  forget(&again);
  return 0;
}
