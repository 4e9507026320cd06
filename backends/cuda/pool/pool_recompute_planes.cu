/* pool_recompute_planes.cu -- gradient of max pooling recomputed from x, packed NCHW planes in f16, bf16 and f32; 3x3 windows, stride 1 or
 * 2, padding 1.
 *
 *   dx[x] = the sum of dy over the windows whose maximum came from x
 *
 * Separable: a window first passes its dy to the first of its three rows that holds the maximum; then each row's 3-wide segment,
 * shared by all windows at that column, passes what it received to the first of its maximal places. Places outside x repeat their
 * neighbour inside; what they receive is added to that neighbour. */
#include <cuda_pipeline_primitives.h>
#include "engines.h"
#include "pool_walk.cuh"

enum { MOST_STAGED = 26000, LEAST_STAGED = 8 };               /* staged: bytes of a warp's planes at most, warps an SM at least */
/* AHEAD: rows of windows prefetched; three, so that the rows rotate through the same registers */
enum { SIZE = 3, AHEAD = 3 };

__device__ __forceinline__ void bring(char *to, const char *from, int bytes)
{
  for (int i = threadIdx.x; i < bytes / 16; i += 32) __pipeline_memcpy_async(to + i * 16, from + i * 16, 16);
}

/* give() to one sum and two unset ones, as one chain of predicates: an eighth faster at stride 2. */
__device__ __forceinline__ void give_set(float &a, float &b, float &c, uint32_t x, uint32_t y, uint32_t largest, float v)
{
#ifdef __CUDA_ARCH__
  b = 0;
  asm("{ .reg .pred p, n, q, r; setp.eq.u32 p|n, %3, %5; setp.eq.and.u32 q|r, %4, %5, n; @p add.f32 %0, %0, %6; @q add.f32 %1, %1, %6; selp.f32 %2, %6, 0f00000000, r; }"
      : "+f"(a), "+f"(b), "=f"(c)
      : "r"(x), "r"(y), "r"(largest), "f"(v));
#else
  give<QN_F32, 0, 1>(a, b, c, x, y, largest, v);
#endif
}

/* staged (stride 1): a block of one warp copies its planes to shared memory as they lie and writes dx over x there. Without this,
 * rows that are no multiple of a 32-byte sector fetch some sectors twice. */
template <int dtype, class of, bool staged>
__global__ void __launch_bounds__(THREADS, 6) pool_recompute_planes(const __grid_constant__ walk p)
{
  constexpr int STEP = of::STEP, RIGHT = of::RIGHT, KEPT = of::KEPT, WINDOWS = of::WINDOWS, PLACES = of::PLACES,
                E = dtype == QN_F32 ? 1 : 2, bytes = 4 / E;
  static_assert(of::HIGH == SIZE && of::WIDE == SIZE && of::BEFORE == 1 && of::DOWN == STEP && AHEAD == SIZE, "");
  /* the shuffle tells the compiler that the warp number is uniform */
  const lane at = lane_of(p, p.in[1], staged ? blockIdx.x : __shfl_sync(~0u, blockIdx.x * (THREADS / 32) + threadIdx.x / 32, 0));
  const int top = at.top, end = at.end, height = p.in[1], width = p.in[2], high = p.out[1], wide = p.out[2];
  /* one row of windows past the last may be needed to complete dx */
  const int oy_begin = max((top + 1 - SIZE + STEP) / STEP, 0), oy_end = end / STEP + 1;
  const int64_t in_x = ((int64_t)at.plane * height * width + at.column * C) * bytes,
                in_y = ((int64_t)at.plane * high * wide + at.column * WINDOWS) * bytes;
  const char *x = (const char *)p.x + in_x, *dy = (const char *)p.dy + in_y;
  char *dx = (char *)p.dx + in_x;
  extern __shared__ uint4 stage[];
  const uint32_t first_plane = blockIdx.x * p.per_warp;
  const int plane = height * width * bytes, run = (int)min((uint32_t)p.per_warp, p.count - first_plane) * plane;
  const int64_t run_at = (int64_t)first_plane * plane;
  if constexpr (staged) {
    char *const kept = (char *)stage, *const beside = kept + p.per_warp * plane;
    bring(kept, (const char *)p.x + run_at, run);
    bring(beside, (const char *)p.dy + run_at, run);
    __pipeline_commit();
    const int own = (at.here ? (int)(at.plane - first_plane) * plane : 0) + at.column * C * bytes;
    x = dx = kept + own, dy = beside + own;
    __pipeline_wait_prior(0);
    __syncwarp();
  }

  struct line { words<WINDOWS / E> dy; words<C / E> x[STEP]; };
  const auto load_x = [&](int y) { return load_words<C / E>(x, (int64_t)(min(max(y, 0), height - 1) * width) * bytes); };
  const auto load = [&](line &l, int oy) {
    l.dy = load_words<WINDOWS / E>(dy, (int64_t)(min(oy, high - 1) * wide) * bytes);
#pragma unroll
    for (int r = 0; r < STEP; r++) l.x[r] = load_x(oy * STEP - 1 + KEPT + r);
  };
  /* of three rows: x, the maximum of each window's segment, what that segment received */
  float number[SIZE][PLACES], most[SIZE][WINDOWS], given[SIZE][WINDOWS];
  const auto open_x = [&](int r, const words<C / E> &q) {
    float (&v)[PLACES] = number[r];
#pragma unroll
    for (int i = 0; i < C; i++) v[1 + i] = __uint_as_float(plain<QN_F32>(__float_as_uint(open<dtype>(q, i))));
    const float before = __shfl_up_sync(~0u, v[C], 1);
    v[0] = at.left ? before : v[1];
    if (RIGHT) {
      const float after = __shfl_down_sync(~0u, v[1], 1);
      v[PLACES - 1] = at.right ? after : v[C];
    }
#pragma unroll
    for (int w = 0; w < WINDOWS; w++)     /* at stride 1 two windows share the larger of two places */
      most[r][w] = STEP == 1 && w % 2 ? larger(larger(v[w], v[w + 1]), v[w + 2])
                                      : larger(v[w * STEP], larger(v[w * STEP + 1], v[w * STEP + 2]));
  };
  const auto give_to = [&](float &a, float &b, float &c, float p, float q, float largest, float v) {
    if (KEPT == 1) give_set(a, b, c, __float_as_uint(p), __float_as_uint(q), __float_as_uint(largest), v);
    else give<QN_F32, 0, KEPT>(a, b, c, __float_as_uint(p), __float_as_uint(q), __float_as_uint(largest), v);
  };
#pragma unroll
  for (int r = 0; r < KEPT; r++) {
    open_x(r, load_x(oy_begin * STEP - 1 + r));
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) given[r][w] = 0;
  }

  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], min(oy_begin + a, oy_end - 1));
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += AHEAD)
#pragma unroll
    for (int a = 0; a < AHEAD; a++) {
      const int oy = oy0 + a, y0 = oy * STEP - 1, first = a * STEP % SIZE, second = (first + 1) % SIZE, third = (first + 2) % SIZE;
      if (oy >= oy_end) break;
#pragma unroll
      for (int r = 0; r < STEP; r++) open_x((first + KEPT + r) % SIZE, ahead[a].x[r]);
#pragma unroll
      for (int w = 0; w < WINDOWS; w++) {
        const float v = oy < high ? open<dtype>(ahead[a].dy, w) : 0;
        give_to(given[first][w], given[second][w], given[third][w], most[first][w], most[second][w],
                larger(larger(most[first][w], most[second][w]), most[third][w]), v);
        if (y0 < 0) given[second][w] += given[first][w];
      }
      load(ahead[a], min(oy + AHEAD, oy_end - 1));
#pragma unroll
      for (int r = 0; r < STEP; r++) {    /* rows that no later window covers are complete */
        const int k = (first + r) % SIZE, y = y0 + r;
        float sum[PLACES] = {};
#pragma unroll
        for (int w = 0; w < WINDOWS; w++)
          give_to(sum[w * STEP], sum[w * STEP + 1], sum[w * STEP + 2], number[k][w * STEP], number[k][w * STEP + 1], most[k][w],
                  given[k][w]);
        const float right = __shfl_down_sync(~0u, sum[0], 1);               /* what the lane to the right adds to this lane's last column */
        if (RIGHT) {
          const float left = __shfl_up_sync(~0u, sum[PLACES - 1], 1);
          if (at.left) sum[1] += left;
        }
        if (!at.left) sum[1] += sum[0];
        if (at.right) sum[C] += right;
        if (at.owns && y >= top && y < end) store<dtype>(dx, y * width, sum + 1);
      }
    }
  if constexpr (staged) {
    __syncwarp();
    for (int i = threadIdx.x; i < run / 16; i += 32) ((uint4 *)((char *)p.dx + run_at))[i] = stage[i];
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;

template <int dtype> static kernel kernel_of(int window, bool staged)
{
  if (window == 311 && staged) return (kernel)pool_recompute_planes<dtype, geometry<3, 1, 1, 3, 1, 1>, true>;
  return window == 321 ? (kernel)pool_recompute_planes<dtype, geometry<3, 2, 1, 3, 2, 1>, false>
       : window == 311 ? (kernel)pool_recompute_planes<dtype, geometry<3, 1, 1, 3, 1, 1>, false>
                       : nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  walk_state s = {};
  s.y = -1;
  qn_status status = walk_fill(&s.p, &s.of, r, out);
  if (status != QN_OK) return status;
  const uint32_t dtype = r->value[s.of.dx].dtype;
  if (s.of.x < 0) return qn_refuse(out, "maxima by x", "x", "some", "%s", "none");
  const int window = square_of(&s.p);
  /* bytes of a row and of a plane; planes of a warp */
  const int64_t line = s.p.in[2] * (dtype == QN_F32 ? 4 : 2), plane = s.p.in[1] * line, per_warp = 32 * C / s.p.in[2];
  const bool staged = window == 311 && s.p.out[1] == s.p.in[1] && line % 32 && plane % 16 == 0 && per_warp &&
                      per_warp * 2 * plane <= MOST_STAGED && s.p.count >= per_warp * LEAST_STAGED * r->device->units;
  s.staged = staged ? (int32_t)(2 * plane) : 0;
  s.kernel = dtype == QN_F32  ? kernel_of<QN_F32>(window, staged)
           : dtype == QN_BF16 ? kernel_of<QN_BF16>(window, staged)
                              : kernel_of<QN_F16>(window, staged);
  if (!s.kernel) return qn_refuse(out, "windows of 3x3 with padding 1", "dx", "stride 1 or 2", "%dx%d", s.p.size[1], s.p.size[2]);
  return walk_keep(&s, r, s.p.in[1], s.p.step[1], 0, out);
}

static const qn_engine row[] = {
  { "recompute_planes", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, walk_run, cuda_release },
};
CUDA_ENGINES(pool_recompute_planes) = { row, sizeof row / sizeof *row };
