/* device.h -- CUDA's device language on a CPU: included before all else in a translated file (translate.py); run by emulated.cpp. A
 * block's threads are fibers; one runs until it reaches something for which it must wait for others.
 *
 * Arithmetic is the host's: every operation rounds once, none are contracted, and approximations are better than a device's. So results
 * differ from a device's in their last bits; both must be within the bound. */
#ifndef QUERN_TESTS_EMULATED_DEVICE_H
#define QUERN_TESTS_EMULATED_DEVICE_H
#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <utility>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

/* From here on as if compiled by nvcc. There is no code for 9.0: clusters are not emulated. */
#define __CUDACC__ 1
#define __CUDA_ARCH_LIST__ 750, 800
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __noinline__
#define __noinline__
#undef __forceinline__
#define __forceinline__ inline    /* the compiler's choice: what is inlined everywhere takes half as long again to compile */
#undef __shared__
#define __shared__ static               /* one block runs at a time */
#define _CUDA_PIPELINE_PRIMITIVES_H_    /* that header needs nvcc; what is used of it is below */
using std::max;
using std::min;

/* ---- thread and block indices ---------------------------------------------------------------------------------- */

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern int emulated_lane;
enum { warpSize = 32 };

/* ---- errors of a kernel: set a sentence and end the launch ----------------------------------------------------- */

[[noreturn]] void emulated_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
inline void emulated_unknown(const char *instruction, const char *file, int line)
{
  emulated_error("%s:%d: the instruction %s is not emulated", file, line, instruction);
}

template <class T> T *emulated_aligned(T *p)
{
  if ((uintptr_t)p % alignof(T)) emulated_error("an access of %zu bytes at %p, which is not aligned to them", sizeof(T), (const void *)p);
  return p;
}

/* ---- launches -------------------------------------------------------------------------------------------------- */

void emulated_enqueue(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, std::function<void()> thread);

template <class F> struct emulated_launcher {
  F      thread;
  dim3   grid, block;
  size_t shared;
  cudaStream_t stream;
  template <class... A> void operator()(A... a) const { emulated_enqueue(grid, block, shared, stream, [=, f = thread] { f(a...); }); }
};
template <class F> emulated_launcher<F> emulated_launch(F thread, dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0)
{
  return { thread, grid, block, shared, stream };
}

/* The runtime knows a kernel only by its address. So each begins with EMULATED_KERNEL: called while emulated_ask is set, it reports how
 * to call the kernel, and does nothing else. */
typedef std::function<void()> emulated_bind(const void *kernel, void **args);
extern emulated_bind **emulated_ask;
extern const char *emulated_kernel;     /* the one that is running */

template <class... P, size_t... i> std::function<void()> emulated_bound(const void *kernel, void **args, std::index_sequence<i...>)
{
  std::tuple<P...> p(*(const P *)args[i]...);
  return [=] { ((void (*)(P...))kernel)(std::get<i>(p)...); };
}
template <class... P> bool emulated_asked(const char *name, const P &...)
{
  emulated_kernel = name;
  if (!emulated_ask) return false;
  *emulated_ask = [](const void *kernel, void **args) { return emulated_bound<P...>(kernel, args, std::index_sequence_for<P...>()); };
  return true;
}
#define EMULATED_KERNEL(...) if (emulated_asked(__PRETTY_FUNCTION__, ##__VA_ARGS__)) return

inline void cudaTriggerProgrammaticLaunchCompletion() {}
inline void cudaGridDependencySynchronize() {}

/* ---- shared memory --------------------------------------------------------------------------------------------- */

/* The launch's shared memory. 32-bit addresses count from here, those of __shared__ variables too. */
extern char emulated_shared[];
void *emulated_at_shared(uint32_t at, int bytes);
inline size_t __cvta_generic_to_shared(const void *p) { return (uint32_t)((const char *)p - emulated_shared); }

/* ---- barriers -------------------------------------------------------------------------------------------------- */

int  emulated_block_barrier(int vote);  /* returns how many threads' votes are not 0 */
int  emulated_named_barrier(int id, int threads, int vote = 0);           /* returns the same of those who wait at it */
void emulated_named_arrival(int id, int threads);                         /* counts as one, without waiting */
void emulated_let_others();             /* yields: what this thread waits for has not happened yet */
inline void __syncthreads() { emulated_block_barrier(0); }
inline int  __syncthreads_or(int vote) { return emulated_block_barrier(vote) != 0; }
inline int  __syncthreads_count(int vote) { return emulated_block_barrier(vote); }
inline void __threadfence() {}
inline void __threadfence_block() {}

/* ---- warps ----------------------------------------------------------------------------------------------------- */

/* Each lane of the mask gives a word of at most 16 bytes and waits for the others; then each may read what those gave. */
void emulated_give(unsigned mask, const void *word, size_t bytes);
const void *emulated_given(int lane);   /* of a lane that gave none: all bits one */

/* What a lane holds of an mma's operands, as numbers: `each` of every word. Adds the lane's sums, once all lanes have come. */
struct emulated_fragment { float a[16], b[8]; };
void emulated_product(const emulated_fragment &own, int each, double sum[4]);

inline void __syncwarp(unsigned mask = ~0u) { emulated_give(mask, "", 1); }

template <class T> T emulated_take(int lane)
{
  T t;
  memcpy(&t, emulated_given(lane), sizeof t);
  return t;
}
template <class T> T __shfl_sync(unsigned mask, T v, int from, int width = 32)
{
  emulated_give(mask, &v, sizeof v);
  return emulated_take<T>((emulated_lane & ~(width - 1)) + (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32)
{
  const int from = emulated_lane ^ bits;
  emulated_give(mask, &v, sizeof v);
  return emulated_take<T>(from / width > emulated_lane / width ? emulated_lane : from);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned by, int width = 32)
{
  const int from = emulated_lane - (int)by;
  emulated_give(mask, &v, sizeof v);
  return emulated_take<T>(from < (emulated_lane & ~(width - 1)) ? emulated_lane : from);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned by, int width = 32)
{
  const int from = emulated_lane + (int)by;
  emulated_give(mask, &v, sizeof v);
  return emulated_take<T>(from > (emulated_lane | (width - 1)) ? emulated_lane : from);
}

template <class T, class F> T emulated_fold(unsigned mask, T v, T from, F f)
{
  emulated_give(mask, &v, sizeof v);
  for (int lane = 0; lane < warpSize; lane++)
    if (mask >> lane & 1) from = f(from, emulated_take<T>(lane), lane);
  return from;
}
inline unsigned __ballot_sync(unsigned mask, int vote)
{
  return emulated_fold(mask, (unsigned)(vote != 0), 0u, [](unsigned all, unsigned v, int lane) { return all | v << lane; });
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, !vote) == 0; }
inline unsigned __match_any_sync(unsigned mask, unsigned v)
{
  return emulated_fold(mask, v, 0u, [v](unsigned all, unsigned other, int lane) { return all | (unsigned)(other == v) << lane; });
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned v)
{
  return emulated_fold(mask, v, 0u, [](unsigned all, unsigned v, int) { return all + v; });
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned v)
{
  return emulated_fold(mask, v, 0u, [](unsigned all, unsigned v, int) { return max(all, v); });
}

/* ---- memory: alignment is checked, caches are not modelled --------------------------------------------------- */

template <class T> T __ldg(const T *p) { return *emulated_aligned(p); }
template <class T> T __ldca(const T *p) { return *emulated_aligned(p); }
template <class T> T __ldcg(const T *p) { return *emulated_aligned(p); }
template <class T> T __ldcs(const T *p) { return *emulated_aligned(p); }
template <class T> void __stcg(T *p, T v) { *emulated_aligned(p) = v; }
template <class T> void __stcs(T *p, T v) { *emulated_aligned(p) = v; }

inline void emulated_copy(void *to, const void *from, size_t width, size_t bytes)
{
  if (((uintptr_t)to | (uintptr_t)from) % width)
    emulated_error("a copy of %zu bytes from %p to %p, which are not both aligned to them", width, from, to);
  memcpy(to, from, bytes);
  memset((char *)to + bytes, 0, width - bytes);
}
inline void __pipeline_memcpy_async(void *to, const void *from, size_t width, size_t zeros = 0)
{
  emulated_copy(to, from, width, width - zeros);
}
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(int) {}

/* Fibers are not preempted. */
template <class T, class F> T emulated_atomic(T *p, F f)
{
  emulated_aligned(p);
  T old, next;
  __atomic_load(p, &old, __ATOMIC_RELAXED);                 /* blocks may run concurrently */
  do next = f(old);
  while (!__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}
template <class T, class U> T atomicAdd(T *p, U v) { return emulated_atomic(p, [=](T old) { return (T)(old + v); }); }
template <class T, class U> T atomicMax(T *p, U v) { return emulated_atomic(p, [=](T old) { return max(old, (T)v); }); }
template <class T, class U> T atomicMin(T *p, U v) { return emulated_atomic(p, [=](T old) { return min(old, (T)v); }); }
template <class T, class U> T atomicOr(T *p, U v) { return emulated_atomic(p, [=](T old) { return (T)(old | v); }); }
template <class T, class U> T atomicExch(T *p, U v) { return emulated_atomic(p, [=](T) { return (T)v; }); }
template <class T, class U, class V> T atomicCAS(T *p, U is, V v)
{
  return emulated_atomic(p, [=](T old) { return old == (T)is ? (T)v : old; });
}
inline unsigned atomicInc(unsigned *p, unsigned most)
{
  return emulated_atomic(p, [=](unsigned old) { return old >= most ? 0 : old + 1; });
}

/* ---- bits ------------------------------------------------------------------------------------------------------ */

template <class To, class From> To emulated_bits(From from)
{
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
inline float     __uint_as_float(unsigned v) { return emulated_bits<float>(v); }
inline float     __int_as_float(int v) { return emulated_bits<float>(v); }
inline unsigned  __float_as_uint(float v) { return emulated_bits<unsigned>(v); }
inline int       __float_as_int(float v) { return emulated_bits<int>(v); }
inline double    __longlong_as_double(long long v) { return emulated_bits<double>(v); }
inline long long __double_as_longlong(double v) { return emulated_bits<long long>(v); }
inline double    __hiloint2double(int high, int low) { return emulated_bits<double>((uint64_t)(uint32_t)high << 32 | (uint32_t)low); }

inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by)
{
  return (unsigned)(((uint64_t)high << 32 | low) << (by & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by)
{
  return (unsigned)(((uint64_t)high << 32 | low) >> (by & 31));
}
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline unsigned __brev(unsigned v)
{
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= (v >> i & 1) << (31 - i);
  return r;
}
/* Four of the eight bytes of b:a; if a selector's high bit is set, the byte's sign, eight times. */
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selectors)
{
  const uint64_t bytes = (uint64_t)b << 32 | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned selector = selectors >> 4 * i & 15;
    unsigned byte = (unsigned)(bytes >> 8 * (selector & 7)) & 255;
    if (selector & 8) byte = byte & 128 ? 255 : 0;
    r |= byte << 8 * i;
  }
  return r;
}
/* Applies f to each part of type T of two words. */
template <class T, class F> unsigned emulated_parts(unsigned a, unsigned b, F f)
{
  const unsigned bits = 8 * sizeof(T);
  unsigned r = 0;
  for (unsigned i = 0; i < 32; i += bits) r |= ((unsigned)f((T)(a >> i), (T)(b >> i)) & ((1u << bits) - 1)) << i;
  return r;
}
inline unsigned __vmaxs2(unsigned a, unsigned b) { return emulated_parts<int16_t>(a, b, [](int x, int y) { return max(x, y); }); }
inline unsigned __vmaxu2(unsigned a, unsigned b) { return emulated_parts<uint16_t>(a, b, [](int x, int y) { return max(x, y); }); }
inline unsigned __vsub4(unsigned a, unsigned b) { return emulated_parts<uint8_t>(a, b, [](int x, int y) { return x - y; }); }

/* ---- conversions to integers: to nearest, saturating; NaN gives 0, in 64 bits the least ------------------------- */

inline int __double2int_rn(double x) { return x != x ? 0 : x >= INT_MAX ? INT_MAX : x <= INT_MIN ? INT_MIN : (int)std::rint(x); }
inline int __float2int_rn(float x) { return __double2int_rn(x); }
inline int __float2int_rd(float x) { return __double2int_rn(std::floor(x)); }
inline int __float2int_rz(float x) { return __double2int_rn(std::trunc(x)); }
inline long long __double2ll_rn(double x) { return x >= 0x1p63 ? LLONG_MAX : x != x || x <= -0x1p63 ? LLONG_MIN : (long long)std::rint(x); }
inline float __int2float_rn(int x) { return (float)x; }
inline float __uint2float_rn(unsigned x) { return (float)x; }

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

inline float  __fadd_rn(float a, float b) { return a + b; }
inline float  __fmul_rn(float a, float b) { return a * b; }
inline float  __fdiv_rn(float a, float b) { return a / b; }
/* Multiplies by an approximate reciprocal, which is 0 where it would be subnormal. */
inline float  __fdividef(float a, float b) { return std::fabs(b) > 0x1p126f ? a * std::copysign(0.f, b) : a / b; }
inline float  __frcp_rn(float a) { return 1 / a; }
inline float  __fsqrt_rn(float a) { return std::sqrt(a); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float  __saturatef(float a) { return std::fmin(std::fmax(a, 0.f), 1.f); }
inline float  __expf(float a) { return std::exp(a); }
inline float  __exp2f(float a) { return std::exp2(a); }
inline float  __logf(float a) { return std::log(a); }
inline float  __log2f(float a) { return std::log2(a); }
inline float  __powf(float a, float b) { return std::pow(a, b); }
inline float  __cosf(float a) { return std::cos(a); }
inline float  __sinf(float a) { return std::sin(a); }

/* For functions that CUDA's headers declare for the host too, but do not define. */
inline float  emulated_rsqrtf(float a) { return 1 / std::sqrt(a); }
inline double emulated_rsqrt(double a) { return 1 / std::sqrt(a); }
/* Near its zeros pi x loses digits: use the sine of the remainder instead. */
inline double emulated_cospi(double x)
{
  const double r = fabs(remainder(x, 2));
  return (double)(r < .25 ? cosl(M_PIl * r) : r < .75 ? sinl(M_PIl * (.5 - r)) : -cosl(M_PIl * (1 - r)));
}
inline double emulated_sinpi(double x)
{
  const double r = remainder(x, 2), a = fabs(r);
  return copysign((double)(a < .25 ? sinl(M_PIl * a) : a < .75 ? cosl(M_PIl * (.5 - a)) : sinl(M_PIl * (1 - a))), r);
}
inline void   emulated_sincospi(double x, double *s, double *c) { *s = emulated_sinpi(x), *c = emulated_cospi(x); }
inline float  emulated_cospif(float x) { return (float)std::cos(M_PI * x); }
inline float  emulated_sinpif(float x) { return (float)std::sin(M_PI * x); }
inline void   emulated_sincospif(float x, float *s, float *c) { *s = emulated_sinpif(x), *c = emulated_cospif(x); }
#define rsqrtf    emulated_rsqrtf
#define rsqrt     emulated_rsqrt
#define cospi     emulated_cospi
#define sinpi     emulated_sinpi
#define sincospi  emulated_sincospi
#define cospif    emulated_cospif
#define sinpif    emulated_sinpif
#define sincospif emulated_sincospif

/* What the emulated driver writes into a CUtensorMap. */
typedef struct emulated_map {
  const char *base;
  int64_t     extent[5], stride[4];     /* elements; bytes */
  int32_t     box[5];                   /* elements */
  int16_t     size;                     /* bytes of an element */
  int16_t     span;                     /* of the swizzle: 128, 64, 32; 0: none */
  int32_t     last[3];                  /* im2col, W first: pixels lie from lower to last ... */
  int16_t     lower[3];
  uint8_t     pace[3], spatial;         /* ... by these steps; spatial: dims, 0: boxes of a tile */
} emulated_map;
static_assert(sizeof(emulated_map) <= sizeof(CUtensorMap), "it fits");

#include "ptx.h"
#endif
