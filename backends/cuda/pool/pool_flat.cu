/* pool_flat.cu -- max and average pooling and the gradient of average pooling, 3x3 windows, stride 1, padding 1, on packed NCHW planes of
 * an odd width (16-bit gradients: any that is no multiple of a vector) in f16, bf16 and f32.
 *
 * The tensor is treated as one line of elements: a thread computes one aligned 16-byte vector of outputs from the vectors of x around it,
 * though rows begin anywhere in one. The offset of the rows above and below within their vectors is then the same for all threads and a
 * template parameter (REST, the width modulo a vector).
 * Refused: other windows, widths and layouts, indices, f32 gradients that do not count the padding. */
#include "pool.cuh"

enum { SIZE = 3, THREADS = 128 };

struct flat : pool { int32_t total; };    /* elements of x, and of y */

/* Loads a vector of x; inside: it is known to lie within the tensor. Elements outside are 0. */
template <int dtype> __device__ __forceinline__ uint4 fetch(const flat &p, int at, bool inside)
{
  constexpr int E = vector_per_16<dtype>;
  if (inside || (at >= 0 && at + E <= p.total)) return *vector_place<dtype>(p.x, at);
  uint32_t w[4] = {};
#pragma unroll
  for (int i = 0; i < E; i++)
    if ((unsigned)(at + i) < (unsigned)p.total) w[i / per_word<dtype> % 4] |= element<dtype>(p.x, at + i) << i % per_word<dtype> * 16;
  return make_uint4(w[0], w[1], w[2], w[3]);
}

/* The inputs of a vector of outputs: its elements and one on each side, and the same in the rows above and below. Element j is
 * middle[j], above[ABOVE + j], below[BELOW + j]. */
template <int dtype, int REST> struct around {
  static constexpr int E = vector_per_16<dtype>, ABOVE = (2 * E - REST - 1) % E, BELOW = (REST + E - 1) % E;
  static_assert(ABOVE <= E - 2 && BELOW <= E - 2, "E + 2 within two vectors");
  float above[2 * E], middle[E + 2], below[2 * E];

  __device__ __forceinline__ around(const flat &p, int at)
  {
    const int over = at - p.in[2] - 1 - ABOVE, under = at + p.in[2] - 1 - BELOW;
    uint4 a[2], m, b[2];
    const auto load = [&](bool inside) {
      a[0] = fetch<dtype>(p, over, inside), a[1] = fetch<dtype>(p, over + E, inside), m = fetch<dtype>(p, at, inside);
      b[0] = fetch<dtype>(p, under, inside), b[1] = fetch<dtype>(p, under + E, inside);
      middle[0] = inside || at > 0 ? edge_load<dtype>(p.x, at - 1) : 0;
      middle[E + 1] = inside || at + E < p.total ? edge_load<dtype>(p.x, at + E) : 0;
    };
    if (over >= 0 && under + 2 * E <= p.total) load(true);          /* unchecked loads, all in flight, except near the ends */
    else load(false);
    vector_open<dtype>(above, 0, a[0]), vector_open<dtype>(above, E, a[1]);
    vector_open<dtype>(middle, 1, m);
    vector_open<dtype>(below, 0, b[0]), vector_open<dtype>(below, E, b[1]);
  }
};

template <int dtype> __device__ __forceinline__ void put(const flat &p, int at, const float (&out)[vector_per_16<dtype>])
{
  if (at + vector_per_16<dtype> <= p.total) vector_store_whole<dtype>(out, p.y, at);
  else for (int i = 0; i < p.total - at; i++) element_store(p.y, at + i, dtype, out[i]);
}

template <int dtype, bool average, int REST> __global__ void __launch_bounds__(THREADS) pool_flat(const __grid_constant__ flat p)
{
  constexpr int E = vector_per_16<dtype>, ABOVE = around<dtype, REST>::ABOVE, BELOW = around<dtype, REST>::BELOW;
  const float none = average ? 0 : -INFINITY;
  const auto join = [](float a, float b) { return average ? a + b : larger(a, b); };
  const int at = (int)(blockIdx.x * THREADS + threadIdx.x) * E, width = p.in[2];
  if (at >= p.total) return;
  const around<dtype, REST> of(p, at);
  uint32_t x, y;
  cuda_quotient(cuda_quotient(at, p.by_extent[2], &x), p.by_extent[1], &y);
  float column[E + 2];
  bool first = x == 0, begins[E], ends[E];                /* is the element the first, the last of its row? */
  bool top = y > 0, bottom = (int)y + 1 < p.in[1];        /* is there a row above it, and below? */
  int rows[E];
#pragma unroll
  for (int j = 0; j < E + 2; j++) {       /* reduce column j - 1 over the rows that exist */
    column[j] = join(of.middle[j], top ? of.above[ABOVE + j] : none);
    column[j] = join(column[j], bottom ? of.below[BELOW + j] : none);
    if (j == 0 || j == E + 1) continue;
    const bool last = (int)++x == width;
    begins[j - 1] = first, ends[j - 1] = last, rows[j - 1] = 1 + top + bottom;
    first = last;
    if (last && j < E) {
      x = 0;
      if ((int)++y == p.in[1]) y = 0;
      top = y > 0, bottom = (int)y + 1 < p.in[1];
    }
  }
  float out[E];
#pragma unroll
  for (int i = 0; i < E; i++) {
    out[i] = join(join(begins[i] ? none : column[i], column[i + 1]), ends[i] ? none : column[i + 2]);
    if (average) out[i] *= p.inverse[p.include_pad ? SIZE * SIZE : rows[i] * (SIZE - begins[i] - ends[i])];
  }
  if (average)
    pool_mend<dtype>(out, min((int)E, p.total - at), [&](int i) {
      uint32_t oy, ox;
      const uint32_t plane = cuda_quotient(cuda_quotient(at + i, p.by_extent[2], &ox), p.by_extent[1], &oy);
      return pool_far_mean(p, (int64_t)plane * width * p.in[1], 0, (int)oy, (int)ox);
    });
  put<dtype>(p, at, out);
}

/* Gradient of average pooling; p.x is dy, p.y is dx. even: every window has divisor 9. Otherwise a window at a border has fewer
 * taps, and its dy is weighted by SIZE / (its rows) and SIZE / (its columns), that is by 3/2 or 1, beside the common 1/9: which dy is
 * multiplied by before it is added, since a sum before may overflow. Rows are longer than a vector, so at most one begins within it. */
template <int dtype, bool even, int REST> __global__ void __launch_bounds__(THREADS) pool_flat_means(const __grid_constant__ flat p)
{
  constexpr int E = vector_per_16<dtype>, ABOVE = around<dtype, REST>::ABOVE, BELOW = around<dtype, REST>::BELOW;
  const int at = (int)(blockIdx.x * THREADS + threadIdx.x) * E, width = p.in[2], height = p.in[1];
  if (at >= p.total) return;
  const around<dtype, REST> of(p, at);
  uint32_t x, y;
  cuda_quotient(cuda_quotient(at, p.by_extent[2], &x), p.by_extent[1], &y);
  const int next = width - (int)x, last = (int)y + (next < E);      /* next: the vector's element that begins the next row, if below E */
  const float share = p.inverse[SIZE * SIZE];
  float column[E + 2];
  if ((int)y > !even && last + 1 + !even < height) {        /* common case: all three rows of windows exist, with weight 1 */
#pragma unroll
    for (int j = 0; j < E + 2; j++) column[j] = fmaf(of.below[BELOW + j], share, fmaf(of.middle[j], share, of.above[ABOVE + j] * share));
  } else {
    float weight[2][SIZE];                /* for the two rows that the vector may meet; 0: no such row of windows */
#pragma unroll
    for (int l = 0; l < 2; l++)
#pragma unroll
      for (int r = 0; r < SIZE; r++) {
        const int line = ((int)y + l < height ? (int)y + l : 0) + r - 1;
        const float more = even ? 1 : SIZE * p.inverse[SIZE - (line == 0) - (line + 1 == height)];
        weight[l][r] = (unsigned)line >= (unsigned)height ? 0 : more * share;
      }
#pragma unroll
    for (int j = 0; j < E + 2; j++) {
      const float v[SIZE] = { of.above[ABOVE + j], of.middle[j], of.below[BELOW + j] };
      column[j] = 0;
#pragma unroll
      for (int r = 0; r < SIZE; r++) {
        const float w = j - 1 < next ? weight[0][r] : weight[1][r];
        if (r == 1 || w != 0) column[j] = fmaf(v[r], w, column[j]);       /* its own row exists */
      }
    }
  }
  if (!even)
#pragma unroll
    for (int j = 0; j < E + 2; j++) column[j] *= j - 1 == next || j == next || (j < 2 && (int)x + j == 1) ? SIZE / 2.f : 1;
  float out[E];
#pragma unroll
  for (int i = 0; i < E; i++) {
    const bool begins = i == next || (i == 0 && x == 0), ends = i + 1 == next;
    out[i] = ((begins ? 0 : column[i]) + column[i + 1]) + (ends ? 0 : column[i + 2]);
  }
  put<dtype>(p, at, out);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype> static pool_kernel kernel_of(const pool &p, bool gradient)
{
  constexpr int E = vector_per_16<dtype>;
  const int rest = p.in[2] % E;
  const auto means = [&](auto n) {
    return p.include_pad ? (pool_kernel)pool_flat_means<dtype, true, n()> : (pool_kernel)pool_flat_means<dtype, false, n()>;
  };
  if constexpr (dtype != QN_F32)
    if (gradient && rest % 2 == 0) return cuda_pick<2, 4, 6>(rest, means);
  if (gradient) return cuda_pick<1, 3, E - 3, E - 1>(rest, means);
  return cuda_pick<1, 3, E - 3, E - 1>(rest, [&](auto n) {
    return p.average ? (pool_kernel)pool_flat<dtype, true, n()> : (pool_kernel)pool_flat<dtype, false, n()>;
  });
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const bool gradient = r->op[0].op == QN_OP_POOL_AVERAGE_BACKWARD;
  pool_state<flat> s = {};
  flat &p = s.p;
  qn_status status = pool_read(&s, r, out);       /* dy and dx have one shape: dy is x here, dx is y */
  if (!status) status = pool_wants_flat(&p, r, s.of, 5, false, out);
  if (status) return status;
  const int64_t elements = qn_elements(&r->value[s.of.x]);
  if (elements > 1 << 30) return qn_refuse(out, "at most 2^30 elements", "x", "fewer", "%lld", (long long)elements);
  for (int d = 1; d < 3; d++)
    if (p.size[d] != SIZE || p.step[d] != 1 || p.dilation[d] != 1 || p.before[d] != 1 || p.after[d] != 1)
      return qn_refuse(out, "windows", "x", "3x3 with stride 1 and padding 1", "%d of dim %d", p.size[d], d);
  const int E = p.dtype == QN_F32 ? 4 : 8;
  p.total = (int32_t)elements;
  if (s.of.indices >= 0) return qn_refuse(out, "no indices", "indices", "absent", "%s", "present");
  if (gradient && !p.include_pad && p.dtype == QN_F32)
    return qn_refuse(out, "means that count the padding, or 16 bits", "dx", "include_pad", "%s", "f32");
  if (gradient && p.in[2] <= E) return qn_refuse(out, "lines longer than a vector", "dx", "9 wide", "%d", p.in[2]);
  s.kernel = cuda_by_dtype(p.dtype, [&](auto dtype) { return kernel_of<dtype()>(p, gradient); });
  if (!s.kernel) return qn_refuse(out, "an odd width, or of gradients of 16 bits none of whole vectors", "x", "odd", "%d", p.in[2]);
  return pool_keep(&s, qn_ceil_div(elements, E), THREADS, 2100, out);
}

static const qn_engine row[] = { pool_row<flat>("flat", QN_OP_POOL_MAX, prepare), pool_row<flat>("flat", QN_OP_POOL_AVERAGE, prepare),
                                 pool_row<flat>("flat", QN_OP_POOL_AVERAGE_BACKWARD, prepare) };
CUDA_ENGINES(pool_flat) = { row, sizeof row / sizeof *row };
