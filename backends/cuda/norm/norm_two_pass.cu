/* norm_two_pass.cu -- layer_norm and rms_norm, forward, of groups of any length, layout and dtypes: a warp or a block reads a group twice,
 * the second time mostly from the caches.
 *
 * Where elements have no vectors the loads are the limit, and few long groups do not fill the device: others are preferred. */
#include "norm_sums.cuh"
#include "kit/eight.cuh"

enum { V = 8 };                           /* elements of a thread at once */

struct two_passes : norm_args {
  norm_items outer, in;                   /* numbers rows; elements of a row */
  bool     run[PARAMETERS_END];           /* contiguous along a row */
  int32_t  rows, length;
};

/* Adds n elements. Distances are taken from the mean so far, at first from one of three elements. */
__device__ __forceinline__ void add_elements(moments &m, const float (&v)[V], int n, bool centred)
{
  if (centred && m.count == 0) m.mean = n > 2 ? middle(v[0], v[1], v[2]) : v[0];
  const float from = finite_or_0(m.mean);
  float s1 = 0, s2 = 0;
#pragma unroll
  for (int i = 0; i < V; i++) {
    const float d = i < n ? v[i] - from : 0;
    s1 += d;
    s2 += d * d;
  }
  m.count += (float)n;
  m.squares += centred ? s2 - s1 * s1 / m.count : s2;
  if (centred) m.mean += s1 / m.count;
}

/* Elements j .. j + n - 1 of a row that begins at `base` in tensor t. */
static __device__ __noinline__ eight load_any(const two_passes &a, int t, int64_t base, int j, int n)
{
  eight w;
  if (a.run[t]) vector_load(w.v, a.p[t], dtype3(a.dtype[t]), base + j, 1, n);
  else
#pragma unroll
    for (int i = 0; i < V; i++) w.v[i] = i < n ? element_load<float>(a.p[t], base + a.in.place(j + i, t), dtype3(a.dtype[t])) : 0;
  return w;
}

template <int threads>
__global__ void __launch_bounds__(threads < 256 ? 256 : threads) read_twice(const __grid_constant__ two_passes a)
{
  constexpr int together = threads < 256 ? 256 / threads : 1;
  __shared__ float4 of_warp[threads / 32];
  const int t = threadIdx.x % threads, row = blockIdx.x * together + threadIdx.x / threads;
  if (row >= a.rows) return;              /* whole warps leave, and whole blocks where a row takes a block */
  const int64_t x = a.outer.place(row, X), y = a.outer.place(row, Y), of[] = { a.outer.place(row, SCALE), a.outer.place(row, SHIFT) };
  moments m;
  float unit = 1;                         /* of x; less than 1 where squares overflow otherwise */
#pragma unroll 1
  for (;;) {
    m = {};
#pragma unroll 1
    for (int64_t j = t * V; j < a.length; j += threads * V) {
      const int n = (int)min((int64_t)V, a.length - j);
      eight v = load_any(a, X, x, (int)j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v.v[i] *= unit;
      add_elements(m, v.v, n, a.centred);
    }
    m = warp_join_lanes(m, warp_sum(m.count));
    if (threads > 32) {
      if (unit < 1) __syncthreads();      /* of_warp has been read */
      if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = m.pack();
      __syncthreads();
      m = lanes_join_all(32, threads / 32, [&](int w) { return moments::unpack(of_warp[w]); });
    }
    if (a.dtype[X] == QN_F16 || unit < 1 || !far_out(m.squares)) break;
    unit = FAR_UNIT;
  }
  const float rstd = 1 / sqrtf(m.squares / (float)a.length + a.eps * unit * unit);
  float mean[1] = { m.mean / unit }, factor[1] = { rstd * unit };
  if (t == 0) a.put(MEAN, a.outer.place(row, MEAN), mean[0]), a.put(RSTD, a.outer.place(row, RSTD), factor[0]);
  unit = far_unit(mean, factor);          /* of x as it is: the unit of squares would cost small elements their digits */
#pragma unroll 1
  for (int64_t at = t * V; at < a.length; at += threads * V) {
    const int j = (int)at, n = (int)min((int64_t)V, a.length - at);
    eight v = load_any(a, X, x, j, n);
#pragma unroll
    for (int i = 0; i < V; i++) v.v[i] = far_normalized(v.v[i], unit, mean[0], factor[0]);
#pragma unroll
    for (int k = SCALE; k <= SHIFT; k++) {
      if (!a.p[k]) continue;
      const eight w = load_any(a, k, of[k - SCALE], j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v.v[i] = k == SCALE ? v.v[i] * w.v[i] : v.v[i] + w.v[i];
    }
    if (a.run[Y]) eight_store(v, a.p[Y], a.dtype[Y], y + j, n);
    else
#pragma unroll
      for (int i = 0; i < V; i++)
        if (i < n) element_store(a.p[Y], y + a.in.place(j + i, Y), dtype3(a.dtype[Y]), v.v[i]);
  }
}

/* ---- prepare, rows --------------------------------------------------------------------------------------------------------- */

struct state : norm_plan { two_passes a; };

/* A row's threads depend on its length alone, so its result does not depend on its neighbours. */
static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  two_passes &a = s.a;
  norm_problem &p = s.of;
  const qn_status status = norm_open(r, 0, &p, &a, out);
  if (status) return status;
  if (p.length > INT32_MAX || p.groups > INT32_MAX || !norm_number(p.in, 1, &a.in) || !norm_number(p.outer, 1, &a.outer))
    return qn_refuse(out, "fewer than 2^31 rows and elements of one, up to 4 dims of each that do not merge", "x", "", "%d other dims",
                     p.outer.rank);
  bool runs = true;
  for (int t = 0; t < PARAMETERS_END; t++) {
    a.run[t] = true;
    int64_t step = 1;
    for (int d = p.in.rank - 1; d >= 0; step *= p.in.dim[d--]) a.run[t] &= p.in.stride[t][d] == step;
    runs &= a.run[t] || t > Y;
  }
  a.rows = (int32_t)p.groups, a.length = (int32_t)p.length;
  const int threads = p.length <= 2048 ? 32 : p.length <= 65536 ? 256 : 1024;
  s.kernel = threads == 32 ? (const void *)read_twice<32> : threads == 256 ? (const void *)read_twice<256> : (const void *)read_twice<1024>;
  s.threads = threads == 32 ? 256 : (uint32_t)threads, s.cluster = 1;
  s.blocks = (uint32_t)qn_ceil_div(p.groups, s.threads / (uint32_t)threads);
  /* few groups do not fill the device: the time of one block for one of them, at a multiprocessor's share of the rate */
  const double most = qn_max_i64(p.groups, threads == 32 ? 1 : r->device->units);
  out->estimate = 6000 + p.moved * 1.5 * (most / (double)p.groups) / (runs ? 800 : 100);
  return cuda_keep(out, &s, sizeof s);
}

static const qn_engine row[] = { NORM_ROWS(state, "two_pass", QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, prepare) };
CUDA_ENGINES(norm_two_pass) = { row, sizeof row / sizeof *row };
