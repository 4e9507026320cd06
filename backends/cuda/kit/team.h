/* team.h -- teams of blocks that share an item and exchange values (team.cuh): within a cluster, through distributed
 * shared memory; else through global memory, in a cooperative launch, because the blocks wait for one another and must
 * all be resident. */
#ifndef QN_CUDA_TEAM_H
#define QN_CUDA_TEAM_H
#include <stdbool.h>
#include <stdint.h>

enum { CUDA_TEAM_CLUSTER = 8 };           /* most blocks of a cluster */

typedef struct cuda_team {
  int32_t  parts, teams;                  /* blocks of a team; number of teams */
  int32_t  each;                          /* pairs of floats that a block publishes per item */
  int32_t  turns;                         /* buffers: item i uses number i % turns */
  bool     cluster;
  int32_t  totals;                        /* 1: one more row, for values of all parts combined; else 0 */
  void    *published;                     /* global memory: [teams, turns, parts + totals, each] words of 16 bytes; then [teams] counters */
} cuda_team;

#ifdef __CUDACC__
#define CUDA_TEAM_BOTH __host__ __device__ static inline
#else
#define CUDA_TEAM_BOTH static inline
#endif
/* 16-byte words of a team; their bytes in the shared memory of each block; bytes of the launch's counters for all teams. */
CUDA_TEAM_BOTH int64_t cuda_team_words(const cuda_team *t) { return (int64_t)t->turns * (t->parts + t->totals) * t->each; }
CUDA_TEAM_BOTH int64_t cuda_team_shared(const cuda_team *t) { return t->parts > 1 && t->cluster ? cuda_team_words(t) * 16 : 0; }
static inline int64_t cuda_team_counters(const cuda_team *t)
{
  return t->parts > 1 && !t->cluster ? t->teams * (cuda_team_words(t) * 16 + 4) : 0;
}
#endif
