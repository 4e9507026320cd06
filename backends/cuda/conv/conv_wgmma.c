/* conv_wgmma.c -- convolution and its gradients as implicit products on sm_90 Tensor Cores (wgmma), channels last, f16 and bf16.
 *
 *   forward          y[(n,p), k]  = sum over taps r and channels c of x[n, p stride + r dilation - pad, c] w[k, r, c]
 *   backward data    dx[(n,x), c] = sum over taps r and filters k of dy[n, (x + pad - r dilation) / stride, k] w[k, r, c],
 *                                   for each residue of x modulo the stride, with the taps that divide evenly
 *   backward filter  dw[k, r, c]  = sum over pixels (n,p) of dy[(n,p), k] x[n, p stride + r dilation - pad, c]
 *
 * TMA gathers the windows (im2col maps); the main loop is conv_wgmma.cuh. A gradient by the filter has few tiles and many pixels:
 * partial sums over pixels go to workspace and are added in order. So with few pixels and many channels, where the last to come of a
 * tile's parts adds them and finishes it. Fastest with 64 channels or more. One to three spatial dims,
 * one group, channels in multiples of 8. */
#include <stdlib.h>
#include "program/chain.h"
#include "conv_layout.h"
#include "conv_wgmma.h"
#include "matmul/matmul_wgmma_room.h"
#include "engines.h"

/* ---- variants --------------------------------------------------------------------------------- */

#define NAME(bm, bn, splits, step, tile) #bm "x" #bn "_k" #splits,
static const char *const names[3][16] = { { CUDA_CONV_FORWARD_TILES(NAME) },
                                          { CUDA_CONV_DATA_TILES(NAME) },
                                          { CUDA_CONV_FILTER_TILES(NAME) } };
#undef NAME
typedef struct figures { double step, tile; } figures;      /* ns */
#define MEASURED(bm, bn, splits, step, tile) { step, tile },
static const figures measured[3][16] = { { CUDA_CONV_FORWARD_TILES(MEASURED) },
                                         { CUDA_CONV_DATA_TILES(MEASURED) },
                                         { CUDA_CONV_FILTER_TILES(MEASURED) } };
#undef MEASURED

/* ---- the problem ------------------------------------------------------------------------------ */

/* Spatial dims in TMA order: W, H, D; missing ones are 1; a map has at least H. */
typedef struct problem {
  int      mode;
  int32_t  gathered, other, written;      /* value numbers: x, w, y; dy, w, dx; x, dy, dw */
  uint32_t dtype;
  int64_t  images, channels, filters, taps;
  int      spatial;                       /* spatial dims of the maps: 2 or 3 */
  int64_t  x[3], y[3], window[3], stride[3], dilation[3], before[3], after[3];
  int64_t  pitch;                         /* from one pixel of y to the next: more than its channels in a slice */
} problem;

/* A TMA im2col map: C, W, H (D), N from element `offset` on, the box in which windows begin, and their steps. */
typedef struct pixel_map { int64_t dim[5], stride[4], offset; int32_t lower[3], upper[3], step[3]; } pixel_map;

/* Pixels that see the same taps; forward and filter have one such class, and no map of the output. */
typedef struct pixel_class {
  cuda_conv_grid grid;
  pixel_map      gathered, written;
  CUtensorMap    gathered_map, written_map;
} pixel_class;

typedef struct state {
  cuda_conv  conv;                        /* without classes and pointers */
  cuda_chain chain;
  const cuda_gemm_kernel *kernel;
  const cuda_driver *driver;
  problem    problem;
  int32_t    parts, n_classes;
  uint64_t   kept;                        /* bytes of workspace before those of partial sums of a tile */
  uint32_t   sum_dtype, out_dtype;        /* dtype that the product writes, and of the final output */
  int64_t    other_dim[4], other_stride[3];      /* the operand that is not gathered: columns, taps or pixels, filters, 1 */
  pixel_class class_[];
} state;

static bool eights(const qn_value *v)     /* channels contiguous, everything else in units of 16 bytes */
{
  bool ok = v->align >= 16 && v->dim[1] % 8 == 0 && v->stride[1] == 1;
  for (int d = 0; d < v->rank; d++)
    if (d != 1 && v->dim[d] > 1) ok = ok && v->stride[d] % 8 == 0;
  return ok;
}

/* Elements from a pixel to the next, channels last, where all pixels lie equally far apart; 0: they do not. */
static int64_t pixel_pitch(const qn_value *v)
{
  int64_t pitch = 0, pixels = 1;
  for (int i = v->rank - 1; i >= 1; i--) {
    const int d = i > 1 ? i : 0;          /* W, H, D, N */
    if (v->dim[d] == 1) continue;
    if (pixels == 1) pitch = v->stride[d];
    else if (v->stride[d] != pitch * pixels) return 0;
    pixels *= v->dim[d];
  }
  return pixels == 1 ? v->dim[1] : pitch;
}

static bool is_sum(uint32_t dtype) { return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16; }

static qn_status lies_otherwise(qn_prepared *out, const char *rule, const char *tensor, const qn_value *v)
{
  return qn_refuse(out, rule, tensor, "nhwc, channels a multiple of 8", "%lld channels, stride %lld", (long long)v->dim[1],
                   (long long)v->stride[1]);
}

static qn_status read_problem(const qn_request *r, problem *p, qn_prepared *out)
{
  static const struct { uint32_t op, x, w, y; } roles[3] = {
    [CUDA_CONV_FORWARD] = { QN_OP_CONV_FORWARD, QN_ROLE_CONV_FORWARD_X, QN_ROLE_CONV_FORWARD_W, QN_ROLE_CONV_FORWARD_Y },
    [CUDA_CONV_DATA] = { QN_OP_CONV_BACKWARD_DATA, QN_ROLE_CONV_BACKWARD_DATA_DX, QN_ROLE_CONV_BACKWARD_DATA_W,
                         QN_ROLE_CONV_BACKWARD_DATA_DY },
    [CUDA_CONV_FILTER] = { QN_OP_CONV_BACKWARD_FILTER, QN_ROLE_CONV_BACKWARD_FILTER_X, QN_ROLE_CONV_BACKWARD_FILTER_DW,
                           QN_ROLE_CONV_BACKWARD_FILTER_DY },
  };
  const qn_node *op = &r->op[0];
  const qn_conv *c = op->attr;
  while (roles[p->mode].op != op->op) p->mode++;
  int x = qn_role(op, roles[p->mode].x), w = qn_role(op, roles[p->mode].w), y = qn_role(op, roles[p->mode].y);
  const qn_value *xv = &r->value[x], *wv = &r->value[w], *yv = &r->value[y];
  p->gathered = p->mode == CUDA_CONV_DATA ? y : x;
  p->other = p->mode == CUDA_CONV_FILTER ? y : w;
  p->written = p->mode == CUDA_CONV_FORWARD ? y : p->mode == CUDA_CONV_DATA ? x : w;
  p->dtype = r->value[p->gathered].dtype;
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  if ((p->dtype != QN_F16 && p->dtype != QN_BF16) || r->value[p->other].dtype != p->dtype)
    return qn_refuse(out, "dtypes of what is multiplied", "x", "f16 or bf16, both alike", "%s", qn_kit_name(p->dtype));
  if (!is_sum(r->value[p->written].dtype))
    return qn_refuse(out, "dtype of what is written", "y", "f16, bf16 or f32", "%s", qn_kit_name(r->value[p->written].dtype));
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  if (!eights(xv)) return lies_otherwise(out, "channels last, in eights, aligned to 16 bytes", "x", xv);
  if (!eights(wv) || !qn_is_channels_last(wv)) return lies_otherwise(out, "packed filters, channels last, in eights", "w", wv);
  p->pitch = pixel_pitch(yv);
  if (!eights(yv) || (p->mode != CUDA_CONV_DATA && !p->pitch))
    return lies_otherwise(out, "channels last, in eights, pixels equally far apart", "y", yv);
  p->images = xv->dim[0], p->channels = wv->dim[1], p->filters = wv->dim[0];
  p->taps = 1;
  p->spatial = xv->rank == 5 ? 3 : 2;
  int64_t most = xv->rank == 5 ? 15 : 120;                  /* limits of TMA maps */
  for (int d = 0; d < 3; d++) {
    int from = xv->rank - 1 - d, at = from - 2;
    bool there = at >= 0;
    p->x[d] = there ? xv->dim[from] : 1;
    p->y[d] = there ? yv->dim[from] : 1;
    p->window[d] = there ? wv->dim[from] : 1;
    p->stride[d] = there ? c->stride[at] : 1;
    p->dilation[d] = there ? c->dilation[at] : 1;
    p->before[d] = there ? c->pad_before[at] : 0;
    p->after[d] = there ? c->pad_after[at] : 0;
    p->taps *= p->window[d];
    int64_t reach = (p->window[d] - 1) * p->dilation[d];
    if (reach > most || p->before[d] > most || p->after[d] > most)
      return qn_refuse(out, "windows and padding to 120 pixels, in three dims to 15", "w", "less", "%lld",
                       (long long)qn_max_i64(reach, p->before[d]));
    if (p->stride[d] > 8) return qn_refuse(out, "strides to 8", "x", "8 or less", "%lld", (long long)p->stride[d]);
  }
  double pixels = (double)p->images * (double)qn_max_i64(p->x[0] * p->x[1] * p->x[2], p->y[0] * p->y[1] * p->y[2]);
  if (pixels > 2e9) return qn_refuse(out, "fewer than 2^31 pixels", "x", "2e9", "%.0f", pixels);
  if (p->channels > 1 << 24 || p->filters > 1 << 24 || p->taps > 4096 || p->taps * p->channels > 1 << 30)
    return qn_refuse(out, "filters that 31 bits count", "w", "fewer", "%lld", (long long)p->channels);
  return QN_OK;
}

/* ---- which pixels, which taps -------------------------------------------------------------------- */

static void grid_size(cuda_conv_grid *g, const int64_t size[3], int64_t images)
{
  g->w = (int32_t)size[0];
  g->hw = (int32_t)(g->w * size[1]);
  g->dhw = (int32_t)(g->hw * size[2]);
  g->pixels = (int32_t)(g->dhw * images);
  if (g->pixels == 0) return;
  g->by_w = cuda_divide_by(g->w);
  g->by_hw = cuda_divide_by(g->hw);
  g->by_dhw = cuda_divide_by(g->dhw);
}

static void map_size(pixel_map *m, const qn_value *v, int spatial)
{
  m->dim[0] = v->dim[1];
  for (int d = 0; d <= spatial; d++) {
    int from = d < spatial ? v->rank - 1 - d : 0;
    bool there = d == spatial || from >= 2;
    m->dim[d + 1] = there ? v->dim[from] : 1;
    m->stride[d] = m->dim[d + 1] > 1 ? v->stride[from] : d ? m->stride[d - 1] * m->dim[d] : m->dim[0];
  }
  for (int d = 0; d < 3; d++) m->step[d] = 1;
}

/* Forward and filter: all of y. */
static void whole_class(pixel_class *k, const problem *p, const qn_value *x)
{
  cuda_conv_grid *g = &k->grid;
  pixel_map *m = &k->gathered;
  grid_size(g, p->y, p->images);
  map_size(m, x, p->spatial);
  int64_t weight = 1;
  for (int d = 0; d < 3; d++) {
    m->lower[d] = g->start[d] = (int32_t)-p->before[d];
    m->upper[d] = (int32_t)(p->after[d] - (p->window[d] - 1) * p->dilation[d]);
    m->step[d] = g->stride[d] = (int32_t)p->stride[d];
    g->step[d] = (int32_t)p->dilation[d];
    g->weight[d] = (int32_t)weight;
    weight *= p->window[d];
  }
  g->taps_w = (int32_t)p->window[0], g->taps_hw = (int32_t)(p->window[0] * p->window[1]), g->taps = (int32_t)p->taps;
}

/* Backward data: the pixels of dx with this residue, along one dim. Taps are numbered from the last on, so that offsets into dy rise. */
typedef struct residue { int64_t pixels, taps, last, period, start, step; } residue;
static residue residue_of(const problem *p, int d, int64_t at)
{
  int64_t stride = p->stride[d], dilation = p->dilation[d];
  residue k = { .pixels = at < p->x[d] ? qn_ceil_div(p->x[d] - at, stride) : 0, .period = 1 };
  while (k.period * dilation % stride) k.period++;
  k.step = k.period * dilation / stride;
  for (int64_t r = 0; r < p->window[d]; r++)
    if ((at + p->before[d] - r * dilation) % stride == 0) k.taps++, k.last = r;
  if (k.taps) k.start = (at + p->before[d] - k.last * dilation) / stride;
  return k;
}

static void residue_class(pixel_class *k, const problem *p, const qn_value *dy, const qn_value *dx, int64_t number)
{
  cuda_conv_grid *g = &k->grid;
  int64_t size[3], taps[3], weight = 1;
  map_size(&k->gathered, dy, p->spatial);
  map_size(&k->written, dx, p->spatial);
  for (int d = 0; d < 3; d++) {
    int64_t at = number % p->stride[d];
    number /= p->stride[d];
    residue q = residue_of(p, d, at);
    size[d] = q.pixels, taps[d] = q.taps;
    k->gathered.lower[d] = g->start[d] = (int32_t)q.start;
    k->gathered.upper[d] = (int32_t)(q.pixels + q.start - p->y[d]);
    g->stride[d] = 1;
    g->step[d] = (int32_t)q.step;
    g->weight[d] = (int32_t)(-q.period * weight);
    g->weight[3] += (int32_t)(q.last * weight);
    weight *= p->window[d];
    if (d == p->spatial) break;
    k->written.offset += at * k->written.stride[d];
    k->written.stride[d] *= p->stride[d];
    k->written.dim[1 + d] = q.pixels;
  }
  grid_size(g, size, p->images);
  g->taps_w = (int32_t)taps[0], g->taps_hw = (int32_t)(taps[0] * taps[1]), g->taps = (int32_t)(taps[0] * taps[1] * taps[2]);
}

static int most_taps_first(const void *a, const void *b)
{
  const cuda_conv_grid *g = &((const pixel_class *)a)->grid, *h = &((const pixel_class *)b)->grid;
  return g->taps != h->taps ? h->taps - g->taps : g->weight[3] - h->weight[3];
}

/* The bounds of an im2col map have 8 bits each, in three dims 5. */
static bool within_reach(const pixel_map *m, int spatial)
{
  int most = spatial == 2 ? 127 : 15;
  for (int d = 0; d < spatial; d++)
    if (m->lower[d] < -most - 1 || m->lower[d] > most || m->upper[d] < -most - 1 || m->upper[d] > most) return false;
  return true;
}

/* ---- which tile --------------------------------------------------------------------------------- */

enum { LAUNCH = 2500, JOIN = 1400, BANDWIDTH = 4300, JOIN_BANDWIDTH = 2500 };      /* ns; bytes per ns */

/* Nanoseconds of `tiles` tiles with `steps` k steps each; -1: split clusters that do not fit the device at once. */
static double cost(const figures *f, int64_t tiles, double steps, int splits, double bytes, int units)
{
  if (splits > 1 && tiles > units / splits) return -1;
  double work = (double)qn_ceil_div(tiles * splits, units) * (steps / splits * f->step + f->tile), memory = bytes / BANDWIDTH;
  return LAUNCH + (work > memory ? work + 0.1 * memory : memory + 0.1 * work);
}

/* Bytes of the tensors, without what no window reads. */
static double bytes_of(const problem *p)
{
  double x = (double)(p->images * p->channels), y = (double)(p->images * p->filters);
  for (int d = 0; d < 3; d++) {
    x *= (double)(p->mode == CUDA_CONV_DATA ? p->x[d] : qn_min_i64(p->x[d], p->y[d] * p->window[d]));
    y *= (double)p->y[d];
  }
  return 2 * (x + y + (double)(p->filters * p->taps * p->channels));
}

typedef struct product { int64_t m, n, steps, chunks, dw; } product;       /* steps: of all classes; dw: elements */
typedef struct choice { int kernel; int64_t parts; double ns; } choice;

/* Columns of a tile's partial sums that are kept. */
static int64_t kept_columns(const cuda_gemm_kernel *k, int64_t n) { return qn_min_i64(k->bn, qn_round_up(n, 8)); }

/* Bytes of them: of a gradient by the filter all of dw's; else of the tiles of one launch. */
static int64_t kept_bytes(const problem *p, const cuda_gemm_kernel *k, const product *g, int64_t classes, int64_t parts)
{
  if (parts == 1) return 0;
  if (p->mode == CUDA_CONV_FILTER) return parts * g->dw * 4;
  const int64_t tiles = qn_ceil_div(g->m, k->bm) * qn_ceil_div(g->n, k->bn) * qn_min_i64(classes, CUDA_CONV_CLASSES);
  return parts * tiles * k->bm * kept_columns(k, g->n) * 4;
}

/* Chooses the kernel and the number of partial sums. */
static qn_status choose(const qn_request *r, const problem *p, const cuda_gemm_kernel *kernels, const product *g, int64_t classes,
                        int slice, choice *best, qn_prepared *out)
{
  const double bytes = bytes_of(p), steps = (double)g->steps / (double)classes;
  *best = (choice){ -1, 1, 0 };
  for (int i = 0; kernels[i].bm; i++) {
    if (r->variant && strcmp(r->variant, names[p->mode][i])) continue;
    int splits = kernels[i].splits;
    if (slice && !r->variant && !cuda_gemm_room(&kernels[i], 1, slice)) continue;
    if (splits > 1 && (classes > 1 || steps < 2 * splits || kernels[i].bn / splits < 64)) continue;
    int64_t tiles = qn_ceil_div(g->m, kernels[i].bm) * qn_ceil_div(g->n, kernels[i].bn);
    const bool filter = p->mode == CUDA_CONV_FILTER,
               parts = filter ? splits == 1 : cuda_conv_in_parts(kernels[i].bm, kernels[i].bn, splits);
    for (int rounds = 0; rounds <= (parts ? 2 : 0); rounds++) {
      int64_t q = rounds == 0 ? 1 : qn_min_i64(rounds * (int64_t)r->device->units / (tiles * classes), (int64_t)steps / 8);
      if (q < 1 || (rounds && q == 1) || q > 1024) continue;
      const int64_t kept = kept_bytes(p, &kernels[i], g, classes, q);
      if ((uint64_t)kept > r->demands->workspace_limit || (!filter && (double)kept > bytes)) continue;
      double t = cost(&measured[p->mode][i], tiles * classes * q, steps / (double)q, splits, bytes, r->device->units);
      if (t < 0) continue;
      /* as measured: boxes of 64 channels that are not there; but for filters, if half of them are */
      const int64_t summed = p->mode == CUDA_CONV_DATA ? p->filters : p->channels;
      if (summed < (filter ? 64 : 32)) t *= !filter ? 1.8 : summed < 32 ? 2.1 : 1.6;
      const double read = (double)(q * kernels[i].bm * kept_columns(&kernels[i], g->n)) / 20;       /* by the last to come, as measured */
      if (q > 1) t += JOIN + (filter ? (double)kept / JOIN_BANDWIDTH : 2200 + read);
      if (best->kernel < 0 || t < best->ns) *best = (choice){ i, q, t };
    }
  }
  if (best->kernel < 0)
    return qn_refuse(out, "a variant that this problem can be split into", "", "fewer shares", "%s", r->variant ? r->variant : "");
  return QN_OK;
}

/* ---- prepare -------------------------------------------------------------------------------------- */

/* Columns of a slice of an added tensor that comes beside vectors, for which a tile must have room; 0: there is none. */
static int slice_beside(const cuda_chain *c, const qn_value *to)
{
  cuda_plain plain;
  const bool both = cuda_chain_plain(c, &plain) && plain.added >= 0 && (plain.bias >= 0 || plain.factor >= 0);
  return !both ? 0 : to->dtype == QN_F32 ? 32 : 64;
}

/* Pixels and taps of each class, those with most taps first. */
static qn_status make_classes(const qn_request *r, int64_t residues, state *st, product *g, qn_prepared *out)
{
  const problem *p = &st->problem;
  const qn_value *gathered = &r->value[p->gathered], *to = &r->value[st->chain.out];
  int64_t taps = 0, pixels = 0;
  for (int64_t i = 0; i < residues; i++) {
    pixel_class *k = &st->class_[st->n_classes];
    if (p->mode == CUDA_CONV_DATA) residue_class(k, p, gathered, to, i);
    else whole_class(k, p, gathered);
    if (k->grid.pixels == 0) {
      memset(k, 0, sizeof *k);
      continue;
    }
    if (k->grid.taps && !within_reach(&k->gathered, p->spatial))
      return qn_refuse(out, "windows that begin and end near the edge", "x", "within 127 pixels, in three dims 15", "%s", "further");
    pixels = qn_max_i64(pixels, k->grid.pixels);
    taps += k->grid.taps;
    st->n_classes++;
  }
  qsort(st->class_, (size_t)st->n_classes, sizeof *st->class_, most_taps_first);

  const bool filter = p->mode == CUDA_CONV_FILTER, data = p->mode == CUDA_CONV_DATA;
  g->chunks = qn_ceil_div(data ? p->filters : p->channels, 64);
  g->m = filter ? p->filters : pixels;
  g->n = filter ? p->taps * g->chunks * 64 : data ? p->channels : p->filters;
  g->steps = filter ? qn_ceil_div(p->images * p->y[0] * p->y[1] * p->y[2], 64) : taps * g->chunks;
  g->dw = p->filters * p->taps * p->channels;
  return QN_OK;
}

/* The operand that is not gathered: dy as [pixels][filters], or w as [filters][taps][channels]. */
static void describe_other(state *st)
{
  const problem *p = &st->problem;
  const int64_t pixels = p->images * p->y[0] * p->y[1] * p->y[2];
  const bool filter = p->mode == CUDA_CONV_FILTER;
  const int64_t dim[4] = { filter ? p->filters : p->channels, filter ? pixels : p->taps, filter ? 1 : p->filters, 1 };
  const int64_t pitch = filter ? p->pitch : dim[0], stride[3] = { pitch, pitch * dim[1], 0 };
  memcpy(st->other_dim, dim, sizeof dim);
  memcpy(st->other_stride, stride, sizeof stride);
}

/* Can TMA read the added tensor, which is packed, channels last? */
static bool added_fits(const problem *p, const qn_value *v, const qn_value *to)
{
  return p->mode == CUDA_CONV_FORWARD && v->dtype == to->dtype && v->align >= 16;
}

static void describe_product(const product *d, const qn_request *r, state *st)
{
  const qn_value *to = &r->value[st->chain.out];
  cuda_gemm *g = &st->conv.gemm;
  const int splits = st->kernel->splits, out_bytes = (int)qn_kit_bytes(st->sum_dtype);
  const bool filter = st->problem.mode == CUDA_CONV_FILTER;
  st->conv.eights = (int32_t)kept_columns(st->kernel, d->n) / 8;
  st->conv.chunks = (int32_t)d->chunks;
  st->conv.volume = st->problem.spatial == 3;
  g->m = (int32_t)d->m;
  g->n = (int32_t)d->n;
  g->k_steps = (int32_t)qn_ceil_div(filter ? d->steps : qn_max_i64(st->class_[0].grid.taps * d->chunks, 1), st->parts);
  g->split_steps = (int32_t)qn_ceil_div(g->k_steps, splits);
  g->tiles_m = (int32_t)qn_ceil_div(d->m, st->kernel->bm);
  g->tiles_n = (int32_t)qn_ceil_div(d->n, st->kernel->bn);
  g->batch0 = 1;
  g->batch1 = st->parts;
  g->group = 12;
  g->last_m = g->last_n = INT32_MAX;
  cuda_gemm_walk(g);
  g->out_dtype = st->sum_dtype;
  g->out_stride[0] = st->problem.mode == CUDA_CONV_FORWARD ? st->problem.pitch : d->n;
  g->out_stride[1] = 1;
  g->steps = st->chain.steps;
  const bool plain = cuda_chain_plain(&st->chain, &g->plain), vectors = g->plain.bias >= 0 || g->plain.factor >= 0;
  const int slice = slice_beside(&st->chain, to);
  g->store_map = plain && to->align >= 16 && d->n * out_bytes % 16 == 0 &&
                 (g->plain.added < 0 || added_fits(&st->problem, &r->value[st->chain.value[g->plain.added]], to)) &&
                 (!vectors || cuda_plain_vectors(&st->chain, &g->plain, r, g->n)) &&
                 (filter || st->parts == 1 || (!vectors && g->plain.added < 0)) &&         /* one of a tile's parts alone knows that it ends it */
                 (!slice || cuda_gemm_room(st->kernel, 1, slice));
  g->staged = vectors && g->store_map;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  problem p = { 0 };
  product g = { 0 };
  choice best;
  cuda_chain chain;
  qn_status status = read_problem(r, &p, out);
  if (status) return status;
  const int64_t residues = p.mode == CUDA_CONV_DATA ? p.stride[0] * p.stride[1] * p.stride[2] : 1;
  const int bias = p.mode == CUDA_CONV_FORWARD ? qn_role(&r->op[0], QN_ROLE_CONV_FORWARD_BIAS) : -1;
  if ((status = cuda_chain_begin_conv(&chain, r, p.written, bias, out))) return status;
  if (p.mode != CUDA_CONV_FILTER && residues == 1 && qn_is_channels_last(&r->value[p.written]))
    cuda_chain_follow(&chain, r, &(cuda_out_dims){ { -1, -1, -1, -1 }, CUDA_CHANNELS_LAST });
  const qn_value *to = &r->value[chain.out];
  if (chain.n_ops > 1 && !qn_is_channels_last(to)) {        /* a follower's output may have another layout: not fused then */
    qn_request alone = *r;
    alone.n_ops = 1;
    return prepare(&alone, out);
  }

  state *st = cuda_state(out, sizeof *st + (size_t)residues * sizeof *st->class_);
  if (!st) return QN_NO_MEMORY;
  st->chain = chain;
  st->problem = p;
  st->out_dtype = to->dtype;
  const cuda_gemm_kernel *kernels = (p.dtype == QN_BF16 ? cuda_conv_bf16 : cuda_conv_f16)[p.mode];
  status = make_classes(r, residues, st, &g, out);
  if (!status) status = choose(r, &p, kernels, &g, st->n_classes, slice_beside(&chain, to), &best, out);
  if (status) {
    cuda_release(out);
    return status;
  }
  st->kernel = &kernels[best.kernel];
  st->parts = (int32_t)best.parts;
  const bool joined = best.parts > 1 && p.mode == CUDA_CONV_FILTER;        /* by a kernel of its own */
  st->sum_dtype = joined ? (uint32_t)QN_F32 : to->dtype;
  describe_other(st);
  describe_product(&g, r, st);

  out->n_ops = chain.n_ops;
  out->variant = names[p.mode][best.kernel];
  st->kept = cuda_chain_bytes(&chain);
  out->workspace = (joined ? 0 : st->kept) + (uint64_t)kept_bytes(&p, st->kernel, &g, st->n_classes, best.parts);
  if (best.parts > 1 && !joined)
    out->counters = (uint64_t)st->conv.gemm.tiles_m * st->conv.gemm.tiles_n * CUDA_CONV_CLASSES * (st->kernel->bm / 64) * 4;
  out->estimate = best.ns;
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC };
  return QN_OK;
}

/* ---- build ------------------------------------------------------------------------------------------ */

static qn_status refused_map(CUresult e)
{
  return e == CUDA_SUCCESS ? QN_OK : cuda_host->error(QN_INTERNAL, "cuda: conv_wgmma: the driver refused a tensor map");
}

static CUtensorMapDataType map_type(uint32_t dtype)
{
  return dtype == QN_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
       : dtype == QN_F16  ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                          : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
}

/* Maps are encoded for a dummy aligned address; run replaces it. */
static qn_status tiled(const cuda_driver *driver, CUtensorMap *map, uint32_t dtype, const int64_t dim[4], const int64_t stride[3],
                       uint32_t box0, uint32_t box1, uint32_t box2)
{
  int esize = (int)qn_kit_bytes(dtype);
  cuuint64_t d[4] = { (cuuint64_t)dim[0], (cuuint64_t)dim[1], (cuuint64_t)dim[2], (cuuint64_t)dim[3] };
  cuuint64_t st[3] = { (cuuint64_t)(stride[0] * esize), (cuuint64_t)(stride[1] * esize),
                       (cuuint64_t)((dim[3] > 1 ? stride[2] : stride[1] * dim[2]) * esize) };
  cuuint32_t box[4] = { box0, box1, box2, 1 }, one[4] = { 1, 1, 1, 1 };
  return refused_map(driver->tensor_map_tiled(map, map_type(dtype), 4, (void *)0x10000, d, st, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                              CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                              CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static qn_status im2col(const cuda_driver *driver, CUtensorMap *map, uint32_t dtype, const pixel_map *m, int spatial, uint32_t pixels)
{
  int esize = (int)qn_kit_bytes(dtype);
  cuuint64_t d[5], st[4];
  cuuint32_t step[5] = { 1, 1, 1, 1, 1 };
  for (int i = 0; i < spatial + 2; i++) d[i] = (cuuint64_t)m->dim[i];
  for (int i = 0; i < spatial + 1; i++) st[i] = (cuuint64_t)(m->stride[i] * esize);
  for (int i = 0; i < spatial; i++) step[i + 1] = (cuuint32_t)m->step[i];
  return refused_map(driver->tensor_map_im2col(map, map_type(dtype), (cuuint32_t)spatial + 2, (void *)0x10000, d, st, m->lower, m->upper,
                                               128 / (cuuint32_t)esize, pixels, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                               CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  const problem *p = &st->problem;
  cuda_gemm *g = &st->conv.gemm;
  bool filter = p->mode == CUDA_CONV_FILTER, data = p->mode == CUDA_CONV_DATA;
  uint32_t bm = (uint32_t)st->kernel->bm, bn = (uint32_t)st->kernel->bn, slice = st->sum_dtype == QN_F32 ? 32 : 64;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  for (int i = 0; i < st->n_classes && !s; i++) {
    pixel_class *k = &st->class_[i];
    if (k->grid.taps) s = im2col(st->driver, &k->gathered_map, p->dtype, &k->gathered, p->spatial, filter ? 64 : bm);
    if (data && !s) s = im2col(st->driver, &k->written_map, st->sum_dtype, &k->written, p->spatial, 64);
  }
  if (s) return s;
  if (filter) s = tiled(st->driver, &g->a, p->dtype, st->other_dim, st->other_stride, 64, 64, 1);
  else s = tiled(st->driver, &g->b, p->dtype, st->other_dim, st->other_stride, 64, 1, data ? 64 : bn <= 256 ? bn : bn / 2);
  if (s) return s;
  if (filter) {                                             /* [parts][filters][taps][channels] */
    int64_t dim[4] = { p->channels, p->taps, p->filters, st->parts },
            stride[3] = { p->channels, p->channels * p->taps, p->channels * p->taps * p->filters };
    s = tiled(st->driver, &g->y, st->sum_dtype, dim, stride, slice, 1, 64);
  } else if (!data && g->store_map) {
    int64_t dim[4] = { g->n, g->m, 1, 1 }, stride[3] = { g->out_stride[0], g->out_stride[0] * g->m, 0 };
    s = tiled(st->driver, &g->y, st->sum_dtype, dim, stride, slice, 64, 1);
    if (!s && g->plain.added >= 0) {
      const int64_t pitch = g->steps.operand[g->plain.added].stride[0], apart[3] = { pitch, pitch * g->m, 0 };
      s = tiled(st->driver, &g->added, st->sum_dtype, dim, apart, slice, 64, 1);
    }
  }
  if (s) return s;
  return cuda_check(cudaFuncSetAttribute(st->kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernel->shared),
                    "cudaFuncSetAttribute");
}

/* ---- run ---------------------------------------------------------------------------------------------- */

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  const problem *q = &st->problem;
  cuda_conv c = st->conv;
  cuda_gemm *g = &c.gemm;
  const bool joined = st->parts > 1 && q->mode == CUDA_CONV_FILTER;
  void *y = launch->ptr[st->chain.out], *product = joined ? launch->workspace : y;
  g->kept = (float *)((char *)launch->workspace + st->kept), c.ticket = launch->counters;
  st->driver->tensor_map_address(q->mode == CUDA_CONV_FILTER ? &g->a : &g->b, launch->ptr[q->other]);
  if (q->mode == CUDA_CONV_FILTER || (q->mode == CUDA_CONV_FORWARD && g->store_map)) st->driver->tensor_map_address(&g->y, product);
  if (g->store_map && g->plain.added >= 0) st->driver->tensor_map_address(&g->added, launch->ptr[st->chain.value[g->plain.added]]);
  g->out = product;
  qn_status s = cuda_chain_start(&g->steps, &st->chain, launch, launch->workspace);
  if (s) return s;
  for (int i = 0; i < st->n_classes; i += CUDA_CONV_CLASSES) {
    int64_t pixels = 0;
    g->batch0 = (int32_t)qn_min_i64(st->n_classes - i, CUDA_CONV_CLASSES);
    for (int j = 0; j < g->batch0; j++) {
      const pixel_class *k = &st->class_[i + j];
      c.grid[j] = k->grid;
      pixels = qn_max_i64(pixels, k->grid.pixels);
      c.gathered[j] = k->gathered_map;
      if (k->grid.taps) st->driver->tensor_map_address(&c.gathered[j], launch->ptr[q->gathered]);
      if (q->mode != CUDA_CONV_DATA) continue;
      c.written[j] = k->written_map;
      st->driver->tensor_map_address(&c.written[j], (char *)y + k->written.offset * qn_kit_bytes(st->sum_dtype));
    }
    if (q->mode != CUDA_CONV_FILTER) g->tiles_m = (int32_t)qn_ceil_div(pixels, st->kernel->bm);
    cuda_gemm_walk(g);
    int splits = st->kernel->splits;
    int64_t tiles = (int64_t)g->tiles_m * g->tiles_n * g->batch0 * g->batch1, most = launch->device->units / splits;
    s = cuda_gemm_launch(&c, st->kernel, (int)qn_min_i64(tiles, most) * splits, splits, launch->stream, "conv_wgmma");
    if (s) return s;
  }
  return joined ? cuda_conv_join(y, st->out_dtype, product, st->parts, q->filters * q->taps * q->channels, launch->stream) : QN_OK;
}

/* A gradient by the filter has no rows whose bits a batch could change. */
#define ROW(op_, mode) { .name = "wgmma", .op = op_, .class_ = QN_CLASS_TUNED, \
                         .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES | (mode == CUDA_CONV_FILTER ? QN_TRAIT_BATCH_INVARIANT : 0), \
                         .variants = names[mode], .pattern = mode == CUDA_CONV_FORWARD ? &cuda_chain_pattern : NULL, \
                         .prepare = prepare, .build = build, .run = run, .release = cuda_release }
static const qn_engine rows[] = {
  ROW(QN_OP_CONV_FORWARD, CUDA_CONV_FORWARD),
  ROW(QN_OP_CONV_BACKWARD_DATA, CUDA_CONV_DATA),
  ROW(QN_OP_CONV_BACKWARD_FILTER, CUDA_CONV_FILTER),
};
CUDA_ENGINES(conv_wgmma) = { rows, sizeof rows / sizeof *rows };
