/* select_order.cuh -- one pass of a stable counting sort of (key, place) by a digit of the key, for select_scatter.cu and select_sort.cu. A list
 * is cut into tiles, a block each: count_tile, then order_tile in a second launch, which starts from the counts of all tiles. A
 * list of one tile needs no count. sort_list makes all passes over one list; a short one it sorts in a single launch. */
#pragma once
#include "cuda_backend.h"
#include "kit/sums.cuh"

enum { SORTERS = 512, SORT_WARPS = SORTERS / 32, EACH = 4, TILE = SORTERS * EACH, DIGIT = 10, BINS = 1 << DIGIT, MOST_TILES = 128 };

struct digit { uint32_t shift, bins; };
struct tiles {
  uint32_t n, count, each;                /* of a list: its length, tiles, places of a tile */
};

static inline tiles tiles_of(int64_t n)
{
  const int64_t each = qn_ceil_div(qn_ceil_div(n, MOST_TILES), TILE) * TILE;
  return { (uint32_t)n, (uint32_t)qn_ceil_div(n, each), (uint32_t)each };
}

/* The digits that cut `bits` bits from `least` on. */
static inline uint32_t passes_of(uint32_t bits) { return (bits + DIGIT - 1) / DIGIT; }
static inline digit digit_of(uint32_t least, uint32_t bits, uint32_t pass)
{
  const uint32_t passes = passes_of(bits), from = bits * pass / passes, to = bits * (pass + 1) / passes;
  return { least + from, 1u << (to - from) };
}

/* bin[v] = how many keys of the tile have digit v. entry_at(i): the i-th (key, place) of the list. */
template <class F> __device__ __forceinline__ void count_tile(const tiles &s, uint32_t tile, digit d, uint32_t *bin, F entry_at)
{
  const uint32_t t = threadIdx.x, begin = tile * s.each, end = min(s.n, begin + s.each);
  for (uint32_t b = t; b < d.bins; b += SORTERS) bin[b] = 0;
  __syncthreads();
  for (uint32_t i = begin + t; i < end; i += TILE) {
    uint32_t key[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) key[k] = i + k * SORTERS < end ? entry_at(i + k * SORTERS).x : 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (i + k * SORTERS < end) atomicAdd(&bin[key[k] >> d.shift & (d.bins - 1)], 1u);
  }
  __syncthreads();
}

/* counts: of the list's tiles, by digit. put(i, entry): the i-th of the list sorted by this digit. */
template <class F, class G>
__device__ __forceinline__ void order_tile(const tiles &s, uint32_t tile, digit d, const uint32_t *counts, F entry_at, G put)
{
  static_assert(BINS == 2 * SORTERS, "a thread has two bins");
  __shared__ uint2 base[SORTERS];         /* where the next row of each digit goes */
  __shared__ uint32_t before[SORT_WARPS * SORTERS], part[SORT_WARPS];       /* of each warp, by digit: 16 bits each */
  const uint32_t t = threadIdx.x, lane = t % 32, warp = t / 32, pairs = d.bins / 2, below = (1u << lane) - 1;
  uint32_t *const next = (uint32_t *)base;
  uint16_t *const own = (uint16_t *)(before + warp * pairs);

  /* rows of smaller digits, and of equal digits in earlier tiles */
  uint2 all = {}, under = {};
  if (s.count == 1) {
    count_tile(s, tile, d, next, entry_at);
    if (t < pairs) all = base[t];
  } else if (t < pairs) {
#pragma unroll 8
    for (uint32_t k = 0; k < s.count; k++) {
      const uint2 c = ((const uint2 *)counts)[k * pairs + t];
      all.x += c.x, all.y += c.y;
      if (k < tile) under.x += c.x, under.y += c.y;
    }
  }
  uint32_t total;
  const uint32_t smaller = block_before<SORTERS>(all.x + all.y, part, &total);
  base[t] = make_uint2(smaller + under.x, smaller + all.x + under.y);

  const uint32_t begin = tile * s.each, end = min(s.n, begin + s.each);
  for (uint32_t start = begin; start < end; start += TILE) {
    for (uint32_t i = t; i < SORT_WARPS * pairs; i += SORTERS) before[i] = 0;
    uint2 e[EACH];
    uint32_t v[EACH], rank[EACH], first = start + warp * 32 * EACH + lane;
#pragma unroll
    for (int k = 0; k < EACH; k++) e[k] = first + k * 32 < end ? entry_at(first + k * 32) : make_uint2(0, 0);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++) {
      const bool there = first + k * 32 < end;
      v[k] = e[k].x >> d.shift & (d.bins - 1);
      const uint32_t alike = __match_any_sync(~0u, there ? v[k] : BINS);
      rank[k] = own[v[k]] + __popc(alike & below);
      __syncwarp();
      if (there && !(alike & below)) own[v[k]] += (uint16_t)__popc(alike);
      __syncwarp();
    }
    __syncthreads();
    uint32_t sum = 0;                     /* two digits at once: a tile has fewer than 2^16 places */
    if (t < pairs)
      for (uint32_t w = 0; w < SORT_WARPS; w++) {
        const uint32_t c = before[w * pairs + t];
        before[w * pairs + t] = sum;
        sum += c;
      }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (first + k * 32 < end) put(next[v[k]] + own[v[k]] + rank[k], e[k]);
    __syncthreads();
    if (t < pairs) base[t].x += sum & 0xffff, base[t].y += sum >> 16;
  }
}

/* ---- a list by all its digits ------------------------------------------------------------------------------------ */

/* S has the list's `tile`, `counts` in workspace, and an entry_at(s, from, i) beside it: from NULL, the list as it is at first. */
template <class S> __global__ static void __launch_bounds__(SORTERS) list_count(const __grid_constant__ S s, digit d, const uint2 *from)
{
  __shared__ uint32_t bin[BINS];
  count_tile(s.tile, blockIdx.x, d, bin, [&](uint32_t i) { return entry_at(s, from, i); });
  for (uint32_t b = threadIdx.x; b < d.bins; b += SORTERS) s.counts[blockIdx.x * d.bins + b] = bin[b];
}
template <class S>
__global__ static void __launch_bounds__(SORTERS) list_order(const __grid_constant__ S s, digit d, const uint2 *from, uint2 *to)
{
  order_tile(s.tile, blockIdx.x, d, s.counts, [&](uint32_t i) { return entry_at(s, from, i); }, [&](uint32_t i, uint2 e) { to[i] = e; });
}

/* A short list: an entry goes to the place that is the number of those before it, counted by all warps of its block. */
enum { SHORT_LIST = 4096, RANKERS = 512, RANK_WARPS = RANKERS / 32 };

template <class S> __global__ static void __launch_bounds__(RANKERS) list_rank(const __grid_constant__ S s, uint2 *to)
{
  __shared__ uint4 four[SHORT_LIST / 4];
  __shared__ uint32_t rank[32];
  uint32_t *const key = (uint32_t *)four;
  const uint32_t t = threadIdx.x, n = s.tile.n, fours = (n + 3) / 4, mine = blockIdx.x * 32 + t % 32;
  for (uint32_t i = t; i < fours * 4; i += RANKERS) key[i] = i < n ? entry_at(s, nullptr, i).x : ~0u;
  if (t < 32) rank[t] = 0;
  __syncthreads();
  const uint32_t share = (fours + RANK_WARPS - 1) / RANK_WARPS, begin = t / 32 * share, end = min(fours, begin + share);
  const uint32_t own = mine < n ? key[mine] : 0;
  uint32_t before = 0;
#pragma unroll 4
  for (uint32_t i = begin; i < end; i++) {                /* of equal ones the earlier comes first */
    const uint4 k = four[i];
    before += (k.x < own + (4 * i < mine)) + (k.y < own + (4 * i + 1 < mine));
    before += (k.z < own + (4 * i + 2 < mine)) + (k.w < own + (4 * i + 3 < mine));
  }
  atomicAdd(&rank[t % 32], before);
  __syncthreads();
  if (t < 32 && mine < n) to[rank[t]] = entry_at(s, nullptr, mine);
}

/* Leaves it in `sorted`; keys are at most `largest`. other: not touched where one digit holds them. */
template <class S> static void sort_list(const S &s, uint32_t largest, uint2 *sorted, uint2 *other, cudaStream_t stream)
{
  if (s.tile.n <= SHORT_LIST) {
    list_rank<<<(s.tile.n + 31) / 32, RANKERS, 0, stream>>>(s, sorted);
    return;
  }
  const uint2 *from = nullptr;
  uint32_t bits = 0;
  while (bits < 32 && largest >> bits) bits++;
  for (uint32_t pass = 0, passes = passes_of(bits); pass < passes; pass++) {
    const digit d = digit_of(0, bits, pass);
    uint2 *const to = (passes - pass) % 2 ? sorted : other;
    if (s.tile.count > 1) list_count<<<s.tile.count, SORTERS, 0, stream>>>(s, d, from);
    list_order<<<s.tile.count, SORTERS, 0, stream>>>(s, d, from, to);
    from = to;
  }
}
