/* wrap.c -- standard output on a terminal: lines longer than it is wide are broken between words. Elsewhere lines stay whole, for grep.
 *
 * What is broken off goes below the text of a line's first column, if two spaces follow that within 32 characters, as in
 * "name    text", else below the line's own beginning or, if that is at the margin, four characters further in. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "info.h"

enum { LEAST_WIDTH = 40, COLUMN = 32 };
typedef struct line { int width; size_t n, room; char *text; } line;

static int indent_of(const char *text, int n)
{
  int margin = (int)strspn(text, " "), at = margin;
  for (; at + 2 < n && at < COLUMN; at++)
    if (text[at] == ' ' && text[at + 1] == ' ')
      return at + (int)strspn(text + at, " ");
  return margin ? margin : 4;
}

static void put(const line *l)
{
  const char *text = l->text;
  int rest = (int)l->n, indent = indent_of(text, rest), room = l->width;
  while (rest > room) {
    int cut = room;
    while (cut > 0 && text[cut] != ' ')
      cut--;
    if (cut <= (text == l->text ? indent : 0))        /* one word fills the line */
      for (cut = room; cut < rest && text[cut] != ' '; cut++)
        ;
    if (cut >= rest)
      break;
    dprintf(STDOUT_FILENO, "%.*s\n%*s", cut, text, indent, "");
    text += cut + 1;
    rest -= cut + 1;
    room = l->width - indent;
  }
  dprintf(STDOUT_FILENO, "%.*s\n", rest, text);
}

static ssize_t take(void *user, const char *bytes, size_t n)
{
  line *l = user;
  for (size_t i = 0; i < n; i++) {
    if (bytes[i] == '\n') {
      l->text[l->n] = '\0';
      put(l);
      l->n = 0;
      continue;
    }
    if (l->n + 2 > l->room) {
      char *text = realloc(l->text, 2 * l->room);
      if (!text)
        return 0;
      l->text = text;
      l->room *= 2;
    }
    l->text[l->n++] = bytes[i];
  }
  return (ssize_t)n;
}

void info_wrap_lines(void)
{
  static line l;
  struct winsize size;
  if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < LEAST_WIDTH)
    return;
  l.width = size.ws_col;
  l.text = malloc(l.room = 256);
  FILE *wrapped = l.text ? fopencookie(&l, "w", (cookie_io_functions_t){ .write = take }) : NULL;
  if (!wrapped)
    return;
  setvbuf(wrapped, NULL, _IOLBF, BUFSIZ);
  stdout = wrapped;
}
