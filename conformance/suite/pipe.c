/* pipe.c -- what a worker says to its parent on standard output, a line at a time:
 *
 *   N 812            points to come             S 17 conv.q:3 conv_forward ...   point 17 begins
 *   L 3 matmul/gemm  engine 3's name            E 4 3   the point's fourth step runs engine 3
 *   T note           for the point's name       Y key: value   a failure            R 3   engine 3 was reached
 *   D 17 ok          point 17 is done           C 3   engine 3, which no case reached, is tried on device models
 *   M 3              one of them would take it  P 3 2 0   traits that engine 3 claims, and those of them compared
 *   X                that trial is done
 *   B text           bail out: why
 *
 * One that lists sends N, L and S and ends. One that runs does what standard input says until that ends: "17 0", run point 17; "17 4", its
 * engines from the fifth step on; numbers beyond the points are engines, to be tried. worker.c sends what frames a point, the checks inside
 * a point the rest; parent.c reads it all. */
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
