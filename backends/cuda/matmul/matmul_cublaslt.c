/* matmul_cublaslt.c -- matrix products by cuBLASLt, using its heuristic's first choice: a baseline for our engines.
 *
 *   y = alpha a b + beta c + bias     matrices with contiguous rows or columns, one batch stride; bias only where y is f32 or f64
 *
 * The library is loaded when the first product is built, not before: it is large, and problems that our own engines solve do not
 * need it. prepare therefore decides by what cuBLASLt documents and gives no estimate: the engine is tried last within its class,
 * and reached by a pin (matmul=cuda/cublaslt) or by measurement.
 *
 * Only under math fast: tf32, because rounding the largest finite numbers overflows to Inf; partial sums in the output's dtype;
 * and 8-bit floats, because cuBLASLt does not document how often sums are promoted (variant promoted) or they are not (raw). */
#include <cublasLt.h>
#include <pthread.h>
#include "cuda_backend.h"
#include "engines.h"
#include <quern/library.h>

/* ---- the library ---------------------------------------------------------------------------------- */

#define CUBLASLT_CALLS(X) \
  X(cublasLtCreate) X(cublasLtGetStatusName) X(cublasLtMatmul) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulDescInit_internal) \
  X(cublasLtMatmulDescSetAttribute) X(cublasLtMatrixLayoutInit_internal) X(cublasLtMatrixLayoutSetAttribute) \
  X(cublasLtMatmulPreferenceInit_internal) X(cublasLtMatmulPreferenceSetAttribute)
#define X(name) __typeof__(name) *name;
typedef struct cublaslt { CUBLASLT_CALLS(X) } cublaslt;
#undef X
#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x

enum { MAX_DEVICES = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* guards the statics below, each written once */
static qn_library library;
static cublaslt lt;
static bool opened;
static cublasLtHandle_t handles[MAX_DEVICES];               /* by device; handles may be shared by threads */

/* Path of the library, searched for once; false: library.why says why. Call under lock. */
static bool find_library(void)
{
  static const char *const folders[] = { CUDA_LIBDIR, "/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/lib/x86_64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu", "/usr/lib64", NULL };
  static bool searched;
  if (!searched) (void)qn_library_find(&library, cuda_host, "CUBLASLT", "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR), folders);
  searched = true;
  return library.path[0];
}

static bool open_library(void)
{
  static const struct { const char *name; void *slot; } call[] = {
#define X(name) { #name, &lt.name },
    CUBLASLT_CALLS(X)
#undef X
  };
  if (opened) return true;
  if (!find_library() || !qn_library_load(&library)) return false;
  for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
    void *p = qn_library_symbol(&library, call[i].name);
    if (!p) return false;
    memcpy(call[i].slot, &p, sizeof p);
  }
  return opened = true;
}

static qn_status failed(const char *call, cublasStatus_t status)
{
  char sentence[160];
  snprintf(sentence, sizeof sentence, "cuda: %s: %s", call, lt.cublasLtGetStatusName(status));
  return cuda_host->error(QN_DEVICE, sentence);
}

static qn_status handle_of(int ordinal, cublasLtHandle_t *handle)
{
  qn_status s = QN_OK;
  pthread_mutex_lock(&lock);
  if (!open_library()) s = cuda_host->error(QN_NO_BACKEND, library.why);
  else if (!handles[ordinal]) {
    cublasStatus_t e = lt.cublasLtCreate(&handles[ordinal]);
    if (e) s = failed("cublasLtCreate", e);
  }
  *handle = handles[ordinal];
  pthread_mutex_unlock(&lock);
  return s;
}

/* ---- the problem ------------------------------------------------------------------------------------ */

/* A matrix as cuBLASLt sees it: column major. op(matrix), P x Q, is the matrix or its transpose. */
typedef struct matrix { int32_t value; uint32_t dtype; int64_t rows, cols, ld, batch_stride; int32_t transposed; } matrix;

/* cuBLASLt writes a column-major D: y's transpose, or y itself where y's columns are contiguous.
 * D = alpha op(L) op(R) + beta C + bias. */
typedef struct state {
  matrix   l, r, d;
  int32_t  c, bias, alpha, beta;          /* value indices; -1: none */
  uint32_t alpha_dtype, beta_dtype;
  int64_t  batch;
  uint32_t scalar;                        /* dtype of alpha and beta as cuBLASLt reads them */
  cublasComputeType_t compute;
  bool     fast, raw;                     /* math fast is allowed; 8-bit sums are not promoted */
  cublasLtHandle_t handle;
  cublasLtMatmulDescOpaque_t   desc;      /* all but the address of bias */
  cublasLtMatrixLayoutOpaque_t layout_l, layout_r, layout_d;
  cublasLtMatmulAlgo_t         algo;
} state;

static cudaDataType_t type_of(uint32_t dtype)
{
  switch (dtype) {
  case QN_F64:  return CUDA_R_64F;
  case QN_F32:  return CUDA_R_32F;
  case QN_F16:  return CUDA_R_16F;
  case QN_BF16: return CUDA_R_16BF;
  case QN_E4M3: return CUDA_R_8F_E4M3;
  case QN_E5M2: return CUDA_R_8F_E5M2;
  case QN_I8:   return CUDA_R_8I;
  default:      return CUDA_R_32I;
  }
}

static const char *const variants[] = { "promoted", "raw", NULL };

static bool is_f8(uint32_t dtype) { return dtype == QN_E4M3 || dtype == QN_E5M2; }

/* Describes dims p and q of v as a P x Q matrix; false: neither dim is contiguous, or it is too large. */
static bool lies(matrix *m, const qn_request *r, int32_t value, int p, int q)
{
  const qn_value *v = &r->value[value];
  int64_t rows = v->dim[p], cols = v->dim[q], p_stride = v->stride[p], q_stride = v->stride[q];
  bool by_p = (p_stride == 1 || rows == 1) && (cols == 1 || q_stride >= rows);
  bool by_q = (q_stride == 1 || cols == 1) && (rows == 1 || p_stride >= cols);
  m->value = value;
  m->dtype = v->dtype;
  m->transposed = !by_p || (by_q && rows == 1 && cols > 1);
  m->rows = m->transposed ? cols : rows;
  m->cols = m->transposed ? rows : cols;
  m->ld = m->cols == 1 ? m->rows : m->transposed ? p_stride : q_stride;
  return (by_p || by_q) && m->rows <= INT32_MAX && m->cols <= INT32_MAX && m->ld <= INT32_MAX;
}

/* Merges the leading dims of y, a and b into one batch dim; false if one stride cannot describe them. */
static bool merge_batch(state *st, const qn_request *r)
{
  matrix *m[3] = { &st->d, &st->l, &st->r };
  qn_value lead[3];
  qn_nest nest;
  for (int i = 0; i < 3; i++) {
    lead[i] = r->value[m[i]->value];
    lead[i].rank -= 2;
  }
  qn_nest_begin(&nest, &lead[0]);
  (void)qn_nest_add(&nest, &lead[1]);
  (void)qn_nest_add(&nest, &lead[2]);
  qn_nest_simplify(&nest);
  st->batch = nest.rank ? nest.dim[0] : 1;
  for (int i = 0; i < 3; i++) m[i]->batch_stride = nest.rank ? nest.stride[i][0] : 0;
  return nest.rank <= 1 && st->batch <= 65535;
}

/* ---- prepare ------------------------------------------------------------------------------------------ */

/* The heuristic queries the live device; it cannot answer for a device model, or for a device limited to fewer multiprocessors. */
static bool is_live(const qn_device *device)
{
  int units = 0;
  if (device->ordinal < 0 || device->ordinal >= MAX_DEVICES) return false;
  return cudaDeviceGetAttribute(&units, cudaDevAttrMultiProcessorCount, device->ordinal) == cudaSuccess && units == device->units;
}

/* Chooses the compute type; false after a refusal. */
static bool choose_compute(state *st, const qn_request *r, qn_prepared *out)
{
  uint32_t a = st->l.dtype, b = st->r.dtype, y = st->d.dtype;
  int64_t k = st->l.transposed ? st->l.rows : st->l.cols;
  const qn_value *lv = &r->value[st->l.value], *rv = &r->value[st->r.value], *dv = &r->value[st->d.value];
  bool tn = st->l.transposed && !st->r.transposed && lv->align >= 16 && rv->align >= 16 && dv->align >= 16;
  st->scalar = QN_F32;
  st->fast = r->demands->math >= QN_MATH_FAST;
  st->compute = CUBLAS_COMPUTE_32F;
  out->math = QN_MATH_STRICT;
  if (a == QN_F64) {
    st->scalar = QN_F64;
    st->compute = CUBLAS_COMPUTE_64F;
  } else if (a == QN_F32) {
    if (st->fast) {
      st->compute = CUBLAS_COMPUTE_32F_FAST_TF32;
      out->numerics.accumulator = QN_ACC_TF32;
      out->traits |= QN_TRAIT_FINITE_ONLY;
    }
  } else if (a == QN_F16 || a == QN_BF16) {
    out->numerics.accumulator = QN_ACC_F32_TC;
  } else if (is_f8(a)) {
    if (a == QN_E5M2 && b == QN_E5M2) return qn_refuse(out, "dtypes", "a, b", "e4m3 for one of them", "%s", "e5m2"), false;
    if (!tn || st->d.rows % 16 || st->d.cols % 16 || k % 16 || st->l.ld % 16 || st->r.ld % 16 || st->d.ld % 16)
      return qn_refuse(out, "8-bit operands with k contiguous", "a, b", "dims, strides and addresses multiples of 16", "%s", ""), false;
    if (r->device->arch_major < 9)
      return qn_refuse(out, "8-bit Tensor Cores", "", "compute capability 9.0", "%d", r->device->arch_major), false;
    st->raw = r->variant ? !strcmp(r->variant, "raw") : st->fast;
    out->variant = variants[st->raw];
    out->numerics = (qn_numerics){ .accumulator = QN_ACC_F8_FAST, .promote = st->raw ? 0 : 128 };
    out->traits |= QN_TRAIT_REDUCED;
  } else if (a == QN_I8 && b == QN_I8) {
    if (!tn || st->d.rows % 4 || k % 4 || st->d.cols % 4 || st->l.ld % 4 || st->r.ld % 4 || st->bias >= 0)
      return qn_refuse(out, "8-bit operands with k contiguous, no bias", "a, b", "dims and strides multiples of 4", "%s", ""), false;
    st->scalar = QN_I32;
    st->compute = CUBLAS_COMPUTE_32I;
  } else return qn_refuse(out, "dtypes", "a", "f64, f32, f16, bf16, e4m3, e5m2 or i8", "%s", qn_kit_name(a)), false;
  if (!is_f8(a) && a != b) return qn_refuse(out, "dtypes", "b", qn_kit_name(a), "%s", qn_kit_name(b)), false;
  if (r->variant && !is_f8(a)) return qn_refuse(out, "variants are for 8-bit floats", "a", "e4m3 or e5m2", "%s", qn_kit_name(a)), false;
  if (st->fast && (y == QN_F16 || y == QN_BF16)) {          /* partial sums may be kept in y's dtype */
    out->numerics.store = y;
    out->traits |= QN_TRAIT_REDUCED;
  }
  if (out->traits & (QN_TRAIT_REDUCED | QN_TRAIT_FINITE_ONLY)) out->math = QN_MATH_FAST;
  return true;
}

static bool host_scalar(const qn_request *r, int32_t value)
{
  return value < 0 || (r->value[value].flags & QN_VALUE_HOST);
}

static qn_status describe(state *st, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int32_t a = qn_role(op, QN_ROLE_MATMUL_A), b = qn_role(op, QN_ROLE_MATMUL_B), y = qn_role(op, QN_ROLE_MATMUL_Y);
  const qn_value *yv = &r->value[y];
  int across = yv->rank - 1, down = yv->rank - 2;
  bool as_is = yv->dim[across] > 1 && yv->stride[across] != 1;        /* y's columns are contiguous */
  int p = as_is ? down : across, q = as_is ? across : down;
  st->c = qn_role(op, QN_ROLE_MATMUL_C);
  st->bias = qn_role(op, QN_ROLE_MATMUL_BIAS);
  st->alpha = qn_role(op, QN_ROLE_MATMUL_ALPHA);
  st->beta = qn_role(op, QN_ROLE_MATMUL_BETA);
  if (!lies(&st->d, r, y, p, q) || st->d.transposed)
    return qn_refuse(out, "one dim contiguous, no broadcast", "y", "", "%s", "other strides");
  if (!lies(&st->l, r, as_is ? a : b, p, q))
    return qn_refuse(out, "one dim contiguous, no broadcast", as_is ? "a" : "b", "", "%s", "other strides");
  if (!lies(&st->r, r, as_is ? b : a, p, q))
    return qn_refuse(out, "one dim contiguous, no broadcast", as_is ? "b" : "a", "", "%s", "other strides");
  if (!merge_batch(st, r))
    return qn_refuse(out, "leading dims must merge into one of at most 65535", "y", "one run of strides", "%s", "more");
  if (!host_scalar(r, st->alpha) || !host_scalar(r, st->beta))
    return qn_refuse(out, "a scalar on the device may turn out 0, and then nothing is to be read", "alpha", "a host scalar", "%s", "");
  if (st->alpha >= 0 && r->value[st->alpha].scalar == QN_SCALAR_ZERO) return qn_refuse(out, "nothing to multiply", "alpha", "not 0", "0");
  if (st->beta >= 0 && r->value[st->beta].scalar == QN_SCALAR_ZERO) st->c = st->beta = -1;
  if (st->alpha >= 0) st->alpha_dtype = r->value[st->alpha].dtype;
  if (st->beta >= 0) st->beta_dtype = r->value[st->beta].dtype;
  if (st->c >= 0 && (!qn_same_layout(&r->value[st->c], yv) || r->value[st->c].dtype != yv->dtype))
    return qn_refuse(out, "c lies as y does", "c", "y's dtype and strides", "%s", "another");
  if (st->bias >= 0) {
    const qn_value *bias = &r->value[st->bias];
    if (as_is) return qn_refuse(out, "a bias runs along y's contiguous dim", "y", "contiguous rows", "%s", "contiguous columns");
    if (yv->dtype != QN_F32 && yv->dtype != QN_F64)
      return qn_refuse(out, "with a bias some of its kernels round to y's dtype twice", "y", "f32 or f64", "%s", qn_kit_name(yv->dtype));
    if (bias->dtype != yv->dtype || (bias->dim[0] > 1 && bias->stride[0] != 1))
      return qn_refuse(out, "a bias is packed, in y's dtype", "bias", qn_kit_name(yv->dtype), "%s", qn_kit_name(bias->dtype));
  }
  return choose_compute(st, r, out) ? QN_OK : QN_UNSUPPORTED;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  state local = { 0 };
  qn_status s = describe(&local, r, out);
  if (s) return s;
  if (!is_live(r->device)) {
    qn_refuse(out, "cuBLASLt's heuristic asks a live device", "", "a device, as it is", "%s", r->device->model);
    return QN_NO_BACKEND;
  }
  pthread_mutex_lock(&lock);
  bool found = find_library();
  pthread_mutex_unlock(&lock);
  if (!found) {
    qn_refuse(out, library.why, "", "", "%s", "");
    return QN_NO_BACKEND;
  }
  /* the size cuBLAS recommends on sm_90 */
  out->workspace = r->demands->workspace_limit < 32 << 20 ? r->demands->workspace_limit / 256 * 256 : 32 << 20;
  return cuda_keep(out, &local, sizeof local);
}

/* ---- build --------------------------------------------------------------------------------------------- */

static void describe_layout(cublasLtMatrixLayoutOpaque_t *layout, const matrix *m, int64_t batch)
{
  int32_t count = (int32_t)batch;
  lt.cublasLtMatrixLayoutInit_internal(layout, sizeof *layout, type_of(m->dtype), (uint64_t)m->rows, (uint64_t)m->cols, m->ld);
  lt.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  lt.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->batch_stride, sizeof m->batch_stride);
}

static void set(cublasLtMatmulDescOpaque_t *desc, cublasLtMatmulDescAttributes_t attribute, const void *value, size_t bytes)
{
  lt.cublasLtMatmulDescSetAttribute(desc, attribute, value, bytes);
}

static qn_status build(const qn_request *r, qn_prepared *p)
{
  state *st = p->state;
  qn_status s = handle_of(r->device->ordinal, &st->handle);
  if (s) return s;
  cublasOperation_t op[] = { CUBLAS_OP_N, CUBLAS_OP_T };
  cublasLtEpilogue_t with_bias = CUBLASLT_EPILOGUE_BIAS;
  int8_t raw = st->raw;
  lt.cublasLtMatmulDescInit_internal(&st->desc, sizeof st->desc, st->compute, type_of(st->scalar));
  set(&st->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op[st->l.transposed], sizeof *op);
  set(&st->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op[st->r.transposed], sizeof *op);
  if (is_f8(st->l.dtype)) set(&st->desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &raw, sizeof raw);
  if (st->bias >= 0) set(&st->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &with_bias, sizeof with_bias);
  describe_layout(&st->layout_l, &st->l, st->batch);
  describe_layout(&st->layout_r, &st->r, st->batch);
  describe_layout(&st->layout_d, &st->d, st->batch);

  cublasLtMatmulPreferenceOpaque_t preference;
  size_t workspace = p->workspace;
  uint32_t align[] = { r->value[st->l.value].align, r->value[st->r.value].align, r->value[st->d.value].align };
  uint32_t reductions = st->fast ? CUBLASLT_REDUCTION_SCHEME_MASK : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  if (st->c >= 0 && r->value[st->c].align < align[2]) align[2] = r->value[st->c].align;
  lt.cublasLtMatmulPreferenceInit_internal(&preference, sizeof preference);
  lt.cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
  lt.cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions);
  lt.cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align[0], sizeof *align);
  lt.cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align[1], sizeof *align);
  lt.cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align[2], sizeof *align);
  lt.cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align[2], sizeof *align);

  cublasLtMatmulHeuristicResult_t first;
  int found = 0;
  cublasStatus_t e = lt.cublasLtMatmulAlgoGetHeuristic(st->handle, &st->desc, &st->layout_l, &st->layout_r, &st->layout_d, &st->layout_d,
                                                       &preference, 1, &first, &found);
  if (e || !found) return failed("cublasLtMatmulAlgoGetHeuristic", e ? e : CUBLAS_STATUS_NOT_SUPPORTED);
  st->algo = first.algo;
  p->workspace = first.workspaceSize;                       /* at most what prepare reserved */
  return QN_OK;
}

/* ---- run ------------------------------------------------------------------------------------------------- */

typedef union scalar { double f64; float f32; int32_t i32; } scalar;

static scalar load(const state *st, const qn_launch *launch, int32_t value, uint32_t dtype, double otherwise)
{
  scalar s = { 0 };
  double v = value >= 0 ? qn_load_f64(launch->ptr[value], dtype) : otherwise;
  if (st->scalar == QN_F64) s.f64 = v;
  else if (st->scalar == QN_F32) s.f32 = (float)v;
  else s.i32 = (int32_t)v;
  return s;
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  state st = *(const state *)p->state;                      /* a copy per launch: the bias address is written into the descriptor */
  void *d = launch->ptr[st.d.value];
  const void *c = st.c >= 0 ? launch->ptr[st.c] : d;
  scalar alpha = load(&st, launch, st.alpha, st.alpha_dtype, 1), beta = load(&st, launch, st.beta, st.beta_dtype, st.c >= 0);
  if (st.bias >= 0) set(&st.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &launch->ptr[st.bias], sizeof(void *));
  cublasStatus_t e = lt.cublasLtMatmul(st.handle, &st.desc, &alpha, launch->ptr[st.l.value], &st.layout_l, launch->ptr[st.r.value],
                                       &st.layout_r, &beta, c, &st.layout_d, d, &st.layout_d, &st.algo, launch->workspace, p->workspace,
                                       launch->stream);
  return e ? failed("cublasLtMatmul", e) : QN_OK;
}

static const qn_engine rows[] = {
  { .name = "cublaslt", .op = QN_OP_MATMUL, .class_ = QN_CLASS_TUNED, .traits = QN_TRAIT_DETERMINISTIC, .variants = variants,
    .prepare = prepare, .build = build, .run = run, .release = cuda_release },
};
CUDA_ENGINES(matmul_cublaslt) = { rows, sizeof rows / sizeof *rows };
