/* pool_scatter.cu -- gradient of max pooling by indices on packed NCHW planes, f16, bf16 and f32; any windows up to 32 without dilation
 * or gaps.
 *
 *   dx[x] = the sum of dy over the windows whose index is x
 *
 * A warp accumulates a tile of dx in shared memory: it walks the rows of windows that reach into the tile, a window a lane, and adds dy
 * at the place of each window's maximum. Neighbouring lanes whose windows overlap take turns, so no two add to one address; the order of
 * the sums is fixed. */
#include "pool_gradient.cuh"
#include "kit/words.cuh"

enum { WARPS = 4, BATCH = 4, MEMORY = 8 << 10 };          /* BATCH: loads of a lane in flight; MEMORY: bytes of shared memory of a warp */

struct pieces : gradient {
  uint32_t warps;
  int32_t  bands, band, tiles, tile;      /* bands of a plane, rows of one; tiles of a row, columns of one */
  int32_t  pitch, rows;                   /* of the tile in shared memory */
  int32_t  pairs;                         /* two columns of dx share an aligned word */
  int32_t  turns;                         /* turns that overlapping neighbours take */
  cuda_divisor by_bands, by_tiles, by_width, by_depth;      /* depth: planes of a channel, as indices count them */
};

template <int dtype, int how> __global__ void __launch_bounds__(WARPS * 32) pool_scatter_planes(const __grid_constant__ pieces p)
{
  extern __shared__ float memory[];
  const uint32_t warp = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (warp >= p.warps) return;
  uint32_t band, tile, z;
  const uint32_t plane = cuda_quotient(cuda_quotient(warp, p.by_tiles, &tile), p.by_bands, &band);
  cuda_quotient(plane, p.by_depth, &z);
  const int top = (int)band * p.band, end = min(top + p.band, p.in[1]), left = (int)tile * p.tile, right = min(left + p.tile, p.in[2]);
  const range over_y = windows_over(p, 1, top, end), over_x = windows_over(p, 2, left, right);
  const int y_base = min(over_y.begin * p.step[1] - p.before[1], top), x_base = min(over_x.begin * p.step[2] - p.before[2], left);
  float *const sums = memory + threadIdx.x / 32 * (p.pitch * p.rows);
  for (int i = lane; i < p.pitch * p.rows; i += 32) sums[i] = 0;
  __syncwarp();

  const int64_t windows = (int64_t)plane * p.out[1] * p.out[2];
  const uint32_t turn = lane % (uint32_t)p.turns;
  int oy = over_y.begin, ox0 = over_x.begin;
#pragma unroll 1
  while (oy < over_y.end && ox0 < over_x.end) {
    float v[BATCH];
    int place[BATCH], y[BATCH], x[BATCH];  /* index of the maximum (offset or tap number); first row and column of its window */
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      const int ox = ox0 + (int)lane;
      y[b] = oy * p.step[1] - p.before[1], x[b] = ox * p.step[2] - p.before[2];
      v[b] = 0, place[b] = -1;
      if (oy < over_y.end && ox < over_x.end) {
        const int64_t at = windows + oy * p.out[2] + ox;
        v[b] = edge_load<dtype>(p.dy, at);
        place[b] = how == BY_TAP           ? ((const uint8_t *)p.indices)[at]
                 : p.index_dtype == QN_I32 ? ((const int32_t *)p.indices)[at]
                                           : place_among(((const int64_t *)p.indices)[at]);
      }
      ox0 += 32;
      if (ox0 >= over_x.end) ox0 = over_x.begin, oy++;
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      uint32_t r, c;
      if (how == BY_TAP) {
        r = cuda_quotient((uint32_t)max(place[b], 0), p.by_size[2], &c);
      } else {
        r = cuda_quotient((uint32_t)max(place[b], 0), p.by_width, &c);
        r -= z * p.in[1] + y[b], c -= x[b];
      }
      const uint32_t mine = place[b] >= 0 && r < (uint32_t)p.size[1] && c < (uint32_t)p.size[2] ? turn : ~0u;
      float *const sum = sums + (y[b] - y_base + (int)r) * p.pitch + x[b] - x_base + (int)c;
#pragma unroll 1
      for (int t = 0; t < p.turns; t++) {
        if (mine == (uint32_t)t) *sum += v[b];
        __syncwarp();
      }
    }
  }

  const float *from = sums + (top - y_base) * p.pitch + left - x_base;
  char *to = (char *)p.dx + (((int64_t)plane * p.in[1] + top) * p.in[2] + left) * (dtype == QN_F32 ? 4 : 2);
  for (int row = top; row < end; row++, from += p.pitch, to += p.in[2] * (dtype == QN_F32 ? 4 : 2)) {
    if (p.pairs)
      for (int x = 2 * (int)lane; x < right - left; x += 64) pair_store<dtype>(to, x, from[x], from[x + 1]);
    else
      for (int x = (int)lane; x < right - left; x += 32) edge_store<dtype>(to, x, from[x]);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  pool_state<pieces> s = {};
  pieces *p = &s.p;
  qn_status status = gradient_read(&s, r, out);
  if (!status) status = pool_wants_planes(r, s.of, 0, out);
  if (status) return status;
  if (s.of.indices < 0) return qn_refuse(out, "maxima by indices", "indices", "present", "%s", "absent");
  p->by_depth = cuda_divide_by(p->in[0]);
  if (!pool_fold(p, false)) return qn_refuse(out, "windows within a plane", "dx", "depth 1", "depth %d", p->size[0]);
  for (int d = 1; d < 3; d++)
    if ((p->size[d] > 1 && p->dilation[d] != 1) || p->step[d] > p->size[d] || p->size[d] > 32)
      return qn_refuse(out, "windows of at most 32, without dilation or gaps", "dx", "3", "%d", p->size[d]);
  const bool taps = p->index_dtype == QN_U8;
  s.kernel = cuda_by_dtype(p->dtype, [&](auto dtype) {
    return taps ? (pool_kernel)pool_scatter_planes<dtype(), BY_TAP> : (pool_kernel)pool_scatter_planes<dtype(), BY_PLACE>;
  });
  const qn_value *dx = &r->value[s.of.dx];
  if (qn_elements(dx) > INT32_MAX) return qn_refuse(out, "fewer than 2^31 elements", "dx", "", "%s", "more");
  const int64_t count = qn_elements(dx) / ((int64_t)p->in[1] * p->in[2]);

  /* choose the tile: whole rows first, as many as shared memory holds */
  const int64_t beyond = 2 * (p->size[2] - 1), most = MEMORY / 4;
  p->tile = p->in[2] <= 512 ? p->in[2] : (int32_t)(512 / p->step[2] * p->step[2]);
  p->pitch = (int32_t)(p->tile + beyond);
  const int64_t rows = qn_max_i64(most / p->pitch - 2 * (p->size[1] - 1), 1);
  p->bands = (int32_t)qn_ceil_div(p->in[1], rows);
  p->band = (int32_t)qn_round_up(qn_ceil_div(p->in[1], p->bands), p->step[1]);
  p->bands = (int32_t)qn_ceil_div(p->in[1], p->band);
  p->rows = (int32_t)(qn_min_i64(p->band, p->in[1]) + 2 * (p->size[1] - 1));
  p->tiles = (int32_t)qn_ceil_div(p->in[2], p->tile);
  p->turns = (int32_t)qn_ceil_div(p->size[2], p->step[2]);
  const int64_t shared = WARPS * (int64_t)p->pitch * p->rows * 4;
  if (shared > 48 << 10) return qn_refuse(out, "a row and its windows in 12 KB", "dx", "narrower", "%lld", (long long)shared);
  if ((double)count * p->bands * p->tiles > INT32_MAX / 32) return qn_refuse(out, "fewer than 2^26 warps", "dx", "", "%s", "more");
  p->warps = (uint32_t)(count * p->bands * p->tiles);
  p->by_bands = cuda_divide_by(p->bands), p->by_tiles = cuda_divide_by(p->tiles), p->by_width = cuda_divide_by(p->in[2]);
  p->pairs = p->in[2] % 2 == 0 && p->tile % 2 == 0 && dx->align >= 8;
  s.shared = (uint32_t)shared;
  return pool_keep(&s, 32 * (int64_t)p->warps, 32 * WARPS, 800, out);
}

static const qn_engine row = pool_row<pieces>("scatter", QN_OP_POOL_MAX_BACKWARD, prepare);
CUDA_ENGINES(pool_scatter) = { &row, 1 };
