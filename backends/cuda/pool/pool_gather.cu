/* pool_gather.cu -- gradients of pooling of any windows and any layout, f16, bf16 and f32.
 *
 * A thread computes V neighbours (channels or columns, whichever is contiguous) or one place, in ROWS rows: what a window gives is loaded
 * once for all of them. Norms take columns one by one.
 * Of unequal adaptive means, channels last, a thread instead fills what a window determines.
 * Refused: maxima without indices, images of more than 2^31 elements, lp powers above 64. */
#include "pool_found.cuh"
#include "pool_gradient.cuh"

enum { THREADS = 128, ROWS = 4 };         /* ROWS: of dx, a thread */

__device__ __forceinline__ bool holds(const gradient &p, int d, int begin, int size, int place)
{
  bool within = (unsigned)(place - begin) < (unsigned)((size - 1) * p.dilation[d] + 1);
  if (p.dilation[d] > 1 && within) {
    uint32_t rest;
    cuda_quotient(place - begin, p.by_dilation[d], &rest);
    within = rest == 0;
  }
  return within;
}

/* The offset of a tap, from its number; -1: no such tap, or outside x. */
__device__ __forceinline__ int place_of_tap(const gradient &p, const window &w, uint32_t tap)
{
  uint32_t r[3];
  uint32_t beyond = cuda_quotient(cuda_quotient(cuda_quotient(tap, p.by_size[2], &r[2]), p.by_size[1], &r[1]), p.by_size[0], &r[0]);
  int at[3];
  bool inside = beyond == 0;
#pragma unroll
  for (int d = 0; d < 3; d++) at[d] = w.begin[d] + (int)r[d] * p.dilation[d], inside &= (unsigned)at[d] < (unsigned)p.in[d];
  return inside ? (at[0] * p.in[1] + at[1]) * p.in[2] + at[2] : -1;
}

/* The offsets of the maxima of U channels of a window. */
template <int U>
__device__ __forceinline__ void places_of(int (&place)[U], const gradient &p, uint32_t n, int index, const window &w)
{
  alignas(16) int64_t at[U];
  indices_load(at, p, n, index);
#pragma unroll
  for (int i = 0; i < U; i++) place[i] = p.index_dtype == QN_U8 ? place_of_tap(p, w, (uint32_t)at[i]) : place_among(at[i]);
}

template <int dtype, int V, bool columns, bool lp>
__global__ void __launch_bounds__(THREADS) pool_gather(const __grid_constant__ gradient p)
{
  constexpr int U = columns ? 1 : V;      /* values of dy per window */
  uint32_t at[4], n = blockIdx.x * THREADS + threadIdx.x;
  if (n >= p.units) return;
  n = cell_of(p, n, at);
  const bool last = !columns || (V == 1 && p.channels_last);
  const int c = (int)(last ? at[0] * U : at[3]), x = (int)(last ? at[1] : at[0] * V), y = (int)(last ? at[2] : at[1]) * ROWS,
            z = (int)(last ? at[3] : at[2]);
  const int pitch = p.in[2], here = (z * p.in[1] + y) * pitch + x;
  const void *dy_image = vector_place<dtype>(p.dy, n * p.y_stride[0]);
  const range deep = windows_over(p, 0, z, z + 1), high = windows_over(p, 1, y, min(y + ROWS, p.in[1])),
              wide = windows_over(p, 2, x, x + (columns ? V : 1));
  float sum[ROWS][V] = {}, own[lp ? ROWS : 1][V];
  if constexpr (lp)
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      fetch<dtype>(own[r], vector_place<dtype>(p.x, n * p.x_stride[0]),
                   c * p.of_x.c + z * p.of_x.z + min(y + r, p.in[1] - 1) * p.of_x.y + x * p.of_x.x);
  window w;
#pragma unroll 1
  for (int oz = deep.begin; oz < deep.end; oz++) {
    w.begin[0] = window_begin(p, 0, oz), w.size[0] = window_size(p, 0, oz);
    if (p.dilation[0] > 1 && !holds(p, 0, w.begin[0], w.size[0], z)) continue;
#pragma unroll 1
    for (int oy = high.begin; oy < high.end; oy++) {
      w.begin[1] = window_begin(p, 1, oy), w.size[1] = window_size(p, 1, oy);
      float taps = 1;                     /* of the window in the outer dims */
      if (p.average && !p.even) taps = (float)taps_of(p, 0, w.begin[0], w.size[0]) * (float)taps_of(p, 1, w.begin[1], w.size[1]);
#pragma unroll 1
      for (int ox = wide.begin; ox < wide.end; ox++) {
        w.begin[2] = window_begin(p, 2, ox), w.size[2] = window_size(p, 2, ox);
        const int second = c * p.of_index.c + oz * p.of_index.z + oy * p.of_index.y + ox * p.of_index.x;    /* in the indices, or y */
        float dy[U], norm[lp ? U : 1];
        int place[U] = {};
        fetch<dtype>(dy, dy_image, c * p.of_dy.c + oz * p.of_dy.z + oy * p.of_dy.y + ox * p.of_dy.x);
        if constexpr (lp) fetch<dtype>(norm, vector_place<dtype>(p.y, n * p.index_stride[0]), second);
        else if (!p.average) places_of(place, p, n, second, w);
        const float share = !p.average ? 1 : p.even ? p.share : 1 / (taps * (float)taps_of(p, 2, w.begin[2], w.size[2]));
        bool column[columns ? V : 1];
#pragma unroll
        for (int i = 0; i < (columns ? V : 1); i++) column[i] = holds(p, 2, w.begin[2], w.size[2], x + i);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
          if (!holds(p, 1, w.begin[1], w.size[1], y + r)) continue;
          if constexpr (lp) {
            if (column[0]) lp_gradient(sum[r], own[r], norm, dy, p.p);
          } else
#pragma unroll
            for (int i = 0; i < V; i++)
              if (column[columns ? i : 0] && (p.average || place[i % U] - here == r * pitch + (columns ? i : 0)))
                sum[r][i] = fmaf(dy[i % U], share, sum[r][i]);
        }
      }
    }
  }
  void *to = (void *)vector_place<dtype>(p.dx, n * p.dx_stride[0]);
  int beyond = c * p.of_dx.c + z * p.of_dx.z + y * p.of_dx.y + x * p.of_dx.x;
#pragma unroll
  for (int r = 0; r < ROWS; r++, beyond += p.of_dx.y) {
    if (y + r >= p.in[1]) break;
    if constexpr (V == 1) edge_store<dtype>(to, beyond, sum[r][0]);
    else vector_store_whole<dtype>(sum[r], to, beyond);
  }
}

/* ---- unequal adaptive means ------------------------------------------------------------------------------------------ */

/* A thread fills, for a vector of channels, p.band rows of the rectangle of places of which its window is the last. With no more windows
 * than places, the window before covers at most the first row or column of them too: so dx has four values there. */
template <int dtype> __global__ void __launch_bounds__(THREADS) pool_fill(const __grid_constant__ gradient p)
{
  constexpr int V = vector_per_16<dtype>;
  uint32_t at[4], n = blockIdx.x * THREADS + threadIdx.x; /* vector, window of a row, part of its rectangle, row of windows */
  if (n >= p.units) return;
  n = cell_of(p, n, at);
  const int c = (int)at[0] * V, ox = (int)at[1], oy = (int)at[3];
  const int left = window_begin(p, 2, ox), right = ox + 1 < p.out[2] ? window_begin(p, 2, ox + 1) : p.in[2], above = window_begin(p, 1, oy),
            top = above + (int)at[2] * p.band, end = min(top + p.band, oy + 1 < p.out[1] ? window_begin(p, 1, oy + 1) : p.in[1]);
  if (top >= end) return;
  const auto seam = [&](int d, int o, int begin) { return o > 0 && window_begin(p, d, o - 1) + window_size(p, d, o - 1) > begin; };
  const bool across = seam(2, ox, left), down = top == above && seam(1, oy, above);
  const void *const dy = vector_place<dtype>(p.dy, n * p.y_stride[0]);
  float sum[2][2][V] = {};                /* of inner rows, the first; of inner columns, the first */
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int b = 0; b < 2; b++) {
      if ((a && !down) || (b && !across)) continue;
      const float share = 1 / (float)(window_size(p, 1, oy - a) * window_size(p, 2, ox - b));
      float v[V];
      vector_load_whole<dtype>(v, dy, c + (oy - a) * p.of_dy.y + (ox - b) * p.of_dy.x);
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int k = 0; k < V; k++)
          if (a <= i / 2 && b <= i % 2) sum[i / 2][i % 2][k] = fmaf(v[k], share, sum[i / 2][i % 2][k]);
    }
  const uint4 first_row[2] = { vector_close<dtype>(sum[1][0], 0), vector_close<dtype>(sum[1][1], 0) },
              rows[2] = { vector_close<dtype>(sum[0][0], 0), vector_close<dtype>(sum[0][1], 0) };
  const void *const to = vector_place<dtype>(p.dx, n * p.dx_stride[0]);
#pragma unroll 1
  for (int y = top; y < end; y++) {
    const bool first = y == above;
    const uint4 inner = first ? first_row[0] : rows[0], edge = first ? first_row[1] : rows[1];
#pragma unroll 4
    for (int x = left; x < right; x++)
      *(uint4 *)vector_place<dtype>(to, c + y * p.of_dx.y + x * p.of_dx.x) = x == left ? edge : inner;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype> static pool_kernel gather_of(bool channels, bool columns, bool lp)
{
  constexpr int V = vector_per_16<dtype>;
  if (lp) return channels ? (pool_kernel)pool_gather<dtype, V, false, true> : (pool_kernel)pool_gather<dtype, 1, true, true>;
  return channels  ? (pool_kernel)pool_gather<dtype, V, false, false>
         : columns ? (pool_kernel)pool_gather<dtype, V, true, false>
                   : (pool_kernel)pool_gather<dtype, 1, true, false>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<gradient> s = {};
  const qn_status status = gradient_read(&s, r, out);
  if (status != QN_OK) return status;
  gradient *p = &s.p;
  const qn_value *dx = &r->value[s.of.dx];
  const int v = dx->dtype == QN_F32 ? 4 : 8;
  const bool lp = s.how == LP;
  if (s.how == BY_X) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  const bool channels = gradient_channels(&s, r) > 1;
  if (channels && p->average && p->adaptive && p->flat && p->out[1] <= p->in[1] && p->out[2] <= p->in[2]) {
    /* as many rows a thread as still leave enough threads to fill the device several times */
    const int64_t most = qn_ceil_div(p->in[1], p->out[1]), windows = p->out[1] * (int64_t)p->out[2] * p->c / v * p->n;
    p->band = (int32_t)qn_max_i64(1, most * windows / (4 * 2048 * (int64_t)r->device->units));
    const int64_t cells[4] = { p->c / v, p->out[2], qn_ceil_div(most, p->band), p->out[1] };
    s.kernel = cuda_by_dtype(p->dtype, [](auto dtype) { return (pool_kernel)pool_fill<dtype()>; });
    return pool_keep(&s, pool_units(p, cells), THREADS, 4000, out);
  }
  bool columns = s.of.x < 0 && p->in[2] % v == 0 && p->dx_stride[4] == 1 && dx->align >= 16;
  for (int d = 0; d < 4; d++) columns &= p->dx_stride[d] % v == 0;
  p->channels_last = dx->dim[1] > 1 && dx->stride[1] == 1 && !columns;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) { return gather_of<dtype()>(channels, columns, lp); });
  const int64_t c = p->c, down = qn_ceil_div(p->in[1], ROWS), across = columns ? p->in[2] / v : p->in[2];
  const int64_t first[4] = { across, down, p->in[0], c }, behind[4] = { channels ? c / v : c, across, down, p->in[0] };
  return pool_keep(&s, pool_units(p, channels || p->channels_last ? behind : first), THREADS, 300, out);
}

static const qn_engine row[] = { POOL_BACKWARD_ROWS(gradient, "gather", prepare),
                                 pool_row<gradient>("gather", QN_OP_POOL_LP_BACKWARD, prepare) };
CUDA_ENGINES(pool_gather) = { row, sizeof row / sizeof *row };
