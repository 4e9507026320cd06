/* table.c -- the table on the terminal, the families' summary, the CSV. */
#include <errno.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bench.h"

enum { NAME_WIDTH = 44, ENGINE_WIDTH = 30 };

static const char *const class_name[] = { "tuned", "generic", "host" };

static void clipped(const char *text, int width)
{
  int n = (int)strlen(text);
  if (n <= width)
    printf("%-*s", width, text);
  else
    printf("%.*s...", width - 3, text);
}

/* Of the ceiling. A row's spread is the distance of its quartiles, of the median. */
static double share(const row *r, int side)
{
  return r->r[side].status || !r->floor_ns ? 0 : r->floor_ns / r->r[side].ns;
}

void report_head(const side *const s[], int n)
{
  printf("\n%-*s", NAME_WIDTH, "problem");
  for (int i = 0; i < n; i++)
    printf("  %-*.*s %10s %6s %6s", ENGINE_WIDTH, ENGINE_WIDTH, s[i]->spec, "us", "spread", "share");
  printf(n == 2 ? "  %8s\n" : "\n", "speed");
}

void report_row(const row *r)
{
  clipped(r->c->name, NAME_WIDTH);
  for (int i = 0; i < r->n; i++) {
    printf("  ");
    if (r->r[i].status) {
      clipped(r->r[i].status == QN_UNSUPPORTED ? "refused" : "failed", ENGINE_WIDTH);
      printf(" %10s %6s %6s", "-", "-", "-");
    } else {
      clipped(r->r[i].engine, ENGINE_WIDTH);
      printf(" %10.2f %5.0f%% %5.0f%%", r->r[i].ns / 1e3, 100 * (r->r[i].ns_q3 - r->r[i].ns_q1) / r->r[i].ns, 100 * share(r, i));
    }
  }
  printf(r->ratio > 0 ? "  %7.2fx\n" : "\n", r->ratio);
  for (int i = 0; i < r->n; i++)
    if (r->r[i].status)
      printf("    %s\n", r->r[i].why);
  fflush(stdout);
}

/* ---- groups: each op, and each family of several ops ------------------------------------------ */

typedef struct mean { double log_sum, least; int n; } mean;

static void mean_add(mean *m, double x)
{
  if (x <= 0)
    return;
  m->log_sum += log(x);
  m->least = !m->n || x < m->least ? x : m->least;
  m->n++;
}

static double geometric(const mean *m)
{
  return m->n ? exp(m->log_sum / m->n) : 0;
}

static void group(const char *label, const row *rows, int n_rows, const char *op, const char *family)
{
  mean ratio = { 0 }, of_ceiling[2] = { 0 };
  int members = 0, sides = rows[0].n;
  for (int i = 0; i < n_rows; i++) {
    const row *r = &rows[i];
    if ((op && strcmp(r->op, op)) || (family && strcmp(r->family, family)))
      continue;
    members++;
    mean_add(&ratio, r->ratio);
    for (int k = 0; k < sides; k++)
      mean_add(&of_ceiling[k], share(r, k));
  }
  printf("%-32s %5d", label, members);
  for (int k = 0; k < sides; k++)
    if (of_ceiling[k].n)
      printf("   share %5.0f%%", 100 * geometric(&of_ceiling[k]));
    else
      printf("   share %6s", "-");
  if (sides == 2 && ratio.n)
    printf("   speed %6.2fx  least %6.2fx  of %d", geometric(&ratio), ratio.least, ratio.n);
  else if (sides == 2)
    printf("   speed %7s  least %7s  of 0", "-", "-");
  putchar('\n');
}

static bool seen_before(const row *rows, int i, bool family)
{
  for (int j = 0; j < i; j++)
    if (!strcmp(family ? rows[j].family : rows[j].op, family ? rows[i].family : rows[i].op))
      return true;
  return false;
}

void report_groups(const row *rows, int n_rows, const side *const s[], int n)
{
  double traced[2] = { 0 };
  long calls = 0, lacking[2] = { 0 };
  if (!n_rows)
    return;
  printf("\n%-32s %5s   geometric means%s\n", "op or family", "rows", n == 2 ? "; speed: first side over second" : "");
  for (int i = 0; i < n_rows; i++)
    if (!seen_before(rows, i, false))
      group(rows[i].op, rows, n_rows, rows[i].op, NULL);
  for (int i = 0; i < n_rows; i++) {
    bool several = false;
    for (int j = i + 1; j < n_rows; j++)
      several |= !strcmp(rows[i].family, rows[j].family) && strcmp(rows[i].op, rows[j].op);
    if (several && !seen_before(rows, i, true)) {
      char label[64];
      snprintf(label, sizeof label, "all of %s", rows[i].family);
      group(label, rows, n_rows, NULL, rows[i].family);
    }
  }
  for (int i = 0; i < n_rows; i++) {
    calls += rows[i].c->count;
    for (int k = 0; k < n; k++)
      if (rows[i].r[k].status)
        lacking[k] += rows[i].c->count;
      else
        traced[k] += (double)rows[i].c->count * rows[i].r[k].ns;
  }
  if (calls > n_rows)                   /* a trace lists each plan's problem, once per run */
    for (int k = 0; k < n; k++) {
      printf("each of %ld plans once, on %s: %.3f ms", calls - lacking[k], s[k]->spec, traced[k] / 1e6);
      if (lacking[k])
        printf("; %ld more it did not take", lacking[k]);
      putchar('\n');
    }
}

/* ---- CSV ---------------------------------------------------------------------------------------- */

static void quoted(FILE *f, const char *text)
{
  fputc('"', f);
  for (; *text; text++) {
    if (*text == '"')
      fputc('"', f);
    fputc(*text, f);
  }
  fputc('"', f);
}

static void csv_side(FILE *f, const side *s, const row *r, int i)
{
  const result *x = &r->r[i];
  fputc(',', f);
  quoted(f, s->spec);
  fputc(',', f);
  quoted(f, x->status ? x->why : x->engine);
  if (x->status) {
    fputc(',', f);
    quoted(f, qn_status_text(x->status));
    fprintf(f, ",,,,,,,");
    return;
  }
  fprintf(f, ",%s,%.1f,%.1f,%.1f,%.4f,%.2f,%.2f,%.3f", class_name[x->class_], x->ns, x->ns_q1, x->ns_q3, share(r, i),
          r->cost.flops / x->ns, r->cost.bytes / x->ns, x->first_ms);
}

static bool csv_write(FILE *f, const row *rows, int n_rows, const side *const s[], int n)
{
  fprintf(f, "file,line,name,family,op,calls,flops,bytes,sets,binds");
  for (int k = 1; k <= n; k++)
    fprintf(f, ",side%d,engine%d,class%d,ns%d,q1_%d,q3_%d,share%d,gflops%d,gbs%d,first_ms%d", k, k, k, k, k, k, k, k, k, k);
  fprintf(f, "%s,problem\n", n == 2 ? ",speed" : "");
  for (int i = 0; i < n_rows; i++) {
    const row *r = &rows[i];
    quoted(f, r->c->file);
    fprintf(f, ",%d,", r->c->line);
    quoted(f, r->c->name);
    fprintf(f, ",%s,%s,%ld,%.0f,%.0f,%d,%s", r->family, r->op, r->c->count, r->cost.flops, r->cost.bytes, r->sets,
            r->binds);
    for (int k = 0; k < n; k++)
      csv_side(f, s[k], r, k);
    if (n == 2)
      fprintf(f, r->ratio > 0 ? ",%.4f" : ",", r->ratio);
    fputc(',', f);
    quoted(f, r->c->text);
    fputc('\n', f);
  }
  return !ferror(f);
}

bool writable(const char *option, const char *path)
{
  char folder[4096];
  struct stat st;
  snprintf(folder, sizeof folder, "%s", path);
  bool here = !stat(path, &st), is_folder = here && S_ISDIR(st.st_mode);
  if (*path && !is_folder && !(here ? access(path, W_OK) : access(dirname(folder), W_OK | X_OK)))
    return true;
  fprintf(stderr, "quern-bench: %s: cannot write %s: %s\n", option, path, strerror(is_folder ? EISDIR : errno));
  return false;
}

/* A regular file is written beside its path and renamed, so that nobody reads half of it; a device or pipe is written directly. */
bool report_csv(const char *path, const row *rows, int n_rows, const side *const s[], int n)
{
  char temporary[4096];
  struct stat st;
  bool beside = stat(path, &st) || S_ISREG(st.st_mode);
  snprintf(temporary, sizeof temporary, beside ? "%s.tmp" : "%s", path);
  FILE *f = fopen(temporary, "w");
  bool good = f && csv_write(f, rows, n_rows, s, n);
  if (f && fclose(f))
    good = false;
  if (good && beside && rename(temporary, path))
    good = false;
  if (!good) {
    fprintf(stderr, "quern-bench: cannot write %s: %s\n", path, strerror(errno));
    if (beside)
      remove(temporary);
  }
  return good;
}
