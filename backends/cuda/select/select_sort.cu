/* select_sort.cu -- sort, and top_k of more than select_lines takes: a stable counting sort of each line by digits of the keys, the lowest
 * first (select_order.cuh). Keys of 64 bits are sorted by their lower words, then by their upper ones. The last pass writes the elements
 * themselves. Refused: 2^31 lines, or elements of a line; 64 bits in short lines. */
#include "select_lines.cuh"
#include "select_order.cuh"

struct sorting : lines {
  tiles    tile;                          /* of a line */
  uint32_t least, bits, passes;           /* of a word of the keys, bits that differ; passes over them */
  uint32_t *counts;                       /* workspace: of each tile of each line, by digit */
};

struct pass { digit d; const uint2 *from; uint2 *to; bool upper, turns; };      /* from NULL: x; to NULL: y; turns: first of the upper words */

template <int BYTES> __device__ __forceinline__ uint2 entry_at(const sorting &s, const pass &p, uint32_t line, int64_t x, uint32_t i)
{
  uint32_t place = i;
  if (p.from) {
    const uint2 e = p.from[(int64_t)line * s.n + i];
    if (BYTES < 8 || !p.turns) return e;
    place = e.y;
  }
  const typename source<BYTES>::key key = ~key_from<BYTES>(s, ((const typename source<BYTES>::raw *)s.x)[x + place * s.x_step]);
  if constexpr (BYTES == 8) return make_uint2((uint32_t)(p.upper ? key >> 32 : key), place);
  else return make_uint2(key, place);
}

template <int BYTES>
__global__ static void __launch_bounds__(SORTERS) sort_count(const __grid_constant__ sorting s, const __grid_constant__ pass p)
{
  __shared__ uint32_t bin[BINS];
  const uint32_t line = blockIdx.x / s.tile.count;
  const int64_t x = line_begin(s, line, s.x_stride);
  count_tile(s.tile, blockIdx.x % s.tile.count, p.d, bin, [&](uint32_t i) { return entry_at<BYTES>(s, p, line, x, i); });
  for (uint32_t b = threadIdx.x; b < p.d.bins; b += SORTERS) s.counts[(int64_t)blockIdx.x * p.d.bins + b] = bin[b];
}

template <int BYTES>
__global__ static void __launch_bounds__(SORTERS) sort_order(const __grid_constant__ sorting s, const __grid_constant__ pass p)
{
  const uint32_t line = blockIdx.x / s.tile.count;
  const int64_t x = line_begin(s, line, s.x_stride), y = line_begin(s, line, s.y_stride), number = line_begin(s, line, s.index_stride);
  order_tile(s.tile, blockIdx.x % s.tile.count, p.d, s.counts + (int64_t)line * s.tile.count * p.d.bins,
             [&](uint32_t i) { return entry_at<BYTES>(s, p, line, x, i); },
             [&](uint32_t i, uint2 e) {
               if (p.to) p.to[(int64_t)line * s.n + i] = e;
               else if (i < s.k) put(s, x, y, number, i, e.y);
             });
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct sort_state { sorting s; int32_t x, y, indices; };

/* Between passes: the first reads x, the last writes y. */
static inline uint32_t lists_of(const sorting &s) { return s.passes > 2 ? 2 : s.passes - 1; }

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  sort_state st = { {}, qn_role(op, QN_ROLE_TOP_K_X), qn_role(op, QN_ROLE_TOP_K_Y), qn_role(op, QN_ROLE_TOP_K_INDICES) };
  const char *why = ranking_of(&st.s, r);
  if (why) return qn_refuse(out, why, "x", "", "%s", "");
  const int bytes = (int)qn_kit_bytes(st.s.x_dtype);
  if (bytes == 8 && st.s.n <= 256) return qn_refuse(out, "eight launches cost more than all comparisons", "x", "lines above 256", "%u", st.s.n);
  st.s.tile = tiles_of(st.s.n);
  if ((double)st.s.count * st.s.tile.count > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "x", "2^31", "%u", st.s.count);
  st.s.least = st.s.x_dtype == QN_BF16 ? 16 : st.s.x_dtype == QN_F16 ? 13 : 0;        /* what 32-bit floats have more is 0, or all 1 */
  st.s.bits = bytes == 1 ? 8 : 32 - st.s.least;
  st.s.passes = passes_of(st.s.bits) * (bytes == 8 ? 2 : 1);
  out->workspace = (uint64_t)st.s.count * (lists_of(st.s) * sizeof(uint2) * st.s.n + (st.s.tile.count > 1 ? st.s.tile.count * BINS * 4 : 0));
  return cuda_keep(out, &st, sizeof st);
}

template <int BYTES> static void sort_launch(const sorting &s, uint2 *list, cudaStream_t stream)
{
  pass now = {};
  for (uint32_t k = 0, of_word = passes_of(s.bits); k < s.passes; k++) {
    now.d = digit_of(s.least, s.bits, k % of_word);
    now.upper = k >= of_word, now.turns = k == of_word;
    now.to = k + 1 == s.passes ? nullptr : list + k % 2 * ((int64_t)s.count * s.n);
    if (s.tile.count > 1) sort_count<BYTES><<<s.count * s.tile.count, SORTERS, 0, stream>>>(s, now);
    sort_order<BYTES><<<s.count * s.tile.count, SORTERS, 0, stream>>>(s, now);
    now.from = now.to;
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const sort_state *st = (const sort_state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  sorting s = st->s;
  s.x = launch->ptr[st->x];
  s.y = launch->ptr[st->y];
  s.indices = st->indices < 0 ? nullptr : launch->ptr[st->indices];
  uint2 *const list = (uint2 *)launch->workspace;
  s.counts = (uint32_t *)(list + lists_of(s) * ((int64_t)s.count * s.n));
  switch (qn_kit_bytes(s.x_dtype)) {
  case 8:  sort_launch<8>(s, list, stream); break;
  case 4:  sort_launch<4>(s, list, stream); break;
  case 2:  sort_launch<2>(s, list, stream); break;
  default: sort_launch<1>(s, list, stream); break;
  }
  return cuda_check(cudaGetLastError(), "sort");
}

static const qn_engine row[] = {
  { "digits", QN_OP_SORT, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
  { "digits", QN_OP_TOP_K, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(select_sort) = { row, sizeof row / sizeof *row };
