/* rnn_steps_four.cu -- the gates of a step and their slopes as in rnn_steps.cu, four units a thread: where all tensors have x's dtype and
 * units side by side, in aligned pieces of four. All loads of a thread are under way at once, which decides what so short a kernel takes;
 * those of what is older than the step begin before the step's product is there.
 *
 * Not: f64; gru with the reset before; projection. */
#include "rnn_steps.cuh"
#include "kit/vector.cuh"

enum { THREADS = 128 };

/* Four elements as they lie: 16 bytes of f32, 8 of the others. */
template <int dtype> struct four_of { typedef uint2 raw; };
template <> struct four_of<QN_F32> { typedef uint4 raw; };
template <int dtype> using four = typename four_of<dtype>::raw;

template <int dtype> __device__ __forceinline__ four<dtype> zero_four();
template <> __device__ __forceinline__ uint4 zero_four<QN_F32>() { return make_uint4(0, 0, 0, 0); }
template <> __device__ __forceinline__ uint2 zero_four<QN_F16>() { return make_uint2(0, 0); }
template <> __device__ __forceinline__ uint2 zero_four<QN_BF16>() { return make_uint2(0, 0); }

__device__ __forceinline__ uint4 widened(uint4 q) { return q; }
__device__ __forceinline__ uint4 widened(uint2 q) { return make_uint4(q.x, q.y, 0, 0); }
__device__ __forceinline__ void narrowed(uint4 &to, uint4 q) { to = q; }
__device__ __forceinline__ void narrowed(uint2 &to, uint4 q) { to = make_uint2(q.x, q.y); }

template <int dtype> __device__ __forceinline__ four<dtype> load_four(const void *p, int64_t at)
{
  return *(const four<dtype> *)((const char *)p + at * (dtype == QN_F32 ? 4 : 2));
}
template <int dtype> __device__ __forceinline__ four<dtype> load_four(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k = 0)
{
  return t.p ? load_four<dtype>(t.p, rnn_at(t, i, j, k)) : zero_four<dtype>();
}
/* v[0 .. 3]; the rest of v is not meant. */
template <int dtype> __device__ __forceinline__ void open_four(float (&v)[8], four<dtype> q) { vector_open<dtype>(v, 0, widened(q)); }
template <int dtype> __device__ __forceinline__ void store_four(void *p, int64_t at, const float (&v)[8])
{
  four<dtype> q;
  narrowed(q, vector_close<dtype>(v, 0));
  *(four<dtype> *)((char *)p + at * (dtype == QN_F32 ? 4 : 2)) = q;
}
template <int dtype>
__device__ __forceinline__ void store_four(const cuda_rnn_tensor &t, int64_t i, int64_t j, int64_t k, const float (&v)[8])
{
  if (t.p) store_four<dtype>(t.p, rnn_at(t, i, j, k), v);
}

/* What a thread has: sequence b, units j to j + 3. */
struct place {
  int64_t b, j, length, t, e;             /* e: in [b][hidden] */
  bool there, inside;
  __device__ __forceinline__ place(const cuda_rnn &p, int64_t s)
  {
    const int each = (int)p.hidden / 4, i = blockIdx.x * THREADS + threadIdx.x;
    b = i / each, j = i % each * 4, there = b < p.batch;
    if (!there) return;
    length = rnn_length(p, b), t = rnn_time(p, length, s), e = b * p.hidden + j, inside = s < length;
  }
};

template <int dtype, int GATES>
__global__ static void __launch_bounds__(THREADS) rnn_cell_four(const __grid_constant__ cuda_rnn p, int64_t s)
{
  const place at(p, s);
  if (!at.there) return;
  const int64_t H = p.hidden, b = at.b, j = at.j, t = at.t;
  const float *sums = (const float *)p.sums + (t * p.batch + b) * p.rows + j, *product = (const float *)p.product + b * p.rows + j;
  float4 x[GATES], r[GATES], c4 = make_float4(0, 0, 0, 0);
  four<dtype> w4[GATES], r4[GATES], h4 = zero_four<dtype>();
#pragma unroll
  for (int g = 0; g < GATES; g++) {
    x[g] = __ldcs((const float4 *)(sums + g * H));
    w4[g] = load_four<dtype>(p.bw, g * H + j, 0), r4[g] = load_four<dtype>(p.br, g * H + j, 0);
  }
  rnn_wait_before();
#pragma unroll
  for (int g = 0; g < GATES; g++) r[g] = *(const float4 *)(product + g * H);
  if (GATES == 4) c4 = *(const float4 *)((const float *)p.c + at.e);
  if (GATES == 3) h4 = load_four<dtype>(p.h, b * p.h_row + j);
  float kept[4][8], h[8], raw[8], c[4] = { c4.x, c4.y, c4.z, c4.w };
  open_four<dtype>(h, h4);
#pragma unroll
  for (int g = 0; g < GATES; g++) {       /* sums; of gru's last gate those of x, and of h one further */
    float bw[8], br[8];
    open_four<dtype>(bw, w4[g]), open_four<dtype>(br, r4[g]);
    const float of_x[4] = { x[g].x, x[g].y, x[g].z, x[g].w }, of_h[4] = { r[g].x, r[g].y, r[g].z, r[g].w };
#pragma unroll
    for (int i = 0; i < 4; i++) {
      if (GATES == 3 && g == 2) kept[2][i] = of_x[i] + bw[i], kept[3][i] = of_h[i] + br[i];
      else kept[g][i] = (of_x[i] + bw[i]) + (of_h[i] + br[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    float gate[4] = {};
    raw[i] = 0;
#pragma unroll
    for (int g = 0; g < (GATES == 1 ? 1 : 4); g++) gate[g] = kept[g][i];
    if (GATES == 4) h[i] = rnn_lstm(p, gate, c[i], raw[i]);
    else h[i] = GATES == 3 ? rnn_gru(gate, h[i]) : rnn_plain(p, gate[0]);
    if (!at.inside) h[i] = raw[i] = 0;
#pragma unroll
    for (int g = 0; g < (GATES == 1 ? 1 : 4); g++) kept[g][i] = at.inside ? gate[g] : 0;
  }
  store_four<dtype>(p.out, t, b, p.first + j, h);
  if (p.next) {
    const int64_t to = (t * p.batch + b) * p.width + p.first + j;
    float given[8];
#pragma unroll
    for (int i = 0; i < 4; i++) given[i] = rnn_dropped(p, p.layer * p.steps * p.batch * p.width + to + i, h[i]);
    store_four<dtype>(p.next, to, given);
  }
#pragma unroll
  for (int g = 0; g < 4; g++)
    if (g < p.kept && g < (GATES == 1 ? 1 : 4)) store_four<dtype>(p.gates_at, t, b, g * H + j, kept[g]);
  store_four<dtype>(p.cells_at, t, b, j, raw);
  if (!at.inside) return;
  store_four<dtype>(p.h, b * p.h_row + j, h);
  if (GATES == 4) *(float4 *)((float *)p.c + at.e) = make_float4(c[0], c[1], c[2], c[3]);
}

template <int dtype, int GATES>
__global__ static void __launch_bounds__(THREADS) rnn_slopes_four(const __grid_constant__ cuda_rnn p, int64_t s)
{
  constexpr int KEPT = GATES == 1 ? 0 : 4;
  const place at(p, s);
  if (!at.there) return;
  const int64_t H = p.hidden, b = at.b, j = at.j, t = at.t, before = s ? rnn_time(p, at.length, s - 1) : 0;
  const bool last = s == at.length - 1;
  float slope[4][8] = {}, of_h[8] = {};
  if (at.inside) {
    four<dtype> gate4[KEPT + 1], cell4 = zero_four<dtype>(), old4 = zero_four<dtype>(), dc4, ht4 = zero_four<dtype>();
    float4 carried = make_float4(0, 0, 0, 0), straight = carried, c4 = carried;
#pragma unroll
    for (int g = 0; g < KEPT; g++) gate4[g] = load_four<dtype>(p.gates_at, t, b, g * H + j);
    const four<dtype> dout4 = load_four<dtype>(p.dout, t, b, p.first + j);
    if (GATES == 4) {
      cell4 = load_four<dtype>(p.cells_at, t, b, j);
      old4 = s ? load_four<dtype>(p.cells_at, before, b, j) : load_four<dtype>(p.c0, b, j);
    } else if (GATES == 3) old4 = s ? load_four<dtype>(p.out, before, b, p.first + j) : load_four<dtype>(p.h0, b, j);
    else cell4 = load_four<dtype>(p.out, t, b, p.first + j);
    dc4 = zero_four<dtype>();
    rnn_wait_before();
    if (last) {
      ht4 = load_four<dtype>(p.ht, b, j);
      if (GATES == 4) dc4 = load_four<dtype>(p.ct, b, j);
    } else {
      carried = *(const float4 *)((const float *)p.product + at.e);
      if (GATES == 3) straight = *(const float4 *)((const float *)p.direct + at.e);
      if (GATES == 4) c4 = *(const float4 *)((const float *)p.c + at.e);
    }
    float ht[8], dout[8], cell[8], old[8], dc[8], gates[4][8] = {};
    open_four<dtype>(ht, ht4), open_four<dtype>(dout, dout4), open_four<dtype>(cell, cell4), open_four<dtype>(old, old4);
    open_four<dtype>(dc, dc4);
#pragma unroll
    for (int g = 0; g < KEPT; g++) open_four<dtype>(gates[g], gate4[g]);
    const float from[4] = { carried.x + straight.x, carried.y + straight.y, carried.z + straight.z, carried.w + straight.w };
    const float by_c[4] = { c4.x, c4.y, c4.z, c4.w };
    float beside[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float gate[4] = { gates[0][i], gates[1][i], gates[2][i], gates[3][i] }, dh = (last ? ht[i] : from[i]) + dout[i];
      if (!last) dc[i] = by_c[i];
      if (GATES == 4) rnn_lstm_slopes(p, gate, cell[i], s ? rnn_bounded(p, old[i]) : old[i], dh, dc[i]);
      else if (GATES == 3) rnn_gru_slopes(gate, old[i], dh, of_h[i]);
      else gate[0] = rnn_plain_slope(p, cell[i], dh);
      beside[i] = dh;
#pragma unroll
      for (int g = 0; g < GATES; g++) slope[g][i] = gate[g];
    }
    if (GATES == 4) *(float4 *)((float *)p.c + at.e) = make_float4(dc[0], dc[1], dc[2], dc[3]);
    if (GATES == 3) *(float4 *)((float *)p.direct + at.e) = make_float4(beside[0], beside[1], beside[2], beside[3]);
  }
  if (!at.inside) rnn_wait_before();
  const int64_t row = (t * p.batch + b) * p.rows + j;
#pragma unroll
  for (int g = 0; g < GATES; g++) {
    const float (&of)[8] = GATES == 3 && g == 2 ? of_h : slope[g];
    store_four<dtype>(p.slope_x, row + g * H, slope[g]);
    if (p.slope_h) store_four<dtype>(p.slope_h, row + g * H, of);
    store_four<dtype>(p.step, b * p.rows + g * H + j, of);
  }
}

/* ---- launches ------------------------------------------------------------------------------------------ */

static bool whole(const cuda_rnn *p, const cuda_rnn_tensor *t, int rank)
{
  if (!t->p) return true;
  const int64_t bytes = p->dtype == QN_F32 ? 16 : 8;
  bool fits = t->dtype == p->dtype && (uintptr_t)t->p % bytes == 0 && t->stride[rank - 1] == 1;
  for (int i = 0; i < rank - 1; i++) fits = fits && t->stride[i] % 4 == 0;
  return fits;
}

bool cuda_rnn_fours(const cuda_rnn *p)
{
  if (p->dtype == QN_F64 || p->before || p->projects || p->hidden % 4 || p->first % 4 || p->width % 4) return false;
  if (p->batch * p->hidden > INT32_MAX / 2) return false;
  const cuda_rnn_tensor *one[] = { &p->bw, &p->br }, *two[] = { &p->h0, &p->c0, &p->ht, &p->ct },
                        *three[] = { &p->out, &p->dout, &p->gates_at, &p->cells_at };
  bool fits = true;
  for (int i = 0; i < 2; i++) fits = fits && whole(p, one[i], 1);
  for (int i = 0; i < 4; i++) fits = fits && whole(p, three[i], 3) && (!p->gradient || whole(p, two[i], 2));
  return fits;
}

template <int dtype> static qn_status launch_of(bool slopes, const cuda_rnn *p, int64_t s, void *stream)
{
  void (*kernel)(cuda_rnn, int64_t);
  if (slopes) kernel = p->gates == 4 ? rnn_slopes_four<dtype, 4> : p->gates == 3 ? rnn_slopes_four<dtype, 3> : rnn_slopes_four<dtype, 1>;
  else kernel = p->gates == 4 ? rnn_cell_four<dtype, 4> : p->gates == 3 ? rnn_cell_four<dtype, 3> : rnn_cell_four<dtype, 1>;
  const bool early = p->early && !(slopes && s == p->steps - 1);       /* the last step's dy may still be under way */
  return rnn_launch_step(kernel, early, dim3((unsigned)qn_ceil_div(p->batch * (p->hidden / 4), THREADS)), THREADS, p, s, stream,
                         "rnn_steps_four");
}
static qn_status launch(bool slopes, const cuda_rnn *p, int64_t s, void *stream)
{
  if (p->dtype == QN_F32) return launch_of<QN_F32>(slopes, p, s, stream);
  return p->dtype == QN_F16 ? launch_of<QN_F16>(slopes, p, s, stream) : launch_of<QN_BF16>(slopes, p, s, stream);
}
qn_status cuda_rnn_cell_four(const cuda_rnn *p, int64_t s, void *stream) { return launch(false, p, s, stream); }
qn_status cuda_rnn_slopes_four(const cuda_rnn *p, int64_t s, void *stream) { return launch(true, p, s, stream); }
