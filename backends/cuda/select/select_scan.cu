/* select_scan.cu -- cumsum along any dim, in f32 (integers in 64 bits).
 *
 *   short     lines of up to 128 elements, or up to 512 if there are many: up to 32 threads each
 *   lines     contiguous lines in pieces of 1024: a scan of 4 elements by thread, warp, block
 *   columns   along another dim: threads side by side have 4 neighbouring lines each, those below them the elements that follow
 *
 * If there are few lines each is cut into parts: one launch sums the parts, the next starts each part from the sums before it. The cuts
 * do not depend on the device. Refused: f64. */
#include "select_lines.cuh"

/* ---- contiguous lines -------------------------------------------------------------------------------------------- */

enum { EACH = 4, PIECE = THREADS * EACH, MOST_PARTS = 1024 };

/* Elements of a line are numbered in the order of the scan. */
template <class T> __device__ __forceinline__ void load_each(const lines &s, int64_t from, uint32_t i, uint32_t end, T v[EACH])
{
#pragma unroll
  for (int e = 0; e < EACH; e++) v[e] = i + e < end ? element_load<T>(s.x, from + (s.reverse ? s.n - 1 - (i + e) : i + e), s.x_dtype) : 0;
}
template <> __device__ __forceinline__ void load_each(const lines &s, int64_t from, uint32_t i, uint32_t end, float v[EACH])
{
  int n = i < end ? (int)min(end - i, (uint32_t)EACH) : 0;
  float w[EACH];
  if (!s.reverse) {
    vector_load<EACH>(w, s.x, s.x_dtype, from + i, 1, n);
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = w[e];
  } else {                                /* load ascending, then reverse */
    vector_load<EACH>(w, s.x, s.x_dtype, from + (int64_t)s.n - i - n, 1, n);
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int f = 0; f < EACH; f++)
        if (e + f + 1 == n) v[e] = w[f];
  }
}

template <class T> __device__ __forceinline__ void store_each(const lines &s, int64_t to, uint32_t i, uint32_t end, const T v[EACH])
{
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (i + e < end) element_store_wrapped(s.y, to + (s.reverse ? s.n - 1 - (i + e) : i + e) * s.y_step, s.y_dtype, v[e]);
}
template <> __device__ __forceinline__ void store_each(const lines &s, int64_t to, uint32_t i, uint32_t end, const float v[EACH])
{
  int n = i < end ? (int)min(end - i, (uint32_t)EACH) : 0;
  float w[EACH];
  if (n == 0) return;
#pragma unroll
  for (int e = 0; e < EACH; e++) w[e] = v[e];
  if (s.reverse) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int f = 0; f < EACH; f++)
        if (e + f + 1 == n) w[e] = v[f];
  }
  vector_store<EACH>(w, s.y, s.y_dtype, to + (s.reverse ? (int64_t)s.n - i - n : i) * s.y_step, s.y_step, n);
}

/* Exclusive sum over the block's threads; *all: the total. */
template <class T> __device__ __forceinline__ T sum_before(T v, T *warp_sum, T *all)
{
  uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  T upto = v;
#pragma unroll
  for (int o = 1; o < 32; o *= 2) {
    T other = __shfl_up_sync(~0u, upto, o);
    if (lane >= o) upto = other + upto;
  }
  __syncthreads();                        /* warp_sum has been read */
  if (lane == 31) warp_sum[warp] = upto;
  __syncthreads();
  T before = 0, total = 0;
#pragma unroll
  for (uint32_t w = 0; w < WARPS; w++) {
    if (w == warp) before = total;
    total = total + warp_sum[w];
  }
  T inside = __shfl_up_sync(~0u, upto, 1);
  *all = total;
  return lane ? before + inside : before;
}

template <class T> __global__ static void __launch_bounds__(THREADS) cumsum_parts(const __grid_constant__ lines s)
{
  __shared__ T warp_sum[WARPS];
  uint32_t line = blockIdx.x / s.parts, part = blockIdx.x % s.parts;
  int64_t from = line_begin(s, line, s.x_stride);
  uint32_t begin = part * s.part, end = min(s.n, begin + s.part);
  T sum = 0, all;
  for (uint32_t i = begin + threadIdx.x * EACH; i < end; i += PIECE) {
    T v[EACH];
    load_each<T>(s, from, i, end, v);
    sum = sum + ((v[0] + v[1]) + (v[2] + v[3]));
  }
  sum_before<T>(sum, warp_sum, &all);
  if (threadIdx.x == 0) ((T *)s.sums)[blockIdx.x] = all;
}

template <class T> __global__ static void __launch_bounds__(THREADS) cumsum_lines(const __grid_constant__ lines s)
{
  __shared__ T warp_sum[WARPS];
  uint32_t line = blockIdx.x / s.parts, part = blockIdx.x % s.parts;
  int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride);
  uint32_t begin = part * s.part, end = min(s.n, begin + s.part);
  T carry = 0, all;
  if (part) {                             /* the parts before this one, each by one thread at a time, then all of them */
    T sum = 0;
    for (uint32_t k = threadIdx.x; k < part; k += THREADS) sum = sum + ((const T *)s.sums)[line * s.parts + k];
    sum_before<T>(sum, warp_sum, &carry);
  }
  T next[EACH];
  load_each<T>(s, from, begin + threadIdx.x * EACH, end, next);
  for (uint32_t start = begin; start < end; start += PIECE) {
    uint32_t i = start + threadIdx.x * EACH;
    T v[EACH], sum[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = next[e];
    if (start + PIECE < end) load_each<T>(s, from, i + PIECE, end, next);
#pragma unroll
    for (int e = 0; e < EACH; e++) sum[e] = e ? sum[e - 1] + v[e] : v[0];
    T before = carry + sum_before<T>(sum[EACH - 1], warp_sum, &all);
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = !s.exclusive ? before + sum[e] : e ? before + sum[e - 1] : before;
    store_each<T>(s, to, i, end, v);
    carry = carry + all;
  }
}

/* Short lines: `lanes` threads each. */
template <class T> __global__ static void __launch_bounds__(THREADS) cumsum_short(const __grid_constant__ lines s)
{
  const uint32_t lane = threadIdx.x % s.lanes, line = blockIdx.x * (THREADS / s.lanes) + threadIdx.x / s.lanes;
  const uint32_t n = line < s.count ? s.n : 0;
  const int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride);
  T carry = 0;
  for (uint32_t start = 0; start < s.n; start += s.lanes * EACH) {
    const uint32_t i = start + lane * EACH;
    T v[EACH], sum[EACH];
    load_each<T>(s, from, i, n, v);
#pragma unroll
    for (int e = 0; e < EACH; e++) sum[e] = e ? sum[e - 1] + v[e] : v[0];
    T upto = sum[EACH - 1];
    for (uint32_t o = 1; o < s.lanes; o *= 2) {
      const T other = __shfl_up_sync(~0u, upto, o, s.lanes);
      if (lane >= o) upto = other + upto;
    }
    const T inside = __shfl_up_sync(~0u, upto, 1, s.lanes), before = lane ? carry + inside : carry;
#pragma unroll
    for (int e = 0; e < EACH; e++) v[e] = !s.exclusive ? before + sum[e] : e ? before + sum[e - 1] : before;
    store_each<T>(s, to, i, n, v);
    carry = carry + __shfl_sync(~0u, upto, s.lanes - 1, s.lanes);
  }
}

/* ---- neighbouring lines ------------------------------------------------------------------------------------------ */

enum { BESIDE = 4, STEPS = 8 };           /* lines of a thread; elements of each that are loaded at once */

template <class T> __device__ __forceinline__ void load_beside(T (&v)[BESIDE], const lines &s, int64_t at, int n)
{
#pragma unroll
  for (int i = 0; i < BESIDE; i++) v[i] = i < n ? element_load<T>(s.x, at + i * s.x_stride[0], s.x_dtype) : 0;
}
template <> __device__ __forceinline__ void load_beside(float (&v)[BESIDE], const lines &s, int64_t at, int n)
{
  vector_load<BESIDE>(v, s.x, s.x_dtype, at, s.x_stride[0], n);
}
template <class T> __device__ __forceinline__ void store_beside(const T (&v)[BESIDE], const lines &s, int64_t at, int n)
{
#pragma unroll
  for (int i = 0; i < BESIDE; i++)
    if (i < n) element_store_wrapped(s.y, at + i * s.y_stride[0], s.y_dtype, v[i]);
}
template <> __device__ __forceinline__ void store_beside(const float (&v)[BESIDE], const lines &s, int64_t at, int n)
{
  vector_store<BESIDE>(v, s.y, s.y_dtype, at, s.y_stride[0], n);
}

/* Of T numbers of `lanes` threads side by side: exclusive sums over the threads above each; *all: over all of them. */
template <class T>
__device__ __forceinline__ void sums_above(const T (&own)[BESIDE], uint32_t lanes, T (*part)[BESIDE], T (&before)[BESIDE], T (&all)[BESIDE])
{
  const uint32_t t = threadIdx.x, lane = t % 32, rows = lanes < 32 ? WARPS : THREADS / lanes, row = t / max(lanes, 32u), column = t % lanes;
  T upto[BESIDE];
#pragma unroll
  for (int i = 0; i < BESIDE; i++) upto[i] = own[i], before[i] = all[i] = 0;
  for (uint32_t o = lanes; o < 32; o *= 2)
#pragma unroll
    for (int i = 0; i < BESIDE; i++) {
      const T other = __shfl_up_sync(~0u, upto[i], o);
      if (lane >= o) upto[i] = other + upto[i];
    }
  __syncthreads();                        /* part has been read */
  if (lanes >= 32 || lane >= 32 - lanes)
#pragma unroll
    for (int i = 0; i < BESIDE; i++) part[row * lanes + column][i] = upto[i];
  __syncthreads();
  for (uint32_t r = 0; r < rows; r++)
#pragma unroll
    for (int i = 0; i < BESIDE; i++) {
      if (r == row) before[i] = all[i];
      all[i] = all[i] + part[r * lanes + column][i];
    }
  if (lanes < 32)
#pragma unroll
    for (int i = 0; i < BESIDE; i++) {
      const T inside = __shfl_up_sync(~0u, upto[i], lanes);
      if (lane >= lanes) before[i] = before[i] + inside;
    }
}

/* A thread has BESIDE lines and STEPS of their elements; `lanes` threads are side by side, the others of a block below them. A block has
 * a part of the lines. sums: [parts][lines]. */
template <class T> __global__ static void __launch_bounds__(THREADS) cumsum_columns(const __grid_constant__ lines s, bool sums_only)
{
  __shared__ T of_block[THREADS][BESIDE];
  const uint32_t groups = (s.dim[0] + BESIDE - 1) / BESIDE, all_groups = s.count / s.dim[0] * groups;
  const uint32_t part = blockIdx.x % s.parts, group = blockIdx.x / s.parts * s.lanes + threadIdx.x % s.lanes;
  const uint32_t other = min(group, all_groups - 1) / groups, column = (min(group, all_groups - 1) - other * groups) * BESIDE;
  const uint32_t line = other * s.dim[0] + column, mine = threadIdx.x / s.lanes, slices = THREADS / s.lanes;
  const int beside = group < all_groups ? (int)min(s.dim[0] - column, (uint32_t)BESIDE) : 0;
  const int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride);
  const uint32_t begin = part * s.part, end = min(s.n, begin + s.part);
  T *const sums = (T *)s.sums + line, own[BESIDE] = {}, before[BESIDE], all[BESIDE], carry[BESIDE] = {};
  if (part && !sums_only) {
    for (uint32_t p = mine; p < part; p += slices)
#pragma unroll
      for (int i = 0; i < BESIDE; i++)
        if (i < beside) own[i] = own[i] + sums[(int64_t)p * s.count + i];
    sums_above<T>(own, s.lanes, of_block, before, carry);
  }
  for (uint32_t start = begin; start < end; start += slices * STEPS) {
    const uint32_t j = start + mine * STEPS;
    T v[STEPS][BESIDE];
#pragma unroll
    for (int k = 0; k < STEPS; k++)
      load_beside<T>(v[k], s, from + (int64_t)(s.reverse ? s.n - 1 - (j + k) : j + k) * s.x_step, j + k < end ? beside : 0);
#pragma unroll
    for (int i = 0; i < BESIDE; i++) {
      T sum = 0;
#pragma unroll
      for (int k = 0; k < STEPS; k++) sum = sum + v[k][i];
      own[i] = sums_only ? own[i] + sum : sum;
    }
    if (sums_only) continue;
    sums_above<T>(own, s.lanes, of_block, before, all);
#pragma unroll
    for (int i = 0; i < BESIDE; i++) before[i] = carry[i] + before[i], carry[i] = carry[i] + all[i];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
      T upto[BESIDE];
#pragma unroll
      for (int i = 0; i < BESIDE; i++) upto[i] = before[i] + v[k][i];
      const int64_t at = to + (int64_t)(s.reverse ? s.n - 1 - (j + k) : j + k) * s.y_step;
      const int n = j + k < end ? beside : 0;
      if (s.exclusive) store_beside<T>(before, s, at, n);
      else store_beside<T>(upto, s, at, n);
#pragma unroll
      for (int i = 0; i < BESIDE; i++) before[i] = upto[i];
    }
  }
  if (!sums_only) return;
  sums_above<T>(own, s.lanes, of_block, before, all);
  if (mine == 0)
    for (int i = 0; i < beside; i++) sums[(int64_t)part * s.count + i] = all[i];
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_scan *a = (const qn_scan *)r->op[0].attr;
  const qn_value *x = cuda_value(r, QN_ROLE_CUMSUM_X), *y = cuda_value(r, QN_ROLE_CUMSUM_Y);
  const int32_t x_at = qn_role(&r->op[0], QN_ROLE_CUMSUM_X), y_at = qn_role(&r->op[0], QN_ROLE_CUMSUM_Y);
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates floats in f32", "x", "f32, f16 or bf16", "%s", "f64");
  lines s = {};
  const char *why = lines_of(&s, x, y, nullptr, (int)a->axis);
  if (why) return qn_refuse(out, why, "x", "", "%s", "");
  s.exclusive = a->exclusive != 0, s.reverse = a->reverse != 0;
  int64_t blocks;                         /* of a part of all lines */
  s.parts = 1, s.part = s.n;
  if (s.x_step != 1) {
    if (!s.rank) s.rank = 1, s.dim[0] = 1, s.x_stride[0] = s.y_stride[0] = 1;
    const int64_t groups = (int64_t)(s.count / s.dim[0]) * qn_ceil_div(s.dim[0], BESIDE);
    uint32_t slices = 1;
    while (slices < 32 && (int64_t)slices * STEPS < s.n) slices *= 2;
    for (s.lanes = THREADS / slices; s.lanes > 1 && s.lanes / 2 >= groups; s.lanes /= 2) slices *= 2;
    blocks = qn_ceil_div(groups, s.lanes);
    const int64_t rows = (int64_t)slices * STEPS, steps = qn_ceil_div(s.n, rows);
    if (steps > 3 && blocks < 264) {      /* parts for about 1024 blocks */
      s.part = (uint32_t)(qn_ceil_div(steps, qn_min_i64(steps, 1024 / blocks)) * rows);
      s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
    }
  } else if (s.n <= 128 || (s.n <= 512 && s.count >= 1024)) {
    for (s.lanes = 1; s.lanes < 32 && s.lanes * EACH < s.n;) s.lanes *= 2;
    blocks = qn_ceil_div(s.count, THREADS / s.lanes);
  } else {                                /* parts for about 2048 blocks */
    const int64_t pieces = qn_ceil_div(s.n, PIECE), parts = qn_min_i64(qn_min_i64(MOST_PARTS, pieces), qn_ceil_div(2048, s.count));
    s.part = (uint32_t)(qn_ceil_div(pieces, parts) * PIECE);
    s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
    blocks = s.count;
  }
  if ((double)blocks * s.parts > INT32_MAX) return qn_refuse(out, "fewer than 2^31 parts of lines", "x", "2^31", "%u", s.count);
  if (s.parts > 1) out->workspace = (size_t)s.count * s.parts * 8;
  return keep(out, &s, x_at, y_at, -1);
}

template <class T> static void launch_scan(const lines &s, cudaStream_t stream)
{
  if (s.x_step != 1) {
    const uint32_t groups = s.count / s.dim[0] * ((s.dim[0] + BESIDE - 1) / BESIDE), blocks = (groups + s.lanes - 1) / s.lanes * s.parts;
    if (s.parts > 1) cumsum_columns<T><<<blocks, THREADS, 0, stream>>>(s, true);
    cumsum_columns<T><<<blocks, THREADS, 0, stream>>>(s, false);
  } else if (s.lanes) {
    cumsum_short<T><<<(s.count + THREADS / s.lanes - 1) / (THREADS / s.lanes), THREADS, 0, stream>>>(s);
  } else {
    if (s.parts > 1) cumsum_parts<T><<<s.count * s.parts, THREADS, 0, stream>>>(s);
    cumsum_lines<T><<<s.count * s.parts, THREADS, 0, stream>>>(s);
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const line_state *st = (const line_state *)p->state;
  lines s = st->s;
  s.x = launch->ptr[st->x];
  s.y = launch->ptr[st->y];
  s.sums = launch->workspace;
  if (qn_is_integer(s.x_dtype)) launch_scan<int64_t>(s, (cudaStream_t)launch->stream);
  else launch_scan<float>(s, (cudaStream_t)launch->stream);
  return cuda_check(cudaGetLastError(), "cumsum");
}

static const qn_engine row[] = {
  { "lines", QN_OP_CUMSUM, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(select_scan) = { row, sizeof row / sizeof *row };
