/* lrn_planes.cu -- the gradient of divisive normalization by windows of 5 x 5 in packed planes: a block takes a tile of a plane, with what lies
 * around it, to shared memory, where each window's sums are made once and serve all that lie in it.
 *
 *   windows   b = k + alpha/n sum (x - m)^2, g = dy b^-beta, r = g x/b; dmeans = h r sum (x - m), h = 2 alpha beta/n
 *   gather    dx = g - h sum r (x - m), over the windows that hold a place
 *
 * Tap by tap, for an expanded square would cancel. A thread makes V neighbours of each of ROWS rows, from rows that it reads one after another.
 * Refused: other windows; rows that are no whole vectors; b that may be subnormal; f64; 2^31 elements and more. */
#include "cuda_backend.h"
#include "engines.h"
#include "lrn.cuh"
#include "shared_memory.h"
#include "sm80.cuh"
#include "spatial.cuh"

enum { THREADS = 224, BLOCKS = 4, ROWS = 2, V = 4, SIZE = 5, REACH = SIZE / 2, HALO = 2 * REACH, WIDEST = 64, ROOM = 54 << 10 };

struct planes {
  const void *dy, *x, *means;
  void    *dx, *dmeans;                   /* dmeans may be NULL */
  uint32_t dtype;
  int32_t  height, width, high, wide;     /* of a plane, of a tile of dx */
  int32_t  pitch, place;                  /* in shared memory: elements of a row, of each of x, means, r and g */
  cuda_divisor across, down, vectors, own;          /* tiles of a plane; vectors of a tile's row, of one of dx */
  bool     quarters;                      /* beta is 3/4 */
  float    k, alpha, beta;                /* alpha/n */
};

/* A tile of dx and the HALO around it, as far as the plane goes. In shared memory rows of x, means and r have REACH more at either end. */
struct tile {
  int32_t top, left, bottom, right;       /* of dx, in the plane */
  int32_t row, column, rows, columns;     /* the first of all in the plane; how many */
  int64_t from;                           /* elements before the first */
  float  *x, *means, *r, *g;              /* g takes dy's place */

  __device__ __forceinline__ tile(const planes &s, float *shared)
  {
    uint32_t i, j, plane = cuda_quotient(cuda_quotient(blockIdx.x, s.across, &i), s.down, &j);
    top = (int32_t)j * s.high, left = (int32_t)i * s.wide, bottom = min(top + s.high, s.height), right = min(left + s.wide, s.width);
    row = max(top - HALO, 0), column = max(left - HALO, 0), rows = min(bottom + HALO, s.height) - row, columns = min(right + HALO, s.width) - column;
    from = ((int64_t)plane * s.height + row) * s.width + column;
    x = shared, means = x + s.place, r = means + s.place, g = r + s.place;
  }
};

__device__ __forceinline__ void widened(float (&w)[V + HALO], const float *p)
{
  const float4 a = *(const float4 *)p, b = *(const float4 *)(p + 4);
  w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w, w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
}
__device__ __forceinline__ void get(float (&v)[V], const float *p)
{
  const float2 a = *(const float2 *)p, b = *(const float2 *)(p + 2);
  v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
}
__device__ __forceinline__ void put(float *p, const float (&v)[V])
{
  *(float2 *)p = make_float2(v[0], v[1]), *(float2 *)(p + 2) = make_float2(v[2], v[3]);
}

template <bool F32> __device__ __forceinline__ void load_tile(const planes &s, const tile &t)
{
  for (uint32_t i = threadIdx.x; i < t.rows * s.vectors.by; i += THREADS) {
    uint32_t unit;
    const int32_t row = (int32_t)cuda_quotient(i, s.vectors, &unit), column = (int32_t)unit * V, to = row * s.pitch + column;
    if (column >= t.columns) continue;
    const int64_t from = t.from + (int64_t)row * s.width + column;
    if constexpr (F32) {
      const float *x = (const float *)s.x + from, *means = (const float *)s.means + from;
      const uint32_t to_x = shared_address(t.x + to + REACH), to_means = shared_address(t.means + to + REACH);
      copy_async<8>(to_x, x, 8), copy_async<8>(to_x + 8, x + 2, 8);
      copy_async<8>(to_means, means, 8), copy_async<8>(to_means + 8, means + 2, 8);
      copy_async<16>(shared_address(t.g + to), (const float *)s.dy + from, 16);
    } else {
      float x[V], means[V], dy[V];
      load(x, s.x, s.dtype, from), load(means, s.means, s.dtype, from), load(dy, s.dy, s.dtype, from);
      put(t.x + to + REACH, x), put(t.means + to + REACH, means), put(t.g + to, dy);
    }
  }
  copy_async_commit();
  for (int32_t i = threadIdx.x; i < t.rows * HALO; i += THREADS) {         /* beyond the plane nothing is gathered */
    const int32_t at = i / HALO * s.pitch + (i % HALO < REACH ? i % HALO : t.columns + i % HALO);
    t.means[at] = t.r[at] = 0;
  }
  copy_async_wait<0>();
}

__device__ __forceinline__ void make_windows(const planes &s, const tile &t)
{
  const int32_t first = max(t.top - REACH, 0) - t.row, end = min(t.bottom + REACH, s.height) - t.row;
  for (uint32_t i = threadIdx.x; i < (end - first + ROWS - 1) / ROWS * s.vectors.by; i += THREADS) {
    uint32_t unit;
    const int32_t row = first + (int32_t)cuda_quotient(i, s.vectors, &unit) * ROWS, column = (int32_t)unit * V, over = t.column + column;
    if (column >= t.columns) continue;
    const bool leftmost = over == 0, rightmost = over + V == s.width;
    float mean[ROWS][V], squares[ROWS][V] = {}, distance[ROWS][V] = {};
#pragma unroll
    for (int k = 0; k < ROWS; k++) get(mean[k], t.means + min(row + k, end - 1) * s.pitch + column + REACH);
#pragma unroll
    for (int from = 0; from < ROWS + HALO; from++) {
      if ((uint32_t)(row + from - REACH) < (uint32_t)t.rows) {
        float w[V + HALO];
        widened(w, t.x + (row + from - REACH) * s.pitch + column);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
          if (from < k || from > k + HALO) continue;
#pragma unroll
          for (int j = 0; j < V; j++)
#pragma unroll
            for (int c = 0; c < SIZE; c++) {
              if ((j + c < REACH && leftmost) || (j + c >= V + REACH && rightmost)) continue;
              const float d = w[j + c] - mean[k][j];
              squares[k][j] += d * d, distance[k][j] += d;
            }
        }
      }
      const int k = from - HALO, at = (row + k) * s.pitch + column;
      if (k < 0 || row + k >= end) continue;
      float b[V], p[V], root[V], x[V], g[V];
#pragma unroll
      for (int j = 0; j < V; j++) b[j] = s.k + s.alpha * squares[k][j];
      powers<V>(p, root, b, s.quarters, s.beta);
      get(x, t.x + at + REACH), get(g, t.g + at);
#pragma unroll
      for (int j = 0; j < V; j++) g[j] *= p[j], x[j] = g[j] * x[j] * (root[j] * root[j]);
      put(t.g + at, g), put(t.r + at + REACH, x);
      const int32_t down = t.row + row + k;
      if (!s.dmeans || down < t.top || down >= t.bottom || over < t.left || over >= t.right) continue;
#pragma unroll
      for (int j = 0; j < V; j++) x[j] = 2 * s.alpha * s.beta * (x[j] * distance[k][j]);
      store(x, s.dmeans, s.dtype, t.from + (int64_t)(row + k) * s.width + column);
    }
  }
}

__device__ __forceinline__ void gather(const planes &s, const tile &t)
{
  const int32_t first = t.top - t.row, end = t.bottom - t.row;
  for (uint32_t i = threadIdx.x; i < (end - first + ROWS - 1) / ROWS * s.own.by; i += THREADS) {
    uint32_t column;
    const int32_t row = first + (int32_t)cuda_quotient(i, s.own, &column) * ROWS;
    column = column * V + t.left - t.column;
    if (t.column + (int32_t)column >= t.right) continue;
    float x[ROWS][V], sum[ROWS][V] = {};
#pragma unroll
    for (int k = 0; k < ROWS; k++) get(x[k], t.x + min(row + k, end - 1) * s.pitch + column + REACH);
#pragma unroll
    for (int from = 0; from < ROWS + HALO; from++) {
      if ((uint32_t)(row + from - REACH) < (uint32_t)t.rows) {
        float r[V + HALO], means[V + HALO];
        widened(r, t.r + (row + from - REACH) * s.pitch + column), widened(means, t.means + (row + from - REACH) * s.pitch + column);
#pragma unroll
        for (int k = 0; k < ROWS; k++) {
          if (from < k || from > k + HALO) continue;
#pragma unroll
          for (int j = 0; j < V; j++)
#pragma unroll
            for (int c = 0; c < SIZE; c++) sum[k][j] += r[j + c] * (x[k][j] - means[j + c]);
        }
      }
      const int k = from - HALO;
      if (k < 0 || row + k >= end) continue;
      float g[V];
      get(g, t.g + (row + k) * s.pitch + column);
#pragma unroll
      for (int j = 0; j < V; j++) g[j] -= 2 * s.alpha * s.beta * sum[k][j];
      store(g, s.dx, s.dtype, t.from + (int64_t)(row + k) * s.width + column);
    }
  }
}

template <bool F32> __global__ static void __launch_bounds__(THREADS, BLOCKS) lrn_planes(const __grid_constant__ planes s)
{
  extern __shared__ __align__(16) float shared[];
  const tile t(s, shared);
  load_tile<F32>(s, t);
  __syncthreads();
  make_windows(s, t);
  __syncthreads();
  gather(s, t);
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct planes_state { planes s; const void *kernel; roles at; unsigned blocks; uint32_t shared; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  planes_state st = { {}, NULL, roles_of(op), 0, 0 };
  planes *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  bool alike = qn_is_packed(x);
  uint32_t align = 16;
  if (st.at.means < 0 || a->region != QN_LOCAL_WITHIN || a->size != SIZE) return qn_refuse(out, "windows of 5 x 5 with means", "means", "region=within size=5", "size %lld", (long long)a->size);
  if (x->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    alike &= qn_same_layout(x, v), align = v->align < align ? v->align : align;
  }
  if (!alike || x->rank != 4) return qn_refuse(out, "windows lie in planes, packed and alike", "x", "rank 4, channels first", "rank %d", (int)x->rank);
  if (x->dim[3] % V != 0 || align < V * qn_kit_bytes(x->dtype)) return qn_refuse(out, "rows are whole vectors", "x", "rows of a multiple of four", "%lld", (long long)x->dim[3]);
  if (!(a->k >= 1e-30 && a->alpha >= 0)) return qn_refuse(out, "what is raised to a power is no subnormal", "", "k of 1e-30 or more, alpha of 0 or more", "k=%g, alpha=%g", a->k, a->alpha);
  const int64_t all = qn_elements(x), height = x->dim[2], width = x->dim[3];
  if (all > 0x7fffffff) return qn_refuse(out, "elements are counted in 31 bits", "x", "fewer", "%lld", (long long)all);
  const int64_t wide = qn_round_up(qn_ceil_div(width, qn_ceil_div(width, WIDEST)), V), columns = qn_min_i64(width, wide + 2 * HALO);
  const int64_t most = qn_min_i64(ROOM, (int64_t)r->device->shared_per_block - 1024) / (4 * (columns + HALO) * (int64_t)sizeof(float));      /* rows in shared memory */
  const int64_t high = height <= most ? height : qn_ceil_div(height, qn_ceil_div(height, most - 2 * HALO)), across = qn_ceil_div(width, wide), down = qn_ceil_div(height, high);
  s->height = (int32_t)height, s->width = (int32_t)width, s->high = (int32_t)high, s->wide = (int32_t)wide, s->dtype = x->dtype;
  s->pitch = (int32_t)columns + HALO, s->place = (int32_t)(qn_min_i64(height, high + 2 * HALO) * s->pitch);
  s->across = cuda_divide_by(across), s->down = cuda_divide_by(down), s->vectors = cuda_divide_by(columns / V), s->own = cuda_divide_by(wide / V);
  s->quarters = a->beta == 0.75;
  s->k = (float)a->k, s->alpha = (float)(a->alpha / (SIZE * SIZE)), s->beta = (float)a->beta;
  st.blocks = (unsigned)(all / (height * width) * across * down), st.shared = (uint32_t)(4 * s->place * sizeof(float));
  st.kernel = x->dtype == QN_F32 ? (const void *)lrn_planes<true> : (const void *)lrn_planes<false>;
  out->estimate = 2200 + (double)all * op->first[op->n_roles] * (double)qn_kit_bytes(x->dtype) / 3700;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *, qn_prepared *prepared)
{
  return cuda_allow_shared(((const planes_state *)prepared->state)->kernel);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const planes_state *st = (const planes_state *)p->state;
  planes s = st->s;
  s.dy = launch->ptr[st->at.in], s.x = launch->ptr[st->at.x], s.means = launch->ptr[st->at.means], s.dx = launch->ptr[st->at.out];
  if (st->at.dmeans >= 0) s.dmeans = launch->ptr[st->at.dmeans];
  void *args[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks), dim3(THREADS), args, st->shared, (cudaStream_t)launch->stream), "lrn");
}

static const qn_engine row[] = {
  { "planes", QN_OP_LRN_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, prepare, build, run, cuda_release },
};
const qn_engine_list cuda_lrn_planes_list = { row, sizeof row / sizeof *row };
