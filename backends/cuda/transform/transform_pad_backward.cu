/* transform_pad_backward.cu -- gradient of pad, bandwidth bound, f32, f16, bf16: dx[j] = the sum of dy over the places filled from j.
 *
 * A thread has one column of ROWS neighbouring rows of dx, whose loads are in flight together; accesses of neighbouring threads
 * are contiguous. Rows that pad copied more than once are done one at a time. */
#include "engines.h"
#include "pad.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256, ROWS = 8, MOST = 16384 };            /* MOST: terms of a sum */

struct gathering : padding {              /* in is dy, out is dx */
  uint32_t units;
  uint32_t once[2];                       /* rows from..to-1 were copied once; at least ROWS, or none */
  uint32_t bands;                         /* bands of these */
  cuda_divisor by_bands;                  /* of bands and the other rows */
};

/* Adds to sum what column x of R rows of dy, from `row` on, contributes, over all images of the outer dims. */
template <int dtype, int R> __device__ __forceinline__ void add_rows(float (&sum)[R], const gathering &p, uint32_t outer, int row, int x)
{
  constexpr int E = 16 / vector_per_16<dtype>;
  int k = 0, outers, columns;
  do {
    const int64_t from = (pad_sources<2>(p, outer, k, &outers) + row * p.in_stride[1]) / E;
    int c = 0;
    do {
      const int64_t at = from + pad_shows(p, 0, x, c, &columns);
      float v[R][1];
#pragma unroll
      for (int r = 0; r < R; r++) vector_load(v[r], p.in, dtype, at + r * (p.in_stride[1] / E), 1, 1);
#pragma unroll
      for (int r = 0; r < R; r++) sum[r] += v[r][0];
    } while (++c < columns);
  } while (++k < outers);
}

/* The last band may overlap the one before. */
template <int dtype> __global__ static void __launch_bounds__(THREADS) transform_pad_backward(const __grid_constant__ gathering p)
{
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x, x, band;
  if (unit >= p.units) return;
  const uint32_t outer = cuda_quotient(cuda_quotient(unit, p.by_out[0], &x), p.by_bands, &band);
  const int64_t plane = (int64_t)outer * p.out_dim[1];
  if (band < p.bands) {
    const uint32_t y = min(p.once[0] + band * ROWS, p.once[1] - ROWS);
    float sum[ROWS] = {};
    add_rows<dtype>(sum, p, outer, (int)(y + p.before[1]), (int)x);
    int64_t to = (plane + y) * p.out_dim[0] + x;
#pragma unroll
    for (int r = 0; r < ROWS; r++, to += p.out_dim[0]) {
      float v[1] = { sum[r] };
      vector_store(v, p.out, dtype, to, 1, 1);
    }
  } else {
    uint32_t y = band - p.bands;
    if (y >= p.once[0]) y += p.once[1] - p.once[0];
    float sum[1] = {};
    int k = 0, rows;
    do {
      add_rows<dtype>(sum, p, outer, pad_shows(p, 1, (int)y, k, &rows), (int)x);
    } while (++k < rows);
    vector_store(sum, p.out, dtype, (plane + y) * p.out_dim[0] + x, 1, 1);
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { gathering p; int32_t dy, dx; const void *kernel; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *dy = cuda_value(r, QN_ROLE_PAD_BACKWARD_DY), *dx = cuda_value(r, QN_ROLE_PAD_BACKWARD_DX);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  if (!qn_pads_outwards(a, dx->rank))
    return qn_refuse(out, "pads outwards", "pad", "not negative, mode constant, reflect or replicate", "%s", "");
  int esize = (int)qn_kit_bytes(dx->dtype);
  if (dx->dtype != QN_F32 && dx->dtype != QN_F16 && dx->dtype != QN_BF16)
    return qn_refuse(out, "accumulates in f32", "dx", "f32, f16 or bf16", "%s", qn_kit_name(dx->dtype));
  if (dy->dtype != dx->dtype) return qn_refuse(out, "one dtype", "dx", qn_kit_name(dy->dtype), "%s", qn_kit_name(dx->dtype));
  if (!qn_is_dense(dx)) return qn_refuse(out, "elements are counted as they lie", "dx", "no gaps", "%s", "gaps");
  if (qn_elements(dx) > INT32_MAX)
    return qn_refuse(out, "elements are counted in 31 bits", "dx", "below 2^31", "%lld", (long long)qn_elements(dx));
  for (int d = 0; d < dy->rank; d++)
    if (dy->dim[d] > INT32_MAX) return qn_refuse(out, "number of positions", "dy", "below 2^31", "%lld", (long long)dy->dim[d]);
  double added = 1;                       /* to one element */
  for (int d = 0; d < dy->rank && a->mode == QN_PAD_REPLICATE; d++)
    added *= 1 + (double)qn_max_i64(a->pad_before[d], dy->dim[d] - dx->dim[d] - a->pad_before[d]);
  if (added > MOST) return qn_refuse(out, "accumulates in f32", "dy", "at most 16384 places that show one of dx", "%.0f", added);
  gathering p = {};
  if (!pad_fill(&p, a, dy, dx)) return qn_refuse(out, "at most 6 dims that do not merge", "dx", "6", "%d", dx->rank);
  if (p.in_dim[0] > 1 && p.in_stride[0] != esize)
    return qn_refuse(out, "rows contiguous in both", "dy", "the order of dx's dims", "%s", "");
  if (p.rank < 2) p.in_dim[1] = p.out_dim[1] = 1;
  int32_t once[2];
  pad_once(p, 1, once);
  int32_t n = (int32_t)p.out_dim[1], from = once[0], to = once[1];
  if (to - from < ROWS) from = to = 0;
  p.once[0] = (uint32_t)from, p.once[1] = (uint32_t)to;
  p.bands = (uint32_t)qn_ceil_div(to - from, ROWS);
  const int64_t bands = p.bands + n - (to - from);
  p.by_bands = cuda_divide_by(bands);
  p.units = (uint32_t)(qn_elements(dx) / n * bands);
  pad_state st = {};
  st.p = p;
  st.dy = qn_role(&r->op[0], QN_ROLE_PAD_BACKWARD_DY), st.dx = qn_role(&r->op[0], QN_ROLE_PAD_BACKWARD_DX);
  st.kernel = dx->dtype == QN_F32  ? (const void *)transform_pad_backward<QN_F32>
            : dx->dtype == QN_BF16 ? (const void *)transform_pad_backward<QN_BF16>
                                   : (const void *)transform_pad_backward<QN_F16>;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  gathering p = st->p;
  p.in = (const char *)launch->ptr[st->dy];
  p.out = (char *)launch->ptr[st->dx];
  unsigned blocks = (unsigned)qn_ceil_div(p.units, THREADS);
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream),
                    "transform_pad_backward");
}

static const qn_engine row[] = {
  { "units", QN_OP_PAD_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
CUDA_ENGINES(transform_pad_backward) = { row, sizeof row / sizeof *row };
