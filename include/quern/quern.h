/* quern.h -- deep-learning primitives, run by the fastest backend available.
 *
 *   shapes    outermost dim first; dims and strides count elements, sizes count bytes
 *   logical   dim order is N, C, then spatial, whatever the strides; filters K, C/groups, spatial
 *   status    QN_OK is 0, errors are negative and leave a sentence in qn_last_error();
 *             after a failed call inputs are untouched, outputs unspecified, the context still usable
 *   owners    the caller owns the tensors' memory and destroys what a _create call made; a call with what is destroyed
 *             is refused with a sentence
 *   threads   a context is used by one thread at a time; plans and graphs are immutable and may be shared. A call with a
 *             context that is in another thread's call is refused; if two enter at the same moment, at least one is told
 *   fork      a child makes its own contexts and plans: the parent's are refused. If the parent had threads, a CPU context of
 *             the child's computes on one, since OpenMP does not survive fork, and the log says so once
 *   stack     48 KiB suffice for a call on a CPU context, and for each of OpenMP's threads (OMP_STACKSIZE); what a GPU's driver
 *             or a plugin's library takes is its own
 *   numbers   a CPU context computes in the calling thread's floating-point mode, which must be C's default: round to
 *             nearest, keep subnormals (a program linked with -ffast-math flushes them, and gets a warning)
 *   busy CPU  a machine that other programs use too wants OMP_WAIT_POLICY=passive in the environment: OpenMP's waiting
 *             threads spin otherwise, and a CPU context takes 8 to 20 times as long (`quern-info doctor` says so)
 *
 * A first program:
 *
 *   float a[6] = {1,2,3,4,5,6}, b[6] = {1,0,0,1,1,1}, y[4];
 *   void *da, *db, *dy;                                    the same on the device, which may be a GPU
 *   qn_context *ctx;
 *   qn_context_create(NULL, &ctx);
 *   qn_alloc(ctx, sizeof a, &da), qn_alloc(ctx, sizeof b, &db), qn_alloc(ctx, sizeof y, &dy);
 *   qn_copy_to_device(ctx, da, a, sizeof a), qn_copy_to_device(ctx, db, b, sizeof b);
 *   qn_tensor ta = qn_tensor_2d(da, QN_F32, 2, 3), tb = qn_tensor_2d(db, QN_F32, 3, 2), ty = qn_tensor_2d(dy, QN_F32, 2, 2);
 *   if (qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty)) puts(qn_last_error());
 *   qn_copy_to_host(ctx, y, dy, sizeof y);
 *   qn_context_destroy(ctx);
 *
 * Chapters: status, dtypes, tensors, contexts and their options, memory, ops (ops.h), graphs and plans,
 * recordings, log. Authors of tools go on to tools.h, authors of engines to backend.h. */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H
#include <stddef.h>
#include <stdint.h>
#include <quern/opnum.h>
#ifdef __cplusplus
extern "C" {
#endif

#define QN_VERSION "0.1.0"
const char *qn_version(void);         /* of the library loaded at run time */

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

const char *qn_status_text(qn_status status);   /* the sentence in the map above; never NULL */
const char *qn_last_error(void);                /* the sentence of this thread's last failed call; "" if none; never NULL */

/* ---- dtypes ------------------------------------------------------------------------------- */

/* The numbers never change. X(enumerator, number, name in problem lines, bytes) */
#define QN_DTYPE_MAP(X)                                                                 \
  X(F64,  1, "f64", 8)   X(F32, 2, "f32", 4)   X(F16, 3, "f16", 2)   X(BF16, 4, "bf16", 2)  \
  X(E4M3, 5, "e4m3", 1)  X(E5M2, 6, "e5m2", 1) X(I8,  7, "i8",  1)   X(U8,   8, "u8",   1)  \
  X(I32,  9, "i32", 4)   X(I64, 10, "i64", 8)  X(BOOL, 11, "bool", 1)                       \
  X(E8M0, 12, "e8m0", 1)    /* 2^(byte - 127), 255 is NaN: for scales of quantization only; copy them as u8 */
enum {
  QN_DTYPE_NONE = 0,
#define QN_DTYPE_ENUM(name, value, text, bytes) QN_##name = value,
  QN_DTYPE_MAP(QN_DTYPE_ENUM)
#undef QN_DTYPE_ENUM
  QN_DTYPE_COUNT
};
size_t      qn_dtype_bytes(uint32_t dtype);     /* 0 if dtype is not a dtype */
const char *qn_dtype_name(uint32_t dtype);      /* "?" if dtype is not a dtype */

/* ---- tensors ------------------------------------------------------------------------------ */

#define QN_MAX_RANK 8

/* A view, held by value: the memory behind it is the caller's, and a call keeps no reference to the struct. Frozen for v1.
 * stride[i]: elements between neighbours along dim i; 0 (broadcast) is allowed on inputs only. */
typedef struct qn_tensor {
  void    *data;
  uint32_t dtype;                     /* QN_F32, ... */
  int32_t  rank;                      /* 0 (a scalar) to QN_MAX_RANK */
  int64_t  dim[QN_MAX_RANK];          /* 0 is legal and makes most ops a successful no-op */
  int64_t  stride[QN_MAX_RANK];
  uint32_t flags;                     /* QN_HOST or 0 */
  uint32_t reserved[3];               /* must be 0 */
} qn_tensor;

#define QN_HOST 1u   /* a rank-0 value in host memory, read during the call (without it: in device memory, read when the work runs) */

qn_tensor qn_tensor_make(void *data, uint32_t dtype, int rank, const int64_t *dim);   /* packed, last dim fastest */
qn_tensor qn_tensor_1d(void *data, uint32_t dtype, int64_t n);
qn_tensor qn_tensor_2d(void *data, uint32_t dtype, int64_t rows, int64_t cols);
qn_tensor qn_tensor_nchw(void *data, uint32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w);
qn_tensor qn_tensor_nhwc(void *data, uint32_t dtype, int64_t n, int64_t c, int64_t h, int64_t w); /* dims stay N,C,H,W */
qn_tensor qn_scalar(const void *host_value, uint32_t dtype);                          /* rank 0, QN_HOST; host_value is not copied */
qn_tensor qn_transposed(const qn_tensor *t);    /* the last two dims swapped; a view of the same memory */
int64_t   qn_tensor_elements(const qn_tensor *t);

/* ---- contexts ----------------------------------------------------------------------------- */

/* A device, a stream, options and a workspace arena. Cheap: make one per thread. */
typedef struct qn_context qn_context;

/* options: NULL, or an array of "key=value" strings ended by NULL. Each overrides the environment variable of the same
 * name ("backend=..." overrides QUERN_BACKEND), and QUERN_OVERRIDE overrides both; `quern-info config` lists them all. */
qn_status qn_context_create(const char *const options[], qn_context **ctx_p);
void      qn_context_destroy(qn_context *ctx);            /* waits for its enqueued work; NULL is a no-op */
qn_status qn_context_set(qn_context *ctx, const char *key, const char *value);  /* any key but backend, device, device_model, plugin_path */
const char *qn_context_get(const qn_context *ctx, const char *key);   /* the value in force, valid until the next set; NULL: no such key */
qn_status qn_context_synchronize(qn_context *ctx);        /* waits until all enqueued work is done */
const char *qn_context_device(const qn_context *ctx);     /* "cpu", "cuda:0 (NVIDIA H200)" */

/* Replaces the context's own stream by the caller's (a cudaStream_t passed as void *), which the caller keeps alive; NULL restores
 * the context's own, which does not synchronise with CUDA's default stream. To use the default stream itself pass cudaStreamLegacy,
 * (void *)1, or cudaStreamPerThread, (void *)2. Work enqueued on the new stream first waits for the work of the old one. */
qn_status qn_context_set_stream(qn_context *ctx, void *native_stream);
void     *qn_context_stream(const qn_context *ctx);

/* The caller's allocator of workspace. alloc: sizes in bytes; returns 256-byte aligned memory, or NULL on failure. */
typedef struct qn_allocator {
  uint64_t struct_size;
  void *(*alloc)(void *user, size_t bytes);
  void  (*free)(void *user, void *p, size_t bytes);
  void *user;
} qn_allocator;
/* Copies *allocator; NULL: the device's own. Must come before the context's first recording. */
qn_status qn_context_set_allocator(qn_context *ctx, const qn_allocator *allocator);

/* ---- memory of the context's device (for a CPU context: host memory) ----------------------- */

qn_status qn_alloc(qn_context *ctx, size_t bytes, void **p);      /* 256-byte aligned; 0 bytes gives NULL */
void      qn_free(qn_context *ctx, void *p);                      /* NULL is a no-op */
/* Copies take place in stream order. These two return when all `bytes` have been copied. */
qn_status qn_copy_to_device(qn_context *ctx, void *device, const void *host, size_t bytes);
qn_status qn_copy_to_host(qn_context *ctx, void *host, const void *device, size_t bytes);
/* These two only enqueue (a CPU context copies at once): the caller must not touch the host memory until qn_context_synchronize.
 * With ordinary host memory CUDA may block the call; with memory from qn_alloc_host it does not.
 * They may be part of a recording, each replay of which copies again; the host memory must then come from qn_alloc_host. */
qn_status qn_copy_to_device_async(qn_context *ctx, void *device, const void *host, size_t bytes);
qn_status qn_copy_to_host_async(qn_context *ctx, void *host, const void *device, size_t bytes);
/* Host memory that the device can access directly (CUDA: pinned); 256-byte aligned. Free it only when no copy is in flight. */
qn_status qn_alloc_host(qn_context *ctx, size_t bytes, void **p);
void      qn_free_host(qn_context *ctx, void *p);

/* ---- ops ---------------------------------------------------------------------------------- */

/* One op as pointers, the generic form of every call in ops.h; nothing is copied. arg follows the schema's order of
 * roles (inputs, then outputs); an absent optional role has n = 0. */
typedef struct qn_arg {
  const qn_tensor *t;                 /* n tensors in a row (n > 1: list roles only) */
  int64_t          n;
} qn_arg;
typedef struct qn_op {
  uint32_t      kind;                 /* QN_OP_... */
  uint32_t      n_args;               /* the schema's number of roles */
  const void   *attr;                 /* the op's attribute struct, or NULL for its defaults */
  const qn_arg *arg;
} qn_op;
qn_status qn_run(qn_context *ctx, const qn_op *op);

/* The outputs of an op, from its attributes and the dtypes, dims and strides of its inputs: by the rules that qn_run checks, but with no
 * context, no engine asked, and no data pointer read. In op->arg an output has its n (0: not wanted) and t NULL, or tensors of which
 * dtype 0, or dtype 0 and rank -1, are to be found. What no input says must be given, or the error says so: the dtype of cast, quantize,
 * ...; the dims of a gradient by something strided; both of random numbers.
 * out: the outputs wanted, one after another in the order of roles, packed in the dim order that a line's outputs have; data NULL. */
qn_status qn_infer(const qn_op *op, qn_tensor *out);

/* For other languages: a binding declares qn_run, qn_infer and what stands above, and nothing of ops.h. The schema (qn_op_at in tools.h) says
 * at run time which ops there are, their roles, and their attributes with offsets, defaults and ranges, so one loop makes a function of
 * each, of later ones too. Structs that may grow begin with their size. A problem line says the same as text: qn_graph_parse. */

/* ---- graphs and plans --------------------------------------------------------------------- */

/* Ops joined by named tensors, written as problem lines (docs/problem-lines.md):
 *
 *   in x bf16/64x64x56x56/nhwc
 *   in w bf16/64x64x3x3/nhwc
 *   y0 = conv_forward x=x w=w pad=1
 *   out y = relu x=y0
 *
 * or a single op, whose roles are then the graph's inputs and outputs, in the schema's order. */
typedef struct qn_graph qn_graph;
qn_status qn_graph_parse(const char *lines, qn_graph **graph_p);
void      qn_graph_destroy(qn_graph *graph);
/* Canonical text, cut to fit `bytes` with its '\0'; returns the full length without '\0'. text may be NULL. */
size_t    qn_graph_print(const qn_graph *graph, char *text, size_t bytes);
int       qn_graph_pointers(const qn_graph *graph);       /* how many pointers execute takes */
int       qn_graph_index(const qn_graph *graph, const char *name);   /* index of an `in`, `out` or (of one op) role among them; -1: none */

/* A graph bound to chosen engines; the graph may be destroyed. Executing allocates nothing and never synchronises. */
typedef struct qn_plan qn_plan;
qn_status qn_plan_create(qn_context *ctx, const qn_graph *graph, qn_plan **plan_p);
void      qn_plan_destroy(qn_plan *plan);                 /* NULL is a no-op */
/* pointers: one for each `in`, then one for each `out`, in the order of the lines. Unless the graph's lines say otherwise each
 * must be 16-byte aligned; an output declared `over` an input must have the input's pointer. Violations are refused. */
qn_status qn_plan_execute(qn_context *ctx, const qn_plan *plan, void *const pointers[]);
/* For a plan made by another context of the same device: grows ctx's arena to what the plan needs. */
qn_status qn_context_reserve(qn_context *ctx, const qn_plan *plan);
/* Uses the caller's workspace and counters for this execution (required of recordings that may run side by side).
 * workspace: qn_plan_workspace() bytes, 256-byte aligned; counters: qn_plan_counters() bytes, 16-byte aligned, zero on
 * entry and again when the work is done. */
qn_status qn_plan_execute_with(qn_context *ctx, const qn_plan *plan, void *const pointers[],
                               void *workspace, void *counters);
size_t    qn_plan_workspace(const qn_plan *plan);
size_t    qn_plan_counters(const qn_plan *plan);
/* One line per part: engine, class, numerics, traits, workspace, its problem. text, bytes and result as in qn_graph_print. */
size_t    qn_plan_print(const qn_plan *plan, char *text, size_t bytes);

/* ---- recordings --------------------------------------------------------------------------- */

/* What ctx executes between begin and end, replayable as one unit: on CUDA a CUDA graph (independent parts of a plan may run side
 * by side), on a CPU a list of executions. Run the step once first: while recording nothing can be planned or built. Host scalars
 * keep the value they had when recorded. A recording is replayed by the context that made it. */
typedef struct qn_recording qn_recording;
qn_status qn_record_begin(qn_context *ctx);
qn_status qn_record_end(qn_context *ctx, qn_recording **recording_p);
qn_status qn_recording_replay(qn_context *ctx, qn_recording *recording);
void      qn_recording_destroy(qn_recording *recording);  /* also after its context is gone; NULL is a no-op */

/* ---- log ---------------------------------------------------------------------------------- */

/* QN_LOG_PLAN: no level, but what QUERN_LOG=plan asks for beside a level, each plan's parts as it is made. */
enum { QN_LOG_ERROR = 0, QN_LOG_WARN = 1, QN_LOG_INFO = 2, QN_LOG_DEBUG = 3, QN_LOG_PLAN = 4 };
/* fn NULL: log to stderr. Messages above the level set by QUERN_LOG (default warn) are not produced. */
void qn_set_log(void (*fn)(void *user, int level, const char *message), void *user);

#ifdef __cplusplus
}
#endif
#include <quern/ops.h>
#include <quern/group.h>
#endif
