/* transform_pad_backward.cu -- the gradient of pad at the speed of memory: dx[j] = the sum of dy over the places that pad filled from j.
 *
 * inner: 16 bytes of a row of dx whose columns pad copied once: rows of dy, one or (where dx's row was copied more often) several, are
 * loaded as aligned vectors, shifted and added. edge: the other columns, an element by a thread. */
#include "engines.h"
#include "pad.cuh"
#include "vector.cuh"

enum { THREADS = 256 };

struct gathering : padding {              /* in is dy, out is dx */
  uint32_t left, inner, edge;             /* of a row: columns before the first vector; vectors; columns beside them */
  uint32_t rows;
  cuda_divisor by_inner, by_edge;
};

/* The k-th place of dy, along dim d, that shows place j of dx; *count: how many do. */
__device__ __forceinline__ int shows(const gathering &p, int d, int j, int k, int *count)
{
  int n = (int)p.out_dim[d], before = (int)p.before[d], all = (int)p.in_dim[d], here = j + before;
  *count = 1;
  if (p.mode == QN_PAD_REPLICATE) {
    int first = j ? here : 0, last = j == n - 1 ? all - 1 : here;
    *count = last - first + 1;
    return first + k;
  }
  if (p.mode != QN_PAD_REFLECT) return here;
  int left = before - j, right = before + 2 * (n - 1) - j;
  bool mirrored = j > 0 && left >= 0;
  *count = 1 + mirrored + (j < n - 1 && right < all);
  return k == 0 ? here : k == 1 && mirrored ? left : right;
}

/* Of the rows of dy that belong to this row of dx, the k-th, in bytes; *count: how many there are. */
__device__ __forceinline__ int64_t row_of(const gathering &p, uint32_t row, int k, int *count)
{
  int64_t offset = 0;
  *count = 1;
#pragma unroll
  for (int d = 1; d < PAD_DIMS; d++)
    if (d < p.rank) {
      uint32_t q = d + 1 < p.rank ? cuda_quotient(row, p.by_out[d]) : 0;
      int j = (int)(row - q * p.out_dim[d]), n, from = shows(p, d, j, 0, &n);
      if (n > 1) {
        from = shows(p, d, j, k % n, &n);
        k /= n;
        *count *= n;
      }
      offset += from * p.in_stride[d];
      row = q;
    }
  return offset;
}

template <int dtype> __global__ static void __launch_bounds__(THREADS) transform_pad_backward(const __grid_constant__ gathering p)
{
  constexpr int V = vector_per_16<dtype>, E = 16 / V;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x, vectors = p.rows * p.inner;
  int rows, columns;
  if (unit < vectors) {
    uint32_t row = cuda_quotient(unit, p.by_inner), column = p.left + (unit - row * p.inner) * V;
    float sum[V] = {};
    int k = 0;
    do {
      const int64_t at = row_of(p, row, k, &rows) + (int64_t)(column + p.before[0]) * E;
      float v[V];
      if (at + ASKEW <= p.in_bytes) vector_open<dtype>(v, 0, load_askew<E>(p.in + at));
      else vector_load(v, p.in, dtype, at / E, 1, V);
#pragma unroll
      for (int i = 0; i < V; i++) sum[i] += v[i];
    } while (++k < rows);
    vector_store_whole<dtype>(sum, p.out, (int64_t)row * p.out_dim[0] + column);
    return;
  }
  unit -= vectors;
  uint32_t row = cuda_quotient(unit, p.by_edge), column = unit - row * p.edge;
  if (row >= p.rows) return;
  if (column >= p.left) column += p.inner * V;
  float sum[1] = {};
  int k = 0;
  do {
    const int64_t at = row_of(p, row, k, &rows) / E;
    int c = 0;
    do {
      float v[1];
      vector_load(v, p.in, dtype, at + shows(p, 0, (int)column, c, &columns), 1, 1);
      sum[0] += v[0];
    } while (++c < columns);
  } while (++k < rows);
  vector_store(sum, p.out, dtype, (int64_t)row * p.out_dim[0] + column, 1, 1);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { gathering p; int32_t dy, dx; const void *kernel; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *dy = cuda_value(r, QN_ROLE_PAD_BACKWARD_DY), *dx = cuda_value(r, QN_ROLE_PAD_BACKWARD_DX);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  int esize = (int)qn_kit_bytes(dx->dtype), v = 16 / esize;
  if (dx->dtype != QN_F32 && dx->dtype != QN_F16 && dx->dtype != QN_BF16) return qn_refuse(out, "sums are made in f32", "dx", "f32, f16 or bf16", "%s", qn_kit_name(dx->dtype));
  if (dy->dtype != dx->dtype) return qn_refuse(out, "one dtype", "dx", qn_kit_name(dy->dtype), "%s", qn_kit_name(dx->dtype));
  if (!qn_is_dense(dx) || dx->align < 16) return qn_refuse(out, "16 bytes are stored at once", "dx", "no gaps, 16-byte alignment", "%s", "");
  if (qn_elements(dx) > INT32_MAX) return qn_refuse(out, "elements are counted in 31 bits", "dx", "below 2^31", "%lld", (long long)qn_elements(dx));
  gathering p = {};
  if (!pad_fill(&p, a, dy, dx)) return qn_refuse(out, "at most 6 dims that do not merge", "dx", "6", "%d", dx->rank);
  if (p.in_dim[0] > 1 && p.in_stride[0] != esize) return qn_refuse(out, "rows contiguous in both", "dy", "the order of dx's dims", "%s", "");
  int64_t n = p.out_dim[0], before = p.before[0], after = p.in_dim[0] - n - before, once[2] = { 0, n };      /* columns copied once */
  if (a->mode == QN_PAD_REFLECT) once[0] = before ? before + 1 : 0, once[1] = after ? n - 1 - after : n;
  if (a->mode == QN_PAD_REPLICATE) once[0] = before > 0, once[1] = n - (after > 0);
  p.left = (uint32_t)qn_min_i64(qn_round_up(once[0], v), n);
  p.inner = n % v || once[1] < p.left ? 0 : (uint32_t)((once[1] - p.left) / v);
  p.edge = (uint32_t)(n - (int64_t)p.inner * v);
  p.rows = (uint32_t)(p.elements / n);
  p.by_inner = cuda_divide_by(qn_max_i64(p.inner, 1)), p.by_edge = cuda_divide_by(qn_max_i64(p.edge, 1));
  if (!p.inner) p.left = (uint32_t)n;
  pad_state st = {};
  st.p = p;
  st.dy = qn_role(&r->op[0], QN_ROLE_PAD_BACKWARD_DY), st.dx = qn_role(&r->op[0], QN_ROLE_PAD_BACKWARD_DX);
  st.kernel = dx->dtype == QN_F32 ? (const void *)transform_pad_backward<QN_F32> : dx->dtype == QN_BF16 ? (const void *)transform_pad_backward<QN_BF16> : (const void *)transform_pad_backward<QN_F16>;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  gathering p = st->p;
  p.in = (const char *)launch->ptr[st->dy];
  p.out = (char *)launch->ptr[st->dx];
  unsigned blocks = (unsigned)qn_ceil_div((int64_t)p.rows * (p.inner + p.edge), THREADS);
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream), "transform_pad_backward");
}

static const qn_engine row[] = {
  { "units", QN_OP_PAD_BACKWARD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, cuda_release },
};
const qn_engine_list cuda_transform_pad_backward_list = { row, sizeof row / sizeof *row };
