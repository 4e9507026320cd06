/* pool_scatter.cu -- gradients of max pooling by 3 by 3, of f16, bf16 and f32 of channels last (NHWC): a lane has a word of channels of a strip of
 * columns of dx, and goes down a band of rows with them and the windows over them in registers.
 *
 *   dx[x] = the sum of dy over the windows whose maximum came from x: by its indices, or by x once more
 *
 * Each window is read, and its maximum found, once for a strip, and a line's maxima once for all the windows that have it. */
#include "engines.h"
#include "pool_lanes.cuh"
#include "pool_peak.cuh"

enum { SIZE = 3, BEFORE = 1, WARPS = 4 };
enum { PITCH = 8 };                       /* of bits, from row to row of a window */

/* The largest so far and its place. Of 16 bits both are in one word, where the earlier of equals has the larger low half. */
template <bool halves> struct peak {
  uint32_t order, where;

  __device__ __forceinline__ void join(const peak &later)
  {
    if (halves) order = max(order, later.order);
    else if (later.order > order) *this = later;
  }
  __device__ __forceinline__ uint32_t place() const { return halves ? ~order & 0xffffu : where; }
};

/* COLUMNS of a strip; BLOCKS of a multiprocessor. */
template <int dtype, int how, int STEP, int COLUMNS, int BLOCKS> __global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_scatter(const __grid_constant__ lanes p)
{
  enum { L = per_word<dtype>, bytes = 4 / L, INDEX = how == BY_PLACE ? 8 : 1, KEPT = SIZE - STEP, FIRST = (BEFORE - SIZE + 1) / STEP, WINDOWS = (COLUMNS - 1 + BEFORE) / STEP - FIRST + 1,
         ACROSS = (WINDOWS - 1) * STEP + SIZE, X0 = FIRST * STEP - BEFORE };
  strip s;
  if (!strip_of(s, p, blockIdx.x * WARPS + threadIdx.x / 32, COLUMNS, L)) return;
  const int oy_begin = max((s.top + BEFORE - SIZE + STEP) / STEP, 0), oy_end = (s.end - 1 + BEFORE) / STEP + 1, ox = s.x0 / STEP + FIRST;      /* dx may go on below the last window */

  /* in bytes, of all of a tensor */
  const uint32_t dy = (uint32_t)(s.n * p.y_stride[0] + s.c) * bytes, index = (uint32_t)(s.n * p.index_stride[0] + s.c) * INDEX, x = (uint32_t)(s.n * p.x_stride[0] + s.c) * bytes;
  const uint32_t dx = (uint32_t)(s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  uint32_t x_at[ACROSS], dy_at[WINDOWS], index_at[WINDOWS];
#pragma unroll
  for (int i = 0; i < ACROSS; i++) x_at[i] = min(max(s.x0 + X0 + i, 0), p.in[2] - 1) * p.of_x.x * bytes;
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) dy_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_dy.x * bytes, index_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_index.x * INDEX;

  /* what is outside is as its neighbour inside, of the same place */
  struct line {
    uint32_t dy[WINDOWS], tap[how == BY_TAP ? WINDOWS : 1], x[how == BY_X ? STEP : 1][ACROSS];
    alignas(16) int64_t place[how == BY_PLACE ? WINDOWS : 1][L];
  };
  const auto column_of = [&](int i) { return min(max(s.x0 + X0 + i, 0), p.in[2] - 1); };
  const auto row_of = [&](int y) { return min(max(y, 0), p.in[1] - 1); };
  const auto load_x = [&](uint32_t (&v)[ACROSS], int y) {
    const uint32_t row = x + row_of(y) * p.of_x.y * bytes;
#pragma unroll
    for (int i = 0; i < ACROSS; i++) v[i] = *(const uint32_t *)((const char *)p.x + (row + x_at[i]));
  };
  const auto load = [&](line &l, int oy) {
    const uint32_t o = min(oy, min(oy_end, p.out[1]) - 1), row = dy + o * p.of_dy.y * bytes, indices = index + o * p.of_index.y * INDEX;
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      l.dy[k] = *(const uint32_t *)((const char *)p.dy + (row + dy_at[k]));
      const char *const from = (const char *)p.indices + (indices + index_at[k]);
      if (how == BY_TAP) l.tap[k] = L == 2 ? *(const uint16_t *)from : *(const uint8_t *)from;
      if constexpr (how == BY_PLACE) {
        if (L == 2) *(longlong2 *)l.place[k] = *(const longlong2 *)from;
        else l.place[k][0] = *(const int64_t *)from;
      }
    }
    if constexpr (how == BY_X)
#pragma unroll
      for (int r = 0; r < STEP; r++) load_x(l.x[r], oy * STEP - BEFORE + KEPT + r);
  };

  /* of a row of x, what is largest for each window */
  typedef peak<L == 2> peak;
  const auto largest = [&](peak (&m)[WINDOWS][L], const uint32_t (&v)[ACROSS], int y) {
    const int row = (row_of(y) - (oy_begin * STEP - BEFORE)) * PITCH;
    peak e[ACROSS][L];
#pragma unroll
    for (int a = 0; a < ACROSS; a++) {
      const uint32_t order = order_of<dtype>(v[a]), at = row + column_of(a) - s.x0 - X0;
      e[a][0].order = L == 2 ? order << 16 | (0xffffu - at) : order, e[a][0].where = at;
      if (L == 2) e[a][L - 1].order = (order & 0xffff0000u) | (0xffffu - at);
    }
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
#pragma unroll
      for (int i = 0; i < L; i++) {
        m[k][i] = e[k * STEP][i];
#pragma unroll
        for (int a = 1; a < SIZE; a++) m[k][i].join(e[k * STEP + a][i]);
      }
  };
  peak most[how == BY_X ? SIZE : 1][WINDOWS][L];           /* of each line of the windows */
  if constexpr (how == BY_X)
#pragma unroll
    for (int r = 0; r < KEPT; r++) {
      uint32_t v[ACROSS];
      load_x(v, oy_begin * STEP - BEFORE + r);
      largest(most[STEP + r], v, oy_begin * STEP - BEFORE + r);
    }

  float sum[SIZE][COLUMNS][L] = {};
  line now;
  load(now, oy_begin);
#pragma unroll 1
  for (int oy = oy_begin; oy < oy_end; oy++) {
    line next;
    load(next, oy + 1);
    const int y0 = oy * STEP - BEFORE;
    if constexpr (how == BY_X) {
#pragma unroll
      for (int r = 0; r < KEPT; r++)
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
#pragma unroll
          for (int i = 0; i < L; i++) most[r][k][i] = most[r + STEP][k][i];
#pragma unroll
      for (int r = 0; r < STEP; r++) largest(most[KEPT + r], now.x[r], y0 + KEPT + r);
    }
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      const bool there = (unsigned)(ox + k) < (unsigned)p.out[2] && oy < p.out[1];
#pragma unroll
      for (int i = 0; i < L; i++) {
        const float v = there ? channel<dtype>(now.dy[k], i) : 0;
        uint32_t bits;
        if constexpr (how == BY_X) {
          peak found = most[0][k][i];
#pragma unroll
          for (int r = 1; r < SIZE; r++) found.join(most[r][k][i]);
          bits = 1u << (found.place() - ((oy - oy_begin) * STEP * PITCH + k * STEP) & 31);
        } else {
          const uint32_t tap = how == BY_TAP ? (i ? now.tap[k] >> 8 : now.tap[k] & 255) : tap_of<SIZE>(place_among(now.place[how == BY_PLACE ? k : 0][i]), y0 * p.in[2] + s.x0 + X0 + k * STEP, p.in[2]);
          bits = tap < SIZE * SIZE ? 1u << tap : 0;
        }
#pragma unroll
        for (int r = 0; r < SIZE; r++)
#pragma unroll
          for (int c = 0; c < SIZE; c++) {
            const int column = X0 + k * STEP + c;
            if (column >= 0 && column < COLUMNS) add_at_bit(sum[r][column < 0 ? 0 : column % COLUMNS][i], bits, r * (how == BY_X ? PITCH : SIZE) + c, v);
          }
      }
    }
#pragma unroll
    for (int r = 0; r < STEP; r++) {    /* rows that no later window covers */
      const int y = y0 + r;
      if (y < s.top || y >= s.end) continue;
      const uint32_t to = dx + y * p.of_dx.y * bytes;
#pragma unroll
      for (int a = 0; a < COLUMNS; a++)
        if (s.x0 + a < p.in[2]) *(uint32_t *)((char *)p.dx + (to + a * p.of_dx.x * bytes)) = word_of<dtype>(sum[r][a]);
    }
#pragma unroll
    for (int r = 0; r < SIZE; r++)
#pragma unroll
      for (int a = 0; a < COLUMNS; a++)
#pragma unroll
        for (int i = 0; i < L; i++) sum[r][a][i] = r < KEPT ? sum[r < KEPT ? r + STEP : r][a][i] : 0;
    now = next;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { lanes p; gradient_roles of; kernel kernel; uint32_t blocks; };

/* A kernel and the columns of its strips. */
struct form { kernel kernel; int columns; };
template <int dtype> static form form_of(int how, int window)
{
  constexpr bool half = dtype != QN_F32;
  if (how == BY_TAP && window == 311) return { (kernel)pool_scatter<dtype, BY_TAP, 1, 4, 7>, 4 };
  if constexpr (half)                     /* f32 by taps is faster in cells */
    if (how == BY_TAP && window == 321) return { (kernel)pool_scatter<dtype, BY_TAP, 2, 4, 7>, 4 };
  if (window != 321 || how == BY_TAP) return {};
  if (how == BY_PLACE) return { (kernel)pool_scatter<dtype, BY_PLACE, 2, 4, 5>, 4 };
  return { (kernel)pool_scatter<dtype, BY_X, 2, half ? 4 : 6, half ? 5 : 4>, half ? 4 : 6 };
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  qn_status status = gradient_fill(&s.p, &s.of, r, out);
  if (status != QN_OK) return status;
  lanes *p = &s.p;
  const qn_value *dx = &r->value[s.of.dx];
  if (gradient_channels(p, &s.of, r) == 1) return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "others");
  if (!p->flat) return qn_refuse(out, "windows within a plane", "dx", "1 deep", "%d", p->size[0]);
  if (p->in[2] < p->size[2]) return qn_refuse(out, "rows as wide as a window", "dx", "3", "%d", p->in[2]);
  if (s.of.indices >= 0 && p->index_dtype == QN_I32) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  const int window = square_of(p), how = s.of.x >= 0 ? BY_X : p->index_dtype == QN_U8 ? BY_TAP : BY_PLACE;
  const int64_t image = qn_max_i64(qn_max_i64(p->x_stride[0], p->dx_stride[0]) * 4, qn_max_i64(p->y_stride[0] * 4, p->index_stride[0] * 8));
  if ((double)p->n * (double)image >= 4294967296.0) return qn_refuse(out, "tensors of less than 4 GiB", "dx", "", "%s", "more");
  const form form = dx->dtype == QN_F32 ? form_of<QN_F32>(how, window) : dx->dtype == QN_BF16 ? form_of<QN_BF16>(how, window) : form_of<QN_F16>(how, window);
  if (!form.kernel) return qn_refuse(out, "squares of 3 by 3 from -1 on", "dx", "every 2; by u8 of f32 every 1", "%dx%d", p->size[1], p->size[2]);
  if (!lanes_choose(p, r, form.columns, dx->dtype)) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  s.kernel = form.kernel, s.blocks = (uint32_t)qn_ceil_div(p->warps, WARPS);
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  lanes p = st->p;
  p.dy = launch->ptr[st->of.dy];
  p.dx = launch->ptr[st->of.dx];
  p.x = st->of.x >= 0 ? launch->ptr[st->of.x] : nullptr;
  p.indices = st->of.indices >= 0 ? launch->ptr[st->of.indices] : nullptr;
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, st->blocks, WARPS * 32, arguments, 0, (cudaStream_t)launch->stream), "pool_scatter");
}

static const qn_engine row[] = {
  { "scatter", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
const qn_engine_list cuda_pool_scatter_list = { row, sizeof row / sizeof *row };
