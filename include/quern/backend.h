/* backend.h -- the whole contract between libquern and a backend; for those who bring engines.
 *
 * A backend is a shared object (quern_NAME.so) or a static table. It exports one function, which returns one
 * constant table of engines; it never links libquern and calls back only through qn_host. docs/adding-an-engine.md
 * walks through plugins/example, the smallest complete one.
 *
 *   growth     each struct that crosses begins with its size, or lies in rows of a stated size; new fields go at the
 *              end, and a reader touches a field only if the size covers it
 *   numbers    of ops, dtypes, traits and flags are for ever; rows of an unknown op are skipped
 *   threads    probe, open and close are serialised; prepare, build and run of one engine may run in many threads */
#ifndef QUERN_BACKEND_H
#define QUERN_BACKEND_H
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

#define QN_ABI_MAJOR 1                /* in the entry's name: another major is another symbol */
#define QN_ABI_MINOR 2                /* additions only */

typedef struct qn_host     qn_host;
typedef struct qn_backend  qn_backend;
typedef struct qn_engine   qn_engine;
typedef struct qn_request  qn_request;
typedef struct qn_prepared qn_prepared;
typedef struct qn_launch   qn_launch;
typedef struct qn_part     qn_part;       /* core's: an engine bound to its part of a graph */

/* ---- the problem: what an engine is asked ------------------------------------------------- */

#define QN_MAX_ROLES 16                   /* of one op */

/* One tensor of a region. */
typedef struct qn_value {
  uint32_t dtype;
  int32_t  rank;
  int64_t  dim[QN_MAX_RANK], stride[QN_MAX_RANK];   /* entries beyond the rank: dim 1, stride 0 */
  uint32_t align;                         /* bytes, a power of two up to 16, that divides the address */
  uint32_t flags;                         /* QN_VALUE_... */
  int32_t  producer;                      /* the op of this region that makes it; -1: it comes from outside */
  int32_t  last_user;                     /* the last op of this region that reads it; -1: none. An engine that takes n ops
                                             writes what they make if it escapes or last_user >= n */
  int32_t  over;                          /* an output that takes the memory of this input value; -1: its own */
  uint32_t scalar;                        /* QN_SCALAR_...: what is known of a host scalar */
} qn_value;
enum {
  QN_VALUE_HOST   = 1u,                   /* a host scalar: its pointer at launch is to host memory */
  QN_VALUE_ESCAPE = 2u,                   /* needed outside the region: it must be written whoever makes it */
  QN_VALUE_OPAQUE = 4u                    /* bytes that only their maker reads */
};
enum { QN_SCALAR_OTHER = 0, QN_SCALAR_ZERO = 1, QN_SCALAR_ONE = 2 };

/* One op of a region. Role r (the schema's order, QN_ROLE_... below) has the values arg[first[r]] to arg[first[r+1] - 1]. */
typedef struct qn_node {
  uint32_t       op;                      /* QN_OP_... */
  uint32_t       family;                  /* QN_FAMILY_... */
  const void    *attr;                    /* never NULL for an op with attributes; whole and normalised */
  uint32_t       n_roles, n_inputs;       /* the first n_inputs roles are read, the others written */
  const int32_t *first;                   /* n_roles + 1 */
  const int32_t *arg;
} qn_node;

/* What a caller insists on. */
typedef struct qn_demands {
  uint64_t struct_size;
  uint32_t determinism;                   /* QN_DET_... */
  uint32_t math;                          /* QN_MATH_... */
  uint64_t workspace_limit;               /* bytes; UINT64_MAX: none */
  int32_t  threads;                       /* of a CPU context, >= 1; a hint: results never depend on it */
  int32_t  reserved;
} qn_demands;
enum { QN_DET_NONE = 0, QN_DET_RUN = 1, QN_DET_BATCH = 2, QN_DET_PORTABLE = 3 };
enum { QN_MATH_STRICT = 0, QN_MATH_F32 = 1, QN_MATH_TF32 = 2, QN_MATH_FAST = 3 };

/* What prepare may know of the device; filled by its provider, live or from a named model. */
typedef struct qn_device {
  uint64_t struct_size;
  char     kind[16];                      /* "cpu", "cuda" */
  char     name[64];                      /* "NVIDIA H200" */
  char     model[32];                     /* "h200", "generic": the key of tuning tables and the tune cache */
  int32_t  ordinal;                       /* -1: a model, with no device behind it */
  int32_t  units;                         /* multiprocessors; cores */
  int32_t  arch_major, arch_minor;        /* CUDA: compute capability */
  int32_t  threads;                       /* most that the device wants; CUDA: 0 */
  uint64_t features;                      /* QN_CPU_... */
  uint64_t memory, cache;                 /* bytes: all of it; last level */
  uint64_t shared_per_block, shared_per_unit;       /* CUDA, bytes */
  void    *handle;                        /* the provider's; NULL for a model */
} qn_device;
enum { QN_CPU_AVX2 = 1u, QN_CPU_AVX512 = 2u };      /* AVX2 with FMA and F16C; AVX-512 F, BW, DQ, VL; enabled by the OS */

struct qn_request {
  uint64_t          struct_size;
  const qn_host    *host;
  const qn_device  *device;
  const qn_demands *demands;
  void             *instance;             /* of this backend, for this context; NULL for a device model */
  const char       *variant;              /* one of the row's variants to build; NULL: the engine picks */
  const qn_node    *op;                   /* the anchor first, then what an engine may take with it, in an order such */
  uint32_t          n_ops;                /*   that any prefix that an engine may answer is a whole computation */
  uint32_t          n_values;
  const qn_value   *value;
  void             *core;                 /* core's own */
};

/* ---- the answer --------------------------------------------------------------------------- */

/* Why not. Every field but rule may be "". */
typedef struct qn_refusal {
  char rule[128];                         /* "C must be a multiple of 8 for 16-byte loads" */
  char tensor[32];                        /* the role: "x" */
  char seen[64], needed[64];              /* "35", "a multiple of 8" */
  char nearest[64];                       /* the nearest problem it would take: "C 40" */
} qn_refusal;

/* How results are computed, from which the conformance suite derives the bound they must keep. */
typedef struct qn_numerics {
  uint32_t accumulator;                   /* QN_ACC_... */
  uint32_t method;                        /* QN_METHOD_... */
  int32_t  tile, filter;                  /* Winograd F(tile, filter) */
  int32_t  promote;                       /* terms summed before promotion to f32; 0: all */
  uint32_t store;                         /* dtype in which intermediates or partial sums are kept; 0: the accumulator's */
} qn_numerics;
enum { QN_ACC_NATIVE = 0,                 /* f32 (f64 for f64, i32 for integers), rounded to nearest, any order */
       QN_ACC_F32_TC = 1,                 /* tensor core, f32, truncating */
       QN_ACC_TF32 = 2,                   /* tensor core on tf32 operands */
       QN_ACC_F16 = 3, QN_ACC_F8_FAST = 4, QN_ACC_3XTF32 = 5, QN_ACC_BF16X3 = 6,
       QN_ACC_DOUBLE = 7 };               /* the oracle's */
enum { QN_METHOD_DIRECT = 0, QN_METHOD_WINOGRAD = 1, QN_METHOD_FFT = 2 };

/* Traits, each proved by the conformance suite. An engine with the trait that a demand of `batch` or beyond asks for must not let the
 * batch (under `portable`: nor the device) decide whether it refuses: for some batches another engine would compute the same rows. */
enum {
  QN_TRAIT_DETERMINISTIC   = 1u,          /* same bits run to run, whatever the threads */
  QN_TRAIT_BATCH_INVARIANT = 2u,          /* same bits for a row whatever else is in the batch */
  QN_TRAIT_PORTABLE        = 4u,          /* same bits on any device of the kind, of any size */
  QN_TRAIT_TENSOR_CORES    = 8u,
  QN_TRAIT_REDUCED         = 16u,         /* sums in less than f32 */
  QN_TRAIT_FINITE_ONLY     = 32u          /* NaN and Inf need not propagate: only under math=fast */
};
enum { QN_CLASS_TUNED = 0, QN_CLASS_GENERIC = 1, QN_CLASS_HOST = 2 };

struct qn_prepared {                      /* zeroed by core before prepare */
  uint64_t    struct_size;
  const qn_engine *engine;                /* set by core */
  uint32_t    n_ops;                      /* out: how many of request->op are taken, from the front; 0 reads as 1 */
  uint32_t    class_;                     /* out: QN_CLASS_... */
  uint32_t    math;                       /* out: the least QN_MATH_... that allows this */
  uint64_t    traits;                     /* out: starts as the row's */
  uint64_t    workspace, counters;        /* out: bytes */
  double      estimate;                   /* out: ns; 0: none */
  qn_numerics numerics;                   /* out */
  const char *variant;                    /* out: the one chosen, a string of the row; NULL: none */
  void       *state;                      /* the engine's, freed by release */
  uint64_t    word[8];                    /* the engine's, for what needs no allocation */
  qn_refusal  refusal;                    /* out, with QN_UNSUPPORTED */
};

/* ---- the work ----------------------------------------------------------------------------- */

struct qn_launch {
  uint64_t     struct_size;
  void        *stream;                    /* native */
  void        *instance;                  /* of this backend, for the executing context */
  void *const *ptr;                       /* one for each value of the request; NULL: the engine keeps it to itself */
  void        *workspace;                 /* 256-byte aligned */
  void        *counters;                  /* zero; to be left zero */
  const qn_device *device;
  int32_t      threads;                   /* for a CPU engine, >= 1 */
  int32_t      reserved;
  void        *core;                      /* core's own, for delegation */
};

/* ---- the tables --------------------------------------------------------------------------- */

struct qn_engine {                        /* a row; what it does not name is 0 */
  const char *name;                       /* "direct", "im2col_gemm", "winograd_4x4" */
  uint32_t    op;                         /* the anchor: QN_OP_..., or QN_FAMILY_... | QN_ANCHOR_FAMILY */
  uint32_t    class_;                     /* QN_CLASS_GENERIC for the one that never refuses; else QN_CLASS_TUNED */
  uint64_t    traits;
  const char *const *variants;            /* NULL, or names closed by NULL */
  const uint32_t *also;                   /* NULL, or op kinds closed by 0 that may join the region beside pointwise ones */
  /* Host code. QN_OK, QN_UNSUPPORTED, or QN_NO_BACKEND: what it rests on is not here. */
  qn_status (*prepare)(const qn_request *, qn_prepared *);
  qn_status (*build)(const qn_request *, qn_prepared *);    /* (optional) on the live device; may be slow, fail, lower workspace */
  qn_status (*run)(const qn_prepared *, const qn_launch *); /* enqueues, and nothing else; changes only outputs and scratch */
  void      (*release)(qn_prepared *);                      /* (optional) frees state, after a prepare that gave QN_OK (one that refuses
                                                               leaves nothing); what was enqueued may still run */
};
#define QN_ANCHOR_FAMILY 0x40000000u

typedef struct qn_engine_list { const qn_engine *row; uint32_t n; } qn_engine_list;

struct qn_backend {
  uint32_t    struct_size, abi_minor;
  uint32_t    engine_size;                /* sizeof(qn_engine) where this was compiled */
  uint32_t    reserved;
  const char *name, *version, *device_kind;
  const struct qn_device_ops *device;     /* NULL: rides on the device of its kind's provider */
  const qn_engine_list *const *engines;   /* one list for each engine file, NULL-terminated; best first within an op */
  qn_status (*open)(const qn_host *, const qn_device *, void *stream, void **instance);   /* (optional) one for each context */
  void      (*close)(void *instance);                                                     /* (optional) */
  const char *const *variables;           /* (minor 1) NULL, or pairs closed by NULL: a variable of the environment that the
                                             backend reads by host->option, "QUERN_...", and what it means */
};

enum { QN_COPY_TO_DEVICE = 0, QN_COPY_TO_HOST = 1, QN_COPY_ON_DEVICE = 2 };

/* A device provider. All but count and describe want a live device, which core has made current. What a device has no use for is
 * NULL, in whole groups: models and describe_model; open; enter and leave; the four of streams; the five of captures; host_call;
 * the two of host memory. */
typedef struct qn_device_ops {
  uint64_t struct_size;
  qn_status (*count)(int32_t *n);                                         /* cheap: makes no context on the device */
  qn_status (*describe)(int32_t ordinal, qn_device *out);
  const char *const *models;                                              /* names describe_model knows; NULL-terminated */
  qn_status (*describe_model)(const char *model, qn_device *out);         /* also narrows a live description */
  qn_status (*open)(qn_device *device);                                   /* once, before first use: sets handle */
  qn_status (*enter)(const qn_device *, uint64_t *saved);                 /* make current; core calls leave after */
  void      (*leave)(const qn_device *, uint64_t saved);
  qn_status (*stream_create)(const qn_device *, void **stream);           /* a CPU has none: NULL streams, all calls block */
  void      (*stream_destroy)(const qn_device *, void *stream);
  qn_status (*stream_synchronize)(const qn_device *, void *stream);
  qn_status (*stream_wait)(const qn_device *, void *stream, void *other); /* stream waits for what other holds now */
  qn_status (*alloc)(const qn_device *, size_t bytes, void **p);          /* at least 256-byte aligned */
  void      (*free)(const qn_device *, void *p);
  qn_status (*copy)(const qn_device *, void *dst, const void *src, size_t bytes, int kind, void *stream);  /* enqueues */
  qn_status (*fill)(const qn_device *, void *dst, int byte, size_t bytes, void *stream);                   /* enqueues */
  qn_status (*event_create)(const qn_device *, void **event);
  void      (*event_destroy)(const qn_device *, void *event);
  qn_status (*event_record)(const qn_device *, void *event, void *stream);
  qn_status (*event_elapsed)(const qn_device *, void *start, void *stop, double *ns);   /* waits for stop */
  qn_status (*capture_begin)(const qn_device *, void *stream);            /* the five: NULL where core's list serves */
  qn_status (*capture_end)(const qn_device *, void *stream, void **recording);
  qn_status (*recording_launch)(const qn_device *, void *recording, void *stream);
  void      (*recording_destroy)(const qn_device *, void *recording);
  qn_status (*capturing)(const qn_device *, void *stream, int *yes);      /* also by the caller's own hand */
  qn_status (*host_call)(const qn_device *, void *stream, void (*fn)(void *), void *arg);  /* in stream order */
  qn_status (*alloc_host)(const qn_device *, size_t bytes, void **p);     /* (minor 2) host memory that copies need not stage */
  void      (*free_host)(const qn_device *, void *p);                     /* (minor 2) */
} qn_device_ops;

/* What a backend may call back. Lives for ever. */
struct qn_host {
  uint64_t struct_size;
  uint32_t abi_major, abi_minor;
  void (*log)(int level, const char *message);
  qn_status (*error)(qn_status status, const char *sentence);     /* sets qn_last_error(); returns status */
  const char *(*option)(const char *key);                         /* QUERN_KEY of the environment, screened; NULL: unset */
  void *(*alloc)(size_t bytes);                                   /* zeroed host memory, counted and fault-injected */
  void  (*free)(void *p);
  /* Delegation: an engine for a part of the work, under the request's demands. engine: "backend/engine", "engine" or
   * NULL for the best. The part belongs to the caller, which keeps it in its state, adds its workspace to its own
   * (256-byte aligned) and runs it in its run. part_build in build, after which the part is immutable. */
  qn_status (*part_prepare)(const qn_request *parent, const qn_request *part, const char *engine, qn_part **out);
  const qn_prepared *(*part_answer)(const qn_part *part);
  qn_status (*part_build)(qn_part *part);
  qn_status (*part_run)(const qn_part *part, const qn_launch *launch, void *const *ptr, void *workspace, void *counters);
  void      (*part_release)(qn_part *part);
};

/* The entry: the one symbol a plugin exports. It checks host->struct_size and abi_major, keeps host, and gives its table.
 * One that fails for want of a library gives it too, if its variables say where that lies: of the table only they are read.
 * QN_BACKEND_ENTRY(name) is its name, in a plugin or (with QN_BUILTIN) in an archive. */
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
