/* quern.h -- the primitives of deep learning, on whichever backend is fastest here.
 *
 *   shapes    outermost first; dims and strides count elements, sizes count bytes
 *   logical   dim order is N, C, then spatial, whatever the strides; filters K, C/groups, spatial
 *   status    QN_OK is 0, errors are negative and leave a sentence in qn_last_error();
 *             a failed call leaves its inputs untouched and its context usable
 *   owners    the caller owns tensors' memory and destroys what a _create call made
 *   threads   a context is used by one thread at a time; plans and graphs are immutable and shared
 *   numbers   on a CPU are computed in the calling thread's floating-point mode, which must be the one that C begins with: to
 *             nearest, subnormals kept (a program linked with -ffast-math flushes them, and is warned)
 *
 * A first program:
 *
 *   qn_context *ctx;
 *   qn_context_create(NULL, &ctx);
 *   float a[6] = {1,2,3,4,5,6}, b[6] = {1,0,0,1,1,1}, y[4];
 *   qn_tensor ta = qn_tensor_2d(a, QN_F32, 2, 3), tb = qn_tensor_2d(b, QN_F32, 3, 2),
 *             ty = qn_tensor_2d(y, QN_F32, 2, 2);
 *   if (qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty)) puts(qn_last_error());
 *   qn_context_synchronize(ctx);
 *   qn_context_destroy(ctx);
 *
 * The chapters: status, tensors, contexts and their options, memory, ops (ops.h), graphs and plans,
 * recordings, log. Those who write tools go on to tools.h, those who bring engines to backend.h. */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H
#include <stddef.h>
#include <stdint.h>
#include <quern/opnum.h>
#ifdef __cplusplus
extern "C" {
#endif

#define QN_VERSION "0.1.0"
const char *qn_version(void);         /* of the library that is loaded */

/* ---- status ------------------------------------------------------------------------------- */

#define QN_STATUS_MAP(X)                                                                \
  X(BAD_ARGUMENT, -1, "an argument breaks a rule")                                      \
  X(UNSUPPORTED,  -2, "no engine takes this problem under the demands in force")        \
  X(NO_MEMORY,    -3, "host or device memory ran out")                                  \
  X(NO_BACKEND,   -4, "a backend that was asked for cannot be had")                     \
  X(DEVICE,       -5, "the device reported an error")                                   \
  X(NOT_READY,    -6, "the call would plan, build or grow, and cannot now")             \
  X(SYSTEM,       -7, "the operating system refused")                                   \
  X(SYNTAX,       -8, "text that is not a problem line")                                \
  X(INTERNAL,     -9, "a defect in Quern or in a backend: please report it")
typedef enum qn_status {
  QN_OK = 0,
#define QN_STATUS_ENUM(name, value, text) QN_##name = value,
  QN_STATUS_MAP(QN_STATUS_ENUM)
#undef QN_STATUS_ENUM
  QN_STATUS_FORCE_INT = 0x7fffffff
} qn_status;

const char *qn_status_text(qn_status status);   /* the sentence of the map; never NULL */
const char *qn_last_error(void);                /* of this thread's last failed call; "" if none; never NULL */

/* ---- dtypes ------------------------------------------------------------------------------- */

/* Immutable numbers. X(enumerator, number, name in problem lines, bytes) */
#define QN_DTYPE_MAP(X)                                                                 \
  X(F64,  1, "f64", 8)   X(F32, 2, "f32", 4)   X(F16, 3, "f16", 2)   X(BF16, 4, "bf16", 2)  \
  X(E4M3, 5, "e4m3", 1)  X(E5M2, 6, "e5m2", 1) X(I8,  7, "i8",  1)   X(U8,   8, "u8",   1)  \
  X(I32,  9, "i32", 4)   X(I64, 10, "i64", 8)  X(BOOL, 11, "bool", 1)                       \
  X(E8M0, 12, "e8m0", 1)    /* 2^(octet - 127), 255 NaN: scales of quantization, and nothing else; move them as u8 */
enum {
  QN_DTYPE_NONE = 0,
#define QN_DTYPE_ENUM(name, value, text, bytes) QN_##name = value,
  QN_DTYPE_MAP(QN_DTYPE_ENUM)
#undef QN_DTYPE_ENUM
  QN_DTYPE_COUNT
};
size_t      qn_dtype_bytes(uint32_t dtype);     /* 0 for a number that is no dtype */
const char *qn_dtype_name(uint32_t dtype);      /* "?" for a number that is no dtype */

/* ---- tensors ------------------------------------------------------------------------------ */

#define QN_MAX_RANK 8

/* A view: nobody allocates it, and a call borrows it only while it runs. Frozen for v1.
 * stride[i] counts elements between neighbours along dim i; 0 (a broadcast) on inputs only. */
typedef struct qn_tensor {
  void    *data;
  uint32_t dtype;                     /* QN_F32, ... */
  int32_t  rank;                      /* 0 (a scalar) to QN_MAX_RANK */
  int64_t  dim[QN_MAX_RANK];          /* 0 is legal and makes most ops a successful no-op */
  int64_t  stride[QN_MAX_RANK];
  uint32_t flags;                     /* QN_HOST or 0 */
  uint32_t reserved[3];               /* must be 0 */
} qn_tensor;

#define QN_HOST 1u   /* a rank-0 value in host memory, read during the call (else: on the device, when the work runs) */

qn_tensor qn_tensor_make(void *data, uint32_t dtype, int rank, const int64_t *dim);   /* packed, last dim fastest */
qn_tensor qn_tensor_1d(void *data, uint32_t dtype, int64_t n);
qn_tensor qn_tensor_2d(void *data, uint32_t dtype, int64_t rows, int64_t cols);
qn_tensor qn_tensor_nchw(void *data, uint32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w);
qn_tensor qn_tensor_nhwc(void *data, uint32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w); /* dims stay N,C,H,W */
qn_tensor qn_scalar(const void *host_value, uint32_t dtype);                          /* QN_HOST, rank 0 */
qn_tensor qn_transposed(const qn_tensor *t);    /* the last two dims swapped; a view of the same memory */
int64_t   qn_tensor_elements(const qn_tensor *t);

/* ---- contexts ----------------------------------------------------------------------------- */

/* A device, a stream, options, an arena for workspace. Cheap: make one for each thread. */
typedef struct qn_context qn_context;

/* options: NULL, or "key=value" strings closed by NULL, each overriding the environment variable of
 * the same name (QUERN_BACKEND is "backend=..."); `quern-info config` lists them all. */
qn_status qn_context_create(const char *const options[], qn_context **ctx_p);
void      qn_context_destroy(qn_context *ctx);            /* waits for its own work; NULL is a no-op */
qn_status qn_context_set(qn_context *ctx, const char *key, const char *value);  /* not backend, device, device_model, plugin_path */
const char *qn_context_get(const qn_context *ctx, const char *key);   /* what is in force, until the next set; NULL: no such key */
qn_status qn_context_synchronize(qn_context *ctx);        /* until all that was enqueued is done */
const char *qn_context_device(const qn_context *ctx);     /* "cpu", "cuda:0 (NVIDIA H200)" */

/* The caller's stream (a cudaStream_t as void *) in place of the context's own; NULL: the context's own again, which does not wait
 * for CUDA's default stream. For the default stream itself pass cudaStreamLegacy, (void *)1, or cudaStreamPerThread, (void *)2.
 * Work enqueued on the new stream first waits for that of the old one. */
qn_status qn_context_set_stream(qn_context *ctx, void *native_stream);
void     *qn_context_stream(const qn_context *ctx);

/* Workspace from the caller: alloc returns NULL when it cannot; sizes are bytes, 256-byte aligned. */
typedef struct qn_allocator {
  uint64_t struct_size;
  void *(*alloc)(void *user, size_t bytes);
  void  (*free)(void *user, void *p, size_t bytes);
  void *user;
} qn_allocator;
/* NULL: the device's own. Before the first recording. */
qn_status qn_context_set_allocator(qn_context *ctx, const qn_allocator *allocator);

/* ---- memory: the context's device, which on a CPU is the host ------------------------------ */

qn_status qn_alloc(qn_context *ctx, size_t bytes, void **p);      /* 256-byte aligned; 0 bytes gives NULL */
void      qn_free(qn_context *ctx, void *p);                      /* NULL is a no-op */
/* Copies are ordered with the context's work. These two return when `bytes` have arrived. */
qn_status qn_copy_to_device(qn_context *ctx, void *device, const void *host, size_t bytes);
qn_status qn_copy_to_host(qn_context *ctx, void *host, const void *device, size_t bytes);
/* These two enqueue (a CPU copies at once): only after qn_context_synchronize have the host's bytes been read, or arrived, so
 * leave them alone until then. With ordinary memory CUDA may make the call wait; with memory of qn_alloc_host it does not.
 * They may be part of a recording, whose replays copy anew: the host's memory must then be of qn_alloc_host. */
qn_status qn_copy_to_device_async(qn_context *ctx, void *device, const void *host, size_t bytes);
qn_status qn_copy_to_host_async(qn_context *ctx, void *host, const void *device, size_t bytes);
/* Host memory that the device reaches by itself (CUDA: pinned); 256-byte aligned. Freed when no copy is under way. */
qn_status qn_alloc_host(qn_context *ctx, size_t bytes, void **p);
void      qn_free_host(qn_context *ctx, void *p);

/* ---- ops ---------------------------------------------------------------------------------- */

/* One op as pointers, the generic form of every call in ops.h: nothing is copied. args follow the
 * schema's order of roles (inputs, then outputs); an absent optional role has n 0. */
typedef struct qn_arg {
  const qn_tensor *t;                 /* n tensors, one after the other (more than one: list roles only) */
  int64_t          n;
} qn_arg;
typedef struct qn_op {
  uint32_t      kind;                 /* QN_OP_... */
  uint32_t      n_args;               /* the schema's number of roles */
  const void   *attr;                 /* the op's attribute struct, or NULL for its defaults */
  const qn_arg *arg;
} qn_op;
qn_status qn_run(qn_context *ctx, const qn_op *op);

/* ---- graphs and plans --------------------------------------------------------------------- */

/* Ops joined by tensors, written as problem lines (docs/problem-lines.md):
 *
 *   in x bf16/64x64x56x56/nhwc
 *   in w bf16/64x64x3x3/nhwc
 *   y0 = conv_forward x=x w=w pad=1
 *   out y = relu x=y0
 *
 * or a single op, whose inputs and outputs are then the graph's, in the order of its roles. */
typedef struct qn_graph qn_graph;
qn_status qn_graph_parse(const char *lines, qn_graph **graph_p);
void      qn_graph_destroy(qn_graph *graph);
/* Canonical text, closed by '\0' within `bytes`; returns the length it has or would have had. */
size_t    qn_graph_print(const qn_graph *graph, char *text, size_t bytes);
int       qn_graph_pointers(const qn_graph *graph);       /* how many pointers execute takes */
int       qn_graph_index(const qn_graph *graph, const char *name);   /* of an `in` or `out` among them, of a single op a role; -1: none */

/* A graph bound to chosen engines. Executing allocates nothing and never synchronises. */
typedef struct qn_plan qn_plan;
qn_status qn_plan_create(qn_context *ctx, const qn_graph *graph, qn_plan **plan_p);
void      qn_plan_destroy(qn_plan *plan);                 /* NULL is a no-op */
/* pointers: one for each `in`, then each `out`, in the order of their lines. A graph promises 16-byte
 * alignment unless its lines say otherwise, and the same pointer where an output is `over` an input; what breaks this is refused. */
qn_status qn_plan_execute(qn_context *ctx, const qn_plan *plan, void *const pointers[]);
/* For a plan made by another context of the same device: grow ctx's arena to it. */
qn_status qn_context_reserve(qn_context *ctx, const qn_plan *plan);
/* Workspace and counters from the caller for this execution alone (recordings that run side by side must).
 * workspace: qn_plan_workspace() bytes, 256-byte aligned; counters: qn_plan_counters() bytes, 16-byte aligned, zero, left zero. */
qn_status qn_plan_execute_with(qn_context *ctx, const qn_plan *plan, void *const pointers[],
                               void *workspace, void *counters);
size_t    qn_plan_workspace(const qn_plan *plan);
size_t    qn_plan_counters(const qn_plan *plan);
/* One line for each part: engine, class, numerics, traits, workspace, its problem. Returns as qn_graph_print. */
size_t    qn_plan_print(const qn_plan *plan, char *text, size_t bytes);

/* ---- recordings --------------------------------------------------------------------------- */

/* What ctx executes between begin and end, replayable as one: a CUDA graph (parts that no other part of their plan waits for run beside
 * the rest), on a CPU a list. Run the step once first: under capture nothing is planned or built. Host scalars keep the value they had. */
typedef struct qn_recording qn_recording;
qn_status qn_record_begin(qn_context *ctx);
qn_status qn_record_end(qn_context *ctx, qn_recording **recording_p);
qn_status qn_recording_replay(qn_context *ctx, qn_recording *recording);
void      qn_recording_destroy(qn_recording *recording);  /* also after its context; NULL is a no-op */

/* ---- log ---------------------------------------------------------------------------------- */

enum { QN_LOG_ERROR = 0, QN_LOG_WARN = 1, QN_LOG_INFO = 2, QN_LOG_DEBUG = 3 };
/* fn NULL: stderr. Messages above QUERN_LOG's level (default warn) are not made. */
void qn_set_log(void (*fn)(void *user, int level, const char *message), void *user);

#ifdef __cplusplus
}
#endif
#include <quern/ops.h>
#endif
