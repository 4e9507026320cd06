/* pool_disjoint.cu -- gradient of pooling where windows do not overlap (stride = size, or global), f16, bf16 and f32: packed NCHW planes,
 * and channels last (NHWC).
 *
 * A pure expansion: each thread stores 16-byte words of dx, and loads the few dy (or the vector of channels) that they depend on.
 * Refused: maxima without indices; planes where words and windows do not align, but means in one dim or of an even width; padding that
 * matters, adaptive windows of unequal sizes. */
#include "pool_gradient.cuh"

enum { THREADS = 256, MOST_ROWS = 16 };   /* MOST_ROWS: stores a thread makes, or rows of them */

/* The dims of x, innermost first, merged where possible: a dim that a window covers whole merges into the next outer one. The
 * outermost also runs through all planes. */
struct disjoint : gradient {
  uint32_t words;                         /* a thread each; the last may be partial */
  uint32_t elements;                      /* elements of dx */
  uint32_t windows, rows;                 /* windows of a row, rows of windows */
  cuda_divisor by_units, by_rows;         /* rows that are whole words: words of a row, rows of windows */
  cuda_divisor by_in[2], by_wide[3];      /* innermost first; wide: of windows */
  cuda_divisor by_plane;                  /* max: places of a plane */
};

/* Number of the first window of the row of windows that covers this row. */
__device__ __forceinline__ uint32_t row_of_windows(const disjoint &p, uint32_t row)
{
  uint32_t y, plane = cuda_quotient(row, p.by_in[1], &y);
  return (cuda_quotient(plane, p.by_wide[2]) * p.rows + cuda_quotient(y, p.by_wide[1])) * p.windows;
}

/* Means where words and windows do not align. flat: one dim is left; else windows have an even width. */
template <int dtype, bool flat>
__global__ void __launch_bounds__(THREADS) pool_disjoint_words(const __grid_constant__ disjoint p)
{
  constexpr int E = vector_per_16<dtype>;
  const uint32_t word = blockIdx.x * THREADS + threadIdx.x, first = word * E, width = p.by_in[0].by, step = p.by_wide[0].by;
  if (word >= p.words) return;
  const int many = (int)min((uint32_t)E, p.elements - first);
  const auto share = [&](uint32_t window) { return edge_load<dtype>(p.dy, window) * p.share; };
  uint32_t x;
  const uint32_t row = flat ? 0 : cuda_quotient(first, p.by_in[0], &x), next = flat ? 0 : row_of_windows(p, row + 1);
  uint32_t here = flat ? cuda_quotient(first, p.by_wide[0], &x) : row_of_windows(p, row);       /* the word's first window; next: below */
  float v[E];
  if (flat && step >= E) {
    const float a = share(here), b = x + many > step ? share(here + 1) : 0;
#pragma unroll
    for (int i = 0; i < E; i++) v[i] = x + i < step ? a : b;
  } else if (flat) {
#pragma unroll
    for (int i = 0; i < E; i++) v[i] = i < many ? share(here + cuda_quotient(x + i, p.by_wide[0])) : 0;
  } else {
    uint32_t within;
    here += cuda_quotient(x, p.by_wide[0], &within);
#pragma unroll
    for (int i = 0; i < E; i += 2) {
      v[i] = v[i + 1] = i < many ? share(here) : 0;
      x += 2, within += 2;
      if (within == step) within = 0, here++;
      if (x == width) here = next;
    }
  }
  if (many == E) vector_store_whole<dtype>(v, p.dx, first);
  else vector_store(v, p.dx, dtype, first, 1, many);
}

/* Rows of whole words, where a word holds K whole windows across, or (K 1) a window holds whole words: a thread loads their dy and indices
 * (index void: means) and stores a word to each row that they cover. */
template <int dtype, class index, int K>
__global__ void __launch_bounds__(THREADS) pool_disjoint_windows(const __grid_constant__ disjoint p)
{
  constexpr bool max = !std::is_void<index>::value;
  constexpr int E = vector_per_16<dtype>, STEP = E / K;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.words) return;
  uint32_t u, y, place = 0, within = 0;   /* within: of the window, where the word begins */
  const uint32_t row = cuda_quotient(unit, p.by_units, &u), z = cuda_quotient(row, p.by_rows, &y), width = p.by_in[0].by,
                 area = p.by_in[1].by * width, window = row * p.windows + cuda_quotient(u * E, p.by_wide[0], &within);
  const uint32_t first = z * p.by_wide[2].by * area + y * p.by_wide[1].by * width + u * E;
  float dy[K];
  const several<stored<dtype>, K> q = *(const several<stored<dtype>, K> *)((const stored<dtype> *)p.dy + window);
#pragma unroll
  for (int k = 0; k < K; k++) dy[k] = word_get<dtype>(q.v[k], 0);
  several<std::conditional_t<max, index, uint8_t>, K> at = {};
  if constexpr (max) {
    cuda_quotient(first, p.by_plane, &place);
    at = *(const several<index, K> *)((const index *)p.indices + window);
  } else {
#pragma unroll
    for (int k = 0; k < K; k++) dy[k] *= p.share;
  }
#pragma unroll 1
  for (uint32_t a = 0, tap = within; a < p.by_wide[2].by; a++)
#pragma unroll 4
    for (uint32_t b = 0; b < p.by_wide[1].by; b++, tap += p.by_wide[0].by) {
      const uint32_t beyond = a * area + b * width;
      float v[E];
#pragma unroll
      for (int i = 0; i < E; i++) {
        v[i] = dy[i / STEP];
        if constexpr (max) v[i] = at.v[i / STEP] == (index)(sizeof(index) == 1 ? tap + i % STEP : place + beyond + i) ? v[i] : 0;
      }
      vector_store_whole<dtype>(v, p.dx, first + beyond);
    }
}

/* Channels last: a thread stores a vector of channels to p.band rows of its window. p.size and by_step: the windows' extents in x. */
template <int dtype, int how> __global__ void __launch_bounds__(THREADS) pool_disjoint_channels(const __grid_constant__ gradient p)
{
  constexpr int V = vector_per_16<dtype>;
  uint32_t at[4], n = blockIdx.x * THREADS + threadIdx.x, r1, r0;
  if (n >= p.units) return;
  n = cell_of(p, n, at);
  const int c = (int)at[0] * V, ox = (int)at[1], y = (int)at[2] * p.band, z = (int)at[3], oy = (int)cuda_quotient(y, p.by_step[1], &r1),
            oz = (int)cuda_quotient(z, p.by_step[0], &r0), x = ox * p.size[2];
  float dy[V];
  int chosen[V];                          /* as numbers from the thread's first place on */
  vector_load_whole<dtype>(dy, vector_place<dtype>(p.dy, n * p.y_stride[0]), c + oz * p.of_dy.z + oy * p.of_dy.y + ox * p.of_dy.x);
  if constexpr (how != MEANS) {
    alignas(16) int64_t index[V];
    indices_load(index, p, n, c + oz * p.of_index.z + oy * p.of_index.y + ox * p.of_index.x);
    const int first = how == BY_TAP ? (int)(r0 * p.size[1] + r1) * p.size[2] : (z * p.in[1] + y) * p.in[2] + x;
#pragma unroll
    for (int i = 0; i < V; i++) chosen[i] = place_among(index[i]) - first;
  }
  void *const to = (void *)vector_place<dtype>(p.dx, n * p.dx_stride[0]);
  const int row = how == BY_TAP ? p.size[2] : p.in[2];
#pragma unroll 2
  for (int r = 0; r < p.band; r++)
#pragma unroll 2
    for (int k = 0; k < p.size[2]; k++) {
      float v[V];
#pragma unroll
      for (int i = 0; i < V; i++) v[i] = how == MEANS ? dy[i] * p.share : chosen[i] == r * row + k ? dy[i] : 0;
      vector_store_whole<dtype>(v, to, c + z * p.of_dx.z + (y + r) * p.of_dx.y + (x + k) * p.of_dx.x);
    }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype, class index> static pool_kernel windows_of(int64_t k)
{
  return cuda_pick<1, 2, vector_per_16<dtype> / 2>(k, [](auto n) { return (pool_kernel)pool_disjoint_windows<dtype, index, n()>; });
}
/* How wide the windows of dim d are, if they tile it or one covers it all, and multiplies *share by each place's weight; 0: neither. */
static int64_t step_of(const pool *p, int d, double *share)
{
  const int64_t in = p->in[d], out = p->out[d], begin = -(int64_t)p->before[d], end = begin + p->size[d];
  if (p->size[d] > 1 && p->dilation[d] != 1) return 0;
  if (out == 1 && begin <= 0 && end >= in) {
    *share /= p->include_pad ? (double)qn_min_i64(end, in + p->after[d]) - (double)begin : (double)in;
    return in;
  }
  *share /= p->size[d];
  return begin == 0 && (out == 1 || p->step[d] == p->size[d]) && in == out * p->size[d] ? p->size[d] : 0;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<disjoint> s = {};
  disjoint *p = &s.p;
  const qn_status status = gradient_read(&s, r, out);
  if (status) return status;
  const qn_value *dy = &r->value[s.of.dy], *dx = &r->value[s.of.dx], *at = s.of.indices < 0 ? nullptr : &r->value[s.of.indices];
  const bool max = !p->average, planes = qn_is_packed(dx) && qn_is_packed(dy) && (!max || (at && qn_is_packed(at)));
  const int64_t v = dx->dtype == QN_F32 ? 4 : 8, elements = qn_elements(dx);
  if (max && !at) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  if (!planes && gradient_channels(&s, r) == 1)
    return qn_refuse(out, "packed planes, or vectors of channels last", "dx", "nchw, or nhwc in eights", "%s", "other strides");
  if (dx->align < 16) return qn_refuse(out, "16-byte alignment", "dx", "16", "%u", dx->align);
  if (elements > INT32_MAX - 16) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%lld", (long long)elements);

  /* merge the dims */
  int64_t in[3] = { 1, 1, 1 }, step[3] = { 1, 1, 1 }, wide[3];
  double share = 1;
  int dims = 0;
  for (int d = 0; d < 3; d++) {
    const int64_t here = p->in[d];
    wide[d] = step_of(p, d, &share);
    if (max && at->dtype == QN_U8 && (p->before[d] || p->size[d] != wide[d]))
      return qn_refuse(out, "taps of windows that are all inside", "dx", "no padding", "%d", p->before[d]);
    if (!wide[d] || p->adaptive)
      return qn_refuse(out, "windows that tile x, or one over all of it", "dx", "a stride as wide as the window", "%d", p->size[d]);
    if (here == 1) continue;
    if (dims && (wide[d] == here || (wide[d] == 1 && step[dims - 1] == 1))) step[dims - 1] *= wide[d], in[dims - 1] *= here;
    else in[dims] = here, step[dims] = wide[d], dims++;
  }
  p->share = (float)share;
  if (!planes) {
    p->band = wide[1] * wide[2] <= MOST_ROWS ? (int32_t)wide[1] : 1;
    const int64_t cells[4] = { p->c / v, p->out[2], p->in[1] / p->band, p->in[0] };
    for (int d = 0; d < 3; d++) p->size[d] = (int32_t)wide[d], p->by_step[d] = cuda_divide_by(wide[d]);
    s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) {
      return cuda_pick<MEANS, BY_TAP, BY_PLACE>(s.how, [](auto how) {
        return (pool_kernel)pool_disjoint_channels<decltype(dtype)::value, how()>;
      });
    });
    return pool_keep(&s, pool_units(p, cells), THREADS, 2500, out);
  }
  for (int i = 0; i < 3; i++) p->by_wide[i] = cuda_divide_by(i < dims ? step[dims - 1 - i] : 1);         /* columns, rows, the rest */
  p->elements = (uint32_t)elements;
  p->by_plane = cuda_divide_by((int64_t)p->in[0] * p->in[1] * p->in[2]);
  p->words = (uint32_t)qn_ceil_div(elements, v);
  p->by_in[0] = cuda_divide_by(dims > 1 ? in[dims - 1] : (int64_t)1 << 31);       /* the outermost runs on through all planes */
  p->by_in[1] = cuda_divide_by(dims > 2 ? in[dims - 2] : (int64_t)1 << 31);
  p->windows = dims > 1 ? p->by_in[0].by / p->by_wide[0].by : 0, p->rows = dims > 2 ? p->by_in[1].by / p->by_wide[1].by : 0;
  /* k: windows per word, or 1 of whole words, if rows and windows align with words */
  const int64_t w = p->by_wide[0].by, rows = p->by_wide[1].by * (int64_t)p->by_wide[2].by;
  int64_t k = w > 1 && v % w == 0 ? v / w : w % v == 0;
  if (p->by_in[0].by % v || elements % v || dy->align < 16 || (max && at->align < 16)) k = 0;
  /* places are counted on from the word's first, so a word must not span planes; taps are not */
  if (k && (max ? at->dtype == QN_U8 || p->by_plane.by % v == 0 : rows <= MOST_ROWS)) {
    p->by_units = cuda_divide_by(p->by_in[0].by / v), p->by_rows = cuda_divide_by(dims > 2 ? (int64_t)p->rows : (int64_t)1 << 31);
    p->words = (uint32_t)(elements / v / rows);
    s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) {
      return !max                  ? windows_of<dtype(), void>(k)
             : at->dtype == QN_U8  ? windows_of<dtype(), uint8_t>(k)
             : at->dtype == QN_I32 ? windows_of<dtype(), int32_t>(k)
                                   : windows_of<dtype(), int64_t>(k);
    });
    return pool_keep(&s, p->words, THREADS, 2400, out);
  }
  if (max || (dims > 1 && (in[dims - 1] < v || in[dims - 1] % 2 || w % 2)))
    return qn_refuse(out, "windows that align with words, or of means one dim or an even width", "dx", "2", "%lld", (long long)w);
  s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) {
    return dims > 1 ? (pool_kernel)pool_disjoint_words<dtype(), false> : (pool_kernel)pool_disjoint_words<dtype(), true>;
  });
  return pool_keep(&s, p->words, THREADS, 2400, out);
}

static const qn_engine row[] = { POOL_BACKWARD_ROWS(disjoint, "disjoint", prepare) };
CUDA_ENGINES(pool_disjoint) = { row, sizeof row / sizeof *row };
