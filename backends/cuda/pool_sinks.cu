/* pool_sinks.cu -- gradients of max pooling by x once more, of f16, bf16 and f32 of channels last (NHWC), by windows of 3 by 3 every 2 or every 1 from -1
 * on: a lane has a word of channels of a strip of columns of dx, and goes down a band of rows with them and the windows over them in registers.
 *
 *   dx[x] = the sum of dy over the windows whose maximum came from x
 *
 * In two steps, as in pool_slides.cu: a window gives its dy to one of its three lines, a line's part of a window what it was given to one of its places. */
#include "engines.h"
#include "pool_lanes.cuh"
#include "pool_peak.cuh"

enum { SIZE = 3 };

template <int dtype> __device__ __forceinline__ uint32_t larger_word(uint32_t a, uint32_t b)
{
  if constexpr (dtype == QN_F32) return __float_as_uint(larger(__uint_as_float(a), __uint_as_float(b)));
  else return larger_pair<dtype>(a, b);
}

/* v, of both channels of a word or the one. */
template <int dtype> __device__ __forceinline__ void give_word(float (&a)[per_word<dtype>], float (&b)[per_word<dtype>], float (&c)[per_word<dtype>], uint32_t x, uint32_t y,
                                                               uint32_t largest, const float (&v)[per_word<dtype>])
{
  give<dtype>(a[0], b[0], c[0], x, y, largest, v[0]);
  if constexpr (dtype != QN_F32) give<dtype, 1>(a[1], b[1], c[1], x, y, largest, v[1]);
}

/* COLUMNS of a strip; BLOCKS of a multiprocessor. */
template <int dtype, int STEP, int COLUMNS, int BLOCKS> __global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_sinks(const __grid_constant__ lanes p)
{
  enum { L = per_word<dtype>, bytes = 4 / L, KEPT = SIZE - STEP, FIRST = (2 - SIZE) / STEP, WINDOWS = COLUMNS / STEP - FIRST + 1, ACROSS = (WINDOWS - 1) * STEP + SIZE,
         BEFORE = 1 - FIRST * STEP };    /* x begins so many columns before the strip */
  strip s;
  if (!strip_of(s, p, __shfl_sync(~0u, blockIdx.x * WARPS + threadIdx.x / 32, 0), COLUMNS, L)) return;    /* compilers see so that it is the warp's */
  const int oy_begin = max((s.top + 1 - SIZE + STEP) / STEP, 0), oy_end = s.end / STEP + 1, ox = s.x0 / STEP + FIRST, columns = min(COLUMNS, p.in[2] - s.x0);

  /* in bytes, of all of a tensor; what is outside is as its neighbour inside */
  const uint32_t dy = (uint32_t)(s.n * p.y_stride[0] + s.c) * bytes, x = (uint32_t)(s.n * p.x_stride[0] + s.c) * bytes, dx = (uint32_t)(s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  uint32_t x_at[ACROSS], dy_at[WINDOWS], there[WINDOWS];   /* there: ~0, or 0 of a window that is not */
#pragma unroll
  for (int i = 0; i < ACROSS; i++) x_at[i] = min(max(s.x0 - BEFORE + i, 0), p.in[2] - 1) * p.of_x.x * bytes;
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) dy_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_dy.x * bytes, there[k] = (unsigned)(ox + k) < (unsigned)p.out[2] ? ~0u : 0;

  struct line { uint32_t dy[WINDOWS], x[STEP][ACROSS]; };
  const auto load_x = [&](uint32_t (&v)[ACROSS], int y) {
    const uint32_t row = x + min(max(y, 0), min(s.end + 1, p.in[1] - 1)) * p.of_x.y * bytes;
#pragma unroll
    for (int i = 0; i < ACROSS; i++) v[i] = *(const uint32_t *)((const char *)p.x + (row + x_at[i]));
  };
  const auto load = [&](line &l, int oy) {
    const uint32_t row = dy + min(oy, min(oy_end, p.out[1]) - 1) * p.of_dy.y * bytes;
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) l.dy[k] = *(const uint32_t *)((const char *)p.dy + (row + dy_at[k]));
#pragma unroll
    for (int r = 0; r < STEP; r++) load_x(l.x[r], oy * STEP - 1 + KEPT + r);
  };
  /* of three lines: x, what is largest for each window, what that is given */
  uint32_t number[SIZE][ACROSS], most[SIZE][WINDOWS];
  float given[SIZE][WINDOWS][L];
  const auto open_x = [&](int r, const uint32_t (&v)[ACROSS]) {
#pragma unroll
    for (int i = 0; i < ACROSS; i++) number[r][i] = plain<dtype>(v[i]);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) most[r][k] = larger_word<dtype>(larger_word<dtype>(number[r][k * STEP], number[r][k * STEP + 1]), number[r][k * STEP + 2]);
  };
#pragma unroll
  for (int r = 0; r < KEPT; r++) {
    uint32_t v[ACROSS];
    load_x(v, oy_begin * STEP - 1 + r);
    open_x(r, v);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
#pragma unroll
      for (int i = 0; i < L; i++) given[r][k][i] = 0;
  }

  line next;
  load(next, oy_begin);
#pragma unroll 1
  for (int oy = oy_begin; oy < oy_end; oy++) {
    const int y0 = oy * STEP - 1;
#pragma unroll
    for (int r = 0; r < STEP; r++) open_x(KEPT + r, next.x[r]);
    uint32_t now[WINDOWS];
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      now[k] = next.dy[k] & there[k];
#pragma unroll
      for (int r = KEPT; r < SIZE; r++)
#pragma unroll
        for (int i = 0; i < L; i++) given[r][k][i] = 0;
    }
    load(next, oy + 1);
    if (oy < p.out[1])
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) {
        float v[L];
#pragma unroll
        for (int i = 0; i < L; i++) v[i] = channel<dtype>(now[k], i);
        give_word<dtype>(given[0][k], given[1][k], given[2][k], most[0][k], most[1][k], larger_word<dtype>(larger_word<dtype>(most[0][k], most[1][k]), most[2][k]), v);
      }
    if (y0 < 0)
#pragma unroll
      for (int k = 0; k < WINDOWS; k++)
#pragma unroll
        for (int i = 0; i < L; i++) given[1][k][i] += given[0][k][i];
#pragma unroll
    for (int r = 0; r < STEP; r++) {      /* lines that no later window covers */
      const int y = y0 + r;
      if (y < s.top || y >= s.end) continue;
      float sum[ACROSS][L] = {};
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) give_word<dtype>(sum[k * STEP], sum[k * STEP + 1], sum[k * STEP + 2], number[r][k * STEP], number[r][k * STEP + 1], most[r][k], given[r][k]);
      if (s.x0 == 0)
#pragma unroll
        for (int i = 0; i < L; i++) sum[BEFORE][i] += sum[BEFORE - 1][i];
      const uint32_t to = dx + y * p.of_dx.y * bytes;
      if (columns == COLUMNS) {
#pragma unroll
        for (int a = 0; a < COLUMNS; a++) *(uint32_t *)((char *)p.dx + (to + a * p.of_dx.x * bytes)) = word_of<dtype>(sum[BEFORE + a]);
      } else {
#pragma unroll
        for (int a = 0; a < COLUMNS - 1; a++)
          if (a < columns) *(uint32_t *)((char *)p.dx + (to + a * p.of_dx.x * bytes)) = word_of<dtype>(sum[BEFORE + a]);
      }
    }
#pragma unroll
    for (int r = 0; r < KEPT; r++) {
#pragma unroll
      for (int i = 0; i < ACROSS; i++) number[r][i] = number[r + STEP][i];
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) {
        most[r][k] = most[r + STEP][k];
#pragma unroll
        for (int i = 0; i < L; i++) given[r][k][i] = given[r + STEP][k][i];
      }
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* A kernel and the columns of its strips. */
struct form { const void *kernel; int columns; };
template <int dtype> static form form_of(int window)
{
  constexpr bool half = dtype != QN_F32;
  if (window == 321) return { (const void *)pool_sinks<dtype, 2, half ? 4 : 8, half ? 5 : 3>, half ? 4 : 8 };
  if (window == 311) return { (const void *)pool_sinks<dtype, 1, 4, half ? 4 : 5>, 4 };
  return {};
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  lanes_state s = {};
  qn_status status = lanes_fill(&s, r, out);
  if (status != QN_OK) return status;
  if (s.of.x < 0) return qn_refuse(out, "maxima by x", "x", "some", "%s", "none");
  const uint32_t dtype = r->value[s.of.dx].dtype;
  const int window = square_of(&s.p);
  const form form = dtype == QN_F32 ? form_of<QN_F32>(window) : dtype == QN_BF16 ? form_of<QN_BF16>(window) : form_of<QN_F16>(window);
  if (!form.kernel) return qn_refuse(out, "windows of 3 by 3 from -1 on", "dx", "every 2 or every 1", "%dx%d", s.p.size[1], s.p.size[2]);
  s.kernel = form.kernel;
  return lanes_keep(&s, r, form.columns, dtype == QN_F32 ? 1 : 2, out);
}

static const qn_engine row[] = {
  { "sinks", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, lanes_run, cuda_release },
};
const qn_engine_list cuda_pool_sinks_list = { row, sizeof row / sizeof *row };
