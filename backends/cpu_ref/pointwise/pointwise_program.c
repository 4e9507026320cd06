/* pointwise_program.c -- compiles a region's pointwise ops to a program of loads, evaluations and stores (pointwise_tile.h).
 *
 * Registers are allocated in op order and freed after the last use, so a long chain needs two or three; a scalar's is
 * filled before the first tile and kept. An input is loaded just before its first use. (Core lets an output take an input's
 * memory only if no later op reads it.) An intermediate keeps the precision of its computing type; only a cast rounds at once. */
#include <config.h>
#include "kit/pointwise_tile.h"

static const uint32_t norms[] = { QN_OP_BATCH_NORM_INFERENCE, 0 };
const qn_pattern cpu_program_pattern = { .struct_size = sizeof cpu_program_pattern, .after = norms };

/* ---- contents of registers ------------------------------------------------------------------ */

typedef struct entry {
  int32_t  value, reg, last;              /* last: the last op that uses it */
  int      type;
  uint32_t dtype;                         /* for a scalar: the computing dtype that it is converted to; else 0 */
} entry;

typedef struct compiler {
  const qn_request *request;
  cpu_program *program;
  uint32_t first, n;                      /* the ops to take */
  int32_t lead, n_entries;
  uint32_t in_use, used, for_good;        /* registers as masks: in use now, ever used, held by scalars */
  entry held[CPU_MAX_INSTRUCTIONS + 1];
  const char *why;
} compiler;

static const qn_node *node_at(const compiler *c, uint32_t i) { return &c->request->op[c->first + i]; }

static bool fail(compiler *c, const char *why)
{
  c->why = why;
  return false;
}

static int32_t last_use(const compiler *c, int32_t value)
{
  for (int32_t i = (int32_t)c->n - 1; i >= 0; i--) {
    const qn_node *node = node_at(c, (uint32_t)i);
    for (int32_t k = 0; k < node->first[node->n_inputs]; k++)
      if (node->arg[k] == value) return i;
  }
  return -1;
}

/* For good: one that has never held anything else. */
static int32_t take_register(compiler *c, bool for_good)
{
  for (int32_t i = 0; i < CPU_TILE_REGISTERS; i++) {
    const int32_t r = for_good ? CPU_TILE_REGISTERS - 1 - i : i;
    if ((for_good ? c->used : c->in_use) >> r & 1) continue;
    c->in_use |= 1u << r;
    c->used |= 1u << r;
    if (for_good) c->for_good |= 1u << r;
    return r;
  }
  c->why = "the ops keep more values at once than there are tiles for";
  return -1;
}

/* Frees the registers whose values no op after `op` uses. */
static void release_registers(compiler *c, int32_t op)
{
  uint32_t wanted = c->for_good;
  int32_t kept = 0;
  for (int32_t i = 0; i < c->n_entries; i++)
    if (c->held[i].last > op || c->for_good >> c->held[i].reg & 1) {
      wanted |= 1u << c->held[i].reg;
      c->held[kept++] = c->held[i];
    }
  c->n_entries = kept;
  c->in_use = wanted;
}

static void hold(compiler *c, int32_t value, int type, int32_t reg)
{
  c->held[c->n_entries++] = (entry){ value, reg, last_use(c, value), type, 0 };
}

static cpu_instruction *emit(compiler *c, uint32_t kind, int32_t value)
{
  if (c->program->n == CPU_MAX_INSTRUCTIONS) {
    c->why = "more ops than one program holds";
    return NULL;
  }
  cpu_instruction *code = &c->program->code[c->program->n++];
  *code = (cpu_instruction){ .kind = kind, .value = value, .tensor = -1, .out = -1, .in = { -1, -1, -1 } };
  if (value >= 0) code->dtype = c->request->value[value].dtype;
  return code;
}

/* The value's tensor index in the nest; added if new. */
static int32_t tensor_of(compiler *c, int32_t value)
{
  for (int32_t i = 0; i < c->program->n; i++)
    if (c->program->code[i].value == value && c->program->code[i].tensor >= 0) return c->program->code[i].tensor;
  const int32_t tensor = qn_nest_add(&c->program->nest, &c->request->value[value]);
  if (tensor < 0) c->why = "more tensors than one program reads and writes";
  return tensor;
}

/* ---- computing types ------------------------------------------------------------------------- */

int cpu_type_of(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64: return CPU_F64;
  case QN_I64: return CPU_I64;
  case QN_I8: case QN_U8: case QN_BOOL: case QN_I32: return CPU_I32;
  default: return CPU_F32;
  }
}

/* The dtype in which an op computes: its tensors'; scalars adapt to it, and if all operands are scalars to the result. */
static uint32_t computation_dtype(const compiler *c, const qn_node *node)
{
  const qn_value *value = c->request->value, *y = &value[node->arg[node->first[node->n_inputs]]];
  uint32_t widest = QN_DTYPE_NONE;
  for (int32_t k = node->op == QN_OP_SELECT; k < node->first[node->n_inputs]; k++) {
    const qn_value *x = &value[node->arg[k]];
    if (x->rank > 0) return x->dtype;
    if (widest == QN_DTYPE_NONE || x->dtype == QN_F64 || !qn_is_float(widest)) widest = x->dtype;
  }
  return y->dtype == QN_BOOL || node->op == QN_OP_CAST ? widest : y->dtype;
}

/* ---- one op ---------------------------------------------------------------------------------- */

static int32_t load(compiler *c, int32_t value, uint32_t dtype)
{
  const qn_value *v = &c->request->value[value];
  const int type = cpu_type_of(dtype);
  const bool single = qn_elements(v) == 1;
  if (!single && cpu_type_of(v->dtype) != type) {
    c->why = "tensors of these dtypes do not compute together here";
    return -1;
  }
  const int32_t reg = take_register(c, single), tensor = single ? -1 : tensor_of(c, value);
  cpu_instruction *code = reg < 0 || (!single && tensor < 0) ? NULL : emit(c, single ? CPU_FILL : CPU_LOAD, value);
  if (!code) return -1;
  code->out = (int16_t)reg;
  code->type = code->out_type = (int16_t)type;
  code->tensor = (int16_t)tensor;
  hold(c, value, type, reg);
  if (single) c->held[c->n_entries - 1].dtype = code->op = dtype;
  return reg;
}

static int32_t operand(compiler *c, int32_t value, uint32_t dtype)
{
  bool made_here = false;
  for (int32_t i = 0; i < c->n_entries; i++) {
    const entry *held = &c->held[i];
    if (held->value != value) continue;
    if (held->type == cpu_type_of(dtype) && (held->dtype == 0 || held->dtype == dtype)) return held->reg;
    made_here |= c->request->value[value].producer >= 0;
  }
  if (!made_here) return load(c, value, dtype);
  c->why = "a scalar made by one op is used in another type of computation";
  return -1;
}

static bool store(compiler *c, int32_t value, int type, int32_t reg, cpu_instruction *eval)
{
  const int32_t tensor = tensor_of(c, value);
  cpu_instruction *code = tensor < 0 ? NULL : emit(c, CPU_STORE, value);
  if (!code) return false;
  code->in[0] = (int16_t)reg;
  code->type = (int16_t)type;
  code->tensor = (int16_t)tensor;
  if (eval && code->dtype != QN_BOOL && qn_kit_bytes(code->dtype) == cpu_type_bytes(type)) {
    eval->tensor = (int16_t)tensor;       /* where the layout allows the op writes to memory directly, and the store is skipped */
    eval->value = value;
  }
  return true;
}

static bool reads(const qn_node *node, int32_t value)
{
  for (int32_t k = 0; k < node->first[node->n_inputs]; k++)
    if (node->arg[k] == value) return true;
  return false;
}

/* Arithmetic of narrow integers is wrapped at once. */
static bool wraps(uint32_t op)
{
  return op == QN_OP_ADD || op == QN_OP_SUB || op == QN_OP_MUL || op == QN_OP_NEG || op == QN_OP_ABS || cpu_is_listed_integer(op);
}

static bool known(const cpu_instruction *code)
{
  return code->type == CPU_F32 ? cpu_eval_f32(code, NULL, NULL, 0) : cpu_eval_plain(code, NULL, NULL, 0);
}

static bool escapes(const compiler *c, int32_t value)
{
  const qn_value *v = &c->request->value[value];
  return v->flags & QN_VALUE_ESCAPE || v->last_user >= (int32_t)(c->first + c->n);
}

/* Whether an output takes its memory, which its register may be: a value used later must be copied. */
static bool is_overwritten(const compiler *c, int32_t value)
{
  for (uint32_t v = 0; v < c->request->n_values; v++)
    if (c->request->value[v].over == value) return true;
  return false;
}

/* (x - mean) / sqrt(var + eps) scale + shift, in one register. */
static bool compile_norm(compiler *c, uint32_t i)
{
  const qn_node *node = node_at(c, i);
  const qn_norm *norm = node->attr;
  const qn_norm_roles role = qn_norm_roles_of(node->op);
  const struct { int32_t value; uint32_t op; } part[] = {
    { qn_role_at(node, role.mean), QN_OP_SUB }, { qn_role_at(node, role.var), CPU_OVER_ROOT },
    { qn_role_at(node, role.scale), QN_OP_MUL }, { qn_role_at(node, role.shift), QN_OP_ADD } };
  const int32_t x = qn_role_at(node, role.x), y = qn_role_at(node, role.y);
  int32_t in[4];
  if (!qn_same_dims(&c->request->value[y], &c->request->value[c->lead])) return fail(c, "an output of other dims than the first");
  if (cpu_type_of(c->request->value[x].dtype) != CPU_F32) return fail(c, "normalization of f64");
  int32_t now = operand(c, x, QN_F32);
  for (int k = 0; k < 4 && now >= 0; k++)
    if (part[k].value >= 0 && (in[k] = operand(c, part[k].value, QN_F32)) < 0) now = -1;
  const int32_t out = now < 0 ? -1 : take_register(c, false);
  if (out < 0) return false;
  for (int k = 0; k < 4; k++) {
    if (part[k].value < 0) continue;
    cpu_instruction *code = emit(c, CPU_EVAL, -1);
    if (!code) return false;
    code->op = part[k].op;
    code->type = code->out_type = CPU_F32;
    code->in[0] = (int16_t)now;
    code->in[1] = (int16_t)in[k];
    code->out = (int16_t)out;
    code->alpha = norm->eps;
    now = out;
  }
  hold(c, y, CPU_F32, out);
  if (escapes(c, y) && !store(c, y, CPU_F32, out, NULL)) return false;
  release_registers(c, (int32_t)i);
  return true;
}

static bool compile_op(compiler *c, uint32_t i)
{
  const qn_node *node = node_at(c, i);
  const qn_value *value = c->request->value;
  if (node->op == QN_OP_BATCH_NORM_INFERENCE) return compile_norm(c, i);
  if (node->family != QN_FAMILY_POINTWISE) return fail(c, "an op that is not pointwise");
  const int32_t y = node->arg[node->first[node->n_inputs]];
  if (!qn_same_dims(&value[y], &value[c->lead])) return fail(c, "an output of other dims than the first");
  if (c->first > 0 && reads(&c->request->op[0], y)) return fail(c, "an op that the anchor reads");
  const uint32_t dtype = computation_dtype(c, node);
  const int type = cpu_type_of(dtype), out_type = cpu_type_of(value[y].dtype);
  const bool used = last_use(c, y) >= 0;

  int32_t in[3] = { -1, -1, -1 };
  const int32_t n_in = node->first[node->n_inputs];
  if (n_in > 3) return fail(c, "an op of more than three operands");
  for (int32_t k = 0; k < n_in; k++) {
    in[k] = operand(c, node->arg[k], node->op == QN_OP_SELECT && k == 0 ? (uint32_t)QN_BOOL : dtype);
    if (in[k] < 0) return false;
  }

  /* a no-op unless the format is narrower */
  if (node->op == QN_OP_CAST && type == out_type && !is_overwritten(c, node->arg[0])) {
    const uint32_t from = value[node->arg[0]].dtype;
    const bool fits = from == value[y].dtype || qn_kit_bytes(value[y].dtype) == cpu_type_bytes(type);
    if (fits || (qn_is_float(value[y].dtype) && !used)) {
      hold(c, y, type, in[0]);
      if (escapes(c, y) && !store(c, y, type, in[0], NULL)) return false;
      release_registers(c, (int32_t)i);
      return true;
    }
  }

  cpu_instruction *code = emit(c, CPU_EVAL, -1);
  if (!code) return false;
  code->op = node->op;
  code->type = (int16_t)type;
  code->out_type = (int16_t)out_type;
  for (int k = 0; k < 3; k++) code->in[k] = (int16_t)in[k];
  if (node->op == QN_OP_CAST || (wraps(node->op) && qn_is_integer(value[y].dtype))) code->dtype = value[y].dtype;
  if (node->attr) {
    const qn_pointwise *attr = node->attr;
    code->alpha = attr->alpha;
    code->beta = attr->beta;
  }
  if (!known(code)) return fail(c, "a function that is not in the table for this type of computation");

  /* an operand last used here may give up its register, if the elements are equally wide */
  const bool lends = cpu_type_bytes(type) == cpu_type_bytes(out_type) && node->op != QN_OP_SELECT;
  if (lends) release_registers(c, (int32_t)i);
  const int32_t out = take_register(c, false);
  if (out < 0) return false;
  code->out = (int16_t)out;
  hold(c, y, out_type, out);
  if (escapes(c, y) && !store(c, y, out_type, out, code)) return false;
  release_registers(c, (int32_t)i);
  return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Returns how many of the c->n ops were compiled. */
static uint32_t compile(compiler *c, int32_t given)
{
  cpu_program *p = c->program;
  p->n = 0;
  p->given = p->given_type = -1;
  c->n_entries = 0;
  c->in_use = c->used = c->for_good = 0;
  qn_nest_begin(&p->nest, &c->request->value[c->lead]);
  if (given >= 0) {
    const int type = cpu_type_of(c->request->value[given].dtype);
    p->given = take_register(c, false);
    p->given_type = type;
    hold(c, given, type, p->given);
    if (escapes(c, given) && !store(c, given, type, p->given, NULL)) return 0;
  }
  for (uint32_t i = 0; i < c->n; i++)
    if (!compile_op(c, i)) return i;
  return c->n;
}

int cpu_program_make(const qn_request *request, uint32_t first, uint32_t n, int32_t given, cpu_program *program,
                     qn_prepared *refusal)
{
  compiler c = { .request = request, .program = program, .first = first, .n = n, .why = "" };
  if (n == 0) return 0;
  const qn_node *anchor = &request->op[first];
  c.lead = given >= 0 ? given : anchor->arg[anchor->first[anchor->n_inputs]];
  for (uint32_t done; c.n > 0 && (done = compile(&c, given)) < c.n; ) c.n = done;
  if (c.n == 0) {
    qn_refuse(refusal, c.why, "", "", "%s", "");
    return 0;
  }

  qn_nest *nest = &program->nest;
  qn_nest_simplify(nest);
  program->places = 1;
  for (int32_t i = 0; i < nest->rank; i++) program->places *= nest->dim[i];
  for (int32_t t = 0; t < nest->n; t++) {
    int64_t expected = 1;
    program->packed[t] = true;
    for (int32_t i = nest->rank - 1; i >= 0; i--) {
      program->packed[t] &= nest->stride[t][i] == expected;
      expected *= nest->dim[i];
    }
  }
  int64_t widest = 4;
  for (int32_t i = 0; i < program->n; i++) {
    const cpu_instruction *code = &program->code[i];
    widest = qn_max_i64(widest, cpu_type_bytes(code->type));
    if (code->kind == CPU_EVAL) widest = qn_max_i64(widest, cpu_type_bytes(code->out_type));
  }
  program->used = c.used;
  program->tile_bytes = qn_min_i64(CPU_TILE_BYTES, CPU_TILE_STACK / qn_max_i64(1, __builtin_popcount(c.used)) & ~(int64_t)255);
  program->tile = program->tile_bytes / widest;
  return (int)c.n;
}

void cpu_count_places(qn_value *v)
{
  int64_t stride[QN_MAX_RANK] = {0}, places = 1;
  bool done[QN_MAX_RANK] = {false};
  for (;;) {
    int32_t next = -1;                    /* the fastest dim left; among equals the last */
    for (int32_t d = v->rank - 1; d >= 0; d--)
      if (!done[d] && v->dim[d] > 1 && (next < 0 || v->stride[d] < v->stride[next])) next = d;
    if (next < 0) break;
    done[next] = true;
    stride[next] = places;
    places *= v->dim[next];
  }
  memcpy(v->stride, stride, sizeof stride);
}

cpu_tile_fn *cpu_tile_runner(const qn_device *device)
{
#ifdef QN_AVX512
  if (device->features & QN_CPU_AVX512) return cpu_tile_run_avx512;
#endif
#ifdef QN_AVX2
  if (device->features & QN_CPU_AVX2) return cpu_tile_run_avx2;
#endif
  (void)device;
  return cpu_tile_run;
}
