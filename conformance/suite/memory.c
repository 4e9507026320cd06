/* memory.c -- allocation and formatted text; without memory the suite bails out. */
#include <stdarg.h>
#include <stdlib.h>
#include "conform.h"

void *qc_alloc(size_t bytes)
{
  void *p = calloc(1, bytes ? bytes : 1);
  if (!p)
    qc_tap_bail("the suite ran out of memory");
  return p;
}

char *qc_format(const char *format, ...)
{
  char *text = NULL;
  va_list args;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0)
    qc_tap_bail("the suite ran out of memory");
  va_end(args);
  return text;
}
