/* wgmma_instructions.cuh -- the backend's file of that name in C++: each thread of the warpgroup computes its own part of d when it
 * issues the product. Sums are made in double and rounded once; f8 and tf32 operands are as the Tensor Cores read them.
 * wgmma.commit_group waits for the whole warpgroup (ptx.h), so no operand is overwritten before all have read it. */
#pragma once

/* Bytes of an operand that a descriptor describes: of element (row, k), row along m or n. k_strided: rows are contiguous, not k. */
inline const char *emulated_operand(uint64_t descriptor, int row, int k, int size, bool k_strided)
{
  const uint32_t start = (uint32_t)(descriptor & 0x3fff) << 4, lbo = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                 sbo = (uint32_t)(descriptor >> 32 & 0x3fff) << 4, mode = (uint32_t)(descriptor >> 62), span = mode ? 256u >> mode : 16;
  uint32_t at = start;
  if (k_strided) at += (uint32_t)row * size / span * lbo + (uint32_t)(k / 8) * sbo + (uint32_t)(k % 8) * span + (uint32_t)row * size % span;
  else at += (uint32_t)(row / 8) * sbo + (uint32_t)(row % 8) * span + (uint32_t)k * size;
  return (const char *)emulated_at_shared(emulated_swizzled(at, (int)span), size);
}
template <int kind, bool of_b> double emulated_element(const char *p)
{
  if constexpr (kind == MMA_BF16 || kind == MMA_F16) return emulated_value<kind == MMA_BF16 ? EMULATED_BF16 : EMULATED_F16>(p);
  else if constexpr (kind == MMA_TF32) return emulated_value<EMULATED_TF32>(p);
  else if constexpr (kind == MMA_S8 || (kind == MMA_S8_U8 && !of_b) || (kind == MMA_U8_S8 && of_b)) return *(const int8_t *)p;
  else if constexpr (kind >= MMA_S8) return *(const uint8_t *)p;
  else if constexpr (kind == MMA_E4M3 || (kind == MMA_E4M3_E5M2 && !of_b) || (kind == MMA_E5M2_E4M3 && of_b))
    return (float)*(const __nv_fp8_e4m3 *)p;
  else return (float)*(const __nv_fp8_e5m2 *)p;
}

/* d of the calling thread, given rows g and g + 8 of a. */
template <int kind, int tb, int count, class T> void emulated_wgmma(T (&d)[count], const double (&a)[2][32], uint64_t b, int accumulate)
{
  constexpr int size = mma_operand<kind>::bytes, depth = 32 / size;
  const int q = emulated_lane % 4;
  for (int j = 0; j < count / 4; j++)
    for (int c = 0; c < 2; c++) {
      double sum[2] = { 0, 0 };
      for (int k = 0; k < depth; k++) {
        const double v = emulated_element<kind, true>(emulated_operand(b, 8 * j + 2 * q + c, k, size, tb));
        sum[0] += a[0][k] * v, sum[1] += a[1][k] * v;
      }
      for (int h = 0; h < 2; h++) {
        T &to = d[4 * j + 2 * h + c];
        to = (T)(sum[h] + (accumulate ? (double)to : 0));
      }
    }
}
template <int kind, int ta, int tb, int count, class T> void wgmma(T (&d)[count], uint64_t a, uint64_t b, int accumulate)
{
  constexpr int size = mma_operand<kind>::bytes, depth = 32 / size;
  const int row = (int)(threadIdx.x % 128 / 32) * 16 + emulated_lane / 4;
  double rows[2][32];
  for (int h = 0; h < 2; h++)
    for (int k = 0; k < depth; k++) rows[h][k] = emulated_element<kind, false>(emulated_operand(a, row + 8 * h, k, size, ta));
  emulated_wgmma<kind, tb>(d, rows, b, accumulate);
}
template <int kind, int tb, int count> void wgmma_registers(float (&d)[count], const uint32_t *a, uint64_t b, int accumulate)
{
  double rows[2][32];
  emulated_rows<kind == MMA_BF16 ? EMULATED_BF16 : EMULATED_F16>(rows, a);
  emulated_wgmma<kind, tb>(d, rows, b, accumulate);
}
template <int count> void wgmma_tf32(float (&d)[count], const uint32_t *a, uint64_t b, int accumulate)
{
  double rows[2][32];
  emulated_rows<EMULATED_TF32>(rows, a);
  emulated_wgmma<MMA_TF32, 0>(d, rows, b, accumulate);
}
