/* pool_vector.cu -- max, average and lp pooling of any layout, adaptive too, f16, bf16 and f32. If lp's sum over- or underflows, once more
 * with the taps scaled by a power of two. The gradient of averages by large windows of stride 1, channels last, is a sum over such windows.
 *
 * A thread takes V channels of an output (channels last), or one output of any other layout; neighbouring threads are neighbours in memory,
 * so that overlapping windows hit the caches. With channels last, small windows are reduced row by row down a column of them, each row
 * once, and large ones of stride 1 separably through shared memory.
 * Refused: lp powers above 64; gradients of other averages. */
#include "pool_found.cuh"

enum { THREADS = 128, BLOCK = 4096 };     /* BLOCK: taps of a sum */

template <class I, int V> __device__ __forceinline__ void indices_store(const int (&index)[V], void *base, int64_t at)
{
  several<I, V> all;
#pragma unroll
  for (int i = 0; i < V; i++) all.v[i] = (I)index[i];
  *(several<I, V> *)((I *)base + at) = all;
}

template <int mode, int whole> __device__ __forceinline__ float root_of(float t, float p)
{
  return mode == POWERS ? lp_root(t, p) : mode == SQUARES ? sqrtf(t) : lp_cube_root<whole>(t);
}

template <int V, int mode, int whole>
__device__ __forceinline__ void norms(const pool &p, const place &at, int64_t plane, found<V, mode> &f)
{
  bool plain = true;
#pragma unroll
  for (int i = 0; i < V; i++) {
    const uint32_t bits = V == 4 ? f.any[i % 4] & 0x7fffffffu : f.any[i / 2 % 4] & 0x7fffu << i % 2 * 16;
    const bool zero = mode == POWERS ? f.most[mode == POWERS ? i : 0] == 0 : bits == 0;
    plain &= zero || (f.v[i] > LP_LEAST && f.v[i] < INFINITY);
    f.v[i] = zero ? 0 : root_of<mode, whole>(f.v[i], p.p);
  }
  if (plain) return;
#pragma unroll 1
  for (int i = 0; i < V; i++) {           /* constant indices keep the norms in registers */
    const float norm = lp_scaled(p, plane + i * p.x_stride[1], at.o[0], at.o[1], at.o[2]);
#pragma unroll
    for (int e = 0; e < V; e++) f.v[e] = e == i ? norm : f.v[e];
  }
}

/* Stores y and the index of V channels. share: 1 / divisor, for average. */
template <int V, int mode, int whole>
__device__ __forceinline__ void put(const pool &p, const place &at, const window &w, float share, found<V, mode> &f)
{
  const int64_t plane = at.n * p.x_stride[0] + at.c * p.x_stride[1];
  if (mode == AVERAGE) {
#pragma unroll
    for (int i = 0; i < V; i++) f.v[i] *= share;
    pool_mend<whole ? whole : QN_F32>(f.v, V, [&](int i) {
      return pool_far_mean(p, plane + i * p.x_stride[1], at.o[0], at.o[1], at.o[2]);
    });
  }
  if constexpr (mode >= SQUARES) norms<V, mode, whole>(p, at, plane, f);
  int64_t to = at.n * p.y_stride[0] + at.c * p.y_stride[1] + at.o[0] * p.y_stride[2] + at.o[1] * p.y_stride[3] + at.o[2] * p.y_stride[4];
  if (whole) vector_store_whole<whole ? whole : QN_F32>(f.v, p.y, to);
  else element_store(p.y, to, dtype3(p.dtype), f.v[0]);
  if (mode != MAX_INDEX) return;
  to = at.n * p.index_stride[0] + at.c * p.index_stride[1] + at.o[0] * p.index_stride[2] + at.o[1] * p.index_stride[3] +
       at.o[2] * p.index_stride[4];
  int index[V];                           /* -1 is stored as 255 in u8 */
#pragma unroll
  for (int i = 0; i < V; i++) {
    index[i] = f.tap[mode == MAX_INDEX ? i : 0];
    if (p.index_dtype != QN_U8 && index[i] >= 0) index[i] = place_in_plane(p, w, index[i]);
  }
  if constexpr (whole != 0)
    if (p.whole_indices) {
      if (p.index_dtype == QN_U8) indices_store<uint8_t>(index, p.indices, to);
      else if (p.index_dtype == QN_I32) indices_store<int32_t>(index, p.indices, to);
      else indices_store<int64_t>(index, p.indices, to);
      return;
    }
#pragma unroll
  for (int i = 0; i < V; i++) element_store_wrapped(p.indices, to + i * p.index_stride[1], p.index_dtype, index[i]);
}

/* ---- any window ---------------------------------------------------------------------------------------------- */

/* whole: x and y have this dtype, in whole aligned vectors; 0 (and V 1): anything. p.splits threads divide a large window's rows. */
template <int V, int mode, int whole> __global__ void __launch_bounds__(THREADS, 4) pool_vector(const __grid_constant__ pool p)
{
  constexpr bool divided = mode == MAX || mode == AVERAGE || mode == POWERS;
  __shared__ float shared[divided ? THREADS : 1][mode == POWERS ? 2 * V : V + 1];
  uint32_t across = THREADS / p.splits, split = threadIdx.x / across, unit = blockIdx.x * across + threadIdx.x % across;
  bool here = unit < p.units;
  place at = place_of<V>(p, here ? unit : 0);
  const window w = window_of(p, at.o);
  found<V, mode> f, blocks;               /* blocks: the sum of all blocks of BLOCK taps but the last */
  int taken = 0;
  if (here)
    pool_taps<V, whole>(p, at, w, split, [&](const float (&v)[V], int tap) {
      f.take(v, tap, p.p);
      if (mode != AVERAGE || ++taken % BLOCK) return;
      blocks.take(f.v, tap);
      f = found<V, mode>();
    });
  if (mode == AVERAGE && taken >= BLOCK) f.take(blocks.v, blocks.tap[0]);
  if (divided && p.splits > 1) {
    float *const own = shared[divided ? threadIdx.x : 0];
#pragma unroll
    for (int i = 0; i < V; i++) {
      own[i] = f.v[i];
      if (mode == POWERS) own[V + i] = f.most[i];
    }
    if (mode != POWERS) own[V] = __int_as_float(f.tap[0]);
    __syncthreads();
    for (int k = 1; split == 0 && k < p.splits; k++) {
      const float *const other = shared[divided ? k * across + threadIdx.x : 0];
      found<V, mode> g;
#pragma unroll
      for (int i = 0; i < V; i++) {
        g.v[i] = other[i];
        if (mode == POWERS) g.most[i] = other[V + i];
      }
      if (mode != POWERS) g.tap[0] = __float_as_int(other[V]);
      f.join(g, 0);
    }
    here &= split == 0;
  }
  if (here) put<V, mode, whole>(p, at, w, mode == AVERAGE ? 1 / fmaxf(divisor_of(p, w), 1) : 1, f);
}

/* ---- small windows, channels last ----------------------------------------------------------------------------- */

/* Square windows of SIZE with stride STEP in the last two dims: a thread walks down a column of windows and reduces the taps of
 * a row once for all windows that share it. The loads of BATCH rows are in flight at once; of lp while the rows before are reduced, which
 * takes long. */
enum { BATCH = 2, POWER_BLOCKS = 4 };     /* POWER_BLOCKS: resident on an SM */

/* Blocks per SM of averages with stride 1; bands are sized so that no more are launched, if possible. */
constexpr int small_resident(uint32_t dtype) { return dtype == QN_F32 ? 7 : 5; }

template <int mode, int whole, int SIZE, int STEP>
__global__ void __launch_bounds__(THREADS, mode >= SQUARES ? POWER_BLOCKS : STEP == 1 && mode == AVERAGE ? small_resident(whole) : 0)
pool_small(const __grid_constant__ pool p)
{
  constexpr int V = vector_per_16<whole>, KEPT = SIZE - STEP, ROWS = BATCH / STEP;
  constexpr bool powers = mode >= SQUARES;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.units) return;
  place at = place_of<V>(p, unit);
  at.o[1] *= p.band;
  int end = min(at.o[1] + p.band, p.out[1]), y = at.o[1] * STEP - p.before[1], x0 = at.o[2] * STEP - p.before[2];
  int64_t base = at.n * p.x_stride[0] + at.c + x0 * p.x_stride[4];
  auto load = [&](uint4 (&q)[SIZE], int line) {
#pragma unroll
    for (int c = 0; c < SIZE; c++) {
      if (powers) q[c] = make_uint4(0, 0, 0, 0);
      if ((unsigned)line < (unsigned)p.in[1] && (unsigned)(x0 + c) < (unsigned)p.in[2])
        q[c] = *vector_place<whole>(p.x, base + line * p.x_stride[3] + c * p.x_stride[4]);
    }
  };
  auto join = [&](const uint4 (&q)[SIZE], int line) {
    found<V, mode> f;
#pragma unroll
    for (int c = 0; c < SIZE; c++)
      if (powers || ((unsigned)line < (unsigned)p.in[1] && (unsigned)(x0 + c) < (unsigned)p.in[2])) {
        float v[V];
        vector_open<whole>(v, 0, q[c]);
        f.take(v, c);
        f.any[0] |= q[c].x, f.any[1] |= q[c].y, f.any[2] |= q[c].z, f.any[3] |= q[c].w;
      }
    return f;
  };
  int across = mode == AVERAGE ? taps_beside(p, 2, x0, SIZE) : 0;
  found<V, mode> line[KEPT + BATCH];
#pragma unroll
  for (int i = 0; i < KEPT; i++) {
    uint4 q[SIZE];
    load(q, y + i);
    line[i] = join(q, y + i);
  }
  uint4 q[BATCH][SIZE];
  const auto load_batch = [&](int first) {
#pragma unroll
    for (int i = 0; i < BATCH; i++) load(q[i], first + i);
  };
  if (powers) load_batch(y + KEPT);
#pragma unroll 1
  for (; at.o[1] < end; y += BATCH) {
    if (!powers) load_batch(y + KEPT);
#pragma unroll
    for (int i = 0; i < BATCH; i++) line[KEPT + i] = join(q[i], y + KEPT + i);
    if (powers && at.o[1] + ROWS < end) load_batch(y + BATCH + KEPT);
#pragma unroll
    for (int k = 0; k < ROWS; k++, at.o[1]++) {
      if (at.o[1] >= end) break;
      found<V, mode> f;
#pragma unroll
      for (int r = 0; r < SIZE; r++) f.join(line[k * STEP + r], r * SIZE);
      put<V, mode, whole>(p, at, window_of(p, at.o),
                          mode == AVERAGE ? p.inverse[across * taps_beside(p, 1, at.o[1] * STEP - p.before[1], SIZE)] : 1, f);
    }
#pragma unroll
    for (int i = 0; i < KEPT; i++) line[i] = line[BATCH + i];
  }
}

/* ---- large windows of stride 1, channels last -------------------------------------------------------------------- */

/* A block has a band of rows of y for a few vectors of channels. It reduces each row of x along the row for every column of y,
 * into shared memory, and then reduces those down the columns, SWEEP windows a thread (pool.cuh). Bands begin at multiples of SWEEP, so
 * that the order of a window's sum depends on its place, not on the band height. Maxima of 16-bit dtypes are taken two at a
 * time, on packed words. */
enum { LARGE_THREADS = 256, LARGE_MEMORY = 40 << 10, SWEEPS = -1 };       /* SWEEPS: as a window */
/* Mode of a gradient of averages: x is dy and y is dx, whose place i is covered by the windows of dy from i - p.before on; each is divided
 * by its number of taps, one dim after the other, before it is added. */
enum { SPREAD = POWERS + 1 };
__device__ __forceinline__ float share_of(const pool &p, int d, int o)
{
  const int begin = o + p.before[d] + 1 - p.size[d], end = min(begin + p.size[d], p.include_pad ? p.out[d] + p.after[d] : p.out[d]);
  return 1 / (float)max(end - (p.include_pad ? begin : max(begin, 0)), 1);
}

__host__ __device__ constexpr bool sweeps_words(int mode, uint32_t whole) { return mode == MAX && whole != QN_F32; }

template <int mode, int whole> __global__ void __launch_bounds__(LARGE_THREADS) pool_sweeps(const __grid_constant__ pool p)
{
  constexpr bool words = sweeps_words(mode, whole);
  constexpr int V = vector_per_16<whole>, N = words ? 4 : V;
  typedef typename std::conditional<words, uint32_t, float>::type number;
  typedef several<number, N> item;
  extern __shared__ float4 lines[];
  item *const line = (item *)lines;
  number none;
  if constexpr (words) none = word_of_least<whole>().x;
  else none = mode == MAX ? -INFINITY : 0;
  const auto join = [](number a, number b) {
    if constexpr (words) return larger_pair<whole>(a, b);
    else return mode == MAX ? larger(a, b) : a + b;
  };
  uint32_t band, chunk, k;
  const uint32_t n = cuda_quotient(cuda_quotient(blockIdx.x, p.by_cell[1], &band), p.by_cell[0], &chunk);
  const int many = (int)min(p.splits, p.groups - chunk * p.splits), top = (int)band * p.band, rows = min(p.band, p.out[1] - top),
            width = p.out[2], K = (int)p.splits;
  const int first = max(top - p.before[1], 0), end = max(min(top - p.before[1] + rows - 1 + p.size[1], p.in[1]), 0),
            across = (width + SWEEP - 1) / SWEEP, down = (rows + SWEEP - 1) / SWEEP;
  const int64_t base = n * p.x_stride[0] + chunk * p.splits * V;
  for (int i = threadIdx.x; i < (end - first) * across * K; i += blockDim.x) {
    const int q = (int)cuda_quotient(i, p.by_cell[2], &k), row = q / across, ox = (q - row * across) * SWEEP;
    if ((int)k >= many) continue;
    const int64_t from = base + k * V + (first + row) * p.x_stride[3];
    number f[SWEEP][N];
    sweep(f, ox - p.before[2], p.size[2], p.in[2], none, [&](number (&v)[N], int x) {
      const uint4 w = *vector_place<whole>(p.x, from + x * p.x_stride[4]);
      if constexpr (words) v[0] = w.x, v[1] = w.y, v[2] = w.z, v[3] = w.w;
      else vector_open<whole>(v, 0, w);
      if constexpr (mode == SPREAD) {
        const float share = share_of(p, 2, x);
#pragma unroll
        for (int e = 0; e < N; e++) v[e] *= share;
      }
    }, join);
#pragma unroll
    for (int j = 0; j < SWEEP; j++) {
      item part;
#pragma unroll
      for (int e = 0; e < N; e++) part.v[e] = f[j][e];
      if (ox + j < width) line[(row * width + ox + j) * K + k] = part;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < down * width * K; i += blockDim.x) {
    uint32_t ox;
    const int q = (int)cuda_quotient(i, p.by_cell[2], &k), o = (int)cuda_quotient(q, p.by_out[2], &ox) * SWEEP,
              y0 = top + o - p.before[1];
    if ((int)k >= many) continue;
    number f[SWEEP][N];
    sweep(f, y0, p.size[1], end, none, [&](number (&v)[N], int y) {
      const item part = line[((y - first) * width + (int)ox) * K + k];
#pragma unroll
      for (int e = 0; e < N; e++) v[e] = part.v[e];
      if constexpr (mode == SPREAD) {
        const float share = share_of(p, 1, y);
#pragma unroll
        for (int e = 0; e < N; e++) v[e] *= share;
      }
    }, join);
    const int beside = mode == AVERAGE ? taps_beside(p, 2, (int)ox - p.before[2], p.size[2]) : 0;
    int64_t to = n * p.y_stride[0] + (chunk * p.splits + k) * V + (top + o) * p.y_stride[3] + (int)ox * p.y_stride[4];
#pragma unroll
    for (int r = 0; r < SWEEP; r++, to += p.y_stride[3]) {
      if (o + r >= rows) break;
      if constexpr (words) *(uint4 *)vector_place<whole>(p.y, to) = make_uint4(f[r][0], f[r][1], f[r][2], f[r][3]);
      else {
        const float share = mode == AVERAGE ? 1 / fmaxf((float)beside * (float)taps_beside(p, 1, y0 + r, p.size[1]), 1) : 1;
#pragma unroll
        for (int c = 0; c < N; c++) f[r][c] *= share;
        if constexpr (mode == AVERAGE)
          pool_mend<whole>(f[r], N, [&](int i) { return pool_far_mean(p, base + k * V + i, 0, top + o + r, (int)ox); });
        vector_store_whole<whole>(f[r], p.y, to);
      }
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Chooses the vectors of a block (p->splits) and its band, so that they fit shared memory and fill the device; bytes: of a
 * partial result. Returns the bytes of shared memory, 0 if too wide. */
static int64_t large_choose(pool *p, int64_t bytes, int64_t units)
{
  int64_t best = 0;
  for (uint32_t k = p->groups < 4 ? p->groups : 4; k && !best; k /= 2)
    for (int64_t bands = 1; bands <= p->out[1] && !best; bands *= 2) {
      const int64_t band = qn_min_i64(p->out[1], qn_round_up(qn_ceil_div(p->out[1], bands), (int64_t)SWEEP)),
                    shared = (band - 1 + p->size[1]) * p->out[2] * k * bytes;
      if (shared > LARGE_MEMORY || (k > 1 && (double)p->n * qn_ceil_div(p->groups, k) * bands < units + units / 2) ||
          (bands > 1 && band < p->size[1]))
        continue;
      const int64_t chunks = qn_ceil_div(p->groups, k);
      best = shared, p->splits = k, p->band = (int32_t)band;
      p->by_cell[0] = cuda_divide_by(chunks), p->by_cell[1] = cuda_divide_by(qn_ceil_div(p->out[1], band)),
      p->by_cell[2] = cuda_divide_by(k);
      p->units = (uint32_t)(p->n * chunks * qn_ceil_div(p->out[1], band));
    }
  return best;
}

/* Rows of outputs a thread of pool_small has for lp, so that the blocks make whole waves; across: threads beside one another. */
static int32_t powers_band(const pool &p, int64_t across, int64_t processors)
{
  double least = INFINITY;
  int32_t best = 0;
  for (int64_t band = 2; band <= 16; band++) {
    const int64_t blocks = qn_ceil_div(across * qn_ceil_div(p.out[1], band), (int64_t)THREADS);
    /* rows of x read one after the other */
    const double cost = (double)qn_ceil_div(blocks, POWER_BLOCKS * processors) * (double)(band * p.step[1] + p.size[1] - p.step[1]);
    if (cost < least) least = cost, best = (int32_t)band;
  }
  return best;
}

/* window: 10 SIZE + STEP of pool_small; SWEEPS: pool_sweeps; 0: any. whole: the dtype of whole vectors, or 0. nullptr: no such kernel. */
template <int mode, int window, int whole> static pool_kernel kernel_of()
{
  constexpr bool known = mode == SQUARES || mode == CUBES;
  if constexpr (window == 0 && !known) return (pool_kernel)pool_vector<whole ? vector_per_16<whole> : 1, mode, whole>;
  else if constexpr (whole != 0 && window == SWEEPS && (mode == MAX || mode == AVERAGE)) return (pool_kernel)pool_sweeps<mode, whole>;
  else if constexpr (whole != 0 && window > 0 && mode != POWERS && !(known && window == 31))
    return (pool_kernel)pool_small<mode, whole, window / 10, window % 10>;
  else return nullptr;
}
template <int whole> static pool_kernel kernel_of(int mode, int window)
{
  return cuda_pick<MAX, MAX_INDEX, AVERAGE, SQUARES, CUBES, POWERS>(mode, [&](auto m) {
    return cuda_pick<32, 31, 22, SWEEPS, 0>(window, [](auto w) { return kernel_of<decltype(m)::value, w(), whole>(); });
  });
}

/* Keeps a state of pool_sweeps that large_choose() has chosen for; shared: its answer. */
static qn_status keep_large(pool_state<pool> *s, int64_t shared, qn_prepared *out)
{
  const pool &p = s->p;
  int64_t lines = 0;                      /* no more threads than the pass over rows has items */
  for (int64_t top = -p.before[1]; top + p.before[1] < p.out[1]; top += p.band)
    lines = qn_max_i64(lines, qn_min_i64(top + p.band - 1 + p.size[1], p.in[1]) - qn_max_i64(top, 0));
  const int64_t items = qn_max_i64(lines * qn_ceil_div(p.out[2], (int64_t)SWEEP) * p.splits, 1);
  const uint32_t threads = (uint32_t)qn_min_i64(qn_round_up(items, 32), LARGE_THREADS);
  s->shared = (uint32_t)shared;
  return pool_keep(s, p.units * (int64_t)threads, threads, 1000, out);
}
/* Has depth no part in the windows? */
static bool is_plane(const pool &p) { return p.size[0] == 1 && p.in[0] == 1 && p.out[0] == 1 && p.before[0] == 0; }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<pool> s = {};
  pool &p = s.p;
  const qn_status status = pool_read(&s, r, out);
  if (status) return status;
  const qn_value *x = &r->value[s.of.x], *y = &r->value[s.of.y], *indices = s.of.indices < 0 ? nullptr : &r->value[s.of.indices];
  if (indices) pool_strides(indices, p.index_stride);
  const bool lp = r->op[0].op == QN_OP_POOL_LP;
  int mode = lp ? POWERS : p.average ? AVERAGE : indices ? MAX_INDEX : MAX;
  uint32_t whole;
  const int64_t *strides[] = { p.x_stride, p.y_stride };
  const int v = pool_channels(&p, strides, 2, x->align < y->align ? x->align : y->align, &whole);
  if (pool_units(&p, v, p.out) > INT32_MAX) return qn_refuse(out, "fewer than 2^31 units", "y", "", "%s", "more");
  p.whole_indices = indices && indices->align >= 16 && p.index_stride[1] == 1 && pool_steps(p.index_stride, v);

  /* small windows: columns, cut into enough bands to fill the device with threads */
  const bool plane = is_plane(p);
  int small = square_step(&p);
  if (!whole || !plane || p.adaptive || (small != 32 && small != 31 && small != 22) || (lp && (small == 31 || (p.p != 2 && p.p != 3))))
    small = 0;
  if (small) {
    if (lp) mode = p.p == 2 ? SQUARES : CUBES;
    const int64_t across = (int64_t)p.n * p.groups * p.out[2];
    const int64_t held = (small == 31 && !indices ? small_resident(x->dtype) * THREADS : 2048) * (int64_t)r->device->units;
    const int64_t bands = qn_min_i64(qn_ceil_div(p.out[1], 2), qn_max_i64(qn_ceil_div(p.out[1], 8), held / across));
    p.band = lp ? powers_band(p, across, r->device->units) : (int32_t)qn_ceil_div(p.out[1], bands);
    const int32_t cells[3] = { 1, (int32_t)qn_ceil_div(p.out[1], p.band), p.out[2] };
    pool_units(&p, v, cells);
  }
  const int64_t large = whole && plane && sweep_takes(p) && !indices && !lp
                          ? large_choose(&p, sweeps_words(mode, x->dtype) ? 16 : 4 * v, r->device->units)
                          : 0;
  const int window = large ? (int)SWEEPS : small;
  s.kernel = !whole ? kernel_of<0>(mode, 0) : cuda_by_dtype(x->dtype, [&](auto dtype) { return kernel_of<dtype()>(mode, window); });
  if (large) return keep_large(&s, large, out);
  /* Divides a large window's rows among threads that would idle with this batch and device; the sum's bits then depend on both. */
  const bool sums = p.average || lp, splits = !indices && !small && p.size[1] >= 4 && !(sums && r->demands->determinism >= QN_DET_BATCH);
  if (splits && sums) out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
  if (splits)
    while (p.splits < 64 && p.splits * 2 <= (uint32_t)p.size[1] && p.splits * p.units < 2048u * (uint32_t)r->device->units) p.splits *= 2;
  const double taps = (double)p.size[0] * p.size[1] * p.size[2] / p.splits;
  const qn_status kept =
    pool_keep(&s, THREADS * qn_ceil_div(p.units, (int64_t)(THREADS / p.splits)), THREADS, small ? 2200 : whole ? 900 : 500, out);
  if (taps > 64) out->estimate += (taps - 64) * 100;        /* a thread reads them one after another */
  return kept;
}

static qn_status prepare_gradient(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  pool_state<pool> s = {};
  pool &p = s.p;
  const int32_t dy = op->arg[0], dx = op->arg[op->first[op->n_inputs]];
  const qn_status status = pool_read(&s, { -1, -1, dy, dx, -1 }, r, out);
  if (status) return status;
  const qn_value *of_dy = &r->value[dy], *of_dx = &r->value[dx];
  uint32_t whole;
  const int64_t *strides[] = { p.x_stride, p.y_stride };
  const int v = pool_channels(&p, strides, 2, of_dy->align < of_dx->align ? of_dy->align : of_dx->align, &whole);
  if (!whole) return qn_refuse(out, "channels side by side in vectors", "dx", "nhwc of a multiple of 8", "%s", "other strides");
  if (!is_plane(p) || !sweep_takes(p))
    return qn_refuse(out, "windows of stride 1 in a plane", "dx", "5x5 or more", "%dx%d", p.size[1], p.size[2]);
  if (pool_units(&p, v, p.in) > INT32_MAX) return qn_refuse(out, "fewer than 2^31 units", "dx", "", "%s", "more");
  s.of = { dy, dx, -1, -1, -1 };          /* from here on x is dy, y dx */
  for (int d = 0; d < 3; d++) {
    const int32_t in = p.in[d];
    p.in[d] = p.out[d], p.out[d] = in, p.by_out[d] = cuda_divide_by(in);
    p.before[d] = p.size[d] - 1 - p.before[d];
  }
  pool_strides(of_dy, p.x_stride), pool_strides(of_dx, p.y_stride);
  const int64_t large = large_choose(&p, 4 * v, r->device->units);
  if (!large) return qn_refuse(out, "some rows in 40 KB", "dx", "narrower", "%d wide", p.out[2]);
  s.kernel = cuda_by_dtype(p.dtype, [](auto dtype) { return (pool_kernel)pool_sweeps<SPREAD, dtype()>; });
  return keep_large(&s, large, out);
}

static const qn_engine row[] = { POOL_ROWS(pool, "vector", prepare), pool_row<pool>("vector", QN_OP_POOL_LP, prepare),
                                 pool_row<pool>("vector", QN_OP_POOL_AVERAGE_BACKWARD, prepare_gradient) };
CUDA_ENGINES(pool_vector) = { row, sizeof row / sizeof *row };
