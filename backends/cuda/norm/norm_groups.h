/* norm_groups.h -- shared by the host half and the kernels of norm_groups. */
#ifndef QN_CUDA_NORM_GROUPS_H
#define QN_CUDA_NORM_GROUPS_H
#include <vector_types.h>
#include "cuda_backend.h"
#include "kit/divisor.h"
#include "kit/team.h"
#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_GROUPS_V = 8, CUDA_GROUPS_LANES = 256, CUDA_GROUPS_OUTER = 5 };
enum { CUDA_GROUPS_X, CUDA_GROUPS_DX, CUDA_GROUPS_SCALE, CUDA_GROUPS_DSCALE, CUDA_GROUPS_DSHIFT, CUDA_GROUPS_MEAN, CUDA_GROUPS_RSTD,
       CUDA_GROUPS_TENSORS };

/* CHANNELS: a group is contiguous; COLUMNS: it is some neighbouring channels in all lines of an image. */
enum { CUDA_GROUPS_CHANNELS, CUDA_GROUPS_COLUMNS };

typedef struct cuda_groups {
  void    *p[CUDA_GROUPS_TENSORS];
  const void *dy;
  uint32_t dtype[CUDA_GROUPS_TENSORS];
  int32_t  rank;                          /* of the outer dims, which number the items, innermost first */
  uint32_t dim[CUDA_GROUPS_OUTER];
  cuda_divisor by_dim[CUDA_GROUPS_OUTER];
  int64_t  stride[CUDA_GROUPS_TENSORS][CUDA_GROUPS_OUTER];
  int64_t  items, length;                 /* items; elements of a group */
  cuda_team team;                         /* the blocks that share an item */
  int32_t  vectors, share;                /* vectors of an item, of a block's share of it */
  int32_t  active;                        /* columns: threads that have vectors, a multiple of lanes */
  int32_t  repeat;                        /* channels: consecutive elements that share a parameter */
  int32_t  lanes, groups, channels;       /* columns: vectors of a line; groups of an item (1 otherwise); channels of a group */
  int64_t  line_step[2];                  /* columns: between lines of x, dx */
  int64_t  group_step[2];                 /* columns: between groups of mean, rstd */
  cuda_divisor by_repeat;
  bool     centred;
  int32_t  unit, pieces;                  /* channels: lanes that sum a channel together; such units a channel */
  float2  *sums;                          /* partial sums of dy and dy h: [items, parts, channels of an item]; NULL: not wanted */
} cuda_groups;

/* The final sums for dscale and dshift. sums: [copies, sides, parts, channels]; added over copies and parts. sides: items
 * with different channels. */
typedef struct cuda_groups_sums {
  const float2 *sums;
  void    *dscale, *dshift;
  uint32_t dtype[2];
  int64_t  copies, sides;
  int32_t  parts, channels;
} cuda_groups_sums;

/* Most threads of a block; the threads of a block for columns. */
enum { CUDA_GROUPS_THREADS = 512, CUDA_GROUPS_COLUMNS_THREADS = 384 };

/* columns: floats of shared memory in which threads add up sums: from half of the threads at a time, then two per channel. */
#ifdef __CUDACC__
__host__ __device__
#endif
static inline int32_t cuda_groups_exchange(int32_t lanes)
{
  const int32_t halves = CUDA_GROUPS_V * CUDA_GROUPS_COLUMNS_THREADS, channels = 2 * CUDA_GROUPS_V * lanes;
  return channels > halves ? channels : halves;
}

bool cuda_norm_groups_clusters(const qn_device *device);
const void *cuda_norm_groups_kernel(uint32_t dtype, int kind);
void cuda_norm_groups_add(const cuda_groups_sums *a, void *stream);

#ifdef __cplusplus
}
#endif
#endif
