/* onednn.h -- what the engines of this plugin share. An engine's prepare describes its op to oneDNN and lists the tensors;
 * the rest (layouts, scratch, building, running) is the same for all of them and lies in onednn.c. */
#ifndef QUERN_ONEDNN_H
#define QUERN_ONEDNN_H
#include <stdbool.h>
#include <dnnl.h>
#include <quern/backend.h>
#include <quern/kit.h>

/* One tensor of the op, in the problem's layout and in the one that the primitive wants. */
typedef struct onednn_tensor {
  int                role;              /* DNNL_ARG_... */
  int32_t            value;             /* of the request; -1: an output that nobody wants, or what one primitive leaves the next */
  bool               output;
  bool               deviation;         /* an output: 1 / sqrt(v + eps) is wanted where oneDNN gives the variance v */
  bool               copied;            /* what the primitive sees lies in the workspace, at offset */
  size_t             offset;
  dnnl_memory_desc_t given, wanted;
  dnnl_primitive_t   reorder;           /* where the two differ; made by build */
} onednn_tensor;

enum { ONEDNN_TENSORS = 8, ONEDNN_LONGEST = 1 << 30 };      /* the longest dim: its blocks, rounded up, are counted in an int */
typedef struct onednn_state {
  dnnl_primitive_desc_t first_desc, desc;         /* first: NULL, or what is run before, on those of the tensors that it knows */
  dnnl_primitive_t      first, primitive;
  int                   n;
  onednn_tensor         tensor[ONEDNN_TENSORS];
  float                 eps;                      /* of deviations */
  size_t                scratch;                  /* offset of the primitives' own */
} onednn_state;

/* NULL, or the state, which also stands in p->state; after NULL return onednn_refused(p, QN_UNSUPPORTED). */
onednn_state *onednn_begin(const qn_request *request, qn_prepared *p);
/* Lists a value; `given` becomes its layout. It must be f32: false after a refusal. */
bool onednn_add(onednn_state *s, const qn_request *request, qn_prepared *p, int role, int32_t value);
/* Begins with the first n values of the op, in these roles; NULL after a refusal, with nothing left. */
onednn_state *onednn_begin_with(const qn_request *request, qn_prepared *p, int n, const int *role);
/* Lists a tensor of the primitive's that is no value. */
void onednn_add_own(onednn_state *s, int role);
/* The tensor added last, seen as one of other dims. */
void onednn_view(onednn_state *s, int rank, const int64_t *dim, const int64_t *stride);
/* The layout left to oneDNN: what a primitive is described with for tensors that may be reordered. */
dnnl_memory_desc_t onednn_any(const dnnl_memory_desc_t *given);
/* A primitive to run before the one that finish describes, which takes it as its hint. Under request->demands->threads. */
bool onednn_first(onednn_state *s, const qn_request *request, const_dnnl_op_desc_t op);
/* The last step of a prepare: op describes the operation. Under request->demands->threads. */
qn_status onednn_finish(onednn_state *s, const qn_request *request, qn_prepared *p, const_dnnl_op_desc_t op);
/* Ends a prepare that refuses: frees the state. */
qn_status onednn_refused(qn_prepared *p, qn_status status);

qn_status onednn_build(const qn_request *request, qn_prepared *p);
qn_status onednn_run(const qn_prepared *p, const qn_launch *launch);
void      onednn_release(qn_prepared *p);

extern const qn_engine_list onednn_conv, onednn_lrn, onednn_matmul, onednn_norm, onednn_softmax, onednn_pool, onednn_resampling,
    onednn_pointwise, onednn_reduction;
#endif
