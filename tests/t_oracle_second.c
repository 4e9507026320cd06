/* t_oracle_second -- the direct engines against an independent second implementation: it enumerates every single contribution
 * (output, input, filter tap) and scatters it to its place. Data are small integers, so sums are exact in any order and results must be
 * equal; averages, ctc and attention have a bound. The engines' tensors have random dim orders and gaps. */
#include <quern/kit.h>
#include <stdbool.h>
#include <stdlib.h>
#include "tap.h"

static uint64_t random_bits(void)                  /* xorshift64* */
{
  static uint64_t state = 0x853c49e6748fea9bu;
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545f4914f6cdd1du;
}
static int64_t between(int64_t low, int64_t high) { return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1)); }

/* ---- tensors: packed numbers here, strided memory for the engine ------------------------------- */

typedef struct array {
  qn_tensor t;
  int64_t   n, bytes;
  double   *value;                        /* row-major */
} array;

static array array_make(uint32_t dtype, int rank, const int64_t *dim)
{
  array a = { .t = qn_tensor_make(NULL, dtype, rank, dim), .n = 1 };
  int order[QN_MAX_RANK];
  int64_t step = 1;
  for (int d = 0; d < rank; d++) order[d] = d;
  for (int d = rank - 1; d > 0; d--) {
    const int other = (int)between(0, d), kept = order[d];
    order[d] = order[other];
    order[other] = kept;
  }
  for (int d = 0; d < rank; d++) {
    a.t.stride[order[d]] = step;
    step *= dim[order[d]] + (between(0, 7) == 0);
    a.n *= dim[d];
  }
  a.bytes = step * (int64_t)qn_dtype_bytes(dtype);
  a.t.data = calloc((size_t)step, qn_dtype_bytes(dtype));
  a.value = calloc((size_t)a.n, sizeof *a.value);
  return a;
}

static void array_free(array *a)
{
  free(a->t.data);
  free(a->value);
}

static unsigned char *address(const array *a, int64_t i)
{
  int64_t offset = 0;
  for (int d = a->t.rank - 1; d >= 0; d--) {
    offset += i % a->t.dim[d] * a->t.stride[d];
    i /= a->t.dim[d];
  }
  return (unsigned char *)a->t.data + offset * qn_kit_bytes(a->t.dtype);
}

static void array_fill(array *a)          /* integers exact in every float dtype */
{
  for (int64_t i = 0; i < a->n; i++) {
    a->value[i] = (double)between(-4, 4);
    qn_store_f64(address(a, i), a->t.dtype, a->value[i]);
  }
}

/* The number of the engine's elements that differ from the expected, by more than `bound` times scale[i] (NULL: 1). */
static int64_t differing(const array *a, double bound, const double *scale)
{
  int64_t bad = 0;
  for (int64_t i = 0; i < a->n; i++)
    bad += !(fabs(qn_load_f64(address(a, i), a->t.dtype) - a->value[i]) <= bound * (scale ? scale[i] : 1));
  return bad;
}

/* Advances index[] within dim[], last fastest; 0 when it wraps to the start. */
static int count_up(int64_t *index, const int64_t *dim, int n)
{
  for (int d = n - 1; d >= 0; d--) {
    if (++index[d] < dim[d]) return 1;
    index[d] = 0;
  }
  return 0;
}

static int64_t packed(const int64_t *index, const int64_t *dim, int n)
{
  int64_t i = 0;
  for (int d = 0; d < n; d++) i = i * dim[d] + index[d];
  return i;
}

/* ---- convolution: all three ops from one list of contributions ---------------------------------- */

static int64_t test_convolution(qn_context *ctx, uint32_t dtype)
{
  const int spatial = (int)between(1, 3), rank = spatial + 2;
  qn_conv conv = QN_CONV_INIT;
  int64_t xd[5], wd[5], yd[5];
  conv.groups = between(1, 3);
  const int64_t cg = between(1, 3), kg = between(1, 3);
  xd[0] = yd[0] = between(1, 2);
  xd[1] = conv.groups * cg;
  yd[1] = wd[0] = conv.groups * kg;
  wd[1] = cg;
  for (int s = 0; s < spatial; s++) {
    do {
      xd[2 + s] = between(1, 7);
      wd[2 + s] = between(1, 3);
      conv.stride[s] = between(1, 3);
      conv.dilation[s] = between(1, 3);
      conv.pad_before[s] = between(0, 3);
      conv.pad_after[s] = between(0, 3);
      yd[2 + s] = xd[2 + s] + conv.pad_before[s] + conv.pad_after[s] - conv.dilation[s] * (wd[2 + s] - 1) - 1;
    } while (yd[2 + s] < 0);
    yd[2 + s] = yd[2 + s] / conv.stride[s] + 1;
  }
  array x = array_make(dtype, rank, xd), w = array_make(dtype, rank, wd), y = array_make(dtype, rank, yd);
  array dx = array_make(dtype, rank, xd), dw = array_make(dtype, rank, wd), dy = array_make(dtype, rank, yd);
  array bias = array_make(dtype, 1, yd + 1);
  array_fill(&x), array_fill(&w), array_fill(&dy), array_fill(&bias);

  for (int64_t i = 0; i < y.n; i++) y.value[i] = bias.value[i / (y.n / yd[0] / yd[1]) % yd[1]];
  /* n, group, k and c in the group, window, tap */
  int64_t extent[10] = { xd[0], conv.groups, kg, cg }, at[10] = { 0 };
  for (int s = 0; s < spatial; s++) {
    extent[4 + s] = yd[2 + s];
    extent[4 + spatial + s] = wd[2 + s];
  }
  do {
    int64_t xi[5] = { at[0], at[1] * cg + at[3] }, wi[5] = { at[1] * kg + at[2], at[3] }, yi[5] = { at[0], at[1] * kg + at[2] };
    int inside = 1;
    for (int s = 0; s < spatial; s++) {
      yi[2 + s] = at[4 + s];
      wi[2 + s] = at[4 + spatial + s];
      xi[2 + s] = yi[2 + s] * conv.stride[s] + wi[2 + s] * conv.dilation[s] - conv.pad_before[s];
      inside &= xi[2 + s] >= 0 && xi[2 + s] < xd[2 + s];
    }
    if (!inside) continue;
    const int64_t xp = packed(xi, xd, rank), wp = packed(wi, wd, rank), yp = packed(yi, yd, rank);
    y.value[yp] += x.value[xp] * w.value[wp];
    dx.value[xp] += dy.value[yp] * w.value[wp];
    dw.value[wp] += dy.value[yp] * x.value[xp];
  } while (count_up(at, extent, 4 + 2 * spatial));

  int64_t bad = 0;
  bad += qn_conv_forward(ctx, &conv, &x.t, &w.t, &bias.t, &y.t) || qn_conv_backward_data(ctx, &conv, &dy.t, &w.t, &dx.t)
      || qn_conv_backward_filter(ctx, &conv, &x.t, &dy.t, &dw.t) || qn_context_synchronize(ctx);
  if (bad) tap_note("%s", qn_last_error());
  bad += differing(&y, 0, NULL) + differing(&dx, 0, NULL) + differing(&dw, 0, NULL);
  array_free(&x), array_free(&w), array_free(&y), array_free(&dx), array_free(&dw), array_free(&dy), array_free(&bias);
  return bad;
}

/* ---- matmul: outer products ---------------------------------------------------------------------- */

static int64_t test_matmul(qn_context *ctx, uint32_t dtype)
{
  const int rank = (int)between(2, 4);
  int64_t ad[4], bd[4], yd[4];
  for (int d = 0; d < rank - 2; d++) {
    yd[d] = between(1, 3);
    ad[d] = between(0, 3) ? yd[d] : 1;
    bd[d] = ad[d] == 1 || between(0, 3) ? yd[d] : 1;
  }
  yd[rank - 2] = ad[rank - 2] = between(1, 9);
  yd[rank - 1] = bd[rank - 1] = between(1, 9);
  ad[rank - 1] = bd[rank - 2] = between(1, 20);
  array a = array_make(dtype, rank, ad), b = array_make(dtype, rank, bd), c = array_make(dtype, rank, yd), y = array_make(dtype, rank, yd);
  array bias = array_make(dtype, 1, yd + rank - 1);
  array_fill(&a), array_fill(&b), array_fill(&c), array_fill(&bias);
  const double alpha = (double)between(-2, 2), beta = (double)between(-2, 2);
  for (int64_t i = 0; i < y.n; i++) y.value[i] = beta * c.value[i] + bias.value[i % yd[rank - 1]];
  for (int64_t k = 0; k < ad[rank - 1]; k++) {
    int64_t at[4] = { 0 };
    do {
      int64_t ai[4], bi[4];
      for (int d = 0; d < rank; d++) {
        ai[d] = ad[d] == 1 ? 0 : at[d];
        bi[d] = bd[d] == 1 ? 0 : at[d];
      }
      ai[rank - 1] = bi[rank - 2] = k;
      y.value[packed(at, yd, rank)] += alpha * a.value[packed(ai, ad, rank)] * b.value[packed(bi, bd, rank)];
    } while (count_up(at, yd, rank));
  }
  const qn_tensor ta = qn_scalar(&alpha, QN_F64), tb = qn_scalar(&beta, QN_F64);
  int64_t bad = qn_matmul(ctx, &a.t, &b.t, &c.t, &bias.t, &ta, &tb, &y.t) || qn_context_synchronize(ctx);
  if (bad) tap_note("%s", qn_last_error());
  bad += differing(&y, 0, NULL);
  array_free(&a), array_free(&b), array_free(&c), array_free(&y), array_free(&bias);
  return bad;
}

/* ---- pooling: windows scattered ------------------------------------------------------------------- */

static int64_t test_pooling(qn_context *ctx, uint32_t dtype)
{
  const int spatial = (int)between(1, 3), rank = spatial + 2;
  qn_pool pool = QN_POOL_INIT;
  int64_t xd[5], yd[5];
  xd[0] = yd[0] = between(1, 2);
  xd[1] = yd[1] = between(1, 3);
  pool.ceil_mode = between(0, 1);
  pool.include_pad = between(0, 1);
  for (int s = 0; s < spatial; s++) {
    int64_t left;
    do {
      xd[2 + s] = between(1, 7);
      pool.window[s] = between(1, 3);
      pool.stride[s] = between(1, 3);
      pool.dilation[s] = between(1, 2);
      pool.pad_before[s] = between(0, 2);
      pool.pad_after[s] = between(0, 2);
      left = xd[2 + s] + pool.pad_before[s] + pool.pad_after[s] - pool.dilation[s] * (pool.window[s] - 1) - 1;
    } while (left < 0);
    yd[2 + s] = 1;
    for (int64_t start = pool.stride[s]; ; start += pool.stride[s]) {      /* where the next window would begin */
      const int fits = start <= left, hangs_over = start < left + pool.stride[s];
      const int beyond = start >= xd[2 + s] + pool.pad_before[s];
      if (pool.ceil_mode ? !hangs_over || beyond : !fits) break;
      yd[2 + s]++;
    }
  }
  array x = array_make(dtype, rank, xd), largest = array_make(dtype, rank, yd), places = array_make(QN_I32, rank, yd);
  array mean = array_make(dtype, rank, yd), dy = array_make(dtype, rank, yd);
  array by_place = array_make(dtype, rank, xd), by_x = array_make(dtype, rank, xd), by_mean = array_make(dtype, rank, xd);
  array_fill(&x), array_fill(&dy);
  double *scale = calloc((size_t)x.n, sizeof *scale);

  int64_t yi[5] = { 0 };
  do {
    int64_t tap[3] = { 0 }, best = -1, where = -1, declared = 0, inside = 0;
    const int64_t yp = packed(yi, yd, rank);
    double sum = 0;
    for (int pass = 0; pass < 2; pass++) {         /* first the window's sum and maximum, then its gradient */
      const double share = dy.value[yp] / (double)(pool.include_pad ? declared : inside);
      do {
        int64_t xi[5] = { yi[0], yi[1] };
        int in_x = 1, in_padding = 1;
        for (int s = 0; s < spatial; s++) {
          xi[2 + s] = yi[2 + s] * pool.stride[s] + tap[s] * pool.dilation[s] - pool.pad_before[s];
          in_x &= xi[2 + s] >= 0 && xi[2 + s] < xd[2 + s];
          in_padding &= xi[2 + s] < xd[2 + s] + pool.pad_after[s];
        }
        const int64_t xp = in_x ? packed(xi, xd, rank) : 0;
        if (pass == 1) {
          if (in_x) by_mean.value[xp] += share, scale[xp] += fabs(share);
          continue;
        }
        declared += in_padding;
        inside += in_x;
        if (!in_x) continue;
        sum += x.value[xp];
        if (best < 0 || x.value[xp] > x.value[best]) best = xp, where = packed(xi + 2, xd + 2, spatial);
      } while (count_up(tap, pool.window, spatial));
    }
    largest.value[yp] = best < 0 ? -INFINITY : x.value[best];
    places.value[yp] = (double)where;
    mean.value[yp] = inside ? sum / (double)(pool.include_pad ? declared : inside) : 0;
    if (best >= 0) by_place.value[best] += dy.value[yp], by_x.value[best] += dy.value[yp];
  } while (count_up(yi, yd, rank));

  int64_t bad = qn_pool_max(ctx, &pool, &x.t, &largest.t, &places.t)
      || qn_pool_max_backward(ctx, &pool, &dy.t, &places.t, NULL, &by_place.t)
      || qn_pool_max_backward(ctx, &pool, &dy.t, NULL, &x.t, &by_x.t) || qn_pool_average(ctx, &pool, &x.t, &mean.t)
      || qn_pool_average_backward(ctx, &pool, &dy.t, &by_mean.t) || qn_context_synchronize(ctx);
  if (bad) tap_note("%s", qn_last_error());
  const double unit = dtype == QN_F64 ? 0x1p-50 : 0x1p-23;               /* a division, then a few additions, or one rounding */
  for (int64_t i = 0; i < largest.n; i++)          /* -Inf less itself is NaN: compare by != */
    bad += qn_load_f64(address(&largest, i), dtype) != largest.value[i];
  bad += differing(&places, 0, NULL) + differing(&by_place, 0, NULL) + differing(&by_x, 0, NULL);
  bad += differing(&mean, 4 * unit, NULL) + differing(&by_mean, unit, scale);
  free(scale);
  array_free(&x), array_free(&largest), array_free(&places), array_free(&mean), array_free(&dy);
  array_free(&by_place), array_free(&by_x), array_free(&by_mean);
  return bad;
}

/* ---- connectionist temporal classification: every path, one by one ------------------------------ */

/* Does the path spell the labels? */
static bool spells(const int64_t *path, int64_t frames, int64_t blank, const double *labels, int64_t n)
{
  int64_t spelt = 0;
  for (int64_t t = 0; t < frames; t++) {
    if (path[t] == blank || (t > 0 && path[t] == path[t - 1])) continue;
    if (spelt == n || path[t] != (int64_t)labels[spelt]) return false;
    spelt++;
  }
  return spelt == n;
}

static array array_of_integers(int rank, const int64_t *dim, int64_t low, int64_t high)
{
  array a = array_make(between(0, 1) ? QN_I32 : QN_I64, rank, dim);
  for (int64_t i = 0; i < a.n; i++) {
    a.value[i] = (double)between(low, high);
    qn_store_i64(address(&a, i), a.t.dtype, (int64_t)a.value[i]);
  }
  return a;
}

static int64_t test_ctc(qn_context *ctx, uint32_t dtype)
{
  const int64_t frames = between(1, 5), samples = between(1, 3), classes = between(1, 3), longest = between(1, 3);
  const int64_t xd[3] = { frames, samples, classes }, ld[2] = { samples, longest }, ed[3] = { frames, samples, 1 };
  qn_ctc ctc = QN_CTC_INIT;
  ctc.blank = between(0, classes - 1);
  ctc.zero_infinity = between(0, 1);
  array x = array_make(dtype, 3, xd), dx = array_make(dtype, 3, xd), lse = array_make(dtype, 3, ed), loss = array_make(dtype, 1, &samples);
  array dy = array_make(dtype, 1, &samples), labels = array_of_integers(2, ld, 0, classes - 1);
  array x_lengths = array_of_integers(1, &samples, -1, frames + 1), label_lengths = array_of_integers(1, &samples, -1, longest + 1);
  array_fill(&x), array_fill(&dy);
  for (int64_t n = 0; n < samples; n++) {
    const int64_t used = qn_max_i64(0, qn_min_i64((int64_t)x_lengths.value[n], frames));
    const int64_t spelt = qn_max_i64(0, qn_min_i64((int64_t)label_lengths.value[n], longest));
    double p[5][3], share[5][3] = { { 0 } }, total = 0;
    for (int64_t t = 0; t < used; t++) {
      double sum = 0;
      for (int64_t c = 0; c < classes; c++) sum += exp(x.value[(t * samples + n) * classes + c]);
      for (int64_t c = 0; c < classes; c++) p[t][c] = exp(x.value[(t * samples + n) * classes + c]) / sum;
      lse.value[t * samples + n] = log(sum);
    }
    int64_t path[5] = { 0 };
    const int64_t choices[5] = { classes, classes, classes, classes, classes };
    do {
      if (!spells(path, used, ctc.blank, labels.value + n * longest, spelt)) continue;
      double chance = 1;
      for (int64_t t = 0; t < used; t++) chance *= p[t][path[t]];
      for (int64_t t = 0; t < used; t++) share[t][path[t]] += chance;
      total += chance;
    } while (count_up(path, choices, (int)used));
    loss.value[n] = total > 0 ? -log(total) : ctc.zero_infinity ? 0 : INFINITY;
    for (int64_t t = 0; t < used && total > 0; t++)
      for (int64_t c = 0; c < classes; c++) dx.value[(t * samples + n) * classes + c] = dy.value[n] * (p[t][c] - share[t][c] / total);
  }

  int64_t bad = qn_ctc_loss(ctx, &ctc, &x.t, &labels.t, &x_lengths.t, &label_lengths.t, &loss.t, &lse.t)
      || qn_ctc_loss_backward(ctx, &ctc, &dy.t, &x.t, &labels.t, &x_lengths.t, &label_lengths.t, &lse.t, &dx.t) ||
          qn_context_synchronize(ctx);
  if (bad) tap_note("%s", qn_last_error());
  const double unit = dtype == QN_F64 ? 0x1p-45 : 0x1p-18;               /* of sums of a few hundred products */
  for (int64_t i = 0; i < samples; i++)
    if (isinf(loss.value[i]))
      bad += qn_load_f64(address(&loss, i), dtype) != loss.value[i], loss.value[i] = 0, qn_store_f64(address(&loss, i), dtype, 0);
  bad += differing(&loss, 8 * unit, NULL) + differing(&lse, unit, NULL) + differing(&dx, 8 * unit, NULL);
  array_free(&x), array_free(&dx), array_free(&lse), array_free(&loss), array_free(&dy);
  array_free(&labels), array_free(&x_lengths), array_free(&label_lengths);
  return bad;
}

/* Ragged attention on the whole matrix of tokens, of which a query sees what is of its own sequence and within its window; weights first,
 * then each of them given to all that it touches. */
static int64_t test_attention(qn_context *ctx, uint32_t dtype)
{
  const int64_t sequences = between(1, 3), hkv = between(1, 2), group = between(1, 3), h = hkv * group;
  const int64_t d = between(1, 4), dv = between(1, 4);
  double begin_q[4] = { 0 }, begin_k[4] = { 0 };
  for (int b = 0; b < sequences; b++) {
    begin_q[b + 1] = begin_q[b] + (double)between(b == 0, 4);
    begin_k[b + 1] = begin_k[b] + (double)between(b == 0, 5);
  }
  const int64_t nq = (int64_t)begin_q[sequences], nk = (int64_t)begin_k[sequences], ns = sequences + 1;
  const int64_t qd[4] = { 1, h, nq, d }, kd[4] = { 1, hkv, nk, d }, vd[4] = { 1, hkv, nk, dv }, yd[4] = { 1, h, nq, dv };
  const int64_t bd[4] = { 1, h, nq, nk };
  array q = array_make(dtype, 4, qd), k = array_make(dtype, 4, kd), v = array_make(dtype, 4, vd), y = array_make(dtype, 4, yd);
  array dq = array_make(dtype, 4, qd), dk = array_make(dtype, 4, kd), dval = array_make(dtype, 4, vd), dy = array_make(dtype, 4, yd);
  array bias = array_make(dtype, 4, bd), dbias = array_make(dtype, 4, bd), lse = array_make(dtype, 3, qd);
  array slopes = array_make(dtype, 1, &h), sink = array_make(dtype, 1, &h), dsink = array_make(dtype, 1, &h);
  array q_starts = array_of_integers(1, &ns, 0, 0), k_starts = array_of_integers(1, &ns, 0, 0);
  array *filled[] = { &q, &k, &v, &dy, &bias, &slopes, &sink };
  for (int i = 0; i < 7; i++) array_fill(filled[i]);
  for (int b = 0; b <= sequences; b++) {
    qn_store_i64(address(&q_starts, b), q_starts.t.dtype, (int64_t)begin_q[b]);
    qn_store_i64(address(&k_starts, b), k_starts.t.dtype, (int64_t)begin_k[b]);
  }
  qn_attention a = QN_ATTENTION_INIT;
  a.left = between(-1, 3), a.right = between(-1, 3), a.align = between(0, 1), a.scale = 0.125, a.softcap = (double)between(0, 1) * 3;

  for (int64_t row = 0; row < h * nq; row++) {
    const int64_t head = row / nq, i = row % nq;
    double weight[20] = { 0 }, turn[20] = { 0 }, total = exp(sink.value[head]), big_d = 0;
    for (int64_t j = 0; j < nk; j++) {
      int b = 0;
      while ((double)i >= begin_q[b + 1]) b++;
      const double away = (double)i - begin_q[b] - ((double)j - begin_k[b])
                        + (a.align ? 0 : begin_k[b + 1] - begin_k[b] - begin_q[b + 1] + begin_q[b]);
      if ((double)j < begin_k[b] || (double)j >= begin_k[b + 1] || (a.left >= 0 && away > (double)a.left)
          || (a.right >= 0 && -away > (double)a.right))
        continue;
      double x = 0;
      for (int64_t c = 0; c < d; c++) x += q.value[row * d + c] * k.value[(head / group * nk + j) * d + c] / 8;
      turn[j] = 1;
      if (a.softcap > 0) x = a.softcap * tanh(x / a.softcap), turn[j] = 1 - x * x / a.softcap / a.softcap;
      weight[j] = exp(x + bias.value[row * nk + j] - slopes.value[head] * fabs(away));
      total += weight[j];
    }
    lse.value[row] = log(total);
    for (int64_t j = 0; j < nk; j++)
      for (int64_t c = 0; c < dv; c++) {
        const int64_t at = (head / group * nk + j) * dv + c;
        y.value[row * dv + c] += weight[j] / total * v.value[at];
        dval.value[at] += weight[j] / total * dy.value[row * dv + c];
      }
    for (int64_t c = 0; c < dv; c++) big_d += dy.value[row * dv + c] * y.value[row * dv + c];
    dsink.value[head] -= exp(sink.value[head]) / total * big_d;
    for (int64_t j = 0; j < nk; j++) {
      double dp = 0;
      for (int64_t c = 0; c < dv; c++) dp += dy.value[row * dv + c] * v.value[(head / group * nk + j) * dv + c];
      const double ds = weight[j] / total * (dp - big_d);
      dbias.value[row * nk + j] += ds;
      for (int64_t c = 0; c < d; c++) {
        dq.value[row * d + c] += ds * turn[j] / 8 * k.value[(head / group * nk + j) * d + c];
        dk.value[(head / group * nk + j) * d + c] += ds * turn[j] / 8 * q.value[row * d + c];
      }
    }
  }

  qn_attention_forward_args forward = QN_ATTENTION_FORWARD_ARGS_INIT;
  qn_attention_backward_args backward = QN_ATTENTION_BACKWARD_ARGS_INIT;
  forward.q = backward.q = &q.t, forward.k = backward.k = &k.t, forward.v = backward.v = &v.t, forward.y = backward.y = &y.t;
  forward.lse = backward.lse = &lse.t, forward.bias = backward.bias = &bias.t, forward.sink = backward.sink = &sink.t;
  forward.slopes = backward.slopes = &slopes.t, forward.q_starts = backward.q_starts = &q_starts.t;
  forward.kv_starts = backward.kv_starts = &k_starts.t;
  backward.dy = &dy.t, backward.dq = &dq.t, backward.dk = &dk.t, backward.dv = &dval.t;
  backward.dbias = &dbias.t, backward.dsink = &dsink.t;
  int64_t bad = qn_attention_forward(ctx, &a, &forward) || qn_attention_backward(ctx, &a, &backward) || qn_context_synchronize(ctx);
  if (bad) tap_note("%s", qn_last_error());
  const double unit = dtype == QN_F64 ? 0x1p-38 : 0x1p-12;               /* of sums of a few hundred products below 2^8 */
  array *judged[] = { &y, &lse, &dq, &dk, &dval, &dbias, &dsink };
  array *all[] = { &q, &k, &v, &dy, &bias, &slopes, &sink, &q_starts, &k_starts };
  for (int i = 0; i < 7; i++) bad += differing(judged[i], unit, NULL), array_free(judged[i]);
  for (int i = 0; i < 9; i++) array_free(all[i]);
  return bad;
}

/* ---- all --------------------------------------------------------------------------------------- */

static void test(qn_context *ctx, const char *name, int64_t (*one)(qn_context *, uint32_t), uint32_t dtype, int times)
{
  int64_t bad = 0;
  for (int i = 0; i < times && !bad; i++) {
    bad = one(ctx, dtype);
    if (bad) tap_note("%s: problem %d: %lld differ", name, i, (long long)bad);
  }
  tap_ok(!bad, "%s, %s: %d problems at random", name, qn_dtype_name(dtype), times);
}

int main(void)
{
  const char *const options[] = { "backend=cpu_ref", "engine=conv_forward=direct,conv_backward_data=direct,"
    "conv_backward_filter=direct,matmul=direct,pool_max=direct,pool_max_backward=direct,pool_average=direct,"
    "pool_average_backward=direct,ctc_loss=direct,ctc_loss_backward=direct,"
    "attention_forward=direct,attention_backward=direct", NULL };
  qn_context *ctx;
  if (!tap_ok(!qn_context_create(options, &ctx), "a context pinned to the oracle")) {
    tap_note("%s", qn_last_error());
    return tap_done();
  }
  const uint32_t dtypes[] = { QN_F64, QN_F32 };
  for (int d = 0; d < 2; d++) {
    test(ctx, "convolution and its gradients", test_convolution, dtypes[d], 300);
    test(ctx, "matmul", test_matmul, dtypes[d], 300);
    test(ctx, "pooling and its gradients", test_pooling, dtypes[d], 300);
    test(ctx, "ctc and its gradient", test_ctc, dtypes[d], 300);
    test(ctx, "attention and its gradients", test_attention, dtypes[d], 300);
  }
  qn_context_destroy(ctx);
  return tap_done();
}
