/* conv_tf32.c -- f32 convolution and its gradients as implicit products on sm_90 Tensor Cores (wgmma), in tf32 (one product) or
 * 3xtf32 (three products of high and low parts, f32 precision). Two or three spatial dims in any layout; one group.
 *
 *   forward          y[(n,p), k]      = sum over taps r and channels c of x[n, p stride + r dilation - pad, c] w[r, c, k]
 *   backward data    dx[(n,x), c]     = the same of dy, and the filters reversed; with strides by residues of x
 *   backward filter  dw[(r, c), k]    = sum over pixels (n,p) of x[n, p stride + r dilation - pad, c] dy[(n,p), k]
 *
 * Workspace holds the operands in the layout that the product needs: the gathered one (x, dy) channels last, unless it already
 * is, or with few channels its unfolded windows; the other one (w, dy) packed in shared memory order. A gradient by the filter is
 * computed in partial sums, added in order. A volume is read as its planes, images of their own, but for where windows begin.
 *
 * Where a gradient by x has strides, x = s i + e sees of each dim the taps r = r0 + s t, r0 = (e + pad) mod s, alone:
 *
 *   dx[s i + e] = sum over t of dy[i + (e + pad - r0) / s - t] w[r0 + s t]
 *
 * which is a class of pixels of its own for each e, with stride 1; all are tiles of one launch, those of most taps first. With more classes
 * than there is room for, a dilation, or where no tap sees a residue, dy is copied with zeros between its pixels instead. */
#include "program/chain.h"
#include "conv_tf32.h"
#include "engines.h"

static const char *const variant_names[] = { "128x64", "128x128", "128x192", NULL };

typedef enum mode { FORWARD, DATA, FILTER } mode;

/* The request, and the product it becomes. */
typedef struct problem {
  mode     mode;
  bool     split;
  qn_conv  c;                             /* of H and W */
  qn_value x, w, y;                       /* or their gradients; of a volume each plane as an image, and one plane of taps */
  int64_t  planes, planes_in;             /* of a volume: of the output grid, the gathered tensor; 0: two spatial dims */
  int64_t  taps_d, d_stride, stride_d, dilation_d, before_d, after_d;        /* along D; d_stride: of w */
  int64_t  volume_stride[2];              /* of what is gathered; of y */
  bool     apart;                         /* the gathered planes do not lie channels last, one after another */
  int      gathered, other, written;      /* value numbers */
  const qn_value *from, *to;              /* the gathered tensor; the written one, as the request has it */
  bool     unfolds, spreads, packs;       /* it is copied: as unfolded windows; dilated by the stride; in any form */
  int64_t  seen[2];                       /* H, W of it or its copy */
  int64_t  grid[3], lower[3];             /* W, H, D: where windows begin, how many */
  cuda_conv_classes classes;
  int64_t  taps, depth, chunks;           /* taps summed one by one; channels of a tap, and chunks of these */
  int64_t  rows, columns, blocks, steps, tiles_m;     /* of the product; blocks: of 32 rows (FILTER); steps: along k, of all classes */
} problem;

/* Along one dim. */
typedef struct window { int64_t taps, stride, dilation, before, x, y; } window;

typedef struct state {
  cuda_conv_tf32 product;
  cuda_chain chain;
  const cuda_conv_tf32_kernel *kernel;
  const cuda_driver *driver;
  mode     mode;
  bool     split, packs, unfolds;         /* split: the other operand into high and low parts; packs, unfolds: see problem */
  int32_t  gathered, other, grid, step[2];        /* value numbers; strides H, W by which dy is dilated */
  uint64_t at_packed, at_parts, at_rows;  /* offsets in workspace (the gathered copy is at 0); at_rows: of the fold */
  cuda_conv_pixels pixels, gradient;
  cuda_conv_unfold unfold;
  cuda_conv_filters filters;
  /* the gathered tensor's TMA map: C, W, H, (D,) N */
  int32_t  spatial;
  int64_t  dim[5], stride[4];
  int32_t  lower[3], upper[3], pace[3];   /* W, H, D */
} state;

/* planes: of a volume, of which v has each as an image. */
static cuda_conv_pixels pixels_of(const qn_value *v, int64_t planes, int64_t volume_stride)
{
  return (cuda_conv_pixels){ v->stride[0], v->stride[1], v->stride[2], v->stride[3],
                             (int32_t)v->dim[0], (int32_t)v->dim[1], (int32_t)v->dim[2], (int32_t)v->dim[3],
                             volume_stride, (int32_t)planes };
}

/* Channels contiguous, everything else in units of 16 bytes: TMA can read it in place. */
static bool in_units(const qn_value *v)
{
  bool ok = v->align >= 16 && (v->stride[1] == 1 || v->dim[1] == 1);
  for (int d = 0; d < v->rank; d++)
    if (d != 1 && v->dim[d] > 1) ok = ok && v->stride[d] % 4 == 0 && v->stride[d] > 0;
  return ok;
}

/* A volume as images: plane after plane. */
static void as_planes(qn_value *v)
{
  if (v->dim[2] > 1) v->stride[0] = v->stride[2];
  v->dim[0] *= v->dim[2];
  for (int d = 2; d < 4; d++) v->dim[d] = v->dim[d + 1], v->stride[d] = v->stride[d + 1];
  v->rank = 4;
}

/* Takes D out of a volume's tensors. */
static void read_volume(problem *p)
{
  qn_conv *c = &p->c;
  const qn_value *both[] = { p->from, &p->y };
  for (int i = 0; i < 2; i++) p->volume_stride[i] = both[i]->dim[0] > 1 ? both[i]->stride[0] : 0;
  p->apart = !qn_is_channels_last(p->from);
  p->planes = (p->mode == DATA ? &p->x : &p->y)->dim[2];
  p->planes_in = (p->mode == DATA ? &p->y : &p->x)->dim[2];
  p->taps_d = p->w.dim[2], p->d_stride = p->w.stride[2];
  p->stride_d = c->stride[0], p->dilation_d = c->dilation[0], p->before_d = c->pad_before[0], p->after_d = c->pad_after[0];
  for (int d = 0; d < 2; d++) {
    c->stride[d] = c->stride[d + 1], c->dilation[d] = c->dilation[d + 1];
    c->pad_before[d] = c->pad_before[d + 1], c->pad_after[d] = c->pad_after[d + 1];
    p->w.dim[2 + d] = p->w.dim[3 + d], p->w.stride[2 + d] = p->w.stride[3 + d];
  }
  as_planes(&p->x), as_planes(&p->y);
  p->w.rank = 4;
}

/* What TMA maps hold of one dim: strides have 3 bits, and in three dims a tap's offset 5. */
static qn_status check_dim(const problem *p, int64_t taps, int64_t dilation, int64_t stride, int64_t before, int64_t after, qn_prepared *out)
{
  const int64_t most = p->planes ? 31 : 120, reach = (taps - 1) * dilation;
  if (stride > 8) return qn_refuse(out, "strides to 8", "x", "8 or less", "%lld", (long long)stride);
  if (reach <= most && before <= most && after <= most) return QN_OK;
  return qn_refuse(out, "windows and padding to 120 pixels, in three dims to 31", "w", "less", "%lld",
                   (long long)qn_max_i64(reach, qn_max_i64(before, after)));
}

static qn_status check(problem *p, qn_prepared *out)
{
  const qn_conv *c = &p->c;
  const qn_value *x = &p->x, *w = &p->w, *y = &p->y;
  p->taps_d = p->stride_d = p->dilation_d = 1;
  if (x->rank == 5) read_volume(p);
  if (x->rank != 4) return qn_refuse(out, "two or three spatial dims", "x", "2 or 3", "%d", x->rank - 2);
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  const uint32_t other = x->dtype != QN_F32 ? x->dtype : w->dtype != QN_F32 ? w->dtype : y->dtype;
  if (other != QN_F32) return qn_refuse(out, "dtypes", "x", "f32, and of the others", "%s", qn_kit_name(other));
  qn_status status = check_dim(p, p->taps_d, p->dilation_d, p->stride_d, p->before_d, p->after_d, out);
  for (int d = 0; d < 2 && !status; d++)
    status = check_dim(p, w->dim[2 + d], c->dilation[d], c->stride[d], c->pad_before[d], c->pad_after[d], out);
  if (status) return status;
  double pixels = (double)x->dim[0] * (double)((x->dim[2] + 8) * (x->dim[3] + 8) + y->dim[2] * y->dim[3] * c->stride[0] * c->stride[1]);
  if (pixels > 2e9 || x->dim[1] > 1 << 20 || y->dim[1] > 1 << 20) return qn_refuse(out, "fewer than 2^31 pixels", "x", "", "%s", "more");
  return QN_OK;
}

/* ---- the problem as a product ------------------------------------------------------------------------------ */

static qn_status read_problem(const qn_request *r, problem *p, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const mode mode = op->op == QN_OP_CONV_FORWARD ? FORWARD : op->op == QN_OP_CONV_BACKWARD_DATA ? DATA : FILTER;
  const int x = qn_role(op, mode == FORWARD ? QN_ROLE_CONV_FORWARD_X
                            : mode == DATA  ? QN_ROLE_CONV_BACKWARD_DATA_DX
                                            : QN_ROLE_CONV_BACKWARD_FILTER_X);
  const int w = qn_role(op, mode == FORWARD ? QN_ROLE_CONV_FORWARD_W
                            : mode == DATA  ? QN_ROLE_CONV_BACKWARD_DATA_W
                                            : QN_ROLE_CONV_BACKWARD_FILTER_DW);
  const int y = qn_role(op, mode == FORWARD ? QN_ROLE_CONV_FORWARD_Y
                            : mode == DATA  ? QN_ROLE_CONV_BACKWARD_DATA_DY
                                            : QN_ROLE_CONV_BACKWARD_FILTER_DY);
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  p->mode = mode;
  p->c = *(const qn_conv *)op->attr;
  p->x = r->value[x], p->w = r->value[w], p->y = r->value[y];
  p->gathered = mode == DATA ? y : x, p->other = mode == FILTER ? y : w, p->written = mode == FORWARD ? y : mode == DATA ? x : w;
  p->from = mode == DATA ? &p->y : &p->x, p->to = &r->value[p->written];
  return check(p, out);
}

static window window_of(const problem *p, int d)
{
  const qn_conv *c = &p->c;
  if (d == 2)
    return (window){ p->taps_d, p->stride_d, p->dilation_d, p->before_d, p->planes ? p->mode == DATA ? p->planes : p->planes_in : 1,
                     p->planes ? p->mode == DATA ? p->planes_in : p->planes : 1 };
  const int at = 1 - d;
  return (window){ p->w.dim[2 + at], c->stride[at], c->dilation[at], c->pad_before[at], p->x.dim[2 + at], p->y.dim[2 + at] };
}

/* The class of a gradient by x whose residues are e; lower: where its windows begin. False: no tap sees them. */
static bool describe_class(problem *p, cuda_conv_class *k, const int64_t *e, int64_t *lower)
{
  int64_t taps = 1;
  for (int d = 0; d < 3; d++) {
    const window v = window_of(p, d);
    const int64_t first = (e[d] + v.before) % v.stride, n = qn_ceil_div(v.taps - first, v.stride);
    if (first >= v.taps) return false;
    lower[d] = (e[d] + v.before - first) / v.stride - (n - 1) * v.dilation;
    k->taps[d] = (int32_t)n, k->filter[d] = (int32_t)(first + (n - 1) * v.stride);
    k->limit[d] = (int32_t)qn_ceil_div(v.x - e[d], v.stride);
    if (p->to->rank > 2 + d) k->out += e[d] * p->to->stride[p->to->rank - 1 - d];
    taps *= n;
  }
  k->steps = (int32_t)(taps * p->chunks);
  return true;
}

/* Every residue as a class, those of most taps first. */
static bool describe_residues(problem *p)
{
  cuda_conv_classes *all = &p->classes;
  int64_t n[3], lower[CUDA_TF32_CLASSES][3];
  for (int d = 0; d < 3; d++) {
    const window v = window_of(p, d);
    n[d] = qn_min_i64(v.stride, v.x);
    if (n[d] > CUDA_TF32_CLASSES || (v.stride > 1 && v.dilation > 1)) return false;
    p->grid[d] = qn_ceil_div(v.x, v.stride), all->pace[d] = (int32_t)-v.stride;
  }
  if (n[0] * n[1] * n[2] > CUDA_TF32_CLASSES) return false;
  for (int64_t i = 0; i < n[0] * n[1] * n[2]; i++) {
    const int64_t e[3] = { i % n[0], i / n[0] % n[1], i / n[0] / n[1] };
    cuda_conv_class k = { 0 };
    int64_t begin[3];
    int at = all->n++;
    if (!describe_class(p, &k, e, begin)) return false;
    for (; at > 0 && all->of[at - 1].steps < k.steps; at--) {
      all->of[at] = all->of[at - 1];
      memcpy(lower[at], lower[at - 1], sizeof *lower);
    }
    all->of[at] = k;
    memcpy(lower[at], begin, sizeof *lower);
  }
  for (int d = 0; d < 3; d++) {
    p->lower[d] = lower[0][d];
    for (int i = 1; i < all->n; i++) p->lower[d] = qn_min_i64(p->lower[d], lower[i][d]);
    for (int i = 0; i < all->n; i++) all->of[i].first[d] = (int32_t)(window_of(p, d).stride > 1 ? lower[i][d] - p->lower[d] : 0);
  }
  for (int i = 1; i < all->n; i++) all->of[i].start = all->of[i - 1].start + all->of[i - 1].steps;
  return true;
}

/* All pixels as one class, in a gradient by x over dy with zeros between its pixels. */
static void describe_whole(problem *p)
{
  p->classes.n = 1;
  cuda_conv_class *k = &p->classes.of[0];
  *k = (cuda_conv_class){ .steps = (int32_t)p->blocks };
  for (int d = 0; d < 3; d++) {
    const window v = window_of(p, d);
    const bool data = p->mode == DATA;
    p->grid[d] = data ? v.x : v.y;
    p->lower[d] = p->unfolds ? 0 : data ? v.before - (v.taps - 1) * v.dilation : -v.before;
    p->classes.pace[d] = data ? -1 : 1;
    k->taps[d] = p->unfolds ? 1 : (int32_t)v.taps, k->filter[d] = data ? (int32_t)v.taps - 1 : 0;
  }
}

static qn_status make_product(problem *p, qn_prepared *out)
{
  const qn_conv *c = &p->c;
  const int64_t taps = p->w.dim[2] * p->w.dim[3] * p->taps_d, channels = p->from->dim[1];
  const int64_t pixels_y = p->y.dim[0] * p->y.dim[2] * p->y.dim[3], images = p->y.dim[0] / qn_max_i64(window_of(p, 2).y, 1);
  p->unfolds = !p->planes && p->mode != DATA && channels <= 8 && taps > 1 && channels * taps <= 1024;
  p->taps = p->unfolds ? 1 : taps;
  p->depth = p->unfolds ? channels * taps : channels;
  p->chunks = qn_ceil_div(p->depth, 32);
  p->blocks = p->taps * p->chunks;
  if (p->blocks > INT32_MAX / 64) return qn_refuse(out, "not too much to sum", "w", "", "%s", "");
  if (p->mode != DATA || !describe_residues(p)) {
    p->spreads = p->mode == DATA && (c->stride[0] > 1 || c->stride[1] > 1);
    describe_whole(p);
    if (p->mode == DATA && p->planes && (p->spreads || p->stride_d > 1))
      return qn_refuse(out, "backward data of volumes with at most 16 residues, which taps see, and strides or dilation", "dx", "", "%s",
                       "others");
  }
  p->packs = p->unfolds || p->spreads || p->apart || !in_units(p->from);
  for (int d = 0; d < 2; d++)
    p->seen[d] = p->spreads ? (p->from->dim[2 + d] - 1) * c->stride[d] + 1 : p->unfolds ? p->y.dim[2 + d] : p->from->dim[2 + d];
  p->columns = p->mode == DATA ? p->x.dim[1] : p->y.dim[1];
  p->rows = p->mode == FILTER ? p->blocks * 32 : images * p->grid[0] * p->grid[1] * p->grid[2];
  p->tiles_m = qn_ceil_div(p->rows, CUDA_TF32_ROWS);
  const cuda_conv_class *last = &p->classes.of[p->classes.n - 1];
  p->steps = p->mode == FILTER ? qn_ceil_div(pixels_y, CUDA_TF32_DEPTH) : last->start + last->steps;
  if (p->steps > INT32_MAX || p->steps == 0 || p->rows == 0 || p->tiles_m > INT32_MAX / CUDA_TF32_ROWS)
    return qn_refuse(out, "something to sum, and not too much", "x", "", "%s", "");
  return QN_OK;
}

/* ---- which tile, and how many parts ------------------------------------------------------------------------- */

typedef struct choice { int variant; int64_t parts; double ns; } choice;

/* Nanoseconds of the product, from measured clocks of a k step and a tile's end. */
static double cost(const cuda_conv_tf32_kernel *k, mode mode, bool split, int64_t units, double share, int multiprocessors)
{
  /* [filter][split][64, 128, 192 columns] */
  static const double step[2][2][3] = { { { 550, 750 }, { 1620, 2020 } }, { { 1250, 1490, 1730 }, { 1750, 2540 } } };
  double rounds = (double)qn_ceil_div(units, multiprocessors);
  return (3000 + rounds * (share * step[mode == FILTER][split][k->bn / 64 - 1] + 1000 + 62.0 * k->bn)) / 1.75 + 1000;
}

static qn_status choose(const qn_request *r, const problem *p, const cuda_conv_tf32_kernel *kernels, choice *best, qn_prepared *out)
{
  const bool filter = p->mode == FILTER;
  const int classes = p->classes.n;
  *best = (choice){ -1, 1, 0 };
  for (int i = 0; variant_names[i]; i++) {
    if (!kernels[i].function[filter] || (r->variant && strcmp(r->variant, variant_names[i]))) continue;
    const int64_t tiles = p->tiles_m * qn_ceil_div(p->columns, kernels[i].bn);
    const int64_t most = filter ? qn_min_i64(qn_max_i64(4 * r->device->units / tiles, 1), p->steps) : 1;
    for (int64_t parts = 1; parts <= most; parts++) {
      const int64_t share = qn_ceil_div(p->steps, parts);
      if (share * (parts - 1) >= p->steps) continue;
      const double join = filter ? (double)(parts * p->rows * p->columns) * 8 / 3000 : 0;
      /* what does not stay in the last-level cache is read anew for each tile across */
      const double packed = (double)(p->steps * qn_round_up(p->columns, kernels[i].bn)) * 128 * (p->split ? 2 : 1);
      const double again = filter && packed > 32 << 20 ? packed * (double)p->tiles_m / 3500 : 0;
      const double product = filter ? cost(&kernels[i], p->mode, p->split, tiles * parts, (double)share, r->device->units)
                                    : cost(&kernels[i], p->mode, p->split, tiles * classes, (double)p->steps / classes, r->device->units);
      const double ns = (product > again ? product : again) + join;
      if (best->variant < 0 || ns < best->ns) *best = (choice){ i, parts, ns };
    }
  }
  if (best->variant < 0)
    return qn_refuse(out, "one of its variants", "", "128x64, 128x128; tf32 by the filter 128x192", "%s", r->variant ? r->variant : "");
  return QN_OK;
}

/* ---- prepare ------------------------------------------------------------------------------------------------ */

/* Do the pixels of an image merge into one dim? */
static bool in_rows(const qn_value *to)
{
  return to->dim[2] <= 1 || to->dim[3] <= 1 || to->stride[2] == to->stride[3] * to->dim[3];
}

static uint64_t share_workspace(const problem *p, const choice *best, int64_t columns, state *st)
{
  const uint64_t copy = p->packs ? (uint64_t)(p->from->dim[0] * p->seen[0] * p->seen[1] * qn_round_up(p->depth, 4)) * 4 : 0;
  const uint64_t packed = (uint64_t)(p->steps * columns) * 128 * (p->split ? 2 : 1);
  const uint64_t parts = p->mode == FILTER ? (uint64_t)(best->parts * p->columns * p->tiles_m * CUDA_TF32_ROWS) * 4 : 0;
  st->at_packed = (uint64_t)qn_round_up((int64_t)copy, 256);
  st->at_parts = st->at_packed + packed;
  st->at_rows = st->at_parts + parts;
  return copy;
}

static void describe_packing(const problem *p, state *st)
{
  const qn_conv *c = &p->c;
  const qn_value *w = &p->w, *y = &p->y;
  const int row = p->mode == DATA ? 1 : 0;                  /* rows of the packed filters: K, or C */
  st->pixels = pixels_of(p->from, p->planes_in, p->volume_stride[0]);
  st->gradient = pixels_of(y, p->planes, p->volume_stride[1]);
  for (int d = 0; d < 2; d++) st->step[d] = p->spreads ? (int32_t)c->stride[d] : 1;
  st->unfold = (cuda_conv_unfold){ (int32_t)y->dim[2],      (int32_t)y->dim[3],     (int32_t)w->dim[2],        (int32_t)w->dim[3],
                                   (int32_t)c->stride[0],   (int32_t)c->stride[1],  (int32_t)c->pad_before[0], (int32_t)c->pad_before[1],
                                   (int32_t)c->dilation[0], (int32_t)c->dilation[1] };
  st->filters = (cuda_conv_filters){ .row_stride = w->stride[row],
                                     .col_stride = w->stride[1 - row],
                                     .d_stride = p->d_stride,
                                     .r_stride = w->stride[2],
                                     .s_stride = w->stride[3],
                                     .rows = (int32_t)w->dim[row],
                                     .cols = (int32_t)w->dim[1 - row],
                                     .taps = (int32_t)(w->dim[2] * w->dim[3] * p->taps_d),
                                     .taps_h = (int32_t)w->dim[2],
                                     .taps_w = (int32_t)w->dim[3],
                                     .unfolded = p->unfolds };
}

/* Windows over the gathered tensor or its copy; TMA maps have W before H, and their bounds 8 bits, in three dims 5. */
static qn_status describe_map(const problem *p, state *st, qn_prepared *out)
{
  const qn_conv *c = &p->c;
  const int32_t most = p->planes ? 15 : 127;
  st->spatial = p->planes ? 3 : 2;
  const int64_t after[] = { c->pad_after[1], c->pad_after[0], p->after_d }, seen[] = { p->seen[1], p->seen[0], p->planes_in };
  for (int d = 0; d < st->spatial; d++) {
    const window v = window_of(p, d);
    st->lower[d] = (int32_t)p->lower[d];
    st->upper[d] = (int32_t)(p->unfolds ? 0 : p->mode == DATA ? p->grid[d] - seen[d] + p->lower[d] : after[d] - (v.taps - 1) * v.dilation);
    st->pace[d] = p->unfolds || p->mode == DATA ? 1 : (int32_t)v.stride;
  }
  for (int d = 0; d < st->spatial; d++)
    if (st->lower[d] < -most - 1 || st->lower[d] > most || st->upper[d] < -most - 1 || st->upper[d] > most)
      return qn_refuse(out, "windows that begin and end near the edge", "x", p->planes ? "within 16" : "within 128", "%s", "farther");
  st->dim[0] = p->packs ? qn_round_up(p->depth, 4) : p->depth, st->dim[1] = p->seen[1], st->dim[2] = p->seen[0],
  st->dim[3] = p->from->dim[0];
  st->stride[0] = p->packs ? st->dim[0] : p->from->stride[3];
  st->stride[1] = p->packs ? st->dim[0] * p->seen[1] : p->from->stride[2];
  st->stride[2] = p->packs ? st->dim[0] * p->seen[1] * p->seen[0] : p->from->stride[0];
  for (int d = 0; d < 3; d++)                               /* the stride of a dim of 1 is arbitrary */
    if (st->dim[d + 1] == 1) st->stride[d] = d ? st->stride[d - 1] * st->dim[d] : qn_round_up(st->dim[0], 4);
  if (p->planes) st->dim[3] = p->planes_in, st->dim[4] = p->from->dim[0] / p->planes_in, st->stride[3] = st->stride[2] * p->planes_in;
  return QN_OK;
}

static void describe_product(const problem *p, const choice *best, const qn_value *to, state *st)
{
  cuda_conv_tf32 *g = &st->product;
  g->m = (int32_t)(p->mode == FILTER ? p->tiles_m * CUDA_TF32_ROWS : p->rows);
  g->n = (int32_t)p->columns;
  g->tiles_m = (int32_t)p->tiles_m, g->tiles_n = (int32_t)qn_ceil_div(p->columns, st->kernel->bn);
  g->parts = (int32_t)qn_max_i64(best->parts, p->classes.n);          /* one of both is 1, or none */
  g->k_steps = (int32_t)p->steps;
  g->share = (int32_t)qn_ceil_div(p->steps, best->parts);
  g->taps_w = p->unfolds ? 1 : (int32_t)p->w.dim[3];
  g->taps_h = p->unfolds ? 1 : (int32_t)p->w.dim[2];
  g->chunks = (int32_t)p->chunks;
  g->blocks = (int32_t)p->blocks;
  g->by_w = cuda_divide_by(p->grid[0]), g->by_hw = cuda_divide_by(p->grid[0] * p->grid[1]), g->by_planes = cuda_divide_by(p->grid[2]);
  g->by_rows = g->by_lines = cuda_divide_by(1);
  g->stride_w = st->pace[0], g->stride_h = st->pace[1];
  g->start_w = st->lower[0], g->start_h = st->lower[1];
  g->dilation_w = p->unfolds ? 0 : (int32_t)p->c.dilation[1], g->dilation_h = p->unfolds ? 0 : (int32_t)p->c.dilation[0];
  g->planes = p->planes ? (int32_t)p->grid[2] : 0;
  g->classes = p->classes;
  g->stride_d = st->pace[2], g->start_d = st->lower[2], g->dilation_d = (int32_t)p->dilation_d;
  g->steps = st->chain.steps;
  if (p->mode == FILTER) {                                  /* parts: [part][column][row] */
    g->along = 1;
    g->image_rows = g->m;
    g->out_dtype = QN_F32;
    g->out_stride[0] = 1, g->out_stride[1] = g->m;
    g->part_stride = g->m * p->columns;
    return;
  }
  g->out_dtype = to->dtype;
  g->out_stride[1] = to->stride[1];
  if (p->planes && p->classes.n == 1 && qn_is_channels_last(to)) {      /* one image of all rows */
    g->image_rows = g->m;
    g->out_stride[0] = p->columns;
    return;
  }
  /* runs of pixels that lie equally far apart, as many lines of these, planes of lines */
  int64_t n[3] = { 1, 1, 1 }, stride[3] = { 0, 0, 0 };
  for (int d = 0; d < to->rank - 2; d++)
    n[d] = p->grid[d], stride[d] = to->stride[to->rank - 1 - d] * (p->mode == DATA && !p->spreads ? window_of(p, d).stride : 1);
  for (int d = 1; d < 3 && p->classes.n == 1 && (n[0] <= 1 || n[1] <= 1 || stride[1] == stride[0] * n[0]); d++) {
    if (n[0] <= 1) stride[0] = stride[1];
    n[0] *= n[1];
    n[1] = n[2], stride[1] = stride[2], n[2] = 1;
  }
  g->image_rows = (int32_t)n[0];
  g->by_rows = cuda_divide_by(n[1]), g->by_lines = cuda_divide_by(n[2]);
  g->out_stride[0] = stride[0], g->out_stride[2] = to->stride[0], g->out_stride[3] = stride[1], g->out_stride[4] = stride[2];
  g->along = g->out_stride[0] == 1 && !(to->stride[1] == 1 && to->dim[1] > 1);
}

static qn_status prepare(const qn_request *r, qn_prepared *out, bool split)
{
  problem p = { .split = split };
  choice best;
  state st = { 0 };
  const cuda_conv_tf32_kernel *kernels = split ? cuda_conv_tf32_three : cuda_conv_tf32_one;
  qn_status status = read_problem(r, &p, out);
  if (status) return status;
  const int bias = p.mode == FORWARD ? qn_role(&r->op[0], QN_ROLE_CONV_FORWARD_BIAS) : -1;
  if ((status = cuda_chain_begin_conv(&st.chain, r, p.written, bias, out))) return status;
  const cuda_chain alone = st.chain;
  if (p.mode != FILTER)
    cuda_chain_follow(&st.chain, r, p.planes ? &(cuda_out_dims){ { -1, -1, -1, -1 }, CUDA_CHANNELS_LAST }
                                             : &(cuda_out_dims){ { 3, 1, 0, -1 }, CUDA_BY_DIMS });
  if (p.planes && !qn_is_channels_last(&r->value[st.chain.out])) st.chain = alone;
  /* what follows is addressed in H and W as one dim */
  if (p.mode != FILTER && !p.planes && !in_rows(&r->value[st.chain.out])) st.chain = alone;
  const qn_value *to = &r->value[st.chain.out];
  if ((status = make_product(&p, out)) || (status = choose(r, &p, kernels, &best, out))) return status;
  st.kernel = &kernels[best.variant];
  st.mode = p.mode;
  st.split = split, st.packs = p.packs, st.unfolds = p.unfolds;
  st.gathered = p.gathered, st.other = p.other;

  const int64_t tiles_n = qn_ceil_div(p.columns, st.kernel->bn), units = p.tiles_m * tiles_n * qn_max_i64(best.parts, p.classes.n);
  const uint64_t copy = share_workspace(&p, &best, tiles_n * st.kernel->bn, &st), packed = st.at_parts - st.at_packed;
  const uint64_t workspace = st.at_rows + cuda_chain_bytes(&st.chain);
  if (workspace > r->demands->workspace_limit)
    return qn_refuse(out, "workspace for operands laid out anew", "", "a limit above it", "%llu", (unsigned long long)workspace);
  if (units > INT32_MAX || copy / 4 / 2048 > INT32_MAX) return qn_refuse(out, "fewer than 2^31 tiles", "", "", "%s", "more");

  describe_packing(&p, &st);
  if ((status = describe_map(&p, &st, out))) return status;
  describe_product(&p, &best, to, &st);
  const bool scattered = p.mode != FILTER && st.product.out_stride[0] != 1 && st.product.out_stride[1] != 1;
  st.grid = (int32_t)qn_min_i64(units, r->device->units);
  st.product.turns = scattered && st.product.parts > 1 && units / r->device->units >= 2 * st.product.parts;
  if (st.product.turns) st.grid -= st.grid % st.product.parts;

  out->n_ops = st.chain.n_ops;
  out->variant = variant_names[best.variant];
  out->workspace = workspace;
  /* as measured: few columns of many sums; windows over dy and the zeros between; elements that are stored one by one */
  const double rate = p.mode == FILTER && p.unfolds ? 2.2 : p.spreads ? 1.15 : 1;
  const bool odd = p.mode != FILTER && st.product.along && st.product.image_rows % 4;
  const double stores = scattered || odd ? (double)(p.rows * p.columns * p.classes.n * 4) / (odd ? 400 : 600) : 0;
  out->estimate = best.ns * rate + stores + (double)copy / 1700 + (double)packed / 2500 + (p.packs ? 2500 : 1500) + (p.mode == FILTER ? 1500 : 0);
  out->math = split ? QN_MATH_F32 : QN_MATH_TF32;
  out->numerics = (qn_numerics){ .accumulator = split ? QN_ACC_3XTF32 : QN_ACC_TF32 };
  return cuda_keep(out, &st, sizeof st);
}

static qn_status prepare_one(const qn_request *r, qn_prepared *out) { return prepare(r, out, false); }
static qn_status prepare_three(const qn_request *r, qn_prepared *out) { return prepare(r, out, true); }

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  if (s) return s;
  cuuint64_t dim[5], stride[4];
  cuuint32_t pace[5] = { 1, 1, 1, 1, 1 };
  for (int i = 0; i < st->spatial + 2; i++) dim[i] = (cuuint64_t)st->dim[i];
  for (int i = 0; i < st->spatial + 1; i++) stride[i] = (cuuint64_t)(st->stride[i] * 4);
  for (int i = 0; i < st->spatial; i++) pace[1 + i] = (cuuint32_t)st->pace[i];
  CUresult e = st->driver->tensor_map_im2col(&st->product.a, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, (cuuint32_t)st->spatial + 2, (void *)0x10000,
                                             dim, stride, st->lower, st->upper, 32,
                                             st->mode == FILTER ? CUDA_TF32_DEPTH : CUDA_TF32_ROWS, pace,
                                             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (e != CUDA_SUCCESS) return cuda_host->error(QN_INTERNAL, "cuda: conv_tf32: the driver refused a tensor map");
  return cuda_check(cudaFuncSetAttribute(st->kernel->function[st->mode == FILTER], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         st->kernel->shared),
                    "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_conv_tf32 g = st->product;
  char *workspace = launch->workspace;
  float *packed = (float *)(workspace + st->at_packed), *parts = (float *)(workspace + st->at_parts);
  void *gathered = launch->ptr[st->gathered];
  const float *other = launch->ptr[st->other];
  qn_status s = QN_OK;
  if (st->unfolds) s = cuda_conv_pack_windows(launch->workspace, gathered, &st->pixels, &st->unfold, launch->stream);
  else if (st->packs) s = cuda_conv_pack_pixels(launch->workspace, gathered, &st->pixels, st->step[0], st->step[1], launch->stream);
  if (!s && st->mode == FILTER) s = cuda_conv_pack_gradient(packed, other, &st->gradient, st->kernel->bn, st->split, launch->stream);
  else if (!s) s = cuda_conv_pack_filters(packed, other, &st->filters, &st->product.classes, st->kernel->bn, st->split, launch->stream);
  if (s) return s;
  st->driver->tensor_map_address(&g.a, st->packs ? launch->workspace : gathered);
  g.b = packed;
  g.out = st->mode == FILTER ? parts : launch->ptr[st->chain.out];
  if ((s = cuda_chain_start(&g.steps, &st->chain, launch, workspace + st->at_rows))) return s;
  s = cuda_conv_tf32_launch(&g, st->kernel, st->mode == FILTER, st->grid, launch->stream);
  if (!s && st->mode == FILTER)
    s = cuda_conv_join_filters(launch->ptr[st->chain.out], parts, &st->filters, g.parts, g.m, g.chunks * 32, launch->stream);
  return s;
}

#define ROWS(op_) \
  { .name = "3xtf32", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
    .variants = variant_names, \
    .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, \
    .prepare = prepare_three, .build = build, .run = run, .release = cuda_release }, \
  { .name = "tf32", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
    .variants = variant_names, \
    .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, \
    .prepare = prepare_one, .build = build, .run = run, .release = cuda_release }
static const qn_engine rows[] = { ROWS(QN_OP_CONV_FORWARD), ROWS(QN_OP_CONV_BACKWARD_DATA), ROWS(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_tf32) = { rows, sizeof rows / sizeof *rows };
