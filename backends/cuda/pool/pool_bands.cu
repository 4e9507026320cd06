/* pool_bands.cu -- gradients of average pooling, adaptive too, and of max pooling by small square windows, on packed NCHW planes, f16, bf16
 * and f32.
 *
 *   max       dx[x] = the sum of dy over the windows whose maximum came from x, by indices or recomputed from x
 *   average   dx[x] = the sum of dy / divisor over the windows that cover x
 *
 * A block stages dy (and indices or x) of some whole planes, or of a band of rows of one plane, in shared memory, computes dx there and
 * writes it in 16-byte words: small squares of windows in cells, where of maxima each window's tap was found once before, and of means what
 * a row of windows adds to a column is summed once; means of any others separably, along the rows of windows and then down.
 * Refused: dilation, windows over several planes, rows too wide for shared memory; maxima of windows other than 3x3 with stride 1 or 2 and
 * 2x2 with stride 2. */
#include <cuda_pipeline_primitives.h>
#include "pool_gradient.cuh"

struct bands : gradient {
  int64_t  windows, places;               /* elements of dy, of dx */
  uint32_t count, per_block;              /* planes: in all, of a block */
  int32_t  bands, band;                   /* bands of a plane, one block each; rows of a band, a multiple of BAND_ROWS */
  int32_t  margin;                        /* padding before and behind the staged windows, so that cells at an edge may read out of range */
  int32_t  pairs;                         /* two columns of dx share an aligned word */
  int32_t  at_part, at_x, at_dx;          /* byte offsets of these parts of shared memory; part: maxima's taps, or other windows' sums */
  int32_t  source;                        /* where maxima come from: BY_TAP, BY_PLACE, BY_X */
  cuda_divisor by_bands, by_down, by_across, by_width, by_rows, by_depth, by_strips;
  float    weight[16];                    /* [m] is SIZE / taps for a window with m taps missing along a dim (exact in f32); 0: no tap */
};

/* BAND_STRIP: windows of a column a thread handles at stride 1 */
enum { BAND_THREADS = 128, BAND_ROWS = 8, BAND_STRIP = 4, BAND_MEMORY = 32 << 10, BAND_MEMORY_MOST = 48 << 10 };
enum { MAXIMA, MEANS, EVEN_MEANS };       /* EVEN_MEANS: stride 1 and the same divisor for all windows */

/* The windows that cover a cell of BAND_ROWS rows by COLUMNS, for windows of SIZE with stride STEP and padding BEFORE. Cells begin at
 * multiples of STEP, so which windows cover which places is known at compile time. Window 0 has output coordinate place / STEP + first. */
template <int SIZE, int STEP, int BEFORE, int COLUMNS_> struct cover {
  static constexpr int COLUMNS = COLUMNS_, first = (BEFORE - SIZE + 1) / STEP;
  static constexpr int DOWN = (BAND_ROWS - 1 + BEFORE) / STEP - first + 1, ACROSS = (COLUMNS - 1 + BEFORE) / STEP - first + 1;
  /* First place of a window relative to the cell; the tap of the window that a place is. */
  static __host__ __device__ constexpr int begin(int window) { return (first + window) * STEP - BEFORE; }
  static __host__ __device__ constexpr int tap(int window, int place) { return place - begin(window); }
  static __host__ __device__ constexpr bool covers(int window, int place) { return tap(window, place) >= 0 && tap(window, place) < SIZE; }
};

/* Copies elements from..end (of `total`) to shared memory in aligned 16-byte words; returns the position there of element `from`. */
template <int bytes> __device__ __forceinline__ int band_load(char *to, const void *base, int64_t from, int64_t end, int64_t total)
{
  constexpr int E = 16 / bytes;
  const int64_t begin = from / E * E;
  const char *x = (const char *)base + begin * bytes;
  const int words = (int)((end - begin + E - 1) / E), whole = (int)min((int64_t)words, (total - begin) / E);
  for (int i = threadIdx.x; i < whole; i += BAND_THREADS) __pipeline_memcpy_async(to + i * 16, x + i * 16, 16);
  /* the tail of the tensor that is no whole word */
  for (int i = whole * 16 + threadIdx.x; whole < words && i < (int)(total - begin) * bytes; i += BAND_THREADS) to[i] = x[i];
  return (int)(from - begin);
}

/* Window i of a block: which of its n planes, and the first row and column of its extent in x. */
struct band_window { int plane, y, x; };
template <int STEP, int BEFORE> __device__ __forceinline__ band_window band_window_of(const bands &p, int i, int n, int o0)
{
  const int line = cuda_quotient(i, p.by_out[2]), k = n > 1 ? cuda_quotient(line, p.by_out[1]) : 0;
  return { k, (n > 1 ? line - k * p.out[1] : o0 + line) * STEP - BEFORE, (i - line * p.out[2]) * STEP - BEFORE };
}

/* The tap number of the maximum of the window at (y, x), whose first tap is element `at` of s. */
template <int dtype, int SIZE> __device__ __forceinline__ uint32_t band_maximum(const gradient &p, const char *s, int at, int y, int x)
{
  float best = -INFINITY;
  int   tap = max(-y, 0) * SIZE + max(-x, 0);               /* start from the first tap inside x; -Inf never replaces it */
#pragma unroll
  for (int r = 0; r < SIZE; r++)
#pragma unroll
    for (int c = 0; c < SIZE; c++) {
      if ((unsigned)(y + r) >= (unsigned)p.in[1] || (unsigned)(x + c) >= (unsigned)p.in[2]) continue;
      float v = opened<dtype>(element<dtype>(s, at + r * p.in[2] + c));
      if (!(v <= best) && best == best) best = v, tap = r * SIZE + c;
    }
  return tap;
}

/* The same for up to BAND_STRIP windows of a column at stride 1, the first at (y, x): the maximum of a row is found once for all
 * windows that share it. `apart`: distance of their taps in memory. */
template <int dtype, int SIZE>
__device__ __forceinline__ void band_maxima(const gradient &p, char *tap, int apart, int many, const char *s, int at, int y, int x)
{
  float best[BAND_STRIP];
  int   chosen[BAND_STRIP];
#pragma unroll
  for (int n = 0; n < BAND_STRIP; n++) best[n] = -INFINITY, chosen[n] = max(-(y + n), 0) * SIZE + max(-x, 0);
#pragma unroll
  for (int l = 0; l < BAND_STRIP - 1 + SIZE; l++) {
    if (l >= many - 1 + SIZE) break;
    if ((unsigned)(y + l) >= (unsigned)p.in[1]) continue;
    float most = -INFINITY;
    int   column = max(-x, 0);
#pragma unroll
    for (int c = 0; c < SIZE; c++) {
      if ((unsigned)(x + c) >= (unsigned)p.in[2]) continue;
      float v = opened<dtype>(element<dtype>(s, at + l * p.in[2] + c));
      if (!(v <= most) && most == most) most = v, column = c;
    }
#pragma unroll
    for (int n = 0; n < BAND_STRIP; n++)
      if (l >= n && l < n + SIZE && !(most <= best[n]) && best[n] == best[n]) best[n] = most, chosen[n] = (l - n) * SIZE + column;
  }
#pragma unroll
  for (int n = 0; n < BAND_STRIP; n++)
    if (n < many) tap[n * apart] = (char)chosen[n];
}

/* Finds the tap of each of the block's windows: reads their places (before the staged copies have arrived), or searches the staged x. */
template <int SIZE, int STEP, int BEFORE>
__device__ __forceinline__ void taps_of_places(const bands &p, char *tap, uint32_t plane, int64_t from, int n, int o0, int lines)
{
  enum { AT_ONCE = 4 };
  const int wide = p.out[2];
  for (int i0 = threadIdx.x; i0 < lines * wide; i0 += AT_ONCE * BAND_THREADS) {
    int place[AT_ONCE];
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) {
      const int i = min(i0 + b * BAND_THREADS, lines * wide - 1);
      place[b] = p.index_dtype == QN_I32 ? ((const int32_t *)p.indices)[from + i] : place_among(((const int64_t *)p.indices)[from + i]);
    }
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) {
      const int i = i0 + b * BAND_THREADS;
      if (i >= lines * wide) break;
      const band_window w = band_window_of<STEP, BEFORE>(p, i, n, o0);
      uint32_t z;
      cuda_quotient(plane + w.plane, p.by_depth, &z);
      tap[i] = (char)tap_of<SIZE>(place[b], ((int)z * p.in[1] + w.y) * p.in[2] + w.x, p.in[2]);
    }
  }
}
template <int dtype, int SIZE, int STEP, int BEFORE>
__device__ __forceinline__ void taps_of_x(const bands &p, char *tap, const char *staged, int in_x, int n, int o0, int lines, int y_begin)
{
  const int wide = p.out[2], high = p.out[1];
  if (STEP == 1) {
    const int column = n > 1 ? high : lines, strips = (column + BAND_STRIP - 1) / BAND_STRIP;
    for (int i = threadIdx.x; i < n * strips * wide; i += BAND_THREADS) {
      const int q = cuda_quotient(i, p.by_out[2]), k = n > 1 ? cuda_quotient(q, p.by_strips) : 0, o = (q - k * strips) * BAND_STRIP,
                ox = i - q * wide;
      const int y = o0 + o - BEFORE, x = ox - BEFORE;
      band_maxima<dtype, SIZE>(p, tap + (k * high + o) * wide + ox, wide, column - o, staged,
                               in_x + (k * p.in[1] + y - y_begin) * p.in[2] + x, y, x);
    }
  } else {
    for (int i = threadIdx.x; i < lines * wide; i += BAND_THREADS) {
      const band_window w = band_window_of<STEP, BEFORE>(p, i, n, o0);
      tap[i] = (char)band_maximum<dtype, SIZE>(p, staged, in_x + (w.plane * p.in[1] + w.y - y_begin) * p.in[2] + w.x, w.y, w.x);
    }
  }
}

/* Columns of a cell. For f32 at stride 1 an odd number avoids bank conflicts; two f16 or bf16 share a word. */
__host__ __device__ constexpr int band_columns(bool f32, int step) { return f32 && step == 1 ? 3 : 2; }

/* if (a == b) sum += v, as a predicated add; compilers emit add and select. */
__device__ __forceinline__ void add_where(float &sum, uint32_t a, uint32_t b, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; setp.eq.u32 p, %1, %2; @p add.f32 %0, %0, %3; }" : "+f"(sum) : "r"(a), "r"(b), "f"(v));
#else
  if (a == b) sum += v;
#endif
}

/* What a block's rows of windows from o0 on add to its n planes' rows from `top` on. */
template <int dtype, int mode, int SIZE, int STEP, int BEFORE>
__device__ __forceinline__ void cells(const bands &p, const char *dy, const char *tap, char *dx, int in_dy, int in_tap, int in_dx, int n,
                                      int top, int rows, int o0)
{
  constexpr bool even = mode == EVEN_MEANS;
  typedef cover<SIZE, STEP, BEFORE, band_columns(dtype == QN_F32, STEP)> over;
  constexpr int DOWN = over::DOWN, ACROSS = over::ACROSS, COLUMNS = over::COLUMNS;
  const int wide = p.out[2], high = p.out[1], down = (rows + BAND_ROWS - 1) / BAND_ROWS, across = p.by_across.by;
  const int first_tap = p.include_pad ? INT32_MIN / 2 : 0;
  const auto fewer = [&](int d, int start) {
    return max(first_tap - start, 0) + max(start + SIZE - (p.include_pad ? p.in[d] + p.after[d] : p.in[d]), 0);
  };
  for (int i = threadIdx.x; i < n * down * across; i += BAND_THREADS) {
    const int q = cuda_quotient(i, p.by_across), k = n > 1 ? cuda_quotient(q, p.by_down) : 0, column = i - q * across,
              y0 = (q - k * down) * BAND_ROWS, x0 = column * COLUMNS;
    const int oy = (top + y0) / STEP + over::first, ox = column * (COLUMNS / STEP) + over::first, at = (k * high + oy - o0) * wide + ox;
    float sum[BAND_ROWS][COLUMNS] = {};
    uint32_t outside[ACROSS];             /* ~0: no such window */
    float    weight[ACROSS];
#pragma unroll
    for (int b = 0; b < ACROSS; b++) {
      outside[b] = (unsigned)(ox + b) < (unsigned)wide ? 0 : ~0u;
      weight[b] = p.share * (!even && !p.even ? p.weight[fewer(2, x0 + over::begin(b))] : 1);
    }
#pragma unroll
    for (int j = 0; j < DOWN; j++) {
      const uint32_t beyond = (unsigned)(oy + j) < (unsigned)high ? 0 : ~0u;
      float line[COLUMNS] = {};
#pragma unroll
      for (int w = 0; w < ACROSS; w++) {
        const uint32_t none = outside[w] | beyond, bits = element<dtype>(dy, in_dy + at + j * wide + w);
        if constexpr (mode == MAXIMA) {
          const float v = opened<dtype>(bits);
          const uint32_t chosen = (uint8_t)tap[in_tap + at + j * wide + w] | none;
#pragma unroll
          for (int b = 0; b < COLUMNS; b++)
#pragma unroll
            for (int a = 0; a < BAND_ROWS; a++)
              if (over::covers(w, b) && over::covers(j, a)) add_where(sum[a][b], chosen, over::tap(j, a) * SIZE + over::tap(w, b), v);
        } else {
          const float v = opened<dtype>(bits & ~none);
#pragma unroll
          for (int b = 0; b < COLUMNS; b++)
            if (over::covers(w, b)) line[b] = fmaf(v, even ? p.share : weight[w], line[b]);   /* a sum before may overflow */
        }
      }
      if (mode == MAXIMA) continue;
      float weight = 1;
      if (!even && !p.even) weight = p.weight[fewer(1, top + y0 + over::begin(j))];
#pragma unroll
      for (int a = 0; a < BAND_ROWS; a++)
        if (over::covers(j, a))
#pragma unroll
          for (int b = 0; b < COLUMNS; b++) sum[a][b] = even ? sum[a][b] + line[b] : fmaf(line[b], weight, sum[a][b]);
    }
    const int place = in_dx + (k * p.in[1] + y0) * p.in[2] + x0;
#pragma unroll
    for (int a = 0; a < BAND_ROWS; a++) {
      if (y0 + a >= rows) break;
      if (COLUMNS == 2 && p.pairs) {
        pair_store<dtype>(dx, place + a * p.in[2], sum[a][0], sum[a][1]);
      } else {
#pragma unroll
        for (int b = 0; b < COLUMNS; b++)
          if (b == 0 || x0 + b < p.in[2]) edge_store<dtype>(dx, place + a * p.in[2] + b, sum[a][b]);
      }
    }
  }
}

/* The same of any windows; part: what each row of windows adds to each column, and behind that the windows' shares along both dims. */
template <int dtype>
__device__ __forceinline__ void separably(const bands &p, const char *dy, char *dx, float *part, int in_dy, int in_dx, int n, int top,
                                          int rows, int o0, int lines)
{
  const int wide = p.out[2], high = p.out[1], width = p.in[2];
  float *const across = part + lines * width, *const down = across + wide;
  const auto share = [&](int d, int o) { return 1 / fmaxf((float)taps_beside(p, d, window_begin(p, d, o), window_size(p, d, o)), 1); };
  for (int i = threadIdx.x; i < wide; i += BAND_THREADS) across[i] = share(2, i);
  for (int i = threadIdx.x; i < lines; i += BAND_THREADS) down[i] = share(1, n > 1 ? i % high : o0 + i);
  __syncthreads();
  for (int i = threadIdx.x; i < lines * width; i += BAND_THREADS) {
    uint32_t x;
    const int line = (int)cuda_quotient(i, p.by_width, &x);
    const range over = windows_over(p, 2, (int)x, (int)x + 1);
    float sum = 0;
    for (int o = over.begin; o < over.end; o++)
      sum = fmaf(opened<dtype>(element<dtype>(dy, in_dy + line * wide + o)), across[o] * down[line], sum);
    part[i] = sum;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n * rows * width; i += BAND_THREADS) {
    uint32_t x, y;
    const int row = (int)cuda_quotient(i, p.by_width, &x), k = n > 1 ? (int)cuda_quotient(row, p.by_rows, &y) : 0;
    const int at = n > 1 ? (int)y : top + row;
    const range over = windows_over(p, 1, at, at + 1);
    float sum = 0;
    for (int o = over.begin; o < over.end; o++) sum += part[(k * high + o - o0) * width + (int)x];
    edge_store<dtype>(dx, in_dx + i, sum);
  }
}

/* SIZE 0: means of any windows */
template <int dtype, int mode, int SIZE, int STEP, int BEFORE>
__global__ void __launch_bounds__(BAND_THREADS) pool_bands(const __grid_constant__ bands p)
{
  constexpr int bytes = dtype == QN_F32 ? 4 : 2, E = 16 / bytes;
  extern __shared__ uint4 stage[];
  char *const memory = (char *)stage, *const dy = memory + p.margin * bytes, *const tap = memory + p.at_part + p.margin,
       *const dx = memory + p.at_dx;
  const uint32_t group = p.bands == 1 ? blockIdx.x : cuda_quotient(blockIdx.x, p.by_bands), plane = group * p.per_block;
  const int n = (int)min(p.per_block, p.count - plane), top = (int)(blockIdx.x - group * p.bands) * p.band,
            rows = min(p.band, p.in[1] - top), high = p.out[1];
  typedef cover<SIZE, STEP, BEFORE, 1> over;
  const range reach = SIZE == 0 ? windows_over(p, 1, top, top + rows)       /* rows of windows that reach into these */
                                : range{ max(top / STEP + over::first, 0), min((top + rows - 1 + BEFORE) / STEP + 1, high) };
  const int o0 = p.bands == 1 ? 0 : reach.begin, o1 = p.bands == 1 ? high : reach.end, lines = n > 1 ? n * high : max(o1 - o0, 0);
  const int64_t from = ((int64_t)plane * high + o0) * p.out[2], end = from + (int64_t)lines * p.out[2],
                to = ((int64_t)plane * p.in[1] + top) * p.in[2];
  const int in_dy = band_load<bytes>(dy, p.dy, from, end, p.windows), in_dx = (int)(to % E);
  int in_tap = 0, in_x = 0;
  const int y_begin = p.bands == 1 ? 0 : max(o0 * STEP - BEFORE, 0),
            y_end = p.bands == 1 ? p.in[1] : min((o1 - 1) * STEP - BEFORE + SIZE, p.in[1]);
  if (mode == MAXIMA && p.source == BY_TAP) in_tap = band_load<1>(tap, p.indices, from, end, p.windows);
  if (mode == MAXIMA && p.source == BY_X) {
    const int64_t x = ((int64_t)plane * p.in[1] + y_begin) * p.in[2];
    in_x = band_load<bytes>(memory + p.at_x, p.x, x, x + (int64_t)(n > 1 ? n * p.in[1] : max(y_end - y_begin, 0)) * p.in[2], p.places);
  }
  __pipeline_commit();
  if constexpr (mode == MAXIMA)
    if (p.source == BY_PLACE) taps_of_places<SIZE, STEP, BEFORE>(p, tap, plane, from, n, o0, lines);
  __pipeline_wait_prior(0);
  __syncthreads();
  if constexpr (mode == MAXIMA)
    if (p.source == BY_X) {
      taps_of_x<dtype, SIZE, STEP, BEFORE>(p, tap, memory + p.at_x, in_x, n, o0, lines, y_begin);
      __syncthreads();
    }
  if constexpr (SIZE != 0) cells<dtype, mode, SIZE, STEP, BEFORE>(p, dy, tap, dx, in_dy, in_tap, in_dx, n, top, rows, o0);
  else separably<dtype>(p, dy, dx, (float *)(memory + p.at_part), in_dy, in_dx, n, top, rows, o0, lines);
  __syncthreads();

  /* write dx */
  const int elements = (n > 1 ? n * p.in[1] : rows) * p.in[2], ends = in_dx + elements;
  char *const out = (char *)p.dx + (to - in_dx) * bytes;
  for (int i = threadIdx.x; i * E < ends; i += BAND_THREADS) {
    if (i * E >= in_dx && (i + 1) * E <= ends) {
      *(uint4 *)(out + i * 16) = *(const uint4 *)(dx + i * 16);
      continue;
    }
    for (int e = max(i * E, in_dx); e < min((i + 1) * E, ends); e++) element_put<dtype>(out, e, element<dtype>(dx, e));
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* Bytes of shared memory for n planes, or (n is 1) that many rows; sets the offsets of its parts. */
static inline int64_t band_memory(bands *p, int64_t n, int64_t rows, bool any)
{
  const bool whole = rows >= p->in[1];
  const int64_t bytes = qn_kit_bytes(p->dtype), reach = p->adaptive ? rows * p->out[1] / p->in[1] + 3
                                                : any       ? (rows + p->size[1] - 2) / p->step[1] + 1
                                                            : rows / p->step[1] + 2,
                lines = whole ? n * p->out[1] : reach, x_rows = whole ? n * p->in[1] : rows + 2 * p->size[1] + p->step[1];
  const int64_t windows = (lines + 1) * p->out[2] + 2 * (int64_t)p->margin + 32;
  p->at_part = (int32_t)qn_round_up(windows * bytes, 16);
  p->at_x = p->at_part + (int32_t)(any         ? qn_round_up((lines * (p->in[2] + 1) + p->out[2]) * 4, 16)
                                   : p->average ? 0
                                                : qn_round_up(windows, 16));
  p->at_dx = p->at_x + (int32_t)(p->source == BY_X ? qn_round_up((x_rows * p->in[2] + 16) * bytes, 16) : 0);
  return p->at_dx + qn_round_up(((whole ? n * p->in[1] : rows) * p->in[2] + 8) * bytes, 16);
}

/* Chooses planes a block, or rows of one plane, so that few threads idle in the cells; returns bytes of shared memory, 0: rows too wide. */
static inline int64_t band_choose(bands *p, bool any, int64_t units)
{
  int64_t across = qn_ceil_div(p->in[2], band_columns(p->dtype == QN_F32, p->step[1])), down = qn_ceil_div(p->in[1], BAND_ROWS),
          many = qn_max_i64(1, p->count / (4 * units)), best = 0;
  double most = 0;
  p->margin = any ? 0 : (int32_t)qn_round_up((BAND_ROWS / p->step[1] + 2) * (int64_t)p->out[2] + 2, 16);
  for (int64_t n = 1; n <= qn_min_i64(many, 256); n++) {
    if (band_memory(p, n, p->in[1], any) > BAND_MEMORY) break;
    int64_t cells = n * down * across;
    double busy = (double)cells / (double)qn_round_up(cells, BAND_THREADS);
    if (busy > most + 0.02) most = busy, best = n;
  }
  p->per_block = best ? (uint32_t)best : 1;
  p->band = best ? (int32_t)qn_round_up(p->in[1], BAND_ROWS) : 0;
  for (int64_t d = 1; !best && d < down; d++) {
    if (d > 1 && band_memory(p, 1, d * BAND_ROWS, any) > BAND_MEMORY) break;
    int64_t cells = d * across, lines = qn_max_i64(d * BAND_ROWS / p->step[1], 1);
    double busy = (double)cells / (double)qn_round_up(cells, BAND_THREADS) * (double)lines / (double)(lines + 1);
    if (busy > most + 0.02) most = busy, p->band = (int32_t)(d * BAND_ROWS);
  }
  if (!p->band) return 0;
  p->bands = (int32_t)qn_ceil_div(p->in[1], p->band);
  p->by_bands = cuda_divide_by(p->bands), p->by_across = cuda_divide_by(across), p->by_down = cuda_divide_by(down);
  p->by_width = cuda_divide_by(p->in[2]), p->by_rows = cuda_divide_by(p->in[1]);
  p->by_strips = cuda_divide_by(qn_ceil_div(p->out[1], (int64_t)BAND_STRIP));
  int64_t memory = band_memory(p, p->per_block, p->band, any);
  return memory <= BAND_MEMORY_MOST ? memory : 0;
}

template <int dtype, int mode> static pool_kernel bands_of(int window)
{
  return window == 321   ? (pool_kernel)pool_bands<dtype, mode, 3, 2, 1>
         : window == 320 ? (pool_kernel)pool_bands<dtype, mode, 3, 2, 0>
         : window == 311 ? (pool_kernel)pool_bands<dtype, mode, 3, 1, 1>
         : window == 220 ? (pool_kernel)pool_bands<dtype, mode, 2, 2, 0>
                         : nullptr;
}
template <int dtype> static pool_kernel bands_of(const gradient *p, int window)
{
  return !p->average              ? bands_of<dtype, MAXIMA>(window)
       : !window                  ? (pool_kernel)pool_bands<dtype, MEANS, 0, 1, 0>
       : p->even && window == 311 ? (pool_kernel)pool_bands<dtype, EVEN_MEANS, 3, 1, 1>
                                  : bands_of<dtype, MEANS>(window);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<bands> s = {};
  bands *p = &s.p;
  qn_status status = gradient_read(&s, r, out);
  if (!status) status = pool_wants_planes(r, s.of, 5, out);
  if (status) return status;
  p->by_depth = cuda_divide_by(p->in[0]);
  p->source = s.of.x >= 0 ? BY_X : s.of.indices < 0 ? AVERAGE : p->index_dtype == QN_U8 ? BY_TAP : BY_PLACE;
  if (!pool_fold(p, false)) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  for (int d = 1; d < 3; d++)
    if (p->size[d] > 1 && p->dilation[d] != 1) return qn_refuse(out, "dilation 1", "dx", "1", "%d", p->dilation[d]);
  const int square = p->adaptive || p->in[2] < p->size[2] ? 0 : square_of(p),
            window = square == 321 || square == 320 || square == 311 || square == 220 ? square : 0;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) { return bands_of<dtype()>(p, window); });
  if (!s.kernel)
    return qn_refuse(out, "of maxima, small squares of windows", "dx", "3x3 with stride 1 or 2, or 2x2 with stride 2", "%dx%d",
                     p->size[1], p->size[2]);
  p->windows = qn_elements(&r->value[s.of.dy]), p->places = qn_elements(&r->value[s.of.dx]);
  p->count = (uint32_t)(p->places / ((int64_t)p->in[1] * p->in[2]));
  p->pairs = p->in[2] % 2 == 0;
  for (int m = 0; window && m < p->size[1]; m++) p->weight[m] = (float)p->size[1] / (float)(p->size[1] - m);
  const int64_t shared = band_choose(p, !window, r->device->units);
  if (!shared) return qn_refuse(out, "some rows in 48 KB", "dx", "narrower", "%d wide", p->in[2]);
  const double blocks = (double)qn_ceil_div(p->count, p->per_block) * p->bands;
  if (p->places > INT32_MAX || blocks > INT32_MAX) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");
  s.shared = (uint32_t)shared;
  return pool_keep(&s, BAND_THREADS * (int64_t)blocks, BAND_THREADS, !p->average ? 2000 : window ? 1500 : 700, out);
}

static const qn_engine row[] = { pool_row<bands>("bands", QN_OP_POOL_MAX_BACKWARD, prepare),
                                 pool_row<bands>("bands", QN_OP_POOL_AVERAGE_BACKWARD, prepare),
                                 pool_row<bands>("bands", QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD, prepare) };
CUDA_ENGINES(pool_bands) = { row, sizeof row / sizeof *row };
