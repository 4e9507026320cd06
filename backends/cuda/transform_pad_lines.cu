/* transform_pad_lines.cu -- pad and its gradient of narrow elements, where most of a row of what is written is a run of what is read: a thread
 * has vectors of 16 bytes as they lie in the one, each out of the two that it lies in in the other. What is left at a row's ends goes by the
 * element. A block has neighbouring rows, and says of each once where it comes from. */
#include "engines.h"
#include "pad.cuh"
#include "vector.cuh"

enum { THREADS = 256, UNITS = 4, SPAN = THREADS * UNITS };
enum { LONG = 13, LONG_BACK = 26 };       /* vectors of a run, from which on it goes before units */

struct lining : padding {                 /* pad: x, y; its gradient: dy, dx */
  int64_t high;                           /* where in ends, in bytes */
  int64_t width, from, run, shift;        /* bytes: of a row of out; in it, where the run begins and how long it is; from there to its place in in */
  uint32_t rows, together, slots, edges;  /* of out; of a block; vectors of a run at most; elements of a row beside them at most */
  cuda_divisor by_slots, by_edges, by_spans;                /* spans: of a row whose vectors are more than a block's */
  alignas(16) uint64_t pattern[2];        /* of the value */
};

/* The k-th row of in that is in this row of out, in bytes; *count: how many are. */
template <int dtype> __device__ __forceinline__ int64_t row_of(const lining &p, uint32_t row, int k, int *count)
{
  if (dtype) return pad_sources<1>(p, row, k, count);
  const int64_t from = pad_source<1>(p, row);
  *count = from >= 0;
  return from;
}

/* ---- 16 bytes of in ------------------------------------------------------------------------------------------------ */

struct pair { uint4 first, second; uint32_t skip; };        /* from byte `skip` of the first on */

template <class T> __device__ __forceinline__ pair load(const lining &p, int64_t at)
{
  pair v = {};
  const uint32_t skip = (uint32_t)(uintptr_t)(p.in + at) % 16;
  const uint4 *word = (const uint4 *)(p.in + at - skip);
  if (at >= skip && at - skip + (skip ? 32 : 16) <= p.high) {
    v.skip = skip;
    v.first = word[0];
    if (skip) v.second = word[1];
  } else {                                /* in's ends */
    union { T of[16 / sizeof(T)]; uint4 all; } each;
#pragma unroll
    for (int i = 0; i < (int)(16 / sizeof(T)); i++) each.of[i] = ((const T *)(p.in + at))[i];
    v.first = each.all;
  }
  return v;
}

__device__ __forceinline__ uint4 joined(const pair &v)
{
  uint32_t w[8] = { v.first.x, v.first.y, v.first.z, v.first.w, v.second.x, v.second.y, v.second.z, v.second.w };
#pragma unroll
  for (int i = 0; i < 6; i++) w[i] = v.skip & 8 ? w[i + 2] : w[i];
#pragma unroll
  for (int i = 0; i < 5; i++) w[i] = v.skip & 4 ? w[i + 1] : w[i];
  const uint32_t bits = v.skip % 4 * 8;
  return make_uint4(__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits), __funnelshift_r(w[2], w[3], bits), __funnelshift_r(w[3], w[4], bits));
}

/* ---- the gradient's sums: each begins with its first term, so that one alone keeps its bits --------------------------------- */

/* Of `count` rows of dy. */
template <class T, int dtype> __device__ __forceinline__ uint4 summed(const lining &p, uint32_t row, int count, int64_t at)
{
  float sum[vector_per_16<dtype>], more[vector_per_16<dtype>];
  for (int k = 0; k < count; k++) {
    vector_open<dtype>(more, 0, joined(load<T>(p, row_of<dtype>(p, row, k, &count) + at)));
#pragma unroll
    for (int i = 0; i < vector_per_16<dtype>; i++) sum[i] = k ? sum[i] + more[i] : more[i];
  }
  return vector_close<dtype>(sum, 0);
}

/* Of the places of dy that show this column of these rows; `from` is the first. */
template <class T, int dtype> __device__ __forceinline__ T element(const lining &p, int64_t from, uint32_t row, int rows, int column)
{
  int columns, first = pad_shows(p, 0, column, 0, &columns);
  if (rows == 1 && columns == 1) return ((const T *)(p.in + from))[first];
  float sum[1], more[1];
  for (int k = 0; k < rows; k++) {
    if (k) from = row_of<dtype>(p, row, k, &rows);
    for (int c = 0; c < columns; c++) {
      vector_load(more, p.in + from, dtype, pad_shows(p, 0, column, c, &columns), 1, 1);
      sum[0] = k || c ? sum[0] + more[0] : more[0];
    }
  }
  T bits;
  vector_store(sum, &bits, dtype, 0, 1, 1);
  return bits;
}

/* ---- the kernel: dtype is the gradient's, or 0: pad ------------------------------------------------------------------- */

template <class T, int dtype> __global__ static void __launch_bounds__(THREADS) transform_pad_lines(const __grid_constant__ lining p)
{
  constexpr int E = sizeof(T), EDGES = dtype ? 1 : UNITS;
  __shared__ int64_t source[THREADS];
  __shared__ int count[THREADS];
  uint32_t span;
  const uint32_t first = cuda_quotient(blockIdx.x, p.by_spans, &span) * p.together, rows = min(p.together, p.rows - first);
  if (threadIdx.x < rows) source[threadIdx.x] = row_of<dtype>(p, first + threadIdx.x, 0, &count[threadIdx.x]);
  __syncthreads();
  char *const out = p.out + first * p.width, *const runs = out + p.from;
  const auto place = [&](int u, uint32_t *line) {           /* of a vector in its run; -1: there is none */
    const uint32_t unit = span * SPAN + u * THREADS + threadIdx.x;
    uint32_t slot;
    *line = cuda_quotient(unit, p.by_slots, &slot);
    const int64_t at = slot * (int64_t)16 + (-(uint32_t)(uintptr_t)(runs + *line * p.width)) % 16;
    return *line < rows && at + 16 <= p.run ? at : -1;
  };
  pair v[UNITS];
  char *to[UNITS];
#pragma unroll
  for (int u = 0; u < UNITS; u++) {
    uint32_t line;
    const int64_t at = place(u, &line);
    to[u] = nullptr;
    if (at < 0 || count[line] > 1) continue;
    to[u] = runs + line * p.width + at;
    if (count[line]) v[u] = load<T>(p, source[line] + p.shift + at);
    else v[u].first = *(const uint4 *)p.pattern, v[u].skip = 0;
  }
#pragma unroll
  for (int u = 0; u < UNITS; u++)
    if (to[u]) *(uint4 *)to[u] = joined(v[u]);
  if constexpr (dtype != 0)
#pragma unroll 1
    for (int u = 0; u < UNITS; u++) {
      uint32_t line;
      const int64_t at = place(u, &line);
      if (at >= 0 && count[line] > 1) *(uint4 *)(runs + line * p.width + at) = summed<T, dtype>(p, first + line, count[line], p.shift + at);
    }
  if (span) return;
  for (uint32_t from = threadIdx.x; from < rows * p.edges; from += EDGES * THREADS) {
    T bits[EDGES];
    char *at[EDGES];
#pragma unroll
    for (int u = 0; u < EDGES; u++) {
      at[u] = nullptr;
      const uint32_t edge = from + u * THREADS;
      if (edge >= rows * p.edges) continue;
      uint32_t column;
      const uint32_t line = cuda_quotient(edge, p.by_edges, &column);
      const uint32_t skip = (-(uint32_t)(uintptr_t)(runs + line * p.width)) % 16;
      if (column * (int64_t)E >= p.from + skip) column += (uint32_t)((p.run - skip) / 16 * 16 / E);
      if (column * (int64_t)E >= p.width) continue;
      at[u] = out + line * p.width + column * (int64_t)E;
      bits[u] = *(const T *)p.pattern;
      if constexpr (dtype != 0) {
        bits[u] = element<T, dtype>(p, source[line], first + line, count[line], (int)column);
      } else if (count[line]) {
        const int shown = pad_shown(p.mode, column, p.before[0], p.in_dim[0]);
        if (shown >= 0) bits[u] = ((const T *)(p.in + source[line]))[shown];
      }
    }
#pragma unroll
    for (int u = 0; u < EDGES; u++)
      if (at[u]) *(T *)at[u] = bits[u];
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { lining p; int32_t in, out; const void *kernel; };

static const void *kernel_of(bool back, const qn_value *out, int esize)
{
  if (!back) return esize == 1 ? (const void *)transform_pad_lines<uint8_t, 0> : esize == 2 ? (const void *)transform_pad_lines<uint16_t, 0> : nullptr;
  return out->dtype == QN_BF16 ? (const void *)transform_pad_lines<uint16_t, QN_BF16> : out->dtype == QN_F16 ? (const void *)transform_pad_lines<uint16_t, QN_F16> : nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *result)
{
  const bool back = r->op[0].op == QN_OP_PAD_BACKWARD;
  const int roles[2] = { back ? QN_ROLE_PAD_BACKWARD_DY : QN_ROLE_PAD_X, back ? QN_ROLE_PAD_BACKWARD_DX : QN_ROLE_PAD_Y };
  const char *written = back ? "dx" : "y", *read = back ? "dy" : "x";
  const qn_value *in = cuda_value(r, roles[0]), *out = cuda_value(r, roles[1]);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  const int esize = (int)qn_kit_bytes(out->dtype);
  pad_state st = {};
  st.kernel = kernel_of(back, out, esize);
  if (!st.kernel) return qn_refuse(result, "narrow elements", written, back ? "f16 or bf16" : "at most 2 bytes", "%s", qn_kit_name(out->dtype));
  if (in->dtype != out->dtype) return qn_refuse(result, "one dtype", written, qn_kit_name(in->dtype), "%s", qn_kit_name(out->dtype));
  if (!qn_is_dense(out)) return qn_refuse(result, "elements are counted as they lie", written, "no gaps", "%s", "gaps");
  if (qn_elements(out) > INT32_MAX) return qn_refuse(result, "elements are counted in 31 bits", written, "below 2^31", "%lld", (long long)qn_elements(out));
  for (int d = 0; d < in->rank; d++)
    if (in->dim[d] > INT32_MAX) return qn_refuse(result, "places are counted in 31 bits", read, "below 2^31", "%lld", (long long)in->dim[d]);
  lining p = {};
  if (!pad_fill(&p, a, in, out)) return qn_refuse(result, "at most 6 dims that do not merge", written, "6", "%d", out->rank);
  if (p.in_dim[0] > 1 && p.in_stride[0] != esize) return qn_refuse(result, "rows contiguous in both", read, "the order of the other's dims", "%s", "");
  int32_t once[2] = { (int32_t)p.before[0], (int32_t)(p.before[0] + p.in_dim[0]) };
  if (back) pad_once(p, 0, once);
  p.width = (int64_t)p.out_dim[0] * esize;
  p.from = (int64_t)once[0] * esize, p.run = (int64_t)(once[1] - once[0]) * esize;
  p.shift = (int64_t)(back ? once[0] + (int32_t)p.before[0] : 0) * esize;
  const int64_t whole = (p.run - (16 - esize)) / 16;        /* vectors of a run at least */
  if (whole < 4 || whole * 32 < p.width) return qn_refuse(result, "most of a row is 64 bytes at least as they lie in the other", written, "64", "%lld", (long long)p.run);
  p.high = esize;
  for (int d = 0; d < p.rank; d++) p.high += (int64_t)(p.in_dim[d] - 1) * p.in_stride[d];
  p.rows = (uint32_t)(qn_elements(out) / p.out_dim[0]);
  p.slots = (uint32_t)(p.run / 16);
  p.edges = p.out_dim[0] - (uint32_t)(whole * 16 / esize);
  p.together = p.slots > SPAN ? 1 : (uint32_t)(SPAN / p.slots);
  if (p.together > p.rows) p.together = p.rows;
  p.by_slots = cuda_divide_by(p.slots), p.by_edges = cuda_divide_by(p.edges), p.by_spans = cuda_divide_by(qn_ceil_div(p.slots, SPAN));
  for (int i = 0; i < 16 / esize && !back; i++) qn_store_f64((char *)p.pattern + i * esize, out->dtype, a->value);
  st.p = p;
  st.in = qn_role(&r->op[0], roles[0]), st.out = qn_role(&r->op[0], roles[1]);
  /* many long runs, out of step: faster than units */
  const int64_t blocks = qn_ceil_div(p.rows, p.together) * p.by_spans.by;
  if (p.in_dim[0] != p.out_dim[0] && whole >= (back ? LONG_BACK : LONG) && blocks >= 8 * r->device->units) result->estimate = 1e4 + (double)p.rows * (double)p.width * 2 / 3000;
  return cuda_keep(result, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  lining p = st->p;
  p.in = (const char *)launch->ptr[st->in];
  p.out = (char *)launch->ptr[st->out];
  void *arguments[] = { &p };
  const unsigned blocks = (unsigned)qn_ceil_div(p.rows, p.together) * p.by_spans.by;
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream), "transform_pad_lines");
}

static const qn_engine row[] = {
  { "lines", QN_OP_PAD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
  { "lines", QN_OP_PAD_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
const qn_engine_list cuda_transform_pad_lines_list = { row, sizeof row / sizeof *row };
