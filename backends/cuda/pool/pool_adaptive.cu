/* pool_adaptive.cu -- adaptive pooling (max and average) and its gradients, where window sizes differ.
 *
 *   x [N, C, X]   y, indices [N, C, P]; in each dim window i covers floor(i X / P) up to ceil((i + 1) X / P)
 *   backward      dx = the sum of dy over the windows whose index is this position, or of dy / taps over those that cover it:
 *                 position a lies in windows floor(a P / X) up to ceil((a + 1) P / X), the same formula with x and y exchanged
 *
 * adaptive: forward, a thread computes one position of y in several layers (see spatial.cuh). Backward, a thread computes several
 *   rows of V neighbours of dx (channels if they are contiguous, else columns), so dy is read once for all of them; for means
 *   with channels last, a thread fills the rectangle of dx that one window determines (adaptive_plates). f16, bf16, f32.
 * direct: one position a thread, any strides and sizes, in double. */
#include "kit/divisor.h"
#include "engines.h"
#include "kit/dispatch.cuh"
#include "kit/spatial.cuh"
#include "kit/vector.cuh"

struct sharing : spatial {
  void    *indices;                       /* NULL: none */
  int32_t  average, wide;                 /* wide: i64 indices */
  int64_t  index_stride[5], index_layer;  /* N, C, spatial; between layers */
  int32_t  whole_indices;                 /* backward: the i32 indices of a vector of channels are contiguous and aligned */
  int32_t  units, rows;                   /* backward: threads; rows of dx a thread (plates) */
  cuda_divisor by_cells[5];               /* innermost first: vectors, positions of a row, bands of rows, depth, channels */
  cuda_divisor by_in[3], by_out[3];
};

enum { LAYERS = 8, ROWS = 4 };            /* layers of y, rows of dx, a thread */

/* Adaptive windows of `places` inputs among `windows`: first input and end of window i. */
template <class I> __device__ __forceinline__ void window_of(I i, I places, I windows, I *begin, I *end)
{
  *begin = i * places / windows;
  *end = ((i + 1) * places + windows - 1) / windows;
}

__device__ __forceinline__ int64_t index_at(const sharing &s, int64_t at)
{
  return s.wide ? ((const int64_t *)s.indices)[at] : ((const int32_t *)s.indices)[at];
}
/* The same where positions fit 31 bits; -1: none. */
__device__ __forceinline__ int place_at(const sharing &s, int64_t at)
{
  int64_t i = index_at(s, at);
  return i == (int)i ? (int)i : -1;
}

/* The mean of a window, whose corners in an image are `begin` and `end`, taken again in double because its sum overflowed. Inlined: a
 * call, though never made, costs kernels 5%. */
template <class I> __device__ __forceinline__ double far_mean(const sharing &s, int64_t image, const I (&begin)[3], const I (&end)[3])
{
  constexpr double UNIT = 0x1p-64;
  double sum = 0;
#pragma unroll 1
  for (int64_t a = begin[0]; a < end[0]; a++)
#pragma unroll 1
    for (int64_t b = begin[1]; b < end[1]; b++)
#pragma unroll 1
      for (int64_t c = begin[2]; c < end[2]; c++)
        sum += element_load<double>(s.in, image + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4], s.in_dtype) * UNIT;
  return sum / ((double)(end[0] - begin[0]) * (double)(end[1] - begin[1]) * (double)(end[2] - begin[2])) / UNIT;
}

template <class T, class I, int V, int L>
__global__ static void __launch_bounds__(128) adaptive_forward(const __grid_constant__ sharing s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<I> at = cell_of<I, V, L>(s, (I)unit);
    I begin[3], end[3], best[L][V], layers = (I)s.layers - at.layer;
    T held[L][V];
#pragma unroll
    for (int d = 0; d < 3; d++) window_of<I>(at.o[d], (I)s.in_dim[d], (I)s.out_dim[d], &begin[d], &end[d]);
#pragma unroll
    for (int l = 0; l < L; l++)
#pragma unroll
      for (int i = 0; i < V; i++) {
        held[l][i] = s.average ? T(0) : T(-INFINITY);
        best[l][i] = (begin[0] * (I)s.in_dim[1] + begin[1]) * (I)s.in_dim[2] + begin[2];
      }
    int64_t from = image_of(at, s.in_stride, s.in_layer);
#pragma unroll 1
    for (I a = begin[0]; a < end[0]; a++)
#pragma unroll 1
      for (I b = begin[1]; b < end[1]; b++) {
        int64_t row = from + a * s.in_stride[2] + b * s.in_stride[3];
        T line[L][V] = {};                /* sums of a row, so that no running sum is long */
#pragma unroll 1
        for (I c = begin[2]; c < end[2]; c++) {
          T v[L][V];
#pragma unroll
          for (int l = 0; l < L; l++)
            if (l < layers) load(v[l], s.in, s.in_dtype, row + c * s.in_stride[4] + l * s.in_layer);
          I here = (a * (I)s.in_dim[1] + b) * (I)s.in_dim[2] + c;
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int i = 0; i < V; i++)
              if (s.average) line[l][i] += v[l][i];
              else if (v[l][i] > held[l][i] || (v[l][i] != v[l][i] && held[l][i] == held[l][i])) held[l][i] = v[l][i], best[l][i] = here;
        }
        if (s.average)
#pragma unroll
          for (int l = 0; l < L; l++)
#pragma unroll
            for (int i = 0; i < V; i++) held[l][i] += line[l][i];
      }
    T places = (T)((end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
    bool far = false;
#pragma unroll
    for (int k = 0; k < L * V; k++) {
      if (!s.average) break;
      held[k / V][k % V] /= places;
      far |= !(fabs(held[k / V][k % V]) < INFINITY);
    }
#pragma unroll 1
    for (int k = 0; far && k < L * V; k++) {      /* one copy of the code; constant indices keep the sums in registers */
      T sum = 0;
#pragma unroll
      for (int e = 0; e < L * V; e++) sum = e == k ? held[e / V][e % V] : sum;
      if (k / V >= layers || fabs(sum) < INFINITY) continue;
      sum = (T)far_mean(s, from + k / V * s.in_layer + k % V * s.in_stride[1], begin, end);
#pragma unroll
      for (int e = 0; e < L * V; e++) held[e / V][e % V] = e == k ? sum : held[e / V][e % V];
    }
    int64_t to = offset_of(at, s.out_stride, s.out_layer), number = offset_of(at, s.index_stride, s.index_layer);
#pragma unroll
    for (int l = 0; l < L; l++) {
      if (l >= layers) break;
      store(held[l], s.out, s.out_dtype, to + l * s.out_layer);
      if (!s.indices) continue;
#pragma unroll
      for (int i = 0; i < V; i++) {
        int64_t place = number + l * s.index_layer + i * s.index_stride[1];
        if (s.wide) ((int64_t *)s.indices)[place] = best[l][i];
        else ((int32_t *)s.indices)[place] = (int32_t)best[l][i];
      }
    }
  }
}

__global__ static void __launch_bounds__(128) adaptive_backward(const __grid_constant__ sharing s, int64_t units)
{
  for (int64_t unit = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; unit < units; unit += (int64_t)gridDim.x * blockDim.x) {
    cell<int64_t> at = cell_of<int64_t, 1, 1>(s, unit);
    int64_t first[3], end[3];             /* windows that cover this position */
    double sum[1] = {};
#pragma unroll
    for (int d = 0; d < 3; d++) window_of(at.o[d], s.in_dim[d], s.out_dim[d], &first[d], &end[d]);
    int64_t here = (at.o[0] * s.out_dim[1] + at.o[1]) * s.out_dim[2] + at.o[2];
    int64_t from = image_of(at, s.in_stride, s.in_layer), number = image_of(at, s.index_stride, s.index_layer);
    for (int64_t a = first[0]; a < end[0]; a++)
      for (int64_t b = first[1]; b < end[1]; b++)
        for (int64_t c = first[2]; c < end[2]; c++) {
          int64_t w[3] = { a, b, c }, begin, last, places = 1;
#pragma unroll
          for (int d = 0; d < 3; d++) {
            window_of(w[d], s.out_dim[d], s.in_dim[d], &begin, &last);
            places *= last - begin;
          }
          double v[1];
          load(v, s.in, s.in_dtype, from + a * s.in_stride[2] + b * s.in_stride[3] + c * s.in_stride[4]);
          if (s.average) sum[0] += v[0] / (double)places;
          else if (index_at(s, number + a * s.index_stride[2] + b * s.index_stride[3] + c * s.index_stride[4]) == here) sum[0] += v[0];
        }
    store(sum, s.out, s.out_dtype, offset_of(at, s.out_stride, s.out_layer));
  }
}

struct range { int begin, end; };

/* The windows that cover positions place..end-1 along a dim; the positions of a window. */
__device__ __forceinline__ range windows_over(const sharing &s, int d, int place, int end)
{
  int windows = (int)s.in_dim[d], places = (int)s.out_dim[d];
  return { (int)cuda_quotient(place * windows, s.by_out[d]), (int)cuda_quotient(end * windows + places - 1, s.by_out[d]) };
}
__device__ __forceinline__ range places_in(const sharing &s, int d, int window)
{
  int windows = (int)s.in_dim[d], places = (int)s.out_dim[d];
  return { (int)cuda_quotient(window * places, s.by_in[d]), (int)cuda_quotient((window + 1) * places + windows - 1, s.by_in[d]) };
}
__device__ __forceinline__ int size_of(range r) { return r.end - r.begin; }

template <int U> __device__ __forceinline__ void places_at(int (&place)[U], const sharing &s, int64_t at)
{
  if (U % 4 == 0 && s.whole_indices) {
#pragma unroll
    for (int i = 0; i < U; i += 4) {
      int4 q = *(const int4 *)((const int32_t *)s.indices + at + i);
      place[i] = q.x, place[i + 1] = q.y, place[i + 2] = q.z, place[i + 3] = q.w;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < U; i++) place[i] = place_at(s, at + i * s.index_stride[1]);
}

/* The gradient of V neighbours (columns or channels) in ROWS rows: a window's dy and index are loaded once for all of them. */
template <int dtype, int V, bool columns> __global__ static void __launch_bounds__(128) adaptive_gradient(const __grid_constant__ sharing s)
{
  constexpr int U = columns ? 1 : V;      /* values of dy per window */
  uint32_t at[5], image = blockIdx.x * 128 + threadIdx.x;
  if (image >= s.units) return;
#pragma unroll
  for (int d = 0; d < 5; d++) image = cuda_quotient(image, s.by_cells[d], &at[d]);
  const bool last = !columns || (V == 1 && s.channels_last);
  const int64_t n = image, c = last ? at[0] * U : at[4];
  const int x = (int)(last ? at[1] : at[0] * V), y = (int)at[2] * ROWS, z = (int)at[3], bottom = (int)s.out_dim[1],
            pitch = (int)s.out_dim[2];
  const int64_t from = n * s.in_stride[0] + c * s.in_stride[1], number = n * s.index_stride[0] + c * s.index_stride[1];
  const range deep = windows_over(s, 0, z, z + 1), high = windows_over(s, 1, y, min(y + (int)ROWS, bottom)),
              wide = windows_over(s, 2, x, x + (columns ? V : 1));
  const int here = (z * bottom + y) * pitch + x;
  float sum[ROWS][V] = {};
#pragma unroll 1
  for (int a = deep.begin; a < deep.end; a++)
#pragma unroll 1
    for (int b = high.begin; b < high.end; b++) {
      const range down = places_in(s, 1, b);
#pragma unroll 1
      for (int w = wide.begin; w < wide.end; w++) {
        const range over = places_in(s, 2, w);
        float v[U];
        int place[U] = {};
        const int64_t window = from + a * s.in_stride[2] + b * s.in_stride[3] + w * s.in_stride[4];
        if constexpr (columns) vector_load(v, s.in, dtype, window, 1, 1);
        else vector_load_whole<dtype>(v, s.in, window);
        if (s.average) {
          const float share = 1 / (float)(size_of(places_in(s, 0, a)) * size_of(down) * size_of(over));
#pragma unroll
          for (int i = 0; i < U; i++) v[i] *= share;
        } else {
          places_at(place, s, number + a * s.index_stride[2] + b * s.index_stride[3] + w * s.index_stride[4]);
#pragma unroll
          for (int i = 0; i < U; i++) place[i] -= here;
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
          for (int i = 0; i < V; i++) {
            const bool holds = y + r >= down.begin && y + r < down.end && (!columns || (x + i >= over.begin && x + i < over.end));
            if (holds && (s.average || place[i % U] == r * pitch + (columns ? i : 0))) sum[r][i] += v[i % U];
          }
      }
    }
  int64_t to = n * s.out_stride[0] + c * s.out_stride[1] + z * s.out_stride[2] + y * s.out_stride[3] + x * s.out_stride[4];
#pragma unroll
  for (int r = 0; r < ROWS; r++, to += s.out_stride[3]) {
    if (y + r >= bottom) break;
    if constexpr (V == 1) vector_store(sum[r], s.out, dtype, to, 1, 1);
    else vector_store_whole<dtype>(sum[r], s.out, to);
  }
}

/* Along a dim: `alone` are the positions of window i only; seam: one more position follows that window i + 1 covers too. With no
 * more windows than positions, no position is in more than two windows. */
struct plate { range alone; int seam, size[2]; };
__device__ __forceinline__ plate plate_of(const sharing &s, int d, int i)
{
  const int windows = (int)s.in_dim[d];
  const range here = places_in(s, d, i), next = places_in(s, d, min(i + 1, windows - 1));
  const int begin = (int)cuda_quotient(i * (int)s.out_dim[d] + windows - 1, s.by_in[d]), seam = i + 1 < windows && next.begin < here.end;
  return { { begin, here.end - seam }, seam, { size_of(here), size_of(next) } };
}

/* The gradient of means, channels last, no more windows than positions: a thread writes a vector of channels for some rows of a
 * plate and its seams. dx is constant within a plate, and along a seam. */
template <int dtype> __global__ static void __launch_bounds__(128) adaptive_plates(const __grid_constant__ sharing s)
{
  constexpr int V = vector_per_16<dtype>;
  uint32_t vector, i, part, j, n = blockIdx.x * 128 + threadIdx.x;
  if (n >= s.units) return;
  n = cuda_quotient(cuda_quotient(cuda_quotient(cuda_quotient(n, s.by_cells[0], &vector), s.by_cells[1], &i), s.by_cells[2], &part),
                    s.by_cells[3], &j);
  const plate across = plate_of(s, 2, (int)i), down = plate_of(s, 1, (int)j);
  const int top = down.alone.begin + (int)part * s.rows, end = min(top + s.rows, down.alone.end + down.seam);
  if (top >= end) return;
  const int64_t from = n * s.in_stride[0] + vector * V + j * s.in_stride[3] + i * s.in_stride[4];
  const bool below = end > down.alone.end;
  uint4 q[2][2];
#pragma unroll
  for (int a = 0; a < 2; a++)
#pragma unroll
    for (int b = 0; b < 2; b++)
      q[a][b] = *vector_place<dtype>(s.in, from + (a && below ? s.in_stride[3] : 0) + (b && across.seam ? s.in_stride[4] : 0));
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
  char *to = (char *)vector_place<dtype>(s.out,
                                         n * s.out_stride[0] + vector * V + top * s.out_stride[3] + across.alone.begin * s.out_stride[4]);
  const int64_t row = s.out_stride[3] * (16 / V), column = s.out_stride[4] * (16 / V);
  const auto store = [&](int rows) {
    const uint4 alone = vector_close<dtype>(sum[0], 0), both = vector_close<dtype>(sum[1], 0);
#pragma unroll 1
    for (int r = 0; r < rows; r++, to += row) {
      char *at = to;
#pragma unroll 4
      for (int x = across.alone.begin; x < across.alone.end; x++, at += column) *(uint4 *)at = alone;
      if (across.seam) *(uint4 *)at = both;
    }
  };
  add(0);
  store(min(end, down.alone.end) - top);
  if (!below) return;
  add(1);
  store(1);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct sharing_state { sharing s; int32_t in, out, indices; const void *gradient; };

static sharing sharing_of(const qn_node *op, const qn_value *in, const qn_value *out, const qn_value *indices)
{
  sharing s = {};
  spatial_fill(&s, in, out);
  s.average = op->op == QN_OP_POOL_ADAPTIVE_AVERAGE || op->op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
  s.wide = indices && indices->dtype == QN_I64;
  if (indices) spatial_strides(indices, s.index_stride);
  s.index_layer = s.index_stride[!s.channels_last];
  return s;
}

static int32_t indices_role(uint32_t op)
{
  return op == QN_OP_POOL_ADAPTIVE_MAX ? QN_ROLE_POOL_ADAPTIVE_MAX_INDICES
       : op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD ? QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES : -1;
}

static bool is_forward(uint32_t op) { return op == QN_OP_POOL_ADAPTIVE_MAX || op == QN_OP_POOL_ADAPTIVE_AVERAGE; }

/* Are vectors of v contiguous elements along dim `inner` aligned to 16 bytes? */
static bool in_vectors(const qn_value *t, const int64_t *stride, int64_t extent, int inner, int v)
{
  bool fit = stride[inner] == 1 && extent % v == 0 && t->align >= 16;
  for (int d = 0; d < 5; d++) fit = fit && (d == inner || stride[d] % v == 0);
  return fit;
}

template <int dtype> static const void *gradient_of(bool channels, bool columns)
{
  constexpr int V = vector_per_16<dtype>;
  return channels ? (const void *)adaptive_gradient<dtype, V, false>
       : columns  ? (const void *)adaptive_gradient<dtype, V, true>
                  : (const void *)adaptive_gradient<dtype, 1, true>;
}

/* The grid of plates: as many rows a thread as still leave enough threads to fill the device several times. */
static void choose_plates(sharing *s, int64_t vectors, int64_t images, int64_t processors)
{
  const int64_t windows = s->in_dim[1] * s->in_dim[2] * vectors * images, most = qn_ceil_div(s->out_dim[1], s->in_dim[1]);
  s->rows = (int32_t)qn_max_i64(1, most * windows / (4 * 2048 * processors));
  const int64_t parts = qn_ceil_div(most, s->rows), cells[4] = { vectors, s->in_dim[2], parts, s->in_dim[1] };
  for (int d = 0; d < 4; d++) s->by_cells[d] = cuda_divide_by(cells[d]);
  s->units = (int32_t)(windows * parts);
}

/* Chooses the gradient's kernel and its grid. */
static const void *choose_gradient(sharing *s, const qn_value *dy, const qn_value *dx, const qn_value *indices, int64_t processors)
{
  const int v = dx->dtype == QN_F32 ? 4 : 8;
  const bool channels = s->channels_last && in_vectors(dy, s->in_stride, s->channels, 1, v) &&
                        in_vectors(dx, s->out_stride, s->channels, 1, v);
  for (int d = 0; d < 3; d++) s->by_in[d] = cuda_divide_by(s->in_dim[d]), s->by_out[d] = cuda_divide_by(s->out_dim[d]);
  if (s->average && channels && s->out_dim[0] == 1 && s->in_dim[0] == 1 && s->in_dim[1] <= s->out_dim[1] && s->in_dim[2] <= s->out_dim[2]) {
    choose_plates(s, dx->dim[1] / v, dx->dim[0], processors);
    return cuda_by_dtype(dx->dtype, [](auto dtype) { return (const void *)adaptive_plates<dtype()>; });
  }
  const bool columns = !s->channels_last && in_vectors(dx, s->out_stride, s->out_dim[2], 4, v);
  const int64_t c = dx->dim[1], beside = channels ? c / v : s->channels_last ? c : columns ? s->out_dim[2] / v : s->out_dim[2];
  const int64_t bands = qn_ceil_div(s->out_dim[1], (int64_t)ROWS);
  const int64_t cells[5] = { beside, s->channels_last ? s->out_dim[2] : 1, bands, s->out_dim[0], s->channels_last ? 1 : c };
  int64_t units = dx->dim[0];
  for (int d = 0; d < 5; d++) s->by_cells[d] = cuda_divide_by(cells[d]), units *= cells[d];
  s->units = (int32_t)units;
  s->whole_indices = indices && !s->wide && in_vectors(indices, s->index_stride, s->channels, 1, 4);
  return cuda_by_dtype(dx->dtype, [&](auto dtype) { return gradient_of<dtype()>(channels, columns); });
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int32_t role = indices_role(op->op), indices = role < 0 ? -1 : qn_role(op, (uint32_t)role), to = op->arg[op->first[op->n_inputs]];
  const qn_value *x = &r->value[op->arg[0]], *y = &r->value[to];
  if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16)
    return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", qn_kit_name(x->dtype));
  sharing s = sharing_of(op, x, y, indices < 0 ? nullptr : &r->value[indices]);
  if (!spatial_small(&s)) return qn_refuse(out, "positions fit 32 bits", "x", "fewer", "%lld", (long long)spatial_units(&s, 1, 1));
  sharing_state st = {};
  if (!is_forward(op->op)) st.gradient = choose_gradient(&s, x, y, indices < 0 ? nullptr : &r->value[indices], r->device->units);
  st.s = s;
  st.in = op->arg[0], st.out = to, st.indices = indices;
  return cuda_keep(out, &st, sizeof st);
}

template <class T, class I, int L> static void launch_forward(const sharing &s, cudaStream_t stream)
{
  int64_t units = spatial_units(&s, 1, L);
  adaptive_forward<T, I, 1, L><<<direct_blocks(units, 128), 128, 0, stream>>>(s, units);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sharing_state *st = (const sharing_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  sharing s = st->s;
  s.in = launch->ptr[st->in];
  s.out = launch->ptr[st->out];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  if (is_forward(p->engine->op)) {
    launch_forward<float, int32_t, LAYERS>(s, stream);
    return direct_launched("pool_adaptive");
  }
  void *arguments[] = { &s };
  return cuda_check(cudaLaunchKernel(st->gradient, dim3((unsigned)(s.units + 127) / 128), dim3(128), arguments, 0, stream),
                    "pool_adaptive");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  int32_t role = indices_role(k->op);
  uint32_t n_inputs = k->op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD ? 2 : 1;
  bool indexed = role >= 0 && direct_count(k, (uint32_t)role);
  const qn_value *x = &k->value[0], *y = &k->value[k->first[n_inputs]];
  qn_node op = {};
  op.op = k->op;
  sharing s = sharing_of(&op, x, y, indexed ? &k->value[k->first[role]] : nullptr);
  s.in = direct_tensor(k, launch, 0, 0).p;
  s.out = direct_tensor(k, launch, n_inputs, 0).p;
  s.indices = indexed ? direct_tensor(k, launch, (uint32_t)role, 0).p : nullptr;
  int64_t units = spatial_units(&s, 1, 1);
  if (is_forward(k->op)) launch_forward<double, int64_t, 1>(s, stream);
  else adaptive_backward<<<direct_blocks(units, 128), 128, 0, stream>>>(s, units);
  return direct_launched("pool_adaptive");
}

#define ROWS(op)                                                                                                                 \
  { "adaptive", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,           \
    prepare, nullptr, run, cuda_release },                                                                                        \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = {
  ROWS(QN_OP_POOL_ADAPTIVE_MAX),
  ROWS(QN_OP_POOL_ADAPTIVE_MAX_BACKWARD),
  ROWS(QN_OP_POOL_ADAPTIVE_AVERAGE),
  ROWS(QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD),
};
CUDA_ENGINES(pool_adaptive) = { row, sizeof row / sizeof *row };
