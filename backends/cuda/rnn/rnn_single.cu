/* rnn_single.cu -- one step of a recurrent network for few sequences, as text and sound are generated: a launch for each layer and
 * direction, in which a warp makes a unit.
 *
 *   sums of each gate = rows of w by x + rows of r by h0      a lane takes 16 bytes of every 512 of a row; then the gates (rnn_cells.cuh)
 *
 * Each weight is read once, by streaming 16-byte loads: that is the work. Lstm, gru with the reset after, tanh, relu; no projection; rows
 * of x, h0 and weights in aligned pieces of 16 bytes. */
#include "engines.h"
#include "rnn_cells.cuh"
#include "kit/sums.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256, WARPS = THREADS / 32, MOST_BATCH = 16 };

struct single {
  cuda_rnn net;
  const void *x, *w, *r;                  /* x: as the layer takes it */
  int64_t x_row, w_row, r_row;            /* elements */
};

/* sum[a][b] += rows g hidden + u of weights by n numbers of each sequence; a = g, but of gru's n `last`. */
template <int dtype, int N>
__device__ __forceinline__ void add_product(float (&sum)[4][N], const cuda_rnn &net, const void *weights, int64_t row_step, int64_t u,
                                            int last, const void *of, int64_t of_step, int b0, int n)
{
  constexpr int V = vector_per_16<dtype>;
#pragma unroll 2
  for (int k = threadIdx.x % 32 * V; k < n; k += 32 * V) {
    uint4 row[4];
#pragma unroll
    for (int g = 0; g < 4; g++)
      row[g] = g < net.gates ? __ldcs(vector_place<dtype>(weights, (g * net.hidden + u) * row_step + k)) : make_uint4(0, 0, 0, 0);
    float v[4][V];
#pragma unroll
    for (int g = 0; g < 4; g++) vector_open<dtype>(v[g], 0, row[g]);
#pragma unroll
    for (int b = 0; b < N; b++) {
      float x[V];
      vector_open<dtype>(x, 0, b0 + b < net.batch ? *vector_place<dtype>(of, (b0 + b) * of_step + k) : make_uint4(0, 0, 0, 0));
#pragma unroll
      for (int g = 0; g < 4; g++) {
        if (g >= net.gates) break;
        float &to = g == 2 && last == 3 ? sum[3][b] : sum[g][b];
#pragma unroll
        for (int i = 0; i < V; i++) to = fmaf(v[g][i], x[i], to);
      }
    }
  }
}

template <int dtype, int N> __global__ static void __launch_bounds__(THREADS) rnn_single(const __grid_constant__ single p)
{
  const cuda_rnn &net = p.net;
  const int64_t u = blockIdx.x * (int64_t)WARPS + threadIdx.x / 32, H = net.hidden;
  const int lane = threadIdx.x % 32, last = net.cell == QN_RNN_GRU ? 3 : 2;
  if (u >= H) return;
  for (int b0 = 0; b0 < net.batch; b0 += N) {
    float sum[4][N] = {};
    add_product<dtype>(sum, net, p.w, p.w_row, u, 2, p.x, p.x_row, b0, (int)net.inputs);
    if (net.h0.p) add_product<dtype>(sum, net, p.r, p.r_row, u, last, net.h0.p, net.h0.stride[0], b0, (int)H);
    float mine[4] = {};
#pragma unroll
    for (int g = 0; g < 4; g++)
#pragma unroll
      for (int b = 0; b < N; b++) {
        const float all = warp_sum(sum[g][b]);
        if (lane == b) mine[g] = all;
      }
    const int64_t b = b0 + lane;
    if (lane >= N || b >= net.batch) continue;
    const bool inside = rnn_length(net, b) > 0;
    float gate[4], h = rnn_get<float>(net.h0, b, u), c = rnn_get<float>(net.c0, b, u), raw = 0;
#pragma unroll
    for (int g = 0; g < 4; g++) {
      const float bw = g < net.gates ? rnn_get<float>(net.bw, g * H + u) : 0, br = g < net.gates ? rnn_get<float>(net.br, g * H + u) : 0;
      if (last == 3 && g >= 2) gate[g] = mine[g] + (g == 2 ? bw : rnn_get<float>(net.br, 2 * H + u));
      else gate[g] = mine[g] + (bw + br);
    }
    if (inside) {
      if (net.cell == QN_RNN_LSTM) h = rnn_lstm(net, gate, c, raw);
      else h = net.cell == QN_RNN_GRU ? rnn_gru(gate, h) : rnn_plain(net, gate[0]);
    }
    rnn_give(net, 0, b, u, inside ? h : 0.f);
#pragma unroll
    for (int g = 0; g < 4; g++)
      if (g < net.kept) rnn_put(net.gates_at, 0, b, g * H + u, inside ? gate[g] : 0.f);
    rnn_put(net.cells_at, 0, b, u, raw);
    rnn_put(net.ht, b, u, 0, h);
    rnn_put(net.ct, b, u, 0, c);
  }
}

/* ---- host ------------------------------------------------------------------------------------------ */

struct state {
  cuda_rnn_problem p;
  uint64_t next[2];                       /* places in workspace: what layers give */
};

/* Rows of n elements side by side, in pieces of 16 bytes, `row` elements apart. */
static bool whole(const cuda_rnn_operand &o, int64_t n, int64_t row, int64_t step)
{
  const int64_t unit = 16 / (int64_t)qn_kit_bytes(o.dtype);
  return o.align >= 16 && n % unit == 0 && row % unit == 0 && step == 1;
}

static qn_status refused(const cuda_rnn_problem *p, qn_prepared *out)
{
  const cuda_rnn &q = p->net;
  const cuda_rnn_operand &x = p->one[RNN_X], &h0 = p->one[RNN_H0];
  if (q.dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (q.steps != 1) return qn_refuse(out, "one step", "x", "dim 0 of 1", "%lld", (long long)q.steps);
  if (q.batch > MOST_BATCH) return qn_refuse(out, "few sequences", "x", "16 or fewer", "%lld", (long long)q.batch);
  if (q.projects) return qn_refuse(out, "a state is what its cell gives", "projection", "none", "one");
  if (q.before) return qn_refuse(out, "all gates come of one product by h", "reset", "after", "before");
  if (q.hidden > INT32_MAX / 64 || p->inputs > INT32_MAX / 64) return qn_refuse(out, "sizes of 31 bits", "x", "fewer", "%s", "more");
  const int64_t h_stride[] = { h0.stride[0], q.batch > 1 ? h0.stride[1] : 0 };
  bool fits = whole(x, p->inputs, q.batch > 1 ? x.stride[1] : 0, x.stride[2]);
  if (h0.value >= 0) fits = fits && whole(h0, q.hidden, h_stride[1], h0.stride[2]) && (p->n == 1 || whole(h0, q.hidden, h_stride[0], 1));
  for (int64_t k = 0; k < p->n && fits; k++) {
    const cuda_rnn_operand &w = p->list[RNN_W][k], &rec = p->list[RNN_R][k];
    fits = whole(w, k < p->directions ? p->inputs : q.width, w.stride[0], w.stride[1]) &&
           whole(rec, q.hidden, rec.stride[0], rec.stride[1]);
  }
  if (!fits)
    return qn_refuse(out, "16-byte loads of x, h0 and weights", "x", "rows of numbers side by side, aligned", "%s", "another layout");
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  qn_status s = cuda_rnn_read(r, out, sizeof(state), 0);
  if (s) return s;
  state *st = (state *)out->state;
  const cuda_rnn &q = st->p.net;
  s = refused(&st->p, out);
  if (s) {
    cuda_rnn_release(out);
    return s;
  }
  for (int i = 0; i < 2; i++) st->next[i] = cuda_rnn_take(out, st->p.layers > 1 ? q.batch * q.width : 0, q.dtype);
  out->traits = QN_TRAIT_DETERMINISTIC;
  for (int64_t k = 0; k < st->p.n; k++) {
    const double inputs = (double)(k < st->p.directions ? st->p.inputs : q.width), groups = (double)qn_ceil_div(q.batch, 8);
    const double weights = (double)q.rows * (inputs + (double)q.hidden);
    out->estimate += 4000 + fmax(groups * weights * (double)qn_kit_bytes(q.dtype) / 2700, weights * (double)q.batch / 9000);
  }
  return QN_OK;
}

template <int dtype> static void launch_for(const single &p, void *stream)
{
  const unsigned blocks = (unsigned)qn_ceil_div(p.net.hidden, WARPS);
  cudaStream_t s = (cudaStream_t)stream;
  if (p.net.batch == 1) rnn_single<dtype, 1><<<blocks, THREADS, 0, s>>>(p);
  else if (p.net.batch <= 4) rnn_single<dtype, 4><<<blocks, THREADS, 0, s>>>(p);
  else rnn_single<dtype, 8><<<blocks, THREADS, 0, s>>>(p);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  const cuda_rnn_problem *p = &st->p;
  char *base = (char *)launch->workspace;
  for (int64_t k = 0; k < p->n; k++) {
    const int64_t layer = k / p->directions;
    single one = {};
    one.net = cuda_rnn_net(p, launch, layer, k % p->directions);
    if (layer < p->layers - 1) one.net.next = base + st->next[layer % 2];
    one.x = layer ? base + st->next[(layer - 1) % 2] : (char *)launch->ptr[p->one[RNN_X].value];
    one.x_row = layer ? p->net.width : p->one[RNN_X].stride[1];
    one.w = launch->ptr[p->list[RNN_W][k].value], one.w_row = p->list[RNN_W][k].stride[0];
    one.r = launch->ptr[p->list[RNN_R][k].value], one.r_row = p->list[RNN_R][k].stride[0];
    if (p->net.dtype == QN_F32) launch_for<QN_F32>(one, launch->stream);
    else if (p->net.dtype == QN_F16) launch_for<QN_F16>(one, launch->stream);
    else launch_for<QN_BF16>(one, launch->stream);
  }
  return cuda_check(cudaGetLastError(), "rnn_single");
}

static const qn_engine row = { "single", QN_OP_RNN_FORWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run,
                               cuda_rnn_release };
CUDA_ENGINES(rnn_single) = { &row, 1 };
