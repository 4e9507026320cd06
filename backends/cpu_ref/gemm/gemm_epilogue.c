/* gemm_epilogue.c -- applies alpha, beta and bias and rounds once, on rows of sums that are still in cache. */
#include <quern/kit.h>
#include "gemm_epilogue.h"

cpu_operand cpu_operand_of(const qn_request *request, int32_t value, int32_t rank)
{
  cpu_operand o = {.value = value};
  if (value < 0) return o;
  const qn_value *v = &request->value[value];
  o.dtype = v->dtype;
  for (int32_t i = 0; i < v->rank; i++)
    o.stride[rank - v->rank + i] = v->dim[i] == 1 ? 0 : v->stride[i];
  return o;
}

static int64_t element_at(const cpu_operand *o, int32_t rank, const int64_t *index)
{
  int64_t offset = 0;
  for (int32_t i = 0; i < rank; i++) offset += index[i] * o->stride[i];
  return offset;
}

char *cpu_operand_at(const cpu_operand *o, int32_t rank, const int64_t *index)
{
  return o->base + element_at(o, rank, index) * qn_kit_bytes(o->dtype);
}

static void bind(cpu_operand *o, void *const *ptr)
{
  o->base = o->value < 0 ? NULL : ptr[o->value];
}

static double scalar(const cpu_operand *o, void *const *ptr, double absent)
{
  return o->value < 0 ? absent : qn_load_f64(ptr[o->value], o->dtype);
}

void cpu_epilogue_bind(cpu_epilogue *e, void *const *ptr)
{
  bind(&e->c, ptr);
  bind(&e->bias, ptr);
  bind(&e->y, ptr);
  e->alpha = scalar(&e->alpha_at, ptr, 1);
  e->beta = scalar(&e->beta_at, ptr, 1);
}

/* ---- by type of sums -------------------------------------------------------------------------- */

static void f32_add(const cpu_epilogue *e, const cpu_operand *o, float by, const int64_t *index, int32_t axis, int64_t n,
                    float *restrict sum)
{
  const char *from = cpu_operand_at(o, e->rank, index);
  float other[CPU_ROW_MAX];
  if (o->stride[axis] == 0) {
    const float same = by * (float)qn_load_f64(from, o->dtype);
    for (int64_t i = 0; i < n; i++) sum[i] += same;
    return;
  }
  e->isa->widen[o->dtype](from, o->stride[axis], n, other);
  for (int64_t i = 0; i < n; i++) sum[i] += by * other[i];
}

static void f64_add(const cpu_epilogue *e, const cpu_operand *o, double by, const int64_t *index, int32_t axis, int64_t n,
                    double *sum)
{
  const char *from = cpu_operand_at(o, e->rank, index);
  const int64_t step = o->stride[axis] * qn_kit_bytes(o->dtype);
  for (int64_t i = 0; i < n; i++) sum[i] += by * qn_load_f64(from + i * step, o->dtype);
}

static void i32_add(const cpu_epilogue *e, const cpu_operand *o, const int64_t *index, int32_t axis, int64_t n,
                    uint32_t *sum)                        /* unsigned: wraps */
{
  const int32_t *from = (const int32_t *)cpu_operand_at(o, e->rank, index);
  for (int64_t i = 0; i < n; i++) sum[i] += (uint32_t)from[i * o->stride[axis]];
}

/* ---- a row ------------------------------------------------------------------------------------ */

static void row(const cpu_epilogue *e, const int64_t *index, int32_t axis, int64_t n, void *sum)
{
  const bool adds_c = e->c.base && e->beta != 0;
  switch (e->type) {
  case CPU_GEMM_F32: {
    float *const s = sum;
    if (e->alpha != 1) for (int64_t i = 0; i < n; i++) s[i] *= (float)e->alpha;
    if (adds_c) f32_add(e, &e->c, (float)e->beta, index, axis, n, s);
    if (e->bias.base) f32_add(e, &e->bias, 1, index, axis, n, s);
    break;
  }
  case CPU_GEMM_F64: {
    double *const s = sum;
    if (e->alpha != 1) for (int64_t i = 0; i < n; i++) s[i] *= e->alpha;
    if (adds_c) f64_add(e, &e->c, e->beta, index, axis, n, s);
    if (e->bias.base) f64_add(e, &e->bias, 1, index, axis, n, s);
    break;
  }
  default:
    if (adds_c) i32_add(e, &e->c, index, axis, n, sum);
    if (e->bias.base) i32_add(e, &e->bias, index, axis, n, sum);
    break;
  }
  if (e->follow) e->follow(e, element_at(&e->y, e->rank, index), n, sum);
  else e->isa->narrow[e->y.dtype](sum, n, cpu_operand_at(&e->y, e->rank, index), e->y.stride[axis]);
}

void cpu_epilogue_row(const cpu_epilogue *e, const int64_t *index, int32_t axis, int64_t n, void *sum)
{
  const size_t element = e->type == CPU_GEMM_F64 ? 8 : 4;
  int64_t at[QN_MAX_RANK];
  memcpy(at, index, sizeof at);
  for (int64_t done = 0; done < n; done += CPU_ROW_MAX) {
    row(e, at, axis, qn_min_i64(CPU_ROW_MAX, n - done), (char *)sum + (size_t)done * element);
    at[axis] += CPU_ROW_MAX;
  }
}
