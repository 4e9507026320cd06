/* conv_unfold.c -- convolution as matrix products, delegated to matmul: any layout, dtype, groups, and one to three spatial dims.
 *
 *   cols [n, g, p, k]     the windows of x (conv_unfold.h)
 *   forward   y[n, g]  [p, f] = cols [p, k] w[g] [k, f] (+ bias)
 *   data      cols     [p, k] = dy[n, g] [p, f] w[g] [f, k];   dx = cols added up where windows overlap, else moved to its place
 *   filter    dw[g]    [f, k] = sum over n of dy[n, g] [f, p] cols [p, k]
 *
 * Where the windows are a view of x (filters of one tap, patches of a sequence, a window that is the whole image) nothing is
 * copied. Else cols is made in workspace, a chunk at a time that stays in the last-level cache: some images, or of one image some
 * rows of its outermost dim. Partial sums of dw are kept in the accumulator's dtype and added in order. */
#include "conv_follow.h"
#include "conv_layout.h"
#include "conv_windows.h"
#include "engines.h"
#include "kit/part.h"

enum { CHUNK = 32 << 20, GOOD_TILE = 128 };

typedef struct copy { qn_part *part; uint64_t place; } copy;

typedef struct product {
  qn_part *part;
  cuda_unfold u;                          /* geometry of its chunk */
  int64_t  images, rows, parts;           /* of the chunk; partial sums of dw */
  int32_t  n;                             /* values, of which the first three are the product's; the others as in cuda_follow */
  int32_t  at[CUDA_FOLLOW_VALUES];
  int64_t  image[CUDA_FOLLOW_VALUES], row[CUDA_FOLLOW_VALUES];
} product;

typedef struct state {
  cuda_windows q;
  uint32_t n_ops;                         /* taken of the request */
  cuda_fold fold;                         /* of a normalization that follows */
  uint64_t sums, folded, scratch;         /* places in workspace */
  copy     filters_copy, dy_copy;
  product  product[2];                    /* of a whole chunk, and of the last where it is smaller */
} state;

/* ---- parts ------------------------------------------------------------------------------------------------------------ */

static void release(qn_prepared *p)
{
  state *st = p->state;
  if (!st) return;
  qn_part *parts[] = { st->filters_copy.part, st->dy_copy.part, st->product[0].part, st->product[1].part };
  for (int i = 0; i < 4; i++)
    if (parts[i]) cuda_host->part_release(parts[i]);
  cuda_release(p);
}

static qn_value matrix(uint32_t dtype, uint32_t align, int64_t b0, int64_t s0, int64_t b1, int64_t s1, int64_t rows, int64_t row,
                       int64_t cols, int64_t col)
{
  return (qn_value){ .dtype = dtype, .rank = 4, .dim = { b0, b1, rows, cols, 1, 1, 1, 1 }, .stride = { s0, s1, row, col }, .align = align };
}

/* The largest number of equal shares of n, at most `most`, each a multiple of unit if n is. */
static int64_t shares_of(int64_t n, int64_t most, int64_t unit)
{
  if (n % unit == 0) n /= unit;
  for (; most > 1; most--)
    if (n % most == 0) return most;
  return 1;
}

/* Steps of cols in workspace: rows of k, or (across) of windows, padded to 16 bytes. merged: images continue each other. */
static void lay_out(const state *st, cuda_unfold *u, int64_t windows, bool merged)
{
  const cuda_windows *q = &st->q;
  const int64_t unit = 16 / (int64_t)qn_kit_bytes(q->dtype), images = u->images;
  u->k_step = q->across ? qn_round_up(merged ? images * windows : windows, unit) : 1;
  u->p_step = q->across ? 1 : qn_round_up(q->named.k, unit);
  const int64_t plane = q->across ? u->k_step * q->named.k : windows * u->p_step;
  u->n_step = merged ? windows * u->p_step : plane * u->groups;
  u->g_step = merged && !q->across ? images * plane : plane;
}

/* Fills in the product of a chunk: its three matrices, the bias, and the ops that follow. */
static void describe_product(const qn_request *r, state *st, product *p, int64_t images, int64_t rows, uint32_t most, cuda_follow *region)
{
  cuda_windows *q = &st->q;
  qn_value *value = region->value;
  cuda_unfold *u = &p->u;
  const cuda_window_pixels *y = &q->p;
  const qn_value *yv = &r->value[q->y];
  const bool filter = q->mode == CUDA_CONV_FILTER;
  const int64_t k = q->named.k, f = q->filters, g = q->groups;
  *u = q->u;
  u->images = (int32_t)images;
  u->out[q->outer] = (int32_t)rows;
  int64_t windows = (int64_t)u->out[0] * u->out[1] * u->out[2];
  const bool merged = images == 1 || (y->image == windows * y->window && (!q->view || u->n_step == windows * u->p_step));
  if (!q->view) lay_out(st, u, windows, merged);
  uint32_t align = q->view ? cuda_aligned(u->align, images < q->images ? images * u->n_step * q->x_bytes : 0) : 16;
  uint32_t y_align = cuda_aligned(y->align, images < q->images ? images * y->image * q->y_bytes : 0);
  if (rows < q->u.out[q->outer]) y_align = cuda_aligned(y_align, y->row * q->y_bytes);    /* any row may come first */
  const int64_t batch = merged ? 1 : images, sum = merged ? images * windows : windows;
  p->images = images, p->rows = rows, p->parts = batch;
  if (filter) {
    int64_t tiles = qn_ceil_div(f, GOOD_TILE) * qn_ceil_div(k, GOOD_TILE) * batch * g, room = CHUNK / (f * g * k * batch * 4);
    const int64_t unit = y->window == 1 || q->across ? 16 / qn_min_i64(q->y_bytes, q->x_bytes) : 1;
    const int64_t limit = qn_min_i64(qn_min_i64(2 * r->device->units / tiles, sum / 256), room);
    const int64_t shares = g > 1 ? 1 : shares_of(sum, limit, unit), share = sum / shares;
    p->parts = batch * shares;
    const int64_t by = g > 1 ? g : shares, y_by = g > 1 ? f * y->channel : share * y->window, u_by = g > 1 ? u->g_step : share * u->p_step;
    uint32_t to_align = q->direct ? q->w_align : cuda_aligned(16, p->parts * f * g * k * (int64_t)qn_kit_bytes(q->sum));
    value[0] = matrix(yv->dtype, y_align, batch, y->image, by, y_by, f, y->channel, share, y->window);
    value[1] = matrix(q->dtype, align, batch, u->n_step, by, u_by, share, u->p_step, k, u->k_step);
    value[2] = matrix(q->direct ? q->dw_dtype : q->sum, to_align, batch, by * f * k, by, f * k, f, k, k, 1);
    if (q->direct) value[2].stride[1] = f * q->w_row, value[2].stride[2] = q->w_row;
  } else {
    const int y_at = q->mode == CUDA_CONV_FORWARD ? 2 : 0, cols_at = 2 - y_at;
    const bool data = cols_at == 2;
    value[y_at] = matrix(yv->dtype, y_align, batch, y->image, g, f * y->channel, sum, y->window, f, y->channel);
    value[cols_at] = matrix(q->dtype, align, batch, u->n_step, g, u->g_step, sum, u->p_step, k, u->k_step);
    value[1] = matrix(r->value[q->w].dtype, q->w_align, 1, 0, g, f * q->w_row, data ? f : k, data ? q->w_row : 1, data ? k : f,
                      data ? 1 : q->w_row);
  }
  region->n_nodes = 1, region->n_values = 3;
  region->ops[0] = 1;
  region->at[0] = region->at[1] = region->at[2] = CUDA_FOLLOW_NONE;
  /* Where y is contiguous along the windows all is transposed, so that rows of the result are: products store such ones faster. Not
   * for f32 where cols would become the operand that is split beforehand. */
  const bool forward = q->mode == CUDA_CONV_FORWARD, split = forward && q->dtype == QN_F32 && !q->view;
  const bool turned = value[2].stride[2] == 1 && value[2].stride[3] != 1 && value[2].dim[3] > 1 && !split;
  const bool by_c = g > 1 || turned;
  if (q->bias >= 0) {                     /* of several groups, or across rows: c, the same for every window */
    const qn_value *v = &r->value[q->bias];
    const int64_t step = v->dim[0] > 1 ? v->stride[0] : 0;
    value[3] = *v;
    if (by_c) {
      value[3] = value[2];
      value[3].dtype = v->dtype, value[3].align = v->align;
      value[3].stride[0] = value[3].stride[2] = 0, value[3].stride[1] = f * step, value[3].stride[3] = step;
    }
    region->at[region->n_values++] = q->bias;
  }
  for (uint32_t i = 0; i < region->n_values; i++) cuda_part_value(&value[i], i == 2);
  const cuda_follow_view view = { batch, g, sum, f, windows, yv->rank, { q->u.out[0], q->u.out[1], q->u.out[2] }, q->outer, merged,
                                  images < q->images, rows < q->u.out[q->outer] };
  if (forward) cuda_follow_add(region, r, &view, q->y, 2, q->bias, most);
  const int bias = q->bias >= 0 && (!region->fold.channels || region->fold.value[CUDA_FOLD_BIAS] < 0), as_c = bias && by_c;
  const int32_t first[] = { 0, 1, 2, 2 + as_c, 2 + bias, 2 + bias, 2 + bias, 3 + bias }, arg[] = { turned, !turned, bias ? 3 : 2, 2 };
  for (uint32_t i = 0; i < region->n_values && turned; i++) {
    qn_value *v = &value[i], was = *v;
    if (v->rank) v->dim[2] = was.dim[3], v->dim[3] = was.dim[2], v->stride[2] = was.stride[3], v->stride[3] = was.stride[2];
  }
  memcpy(region->first[0], first, sizeof first);
  memcpy(region->arg[0], arg, sizeof arg);
  region->node[0] = (qn_node){ .op = QN_OP_MATMUL, .family = QN_FAMILY_CONTRACTION, .n_roles = 7, .n_inputs = 6,
                               .first = region->first[0], .arg = region->arg[0] };
}

/* Prepares it; most: of the request's ops, lowered to those that the product's engine takes. */
static qn_status prepare_product(const qn_request *r, state *st, int which, int64_t images, int64_t rows, uint32_t *most)
{
  product *p = &st->product[which];
  for (;;) {
    cuda_follow f = { 0 };
    describe_product(r, st, p, images, rows, *most, &f);
    qn_request part = { .struct_size = sizeof part, .instance = r->instance, .op = f.node, .n_ops = f.n_nodes, .n_values = f.n_values,
                        .value = f.value };
    qn_status status = r->host->part_prepare(r, &part, NULL, &p->part);
    if (status) return status;
    uint32_t taken = r->host->part_answer(p->part)->n_ops, whole = taken;
    while (!f.ops[whole - 1]) whole--;    /* not part of a normalization, of which the fold might also have the bias */
    *most = f.ops[whole - 1];
    if (whole == taken && (!f.fold.channels || taken == f.n_nodes)) {
      p->n = (int32_t)f.n_values;
      memcpy(p->at, f.at, sizeof p->at), memcpy(p->image, f.image, sizeof p->image), memcpy(p->row, f.row, sizeof p->row);
      st->fold = f.fold;
      return QN_OK;
    }
    r->host->part_release(p->part);
    p->part = NULL;
  }
}

/* ---- chunks ---------------------------------------------------------------------------------------------------------------- */

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ns: of one run. */
static void take(const qn_request *r, qn_prepared *out, const qn_part *part, uint64_t *own, double times, double ns)
{
  const qn_prepared *answer = r->host->part_answer(part);
  *own = most(*own, answer->workspace);
  out->counters = most(out->counters, answer->counters);
  out->estimate += times * (ns + 500);
}

/* Bytes of cols a nanosecond, as measured on an H200: units of several elements, single ones, and overlapping windows added up. */
static double rate_of(const cuda_windows *q, const cuda_unfold *u)
{
  if (q->mode == CUDA_CONV_DATA && !q->scatter) return u->last && u->channels % 4 == 0 ? 1500 : 500;
  return cuda_unfold_run(u) > 1 || u->bytes == 8 ? 2000 : 350 * u->bytes;
}

/* Prepares the products for chunks of at most this many bytes; fills in out. */
static qn_status prepare_chunks(const qn_request *r, state *st, int64_t bytes, qn_prepared *out)
{
  cuda_windows *q = &st->q;
  int64_t images, rows, parts = 0, chunks[2];
  cuda_windows_share(q, bytes, &images, &rows);
  if (!q->view && (double)q->u.out[0] * q->u.out[1] * q->u.out[2] / q->u.out[q->outer] * (double)rows * q->named.k * q->groups > 2e9)
    return qn_refuse(out, "a row of windows within 31 bits", "x", "fewer of them, or taps", "%s", "more");
  const int64_t all = q->u.out[q->outer], over = q->slab < q->u.in[q->outer];
  const int64_t by_rows = over ? qn_ceil_div(q->u.in[q->outer], q->slab) : qn_ceil_div(all, rows);
  const int64_t by_images = qn_ceil_div(q->images, images);
  const int64_t images_left = q->images % images, rows_left = over ? 0 : all % rows;
  chunks[1] = images_left ? by_rows : rows_left ? q->images : 0;
  chunks[0] = by_rows * by_images - chunks[1];
  const bool filter = q->mode == CUDA_CONV_FILTER, wished = q->direct;
  qn_status status = QN_OK;
  uint32_t n_ops = q->follows ? r->n_ops : 1;
  if (filter && by_rows * by_images > 1) q->direct = false;
  for (int i = 0; i < 2 && !status; i++) {
    if (!chunks[i]) continue;
    status = prepare_product(r, st, i, i && images_left ? images_left : images, i && rows_left ? rows_left : rows, &n_ops);
    parts += chunks[i] * st->product[i].parts;
    if (i && !status && n_ops < st->n_ops) {                /* the first once more, for as many ops as the last */
      r->host->part_release(st->product[0].part);
      st->product[0].part = NULL;
      status = prepare_product(r, st, 0, images, rows, &n_ops);
    }
    st->n_ops = n_ops;
  }
  if (!status && q->direct && parts > 1) {                 /* one chunk: once more, with a place for partial sums */
    r->host->part_release(st->product[0].part);
    st->product[0].part = NULL;
    q->direct = false;
    status = prepare_product(r, st, 0, images, rows, &n_ops);
  }
  if (status) return status;

  const qn_value *w = &r->value[q->w];
  const double flops = 2.0 * (double)q->filters * q->named.k * (double)q->groups;
  uint64_t own = 0, cols = 0, sums = filter && !q->direct ? (uint64_t)(parts * qn_elements(w) * qn_kit_bytes(q->sum)) : 0;
  for (int i = 0; i < 2; i++) {
    const product *p = &st->product[i];
    if (!p->part) continue;
    const cuda_unfold *u = &p->u;
    const double windows = (double)p->images * u->out[0] * u->out[1] * u->out[2];
    const int64_t plane = q->across ? q->named.k * u->k_step : (int64_t)u->out[0] * u->out[1] * u->out[2] * u->p_step;
    const int64_t size = q->view ? 0 : (p->images - 1) * u->n_step + (q->groups - 1) * u->g_step + plane;
    cols = most(cols, (uint64_t)(size * qn_kit_bytes(q->dtype)));
    /* views of groups are batches of products of few rows: of f32 they took 2.5 to 4 times their estimates */
    const double times = (double)chunks[i] * (q->view && q->groups > 1 && q->dtype == QN_F32 && !filter ? 2.5 : 1);
    const double ns = r->host->part_answer(p->part)->estimate;
    take(r, out, p->part, &own, times, ns > 0 ? ns : flops * windows / 20000);
    if (!q->view) out->estimate += (double)chunks[i] * (2000 + (double)size * (double)qn_kit_bytes(q->dtype) / rate_of(q, u));
  }
  if (!q->view && q->dtype == QN_F32) out->estimate *= 1.15;            /* products of windows just written took longer than others */
  /* rows of a result that is contiguous along columns, where it was not turned (describe_product), as measured */
  if (q->mode == CUDA_CONV_FORWARD && q->p.window == 1 && q->filters > 1 && q->dtype == QN_F32 && !q->view)
    out->estimate += (double)qn_elements(&r->value[q->y]) * (double)qn_kit_bytes(q->dtype) / 1200;
  /* a result whose rows are not in units of 16 bytes is stored element by element, as measured (packed for odd rows: estimated well) */
  const qn_value *to = &r->value[q->mode == CUDA_CONV_DATA ? q->x : q->y];
  const int64_t windows = (int64_t)q->u.out[0] * q->u.out[1] * q->u.out[2], size = qn_kit_bytes(to->dtype);
  const bool lines = q->mode == CUDA_CONV_FORWARD ? q->p.window == 1 : q->mode == CUDA_CONV_DATA && q->view && q->u.p_step == 1;
  if (lines && windows > 1 && windows * size % 16 && (size == 4 || windows % 2 == 0))
    out->estimate += (double)qn_elements(to) * (double)size / (size == 2 ? 420 : 900);
  const qn_prepared *answer = r->host->part_answer(st->product[0].part);
  out->math = answer->math;
  out->class_ = answer->class_;
  out->traits = answer->traits & (QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES | QN_TRAIT_REDUCED | QN_TRAIT_FINITE_ONLY
                                  | QN_TRAIT_FLUSHES);
  out->numerics = answer->numerics;
  uint64_t at = (uint64_t)qn_round_up((int64_t)cols, 256);
  st->sums = at, at += (uint64_t)qn_round_up((int64_t)sums, 256);
  if (st->filters_copy.part) {
    st->filters_copy.place = at, at += (uint64_t)qn_round_up(qn_elements(w) * qn_kit_bytes(w->dtype), 256);
    take(r, out, st->filters_copy.part, &own, 1, 2000);
  }
  if (st->dy_copy.part) {
    const uint64_t size = (uint64_t)(q->p.channel * q->filters * q->groups * q->y_bytes);
    st->dy_copy.place = at, at += (uint64_t)qn_round_up((int64_t)size, 256);
    take(r, out, st->dy_copy.part, &own, 1, 2000 + (double)size / 1000);          /* slower than copies of whole lines */
  }
  if (st->fold.channels) {
    st->folded = at, at += (uint64_t)qn_round_up(cuda_fold_pitch(&st->fold) * 3 * 4, 256);
    out->estimate += 2000;
  }
  if (sums) out->estimate += 2600 + (double)sums / 2000;
  if (q->mode == CUDA_CONV_DATA && !q->view) out->estimate += (double)qn_extent_bytes(&r->value[q->x]) / 2000;
  st->scratch = at;
  out->workspace = at + own;
  if (out->workspace > r->demands->workspace_limit) {
    for (int i = 0; i < 2; i++) {
      if (st->product[i].part) r->host->part_release(st->product[i].part);
      st->product[i].part = NULL;
    }
    q->direct = wished;
  }
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  cuda_windows *q = &st->q;
  qn_status status = cuda_windows_read(q, r, out);
  if (!status && q->copy_dy) status = cuda_part_copy(r, &r->value[q->y], &q->dy, &st->dy_copy.part);
  if (!status && q->copy_filters) status = cuda_part_copy(r, &r->value[q->w], &q->filters_as, &st->filters_copy.part);
  int64_t tensors = 0;
  const int32_t all[] = { q->x, q->w, q->y };
  for (int i = 0; i < 3 && !status; i++) tensors += qn_elements(&r->value[all[i]]) * qn_kit_bytes(r->value[all[i]].dtype);
  for (int64_t bytes = qn_min_i64(CHUNK, qn_max_i64(tensors, 1 << 20)); !status; bytes /= 4) {
    const qn_refusal none = { .rule = "" };
    out->estimate = 0, out->counters = 0, out->refusal = none;
    status = prepare_chunks(r, st, bytes, out);
    if (status || out->workspace <= r->demands->workspace_limit) break;
    if (q->view || bytes < 1 << 14)
      status = qn_refuse(out, "workspace for its windows", "x", "a limit above it", "%llu bytes", (unsigned long long)out->workspace);
  }
  if (!status) {
    out->n_ops = st->n_ops;
    return QN_OK;
  }
  const bool said = out->refusal.rule[0];
  release(out);
  if (status != QN_UNSUPPORTED || said) return status;
  return qn_refuse(out, "an engine for its products", "x", "what a matmul takes", "%s", "another");
}

/* ---- build, run -------------------------------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  qn_part *parts[] = { st->filters_copy.part, st->dy_copy.part, st->product[0].part, st->product[1].part };
  qn_status s = QN_OK;
  (void)r;
  for (int i = 0; i < 4 && !s; i++)
    if (parts[i]) s = cuda_host->part_build(parts[i]);
  return s;
}

typedef struct running { const qn_launch *launch; char *x, *w, *y, *cols, *sums, *scratch; float *folded; } running;

/* One chunk: images from `image` on, windows from row `row` on; slab: the first row of dx. */
static qn_status run_chunk(const state *st, const running *now, const product *p, int64_t image, int64_t row, int64_t slab)
{
  const cuda_windows *q = &st->q;
  const int d = q->outer;
  cuda_unfold u = p->u;
  char *x = now->x + image * u.x_stride[0] * q->x_bytes, *y = now->y + (image * q->p.image + row * q->p.row) * q->y_bytes;
  char *cols = q->view ? x : now->cols;
  void *const in_order[3][3] = { { cols, now->w, y }, { y, now->w, cols }, { y, cols, now->sums } };
  void *ptr[CUDA_FOLLOW_VALUES] = { in_order[q->mode][0], in_order[q->mode][1], in_order[q->mode][2] };
  for (int i = 3; i < p->n; i++) {
    const int row_of_fold = p->at[i] - CUDA_FOLLOW_ROW;
    if (p->at[i] >= 0) ptr[i] = (char *)now->launch->ptr[p->at[i]] + image * p->image[i] + row * p->row[i];
    else if (row_of_fold < 3) ptr[i] = now->folded + row_of_fold * cuda_fold_pitch(&st->fold);
  }
  void *stream = now->launch->stream;
  qn_status s = QN_OK;
  u.before[d] -= (int32_t)row * u.step[d];
  if (!q->view && q->mode != CUDA_CONV_DATA) s = cuda_unfold_gather(&u, x, cols, stream);
  if (!s) s = cuda_host->part_run(p->part, now->launch, ptr, now->scratch, now->launch->counters);
  if (s || q->view || q->mode != CUDA_CONV_DATA) return s;
  if (q->scatter) return cuda_unfold_scatter(&u, x, cols, stream);
  u.before[d] += (int32_t)slab;
  u.in[d] = (int32_t)qn_min_i64(q->slab, u.in[d] - slab);
  return cuda_unfold_fold(&u, x + slab * u.x_stride[2 + d] * q->x_bytes, q->x_dtype, cols, stream);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  const cuda_windows *q = &st->q;
  char *base = launch->workspace;
  const bool filter = q->mode == CUDA_CONV_FILTER;
  running now = { launch, launch->ptr[q->x], launch->ptr[q->w], launch->ptr[q->y], base, base + st->sums, base + st->scratch,
                  (float *)(base + st->folded) };
  qn_status s = QN_OK;
  if (st->filters_copy.part) {
    void *ptr[] = { now.w, base + st->filters_copy.place };
    s = cuda_host->part_run(st->filters_copy.part, launch, ptr, now.scratch, launch->counters);
    now.w = ptr[1];
  }
  if (!s && st->dy_copy.part) {
    void *ptr[] = { now.y, base + st->dy_copy.place };
    s = cuda_host->part_run(st->dy_copy.part, launch, ptr, now.scratch, launch->counters);
    now.y = ptr[1];
  }
  if (!s && st->fold.channels) s = cuda_chain_fold(&st->fold, launch->ptr, now.folded, launch->stream);
  if (!s && q->clear) s = cuda_check(cudaMemsetAsync(now.x, 0, q->clear_bytes, launch->stream), "cudaMemsetAsync");
  if (q->direct) now.sums = now.w;
  const product *whole = &st->product[0];
  const int64_t rows = q->u.out[q->outer], images = whole->images, in = q->u.in[q->outer];
  int64_t parts = 0;
  for (int64_t n = 0; n < q->images; n += images) {
    for (int64_t at = 0, slab = 0; at < rows && slab < in && !s; ) {
      const bool over = q->slab < in;
      const product *p = n + images > q->images || (!over && at + whole->rows > rows) ? &st->product[1] : whole;
      int64_t row = at;
      if (over) {                         /* the first window that reaches the slab */
        const int64_t reach = slab + q->u.before[q->outer] - (int64_t)(q->u.size[q->outer] - 1) * q->u.dilation[q->outer];
        row = qn_min_i64(reach <= 0 ? 0 : qn_ceil_div(reach, q->u.step[q->outer]), rows - whole->rows);
      }
      s = run_chunk(st, &now, p, n, row, slab);
      if (filter && !q->direct) {
        parts += p->parts;
        now.sums += p->parts * q->filters * q->groups * q->named.k * (int64_t)qn_kit_bytes(q->sum);
      }
      if (over) slab += q->slab;
      else at += whole->rows;
    }
  }
  if (s || !filter || q->direct) return s;
  const int64_t filters = q->filters * q->groups, elements = filters * q->named.k;
  const void *sums = base + st->sums;
  if (q->sum == QN_F32 && q->w_row == q->named.k)
    return cuda_conv_join(now.w, q->dw_dtype, sums, (int)parts, elements, launch->stream);
  return cuda_unfold_join(&q->named, now.w, q->dw_dtype, q->w_stride, filters, sums, parts, launch->stream);
}

#define ROW(op_) { .name = "unfold", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .pattern = op_ == QN_OP_CONV_FORWARD ? &cuda_chain_pattern : NULL, .prepare = prepare, .build = build, .run = run, \
                   .release = release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_unfold) = { rows, sizeof rows / sizeof *rows };
