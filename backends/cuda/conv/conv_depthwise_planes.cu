/* conv_depthwise_planes.cu -- depthwise convolution on planes (conv_depthwise_planes.cuh), forward and backward data, one to three
 * spatial dims, both layouts, any window, several filters a channel: a block loads a box of some planes into shared memory, a
 * thread computes a strip of ROWS x COLUMNS outputs in registers, and the outputs go back through shared memory in whole runs.
 *
 *   y[o] = sum over taps k of w[k] x[o stride - pad + k dilation]           (+ the ops that follow)
 *
 * Backward data is the same sum over dy with the filter reversed; a stride divides its outputs into classes, each of which is such
 * a sum of stride 1 over some of the taps (conv_problem.h). Along a row the taps are taken TAPS at a time (the last ones filled up with 0);
 * each input row is loaded once for all of the strip's rows. STRIDE 0: any stride and dilation, one tap at a time.
 *
 * Missing inputs and taps count as 0 in this. A sum that is not finite is therefore added again, of what exists. */
#include "conv_depthwise_planes.cuh"
#include "conv_store.cuh"
#include "engines.h"

enum { THREADS = 128, SHARED = 36 << 10, MOST_COLUMNS = 14 };

struct depthwise {
  planes   x, y;                          /* read (backward: dy) and written */
  const void *w;
  axis     axis[3];                       /* depth, rows, columns */
  int64_t  w_stride[4];                   /* K, depth, rows, columns */
  int32_t  size[2], filters;              /* of the window: depth, rows */
  int32_t  per, groups, tiles;            /* planes of y in a block; such groups of an image; blocks of a group */
  int32_t  shared, of_x;                  /* planes of y that share one of x; planes of x for one of y; one of these is 1 */
  int32_t  many;                          /* channels of y (p.y's may be those of all images) */
  int32_t  chunks, pitch;                 /* of TAPS taps along a row; elements from one to the next in shared memory */
  int32_t  strips_w, strips_h;            /* strips of a class in a tile */
  cuda_divisor by_plane, by_depth, by_row, by_pieces, by_filter;
  int32_t  pieces;                        /* chunks of all classes of columns */
  int32_t  x_at, y_at;                    /* bytes, in shared memory behind the taps */
  int32_t  rows, columns;                 /* of a strip */
  int32_t  column, factor, relu, plain;   /* plain: the epilogue is only bias, fold, relu, and y has x's dtype */
  uint32_t out_dtype;
  cuda_steps steps;
};

/* What a thread computes: outputs from window m on of classes `cls`. */
struct strip { int k, x, z, m[2], cls[3], rows, columns; };

/* Taps of row (depth a, row r) of the filter for plane k, chunk by chunk. */
__device__ __forceinline__ const float *taps_of(const depthwise &p, const float *taps, int filter, int a, int r, int cls)
{
  return taps + (((filter * p.size[0] + a) * p.size[1] + r) * p.pieces + cls * p.chunks) * p.pitch;
}

/* Output (i, j) of the strip, added of what exists. */
template <int dtype>
static __device__ __noinline__ float sum_again(const depthwise &p, const box &in, const typename plane_element<dtype>::type *x,
                                               const float *taps, const strip &s, int i, int j, int TAPS)
{
  const axis &A = p.axis[0], &H = p.axis[1], &W = p.axis[2];
  float sum = 0;
  for (int f = 0; f < p.of_x; f++)
    for (int a = 0; a < A.taps[s.cls[0]]; a++)
      for (int r = 0; r < H.taps[s.cls[1]]; r++)
        for (int c = 0; c < W.taps[s.cls[2]]; c++) {
          const int d = s.z * A.mul - A.before[s.cls[0]] + a * A.gap, h = (s.m[0] + i) * H.mul - H.before[s.cls[1]] + r * H.gap,
                    w = (s.m[1] + j) * W.mul - W.before[s.cls[2]] + c * W.gap;
          if (!in.has(0, d) || !in.has(1, h) || !in.has(2, w)) continue;
          const float *tap = taps_of(p, taps, s.k * p.of_x + f, A.tap[s.cls[0]] + a * A.tap_step[s.cls[0]],
                                     H.tap[s.cls[1]] + r * H.tap_step[s.cls[1]], s.cls[2]);
          sum = fmaf(plane_float<dtype>(x[in.at(p.x, s.x + f, d, h, w)]), tap[c / TAPS * p.pitch + c % TAPS], sum);
        }
  return sum;
}

template <int TAPS> __device__ __forceinline__ void load_taps(float (&w)[(TAPS + 3) / 4 * 4], const float *from)
{
#pragma unroll
  for (int k = 0; k < TAPS; k += 4) {
    const float4 q = *(const float4 *)(from + k);
    w[k] = q.x, w[k + 1] = q.y, w[k + 2] = q.z, w[k + 3] = q.w;
  }
}
template <int TAPS, int STRIDE, int COLUMNS, int WIDE>
__device__ __forceinline__ void add_taps(float (&sum)[COLUMNS], const float (&v)[WIDE], const float (&w)[(TAPS + 3) / 4 * 4])
{
#pragma unroll
  for (int k = 0; k < TAPS; k++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) sum[j] = fmaf(v[j * STRIDE + k], w[k], sum[j]);
}

/* STRIDE: along columns; 0: any, TAPS is 1. */
template <int dtype, int ROWS, int COLUMNS, int TAPS, int STRIDE>
__device__ __forceinline__ void strip_sum(float (&sum)[ROWS][COLUMNS], const depthwise &p, const box &in,
                                          const typename plane_element<dtype>::type *x, const float *taps, const strip &s)
{
  constexpr int WIDE = STRIDE == 0 ? COLUMNS : (COLUMNS - 1) * STRIDE + TAPS;
  const axis &A = p.axis[0], &H = p.axis[1], &W = p.axis[2];
  const int deep = A.taps[s.cls[0]], high = H.taps[s.cls[1]], z = s.z * A.mul - A.before[s.cls[0]],
            top = s.m[0] * H.mul - H.before[s.cls[1]], down = H.mul, row_of_taps = p.pieces * p.pitch,
            tap = H.tap[s.cls[1]] * row_of_taps, next = H.tap_step[s.cls[1]] * row_of_taps, pitch = p.x.pitch[2];
  for (int f = 0; f < p.of_x; f++)
#pragma unroll 1
    for (int chunk = 0; chunk < p.chunks; chunk++) {
      const int left = s.m[1] * W.mul - W.before[s.cls[2]] + chunk * TAPS * W.gap;
      plane_columns<dtype, WIDE, STRIDE> columns;
      if (!columns.find(in, left, W.mul)) continue;
#pragma unroll 1
      for (int a = 0; a < deep; a++) {
        const int d = z + a * A.gap;
        if (!in.has(0, d)) continue;
        const auto *plane = x + in.at(p.x, s.x + f, d, in.first[1], columns.begin(in, left));
        const float *first =
          taps_of(p, taps, s.k * p.of_x + f, A.tap[s.cls[0]] + a * A.tap_step[s.cls[0]], 0, s.cls[2]) + chunk * p.pitch + tap;
        float v[WIDE];
        if constexpr (STRIDE == 0) {
#pragma unroll 1
          for (int r = 0; r < high; r++) {
            const float w = first[r * next];
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
              const int h = top + i * down + r * H.gap;
              if (i >= s.rows || !in.has(1, h)) continue;
              columns.load(v, plane + (h - in.first[1]) * pitch);
#pragma unroll
              for (int j = 0; j < COLUMNS; j++) sum[i][j] = fmaf(v[j], w, sum[i][j]);
            }
          }
        } else if (ROWS > 1 && TAPS <= 5 && high == TAPS && down == STRIDE) {     /* the same as below for small square windows, unrolled */
          float w[TAPS][(TAPS + 3) / 4 * 4];
#pragma unroll
          for (int r = 0; r < TAPS; r++) load_taps<TAPS>(w[r], first + r * next);
#pragma unroll
          for (int row = 0; row < (ROWS - 1) * STRIDE + TAPS; row++) {
            if (!in.has(1, top + row)) continue;
            columns.load(v, plane + (top + row - in.first[1]) * pitch);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
              if (row >= i * STRIDE && row < i * STRIDE + TAPS) add_taps<TAPS, STRIDE>(sum[i], v, w[(row - i * STRIDE) % TAPS]);
          }
        } else {
          const int begin = max(0, in.first[1] - top), end = min((s.rows - 1) * down + high, in.end[1] - top);
          const auto *line = plane + (top + begin - in.first[1]) * pitch;
#pragma unroll 1
          for (int row = begin; row < end; row++, line += pitch) {
            columns.load(v, line);
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
              const int r = row - i * down;
              if ((uint32_t)r >= (uint32_t)high) continue;
              float w[(TAPS + 3) / 4 * 4];
              load_taps<TAPS>(w, first + r * next);
              add_taps<TAPS, STRIDE>(sum[i], v, w);
            }
          }
        }
      }
    }
}

/* The general end of `columns` sums of a row: applies the ops that follow and stores, in the box from element `at` on. w: the first's
 * column. */
static __device__ __noinline__ void row_end(const depthwise &p, const float (&v)[MOST_COLUMNS], int n, int c, int d, int h, int w,
                                            int columns, void *y, int at)
{
  const int apart = p.axis[2].apart;
  for (int j = 0; j < columns; j++) {
    float u[8] = {v[j]};
    steps_apply(p.steps, u, w + j * apart, c, n, d * p.y.dim[1] + h, 1, 1);
    element_store(y, at + j * apart, dtype3(p.out_dtype), u[0]);
  }
}

/* Blocks that a multiprocessor holds, by registers: some load while others compute. */
template <int TAPS, int STRIDE> constexpr int blocks_of = TAPS > 8 ? 4 : TAPS == 5 ? 6 - STRIDE : TAPS <= 3 && STRIDE != 1 ? 5 : 6;

template <int dtype, int ROWS, int COLUMNS, int TAPS, int STRIDE>
__global__ void __launch_bounds__(THREADS, blocks_of<TAPS, STRIDE>) depthwise_planes(const __grid_constant__ depthwise p)
{
  static_assert(sizeof(depthwise) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  typedef typename plane_element<dtype>::type element;
  extern __shared__ uint4 shared[];
  element *const x = (element *)((char *)shared + p.x_at);
  float *const taps = (float *)shared;
  void *const y = (char *)shared + p.y_at;
  const axis &A = p.axis[0], &H = p.axis[1], &W = p.axis[2];
  const int group = over(blockIdx.x, p.tiles), tile = blockIdx.x - group * p.tiles, image = group / p.groups;
  const int tile_dh = over(tile, W.tiles), tile_d = over(tile_dh, H.tiles);
  const int origin[3] = { tile_d * A.tile, (tile_dh - tile_d * H.tiles) * H.tile, (tile - tile_dh * W.tiles) * W.tile };
  box out, in;
  out.n = in.n = image;
  out.plane = (group - image * p.groups) * p.per;
  out.count = min(p.per, p.y.channels - out.plane);
  in.plane = over(out.plane, p.shared) * p.of_x;
  in.count = over(out.plane + out.count - 1, p.shared) * p.of_x - in.plane + p.of_x;
#pragma unroll
  for (int d = 0; d < 3; d++) {
    out.first[d] = origin[d], out.end[d] = min(p.axis[d].out, origin[d] + p.axis[d].tile);
    p.axis[d].range(out.first[d], out.end[d], in.first[d], in.end[d]);
  }
  box_place(in, p.x), box_place(out, p.y);
  box_load<element, THREADS, 8>(p.x, in, x);
  copy_async_commit();

  const int rows_of_taps = p.size[0] * p.size[1], slots = out.count * p.of_x * rows_of_taps * p.pieces;
  for (int i = threadIdx.x; i < slots; i += THREADS) {
    const int row = cuda_quotient(i, p.by_pieces), piece = i - row * p.pieces, filter = cuda_quotient(row, p.by_filter),
              rest = row - filter * rows_of_taps, cls = piece / p.chunks, chunk = piece - cls * p.chunks, a = rest / p.size[1];
    const int64_t from = (out.plane * p.of_x + filter) % p.filters * p.w_stride[0] + a * p.w_stride[1] +
                         (rest - a * p.size[1]) * p.w_stride[2];
#pragma unroll
    for (int k = 0; k < TAPS; k++) {
      const int t = chunk * TAPS + k;
      taps[i * p.pitch + k] =
        t < W.taps[cls] ? element_load<float>(p.w, from + (W.tap[cls] + t * W.tap_step[cls]) * p.w_stride[3], dtype) : 0;
    }
  }
  copy_async_wait<0>();
  __syncthreads();

  for (int unit = threadIdx.x; unit < out.count * (int)p.by_plane.by; unit += THREADS) {
    strip s;
    uint32_t rest, depth, column;
    s.k = cuda_quotient(unit, p.by_plane, &rest);
    int z = cuda_quotient(rest, p.by_depth, &depth), row = cuda_quotient(depth, p.by_row, &column), col = column, part[2];
    for (s.cls[1] = 0; row >= p.strips_h; s.cls[1]++) row -= p.strips_h;
    for (s.cls[2] = 0; col >= p.strips_w; s.cls[2]++) col -= p.strips_w;
    z += out.first[0];
    s.z = over(z, A.apart), s.cls[0] = z - s.z * A.apart;
    part[0] = row * ROWS, part[1] = col * COLUMNS;
    s.m[0] = over(out.first[1], H.apart) + part[0], s.m[1] = over(out.first[2], W.apart) + part[1];
    const int h0 = s.m[0] * H.apart + s.cls[1], w0 = s.m[1] * W.apart + s.cls[2];
    if (z >= out.end[0] || h0 >= out.end[1] || w0 >= out.end[2]) continue;
    s.rows = min(ROWS, over(out.end[1] - h0 + H.apart - 1, H.apart));
    s.columns = min(COLUMNS, over(out.end[2] - w0 + W.apart - 1, W.apart));
    s.x = over(out.plane + s.k, p.shared) * p.of_x - in.plane;
    float sum[ROWS][COLUMNS] = {};
    strip_sum<dtype, ROWS, COLUMNS, TAPS, STRIDE>(sum, p, in, x, taps, s);

    const int plane = out.plane + s.k, to = out.at(p.y, s.k, z, h0, w0);
    int n = image, c = plane;
    if (p.y.channels > p.many) n = plane / p.many, c = plane - n * p.many;
    float zero = 0;                       /* NaN if any sum is not finite */
    uint32_t bad = 0;
#pragma unroll
    for (int i = 0; i < ROWS; i++)
#pragma unroll
      for (int j = 0; j < COLUMNS; j++) zero = fmaf(sum[i][j], 0.f, zero);
    if (zero != 0)
#pragma unroll
      for (int i = 0; i < ROWS; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
          bad |= (uint32_t)(i < s.rows && j < s.columns && !isfinite(sum[i][j])) << (i * COLUMNS + j);

    if (p.plain) {
      if (p.column >= 0 || p.factor >= 0 || p.relu) {
        const float bias = p.column < 0 ? 0 : element_load<float>(p.steps.operand[p.column].p, c, dtype3(p.steps.operand[p.column].dtype)),
                    floor = p.relu ? 0.f : -INFINITY;
        const column_fold fold = fold_of(p.steps, p.factor, c);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
          for (int j = 0; j < COLUMNS; j++) sum[i][j] = fn_max(folded(sum[i][j] + bias, fold), floor);
      }
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
        element *line = (element *)y + to + i * H.apart * p.y.pitch[2];
        if (i >= s.rows) continue;
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) {
          if (j >= s.columns) continue;
          if constexpr (dtype == QN_F32) line[j * W.apart] = sum[i][j];
          else line[j * W.apart] = dtype == QN_BF16 ? float_to_bf16(sum[i][j]) : float_to_f16(sum[i][j]);
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < ROWS; i++) {
        float v[MOST_COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) v[j] = sum[i][j];
        if (i < s.rows) row_end(p, v, n, c, z, h0 + i * H.apart, w0, s.columns, y, to + i * H.apart * p.y.pitch[2]);
      }
    }
    for (; bad; bad &= bad - 1) {
      const int at = __ffs(bad) - 1, i = at / COLUMNS, j = at - i * COLUMNS;
      const box whole = in;               /* copies, lest those above are kept in memory */
      const strip mine = s;
      const float v[MOST_COLUMNS] = {sum_again<dtype>(p, whole, x, taps, mine, i, j, TAPS)};
      row_end(p, v, n, c, z, h0 + i * H.apart, w0 + j * W.apart, 1, y, to + i * H.apart * p.y.pitch[2] + j * W.apart);
    }
  }
  __syncthreads();
  if (p.out_dtype == QN_F32) box_store<float, THREADS, 8>(p.y, out, (const float *)y);
  else box_store<uint16_t, THREADS, 8>(p.y, out, (const uint16_t *)y);
}

/* ---- host ------------------------------------------------------------------------------------------------- */

struct kernel { const void *function; uint32_t dtype; int32_t rows, columns, taps, stride; };       /* stride 0: any */
#define KERNEL(dtype, ROWS, COLUMNS, TAPS, STRIDE) \
  { (const void *)depthwise_planes<dtype, ROWS, COLUMNS, TAPS, STRIDE>, dtype, ROWS, COLUMNS, TAPS, STRIDE },
#define KERNELS(dtype) \
  KERNEL(dtype, 4, 7, 1, 0) KERNEL(dtype, 4, 7, 3, 1) KERNEL(dtype, 4, 7, 5, 1) KERNEL(dtype, 4, 7, 7, 1) KERNEL(dtype, 4, 7, 8, 1) \
  KERNEL(dtype, 4, 7, 3, 2) KERNEL(dtype, 4, 7, 5, 2) KERNEL(dtype, 4, 7, 7, 2) KERNEL(dtype, 1, 14, 4, 1) KERNEL(dtype, 1, 14, 8, 1) \
  KERNEL(dtype, 1, 14, 32, 1)
static const kernel kernels[] = { KERNELS(QN_BF16) KERNELS(QN_F16) KERNELS(QN_F32) };

/* The kernel for rows of `taps` taps that fills up the fewest, one_row: of planes of one row. */
static const kernel *find(uint32_t dtype, int taps, int stride, bool one_row)
{
  const kernel *found = nullptr;
  int64_t least = 0;
  for (const kernel &k : kernels) {
    const int64_t chunks = qn_ceil_div(taps, k.taps), cost = chunks * (k.taps + 1) * (one_row && k.rows > 1 ? 2 : 1);
    if (k.dtype == dtype && k.stride == stride && (one_row || k.rows > 1) && (!found || cost < least)) found = &k, least = cost;
  }
  return found;
}

/* Bytes of shared memory with tiles of these extents; 0: too many. */
static int64_t lay(depthwise *p, int64_t per, const int64_t tile[3], int bytes)
{
  int64_t extent[3], units = 1;
  int whole = 0;
  for (int d = 2; d >= 0; d--) {
    axis *a = &p->axis[d];
    a->tile = (int32_t)tile[d], a->tiles = (int32_t)qn_ceil_div(a->out, tile[d]);
    if (a->tiles == 1 && whole == 2 - d) whole++;
    extent[d] = a->tiles == 1 ? a->in : axis_reach(a, tile[d]);
  }
  const int64_t planes_in = p->shared > 1 ? (per - 1) / p->shared + 2 : per * p->of_x;
  if (!planes_lay(&p->x, planes_in, extent, whole) || !planes_lay(&p->y, per, tile, whole)) return 0;
  p->strips_h = (int32_t)qn_ceil_div(qn_ceil_div(tile[1], p->axis[1].apart), p->rows);
  p->strips_w = (int32_t)qn_ceil_div(qn_ceil_div(tile[2], p->axis[2].apart), p->columns);
  const int64_t across = (int64_t)p->strips_w * p->axis[2].apart, down = across * p->strips_h * p->axis[1].apart;
  units = down * tile[0];
  p->by_row = cuda_divide_by(across), p->by_depth = cuda_divide_by(down), p->by_plane = cuda_divide_by(units);
  p->per = (int32_t)per;
  p->groups = (int32_t)qn_ceil_div(p->y.channels, per);
  p->tiles = p->axis[0].tiles * p->axis[1].tiles * p->axis[2].tiles;
  p->x_at = (int32_t)qn_round_up(per * p->of_x * p->size[0] * p->size[1] * p->pieces * p->pitch * 4 + MARGIN, 16);
  p->y_at = (int32_t)qn_round_up(p->x_at + p->x.room * (int64_t)bytes + MARGIN, 16);
  return p->y_at + p->y.room * (int64_t)qn_kit_bytes(p->out_dtype);
}

/* Chooses a block's planes and tile: the least loads, idle threads and blocks within SHARED, else within `room`. */
static int64_t divide(depthwise *p, int bytes, int64_t images, int64_t units, int64_t room)
{
  int64_t tile[3], best[3] = {}, best_per = 0;
  double least = 0;
  const axis *a = p->axis;
  const bool last = p->x.last || p->y.last;
  const int64_t unit = qn_max_i64(p->x.last ? p->x.vector : 1, p->y.last ? p->y.vector : 1);
  for (int64_t limit = qn_min_i64(SHARED, room); !best_per; limit = room) {
    for (int w = 0; w < 7 && !best_per; w++) {              /* parts of rows only if none can be whole */
      tile[2] = w ? (int64_t)(p->columns * 2) * a[2].apart << w : a[2].out;
      if (w && tile[2] >= a[2].out) break;
      for (int h = 0; h < 6; h++) {
        tile[1] = h ? (int64_t)2 * a[1].apart << h : a[1].out;
        if (h && tile[1] >= a[1].out) break;
        for (int d = 0; d < 5; d++) {
          tile[0] = d ? (int64_t)1 << (d - 1) : a[0].out;
          if (d && tile[0] >= a[0].out) break;
          const bool whole = !w && !h && !d;
          for (int64_t most = unit; most <= 256 && (most == unit || (most < 2 * (int64_t)p->y.channels && (last || whole))); most *= 2) {
            const int64_t per = planes_per(&p->y, most, unit), need = lay(p, per, tile, bytes);
            if (!need || need > limit) break;
            const double strips = (double)per * p->by_plane.by, blocks = (double)images * p->groups * p->tiles;
            const double rounds = (double)qn_ceil_div((int64_t)strips, THREADS) * THREADS;
            double cost = blocks / (double)units + 0.5;
            if (cost < 1) cost = 1;
            /* segments of pixels shorter than a sector are loaded in vain */
            const double vain = p->x.last && per * bytes < 32 ? 32.0 / (double)(per * bytes) : 1;
            cost *= p->x.room * vain + 2 * rounds * p->rows * p->columns + 1000;
            if (least > 0 && cost >= least) continue;
            least = cost, best_per = per;
            memcpy(best, tile, sizeof best);
          }
        }
      }
    }
    if (limit == room) break;
  }
  return best_per ? lay(p, best_per, best, bytes) : 0;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (status) return status;
  if (c.groups != c.channels || c.groups == 1)
    return qn_refuse(out, "each channel a group", "x", "as many groups as channels, two or more", "%lld", (long long)c.groups);
  depthwise p = {};
  cuda_chain chain, alone;
  const bool data = c.mode == CUDA_CONV_DATA;
  const qn_value *in = data ? c.y : c.x, *to = data ? c.x : c.y;
  if ((status = cuda_chain_begin_conv(&chain, r, data ? c.x_at : c.y_at, c.bias_at, out))) return status;
  alone = chain;
  const int rank = to->rank;
  const cuda_out_dims dims = { { rank - 1, 1, 0, rank > 3 ? rank - 2 : -1 }, CUDA_BY_DIMS };
  cuda_chain_follow(&chain, r, &dims);
  if (!planes_describe(&p.y, &r->value[chain.out], false)) chain = alone;
  to = &r->value[chain.out];
  bool together = qn_is_packed(in) && qn_is_packed(to);     /* all planes of all images as those of one */
  if (!planes_describe(&p.x, in, together))
    return qn_refuse(out, "packed planes, or packed channels last", cuda_conv_name(&c, in), "nchw or nhwc", "%s", "other strides");
  if (!planes_describe(&p.y, to, together))
    return qn_refuse(out, "packed planes, or packed channels last", "y", "nchw or nhwc", "%s", "other strides");
  p.out_dtype = to->dtype;
  p.many = (int32_t)to->dim[1];
  p.filters = (int32_t)c.filters;
  p.shared = data ? 1 : (int32_t)(c.filters / c.channels), p.of_x = data ? (int32_t)(c.filters / c.channels) : 1;
  if (p.shared > 1 && p.x.last) p.x.vector = 1;
  for (int d = 0; d < 3; d++)
    if (!axis_of(&p.axis[d], &c, d))
      return qn_refuse(out, "strides of backward data", "stride", "at most 8", "%lld", (long long)c.stride[d == 0 ? 2 : d - 1]);
  p.size[0] = (int32_t)c.size[2], p.size[1] = (int32_t)c.size[0];
  p.w_stride[0] = c.w->stride[0], p.w_stride[1] = c.w_stride[2], p.w_stride[2] = c.w_stride[0], p.w_stride[3] = c.w_stride[1];
  p.steps = chain.steps;
  p.plain = cuda_chain_column_relu(&chain, &p.column, &p.factor, &p.relu) && to->dtype == in->dtype;
  if (!p.plain) p.column = p.factor = -1;

  /* As many taps at once as leave the fewest filled up. */
  const axis &H = p.axis[1], &W = p.axis[2];
  int taps = 1;
  for (int k = 0; k < W.apart; k++) taps = W.taps[k] > taps ? W.taps[k] : taps;
  const kernel *found = find(in->dtype, taps, W.gap == 1 && H.gap == 1 && W.mul <= 2 ? W.mul : 0, H.out == 1);
  p.rows = found->rows, p.columns = found->columns;
  p.chunks = (int32_t)qn_ceil_div(taps, found->taps);
  p.pitch = found->taps == 1 ? 1 : (int32_t)qn_round_up(found->taps, 4);
  p.pieces = p.chunks * W.apart;
  p.by_pieces = cuda_divide_by(p.pieces), p.by_filter = cuda_divide_by((int64_t)p.size[0] * p.size[1]);
  const int bytes = (int)qn_kit_bytes(in->dtype);
  const int64_t images = together ? 1 : to->dim[0], shared = divide(&p, bytes, images, r->device->units, cuda_room(r));
  if (!shared)
    return qn_refuse(out, "a window's inputs in shared memory", "w", "48 KB or, not under portable determinism, what the device has",
                     "%lldx%lld", (long long)c.size[0], (long long)c.size[1]);
  const double blocks = (double)images * p.groups * p.tiles;
  if (blocks > INT32_MAX) return qn_refuse(out, "a grid of blocks", "y", "fewer elements", "%s", "more");

  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, found->function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)blocks;
  k->threads = THREADS, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, data ? c.y_at : c.x_at, offsetof(depthwise, x.p));
  cuda_conv_kernel_pointer(k, c.w_at, offsetof(depthwise, w));
  cuda_conv_kernel_steps(k, out, &chain, offsetof(depthwise, steps), offsetof(depthwise, y.p));
  const double outputs = (double)qn_elements(to), products = (double)p.chunks * found->taps * (data ? p.of_x : 1) * p.size[0] * p.size[1];
  const double moved = (double)(qn_elements(in) * bytes + qn_elements(to) * (int64_t)qn_kit_bytes(to->dtype)) / (p.x.last ? 1000 : 2300);
  const double each = 12 + products / (data ? H.apart * p.axis[0].apart : 1) * (found->stride == 0 ? 4 : 1.6);
  /* as measured of planes of one row: few blocks, of which each reads its elements one by one */
  const double in_row = H.out > 1 ? 1 : bytes == 2 ? 2.5 : 1.6, added = in_row * outputs * each / (r->device->units * 128);
  out->estimate = 4000 + (moved > added ? moved : added);
  return QN_OK;
}

#define ROW(op, pattern) { "depthwise_planes", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                        nullptr, pattern, prepare, cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_CONV_FORWARD, &cuda_chain_pattern), ROW(QN_OP_CONV_BACKWARD_DATA, nullptr) };
CUDA_ENGINES(conv_depthwise_planes) = { row, sizeof row / sizeof *row };
