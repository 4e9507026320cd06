/* cuda_code.h -- what nvcc made of kernels: their attributes, read out of the fat binaries that it leaves in objects (cuda_code.c). */
#ifndef QUERN_TESTS_CUDA_CODE_H
#define QUERN_TESTS_CUDA_CODE_H
#include <stddef.h>
#include <stdlib.h>

enum { MOST_PARAMETERS = 16, REGISTERS = 65536 };   /* registers: of a block */

typedef struct code {                   /* a kernel, as one architecture has it */
  char *name;
  int   registers;                      /* 0: not known; PTX is compiled on the device */
  int   threads, exactly;               /* most of a block, by its launch bounds; what a block must have; 0: not stated */
  int   local;                          /* bytes of shared memory of its own */
  int   parameters;
  struct { int offset, size; } parameter[MOST_PARAMETERS];
} code;

typedef struct module module;           /* a fat binary */

module     *module_of(const void *fat_binary);
/* Of the image that a device of this capability takes: machine code of its generation, else PTX of none that is newer. NULL: none. */
const code *code_in(module *m, const char *name, int major, int minor);
int         arch_in(const module *m, int major, int minor);       /* that image's; 90 */
/* PTX becomes what the device's compiler makes of it: the registers are taken to be those of what machine code there is. */
int         registers_in(module *m, const char *name, const code *c);
const char *code_unread(void);          /* why code could not be read; "": it could */

static inline void *grown(void *p, size_t n, size_t bytes)     /* of n members, where n is a power of two or 0: room for as many more */
{
  if (n & (n - 1)) return p;
  p = realloc(p, (n ? 2 * n : 1) * bytes);
  if (!p) abort();
  return p;
}

#endif
