/* conv_as_image.c -- convolution of one spatial dim, and of three of which two are one, as one of images, so that every engine for two
 * spatial dims takes it: views of the tensors, and a delegation.
 *
 *   one dim          x [N, C, L] -> [N, C, 1, L]            w [K, C, R] -> [K, C, 1, R]         y like x
 *   one tap in D     x [N, C, D, H, W] -> [N D, C, H, W]    w [K, C, 1, R, S] -> [K, C, R, S]   where N and D continue each other
 *   one in H and W   x [N, C, D, H, W] -> [N, C, D, H W]    w [K, C, R, 1, 1] -> [K, C, R, 1]   where H and W do */
#include "conv_part.h"
#include "engines.h"

/* Dims a and b, the outer first, become dim a. False: their elements do not lie equally far apart. */
static bool merge(qn_value *v, int a, int b)
{
  if (v->dim[a] > 1 && v->dim[b] > 1 && v->stride[a] != v->stride[b] * v->dim[b]) return false;
  if (v->dim[b] > 1) v->stride[a] = v->stride[b];
  v->dim[a] *= v->dim[b];
  return true;
}

static void without(qn_value *v, int dim)
{
  for (int d = dim; d + 1 < v->rank; d++) v->dim[d] = v->dim[d + 1], v->stride[d] = v->stride[d + 1];
  v->rank--;
}

/* One tap along dim d, which moves nothing. */
static bool thin(const qn_conv *c, const qn_value *w, int d)
{
  return w->dim[2 + d] == 1 && c->stride[d] == 1 && !c->pad_before[d] && !c->pad_after[d];
}

/* Geometry of dim `from` as that of dim d; -1: of a dim of one tap. */
static void geometry(qn_conv *c, int d, int from)
{
  c->stride[d] = from < 0 ? 1 : c->stride[from], c->dilation[d] = from < 0 ? 1 : c->dilation[from];
  c->pad_before[d] = from < 0 ? 0 : c->pad_before[from], c->pad_after[d] = from < 0 ? 0 : c->pad_after[from];
}

/* The views of a line: a dim of 1 before it. */
static void line(cuda_conv_part *p)
{
  geometry(&p->attr, 1, 0), geometry(&p->attr, 0, -1);
  for (int i = 0; i < p->n; i++) {
    qn_value *v = &p->value[i];
    if (v->rank != 3) continue;           /* bias */
    v->rank = 4;
    v->dim[3] = v->dim[2], v->stride[3] = v->stride[2];
    v->stride[2] = v->dim[3] * v->stride[3], v->dim[2] = 1;
  }
}

/* The views of a volume's planes, or of its lines; false: its tensors do not lie so. */
static bool merged(const cuda_conv_part *of, int32_t filters, bool planes, cuda_conv_part *p)
{
  for (int i = 0; i < p->n; i++) {
    qn_value *v = &p->value[i];
    *v = of->value[i];
    if (v->rank != 5) continue;
    if (p->role[i] != filters && !(planes ? merge(v, 0, 2) : merge(v, 3, 4))) return false;
    without(v, planes ? 2 : 4);
  }
  if (planes) geometry(&p->attr, 0, 1), geometry(&p->attr, 1, 2);
  else geometry(&p->attr, 1, -1);
  return true;
}

/* The views of a volume; false: there are none. */
static bool volume(cuda_conv_part *p, int32_t filters)
{
  const cuda_conv_part of = *p;
  const qn_value *w = NULL;
  for (int i = 0; i < p->n; i++)
    if (p->role[i] == filters) w = &of.value[i];
  const bool lines = thin(&of.attr, w, 1) && thin(&of.attr, w, 2);
  return (thin(&of.attr, w, 0) && merged(&of, filters, true, p)) || (lines && merged(&of, filters, false, p));
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const int32_t rank = r->value[r->op[0].arg[r->op[0].first[0]]].rank;
  const int32_t filters = r->op[0].op == QN_OP_CONV_BACKWARD_FILTER ? (int32_t)r->op[0].n_inputs : 1;       /* their role */
  if (rank != 3 && rank != 5) return qn_refuse(out, "one or three spatial dims", "x", "1 or 3", "%d", rank - 2);
  cuda_conv_part *p = cuda_state(out, sizeof *p);
  if (!p) return QN_NO_MEMORY;
  cuda_conv_part_begin(r, p);
  if (rank == 3) line(p);
  else if (!volume(p, filters)) {
    cuda_conv_part_release(out);
    return qn_refuse(out, "volumes of one tap along D, whose planes continue each other, or along H and W, whose lines do", "w", "1", "%s",
                     "others");
  }
  const qn_prepared *answer = cuda_conv_part_delegate(r, p, out);
  if (!answer || (rank == 5 && !cuda_conv_part_plain(answer))) {
    cuda_conv_part_release(out);
    return qn_refuse(out, "a tuned engine for two spatial dims, of volumes one that sums by the formula", "x", "what one takes", "%s",
                     "another");
  }
  out->estimate = answer->estimate;
  return QN_OK;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const cuda_conv_part *p = prepared->state;
  void *ptr[CUDA_CONV_ROLES];
  for (int i = 0; i < p->n; i++) ptr[i] = launch->ptr[p->at[i]];
  return cuda_host->part_run(p->part, launch, ptr, launch->workspace, launch->counters);
}

#define ROW(op_) { .name = "as_image", .op = op_, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, \
                   .prepare = prepare, .build = cuda_conv_part_build, .run = run, .release = cuda_conv_part_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_as_image) = { rows, sizeof rows / sizeof *rows };
