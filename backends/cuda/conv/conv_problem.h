/* conv_problem.h -- the three convolution ops in one form: x, w and y of the forward convolution, one of which is written, with
 * one to three spatial dims (missing ones are 1). For engines that take all three ops. */
#ifndef QN_CUDA_CONV_PROBLEM_H
#define QN_CUDA_CONV_PROBLEM_H
#include "program/chain.h"

enum { CUDA_CONV_FORWARD, CUDA_CONV_DATA, CUDA_CONV_FILTER };       /* y, x or w is written */

typedef struct cuda_conv_problem {
  const qn_value *x, *w, *y;
  int32_t x_at, w_at, y_at, bias_at;      /* value numbers of the request; bias -1: none */
  int32_t mode;
  int64_t channels, filters, groups;      /* channels of x, filters (channels of y), over all groups */
  /* H, W, D */
  int64_t in[3], out[3], size[3], stride[3], dilation[3], before[3];
  int64_t w_stride[3];
} cuda_conv_problem;

static inline bool cuda_conv_is_float(const qn_value *v) { return v->dtype == QN_F32 || v->dtype == QN_F16 || v->dtype == QN_BF16; }

/* The name that the op itself gives to x, w or y. */
static inline const char *cuda_conv_name(const cuda_conv_problem *p, const qn_value *v)
{
  if (v == p->w) return p->mode == CUDA_CONV_FILTER ? "dw" : "w";
  if (v == p->x) return p->mode == CUDA_CONV_DATA ? "dx" : "x";
  return p->mode == CUDA_CONV_FORWARD ? "y" : "dy";
}

static inline qn_status cuda_conv_wants_f32(const cuda_conv_problem *p, qn_prepared *out)
{
  const qn_value *all[] = { p->x, p->w, p->y };
  for (int i = 0; i < 3; i++)
    if (all[i]->dtype != QN_F32) return qn_refuse(out, "dtypes", cuda_conv_name(p, all[i]), "f32", "%s", qn_kit_name(all[i]->dtype));
  return QN_OK;
}

/* Takes every dtype. Refuses images beyond 2^31 elements. */
static inline qn_status cuda_conv_problem_read_any(cuda_conv_problem *p, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_conv *c = (const qn_conv *)op->attr;
  memset(p, 0, sizeof *p);
  p->bias_at = -1;
  if (op->op == QN_OP_CONV_FORWARD) {
    p->mode = CUDA_CONV_FORWARD;
    p->x_at = qn_role(op, QN_ROLE_CONV_FORWARD_X), p->w_at = qn_role(op, QN_ROLE_CONV_FORWARD_W),
    p->y_at = qn_role(op, QN_ROLE_CONV_FORWARD_Y);
    p->bias_at = qn_role(op, QN_ROLE_CONV_FORWARD_BIAS);
  } else if (op->op == QN_OP_CONV_BACKWARD_DATA) {
    p->mode = CUDA_CONV_DATA;
    p->x_at = qn_role(op, QN_ROLE_CONV_BACKWARD_DATA_DX), p->w_at = qn_role(op, QN_ROLE_CONV_BACKWARD_DATA_W),
    p->y_at = qn_role(op, QN_ROLE_CONV_BACKWARD_DATA_DY);
  } else {
    p->mode = CUDA_CONV_FILTER;
    p->x_at = qn_role(op, QN_ROLE_CONV_BACKWARD_FILTER_X), p->w_at = qn_role(op, QN_ROLE_CONV_BACKWARD_FILTER_DW),
    p->y_at = qn_role(op, QN_ROLE_CONV_BACKWARD_FILTER_DY);
  }
  p->x = &r->value[p->x_at], p->w = &r->value[p->w_at], p->y = &r->value[p->y_at];
  p->channels = p->x->dim[1];
  p->filters = p->y->dim[1];
  p->groups = c->groups;
  int dims = p->x->rank - 2;
  for (int d = 0; d < 3; d++) {
    int from = d < 2 ? dims - 2 + d : dims - 3;
    bool here = from >= 0;
    p->in[d] = here ? p->x->dim[2 + from] : 1, p->out[d] = here ? p->y->dim[2 + from] : 1, p->size[d] = here ? p->w->dim[2 + from] : 1;
    p->w_stride[d] = here ? p->w->stride[2 + from] : 0;
    p->stride[d] = here ? c->stride[from] : 1, p->dilation[d] = here ? c->dilation[from] : 1, p->before[d] = here ? c->pad_before[from] : 0;
    const int64_t after = here ? c->pad_after[from] : 0;   /* limits where the last window begins */
    if (p->in[d] > 1 << 24 || p->out[d] > 1 << 24 || p->stride[d] > 1 << 20 || p->before[d] > 1 << 24 || after > 1 << 24 ||
        p->size[d] * p->dilation[d] > 1 << 24)
      return qn_refuse(out, "extents below 2^24", "x", "", "%lld", (long long)p->in[d]);
  }
  double in = (double)p->in[0] * (double)p->in[1] * (double)p->in[2], to = (double)p->out[0] * (double)p->out[1] * (double)p->out[2];
  if (in * (double)p->channels > 2e9 || to * (double)p->filters > 2e9 || (double)p->x->dim[0] * (in + to) > 2e9)
    return qn_refuse(out, "images and pixels in 31 bits", "x", "", "%s", "more");
  return QN_OK;
}

/* The same; refuses dtypes other than f32, f16 and bf16, and operands of two dtypes. */
static inline qn_status cuda_conv_problem_read_volume(cuda_conv_problem *p, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read_any(p, r, out);
  const qn_value *all[] = { p->x, p->w, p->y };
  for (int i = 0; i < 3; i++)
    if (!cuda_conv_is_float(all[i]))
      return qn_refuse(out, "dtypes", cuda_conv_name(p, all[i]), "f16, bf16 or f32", "%s", qn_kit_name(all[i]->dtype));
  const qn_value *a = p->mode == CUDA_CONV_DATA ? p->y : p->x, *b = p->mode == CUDA_CONV_FILTER ? p->y : p->w;
  if (a->dtype != b->dtype) return qn_refuse(out, "operands of one dtype", "w", "", "%s", "two");
  return status;
}

/* The same for one or two spatial dims only. */
static inline qn_status cuda_conv_problem_read(cuda_conv_problem *p, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read_volume(p, r, out);
  if (!status && p->x->rank > 4) return qn_refuse(out, "one or two spatial dims", "x", "1 or 2", "%d", p->x->rank - 2);
  return status;
}

/* Strides of N, C, H, W, D; of missing dims 0. */
static inline void cuda_conv_strides(int64_t to[5], const qn_value *v)
{
  const int from[3] = { v->rank - 2, v->rank - 1, v->rank - 3 };
  to[0] = v->stride[0], to[1] = v->stride[1];
  for (int d = 0; d < 3; d++) to[2 + d] = from[d] >= 2 ? v->stride[from[d]] : 0;
}

/* Windows along one dim, as a stride-1 convolution. In backward data a stride divides the pixels of dx into residue classes: the
 * pixels of a class see the same taps, every tap_step-th, and are a convolution of stride 1 over dy, written `stride` apart. Taps
 * run from the filter's last down, so that positions in dy rise. Otherwise there is one class, the convolution itself. */
enum { CUDA_CONV_APART = 4 };             /* classes along a dim, at most */
typedef struct cuda_conv_span {
  int32_t out, before;                    /* number of pixels; distance of the first window's begin before the tensor */
  int32_t taps, tap, tap_step;            /* number of taps; index in the filter of the first; step to the next */
} cuda_conv_span;

static inline int cuda_conv_every(const cuda_conv_problem *c, int d)   /* backward data: step from one tap of a class to the next */
{
  int every = 1;
  while (c->dilation[d] * every % c->stride[d]) every++;
  return every;
}

static inline cuda_conv_span cuda_conv_span_of(const cuda_conv_problem *c, int d, int residue)
{
  cuda_conv_span s = { (int32_t)c->out[d], (int32_t)c->before[d], (int32_t)c->size[d], 0, 1 };
  if (c->mode != CUDA_CONV_DATA) return s;
  s.out = (int32_t)qn_ceil_div(c->in[d] - residue, c->stride[d]);
  s.taps = 0;
  for (int64_t r = c->size[d] - 1; r >= 0; r--) {
    int64_t from = residue + c->before[d] - r * c->dilation[d];
    if (from % c->stride[d]) continue;
    if (!s.taps++) s.tap = (int32_t)r, s.before = (int32_t)(-from / c->stride[d]);
    else if (s.taps == 2) s.tap_step = (int32_t)(r - s.tap);
  }
  return s;
}

/* Reads the ops that follow. Refused: a bias of another dtype. Followers are fused only into packed channels-last outputs. */
static inline qn_status cuda_conv_problem_chain(const cuda_conv_problem *p, const qn_request *r, cuda_chain *chain, qn_prepared *out)
{
  int32_t written = p->mode == CUDA_CONV_FORWARD ? p->y_at : p->mode == CUDA_CONV_DATA ? p->x_at : p->w_at;
  qn_status status = cuda_chain_begin_conv(chain, r, written, p->bias_at, out);
  if (status) return status;
  if (p->mode == CUDA_CONV_FILTER || !qn_is_channels_last(&r->value[written])) return QN_OK;
  cuda_chain alone = *chain;
  cuda_out_dims dims = { { -1, -1, -1, -1 }, CUDA_CHANNELS_LAST };
  cuda_chain_follow(chain, r, &dims);
  if (!qn_is_channels_last(&r->value[chain->out])) *chain = alone;
  return QN_OK;
}

/* The same for engines whose epilogue takes only a bias, the fold and relu, into one dtype: the chain, its operands (-1: none) and relu. */
static inline qn_status cuda_conv_problem_bias_relu(const cuda_conv_problem *p, const qn_request *r, cuda_chain *chain, int32_t *bias,
                                                    int32_t *factor, int32_t *relu, qn_prepared *out)
{
  cuda_out_dims dims = { { 3, 1, 0, 2 }, CUDA_BY_DIMS };
  const int32_t written = p->mode == CUDA_CONV_FORWARD ? p->y_at : p->x_at;
  for (qn_request some = *r; ; some.n_ops = chain->n_ops - 1) {
    qn_status status = cuda_chain_begin_conv(chain, r, written, p->bias_at, out);
    if (status) return status;
    cuda_chain_follow(chain, &some, &dims);
    if (cuda_chain_column_relu(chain, bias, factor, relu) && r->value[chain->out].dtype == r->value[written].dtype) return QN_OK;
    if (chain->n_ops > 1) continue;
    *bias = p->bias_at >= 0 ? 0 : -1;                       /* alone it may have any stride */
    return QN_OK;
  }
}
#endif
