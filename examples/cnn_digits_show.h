/* cnn_digits_show.h -- digits as characters, each with what was read, and plans as lines. Include cnn_digits_data.h and quern.h first. */

enum { SHOWN_ACROSS = 4, READ_SHOWN = 4, MISREAD_SHOWN = 8 };

/* The characters go from paper to ink; two make one pixel, as they are higher than wide. */
static void show_row(const digits *d, const int *read, const int *which, int n)
{
  static const char ink[] = " .:-=+*#%@";
  for (int y = 0; y < 8; y++) {
    for (int i = 0; i < n; i++) {
      printf("  ");
      for (int x = 0; x < 8; x++) {
        char c = ink[(int)((d->image[which[i]][y * 8 + x] * 6.0f + 4.9f) * 9.0f / 16.0f + 0.5f)];
        printf("%c%c", c, c);
      }
    }
    putchar('\n');
  }
  for (int i = 0; i < n; i++)
    printf("  a %d, read as %d%*s", d->label[which[i]], read[which[i]], i + 1 < n ? 3 : 1, i + 1 < n ? "" : "\n");
}

/* Of the digits held out, the first `most` that were read rightly (or wrongly); returns how many there are. */
static int show_some(const digits *d, const int *read, int rightly, int most)
{
  int which[SHOWN_ACROSS], n = 0, total = 0;
  for (int i = d->n_train; i < d->n; i++) {
    int k = d->order[i];
    if ((read[k] == d->label[k]) != rightly)
      continue;
    if (total++ < most)
      which[n++] = k;
    if (n == SHOWN_ACROSS) {
      show_row(d, read, which, n);
      n = 0;
    }
  }
  if (n)
    show_row(d, read, which, n);
  return total;
}

static void show_read(const digits *d, const int *read)
{
  printf("\nSome that it read, and never saw before:\n\n");
  show_some(d, read, 1, READ_SHOWN);
  printf("\nIts mistakes:\n\n");
  int wrong = show_some(d, read, 0, MISREAD_SHOWN);
  if (wrong > MISREAD_SHOWN)
    printf("  and %d more\n", wrong - MISREAD_SHOWN);
  if (!wrong)
    printf("  none\n");
}

/* A plan prints one line per part: engine, its properties, and after " : " the problem. */
static void print_plan(const char *name, const qn_plan *p)
{
  size_t n = qn_plan_print(p, NULL, 0);
  char *text = malloc(n + 1);
  if (!text)
    return;
  qn_plan_print(p, text, n + 1);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    const char *problem = strstr(line, " : ");
    printf("  %-9s %-28.*s%s\n", name, (int)strcspn(line, " "), line, problem ? problem + 3 : "");
    name = "";
  }
  free(text);
}
