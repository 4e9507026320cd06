/* pool_scatter.cu -- gradient of max pooling from indices, channels last (NHWC), f16 and bf16; 3x3 windows, stride 2, padding 1.
 *
 *   dx[x] = the sum of dy over the windows whose index is x
 *
 * A lane owns a 32-bit word (two channels) of a strip of dx columns and walks down a band of rows, with the sums of three rows in
 * registers. Each window is read once per strip; its tap number becomes a one-hot mask that predicates nine adds.
 * Refused: f32 (cells is faster there), i32 indices, recomputation from x. */
#include "engines.h"
#include "pool_lanes.cuh"
#include "pool_peak.cuh"

enum { SIZE = 3, STEP = 2, BEFORE = 1, COLUMNS = 4, CHANNELS = 2 };         /* COLUMNS: of a strip; CHANNELS: of a word */

/* BLOCKS: resident on an SM; AHEAD: rows of windows prefetched. */
template <int dtype, int how, int BLOCKS, int AHEAD>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_scatter(const __grid_constant__ lanes p)
{
  enum { bytes = 4 / CHANNELS, INDEX = how == BY_PLACE ? 8 : 1, KEPT = SIZE - STEP, WINDOWS = (COLUMNS - 1 + BEFORE) / STEP + 1 };
  strip s;
  /* the shuffle tells the compiler that the warp number is uniform */
  if (!strip_of(s, p, __shfl_sync(~0u, blockIdx.x * WARPS + threadIdx.x / 32, 0), COLUMNS, CHANNELS)) return;
  /* one row of windows past the last may be needed to complete dx */
  const int oy_begin = max((s.top + BEFORE - SIZE + STEP) / STEP, 0), oy_end = (s.end - 1 + BEFORE) / STEP + 1, ox = s.x0 / STEP,
            columns = min((int)COLUMNS, p.in[2] - s.x0);

  const char *const dy = (const char *)p.dy + (uint32_t)(s.n * p.y_stride[0] + s.c) * bytes,
             *const index = (const char *)p.indices + (uint32_t)(s.n * p.index_stride[0] + s.c) * INDEX;
  char *const dx = (char *)p.dx + (uint32_t)(s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  uint32_t dy_at[WINDOWS], index_at[WINDOWS];   /* byte offsets in a row */
#pragma unroll
  for (int k = 0; k < WINDOWS; k++)
    dy_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_dy.x * bytes,
    index_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_index.x * INDEX;

  struct line {
    uint32_t dy[WINDOWS], tap[how == BY_TAP ? WINDOWS : 1];
    alignas(16) int64_t place[how == BY_PLACE ? WINDOWS : 1][CHANNELS];
  };
  const auto load = [&](line &l, int oy) {
    const uint32_t o = min(oy, min(oy_end, p.out[1]) - 1);
    const char *const dy_row = dy + o * p.of_dy.y * bytes, *const index_row = index + o * p.of_index.y * INDEX;
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      l.dy[k] = *(const uint32_t *)(dy_row + dy_at[k]);
      const char *const from = index_row + index_at[k];
      if (how == BY_TAP) l.tap[k] = *(const uint16_t *)from;
      if constexpr (how == BY_PLACE) *(longlong2 *)l.place[k] = *(const longlong2 *)from;
    }
  };

  float sum[SIZE][COLUMNS][CHANNELS] = {};
  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], oy_begin + a);
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += AHEAD)
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int oy = oy0 + u, y0 = oy * STEP - BEFORE;
      if (AHEAD > 1 && oy >= oy_end) break;
      const line now = ahead[u];
      load(ahead[u], oy + AHEAD);
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) {
        const bool there = (unsigned)(ox + k) < (unsigned)p.out[2] && oy < p.out[1];
#pragma unroll
        for (int i = 0; i < CHANNELS; i++) {
          const float v = there ? channel<dtype>(now.dy[k], i) : 0;
          const uint32_t tap = how == BY_TAP ? (i ? now.tap[k] >> 8 : now.tap[k] & 255)
                                             : tap_of<SIZE>(place_among(now.place[how == BY_PLACE ? k : 0][i]),
                                                            y0 * p.in[2] + s.x0 - BEFORE + k * STEP, p.in[2]);
          const uint32_t bits = tap < SIZE * SIZE ? 1u << tap : 0;
#pragma unroll
          for (int r = 0; r < SIZE; r++)
#pragma unroll
            for (int c = 0; c < SIZE; c++) {
              const int column = k * STEP + c - BEFORE;
              if (column >= 0 && column < COLUMNS) add_at_bit(sum[r][column < 0 ? 0 : column % COLUMNS][i], bits, r * SIZE + c, v);
            }
        }
      }
#pragma unroll
      for (int r = 0; r < STEP; r++) {    /* rows that no later window covers are complete */
        const int y = y0 + r;
        if (y < s.top || y >= s.end) continue;
        char *const to = dx + (uint32_t)(y * p.of_dx.y * bytes);
        if (columns == COLUMNS) {
#pragma unroll
          for (int a = 0; a < COLUMNS; a++) *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word_of<dtype>(sum[r][a]);
        } else {
#pragma unroll
          for (int a = 0; a < COLUMNS - 1; a++)
            if (a < columns) *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word_of<dtype>(sum[r][a]);
        }
      }
#pragma unroll
      for (int r = 0; r < SIZE; r++)
#pragma unroll
        for (int a = 0; a < COLUMNS; a++)
#pragma unroll
          for (int i = 0; i < CHANNELS; i++) sum[r][a][i] = r < KEPT ? sum[r < KEPT ? r + STEP : r][a][i] : 0;
    }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype> static const void *kernel_of(int how)
{
  return how == BY_TAP ? (const void *)pool_scatter<dtype, BY_TAP, 7, 3> : (const void *)pool_scatter<dtype, BY_PLACE, 5, 1>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  lanes_state s = {};
  qn_status status = lanes_fill(&s, r, out);
  if (status != QN_OK) return status;
  const uint32_t dtype = r->value[s.of.dx].dtype;
  if (dtype == QN_F32) return qn_refuse(out, "dtypes of two a word", "dx", "f16 or bf16", "%s", "f32");
  if (s.of.indices < 0) return qn_refuse(out, "maxima by indices", "indices", "some", "%s", "none");
  if (s.p.index_dtype == QN_I32) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  if (square_of(&s.p) != 321) return qn_refuse(out, "windows of 3x3 with padding 1", "dx", "stride 2", "%dx%d", s.p.size[1], s.p.size[2]);
  const int how = s.p.index_dtype == QN_U8 ? BY_TAP : BY_PLACE;
  s.kernel = dtype == QN_BF16 ? kernel_of<QN_BF16>(how) : kernel_of<QN_F16>(how);
  return lanes_keep(&s, r, COLUMNS, CHANNELS, out);
}

static const qn_engine row[] = {
  { "scatter", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, lanes_run, cuda_release },
};
CUDA_ENGINES(pool_scatter) = { row, sizeof row / sizeof *row };
