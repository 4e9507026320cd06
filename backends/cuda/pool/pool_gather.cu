/* pool_gather.cu -- gradients of pooling of any windows and any layout, f16, bf16 and f32.
 *
 *   max       dx[x] = the sum of dy over the windows whose index is x
 *   average   dx[x] = the sum of dy / divisor over the windows that cover x
 *   lp        dx[x] = the sum of dy sign(x) (|x| / y)^(p - 1) over the windows that cover x, 0 where y is 0
 *
 * A thread computes V neighbours (channels or columns, whichever is contiguous) or one place, in ROWS rows: what a window gives is loaded
 * once for all of them. Norms take columns one by one.
 * plates: means of unequal windows, channels last, no more windows than places: a thread fills the rectangle of dx that a window
 *   determines.
 * Refused: maxima without indices, images of more than 2^31 elements, lp powers above 64. */
#include "pool_gradient.cuh"
#include "kit/words.cuh"

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
#pragma unroll
  for (int d = 0; d < 4; d++) n = cuda_quotient(n, p.by_cell[d], &at[d]);
  const bool last = !columns || (V == 1 && p.channels_last);
  const int c = (int)(last ? at[0] * U : at[3]), x = (int)(last ? at[1] : at[0] * V), y = (int)(last ? at[2] : at[1]) * ROWS,
            z = (int)(last ? at[3] : at[2]);
  const int pitch = p.in[2], here = (z * p.in[1] + y) * pitch + x;
  const void *dy_image = image_of<dtype>(p.dy, n, p.y_stride[0]);
  const range deep = windows_over(p, 0, z, z + 1), high = windows_over(p, 1, y, min(y + ROWS, p.in[1])),
              wide = windows_over(p, 2, x, x + (columns ? V : 1));
  float sum[ROWS][V] = {}, own[lp ? ROWS : 1][V];
  if constexpr (lp)
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      fetch<dtype>(own[r], image_of<dtype>(p.x, n, p.x_stride[0]),
                   c * p.of_x.c + z * p.of_x.z + min(y + r, p.in[1] - 1) * p.of_x.y + x * p.of_x.x);
#pragma unroll 1
  for (int oz = deep.begin; oz < deep.end; oz++)
#pragma unroll 1
    for (int oy = high.begin; oy < high.end; oy++)
#pragma unroll 1
      for (int ox = wide.begin; ox < wide.end; ox++) {
        const int o[3] = { oz, oy, ox };
        const window w = window_of(p, o);
        if (p.dilation[0] > 1 && !holds(p, 0, w.begin[0], w.size[0], z)) continue;
        const int second = c * p.of_index.c + oz * p.of_index.z + oy * p.of_index.y + ox * p.of_index.x;    /* in the indices, or y */
        float dy[U], norm[lp ? U : 1];
        int place[U] = {};
        fetch<dtype>(dy, dy_image, c * p.of_dy.c + oz * p.of_dy.z + oy * p.of_dy.y + ox * p.of_dy.x);
        if constexpr (lp) fetch<dtype>(norm, image_of<dtype>(p.y, n, p.index_stride[0]), second);
        else if (!p.average) places_of(place, p, n, second, w);
        const float share = !p.average ? 1 : p.even ? p.share : 1 / divisor_of(p, w);
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
  void *to = (void *)image_of<dtype>(p.dx, n, p.dx_stride[0]);
  int beyond = c * p.of_dx.c + z * p.of_dx.z + y * p.of_dx.y + x * p.of_dx.x;
#pragma unroll
  for (int r = 0; r < ROWS; r++, beyond += p.of_dx.y) {
    if (y + r >= p.in[1]) break;
    if constexpr (V == 1) edge_store<dtype>(to, beyond, sum[r][0]);
    else vector_store_whole<dtype>(sum[r], to, beyond);
  }
}

/* ---- plates ----------------------------------------------------------------------------------------------------- */

__device__ __forceinline__ range places_in(const gradient &p, int d, int window)
{
  return { (int)cuda_quotient(window * p.in[d], p.by_out[d]),
           (int)cuda_quotient((window + 1) * p.in[d] + p.out[d] - 1, p.by_out[d]) };
}

/* Along a dim: `alone` are the places of window i only; seam: one more place follows that window i + 1 covers too. With no more
 * windows than places, no place is in more than two windows. */
struct plate { range alone; int seam, size[2]; };
__device__ __forceinline__ plate plate_of(const gradient &p, int d, int i)
{
  const range here = places_in(p, d, i), next = places_in(p, d, min(i + 1, p.out[d] - 1));
  const int begin = (int)cuda_quotient(i * p.in[d] + p.out[d] - 1, p.by_out[d]), seam = i + 1 < p.out[d] && next.begin < here.end;
  return { { begin, here.end - seam }, seam, { here.end - here.begin, next.end - next.begin } };
}

/* A thread writes a vector of channels for p.band rows of a plate and its seams: dx is constant within a plate, and along a seam. */
template <int dtype> __global__ void __launch_bounds__(THREADS) pool_plates(const __grid_constant__ gradient p)
{
  constexpr int V = vector_per_16<dtype>;
  uint32_t at[4], n = blockIdx.x * THREADS + threadIdx.x;                 /* vector, window of a row, part of its plate, row of windows */
  if (n >= p.units) return;
#pragma unroll
  for (int d = 0; d < 4; d++) n = cuda_quotient(n, p.by_cell[d], &at[d]);
  const plate across = plate_of(p, 2, (int)at[1]), down = plate_of(p, 1, (int)at[3]);
  const int top = down.alone.begin + (int)at[2] * p.band, end = min(top + p.band, down.alone.end + down.seam);
  if (top >= end) return;
  const int c = (int)at[0] * V, from = c + (int)at[3] * p.of_dy.y + (int)at[1] * p.of_dy.x;
  const void *dy = image_of<dtype>(p.dy, n, p.y_stride[0]);
  const bool below = end > down.alone.end;
  uint4 q[2][2];
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int b = 0; b < 2; b++)
      q[a][b] = *vector_place<dtype>(dy, from + (a && below ? p.of_dy.y : 0) + (b && across.seam ? p.of_dy.x : 0));
  float sum[2][V] = {};                   /* where one window covers, where two do */
  const auto add = [&](int a) {           /* adds a row of windows */
#pragma unroll
    for (int b = 0; b < 2; b++) {
      const float share = 1 / (float)(down.size[a] * across.size[b]);
      float v[V];
      vector_open<dtype>(v, 0, q[a][b]);
#pragma unroll
      for (int k = 0; k < V; k++) {
        v[k] *= share;
        if (b == 0) sum[0][k] += v[k];
        sum[1][k] += v[k];
      }
    }
  };
  char *to = (char *)vector_place<dtype>(image_of<dtype>(p.dx, n, p.dx_stride[0]), c + top * p.of_dx.y + across.alone.begin * p.of_dx.x);
  const int64_t row = p.of_dx.y * (int64_t)bytes_of<dtype>, column = p.of_dx.x * (int64_t)bytes_of<dtype>;
  const auto store = [&](int rows) {
    const uint4 alone = vector_close<dtype>(sum[0], 0), both = vector_close<dtype>(sum[1], 0);
#pragma unroll 1
    for (int r = 0; r < rows; r++, to += row) {
      char *place = to;
#pragma unroll 4
      for (int x = across.alone.begin; x < across.alone.end; x++, place += column) *(uint4 *)place = alone;
      if (across.seam) *(uint4 *)place = both;
    }
  };
  add(0);
  store(min(end, down.alone.end) - top);
  if (!below) return;
  add(1);
  store(1);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* The grid of plates: as many rows a thread as still leave enough threads to fill the device several times. */
static bool units_of_plates(gradient *p, int64_t vectors, int64_t processors)
{
  const int64_t windows = p->out[1] * (int64_t)p->out[2] * vectors * p->n, most = qn_ceil_div(p->in[1], p->out[1]);
  p->band = (int32_t)qn_max_i64(1, most * windows / (4 * 2048 * processors));
  const int64_t cells[4] = { vectors, p->out[2], qn_ceil_div(most, p->band), p->out[1] };
  return pool_units(p, cells);
}

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
  const bool lp = s.of.y >= 0;
  if (s.of.x >= 0 && !lp) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  if (lp && p->p > LP_MOST) return qn_refuse(out, "powers that are floats", "p", "at most 64", "%g", p->p);
  const bool channels = gradient_channels(&s, r) > 1;
  if (channels && p->average && p->adaptive && p->flat && p->out[1] <= p->in[1] && p->out[2] <= p->in[2]) {
    if (!units_of_plates(p, p->c / v, r->device->units)) return qn_refuse(out, "fewer than 2^31 cells", "dx", "", "%s", "more");
    s.kernel = cuda_by_dtype(p->dtype, [](auto dtype) { return (pool_kernel)pool_plates<dtype()>; });
    return pool_keep(&s, p->units, THREADS, 4000, out);
  }
  bool columns = s.of.x < 0 && p->in[2] % v == 0 && p->dx_stride[4] == 1 && dx->align >= 16;
  for (int d = 0; d < 4; d++) columns &= p->dx_stride[d] % v == 0;
  p->channels_last = dx->dim[1] > 1 && dx->stride[1] == 1 && !columns;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) { return gather_of<dtype()>(channels, columns, lp); });
  const int64_t c = p->c, down = qn_ceil_div(p->in[1], ROWS), across = columns ? p->in[2] / v : p->in[2];
  const int64_t first[4] = { across, down, p->in[0], c }, behind[4] = { channels ? c / v : c, across, down, p->in[0] };
  if (!pool_units(p, channels || p->channels_last ? behind : first))
    return qn_refuse(out, "fewer than 2^31 cells", "dx", "", "%s", "more");
  return pool_keep(&s, p->units, THREADS, 300, out);
}

static const qn_engine row[] = { pool_row<gradient>("gather", QN_OP_POOL_MAX_BACKWARD, prepare),
                                 pool_row<gradient>("gather", QN_OP_POOL_AVERAGE_BACKWARD, prepare),
                                 pool_row<gradient>("gather", QN_OP_POOL_ADAPTIVE_MAX_BACKWARD, prepare),
                                 pool_row<gradient>("gather", QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD, prepare),
                                 pool_row<gradient>("gather", QN_OP_POOL_LP_BACKWARD, prepare) };
CUDA_ENGINES(pool_gather) = { row, sizeof row / sizeof *row };
