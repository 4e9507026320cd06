/* pool_recompute.cu -- gradient of max pooling recomputed from x, channels last (NHWC), f16, bf16 and f32; 3x3 windows, stride 1 or
 * 2, padding 1.
 *
 *   dx[x] = the sum of dy over the windows whose maximum came from x
 *
 * A lane owns a 32-bit word of channels of a strip of dx columns and walks down a band of rows with everything in registers.
 * Separable, as in pool_recompute_planes.cu: a window first passes its dy to the one of its three rows that holds the maximum; then each
 * row's 3-wide segment, shared by all windows at that column, passes what it received to one of its three places. */
#include "engines.h"
#include "pool_lanes.cuh"
#include "pool_peak.cuh"
#include "kit/sm80.cuh"

enum { SIZE = 3 };

template <int dtype> __device__ __forceinline__ uint32_t larger_word(uint32_t a, uint32_t b)
{
  if constexpr (dtype == QN_F32) return __float_as_uint(larger(__uint_as_float(a), __uint_as_float(b)));
  else return larger_pair<dtype>(a, b);
}

/* give() for both channels of a word, or the one. */
template <int dtype, int begun>
__device__ __forceinline__ void give_word(float (&a)[per_word<dtype>], float (&b)[per_word<dtype>], float (&c)[per_word<dtype>], uint32_t x,
                                          uint32_t y, uint32_t largest, const float (&v)[per_word<dtype>])
{
  give<dtype, 0, begun>(a[0], b[0], c[0], x, y, largest, v[0]);
  if constexpr (dtype != QN_F32) give<dtype, 1, begun>(a[1], b[1], c[1], x, y, largest, v[1]);
}

/* base + number * size */
__device__ __forceinline__ const char *address(const char *base, int number, uint32_t size)
{
  return base + (uint64_t)(uint32_t)number * size;
}

/* COLUMNS: of a strip; AHEAD: rows of windows loaded ahead, 1 or 3; BLOCKS: resident on an SM; FAR: how many rows ahead to
 * prefetch into L2, where registers hold no more loads in flight; 0: none. */
template <int dtype, int STEP, int COLUMNS, int AHEAD, int BLOCKS, int FAR>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_recompute(const __grid_constant__ lanes p)
{
  /* the x loaded begins BEFORE columns left of the strip */
  enum { L = per_word<dtype>, bytes = 4 / L, KEPT = SIZE - STEP, FIRST = (2 - SIZE) / STEP, WINDOWS = COLUMNS / STEP - FIRST + 1,
         ACROSS = (WINDOWS - 1) * STEP + SIZE, BEFORE = 1 - FIRST * STEP };
  strip s;
  /* the shuffle tells the compiler that the warp number is uniform */
  if (!strip_of(s, p, __shfl_sync(~0u, blockIdx.x * WARPS + threadIdx.x / 32, 0), COLUMNS, L)) return;
  const int oy_begin = max((s.top + 1 - SIZE + STEP) / STEP, 0), oy_end = s.end / STEP + 1, ox = s.x0 / STEP + FIRST,
            columns = min(COLUMNS, p.in[2] - s.x0);

  /* out-of-range x reads the nearest place inside; windows out of range get dy 0 */
  const char *const dy = (const char *)p.dy + (s.n * p.y_stride[0] + s.c) * bytes,
             *const x = (const char *)p.x + (s.n * p.x_stride[0] + s.c) * bytes;
  const char *const dx = (const char *)p.dx + (s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  const uint32_t x_line = p.of_x.y * bytes, x_pixel = p.of_x.x * bytes, dy_line = p.of_dy.y * bytes, dy_pixel = p.of_dy.x * bytes,
                 dx_line = p.of_dx.y * bytes, dx_pixel = p.of_dx.x * bytes;
  const bool edge = ox < 0 || ox + WINDOWS > p.out[2];
  uint32_t x_at[ACROSS], dy_at[WINDOWS];
#pragma unroll
  for (int i = 0; i < ACROSS; i++) x_at[i] = min(max(s.x0 - BEFORE + i, 0), p.in[2] - 1);
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) dy_at[k] = min(max(ox + k, 0), p.out[2] - 1);

  struct line { uint32_t dy[WINDOWS], x[STEP][ACROSS]; };
  const auto load_x = [&](uint32_t (&v)[ACROSS], int y) {
    const char *const row = address(x, min(max(y, 0), p.in[1] - 1), x_line);
#pragma unroll
    for (int i = 0; i < ACROSS; i++) v[i] = *(const uint32_t *)address(row, x_at[i], x_pixel);
  };
  const auto load = [&](line &l, int oy) {
    const char *const row = address(dy, min(oy, p.out[1] - 1), dy_line);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) l.dy[k] = *(const uint32_t *)address(row, dy_at[k], dy_pixel);
#pragma unroll
    for (int r = 0; r < STEP; r++) load_x(l.x[r], oy * STEP - 1 + KEPT + r);
  };
  /* three rows, rotating through the same registers: x, the maximum of each 3-wide segment, what that segment received */
  uint32_t number[SIZE][ACROSS], most[SIZE][WINDOWS];
  float given[SIZE][WINDOWS][L];
  const auto open_x = [&](int r, const uint32_t (&v)[ACROSS]) {
#pragma unroll
    for (int i = 0; i < ACROSS; i++) number[r][i] = plain<dtype>(v[i]);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
      most[r][k] = larger_word<dtype>(larger_word<dtype>(number[r][k * STEP], number[r][k * STEP + 1]), number[r][k * STEP + 2]);
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

  /* a warp's channels of a pixel are 4 sectors, those of its 8 columns 32: each lane prefetches one */
  const int beside = s.x0 + (int)(threadIdx.x % 8);
  const auto prefetch_row = [&](int oy) {
    const char *const x_row = address(x, min(oy * STEP + KEPT - 1, p.in[1] - 1), x_line);
    const char *const dy_row = address(dy, min(oy, p.out[1] - 1), dy_line);
    prefetch_L2(address(x_row, min(beside, p.in[2] - 1), x_pixel));
    prefetch_L2(address(dy_row, min(beside, p.out[2] - 1), dy_pixel));
  };
#pragma unroll
  for (int a = AHEAD; a < FAR; a++) prefetch_row(oy_begin + a);

  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], min(oy_begin + a, oy_end - 1));
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += SIZE)
#pragma unroll
    for (int a = 0; a < SIZE; a++) {
      const int oy = oy0 + a, y0 = oy * STEP - 1, first = a * STEP % SIZE, second = (first + 1) % SIZE, third = (first + 2) % SIZE;
      if (oy >= oy_end) break;
      line &l = ahead[a % AHEAD];
      if (edge || oy >= p.out[1])
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
          if ((unsigned)(ox + k) >= (unsigned)p.out[2] || oy >= p.out[1]) l.dy[k] = 0;
#pragma unroll
      for (int r = 0; r < STEP; r++) open_x((first + KEPT + r) % SIZE, l.x[r]);
      uint32_t now[WINDOWS];
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) now[k] = l.dy[k];
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) {
        float v[L];
#pragma unroll
        for (int i = 0; i < L; i++) v[i] = channel<dtype>(now[k], i);
        give_word<dtype, KEPT>(given[first][k], given[second][k], given[third][k], most[first][k], most[second][k],
                               larger_word<dtype>(larger_word<dtype>(most[first][k], most[second][k]), most[third][k]), v);
      }
      load(l, min(oy + AHEAD, oy_end - 1));
      if (FAR) prefetch_row(oy + FAR);
      if (y0 < 0)
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
#pragma unroll
          for (int i = 0; i < L; i++) given[second][k][i] += given[first][k][i];
#pragma unroll
      for (int r = 0; r < STEP; r++) {    /* rows that no later window covers are complete */
        const int line = (first + r) % SIZE, y = y0 + r;
        if (y < s.top || y >= s.end) continue;
        float sum[ACROSS][L];
#pragma unroll
        for (int k = 0; k < WINDOWS; k++) {
          const auto give_across = k ? give_word<dtype, KEPT> : give_word<dtype, 0>;
          give_across(sum[k * STEP], sum[k * STEP + 1], sum[k * STEP + 2], number[line][k * STEP], number[line][k * STEP + 1],
                      most[line][k], given[line][k]);
        }
        if (s.x0 == 0)
#pragma unroll
          for (int i = 0; i < L; i++) sum[BEFORE][i] += sum[BEFORE - 1][i];
        const char *const to = address(dx, y, dx_line);
        const auto store = [&](int b) { *(uint32_t *)(char *)address(to, b, dx_pixel) = word_of<dtype>(sum[BEFORE + b]); };
        if (columns == COLUMNS) {
#pragma unroll
          for (int b = 0; b < COLUMNS; b++) store(b);
        } else {
#pragma unroll
          for (int b = 0; b < COLUMNS - 1; b++)
            if (b < columns) store(b);
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
  if (window == 321) return { (const void *)pool_recompute<dtype, 2, half ? 4 : 8, 3, half ? 4 : 2, 0>, half ? 4 : 8 };
  if (window == 311) return { (const void *)pool_recompute<dtype, 1, 7, half ? 1 : 3, half ? 3 : 2, half ? 2 : 0>, 7 };
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
  if (!form.kernel) return qn_refuse(out, "windows of 3x3 with padding 1", "dx", "stride 1 or 2", "%dx%d", s.p.size[1], s.p.size[2]);
  s.kernel = form.kernel;
  return lanes_keep(&s, r, form.columns, dtype == QN_F32 ? 1 : 2, out);
}

static const qn_engine row[] = {
  { "recompute", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, lanes_run, cuda_release },
};
CUDA_ENGINES(pool_recompute) = { row, sizeof row / sizeof *row };
