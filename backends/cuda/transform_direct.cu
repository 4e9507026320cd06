/* transform_direct.cu -- the same elements at other places, their bytes kept.
 *
 *   copy     y[i] = x[i]                    permute  y[i] = x[j] with j[axis[d]] = i[d]
 *   slice    y[i] = x[start + i step]       pad      y[i] = x[i - pad_before], or value
 *   concat   y = the x one after the other along an axis, one launch for each
 *
 * All are one kernel: y's element i comes from x at base + sum i[d] stride[d], where each i[d] lies within low[d], high[d]. */
#include "direct.cuh"
#include "engines.h"

struct transform {
  tensor  y;                              /* for concat the part of y that one x fills */
  const void *x;
  int64_t base, stride[QN_MAX_RANK];
  int64_t low[QN_MAX_RANK], high[QN_MAX_RANK];
  int64_t elements;
  double  value;
  int32_t bytes;
};

__global__ static void __launch_bounds__(256) transform_direct(const __grid_constant__ transform t)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < t.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t from = t.base, to = 0, rest = i;
    bool inside = true;
    for (int d = t.y.rank - 1; d >= 0; d--) {
      int64_t q = rest / t.y.dim[d], at = rest - q * t.y.dim[d];
      inside &= at >= t.low[d] && at < t.high[d];
      from += at * t.stride[d];
      to += at * t.y.stride[d];
      rest = q;
    }
    if (!inside) t.y.store(to, t.value);
    else if (t.bytes == 1) ((uint8_t *)t.y.p)[to] = ((const uint8_t *)t.x)[from];
    else if (t.bytes == 2) ((uint16_t *)t.y.p)[to] = ((const uint16_t *)t.x)[from];
    else if (t.bytes == 4) ((uint32_t *)t.y.p)[to] = ((const uint32_t *)t.x)[from];
    else ((uint64_t *)t.y.p)[to] = ((const uint64_t *)t.x)[from];
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
      t.stride[d] *= s->step[d];
    } else if (k->op == QN_OP_PAD) {
      const qn_padding *s = (const qn_padding *)k->attr;
      t.base -= s->pad_before[d] * x.stride[d];
      t.low[d] = s->pad_before[d];
      t.high[d] = s->pad_before[d] + x.dim[d];
      t.value = s->value;
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

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_COPY, run),
  DIRECT_ROW(QN_OP_PERMUTE, run),
  DIRECT_ROW(QN_OP_SLICE, run),
  DIRECT_ROW(QN_OP_PAD, run),
  DIRECT_ROW(QN_OP_CONCAT, concat),
};
const qn_engine_list cuda_transform_direct_list = { row, sizeof row / sizeof *row };
