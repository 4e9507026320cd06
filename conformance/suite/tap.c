/* tap.c -- TAP version 13 on standard output, which nothing else uses; the progress line on standard error if a terminal. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "conform.h"

static int planned, points, failed, hidden;

static void clear_progress(void)
{
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr);
}

void qc_tap_begin(int n)
{
  planned = n;
  puts("TAP version 13");
  fflush(stdout);
}

void qc_tap_end(void)
{
  if (hidden)
    qc_tap_comment("%d more skipped; --skips prints them", hidden);
  printf("1..%d\n", points);
  fflush(stdout);
}

/* '#' begins a directive and '\' escapes, so both are escaped in a name. */
static void print_name(const char *name)
{
  for (const char *s = name; *s; s++) {
    if (*s == '#' || *s == '\\')
      putchar('\\');
    putchar(*s == '\n' ? ' ' : *s);
  }
}

void qc_tap_point(bool ok, const char *name, const char *directive)
{
  if (ok && directive && !qc_opt.skips && !qc_opt.line) {
    hidden++;
    return;
  }
  if (!ok || isatty(STDOUT_FILENO))
    clear_progress();
  failed += !ok;
  printf("%s %d - ", ok ? "ok" : "not ok", ++points);
  print_name(name);
  if (directive)
    printf(" # %s", directive);
  putchar('\n');
  fflush(stdout);
}

void qc_tap_yaml(const char *text)
{
  if (!*text)
    return;
  printf("  ---\n");
  for (const char *s = text; *s;) {
    size_t n = strcspn(s, "\n");
    printf("  %.*s\n", (int)n, s);
    s += n + (s[n] == '\n');
  }
  printf("  ...\n");
  fflush(stdout);
}

void qc_tap_comment(const char *format, ...)
{
  va_list args;
  va_start(args, format);
  printf("# ");
  vprintf(format, args);
  putchar('\n');
  va_end(args);
  fflush(stdout);
}

void qc_tap_bail(const char *why)
{
  clear_progress();
  printf("Bail out! %s\n", why);
  fflush(stdout);
  exit(2);
}

int qc_tap_failed(void)
{
  return failed + (planned >= 0 && planned != points + hidden);
}

void qc_tap_progress(const char *text)
{
  static int last_percent = -1;
  int percent = planned > 0 ? 100 * (points + hidden) / planned : 0;
  if (!isatty(STDERR_FILENO) || (percent == last_percent && failed == 0))
    return;
  last_percent = percent;
  fprintf(stderr, "\r\033[K%3d%%  %d of %d, %d failed  %.60s", percent, points + hidden, planned, failed, text);
}
