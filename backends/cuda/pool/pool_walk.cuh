/* pool_walk.cuh -- part of pool_walk.cu: a lane's columns of a plane, their windows, and loads and stores of both. */
#pragma once
#include "pool_peak.cuh"
#include "kit/words.cuh"

struct walk : gradient {
  uint32_t count, warps;                  /* planes; warps */
  int32_t  per_warp;                      /* planes side by side in a warp; 0: a plane is several strips */
  int32_t  band;                          /* rows of a band, a multiple of the step */
  /* by_lanes: lanes of a row; by_depth: planes of a channel's volume, through which indices count */
  cuda_divisor by_lanes, by_strips, by_bands, by_width, by_depth;
};

enum { C = 4, THREADS = 128, STRIP = 30 };  /* C: columns of a lane; STRIP: lanes of a warp that store, where a row has several strips */

/* Windows of HIGH x WIDE, strides DOWN and STEP, padding ABOVE and BEFORE. KEPT: rows that consecutive windows share;
 * WINDOWS: a lane's, in a row of y; PLACES: columns that these cover, the first of them column -BEFORE, the last RIGHT beyond
 * the lane's own. */
template <int HIGH_, int DOWN_, int ABOVE_, int WIDE_, int STEP_, int BEFORE_> struct geometry {
  static constexpr int HIGH = HIGH_, DOWN = DOWN_, ABOVE = ABOVE_, WIDE = WIDE_, STEP = STEP_, BEFORE = BEFORE_;
  static constexpr int KEPT = HIGH - DOWN, WINDOWS = C / STEP, PLACES = (WINDOWS - 1) * STEP + WIDE, RIGHT = PLACES - BEFORE - C;
};

/* ---- a lane ------------------------------------------------------------------------------------------------------ */

struct lane {
  bool here, owns, left, right;           /* is it in use, does it store, has it neighbours? */
  uint32_t plane, column;
  int  top, end;                          /* rows top..end-1 of the band */
};

__device__ __forceinline__ lane lane_of(const walk &p, int rows, uint32_t warp)
{
  const uint32_t number = threadIdx.x % 32;
  lane at;
  uint32_t band, strip;
  at.plane = cuda_quotient(cuda_quotient(warp, p.by_bands, &band), p.by_strips, &strip), at.column = number;
  at.here = warp < p.warps, at.owns = true;
  if (p.per_warp) {
    at.plane = at.plane * p.per_warp + cuda_quotient(number, p.by_lanes, &at.column);
    at.here &= number < p.per_warp * p.by_lanes.by && at.plane < p.count;
  } else {                                /* the outermost lanes of a strip only serve their neighbours */
    at.column = strip * STRIP + number - 1;
    at.here &= at.column < p.by_lanes.by;
    at.owns = number > 0 && number <= STRIP;
  }
  if (!at.here) at.plane = 0, at.column = 0, at.owns = false;
  at.left = at.here && at.column > 0, at.right = at.here && at.column + 1 < p.by_lanes.by;
  at.top = (int)band * p.band, at.end = min(at.top + p.band, rows);
  return at;
}

/* ---- columns of a row ------------------------------------------------------------------------------------------- */

/* N raw words, loaded 16 bytes at a time. */
template <int N> struct alignas(N < 4 ? 4 * N : 16) words { uint32_t w[N]; };
template <int N> __device__ __forceinline__ words<N> load_words(const char *base, int64_t offset)
{
  words<N> q;
  const uint32_t *from = (const uint32_t *)(base + offset);
  if constexpr (N == 1) *q.w = *from;
  else if constexpr (N == 2) *(uint2 *)q.w = *(const uint2 *)from;
  else
#pragma unroll
    for (int i = 0; i < N / 4; i++) ((uint4 *)q.w)[i] = ((const uint4 *)from)[i];
  return q;
}
template <int dtype, int N> __device__ __forceinline__ float element_of(const words<N> &q, int i)
{
  return word_get<dtype>(q.w[i / per_word<dtype> % N], i % per_word<dtype>);
}
template <int dtype> __device__ __forceinline__ void store(void *base, int at, const float *v)
{
  if (dtype == QN_F32) *(float4 *)((float *)base + at) = make_float4(v[0], v[1], v[2], v[3]);
  else if (dtype == QN_BF16) *(uint2 *)((uint16_t *)base + at) = make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]));
  else *(uint2 *)((uint16_t *)base + at) = make_uint2(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]));
}
