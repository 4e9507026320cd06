/* chain.c -- which pointwise ops a contraction takes with it: those that form a chain from its sum, each with at most one
 * operand from outside, in functions that steps.cuh has. */
#include "chain.h"

void cuda_chain_begin(cuda_chain *c, int32_t out)
{
  memset(c, 0, sizeof *c);
  c->out = out;
  c->n_ops = 1;
}

int cuda_chain_operand(cuda_chain *c, const qn_request *r, int32_t value, const cuda_out_dims *dims)
{
  const qn_value *v = &r->value[value];
  int k = c->steps.n_operands;
  bool host = v->flags & QN_VALUE_HOST;
  if (k == CUDA_MAX_OPERANDS) return -1;
  bool integers = r->value[c->out].dtype == QN_I32;        /* then of integers alone */
  if (integers ? v->dtype != QN_I32 : !host && v->dtype != QN_F32 && v->dtype != QN_F16 && v->dtype != QN_BF16) return -1;
  cuda_operand *o = &c->steps.operand[k];
  *o = (cuda_operand){ .dtype = v->dtype };
  if (dims->lies == CUDA_ALIKE && v->rank > 0) o->stride[0] = CUDA_ALIKE_ROW, o->stride[1] = 1;
  else if (dims->lies == CUDA_CHANNELS_LAST && v->rank > 0) {    /* operand_fits has seen to it that there are no others */
    bool one_row = qn_elements(v) == v->dim[1];
    o->stride[0] = one_row ? 0 : v->dim[1];
    o->stride[1] = one_row ? v->stride[1] : 1;
  }
  for (int i = 0; i < 4 && v->rank > 0 && dims->lies == CUDA_BY_DIMS; i++) {
    int d = dims->dim_of[i];
    if (d >= 0 && v->dim[d] > 1) o->stride[i] = v->stride[d];
  }
  c->value[k] = value;
  c->dtype[k] = v->dtype;
  c->host[k] = host;
  c->steps.n_operands++;
  return k;
}

bool cuda_chain_step(cuda_chain *c, uint32_t op, int operand, bool reversed, float alpha, float beta)
{
  if (c->steps.n == CUDA_MAX_STEPS) return false;
  c->steps.step[c->steps.n++] =
    (cuda_step){ .op = op, .operand = (int16_t)operand, .reversed = reversed, .alpha = alpha, .beta = beta };
  return true;
}

static bool known(uint32_t op, bool binary)
{
  static const uint32_t unary[] = { QN_OP_NEG, QN_OP_ABS, QN_OP_RELU, QN_OP_LEAKY_RELU, QN_OP_ELU, QN_OP_GELU, QN_OP_GELU_TANH,
    QN_OP_SILU, QN_OP_SIGMOID, QN_OP_TANH, QN_OP_SOFTPLUS, QN_OP_HARDSWISH, QN_OP_MISH, QN_OP_CLIP, QN_OP_CAST, 0 };
  static const uint32_t two[] = { QN_OP_ADD, QN_OP_SUB, QN_OP_MUL, QN_OP_DIV, QN_OP_MIN, QN_OP_MAX, QN_OP_RELU_BACKWARD,
    QN_OP_LEAKY_RELU_BACKWARD, QN_OP_CLIP_BACKWARD, QN_OP_GELU_BACKWARD, QN_OP_GELU_TANH_BACKWARD, QN_OP_SILU_BACKWARD, 0 };
  for (const uint32_t *p = binary ? two : unary; *p; p++)
    if (*p == op) return true;
  return false;
}

/* A tensor's dims broadcast to y's: an operand of a merged dim must be spread along all of it or none. */
static bool operand_fits(const qn_value *v, const qn_value *y, const cuda_out_dims *dims)
{
  if (v->rank == 0) return true;
  if (dims->lies == CUDA_ALIKE) return qn_same_layout(v, y);
  if (dims->lies == CUDA_CHANNELS_LAST) return v->dim[1] == y->dim[1] && (qn_elements(v) == v->dim[1] || (qn_same_dims(v, y) && qn_is_channels_last(v)));
  int named = 0;
  for (int d = 0; d < y->rank; d++) {
    bool is_named = false;
    for (int i = 0; i < 4; i++) is_named |= dims->dim_of[i] == d;
    named += is_named;
    if (is_named || y->dim[d] == 1) continue;
    /* merged into the next named dim: strides must go on from it, or be 0 throughout */
    int64_t inner = d + 1 < y->rank ? d + 1 : -1;
    if (inner < 0) return false;
    int64_t s0 = v->dim[d] == 1 ? 0 : v->stride[d], s1 = v->dim[inner] == 1 ? 0 : v->stride[inner];
    if (s0 != s1 * y->dim[inner]) return false;
  }
  return named > 0;
}

static bool takes_on(const qn_value *y, const qn_value *now)
{
  return qn_same_dims(y, now) && (y->dtype == QN_F32 || y->dtype == QN_F16 || y->dtype == QN_BF16);
}

void cuda_chain_follow(cuda_chain *c, const qn_request *r, const cuda_out_dims *dims)
{
  for (uint32_t k = 1; k < r->n_ops; k++) {
    const qn_node *op = &r->op[k];
    const qn_value *now = &r->value[c->out];
    const qn_pointwise *attr = op->attr;
    if ((now->flags & QN_VALUE_ESCAPE) || now->last_user != (int32_t)k) return;
    if (op->family != QN_FAMILY_POINTWISE) return;
    uint32_t inputs = op->n_inputs;
    if (inputs > 2 || !known(op->op, inputs == 2)) return;
    int first = op->arg[op->first[0]], second = inputs == 2 ? op->arg[op->first[1]] : -1, out = op->arg[op->first[inputs]];
    const qn_value *y = &r->value[out];
    if (!takes_on(y, now) || (dims->lies == CUDA_ALIKE && !qn_same_layout(y, now))) return;
    bool reversed = inputs == 2 && second == c->out;
    if (inputs == 2 && first == second) return;
    int other = inputs == 1 ? -1 : reversed ? first : second;
    if (!reversed && first != c->out) return;
    if (other >= 0 && (r->value[other].producer >= 0 || !operand_fits(&r->value[other], y, dims))) return;
    if (op->op == QN_OP_CAST) {                             /* skips a rounding */
      c->out = out;
      c->n_ops = k + 1;
      continue;
    }
    int operand = -1;
    if (c->steps.n == CUDA_MAX_STEPS || (other >= 0 && (operand = cuda_chain_operand(c, r, other, dims)) < 0)) return;
    cuda_chain_step(c, op->op, operand, reversed, attr ? (float)attr->alpha : 0, attr ? (float)attr->beta : 0);
    c->out = out;
    c->n_ops = k + 1;
  }
}

static void drop_first_step(cuda_steps *s)
{
  memmove(&s->step[0], &s->step[1], (size_t)--s->n * sizeof *s->step);
}

int32_t cuda_chain_second(cuda_chain *c, const qn_request *r, uint32_t dtype, bool *relu)
{
  cuda_steps *s = &c->steps;
  int32_t second = -1;
  *relu = false;
  if (s->n && s->step[0].op == QN_OP_ADD && !c->host[s->step[0].operand]) {
    const qn_value *v = &r->value[c->value[s->step[0].operand]];
    if (v->rank > 0 && v->dtype == dtype && v->align >= 16) {
      second = c->value[s->step[0].operand];
      drop_first_step(s);
    }
  }
  if (s->n && s->step[0].op == QN_OP_RELU) {
    *relu = true;
    drop_first_step(s);
  }
  return second;
}

void cuda_chain_bind(cuda_steps *steps, const cuda_chain *c, void *const *ptr)
{
  for (int i = 0; i < steps->n_operands; i++) {
    const void *p = ptr[c->value[i]];
    if (c->host[i]) steps->operand[i].scalar = (float)qn_load_f64(p, c->dtype[i]);
    else steps->operand[i].p = p;
  }
}

bool cuda_chain_column_relu(const cuda_steps *s, int32_t *column, int32_t *relu)
{
  int k = 0;
  *column = -1;
  *relu = 0;
  if (k < s->n && s->step[k].op == QN_OP_ADD) {
    const cuda_operand *o = &s->operand[s->step[k].operand];
    if (o->stride[0] || o->stride[1] != 1 || o->stride[2] || o->stride[3]) return false;
    *column = s->step[k++].operand;
  }
  if (k < s->n && s->step[k].op == QN_OP_RELU) *relu = 1, k++;
  return k == s->n;
}
