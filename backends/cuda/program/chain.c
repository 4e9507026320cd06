/* chain.c -- which pointwise ops a contraction absorbs: those that form a chain from its sum, each with at most one operand from
 * outside, among the functions of steps.cuh; and one normalization by given statistics. */
#include "chain.h"
#include "plain.h"
#include <quern/program.h>

static const uint32_t norms[] = { QN_OP_BATCH_NORM_INFERENCE, 0 };
const qn_pattern cuda_chain_pattern = { .struct_size = sizeof cuda_chain_pattern, .after = norms };

void cuda_chain_begin(cuda_chain *c, int32_t out)
{
  memset(c, 0, sizeof *c);
  c->out = out;
  c->n_ops = 1;
}

static bool is_float(uint32_t dtype) { return dtype == QN_F32 || dtype == QN_F16 || dtype == QN_BF16; }

static int add_operand(cuda_chain *c, const qn_value *v, int32_t value, const cuda_out_dims *dims)
{
  int k = c->steps.n_operands;
  if (k == CUDA_MAX_OPERANDS) return -1;
  cuda_operand *o = &c->steps.operand[k];
  *o = (cuda_operand){ .dtype = v->dtype };
  if (dims->lies == CUDA_ALIKE && v->rank > 0) o->stride[0] = CUDA_ALIKE_ROW, o->stride[1] = 1;
  else if (dims->lies == CUDA_CHANNELS_LAST && v->rank > 0) {    /* operand_fits has excluded everything else */
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
  c->host[k] = v->flags & QN_VALUE_HOST;
  c->steps.n_operands++;
  return k;
}

int cuda_chain_operand(cuda_chain *c, const qn_request *r, int32_t value, const cuda_out_dims *dims)
{
  const qn_value *v = &r->value[value];
  bool integers = r->value[c->out].dtype == QN_I32;        /* integer sums take integer operands only */
  if (integers ? v->dtype != QN_I32 : !(v->flags & QN_VALUE_HOST) && !is_float(v->dtype)) return -1;
  return add_operand(c, v, value, dims);
}

qn_status cuda_chain_begin_conv(cuda_chain *c, const qn_request *r, int32_t out, int32_t bias, qn_prepared *p)
{
  const cuda_out_dims row = { { -1, 0, -1, -1 }, CUDA_BY_DIMS };
  cuda_chain_begin(c, out);
  if (bias < 0) return QN_OK;
  const int k = cuda_chain_operand(c, r, bias, &row);
  if (k < 0) return qn_refuse(p, "dtypes", "bias", "f16, bf16 or f32", "%s", qn_kit_name(r->value[bias].dtype));
  cuda_chain_step(c, QN_OP_ADD, k, false, 0, 0);
  return QN_OK;
}

bool cuda_chain_step(cuda_chain *c, uint32_t op, int operand, bool reversed, float alpha, float beta)
{
  if (c->steps.n == CUDA_MAX_STEPS) return false;
  c->steps.step[c->steps.n++] =
    (cuda_step){ .op = op, .operand = (int16_t)operand, .reversed = reversed, .alpha = alpha, .beta = beta };
  return true;
}

static bool known(uint32_t op)
{
  static const uint32_t ops[] = { QN_OP_NEG, QN_OP_ABS, QN_OP_RELU, QN_OP_LEAKY_RELU, QN_OP_ELU, QN_OP_GELU, QN_OP_GELU_TANH,
    QN_OP_SILU, QN_OP_SIGMOID, QN_OP_TANH, QN_OP_SOFTPLUS, QN_OP_HARDSWISH, QN_OP_MISH, QN_OP_CLIP, QN_OP_CAST,
    QN_OP_ADD, QN_OP_SUB, QN_OP_MUL, QN_OP_DIV, QN_OP_MIN, QN_OP_MAX, QN_OP_RELU_BACKWARD,
    QN_OP_LEAKY_RELU_BACKWARD, QN_OP_CLIP_BACKWARD, QN_OP_GELU_BACKWARD, QN_OP_GELU_TANH_BACKWARD, QN_OP_SILU_BACKWARD, 0 };
  for (const uint32_t *p = ops; *p; p++)
    if (*p == op) return true;
  return false;
}

static bool is_among(const cuda_out_dims *dims, int d)
{
  for (int i = 0; i < 4; i++)
    if (dims->dim_of[i] == d) return true;
  return false;
}

/* Can the kernel address v, broadcast to y, by the strides of `dims`? Along merged dims v must vary throughout or not at all. */
static bool operand_fits(const qn_value *v, const qn_value *y, const cuda_out_dims *dims)
{
  if (v->rank == 0) return true;
  if (dims->lies == CUDA_ALIKE) return qn_same_layout(v, y);
  if (dims->lies == CUDA_CHANNELS_LAST)
    return v->dim[1] == y->dim[1] && (qn_elements(v) == v->dim[1] || (qn_same_dims(v, y) && qn_is_channels_last(v)));
  int named = 0;
  for (int d = 0; d < y->rank; d++) {
    bool is_named = is_among(dims, d);
    named += is_named;
    if (is_named || y->dim[d] == 1) continue;
    /* merged into the next inner dim that is named or larger than 1: strides must continue from it, or be 0 throughout */
    int inner = d + 1;
    while (inner < y->rank && y->dim[inner] == 1 && !is_among(dims, inner)) inner++;
    if (inner == y->rank) return false;
    int64_t s0 = v->dim[d] == 1 ? 0 : v->stride[d], s1 = v->dim[inner] == 1 ? 0 : v->stride[inner];
    if (s0 != s1 * y->dim[inner]) return false;
  }
  return named > 0;
}

/* May the chain go on from `now` to y? Kernels step along the dims they have merged, so any layout serves that those dims fit.
 * (For CUDA_CHANNELS_LAST the final y is checked for being packed at the end.) */
static bool takes_on(const qn_value *y, const qn_value *now, const cuda_out_dims *dims)
{
  if (!qn_same_dims(y, now) || !is_float(y->dtype)) return false;
  return dims->lies == CUDA_CHANNELS_LAST || qn_same_layout(y, now) || (dims->lies == CUDA_BY_DIMS && operand_fits(y, y, dims));
}

/* Records a tensor with one element per channel; `dim` is its channel dim. False: it does not fit. */
static bool by_channel(cuda_fold *f, const qn_request *r, int tensor, int32_t value, int dim)
{
  f->value[tensor] = value;
  if (value < 0) return true;
  const qn_value *v = &r->value[value];
  f->dtype[tensor] = v->dtype;
  f->stride[tensor] = v->dim[dim] == 1 ? 0 : v->stride[dim];
  return v->producer < 0 && v->dim[dim] == f->channels && qn_elements(v) == f->channels && is_float(v->dtype);
}

bool cuda_fold_read(cuda_fold *f, const qn_request *r, const qn_node *norm, int32_t x, int32_t bias)
{
  const qn_norm_roles role = qn_norm_roles_of(norm->op);
  *f = (cuda_fold){ .channels = (int32_t)r->value[x].dim[1], .eps = (float)((const qn_norm *)norm->attr)->eps };
  return qn_role_at(norm, role.x) == x && f->eps > 0 && by_channel(f, r, CUDA_FOLD_BIAS, bias, 0) &&
         by_channel(f, r, CUDA_FOLD_MEAN, qn_role_at(norm, role.mean), 1) &&
         by_channel(f, r, CUDA_FOLD_VAR, qn_role_at(norm, role.var), 1) &&
         by_channel(f, r, CUDA_FOLD_SCALE, qn_role_at(norm, role.scale), 1) &&
         by_channel(f, r, CUDA_FOLD_SHIFT, qn_role_at(norm, role.shift), 1) &&
         r->demands->workspace_limit >= (uint64_t)cuda_fold_pitch(f) * 3 * sizeof(float);
}

/* Folds a normalization into three rows of one element per channel. If the chain is only a bias so far, the first row absorbs it. */
static bool fold(cuda_chain *c, const qn_request *r, const qn_node *norm, const cuda_out_dims *dims)
{
  const qn_value *x = &r->value[c->out];
  const bool biased = c->n_ops == 1 && c->steps.n == 1;
  cuda_fold f;
  if (c->fold.channels || !cuda_fold_read(&f, r, norm, c->out, biased ? c->value[0] : -1)) return false;
  if (!biased && (c->steps.n + 3 > CUDA_MAX_STEPS || c->steps.n_operands + 3 > CUDA_MAX_OPERANDS)) return false;
  if (biased) c->steps.n = c->steps.n_operands = 0;
  qn_value row = { .dtype = QN_F32, .rank = x->rank, .align = 16 };
  for (int d = 0; d < QN_MAX_RANK; d++) row.dim[d] = 1;
  row.dim[1] = f.channels, row.stride[1] = 1;
  f.less = c->steps.n_operands;
  cuda_chain_step(c, QN_OP_ADD, add_operand(c, &row, -1, dims), false, 0, 0);
  cuda_chain_step(c, QN_OP_MUL, add_operand(c, &row, -1, dims), false, 0, 0);
  cuda_chain_step(c, QN_OP_ADD, add_operand(c, &row, -1, dims), false, 0, 0);
  c->fold = f;
  return true;
}

/* Adds step k of a program that begins with c->out, all of whose earlier steps are in the chain; false: steps.cuh has none like it. */
static bool add_step(cuda_chain *c, const qn_request *r, const qn_program *p, uint32_t k, const cuda_out_dims *dims)
{
  const qn_program_step *s = &p->step[k];
  qn_program_link link;
  if (qn_program_link_of(p, k, &link) || !takes_on(&r->value[s->value], &r->value[c->out], dims)) return false;
  const int32_t other = qn_program_value(p, link.other);
  if (s->op == QN_OP_BATCH_NORM_INFERENCE) {
    if (!fold(c, r, &r->op[p->first + k], dims)) return false;
  } else if (!known(s->op) || (other >= 0 && !operand_fits(&r->value[other], &r->value[s->value], dims))) {
    return false;
  } else if (s->op != QN_OP_CAST) {       /* which skips an intermediate rounding */
    int operand = -1;
    if (c->steps.n == CUDA_MAX_STEPS || (other >= 0 && (operand = cuda_chain_operand(c, r, other, dims)) < 0)) return false;
    cuda_chain_step(c, s->op, operand, link.reversed, (float)s->alpha, (float)s->beta);
  }
  c->out = s->value;
  c->n_ops = p->first + k + 1;
  return true;
}

void cuda_chain_follow(cuda_chain *c, const qn_request *r, const cuda_out_dims *dims)
{
  qn_program p;
  const char *why;
  const uint32_t n = qn_program_read(&p, r, 1, r->n_ops - 1, c->out, &why);
  for (uint32_t k = 0; k < n && add_step(c, r, &p, k, dims); k++) {}
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
    if (c->value[i] < 0) continue;
    const void *p = ptr[c->value[i]];
    if (c->host[i]) steps->operand[i].scalar = (float)qn_load_f64(p, c->dtype[i]);
    else steps->operand[i].p = p;
  }
}

qn_status cuda_chain_start(cuda_steps *steps, const cuda_chain *c, const qn_launch *launch, void *rows)
{
  const cuda_fold *f = &c->fold;
  cuda_chain_bind(steps, c, launch->ptr);
  if (!f->channels) return QN_OK;
  for (int i = 0; i < 3; i++) steps->operand[f->less + i].p = (float *)rows + i * cuda_fold_pitch(f);
  return cuda_chain_fold(f, launch->ptr, rows, launch->stream);
}

/* An operand with one element for each column (by_row: for each row). */
static bool is_vector(const cuda_operand *o, bool by_row)
{
  if (by_row) return o->stride[0] && !o->stride[1];
  return !o->stride[0] && o->stride[1] == 1;
}

bool cuda_chain_plain(const cuda_chain *c, cuda_plain *plain)
{
  const cuda_steps *s = &c->steps;
  const cuda_operand *o = s->operand;
  cuda_plain p = { .bias = -1, .factor = -1, .added = -1, .any = s->n > 0 };
  int k = 0;
  for (int i = 0; i < s->n && s->step[i].operand >= 0; i++) p.by_row |= is_vector(&o[s->step[i].operand], true);
  if (k < s->n && s->step[k].op == QN_OP_ADD && is_vector(&o[s->step[k].operand], p.by_row)) p.bias = s->step[k++].operand;
  if (k + 1 < s->n && s->step[k].op == QN_OP_MUL && s->step[k + 1].op == QN_OP_ADD) {
    const int by = s->step[k].operand, more = s->step[k + 1].operand;
    if (more == by + 1 && o[by].dtype == QN_F32 && o[more].dtype == QN_F32 && is_vector(&o[by], p.by_row) && is_vector(&o[more], p.by_row))
      p.factor = by, k += 2;
  }
  if (k < s->n && s->step[k].op == QN_OP_ADD && o[s->step[k].operand].stride[0] && o[s->step[k].operand].stride[1] == 1)
    p.added = s->step[k++].operand;
  if (k < s->n && s->step[k].op == QN_OP_RELU) p.relu = 1, k++;
  *plain = p;
  return k == s->n;
}

bool cuda_plain_vectors(const cuda_chain *c, const cuda_plain *p, const qn_request *r, int64_t n)
{
  const int vector[] = { p->bias, p->factor, p->factor < 0 ? -1 : p->factor + 1 };
  for (int i = 0; i < 3; i++) {
    if (vector[i] < 0) continue;
    const cuda_operand *o = &c->steps.operand[vector[i]];
    const int32_t value = c->value[vector[i]];
    if ((value >= 0 && r->value[value].align < 16) || (n | o->stride[2] | o->stride[3]) * qn_kit_bytes(o->dtype) % 16) return false;
  }
  return true;
}

bool cuda_chain_column_relu(const cuda_chain *c, int32_t *column, int32_t *factor, int32_t *relu)
{
  cuda_plain p;
  const bool plain = cuda_chain_plain(c, &p);
  *column = p.bias, *factor = p.factor, *relu = p.relu;
  if (p.bias >= 0 && (c->steps.operand[p.bias].stride[2] || c->steps.operand[p.bias].stride[3])) return false;
  return plain && !p.by_row && p.added < 0 && (p.factor < 0 || c->fold.channels);
}
