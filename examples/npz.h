/* npz.h -- reads arrays of float32 from NumPy's .npz: a ZIP archive of .npy files, each a header in words and then the elements.
 *
 * Takes what numpy.savez writes: entries that are stored, not compressed; elements little-endian, rows first. Refuses the rest by a
 * sentence. Nothing in the file is trusted: every offset and size is checked against the file's length. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct npz { unsigned char *bytes; size_t size; char error[256]; } npz;
typedef struct npz_array { const unsigned char *data; int rank; long dims[4]; } npz_array;      /* data: as it lies in the file */

static unsigned long npz_number(const unsigned char *p, int bytes)
{
  unsigned long n = 0;
  while (bytes--) n = n << 8 | p[bytes];
  return n;
}

/* The whole file in memory; 0, or -1 with z->error set. Free z->bytes afterwards. */
static int npz_open(npz *z, const char *path)
{
  FILE *f = fopen(path, "rb");
  *z = (npz){ 0 };
  if (!f) {
    snprintf(z->error, sizeof z->error, "cannot be read");
    return -1;
  }
  for (size_t room = 1 << 16, n = 1; n; room *= 2) {
    unsigned char *more = realloc(z->bytes, room);
    if (!more) break;
    z->bytes = more;
    n = fread(z->bytes + z->size, 1, room - z->size, f);
    z->size += n;
    if (z->size < room) break;
  }
  const int failed = ferror(f) || !feof(f);
  fclose(f);
  if (!failed && z->size >= 22) return 0;
  snprintf(z->error, sizeof z->error, failed ? "cannot be read to its end" : "is no .npz: it has %zu bytes", z->size);
  return -1;
}

/* The header's dims, from the text between the parentheses behind 'shape'. */
static int npz_dims(const char *header, npz_array *a)
{
  const char *at = strstr(header, "'shape': (");
  if (!at) return -1;
  at += strlen("'shape': (");
  for (a->rank = 0; *at != ')'; a->rank++) {
    char *end;
    if (a->rank == 4) return -1;
    a->dims[a->rank] = strtol(at, &end, 10);
    if (end == at || a->dims[a->rank] < 1 || a->dims[a->rank] > 1 << 24) return -1;
    at = end + strspn(end, ", ");
  }
  return 0;
}

/* One .npy file within the archive. */
static int npz_parse(npz *z, const char *name, const unsigned char *p, size_t size, npz_array *a)
{
  char header[1024];
  const size_t fixed = size > 6 && p[6] == 1 ? 10 : 12, length = size > fixed ? npz_number(p + 8, fixed == 10 ? 2 : 4) : 0;
  if (size < fixed || memcmp(p, "\x93NUMPY", 6) || length > size - fixed || length >= sizeof header) {
    snprintf(z->error, sizeof z->error, "%.64s is no array of NumPy's", name);
    return -1;
  }
  memcpy(header, p + fixed, length);
  header[length] = '\0';
  size_t bytes = 4;
  const int bad = npz_dims(header, a);
  for (int d = 0; !bad && d < a->rank; d++) bytes = bytes > size ? bytes : bytes * (size_t)a->dims[d];
  if (bad || !strstr(header, "'descr': '<f4'") || !strstr(header, "'fortran_order': False") || bytes != size - fixed - length) {
    snprintf(z->error, sizeof z->error, "%.64s is not float32 with rows first and all its elements, but %.120s", name, header);
    return -1;
  }
  a->data = p + fixed + length;
  return 0;
}

/* Finds the array `name`; 0, or -1 with z->error set. */
static int npz_find(npz *z, const char *name, npz_array *a)
{
  const unsigned char *end = NULL;
  for (size_t back = 22; back <= z->size && back < 22 + 65536 && !end; back++)          /* the record behind the list of entries */
    if (!memcmp(z->bytes + z->size - back, "PK\5\6", 4)) end = z->bytes + z->size - back;
  if (!end) {
    snprintf(z->error, sizeof z->error, "is no .npz: it has no list of entries");
    return -1;
  }
  size_t at = npz_number(end + 16, 4);
  for (unsigned long i = npz_number(end + 10, 2); i; i--) {
    const unsigned char *entry = z->bytes + at;
    if (at > z->size || z->size - at < 46 || memcmp(entry, "PK\1\2", 4)) break;
    const size_t letters = npz_number(entry + 28, 2), beside = npz_number(entry + 30, 2) + npz_number(entry + 32, 2);
    const size_t size = npz_number(entry + 24, 4), local = npz_number(entry + 42, 4);
    if (letters + beside > z->size - at - 46) break;
    if (letters == strlen(name) + 4 && !memcmp(entry + 46, name, letters - 4) && !memcmp(entry + 46 + letters - 4, ".npy", 4)) {
      if (npz_number(entry + 10, 2)) {
        snprintf(z->error, sizeof z->error, "%.64s is compressed; write the file by numpy.savez, not savez_compressed", name);
        return -1;
      }
      if (local > z->size || z->size - local < 30) break;
      const size_t skip = 30 + npz_number(z->bytes + local + 26, 2) + npz_number(z->bytes + local + 28, 2);
      if (skip > z->size - local || size > z->size - local - skip) break;
      return npz_parse(z, name, z->bytes + local + skip, size, a);
    }
    at += 46 + letters + beside;
  }
  snprintf(z->error, sizeof z->error, "has no array %.64s, or is damaged", name);
  return -1;
}
