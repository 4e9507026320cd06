/* resample_halves.cu -- gradient of linear 2x upsampling with half-pixel centres, 2-d, f16, bf16 and f32: every input has the
 * same four outputs in each dim, with weights 1/4, 3/4, 3/4, 1/4; those beyond an edge are clamped to it.
 *
 *   planes    columns contiguous: a thread has two columns of dx in L planes, loads four elements of dy at once, and gets their
 *             neighbours by shuffles
 *   vectors   channels contiguous: a thread has 16 bytes of channels of one column
 *
 * Both walk down the lines and reduce each line of dy across once, for all lines of dx that use it.
 * Refused: other scales, modes and grids, unaligned tensors. */
#include "engines.h"
#include "resample_elements.cuh"

enum { THREADS = 128, L = 2 };             /* L: planes a thread */

struct halves {
  const void *dy;
  void    *dx;
  int32_t  lines, columns, band, layers;  /* of dx; lines a thread; planes (images times channels) */
  uint32_t units;                         /* threads */
  cuda_divisor by_across, by_bands, by_channels;    /* across: threads along a line */
  int64_t  dy_image, dy_plane, dy_line, dx_image, dx_plane, dx_line, dy_column, dx_column;       /* strides, in elements */
};

__device__ __forceinline__ float weighed(float a, float b, float c, float d)
{
  return fmaf(0.25f, d, fmaf(0.75f, c, fmaf(0.75f, b, 0.25f * a)));
}

/* Four elements of a line, raw. */
template <uint32_t T> struct four {
  uint32_t word[T == QN_F32 ? 4 : 2];

  __device__ __forceinline__ void load(const char *p)
  {
    if constexpr (T == QN_F32) {
      const uint4 q = __ldg((const uint4 *)p);
      word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
    } else {
      const uint2 q = __ldg((const uint2 *)p);
      word[0] = q.x, word[1] = q.y;
    }
  }
  __device__ __forceinline__ float get(int i) const
  {
    if constexpr (T == QN_F32) return __uint_as_float(word[i]);
    else return float_of(i & 1 ? word[i / 2] >> 16 : word[i / 2] & 0xffff, T == QN_BF16);
  }
};

template <uint32_t T> __global__ static void __launch_bounds__(THREADS) halve_planes(const __grid_constant__ halves s)
{
  constexpr int E = size_of<T>;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  const bool there = unit < s.units;
  uint32_t across, band, channel;
  const uint32_t plane = cuda_quotient(cuda_quotient(there ? unit : s.units - 1, s.by_across, &across), s.by_bands, &band) * L;
  const int first = (int)band * s.band, end = min(first + s.band, s.lines), last = 2 * s.lines - 1, lane = threadIdx.x % 32;
  const bool begins = across == 0, ends = across == s.by_across.by - 1;
  const char *from[L];
  char *to[L];
#pragma unroll
  for (int l = 0; l < L; l++) {
    const uint32_t n = cuda_quotient(min(plane + l, (uint32_t)s.layers - 1), s.by_channels, &channel);
    from[l] = (const char *)s.dy + (n * s.dy_image + channel * s.dy_plane + 4 * across) * E;
    to[l] = (char *)s.dx + (n * s.dx_image + channel * s.dx_plane + first * s.dx_line + 2 * across) * E;
  }
  auto fetch = [&](four<T> (&q)[L], float (&edge)[L], int line) {
    const int64_t at = min(max(line, 0), last) * s.dy_line * E;
#pragma unroll
    for (int l = 0; l < L; l++) {
      q[l].load(from[l] + at);
      edge[l] = 0;
      if ((lane == 0 && !begins) || (lane == 31 && !ends)) {
        const char *p = from[l] + at + (lane == 0 ? -1 : 4) * E;
        edge[l] = T == QN_F32 ? *(const float *)p : float_of(*(const uint16_t *)p, T == QN_BF16);
      }
    }
  };
  auto join = [&](float (&h)[L][2], const four<T> (&q)[L], const float (&edge)[L]) {
#pragma unroll
    for (int l = 0; l < L; l++) {
      float v[6];
#pragma unroll
      for (int i = 0; i < 4; i++) v[1 + i] = q[l].get(i);
      v[0] = __shfl_up_sync(~0u, v[4], 1), v[5] = __shfl_down_sync(~0u, v[1], 1);
      if (lane == 0) v[0] = edge[l];
      if (lane == 31) v[5] = edge[l];
      if (begins) v[0] = v[1];
      if (ends) v[5] = v[4];
      h[l][0] = weighed(v[0], v[1], v[2], v[3]), h[l][1] = weighed(v[2], v[3], v[4], v[5]);
    }
  };
  float h[4][L][2], edge[2][L];
  four<T> q[2][L];
  fetch(q[0], edge[0], 2 * first - 1), fetch(q[1], edge[1], 2 * first);
  join(h[0], q[0], edge[0]), join(h[1], q[1], edge[1]);
  fetch(q[0], edge[0], 2 * first + 1), fetch(q[1], edge[1], 2 * first + 2);
#pragma unroll 1
  /* all lanes keep going for the shuffles; all bands but the last have s.band lines */
  for (int o = first; o < first + s.band; o++) {
    join(h[2], q[0], edge[0]), join(h[3], q[1], edge[1]);
    fetch(q[0], edge[0], 2 * o + 3), fetch(q[1], edge[1], 2 * o + 4);
#pragma unroll
    for (int l = 0; l < L; l++) {
      float v[2];
#pragma unroll
      for (int c = 0; c < 2; c++) {
        v[c] = weighed(h[0][l][c], h[1][l][c], h[2][l][c], h[3][l][c]);
        h[0][l][c] = h[2][l][c], h[1][l][c] = h[3][l][c];
      }
      if (there && o < end && plane + l < (uint32_t)s.layers) {
        if (T == QN_F32) *(float2 *)to[l] = make_float2(v[0], v[1]);
        else *(uint32_t *)to[l] = T == QN_BF16 ? pack_bf16(v[0], v[1]) : pack_f16(v[0], v[1]);
      }
      to[l] += s.dx_line * E;
    }
  }
}

template <uint32_t T> __global__ static void __launch_bounds__(THREADS) halve_vectors(const __grid_constant__ halves s)
{
  constexpr int E = size_of<T>, V = 16 / E;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= s.units) return;
  uint32_t vector, column, band;
  const uint32_t n = cuda_quotient(cuda_quotient(cuda_quotient(unit, s.by_channels, &vector), s.by_across, &column), s.by_bands, &band);
  const int first = (int)band * s.band, end = min(first + s.band, s.lines), last = 2 * s.lines - 1, x = 2 * (int)column;
  const char *from = (const char *)s.dy + (n * s.dy_image + vector * V) * E;
  char *to = (char *)s.dx + (n * s.dx_image + vector * V + first * s.dx_line + column * s.dx_column) * E;
  int32_t place[4];
#pragma unroll
  for (int k = 0; k < 4; k++) place[k] = min(max(x - 1 + k, 0), 2 * s.columns - 1) * (int32_t)s.dy_column * E;
  auto fetch = [&](raw<T, V> (&q)[4], int line) {
    const char *at = from + min(max(line, 0), last) * s.dy_line * E;
#pragma unroll
    for (int k = 0; k < 4; k++) q[k].load(true, at + place[k]);
  };
  auto join = [&](float (&h)[V], const raw<T, V> (&q)[4]) {
#pragma unroll
    for (int v = 0; v < V; v++) h[v] = weighed(q[0].get(v), q[1].get(v), q[2].get(v), q[3].get(v));
  };
  float h[4][V];
  raw<T, V> q[2][4];
  fetch(q[0], 2 * first - 1), fetch(q[1], 2 * first);
  join(h[0], q[0]), join(h[1], q[1]);
#pragma unroll 1
  for (int o = first; o < end; o++) {
    fetch(q[0], 2 * o + 1), fetch(q[1], 2 * o + 2);
    join(h[2], q[0]), join(h[3], q[1]);
    float sum[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
      sum[v] = weighed(h[0][v], h[1][v], h[2][v], h[3][v]);
      h[0][v] = h[2][v], h[1][v] = h[3][v];
    }
    put<T, V>(sum, to);
    to += s.dx_line * E;
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct halves_state { halves s; kernel kernel; uint32_t blocks; int32_t dy, dx; };

template <uint32_t T> static kernel kernel_of(bool vectors) { return vectors ? (kernel)halve_vectors<T> : (kernel)halve_planes<T>; }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_resampling *a = (const qn_resampling *)op->attr;
  halves_state st = {};
  const qn_value *dy = &r->value[st.dy = op->arg[0]], *dx = &r->value[st.dx = op->arg[1]];
  if (dy->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "dy", "f32, f16 or bf16", "%s", "f64");
  if (dy->dtype != dx->dtype) return qn_refuse(out, "one dtype", "dy", qn_kit_name(dx->dtype), "%s", qn_kit_name(dy->dtype));
  if (a->antialias) return qn_refuse(out, "kernels as wide as their taps", "antialias", "0", "%s", "1");
  if (a->mode != QN_RESAMPLE_LINEAR || a->grid != QN_GRID_HALF_PIXEL)
    return qn_refuse(out, "linear by half pixels", "mode", "linear", "%s", "another");
  if (a->up[0] || a->up[1]) return qn_refuse(out, "half a pixel in between", "up", "no scale factor", "%s", "one");
  if (dx->rank != 4 || dy->dim[2] != 2 * dx->dim[2] || dy->dim[3] != 2 * dx->dim[3])
    return qn_refuse(out, "twice the lines and columns", "dy", "rank 4", "rank %d", dx->rank);
  if (qn_elements(dy) > 1 << 30) return qn_refuse(out, "number of elements", "dy", "at most 2^30", "%lld", (long long)qn_elements(dy));
  const int v = dx->dtype == QN_F32 ? 4 : 8;
  const int64_t n = dx->dim[0], c = dx->dim[1];
  bool vectors = dx->stride[1] == 1 && dy->stride[1] == 1 && c % v == 0 && dx->align >= 16 && dy->align >= 16 && dy->stride[3] < 1 << 20;
  for (int d = 0; d < 4; d++) vectors = vectors && (d == 1 || (dy->stride[d] % v == 0 && dx->stride[d] % v == 0));
  bool planes = dx->stride[3] == 1 && dy->stride[3] == 1 && dx->dim[3] % 2 == 0 && dx->align >= (uint32_t)(32 / v) &&
                dy->align >= (uint32_t)(64 / v);
  for (int d = 0; d < 3; d++) planes = planes && dy->stride[d] % 4 == 0 && dx->stride[d] % 2 == 0;
  if (!vectors && !planes) return qn_refuse(out, "columns or channels are aligned words", "dx", "nchw or nhwc", "%s", "other strides");
  halves &s = st.s;
  s.lines = (int32_t)dx->dim[2], s.columns = (int32_t)dx->dim[3], s.layers = (int32_t)(n * c);
  s.dy_image = dy->stride[0], s.dy_plane = dy->stride[1], s.dy_line = dy->stride[2], s.dy_column = dy->stride[3];
  s.dx_image = dx->stride[0], s.dx_plane = dx->stride[1], s.dx_line = dx->stride[2], s.dx_column = dx->stride[3];
  /* bands: as long as they leave enough threads, since the lines at their ends are read twice */
  const int64_t across = vectors ? s.columns : s.columns / 2, all = vectors ? n * (c / v) * across : qn_ceil_div(n * c, L) * across;
  int64_t bands = qn_min_i64(qn_ceil_div(s.lines, 4),
                             qn_max_i64(qn_ceil_div(s.lines, 32), qn_ceil_div((int64_t)r->device->units * 2048, all)));
  s.band = (int32_t)qn_ceil_div(s.lines, bands), bands = qn_ceil_div(s.lines, s.band);
  s.units = (uint32_t)(all * bands);
  s.by_across = cuda_divide_by(across), s.by_bands = cuda_divide_by(bands), s.by_channels = cuda_divide_by(vectors ? c / v : c);
  st.blocks = (uint32_t)qn_ceil_div(s.units, THREADS);
  st.kernel = dx->dtype == QN_F32  ? kernel_of<QN_F32>(vectors)
            : dx->dtype == QN_BF16 ? kernel_of<QN_BF16>(vectors)
                                   : kernel_of<QN_F16>(vectors);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  halves_state st = *(const halves_state *)p->state;
  st.s.dy = launch->ptr[st.dy], st.s.dx = launch->ptr[st.dx];
  void *arguments[] = { &st.s };
  return cuda_check(cudaLaunchKernel(st.kernel, dim3(st.blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream),
                    "resample_halves");
}

static const qn_engine row[] = {
  { "halves", QN_OP_RESAMPLE_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(resample_halves) = { row, sizeof row / sizeof *row };
