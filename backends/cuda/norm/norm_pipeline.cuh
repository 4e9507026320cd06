/* norm_pipeline.cuh -- part of norm_pipeline.cu: arguments, the state of a block's pipeline, and the warps that load items and that
 * combine the team's statistics. */
#pragma once
#include "norm_follow.cuh"
#include "norm_sums.cuh"
#include "kit/map.h"
#include "kit/team.cuh"

/* WORKERS threads measure and as many write; one warp loads, one publishes, RECEIVERS warps receive */
enum { WORKERS = 256, WARPS = WORKERS / 32, RECEIVERS = 2, THREADS = 2 * WORKERS + 64 + 32 * RECEIVERS };
/* upper limits; LANES, LINE: words and elements of a band's line */
enum { SLOTS = 8, SEGMENTS = 16, LANES = 8, LINE = 8 * LANES, MOST_PARTS = 64 };

struct pipeline : norm_args {
  int64_t  line_step, image_step, x_step[2];      /* of y; of x, between lines, between images; in elements */
  int64_t  means_step[TENSORS - MEAN][2]; /* tensors with an element per group: between images, between groups */
  int32_t  items, bands;                  /* items of the launch; bands of an image */
  int32_t  lines, share;                  /* of an image; of a block's share of it */
  int32_t  lanes, groups, run;            /* of a band: words of a line; groups; elements of a group in a line. Powers of 2 */
  int32_t  box, boxes, slots;             /* lines of a TMA box; boxes of a share; shares in shared memory */
  int32_t  segments, segment;             /* of a share, each with its own mbarriers; words of a segment (whole boxes) */
  cuda_team team;
  norm_activation act;
  bool     steady;                        /* all items of a team are of the same band, of different images */
  int32_t  received;                      /* groups a block combines: all, or (team.totals) those whose totals it publishes */
  /* partial sums of dy and dy h: [items (teams, if steady), parts, elements of a band's line]; NULL: not wanted */
  float2  *sums;
};

/* Shared memory through which the warps of a block communicate: a slot for each item in flight. */
struct alignas(128) mailbox {
  float2   given[SLOTS][LINE];            /* gradient: mean and rstd of each group, loaded */
  float2   known[SLOTS][LINE];            /* of each group: mean and rstd, or (gradient) means of g and g h */
  /* mbarriers: words have landed; words are written out; `known` is complete; statistics are published; of_warps is complete */
  uint64_t full[SEGMENTS], empty[SEGMENTS], ready[SLOTS], published[SLOTS], summed[SLOTS];
};

struct block {
  const pipeline &a;
  const team_member &team;
  mailbox    &n;
  uint4   *words;                         /* [slots, tensors, held] */
  float2  *of_warps;                      /* [slots, warps, published]: each warp's moments, or sums of dy and dy h */
  int32_t  published;                     /* entries of a line: one per element, or (forward, a word within a group) per word */
  int32_t  turns, held, mine;             /* items of the block; words of a share in shared memory (whole boxes); valid ones */
  int32_t  tensors;                       /* 1: x; 2: x and dy */

  __device__ __forceinline__ int item(int i) const { return team.team + i * a.team.teams; }
  __device__ __forceinline__ int image(int i) const { return item(i) / a.bands; }
  __device__ __forceinline__ int band(int i) const { return item(i) % a.bands; }
  __device__ __forceinline__ int64_t of_means(int t, int i, int g) const
  {
    return image(i) * a.means_step[t - MEAN][0] + (int64_t)(band(i) * a.groups + g) * a.means_step[t - MEAN][1];
  }
  __device__ __forceinline__ int lines(int part) const { return min(a.share, a.lines - part * a.share); }
};

/* The block's i-th item: its slot, and the phase of the slot's mbarriers. */
struct turn {
  int      i, slot;
  uint32_t phase;

  __device__ __forceinline__ turn() : i(0), slot(0), phase(0) {}
  __device__ __forceinline__ void next(int slots) { i++; if (++slot == slots) slot = 0, phase ^= 1; }
  __device__ __forceinline__ uint32_t at(uint64_t *bars) const { return shared_address(bars + slot); }
  __device__ __forceinline__ uint32_t at(uint64_t *bars, int segments, int k) const { return shared_address(bars + slot * segments + k); }
  /* The words that a part publishes of the item; part == parts: the totals. The team has two buffers per slot. */
  __device__ __forceinline__ ulonglong2 *of_part(const block &b, int part) const
  {
    return b.team.place(slot + (phase ? b.a.slots : 0), part);
  }
  __device__ __forceinline__ float2 *of_warp(const block &b, int warp) const { return b.of_warps + (slot * WARPS + warp) * b.published; }
  __device__ __forceinline__ uint4 *words(const block &b) const { return b.words + slot * b.tensors * b.held; }
};

/* ---- the warps that load and that receive -------------------------------------------------------------------------------- */

template <int whole, bool gradient> __device__ __forceinline__ void fetch(const block &b, const CUtensorMap *xs, const CUtensorMap *dys)
{
  const pipeline &a = b.a;
  const int lane = threadIdx.x % 32, of_box = a.box * a.lanes;
  for (turn now; now.i < b.turns; now.next(a.slots)) {
    if (gradient) {
      barrier_wait(now.at(b.n.empty, b.a.segments, 0), now.phase ^ 1);
      for (int g = lane; g < a.groups; g += 32) {
        float2 *to = b.n.given[now.slot] + g;
        if (a.centred) copy_async<4>(shared_address(&to->x), (const float *)a.p[MEAN] + b.of_means(MEAN, now.i, g), 4);
        copy_async<4>(shared_address(&to->y), (const float *)a.p[RSTD] + b.of_means(RSTD, now.i, g), 4);
      }
      barrier_arrive_copied(now.at(b.n.full, b.a.segments, 0));
    }
    if (lane == 0) {
      const int image = b.image(now.i), channel = b.band(now.i) * a.lanes * vector_per_16<whole>;
      uint4 *const x = now.words(b);
      for (int at = 0; at < b.held; at += of_box) {
        const int line = b.team.rank * a.share + at / a.lanes, segment = at / a.segment;
        if (at == segment * a.segment) {
          barrier_wait(now.at(b.n.empty, b.a.segments, segment), now.phase ^ 1);
          barrier_expect(now.at(b.n.full, b.a.segments, segment), min(a.segment, b.held - at) * 16 * b.tensors);
        }
        tma_load(shared_address(x + at), xs, channel, line, image, 0, now.at(b.n.full, b.a.segments, segment));
        if (gradient) tma_load(shared_address(x + b.held + at), dys, channel, line, image, 0, now.at(b.n.full, b.a.segments, segment));
      }
    }
    __syncwarp();
  }
}

/* Finish a group whose sums, or moments, are complete. One thread; `leaves`: it also writes mean, rstd and the running statistics. */
__device__ __forceinline__ float2 of_sums(const block &b, float2 sum)
{
  return make_float2(b.a.centred ? sum.x * b.a.inverse : 0, sum.y * b.a.inverse);
}
__device__ __forceinline__ float2 of_moments(const block &b, const turn &now, int g, const moments &all, bool leaves)
{
  const pipeline &a = b.a;
  const int64_t x = b.image(now.i) * a.x_step[1] + (int64_t)(b.band(now.i) * a.groups + g) * a.run;
  const norm_statistics of = statistics_of(a, a.dtype[X], all, x, a.lines, a.x_step[0], a.run, 1);
  if (leaves) leave_statistics(a, of, [&](int t) { return b.of_means(t, now.i, g); });
  return make_float2(of.mean, of.rstd);
}

/* One thread: publishes the block's moments (or sums) of group g. A team of one block finishes the group here instead. */
template <bool gradient> __device__ __forceinline__ void publish(const block &b, const turn &now, int g, float2 v)
{
  if (b.a.team.parts > 1) {
    b.team.publish_to(now.of_part(b, b.team.rank) + g, now.i, v);
    barrier_arrive(now.at(b.n.published));
    return;
  }
  b.n.known[now.slot][g] = gradient ? of_sums(b, v) : of_moments(b, now, g, { v.x, v.y, 0 }, true);
  barrier_arrive(now.at(b.n.ready));
}

/* Combines the parts of each group: 32 / owned lanes share a group's parts or, with more than 32 groups, a lane takes one group
 * after another. With team.totals a block combines only its own groups, publishes the totals and reads the others'. */
template <bool gradient> __device__ __forceinline__ void receive(const block &b, int receiver)
{
  constexpr int AT_ONCE = 8;
  const pipeline &a = b.a;
  const int lane = threadIdx.x % 32, owned = a.received, base = a.team.totals ? b.team.rank * owned : 0;
  const int apart = max(32, owned), parts_apart = apart / owned, each = a.team.each;
  for (turn now; now.i < b.turns && a.team.parts > 1; now.next(a.slots)) {
    if (now.i % RECEIVERS != receiver) continue;
    barrier_wait(now.at(b.n.published), now.phase);
    for (int first = 0; first < apart && base < a.groups; first += 32) {
      const int g = base + ((first + lane) & (owned - 1));
      int part = (first + lane) / owned;
      float about = 0, s1 = 0, s2 = 0;
      for (int k = 0; k < a.team.parts; k += AT_ONCE * parts_apart) {
        float2 v[AT_ONCE];
        b.team.receive_some(now.of_part(b, 0), now.i, part * each + g, parts_apart * each, a.team.parts * each, v);
        if (!gradient && k == 0) about = finite_or_0(__shfl_sync(~0u, v[0].x, lane & (owned - 1)));
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++, part += parts_apart) {
          if (gradient) {
            s1 += v[j].x, s2 += v[j].y;
          } else if (part < a.team.parts) {
            const float d = v[j].x - about, s = (float)(b.lines(part) * a.run) * d;
            s1 += s, s2 += v[j].y + s * d;
          }
        }
      }
      for (int o = owned; o < 32; o *= 2) s1 += __shfl_xor_sync(~0u, s1, o), s2 += __shfl_xor_sync(~0u, s2, o);
      if (first + lane >= owned) continue;
      const bool leaves = a.team.totals || b.team.rank == 0;
      const float2 all = gradient ? of_sums(b, make_float2(s1, s2))
                                  : of_moments(b, now, g, moments_about(about, s1, s2, (float)(a.lines * a.run), true), leaves);
      if (a.team.totals) b.team.publish_to(now.of_part(b, a.team.parts) + g, now.i, all);
      else b.n.known[now.slot][g] = all;
    }
    for (int g = lane; g - lane < a.groups && a.team.totals; g += 32) {
      float2 v[1];
      b.team.receive_some(now.of_part(b, a.team.parts), now.i, g, 32, a.groups, v);
      if (g < a.groups) b.n.known[now.slot][g] = v[0];
    }
    barrier_arrive(now.at(b.n.ready));
    __syncwarp();
  }
  if (a.team.parts > 1) {
    group_sync(1, 32 * RECEIVERS);
    if (receiver == 0) b.team.leave_warp();
  }
}
