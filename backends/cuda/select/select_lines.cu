/* select_lines.cu -- top_k and sort (the top n) by keys of 32 bits, a line a block; short ones a warp.
 *
 *   bits    up to 1024 elements, 8 or 32 a lane of a warp, k at most 128: the k-th key is found bit by bit, and the chosen are sorted in
 *           shared memory
 *   bound   longer lines, k at most 1024: at least k elements reach the k-th largest of the largest keys of 4096 groups of elements,
 *           8 a thread; where few do, those are gathered and sorted in shared memory (bitonic)
 *   radix   otherwise passes histogram 11 bits of the keys that match the prefix so far, until few enough candidates remain: a
 *           further pass is cheaper than sorting thousands. One more pass gathers them (of too many equals the first)
 * If there are few long lines each is cut into parts, whose top k go to workspace and are merged by a second launch.
 * Refused: 64-bit elements; k above 2048. */
#include "kit/sums.cuh"
#include "select_lines.cuh"

/* Key and place as one number that sorts larger keys first, then earlier places. */
__device__ __forceinline__ uint64_t pair_of(uint32_t key, uint32_t place) { return (uint64_t)~key << 32 | place; }

/* ---- top_k of short lines -------------------------------------------------------------------------------------- */

enum { SHORT = 1024, SORTED = 128 };

__device__ __forceinline__ uint32_t warp_count(uint32_t v)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(~0u, v);
#else
  for (int o = 16; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
  return v;
#endif
}

/* HELD: elements a lane. */
template <int HELD, int BYTES> __global__ static void __launch_bounds__(THREADS) top_k_bits(const __grid_constant__ lines s)
{
  __shared__ uint64_t of_block[WARPS][SORTED];
  const uint32_t lane = threadIdx.x % 32, line = blockIdx.x * WARPS + threadIdx.x / 32, before = (1u << lane) - 1;
  if (line >= s.count) return;
  const int64_t from = line_begin(s, line, s.x_stride), to = line_begin(s, line, s.y_stride), number = line_begin(s, line, s.index_stride);
  uint64_t *const pair = of_block[threadIdx.x / 32];
  typename source<BYTES>::raw raw[HELD];
  uint32_t key[HELD];
#pragma unroll
  for (int i = 0; i < HELD; i++) raw[i] = ((const typename source<BYTES>::raw *)s.x)[from + min(i * 32 + lane, s.n - 1) * s.x_step];
#pragma unroll
  for (int i = 0; i < HELD; i++) key[i] = i * 32 + lane < s.n ? key_from<BYTES>(s, raw[i]) : 0;

  /* the largest key that k keys reach; where just k reach a smaller one, that will do */
  uint32_t least = 0, reach = s.n;
  for (uint32_t bit = 1u << 31; bit && reach != s.k; bit >>= 1) {
    uint32_t count = 0;
#pragma unroll
    for (int i = 0; i < HELD; i++) count += key[i] >= (least | bit);
    count = warp_count(count);
    if (count >= s.k) least |= bit, reach = count;
  }
  /* those above it, and of those that equal it the first */
  const uint32_t equals = reach - s.k;    /* too many */
  uint32_t chosen = 0, more = 0;
  if (equals)
#pragma unroll
    for (int i = 0; i < HELD; i++) more += i * 32 + lane < s.n && key[i] > least;
  uint32_t room = s.k - (equals ? warp_count(more) : 0);      /* for equals */
#pragma unroll
  for (int i = 0; i < HELD; i++) {
    const uint32_t place = i * 32 + lane;
    const bool there = place < s.n, same = there && key[i] == least;
    const uint32_t sames = __ballot_sync(~0u, same);
    const bool takes = (there && key[i] > least) || (same && __popc(sames & before) < (int)room);
    const uint32_t taken = __ballot_sync(~0u, takes);
    if (takes) pair[chosen + __popc(taken & before)] = pair_of(key[i], place);
    chosen += __popc(taken), room -= min(room, (uint32_t)__popc(sames));
  }
  uint32_t sorted = 1;
  while (sorted < s.k) sorted *= 2;
  for (uint32_t i = s.k + lane; i < sorted; i += 32) pair[i] = ~0ull;
  __syncwarp();
  for (uint32_t size = 2; size <= sorted; size *= 2)
    for (uint32_t apart = size / 2; apart; apart /= 2) {
      for (uint32_t i = lane; i < sorted / 2; i += 32) {
        const uint32_t a = 2 * i - (i & (apart - 1)), b = a + apart;
        const uint64_t low = pair[a], high = pair[b];
        if ((low > high) == !(a & size)) pair[a] = high, pair[b] = low;
      }
      __syncwarp();
    }
  for (uint32_t i = lane; i < s.k; i += 32) put(s, from, to, number, i, (uint32_t)pair[i]);
}

/* ---- top_k of long lines ---------------------------------------------------------------------------------------- */

/* MOST: largest k; ROOM: candidates to sort, unless k is larger */
enum { CROWD = 512, BINS = 2048, MOST = 2048, ROOM = 1024, GROUPS = 8 };      /* GROUPS: of a thread */

/* BYTES 8: of the pairs left by parts. */
template <int BYTES> __device__ __forceinline__ uint64_t pair_from(const lines &s, typename source<BYTES>::raw raw, uint32_t place)
{
  if constexpr (BYTES == 8) return raw;
  else return pair_of(key_from<BYTES>(s, raw), place);
}

/* Calls f(pair, group) for n elements from x on, the first of which has number `first`, in any order: 16 aligned bytes at a time, the
 * elements before and after them one at a time. */
template <int BYTES, class F> __device__ __forceinline__ void each_pair(const lines &s, const void *x, uint32_t first, uint32_t n, F f)
{
  typedef typename source<BYTES>::raw raw;
  constexpr int V = 16 / BYTES, AHEAD = BYTES < 4 ? BYTES : 4;
  const int64_t step = BYTES == 8 ? 1 : s.x_step;
  const uint32_t lead = min(n, (uint32_t)(-(uintptr_t)x & 15) / BYTES), words = step == 1 ? (n - lead) / V : 0;
  for (uint32_t i = threadIdx.x; i < words; i += AHEAD * CROWD) {
    union { uint4 word; raw element[V]; } held[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      held[u].word = i + u * CROWD < words ? ((const uint4 *)((const raw *)x + lead))[i + u * CROWD] : uint4();
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (i + u * CROWD < words)
#pragma unroll
        for (int e = 0; e < V; e++) f(pair_from<BYTES>(s, held[u].element[e], first + lead + (i + u * CROWD) * V + e), (u * V + e) % GROUPS);
  }
  for (uint32_t i = threadIdx.x; i < n - words * V; i += CROWD) {
    const uint32_t place = i < lead ? i : i + words * V;
    f(pair_from<BYTES>(s, ((const raw *)x)[place * step], first + place), 0);
  }
}

/* Puts all pairs into pair[] whose keys reach a bound that at least `chosen` do; returns how many reach it: those above MOST are missing. */
template <int BYTES>
__device__ __forceinline__ uint32_t gather_above(const lines &s, const void *x, uint32_t first, uint32_t n, uint32_t chosen, uint64_t *pair)
{
  __shared__ uint32_t count[32], held;
  const uint32_t t = threadIdx.x;
  uint32_t best[GROUPS] = {}, least = 0, reach = 0;
  if (t < 32) count[t] = held = 0;
  each_pair<BYTES>(s, x, first, n, [&](uint64_t p, int group) { best[group] = max(best[group], ~(uint32_t)(p >> 32)); });
  __syncthreads();
  for (int bit = 31; bit >= 0 && (!reach || reach > chosen + 15); bit--) {      /* a few more cost less than further bits */
    uint32_t own = 0;
#pragma unroll
    for (int i = 0; i < GROUPS; i++) own += best[i] >= (least | 1u << bit);
    own = warp_count(own);
    if (t % 32 == 0) atomicAdd(&count[bit], own);
    __syncthreads();
    if (count[bit] >= chosen) least |= 1u << bit, reach = count[bit];
  }
  each_pair<BYTES>(s, x, first, n, [&](uint64_t p, int) {
    if (~(uint32_t)(p >> 32) < least || *(volatile uint32_t *)&held > MOST) return;
    const uint32_t at = atomicAdd(&held, 1u);
    if (at < MOST) pair[at] = p;
  });
  __syncthreads();
  return held;
}

/* A block for each part of a line (BYTES 8: for each line). last: writes the line's result, else candidates to workspace. */
template <int BYTES> __global__ static void __launch_bounds__(CROWD) top_k_radix(const __grid_constant__ lines s, bool last)
{
  __shared__ uint64_t pair[MOST];
  __shared__ uint32_t bin[BINS], part_sum[CROWD / 32], found[3], held;
  uint32_t t = threadIdx.x, line = BYTES == 8 ? blockIdx.x : blockIdx.x / s.parts, part = BYTES == 8 ? 0 : blockIdx.x % s.parts;
  uint32_t first = part * s.part, n = BYTES == 8 ? s.parts * s.k : min(s.n - first, s.part), all;
  int64_t from = line_begin(s, line, s.x_stride);
  const void *x = BYTES == 8 ? (const void *)((const uint64_t *)s.sums + (int64_t)line * n)
                             : (const char *)s.x + (from + first * s.x_step) * (BYTES == 8 ? 1 : BYTES);
  uint32_t chosen = min(s.k, n), m = chosen <= ROOM && n > ROOM ? gather_above<BYTES>(s, x, first, n, chosen, pair) : ~0u;
  if (m > MOST) {
    const int64_t step = BYTES == 8 ? 1 : s.x_step;
    /* find the prefix of the wanted-th pair, 11 bits a pass, until few enough pairs share it */
    uint32_t wanted = chosen, known = 0, alike = n, room = s.k > ROOM ? MOST : ROOM;
    int shift = 32;
    while (shift > 0 && chosen - wanted + alike > room) {
      int above = shift;
      shift = shift == 32 ? 21 : shift == 21 ? 10 : 0;
      uint32_t mask = (1u << (above - shift)) - 1;
      for (uint32_t i = t; i < BINS; i += CROWD) bin[i] = 0;
      __syncthreads();
      each_pair<BYTES>(s, x, first, n, [&](uint64_t p, int) {
        uint32_t high = (uint32_t)(p >> 32);
        if (above == 32 || high >> above == known) atomicAdd(&bin[high >> shift & mask], 1u);
      });
      __syncthreads();
      uint32_t own = 0;
      for (int i = 0; i < BINS / CROWD; i++) own += bin[t * (BINS / CROWD) + i];
      uint32_t before = block_before<CROWD>(own, part_sum, &all);
      if (before < wanted && wanted <= before + own) {
        uint32_t i = t * (BINS / CROWD);
        for (; before + bin[i] < wanted; i++) before += bin[i];
        found[0] = i, found[1] = wanted - before, found[2] = bin[i];
      }
      __syncthreads();
      known = (above == 32 ? 0 : known << (above - shift)) | found[0];
      wanted = found[1], alike = found[2];
      __syncthreads();
    }
    if (t == 0) held = 0;
    __syncthreads();
    bool crowded = chosen - wanted + alike > room;          /* too many equals: take the first of them, in order */
    each_pair<BYTES>(s, x, first, n, [&](uint64_t p, int) {
      uint32_t high = shift == 32 ? 0 : (uint32_t)(p >> 32) >> shift;
      if (high < known || (high == known && !crowded)) pair[atomicAdd(&held, 1u)] = p;
    });
    __syncthreads();
    m = held;
    uint32_t equals = 0;
    for (uint32_t start = 0; crowded && start < n && equals < wanted; start += CROWD) {
      uint64_t p = start + t < n ? pair_from<BYTES>(s, ((const typename source<BYTES>::raw *)x)[(start + t) * step], first + start + t) : ~0ull;
      bool equal = start + t < n && (uint32_t)(p >> 32) == known;
      uint32_t at = equals + block_before<CROWD>((uint32_t)equal, part_sum, &all);
      if (equal && at < wanted) pair[m + at] = p;
      equals += all;
    }
    if (crowded) m += wanted;
  }
  uint32_t sorted = 1;
  while (sorted < m) sorted *= 2;
  for (uint32_t i = m + t; i < sorted; i += CROWD) pair[i] = ~0ull;
  bool apart = true;                      /* steps of at most 32 stay within 64 pairs, which are one warp's */
  for (uint32_t size = 2; size <= sorted; size *= 2)
    for (uint32_t step = size / 2; step; step /= 2) {
      if (apart || step > 32) __syncthreads();
      else __syncwarp();
      apart = step > 32;
      for (uint32_t i = t; i < sorted / 2; i += CROWD) {
        uint32_t a = 2 * i - (i & (step - 1)), b = a + step;
        uint64_t u = pair[a], v = pair[b];
        if ((u > v) == ((a & size) == 0)) pair[a] = v, pair[b] = u;
      }
    }
  __syncthreads();
  if (!last) {
    for (uint32_t i = t; i < s.k; i += CROWD) ((uint64_t *)s.sums)[(int64_t)blockIdx.x * s.k + i] = i < chosen ? pair[i] : ~0ull;
    return;
  }
  int64_t to = line_begin(s, line, s.y_stride), number = line_begin(s, line, s.index_stride);
  for (uint32_t i = t; i < s.k; i += CROWD) put(s, from, to, number, i, (uint32_t)pair[i]);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

static qn_status top_k_prepare(const qn_request *r, qn_prepared *out)
{
  lines s;
  const char *why = ranking_of(&s, r);
  if (why) return qn_refuse(out, why, "x", "", "%s", "");
  if (qn_kit_bytes(s.x_dtype) == 8) return qn_refuse(out, "keys have 32 bits", "x", "elements of at most 32 bits", "%s", "64");
  if (s.k > MOST) return qn_refuse(out, "the chosen are sorted in shared memory", "k", "2048 at most", "%u", s.k);
  int64_t parts = qn_max_i64(1, qn_min_i64(528 / s.count, s.n / (4 * qn_max_i64(s.k, 1024))));   /* independent of the device */
  s.part = (uint32_t)qn_ceil_div(s.n, parts);
  s.parts = (uint32_t)qn_ceil_div(s.n, s.part);
  if (s.parts > 1) out->workspace = (size_t)s.count * s.parts * s.k * 8;
  const qn_node *op = &r->op[0];
  return keep(out, &s, qn_role(op, QN_ROLE_TOP_K_X), qn_role(op, QN_ROLE_TOP_K_Y), qn_role(op, QN_ROLE_TOP_K_INDICES));
}

template <int BYTES> static void top_k_launch(const lines &s, cudaStream_t stream)
{
  const uint32_t blocks = (s.count + WARPS - 1) / WARPS;
  if (s.n > SHORT || s.k > SORTED) top_k_radix<BYTES><<<s.count * s.parts, CROWD, 0, stream>>>(s, s.parts == 1);
  else if (s.n <= 32 * 8) top_k_bits<8, BYTES><<<blocks, THREADS, 0, stream>>>(s);
  else top_k_bits<32, BYTES><<<blocks, THREADS, 0, stream>>>(s);
  if (s.parts > 1) top_k_radix<8><<<s.count, CROWD, 0, stream>>>(s, true);
}

static qn_status top_k_run(const qn_prepared *p, const qn_launch *launch)
{
  const line_state *st = (const line_state *)p->state;
  lines s = st->s;
  s.x = launch->ptr[st->x];
  s.y = launch->ptr[st->y];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  s.sums = launch->workspace;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  switch (qn_kit_bytes(s.x_dtype)) {
  case 4:  top_k_launch<4>(s, stream); break;
  case 2:  top_k_launch<2>(s, stream); break;
  default: top_k_launch<1>(s, stream); break;
  }
  return cuda_check(cudaGetLastError(), "top_k");
}

static const qn_engine row[] = {
  { "lines", QN_OP_TOP_K, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    top_k_prepare, nullptr, top_k_run, cuda_release },
  { "lines", QN_OP_SORT, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    top_k_prepare, nullptr, top_k_run, cuda_release },
};
CUDA_ENGINES(select_lines) = { row, sizeof row / sizeof *row };
