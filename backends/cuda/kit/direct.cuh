/* direct.cuh -- shared by the direct engines, the fallbacks. A direct engine takes one op with any strides, alignment, dtypes and
 * sizes (all index arithmetic in 64 bits), without workspace, and gives the same bits every time. */
#pragma once
#include "cuda_backend.h"
#include "element.cuh"

/* ---- tensors as kernels see them ------------------------------------------------------------------ */

struct tensor {
  void    *p;                             /* NULL: an absent optional one */
  uint32_t dtype;
  int32_t  rank;
  int64_t  dim[QN_MAX_RANK], stride[QN_MAX_RANK];

  template <class T> __device__ T load(int64_t i) const { return element_load<T>(p, i, dtype); }
  template <class T> __device__ void store(int64_t i, T v) const { element_store(p, i, dtype, v); }
};

/* Offset of the i-th element in row-major order of `like`'s dims; broadcast where t's dim is 1. */
__device__ __forceinline__ int64_t place(const tensor &t, const tensor &like, int64_t i)
{
  int64_t offset = 0;
  for (int d = like.rank - 1; d >= 0; d--) {
    int64_t q = d ? i / like.dim[d] : 0;
    if (d < t.rank && t.dim[d] > 1) offset += (i - q * like.dim[d]) * t.stride[d];
    i = q;
  }
  return offset;
}

/* The index of element i of t's first `rank` dims; and where an index lies. */
__device__ __forceinline__ void place_in(int64_t i, const tensor &t, int rank, int64_t *at)
{
  for (int d = rank - 1; d >= 0; d--) {
    int64_t q = d ? i / t.dim[d] : 0;
    at[d] = i - q * t.dim[d];
    i = q;
  }
}

__device__ __forceinline__ int64_t offset_in(const tensor &t, const int64_t *at)
{
  int64_t offset = 0;
  for (int d = 0; d < t.rank; d++) offset += at[d] * t.stride[d];
  return offset;
}

/* N, C and three spatial dims; missing ones come first, with size 1. Filters likewise. */
struct grid {
  void    *p;
  uint32_t dtype;
  int64_t  dim[5], stride[5];

  template <class T> __device__ T load(int64_t i) const { return element_load<T>(p, i, dtype); }
  template <class T> __device__ void store(int64_t i, T v) const { element_store(p, i, dtype, v); }
  __device__ int64_t at(int64_t n, int64_t c, const int64_t s[3]) const
  {
    return n * stride[0] + c * stride[1] + s[0] * stride[2] + s[1] * stride[3] + s[2] * stride[4];
  }
};

/* Windows over three spatial dims. */
struct windows {
  int64_t size[3], step[3], dilation[3], before[3], after[3];
  int64_t inputs[3], outputs[3];

  __device__ int64_t taps() const { return size[0] * size[1] * size[2]; }
  __device__ void tap(int64_t i, int64_t r[3]) const
  {
    r[2] = i % size[2], i /= size[2];
    r[1] = i % size[1], r[0] = i / size[1];
  }
  /* Input position of tap r of window o; false: outside. */
  __device__ bool input(const int64_t o[3], const int64_t r[3], int64_t x[3]) const
  {
    bool inside = true;
    for (int d = 0; d < 3; d++) {
      x[d] = o[d] * step[d] + r[d] * dilation[d] - before[d];
      inside &= x[d] >= 0 && x[d] < inputs[d];
    }
    return inside;
  }
  /* The window whose tap r lies at x; false: none. */
  __device__ bool output(const int64_t x[3], const int64_t r[3], int64_t o[3]) const
  {
    for (int d = 0; d < 3; d++) {
      int64_t start = x[d] + before[d] - r[d] * dilation[d];
      o[d] = start / step[d];
      if (start < 0 || o[d] * step[d] != start || o[d] >= outputs[d]) return false;
    }
    return true;
  }
};

/* ---- an op, kept from prepare to run (direct.cu) --------------------------------------------------- */

struct kept {
  uint32_t op;
  int32_t  n_roles;
  int32_t  first[QN_MAX_ROLES + 1];
  int32_t *number;                        /* value index of each argument in the request */
  qn_value *value;                        /* each argument */
  void    *attr;                          /* a copy */
};

qn_status direct_prepare(const qn_request *r, qn_prepared *p);

static inline int direct_count(const kept *k, uint32_t role) { return k->first[role + 1] - k->first[role]; }
tensor  direct_tensor(const kept *k, const qn_launch *launch, uint32_t role, int i);    /* p NULL where there is none */
grid    direct_grid(const tensor &t);
int64_t direct_elements(const tensor &t);
/* A float scalar: host scalars are read now (p stays NULL), device ones by the kernel. */
struct scalar { const void *p; uint32_t dtype; double value; };
scalar  direct_scalar(const kept *k, const qn_launch *launch, uint32_t role, double absent);

#define DIRECT_ROW(anchor, function)                                                                      \
  { "direct", anchor, QN_CLASS_GENERIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
    direct_prepare, nullptr, function, cuda_release }

/* Blocks of `threads` for n elements, one thread each up to the grid limit; kernels use grid-stride loops. */
static inline unsigned direct_blocks(int64_t n, int threads)
{
  int64_t blocks = (n + threads - 1) / threads;
  return (unsigned)(blocks < 1 ? 1 : blocks > (1 << 30) ? 1 << 30 : blocks);
}
static inline qn_status direct_launched(const char *kernel) { return cuda_check(cudaGetLastError(), kernel); }
