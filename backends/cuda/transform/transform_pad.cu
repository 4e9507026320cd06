/* transform_pad.cu -- pad (constant, reflect, replicate), bandwidth bound: a thread has one column of ROWS neighbouring rows of
 * y, whose loads are in flight together; accesses of neighbouring threads are contiguous. A column is the widest word (up to 16
 * bytes) that padding and alignment allow, or a few narrow ones stored together. Refused: gaps in y, x in another dim order, 2^31
 * elements. */
#include "cuda_backend.h"
#include "engines.h"
#include "pad.cuh"

enum { THREADS = 256, ROWS = 4 };

struct filling : padding {                /* dims and strides in words */
  uint32_t units;
  cuda_divisor by_columns, by_bands;      /* columns of a row; bands of ROWS rows */
  alignas(16) uint64_t pattern[2];        /* the value, repeated */
};

template <class T, int N> struct alignas(sizeof(T) * N) words { T of[N]; };

/* A thread: N words, stored as one, in each of ROWS rows. */
template <class T, int N> __global__ static void __launch_bounds__(THREADS) transform_pad(const __grid_constant__ filling p)
{
  const uint32_t unit = blockIdx.x * THREADS + threadIdx.x;
  if (unit >= p.units) return;
  uint32_t x, band;
  const uint32_t outer = cuda_quotient(cuda_quotient(unit, p.by_columns, &x), p.by_bands, &band), y = band * ROWS;
  const int64_t from = pad_source<2>(p, outer);
  const char *in[N];                      /* NULL: the value */
#pragma unroll
  for (int i = 0; i < N; i++) {
    const int column = from < 0 ? -1 : pad_shown(p.mode, x * N + i, p.before[0], p.in_dim[0]);
    in[i] = column < 0 ? nullptr : p.in + from + column * (int64_t)sizeof(T);
  }
  words<T, N> row[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++)
#pragma unroll
    for (int i = 0; i < N; i++) row[r].of[i] = *(const T *)p.pattern;
  const uint32_t first = y - p.before[1]; /* wraps if above x's rows */
  const bool inner = first < p.in_dim[1] && p.in_dim[1] - first >= ROWS;
#pragma unroll
  for (int i = 0; i < N; i++) {
    if (!in[i]) continue;
    if (inner) {
      const char *at = in[i] + first * p.in_stride[1];
#pragma unroll
      for (int r = 0; r < ROWS; r++, at += p.in_stride[1]) row[r].of[i] = *(const T *)at;
    } else {
#pragma unroll
      for (int r = 0; r < ROWS; r++) {
        const int line = y + r < p.out_dim[1] ? pad_shown(p.mode, y + r, p.before[1], p.in_dim[1]) : -1;
        if (line >= 0) row[r].of[i] = *(const T *)(in[i] + line * p.in_stride[1]);
      }
    }
  }
  words<T, N> *to = (words<T, N> *)p.out + ((int64_t)outer * p.out_dim[1] + y) * p.by_columns.by + x;
#pragma unroll
  for (int r = 0; r < ROWS; r++, to += p.by_columns.by)
    if (y + r < p.out_dim[1]) *to = row[r];
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { filling p; int32_t x, y; const void *kernel; };

template <class T> static const void *kernel_of(int together)
{
  if constexpr (sizeof(T) == 1)
    if (together == 4) return (const void *)transform_pad<T, 4>;
  return together == 2 ? (const void *)transform_pad<T, 2> : (const void *)transform_pad<T, 1>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *x = cuda_value(r, QN_ROLE_PAD_X), *y = cuda_value(r, QN_ROLE_PAD_Y);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  if (!qn_pads_outwards(a, y->rank))
    return qn_refuse(out, "pads outwards", "pad", "not negative, mode constant, reflect or replicate", "%s", "");
  const int esize = (int)qn_kit_bytes(y->dtype);
  if (!qn_is_dense(y)) return qn_refuse(out, "elements are counted as they lie", "y", "no gaps", "%s", "gaps");
  if (qn_elements(y) > INT32_MAX)
    return qn_refuse(out, "elements are counted in 31 bits", "y", "below 2^31", "%lld", (long long)qn_elements(y));
  filling p = {};
  if (!pad_fill(&p, a, x, y)) return qn_refuse(out, "at most 6 dims that do not merge", "y", "6", "%d", y->rank);
  if (p.in_dim[0] > 1 && p.in_stride[0] != esize) return qn_refuse(out, "rows contiguous in both", "x", "the order of y's dims", "%s", "");
  if (p.rank < 2) p.in_dim[1] = p.out_dim[1] = 1;
  int word = a->mode == QN_PAD_CONSTANT || p.in_dim[0] == p.out_dim[0] ? 16 : esize;
  auto cut = [&](int64_t bytes) { while (bytes % word) word /= 2; };
  cut(x->align), cut(y->align), cut((int64_t)p.in_dim[0] * esize), cut((int64_t)p.out_dim[0] * esize), cut((int64_t)p.before[0] * esize);
  for (int d = 1; d < p.rank; d++) cut(p.in_stride[d]);
  p.in_dim[0] = p.in_dim[0] * esize / word, p.out_dim[0] = p.out_dim[0] * esize / word, p.before[0] = p.before[0] * esize / word;
  int together = word >= 4 ? 1 : 4 / word;
  while (p.out_dim[0] % together || y->align % (together * word)) together /= 2;
  p.by_columns = cuda_divide_by(p.out_dim[0] / together);
  for (int i = 0; i < 16 / esize; i++) qn_store_f64((char *)p.pattern + i * esize, y->dtype, a->value);
  const int64_t bands = qn_ceil_div(p.out_dim[1], ROWS);
  p.by_bands = cuda_divide_by(bands);
  p.units = (uint32_t)(qn_elements(y) * esize / word / together / p.out_dim[1] * bands);
  pad_state st = {};
  st.p = p;
  st.x = qn_role(&r->op[0], QN_ROLE_PAD_X), st.y = qn_role(&r->op[0], QN_ROLE_PAD_Y);
  st.kernel = word == 16 ? (const void *)transform_pad<uint4, 1>
            : word == 8  ? (const void *)transform_pad<uint2, 1>
            : word == 4  ? (const void *)transform_pad<uint32_t, 1>
            : word == 2  ? kernel_of<uint16_t>(together)
                         : kernel_of<uint8_t>(together);
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  filling p = st->p;
  p.in = (const char *)launch->ptr[st->x];
  p.out = (char *)launch->ptr[st->y];
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3((unsigned)qn_ceil_div(p.units, THREADS)), dim3(THREADS), arguments, 0,
                                     (cudaStream_t)launch->stream),
                    "transform_pad");
}

static const qn_engine row[] = {
  { "units", QN_OP_PAD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(transform_pad) = { row, sizeof row / sizeof *row };
