/* pointwise_tile.c -- any pointwise DAG in one pass over memory: runs a program (pointwise_tile.h) tile by tile.
 *
 * A tile stays in L1 from load to store. A tensor whose elements are in order and need no conversion is read and written in
 * place. So a single op runs at memory speed, and each fused op costs only cache traffic. Threads take equal stretches
 * of elements; an element's result depends on nothing else. */
#include "kit/pointwise_tile.h"
#include "kit/convert.h"
#include "cpu_ref.h"

/* ---- between memory and registers ------------------------------------------------------------------ */

/* Whether memory holds an element in the register's format. */
static bool same_format(uint32_t dtype, int type)
{
  return dtype == QN_F32 ? type == CPU_F32 : dtype == QN_I32 ? type == CPU_I32 : dtype == QN_F64 || dtype == QN_I64;
}

static void widen(void *y, const void *x, uint32_t dtype, int64_t n)
{
  int32_t *i32 = y;
  switch (dtype) {
  case QN_F64: case QN_I64: memcpy(y, x, (size_t)n * 8); break;
  case QN_I32: memcpy(y, x, (size_t)n * 4); break;
  case QN_I8:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) i32[i] = ((const int8_t *)x)[i];
    break;
  case QN_U8:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) i32[i] = ((const uint8_t *)x)[i];
    break;
  case QN_BOOL:
#pragma omp simd
    for (int64_t i = 0; i < n; i++) i32[i] = ((const uint8_t *)x)[i] != 0;
    break;
  default: row_to_f32(y, x, dtype, n); break;
  }
}

static void narrow(void *y, const void *x, uint32_t dtype, int64_t n)
{
  switch (dtype) {
  case QN_F64: case QN_I64: memcpy(y, x, (size_t)n * 8); break;
  case QN_I32: memcpy(y, x, (size_t)n * 4); break;
  case QN_I8: case QN_U8: case QN_BOOL:   /* already wrapped, saturated or 0 and 1: the low byte */
#pragma omp simd
    for (int64_t i = 0; i < n; i++) ((uint8_t *)y)[i] = (uint8_t)((const int32_t *)x)[i];
    break;
  default: row_from_f32(y, x, dtype, n); break;
  }
}

static void fill(void *y, const void *scalar, uint32_t dtype, uint32_t as, int type, int64_t n)
{
  const double d = qn_load_f64(scalar, dtype);
  int64_t l = qn_load_i64(scalar, dtype);
  if (as == QN_BOOL) l = qn_is_float(dtype) ? d != 0 : l != 0;
  l = qn_min_i64(qn_max_i64(l, qn_least(as)), qn_largest(as));
  switch (type) {
  case CPU_F32: for (int64_t i = 0; i < n; i++) ((float *)y)[i] = (float)d; break;
  case CPU_F64: for (int64_t i = 0; i < n; i++) ((double *)y)[i] = d; break;
  case CPU_I32: for (int64_t i = 0; i < n; i++) ((int32_t *)y)[i] = (int32_t)l; break;
  default:      for (int64_t i = 0; i < n; i++) ((int64_t *)y)[i] = l; break;
  }
}

/* Repeats one element n times, by doubling. */
static void repeat(char *y, int64_t bytes, int64_t n)
{
  for (int64_t done = 1; done < n; done += done)
    memcpy(y + done * bytes, y, (size_t)(qn_min_i64(done, n - done) * bytes));
}

/* ---- stretches of a tensor -------------------------------------------------------------------------- */

/* A tile's elements: rows of the innermost dim, the first one from `column` on. */
typedef struct stretch {
  qn_walk walk;                           /* at the first row */
  int64_t column, inner, n;
} stretch;

static stretch stretch_at(const cpu_program *p, int64_t place, int64_t n)
{
  stretch s = { .inner = p->nest.rank ? p->nest.dim[p->nest.rank - 1] : 1, .n = n };
  s.column = place % s.inner;
  qn_walk_begin(&s.walk, &p->nest, p->nest.rank ? p->nest.rank - 1 : 0, place / s.inner);
  return s;
}

static int64_t inner_stride(const cpu_program *p, int tensor)
{
  return p->nest.rank ? p->nest.stride[tensor][p->nest.rank - 1] : 1;
}

static void load_rows(const cpu_program *p, const stretch *s, const cpu_instruction *code, const char *x, char *y)
{
  const int64_t bytes = qn_kit_bytes(code->dtype), wide = cpu_type_bytes(code->type), stride = inner_stride(p, code->tensor);
  char packed[CPU_TILE_BYTES];
  qn_walk walk = s->walk;
  int64_t column = s->column;
  for (int64_t done = 0; done < s->n; ) {
    const int64_t n = qn_min_i64(s->inner - column, s->n - done);
    const char *row = x + (walk.offset[code->tensor] + column * stride) * bytes;
    if (stride == 1) {
      widen(y + done * wide, row, code->dtype, n);
    } else if (stride == 0) {
      widen(y + done * wide, row, code->dtype, 1);
      repeat(y + done * wide, wide, n);
    } else {
      gather_row(packed, row, bytes, stride, n);
      widen(y + done * wide, packed, code->dtype, n);
    }
    done += n;
    column = 0;
    if (done < s->n) qn_walk_next(&walk);
  }
}

static void store_rows(const cpu_program *p, const stretch *s, const cpu_instruction *code, char *y, const char *x)
{
  const int64_t bytes = qn_kit_bytes(code->dtype), wide = cpu_type_bytes(code->type), stride = inner_stride(p, code->tensor);
  char packed[CPU_TILE_BYTES];
  qn_walk walk = s->walk;
  int64_t column = s->column;
  for (int64_t done = 0; done < s->n; ) {
    const int64_t n = qn_min_i64(s->inner - column, s->n - done);
    char *row = y + (walk.offset[code->tensor] + column * stride) * bytes;
    if (stride == 1) {
      narrow(row, x + done * wide, code->dtype, n);
    } else {
      narrow(packed, x + done * wide, code->dtype, n);
      scatter_row(row, packed, bytes, stride, n);
    }
    done += n;
    column = 0;
    if (done < s->n) qn_walk_next(&walk);
  }
}

/* The address of the tile's elements if they are contiguous, else NULL. */
static char *in_order(const cpu_program *p, const stretch *s, int64_t place, const cpu_instruction *code, void *const *ptr)
{
  char *base = ptr[code->value];
  const int64_t bytes = code->kind == CPU_EVAL ? cpu_type_bytes(code->out_type) : qn_kit_bytes(code->dtype);
  if (p->packed[code->tensor]) return base + place * bytes;
  if (s->column + s->n > s->inner || inner_stride(p, code->tensor) != 1) return NULL;
  return base + (s->walk.offset[code->tensor] + s->column) * bytes;
}

/* ---- one tile ------------------------------------------------------------------------------------------ */

static void run_tile(const cpu_program *p, void *const *ptr, void **r, char *const *own, int64_t place, int64_t n, bool first)
{
  stretch s = { 0 };
  bool walked = p->nest.rank <= 1;        /* if so, packed tensors need no walk */
  for (int32_t t = 0; walked && t < p->nest.n; t++) walked = p->packed[t];
  if (!walked) s = stretch_at(p, place, n);

  for (int32_t i = 0; i < p->n; i++) {
    const cpu_instruction *code = &p->code[i];
    char *memory = code->tensor >= 0 ? in_order(p, &s, place, code, ptr) : NULL;
    switch (code->kind) {
    case CPU_FILL:
      if (first) fill(own[code->out], ptr[code->value], code->dtype, code->op, code->type, n);
      r[code->out] = own[code->out];
      break;
    case CPU_LOAD:
      r[code->out] = own[code->out];
      if (!memory) load_rows(p, &s, code, ptr[code->value], r[code->out]);
      else if (!same_format(code->dtype, code->type))
        widen(r[code->out], memory, code->dtype, n);
      else r[code->out] = memory;
      break;
    case CPU_EVAL:
      if (!memory) memory = own[code->out];
      if (code->type == CPU_F32) CPU_NAME(cpu_eval_f32)(code, r, memory, n);
      else CPU_NAME(cpu_eval_plain)(code, r, memory, n);
      r[code->out] = memory;              /* not earlier: an operand may be in that register */
      break;
    default:
      if (!memory) store_rows(p, &s, code, ptr[code->value], r[code->in[0]]);
      else if (memory != r[code->in[0]]) narrow(memory, r[code->in[0]], code->dtype, n);
      break;
    }
  }
}

void CPU_NAME(cpu_tile_run)(const cpu_program *p, void *const *ptr, const void *row, int64_t first, int64_t n)
{
  _Alignas(64) char memory[CPU_TILE_STACK];
  char *own[CPU_TILE_REGISTERS], *next = memory;
  void *r[CPU_TILE_REGISTERS];
  for (int i = 0; i < CPU_TILE_REGISTERS; i++) {
    own[i] = next;
    if (p->used >> i & 1) next += p->tile_bytes;
  }
  const char *given = row;
  const int64_t given_bytes = p->given >= 0 ? cpu_type_bytes(p->given_type) : 0;
  for (int64_t done = 0; done < n; done += p->tile) {
    if (p->given >= 0) r[p->given] = (void *)(uintptr_t)(given + done * given_bytes);
    run_tile(p, ptr, r, own, first + done, qn_min_i64(p->tile, n - done), done == 0);
  }
}

/* ---- prepare: refuses what the compiler does not take ------------------------------------------------------ */

#ifdef CPU_BASELINE
static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  cpu_program *program = cpu_state(prepared, sizeof *program);
  if (!program) return QN_NO_MEMORY;
  const int taken = cpu_program_make(request, 0, request->n_ops, -1, program, prepared);
  if (taken == 0) {
    cpu_release(prepared);
    return QN_UNSUPPORTED;
  }
  prepared->n_ops = (uint32_t)taken;
  return QN_OK;
}

#endif

/* ---- run ---------------------------------------------------------------------------------------------------- */

CPU_RUNS(cpu_pointwise_tile_run);
qn_status CPU_NAME(cpu_pointwise_tile_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const cpu_program *program = prepared->state;
  const int64_t places = program->places;
  const int threads = cpu_threads(launch, places);
  if (threads == 1) {
    CPU_NAME(cpu_tile_run)(program, launch->ptr, NULL, 0, places);
    return QN_OK;
  }
  const int64_t share = qn_round_up(qn_ceil_div(places, threads), program->tile);
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int64_t first = 0; first < places; first += share)
    CPU_NAME(cpu_tile_run)(program, launch->ptr, NULL, first, qn_min_i64(share, places - first));
  return QN_OK;
}

#ifdef CPU_BASELINE
#define ROW(name_, run_)                                                                                         \
  { .name = name_, .op = QN_FAMILY_POINTWISE | QN_ANCHOR_FAMILY, .class_ = QN_CLASS_TUNED,                        \
    .traits = QN_TRAIT_DETERMINISTIC, .prepare = prepare, .run = run_, .release = cpu_release },
static const qn_engine row[] = { CPU_COPIES(ROW, "tile", cpu_pointwise_tile_run) };
const qn_engine_list cpu_pointwise_tile = { row, sizeof row / sizeof *row };
#endif
