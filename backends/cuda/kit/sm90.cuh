/* sm90.cuh -- thin wrappers of Hopper's asynchronous instructions: mbarriers, clusters, TMA.
 *
 * An mbarrier completes a phase when all its arrivals and expected bytes have come. Waiters name the parity of the phase they
 * wait for; a fresh barrier counts as having completed parity 1. (compute-sanitizer's racecheck does not follow mbarriers: it reports
 * plain accesses that only they order, as of words that a bulk copy or another warpgroup wrote.) */
#pragma once
#include <cuda.h>
#include "sm80.cuh"

__device__ __forceinline__ void barrier_init(uint32_t bar, uint32_t arrivals)
{
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void barrier_expect(uint32_t bar, uint32_t bytes)     /* also arrives once */
{
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(uint32_t bar)
{
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(bar) : "memory");
}
__device__ __forceinline__ void barrier_wait(uint32_t bar, uint32_t parity)
{
  uint32_t done;
  do
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(done) : "r"(bar), "r"(parity) : "memory");
  while (!done);
}
/* Arrives when the thread's earlier copies (copy_async) have landed. */
__device__ __forceinline__ void barrier_arrive_copied(uint32_t bar)
{
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(bar) : "memory");
}
__device__ __forceinline__ void group_sync(int id, int threads)      /* named barrier; id 0 is __syncthreads */
{
  asm volatile("bar.sync %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void group_arrive(int id, int threads)    /* counts for that barrier without waiting at it */
{
  asm volatile("bar.arrive %0, %1;" :: "r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ bool group_any(bool mine, int id, int threads)     /* the same; true if any thread's `mine` is */
{
  uint32_t any;
  asm volatile("{.reg .pred p, q; setp.ne.u32 p, %3, 0; bar.red.or.pred q, %1, %2, p; selp.u32 %0, 1, 0, q;}"
               : "=r"(any) : "r"(id), "r"(threads), "r"((uint32_t)mine) : "memory");
  return any;
}
__device__ __forceinline__ uint32_t cluster_rank()
{
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
/* Only makes initialised barriers (barrier_init_fence) visible to those who wait; orders nothing else. */
__device__ __forceinline__ void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync()
{
  cluster_arrive();
  cluster_wait();
}

/* Address of the same location in the shared memory of CTA `rank` of the cluster. */
__device__ __forceinline__ uint32_t cluster_address(uint32_t address, uint32_t rank)
{
  uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
__device__ __forceinline__ void cluster_store(uint32_t there, float a, float b, float c, float d)
{
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" :: "r"(there), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
}
/* The same without waiting; `bar`, a barrier in that CTA, counts the 16 bytes when they arrive. */
__device__ __forceinline__ void cluster_send(uint32_t there, float a, float b, float c, float d, uint32_t bar)
{
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];"
               :: "r"(there), "f"(a), "f"(b), "f"(c), "f"(d), "r"(bar) : "memory");
}

/* Programmatic dependent launch: the kernel starts while its predecessor ends, so it must wait before it touches global memory,
 * and allows its own successor to do the same. Both do nothing in an ordinary launch. */
__device__ __forceinline__ void grid_dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void grid_dependents_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

/* Makes ordinary stores to shared memory visible to TMA and wgmma. */
__device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Boxes of a tensor map; coordinates innermost first; elements outside the tensor read as 0 and are not written. */
__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap *map)
{
  asm volatile("prefetch.tensormap [%0];" :: "l"(map) : "memory");
}
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap *map, int c0, int c1, int c2, int c3, uint32_t bar)
{
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5}], [%6];"
               :: "r"(to), "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(bar) : "memory");
}
/* Into the L2 cache only. */
__device__ __forceinline__ void tma_prefetch(const CUtensorMap *map, int c0, int c1, int c2, int c3)
{
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1,%2,%3,%4}];"
               :: "l"(map), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
/* im2col: a column of pixels of an [N, H, W, C] tensor, each moved by (dw, dh), the offset of a filter tap. */
__device__ __forceinline__ void tma_load_im2col(uint32_t to, const CUtensorMap *map, int c, int w, int h, int n, int dw, int dh,
                                                uint32_t bar)
{
  asm volatile(
    "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5}], [%6], {%7,%8};"
    :: "r"(to), "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(bar), "h"((uint16_t)dw), "h"((uint16_t)dh)
    : "memory");
}
/* The same for [N, D, H, W, C]. */
__device__ __forceinline__ void tma_load_im2col(uint32_t to, const CUtensorMap *map, int c, int w, int h, int d, int n, int dw, int dh,
                                                int dd, uint32_t bar)
{
  asm volatile(
    "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2,%3,%4,%5,%6}], [%7], {%8,%9,%10};"
    :: "r"(to), "l"(map), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n), "r"(bar), "h"((uint16_t)dw), "h"((uint16_t)dh), "h"((uint16_t)dd)
    : "memory");
}
__device__ __forceinline__ void tma_store(const CUtensorMap *map, uint32_t from, int c0, int c1, int c2, int c3)
{
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2,%3,%4,%5}], [%1];"
               :: "l"(map), "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3) : "memory");
}
/* A column of pixels of an [N, H, W, C] tensor, in the order of tma_load_im2col. */
__device__ __forceinline__ void tma_store_im2col(const CUtensorMap *map, uint32_t from, int c, int w, int h, int n)
{
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2,%3,%4,%5}], [%1];"
               :: "l"(map), "r"(from), "r"(c), "r"(w), "r"(h), "r"(n) : "memory");
}
__device__ __forceinline__ void tma_store_im2col(const CUtensorMap *map, uint32_t from, int c, int w, int h, int d, int n)
{
  asm volatile("cp.async.bulk.tensor.5d.global.shared::cta.im2col_no_offs.bulk_group [%0, {%2,%3,%4,%5,%6}], [%1];"
               :: "l"(map), "r"(from), "r"(c), "r"(w), "r"(h), "r"(d), "r"(n) : "memory");
}
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int pending> __device__ __forceinline__ void tma_store_wait_read()     /* until the sources in shared memory may be overwritten */
{
  asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(pending) : "memory");
}
template <int pending> __device__ __forceinline__ void tma_store_wait()
{
  asm volatile("cp.async.bulk.wait_group %0;" :: "n"(pending) : "memory");
}

/* Plain bulk copies; addresses and sizes in units of 16 bytes. */
__device__ __forceinline__ void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t bar)
{
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
__device__ __forceinline__ void bulk_add(float *to, uint32_t from, uint32_t bytes)    /* to += from; committed, waited for as a store */
{
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" :: "l"(to), "r"(from), "r"(bytes) : "memory");
}

/* A count in global memory by which blocks take turns; what the asynchronous proxy does is ordered by it, too. */
__device__ __forceinline__ void turn_wait(const uint32_t *count, uint32_t turn)
{
  uint32_t now;
  do
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(count) : "memory");
  while (now != turn);
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
__device__ __forceinline__ void turn_end(uint32_t *count)
{
  asm volatile("fence.proxy.async.global;" ::: "memory");
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" :: "l"(count), "r"(1) : "memory");
}

/* stmatrix: four 8x8 blocks of 16-bit elements from a warp's fragments; lane l gives the address of row l%8 of block l/8. */
__device__ __forceinline__ void store_matrix(uint32_t address, uint32_t r0, uint32_t r1, uint32_t r2, uint32_t r3)
{
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};"
               :: "r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3) : "memory");
}

template <int n> __device__ __forceinline__ void registers_raise() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(n)); }
template <int n> __device__ __forceinline__ void registers_lower() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(n)); }
