/* pool_lanes.cu -- gradients of max and average pooling, channels last (NHWC), f16, bf16 and f32; 3x3 windows of stride 1 or 2.
 *
 * A lane owns some channels of a strip of dx columns and walks down a band of rows, with the sums of the rows that windows share in
 * registers and the loads of the next rows in flight.
 * Refused: other windows and layouts, i32 indices. */
#include "pool_gradient.cuh"

enum { SIZE = 3, WARPS = 4 };             /* WARPS: of a block */

struct lanes : gradient {
  int32_t  band, images;                  /* rows of a band; images whose channels are packed together into warps, so that few lanes idle */
  uint32_t warps;
  /* extents of the grid: strips of columns; warps of the packed channels; bands; lanes of a pixel */
  cuda_divisor by_strips, by_chunks, by_bands, by_lanes;
};

/* ---- a strip ------------------------------------------------------------------------------------------------------ */

struct strip { int n, x0, top, end, c; };            /* rows top..end-1 of dx; c: this lane's first channel */

__device__ __forceinline__ bool strip_of(strip &s, const lanes &p, int columns, int channels)
{
  const uint32_t warp = __shfl_sync(~0u, blockIdx.x * WARPS + threadIdx.x / 32, 0);         /* the shuffle shows that it is uniform */
  uint32_t chunk, column, band, lane;
  const uint32_t first =
    cuda_quotient(cuda_quotient(cuda_quotient(warp, p.by_chunks, &chunk), p.by_strips, &column), p.by_bands, &band) * p.images;
  const uint32_t image = cuda_quotient(chunk * 32 + threadIdx.x % 32, p.by_lanes, &lane);
  s.n = (int)(first + image);
  s.x0 = (int)column * columns;
  s.top = (int)band * p.band, s.end = min(s.top + p.band, p.in[1]);
  s.c = (int)lane * channels;
  return warp < p.warps && image < (uint32_t)p.images && s.n < (int)p.n;
}

/* store(a) for each column of a strip; without a test for each where all exist. */
template <int COLUMNS, class F> __device__ __forceinline__ void over_columns(int columns, F store)
{
  if (columns == COLUMNS) {
#pragma unroll
    for (int a = 0; a < COLUMNS; a++) store(a);
  } else {
#pragma unroll
    for (int a = 0; a < COLUMNS - 1; a++)
      if (a < columns) store(a);
  }
}

/* ---- by index ----------------------------------------------------------------------------------------------------------- */

enum { SCATTER_COLUMNS = 4 };

/* A window's tap number becomes a one-hot mask that predicates nine adds. BLOCKS: resident on an SM; AHEAD: rows of windows in flight. */
template <int dtype, int how, int STEP, int BLOCKS, int AHEAD>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) lanes_scatter(const __grid_constant__ lanes p)
{
  /* window k begins FIRST + k STEP columns right of the strip */
  enum { COLUMNS = SCATTER_COLUMNS, L = per_word<dtype>, bytes = 4 / L, INDEX = how == BY_PLACE ? 8 : 1, KEPT = SIZE - STEP,
         FIRST = STEP == 1 ? -2 : -1, WINDOWS = (COLUMNS - 1 - FIRST) / STEP + 1 };
  strip s;
  if (!strip_of(s, p, COLUMNS, L)) return;
  /* one row of windows past the last may be needed to complete dx */
  const int oy_begin = max((s.top + 1 - SIZE + STEP) / STEP, 0), oy_end = s.end / STEP + 1, ox = (s.x0 + FIRST + 1) / STEP,
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
    alignas(16) int64_t place[how == BY_PLACE ? WINDOWS : 1][L];
  };
  const auto load = [&](line &l, int oy) {
    const uint32_t o = min(oy, p.out[1] - 1);
    const char *const dy_row = dy + o * p.of_dy.y * bytes, *const index_row = index + o * p.of_index.y * INDEX;
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      l.dy[k] = *(const uint32_t *)(dy_row + dy_at[k]);
      const char *const from = index_row + index_at[k];
      if constexpr (how == BY_TAP) l.tap[k] = L == 2 ? *(const uint16_t *)from : *(const uint8_t *)from;
      else if constexpr (L == 2) *(longlong2 *)l.place[k] = *(const longlong2 *)from;
      else *l.place[k] = *(const int64_t *)from;
    }
  };

  float sum[SIZE][COLUMNS][L] = {};
  look_ahead<line, AHEAD>(oy_begin, oy_end, load, [&](int oy, int, const line &l, auto next) {
    const int y0 = oy * STEP - 1;
    const line now = l;
    next();
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      const bool there = (unsigned)(ox + k) < (unsigned)p.out[2] && oy < p.out[1];
#pragma unroll
      for (int i = 0; i < L; i++) {
        const float v = there ? word_get<dtype>(now.dy[k], i) : 0;
        const uint32_t tap = how == BY_TAP ? now.tap[how == BY_TAP ? k : 0] >> 8 * i & 255
                                           : tap_of<SIZE>(place_among(now.place[how == BY_PLACE ? k : 0][i]),
                                                          y0 * p.in[2] + s.x0 + FIRST + k * STEP, p.in[2]);
        const uint32_t bits = tap < SIZE * SIZE ? 1u << tap : 0;
#pragma unroll
        for (int r = 0; r < SIZE; r++)
#pragma unroll
          for (int c = 0; c < SIZE; c++) {
            const int column = k * STEP + c + FIRST;
            if (column >= 0 && column < COLUMNS) add_at_bit(sum[r][column < 0 ? 0 : column % COLUMNS][i], bits, r * SIZE + c, v);
          }
      }
    }
#pragma unroll
    for (int r = 0; r < STEP; r++) {      /* rows that no later window covers are complete */
      const int y = y0 + r;
      if (y < s.top || y >= s.end) continue;
      char *const to = dx + (uint32_t)(y * p.of_dx.y * bytes);
      over_columns<COLUMNS>(columns, [&](int a) { *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word_of<dtype>(sum[r][a]); });
    }
#pragma unroll
    for (int r = 0; r < SIZE; r++)
#pragma unroll
      for (int a = 0; a < COLUMNS; a++)
#pragma unroll
        for (int i = 0; i < L; i++) sum[r][a][i] = r < KEPT ? sum[r < KEPT ? r + STEP : r][a][i] : 0;
  });
}

/* ---- from x ---------------------------------------------------------------------------------------------------------- */

/* Separable, as in pool_walk.cu: from a window to the row that holds its maximum, from a row's segment to its place. */

template <int dtype> __device__ __forceinline__ uint32_t larger_word(uint32_t a, uint32_t b)
{
  if constexpr (dtype == QN_F32) return __float_as_uint(larger(__uint_as_float(a), __uint_as_float(b)));
  else return larger_pair<dtype>(a, b);
}

/* add_to_first() for both channels of a word, or the one. */
template <int dtype, int begun>
__device__ __forceinline__ void add_word_to_first(float (&a)[per_word<dtype>], float (&b)[per_word<dtype>], float (&c)[per_word<dtype>],
                                                  uint32_t x, uint32_t y, uint32_t largest, const float (&v)[per_word<dtype>])
{
  add_to_first<dtype, 0, begun>(a[0], b[0], c[0], x, y, largest, v[0]);
  if constexpr (dtype != QN_F32) add_to_first<dtype, 1, begun>(a[1], b[1], c[1], x, y, largest, v[1]);
}

/* base + number * size */
__device__ __forceinline__ const char *address(const char *base, int number, uint32_t size)
{
  return base + (uint64_t)(uint32_t)number * size;
}

/* COLUMNS: of a strip; AHEAD: rows of windows loaded ahead, 1 or 3; BLOCKS: resident on an SM. */
template <int dtype, int STEP, int COLUMNS, int AHEAD, int BLOCKS>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_recompute(const __grid_constant__ lanes p)
{
  /* the x loaded begins BEFORE columns left of the strip */
  enum { L = per_word<dtype>, bytes = 4 / L, KEPT = SIZE - STEP, FIRST = (2 - SIZE) / STEP, WINDOWS = COLUMNS / STEP - FIRST + 1,
         ACROSS = (WINDOWS - 1) * STEP + SIZE, BEFORE = 1 - FIRST * STEP };
  strip s;
  if (!strip_of(s, p, COLUMNS, L)) return;
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
  float received[SIZE][WINDOWS][L];
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
      for (int i = 0; i < L; i++) received[r][k][i] = 0;
  }

  /* not by look_ahead(), with which registers spill */
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
        for (int i = 0; i < L; i++) v[i] = word_get<dtype>(now[k], i);
        add_word_to_first<dtype, KEPT>(received[first][k], received[second][k], received[third][k], most[first][k], most[second][k],
                               larger_word<dtype>(larger_word<dtype>(most[first][k], most[second][k]), most[third][k]), v);
      }
      load(l, min(oy + AHEAD, oy_end - 1));
      if (y0 < 0)
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
#pragma unroll
          for (int i = 0; i < L; i++) received[second][k][i] += received[first][k][i];
#pragma unroll
      for (int r = 0; r < STEP; r++) {    /* rows that no later window covers are complete */
        const int line = (first + r) % SIZE, y = y0 + r;
        if (y < s.top || y >= s.end) continue;
        float sum[ACROSS][L];
#pragma unroll
        for (int k = 0; k < WINDOWS; k++) {
          const auto across_row = k ? add_word_to_first<dtype, KEPT> : add_word_to_first<dtype, 0>;
          across_row(sum[k * STEP], sum[k * STEP + 1], sum[k * STEP + 2], number[line][k * STEP], number[line][k * STEP + 1],
                      most[line][k], received[line][k]);
        }
        if (s.x0 == 0)
#pragma unroll
          for (int i = 0; i < L; i++) sum[BEFORE][i] += sum[BEFORE - 1][i];
        const char *const to = address(dx, y, dx_line);
        over_columns<COLUMNS>(columns, [&](int b) {
          *(uint32_t *)(char *)address(to, b, dx_pixel) = word_of<dtype>(sum[BEFORE + b]);
        });
      }
    }
}

/* ---- means ----------------------------------------------------------------------------------------------------------- */

enum { MEANS_COLUMNS = 2, LEAST = 8 };    /* LEAST: rows of a band */

/* Separably: a lane has a 16-byte vector of channels; each row of windows is summed across once and reused for all rows of dx that it
 * covers. Loads of AHEAD rows are in flight. */
template <int dtype, int STEP, bool even> __global__ void __launch_bounds__(WARPS * 32) pool_means(const __grid_constant__ lanes p)
{
  constexpr int V = vector_per_16<dtype>, COLUMNS = MEANS_COLUMNS, AHEAD = 2, WINDOWS = (COLUMNS - 1) / STEP + SIZE - STEP + 1,
                KEPT = SIZE - STEP;
  strip s;
  if (!strip_of(s, p, COLUMNS, V)) return;
  const int x0 = s.x0, top = s.top, end = s.end, columns = min((int)COLUMNS, p.in[2] - x0);
  const int ox = (x0 + p.before[2] - SIZE + STEP) / STEP;       /* the first window that covers the first column */
  const char *const dy = (const char *)p.dy + (s.n * p.y_stride[0] + s.c) * (16 / V);
  char *const dx = (char *)p.dx + (s.n * p.dx_stride[0] + s.c + (int64_t)x0 * p.of_dx.x) * (16 / V);

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

enum { IN_FLIGHT = 32 };                  /* warps wanted per SM, if bands of 16 rows yield as many */

struct form { pool_kernel kernel; int columns, bytes; };   /* a kernel, the columns of its strips, the bytes of channels of a lane */

template <int dtype> static form form_of(int how, int window, bool even)
{
  constexpr bool half = dtype != QN_F32;
  if (how == MEANS) {
    const int step = window == 321 ? 2 : window / 10 == 31 && window % 10 < SIZE;
    return { cuda_pick<1, 2>(step, [&](auto n) {
               return even ? (pool_kernel)pool_means<dtype, n(), true> : (pool_kernel)pool_means<dtype, n(), false>;
             }), MEANS_COLUMNS, 16 };
  }
  if (how == BY_X && window == 321) return { (pool_kernel)pool_recompute<dtype, 2, half ? 4 : 8, 3, half ? 4 : 2>, half ? 4 : 8, 4 };
  if (how == BY_X && window == 311) return { (pool_kernel)pool_recompute<dtype, 1, 7, half ? 1 : 3, half ? 3 : 2>, 7, 4 };
  if (how == BY_TAP && window == 321) return { (pool_kernel)lanes_scatter<dtype, BY_TAP, 2, 7, 3>, SCATTER_COLUMNS, 4 };
  if (how == BY_TAP && window == 311) return { (pool_kernel)lanes_scatter<dtype, BY_TAP, 1, 5, 2>, SCATTER_COLUMNS, 4 };
  if (how == BY_PLACE && window == 321) return { (pool_kernel)lanes_scatter<dtype, BY_PLACE, 2, 5, 1>, SCATTER_COLUMNS, 4 };
  if (how == BY_PLACE && window == 311) return { (pool_kernel)lanes_scatter<dtype, BY_PLACE, 1, 4, 1>, SCATTER_COLUMNS, 4 };
  return {};
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<lanes> s = {};
  const qn_status status = gradient_read(&s, r, out);
  if (status != QN_OK) return status;
  lanes *p = &s.p;
  if (gradient_channels(&s, r) == 1)
    return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "other strides");
  if (!p->flat || p->size[0] > 1) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  if (!p->average && p->in[2] < p->size[2]) return qn_refuse(out, "rows as wide as a window", "dx", "3", "%d", p->in[2]);
  if (s.of.indices >= 0 && p->index_dtype == QN_I32) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  const double row = (double)qn_max_i64(p->in[2] * (int64_t)p->of_dx.x, p->out[2] * (int64_t)p->of_dy.x);
  if (p->average && row * qn_kit_bytes(p->dtype) > INT32_MAX)
    return qn_refuse(out, "of means, rows of less than 2 GiB", "dx", "", "%s", "more");
  const qn_node *op = &r->op[0];
  for (int i = 0; i < op->first[op->n_roles]; i++)          /* maxima's offsets have 32 bits */
    if (!p->average && qn_extent_bytes(&r->value[op->arg[i]]) >> 32) return qn_refuse(out, "tensors below 4 GiB", "dx", "", "%s", "more");
  const form form = cuda_by_dtype(p->dtype, [&](auto dtype) { return form_of<dtype()>(s.how, square_of(p), p->even); });
  if (!form.kernel)
    return qn_refuse(out, "windows of 3x3, but of means of stride 1 with padding 1", "dx", "stride 1 or 2", "%dx%d", p->size[1],
                     p->size[2]);
  s.kernel = form.kernel;

  /* the grid of warps: strips of columns, words of channels, bands */
  const int64_t strips = qn_ceil_div(p->in[2], form.columns), pixel = p->c * (int64_t)qn_kit_bytes(p->dtype) / form.bytes;
  int64_t across = INT64_MAX;             /* warps of all images' channels */
  for (int64_t images = 1; images <= qn_min_i64(32, p->n); images *= 2) {
    const int64_t warps = qn_ceil_div(p->n, images) * qn_ceil_div(images * pixel, 32);
    if (warps < across) across = warps, p->images = (int32_t)images;
  }
  across *= strips;
  const int64_t least = qn_min_i64(qn_ceil_div(p->in[1], 16), qn_ceil_div(IN_FLIGHT * (int64_t)r->device->units, across));
  const int64_t bands = qn_max_i64(qn_ceil_div(p->in[1], 1024), p->average ? p->in[1] / LEAST : least);
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], bands), p->average ? p->step[1] : 2);
  const int64_t whole = qn_ceil_div(p->in[1], p->band);
  p->warps = (uint32_t)(across * whole);
  p->by_strips = cuda_divide_by(strips), p->by_chunks = cuda_divide_by(qn_ceil_div(p->images * pixel, 32)),
  p->by_bands = cuda_divide_by(whole), p->by_lanes = cuda_divide_by(pixel);
  return pool_keep(&s, 32 * (double)across * (double)whole, 32 * WARPS, 2000, out);
}

static const qn_engine row[] = { pool_row<lanes>("lanes", QN_OP_POOL_MAX_BACKWARD, prepare),
                                 pool_row<lanes>("lanes", QN_OP_POOL_AVERAGE_BACKWARD, prepare) };
CUDA_ENGINES(pool_lanes) = { row, sizeof row / sizeof *row };
