/* rnn_single_mma.cu -- one step of a recurrent network for several sequences (rnn_single.cu) in 16 bits by Tensor Cores: a block makes 4
 * units, of a gru 5, without gates 16, of all sequences.
 *
 *   sums [row][sequence] = rows of w by x + rows of r by h0     16 rows, each gate's of every unit; of a gru's n the two stay apart
 *
 * Its warps share out chunks of 32 numbers, first of w's rows, then of r's; their sums are added in order. Since the order of the terms is
 * free, a lane takes eight neighbouring numbers of a row in one load: its part of two fragments of mma.sync (as in matmul_few.cu). All of
 * a warp's chunks, or the first of many, are asked for before states and biases, which each thread fetches one of. */
#include "rnn_single.cuh"
#include "kit/sm80.cuh"

enum { WAYS = 8, ROWS = 16, CHUNK = 32, EIGHT = 8 };

/* GATES: 4 lstm, 3 gru, 1 tanh and relu; EIGHTS: of sequences. */
template <class mma, int GATES, int EIGHTS>
__global__ static void __launch_bounds__(32 * WAYS, 2) rnn_single_mma(const __grid_constant__ cuda_rnn_single p)
{
  constexpr int UNITS = ROWS / GATES, EACH = GATES == 1 ? 1 : 4, COLUMNS = EIGHT * EIGHTS;
  constexpr int ITEMS = UNITS * COLUMNS, STATES = (GATES == 4 ? 2 : 1) * ITEMS;
  constexpr int AT_ONCE = EIGHTS == 1 ? 6 : EIGHTS == 2 ? 4 : EIGHTS == 4 ? 2 : 1;
  __shared__ float sums[WAYS][EACH * UNITS][COLUMNS], old[STATES + 2 * ROWS];
  const cuda_rnn &net = p.net;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, q = lane % 4, row = lane / 4, batch = (int)net.batch;
  const int inputs = (int)net.inputs, H = (int)net.hidden, u0 = blockIdx.x * UNITS;
  const int of_w = (inputs + CHUNK - 1) / CHUNK, all = of_w + (H + CHUNK - 1) / CHUNK;
  const uint16_t *w[2], *r[2];            /* rows of a lane */
#pragma unroll
  for (int l = 0; l < 2; l++) {
    const int gate = min((row + l * 8) / UNITS, GATES - 1), u = min(u0 + (row + l * 8) % UNITS, H - 1);
    w[l] = (const uint16_t *)p.w + ((int64_t)gate * H + u) * p.w_row + q * EIGHT;
    r[l] = (const uint16_t *)p.r + ((int64_t)gate * H + u) * p.r_row + q * EIGHT;
  }
  uint4 a[AT_ONCE][2], b[AT_ONCE][EIGHTS];
  const auto load = [&](int first) {
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const bool by_h = first + i * WAYS >= of_w;
      const int k = (first + i * WAYS - (by_h ? of_w : 0)) * CHUNK;
      const bool there = k + q * EIGHT < (by_h ? H : inputs);
      const uint16_t *of = (const uint16_t *)(by_h ? net.h0.p : p.x);
      const int64_t step = by_h ? net.h0.stride[0] : p.x_row;
#pragma unroll
      for (int l = 0; l < 2; l++) a[i][l] = there ? __ldg((const uint4 *)((by_h ? r[l] : w[l]) + k)) : make_uint4(0, 0, 0, 0);
#pragma unroll
      for (int e = 0; e < EIGHTS; e++) {
        const uint16_t *line = of + min(e * EIGHT + row, batch - 1) * step + q * EIGHT;
        b[i][e] = there && of ? __ldg((const uint4 *)(line + k)) : make_uint4(0, 0, 0, 0);
      }
    }
  };
  load(warp);
  for (int i = threadIdx.x; i < STATES + 2 * ROWS; i += 32 * WAYS) {
    const bool is_state = i < STATES;     /* h0, c0 [sequence][unit]; biases of w, of r [gate][unit] */
    const int at = is_state ? i % ITEMS : (i - STATES) % ROWS, u = u0 + at % UNITS;
    const cuda_rnn_tensor &of = i < ITEMS ? net.h0 : is_state ? net.c0 : i < STATES + ROWS ? net.bw : net.br;
    const bool has = u < H && at / UNITS < (is_state ? batch : GATES);
    old[i] = has ? rnn_get<float>(of, is_state ? at / UNITS : (int64_t)(at / UNITS) * H + u, is_state ? u : 0) : 0.f;
  }
  float sum[EIGHTS][4] = {}, by_h0[EIGHTS][4] = {};        /* the latter of a gru */
#pragma unroll 1
  for (int first = warp; first < all; first += WAYS * AT_ONCE) {
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const uint32_t low[4] = { a[i][0].x, a[i][1].x, a[i][0].y, a[i][1].y }, high[4] = { a[i][0].z, a[i][1].z, a[i][0].w, a[i][1].w };
      const auto multiply = [&](float (&to)[EIGHTS][4]) {
#pragma unroll
        for (int e = 0; e < EIGHTS; e++) {
          mma::product(to[e], low, b[i][e].x, b[i][e].y);
          mma::product(to[e], high, b[i][e].z, b[i][e].w);
        }
      };
      if (GATES == 3 && first + i * WAYS >= of_w) multiply(by_h0);
      else multiply(sum);
    }
    load(first + WAYS * AT_ONCE);
  }
#pragma unroll
  for (int e = 0; e < EIGHTS; e++)
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const int line = row + j / 2 * 8, column = e * EIGHT + q * 2 + j % 2;
      const bool apart = GATES == 3 && line >= 2 * UNITS;
      if (line < GATES * UNITS) sums[warp][line][column] = apart ? sum[e][j] : sum[e][j] + by_h0[e][j];
      if (apart && line < GATES * UNITS) sums[warp][line + UNITS][column] = by_h0[e][j];
    }
  __syncthreads();
  for (int i = threadIdx.x; i < EACH * ITEMS; i += 32 * WAYS) {
    float *const to = &sums[0][0][0] + i, v = *to;
#pragma unroll
    for (int way = 1; way < WAYS; way++) v += to[way * EACH * ITEMS];
    *to = v;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < ITEMS; i += 32 * WAYS) {
    const int unit = i % UNITS, at = i / UNITS;
    if (u0 + unit >= H || at >= batch) continue;
    float gate[4] = {};
#pragma unroll
    for (int g = 0; g < EACH; g++) {
      const float *bias = old + STATES + min(g, GATES - 1) * UNITS + unit;
      gate[g] = sums[0][g * UNITS + unit][at] + rnn_single_bias<GATES>(g, bias[0], bias[ROWS]);
    }
    rnn_single_end<GATES>(net, at, u0 + unit, gate, old[i], GATES == 4 ? old[STATES - ITEMS + i] : 0.f);
  }
}

/* ---- host ------------------------------------------------------------------------------------------ */

template <class mma, int GATES> static void launch(const cuda_rnn_single &p, void *stream)
{
  const int64_t eights = qn_ceil_div(p.net.batch, EIGHT);
  void (*kernel)(cuda_rnn_single) = eights == 1 ? rnn_single_mma<mma, GATES, 1> : eights == 2 ? rnn_single_mma<mma, GATES, 2>
                                  : eights <= 4 ? rnn_single_mma<mma, GATES, 4> : rnn_single_mma<mma, GATES, 8>;
  kernel<<<(unsigned)qn_ceil_div(p.net.hidden, ROWS / GATES), 32 * WAYS, 0, (cudaStream_t)stream>>>(p);
}
template <class mma> static void launch(const cuda_rnn_single &p, void *stream)
{
  if (p.net.gates == 4) launch<mma, 4>(p, stream);
  else if (p.net.gates == 3) launch<mma, 3>(p, stream);
  else launch<mma, 1>(p, stream);
}

void cuda_rnn_single_mma(const cuda_rnn_single *p, void *stream)
{
  if (p->net.dtype == QN_F16) launch<mma_f16>(*p, stream);
  else launch<mma_bf16>(*p, stream);
}
