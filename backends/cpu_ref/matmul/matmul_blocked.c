/* matmul_blocked.c -- y = alpha a b + beta c + bias by the blocked product of gemm_core.h.
 *
 *   a [..., M, K]   b [..., K, N]   y [..., M, N]
 *
 * Takes every dtype and any strides: blocks of the operands are laid out, and widened, as needed, and a tile of y
 * is rounded once its sum is complete. Used for 16-bit, 8-bit and integer operands, for strides that BLAS
 * cannot express, and where there is no BLAS. If y runs along M, the transpose b' a' is computed instead. */
#include "cpu_ref.h"
#include "matmul_blocked.h"

/* ---- operands ------------------------------------------------------------------------------- */

/* If the other operand has fewer rows, a block is read in place. */
#define WORTH_LAYING_OUT 48

static void batch_index(const cpu_matmul *p, int64_t batch, int64_t *index)
{
  for (int32_t i = p->epilogue.rank - 3; i >= 0; i--) {
    index[i] = batch % p->batch_dim[i];
    batch /= p->batch_dim[i];
  }
}

static const char *at(const cpu_matmul *p, const cpu_matrix *x, int64_t batch, int64_t row, int64_t k)
{
  int64_t index[QN_MAX_RANK], offset = row * x->row + k * x->k;
  batch_index(p, batch, index);
  for (int32_t i = 0; i < p->epilogue.rank - 2; i++) offset += index[i] * x->batch[i];
  return x->base + offset * qn_kit_bytes(x->dtype);
}

static bool lies_in_rows(const cpu_matrix *x)
{
  return x->dtype == QN_F32 || x->dtype == QN_F64;
}

static void left_block(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t k0, int64_t kc,
                       void *buffer, const void **row, int64_t *step)
{
  const cpu_matmul *p = g->user;
  const cpu_matrix *x = &p->left;
  const char *from = at(p, x, batch, i0, k0);
  int64_t distance = x->row * qn_kit_bytes(x->dtype);
  if (lies_in_rows(x) && g->n < WORTH_LAYING_OUT) {
    *step = x->k;
  } else {
    const int64_t ld = cpu_gemm_ld(g->kc, cpu_gemm_row_bytes(g->type));
    cpu_gemm_lay(g->isa, x->dtype, from, x->row, x->k, mc, kc, buffer, ld);
    if (g->type == CPU_GEMM_I16 && kc % 2) for (int64_t i = 0; i < mc; i++) ((int16_t *)buffer)[i * ld + kc] = 0;
    from = buffer;
    distance = ld * (int64_t)cpu_gemm_row_bytes(g->type);
    *step = 1;
  }
  for (int64_t i = 0; i < mc; i++) row[i] = from + i * distance;
}

static const void *right_block(const cpu_gemm *g, int64_t batch, int64_t k0, int64_t kc, int64_t j0, int64_t nc,
                               void *buffer, int64_t *step)
{
  const cpu_matmul *p = g->user;
  const cpu_matrix *x = &p->right;
  const char *from = at(p, x, batch, j0, k0);
  if (lies_in_rows(x) && x->row == 1 && g->m < WORTH_LAYING_OUT && nc % g->isa->type[g->type].nr == 0) {
    *step = x->k;
    return from;
  }
  *step = cpu_gemm_ld(g->nc, cpu_gemm_row_bytes(g->type));
  cpu_gemm_lay(g->isa, x->dtype, from, x->k, x->row, kc, nc, buffer, *step);
  return buffer;
}

static void finish(const cpu_gemm *g, int64_t batch, int64_t i0, int64_t mc, int64_t j0, int64_t nc, void *acc, int64_t ld)
{
  const cpu_matmul *p = g->user;
  const size_t element = g->type == CPU_GEMM_F64 ? 8 : 4;
  int64_t index[QN_MAX_RANK] = {0};
  batch_index(p, batch, index);
  index[p->column_dim] = j0;
  for (int64_t i = 0; i < mc; i++) {
    index[p->row_dim] = i0 + i;
    cpu_epilogue_row(&p->epilogue, index, p->column_dim, nc, (char *)acc + (size_t)(i * ld) * element);
  }
}

/* ---- prepare: takes every problem ------------------------------------------------------------- */

static cpu_matrix matrix_of(const qn_request *request, int32_t value, int32_t row_dim, int32_t k_dim)
{
  const qn_value *v = &request->value[value];
  cpu_matrix x = {.value = value, .dtype = v->dtype, .row = v->stride[row_dim], .k = v->stride[k_dim]};
  for (int32_t i = 0; i < v->rank - 2; i++) x.batch[i] = v->dim[i] == 1 ? 0 : v->stride[i];
  return x;
}

uint64_t cpu_matmul_set(cpu_matmul *own, const qn_request *request, const cpu_gemm_isa *isa)
{
  const qn_node *node = &request->op[0];
  const int32_t a = qn_role(node, QN_ROLE_MATMUL_A), b = qn_role(node, QN_ROLE_MATMUL_B);
  const qn_value *y = &request->value[qn_role(node, QN_ROLE_MATMUL_Y)];
  const int32_t i = y->rank - 2, j = y->rank - 1;
  const bool turned = y->stride[j] != 1 && y->stride[i] == 1;

  own->left = turned ? matrix_of(request, b, j, i) : matrix_of(request, a, i, j);
  own->right = turned ? matrix_of(request, a, i, j) : matrix_of(request, b, j, i);
  own->row_dim = turned ? j : i;
  own->column_dim = turned ? i : j;
  memcpy(own->batch_dim, y->dim, sizeof own->batch_dim);

  cpu_epilogue *e = &own->epilogue;
  e->rank = y->rank;
  e->alpha_at = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_ALPHA), y->rank);
  e->beta_at = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_BETA), y->rank);
  e->c = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_C), y->rank);
  e->bias = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_BIAS), y->rank);
  e->y = cpu_operand_of(request, qn_role(node, QN_ROLE_MATMUL_Y), y->rank);

  cpu_gemm *g = &own->gemm;
  g->isa = e->isa = isa;
  g->type = e->type = cpu_gemm_type(request->value[a].dtype);
  g->batch = 1;
  for (int32_t d = 0; d < i; d++) g->batch *= y->dim[d];
  g->m = y->dim[own->row_dim];
  g->n = y->dim[own->column_dim];
  g->k = request->value[a].dim[j];
  g->a = left_block;
  g->b = right_block;
  g->finish = finish;
  g->one_order = cpu_gemm_one_order(request);
  return cpu_gemm_plan(g, request->demands->threads);
}

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  const cpu_gemm_isa *isa;
  const qn_status status = cpu_gemm_choose(request, p, &isa);
  if (status) return status;
  cpu_matmul m = {0};
  p->workspace = cpu_matmul_set(&m, request, isa);
  return cpu_keep(p, &m, sizeof m);
}

/* ---- run ----------------------------------------------------------------------------------------- */

void cpu_matmul_run(cpu_matmul *own, const qn_launch *launch)
{
  cpu_epilogue_bind(&own->epilogue, launch->ptr);
  own->left.base = launch->ptr[own->left.value];
  own->right.base = launch->ptr[own->right.value];
  own->gemm.user = own;
  if (own->epilogue.alpha == 0) own->gemm.k = 0;           /* never reads a or b */
  cpu_gemm_run(&own->gemm, launch->threads, launch->workspace);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  cpu_matmul own = *(const cpu_matmul *)p->state;
  cpu_matmul_run(&own, launch);
  return QN_OK;
}

static const qn_engine rows[] = {
  {.name = "blocked", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC,
   .variants = cpu_gemm_variants, .prepare = prepare, .run = run, .release = cpu_release},
};
const qn_engine_list cpu_matmul_blocked = {rows, 1};
