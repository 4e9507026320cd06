/* affine_grid.cu -- affine_grid and its gradient, 2-d and 3-d.
 *
 *   grid = theta (x, y, 1)      x = (2w + 1 - W)/W, with align_corners (2w + 1 - W)/(W - 1)      dtheta = the sum of dy (x, y, 1)
 *
 * packed: a packed grid in f16, bf16 or f32: a block has a CHUNK of an image's points, a thread neighbouring points whose
 *   coordinates make vectors of four. Backward, each block sums a chunk, and the last block of an image adds the chunks in order.
 * direct: any strides and sizes, in double, an element a thread, or (backward) a block. */
#include "kit/direct.cuh"
#include "kit/divisor.h"
#include "engines.h"
#include "sampling.cuh"
#include "kit/sums.cuh"
#include "kit/vector.cuh"

/* in points; MOST_IMAGES: images that have a ticket in one launch */
enum { THREADS = 256, CHUNK = 2048, BACKWARD_CHUNK = 8192, MOST_IMAGES = 1024 };

struct affine {
  const void *in;
  void    *out;
  uint32_t in_dtype, out_dtype;
  int32_t  dims, whole;                   /* whole: each image's coordinates are aligned vectors of four */
  int64_t  images, extent[3];             /* of the grid: x, y, z; 1 where missing */
  int64_t  theta_stride[3], grid_stride[5];     /* grid: N, x, y, z, coordinate */
  double   scale[3];                      /* 1 / the divisor of 2w + 1 - W */
  cuda_divisor by[2];                     /* by extent[0], extent[1] */
};

/* A thread's neighbouring points of an image. */
template <int D> struct neighbours {
  static constexpr int points = D == 2 ? 2 : 4, coordinates = points * D;
  uint32_t at[3];

  __device__ __forceinline__ neighbours(const affine &s, int32_t point)
  {
    at[2] = cuda_quotient(cuda_quotient((uint32_t)point, s.by[0], &at[0]), s.by[1], &at[1]);
  }
  /* (x, y, 1) of the current point; steps to the next. */
  __device__ __forceinline__ void next(const affine &s, const float (&scale)[D], float (&along)[D + 1])
  {
#pragma unroll
    for (int j = 0; j < D; j++) along[j] = (float)(2 * (int32_t)at[j] + 1 - (int32_t)s.extent[j]) * scale[j];
    along[D] = 1;
    bool carry = ++at[0] == s.by[0].by;
    at[0] = carry ? 0 : at[0], at[1] += carry;
    carry = at[1] == s.by[1].by;
    at[1] = carry ? 0 : at[1], at[2] += carry;
  }
};

struct chunk_of_image {
  int32_t image, points, first, end;

  __device__ __forceinline__ chunk_of_image(const affine &s, int32_t chunks, int32_t chunk)
  {
    image = (int32_t)blockIdx.x / chunks, points = (int32_t)(s.extent[0] * s.extent[1] * s.extent[2]);
    first = ((int32_t)blockIdx.x - image * chunks) * chunk, end = min(points, first + chunk);
  }
};

template <int D> __global__ static void __launch_bounds__(THREADS) affine_packed(const __grid_constant__ affine s, int32_t chunks)
{
  constexpr int N = neighbours<D>::coordinates;
  __shared__ float shared[D * (D + 1)];
  const chunk_of_image c(s, chunks, CHUNK);
  if (threadIdx.x < D * (D + 1)) {
    int i = threadIdx.x / (D + 1), j = threadIdx.x % (D + 1);
    shared[threadIdx.x] = element_load<float>(s.in, c.image * s.theta_stride[0] + i * s.theta_stride[1] + j * s.theta_stride[2],
                                              s.in_dtype);
  }
  __syncthreads();
  float theta[D][D + 1], scale[D];
#pragma unroll
  for (int e = 0; e < D * (D + 1); e++) theta[e / (D + 1)][e % (D + 1)] = shared[e];
#pragma unroll
  for (int j = 0; j < D; j++) scale[j] = (float)s.scale[j];
#pragma unroll 1
  for (int32_t p = c.first + neighbours<D>::points * threadIdx.x; p < c.end; p += neighbours<D>::points * THREADS) {
    float v[N / 4][4];
    neighbours<D> r(s, p);
#pragma unroll
    for (int i = 0; i < neighbours<D>::points; i++) {
      float along[D + 1];
      r.next(s, scale, along);
#pragma unroll
      for (int k = 0; k < D; k++) {
        float sum = theta[k][D];
#pragma unroll
        for (int j = 0; j < D; j++) sum = fmaf(theta[k][j], along[j], sum);
        v[(i * D + k) / 4][(i * D + k) % 4] = sum;
      }
    }
    int32_t left = (c.points - p) * D;
#pragma unroll
    for (int i = 0; i < N / 4; i++)
      if (left > 4 * i) vector_store<4>(v[i], s.out, s.out_dtype, ((int64_t)c.image * c.points + p) * D + 4 * i, 1, min(left - 4 * i, 4));
  }
}

/* dtheta[image, i, j] = the sum over the points of dy_i times entry j; part: partial sums of each chunk. */
template <int D>
__global__ static void __launch_bounds__(THREADS)
    affine_chunks(const __grid_constant__ affine s, float *part, uint32_t *tickets, int32_t chunks, int32_t chunk)
{
  constexpr int N = neighbours<D>::coordinates, SUMS = D * (D + 1), WARPS = THREADS / 32;
  __shared__ float shared[WARPS][SUMS];
  __shared__ bool last;
  const chunk_of_image c(s, chunks, chunk);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum[D][D + 1] = {}, scale[D];
#pragma unroll
  for (int j = 0; j < D; j++) scale[j] = (float)s.scale[j];
  auto add = [&](const float (&g)[N / 4][4], int32_t p) {
    neighbours<D> r(s, p);
#pragma unroll
    for (int i = 0; i < neighbours<D>::points; i++) {
      float along[D + 1];
      r.next(s, scale, along);
#pragma unroll
      for (int k = 0; k < D; k++)
#pragma unroll
        for (int j = 0; j <= D; j++) sum[k][j] = fmaf(g[(i * D + k) / 4][(i * D + k) % 4], along[j], sum[k][j]);
    }
  };
  constexpr int32_t STEP = neighbours<D>::points * THREADS, BATCH = D == 2 ? 8 : 4;
  int32_t p = c.first + neighbours<D>::points * threadIdx.x;
  if (s.in_dtype == QN_F32 && s.whole)    /* loads of BATCH steps are in flight at once */
#pragma unroll 1
    for (; p < c.end; p += BATCH * STEP) {
      float4 q[BATCH][N / 4];
#pragma unroll
      for (int b = 0; b < BATCH; b++)
#pragma unroll
        for (int i = 0; i < N / 4; i++) {
          q[b][i] = make_float4(0, 0, 0, 0);
          if (p + b * STEP < c.end) q[b][i] = __ldg((const float4 *)s.in + ((int64_t)c.image * c.points + p + b * STEP) * D / 4 + i);
        }
#pragma unroll
      for (int b = 0; b < BATCH; b++) {
        float g[N / 4][4];
#pragma unroll
        for (int i = 0; i < N / 4; i++) g[i][0] = q[b][i].x, g[i][1] = q[b][i].y, g[i][2] = q[b][i].z, g[i][3] = q[b][i].w;
        add(g, p + b * STEP);
      }
    }
#pragma unroll 1
  for (; p < c.end; p += STEP) {
    float g[N / 4][4];
    int32_t left = (c.points - p) * D;
#pragma unroll
    for (int i = 0; i < N / 4; i++)
      vector_load<4>(g[i], s.in, s.in_dtype, ((int64_t)c.image * c.points + p) * D + 4 * i, 1, max(0, min(left - 4 * i, 4)));
    add(g, p);
  }
#pragma unroll
  for (int e = 0; e < SUMS; e++) {
    float v = warp_sum(sum[e / (D + 1)][e % (D + 1)]);
    if (lane == 0) shared[warp][e] = v;
  }
  __syncthreads();
  if (threadIdx.x < SUMS) {
    float v = 0;
    for (int w = 0; w < WARPS; w++) v += shared[w][threadIdx.x];
    part[(int64_t)blockIdx.x * SUMS + threadIdx.x] = v;
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    last = chunks == 1 || atomicInc(&tickets[c.image], chunks - 1) == chunks - 1u;       /* wraps to 0 for the next launch */
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  for (int e = warp; e < SUMS; e += WARPS) {
    float v = 0;
    for (int i = lane; i < chunks; i += 32) v += __ldcg(&part[((int64_t)c.image * chunks + i) * SUMS + e]);
    v = warp_sum(v);
    if (lane == 0)
      element_store(s.out, c.image * s.theta_stride[0] + e / (D + 1) * s.theta_stride[1] + e % (D + 1) * s.theta_stride[2], s.out_dtype, v);
  }
}

/* ---- direct -------------------------------------------------------------------------------------------------------- */

/* Entry j of (x, y, 1) or (x, y, z, 1). */
__device__ __forceinline__ double entry_of(const affine &s, const int64_t (&at)[3], int j)
{
  return j == s.dims ? 1 : (double)(2 * at[j] + 1 - s.extent[j]) * s.scale[j];
}

/* offset of a point's coordinates in the image */
__device__ static int64_t affine_place(const affine &s, int64_t point, int64_t (&at)[3])
{
  int64_t offset = 0;
  for (int d = 0; d < 3; d++) {
    at[d] = point % s.extent[d], point /= s.extent[d];
    offset += at[d] * s.grid_stride[1 + d];
  }
  return offset;
}

__global__ static void __launch_bounds__(THREADS) affine_direct(const __grid_constant__ affine s, int64_t points)
{
  for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < points * s.images * s.dims; e += (int64_t)gridDim.x * THREADS) {
    int64_t at[3], k = e % s.dims, p = e / s.dims % points, n = e / s.dims / points;
    int64_t to = n * s.grid_stride[0] + affine_place(s, p, at) + k * s.grid_stride[4];
    double v = 0;
    for (int j = 0; j <= s.dims; j++)
      v += element_load<double>(s.in, n * s.theta_stride[0] + k * s.theta_stride[1] + j * s.theta_stride[2], s.in_dtype) *
           entry_of(s, at, j);
    element_store(s.out, to, s.out_dtype, v);
  }
}

__global__ static void __launch_bounds__(THREADS) affine_direct_backward(const __grid_constant__ affine s, int64_t points)
{
  __shared__ double shared[THREADS / 32];
  for (int64_t e = blockIdx.x; e < s.images * s.dims * (s.dims + 1); e += gridDim.x) {
    int64_t at[3], j = e % (s.dims + 1), i = e / (s.dims + 1) % s.dims, n = e / (s.dims + 1) / s.dims;
    double v = 0;
    for (int64_t p = threadIdx.x; p < points; p += THREADS) {
      int64_t from = n * s.grid_stride[0] + affine_place(s, p, at) + i * s.grid_stride[4];
      v += element_load<double>(s.in, from, s.in_dtype) * entry_of(s, at, (int)j);
    }
    v = block_sum<THREADS>(v, shared);
    if (threadIdx.x == 0) element_store(s.out, n * s.theta_stride[0] + i * s.theta_stride[1] + j * s.theta_stride[2], s.out_dtype, v);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct affine_state { affine s; int32_t in, out, chunks, chunk, together; };      /* together: images of one launch of the gradient */

static affine affine_of(const void *attr, bool backward, const qn_value *in, const qn_value *out)
{
  const qn_value *grid = backward ? in : out, *theta = backward ? out : in;
  bool corners = ((const qn_sampling *)attr)->align_corners;
  affine s = { NULL, NULL, in->dtype, out->dtype, grid->rank - 2, 0, grid->dim[0], { 1, 1, 1 }, {}, {}, { 1, 1, 1 }, {} };
  for (int d = 0; d < 3; d++) s.theta_stride[d] = theta->stride[d];
  s.grid_stride[0] = grid->stride[0], s.grid_stride[4] = grid->stride[grid->rank - 1];
  for (int d = 0; d < s.dims; d++) {
    int64_t n = s.extent[d] = grid->dim[s.dims - d];
    s.grid_stride[1 + d] = grid->stride[s.dims - d];
    s.scale[d] = affine_scale(n, corners);
  }
  for (int d = 0; d < 2; d++) s.by[d] = cuda_divide_by(qn_max_i64(1, s.extent[d]));       /* 0: no point's place is asked for */
  return s;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool backward = op->op == QN_OP_AFFINE_GRID_BACKWARD;
  affine_state st = { {}, op->arg[0], op->arg[1], 0, backward ? BACKWARD_CHUNK : CHUNK, 0 };
  const qn_value *in = &r->value[st.in], *to = &r->value[st.out], *grid = backward ? in : to;
  if (in->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "theta", "f32, f16 or bf16", "%s", "f64");
  if (!qn_is_packed(grid)) return qn_refuse(out, "the grid is packed", backward ? "dy" : "grid", "row-major without gaps", "%s", "strides");
  if (qn_elements(grid) > 1 << 30)
    return qn_refuse(out, "number of elements", backward ? "dy" : "grid", "at most 2^30", "%lld", (long long)qn_elements(grid));
  if (qn_elements(grid) == 0) return qn_refuse(out, "points to add up", backward ? "dy" : "grid", "1 or more", "%s", "none");
  st.s = affine_of(op->attr, backward, in, to);
  int64_t points = st.s.extent[0] * st.s.extent[1] * st.s.extent[2];
  st.chunks = (int32_t)qn_ceil_div(points, st.chunk);
  st.s.whole = points * st.s.dims % 4 == 0 && in->align >= 16;
  if (backward) st.together = (int32_t)(st.chunks > 1 ? qn_min_i64(st.s.images, MOST_IMAGES) : st.s.images);
  if (backward) out->workspace = (uint64_t)st.together * st.chunks * st.s.dims * (st.s.dims + 1) * sizeof(float);
  if (backward && st.chunks > 1) out->counters = (uint64_t)st.together * sizeof(uint32_t);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const affine_state *st = (const affine_state *)p->state;
  affine s = st->s;
  s.in = launch->ptr[st->in], s.out = launch->ptr[st->out];
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (p->engine->op == QN_OP_AFFINE_GRID) {
    unsigned blocks = (unsigned)s.images * (unsigned)st->chunks;
    if (s.dims == 2) affine_packed<2><<<blocks, THREADS, 0, stream>>>(s, st->chunks);
    else affine_packed<3><<<blocks, THREADS, 0, stream>>>(s, st->chunks);
    return direct_launched("affine_grid");
  }
  float *part = (float *)launch->workspace;
  uint32_t *tickets = (uint32_t *)launch->counters;
  const int64_t image = s.extent[0] * s.extent[1] * s.extent[2] * s.dims * qn_kit_bytes(s.in_dtype),
                theta = s.theta_stride[0] * qn_kit_bytes(s.out_dtype);
  for (int64_t first = 0; first < s.images; first += st->together) {        /* an image's sums do not depend on the number of images */
    unsigned blocks = (unsigned)qn_min_i64(st->together, s.images - first) * (unsigned)st->chunks;
    s.in = (const char *)launch->ptr[st->in] + first * image, s.out = (char *)launch->ptr[st->out] + first * theta;
    if (s.dims == 2) affine_chunks<2><<<blocks, THREADS, 0, stream>>>(s, part, tickets, st->chunks, st->chunk);
    else affine_chunks<3><<<blocks, THREADS, 0, stream>>>(s, part, tickets, st->chunks, st->chunk);
  }
  return direct_launched("affine_grid");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  bool backward = k->op == QN_OP_AFFINE_GRID_BACKWARD;
  affine s = affine_of(k->attr, backward, &k->value[0], &k->value[1]);
  s.in = launch->ptr[k->number[0]], s.out = launch->ptr[k->number[1]];
  int64_t points = s.extent[0] * s.extent[1] * s.extent[2];
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (backward) affine_direct_backward<<<direct_blocks(s.images * s.dims * (s.dims + 1), 1), THREADS, 0, stream>>>(s, points);
  else affine_direct<<<direct_blocks(points * s.images * s.dims, THREADS), THREADS, 0, stream>>>(s, points);
  return direct_launched("affine_grid");
}

#define ROWS(op)                                                                                                                 \
  { "packed", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,           \
    prepare, nullptr, run, cuda_release },                                                                                        \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_AFFINE_GRID), ROWS(QN_OP_AFFINE_GRID_BACKWARD) };
CUDA_ENGINES(affine_grid) = { row, sizeof row / sizeof *row };
