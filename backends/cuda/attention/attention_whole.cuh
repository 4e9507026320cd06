/* attention_whole.cuh -- attention's gradient by mma.sync where all queries and all keys of a head are a tile: a block makes whole heads.
 *
 * A warp owns 16 queries: S = q k' and dP = dy v' by products over the head's dim, whose registers, made P and dS, are the left operands
 * of dq = dS k, which is complete. P and dS also go to shared memory; there the warp finds the columns of 16 keys, the left operands of
 * dv = P' dy and dk = dS' q. So all is read once, S and P are made once, and nothing is added up in memory.
 *
 * A block takes heads of the same number side by side, of one sequence after the other: a bias that is the same for all sequences stays in
 * registers. The rows' statistics are made here too. */
#pragma once
#include "attention_mma_backward.cuh"

template <int kind_, bool CHANGED_> struct attention_whole_shape : attention_gradient_shape<kind_, 64, 64, false, true, CHANGED_> {
  static constexpr int TILE = CUDA_ATTENTION_BLOCK * 128, shared = 6 * TILE, blocks = 3;
};

/* Of this thread's pairs a bias alone, times log2 e; beyond the last query or key, 0. */
template <int N>
__device__ __forceinline__ void attention_whole_bias(const cuda_attention_gradient &a, const attention_head &of, int row, int column,
                                                     float (&bias)[N])
{
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int q = row + i / 2 % 2 * 8, k = column + i / 4 * 8 + i % 2;
    bias[i] = 0;
    if (q < a.queries && k < a.keys)
      bias[i] = element_load<float>(a.bias, attention_spread_at(a.bias_stride, of, q, k), dtype3(a.bias_dtype)) * 1.44269504f;
  }
}
/* Rows of 64 elements from shared memory, 16 of k at a time: sum += x y, x: left operands of all of k. */
template <int kind, class X> __device__ __forceinline__ void attention_whole_sum(float (&sum)[32], X &&x, uint32_t rows)
{
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint32_t left[4], right[4];
    x(k, left);
#pragma unroll
    for (int j = 0; j < 64; j += 16) {
      attention_summed<kind>(right, rows + k * 2048, 128, j);
      attention_multiply<kind>(sum + j / 2, left, right);
    }
  }
}

template <class T> __global__ void __launch_bounds__(128, T::blocks)
    attention_whole_gradient(const __grid_constant__ cuda_attention_gradient a)
{
  constexpr int BLOCK = CUDA_ATTENTION_BLOCK, TILE = T::TILE, PAIRS = 32;
  typedef attention_gradient_shape<T::kind, 64, 64, true, true, T::CHANGED> of_keys;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ attention_own queries, keys; /* there they take no registers */
  __shared__ float2 statistics[BLOCK];
  const uint32_t q0 = shared_address(shared), dy0 = q0 + TILE, k0 = dy0 + TILE, v0 = k0 + TILE, p0 = v0 + TILE, ds0 = p0 + TILE;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp * 16 + lane / 4, column = lane % 4 * 2,
            jobs = a.batch * a.heads;
  const bool bias_alone = T::CHANGED && a.bias && !a.mask && !a.blocks && !a.slopes && !(a.softcap > 0) && !a.threshold;
  float bias[T::CHANGED ? PAIRS : 1];
  int biased = -1;
#pragma unroll 1
  for (int job = (int)((int64_t)jobs * blockIdx.x / gridDim.x), end = (int)((int64_t)jobs * (blockIdx.x + 1) / gridDim.x); job < end;
       job++) {
    const int h = job / a.batch, b = job % a.batch;
    if (threadIdx.x == 0) queries = attention_own_of<false>(a, b, h, 0), keys = attention_own_of<true>(a, b, h, 0);
    __syncthreads();                      /* and the tiles are free */
    attention_copy<T, 64, BLOCK>(q0, a.q, b, h, 0, 0, queries.own), attention_copy<T, 64, BLOCK>(dy0, a.dy, b, h, 0, 0, queries.own);
    attention_copy<T, 64, BLOCK>(k0, a.k, b, h, 0, 0, keys.own), attention_copy<T, 64, BLOCK>(v0, a.v, b, h, 0, 0, keys.own);
    copy_async_commit();
    const attention_head its = attention_head_of<false>(a, queries, h);
    if constexpr (T::CHANGED) {
      if (bias_alone && (a.bias_stride[0] || biased != h)) attention_whole_bias(a, its, row, column, bias), biased = h;
    }
    {                                     /* two threads a row */
      const int i = threadIdx.x / 2;
      const bool there = i < queries.own;
      const float lse = there ? a.lse[b * a.lse_stride[0] + h * a.lse_stride[1] + i * a.lse_stride[2]] : -INFINITY;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < 4; n++) {
        const int c = (int)(n * 2 + threadIdx.x % 2) * 8;
        if (!there || c >= a.y.size) continue;
        const attention_eight dy = attention_eight_of(a.dy, b * a.dy.stride[0] + h * a.dy.stride[1] + i * a.dy.stride[2] + c),
                              y = attention_eight_of(a.y, b * a.y.stride[0] + h * a.y.stride[1] + i * a.y.stride[2] + c);
        sum += attention_product_of<T::kind>(dy, a.dy.f32, y, a.y.f32);
      }
      sum += __shfl_xor_sync(~0u, sum, 1);
      if (a.dlse && there) sum -= a.dlse[b * a.dlse_stride[0] + h * a.dlse_stride[1] + i * a.dlse_stride[2]];
      const bool seen = lse != -INFINITY;
      if (threadIdx.x % 2 == 0) {
        statistics[i] = seen ? make_float2(lse * 1.44269504f, sum) : make_float2(ATTENTION_UNSEEN, 0);
        float *to = attention_statistics_at(a, b, h, i);    /* for what is summed again, and for other kernels */
        to[0] = statistics[i].x, to[BLOCK] = statistics[i].y;
      }
    }
    copy_async_wait<0>();
    __syncthreads();

    float s[PAIRS], g[PAIRS];
    uint32_t p[PAIRS / 2], ds[PAIRS / 2];
    attention_pairs<T>(q0, dy0, k0, v0, s, g);
    const int up[2] = { queries.high(row) - column, queries.high(row + 8) - column },
              down[2] = { queries.low(row) - column, queries.low(row + 8) - column };
    const float2 st[2] = { statistics[row], statistics[row + 8] };
    if (!T::CHANGED || bias_alone) {
      if constexpr (T::CHANGED) {
#pragma unroll
        for (int i = 0; i < PAIRS; i++) s[i] = fmaf(s[i], a.scale_log2, bias[i]);
      } else {
#pragma unroll
        for (int i = 0; i < PAIRS; i++) s[i] *= a.scale_log2;
      }
      attention_mask(s, down, up);
#pragma unroll
      for (int i = 0; i < PAIRS; i++) s[i] = fn_exp2(s[i] - st[i / 2 % 2].x), g[i] = s[i] * (g[i] - st[i / 2 % 2].y);
    } else if constexpr (T::CHANGED) {
      const uint32_t drops = a.threshold ? attention_drops<false, PAIRS>(a, its, row, 0) : 0;
      const float kept = a.threshold ? a.kept : 1;
#pragma unroll
      for (int i = 0; i < PAIRS; i++) {
        const int in = i / 4 * 8 + i % 2, r = i / 2 % 2;
        if (in > up[r] || in < down[r]) s[i] = g[i] = 0;
        else attention_pair<true>(a, its, row + 8 * r, column + in, st[r], s[i], g[i], drops >> i & 1 ? 0 : kept);
      }
    }
    attention_pack<T::kind>(s, p), attention_pack<T::kind>(g, ds);
#pragma unroll
    for (int i = 0; i < PAIRS / 2; i++) { /* rows of 64 keys for each query */
      const uint32_t at = (row + i % 2 * 8) * 128 + ((i / 2 ^ row & 7) << 4) + lane % 4 * 4;
      shared_store(p0 + at, p[i]), shared_store(ds0 + at, ds[i]);
    }
    float none[1];
    {
      float dq[32] = {};
      attention_whole_sum<T::kind>(dq, [&](int k, uint32_t (&left)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) left[i] = ds[4 * k + i];
      }, k0);
      attention_gradient_end<T>(a, queries, warp * 16, dq, none);
    }
    __syncthreads();
    float dk[32] = {}, dv[32] = {};
    auto columns = [&](uint32_t tile) {   /* of this warp's 16 keys */
      return [=](int k, uint32_t (&left)[4]) {
        load_matrices<true>(left, tile + k * 2048 + (lane % 8 + lane / 16 * 8) * 128 + ((warp * 2 + lane / 8 % 2 ^ lane % 8) << 4));
      };
    };
    attention_whole_sum<T::kind>(dv, columns(p0), dy0);
    attention_whole_sum<T::kind>(dk, columns(ds0), q0);
    attention_gradient_end<of_keys>(a, keys, warp * 16, dk, dv);
    __syncthreads();                      /* what thread 0 will say of the next */
  }
}

#define ATTENTION_WHOLE_KERNELS(kind)                                                                                    \
  { attention_whole_shape<kind, false>::shared, attention_whole_shape<kind, false>::blocks,                              \
    { (const void *)attention_whole_gradient<attention_whole_shape<kind, false>>,                                       \
      (const void *)attention_whole_gradient<attention_whole_shape<kind, true>> } }
