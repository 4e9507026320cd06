/* mutants_quantize.c -- bugs of quantization: rounding of a quotient, when it saturates, block sizes, how scales are computed.
 * Those that recompute do so only if one scale serves the whole tensor. */
#include <math.h>
#include "mutant.h"

static const qn_value *part(const struct mut_call *c, uint32_t role, void **p)
{
  const qn_value *v = mut_value(c->k, role);
  *p = v ? mut_pointer(c, role) : NULL;
  return v;
}
static bool integers(const qn_value *v) { return v->dtype == QN_I8 || v->dtype == QN_U8; }

bool qu_one_scale_of_integers(struct mut_kept *k)
{
  return qn_elements(mut_value(k, QN_ROLE_QUANTIZE_SCALE)) == 1 && integers(mut_value(k, QN_ROLE_QUANTIZE_Y));
}

typedef double rounding(double x, double scale, double zero, const qn_value *y);

static void again(struct mut_call *c, rounding *f)
{
  void *px, *ps, *pz, *py;
  const qn_value *x = part(c, QN_ROLE_QUANTIZE_X, &px), *s = part(c, QN_ROLE_QUANTIZE_SCALE, &ps);
  const qn_value *z = part(c, QN_ROLE_QUANTIZE_ZERO_POINT, &pz), *y = part(c, QN_ROLE_QUANTIZE_Y, &py);
  double zero = z ? mut_get(z, pz, 0) : 0;
  for (int64_t i = 0; i < qn_elements(x); i++)
    mut_put(y, py, i, f(mut_get(x, px, i), mut_get(s, ps, 0), zero, y));
}

static double away(double x, double s, double z, const qn_value *y) { (void)y; return isnan(x / s) ? z : round((float)x / (float)s) + z; }
static double reciprocal(double x, double s, double z, const qn_value *y)
{
  (void)y;
  float q = (float)x * (1 / (float)s);
  return isnan(q) ? z : rint((double)q) + z;
}
static double cut_first(double x, double s, double z, const qn_value *y)
{
  double q = rint((double)((float)x / (float)s));
  return isnan(q) ? z : fmin(fmax(q, (double)qn_least(y->dtype)), (double)qn_largest(y->dtype)) + z;
}

void qu_ties_away(struct mut_call *c) { again(c, away); }
void qu_by_reciprocal(struct mut_call *c) { again(c, reciprocal); }
/* The zero point is added after saturation. */
void qu_saturates_first(struct mut_call *c) { again(c, cut_first); }

/* The last block of a dim is as long as the others. */
bool qu_blocks_of_equal_length(struct mut_kept *k)
{
  int64_t *block = ((qn_blocks *)(void *)k->attr)->block;
  const qn_value *x = mut_value(k, 0);
  bool shows = false;
  for (int32_t d = 0; d < x->rank; d++) {
    if (!block[d])
      continue;
    int64_t scales = qn_ceil_div(x->dim[d], block[d]), equal = qn_ceil_div(x->dim[d], scales);
    shows |= equal != block[d] && qn_ceil_div(x->dim[d], equal) == scales;
    if (qn_ceil_div(x->dim[d], equal) == scales)
      block[d] = equal;
  }
  return shows;
}

/* amax by a maximum that ignores NaN. */
void qu_amax_without_nan(struct mut_call *c)
{
  void *px, *p;
  const qn_value *x = part(c, QN_ROLE_QUANTIZE_X, &px), *amax = part(c, QN_ROLE_QUANTIZE_AMAX, &p);
  double most = 0;
  if (!amax || qn_elements(amax) != 1)
    return;
  for (int64_t i = 0; i < qn_elements(x); i++)
    most = fmax(most, fabs(mut_get(x, px, i)));
  mut_put(amax, p, 0, most);
}

/* e8m0 scales are rounded up unless amax is a power of two. */
void qu_power_rounded_up(struct mut_call *c)
{
  void *px, *p;
  const qn_value *x = part(c, QN_ROLE_QUANTIZE_DYNAMIC_X, &px), *scale = part(c, QN_ROLE_QUANTIZE_DYNAMIC_SCALE, &p);
  int exponent;
  if (scale->dtype != QN_E8M0 || qn_elements(scale) == 0 || qn_elements(x) == 0)
    return;
  if (frexp(mut_get(x, px, 0), &exponent) != 0.5)
    mut_put(scale, p, 0, 2 * mut_get(scale, p, 0));
}

/* A block of zeros has scale 0. */
void qu_scale_of_zeros(struct mut_call *c)
{
  void *px, *p;
  const qn_value *x = part(c, QN_ROLE_QUANTIZE_DYNAMIC_X, &px), *scale = part(c, QN_ROLE_QUANTIZE_DYNAMIC_SCALE, &p);
  bool zeros = true;
  for (int64_t i = 0; i < qn_elements(x); i++)
    zeros &= mut_get(x, px, i) == 0;
  for (int64_t i = 0; zeros && i < qn_elements(scale); i++)
    mut_put(scale, p, i, 0);
}

/* The range of x alone has 255 steps. */
void qu_range_without_zero(struct mut_call *c)
{
  void *px, *p, *pz;
  const qn_value *x = part(c, QN_ROLE_QUANTIZE_DYNAMIC_X, &px), *scale = part(c, QN_ROLE_QUANTIZE_DYNAMIC_SCALE, &p);
  double low = INFINITY, high = -INFINITY;
  if (!part(c, QN_ROLE_QUANTIZE_DYNAMIC_ZERO_POINT, &pz) || qn_elements(scale) != 1)
    return;
  for (int64_t i = 0; i < qn_elements(x); i++) {
    low = fmin(low, mut_get(x, px, i));
    high = fmax(high, mut_get(x, px, i));
  }
  if (high > low && (low > 0 || high < 0))
    mut_put(scale, p, 0, (high - low) / 255);
}

/* y = x scale - zero_point. */
void qu_zero_point_last(struct mut_call *c)
{
  void *px, *ps, *pz, *py;
  const qn_value *x = part(c, QN_ROLE_DEQUANTIZE_X, &px), *s = part(c, QN_ROLE_DEQUANTIZE_SCALE, &ps);
  const qn_value *z = part(c, QN_ROLE_DEQUANTIZE_ZERO_POINT, &pz), *y = part(c, QN_ROLE_DEQUANTIZE_Y, &py);
  for (int64_t i = 0; z && qn_elements(s) == 1 && i < qn_elements(x); i++)
    mut_put(y, py, i, mut_get(x, px, i) * mut_get(s, ps, 0) - mut_get(z, pz, 0));
}

/* e4m3 read with e5m2's fraction: its last bit is lost. */
void qu_last_bit_lost(struct mut_call *c)
{
  void *p;
  const qn_value *x = part(c, QN_ROLE_DEQUANTIZE_X, &p);
  if (x->dtype != QN_E4M3)
    return;
  uint8_t *copy = mut_copy(c, QN_ROLE_DEQUANTIZE_X);
  for (int64_t i = 0; i < qn_extent(x); i++)
    if ((copy[i] & 0x7f) != 0x7f)
      copy[i] &= 0xfe;
}
