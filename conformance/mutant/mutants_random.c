/* mutants_random.c -- bugs of random numbers and dropout: truncated keys, words out of order, masks out of step. */
#include <math.h>
#include "mutant.h"

static const qn_value *part(const struct mut_call *c, int8_t role, void **p)
{
  const qn_value *v = role < 0 ? NULL : mut_value(c->k, (uint32_t)role);
  *p = v ? mut_pointer(c, (uint32_t)role) : NULL;
  return v;
}

static double chance(const struct mut_call *c) { return ((const qn_chance *)(const void *)c->k->attr)->p; }

/* Replaces a key by a copy with another value. */
static void set_key(struct mut_call *c, int8_t role, int64_t key)
{
  const qn_value *v = role < 0 ? NULL : mut_value(c->k, (uint32_t)role);
  if (v)
    qn_store_i64(mut_copy(c, (uint32_t)role), v->dtype, key);
}

void rn_offset_ignored(struct mut_call *c) { set_key(c, QN_ROLE_RNG_UNIFORM_OFFSET, 0); }

void rn_key_of_32_bits(struct mut_call *c)
{
  const qn_value *seed = mut_value(c->k, QN_ROLE_RNG_UNIFORM_SEED);
  set_key(c, QN_ROLE_RNG_UNIFORM_SEED, qn_load_i64(mut_pointer(c, QN_ROLE_RNG_UNIFORM_SEED), seed->dtype) & 0xffffffff);
}

void rn_of_23_bits(struct mut_call *c)
{
  void *p;
  const qn_value *y = part(c, QN_ROLE_RNG_UNIFORM_Y, &p);
  const qn_uniform *range = (const qn_uniform *)(const void *)c->k->attr;
  for (int64_t i = 0; i < qn_elements(y) && range->min == 0 && range->max == 1; i++)
    mut_put(y, p, i, floor(mut_get(y, p, i) * 0x1p23) * 0x1p-23);
}

void rn_pairs_swapped(struct mut_call *c)
{
  void *p;
  const qn_value *y = part(c, QN_ROLE_RNG_NORMAL_Y, &p);
  for (int64_t i = 0; i + 1 < qn_elements(y); i += 2) {
    double first = mut_get(y, p, i);
    mut_put(y, p, i, mut_get(y, p, i + 1));
    mut_put(y, p, i + 1, first);
  }
}

bool rn_p_of_zeros(struct mut_kept *k)
{
  qn_chance *attr = (qn_chance *)(void *)k->attr;
  attr->p = 1 - attr->p;
  return attr->p != 0.5;
}

void rn_unscaled(struct mut_call *c)
{
  void *py;
  const qn_value *y = part(c, QN_ROLE_DROPOUT_Y, &py);
  for (int64_t i = 0; i < qn_elements(y) && chance(c) < 1; i++)
    mut_put(y, py, i, mut_get(y, py, i) * (1 - chance(c)));
}

/* Multiplies by the mask: what is dropped becomes 0 x. */
void rn_times_zero(struct mut_call *c)
{
  void *px, *py;
  const qn_value *x = part(c, QN_ROLE_DROPOUT_X, &px), *y = part(c, QN_ROLE_DROPOUT_Y, &py);
  for (int64_t i = 0; i < qn_elements(y) && px != py; i++)
    if (mut_get(y, py, i) == 0)
      mut_put(y, py, i, 0 * mut_get(x, px, i));
}

void rn_bits_reversed(struct mut_call *c)
{
  void *p;
  const qn_value *mask = part(c, QN_ROLE_DROPOUT_MASK, &p);
  for (int64_t i = 0; mask && i < qn_elements(mask); i++) {
    unsigned bits = (unsigned)mut_get(mask, p, i), reversed = 0;
    for (int b = 0; b < 8; b++)
      reversed |= (bits >> b & 1) << (7 - b);
    mut_put(mask, p, i, reversed);
  }
}

/* Words come in fours, and the mask's last bits keep the unused ones. */
void rn_bits_past_the_last(struct mut_call *c)
{
  void *p, *px;
  const qn_value *mask = part(c, QN_ROLE_DROPOUT_MASK, &p), *x = part(c, QN_ROLE_DROPOUT_X, &px);
  if (!mask || qn_elements(x) % 8 == 0)
    return;
  int64_t last = qn_elements(mask) - 1;
  mut_put(mask, p, last, (double)((unsigned)mut_get(mask, p, last) | 1u << qn_elements(x) % 8));
}

bool rn_needs_mask(struct mut_kept *k) { return mut_value(k, QN_ROLE_DROPOUT_BACKWARD_MASK) != NULL; }
bool rn_needs_seed(struct mut_kept *k) { return mut_value(k, QN_ROLE_DROPOUT_BACKWARD_SEED) != NULL; }

void rn_mask_shifted(struct mut_call *c)
{
  const qn_value *mask = mut_value(c->k, QN_ROLE_DROPOUT_BACKWARD_MASK);
  void *p = mut_copy(c, QN_ROLE_DROPOUT_BACKWARD_MASK);
  for (int64_t i = 0; i < qn_elements(mask); i++)
    mut_put(mask, p, i, (double)((unsigned)mut_get(mask, p, i) << 1 & 0xff));
}

/* The backward pass draws the next words of the sequence. */
void rn_drawn_afresh(struct mut_call *c)
{
  const qn_value *seed = mut_value(c->k, QN_ROLE_DROPOUT_BACKWARD_SEED);
  set_key(c, QN_ROLE_DROPOUT_BACKWARD_SEED, qn_load_i64(mut_pointer(c, QN_ROLE_DROPOUT_BACKWARD_SEED), seed->dtype) + 1);
}
