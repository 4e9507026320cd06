/* rnn_wavefront_backward.cu -- the gradient's kernel of rnn_wavefront.cuh, from the last step to the first and from the last layer to the
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

template <bool bf16, int BLOCKS> struct backward_block : front_block<bf16, BLOCKS> {
  typedef front_block<bf16, BLOCKS> base;
  static constexpr int SWAP = 2 * 4 * 128 * 16;
  using base::p; using base::layer; using base::net; using base::lane; using base::warp; using base::half; using base::share; using base::b0;
  int rank, length[2];
  bool uniform;                           /* all tensors have x's dtype */
  ulonglong2 *partial;                    /* of this layer and share: [to][from][WORDS] */

  /* Item i of a thread: unit i / 2, sequence i % 2 of two each. */
  __device__ __forceinline__ int unit(int i) const { return this->block * 16 + lane / 4 + i / 2 * 8; }
  __device__ __forceinline__ int local(int i) const { return 32 * half + 8 * warp + lane % 4 * 2 + i % 2; }
  __device__ __forceinline__ bool there(int i) const { return length[i % 2] >= 0 && unit(i) < net.hidden; }

  __device__ __forceinline__ backward_block(const cuda_rnn_front &given, char *room) : base(given, room, SWAP)
  {
    rank = this->block % PARTS;
    partial = (ulonglong2 *)p.partial + (int64_t)(this->index * p.shares + share) * p.unit_blocks * PARTS * WORDS;
#pragma unroll
    for (int i = 0; i < 2; i++) length[i] = b0 + local(i) < net.batch ? (int)rnn_length(net, b0 + local(i)) : -1;
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
  __device__ __forceinline__ uint32_t state_at(int i, int s) const         /* c after step s, -1: the initial one */
  {
    const int64_t b = b0 + local(i);
    return s < 0 ? get(net.c0, b, unit(i)) : get(net.cells_at, rnn_time(net, length[i % 2], s), b, unit(i));
  }
  __device__ __forceinline__ void fetch(int s, left_of_step (&of)[4]) const
  {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      of[i] = {};
      const int64_t b = b0 + local(i), u = unit(i), t = rnn_time(net, length[i % 2], s);
      if (!there(i) || s > length[i % 2]) continue;
      if (net.cell == QN_RNN_LSTM) of[i].old = state_at(i, s - 1);       /* of the step after the last one, too: that is its own state */
      if (s == length[i % 2]) continue;
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < net.kept) of[i].gate[g] = get(net.gates_at, t, b, g * net.hidden + u);
      if (net.cell == QN_RNN_GRU)
        of[i].old = s ? get(net.out, rnn_time(net, length[i % 2], s - 1), b, net.first + u) : get(net.h0, b, u);
      else if (net.cell != QN_RNN_LSTM) of[i].old = get(net.out, t, b, net.first + u);
      of[i].dy = get(net.dout, t, b, net.first + u);
    }
  }
  /* sum[i]: of this thread's items, of all four blocks' depth. */
  __device__ __forceinline__ void gather(const float (&d)[32], float4 *swap, uint32_t tag, float (&sum)[4]) const
  {
    float4 *to = swap + half * 512 + threadIdx.x % 128;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const int own = 4 * n, other = 16 + 4 * n;
      to[n * 128] = half ? make_float4(d[own], d[own + 1], d[own + 2], d[own + 3])
                         : make_float4(d[other], d[other + 1], d[other + 2], d[other + 3]);
    }
    base::sync();
    const float4 *from = swap + (1 - half) * 512 + threadIdx.x % 128;
    ulonglong2 *out = partial + ((int64_t)(this->block - rank + warp) * PARTS + rank) * WORDS + half * (WORDS / 2) + lane * 2;
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
    const ulonglong2 *in = partial + (int64_t)this->block * PARTS * WORDS + half * (WORDS / 2) + warp * 64 + lane * 2;
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

template <bool bf16, int BLOCKS>
__global__ void __launch_bounds__(CUDA_RNN_FRONT_THREADS, 1) rnn_front_backward(const __grid_constant__ cuda_rnn_front p)
{
  extern __shared__ __align__(1024) char room[];
  backward_block<bf16, BLOCKS> k(p, room);
  const cuda_rnn &net = k.net;
  const cuda_rnn_front_layer &layer = k.layer;
  const int steps = (int)net.steps, depth = p.chunks * 64;
  const int64_t part = (int64_t)k.rank * p.chunks * CUDA_RNN_FRONT_TILE;
  const char *states = (const char *)layer.states + part;
  if (threadIdx.x >= 256) {
    registers_lower<24>();
    if (threadIdx.x > 256) return;
    for (int s = steps - 1; s >= 0; s--) {
      if (layer.inputs) {
        if (layer.follows) front_wait(k.below, (uint32_t)(p.unit_blocks * (steps - s)));
        k.copy((const char *)layer.inputs + part + k.tiles_at(s, p.unit_blocks), p.chunks);
      }
      if (s == steps - 1) continue;
      front_wait(k.own, (uint32_t)(p.unit_blocks * (steps - 1 - s)));
      k.copy(states + k.tiles_at(s + 1, p.unit_blocks), p.chunks);
    }
    if (net.dh0.p) {
      front_wait(k.own, (uint32_t)(p.unit_blocks * steps));
      k.copy(states + k.tiles_at(0, p.unit_blocks), p.chunks);
    }
    return;
  }
  registers_raise<240>();
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
  const int unit0 = (k.block - k.rank) * 16, first = k.rank * p.chunks * 16;
  k.load(unit_lines(layer, false, unit0, first, depth), unit_lines(layer, true, unit0, first, depth), room);
  float4 *swap = (float4 *)(room + k.room_at);
  float carry[4];                         /* lstm: the slope of c; gru: what reaches h beside r */
  uint32_t cell[4];                       /* lstm: c of the step */
  left_of_step left[4];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    carry[i] = lstm && k.there(i) ? rnn_get<float>(net.ct, k.b0 + k.local(i), k.unit(i)) : 0;
    cell[i] = lstm && k.there(i) && k.length[i % 2] == steps ? k.state_at(i, steps - 1) : 0;
  }
  k.fetch(steps - 1, left);
#pragma unroll 1
  for (int s = steps - 1; s >= 0; s--) {
    float d[32], sum[4] = {};
    if (layer.inputs) k.template multiply<true>(d, true);
    if (s < steps - 1) k.template multiply<false>(d, !layer.inputs);
    if (layer.inputs || s < steps - 1) k.gather(d, swap, (uint32_t)(steps - s), sum);
    float gate[4][4], of_h[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const bool inside = k.there(i) && s < k.length[i % 2];
      float dh = sum[i] + k.open(left[i].dy) + (gru ? carry[i] : 0.f), at = carry[i];
      const float old = k.open(left[i].old);
      if (s == k.length[i % 2] - 1) dh += k.there(i) ? rnn_get<float>(net.ht, k.b0 + k.local(i), k.unit(i)) : 0;
#pragma unroll
      for (int g = 0; g < 4; g++) gate[i][g] = k.open(left[i].gate[g]);
      of_h[i] = 0;
      if (lstm) rnn_lstm_slopes(net, gate[i], k.open(cell[i]), s ? rnn_bounded(net, old) : old, dh, at);
      else if (gru) {
        rnn_gru_slopes(gate[i], old, dh, of_h[i]);
        at = dh;
      } else gate[i][0] = rnn_plain_slope(net, old, dh);
      if (inside) carry[i] = at;
      cell[i] = left[i].old;
#pragma unroll
      for (int g = 0; g < 4; g++) gate[i][g] = inside && g < net.gates ? gate[i][g] : 0;
      of_h[i] = inside ? of_h[i] : 0;
      const uint32_t low = k.pack(gate[i][0]) | (uint32_t)k.pack(gate[i][1]) << 16;
      const uint32_t high = k.pack(gate[i][2]) | (uint32_t)k.pack(gru ? of_h[i] : gate[i][3]) << 16;
      char *to = (char *)layer.states + k.tiles_at(s, p.unit_blocks) + (int64_t)k.block * CUDA_RNN_FRONT_TILE;
      *(uint2 *)(to + front_place(k.local(i), (k.unit(i) % 16) * 4)) = make_uint2(low, high);
    }
    k.arrive();
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (!k.there(i)) continue;
      const int64_t b = k.b0 + k.local(i), row = (rnn_time(net, k.length[i % 2], s) * net.batch + b) * net.rows + k.unit(i);
#pragma unroll
      for (int g = 0; g < 4; g++) {
        if (g >= net.gates) break;
        ((uint16_t *)net.slope_x)[row + g * net.hidden] = k.pack(gate[i][g]);
        if (net.slope_h) ((uint16_t *)net.slope_h)[row + g * net.hidden] = k.pack(gru && g == 2 ? of_h[i] : gate[i][g]);
      }
    }
    if (s) k.fetch(s - 1, left);
  }
  float sum[4] = {};
  if (net.dh0.p) {
    float d[32];
    k.template multiply<false>(d, true);
    k.gather(d, swap, (uint32_t)(steps + 1), sum);
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    if (!k.there(i)) continue;
    const int64_t b = k.b0 + k.local(i), u = k.unit(i);
    rnn_put(net.dh0, b, u, 0, k.length[i % 2] ? sum[i] + (gru ? carry[i] : 0.f) : rnn_get<float>(net.ht, b, u));
    rnn_put(net.dc0, b, u, 0, carry[i]);
  }
  k.leave();
}

template <bool bf16, int BLOCKS> cuda_rnn_front_kernel backward_of()
{
  typedef backward_block<bf16, BLOCKS> B;
  return { 128 * BLOCKS, B::shared_with(B::SWAP), (const void *)rnn_front_backward<bf16, BLOCKS> };
}

}

const cuda_rnn_front_kernel cuda_rnn_front_backward_f16[] = { backward_of<false, 8>(), {} };
const cuda_rnn_front_kernel cuda_rnn_front_backward_bf16[] = { {} };
const int64_t cuda_rnn_front_partial = (int64_t)PARTS * WORDS * 16;
