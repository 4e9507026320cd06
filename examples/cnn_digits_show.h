/* cnn_digits_show.h -- digits as characters, each with what was read: does not use Quern. Include cnn_digits_data.h first. */

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
