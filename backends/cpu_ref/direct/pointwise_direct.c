/* pointwise_direct.c -- every pointwise op: one output element from the input elements at the same index, dims of 1 and rank-0
 * scalars broadcast. A function is one line of floating() or whole().
 *
 * The computing type is the operands': f64, f32 (also for f16 and bf16), the integer dtype, or bool. Scalars and
 * attributes are converted to it first. Basic operations are computed in double, others by libm in long double. */
#include "direct.h"

/* ---- functions -------------------------------------------------------------------------------- */

typedef long double wide;
#define PI 3.14159265358979323846264338327950288L

static wide sigmoid(wide x) { return 1 / (1 + expl(-x)); }
static wide softplus(wide x) { return fmaxl(x, 0) + log1pl(expl(-fabsl(x))); }          /* ln(1 + e^x), except for NaN */
static wide softplus_beta(wide x, wide beta) { return isnan(x) ? x : softplus(beta * x) / beta; }
static wide mish(wide x) { return isnan(x) ? x : x * tanhl(softplus(x)); }

/* gelu_tanh(x) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3) */
static wide gelu_twice_u(wide x) { return 2 * sqrtl(2 / PI) * (x + 0.044715L * x * x * x); }
static wide gelu_tanh_slope(wide x)
{
  const wide t = gelu_twice_u(x), slope = 2 * sqrtl(2 / PI) * (1 + 3 * 0.044715L * x * x);
  return sigmoid(t) + x * slope * sigmoid(t) * sigmoid(-t);
}
static wide gelu_slope(wide x) { return erfcl(-x / sqrtl(2)) / 2 + x * expl(-x * x / 2) / sqrtl(2 * PI); }
static wide silu_slope(wide x, wide beta) { return sigmoid(beta * x) * (1 + beta * x * sigmoid(-beta * x)); }
static wide mish_slope(wide x)
{
  if (isnan(x)) return x;
  const wide t = tanhl(softplus(x));
  return t + x * sigmoid(x) * (1 - t) * (1 + t);
}
static wide tanh_slope(wide x) { const wide c = coshl(x); return 1 / (c * c); }         /* 1 - tanh^2, without cancellation */

/* a - b floor(a / b), which has b's sign also where it is 0. */
static wide floor_mod(wide a, wide b)
{
  const wide r = fmodl(a, b);
  return r == 0 ? copysignl(r, b) : (r < 0) != (b < 0) ? r + b : r;
}

/* The larger, the first if equal, NaN if either is. */
static double larger(double a, double b)  { return isnan(a) || a >= b ? a : b; }
static double smaller(double a, double b) { return isnan(a) || a <= b ? a : b; }

static double listed(uint32_t op, wide a, wide b)
{
  switch (op) {
#define QN_FUNCTION(OP, half_ulps, oracle, fast) case QN_OP_##OP: return (double)(oracle);
#include <quern/functions.def>
  default: return NAN;                                    /* a function of the schema that is missing here */
  }
}

/* a, b: operands (unary: a is x; backward: a is dy, b is x); p, q: attributes. */
static double floating(uint32_t op, double a, double b, double p, double q)
{
  switch (op) {
  case QN_OP_ADD:  return a + b;
  case QN_OP_SUB:  return a - b;
  case QN_OP_MUL:  return a * b;
  case QN_OP_DIV:  return a / b;
  case QN_OP_MIN:  return smaller(a, b);
  case QN_OP_MAX:  return larger(a, b);
  case QN_OP_POW:  return (double)powl(a, b);
  case QN_OP_EQ:   return a == b;
  case QN_OP_NE:   return a != b;
  case QN_OP_LT:   return a < b;
  case QN_OP_LE:   return a <= b;
  case QN_OP_GT:   return a > b;
  case QN_OP_GE:   return a >= b;
  case QN_OP_CAST: return a;

  case QN_OP_NEG:        return -a;
  case QN_OP_ABS:        return fabs(a);
  case QN_OP_SIGN:       return a > 0 ? 1 : a < 0 ? -1 : a;
  case QN_OP_EXP:        return (double)expl(a);
  case QN_OP_LOG:        return (double)logl(a);
  case QN_OP_SQRT:       return sqrt(a);
  case QN_OP_RSQRT:      return (double)(1 / sqrtl(a));
  case QN_OP_RECIPROCAL: return 1 / a;
  case QN_OP_ERF:        return (double)erfl(a);
  case QN_OP_SIN:        return (double)sinl(a);
  case QN_OP_COS:        return (double)cosl(a);
  case QN_OP_FLOOR:      return floor(a);
  case QN_OP_CEIL:       return ceil(a);
  case QN_OP_ROUND:      return rint(a);
  case QN_OP_TRUNC:      return trunc(a);

  case QN_OP_RELU:       return larger(a, 0);
  case QN_OP_LEAKY_RELU: return a > 0 ? a : p * a;
  case QN_OP_ELU:        return a > 0 ? a : (double)(p * expm1l(a));
  case QN_OP_GELU:       return (double)(a * erfcl(-a / sqrtl(2)) / 2);
  case QN_OP_GELU_TANH:  return (double)(a * sigmoid(gelu_twice_u(a)));
  case QN_OP_SILU:       return (double)(a * sigmoid((wide)p * a));
  case QN_OP_SIGMOID:    return (double)sigmoid(a);
  case QN_OP_TANH:       return (double)tanhl(a);
  case QN_OP_SOFTPLUS:   return (double)softplus_beta(a, p);
  case QN_OP_HARDSWISH:  return (double)((wide)a * fminl(fmaxl((wide)a + 3, 0), 6) / 6);
  case QN_OP_MISH:       return (double)mish(a);
  case QN_OP_CLIP:       return smaller(larger(a, p), q);

  case QN_OP_RELU_BACKWARD:       return b > 0 ? a : 0;
  case QN_OP_LEAKY_RELU_BACKWARD: return b > 0 ? a : p * a;
  case QN_OP_ELU_BACKWARD:        return b > 0 ? a : (double)(p * expl(b) * a);
  case QN_OP_GELU_BACKWARD:       return (double)(a * gelu_slope(b));
  case QN_OP_GELU_TANH_BACKWARD:  return (double)(a * gelu_tanh_slope(b));
  case QN_OP_SILU_BACKWARD:       return (double)(a * silu_slope(b, p));
  case QN_OP_SIGMOID_BACKWARD:    return (double)(a * sigmoid(b) * sigmoid(-b));
  case QN_OP_TANH_BACKWARD:       return (double)(a * tanh_slope(b));
  case QN_OP_SOFTPLUS_BACKWARD:   return (double)(a * sigmoid((wide)p * b));
  case QN_OP_HARDSWISH_BACKWARD:  return b <= -3 ? a * 0 : b >= 3 ? a : (double)((wide)a * (2 * (wide)b + 3) / 6);
  case QN_OP_MISH_BACKWARD:       return (double)(a * mish_slope(b));
  case QN_OP_CLIP_BACKWARD:       return p < b && b < q ? a : 0;
  default:                        return listed(op, a, b);
  }
}

/* For integers, modulo 2^64, and bool. */
static int64_t whole(uint32_t op, int64_t a, int64_t b)
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
  case QN_OP_CAST: return a;
  case QN_OP_EQ:   return a == b;
  case QN_OP_NE:   return a != b;
  case QN_OP_LT:   return a < b;
  case QN_OP_LE:   return a <= b;
  case QN_OP_GT:   return a > b;
  case QN_OP_GE:   return a >= b;
  case QN_OP_LOGICAL_AND: return a && b;
  case QN_OP_LOGICAL_OR:  return a || b;
  case QN_OP_LOGICAL_NOT: return !a;
#define QN_INTEGER(OP, expression) case QN_OP_##OP: return expression;
#include <quern/functions.def>
  default:                return 0;                       /* the schema admits integers in no other op */
  }
}

/* ---- operands --------------------------------------------------------------------------------- */

enum { MAX_OPERANDS = 3 };

typedef struct pointwise {
  uint32_t   op, type;                    /* type: computing type, QN_F64, QN_F32, an integer dtype, QN_BOOL */
  int32_t    n;                           /* operands, without select's condition */
  cpu_tensor operand[MAX_OPERANDS], condition, y;
  double     p, q;                        /* attributes */
} pointwise;

static int64_t broadcast_offset(const cpu_tensor *t, const int64_t *index)
{
  int64_t offset = 0;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->dim[d] > 1) offset += index[d] * t->stride[d];
  return offset;
}

static uint32_t type_of(uint32_t dtype)
{
  return dtype == QN_F64 || !qn_is_float(dtype) ? dtype : QN_F32;
}

/* Of comparisons and casts the output's dtype says nothing; the first operand that is not a scalar decides. */
static uint32_t computation_type(const pointwise *v)
{
  if (v->op == QN_OP_CAST) return type_of(v->operand[0].dtype);
  if (v->y.dtype != QN_BOOL) return type_of(v->y.dtype);
  for (int32_t k = 0; k < v->n; k++)
    if (v->operand[k].rank > 0) return type_of(v->operand[k].dtype);
  uint32_t type = type_of(v->operand[0].dtype);           /* all are scalars: the widest float decides */
  for (int32_t k = 1; k < v->n; k++) {
    const uint32_t other = type_of(v->operand[k].dtype);
    if (qn_is_float(other) && (!qn_is_float(type) || other == QN_F64)) type = other;
  }
  return type;
}

static double floating_operand(const pointwise *v, const cpu_tensor *t, const int64_t *index)
{
  const double x = cpu_get(t, broadcast_offset(t, index));
  return v->type == QN_F64 ? x : (float)x;                /* changes only f64 scalars: tensors are no wider than f32 here */
}

static int64_t whole_operand(const pointwise *v, const cpu_tensor *t, const int64_t *index)
{
  const int64_t x = qn_load_i64(cpu_at(t, broadcast_offset(t, index)), t->dtype);
  if (v->type == QN_BOOL) return t->dtype == QN_BOOL ? x : cpu_get(t, 0) != 0;
  return qn_min_i64(qn_max_i64(x, qn_least(v->type)), qn_largest(v->type));
}

/* ---- run -------------------------------------------------------------------------------------- */

static void one_element(const pointwise *v, const int64_t *index)
{
  const int64_t to = cpu_offset(v->y.rank, index, v->y.stride);
  const cpu_tensor *a = &v->operand[0], *b = &v->operand[v->n > 1];
  if (v->condition.p) {                                   /* select: the operand not chosen is not read */
    const cpu_tensor *taken = qn_load_i64(cpu_at(&v->condition, broadcast_offset(&v->condition, index)), QN_BOOL) ? a : b;
    if (qn_is_float(v->type)) cpu_put(&v->y, to, floating_operand(v, taken, index));
    else qn_store_i64(cpu_at(&v->y, to), v->y.dtype, whole_operand(v, taken, index));
  } else if (qn_is_float(v->type)) {
    cpu_put(&v->y, to, floating(v->op, floating_operand(v, a, index), floating_operand(v, b, index), v->p, v->q));
  } else {
    const int64_t r = whole(v->op, whole_operand(v, a, index), whole_operand(v, b, index));
    qn_store_i64(cpu_at(&v->y, to), v->y.dtype, v->op == QN_OP_CAST ? r : qn_wrap(v->y.dtype, r));
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_pointwise *attr = kept->attr;
  const int32_t conditions = kept->op == QN_OP_SELECT, roles = kept->n_roles;
  pointwise v = { .op = kept->op, .n = roles - 1 - conditions };
  for (int32_t k = 0; k < v.n; k++) v.operand[k] = cpu_tensor_of(p, launch, (uint32_t)(k + conditions), 0);
  if (conditions) v.condition = cpu_tensor_of(p, launch, QN_ROLE_SELECT_C, 0);
  v.y = cpu_tensor_of(p, launch, (uint32_t)(roles - 1), 0);
  v.type = computation_type(&v);
  if (attr) {
    v.p = v.type == QN_F64 ? attr->alpha : (float)attr->alpha;
    v.q = v.type == QN_F64 ? attr->beta : (float)attr->beta;
  }
  /* silu and softplus keep their one attribute in beta */
  if (v.op == QN_OP_SILU || v.op == QN_OP_SOFTPLUS || v.op == QN_OP_SILU_BACKWARD || v.op == QN_OP_SOFTPLUS_BACKWARD) v.p = v.q;

#pragma omp parallel for num_threads(cpu_team(launch, v.y.elements, 20))
  for (int64_t i = 0; i < v.y.elements; i++) {
    int64_t index[QN_MAX_RANK];
    cpu_place(i, v.y.rank, v.y.dim, index);
    one_element(&v, index);
  }
  return QN_OK;
}

static const qn_engine row[] = { CPU_DIRECT_ROW(QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, run) };
const qn_engine_list cpu_pointwise_direct = { row, 1 };
