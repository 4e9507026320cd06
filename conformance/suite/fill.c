/* fill.c -- the values of inputs. Each element is a function of (seed, tensor, index) alone, so a case is its line and its seed.
 *
 *   int, int:R    integers of magnitude <= R (default: as large as keeps every sum exact), never all zero
 *   ipos          1 or 2: sums grow, which a narrow accumulator cannot hide
 *   signed[:S]    uniform in (-S, S), S 1;   pos  uniform in (0, 1): truncation shows as bias
 *   near          1 + uniform/8: for products
 *   wide          signed, exponents spread over 2^-12 .. 2^12
 *   large[:E]     of both signs, within a factor of 4 below 10^E, or below the dtype's largest number if that is less
 *   far:C         C + signed: a variance or a shift must cancel C
 *   special       signed, interspersed with NaN, Inf, zeros of both signs, subnormals and large values
 *   finite        special without NaN and Inf;   tiny  subnormals and the least normals
 *   all           every bit pattern in turn;   bits  random patterns
 *   const:V ramp nan inf zero one range:LO..HI */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "conform.h"

static double uniform(uint64_t h)       /* (0, 1) */
{
  return ((double)(h >> 11) + 0.5) * 0x1p-53;
}

static double special(uint64_t h, uint32_t dtype, bool finite)
{
  static const double odd[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1e4, -1e4, 88, -88, -104, 0.5, 1.5, 2.5, -2.5, 1, -1};
  double least = 2 * qc_half_ulp(dtype, 0);
  switch (h >> 60) {
  case 0: return h >> 8 & 1 ? least : -least;
  case 1: return least * (double)(h >> 8 & 0xff);
  case 2: case 3: return odd[(finite ? 3 : 0) + (h >> 8) % (sizeof odd / sizeof *odd - (finite ? 3 : 0))];
  }
  return 8 * uniform(qc_mix(h)) - 4;
}

static double number(const char *how, double argument, double upto, uint32_t dtype, int range, uint64_t h, int64_t i)
{
  double u = uniform(h);
  switch (how[0]) {
  case 'i':
    if (!strncmp(how, "inf", 3))
      return h & 1 ? INFINITY : -INFINITY;
    if (!strncmp(how, "ipos", 4))
      return 1 + (double)(h >> 20 & 1);
    range = argument > 0 ? (int)argument : range;
    return dtype == QN_U8 || dtype == QN_BOOL ? floor(u * (range + 1)) : floor(u * (2 * range + 1)) - range;
  case 's':
    if (!strncmp(how, "special", 7))
      return special(h, dtype, false);
    return (argument > 0 ? argument : 1) * (2 * u - 1);
  case 'f':
    return !strncmp(how, "finite", 6) ? special(h, dtype, true) : argument + 2 * u - 1;
  case 't': return 2 * qc_half_ulp(dtype, 0) * (floor(u * 1024) - 512);
  case 'p': return u;
  case 'n': return !strcmp(how, "nan") ? NAN : 1 + (u - 0.5) / 4;
  case 'w': return ldexp(2 * u - 1, (int)(h & 31) % 25 - 12);
  case 'c': return argument;
  case 'r': return how[2] == 'm' ? (double)i : argument + floor(u * (upto - argument + 1));
  case 'l': {
    double most = fmin(argument > 0 ? pow(10, argument) : INFINITY, qc_largest(dtype));
    return (h & 1 ? most : -most) * (0.25 + 0.75 * u);
  }
  case 'z': return 0;
  case 'o': return 1;
  }
  return 0;
}

bool qc_fill(struct qc_value *v, const char *how, uint64_t seed, int tensor, int range)
{
  static const char *const known[] = {"int", "ipos", "signed", "pos", "near", "wide", "far", "special", "finite", "tiny",
                                      "all", "bits", "const", "ramp", "nan", "inf", "zero", "one", "range", "large"};
  size_t word = strcspn(how, ":"), bytes = qn_dtype_bytes(v->q.dtype);
  bool found = false;
  for (size_t k = 0; k < sizeof known / sizeof *known; k++)
    found |= strlen(known[k]) == word && !strncmp(known[k], how, word);
  if (!found)
    return false;
  double argument = 0, upto = 0;
  if (how[word]) {
    char *end;
    const char *dots = strstr(how + word, "..");           /* strtod would take the first dot */
    argument = upto = dots ? (double)strtoll(how + word + 1, &end, 10) : strtod(how + word + 1, &end);
    if (dots && end == dots)
      upto = (double)strtoll(dots + 2, &end, 10);
    if (*end)
      return false;
  }
  char *p = v->raw;
  bool integer = !qc_is_float(v->q.dtype), boolean = v->q.dtype == QN_BOOL;
  for (int64_t i = 0; i < v->n; i++, p += bytes) {
    uint64_t h = qc_hash(seed, (uint64_t)tensor, (uint64_t)i);
    if (v->q.dtype == QN_E8M0 && how[0] != 'b' && how[0] != 'a' && how[0] != 'c')      /* powers of two around 1; now and then NaN */
      *p = (char)(!strncmp(how, "special", 7) && (h >> 8) % 16 == 0 ? 255 : (int)(119 + h % 17));
    else if (!boolean && (how[0] == 'a' || how[0] == 'b'))
      memcpy(p, how[0] == 'a' ? (uint64_t *)&i : &h, bytes);
    else if (boolean)
      *p = (char)(h >> 33 & 1);
    else if (integer && strchr("spnwftl", how[0]))     /* a float fill of integers: the whole range, so that sums wrap */
      memcpy(p, &h, bytes);
    else
      qc_encode(v->q.dtype, number(how, argument, upto, v->q.dtype, range, h, i), p);
  }
  return true;
}

bool qc_fill_is_random(const char *how)
{
  return !strncmp(how, "signed", 6) || !strcmp(how, "pos") || !strcmp(how, "near") || !strcmp(how, "wide") ||
         !strncmp(how, "large", 5);
}

bool qc_fill_is_special(const char *how)
{
  return !strcmp(how, "special") || !strcmp(how, "all") || !strcmp(how, "bits") || !strcmp(how, "nan") || !strcmp(how, "inf") ||
         (!strncmp(how, "const:", 6) && !isfinite(strtod(how + 6, NULL)));
}

int64_t qc_places(const qn_op_info *op, struct qc_value *const by_role[], const char *role)
{
  static const struct { const char *role, *of; int dim; } extents[] = {
    {"q_starts", "q", 2}, {"q_lengths", "q", 2}, {"kv_starts", "k", 2}, {"kv_lengths", "k", 2}, {"pages", "k", 0}, {"positions", "cos", 0},
    {"slots", "cache", 0}, {"kv_lengths", "pages", 1}, {"slots", "cache", 2},
  };
  int64_t most = 1;
  for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
    for (uint32_t r = 0; r < op->n_roles && !strcmp(role, extents[i].role); r++)
      if (!strcmp(op->role[r].name, extents[i].of) && by_role[r])
        most *= by_role[r]->q.dim[extents[i].dim];
  return most;
}

bool qc_fill_places(struct qc_value *v, const char *role, int64_t most, uint64_t seed)
{
  bool starts = strstr(role, "_starts"), lengths = strstr(role, "_lengths"), slots = !strcmp(role, "slots");
  size_t bytes = qn_dtype_bytes(v->q.dtype);
  if (!starts && !lengths && !slots && strcmp(role, "pages") && strcmp(role, "positions"))
    return false;
  for (int64_t i = 0; i < v->n; i++) {
    uint64_t h = qc_hash(seed, 78, (uint64_t)i);
    int64_t place = (int64_t)(h % (uint64_t)(most + 2)) - 1;      /* now and then outside */
    if (starts)                         /* rising, from 0 to the end */
      place = i == 0 ? 0 : i == v->n - 1 ? most : (i * most + (int64_t)(h % (uint64_t)(most + 1))) / (v->n - 1);
    if (lengths)
      place = h >> 40 & 1 ? most : place;
    if (slots)                          /* each once, from some place on, in reverse */
      place = (h >> 40 & 7) == 0 || i >= most ? -1 : most - 1 - (i + (int64_t)(seed % (uint64_t)most)) % most;
    memcpy((char *)(v->raw ? v->raw : v->twin) + i * (int64_t)bytes, &place, bytes);
  }
  return true;
}

void qc_fill_taps(struct qc_value *indices, const qn_op_info *op, const void *attr, const qn_value *dx, uint64_t seed)
{
  int spatial = indices->q.rank - 2;
  int64_t window[3] = {0}, taps = 1;
  bool adaptive = qc_attr_int(op, attr, "size", 0, 0, -1) >= 0;
  for (int d = 0; d < spatial && !adaptive; d++) {
    window[d] = qc_attr_int(op, attr, "window", d, 0, 0);
    if (!window[d])
      window[d] = dx->dim[2 + d];
    taps *= window[d];
  }
  bool tap_index = indices->q.dtype == QN_U8;
  size_t bytes = qn_dtype_bytes(indices->q.dtype);
  for (int64_t i = 0; i < indices->n; i++) {
    uint64_t h = qc_hash(seed, 77, (uint64_t)i);
    int64_t tap = (int64_t)(h % (uint64_t)taps), rest = tap, at[3], place = 0, out = i;
    for (int d = spatial - 1; d >= 0 && adaptive; d--) {
      int64_t windows = indices->q.dim[2 + d], x = dx->dim[2 + d], p = out % windows, begin = p * x / windows;
      out /= windows;
      at[d] = begin + (int64_t)(h >> 8 * d & 0xff) % (((p + 1) * x + windows - 1) / windows - begin);
    }
    for (int d = spatial - 1; d >= 0 && !adaptive; d--) {
      int64_t stride = qc_attr_int(op, attr, "stride", d, 0, 0), p = out % indices->q.dim[2 + d];
      out /= indices->q.dim[2 + d];
      stride = stride ? stride : window[d];
      at[d] = p * stride + rest % window[d] * qc_attr_int(op, attr, "dilation", d, 0, 1) -
              qc_attr_int(op, attr, "pad", d, 0, 0);
      rest /= window[d];
    }
    for (int d = 0; d < spatial; d++) {
      if (place >= 0)
        place = at[d] < 0 || at[d] >= dx->dim[2 + d] ? -1 : place * dx->dim[2 + d] + at[d];
    }
    if (h >> 40 & 15)
      place = tap_index ? tap : place;          /* a u8 tap in the padding is an index out of range */
    else
      place = tap_index ? 255 : -1;
    memcpy((char *)indices->raw + i * (int64_t)bytes, &place, bytes);
  }
}
