/* pool_walk.cuh -- shared by pooling engines on packed NCHW planes in which a lane owns 4 columns of x and the windows that
 * begin there, and walks down a band of rows with both in registers. Neighbouring x, and sums for neighbouring columns, are
 * exchanged by shuffles. */
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
template <int dtype, int N> __device__ __forceinline__ float open(const words<N> &q, int i)
{
  if (dtype == QN_F32) return __uint_as_float(q.w[i % N]);
  const uint32_t w = q.w[i / 2 % N];
  if (dtype == QN_BF16) return __uint_as_float(i % 2 ? w & 0xffff0000u : w << 16);
  return f16_to_float((uint16_t)(i % 2 ? w >> 16 : w));
}
template <int dtype> __device__ __forceinline__ void store(void *base, int at, const float *v)
{
  if (dtype == QN_F32) *(float4 *)((float *)base + at) = make_float4(v[0], v[1], v[2], v[3]);
  else if (dtype == QN_BF16) *(uint2 *)((uint16_t *)base + at) = make_uint2(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]));
  else *(uint2 *)((uint16_t *)base + at) = make_uint2(pack_f16(v[0], v[1]), pack_f16(v[2], v[3]));
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

enum { IN_FLIGHT = 240, LEAST = 8 };      /* IN_FLIGHT: warps wanted per SM; LEAST: shortest band, in rows, to get them */

/* y: of forward pooling (indices and x: of.indices, of.x), or -1. staged: bytes of a plane if warps, one a block, stage planes
 * in shared memory, or 0 */
struct walk_state { walk p; gradient_roles of; int32_t y, staged; const void *kernel; uint32_t blocks, threads, shared; };

/* The grid of warps for bands of `rows` rows, in multiples of `step`. resident: limits the warps per SM, where a band reads
 * many rows beyond its own; or 0. */
static inline qn_status walk_keep(walk_state *s, const qn_request *r, int64_t rows, int64_t step, int64_t resident, qn_prepared *out)
{
  walk *p = &s->p;
  const int64_t lanes = p->in[2] / C;
  p->per_warp = (int32_t)(32 / lanes);
  const int64_t strips = p->per_warp ? 1 : qn_ceil_div(lanes, (int64_t)STRIP),
                across = qn_ceil_div(p->count, qn_max_i64(p->per_warp, 1)) * strips;
  const int64_t wanted = resident ? qn_max_i64(1, resident * r->device->units / across)
                                  : qn_ceil_div(IN_FLIGHT * (int64_t)r->device->units, across);
  const int64_t bands = s->staged ? 1 : qn_min_i64(qn_ceil_div(p->in[1], LEAST), wanted);
  p->band = (int32_t)qn_round_up(qn_ceil_div(rows, bands), step);
  const int64_t warps = across * qn_ceil_div(rows, p->band);
  p->by_lanes = cuda_divide_by(lanes), p->by_strips = cuda_divide_by(strips), p->by_bands = cuda_divide_by(qn_ceil_div(rows, p->band)),
  p->by_width = cuda_divide_by(p->in[2]);
  if (warps > INT32_MAX / 32) return qn_refuse(out, "fewer than 2^26 warps", s->y < 0 ? "dx" : "x", "", "%s", "more");
  p->warps = (uint32_t)warps;
  s->threads = s->staged ? 32 : THREADS, s->blocks = (uint32_t)qn_ceil_div(warps, s->threads / 32),
  s->shared = (uint32_t)(p->per_warp * s->staged);
  return cuda_keep(out, s, sizeof *s);
}

static inline qn_status walk_run(const qn_prepared *prepared, const qn_launch *launch)
{
  const walk_state *st = (const walk_state *)prepared->state;
  walk p = st->p;
  p.dy = st->of.dy >= 0 ? launch->ptr[st->of.dy] : nullptr;
  p.dx = st->of.dx >= 0 ? launch->ptr[st->of.dx] : nullptr;
  p.y = st->y >= 0 ? launch->ptr[st->y] : nullptr;
  p.x = st->of.x >= 0 ? launch->ptr[st->of.x] : nullptr;
  p.indices = st->of.indices >= 0 ? launch->ptr[st->of.indices] : nullptr;
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, st->blocks, st->threads, arguments, st->shared, (cudaStream_t)launch->stream),
                    prepared->engine->name);
}

/* Fills p for a gradient and refuses what all of these engines refuse: planes that are not packed, windows over several, rows
 * that are not whole lanes. */
static inline qn_status walk_fill(walk *p, gradient_roles *of, const qn_request *r, qn_prepared *out)
{
  qn_status status = gradient_fill(p, of, r, out);
  if (status != QN_OK) return status;
  const int32_t value[] = { of->dx, of->dy, of->x, of->indices };
  for (int i = 0; i < 4; i++)
    if (value[i] >= 0 && (!qn_is_packed(&r->value[value[i]]) || r->value[value[i]].align < 16))
      return qn_refuse(out, "packed planes, aligned to 16 bytes", "dx", "nchw", "%s", "other strides");
  p->by_depth = cuda_divide_by(p->in[0]);
  if (!pool_fold(p, false)) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  const int64_t places = qn_elements(&r->value[of->dx]);
  if (places > INT32_MAX) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");
  p->count = (uint32_t)(places / ((int64_t)p->in[1] * p->in[2]));
  if (p->in[2] % C || p->out[2] != p->in[2] / p->step[2])
    return qn_refuse(out, "rows of 4 columns, each with its windows", "dx", "56", "%d", p->in[2]);
  return QN_OK;
}
