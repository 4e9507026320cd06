/* pool_sweep.cuh -- SWEEP adjacent windows of stride 1 along a line: their common part is reduced once. */
#pragma once
#include "pool.cuh"

enum { SWEEP = 5 };                       /* windows a thread; odd, so that neighbouring lanes read different banks */

/* Reduces with `join`, from `none` on, SWEEP windows of `size` >= SWEEP places; window k begins at first + k. Places outside
 * 0..extent-1 are skipped. load: reads the V values of one place. */
template <int V, class T, class L, class J>
__device__ __forceinline__ void sweep(T (&f)[SWEEP][V], int first, int size, int extent, T none, L load, J join)
{
  enum { AT_ONCE = 3 };
  const auto join_all = [&](T (&a)[V], const T (&b)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) a[i] = join(a[i], b[i]);
  };
  const auto place = [&](T (&v)[V], int at, bool within) {
    if (within && (unsigned)at < (unsigned)extent) return load(v, at);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = none;
  };
  T all[V], left[SWEEP - 1][V], right[SWEEP - 1][V];
#pragma unroll
  for (int k = 0; k < SWEEP - 1; k++) place(left[k], first + k, true), place(right[k], first + size + k, true);
#pragma unroll
  for (int i = 0; i < V; i++) all[i] = none;
#pragma unroll 1
  for (int at = SWEEP - 1; at < size; at += AT_ONCE) {
    T v[AT_ONCE][V];
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) place(v[b], first + at + b, at + b < size);
#pragma unroll
    for (int b = 0; b < AT_ONCE; b++) join_all(all, v[b]);
  }
#pragma unroll
  for (int k = 1; k < SWEEP - 1; k++) join_all(left[SWEEP - 2 - k], left[SWEEP - 1 - k]), join_all(right[k], right[k - 1]);
#pragma unroll
  for (int k = 0; k < SWEEP; k++) {
#pragma unroll
    for (int i = 0; i < V; i++) f[k][i] = all[i];
    if (k < SWEEP - 1) join_all(f[k], left[k]);
    if (k > 0) join_all(f[k], right[k - 1]);
  }
}

static inline bool sweep_takes(const pool &p)
{
  bool takes = !p.adaptive;
  for (int d = 1; d < 3; d++) takes = takes && p.size[d] >= SWEEP && p.step[d] == 1 && p.dilation[d] == 1;
  return takes;
}
