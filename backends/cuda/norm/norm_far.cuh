/* norm_far.cuh -- the statistics of a group whose sum of squares overflows in float though its mean and deviation do not. So far
 * out are only groups beyond about 1e15, and such with an infinity or a NaN. Kernels that hold x in registers measure it again in
 * units of FAR_UNIT; the others from global memory, in double (far_measure). */
#pragma once
#include "kit/element.cuh"
#include "kit/sums.cuh"

#define FAR_UNIT 0x1p-80f                  /* exact, but for what would be lost among squares that overflow */
__device__ __forceinline__ bool far_out(float squares) { return !(fabsf(squares) < INFINITY); }

/* For (x - mean) rstd: in groups that reach the range's end x - mean may overflow though the result does not. There all is halved first,
 * elsewhere fmaf(x, 1, -mean) is x - mean. n groups of a thread share the unit: makes mean and rstd those of far_normalized. */
template <int n> __device__ __forceinline__ float far_unit(float (&mean)[n], float (&rstd)[n])
{
  float unit = 1;
#pragma unroll
  for (int i = 0; i < n; i++) unit = rstd[i] < 0x1p-110f ? 0.5f : unit;
#pragma unroll
  for (int i = 0; i < n; i++) mean[i] *= -unit, rstd[i] *= unit < 1 ? 2.f : 1.f;
  return unit;
}
__device__ __forceinline__ float far_unit(float &mean, float &rstd)
{
  float m[1] = { mean }, r[1] = { rstd };
  const float unit = far_unit(m, r);
  mean = m[0], rstd = r[0];
  return unit;
}
__device__ __forceinline__ float far_normalized(float x, float unit, float mean, float rstd) { return fmaf(x, unit, mean) * rstd; }

struct far_group {                        /* `run` neighbouring elements in each of `lines` lines */
  const void *x, *second;                 /* second: what is added to x, laid out alike; NULL: nothing */
  uint32_t dtype;
  int64_t  lines, line_step, run;
};
struct far_statistics { float mean, rstd, unbiased; };    /* unbiased: the variance with n - 1 for n */

/* The statistics of the group at offset `at`, by `width` neighbouring lanes of a converged warp, or (width 1) by any thread. Inlined:
 * a call, though never made, cost kernels 5%. */
__device__ __forceinline__ far_statistics far_measure(const far_group &g, int64_t at, bool centred, float eps, int width)
{
  const int lane = threadIdx.x & (width - 1);
  const bool rows = g.lines == 1;         /* the lanes share a run, else the lines */
  const double n = (double)g.lines * (double)g.run;
  double mean = 0, squares = 0;
#pragma unroll 1
  for (int pass = centred ? 0 : 1; pass < 2; pass++) {
    double sum = 0;
#pragma unroll 1
    for (int64_t line = rows ? 0 : lane; line < g.lines; line += rows ? 1 : width)
#pragma unroll 1
      for (int64_t i = rows ? lane : 0; i < g.run; i += rows ? width : 1) {
        const int64_t from = at + line * g.line_step + i;
        float v = element_load<float>(g.x, from, dtype3(g.dtype));
        if (g.second) v += element_load<float>(g.second, from, dtype3(g.dtype));
        if (g.second && g.dtype == QN_BF16) v = bf16_to_float(float_to_bf16(v));   /* what is normalized is what is written */
        sum += pass ? (v - mean) * (v - mean) : v;
        if (sum != sum) break;            /* so it stays */
      }
    if (width > 1) sum = lanes_sum(sum, width);
    (pass ? squares : mean) = sum;
    if (!pass) mean /= n;
  }
  return { (float)mean, (float)(1 / sqrt(squares / n + eps)), (float)(squares / (n > 1 ? n - 1 : 1)) };
}
