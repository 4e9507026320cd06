/* pool_walk.cu -- max pooling with indices, and the gradient of max pooling, on packed NCHW planes in f16, bf16 and f32; small
 * square windows.
 *
 * A lane owns 4 columns of x and the windows that begin there, and walks down a band of rows with both in registers and the next rows'
 * loads in flight. Neighbouring x, and sums for neighbouring columns, are exchanged by shuffles.
 * Refused: forward other than 3x3 or 2x2 with stride 2; backward other than 3x3 with stride 1 or 2, 1-D windows of 3 with stride 2, or
 * (positions) 5x5 with stride 1. */
#include "pool_gradient.cuh"

struct walk : gradient {
  uint32_t warps;
  int32_t  per_warp;                      /* planes side by side in a warp; 0: a plane is several strips */
  int32_t  band;                          /* rows of a band, a multiple of the step */
  cuda_divisor by_lanes, by_strips, by_bands;     /* lanes: of a row */
};

enum { C = 4, THREADS = 128, STRIP = 30 };  /* C: columns of a lane; STRIP: lanes of a warp that store, where a row has several strips */

/* Windows of HIGH x WIDE, strides DOWN and STEP, padding ABOVE and BEFORE. KEPT: rows that consecutive windows share;
 * WINDOWS: a lane's, in a row of y; PLACES: columns that these cover, the first of them column -BEFORE, the last RIGHT beyond
 * the lane's own. */
template <int HIGH_, int DOWN_, int ABOVE_, int WIDE_, int STEP_, int BEFORE_> struct geometry {
  static constexpr int HIGH = HIGH_, DOWN = DOWN_, ABOVE = ABOVE_, WIDE = WIDE_, STEP = STEP_, BEFORE = BEFORE_;
  static constexpr int KEPT = HIGH - DOWN, WINDOWS = C / STEP, PLACES = (WINDOWS - 1) * STEP + WIDE, RIGHT = PLACES - BEFORE - C;
};
template <int w> using square = geometry<w / 100, w / 10 % 10, w % 10, w / 100, w / 10 % 10, w % 10>;        /* w: as square_of() */

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

/* RESIDENT: warps per SM that the registers of 5x5 windows allow; MOST_STAGED: bytes of a warp's planes at most, LEAST_STAGED: warps
 * an SM at least, where planes are staged */
enum { RESIDENT = 24, MOST_STAGED = 26000, LEAST_STAGED = 8 };

/* ---- the gradient by index ---------------------------------------------------------------------------------------- */

/* A window's tap becomes one bit of a word, and each of its sums is a predicated add on that bit: the compiler turns many bits into
 * predicates at once, and sums stay in registers without indexing. AHEAD: rows of windows whose loads are in flight. */
template <int dtype, int how, class of, int AHEAD>
__global__ void __launch_bounds__(THREADS, of::HIGH == 1 ? 16 : 0) pool_indexed(const __grid_constant__ walk p)
{
  constexpr int HIGH = of::HIGH, DOWN = of::DOWN, ABOVE = of::ABOVE, WIDE = of::WIDE, STEP = of::STEP, BEFORE = of::BEFORE,
                RIGHT = of::RIGHT, KEPT = of::KEPT;
  constexpr int WINDOWS = of::WINDOWS, PLACES = of::PLACES, E = dtype == QN_F32 ? 1 : 2, bytes = 4 / E;
  static_assert(BEFORE <= C && RIGHT >= 0 && RIGHT <= C && HIGH * WIDE <= 31, "neighbours' columns, and taps that a word counts");
  const lane at = lane_of(p, p.in[1], blockIdx.x * (THREADS / 32) + threadIdx.x / 32);
  uint32_t z;
  cuda_quotient(at.plane, p.by_extent[0], &z);
  const int top = at.top, end = at.end, height = p.in[1], width = p.in[2], high = p.out[1], wide = p.out[2];
  /* oy_end may exceed y: dx may have rows below the last window */
  const int oy_begin = max((top + ABOVE - HIGH + DOWN) / DOWN, 0), oy_end = (end - 1 + ABOVE) / DOWN + 1;
  const int64_t in_x = (int64_t)at.plane * height * width + at.column * C,
                in_y = (int64_t)at.plane * high * wide + at.column * WINDOWS;
  const char *const dy = (const char *)p.dy + in_y * bytes,
             *const index = (const char *)p.indices + in_y * (how == BY_TAP ? 1 : p.index_dtype == QN_I64 ? 8 : 4);
  char *const dx = (char *)p.dx + in_x * bytes;

  struct line {
    words<WINDOWS / E> dy;
    words<how == BY_PLACE ? WINDOWS * 2 : 1> index;         /* i32 or i64 positions; or tap numbers, a byte each */
  };
  const auto load = [&](line &l, int oy) {
    const int here = min(oy, high - 1) * wide;
    l.dy = load_words<WINDOWS / E>(dy, (int64_t)here * bytes);
    if (how == BY_TAP) *l.index.v = WINDOWS == 4 ? *(const uint32_t *)(index + here) : *(const uint16_t *)(index + here);
    if constexpr (how == BY_PLACE) {
      if (p.index_dtype == QN_I64) l.index = load_words<WINDOWS * 2>(index, (int64_t)here * 8);
      else *(words<WINDOWS> *)&l.index = load_words<WINDOWS>(index, (int64_t)here * 4);
    }
  };

  float sum[HIGH][PLACES] = {};
  look_ahead<line, AHEAD>(oy_begin, oy_end, load, [&](int oy, int, const line &l, auto next) {
    const int y0 = oy * DOWN - ABOVE;
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) {
      const float v = oy < high ? element_of<dtype>(l.dy, w) : 0;
      uint32_t bits = 0;
      if constexpr (how == BY_TAP) {
        const uint32_t tap = *l.index.v >> 8 * w & 255;
        if (tap < HIGH * WIDE) bits = 1u << tap;
      } else {
        const int place = p.index_dtype == QN_I64
                            ? place_among((int64_t)((uint64_t)l.index.v[2 * w + 1] << 32 | l.index.v[2 * w]))
                            : (int)l.index.v[w];
        uint32_t c, r = cuda_quotient((uint32_t)max(place, 0), p.by_extent[2], &c) - (z * height + y0);
        c -= at.column * C + w * STEP - BEFORE;
        if (place >= 0 && r < HIGH && c < WIDE) bits = 1u << (r * WIDE + c);
      }
#pragma unroll
      for (int r = 0; r < HIGH; r++)
#pragma unroll
        for (int c = 0; c < WIDE; c++) add_at_bit(sum[r][w * STEP + c], bits, r * WIDE + c, v);
    }
    next();
#pragma unroll
    for (int r = 0; r < DOWN; r++) {      /* rows that no later window covers are complete */
      const int y = y0 + r;
#pragma unroll
      for (int i = 0; i < BEFORE; i++) {
        const float there = __shfl_down_sync(~0u, sum[r][i], 1);
        if (at.right) sum[r][C + i] += there;
      }
#pragma unroll
      for (int i = 0; i < RIGHT; i++) {
        const float there = __shfl_up_sync(~0u, sum[r][BEFORE + C + i], 1);
        if (at.left) sum[r][BEFORE + i] += there;
      }
      if (at.owns && y >= top && y < end) neighbours_store<dtype, C>(dx, y * width, sum[r] + BEFORE);
    }
#pragma unroll
    for (int r = 0; r < HIGH; r++)
#pragma unroll
      for (int i = 0; i < PLACES; i++) sum[r][i] = r < KEPT ? sum[r < KEPT ? r + DOWN : r][i] : 0;
  });
}

/* ---- maxima and their indices ------------------------------------------------------------------------------------ */

/* The largest element of a row of a window, found once for all windows that share it, as an ordered integer, and (bits) a bit for its
 * column. 16-bit dtypes hold both in `order`: the low half is a bit number that is larger for earlier elements, so of equals the first
 * wins. */
template <bool halves> struct peak { uint32_t order, bits; };

/* The peaks of a row of x for each of a lane's windows; inside: is the row in x? */
template <int dtype, class of>
__device__ __forceinline__ void largest_of_line(peak<dtype != QN_F32> (&m)[of::WINDOWS], words<C / (dtype == QN_F32 ? 1 : 2)> q,
                                                bool inside, const lane &at)
{
  constexpr int E = dtype == QN_F32 ? 1 : 2, BEFORE = of::BEFORE, STEP = of::STEP;
  static_assert(BEFORE <= 1 && of::RIGHT <= 1 && of::PLACES <= 8 && of::WIDE <= 3, "a column beside a lane's");
#pragma unroll
  for (int i = 0; i < C / E; i++) q.v[i] = inside ? order_of<dtype>(q.v[i]) : 0;
  uint32_t before = BEFORE ? __shfl_up_sync(~0u, q.v[C / E - 1], 1) : 0, after = of::RIGHT ? __shfl_down_sync(~0u, q.v[0], 1) : 0,
           x[of::PLACES];
  before = at.left ? before : 0, after = at.right ? after : 0;
#pragma unroll
  for (int i = 0; i < of::PLACES; i++) {
    const int column = i - BEFORE;
    const uint32_t w = column < 0 ? before : column >= C ? after : q.v[column / E % (C / E)];
    x[i] = E == 1 ? w : (column % 2 ? w & 0xffff0000u : w << 16) | (7 - i);
  }
#pragma unroll
  for (int w = 0; w < of::WINDOWS; w++) {
    uint32_t most = x[w * STEP], bits = 1 << of::WIDE - 1;
#pragma unroll
    for (int c = 1; c < of::WIDE; c++) most = max(most, x[w * STEP + c]);
#pragma unroll
    for (int c = of::WIDE - 2; c >= 0; c--) bits = x[w * STEP + c] == most ? 1 << c : bits;
    m[w].order = most, m[w].bits = E == 2 ? 0 : bits;
  }
}

/* The largest of window w; bits: one bit, number 8 row + column for f32, 8 (HIGH - 1 - row) + 7 - place for 16 bits. */
template <int dtype, class of>
__device__ __forceinline__ uint32_t largest_of_window(const peak<dtype != QN_F32> (&most)[of::HIGH][of::WINDOWS], int w, uint32_t *bits)
{
  uint32_t largest = 0;
#pragma unroll
  for (int r = 0; r < of::HIGH; r++) largest = max(largest, most[r][w].order + (dtype != QN_F32 ? (of::HIGH - 1 - r) * 8 : 0));
  *bits = dtype == QN_F32 ? most[of::HIGH - 1][w].bits << 8 * (of::HIGH - 1) : 1u << (largest & 31);
  if (dtype == QN_F32)
#pragma unroll
    for (int r = of::HIGH - 2; r >= 0; r--) *bits = most[r][w].order == largest ? most[r][w].bits << 8 * r : *bits;
  return largest;
}

template <int dtype, class index, class of, int AHEAD>
__global__ void __launch_bounds__(THREADS) pool_indexed_max(const __grid_constant__ walk p)
{
  constexpr int HIGH = of::HIGH, DOWN = of::DOWN, ABOVE = of::ABOVE, KEPT = of::KEPT, WINDOWS = of::WINDOWS, E = dtype == QN_F32 ? 1 : 2,
                bytes = 4 / E;
  const lane at = lane_of(p, p.out[1], blockIdx.x * (THREADS / 32) + threadIdx.x / 32);
  uint32_t z;
  cuda_quotient(at.plane, p.by_extent[0], &z);
  const int height = p.in[1], width = p.in[2], high = p.out[1], wide = p.out[2];
  const char *const x_image = (const char *)p.x + ((int64_t)at.plane * height * width + at.column * C) * bytes;
  const int64_t in_y = (int64_t)at.plane * high * wide + at.column * WINDOWS;
  struct line { words<C / E> x[DOWN]; };
  const auto load_x = [&](int y) { return load_words<C / E>(x_image, (int64_t)(min(max(y, 0), height - 1) * width) * bytes); };
  const auto load = [&](line &l, int oy) {
#pragma unroll
    for (int r = 0; r < DOWN; r++) l.x[r] = load_x(oy * DOWN - ABOVE + KEPT + r);
  };
  peak<dtype != QN_F32> most[HIGH][WINDOWS];
  const auto open_x = [&](peak<dtype != QN_F32> (&m)[WINDOWS], const words<C / E> &q, int y) {
    largest_of_line<dtype, of>(m, q, at.here && (unsigned)y < (unsigned)height, at);
  };
#pragma unroll
  for (int r = 0; r < KEPT; r++) open_x(most[DOWN + r], load_x(at.top * DOWN - ABOVE + r), at.top * DOWN - ABOVE + r);
  look_ahead<line, AHEAD>(at.top, at.end, load, [&](int oy, int, const line &l, auto next) {
    const int y0 = oy * DOWN - ABOVE;
#pragma unroll
    for (int r = 0; r < KEPT; r++)
#pragma unroll
      for (int w = 0; w < WINDOWS; w++) most[r][w] = most[r + DOWN][w];
#pragma unroll
    for (int r = 0; r < DOWN; r++) open_x(most[KEPT + r], l.x[r], y0 + KEPT + r);
    next();
    words<WINDOWS / E> y = {};
    several<index, WINDOWS> indices;
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) {
      uint32_t bits;
      const uint32_t largest = largest_of_window<dtype, of>(most, w, &bits), order = E == 1 ? largest : largest >> 16,
                     sign = E == 1 ? 0x80000000u : 0x8000u;
      y.v[w / E] |= (order & sign ? order ^ sign : order ^ (sign * 2 - 1)) << (E == 2 ? w % 2 * 16 : 0);
      const int bit = __ffs(bits) - 1, r = E == 1 ? bit >> 3 : HIGH - 1 - (bit >> 3),
                c = E == 1 ? bit & 7 : 7 - (bit & 7) - w * of::STEP;
      indices.v[w] = (index)(sizeof(index) == 1
                               ? r * of::WIDE + c
                               : ((int)z * height + y0 + r) * width + (int)at.column * C + w * of::STEP - of::BEFORE + c);
    }
    if (at.owns) {
      const int64_t to = in_y + oy * wide;
      *(words<WINDOWS / E> *)((char *)p.y + to * bytes) = y;
      *(several<index, WINDOWS> *)((index *)p.indices + to) = indices;
    }
  });
}

/* ---- the gradient from x ----------------------------------------------------------------------------------------- */

/* Separable: a window first passes its dy to the first of its three rows that holds the maximum; then each row's 3-wide segment, shared by
 * all windows at that column, passes what it received to the first of its maximal places. Places outside x repeat their neighbour inside;
 * what they receive is added to that neighbour. AHEAD: rows of windows in flight; three, so that they rotate through the same registers. */
enum { SIZE = 3, AHEAD = 3 };

/* add_to_first() to one sum and two unset ones, as one chain of predicates: an eighth faster at stride 2. */
__device__ __forceinline__ void set_to_first(float &a, float &b, float &c, uint32_t x, uint32_t y, uint32_t largest, float v)
{
#ifdef __CUDA_ARCH__
  b = 0;
  asm("{ .reg .pred p, n, q, r; setp.eq.u32 p|n, %3, %5; setp.eq.and.u32 q|r, %4, %5, n; @p add.f32 %0, %0, %6; @q add.f32 %1, %1, %6; "
      "selp.f32 %2, %6, 0f00000000, r; }"
      : "+f"(a), "+f"(b), "=f"(c)
      : "r"(x), "r"(y), "r"(largest), "f"(v));
#else
  add_to_first<QN_F32, 0, 1>(a, b, c, x, y, largest, v);
#endif
}

/* staged (stride 1): a block of one warp copies its planes to shared memory as they lie and writes dx over x there. Without this,
 * rows that are no multiple of a 32-byte sector fetch some sectors twice. */
template <int dtype, class of, bool staged>
__global__ void __launch_bounds__(THREADS, 6) pool_recompute_planes(const __grid_constant__ walk p)
{
  constexpr int STEP = of::STEP, RIGHT = of::RIGHT, KEPT = of::KEPT, WINDOWS = of::WINDOWS, PLACES = of::PLACES,
                E = dtype == QN_F32 ? 1 : 2, bytes = 4 / E;
  static_assert(of::HIGH == SIZE && of::WIDE == SIZE && of::BEFORE == 1 && of::DOWN == STEP && AHEAD == SIZE, "");
  /* the shuffle tells the compiler that the warp number is uniform */
  const lane at = lane_of(p, p.in[1], staged ? blockIdx.x : __shfl_sync(~0u, blockIdx.x * (THREADS / 32) + threadIdx.x / 32, 0));
  const int top = at.top, end = at.end, height = p.in[1], width = p.in[2], high = p.out[1], wide = p.out[2];
  /* one row of windows past the last may be needed to complete dx */
  const int oy_begin = max((top + 1 - SIZE + STEP) / STEP, 0), oy_end = end / STEP + 1;
  const int64_t in_x = ((int64_t)at.plane * height * width + at.column * C) * bytes,
                in_y = ((int64_t)at.plane * high * wide + at.column * WINDOWS) * bytes;
  const char *x = (const char *)p.x + in_x, *dy = (const char *)p.dy + in_y;
  char *dx = (char *)p.dx + in_x;
  extern __shared__ uint4 stage[];
  const uint32_t first_plane = blockIdx.x * p.per_warp;
  const int plane = height * width * bytes, run = (int)min((uint32_t)p.per_warp, p.count - first_plane) * plane;
  const int64_t run_at = (int64_t)first_plane * plane;
  if constexpr (staged) {
    char *const kept = (char *)stage, *const beside = kept + p.per_warp * plane;
    stage_in<1, 32>(kept, p.x, run_at, run_at + run, run_at + run);
    stage_in<1, 32>(beside, p.dy, run_at, run_at + run, run_at + run);
    __pipeline_commit();
    const int own = (at.here ? (int)(at.plane - first_plane) * plane : 0) + at.column * C * bytes;
    x = dx = kept + own, dy = beside + own;
    __pipeline_wait_prior(0);
    __syncwarp();
  }

  struct line { words<WINDOWS / E> dy; words<C / E> x[STEP]; };
  const auto load_x = [&](int y) { return load_words<C / E>(x, (int64_t)(min(max(y, 0), height - 1) * width) * bytes); };
  const auto load = [&](line &l, int oy) {
    l.dy = load_words<WINDOWS / E>(dy, (int64_t)(min(oy, high - 1) * wide) * bytes);
#pragma unroll
    for (int r = 0; r < STEP; r++) l.x[r] = load_x(oy * STEP - 1 + KEPT + r);
  };
  /* of three rows: x, the maximum of each window's segment, what that segment received */
  float number[SIZE][PLACES], most[SIZE][WINDOWS], received[SIZE][WINDOWS];
  const auto open_x = [&](int r, const words<C / E> &q) {
    float (&v)[PLACES] = number[r];
#pragma unroll
    for (int i = 0; i < C; i++) v[1 + i] = __uint_as_float(plain<QN_F32>(__float_as_uint(element_of<dtype>(q, i))));
    const float before = __shfl_up_sync(~0u, v[C], 1);
    v[0] = at.left ? before : v[1];
    if (RIGHT) {
      const float after = __shfl_down_sync(~0u, v[1], 1);
      v[PLACES - 1] = at.right ? after : v[C];
    }
#pragma unroll
    for (int w = 0; w < WINDOWS; w++)     /* at stride 1 two windows share the larger of two places */
      most[r][w] = STEP == 1 && w % 2 ? larger(larger(v[w], v[w + 1]), v[w + 2])
                                      : larger(v[w * STEP], larger(v[w * STEP + 1], v[w * STEP + 2]));
  };
  const auto add_to = [&](float &a, float &b, float &c, float p, float q, float largest, float v) {
    if (KEPT == 1) set_to_first(a, b, c, __float_as_uint(p), __float_as_uint(q), __float_as_uint(largest), v);
    else add_to_first<QN_F32, 0, KEPT>(a, b, c, __float_as_uint(p), __float_as_uint(q), __float_as_uint(largest), v);
  };
#pragma unroll
  for (int r = 0; r < KEPT; r++) {
    open_x(r, load_x(oy_begin * STEP - 1 + r));
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) received[r][w] = 0;
  }

  look_ahead<line, AHEAD>(oy_begin, oy_end, load, [&](int oy, int turn, const line &l, auto next) {
    const int y0 = oy * STEP - 1, first = turn * STEP % SIZE, second = (first + 1) % SIZE, third = (first + 2) % SIZE;
#pragma unroll
    for (int r = 0; r < STEP; r++) open_x((first + KEPT + r) % SIZE, l.x[r]);
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) {
      const float v = oy < high ? element_of<dtype>(l.dy, w) : 0;
      add_to(received[first][w], received[second][w], received[third][w], most[first][w], most[second][w],
              larger(larger(most[first][w], most[second][w]), most[third][w]), v);
      if (y0 < 0) received[second][w] += received[first][w];
    }
    next();
#pragma unroll
    for (int r = 0; r < STEP; r++) {      /* rows that no later window covers are complete */
      const int k = (first + r) % SIZE, y = y0 + r;
      float sum[PLACES] = {};
#pragma unroll
      for (int w = 0; w < WINDOWS; w++)
        add_to(sum[w * STEP], sum[w * STEP + 1], sum[w * STEP + 2], number[k][w * STEP], number[k][w * STEP + 1], most[k][w],
                received[k][w]);
      const float right = __shfl_down_sync(~0u, sum[0], 1);                 /* what the lane to the right adds to this lane's last column */
      if (RIGHT) {
        const float left = __shfl_up_sync(~0u, sum[PLACES - 1], 1);
        if (at.left) sum[1] += left;
      }
      if (!at.left) sum[1] += sum[0];
      if (at.right) sum[C] += right;
      if (at.owns && y >= top && y < end) neighbours_store<dtype, C>(dx, y * width, sum + 1);
    }
  });
  if constexpr (staged) {
    __syncwarp();
    for (int i = threadIdx.x; i < run / 16; i += 32) ((uint4 *)((char *)p.dx + run_at))[i] = stage[i];
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* IN_FLIGHT: warps wanted per SM; LEAST: shortest band, in rows, to get them; LINE: as a window: 1-D, of 3, stride 2, padding 1 */
enum { IN_FLIGHT = 240, LEAST = 8, LINE = 1 };

/* What forward and backward refuse: planes that are not packed, windows over several, rows that are not whole lanes. */
static qn_status read_planes(pool_state<walk> *s, const qn_request *r, qn_prepared *out)
{
  walk *p = &s->p;
  const qn_status status = pool_wants_flat(p, r, s->of, 5, false, out);
  if (status) return status;
  if (p->in[2] % C || p->out[2] != p->in[2] / p->step[2])
    return qn_refuse(out, "rows of 4 columns, each with its windows", "x", "56", "%d", p->in[2]);
  return QN_OK;
}

/* The grid of warps for bands of `rows` rows, in multiples of `step`. resident: limits the warps per SM, where a band reads
 * many rows beyond its own; or 0. staged: bytes of a plane if warps, one a block, stage planes in shared memory; or 0. */
static qn_status keep(pool_state<walk> *s, const qn_request *r, int64_t rows, int64_t step, int64_t resident, int64_t staged,
                      qn_prepared *out)
{
  walk *p = &s->p;
  const int64_t lanes = p->in[2] / C;
  p->per_warp = (int32_t)(32 / lanes);
  const int64_t strips = p->per_warp ? 1 : qn_ceil_div(lanes, (int64_t)STRIP),
                across = qn_ceil_div(p->count, qn_max_i64(p->per_warp, 1)) * strips;
  const int64_t wanted = resident ? qn_max_i64(1, resident * r->device->units / across)
                                  : qn_ceil_div(IN_FLIGHT * (int64_t)r->device->units, across);
  const int64_t bands = staged ? 1 : qn_min_i64(qn_ceil_div(p->in[1], LEAST), wanted);
  p->band = (int32_t)qn_round_up(qn_ceil_div(rows, bands), step);
  const int64_t warps = across * qn_ceil_div(rows, p->band);
  p->by_lanes = cuda_divide_by(lanes), p->by_strips = cuda_divide_by(strips), p->by_bands = cuda_divide_by(qn_ceil_div(rows, p->band));
  p->warps = (uint32_t)warps;
  s->shared = (uint32_t)(p->per_warp * staged);
  return pool_keep(s, 32 * (double)warps, staged ? 32 : THREADS, 2600, out);
}

template <int dtype, int how> static pool_kernel by_index(int window)
{
  constexpr int E = dtype == QN_F32 ? 1 : 2;
  if (window == 321) return (pool_kernel)pool_indexed<dtype, how, square<321>, how == BY_TAP ? 4 * E : 2>;
  if (window == 311) return (pool_kernel)pool_indexed<dtype, how, square<311>, how == BY_TAP ? 2 + 2 * E : 2>;
  if (window == LINE) return (pool_kernel)pool_indexed<dtype, how, geometry<1, 1, 0, 3, 2, 1>, 1>;
  if constexpr (how == BY_PLACE)
    if (window == 512) return (pool_kernel)pool_indexed<dtype, how, square<512>, 1>;
  return nullptr;
}
template <int dtype> static pool_kernel by_x(int window, bool staged)
{
  if (staged) return (pool_kernel)pool_recompute_planes<dtype, square<311>, true>;
  return cuda_pick<321, 311>(window, [](auto w) { return (pool_kernel)pool_recompute_planes<dtype, square<w()>, false>; });
}

static qn_status prepare_gradient(const qn_request *r, qn_prepared *out)
{
  pool_state<walk> s = {};
  walk *p = &s.p;
  qn_status status = gradient_read(&s, r, out);
  if (!status) status = read_planes(&s, r, out);
  if (status) return status;
  if (qn_elements(&r->value[s.of.dx]) > INT32_MAX) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");
  const bool line = p->in[1] == 1 && p->out[1] == 1 && p->size[1] == 1 && p->before[1] == 0 && p->size[2] == 3 && p->step[2] == 2 &&
                    p->before[2] == 1 && p->dilation[2] == 1;
  const int how = s.how, window = line ? (int)LINE : square_of(p);
  /* bytes of a row and of a plane; planes of a warp */
  const int64_t row = p->in[2] * qn_kit_bytes(p->dtype), plane = p->in[1] * row, per_warp = 32 * C / p->in[2];
  const bool staged = how == BY_X && window == 311 && p->out[1] == p->in[1] && row % 32 && plane % 16 == 0 && per_warp &&
                      per_warp * 2 * plane <= MOST_STAGED && p->count >= per_warp * LEAST_STAGED * r->device->units;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) {
    return how == BY_X   ? by_x<dtype()>(window, staged)
           : how == BY_TAP ? by_index<dtype(), BY_TAP>(window)
                           : by_index<dtype(), BY_PLACE>(window);
  });
  if (!s.kernel)
    return qn_refuse(out, "small windows", "dx", "3x3 with stride 1 or 2 and padding 1", "%dx%d", p->size[1], p->size[2]);
  return keep(&s, r, p->in[1], p->step[1], window == 512 ? RESIDENT : 0, staged ? 2 * plane : 0, out);
}

template <int dtype, class index> static pool_kernel max_of(int window)
{
  return cuda_pick<321, 311, 220>(window, [](auto w) { return (pool_kernel)pool_indexed_max<dtype, index, square<w()>, 2>; });
}

static qn_status prepare_max(const qn_request *r, qn_prepared *out)
{
  pool_state<walk> s = {};
  qn_status status = pool_read(&s, r, out);
  if (!status) status = read_planes(&s, r, out);
  if (status) return status;
  if (s.of.indices < 0) return qn_refuse(out, "indices too", "indices", "present", "%s", "absent");
  if ((s.p.out[1] - 1) * s.p.step[1] - s.p.before[1] >= s.p.in[1])
    return qn_refuse(out, "windows that reach into x", "y", "fewer rows", "%d", s.p.out[1]);
  const int window = square_of(&s.p);
  const uint32_t index = s.p.index_dtype;
  s.kernel = cuda_by_dtype(s.p.dtype, [&](auto dtype) {
    return index == QN_U8 ? max_of<dtype(), uint8_t>(window) : index == QN_I64 ? max_of<dtype(), int64_t>(window) : nullptr;
  });
  if (!s.kernel)
    return qn_refuse(out, "small windows, indices u8 or i64", "x", "3x3, or 2x2 with stride 2", "%dx%d", s.p.size[1], s.p.size[2]);
  return keep(&s, r, s.p.out[1], 1, 0, 0, out);
}

static const qn_engine row[] = { pool_row<walk>("walk", QN_OP_POOL_MAX, prepare_max),
                                 pool_row<walk>("walk", QN_OP_POOL_MAX_BACKWARD, prepare_gradient) };
CUDA_ENGINES(pool_walk) = { row, sizeof row / sizeof *row };
