/* onednn.h -- shared by this plugin's engines. An engine's prepare describes its op to oneDNN and lists the tensors;
 * layouts, scratch, building and running are common and in onednn.c. */
#ifndef QUERN_ONEDNN_H
#define QUERN_ONEDNN_H
#include <stdbool.h>
#include <dnnl.h>
#include <quern/backend.h>
#include <quern/kit.h>

/* One tensor of the op, in the problem's layout and in the primitive's. */
typedef struct onednn_tensor {
  int                role;              /* DNNL_ARG_... */
  int32_t            value;             /* of the request; -1: an output not wanted, or passed from one primitive to the next */
  bool               output;
  bool               copied;            /* the primitive uses a copy in the workspace, at offset */
  size_t             offset;
  dnnl_memory_desc_t given, wanted;
  dnnl_primitive_t   reorder;           /* if the layouts differ; made by build */
} onednn_tensor;

enum { ONEDNN_TENSORS = 8, ONEDNN_LONGEST = 1 << 30 };      /* limit on a dim: oneDNN counts its blocks, rounded up, in an int */
typedef struct onednn_state {
  dnnl_primitive_desc_t first_desc, desc;         /* first: NULL, or run before desc, on the tensors that it shares */
  dnnl_primitive_t      first, primitive;
  int                   n;
  onednn_tensor         tensor[ONEDNN_TENSORS];
  size_t                scratch;                  /* offset of the primitives' own scratch */
} onednn_state;

/* NULL, or the state, also stored in p->state; after NULL return onednn_refused(p, QN_UNSUPPORTED). */
onednn_state *onednn_begin(const qn_request *request, qn_prepared *p);
/* Lists a value and sets `given` to its layout. It must be f32: false, with a refusal, otherwise. */
bool onednn_add(onednn_state *s, const qn_request *request, qn_prepared *p, int role, int32_t value);
/* onednn_begin, then lists the first n values of the op, in these roles; NULL: refused, and everything freed. */
onednn_state *onednn_begin_with(const qn_request *request, qn_prepared *p, int n, const int *role);
/* Lists a tensor of the primitive's that is not a value of the request. */
void onednn_add_own(onednn_state *s, int role);
/* Views the tensor added last with other dims. */
void onednn_view(onednn_state *s, int rank, const int64_t *dim, const int64_t *stride);
/* Leaves the layout to oneDNN: for describing a primitive on tensors that may be reordered. */
dnnl_memory_desc_t onednn_any(const dnnl_memory_desc_t *given);
/* Sets a primitive to run before finish's, which takes it as its hint. Uses request->demands->threads. */
bool onednn_first(onednn_state *s, const qn_request *request, const_dnnl_op_desc_t op);
/* Ends a prepare: op describes the operation. Uses request->demands->threads. */
qn_status onednn_finish(onednn_state *s, const qn_request *request, qn_prepared *p, const_dnnl_op_desc_t op);
/* Ends a prepare that refuses: frees the state. */
qn_status onednn_refused(qn_prepared *p, qn_status status);

qn_status onednn_build(const qn_request *request, qn_prepared *p);
qn_status onednn_run(const qn_prepared *p, const qn_launch *launch);
void      onednn_release(qn_prepared *p);

extern const qn_engine_list onednn_conv, onednn_lrn, onednn_matmul, onednn_norm, onednn_softmax, onednn_pool, onednn_resampling,
    onednn_pointwise, onednn_reduction;
#endif
