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

/* Lines 16 w + g and g + 8 more, which a thread has, are two units side by side. */
struct unit_lines {
  static constexpr bool along_depth = false;
  static __device__ __forceinline__ int line(int unit) { return unit / 16 * 16 + unit % 2 * 8 + unit % 16 / 2; }
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
  __device__ __forceinline__ const uint16_t *at(int unit, int k) const
  {
    const int gate = front_gate(net, recurrent, k % 4), u = first + k / 4, to = unit0 + unit;
    return gate < 0 || u >= net.hidden || to >= net.hidden || k >= depth ? nullptr : from + (gate * net.hidden + u) * row + to * column;
  }
};

/* What forward left of a step in a sequence, of two units side by side: gates, the state before (of lstm c, of gru h; without either: h of
 * the step), dy. */
struct left_of_step { uint32_t gate[4], old, dy; };

/* What a thread keeps from step to step, of two sequences from `first` on. carry: of lstm the slope of c, of gru what reaches h beside r;
 * cell: of lstm c of the step, of two units. */
struct kept_slopes { float carry[4]; uint32_t cell[2]; int first, length[2]; };

template <bool bf16, int BLOCKS> struct backward_block : front_block<bf16, BLOCKS> {
  typedef front_block<bf16, BLOCKS> base;
  using base::p; using base::layer; using base::net; using base::lane; using base::warp; using base::half; using base::share;
  int rank;
  bool paired;                            /* all tensors have x's dtype, and units side by side in aligned words */
  ulonglong2 *partial;                    /* of this layer and share: [to][from][WORDS] */

  /* Item i of a thread: unit i / 2, sequence i % 2 of two each. */
  __device__ __forceinline__ int unit(int i) const { return this->block * 16 + lane / 4 * 2 + i / 2; }
  __device__ __forceinline__ int local(int i) const { return 32 * half + 8 * warp + lane % 4 * 2 + i % 2; }
  __device__ __forceinline__ bool there(const kept_slopes &of, int i) const { return of.length[i % 2] >= 0 && unit(i) < net.hidden; }

  __device__ __forceinline__ backward_block(const cuda_rnn_front &given, char *room) : base(given, room, base::SWAP)
  {
    rank = this->block % PARTS;
    partial = (ulonglong2 *)p.partial + (int64_t)(this->index * p.shares + share) * p.unit_blocks * PARTS * WORDS;
    paired = words(net.gates_at, 2) && words(net.cells_at, 2) && words(net.out, 2) && words(net.dout, 2) && words(net.c0, 1) &&
             words(net.h0, 1) && net.hidden % 2 == 0 && net.first % 2 == 0;
  }
  static __device__ __forceinline__ bool words(const cuda_rnn_tensor &t, int dims)
  {
    const int64_t last = dims == 2 ? t.stride[2] : t.stride[1], other = dims == 2 ? t.stride[0] | t.stride[1] : t.stride[0];
    return !t.p || (t.dtype == base::dtype && last == 1 && other % 2 == 0 && (uintptr_t)t.p % 4 == 0);
  }
  static __device__ __forceinline__ uint32_t word(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k = 0)
  {
    return t.p ? *(const uint32_t *)((const uint16_t *)t.p + rnn_at(t, i, j, k)) : 0;
  }
  static __device__ __forceinline__ float open(uint32_t word, int upper)
  {
    const uint16_t x = (uint16_t)(upper ? word >> 16 : word);
    return bf16 ? bf16_to_float(x) : f16_to_float(x);
  }
  __device__ __forceinline__ void begin(kept_slopes &of) const
  {
    const bool lstm = net.cell == QN_RNN_LSTM;
    of.first = base::b0 + local(0);
#pragma unroll
    for (int i = 0; i < 2; i++) {
      of.length[i] = of.first + i < net.batch ? (int)rnn_length(net, of.first + i) : -1;
      const bool whole = lstm && paired && there(of, i) && of.length[i] == net.steps;
      of.cell[i] = whole ? word(net.cells_at, rnn_time(net, of.length[i], net.steps - 1), of.first + i, unit(0)) : 0;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) of.carry[i] = lstm && there(of, i) ? rnn_get<float>(net.ct, of.first + i % 2, unit(i)) : 0;
  }
  /* Paired: of a step that comes; the loads are on their way while others are waited for. */
  __device__ __forceinline__ void fetch(const kept_slopes &of, int s, left_of_step (&left)[2]) const
  {
    const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      left[i] = {};
      const int length = of.length[i];
      const int64_t b = of.first + i, u = unit(0), t = rnn_time(net, length, s), before = rnn_time(net, length, s - 1);
      if (!paired || !there(of, i) || s > length) continue;
      if (lstm) left[i].old = s ? word(net.cells_at, before, b, u) : word(net.c0, b, u);     /* of the step after the last, too */
      if (s == length) continue;
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < net.kept) left[i].gate[g] = word(net.gates_at, t, b, g * net.hidden + u);
      if (gru) left[i].old = s ? word(net.out, before, b, net.first + u) : word(net.h0, b, u);
      else if (!lstm) left[i].old = word(net.out, t, b, net.first + u);
      left[i].dy = word(net.dout, t, b, net.first + u);
    }
  }
  /* And of a later one on their way to the L2 cache: a lane for all units of the block. */
  __device__ __forceinline__ void announce(const kept_slopes &of, int s) const
  {
    if (lane / 4 || s < 1 || unit(0) >= net.hidden) return;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      if (s >= of.length[i]) continue;
      const int64_t b = of.first + i, u = unit(0), t = rnn_time(net, of.length[i], s), before = rnn_time(net, of.length[i], s - 1);
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < net.kept) ahead(net.gates_at, t, b, g * net.hidden + u);
      ahead(net.cells_at, before, b, u);
      if (net.cell == QN_RNN_GRU) ahead(net.out, before, b, net.first + u);
      ahead(net.dout, t, b, net.first + u);
    }
  }
  static __device__ __forceinline__ void ahead(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k)
  {
    const int bytes = t.dtype == QN_F64 ? 8 : t.dtype == QN_F32 ? 4 : 2;
    if (t.p) prefetch_L2((const char *)t.p + rnn_at(t, i, j, k) * bytes);
  }
  /* Of item j at a step: gates, the state of the step, that before, dy. */
  struct item { float gate[4], cell, old, dy; };
  __device__ __forceinline__ item item_of(const kept_slopes &of, int s, const left_of_step (&left)[2], int j) const
  {
    const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
    const int i = j % 2, upper = j / 2, length = of.length[i];
    item x = {};
    if (paired) {
#pragma unroll
      for (int g = 0; g < 4; g++) x.gate[g] = open(left[i].gate[g], upper);
      x.cell = open(of.cell[i], upper), x.old = open(left[i].old, upper), x.dy = open(left[i].dy, upper);
    } else if (there(of, j) && s < length) {
      const int64_t b = of.first + i, u = unit(j), t = rnn_time(net, length, s), before = rnn_time(net, length, s - 1);
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < net.kept) x.gate[g] = rnn_get<float>(net.gates_at, t, b, g * net.hidden + u);
      x.cell = rnn_get<float>(net.cells_at, t, b, u);
      if (lstm) x.old = s ? rnn_get<float>(net.cells_at, before, b, u) : rnn_get<float>(net.c0, b, u);
      else if (gru) x.old = s ? rnn_get<float>(net.out, before, b, net.first + u) : rnn_get<float>(net.h0, b, u);
      else x.old = rnn_get<float>(net.out, t, b, net.first + u);
      x.dy = rnn_get<float>(net.dout, t, b, net.first + u);
    }
    if (lstm && s) x.old = rnn_bounded(net, x.old);
    return x;
  }
  /* What reaches h of a sequence's last step has no part in r, whose NaN and infinities would make NaN of slopes of 0. */
  __device__ __forceinline__ void end_sequences(float (&d)[32], int s) const
  {
    uint32_t ends = 0;                    /* of this thread's 16 sequences */
#pragma unroll 1
    for (int i = 0; i < 16; i++) {
      const int64_t b = base::b0 + i / 2 * 8 + lane % 4 * 2 + i % 2;
      if (b < net.batch && rnn_length(net, b) == s + 1) ends |= 1u << i;
    }
#pragma unroll
    for (int i = 0; i < 32; i++)
      if (ends >> (i / 4 * 2 + i % 2) & 1) d[i] = 0;
  }
  /* sum[i]: of this thread's items, of all four blocks' depth. */
  __device__ __forceinline__ void gather(const float (&d)[32], float4 *swap, uint32_t tag, float (&sum)[4]) const
  {
    ulonglong2 *out = partial + ((int64_t)(this->block - rank + warp) * PARTS + rank) * WORDS + half * (WORDS / 2) + lane * 2;
    const uint64_t mark = (uint64_t)tag << 32;
    base::join(d, swap, [&](int n, float x, float y, float z, float w) {
      asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
                   :: "l"(out + n * 64), "l"(mark | __float_as_uint(x)), "l"(mark | __float_as_uint(y)) : "memory");
      asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
                   :: "l"(out + n * 64 + 1), "l"(mark | __float_as_uint(z)), "l"(mark | __float_as_uint(w)) : "memory");
    });
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
  const int steps = (int)net.steps, last = net.dh0.p ? -1 : 0;         /* step -1: what reaches the initial h */
  const bool ends = net.lengths.p;        /* sequences end at steps of their own: what r' adds is made first, to be left out of some */
  if (threadIdx.x >= 256) {
    registers_lower<24>();
    if (threadIdx.x > 256) return;
    const int64_t part = (int64_t)k.rank * p.chunks * CUDA_RNN_FRONT_TILE;
    for (int s = steps - 1; s >= last; s--)
#pragma unroll 1
      for (int i = 0; i < 2; i++) {
        if ((i == 0) != ends) {
          if (!layer.inputs || s < 0) continue;
          if (layer.follows) front_wait(k.below, (uint32_t)(p.unit_blocks * (steps - s)));
          k.copy((const char *)layer.inputs + part + k.tiles_at(s, p.unit_blocks), p.chunks);
        } else if (s < steps - 1) {
          front_wait(k.own, (uint32_t)(p.unit_blocks * (steps - 1 - s)));
          k.copy((const char *)layer.states + part + k.tiles_at(s + 1, p.unit_blocks), p.chunks);
        }
      }
    return;
  }
  registers_raise<240>();
  const bool lstm = net.cell == QN_RNN_LSTM, gru = net.cell == QN_RNN_GRU;
  const int unit0 = (k.block - k.rank) * 16, first = k.rank * p.chunks * 16, depth = p.chunks * 64;
  k.load(unit_lines(layer, false, unit0, first, depth), unit_lines(layer, true, unit0, first, depth), room);
  float4 *swap = (float4 *)(room + k.room_at);
  kept_slopes of;
  left_of_step left[2];
  k.begin(of);
  k.fetch(of, steps - 1, left);
#pragma unroll 1
  for (int s = steps - 1; s >= last; s--) {
    const bool inputs = layer.inputs && s >= 0;
    float d[32], sum[4] = {}, gate[4][4], of_h[4];
    if (inputs && !ends) k.template multiply<true>(d, true);
    if (s < steps - 1) k.template multiply<false>(d, ends || !inputs);
    if (ends) {
      if (s < steps - 1) k.end_sequences(d, s);
      if (inputs) k.template multiply<true>(d, s == steps - 1);
    }
    if (inputs || s < steps - 1) k.gather(d, swap, (uint32_t)(steps - s), sum);
    if (s < 0) {
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (k.there(of, j))
          rnn_put(net.dh0, of.first + j % 2, k.unit(j), 0,
                  of.length[j % 2] ? sum[j] + (gru ? of.carry[j] : 0.f) : rnn_get<float>(net.ht, of.first + j % 2, k.unit(j)));
      break;
    }
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const bool inside = k.there(of, j) && s < of.length[j % 2];
      const auto x = k.item_of(of, s, left, j);
      float dh = sum[j] + x.dy + (gru ? of.carry[j] : 0.f), at = of.carry[j];
      if (s == of.length[j % 2] - 1) dh += k.there(of, j) ? rnn_get<float>(net.ht, of.first + j % 2, k.unit(j)) : 0;
#pragma unroll
      for (int g = 0; g < 4; g++) gate[j][g] = x.gate[g];
      of_h[j] = 0;
      if (lstm) rnn_lstm_slopes(net, gate[j], x.cell, x.old, dh, at);
      else if (gru) {
        rnn_gru_slopes(gate[j], x.old, dh, of_h[j]);
        at = dh;
      } else gate[j][0] = rnn_plain_slope(net, x.old, dh);
      if (inside) of.carry[j] = at;
#pragma unroll
      for (int g = 0; g < 4; g++) gate[j][g] = inside && g < net.gates ? gate[j][g] : 0;
      of_h[j] = inside ? of_h[j] : 0;
    }
    /* The four numbers of the depth that are item j's. A gru's n has two slopes, by x and by h: each product's tile has 0 in place of the
     * other one, which may be beyond the dtype where its own is not, and that times a weight of 0 were NaN. */
    uint32_t low[4], high[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      low[j] = k.pack(gate[j][0]) | (uint32_t)k.pack(gate[j][1]) << 16;
      high[j] = (gru ? 0 : k.pack(gate[j][2])) | (uint32_t)k.pack(gru ? of_h[j] : gate[j][3]) << 16;
    }
    const int64_t at = k.tiles_at(s, p.unit_blocks) + (int64_t)k.block * CUDA_RNN_FRONT_TILE;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const int64_t place = at + front_place(k.local(j), k.lane / 4 * 8);
      of.cell[j] = left[j].old;
      *(uint4 *)((char *)layer.states + place) = make_uint4(low[j], high[j], low[j + 2], high[j + 2]);
      if (layer.passed)
        *(uint4 *)((char *)layer.passed + place) = make_uint4(low[j], k.pack(gate[j][2]), low[j + 2], k.pack(gate[j + 2][2]));
    }
    k.arrive();
#pragma unroll
    for (int j = 0; j < 2; j++) {
      if (!k.there(of, j)) continue;
      const int64_t row = (rnn_time(net, of.length[j], s) * net.batch + of.first + j) * net.rows + k.unit(0);
      uint16_t *x = (uint16_t *)net.slope_x + row, *h = net.slope_h ? (uint16_t *)net.slope_h + row : nullptr;
#pragma unroll
      for (int g = 0; g < 4; g++, x += net.hidden, h = h ? h + net.hidden : h) {
        if (g >= net.gates) break;
        const bool n = gru && g == 2;
        const uint32_t of_x = k.pack(gate[j][g]) | (uint32_t)k.pack(gate[j + 2][g]) << 16;
        const uint32_t to_h = n ? k.pack(of_h[j]) | (uint32_t)k.pack(of_h[j + 2]) << 16 : of_x;
        if (k.paired) {
          *(uint32_t *)x = of_x;
          if (h) *(uint32_t *)h = to_h;
          continue;
        }
        x[0] = (uint16_t)of_x;
        if (h) h[0] = (uint16_t)to_h;
        if (!k.there(of, j + 2)) continue;
        x[1] = (uint16_t)(of_x >> 16);
        if (h) h[1] = (uint16_t)(to_h >> 16);
      }
    }
    if (s) k.fetch(of, s - 1, left);
    if (s > 1) k.announce(of, s - 2);
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (k.there(of, j)) rnn_put(net.dc0, of.first + j % 2, k.unit(j), 0, of.carry[j]);
  k.leave();
}

template <bool bf16, int BLOCKS> cuda_rnn_front_kernel backward_of()
{
  typedef backward_block<bf16, BLOCKS> B;
  return { 128 * BLOCKS, B::shared_with(B::SWAP), (const void *)rnn_front_backward<bf16, BLOCKS> };
}

}

const cuda_rnn_front_kernel cuda_rnn_front_backward_f16[] = { backward_of<false, 4>(), backward_of<false, 8>(), {} };
const cuda_rnn_front_kernel cuda_rnn_front_backward_bf16[] = { backward_of<true, 4>(), backward_of<true, 8>(), {} };
const int64_t cuda_rnn_front_partial = (int64_t)PARTS * WORDS * 16;
