/* simd.h -- shared by the files that are compiled once per instruction set.
 *
 * The build defines QN_ISA (baseline, avx2 or avx512) along with the set's flags. A copy exports its run under a name of its own,
 * CPU_NAME(cpu_pool_planes), suffixed by the set; everything else in it is static, because an inline function with external linkage
 * could leak wide instructions into code that every machine runs. prepare and the tables of all copies are in the baseline copy,
 * under CPU_BASELINE: prepare must also answer for device models other than this machine. */
#ifndef CPU_SIMD_H
#define CPU_SIMD_H
#include <config.h>
#include <stdbool.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <quern/kit.h>

#define CPU_ISA_baseline 1
#define CPU_ISA_avx2     2
#define CPU_ISA_avx512   3
#define CPU_ISA_(isa)    CPU_ISA_##isa
#define CPU_ISA_OF(isa)  CPU_ISA_(isa)
#ifndef QN_ISA
#define QN_ISA baseline
#endif

#define CPU_JOIN(a, b)   a##b
#if CPU_ISA_OF(QN_ISA) == CPU_ISA_avx512
#define CPU_NAME(name)   CPU_JOIN(name, _avx512)
#define CPU_VECTOR_BYTES 64
#elif CPU_ISA_OF(QN_ISA) == CPU_ISA_avx2
#define CPU_NAME(name)   CPU_JOIN(name, _avx2)
#define CPU_VECTOR_BYTES 32
#else
#define CPU_BASELINE
#define CPU_NAME(name)   name
#define CPU_VECTOR_BYTES 16
#endif

/* Declares the run of each copy. */
typedef qn_status cpu_run_fn(const qn_prepared *prepared, const qn_launch *launch);
#define CPU_RUNS(run) extern cpu_run_fn run, CPU_JOIN(run, _avx2), CPU_JOIN(run, _avx512)

/* X(engine, run) for each copy, widest first; each row ends with a comma. */
#ifdef QN_AVX512
#define CPU_AVX512_COPY(X, engine, run) X(engine "_avx512", run##_avx512)
#else
#define CPU_AVX512_COPY(X, engine, run)
#endif
#ifdef QN_AVX2
#define CPU_AVX2_COPY(X, engine, run) X(engine "_avx2", run##_avx2)
#else
#define CPU_AVX2_COPY(X, engine, run)
#endif
#define CPU_COPIES(X, engine, run) CPU_AVX512_COPY(X, engine, run) CPU_AVX2_COPY(X, engine, run) X(engine, run)

/* Always inlined, so that a constant function pointer passed to it becomes straight code in its loop; not under AddressSanitizer, whose
 * checks make such code take up to twenty times as long to compile. */
#ifdef __SANITIZE_ADDRESS__
#define CPU_INLINE static inline
#else
#define CPU_INLINE static inline __attribute__((always_inline))
#endif

/* ---- real: f32 or f64. NAME_f64.c includes NAME.c after defining CPU_REAL_F64 and other names -------------------------------- */

#ifdef CPU_REAL_F64
typedef double real;
#define CPU_REAL        QN_F64
#define CPU_REAL_NAME   "f64"
#define CPU_REAL_SUFFIX "_f64"
#define CPU_REALS       "f64"
#else
typedef float real;
#define CPU_REAL        QN_F32
#define CPU_REAL_NAME   "f32"
#define CPU_REAL_SUFFIX ""
#define CPU_REALS       "f32, f16, bf16"
#endif

/* ---- vectors, where plain loops do not vectorise: reductions with NaN, several accumulators ------------------ */

typedef float   v_f32 __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef int32_t v_i32 __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef double  v_f64 __attribute__((vector_size(CPU_VECTOR_BYTES)));
typedef real    v_real __attribute__((vector_size(CPU_VECTOR_BYTES)));
enum { CPU_LANES = CPU_VECTOR_BYTES / 4, CPU_LANES_F64 = CPU_VECTOR_BYTES / 8 };

CPU_INLINE v_f32 v_load(const void *p)          { v_f32 v; memcpy(&v, p, sizeof v); return v; }
CPU_INLINE v_real v_load_real(const real *p)    { v_real v; memcpy(&v, p, sizeof v); return v; }
/* x[at], element by element if the set has no gather (compilers do not make one of a loop). Starts from zeros to avoid a dependency. */
CPU_INLINE v_f32 v_gather(const float *x, const int32_t *at)
{
#if defined __AVX512F__
  return (v_f32)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, _mm512_loadu_si512(at), x, 4);
#elif defined __AVX2__
  return (v_f32)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, _mm256_loadu_si256((const __m256i *)(const void *)at),
                                         (__m256)_mm256_set1_epi32(-1), 4);
#else
  v_f32 v;
  for (int i = 0; i < CPU_LANES; i++) v[i] = x[at[i]];
  return v;
#endif
}
CPU_INLINE v_f32 v_all(float x)                 { return x - (v_f32){ 0 }; }
CPU_INLINE v_f32 v_select(v_i32 mask, v_f32 a, v_f32 b) { return (v_f32)((mask & (v_i32)a) | (~mask & (v_i32)b)); }
/* x if it is larger than m or NaN; once m is NaN it stays */
CPU_INLINE v_f32 v_larger(v_f32 m, v_f32 x)     { return v_select((x > m) | (x != x), x, m); }
CPU_INLINE float f_larger(float m, float x)     { return x > m || x != x ? x : m; }

/* ---- first steps of every prepare and run ------------------------------------------------------------------- */


/* Called first by every prepare here: does the device have the instruction set of the row's name? */
static inline qn_status cpu_isa_check(const qn_request *request, qn_prepared *prepared)
{
  const bool avx512 = strstr(prepared->engine->name, "_avx512"), avx2 = strstr(prepared->engine->name, "_avx2");
  const uint64_t wanted = avx512 ? QN_CPU_AVX512 : avx2 ? QN_CPU_AVX2 : 0;
  if ((request->device->features & wanted) == wanted) return QN_OK;
  return qn_refuse(prepared, "this copy is compiled for a wider instruction set", "", avx512 ? "AVX-512" : "AVX2", "%s",
                   request->device->name);
}

/* Elements of light work that justify one more thread. */
#define CPU_GRAIN 32768
static inline int cpu_threads(const qn_launch *launch, int64_t work)
{
  const int64_t useful = work / CPU_GRAIN + 1;
  return useful < launch->threads ? (int)useful : launch->threads;
}
#endif
