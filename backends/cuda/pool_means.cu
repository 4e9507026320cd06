/* pool_means.cu -- gradients of mean pooling by 3 by 3 every 1, of f16, bf16 and f32 of channels last (NHWC).
 *
 *   dx[x] = the sum of dy / divisor over the windows that cover x
 *
 * Sums of three of a row of dy, kept for the three rows of dx that they belong to: a lane goes down a band of rows, with a word of channels of
 * a few columns. */
#include "engines.h"
#include "pool_lanes.cuh"

enum { SIZE = 3 };

enum { MEAN_COLUMNS = 7, MEAN_WARPS = 4 };

template <int dtype> __global__ void __launch_bounds__(MEAN_WARPS * 32) pool_means(const __grid_constant__ lanes p)
{
  enum { L = per_word<dtype>, ACROSS = MEAN_COLUMNS + SIZE - 1, AHEAD = 3 /* rows in flight */ };
  strip s;
  const uint32_t warp = __shfl_sync(~0u, blockIdx.x * MEAN_WARPS + threadIdx.x / 32, 0);  /* the warp's, as compilers see so */
  if (!strip_of(s, p, warp, MEAN_COLUMNS, L)) return;
  const int ox = s.x0 + p.before[2] - (SIZE - 1);          /* the first window over the first column */
  const uint32_t *const dy = (const uint32_t *)p.dy + ((int64_t)s.n * p.y_stride[0] + s.c + (int64_t)ox * p.of_dy.x) / L;
  uint32_t *const dx = (uint32_t *)p.dx + ((int64_t)s.n * p.dx_stride[0] + s.c + (int64_t)s.x0 * p.of_dx.x) / L;
  const int dy_row = p.of_dy.y / L, dy_step = p.of_dy.x / L, dx_row = p.of_dx.y / L, dx_step = p.of_dx.x / L;
  const auto load = [&](uint32_t (&w)[ACROSS], int oy) {
#pragma unroll
    for (int k = 0; k < ACROSS; k++) {
      w[k] = 0;
      if ((unsigned)(ox + k) < (unsigned)p.out[2] && (unsigned)oy < (unsigned)p.out[1]) w[k] = dy[oy * dy_row + k * dy_step];
    }
  };
  const auto sum = [&](float (&line)[MEAN_COLUMNS][L], const uint32_t (&w)[ACROSS], int oy) {
    const int down = p.even ? 0 : taps_beside(p, 1, oy - p.before[1], SIZE);
#pragma unroll
    for (int i = 0; i < L; i++) {
      float v[ACROSS];
#pragma unroll
      for (int k = 0; k < ACROSS; k++) {
        v[k] = channel<dtype>(w[k], i);
        if (!p.even) v[k] *= p.inverse[down * taps_beside(p, 2, ox + k - p.before[2], SIZE)];
      }
#pragma unroll
      for (int a = 0; a < MEAN_COLUMNS; a++) line[a][i] = v[a] + v[a + 1] + v[a + 2];
    }
  };
  const int first = s.top + p.before[1] - (SIZE - 1);
  uint32_t w[AHEAD][ACROSS];
  float above[SIZE - 1][MEAN_COLUMNS][L];
#pragma unroll
  for (int r = 0; r < SIZE - 1; r++) load(w[r], first + r);
#pragma unroll
  for (int r = 0; r < SIZE - 1; r++) sum(above[r], w[r], first + r);
#pragma unroll
  for (int r = 0; r < AHEAD; r++) load(w[r], first + SIZE - 1 + r);
#pragma unroll 1
  for (int y0 = s.top; y0 < s.end; y0 += AHEAD) {
#pragma unroll
    for (int r = 0; r < AHEAD; r++) {
      const int y = y0 + r;
      float line[MEAN_COLUMNS][L];
      sum(line, w[r], y + p.before[1]);
      load(w[r], y + AHEAD + p.before[1]);
#pragma unroll
      for (int a = 0; a < MEAN_COLUMNS; a++) {
        float v[L];
#pragma unroll
        for (int i = 0; i < L; i++) {
          v[i] = above[0][a][i] + above[1][a][i] + line[a][i];
          if (p.even) v[i] *= p.share;
          above[0][a][i] = above[1][a][i], above[1][a][i] = line[a][i];
        }
        if (y < s.end && s.x0 + a < p.in[2]) dx[y * dx_row + a * dx_step] = word_of<dtype>(v);
      }
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { lanes p; gradient_roles of; kernel kernel; uint32_t blocks; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  qn_status status = gradient_fill(&s.p, &s.of, r, out);
  if (status != QN_OK) return status;
  lanes *p = &s.p;
  const qn_value *dx = &r->value[s.of.dx];
  if (gradient_channels(p, &s.of, r) == 1) return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "others");
  if (!p->flat) return qn_refuse(out, "windows within a plane", "dx", "1 deep", "%d", p->size[0]);
  if (square_of(p) / 10 != 31 || p->before[1] >= SIZE) return qn_refuse(out, "squares of 3 by 3 every 1", "dx", "3x3", "%dx%d", p->size[1], p->size[2]);
  if (!lanes_choose(p, r, MEAN_COLUMNS, dx->dtype)) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  s.blocks = (uint32_t)qn_ceil_div(p->warps, MEAN_WARPS);
  s.kernel = dx->dtype == QN_F32 ? (kernel)pool_means<QN_F32> : dx->dtype == QN_BF16 ? (kernel)pool_means<QN_BF16> : (kernel)pool_means<QN_F16>;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  lanes p = st->p;
  p.dy = launch->ptr[st->of.dy];
  p.dx = launch->ptr[st->of.dx];
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, st->blocks, MEAN_WARPS * 32, arguments, 0, (cudaStream_t)launch->stream), "pool_means");
}

static const qn_engine row[] = {
  { "means", QN_OP_POOL_AVERAGE_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
const qn_engine_list cuda_pool_means_list = { row, sizeof row / sizeof *row };
