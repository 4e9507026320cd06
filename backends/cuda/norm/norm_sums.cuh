/* norm_sums.cuh -- the levels at which a group's statistics and a parameter's gradient are added up: mean and sum of squared distances from
 * it, of a thread's elements, merged from parts (Chan, Golub, LeVeque), across lanes, warps, blocks; statistics of groups whose squares
 * overflow; dscale and dshift over blocks or items, by a second launch; and the launch of a kernel, with that behind it. */
#pragma once
#include "norm_layout.cuh"
#include "kit/early.h"
#include "kit/sm90.cuh"
#include "kit/sums.cuh"

/* The median of three: a reference point should not be an outlier, which would cost all others their digits. */
__device__ __forceinline__ float middle(float a, float b, float c) { return fmaxf(fminf(a, b), fminf(fmaxf(a, b), c)); }

struct moments {                          /* mean of the elements seen, and the sum of their squared distances from it */
  float mean, squares, count;             /* infinite elements make the mean infinite or NaN, as a plain sum would */

  __device__ void join(const moments &b)
  {
    if (b.count == 0) return;
    float all = count + b.count, share = __fdividef(b.count, all), d = b.mean - mean;
    mean = fabsf(d) < INFINITY ? mean + d * share : mean + b.mean;
    squares += b.squares + (count == 0 ? 0 : d * d * count * share);
    count = all;
  }
  __device__ float4 pack() const { return make_float4(mean, squares, count, 0); }
  __device__ static moments unpack(float4 v) { return { v.x, v.y, v.z }; }
};

/* Moments of n numbers from s1, s2, the sums of d and d^2, where d is the distance from `from`, one of them or the mean of some
 * of them. That bounds the cancellation to a factor of about n. */
__device__ __forceinline__ moments moments_about(float from, float s1, float s2, float n, bool centred)
{
  float share = n > 0 ? __fdividef(1, n) : 0;
  return { centred ? from + s1 * share : 0, centred ? s2 - s1 * s1 * share : s2, n };
}
__device__ __forceinline__ float finite_or_0(float x) { return fabsf(x) < INFINITY ? x : 0; }
/* Of a gradient's scale: with an infinite one g - mean g is inf - inf, so dx is NaN. */
__device__ __forceinline__ float finite_or_nan(float x) { return fabsf(x) < INFINITY ? x : NAN; }
/* Adds a 16-byte word's elements to sums of distances from `from` and of their squares. N: one sum, or one for each element. */
template <int dtype, bool centred, int N>
__device__ __forceinline__ void add_word(const uint4 &word, const float (&from)[N], float (&s1)[N], float (&s2)[N])
{
  constexpr int E = vector_per_16<dtype>;
  float v[E];
  vector_open<dtype>(v, 0, word);
#pragma unroll
  for (int e = 0; e < E; e++) {
    const float d = centred ? v[e] - from[e % N] : v[e];
    if (centred) s1[e % N] += d;
    s2[e % N] = fmaf(d, d, s2[e % N]);
  }
}

/* The reference from which distances are taken: the median of three, elements of a word (N = 1) or words of three lines; word(k): the k-th.
 * share: the lanes of a warp that have words at one place of their lines take that of lane `lane`. */
template <int dtype, int N, class F> __device__ __forceinline__ void take_from(float (&from)[N], bool share, int lane, F word)
{
  constexpr int E = vector_per_16<dtype>;
  float near[3][E];
#pragma unroll
  for (int k = 0; k < (N == 1 ? 1 : 3); k++) {
    uint4 q = word(k);
    if (share)
      q = make_uint4(__shfl_sync(~0u, q.x, lane), __shfl_sync(~0u, q.y, lane), __shfl_sync(~0u, q.z, lane), __shfl_sync(~0u, q.w, lane));
    vector_open<dtype>(near[k], 0, q);
  }
#pragma unroll
  for (int e = 0; e < N; e++)
    from[e] = finite_or_0(N == 1 ? middle(near[0][0], near[0][1], near[0][2]) : middle(near[0][e], near[1][e], near[2][e]));
}
/* Adds up a warp's lines: over the lanes that are `lanes` apart. */
template <int N> __device__ __forceinline__ void sum_lines(float (&s)[N], int lanes)
{
  for (int o = lanes; o < 32; o *= 2)
#pragma unroll
    for (int e = 0; e < N; e++) s[e] += __shfl_xor_sync(~0u, s[e], o);
}

/* Merges the lanes' moments, `all` elements in total; all lanes get the result. Relative to the first lane's mean, so the sums
 * need one pass. */
__device__ __forceinline__ moments warp_join_lanes(const moments &mine, float all)
{
  const float about = finite_or_0(__shfl_sync(~0u, mine.mean, 0)), d = mine.mean - about, s1 = mine.count * d;
  return moments_about(about, warp_sum(s1), warp_sum(mine.squares + s1 * d), all, true);
}
/* Merges of(0..n-1) over `width` neighbouring lanes, a power of 2; all of them get the result. Relative to the first mean. */
template <class F> __device__ __forceinline__ moments lanes_join_all(int width, int n, F of)
{
  const float about = finite_or_0(of(0).mean);
  float count = 0, s1 = 0, s2 = 0;
#pragma unroll 1
  for (int i = threadIdx.x & (width - 1); i < n; i += width) {
    const moments m = of(i);
    const float d = m.mean - about, s = m.count * d;
    count += m.count;
    s1 += s;
    s2 += m.squares + s * d;
  }
  return moments_about(about, lanes_sum(s1, width), lanes_sum(s2, width), lanes_sum(count, width), true);
}
/* Merges lanes that are `apart` from one another by a tree; the first ones get the result. */
template <class S> __device__ __forceinline__ void warp_join(S &mine, int apart)
{
  for (int o = apart; o < 32; o *= 2) {
    const float4 v = mine.pack();
    mine.join(S::unpack(make_float4(__shfl_down_sync(~0u, v.x, o), __shfl_down_sync(~0u, v.y, o), __shfl_down_sync(~0u, v.z, o), 0)));
  }
}

/* ---- far out: the sum of squares overflows in float though mean and deviation do not. So far are only groups beyond about 1e15, and such
 * with an infinity or a NaN. Kernels that hold x in registers measure it again in units of FAR_UNIT; the others from global memory, in
 * double (far_measure) ---- */

#define FAR_UNIT 0x1p-80f                  /* exact, but for what would be lost among squares that overflow */
__device__ __forceinline__ bool far_out(float squares) { return !(fabsf(squares) < INFINITY); }

/* For (x - mean) rstd: in groups that reach the range's end x - mean may overflow though the result does not. There all is halved first,
 * elsewhere fmaf(x, 1, -mean) is x - mean. n groups of a thread share the unit: makes mean and rstd those of far_normalized. */
template <int n> __device__ __forceinline__ float far_unit(float (&mean)[n], float (&rstd)[n])
{
  float unit = 1;
#pragma unroll
  for (int i = 0; i < n; i++) unit = rstd[i] < 0x1p-110f ? 0.5f : unit;
#pragma unroll
  for (int i = 0; i < n; i++) mean[i] *= -unit, rstd[i] *= unit < 1 ? 2.f : 1.f;
  return unit;
}
__device__ __forceinline__ float far_normalized(float x, float unit, float mean, float rstd) { return fmaf(x, unit, mean) * rstd; }

struct norm_statistics { float mean, rstd, unbiased; };   /* unbiased: the variance with n - 1 for n */

/* The statistics of a group of `run` neighbouring elements of x from `at` on in each of `lines` lines, by `width` neighbouring lanes of a
 * converged warp, or (width 1) by any thread. Inlined: a call, though never made, cost kernels 5%. */
__device__ __forceinline__ norm_statistics far_measure(const norm_args &a, uint32_t dtype, int64_t at, int64_t lines, int64_t line_step,
                                                       int64_t run, int width)
{
  const int lane = threadIdx.x & (width - 1);
  const bool rows = lines == 1;           /* the lanes share a run, else the lines */
  const double n = (double)lines * (double)run;
  double mean = 0, squares = 0;
#pragma unroll 1
  for (int pass = a.centred ? 0 : 1; pass < 2; pass++) {
    double sum = 0;
#pragma unroll 1
    for (int64_t line = rows ? 0 : lane; line < lines; line += rows ? 1 : width)
#pragma unroll 1
      for (int64_t i = rows ? lane : 0; i < run; i += rows ? width : 1) {
        const float v = element_load<float>(a.p[X], at + line * line_step + i, dtype3(dtype));
        sum += pass ? (v - mean) * (v - mean) : v;
        if (sum != sum) break;            /* so it stays */
      }
    if (width > 1) sum = lanes_sum(sum, width);
    (pass ? squares : mean) = sum;
    if (!pass) mean /= n;
  }
  return { (float)mean, (float)(1 / sqrt(squares / n + a.eps)), (float)(squares / (n > 1 ? n - 1 : 1)) };
}
/* The same from the group's moments, unless it is far out. */
__device__ __forceinline__ norm_statistics statistics_of(const norm_args &a, uint32_t dtype, const moments &all, int64_t at, int64_t lines,
                                                         int64_t line_step, int64_t run, int width)
{
  if (dtype != QN_F16 && far_out(all.squares)) return far_measure(a, dtype, at, lines, line_step, run, width);
  return { all.mean, 1 / sqrtf(all.squares * a.inverse + a.eps), all.squares * a.unbiased };
}
/* Writes the statistics that a forward pass outputs; at(t): the offset of the group in tensor t. */
template <class F> __device__ __forceinline__ void leave_statistics(const norm_args &a, const norm_statistics &of, F at)
{
  const auto moved = [&](int t, float to) { return (1 - a.momentum) * a.statistic(t, at(t)) + a.momentum * to; };
  a.put(MEAN, at(MEAN), of.mean);
  a.put(RSTD, at(RSTD), of.rstd);
  a.put(NEW_MEAN, at(NEW_MEAN), moved(RUNNING_MEAN, of.mean));
  a.put(NEW_VAR, at(NEW_VAR), moved(RUNNING_VAR, of.unbiased));
}

/* ---- dscale and dshift over the blocks that share the rows ----------------------------------------------------------------------- */

struct column_parts {
  const float *part;                      /* [jobs, n, pitch], of which `length` count */
  void    *to[2];
  uint32_t dtype[2];
  int32_t  n, jobs;
  bool     early;                         /* launched early (programmatic dependent launch); it then waits for the producers */
  int64_t  length, pitch;
};

/* 32 x 32 threads add 32 columns. All loads of a thread (up to 160 blocks) are in flight at once; the order of the sum is fixed. */
__global__ static void __launch_bounds__(1024) add_parts(const __grid_constant__ column_parts a)
{
  constexpr int U = 5;
  __shared__ float shared[32][33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  const int64_t columns = a.n * a.pitch, from = blockIdx.x * (int64_t)32;
  float sum = 0;
#if __CUDA_ARCH__ >= 900
  grid_dependency_wait();
#endif
  if (from + x < columns)
    for (int b = y; b < a.jobs; b += 32 * U) {
      float v[U];
#pragma unroll
      for (int u = 0; u < U; u++) v[u] = b + 32 * u < a.jobs ? a.part[(b + 32 * u) * columns + from + x] : 0;
#pragma unroll
      for (int u = 0; u < U; u++) sum += v[u];
    }
  shared[y][x] = sum;
  __syncthreads();
  sum = warp_sum(shared[x][y]);
  const int64_t j = from + y;
  const int which = j >= a.pitch;
  if (x || j >= columns || j - which * a.pitch >= a.length) return;
  element_store(a.to[which], j - which * a.pitch, dtype3(a.dtype[which]), sum);
}

static inline qn_status column_parts_add(column_parts a, const norm_args &of, const qn_launch *launch)
{
  a.part = (const float *)launch->workspace;
  for (int t = DSCALE, n = 0; t <= DSHIFT; t++)
    if (of.p[t]) a.to[n++] = of.p[t];
  const uint32_t blocks = (uint32_t)qn_ceil_div(a.n * a.pitch, 32);
  return cuda_launch_early((const void *)add_parts, a.early, blocks, 1024, 0, &a, launch, "add_parts");
}

/* ---- and over items ---------------------------------------------------------------------------------------------------------------- */

/* The final sums for dscale and dshift. sums: [copies, sides, parts, channels]; added over copies and parts. sides: items
 * with different channels. */
struct item_sums {
  const float2 *sums;
  void    *dscale, *dshift;
  uint32_t dtype[2];
  int64_t  copies, sides;
  int32_t  parts, channels;
};

/* dscale and dshift: adds up the items' sums. A block has ADDED channels; the threads of a channel each add every 128th entry,
 * then the block's warps are combined. A fixed order, so deterministic. */
enum { ADDED = 8, ADDERS = 1024 };        /* channels and threads of a block */
__global__ static void __launch_bounds__(ADDERS) add_items(const __grid_constant__ item_sums a)
{
  __shared__ float2 of_warp[ADDERS / 32][ADDED];
  const int64_t channels = a.sides * a.channels, first = blockIdx.x * (int64_t)ADDED,
                j = min(first + threadIdx.x % ADDED, channels - 1), side = j / a.channels;
  const uint32_t n = (uint32_t)a.copies * (uint32_t)a.parts;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float2 sum = make_float2(0, 0);
#pragma unroll 8
  for (uint32_t i = threadIdx.x / ADDED; i < n; i += ADDERS / ADDED) {
    const uint32_t copy = i / (uint32_t)a.parts;
    const float2 v = a.sums[((copy * a.sides + side) * a.parts + (i - copy * (uint32_t)a.parts)) * a.channels + (j - side * a.channels)];
    sum.x += v.x, sum.y += v.y;
  }
#pragma unroll
  for (int o = ADDED; o < 32; o *= 2) sum.x += __shfl_xor_sync(~0u, sum.x, o), sum.y += __shfl_xor_sync(~0u, sum.y, o);
  if (lane < ADDED) of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp >= ADDED || first + warp >= channels) return;
  sum = of_warp[lane][warp];
  sum = make_float2(warp_sum(sum.x), warp_sum(sum.y));
  if (lane) return;
  if (a.dscale) element_store(a.dscale, first + warp, dtype3(a.dtype[0]), sum.y);
  if (a.dshift) element_store(a.dshift, first + warp, dtype3(a.dtype[1]), sum.x);
}
static inline qn_status item_sums_add(const item_sums &a, const qn_launch *launch)
{
  add_items<<<(unsigned)qn_ceil_div(a.sides * a.channels, ADDED), ADDERS, 0, (cudaStream_t)launch->stream>>>(a);
  return cuda_check(cudaGetLastError(), "add_items");
}

/* ---- an engine's launch, its rows -------------------------------------------------------------------------------------------------- */

/* What every engine's state begins with. `a` follows: the kernel's arguments, a norm_args or derived from it. */
struct norm_plan {
  norm_problem of;
  const void *kernel;
  uint32_t blocks, cluster, threads, shared;      /* cluster: blocks of one, or CUDA_TOGETHER; shared: bytes of a block */
  item_sums sums;                         /* no channels: none */
  column_parts columns;                   /* n 0: none */

  void point(norm_args *a, const qn_launch *launch) const
  {
    for (int t = 0; t < TENSORS; t++) a->p[t] = of.number[t] < 0 ? nullptr : launch->ptr[of.number[t]];
  }
  /* Makes a workspace for partial sums of dscale and dshift, if they are wanted. */
  void sum_items(int64_t copies, int64_t sides, int32_t parts, int32_t channels, qn_prepared *out)
  {
    if (of.number[DSCALE] < 0 && of.number[DSHIFT] < 0) return;
    sums = { nullptr, nullptr, nullptr, { of.dtype[DSCALE], of.dtype[DSHIFT] }, copies, sides, parts, channels };
    out->workspace = (uint64_t)(copies * sides * parts * channels) * sizeof(float2);
  }
  float2 *sums_in(const qn_launch *launch) const { return sums.channels ? (float2 *)launch->workspace : nullptr; }
  /* What else than tensors the arguments take from a launch; a state has its own where there is something. */
  void bind(norm_args *, const qn_launch *) const {}
  qn_status launch_with(void **arguments, const norm_args &a, const qn_launch *launch, const char *name) const
  {
    const qn_status status = cuda_launch_clusters(kernel, blocks, cluster, threads, shared, arguments, launch, name);
    if (!status && columns.n) return column_parts_add(columns, a, launch);
    if (status || !sums.channels) return status;
    item_sums last = sums;
    last.sums = sums_in(launch), last.dscale = a.p[DSCALE], last.dshift = a.p[DSHIFT];
    return item_sums_add(last, launch);
  }
};
static inline qn_status norm_build(const qn_request *, qn_prepared *p)
{
  const norm_plan *s = (const norm_plan *)p->state;
  return s->shared ? cuda_allow_shared(s->kernel) : QN_OK;
}
template <class S> static qn_status norm_run(const qn_prepared *p, const qn_launch *launch)
{
  const S *s = (const S *)p->state;
  auto a = s->a;
  s->point(&a, launch);
  s->bind(&a, launch);
  void *arguments[] = { &a };
  return s->launch_with(arguments, a, launch, p->engine->name);
}

template <class S>
static constexpr qn_engine norm_row(const char *name, uint32_t op, uint64_t traits, qn_status (*prepare)(const qn_request *, qn_prepared *),
                                    qn_status (*run)(const qn_prepared *, const qn_launch *) = norm_run<S>,
                                    qn_status (*build)(const qn_request *, qn_prepared *) = norm_build)
{
  return { name, op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | traits, nullptr, nullptr, prepare, build, run, cuda_release };
}
/* The rows for layer_norm and rms_norm, for their gradients; S: the state; then what follows the op. */
#define NORM_ROWS(S, name, ...) norm_row<S>(name, QN_OP_LAYER_NORM, __VA_ARGS__), norm_row<S>(name, QN_OP_RMS_NORM, __VA_ARGS__)
#define NORM_BACKWARD_ROWS(S, name, ...) \
  norm_row<S>(name, QN_OP_LAYER_NORM_BACKWARD, __VA_ARGS__), norm_row<S>(name, QN_OP_RMS_NORM_BACKWARD, __VA_ARGS__)
