/* attention_wgmma.c -- attention on Hopper's Tensor Cores: what the kernels of attention_wgmma.cuh take, their launch.
 *
 * bf16 and f16 up to 256 elements of a key and of a value (zeros fill up to the next shape), any number of queries, keys and heads,
 * groups of query heads, causal masks and windows, lengths, ragged sequences, a sink, and of sequences that are not ragged bias, mask,
 * slopes, softcap. Variants are tiles: queries by keys of a block. Not taken here: blocks, dropout, paged tensors, scales. */
#include "attention_wgmma.h"
#include "engines.h"
#include "kit/early.h"
#include "kit/map.h"

enum { Q, K, V, N_MAPS, BIAS = N_MAPS };
enum { PLAIN, CHANGED, TILES, TERMS };    /* how scores change */
typedef struct state {
  cuda_attention a;                       /* all but addresses */
  const cuda_attention_kernel *kernel;
  const void *function;
  const cuda_driver *driver;
  qn_value tensor[N_MAPS + 1];            /* and bias */
  int32_t  value[N_MAPS], y, lse, max, sink, q_lengths, kv_lengths, q_starts, kv_starts, bias, mask, slopes; /* indices; -1: absent */
  int32_t  grid;
} state;

/* ---- prepare --------------------------------------------------------------------------------------------------------- */

static int32_t role(const qn_request *r, uint32_t which) { return qn_role(&r->op[0], which); }

static bool simple(const qn_request *r, const qn_attention *attr, qn_prepared *out)
{
  static const struct { uint32_t role; const char *name; } not_taken[] = {
    { QN_ROLE_ATTENTION_FORWARD_BLOCKS, "blocks" }, { QN_ROLE_ATTENTION_FORWARD_PAGES, "pages" },
    { QN_ROLE_ATTENTION_FORWARD_Q_SCALE, "q_scale" }, { QN_ROLE_ATTENTION_FORWARD_K_SCALE, "k_scale" },
    { QN_ROLE_ATTENTION_FORWARD_V_SCALE, "v_scale" }, { QN_ROLE_ATTENTION_FORWARD_Y_SCALE, "y_scale" },
    { QN_ROLE_ATTENTION_FORWARD_AMAX, "amax" },
  };
  for (size_t i = 0; i < sizeof not_taken / sizeof *not_taken; i++)
    if (role(r, not_taken[i].role) >= 0) {
      qn_refuse(out, "neither blocks, nor paged tensors, nor scales", not_taken[i].name, "none", "%s", "one");
      return false;
    }
  if (attr->dropout != 0) qn_refuse(out, "weights without dropout", "", "dropout=0", "dropout=%g", attr->dropout);
  else return true;
  return false;
}

/* TMA: elements side by side, other strides of 16 bytes, an address likewise. */
static bool loadable(const qn_value *v, const char *name, qn_prepared *out)
{
  if (v->stride[3] != 1 && v->dim[3] > 1) {
    qn_refuse(out, "elements of a row side by side", name, "stride 1 of dim 3", "%lld", (long long)v->stride[3]);
    return false;
  }
  for (int i = 0; i < 3; i++)
    if (v->dim[i] > 1 && (v->stride[i] % 8 || v->stride[i] < 1)) {
      qn_refuse(out, "strides of multiples of 16 bytes", name, "a multiple of 8", "stride %lld", (long long)v->stride[i]);
      return false;
    }
  if (v->align >= 16) return true;
  qn_refuse(out, "16-byte loads", name, "aligned to 16 bytes", "%u", v->align);
  return false;
}

static void strides_of(int64_t to[3], const qn_value *v)
{
  for (int i = 0; i < 3; i++) to[i] = v->dim[i] > 1 ? v->stride[i] : 0;
}

/* Of two tiles for the same elements the one of more keys has fewer steps, but begins later and does more in vain where masks end: it is
 * for many keys, and a diagonal asks for more of them. The one of fewer queries, which costs 0.83 as much, is for those that leave less of
 * it idle, or less of the last round (197 queries 62 to 57 us, 448 72 to 62). With tiles of biases it costs two thirds: the instructions
 * that add them are what both wait for. */
static const char *const tiles_offered[] = { "192x128", "128x128", "128x176", "128x80", "128x64", NULL };
static const cuda_attention_kernel *choose(const qn_request *r, const qn_attention *attr, const qn_value *q, int64_t dv, int64_t queries,
                                           int64_t keys, int change)
{
  static const cuda_attention_kernel *const kernels[2][4] = {
    { cuda_attention_f16, cuda_attention_changed_f16, cuda_attention_tiles_f16, cuda_attention_terms_f16 },
    { cuda_attention_bf16, cuda_attention_changed_bf16, cuda_attention_tiles_bf16, cuda_attention_terms_bf16 },
  };
  const cuda_attention_kernel *kernel = kernels[q->dtype == QN_BF16][change];
  while (kernel->d && (kernel->d < q->dim[3] || kernel->dv < dv || (r->variant && strcmp(kernel->tile, r->variant)))) kernel++;
  const cuda_attention_kernel *next = kernel + 1;
  if (r->variant || !kernel->d || next->d != kernel->d || next->dv != kernel->dv) return kernel;
  if (next->bm == kernel->bm)
    return attr->left < 0 && queries > kernel->bm && keys >= (attr->right < 0 ? 4096 : 8192) ? next : kernel;
  const int64_t heads = q->dim[0] * q->dim[1], rounds[2] = { qn_ceil_div(heads * qn_ceil_div(queries, kernel->bm), r->device->units),
                                                             qn_ceil_div(heads * qn_ceil_div(queries, next->bm), r->device->units) };
  const double cost = change == TILES ? 0.66 : 0.83 * 1.05;
  return queries <= 64 || (queries > next->bm && (double)rounds[1] * cost < (double)rounds[0]) ? next : kernel;
}

/* One query of each head, and no mask to tell by the query's place: a group's heads, which share keys, are queries of one head. */
static void by_groups(qn_value *v, int64_t group)
{
  v->dim[2] = group, v->stride[2] = v->stride[1], v->dim[1] /= group, v->stride[1] *= group;
}
static void spread_by_groups(cuda_attention_spread *t, int64_t group) { t->stride[2] = t->stride[1], t->stride[1] *= group; }

/* A bias of whole rows of keys for each query, which TMA takes. */
static bool in_tiles(const cuda_attention_change *c, const qn_value *q, const qn_value *bias)
{
  if (!bias || bias->dtype != q->dtype || bias->align < 16) return false;
  for (int i = 0; i < 3; i++)
    if (c->bias.stride[i] < 0 || c->bias.stride[i] % 8) return false;
  return c->bias.stride[2] && c->bias.stride[3] == 1;
}
/* One for all queries: biases and masks of keys, which products add. Scores are multiplied by the scale thereafter. */
static bool in_terms(const cuda_attention_change *c)
{
  return !c->bias.stride[2] && !c->mask.stride[2] && c->scale > 0x1p-14f && c->scale < 0x1p14f;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_attention *attr = r->op[0].attr;
  const qn_value *q = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_Q), *k = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_K),
                 *v = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_V), *y = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_Y);
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "a device of compute capability 9.0", "", "9.0", "%d.%d", (int)r->device->arch_major, (int)r->device->arch_minor);
  if (q->dtype != QN_BF16 && q->dtype != QN_F16)
    return qn_refuse(out, "16-bit operands", "q", "bf16 or f16", "%s", qn_kit_name(q->dtype));
  if (k->dtype != q->dtype || (v && v->dtype != q->dtype))
    return qn_refuse(out, "operands of one dtype", "k", "q's", "%s", qn_kit_name(k->dtype));
  if (y->dtype != q->dtype && y->dtype != QN_F32) return qn_refuse(out, "y as q, or f32", "y", "f32", "%s", qn_kit_name(y->dtype));
  if (!simple(r, attr, out)) return QN_UNSUPPORTED;

  state st = { .value = { role(r, QN_ROLE_ATTENTION_FORWARD_Q), role(r, QN_ROLE_ATTENTION_FORWARD_K),
                          role(r, QN_ROLE_ATTENTION_FORWARD_V) },
               .y = role(r, QN_ROLE_ATTENTION_FORWARD_Y), .lse = role(r, QN_ROLE_ATTENTION_FORWARD_LSE),
               .max = role(r, QN_ROLE_ATTENTION_FORWARD_MAX), .sink = role(r, QN_ROLE_ATTENTION_FORWARD_SINK),
               .q_lengths = role(r, QN_ROLE_ATTENTION_FORWARD_Q_LENGTHS), .kv_lengths = role(r, QN_ROLE_ATTENTION_FORWARD_KV_LENGTHS),
               .q_starts = role(r, QN_ROLE_ATTENTION_FORWARD_Q_STARTS), .kv_starts = role(r, QN_ROLE_ATTENTION_FORWARD_KV_STARTS),
               .bias = role(r, QN_ROLE_ATTENTION_FORWARD_BIAS), .mask = role(r, QN_ROLE_ATTENTION_FORWARD_MASK),
               .slopes = role(r, QN_ROLE_ATTENTION_FORWARD_SLOPES) };
  const bool changed = st.bias >= 0 || st.mask >= 0 || st.slopes >= 0 || attr->softcap > 0;
  qn_value of_keys = *k;                  /* values that are the first elements of keys */
  of_keys.dim[3] = attr->value_size;
  if (!v) v = &of_keys, st.value[V] = st.value[K];
  if (st.max >= 0 && st.sink >= 0) return qn_refuse(out, "the largest score or a sink, not both", "max", "none", "%s", "one");

  if (changed && (st.q_starts >= 0 || st.kv_starts >= 0))
    return qn_refuse(out, "ragged sequences or what changes single scores, not both", "q_starts", "none", "%s", "one");
  if (st.bias >= 0 && r->value[st.bias].dtype == QN_F64) return qn_refuse(out, "a bias of at most 32 bits", "bias", "f32", "%s", "f64");

  /* Ragged, tiles are chosen and counted as for sequences of equal length. */
  const qn_value *starts[2] = { cuda_value(r, QN_ROLE_ATTENTION_FORWARD_Q_STARTS), cuda_value(r, QN_ROLE_ATTENTION_FORWARD_KV_STARTS) };
  const int64_t d = q->dim[3], dv = v->dim[3], sequences = starts[0] ? starts[0]->dim[0] - 1 : q->dim[0],
                queries_each = starts[0] ? qn_ceil_div(q->dim[2], qn_max_i64(1, sequences)) : q->dim[2],
                keys_each = starts[1] ? qn_ceil_div(k->dim[2], qn_max_i64(1, sequences)) : k->dim[2];

  /* What follows sees these. */
  qn_value qs = *q, ys = *y, lse = { 0 }, max = { 0 };
  if (st.lse >= 0) lse = r->value[st.lse];
  if (st.max >= 0) max = r->value[st.max];
  int64_t right = attr->right;
  cuda_attention *a = &st.a;
  a->scale = (float)(attr->scale == 0 ? 1 / sqrt((double)d) : attr->scale);
  cuda_attention_change_read(r, st.bias, st.mask, st.slopes, (float)attr->softcap, a->scale, k->dim[2], &a->change);
  if (!starts[0] && !starts[1] && qs.dim[2] == 1 && qs.dim[1] > k->dim[1] && st.sink < 0 && st.q_lengths < 0 && st.slopes < 0 &&
      attr->left < 0 && (right < 0 || attr->align != QN_ALIGN_TOP_LEFT)) {
    const int64_t group = qs.dim[1] / k->dim[1];
    by_groups(&qs, group), by_groups(&ys, group), by_groups(&lse, group), by_groups(&max, group);
    spread_by_groups(&a->change.bias, group), spread_by_groups(&a->change.mask, group);
    right = -1;
  }
  const qn_value *bias = cuda_value(r, QN_ROLE_ATTENTION_FORWARD_BIAS);
  const int change = !changed ? PLAIN : st.slopes >= 0 || attr->softcap > 0 ? CHANGED : in_terms(&a->change) ? TERMS
                   : st.mask < 0 && in_tiles(&a->change, q, bias) ? TILES : CHANGED;
  const cuda_attention_kernel *kernel = choose(r, attr, q, dv, queries_each, keys_each, change);
  if (!kernel->d)
    return r->variant ? qn_refuse(out, "elements that this tile holds", "q", "fewer", "%lld", (long long)qn_max_i64(d, dv))
                      : qn_refuse(out, "at most 256 elements of a key and of a value", "q", "256", "%lld", (long long)qn_max_i64(d, dv));
  if (dv % 8) return qn_refuse(out, "values in pieces of 16 bytes", "v", "a multiple of 8", "%lld", (long long)dv);
  if (!k->dim[2]) return qn_refuse(out, "tensor maps have no empty dims", "k", "at least one key", "%s", "0");
  if (!loadable(q, "q", out) || !loadable(k, "k", out) || !loadable(v, "v", out) || !loadable(y, "y", out)) return QN_UNSUPPORTED;

  /* Of a head, each sequence begins one, and so does what lies before and behind them. busy: those with rows. */
  const int64_t most = 1 << 29, tiles_m = starts[0] ? qs.dim[2] / kernel->bm + sequences + 2 : qn_ceil_div(qs.dim[2], kernel->bm),
                tiles = tiles_m * qs.dim[0] * qs.dim[1],
                busy = starts[0] ? qn_max_i64(1, sequences) * qs.dim[1] * qn_ceil_div(queries_each, kernel->bm) : tiles;
  if (qs.dim[2] > most || k->dim[2] > most || tiles >= most)
    return qn_refuse(out, "fewer than 2^29 queries, keys and tiles", "q", "fewer", "%lld", (long long)qn_max_i64(tiles, qs.dim[2]));

  a->batch = (int32_t)qs.dim[0], a->heads = (int32_t)qs.dim[1], a->group = (int32_t)(qs.dim[1] / k->dim[1]);
  a->queries = (int32_t)qs.dim[2], a->keys = (int32_t)k->dim[2], a->d = (int32_t)d, a->dv = (int32_t)dv;
  a->left = attr->left < 0 || attr->left >= most ? -1 : (int32_t)attr->left;
  a->right = right < 0 || right >= most ? -1 : (int32_t)right;
  a->top_left = attr->align == QN_ALIGN_TOP_LEFT, a->y_f32 = y->dtype == QN_F32;
  if (change == TERMS) {
    const float unit = exp2f(ceilf(-log2f(a->scale)));
    a->unit = a->change.valued ? unit : 1, a->by_unit = 1 / (a->scale * unit);
  }
  else if (a->change.valued) a->scale = 1;
  if (change == TILES) {
    const int64_t *stride = a->change.bias.stride;
    st.tensor[BIAS] = (qn_value){ .dim = { stride[0] ? a->batch : 1, stride[1] ? a->heads : 1, a->queries, a->keys },
                                  .stride = { stride[0], stride[1], stride[2], 1 } };
  }
  a->scale_log2 = (float)(a->scale * 1.44269504088896340736);
  a->tiles_m = (int32_t)tiles_m, a->tiles = (uint32_t)tiles;
  /* Of what a tile begins with 164 KB at 256 elements, fetched ahead, stood before the copies of the tile before it (57% more time at 512
   * keys); at 128 elements that costs 6% at 512 keys, 1 to 2% at 2048. */
  a->ahead = kernel->d <= 64 || (kernel->d <= 128 && keys_each > 2048);
  /* Sections of equal length: 16 heads leave the multiprocessors no more idle than all would, and tiles that share keys stay close to
   * each other; fewer, where the keys of 16 would crowd the L2 cache. */
  const int64_t heads = qs.dim[0] * qs.dim[1], kept = (16 << 20) / (qn_max_i64(1, keys_each) * (d + dv) * 2) * a->group,
                sections = qn_ceil_div(heads, qn_min_i64(16, qn_max_i64(4, kept)));
  a->section = (int32_t)qn_max_i64(1, qn_ceil_div(heads, qn_max_i64(1, sections)));
  strides_of(a->q_stride, &qs), strides_of(a->k_stride, k), strides_of(a->v_stride, v), strides_of(a->y_stride, &ys);
  if (st.lse >= 0) strides_of(a->lse_stride, &lse);
  if (st.max >= 0) strides_of(a->max_stride, &max);
  if (st.sink >= 0) a->sink_stride = r->value[st.sink].stride[0];
  const qn_value *ql = st.q_lengths >= 0 ? &r->value[st.q_lengths] : NULL, *kl = st.kv_lengths >= 0 ? &r->value[st.kv_lengths] : NULL;
  if (ql) a->q_lengths_stride = ql->stride[0], a->q_lengths_i64 = ql->dtype == QN_I64;
  if (kl) a->kv_lengths_stride = kl->stride[0], a->kv_lengths_i64 = kl->dtype == QN_I64;
  if (starts[0]) a->q_starts_stride = starts[0]->stride[0], a->q_starts_i64 = starts[0]->dtype == QN_I64;
  if (starts[1]) a->kv_starts_stride = starts[1]->stride[0], a->kv_starts_i64 = starts[1]->dtype == QN_I64;
  a->sequences = (int32_t)sequences, st.function = starts[0] || starts[1] ? kernel->ragged : kernel->function;
  st.tensor[Q] = qs, st.tensor[K] = *k, st.tensor[V] = *v, st.kernel = kernel;
  st.grid = (int32_t)qn_min_i64(tiles, r->device->units);

  out->counters = 8;
  out->numerics = (qn_numerics){ .accumulator = QN_ACC_F32_TC, .store = q->dtype };        /* weights, for the second product */
  /* A multiprocessor does about 3700 operations in a nanosecond with 64 elements, else 5200, but a block of keys takes 1.5 us of 64 queries;
   * each tile has an end; half of the products are not made under a causal mask. Keys are read once. */
  const double seen = a->right < 0 ? (double)keys_each : 0.5 * (double)keys_each + kernel->bn,
               keys = a->left < 0 ? seen : (double)qn_min_i64((int64_t)seen, (int64_t)a->left + kernel->bm),
               rows = (double)qn_min_i64(kernel->bm, qn_round_up(starts[0] ? queries_each : a->queries, 64)),
               by_bias = change == TILES ? 1.2 : a->change.bias_pieces ? 1.5 : 3,
               more = change == TERMS ? 1.05 : (st.bias < 0 ? 1 : by_bias) * (st.mask < 0 ? 1 : a->change.mask_pieces ? 1.2 : 2)
                                                 * (attr->softcap > 0 ? 1.5 : 1),
               of_block = kernel->bn * 2 * rows * (kernel->d + kernel->dv) * more / (d > 64 ? 5200 : 3700),
               of_tile = 2200 + keys / kernel->bn * (rows > 64 || of_block > 1500 ? of_block : 1500),
               products = (double)qn_ceil_div(busy, r->device->units) * of_tile,
               bytes = (double)(starts[1] ? sequences : k->dim[0]) * (double)k->dim[1] * keys * (double)(d + dv) * 2,
               rate = (double)qn_min_i64(3900, 42 * busy);
  out->estimate = 4000 + (products > bytes / rate ? products : bytes / rate);
  out->variant = kernel->tile;
  return cuda_keep(out, &st, sizeof st);
}

/* ---- build and run ----------------------------------------------------------------------------------------------------- */

qn_status cuda_attention_map(const cuda_driver *driver, CUtensorMap *map, const qn_value *v, int rows)
{
  const cuuint32_t box[4] = { 64, (cuuint32_t)rows, 1, 1 };
  const int64_t dim[4] = { v->dim[3], v->dim[2], v->dim[1], v->dim[0] }, stride[3] = { v->stride[2], v->stride[1], v->stride[0] };
  return cuda_map_tiled(driver, map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, dim, stride, box, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, "cuda: attention: the driver refused a tensor map");
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = out->state;
  (void)r;
  qn_status s = cuda_driver_get(&st->driver);
  if (!s) s = cuda_attention_map(st->driver, &st->a.q, &st->tensor[Q], st->kernel->bm);
  if (!s) s = cuda_attention_map(st->driver, &st->a.k, &st->tensor[K], st->kernel->bn);
  if (!s) s = cuda_attention_map(st->driver, &st->a.v, &st->tensor[V], st->kernel->bn);
  if (!s && st->tensor[BIAS].dim[3]) s = cuda_attention_map(st->driver, &st->a.bias, &st->tensor[BIAS], 64);
  if (s) return s;
  return cuda_check(cudaFuncSetAttribute(st->function, cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernel->shared),
                    "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  cuda_attention a = st->a;
  void *const *ptr = launch->ptr;
  st->driver->tensor_map_address(&a.q, ptr[st->value[Q]]);
  st->driver->tensor_map_address(&a.k, ptr[st->value[K]]);
  st->driver->tensor_map_address(&a.v, ptr[st->value[V]]);
  a.q_rows = ptr[st->value[Q]], a.k_rows = ptr[st->value[K]], a.v_rows = ptr[st->value[V]], a.y = ptr[st->y];
  if (st->lse >= 0) a.lse = ptr[st->lse];
  if (st->max >= 0) a.max = ptr[st->max];
  if (st->sink >= 0) a.sink = ptr[st->sink];
  if (st->q_lengths >= 0) a.q_lengths = ptr[st->q_lengths];
  if (st->kv_lengths >= 0) a.kv_lengths = ptr[st->kv_lengths];
  if (st->q_starts >= 0) a.q_starts = ptr[st->q_starts];
  if (st->kv_starts >= 0) a.kv_starts = ptr[st->kv_starts];
  a.change.bias.p = st->bias < 0 ? NULL : ptr[st->bias], a.change.mask.p = st->mask < 0 ? NULL : ptr[st->mask];
  a.change.slopes = st->slopes < 0 ? NULL : ptr[st->slopes];
  if (st->tensor[BIAS].dim[3]) st->driver->tensor_map_address(&a.bias, (void *)a.change.bias.p);
  a.counter = launch->counters;
  void *arguments[] = { &a };
  return cuda_launch_kernel(st->function, true, (dim3){ (unsigned)st->grid, 1, 1 }, (uint32_t)st->kernel->threads,
                            (uint32_t)st->kernel->shared, arguments, launch->stream, "attention_wgmma");
}

static const qn_engine row = { .name = "wgmma", .op = QN_OP_ATTENTION_FORWARD, .class_ = QN_CLASS_TUNED,
                               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_TENSOR_CORES,
                               .variants = tiles_offered,
                               .prepare = prepare, .build = build, .run = run, .release = cuda_release };
CUDA_ENGINES(attention_wgmma) = { &row, 1 };
