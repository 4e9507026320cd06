/* lrn_windows.cu -- local response and divisive normalization, windows of three and five, packed tensors: everything in registers.
 *
 *   y  = x b^-beta, b = k + alpha/n sum (x - m)^2, m the mean at the window's centre or 0; gradients as in lrn.cu
 *
 * A tensor is viewed as 2-d grids whose rows are contiguous: channels by pixels (5x1 windows), pixels by channels where those are
 * contiguous (1x5), or planes (3x3, 5x5). A thread computes V neighbours of S rows from the rows that it loads; columns beside
 * its own come by shuffles. The first and last lane of a warp only serve as halo: warps overlap by them. With means, sums are tap
 * by tap, because expanding the square would cancel; without, by row, then over rows.
 * Refused: other windows; rows that are no whole vectors; means with windows of channels, of three, or in a gradient
 * (lrn_planes); f16 in planes; b that may be subnormal; f64; 2^31 elements and more. */
#include "cuda_backend.h"
#include "engines.h"
#include "lrn.cuh"
#include "kit/element.cuh"

enum { WARPS = 4, THREADS = 32 * WARPS };

struct windows {
  const void *in, *x, *means;             /* in: dy, or x */
  void    *out;
  int32_t  rows, pitch;                   /* of a grid; elements of a row */
  cuda_divisor by_width, by_strips;       /* vectors of a row; blocks' strips down a grid */
  uint32_t units;                         /* vectors of a row, for all strips */
  bool     quarters;                      /* beta is 3/4 */
  float    k, alpha, beta;                /* alpha already divided by n */
};

/* V elements, raw: 2, 4, 8 or 16 bytes. */
template <uint32_t dtype, int V> struct packed {
  static constexpr int SIZE = dtype == QN_F32 ? 4 : 2, N = (V * SIZE + 3) / 4;
  uint32_t word[N];

  __device__ __forceinline__ void load(const void *from, int64_t at, bool there)
  {
    const char *p = (const char *)from + at * SIZE;
#pragma unroll
    for (int i = 0; i < N; i++) word[i] = 0;
    if (!there) return;
    if constexpr (V * SIZE == 2) {
      word[0] = *(const uint16_t *)p;
    } else if constexpr (N == 1) {
      word[0] = *(const uint32_t *)p;
    } else if constexpr (N == 2) {
      uint2 q = *(const uint2 *)p;
      word[0] = q.x, word[1] = q.y;
    } else {
      uint4 q = *(const uint4 *)p;
      word[0] = q.x, word[1] = q.y, word[2] = q.z, word[3] = q.w;
    }
  }
  __device__ __forceinline__ void open(float (&v)[V]) const
  {
#pragma unroll
    for (int i = 0; i < V; i++) {
      uint32_t h = word[i * SIZE / 4];
      if (dtype == QN_F32) v[i] = __uint_as_float(h);
      else if (dtype == QN_BF16) v[i] = __uint_as_float(i & 1 ? h & 0xffff0000u : h << 16);
      else v[i] = f16_to_float((uint16_t)(i & 1 ? h >> 16 : h));
    }
  }
  __device__ __forceinline__ void store(void *to, int64_t at, const float (&v)[V])
  {
    char *p = (char *)to + at * SIZE;
#pragma unroll
    for (int i = 0; i < N; i++) {
      float low = v[i * 4 / SIZE], high = v[(i * 4 / SIZE + 1) % V];
      word[i] = dtype == QN_F32 ? __float_as_uint(low) : dtype == QN_BF16 ? pack_bf16(low, high) : pack_f16(low, high);
    }
    if constexpr (V * SIZE == 2) *(uint16_t *)p = (uint16_t)word[0];
    else if constexpr (N == 1) *(uint32_t *)p = word[0];
    else if constexpr (N == 2) *(uint2 *)p = make_uint2(word[0], word[1]);
    else *(uint4 *)p = make_uint4(word[0], word[1], word[2], word[3]);
  }
};

/* How many of a block's strips are stacked vertically: worthwhile where strips are short, so that their shared rows hit L1. */
template <int V, int A, int B, bool backward> constexpr int below_of = A > 1 && B == 1 && (V > 1 || backward) ? WARPS : 1;

/* A thread's outputs: V elements from offset `at` in row `row` of its grid, and the S - 1 rows below. A block's warps take strips
 * one below the other (`below` of them, so that shared rows are fetched once) or side by side. */
template <int V, int S, int below, bool lanes> struct spot {
  int32_t row;
  int64_t at;
  bool    first, last, makes;             /* in a row; makes = false: a halo lane */

  __device__ __forceinline__ spot(const windows &s)
  {
    uint32_t lane = threadIdx.x % 32, column, strips;
    uint32_t warp = threadIdx.x / 32, beside = below > 1 ? blockIdx.x : blockIdx.x * WARPS + warp;
    int32_t unit = lanes ? (int32_t)(beside * 30 + lane) - 1 : (int32_t)(beside * 32 + lane);
    uint32_t grid = cuda_quotient(cuda_quotient(min((uint32_t)max(unit, 0), s.units - 1), s.by_width, &column), s.by_strips, &strips);
    row = (strips * below + (below > 1 ? warp : 0)) * S, column *= V;
    at = ((int64_t)grid * s.rows + row) * s.pitch + column;
    first = column == 0, last = column + V == s.pitch;
    makes = (uint32_t)unit < s.units && !(lanes && (lane == 0 || lane == 31));
  }
  /* v, with H elements from either neighbouring lane; 0 beyond the row. */
  template <int H> __device__ __forceinline__ void widen(float (&w)[V + 2 * H], const float (&v)[V]) const
  {
#pragma unroll
    for (int i = 0; i < V; i++) w[H + i] = v[i];
#pragma unroll
    for (int i = 0; i < H; i++) {
      float before = __shfl_up_sync(~0u, v[V - H + i], 1), after = __shfl_down_sync(~0u, v[i], 1);
      w[i] = first ? 0 : before, w[H + V + i] = last ? 0 : after;
    }
  }
};

/* The sums of w (square: of its squares) over the B elements around each of V. */
template <bool square, int V, int B> __device__ __forceinline__ void across(float (&q)[V], const float (&w)[V + B - 1])
{
#pragma unroll
  for (int j = 0; j < V; j++) {
    q[j] = square ? w[j] * w[j] : w[j];
#pragma unroll
    for (int b = 1; b < B; b++) q[j] += square ? w[j + b] * w[j + b] : w[j + b];
  }
}

/* Row i is row `spot.row + i - FROM` of the grid. Once it is loaded, the windows centred on row c = i - R are complete, and in a
 * gradient row u = c - R of dx. */
template <uint32_t dtype, int V, int A, int B, bool divisive, bool backward, int S>
__global__ static void __launch_bounds__(THREADS) lrn_windows(const __grid_constant__ windows s)
{
  constexpr int R = A / 2, H = B / 2, FROM = backward ? 2 * R : R, ROWS = S + 2 * FROM;
  static_assert(!(divisive && backward), "lrn_planes has those");
  const spot<V, S, below_of<V, A, B, backward>, (B > 1)> at(s);
  if (!__any_sync(~0u, at.row < s.rows)) return;
  packed<dtype, V> x[ROWS], dy[ROWS], m[ROWS], o;
  float squares[ROWS][V], distance[ROWS][V], g[ROWS][V], gathered[ROWS][V], by = 2 * s.alpha * s.beta;
  auto there = [&](int i) { return (uint32_t)(at.row + i - FROM) < (uint32_t)s.rows; };
  auto place = [&](int i) { return at.at + (int64_t)(i - FROM) * s.pitch; };
  auto fetch = [&](int i) {
    x[i].load(s.x, place(i), there(i));
    if (i < R || i >= ROWS - R) return;
    if (divisive) m[i].load(s.means, place(i), there(i));
    if (backward) dy[i].load(s.in, place(i), there(i));
  };
#pragma unroll
  for (int i = 0; i < ROWS; i++) fetch(i);
#pragma unroll
  for (int i = 0; i < ROWS; i++) {
    float v[V], w[V + 2 * H], q[V];
    x[i].open(v);
    at.template widen<H>(w, v);
    if constexpr (!divisive) across<true, V, B>(q, w);
#pragma unroll
    for (int c = R; c < ROWS - R; c++) {
      if (i < c - R || i > c + R) continue;
      if constexpr (!divisive) {
#pragma unroll
        for (int j = 0; j < V; j++) squares[c][j] = i == c - R ? q[j] : squares[c][j] + q[j];
      } else {
#pragma unroll
        for (int j = 0; j < V; j++)
          if (i == c - R) squares[c][j] = distance[c][j] = 0;
        if (!there(i)) continue;
        m[c].open(v);
#pragma unroll
        for (int j = 0; j < V; j++)
#pragma unroll
          for (int b = 0; b < B; b++) {
            if ((j + b < H && at.first) || (j + b >= H + V && at.last)) continue;
            float d = w[j + b] - v[j];
            squares[c][j] += d * d, distance[c][j] += d;
          }
      }
    }

    const int c = i - R, u = c - R;
    if (c < R) continue;
    float b[V], p[V], root[V];
    x[c].open(v);
#pragma unroll
    for (int j = 0; j < V; j++) b[j] = s.k + s.alpha * squares[c][j];
    powers<V>(p, root, b, s.quarters, s.beta);
    if constexpr (!backward) {
#pragma unroll
      for (int j = 0; j < V; j++) v[j] *= p[j];
      if (at.makes && there(c)) o.store(s.out, place(c), v);
    } else {
      float r[V];
      dy[c].open(g[c]);
#pragma unroll
      for (int j = 0; j < V; j++) g[c][j] *= p[j], r[j] = g[c][j] * v[j] * (root[j] * root[j]);
      at.template widen<H>(w, r);
      across<false, V, B>(q, w);
#pragma unroll
      for (int k = FROM; k < FROM + S; k++) {
        if (c < k - R || c > k + R) continue;
#pragma unroll
        for (int j = 0; j < V; j++) gathered[k][j] = c == k - R ? q[j] : gathered[k][j] + q[j];
      }
      if (u < FROM) continue;
      x[u].open(v);
#pragma unroll
      for (int j = 0; j < V; j++) v[j] = g[u][j] - by * (v[j] * gathered[u][j]);
      if (at.makes && there(u)) o.store(s.out, place(u), v);
    }
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct windows_state { windows s; const void *kernel; roles at; unsigned blocks; };

/* A kernel for each direction: forward, backward. rows: S. */
struct shape { uint32_t dtype; int vector, down, across, divisive, rows[2], below[2]; const void *kernel[2]; };

template <uint32_t dtype, int V, int A, int B, int F, int G> constexpr shape shape_of()
{
  return { dtype, V, A, B, false, { F, G }, { below_of<V, A, B, false>, below_of<V, A, B, true> },
           { (const void *)lrn_windows<dtype, V, A, B, false, false, F>, (const void *)lrn_windows<dtype, V, A, B, false, true, G> } };
}
template <uint32_t dtype, int V, int A, int B, int F> constexpr shape divisive_of()
{
  return {
    dtype, V, A, B, true, { F, F }, { below_of<V, A, B, false>, 1 }, { (const void *)lrn_windows<dtype, V, A, B, true, false, F>, NULL }
  };
}

static const shape shapes[] = {
  shape_of<QN_F32, 1, 5, 1, 16, 8>(), shape_of<QN_BF16, 4, 5, 1, 8, 8>(), shape_of<QN_F16, 4, 5, 1, 8, 8>(),
  shape_of<QN_BF16, 1, 5, 1, 16, 8>(), shape_of<QN_F16, 1, 5, 1, 16, 8>(),          /* planes of an odd size */
  shape_of<QN_F32, 4, 1, 5, 2, 1>(), shape_of<QN_BF16, 8, 1, 5, 2, 2>(), shape_of<QN_F16, 8, 1, 5, 2, 2>(),
  shape_of<QN_F32, 4, 3, 3, 4, 4>(), shape_of<QN_BF16, 8, 3, 3, 4, 4>(),
  shape_of<QN_F32, 4, 5, 5, 8, 4>(), shape_of<QN_BF16, 4, 5, 5, 8, 7>(),
  divisive_of<QN_F32, 4, 5, 5, 4>(), divisive_of<QN_BF16, 8, 5, 5, 2>(),
};

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  bool backward = op->op == QN_OP_LRN_BACKWARD, within = a->region == QN_LOCAL_WITHIN, alike = true;
  windows_state st = { {}, NULL, roles_of(op), 0 };
  windows *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  bool divisive = st.at.means >= 0, packed = qn_is_packed(x);
  uint32_t align = 16;
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    alike &= qn_same_layout(x, v), align = v->align < align ? v->align : align;
  }
  if (!alike || !(packed || (!within && qn_is_channels_last(x))))
    return qn_refuse(out, "tensors are packed and alike", "x", within ? "channels first" : "one layout", "%s", "strides");
  if (within && x->rank != 4) return qn_refuse(out, "windows lie in planes", "x", "rank 4", "%d", (int)x->rank);
  if (!(a->k >= 1e-30 && a->alpha >= 0))
    return qn_refuse(out, "what is raised to a power is no subnormal", "", "k of 1e-30 or more, alpha of 0 or more", "k=%g, alpha=%g", a->k,
                     a->alpha);
  int64_t all = qn_elements(x), channels = x->dim[1], places = all / x->dim[0] / channels, rows = x->dim[0] * places, pitch = channels;
  bool last = !packed || places == 1;
  if (within) rows = x->dim[2], pitch = x->dim[3];
  else if (!last) rows = channels, pitch = places;
  if (all > 0x7fffffff) return qn_refuse(out, "elements are counted in 31 bits", "x", "fewer", "%lld", (long long)all);
  int64_t down = within || !last ? a->size : 1, across = within || last ? a->size : 1;
  for (const shape *k = shapes; !st.kernel && k < shapes + sizeof shapes / sizeof *shapes; k++) {
    if (k->dtype != x->dtype || k->down != down || k->across != across || k->divisive != divisive || !k->kernel[backward]) continue;
    if (pitch % k->vector != 0 || align < (uint32_t)k->vector * qn_kit_bytes(x->dtype)) continue;
    int64_t strips = qn_ceil_div(rows, k->below[backward] * k->rows[backward]), units = all / (rows * pitch) * strips * (pitch / k->vector);
    s->by_width = cuda_divide_by(pitch / k->vector), s->by_strips = cuda_divide_by(strips), s->units = (uint32_t)units;
    st.kernel = k->kernel[backward],
    st.blocks = (unsigned)qn_ceil_div(qn_ceil_div(units, across > 1 ? 30 : 32), WARPS / k->below[backward]);
  }
  if (!st.kernel)
    return qn_refuse(out, "windows and vectors are those that kernels were made for", "x",
                     "size 5, within also 3 without means; rows of whole vectors", "size %lld", (long long)a->size);
  s->rows = (int32_t)rows, s->pitch = (int32_t)pitch;
  s->quarters = a->beta == 0.75;
  s->k = (float)a->k, s->alpha = (float)(a->alpha / (double)(within ? a->size * a->size : a->size)), s->beta = (float)a->beta;
  out->estimate = 2200 + (double)all * op->first[op->n_roles] * (double)qn_kit_bytes(x->dtype) / 3700;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const windows_state *st = (const windows_state *)p->state;
  windows s = st->s;
  s.in = launch->ptr[st->at.in], s.x = launch->ptr[st->at.x], s.out = launch->ptr[st->at.out];
  if (st->at.means >= 0) s.means = launch->ptr[st->at.means];
  void *args[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks), dim3(THREADS), args, 0, (cudaStream_t)launch->stream), "lrn");
}

#define ROW(op) { "windows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LRN), ROW(QN_OP_LRN_BACKWARD) };
CUDA_ENGINES(lrn_windows) = { row, sizeof row / sizeof *row };
