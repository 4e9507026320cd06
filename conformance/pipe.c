/* pipe.c -- what a worker says to its parent on standard output, a line at a time:
 *
 *   N 812            points to come             S 17 conv.q:3 conv_forward ...   point 17 begins
 *   L 3 matmul/gemm  engine 3's name            E 4 3   the point's fourth step runs engine 3
 *   T note           for the point's name       Y key: value   what went wrong        R 3   engine 3 was reached
 *   D 17 ok          point 17 is done           C 3   engine 3, which nothing reached, is tried elsewhere
 *   M 3              one of them would take it  P 3 2 0   traits that engine 3 claims, and of them those compared
 *   X                all is done
 *   B text           the run ends here: why
 *
 * worker.c says what frames a point, the checks within one what stands here; parent.c reads it all. */
#include <stdarg.h>
#include <stdio.h>
#include "conform.h"

void qc_say_engine(int step, int index)
{
  printf("E %d %d\n", step, index);
  fflush(stdout);
}

void qc_say_note(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  printf("T ");
  vprintf(format, args);
  printf("\n");
  va_end(args);
}

void qc_say_fail(const char *key, const char *format, ...)
{
  char text[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (char *s = text; *s; s++)
    if (*s == '\n')
      *s = ' ';
  printf("Y %s: %s\n", key, text);
}
