/* ptx.h -- instructions that the kernels use in inline assembly: ptx_NAME is the one of that name, dots as underscores, its operands
 * in order. translate.py reads which exist. Missing, and an error when a kernel reaches one: Tensor Cores' (mma, wgmma, and
 * ldmatrix for them), bulk and tensor copies (TMA) with their barriers, clusters, signalling between blocks that wait for one another. */
#ifndef QUERN_TESTS_EMULATED_PTX_H
#define QUERN_TESTS_EMULATED_PTX_H

/* ---- functions: approximations are as precise as the host's; subnormals count as 0 where the name says ftz --------------------- */

inline float emulated_flushed(float x) { return std::fabs(x) < FLT_MIN ? std::copysign(0.f, x) : x; }
inline void ptx_ex2_approx_ftz_f32(float &y, float x) { y = emulated_flushed(std::exp2(emulated_flushed(x))); }
inline void ptx_lg2_approx_ftz_f32(float &y, float x) { y = std::log2(emulated_flushed(x)); }
inline void ptx_rcp_approx_ftz_f32(float &y, float x) { y = emulated_flushed(1 / emulated_flushed(x)); }
inline void ptx_sqrt_approx_ftz_f32(float &y, float x) { y = std::sqrt(emulated_flushed(x)); }
inline void ptx_rsqrt_approx_ftz_f32(float &y, float x) { y = 1 / std::sqrt(emulated_flushed(x)); }
inline void ptx_tanh_approx_f32(float &y, float x) { y = std::tanh(x); }

/* ---- arithmetic ---------------------------------------------------------------------------------------------- */

inline void ptx_add_f32(float &d, float a, float b) { d = a + b; }
inline void ptx_and_b32(uint32_t &y, uint32_t a, uint32_t b) { y = a & b; }
inline void ptx_mul_wide_u32(uint64_t &d, uint32_t a, uint32_t b) { d = (uint64_t)a * b; }
inline void ptx_setp_eq_u32(bool &p, uint32_t a, uint32_t b) { p = a == b; }
inline void ptx_setp_ne_b32(bool &p, uint32_t a, uint32_t b) { p = a != b; }

template <bool nan, class T> T emulated_larger(T a, T b)
{
  const float x = (float)a, y = (float)b;
  if (x != x) return nan ? a : b;
  if (y != y) return nan ? b : a;
  return x > y || (x == y && !std::signbit(x)) ? a : b;
}
template <bool nan, class T> void emulated_larger_pair(uint32_t &d, uint32_t a, uint32_t b)
{
  T x[2], y[2];
  memcpy(x, &a, sizeof a);
  memcpy(y, &b, sizeof b);
  for (int i = 0; i < 2; i++) x[i] = emulated_larger<nan>(x[i], y[i]);
  memcpy(&d, x, sizeof d);
}
inline void ptx_max_NaN_f32(float &d, float a, float b) { d = emulated_larger<true>(a, b); }
inline void ptx_max_NaN_f16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<true, __half>(d, a, b); }
inline void ptx_max_NaN_bf16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<true, __nv_bfloat16>(d, a, b); }
inline void ptx_max_f16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<false, __half>(d, a, b); }
inline void ptx_max_bf16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<false, __nv_bfloat16>(d, a, b); }

/* Two values clamped to the format, a above b, above the lower half of c. */
inline uint32_t emulated_packed(int a, int b, uint32_t c, int least, int most)
{
  const uint32_t high = (uint32_t)std::clamp(a, least, most) & 255, low = (uint32_t)std::clamp(b, least, most) & 255;
  return c << 16 | high << 8 | low;
}
template <class T> void ptx_cvt_pack_sat_u8_s32_b32(T &d, int a, int b, uint32_t c) { d = (T)emulated_packed(a, b, c, 0, 255); }
template <class T> void ptx_cvt_pack_sat_s8_s32_b32(T &d, int a, int b, uint32_t c) { d = (T)emulated_packed(a, b, c, -128, 127); }

/* ---- shared memory, by 32-bit addresses ---------------------------------------------------------------------- */

template <class T> T &emulated_word(uint32_t at) { return *(T *)emulated_at_shared(at, sizeof(T)); }
inline void ptx_ld_shared_f32(float &d, uint32_t at) { d = emulated_word<float>(at); }
template <class T> void ptx_ld_shared_u16(T &d, uint32_t at) { d = emulated_word<uint16_t>(at); }
template <class T> void ptx_ld_shared_u32(T &d, uint32_t at) { d = emulated_word<uint32_t>(at); }
template <class T> void ptx_ld_shared_v4_u32(T &a, T &b, T &c, T &d, uint32_t at)
{
  const uint4 q = emulated_word<uint4>(at);
  a = q.x, b = q.y, c = q.z, d = q.w;
}
inline void ptx_ld_shared_v2_f32(float &a, float &b, uint32_t at)
{
  const float2 p = emulated_word<float2>(at);
  a = p.x, b = p.y;
}
inline void ptx_ld_shared_v4_f32(float &a, float &b, float &c, float &d, uint32_t at)
{
  const float4 q = emulated_word<float4>(at);
  a = q.x, b = q.y, c = q.z, d = q.w;
}
inline void ptx_st_shared_u32(uint32_t at, uint32_t v) { emulated_word<uint32_t>(at) = v; }

/* Asynchronous copies: done at once here, `width` bytes in all, zeros after the first `bytes`. */
inline void ptx_cp_async_cg_shared_global(uint32_t to, const void *from, int width, int bytes)
{
  emulated_copy(emulated_at_shared(to, width), from, width, bytes);
}
inline void ptx_cp_async_ca_shared_global(uint32_t to, const void *from, int width, int bytes)
{
  emulated_copy(emulated_at_shared(to, width), from, width, bytes);
}
inline void ptx_cp_async_commit_group() {}
inline void ptx_cp_async_wait_group(int) {}
inline void ptx_prefetch_global_L2(const void *) {}

/* ---- barriers ------------------------------------------------------------------------------------------------ */

inline void ptx_bar_sync(int id, int threads) { emulated_named_barrier(id, threads); }
inline void ptx_griddepcontrol_wait() {}
inline void ptx_selp_u32(uint32_t &d, uint32_t a, uint32_t b, bool p) { d = p ? a : b; }

/* In shared memory: `arrivals` arrivals complete a phase. */
struct emulated_mbarrier { uint32_t arrivals; uint16_t missing, phase; };
inline void ptx_mbarrier_init_shared_cta_b64(uint32_t at, uint32_t arrivals) { emulated_word<emulated_mbarrier>(at) = { arrivals, (uint16_t)arrivals, 0 }; }
inline void ptx_mbarrier_arrive_shared_cta_b64(uint32_t at)
{
  emulated_mbarrier &b = emulated_word<emulated_mbarrier>(at);
  if (!--b.missing) b.missing = (uint16_t)b.arrivals, b.phase ^= 1;
}
inline void ptx_mbarrier_try_wait_parity_shared_cta_b64(bool &done, uint32_t at, uint32_t parity)
{
  done = emulated_word<emulated_mbarrier>(at).phase != parity;
  if (!done) emulated_let_others();
}

/* On global memory, by which concurrent blocks communicate. */
inline void ptx_st_relaxed_gpu_global_v2_u64(void *to, uint64_t x, uint64_t y) { ((volatile uint64_t *)to)[0] = x, ((volatile uint64_t *)to)[1] = y; }
inline void ptx_ld_relaxed_gpu_global_v2_u64(uint64_t &x, uint64_t &y, const void *from)
{
  emulated_let_others();
  x = ((const volatile uint64_t *)from)[0], y = ((const volatile uint64_t *)from)[1];
}
inline void ptx_griddepcontrol_launch_dependents() {}
#endif
