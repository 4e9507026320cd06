/* transform_direct.cu -- data movement, bits preserved: copy, permute, slice, pad, concat, gather; any strides and dtypes.
 *
 *   copy     y[i] = x[i]                    permute  y[i] = x[j] with j[axis[d]] = i[d]
 *   slice    y[i] = x[start + i step]       pad      y[i] = x[i - pad_before], or the value, or x reflected or replicated
 *   concat   y = the x one after the other along an axis, one launch each
 *   gather   y[a, i, b] = x[a, indices[i], b], 0 for an index out of range
 *
 * A slice may run backwards, a pad be negative or wrap.
 * One kernel: y's element i comes from x at base + sum i[d] stride[d], where each i[d] must be within low[d]..high[d]-1; gather
 * replaces some of the i[d] by one index. An element a thread. */
#include "kit/direct.cuh"
#include "engines.h"

struct transform {
  tensor  y;                              /* concat: the part of y that one x fills */
  const void *x;
  int64_t base, stride[QN_MAX_RANK];
  int64_t low[QN_MAX_RANK], high[QN_MAX_RANK];
  int64_t elements;
  double  value;
  int32_t bytes, mode;                    /* mode: of pad */
  tensor  indices;                        /* gather; p NULL: none */
  int32_t axis;                           /* gather: y's dims from `axis` on are those of indices */
  int64_t length, length_stride;          /* gather: x's dim and stride along the axis */
};

__device__ __forceinline__ void copy_element(void *y, int64_t to, const void *x, int64_t from, int bytes)
{
  if (bytes == 1) ((uint8_t *)y)[to] = ((const uint8_t *)x)[from];
  else if (bytes == 2) ((uint16_t *)y)[to] = ((const uint16_t *)x)[from];
  else if (bytes == 4) ((uint32_t *)y)[to] = ((const uint32_t *)x)[from];
  else ((uint64_t *)y)[to] = ((const uint64_t *)x)[from];
}

__global__ static void __launch_bounds__(256) transform_direct(const __grid_constant__ transform t)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < t.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t from = t.base, to = 0, rest = i, place = 0;
    bool inside = true;
    for (int d = t.y.rank - 1; d >= 0; d--) {
      int64_t q = rest / t.y.dim[d], at = rest - q * t.y.dim[d];
      to += at * t.y.stride[d];
      if (t.indices.p && d >= t.axis && d < t.axis + t.indices.rank) place += at * t.indices.stride[d - t.axis];
      if (at < t.low[d] || at >= t.high[d]) {
        bool below = at < t.low[d];
        if (t.mode == QN_PAD_REFLECT) at = 2 * (below ? t.low[d] : t.high[d] - 1) - at;
        else if (t.mode == QN_PAD_REPLICATE) at = below ? t.low[d] : t.high[d] - 1;
        else if (t.mode == QN_PAD_WRAP) {
          const int64_t n = t.high[d] - t.low[d];
          at = below ? t.high[d] - 1 - (t.low[d] - 1 - at) % n : t.low[d] + (at - t.high[d]) % n;
        }
        else inside = false;
      }
      from += at * t.stride[d];
      rest = q;
    }
    if (t.indices.p) {
      int64_t index = t.indices.load<int64_t>(place);
      inside = index >= 0 && index < t.length;
      from += index * t.length_stride;
    }
    if (inside) copy_element(t.y.p, to, t.x, from, t.bytes);
    else t.y.store(to, t.value);
  }
}

static qn_status launch_one(transform *t, const qn_launch *launch)
{
  t->elements = direct_elements(t->y);
  t->bytes = (int32_t)qn_kit_bytes(t->y.dtype);
  if (t->elements == 0) return QN_OK;
  transform_direct<<<direct_blocks(t->elements, 256), 256, 0, (cudaStream_t)launch->stream>>>(*t);
  return direct_launched("transform_direct");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  tensor x = direct_tensor(k, launch, 0, 0);
  transform t = {};
  t.y = direct_tensor(k, launch, 1, 0);
  t.x = x.p;
  for (int d = 0; d < t.y.rank; d++) {
    t.high[d] = t.y.dim[d];
    t.stride[d] = x.stride[d];
    if (k->op == QN_OP_PERMUTE) {
      t.stride[d] = x.stride[((const qn_permutation *)k->attr)->axis[d]];
    } else if (k->op == QN_OP_SLICE) {
      const qn_slicing *s = (const qn_slicing *)k->attr;
      t.base += s->start[d] * x.stride[d];
      if (t.y.dim[d] > 1) t.stride[d] *= s->step[d];        /* with extent 1 the step does not matter, and could overflow */
    } else if (k->op == QN_OP_PAD) {
      const qn_padding *s = (const qn_padding *)k->attr;
      t.base -= s->pad_before[d] * x.stride[d];
      t.low[d] = s->pad_before[d];
      t.high[d] = s->pad_before[d] + x.dim[d];
      t.value = s->value;
      t.mode = (int32_t)s->mode;
    }
  }
  return launch_one(&t, launch);
}

static qn_status concat(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  tensor y = direct_tensor(k, launch, 1, 0);
  int64_t named = ((const qn_axis *)k->attr)->axis, axis = named < 0 ? named + y.rank : named, start = 0;
  for (int i = 0; i < direct_count(k, 0); i++) {
    tensor x = direct_tensor(k, launch, 0, i);
    transform t = {};
    t.y = y;
    t.y.p = (char *)y.p + start * y.stride[axis] * qn_kit_bytes(y.dtype);
    t.y.dim[axis] = x.dim[axis];
    t.x = x.p;
    for (int d = 0; d < y.rank; d++) t.stride[d] = x.stride[d], t.high[d] = t.y.dim[d];
    qn_status s = launch_one(&t, launch);
    if (s) return s;
    start += x.dim[axis];
  }
  return QN_OK;
}

static qn_status gather(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  tensor x = direct_tensor(k, launch, QN_ROLE_GATHER_X, 0);
  transform t = {};
  t.y = direct_tensor(k, launch, QN_ROLE_GATHER_Y, 0);
  t.x = x.p;
  t.indices = direct_tensor(k, launch, QN_ROLE_GATHER_INDICES, 0);
  t.axis = (int32_t)((const qn_axis *)k->attr)->axis;
  t.length = x.dim[t.axis];
  t.length_stride = x.stride[t.axis];
  for (int d = 0; d < t.y.rank; d++) {
    t.high[d] = t.y.dim[d];
    t.stride[d] = d < t.axis ? x.stride[d] : d < t.axis + t.indices.rank ? 0 : x.stride[d - t.indices.rank + 1];
  }
  return launch_one(&t, launch);
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_COPY, run),
  DIRECT_ROW(QN_OP_PERMUTE, run),
  DIRECT_ROW(QN_OP_SLICE, run),
  DIRECT_ROW(QN_OP_PAD, run),
  DIRECT_ROW(QN_OP_CONCAT, concat),
  DIRECT_ROW(QN_OP_GATHER, gather),
};
CUDA_ENGINES(transform_direct) = { row, sizeof row / sizeof *row };
