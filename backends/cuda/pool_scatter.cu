/* pool_scatter.cu -- gradients of max pooling by 3 by 3, of f16, bf16 and f32 of channels last (NHWC): a lane has a word of channels, and goes
 * down a band of a strip of columns of dx window by window, so that each window is read, and its maximum found, once.
 *
 *   dx[x] = the sum of dy over the windows whose maximum came from x: by its indices, or by x once more
 *
 * A lane adds what a window gives to the place of its maximum, in shared memory that no other lane sees: a ring of rows, from where those
 * leave that no later window covers. */
#include "pool_falls.h"
#include "pool_lanes.cuh"

/* ---- maxima by x ------------------------------------------------------------------------------------------------- */

/* The largest so far and its place: the first of equals, the first NaN. Of 16 bits both are in one word, where the earlier of equals has the
 * larger low half; of f32, as integers in the order of the floats. */
template <bool halves> struct peak {
  uint32_t order, where;

  __device__ __forceinline__ peak() : order(0), where(0) {}
  __device__ __forceinline__ peak(uint32_t o, uint32_t at) : order(o), where(at) {}
  __device__ __forceinline__ void join(const peak &later)
  {
    if (halves) order = max(order, later.order);
    else if (later.order > order) *this = later;
  }
  __device__ __forceinline__ bool none() const { return halves ? (order & 0xffffu) == 0 : order == 0; }
  __device__ __forceinline__ uint32_t place() const { return halves ? ~order : where; }
};

/* The peaks that the channels of a word at place `at` are, -0 as 0, all NaN alike and above all; outside: none. */
template <int dtype> __device__ __forceinline__ void peaks_of(peak<dtype != QN_F32> (&e)[per_word<dtype>], uint32_t w, int at, bool inside)
{
  if constexpr (dtype == QN_F32) {
    const float v = __uint_as_float(w) + 0.f;
    const uint32_t b = v == v ? __float_as_uint(v) : 0x7fffffffu;
    e[0] = peak<false>(inside ? b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u) : 0, at);
  } else {
    uint32_t v;                           /* a sum's NaN is 7fff */
    if constexpr (dtype == QN_BF16) {
      const __nv_bfloat162 sum = __hadd2(*(const __nv_bfloat162 *)&w, __floats2bfloat162_rn(0, 0));
      v = *(const uint32_t *)&sum;
    } else {
      const __half2 sum = __hadd2(*(const __half2 *)&w, __floats2half2_rn(0, 0));
      v = *(const uint32_t *)&sum;
    }
    const uint32_t order = v ^ ((v >> 15 & 0x10001u) * 0xffffu | 0x80008000u), low = inside ? 0xffffu - (uint32_t)at : 0;
    e[0] = peak<true>(inside ? order << 16 | low : 0, 0), e[1] = peak<true>(inside ? (order & 0xffff0000u) | low : 0, 0);
  }
}

/* ---- the kernel -------------------------------------------------------------------------------------------------- */

/* Rows that windows still add to, and one; places of one in memory, of which two are of no column. */
enum { RING = 4, PITCH = 8, PLACES = RING * PITCH, COLUMNS = PITCH - 2 };

template <int dtype> constexpr int warps_of = 4 / per_word<dtype>;       /* of a block: they share nothing but 16 KB */

template <int dtype, int how, int STEP> __global__ void __launch_bounds__(warps_of<dtype> * 32) pool_scatter(const __grid_constant__ lanes p)
{
  enum { WARPS = warps_of<dtype>, L = per_word<dtype>, SIZE = 3, BEFORE = 1, FIRST = (BEFORE - SIZE + 1) / STEP, WINDOWS = (COLUMNS - 1 + BEFORE) / STEP - FIRST + 1,
         ACROSS = (WINDOWS - 1) * STEP + SIZE, X0 = FIRST * STEP - BEFORE, ROWS = how == BY_X ? STEP : 1 };
  __shared__ float memory[WARPS * L * PLACES * 32];
  strip s;
  if (!strip_of(s, p, blockIdx.x * WARPS + threadIdx.x / 32, COLUMNS, L)) return;
  float *const ring = memory + threadIdx.x / 32 * (L * PLACES * 32) + threadIdx.x % 32;
  for (int i = 0; i < L * PLACES; i++) ring[i * 32] = 0;

  const int oy_begin = max((s.top + BEFORE - SIZE + STEP) / STEP, 0), oy_end = min((s.end - 1 + BEFORE) / STEP + 1, p.out[1]), ox = s.x0 / STEP + FIRST;
  const int y_base = oy_begin * STEP - BEFORE - RING;      /* of row 0 of the ring */
  const uint32_t *const dy = (const uint32_t *)p.dy + ((int64_t)s.n * p.y_stride[0] + s.c + (int64_t)ox * p.of_dy.x) / L;
  const char *const index = (const char *)p.indices + ((int64_t)s.n * p.index_stride[0] + s.c + (int64_t)ox * p.of_index.x) * (how == BY_PLACE ? 8 : 1);
  const uint32_t *const x = (const uint32_t *)p.x + ((int64_t)s.n * p.x_stride[0] + s.c + (int64_t)(s.x0 + X0) * p.of_x.x) / L;
  uint32_t *const dx = (uint32_t *)p.dx + ((int64_t)s.n * p.dx_stride[0] + s.c + (int64_t)s.x0 * p.of_dx.x) / L;
  const int dy_row = p.of_dy.y / L, dy_step = p.of_dy.x / L, x_row = p.of_x.y / L, x_step = p.of_x.x / L, dx_row = p.of_dx.y / L, dx_step = p.of_dx.x / L;

  struct lines {
    uint32_t dy[WINDOWS], x[how == BY_X ? ROWS : 1][ACROSS];
    alignas(16) int64_t place[how == BY_PLACE ? WINDOWS : 1][L];
    uint32_t tap[WINDOWS];
  };
  const auto load_x = [&](uint32_t (&v)[ACROSS], int y) {
    const bool row = (unsigned)y < (unsigned)p.in[1];
#pragma unroll
    for (int i = 0; i < ACROSS; i++) {
      v[i] = 0;
      if (row && (unsigned)(s.x0 + X0 + i) < (unsigned)p.in[2]) v[i] = x[y * x_row + i * x_step];
    }
  };
  const auto load = [&](lines &l, int oy) {
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      l.dy[k] = 0, l.tap[k] = 0;
      if constexpr (how == BY_PLACE)
#pragma unroll
        for (int i = 0; i < L; i++) l.place[k][i] = -1;
      if ((unsigned)(ox + k) >= (unsigned)p.out[2] || oy >= oy_end) continue;
      l.dy[k] = dy[oy * dy_row + k * dy_step];
      const int at = oy * p.of_index.y + k * p.of_index.x;
      if (how == BY_TAP) l.tap[k] = L == 2 ? *(const uint16_t *)(index + at) : *(const uint8_t *)(index + at);
      if constexpr (how == BY_PLACE) {
        if (L == 2) *(longlong2 *)l.place[k] = *(const longlong2 *)(index + (int64_t)at * 8);
        else l.place[k][0] = ((const int64_t *)index)[at];
      }
    }
    if constexpr (how == BY_X)
#pragma unroll
      for (int r = 0; r < ROWS; r++) load_x(l.x[r], oy * STEP - BEFORE + SIZE - STEP + r);
  };

  /* of a row of x, what is largest for each window */
  typedef peak<dtype != QN_F32> peak;
  const auto largest = [&](peak (&m)[WINDOWS][L], const uint32_t (&v)[ACROSS], int y) {
    const int at = (y - y_base) * PITCH + X0;
    const bool row = (unsigned)y < (unsigned)p.in[1];
    peak e[ACROSS][L];
#pragma unroll
    for (int a = 0; a < ACROSS; a++) peaks_of<dtype>(e[a], v[a], at + a, row && (unsigned)(s.x0 + X0 + a) < (unsigned)p.in[2]);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
#pragma unroll
      for (int i = 0; i < L; i++) {
        m[k][i] = e[k * STEP][i];
#pragma unroll
        for (int a = 1; a < SIZE; a++) m[k][i].join(e[k * STEP + a][i]);
      }
  };
  peak before[how == BY_X ? SIZE - STEP : 1][WINDOWS][L];  /* the lines of a window that the one above it has as well */
  if constexpr (how == BY_X)
#pragma unroll
    for (int r = 0; r < SIZE - STEP; r++) {
      uint32_t v[ACROSS];
      load_x(v, oy_begin * STEP - BEFORE + r);
      largest(before[r], v, oy_begin * STEP - BEFORE + r);
    }

  lines now;
  load(now, oy_begin);
  const int oy_last = (s.end - 1 + BEFORE) / STEP + 1;    /* dx may go on below the last window */
#pragma unroll 1
  for (int oy = oy_begin; oy < oy_last; oy++) {
    lines next;
    load(next, oy + 1);
    const int y0 = oy * STEP - BEFORE, at = (y0 - y_base) * PITCH + X0;
    peak found[how == BY_X ? WINDOWS : 1][L];
    if constexpr (how == BY_X) {
      peak rows[ROWS][WINDOWS][L];
#pragma unroll
      for (int r = 0; r < ROWS; r++) largest(rows[r], now.x[r], y0 + SIZE - STEP + r);
#pragma unroll
      for (int k = 0; k < WINDOWS; k++)
#pragma unroll
        for (int i = 0; i < L; i++) {
          found[k][i] = before[0][k][i];
#pragma unroll
          for (int r = 1; r < SIZE; r++) found[k][i].join(r < SIZE - STEP ? before[r][k][i] : rows[r - (SIZE - STEP)][k][i]);
#pragma unroll
          for (int r = 0; r < SIZE - STEP; r++) before[r][k][i] = r + STEP < SIZE - STEP ? before[r + STEP][k][i] : rows[r + STEP - (SIZE - STEP)][k][i];
        }
    }
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      float *at_place[L], sum[L];
#pragma unroll
      for (int i = 0; i < L; i++) {
        float v = channel<dtype>(now.dy[k], i);
        uint32_t place;
        if constexpr (how == BY_X) {
          place = found[k][i].place();
          if (found[k][i].none()) v = 0;
        } else if constexpr (how == BY_TAP) {
          const uint32_t tap = i ? now.tap[k] >> 8 : now.tap[k] & 255;
          place = at + k * STEP + tap + (tap * 11 >> 5) * (PITCH - SIZE);
          if (tap >= SIZE * SIZE) v = 0;
        } else {
          const uint32_t tap = tap_of<SIZE>(place_among(now.place[k][i]), y0 * p.in[2] + s.x0 + X0 + k * STEP, p.in[2]);
          place = at + k * STEP + tap + (tap * 11 >> 5) * (PITCH - SIZE);
          if (tap >= SIZE * SIZE) v = 0;
        }
        at_place[i] = ring + (i * PLACES + (place & PLACES - 1)) * 32, sum[i] = *at_place[i] + v;
      }
#pragma unroll
      for (int i = 0; i < L; i++) *at_place[i] = sum[i];
    }
#pragma unroll
    for (int r = 0; r < STEP; r++) {       /* rows that no later window covers */
      const int y = y0 + r, row = ((y - y_base) * PITCH & PLACES - 1);
      const bool here = y >= s.top && y < s.end;
#pragma unroll
      for (int a = 0; a < COLUMNS; a++) {
        float v[L];
#pragma unroll
        for (int i = 0; i < L; i++) {
          v[i] = ring[(i * PLACES + row + a) * 32];
          ring[(i * PLACES + row + a) * 32] = 0;
        }
        if (here && s.x0 + a < p.in[2]) dx[y * dx_row + a * dx_step] = word_of<dtype>(v);
      }
    }
    now = next;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { lanes p; gradient_roles of; kernel kernel; uint32_t blocks, threads; };

template <int dtype> static kernel kernel_of(int how, int window)
{
  if (how == BY_TAP && window == 311) return (kernel)pool_scatter<dtype, BY_TAP, 1>;
  if constexpr (dtype != QN_F32)          /* f32 by taps is faster in cells */
    if (how == BY_TAP && window == 321) return (kernel)pool_scatter<dtype, BY_TAP, 2>;
  return window != 321 || how == BY_TAP ? nullptr : how == BY_PLACE ? (kernel)pool_scatter<dtype, BY_PLACE, 2> : (kernel)pool_scatter<dtype, BY_X, 2>;
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
  s.kernel = dx->dtype == QN_F32 ? kernel_of<QN_F32>(how, window) : dx->dtype == QN_BF16 ? kernel_of<QN_BF16>(how, window) : kernel_of<QN_F16>(how, window);
  if (!s.kernel) return qn_refuse(out, "squares of 3 by 3 from -1 on", "dx", "every 2; by u8 of f32 every 1", "%dx%d", p->size[1], p->size[2]);
  if (!lanes_choose(p, r, COLUMNS, dx->dtype)) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  const uint32_t warps = dx->dtype == QN_F32 ? warps_of<QN_F32> : warps_of<QN_BF16>;
  s.blocks = (uint32_t)qn_ceil_div(p->warps, warps), s.threads = 32 * warps;
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
  return cuda_check(cudaLaunchKernel(st->kernel, st->blocks, st->threads, arguments, 0, (cudaStream_t)launch->stream), "pool_scatter");
}

static const qn_engine row[] = {
  CUDA_POOL_FALLS(QN_OP_POOL_MAX_BACKWARD, cuda_pool_falls_prepare),
  { "scatter", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
const qn_engine_list cuda_pool_scatter_list = { row, sizeof row / sizeof *row };
