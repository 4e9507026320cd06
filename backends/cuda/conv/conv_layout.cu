/* conv_layout.cu -- passes beside a convolution's product: adds the partial sums of a gradient by the filter, in a fixed order;
 * copies tensors of any layout to packed channels last, groups padded with zeros, and back. */
#include "conv_layout.h"
#include "cuda_backend.h"
#include "kit/early.h"
#include "kit/vector.cuh"

/* These kernels may be resident before the one that makes the parts has ended. */
static __device__ __forceinline__ void join_begin()
{
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

__global__ void __launch_bounds__(128) conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n)
{
  int64_t i = (blockIdx.x * (int64_t)128 + threadIdx.x) * 4;
  join_begin();
  if (i >= n) return;
  float sum[4] = {0, 0, 0, 0};
#pragma unroll 4
  for (int p = 0; p < parts; p++) {
    float v[4];
    vector_load(v, from, QN_F32, p * n + i, 1, (int)min((int64_t)4, n - i));
#pragma unroll
    for (int k = 0; k < 4; k++) sum[k] += v[k];
  }
  vector_store(sum, to, dtype, i, 1, (int)min((int64_t)4, n - i));
}

/* Many parts of few elements: SLICES threads an element add every SLICES-th part, then their sums are added in order. */
enum { SLICES = 16 };
__global__ void __launch_bounds__(32 * SLICES) conv_join_many(void *to, uint32_t dtype, const float *from, int parts, int64_t n)
{
  __shared__ float sums[SLICES][33];
  int lane = threadIdx.x % 32, slice = threadIdx.x / 32;
  int64_t i = blockIdx.x * (int64_t)32 + lane;
  float sum = 0;
  join_begin();
  if (i < n) {
#pragma unroll 8
    for (int p = slice; p < parts; p += SLICES) sum += from[p * n + i];
  }
  sums[slice][lane] = sum;
  __syncthreads();
  if (slice || i >= n) return;
#pragma unroll
  for (int s = 1; s < SLICES; s++) sum += sums[s][lane];
  element_store(to, i, dtype, sum);
}

qn_status cuda_conv_join(void *to, uint32_t dtype, const float *from, int parts, int64_t n, void *stream)
{
  const bool many = parts >= 2 * SLICES && n < 1 << 18;
  const void *const function = many ? (const void *)conv_join_many : (const void *)conv_join;
  int32_t waits;
  qn_status status = cuda_waits_itself(function, &waits);
  if (status) return status;
  void *arguments[] = { &to, &dtype, &from, &parts, &n };
  return cuda_launch_kernel(function, waits, dim3((unsigned)qn_ceil_div(n, many ? 32 : 512)), many ? 32 * SLICES : 128, 0, arguments,
                            stream, "conv_join");
}

/* ---- any layout to and from packed channels last ------------------------------------------------------------- */

template <class T, int CHANNELS> constexpr int relayout_rows = 8192 / (int)sizeof(T) / CHANNELS;
template <int bytes> struct relayout_word { typedef uint32_t type; };
template <> struct relayout_word<2> { typedef uint16_t type; };

/* A tile of CHANNELS by as many rows as make 8 KB, through shared memory. The tensor is read (back: written) along its rows, E elements
 * at a time, or, if its channels are contiguous, along them; the packed one along its memory, in units of EACH elements. */
template <class T, int CHANNELS, int E, int EACH, bool back>
__global__ void __launch_bounds__(256) conv_relayout(const __grid_constant__ cuda_relayout l, T *outer, T *packed)
{
  constexpr int ROWS = relayout_rows<T, CHANNELS>, PITCH = ROWS + (sizeof(T) == 2 ? 2 : 1);
  __shared__ __align__(8) T tile[CHANNELS * PITCH];
  const uint32_t tiles = (l.channels + CHANNELS - 1) / CHANNELS, row0 = blockIdx.x / tiles * ROWS, c0 = blockIdx.x % tiles * CHANNELS;
  auto place = [&](uint32_t row, int64_t *at) {             /* false: padding */
    uint32_t pixel, n = cuda_quotient(row, l.by_pixels, &pixel), k, w, h, group = cuda_quotient(n, l.by_filters, &k);
    uint32_t d = cuda_quotient(cuda_quotient(pixel, l.by_w, &w), l.by_h, &h);
    *at = (int64_t)(group * l.filters + k) * l.n_stride + w * l.stride[0] + h * l.stride[1] + d * l.stride[2];
    return row < l.rows && k < l.filters;
  };
  auto channel = [&](uint32_t c, int64_t *at) {
    uint32_t i, group = cuda_quotient(c, l.by_width, &i);
    *at = (int64_t)(group * l.width + i) * l.c_stride;
    return c < l.channels && i < l.width;
  };
  struct alignas(EACH * sizeof(T)) unit { T element[EACH]; };
  auto units = [&](auto &&each) {                           /* of the packed tensor: pointer, first element in the tile */
    const uint32_t wide = (EACH > 1 ? CHANNELS : min((uint32_t)CHANNELS, l.channels - c0)) / EACH;
    for (uint32_t i = threadIdx.x; i < ROWS * wide; i += 256) {
      uint32_t r = i / wide, c = (i - r * wide) * EACH;
      if (row0 + r < l.rows && c0 + c < l.channels) each((unit *)(packed + (int64_t)(row0 + r) * l.channels + c0 + c), c * PITCH + r);
    }
  };
  if (back) {
    units([&](const unit *from, int at) {
      unit u = *from;
#pragma unroll
      for (int e = 0; e < EACH; e++) tile[at + e * PITCH] = u.element[e];
    });
    __syncthreads();
  }
  if (l.c_stride == 1) {                                    /* a thread keeps its channel, and steps over the rows */
    constexpr int LINES = 256 / CHANNELS, STEPS = ROWS / LINES;
    const int c = threadIdx.x % CHANNELS, first = threadIdx.x / CHANNELS;
    int64_t by_channel, by_row;
    const bool real = channel(c0 + c, &by_channel);
    T v[STEPS];
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
      const int r = first + i * LINES;
      const bool there = place(row0 + r, &by_row) && real;
      if (!back) v[i] = there ? outer[by_row + by_channel] : T(0);
      else if (there) outer[by_row + by_channel] = tile[c * PITCH + r];
    }
    if (!back) {
#pragma unroll
      for (int i = 0; i < STEPS; i++) tile[c * PITCH + first + i * LINES] = v[i];
    }
  } else {                                                  /* a thread keeps its rows, and steps over the channels */
    typedef typename relayout_word<sizeof(T) * E>::type word;
    constexpr int LANES = ROWS / E < 256 ? ROWS / E : 256, LINES = 256 / LANES, STEPS = CHANNELS / LINES;
#pragma unroll
    for (int r = threadIdx.x % LANES * E; r < ROWS; r += LANES * E) {
      int64_t by_channel, by_row;
      const bool real = place(row0 + r, &by_row);
      word v[STEPS];
#pragma unroll
      for (int i = 0; i < STEPS; i++) {
        const int c = threadIdx.x / LANES + i * LINES;
        const bool there = channel(c0 + c, &by_channel) && real;
        if (!back) v[i] = there ? *(const word *)(outer + by_row + by_channel) : word(0);
        else if (there) *(word *)(outer + by_row + by_channel) = *(const word *)(tile + c * PITCH + r);
      }
      if (!back) {
#pragma unroll
        for (int i = 0; i < STEPS; i++) *(word *)(tile + (threadIdx.x / LANES + i * LINES) * PITCH + r) = v[i];
      }
    }
  }
  if (back) return;
  __syncthreads();
  units([&](unit *to, int at) {
    unit u;
#pragma unroll
    for (int e = 0; e < EACH; e++) u.element[e] = tile[at + e * PITCH];
    *to = u;
  });
}

template <class T, int CHANNELS, int E, int EACH>
static void relayout(const cuda_relayout &l, void *outer, void *packed, bool back, cudaStream_t stream)
{
  const int64_t blocks = qn_ceil_div(l.rows, relayout_rows<T, CHANNELS>) * qn_ceil_div(l.channels, CHANNELS);
  if (back) conv_relayout<T, CHANNELS, E, EACH, true><<<(unsigned)blocks, 256, 0, stream>>>(l, (T *)outer, (T *)packed);
  else conv_relayout<T, CHANNELS, E, EACH, false><<<(unsigned)blocks, 256, 0, stream>>>(l, (T *)outer, (T *)packed);
}
/* One unit of 16 bytes of channels, a few, many; not whole ones; pairs of rows or single ones. */
template <class T, int E> static void relayout_by(const cuda_relayout &l, void *outer, void *packed, bool back, cudaStream_t stream)
{
  constexpr int EACH = 16 / sizeof(T);
  if (l.channels % EACH) {
    if (l.channels <= EACH) relayout<T, EACH, E, 1>(l, outer, packed, back, stream);
    else relayout<T, 8 * EACH, E, 1>(l, outer, packed, back, stream);
  } else if (l.channels == EACH) relayout<T, EACH, E, EACH>(l, outer, packed, back, stream);
  else if (l.channels <= 4 * EACH) relayout<T, 4 * EACH, E, EACH>(l, outer, packed, back, stream);
  else relayout<T, 8 * EACH, E, EACH>(l, outer, packed, back, stream);
}

bool cuda_relayout_of(cuda_relayout *l, const qn_value *v, int64_t n_groups, int64_t filters, int64_t c_groups, int64_t width)
{
  const bool row = v->rank == 1;                            /* a bias: one row of channels */
  const int64_t n = row ? 1 : v->dim[0], c = row ? v->dim[0] : v->dim[1], bytes = qn_kit_bytes(v->dtype);
  int64_t dim[3] = {1, 1, 1}, pixels = 1;
  *l = {};
  for (int d = 0; d < v->rank - 2; d++) {
    const int from = v->rank - 1 - d;
    dim[d] = v->dim[from], l->stride[d] = v->stride[from];
    pixels *= dim[d];
  }
  const double rows = (double)n_groups * (double)filters * (double)pixels;
  if ((bytes != 2 && bytes != 4) || rows > INT32_MAX || (double)c_groups * (double)width > INT32_MAX) return false;
  l->n_stride = row ? 0 : v->stride[0], l->c_stride = row ? v->stride[0] : v->stride[1];
  if (c == 1) l->c_stride = 0;
  l->rows = (uint32_t)rows, l->channels = (uint32_t)(c_groups * width);
  l->width = (uint32_t)(c / c_groups), l->filters = (uint32_t)(n / n_groups);
  l->by_pixels = cuda_divide_by(pixels), l->by_w = cuda_divide_by(dim[0]), l->by_h = cuda_divide_by(dim[1]);
  l->by_width = cuda_divide_by(width), l->by_filters = cuda_divide_by(filters);
  l->bytes = (int32_t)bytes;
  l->pairs = bytes == 2 && v->align >= 4 && l->stride[0] == 1 && dim[0] % 2 == 0;
  for (int d = 1; d < 3; d++) l->pairs &= dim[d] == 1 || l->stride[d] % 2 == 0;
  l->pairs &= (n == 1 || l->n_stride % 2 == 0) && l->c_stride % 2 == 0;
  return true;
}

qn_status cuda_relayout_run(const cuda_relayout *l, void *outer, void *packed, bool back, void *stream)
{
  if (l->bytes == 4) relayout_by<uint32_t, 1>(*l, outer, packed, back, (cudaStream_t)stream);
  else if (l->pairs) relayout_by<uint16_t, 2>(*l, outer, packed, back, (cudaStream_t)stream);
  else relayout_by<uint16_t, 1>(*l, outer, packed, back, (cudaStream_t)stream);
  return cuda_check(cudaGetLastError(), "conv_relayout");
}
