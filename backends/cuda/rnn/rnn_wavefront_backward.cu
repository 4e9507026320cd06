/* rnn_wavefront_backward.cu -- the gradient's kernels of rnn_wavefront.cuh, from the last step to the first and from the last layer to the
 * first: what reaches h of a step is w' slopes of the layer above at that step and r' slopes of the step after.
 *
 * The depth, all gates of all units, is four times that of forward. So four blocks have the same 64 lines, units, and share out the depth;
 * then each has 16 of the units, receives the others' sums of these, and makes their slopes: the 64 numbers of a chunk that all blocks
 * of the layer, and of the one below, read. Sums are exchanged through global memory as pairs with tags, which are polled themselves
 * (as in kit/team.cuh). A block sends those of a step when it has seen that all blocks have done with the step before. */
#include "rnn_wavefront.cuh"

namespace {

enum { PARTS = 4, WORDS = 2 * 4 * 32 * 2 };                 /* words: of 16 bytes, from a block to another: [half][4][lane][2] */

struct unit_lines {
  static constexpr bool along_depth = false;
  const uint16_t *from;
  int64_t row, column;
  const cuda_rnn &net;
  int unit0, first, depth;                /* first: unit of the depth's first number */
  bool recurrent, whole;
  __device__ __forceinline__ unit_lines(const cuda_rnn_front_layer &layer, bool recurrent, int unit0, int first, int depth)
    : from((const uint16_t *)layer.weights[recurrent]), row(layer.row[recurrent]), column(layer.column[recurrent]), net(layer.net),
      unit0(unit0), first(first), depth(layer.weights[recurrent] ? depth : 0), recurrent(recurrent)
  {
    whole = column == 1 && row % 8 == 0 && net.hidden % 8 == 0 && (uintptr_t)from % 16 == 0;
  }
  __device__ __forceinline__ const uint16_t *at(int l, int k) const
  {
    const int gate = front_gate(net, recurrent, k % 4), u = first + k / 4, to = unit0 + l;
    return gate < 0 || u >= net.hidden || to >= net.hidden || k >= depth ? nullptr : from + (gate * net.hidden + u) * row + to * column;
  }
};

/* What forward left of a step, as it lies in memory: gates, the state before (of lstm c, of gru h; without either: h of the step), dy. */
struct left_of_step { uint32_t gate[4], old, dy; };

/* Of a share of the batch: what a thread keeps from step to step. carry: of lstm the slope of c, of gru what reaches h beside r; cell: of
 * lstm c of the step. */
struct kept_slopes { float carry[4]; uint32_t cell[4]; int first, length[2]; };

template <bool bf16, int BLOCKS, bool HALVES> struct backward_block : front_block<bf16, BLOCKS, HALVES> {
  typedef front_block<bf16, BLOCKS, HALVES> base;
  static constexpr int SWAP = 2 * 4 * 128 * 16;
  using base::p; using base::layer; using base::net; using base::lane; using base::warp; using base::half; using base::share;
  int rank;
  bool uniform;                           /* all tensors have x's dtype */
  ulonglong2 *partial;                    /* of this layer and share: [to][from][WORDS] */

  /* Item i of a thread: unit i / 2, sequence i % 2 of two each. */
  __device__ __forceinline__ int unit(int i) const { return this->block * 16 + lane / 4 + i / 2 * 8; }
  __device__ __forceinline__ int local(int i) const { return 32 * half + 8 * warp + lane % 4 * 2 + i % 2; }
  __device__ __forceinline__ bool there(const kept_slopes &of, int i) const { return of.length[i % 2] >= 0 && unit(i) < net.hidden; }

  __device__ __forceinline__ backward_block(const cuda_rnn_front &given, char *room) : base(given, room, SWAP)
  {
    rank = this->block % PARTS;
    partial = (ulonglong2 *)p.partial + (int64_t)(this->index * p.shares * this->turns + share) * p.unit_blocks * PARTS * WORDS;
    const uint32_t d = base::dtype;
    uniform = (!net.gates_at.p || net.gates_at.dtype == d) && (!net.cells_at.p || net.cells_at.dtype == d) &&
              (!net.c0.p || net.c0.dtype == d) && (!net.h0.p || net.h0.dtype == d) && net.out.dtype == d &&
              (!net.dout.p || net.dout.dtype == d);
  }
  __device__ __forceinline__ uint32_t get(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k = 0) const
  {
    if (uniform) return t.p ? ((const uint16_t *)t.p)[rnn_at(t, i, j, k)] : 0;
    return __float_as_uint(rnn_get<float>(t, i, j, k));
  }
  __device__ __forceinline__ float open(uint32_t x) const
  {
    if (!uniform) return __uint_as_float(x);
    return bf16 ? bf16_to_float((uint16_t)x) : f16_to_float((uint16_t)x);
  }
  __device__ __forceinline__ uint32_t state_at(const kept_slopes &of, int i, int s) const      /* c after step s, -1: the initial one */
  {
    const int64_t b = of.first + i % 2;
    return s < 0 ? get(net.c0, b, unit(i)) : get(net.cells_at, rnn_time(net, of.length[i % 2], s), b, unit(i));
  }
  __device__ __forceinline__ void begin(kept_slopes &of, int turn) const
  {
    of.first = (share + turn) * CUDA_RNN_FRONT_SHARE + local(0);
#pragma unroll
    for (int i = 0; i < 2; i++) of.length[i] = of.first + i < net.batch ? (int)rnn_length(net, of.first + i) : -1;
    const bool lstm = net.cell == QN_RNN_LSTM;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      of.carry[i] = lstm && there(of, i) ? rnn_get<float>(net.ct, of.first + i % 2, unit(i)) : 0;
      of.cell[i] = lstm && there(of, i) && of.length[i % 2] == net.steps ? state_at(of, i, (int)net.steps - 1) : 0;
    }
  }
  __device__ __forceinline__ void fetch(const kept_slopes &of, int s, left_of_step (&left)[4]) const
  {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      left[i] = {};
      const int length = of.length[i % 2];
      const int64_t b = of.first + i % 2, u = unit(i), t = rnn_time(net, length, s);
      if (!there(of, i) || s > length) continue;
      if (net.cell == QN_RNN_LSTM) left[i].old = state_at(of, i, s - 1);  /* of the step after the last one, too: that is its own state */
      if (s == length) continue;
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < net.kept) left[i].gate[g] = get(net.gates_at, t, b, g * net.hidden + u);
      if (net.cell == QN_RNN_GRU) left[i].old = s ? get(net.out, rnn_time(net, length, s - 1), b, net.first + u) : get(net.h0, b, u);
      else if (net.cell != QN_RNN_LSTM) left[i].old = get(net.out, t, b, net.first + u);
      left[i].dy = get(net.dout, t, b, net.first + u);
    }
  }
  /* sum[i]: of this thread's items, of all four blocks' depth. */
  __device__ __forceinline__ void gather(const float (&d)[32], float4 *swap, uint32_t tag, int turn, float (&sum)[4]) const
  {
    ulonglong2 *const of_share = partial + (int64_t)turn * p.unit_blocks * PARTS * WORDS;
    float4 *to = swap + half * 512 + threadIdx.x % 128;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const int own = 4 * n, other = 16 + 4 * n;
      to[n * 128] = half ? make_float4(d[own], d[own + 1], d[own + 2], d[own + 3])
                         : make_float4(d[other], d[other + 1], d[other + 2], d[other + 3]);
    }
    base::sync();
    const float4 *from = swap + (1 - half) * 512 + threadIdx.x % 128;
    ulonglong2 *out = of_share + ((int64_t)(this->block - rank + warp) * PARTS + rank) * WORDS + half * (WORDS / 2) + lane * 2;
    const uint64_t mark = (uint64_t)tag << 32;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const int low = 4 * n, high = 16 + 4 * n;
      const float4 more = from[n * 128];
      const float x = (half ? d[high] : d[low]) + more.x, y = (half ? d[high + 1] : d[low + 1]) + more.y;
      const float z = (half ? d[high + 2] : d[low + 2]) + more.z, w = (half ? d[high + 3] : d[low + 3]) + more.w;
      asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
                   :: "l"(out + n * 64), "l"(mark | __float_as_uint(x)), "l"(mark | __float_as_uint(y)) : "memory");
      asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
                   :: "l"(out + n * 64 + 1), "l"(mark | __float_as_uint(z)), "l"(mark | __float_as_uint(w)) : "memory");
    }
    const ulonglong2 *in = of_share + (int64_t)this->block * PARTS * WORDS + half * (WORDS / 2) + warp * 64 + lane * 2;
    bool all;
    do {                                  /* all loads are under way before a tag is looked at */
      uint64_t v[PARTS][4];
      all = true;
#pragma unroll
      for (int r = 0; r < PARTS; r++)
#pragma unroll
        for (int i = 0; i < 2; i++)
          asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                       : "=l"(v[r][2 * i]), "=l"(v[r][2 * i + 1]) : "l"(in + r * WORDS + i) : "memory");
#pragma unroll
      for (int i = 0; i < 4; i++) {
        sum[i] = 0;
#pragma unroll
        for (int r = 0; r < PARTS; r++) {
          all &= (uint32_t)(v[r][i] >> 32) == tag;
          sum[i] += __uint_as_float((uint32_t)v[r][i]);
        }
      }
    } while (!all);
  }
};

template <bool bf16, int BLOCKS, bool HALVES>
__global__ void __launch_bounds__(CUDA_RNN_FRONT_THREADS, 1) rnn_front_backward(const __grid_constant__ cuda_rnn_front p)
{
  extern __shared__ __align__(1024) char room[];
  backward_block<bf16, BLOCKS, HALVES> k(p, room);
  constexpr int TURNS = k.TURNS;
  const cuda_rnn &net = k.net;
  const cuda_rnn_front_layer &layer = k.layer;
  const int steps = (int)net.steps, turns = k.turns;
  if (threadIdx.x >= 256) {
    registers_lower<24>();
    if (threadIdx.x > 256) return;
    const int64_t part = (int64_t)k.rank * p.chunks * CUDA_RNN_FRONT_TILE;
    for (int i = steps * turns - 1; i >= (net.dh0.p ? -turns : 0); i--) {
      const int s = (i + turns) / turns - 1, turn = (i + turns) % turns;
      if (!HALVES && layer.inputs && s >= 0) {
        if (layer.follows) front_wait(k.below, (uint32_t)(p.unit_blocks * (steps - s)));
        k.copy((const char *)layer.inputs + part + k.tiles_at(s, p.unit_blocks), p.chunks);
      }
      if (s == steps - 1) continue;
      const char *states = (const char *)layer.states + part + k.tiles_at(s + 1, p.unit_blocks, turn);
      front_wait(k.own + turn * 32, (uint32_t)(p.unit_blocks * (steps - 1 - s)));
      k.copy(states, p.chunks);
      if (HALVES) k.copy(states + 2 * BLOCKS * CUDA_RNN_FRONT_TILE, p.chunks - 2 * BLOCKS);
    }
    return;
  }
  registers_raise<240>();
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU, inputs = !HALVES && layer.inputs;
  const int unit0 = (k.block - k.rank) * 16, first = k.rank * p.chunks * 16, depth = p.chunks * 64, most = 128 * BLOCKS;
  k.load(unit_lines(layer, HALVES, unit0, first, min(depth, most)),
         unit_lines(layer, true, unit0, first + (HALVES ? most / 4 : 0), HALVES ? depth - most : depth), room);
  float4 *swap = (float4 *)(room + k.room_at);
  kept_slopes kept[TURNS];
  left_of_step left[4];
#pragma unroll
  for (int v = 0; v < TURNS; v++)         /* the last share comes first */
    if (v < turns) k.begin(kept[v], turns - 1 - v);
  k.fetch(kept[0], steps - 1, left);
#pragma unroll 1
  for (int i = steps * turns - 1; i >= (net.dh0.p ? -turns : 0); i--) {
    const int s = (i + turns) / turns - 1, turn = (i + turns) % turns;
    const kept_slopes &of = kept[0];
    float d[32], sum[4] = {}, gate[4][4], of_h[4];
    if (inputs && s >= 0) k.template multiply<true>(d, true);
    if (s < steps - 1) {
      if (HALVES) k.template multiply<true>(d, true);
      k.template multiply<false>(d, !HALVES && !(inputs && s >= 0));
    }
    if ((inputs && s >= 0) || s < steps - 1) k.gather(d, swap, (uint32_t)(steps - s), turn, sum);
    if (s < 0) {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (k.there(of, j))
          rnn_put(net.dh0, of.first + j % 2, k.unit(j), 0,
                  of.length[j % 2] ? sum[j] + (gru ? of.carry[j] : 0.f) : rnn_get<float>(net.ht, of.first + j % 2, k.unit(j)));
    } else {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        const bool inside = k.there(of, j) && s < of.length[j % 2];
        const float old = k.open(left[j].old);
        float dh = sum[j] + k.open(left[j].dy) + (gru ? of.carry[j] : 0.f), at = of.carry[j];
        if (s == of.length[j % 2] - 1) dh += k.there(of, j) ? rnn_get<float>(net.ht, of.first + j % 2, k.unit(j)) : 0;
#pragma unroll
        for (int g = 0; g < 4; g++) gate[j][g] = k.open(left[j].gate[g]);
        of_h[j] = 0;
        if (lstm) rnn_lstm_slopes(net, gate[j], k.open(of.cell[j]), s ? rnn_bounded(net, old) : old, dh, at);
        else if (gru) {
          rnn_gru_slopes(gate[j], old, dh, of_h[j]);
          at = dh;
        } else gate[j][0] = rnn_plain_slope(net, old, dh);
        if (inside) kept[0].carry[j] = at;
        kept[0].cell[j] = left[j].old;
#pragma unroll
        for (int g = 0; g < 4; g++) gate[j][g] = inside && g < net.gates ? gate[j][g] : 0;
        of_h[j] = inside ? of_h[j] : 0;
        const uint32_t low = k.pack(gate[j][0]) | (uint32_t)k.pack(gate[j][1]) << 16;
        const uint32_t high = k.pack(gate[j][2]) | (uint32_t)k.pack(gru ? of_h[j] : gate[j][3]) << 16;
        char *to = (char *)layer.states + k.tiles_at(s, p.unit_blocks, turn) + (int64_t)k.block * CUDA_RNN_FRONT_TILE;
        *(uint2 *)(to + front_place(k.local(j), k.unit(j) % 16 * 4)) = make_uint2(low, high);
      }
      k.arrive(turn);
#pragma unroll
      for (int j = 0; j < 4; j++) {
        if (!k.there(of, j)) continue;
        const int64_t row = (rnn_time(net, of.length[j % 2], s) * net.batch + of.first + j % 2) * net.rows + k.unit(j);
#pragma unroll
        for (int g = 0; g < 4; g++) {
          if (g >= net.gates) break;
          ((uint16_t *)net.slope_x)[row + g * net.hidden] = k.pack(gate[j][g]);
          if (net.slope_h) ((uint16_t *)net.slope_h)[row + g * net.hidden] = k.pack(gru && g == 2 ? of_h[j] : gate[j][g]);
        }
      }
    }
    if (turns > 1) {                      /* the other share's come first */
      const kept_slopes other = kept[TURNS - 1];
      kept[TURNS - 1] = kept[0], kept[0] = other;
    }
    if (i > 0) k.fetch(kept[0], (i - 1) / turns, left);
  }
#pragma unroll
  for (int v = 0; v < TURNS; v++)
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (v < turns && k.there(kept[v], j)) rnn_put(net.dc0, kept[v].first + j % 2, k.unit(j), 0, kept[v].carry[j]);
  k.leave();
}

template <bool bf16, int BLOCKS, bool HALVES = false> cuda_rnn_front_kernel backward_of()
{
  typedef backward_block<bf16, BLOCKS, HALVES> B;
  return { (HALVES ? 256 : 128) * BLOCKS, B::shared_with(B::SWAP), (const void *)rnn_front_backward<bf16, BLOCKS, HALVES> };
}

}

const cuda_rnn_front_kernel cuda_rnn_front_backward_f16[] = { backward_of<false, 4>(), backward_of<false, 8>(), {} };
const cuda_rnn_front_kernel cuda_rnn_front_backward_bf16[] = { backward_of<true, 4>(), backward_of<true, 8>(), {} };
const cuda_rnn_front_kernel cuda_rnn_halves_backward_f16[] = { backward_of<false, 8, true>(), {} };
const cuda_rnn_front_kernel cuda_rnn_halves_backward_bf16[] = { backward_of<true, 8, true>(), {} };
const int64_t cuda_rnn_front_partial = (int64_t)PARTS * WORDS * 16;
