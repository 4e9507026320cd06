/* pool_means.cu -- gradient of average pooling, channels last (NHWC), f16, bf16 and f32; 3x3 windows, stride 1, or stride 2 with padding 1.
 *
 *   dx[x] = the sum of dy / divisor over the windows that cover x
 *
 * A thread owns a 16-byte vector of channels of COLUMNS columns of dx and walks down a band of rows; each row of windows is
 * summed across once and reused for all rows of dx that it covers. Loads of AHEAD rows are in flight. */
#include "pool_gradient.cuh"

enum { SIZE = 3, THREADS = 128, COLUMNS = 2, AHEAD = 2, LEAST = 8 };        /* AHEAD: rows of windows prefetched; LEAST: rows of a band */

struct means : gradient {
  int32_t  band;                          /* rows of dx, a multiple of the step */
  uint32_t threads;
  cuda_divisor by_vectors, by_strips, by_bands;
};

template <int dtype, int STEP, bool even> __global__ void __launch_bounds__(THREADS) pool_means(const __grid_constant__ means p)
{
  constexpr int V = vector_per_16<dtype>, WINDOWS = (COLUMNS - 1) / STEP + SIZE - STEP + 1, KEPT = SIZE - STEP;
  const uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  if (thread >= p.threads) return;
  uint32_t vector, strip, band;
  const uint32_t n = cuda_quotient(cuda_quotient(cuda_quotient(thread, p.by_vectors, &vector), p.by_strips, &strip), p.by_bands, &band);
  const int x0 = (int)strip * COLUMNS, top = (int)band * p.band, end = min(top + p.band, p.in[1]),
            columns = min((int)COLUMNS, p.in[2] - x0);
  const int ox = (x0 + p.before[2] - SIZE + STEP) / STEP;       /* the first window that covers the first column */
  const char *const dy = (const char *)p.dy + (n * p.y_stride[0] + vector * V) * (16 / V);
  char *const dx = (char *)p.dx + (n * p.dx_stride[0] + vector * V + (int64_t)x0 * p.of_dx.x) * (16 / V);

  uint32_t at[WINDOWS], there[WINDOWS];   /* there: ~0, or 0 outside y */
  float across[WINDOWS];                  /* SIZE / taps along the row (exact in f32) */
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) {
    const int o = ox + k;
    at[k] = min(max(o, 0), p.out[2] - 1) * p.of_dy.x * (16 / V), there[k] = (unsigned)o < (unsigned)p.out[2] ? ~0u : 0;
    across[k] = even ? 1 : SIZE * p.inverse[max(1, taps_beside(p, 2, o * STEP - p.before[2], SIZE))];
  }
  const auto load = [&](uint4 (&q)[WINDOWS], int oy) {
    const char *const row = dy + (int64_t)(min(max(oy, 0), p.out[1] - 1) * p.of_dy.y) * (16 / V);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) q[k] = *(const uint4 *)(row + at[k]);
  };
  /* What a row of windows adds to each column. */
  const auto sum = [&](float (&line)[COLUMNS][V], const uint4 (&q)[WINDOWS], int oy) {
    const uint32_t here = (unsigned)oy < (unsigned)p.out[1] ? ~0u : 0;
    const float down = even ? 1 : p.share * SIZE * p.inverse[max(1, taps_beside(p, 1, oy * STEP - p.before[1], SIZE))];
    float v[WINDOWS][V];
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      const uint32_t mask = there[k] & here;
      vector_open<dtype>(v[k], 0, make_uint4(q[k].x & mask, q[k].y & mask, q[k].z & mask, q[k].w & mask));
      if (!even)
#pragma unroll
        for (int i = 0; i < V; i++) v[k][i] *= across[k] * down;
    }
#pragma unroll
    for (int a = 0; a < COLUMNS; a++)
#pragma unroll
      for (int i = 0; i < V; i++)
        if (STEP == 1) line[a][i] = a % 2 ? (v[a][i] + v[a + 1][i]) + v[a + 2][i] : v[a][i] + (v[a + 1][i] + v[a + 2][i]);
        else line[a][i] = a % 2 ? v[a / 2][i] + v[a / 2 + 1][i] : v[a / 2][i];
  };
  const auto store = [&](int y, const float (&v)[COLUMNS][V]) {
    if (y < top || y >= end) return;
    char *const to = dx + (int64_t)(y * p.of_dx.y) * (16 / V);
#pragma unroll
    for (int a = 0; a < COLUMNS; a++) {
      float w[V];
#pragma unroll
      for (int i = 0; i < V; i++) w[i] = even ? v[a][i] * p.share : v[a][i];
      if (a < columns) *(uint4 *)(to + a * p.of_dx.x * (16 / V)) = vector_close<dtype>(w, 0);
    }
  };

  /* STEP 1: line[0] is the sum of the last two rows of windows, line[1] the last; STEP 2: line[0] is the last. */
  float line[KEPT][COLUMNS][V];
  uint4 q[AHEAD][WINDOWS];
  const int first = (top + p.before[1] - SIZE + STEP) / STEP;
#pragma unroll
  for (int r = 0; r < KEPT; r++) load(q[r], first + r);
#pragma unroll
  for (int r = 0; r < KEPT; r++) sum(line[r], q[r], first + r);
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(q[a], first + KEPT + a);
  if (STEP == 1)
#pragma unroll
    for (int a = 0; a < COLUMNS; a++)
#pragma unroll
      for (int i = 0; i < V; i++) line[0][a][i] += line[KEPT - 1][a][i];
#pragma unroll 1
  for (int oy0 = first + KEPT; oy0 * STEP - p.before[1] - (STEP - 1) < end; oy0 += AHEAD)
#pragma unroll
    for (int k = 0; k < AHEAD; k++) {
      const int oy = oy0 + k, y = oy * STEP - p.before[1];
      float next[COLUMNS][V], both[COLUMNS][V];
      sum(next, q[k], oy);
      load(q[k], oy + AHEAD);
      if (STEP == 2) store(y - 1, line[0]);
#pragma unroll
      for (int a = 0; a < COLUMNS; a++)
#pragma unroll
        for (int i = 0; i < V; i++) {
          both[a][i] = line[0][a][i] + next[a][i];
          line[0][a][i] = STEP == 1 ? line[KEPT - 1][a][i] + next[a][i] : next[a][i], line[KEPT - 1][a][i] = next[a][i];
        }
      store(y, both);
    }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype> static pool_kernel kernel_of(int window, bool even)
{
  if (window == 321) return even ? (pool_kernel)pool_means<dtype, 2, true> : (pool_kernel)pool_means<dtype, 2, false>;
  if (window / 10 != 31 || window % 10 >= SIZE) return nullptr;
  return even ? (pool_kernel)pool_means<dtype, 1, true> : (pool_kernel)pool_means<dtype, 1, false>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<means> s = {};
  const qn_status status = gradient_read(&s, r, out);
  if (status != QN_OK) return status;
  means *p = &s.p;
  const int v = gradient_channels(&s, r), window = square_of(p);
  if (v == 1) return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "other strides");
  if (!p->flat || p->size[0] > 1) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  if ((double)qn_max_i64(p->in[2] * (int64_t)p->of_dx.x, p->out[2] * (int64_t)p->of_dy.x) * (16 / v) > INT32_MAX)
    return qn_refuse(out, "rows of less than 2 GiB", "dx", "", "%s", "more");
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) { return kernel_of<dtype()>(window, p->even); });
  if (!s.kernel) return qn_refuse(out, "windows of 3x3", "dx", "stride 1, or stride 2 with padding 1", "%dx%d", p->size[1], p->size[2]);
  const int64_t bands = qn_max_i64(1, p->in[1] / LEAST), strips = qn_ceil_div(p->in[2], (int64_t)COLUMNS);
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], bands), p->step[1]);
  const double threads = (double)p->n * (double)(p->c / v) * (double)strips * (double)qn_ceil_div(p->in[1], p->band);
  if (threads > INT32_MAX) return qn_refuse(out, "fewer than 2^31 threads", "dx", "", "%s", "more");
  p->threads = (uint32_t)threads;
  p->by_vectors = cuda_divide_by(p->c / v), p->by_strips = cuda_divide_by(strips),
  p->by_bands = cuda_divide_by(qn_ceil_div(p->in[1], p->band));
  return pool_keep(&s, p->threads, THREADS, 2200, out);
}

static const qn_engine row[] = { pool_row<means>("means", QN_OP_POOL_AVERAGE_BACKWARD, prepare) };
CUDA_ENGINES(pool_means) = { row, sizeof row / sizeof *row };
