/* rnn_single.cu -- one step of a recurrent network for few sequences, as text and sound are generated: a launch for each layer and
 * direction, in which a warp makes a unit of up to 8 sequences.
 *
 *   sums of each gate = rows of w by x + rows of r by h0      a lane takes 16 bytes of every 512 of a row; then the gates (rnn_cells.cuh)
 *
 * The work is reading the weights: what a warp needs of w and r, of x and h0, is asked for at once, of one sequence 2 KB of every row, and
 * pieces beyond a row's end are left out without a branch. A block is the warps of one unit and different sequences: the first of them
 * brings its rows, the others find them in the first-level cache. Several sequences of 16 bits: Tensor Cores
 * (rnn_single_mma.cu). Lstm, gru with the reset after, tanh, relu; no projection; rows of x, h0 and weights in aligned 16-byte pieces. */
#include "engines.h"
#include "rnn_single.cuh"
#include "kit/vector.cuh"

enum { MOST_WARPS = 4, MOST_BATCH = 64 };

/* Pieces k + 32 i of n of each of `ROWS` rows, `step` elements apart but none beyond the last of `rows`; those that are missing: 0. */
template <int dtype, bool once, int AT_ONCE, int ROWS>
__device__ __forceinline__ void load(uint4 (&to)[AT_ONCE][ROWS], const void *base, int64_t step, int rows, int k, int n)
{
#pragma unroll
  for (int l = 0; l < ROWS; l++) {
    const uint4 *row = vector_place<dtype>(base, min(l, rows - 1) * step) + k;
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
      to[i][l] = k + i * 32 >= n ? make_uint4(0, 0, 0, 0) : once ? __ldcs(row + i * 32) : __ldg(row + i * 32);
  }
}

/* sum[g n + b] += a piece of a row of each gate by one of each sequence; the last gate goes to `last`. */
template <int dtype, int last, int GATES, int N, int SUMS>
__device__ __forceinline__ void multiply(float (&sum)[SUMS], const uint4 (&row)[GATES], const uint4 (&x)[N], bool given)
{
  constexpr int V = vector_per_16<dtype>;
  float v[GATES][V];
#pragma unroll
  for (int g = 0; g < GATES; g++) vector_open<dtype>(v[g], 0, row[g]);
  if (!given) {                           /* zeros, by which NaN and infinity give NaN */
#pragma unroll
    for (int g = 0; g < GATES; g++) {
      float none = 0;
#pragma unroll
      for (int i = 0; i < V; i++) none = fmaf(v[g][i], 0.f, none);
#pragma unroll
      for (int b = 0; b < N; b++) sum[(g == GATES - 1 ? last : g) * N + b] += none;
    }
    return;
  }
#pragma unroll
  for (int b = 0; b < N; b++) {
    float of_x[V];
    vector_open<dtype>(of_x, 0, x[b]);
#pragma unroll
    for (int g = 0; g < GATES; g++) {
      float &to = sum[(g == GATES - 1 ? last : g) * N + b];
#pragma unroll
      for (int i = 0; i < V; i++) to = fmaf(v[g][i], of_x[i], to);
    }
  }
}

/* GATES: 4 lstm, 3 gru, 1 tanh and relu. */
template <int dtype, int GATES, int N>
__global__ static void __launch_bounds__(32 * MOST_WARPS, N == 8 ? 3 : 2) rnn_single(const __grid_constant__ cuda_rnn_single p)
{
  constexpr int V = vector_per_16<dtype>, EACH = GATES == 1 ? 1 : 4, SUMS = EACH * N, AT_ONCE = N == 1 ? 4 : N == 4 ? 2 : 1;
  const cuda_rnn &net = p.net;
  const int lane = threadIdx.x % 32, groups = ((int)net.batch + N - 1) / N;
  const int warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int64_t u = warp / groups, H = net.hidden;
  const int b0 = warp % groups * N, b = b0 + lane % N;
  if (u >= H) return;
  const void *w = vector_place<dtype>(p.w, u * p.w_row), *r = vector_place<dtype>(p.r, u * p.r_row);
  const void *x0 = vector_place<dtype>(p.x, b0 * p.x_row);
  const bool given = net.h0.p;
  const void *of_h = given ? vector_place<dtype>(net.h0.p, b0 * net.h0.stride[0]) : nullptr;
  const int of_w = (int)net.inputs / V, of_r = (int)H / V, there = (int)net.batch - b0;
  uint4 ws[AT_ONCE][GATES], rs[AT_ONCE][GATES], xs[AT_ONCE][N], hs[AT_ONCE][N];
  const auto load_h = [&](int k) { load<dtype, false>(hs, of_h, net.h0.stride[0], there, k, given ? of_r : 0); };
  const auto load_all = [&](int k) {
    load<dtype, N == 1>(ws, w, H * p.w_row, GATES, k, of_w);
    load<dtype, N == 1>(rs, r, H * p.r_row, GATES, k, of_r);
    load<dtype, false>(xs, x0, p.x_row, there, k, of_w);
    if (N < 8) load_h(k);                 /* of 8 sequences later, into the registers that x leaves */
  };
  load_all(lane);
  /* lanes 0-7: h0 of each sequence; 8-15: c0; 16 + 2 g: the bias of w of each gate, 17 + 2 g: of r; all at once */
  const int part = lane / 8, g2 = lane % 8;
  const cuda_rnn_tensor &of = part == 0 ? net.h0 : part == 1 ? net.c0 : lane & 1 ? net.br : net.bw;
  const bool has = part < 2 ? g2 < N && b0 + g2 < net.batch : part == 2 && g2 < 2 * GATES;
  const float old = has ? rnn_get<float>(of, part < 2 ? b0 + g2 : g2 / 2 * H + u, part < 2 ? u : 0) : 0.f;
  float sum[SUMS] = {};
#pragma unroll 1
  for (int k = 0; k < max(of_w, of_r); k += AT_ONCE * 32) {
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
      if (k + i * 32 < of_w) multiply<dtype, GATES - 1>(sum, ws[i], xs[i], true);
    if (N == 8) load_h(k + lane);
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
      if (k + i * 32 < of_r) multiply<dtype, GATES == 3 ? 3 : GATES - 1>(sum, rs[i], hs[i], given);
    load_all(k + AT_ONCE * 32 + lane);
  }
  rnn_fold<SUMS / 2>(sum, lane);          /* sum lane % SUMS */
#pragma unroll
  for (int half = SUMS; half < 32; half *= 2) sum[0] += __shfl_xor_sync(~0u, sum[0], half);
  float gate[4] = {};
#pragma unroll
  for (int g = 0; g < EACH; g++) {
    gate[g] = __shfl_sync(~0u, sum[0], g * N + lane % N);
    const float bw = __shfl_sync(~0u, old, 16 + g * 2), br = __shfl_sync(~0u, old, 17 + (g < GATES ? g : GATES - 1) * 2);
    gate[g] += rnn_single_bias<GATES>(g, bw, br);
  }
  const float h = __shfl_sync(~0u, old, lane % N), c = __shfl_sync(~0u, old, 8 + lane % N);
  if (lane < N && b < net.batch) rnn_single_end<GATES>(net, b, u, gate, h, c);
}

/* ---- host ------------------------------------------------------------------------------------------ */

struct state {
  cuda_rnn_problem p;
  uint64_t next[2];                       /* places in workspace: what layers give */
  bool     by_mma;                        /* by rnn_single_mma.cu */
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
  if (q.batch > MOST_BATCH) return qn_refuse(out, "few sequences", "x", "64 or fewer", "%lld", (long long)q.batch);
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
  st->by_mma = q.dtype != QN_F32 && q.batch > 1 && r->device->arch_major >= 8 &&
               qn_max_i64(st->p.inputs, q.width) + q.hidden <= CUDA_RNN_SINGLE_MMA_TERMS;
  if (st->by_mma) out->traits |= QN_TRAIT_TENSOR_CORES, out->numerics.accumulator = QN_ACC_F32_TC;
  for (int64_t k = 0; k < st->p.n; k++) {
    const double weights = (double)q.rows * (double)((k < st->p.directions ? st->p.inputs : q.width) + q.hidden);
    const double bytes = weights * (double)qn_kit_bytes(q.dtype);     /* by_mma: every 16 rows read all sequences */
    const double rest = st->by_mma ? bytes / (q.gates == 3 ? 15 : 16) * (double)qn_round_up(q.batch, 8) / 5000
                                   : weights * (double)q.batch / 9000;
    out->estimate += 4000 + fmax(bytes / 3500, rest);
  }
  return QN_OK;
}

template <int dtype, int GATES> static void launch_cell(const cuda_rnn_single &p, void *stream)
{
  const int64_t n = p.net.batch == 1 ? 1 : p.net.batch <= 4 ? 4 : 8, groups = qn_ceil_div(p.net.batch, n);
  const int64_t warps = qn_min_i64(qn_max_i64(groups, 2), MOST_WARPS);
  void (*kernel)(cuda_rnn_single) = n == 1 ? rnn_single<dtype, GATES, 1> : n == 4 ? rnn_single<dtype, GATES, 4>
                                                                                   : rnn_single<dtype, GATES, 8>;
  kernel<<<(unsigned)qn_ceil_div(p.net.hidden * groups, warps), (unsigned)(32 * warps), 0, (cudaStream_t)stream>>>(p);
}
template <int dtype> static void launch_for(const cuda_rnn_single &p, void *stream)
{
  if (p.net.gates == 4) launch_cell<dtype, 4>(p, stream);
  else if (p.net.gates == 3) launch_cell<dtype, 3>(p, stream);
  else launch_cell<dtype, 1>(p, stream);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  const cuda_rnn_problem *p = &st->p;
  char *base = (char *)launch->workspace;
  for (int64_t k = 0; k < p->n; k++) {
    const int64_t layer = k / p->directions;
    cuda_rnn_single one = {};
    one.net = cuda_rnn_net(p, launch, layer, k % p->directions);
    if (layer < p->layers - 1) one.net.next = base + st->next[layer % 2];
    one.x = layer ? base + st->next[(layer - 1) % 2] : (char *)launch->ptr[p->one[RNN_X].value];
    one.x_row = layer ? p->net.width : p->one[RNN_X].stride[1];
    one.w = launch->ptr[p->list[RNN_W][k].value], one.w_row = p->list[RNN_W][k].stride[0];
    one.r = launch->ptr[p->list[RNN_R][k].value], one.r_row = p->list[RNN_R][k].stride[0];
    if (st->by_mma) cuda_rnn_single_mma(&one, launch->stream);
    else if (p->net.dtype == QN_F32) launch_for<QN_F32>(one, launch->stream);
    else if (p->net.dtype == QN_F16) launch_for<QN_F16>(one, launch->stream);
    else launch_for<QN_BF16>(one, launch->stream);
  }
  return cuda_check(cudaGetLastError(), "rnn_single");
}

static const qn_engine row = { "single", QN_OP_RNN_FORWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare, nullptr, run,
                               cuda_rnn_release };
CUDA_ENGINES(rnn_single) = { &row, 1 };
