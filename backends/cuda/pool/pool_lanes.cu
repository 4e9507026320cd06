/* pool_lanes.cu -- gradient of max pooling, channels last (NHWC), f16, bf16 and f32; 3x3 windows with padding 1.
 *
 *   dx[x] = the sum of dy over the windows whose maximum came from x: by their indices (u8, i64), or recomputed from x
 *
 * A lane owns a 32-bit word of channels of a strip of dx columns and walks down a band of rows, with the sums of three rows at hand.
 * scatter: by index, stride 2: a window's tap number becomes a one-hot mask that predicates nine adds to registers.
 * shared: by index, stride 1: sums in shared memory, because registers cannot be indexed at run time.
 * recompute: from x, strides 1 and 2, separably, in registers.
 * Refused: other windows and layouts, i32 indices, f32 by index with stride 2 (no such kernel; cells has one). */
#include "pool_gradient.cuh"
#include "pool_peak.cuh"
#include "kit/sm80.cuh"

enum { SIZE = 3, WARPS = 4 };             /* WARPS: of a block */

struct lanes : gradient {
  int32_t  band, images;                  /* rows of a band; images whose channels are packed together into warps, so that few lanes idle */
  uint32_t warps;
  /* extents of the grid: strips of columns; warps of the packed channels; bands; lanes of a pixel */
  cuda_divisor by_strips, by_chunks, by_bands, by_lanes;
};

/* ---- a strip ------------------------------------------------------------------------------------------------------ */

struct strip { int n, x0, top, end, c; };            /* rows top..end-1 of dx; c: this lane's first channel */

__device__ __forceinline__ bool strip_of(strip &s, const lanes &p, int columns, int channels)
{
  const uint32_t warp = __shfl_sync(~0u, blockIdx.x * WARPS + threadIdx.x / 32, 0);         /* the shuffle shows that it is uniform */
  uint32_t chunk, column, band, lane;
  const uint32_t first =
    cuda_quotient(cuda_quotient(cuda_quotient(warp, p.by_chunks, &chunk), p.by_strips, &column), p.by_bands, &band) * p.images;
  const uint32_t image = cuda_quotient(chunk * 32 + threadIdx.x % 32, p.by_lanes, &lane);
  s.n = (int)(first + image);
  s.x0 = (int)column * columns;
  s.top = (int)band * p.band, s.end = min(s.top + p.band, p.in[1]);
  s.c = (int)lane * channels;
  return warp < p.warps && image < (uint32_t)p.images && s.n < (int)p.n;
}

/* store(a) for each column of a strip; without a test for each where all exist. */
template <int COLUMNS, class F> __device__ __forceinline__ void over_columns(int columns, F store)
{
  if (columns == COLUMNS) {
#pragma unroll
    for (int a = 0; a < COLUMNS; a++) store(a);
  } else {
#pragma unroll
    for (int a = 0; a < COLUMNS - 1; a++)
      if (a < columns) store(a);
  }
}

/* ---- by index, stride 2: sums in registers ---------------------------------------------------------------------------- */

enum { SCATTER_COLUMNS = 4 };

/* BLOCKS: resident on an SM; AHEAD: rows of windows prefetched. */
template <int dtype, int how, int BLOCKS, int AHEAD>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_scatter(const __grid_constant__ lanes p)
{
  enum { STEP = 2, BEFORE = 1, COLUMNS = SCATTER_COLUMNS, CHANNELS = 2, bytes = 4 / CHANNELS, INDEX = how == BY_PLACE ? 8 : 1,
         KEPT = SIZE - STEP, WINDOWS = (COLUMNS - 1 + BEFORE) / STEP + 1 };
  strip s;
  if (!strip_of(s, p, COLUMNS, CHANNELS)) return;
  /* one row of windows past the last may be needed to complete dx */
  const int oy_begin = max((s.top + BEFORE - SIZE + STEP) / STEP, 0), oy_end = (s.end - 1 + BEFORE) / STEP + 1, ox = s.x0 / STEP,
            columns = min((int)COLUMNS, p.in[2] - s.x0);

  const char *const dy = (const char *)p.dy + (uint32_t)(s.n * p.y_stride[0] + s.c) * bytes,
             *const index = (const char *)p.indices + (uint32_t)(s.n * p.index_stride[0] + s.c) * INDEX;
  char *const dx = (char *)p.dx + (uint32_t)(s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  uint32_t dy_at[WINDOWS], index_at[WINDOWS];   /* byte offsets in a row */
#pragma unroll
  for (int k = 0; k < WINDOWS; k++)
    dy_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_dy.x * bytes,
    index_at[k] = min(max(ox + k, 0), p.out[2] - 1) * p.of_index.x * INDEX;

  struct line {
    uint32_t dy[WINDOWS], tap[how == BY_TAP ? WINDOWS : 1];
    alignas(16) int64_t place[how == BY_PLACE ? WINDOWS : 1][CHANNELS];
  };
  const auto load = [&](line &l, int oy) {
    const uint32_t o = min(oy, min(oy_end, p.out[1]) - 1);
    const char *const dy_row = dy + o * p.of_dy.y * bytes, *const index_row = index + o * p.of_index.y * INDEX;
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      l.dy[k] = *(const uint32_t *)(dy_row + dy_at[k]);
      const char *const from = index_row + index_at[k];
      if (how == BY_TAP) l.tap[k] = *(const uint16_t *)from;
      if constexpr (how == BY_PLACE) *(longlong2 *)l.place[k] = *(const longlong2 *)from;
    }
  };

  float sum[SIZE][COLUMNS][CHANNELS] = {};
  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], oy_begin + a);
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += AHEAD)
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      const int oy = oy0 + u, y0 = oy * STEP - BEFORE;
      if (AHEAD > 1 && oy >= oy_end) break;
      const line now = ahead[u];
      load(ahead[u], oy + AHEAD);
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) {
        const bool there = (unsigned)(ox + k) < (unsigned)p.out[2] && oy < p.out[1];
#pragma unroll
        for (int i = 0; i < CHANNELS; i++) {
          const float v = there ? word_get<dtype>(now.dy[k], i) : 0;
          const uint32_t tap = how == BY_TAP ? (i ? now.tap[k] >> 8 : now.tap[k] & 255)
                                             : tap_of<SIZE>(place_among(now.place[how == BY_PLACE ? k : 0][i]),
                                                            y0 * p.in[2] + s.x0 - BEFORE + k * STEP, p.in[2]);
          const uint32_t bits = tap < SIZE * SIZE ? 1u << tap : 0;
#pragma unroll
          for (int r = 0; r < SIZE; r++)
#pragma unroll
            for (int c = 0; c < SIZE; c++) {
              const int column = k * STEP + c - BEFORE;
              if (column >= 0 && column < COLUMNS) add_at_bit(sum[r][column < 0 ? 0 : column % COLUMNS][i], bits, r * SIZE + c, v);
            }
        }
      }
#pragma unroll
      for (int r = 0; r < STEP; r++) {    /* rows that no later window covers are complete */
        const int y = y0 + r;
        if (y < s.top || y >= s.end) continue;
        char *const to = dx + (uint32_t)(y * p.of_dx.y * bytes);
        over_columns<COLUMNS>(columns, [&](int a) { *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word_of<dtype>(sum[r][a]); });
      }
#pragma unroll
      for (int r = 0; r < SIZE; r++)
#pragma unroll
        for (int a = 0; a < COLUMNS; a++)
#pragma unroll
          for (int i = 0; i < CHANNELS; i++) sum[r][a][i] = r < KEPT ? sum[r < KEPT ? r + STEP : r][a][i] : 0;
    }
}

/* ---- by index, stride 1: sums in shared memory -------------------------------------------------------------------------- */

/* Every window adds dy to one of the nine sums below it, at addresses private to the lane: no conflicts, no atomics. */

/* Of a strip; distances in shared memory in bytes: PLACE between columns, CHANNEL between channels. AHEAD: rows of windows prefetched. */
template <int how> struct layout {
  static constexpr int COLUMNS = how == BY_TAP ? 7 : 4, WINDOWS = COLUMNS + SIZE - 1, PLACES = WINDOWS + SIZE - 1,
                       AHEAD = how == BY_TAP ? SIZE : 1;
  static constexpr int CHANNEL = SIZE * PLACES * 32 * 4;
};
enum { PLACE = 32 * 4 };

/* PRMT: selects, by the low nibbles of bytes 0 and 1 of `by`, two of the 8 bytes of (high, low) into bytes 0 and 2. Selector 8
 * gives the replicated sign of byte 0 (0 or -1). */
__device__ __forceinline__ uint32_t bytes_by(uint32_t low, uint32_t high, uint32_t by)
{
#ifdef __CUDA_ARCH__
  uint32_t v;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(low), "r"(high), "r"(by));
  return v;
#else
  const uint64_t all = (uint64_t)high << 32 | low;
  uint32_t v = 0;
  for (int i = 0; i < 4; i += 2) {
    const uint32_t n = by >> 4 * i & 15, byte = (uint32_t)(all >> 8 * (n & 7)) & 255;
    v |= (n & 8 ? (byte & 128 ? 255 : 0) : byte) << 8 * i;
  }
  return v;
#endif
}

/* base + PLACE times signed byte number 0 or 2 of `bytes`. */
template <int number> __device__ __forceinline__ uint32_t place_by(uint32_t bytes, uint32_t base)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 610
  uint32_t v;
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(v) : "r"(bytes), "n"((uint32_t)PLACE << 8 * number), "r"(base));
  return v;
#else
  return base + (uint32_t)((int32_t)(int8_t)(bytes >> 8 * number) * PLACE);
#endif
}

/* Blocks per SM: what remains of L1 beside their shared memory bounds the loads in flight. */
template <int dtype> constexpr int blocks_of = dtype == QN_F32 ? 5 : 4;

/* The three rows of sums rotate through the same memory. */
template <int dtype, int how>
__global__ void __launch_bounds__(WARPS * 32, blocks_of<dtype>) pool_scatter_shared(const __grid_constant__ lanes p)
{
  typedef layout<how> of;
  constexpr int COLUMNS = of::COLUMNS, WINDOWS = of::WINDOWS, PLACES = of::PLACES, AHEAD = of::AHEAD, CHANNEL = of::CHANNEL;
  /* BEFORE: the leftmost tap of a strip's windows lies this many columns before it */
  enum { L = per_word<dtype>, bytes = 4 / L, INDEX = how == BY_PLACE ? 8 : 1, TAPS = SIZE * SIZE, BEFORE = SIZE - 1 };
  extern __shared__ float sums[];
  strip s;
  if (!strip_of(s, p, COLUMNS, L)) return;
  const int oy_begin = max(s.top - 1, 0), oy_end = s.end + 1, ox = s.x0 - 1, columns = min(COLUMNS, p.in[2] - s.x0);
  const auto sum_at = [&](uint32_t at) -> float & { return *(float *)((char *)sums + at); };
  const uint32_t own = threadIdx.x / 32 * (CHANNEL * L) + threadIdx.x % 32 * 4;
#pragma unroll
  for (int i = 0; i < SIZE * PLACES * L; i++) sum_at(own + i * PLACE) = 0;

  const char *const dy = (const char *)p.dy + (uint32_t)(s.n * p.y_stride[0] + s.c) * bytes,
             *const index = (const char *)p.indices + (uint32_t)(s.n * p.index_stride[0] + s.c) * INDEX;
  char *const dx = (char *)p.dx + (uint32_t)(s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  /* byte offsets in a row; windows outside y read their neighbour, with dy masked to 0 */
  uint32_t dy_at[WINDOWS], index_at[WINDOWS], there[WINDOWS];
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) {
    const int at = min(max(ox + k, 0), p.out[2] - 1);
    dy_at[k] = at * p.of_dy.x * bytes, index_at[k] = at * p.of_index.x * INDEX,
    there[k] = (unsigned)(ox + k) < (unsigned)p.out[2] ? ~0u : 0;
  }
  struct line {
    uint32_t dy[WINDOWS], tap[WINDOWS];   /* tap: one byte per channel */
    alignas(16) int64_t place[how == BY_PLACE ? WINDOWS : 1][L];
  };
  const int last_row = min(oy_end, p.out[1]) - 1;
  const auto load = [&](line &l, int oy) {
    const uint32_t o = min(oy, last_row);
    const char *const dy_row = dy + o * p.of_dy.y * bytes, *const index_row = index + o * p.of_index.y * INDEX;
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) {
      l.dy[k] = *(const uint32_t *)(dy_row + dy_at[k]);
      const char *const from = index_row + index_at[k];
      if constexpr (how == BY_TAP) l.tap[k] = L == 2 ? *(const uint16_t *)from : *(const uint8_t *)from;
      else if constexpr (L == 2) *(longlong2 *)l.place[k] = *(const longlong2 *)from;
      else *l.place[k] = *(const int64_t *)from;
    }
  };
  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], oy_begin + a);
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += SIZE)
#pragma unroll
    for (int u = 0; u < SIZE; u++) {
      const int oy = oy0 + u, y = oy - 1;
      if (oy >= oy_end) break;
      line &l = ahead[u % AHEAD];
      if constexpr (how == BY_PLACE)
#pragma unroll
        for (int k = 0; k < WINDOWS; k++) {
          l.tap[k] = 0;
#pragma unroll
          for (int i = 0; i < L; i++)
            l.tap[k] |= tap_of<SIZE>(place_among(l.place[k][i]), y * p.in[2] + s.x0 - BEFORE + k, p.in[2]) << 8 * i;
        }
      uint32_t beyond = 0;                /* bit 7 of a byte is set where the tap number is out of range (no tap) */
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) l.dy[k] &= there[k], beyond |= l.tap[k] | (l.tap[k] + (0x80 - TAPS) * 0x0101u);
      if (beyond & (L == 2 ? 0x8080u : 0x80u))
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
#pragma unroll
          for (int i = 0; i < L; i++)
            if ((l.tap[k] >> 8 * i & 255) >= TAPS) l.tap[k] &= ~(255u << 8 * i), l.dy[k] &= L == 1 ? 0 : i ? 0xffffu : 0xffff0000u;

      /* offset of each tap 0..7 from the last tap (8), which bytes_by turns into 0 or -1 */
      const int row0 = u, row1 = (row0 + 1) % SIZE, row2 = (row0 + 2) % SIZE, last = row2 * PLACES + SIZE - 1, down = row0 < row2;
      const auto from_last = [&](int tap) {
        return (uint32_t)((tap < SIZE ? row0 : tap < 2 * SIZE ? row1 : row2) * PLACES + tap % SIZE - last - down) & 255u;
      };
      const uint32_t low = from_last(0) | from_last(1) << 8 | from_last(2) << 16 | from_last(3) << 24,
                     high = from_last(4) | from_last(5) << 8 | from_last(6) << 16 | from_last(7) << 24;
      if (oy <= last_row)
#pragma unroll
        /* every third window: these have no column in common, so their read-modify-writes are independent */
        for (int g = 0; g < SIZE; g++) {
          enum { AT_ONCE = (WINDOWS + SIZE - 1) / SIZE };
          uint32_t to[AT_ONCE][L];
          float sum[AT_ONCE][L];
#pragma unroll
          for (int k = g; k < WINDOWS; k += SIZE) {
            const uint32_t found = bytes_by(low, high, l.tap[k]);
            to[k / SIZE][0] = place_by<0>(found, own) + (last + down + k) * PLACE;
            if (L == 2) to[k / SIZE][L - 1] = place_by<2>(found, own) + (last + down + k) * PLACE + CHANNEL;
#pragma unroll
            for (int i = 0; i < L; i++) sum[k / SIZE][i] = sum_at(to[k / SIZE][i]);
          }
#pragma unroll
          for (int k = g; k < WINDOWS; k += SIZE)
#pragma unroll
            for (int i = 0; i < L; i++) sum_at(to[k / SIZE][i]) = sum[k / SIZE][i] + word_get<dtype>(l.dy[k], i);
        }
      load(l, oy + AHEAD);
      /* the row that no later window covers is complete */
      char *const to = dx + (uint32_t)(y * p.of_dx.y * bytes);
      uint32_t word[COLUMNS];
#pragma unroll
      for (int a = 0; a < COLUMNS; a++) {
        float v[L];
#pragma unroll
        for (int i = 0; i < L; i++) {
          float &sum = sum_at(own + (row0 * PLACES + BEFORE + a) * PLACE + i * CHANNEL);
          v[i] = sum, sum = 0;
        }
        word[a] = word_of<dtype>(v);
      }
      if (y < s.top || y >= s.end) continue;
      over_columns<COLUMNS>(columns, [&](int a) { *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word[a]; });
    }
}

/* ---- from x ---------------------------------------------------------------------------------------------------------- */

/* Separable, as in pool_walk.cu: a window first passes its dy to the one of its three rows that holds the maximum; then each
 * row's 3-wide segment, shared by all windows at that column, passes what it received to one of its three places. */

template <int dtype> __device__ __forceinline__ uint32_t larger_word(uint32_t a, uint32_t b)
{
  if constexpr (dtype == QN_F32) return __float_as_uint(larger(__uint_as_float(a), __uint_as_float(b)));
  else return larger_pair<dtype>(a, b);
}

/* add_to_first() for both channels of a word, or the one. */
template <int dtype, int begun>
__device__ __forceinline__ void add_word_to_first(float (&a)[per_word<dtype>], float (&b)[per_word<dtype>], float (&c)[per_word<dtype>],
                                                  uint32_t x, uint32_t y, uint32_t largest, const float (&v)[per_word<dtype>])
{
  add_to_first<dtype, 0, begun>(a[0], b[0], c[0], x, y, largest, v[0]);
  if constexpr (dtype != QN_F32) add_to_first<dtype, 1, begun>(a[1], b[1], c[1], x, y, largest, v[1]);
}

/* base + number * size */
__device__ __forceinline__ const char *address(const char *base, int number, uint32_t size)
{
  return base + (uint64_t)(uint32_t)number * size;
}

/* COLUMNS: of a strip; AHEAD: rows of windows loaded ahead, 1 or 3; BLOCKS: resident on an SM; FAR: how many rows ahead to
 * prefetch into L2, where registers hold no more loads in flight; 0: none. */
template <int dtype, int STEP, int COLUMNS, int AHEAD, int BLOCKS, int FAR>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS) pool_recompute(const __grid_constant__ lanes p)
{
  /* the x loaded begins BEFORE columns left of the strip */
  enum { L = per_word<dtype>, bytes = 4 / L, KEPT = SIZE - STEP, FIRST = (2 - SIZE) / STEP, WINDOWS = COLUMNS / STEP - FIRST + 1,
         ACROSS = (WINDOWS - 1) * STEP + SIZE, BEFORE = 1 - FIRST * STEP };
  strip s;
  if (!strip_of(s, p, COLUMNS, L)) return;
  const int oy_begin = max((s.top + 1 - SIZE + STEP) / STEP, 0), oy_end = s.end / STEP + 1, ox = s.x0 / STEP + FIRST,
            columns = min(COLUMNS, p.in[2] - s.x0);

  /* out-of-range x reads the nearest place inside; windows out of range get dy 0 */
  const char *const dy = (const char *)p.dy + (s.n * p.y_stride[0] + s.c) * bytes,
             *const x = (const char *)p.x + (s.n * p.x_stride[0] + s.c) * bytes;
  const char *const dx = (const char *)p.dx + (s.n * p.dx_stride[0] + s.c + s.x0 * p.of_dx.x) * bytes;
  const uint32_t x_line = p.of_x.y * bytes, x_pixel = p.of_x.x * bytes, dy_line = p.of_dy.y * bytes, dy_pixel = p.of_dy.x * bytes,
                 dx_line = p.of_dx.y * bytes, dx_pixel = p.of_dx.x * bytes;
  const bool edge = ox < 0 || ox + WINDOWS > p.out[2];
  uint32_t x_at[ACROSS], dy_at[WINDOWS];
#pragma unroll
  for (int i = 0; i < ACROSS; i++) x_at[i] = min(max(s.x0 - BEFORE + i, 0), p.in[2] - 1);
#pragma unroll
  for (int k = 0; k < WINDOWS; k++) dy_at[k] = min(max(ox + k, 0), p.out[2] - 1);

  struct line { uint32_t dy[WINDOWS], x[STEP][ACROSS]; };
  const auto load_x = [&](uint32_t (&v)[ACROSS], int y) {
    const char *const row = address(x, min(max(y, 0), p.in[1] - 1), x_line);
#pragma unroll
    for (int i = 0; i < ACROSS; i++) v[i] = *(const uint32_t *)address(row, x_at[i], x_pixel);
  };
  const auto load = [&](line &l, int oy) {
    const char *const row = address(dy, min(oy, p.out[1] - 1), dy_line);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++) l.dy[k] = *(const uint32_t *)address(row, dy_at[k], dy_pixel);
#pragma unroll
    for (int r = 0; r < STEP; r++) load_x(l.x[r], oy * STEP - 1 + KEPT + r);
  };
  /* three rows, rotating through the same registers: x, the maximum of each 3-wide segment, what that segment received */
  uint32_t number[SIZE][ACROSS], most[SIZE][WINDOWS];
  float received[SIZE][WINDOWS][L];
  const auto open_x = [&](int r, const uint32_t (&v)[ACROSS]) {
#pragma unroll
    for (int i = 0; i < ACROSS; i++) number[r][i] = plain<dtype>(v[i]);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
      most[r][k] = larger_word<dtype>(larger_word<dtype>(number[r][k * STEP], number[r][k * STEP + 1]), number[r][k * STEP + 2]);
  };
#pragma unroll
  for (int r = 0; r < KEPT; r++) {
    uint32_t v[ACROSS];
    load_x(v, oy_begin * STEP - 1 + r);
    open_x(r, v);
#pragma unroll
    for (int k = 0; k < WINDOWS; k++)
#pragma unroll
      for (int i = 0; i < L; i++) received[r][k][i] = 0;
  }

  /* a warp's channels of a pixel are 4 sectors, those of its 8 columns 32: each lane prefetches one */
  const int beside = s.x0 + (int)(threadIdx.x % 8);
  const auto prefetch_row = [&](int oy) {
    const char *const x_row = address(x, min(oy * STEP + KEPT - 1, p.in[1] - 1), x_line);
    const char *const dy_row = address(dy, min(oy, p.out[1] - 1), dy_line);
    prefetch_L2(address(x_row, min(beside, p.in[2] - 1), x_pixel));
    prefetch_L2(address(dy_row, min(beside, p.out[2] - 1), dy_pixel));
  };
#pragma unroll
  for (int a = AHEAD; a < FAR; a++) prefetch_row(oy_begin + a);

  line ahead[AHEAD];
#pragma unroll
  for (int a = 0; a < AHEAD; a++) load(ahead[a], min(oy_begin + a, oy_end - 1));
#pragma unroll 1
  for (int oy0 = oy_begin; oy0 < oy_end; oy0 += SIZE)
#pragma unroll
    for (int a = 0; a < SIZE; a++) {
      const int oy = oy0 + a, y0 = oy * STEP - 1, first = a * STEP % SIZE, second = (first + 1) % SIZE, third = (first + 2) % SIZE;
      if (oy >= oy_end) break;
      line &l = ahead[a % AHEAD];
      if (edge || oy >= p.out[1])
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
          if ((unsigned)(ox + k) >= (unsigned)p.out[2] || oy >= p.out[1]) l.dy[k] = 0;
#pragma unroll
      for (int r = 0; r < STEP; r++) open_x((first + KEPT + r) % SIZE, l.x[r]);
      uint32_t now[WINDOWS];
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) now[k] = l.dy[k];
#pragma unroll
      for (int k = 0; k < WINDOWS; k++) {
        float v[L];
#pragma unroll
        for (int i = 0; i < L; i++) v[i] = word_get<dtype>(now[k], i);
        add_word_to_first<dtype, KEPT>(received[first][k], received[second][k], received[third][k], most[first][k], most[second][k],
                               larger_word<dtype>(larger_word<dtype>(most[first][k], most[second][k]), most[third][k]), v);
      }
      load(l, min(oy + AHEAD, oy_end - 1));
      if (FAR) prefetch_row(oy + FAR);
      if (y0 < 0)
#pragma unroll
        for (int k = 0; k < WINDOWS; k++)
#pragma unroll
          for (int i = 0; i < L; i++) received[second][k][i] += received[first][k][i];
#pragma unroll
      for (int r = 0; r < STEP; r++) {    /* rows that no later window covers are complete */
        const int line = (first + r) % SIZE, y = y0 + r;
        if (y < s.top || y >= s.end) continue;
        float sum[ACROSS][L];
#pragma unroll
        for (int k = 0; k < WINDOWS; k++) {
          const auto across_row = k ? add_word_to_first<dtype, KEPT> : add_word_to_first<dtype, 0>;
          across_row(sum[k * STEP], sum[k * STEP + 1], sum[k * STEP + 2], number[line][k * STEP], number[line][k * STEP + 1],
                      most[line][k], received[line][k]);
        }
        if (s.x0 == 0)
#pragma unroll
          for (int i = 0; i < L; i++) sum[BEFORE][i] += sum[BEFORE - 1][i];
        const char *const to = address(dx, y, dx_line);
        over_columns<COLUMNS>(columns, [&](int b) {
          *(uint32_t *)(char *)address(to, b, dx_pixel) = word_of<dtype>(sum[BEFORE + b]);
        });
      }
    }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

enum { IN_FLIGHT = 32 };                  /* warps wanted per SM, if bands of 16 rows yield as many */

struct form { pool_kernel kernel; int columns; uint32_t shared; };       /* a kernel, the columns of its strips, its shared memory */

template <int dtype, int how> static form shared_form()
{
  return { (pool_kernel)pool_scatter_shared<dtype, how>, layout<how>::COLUMNS,
           (uint32_t)(WARPS * layout<how>::CHANNEL * per_word<dtype>) };
}
template <int dtype> static form form_of(int how, int window)
{
  constexpr bool half = dtype != QN_F32;
  if (how == BY_X && window == 321) return { (pool_kernel)pool_recompute<dtype, 2, half ? 4 : 8, 3, half ? 4 : 2, 0>, half ? 4 : 8, 0 };
  if (how == BY_X && window == 311) return { (pool_kernel)pool_recompute<dtype, 1, 7, half ? 1 : 3, half ? 3 : 2, half ? 2 : 0>, 7, 0 };
  if (how == BY_TAP && window == 311) return shared_form<dtype, BY_TAP>();
  if (how == BY_PLACE && window == 311) return shared_form<dtype, BY_PLACE>();
  if constexpr (half) {
    if (how == BY_TAP && window == 321) return { (pool_kernel)pool_scatter<dtype, BY_TAP, 7, 3>, SCATTER_COLUMNS, 0 };
    if (how == BY_PLACE && window == 321) return { (pool_kernel)pool_scatter<dtype, BY_PLACE, 5, 1>, SCATTER_COLUMNS, 0 };
  }
  return {};
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<lanes> s = {};
  const qn_status status = gradient_read(&s, r, out);
  if (status != QN_OK) return status;
  lanes *p = &s.p;
  if (gradient_channels(&s, r) == 1)
    return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "other strides");
  if (!p->flat) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  if (p->in[2] < p->size[2]) return qn_refuse(out, "rows as wide as a window", "dx", "3", "%d", p->in[2]);
  if (s.of.indices >= 0 && p->index_dtype == QN_I32) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  const int64_t *stride[] = { p->x_stride, p->dx_stride, p->y_stride, p->index_stride };
  for (int t = 0; t < 4; t++) {           /* the image dim need not be outermost in memory */
    const int32_t *extent = t < 2 ? p->in : p->out;
    double reach = (double)p->n * (double)stride[t][0] + p->c;
    for (int d = 1; d < 3; d++) reach += (double)extent[d] * (double)stride[t][2 + d];
    if (reach * (t < 3 ? 4 : 8) >= 4294967296.0) return qn_refuse(out, "tensors of less than 4 GiB", "dx", "", "%s", "more");
  }
  const int how = s.of.x >= 0 ? BY_X : p->index_dtype == QN_U8 ? BY_TAP : BY_PLACE, window = square_of(p);
  const form form = cuda_by_dtype(p->dtype, [&](auto dtype) { return form_of<dtype()>(how, window); });
  if (!form.kernel)
    return qn_refuse(out, "windows of 3x3 with padding 1; by index with stride 2, f16 or bf16", "dx", "stride 1 or 2", "%dx%d", p->size[1],
                     p->size[2]);
  s.kernel = form.kernel, s.shared = form.shared;

  /* the grid of warps: strips of columns, words of channels, bands */
  const int64_t strips = qn_ceil_div(p->in[2], form.columns), pixel = qn_ceil_div(p->c, p->dtype == QN_F32 ? 1 : 2);
  int64_t across = INT64_MAX;             /* warps of all images' channels */
  for (int64_t images = 1; images <= qn_min_i64(32, p->n); images *= 2) {
    const int64_t warps = qn_ceil_div(p->n, images) * qn_ceil_div(images * pixel, 32);
    if (warps < across) across = warps, p->images = (int32_t)images;
  }
  across *= strips;
  const int64_t bands = qn_max_i64(qn_ceil_div(p->in[1], 1024),
                                   qn_min_i64(qn_ceil_div(p->in[1], 16), qn_ceil_div(IN_FLIGHT * (int64_t)r->device->units, across)));
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], bands), 2);
  const int64_t whole = qn_ceil_div(p->in[1], p->band);
  if ((double)across * (double)whole >= INT32_MAX / 32) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  p->warps = (uint32_t)(across * whole);
  p->by_strips = cuda_divide_by(strips), p->by_chunks = cuda_divide_by(qn_ceil_div(p->images * pixel, 32)),
  p->by_bands = cuda_divide_by(whole), p->by_lanes = cuda_divide_by(pixel);
  return pool_keep(&s, 32 * (int64_t)p->warps, 32 * WARPS, out);
}

static const qn_engine row[] = { pool_row<lanes>("lanes", QN_OP_POOL_MAX_BACKWARD, prepare) };
CUDA_ENGINES(pool_lanes) = { row, sizeof row / sizeof *row };
