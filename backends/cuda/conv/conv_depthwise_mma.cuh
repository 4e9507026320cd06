/* conv_depthwise_mma.cuh -- shared by the Tensor Core engines for depthwise convolution with large windows.
 *
 * Along a row a window is a band matrix: the outputs q of a row are its pixels times a matrix whose element (pixel, q) is the tap
 * at pixel - q. So 16 rows of 8 outputs of a channel are, for each row of the window, a product of 16 rows of 16 pixels by a 16 x
 * 8 band. The pixels of a channel must be contiguous, so tiles are transposed from channels last into planes on their way to shared memory.
 *
 * A plane has lines of BAND_PAIRS pairs of elements; its column j is the tile's pixel j - 1 - before. Lines of 48 bytes, and an
 * offset between planes of each eight channels, avoid bank conflicts for ldmatrix and for the transposed stores. */
#pragma once
#include "conv_kernel.h"
#include "conv_tile.cuh"
#include "kit/vector.cuh"

enum { BAND_SIDE = 16, BAND_MOST = 7, BAND_ROWS = BAND_SIDE + BAND_MOST - 1, BAND_PAIRS = 12, BAND_LINE = BAND_PAIRS * 4 };

struct band_item { uint4 a, b; };

/* The planes of 8 chunks channels, with `rows` lines of `pairs` pairs of pixels each. */
template <int rows, int pairs, int chunks> struct band_planes {
  static constexpr int step = rows * BAND_LINE, bytes = chunks * (8 * step + 128 / chunks);   /* step: between planes */

  __device__ __forceinline__ static int at(int channel) { return channel * step + channel / 8 * (128 / chunks); }

  /* Fills planes with the pixels from (top, left) of image n, channels from `first` on, zeros outside. Item i is eight channels
   * of two pixels; several items are fetched before the first is stored. */
  static constexpr int items = rows * pairs * chunks;

  __device__ __forceinline__ static band_item fetch(const plane &x, int n, int top, int left, int first, int i)
  {
    int chunk = i % chunks, rest = i / chunks, row = rest / pairs, y = top + row, column = left + (rest - row * pairs) * 2;
    bool there = i < items && (uint32_t)y < (uint32_t)x.h && first + chunk * 8 < x.channels;
    const uint16_t *from = (const uint16_t *)x.p + (((int64_t)n * x.h + y) * x.w + column) * x.channels + first + chunk * 8;
    band_item v = {};
    if (there && (uint32_t)column < (uint32_t)x.w) v.a = *(const uint4 *)from;
    if (there && (uint32_t)(column + 1) < (uint32_t)x.w) v.b = *(const uint4 *)(from + x.channels);
    return v;
  }
  __device__ __forceinline__ static void put(unsigned char *to, int i, const band_item &v)
  {
    int chunk = i % chunks, rest = i / chunks, row = rest / pairs;
    if (i >= items) return;
    uint32_t *word = (uint32_t *)(to + at(chunk * 8) + row * BAND_LINE) + rest - row * pairs;
    turn(word, v.a.x, v.b.x), turn(word + step / 2, v.a.y, v.b.y), turn(word + step, v.a.z, v.b.z), turn(word + step * 3 / 2, v.a.w, v.b.w);
  }
  __device__ __forceinline__ static void turn(uint32_t *to, uint32_t a, uint32_t b)     /* two channels of two pixels */
  {
    to[0] = __byte_perm(a, b, 0x5410), to[step / 4] = __byte_perm(a, b, 0x7632);
  }
};

/* ---- host ------------------------------------------------------------------------------------------------- */

/* Common refusals. */
static inline qn_status cuda_conv_band_read(cuda_conv_problem *c, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_read_halves(c, r, out);
  if (status) return status;
  if (c->groups != c->channels || c->filters != c->channels || c->groups == 1)
    return qn_refuse(out, "one filter for each channel", "x", "as many groups as channels, two or more", "%lld", (long long)c->groups);
  if (c->channels % 8) return qn_refuse(out, "channels in units of 16 bytes", "x", "a multiple of 8", "%lld", (long long)c->channels);
  for (int d = 0; d < 2; d++)
    if (c->size[d] > BAND_MOST || c->stride[d] != 1 || c->dilation[d] != 1)
      return qn_refuse(out, "windows to 7 x 7 at stride 1 without dilation", "w", "", "%lldx%lld", (long long)c->size[0],
                       (long long)c->size[1]);
  return QN_OK;
}
