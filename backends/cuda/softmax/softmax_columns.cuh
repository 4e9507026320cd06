/* softmax_columns.cuh -- softmax, log-softmax and their gradients along a dim that is not the innermost;
 * part of softmax_rows.cu.
 *
 * columns: a lane has a 16-byte word of neighbouring columns, several threads divide its lines. A block keeps what it reads in
 *   shared memory. Long columns are divided among the blocks of a cluster or, if these are too few, among all resident blocks,
 *   which keep them in registers (MEET); or a first kernel measures parts and a second one writes (MEASURE, WRITE).
 * any: other dtypes, strides and sizes. A thread goes along four neighbouring columns twice. */
#pragma once
#include "cuda_backend.h"
#include "kit/meet.cuh"
#include "softmax.cuh"

/* AT_ONCE: lines in flight, partial results in flight; ROOM: bytes of shared memory of a block, about */
enum { LOG2_COLUMNS_BLOCK = 7, COLUMNS_BLOCK = 1 << LOG2_COLUMNS_BLOCK, COLUMNS_AT_ONCE = 4, TOLD_AT_ONCE = 16, COLUMNS_ROOM = 40 * 1024 };
/* How the parts of a column are combined: within a cluster; by two kernels, of which the first may use clusters too; by a grid barrier. */
enum { TOGETHER, MEASURE, WRITE, MEET };
/* WORDS: words a thread keeps; PARTS: partial results that a lane loads at once */
enum { MEETERS = 1024, MEET_BITS = 3, MEET_LANES = 1 << MEET_BITS, MEET_LINES = MEETERS / MEET_LANES, MEET_WORDS = 4, MEET_PARTS = 8 };

/* Adds N lines of a word of E columns. */
template <int dtype, int N> __device__ __forceinline__ void join_lines(spread (&j)[vector_per_16<dtype>], const uint4 (&q)[N])
{
  constexpr int E = vector_per_16<dtype>;
  float v[N][E];
#pragma unroll
  for (int k = 0; k < N; k++) vector_open<dtype>(v[k], 0, q[k]);
#pragma unroll
  for (int e = 0; e < E; e++) {
    float one[N], top = j[e].m;
#pragma unroll
    for (int k = 0; k < N; k++) top = fmaxf(top, one[k] = v[k][e]);
    j[e].join(one, top);
  }
}

/* The partial results of a column, `apart` from one another, merged in order. */
template <bool backward> __device__ __forceinline__ spread joined(const spread *partial, int n, int apart)
{
  spread j = partial[0];
  for (int i = 1; i < n; i++) {
    if (backward) j.s += partial[i * apart].s;
    else j.join(partial[i * apart]);
  }
  return j;
}

/* Measures a thread's n lines, for each column of its word. */
template <int dtype, bool backward>
__device__ __forceinline__ void measure_lines(spread (&j)[vector_per_16<dtype>], const uint4 *x, const uint4 *dy, int n, bool logarithm)
{
  constexpr int E = vector_per_16<dtype>, AT_ONCE = COLUMNS_AT_ONCE;
#pragma unroll
  for (int e = 0; e < E; e++) j[e] = { -FLT_MAX, 0 };
  int k = 0;
  if (backward) {
#pragma unroll 2
    for (; k < n; k++) {
      float v[E], d[E];
      vector_open<dtype>(v, 0, x[k * COLUMNS_BLOCK]);
      vector_open<dtype>(d, 0, dy[k * COLUMNS_BLOCK]);
#pragma unroll
      for (int e = 0; e < E; e++) j[e].s += finish::term(logarithm, v[e], d[e]);
    }
  } else {
#pragma unroll 1
    for (; k + AT_ONCE <= n; k += AT_ONCE) {
      uint4 q[AT_ONCE];
#pragma unroll
      for (int b = 0; b < AT_ONCE; b++) q[b] = x[(k + b) * COLUMNS_BLOCK];
      join_lines<dtype>(j, q);
    }
#pragma unroll 1
    for (; k < n; k++) {
      uint4 q[1] = { x[k * COLUMNS_BLOCK] };
      join_lines<dtype>(j, q);
    }
  }
}
template <int dtype, bool backward, bool logarithm>
__device__ __forceinline__ void finish_lines(const finish (&f)[vector_per_16<dtype>], uint4 *y, int64_t apart, const uint4 *x,
                                             const uint4 *dy, int n)
{
  constexpr int E = vector_per_16<dtype>;
#pragma unroll 4
  for (int k = 0; k < n; k++) {
    float v[E], d[E];
    vector_open<dtype>(v, 0, x[k * COLUMNS_BLOCK]);
    if (backward) vector_open<dtype>(d, 0, dy[k * COLUMNS_BLOCK]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = backward ? f[e].backward(logarithm, v[e], d[e]) : f[e].forward(logarithm, v[e]);
    y[k * apart] = vector_close<dtype>(v, 0);
  }
}

template <int dtype, bool backward>
__global__ static void __launch_bounds__(COLUMNS_BLOCK, 6) softmax_columns(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>;
  extern __shared__ uint4 words[];        /* of x, of dy, a thread's COLUMNS_BLOCK apart; then `partial` */
#if __CUDA_ARCH__ >= 900
  __shared__ uint64_t all_received[16];  /* one barrier, padded to 128 bytes to keep `words` aligned to the banks */
#endif
  const int t = threadIdx.x, bits = r.lane_bits, lanes = 1 << bits, lane = t & (lanes - 1), line = t >> bits,
            lines = COLUMNS_BLOCK >> bits, wide = lanes * E;
  const int64_t first = (int64_t)blockIdx.x * wide, begin = blockIdx.y * r.share + line, end = min((blockIdx.y + 1) * r.share, r.length);
  const int n = first + lane * E < r.count && begin < end ? (int)(end - begin + lines - 1) >> (LOG2_COLUMNS_BLOCK - bits) : 0;
  int64_t at[3], apart[3];
  r.begin(n ? first + lane * E : 0, at);
  for (int i = 0; i < 3; i++) apart[i] = lines * r.step[i] / E, at[i] += begin * r.step[i];
  uint4 *x = words + t, *dy = x + r.room / 2;
#pragma unroll 4
  for (int k = 0; k < n; k++) {
    keep(x + k * COLUMNS_BLOCK, vector_place<dtype>(r.x, at[0]) + k * apart[0]);
    if (backward) keep(dy + k * COLUMNS_BLOCK, vector_place<dtype>(r.dy, at[2]) + k * apart[2]);
  }
#if __CUDA_ARCH__ >= 900
  const bool cluster = r.phase != WRITE && r.together > 1;
  if (cluster) send_begin(shared_address(all_received), r.together * wide * (int)sizeof(spread));
  if (r.phase == MEASURE) grid_dependents_launch();
  if (r.phase == WRITE) grid_dependency_wait();
#endif

  spread *partial = (spread *)(words + r.room);   /* [many][wide]: partial results in the block */
  int many;
  if (r.phase != WRITE) {
    spread j[E];
    keep_wait();
    measure_lines<dtype, backward>(j, x, dy, n, r.logarithm);
    many = lanes < 32 ? COLUMNS_BLOCK / 32 : lines;
#pragma unroll
    for (int e = 0; e < E; e++) {
      j[e] = join_warp<backward>(j[e], lanes);
      if (lanes >= 32 || t % 32 < lanes) partial[(lanes < 32 ? t / 32 : line) * wide + lane * E + e] = j[e];
    }
  } else {
    const int clusters = r.parts / r.together;
    many = max(COLUMNS_BLOCK / E >> bits, 1);
    for (int i = t; i < wide * many; i += COLUMNS_BLOCK) {
      const int64_t c = first + (i & (wide - 1));
      spread j = { -FLT_MAX, 0 }, o[TOLD_AT_ONCE];
      for (int p = i / E >> bits; p < clusters && c < r.count; p += TOLD_AT_ONCE * many) {
#pragma unroll
        for (int k = 0; k < TOLD_AT_ONCE; k++)
          o[k] = p + k * many < clusters ? r.partial[(p + k * many) * r.count + c] : spread{ -FLT_MAX, 0 };
        if (backward) {
#pragma unroll
          for (int k = 0; k < TOLD_AT_ONCE; k++) j.s += o[k].s;
        } else {
          j.join(o);
        }
      }
      partial[i] = j;
    }
    keep_wait();
  }
  __syncthreads();
#if __CUDA_ARCH__ >= 900
  spread *all = partial + many * wide;    /* [together][wide]: from the cluster's blocks */
  if (cluster) cluster_wait();
#endif
  for (int c = t; c < wide; c += COLUMNS_BLOCK) {
    partial[c] = joined<backward>(partial + c, many, wide);
#if __CUDA_ARCH__ >= 900
    for (int to = 0; cluster && to < r.together; to++)
      send(all + blockIdx.y % r.together * wide + c, shared_address(all_received), to, partial[c]);
#endif
  }
#if __CUDA_ARCH__ >= 900
  if (cluster) {
    barrier_wait(shared_address(all_received), 0);
    for (int c = t; c < wide; c += COLUMNS_BLOCK) partial[c] = joined<backward>(all + c, r.together, wide);
  }
#endif
  if (r.phase == MEASURE) {
    for (int c = t; c < wide && first + c < r.count && blockIdx.y % r.together == 0; c += COLUMNS_BLOCK)
      r.partial[blockIdx.y / r.together * r.count + first + c] = partial[c];
    return;
  }
  __syncthreads();

  finish f[E];
#pragma unroll
  for (int e = 0; e < E; e++) f[e] = finish_of<backward>(partial[lane * E + e], r.logarithm);
  uint4 *y = (uint4 *)vector_place<dtype>(r.y, at[1]);
  if (r.logarithm) finish_lines<dtype, backward, true>(f, y, apart[1], x, dy, n);
  else finish_lines<dtype, backward, false>(f, y, apart[1], x, dy, n);
}

/* Cooperative launch: each block keeps its lines in registers across a grid barrier; a warp merges the partial results of a column. */
template <int dtype, bool backward>
__global__ static void __launch_bounds__(MEETERS, 1) softmax_columns_meet(const __grid_constant__ rows r)
{
  constexpr int E = vector_per_16<dtype>, WIDE = MEET_LANES * E, WARPS = MEETERS / 32, K = MEET_WORDS;
  __shared__ spread partial[WARPS][WIDE + 1];
  __shared__ finish known[WIDE];
  const int t = threadIdx.x, lane = t % MEET_LANES, line = t / MEET_LANES;
  const int64_t first = (int64_t)blockIdx.x * WIDE, begin = blockIdx.y * r.share + line,
                end = first + lane * E < r.count ? min((blockIdx.y + 1) * r.share, r.length) : 0;
  int64_t at[3];
  r.begin(end ? first + lane * E : 0, at);
  uint4 x[K], dy[K];
#pragma unroll
  for (int k = 0; k < K; k++) {
    const int64_t l = begin + k * MEET_LINES;
    x[k] = dy[k] = backward ? make_uint4(0, 0, 0, 0) : word_of_least<dtype>();
    if (l < end) x[k] = *vector_place<dtype>(r.x, at[0] + l * r.step[0]);
    if (backward && l < end) dy[k] = *vector_place<dtype>(r.dy, at[2] + l * r.step[2]);
  }
  spread j[E];
#pragma unroll
  for (int e = 0; e < E; e++) j[e] = { -FLT_MAX, 0 };
  if (backward) {
#pragma unroll
    for (int k = 0; k < K; k++) {
      float v[E], d[E];
      vector_open<dtype>(v, 0, x[k]);
      vector_open<dtype>(d, 0, dy[k]);
#pragma unroll
      for (int e = 0; e < E; e++) j[e].s += finish::term(r.logarithm, v[e], d[e]);
    }
  } else {
    join_lines<dtype>(j, x);
  }
#pragma unroll
  for (int e = 0; e < E; e++) {
    j[e] = join_warp<backward>(j[e], MEET_LANES);
    if (t % 32 < MEET_LANES) partial[t / 32][lane * E + e] = j[e];
  }
  __syncthreads();
  for (int c = t / 32; c < WIDE; c += WARPS) {
    const spread one = join_warp<backward>(partial[t % 32][c]);
    if (t % 32 == 0 && first + c < r.count) r.partial[(first + c) * r.parts + blockIdx.y] = one;
  }
  blocks_meet(r.met + blockIdx.x, r.parts, 1);
  for (int c = t / 32; c < WIDE && first + c < r.count; c += WARPS) {
    const float2 *from = (const float2 *)r.partial + (first + c) * r.parts;
    spread one = { -FLT_MAX, 0 };
    for (int p = t % 32; p < r.parts; p += 32 * MEET_PARTS) {
      spread o[MEET_PARTS];
#pragma unroll
      for (int k = 0; k < MEET_PARTS; k++) {
        const float2 v = p + 32 * k < r.parts ? __ldcg(from + p + 32 * k) : make_float2(-FLT_MAX, 0);
        o[k] = { v.x, v.y };
      }
      if (backward) {
#pragma unroll
        for (int k = 0; k < MEET_PARTS; k++) one.s += o[k].s;
      } else {
        one.join(o);
      }
    }
    one = join_warp<backward>(one);
    if (t % 32 == 0) known[c] = finish_of<backward>(one, r.logarithm);
  }
  __syncthreads();
  blocks_leave(r.met + blockIdx.x, r.parts, 1);
  finish f[E];
#pragma unroll
  for (int e = 0; e < E; e++) f[e] = known[lane * E + e];
#pragma unroll
  for (int k = 0; k < K; k++) {
    const int64_t l = begin + k * MEET_LINES;
    if (l >= end) break;
    float v[E], d[E];
    vector_open<dtype>(v, 0, x[k]);
    if (backward) vector_open<dtype>(d, 0, dy[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = backward ? f[e].backward(r.logarithm, v[e], d[e]) : f[e].forward(r.logarithm, v[e]);
    *(uint4 *)vector_place<dtype>(r.y, at[1] + l * r.step[1]) = vector_close<dtype>(v, 0);
  }
}

/* ---- any columns: a thread goes along four neighbouring ones twice --------------------------------------------------------- */

enum { W = 4 };                           /* columns a thread, neighbours along dim[0] */

__global__ void __launch_bounds__(128) softmax_any_columns(const __grid_constant__ rows r)
{
  uint32_t per_row = (r.dim[0] + W - 1) / W;
  int64_t item = blockIdx.x * (int64_t)128 + threadIdx.x, at[3];
  uint32_t outer = (uint32_t)(item / per_row), c0 = (uint32_t)(item - (int64_t)outer * per_row) * W;
  if ((int64_t)outer * r.dim[0] >= r.count) return;
  r.begin((int64_t)outer * r.dim[0] + c0, at);
  int n = min((int)(r.dim[0] - c0), (int)W);
  spread all[W];
#pragma unroll
  for (int i = 0; i < W; i++) all[i] = { -FLT_MAX, 0 };
  for (int64_t j = 0; j < r.length; j++) {
    float v[W], dy[W];
    vector_load(v, r.x, r.x_dtype, at[0] + j * r.step[0], r.stride[0][0], n);
    if (r.backward) vector_load(dy, r.dy, r.dy_dtype, at[2] + j * r.step[2], r.stride[0][2], n);
#pragma unroll
    for (int i = 0; i < W; i++) {
      float one[] = { v[i] };
      if (r.backward) all[i].s += finish::term(r.logarithm, v[i], dy[i]);
      else all[i].join(one, v[i]);
    }
  }
  finish f[W];
#pragma unroll
  for (int i = 0; i < W; i++) f[i] = r.backward ? finish_of<true>(all[i], r.logarithm) : finish_of<false>(all[i], r.logarithm);
  for (int64_t j = 0; j < r.length; j++) {
    float v[W], dy[W];
    vector_load(v, r.x, r.x_dtype, at[0] + j * r.step[0], r.stride[0][0], n);
    if (r.backward) vector_load(dy, r.dy, r.dy_dtype, at[2] + j * r.step[2], r.stride[0][2], n);
#pragma unroll
    for (int i = 0; i < W; i++) v[i] = r.backward ? f[i].backward(r.logarithm, v[i], dy[i]) : f[i].forward(r.logarithm, v[i]);
    vector_store(v, r.y, r.y_dtype, at[1] + j * r.step[1], r.stride[0][1], n);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

static const void *columns_kernel(const rows *r)
{
  if (r->phase == MEET) {
    switch (r->x_dtype) {
    case QN_F32: return r->backward ? (const void *)softmax_columns_meet<QN_F32, true> : (const void *)softmax_columns_meet<QN_F32, false>;
    case QN_F16: return r->backward ? (const void *)softmax_columns_meet<QN_F16, true> : (const void *)softmax_columns_meet<QN_F16, false>;
    default:
      return r->backward ? (const void *)softmax_columns_meet<QN_BF16, true> : (const void *)softmax_columns_meet<QN_BF16, false>;
    }
  }
  switch (r->x_dtype) {
  case QN_F32: return r->backward ? (const void *)softmax_columns<QN_F32, true> : (const void *)softmax_columns<QN_F32, false>;
  case QN_F16: return r->backward ? (const void *)softmax_columns<QN_F16, true> : (const void *)softmax_columns<QN_F16, false>;
  default:     return r->backward ? (const void *)softmax_columns<QN_BF16, true> : (const void *)softmax_columns<QN_BF16, false>;
  }
}

/* Chooses the width of blocks, so that a thread has several lines, and the number of parts of a column, so that several blocks
 * fit an SM: parts in a cluster or, where those are too few or leave most of the device idle, parts that exchange through the
 * workspace. False: the workspace limit is too small. */
static bool choose_columns(state *s, const qn_device *device, const qn_demands *demands, qn_prepared *out)
{
  rows *r = &s->r;
  const uint32_t determinism = demands->determinism;
  const int64_t per_word = r->x_dtype == QN_F32 ? 4 : 8, tensors = r->backward ? 2 : 1;
  r->lane_bits = 3;
  while (r->lane_bits < LOG2_COLUMNS_BLOCK && r->length << r->lane_bits < COLUMNS_AT_ONCE * COLUMNS_BLOCK) r->lane_bits++;
  const int64_t lanes = (int64_t)1 << r->lane_bits, lines = COLUMNS_BLOCK / lanes, wide = lanes * per_word,
                blocks = qn_ceil_div(r->count / per_word, lanes);
  auto room = [&](int64_t parts) { return qn_ceil_div(qn_ceil_div(r->length, parts), lines) * COLUMNS_BLOCK * tensors; };
  const bool portable = determinism == QN_DET_PORTABLE;
  const int64_t limit = portable ? (int64_t)COLUMNS_ROOM
                                 : qn_min_i64(tensors * COLUMNS_ROOM, (int64_t)device->shared_per_block - 16 * 1024);
  int64_t parts = 1, most = cuda_has_clusters(device) && !portable ? KEPT_PARTS : 1;
  while (parts < most && room(parts) * 16 > limit) parts *= 2;
  /* the number of parts, and so the bits of a sum, may depend on the number of columns and on the device */
  const int64_t splits = r->length / (COLUMNS_AT_ONCE * lines),
                apart = determinism >= QN_DET_BATCH ? 1 : qn_min_i64(2 * device->units / blocks, splits);
  if (determinism < QN_DET_BATCH && splits >= 4 * parts) out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
  if (!portable && room(1) * 16 > COLUMNS_ROOM) out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;
  const bool together = room(parts) * 16 <= limit && apart < 4 * parts;
  r->together = (int32_t)parts;
  r->phase = together ? TOGETHER : MEASURE;
  if (!together && determinism < QN_DET_BATCH && r->lane_bits == MEET_BITS && blocks <= device->units) {
    const int64_t all = device->units / blocks;
    const uint64_t partial = (uint64_t)(all * r->count) * sizeof(spread);
    r->share = qn_ceil_div(r->length, all);
    if (r->share <= MEET_WORDS * MEET_LINES && partial <= demands->workspace_limit) {
      r->phase = MEET;
      r->parts = (int32_t)all;
      out->workspace = partial, out->counters = (uint64_t)blocks * sizeof(uint32_t);
      s->kernel = columns_kernel(r);
      s->threads = MEETERS;
      s->blocks = (unsigned)blocks;
      return true;
    }
  }
  if (!together) {
    parts = qn_max_i64(apart, 1);
    while (room(parts) * 16 > limit) parts *= 2;
    r->together = parts >= 2 * most ? (int32_t)most : 1;
    parts = qn_round_up(parts, r->together);
    const uint64_t partial = (uint64_t)(parts / r->together * r->count) * sizeof(spread);
    if (parts > 65535 || partial > demands->workspace_limit) return false;
    out->workspace = partial;
  }
  r->parts = (int32_t)parts;
  r->share = qn_ceil_div(r->length, parts);
  r->room = (int32_t)room(parts);
  s->kernel = columns_kernel(r);
  s->threads = COLUMNS_BLOCK;
  s->blocks = (unsigned)blocks;
  s->shared = (unsigned)(r->room * 16 + (qn_max_i64(wide * (lanes < 32 ? COLUMNS_BLOCK / 32 : lines), COLUMNS_BLOCK) +
                                         wide * r->together) * (int64_t)sizeof(spread));
  return true;
}

static void choose_any_columns(state *s)
{
  const rows *r = &s->r;
  s->kernel = (const void *)softmax_any_columns;
  s->threads = 128;
  s->blocks = (unsigned)qn_ceil_div(qn_ceil_div(r->dim[0], W) * (r->count / r->dim[0]), s->threads);
}
