/* wgmma_tf32.cuh -- the Tensor Core instruction of sm_90a in tf32 with a from registers: it may be transposed, or split, on the way.
 *
 *   d (64 x N) = a (64 x 8, registers) b (8 x N, descriptor) + (accumulate ? d : 0)
 *
 * Thread t of the warpgroup holds, with w, g, q as in wgmma.cuh, a[0], a[1]: rows 16w + g and g + 8 of column q; a[2], a[3]: of
 * column q + 4. a, too, is not to be touched before the wait. */
#pragma once
#include "wgmma.cuh"

#define D8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define D32(i) D8(i), D8(i + 8), D8(i + 16), D8(i + 24)
#define LIST32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define LIST64 LIST32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"

__device__ __forceinline__ void wgmma_tf32(float (&d)[32], const uint32_t (&a)[4], uint64_t b, int accumulate)
{
  asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k8.f32.tf32.tf32 {" LIST32 "}, "
               "{%32,%33,%34,%35}, %36, p, 1, 1;}"
               : D32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate) : "memory");
}

__device__ __forceinline__ void wgmma_tf32(float (&d)[64], const uint32_t (&a)[4], uint64_t b, int accumulate)
{
  asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {" LIST64 "}, "
               "{%64,%65,%66,%67}, %68, p, 1, 1;}"
               : D32(0), D32(32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate) : "memory");
}

#undef D8
#undef D32
#undef LIST32
#undef LIST64
