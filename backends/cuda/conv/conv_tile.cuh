/* conv_tile.cuh -- copies rectangles of pixels (channels last) to shared memory: what a block's windows cover. */
#pragma once
#include "kit/element.cuh"
#include "kit/sm80.cuh"

struct plane {                            /* a packed channels-last tensor */
  const void *p;
  int32_t  h, w, channels;
};

/* Walks over tiles_h x tiles_w tiles of all images, `step` tiles at a time, without divisions. */
struct tile_walk {
  int n, i, j;                            /* image, tile row, tile column */
  int step_n, step_i, step_j;

  __device__ __forceinline__ tile_walk(int first, int step, int tiles_h, int tiles_w)
  {
    int rest = first / tiles_w, more = step / tiles_w;
    n = rest / tiles_h, i = rest - n * tiles_h, j = first - rest * tiles_w;
    step_n = more / tiles_h, step_i = more - step_n * tiles_h, step_j = step - more * tiles_w;
  }
  __device__ __forceinline__ void next(int tiles_h, int tiles_w)
  {
    n += step_n, i += step_i, j += step_j;
    if (j >= tiles_w) j -= tiles_w, i++;
    if (i >= tiles_h) i -= tiles_h, n++;
  }
};

/* Copies a tile of rows x columns pixels to shared memory (cp.async), `chunks` of 16 bytes each, zeros outside the image; pixels
 * are `pitch` and rows `line` bytes apart. Each thread has a fixed column and chunk and steps down the rows. */
template <int bytes> struct tile_copy {
  uint32_t place;                         /* row << 20 | column << 8 | chunk */

  __device__ __forceinline__ tile_copy(int columns, int chunks) { find(threadIdx.x, columns, chunks); }
  __device__ __forceinline__ void find(int k, int columns, int chunks)
  {
    int i = k / (columns * chunks), rest = k - i * (columns * chunks), j = rest / chunks;
    place = i << 20 | j << 8 | (rest - j * chunks);
  }
  /* Starts the copy from (top, left) of image n, from `channel` on. side: rows that the block copies at once. */
  __device__ __forceinline__ void load(uint32_t to, const plane &x, int n, int top, int left, int channel, int rows, int columns,
                                       int chunks, int side, int pitch, int line) const
  {
    const char *image = (const char *)x.p + ((int64_t)n * x.h * x.w * x.channels + channel) * bytes;
    int left_over = (x.channels - channel) * bytes / 16, all = columns * chunks * side;
    tile_copy at = *this;
    for (int k = threadIdx.x; k < all; k += blockDim.x) {
      if (k >= (int)blockDim.x) at.find(k, columns, chunks);
      int i = at.place >> 20, j = at.place >> 8 & 0xfff, chunk = at.place & 0xff;
      bool inside = (uint32_t)(left + j) < (uint32_t)x.w && chunk < left_over;
      const char *from = image + ((int64_t)(top + i) * x.w + left + j) * x.channels * bytes + chunk * 16;
      int64_t down = (int64_t)side * x.w * x.channels * bytes;
      uint32_t there_to = to + i * line + j * pitch + chunk * 16;
      for (; i < rows; i += side, from += down, there_to += side * line) {
        bool there = inside && (uint32_t)(top + i) < (uint32_t)x.h;
        copy_async<16>(there_to, there ? from : (const char *)x.p, there ? 16 : 0);
      }
    }
  }
};

/* dw of channel c of x and channel k of dy for the tap at offset (down, across), over this block's tiles, recomputed plainly: for
 * sums in which a padding 0 met an Inf or NaN. */
template <int dtype>
static __device__ __noinline__ float tile_sum_again(const plane &x, int c, const plane &dy, int k, int down, int across, int stride_h,
                                                    int stride_w, int rows, int columns, int tiles_h, int tiles_w, int tiles)
{
  float sum = 0;
  for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    int rest = tile / tiles_w, n = rest / tiles_h, y0 = (rest - n * tiles_h) * rows, x0 = (tile - rest * tiles_w) * columns;
    for (int p = y0; p < min(y0 + rows, dy.h); p++)
      for (int q = x0; q < min(x0 + columns, dy.w); q++) {
        int h = p * stride_h + down, w = q * stride_w + across;
        if ((uint32_t)h >= (uint32_t)x.h || (uint32_t)w >= (uint32_t)x.w) continue;
        sum = fmaf(element_load<float>(dy.p, (((int64_t)n * dy.h + p) * dy.w + q) * dy.channels + k, dtype),
                   element_load<float>(x.p, (((int64_t)n * x.h + h) * x.w + w) * x.channels + c, dtype), sum);
      }
  }
  return sum;
}

static inline int tile_side(int threads, int columns, int chunks) { return threads > columns * chunks ? threads / (columns * chunks) : 1; }
