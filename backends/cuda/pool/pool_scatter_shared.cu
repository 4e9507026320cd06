/* pool_scatter_shared.cu -- gradient of max pooling from indices, channels last (NHWC), f16, bf16 and f32;
 * 3x3 windows, stride 1, padding 1.
 *
 *   dx[x] = the sum of dy over the windows whose index is x
 *
 * A lane owns a 32-bit word of channels of a strip of dx columns and walks down a band of rows. Every window adds dy to one of
 * the nine sums below it; the sums of three rows are kept in shared memory, at addresses private to the lane (no conflicts, no
 * atomics), because registers cannot be indexed at run time. Refused: i32 indices, recomputation from x. */
#include "engines.h"
#include "pool_lanes.cuh"

/* BEFORE: the leftmost tap of a strip's windows lies this many columns before it */
enum { SIZE = 3, TAPS = SIZE * SIZE, BEFORE = SIZE - 1 };

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
  enum { L = per_word<dtype>, bytes = 4 / L, INDEX = how == BY_PLACE ? 8 : 1 };
  extern __shared__ float sums[];
  strip s;
  /* the shuffle tells the compiler that the warp number is uniform */
  if (!strip_of(s, p, __shfl_sync(~0u, blockIdx.x * WARPS + threadIdx.x / 32, 0), COLUMNS, L)) return;
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
            for (int i = 0; i < L; i++) sum_at(to[k / SIZE][i]) = sum[k / SIZE][i] + channel<dtype>(l.dy[k], i);
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
      if (columns == COLUMNS) {
#pragma unroll
        for (int a = 0; a < COLUMNS; a++) *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word[a];
      } else {
#pragma unroll
        for (int a = 0; a < COLUMNS - 1; a++)
          if (a < columns) *(uint32_t *)(to + (uint32_t)(a * p.of_dx.x * bytes)) = word[a];
      }
    }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* A kernel, the columns of its strips, its bytes of shared memory. */
struct form { const void *kernel; int columns; uint32_t shared; };
template <int dtype, int how> static form form_of()
{
  return { (const void *)pool_scatter_shared<dtype, how>, layout<how>::COLUMNS,
           (uint32_t)(WARPS * layout<how>::CHANNEL * per_word<dtype>) };
}
template <int dtype> static form form_of(bool taps) { return taps ? form_of<dtype, BY_TAP>() : form_of<dtype, BY_PLACE>(); }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  lanes_state s = {};
  qn_status status = lanes_fill(&s, r, out);
  if (status != QN_OK) return status;
  const uint32_t dtype = r->value[s.of.dx].dtype;
  if (s.of.indices < 0) return qn_refuse(out, "maxima by indices", "indices", "some", "%s", "none");
  if (s.p.index_dtype == QN_I32) return qn_refuse(out, "indices", "indices", "u8 or i64", "%s", "i32");
  if (square_of(&s.p) != 311) return qn_refuse(out, "windows of 3x3 with padding 1", "dx", "stride 1", "%dx%d", s.p.size[1], s.p.size[2]);
  const bool taps = s.p.index_dtype == QN_U8;
  const form form = dtype == QN_F32 ? form_of<QN_F32>(taps) : dtype == QN_BF16 ? form_of<QN_BF16>(taps) : form_of<QN_F16>(taps);
  s.kernel = form.kernel, s.shared = form.shared;
  return lanes_keep(&s, r, form.columns, dtype == QN_F32 ? 1 : 2, out);
}

static const qn_engine row[] = {
  { "scatter_shared", QN_OP_POOL_MAX_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, nullptr, lanes_run, cuda_release },
};
CUDA_ENGINES(pool_scatter_shared) = { row, sizeof row / sizeof *row };
