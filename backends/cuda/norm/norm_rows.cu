/* norm_rows.cu -- layer_norm and rms_norm and their gradients over contiguous groups that fit into the registers of a warp, a
 * block or (sm_90) a cluster: each element is read once and written once. f16, bf16, f32, any alignment and mix of dtypes.
 *
 *   y = (x - mean) rstd scale + shift        rms_norm: mean is 0
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      per block in registers, then added up over the blocks (norm_parts.cuh)
 *
 * Forward, a block handles its rows and ends; other resident blocks hide the latency. Backward, blocks are persistent, so that a
 * thread always has the same columns and can sum dscale and dshift in registers; the next row's loads are in flight while it works. */
#include "cuda_backend.h"
#include "kit/eight.cuh"
#include "engines.h"
#include "norm_far.cuh"
#include "norm_moments.cuh"
#include "norm_parts.cuh"
#include "kit/shared_memory.h"
#include "kit/sm90.cuh"
#include "kit/sums.cuh"

enum { MAX_OUTER = 4, V = 8, BACKWARD = 512 };    /* BACKWARD: threads of a block */
enum { X, Y, DY, MEAN, RSTD, SCALE, SHIFT, WALKED };      /* y is dx for a gradient */

struct rows {
  void    *p[WALKED];
  float   *part[2];                       /* gradients: partial sums of dscale and dshift; NULL: not wanted */
  int64_t  part_step;                     /* between blocks (or clusters) */
  uint32_t dtype[WALKED];
  int32_t  rank, centred;
  int32_t  parts, jobs;                   /* blocks for a row; backward: blocks, or clusters, that share the rows */
  int64_t  length, count;
  float    eps;
  uint32_t repeat;                        /* consecutive elements that share a parameter: 1, or (group norm) the size of a channel */
  uint32_t dim[MAX_OUTER];                /* outer dims, innermost first */
  int64_t  stride[WALKED][MAX_OUTER];

  __device__ __forceinline__ int64_t place(int64_t row, int t) const      /* offset of the row in tensor t */
  {
    if (rank < 2) return row * stride[t][0];
    uint32_t rest = (uint32_t)row;
    int64_t at = 0;
#pragma unroll 1
    for (int d = 0; d < rank; d++) {
      uint32_t q = rest / dim[d];
      at += (rest - q * dim[d]) * stride[t][d];
      rest = q;
    }
    return at;
  }
};

/* whole: x, y and dy have this dtype, in whole aligned vectors, parameters this or f32; 0: anything. left(): elements of the
 * vector at j that belong to the row. */
__device__ __forceinline__ int left(const rows &r, int j) { return min((int)V, (int)r.length - j); }
template <int whole> __device__ __forceinline__ bool inside(int i, int n) { return whole ? n > 0 : i < n; }
template <int whole> __device__ __forceinline__ void store(const float (&v)[V], void *base, uint32_t dtype, int64_t at, int n)
{
  if (n <= 0) return;
  if (whole) vector_store_whole<whole ? whole : QN_F32>(v, base, at);
  else eight_store(eight_of(v), base, dtype, at, n);
}
template <int whole> __device__ __forceinline__ void fetch(packet<whole> &x, const void *base, uint32_t dtype, int64_t at, int n)
{
  if constexpr (whole) x.load(base, dtype, at, n, 0);
  else eight_load(base, dtype, at, n).to(x.held);
}

/* n parameters for elements j.. of a row, where one serves `repeat` elements; at: offset of the row's first. */
static __device__ __noinline__ eight spread_load(const void *base, uint32_t dtype, int64_t at, uint32_t j, uint32_t repeat, int n)
{
  eight a;
#pragma unroll
  for (int i = 0; i < V; i++) a.v[i] = i < n ? element_load<float>(base, at + (j + i) / repeat, dtype3(dtype)) : 0;
  return a;
}

/* V elements of a parameter that lies like a row, or (spread) serves several elements. */
template <int whole, bool spread> __device__ __forceinline__ void parameter(float (&w)[V], const rows &r, int t, int64_t at, int j, int n)
{
  const void *base = r.p[t];
  uint32_t dtype = r.dtype[t];
  if constexpr (spread) spread_load(base, dtype, at, (uint32_t)j, r.repeat, n).to(w);
  else if constexpr (!whole) eight_load(base, dtype3(dtype), j, n).to(w);
  else if (n <= 0) {
#pragma unroll
    for (int i = 0; i < V; i++) w[i] = 0;
  }
  else if (whole == QN_F32 || dtype == QN_F32) vector_load_whole<QN_F32>(w, base, j);
  else vector_load_whole<whole ? whole : QN_F32>(w, base, j);
}

/* ---- which row a thread has; exchange between the row's warps --------------------------------------------------------------- */

enum { ROW_MAX_PARTS = 8, ROW_SHARE = 16384 };            /* blocks a row; elements of a block of 512 threads at most */
template <int threads> constexpr int row_block = threads < 128 ? 128 : threads;
template <int threads> constexpr int row_pairs = threads == 512 ? 16 * ROW_MAX_PARTS : 16;

/* Blocks for a row of this length, at `share` elements each; 0: too long. */
static inline int row_parts(const qn_device *device, int64_t length, int64_t share)
{
  int parts = 1;
  while (parts < ROW_MAX_PARTS && length > share * parts) parts *= 2;
  return length > share * parts || (parts > 1 && !cuda_has_clusters(device)) ? 0 : parts;
}

/* The number of the block's (or cluster's) first group of rows, and its rank in the cluster; signals to the cluster that it started. */
template <int threads> __device__ __forceinline__ uint32_t row_enter(int parts, int *rank)
{
  *rank = 0;
#if __CUDA_ARCH__ >= 900
  if (threads == 512 && parts > 1) {
    *rank = (int)cluster_rank();
    cluster_arrive();
    return blockIdx.x / (uint32_t)parts;
  }
#endif
  return blockIdx.x;
}

/* The row's threads, in all its blocks, wait for one another. */
template <int threads> __device__ __forceinline__ void row_sync(int parts)
{
#if __CUDA_ARCH__ >= 900
  if (threads == 512 && parts > 1) return cluster_sync();
#endif
  group_sync(0, threads);
}

/* Sends each warp's four floats to all warps of the row, in all its blocks; returns how many there are. A row within a block uses
 * a named barrier. begun: the cluster has already synchronised since row_enter. */
template <int threads> __device__ __forceinline__ int row_exchange(int parts, int rank, int barrier, bool begun, float4 *pairs, float4 mine)
{
  constexpr int warps = threads / 32;
  int warp = threadIdx.x % threads / 32;
  if (threadIdx.x % 32 == 0) pairs[rank * warps + warp] = mine;
#if __CUDA_ARCH__ >= 900
  if (threads == 512 && parts > 1) {
    int to = threadIdx.x % 32;
    if (!begun) cluster_wait();
    if (to < parts && to != rank)
      cluster_store(cluster_address(shared_address(&pairs[rank * warps + warp]), to), mine.x, mine.y, mine.z, mine.w);
    cluster_sync();
    return warps * parts;
  }
#endif
  group_sync(barrier, threads);
  return warps;
}

/* ---- forward: a row is handled by `parts` blocks of `threads` threads with K vectors each ------------------------------------ */

template <int threads, int K, int whole, bool spread>
__global__ void __launch_bounds__(row_block<threads>, whole ? 1024 / row_block<threads> : 1) norm_rows(const __grid_constant__ rows r)
{
  __shared__ float4 pairs[row_pairs<threads>];
  int rank, t = threadIdx.x % threads;
  int64_t row = row_enter<threads>(r.parts, &rank) * (int64_t)(row_block<threads> / threads) + threadIdx.x / threads;
  if (row >= r.count) return;             /* whole warps leave, and whole blocks where a row takes a block */
  int64_t at = r.place(row, X);
  int first = (rank * threads * K + t) * V, warp_first = first - t % 32 * V, count = 0;
  packet<whole> x[K];
  float v[K][V], mean, squares;
#pragma unroll
  for (int k = 0; k < K; k++) {
    int j = first + k * threads * V;
    fetch(x[k], r.p[X], dtype3(r.dtype[X]), at + j, left(r, j));
    count += max(0, min(32 * V, (int)r.length - (warp_first + k * threads * V)));
  }
#pragma unroll
  for (int k = 0; k < K; k++) x[k].open(v[k]);
  float unit = 1;                         /* of x; less than 1 where squares overflow otherwise */
#pragma unroll 1
  for (bool again = false;; again = true) {
    /* summed as distances from an element, so that a constant row has its value as mean and nothing else */
    const float about = finite_or_0(__shfl_sync(~0u, v[0][0], 0));
    mean = squares = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int n = left(r, first + k * threads * V);
#pragma unroll
      for (int i = 0; i < V; i++) mean += inside<whole>(i, n) ? v[k][i] - about : 0;
    }
    mean = r.centred && count ? about + warp_sum(mean) / (float)count : 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int n = left(r, first + k * threads * V);
#pragma unroll
      for (int i = 0; i < V; i++) {
        float d = inside<whole>(i, n) ? v[k][i] - mean : 0;
        squares += d * d;
      }
    }
    squares = warp_sum(squares);
    if (threads > 32) {                   /* each warp's squares are relative to its own mean (Chan, Golub, LeVeque) */
      if (again) row_sync<threads>(r.parts);      /* all have read pairs */
      int lane = threadIdx.x % 32,
          n = row_exchange<threads>(r.parts, rank, 0, again, pairs, make_float4(mean, squares, (float)count, 0));
      const float first_mean = finite_or_0(pairs[0].x);
      float sum = 0;
      for (int i = lane; i < n; i += 32) sum += (pairs[i].x - first_mean) * pairs[i].z;
      mean = first_mean + warp_sum(sum) / (float)r.length;
      squares = 0;
      for (int i = lane; i < n; i += 32) {
        float d = pairs[i].x - mean;
        squares += pairs[i].y + d * d * pairs[i].z;
      }
      squares = warp_sum(squares);
    }
    if (whole == QN_F16 || again || !far_out(squares)) break;
    unit = FAR_UNIT;
#pragma unroll
    for (int k = 0; k < K; k++)
#pragma unroll
      for (int i = 0; i < V; i++) v[k][i] *= FAR_UNIT;
  }
  const float rstd = 1 / sqrtf(squares / (float)r.length + r.eps * unit * unit);
  at = r.place(row, Y);
  int64_t scale_at = spread ? r.place(row, SCALE) : 0, shift_at = spread ? r.place(row, SHIFT) : 0;
#pragma unroll
  for (int k = 0; k < K; k++) {
    int j = first + k * threads * V, n = left(r, j);
    if (n <= 0) break;
    float w[V];
#pragma unroll
    for (int i = 0; i < V; i++) v[k][i] = (v[k][i] - mean) * rstd;
    if (r.p[SCALE]) {
      parameter<whole, spread>(w, r, SCALE, scale_at, j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v[k][i] *= w[i];
    }
    if (r.p[SHIFT]) {
      parameter<whole, spread>(w, r, SHIFT, shift_at, j, n);
#pragma unroll
      for (int i = 0; i < V; i++) v[k][i] += w[i];
    }
    store<whole>(v[k], r.p[Y], dtype3(r.dtype[Y]), at + j, n);
  }
  if (rank == 0 && t == 0 && r.p[MEAN]) ((float *)r.p[MEAN])[r.place(row, MEAN)] = mean / unit;
  if (rank == 0 && t == 0 && r.p[RSTD]) ((float *)r.p[RSTD])[r.place(row, RSTD)] = rstd * unit;
}

/* ---- gradients ---------------------------------------------------------------------------------------------- */

/* A thread's vectors of a row, raw. */
template <int K, int whole> struct share {
  packet<whole> x[K], dy[K];
  float mean, rstd;

  template <int threads> __device__ __forceinline__ void load(const rows &r, int64_t row, int first)
  {
    if (row >= r.count) return;
    int64_t x_at = r.place(row, X) + first, dy_at = r.place(row, DY) + first;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int j = k * threads * V, n = left(r, first + j);
      fetch(x[k], r.p[X], dtype3(r.dtype[X]), x_at + j, n);
      fetch(dy[k], r.p[DY], dtype3(r.dtype[DY]), dy_at + j, n);
    }
    mean = r.centred ? ((const float *)r.p[MEAN])[r.place(row, MEAN)] : 0;
    rstd = ((const float *)r.p[RSTD])[r.place(row, RSTD)];
  }
  __device__ __forceinline__ void open(float (&h)[V], float (&g)[V], int k, int n) const
  {
    x[k].open(h);
    dy[k].open(g);
#pragma unroll
    for (int i = 0; i < V; i++) h[i] = inside<whole>(i, n) ? (h[i] - mean) * rstd : 0;
  }
};

/* A block of 512 threads handles 512 / threads rows at a time. */
template <int threads, int K, int whole> __global__ void __launch_bounds__(BACKWARD, 1) norm_backward_rows(const __grid_constant__ rows r)
{
  constexpr int groups = BACKWARD / threads, warps = threads / 32;
  constexpr bool ahead = K <= 2 && (whole == QN_BF16 || whole == QN_F16);     /* where registers allow */
  __shared__ float4 pairs[2][groups == 1 ? row_pairs<threads> : BACKWARD / 32];
  const int parts = groups > 1 ? 1 : r.parts;
  int rank, group = threadIdx.x / threads, t = threadIdx.x % threads, turn = 0;
  int64_t job = row_enter<threads>(parts, &rank);
  int first = (rank * threads * K + t) * V;
  float scale[K][V], dscale[K][V] = {}, dshift[K][V] = {}, inverse = 1 / (float)r.length;
#pragma unroll
  for (int k = 0; k < K && r.p[SCALE]; k++) {
    int j = first + k * threads * V;
    parameter<whole, false>(scale[k], r, SCALE, 0, j, left(r, j));
  }
  share<K, whole> next;
  int64_t row = job * groups + group, step = (int64_t)r.jobs * groups;
  next.template load<threads>(r, row, first);
  for (bool begun = false; row < r.count; row += step, turn ^= 1, begun = true) {
    share<K, whole> mine = next;
    if (ahead) next.template load<threads>(r, row + step, first);
    float h[K][V], g[K][V], sum = 0, along = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      mine.open(h[k], g[k], k, left(r, first + k * threads * V));
#pragma unroll
      for (int i = 0; i < V; i++) {
        dscale[k][i] += g[k][i] * h[k][i];
        dshift[k][i] += g[k][i];
        if (r.p[SCALE]) g[k][i] *= scale[k][i];
        sum += g[k][i];
        along += g[k][i] * h[k][i];
      }
    }
    sum = warp_sum(sum);
    along = warp_sum(along);
    if (threads > 32) {
      float4 *seen = &pairs[turn][group * warps];
      int n = row_exchange<threads>(parts, rank, groups > 1 ? 1 + group : 0, begun, seen, make_float4(sum, along, 0, 0));
      sum = along = 0;
      if (parts == 1) {
#pragma unroll
        for (int i = 0; i < warps; i++) sum += seen[i].x, along += seen[i].y;
      } else {
        for (int i = threadIdx.x % 32; i < n; i += 32) sum += seen[i].x, along += seen[i].y;
        sum = warp_sum(sum);
        along = warp_sum(along);
      }
    }
    sum = r.centred ? sum * inverse : 0;
    along *= inverse;
    int64_t at = r.place(row, Y);
#pragma unroll
    for (int k = 0; k < K; k++) {
      int j = first + k * threads * V;
#pragma unroll
      for (int i = 0; i < V; i++) g[k][i] = mine.rstd * (g[k][i] - sum - h[k][i] * along);
      store<whole>(g[k], r.p[Y], dtype3(r.dtype[Y]), at + j, left(r, j));
    }
    if (!ahead) next.template load<threads>(r, row + step, first);
  }
#pragma unroll
  for (int what = 0; what < 2; what++) {
    if (!r.part[what]) continue;
    float *to = r.part[what] + job * r.part_step;
    if constexpr (groups == 1) {
#pragma unroll
      for (int k = 0; k < K; k++) {
        int j = first + k * threads * V;
        store<whole ? QN_F32 : 0>(what ? dshift[k] : dscale[k], to, QN_F32, j, left(r, j));
      }
    } else {                              /* add the row groups of the block, in order */
      __shared__ __align__(16) float stage[groups][K * threads * V];
#pragma unroll
      for (int k = 0; k < K; k++) vector_store_whole<QN_F32>(what ? dshift[k] : dscale[k], stage[group], (k * threads + t) * V);
      __syncthreads();
      for (int j = threadIdx.x; j < K * threads * V && j < r.length; j += BACKWARD) {
        float total = 0;
        for (int q = 0; q < groups; q++) total += stage[q][j];
        to[j] = total;
      }
      __syncthreads();
    }
  }
}

/* ---- state ------------------------------------------------------------------------------------------------------------------ */

struct state {
  rows    r;
  column_parts parts;
  int32_t number[WALKED], gradient[2];    /* value numbers of the request, -1: absent; gradient: dscale, dshift */
  const void *kernel;
  int32_t threads, blocks;
  bool    backward, whole;
  bool    spread;                         /* parameters vary from row to row, or serve several elements */
};

/* Consecutive elements of a row that share a parameter: 1 if it lies like a row, more if it lies like a row's outer dims; 0: neither.
 * outer: it may also vary along the other dims. */
static int64_t repeat_of(const qn_value *v, const qn_value *x, uint64_t mask, bool outer)
{
  int64_t repeat = 1;
  bool inner = true;                      /* all dims so far were broadcast */
  for (int d = x->rank - 1; d >= 0; d--) {
    bool in = mask >> d & 1, one = v->dim[d] == 1;
    if (!one && v->dim[d] != x->dim[d]) return 0;
    if (!in && !one && !outer) return 0;
    if (!in || x->dim[d] == 1) continue;
    if (one && !inner) return 0;
    if (one) repeat *= x->dim[d];
    else if (inner = false, v->stride[d] * repeat != x->stride[d]) return 0;
  }
  return repeat;
}

static const qn_value *value(const qn_request *r, int32_t i) { return i < 0 ? nullptr : &r->value[i]; }
static int32_t role(const qn_request *r, int8_t role) { return role < 0 ? -1 : qn_role(&r->op[0], (uint32_t)role); }

/* ---- the kernel of a shape ----------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct shape {
  int64_t length;                         /* at most, of a block's share */
  int32_t threads;
  kernel  of[4];                          /* by dtype: any, f32, bf16, f16; NULL: use a longer shape */
};
#define FORWARD(threads, K, any)                                                                                                  \
  { threads * K * V, threads, { any, (kernel)norm_rows<threads, K, QN_F32, false>, (kernel)norm_rows<threads, K, QN_BF16, false>, \
                                (kernel)norm_rows<threads, K, QN_F16, false> } }
#define GRADIENT(threads, K, any)                                                                                                   \
  { threads * K * V, threads, { any, (kernel)norm_backward_rows<threads, K, QN_F32>, (kernel)norm_backward_rows<threads, K, QN_BF16>, \
                                (kernel)norm_backward_rows<threads, K, QN_F16> } }
#define LONG (kernel)norm_backward_rows<512, 4, 0>        /* without clusters; spills registers */
/* Forward, a row's result must not depend on its neighbours, so neither do its threads; the longer warp shape only adds zeros. */
static const shape forward[] = {
  FORWARD(32, 1, nullptr),
  FORWARD(32, 4, ((kernel)norm_rows<32, 4, 0, false>)),
  FORWARD(128, 4, ((kernel)norm_rows<128, 4, 0, false>)),
  FORWARD(256, 4, ((kernel)norm_rows<256, 4, 0, false>)),
  FORWARD(512, 4, ((kernel)norm_rows<512, 4, 0, false>)),
};
static const shape forward_spread[] = {   /* whole vectors are faster in norm_kept */
  { 128 * 4 * V, 128, { (kernel)norm_rows<128, 4, 0, true> } },
  { 512 * 4 * V, 512, { (kernel)norm_rows<512, 4, 0, true> } },
};
static const shape backward[] = {
  GRADIENT(32, 2, nullptr),
  GRADIENT(64, 2, ((kernel)norm_backward_rows<64, 2, 0>)),
  GRADIENT(128, 2, nullptr),
  GRADIENT(256, 2, nullptr),
  GRADIENT(512, 2, ((kernel)norm_backward_rows<512, 2, 0>)),
  { ROW_SHARE, 512, { LONG, LONG, LONG, LONG } },
};

static void choose_shape(state *s, const qn_device *device)
{
  rows &r = s->r;
  const shape *shape = s->backward ? backward : s->spread ? forward_spread : forward;
  int dtype = !s->whole ? 0 : r.dtype[X] == QN_F32 ? 1 : r.dtype[X] == QN_BF16 ? 2 : 3;
  while (shape->length * r.parts < r.length || !shape->of[dtype]) shape++;
  s->kernel = shape->of[dtype];
  s->threads = s->backward ? BACKWARD : shape->threads < 128 ? 128 : shape->threads;
  int64_t jobs = qn_ceil_div(r.count, s->threads / shape->threads);
  if (s->backward) jobs = qn_min_i64(jobs, qn_max_i64(1, device->units / r.parts));
  r.jobs = (int32_t)jobs;
  s->blocks = (int32_t)(jobs * r.parts);
}

/* ---- prepare, run ------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const qn_norm *norm = (const qn_norm *)r->op[0].attr;
  state s = {};
  s.backward = roles.dy >= 0;
  s.number[X] = role(r, roles.x);
  s.number[Y] = role(r, s.backward ? roles.dx : roles.y);
  s.number[DY] = role(r, roles.dy);
  s.number[MEAN] = role(r, roles.mean);
  s.number[RSTD] = role(r, roles.rstd);
  s.number[SCALE] = role(r, roles.scale);
  s.number[SHIFT] = role(r, roles.shift);
  s.gradient[0] = role(r, roles.dscale), s.gradient[1] = role(r, roles.dshift);
  const qn_value *x = &r->value[s.number[X]];
  if (x->dtype == QN_F64) return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", "f64");

  qn_nest walked = {}, outer = {};
  walked.n = 3, outer.n = WALKED;
  int64_t length = 1, count = 1;
  for (int d = 0; d < x->rank; d++) {
    bool in = norm->mask >> d & 1;
    qn_nest *nest = in ? &walked : &outer;
    nest->dim[nest->rank] = x->dim[d];
    for (int t = 0; t < nest->n; t++) {
      const qn_value *v = value(r, s.number[t]);
      nest->stride[t][nest->rank] = !v ? (t < 3 ? x->stride[d] : 0) : v->dim[d] == 1 ? 0 : v->stride[d];
    }
    nest->rank++;
    *(in ? &length : &count) *= x->dim[d];
  }
  qn_nest_simplify(&walked);
  qn_nest_simplify(&outer);
  bool contiguous = walked.rank == 0 ||
                    (walked.rank == 1 && walked.stride[0][0] == 1 && walked.stride[1][0] == 1 && walked.stride[2][0] == 1);
  if (!contiguous)
    return qn_refuse(out, "the dims normalized over must lie side by side, alike in all tensors", "x", "one run of stride 1", "%d runs",
                     walked.rank);
  s.r.parts = row_parts(r->device, length, s.backward ? ROW_SHARE / 2 : ROW_SHARE);
  if (!s.r.parts) s.r.parts = row_parts(r->device, length, ROW_SHARE);
  if (!s.r.parts)
    return qn_refuse(out, "a group must fit into the registers of a block, on Hopper of a cluster", "x", "at most 16384 or 131072 elements",
                     "%lld", (long long)length);
  if (count * s.r.parts > INT32_MAX) return qn_refuse(out, "fewer than 2^31 groups", "x", "", "%lld", (long long)count);
  if (outer.rank > MAX_OUTER) return qn_refuse(out, "at most 4 other dims that do not merge", "x", "4", "%d", outer.rank);
  const int32_t parameter[] = { s.number[SCALE], s.number[SHIFT], s.gradient[0], s.gradient[1] };
  static const char *const names[] = { "scale", "shift", "dscale", "dshift" };
  int64_t repeat = 0;                     /* the same for all; gradients need 1 */
  for (int i = 0; i < 4; i++) {
    if (parameter[i] < 0) continue;
    int64_t here = repeat_of(&r->value[parameter[i]], x, norm->mask, !s.backward);
    if (here == 0 || (repeat && here != repeat) || (s.backward && here != 1))
      return qn_refuse(out, "a parameter must lie like one group, forward also like its channels and differ", names[i],
                       "x's dims and steps (over the elements of a channel) where it is normalized over", "%s", "other dims or strides");
    repeat = here;
  }
  s.r.repeat = (uint32_t)qn_max_i64(1, repeat);
  s.r.length = length, s.r.count = count;
  s.r.eps = (float)norm->eps;
  s.r.centred = r->op[0].op == QN_OP_LAYER_NORM || r->op[0].op == QN_OP_LAYER_NORM_BACKWARD;
  s.r.rank = outer.rank;
  for (int d = 0; d < outer.rank; d++) {
    s.r.dim[d] = (uint32_t)outer.dim[outer.rank - 1 - d];
    for (int t = 0; t < WALKED; t++) s.r.stride[t][d] = outer.stride[t][outer.rank - 1 - d];
  }
  s.whole = length % V == 0;
  for (int t = 0; t < WALKED; t++) {
    const qn_value *v = value(r, s.number[t]);
    if (v) s.r.dtype[t] = v->dtype;
    bool vectors = t < MEAN || (t >= SCALE && s.r.repeat == 1);
    if (v && vectors) {
      s.whole &= (v->dtype == x->dtype || (t >= SCALE && v->dtype == QN_F32)) && v->align >= 16;
      for (int d = 0; d < outer.rank; d++) s.whole &= s.r.stride[t][d] % V == 0;
    }
  }
  s.spread = s.r.repeat > 1;
  for (int t = SCALE; t <= SHIFT; t++)
    for (int d = 0; d < outer.rank; d++) s.spread |= s.number[t] >= 0 && s.r.stride[t][d] != 0;
  s.whole &= !s.spread;

  choose_shape(&s, r->device);
  s.parts = column_parts_of(r, s.gradient, s.r.jobs, length);
  if (s.r.parts > 1) out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;       /* depends on clusters: elsewhere another engine takes it */
  out->workspace = column_parts_bytes(&s.parts);
  return cuda_keep(out, &s, sizeof s);
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  rows r = s->r;
  for (int t = 0; t < WALKED; t++) r.p[t] = pointer(launch, s->number[t]);
  column_parts parts = s->parts;
  r.part_step = column_parts_place(&parts, s->gradient, launch, r.part);
  void *arguments[] = { &r };
  qn_status status = cuda_launch_clusters(s->kernel, (unsigned)s->blocks, (unsigned)r.parts, (unsigned)s->threads, 0, arguments, launch,
                                          "norm_rows");
  return status ? status : column_parts_add(parts, (cudaStream_t)launch->stream);
}

/* The gradients depend on how many blocks the device holds, so they are not portable. */
#define ROW(op, more) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | more, nullptr, nullptr, \
                        prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_LAYER_NORM, QN_TRAIT_PORTABLE),
  ROW(QN_OP_RMS_NORM, QN_TRAIT_PORTABLE),
  ROW(QN_OP_LAYER_NORM_BACKWARD, 0),
  ROW(QN_OP_RMS_NORM_BACKWARD, 0),
};
CUDA_ENGINES(norm_rows) = { row, sizeof row / sizeof *row };
