/* norm_two_pass_backward.cu -- gradients of layer_norm and rms_norm by contiguous rows of any alignment and dtypes, up to 16384 elements
 * (sm_90: 131072): a row is read twice, the second time mostly from the caches.
 *
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      per block in registers, then added up over the blocks (norm_parameters.cuh)
 *
 * Refused: groups that are not contiguous, or longer; parameters that vary from group to group. */
#include "norm_rows_backward.cuh"
#include "kit/eight.cuh"

enum { V = 8 };

struct by_elements_args : norm_args, row_division {
  norm_items outer;                       /* numbers rows */
  int32_t  rows, length;
};

template <int threads, bool cluster> __global__ void __launch_bounds__(BLOCK, 1) by_elements(const __grid_constant__ by_elements_args a)
{
  constexpr int K = 2 * EACH / V, groups = BLOCK / threads;
  __shared__ float stage[groups > 1 ? K * threads * V : 1];
  const int t = threadIdx.x % threads, group = threadIdx.x / threads;
  int rank, turn = 0;
  const int job = row_enter<cluster>(a.parts, &rank), first = (rank * threads * K + t) * V, step = a.jobs * groups;
  float dscale[K][V] = {}, dshift[K][V] = {};
  bool begun = false;
#pragma unroll 1
  for (int row = job * groups + group; row < a.rows; row += step, turn ^= 1, begun = true) {
    const int64_t x = a.outer.place(row, X), dy = a.outer.place(row, DY), dx = a.outer.place(row, Y);
    const float mean = a.centred ? a.statistic(MEAN, a.outer.place(row, MEAN)) : 0;
    const float rstd = a.statistic(RSTD, a.outer.place(row, RSTD));
    /* h, dy and g of the n elements at j */
    const auto load = [&](int j, int n, float (&h)[V], float (&d)[V], float (&g)[V]) {
      const eight u = eight_load(a.p[X], a.dtype[X], x + j, n), v = eight_load(a.p[DY], a.dtype[DY], dy + j, n);
      eight w = v;
      if (a.p[SCALE]) w = eight_load(a.p[SCALE], a.dtype[SCALE], j, n);
#pragma unroll
      for (int i = 0; i < V; i++) {
        h[i] = i < n ? (u.v[i] - mean) * rstd : 0, d[i] = v.v[i];
        g[i] = a.p[SCALE] ? d[i] * w.v[i] : d[i];
      }
    };
    float h[V], d[V], g[V], sum = 0, along = 0;
#pragma unroll 1
    for (int k = 0; k < K; k++) {
      const int j = first + k * threads * V, n = min((int)V, a.length - j);
      if (n <= 0) break;
      load(j, n, h, d, g);
#pragma unroll
      for (int i = 0; i < V; i++) sum += g[i], along += g[i] * h[i];
    }
    const float2 s = row_sums<threads, cluster, true>(sum, along, a.parts, rank, begun, turn);
    sum = a.centred ? s.x * a.inverse : 0, along = s.y * a.inverse;
#pragma unroll
    for (int k = 0; k < K; k++) {
      const int j = first + k * threads * V, n = min((int)V, a.length - j);
      if (n <= 0) break;
      load(j, n, h, d, g);
#pragma unroll
      for (int i = 0; i < V; i++) {
        dscale[k][i] += d[i] * h[i];
        dshift[k][i] += d[i];
        g[i] = rstd * (g[i] - sum - h[i] * along);
      }
      eight_store(eight_of(g), a.p[Y], a.dtype[Y], dx + j, n);
    }
  }
#pragma unroll
  for (int what = 0; what < 2; what++) {
    if (!a.part[what]) continue;
    float *to = a.part[what] + job * a.part_step;
#pragma unroll 1
    for (int q = 0; q < groups; q++) {    /* adds the row groups of the block, in order */
      if (group == q)
#pragma unroll
        for (int k = 0; k < K; k++)
#pragma unroll
          for (int i = 0; i < V; i++) {
            const int j = first + k * threads * V + i;
            const float v = what ? dshift[k][i] : dscale[k][i], all = groups > 1 && q ? stage[j] + v : v;
            if (groups > 1 && q < groups - 1) stage[j] = all;
            else if (j < a.length) to[j] = all;
          }
      if (groups > 1) __syncthreads();
    }
  }
}

/* ---- prepare ----------------------------------------------------------------------------------------------------------------- */

struct by_elements_state : row_plan {
  by_elements_args a;
};

static const void *const kernels[3] = { (const void *)by_elements<64, false>, (const void *)by_elements<512, false>,
                                        (const void *)by_elements<512, true> };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  by_elements_state s = {};
  by_elements_args &a = s.a;
  const norm_problem &p = s.of;
  qn_status status = norm_open(r, 0, &s.of, &a, out);
  if (status) return status;
  if (!norm_rows(&p) || !norm_number(p.outer, 1, &a.outer))
    return qn_refuse(out, "rows are contiguous, as are their parameters, which all rows share", "x", "", "%s", "another layout");
  status = row_divide(r, p, 2 * BLOCK * EACH, &a, out);
  if (status) return status;
  const int threads = p.length <= 64 * 2 * EACH ? 64 : BLOCK;
  s.kernel = kernels[threads == 64 ? 0 : a.parts == 1 ? 1 : 2];
  a.rows = (int32_t)p.groups, a.length = (int32_t)p.length;
  s.share_rows(r, threads, p.length, &a, out);
  out->estimate = 10000 + p.moved * 1.7 / 1000;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const by_elements_state *s = (const by_elements_state *)p->state;
  return s->run(s->a, launch, "norm_two_pass");
}

/* The sums depend on how many blocks the device holds, so they are not portable. */
#define ROW(op) { "two_pass", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM_BACKWARD) };
CUDA_ENGINES(norm_two_pass_backward) = { row, sizeof row / sizeof *row };
