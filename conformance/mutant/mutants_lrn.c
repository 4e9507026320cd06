/* mutants_lrn.c -- bugs of local response and divisive normalization: alpha's divisor, the window's position, where means are
 * subtracted. */
#include <math.h>
#include "mutant.h"

static qn_local_norm *attributes(struct mut_kept *k) { return (qn_local_norm *)(void *)k->attr; }

/* alpha as it is in AlexNet's paper, not divided by the window. */
bool lr_alpha_undivided(struct mut_kept *k)
{
  attributes(k)->alpha *= (double)attributes(k)->size;
  return attributes(k)->size > 1 && attributes(k)->alpha > 0;
}

/* Half the size to each side: one of even size has an element too many. */
bool lr_even_window_one_longer(struct mut_kept *k)
{
  bool shows = attributes(k)->size % 2 == 0;
  attributes(k)->size++;
  attributes(k)->alpha *= (double)attributes(k)->size / (double)(attributes(k)->size - 1);
  return shows;
}

bool lr_across_always(struct mut_kept *k)
{
  bool shows = attributes(k)->region == QN_LOCAL_WITHIN;
  attributes(k)->region = QN_LOCAL_ACROSS;
  return shows;
}

/* The gradient without the neighbours' term. */
bool lr_neighbours_forgotten(struct mut_kept *k)
{
  attributes(k)->size = 1;
  return ((const qn_local_norm *)(const void *)k->original)->size > 1;
}

/* The last channel's window is cut short: it takes nothing from the one before it. */
void lr_last_channel_alone(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, QN_ROLE_LRN_X), *y = mut_value(c->k, QN_ROLE_LRN_Y);
  const void *px = mut_pointer(c, QN_ROLE_LRN_X);
  void *py = mut_pointer(c, QN_ROLE_LRN_Y);
  int64_t places = 1, channels = x->dim[1];
  for (int d = 2; d < x->rank; d++)
    places *= x->dim[d];
  for (int64_t i = 0; i < qn_elements(x); i++)
    if (i / places % channels == channels - 1)
      mut_put(y, py, i, mut_get(x, px, i));
}

/* ---- means ---------------------------------------------------------------------------------- */

bool lr_with_means(struct mut_kept *k)
{
  return mut_value(k, QN_ROLE_LRN_MEANS) && attributes(k)->region == QN_LOCAL_WITHIN && attributes(k)->beta > 0;
}

bool lr_with_dmeans(struct mut_kept *k)
{
  return mut_value(k, QN_ROLE_LRN_BACKWARD_DMEANS) && attributes(k)->region == QN_LOCAL_WITHIN;
}

/* x - m is divided instead of x, as in local contrast normalization. */
void lr_x_centred(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, QN_ROLE_LRN_X), *means = mut_value(c->k, QN_ROLE_LRN_MEANS);
  void *px = mut_copy(c, QN_ROLE_LRN_X), *pm = mut_copy(c, QN_ROLE_LRN_MEANS);
  for (int64_t i = 0; i < qn_elements(x); i++)
    mut_put(x, px, i, mut_get(x, px, i) - mut_get(means, pm, i));
  for (int64_t i = 0; i < qn_elements(x); i++)
    mut_put(means, pm, i, 0);
}

void lr_means_lost(struct mut_call *c)
{
  const qn_value *means = mut_value(c->k, QN_ROLE_LRN_BACKWARD_MEANS);
  void *pm = mut_copy(c, QN_ROLE_LRN_BACKWARD_MEANS);
  for (int64_t i = 0; i < qn_elements(means); i++)
    mut_put(means, pm, i, 0);
}

/* The window at position i of x: how many of its n elements are outside, and the sum of x - m over the others. */
static double outside(const qn_local_norm *a, const qn_value *x, const void *px, int64_t i, double m, double *n, double *sum)
{
  int64_t at[QN_MAX_RANK], taps = 1, beyond = 0;
  mut_offset(x, i, at);
  *sum = 0;
  for (int d = 2; d < x->rank; d++)
    taps *= a->size;
  for (int64_t t = 0; t < taps; t++) {
    int64_t rest = t, place = i, step = 1;
    bool inside = true;
    for (int d = x->rank - 1; d >= 2; step *= x->dim[d], rest /= a->size, d--) {
      int64_t offset = rest % a->size - (a->size - 1) / 2;
      inside &= at[d] + offset >= 0 && at[d] + offset < x->dim[d];
      place += offset * step;
    }
    beyond += !inside;
    *sum += inside ? mut_get(x, px, place) - m : 0;
  }
  *n = (double)taps;
  return (double)beyond;
}

/* Elements outside count as 0 instead of m. */
void lr_mean_squared_outside(struct mut_call *c)
{
  const qn_local_norm *a = (const qn_local_norm *)(const void *)c->k->attr;
  const qn_value *x = mut_value(c->k, QN_ROLE_LRN_X), *means = mut_value(c->k, QN_ROLE_LRN_MEANS), *y = mut_value(c->k, QN_ROLE_LRN_Y);
  const void *px = mut_pointer(c, QN_ROLE_LRN_X), *pm = mut_pointer(c, QN_ROLE_LRN_MEANS);
  void *py = mut_pointer(c, QN_ROLE_LRN_Y);
  for (int64_t i = 0; i < qn_elements(x); i++) {
    double v = mut_get(x, px, i), m = mut_get(means, pm, i), n, sum, beyond = outside(a, x, px, i, m, &n, &sum);
    double b = pow(mut_get(y, py, i) / v, -1 / a->beta) + a->alpha / n * beyond * m * m;
    if (v != 0)
      mut_put(y, py, i, v * pow(b, -a->beta));
  }
}

/* dmeans from the sum of x less a whole window of the mean. */
void lr_mean_summed_outside(struct mut_call *c)
{
  const qn_local_norm *a = (const qn_local_norm *)(const void *)c->k->attr;
  const qn_value *x = mut_value(c->k, QN_ROLE_LRN_BACKWARD_X), *means = mut_value(c->k, QN_ROLE_LRN_BACKWARD_MEANS);
  const qn_value *dmeans = mut_value(c->k, QN_ROLE_LRN_BACKWARD_DMEANS);
  const void *px = mut_pointer(c, QN_ROLE_LRN_BACKWARD_X), *pm = mut_pointer(c, QN_ROLE_LRN_BACKWARD_MEANS);
  void *p = mut_pointer(c, QN_ROLE_LRN_BACKWARD_DMEANS);
  for (int64_t i = 0; i < qn_elements(dmeans); i++) {
    double m = mut_get(means, pm, i), n, sum, beyond = outside(a, x, px, i, m, &n, &sum);
    if (sum != 0)
      mut_put(dmeans, p, i, mut_get(dmeans, p, i) * (sum - beyond * m) / sum);
  }
}
