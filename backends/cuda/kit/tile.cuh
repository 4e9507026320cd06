/* tile.cuh -- the matrix product of the direct engines: c[m, n] = sum_k a[m, k] b[k, n] in tiles of 64 x 64, for any way of
 * addressing a and b.
 *
 * A Problem has m, n, k, batch, and for one batch at a time (enter)
 *   row(m), column(n)                 what a thread can precompute for all k
 *   a(row, k, &there), b(column, k)   elements; where a is absent (padding) nothing is added, whatever b is
 *   store(m, n, sum)
 * Each sum is computed by one thread in the order of k, in blocks of TILE_BLOCK, so results are deterministic. */
#pragma once
#include "direct.cuh"

enum { TILE = 64, TILE_K = 16, TILE_THREADS = 256, TILE_BLOCK = 256 * TILE_K };

template <class T, class Problem> __global__ void __launch_bounds__(TILE_THREADS) tile_product(const __grid_constant__ Problem given)
{
  __shared__ T a[TILE_K][TILE + 4], b[TILE_K][TILE + 4];
  __shared__ uint8_t there[TILE_K][TILE];
  Problem p = given;
  int t = threadIdx.x, tx = t % 16, ty = t / 16;
  int64_t tiles_n = (p.n + TILE - 1) / TILE, tiles = (p.m + TILE - 1) / TILE * tiles_n;
  for (int64_t tile = blockIdx.x; tile < tiles * p.batch; tile += gridDim.x) {
    p.enter(tile / tiles);
    int64_t m0 = tile % tiles / tiles_n * TILE, n0 = tile % tiles_n * TILE, k_end = p.depth();
    T sum[4][4] = {}, blocks[4][4] = {};
    typename Problem::row_state row[4];
    for (int i = 0; i < 4; i++) row[i] = p.row(m0 + ty + 16 * i < p.m ? m0 + ty + 16 * i : 0);
    typename Problem::column_state column = p.column(n0 + t % 64 < p.n ? n0 + t % 64 : 0);
    for (int64_t k0 = 0; k0 < k_end; k0 += TILE_K) {
      if (k0 % TILE_BLOCK == 0)
#pragma unroll
        for (int i = 0; i < 16; i++) blocks[i / 4][i % 4] += sum[i / 4][i % 4], sum[i / 4][i % 4] = 0;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        bool ok = k0 + tx < k_end && m0 + ty + 16 * i < p.m;
        T v = 0;
        if (ok) v = p.a(row[i], k0 + tx, &ok);
        a[tx][ty + 16 * i] = v;
        there[tx][ty + 16 * i] = ok;
        int kk = t / 64 + 4 * i;
        b[kk][t % 64] = k0 + kk < k_end && n0 + t % 64 < p.n ? p.b(column, k0 + kk) : T(0);
      }
      __syncthreads();
#pragma unroll
      for (int kk = 0; kk < TILE_K; kk++) {
        T x[4], y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) x[i] = a[kk][ty * 4 + i], y[i] = b[kk][tx * 4 + i];
        uint32_t ok = *(const uint32_t *)&there[kk][ty * 4];
#pragma unroll
        for (int i = 0; i < 4; i++)
          if (ok >> 8 * i & 1)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[i][j] += x[i] * y[j];
      }
      __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        int64_t m = m0 + ty * 4 + i, n = n0 + tx * 4 + j;
        if (m < p.m && n < p.n) p.store(m, n, blocks[i][j] + sum[i][j]);
      }
  }
}

template <class T, class Problem> qn_status tile_launch(const Problem &p, const qn_launch *launch, const char *name)
{
  int64_t tiles = (p.m + TILE - 1) / TILE * ((p.n + TILE - 1) / TILE) * p.batch;
  tile_product<T><<<direct_blocks(tiles, 1), TILE_THREADS, 0, (cudaStream_t)launch->stream>>>(p);
  return direct_launched(name);
}
