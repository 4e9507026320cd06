/* sampling.c -- spatial transformer by cuDNN's legacy API: two spatial dims, packed, align_corners, zeros outside.
 *
 * One call computes both gradients and needs x: the gradient by x, accumulated in any order, goes to the workspace and is not offered,
 * since its op has no x. dtheta too is accumulated in any order. A non-finite point has no defined result: math fast. */
#include "peer.h"

static cudnnStatus_t grid(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnSpatialTfGridGeneratorForward(o->handle, c->transformer, o->ptr[0], o->ptr[1]);
}

static cudnnStatus_t grid_backward(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnSpatialTfGridGeneratorBackward(o->handle, c->transformer, o->ptr[0], o->ptr[1]);
}

/* x, grid, y. */
static cudnnStatus_t sample(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnSpatialTfSamplerForward(o->handle, c->transformer, o->one, c->tensor[0], o->ptr[0], o->ptr[1], o->zero, c->tensor[1],
                                           o->ptr[2]);
}

/* dy, x, grid, dgrid. */
static cudnnStatus_t sample_backward(const peer_call *c, const peer_operands *o)
{
  return peer.cudnnSpatialTfSamplerBackward(o->handle, c->transformer, o->one, c->tensor[0], o->ptr[1], o->zero, c->tensor[0], o->workspace,
                                            o->one, c->tensor[1], o->ptr[0], o->ptr[2], o->zero, o->ptr[3]);
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

/* Describes the output, [N, C, P, Q]. */
static void describe(peer_call *c, uint32_t dtype, int64_t n, int64_t channels, const int64_t *extents)
{
  const int dim[4] = { (int)n, (int)channels, (int)extents[0], (int)extents[1] };
  if (!c->status) c->status = peer.cudnnCreateSpatialTransformerDescriptor(&c->transformer);
  if (!c->status) c->status = peer.cudnnSetSpatialTransformerNdDescriptor(c->transformer, CUDNN_SAMPLER_BILINEAR, peer_type(dtype), 4, dim);
}

static bool fits(const qn_sampling *sampling, const qn_value *points, qn_prepared *p)
{
  if (points->rank != 4) qn_refuse(p, "cuDNN samples images", "", "two dims", "%d", points->rank - 2);
  else if (!sampling->align_corners)
    qn_refuse(p, "the ends of cuDNN's points are the middles of the outer places", "", "align_corners 1", "%s", "0");
  return !p->refusal.rule[0];
}

static qn_status prepare_grid(const qn_request *r, qn_prepared *p)
{
  bool backward = r->op[0].op == QN_OP_AFFINE_GRID_BACKWARD;
  qn_status s;
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  const qn_value *points = &r->value[c->value[backward ? 0 : 1]];
  if (!peer_call_alike(c, r, p, PEER_PACKED) || !fits(r->op[0].attr, points, p)) return peer_call_refused(p);
  if (points->dim[1] == 1 || points->dim[2] == 1) {
    qn_refuse(p, "cuDNN divides by an extent less 1", "grid", "extents of 2 and more", "%s", "1");
    return peer_call_refused(p);
  }
  describe(c, points->dtype, points->dim[0], 1, points->dim + 1);
  c->call = backward ? grid_backward : grid;
  return peer_call_end(c, p);
}

static qn_status prepare_sample(const qn_request *r, qn_prepared *p)
{
  const qn_sampling *sampling = r->op[0].attr;
  bool backward = r->op[0].op == QN_OP_GRID_SAMPLE_BACKWARD_GRID;
  qn_status s;
  peer_call *c = peer_call_begin(r, p, &s);
  if (!c) return s;
  const qn_value *x = &r->value[c->value[backward ? 1 : 0]], *y = &r->value[c->value[backward ? 0 : 2]];
  if (!peer_call_alike(c, r, p, PEER_PACKED) || !fits(sampling, x, p)) return peer_call_refused(p);
  if (sampling->mode != QN_RESAMPLE_LINEAR || sampling->padding != QN_SAMPLE_ZEROS) {
    qn_refuse(p, "cuDNN's sampler", "", "mode linear, padding zeros", "%s", "another");
    return peer_call_refused(p);
  }
  peer_call_spatial(c, 0, x, false);
  peer_call_spatial(c, 1, y, false);
  describe(c, x->dtype, y->dim[0], y->dim[1], y->dim + 2);
  c->call = backward ? sample_backward : sample;
  if (backward) p->workspace = (uint64_t)(qn_elements(x) * qn_kit_bytes(x->dtype));
  return peer_call_end(c, p);
}

#define SHARED .class_ = QN_CLASS_TUNED, .run = peer_call_run, .release = peer_call_release
static const qn_engine rows[] = {
  { .name = "transformer", .op = QN_OP_AFFINE_GRID,               .traits = QN_TRAIT_DETERMINISTIC,
    .prepare = prepare_grid,   SHARED },
  { .name = "transformer", .op = QN_OP_AFFINE_GRID_BACKWARD,      .traits = 0,
    .prepare = prepare_grid,   SHARED },
  { .name = "transformer", .op = QN_OP_GRID_SAMPLE,               .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY,
    .prepare = prepare_sample, SHARED },
  { .name = "transformer", .op = QN_OP_GRID_SAMPLE_BACKWARD_GRID, .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_FINITE_ONLY,
    .prepare = prepare_sample, SHARED },
};
const qn_engine_list peer_sampling = { rows, sizeof rows / sizeof rows[0] };
