/* conv_depthwise_planes_filter.cu -- gradient by the filter of depthwise convolution on planes (conv_depthwise_planes.cuh), one to
 * three spatial dims, both layouts, any window, several filters a channel.
 *
 *   dw[c, k] = sum over images n and outputs o of dy[n, c, o] x[n, c, o stride - pad + k dilation]
 *
 * A block has some channels and walks over boxes of dy and x of a share of the images; small planes of several images are one box. The
 * window is divided into pieces of ROWS_OF_TAPS rows of TAPS taps: a thread has a piece of one channel in registers and, of each box,
 * every lanes-th strip of ROWS x COLUMNS outputs; each row of x is loaded once for all rows of the strip. STRIDE 0: any stride and
 * dilation, pieces of one row. The lanes' sums are added by a fixed tree; each share leaves a partial sum in workspace, and these are added in order; where there is one, it is dw.
 *
 * Missing elements of x and dy count as 0 in this. A sum that is not finite is therefore added again, of what exists. */
#include "conv_depthwise_planes.cuh"
#include "engines.h"

enum { THREADS = 256, SHARED = 56 << 10 };

struct depthwise {
  planes   x, dy;
  void    *parts;                         /* [part][filter][depth][row][column]; of dtype f32, or one of dw's */
  uint32_t dtype;
  axis     axis[3];                       /* depth, rows, columns: of a forward convolution */
  int32_t  size[3];                       /* of the window */
  int32_t  per, shared;                   /* filters of a block; filters that share a channel of x */
  int32_t  images, group;                 /* all; of a box, 1 unless it has whole planes */
  int32_t  boxes;                         /* of all images */
  int32_t  lane_bits, lanes;              /* threads that share sums, a power of 2 */
  int32_t  pieces, pieces_h, pieces_w;    /* of a window: of a block; in a column; in a row */
  int32_t  strips, rows, columns;         /* of a box's plane of one image; of a strip */
  int32_t  dy_at;                         /* bytes, in shared memory behind x */
  cuda_divisor by_image, by_depth, by_row;
};

struct place { int n, first[3]; };        /* n: the first image */
__device__ __forceinline__ place place_of(const depthwise &p, int i)
{
  const int rest = i / p.axis[2].tiles, more = rest / p.axis[1].tiles, n = more / p.axis[0].tiles;
  return { n * p.group, { (more - n * p.axis[0].tiles) * p.axis[0].tile, (rest - more * p.axis[1].tiles) * p.axis[1].tile,
                (i - rest * p.axis[2].tiles) * p.axis[2].tile } };
}

__device__ __forceinline__ int64_t element_at(const planes &t, int n, int c, int d, int h, int w)
{
  const int64_t pixel = ((int64_t)d * t.dim[1] + h) * t.dim[2] + w, size = (int64_t)t.dim[0] * t.dim[1] * t.dim[2];
  return t.last ? (n * size + pixel) * t.channels + c : ((int64_t)n * t.channels + c) * size + pixel;
}

/* The block's share of the gradient by tap (a, r, s) of filter c, added of what exists. */
template <int dtype> static __device__ __noinline__ float sum_again(const depthwise &p, int c, int a, int r, int s)
{
  typedef typename plane_element<dtype>::type element;
  const axis &A = p.axis[0], &H = p.axis[1], &W = p.axis[2];
  float sum = 0;
  for (int i = blockIdx.x; i < p.boxes; i += gridDim.x) {
    const place at = place_of(p, i);
    for (int n = at.n; n < min(at.n + p.group, p.images); n++)
      for (int d = at.first[0]; d < min(at.first[0] + A.tile, A.out); d++)
        for (int h = at.first[1]; h < min(at.first[1] + H.tile, H.out); h++)
          for (int w = at.first[2]; w < min(at.first[2] + W.tile, W.out); w++) {
            const int z = d * A.mul + A.low + a * A.gap, y = h * H.mul + H.low + r * H.gap, x = w * W.mul + W.low + s * W.gap;
            if ((uint32_t)z >= (uint32_t)A.in || (uint32_t)y >= (uint32_t)H.in || (uint32_t)x >= (uint32_t)W.in) continue;
            sum = fmaf(plane_float<dtype>(((const element *)p.dy.p)[element_at(p.dy, n, c, d, h, w)]),
                       plane_float<dtype>(((const element *)p.x.p)[element_at(p.x, n, c / p.shared, z, y, x)]), sum);
          }
  }
  return sum;
}

__device__ __forceinline__ void put(const depthwise &p, int64_t at, float v)
{
  if (p.dtype == QN_F32) ((float *)p.parts)[at] = v;
  else ((uint16_t *)p.parts)[at] = (uint16_t)(p.dtype == QN_BF16 ? pack_bf16(v, 0) : pack_f16(v, 0));
}

/* Blocks that a multiprocessor holds, by registers. */
template <int ROWS_OF_TAPS, int TAPS, int STRIDE> constexpr int blocks_of = ROWS_OF_TAPS * TAPS <= 9 && STRIDE <= 1 ? 3 : 2;

template <int dtype, int ROWS, int COLUMNS, int ROWS_OF_TAPS, int TAPS, int STRIDE>
__global__ void __launch_bounds__(THREADS, blocks_of<ROWS_OF_TAPS, TAPS, STRIDE>)
    depthwise_planes_filter(const __grid_constant__ depthwise p)
{
  static_assert(sizeof(depthwise) <= CUDA_CONV_PARAMETERS, "room for them in the state");
  constexpr int WIDE = STRIDE == 0 ? COLUMNS : (COLUMNS - 1) * STRIDE + TAPS, HIGH = (ROWS - 1) * STRIDE + ROWS_OF_TAPS;
  typedef typename plane_element<dtype>::type element;
  extern __shared__ uint4 shared[];
  __shared__ float sums[THREADS / 32][ROWS_OF_TAPS * TAPS];
  element *const x = (element *)((char *)shared + MARGIN), *const dy = (element *)((char *)shared + p.dy_at);
  const axis &A = p.axis[0], &H = p.axis[1], &W = p.axis[2];
  box of_dy, of_x;
  of_dy.plane = blockIdx.y * p.per;
  of_dy.count = min(p.per, p.dy.channels - of_dy.plane);
  of_x.plane = of_dy.plane / p.shared;
  of_x.count = (of_dy.plane + of_dy.count - 1) / p.shared - of_x.plane + 1;

  const int lane = threadIdx.x & (p.lanes - 1), rest = threadIdx.x >> p.lane_bits, k = rest / p.pieces,
            piece = blockIdx.z * p.pieces + rest - k * p.pieces, kx = (of_dy.plane + k) / p.shared - of_x.plane;
  const int row_of_pieces = piece / p.pieces_w, a = row_of_pieces / p.pieces_h, r0 = (row_of_pieces - a * p.pieces_h) * ROWS_OF_TAPS,
            s0 = (piece - row_of_pieces * p.pieces_w) * TAPS;
  const bool works = k < of_dy.count && a < p.size[0];
  float sum[ROWS_OF_TAPS][TAPS] = {};
  for (int i = blockIdx.x; i < p.boxes; i += gridDim.x) {
    const place at = place_of(p, i);
    const int images = min(p.group, p.images - at.n);
    const auto image = [&](int g) {
      of_dy.n = of_x.n = at.n + g;
      box_place(of_dy, p.dy), box_place(of_x, p.x);
    };
#pragma unroll
    for (int d = 0; d < 3; d++) {
      of_dy.first[d] = at.first[d], of_dy.end[d] = min(p.axis[d].out, at.first[d] + p.axis[d].tile);
      p.axis[d].range(of_dy.first[d], of_dy.end[d], of_x.first[d], of_x.end[d]);
    }
    if (p.group > 1) {                    /* small planes: an image each warp */
#pragma unroll 1
      for (int g = threadIdx.x / 32; g < images; g += THREADS / 32) {
        image(g);
        box_load<element, 32, 4>(p.dy, of_dy, dy + g * p.dy.room);
        box_load<element, 32, 4>(p.x, of_x, x + g * p.x.room);
      }
    } else {
      image(0);
      box_load<element, THREADS, 4>(p.dy, of_dy, dy);
      box_load<element, THREADS, 4>(p.x, of_x, x);
    }
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    for (int strip = works ? lane : images * p.strips; strip < images * p.strips; strip += p.lanes) {
      uint32_t of_image, row, column;
      const int g = cuda_quotient(strip, p.by_image, &of_image);
      if (p.group > 1) image(g);
      const int d = of_dy.first[0] + cuda_quotient(of_image, p.by_depth, &row),
                h0 = of_dy.first[1] + cuda_quotient(row, p.by_row, &column) * ROWS, w0 = of_dy.first[2] + column * COLUMNS,
                z = d * A.mul + A.low + a * A.gap;
      if (d >= of_dy.end[0] || h0 >= of_dy.end[1] || w0 >= of_dy.end[2] || !of_x.has(0, z)) continue;
      const int high = of_dy.end[1] - h0, left = w0 * W.mul + W.low + s0 * W.gap, top = h0 * H.mul + H.low + r0 * H.gap;
      float v_dy[ROWS][COLUMNS];
      plane_columns<dtype, COLUMNS, 1> of_g;
      of_g.find(of_dy, w0, 1);
#pragma unroll
      for (int t = 0; t < ROWS; t++) {
        of_g.load(v_dy[t], dy + g * p.dy.room + of_dy.at(p.dy, k, d, h0 + min(t, high - 1), w0));
#pragma unroll
        for (int q = 0; q < COLUMNS; q++) v_dy[t][q] = t < high ? v_dy[t][q] : 0.f;
      }
      plane_columns<dtype, WIDE, STRIDE> columns;
      float v[WIDE];
#pragma unroll
      for (int s = 0; s < (STRIDE == 0 ? TAPS : 1); s++) {
        if (!columns.find(of_x, left + s * W.gap, W.mul)) continue;
        const element *line = x + g * p.x.room + of_x.at(p.x, kx, z, top, columns.begin(of_x, left + s * W.gap));
        if constexpr (STRIDE == 0) {
#pragma unroll
          for (int t = 0; t < ROWS; t++) {
            if (t >= high || !of_x.has(1, top + t * H.mul)) continue;
            columns.load(v, line + t * H.mul * p.x.pitch[2]);
#pragma unroll
            for (int q = 0; q < COLUMNS; q++) sum[0][s] = fmaf(v_dy[t][q], v[q], sum[0][s]);
          }
        } else {
#pragma unroll
          for (int i = 0; i < HIGH; i++, line += p.x.pitch[2]) {
            if (!of_x.has(1, top + i)) continue;
            columns.load(v, line);
#pragma unroll
            for (int t = 0; t < ROWS; t++) {
              const int r = i - t * STRIDE;
              if (r < 0 || r >= ROWS_OF_TAPS) continue;
#pragma unroll
              for (int q = 0; q < COLUMNS; q++)
#pragma unroll
                for (int e = 0; e < TAPS; e++) sum[r][e] = fmaf(v_dy[t][q], v[q * STRIDE + e], sum[r][e]);
            }
          }
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < ROWS_OF_TAPS; r++)
#pragma unroll
    for (int s = 0; s < TAPS; s++)
#pragma unroll
      for (int o = 16; o; o >>= 1) {
        const float other = __shfl_xor_sync(~0u, sum[r][s], o);
        if (o < p.lanes) sum[r][s] += other;
      }
  if (p.lanes > 32) {
    if (threadIdx.x % 32 == 0)
#pragma unroll
      for (int e = 0; e < ROWS_OF_TAPS * TAPS; e++) sums[threadIdx.x / 32][e] = sum[e / TAPS][e % TAPS];
    __syncthreads();
    if (lane == 0)
      for (int w = 1; w < p.lanes / 32; w++)
#pragma unroll
        for (int e = 0; e < ROWS_OF_TAPS * TAPS; e++) sum[e / TAPS][e % TAPS] += sums[threadIdx.x / 32 + w][e];
  }
  if (lane || !works) return;
  const int c = of_dy.plane + k;
  const int64_t to = (((int64_t)blockIdx.x * p.dy.channels + c) * p.size[0] + a) * p.size[1] * p.size[2];
  uint32_t bad = 0;
#pragma unroll
  for (int r = 0; r < ROWS_OF_TAPS; r++)
#pragma unroll
    for (int s = 0; s < TAPS; s++) {
      if (r0 + r >= p.size[1] || s0 + s >= p.size[2]) continue;
      put(p, to + (r0 + r) * p.size[2] + s0 + s, sum[r][s]);
      bad |= (uint32_t)!isfinite(sum[r][s]) << (r * TAPS + s);
    }
  for (; bad; bad &= bad - 1) {
    const int i = __ffs(bad) - 1, r = r0 + i / TAPS, s = s0 + i % TAPS;
    put(p, to + r * p.size[2] + s, sum_again<dtype>(p, c, a, r, s));
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

/* stride 0: any; blocks: resident ones */
struct kernel { const void *function; uint32_t dtype; int32_t rows, columns, rows_of_taps, taps, stride, blocks; };
#define KERNEL(dtype, ROWS, COLUMNS, RT, TAPS, STRIDE) \
  { (const void *)depthwise_planes_filter<dtype, ROWS, COLUMNS, RT, TAPS, STRIDE>, dtype, ROWS, COLUMNS, RT, TAPS, STRIDE, \
    blocks_of<RT, TAPS, STRIDE> },
#define KERNELS(dtype) \
  KERNEL(dtype, 4, 7, 1, 3, 0) KERNEL(dtype, 4, 7, 3, 3, 1) KERNEL(dtype, 4, 7, 5, 5, 1) KERNEL(dtype, 4, 7, 4, 7, 1) \
  KERNEL(dtype, 4, 7, 4, 8, 1) KERNEL(dtype, 4, 7, 3, 3, 2) KERNEL(dtype, 4, 7, 3, 5, 2) \
  KERNEL(dtype, 1, 14, 1, 3, 0) KERNEL(dtype, 1, 14, 1, 4, 1) KERNEL(dtype, 1, 14, 1, 8, 1)
static const kernel kernels[] = { KERNELS(QN_BF16) KERNELS(QN_F16) KERNELS(QN_F32) };

/* The kernel that multiplies the least in vain; a piece costs loads besides. one_row: of planes of one row. */
static const kernel *find(uint32_t dtype, int64_t high, int64_t wide, int stride, bool one_row)
{
  const kernel *found = nullptr;
  int64_t least = 0;
  for (const kernel &k : kernels) {
    const int64_t pieces = qn_ceil_div(high, k.rows_of_taps) * qn_ceil_div(wide, k.taps),
                  cost = pieces * (k.rows_of_taps + 1) * (k.taps + 2) * (one_row && k.rows > 1 ? 2 : 1);
    if (k.dtype == dtype && k.stride == stride && (one_row || k.rows > 1) && (!found || cost < least)) found = &k, least = cost;
  }
  return found;
}

/* Bytes of shared memory with `per` filters and tiles of these extents, whole planes of `group` images; 0: too many. */
static int64_t lay(depthwise *p, int64_t per, const int64_t tile[3], int64_t group, int bytes)
{
  int64_t extent[3];
  int whole = 0;
  for (int d = 2; d >= 0; d--) {
    axis *a = &p->axis[d];
    a->tile = (int32_t)tile[d], a->tiles = (int32_t)qn_ceil_div(a->out, tile[d]);
    if (a->tiles == 1 && whole == 2 - d) whole++;
    extent[d] = a->tiles == 1 ? a->in : axis_reach(a, tile[d]);
  }
  if (!planes_lay(&p->x, p->shared > 1 ? (per - 1) / p->shared + 2 : per, extent, whole) || !planes_lay(&p->dy, per, tile, whole)) return 0;
  const int64_t across = qn_ceil_div(tile[2], p->columns), down = across * qn_ceil_div(tile[1], p->rows);
  p->strips = (int32_t)(down * tile[0]);
  p->by_row = cuda_divide_by(across), p->by_depth = cuda_divide_by(down), p->by_image = cuda_divide_by(p->strips);
  p->per = (int32_t)per, p->group = (int32_t)group;
  p->boxes = (int32_t)(qn_ceil_div(p->images, group) * p->axis[0].tiles * p->axis[1].tiles * p->axis[2].tiles);
  p->dy_at = (int32_t)qn_round_up(p->x.room * group * bytes + 2 * MARGIN, 16);
  return p->dy_at + p->dy.room * group * bytes + MARGIN;
}

/* Chooses a block's filters, pieces, lanes and tile within SHARED, else within `room`, and the shares: the least time on `resident`
 * blocks, of which one loads, multiplies, and leaves sums of `taps` taps a thread. */
static int64_t divide(depthwise *p, int bytes, int64_t room, int64_t resident, int taps, int64_t *shares)
{
  const int64_t all = (int64_t)p->size[0] * p->pieces_h * p->pieces_w,
                elements = (int64_t)p->dy.channels * p->size[0] * p->size[1] * p->size[2];
  int64_t tile[3], best[3] = {}, best_per = 0, best_group = 1;
  int best_bits = 0, best_pieces = 0;
  double least = 0;
  const axis *a = p->axis;
  const int64_t unit = qn_max_i64(p->x.last ? p->x.vector : 1, p->dy.last ? p->dy.vector : 1);
  for (int64_t limit = qn_min_i64(SHARED, room); !best_per; limit = room) {
    for (int w = 0; w < 7 && !best_per; w++) {              /* parts of rows only if none can be whole */
      tile[2] = w ? (int64_t)(p->columns * 2) << w : a[2].out;
      if (w && tile[2] >= a[2].out) break;
      for (int h = 0; h < 6; h++) {
        tile[1] = h ? (int64_t)p->rows << h >> 1 : a[1].out;
        if (h && tile[1] >= a[1].out) break;
        for (int d = 0; d < 5; d++) {
          tile[0] = d ? (int64_t)1 << (d - 1) : a[0].out;
          if (d && tile[0] >= a[0].out) break;
          for (int bits = 0; bits <= 8; bits++) {
            const int64_t groups = THREADS >> bits, pieces = qn_min_i64(all, groups / unit);
            if (!pieces) break;
            for (int64_t most = groups / pieces; most >= unit && most * 8 > groups / pieces; most /= 2) {
              const int64_t per = planes_per(&p->dy, most, unit);
              for (int64_t group = 1; group == 1 || (group < 2 * p->images && !(w | h | d)); group *= 2) {
                const int64_t need = lay(p, per, tile, qn_max_i64(1, qn_min_i64(group, p->images)), bytes);
                if (!need || need > limit) break;
                const int64_t blocks = qn_ceil_div(p->dy.channels, per) * qn_ceil_div(all, pieces);
                const double vain = p->x.last && per * bytes < 32 ? 32.0 / (double)(per * bytes) : 1;
                const double outputs = (double)qn_ceil_div(p->strips * p->group, 1 << bits) * THREADS * p->rows * p->columns;
                const double once = (p->x.room + p->dy.room) * p->group * vain + outputs * (2 + taps / 8.0) + 2000;
                for (int64_t part = cuda_conv_shares(p->boxes, resident / blocks), now; ; part = now) {
                  const double rounds = (double)qn_ceil_div(blocks * part, resident);
                  const double cost = rounds * ((double)qn_ceil_div(p->boxes, part) * once + 100 * taps + 3000) +
                                      4.0 * (double)(elements * part) / (double)resident + (part > 1 ? 4000 : 0);
                  if (least == 0 || cost < least) {
                    least = cost, best_per = per, best_group = p->group, best_bits = bits, best_pieces = (int)pieces, *shares = part;
                    memcpy(best, tile, sizeof best);
                  }
                  now = cuda_conv_shares(p->boxes, part / 2);
                  if (part == 1 || now >= part) break;
                }
              }
            }
          }
        }
      }
    }
    if (limit == room) break;
  }
  if (!best_per) return 0;
  p->lane_bits = best_bits, p->lanes = 1 << best_bits, p->pieces = best_pieces;
  return lay(p, best_per, best, best_group, bytes);
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  qn_status status = cuda_conv_problem_read_volume(&c, r, out);
  if (status) return status;
  if (c.groups != c.channels || c.groups == 1)
    return qn_refuse(out, "each channel a group", "x", "as many groups as channels, two or more", "%lld", (long long)c.groups);
  if (!qn_is_packed(c.w)) return qn_refuse(out, "packed filters", "dw", "", "%s", "other strides");
  depthwise p = {};
  if (!planes_describe(&p.x, c.x, false) || !planes_describe(&p.dy, c.y, false))
    return qn_refuse(out, "packed planes, or packed channels last", "x", "nchw or nhwc", "%s", "other strides");
  for (int d = 0; d < 3; d++) {
    axis_of(&p.axis[d], &c, d);           /* one class */
    p.size[d] = (int32_t)c.size[d == 0 ? 2 : d - 1];
  }
  p.images = (int32_t)c.x->dim[0];
  p.shared = (int32_t)(c.filters / c.channels);
  if (p.shared > 1 && p.x.last) p.x.vector = 1;
  const axis &H = p.axis[1], &W = p.axis[2];
  const bool tight = (W.gap == 1 || p.size[2] == 1) && (H.gap == 1 || p.size[1] == 1) && W.mul <= 2 && (H.mul == W.mul || H.out == 1);
  const kernel *found = find(c.x->dtype, p.size[1], p.size[2], tight ? W.mul : 0, H.out == 1);
  p.rows = found->rows, p.columns = found->columns;
  p.pieces_h = (int32_t)qn_ceil_div(p.size[1], found->rows_of_taps), p.pieces_w = (int32_t)qn_ceil_div(p.size[2], found->taps);
  const int bytes = (int)qn_kit_bytes(c.x->dtype);
  const int64_t resident = (int64_t)r->device->units * found->blocks;
  int64_t shares = 1;
  const int64_t shared = divide(&p, bytes, cuda_room(r), resident, found->rows_of_taps * found->taps, &shares),
                slabs = shared ? qn_ceil_div(c.filters, p.per) : 0;
  if (!shared)
    return qn_refuse(out, "a window's inputs in shared memory", "dw", "48 KB or, not under portable determinism, what the device has",
                     "%lldx%lld", (long long)c.size[0], (long long)c.size[1]);
  const int64_t all = (int64_t)p.size[0] * p.pieces_h * p.pieces_w, sheets = qn_ceil_div(all, p.pieces), elements = qn_elements(c.w);
  if (slabs > 65535 || sheets > 65535) return qn_refuse(out, "a grid of blocks", "x", "fewer channels", "%lld", (long long)c.channels);
  const int64_t parts = cuda_conv_shares_of_sum(r, out, p.boxes, shares, elements);
  if (parts < 1) return QN_UNSUPPORTED;

  p.dtype = parts == 1 && (c.w->dtype == QN_F16 || c.w->dtype == QN_BF16) ? c.w->dtype : (uint32_t)QN_F32;
  cuda_conv_kernel *k = cuda_conv_kernel_begin(out, found->function, &p, sizeof p);
  if (!k) return QN_NO_MEMORY;
  k->grid[0] = (uint32_t)parts, k->grid[1] = (uint32_t)slabs, k->grid[2] = (uint32_t)sheets;
  k->threads = THREADS, k->shared = (uint32_t)shared;
  cuda_conv_kernel_pointer(k, c.x_at, offsetof(depthwise, x.p));
  cuda_conv_kernel_pointer(k, c.y_at, offsetof(depthwise, dy.p));
  if (p.dtype == QN_F32 && (parts > 1 || c.w->dtype != QN_F32)) cuda_conv_kernel_parts(k, out, &c, parts, elements, offsetof(depthwise, parts));
  else cuda_conv_kernel_pointer(k, c.w_at, offsetof(depthwise, parts));
  const double moved = (double)(qn_elements(c.x) + qn_elements(c.y)) * bytes * (double)sheets / (p.x.last ? 900 : 2000);
  const double products = (double)qn_elements(c.y) * (double)all * found->rows_of_taps * found->taps;
  const double added = products * (tight ? 2 : 6) / (r->device->units * 128);
  out->estimate = 7000 + (moved > added ? moved : added);
  return QN_OK;
}

static const qn_engine row[] = {
  { "depthwise_planes", QN_OP_CONV_BACKWARD_FILTER, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC, nullptr, nullptr, prepare,
    cuda_conv_kernel_build, cuda_conv_kernel_run, cuda_release },
};
CUDA_ENGINES(conv_depthwise_planes_filter) = { row, sizeof row / sizeof *row };
