/* pool_indexed.cu -- max pooling with indices and its gradient from indices, packed NCHW planes, f16, bf16 and f32; small
 * square windows.
 *
 *   max        y = the largest tap inside x; NaN wins, then the first of equals; indices: its tap or position
 *   backward   dx[x] = the sum of dy over the windows whose index is x
 *
 * Lanes walk down columns (pool_walk.cuh). Forward, the maximum of each row of a window is found once and shared by the
 * windows that overlap it. Backward, a window's tap becomes one bit of a word, and each of its sums is a predicated add on that
 * bit: the compiler turns many bits into predicates at once, and sums stay in registers without indexing.
 * line: gradients of 1-D rows, window 3, stride 2: a thread reads the three windows over its 4 columns.
 * Refused: forward other than 3x3 or 2x2 with stride 2; backward other than 3x3 with stride 1 or 2, or (positions) 5x5
 * with stride 1. */
#include "engines.h"
#include "pool_walk.cuh"

enum { RESIDENT = 24 };                   /* warps per SM that the registers of 5x5 windows allow */

/* ---- the gradient ----------------------------------------------------------------------------------------------- */

/* AHEAD: rows of windows whose loads are in flight. */
template <int dtype, int how, class of, int AHEAD>
__global__ void __launch_bounds__(THREADS) pool_indexed(const __grid_constant__ walk p)
{
  constexpr int HIGH = of::HIGH, DOWN = of::DOWN, ABOVE = of::ABOVE, WIDE = of::WIDE, STEP = of::STEP, BEFORE = of::BEFORE,
                RIGHT = of::RIGHT, KEPT = of::KEPT;
  constexpr int WINDOWS = of::WINDOWS, PLACES = of::PLACES, E = dtype == QN_F32 ? 1 : 2, bytes = 4 / E;
  static_assert(BEFORE <= C && RIGHT >= 0 && RIGHT <= C && HIGH * WIDE <= 31, "neighbours' columns, and taps that a word counts");
  const lane at = lane_of(p, p.in[1], blockIdx.x * (THREADS / 32) + threadIdx.x / 32);
  uint32_t z;
  cuda_quotient(at.plane, p.by_depth, &z);
  const int top = at.top, end = at.end, height = p.in[1], width = p.in[2], high = p.out[1], wide = p.out[2];
  /* oy_end may exceed y: dx may have rows below the last window */
  const int oy_begin = max((top + ABOVE - HIGH + DOWN) / DOWN, 0), oy_end = (end - 1 + ABOVE) / DOWN + 1;
  const int64_t in_x = (int64_t)at.plane * height * width + at.column * C,
                in_y = (int64_t)at.plane * high * wide + at.column * WINDOWS;
  const char *const dy = (const char *)p.dy + in_y * bytes,
             *const index = (const char *)p.indices + in_y * (how == BY_TAP ? 1 : p.index_dtype == QN_I64 ? 8 : 4);
  char *const dx = (char *)p.dx + in_x * bytes;

  struct line {
    words<WINDOWS / E> dy;
    words<how == BY_PLACE ? WINDOWS * 2 : 1> index;         /* i32 or i64 positions; or tap numbers, a byte each */
  };
  const auto load = [&](line &l, int oy) {
    const int here = min(oy, high - 1) * wide;
    l.dy = load_words<WINDOWS / E>(dy, (int64_t)here * bytes);
    if (how == BY_TAP) *l.index.w = WINDOWS == 4 ? *(const uint32_t *)(index + here) : *(const uint16_t *)(index + here);
    if constexpr (how == BY_PLACE) {
      if (p.index_dtype == QN_I64) l.index = load_words<WINDOWS * 2>(index, (int64_t)here * 8);
      else *(words<WINDOWS> *)&l.index = load_words<WINDOWS>(index, (int64_t)here * 4);
    }
  };

  float sum[HIGH][PLACES] = {};
  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], min(oy_begin + a, oy_end - 1));
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += AHEAD)
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      const int oy = oy0 + a, y0 = oy * DOWN - ABOVE;
      if (AHEAD > 1 && oy >= oy_end) break;
      const line &l = ahead[a];
#pragma unroll
      for (int w = 0; w < WINDOWS; w++) {
        const float v = oy < high ? open<dtype>(l.dy, w) : 0;
        uint32_t bits = 0;
        if constexpr (how == BY_TAP) {
          const uint32_t tap = *l.index.w >> 8 * w & 255;
          if (tap < HIGH * WIDE) bits = 1u << tap;
        } else {
          const int place = p.index_dtype == QN_I64
                              ? place_among((int64_t)((uint64_t)l.index.w[2 * w + 1] << 32 | l.index.w[2 * w]))
                              : (int)l.index.w[w];
          uint32_t c, r = cuda_quotient((uint32_t)max(place, 0), p.by_width, &c) - (z * height + y0);
          c -= at.column * C + w * STEP - BEFORE;
          if (place >= 0 && r < HIGH && c < WIDE) bits = 1u << (r * WIDE + c);
        }
#pragma unroll
        for (int r = 0; r < HIGH; r++)
#pragma unroll
          for (int c = 0; c < WIDE; c++) add_at_bit(sum[r][w * STEP + c], bits, r * WIDE + c, v);
      }
      load(ahead[a], min(oy + AHEAD, oy_end - 1));
#pragma unroll
      for (int r = 0; r < DOWN; r++) {    /* rows that no later window covers are complete */
        const int y = y0 + r;
#pragma unroll
        for (int i = 0; i < BEFORE; i++) {
          const float there = __shfl_down_sync(~0u, sum[r][i], 1);
          if (at.right) sum[r][C + i] += there;
        }
#pragma unroll
        for (int i = 0; i < RIGHT; i++) {
          const float there = __shfl_up_sync(~0u, sum[r][BEFORE + C + i], 1);
          if (at.left) sum[r][BEFORE + i] += there;
        }
        if (at.owns && y >= top && y < end) store<dtype>(dx, y * width, sum[r] + BEFORE);
      }
#pragma unroll
      for (int r = 0; r < HIGH; r++)
#pragma unroll
        for (int i = 0; i < PLACES; i++) sum[r][i] = r < KEPT ? sum[r < KEPT ? r + DOWN : r][i] : 0;
    }
}

template <class index, int N> struct alignas(sizeof(index) * N < 16 ? sizeof(index) * N : 16) several { index v[N]; };

/* ---- maxima and their indices ------------------------------------------------------------------------------------ */

/* The largest element of a row of a window, as an ordered integer, and (bits) a bit for its column. 16-bit dtypes hold both in
 * `order`: the low half is a bit number that is larger for earlier elements, so of equals the first wins. */
template <bool halves> struct peak { uint32_t order, bits; };

/* The peaks of a row of x for each of a lane's windows; inside: is the row in x? */
template <int dtype, class of>
__device__ __forceinline__ void largest_of_line(peak<dtype != QN_F32> (&m)[of::WINDOWS], words<C / (dtype == QN_F32 ? 1 : 2)> q,
                                                bool inside, const lane &at)
{
  constexpr int E = dtype == QN_F32 ? 1 : 2, BEFORE = of::BEFORE, STEP = of::STEP;
  static_assert(BEFORE <= 1 && of::RIGHT <= 1 && of::PLACES <= 8 && of::WIDE <= 3, "a column beside a lane's");
#pragma unroll
  for (int i = 0; i < C / E; i++) q.w[i] = inside ? order_of<dtype>(q.w[i]) : 0;
  uint32_t before = BEFORE ? __shfl_up_sync(~0u, q.w[C / E - 1], 1) : 0, after = of::RIGHT ? __shfl_down_sync(~0u, q.w[0], 1) : 0,
           x[of::PLACES];
  before = at.left ? before : 0, after = at.right ? after : 0;
#pragma unroll
  for (int i = 0; i < of::PLACES; i++) {
    const int column = i - BEFORE;
    const uint32_t w = column < 0 ? before : column >= C ? after : q.w[column / E % (C / E)];
    x[i] = E == 1 ? w : (column % 2 ? w & 0xffff0000u : w << 16) | (7 - i);
  }
#pragma unroll
  for (int w = 0; w < of::WINDOWS; w++) {
    uint32_t most = x[w * STEP], bits = 1 << of::WIDE - 1;
#pragma unroll
    for (int c = 1; c < of::WIDE; c++) most = max(most, x[w * STEP + c]);
#pragma unroll
    for (int c = of::WIDE - 2; c >= 0; c--) bits = x[w * STEP + c] == most ? 1 << c : bits;
    m[w].order = most, m[w].bits = E == 2 ? 0 : bits;
  }
}

/* The largest of window w; bits: one bit, number 8 row + column for f32, 8 (HIGH - 1 - row) + 7 - place for 16 bits. */
template <int dtype, class of>
__device__ __forceinline__ uint32_t largest_of_window(const peak<dtype != QN_F32> (&most)[of::HIGH][of::WINDOWS], int w, uint32_t *bits)
{
  uint32_t largest = 0;
#pragma unroll
  for (int r = 0; r < of::HIGH; r++) largest = max(largest, most[r][w].order + (dtype != QN_F32 ? (of::HIGH - 1 - r) * 8 : 0));
  *bits = dtype == QN_F32 ? most[of::HIGH - 1][w].bits << 8 * (of::HIGH - 1) : 1u << (largest & 31);
  if (dtype == QN_F32)
#pragma unroll
    for (int r = of::HIGH - 2; r >= 0; r--) *bits = most[r][w].order == largest ? most[r][w].bits << 8 * r : *bits;
  return largest;
}

template <int dtype, class index, class of, int AHEAD>
__global__ void __launch_bounds__(THREADS) pool_indexed_max(const __grid_constant__ walk p)
{
  constexpr int HIGH = of::HIGH, DOWN = of::DOWN, ABOVE = of::ABOVE, KEPT = of::KEPT, WINDOWS = of::WINDOWS, E = dtype == QN_F32 ? 1 : 2,
                bytes = 4 / E;
  const lane at = lane_of(p, p.out[1], blockIdx.x * (THREADS / 32) + threadIdx.x / 32);
  uint32_t z;
  cuda_quotient(at.plane, p.by_depth, &z);
  const int height = p.in[1], width = p.in[2], high = p.out[1], wide = p.out[2];
  const char *const x_image = (const char *)p.x + ((int64_t)at.plane * height * width + at.column * C) * bytes;
  const int64_t in_y = (int64_t)at.plane * high * wide + at.column * WINDOWS;
  struct line { words<C / E> x[DOWN]; };
  const auto load_x = [&](int y) { return load_words<C / E>(x_image, (int64_t)(min(max(y, 0), height - 1) * width) * bytes); };
  const auto load = [&](line &l, int oy) {
#pragma unroll
    for (int r = 0; r < DOWN; r++) l.x[r] = load_x(oy * DOWN - ABOVE + KEPT + r);
  };
  peak<dtype != QN_F32> most[HIGH][WINDOWS];
  const auto open_x = [&](peak<dtype != QN_F32> (&m)[WINDOWS], const words<C / E> &q, int y) {
    largest_of_line<dtype, of>(m, q, at.here && (unsigned)y < (unsigned)height, at);
  };
#pragma unroll
  for (int r = 0; r < KEPT; r++) open_x(most[DOWN + r], load_x(at.top * DOWN - ABOVE + r), at.top * DOWN - ABOVE + r);
  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], min(at.top + a, at.end - 1));
#pragma unroll 1
  for (int oy0 = at.top; oy0 < at.end; oy0 += AHEAD)
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      const int oy = oy0 + a, y0 = oy * DOWN - ABOVE;
      if (AHEAD > 1 && oy >= at.end) break;
#pragma unroll
      for (int r = 0; r < KEPT; r++)
#pragma unroll
        for (int w = 0; w < WINDOWS; w++) most[r][w] = most[r + DOWN][w];
#pragma unroll
      for (int r = 0; r < DOWN; r++) open_x(most[KEPT + r], ahead[a].x[r], y0 + KEPT + r);
      load(ahead[a], min(oy + AHEAD, at.end - 1));
      words<WINDOWS / E> y = {};
      several<index, WINDOWS> indices;
#pragma unroll
      for (int w = 0; w < WINDOWS; w++) {
        uint32_t bits;
        const uint32_t largest = largest_of_window<dtype, of>(most, w, &bits), order = E == 1 ? largest : largest >> 16,
                       sign = E == 1 ? 0x80000000u : 0x8000u;
        y.w[w / E] |= (order & sign ? order ^ sign : order ^ (sign * 2 - 1)) << (E == 2 ? w % 2 * 16 : 0);
        const int bit = __ffs(bits) - 1, r = E == 1 ? bit >> 3 : HIGH - 1 - (bit >> 3),
                  c = E == 1 ? bit & 7 : 7 - (bit & 7) - w * of::STEP;
        indices.v[w] = (index)(sizeof(index) == 1
                                 ? r * of::WIDE + c
                                 : ((int)z * height + y0 + r) * width + (int)at.column * C + w * of::STEP - of::BEFORE + c);
      }
      if (at.owns) {
        const int64_t to = in_y + oy * wide;
        *(words<WINDOWS / E> *)((char *)p.y + to * bytes) = y;
        *(several<index, WINDOWS> *)((index *)p.indices + to) = indices;
      }
    }
}

/* ---- 1-D rows ---------------------------------------------------------------------------------------------------- */

/* Gradient for windows of 3, stride 2, padding 1: a thread's two windows, and the next one, which begins at its last column. */
template <int dtype, class index> __global__ void __launch_bounds__(2 * THREADS) pool_line(const __grid_constant__ walk p)
{
  constexpr int E = dtype == QN_F32 ? 1 : 2;
  const uint32_t unit = blockIdx.x * (2 * THREADS) + threadIdx.x;
  if (unit >= p.count * p.by_lanes.by) return;
  uint32_t column;
  cuda_quotient(unit, p.by_lanes, &column);
  const bool right = column + 1 < p.by_lanes.by;
  const words<2 / E> dy = load_words<2 / E>((const char *)p.dy, (int64_t)unit * 2 * (4 / E));
  const index *const from = (const index *)p.indices + 2 * (int64_t)unit;
  index at[3] = { from[0], from[1], right ? from[2] : (index)-1 };
  if (sizeof(index) > 1)                  /* positions to tap numbers */
#pragma unroll
    for (int w = 0; w < 3; w++) at[w] -= (index)(column * C + 2 * w) - 1;
  const float v[3] = { open<dtype>(dy, 0), open<dtype>(dy, 1), right ? edge_load<dtype>(p.dy, 2 * (int64_t)unit + 2) : 0 };
  const float sum[C] = { at[0] == 1 ? v[0] : 0, (at[0] == 2 ? v[0] : 0) + (at[1] == 0 ? v[1] : 0), at[1] == 1 ? v[1] : 0,
                         (at[1] == 2 ? v[1] : 0) + (at[2] == 0 ? v[2] : 0) };
  store<dtype>(p.dx, unit * C, sum);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;

template <int dtype, int how> static kernel kernel_of(int window)
{
  constexpr int E = dtype == QN_F32 ? 1 : 2;
  if (window == 321) return (kernel)pool_indexed<dtype, how, geometry<3, 2, 1, 3, 2, 1>, how == BY_TAP ? 4 * E : 2>;
  if (window == 311) return (kernel)pool_indexed<dtype, how, geometry<3, 1, 1, 3, 1, 1>, how == BY_TAP ? 2 + 2 * E : 2>;
  if constexpr (how == BY_PLACE)
    if (window == 512) return (kernel)pool_indexed<dtype, how, geometry<5, 1, 2, 5, 1, 2>, 1>;
  return nullptr;
}
template <int dtype> static kernel kernel_of(int how, int window, bool line)
{
  if (line) return how == BY_TAP ? (kernel)pool_line<dtype, uint8_t> : (kernel)pool_line<dtype, int64_t>;
  return how == BY_TAP ? kernel_of<dtype, BY_TAP>(window) : kernel_of<dtype, BY_PLACE>(window);
}

static qn_status prepare_gradient(const qn_request *r, qn_prepared *out)
{
  walk_state s = {};
  s.y = -1;
  qn_status status = walk_fill(&s.p, &s.of, r, out);
  if (status != QN_OK) return status;
  walk *p = &s.p;
  const qn_value *dx = &r->value[s.of.dx];
  if (s.of.indices < 0) return qn_refuse(out, "maxima by indices", "indices", "some", "%s", "none");
  const int how = p->index_dtype == QN_U8 ? BY_TAP : BY_PLACE, window = square_of(p);
  const bool line = p->in[1] == 1 && p->out[1] == 1 && p->size[1] == 1 && p->before[1] == 0 && p->size[2] == 3 && p->step[2] == 2 &&
                    p->before[2] == 1 && p->dilation[2] == 1 && (how == BY_TAP || (how == BY_PLACE && p->by_depth.by == 1));
  s.kernel = dx->dtype == QN_F32    ? kernel_of<QN_F32>(how, window, line)
             : dx->dtype == QN_BF16 ? kernel_of<QN_BF16>(how, window, line)
                                    : kernel_of<QN_F16>(how, window, line);
  if (!s.kernel || (line && how == BY_PLACE && p->index_dtype != QN_I64))
    return qn_refuse(out, "small windows", "dx", "3x3 with stride 1 or 2", "%dx%d", p->size[1], p->size[2]);
  if (line) {
    p->by_lanes = cuda_divide_by(p->in[2] / C);
    s.threads = 2 * THREADS, s.blocks = (uint32_t)qn_ceil_div(p->count * (int64_t)p->by_lanes.by, s.threads);
    return cuda_keep(out, &s, sizeof s);
  }
  return walk_keep(&s, r, p->in[1], p->step[1], window == 512 ? RESIDENT : 0, out);
}

template <int dtype, class index> static kernel max_of(int window)
{
  return window == 321 ? (kernel)pool_indexed_max<dtype, index, geometry<3, 2, 1, 3, 2, 1>, 2>
       : window == 220 ? (kernel)pool_indexed_max<dtype, index, geometry<2, 2, 0, 2, 2, 0>, 2>
                       : nullptr;                           /* stride 1: pool_flat.cu */
}
template <int dtype> static kernel max_of(uint32_t index, int window)
{
  return index == QN_U8 ? max_of<dtype, uint8_t>(window) : index == QN_I64 ? max_of<dtype, int64_t>(window) : nullptr;
}

static qn_status prepare_max(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  walk_state s = {};
  s.of = { -1, qn_role(op, QN_ROLE_POOL_MAX_INDICES), qn_role(op, QN_ROLE_POOL_MAX_X), -1 }, s.y = qn_role(op, QN_ROLE_POOL_MAX_Y);
  walk *p = &s.p;
  if (s.of.indices < 0) return qn_refuse(out, "indices too", "indices", "some", "%s", "none");
  const qn_value *value[] = { &r->value[s.of.x], &r->value[s.y], &r->value[s.of.indices] }, *x = value[0];
  qn_status status = pool_wants_floats(x, "x", out);
  if (status) return status;
  for (int i = 0; i < 3; i++)
    if (!qn_is_packed(value[i]) || value[i]->align < 16)
      return qn_refuse(out, "packed planes, aligned to 16 bytes", "x", "nchw", "%s", "other strides");
  if (!pool_fill(p, op, x, value[1])) return qn_refuse(out, "extents below 2^29, planes below 2^31", "x", "", "%s", "more");
  p->by_depth = cuda_divide_by(p->in[0]);
  if ((double)p->in[0] * p->in[1] * p->in[2] > INT32_MAX || !pool_fold(p, false))
    return qn_refuse(out, "windows within a plane", "x", "depth 1", "depth %d", p->size[0]);
  const int window = square_of(p);
  const uint32_t index = value[2]->dtype;
  s.kernel = x->dtype == QN_F32    ? max_of<QN_F32>(index, window)
             : x->dtype == QN_BF16 ? max_of<QN_BF16>(index, window)
                                   : max_of<QN_F16>(index, window);
  if (!s.kernel)
    return qn_refuse(out, "small windows, indices u8 or i64", "x", "3x3 or 2x2 with stride 2", "%dx%d", p->size[1], p->size[2]);
  if (p->in[2] % C || p->out[2] != p->in[2] / p->step[2])
    return qn_refuse(out, "rows of 4 columns, each with its windows", "x", "56", "%d", p->in[2]);
  const double planes = (double)qn_elements(x) / ((double)p->in[1] * p->in[2]);
  if (planes > INT32_MAX) return qn_refuse(out, "fewer than 2^31 planes", "x", "", "%s", "more");
  p->count = (uint32_t)planes;
  return walk_keep(&s, r, p->out[1], 1, 0, out);
}

#define ROW(op, prepare) { "indexed", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                           nullptr, nullptr, prepare, nullptr, walk_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX, prepare_max), ROW(QN_OP_POOL_MAX_BACKWARD, prepare_gradient) };
CUDA_ENGINES(pool_indexed) = { row, sizeof row / sizeof *row };
