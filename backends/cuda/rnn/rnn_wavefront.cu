/* rnn_wavefront.cu -- the forward kernels of rnn_wavefront.cuh: a block's lines are the gates of 16 units.
 *
 * Of a warp's 16 lines 4 are units' first gates, 4 their second ones, ...: a thread has two gates of a unit in two sequences, the lane 16
 * further the other two, so an exchange gives each all gates of one. The warpgroups, whose sums are of halves of the depth, exchange them
 * in shared memory, half of the sequences each. h and c stay in registers. */
#include "rnn_wavefront.cuh"

namespace {

struct gate_lines {
  static constexpr bool along_depth = true;
  const uint16_t *from;
  int64_t row, column;
  const cuda_rnn &net;
  int unit0, depth;
  bool recurrent, whole;
  __device__ __forceinline__ gate_lines(const cuda_rnn_front_layer &layer, bool recurrent, int unit0)
    : from((const uint16_t *)layer.weights[recurrent]), row(layer.row[recurrent]), column(layer.column[recurrent]), net(layer.net),
      unit0(unit0), depth((int)(recurrent ? net.hidden : net.inputs)), recurrent(recurrent)
  {
    whole = column == 1 && row % 8 == 0 && depth % 8 == 0 && (uintptr_t)from % 16 == 0;
  }
  __device__ __forceinline__ const uint16_t *at(int l, int k) const
  {
    const int gate = front_gate(net, recurrent, l % 16 / 4), u = unit0 + l / 16 * 4 + l % 4;
    return gate < 0 || u >= net.hidden || k >= depth ? nullptr : from + (gate * net.hidden + u) * row + k * column;
  }
};

template <bool bf16, int BLOCKS> struct forward_block : front_block<bf16, BLOCKS> {
  typedef front_block<bf16, BLOCKS> base;
  using base::p; using base::layer; using base::net; using base::lane; using base::warp; using base::half; using base::b0;
  int unit, local;                        /* this thread's unit; its first sequence of four, the others 8 further each */
  __device__ __forceinline__ forward_block(const cuda_rnn_front &given, char *room) : base(given, room, base::SWAP)
  {
    unit = this->block * 16 + warp * 4 + lane / 4 % 4, local = 32 * half + lane % 4 * 2 + lane / 16;
  }
  /* The four gates' sums of this thread's unit in its sequences, of both halves of the depth. */
  __device__ __forceinline__ void gather(const float (&d)[32], float4 *swap, float (&gate)[4][4]) const
  {
    const bool upper = lane & 16;
    base::join(d, swap, [&](int n, float s0, float s1, float s2, float s3) {
      const float one = __shfl_xor_sync(~0u, upper ? s0 : s1, 16), two = __shfl_xor_sync(~0u, upper ? s2 : s3, 16);
      gate[n][0] = upper ? one : s0, gate[n][1] = upper ? s1 : one, gate[n][2] = upper ? two : s2, gate[n][3] = upper ? s3 : two;
    });
  }
  /* A gru's n of x and of h are two sums: what the other's zeros make of numbers that are not finite is no part of them. That of x waits in
   * this thread's own places of `swap`. */
  __device__ __forceinline__ void set_apart(float (&d)[32], float4 *swap) const
  {
    float4 *to = swap + half * 512 + threadIdx.x % 128;
#pragma unroll
    for (int n = 0; n < 4; n++) to[n * 128] = make_float4(d[8 * n + 2], d[8 * n + 3], d[8 * n + 6], d[8 * n + 7]);
    if (lane & 16)
#pragma unroll
      for (int j = 0; j < 8; j++) d[4 * j + 2] = 0, d[4 * j + 3] = 0;
  }
  __device__ __forceinline__ void set_back(float (&d)[32], const float4 *swap) const
  {
    const float4 *from = swap + half * 512 + threadIdx.x % 128;
    if (lane & 16) return;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const float4 v = from[n * 128];
      d[8 * n + 2] = v.x, d[8 * n + 3] = v.y, d[8 * n + 6] = v.z, d[8 * n + 7] = v.w;
    }
  }
  /* The tiles' numbers of four units side by side, in four lanes: each lane stores those of one of its sequences. */
  __device__ __forceinline__ void store(void *tiles, int slot, const float (&v)[4]) const
  {
    uint2 mine = make_uint2(0, 0);
    const int place = lane / 4 % 4;
#pragma unroll
    for (int n = 0; n < 4; n++) {
      const uint32_t one = this->pack(v[n]), next = __shfl_xor_sync(~0u, one, 4);
      const uint32_t pair = place & 1 ? next | one << 16 : one | next << 16, others = __shfl_xor_sync(~0u, pair, 8);
      if (n == place) mine = place & 2 ? make_uint2(others, pair) : make_uint2(pair, others);
    }
    const int first = this->block * 16 + warp * 4, b = local + 8 * place;
    char *to = (char *)tiles + this->tiles_at(slot, p.chunks) + front_place(b, first);
    *(uint2 *)to = mine;
  }
};

/* A step of this thread's sequences, whether or not they last so long: nothing branches. gate: sums, becomes what is kept. */
template <int cell> __device__ __forceinline__ void front_gates(const cuda_rnn &net, int s, const int (&length)[4], const float (&bias)[4],
                                                                float (&gate)[4][4], float (&h)[4], float (&c)[4], float (&raw)[4])
{
#pragma unroll
  for (int n = 0; n < 4; n++) {
    float state = c[n], given;
#pragma unroll
    for (int g = 0; g < 4; g++) gate[n][g] += bias[g];
    if (cell == QN_RNN_LSTM) given = rnn_lstm(net, gate[n], state, raw[n]);
    else given = cell == QN_RNN_GRU ? rnn_gru(gate[n], h[n]) : rnn_plain(net, gate[n][0]);
    const bool inside = s < length[n];
    h[n] = inside ? given : h[n], c[n] = inside ? state : c[n], raw[n] = inside ? raw[n] : 0;
  }
}

template <bool bf16, int BLOCKS>
__global__ void __launch_bounds__(CUDA_RNN_FRONT_THREADS, 1) rnn_front_forward(const __grid_constant__ cuda_rnn_front p)
{
  extern __shared__ __align__(1024) char room[];
  forward_block<bf16, BLOCKS> k(p, room);
  const cuda_rnn &net = k.net;
  const cuda_rnn_front_layer &layer = k.layer;
  const int steps = (int)net.steps, H = (int)net.hidden;
  if (threadIdx.x >= 256) {
    registers_lower<24>();
    if (threadIdx.x > 256) return;
    for (int s = 0; s < steps; s++) {
      if (layer.follows) front_wait(k.below, (uint32_t)(p.unit_blocks * (s + 2)));
      k.copy((const char *)layer.inputs + k.tiles_at(s + 1, layer.input_chunks), layer.input_chunks);
      front_wait(k.own, (uint32_t)(p.unit_blocks * (s + 1)));
      k.copy((const char *)layer.states + k.tiles_at(s, p.chunks), p.chunks);
    }
    return;
  }
  registers_raise<240>();
  float h[4], c[4], bias[4] = {};
  int length[4];
#pragma unroll
  for (int n = 0; n < 4; n++) {
    const int b = k.b0 + k.local + 8 * n;
    const bool there = b < net.batch && k.unit < H;
    length[n] = there ? (int)rnn_length(net, b) : -1;
    h[n] = there ? rnn_get<float>(net.h0, b, k.unit) : 0, c[n] = there ? rnn_get<float>(net.c0, b, k.unit) : 0;
  }
  k.store(layer.states, 0, h);
  k.arrive();
#pragma unroll
  for (int g = 0; g < 4; g++) {
    const int of_x = front_gate(net, false, g), of_h = front_gate(net, true, g);
    if (k.unit < H && of_x >= 0) bias[g] += rnn_get<float>(net.bw, of_x * H + k.unit);
    if (k.unit < H && of_h >= 0) bias[g] += rnn_get<float>(net.br, of_h * H + k.unit);
  }
  k.load(gate_lines(layer, false, k.block * 16), gate_lines(layer, true, k.block * 16), room);
  float4 *swap = (float4 *)(room + k.room_at);
#pragma unroll 1
  for (int s = 0; s < steps; s++) {
    float d[32], gate[4][4], raw[4] = {}, given[4];
    const bool gru = net.cell == QN_RNN_GRU;
    k.template multiply<true>(d, true);
    if (gru) k.set_apart(d, swap);
    k.template multiply<false>(d, false);
    if (gru) k.set_back(d, swap);
    k.gather(d, swap, gate);
    if (net.cell == QN_RNN_LSTM) front_gates<QN_RNN_LSTM>(net, s, length, bias, gate, h, c, raw);
    else if (gru) front_gates<QN_RNN_GRU>(net, s, length, bias, gate, h, c, raw);
    else front_gates<QN_RNN_TANH>(net, s, length, bias, gate, h, c, raw);
    if (layer.passed) {
#pragma unroll
      for (int n = 0; n < 4; n++) {
        const int64_t b = k.b0 + k.local + 8 * n, place = (rnn_time(net, length[n], s) * net.batch + b) * net.width + net.first + k.unit;
        given[n] = s < length[n] ? rnn_dropped(net, net.layer * net.steps * net.batch * net.width + place, h[n]) : 0;
      }
      k.store(layer.passed, s + 1, given);
    }
    k.store(layer.states, s + 1, h);
    k.arrive();
#pragma unroll
    for (int n = 0; n < 4; n++) {
      if (length[n] < 0) continue;
      const int64_t b = k.b0 + k.local + 8 * n, t = rnn_time(net, length[n], s);
      const bool inside = s < length[n];
      rnn_give_as<k.dtype>(net, t, b, k.unit, inside ? h[n] : 0.f);
      if (net.gates_at.p)
#pragma unroll
        for (int g = 0; g < 4; g++)
          if (g < net.kept) rnn_put_as<k.dtype>(net.gates_at, t, b, g * H + k.unit, inside ? gate[n][g] : 0.f);
      rnn_put_as<k.dtype>(net.cells_at, t, b, k.unit, raw[n]);
    }
  }
#pragma unroll
  for (int n = 0; n < 4; n++) {
    if (length[n] < 0) continue;
    rnn_put(net.ht, k.b0 + k.local + 8 * n, k.unit, 0, h[n]);
    rnn_put(net.ct, k.b0 + k.local + 8 * n, k.unit, 0, c[n]);
  }
  k.leave();
}

/* Piece i of x's tiles: of a sequence's step the 8 numbers of a chunk. */
__global__ void __launch_bounds__(256) rnn_front_lay(const __grid_constant__ cuda_rnn net, uint4 *tiles, int chunks, int slots,
                                                     int64_t pieces)
{
  const int64_t i = blockIdx.x * (int64_t)256 + threadIdx.x;
  if (i >= pieces) return;
  const int piece = (int)(i % 8), row = (int)(i / 8 % 64), chunk = (int)(i / 512 % chunks);
  const int64_t of_share = i / 512 / chunks, s = of_share % net.steps, share = of_share / net.steps, b = share * 64 + row;
  const int k = chunk * 64 + piece * 8;
  const int64_t length = b < net.batch ? rnn_length(net, b) : 0;
  uint32_t word[4] = {};
  if (s < length) {
    const uint16_t *from = (const uint16_t *)net.below.p + rnn_at(net.below, rnn_time(net, length, s), b, k);
    if (k + 8 <= net.inputs && net.below.stride[2] == 1 && (uintptr_t)from % 16 == 0) {
      const uint4 v = *(const uint4 *)from;
      word[0] = v.x, word[1] = v.y, word[2] = v.z, word[3] = v.w;
    } else
#pragma unroll
      for (int e = 0; e < 8; e++)
        if (k + e < net.inputs) word[e / 2] |= (uint32_t)from[e * net.below.stride[2]] << e % 2 * 16;
  }
  tiles[(((share * slots + s + 1) * chunks + chunk) * 64 + row) * 8 + (piece ^ row % 8)] = make_uint4(word[0], word[1], word[2], word[3]);
}

template <bool bf16, int BLOCKS> cuda_rnn_front_kernel forward_of()
{
  typedef forward_block<bf16, BLOCKS> B;
  return { 128 * BLOCKS, B::shared_with(B::SWAP), (const void *)rnn_front_forward<bf16, BLOCKS> };
}

}

const cuda_rnn_front_kernel cuda_rnn_front_forward_f16[] = { forward_of<false, 4>(), forward_of<false, 8>(), {} };
const cuda_rnn_front_kernel cuda_rnn_front_forward_bf16[] = { forward_of<true, 4>(), forward_of<true, 8>(), {} };

qn_status cuda_rnn_front_lay(const cuda_rnn *net, void *tiles, int32_t chunks, int32_t shares, int32_t slots, void *stream)
{
  const int64_t pieces = shares * net->steps * chunks * 512;
  rnn_front_lay<<<(unsigned)qn_ceil_div(pieces, 256), 256, 0, (cudaStream_t)stream>>>(*net, (uint4 *)tiles, chunks, slots, pieces);
  return cuda_check(cudaGetLastError(), "rnn_front_lay");
}
