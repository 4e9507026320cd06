/* fake_cuda_memory.c -- the memory of the stand-in for the CUDA runtime: addresses that no host has, each allocation known to the byte. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include "cuda_code.h"
#include "fake_cuda_order.h"

#define MEMORY UINT64_C(0x0d5c000000000000)
#define MEMORY_END UINT64_C(0x0d5d000000000000)
enum { APART = 1 << 20 };               /* gap between allocations, so that an overrun hits none */

typedef struct block { uint64_t at, bytes; } block;
static block   *blocks;
static size_t   n_blocks;
static uint64_t next = MEMORY + APART;

static const block *block_of(uint64_t at, uint64_t bytes)
{
  for (size_t i = 0; i < n_blocks; i++)
    if (at >= blocks[i].at && at + bytes <= blocks[i].at + blocks[i].bytes) return &blocks[i];
  return NULL;
}

bool fake_in_memory(uint64_t at) { return at >= MEMORY && at < MEMORY_END; }
bool fake_allocated(uint64_t at, uint64_t bytes) { return block_of(at, bytes); }

const char *fake_beside(uint64_t at)
{
  static char text[128];
  const block *near = NULL;
  for (size_t i = 0; i < n_blocks; i++)
    if (blocks[i].at <= at + APART / 2 && (!near || near->at < blocks[i].at)) near = &blocks[i];
  if (!near) return "where nothing is allocated";
  const bool ahead = at < near->at;
  snprintf(text, sizeof text, "%llu bytes %s an allocation of %llu", (unsigned long long)(ahead ? near->at - at : at - near->at),
           ahead ? "ahead of" : "into", (unsigned long long)near->bytes);
  return text;
}

static cudaError_t check_range(const char *what, const void *p, size_t bytes)
{
  if (!bytes || block_of((uint64_t)(uintptr_t)p, bytes)) return cudaSuccess;
  return broken(cudaErrorInvalidValue, "%s: %zu bytes at %s", what, bytes, fake_beside((uint64_t)(uintptr_t)p));
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
  *p = NULL;
  if (!bytes) return cudaSuccess;
  if (bytes > MEMORY_END - next - 2 * APART) return fake_last(cudaErrorMemoryAllocation);
  blocks = grown(blocks, n_blocks, sizeof *blocks);
  blocks[n_blocks++] = (block){ next, bytes };
  *p = (void *)(uintptr_t)next;
  next += (bytes + 255) / 256 * 256 + APART;
  return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
  for (size_t i = 0; i < n_blocks && p; i++)
    if (blocks[i].at == (uint64_t)(uintptr_t)p) {
      memmove(&blocks[i], &blocks[i + 1], (--n_blocks - i) * sizeof *blocks);
      return cudaSuccess;
    }
  return p ? broken(cudaErrorInvalidValue, "cudaFree of what is not allocated") : cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t stream)
{
  (void)value;
  const cudaError_t e = check_range("cudaMemsetAsync", p, bytes);
  return e ? e : fake_access("a fill", p, bytes, FAKE_WRITTEN, stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
  cudaError_t e = cudaSuccess;
  if (kind != cudaMemcpyDeviceToHost) e = check_range("cudaMemcpyAsync, to", to, bytes);
  if (!e && kind != cudaMemcpyHostToDevice) e = check_range("cudaMemcpyAsync, from", from, bytes);
  if (!e && kind != cudaMemcpyHostToDevice) e = fake_access("a copy's read", from, bytes, FAKE_READ, stream);
  return e || kind == cudaMemcpyDeviceToHost ? e : fake_access("a copy", to, bytes, FAKE_WRITTEN, stream);
}

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
  (void)flags;
  *p = malloc(bytes);
  return *p ? cudaSuccess : fake_last(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *p)
{
  free(p);
  return cudaSuccess;
}
