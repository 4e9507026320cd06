/* norm_rows.cu -- layer_norm and rms_norm and their gradients where a group of up to 16384 elements is contiguous: each element
 * is read once and written once, statistics are taken from registers in two passes.
 *
 *   y = (x - mean) rstd scale + shift        rms_norm: mean is 0
 *   with h = (x - mean) rstd, g = dy scale:  dx = rstd (g - mean g - h mean(g h))        rms_norm: without mean g
 *   dscale = sum dy h, dshift = sum dy:      of each block's rows in registers, then added up over the blocks
 *
 * Blocks stay and take row after row, so that scale and shift are fetched once, into shared memory. */
#include "cuda_backend.h"
#include "engines.h"
#include "vector.cuh"

enum { MAX_OUTER = 4, V = 8, MAX_LENGTH = 16384 };
enum { X, Y, DY, MEAN, RSTD, WALKED };    /* what differs from row to row; y is dx in a gradient */

struct rows {
  void    *p[WALKED];
  const void *scale, *shift;              /* of a row's length; NULL: 1 and 0 */
  float   *part;                          /* gradients: [blocks, 2, length]; NULL: no dscale or dshift */
  uint32_t dtype[WALKED], scale_dtype, shift_dtype;
  int32_t  rank, centred;
  int64_t  length, count;
  float    eps;
  uint32_t dim[MAX_OUTER];                /* innermost first */
  int64_t  stride[WALKED][MAX_OUTER];

  __device__ void begin(int64_t row, int64_t at[WALKED]) const
  {
    uint32_t rest = (uint32_t)row;
    for (int t = 0; t < WALKED; t++) at[t] = 0;
    for (int d = 0; d < rank; d++) {
      uint32_t q = rest / dim[d], i = rest - q * dim[d];
      for (int t = 0; t < WALKED; t++) at[t] += i * stride[t][d];
      rest = q;
    }
  }
};

/* ---- a row: threads x K vectors of 8 at most -------------------------------------------------------------- */

/* The same tree every time. */
template <int threads> __device__ __forceinline__ float row_sum(float v, float *shared)
{
#pragma unroll
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if (threads > 32) {
    __syncthreads();                      /* what is there has been read */
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
#pragma unroll
    for (int w = 0; w < threads / 32; w++) v += shared[w];
  }
  return v;
}

/* whole: this tensor's dtype, in whole aligned vectors; 0: anything. What lies beyond the row is 0. */
template <int whole> __device__ __forceinline__ void load(float (&v)[V], const void *base, uint32_t dtype, int64_t at, int n)
{
  if (!whole) vector_load(v, base, dtype, at, 1, n);
  else if (n > 0) vector_load_whole<whole ? whole : QN_F32>(v, base, at);
  else {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = 0;
  }
}
template <int whole> __device__ __forceinline__ void store(const float (&v)[V], void *base, uint32_t dtype, int64_t at, int n)
{
  if (n <= 0) return;
  if (whole) vector_store_whole<whole ? whole : QN_F32>(v, base, at);
  else vector_store(v, base, dtype, at, 1, n);
}
__device__ __forceinline__ int left(const rows &r, int64_t j) { return (int)max((int64_t)0, min((int64_t)V, r.length - j)); }

/* A parameter into shared memory, padded to whole vectors. */
__device__ __forceinline__ void fetch(float *to, const void *from, uint32_t dtype, int64_t length, float absent)
{
  int64_t padded = (length + V - 1) / V * V;
  for (int64_t j = threadIdx.x; j < padded; j += blockDim.x)
    to[j] = from && j < length ? element_load<float>(from, j, dtype) : absent;
}

template <int threads> struct block_of { static constexpr int value = threads < 128 ? 128 : threads, rows = value / threads; };

template <int threads, int K, int whole>
__global__ void __launch_bounds__(block_of<threads>::value) norm_rows(const __grid_constant__ rows r)
{
  extern __shared__ float parameter[];
  __shared__ float shared[32];
  int64_t padded = (r.length + V - 1) / V * V;
  float *scale = parameter, *shift = parameter + (r.scale ? padded : 0);
  if (r.scale) fetch(scale, r.scale, r.scale_dtype, r.length, 1);
  if (r.shift) fetch(shift, r.shift, r.shift_dtype, r.length, 0);
  __syncthreads();
  int t = threadIdx.x % threads;
  float inverse = 1 / (float)r.length;
  for (int64_t row = blockIdx.x * (int64_t)block_of<threads>::rows + threadIdx.x / threads; row < r.count;
       row += gridDim.x * (int64_t)block_of<threads>::rows) {
    int64_t at[WALKED];
    r.begin(row, at);
    float v[K][V], sum = 0, mean = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t j = (int64_t)(k * threads + t) * V;
      load<whole>(v[k], r.p[X], r.dtype[X], at[X] + j, left(r, j));
    }
    if (r.centred) {
#pragma unroll
      for (int k = 0; k < K; k++)
#pragma unroll
        for (int i = 0; i < V; i++) sum += v[k][i];
      mean = row_sum<threads>(sum, shared) * inverse;
    }
    sum = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int n = left(r, (int64_t)(k * threads + t) * V);
#pragma unroll
      for (int i = 0; i < V; i++) {
        v[k][i] = i < n ? v[k][i] - mean : 0;
        sum += v[k][i] * v[k][i];
      }
    }
    float rstd = 1 / sqrtf(row_sum<threads>(sum, shared) * inverse + r.eps);
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t j = (int64_t)(k * threads + t) * V;
      int n = left(r, j);
      if (n <= 0) break;
#pragma unroll
      for (int i = 0; i < V; i++) v[k][i] *= rstd;
      if (r.scale) {
#pragma unroll
        for (int i = 0; i < V; i++) v[k][i] *= scale[j + i];
      }
      if (r.shift) {
#pragma unroll
        for (int i = 0; i < V; i++) v[k][i] += shift[j + i];
      }
      store<whole>(v[k], r.p[Y], r.dtype[Y], at[Y] + j, n);
    }
    if (t == 0 && r.p[MEAN]) ((float *)r.p[MEAN])[at[MEAN]] = mean;
    if (t == 0 && r.p[RSTD]) ((float *)r.p[RSTD])[at[RSTD]] = rstd;
  }
}

/* ---- gradients ---------------------------------------------------------------------------------------------- */

/* parts: dscale and dshift are wanted too. Then a block is one row wide, so that a thread's columns are always the same. */
template <int threads, int K, int whole, bool parts>
__global__ void __launch_bounds__(parts ? threads : block_of<threads>::value) norm_backward_rows(const __grid_constant__ rows r)
{
  extern __shared__ float scale[];
  __shared__ float shared[32];
  constexpr int per_block = parts ? 1 : block_of<threads>::rows;
  if (r.scale) fetch(scale, r.scale, r.scale_dtype, r.length, 1);
  __syncthreads();
  int t = threadIdx.x % threads;
  float inverse = 1 / (float)r.length, dscale[parts ? K : 1][V], dshift[parts ? K : 1][V];
#pragma unroll
  for (int k = 0; k < (parts ? K : 1); k++)
#pragma unroll
    for (int i = 0; i < V; i++) dscale[k][i] = dshift[k][i] = 0;
  for (int64_t row = blockIdx.x * (int64_t)per_block + threadIdx.x / threads; row < r.count; row += gridDim.x * (int64_t)per_block) {
    int64_t at[WALKED];
    r.begin(row, at);
    float h[K][V], g[K][V], sum = 0, along = 0;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t j = (int64_t)(k * threads + t) * V;
      load<whole>(h[k], r.p[X], r.dtype[X], at[X] + j, left(r, j));
      load<whole>(g[k], r.p[DY], r.dtype[DY], at[DY] + j, left(r, j));
    }
    float mean = r.centred ? ((const float *)r.p[MEAN])[at[MEAN]] : 0, rstd = ((const float *)r.p[RSTD])[at[RSTD]];
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t j = (int64_t)(k * threads + t) * V;
      int n = left(r, j);
#pragma unroll
      for (int i = 0; i < V; i++) {
        h[k][i] = i < n ? (h[k][i] - mean) * rstd : 0;
        if (parts) {
          dscale[parts ? k : 0][i] += g[k][i] * h[k][i];
          dshift[parts ? k : 0][i] += g[k][i];
        }
        if (r.scale && n > 0) g[k][i] *= scale[j + i];
        sum += g[k][i];
        along += g[k][i] * h[k][i];
      }
    }
    sum = r.centred ? row_sum<threads>(sum, shared) * inverse : 0;
    along = row_sum<threads>(along, shared) * inverse;
#pragma unroll
    for (int k = 0; k < K; k++) {
      int64_t j = (int64_t)(k * threads + t) * V;
#pragma unroll
      for (int i = 0; i < V; i++) g[k][i] = rstd * (g[k][i] - sum - h[k][i] * along);
      store<whole>(g[k], r.p[Y], r.dtype[Y], at[Y] + j, left(r, j));
    }
  }
  if (parts) {
    float *to = r.part + blockIdx.x * 2 * r.length;
#pragma unroll
    for (int k = 0; k < (parts ? K : 1); k++) {
      int64_t j = (int64_t)(k * threads + t) * V;
#pragma unroll
      for (int i = 0; i < V; i++)
        if (j + i < r.length) to[j + i] = dscale[k][i], to[r.length + j + i] = dshift[k][i];
    }
  }
}

struct gradients { const float *part; void *dscale, *dshift; uint32_t dscale_dtype, dshift_dtype; int64_t length; int32_t blocks; };

/* A column of the blocks' parts by a column of 8 threads: in order within each, then over them. */
__global__ static void __launch_bounds__(256) add_parts(const __grid_constant__ gradients a)
{
  __shared__ float shared[8][33];
  int64_t j = blockIdx.x * (int64_t)32 + threadIdx.x % 32;
  int y = threadIdx.x / 32;
  float sum = 0;
  if (j < 2 * a.length)
    for (int b = y; b < a.blocks; b += 8) sum += a.part[b * 2 * a.length + j];
  shared[y][threadIdx.x % 32] = sum;
  __syncthreads();
  if (y || j >= 2 * a.length) return;
  for (int i = 1; i < 8; i++) sum += shared[i][threadIdx.x];
  if (j < a.length && a.dscale) element_store(a.dscale, j, a.dscale_dtype, sum);
  if (j >= a.length && a.dshift) element_store(a.dshift, j - a.length, a.dshift_dtype, sum);
}

/* ---- what it takes -------------------------------------------------------------------------------------------- */

struct state {
  rows    r;
  int32_t number[WALKED], scale, shift, dscale, dshift;     /* values of the request; -1: absent */
  uint32_t dscale_dtype, dshift_dtype;
  const void *kernel;
  int32_t threads, blocks;
  uint32_t shared;                        /* bytes */
  bool    backward, whole, parts;
};

/* A parameter lies like a row: in x's steps along the dims normalized over, one long in the others. */
static bool like_a_row(const qn_value *v, const qn_value *x, uint64_t mask)
{
  for (int d = 0; d < x->rank; d++)
    if (mask >> d & 1 ? v->dim[d] != x->dim[d] || (v->dim[d] != 1 && v->stride[d] != x->stride[d]) : v->dim[d] != 1) return false;
  return true;
}

static const qn_value *value(const qn_request *r, int32_t i) { return i < 0 ? nullptr : &r->value[i]; }
static int32_t role(const qn_request *r, int8_t role) { return role < 0 ? -1 : qn_role(&r->op[0], (uint32_t)role); }

/* ---- the kernel of a shape ----------------------------------------------------------------------------------------- */

template <int threads, int K, int whole> static const void *kernel_as(const state &s)
{
  if (!s.backward) return (const void *)norm_rows<threads, K, whole>;
  return s.parts ? (const void *)norm_backward_rows<threads, K, whole, true> : (const void *)norm_backward_rows<threads, K, whole, false>;
}

template <int threads, int K> static const void *kernel_of(const state &s)
{
  switch (s.whole ? s.r.dtype[X] : 0) {
  case QN_F32:  return kernel_as<threads, K, QN_F32>(s);
  case QN_BF16: return kernel_as<threads, K, QN_BF16>(s);
  case QN_F16:  return kernel_as<threads, K, QN_F16>(s);
  default:      return kernel_as<threads, K, 0>(s);
  }
}

struct shape { int64_t length; int32_t threads, per_unit; const void *(*kernel)(const state &); };
static const shape shapes[] = {
  { 256, 32, 8, kernel_of<32, 1> },     { 1024, 32, 8, kernel_of<32, 4> },          { 4096, 128, 8, kernel_of<128, 4> },
  { 8192, 256, 3, kernel_of<256, 4> },  { MAX_LENGTH, 512, 2, kernel_of<512, 4> },
};

static void choose_shape(state *s, const qn_device *device)
{
  const shape *shape = shapes;
  while (s->r.length > shape->length) shape++;
  int rows = s->parts || shape->threads >= 128 ? 1 : 128 / shape->threads;
  s->kernel = shape->kernel(*s);
  s->threads = shape->threads * rows;
  s->blocks = (int32_t)qn_min_i64(qn_ceil_div(s->r.count, rows), (int64_t)device->units * shape->per_unit * (s->parts && s->threads < 128 ? 4 : 1));
  int64_t padded = qn_round_up(s->r.length, V) * (int64_t)sizeof(float);
  s->shared = (uint32_t)((s->scale >= 0 ? padded : 0) + (s->shift >= 0 ? padded : 0));
}

/* ---- prepare, build, run ------------------------------------------------------------------------------------------- */

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
  s.scale = role(r, roles.scale), s.shift = role(r, roles.shift);
  s.dscale = role(r, roles.dscale), s.dshift = role(r, roles.dshift);
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
      nest->stride[t][nest->rank] = v ? v->stride[d] : t < 3 ? x->stride[d] : 0;
    }
    nest->rank++;
    *(in ? &length : &count) *= x->dim[d];
  }
  qn_nest_simplify(&walked);
  qn_nest_simplify(&outer);
  bool contiguous = walked.rank == 0 || (walked.rank == 1 && walked.stride[0][0] == 1 && walked.stride[1][0] == 1 && walked.stride[2][0] == 1);
  if (!contiguous) return qn_refuse(out, "the dims normalized over must lie side by side, alike in all tensors", "x", "one run of stride 1", "%d runs", walked.rank);
  if (length > MAX_LENGTH) return qn_refuse(out, "a group must fit into a block's registers", "x", "at most 16384 elements", "%lld", (long long)length);
  if (count > INT32_MAX) return qn_refuse(out, "fewer than 2^31 groups", "x", "", "%lld", (long long)count);
  if (outer.rank > MAX_OUTER) return qn_refuse(out, "at most 4 other dims that do not merge", "x", "4", "%d", outer.rank);
  const int32_t parameter[] = { s.scale, s.shift, s.dscale, s.dshift };
  static const char *const names[] = { "scale", "shift", "dscale", "dshift" };
  for (int i = 0; i < 4; i++)
    if (parameter[i] >= 0 && !like_a_row(&r->value[parameter[i]], x, norm->mask))
      return qn_refuse(out, "a parameter must lie like one group", names[i], "x's dims and steps where it is normalized over, 1 elsewhere", "%s", "other dims or strides");

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
    if (v && t < 3) {
      s.whole &= v->dtype == x->dtype && v->align >= 16;
      for (int d = 0; d < outer.rank; d++) s.whole &= s.r.stride[t][d] % V == 0;
    }
  }
  if (s.scale >= 0) s.r.scale_dtype = r->value[s.scale].dtype;
  if (s.shift >= 0) s.r.shift_dtype = r->value[s.shift].dtype;
  if (s.dscale >= 0) s.dscale_dtype = r->value[s.dscale].dtype;
  if (s.dshift >= 0) s.dshift_dtype = r->value[s.dshift].dtype;

  s.parts = s.dscale >= 0 || s.dshift >= 0;
  choose_shape(&s, r->device);
  if (s.parts) out->workspace = (uint64_t)s.blocks * 2 * (uint64_t)length * sizeof(float);

  state *kept = (state *)r->host->alloc(sizeof *kept);
  if (!kept) return QN_NO_MEMORY;
  *kept = s;
  out->state = kept;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status build(const qn_request *, qn_prepared *p)
{
  const state *s = (const state *)p->state;
  cudaFuncAttributes loaded;
  qn_status status = cuda_check(cudaFuncGetAttributes(&loaded, s->kernel), "norm_rows");
  if (status || s->shared <= 48 * 1024) return status;      /* as much as a kernel has unasked */
  return cuda_check(cudaFuncSetAttribute(s->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)s->shared), "norm_rows");
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? nullptr : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  rows r = s->r;
  for (int t = 0; t < WALKED; t++) r.p[t] = pointer(launch, s->number[t]);
  r.scale = pointer(launch, s->scale);
  r.shift = pointer(launch, s->shift);
  r.part = s->parts ? (float *)launch->workspace : nullptr;
  void *arguments[] = { &r };
  qn_status status = cuda_check(cudaLaunchKernel(s->kernel, dim3((unsigned)s->blocks), dim3((unsigned)s->threads), arguments, s->shared, stream), "norm_rows");
  if (status || !s->parts) return status;
  gradients g = { r.part, pointer(launch, s->dscale), pointer(launch, s->dshift), s->dscale_dtype, s->dshift_dtype, r.length, s->blocks };
  add_parts<<<(unsigned)qn_ceil_div(2 * r.length, 32), 256, 0, stream>>>(g);
  return cuda_check(cudaGetLastError(), "norm_rows");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

/* Sums over rows are made by as many blocks as the device holds: no gradient is portable. */
#define ROW(op, more) { "rows", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | more, nullptr, nullptr, \
                        prepare, build, run, release }
static const qn_engine row[] = {
  ROW(QN_OP_LAYER_NORM, QN_TRAIT_PORTABLE),
  ROW(QN_OP_RMS_NORM, QN_TRAIT_PORTABLE),
  ROW(QN_OP_LAYER_NORM_BACKWARD, 0),
  ROW(QN_OP_RMS_NORM_BACKWARD, 0),
};
const qn_engine_list cuda_norm_rows_list = { row, sizeof row / sizeof *row };
