/* rnn_cells.h -- the formulas of the cells, of LANES units or n of them at a time: what the sums of products become, and the slopes of
 * these sums. In the type of rnn_parts.h, for both of its includers. */
#ifndef CPU_RNN_CELLS_H
#define CPU_RNN_CELLS_H
#include <math.h>
#include "rnn_parts.h"

#ifdef CPU_REAL_F64
/* e^r - 1 with x = k ln 2 + r, |r| <= ln 2 / 2, for x of -708 to 700; *power: 2^k. Branch-free, so that a loop over it vectorises; errors
 * of a few ulp. */
CPU_INLINE double expm1_reduced(double x, double *power)
{
  const double shifted = x * 1.4426950408889634 + 6755399441055744.0, n = shifted - 6755399441055744.0;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800;            /* Taylor's: the rest is below 2^-57 of r */
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * (r * r) + r;
  uint64_t k;
  memcpy(&k, &shifted, sizeof k);
  k = (k << 52) + 0x3ff0000000000000;
  memcpy(power, &k, sizeof k);
  return p;
}
CPU_INLINE real cell_tanh(real x)
{
  double power;
  const double a = fabs(x), p = expm1_reduced(2 * (a > 22 ? 22 : a), &power), e = p * power + (power - 1);
  return copysign(e / (e + 2), x);
}
CPU_INLINE real cell_sigmoid(real x)
{
  double power, z = -fabs(x), y = z < -700 ? (z < -1400 ? -700 : z / 2) : z, root = (expm1_reduced(y, &power) + 1) * power;
  const double e = z < -700 ? root * root : root;       /* down to what is subnormal, and 0 */
  return (x < 0 ? e : 1) / (1 + e);
}
#else
CPU_INLINE real cell_tanh(real x) { return m_tanh(x); }
CPU_INLINE real cell_sigmoid(real x) { return m_sigmoid(x); }
#endif
CPU_INLINE real bounded(real x, real clip)
{
  const real y = x > clip ? clip : x;
  return y < -clip ? -clip : y;
}

/* ---- forward: s are a row's sums, [gate][lane], which become what `gates` holds ------------------------------ */

/* raw: the cell state before clip. */
static inline void lstm_gates(real *s, real *c, real *h, real *raw, real clip)
{
#pragma omp simd
  for (int i = 0; i < LANES; i++) {
    const real in = cell_sigmoid(s[i]), forget = cell_sigmoid(s[LANES + i]), g = cell_tanh(s[2 * LANES + i]);
    const real out = cell_sigmoid(s[3 * LANES + i]), next = forget * c[i] + in * g;
    s[i] = in, s[LANES + i] = forget, s[2 * LANES + i] = g, s[3 * LANES + i] = out;
    raw[i] = next;
    c[i] = bounded(next, clip);
    h[i] = out * cell_tanh(c[i]);
  }
}
/* of_x: w x + bw of n; s[2] is r h + br of it. What `gates` holds has a fourth part. */
static inline void gru_gates(real *s, const real *of_x, const real *old, real *h)
{
#pragma omp simd
  for (int i = 0; i < LANES; i++) {
    const real reset = cell_sigmoid(s[i]), z = cell_sigmoid(s[LANES + i]), q = s[2 * LANES + i], n = cell_tanh(of_x[i] + reset * q);
    s[i] = reset, s[LANES + i] = z, s[2 * LANES + i] = n, s[3 * LANES + i] = q;
    h[i] = n + z * (old[i] - n);
  }
}
/* gru with the reset before the product, which meets kept = reset times h; then n's sum is whole. */
static inline void gru_reset(real *s, const real *old, real *kept)
{
#pragma omp simd
  for (int i = 0; i < LANES; i++) {
    s[i] = cell_sigmoid(s[i]), s[LANES + i] = cell_sigmoid(s[LANES + i]);
    kept[i] = s[i] * old[i];
  }
}
static inline void gru_new(real *s, const real *old, real *h)
{
#pragma omp simd
  for (int i = 0; i < LANES; i++) {
    const real n = s[2 * LANES + i] = cell_tanh(s[2 * LANES + i]);
    h[i] = n + s[LANES + i] * (old[i] - n);
  }
}
static inline void plain_gates(const real *s, real *h, bool is_tanh)
{
#pragma omp simd
  for (int i = 0; i < LANES; i++) h[i] = is_tanh ? cell_tanh(s[i]) : s[i] < 0 ? 0 : s[i];
}

/* ---- backward: d are the slopes of the gates' sums ---------------------------------------------------------- */

enum { PIECE = 4 * LANES };               /* most units of a block */

static inline void lstm_slopes(int n, real (*gate)[PIECE], const real *raw, const real *c, const real *dh, real *dc, real clip,
                               real (*d)[PIECE])
{
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const real t = cell_tanh(bounded(raw[i], clip)), in = gate[0][i], forget = gate[1][i], g = gate[2][i], out = gate[3][i];
    const real by_c = (raw[i] < 0 ? -raw[i] : raw[i]) >= clip ? 0 : dc[i] + dh[i] * out * (1 - t * t);
    d[0][i] = by_c * g * (in * (1 - in));
    d[1][i] = by_c * c[i] * (forget * (1 - forget));
    d[2][i] = by_c * in * (1 - g * g);
    d[3][i] = dh[i] * t * (out * (1 - out));
    dc[i] = by_c * forget;
  }
}
/* d: the slopes of w x; q: that of r h in n. dh becomes what reaches h beside r. */
static inline void gru_slopes(int n, real (*gate)[PIECE], const real *h, real *dh, real (*d)[PIECE], real *q)
{
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const real r = gate[0][i], z = gate[1][i], new = gate[2][i], dn = dh[i] * (1 - z) * (1 - new * new);
    d[0][i] = dn * gate[3][i] * (r * (1 - r));
    d[1][i] = dh[i] * (h[i] - new) * (z * (1 - z));
    d[2][i] = dn;
    q[i] = dn * r;
    dh[i] = dh[i] * z;
  }
}
/* gru with the reset before the product: first all but r's slope, which needs those of all n: by_kept, the gradient by reset times h. */
static inline void gru_new_slopes(int n, real (*gate)[PIECE], const real *h, real *dh, real (*d)[PIECE])
{
#pragma omp simd
  for (int i = 0; i < n; i++) {
    const real z = gate[1][i], new = gate[2][i];
    d[1][i] = dh[i] * (h[i] - new) * (z * (1 - z));
    d[2][i] = dh[i] * (1 - z) * (1 - new * new);
    dh[i] = dh[i] * z;
  }
}
static inline void gru_reset_slopes(int n, const real *reset, const real *h, const real *by_kept, real *dh, real *d)
{
#pragma omp simd
  for (int i = 0; i < n; i++) {
    d[i] = by_kept[i] * h[i] * (reset[i] * (1 - reset[i]));
    dh[i] += by_kept[i] * reset[i];
  }
}
static inline void plain_slopes(int n, const real *y, const real *dh, real *d, bool is_tanh)
{
#pragma omp simd
  for (int i = 0; i < n; i++) d[i] = is_tanh ? dh[i] * (1 - y[i] * y[i]) : y[i] > 0 ? dh[i] : 0;
}
#endif
