/* conv_tile.cuh -- rectangles of pixels, with some of their channels, copied to shared memory: what a block's windows cover. */
#pragma once
#include "sm80.cuh"

struct plane {                            /* an image of a packed tensor, channels last */
  const void *p;
  int32_t  h, w, channels;
};

/* Starts copying `rows` x `columns` pixels from (top, left) of image n to pixels `pitch` bytes apart, with zeros where there are
 * none; of each, `chunks` of 16 bytes from `channel` on. A thread has a place in a row and goes down from there. */
template <int bytes> __device__ __forceinline__ void tile_load(uint32_t to, int pitch, const plane &x, int n, int top, int left, int rows, int columns, int channel, int chunks)
{
  const char *image = (const char *)x.p + ((int64_t)n * x.h * x.w * x.channels + channel) * bytes;
  int row = columns * chunks, side = max(1, (int)blockDim.x / row), left_over = (x.channels - channel) * bytes / 16;
  int64_t down = (int64_t)side * x.w * x.channels * bytes;
  for (int k = threadIdx.x; k < row * side; k += blockDim.x) {
    int i = k / row, place = k - i * row, j = place / chunks, chunk = place - j * chunks;
    bool inside = (uint32_t)(left + j) < (uint32_t)x.w && chunk < left_over;
    const char *from = image + ((int64_t)(top + i) * x.w + left + j) * x.channels * bytes + chunk * 16;
    uint32_t at = to + (i * columns + j) * pitch + chunk * 16;
    for (; i < rows; i += side, from += down, at += side * columns * pitch) {
      bool there = inside && (uint32_t)(top + i) < (uint32_t)x.h;
      copy_async<16>(at, there ? from : (const char *)x.p, there ? 16 : 0);
    }
  }
}
__device__ __forceinline__ void tile_wait()      /* for this thread's copies; __syncthreads for the others' */
{
  copy_async_commit();
  copy_async_wait<0>();
}
