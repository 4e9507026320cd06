/* pool_sweep.cuh -- windows every 1 of a line: what lies in all of several side by side is found once for them. */
#pragma once
#include "pool.cuh"

enum { SWEEP = 5 };                       /* side by side; odd, so that lanes which have such each read of different banks */

/* Of windows of `size` places, at least SWEEP, from `first` on, each one further than the last: sums, or what is largest, of their places within 0 to
 * extent. load: V numbers of a place. */
template <bool sums, int V, class L> __device__ __forceinline__ void sweep(float (&f)[SWEEP][V], int first, int size, int extent, L load)
{
  const auto join = [](float (&a)[V], const float (&b)[V]) {
#pragma unroll
    for (int i = 0; i < V; i++) a[i] = sums ? a[i] + b[i] : larger(a[i], b[i]);
  };
  const auto place = [&](float (&v)[V], int at) {
    if ((unsigned)at < (unsigned)extent) return load(v, at);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = sums ? 0 : -INFINITY;
  };
  float all[V], left[SWEEP - 1][V], right[SWEEP - 1][V];
#pragma unroll
  for (int k = 0; k < SWEEP - 1; k++) place(left[k], first + k), place(right[k], first + size + k);
#pragma unroll
  for (int i = 0; i < V; i++) all[i] = sums ? 0 : -INFINITY;
#pragma unroll 4
  for (int at = max(first + SWEEP - 1, 0); at < min(first + size, extent); at++) {
    float v[V];
    load(v, at);
    join(all, v);
  }
#pragma unroll
  for (int k = 1; k < SWEEP - 1; k++) join(left[SWEEP - 2 - k], left[SWEEP - 1 - k]), join(right[k], right[k - 1]);
#pragma unroll
  for (int k = 0; k < SWEEP; k++) {
#pragma unroll
    for (int i = 0; i < V; i++) f[k][i] = all[i];
    if (k < SWEEP - 1) join(f[k], left[k]);
    if (k > 0) join(f[k], right[k - 1]);
  }
}

static inline bool sweep_takes(const pool &p)
{
  bool takes = !p.adaptive;
  for (int d = 1; d < 3; d++) takes = takes && p.size[d] >= SWEEP && p.step[d] == 1 && p.dilation[d] == 1;
  return takes;
}
