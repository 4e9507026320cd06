/* t_rnn -- weights in the layouts of ONNX, Keras and PyTorch, converted by quern/rnn.h: qn_rnn_forward gives what each library's published
 * equations give on the weights as they came. The equations are written out here gate by gate, in the library's own order and names. */
#include <quern/rnn.h>
#include <math.h>
#include <stdlib.h>
#include "tap.h"

enum { T = 4, B = 2, I = 3, H = 5, MOST = 4 * H * H };

static double uniform(void)
{
  static uint64_t state = 0x853c49e6748fea9bu;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) * 0x1p-53 * 2 - 1;
}
static void fill(float *x, int n)
{
  for (int i = 0; i < n; i++) x[i] = (float)uniform();
}

/* A layer's weights as a library keeps them: W of x, R of h, biases of both. */
typedef struct weights { float w[MOST], r[MOST], wb[4 * H], rb[4 * H]; } weights;
typedef struct states { float x[T][B][I], h[B][H], c[B][H], y[T][B][H]; } states;

static double s(double x) { return 1 / (1 + exp(-x)); }

/* Gate g's product with x and bias, and with h and bias. keras: kernels are [inputs, gates units]. */
static double of_x(const weights *w, int keras, int gates, int g, int j, const float *x)
{
  double sum = w->wb[g * H + j];
  for (int i = 0; i < I; i++) sum += (double)(keras ? w->w[i * gates * H + g * H + j] : w->w[(g * H + j) * I + i]) * x[i];
  return sum;
}
static double of_h(const weights *w, int keras, int gates, int g, int j, const double *h)
{
  double sum = w->rb[g * H + j];
  for (int i = 0; i < H; i++) sum += (double)(keras ? w->r[i * gates * H + g * H + j] : w->r[(g * H + j) * H + i]) * h[i];
  return sum;
}

/* LSTM: it, ot, ft = f(Xt W + Ht-1 R + Wb + Rb), ct = g(..); Ct = ft Ct-1 + it ct; Ht = ot h(Ct). i, f, c, o: their places. */
static void lstm(const weights *w, int keras, int i, int f, int c, int o, states *st)
{
  for (int b = 0; b < B; b++) {
    double h[H], cell[H], next[H];
    for (int j = 0; j < H; j++) h[j] = st->h[b][j], cell[j] = st->c[b][j];
    for (int t = 0; t < T; t++) {
      const float *x = st->x[t][b];
      for (int j = 0; j < H; j++) {
        const double it = s(of_x(w, keras, 4, i, j, x) + of_h(w, keras, 4, i, j, h));
        const double ft = s(of_x(w, keras, 4, f, j, x) + of_h(w, keras, 4, f, j, h));
        const double ct = tanh(of_x(w, keras, 4, c, j, x) + of_h(w, keras, 4, c, j, h));
        const double ot = s(of_x(w, keras, 4, o, j, x) + of_h(w, keras, 4, o, j, h));
        cell[j] = ft * cell[j] + it * ct;
        next[j] = ot * tanh(cell[j]);
      }
      for (int j = 0; j < H; j++) st->y[t][b][j] = (float)(h[j] = next[j]);
    }
  }
}

/* GRU: zt, rt = f(Xt W + Ht-1 R + Wb + Rb); ht = g(Xt Wh + (rt Ht-1) Rh + Rbh + Wbh), or with linear_before_reset (reset_after)
 * g(Xt Wh + rt (Ht-1 Rh + Rbh) + Wbh); Ht = (1 - zt) ht + zt Ht-1. z, r, n: their places. */
static void gru(const weights *w, int keras, int linear_before_reset, int z, int r, int n, states *st)
{
  for (int b = 0; b < B; b++) {
    double h[H], rh[H], rt[H], next[H];
    for (int j = 0; j < H; j++) h[j] = st->h[b][j];
    for (int t = 0; t < T; t++) {
      const float *x = st->x[t][b];
      for (int j = 0; j < H; j++) {
        rt[j] = s(of_x(w, keras, 3, r, j, x) + of_h(w, keras, 3, r, j, h));
        rh[j] = rt[j] * h[j];
      }
      for (int j = 0; j < H; j++) {
        const double zt = s(of_x(w, keras, 3, z, j, x) + of_h(w, keras, 3, z, j, h));
        const double ht = tanh(of_x(w, keras, 3, n, j, x) + (linear_before_reset ? rt[j] * of_h(w, keras, 3, n, j, h)
                                                                                  : of_h(w, keras, 3, n, j, rh)));
        next[j] = (1 - zt) * ht + zt * h[j];
      }
      for (int j = 0; j < H; j++) st->y[t][b][j] = (float)(h[j] = next[j]);
    }
  }
}

static qn_tensor tensor(void *p, int rank, int64_t d0, int64_t d1, int64_t d2)
{
  return qn_tensor_make(p, QN_F32, rank, (const int64_t[]){ d0, d1, d2 });
}

static void check(qn_context *ctx, const char *what, int layout, qn_rnn rnn, const weights *theirs, const states *st)
{
  const int64_t gates = qn_rnn_gates(rnn.cell);
  weights ours, back;
  static float y[T][B][H];
  double worst = 0;
  qn_rnn_import(layout, rnn.cell, H, I, sizeof(float), theirs->w, ours.w);
  qn_rnn_import(layout, rnn.cell, H, H, sizeof(float), theirs->r, ours.r);
  qn_rnn_import(layout, rnn.cell, H, 1, sizeof(float), theirs->wb, ours.wb);
  qn_rnn_import(layout, rnn.cell, H, 1, sizeof(float), theirs->rb, ours.rb);
  const qn_tensor x = tensor((void *)(uintptr_t)st->x, 3, T, B, I);
  const qn_tensor w = tensor(ours.w, 2, gates * H, I, 0), r = tensor(ours.r, 2, gates * H, H, 0);
  const qn_tensor bw = tensor(ours.wb, 1, gates * H, 0, 0), br = tensor(ours.rb, 1, gates * H, 0, 0), out = tensor(y, 3, T, B, H);
  const qn_tensor h0 = tensor((void *)(uintptr_t)st->h, 3, 1, B, H), c0 = tensor((void *)(uintptr_t)st->c, 3, 1, B, H);
  qn_rnn_forward_args a = QN_RNN_FORWARD_ARGS_INIT;
  a.x = &x, a.w = &w, a.n_w = 1, a.r = &r, a.n_r = 1, a.bw = &bw, a.n_bw = 1, a.br = &br, a.n_br = 1, a.h0 = &h0, a.y = &out;
  if (rnn.cell == QN_RNN_LSTM) a.c0 = &c0;
  const qn_status status = qn_rnn_forward(ctx, &rnn, &a);
  qn_context_synchronize(ctx);
  for (int i = 0; i < T * B * H && !status; i++) worst = fmax(worst, fabs((double)(&y[0][0][0])[i] - (double)(&st->y[0][0][0])[i]));
  if (!tap_ok(!status && worst < 1e-5, "%s", what)) tap_note("%s; off by %g", status ? qn_last_error() : "", worst);
  qn_rnn_export(layout, rnn.cell, H, I, sizeof(float), ours.w, back.w);
  qn_rnn_export(layout, rnn.cell, H, 1, sizeof(float), ours.rb, back.rb);
  const size_t rows = (size_t)gates * H * sizeof(float);
  tap_ok(!memcmp(back.w, theirs->w, rows * I) && !memcmp(back.rb, theirs->rb, rows), "%s, and back", what);
}

int main(void)
{
  static weights w;
  static states st;
  qn_context *ctx;
  const qn_rnn lstm_cell = QN_RNN_INIT;
  qn_rnn gru_cell = QN_RNN_INIT;
  if (qn_context_create((const char *const[]){ "backend=cpu_ref", NULL }, &ctx)) {
    tap_ok(0, "a context: %s", qn_last_error());
    return tap_done();
  }
  gru_cell.cell = QN_RNN_GRU;
  fill(w.w, MOST), fill(w.r, MOST), fill(w.wb, 4 * H), fill(w.rb, 4 * H);
  fill(&st.x[0][0][0], T * B * I), fill(&st.h[0][0], B * H), fill(&st.c[0][0], B * H);

  lstm(&w, 0, 0, 1, 2, 3, &st);                 /* i f g o */
  check(ctx, "PyTorch's and cuDNN's LSTM", QN_RNN_TORCH, lstm_cell, &w, &st);
  lstm(&w, 0, 0, 2, 3, 1, &st);                 /* i o f c */
  check(ctx, "ONNX's LSTM", QN_RNN_ONNX, lstm_cell, &w, &st);
  lstm(&w, 1, 0, 1, 2, 3, &st);                 /* i f c o */
  check(ctx, "Keras's LSTM", QN_RNN_KERAS, lstm_cell, &w, &st);

  gru(&w, 0, 1, 1, 0, 2, &st);                  /* r z n */
  check(ctx, "PyTorch's and cuDNN's GRU", QN_RNN_TORCH, gru_cell, &w, &st);
  gru(&w, 0, 1, 0, 1, 2, &st);                  /* z r h */
  check(ctx, "ONNX's GRU with linear_before_reset", QN_RNN_ONNX, gru_cell, &w, &st);
  gru(&w, 1, 1, 0, 1, 2, &st);
  check(ctx, "Keras's GRU", QN_RNN_KERAS, gru_cell, &w, &st);
  gru_cell.reset = QN_RNN_RESET_BEFORE;
  gru(&w, 0, 0, 0, 1, 2, &st);
  check(ctx, "ONNX's GRU", QN_RNN_ONNX, gru_cell, &w, &st);
  gru(&w, 1, 0, 0, 1, 2, &st);
  check(ctx, "Keras's GRU with reset_after=False", QN_RNN_KERAS, gru_cell, &w, &st);
  qn_context_destroy(ctx);
  return tap_done();
}
