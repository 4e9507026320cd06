/* peer.h -- shared by this plugin's files: cuDNN, loaded at run time (library.c), and operation graphs (graph.c). An
 * engine's prepare describes tensors and operations; choosing and running one of cuDNN's engines is the same for all. */
#ifndef QUERN_CUDNN_PEER_H
#define QUERN_CUDNN_PEER_H
#include <stdbool.h>
#include <cudnn.h>
#include <quern/kit.h>

extern const qn_host *peer_host;          /* backend.c */

/* ---- library.c: the cuDNN functions used --------------------------------------------------------- */

#define CUDNN_CALLS(X) \
  X(cudnnGetVersion) X(cudnnGetErrorString) X(cudnnGetLastErrorString) X(cudnnGraphVersionCheck) X(cudnnOpsVersionCheck) X(cudnnCnnVersionCheck) \
  X(cudnnCreate) X(cudnnDestroy) X(cudnnSetStream) \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendFinalize) X(cudnnBackendSetAttribute) \
  X(cudnnBackendGetAttribute) X(cudnnBackendExecute) \
  X(cudnnCreateTensorDescriptor) X(cudnnDestroyTensorDescriptor) X(cudnnSetTensorNdDescriptor) X(cudnnSoftmaxForward) \
  X(cudnnSoftmaxBackward) X(cudnnCreatePoolingDescriptor) X(cudnnDestroyPoolingDescriptor) X(cudnnSetPoolingNdDescriptor) \
  X(cudnnPoolingForward) X(cudnnPoolingBackward) X(cudnnCreateReduceTensorDescriptor) X(cudnnDestroyReduceTensorDescriptor) X(cudnnSetReduceTensorDescriptor) \
  X(cudnnGetReductionWorkspaceSize) X(cudnnReduceTensor) \
  X(cudnnCreateActivationDescriptor) X(cudnnDestroyActivationDescriptor) X(cudnnSetActivationDescriptor) \
  X(cudnnSetActivationDescriptorSwishBeta) X(cudnnActivationForward) X(cudnnActivationBackward) X(cudnnCreateOpTensorDescriptor) X(cudnnDestroyOpTensorDescriptor) \
  X(cudnnSetOpTensorDescriptor) X(cudnnOpTensor) \
  X(cudnnBatchNormalizationForwardInference) X(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize) \
  X(cudnnGetBatchNormalizationBackwardExWorkspaceSize) X(cudnnGetBatchNormalizationTrainingExReserveSpaceSize) \
  X(cudnnBatchNormalizationForwardTrainingEx) X(cudnnBatchNormalizationBackwardEx) \
  X(cudnnCreateLRNDescriptor) X(cudnnDestroyLRNDescriptor) X(cudnnSetLRNDescriptor) X(cudnnLRNCrossChannelForward) X(cudnnLRNCrossChannelBackward) \
  X(cudnnDivisiveNormalizationForward) X(cudnnDivisiveNormalizationBackward) \
  X(cudnnCreateSpatialTransformerDescriptor) X(cudnnDestroySpatialTransformerDescriptor) X(cudnnSetSpatialTransformerNdDescriptor) \
  X(cudnnSpatialTfGridGeneratorForward) X(cudnnSpatialTfGridGeneratorBackward) X(cudnnSpatialTfSamplerForward) X(cudnnSpatialTfSamplerBackward) \
  X(cudnnCreateDropoutDescriptor) X(cudnnDestroyDropoutDescriptor) X(cudnnSetDropoutDescriptor) X(cudnnCreateRNNDescriptor) \
  X(cudnnDestroyRNNDescriptor) X(cudnnSetRNNDescriptor_v8) X(cudnnRNNSetClip_v9) X(cudnnCreateRNNDataDescriptor) \
  X(cudnnDestroyRNNDataDescriptor) X(cudnnSetRNNDataDescriptor) X(cudnnGetRNNWeightSpaceSize) X(cudnnGetRNNTempSpaceSizes) \
  X(cudnnGetRNNWeightParams) X(cudnnRNNForward) X(cudnnAdvVersionCheck)
typedef struct peer_calls {
#define X(name) __typeof__(name) *name;
  CUDNN_CALLS(X)
#undef X
} peer_calls;
extern peer_calls peer;

/* Finds the library and its functions without loading its parts; false: *why. version: "9.19.0". */
bool peer_find(char version[32], const char **why);
/* Loads the sublibraries from its own folder and has them compare versions. */
qn_status peer_load(void);
/* Returns QN_DEVICE with a sentence that has the call's name and cuDNN's message. */
qn_status peer_failed(const char *call, cudnnStatus_t status);
/* A per-device handle for describing and choosing, which outlives all plans; locked until peer_describe_end. */
qn_status peer_describe_begin(const qn_device *device, cudnnHandle_t *handle);
void      peer_describe_end(void);

/* ---- requests ------------------------------------------------------------------------------------- */

/* cuDNN queries the device itself: QN_NO_BACKEND, with a refusal, for a device model or a narrowed device. */
qn_status peer_live(const qn_request *r, qn_prepared *p);

/* ---- tensor.c --------------------------------------------------------------------------------------- */

typedef struct peer_shape { int rank; int64_t dim[QN_MAX_RANK], stride[QN_MAX_RANK]; } peer_shape;

cudnnDataType_t peer_type(uint32_t dtype);            /* floats and i32 */
bool peer_is_float(const qn_value *v);                /* f64, f32, f16, bf16 */
bool peer_countable(qn_prepared *p, const qn_value *v, const char *role);     /* false, with a refusal: too many elements */
/* N, C and at least two spatial dims; dims of 1 also get the layout's stride. */
peer_shape peer_spatial(const qn_value *v, bool channels_last);
/* Row-major; padded to four dims by trailing dims of 1. */
peer_shape peer_packed(const int64_t *dim, int rank);
const void *peer_number(uint32_t dtype, int value);  /* 0 or 1 in the type in which alpha and beta are read */

/* ---- call.c: engines by the legacy API -------------------------------------------------------------- */

enum { PEER_OPERANDS = 10 };
typedef enum peer_layout { PEER_PACKED, PEER_CHANNELS, PEER_DENSE } peer_layout;    /* row-major; NCHW or NHWC; any layout without gaps */

/* What a call gets, indexed as the op's operands. */
typedef struct peer_operands {
  cudnnHandle_t handle;
  void         *ptr[PEER_OPERANDS], *workspace;
  size_t        bytes;                    /* of the workspace */
  const void   *one, *zero;               /* alpha and beta */
} peer_operands;

typedef struct peer_call {
  cudnnStatus_t status;                   /* the first failure; after it nothing more is described */
  uint32_t      op, dtype;                /* dtype: of the first operand */
  int           n;
  int32_t       value[PEER_OPERANDS];     /* values of the request for all operands of the op; -1: absent, passed as NULL */
  cudnnTensorDescriptor_t tensor[PEER_OPERANDS];    /* these and the following: created by the engine, destroyed for it */
  cudnnPoolingDescriptor_t pool;
  cudnnReduceTensorDescriptor_t reduce;
  cudnnActivationDescriptor_t activation;
  cudnnOpTensorDescriptor_t two;
  cudnnLRNDescriptor_t lrn;
  cudnnSpatialTransformerDescriptor_t transformer;
  int           mode;                     /* these three: for the engine's own use */
  double        number[2];
  size_t        reserve_at;
  cudnnStatus_t (*call)(const struct peer_call *, const peer_operands *);
} peer_call;

/* NULL: refused or no memory (*status). Checks that all operands are floats of countable size. If finite data only, math fast. */
peer_call *peer_call_begin(const qn_request *r, qn_prepared *p, qn_status *status);
/* and of one dtype; false: refused */
bool       peer_call_alike(const peer_call *c, const qn_request *r, qn_prepared *p, peer_layout layout);
void       peer_call_tensor(peer_call *c, int i, uint32_t dtype, const peer_shape *s);
void       peer_call_spatial(peer_call *c, int i, const qn_value *v, bool channels_last);
qn_status  peer_call_refused(qn_prepared *p);                           /* ends a prepare that refused */
qn_status  peer_call_end(peer_call *c, qn_prepared *p);                 /* ends one that described everything */
qn_status  peer_call_run(const qn_prepared *p, const qn_launch *launch);
void       peer_call_release(qn_prepared *p);

/* ---- graph.c ---------------------------------------------------------------------------------------- */

enum { PEER_PARTS = 160, PEER_OPS = 48, PEER_TENSORS = 24 };
enum { PEER_NUMBER = -1, PEER_SCRATCH = -2 };       /* in place of a value */
typedef struct peer_graph {
  cudnnStatus_t status;                   /* the first failure; after it nothing more is done */
  int           n_parts, n_ops, n_tensors;
  cudnnBackendDescriptor_t part[PEER_PARTS], op[PEER_OPS], plan;
  int32_t       value[PEER_TENSORS];      /* values of the request, for tensors in memory; their ids start at 1 */
  union { float f; int32_t i; size_t place; } number[PEER_TENSORS];     /* PEER_NUMBER: passed at launch; PEER_SCRATCH: in workspace */
  size_t        scratch;                  /* bytes of workspace for tensors, before cuDNN's own */
} peer_graph;

/* NULL: refused or no memory (*status); else the graph, also stored in p->state. */
peer_graph *peer_graph_begin(const qn_request *r, qn_prepared *p, qn_status *status);
cudnnBackendDescriptor_t peer_make(peer_graph *g, cudnnBackendDescriptorType_t type);
void peer_set(peer_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
              const void *v);
void peer_set_part(peer_graph *g, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part);
void peer_finalize(peer_graph *g, cudnnBackendDescriptor_t d);
/* value -1: an intermediate in f32 (f64 for f64) that is never in memory; peer_between: of any type. */
cudnnBackendDescriptor_t peer_tensor(peer_graph *g, const qn_request *r, int32_t value, uint32_t dtype, const peer_shape *s);
cudnnBackendDescriptor_t peer_between(peer_graph *g, cudnnDataType_t type, const peer_shape *s);
cudnnBackendDescriptor_t peer_scratch(peer_graph *g, const peer_shape *s);      /* f32, packed, in workspace */
cudnnBackendDescriptor_t peer_given(peer_graph *g, float number);       /* a tensor of one element, known now */
cudnnBackendDescriptor_t peer_given_int(peer_graph *g, int32_t number);
void peer_add(peer_graph *g, cudnnBackendDescriptor_t op);             /* finalizes it */
/* y = a + b in f32 (f64): a bias after a contraction. */
void peer_add_bias(peer_graph *g, uint32_t dtype, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y);

/* The numerics of the request, and known omissions in the notes of cuDNN's engines for it. */
typedef struct peer_terms {
  uint32_t dtype, out_dtype;              /* of the operands, of the output */
  int32_t  winograd_filter;               /* filter size for which Winograd can be bounded; 0: it cannot */
  bool     no_tf32;                       /* do not take an engine that rounds f32 operands */
  bool     tf32;                          /* f32 operands are rounded, noted or not, and Inf is lost */
  bool     transforms;                    /* Winograd, FFT and tf32 are not noted: all are held to their bounds */
  bool     reduces;                       /* partial sums in the output's dtype, and lost Inf, are not noted */
  /* NULL, or numbers, ended by -1, of cuDNN engines that violate any bound, or do what `reduces` says */
  const int64_t *broken, *reduced;
  bool     any_order;                     /* sums from run to run in another order, noted or not */
  bool     loses;                         /* Inf and NaN are lost, or spread where they are multiplied by 0 */
} peer_terms;
/* Ends a prepare: picks the variant's engine, or the first in the heuristics' order that the demands allow. Unless the result is
 * QN_OK the graph is freed. */
qn_status peer_graph_choose(peer_graph *g, const qn_request *r, qn_prepared *p, const peer_terms *t);
qn_status peer_graph_run(const qn_prepared *p, const qn_launch *launch);
void      peer_graph_release(qn_prepared *p);
extern const char *const peer_variants[];

extern const qn_engine_list peer_conv, peer_matmul, peer_norm, peer_batch_norm, peer_softmax, peer_pool, peer_reduce, peer_pointwise,
    peer_lrn, peer_sampling, peer_rnn, peer_attention;
#endif
