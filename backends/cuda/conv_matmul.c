/* conv_matmul.c -- f32 gradient by 1x1 filters as plain products, delegated to matmul.
 *
 *   dw [K][C] = sum over n of dy[n] [K][P] x[n] [P][C]; one product an image, in workspace, added in order
 *
 * Any layout whose H and W merge into one dim; one group, stride 1, no padding. In NCHW both operands already have a layout that
 * Tensor Cores take. (Forward and backward data would need a copy, which took longer than conv_tf32.) */
#include "conv_layout.h"
#include "conv_problem.h"
#include "conv_product.h"
#include "engines.h"

typedef struct state {
  cuda_product product;                   /* first, for cuda_product_release */
  int32_t  x, dy, dw;                     /* value numbers of the request */
  int64_t  images, elements;              /* elements of dw */
  uint64_t scratch;                       /* offset of the product's own workspace */
} state;

static bool one_dim(const qn_value *v) { return v->dim[2] == 1 || v->dim[3] == 1 || v->stride[2] == v->stride[3] * v->dim[3]; }

static int64_t pixel_stride(const qn_value *v) { return v->dim[3] > 1 ? v->stride[3] : v->stride[2]; }

static qn_status check(const cuda_conv_problem *p, qn_prepared *out)
{
  if (p->x->rank != 4) return qn_refuse(out, "two spatial dims", "x", "2", "%d", p->x->rank - 2);
  qn_status status = cuda_conv_wants_f32(p, out);
  if (status) return status;
  if (p->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)p->groups);
  for (int d = 0; d < 2; d++)
    if (p->size[d] != 1 || p->stride[d] != 1 || p->before[d] != 0 || p->in[d] != p->out[d])
      return qn_refuse(out, "filters of 1 by 1, stride 1, no padding", "dw", "1", "%lld", (long long)p->size[d]);
  if (!one_dim(p->x) || !one_dim(p->y))
    return qn_refuse(out, "H and W as one dim", "x", "a stride of H that is W times that of W", "%s", "another");
  if (!qn_is_packed(p->w)) return qn_refuse(out, "layouts", "dw", "packed", "%s", "another");
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem p;
  qn_status status = cuda_conv_problem_read(&p, r, out);
  if (!status) status = check(&p, out);
  if (status) return status;
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  int64_t n = p.x->dim[0], pixels = p.in[0] * p.in[1], c = p.channels, k = p.filters;
  st->x = p.x_at, st->dy = p.y_at, st->dw = p.w_at;
  st->images = n;
  st->elements = k * c;
  st->scratch = (uint64_t)qn_round_up(n * k * c * 4, 256);
  st->product.value[0] = cuda_product_matrix(n, p.y->stride[0], k, p.y->stride[1], pixels, pixel_stride(p.y), p.y->align, false);
  st->product.value[1] = cuda_product_matrix(n, p.x->stride[0], pixels, pixel_stride(p.x), c, p.x->stride[1], p.x->align, false);
  st->product.value[2] = cuda_product_matrix(n, k * c, k, c, c, 1, 16, true);
  if (!cuda_product_prepare(&st->product, r, true)) {
    cuda_product_release(out);
    return qn_refuse(out, "an engine for the products", "", "what a matmul takes", "%s", "another");
  }
  const qn_prepared *answer = r->host->part_answer(st->product.part);
  out->workspace = st->scratch + answer->workspace;
  out->counters = answer->counters;
  if (out->workspace > r->demands->workspace_limit) {
    unsigned long long bytes = out->workspace;
    cuda_product_release(out);
    return qn_refuse(out, "workspace for a product of each image", "", "a limit above it", "%llu bytes", bytes);
  }
  out->math = answer->math;
  out->traits = answer->traits & (QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES);
  out->numerics = answer->numerics;
  out->estimate = answer->estimate ? answer->estimate + 2000 + (double)st->scratch * 2 / 3000 : 0;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  return cuda_host->part_build(((state *)out->state)->product.part);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = p->state;
  char *products = launch->workspace;
  void *ptr[] = { launch->ptr[st->dy], launch->ptr[st->x], products };
  qn_status s = cuda_host->part_run(st->product.part, launch, ptr, products + st->scratch, launch->counters);
  return s ? s : cuda_conv_join(launch->ptr[st->dw], QN_F32, (float *)products, (int)st->images, st->elements, launch->stream);
}

static const qn_engine rows[] = {
  { .name = "matmul", .op = QN_OP_CONV_BACKWARD_FILTER, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES,
    .prepare = prepare, .build = build, .run = run, .release = cuda_product_release },
};
CUDA_ENGINES(conv_matmul) = { rows, sizeof rows / sizeof *rows };
