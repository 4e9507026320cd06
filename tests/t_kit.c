/* t_kit -- kit.h against slow independent methods: every value of the small formats from its definition,
 * every tie between neighbours, rounding by search among all values, layouts by listing every address. */
#include <quern/kit.h>
#include <stdlib.h>
#include "tap.h"

/* ---- small floats --------------------------------------------------------------------------- */

typedef struct format {
  const char *name;
  uint32_t dtype;
  int      bits, fraction, bias;
  uint32_t largest;                       /* magnitude bits of the largest finite value */
  uint32_t infinity;                      /* 0: the format saturates */
} format;

static const format formats[] = {
  { "f16",  QN_F16,  16, 10, 15,  0x7bff, 0x7c00 },
  { "bf16", QN_BF16, 16, 7,  127, 0x7f7f, 0x7f80 },
  { "e4m3", QN_E4M3, 8,  3,  7,   0x7e,   0 },
  { "e5m2", QN_E5M2, 8,  2,  15,  0x7b,   0 },
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

/* The value of these magnitude bits by the format's definition, other than Inf and NaN. */
static double defined_value(const format *f, uint32_t magnitude)
{
  const int exponent = (int)(magnitude >> f->fraction), fraction = (int)(magnitude & ((1u << f->fraction) - 1));
  if (exponent == 0) return ldexp(fraction, 1 - f->bias - f->fraction);
  return ldexp(1.0 + ldexp(fraction, -f->fraction), exponent - f->bias);
}

typedef union element { uint8_t b; uint16_t h; double d; } element;

static uint32_t stored(const format *f, double x)
{
  element e = { 0 };
  qn_store_f64(&e, f->dtype, x);
  return f->bits == 16 ? e.h : e.b;
}

static double loaded(const format *f, uint32_t bits)
{
  element e = { 0 };
  if (f->bits == 16) e.h = (uint16_t)bits;
  else e.b = (uint8_t)bits;
  return qn_load_f64(&e, f->dtype);
}

/* The magnitude bits nearest to x > 0, ties to even, by bisection over the format's values. x is a long double, so that
 * every int64_t and the differences of neighbours are exact. */
static uint32_t nearest(const format *f, long double x)
{
  uint32_t low = 0, high = f->largest + 1;         /* value(low) <= x < value(high), with high as if the format had no limit */
  if (x >= (long double)defined_value(f, f->largest + 1)) return f->infinity ? f->infinity : f->largest;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if ((long double)defined_value(f, middle) <= x) low = middle; else high = middle;
  }
  const long double below = x - defined_value(f, low), above = defined_value(f, low + 1) - x;
  const uint32_t up = below > above || (below == above && low & 1) ? low + 1 : low;
  return up <= f->largest ? up : f->infinity ? f->infinity : f->largest;
}

static void test_values(const format *f)
{
  const uint32_t sign = 1u << (f->bits - 1);
  int bad_load = 0, bad_round_trip = 0, bad_nan = 0, bad_infinity = 0;
  for (uint32_t bits = 0; bits < 1u << f->bits; bits++) {
    const uint32_t magnitude = bits & (sign - 1);
    const double x = loaded(f, bits);
    if (magnitude <= f->largest) {
      const double expected = bits & sign ? -defined_value(f, magnitude) : defined_value(f, magnitude);
      bad_load += x != expected || !signbit(x) != !(bits & sign);
      bad_round_trip += stored(f, x) != bits;
    } else if (f->dtype != QN_E4M3 && (magnitude & ((1u << f->fraction) - 1)) == 0) {
      bad_infinity += !isinf(x) || !signbit(x) != !(bits & sign);
    } else {
      bad_nan += !isnan(x);
    }
  }
  tap_ok(!bad_load, "%s: every finite pattern has its defined value", f->name);
  tap_ok(!bad_round_trip, "%s: every finite value goes back to its pattern", f->name);
  tap_ok(!bad_infinity && !bad_nan, "%s: Inf and NaN patterns", f->name);
  tap_ok(isnan(loaded(f, stored(f, NAN))), "%s: NaN stays NaN", f->name);
  const uint32_t beyond = f->infinity ? f->infinity : f->largest;
  tap_ok(stored(f, INFINITY) == beyond && stored(f, -INFINITY) == (beyond | sign), "%s: from Inf", f->name);
  tap_ok(stored(f, 1e300) == beyond && stored(f, -1e300) == (beyond | sign), "%s: from 1e300", f->name);
  tap_ok(stored(f, 5e-324) == 0 && stored(f, -5e-324) == sign && stored(f, 2.2e-308) == 0, "%s: from the tiniest", f->name);
}

/* Between any two neighbours: the tie, and one f64 step to either side. */
static void test_ties(const format *f)
{
  const uint32_t sign = 1u << (f->bits - 1);
  int bad = 0;
  for (uint32_t low = 0; low <= f->largest; low++) {
    const double middle = (defined_value(f, low) + defined_value(f, low + 1)) / 2;
    const uint32_t next = low < f->largest ? low + 1 : f->infinity ? f->infinity : f->largest;
    const uint32_t even = low & 1 ? next : low;
    bad += stored(f, middle) != even;
    bad += stored(f, nextafter(middle, 0)) != low;
    bad += stored(f, nextafter(middle, INFINITY)) != next;
    bad += stored(f, -nextafter(middle, 0)) != (low | sign);
    bad += stored(f, -nextafter(middle, INFINITY)) != (next | sign);
  }
  tap_ok(!bad, "%s: ties to even, and both sides of every tie", f->name);
}

static uint64_t random_bits(void)                  /* xorshift64* */
{
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du;
}

static void test_random(const format *f)
{
  int bad = 0, bad_i64 = 0;
  for (int i = 0; i < 300000; i++) {
    const int reach = f->bias + f->fraction + 4;
    const double x = ldexp(1.0 + (double)(random_bits() >> 12) * 0x1p-52, (int)(random_bits() % (2u * reach)) - reach);
    bad += stored(f, x) != nearest(f, x);
    const float single = (float)x;
    uint16_t h = 0;
    if (f->dtype == QN_F16) h = qn_f16_from_f32(single);
    if (f->dtype == QN_BF16) h = qn_bf16_from_f32(single);
    if (f->dtype == QN_E4M3) h = qn_e4m3_from_f32(single);
    if (f->dtype == QN_E5M2) h = qn_e5m2_from_f32(single);
    bad += h != (isinf(single) ? stored(f, INFINITY) : nearest(f, single));
    const int64_t whole = (int64_t)(random_bits() >> 1 >> random_bits() % 63);
    element e = { 0 };
    qn_store_i64(&e, f->dtype, whole);
    bad_i64 += (f->bits == 16 ? e.h : e.b) != nearest(f, whole);
  }
  tap_ok(!bad, "%s: 300,000 numbers round as by search", f->name);
  tap_ok(!bad_i64, "%s: 300,000 integers round as by search", f->name);
}

static void test_bf16_from_f32(void)
{
  int bad = 0;
  for (uint32_t top = 0; top < 0x10000; top++) {
    static const uint32_t lows[] = { 0, 1, 0x7fff, 0x8000, 0x8001, 0xffff };
    for (int i = 0; i < 6; i++) {
      const float x = qn_f32_of_bits(top << 16 | lows[i]);
      bad += qn_bf16_from_f32(x) != qn_bf16_from_f64(x);
    }
  }
  tap_ok(!bad, "bf16: from f32 as from f64, at and around every value and tie");
}

/* ---- integers, elements --------------------------------------------------------------------- */

static void test_integers(void)
{
  static const struct { double x; int64_t i8, u8, i32, i64, truth; } row[] = {
    { 0.5, 0, 0, 0, 0, 1 }, { 1.5, 2, 2, 2, 2, 1 }, { 2.5, 2, 2, 2, 2, 1 }, { -0.5, 0, 0, 0, 0, 1 },
    { -1.5, -2, 0, -2, -2, 1 }, { 127.5, 127, 128, 128, 128, 1 }, { 255.4, 127, 255, 255, 255, 1 },
    { 256, 127, 255, 256, 256, 1 }, { -128.5, -128, 0, -128, -128, 1 }, { -129, -128, 0, -129, -129, 1 },
    { 3e9, 127, 255, INT32_MAX, 3000000000, 1 }, { -3e9, -128, 0, INT32_MIN, -3000000000, 1 },
    { 1e19, 127, 255, INT32_MAX, INT64_MAX, 1 }, { -1e19, -128, 0, INT32_MIN, INT64_MIN, 1 },
    { INFINITY, 127, 255, INT32_MAX, INT64_MAX, 1 }, { -INFINITY, -128, 0, INT32_MIN, INT64_MIN, 1 },
    { NAN, 0, 0, 0, 0, 1 }, { 0, 0, 0, 0, 0, 0 }, { -0.0, 0, 0, 0, 0, 0 }, { 1e-300, 0, 0, 0, 0, 1 },
  };
  static const uint32_t dtype[] = { QN_I8, QN_U8, QN_I32, QN_I64, QN_BOOL };
  for (size_t r = 0; r < sizeof row / sizeof *row; r++) {
    const int64_t expected[] = { row[r].i8, row[r].u8, row[r].i32, row[r].i64, row[r].truth };
    int bad = 0;
    for (int d = 0; d < 5; d++) {
      unsigned char bytes[9];
      qn_store_f64(bytes + 1, dtype[d], row[r].x);          /* + 1: misaligned */
      bad += qn_load_i64(bytes + 1, dtype[d]) != expected[d];
    }
    tap_ok(!bad, "%g to integers: nearest even, saturating, NaN 0", row[r].x);
  }
  static const struct { uint32_t dtype; int64_t v, stored, wrapped; } whole[] = {
    { QN_I8, 128, 127, -128 }, { QN_I8, -129, -128, 127 }, { QN_I8, 1000, 127, -24 }, { QN_I8, -5, -5, -5 },
    { QN_U8, 256, 255, 0 }, { QN_U8, -1, 0, 255 }, { QN_U8, 200, 200, 200 },
    { QN_I32, 2147483648, INT32_MAX, INT32_MIN }, { QN_I32, -2147483649, INT32_MIN, INT32_MAX },
    { QN_I64, INT64_MIN, INT64_MIN, INT64_MIN },
  };
  for (size_t r = 0; r < sizeof whole / sizeof *whole; r++) {
    unsigned char bytes[9];
    qn_store_i64(bytes + 1, whole[r].dtype, whole[r].v);
    tap_ok(qn_load_i64(bytes + 1, whole[r].dtype) == whole[r].stored && qn_wrap(whole[r].dtype, whole[r].v) == whole[r].wrapped,
           "dtype %u: %lld saturates and wraps", whole[r].dtype, (long long)whole[r].v);
  }
  int bad = 0;
  for (int i = 0; i < 300000; i++) {
    const int64_t v = (int64_t)(random_bits() >> random_bits() % 64);
    float f;
    double d;
    qn_store_i64(&f, QN_F32, v);
    qn_store_i64(&d, QN_F64, v);
    bad += f != (float)v || d != (double)v;
  }
  tap_ok(!bad, "f32, f64: 300,000 integers round as the compiler's conversion");
  unsigned char bytes[9];
  qn_store_f64(bytes + 1, QN_F64, -1.25);
  tap_ok(qn_load_f64(bytes + 1, QN_F64) == -1.25, "f64: misaligned");
  qn_store_f64(bytes + 1, QN_F32, 1 + 0x1p-24);
  tap_ok(qn_load_f64(bytes + 1, QN_F32) == 1, "f32: misaligned, rounded to even");
  qn_store_f64(bytes, QN_F32, 3.5e38);
  tap_ok(qn_load_f64(bytes, QN_F32) == INFINITY, "f32: overflows to Inf");
  for (int b = 0; b < 255; b++) bad += qn_e8m0_to_f64((uint8_t)b) != ldexp(1, b - 127) || qn_e8m0_from_f64(ldexp(1.75, b - 127)) != b;
  tap_ok(!bad && isnan(qn_e8m0_to_f32(255)) && qn_e8m0_from_f64(INFINITY) == 255 && qn_e8m0_from_f64(0x1p128) == 255
         && qn_e8m0_from_f64(0) == 0 && qn_e8m0_from_f64(-1) == 0, "e8m0: powers of two, from what lies above them");
  bytes[0] = 7;
  tap_ok(qn_load_i64(bytes, QN_BOOL) == 1 && qn_load_f64(bytes, QN_BOOL) == 1, "bool: any byte but 0 is 1");
}

static void test_division(void)
{
  int bad = 0;
  for (int64_t a = -40; a <= 40; a++)
    for (int64_t b = 1; b <= 9; b++) {
      bad += qn_floor_div(a, b) != (int64_t)floor((double)a / (double)b);
      bad += qn_ceil_div(a, b) != (int64_t)ceil((double)a / (double)b);
      bad += qn_round_up(a, b) % b != 0 || qn_round_up(a, b) < a || qn_round_up(a, b) >= a + b;
    }
  tap_ok(!bad, "floor, ceiling and rounding up, of either sign");
}

/* ---- layouts -------------------------------------------------------------------------------- */

static qn_value value_of(int32_t rank, const int64_t *dim, const int64_t *stride)
{
  qn_value v;
  memset(&v, 0, sizeof v);
  v.dtype = QN_F32;
  v.rank = rank;
  for (int32_t i = 0; i < QN_MAX_RANK; i++) v.dim[i] = 1;
  memcpy(v.dim, dim, (size_t)rank * sizeof *dim);
  memcpy(v.stride, stride, (size_t)rank * sizeof *stride);
  return v;
}

/* Counts in count[] every address that v touches, recursively. */
static void touch(const qn_value *v, int32_t d, int64_t at, int *count)
{
  if (d == v->rank) { count[at]++; return; }
  for (int64_t i = 0; i < v->dim[d]; i++) touch(v, d + 1, at + i * v->stride[d], count);
}

static void test_layouts(void)
{
  int bad_extent = 0, bad_dense = 0, dense = 0;
  for (int i = 0; i < 20000; i++) {
    int64_t dim[4], stride[4], step = 1;
    int order[4] = { 0, 1, 2, 3 };
    for (int d = 3; d > 0; d--) {
      const int other = (int)(random_bits() % (unsigned)(d + 1)), kept = order[d];
      order[d] = order[other];
      order[other] = kept;
    }
    const int32_t rank = 1 + (int32_t)(random_bits() % 4);
    for (int d = 0; d < 4; d++) dim[d] = 1 + (int64_t)(random_bits() % 4);
    for (int d = 0; d < 4; d++) {                  /* packed in a random order, with a gap or a broadcast now and then */
      if (order[d] >= rank) continue;
      stride[order[d]] = random_bits() % 16 ? step : 0;
      step *= dim[order[d]] + (random_bits() % 16 == 0);
    }
    const qn_value v = value_of(rank, dim, stride);
    int count[1024] = { 0 }, once = 1;
    int64_t last = 0;
    touch(&v, 0, 0, count);
    for (int64_t a = 0; a < 1024; a++) if (count[a]) last = a;
    for (int64_t a = 0; a <= last; a++) once &= count[a] == 1;
    bad_extent += qn_extent(&v) != last + 1 || qn_extent_bytes(&v) != 4 * (last + 1);
    bad_dense += !qn_is_dense(&v) != !once;
    dense += once;
  }
  tap_ok(!bad_extent, "extents of 20,000 layouts");
  tap_ok(!bad_dense && dense > 1000, "dense exactly if every address is touched once (%d of them are)", dense);

  const int64_t nchw[] = { 2, 3, 4, 5 }, row_major[] = { 60, 20, 5, 1 }, channels_last[] = { 60, 1, 15, 3 };
  const qn_value a = value_of(4, nchw, row_major), b = value_of(4, nchw, channels_last);
  tap_ok(qn_is_packed(&a) && !qn_is_packed(&b) && !qn_is_channels_last(&a) && qn_is_channels_last(&b), "packed, channels last");
  const int64_t ones[] = { 2, 1, 4, 5 }, odd[] = { 20, 77, 5, 1 };
  const qn_value c = value_of(4, ones, odd);
  tap_ok(qn_is_packed(&c) && qn_is_channels_last(&c) && qn_is_dense(&c), "strides of dims of 1 do not matter");
  const int64_t gap[] = { 99, 20, 5, 1 };
  const qn_value g = value_of(4, nchw, gap);
  tap_ok(!qn_is_packed(&g) && qn_is_packed_from(&g, 1), "packed from dim 1 on");
  tap_ok(qn_same_dims(&a, &b) && !qn_same_layout(&a, &b) && qn_same_layout(&a, &a) && !qn_same_dims(&a, &c), "same dims, same layout");
  const int64_t none[] = { 2, 0, 4, 5 };
  const qn_value z = value_of(4, none, row_major);
  tap_ok(qn_extent(&z) == 0 && qn_elements(&z) == 0 && qn_elements(&a) == 120, "empty tensors span nothing");
}

typedef struct pair { int64_t a, b; } pair;
static int by_first(const void *p, const void *q)
{
  const pair *l = p, *r = q;
  return l->a != r->a ? (l->a > r->a) - (l->a < r->a) : (l->b > r->b) - (l->b < r->b);
}

/* A nest's walk visits the same pairs of addresses before and after qn_nest_simplify. */
static void test_nests(void)
{
  int bad = 0, merged = 0;
  for (int i = 0; i < 5000; i++) {
    int64_t dim[4], sa[4], sb[4], step = 1;
    for (int d = 0; d < 4; d++) dim[d] = 1 + (int64_t)(random_bits() % 3);
    for (int d = 3; d >= 0; d--) { sa[d] = step; step *= dim[d]; }
    for (int d = 0; d < 4; d++) sb[d] = random_bits() % 4 ? sa[d] : (int64_t)(random_bits() % 50);
    const qn_value a = value_of(4, dim, sa);
    qn_value b = value_of(4, dim, sb);
    if (random_bits() % 2) b.dim[random_bits() % 4] = 1;   /* broadcast */
    pair expected[81], seen[81];
    int n = 0;
    for (int64_t p = 0; p < dim[0]; p++)
      for (int64_t q = 0; q < dim[1]; q++)
        for (int64_t r = 0; r < dim[2]; r++)
          for (int64_t s = 0; s < dim[3]; s++, n++) {
            expected[n].a = p * sa[0] + q * sa[1] + r * sa[2] + s * sa[3];
            expected[n].b = (b.dim[0] > 1 ? p * sb[0] : 0) + (b.dim[1] > 1 ? q * sb[1] : 0)
                          + (b.dim[2] > 1 ? r * sb[2] : 0) + (b.dim[3] > 1 ? s * sb[3] : 0);
          }
    qn_nest nest;
    qn_walk walk;
    qn_nest_begin(&nest, &a);
    bad += qn_nest_add(&nest, &b) != 1;
    qn_walk_begin(&walk, &nest, 4, 0);
    for (int k = 0; k < n; k++, qn_walk_next(&walk)) bad += walk.offset[0] != expected[k].a || walk.offset[1] != expected[k].b;
    const int from = (int)(random_bits() % (unsigned)n);
    qn_walk_begin(&walk, &nest, 4, from);
    bad += walk.offset[0] != expected[from].a || walk.offset[1] != expected[from].b;
    qn_nest_simplify(&nest);
    int64_t places = 1;
    for (int32_t d = 0; d < nest.rank; d++) places *= nest.dim[d];
    bad += places != n;
    merged += nest.rank < 4;
    qn_walk_begin(&walk, &nest, nest.rank, 0);
    for (int k = 0; k < n && places == n; k++, qn_walk_next(&walk)) {
      seen[k].a = walk.offset[0];
      seen[k].b = walk.offset[1];
    }
    qsort(expected, (size_t)n, sizeof *expected, by_first);
    qsort(seen, (size_t)n, sizeof *seen, by_first);
    bad += memcmp(expected, seen, (size_t)n * sizeof *seen) != 0;
  }
  tap_ok(!bad && merged > 1000, "walks visit each place once, whole or simplified (%d of 5000 were)", merged);
  const int64_t dim[] = { 2, 3, 4 }, stride[] = { 1, 8, 2 };
  const qn_value v = value_of(3, dim, stride);
  qn_nest nest;
  qn_nest_begin(&nest, &v);
  qn_nest_simplify(&nest);
  tap_ok(nest.rank == 1 && nest.dim[0] == 24 && nest.stride[0][0] == 1, "a dense tensor in any order is one loop");
}

/* ---- roles, refusals ------------------------------------------------------------------------ */

static void test_answers(void)
{
  const int32_t first[] = { 0, 1, 1, 3 }, arg[] = { 4, 5, 6 };
  qn_node node;
  memset(&node, 0, sizeof node);
  node.n_roles = 3;
  node.first = first;
  node.arg = arg;
  tap_ok(qn_role(&node, 0) == 4 && qn_role(&node, 1) == -1 && qn_role(&node, 2) == 5 && qn_role(&node, 3) == -1, "roles");
  qn_prepared p;
  memset(&p, 0, sizeof p);
  const qn_status status = qn_refuse(&p, "C must be a multiple of 8", "x", "a multiple of 8", "%d", 35);
  tap_ok(status == QN_UNSUPPORTED && !strcmp(p.refusal.rule, "C must be a multiple of 8") && !strcmp(p.refusal.tensor, "x")
         && !strcmp(p.refusal.needed, "a multiple of 8") && !strcmp(p.refusal.seen, "35"), "a refusal in words");
  char endless[400];
  memset(endless, 'a', sizeof endless - 1);
  endless[sizeof endless - 1] = '\0';
  qn_refuse(&p, endless, endless, endless, "%s", endless);
  tap_ok(strlen(p.refusal.rule) == sizeof p.refusal.rule - 1 && strlen(p.refusal.seen) == sizeof p.refusal.seen - 1,
         "a long refusal is cut");
}

/* The known answers published by Random123's authors. */
static void test_philox(void)
{
  static const struct { uint32_t counter[4]; uint64_t key; uint32_t words[4]; } known[] = {
    { { 0, 0, 0, 0 }, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff }, 0xffffffffffffffff, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 }, 0x299f31d0a4093822, { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
  };
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    uint32_t w[4], v[4];
    memcpy(w, known[i].counter, sizeof w);
    qn_philox(w, known[i].key);
    qn_random_words(v, known[i].key, (uint64_t)known[i].counter[3] << 32 | known[i].counter[2],
                    (uint64_t)known[i].counter[1] << 32 | known[i].counter[0]);
    tap_ok(!memcmp(w, known[i].words, sizeof w) && !memcmp(v, w, sizeof v), "Philox 4x32-10 of counter %08x...", known[i].counter[0]);
  }
  tap_ok(qn_chance_words(0) == 0 && qn_chance_words(0.5) == 0x80000000 && qn_chance_words(1) == UINT64_C(1) << 32
         && qn_chance_words(0x1p-33) == 1, "how many words a probability has");
}

int main(void)
{
  for (int i = 0; i < N_FORMATS; i++) {
    test_values(&formats[i]);
    test_ties(&formats[i]);
    test_random(&formats[i]);
  }
  test_bf16_from_f32();
  test_integers();
  test_division();
  test_layouts();
  test_nests();
  test_answers();
  test_philox();
  return tap_done();
}
