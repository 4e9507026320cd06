/* gemm_gather.cuh -- fills a stage of matmul_wgmma.cuh without the copy engine: operands of 2-byte elements whose lines lie at
 * any pitch and alignment. The copy engine takes only pitches of 16 bytes.
 *
 * A stage holds lines of 128 bytes, 64 elements: of a row's k, or (rows contiguous) of 64 rows at one k. Sixteen-byte parts are
 * swizzled as the copy engine would: part p of line l lies at p ^ (l % 8). */
#pragma once
#include "matmul_wgmma.h"
#include "sm90.cuh"

/* `lines` of them by asynchronous copies; what lies beyond the operand becomes 0. All threads of a warpgroup. */
template <int lines, int width> __device__ __forceinline__ void gather_copies(uint32_t to, const char *from, int64_t pitch, int lines_left, int bytes_left)
{
  constexpr int parts = 128 / width, at_once = 128 / parts;
  int t = threadIdx.x % 128, part = t % parts, l = t / parts;
  int bytes = min(max(bytes_left - part * width, 0), width);
  from += l * pitch + part * width;
#pragma unroll 8
  for (int i = 0; i < lines / at_once; i++, l += at_once, from += at_once * pitch)
    copy_async<width>(to + l * 128 + ((part * width) ^ (l % 8 * 16)), from, l < lines_left ? bytes : 0);
}

/* An operand's `rows` rows of a stage. rows_contiguous: in blocks of 64 rows, each of 64 lines. Elements that no copy can fetch
 * pass through registers, a line to a warp, two of them to a thread: all of both operands' are under way before the first is stored. */
template <int rows, bool rows_contiguous> struct gather {
  static constexpr int blocks = rows_contiguous ? rows / 64 : 1, lines = rows_contiguous ? 64 : rows, mine = lines / 4;
  uint32_t word[blocks * mine];

  __device__ __forceinline__ void load(const char *from, int64_t pitch, int lines_left, int bytes_left, int block)
  {
    int l = threadIdx.x % 128 / 32, at = threadIdx.x % 32 * 4;
    from += l * pitch + at;
#pragma unroll
    for (int i = 0; i < mine; i++, l += 4, from += 4 * pitch) {
      uint32_t lo = 0, hi = 0;
      if (l < lines_left && at < bytes_left) lo = *(const uint16_t *)from;
      if (l < lines_left && at + 2 < bytes_left) hi = *(const uint16_t *)(from + 2);
      word[block * mine + i] = lo | hi << 16;
    }
  }
  __device__ __forceinline__ void begin(uint32_t to, const cuda_gemm_lines &o, int row, int k, int b0, int b1)
  {
    const char *base = (const char *)o.p + b0 * o.batch_stride[0] + b1 * o.batch_stride[1];
#pragma unroll
    for (int b = 0; b < blocks; b++, row += 64, to += 64 * 128) {
      int line = rows_contiguous ? k : row, element = rows_contiguous ? row : k;
      const char *from = base + line * o.pitch + element * 2;
      int lines_left = o.lines - line, bytes_left = (o.elements - element) * 2;
      switch (o.width) {
      case 16: gather_copies<lines, 16>(to, from, o.pitch, lines_left, bytes_left); break;
      case 8:  gather_copies<lines, 8>(to, from, o.pitch, lines_left, bytes_left); break;
      case 4:  gather_copies<lines, 4>(to, from, o.pitch, lines_left, bytes_left); break;
      default: load(from, o.pitch, lines_left, bytes_left, b);
      }
    }
  }
  __device__ __forceinline__ void end(uint32_t to, const cuda_gemm_lines &o) const
  {
    if (o.width > 2) return;
    int l = threadIdx.x % 128 / 32, at = threadIdx.x % 32 * 4;
#pragma unroll
    for (int i = 0; i < blocks * mine; i++)                 /* blocks lie behind one another */
      shared_store(to + (l + 4 * i) * 128 + (at ^ ((l + 4 * i) % 8 * 16)), word[i]);
  }
};

/* Has the cache fetch what gather will want of these rows up to k_end, or the first of it: elements are read by loads that wait. */
template <int rows, bool rows_contiguous> __device__ __forceinline__ void gather_ahead(const cuda_gemm_lines &o, int row, int k, int k_end, int b0, int b1)
{
  if (o.width > 2) return;
  const char *base = (const char *)o.p + b0 * o.batch_stride[0] + b1 * o.batch_stride[1];
  int line0 = rows_contiguous ? k : row, element0 = rows_contiguous ? row : k;
  int lines = min(rows_contiguous ? min(k_end - k, 1024) : rows, o.lines - line0);
  int bytes = min(rows_contiguous ? rows : min(k_end - k, 1024), o.elements - element0) * 2, per = (bytes + 127) / 128;
  for (int i = threadIdx.x % 128; i < lines * per; i += 128)
    asm volatile("prefetch.global.L2 [%0];" :: "l"(base + (line0 + i / per) * o.pitch + element0 * 2 + i % per * 128));
}

/* The stage whose copies were begun `pending` commits ago is there: of 128 arrivals one. */
template <int pending> __device__ __forceinline__ void gather_arrive(uint32_t bar)
{
  copy_async_wait<pending>();
  proxy_fence();
  barrier_arrive(bar);
}
