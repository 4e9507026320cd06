/* backend.h -- the whole contract between libquern and a backend, for authors of engines.
 *
 * A backend is a shared object (quern_NAME.so) or is linked in statically. It exports one function, which returns a
 * constant table of engines; it never links libquern and calls back only through qn_host. docs/adding-an-engine.md
 * walks through plugins/example, the smallest complete one.
 *
 *   growth     each struct passed across begins with its size, or is a row of a stated size; new fields go at the
 *              end, and a reader touches a field only if the size covers it
 *   numbers    of ops, dtypes, traits and flags never change; rows of an unknown op are skipped
 *   threads    the entry and a device's open are serialised; all else may run in several threads at once, except that an
 *              instance is used by one thread at a time
 *   status     a function that fails returns a status and leaves its sentence by host->error */
#ifndef QUERN_BACKEND_H
#define QUERN_BACKEND_H
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

#define QN_ABI_MAJOR 1                /* part of the entry's name: another major version is another symbol */
#define QN_ABI_MINOR 4                /* grows by additions; a backend below 4, whose roles and open were others, is refused */

typedef struct qn_host     qn_host;
typedef struct qn_backend  qn_backend;
typedef struct qn_engine   qn_engine;
typedef struct qn_request  qn_request;
typedef struct qn_prepared qn_prepared;
typedef struct qn_launch   qn_launch;
typedef struct qn_part     qn_part;       /* owned by core: an engine bound to its part of a graph */

/* ---- the problem that an engine is asked about -------------------------------------------- */

#define QN_MAX_ROLES 32                   /* of one op */

/* A region: the ops of a graph that are offered to an engine together. A value: one tensor of a region. */
typedef struct qn_value {
  uint32_t dtype;
  int32_t  rank;
  int64_t  dim[QN_MAX_RANK], stride[QN_MAX_RANK];   /* entries beyond the rank: dim 1, stride 0 */
  uint32_t align;                         /* bytes: the largest power of two up to 16 known to divide the address */
  uint32_t flags;                         /* QN_VALUE_... */
  int32_t  producer;                      /* index of the op of this region that writes it; -1: an input of the region */
  int32_t  last_user;                     /* index of the last op of this region that reads it; -1: none. An engine must write a result
                                             that escapes or that an op which it does not take reads: qn_must_write() in kit.h */
  int32_t  over;                          /* for an output: the input value whose memory it takes; -1: its own */
  uint32_t scalar;                        /* QN_SCALAR_...: what is known of a host scalar's value */
} qn_value;
enum {
  QN_VALUE_HOST   = 1u,                   /* a host scalar: its pointer at launch is to host memory */
  QN_VALUE_ESCAPE = 2u,                   /* needed outside the region: must always be written */
  QN_VALUE_VIEW   = 8u                    /* (minor 3) another value's memory, under these dims and strides: see qn_view */
};
enum { QN_SCALAR_OTHER = 0, QN_SCALAR_ZERO = 1, QN_SCALAR_ONE = 2 };

/* One op of a region. Role r (the schema's order, QN_ROLE_... below) has the values arg[first[r]] to arg[first[r+1] - 1]. */
typedef struct qn_node {
  uint32_t       op;                      /* QN_OP_... */
  uint32_t       family;                  /* QN_FAMILY_... */
  const void    *attr;                    /* never NULL for an op with attributes; complete, of this version's size */
  uint32_t       n_roles, n_inputs;       /* the first n_inputs roles are inputs, the others outputs */
  const int32_t *first;                   /* n_roles + 1 */
  const int32_t *arg;
} qn_node;

/* (minor 3) What an engine's row asks to be offered: of the ops around its anchor those that it could take together with it. The pointwise
 * ops that follow the anchor and their pointwise producers are always offered, then the anchor's own pointwise producers; never a region
 * that a path leaves and re-enters. Each row gets the region of its own pattern, so no row changes what another is offered. */
typedef struct qn_pattern {
  uint32_t struct_size;
  uint8_t  siblings;                      /* how many more ops of its kind that read its tensor (views: or views of one) in the same role */
  uint8_t  closing;                       /* how many reductions of what the region computes */
  uint8_t  most;                          /* ops offered, up to QN_MAX_OPS; 0: QN_USUAL_OPS */
  uint8_t  views;                         /* 1: ops may read the region's values through views (permute, slice) */
  const uint32_t *after, *before;         /* NULL, or kinds ended by 0 of ops that may follow, precede the anchor, besides pointwise ones */
} qn_pattern;
enum { QN_USUAL_OPS = 32, QN_MAX_OPS = 64 };        /* a row without a pattern: closing 1, all else 0 */

/* (minor 3) Where a value with QN_VALUE_VIEW is: `offset` elements into the memory of value `of`. It has that value's producer. */
typedef struct qn_view { int64_t offset; int32_t of, reserved; } qn_view;

/* What the caller insists on. */
typedef struct qn_demands {
  uint64_t struct_size;
  uint32_t determinism;                   /* QN_DET_... */
  uint32_t math;                          /* QN_MATH_... */
  uint64_t workspace_limit;               /* bytes; UINT64_MAX: none */
  int32_t  threads;                       /* of a CPU context, >= 1: results must not depend on it. Core asks again with fewer where the
                                             workspace is over the limit */
  int32_t  ranks;                         /* (minor 3) of the context's group; 0: it has joined none */
} qn_demands;
enum { QN_DET_NONE = 0, QN_DET_RUN = 1, QN_DET_BATCH = 2, QN_DET_PORTABLE = 3 };
enum { QN_MATH_STRICT = 0, QN_MATH_F32 = 1, QN_MATH_TF32 = 2, QN_MATH_FAST = 3 };

/* What prepare may know of the device; filled in by its provider, from the live device or for a named model. */
typedef struct qn_device {
  uint64_t struct_size;
  char     kind[16];                      /* "cpu", "cuda" */
  char     name[64];                      /* "NVIDIA H200" */
  char     model[32];                     /* "h200", "generic": the key of tuning tables and of the tune cache */
  int32_t  ordinal;                       /* -1: a model without a device behind it */
  int32_t  units;                         /* SMs; CPU cores */
  int32_t  arch_major, arch_minor;        /* CUDA: compute capability */
  int32_t  threads;                       /* the most CPU threads that it can use; CUDA: 0 */
  uint64_t features;                      /* QN_CPU_... */
  uint64_t memory, cache;                 /* bytes: total memory; last-level cache */
  uint64_t shared_per_block, shared_per_unit;       /* CUDA, bytes */
  void    *handle;                        /* the provider's; NULL for a model */
} qn_device;
enum { QN_CPU_AVX2 = 1u, QN_CPU_AVX512 = 2u };      /* AVX2 with FMA and F16C; AVX-512 F, BW, DQ, VL; and enabled by the OS */

struct qn_request {
  uint64_t          struct_size;
  const qn_host    *host;
  const qn_device  *device;
  const qn_demands *demands;
  void             *instance;             /* of this backend for this context; NULL for a device model */
  const char       *variant;              /* the one of the row's variants to use; NULL: the engine chooses */
  const qn_node    *op;                   /* the anchor first, then the ops of the row's pattern: what follows the anchor in the order of
                                             computation, closing reductions, then what precedes it, nearest first. Every prefix may be
                                             taken, and any other set of ops that holds the anchor and that no path leaves and re-enters */
  uint32_t          n_ops;                /* at most QN_MAX_OPS */
  uint32_t          n_values;
  const qn_value   *value;
  void             *core;                 /* private to core */
  const qn_view    *view;                 /* (minor 3) one for each value; NULL: the region has no view of its own values */
};

/* ---- the answer --------------------------------------------------------------------------- */

/* Why an engine declines. Every field but rule may be "". */
typedef struct qn_refusal {
  char rule[128];                         /* "C must be a multiple of 8 for 16-byte loads" */
  char tensor[32];                        /* the role of the tensor: "x" */
  char seen[64], needed[64];              /* "35", "a multiple of 8" */
  char nearest[64];                       /* the nearest problem that it would take: "C 40" */
} qn_refusal;

/* How results are computed; the conformance suite derives their error bound from it. */
typedef struct qn_numerics {
  uint32_t accumulator;                   /* QN_ACC_... */
  uint32_t method;                        /* QN_METHOD_... */
  int32_t  tile, filter;                  /* Winograd F(tile, filter) */
  int32_t  promote;                       /* terms summed before promotion to f32; 0: never promoted */
  uint32_t store;                         /* dtype in which intermediates or partial sums are stored; 0: the accumulator's */
} qn_numerics;
enum { QN_ACC_NATIVE = 0,                 /* f32 (f64 for f64, i32 for integers), rounded to nearest, any order */
       QN_ACC_F32_TC = 1,                 /* tensor cores, f32, truncating */
       QN_ACC_TF32 = 2,                   /* tensor cores on tf32 operands */
       QN_ACC_F16 = 3, QN_ACC_F8_FAST = 4, QN_ACC_3XTF32 = 5, QN_ACC_BF16X3 = 6,
       QN_ACC_DOUBLE = 7 };               /* the oracle's */
enum { QN_METHOD_DIRECT = 0, QN_METHOD_WINOGRAD = 1, QN_METHOD_FFT = 2 };

/* Traits, each verified by the conformance suite. If a context demands `batch` determinism or more, an engine that has the trait must
 * not refuse because of the batch size (under `portable`: nor of the device): another engine would then compute some batches' rows. */
enum {
  QN_TRAIT_DETERMINISTIC   = 1u,          /* same bits from run to run, with any number of threads */
  QN_TRAIT_BATCH_INVARIANT = 2u,          /* same bits for a row whatever else is in the batch */
  QN_TRAIT_PORTABLE        = 4u,          /* same bits on any device of the kind, of any size */
  QN_TRAIT_TENSOR_CORES    = 8u,
  QN_TRAIT_REDUCED         = 16u,         /* accumulates in less than f32 */
  QN_TRAIT_FINITE_ONLY     = 32u,         /* vouches for finite data of moderate size only, below 2^40 (f64: 2^340), whose cubes are
                                             finite: NaN and Inf need not propagate, sums and powers may overflow. Only under math=fast */
  QN_TRAIT_FLUSHES         = 64u          /* vouches for 0 and magnitudes from 2^-100 (f64: 2^-900) on only: smaller ones may count as
                                             0. Only under math=fast */
};
enum { QN_CLASS_TUNED = 0, QN_CLASS_GENERIC = 1, QN_CLASS_HOST = 2 };

struct qn_prepared {                      /* zeroed by core before prepare */
  uint64_t    struct_size;
  const qn_engine *engine;                /* set by core */
  uint32_t    n_ops;                      /* out: how many of request->op are taken: the first ones, unless `taken` says which; 0 means 1 */
  uint32_t    class_;                     /* out: QN_CLASS_... */
  uint32_t    math;                       /* out: the least QN_MATH_... that permits this computation */
  uint64_t    traits;                     /* out: initialised to the row's */
  uint64_t    workspace, counters;        /* out: bytes needed */
  double      estimate;                   /* out: run time in ns; 0: none */
  qn_numerics numerics;                   /* out */
  const char *variant;                    /* out: the variant chosen, a string of the row; NULL: none */
  void       *state;                      /* the engine's own; freed by release */
  uint64_t    word[8];                    /* the engine's own, in place of an allocated state */
  qn_refusal  refusal;                    /* out, if prepare returns QN_UNSUPPORTED */
  uint64_t    taken;                      /* (minor 3) out: bit i: op[i] is taken; 0: the first n_ops. Core completes both */
};

/* ---- execution ---------------------------------------------------------------------------- */

struct qn_launch {
  uint64_t     struct_size;
  void        *stream;                    /* the device's native stream: the context's, or one that waits for it and is waited for */
  void        *instance;                  /* of this backend, for the executing context */
  void *const *ptr;                       /* one for each value of the request; NULL: a value that the engine need not write */
  void        *workspace;                 /* 256-byte aligned */
  void        *counters;                  /* zero on entry; must be zero again when the work is done */
  const qn_device *device;
  int32_t      threads;                   /* for a CPU engine, >= 1: those of the demands that prepare accepted under */
  int32_t      reserved;
  void        *core;                      /* private to core, for delegation */
  const struct qn_ranks *ranks;           /* (minor 3) the context's place in its group; NULL: none. Set for collectives only */
};

/* A context's place in its group. Ranks find each other by exchanges of a few bytes, from which an engine makes what it
 * communicates by: at its first run, since plans are shared by contexts and found in caches, but ranks run the same things in the
 * same order. */
typedef struct qn_ranks {
  uint64_t struct_size;
  int32_t  rank, size, local_rank;        /* local_rank: among those of the same host, where the launcher says it; else rank */
  int32_t  reserved;
  int64_t  deadline;                      /* milliseconds that one wait may take */
  void    *core;                          /* private to core */
} qn_ranks;

/* ---- the tables --------------------------------------------------------------------------- */

struct qn_engine {                        /* one row; fields that its initializer leaves out are 0 */
  const char *name;                       /* "direct", "im2col_gemm", "winograd_4x4" */
  uint32_t    op;                         /* the anchor: QN_OP_..., or QN_FAMILY_... | QN_ANCHOR_FAMILY */
  uint32_t    class_;                     /* QN_CLASS_GENERIC for the engine that never refuses; else QN_CLASS_TUNED */
  uint64_t    traits;
  const char *const *variants;            /* NULL, or names ended by NULL */
  const qn_pattern *pattern;              /* NULL: the pointwise neighbours and one closing reduction. (Before minor 3: ignored) */
  /* Host code. QN_OK; QN_UNSUPPORTED; or QN_NO_BACKEND: a library that it depends on is missing. */
  qn_status (*prepare)(const qn_request *, qn_prepared *);
  qn_status (*build)(const qn_request *, qn_prepared *);    /* (optional) on the live device; may be slow, may fail, may lower workspace */
  qn_status (*run)(const qn_prepared *, const qn_launch *); /* only enqueues; writes only outputs, workspace and counters */
  void      (*release)(qn_prepared *);                      /* (optional) frees state; called only if prepare returned QN_OK (a refusing
                                                               prepare must free its own); enqueued work may still be running */
};
#define QN_ANCHOR_FAMILY 0x40000000u

typedef struct qn_engine_list { const qn_engine *row; uint32_t n; } qn_engine_list;

/* What a backend's instance for a context is opened with. (Before minor 4 open had another form; a backend that has that one is not
 * loaded.) */
typedef struct qn_open {
  uint64_t         struct_size;
  const qn_host   *host;
  const qn_device *device;
  void            *stream;                /* the context's own. A launch may be on any other of its device, and names it */
  const qn_ranks  *ranks;                 /* the context's place in its group; NULL: none. A context that joins or leaves a group closes
                                             its instances and opens others, unless it has made recordings */
} qn_open;

struct qn_backend {
  uint32_t    struct_size, abi_minor;
  uint32_t    engine_size;                /* sizeof(qn_engine) as compiled */
  uint32_t    reserved;
  const char *name, *version, *device_kind;
  const struct qn_device_ops *device;     /* NULL: uses the device of its kind's provider */
  const qn_engine_list *const *engines;   /* one list per engine file, NULL-terminated; best first for each op */
  qn_status (*open)(const qn_open *, void **instance);      /* (optional) per context */
  void      (*close)(void *instance);                       /* (optional) */
  const char *const *variables;           /* (minor 1) NULL, or pairs ended by NULL: an environment variable "QUERN_..." that
                                             the backend reads through host->option, and its meaning */
};

enum { QN_COPY_TO_DEVICE = 0, QN_COPY_TO_HOST = 1, QN_COPY_ON_DEVICE = 2 };

/* A device provider. All but count and describe need a live device, which core has made current. Functions that a device does not
 * need are NULL, in whole groups: models and describe_model; open; enter and leave; the four of streams, and stream_done; the five
 * of capture and recording; host_call; the two of host memory; the two of waits, without which plans run in order on one stream. */
typedef struct qn_device_ops {
  uint64_t struct_size;
  qn_status (*count)(int32_t *n);                                         /* cheap: creates no context on the device */
  qn_status (*describe)(int32_t ordinal, qn_device *out);
  const char *const *models;                                              /* fills out, or narrows a live description in it */
  qn_status (*describe_model)(const char *model, qn_device *out);         /* on a live description: narrows it to the model */
  qn_status (*open)(qn_device *device);                                   /* once, before first use; sets handle */
  qn_status (*enter)(const qn_device *, uint64_t *saved);                 /* makes it current; core calls leave afterwards */
  void      (*leave)(const qn_device *, uint64_t saved);
  qn_status (*stream_create)(const qn_device *, void **stream);           /* a CPU has none: streams are NULL, all calls block */
  void      (*stream_destroy)(const qn_device *, void *stream);
  qn_status (*stream_synchronize)(const qn_device *, void *stream);
  qn_status (*stream_wait)(const qn_device *, void *stream, void *other); /* stream waits for what is enqueued on other now */
  qn_status (*alloc)(const qn_device *, size_t bytes, void **p);          /* at least 256-byte aligned */
  void      (*free)(const qn_device *, void *p);
  qn_status (*copy)(const qn_device *, void *dst, const void *src, size_t bytes, int kind, void *stream);  /* enqueues */
  qn_status (*fill)(const qn_device *, void *dst, int byte, size_t bytes, void *stream);                   /* enqueues */
  qn_status (*event_create)(const qn_device *, void **event);
  void      (*event_destroy)(const qn_device *, void *event);
  qn_status (*event_record)(const qn_device *, void *event, void *stream);
  qn_status (*event_elapsed)(const qn_device *, void *start, void *stop, double *ns);   /* waits for stop */
  qn_status (*capture_begin)(const qn_device *, void *stream);            /* the five: NULL where core's list of executions serves */
  qn_status (*capture_end)(const qn_device *, void *stream, void **recording);
  qn_status (*recording_launch)(const qn_device *, void *recording, void *stream);
  void      (*recording_destroy)(const qn_device *, void *recording);
  qn_status (*capturing)(const qn_device *, void *stream, int *yes);      /* also by a capture that the caller began */
  qn_status (*host_call)(const qn_device *, void *stream, void (*fn)(void *), void *arg);  /* in stream order */
  qn_status (*alloc_host)(const qn_device *, size_t bytes, void **p);     /* (minor 2) pinned: copies need no staging */
  void      (*free_host)(const qn_device *, void *p);                     /* (minor 2) */
  qn_status (*stream_done)(const qn_device *, void *stream, int *yes);    /* (minor 3) does not wait */
  qn_status (*event_create_untimed)(const qn_device *, void **event);     /* (minor 4) for waits: recorded and destroyed as the others */
  qn_status (*event_wait)(const qn_device *, void *stream, void *event);  /* (minor 4) stream waits for the event's last recording */
} qn_device_ops;

/* What a backend may call. Valid for the life of the process. */
struct qn_host {
  uint64_t struct_size;
  uint32_t abi_major, abi_minor;
  void (*log)(int level, const char *message);
  qn_status (*error)(qn_status status, const char *sentence);     /* sets qn_last_error(); returns status */
  const char *(*option)(const char *key);                         /* the environment's QUERN_KEY; NULL: unset, or the program is setuid */
  void *(*alloc)(size_t bytes);                                   /* zeroed host memory; counted, and made to fail by tests */
  void  (*free)(void *p);
  /* Delegation: another engine for a part of the work, under the request's demands. engine: "backend/engine", "engine", or
   * NULL for the best. The part belongs to the calling engine, which keeps it in its state, adds the part's workspace to its own
   * (256-byte aligned), calls part_build in its build, after which the part is immutable, and part_run in its run. */
  qn_status (*part_prepare)(const qn_request *parent, const qn_request *part, const char *engine, qn_part **out);
  const qn_prepared *(*part_answer)(const qn_part *part);
  qn_status (*part_build)(qn_part *part);
  qn_status (*part_run)(const qn_part *part, const qn_launch *launch, void *const *ptr, void *workspace, void *counters);
  void      (*part_release)(qn_part *part);
  /* (minor 3) Groups. All of a group's calls are made by the thread that runs the engine.
   * exchange: an all-gather: all = the `bytes` bytes of each rank's mine, by rank. `what` says what for, in at most 400 characters; ranks
   *   that come with different words or sizes fail with both sentences. Waits until the deadline.
   * watch: has the group failed, or a rank died or gone that it is known of? Does not wait. Engines call it now and then as they wait.
   * fail: the group has failed, for this reason: tells the other ranks. Returns QN_DEVICE.
   * slot: where the engines that use this key, an address of theirs, keep a pointer for this group, at first NULL. leave is called with it,
   *   if it is not NULL, when the context leaves the group; failed: the group has, or ends before its time: wait for nobody. */
  qn_status (*ranks_exchange)(const qn_ranks *, const char *what, const void *mine, size_t bytes, void *all);
  qn_status (*ranks_watch)(const qn_ranks *);
  qn_status (*ranks_fail)(const qn_ranks *, const char *sentence);
  qn_status (*ranks_slot)(const qn_ranks *, const void *key, void (*leave)(void *own, int failed), void ***slot);
};

/* The entry: the only symbol that a plugin exports. It checks host->struct_size and abi_major, keeps host, and sets *out to its table.
 * An entry that fails because a library is missing also sets *out if one of its variables says where to find that library; core then
 * reads nothing else of the table. QN_BACKEND_ENTRY(name): the entry's name, in a plugin or (with QN_BUILTIN) in an archive. */
typedef qn_status qn_entry_fn(const qn_host *host, const qn_backend **out);
#ifdef QN_BUILTIN
#define QN_BACKEND_ENTRY(name) qn__builtin_##name
#else
#define QN_BACKEND_ENTRY(name) quern_plugin_entry_v1
#endif
#if defined(__GNUC__)
#define QN_EXPORT __attribute__((visibility("default")))
#else
#define QN_EXPORT
#endif

#ifdef __cplusplus
}
#endif
#endif
