/* buffer.c -- memory for one execution, guarded on all sides.
 *
 * A buffer is an image: guard, the tensor's span with its gaps, guard; filled with random bytes until elements are written, and
 * compared byte for byte afterwards, except an output's elements. On a CPU one side is adjacent to a protected page, so that
 * accesses beyond it fault at once: the end, as close as the alignment that the problem promises allows (at the page itself if
 * the size is a multiple of it), or the start. At the start half of the buffers leave one alignment's bytes between, and on a device
 * all do, so that their address is divisible by no larger power of two. A span of more than SPARSE bytes is reserved, not filled:
 * only its elements are written and checked. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "conform.h"

enum { GUARD = 4096 };
#define SPARSE ((size_t)64 << 20)

struct qc_buffer {
  qn_context *ctx;
  qn_value    q;                        /* for workspace: rank 1, bytes */
  size_t      bytes, before, total;     /* of the span; of what precedes it; of the whole image */
  char       *image;                    /* expected contents; NULL if sparse */
  char       *base;                     /* the memory: host pages, or the device's */
  char       *map;                      /* CPU: the mapping, including protected pages */
  size_t      mapped;
  void       *owned;                    /* device: from qn_alloc */
};

static void poison(char *p, size_t bytes, uint64_t seed)
{
  uint64_t i = 0;
  for (; (i + 1) * 8 <= bytes; i++) {
    uint64_t h = qc_hash(seed, 1234567, i);
    memcpy(p + i * 8, &h, 8);
  }
  uint64_t h = qc_hash(seed, 1234567, i);
  memcpy(p + i * 8, &h, bytes - i * 8);
}

/* Maps host pages with `total` usable bytes and protected pages around, the usable part adjacent to the chosen side. */
static bool map_pages(struct qc_buffer *b, int place, size_t alignment, uint64_t seed)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t body = (b->bytes + GUARD + 2 * alignment + page - 1) / page * page;
  b->mapped = body + 2 * page;
  b->map = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b->map == MAP_FAILED) {
    b->map = NULL;
    return false;
  }
  mprotect(b->map, page, PROT_NONE);
  mprotect(b->map + page + body, page, PROT_NONE);
  b->base = b->map + page;
  b->total = body;
  bool off = alignment < 256 && qc_hash(seed, 4321, b->bytes) & 1;
  b->before = place == QC_AT_START ? off * alignment : (body - b->bytes) / alignment * alignment;
  return true;
}

static bool map_device(struct qc_buffer *b, size_t alignment)
{
  b->total = b->bytes + 2 * GUARD + 2 * alignment;
  if (qn_alloc(b->ctx, b->total, &b->owned))
    return false;
  b->base = b->owned;
  b->before = GUARD + (alignment < 256 ? alignment : 0);        /* qn_alloc aligns to 256 */
  return true;
}

static struct qc_buffer *make(qn_context *ctx, const qn_value *q, size_t bytes, size_t alignment, int place, uint64_t seed)
{
  struct qc_buffer *b = qc_alloc(sizeof *b);
  b->ctx = ctx;
  b->q = *q;
  b->bytes = bytes;
  if (!(qc_w.cpu ? map_pages(b, place, alignment, seed) : map_device(b, alignment)))
    qc_tap_bail(qc_format("no memory for a buffer of %zu bytes", bytes));
  if (b->total <= SPARSE) {
    b->image = qc_alloc(b->total);
    poison(b->image, b->total, seed);
    if (qc_w.cpu)
      memcpy(b->base, b->image, b->total);
    else
      qn_copy_to_device(ctx, b->base, b->image, b->total);
  }
  return b;
}

struct qc_buffer *qc_buffer_make(qn_context *ctx, const qn_value *q, int place, uint64_t seed)
{
  size_t span = 0;
  for (int k = 0; k < q->rank; k++)
    span += (size_t)((q->dim[k] - 1) * q->stride[k]);
  span = qc_elements(q) ? (span + 1) * qn_dtype_bytes(q->dtype) : 0;
  return make(ctx, q, span, q->align ? q->align : qn_dtype_bytes(q->dtype), place, seed);
}

struct qc_buffer *qc_buffer_bytes(qn_context *ctx, size_t bytes, size_t used, int place, uint64_t seed)
{
  qn_value q = {.dtype = QN_U8, .rank = 1, .dim = {(int64_t)used}, .stride = {1}};
  return make(ctx, &q, bytes, 256, place, seed);
}

void qc_buffer_free(struct qc_buffer *b)
{
  if (!b)
    return;
  if (b->map)
    munmap(b->map, b->mapped);
  qn_free(b->ctx, b->owned);
  free(b->image);
  free(b);
}

void *qc_buffer_pointer(struct qc_buffer *b)
{
  return b->base + b->before;
}

/* A tensor's elements as lines of equal steps: dims that continue each other are taken together. The last one is the line. */
struct lines { int rank; int64_t dim[QN_MAX_RANK], stride[QN_MAX_RANK], index[QN_MAX_RANK], offset; };

static struct lines lines_of(const qn_value *q)
{
  struct lines l = {.rank = 1, .dim = {1}};
  for (int k = 0; k < q->rank; k++) {
    int last = l.rank - 1;
    if (q->dim[k] == 1)
      continue;
    if (l.dim[last] == 1 || l.stride[last] == q->dim[k] * q->stride[k])
      l.dim[last] *= q->dim[k];
    else
      l.dim[last = l.rank++] = q->dim[k];
    l.stride[last] = q->stride[k];
  }
  return l;
}

/* To the next line; after the last to the first. */
static void next_line(struct lines *l)
{
  for (int d = l->rank - 2; d >= 0; d--) {
    if (l->index[d] + 1 < l->dim[d]) {
      l->index[d]++;
      l->offset += l->stride[d];
      return;
    }
    l->offset -= l->index[d] * l->stride[d];
    l->index[d] = 0;
  }
}

/* n elements of `size` bytes, from these places in these steps. */
static void copy_line(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n, size_t size)
{
  if (to_step == (int64_t)size && from_step == (int64_t)size) {
    memcpy(to, from, (size_t)n * size);
    return;
  }
  for (int64_t i = 0; i < n; i++, to += to_step, from += from_step)
    switch (size) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    default: memcpy(to, from, size);
    }
}

void qc_buffer_write(struct qc_buffer *b, const void *raw)
{
  const int64_t size = (int64_t)qn_dtype_bytes(b->q.dtype), n = raw ? qc_elements(&b->q) : 0;
  char *at = b->image ? b->image + b->before : b->base + b->before;
  struct lines l = lines_of(&b->q);
  const int64_t line = l.dim[l.rank - 1], step = l.stride[l.rank - 1] * size;
  for (int64_t i = 0; i < n; i += line, next_line(&l)) {
    char *to = at + l.offset * size;
    const char *from = (const char *)raw + i * size;
    if (b->image || qc_w.cpu)
      copy_line(to, step, from, size, line, (size_t)size);
    else
      for (int64_t k = 0; k < line; k++)
        qn_copy_to_device(b->ctx, to + k * step, from + k * size, (size_t)size);
  }
  if (b->image && qc_w.cpu)
    memcpy(b->base, b->image, b->total);
  else if (b->image)
    qn_copy_to_device(b->ctx, b->base, b->image, b->total);
}

void qc_buffer_zero(struct qc_buffer *b)
{
  memset(b->image + b->before, 0, b->bytes);
  qc_buffer_write(b, NULL);
}

static bool differs(const struct qc_buffer *b, const char *now, char *why, size_t bytes)
{
  size_t i = 0;
  while (i < b->total && now[i] == b->image[i])
    i++;
  if (i == b->total)
    return false;
  long long at = (long long)i - (long long)b->before;
  if (at < 0)
    snprintf(why, bytes, "byte %lld before its start was written", -at);
  else if (at >= (long long)b->bytes)
    snprintf(why, bytes, "byte %lld past its end was written", at - (long long)b->bytes);
  else
    snprintf(why, bytes, "byte %lld of it was written, which is no element of an output", at);
  return true;
}

bool qc_buffer_check(struct qc_buffer *b, void *raw, bool writable, char *why, size_t bytes)
{
  const int64_t size = (int64_t)qn_dtype_bytes(b->q.dtype), n = qc_elements(&b->q);
  char *now = b->base;
  if (!qc_w.cpu && b->image) {
    now = qc_alloc(b->total);
    qn_copy_to_host(b->ctx, now, b->base, b->total);
  }
  struct lines l = lines_of(&b->q);
  const int64_t line = l.dim[l.rank - 1], step = l.stride[l.rank - 1] * size;
  for (int64_t i = 0; i < n && raw; i += line, next_line(&l)) {
    char *to = (char *)raw + i * size, *from = now + b->before + l.offset * size;
    if (b->image || qc_w.cpu)
      copy_line(to, size, from, step, line, (size_t)size);
    else
      for (int64_t k = 0; k < line; k++)
        qn_copy_to_host(b->ctx, to + k * size, from + k * step, (size_t)size);
  }
  bool ok = true;
  if (b->image) {
    l = lines_of(&b->q);                /* an output's elements may change: put the expected ones back, then compare */
    for (int64_t i = 0; i < n && writable; i += line, next_line(&l)) {
      int64_t at = (int64_t)b->before + l.offset * size;
      copy_line(now + at, step, b->image + at, step, line, (size_t)size);
    }
    ok = !memcmp(now, b->image, b->total) || !differs(b, now, why, bytes);
  }
  if (now != b->base)
    free(now);
  return ok;
}
