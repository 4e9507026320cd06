/* compare.c -- the verdict on one output: got against the reference y and its bound e.
 *
 * A float passes if it is y rounded once, bit for bit, or within e. NaN must match NaN, and Inf Inf of the same sign; if y is
 * within e of overflow, Inf and the largest number are both right. Values that a case states hold besides. */
#include <math.h>
#include <string.h>
#include "conform.h"

/* rounded: want, rounded to the dtype. */
static bool element_ok(uint32_t dtype, double got, double want, double rounded, double e, bool once, bool strict_zero, double *ratio)
{
  *ratio = INFINITY;
  if (e == QC_ANY && !once) {
    *ratio = 0;
    return true;
  }
  if (isnan(want))
    return isnan(got);
  if (isnan(got))
    return false;
  if (got == rounded && (!strict_zero || got != 0 || signbit(got) == signbit(rounded))) {
    *ratio = 0;
    return true;
  }
  if (once || isinf(want) || (strict_zero && got == 0 && rounded == 0))
    return false;
  if (isinf(got))
    return signbit(got) == signbit(want) && fabs(want) + e >= qc_overflow(dtype);
  *ratio = e > 0 ? fabs(got - want) / e : INFINITY;
  return *ratio <= 1;
}

bool qc_element_ok(uint32_t dtype, double got, double want, double e, bool once, bool strict_zero, double *ratio)
{
  return element_ok(dtype, got, want, qc_round(dtype, want), e, once, strict_zero, ratio);
}

static bool same_bits(const struct qc_value *v, const char *want, const char *raw, struct qc_verdict *out)
{
  size_t bytes = qn_dtype_bytes(v->q.dtype);
  for (int64_t i = 0; i < v->n; i++) {
    if (!memcmp(want + (size_t)i * bytes, raw + (size_t)i * bytes, bytes))
      continue;
    if (!out->failed++) {
      out->first = out->worst = i;
      out->got = qc_decode(v->q.dtype, raw + (size_t)i * bytes);
      out->want = qc_decode(v->q.dtype, want + (size_t)i * bytes);
      out->ratio = INFINITY;
    }
  }
  return !out->failed;
}

void qc_round_reference(struct qc_value *v)
{
  if (!v->y || v->rounded)
    return;
  v->rounded = qc_alloc((size_t)v->n * sizeof *v->rounded + 8);
  for (int64_t i = 0; i < v->n; i++)
    v->rounded[i] = qc_round(v->q.dtype, v->y[i]);
}

void qc_compare(const struct qc_value *v, const void *raw, bool strict_zero, struct qc_verdict *out)
{
  memset(out, 0, sizeof *out);
  out->total = v->n;
  out->first = out->worst = -1;
  if (v->bitwise || !v->y) {
    same_bits(v, v->bitwise ? v->raw : v->twin, raw, out);
    return;
  }
  size_t bytes = qn_dtype_bytes(v->q.dtype);
  int64_t blind = 0, open = 0, finite = 0;
  double largest = 0;
  for (int64_t i = 0; i < v->n; i++)
    if (isfinite(v->y[i]))
      largest = fmax(largest, fabs(v->y[i]));
  for (int64_t i = 0; i < v->n; i++) {
    double got = qc_decode(v->q.dtype, (const char *)raw + (size_t)i * bytes), ratio;
    double rounded = v->rounded ? v->rounded[i] : qc_round(v->q.dtype, v->y[i]);
    bool ok = element_ok(v->q.dtype, got, v->y[i], rounded, v->e[i], v->once, strict_zero, &ratio);
    if (isfinite(v->y[i])) {
      finite++;
      blind += v->e[i] >= largest && !v->once;
      open += v->e[i] == QC_ANY && !v->once;
    }
    if (ok && isinf(ratio))
      ratio = 0;
    if (!ok && !out->failed++)
      out->first = i;
    if (out->worst < 0 || ratio > out->ratio || (!ok && out->failed == 1)) {
      out->worst = i;
      out->ratio = ratio;
      out->got = got;
      out->want = v->y[i];
      out->bound = v->once ? 0 : v->e[i];
    }
  }
  out->vacuous = largest > 0 && finite && blind * 2 > finite;
  out->undecided = finite && ((largest > 0 ? blind : 0) + open) * 2 > finite;
}

void qc_compare_stated(const struct qc_value *v, const void *raw, struct qc_verdict *out)
{
  memset(out, 0, sizeof *out);
  out->total = v->n;
  out->first = out->worst = -1;
  size_t bytes = qn_dtype_bytes(v->q.dtype);
  if (!v->y) {
    same_bits(v, v->stated, raw ? raw : v->twin, out);
    return;
  }
  for (int64_t i = 0; i < v->n; i++) {
    double want = qc_decode(v->q.dtype, (const char *)v->stated + (size_t)i * bytes);
    double got = raw ? qc_decode(v->q.dtype, (const char *)raw + (size_t)i * bytes) : qc_round(v->q.dtype, v->y[i]);
    double bound = v->within * fmax(1, fabs(want)), away = fabs(got - want);
    if (got == want || (isnan(got) && isnan(want)) || away <= bound)
      continue;
    double ratio = isfinite(away) && bound > 0 ? away / bound : INFINITY;
    if (!out->failed++)
      out->first = i;
    if (out->worst < 0 || ratio > out->ratio) {
      out->worst = i;
      out->ratio = ratio;
      out->got = got;
      out->want = want;
      out->bound = bound;
    }
  }
}
