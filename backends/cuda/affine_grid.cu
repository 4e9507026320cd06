/* affine_grid.cu -- grids of points from affine maps, and the gradient.
 *
 *   grid = theta (x, y, 1)      x = (2w + 1 - W)/W, with align_corners (2w + 1 - W)/(W - 1)      dtheta = the sum of dy (x, y, 1)
 *
 * packed: four coordinates by a thread, written at once, of an image's CHUNK by a block; the gradient in two steps, sums of CHUNK points
 * by a block and then those in order. direct: any strides and sizes, in double, an element by a thread or (the gradient) by a block. */
#include "direct.cuh"
#include "divisor.cuh"
#include "engines.h"
#include "sums.cuh"
#include "vector.cuh"

enum { THREADS = 256, CHUNK = 4096 };

struct affine {
  const void *in;
  void    *out;
  uint32_t in_dtype, out_dtype;
  int32_t  dims;
  int64_t  images, extent[3];             /* of the grid: x's first, then y's; 1 where there is none */
  int64_t  theta_stride[3], grid_stride[5];     /* grid: N, x, y, z, coordinate */
  double   scale[3];                      /* what 2w + 1 - W is divided by, inverted */
  divisor  by[2];                         /* extent[0], extent[1] */
};

/* Entry j of (x, y, 1) or (x, y, z, 1). */
template <class T, class I> __device__ __forceinline__ T entry_of(const affine &s, const I (&at)[3], int j)
{
  return j == s.dims ? T(1) : (T)(2 * at[j] + 1 - (I)s.extent[j]) * (T)s.scale[j];
}

/* A chunk of coordinates of one image by a block. */
template <int D> __global__ static void __launch_bounds__(THREADS) affine_packed(const __grid_constant__ affine s, int32_t chunks)
{
  int32_t image = blockIdx.x / chunks, first = (blockIdx.x - image * chunks) * CHUNK, elements = (int32_t)(s.extent[0] * s.extent[1] * s.extent[2]) * D;
  float theta[D][D + 1];
#pragma unroll
  for (int i = 0; i < D; i++)
#pragma unroll
    for (int j = 0; j <= D; j++) theta[i][j] = element_load<float>(s.in, image * s.theta_stride[0] + i * s.theta_stride[1] + j * s.theta_stride[2], s.in_dtype);
#pragma unroll 1
  for (int32_t e = first + 4 * threadIdx.x; e < elements && e < first + CHUNK; e += 4 * THREADS) {
    uint32_t at[3], k = e % D;
    float v[4];
    at[2] = s.by[1].of(s.by[0].of(e / D, &at[0]), &at[1]);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      float row[D + 1];
#pragma unroll
      for (int j = 0; j <= D; j++) row[j] = k == 0 ? theta[0][j] : k == 1 || D == 2 ? theta[1][j] : theta[D - 1][j];
      v[i] = row[D];
#pragma unroll
      for (int j = 0; j < D; j++) v[i] += row[j] * (float)(2 * (int32_t)at[j] + 1 - (int32_t)s.extent[j]) * (float)s.scale[j];
      if (++k < D) continue;
      k = 0;
      bool carry = ++at[0] == s.by[0].d;
      at[0] = carry ? 0 : at[0], at[1] += carry;
      carry = at[1] == s.by[1].d;
      at[1] = carry ? 0 : at[1], at[2] += carry;
    }
    int32_t left = elements - e;
    vector_store<4>(v, s.out, s.out_dtype, (int64_t)image * elements + e, 1, left < 4 ? left : 4);
  }
}

/* part[image, chunk, i, j] = the sum over the chunk's points of dy_i times entry j. */
template <int D> __global__ static void __launch_bounds__(THREADS) affine_chunks(const __grid_constant__ affine s, float *part, int32_t chunks)
{
  __shared__ float shared[THREADS / 32];
  int32_t image = blockIdx.x / chunks, chunk = blockIdx.x - image * chunks, points = (int32_t)(s.extent[0] * s.extent[1] * s.extent[2]);
  float sum[D][D + 1] = {};
  for (int32_t p = chunk * CHUNK + threadIdx.x; p < points && p < (chunk + 1) * CHUNK; p += THREADS) {
    uint32_t x, y, z = s.by[1].of(s.by[0].of(p, &x), &y);
    int32_t at[3] = { (int32_t)x, (int32_t)y, (int32_t)z };
#pragma unroll
    for (int i = 0; i < D; i++) {
      float g = element_load<float>(s.in, ((int64_t)image * points + p) * D + i, s.in_dtype);
#pragma unroll
      for (int j = 0; j <= D; j++) sum[i][j] += g * entry_of<float>(s, at, j);
    }
  }
#pragma unroll
  for (int e = 0; e < D * (D + 1); e++) {
    float v = block_sum<THREADS>(sum[e / (D + 1)][e % (D + 1)], shared);
    if (threadIdx.x == 0) part[(int64_t)blockIdx.x * D * (D + 1) + e] = v;
  }
}

__global__ static void __launch_bounds__(THREADS) affine_total(const __grid_constant__ affine s, const float *part, int32_t chunks, int32_t elements)
{
  int32_t e = blockIdx.x * THREADS + threadIdx.x, each = s.dims * (s.dims + 1);
  if (e >= elements) return;
  int32_t image = e / each, k = e - image * each, i = k / (s.dims + 1);
  float sum = 0;
  for (int32_t c = 0; c < chunks; c++) sum += part[((int64_t)image * chunks + c) * each + k];
  element_store(s.out, image * s.theta_stride[0] + i * s.theta_stride[1] + (k - i * (s.dims + 1)) * s.theta_stride[2], s.out_dtype, sum);
}

/* ---- direct -------------------------------------------------------------------------------------------------------- */

__device__ static int64_t affine_place(const affine &s, int64_t point, int64_t (&at)[3])      /* from an image's first coordinate to the point's */
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
      v += element_load<double>(s.in, n * s.theta_stride[0] + k * s.theta_stride[1] + j * s.theta_stride[2], s.in_dtype) * entry_of<double>(s, at, j);
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
      v += element_load<double>(s.in, from, s.in_dtype) * entry_of<double>(s, at, (int)j);
    }
    v = block_sum<THREADS>(v, shared);
    if (threadIdx.x == 0) element_store(s.out, n * s.theta_stride[0] + i * s.theta_stride[1] + j * s.theta_stride[2], s.out_dtype, v);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct affine_state { affine s; int32_t in, out, chunks; };

static affine affine_of(const void *attr, bool backward, const qn_value *in, const qn_value *out)
{
  const qn_value *grid = backward ? in : out, *theta = backward ? out : in;
  bool corners = ((const qn_sampling *)attr)->align_corners;
  affine s = { NULL, NULL, in->dtype, out->dtype, grid->rank - 2, grid->dim[0], { 1, 1, 1 }, {}, {}, { 1, 1, 1 }, {} };
  for (int d = 0; d < 3; d++) s.theta_stride[d] = theta->stride[d];
  s.grid_stride[0] = grid->stride[0], s.grid_stride[4] = grid->stride[grid->rank - 1];
  for (int d = 0; d < s.dims; d++) {
    int64_t n = s.extent[d] = grid->dim[s.dims - d];
    s.grid_stride[1 + d] = grid->stride[s.dims - d];
    s.scale[d] = n > 1 ? 1.0 / (double)(corners ? n - 1 : n) : 1;
  }
  for (int d = 0; d < 2; d++) s.by[d] = divisor_of(s.extent[d]);
  return s;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool backward = op->op == QN_OP_AFFINE_GRID_BACKWARD;
  affine_state st = { {}, op->arg[0], op->arg[1], 0 };
  const qn_value *in = &r->value[st.in], *to = &r->value[st.out], *grid = backward ? in : to;
  if (in->dtype == QN_F64) return qn_refuse(out, "sums are made in f32", "theta", "f32, f16 or bf16", "%s", "f64");
  if (!qn_is_packed(grid)) return qn_refuse(out, "the grid is packed", backward ? "dy" : "grid", "row-major without gaps", "%s", "strides");
  if (qn_elements(grid) > 1 << 30) return qn_refuse(out, "places are counted in 31 bits", backward ? "dy" : "grid", "fewer", "%lld", (long long)qn_elements(grid));
  st.s = affine_of(op->attr, backward, in, to);
  st.chunks = (int32_t)qn_ceil_div(st.s.extent[0] * st.s.extent[1] * st.s.extent[2] * (backward ? 1 : st.s.dims), CHUNK);
  if (backward) out->workspace = (uint64_t)(st.s.images * st.chunks * st.s.dims * (st.s.dims + 1)) * sizeof(float);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const affine_state *st = (const affine_state *)p->state;
  affine s = st->s;
  s.in = launch->ptr[st->in], s.out = launch->ptr[st->out];
  unsigned blocks = (unsigned)s.images * (unsigned)st->chunks;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (p->engine->op == QN_OP_AFFINE_GRID) {
    if (s.dims == 2) affine_packed<2><<<blocks, THREADS, 0, stream>>>(s, st->chunks);
    else affine_packed<3><<<blocks, THREADS, 0, stream>>>(s, st->chunks);
    return direct_launched("affine_grid");
  }
  float *part = (float *)launch->workspace;
  int32_t sums = (int32_t)s.images * s.dims * (s.dims + 1);
  if (s.dims == 2) affine_chunks<2><<<blocks, THREADS, 0, stream>>>(s, part, st->chunks);
  else affine_chunks<3><<<blocks, THREADS, 0, stream>>>(s, part, st->chunks);
  affine_total<<<direct_blocks(sums, THREADS), THREADS, 0, stream>>>(s, part, st->chunks, sums);
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
const qn_engine_list cuda_affine_grid_list = { row, sizeof row / sizeof *row };
