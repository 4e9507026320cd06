/* conv_follow.c -- the ops that follow a convolution as a region behind its product (conv_follow.h). */
#include "conv_follow.h"
#include <quern/program.h>

/* v, of y's dims or broadcast to them, as the product's result lies; false: it does not. */
static bool look(const cuda_follow_view *w, const qn_value *v, bool whole, qn_value *to, int64_t *image, int64_t *row)
{
  const int64_t bytes = qn_kit_bytes(v->dtype);
  *to = *v;
  *image = *row = 0;
  if (v->rank == 0) return !whole;
  if (v->rank != w->rank) return false;
  int64_t n = v->dim[0] > 1 ? v->stride[0] : 0, channel = v->dim[1] > 1 ? v->stride[1] : 0, step = 0, extent = 1, outer = 0;
  bool flat = !whole;
  for (int d = 2; d < v->rank; d++) flat = flat && v->dim[d] == 1;
  for (int d = 2; d >= 0 && !flat; d--) {
    const int at = v->rank - 3 + d;
    if (w->out[d] == 1) continue;
    if (at < 2 || v->dim[at] != w->out[d]) return false;
    if (extent == 1) step = v->stride[at];
    else if (v->stride[at] != step * extent) return false;
    extent *= w->out[d];
    if (d == w->outer) outer = v->stride[at];
  }
  if (w->windows == 1) step = n;          /* of one window an image: the images are the rows */
  if (w->merged && w->rows > w->windows && n != step * w->windows) return false;
  const bool many = whole || step;
  to->rank = 4;
  to->dim[0] = whole || n ? w->batch : 1, to->dim[1] = whole || channel ? w->groups : 1;
  to->dim[2] = many ? w->rows : 1, to->dim[3] = whole || channel ? w->filters : 1;
  to->stride[0] = n, to->stride[1] = w->filters * channel, to->stride[2] = step, to->stride[3] = channel;
  for (int d = 4; d < QN_MAX_RANK; d++) to->dim[d] = 1, to->stride[d] = 0;
  *image = n * bytes, *row = outer * bytes;
  if (w->by_image) to->align = cuda_aligned(to->align, *image);
  if (w->by_row) to->align = cuda_aligned(to->align, *row);
  return true;
}

/* Adds a value; -1: no room, or it does not lie so. */
static int32_t add_value(cuda_follow *f, const qn_request *r, const cuda_follow_view *w, int32_t at, bool whole)
{
  const int32_t k = (int32_t)f->n_values;
  if (k == CUDA_FOLLOW_VALUES || !look(w, &r->value[at], whole, &f->value[k], &f->image[k], &f->row[k])) return -1;
  f->value[k].over = -1;
  for (int32_t i = 0; i < k && whole && r->value[at].over >= 0; i++)
    if (f->at[i] == r->value[at].over) f->value[k].over = i;
  if (!whole) f->value[k].producer = -1, f->value[k].last_user = (int32_t)f->n_nodes;
  f->at[k] = at;
  f->n_values++;
  return k;
}

/* Adds a node of one or two inputs; its output is `y`. */
static void add_node(cuda_follow *f, uint32_t op, const void *attr, int32_t a, int32_t b, int32_t y)
{
  const uint32_t k = f->n_nodes++, inputs = b < 0 ? 1 : 2;
  const int32_t first[] = { 0, 1, 2, 3 }, arg[] = { a, inputs == 2 ? b : y, y };
  memcpy(f->first[k], first, sizeof first);
  memcpy(f->arg[k], arg, sizeof arg);
  f->node[k] = (qn_node){ .op = op, .family = QN_FAMILY_POINTWISE, .attr = attr, .n_roles = inputs + 1, .n_inputs = inputs,
                          .first = f->first[k], .arg = f->arg[k] };
  f->value[y].producer = (int32_t)k;
  f->ops[k] = 0;
}

/* The normalization in three steps on rows of the fold; the result of the last is y. */
static bool add_norm(cuda_follow *f, const cuda_follow_view *w, int32_t now, int32_t y)
{
  static const uint32_t op[] = { QN_OP_ADD, QN_OP_MUL, QN_OP_ADD };
  static const qn_pointwise none = { .struct_size = sizeof none };
  if (f->n_nodes + 3 > CUDA_FOLLOW_NODES || f->n_values + 5 > CUDA_FOLLOW_VALUES) return false;
  for (int i = 0; i < 3; i++) {
    const int32_t row = (int32_t)f->n_values++, to = i < 2 ? (int32_t)f->n_values++ : y;
    f->value[row] = (qn_value){ .dtype = QN_F32, .rank = 4, .dim = { 1, w->groups, 1, w->filters, 1, 1, 1, 1 },
                                .stride = { 0, w->filters, 0, 1 }, .align = 16, .producer = -1, .last_user = (int32_t)f->n_nodes,
                                .over = -1 };
    f->at[row] = CUDA_FOLLOW_ROW + i;
    f->image[row] = f->row[row] = 0;
    if (i < 2) {
      f->value[to] = f->value[y];
      f->at[to] = CUDA_FOLLOW_NONE;
      f->value[to].flags = 0;
      f->value[to].last_user = (int32_t)f->n_nodes + 1;
    }
    f->value[now].last_user = (int32_t)f->n_nodes;
    add_node(f, op[i], &none, now, row, to);
    now = to;
  }
  return true;
}

/* Adds step k of the program behind the result, whose number here is *here. */
static bool add_step(cuda_follow *f, const qn_request *r, const cuda_follow_view *w, const qn_program *p, uint32_t k, int32_t *here,
                     int32_t bias)
{
  const qn_program_step *s = &p->step[k];
  const qn_node *op = &r->op[p->first + k];
  qn_program_link link;
  int32_t other = -1;
  if (qn_program_link_of(p, k, &link)) return false;
  if (link.other != QN_NO_OPERAND && (other = add_value(f, r, w, qn_program_value(p, link.other), false)) < 0) return false;
  const int32_t to = add_value(f, r, w, s->value, true);
  if (to < 0) return false;
  if (s->op == QN_OP_BATCH_NORM_INFERENCE) {
    if (f->fold.channels || !cuda_fold_read(&f->fold, r, op, qn_program_value(p, s->operand[0]), k == 0 ? bias : -1)) return false;
    if (!add_norm(f, w, *here, to)) return false;
  } else {
    if (f->n_nodes == CUDA_FOLLOW_NODES) return false;
    f->value[*here].last_user = (int32_t)f->n_nodes;
    add_node(f, s->op, op->attr, link.reversed ? other : *here, link.reversed ? *here : other, to);
  }
  f->ops[f->n_nodes - 1] = p->first + k + 1;
  f->value[to].last_user = -1;            /* unless another follows */
  f->value[to].flags |= QN_VALUE_ESCAPE;
  *here = to;
  return true;
}

void cuda_follow_add(cuda_follow *f, const qn_request *r, const cuda_follow_view *view, int32_t y, int32_t y_here, int32_t bias,
                     uint32_t most)
{
  qn_program p;
  const char *why;
  const uint32_t n = most > 1 ? qn_program_read(&p, r, 1, most - 1, y, &why) : 0;
  for (uint32_t k = 0; k < n; k++) {
    const cuda_follow before = *f;
    const int32_t was = y_here;
    f->value[was].flags &= ~(uint32_t)QN_VALUE_ESCAPE;
    if (add_step(f, r, view, &p, k, &y_here, bias)) continue;
    *f = before;
    f->value[was].flags |= QN_VALUE_ESCAPE;
    return;
  }
}
