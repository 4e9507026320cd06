/* sampling.cuh -- shared by the grid_sample engines: the position of a grid's points in the image, their taps and weights, and
 * how threads share the work.
 *
 * T is the type of arithmetic: float, or double in direct. I is the index type: int32_t for small problems, int64_t otherwise. */
#pragma once
#include "kit/spatial.cuh"

/* Where points come from if there is no grid: theta (x, y, 1), as in affine_grid.cu (fused affine_grid + grid_sample). */
struct affine_map {
  const void *theta;
  uint32_t dtype;
  int64_t  stride[3];
  float    scale[3];                      /* for x, y, z */
};

struct points {
  const void *grid;
  affine_map map;                         /* theta NULL: there is a grid */
  uint32_t grid_dtype;
  int32_t  dims, mode, padding, align_corners;
  int64_t  extent[3], point[3];           /* of the image, of the grid; missing leading dims are 1 */
  int64_t  grid_stride[5];                /* N, the grid's dims, the coordinate */
};

/* One dim of a point: tap `below` has weight[0], the next weight[1], if in[] says it is inside the image; slope: derivative of
 * the position (in pixels) with respect to the coordinate, 0 where padding clamps. */
template <class T, class I> struct axis { I below; bool in[2]; T weight[2], slope; };

/* Reflects `at` into low..high; each reflection negates *slope. */
template <class T> __device__ __forceinline__ T mirrored(T at, T low, T high, T *slope)
{
  if (high <= low) return *slope = 0, low;
  T span = high - low, from = fabs(at - low), turns = floor(from / span), rest = from - turns * span;
  bool odd = turns - 2 * floor(turns / 2) != 0;
  if (odd != (at < low)) *slope = -*slope;
  return odd ? high - rest : low + rest;
}

template <class T, class I> __device__ __forceinline__ axis<T, I> axis_of(const points &s, T g, I n)
{
  axis<T, I> a = {};
  if (s.padding == QN_SAMPLE_REFLECTION) g -= 4 * rint(g / 4);       /* its period, exactly: a far point keeps its digits */
  T last = (T)(n - 1), p = s.align_corners ? (g + 1) / 2 * last : ((g + 1) * (T)n - 1) / 2;
  a.slope = s.align_corners ? last / 2 : (T)n / 2;
  if (s.padding == QN_SAMPLE_REFLECTION)
    p = s.align_corners ? mirrored<T>(p, 0, last, &a.slope) : mirrored<T>(p, T(-0.5), last + T(0.5), &a.slope);
  if (s.padding != QN_SAMPLE_ZEROS) {
    if (!(p > 0 && p < last)) a.slope = 0;
    p = p > 0 ? p : 0;
    p = p < last ? p : last;
  }
  if (!(p > -1 && p < (T)n)) return a;
  if (s.mode == QN_RESAMPLE_NEAREST) {
    a.below = (I)rint(p);
    a.in[0] = a.below >= 0 && a.below < n;
    a.weight[0] = a.in[0];
    a.slope = 0;
    return a;
  }
  T under = floor(p), t = p - under;
  a.below = (I)under;
  a.in[0] = a.below >= 0, a.in[1] = a.below + 1 < n;
  a.weight[0] = a.in[0] ? 1 - t : T(0), a.weight[1] = a.in[1] ? t : T(0);
  return a;
}

/* One dim of a point in cubic mode: Keys' kernel, coefficient -0.75, of four elements, moved to where the padding finds them. */
struct cubic {
  int     n;
  int64_t place[4];
  double  weight[4], slope[4];
  bool    nan;
};

__device__ __forceinline__ int64_t padded(const points &s, int64_t at, int64_t n)        /* -1: nowhere */
{
  if (s.padding == QN_SAMPLE_ZEROS) return at >= 0 && at < n ? at : -1;
  if (s.padding == QN_SAMPLE_BORDER) return at < 0 ? 0 : at < n ? at : n - 1;
  const int64_t period = s.align_corners ? 2 * (n - 1) : 2 * n, last = s.align_corners ? period : period - 1;
  if (period == 0) return 0;
  at = (at % period + period) % period;
  return at < n ? at : last - at;
}

__device__ __forceinline__ cubic cubic_of(const points &s, double g, int64_t n)
{
  cubic c = {};
  c.nan = !isfinite(g);
  if (c.nan) return c;
  if (s.padding == QN_SAMPLE_REFLECTION) g -= 4 * rint(g / 4);
  double last = (double)(n - 1), p = s.align_corners ? (g + 1) / 2 * last : ((g + 1) * (double)n - 1) / 2;
  const double scale = s.align_corners ? last / 2 : (double)n / 2;
  if (s.padding == QN_SAMPLE_ZEROS && !(p > -3 && p < (double)n + 2)) return c;
  if (s.padding == QN_SAMPLE_BORDER) p = p < -3 ? -3 : p > (double)n + 2 ? (double)n + 2 : p;     /* there all taps are an end */
  const int64_t below = (int64_t)floor(p);
  for (int64_t j = below - 1; j <= below + 2; j++) {
    const int64_t place = padded(s, j, n);
    if (place < 0) continue;
    const double x = p - (double)j, d = fabs(x);
    const double slope = d <= 1 ? (3.75 * d - 4.5) * d : -0.75 * ((3 * d - 10) * d + 8);
    c.place[c.n] = place;
    c.weight[c.n] = d <= 1 ? (1.25 * d - 2.25) * d * d + 1 : -0.75 * (((d - 5) * d + 8) * d - 4);
    c.slope[c.n++] = scale * (x < 0 ? -slope : slope);
  }
  return c;
}

/* Coordinate j (x, y, z) of the identity grid at index `at`. */
__device__ __forceinline__ float along_of(const points &s, int j, int32_t at)
{
  return (float)(2 * at + 1 - (int32_t)s.point[2 - j]) * s.map.scale[j];
}

/* Coordinate k of the point at index `at` of image n's grid. */
template <class T, class I> __device__ __forceinline__ T coordinate_of(const points &s, I n, const I (&at)[3], int k)
{
  T v[1];
  if constexpr (sizeof(T) == 4)
    if (s.map.theta) {
      const int64_t row = n * s.map.stride[0] + k * s.map.stride[1];
      load(v, s.map.theta, s.map.dtype, row + s.dims * s.map.stride[2]);
      float sum = v[0];
#pragma unroll
      for (int j = 0; j < 3; j++) {
        if (j >= s.dims) break;
        load(v, s.map.theta, s.map.dtype, row + j * s.map.stride[2]);
        sum = fmaf(v[0], along_of(s, j, at[2 - j]), sum);
      }
      return sum;
    }
  load(v, s.grid, s.grid_dtype,
       n * s.grid_stride[0] + at[0] * s.grid_stride[1] + at[1] * s.grid_stride[2] + at[2] * s.grid_stride[3] + k * s.grid_stride[4]);
  return v[0];
}

/* The axes of the point at index `at` of image n's grid, of at most D dims; true: it is NaN, or infinite with reflection. */
template <class T, class I, int D = 3> __device__ __forceinline__ bool axes_of(const points &s, I n, const I (&at)[3], axis<T, I> (&a)[3])
{
  bool nan = false;
#pragma unroll
  for (int d = 0; d < 3; d++) {
    if (d < 3 - D || d < 3 - s.dims) {
      a[d] = { 0, { true, false }, { 1, 0 }, 0 };
      continue;
    }
    const T g = coordinate_of<T, I>(s, n, at, 2 - d);
    nan |= g != g || (s.padding == QN_SAMPLE_REFLECTION && fabs(g) == T(INFINITY));
    a[d] = axis_of<T, I>(s, g, (I)s.extent[d]);
  }
  return nan;
}

/* The same in cubic mode. */
__device__ __forceinline__ bool cubics_of(const points &s, int64_t n, const int64_t (&at)[3], cubic (&c)[3])
{
  bool nan = false;
  for (int d = 0; d < 3; d++) {
    if (d < 3 - s.dims) c[d] = { 1, {}, { 1 }, {}, false };
    else c[d] = cubic_of(s, coordinate_of<double, int64_t>(s, n, at, 2 - d), s.extent[d]);
    nan |= c[d].nan;
  }
  return nan;
}

/* The weight of tap k, with its slope in dim `by` if that is one, and the tap's place. */
__device__ __forceinline__ double cubic_tap(const cubic (&c)[3], int k, int by, int64_t (&place)[3])
{
  double w = 1;
  for (int d = 2; d >= 0; k /= c[d].n, d--) {
    const int i = k % c[d].n;
    place[d] = c[d].place[i];
    w *= d == by ? c[d].slope[i] : c[d].weight[i];
  }
  return w;
}

/* Does the point have a tap in this dim? And the weight of the upper tap, also where that tap is outside. */
template <class T, class I> __device__ __forceinline__ bool held_by(const axis<T, I> &a) { return a.in[0] || a.in[1]; }
template <class T, class I> __device__ __forceinline__ T upper_of(const points &s, const axis<T, I> &a)
{
  return s.mode == QN_RESAMPLE_NEAREST || a.in[1] ? a.weight[1] : 1 - a.weight[0];
}

/* Which of dim d's two taps tap k uses. */
template <class I> __device__ __forceinline__ int tap_bit(int k, int d) { return k >> (2 - d) & 1; }

/* ---- elements of 4 bytes, or of 2 bytes in f16 or bf16 ------------------------------------------------------------------- */

template <int BYTES> __device__ __forceinline__ uint32_t fetch_element(const char *p)
{
  return BYTES == 4 ? __ldg((const uint32_t *)p) : __ldg((const uint16_t *)p);
}
/* Streaming load of what is not read again. */
template <int BYTES> __device__ __forceinline__ uint32_t fetch_last(const char *p)
{
  return BYTES == 4 ? __ldcs((const uint32_t *)p) : __ldcs((const uint16_t *)p);
}
template <int BYTES> __device__ __forceinline__ float element_of(uint32_t word, bool bf16)
{
  return BYTES == 4 ? __uint_as_float(word) : float_of(word, bf16);
}
template <int BYTES> __device__ __forceinline__ void put_element(char *p, float v, bool bf16)
{
  if (BYTES == 4) *(float *)p = v;
  else *(uint16_t *)p = bf16 ? float_to_bf16(v) : float_to_f16(v);
}

/* ---- threads and channels ------------------------------------------------------------------------------------------ */

/* A unit is one position and some channels: vectors `lanes` apart where channels are contiguous, else `each` consecutive ones. */
struct share {
  int32_t last;                           /* channels are contiguous */
  int64_t channels, lanes, each;
};

template <class I> struct unit_place { I n, at[3], lane; };

template <class I> __device__ __forceinline__ unit_place<I> unit_of(const share &s, const int64_t (&dim)[3], I unit)
{
  unit_place<I> u;
  u.lane = 0;
  if (s.last) u.lane = unit % (I)s.lanes, unit /= (I)s.lanes;
#pragma unroll
  for (int d = 2; d >= 0; d--) {
    u.at[d] = unit % (I)dim[d];
    unit /= (I)dim[d];
  }
  if (!s.last) u.lane = unit % (I)s.lanes, unit /= (I)s.lanes;
  u.n = unit;
  return u;
}

template <class I, int V> struct channels_of {
  I c, step, end;
  __device__ __forceinline__ channels_of(const share &s, I lane)
  {
    c = lane * (s.last ? V : (I)s.each), step = s.last ? (I)s.lanes * V : 1;
    end = (I)s.channels;
    if (!s.last && c + (I)s.each < end) end = c + (I)s.each;
  }
};

/* ---- host ---------------------------------------------------------------------------------------------------------- */

static inline points points_of(const void *attr, const qn_value *grid, const qn_value *image)
{
  const qn_sampling *a = (const qn_sampling *)attr;
  points s = { NULL, {}, grid->dtype, grid->rank - 2, (int32_t)a->mode, (int32_t)a->padding, (int32_t)a->align_corners,
               { 1, 1, 1 }, { 1, 1, 1 }, {} };
  s.grid_stride[0] = grid->stride[0], s.grid_stride[4] = grid->stride[grid->rank - 1];
  for (int d = 0; d < s.dims; d++) {
    s.extent[3 - s.dims + d] = image->dim[2 + d];
    s.point[3 - s.dims + d] = grid->dim[1 + d];
    s.grid_stride[4 - s.dims + d] = grid->stride[1 + d];
  }
  return s;
}

/* 1 / the divisor of 2w + 1 - n in an affine grid. */
static inline double affine_scale(int64_t n, bool corners) { return n > 1 ? 1.0 / (double)(corners ? n - 1 : n) : 1; }

/* The sampling op of a request: its only op, or (mapped) the second, whose grid the first, affine_grid, makes for it alone. */
struct sampler { const qn_node *op; bool mapped; };

static const uint32_t samplers[] = { QN_OP_GRID_SAMPLE, QN_OP_GRID_SAMPLE_BACKWARD_DATA, QN_OP_GRID_SAMPLE_BACKWARD_GRID, 0 };
static const qn_pattern samplers_pattern = { sizeof(qn_pattern), 0, 0, 0, 0, samplers, nullptr };

/* Which argument is the grid. */
static inline int sampler_grid(uint32_t op) { return op == QN_OP_GRID_SAMPLE_BACKWARD_GRID ? 2 : 1; }

static inline qn_status sampler_of(sampler *of, const qn_request *r, qn_prepared *out)
{
  *of = { &r->op[0], r->op[0].op == QN_OP_AFFINE_GRID };
  if (!of->mapped) return QN_OK;
  const int32_t made = r->op[0].arg[1];
  const qn_value *grid = &r->value[made];
  bool taken = r->n_ops > 1 && !(grid->flags & QN_VALUE_ESCAPE) && grid->last_user == 1, known = false;
  for (int i = 0; samplers[i]; i++) known |= taken && r->op[1].op == samplers[i];
  /* the grid may also be passed as the image */
  for (int i = 0; i < 3 && known; i++) known = (r->op[1].arg[i] == made) == (i == sampler_grid(r->op[1].op));
  if (!known) return qn_refuse(out, "a grid for one sampler alone", "grid", "", "%s", taken ? "another op" : "more readers");
  of->op = &r->op[1];
  if (grid->dtype != QN_F32 || r->value[r->op[0].arg[0]].dtype == QN_F64)
    return qn_refuse(out, "points are f32", "grid", "f32", "%s", qn_kit_name(grid->dtype));
  out->n_ops = 2;
  return QN_OK;
}

/* The value that points are computed from: the grid, or theta, whose geometry is stored in s->map. */
static inline int32_t sampler_points(const sampler *of, const qn_request *r, points *s)
{
  const int32_t grid = of->op->arg[sampler_grid(of->op->op)];
  if (!of->mapped) return grid;
  const int32_t value = r->op[0].arg[0];
  const qn_value *theta = &r->value[value];
  s->map.dtype = theta->dtype;
  for (int d = 0; d < 3; d++)
    s->map.stride[d] = theta->stride[d],
    s->map.scale[d] = (float)affine_scale(s->point[2 - d], ((const qn_sampling *)r->op[0].attr)->align_corners);
  return value;
}
static inline qn_status sampler_two_taps(const qn_node *op, qn_prepared *out)
{
  if (((const qn_sampling *)op->attr)->mode != QN_RESAMPLE_CUBIC) return QN_OK;
  return qn_refuse(out, "two taps a dim", "mode", "nearest or linear", "%s", "cubic");
}
static inline void sampler_look(points *s, bool mapped, const void *from) { (mapped ? s->map.theta : s->grid) = from; }
