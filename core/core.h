/* core.h -- what the files of libquern share. Read top to bottom it is the architecture:
 *   errors -> schema -> graph (notation.c, infer.c, graph.c) -> settings -> registry -> device and context
 *   -> planner -> plan -> plan cache -> calls
 * Names that cross files begin qn__ (public ones qn_): they stay global in libquern.a. */
#ifndef QUERN_CORE_H
#define QUERN_CORE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <quern/tools.h>

/* ---- status.c: errors, log, memory -------------------------------------------------------- */

/* Sets this thread's sentence and gives status back: return qn__fail(QN_BAD_ARGUMENT, "x: rank %d, ...", r). */
qn_status qn__fail(qn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void      qn__log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For locks that are held while backends are called or messages logged: the log's listener, which may call the library, runs only
 * after this thread has released the last of them. */
void      qn__lock(pthread_mutex_t *lock);
void      qn__unlock(pthread_mutex_t *lock);
extern atomic_int qn__log_level;                    /* messages above it are not made */
/* All memory of core: zeroed; NULL when there is none or when a test wants a failure (qn__fail_alloc_at). */
void *qn__alloc(size_t bytes);
void *qn__realloc(void *p, size_t old_bytes, size_t bytes);   /* the new part zeroed; on NULL p is still there */
char *qn__strdup(const char *s);
void  qn__free(void *p);
extern atomic_long qn__alloc_count, qn__alloc_live;           /* for tests: made so far, not yet freed */
extern atomic_long qn__fail_alloc_at;                         /* fault injection: the n-th from now fails; 0: none */
extern const qn_host qn__host;                      /* host.c: what backends call back */
/* After fork, in the child: the locks of status.c, registry.c, device.c, cache.c and tune.c anew. */
struct qn__cache;
void qn__log_in_child(void);
void qn__registry_in_child(void);
void qn__devices_in_child(void);
void qn__cache_in_child(struct qn__cache *c);
void qn__tune_in_child(void);

/* A growing string; after a failed growth `failed` is set and appends do nothing. */
typedef struct qn_text { char *s; size_t len, cap; bool failed; } qn_text;
void qn__text_add(qn_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t qn__text_out(qn_text *t, char *buffer, size_t bytes);  /* copies, frees, returns the length it had */

/* ---- schema_table.c (made from ops.def), schema.c ------------------------------------------ */

extern const qn_op_info qn__ops[];                  /* by number, ascending */
extern const int qn__n_ops;
#define QN__KINDS 512                               /* numbers of ops are below it; more than 255 ops want wider places */
extern const uint8_t qn__op_place[QN__KINDS];
static inline const qn_op_info *qn__op(uint32_t kind)   /* qn_op_find, for the hot path */
{
  return kind < QN__KINDS && qn__op_place[kind] ? &qn__ops[qn__op_place[kind] - 1] : NULL;
}

/* ---- graph.c, notation.c, infer.c, layout.c ---------------------------------------------------------- */

struct qn_graph {
  qn_graph_view view;                               /* points into what follows; the first member */
  bool          single;                             /* written as one op: prints so */
  void         *memory[8];                          /* what to free */
};

/* infer.c: one op's rules. On entry attr is a whole, writable copy and the inputs are known; outputs with dtype 0 are wanted
 * (with rank -1 their dims too), the others are given and checked. On success all outputs are complete, but for the strides of
 * those wanted (qn__default_strides). */
qn_status qn__infer(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value);

/* layout.c */
void      qn__default_strides(qn_value *v, const qn_value *like);   /* packed, in like's dim order (NULL: last fastest) */
bool      qn__overlaps_itself(const qn_value *v);   /* two indices, one address */

/* Do two of these memory ranges meet, at least one of them written? Sorts them. */
typedef struct qn__range { uintptr_t begin, end; } qn__range;         /* end: twice the address, and 1 if it is written */
bool      qn__ranges_meet(qn__range *r, size_t n);

/* graph.c: adopts arrays into a checked graph; used by notation.c, qn_graph_make and the BLAS-like call. */
qn_status qn__graph_finish(qn_graph *g);            /* producers, users, escapes; runs infer on each op in order */
qn_status qn__graph_of_op(const qn_op *op, qn_graph **graph_p);   /* one op, checked: the first call of its kind */

/* ---- settings.c: the environment and the options of a context ------------------------------ */

enum { QN_SET_BACKEND, QN_SET_DEVICE, QN_SET_DEVICE_MODEL, QN_SET_PLUGIN_PATH, QN_SET_ENGINE, QN_SET_TUNE, QN_SET_TUNE_CACHE,
       QN_SET_DETERMINISTIC, QN_SET_MATH, QN_SET_THREADS, QN_SET_WORKSPACE_LIMIT, QN_SET_FALLBACK, QN_SET_LOG, QN_SET_TRACE, QN_SET_COUNT };
enum { QN_TUNE_OFF, QN_TUNE_CACHED, QN_TUNE_MEASURE };
enum { QN_FROM_DEFAULT, QN_FROM_ENVIRONMENT, QN_FROM_CONTEXT };

/* "matmul=cuda/wgmma:128x256_c2": an op or family, and the engine it is to have. */
typedef struct qn__pin { uint32_t op; char *backend, *engine, *variant; } qn__pin;   /* op as an engine's anchor; 0: another device's */

typedef struct qn__settings {
  char    *text[QN_SET_COUNT];                      /* as given; NULL: unset */
  uint8_t  origin[QN_SET_COUNT];                    /* QN_FROM_... */
  uint32_t determinism, math, tune, log;
  bool     fallback, any_engine;                    /* any_engine: the pins end in "any" */
  int32_t  device, threads;                         /* device -1, threads 0: unset */
  uint64_t workspace_limit;
  qn__pin *pin;
  int      n_pins;
} qn__settings;
qn_status qn__settings_init(qn__settings *s);       /* from the environment, which is read once */
/* And then from a context's options: its log level is in force, its plugin_path looked into. */
qn_status qn__settings_read(qn__settings *s, const char *const options[]);
void      qn__settings_log(const qn__settings *s);  /* the process has one log level: the environment's, then whichever option came last */
qn_status qn__settings_set(qn__settings *s, const char *key, const char *value, int origin);
void      qn__settings_free(qn__settings *s);
const char *qn__setting_key(int i);
const char *qn__setting_value(const qn__settings *s, int i);    /* as given, else its default */
int       qn__setting_index(const char *key);       /* -1: no such key; the sentence lists the known */
const char *qn__environment(int setting);           /* the value that was read; NULL: unset */
void        qn__settings_unknown(void);             /* warns, once, of variables that neither Quern nor a backend found reads */

/* ---- registry.c: backends, found and loaded ------------------------------------------------- */

typedef struct qn__backend {
  const qn_backend *table;                          /* NULL: could not be loaded */
  char     *name, *path, *why;
  const char *const *variables;                     /* pairs, closed by NULL; never NULL itself */
  qn_status status;
  int       instance;                               /* its number among the backends that open instances; -1: it opens none */
  const qn_device_ops *device;                      /* copied to today's size, as the rows are; NULL: it provides none */
  qn_engine *engine;
  int       n_engines;
  int32_t  *by_op, *first;                          /* the op vtable: rows of qn__ops[i] are by_op[first[i]] .. first[i+1]-1 */
  struct qn__backend *_Atomic next;                 /* set when that one is whole; nothing else changes once this one is in the list */
} qn__backend;
#define QN__INSTANCES 64                            /* most backends that open instances: plans have their set in a word */
/* name: of a backend, or an absolute path. An error that says why it cannot be had. */
qn_status qn__backend_get(const char *name, qn__backend **out);
void      qn__backends_also(const char *path);      /* looks into a context's own plugin_path */
qn__backend *qn__backends(void);                    /* every one found, loaded now if not yet; first the built-in ones */
qn__backend *qn__backends_here(void);               /* those that are loaded */
const char *qn__screened(const char *variable);     /* of the environment; NULL: unset, or the program has raised rights */
bool      qn__anchors(const qn_engine *row, const qn_op_info *op);

/* ---- device.c: devices, shared by contexts -------------------------------------------------- */

/* The demands of a context together with its backends and pins, as one object with one number, so that a problem
 * planned under them is found by comparing numbers. Interned by the device; never freed. */
typedef struct qn__terms {
  uint64_t      id;
  char         *key;                                /* canonical text */
  qn_demands    demands;
  qn__backend **backend;                            /* enabled, in the order asked for */
  int           n_backends;
  qn__settings  settings;                           /* pins, tune, fallback */
  struct qn__terms *next;
} qn__terms;

typedef struct qn__device {
  const qn_device_ops *ops;
  qn__backend    *provider;
  qn_device       desc;
  char            narrowed[16];                     /* the model that it was narrowed to; "": none */
  pthread_mutex_t lock;                             /* guards terms */
  qn__terms      *terms;
  struct qn__cache *cache;
  struct qn__device *next;
} qn__device;
/* The device that s means; s NULL: the first, as it is. */
qn_status qn__device_get(qn__backend *provider, const qn__settings *s, qn__device **out);
/* Makes a device current for the calling thread; qn__leave restores the one that was. */
qn_status qn__enter(const qn__device *dev, uint64_t *saved);
void      qn__leave(const qn__device *dev, uint64_t saved);
/* desc as that model: of a device that is not here (ordinal -1), or the live one narrowed to it. */
qn_status qn__device_model(const qn__backend *provider, const char *model, qn_device *desc);
/* Which backends s asks for (in order), and their device kind's provider. list is to be freed. */
qn_status qn__device_choose(const qn__settings *s, qn__backend ***list, int *n, qn__backend **provider);
/* The same for a model of a device that need not be here: with no backend named, of the first that knows it. */
qn_status qn__device_choose_model(const qn__settings *s, const char *model, qn__backend ***list, int *n, qn__backend **provider);
qn_status qn__terms_intern(qn__device *dev, const qn__settings *s, qn__backend *const *list, int n, const qn__terms **out);
/* Terms for a description that no device stands behind; freed with qn__terms_free. */
qn_status qn__terms_make(const qn_device *desc, const qn__settings *s, qn__backend *const *list, int n, qn__terms **out);
void      qn__terms_free(qn__terms *t);

/* ---- choose.c: request -> part; planner.c: graph -> parts ------------------------------------- */

/* Who asks: a context, or nobody (a model; then nothing is built). */
typedef struct qn__asker {
  const qn_device *device;
  const qn__terms *terms;
  struct qn_context *ctx;                           /* NULL: a model */
  void (*verdict)(void *user, const qn_verdict *);  /* NULL, or hears every engine's answer */
  void *user;
  int   depth;                                      /* of delegation */
  bool  timed;                                      /* what is chosen is to be measured, even if there is no choice */
  const double *literal;                            /* of the request's values, for printing; NULL: not known */
  uint64_t *uses;                                   /* gathers the instances that parts need, as bits; or NULL */
} qn__asker;

/* An engine bound to some ops of a graph: the request that it said yes to, and its answer. */
struct qn_part {
  qn_prepared    prepared;
  qn_engine     *engine;                            /* the registry's row */
  qn__backend   *backend;
  qn_request     request;                           /* arrays in `memory`; core is valid while planning only */
  uint32_t       n_used;                            /* how many of the request's values the ops taken have: the first */
  int32_t       *op_of, *value_of;                  /* numbers in the graph of the ops and values; NULL in a delegated part */
  double        *literal;                           /* of each value that is a number of the graph; NULL in a delegated part */
  void          *memory;
  double         ns;                                /* as measured; 0: it was not */
};
void      qn__part_free(qn_part *p);                /* NULL is a no-op */
/* The best engine that the asker's terms allow, built unless for a model or in delegation (part_build does it then).
 * The request is copied. only: "backend/engine", "engine" or NULL. */
qn_status qn__part_choose(const qn__asker *who, const qn_request *request, const char *only, int part_no, qn_part **out);
/* Whether the op reads a tensor with a zero dim: the generic engine's, alone. */
bool      qn__over_nothing(const qn_node *op, const qn_value *value);
/* Binds every op of a graph (but those with nothing to write), in an order in which the parts can run. */
qn_status qn__partition(const qn__asker *who, const qn_graph *g, qn_part ***parts, int *n_parts);

/* ---- request.c ---------------------------------------------------------------------------------- */

/* Into one block: nodes, values, roles and attributes. */
qn_status qn__request_copy(qn_part *p, const qn_request *r);
/* How many values the first n_ops of a request have; the planner numbers them first. */
uint32_t  qn__values_of(const qn_request *r, uint32_t n_ops);
/* The request's ops from there on as a graph of its own, its values numbered anew. A host scalar of which only is known that it is
 * neither 0 nor 1 stands as 2. known: what the values are that are numbers; NULL: by what the request says. */
qn_status qn__request_graph(const qn_request *r, uint32_t from, const double *known, qn_graph **out);
/* The request as problem lines, joined by " | ". */
void      qn__request_print(qn_text *t, const qn_request *r, const double *known);

/* fallback.c: the request's first op on the CPU, with copies. */
qn_status qn__fallback_part(const qn__asker *who, const qn_request *request, qn_part **out);
uint64_t  qn__fallback_staging(const qn_part *part);            /* host memory that such a part wants of the context; else 0 */

/* ---- plan.c ---------------------------------------------------------------------------------- */

/* To where the next block of workspace may begin. */
static inline uint64_t qn__round_up(uint64_t bytes) { return (bytes + 255) & ~UINT64_C(255); }

/* Where a value of a part is at run time. */
typedef struct qn__place { int32_t kind; int32_t index; uint64_t offset; } qn__place;
enum { QN_PLACE_NONE, QN_PLACE_POINTER, QN_PLACE_WORKSPACE, QN_PLACE_LITERAL };

typedef struct qn__step {
  qn_status (*run)(const qn_prepared *, const qn_launch *);   /* the engine's, or trace's around it */
  const qn_prepared *prepared;
  qn_part   *part;
  qn__place *place;                                 /* one for each value of the part's request */
  uint64_t   workspace;                             /* where the engine's scratch begins */
  int32_t    instance;                              /* its backend's */
  bool       direct;                                /* the pointers of execute are the values, in order */
  bool       aside;                                 /* nothing in the plan waits for it: a recording lets it run beside what follows */
} qn__step;

/* What execute checks of each pointer p:
 *   mask    p & mask is 0: its alignment
 *   null    p - 1 & null is 0: p is not NULL (user addresses have no top bit; NULL - 1 has)
 *   mate    p is the pointer of that number: of the input whose memory it takes, or its own
 *   bytes   no output shares bytes with another pointer; an input that lends its memory counts as 0 bytes */
typedef struct qn__bounds { uint64_t mask, null, bytes; uint32_t mate; } qn__bounds;
#define QN__MANY 48                                 /* more pointers than these are sorted to see whether they overlap */

struct qn_plan {
  /* Not NULL for one step on few pointers as they come, needing nothing but the call: the usual case, kept close. */
  qn_status  (*run)(const qn_prepared *, const qn_launch *);
  const qn_prepared *prepared;
  int32_t      threads;
  atomic_int   refs;
  qn_status    status;                              /* a remembered refusal keeps its sentence */
  char        *why;
  qn__device  *dev;
  const qn__terms *terms;
  uint32_t     n_pointers, n_ins, n_steps;
  uint64_t     workspace, counters, staging, scratch;
  uint64_t     counters_aside;                      /* where the counters of steps aside begin */
  bool         branches, mates;                     /* there are steps aside; outputs over inputs */
  uint64_t     instances;                           /* bit i: instance i must be open */
  qn__step    *step;
  qn__bounds  *bounds;
  uint64_t     mask;                                /* every pointer's, joined: a quick look */
  double      *literal;                             /* host scalars that the graph fixed */
  qn_graph    *graph;
  uint64_t     hash, *key;                          /* of the cache; NULL for plans of the caller */
  uint32_t     n_words;
  uint64_t     used;                                /* the cache's clock */
  struct qn_plan *chain;
};
qn_status qn__plan_make(struct qn_context *ctx, qn_graph *g, qn_plan **out);   /* plans, builds, takes g in any case; refs 1 */
qn_status qn__plan_failed(qn_status status, qn_plan **out);   /* remembers a refusal and its sentence */
void      qn__plan_release(qn_plan *p);             /* NULL is a no-op */
qn_status qn__plan_run(struct qn_context *ctx, const qn_plan *p, void *const *ptr, void *workspace, void *counters);

/* ---- cache.c: plans by problem, one for each device ------------------------------------------- */

struct qn__cache *qn__cache_new(void);
/* The plan of a key, made by make() if there is none, once, however many ask at the same time. A reference is the caller's. */
qn_status qn__cache_get(struct qn__cache *c, const uint64_t *key, uint32_t n_words, uint64_t hash,
                        qn_status (*make)(void *arg, qn_plan **out), void *arg, qn_plan **out);

/* ---- context.c, run.c, record.c, trace.c ------------------------------------------------------ */

#define QN_LATELY 512                               /* sets of two in a context's table of plans used lately */

struct qn_context {
  qn__device  *dev;
  uint64_t     id;                                  /* no other context of the process has or had it */
  const qn__terms *terms;
  qn__settings settings;
  qn__backend **backend; int n_backends;            /* as chosen when it was made */
  void        *instance[QN__INSTANCES];             /* by the backend's number; NULL: not opened */
  uint64_t     opened;                              /* bit i: instance i is */
  void        *stream, *own_stream, *aside;         /* aside: a second stream, for the branches of recordings; NULL: none yet */
  qn_allocator allocator;
  void        *workspace; uint64_t workspace_bytes;
  void        *counters;  uint64_t counters_bytes;
  bool         counters_unclean;                    /* a fill failed: zeros are owed */
  void        *staging;   uint64_t staging_bytes;   /* host memory, for the fallback */
  void        *scratch;   uint64_t scratch_bytes;   /* host memory, of execute alone: long lists of pointers */
  void        *call;      uint64_t call_bytes;      /* host memory: the words and pointers of a long call */
  void       **outgrown;  uint64_t *outgrown_bytes; int n_outgrown;   /* recordings may use them: freed at the end */
  qn_plan     *lately[QN_LATELY][2];
  struct qn_recording *recording;                   /* being made; NULL */
  bool         recorded;                            /* recordings hold the arena as it is */
  int          generation;                          /* of the process when it was made: fork makes another */
};
extern atomic_int qn__generation;
qn_status qn__context_ready(struct qn_context *ctx, const qn_plan *p);    /* grows arena, opens instances: never under capture */
/* opened now if not yet; NULL: it has none */
qn_status qn__context_instance(struct qn_context *ctx, const qn__backend *b, void **instance);
qn_status qn__context_room(void **block, uint64_t *have, uint64_t need);  /* host memory of at least that size, its contents lost */
bool      qn__context_capturing(struct qn_context *ctx);
void      qn__context_forget(struct qn_context *ctx);                     /* its table of plans */
qn_status qn__context_alive(const struct qn_context *ctx);        /* not NULL, not of the process that forked this one */
/* Takes an execution down: where the device captures only to keep the plan, else to do it in each replay. */
qn_status qn__record_add(struct qn_context *ctx, const qn_plan *p, void *const *ptr);
qn_status qn__record_copy(struct qn_context *ctx, void *to, const void *from, size_t bytes, int kind);
/* With QUERN_TRACE: wraps the plan's first step in one that writes the plan's lines when it first runs. */
void      qn__trace_wrap(struct qn_context *ctx, qn_plan *p);
void      qn__trace_free(qn_plan *p);

/* ---- tune.c: remembered and fresh measurements -------------------------------------------------- */

/* "backend/engine[:variant][|ops offered]", the backend's */
typedef struct qn__choice { char name[192], version[64]; double ns; } qn__choice;
/* What the tune cache says of a request; false: nothing. */
bool qn__tune_lookup(const qn__asker *who, const qn_request *request, bool pinned, qn__choice *out);
/* What was chosen for a request: it is that of the part, or the part was offered fewer of its ops. */
void qn__tune_remember(const qn__asker *who, const qn_request *request, const qn_part *part, bool pinned);
/* Runs n built parts of one request in turn, on private buffers: the best of them, with its time. */
qn_status qn__tune_measure(const qn__asker *who, qn_part **part, int n, int *best);
#define QN__NEAR_TIE 1.03                           /* what is within 3% of the best is as good */

#endif
