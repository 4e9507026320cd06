/* attention_mma.c -- attention by mma.sync, from compute capability 8.0 on: what the kernels of attention_mma.cuh, attention_few.cuh and
 * attention_wide.cuh take, their launch.
 *
 * bf16, f16 and, by 3xTF32, f32 up to 256 elements, bf16 and f16 up to 576 of a key and 512 of a value, and whatever changes scores or
 * says where keys lie: bias, masks, blocks, slopes, softcap, dropout, lengths, ragged sequences, pages. Not taken: scales. Where there are
 * fewer tiles than the device has room for, keys are split. */
#include "attention_few.h"
#include "engines.h"
#include "kit/early.h"

typedef struct state {
  cuda_attention_many a;                  /* all but addresses */
  const void *kernel;
  dim3       grid;
  int32_t    shared, threads, early;      /* early: it may begin before the kernel before it has ended */
  int32_t    q, k, v, y, lse, max, sink, slopes, bias, mask, blocks, q_lengths, kv_lengths, q_starts, kv_starts, pages;     /* -1: absent */
  cuda_attention_key_request seed, offset;
} state;

/* ---- prepare ----------------------------------------------------------------------------------------------------------- */

static int32_t role(const qn_request *r, uint32_t which) { return qn_role(&r->op[0], which); }

/* Rows of q, k, v, y: elements side by side, in pieces of 16 bytes. */
static int piece(const qn_value *v) { return v->dtype == QN_F32 ? 4 : 8; }
static qn_status take_rows(const qn_request *r, int32_t value, const char *name, int64_t stride[3], qn_prepared *out)
{
  const qn_value *v = &r->value[value];
  if (v->stride[3] != 1 && v->dim[3] > 1)
    return qn_refuse(out, "elements of a row side by side", name, "stride 1 of dim 3", "%lld", (long long)v->stride[3]);
  if (v->align < 16) return qn_refuse(out, "16-byte loads", name, "aligned to 16 bytes", "%u", v->align);
  for (int i = 0; i < 3; i++) {
    stride[i] = v->dim[i] > 1 ? v->stride[i] : 0;
    if (stride[i] % piece(v))
      return qn_refuse(out, "strides of multiples of 16 bytes", name, piece(v) == 8 ? "a multiple of 8" : "a multiple of 4", "stride %lld",
                       (long long)stride[i]);
  }
  return QN_OK;
}
static void take_plane(const qn_request *r, int32_t value, int64_t stride[3])
{
  for (int i = 0; i < 3 && value >= 0; i++) stride[i] = r->value[value].dim[i] > 1 ? r->value[value].stride[i] : 0;
}
static void take_integers(const qn_request *r, int32_t value, int64_t *stride, int32_t *i64)
{
  if (value >= 0) *stride = r->value[value].stride[0], *i64 = r->value[value].dtype == QN_I64;
}
static qn_status refused(const qn_request *r, qn_prepared *out)
{
  static const struct { uint32_t role; const char *name; } not_taken[] = {
    { QN_ROLE_ATTENTION_FORWARD_Q_SCALE, "q_scale" }, { QN_ROLE_ATTENTION_FORWARD_K_SCALE, "k_scale" },
    { QN_ROLE_ATTENTION_FORWARD_V_SCALE, "v_scale" }, { QN_ROLE_ATTENTION_FORWARD_Y_SCALE, "y_scale" },
    { QN_ROLE_ATTENTION_FORWARD_AMAX, "amax" },
  };
  const qn_value *q = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_Q), *k = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_K),
                 *v = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_V), *y = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_Y);
  if (r->device->arch_major < 8)
    return qn_refuse(out, "compute capability 8.0 or above", "", "8.0", "%d.%d", (int)r->device->arch_major, (int)r->device->arch_minor);
  if (q->dtype != QN_BF16 && q->dtype != QN_F16 && q->dtype != QN_F32)
    return qn_refuse(out, "operands of 16 bits or f32", "q", "bf16, f16 or f32", "%s", qn_kit_name(q->dtype));
  if (k->dtype != q->dtype || (v && v->dtype != q->dtype))
    return qn_refuse(out, "operands of one dtype", "k", "q's", "%s", qn_kit_name(k->dtype));
  if (y->dtype != q->dtype && y->dtype != QN_F32) return qn_refuse(out, "y as q, or f32", "y", "f32", "%s", qn_kit_name(y->dtype));
  for (size_t i = 0; i < sizeof not_taken / sizeof *not_taken; i++)
    if (role(r, not_taken[i].role) >= 0) return qn_refuse(out, "operands without scales", not_taken[i].name, "none", "%s", "one");
  if (role(r, QN_ROLE_ATTENTION_FORWARD_MAX) >= 0 && role(r, QN_ROLE_ATTENTION_FORWARD_SINK) >= 0)
    return qn_refuse(out, "the largest score or a sink, not both", "max", "none", "%s", "one");
  return QN_OK;
}

/* Fewer tiles than run at once: parts, of at least four blocks of keys in all, as many as still run at once, for a second wave of a few
 * would take as long as the first. Tiles of few rows, whose parts are cheap to join, have parts of one block, others of two. */
static int32_t splits_for(const qn_request *r, bool few, int64_t room, int64_t tiles, int64_t blocks, int64_t bytes)
{
  if (r->demands->determinism >= QN_DET_BATCH || tiles >= room || blocks < 4) return 1;
  int64_t n = qn_min_i64(qn_min_i64(room / qn_max_i64(1, tiles), few ? blocks : blocks / 2), CUDA_ATTENTION_SPLITS);
  while (n > 1 && (uint64_t)(n * bytes) > r->demands->workspace_limit) n--;
  return (int32_t)qn_max_i64(1, n);
}

static const cuda_attention_many_kernel *kernels_for(const qn_request *r, uint32_t dtype, bool wide)
{
  const bool hopper = r->device->arch_major == 9 && r->device->arch_minor == 0;
  if (dtype == QN_F32) return cuda_attention_many_f32;
  if (dtype == QN_BF16) return !wide ? cuda_attention_many_bf16 : hopper ? cuda_attention_wide_wgmma_bf16 : cuda_attention_wide_bf16;
  return !wide ? cuda_attention_many_f16 : hopper ? cuda_attention_wide_wgmma_f16 : cuda_attention_wide_f16;
}

/* ---- few rows: attention_few.cuh ---------------------------------------------------------------------------------------- */

/* NULL: none takes it. */
static const cuda_few_kernel *few_for(const qn_request *r, const state *st)
{
  const cuda_attention_many *a = &st->a;
  const qn_value *q = &r->value[st->q];
  const bool changed = a->change.valued || st->mask >= 0, paged = st->pages >= 0;
  const int32_t form = paged ? CUDA_FEW_PAGED : changed ? CUDA_FEW_CHANGED : CUDA_FEW_PLAIN;
  if (q->dtype == QN_F32 || (changed && paged) || st->blocks >= 0 || a->threshold || st->q_starts >= 0 || st->kv_starts >= 0 ||
      a->batch > 65535 || r->value[st->k].dim[1] > 65535 || qn_max_i64(a->k_stride[2], a->v_stride[2]) > INT32_MAX / 2)
    return NULL;
  for (const cuda_few_kernel *kernel = q->dtype == QN_BF16 ? cuda_few_bf16 : cuda_few_f16; kernel->d; kernel++)
    if ((int64_t)a->queries * a->group <= kernel->rows && kernel->form == form && (!paged || (a->n_pages && a->page % kernel->keys == 0)) &&
        (kernel->whole ? kernel->d == a->d && kernel->d == a->dv : kernel->d >= a->d && kernel->d >= a->dv))
      return kernel;
  return NULL;
}

/* Warps of a block that has a multiprocessor to share: those with which the last round of blocks leaves the fewest of its places idle, of
 * equals the more, up to a third of them (64 x 12 heads of 64 elements, 1024 keys: 2 warps 52 us, 4 warps 49). */
static int64_t few_room(int64_t blocks, int64_t units, int64_t most)
{
  const int64_t beside = qn_max_i64(1, qn_ceil_div(blocks, units));
  if (beside <= 3) return most / beside;
  int64_t room = 1;
  double best = 0;
  for (int64_t w = 1; w <= most / 3; w++) {
    const double busy = (double)(blocks * w) / (double)qn_ceil_div(blocks, units * (most / w));
    if (busy >= best * 0.999) best = busy, room = w;
  }
  return room;
}
/* Nanoseconds of so many parts of each head's keys; warps: of a block. A multiprocessor's warps each take a step, and then the next. To join
 * parts is a round trip through memory, and one block reads them all. (One H200.) */
static double few_time(const qn_request *r, const cuda_few_kernel *kernel, int64_t heads, int64_t rows, int64_t steps, double bytes,
                       int64_t parts, int64_t *warps)
{
  const int64_t units = r->device->units, most = kernel->threads / 32, blocks = heads * parts, room = few_room(blocks, units, most),
                beside = qn_min_i64(most / room, qn_ceil_div(blocks, units)), each = qn_ceil_div(steps, parts), rounds = qn_ceil_div(each, room),
                active = qn_ceil_div(each, rounds), pieces = qn_ceil_div(rows * kernel->d, 128);
  *warps = qn_max_i64(active, qn_min_i64(pieces, room));    /* more of them join */
  const double waves = (double)qn_ceil_div(blocks, units * (most / room)), read = bytes / 4300 + 500,
               stepping = waves * (double)rounds * (700 + 70 * (double)(active * beside)) * (kernel->form == CUDA_FEW_CHANGED ? 1.5 : 1),
               joining = 1200 + 350 * (double)(qn_ceil_div(pieces, *warps) * qn_ceil_div(parts, 16)) + (double)(parts * rows * kernel->d) / 17;
  return 2700 + sqrt(sqrt(pow(stepping, 4) + pow(read, 4))) + (parts > 1 ? joining : 0);
}

static qn_status prepare_few(const qn_request *r, state *st, const cuda_few_kernel *kernel, qn_prepared *out)
{
  cuda_attention_many *a = &st->a;
  const int64_t rows = (int64_t)a->queries * a->group, key_heads = r->value[st->k].dim[1], heads = a->batch * key_heads,
                window = a->left < 0 || (a->right < 0 && a->top_left) ? a->keys : (int64_t)a->left + a->queries + qn_max_i64(0, a->right),
                seen = qn_min_i64(a->keys, window), steps = qn_max_i64(1, qn_ceil_div(seen, kernel->keys)),
                part = 4 * cuda_few_words((int32_t)rows, kernel->d);
  const double bytes = (double)(heads * seen) * (st->v == st->k ? a->d : a->d + a->dv) * 2;
  const bool invariant = r->demands->determinism >= QN_DET_BATCH;
  int64_t warps = 0, of = 0;
  out->estimate = few_time(r, kernel, heads, rows, steps, bytes, 1, &warps);
  a->splits = 1;
  for (int64_t n = 2; !invariant && n <= qn_min_i64(steps, CUDA_ATTENTION_SPLITS); n++) {
    const double time = few_time(r, kernel, heads, rows, steps, bytes, n, &of);
    if ((uint64_t)(heads * n * part) <= r->demands->workspace_limit && time < out->estimate)
      out->estimate = time, a->splits = (int32_t)n, warps = of;
  }
  if (invariant) warps = 8;               /* whatever the batch */
  else out->traits &= ~(uint64_t)QN_TRAIT_BATCH_INVARIANT;
  a->by_splits = cuda_divide_by(a->splits);
  if (a->splits > 1) out->workspace = (uint64_t)(heads * a->splits * part), out->counters = (uint64_t)heads * 4;
  st->kernel = kernel->function, st->threads = (int32_t)warps * 32, st->shared = (int32_t)(warps * part);
  st->grid = (dim3){ (unsigned)a->splits, (unsigned)key_heads, (unsigned)a->batch };
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC, .store = r->value[st->q].dtype };        /* weights */
  out->math = QN_MATH_STRICT;
  return cuda_keep(out, st, sizeof *st);
}

/* ---- all others ---------------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_attention *attr = r->op[0].attr;
  qn_status s = refused(r, out);
  if (s) return s;
  state st = { .q = role(r, QN_ROLE_ATTENTION_FORWARD_Q), .k = role(r, QN_ROLE_ATTENTION_FORWARD_K),
               .v = role(r, QN_ROLE_ATTENTION_FORWARD_V), .y = role(r, QN_ROLE_ATTENTION_FORWARD_Y),
               .lse = role(r, QN_ROLE_ATTENTION_FORWARD_LSE), .max = role(r, QN_ROLE_ATTENTION_FORWARD_MAX),
               .sink = role(r, QN_ROLE_ATTENTION_FORWARD_SINK),
               .slopes = role(r, QN_ROLE_ATTENTION_FORWARD_SLOPES), .bias = role(r, QN_ROLE_ATTENTION_FORWARD_BIAS),
               .mask = role(r, QN_ROLE_ATTENTION_FORWARD_MASK), .blocks = role(r, QN_ROLE_ATTENTION_FORWARD_BLOCKS),
               .q_lengths = role(r, QN_ROLE_ATTENTION_FORWARD_Q_LENGTHS), .kv_lengths = role(r, QN_ROLE_ATTENTION_FORWARD_KV_LENGTHS),
               .q_starts = role(r, QN_ROLE_ATTENTION_FORWARD_Q_STARTS), .kv_starts = role(r, QN_ROLE_ATTENTION_FORWARD_KV_STARTS),
               .pages = role(r, QN_ROLE_ATTENTION_FORWARD_PAGES),
               .seed = cuda_attention_key_read(r, QN_ROLE_ATTENTION_FORWARD_SEED),
               .offset = cuda_attention_key_read(r, QN_ROLE_ATTENTION_FORWARD_OFFSET) };
  cuda_attention_many *a = &st.a;
  if (st.v < 0) st.v = st.k;
  if ((s = take_rows(r, st.q, "q", a->q_stride, out)) || (s = take_rows(r, st.k, "k", a->k_stride, out)) ||
      (s = take_rows(r, st.v, "v", a->v_stride, out)) || (s = take_rows(r, st.y, "y", a->y_stride, out)))
    return s;
  if (st.bias >= 0 && r->value[st.bias].dtype == QN_F64) return qn_refuse(out, "a bias of at most 32 bits", "bias", "f32", "%s", "f64");

  const qn_value *q = &r->value[st.q], *k = &r->value[st.k], *y = &r->value[st.y];
  const int64_t d = q->dim[3], dv = y->dim[3], most = 1 << 29,
                keys = st.pages >= 0 ? r->value[st.pages].dim[1] * k->dim[2] : k->dim[2],
                batch = st.q_starts >= 0 ? r->value[st.q_starts].dim[0] - 1 : q->dim[0],
                queries_each = st.q_starts >= 0 ? qn_ceil_div(q->dim[2], qn_max_i64(1, batch)) : q->dim[2];
  const int64_t group = q->dim[1] / k->dim[1];
  const cuda_attention_many_kernel *kernel = kernels_for(r, q->dtype, qn_max_i64(d, dv) > 256);
  while (kernel->d && (kernel->d < d || kernel->dv < dv || (!kernel->own && st.v != st.k) ||
                       (kernel->rows < queries_each * group && kernel[1].rows > kernel->rows)))
    kernel++;
  if (!kernel->d)
    return qn_refuse(out, "at most 256 elements of a key and of a value, or in 16 bits 576 and 512", "q", "that many", "%lld and %lld",
                     (long long)d, (long long)dv);
  if (attr->dropout != 0 && q->dtype == QN_F32 && kernel->d > 128)
    return qn_refuse(out, "dropout of f32 up to 128 elements of a key and of a value", "q", "that many", "%lld and %lld", (long long)d,
                     (long long)dv);
  if (dv % piece(q))
    return qn_refuse(out, "values in pieces of 16 bytes", "v", piece(q) == 8 ? "a multiple of 8" : "a multiple of 4", "%lld",
                     (long long)dv);
  /* Ragged, a head has the tiles of all sequences and of what lies outside of them, each beginning one; busy: those that sequences of
   * equal length fill. */
  const bool ragged = st.q_starts >= 0;
  const int64_t rows = q->dim[2] * group, tiles = ragged ? rows / kernel->rows + batch + 2 : qn_ceil_div(rows, kernel->rows),
                all = tiles * (ragged ? 1 : batch) * k->dim[1],
                busy = ragged ? batch * k->dim[1] * qn_ceil_div(qn_ceil_div(rows, qn_max_i64(1, batch)), kernel->rows) : all,
                mean_keys = st.kv_starts >= 0 ? qn_ceil_div(keys, qn_max_i64(1, batch)) : keys;
  if (rows > most || keys > most || all * 64 > INT32_MAX)
    return qn_refuse(out, "fewer than 2^29 queries of a group, keys, and fewer than 2^25 tiles", "q", "fewer", "%lld", (long long)all);
  if (kernel->shared > cuda_room(r))
    return qn_refuse(out, "tiles in shared memory", "", "that many bytes", "%d", (int)kernel->shared);

  a->batch = (int32_t)batch, a->heads = (int32_t)q->dim[1], a->group = (int32_t)group;
  a->queries = (int32_t)q->dim[2], a->keys = (int32_t)keys, a->d = (int32_t)d, a->dv = (int32_t)dv;
  a->left = attr->left < 0 || attr->left >= most ? -1 : (int32_t)attr->left;
  a->right = attr->right < 0 || attr->right >= most ? -1 : (int32_t)attr->right;
  a->top_left = attr->align == QN_ALIGN_TOP_LEFT, a->y_f32 = y->dtype == QN_F32;
  a->block_q = (int32_t)qn_min_i64(attr->block_q, most), a->block_kv = (int32_t)qn_min_i64(attr->block_kv, most);
  if (st.pages >= 0) {
    const qn_value *p = &r->value[st.pages];
    a->n_pages = (int32_t)k->dim[0], a->page = (int32_t)k->dim[2], a->pages_i64 = p->dtype == QN_I64;
    a->pages_stride[0] = p->stride[0], a->pages_stride[1] = p->stride[1];
    a->by_page = cuda_divide_by(qn_max_i64(1, a->page)), a->k_stride[2] = k->stride[2], a->v_stride[2] = r->value[st.v].stride[2];
  }
  take_plane(r, st.lse, a->lse_stride), take_plane(r, st.max, a->max_stride);
  cuda_attention_spread_read(r, st.blocks, &a->blocks);
  take_integers(r, st.q_lengths, &a->q_lengths_stride, &a->q_lengths_i64);
  take_integers(r, st.kv_lengths, &a->kv_lengths_stride, &a->kv_lengths_i64);
  take_integers(r, st.q_starts, &a->q_starts_stride, &a->q_starts_i64);
  take_integers(r, st.kv_starts, &a->kv_starts_stride, &a->kv_starts_i64);
  if (st.sink >= 0) a->sink_stride = r->value[st.sink].stride[0];

  a->threshold = (uint32_t)(attr->dropout * 65536 + 0.5), a->kept = a->threshold < 65536 ? (float)(65536.0 / (65536 - a->threshold)) : 0;
  const float scale = (float)(attr->scale == 0 ? 1 / sqrt((double)d) : attr->scale);
  cuda_attention_change_read(r, st.bias, st.mask, st.slopes, (float)attr->softcap, scale, ragged ? 0 : keys, &a->change);
  const bool scored = a->change.valued || st.mask >= 0 || st.blocks >= 0, plain = !scored && !a->threshold;
  a->unit = (float)((a->change.valued ? 1 : scale) * 1.44269504088896340736);
  a->tiles = (int32_t)tiles;
  a->by_group = cuda_divide_by(qn_max_i64(1, group));
  const cuda_few_kernel *few = few_for(r, &st);
  if (few) return prepare_few(r, &st, few, out);

  const int64_t part = (kernel->dv * kernel->rows + 4 * kernel->threads) * 4;
  const int64_t room = (kernel->d > 128 ? 1 : kernel->rows == 16 ? 3 : 2) * (int64_t)r->device->units;        /* blocks at once */
  const int64_t steps = qn_ceil_div(mean_keys, kernel->bn), of_one = qn_max_i64(1, batch);      /* tiles of one sequence: busy / of_one */
  a->splits = splits_for(r, kernel->rows == 16, room, busy, steps, all * part);
  st.kernel = plain ? kernel->plain : kernel->any, st.shared = kernel->shared, st.threads = kernel->threads;
  st.grid = (dim3){ (unsigned)(all * a->splits), 1, 1 };
  a->by_splits = cuda_divide_by(a->splits);
  if (a->splits > 1) out->workspace = (uint64_t)(all * a->splits * part), out->counters = (uint64_t)all * 4;
  /* A sequence alone has fewer tiles, and so may have parts where the batch has none. */
  if (a->splits > 1 || splits_for(r, kernel->rows == 16, room, busy / of_one, steps, all / of_one * part) > 1)
    out->traits &= ~(uint64_t)QN_TRAIT_BATCH_INVARIANT;
  const bool f32 = q->dtype == QN_F32;
  out->numerics = (qn_numerics){ .accumulator = f32 ? QN_ACC_3XTF32 : QN_ACC_F32_TC, .store = f32 ? 0 : q->dtype };        /* weights */
  out->math = f32 ? QN_MATH_F32 : QN_MATH_STRICT;
  /* About half of what the device multiplies by mma.sync, of whole blocks of keys; a third of that where scores are changed. Keys are read
   * once. */
  const bool half = a->right >= 0 && a->queries > 1;
  const double blocks = (double)qn_ceil_div(mean_keys, kernel->bn), seen = (half ? 0.5 : 1) * (double)mean_keys,
               products = (double)busy * kernel->rows * (half ? 0.5 * blocks + 0.5 : blocks) * kernel->bn * 2 * (kernel->d + kernel->dv),
               bytes = (double)batch * (double)k->dim[1] * seen * (double)(st.v == st.k ? d : d + dv) * (f32 ? 4 : 2);
  const double multiplied = products / (plain ? f32 ? 40e3 : 110e3 : f32 ? 30e3 : 60e3), fill = (double)busy * a->splits / (double)room,
               idle = fill < 1 ? 1 : ceil(fill) / fill * 0.5 + 0.5,         /* blocks of the last round have more of the memory */
               read = bytes / (kernel->rows == 16 ? 3900 / idle : 2500);
  out->estimate = 5000 + (kernel->rows == 16 ? (multiplied > read ? multiplied : read) : multiplied + read) + (a->splits > 1 ? 5000 : 0);
  return cuda_keep(out, &st, sizeof st);
}

/* ---- build and run ------------------------------------------------------------------------------------------------------- */

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  (void)r;
  const qn_status s = cuda_waits_itself(st->kernel, &st->early);
  return s ? s : cuda_check(cudaFuncSetAttribute(st->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, st->shared),
                            "cudaFuncSetAttribute");
}

static void *at(const qn_launch *launch, int32_t value) { return value < 0 ? NULL : launch->ptr[value]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_attention_many a = st->a;
  a.q = at(launch, st->q), a.k = at(launch, st->k), a.v = at(launch, st->v), a.y = at(launch, st->y);
  a.lse = at(launch, st->lse), a.max = at(launch, st->max), a.sink = at(launch, st->sink);
  a.change.bias.p = at(launch, st->bias), a.change.mask.p = at(launch, st->mask), a.change.slopes = at(launch, st->slopes);
  a.blocks.p = at(launch, st->blocks);
  a.q_lengths = at(launch, st->q_lengths), a.kv_lengths = at(launch, st->kv_lengths), a.q_starts = at(launch, st->q_starts);
  a.kv_starts = at(launch, st->kv_starts), a.pages = at(launch, st->pages);
  a.seed = cuda_attention_key_at(st->seed, launch), a.offset = cuda_attention_key_at(st->offset, launch);
  a.parts = launch->workspace, a.tickets = launch->counters;
  if (!st->grid.x || !st->grid.y || !st->grid.z) return QN_OK;
  void *args[] = { &a };
  return cuda_launch_kernel(st->kernel, st->early, st->grid, (uint32_t)st->threads, (uint32_t)st->shared, args,
                            launch->stream, "attention_mma");
}

static const qn_engine row = { .name = "mma", .op = QN_OP_ATTENTION_FORWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
                               .prepare = prepare, .build = build, .run = run, .release = cuda_release };
CUDA_ENGINES(attention_mma) = { &row, 1 };
