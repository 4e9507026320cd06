/* output.h -- shared by quern-info, quern-conform and quern-bench: a report that could not be written is a failure. */
#ifndef QUERN_OUTPUT_H
#define QUERN_OUTPUT_H
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void output_close(void)
{
  int lost = ferror(stdout);
  errno = 0;
  if (!fclose(stdout) && !lost)
    return;
  fprintf(stderr, "%s: standard output cannot be written%s%s\n", program_invocation_short_name, errno ? ": " : "",
          errno ? strerror(errno) : "");
  _exit(2);
}

/* To be called first in main: exit() then ends with status 2 if standard output failed, however the program ends. */
static inline void output_guard(void)
{
  atexit(output_close);
}

#endif
