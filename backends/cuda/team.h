/* team.h -- blocks that share an item and tell one another of it (team.cuh): of a cluster, through shared memory; or through global
 * memory, and then all of a launch's blocks are resident, for they wait for one another: it is a cooperative one. */
#ifndef QN_CUDA_TEAM_H
#define QN_CUDA_TEAM_H
#include <stdbool.h>
#include <stdint.h>

enum { CUDA_TEAM_CLUSTER = 8 };           /* blocks of any cluster */

typedef struct cuda_team {
  int32_t  parts, teams;                  /* blocks of a team; such teams */
  int32_t  each;                          /* pairs that a block tells of an item */
  int32_t  turns;                         /* places in which a team's items take turns */
  bool     cluster;
  int32_t  totals;                        /* 1: a row more, of what is told of all parts together */
  void    *told;                          /* [teams, turns, parts + totals, each] words of 16 bytes; then [teams] counters */
} cuda_team;

#ifdef __CUDACC__
#define CUDA_TEAM_BOTH __host__ __device__ static inline
#else
#define CUDA_TEAM_BOTH static inline
#endif
/* Bytes of what a team's blocks tell: in each one's shared memory, or (with a counter) of the launch's counters. */
CUDA_TEAM_BOTH int64_t cuda_team_words(const cuda_team *t) { return (int64_t)t->turns * (t->parts + t->totals) * t->each; }
CUDA_TEAM_BOTH int64_t cuda_team_shared(const cuda_team *t) { return t->parts > 1 && t->cluster ? cuda_team_words(t) * 16 : 0; }
static inline int64_t cuda_team_counters(const cuda_team *t) { return t->parts > 1 && !t->cluster ? t->teams * (cuda_team_words(t) * 16 + 4) : 0; }
#endif
