/* rnn.c -- recurrent networks forward, for inference, by cuDNN's RNN: LSTM, GRU with reset after, tanh, relu; layers, forward or both
 * directions, projection, no, one or two biases, clip.
 *
 * cuDNN reads all weights from one buffer in an order of its own, which has the gates and matrices as the op has them. Where the op's
 * tensors already lie so, one after the other as cuDNN wants them, they are read in place; else each run copies them into the workspace,
 * for they may have changed since the last.
 *
 * Not offered: the gradient, because what cuDNN's forward leaves to its backward is an opaque buffer and not the tensors gates, cells and
 * inner; lengths, which cuDNN reads on the host when tensors are described (those on the device are ignored); dropout, whose random
 * numbers are cuDNN's; the backward direction alone. In 16 bits, what lies between products and gates is rounded to the dtype, and the
 * standard algorithm's sums are as far off as sums in f16; f32 in tf32 makes NaN of Inf: math fast. f32 otherwise is computed as such. Not
 * claimed: the same bits from run to run, which cuDNN does not promise of its streams beside one another. */
#include <cuda_runtime_api.h>
#include <math.h>
#include "peer.h"

enum { X, Y, H0, C0, HT, CT, SINGLES };
#define ROLE(name) QN_ROLE_RNN_FORWARD_##name
static const int8_t role_of[SINGLES] = { ROLE(X), ROLE(Y), ROLE(H0), ROLE(C0), ROLE(HT), ROLE(CT) };

/* `bytes` of a value, from a place of it, lie at a place of the buffer. */
typedef struct piece { int32_t value; size_t from, at, bytes; } piece;

typedef struct net {
  cudnnRNNDescriptor_t     rnn;
  cudnnDropoutDescriptor_t dropout;
  cudnnRNNDataDescriptor_t x, y;
  cudnnTensorDescriptor_t  h, c;
  size_t  weights, scratch_at, scratch;   /* bytes of the buffer; place and bytes of cuDNN's own workspace */
  int32_t value[SINGLES];
  int     n;
  piece   piece[];
} net;

static const char *const variants[] = { "standard", "persistent", "small", NULL };
static const cudnnRNNAlgo_t algorithm[] = { CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H };

/* ---- what is refused ------------------------------------------------------------------------------------ */

static int32_t item(const qn_node *op, uint32_t role, int64_t i)
{
  return op->first[role] + (int32_t)i < op->first[role + 1] ? op->arg[op->first[role] + i] : -1;
}

/* [T, B, V] with sequences or steps outermost, without gaps. */
static bool lies(const qn_value *v, bool by_sequence)
{
  const int64_t time = by_sequence ? v->dim[2] : v->dim[1] * v->dim[2], batch = by_sequence ? v->dim[0] * v->dim[2] : v->dim[2];
  return (v->dim[0] == 1 || v->stride[0] == time) && (v->dim[1] == 1 || v->stride[1] == batch) && (v->dim[2] == 1 || v->stride[2] == 1);
}

/* False: refused. */
static bool fits(const qn_request *r, qn_prepared *p)
{
  static const int8_t left[] = { ROLE(GATES), ROLE(CELLS), ROLE(INNER) };
  static const uint32_t lists[] = { ROLE(W), ROLE(R), ROLE(BW), ROLE(BR), ROLE(PROJECTION) };
  const qn_node *op = &r->op[0];
  const qn_rnn *a = op->attr;
  const qn_value *x = &r->value[qn_role_at(op, role_of[X])], *y = &r->value[qn_role_at(op, role_of[Y])];
  for (int i = 0; i < 3; i++)
    if (qn_role_at(op, left[i]) >= 0)
      qn_refuse(p, "what cuDNN leaves to its backward is an opaque buffer", "gates", "no gates, cells, inner", "%s", "one of them");
  if (p->refusal.rule[0]) return false;
  if (qn_role_at(op, ROLE(LENGTHS)) >= 0)
    qn_refuse(p, "cuDNN wants lengths on the host, when tensors are described", "lengths", "none", "%s", "a tensor on the device");
  else if (a->dropout > 0 && a->layers > 1)
    qn_refuse(p, "cuDNN drops by random numbers of its own, in training only", "", "dropout 0", "%g", a->dropout);
  else if (a->direction == QN_RNN_BACKWARD) qn_refuse(p, "directions of cuDNN's", "", "forward or both", "%s", "backward");
  else if (a->cell == QN_RNN_GRU && a->reset == QN_RNN_RESET_BEFORE)
    qn_refuse(p, "cuDNN's GRU resets what the product gave", "", "reset=after", "%s", "before");
  else if (!x->dim[0] || !x->dim[1] || !x->dim[2])
    qn_refuse(p, "cuDNN wants steps, sequences and features", "x", "no dim of 0", "%s", "one");
  else if (!(lies(x, false) && lies(y, false)) && !(lies(x, true) && lies(y, true)))
    qn_refuse(p, "layouts of cuDNN's sequences", "x", "x and y packed, or both with B outermost", "%s", "other strides");
  for (int i = 0; i < SINGLES && !p->refusal.rule[0]; i++) {
    const int32_t at = qn_role_at(op, role_of[i]);
    const qn_value *v = &r->value[at < 0 ? 0 : at];
    if (at < 0) continue;
    if (!peer_is_float(v) || v->dtype != x->dtype)
      qn_refuse(p, "one float dtype for all", "", qn_kit_name(x->dtype), "%s", qn_kit_name(v->dtype));
    else if (i > Y && !qn_is_packed(v)) qn_refuse(p, "states are packed", "h0", "row-major without gaps", "%s", "other strides");
    else peer_countable(p, v, "");
  }
  for (int i = 0; i < 5; i++)
    for (int64_t k = 0; k < op->first[lists[i] + 1] - op->first[lists[i]] && !p->refusal.rule[0]; k++) {
      const qn_value *v = &r->value[item(op, lists[i], k)];
      if (v->dtype != x->dtype) qn_refuse(p, "one dtype for all", "w", qn_kit_name(x->dtype), "%s", qn_kit_name(v->dtype));
      else if (!qn_is_packed(v)) qn_refuse(p, "weights are packed", "w", "row-major without gaps", "%s", "other strides");
      else peer_countable(p, v, "w");
    }
  return !p->refusal.rule[0];
}

/* ---- prepare -------------------------------------------------------------------------------------------- */

/* Adds a piece, or lengthens the one that it follows on both sides. */
static void add(net *n, int32_t value, size_t from, size_t at, size_t bytes)
{
  for (int i = 0; i < n->n; i++) {
    piece *q = &n->piece[i];
    if (q->value != value || q->from + q->bytes != from || q->at + q->bytes != at) continue;
    q->bytes += bytes;
    return;
  }
  n->piece[n->n++] = (piece){ value, from, at, bytes };
}

/* Where cuDNN wants gate by gate of each matrix and bias: linear layers 0 to G - 1 are w's, G to 2 G - 1 are r's, then the projection. */
static cudnnStatus_t place_weights(net *n, cudnnHandle_t handle, const qn_request *r, int64_t count, int gates)
{
  static const uint32_t role[2][3] = { { ROLE(W), ROLE(R), ROLE(PROJECTION) }, { ROLE(BW), ROLE(BR) } };
  const uintptr_t base = 4096;            /* no memory: only distances from it are asked for */
  cudnnTensorDescriptor_t shape[2] = { NULL, NULL };
  cudnnStatus_t e = peer.cudnnCreateTensorDescriptor(&shape[0]);
  if (!e) e = peer.cudnnCreateTensorDescriptor(&shape[1]);
  for (int64_t k = 0; k < count; k++)
    for (int i = 0; i <= 2 * gates && !e; i++) {
      const int of = i / gates, parts = of == 2 ? 1 : gates;
      void *at[2] = { NULL, NULL };       /* of the matrix, of the bias */
      if (item(&r->op[0], role[0][of], k) < 0) continue;
      e = peer.cudnnGetRNNWeightParams(handle, n->rnn, (int32_t)k, n->weights, (const void *)base, i, shape[0], &at[0], shape[1], &at[1]);
      for (int j = 0; j < (of == 2 ? 1 : 2) && !e; j++) {
        const int32_t value = item(&r->op[0], role[j][of], k);
        if (value < 0) continue;
        const qn_value *v = &r->value[value];
        const size_t bytes = (size_t)qn_elements(v) * (size_t)qn_kit_bytes(v->dtype) / (size_t)parts;
        if (!at[j] || (uintptr_t)at[j] - base + bytes > n->weights) e = CUDNN_STATUS_INTERNAL_ERROR;
        else add(n, value, (size_t)(i % parts) * bytes, (uintptr_t)at[j] - base, bytes);
      }
    }
  for (int j = 0; j < 2; j++)
    if (shape[j]) peer.cudnnDestroyTensorDescriptor(shape[j]);
  return e;
}

static cudnnStatus_t sequences(cudnnRNNDataDescriptor_t *d, const qn_value *v, bool by_sequence, const int *lengths)
{
  static double zero;                     /* what is written beyond a sequence's end, of any dtype; no sequence ends early */
  cudnnStatus_t e = peer.cudnnCreateRNNDataDescriptor(d);
  return e ? e : peer.cudnnSetRNNDataDescriptor(*d, peer_type(v->dtype), by_sequence ? CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED
                                                : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, (int)v->dim[0], (int)v->dim[1], (int)v->dim[2],
                                                lengths, &zero);
}

static cudnnStatus_t states(cudnnTensorDescriptor_t *d, uint32_t dtype, int64_t count, int64_t batch, int64_t size)
{
  const int dim[3] = { (int)count, (int)batch, (int)size }, stride[3] = { (int)(batch * size), (int)size, 1 };
  cudnnStatus_t e = peer.cudnnCreateTensorDescriptor(d);
  return e ? e : peer.cudnnSetTensorNdDescriptor(*d, peer_type(dtype), 3, dim, stride);
}

/* tf32, where it may: cuDNN's loses Inf. */
static bool rounds(const qn_request *r, uint32_t dtype) { return dtype == QN_F32 && r->demands->math >= QN_MATH_FAST; }

static cudnnStatus_t describe(net *n, cudnnHandle_t handle, const qn_request *r, cudnnRNNAlgo_t algo, const int *lengths)
{
  const qn_node *op = &r->op[0];
  const qn_rnn *a = op->attr;
  const qn_value *x = &r->value[n->value[X]], *y = &r->value[n->value[Y]], *recurrent = &r->value[item(op, ROLE(R), 0)];
  const bool bw = item(op, ROLE(BW), 0) >= 0, br = item(op, ROLE(BR), 0) >= 0, by_sequence = !lies(x, false) || !lies(y, false);
  const int gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  const int64_t hidden = recurrent->dim[0] / gates, state = recurrent->dim[1], count = a->layers * (a->direction == QN_RNN_BOTH ? 2 : 1);
  const cudnnRNNMode_t cell = a->cell == QN_RNN_LSTM ? CUDNN_LSTM : a->cell == QN_RNN_GRU ? CUDNN_GRU
      : a->cell == QN_RNN_TANH ? CUDNN_RNN_TANH : CUDNN_RNN_RELU;
  const cudnnMathType_t math = qn_kit_bytes(x->dtype) == 2 ? CUDNN_TENSOR_OP_MATH
      : rounds(r, x->dtype) ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  size_t reserve = 0;
  cudnnStatus_t e = peer.cudnnCreateDropoutDescriptor(&n->dropout);
  if (!e) e = peer.cudnnSetDropoutDescriptor(n->dropout, handle, 0, NULL, 0, 0);
  if (!e) e = peer.cudnnCreateRNNDescriptor(&n->rnn);
  if (!e)
    e = peer.cudnnSetRNNDescriptor_v8(n->rnn, algo, cell, bw && br ? CUDNN_RNN_DOUBLE_BIAS : bw ? CUDNN_RNN_SINGLE_INP_BIAS
                                      : br ? CUDNN_RNN_SINGLE_REC_BIAS : CUDNN_RNN_NO_BIAS,
                                      a->direction == QN_RNN_BOTH ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
                                      peer_type(x->dtype), peer_type(x->dtype == QN_F64 ? QN_F64 : QN_F32), math, (int32_t)x->dim[2],
                                      (int32_t)hidden, (int32_t)state, (int32_t)a->layers, n->dropout, CUDNN_RNN_PADDED_IO_ENABLED);
  if (!e && a->cell == QN_RNN_LSTM && a->clip < INFINITY)
    e = peer.cudnnRNNSetClip_v9(n->rnn, CUDNN_RNN_CLIP_MINMAX, -a->clip, a->clip);
  if (!e) e = sequences(&n->x, x, by_sequence, lengths);
  if (!e) e = sequences(&n->y, y, by_sequence, lengths);
  if (!e) e = states(&n->h, x->dtype, count, x->dim[1], state);
  if (!e) e = states(&n->c, x->dtype, count, x->dim[1], hidden);
  if (!e) e = peer.cudnnGetRNNWeightSpaceSize(handle, n->rnn, &n->weights);
  if (!e) e = peer.cudnnGetRNNTempSpaceSizes(handle, n->rnn, CUDNN_FWD_MODE_INFERENCE, n->x, &n->scratch, &reserve);
  return e ? e : place_weights(n, handle, r, count, gates);
}

static void release(qn_prepared *p)
{
  net *n = p->state;
  if (!n) return;
  if (n->h) peer.cudnnDestroyTensorDescriptor(n->h);
  if (n->c) peer.cudnnDestroyTensorDescriptor(n->c);
  if (n->x) peer.cudnnDestroyRNNDataDescriptor(n->x);
  if (n->y) peer.cudnnDestroyRNNDataDescriptor(n->y);
  if (n->rnn) peer.cudnnDestroyRNNDescriptor(n->rnn);
  if (n->dropout) peer.cudnnDestroyDropoutDescriptor(n->dropout);
  peer_host->free(n);
  p->state = NULL;
}

/* The variant's index; without one, the first. */
static int wanted(const char *variant)
{
  for (int i = 0; variant && variants[i]; i++)
    if (!strcmp(variant, variants[i])) return i;
  return 0;
}

static void declare(const qn_request *r, qn_prepared *p, uint32_t dtype, cudnnRNNAlgo_t algo)
{
  const bool half = qn_kit_bytes(dtype) == 2, sums_in_f16 = dtype == QN_F16 && algo == CUDNN_RNN_ALGO_STANDARD;
  if (!half && !rounds(r, dtype)) return;
  p->numerics.accumulator = sums_in_f16 ? QN_ACC_F16 : half ? QN_ACC_F32_TC : QN_ACC_TF32;
  if (half) p->numerics.store = dtype;
  p->traits |= QN_TRAIT_TENSOR_CORES | (half ? QN_TRAIT_REDUCED : QN_TRAIT_FINITE_ONLY);
  p->math = QN_MATH_FAST;
}

static qn_status prepare(const qn_request *r, qn_prepared *p)
{
  const qn_node *op = &r->op[0];
  const int at = wanted(r->variant);
  cudnnHandle_t handle;
  if (!fits(r, p)) return QN_UNSUPPORTED;
  const qn_value *x = &r->value[qn_role_at(op, role_of[X])];
  if (algorithm[at] != CUDNN_RNN_ALGO_STANDARD && qn_kit_bytes(x->dtype) != 2)
    return qn_refuse(p, "the tanh of cuDNN's persistent kernels has five digits", "x", "16 bits", "%s", qn_kit_name(x->dtype));
  qn_status s = peer_live(r, p);
  if (s) return s;
  const int most = op->first[op->n_roles] * 4;              /* each weight in at most four pieces */
  net *n = p->state = r->host->alloc(sizeof *n + (size_t)most * sizeof(piece));
  int *lengths = r->host->alloc((size_t)x->dim[1] * sizeof *lengths);
  for (int64_t b = 0; lengths && b < x->dim[1]; b++) lengths[b] = (int)x->dim[0];
  for (int i = 0; n && i < SINGLES; i++) n->value[i] = qn_role_at(op, role_of[i]);
  s = n && lengths ? peer_describe_begin(r->device, &handle) : QN_NO_MEMORY;
  if (!s) {
    cudnnStatus_t e = describe(n, handle, r, algorithm[at], lengths);
    peer_describe_end();
    if (e) s = qn_refuse(p, "cuDNN knows no such network", "", "", "%s", peer.cudnnGetErrorString(e));
  }
  r->host->free(lengths);
  if (s) {
    release(p);
    return s;
  }
  n->scratch_at = (n->weights + 255) & ~(size_t)255;
  p->workspace = n->scratch_at + n->scratch;
  p->variant = variants[at];
  declare(r, p, x->dtype, algorithm[at]);
  return QN_OK;
}

/* ---- run ------------------------------------------------------------------------------------------------ */

/* The buffer, if the op's tensors are it. */
static const char *in_place(const net *n, void *const *ptr)
{
  const char *base = (const char *)ptr[n->piece[0].value] + n->piece[0].from - n->piece[0].at;
  for (int i = 0; i < n->n; i++)
    if ((const char *)ptr[n->piece[i].value] + n->piece[i].from != base + n->piece[i].at) return NULL;
  return (uintptr_t)base % 256 ? NULL : base;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const net *n = p->state;
  const char *weights = in_place(n, launch->ptr);
  void *ptr[SINGLES];
  for (int i = 0; i < SINGLES; i++) ptr[i] = n->value[i] >= 0 ? launch->ptr[n->value[i]] : NULL;
  for (int i = 0; !weights && i < n->n; i++) {
    const piece *q = &n->piece[i];
    cudaError_t e = cudaMemcpyAsync((char *)launch->workspace + q->at, (const char *)launch->ptr[q->value] + q->from, q->bytes,
                                    cudaMemcpyDeviceToDevice, launch->stream);
    if (e) return peer_host->error(QN_DEVICE, cudaGetErrorString(e));
  }
  cudnnStatus_t e = peer.cudnnSetStream(launch->instance, launch->stream);
  if (!e)
    e = peer.cudnnRNNForward(launch->instance, n->rnn, CUDNN_FWD_MODE_INFERENCE, NULL, n->x, ptr[X], n->y, ptr[Y], n->h, ptr[H0], ptr[HT],
                             n->c, ptr[C0], ptr[CT], n->weights, weights ? weights : launch->workspace, n->scratch,
                             (char *)launch->workspace + n->scratch_at, 0, NULL);
  return e ? peer_failed("cudnnRNNForward", e) : QN_OK;
}

static const qn_engine rows[] = {
  { .name = "rnn", .op = QN_OP_RNN_FORWARD, .class_ = QN_CLASS_TUNED, .variants = variants,
    .prepare = prepare, .run = run, .release = release },
};
const qn_engine_list peer_rnn = { rows, sizeof rows / sizeof rows[0] };
