/* gemm_fused.c -- a matmul or convolution with its bias and the pointwise ops that follow (gemm_follow.h), in one pass over y.
 *
 *   y0 = matmul a b bias;  y1 = add y0 residual;  y = relu y1
 *
 * y1 may also be normalization by given statistics. The program reads its other operands itself, broadcast or full. */
#include "conv_gemm.h"
#include "gemm/gemm_follow.h"
#include "matmul/matmul_blocked.h"

typedef struct fused {
  union {
    cpu_matmul matmul;
    cpu_conv   conv;
  } anchor;
  uint32_t    op;                         /* the anchor's */
  cpu_follow  follow;
} fused;

/* ---- prepare ------------------------------------------------------------------------------------ */

/* Whether rows of sums run along consecutive elements of y. */
static bool rows_are_places(const fused *f)
{
  if (f->op == QN_OP_MATMUL) {
    const cpu_matmul *m = &f->anchor.matmul;
    return m->epilogue.y.stride[m->column_dim] == 1 || m->gemm.n == 1;
  }
  const cpu_conv *c = &f->anchor.conv;
  const int32_t axis = c->pixels_in_columns ? c->axis : 1;
  return c->phases == 1 && (c->epilogue.y.stride[axis] == 1 || c->y_is.dim[axis] == 1);
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *node = &request->op[0];
  const int32_t y = node->arg[node->first[node->n_inputs]];
  if (request->n_ops < 2) return qn_refuse(p, "takes an anchor and what follows it", "", "a pointwise op on its output", "one op");
  const cpu_gemm_isa *isa;
  const qn_status status = cpu_gemm_choose(request, p, &isa);
  if (status) return status;
  p->traits &= ~(uint64_t)(QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE);    /* the functions that follow have a copy per instruction set */
  fused *f = cpu_state(p, sizeof *f);
  if (!f) return QN_NO_MEMORY;
  qn_request counted;
  if (!cpu_follow_read(&f->follow, request, y, &counted, p)) {
    cpu_release(p);
    return QN_NO_MEMORY;
  }
  f->op = node->op;
  const int taken = f->follow.taken;
  if (taken > 0) {
    if (f->op != QN_OP_MATMUL) f->anchor.conv.must_follow_y = true;
    p->workspace = f->op == QN_OP_MATMUL ? cpu_matmul_set(&f->anchor.matmul, &counted, isa)
                                            : cpu_conv_set(&f->anchor.conv, &counted, isa);
  }
  const bool in_rows = taken > 0 && rows_are_places(f);
  cpu_host->free((void *)counted.value);
  if (!in_rows) {
    cpu_release(p);
    if (taken == 0) return QN_UNSUPPORTED;                 /* the program has set the refusal */
    return qn_refuse(p, "rows of sums must run along the output's fastest dim", "y", "rows, columns, pixels or channels", "%s",
                     "another dim");
  }
  p->n_ops = 1 + (uint32_t)taken;
  return QN_OK;
}

/* ---- run ------------------------------------------------------------------------------------------ */

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  fused f = *(const fused *)p->state;
  cpu_follow_bind(&f.follow, f.op == QN_OP_MATMUL ? &f.anchor.matmul.epilogue : &f.anchor.conv.epilogue, launch->ptr);
  if (f.op == QN_OP_MATMUL) cpu_matmul_run(&f.anchor.matmul, launch);
  else cpu_conv_run(&f.anchor.conv, launch);
  return QN_OK;
}

static const qn_engine rows[] = {
  {.name = "gemm_fused", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .pattern = &cpu_program_pattern, .prepare = prepare, .run = run, .release = cpu_release},
  {.name = "gemm_fused", .op = QN_OP_CONV_FORWARD, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .pattern = &cpu_program_pattern, .prepare = prepare, .run = run, .release = cpu_release},
  {.name = "gemm_fused", .op = QN_OP_CONV_BACKWARD_DATA, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .pattern = &cpu_program_pattern, .prepare = prepare, .run = run, .release = cpu_release},
};
const qn_engine_list cpu_gemm_fused = {rows, 3};
