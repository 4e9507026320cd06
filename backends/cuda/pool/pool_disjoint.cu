/* pool_disjoint.cu -- gradient of pooling where windows do not overlap (stride = size, or global): packed NCHW planes in f16, bf16
 * and f32, and means over whole rows channels last (NHWC).
 *
 *   max       dx[x] = dy of its window if the window's index is x, else 0
 *   average   dx[x] = dy of its window / taps of the window
 *
 * A pure expansion: each thread stores 16-byte words of dx and loads the few dy (or the vector of channels) that they depend on.
 * Refused: maxima without indices, padding that matters, adaptive windows of unequal sizes. */
#include "pool.cuh"
#include "kit/words.cuh"

enum { THREADS = 256, MOST_ROWS = 16 };   /* MOST_ROWS: stores a thread makes, pool_disjoint_rows */

/* The dims of x, innermost first, merged where possible: a dim that a window covers whole merges into the next outer one. The
 * outermost also runs through all planes. */
struct disjoint {
  const void *dy, *indices;
  void    *dx;
  int32_t  wide;                          /* i64 indices */
  float    share;
  uint32_t words;                         /* 16-byte words of dx; the last may be partial */
  uint32_t elements;                      /* elements of dx */
  int32_t  out[2];                        /* windows of a row, rows of windows */
  /* rows that are whole words: words of a row, rows of windows; pool_disjoint_bands: places of a row of windows */
  cuda_divisor by_units, by_rows;
  cuda_divisor by_in[2], by_step[3];      /* innermost first */
  cuda_divisor by_groups;                 /* channels last: vectors of a pixel */
  cuda_divisor by_plane;                  /* max: places of a plane */
};

/* Number of the first window of the row of windows that covers this row. */
__device__ __forceinline__ uint32_t row_of_windows(const disjoint &p, uint32_t row)
{
  uint32_t y, plane = cuda_quotient(row, p.by_in[1], &y);
  return (cuda_quotient(plane, p.by_step[2]) * p.out[1] + cuda_quotient(y, p.by_step[1])) * p.out[0];
}

/* What a window passes to a place: for means dy / taps, for maxima dy if the index matches. */
template <int dtype, bool max> struct window_share {
  uint32_t place;                         /* offset in its plane of the word's first element */
  uint32_t held;
  float    dy;
  int64_t  index;

  __device__ __forceinline__ window_share(const disjoint &p, uint32_t first) : held(~0u)
  {
    if (max) cuda_quotient(first, p.by_plane, &place);
  }
  __device__ __forceinline__ float at(const disjoint &p, uint32_t window, int i)
  {
    if (!max) return edge_load<dtype>(p.dy, window) * p.share;
    if (window != held) {
      held = window, dy = edge_load<dtype>(p.dy, window);
      index = p.wide ? ((const int64_t *)p.indices)[window] : ((const int32_t *)p.indices)[window];
    }
    uint32_t here = place + i;
    if (here >= p.by_plane.by) cuda_quotient(here, p.by_plane, &here);     /* of small planes a word has several */
    return index == (int64_t)here ? dy : 0;
  }
};

/* flat: one dim is left. wide: so many neighbours in a word surely have the same window. */
template <int dtype, bool max, bool flat, int wide>
__global__ void __launch_bounds__(THREADS) pool_disjoint(const __grid_constant__ disjoint p)
{
  constexpr int E = vector_per_16<dtype>;
  const uint32_t word = blockIdx.x * THREADS + threadIdx.x, first = word * E;
  if (word >= p.words) return;
  const int many = (int)min((uint32_t)E, p.elements - first);
  window_share<dtype, max> share(p, first);
  float v[E];
  uint32_t x;
  if (flat) {
    const uint32_t window = cuda_quotient(first, p.by_step[0], &x), step = p.by_step[0].by;
    if (!max && step >= E) {
      const float a = share.at(p, window, 0), b = x + many > step ? share.at(p, window + 1, 0) : 0;
#pragma unroll
      for (int i = 0; i < E; i++) v[i] = x + i < step ? a : b;
    } else {
#pragma unroll
      for (int i = 0; i < E; i++) v[i] = i < many ? share.at(p, window + cuda_quotient(x + i, p.by_step[0]), i) : 0;
    }
  } else {
    const uint32_t row = cuda_quotient(first, p.by_in[0], &x), here = row_of_windows(p, row), next = row_of_windows(p, row + 1),
                   width = p.by_in[0].by;
#pragma unroll
    for (int i = 0; i < E; i++)
      v[i] = !max && i % wide ? v[i - i % wide]
           : i < many
               ? share.at(p, x + i < width ? here + cuda_quotient(x + i, p.by_step[0]) : next + cuda_quotient(x + i - width, p.by_step[0]),
                         i)
               : 0;
  }
  if (many == E) vector_store_whole<dtype>(v, p.dx, first);
  else vector_store(v, p.dx, dtype, first, 1, many);
}

template <int dtype> __global__ void __launch_bounds__(THREADS) pool_disjoint_channels(const __grid_constant__ disjoint p)
{
  const uint32_t word = blockIdx.x * THREADS + threadIdx.x;
  if (word >= p.words) return;
  uint32_t group;
  const uint32_t window = cuda_quotient(cuda_quotient(word, p.by_groups, &group), p.by_step[0]);
  float v[vector_per_16<dtype>];
  vector_open<dtype>(v, 0, ((const uint4 *)p.dy)[window * p.by_groups.by + group]);
#pragma unroll
  for (int i = 0; i < vector_per_16<dtype>; i++) v[i] *= p.share;
  ((uint4 *)p.dx)[word] = vector_close<dtype>(v, 0);
}

template <int dtype, int K> __device__ __forceinline__ void several_load(float (&v)[K], const void *base, uint32_t at)
{
  if constexpr (dtype == QN_F32) {
    const several<float, K> q = *(const several<float, K> *)((const float *)base + at);
#pragma unroll
    for (int k = 0; k < K; k++) v[k] = q.v[k];
  } else {
    const several<uint16_t, K> q = *(const several<uint16_t, K> *)((const uint16_t *)base + at);
#pragma unroll
    for (int k = 0; k < K; k++) v[k] = dtype == QN_BF16 ? bf16_to_float(q.v[k]) : f16_to_float(q.v[k]);
  }
}

/* Means of windows of an even width, rows of whole words: a thread computes one word and stores it to every row that its windows
 * cover. K: windows per word if they align with words, else 0. */
template <int dtype, int K> __global__ void __launch_bounds__(THREADS) pool_disjoint_rows(const __grid_constant__ disjoint p)
{
  constexpr int E = vector_per_16<dtype>;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.words) return;
  uint32_t u, y;
  const uint32_t row = cuda_quotient(unit, p.by_units, &u), z = cuda_quotient(row, p.by_rows, &y), width = p.by_in[0].by,
                 area = p.by_in[1].by * width;
  uint32_t at = z * p.by_step[2].by * area + y * p.by_step[1].by * width + u * E;
  float v[E];
  if constexpr (K != 0) {
    float dy[K];
    several_load<dtype>(dy, p.dy, unit * K);
#pragma unroll
    for (int i = 0; i < E; i++) v[i] = dy[i / (E / K)] * p.share;
  } else {
#pragma unroll
    for (int i = 0; i < E; i += 2)
      v[i] = v[i + 1] = edge_load<dtype>(p.dy, row * p.out[0] + cuda_quotient(u * E + i, p.by_step[0])) * p.share;
  }
  const uint4 word = vector_close<dtype>(v, 0);
#pragma unroll 1
  for (uint32_t a = 0; a < p.by_step[2].by; a++, at += area - p.by_step[1].by * width)
#pragma unroll 4
    for (uint32_t b = 0; b < p.by_step[1].by; b++, at += width) *(uint4 *)vector_place<dtype>(p.dx, at) = word;
}

/* The same for two dims whose rows are not whole words, so that a word may wrap to the next row. */
template <int dtype> __global__ void __launch_bounds__(THREADS) pool_disjoint_bands(const __grid_constant__ disjoint p)
{
  constexpr int E = vector_per_16<dtype>;
  const uint32_t word = blockIdx.x * THREADS + threadIdx.x;
  if (word >= p.words) return;
  uint32_t beyond, x, within;             /* beyond: offset in the row of windows; x: in the row; within: in the window */
  uint32_t row = cuda_quotient(word * E, p.by_units, &beyond) * p.out[0];
  /* left: rows left in this row of windows */
  uint32_t left = p.by_step[1].by - cuda_quotient(beyond, p.by_in[0], &x), window = cuda_quotient(x, p.by_step[0], &within);
  float v[E];
#pragma unroll
  for (int i = 0; i < E; i += 2) {
    v[i] = v[i + 1] = edge_load<dtype>(p.dy, row + window) * p.share;
    within += 2;
    if (within == p.by_step[0].by) within = 0, window++;
    if (window == (uint32_t)p.out[0]) {
      window = 0;
      if (--left == 0) left = p.by_step[1].by, row += p.out[0];
    }
  }
  vector_store_whole<dtype>(v, p.dx, word * E);
}

/* Maxima, where a word holds K whole windows across: a thread loads K dy and indices and stores a word to each of their rows. */
template <int dtype, class index, int K>
__global__ void __launch_bounds__(THREADS) pool_disjoint_windows(const __grid_constant__ disjoint p)
{
  constexpr int E = vector_per_16<dtype>, STEP = E / K;
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.words) return;
  uint32_t u, y, place;
  const uint32_t z = cuda_quotient(cuda_quotient(unit, p.by_units, &u), p.by_rows, &y), width = p.by_in[0].by, area = p.by_in[1].by * width;
  const uint32_t first = z * p.by_step[2].by * area + y * p.by_step[1].by * width + u * E;
  cuda_quotient(first, p.by_plane, &place);
  const several<index, K> at = ((const several<index, K> *)p.indices)[unit];
  float dy[K];
  several_load<dtype>(dy, p.dy, unit * K);
#pragma unroll 1
  for (uint32_t a = 0, tap = 0; a < p.by_step[2].by; a++)
#pragma unroll 1
    for (uint32_t b = 0; b < p.by_step[1].by; b++, tap += STEP) {
      const uint32_t beyond = a * area + b * width;
      float v[E];
#pragma unroll
      for (int i = 0; i < E; i++)
        v[i] = at.v[i / STEP] == (index)(sizeof(index) == 1 ? tap + i % STEP : place + beyond + i) ? dy[i / STEP] : 0;
      vector_store_whole<dtype>(v, p.dx, first + beyond);
    }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

template <int dtype, class index> static pool_kernel windows_of(int64_t k)
{
  if constexpr (dtype != QN_F32)
    if (k == 4) return (pool_kernel)pool_disjoint_windows<dtype, index, 4>;
  return k == 2   ? (pool_kernel)pool_disjoint_windows<dtype, index, 2>
         : k == 1 ? (pool_kernel)pool_disjoint_windows<dtype, index, 1>
                  : nullptr;
}
template <int dtype> static pool_kernel windows_of(uint32_t index, int64_t k)
{
  return index == QN_U8 ? windows_of<dtype, uint8_t>(k) : index == QN_I32 ? windows_of<dtype, int32_t>(k) : windows_of<dtype, int64_t>(k);
}
template <int dtype> static pool_kernel rows_of(int64_t k)
{
  if constexpr (dtype != QN_F32)
    if (k == 4) return (pool_kernel)pool_disjoint_rows<dtype, 4>;
  return k == 2   ? (pool_kernel)pool_disjoint_rows<dtype, 2>
         : k == 1 ? (pool_kernel)pool_disjoint_rows<dtype, 1>
                  : (pool_kernel)pool_disjoint_rows<dtype, 0>;
}
template <int dtype> static pool_kernel kernel_of(bool max, bool channels, bool flat)
{
  if (max) return flat ? (pool_kernel)pool_disjoint<dtype, true, true, 1> : (pool_kernel)pool_disjoint<dtype, true, false, 1>;
  return channels ? (pool_kernel)pool_disjoint_channels<dtype>
       : flat     ? (pool_kernel)pool_disjoint<dtype, false, true, 1>
                  : (pool_kernel)pool_disjoint<dtype, false, false, 2>;
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
  const qn_node *op = &r->op[0];          /* dy is input 0, dx the only output */
  const bool max = op->op == QN_OP_POOL_MAX_BACKWARD;
  pool_state<disjoint> s = {};
  s.of = { -1, -1, op->arg[0], op->arg[op->first[op->n_inputs]], max ? qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES) : -1 };
  const qn_value *dy = &r->value[s.of.dy], *dx = &r->value[s.of.dx], *at = s.of.indices < 0 ? nullptr : &r->value[s.of.indices];
  const qn_status status = pool_wants_floats(dx, "dx", out);
  if (status) return status;
  const int64_t v = dx->dtype == QN_F32 ? 4 : 8, elements = qn_elements(dx), channels = dx->dim[1];
  if (max && !at) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  const bool planes = qn_is_packed(dx) && qn_is_packed(dy) && (!max || qn_is_packed(at)),
             last = !planes && !max && qn_is_channels_last(dx) && qn_is_channels_last(dy) && channels % v == 0;
  if (!planes && !last)
    return qn_refuse(out, "packed planes, or vectors of channels last", "dx", "nchw, or nhwc of a multiple of 8 channels",
                     "%s", "other strides");
  if (dx->align < 16 || dy->align < (last ? 16 : (uint32_t)qn_kit_bytes(dy->dtype)))
    return qn_refuse(out, "16-byte alignment", "dx", "16", "%u", dx->align);
  pool geometry = {};
  if (!pool_fill(&geometry, op, dx, dy) || elements > INT32_MAX - 16)
    return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%lld", (long long)elements);

  /* merge the dims */
  int64_t in[3] = { 1, 1, 1 }, step[3] = { 1, 1, 1 };
  double share = 1;
  int dims = 0;
  for (int d = 0; d < 3; d++) {
    const int64_t here = geometry.in[d], wide = step_of(&geometry, d, &share);
    if (max && at->dtype == QN_U8 && (geometry.before[d] || geometry.size[d] != wide))
      return qn_refuse(out, "taps of windows that are all inside", "dx", "no padding", "%d", geometry.before[d]);
    if (!wide || geometry.adaptive)
      return qn_refuse(out, "windows that tile x, or one over all of it", "dx", "a stride as wide as the window", "%d", geometry.size[d]);
    if (here == 1) continue;
    if (dims && (wide == here || (wide == 1 && step[dims - 1] == 1))) step[dims - 1] *= wide, in[dims - 1] *= here;
    else in[dims] = here, step[dims] = wide, dims++;
  }
  if (last && dims > 1) return qn_refuse(out, "one dim of pixels", "dx", "windows that are whole rows", "%d wide", geometry.size[2]);
  if (dims > 1 && (in[dims - 1] < v || (!max && (in[dims - 1] % 2 || step[dims - 1] % 2))))
    return qn_refuse(out, "rows of 16 bytes, and of means windows of an even width", "dx", "8 wide", "%lld", (long long)in[dims - 1]);
  disjoint *p = &s.p;
  p->share = (float)share;
  p->elements = (uint32_t)elements;
  p->words = (uint32_t)qn_ceil_div(elements, v);
  p->wide = max && at->dtype == QN_I64;
  p->by_plane = cuda_divide_by((int64_t)geometry.in[0] * geometry.in[1] * geometry.in[2]);
  p->by_groups = cuda_divide_by(last ? channels / v : 1);
  for (int i = 0; i < 3; i++) {           /* columns, rows, the rest; the outermost runs on through all planes */
    const bool outer = i + 1 >= dims;
    const int64_t wide = i < dims ? step[dims - 1 - i] : 1;
    p->by_step[i] = cuda_divide_by(wide);
    if (i == 2) break;
    p->by_in[i] = cuda_divide_by(outer ? (int64_t)1 << 31 : in[dims - 1 - i]);
    p->out[i] = outer ? 0 : (int32_t)(in[dims - 1 - i] / wide);
  }
  /* k: windows per word, if they align with words */
  const int64_t wide = p->by_step[0].by,
                k = v % wide == 0 && p->by_in[0].by % v == 0 && elements % v == 0 && dy->align >= 16 ? v / wide : 0;
  /* places are counted on from the word's first, so a word must not span planes; taps are not */
  if (max && k && at->align >= 16 && (at->dtype == QN_U8 || p->by_plane.by % v == 0)) {
    p->by_units = cuda_divide_by(p->by_in[0].by / v),
    p->by_rows = cuda_divide_by(dims > 2 ? p->by_in[1].by / p->by_step[1].by : (int64_t)1 << 31);
    p->words = (uint32_t)(qn_elements(dy) / k);
    s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) { return windows_of<dtype()>(at->dtype, k); });
  }
  const int64_t rows = p->by_step[1].by * (int64_t)p->by_step[2].by;       /* rows that a window covers */
  if (!max && dims > 1 && in[dims - 1] % v == 0 && rows <= MOST_ROWS) {
    p->by_units = cuda_divide_by(p->by_in[0].by / v),
    p->by_rows = cuda_divide_by(dims > 2 ? p->by_in[1].by / p->by_step[1].by : (int64_t)1 << 31);
    p->words = (uint32_t)(elements / v / rows);
    s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) { return rows_of<dtype()>(k); });
  } else if (!max && dims == 2 && elements % v == 0) {
    p->by_units = cuda_divide_by(in[1] * p->by_step[1].by);
    s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) { return (pool_kernel)pool_disjoint_bands<dtype()>; });
  }
  if (s.kernel) return pool_keep(&s, p->words, THREADS, out);
  if (max && at->dtype == QN_U8)
    return qn_refuse(out, "maxima by places, or whole windows in 16 bytes", "indices", "i32 or i64", "%s", "u8");
  s.kernel = cuda_by_dtype(dx->dtype, [&](auto dtype) { return kernel_of<dtype()>(max, last, dims <= 1); });
  return pool_keep(&s, p->words, THREADS, out);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pool_state<disjoint> *s = (const pool_state<disjoint> *)prepared->state;
  disjoint p = s->p;
  p.dy = launch->ptr[s->of.dy], p.dx = launch->ptr[s->of.dx];
  p.indices = s->of.indices >= 0 ? launch->ptr[s->of.indices] : nullptr;
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(s->kernel, s->blocks, s->threads, arguments, 0, (cudaStream_t)launch->stream), "disjoint");
}

static const qn_engine row[] = { pool_row<disjoint>("disjoint", QN_OP_POOL_MAX_BACKWARD, prepare, run),
                                 pool_row<disjoint>("disjoint", QN_OP_POOL_AVERAGE_BACKWARD, prepare, run),
                                 pool_row<disjoint>("disjoint", QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD, prepare, run) };
CUDA_ENGINES(pool_disjoint) = { row, sizeof row / sizeof *row };
