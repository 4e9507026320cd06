/* cuda_code.c -- reads kernels' attributes from nvcc's fat binaries: of machine code from its ELF file, of PTX from its text. Images
 * may be compressed by zstd, whose library is loaded if present. */
#include <dlfcn.h>
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "cuda_code.h"

enum { MOST_IMAGES = 8 };

typedef struct image {
  bool   ptx, read;
  int    arch;                          /* 90 */
  const uint8_t *bytes;
  size_t packed, size;                  /* size: uncompressed */
  code  *of;
  size_t n;
} image;

struct module { image image[MOST_IMAGES]; int n; };

static char cannot_read[256];

const char *code_unread(void) { return cannot_read; }

/* -- packed images -- */

static uint8_t *unpack(const image *m)
{
  static size_t (*decompress)(void *, size_t, const void *, size_t);
  uint8_t *to = malloc(m->size + 1);
  if (!to) abort();
  to[m->size] = 0;
  if (!m->packed) {
    memcpy(to, m->bytes, m->size);
    return to;
  }
  void *library = decompress ? NULL : dlopen("libzstd.so.1", RTLD_NOW);
  if (library) *(void **)&decompress = dlsym(library, "ZSTD_decompress");
  if (!decompress) snprintf(cannot_read, sizeof cannot_read, "the kernels' code is compressed, and libzstd.so.1 is not here");
  else if (decompress(to, m->size, m->bytes, m->packed) == m->size) return to;
  else snprintf(cannot_read, sizeof cannot_read, "the kernels' code is compressed in a way that is not read here");
  free(to);
  return NULL;
}

/* -- machine code: an ELF file, with the attributes of NAME in section .nv.info.NAME, its shared memory in .nv.shared.NAME -- */

static code *code_named(image *m, const char *name, size_t length)
{
  for (size_t i = 0; i < m->n; i++)
    if (strlen(m->of[i].name) == length && !memcmp(m->of[i].name, name, length)) return &m->of[i];
  m->of = grown(m->of, m->n, sizeof *m->of);
  code *c = &m->of[m->n++];
  *c = (code){ .name = strndup(name, length) };
  return c;
}

enum { ATTRIBUTE_THREADS = 0x05, ATTRIBUTE_EXACT_THREADS = 0x10, ATTRIBUTE_PARAMETER = 0x17, ATTRIBUTE_REGISTERS = 0x2f };

static uint32_t word(const uint8_t *p)
{
  uint32_t w;
  memcpy(&w, p, sizeof w);
  return w;
}

/* For one kernel, or (c NULL) for all. An attribute is a format, a kind, and two bytes: the value or (format 4) its length. */
static void read_attributes(image *m, code *c, const uint8_t *at, size_t bytes, const char *names, const Elf64_Sym *symbol)
{
  for (const uint8_t *end = at + bytes; at + 4 <= end;) {
    const uint32_t form = at[0], kind = at[1], length = form == 4 ? word(at) >> 16 : 0;
    const uint8_t *value = at + 4;
    at = value + length;
    if (at > end || form != 4) continue;
    if (!c && kind == ATTRIBUTE_REGISTERS) {
      const char *name = names + symbol[word(value)].st_name;
      code_named(m, name, strlen(name))->registers = (int)word(value + 4);
    }
    if (!c) continue;
    if (kind == ATTRIBUTE_THREADS) c->threads = (int)(word(value) * word(value + 4) * word(value + 8));
    if (kind == ATTRIBUTE_EXACT_THREADS) c->exactly = (int)(word(value) * word(value + 4) * word(value + 8));
    if (kind == ATTRIBUTE_PARAMETER) {
      const int i = (int)(word(value + 4) & 0xffff);
      if (i >= MOST_PARAMETERS) continue;
      c->parameter[i].offset = (int)(word(value + 4) >> 16);
      c->parameter[i].size = (int)(word(value + 8) >> 18);
      if (c->parameters <= i) c->parameters = i + 1;
    }
  }
}

static void read_elf(image *m, const uint8_t *file)
{
  static const char info[] = ".nv.info.", shared[] = ".nv.shared.";
  const Elf64_Ehdr *head = (const void *)file;
  const Elf64_Shdr *section = (const void *)(file + head->e_shoff);
  const char *names = (const char *)file + section[head->e_shstrndx].sh_offset, *symbols = NULL;
  const Elf64_Sym *symbol = NULL;
  for (int i = 0; i < head->e_shnum; i++)
    if (section[i].sh_type == SHT_SYMTAB) {
      symbol = (const void *)(file + section[i].sh_offset);
      symbols = (const char *)file + section[section[i].sh_link].sh_offset;
    }
  for (int i = 0; i < head->e_shnum && symbol; i++) {
    const char *name = names + section[i].sh_name;
    const uint8_t *at = file + section[i].sh_offset;
    if (!strcmp(name, ".nv.info")) read_attributes(m, NULL, at, section[i].sh_size, symbols, symbol);
    else if (!strncmp(name, info, sizeof info - 1))
      read_attributes(m, code_named(m, name + sizeof info - 1, strlen(name + sizeof info - 1)), at, section[i].sh_size, symbols, symbol);
    else if (!strncmp(name, shared, sizeof shared - 1) && strncmp(name, ".nv.shared.reserved", 19)) {
      /* from 9.0 on the system's reserved part comes first */
      const int bytes = (int)section[i].sh_size, systems = m->arch >= 90 && bytes ? 1024 : 0;
      code_named(m, name + sizeof shared - 1, strlen(name + sizeof shared - 1))->local = bytes - systems;
    }
  }
}

/* -- PTX: its text; the device's compiler chooses registers, within the launch bounds -- */

static size_t word_length(const char *s) { return strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$"); }

/* Bytes declared by ".shared .align 16 .b8 name[512];" (s: its first word); and the name. For an extern one 0. */
static int declared(const char *s, const char **name)
{
  const char *end = s + strcspn(s, ";\n"), *open = memchr(s, '[', (size_t)(end - s)), *type = strstr(s, " .b");
  if (!type || type > end) type = strstr(s, " .u");
  if (!type || type > end) type = strstr(s, " .f");
  if (!type || type > end) return 0;
  *name = type + 1 + strcspn(type + 1, " \t") + 1;
  return atoi(type + 3) / 8 * (open ? atoi(open + 1) : 1);
}

static void read_entry(image *m, const char *text, const char *entry)
{
  const char *name = entry + strlen(".entry ");
  const char *body = strchr(name, '{'), *end = body ? strstr(body, "\n}") : NULL, *bound;
  if (!end) return;
  code *c = code_named(m, name, word_length(name));
  int x, y = 1, z = 1, offset = 0;
  if ((bound = strstr(name, ".maxntid")) && bound < body && sscanf(bound, ".maxntid %d, %d, %d", &x, &y, &z) >= 1) c->threads = x * y * z;
  if ((bound = strstr(name, ".reqntid")) && bound < body && sscanf(bound, ".reqntid %d, %d, %d", &x, &y, &z) >= 1) c->exactly = x * y * z;
  for (const char *p = name; (p = strstr(p, ".param ")) && p < body; p++) {
    const char *align = strstr(p, ".align "), *stop = p + strcspn(p, ",\n"), *open = memchr(p, '[', (size_t)(stop - p));
    int size = open ? atoi(open + 1) : 0, unit = align && align < stop ? atoi(align + 7) : 0;
    if (!open) size = unit = atoi(p + strlen(".param .u")) / 8;
    if (c->parameters == MOST_PARAMETERS || !unit) break;
    offset = (offset + unit - 1) / unit * unit;
    c->parameter[c->parameters].offset = offset;
    c->parameter[c->parameters++].size = size;
    offset += size;
  }
  for (const char *p = text; (p = strstr(p, ".shared ")) && p < end; p++) {       /* its own, and the file's variables that it names */
    const char *variable = NULL;
    const bool outside = p < entry, begins = p == text || p[-1] == '\n' || p[-1] == '\t' || !strncmp(p - 6, ".weak ", 6);
    const int bytes = begins && (outside || p > body) ? declared(p, &variable) : 0;
    if (!bytes) continue;
    char *named = strndup(variable, word_length(variable));
    const char *use = outside ? strstr(body, named) : body;
    if (use && use < end) c->local += bytes;
    free(named);
  }
}

static void read_ptx(image *m, const char *text)
{
  for (const char *p = text; (p = strstr(p, ".entry ")); p++) read_entry(m, text, p);
}

/* -- the image that a device takes: machine code of its generation, else PTX that is not newer -- */

static const image *chosen(const module *m, int major, int minor)
{
  const image *best = NULL;
  for (int i = 0; i < m->n; i++) {
    const image *c = &m->image[i];
    const bool fits = c->ptx ? c->arch <= 10 * major + minor : c->arch / 10 == major && c->arch % 10 <= minor;
    if (fits && (!best || best->ptx > c->ptx || (best->ptx == c->ptx && best->arch < c->arch))) best = c;
  }
  return best;
}

static const code *read_code(image *m, const char *name)
{
  uint8_t *file = m->read ? NULL : unpack(m);
  if (file && m->ptx) read_ptx(m, (const char *)file);
  else if (file) read_elf(m, file);
  free(file);
  m->read = true;
  for (size_t i = 0; i < m->n; i++)
    if (!strcmp(m->of[i].name, name)) return &m->of[i];
  return NULL;
}

const code *code_in(module *m, const char *name, int major, int minor)
{
  const image *taken = chosen(m, major, minor);
  return taken ? read_code((image *)taken, name) : NULL;
}

int arch_in(const module *m, int major, int minor)
{
  const image *taken = chosen(m, major, minor);
  return taken ? taken->arch : 0;
}

int registers_in(module *m, const char *name, const code *c)
{
  for (int i = 0; i < m->n && !c->registers; i++) {
    image *of = &m->image[i];
    const code *other = of->ptx ? NULL : read_code(of, name);
    if (other && (!c->threads || other->registers * c->threads <= REGISTERS)) return other->registers;
  }
  return c->registers;
}

/* -- the fat binary: a head, then an entry before each image -- */

typedef struct fat_head { uint32_t magic; uint16_t version, head; uint64_t bytes; } fat_head;
typedef struct fat_entry {
  uint16_t kind, version;               /* kind 1: PTX; 2: machine code */
  uint32_t head;
  uint64_t bytes;
  uint32_t packed, unused;
  uint16_t minor, major;
  uint32_t arch;
  uint64_t name, flags, zero, size;     /* size: uncompressed; 0: not compressed */
} fat_entry;

module *module_of(const void *fat_binary)
{
  module *m = calloc(1, sizeof *m);
  const uint8_t *data = fat_binary;
  fat_head head;
  if (!m) abort();
  memcpy(&head, data, sizeof head);
  if (head.magic != 0xba55ed50u) snprintf(cannot_read, sizeof cannot_read, "the kernels' code is in a form that is not read here");
  for (size_t at = head.head; head.magic == 0xba55ed50u && at < head.head + head.bytes && m->n < MOST_IMAGES;) {
    fat_entry e;
    memcpy(&e, data + at, sizeof e);
    m->image[m->n++] = (image){ .ptx = e.kind == 1, .arch = (int)e.arch, .bytes = data + at + e.head, .packed = e.size ? e.packed : 0,
                                .size = e.size ? e.size : e.bytes };
    at += e.head + e.bytes;
  }
  return m;
}
