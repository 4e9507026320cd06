/* pool_flat.cu -- max and average pooling and the gradient of average pooling, 3x3 windows, stride 1, padding 1, on packed NCHW
 * planes in f16, bf16 and f32.
 *
 *   max        y = the largest tap inside x, NaN above all; indices: the first of equals
 *   average    y = sum of taps inside x / divisor
 *   gradient   dx[x] = the sum of dy / divisor over the windows that cover x
 *
 * The tensor is treated as one line of elements: a thread computes one aligned 16-byte vector of outputs from the vectors of x
 * around it. Without indices, rows are not whole vectors (odd widths; 16-bit gradients: any such width) and begin anywhere in
 * one. The offset of the rows above and below within their vectors is then the same for all threads and a template parameter
 * (REST, the width modulo a vector). Maxima with indices: rows of whole groups of COLUMNS elements, a group a thread. Walking
 * down columns would take fewer instructions, but store the indices of short rows in partial sectors.
 * Refused: other windows, widths and layouts, i32 indices, f32 gradients that do not count the padding. */
#include "pool_far.cuh"
#include "pool_peak.cuh"
#include "kit/words.cuh"

enum { SIZE = 3, THREADS = 128, COLUMNS = 4 };

struct flat : pool {
  int32_t      total;                     /* elements of x, and of y */
  cuda_divisor by_width, by_height;       /* by_width: maxima with indices: groups of COLUMNS in a row */
  cuda_divisor by_depth;                  /* planes of a channel's volume, through which indices count */
};

/* Loads a vector of x; inside: it is known to lie within the tensor. Elements outside are 0. */
template <int dtype> __device__ __forceinline__ uint4 fetch(const flat &p, int at, bool inside)
{
  constexpr int E = vector_per_16<dtype>;
  if (inside || (at >= 0 && at + E <= p.total)) return *vector_place<dtype>(p.x, at);
  uint32_t w[4] = {};
#pragma unroll
  for (int i = 0; i < E; i++)
    if ((unsigned)(at + i) < (unsigned)p.total) {
      if (dtype == QN_F32) w[i % 4] = ((const uint32_t *)p.x)[at + i];
      else w[i / 2] |= (uint32_t)((const uint16_t *)p.x)[at + i] << i % 2 * 16;
    }
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
  constexpr int E = vector_per_16<dtype>;
  if (at + E <= p.total) {
    *(uint4 *)vector_place<dtype>(p.y, at) = vector_close<dtype>(out, 0);
    return;
  }
  for (int i = 0; i < p.total - at; i++) element_store(p.y, at + i, dtype, out[i]);
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
  cuda_quotient(cuda_quotient(at, p.by_width, &x), p.by_height, &y);
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
      const uint32_t plane = cuda_quotient(cuda_quotient(at + i, p.by_width, &ox), p.by_height, &oy);
      return pool_far_mean(p, (int64_t)plane * width * p.in[1], 0, (int)oy, (int)ox);
    });
  put<dtype>(p, at, out);
}

/* Gradient of average pooling; p.x is dy, p.y is dx. even: every window has divisor 9. Otherwise a window at a border has fewer
 * taps, and its dy is weighted by SIZE / (its rows) and SIZE / (its columns), that is by 3/2 or 1, before the common 1/9. Rows
 * are longer than a vector, so at most one begins within it. */
template <int dtype, bool even, int REST> __global__ void __launch_bounds__(THREADS) pool_flat_means(const __grid_constant__ flat p)
{
  constexpr int E = vector_per_16<dtype>, ABOVE = around<dtype, REST>::ABOVE, BELOW = around<dtype, REST>::BELOW;
  const int at = (int)(blockIdx.x * THREADS + threadIdx.x) * E, width = p.in[2], height = p.in[1];
  if (at >= p.total) return;
  const around<dtype, REST> of(p, at);
  uint32_t x, y;
  cuda_quotient(cuda_quotient(at, p.by_width, &x), p.by_height, &y);
  const int next = width - (int)x, last = (int)y + (next < E);      /* next: the vector's element that begins the next row, if below E */
  float column[E + 2];
  if ((int)y > !even && last + 1 + !even < height) {        /* common case: all three rows of windows exist, with weight 1 */
#pragma unroll
    for (int j = 0; j < E + 2; j++) column[j] = (of.above[ABOVE + j] + of.middle[j]) + of.below[BELOW + j];
  } else {
    float weight[2][SIZE];                /* for the two rows that the vector may meet; 0: no such row of windows */
#pragma unroll
    for (int l = 0; l < 2; l++)
#pragma unroll
      for (int r = 0; r < SIZE; r++) {
        const int line = ((int)y + l < height ? (int)y + l : 0) + r - 1;
        weight[l][r] = (unsigned)line >= (unsigned)height ? 0 : even ? 1 : SIZE * p.inverse[SIZE - (line == 0) - (line + 1 == height)];
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
    out[i] = (((begins ? 0 : column[i]) + column[i + 1]) + (ends ? 0 : column[i + 2])) * p.inverse[SIZE * SIZE];
  }
  put<dtype>(p, at, out);
}

/* ---- maxima and their indices ------------------------------------------------------------------------------------ */

/* A thread's COLUMNS elements in three rows, and the elements on each side: f32 a word each, 16 bits both in one word. Outside
 * x, the nearest element inside stands in; left, above: is there a column to the left, a row above? */
template <int dtype> struct around_columns {
  static constexpr int E = dtype == QN_F32 ? 1 : 2, OWN = COLUMNS / E, BESIDE = 2 / E;
  uint32_t own[SIZE][OWN], beside[SIZE][BESIDE];
  bool left, above;

  __device__ __forceinline__ around_columns(const flat &p, uint32_t unit, uint32_t x, uint32_t y)
  {
    const uint32_t lane = threadIdx.x % 32, across = p.by_width.by;
    const bool right = x + 1 < across, edge = (lane == 0 && x > 0) || (lane == 31 && right);
    uint32_t far[SIZE] = {};              /* the neighbour of lane 0 or 31, which is in another warp */
    left = x > 0, above = y > 0;
#pragma unroll
    for (int r = 0; r < SIZE; r++) {
      const uint32_t from = r == 0 && above ? unit - across : r == 2 && (int)y + 1 < p.in[1] ? unit + across : unit;
      const uint32_t over = from * COLUMNS + (lane == 0 ? -1 : COLUMNS);
      if constexpr (E == 1) *(uint4 *)own[r] = ((const uint4 *)p.x)[from];
      else *(uint2 *)own[r] = ((const uint2 *)p.x)[from];
      if (edge) far[r] = E == 1 ? ((const uint32_t *)p.x)[over] : ((const uint16_t *)p.x)[over];
    }
#pragma unroll
    for (int r = 0; r < SIZE; r++) {
      const uint32_t before = __shfl_up_sync(~0u, own[r][OWN - 1], 1), behind = __shfl_down_sync(~0u, own[r][0], 1);
      if constexpr (E == 1) {
        beside[r][0] = !left ? own[r][0] : lane == 0 ? far[r] : before;
        beside[r][1] = !right ? own[r][OWN - 1] : lane == 31 ? far[r] : behind;
      } else {                            /* out of range on the left: handled by largest_of */
        beside[r][0] = __byte_perm(lane == 0 ? far[r] << 16 : before, !right ? own[r][OWN - 1] >> 16 : lane == 31 ? far[r] : behind,
                                   0x5432);
      }
    }
  }
};

/* Each window's maximum (its bits) and tap number. f32: first the row that holds it, then the column. */
__device__ __forceinline__ void largest_of(uint32_t (&most)[COLUMNS], int (&tap)[COLUMNS], const around_columns<QN_F32> &of)
{
  uint32_t v[SIZE][COLUMNS + 2], line[SIZE][COLUMNS];
  const auto larger_of = [](uint32_t a, uint32_t b) { return __float_as_uint(larger(__uint_as_float(a), __uint_as_float(b))); };
#pragma unroll
  for (int r = 0; r < SIZE; r++) {
    v[r][0] = plain<QN_F32>(of.beside[r][0]), v[r][COLUMNS + 1] = plain<QN_F32>(of.beside[r][1]);
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) v[r][1 + i] = plain<QN_F32>(of.own[r][i]);
#pragma unroll
    for (int w = 0; w < COLUMNS; w += 2) {                  /* two adjacent windows share the larger of two elements */
      const uint32_t both = larger_of(v[r][w + 1], v[r][w + 2]);
      line[r][w] = larger_of(v[r][w], both), line[r][w + 1] = larger_of(both, v[r][w + 3]);
    }
  }
#pragma unroll
  for (int w = 0; w < COLUMNS; w++) {
    const uint32_t m = larger_of(larger_of(line[0][w], line[1][w]), line[2][w]);
    const bool first = of.above && line[0][w] == m, second = line[1][w] == m;
    const uint32_t a = first ? v[0][w] : second ? v[1][w] : v[2][w], b = first ? v[0][w + 1] : second ? v[1][w + 1] : v[2][w + 1];
    most[w] = m, tap[w] = (first ? 0 : second ? SIZE : 2 * SIZE) + ((w > 0 || of.left) && a == m ? 0 : b == m ? 1 : 2);
  }
}

/* 16 bits: value and tap are compared as one word; the low half is 15 - 3 row - column, so of equal values the first wins. */
template <int dtype>
__device__ __forceinline__ void largest_of(uint32_t (&most)[COLUMNS], int (&tap)[COLUMNS], const around_columns<dtype> &of)
{
  uint32_t v[SIZE][COLUMNS + 2];
#pragma unroll
  for (int r = 0; r < SIZE; r++) {
    uint32_t word[SIZE] = { order_of<dtype>(of.beside[r][0]), order_of<dtype>(of.own[r][0]), order_of<dtype>(of.own[r][1]) };
    if (!of.left) word[0] &= 0xffff0000u;                   /* below every value */
    if (r == 0 && !of.above) word[0] = word[1] = word[2] = 0;
#pragma unroll
    for (int i = 0; i < COLUMNS + 2; i++) {
      const uint32_t w = word[i == 0 || i == COLUMNS + 1 ? 0 : (i + 1) / 2];
      const bool high = i == COLUMNS + 1 || (i > 0 && i % 2 == 0);
      /* a product instead of a shift, because the unit for shifts and logic is the busiest */
      v[r][i] = (high ? w & 0xffff0000u : w * 0x10000) + (15 - SIZE * r - i);
    }
  }
#pragma unroll
  for (int w = 0; w < COLUMNS; w++) {
    uint32_t m = 0;
#pragma unroll
    for (int r = 0; r < SIZE; r++) m = max(m, max(max(v[r][w], v[r][w + 1]), v[r][w + 2]));
    const uint32_t order = m >> 16;
    most[w] = order & 0x8000 ? order ^ 0x8000 : order ^ 0xffff, tap[w] = 15 - w - (int)(m & 15);
  }
}

template <int dtype, class index> __global__ void __launch_bounds__(THREADS) pool_flat_indices(const __grid_constant__ flat p)
{
  const uint32_t thread = blockIdx.x * THREADS + threadIdx.x;
  const uint32_t unit = min(thread, (uint32_t)p.total / COLUMNS - 1);       /* excess threads stay, for the shuffles */
  uint32_t x, y, z, most[COLUMNS];
  cuda_quotient(cuda_quotient(cuda_quotient(unit, p.by_width, &x), p.by_height, &y), p.by_depth, &z);
  int tap[COLUMNS];
  largest_of(most, tap, around_columns<dtype>(p, unit, x, y));
  if (unit != thread) return;
  if constexpr (dtype == QN_F32) ((uint4 *)p.y)[unit] = make_uint4(most[0], most[1], most[2], most[3]);
  else ((uint2 *)p.y)[unit] = make_uint2(most[0] | most[1] << 16, most[2] | most[3] << 16);
  several<index, COLUMNS> places;
#pragma unroll
  for (int w = 0; w < COLUMNS; w++) {
    const int r = tap[w] * 11 >> 5;       /* tap / 3 */
    const int line = (int)(z * p.in[1] + y) - 1 + r, column = (int)x * COLUMNS - 1 + w + tap[w] - SIZE * r;
    places.v[w] = (index)(sizeof(index) == 1 ? tap[w] : line * p.in[2] + column);
  }
  ((several<index, COLUMNS> *)p.indices)[unit] = places;
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype, int REST> static pool_kernel means_of(bool even)
{
  return even ? (pool_kernel)pool_flat_means<dtype, true, REST> : (pool_kernel)pool_flat_means<dtype, false, REST>;
}
template <int dtype, int REST> static pool_kernel choose(const pool &p, bool gradient)
{
  return gradient    ? means_of<dtype, REST>(p.include_pad)
         : p.average ? (pool_kernel)pool_flat<dtype, true, REST>
                     : (pool_kernel)pool_flat<dtype, false, REST>;
}
template <int dtype> static pool_kernel choose(const pool &p, bool gradient)
{
  const int rest = p.in[2] % vector_per_16<dtype>;
  if constexpr (dtype != QN_F32) {
    if (rest == 5) return choose<dtype, 5>(p, gradient);
    if (rest == 7) return choose<dtype, 7>(p, gradient);
    if (gradient && rest == 2) return means_of<dtype, 2>(p.include_pad);
    if (gradient && rest == 4) return means_of<dtype, 4>(p.include_pad);
    if (gradient && rest == 6) return means_of<dtype, 6>(p.include_pad);
  }
  return rest == 3 ? choose<dtype, 3>(p, gradient) : rest == 1 ? choose<dtype, 1>(p, gradient) : nullptr;
}

template <int dtype> static pool_kernel indices_of(uint32_t index)
{
  return index == QN_U8    ? (pool_kernel)pool_flat_indices<dtype, uint8_t>
         : index == QN_I64 ? (pool_kernel)pool_flat_indices<dtype, int64_t>
                           : nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const bool gradient = r->op[0].op == QN_OP_POOL_AVERAGE_BACKWARD;
  pool_state<flat> s = {};
  flat &p = s.p;
  qn_status status = pool_read(&s, r, out);       /* dy and dx have one shape: dy is x here, dx is y */
  if (!status) status = pool_wants_planes(r, s.of, 5, out);
  if (status) return status;
  const int64_t elements = qn_elements(&r->value[s.of.x]);
  if (elements > 1 << 30) return qn_refuse(out, "at most 2^30 elements", "x", "fewer", "%lld", (long long)elements);
  p.by_depth = cuda_divide_by(p.in[0]);
  if (!pool_fold(&p, false)) return qn_refuse(out, "windows within a plane", "x", "depth 1", "depth %d", p.size[0]);
  for (int d = 1; d < 3; d++)
    if (p.size[d] != SIZE || p.step[d] != 1 || p.dilation[d] != 1 || p.before[d] != 1 || p.after[d] != 1)
      return qn_refuse(out, "windows", "x", "3x3 with stride 1 and padding 1", "%d of dim %d", p.size[d], d);
  const int E = p.dtype == QN_F32 ? 4 : 8, each = s.of.indices >= 0 ? (int)COLUMNS : E;         /* each: elements a thread */
  p.total = (int32_t)elements;
  p.by_width = cuda_divide_by(p.in[2]), p.by_height = cuda_divide_by(p.in[1]);
  if (s.of.indices >= 0) {
    if (p.in[2] % COLUMNS) return qn_refuse(out, "of maxima with indices, lines of 4 columns", "x", "28", "%d", p.in[2]);
    p.by_width = cuda_divide_by(p.in[2] / COLUMNS);
    s.kernel = cuda_by_dtype(p.dtype, [&](auto dtype) { return indices_of<dtype()>(p.index_dtype); });
    if (!s.kernel) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  } else {
    if (gradient && !p.include_pad && p.dtype == QN_F32)
      return qn_refuse(out, "means that count the padding, or 16 bits", "dx", "include_pad", "%s", "f32");
    if (gradient && p.in[2] <= E) return qn_refuse(out, "lines longer than a vector", "dx", "9 wide", "%d", p.in[2]);
    s.kernel = cuda_by_dtype(p.dtype, [&](auto dtype) { return choose<dtype()>(p, gradient); });
    if (!s.kernel) return qn_refuse(out, "an odd width, or of gradients of 16 bits none of whole vectors", "x", "odd", "%d", p.in[2]);
  }
  return pool_keep(&s, qn_ceil_div(elements, each), THREADS, out);
}

static const qn_engine row[] = { pool_row<flat>("flat", QN_OP_POOL_MAX, prepare), pool_row<flat>("flat", QN_OP_POOL_AVERAGE, prepare),
                                 pool_row<flat>("flat", QN_OP_POOL_AVERAGE_BACKWARD, prepare) };
CUDA_ENGINES(pool_flat) = { row, sizeof row / sizeof *row };
