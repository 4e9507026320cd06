/* cnn_digits_data.h -- cnn_digits.c's digits, their order, and how they are resampled: does not use Quern. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers: the same on every machine --------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_bits(void)       /* splitmix64 */
{
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double random_uniform(void)      /* in [-1, 1) */
{
  return (double)(random_bits() >> 11) / (double)(1ull << 52) - 1;
}

static void shuffle(int *order, int n)
{
  for (int i = n - 1; i > 0; i--) {
    int j = (int)(random_bits() % (uint64_t)(i + 1)), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
}

/* ---- the digits ------------------------------------------------------------------------------------ */

enum { PIXELS = 64, MAX_DIGITS = 1797, CLASSES = 10 };

typedef struct digits {
  int   n, n_train;
  float image[MAX_DIGITS][PIXELS];
  int   label[MAX_DIGITS];
  int   order[MAX_DIGITS];              /* the first n_train are for training, the rest held out */
} digits;

static void read_digits(digits *d, const char *path)
{
  FILE *f = fopen(path, "r");
  if (!f) {
    fprintf(stderr, "cnn_digits: cannot open %s; --data says where digits.csv is\n", path);
    exit(2);
  }
  for (d->n = 0; d->n < MAX_DIGITS; d->n++) {
    int pixel, got = 0;
    for (int i = 0; i < PIXELS && (got = fscanf(f, "%d,", &pixel)) == 1; i++)
      d->image[d->n][i] = ((float)pixel - 4.9f) / 6.0f;             /* mean 0, variance 1 */
    if (got != 1 || fscanf(f, "%d", &d->label[d->n]) != 1 || d->label[d->n] < 0 || d->label[d->n] >= CLASSES)
      break;
    d->order[d->n] = d->n;
  }
  const int failed = ferror(f);
  fclose(f);
  if (d->n != MAX_DIGITS) {
    if (failed) fprintf(stderr, "cnn_digits: cannot read %s; --data says where digits.csv is\n", path);
    else fprintf(stderr, "cnn_digits: %s: line %d is no digit\n", path, d->n + 1);
    exit(2);
  }
  d->n_train = d->n * 4 / 5;
  shuffle(d->order, d->n);
}

/* The matrix that resamples 8 pixels to 32, shifted by `shift` of the 8. Pixel centres are aligned: element i of 32 is at
 * (i + 1/2) / 4 - 1/2 of 8. */
static void resampling(float matrix[32][8], double shift)
{
  memset(matrix, 0, 32 * 8 * sizeof(float));
  for (int i = 0; i < 32; i++) {
    double place = fmin(fmax((i + 0.5) / 4 - 0.5 + shift, 0), 7);
    int below = place < 6 ? (int)place : 6;
    matrix[i][below] = (float)(1 - (place - below));
    matrix[i][below + 1] = (float)(place - below);
  }
}
