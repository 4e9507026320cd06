/* dispatch.cuh -- from a dtype, or another number, known when a problem is prepared to a kernel compiled for it. */
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

/* f(n), a kernel, for the first of the constants N that `value` is; n() is that constant. nullptr: it is none of them. */
template <int... N, class F> static inline auto cuda_pick(int64_t value, F f)
{
  typename std::common_type<decltype(f(std::integral_constant<int, N>()))...>::type kernel = nullptr;
  ((value == N && !kernel ? void(kernel = f(std::integral_constant<int, N>())) : void()), ...);
  return kernel;
}
