/* lrn_planes.cu -- gradient of divisive normalization, 5x5 windows, packed NCHW planes (f16, bf16, f32), streamed row by row.
 *
 *   windows   b = k + alpha/n sum (x - m)^2, g = dy b^-beta, r = g x/b; dmeans = h r sum (x - m), h = 2 alpha beta/n
 *   gather    dx = g - h sum r (x - m), over the windows that cover a pixel
 *
 * A thread walks down V columns of a strip of rows. When a row of x arrives, the windows centred two rows above are complete;
 * their r is added to the five rows that they cover, the topmost of which then is complete. x and m of neighbouring columns are
 * read from shared memory, where each warp has a ring of rows filled by cp.async; r of neighbours comes by shuffles.
 * Expanding the square would cancel, and tap by tap each window takes 75 instructions. So each row's five elements are kept as a
 * mean c + t and squared distances from it, computed from distances to c, one of the five: that costs at most five times the
 * sum's rounding. Then sum (x - m)^2 = sum over rows of these squares + 5 ((c - m) + t)^2. Where that is not finite, or the
 * window crosses the upper or lower edge, it is computed tap by tap.
 * Refused: other windows; rows that are no whole vectors; b that may be subnormal; f64; 2^31 elements and more. */
#include <cfloat>
#include "cuda_backend.h"
#include "engines.h"
#include "lrn.cuh"
#include "kit/shared_memory.h"
#include "kit/sm80.cuh"
#include "kit/spatial.cuh"

enum { WARPS = 2, THREADS = 32 * WARPS, BLOCKS = 8, V = 4, SIZE = 5, REACH = SIZE / 2, HALO = 2 * REACH, WIDE = V + HALO };
enum { ROWS = 8, AHEAD = ROWS - SIZE };   /* rows of a warp's ring; those in flight */
enum { X, MEANS, DY, READ };
enum { MOST_STRIPS = 16 };                /* of a plane */

struct planes {
  const void *from[READ];
  void    *dx, *dmeans;                   /* dmeans may be NULL */
  int32_t  height, width, high;           /* of a plane; rows of a strip */
  cuda_divisor across;                    /* vectors of a row */
  uint32_t units;                         /* vectors of a row, over all planes */
  int32_t  useful, beside;                /* lanes that write output; halo lanes on either side */
  bool     quarters;                      /* beta is 3/4 */
  float    k, alpha, beta;                /* alpha already divided by n */
};

/* A thread's columns. */
struct spot {
  int32_t at;                             /* offset of its first element in row 0 */
  bool    first, last, holds, makes;      /* first, last: of a plane's row or of the warp */

  __device__ __forceinline__ spot(const planes &s)
  {
    const int32_t lane = threadIdx.x % 32, unit = (int32_t)(blockIdx.x * WARPS + threadIdx.x / 32) * s.useful + lane - s.beside;
    uint32_t column, plane = cuda_quotient(min((uint32_t)max(unit, 0), s.units - 1), s.across, &column);
    at = (int32_t)plane * s.height * s.width + (int32_t)column * V;
    first = column == 0 || lane == 0, last = column + 1 == s.across.by || lane == 31;
    holds = lane < s.useful + 2 * s.beside;
    makes = (uint32_t)unit < s.units && lane >= s.beside && lane < s.useful + s.beside;
  }
};

/* The warp's ring of rows, at this lane's columns. */
template <uint32_t dtype> struct window_rows {
  static constexpr int BYTES = dtype == QN_F32 ? 4 : 2, ROW = (V + 32 * V + V) * BYTES, WARP = ROWS * READ * ROW;
  uint32_t own;

  __device__ __forceinline__ window_rows(const char *shared)
  {
    own = shared_address(shared) + threadIdx.x / 32 * WARP + (V + threadIdx.x % 32 * V) * BYTES;
  }
  __device__ __forceinline__ uint32_t row(int of, int32_t i) const { return own + (uint32_t)i % ROWS * (READ * ROW) + of * ROW; }
  /* Two elements at an address; the lane's V; the REACH ones on either side. */
  __device__ __forceinline__ void pair(float &a, float &b, uint32_t at) const
  {
    if constexpr (dtype == QN_F32) {
      asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(a), "=f"(b) : "r"(at) : "memory");
    } else {
      uint32_t h;
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(h) : "r"(at) : "memory");
      a = float_of(h & 0xffff, dtype == QN_BF16), b = float_of(h >> 16, dtype == QN_BF16);
    }
  }
  __device__ __forceinline__ void open(float (&v)[V], int of, int32_t i) const
  {
    if constexpr (dtype == QN_F32) shared_load(v, row(of, i));
    else pair(v[0], v[1], row(of, i)), pair(v[2], v[3], row(of, i) + 2 * BYTES);
  }
  __device__ __forceinline__ void beside(float (&w)[WIDE], int of, int32_t i) const
  {
    pair(w[0], w[1], row(of, i) - REACH * BYTES), pair(w[WIDE - 2], w[WIDE - 1], row(of, i) + V * BYTES);
  }
};

/* Row i is row top - HALO + i of the plane. */
template <uint32_t dtype> __global__ static void __launch_bounds__(THREADS, BLOCKS) lrn_planes(const __grid_constant__ planes s)
{
  typedef window_rows<dtype> rows;
  constexpr int PACKET = V * rows::BYTES;
  extern __shared__ __align__(16) char shared[];
  const spot at(s);
  const rows read(shared);
  const int32_t top = blockIdx.y * s.high, bottom = min(top + s.high, s.height), start = top ? 0 : HALO;
  const int32_t begin = max(top - HALO, 0), end = min(bottom + HALO, s.height);
  const float by = 2 * s.alpha * s.beta;
  const float n[V] = { at.first ? 3.0f : 5, at.first ? 4.0f : 5, at.last ? 4.0f : 5, at.last ? 3.0f : 5 };
  const float part[V] = { at.first ? 1.0f / 3 : 0.2f, at.first ? 0.25f : 0.2f, at.last ? 0.25f : 0.2f, at.last ? 1.0f / 3 : 0.2f };

  auto fetch = [&](int32_t i) {
    const int32_t row = top - HALO + i;
    if (at.holds && row >= begin && row < end) {
#pragma unroll
      for (int of = 0; of < READ; of++)
        copy_async<PACKET>(read.row(of, i), (const char *)s.from[of] + (int64_t)(at.at + row * s.width) * rows::BYTES, PACKET);
    }
    copy_async_commit();
  };

  float c[SIZE] = {}, t[SIZE][V] = {}, about[SIZE][V] = {}, x[SIZE][V] = {}, g[SIZE][V] = {}, sum[SIZE][V] = {};
#pragma unroll
  for (int i = 0; i < AHEAD; i++) fetch(start + i);
#pragma unroll 1
  for (int32_t first = start; first < s.high + 2 * HALO; first += SIZE) {
#pragma unroll
    for (int now = 0; now < SIZE; now++) {
      const int middle = (now + SIZE - REACH) % SIZE, oldest = (now + 1) % SIZE;
      const int32_t i = first + now, row = top - HALO + i, down = row - REACH, up = row - HALO;
      copy_async_wait<AHEAD - 1>();
      __syncwarp();
      fetch(i + AHEAD);

      if (row >= begin && row < end) {
        float w[WIDE];
        read.open(x[now], X, i), read.beside(w, X, i);
        c[now] = x[now][1];
#pragma unroll
        for (int k = 0; k < WIDE; k++) {
          if (k >= REACH && k < REACH + V) w[k] = x[now][k - REACH];
          w[k] -= c[now];
          if (k < REACH && at.first) w[k] = 0;
          if (k >= REACH + V && at.last) w[k] = 0;
        }
        const float left = w[1] + w[2], right = w[4] + w[5];         /* w[3] is 0 */
        const float lefts = w[1] * w[1] + w[2] * w[2], rights = w[4] * w[4] + w[5] * w[5];
        const float d[V] = { w[0] + left + w[4], left + right, w[2] + right + w[6], right + (w[6] + w[7]) };
        const float q[V] = { lefts + w[0] * w[0] + w[4] * w[4], lefts + rights, rights + w[2] * w[2] + w[6] * w[6],
                             rights + (w[6] * w[6] + w[7] * w[7]) };
#pragma unroll
        for (int j = 0; j < V; j++) t[now][j] = d[j] * part[j], about[now][j] = q[j] - d[j] * t[now][j];
      }
#pragma unroll
      for (int j = 0; j < V; j++) sum[now][j] = 0;

      const bool inside = down >= max(top - REACH, 0) && down < min(bottom + REACH, s.height);
      float r[WIDE] = {}, m[WIDE];
      if (inside) {
        float mean[V], b[V] = {}, spread[V], distance[V] = {}, p[V], root[V], dy[V];
        read.open(mean, MEANS, i - REACH);
        bool known = up >= 0 && up + SIZE <= s.height;
        if (known) {
#pragma unroll
          for (int k = 0; k < SIZE; k++)
#pragma unroll
            for (int j = 0; j < V; j++) {
              const int from = (oldest + k) % SIZE;
              const float d = (c[from] - mean[j]) + t[from][j];
              b[j] = k ? b[j] + about[from][j] : about[from][j];
              spread[j] = k ? spread[j] + d * d : d * d, distance[j] = k ? distance[j] + d : d;
            }
#pragma unroll
          for (int j = 0; j < V; j++) b[j] += n[j] * spread[j], distance[j] *= n[j], known = known && b[j] <= FLT_MAX;
        }
        if (!known && at.holds) {
#pragma unroll
          for (int j = 0; j < V; j++) b[j] = distance[j] = 0;
#pragma unroll 1
          for (int32_t k = max(up, 0); k < min(up + (int)SIZE, s.height); k++) {
            float w[WIDE], v[V];
            read.open(v, X, i - row + k), read.beside(w, X, i - row + k);
#pragma unroll
            for (int j = 0; j < V; j++) w[REACH + j] = v[j];
#pragma unroll
            for (int j = 0; j < V; j++)
#pragma unroll
              for (int e = 0; e < SIZE; e++) {
                const bool beyond = (j + e < REACH && at.first) || (j + e >= REACH + V && at.last);
                const float d = beyond ? 0 : w[j + e] - mean[j];
                b[j] += d * d, distance[j] += d;
              }
          }
        }
#pragma unroll
        for (int j = 0; j < V; j++) b[j] = s.k + s.alpha * b[j];
        powers<V>(p, root, b, s.quarters, s.beta);
        read.open(dy, DY, i - REACH);
#pragma unroll
        for (int j = 0; j < V; j++) {
          g[middle][j] = dy[j] * p[j];
          r[REACH + j] = g[middle][j] * x[middle][j] * (root[j] * root[j]), m[REACH + j] = mean[j];
        }
        if (s.dmeans && at.makes && down >= top && down < bottom) {
#pragma unroll
          for (int j = 0; j < V; j++) distance[j] = by * (r[REACH + j] * distance[j]);
          store(distance, s.dmeans, dtype, at.at + down * s.width);
        }
      }
#pragma unroll
      for (int k = 0; k < REACH; k++) {
        const float before = __shfl_up_sync(~0u, r[V + k], 1), after = __shfl_down_sync(~0u, r[REACH + k], 1);
        r[k] = at.first ? 0 : before, r[REACH + V + k] = at.last ? 0 : after;
      }
      if (inside) {
        read.beside(m, MEANS, i - REACH);
        if (at.first) m[0] = m[1] = 0;
        if (at.last) m[WIDE - 2] = m[WIDE - 1] = 0;
#pragma unroll
        for (int k = 0; k < SIZE; k++)
#pragma unroll
          for (int j = 0; j < V; j++)
#pragma unroll
            for (int e = 0; e < SIZE; e++) sum[(oldest + k) % SIZE][j] += r[j + e] * (x[(oldest + k) % SIZE][j] - m[j + e]);
      }

      if (at.makes && up >= top && up < bottom) {
        float dx[V];
#pragma unroll
        for (int j = 0; j < V; j++) dx[j] = g[oldest][j] - by * sum[oldest][j];
        store(dx, s.dx, dtype, at.at + up * s.width);
      }
    }
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct planes_state { planes s; const void *kernel; roles at; unsigned blocks, strips; uint32_t shared; };

template <uint32_t dtype> static void choose(planes_state *st)
{
  st->kernel = (const void *)lrn_planes<dtype>, st->shared = WARPS * window_rows<dtype>::WARP;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  planes_state st = { {}, NULL, roles_of(op), 0, 0, 0 };
  planes *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  bool alike = qn_is_packed(x);
  uint32_t align = 16;
  if (st.at.means < 0 || a->region != QN_LOCAL_WITHIN || a->size != SIZE)
    return qn_refuse(out, "windows of 5 x 5 with means", "means", "region=within size=5", "size %lld", (long long)a->size);
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  for (int32_t i = 0; i < op->first[op->n_roles]; i++) {
    const qn_value *v = &r->value[op->arg[i]];
    alike &= qn_same_layout(x, v), align = v->align < align ? v->align : align;
  }
  if (!alike || x->rank != 4)
    return qn_refuse(out, "windows lie in planes, packed and alike", "x", "rank 4, channels first", "rank %d", (int)x->rank);
  if (x->dim[3] % V != 0 || align < V * qn_kit_bytes(x->dtype))
    return qn_refuse(out, "rows are whole vectors", "x", "rows of a multiple of four", "%lld", (long long)x->dim[3]);
  if (!(a->k >= 1e-30 && a->alpha >= 0))
    return qn_refuse(out, "what is raised to a power is no subnormal", "", "k of 1e-30 or more, alpha of 0 or more", "k=%g, alpha=%g", a->k,
                     a->alpha);
  const int64_t all = qn_elements(x), height = x->dim[2], width = x->dim[3], across = width / V, units = all / (height * V);
  if (all > 0x7fffffff) return qn_refuse(out, "elements are counted in 31 bits", "x", "fewer", "%lld", (long long)all);
  const int whole = across <= 32 ? (int)(32 / across * across) : 0;      /* useful lanes, where a warp covers whole rows */
  s->beside = whole >= 28 ? 0 : 2, s->useful = whole >= 28 ? whole : 28;
  /* Choose the number of strips that takes least time: waves of the device times rows of a strip. */
  const int64_t turn = (int64_t)r->device->units * BLOCKS * WARPS * s->useful;
  int64_t high = height, least = 0;
  for (int64_t strips = 1; strips <= qn_min_i64(height, MOST_STRIPS); strips++) {
    const int64_t each = qn_ceil_div(height, strips), time = qn_ceil_div(units * qn_ceil_div(height, each), turn) * (each + 2 * HALO);
    if (!least || time < least) least = time, high = each;
  }
  s->height = (int32_t)height, s->width = (int32_t)width, s->high = (int32_t)high;
  s->across = cuda_divide_by(across), s->units = (uint32_t)units;
  s->quarters = a->beta == 0.75;
  s->k = (float)a->k, s->alpha = (float)(a->alpha / (SIZE * SIZE)), s->beta = (float)a->beta;
  st.blocks = (unsigned)qn_ceil_div(qn_ceil_div(units, s->useful), WARPS), st.strips = (unsigned)qn_ceil_div(height, high);
  switch (x->dtype) {
  case QN_F32:  choose<QN_F32>(&st); break;
  case QN_BF16: choose<QN_BF16>(&st); break;
  default:      choose<QN_F16>(&st); break;
  }
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
  s.from[X] = launch->ptr[st->at.x], s.from[MEANS] = launch->ptr[st->at.means], s.from[DY] = launch->ptr[st->at.in],
  s.dx = launch->ptr[st->at.out];
  if (st->at.dmeans >= 0) s.dmeans = launch->ptr[st->at.dmeans];
  void *args[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks, st->strips), dim3(THREADS), args, st->shared,
                                     (cudaStream_t)launch->stream),
                    "lrn");
}

static const qn_engine row[] = {
  { "planes", QN_OP_LRN_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,
    nullptr, nullptr, prepare, build, run, cuda_release },
};
CUDA_ENGINES(lrn_planes) = { row, sizeof row / sizeof *row };
