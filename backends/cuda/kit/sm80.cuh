/* sm80.cuh -- thin wrappers of Ampere's cp.async, ldmatrix and mma.sync. Older devices have only the copies, done synchronously. */
#pragma once
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void shared_store(uint32_t to, uint32_t word)
{
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(to), "r"(word) : "memory");
}

__device__ __forceinline__ void shared_load(float *v, uint32_t from)       /* four floats */
{
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(from) : "memory");
}

/* Copies `width` (4, 8, 16) bytes to shared memory: the first `bytes` are read (before Ampere in whole words), the rest is zero-filled. */
template <int width> __device__ __forceinline__ void copy_async(uint32_t to, const void *from, int bytes)
{
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 800
#pragma unroll
  for (int i = 0; i < width; i += 4) shared_store(to + i, i < bytes ? *(const uint32_t *)((const char *)from + i) : 0);
#else
  if (width == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" :: "r"(to), "l"(from), "n"(width), "r"(bytes) : "memory");
#endif
}
__device__ __forceinline__ void copy_async_commit()
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int pending> __device__ __forceinline__ void copy_async_wait()
{
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
#endif
}

/* The sector at p will be read soon: it is brought to L2. */
__device__ __forceinline__ void prefetch_L2(const void *p) { asm volatile("prefetch.global.L2 [%0];" :: "l"(p)); }

/* ldmatrix: four 8 x 8 matrices of 16-bit elements (or 8 x 4 of words); lanes 0-7, 8-15, ... hold their rows' addresses. */
template <bool transposed> __device__ __forceinline__ void load_matrices(uint32_t (&r)[4], uint32_t at)
{
  if (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

/* d += a b: 16 x 8 sums, 32 bytes of k. */
struct mma_bf16 {
  typedef float number;
  __device__ static void product(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
  {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
struct mma_f16 {
  typedef float number;
  __device__ static void product(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
  {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
struct mma_tf32 {
  typedef float number;
  __device__ static void product(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
  {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
struct mma_i8 {
  typedef int number;
  __device__ static void product(int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
  {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};
