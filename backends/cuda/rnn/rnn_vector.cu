/* rnn_vector.cu -- a step of a recurrent network of many units for few sequences in one launch: a warp makes a unit of up to 8 sequences.
 *
 *   sums of each gate = a row of r by h       a lane takes 16 bytes of every 512 of a row; then the gates (rnn_cells.cuh)
 *
 * The work is reading r. Its first pieces, and all else that is older than the step, are on their way before the step before has ended
 * (kit/early.h), the next ones while these are multiplied. Not: f64; projection, gru with the reset before: a second product; more than 64
 * sequences; rows of r in other than aligned pieces of 16 bytes. */
#include "rnn_steps.cuh"
#include "rnn_vector.h"
#include "kit/vector.cuh"

enum { WARPS = 4, MOST_BATCH = 64 };

/* GATES: 4 lstm, 3 gru, 1 tanh and relu. */
template <int dtype, int GATES, int N>
__global__ static void __launch_bounds__(32 * WARPS, N > 1 ? 3 : 4) rnn_vector(const __grid_constant__ cuda_rnn_vector p, int64_t step)
{
  constexpr int V = vector_per_16<dtype>, EACH = GATES == 1 ? 1 : 4, SUMS = EACH * N, AT_ONCE = GATES == 1 ? 4 : N == 8 ? 1 : 2;
  const cuda_rnn &net = p.net[blockIdx.y];
  const int lane = threadIdx.x % 32, warp = blockIdx.x * WARPS + threadIdx.x / 32, u = warp / p.groups, s = (int)step;
  const int H = (int)net.hidden, batch = (int)net.batch, b0 = warp % p.groups * N, b = b0 + lane % N;
  const bool there = u < H, mine = there && lane < N && b < batch;
  const uint4 *rows[GATES];
#pragma unroll
  for (int g = 0; g < GATES; g++)
    rows[g] = vector_place<dtype>(p.weights[blockIdx.y], (g * (int64_t)H + (there ? u : 0)) * p.weights_row[blockIdx.y]) + lane;
  uint4 row[AT_ONCE][GATES];
  auto load = [&](int k) {                /* k: pieces of a row */
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
      for (int g = 0; g < GATES; g++)
        row[i][g] = (k + i * 32 + lane) * V < H ? __ldg(rows[g] + k + i * 32) : make_uint4(0, 0, 0, 0);
  };
  load(0);
  float bias[EACH] = {}, gate[4] = {};   /* sums of x; bias: of both, of a gru's n that of r h is the last */
  const int64_t length = mine ? rnn_length(net, b) : 0, t = rnn_time(net, length, s);
  if (mine && s < length)
#pragma unroll
    for (int g = 0; g < GATES; g++) gate[g] = __ldcs((const float *)net.sums + (t * batch + b) * net.rows + g * (int64_t)H + u);
  /* A number of a dtype known at run time is awaited where it is loaded: a lane loads one, of w or of r. */
  const float own = there && lane < 2 * GATES ? rnn_get<float>(lane % 2 ? net.br : net.bw, lane / 2 * H + u) : 0.f;
#pragma unroll
  for (int g = 0; g < GATES; g++) {
    gate[g] += __shfl_sync(~0u, own, 2 * g);
    bias[GATES == 3 && g == 2 ? EACH - 1 : g] = __shfl_sync(~0u, own, 2 * g + 1);
  }
  rnn_wait_before();

  const int64_t buffer = (int64_t)batch * H;
  const void *from = vector_place<dtype>(net.h, (s & 1) * buffer);
  char *to = (char *)net.h + (~s & 1) * buffer * (dtype == QN_F32 ? 4 : 2);
  float sum[SUMS] = {}, h = 0, c = 0, raw = 0;
  if (mine) {
    h = element_load<float>(from, (int64_t)b * H + u, dtype);
    if (GATES == 4) c = ((const float *)net.c)[(int64_t)b * H + u];
  }
#pragma unroll 1
  for (int k = 0; k * V < H; k += AT_ONCE * 32) {
    uint4 now[AT_ONCE][GATES];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++)
#pragma unroll
      for (int g = 0; g < GATES; g++) now[i][g] = row[i][g];
    load(k + AT_ONCE * 32);
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const int at = (k + i * 32 + lane) * V;
      uint4 x[N];
#pragma unroll
      for (int n = 0; n < N; n++) x[n] = *vector_place<dtype>(from, (int64_t)min(b0 + n, batch - 1) * H + (at < H ? at : 0));
      float v[GATES][V];
#pragma unroll
      for (int g = 0; g < GATES; g++) vector_open<dtype>(v[g], 0, now[i][g]);
      if (at < H)
#pragma unroll
        for (int n = 0; n < N; n++) {
          float of[V];
          vector_open<dtype>(of, 0, x[n]);
#pragma unroll
          for (int g = 0; g < GATES; g++) {
            float &sum_of = sum[(GATES == 3 && g == 2 ? EACH - 1 : g) * N + n];
#pragma unroll
            for (int j = 0; j < V; j++) sum_of = fmaf(v[g][j], of[j], sum_of);
          }
        }
    }
  }
  rnn_fold<SUMS / 2>(sum, lane);          /* sum lane % SUMS */
#pragma unroll
  for (int half = SUMS; half < 32; half *= 2) sum[0] += __shfl_xor_sync(~0u, sum[0], half);
#pragma unroll
  for (int g = 0; g < EACH; g++) gate[g] += __shfl_sync(~0u, sum[0], g * N + lane % N) + bias[g];
  if (!mine) return;
  const bool inside = s < length;
  if (inside) {
    if (GATES == 4) h = rnn_lstm(net, gate, c, raw);
    else h = GATES == 3 ? rnn_gru(gate, h) : rnn_plain(net, gate[0]);
  }
  element_store(to, (int64_t)b * H + u, dtype, h);
  if (GATES == 4) ((float *)net.c)[(int64_t)b * H + u] = c;
  rnn_give_as<dtype>(net, t, b, u, inside ? h : 0.f);
  if (net.gates_at.p)
#pragma unroll
    for (int g = 0; g < (GATES == 1 ? 0 : 4); g++) rnn_put_as<dtype>(net.gates_at, t, b, g * (int64_t)H + u, inside ? gate[g] : 0.f);
  rnn_put_as<dtype>(net.cells_at, t, b, u, raw);
}

/* ---- host ------------------------------------------------------------------------------------------ */

qn_status cuda_rnn_vector_plan(const qn_request *r, qn_prepared *out, const cuda_rnn_problem *p)
{
  (void)r;
  const cuda_rnn &q = p->net;
  const int64_t unit = 16 / (int64_t)qn_kit_bytes(q.dtype);
  if (q.dtype == QN_F64) return qn_refuse(out, "computes in f32", "x", "f32, f16, bf16", "f64");
  if (q.projects) return qn_refuse(out, "a state is what its cell gives", "projection", "none", "one");
  if (q.before) return qn_refuse(out, "all gates come of one product by h", "reset", "after", "before");
  if (q.batch > MOST_BATCH) return qn_refuse(out, "few sequences", "x", "64 or fewer", "%lld", (long long)q.batch);
  if (q.hidden > INT32_MAX / 64 || q.steps > INT32_MAX)
    return qn_refuse(out, "sizes of 31 bits", "x", "fewer", "%s", "more");
  if (q.gradient && q.rows % unit)
    return qn_refuse(out, "16-byte loads of slopes", "r", unit == 4 ? "rows of all gates in multiples of 4" : "rows of all gates in multiples of 8",
                     "%lld", (long long)q.rows);
  bool whole = q.gradient || q.hidden % unit == 0;          /* of the gradient r is turned first */
  for (int64_t k = 0; k < p->n && !q.gradient; k++) {
    const cuda_rnn_operand &o = p->list[RNN_R][k];
    whole = whole && o.align >= 16 && o.stride[0] % unit == 0 && o.stride[1] == 1;
  }
  if (!whole) return qn_refuse(out, "16-byte loads of weights", "r", "rows of numbers side by side, aligned", "%s", "another layout");
  out->traits &= ~(uint64_t)QN_TRAIT_BATCH_INVARIANT;        /* a larger batch is refused */
  const double numbers = (double)(p->directions * q.rows * q.hidden), bytes = numbers * (double)qn_kit_bytes(q.dtype);
  const double batch = (double)qn_round_up(q.batch, cuda_rnn_vector_at_once(q.batch));
  const bool cached = bytes < 38e6;
  const double speed = cached || batch < 8 ? 7000 : 3000;
  const double step = 2200 + fmax(bytes / (cached ? 5000 : 3800), numbers * batch / speed);
  out->estimate += (double)p->layers * (5000 + (double)q.steps * step);
  return QN_OK;
}

template <int dtype, int GATES, int N> struct forward {
  static const void *kernel() { return (const void *)rnn_vector<dtype, GATES, N>; }
};

qn_status cuda_rnn_vector_step(cuda_rnn_vector *p, int64_t directions, int64_t s, void *stream)
{
  const cuda_rnn &q = p->net[0];
  p->groups = (int32_t)qn_ceil_div(q.batch, cuda_rnn_vector_at_once(q.batch));
  void *arguments[] = { p, &s };
  /* The first step's weights and sums may be what an earlier kernel makes. */
  const dim3 blocks((unsigned)qn_ceil_div(q.hidden * p->groups, WARPS), (unsigned)directions);
  return cuda_launch_kernel(cuda_rnn_vector_kernel<forward>(q), q.early && s > 0, blocks, 32 * WARPS, 0, arguments, stream, "rnn_vector");
}
