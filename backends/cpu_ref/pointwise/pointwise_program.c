/* pointwise_program.c -- compiles a region's pointwise ops, read as a program (quern/program.h), to loads, evaluations and stores on
 * registers (pointwise_tile.h).
 *
 * Registers are allocated in op order and freed after the last use, so a long chain needs two or three; a scalar's is
 * filled before the first tile and kept. An input is loaded just before its first use. (Core lets an output take an input's
 * memory only if no later op reads it.) An intermediate keeps the precision of its computing type; only a cast rounds at once. */
#include <config.h>
#include <quern/program.h>
#include "kit/pointwise_tile.h"

static const uint32_t norms[] = { QN_OP_BATCH_NORM_INFERENCE, 0 };
const qn_pattern cpu_program_pattern = { .struct_size = sizeof cpu_program_pattern, .after = norms };

/* ---- contents of registers ------------------------------------------------------------------ */

typedef struct entry {
  int32_t  operand, reg, last;            /* operand: of the program's; last: the last step that uses it */
  int      type;
  uint32_t dtype;                         /* for a scalar: the computing dtype that it is converted to; else 0 */
} entry;

typedef struct compiler {
  const qn_request *request;
  const qn_program *from;
  cpu_program *program;
  int32_t n_entries;
  uint32_t in_use, used, for_good;        /* registers as masks: in use now, ever used, held by scalars */
  entry held[CPU_MAX_INSTRUCTIONS + 1];
  const char *why;
} compiler;

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

/* Frees the registers whose values no step after that uses. */
static void release_registers(compiler *c, int32_t step)
{
  uint32_t wanted = c->for_good;
  int32_t kept = 0;
  for (int32_t i = 0; i < c->n_entries; i++)
    if (c->held[i].last > step || c->for_good >> c->held[i].reg & 1) {
      wanted |= 1u << c->held[i].reg;
      c->held[kept++] = c->held[i];
    }
  c->n_entries = kept;
  c->in_use = wanted;
}

static void hold(compiler *c, int operand, int type, int32_t reg)
{
  c->held[c->n_entries++] = (entry){ operand, reg, qn_program_last(c->from, operand), type, 0 };
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

/* ---- one step -------------------------------------------------------------------------------- */

static int32_t load(compiler *c, int operand, uint32_t dtype)
{
  const qn_program_input *x = &c->from->input[~operand];
  const int type = cpu_type_of(dtype);
  const bool single = qn_elements(&c->request->value[x->value]) == 1;
  if (!single && cpu_type_of(x->dtype) != type) {
    c->why = "tensors of these dtypes do not compute together here";
    return -1;
  }
  const int32_t reg = take_register(c, single), tensor = single ? -1 : tensor_of(c, x->value);
  cpu_instruction *code = reg < 0 || (!single && tensor < 0) ? NULL : emit(c, single ? CPU_FILL : CPU_LOAD, x->value);
  if (!code) return -1;
  code->out = (int16_t)reg;
  code->type = code->out_type = (int16_t)type;
  code->tensor = (int16_t)tensor;
  hold(c, operand, type, reg);
  if (single) c->held[c->n_entries - 1].dtype = code->op = dtype;
  return reg;
}

static int32_t operand_in(compiler *c, int operand, uint32_t dtype)
{
  for (int32_t i = 0; i < c->n_entries; i++) {
    const entry *held = &c->held[i];
    if (held->operand == operand && held->type == cpu_type_of(dtype) && (held->dtype == 0 || held->dtype == dtype)) return held->reg;
  }
  if (operand < 0 && c->from->input[~operand].kind != QN_INPUT_GIVEN) return load(c, operand, dtype);
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

/* Arithmetic of narrow integers is wrapped at once. */
static bool wraps(uint32_t op)
{
  return op == QN_OP_ADD || op == QN_OP_SUB || op == QN_OP_MUL || op == QN_OP_NEG || op == QN_OP_ABS || cpu_is_listed_integer(op);
}

static bool known(const cpu_instruction *code)
{
  return code->type == CPU_F32 ? cpu_eval_f32(code, NULL, NULL, 0) : cpu_eval_plain(code, NULL, NULL, 0);
}

/* Whether an output takes its memory, which its register may be: a value used later must be copied. */
static bool is_overwritten(const compiler *c, int32_t value)
{
  for (uint32_t v = 0; v < c->request->n_values; v++)
    if (c->request->value[v].over == value) return true;
  return false;
}

/* (x - mean) / sqrt(var + eps) scale + shift, in one register. */
static bool compile_norm(compiler *c, int32_t k)
{
  static const uint32_t op[QN_PROGRAM_OPERANDS] = { 0, QN_OP_SUB, CPU_OVER_ROOT, QN_OP_MUL, QN_OP_ADD };
  const qn_program_step *s = &c->from->step[k];
  int32_t in[QN_PROGRAM_OPERANDS] = { 0 }, now = 0;
  if (cpu_type_of(s->in) != CPU_F32) {
    c->why = "normalization of f64";
    return false;
  }
  for (int i = 0; i < QN_PROGRAM_OPERANDS && now >= 0; i++)
    if (s->operand[i] != QN_NO_OPERAND) now = in[i] = operand_in(c, s->operand[i], QN_F32);
  const int32_t out = now < 0 ? -1 : take_register(c, false);
  if (out < 0) return false;
  now = in[0];
  for (int i = 1; i < QN_PROGRAM_OPERANDS; i++) {
    if (s->operand[i] == QN_NO_OPERAND) continue;
    cpu_instruction *code = emit(c, CPU_EVAL, -1);
    if (!code) return false;
    code->op = op[i];
    code->type = code->out_type = CPU_F32;
    code->in[0] = (int16_t)now;
    code->in[1] = (int16_t)in[i];
    code->out = (int16_t)out;
    code->alpha = s->alpha;
    now = out;
  }
  hold(c, k, CPU_F32, out);
  if (s->write && !store(c, s->value, CPU_F32, out, NULL)) return false;
  release_registers(c, k);
  return true;
}

static bool compile_step(compiler *c, int32_t k)
{
  const qn_program_step *s = &c->from->step[k];
  if (s->op == QN_OP_BATCH_NORM_INFERENCE) return compile_norm(c, k);
  const int type = cpu_type_of(s->in), out_type = cpu_type_of(s->to);

  int32_t in[3] = { -1, -1, -1 };
  for (int i = 0; i < 3 && s->operand[i] != QN_NO_OPERAND; i++) {
    in[i] = operand_in(c, s->operand[i], s->op == QN_OP_SELECT && i == 0 ? (uint32_t)QN_BOOL : s->in);
    if (in[i] < 0) return false;
  }

  /* a no-op unless the format is narrower */
  if (s->op == QN_OP_CAST && type == out_type && !is_overwritten(c, qn_program_value(c->from, s->operand[0]))) {
    const bool fits = qn_program_dtype(c->from, s->operand[0]) == s->to || qn_kit_bytes(s->to) == cpu_type_bytes(type);
    if (fits || (qn_is_float(s->to) && s->last < 0)) {
      hold(c, k, type, in[0]);
      if (s->write && !store(c, s->value, type, in[0], NULL)) return false;
      release_registers(c, k);
      return true;
    }
  }

  cpu_instruction *code = emit(c, CPU_EVAL, -1);
  if (!code) return false;
  code->op = s->op;
  code->type = (int16_t)type;
  code->out_type = (int16_t)out_type;
  for (int i = 0; i < 3; i++) code->in[i] = (int16_t)in[i];
  if (s->op == QN_OP_CAST || (wraps(s->op) && qn_is_integer(s->to))) code->dtype = s->to;
  code->alpha = s->alpha;
  code->beta = s->beta;
  if (!known(code)) {
    c->why = "a function that is not in the table for this type of computation";
    return false;
  }

  /* an operand last used here may give up its register, if the elements are equally wide */
  const bool lends = cpu_type_bytes(type) == cpu_type_bytes(out_type) && s->op != QN_OP_SELECT;
  if (lends) release_registers(c, k);
  const int32_t out = take_register(c, false);
  if (out < 0) return false;
  code->out = (int16_t)out;
  hold(c, k, out_type, out);
  if (s->write && !store(c, s->value, out_type, out, code)) return false;
  release_registers(c, k);
  return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Returns how many of the steps were compiled. */
static uint32_t compile(compiler *c, const qn_value *lead)
{
  cpu_program *p = c->program;
  const qn_program_input *x = c->from->n_inputs && c->from->input[0].kind == QN_INPUT_GIVEN ? &c->from->input[0] : NULL;
  p->n = 0;
  p->given = p->given_type = -1;
  c->n_entries = 0;
  c->in_use = c->used = c->for_good = 0;
  qn_nest_begin(&p->nest, lead);
  if (x) {
    const int type = cpu_type_of(x->dtype);
    p->given = take_register(c, false);
    p->given_type = type;
    hold(c, ~0, type, p->given);
    if (x->write && !store(c, x->value, type, p->given, NULL)) return 0;
  }
  for (uint32_t k = 0; k < c->from->n; k++)
    if (!compile_step(c, (int32_t)k)) return k;
  return c->from->n;
}

int cpu_program_make(const qn_request *request, uint32_t first, uint32_t n, int32_t given, cpu_program *program,
                     qn_prepared *refusal)
{
  qn_program from;
  compiler c = { .request = request, .from = &from, .program = program, .why = "" };
  if (n == 0) return 0;
  n = qn_program_read(&from, request, first, n, given, &c.why);
  const qn_value *lead = n ? &request->value[given >= 0 ? given : from.step[0].value] : NULL;
  for (uint32_t done; from.n > 0 && (done = compile(&c, lead)) < from.n; ) qn_program_cut(&from, request, done);
  if (from.n == 0) {
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
  return (int)from.n;
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
