/* dispatch.cuh -- from a dtype known when a problem is prepared to a kernel compiled for it. */
#pragma once
#include <type_traits>
#include <quern/kit.h>

/* f(d), where d() is the constant dtype: f32, bf16 or f16. */
template <class F> static inline auto cuda_by_dtype(uint32_t dtype, F f)
{
  return dtype == QN_F32    ? f(std::integral_constant<int, QN_F32>())
         : dtype == QN_BF16 ? f(std::integral_constant<int, QN_BF16>())
                            : f(std::integral_constant<int, QN_F16>());
}
