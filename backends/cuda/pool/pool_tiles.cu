/* pool_tiles.cu -- gradient of 2x2, stride 2 pooling on NCHW planes (f16, bf16, f32), fused with the pointwise ops that follow
 * (an activation's gradient) and with a final sum per channel (a bias's gradient).
 *
 *   y = chain(dx);  sums[c] = the sum of y over images and pixels
 *
 * A thread handles 4 neighbouring windows, 8 elements of two rows, in 16-byte accesses. With a sum, a block stays in one channel;
 * partial sums go to workspace and the last block of a channel adds them in a fixed order.
 * Refused: rows of windows that are no multiple of 4. */
#include "program/chain.h"
#include "pool_found.cuh"
#include "pool_gradient.cuh"
#include "program/steps.cuh"
#include "kit/sums.cuh"

enum { THREADS = 128, WINDOWS = 4 };

struct tiles : gradient {
  void    *to, *sums;                     /* to NULL: only its sums are wanted; sums NULL: none */
  float   *partial;                       /* [channel][part] */
  uint32_t *tickets;                      /* per channel: how many of its parts are done */
  int32_t  how;
  uint32_t to_dtype, sum_dtype;
  /* units (4 windows): of a row, of a plane, of a channel; `line` is what `parts` blocks share, `each` what one takes */
  uint32_t across, plane, channel, line, each, parts;
  int64_t  to_stride[4], sum_stride;     /* N, C, H, W */
  cuda_steps steps;
};

/* Offset of a row of the x, dy, y or indices that have these strides. */
__device__ __forceinline__ int64_t row_at(const int64_t *stride, uint32_t n, uint32_t c, uint32_t h)
{
  return n * stride[0] + c * stride[1] + h * stride[3];
}

/* dx of four windows. */
template <int dtype>
__device__ __forceinline__ void spread(float (&g)[2][8], const tiles &t, uint32_t n, uint32_t c, uint32_t oy, uint32_t ox)
{
  float dy[WINDOWS];
  packet<dtype> row[2];
  if (t.how == BY_X || t.how == LP)
#pragma unroll
    for (int r = 0; r < 2; r++) row[r].load(t.x, dtype, row_at(t.x_stride, n, c, 2 * oy + r) + 2 * ox, 8, 0);
  vector_load(dy, t.dy, dtype, row_at(t.y_stride, n, c, oy) + ox, 1, WINDOWS);
  if (t.how == BY_X) {
    float x[2][8];
    row[0].open(x[0]), row[1].open(x[1]);
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) {
      int chosen = 0;
      float best = x[0][2 * w];
#pragma unroll
      for (int k = 1; k < 4; k++) {       /* the first of equals, the first NaN */
        float v = x[k / 2][2 * w + k % 2];
        if (v > best || (v != v && best == best)) best = v, chosen = k;
      }
#pragma unroll
      for (int k = 0; k < 4; k++) g[k / 2][2 * w + k % 2] = chosen == k ? dy[w] : 0;
    }
  } else if (t.how == LP) {
    float norm[WINDOWS], of[8], dy_of[8];
    vector_load(norm, t.y, dtype, row_at(t.index_stride, n, c, oy) + ox, 1, WINDOWS);
#pragma unroll
    for (int i = 0; i < 8; i++) of[i] = norm[i / 2], dy_of[i] = dy[i / 2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float x[8];
      row[r].open(x);
#pragma unroll
      for (int i = 0; i < 8; i++) g[r][i] = 0;
      lp_gradient(g[r], x, of, dy_of, t.p);
    }
  } else {
#pragma unroll
    for (int w = 0; w < WINDOWS; w++) {
      int64_t at = t.how == MEANS
                     ? 0
                     : element_load<int64_t>(t.indices, row_at(t.index_stride, n, c, oy) + (ox + w) * t.index_stride[4], t.index_dtype);
#pragma unroll
      for (int k = 0; k < 4; k++) {
        int64_t here = t.index_dtype == QN_U8 ? k : (int64_t)(2 * oy + k / 2) * t.in[2] + 2 * (ox + w) + k % 2;
        g[k / 2][2 * w + k % 2] = t.how == MEANS ? dy[w] / 4 : at == here ? dy[w] : 0;
      }
    }
  }
}

/* Writes the block's partial sum; the last block of a channel adds all parts. */
__device__ __forceinline__ void sum_channel(const tiles &t, uint32_t c, uint32_t part, float sum)
{
  __shared__ float warps[THREADS / 32];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  float v = warps[0];
#pragma unroll
  for (int w = 1; w < THREADS / 32; w++) v += warps[w];
  if (t.parts > 1) {
    uint32_t last = 0;
    if (threadIdx.x == 0) {
      t.partial[c * t.parts + part] = v;
      __threadfence();
      last = atomicInc(&t.tickets[c], t.parts - 1) == t.parts - 1;         /* wraps to 0 for the next launch */
      __threadfence();
    }
    if (!__shfl_sync(~0u, last, 0)) return;
    v = 0;
    for (uint32_t p = threadIdx.x; p < t.parts; p += 32) v += __ldcg(&t.partial[c * t.parts + p]);
    v = warp_sum(v);
  }
  if (threadIdx.x == 0) element_store(t.sums, c * t.sum_stride, t.sum_dtype, v);
}

template <int dtype> __global__ void __launch_bounds__(THREADS) pool_tiles(const __grid_constant__ tiles t)
{
  uint32_t line = blockIdx.x / t.parts, part = blockIdx.x - line * t.parts;
  uint32_t from = line * t.line + part * t.each, end = min(from + t.each, (line + 1) * t.line);
  float sum = 0;
  for (uint32_t unit = from + threadIdx.x; unit < end; unit += THREADS) {
    uint32_t c = unit / t.channel, rest = unit - c * t.channel, n = rest / t.plane;
    rest -= n * t.plane;
    uint32_t oy = rest / t.across, ox = (rest - oy * t.across) * WINDOWS;
    float g[2][8];
    spread<dtype>(g, t, n, c, oy, ox);
#pragma unroll 1
    for (int r = 0; r < 2; r++) {         /* not unrolled, to have the steps' code once */
      float v[8];
#pragma unroll
      for (int i = 0; i < 8; i++) v[i] = r ? g[1][i] : g[0][i];
      steps_apply(t.steps, v, (int)(2 * oy) + r, (int)(2 * ox), (int)c, (int)n, 0, 8);
      if (t.to)
        store8(v, t.to, t.to_dtype, n * t.to_stride[0] + c * t.to_stride[1] + (2 * oy + r) * t.to_stride[2] + 2 * ox * t.to_stride[3],
               t.to_stride[3], 8);
#pragma unroll
      for (int i = 0; i < 8; i++) sum += v[i];
    }
  }
  if (t.sums) sum_channel(t, line, part, sum);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct state : pool_state<tiles> {
  cuda_chain chain;
  int32_t  value;                         /* of the sums; -1: none */

  void bind(tiles *t, const qn_launch *launch) const
  {
    t->to = launch->ptr[chain.out], t->sums = value >= 0 ? launch->ptr[value] : nullptr;
    t->partial = (float *)launch->workspace, t->tickets = (uint32_t *)launch->counters;
    cuda_chain_bind(&t->steps, &chain, launch->ptr);
  }
};

/* Is W contiguous, are the other strides multiples of `unit`, and is it aligned to 16 bytes? */
static bool rows_fit(const qn_value *v, int64_t unit)
{
  bool fits = v->stride[3] == 1;
  for (int d = 0; d < 3; d++) fits &= v->dim[d] == 1 || v->stride[d] % unit == 0;
  return fits && v->align >= 16;
}

/* The value of a reduce_sum per channel that follows the chain, or -1. */
static int32_t closing_sum(const qn_request *r, const cuda_chain *chain)
{
  if (chain->n_ops >= r->n_ops) return -1;
  const qn_node *op = &r->op[chain->n_ops];
  if (op->op != QN_OP_REDUCE_SUM || op->arg[0] != chain->out || ((const qn_axes *)op->attr)->mask != 0xd) return -1;
  return qn_is_float(r->value[op->arg[1]].dtype) ? op->arg[1] : -1;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state s = {};
  tiles *t = &s.p;
  const qn_status status = gradient_read<tiles>(&s, r, out);
  if (status) return status;
  const qn_value *dx = &r->value[s.of.dx], *dy = &r->value[s.of.dy], *x = s.of.x >= 0 ? &r->value[s.of.x] : nullptr,
                 *norm = s.of.y >= 0 ? &r->value[s.of.y] : dy;
  if (dx->rank != 4) return qn_refuse(out, "two spatial dims", "dx", "2", "%d", dx->rank - 2);
  if (square_of(t) != 220 || t->in[1] != 2 * t->out[1] || t->in[2] != 2 * t->out[2])
    return qn_refuse(out, "windows of 2 by 2 that tile the plane", "dx", "2", "%d", t->size[2]);
  if (t->out[2] % WINDOWS) return qn_refuse(out, "windows by four along a row", "dy", "a multiple of 4", "%d", t->out[2]);
  if (!rows_fit(dy, WINDOWS) || !rows_fit(norm, WINDOWS) || (x && !rows_fit(x, 8)))
    return qn_refuse(out, "rows in steps of 16 bytes", x ? "x" : "dy", "nchw", "%s", "other strides");
  if ((double)qn_elements(dx) > 2e9) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");

  /* what can be fused */
  const cuda_out_dims dims = { { 2, 3, 1, 0 }, CUDA_BY_DIMS };
  cuda_chain_begin(&s.chain, s.of.dx);
  cuda_chain_follow(&s.chain, r, &dims);
  s.value = closing_sum(r, &s.chain);
  const qn_value *to = &r->value[s.chain.out];
  t->how = s.how;
  t->across = (uint32_t)(t->out[2] / WINDOWS);
  t->plane = t->across * (uint32_t)t->out[1];
  t->channel = t->plane * t->n;
  for (int d = 0; d < 4; d++) t->to_stride[d] = to->stride[d];
  t->to_dtype = to->dtype;
  t->steps = s.chain.steps;
  int64_t channels = t->c, lines = s.value >= 0 ? channels : 1, line = t->channel * (s.value >= 0 ? 1 : channels);
  int64_t parts = s.value < 0     ? qn_ceil_div(line, THREADS)
                : channels > 1024 ? 1
                                  : qn_max_i64(1, qn_min_i64(8 * r->device->units / channels, qn_ceil_div(line, THREADS)));
  int64_t each = qn_round_up(qn_ceil_div(line, parts), THREADS);
  parts = qn_ceil_div(line, each);
  if (s.value >= 0 && (uint64_t)(parts * channels) * 4 > r->demands->workspace_limit) each = line, parts = 1;
  t->line = (uint32_t)line, t->each = (uint32_t)each, t->parts = (uint32_t)parts;
  s.blocks = (uint32_t)(lines * parts), s.threads = THREADS;
  if (s.value >= 0) {
    t->sum_dtype = r->value[s.value].dtype;
    t->sum_stride = channels > 1 ? r->value[s.value].stride[1] : 0;
    out->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);
    if (parts > 1) out->workspace = (uint64_t)(parts * channels) * 4, out->counters = (uint64_t)channels * 4;
  }
  out->n_ops = s.chain.n_ops + (s.value >= 0);
  out->estimate = 4000 + s.moved / 2200;
  s.kernel = cuda_by_dtype(t->dtype, [](auto dtype) { return (pool_kernel)pool_tiles<dtype()>; });
  return cuda_keep(out, &s, sizeof s);
}

static const qn_engine row[] = { pool_row<tiles, state>("tiles", QN_OP_POOL_MAX_BACKWARD, prepare),
                                 pool_row<tiles, state>("tiles", QN_OP_POOL_AVERAGE_BACKWARD, prepare),
                                 pool_row<tiles, state>("tiles", QN_OP_POOL_LP_BACKWARD, prepare) };
CUDA_ENGINES(pool_tiles) = { row, sizeof row / sizeof *row };
