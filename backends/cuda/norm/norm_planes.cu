/* norm_planes.cu -- layer_norm and rms_norm over contiguous groups with parameters per channel (group norm and instance norm,
 * channels first), f16, bf16 and f32; sm_80 and up: each element is read once and written once.
 *
 *   y = act((x - mean) rstd scale + shift)
 *
 * A block handles one group, or several small ones, held in shared memory between measuring and writing. Blocks are not
 * persistent; the other resident ones hide the latency. A thread copies (cp.async) and reads its own words.
 * Refused: no parameters, channels below 16 bytes, groups that do not fit twice into an SM's shared memory. */
#include "cuda_backend.h"
#include "kit/divisor.h"
#include "engines.h"
#include "norm_activation.cuh"
#include "norm_far.cuh"
#include "norm_moments.cuh"
#include "norm_nests.h"
#include "kit/shared_memory.h"
#include "kit/sm80.cuh"
#include "kit/vector.cuh"

/* THREADS, LEAST: of a block at most, at least; WORDS: of a thread, if that covers the group */
enum { THREADS = 512, LEAST = 128, WORDS = 16, MAX_OUTER = 4 };
enum { X, Y, SCALE, SHIFT, MEAN, RSTD, TENSORS };

struct planes {
  void    *p[TENSORS];
  uint32_t dtype[TENSORS];
  cuda_divisor by_dim[MAX_OUTER];         /* the outer dims, innermost first, padded with 1 */
  int64_t  stride[TENSORS][MAX_OUTER];
  int64_t  length;                        /* elements of a group */
  int32_t  groups, words;                 /* words: 16-byte words of a group */
  int32_t  width, together;               /* threads a group; groups a block */
  int32_t  repeat, channels;              /* elements of a channel; channels of a group */
  cuda_divisor by_repeat;
  float    eps;
  bool     centred;
  norm_activation act;

  __device__ __forceinline__ int64_t place(int group, int t) const
  {
    int64_t at = 0;
#pragma unroll
    for (int d = 0; d < MAX_OUTER; d++) {
      const int q = cuda_quotient(group, by_dim[d]);
      at += (group - q * (int)by_dim[d].by) * stride[t][d];
      group = q;
    }
    return at;
  }
  template <int whole> __device__ __forceinline__ float parameter(int t, int64_t at, float none) const
  {
    return p[t] ? element_load<float>(p[t], at, dtype[t] == QN_F32 ? QN_F32 : whole) : none;
  }
};

/* pieces: a word splits into so many equal pieces of one channel each; 0: a channel may end anywhere in a word. */
template <int whole, int pieces> __global__ void __launch_bounds__(THREADS, 2) norm_planes(const __grid_constant__ planes a)
{
  constexpr int E = vector_per_16<whole>;
  extern __shared__ uint4 shared[];
  __shared__ float4 of_warp[THREADS / 32];
  const int sub = (uint32_t)threadIdx.x / (uint32_t)a.width, t = threadIdx.x - sub * a.width, group = blockIdx.x * a.together + sub;
  const bool there = group < a.groups;
  const int words = there ? a.words : 0;
  uint4 *held = shared + sub * a.words;
  float2 *table = (float2 *)(shared + a.together * a.words) + sub * a.channels;           /* scale and shift of each channel */
  const uint4 *x = vector_place<whole>(a.p[X], a.place(group, X));
#pragma unroll 4
  for (int k = t; k < words; k += a.width) copy_async<16>(shared_address(held + k), x + k, 16);
  copy_async_commit();
  if (there) {
    const int64_t scale = a.place(group, SCALE), shift = a.place(group, SHIFT);
    for (int c = t; c < a.channels; c += a.width)
      table[c] = make_float2(a.parameter<whole>(SCALE, scale + c, 1), a.parameter<whole>(SHIFT, shift + c, 0));
  }
  copy_async_wait<0>();

  float v[E], from = 0, s1 = 0, s2 = 0;
  int n = 0;
  if (a.centred && t < words) {
    vector_open<whole>(v, 0, held[t]);
    from = finite_or_0(v[0]);
  }
#pragma unroll 4
  for (int k = t; k < words; k += a.width, n += E) {
    vector_open<whole>(v, 0, held[k]);
#pragma unroll
    for (int e = 0; e < E; e++) {
      const float d = v[e] - from;
      s1 += d;
      s2 = fmaf(d, d, s2);
    }
  }
  moments all = warp_join_lanes(moments_about(from, s1, s2, (float)n, a.centred), warp_sum((float)n));
  if (a.width == 32) __syncwarp();        /* makes the table visible */
  else {
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = all.pack();
    __syncthreads();
    const int first = sub * a.width / 32;
    all = warp_join_all(a.width / 32, [&](int w) { return moments::unpack(of_warp[first + w]); });
  }
  float mean = all.mean, rstd = 1 / sqrtf(all.squares / (float)a.length + a.eps);
  if (whole != QN_F16 && far_out(all.squares) && there) {
    const far_statistics far = far_measure({ a.p[X], nullptr, whole, 1, 0, a.length }, a.place(group, X), a.centred, a.eps, 32);
    mean = far.mean, rstd = far.rstd;
  }
  if (t == 0 && there && a.p[MEAN]) ((float *)a.p[MEAN])[a.place(group, MEAN)] = mean;
  if (t == 0 && there && a.p[RSTD]) ((float *)a.p[RSTD])[a.place(group, RSTD)] = rstd;

  const float unit = far_unit(mean, rstd);
  uint4 *y = (uint4 *)vector_place<whole>(a.p[Y], a.place(group, Y));
#pragma unroll 2
  for (int k = t; k < words; k += a.width) {
    vector_open<whole>(v, 0, held[k]);
#pragma unroll
    for (int e = 0; e < E; e++) v[e] = far_normalized(v[e], unit, mean, rstd);
    if constexpr (pieces) {
#pragma unroll
      for (int i = 0; i < pieces; i++) {
        const float2 of = table[cuda_quotient(k * E + i * (E / pieces), a.by_repeat)];
#pragma unroll
        for (int e = i * (E / pieces); e < (i + 1) * (E / pieces); e++) v[e] = fmaf(v[e], of.x, of.y);
      }
    } else {
      const int c = cuda_quotient(k * E, a.by_repeat), left = (c + 1) * a.repeat - k * E;
      const float2 here = table[c], next = left < E ? table[c + 1] : here;
#pragma unroll
      for (int e = 0; e < E; e++) v[e] = fmaf(v[e], e < left ? here.x : next.x, e < left ? here.y : next.y);
    }
    if (a.act.op) activate<whole != QN_F32>(a.act, v);
    y[k] = vector_close<whole>(v, 0);
  }
}

/* ---- prepare, build, run ---------------------------------------------------------------------------------------------------- */

struct state {
  planes   a;
  int32_t  number[TENSORS];               /* value numbers of the request; -1: absent */
  const void *kernel;
  uint32_t shared;
};

template <int whole> static const void *kernel_of(int repeat)
{
  constexpr int E = vector_per_16<whole>;
  return repeat % E == 0       ? (const void *)norm_planes<whole, 1>
       : repeat % (E / 2) == 0 ? (const void *)norm_planes<whole, 2>
                               : (const void *)norm_planes<whole, 0>;
}

/* Checks that groups are contiguous and parameters are per channel; returns the rule that is broken, or NULL. */
static const char *read_layout(const qn_request *r, state *s)
{
  planes &a = s->a;
  const qn_value *x = &r->value[s->number[X]];
  const int64_t E = 16 / qn_kit_bytes(x->dtype);
  cuda_norm_nests nests = cuda_norm_nests_of(r, s->number, SHIFT + 1, TENSORS);
  qn_nest &walked = nests.walked, &outer = nests.outer;
  int64_t groups = nests.groups, repeat = 0;
  a.length = nests.length;
  const int last = walked.rank - 1;
  bool ok = walked.rank == 1 || walked.rank == 2;
  for (int t = X; t <= Y && ok; t++) ok &= walked.stride[t][last] == 1 && (last == 0 || walked.stride[t][0] == walked.dim[1]);
  if (!ok) return "groups are contiguous";
  for (int t = SCALE; t <= SHIFT; t++) {
    if (s->number[t] < 0) continue;
    const int64_t from = walked.stride[t][0], to = walked.stride[t][last];
    const int64_t here = from == 0 && to == 0 ? a.length : last == 1 && from == 1 && to == 0 ? walked.dim[1] : 0;
    if (here < E || (repeat && here != repeat))
      return "parameters have an element for a group, or for each of its channels, of 16 bytes or more";
    if (r->value[s->number[t]].dtype != x->dtype && r->value[s->number[t]].dtype != QN_F32) return "parameters of x's dtype or f32";
    repeat = here;
  }
  if (repeat == 0) return "there are parameters";
  if (a.length % E || a.length > INT32_MAX / 2 || groups > INT32_MAX / 2) return "groups of whole words, fewer than 2^30";
  a.groups = (int32_t)groups, a.words = (int32_t)(a.length / E);
  a.repeat = (int32_t)repeat, a.channels = (int32_t)(a.length / repeat), a.by_repeat = cuda_divide_by(repeat);
  if (outer.rank > MAX_OUTER) return "at most 4 other dims that do not merge";
  for (int t = X; t <= Y; t++) {
    const qn_value *v = &r->value[s->number[t]];
    ok &= v->align >= 16 && v->dtype == x->dtype;
  }
  for (int d = 0; d < MAX_OUTER; d++) {
    const int from = outer.rank - 1 - d;
    a.by_dim[d] = cuda_divide_by(from < 0 ? 1 : outer.dim[from]);
    for (int t = 0; t < TENSORS; t++) a.stride[t][d] = from < 0 ? 0 : outer.stride[t][from];
    ok &= a.stride[X][d] % E == 0 && a.stride[Y][d] % E == 0;
  }
  return ok ? nullptr : "x and y of one dtype, in whole words aligned to 16 bytes";
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.y, roles.scale, roles.shift, roles.mean, roles.rstd };
  state s = {};
  planes &a = s.a;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  for (int t = 0; t < TENSORS; t++) {
    s.number[t] = qn_role_at(&r->op[0], role[t]);
    if (s.number[t] >= 0) a.dtype[t] = r->value[s.number[t]].dtype;
  }
  const uint32_t dtype = a.dtype[X];
  if (dtype != QN_F32 && dtype != QN_BF16 && dtype != QN_F16)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(dtype));
  s.number[Y] = norm_activation_behind(r, s.number[Y], &a.act, out);
  const char *rule = read_layout(r, &s);
  if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
  a.width = 32;
  while (a.width < THREADS && a.words > WORDS * a.width) a.width *= 2;
  a.together = a.width < LEAST ? LEAST / a.width : 1;
  const int64_t shared = a.together * ((int64_t)a.words * 16 + a.channels * (int64_t)sizeof(float2));
  if (shared + 1536 > (int64_t)r->device->shared_per_unit / 2 || shared + 512 > (int64_t)r->device->shared_per_block)
    return qn_refuse(out, "two groups must fit into the shared memory of a multiprocessor", "x", "", "%lld elements", (long long)a.length);
  s.shared = (uint32_t)shared;
  a.eps = (float)((const qn_norm *)r->op[0].attr)->eps;
  a.centred = r->op[0].op == QN_OP_LAYER_NORM;
  s.kernel = dtype == QN_F32 ? kernel_of<QN_F32>(a.repeat) : dtype == QN_BF16 ? kernel_of<QN_BF16>(a.repeat) : kernel_of<QN_F16>(a.repeat);
  out->estimate = 3000 + (double)a.groups * a.words * 32 / 3000;
  return cuda_keep(out, &s, sizeof s);
}

static qn_status build(const qn_request *, qn_prepared *p) { return cuda_allow_shared(((const state *)p->state)->kernel); }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  planes a = s->a;
  for (int t = 0; t < TENSORS; t++) a.p[t] = s->number[t] < 0 ? nullptr : launch->ptr[s->number[t]];
  void *arguments[] = { &a };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3((unsigned)qn_ceil_div(a.groups, a.together)), dim3((unsigned)(a.width * a.together)),
                                     arguments, s->shared, (cudaStream_t)launch->stream),
                    "norm_planes");
}

#define ROW(op) { "planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, \
                  nullptr, nullptr, prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM), ROW(QN_OP_RMS_NORM) };
CUDA_ENGINES(norm_planes) = { row, sizeof row / sizeof *row };
