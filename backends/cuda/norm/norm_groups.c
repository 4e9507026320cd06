/* norm_groups.c -- the host half of norm_groups: layouts, and how items are divided among blocks. */
#include "engines.h"
#include "norm_groups.h"
#include "norm_nests.h"
#include "kit/shared_memory.h"

enum { V = CUDA_GROUPS_V, X = CUDA_GROUPS_X, DX = CUDA_GROUPS_DX, SCALE = CUDA_GROUPS_SCALE, DSCALE = CUDA_GROUPS_DSCALE,
       DSHIFT = CUDA_GROUPS_DSHIFT, MEAN = CUDA_GROUPS_MEAN, RSTD = CUDA_GROUPS_RSTD, TENSORS = CUDA_GROUPS_TENSORS };
enum { STATIC = 16 };                     /* bytes left free for static shared memory */

typedef struct state {
  cuda_groups k;
  int32_t   number[TENSORS], dy;          /* value numbers of the request; -1: absent */
  int32_t   kind, threads;                /* CUDA_GROUPS_CHANNELS or _COLUMNS; threads of a block */
  bool      sums;                         /* dscale or dshift is wanted */
  int64_t   sides;                        /* items with different channels */
  int64_t   shared;                       /* bytes of shared memory of a block */
} state;

/* The channels of an item. */
static int64_t channels_of(const state *s) { return s->kind == CUDA_GROUPS_COLUMNS ? s->k.lanes * V : s->k.channels; }

/* ---- layouts ----------------------------------------------------------------------------------------------------------- */

/* channels: sets `repeat`, the elements that share a parameter; returns the rule that is broken, or NULL. */
static const char *read_parameters(state *s, const qn_nest *walked)
{
  cuda_groups *k = &s->k;
  const int last = walked->rank - 1;
  int64_t repeat = 0;
  for (int t = SCALE; t <= DSHIFT; t++) {
    if (s->number[t] < 0) continue;
    const int64_t from = walked->stride[t][0], to = walked->stride[t][last];
    const int64_t here = from == 0 && to == 0 ? k->length : last == 1 && from == 1 && to == 0 ? walked->dim[1] : 0;
    if (here < V || (repeat && here != repeat))
      return "parameters have an element for a group, or for each of its channels, of 8 or more";
    repeat = here;
  }
  if (k->length % V || k->length > INT32_MAX / 2) return "a group is whole vectors, of fewer than 2^30 elements";
  k->repeat = (int32_t)(repeat ? repeat : k->length);
  s->kind = CUDA_GROUPS_CHANNELS;
  k->channels = (int32_t)(k->length / k->repeat);
  return NULL;
}

/* columns: groups must be neighbouring channels. An item is the fewest groups that give a line whole vectors and, if possible,
 * `least` bytes; the dim that numbers groups then numbers items. */
static const char *read_columns(state *s, const qn_nest *walked, qn_nest *outer, int64_t least)
{
  cuda_groups *k = &s->k;
  const int last = walked->rank - 1, g = outer->rank - 1;
  const int64_t channels = last == 1 ? walked->dim[1] : 1, lines = walked->dim[0];
  if (g < 0 || outer->stride[X][g] != channels || outer->stride[DX][g] != channels ||
      (last == 1 && (walked->stride[X][1] != 1 || walked->stride[DX][1] != 1)))
    return "groups are contiguous, or some neighbouring channels of all lines";
  const int64_t line = channels * outer->dim[g];
  if (line % V || walked->stride[X][0] < line) return "lines are whole vectors";
  for (int t = SCALE; t <= DSHIFT; t++) {
    if (s->number[t] < 0) continue;
    bool ok = walked->stride[t][0] == 0 && (last == 0 || walked->stride[t][1] == 1) && outer->stride[t][g] == channels;
    for (int d = 0; d < g; d++) ok &= outer->stride[t][d] == 0;
    if (!ok) return "parameters have an element for each channel";
  }
  int64_t groups = 1;
  while (groups < outer->dim[g] &&
         (groups * channels * qn_kit_bytes(k->dtype[X]) < least || groups * channels % V || outer->dim[g] % groups))
    groups++;
  if (groups * channels > CUDA_GROUPS_LANES * V) return "items of up to 2048 channels";
  k->lanes = (int32_t)(groups * channels / V), k->groups = (int32_t)groups, k->channels = (int32_t)channels;
  if (lines * line > INT32_MAX / 2) return "an image has fewer than 2^30 elements";
  k->vectors = (int32_t)(lines * k->lanes);
  for (int t = X; t <= DX; t++) k->line_step[t] = walked->stride[t][0];
  k->group_step[0] = outer->stride[MEAN][g], k->group_step[1] = outer->stride[RSTD][g];
  outer->dim[g] /= groups;
  for (int t = 0; t < TENSORS; t++) outer->stride[t][g] *= groups;
  k->items /= groups;
  s->kind = CUDA_GROUPS_COLUMNS;
  return NULL;
}

/* Reads the layout of all tensors but dy; returns the rule that is broken, or NULL. */
static const char *read_layout(const qn_request *r, state *s, int64_t least)
{
  cuda_groups *k = &s->k;
  const qn_value *x = &r->value[s->number[X]];
  cuda_norm_nests nests = cuda_norm_nests_of(r, s->number, DSHIFT + 1, TENSORS);
  const qn_nest walked = nests.walked;
  qn_nest outer = nests.outer;
  k->items = nests.groups, k->length = nests.length, k->repeat = 1;
  if (walked.rank < 1 || walked.rank > 2) return "groups are contiguous, or some neighbouring channels of all lines";
  const int last = walked.rank - 1;
  bool rows = true;
  for (int t = X; t <= DX; t++) rows &= walked.stride[t][last] == 1 && (last == 0 || walked.stride[t][0] == walked.dim[1]);
  k->lanes = k->groups = 1;
  k->vectors = (int32_t)qn_min_i64(INT32_MAX, k->length / V);
  const char *rule = rows ? read_parameters(s, &walked) : read_columns(s, &walked, &outer, least);
  if (rule) return rule;
  if (outer.rank > CUDA_GROUPS_OUTER || k->items > INT32_MAX / 2) return "at most 5 other dims that do not merge, fewer than 2^30 groups";
  k->rank = outer.rank;
  for (int d = 0; d < outer.rank; d++) {
    k->dim[d] = (uint32_t)outer.dim[outer.rank - 1 - d];
    k->by_dim[d] = cuda_divide_by(k->dim[d]);
    for (int t = 0; t < TENSORS; t++) k->stride[t][d] = outer.stride[t][outer.rank - 1 - d];
  }
  k->by_repeat = cuda_divide_by(k->repeat);
  for (int t = SCALE; t <= DSHIFT; t++)
    if (s->number[t] >= 0 && ((k->dtype[t] != k->dtype[X] && k->dtype[t] != QN_F32) || r->value[s->number[t]].align < 16))
      return "parameters of x's dtype or f32, aligned to 16 bytes";
  for (int t = X; t <= DX; t++) {
    bool whole = r->value[s->number[t]].align >= 16 && k->line_step[t] % V == 0 && r->value[s->number[t]].dtype == x->dtype;
    for (int d = 0; d < outer.rank; d++) whole &= k->stride[t][d] % V == 0;
    if (!whole) return "x and dx of one dtype, in whole vectors aligned to 16 bytes";
    int64_t span = 0;
    for (int d = 0; d < walked.rank; d++) span += (walked.dim[d] - 1) * walked.stride[t][d];
    if (span >= INT32_MAX) return "an item spans fewer than 2^31 elements";
  }
  return NULL;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------ */

/* Shared memory of a block beside its vectors: for the exchange between threads and between blocks. */
static int64_t fixed_bytes(const state *s)
{
  const cuda_groups *k = &s->k;
  const int64_t told = cuda_team_shared(&k->team), parts = k->team.parts;
  if (s->kind == CUDA_GROUPS_COLUMNS)
    return told + 4 * (cuda_groups_exchange(k->lanes) + 2 * k->groups * (int64_t)(2 + (parts > 1 ? parts : 0)));
  return told + 8 * (k->channels * (int64_t)k->pieces + parts + k->channels);
}

/* unit: lanes that sum a channel's vectors together; pieces: units per channel, where a block has more units than channels. */
static void share_channels(state *s)
{
  cuda_groups *k = &s->k;
  const int64_t vectors = qn_ceil_div(k->repeat, V);
  k->unit = 1;
  while (k->unit < 32 && k->unit * 2 <= vectors) k->unit *= 2;
  k->pieces = (int32_t)qn_max_i64(1, qn_min_i64(s->threads / k->unit / k->channels, qn_ceil_div(vectors, k->unit)));
}

/* Divides items into `parts`; true if an SM has room for `resident` blocks, each with one part. */
static bool fits(state *s, const qn_device *device, int64_t resident, int64_t parts, bool cluster)
{
  cuda_groups *k = &s->k;
  const bool columns = s->kind == CUDA_GROUPS_COLUMNS;
  const int64_t unit = columns ? k->lanes : parts > 1 ? 32 : 1;       /* channels: multiples of cache lines */
  const int32_t most = columns ? CUDA_GROUPS_COLUMNS_THREADS : CUDA_GROUPS_THREADS;
  k->share = (int32_t)(qn_ceil_div(qn_ceil_div(k->vectors, parts), unit) * unit);
  k->team = (cuda_team){ .parts = (int32_t)qn_ceil_div(k->vectors, k->share), .each = k->groups, .turns = 2, .cluster = cluster };
  s->threads = columns ? most : 32;
  while (s->threads < most && k->share > 8 * s->threads) s->threads *= 2;
  k->active = s->threads / k->lanes * k->lanes;
  share_channels(s);
  s->shared = fixed_bytes(s) + (int64_t)2 * V * qn_kit_bytes(k->dtype[X]) * k->share;
  const bool stay = parts > 1 && !cluster;                  /* blocks that exchange through global memory must be resident, and persist */
  k->team.teams = (int32_t)(stay ? qn_min_i64(k->items, device->units * resident / k->team.parts) : k->items);
  return s->shared <= qn_min_i64((int64_t)device->shared_per_unit / resident - 1024, (int64_t)device->shared_per_block) - STATIC &&
         k->team.teams > 0 && k->team.teams * (int64_t)k->team.parts <= INT32_MAX;
}

/* In order of preference: an item to a block, two on an SM, which hide one another's latency; a cluster; (teams) a block per
 * SM, then a team of as many blocks as needed. */
static bool share_out(state *s, const qn_device *device, bool clusters, bool teams)
{
  if (fits(s, device, 2, 1, false)) return true;
  for (int64_t parts = 2; parts <= CUDA_TEAM_CLUSTER && clusters && cuda_norm_groups_clusters(device); parts *= 2)
    if (fits(s, device, 2, parts, true)) return true;
  if (!teams) return false;
  if (fits(s, device, 1, 1, false)) return true;
  for (int64_t parts = 2; parts <= 2 * device->units; parts++)
    if (fits(s, device, 2, parts, false)) return true;
  return false;
}

/* dy must be laid out as x. Parameters may vary along the innermost outer dim, but then all of them, because dscale and dshift
 * are summed over the same items. Returns the rule that is broken, or NULL. */
static const char *read_others(const qn_request *r, state *s)
{
  const cuda_groups *k = &s->k;
  const qn_value *x = &r->value[s->number[X]], *dy = &r->value[s->dy];
  if (dy->dtype != x->dtype || dy->align < 16 || !qn_same_layout(dy, x)) return "dy lies as x does";
  int given = 0, varying = 0;
  for (int t = SCALE; t <= DSHIFT; t++) {
    if (s->number[t] < 0) continue;
    given++;
    varying += k->rank > 0 && k->stride[t][0] != 0;
    for (int d = 0; d < k->rank; d++)
      if (k->stride[t][d] != 0 && (d > 0 || k->stride[t][d] != channels_of(s)))
        return "parameters lie like a group's channels, one group's after another's";
  }
  if (varying && varying < given) return "parameters are alike for all groups, or none is";
  s->sides = varying ? k->dim[0] : 1;
  return NULL;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_norm_roles roles = qn_norm_roles_of(r->op[0].op);
  const int8_t role[TENSORS] = { roles.x, roles.dx, roles.scale, roles.dscale, roles.dshift, roles.mean, roles.rstd };
  state s = { .dy = qn_role_at(&r->op[0], roles.dy) };
  cuda_groups *k = &s.k;
  if (r->device->arch_major < 8)
    return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  for (int t = 0; t < TENSORS; t++) {
    s.number[t] = qn_role_at(&r->op[0], role[t]);
    if (s.number[t] >= 0) k->dtype[t] = r->value[s.number[t]].dtype;
  }
  if (k->dtype[X] != QN_F32 && k->dtype[X] != QN_BF16 && k->dtype[X] != QN_F16)
    return qn_refuse(out, "dtypes", "x", "f16, bf16 or f32", "%s", qn_kit_name(k->dtype[X]));
  const state unread = s;
  bool shared = false;
  for (int64_t least = 256; least >= 32 && !shared; least /= 2) {   /* columns: the widest lines whose items fit */
    s = unread;
    const char *rule = read_layout(r, &s, least);
    if (!rule) rule = read_others(r, &s);
    if (rule) return qn_refuse(out, rule, "x", "", "%s", "another layout");
    k->centred = r->op[0].op == QN_OP_LAYER_NORM_BACKWARD;
    shared = share_out(&s, r->device, least <= 128 || s.kind != CUDA_GROUPS_COLUMNS, least == 32 || s.kind != CUDA_GROUPS_COLUMNS);
  }
  if (!shared)
    return qn_refuse(out, "a group must fit into the shared memory of the device", "x", "", "%lld elements", (long long)k->length);
  out->counters = (uint64_t)cuda_team_counters(&k->team);
  s.sums = s.number[DSCALE] >= 0 || s.number[DSHIFT] >= 0;
  if (s.sums) out->workspace = (uint64_t)k->items * (uint64_t)k->team.parts * (uint64_t)channels_of(&s) * 2 * sizeof(float);
  out->estimate = 5000 + (double)k->items * k->vectors * V * 3 * qn_kit_bytes(k->dtype[X]) / 2200;
  return cuda_keep(out, &s, sizeof s);
}

/* ---- build, run ------------------------------------------------------------------------------------------------------------ */

static qn_status build(const qn_request *r, qn_prepared *p)
{
  (void)r;
  const state *s = p->state;
  return cuda_allow_shared(cuda_norm_groups_kernel(s->k.dtype[X], s->kind));
}

static void *pointer(const qn_launch *launch, int32_t number) { return number < 0 ? NULL : launch->ptr[number]; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *s = p->state;
  cuda_groups k = s->k;
  const cuda_team *team = &k.team;
  for (int t = 0; t < TENSORS; t++) k.p[t] = pointer(launch, s->number[t]);
  k.dy = launch->ptr[s->dy];
  k.team.told = launch->counters;
  k.sums = s->sums ? launch->workspace : NULL;
  const unsigned cluster = team->parts == 1 ? 1 : team->cluster ? (unsigned)team->parts : CUDA_TOGETHER;
  const qn_status status = cuda_launch_clusters(cuda_norm_groups_kernel(k.dtype[X], s->kind), (unsigned)(team->teams * team->parts),
                                                cluster, (unsigned)s->threads, (size_t)s->shared, (void *[]){ &k }, launch,
                                                "norm_groups");
  if (status || !s->sums) return status;
  const cuda_groups_sums sums = { k.sums, k.p[DSCALE], k.p[DSHIFT], { k.dtype[DSCALE], k.dtype[DSHIFT] }, k.items / s->sides, s->sides,
                                  team->parts, (int32_t)channels_of(s) };
  cuda_norm_groups_add(&sums, launch->stream);
  return cuda_check(cudaGetLastError(), "norm_groups");
}

#define ROW(op) { "groups", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, NULL, NULL, \
                  prepare, build, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_LAYER_NORM_BACKWARD), ROW(QN_OP_RMS_NORM_BACKWARD) };
CUDA_ENGINES(norm_groups) = { row, sizeof row / sizeof *row };
