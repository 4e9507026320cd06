/* mutants_lrn.c -- bugs of local response normalization: what alpha is divided by, where the window lies. */
#include "mutant.h"

static qn_local_norm *attributes(struct mut_kept *k) { return (qn_local_norm *)(void *)k->attr; }

/* alpha as it is in AlexNet's paper, not divided by the window. */
bool lr_alpha_undivided(struct mut_kept *k)
{
  attributes(k)->alpha *= (double)attributes(k)->size;
  return attributes(k)->size > 1 && attributes(k)->alpha > 0;
}

/* A window of half the size to each side: an even one has a place too many. */
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

/* Nothing comes back through the neighbours' sums. */
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
