/* pool_lp.cu -- lp pooling of f16, bf16 and f32 and its gradient: a thread takes a 16-byte vector of channels of one place
 * (channels last) or one element (any other layout).
 *
 *   y    (sum of |tap|^p)^(1/p); if the sum over- or underflows, once more with the taps scaled by a power of two
 *   dx   the sum of dy sign(x) (|x| / y)^(p - 1) over the windows that cover the place, 0 where y is 0
 *
 * pool_lp_small: p of 2 or 3, 3x3 or 2x2 windows of stride 2, channels last: rows shared by two windows are summed once.
 * Refused: p above 64. */
#include "pool.cuh"
#include "pool_lp.cuh"

enum { THREADS = 128, BLOCKS = 4 };       /* BLOCKS: resident on an SM, of pool_lp_small */

template <int V, int whole> __device__ __forceinline__ void fetch(float (&v)[V], const pool &p, const void *base, int64_t at, int many)
{
  if (whole) vector_load_whole<whole ? whole : QN_F32>(v, base, at);
  else vector_load(v, base, p.dtype, at, 1, many);
}
template <int V, int whole> __device__ __forceinline__ void put(const float (&v)[V], const pool &p, void *base, int64_t at, int many)
{
  if (whole) vector_store_whole<whole ? whole : QN_F32>(v, base, at);
  else vector_store(v, base, p.dtype, at, 1, many);
}

/* One window of one channel, with the taps scaled by their maximum: the slow path. */
static __device__ __noinline__ float scaled(const pool &p, const place &at, const window &w)
{
  float most = 0, sum = 0;
  lp_unit unit;
#pragma unroll 1
  for (int pass = 0; pass < 2; pass++) {
    if (pass) unit = lp_unit(most);
    pool_taps<1, 0>(p, at, w, 1, 0, [&](const float (&v)[1], int) {
      float t[1] = { fabsf(v[0]) };
      if (!pass) {
        most = larger(most, t[0]);
        return;
      }
      t[0] = unit.of(t[0]);
      lp_power(t, p.p);
      sum += t[0];
    });
    if (!(most > 0 && most < INFINITY)) return most;
  }
  return unit.back(lp_root(sum, p.p));
}

template <int V, int whole> __global__ void __launch_bounds__(THREADS) pool_lp(const __grid_constant__ pool p)
{
  uint32_t id = blockIdx.x * THREADS + threadIdx.x;
  if (id >= p.units) return;
  place at = place_of<V>(p, id);
  const window w = window_of(p, at.o);
  float most[V] = {}, sum[V] = {};
  pool_taps<V, whole>(p, at, w, V, 0, [&](const float (&v)[V], int) {
    float t[V];
#pragma unroll
    for (int i = 0; i < V; i++) {
      t[i] = fabsf(v[i]);
      most[i] = larger(most[i], t[i]);
    }
    lp_power(t, p.p);
#pragma unroll
    for (int i = 0; i < V; i++) sum[i] += t[i];
  });
  bool plain = true;
#pragma unroll
  for (int i = 0; i < V; i++) {
    plain &= most[i] == 0 || (sum[i] > LP_LEAST && sum[i] < INFINITY);
    sum[i] = most[i] == 0 ? 0 : lp_root(sum[i], p.p);
  }
  int64_t to = at.n * p.y_stride[0] + at.c * p.y_stride[1] + at.o[0] * p.y_stride[2] + at.o[1] * p.y_stride[3] + at.o[2] * p.y_stride[4];
  put<V, whole>(sum, p, p.y, to, V);
  if (plain) return;
#pragma unroll 1
  for (int i = 0; i < V; i++, at.c++, to += p.y_stride[1]) {
    float y[1] = { scaled(p, at, w) };
    vector_store(y, p.y, p.dtype, to, 1, 1);
  }
}

/* ---- small square windows, channels last --------------------------------------------------------------------------- */

/* For t in LP_LEAST..inf. In 16-bit dtypes the error of exp2(log2(t) / 3), about 2^-18, does not show. */
template <int whole, int P> __device__ __forceinline__ float root_of(float t)
{
  return P == 3 && whole != QN_F32 ? exp2f(__log2f(t) * (1 / 3.f)) : lp_root(t, P);
}

/* SIZE x SIZE windows of stride STEP: a thread walks down a column of windows and keeps the row sums that the next window shares. */
template <int whole, int P, int SIZE, int STEP>
__global__ void __launch_bounds__(THREADS, BLOCKS) pool_lp_small(const __grid_constant__ pool p)
{
  constexpr int V = vector_per_16<whole>, KEPT = SIZE - STEP;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.units) return;
  place at = place_of<V>(p, unit);
  at.o[1] *= p.band;
  const int end = min(at.o[1] + p.band, p.out[1]), x0 = at.o[2] * STEP - p.before[2];
  int y = at.o[1] * STEP - p.before[1];
  const int64_t base = at.n * p.x_stride[0] + at.c + x0 * p.x_stride[4];
  int64_t to = at.n * p.y_stride[0] + at.c + at.o[1] * p.y_stride[3] + at.o[2] * p.y_stride[4];
  struct line { float sum[V]; uint4 any; };               /* any: the taps OR-ed together; 0 but for signs if all taps are 0 */
  const auto load = [&](uint4 (&q)[SIZE], int row) {
#pragma unroll
    for (int c = 0; c < SIZE; c++) {
      q[c] = make_uint4(0, 0, 0, 0);
      if ((unsigned)row < (unsigned)p.in[1] && (unsigned)(x0 + c) < (unsigned)p.in[2])
        q[c] = *vector_place<whole>(p.x, base + row * p.x_stride[3] + c * p.x_stride[4]);
    }
  };
  const auto join = [&](const uint4 (&q)[SIZE]) {
    line l = {};
#pragma unroll
    for (int c = 0; c < SIZE; c++) {
      float v[V];
      vector_open<whole>(v, 0, q[c]);
      l.any.x |= q[c].x, l.any.y |= q[c].y, l.any.z |= q[c].z, l.any.w |= q[c].w;
#pragma unroll
      for (int i = 0; i < V; i++) l.sum[i] += P == 2 ? v[i] * v[i] : v[i] * v[i] * fabsf(v[i]);
    }
    return l;
  };
  line kept[KEPT ? KEPT : 1];
#pragma unroll
  for (int r = 0; r < KEPT; r++) {
    uint4 q[SIZE];
    load(q, y + r);
    kept[r] = join(q);
  }
  uint4 q[STEP][SIZE];
#pragma unroll
  for (int r = 0; r < STEP; r++) load(q[r], y + KEPT + r);
#pragma unroll 1
  for (; at.o[1] < end; at.o[1]++, y += STEP, to += p.y_stride[3]) {
    line all[SIZE];
#pragma unroll
    for (int r = 0; r < SIZE; r++) all[r] = r < KEPT ? kept[r < KEPT ? r : 0] : join(q[r < KEPT ? 0 : r - KEPT]);
    if (at.o[1] + 1 < end)
#pragma unroll
      for (int r = 0; r < STEP; r++) load(q[r], y + STEP + KEPT + r);
    float sum[V];
    uint32_t any[4] = {};
    bool plain = true;
#pragma unroll
    for (int r = 0; r < SIZE; r++) any[0] |= all[r].any.x, any[1] |= all[r].any.y, any[2] |= all[r].any.z, any[3] |= all[r].any.w;
#pragma unroll
    for (int i = 0; i < V; i++) {
      sum[i] = all[0].sum[i];
#pragma unroll
      for (int r = 1; r < SIZE; r++) sum[i] += all[r].sum[i];
      const uint32_t bits = V == 4 ? any[i % 4] & 0x7fffffffu : any[i / 2 % 4] & 0x7fffu << i % 2 * 16;
      plain &= bits == 0 || (sum[i] > LP_LEAST && sum[i] < INFINITY);
      sum[i] = bits == 0 ? 0 : root_of<whole, P>(sum[i]);
    }
#pragma unroll
    for (int r = 0; r < KEPT; r++) kept[r] = all[STEP + r];
    vector_store_whole<whole>(sum, p.y, to);
    if (plain) continue;
    place one = at;
    const window w = window_of(p, at.o);
#pragma unroll 1
    for (int i = 0; i < V; i++, one.c++) {
      float v[1] = { scaled(p, one, w) };
      vector_store(v, p.y, p.dtype, to + i, 1, 1);
    }
  }
}

template <int V, int whole> __global__ void __launch_bounds__(THREADS) pool_lp_backward(const __grid_constant__ pool p)
{
  uint32_t id = blockIdx.x * THREADS + threadIdx.x;
  if (id >= p.units) return;
  place at = place_of<V>(p, id);
  int first[3], last[3];
  int64_t x_at = at.n * p.x_stride[0] + at.c * p.x_stride[1] + at.o[0] * p.x_stride[2] + at.o[1] * p.x_stride[3] + at.o[2] * p.x_stride[4];
  int64_t y_base = at.n * p.y_stride[0] + at.c * p.y_stride[1], dy_base = at.n * p.index_stride[0] + at.c * p.index_stride[1];
  float x[V], sum[V] = {};
  fetch<V, whole>(x, p, p.x, x_at, V);
#pragma unroll
  for (int d = 0; d < 3; d++) windows_over(p, d, at.o[d], &first[d], &last[d]);
  for (int o0 = first[0]; o0 <= last[0]; o0++)
    for (int o1 = first[1]; o1 <= last[1]; o1++)
      for (int o2 = first[2]; o2 <= last[2]; o2++) {
        int o[3] = { o0, o1, o2 };
        bool covers = true;
#pragma unroll
        for (int d = 0; d < 3; d++) covers &= p.dilation[d] == 1 || (at.o[d] - o[d] * p.step[d] + p.before[d]) % p.dilation[d] == 0;
        if (!covers) continue;
        float y[V], dy[V];
        fetch<V, whole>(y, p, p.y, y_base + o0 * p.y_stride[2] + o1 * p.y_stride[3] + o2 * p.y_stride[4], V);
        fetch<V, whole>(dy, p, p.dy, dy_base + o0 * p.index_stride[2] + o1 * p.index_stride[3] + o2 * p.index_stride[4], V);
        lp_gradient(sum, x, y, dy, p.p);
      }
  put<V, whole>(sum, p, p.dx,
                at.n * p.dx_stride[0] + at.c * p.dx_stride[1] + at.o[0] * p.dx_stride[2] + at.o[1] * p.dx_stride[3] +
                    at.o[2] * p.dx_stride[4],
                V);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

template <int V, int whole> static pool_kernel kernel_of(bool backward)
{
  return backward ? (pool_kernel)pool_lp_backward<V, whole> : (pool_kernel)pool_lp<V, whole>;
}
template <int whole, int P> static pool_kernel small_of(const pool *p)
{
  return p->size[1] == 3 && p->step[1] == 2 ? (pool_kernel)pool_lp_small<whole, P, 3, 2>
       : p->size[1] == 2 && p->step[1] == 2 ? (pool_kernel)pool_lp_small<whole, P, 2, 2>
                                            : nullptr;
}
template <int whole> static pool_kernel small_of(const pool *p)
{
  const bool square = p->size[0] == 1 && p->size[1] == p->size[2] && p->step[1] == p->step[2] && p->dilation[1] == 1 &&
                      p->dilation[2] == 1 && p->in[0] == 1 && p->out[0] == 1 && p->before[0] == 0;
  return !square ? nullptr : p->p == 2 ? small_of<whole, 2>(p) : p->p == 3 ? small_of<whole, 3>(p) : nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const bool back = op->op == QN_OP_POOL_LP_BACKWARD;
  pool_state<pool> s = {};
  s.of = { qn_role(op, back ? QN_ROLE_POOL_LP_BACKWARD_X : QN_ROLE_POOL_LP_X),
           qn_role(op, back ? QN_ROLE_POOL_LP_BACKWARD_Y : QN_ROLE_POOL_LP_Y),
           back ? qn_role(op, QN_ROLE_POOL_LP_BACKWARD_DY) : -1, back ? qn_role(op, QN_ROLE_POOL_LP_BACKWARD_DX) : -1, -1 };
  const qn_value *x = &r->value[s.of.x], *y = &r->value[s.of.y], *dy = back ? &r->value[s.of.dy] : y, *dx = back ? &r->value[s.of.dx] : x;
  qn_status status = pool_wants_floats(x, "x", out);
  if (status) return status;
  pool *p = &s.p;
  if (!pool_fill(p, op, x, y)) return qn_refuse(out, "extents below 2^29, planes below 2^31", "x", "", "%s", "more");
  if (p->p > LP_MOST) return qn_refuse(out, "powers that are floats", "p", "at most 64", "%g", p->p);
  pool_strides(dy, p->index_stride);      /* for a gradient index_stride holds dy's strides */
  pool_strides(dx, p->dx_stride);
  const int64_t *strides[] = { p->x_stride, p->y_stride, p->index_stride, p->dx_stride };
  uint32_t align = x->align < y->align ? x->align : y->align, whole;
  if (dy->align < align) align = dy->align;
  if (dx->align < align) align = dx->align;
  int v = pool_channels(p, strides, 4, align, &whole);
  if (!pool_units(p, v, back ? p->in : p->out)) return qn_refuse(out, "fewer than 2^31 units", "x", "", "%s", "more");
  if (!whole) s.kernel = kernel_of<1, 0>(back);
  else s.kernel = cuda_by_dtype(whole, [&](auto dtype) { return kernel_of<vector_per_16<dtype()>, dtype()>(back); });
  const pool_kernel small = back || !whole ? nullptr : cuda_by_dtype(whole, [&](auto dtype) { return small_of<dtype()>(p); });
  if (small) {                            /* a column a thread, cut into bands so that the blocks make whole waves */
    const int64_t across = (int64_t)p->n * p->groups * p->out[2];
    double least = INFINITY;
    for (int64_t band = 2; band <= 16; band++) {
      const int64_t blocks = qn_ceil_div(across * qn_ceil_div(p->out[1], band), (int64_t)THREADS);
      /* rows of x read one after the other */
      const double cost = (double)qn_ceil_div(blocks, BLOCKS * (int64_t)r->device->units) *
                          (double)(band * p->step[1] + p->size[1] - p->step[1]);
      if (cost < least) least = cost, p->band = (int32_t)band;
    }
    const int32_t cells[3] = { 1, (int32_t)qn_ceil_div(p->out[1], p->band), p->out[2] };
    pool_units(p, v, cells);
    s.kernel = small;
  }
  return pool_keep(&s, p->units, THREADS, out);
}

static const qn_engine row[] = { pool_row<pool>("lp", QN_OP_POOL_LP, prepare), pool_row<pool>("lp", QN_OP_POOL_LP_BACKWARD, prepare) };
CUDA_ENGINES(pool_lp) = { row, sizeof row / sizeof *row };
