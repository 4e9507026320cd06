/* attention_few.cuh -- attention of at most 16 rows a head of keys, by mma.sync: decoding, whose time is that of loads and of what stands
 * before and behind them.
 *
 * Rows are queries, with the heads of a group side by side. A warp takes steps of 16 keys (32 of 64 elements), from memory straight to
 * registers: both products sum in an order that suits 16-byte loads, and neither needs shared memory or another warp.
 *   S = q k': lane 4 g + c has pieces c, c + 4, ... of eight elements of keys g, g + 8, and of query g: the same elements of both.
 *   y' = v' P': lane 4 g + c has columns 8 g to 8 g + 7 of keys 2 c, 2 c + 1, 2 c + 8, 2 c + 9, whose halves are words of two keys. P is b
 *   of this product as S leaves it.
 * The loads of a step are asked for as soon as the last one's registers are free.
 *
 * A block is as many warps as its part of the keys has steps, or as the device has room for. It joins its warps in shared memory; the last of
 * the blocks that share a head's keys joins their parts in one order.
 *
 * Not taken: more rows, ragged sequences, blocks, dropout, pages and what changes single scores together. A row that is not finite is
 * computed again, as in attention_mma.cuh. */
#pragma once
#include "attention_few.h"
#include "attention_mma.cuh"

/* Tiles of eight rows. Whole: rows of keys and of values have D elements. */
template <int kind_, int D_, int TILES_, bool WHOLE_, int FORM> struct attention_few_shape {
  static constexpr int kind = kind_, D = D_, TILES = TILES_;
  static constexpr bool WHOLE = WHOLE_, PAGED = FORM == CUDA_FEW_PAGED, CHANGED = FORM == CUDA_FEW_CHANGED, DROPS = false;
  typedef uint16_t element;
  static constexpr int KEYS = CUDA_FEW_KEYS(D), THREADS = CUDA_FEW_THREADS(D, TILES * 8), PITCH = D + 4;
  static constexpr bool Q_SHARED = D > 128;                           /* queries take too many registers */
};

__device__ __forceinline__ void attention_few_load(uint4 &x, const char *from)
{
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(from));
}

/* What this thread has stored; in a register only until it is used. */
__device__ __forceinline__ uint4 attention_few_query(const float *own, int i)
{
  uint4 x;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(shared_address((const uint4 *)own + i)) : "memory");
  return x;
}

/* Scores of a step, which begins at key `block`. Where there is one tile, row g + 8 is row g once more. */
template <class T>
__device__ __forceinline__ void attention_few_change(const cuda_attention_many &a, const attention_sequence &s, int block, float (&x)[T::KEYS / 2])
{
  const int row = threadIdx.x % 32 / 4, end = max(0, s.queries - 1);
  const attention_line one(a, s, row), two(a, s, row + (T::TILES - 1) * 8);
  const int h[2] = { min(one.h, a.heads - 1), min(two.h, a.heads - 1) }, i[2] = { min(one.i, end), min(two.i, end) },
            at[2] = { one.i + s.shift, two.i + s.shift };
  const attention_change_rows rows(a.change, s.b, h, i);
  attention_changed<false>(a.change, rows, at, block, s.keys, x);
}

/* ---- parts ----------------------------------------------------------------------------------------------------------------- */

/* Four columns of a row: its maximum, divisor, sums. */
struct attention_few_sum { float m, l; float4 x; };

/* Those of n parts in order, each `words` further: rows of sums, then of maxima and divisors. AT_ONCE: loads in flight. */
template <int AT_ONCE, int PITCH>
__device__ __forceinline__ attention_few_sum attention_few_join(const float *parts, int words, int n, int rows, int row, int column, float unit)
{
  attention_few_sum all = { -1e30f, 0, make_float4(0, 0, 0, 0) };
#pragma unroll 1
  for (int p = 0; p < n; p += AT_ONCE) {
    float2 ends[AT_ONCE];
    float4 x[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const float *part = parts + (int64_t)(p + i) * words;
      ends[i] = make_float2(-1e30f, 0), x[i] = make_float4(0, 0, 0, 0);
      if (p + i < n) ends[i] = *(const float2 *)(part + rows * PITCH + 2 * row), x[i] = *(const float4 *)(part + row * PITCH + column);
    }
    float m = all.m;
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) m = fmaxf(m, ends[i].x);
    const float of = fn_exp2((all.m - m) * unit);
    all.m = m, all.l *= of, all.x.x *= of, all.x.y *= of, all.x.z *= of, all.x.w *= of;
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
      const float by = fn_exp2((ends[i].x - m) * unit);
      all.l = fmaf(ends[i].y, by, all.l);
      all.x.x = fmaf(x[i].x, by, all.x.x), all.x.y = fmaf(x[i].y, by, all.x.y);
      all.x.z = fmaf(x[i].z, by, all.x.z), all.x.w = fmaf(x[i].w, by, all.x.w);
    }
  }
  return all;
}

/* The block has stored its part: true in the last one of its head of keys, which then sees all. */
__device__ __forceinline__ bool attention_few_last(uint32_t *ticket, int parts)
{
  uint32_t before = 0;
  __syncthreads();
  if (threadIdx.x == 0)                   /* the last one leaves 0 */
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(ticket), "r"(parts - 1) : "memory");
  return __syncthreads_or(threadIdx.x == 0 && before == (uint32_t)parts - 1);
}

/* Four columns of row `row` of y; false: they are not finite. */
template <class T>
__device__ __forceinline__ bool attention_few_end(const cuda_attention_many &a, const attention_sequence &s, int row, int column,
                                                  attention_few_sum all)
{
  const attention_line line(a, s, row);
  const float natural = a.unit * 0.69314718056f, sink = a.sink ? a.sink[line.h * a.sink_stride] : -INFINITY;
  const bool sees = line.high >= line.low;
  if (sink != -INFINITY) {
    const float of = sink / natural, m = fmaxf(all.m, of), by = fn_exp2((all.m - m) * a.unit);
    all.m = m, all.l = fmaf(all.l, by, fn_exp2((of - m) * a.unit));
    all.x.x *= by, all.x.y *= by, all.x.z *= by, all.x.w *= by;
  }
  const float probe = fmaf(all.x.x, 0.f, fmaf(all.x.y, 0.f, fmaf(all.x.z, 0.f, all.x.w * 0.f))), by = sees ? 1 / all.l : 0;
  if (sees && !(probe == 0 && all.l >= 1e-30f && all.l < INFINITY && fabsf(all.m) < 1e30f)) return false;
  const int64_t at = line.at(s, a.y_stride, false) + column;
  const float4 y = sees ? make_float4(all.x.x * by, all.x.y * by, all.x.z * by, all.x.w * by) : make_float4(0, 0, 0, 0);
  if (T::WHOLE || column < a.dv) {
    if (a.y_f32) *(float4 *)((float *)a.y + at) = y;
    else if (T::kind == MMA_BF16) *(uint2 *)((uint16_t *)a.y + at) = make_uint2(pack_bf16(y.x, y.y), pack_bf16(y.z, y.w));
    else *(uint2 *)((uint16_t *)a.y + at) = make_uint2(pack_f16(y.x, y.y), pack_f16(y.z, y.w));
  }
  if (column) return true;
  const float hidden = line.i < s.queries ? sink : -INFINITY;
  if (a.lse) a.lse[line.at(s, a.lse_stride, false)] = sees ? fmaf(all.m, natural, logf(all.l)) : hidden;
  if (a.max) a.max[line.at(s, a.max_stride, false)] = sees ? all.m * natural : -INFINITY;
  return true;
}

/* ---- the kernel ------------------------------------------------------------------------------------------------------------ */

template <class T> __global__ void __launch_bounds__(T::THREADS, 1) attention_few(const __grid_constant__ cuda_attention_many a)
{
  constexpr int D = T::D, KEYS = T::KEYS, TILES = T::TILES, QUARTERS = D / 32, HALVES = D / 64;
  extern __shared__ __align__(128) unsigned char shared[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, c = lane % 4, warps = blockDim.x / 32,
            rows = a.queries * a.group, words = cuda_few_words(rows, D), k_pitch = (int)a.k_stride[2] * 2, v_pitch = (int)a.v_stride[2] * 2;
  attention_sequence s = { (int)blockIdx.z, (int)blockIdx.y, 0, 0, a.queries, a.keys, 0 };
  const char *keys = (const char *)a.k + ((T::PAGED ? 0 : s.b) * a.k_stride[0] + s.g * a.k_stride[1] + c * 8) * 2,
             *values = (const char *)a.v + ((T::PAGED ? 0 : s.b) * a.v_stride[0] + s.g * a.v_stride[1] + g * 8) * 2;
  float *own = (float *)shared + warp * words;
  attention_early();
  if (T::PAGED || a.q_lengths || a.kv_lengths) attention_wait();        /* else only before the first load */
  s.queries = attention_length(a.q_lengths, s.b * a.q_lengths_stride, a.q_lengths_i64, a.queries);
  s.keys = attention_length(a.kv_lengths, s.b * a.kv_lengths_stride, a.kv_lengths_i64, a.keys);
  s.shift = a.top_left ? 0 : s.keys - s.queries;
  /* Steps: those that the first or the last query may see; the part's; the warp's. */
  int n = 0, last = -1;
  const int least = a.left < 0 ? 0 : max(0, s.shift - a.left),
            most = a.right < 0 ? s.keys - 1 : min(s.keys - 1, s.queries - 1 + s.shift + a.right);
  if (s.queries > 0 && most >= least) n = least / KEYS, last = most / KEYS;
  const int each = (int)cuda_quotient(last - n + a.splits, a.by_splits);        /* of last - n + 1, rounded up */
  n += blockIdx.x * each, last = min(last, n + each - 1);
  const int active = max(1, min(warps, last - n + 1));      /* the rest only joins */
  n += warp;

  /* A page has whole steps. One that does not exist is read as page 0, and its keys are hidden. */
  auto page_of = [&](int n) {
    if (!T::PAGED || n > last) return 0;
    const int64_t page = attention_integer(a.pages, s.b * a.pages_stride[0] + cuda_quotient(n * KEYS, a.by_page) * a.pages_stride[1], a.pages_i64);
    return page >= 0 && page < a.n_pages ? (int)page : -1;
  };
  auto step_at = [&](const char *from, int n, int page, int64_t stride, int pitch) {
    uint32_t at = n * KEYS;
    if (T::PAGED) cuda_quotient(n * KEYS, a.by_page, &at), from += max(page, 0) * stride * 2;
    return from + (int64_t)at * pitch;
  };
  /* Beyond the last key it is loaded again, and hidden as a score. */
  uint4 k[KEYS / 8][QUARTERS], v[KEYS / 4][HALVES];
  if (!T::WHOLE) {
#pragma unroll
    for (int i = 0; i < KEYS / 8 * QUARTERS; i++) k[i / QUARTERS][i % QUARTERS] = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int i = 0; i < KEYS / 4 * HALVES; i++) v[i / HALVES][i % HALVES] = make_uint4(0, 0, 0, 0);
  }
  const int end = s.keys - 1;
  auto load_keys = [&](int n, int page) {
    const char *step = step_at(keys, n, page, a.k_stride[0], k_pitch);
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++) {
      const char *from = step + (int64_t)min(8 * j + g, end - n * KEYS) * k_pitch;
#pragma unroll
      for (int i = 0; i < QUARTERS; i++)
        if (T::WHOLE || 32 * i + 8 * c < a.d) attention_few_load(k[j][i], from + 64 * i);
    }
  };
  auto load_values = [&](int n, int page) {
    const char *step = step_at(values, n, page, a.v_stride[0], v_pitch);
#pragma unroll
    for (int j = 0; j < KEYS / 4; j++) {
      const char *from = step + (int64_t)min(j / 4 * 16 + j % 4 / 2 * 8 + 2 * c + j % 2, end - n * KEYS) * v_pitch;
#pragma unroll
      for (int h = 0; h < HALVES; h++)
        if (T::WHOLE || 64 * h + 8 * g < a.dv) attention_few_load(v[j][h], from + 128 * h);
    }
  };
  int page = page_of(n);
  attention_wait();
  if (n <= last) load_keys(n, page), load_values(n, page);

  int low[TILES], high[TILES];
  uint4 q[TILES][QUARTERS];
#pragma unroll
  for (int t = 0; t < TILES; t++) {
    const attention_line line(a, s, 8 * t + g);
    const uint16_t *from = (const uint16_t *)a.q + line.at(s, a.q_stride, false) + 8 * c;
    low[t] = line.low - 2 * c, high[t] = line.high - 2 * c;
#pragma unroll
    for (int i = 0; i < QUARTERS; i++) {
      q[t][i] = make_uint4(0, 0, 0, 0);
      if (8 * t + g < rows && (T::WHOLE || 32 * i + 8 * c < a.d)) q[t][i] = *(const uint4 *)(from + 32 * i);
      if (T::Q_SHARED) ((uint4 *)own)[(t * QUARTERS + i) * 32 + lane] = q[t][i];
    }
  }

  float m[TILES], l[TILES], sum[TILES][HALVES][4][4] = {};
#pragma unroll
  for (int t = 0; t < TILES; t++) m[t] = -1e30f, l[t] = 0;
#pragma unroll 1
  for (int next_page; n <= last; n += warps, page = next_page) {
    next_page = page_of(n + warps);
    /* S = q k', even and odd words apart: two chains */
    float x[KEYS / 2];
    uint32_t p[TILES][KEYS / 8];
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++) {
      float odd[4] = {};
#pragma unroll
      for (int e = 0; e < 4; e++) x[4 * j + e] = 0;
#pragma unroll
      for (int i = 0; i < QUARTERS; i++) {
        const uint4 one = T::Q_SHARED ? attention_few_query(own, i * 32 + lane) : q[0][i],
                    two = TILES > 1 ? q[TILES - 1][i] : make_uint4(0, 0, 0, 0), w = k[j][i];
        const uint32_t left[4] = { one.x, two.x, one.y, two.y }, right[4] = { one.z, two.z, one.w, two.w };
        attention_product<T::kind>(x + 4 * j, left, w.x, w.y);
        attention_product<T::kind>(odd, right, w.z, w.w);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) x[4 * j + e] += odd[e];
    }
    if (n + warps <= last) load_keys(n + warps, next_page);
    if constexpr (T::CHANGED) attention_few_change<T>(a, s, n * KEYS, x);
    /* Softmax */
#pragma unroll
    for (int t = 0; t < TILES; t++) {
      float top = m[t], add = 0;
      const int up = page < 0 ? -1 : high[t] - n * KEYS, down = low[t] - n * KEYS;
#pragma unroll
      for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          float &y = x[4 * j + 2 * t + e];
          if (8 * j + e > up || 8 * j + e < down) y = -INFINITY;
          top = fmaxf(top, y);
        }
      top = fmaxf(top, __shfl_xor_sync(~0u, top, 1)), top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
      const float by = fn_exp2((m[t] - top) * a.unit), base = top * a.unit;
#pragma unroll
      for (int j = 0; j < KEYS / 8; j++) {
        const float one = fn_exp2(fmaf(x[4 * j + 2 * t], a.unit, -base)), two = fn_exp2(fmaf(x[4 * j + 2 * t + 1], a.unit, -base));
        add += one + two, p[t][j] = T::kind == MMA_BF16 ? pack_bf16(one, two) : pack_f16(one, two);
      }
      m[t] = top, l[t] = fmaf(l[t], by, add);
      const float of[2] = { __shfl_sync(~0u, by, 8 * c), __shfl_sync(~0u, by, 8 * c + 4) };         /* of this lane's columns of y' */
#pragma unroll
      for (int i = 0; i < HALVES * 16; i++) sum[t][i / 16][i / 4 % 4][i % 4] *= of[i % 2];
    }
    /* y' += v' P' */
#pragma unroll
    for (int j = 0; j < KEYS / 16; j++)
#pragma unroll
      for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int w = 0; w < 4; w++) {
          auto word = [&](int i) {
            const uint4 &of = v[4 * j + i][h];
            return w == 0 ? of.x : w == 1 ? of.y : w == 2 ? of.z : of.w;
          };
          const uint32_t of[4] = { __byte_perm(word(0), word(1), 0x5410), __byte_perm(word(0), word(1), 0x7632),
                                   __byte_perm(word(2), word(3), 0x5410), __byte_perm(word(2), word(3), 0x7632) };
#pragma unroll
          for (int t = 0; t < TILES; t++) attention_product<T::kind>(sum[t][h][w], of, p[t][2 * j], p[t][2 * j + 1]);
        }
    if (n + warps <= last) load_values(n + warps, next_page);
  }

  /* This warp's part: lane 4 g + c has columns 8 g to 8 g + 7 of rows 2 c and 2 c + 1. */
#pragma unroll
  for (int t = 0; t < TILES && warp < active; t++) {
    l[t] += __shfl_xor_sync(~0u, l[t], 1), l[t] += __shfl_xor_sync(~0u, l[t], 2);
    if (c == 0 && 8 * t + g < rows) *(float2 *)(own + rows * T::PITCH + 2 * (8 * t + g)) = make_float2(m[t], l[t]);
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (8 * t + 2 * c + e < rows) {
        float4 *to = (float4 *)(own + (8 * t + 2 * c + e) * T::PITCH + 8 * g);
#pragma unroll
        for (int h = 0; h < HALVES; h++) {
          const float (&of)[4][4] = sum[t][h];
          to[16 * h] = make_float4(of[0][e], of[0][e + 2], of[1][e], of[1][e + 2]);
          to[16 * h + 1] = make_float4(of[2][e], of[2][e + 2], of[3][e], of[3][e + 2]);
        }
      }
  }
  __syncthreads();

  const int pieces = rows * (D / 4), tile = s.b * gridDim.y + s.g;
  float *parts = a.parts + (int64_t)tile * a.splits * words;
  if (a.splits > 1) {
    float *part = parts + blockIdx.x * words;
#pragma unroll 1
    for (int i = threadIdx.x; i < pieces; i += blockDim.x) {
      const int row = i / (D / 4), column = i % (D / 4) * 4;
      const attention_few_sum all = attention_few_join<4, T::PITCH>((const float *)shared, words, active, rows, row, column, a.unit);
      *(float4 *)(part + row * T::PITCH + column) = all.x;
      if (!column) *(float2 *)(part + rows * T::PITCH + 2 * row) = make_float2(all.m, all.l);
    }
    if (!attention_few_last(a.tickets + tile, a.splits)) return;
  }
  unsigned again = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < pieces; i += blockDim.x) {
    const int row = i / (D / 4), column = i % (D / 4) * 4;
    const attention_few_sum all = a.splits > 1 ? attention_few_join<16, T::PITCH>(parts, words, a.splits, rows, row, column, a.unit)
                                : attention_few_join<4, T::PITCH>((const float *)shared, words, active, rows, row, column, a.unit);
    if (!attention_few_end<T>(a, s, row, column, all)) again |= 1u << row;
  }
  if (!__syncthreads_or(again)) return;
  unsigned *of_block = (unsigned *)shared;
  if (threadIdx.x == 0) *of_block = 0;
  __syncthreads();
  if (again) atomicOr(of_block, again);
  __syncthreads();
  const attention_sequence of = s;        /* its address is taken: s itself stays in registers */
#pragma unroll 1
  for (int row = warp; row < rows; row += warps)
    if (*of_block >> row & 1) attention_many_again<T>(a, of, attention_line(a, of, row));
}

#define ATTENTION_FEW(kind, d, rows, whole, form) \
  { d, rows, whole, form, CUDA_FEW_KEYS(d), CUDA_FEW_THREADS(d, rows), \
    (const void *)attention_few<attention_few_shape<kind, d, rows / 8, whole, form>> },
