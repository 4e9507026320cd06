/* plot.c -- a bar chart by gnuplot, one bar per problem: the speed of one side relative to the other, or the share of the ceiling. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "bench.h"

static const char *terminal_for(const char *path)
{
  const char *dot = strrchr(path, '.');
  if (dot && !strcmp(dot, ".svg"))
    return "svg size 1000,%d dynamic font 'sans,11' background '#ffffff'";
  if (dot && !strcmp(dot, ".png"))
    return "pngcairo size 1000,%d font 'sans,10'";
  return NULL;
}

/* Prints one field of gnuplot's data: quoted, without characters that its enhanced text treats as markup. */
static void field(FILE *f, const char *text)
{
  fputc('"', f);
  for (int n = 0; *text && n < 42; text++, n++)
    fputc(*text == '"' || *text == '\\' ? ' ' : *text, f);
  fputc('"', f);
}

static double height(const row *r, int n)
{
  if (n == 2)
    return r->ratio;
  return r->r[0].status || !r->floor_ns ? 0 : r->floor_ns / r->r[0].ns;
}

static void script(FILE *f, const char *path, const char *terminal, const row *rows, int n_rows, const side *const s[],
                   int n)
{
  char term[160];
  snprintf(term, sizeof term, terminal, 120 + 20 * n_rows);
  fprintf(f, "set terminal %s\nset output '", term);
  for (const char *c = path; *c; c++)
    fputs(*c == '\'' ? "''" : (char[]){ *c, 0 }, f);
  fprintf(f, "'\nset termoption noenhanced\nunset key\nset grid x\nset style fill solid 0.8\n");
  fprintf(f, "set yrange [%g:-0.8]\nset xrange [0:*]\nset lmargin 46\n", n_rows - 0.2);
  if (n == 2)
    fprintf(f, "set title \"speed of %s over %s\"\nset arrow from 1, graph 0 to 1, graph 1 nohead dt 2 front\n", s[0]->spec,
            s[1]->spec);
  else
    fprintf(f, "set title \"%s: share of the measured ceiling\"\n", s[0]->spec);
  fprintf(f, "plot '-' using ($2/2):0:($2/2):(0.35):ytic(1) with boxxyerror lc rgb '#3465a4'\n");
  for (int i = 0; i < n_rows; i++) {
    field(f, rows[i].c->name);
    fprintf(f, " %g\n", height(&rows[i], n));
  }
  fprintf(f, "e\n");
}

bool plottable(const char *path)
{
  if (!terminal_for(path)) {
    fprintf(stderr, "quern-bench: --plot wants a name that ends in .svg or .png, not %s\n", path);
    return false;
  }
  if (system("command -v gnuplot > /dev/null 2>&1")) {
    fprintf(stderr, "quern-bench: --plot needs gnuplot, which is not installed (Debian, Ubuntu: gnuplot-nox)\n");
    return false;
  }
  return writable("--plot", path);
}

bool plot(const char *path, const row *rows, int n_rows, const side *const s[], int n)
{
  FILE *f = popen("gnuplot", "w");
  if (!f) {
    fprintf(stderr, "quern-bench: gnuplot cannot be started\n");
    return false;
  }
  script(f, path, terminal_for(path), rows, n_rows, s, n);
  int status = pclose(f);
  if (status) {
    fprintf(stderr, "quern-bench: gnuplot failed to write %s\n", path);
    return false;
  }
  return true;
}
