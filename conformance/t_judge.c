/* t_judge.c -- tests of the judge: numbers, fills, the comparison, and the bound of a sum against correct and incorrect
 * accumulators. No backend takes part. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "conform.h"

struct qc_options qc_opt = {.seed = 1, .tier = QC_DEFAULT};

static void check(bool ok, const char *name) { qc_tap_point(ok, name, NULL); }

/* ---- numbers ------------------------------------------------------------------------------ */

static void numbers(void)
{
  static const struct { uint32_t dtype; double v, want; } table[] = {
    {QN_F16, 65519, 65504}, {QN_F16, 65520, INFINITY}, {QN_F16, -1e9, -INFINITY}, {QN_F16, 2049, 2048}, {QN_F16, 2051, 2052},
    {QN_F16, 0x1p-25, 0}, {QN_F16, 0x1.8p-25, 0x1p-24}, {QN_F16, 0x1.8p-24, 0x1p-23}, {QN_F16, 0x1.ffcp-15, 0x1p-14},
    {QN_BF16, 257, 256}, {QN_BF16, 259, 260}, {QN_BF16, 3.4e38, INFINITY}, {QN_BF16, 3.39e38, 0x1.fep127},
    {QN_BF16, 0x1p-134, 0}, {QN_BF16, 0x1.8p-134, 0x1p-133}, {QN_E4M3, 500, 448}, {QN_E4M3, -INFINITY, -448},
    {QN_E4M3, 17, 16}, {QN_E4M3, 19, 20}, {QN_E4M3, 0x1p-10, 0}, {QN_E4M3, 0x1.8p-10, 0x1p-9}, {QN_E5M2, 1e6, 57344},
    {QN_E5M2, 9, 8}, {QN_E5M2, 11, 12}, {QN_F32, 16777217, 16777216}, {QN_F32, 16777219, 16777220},
  };
  bool ok = true;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    double got = qc_round(table[i].dtype, table[i].v);
    if (got != table[i].want) {
      qc_tap_comment("%s of %.17g: %.17g, should be %.17g", qn_dtype_name(table[i].dtype), table[i].v, got, table[i].want);
      ok = false;
    }
  }
  check(ok, "numbers round to nearest even, overflow or saturate, at every edge");
  static const uint32_t narrow[] = {QN_F16, QN_BF16, QN_E4M3, QN_E5M2};
  ok = true;
  for (int t = 0; t < 4; t++)
    for (uint32_t bits = 0; bits < 1u << (8 * qn_dtype_bytes(narrow[t])); bits++) {
      uint32_t again = 0;
      double v = qc_decode(narrow[t], &bits);
      qc_encode(narrow[t], v, &again);
      ok &= isnan(v) || again == bits || (narrow[t] == QN_E5M2 && isinf(v));
    }
  check(ok, "every pattern of the narrow floats decodes and encodes to itself");
}

/* ---- the comparison ----------------------------------------------------------------------- */

static bool takes(uint32_t dtype, double got, double want, double e, bool once, bool strict)
{
  double ratio;
  return qc_element_ok(dtype, got, want, e, once, strict, &ratio);
}

static void comparer(void)
{
  check(takes(QN_F32, NAN, NAN, 0, false, false) && !takes(QN_F32, NAN, 1, 1e9, false, false) &&
        !takes(QN_F32, 1, NAN, 1e9, false, false) && !takes(QN_F32, NAN, INFINITY, 1, false, false), "NaN only where NaN stands");
  check(takes(QN_F32, INFINITY, INFINITY, 0, false, false) && !takes(QN_F32, -INFINITY, INFINITY, 1, false, false) &&
        !takes(QN_F32, 3e38, INFINITY, 1e30, false, false) && !takes(QN_F32, INFINITY, 1, 1e9, false, false), "Inf by its sign");
  check(takes(QN_F16, INFINITY, 65510, 20, false, false) && takes(QN_F16, 65504, 65530, 40, false, false) &&
        !takes(QN_F16, INFINITY, 65000, 20, false, false) && !takes(QN_F16, 65504, 65600, 40, false, false),
        "near overflow Inf and the largest number are both right");
  check(takes(QN_F16, 2048, 2049, 0, true, false) && !takes(QN_F16, 2050, 2049, 0, true, false), "a tie goes to even, once");
  check(takes(QN_F32, -0.0, 0.0, 0, true, false) && !takes(QN_F32, -0.0, 0.0, 0, true, true), "the sign of zero, where it counts");
  check(takes(QN_F32, 0x1p-149, 0x1p-149, 0, true, false) && !takes(QN_F32, 0, 0x1p-149, 0, true, false), "subnormals are kept");
  check(takes(QN_F32, 1.0000001, 1, 2e-7, false, false) && !takes(QN_F32, 1.0000005, 1, 2e-7, false, false) &&
        !takes(QN_F32, 1.0000001, 1, 2e-7, true, false), "the bound is a bound, and exact is exact");
  check(!takes(QN_F32, 1, 1.5, NAN, false, false), "a bound that is no number excludes all");
}

/* ---- fills -------------------------------------------------------------------------------- */

static void fills(void)
{
  enum { N = 4096 };
  float a[N], b[N];
  struct qc_value v = {.q = {.dtype = QN_F32, .rank = 1, .dim = {N}, .stride = {1}}, .n = N, .raw = a};
  qc_fill(&v, "signed", 7, 0, 3);
  v.raw = b;
  qc_fill(&v, "signed", 7, 0, 3);
  bool same = !memcmp(a, b, sizeof a);
  qc_fill(&v, "signed", 7, 1, 3);
  bool other = memcmp(a, b, sizeof a) != 0;
  qc_fill(&v, "signed", 8, 0, 3);
  check(same && other && memcmp(a, b, sizeof a), "an element is a function of seed, tensor and index");
  qc_fill(&v, "int", 7, 0, 3);
  int zero = 0, outside = 0, most = 0;
  for (int i = 0; i < N; i++) {
    zero += b[i] == 0;
    outside += fabsf(b[i]) > 3 || b[i] != floorf(b[i]);
    most += fabsf(b[i]) == 3;
  }
  check(!outside && zero < N / 4 && most > N / 8, "integer fills are dense, within range, and reach its ends");
  check(!qc_fill(&v, "nonsense", 1, 0, 3) && !qc_fill(&v, "int:x", 1, 0, 3), "unknown fills are refused");
  float highest = 0, least = INFINITY;
  qc_fill(&v, "large", 7, 0, 3);
  for (int i = 0; i < N; i++)
    highest = fmaxf(highest, fabsf(b[i])), least = fminf(least, fabsf(b[i]));
  check(isfinite(highest) && highest > 3.3e38f && least > 8e37f && qc_fill(&v, "large:19", 7, 0, 3) && fabsf(b[0]) <= 1e19f &&
        fabsf(b[0]) >= 2.4e18f, "the large fills are finite and near what they say");
  qc_fill(&v, "special", 7, 0, 3);
  int nans = 0, infs = 0, subnormal = 0;
  for (int i = 0; i < N; i++) {
    nans += isnan(b[i]) != 0;
    infs += isinf(b[i]) != 0;
    subnormal += fpclassify(b[i]) == FP_SUBNORMAL;
  }
  check(nans > 10 && infs > 10 && subnormal > 10, "the special fill holds NaN, Inf and subnormals");
}

/* ---- the bound of a sum ------------------------------------------------------------------- */

enum accumulator { FORWARD, REVERSED, PAIRWISE, FUSED, TRUNCATING, HALF, BLOCKED };

static float pairwise(const float *a, const float *b, int n)
{
  return n == 1 ? a[0] * b[0] : pairwise(a, b, n / 2) + pairwise(a + n / 2, b + n / 2, n - n / 2);
}

/* Tensor-core style: 16 products and the running sum are aligned to the largest and truncated. */
static double truncating_step(double sum, const float *a, const float *b, int n)
{
  double largest = fabs(sum), total = 0;
  for (int i = 0; i < n; i++)
    largest = fmax(largest, fabs((double)a[i] * b[i]));
  if (largest == 0)
    return 0;
  int e;
  frexp(largest, &e);
  double unit = ldexp(1, e - 25);
  for (int i = 0; i < n; i++)
    total += trunc((double)a[i] * b[i] / unit) * unit;
  total += trunc(sum / unit) * unit;
  frexp(total, &e);
  unit = ldexp(1, e - 24);
  return trunc(total / unit) * unit;
}

static double dot_by(enum accumulator how, const float *a, const float *b, int n)
{
  volatile float sum = 0;
  double wide = 0;
  switch (how) {
  case FORWARD: for (int i = 0; i < n; i++) sum = sum + a[i] * b[i]; return sum;
  case REVERSED: for (int i = n - 1; i >= 0; i--) sum = sum + a[i] * b[i]; return sum;
  case FUSED: for (int i = 0; i < n; i++) sum = fmaf(a[i], b[i], sum); return sum;
  case PAIRWISE: return pairwise(a, b, n);
  case TRUNCATING: for (int i = 0; i < n; i += 16) wide = truncating_step(wide, a + i, b + i, n - i < 16 ? n - i : 16); return wide;
  case BLOCKED: for (int i = 0; i < n; i += 4096) sum = sum + (float)dot_by(FORWARD, a + i, b + i, n - i < 4096 ? n - i : 4096); return sum;
  default: for (int i = 0; i < n; i++) wide = qc_round(QN_F16, wide + (double)a[i] * b[i]); return wide;
  }
}

/* The worst ratio of error to bound over 16 sums of n terms. */
static double worst_ratio(enum accumulator how, uint32_t declared, int n, const char *fill)
{
  float *a = qc_alloc((size_t)n * sizeof *a), *b = qc_alloc((size_t)n * sizeof *b);
  struct qc_value v = {.q = {.dtype = QN_F32, .rank = 1, .dim = {n}, .stride = {1}}, .n = n};
  qn_numerics d = {.accumulator = declared};
  struct qc_numerics k = {&d, 1, qc_fill_is_random(fill), false};
  double worst = 0;
  for (int trial = 0; trial < 16; trial++) {
    v.raw = a;
    qc_fill(&v, fill, (uint64_t)trial, 0, 3);
    v.raw = b;
    qc_fill(&v, fill, (uint64_t)trial, 1, 3);
    double want = 0, s = 0;
    for (int i = 0; i < n; i++) {
      a[i] = (float)qc_round(QN_BF16, a[i]);
      b[i] = (float)qc_round(QN_BF16, b[i]);
      want += (double)a[i] * b[i];
      s += fabs((double)a[i] * b[i]);
    }
    double bound = qc_sum_error(&k, QN_F32, n) * s + qc_half_ulp(QN_F32, want);
    worst = fmax(worst, fabs(dot_by(how, a, b, n) - want) / bound);
  }
  free(a);
  free(b);
  return worst;
}

static void sums(void)
{
  static const char *const names[] = {"forward", "reversed", "pairwise", "fused", "truncating", "f16"};
  static const int lengths[] = {1, 16, 64, 1000, 4096, 30000};
  static const char *const fills[] = {"signed", "pos", "const:0.1"};
  for (int how = 0; how < HALF; how++) {
    double worst = 0;
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
      for (int f = 0; f < 3; f++)
        worst = fmax(worst, worst_ratio(how, how == TRUNCATING ? QN_ACC_F32_TC : QN_ACC_NATIVE, lengths[l], fills[f]));
    char *name = qc_format("no false alarm: %s sums reach %.2f of their bound", names[how], worst);
    check(worst < 1, name);
    free(name);
  }
  check(worst_ratio(HALF, QN_ACC_NATIVE, 256, "pos") > 1 && worst_ratio(HALF, QN_ACC_F32_TC, 256, "pos") > 1,
        "an f16 accumulator that claims f32 is caught");
  check(worst_ratio(HALF, QN_ACC_F16, 256, "pos") < 1, "one that declares itself is within its own bound");
  check(worst_ratio(TRUNCATING, QN_ACC_NATIVE, 30000, "pos") > 1, "a truncating one that claims rounding to nearest is caught");
  enum { LONG = 1 << 18 };
  check(worst_ratio(FORWARD, QN_ACC_NATIVE, LONG, "const:0.1") > 1 && worst_ratio(TRUNCATING, QN_ACC_F32_TC, LONG, "pos") > 1 &&
        worst_ratio(BLOCKED, QN_ACC_NATIVE, LONG, "const:0.1") < 1 && worst_ratio(PAIRWISE, QN_ACC_NATIVE, LONG, "const:0.1") < 1 &&
        worst_ratio(BLOCKED, QN_ACC_NATIVE, LONG, "pos") < 1, "one running sum of 2^18 terms is caught, a sum of blocks or a tree is not");
  check(worst_ratio(FORWARD, QN_ACC_DOUBLE, 1000, "pos") > 1, "an f32 one that claims double is caught");
}

/* One missing term of n changes a sum by S/n: a smaller bound detects it. */
static void resolution(void)
{
  qn_numerics native = {.accumulator = QN_ACC_NATIVE}, tc = {.accumulator = QN_ACC_F32_TC}, half = {.accumulator = QN_ACC_F16};
  struct qc_numerics k = {&native, 1, true, false}, t = {&tc, 1, true, false}, h = {&half, 1, true, false};
  check(4000 * qc_sum_error(&k, QN_F32, 4000) < 1 && 3500 * qc_sum_error(&t, QN_F32, 3500) < 1,
        "a missing term shows up to 3500 terms and more");
  check(100000 * qc_sum_error(&k, QN_F32, 100000) > 1 && 200 * qc_sum_error(&h, QN_F32, 200) > 1,
        "beyond that the bound alone does not claim to see it");
  float raw[4] = {1, 2, 3, 4};
  double y[4] = {1, 2, 3, 4}, e[4] = {9, 9, 9, 9};
  struct qc_value v = {.q = {.dtype = QN_F32, .rank = 1, .dim = {4}, .stride = {1}}, .n = 4, .y = y, .e = e};
  struct qc_verdict d;
  qc_compare(&v, raw, false, &d);
  bool vacuous = d.vacuous && !d.failed;
  e[0] = e[1] = e[2] = 0.5;
  qc_compare(&v, raw, false, &d);
  check(vacuous && !d.vacuous, "a bound as large as the results is reported as vacuous");
}

/* ---- guards ------------------------------------------------------------------------------- */

static bool faults(const char *at)
{
  pid_t child = fork();
  if (!child) {
    volatile char c = *(const volatile char *)at;
    (void)c;
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status;      /* by a signal, or a sanitizer's handler of it */
}

/* Reading a[M*K] of a packed matrix must fault; so must what follows any tensor whose size is a multiple of its alignment. */
static void guards(void)
{
  static const int64_t sides[] = {1, 8, 16, 32, 64, 100};
  bool ok = true, aligned = true;
  qc_w.cpu = true;
  for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
    for (uint32_t align = 4; align <= 256; align *= 2) {
      qn_value q = {.dtype = QN_F32, .rank = 2, .dim = {sides[i], sides[i]}, .stride = {sides[i], 1}, .align = align};
      struct qc_buffer *b = qc_buffer_make(NULL, &q, QC_AT_END, 7);
      const char *at = qc_buffer_pointer(b), *end = at + sides[i] * sides[i] * 4;
      aligned &= (uintptr_t)at % align == 0;
      ok &= faults(end + (-(uintptr_t)end & (align - 1))) && !faults(end - 1);
      qc_buffer_free(b);
    }
  }
  check(ok, "a read of the element after the last one of 8x8, 16x16, 64x64 faults, whatever the alignment");
  int close = 0, off = 0;
  for (int64_t i = 0; i < 32; i++) {
    qn_value q = {.dtype = QN_F32, .rank = 1, .dim = {16 * i + 1}, .stride = {1}, .align = 16};
    struct qc_buffer *b = qc_buffer_make(NULL, &q, QC_AT_START, (uint64_t)i);
    const char *at = qc_buffer_pointer(b);
    aligned &= (uintptr_t)at % 16 == 0;
    close += faults(at - 1);
    off += (uintptr_t)at % 32 != 0;
    qc_buffer_free(b);
  }
  check(aligned && close > 4 && off > 4 && close + off == 32,
        "at the start, some are at the page and some at no larger alignment than theirs");
}

int main(void)
{
  qc_tap_begin(30);
  numbers();
  comparer();
  fills();
  sums();
  resolution();
  guards();
  qc_tap_end();
  return qc_tap_failed() != 0;
}
