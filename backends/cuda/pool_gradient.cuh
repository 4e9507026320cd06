/* pool_gradient.cuh -- what the engines of pool_backward.cu share: geometry of cells of dx and of the windows that cover them. */
#pragma once
#include "pool.cuh"

enum { BY_TAP, BY_PLACE, BY_X, AVERAGE };           /* maxima by indices u8 and i64 (or i32), by x once more; means */

struct strides { int32_t c, z, y, x; };   /* within an image */

struct gradient : pool {
  strides  of_x, of_dy, of_dx, of_index;
  int32_t  flat;                          /* one plane deep */
  int32_t  channels_last;                 /* gather, of one place */
  int32_t  pairs;                         /* cells of one channel: two columns of dx lie in a word */
  int32_t  even;                          /* means: all windows have as many taps */
  float    share;                         /* ... of which each counts so much */
  cuda_divisor by_cell[4];                /* as memory runs, of channels and columns those in which a thread has several first */
  cuda_divisor by_size[3], by_dilation[3];
};

/* A place among fewer than 2^31; -1: none. */
template <class I> __device__ __forceinline__ int place_among(I index) { return index == (int)index ? (int)index : -1; }

/* Of R rows by two columns, and windows of SIZE every STEP from -BEFORE on. Cells begin at multiples of STEP, so that of the windows
 * that cover some places of it, which they are and where they begin is known to the compiler: number 0 is `first` beyond (place / STEP). */
template <int R, int C, int SIZE, int STEP, int BEFORE> struct cover {
  static constexpr int ROWS = R, COLUMNS = 2, WORDS = (C + 3) / 4;
  static constexpr int first = (BEFORE - SIZE + 1) / STEP;
  static constexpr int DOWN = (ROWS - 1 + BEFORE) / STEP - first + 1, ACROSS = (COLUMNS - 1 + BEFORE) / STEP - first + 1;
  /* Where a window begins, from the cell; which of its taps a place is. */
  static __host__ __device__ constexpr int begin(int window) { return (first + window) * STEP - BEFORE; }
  static __host__ __device__ constexpr int tap(int window, int place) { return place - begin(window); }
  static __host__ __device__ constexpr bool covers(int window, int place) { return tap(window, place) >= 0 && tap(window, place) < SIZE; }
};

/* sum += v if a is b: a predicated addition, where compilers add and then select. */
__device__ __forceinline__ void add_where(float &sum, uint32_t a, uint32_t b, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; setp.eq.u32 p, %1, %2; @p add.f32 %0, %0, %3; }" : "+f"(sum) : "r"(a), "r"(b), "f"(v));
#else
  if (a == b) sum += v;
#endif
}

/* Two neighbours, where they lie in one word. */
template <int dtype> __device__ __forceinline__ void pair_store(void *base, int at, float lo, float hi)
{
  if (dtype == QN_F32) *(float2 *)((float *)base + at) = make_float2(lo, hi);
  else *(uint32_t *)((uint16_t *)base + at) = dtype == QN_BF16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
}

/* The tap that a place is of the window that begins at place `begin` of a plane; another number: none. */
template <int SIZE> __device__ __forceinline__ uint32_t tap_of(int place, int begin, int width)
{
  int column = place - begin, row = 0;
#pragma unroll
  for (int r = 1; r < SIZE; r++)
    if (place - begin >= r * width) column -= width, row = r;
  return (unsigned)column < SIZE ? row * SIZE + column : 255;
}
