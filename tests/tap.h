/* tap.h -- TAP output of a test program: one line per test, the plan at the end. */
#ifndef QUERN_TESTS_TAP_H
#define QUERN_TESTS_TAP_H
#include <stdarg.h>
#include <stdio.h>

static int tap_tests, tap_failures;

static inline void tap_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline int  tap_ok(int ok, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void tap_skip(const char *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void tap_note(const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  fputs("# ", stdout);
  vprintf(format, ap);
  putchar('\n');
  va_end(ap);
}

/* Returns ok, so that a failure can add details: if (!tap_ok(...)) tap_note(...). */
static inline int tap_ok(int ok, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  printf("%s %d - ", ok ? "ok" : "not ok", ++tap_tests);
  vprintf(format, ap);
  putchar('\n');
  fflush(stdout);
  va_end(ap);
  tap_failures += !ok;
  return ok;
}

static inline void tap_skip(const char *why, const char *format, ...)
{
  va_list ap;
  va_start(ap, format);
  printf("ok %d - ", ++tap_tests);
  vprintf(format, ap);
  printf(" # SKIP %s\n", why);
  va_end(ap);
}

/* Ends main: return tap_done(); */
static inline int tap_done(void)
{
  printf("1..%d\n", tap_tests);
  return tap_failures != 0;
}
#endif
