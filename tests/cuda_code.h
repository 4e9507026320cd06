/* cuda_code.h -- kernels' attributes as compiled by nvcc, read from the fat binaries in object files (cuda_code.c). */
#ifndef QUERN_TESTS_CUDA_CODE_H
#define QUERN_TESTS_CUDA_CODE_H
#include <stddef.h>
#include <stdlib.h>

enum { MOST_PARAMETERS = 16, REGISTERS = 65536 };   /* REGISTERS: per block */

typedef struct code {                   /* a kernel, for one architecture */
  char *name;
  int   registers;                      /* 0: unknown; PTX is compiled on the device */
  int   threads, exactly;               /* block size: maximum by launch bounds; required; 0: not stated */
  int   local;                          /* bytes of static shared memory */
  int   parameters;
  struct { int offset, size; } parameter[MOST_PARAMETERS];
} code;

typedef struct module module;           /* a fat binary */

module     *module_of(const void *fat_binary);
/* From the image that a device of this capability takes: machine code of its generation, else PTX that is not newer. NULL: none. */
const code *code_in(module *m, const char *name, int major, int minor);
int         arch_in(const module *m, int major, int minor);       /* that image's; 90 */
/* PTX is compiled on the device: assumes the registers of the machine code that is present. */
int         registers_in(module *m, const char *name, const code *c);
const char *code_unread(void);          /* why code could not be read; "" if it could */

static inline void *grown(void *p, size_t n, size_t bytes)     /* of n members, n a power of two or 0: makes room for as many more */
{
  if (n & (n - 1)) return p;
  p = realloc(p, (n ? 2 * n : 1) * bytes);
  if (!p) abort();
  return p;
}

#endif
