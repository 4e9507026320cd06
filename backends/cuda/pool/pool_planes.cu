/* pool_planes.cu -- max, average and lp pooling, adaptive too, of packed NCHW planes in f16, bf16 and f32 that are staged in shared memory
 * with 16-byte cp.async.
 *
 * A block stages whole planes, or a band of rows of one, and reduces its windows from there: those of 2x2 and 3x3 by columns, all others
 * separably, or a plane that is one window by one thread. Norms are sums of the taps' powers, and their roots at the end.
 * Refused: windows over several planes, rows too wide for shared memory. */
#include "pool_found.cuh"

/* WHOLE: threads, and planes, of a block of whole_windows; WHOLE_MOST: bytes of a plane; WIDE, ALL: as a kernel's window */
enum {
  THREADS = 256, STRIP = 4, BATCH = 4, STAGE = 26 << 10, STAGE_MOST = 96 << 10, WHOLE = 64, WHOLE_MOST = 1024, WIDE = -1, ALL = -2
};

struct planes : pool {                    /* depth is folded away: in[0] is 1 */
  int64_t  total;                         /* elements of x */
  uint32_t per_block;                     /* planes of a block */
  int32_t  bands;                         /* bands of a plane, one block each; p.band: output rows of one */
  int32_t  lane_bits, part;               /* log2 of the lanes that share a row; part: byte offset of the row results in shared memory */
  cuda_divisor by_bands, by_strips;
  cuda_divisor by_across, by_down;        /* wide: groups of SWEEP along a row, along a column */
};

/* What a window's taps, as tap_of() reads them, are joined to. SQUARES: norms by a kernel for p = 2; POWERS: by one for any p. */
template <int mode> constexpr bool norms = mode == SQUARES || mode == POWERS;
template <int mode> using joined = found<1, norms<mode> ? AVERAGE : mode>;

template <int dtype, int mode> __device__ __forceinline__ float tap_of(const planes &p, const stored<dtype> *from, int at)
{
  const float v = edge_load<dtype>(from, at);
  return norms<mode> ? lp_tap<dtype>(v, mode == SQUARES ? 2 : p.p) : v;
}

/* The mean of the plane's window, from its sum's share. */
template <int dtype> __device__ __forceinline__ float mended(const planes &p, uint32_t plane, int oy, int ox, float mean)
{
  if (!pool_far<dtype>(mean)) return mean;
  return pool_far_mean(p, (int64_t)plane * p.in[1] * p.in[2], 0, oy, ox);
}
/* Its norm, from the sum of powers. */
template <int dtype, int mode> __device__ __forceinline__ float norm_of(const planes &p, uint32_t plane, int oy, int ox, float sum)
{
  if (sum > LP_LEAST && sum < INFINITY) return mode == SQUARES ? sqrtf(sum) : p.p == 3 ? lp_cube_root<dtype>(sum) : lp_root(sum, p.p);
  return sum == 0 ? 0 : lp_scaled(p, (int64_t)plane * p.in[1] * p.in[2], 0, oy, ox);
}

template <int dtype, int mode> __device__ __forceinline__ void put(const planes &p, uint32_t plane, int oy, int ox, const joined<mode> &f)
{
  const int o[3] = { 0, oy, ox };
  const window w = window_of(p, o);
  int64_t to = ((int64_t)plane * p.out[1] + oy) * p.out[2] + ox;
  float v = f.v[0];                       /* no tap: 0 */
  const int tap = f.tap[0];
  if (mode == AVERAGE) v = mended<dtype>(p, plane, oy, ox, v / fmaxf(divisor_of(p, w), 1));
  if (norms<mode>) v = norm_of<dtype, mode>(p, plane, oy, ox, v);
  edge_store<dtype>(p.y, to, v);
  if (mode == MAX_INDEX)
    element_store_wrapped(p.indices, to, p.index_dtype, p.index_dtype != QN_U8 && tap >= 0 ? place_in_plane(p, w, tap) : tap);
}

/* 2x2 or 3x3, known at compile time: a thread computes STRIP outputs of a column, each row once. end: the first row not staged. */
template <int dtype, int mode, int SIZE, int STEP>
__device__ __forceinline__ void small_windows(const planes &p, const stored<dtype> *s, uint32_t plane0, int n, int o0, int rows, int end)
{
  constexpr int lines = (STRIP - 1) * STEP + SIZE;
  int strips = (rows + STRIP - 1) / STRIP, units = n * strips * p.out[2];
  for (int unit = threadIdx.x; unit < units; unit += THREADS) {
    int q = cuda_quotient(unit, p.by_out[2]), ox = unit - q * p.out[2], k = cuda_quotient(q, p.by_strips),
        oy = o0 + (q - k * strips) * STRIP;
    int x0 = ox * STEP - p.before[2], y0 = oy * STEP - p.before[1];
    const stored<dtype> *line = s + (k * p.in[1] + y0) * p.in[2] + x0;
    bool here[SIZE];
#pragma unroll
    for (int c = 0; c < SIZE; c++) here[c] = (unsigned)(x0 + c) < (unsigned)p.in[2];
    joined<mode> f[STRIP];
#pragma unroll
    for (int r = 0; r < lines; r++) {
      joined<mode> g;
      if ((unsigned)(y0 + r) < (unsigned)end)
#pragma unroll
        for (int c = 0; c < SIZE; c++)
          if (here[c]) g.take(tap_of<dtype, mode>(p, line, r * p.in[2] + c), c);
#pragma unroll
      for (int i = 0; i < STRIP; i++)
        if (r >= i * STEP && r < i * STEP + SIZE) {
          if (mode != MAX_INDEX) f[i].take(g.v[0], 0);
          else if (g.tap[0] >= 0) f[i].take(g.v[0], (r - i * STEP) * SIZE + g.tap[0]);
        }
    }
    float v[STRIP];
    int across = mode == AVERAGE ? taps_beside(p, 2, x0, SIZE) : 0;
#pragma unroll
    for (int i = 0; i < STRIP; i++)
      v[i] = mode == AVERAGE ? f[i].v[0] * p.inverse[across * taps_beside(p, 1, y0 + i * STEP, SIZE)] : f[i].v[0];
    if (mode == AVERAGE)
      pool_mend<dtype>(v, min((int)STRIP, o0 + rows - oy), [&](int i) { return mended<dtype>(p, plane0 + k, oy + i, ox, INFINITY); });
#pragma unroll
    for (int i = 0; i < STRIP; i++) {
      if (oy + i >= o0 + rows) break;
      if (mode == MAX_INDEX || norms<mode>) put<dtype, mode>(p, plane0 + k, oy + i, ox, f[i]);
      else edge_store<dtype>(p.y, ((int64_t)(plane0 + k) * p.out[1] + oy + i) * p.out[2] + ox, v[i]);
    }
  }
}

/* Any window, separably: first each row of x to the columns of outputs (up to 32 lanes share a long row), then the rows of each output.
 * part: results of `lines` rows of x from row `first` of the plane on, for each output column; MAX_INDEX: tap numbers behind them. */
template <int dtype, int mode>
__device__ __forceinline__ void other_windows(const planes &p, const stored<dtype> *s, float *part, uint32_t plane0, int n, int o0,
                                              int rows, int first, int lines)
{
  const int lanes = 1 << p.lane_bits, lane = threadIdx.x & (lanes - 1), step = THREADS >> p.lane_bits, width = p.out[2],
            units = n * lines * width;
  int *taps = (int *)part + units;
  s += (int64_t)first * p.in[2];
  for (int begin = 0; begin < units; begin += step) {       /* uniform, so that all lanes take part in the shuffles */
    int unit = begin + (threadIdx.x >> p.lane_bits);
    bool here = unit < units;
    int line = cuda_quotient(unit, p.by_out[2]), ox = unit - line * width, x0 = window_begin(p, 2, ox), apart = p.dilation[2],
        next = lanes * apart;
    int before = max(-x0, 0), beyond = p.in[2] - x0;        /* taps before..beyond-1 are inside x */
    if (apart > 1) before = (before + apart - 1) / apart, beyond = (beyond + apart - 1) / apart;
    const int end = here ? min(window_size(p, 2, ox), beyond) : 0;
    int c = before + lane;
    const stored<dtype> *from = s + line * p.in[2] + x0 + c * apart;
    joined<mode> f;
#pragma unroll 1
    for (; c + (BATCH - 1) * lanes < end; c += BATCH * lanes, from += BATCH * next) {
      float v[BATCH];
#pragma unroll
      for (int b = 0; b < BATCH; b++) v[b] = tap_of<dtype, mode>(p, from, b * next);
#pragma unroll
      for (int b = 0; b < BATCH; b++) f.take(v[b], c + b * lanes);
    }
#pragma unroll 1
    for (; c < end; c += lanes, from += next) f.take(tap_of<dtype, mode>(p, from, 0), c);
    for (int o = lanes / 2; o; o /= 2) {
      const float v = __shfl_xor_sync(~0u, f.v[0], o);
      if (mode == MAX_INDEX) join_taps(f.v[0], f.tap[0], v, __shfl_xor_sync(~0u, f.tap[0], o));
      else f.take(v, 0);
    }
    if (!here || lane) continue;
    part[unit] = f.v[0];
    if (mode == MAX_INDEX) taps[unit] = f.tap[0];
  }
  __syncthreads();
  for (int unit = threadIdx.x; unit < n * rows * width; unit += THREADS) {
    int q = cuda_quotient(unit, p.by_out[2]), ox = unit - q * width, k = cuda_quotient(q, p.by_out[1]), oy = o0 + q - k * rows;
    int y0 = window_begin(p, 1, oy), down = window_size(p, 1, oy), across = window_size(p, 2, ox);
    joined<mode> f;
    for (int r = 0; r < down; r++) {
      int y = y0 + r * p.dilation[1], at = (k * lines + y - first) * width + ox;
      if ((unsigned)y >= (unsigned)p.in[1]) continue;
      if (mode != MAX_INDEX) f.take(part[at], 0);
      else if (taps[at] >= 0) f.take(part[at], r * across + taps[at]);
    }
    put<dtype, mode>(p, plane0 + k, oy, ox, f);
  }
}

/* The same at stride 1, SWEEP outputs a thread. */
template <int dtype, int mode>
__device__ __forceinline__ void wide_windows(const planes &p, const stored<dtype> *s, float *part, uint32_t plane0, int n, int o0, int rows,
                                             int first, int lines)
{
  const int width = p.out[2], across = p.by_across.by, down = p.by_down.by;
  const float none = mode == MAX ? -INFINITY : 0;
  const auto join = [](float a, float b) { return mode == MAX ? larger(a, b) : a + b; };
  s += (int64_t)first * p.in[2];
  for (int unit = threadIdx.x; unit < n * lines * across; unit += THREADS) {
    const int line = cuda_quotient(unit, p.by_across), ox = (unit - line * across) * SWEEP;
    const stored<dtype> *const from = s + line * p.in[2];
    float f[SWEEP][1];
    sweep(f, ox - p.before[2], p.size[2], p.in[2], none, [&](float (&v)[1], int x) { v[0] = tap_of<dtype, mode>(p, from, x); }, join);
#pragma unroll
    for (int k = 0; k < SWEEP; k++)
      if (ox + k < width) part[line * width + ox + k] = f[k][0];
  }
  __syncthreads();
  for (int unit = threadIdx.x; unit < n * down * width; unit += THREADS) {
    const int q = cuda_quotient(unit, p.by_out[2]), ox = unit - q * width, k = cuda_quotient(q, p.by_down), o = (q - k * down) * SWEEP;
    const float *const from = part + (k * lines - first) * width + ox;
    float f[SWEEP][1];
    sweep(f, o0 + o - p.before[1], p.size[1], first + lines, none, [&](float (&v)[1], int y) { v[0] = from[y * width]; }, join);
#pragma unroll
    for (int r = 0; r < SWEEP; r++) {
      if (o + r >= rows) break;
      joined<mode> g;
      g.v[0] = f[r][0];
      put<dtype, mode>(p, plane0 + k, o0 + o + r, ox, g);
    }
  }
}

/* One window that is all of a small plane; a thread reduces one. Planes of whole 16-byte words are left to others: here their lanes would
 * meet in few banks. */
template <int dtype, int mode>
__device__ __forceinline__ void whole_windows(const planes &p, const stored<dtype> *s, uint32_t plane0, int n)
{
  const int size = p.in[1] * p.in[2], k = threadIdx.x;
  if (k >= n) return;
  s += k * size;
  joined<mode> f[BATCH];
#pragma unroll 2
  for (int i = 0; i < size; i += BATCH)
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      if (i + b >= size) break;
      f[b].take(tap_of<dtype, mode>(p, s, i + b), 0);
    }
  f[0].take(f[1].v[0], 0), f[2].take(f[3].v[0], 0), f[0].take(f[2].v[0], 0);
  put<dtype, mode>(p, plane0 + k, 0, 0, f[0]);
}

template <int window> constexpr int threads_of = window == ALL ? WHOLE : THREADS;
/* WINDOW: 10 SIZE + STEP of small_windows; WIDE; ALL; 0: any */
template <int dtype, int mode, int WINDOW>
__global__ void __launch_bounds__(threads_of<WINDOW>) pool_planes(const __grid_constant__ planes p)
{
  constexpr int threads = threads_of<WINDOW>;
  extern __shared__ uint4 stage[];
  typedef stored<dtype> T;
  uint32_t group = p.bands == 1 ? blockIdx.x : cuda_quotient(blockIdx.x, p.by_bands), plane0 = group * p.per_block;
  int n = (int)min(p.per_block, p.count - plane0), o0 = 0, rows = p.out[1], first = 0, last = n * p.in[1];
  if (p.bands > 1) {                      /* then per_block is 1 */
    o0 = (int)(blockIdx.x - group * p.bands) * p.band;
    rows = min(p.band, p.out[1] - o0);
    first = min(max(window_begin(p, 1, o0), 0), p.in[1]);
    int begin = window_begin(p, 1, o0 + rows - 1), size = window_size(p, 1, o0 + rows - 1);
    last = max(first, min(begin + (size - 1) * p.dilation[1] + 1, p.in[1]));
  }
  const int64_t plane = (int64_t)plane0 * p.in[1] * p.in[2], from = plane + (int64_t)first * p.in[2];
  const int in_x = stage_in<sizeof(T), threads>((char *)stage, p.x, from, plane + (int64_t)last * p.in[2], p.total);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  const T *s = (const T *)stage + in_x - (int64_t)first * p.in[2];
  const int lines = p.bands > 1 ? last - first : p.in[1];
  if constexpr (WINDOW == ALL) whole_windows<dtype, mode>(p, s, plane0, n);
  else if constexpr (WINDOW == WIDE) wide_windows<dtype, mode>(p, s, (float *)((char *)stage + p.part), plane0, n, o0, rows, first, lines);
  else if constexpr (WINDOW != 0) small_windows<dtype, mode, WINDOW / 10, WINDOW % 10>(p, s, plane0, n, o0, rows, first + lines);
  else other_windows<dtype, mode>(p, s, (float *)((char *)stage + p.part), plane0, n, o0, rows, first, lines);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* 10 SIZE + STEP if small_windows takes it, else 0. */
static int small_window(const pool &p)
{
  const int small = p.adaptive ? 0 : square_step(&p);
  return small == 32 || small == 31 || small == 22 || small == 21 ? small : 0;
}
/* Does whole_windows take it? */
static bool whole_window(const pool &p)
{
  bool all = true;
  for (int d = 1; d < 3; d++)
    all &= p.size[d] == p.in[d] && p.out[d] == 1 && !p.before[d] && (p.in[d] == 1 || p.dilation[d] == 1) && !(p.include_pad && p.after[d]);
  const int64_t bytes = (int64_t)p.in[1] * p.in[2] * qn_kit_bytes(p.dtype);
  return all && bytes <= WHOLE_MOST && bytes % 16;
}
template <int dtype> static pool_kernel kernel_of(int mode, int window)
{
  return cuda_pick<MAX, MAX_INDEX, AVERAGE, SQUARES, POWERS>(mode, [&](auto m) {
    constexpr int MODE = m(), most = MODE == MAX_INDEX ? 0 : WIDE, all = MODE == MAX_INDEX ? 0 : ALL;
    return cuda_pick<32, 31, 22, 21, 0, most, all>(window, [](auto w) { return (pool_kernel)pool_planes<dtype, MODE, w()>; });
  });
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<planes> s = {};
  planes &p = s.p;
  qn_status status = pool_read(&s, r, out);
  const bool lp = r->op[0].op == QN_OP_POOL_LP, index = s.of.indices >= 0;
  if (!status) status = pool_wants_flat(&p, r, s.of, 1, index && p.index_dtype != QN_U8, out);
  if (status) return status;
  for (int d = 1; d < 3; d++)
    if (p.in[d] + p.before[d] + p.after[d] > 1 << 14 || p.size[d] * p.dilation[d] > 1 << 14 || p.step[d] > 1 << 14)
      return qn_refuse(out, "extents below 2^14", "x", "", "%d", p.in[d]);
  p.total = qn_elements(&r->value[s.of.x]);
  const int64_t count = p.count;

  /* Choose planes a block, or output rows a band. result: bytes of row results for a row of x. */
  const bool whole = !index && whole_window(p);
  int64_t esize = qn_kit_bytes(p.dtype), line = p.in[2] * esize, result = whole || small_window(p) ? 0 : p.out[2] * (index ? 8 : 4);
  int64_t reach = (int64_t)(p.size[1] + p.adaptive - 1) * p.dilation[1] + 1;
  int64_t units = 2 * r->device->units, most = qn_min_i64(STAGE_MOST, cuda_room(r)) - 48, lines = p.in[1];
  p.per_block = (uint32_t)qn_max_i64(1, qn_min_i64((result ? STAGE : STAGE / 2) / (lines * (line + result)), qn_ceil_div(count, units)));
  bool wide = sweep_takes(p) && !index && !whole;
  if (wide) p.per_block = (uint32_t)qn_max_i64(1, qn_min_i64(p.per_block, count / (5 * r->device->units)));
  if (whole) p.per_block = lines * line * WHOLE <= 40 << 10 ? WHOLE : WHOLE / 2;
  p.bands = 1, p.band = p.out[1];
  /* Several bands a plane where planes are few, for two blocks an SM; sums by sweeps begin at a band's first row, so they keep planes. */
  const int64_t few = whole || (wide && (p.average || lp)) ? 1 : qn_min_i64(qn_ceil_div(units, count), qn_ceil_div(p.out[1], STRIP));
  if (lines * (line + result) > STAGE || few > 1) {
    const int64_t share = qn_round_up(qn_ceil_div(p.out[1], few), (int64_t)STRIP);
    int64_t band = qn_min_i64((STAGE / (line + result) - reach) / p.step[1] + 1, share);
    if (band < STRIP) {  /* take what fits on this device; the band then depends on the device, so sums must not depend on it */
      wide = wide && !p.average && !lp;
      band = qn_min_i64(STRIP, (most / (line + result) - reach) / p.step[1] + 1);
    }
    p.band = (int32_t)qn_max_i64(1, qn_min_i64(band, p.out[1]));
    p.bands = (int32_t)qn_ceil_div(p.out[1], p.band);
    if (p.bands > 1) lines = qn_min_i64(lines, (int64_t)(p.band - 1) * p.step[1] + reach);      /* an adaptive step is at most step[1] */
    if (lines * (line + result) > most)
      return qn_refuse(out, "a window's lines in shared memory", "x", "96 KB", "%lld", (long long)(lines * (line + result)));
  }
  p.part = (int32_t)qn_round_up(p.per_block * lines * line + 32, 16);       /* 32: x may begin and end amid a vector */
  int64_t shared = p.part + p.per_block * lines * result;
  while (p.lane_bits < 5 && 16 << p.lane_bits <= p.size[2]) p.lane_bits++;
  p.by_bands = cuda_divide_by(p.bands), p.by_strips = cuda_divide_by(qn_ceil_div(p.band, STRIP));
  p.by_across = cuda_divide_by(qn_ceil_div(p.out[2], (int64_t)SWEEP)), p.by_down = cuda_divide_by(qn_ceil_div(p.band, (int64_t)SWEEP));
  const double blocks = (double)qn_ceil_div(count, p.per_block) * p.bands;
  s.shared = (uint32_t)shared;
  const int mode = lp ? p.p == 2 ? SQUARES : POWERS : p.average ? AVERAGE : index ? MAX_INDEX : MAX,
            window = whole ? ALL : wide ? WIDE : small_window(p);
  s.kernel = cuda_by_dtype(p.dtype, [&](auto dtype) { return kernel_of<dtype()>(mode, window); });
  const int threads = whole ? WHOLE : THREADS;
  return pool_keep(&s, threads * blocks, threads, whole ? 3000 : 1500, out);
}

static const qn_engine row[] = { POOL_ROWS(planes, "planes", prepare), pool_row<planes>("planes", QN_OP_POOL_LP, prepare) };
CUDA_ENGINES(pool_planes) = { row, sizeof row / sizeof *row };
