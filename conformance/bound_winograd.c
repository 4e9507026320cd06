/* bound_winograd.c -- Winograd's own condition sum, for 2-D convolutions of stride 1:
 *
 *   S_w = |A^T| [ sum_c (|G| |g| |G^T|) o (|B^T| |d| |B|) ] |A|       for each tile d and filter g
 *
 * It exceeds the plain S by up to 7 (F(2,3)), 256 (F(4,3)), 509 (F(6,3)). Points 0, +-1, +-2, +-1/2, infinity; the tiles start
 * at the output's first row and column. Where the shape is none of these, the plain S times the worst growth stands in. */
#include <math.h>
#include <stdlib.h>
#include "conform.h"

static const struct transform {
  int m, a;                             /* outputs and inputs of a tile, per dim */
  double bt[64], g[24], at[48];         /* absolute values: a x a, a x 3, m x a */
} transforms[] = {
  {2, 4, {1, 0, 1, 0,  0, 1, 1, 0,  0, 1, 1, 0,  0, 1, 0, 1},
         {1, 0, 0,  .5, .5, .5,  .5, .5, .5,  0, 0, 1},
         {1, 1, 1, 0,  0, 1, 1, 1}},
  {4, 6, {4, 0, 5, 0, 1, 0,  0, 4, 4, 1, 1, 0,  0, 4, 4, 1, 1, 0,  0, 2, 1, 2, 1, 0,  0, 2, 1, 2, 1, 0,  0, 4, 0, 5, 0, 1},
         {1 / 4., 0, 0,  1 / 6., 1 / 6., 1 / 6.,  1 / 6., 1 / 6., 1 / 6.,  1 / 24., 1 / 12., 1 / 6.,
          1 / 24., 1 / 12., 1 / 6.,  0, 0, 1},
         {1, 1, 1, 1, 1, 0,  0, 1, 1, 2, 2, 0,  0, 1, 1, 4, 4, 0,  0, 1, 1, 8, 8, 1}},
  {6, 8, {1, 0, 5.25, 0, 5.25, 0, 1, 0,  0, 1, 1, 4.25, 4.25, 1, 1, 0,  0, 1, 1, 4.25, 4.25, 1, 1, 0,
          0, .5, .25, 2.5, 1.25, 2, 1, 0,  0, .5, .25, 2.5, 1.25, 2, 1, 0,  0, 2, 4, 2.5, 5, .5, 1, 0,
          0, 2, 4, 2.5, 5, .5, 1, 0,  0, 1, 0, 5.25, 0, 5.25, 0, 1},
         {1, 0, 0,  2 / 9., 2 / 9., 2 / 9.,  2 / 9., 2 / 9., 2 / 9.,  1 / 90., 1 / 45., 2 / 45.,  1 / 90., 1 / 45., 2 / 45.,
          32 / 45., 16 / 45., 8 / 45.,  32 / 45., 16 / 45., 8 / 45.,  0, 0, 1},
         {1, 1, 1, 1, 1, 1, 1, 0,  0, 1, 1, 2, 2, .5, .5, 0,  0, 1, 1, 4, 4, .25, .25, 0,  0, 1, 1, 8, 8, .125, .125, 0,
          0, 1, 1, 16, 16, .0625, .0625, 0,  0, 1, 1, 32, 32, .03125, .03125, 1}},
};

/* out (p x q) = l (p x n) in (n x n) l^T, for square in */
static void sandwich(const double *l, int p, int n, const double *in, double *out)
{
  double half[64];
  for (int i = 0; i < p; i++)
    for (int j = 0; j < n; j++) {
      half[i * n + j] = 0;
      for (int k = 0; k < n; k++)
        half[i * n + j] += l[i * n + k] * in[k * n + j];
    }
  for (int i = 0; i < p; i++)
    for (int j = 0; j < p; j++) {
      out[i * p + j] = 0;
      for (int k = 0; k < n; k++)
        out[i * p + j] += half[i * n + k] * l[j * n + k];
    }
}

double *qc_winograd_sum(struct qc_node *n, int tile, int filter)
{
  const struct transform *t = NULL;
  for (size_t i = 0; i < sizeof transforms / sizeof *transforms; i++)
    if (transforms[i].m == tile && filter == 3)
      t = &transforms[i];
  struct qc_value *x = n->in[0], *w = n->in[1], *y = n->out[0];
  double *s = qc_alloc((size_t)y->n * sizeof *s);
  bool back = n->op->kind == QN_OP_CONV_BACKWARD_DATA, fits = t && x->q.rank == 4 && n->op->kind != QN_OP_CONV_BACKWARD_FILTER;
  for (int d = 0; d < 2; d++)
    fits = fits && w->q.dim[2 + d] == 3 && qc_attr_int(n->op, n->attr, "stride", d, 0, 1) == 1 &&
           qc_attr_int(n->op, n->attr, "dilation", d, 0, 1) == 1;
  if (!fits) {
    for (int64_t i = 0; i < y->n; i++)
      s[i] = 509 * n->s[i];
    return s;
  }
  int64_t groups = qc_attr_int(n->op, n->attr, "groups", 0, 0, 1), c_in = x->q.dim[1] / groups, c_out = y->q.dim[1] / groups;
  int64_t ph = qc_attr_int(n->op, n->attr, "pad", 0, 0, 0), pw = qc_attr_int(n->op, n->attr, "pad", 1, 0, 0);
  ph = back ? 2 - ph : ph;
  pw = back ? 2 - pw : pw;
  int64_t ih = x->q.dim[2], iw = x->q.dim[3], oh = y->q.dim[2], ow = y->q.dim[3];
  for (int64_t image = 0; image < y->q.dim[0]; image++)
    for (int64_t k = 0; k < y->q.dim[1]; k++)
      for (int64_t h0 = 0; h0 < oh; h0 += t->m)
        for (int64_t w0 = 0; w0 < ow; w0 += t->m) {
          double sum[64] = {0}, out[36];
          for (int64_t c = 0; c < c_in; c++) {
            double g[9], d[64], tg[64], td[64];
            int64_t group = k / c_out, channel = group * c_in + c;
            for (int r = 0; r < 9; r++) {
              int64_t at = back ? ((channel * c_out + k % c_out) * 9 + 8 - r) : ((k * c_in + c) * 9 + r);
              g[r] = fabs(w->y[at]);
            }
            for (int i = 0; i < t->a; i++)
              for (int j = 0; j < t->a; j++) {
                int64_t row = h0 + i - ph, col = w0 + j - pw;
                bool inside = row >= 0 && row < ih && col >= 0 && col < iw;
                d[i * t->a + j] = inside ? fabs(x->y[((image * x->q.dim[1] + channel) * ih + row) * iw + col]) : 0;
              }
            sandwich(t->g, t->a, 3, g, tg);
            sandwich(t->bt, t->a, t->a, d, td);
            for (int i = 0; i < t->a * t->a; i++)
              sum[i] += tg[i] * td[i];
          }
          sandwich(t->at, t->m, t->a, sum, out);
          for (int i = 0; i < t->m && h0 + i < oh; i++)
            for (int j = 0; j < t->m && w0 + j < ow; j++)
              s[((image * y->q.dim[1] + k) * oh + h0 + i) * ow + w0 + j] = out[i * t->m + j];
        }
  return s;
}
