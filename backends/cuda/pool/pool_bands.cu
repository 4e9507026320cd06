/* pool_bands.cu -- gradients of average pooling, adaptive too, and of max pooling by indices, on packed NCHW planes, f16, bf16 and f32.
 *
 * A block stages dy and the maxima's taps of some whole planes, or of a band of rows of one plane, in shared memory, gathers dx there from
 * the windows over each place, and writes it in 16-byte words. Small squares of windows are gathered by cells of places, whose windows are
 * known at compile time; others place by place, means separably. Adaptive windows of one size are windows like others.
 * Maxima of wide rows and large windows are instead scattered by a warp (engine `scatter`) into a tile of dx.
 * Refused: dilation, windows over several planes, rows too wide for shared memory; maxima of unequal windows, or of more than 255 taps
 * (scatter: of more than 32 by 32, or with gaps between them). */
#include "pool_gradient.cuh"

struct bands : gradient {
  int64_t  windows;                       /* elements of dy */
  uint32_t per_block;                     /* planes of a block */
  int32_t  bands, band;                   /* bands of a plane, one block each; rows of a band, a multiple of BAND_ROWS */
  int32_t  margin;                        /* padding before and behind the staged windows, so that cells at an edge may read out of range */
  int32_t  lead[3];                       /* cells: windows by which padding shifts those over a place, beyond BEFORE */
  int32_t  pairs;                         /* two columns of dx share an aligned word */
  int32_t  at_part, at_dx;                /* byte offsets of these parts of shared memory; part: maxima's taps, or other windows' sums */
  cuda_divisor by_bands, by_down, by_across;
  float    weight[16];                    /* [m] is SIZE / taps for a window with m taps missing along a dim (exact in f32); 0: no tap */
};

enum { BAND_THREADS = 128, BAND_ROWS = 8, BAND_MEMORY = 32 << 10, BAND_MEMORY_MOST = 48 << 10 };

/* The windows that cover a cell of BAND_ROWS rows by COLUMNS, for windows of SIZE with stride STEP and padding BEFORE modulo STEP. Cells
 * begin at multiples of STEP, so which windows cover which places is known at compile time. Window 0 has output coordinate place / STEP +
 * first + p.lead. */
template <int SIZE, int STEP, int BEFORE, int COLUMNS_> struct cover {
  static constexpr int COLUMNS = COLUMNS_, first = (BEFORE - SIZE + 1) / STEP;
  static constexpr int DOWN = (BAND_ROWS - 1 + BEFORE) / STEP - first + 1, ACROSS = (COLUMNS - 1 + BEFORE) / STEP - first + 1;
  /* First place of a window relative to the cell; the tap of the window that a place is. */
  static __host__ __device__ constexpr int begin(int window) { return (first + window) * STEP - BEFORE; }
  static __host__ __device__ constexpr int tap(int window, int place) { return place - begin(window); }
  static __host__ __device__ constexpr bool covers(int window, int place) { return tap(window, place) >= 0 && tap(window, place) < SIZE; }
};

/* The tap of each of the block's windows, from the place of its maximum; 255: none of its taps. */
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
      uint32_t z, ox, c;
      const int line = cuda_quotient(i, p.by_out[2], &ox), k = n > 1 ? cuda_quotient(line, p.by_out[1]) : 0,
                oy = n > 1 ? line - k * p.out[1] : o0 + line;
      cuda_quotient(plane + k, p.by_extent[0], &z);
      const uint32_t r = cuda_quotient((uint32_t)max(place[b], 0), p.by_extent[2], &c) - (z * p.in[1] + oy * p.step[1] - p.before[1]);
      c -= ox * p.step[2] - p.before[2];
      tap[i] = (char)(place[b] >= 0 && r < (uint32_t)p.size[1] && c < (uint32_t)p.size[2] ? r * p.size[2] + c : 255);
    }
  }
}

/* Columns of a cell. For f32 at stride 1 an odd number avoids bank conflicts; two f16 or bf16 share a word. */
__host__ __device__ constexpr int band_columns(bool f32, int step) { return f32 && step == 1 ? 3 : 2; }

/* What a block's rows of windows from o0 on add to its n planes' rows from `top` on. */
template <int dtype, bool maxima, int SIZE, int STEP, int BEFORE>
__device__ __forceinline__ void cells(const bands &p, const char *dy, const char *tap, char *dx, int in_dy, int in_tap, int in_dx, int n,
                                      int top, int rows, int o0)
{
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
    const int oy = (top + y0) / STEP + over::first + p.lead[1], ox = column * (COLUMNS / STEP) + over::first + p.lead[2],
              at = (k * high + oy - o0) * wide + ox;
    float sum[BAND_ROWS][COLUMNS] = {};
    uint32_t outside[ACROSS];             /* ~0: no such window */
    float    weight[ACROSS];
#pragma unroll
    for (int b = 0; b < ACROSS; b++) {
      outside[b] = (unsigned)(ox + b) < (unsigned)wide ? 0 : ~0u;
      weight[b] = p.share * (!p.even ? p.weight[fewer(2, x0 + over::begin(b))] : 1);
    }
#pragma unroll
    for (int j = 0; j < DOWN; j++) {
      const uint32_t beyond = (unsigned)(oy + j) < (unsigned)high ? 0 : ~0u;
      float line[COLUMNS] = {};
#pragma unroll
      for (int w = 0; w < ACROSS; w++) {
        const uint32_t none = outside[w] | beyond, bits = element<dtype>(dy, in_dy + at + j * wide + w);
        if constexpr (maxima) {
          const float v = word_get<dtype>(bits, 0);
          const uint32_t chosen = (uint8_t)tap[in_tap + at + j * wide + w] | none;
#pragma unroll
          for (int b = 0; b < COLUMNS; b++)
#pragma unroll
            for (int a = 0; a < BAND_ROWS; a++)
              if (over::covers(w, b) && over::covers(j, a)) add_where(sum[a][b], chosen, over::tap(j, a) * SIZE + over::tap(w, b), v);
        } else {
          const float v = word_get<dtype>(bits & ~none, 0);
#pragma unroll
          for (int b = 0; b < COLUMNS; b++)
            if (over::covers(w, b)) line[b] = fmaf(v, weight[w], line[b]);   /* a sum before may overflow */
        }
      }
      if (maxima) continue;
      float weight = 1;
      if (!p.even) weight = p.weight[fewer(1, top + y0 + over::begin(j))];
#pragma unroll
      for (int a = 0; a < BAND_ROWS; a++)
        if (over::covers(j, a))
#pragma unroll
          for (int b = 0; b < COLUMNS; b++) sum[a][b] = fmaf(line[b], weight, sum[a][b]);
    }
    const int place = in_dx + (k * p.in[1] + y0) * p.in[2] + x0;
#pragma unroll
    for (int a = 0; a < BAND_ROWS; a++) {
      if (y0 + a >= rows) break;
      if (COLUMNS == 2 && p.pairs) {
        neighbours_store<dtype, 2>(dx, place + a * p.in[2], sum[a]);
      } else {
#pragma unroll
        for (int b = 0; b < COLUMNS; b++)
          if (b == 0 || x0 + b < p.in[2]) edge_store<dtype>(dx, place + a * p.in[2] + b, sum[a][b]);
      }
    }
  }
}

/* dx of a block's places, one by one: sum(k, y, x) for place (y, x) of its plane k. */
template <int dtype, class F>
__device__ __forceinline__ void place_by_place(const bands &p, char *dx, int in_dx, int n, int top, int rows, F sum)
{
  for (int i = threadIdx.x; i < n * rows * p.in[2]; i += BAND_THREADS) {
    uint32_t x, y;
    const int row = (int)cuda_quotient(i, p.by_extent[2], &x), k = n > 1 ? (int)cuda_quotient(row, p.by_extent[1], &y) : 0;
    edge_store<dtype>(dx, in_dx + i, sum(k, n > 1 ? (int)y : top + row, (int)x));
  }
}

/* Maxima of any windows: a place's sum over the windows whose tap it is. */
template <int dtype>
__device__ __forceinline__ void any_maxima(const bands &p, const char *dy, const char *tap, char *dx, int in_dy, int in_tap, int in_dx,
                                           int n, int top, int rows, int o0)
{
  place_by_place<dtype>(p, dx, in_dx, n, top, rows, [&](int k, int y, int x) {
    const range down = windows_over(p, 1, y, y + 1), across = windows_over(p, 2, x, x + 1);
    const int column = x + p.before[2] - across.begin * p.step[2];        /* that it is of the first window over it */
    float sum = 0;
    for (int oy = down.begin; oy < down.end; oy++) {
      const int line = (k * p.out[1] + oy - o0) * p.out[2];
      int here = (y + p.before[1] - oy * p.step[1]) * p.size[2] + column;
#pragma unroll 4
      for (int o = line + across.begin; o < line + across.end; o++, here -= p.step[2])
        if ((uint8_t)tap[in_tap + o] == here) sum += edge_load<dtype>(dy, in_dy + o);
    }
    return sum;
  });
}

/* Means of any windows, separably; part: what each row of windows adds to each column; behind it the windows' shares along both dims. */
template <int dtype>
__device__ __forceinline__ void any_means(const bands &p, const char *dy, char *dx, float *part, int in_dy, int in_dx, int n, int top,
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
    const int line = (int)cuda_quotient(i, p.by_extent[2], &x);
    const range over = windows_over(p, 2, (int)x, (int)x + 1);
    float sum = 0;
    for (int o = over.begin; o < over.end; o++) sum = fmaf(edge_load<dtype>(dy, in_dy + line * wide + o), across[o] * down[line], sum);
    part[i] = sum;
  }
  __syncthreads();
  place_by_place<dtype>(p, dx, in_dx, n, top, rows, [&](int k, int y, int x) {
    const range over = windows_over(p, 1, y, y + 1);
    float sum = 0;
    for (int o = over.begin; o < over.end; o++) sum += part[(k * high + o - o0) * width + x];
    return sum;
  });
}

/* WINDOW: size, step and padding modulo the step, as digits; 0: any windows */
template <int dtype, bool maxima, int WINDOW>
__global__ void __launch_bounds__(BAND_THREADS) pool_bands(const __grid_constant__ bands p)
{
  constexpr int bytes = bytes_of<dtype>, E = 16 / bytes, SIZE = WINDOW / 100, STEP = WINDOW ? WINDOW / 10 % 10 : 1, BEFORE = WINDOW % 10;
  extern __shared__ uint4 stage[];
  char *const memory = (char *)stage, *const dy = memory + p.margin * bytes, *const tap = memory + p.at_part + p.margin,
       *const dx = memory + p.at_dx;
  const uint32_t group = p.bands == 1 ? blockIdx.x : cuda_quotient(blockIdx.x, p.by_bands), plane = group * p.per_block;
  const int n = (int)min(p.per_block, p.count - plane), top = (int)(blockIdx.x - group * p.bands) * p.band,
            rows = min(p.band, p.in[1] - top), high = p.out[1];
  typedef cover<SIZE, STEP, BEFORE, 1> over;
  const range reach = SIZE == 0 ? windows_over(p, 1, top, top + rows)       /* rows of windows that reach into these */
                                : range{ max(top / STEP + over::first + p.lead[1], 0),
                                         min((top + rows - 1 + BEFORE) / STEP + p.lead[1] + 1, high) };
  const int o0 = p.bands == 1 ? 0 : reach.begin, o1 = p.bands == 1 ? high : reach.end, lines = n > 1 ? n * high : max(o1 - o0, 0);
  const int64_t from = ((int64_t)plane * high + o0) * p.out[2], end = from + (int64_t)lines * p.out[2],
                to = ((int64_t)plane * p.in[1] + top) * p.in[2];
  const int in_dy = stage_in<bytes, BAND_THREADS>(dy, p.dy, from, end, p.windows), in_dx = (int)(to % E);
  int in_tap = 0;
  if (maxima && p.index_dtype == QN_U8) in_tap = stage_in<1, BAND_THREADS>(tap, p.indices, from, end, p.windows);
  __pipeline_commit();
  if (maxima && p.index_dtype != QN_U8) taps_of_places(p, tap, plane, from, n, o0, lines);
  __pipeline_wait_prior(0);
  __syncthreads();
  if constexpr (SIZE != 0) cells<dtype, maxima, SIZE, STEP, BEFORE>(p, dy, tap, dx, in_dy, in_tap, in_dx, n, top, rows, o0);
  else if constexpr (maxima) any_maxima<dtype>(p, dy, tap, dx, in_dy, in_tap, in_dx, n, top, rows, o0);
  else any_means<dtype>(p, dy, dx, (float *)(memory + p.at_part), in_dy, in_dx, n, top, rows, o0, lines);
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

/* ---- scattered ---------------------------------------------------------------------------------------------------- */

enum { WARPS = 4, BATCH = 4, MEMORY = 8 << 10 };          /* BATCH: loads of a lane in flight; MEMORY: bytes of shared memory of a warp */

struct pieces : bands {
  uint32_t warps;
  int32_t  tiles, tile;                   /* tiles of a row, columns of one */
  int32_t  pitch, rows;                   /* of the tile in shared memory */
  int32_t  turns;                         /* turns that overlapping neighbours take */
  cuda_divisor by_tiles;
};

/* A warp walks the rows of windows that reach into its tile, a window a lane, and adds dy at the place of each window's maximum.
 * Neighbouring lanes whose windows overlap take turns, so no two add to one address; the order of the sums is fixed. */
template <int dtype, int how> __global__ void __launch_bounds__(WARPS * 32) pool_scatter(const __grid_constant__ pieces p)
{
  extern __shared__ float memory[];
  const uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= p.warps) return;
  uint32_t band, tile, z;
  const uint32_t plane = cuda_quotient(cuda_quotient(warp, p.by_tiles, &tile), p.by_bands, &band);
  cuda_quotient(plane, p.by_extent[0], &z);
  const int top = (int)band * p.band, end = min(top + p.band, p.in[1]), left = (int)tile * p.tile, right = min(left + p.tile, p.in[2]);
  const range over_y = windows_over(p, 1, top, end), over_x = windows_over(p, 2, left, right);
  const int y_base = min(over_y.begin * p.step[1] - p.before[1], top), x_base = min(over_x.begin * p.step[2] - p.before[2], left);
  float *const sums = memory + threadIdx.x / 32 * (p.pitch * p.rows);
  for (int i = lane; i < p.pitch * p.rows; i += 32) sums[i] = 0;
  __syncwarp();

  const int64_t windows = (int64_t)plane * p.out[1] * p.out[2];
  const uint32_t turn = lane % (uint32_t)p.turns;
  int oy = over_y.begin, ox0 = over_x.begin;
#pragma unroll 1
  while (oy < over_y.end && ox0 < over_x.end) {
    float v[BATCH];
    int place[BATCH], y[BATCH], x[BATCH];  /* index of the maximum (offset or tap number); first row and column of its window */
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int ox = ox0 + (int)lane;
      y[b] = oy * p.step[1] - p.before[1], x[b] = ox * p.step[2] - p.before[2];
      v[b] = 0, place[b] = -1;
      if (oy < over_y.end && ox < over_x.end) {
        const int64_t at = windows + oy * p.out[2] + ox;
        v[b] = edge_load<dtype>(p.dy, at);
        place[b] = how == BY_TAP           ? ((const uint8_t *)p.indices)[at]
                 : p.index_dtype == QN_I32 ? ((const int32_t *)p.indices)[at]
                                           : place_among(((const int64_t *)p.indices)[at]);
      }
      ox0 += 32;
      if (ox0 >= over_x.end) ox0 = over_x.begin, oy++;
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      uint32_t r, c;
      if (how == BY_TAP) {
        r = cuda_quotient((uint32_t)max(place[b], 0), p.by_size[2], &c);
      } else {
        r = cuda_quotient((uint32_t)max(place[b], 0), p.by_extent[2], &c);
        r -= z * p.in[1] + y[b], c -= x[b];
      }
      const uint32_t mine = place[b] >= 0 && r < (uint32_t)p.size[1] && c < (uint32_t)p.size[2] ? turn : ~0u;
      float *const sum = sums + (y[b] - y_base + (int)r) * p.pitch + x[b] - x_base + (int)c;
#pragma unroll 1
      for (int t = 0; t < p.turns; t++) {
        if (mine == (uint32_t)t) *sum += v[b];
        __syncwarp();
      }
    }
  }

  const float *from = sums + (top - y_base) * p.pitch + left - x_base;
  char *to = (char *)p.dx + (((int64_t)plane * p.in[1] + top) * p.in[2] + left) * (dtype == QN_F32 ? 4 : 2);
  for (int row = top; row < end; row++, from += p.pitch, to += p.in[2] * (dtype == QN_F32 ? 4 : 2)) {
    if (p.pairs)
      for (int x = 2 * (int)lane; x < right - left; x += 64) neighbours_store<dtype, 2>(to, x, from + x);
    else
      for (int x = (int)lane; x < right - left; x += 32) edge_store<dtype>(to, x, from[x]);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* Bytes of shared memory for n planes, or (n is 1) that many rows; sets the offsets of its parts. */
static inline int64_t band_memory(bands *p, int64_t n, int64_t rows, bool any)
{
  const bool whole = rows >= p->in[1];
  const int64_t bytes = qn_kit_bytes(p->dtype), reach = p->adaptive ? rows * p->out[1] / p->in[1] + 3
                                                            : (rows + p->size[1] - 2) / p->step[1] + 1,
                lines = whole ? n * p->out[1] : reach;
  const int64_t windows = (lines + 1) * p->out[2] + 2 * (int64_t)p->margin + 32;
  p->at_part = (int32_t)qn_round_up(windows * bytes, 16);
  p->at_dx = p->at_part + (int32_t)qn_round_up(!p->average ? windows : any ? (lines * (p->in[2] + 1) + p->out[2]) * 4 : 0, 16);
  return p->at_dx + qn_round_up(((whole ? n * p->in[1] : rows) * p->in[2] + 8) * bytes, 16);
}

/* Chooses planes a block, or rows of one plane where planes are large or too few for the device, so that few threads idle in the cells;
 * returns bytes of shared memory, 0: rows too wide. */
static inline int64_t band_choose(bands *p, bool any, int64_t units)
{
  int64_t across = qn_ceil_div(p->in[2], band_columns(p->dtype == QN_F32, p->step[1])), down = qn_ceil_div(p->in[1], BAND_ROWS),
          many = qn_max_i64(1, p->count / (4 * units)), best = 0;
  double most = -1;
  const int64_t beyond = (BAND_ROWS + qn_max_i64(p->size[1] - 3, 0)) / p->step[1] + 2;
  p->margin = any ? 0 : (int32_t)qn_round_up(beyond * p->out[2] + 2, 16);
  const int64_t least = qn_min_i64(down, qn_ceil_div(2 * units, (int64_t)p->count));        /* bands of a plane */
  for (int64_t n = 1; n <= qn_min_i64(many, 256) && least == 1; n++) {
    if (band_memory(p, n, p->in[1], any) > BAND_MEMORY) break;
    int64_t cells = n * down * across;
    double busy = (double)cells / (double)qn_round_up(cells, BAND_THREADS);
    if (busy > most + 0.02) most = busy, best = n;
  }
  p->per_block = best ? (uint32_t)best : 1;
  p->band = best ? (int32_t)qn_round_up(p->in[1], BAND_ROWS) : 0;
  for (int64_t d = 1; !best && (d == 1 || d <= (down - 1) / least); d++) {
    if (d > 1 && band_memory(p, 1, d * BAND_ROWS, any) > BAND_MEMORY) break;
    int64_t cells = d * across, lines = qn_max_i64(d * BAND_ROWS / p->step[1], 1);
    double busy = (double)cells / (double)qn_round_up(cells, BAND_THREADS) * (double)lines / (double)(lines + 1);
    if (busy > most + 0.02) most = busy, p->band = (int32_t)(d * BAND_ROWS);
  }
  if (!p->band) return 0;
  p->bands = (int32_t)qn_ceil_div(p->in[1], p->band);
  p->by_bands = cuda_divide_by(p->bands), p->by_across = cuda_divide_by(across), p->by_down = cuda_divide_by(down);
  int64_t memory = band_memory(p, p->per_block, p->band, any);
  return memory <= BAND_MEMORY_MOST ? memory : 0;
}

/* What both engines read and refuse. aligned: of pool_wants_planes(). */
template <class P> static qn_status read_planes(pool_state<P> *s, const qn_request *r, int aligned, qn_prepared *out)
{
  P *p = &s->p;
  qn_status status = gradient_read(s, r, out);
  if (!status) status = pool_wants_flat(p, r, s->of, aligned, false, out);
  if (status) return status;
  for (int d = 1; d < 3; d++)
    if (p->size[d] > 1 && p->dilation[d] != 1) return qn_refuse(out, "dilation 1", "dx", "1", "%d", p->dilation[d]);
  if (!p->average && s->of.indices < 0) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  if (qn_elements(&r->value[s->of.dx]) > INT32_MAX) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");
  return QN_OK;
}

/* window: of cells, as square_of(); 0: any */
template <int dtype, bool maxima> static pool_kernel bands_of(int window)
{
  return cuda_pick<321, 320, 310, 220, maxima ? 510 : 0, maxima ? 520 : 0, 0>(window, [](auto w) {
    return (pool_kernel)pool_bands<dtype, maxima, w()>;
  });
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<bands> s = {};
  bands *p = &s.p;
  const qn_status status = read_planes(&s, r, 5, out);
  if (status) return status;
  if (!p->average && (p->adaptive || p->size[1] * (double)p->size[2] > 255))
    return qn_refuse(out, "equal windows of at most 255 taps", "dx", "3x3", "%dx%d", p->size[1], p->size[2]);
  const int step = p->step[1], rest = p->before[1] % step, known = !p->adaptive && p->in[2] >= p->size[2] && p->before[2] % step == rest,
            cells = known ? 10 * square_step(p) + rest : 0;
  const bool five = (cells == 510 || cells == 520) && !p->average;
  const int window = cells == 321 || cells == 320 || cells == 310 || cells == 220 || five ? cells : 0;
  for (int d = 1; d < 3; d++) p->lead[d] = p->before[d] / step;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) {
    return p->average ? bands_of<dtype(), false>(window) : bands_of<dtype(), true>(window);
  });
  p->windows = qn_elements(&r->value[s.of.dy]);
  p->pairs = p->in[2] % 2 == 0;
  for (int m = 0; window && m < p->size[1]; m++) p->weight[m] = (float)p->size[1] / (float)(p->size[1] - m);
  const int64_t shared = band_choose(p, !window, r->device->units);
  if (!shared) return qn_refuse(out, "some rows in 48 KB", "dx", "narrower", "%d wide", p->in[2]);
  const double blocks = (double)qn_ceil_div(p->count, p->per_block) * p->bands;
  s.shared = (uint32_t)shared;
  double over = 1;                        /* windows over a place */
  for (int d = 1; d < 3; d++) over *= qn_max_i64(p->size[d] / p->step[d], 1);
  const double rate = p->average ? (window ? 1500 : 700) : window ? 2000 : 2000 / (1 + over / 60);
  return pool_keep(&s, BAND_THREADS * blocks, BAND_THREADS, rate, out);
}

static qn_status prepare_scatter(const qn_request *r, qn_prepared *out)
{
  pool_state<pieces> s = {};
  pieces *p = &s.p;
  const qn_status status = read_planes(&s, r, 0, out);
  if (status) return status;
  for (int d = 1; d < 3; d++)
    if (p->step[d] > p->size[d] || p->size[d] > 32)
      return qn_refuse(out, "windows of at most 32, without gaps", "dx", "3", "%d", p->size[d]);
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) {
    return s.how == BY_TAP ? (pool_kernel)pool_scatter<dtype(), BY_TAP> : (pool_kernel)pool_scatter<dtype(), BY_PLACE>;
  });
  const int64_t count = p->count;

  /* choose the tile: whole rows first, as many as shared memory holds */
  const int64_t beyond = 2 * (p->size[2] - 1), most = MEMORY / 4;
  p->tile = p->in[2] <= 512 ? p->in[2] : (int32_t)(512 / p->step[2] * p->step[2]);
  p->pitch = (int32_t)(p->tile + beyond);
  const int64_t rows = qn_max_i64(most / p->pitch - 2 * (p->size[1] - 1), 1);
  p->bands = (int32_t)qn_ceil_div(p->in[1], rows);
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], p->bands), p->step[1]);
  p->bands = (int32_t)qn_ceil_div(p->in[1], p->band);
  p->rows = (int32_t)(qn_min_i64(p->band, p->in[1]) + 2 * (p->size[1] - 1));
  p->tiles = (int32_t)qn_ceil_div(p->in[2], p->tile);
  p->turns = (int32_t)qn_ceil_div(p->size[2], p->step[2]);
  const int64_t shared = WARPS * (int64_t)p->pitch * p->rows * 4;
  if (shared > 48 << 10) return qn_refuse(out, "a row and its windows in 12 KB", "dx", "narrower", "%lld", (long long)shared);
  if ((double)count * p->bands * p->tiles > INT32_MAX / 32) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  p->warps = (uint32_t)(count * p->bands * p->tiles);
  p->by_bands = cuda_divide_by(p->bands), p->by_tiles = cuda_divide_by(p->tiles);
  p->pairs = p->in[2] % 2 == 0 && p->tile % 2 == 0 && r->value[s.of.dx].align >= 8;
  s.shared = (uint32_t)shared;
  /* A band of rows walks the windows of size - 1 rows more; still before gather (300), which is left what scatter refuses. */
  const double rate = p->bands == 1 ? 800 : qn_max_i64(310, 800 * p->band / (p->band + p->size[1] - 1));
  return pool_keep(&s, 32 * (int64_t)p->warps, 32 * WARPS, rate, out);
}

static const qn_engine row[] = { POOL_BACKWARD_ROWS(bands, "bands", prepare),
                                 pool_row<pieces>("scatter", QN_OP_POOL_MAX_BACKWARD, prepare_scatter) };
CUDA_ENGINES(pool_bands) = { row, sizeof row / sizeof *row };
