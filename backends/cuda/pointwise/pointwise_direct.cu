/* pointwise_direct.cu -- every pointwise op, the fallback: one output element per thread from the elements at the same position;
 * dims of size 1 and rank-0 scalars broadcast. Floats are computed in double and rounded once; integers modulo 2^64, and bool, in int64. */
#include "kit/direct.cuh"
#include "engines.h"
#include "kit/functions.cuh"
#include "kit/functions_listed.cuh"

struct pointwise {
  uint32_t op, type;                      /* type: the computation's, QN_F64, QN_F32, an integer dtype or QN_BOOL */
  int32_t  n, condition;                  /* n: operands, without select's condition, which comes before them */
  bool     listed;                        /* a function of floats in functions.def */
  tensor   operand[3], y;
  scalar   value[3];                      /* of operands of rank 0 */
  int64_t  whole[3];                      /* host scalars as integers, which may have more digits than a double */
  double   alpha, beta;
  int64_t  elements;
};

/* Comparisons and casts differ in dtype from their operands; there the first operand that is no scalar decides. */
static uint32_t type_of(uint32_t dtype) { return dtype == QN_F64 || !qn_is_float(dtype) ? dtype : (uint32_t)QN_F32; }
static uint32_t computation_type(const pointwise *v)
{
  const tensor *first = v->operand + v->condition;
  int n = v->n - v->condition;
  if (v->op == QN_OP_CAST) return type_of(first->dtype);
  if (v->y.dtype != QN_BOOL) return type_of(v->y.dtype);
  for (int k = 0; k < n; k++)
    if (first[k].rank > 0) return type_of(first[k].dtype);
  uint32_t type = type_of(first[0].dtype);
  for (int k = 1; k < n; k++) {
    uint32_t other = type_of(first[k].dtype);
    if (qn_is_float(other) && (!qn_is_float(type) || other == QN_F64)) type = other;
  }
  return type;
}

__device__ static double floating_operand(const pointwise &v, int k, int64_t i)
{
  const tensor &t = v.operand[k];
  double x = t.rank > 0   ? t.load<double>(place(t, v.y, i))
           : v.value[k].p ? element_load<double>(v.value[k].p, 0, v.value[k].dtype)
                          : v.value[k].value;
  return v.type == QN_F64 ? x : (float)x;
}

__device__ static bool is_float(uint32_t dtype) { return dtype >= QN_F64 && dtype <= QN_BF16; }

__device__ static int64_t whole_operand(const pointwise &v, int k, int64_t i)
{
  const tensor &t = v.operand[k];
  const scalar &s = v.value[k];
  if (t.rank > 0) return t.load<int64_t>(place(t, v.y, i));
  if (!s.p) return v.whole[k];
  if (!is_float(s.dtype)) return integer_clamp(element_load<int64_t>(s.p, 0, s.dtype), v.type);
  double x = element_load<double>(s.p, 0, s.dtype);
  if (v.type == QN_BOOL) return x != 0;
  return x != x ? 0 : integer_clamp(__double2ll_rn(x), v.type);
}

/* Select's condition; a host scalar's pointer is not valid on the device. */
__device__ static bool condition(const pointwise &v, int64_t i)
{
  const tensor &t = v.operand[0];
  return t.rank > 0 || v.value[0].p ? t.load<int64_t>(place(t, v.y, i)) != 0 : v.value[0].value != 0;
}

/* light: comparisons, casts and whole numbers alone, which leave the kernel few registers, hence many loads in flight. */
template <bool light> __device__ __forceinline__ double floating(const pointwise &v, double a, double b)
{
  switch (v.op) {
  case QN_OP_EQ: return a == b;
  case QN_OP_NE: return a != b;
  case QN_OP_LT: return a < b;
  case QN_OP_LE: return a <= b;
  case QN_OP_GT: return a > b;
  case QN_OP_GE: return a >= b;
  default:
    if (light) return a;
    if (v.listed) return fn_listed(v.op, a, b);
    return v.n == 1 ? fn_unary(v.op, a, v.alpha, v.beta) : fn_binary(v.op, a, b, v.alpha, v.beta);
  }
}

__device__ static int64_t whole(uint32_t op, int64_t a, int64_t b)
{
  switch (op) {
  case QN_OP_ADD:  return (int64_t)((uint64_t)a + (uint64_t)b);
  case QN_OP_SUB:  return (int64_t)((uint64_t)a - (uint64_t)b);
  case QN_OP_MUL:  return (int64_t)((uint64_t)a * (uint64_t)b);
  case QN_OP_MIN:  return b < a ? b : a;
  case QN_OP_MAX:  return b > a ? b : a;
  case QN_OP_NEG:  return (int64_t)(0 - (uint64_t)a);
  case QN_OP_ABS:  return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
  case QN_OP_SIGN: return (a > 0) - (a < 0);
  case QN_OP_EQ:   return a == b;
  case QN_OP_NE:   return a != b;
  case QN_OP_LT:   return a < b;
  case QN_OP_LE:   return a <= b;
  case QN_OP_GT:   return a > b;
  case QN_OP_GE:   return a >= b;
  case QN_OP_LOGICAL_AND: return a && b;
  case QN_OP_LOGICAL_OR:  return a || b;
  case QN_OP_LOGICAL_NOT: return !a;
  default:                return fn_listed_integer(op, a, b);         /* cast: a */
  }
}

template <bool light> __global__ static void __launch_bounds__(256, light ? 6 : 1) pointwise_direct(const __grid_constant__ pointwise v)
{
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < v.elements; i += (int64_t)gridDim.x * blockDim.x) {
    int64_t to = place(v.y, v.y, i);
    int a = 0, b = v.n > 1 ? 1 : 0;
    if (v.condition) {                    /* select: only the chosen operand is read */
      a = b = condition(v, i) ? 1 : 2;
    }
    if (is_float(v.type)) {
      double x = floating_operand(v, a, i);
      v.y.store(to, v.condition ? x : floating<light>(v, x, a == b ? x : floating_operand(v, b, i)));
    } else {
      int64_t x = whole_operand(v, a, i);
      int64_t r = v.condition ? x : whole(v.op, x, a == b ? x : whole_operand(v, b, i));
      if (v.op == QN_OP_CAST) v.y.store(to, r);
      else element_store_wrapped(v.y.p, to, v.y.dtype, r);
    }
  }
}

/* A host scalar of an integer computation, converted to the computation's type. */
static int64_t whole_of(const pointwise *v, const kept *k, const qn_launch *launch, int i)
{
  const qn_value *s = &k->value[k->first[i]];
  const void *p = launch->ptr[k->number[k->first[i]]];
  if (!(s->flags & QN_VALUE_HOST) || qn_is_float(v->type)) return 0;
  if (v->type == QN_BOOL) return qn_load_f64(p, s->dtype) != 0;
  return qn_min_i64(qn_max_i64(qn_load_i64(p, s->dtype), qn_least(v->type)), qn_largest(v->type));
}

/* Fewer dims, because an element costs a division for each but the first. */
static void merge_dims(pointwise *v, const kept *k)
{
  qn_nest nest;
  qn_nest_begin(&nest, &k->value[k->first[v->n]]);
  for (int i = 0; i < v->n; i++) qn_nest_add(&nest, &k->value[k->first[i]]);
  qn_nest_simplify(&nest);
  if (nest.rank == 0) return;
  for (int i = 0; i <= v->n; i++) {
    tensor *t = i ? &v->operand[i - 1] : &v->y;
    if (t->rank == 0) continue;           /* a scalar */
    t->rank = nest.rank;
    memcpy(t->dim, nest.dim, sizeof t->dim);
    memcpy(t->stride, nest.stride[i], sizeof t->stride);
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_pointwise *attr = (const qn_pointwise *)k->attr;
  pointwise v = {};
  v.op = k->op;
  v.n = k->n_roles - 1;
  v.condition = k->op == QN_OP_SELECT;
  v.listed = fn_is_listed(v.op);
  for (int i = 0; i < v.n; i++) {
    v.operand[i] = direct_tensor(k, launch, (uint32_t)i, 0);
    if (v.operand[i].rank == 0) v.value[i] = direct_scalar(k, launch, (uint32_t)i, 0);
  }
  v.y = direct_tensor(k, launch, (uint32_t)v.n, 0);
  v.type = computation_type(&v);
  for (int i = 0; i < v.n; i++) v.whole[i] = whole_of(&v, k, launch, i);
  v.elements = direct_elements(v.y);
  merge_dims(&v, k);
  if (attr) {
    v.alpha = v.type == QN_F64 ? attr->alpha : (float)attr->alpha;
    v.beta = v.type == QN_F64 ? attr->beta : (float)attr->beta;
  }
  const bool light = !qn_is_float(v.type) || v.op == QN_OP_CAST || v.op == QN_OP_SELECT || (v.op >= QN_OP_EQ && v.op <= QN_OP_GE);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  if (light) pointwise_direct<true><<<direct_blocks(v.elements, 256), 256, 0, stream>>>(v);
  else pointwise_direct<false><<<direct_blocks(v.elements, 256), 256, 0, stream>>>(v);
  return direct_launched("pointwise_direct");
}

static const qn_engine row[] = { DIRECT_ROW(QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, run) };
CUDA_ENGINES(pointwise_direct) = { row, 1 };
