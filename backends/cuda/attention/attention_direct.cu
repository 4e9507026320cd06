/* attention_direct.cu -- attention and its gradient, in double, any strides: a block of threads for each query, each key, each head; a
 * warp for each element of a bias' gradient. Scores are computed again for whoever wants them, in tiles of a key (a query) a thread,
 * and a row's outputs in strips of a column a thread. Nothing that a query does not see is read.
 *
 *   s_j = softcap(scale q k_j) + bias - slope |i + shift - j|      w_j = exp(s_j - m)
 *   y = sum w_j n_j v_j / (sum w_j + exp(sink - m))      lse = m + ln of the divisor
 *   P_j = exp(s_j - lse)      D = dy y - dlse      dS_j = P_j (n_j dy v_j - D)      t = tanh of the softcap
 *   dq = scale sum dS_j (1 - t^2) k_j      dk_j = scale sum dS_j (1 - t^2) q_i      dv_j = sum n_j P_j dy_i
 *   dbias = sum dS      dsink = -sum exp(sink - lse) D */
#include "kit/direct.cuh"
#include "engines.h"
#include "kit/random.cuh"

enum { THREADS = 128 };
static const int64_t MOST_BLOCKS = 65535;

/* Of rank 4 at most: 30 of them fit into a kernel's parameters. */
struct view {
  void    *p;
  uint32_t dtype;
  int32_t  rank;
  int64_t  dim[4], stride[4];

  __device__ double load(int64_t i) const { return element_load<double>(p, i, dtype); }
  __device__ int64_t integer(int64_t i) const { return element_load<int64_t>(p, i, dtype); }
  __device__ void store(int64_t i, double x) const { element_store(p, i, dtype, x); }
  __device__ int64_t row(int64_t a, int64_t b, int64_t c) const { return a * stride[0] + b * stride[1] + c * stride[2]; }
  /* Of a tensor that broadcasts. */
  __device__ int64_t spread(int64_t a, int64_t b, int64_t c, int64_t d) const
  {
    return (dim[0] == 1 ? 0 : a * stride[0]) + (dim[1] == 1 ? 0 : b * stride[1]) + (dim[2] == 1 ? 0 : c * stride[2])
         + (dim[3] == 1 ? 0 : d * stride[3]);
  }
};

/* A sequence: its first token in q and in k, its extents, the diagonal. */
struct sequence { int64_t b, q0, k0, nq, nk, shift; };

struct problem {
  view q, k, v, bias, mask, blocks, slopes, sink, q_lengths, kv_lengths, q_starts, kv_starts, pages;
  view q_scale, k_scale, v_scale, y_scale, y, lse, max, amax, dy, dlse, dq, dk, dv, dbias, dsink;
  random_key seed, offset;
  int64_t  left, right, block_q, block_kv;
  bool     top_left;
  double   softcap, scale, kept;
  uint32_t threshold;
  int64_t  sequences, heads, group, sq, skv, d, dv_size;
  double  *part, *big_d;                  /* workspace: max |y| of each block; D of each row of q */

  __device__ static int64_t clamped(int64_t x, int64_t most) { return x < 0 ? 0 : x > most ? most : x; }
  __device__ static void extent(const view &starts, const view &lengths, int64_t b, int64_t tokens, int64_t *first, int64_t *n)
  {
    *first = 0, *n = tokens;
    if (starts.p) {
      *first = clamped(starts.integer(b * starts.stride[0]), tokens);
      int64_t end = clamped(starts.integer((b + 1) * starts.stride[0]), tokens);
      *n = end > *first ? end - *first : 0;
    }
    if (lengths.p) *n = clamped(lengths.integer(b * lengths.stride[0]), *n);
  }
  __device__ sequence of(int64_t b) const
  {
    sequence s;
    s.b = b;
    extent(q_starts, q_lengths, b, sq, &s.q0, &s.nq);
    extent(kv_starts, kv_lengths, b, skv, &s.k0, &s.nk);
    s.shift = top_left ? 0 : s.nk - s.nq;
    return s;
  }
  /* The sequence of a token, and its place there; -1: none. */
  __device__ int64_t owner(const view &starts, bool keys, int64_t storage, int64_t token, sequence *s) const
  {
    int64_t low = storage;
    if (starts.p) {                       /* the last that starts at or before the token */
      int64_t high = sequences - 1;
      low = 0;
      while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (starts.integer(middle * starts.stride[0]) <= token) low = middle;
        else high = middle - 1;
      }
      if (sequences == 0) return -1;
    }
    *s = of(low);
    int64_t at = token - (keys ? s->k0 : s->q0);
    return at >= 0 && at < (keys ? s->nk : s->nq) ? at : -1;
  }

  __device__ __noinline__ static double value(const view &t, const view &scale, int64_t a, int64_t b, int64_t c, int64_t d)
  {
    double x = t.load(t.row(a, b, c) + d * t.stride[3]);
    if (!scale.p) return x;
    if (!scale.rank) return x * scale.load(0);
    return x * scale.load(scale.row(a / (t.dim[0] / scale.dim[0]), b / (t.dim[1] / scale.dim[1]), c / (t.dim[2] / scale.dim[2]))
                          + d / (t.dim[3] / scale.dim[3]) * scale.stride[3]);
  }
  __device__ int64_t query_storage(const sequence &s) const { return q_starts.p ? 0 : s.b; }

  /* Where key j lies: storage and token; false if query i does not see it. */
  __device__ __noinline__ bool seen(const sequence &s, int64_t h, int64_t i, int64_t j, int64_t *storage, int64_t *token) const
  {
    int64_t at = i + s.shift;
    if ((left >= 0 && j < at - left) || (right >= 0 && j > at + right)) return false;
    if (mask.p && !((const uint8_t *)mask.p)[mask.spread(s.b, h, s.q0 + i, s.k0 + j)]) return false;
    if (blocks.p) {
      int64_t block = j / block_kv;
      int64_t byte = (blocks.dim[0] == 1 ? 0 : s.b * blocks.stride[0]) + (blocks.dim[1] == 1 ? 0 : h * blocks.stride[1])
                   + i / block_q * blocks.stride[2] + block / 8 * blocks.stride[3];
      if (!(((const uint8_t *)blocks.p)[byte] >> block % 8 & 1)) return false;
    }
    *storage = kv_starts.p ? 0 : s.b, *token = s.k0 + j;
    if (!pages.p) return true;
    *storage = pages.integer(s.b * pages.stride[0] + j / k.dim[2] * pages.stride[1]), *token = j % k.dim[2];
    return *storage >= 0 && *storage < k.dim[0];
  }

  __device__ double keep(const sequence &s, int64_t h, int64_t i, int64_t j) const
  {
    if (!threshold) return 1;
    uint32_t w[4];
    uint64_t head = (uint64_t)(s.b * heads + h);
    qn_random_words(w, seed.get(), offset.get() + (head << 32), (uint64_t)j / 8 & 0xffffffff | (uint64_t)i << 32);
    uint32_t word = j & 4 ? (j & 2 ? w[3] : w[2]) : (j & 2 ? w[1] : w[0]);
    return (word >> 16 * (j & 1) & 0xffff) < threshold ? 0 : kept;
  }

  __device__ __noinline__ double score(const sequence &s, int64_t h, int64_t i, int64_t j, int64_t storage, int64_t token,
                                       double *slope) const
  {
    double x = 0;
    for (int64_t c = 0; c < d; c++)
      x += value(q, q_scale, query_storage(s), h, s.q0 + i, c) * value(k, k_scale, storage, h / group, token, c);
    x *= scale, *slope = 1;
    if (softcap > 0) {
      double t = tanh(x / softcap);
      x = softcap * t, *slope = 1 - t * t;
    }
    if (bias.p) x += bias.load(bias.spread(s.b, h, s.q0 + i, s.k0 + j));
    if (slopes.p) {
      int64_t at = slopes.rank == 1 ? h * slopes.stride[0]
                 : (slopes.dim[0] == 1 ? 0 : s.b * slopes.stride[0]) + (slopes.dim[1] == 1 ? 0 : h * slopes.stride[1]);
      x -= slopes.load(at) * fabs((double)(i + s.shift - j));
    }
    return x;
  }
  __device__ double value_of_key(int64_t h, int64_t storage, int64_t token, int64_t column) const
  {
    return v.p ? value(v, v_scale, storage, h / group, token, column) : value(k, k_scale, storage, h / group, token, column);
  }
};

/* The sum (or, with `largest`, the maximum, NaN if any is) over a block's threads, in a fixed order, to all. */
template <bool largest> __device__ static double over_block(double x)
{
  __shared__ double part[THREADS];
  __syncthreads();
  part[threadIdx.x] = x;
  __syncthreads();
  for (int n = THREADS / 2; n; n /= 2) {
    if (threadIdx.x < n) {
      double a = part[threadIdx.x], b = part[threadIdx.x + n];
      part[threadIdx.x] = !largest ? a + b : a != a || b != b ? NAN : fmax(a, b);
    }
    __syncthreads();
  }
  return part[0];
}

/* ---- forward ---------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(THREADS) attention_direct(const __grid_constant__ problem p)
{
  __shared__ double weight[THREADS];
  __shared__ int64_t storage[THREADS], token[THREADS];
  double amax = 0, slope;
  for (int64_t row = blockIdx.x; row < p.q.dim[0] * p.heads * p.sq; row += gridDim.x) {
    int64_t t = row % p.sq, h = row / p.sq % p.heads, b = row / p.sq / p.heads, at_k, at_t;
    sequence s = {};
    int64_t i = p.owner(p.q_starts, false, b, t, &s), keys = i < 0 ? 0 : s.nk;
    double most = -INFINITY, sum = 0, sink = p.sink.p && i >= 0 ? p.sink.load(h * p.sink.stride[0]) : -INFINITY;
    for (int64_t j = threadIdx.x; j < keys; j += THREADS)
      if (p.seen(s, h, i, j, &at_k, &at_t)) {
        double x = p.score(s, h, i, j, at_k, at_t, &slope);
        most = x != x || most != most ? NAN : fmax(most, x);
      }
    most = over_block<true>(most);
    double m = most != most || sink != sink ? NAN : fmax(most, sink);
    bool bad = m != m || m == INFINITY;
    if (bad || m == -INFINITY) keys = 0;
    for (int64_t j = threadIdx.x; j < keys; j += THREADS)
      if (p.seen(s, h, i, j, &at_k, &at_t)) sum += exp(p.score(s, h, i, j, at_k, at_t, &slope) - m);
    double divisor = over_block<false>(sum) + (m == -INFINITY ? 0 : exp(sink - m));
    if (most == -INFINITY) keys = 0;

    for (int64_t first = 0; first < p.dv_size; first += THREADS) {
      int64_t column = first + threadIdx.x;
      double y = 0;
      for (int64_t tile = 0; tile < keys; tile += THREADS) {
        int64_t j = tile + threadIdx.x;
        __syncthreads();
        storage[threadIdx.x] = -1;
        if (j < keys && p.seen(s, h, i, j, &at_k, &at_t)) {
          double keep = p.keep(s, h, i, j);
          if (keep > 0) {
            weight[threadIdx.x] = exp(p.score(s, h, i, j, at_k, at_t, &slope) - m) * keep;
            storage[threadIdx.x] = at_k, token[threadIdx.x] = at_t;
          }
        }
        __syncthreads();
        for (int n = 0; n < THREADS && column < p.dv_size; n++)
          if (storage[n] >= 0) y += weight[n] * p.value_of_key(h, storage[n], token[n], column);
      }
      if (column >= p.dv_size) continue;
      y = bad ? NAN : divisor > 0 ? y / divisor : 0;
      amax = y != y || amax != amax ? NAN : fmax(amax, fabs(y));
      p.y.store(p.y.row(b, h, t) + column * p.y.stride[3], p.y_scale.p ? y * p.y_scale.load(0) : y);
    }
    if (threadIdx.x) continue;
    if (p.lse.p) p.lse.store(p.lse.row(b, h, t), bad ? NAN : divisor > 0 ? m + log(divisor) : -INFINITY);
    if (p.max.p) p.max.store(p.max.row(b, h, t), most);
  }
  if (!p.amax.p) return;
  amax = over_block<true>(amax);
  if (threadIdx.x == 0) p.part[blockIdx.x] = amax;
}

__global__ static void __launch_bounds__(THREADS) attention_amax_direct(const __grid_constant__ problem p, int64_t blocks)
{
  double amax = 0;
  for (int64_t n = threadIdx.x; n < blocks; n += THREADS) amax = p.part[n] != p.part[n] || amax != amax ? NAN : fmax(amax, p.part[n]);
  amax = over_block<true>(amax);
  if (threadIdx.x == 0) p.amax.store(0, amax);
}

/* ---- backward --------------------------------------------------------------------------------------- */

__global__ static void __launch_bounds__(THREADS) attention_row_sums_direct(const __grid_constant__ problem p)
{
  for (int64_t row = blockIdx.x; row < p.q.dim[0] * p.heads * p.sq; row += gridDim.x) {
    int64_t t = row % p.sq, h = row / p.sq % p.heads, b = row / p.sq / p.heads;
    double sum = 0;
    for (int64_t c = threadIdx.x; c < p.dv_size; c += THREADS)
      sum += p.dy.load(p.dy.row(b, h, t) + c * p.dy.stride[3]) * p.y.load(p.y.row(b, h, t) + c * p.y.stride[3]);
    sum = over_block<false>(sum);
    if (threadIdx.x == 0) p.big_d[row] = sum - (p.dlse.p ? p.dlse.load(p.dlse.row(b, h, t)) : 0);
  }
}

/* n P, dS, and dS through scale and softcap. */
struct pair { double p, ds, inner; };

__device__ __noinline__ static pair pair_of(const problem &p, const sequence &s, int64_t h, int64_t i, int64_t j, int64_t storage,
                                            int64_t token)
{
  int64_t b = p.query_storage(s), t = s.q0 + i;
  double slope, dp = 0, lse = p.lse.load(p.lse.row(b, h, t));
  if (lse == -INFINITY) return { 0, 0, 0 };
  double weight = exp(p.score(s, h, i, j, storage, token, &slope) - lse), keep = p.keep(s, h, i, j);
  for (int64_t c = 0; c < p.dv_size && keep > 0; c++)
    dp += p.dy.load(p.dy.row(b, h, t) + c * p.dy.stride[3]) * p.value_of_key(h, storage, token, c);
  double ds = weight * (keep * dp - p.big_d[(b * p.heads + h) * p.sq + t]);
  return { keep * weight, ds, p.scale * ds * slope };
}

__global__ static void __launch_bounds__(THREADS) attention_dq_direct(const __grid_constant__ problem p)
{
  __shared__ double inner[THREADS];
  __shared__ int64_t storage[THREADS], token[THREADS];
  for (int64_t row = blockIdx.x; row < p.q.dim[0] * p.heads * p.sq; row += gridDim.x) {
    int64_t t = row % p.sq, h = row / p.sq % p.heads, b = row / p.sq / p.heads, at_k, at_t;
    sequence s = {};
    int64_t i = p.owner(p.q_starts, false, b, t, &s), keys = i < 0 ? 0 : s.nk;
    for (int64_t first = 0; first < p.d; first += THREADS) {
      int64_t column = first + threadIdx.x;
      double sum = 0;
      for (int64_t tile = 0; tile < keys; tile += THREADS) {
        int64_t j = tile + threadIdx.x;
        __syncthreads();
        storage[threadIdx.x] = -1;
        if (j < keys && p.seen(s, h, i, j, &at_k, &at_t)) {
          inner[threadIdx.x] = pair_of(p, s, h, i, j, at_k, at_t).inner;
          storage[threadIdx.x] = at_k, token[threadIdx.x] = at_t;
        }
        __syncthreads();
        for (int n = 0; n < THREADS && column < p.d; n++)
          if (storage[n] >= 0) sum += inner[n] * p.k.load(p.k.row(storage[n], h / p.group, token[n]) + column * p.k.stride[3]);
      }
      if (column < p.d) p.dq.store(p.dq.row(b, h, t) + column * p.dq.stride[3], sum);
    }
  }
}

/* A strip of a key's gradient, of its value's, or of both where there is no v. */
__device__ static void key_strip(const problem &p, const sequence &s, int64_t g, int64_t j, bool values, int64_t first, const view &to,
                                 int64_t at, double *inner, double *weight, bool *sees)
{
  int64_t column = first + threadIdx.x, size = values ? p.dv_size : p.d, at_k, at_t, b = p.query_storage(s);
  double sum = 0;
  for (int64_t h = g * p.group; h < (g + 1) * p.group && j >= 0; h++)
    for (int64_t tile = 0; tile < s.nq; tile += THREADS) {
      int64_t i = tile + threadIdx.x;
      __syncthreads();
      sees[threadIdx.x] = i < s.nq && p.seen(s, h, i, j, &at_k, &at_t);
      if (sees[threadIdx.x]) {
        pair one = pair_of(p, s, h, i, j, at_k, at_t);
        inner[threadIdx.x] = one.inner, weight[threadIdx.x] = one.p;
      }
      __syncthreads();
      for (int n = 0; n < THREADS && column < size; n++) {
        if (!sees[n]) continue;
        int64_t t = s.q0 + tile + n;
        if (!values) sum += inner[n] * p.q.load(p.q.row(b, h, t) + column * p.q.stride[3]);
        if (values || (!p.v.p && column < p.dv_size)) sum += weight[n] * p.dy.load(p.dy.row(b, h, t) + column * p.dy.stride[3]);
      }
    }
  if (column < size) to.store(at + column * to.stride[3], sum);
}

__global__ static void __launch_bounds__(THREADS) attention_dk_direct(const __grid_constant__ problem p)
{
  __shared__ double inner[THREADS], weight[THREADS];
  __shared__ bool sees[THREADS];
  for (int64_t row = blockIdx.x; row < p.k.dim[0] * p.k.dim[1] * p.skv; row += gridDim.x) {
    int64_t t = row % p.skv, g = row / p.skv % p.k.dim[1], b = row / p.skv / p.k.dim[1];
    sequence s = {};
    int64_t j = p.owner(p.kv_starts, true, b, t, &s);
    for (int64_t first = 0; first < p.d; first += THREADS)
      key_strip(p, s, g, j, false, first, p.dk, p.dk.row(b, g, t), inner, weight, sees);
    for (int64_t first = 0; first < p.dv_size && p.v.p; first += THREADS)
      key_strip(p, s, g, j, true, first, p.dv, p.dv.row(b, g, t), inner, weight, sees);
  }
}

/* A lane's part of the sum of dS over ni queries from i0 and nj keys from j0. */
__device__ __noinline__ static double lane_sum(const problem &p, const sequence &s, int64_t h, int64_t i0, int64_t ni, int64_t j0,
                                               int64_t nj)
{
  double sum = 0;
  int64_t at_k, at_t;
  for (int64_t n = threadIdx.x % 32; n < ni * nj; n += 32) {
    int64_t i = i0 + n / nj, j = j0 + n % nj;
    if (p.seen(s, h, i, j, &at_k, &at_t)) sum += pair_of(p, s, h, i, j, at_k, at_t).ds;
  }
  return sum;
}

/* An element a warp: it walks the sequences and heads of the element, its lanes their pairs of query and key. */
__global__ static void __launch_bounds__(THREADS) attention_dbias_direct(const __grid_constant__ problem p)
{
  const int lane = threadIdx.x % 32;
  const int64_t *dim = p.dbias.dim, elements = dim[0] * dim[1] * dim[2] * dim[3];
  for (int64_t e = blockIdx.x * (int64_t)(THREADS / 32) + threadIdx.x / 32; e < elements; e += (int64_t)gridDim.x * (THREADS / 32)) {
    int64_t key = e % dim[3], query = e / dim[3] % dim[2], head = e / dim[3] / dim[2] % dim[1], of = e / dim[3] / dim[2] / dim[1];
    double sum = 0;
    for (int64_t b = dim[0] == 1 ? 0 : of; b < (dim[0] == 1 ? p.sequences : of + 1); b++) {
      sequence s = p.of(b);
      int64_t i0 = dim[2] == 1 ? 0 : query - s.q0, ni = dim[2] == 1 ? s.nq : i0 >= 0 && i0 < s.nq;
      int64_t j0 = dim[3] == 1 ? 0 : key - s.k0, nj = dim[3] == 1 ? s.nk : j0 >= 0 && j0 < s.nk;
      for (int64_t h = dim[1] == 1 ? 0 : head; h < (dim[1] == 1 ? p.heads : head + 1); h++) sum += lane_sum(p, s, h, i0, ni, j0, nj);
    }
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) p.dbias.store(p.dbias.row(of, head, query) + key * p.dbias.stride[3], sum);
  }
}

__global__ static void __launch_bounds__(THREADS) attention_dsink_direct(const __grid_constant__ problem p)
{
  for (int64_t h = blockIdx.x; h < p.heads; h += gridDim.x) {
    double sum = 0, sink = p.sink.load(h * p.sink.stride[0]);
    for (int64_t b = 0; b < p.sequences; b++) {
      sequence s = p.of(b);
      for (int64_t i = threadIdx.x; i < s.nq; i += THREADS) {
        double lse = p.lse.load(p.lse.row(p.query_storage(s), h, s.q0 + i));
        if (lse != -INFINITY) sum -= exp(sink - lse) * p.big_d[(p.query_storage(s) * p.heads + h) * p.sq + s.q0 + i];
      }
    }
    sum = over_block<false>(sum);
    if (threadIdx.x == 0) p.dsink.store(h * p.dsink.stride[0], sum);
  }
}

/* ---- host ------------------------------------------------------------------------------------------- */

static view view_of(const kept *k, const qn_launch *launch, uint32_t role)
{
  const tensor t = direct_tensor(k, launch, role, 0);
  view v = { t.p, t.dtype, t.rank, { 1, 1, 1, 1 }, { 0, 0, 0, 0 } };
  for (int d = 0; d < t.rank && t.p; d++) v.dim[d] = t.dim[d], v.stride[d] = t.stride[d];
  return v;
}
static random_key key_of(const kept *k, const qn_launch *launch, uint32_t role)
{
  if (!direct_count(k, role)) return random_key_of(nullptr, nullptr);
  const int at = k->first[role];
  return random_key_of(&k->value[at], launch->ptr[k->number[at]]);
}

/* What the shared roles say; their numbers differ between the two ops by a constant, from bias to kv_starts. */
static problem problem_of(const kept *k, const qn_launch *launch)
{
  const qn_attention *a = (const qn_attention *)k->attr;
  const bool back = k->op == QN_OP_ATTENTION_BACKWARD;
  problem p = {};
#define PART(field, ROLE) p.field = view_of(k, launch, back ? QN_ROLE_ATTENTION_BACKWARD_##ROLE : QN_ROLE_ATTENTION_FORWARD_##ROLE)
  PART(q, Q), PART(k, K), PART(v, V), PART(bias, BIAS), PART(mask, MASK), PART(blocks, BLOCKS), PART(slopes, SLOPES), PART(sink, SINK);
  PART(q_lengths, Q_LENGTHS), PART(kv_lengths, KV_LENGTHS), PART(q_starts, Q_STARTS), PART(kv_starts, KV_STARTS);
  PART(y, Y), PART(lse, LSE);
#undef PART
  p.seed = key_of(k, launch, back ? QN_ROLE_ATTENTION_BACKWARD_SEED : QN_ROLE_ATTENTION_FORWARD_SEED);
  p.offset = key_of(k, launch, back ? QN_ROLE_ATTENTION_BACKWARD_OFFSET : QN_ROLE_ATTENTION_FORWARD_OFFSET);
  if (!back) p.pages = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_PAGES);
  p.left = a->left, p.right = a->right, p.block_q = a->block_q, p.block_kv = a->block_kv, p.top_left = a->align == QN_ALIGN_TOP_LEFT;
  p.sequences = p.q_starts.p ? p.q_starts.dim[0] - 1 : p.q.dim[0];
  p.heads = p.q.dim[1], p.group = p.k.dim[1] ? p.heads / p.k.dim[1] : 1;
  p.sq = p.q.dim[2], p.skv = p.pages.p ? p.pages.dim[1] * p.k.dim[2] : p.k.dim[2];
  p.d = p.q.dim[3], p.dv_size = p.v.p ? p.v.dim[3] : a->value_size;
  p.softcap = a->softcap, p.scale = a->scale > 0 ? a->scale : 1 / sqrt((double)p.d);
  p.threshold = (uint32_t)(a->dropout * 65536 + 0.5);
  p.kept = p.threshold < 65536 ? 65536.0 / (65536 - p.threshold) : 0;
  return p;
}

static unsigned blocks_for(int64_t rows) { return (unsigned)(rows < 1 ? 1 : rows > MOST_BLOCKS ? MOST_BLOCKS : rows); }

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  problem p = problem_of(k, launch);
  p.q_scale = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_Q_SCALE), p.k_scale = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_K_SCALE);
  p.v_scale = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_V_SCALE), p.y_scale = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_Y_SCALE);
  p.max = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_MAX), p.amax = view_of(k, launch, QN_ROLE_ATTENTION_FORWARD_AMAX);
  p.part = (double *)launch->workspace;
  const unsigned blocks = blocks_for(p.q.dim[0] * p.heads * p.sq);
  attention_direct<<<blocks, THREADS, 0, stream>>>(p);
  if (p.amax.p) attention_amax_direct<<<1, THREADS, 0, stream>>>(p, blocks);
  return direct_launched("attention_direct");
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  problem p = problem_of(k, launch);
  p.dy = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DY), p.dlse = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DLSE);
  p.dq = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DQ), p.dk = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DK);
  p.dv = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DV), p.dbias = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DBIAS);
  p.dsink = view_of(k, launch, QN_ROLE_ATTENTION_BACKWARD_DSINK);
  p.big_d = (double *)launch->workspace;
  const unsigned queries = blocks_for(p.q.dim[0] * p.heads * p.sq), keys = blocks_for(p.k.dim[0] * p.k.dim[1] * p.skv);
  attention_row_sums_direct<<<queries, THREADS, 0, stream>>>(p);
  attention_dq_direct<<<queries, THREADS, 0, stream>>>(p);
  attention_dk_direct<<<keys, THREADS, 0, stream>>>(p);
  if (p.dbias.p)
    attention_dbias_direct<<<blocks_for(p.dbias.dim[0] * p.dbias.dim[1] * p.dbias.dim[2] * p.dbias.dim[3]), THREADS, 0, stream>>>(p);
  if (p.dsink.p) attention_dsink_direct<<<blocks_for(p.heads), THREADS, 0, stream>>>(p);
  return direct_launched("attention_backward_direct");
}

/* Workspace. Forward: max |y| of each block, if amax is wanted; gradient: D of each row. */
static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const bool back = op->op == QN_OP_ATTENTION_BACKWARD;
  const qn_value *q = &r->value[qn_role(op, back ? QN_ROLE_ATTENTION_BACKWARD_Q : QN_ROLE_ATTENTION_FORWARD_Q)];
  const bool amax = !back && op->first[QN_ROLE_ATTENTION_FORWARD_AMAX] < op->first[QN_ROLE_ATTENTION_FORWARD_AMAX + 1];
  if (back) out->workspace = (uint64_t)(q->dim[0] * q->dim[1] * q->dim[2]) * sizeof(double);
  else if (amax) out->workspace = MOST_BLOCKS * sizeof(double);
  return direct_prepare(r, out);
}

#define ROW(op, function) { "direct", op, QN_CLASS_GENERIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                            nullptr, nullptr, prepare, nullptr, function, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_ATTENTION_FORWARD, forward), ROW(QN_OP_ATTENTION_BACKWARD, backward) };
CUDA_ENGINES(attention_direct) = { row, sizeof row / sizeof *row };
