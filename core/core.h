/* core.h -- declarations shared by the files of libquern. Read from top to bottom it is the architecture:
 *   errors -> schema -> graph (notation.c, infer.c, graph.c) -> settings -> registry -> device and context
 *   -> planner -> plan -> plan cache -> calls
 * The folders are floors (tests/floors.sh); above the planner, which reaches it by qn__tuner, stands tuning,
 * above that watching.
 * Names used across files begin with qn__ (public ones with qn_): they are global symbols in libquern.a. */
#ifndef QUERN_CORE_H
#define QUERN_CORE_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <quern/tools.h>

/* ---- status.c: errors, log, memory -------------------------------------------------------- */

/* Sets this thread's error sentence and returns status: return qn__fail(QN_BAD_ARGUMENT, "x: rank %d, ...", r). */
qn_status qn__fail(qn_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
void      qn__log(int level, const char *format, ...) __attribute__((format(printf, 2, 3)));
void      qn__progress(const char *text);           /* a line on the terminal, if errors go to one; "": removes it */
/* For locks held while backends are called or messages logged. The log callback may call the library, so it runs only after this
 * thread has released the last of these locks. */
void      qn__lock(pthread_mutex_t *lock);
void      qn__unlock(pthread_mutex_t *lock);
extern atomic_int qn__log_level;                    /* QN_LOG_...: messages above it are not produced; | QN__LOG_PLANS: plans are */
#define QN__LOG_PLANS 256
static inline bool qn__logs(int level)
{
  const int now = atomic_load_explicit(&qn__log_level, memory_order_relaxed);
  return level >= QN_LOG_ERROR && (level == QN_LOG_PLAN ? now & QN__LOG_PLANS : level <= (now & 255));
}
/* All of core's memory: zeroed; NULL when memory is out or a test wants a failure (qn__fail_alloc_at). */
void *qn__alloc(size_t bytes);
void *qn__realloc(void *p, size_t old_bytes, size_t bytes);   /* the added part is zeroed; on failure NULL, and p remains valid */
/* A list of n elements with room for one more, which are zeroed; on failure NULL, and the list remains valid. */
void *qn__grown(void *list, int n, int *cap, size_t element_bytes);
char *qn__strdup(const char *s);
void  qn__free(void *p);
const char *qn__screened(const char *variable);     /* getenv; NULL: unset, or the program is setuid */
extern atomic_long qn__alloc_count, qn__alloc_live;           /* for tests: allocations so far, and those not yet freed */
extern atomic_long qn__fail_alloc_at;                         /* fault injection: the n-th allocation from now fails; 0: none */
extern const qn_host qn__host;                      /* host.c: what backends may call */
/* In the child after fork: reinitialise the locks of status.c, object.c, registry.c, device.c, cache.c, tune_cache.c, profile.c and check.c. */
void qn__objects_in_child(void);
void qn__log_in_child(void);
void qn__registry_in_child(void);
void qn__devices_in_child(void);
void qn__caches_in_child(void);
void qn__tune_in_child(void);
void qn__profile_in_child(void);
void qn__check_in_child(void);

/* ---- object.c: what callers hold; its memory stays readable after its destruction ------------- */

enum { QN_OBJECT_CONTEXT, QN_OBJECT_PLAN, QN_OBJECT_GRAPH, QN_OBJECT_RECORDING, QN_OBJECT_TIMER, QN_OBJECT_KINDS };
void *qn__object_new(int kind, size_t bytes);       /* zeroed, of the kind's one size; NULL: no memory */
void  qn__object_free(int kind, void *object);      /* the caller has marked it as destroyed; NULL is a no-op */
/* QN_BAD_ARGUMENT with the sentence that says so; a function without a status logs it. */
qn_status qn__destroyed(const char *what);
void      qn__log_destroyed(const char *what);
#define QN__FIRST_GENERATION 0x51a7e001             /* unlike what stray pointers point to; fork starts a new one */
extern atomic_int qn__generation;
extern bool qn__workers_lost;                       /* forked from a process with threads: CPU engines must use one */
/* An error if ctx is NULL, destroyed, no context or created before a fork. */
qn_status qn__context_alive(const struct qn_context *ctx);

/* A growing string; once growing fails, `failed` is set and appends do nothing. */
typedef struct qn_text { char *s; size_t len, cap; bool failed; } qn_text;
void qn__text_add(qn_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t qn__text_out(qn_text *t, char *buffer, size_t bytes);  /* copies it out and frees it; returns its length */

/* ---- schema_table.c (generated from ops.def), schema.c ------------------------------------- */

extern const qn_op_info qn__ops[];                  /* by number, ascending */
extern const int qn__n_ops;
typedef struct qn__alias { const char *word; int op; } qn__alias;       /* another name of qn__ops[op] */
extern const qn__alias qn__aliases[];
extern const int qn__n_aliases;
#define QN__KINDS 512                               /* op numbers are below it */
extern const uint16_t qn__op_place[QN__KINDS];
static inline const qn_op_info *qn__op(uint32_t kind)   /* qn_op_find for the hot path */
{
  return kind < QN__KINDS && qn__op_place[kind] ? &qn__ops[qn__op_place[kind] - 1] : NULL;
}

/* ---- graph.c, notation.c, infer.c, layout.c ---------------------------------------------------------- */

struct qn_graph {
  qn_graph_view view;                               /* the first member; points into the memory below */
  bool          single;                             /* written as a single op, and printed as one */
  void         *memory;                             /* NULL: destroyed */
};

/* infer.c: the rules of one op. On entry attr is a complete, writable copy and the inputs are known; outputs with dtype 0 are to be
 * inferred (with rank -1 their dims too), the others are given and checked. On success all outputs are complete, except the strides
 * of inferred ones (see qn__default_strides). */
qn_status qn__infer(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value);

/* layout.c */
void      qn__default_strides(qn_value *v, const qn_value *like);   /* packed, in like's dim order (NULL: last fastest) */
bool      qn__overlaps_itself(const qn_value *v);   /* true: two indices share an address */

/* view.c: folded views. A value that is a view is the memory of another one, from an element on, under other dims and strides. */
typedef struct qn__views {
  int32_t  *of;                                     /* of each value: the value whose memory it is; itself: no folded view */
  int64_t  *offset;                                 /* in elements */
  qn_value *as;                                     /* as readers see it */
  uint8_t  *folded;                                 /* of each op: it is such a view, and no work */
  int       n;                                      /* how many are */
} qn__views;
/* The views among the graph's ops that could be folded; NULL: there are none, or no memory. */
qn__views *qn__views_find(const qn_graph_view *g);
void       qn__views_resolve(qn__views *v, const qn_graph_view *g);       /* all else, when `folded` has changed */
void       qn__views_free(qn__views *v);            /* NULL is a no-op */

/* Do any two of these memory ranges overlap, at least one of them written? Sorts them. */
typedef struct qn__range { uintptr_t begin, end; } qn__range;         /* end: 2 * address, plus 1 if written */
bool      qn__ranges_meet(qn__range *r, size_t n);

/* graph.c and graph_of_op.c: turn arrays into a checked graph; used by notation.c, qn_graph_make and the BLAS-like call. */
qn_status qn__graph_alive(const qn_graph *g);       /* an error if g is NULL or destroyed */
qn_status qn__graph_finish(qn_graph *g);            /* sets producers, users, escapes; infers each op in order */
qn_status qn__graph_of_op(const qn_op *op, qn_graph **graph_p);   /* one op, checked: the first call of a problem */

/* ---- settings.c: the environment and the options of a context ------------------------------ */

enum { QN_SET_BACKEND, QN_SET_DEVICE, QN_SET_DEVICE_MODEL, QN_SET_PLUGIN_PATH, QN_SET_ENGINE, QN_SET_TUNE, QN_SET_TUNE_CACHE,
       QN_SET_DETERMINISTIC, QN_SET_MATH, QN_SET_THREADS, QN_SET_LANES, QN_SET_WORKSPACE_LIMIT, QN_SET_FALLBACK, QN_SET_LOG, QN_SET_TRACE,
       QN_SET_PROFILE, QN_SET_OVERRIDE, QN_SET_COUNT };
enum { QN_TUNE_OFF, QN_TUNE_CACHED, QN_TUNE_MEASURE };
enum { QN_FROM_DEFAULT, QN_FROM_ENVIRONMENT, QN_FROM_CONTEXT, QN_FROM_OVERRIDE };      /* each beats those before it */

/* "matmul=cuda/wgmma:128x256_c2": an op or family, and the engine that it must use. */
typedef struct qn__pin { uint32_t op; char *backend, *engine, *variant; } qn__pin;   /* op: as in qn_engine; 0: meant for another device */

typedef struct qn__settings {
  char    *text[QN_SET_COUNT];                      /* as given; NULL: unset */
  uint8_t  origin[QN_SET_COUNT];                    /* QN_FROM_... */
  uint32_t determinism, math, tune, log;
  bool     fallback, any_engine;                    /* any_engine: the pins end in "any" */
  int32_t  ranks;                                   /* of the group that the context has joined; 0: none */
  int32_t  device, threads, lanes;                  /* device -1, threads 0: unset */
  uint64_t workspace_limit;
  qn__pin *pin;
  int      n_pins;
} qn__settings;
void      qn__settings_default(qn__settings *s);    /* as if nothing were given */
qn_status qn__settings_init(qn__settings *s);       /* from the environment, which is read once; QUERN_OVERRIDE too */
/* Then from a context's options as well; applies its log level. Their plugin_path: registry.c's qn__backends_also. */
qn_status qn__settings_read(qn__settings *s, const char *const options[]);
void      qn__settings_log(const qn__settings *s);  /* the log level is the process's: the environment's, or the last option set */
qn_status qn__settings_set(qn__settings *s, const char *key, const char *value, int origin);
void      qn__settings_overruled(const qn__settings *s);    /* logs which variables do not count, each once */
void      qn__settings_free(qn__settings *s);
const char *qn__setting_key(int i);
const char *qn__setting_variable(int i);
const char *qn__setting_help(int i);
const char *qn__setting_value(const qn__settings *s, int i);    /* as given, else its default */
int       qn__setting_index(const char *key);       /* -1: no such key; the error sentence lists the known ones */
void      qn__tune_default_path(qn_text *t);        /* adds the tune cache's path where none is set; nothing without a home */
const char *qn__environment(int setting);           /* the value that was read; NULL: unset */

/* ---- registry.c: finding and loading backends ----------------------------------------------- */

typedef struct qn__backend {
  const qn_backend *table;                          /* NULL: could not be loaded */
  char     *name, *path, *why;
  const char *const *variables;                     /* pairs ended by NULL; never NULL itself */
  qn_status status;
  int       instance;                               /* its index among backends that open instances; -1: it opens none */
  const qn_device_ops *device;                      /* copied to the current struct size, as the rows are; NULL: it provides none */
  qn_engine *engine;
  int       n_engines;
  int32_t  *by_op, *first;                          /* the op vtable: rows of qn__ops[i] are by_op[first[i]] .. first[i+1]-1 */
  struct qn__backend *_Atomic next;                 /* set once the next one is complete; the list is read without a lock */
} qn__backend;
#define QN__INSTANCES 64                            /* limit on backends that open instances: a plan keeps their set in one word */
/* name: a backend's name or an absolute path. An error says why it cannot be had. */
qn_status qn__backend_get(const char *name, qn__backend **out);
void      qn__backends_also(const qn__settings *s); /* searches a context's own plugin_path, if it has one */
qn__backend *qn__backends(void);                    /* all that are found, loaded if need be; built-in ones first */
qn__backend *qn__backends_here(void);               /* those loaded so far */
bool      qn__anchors(const qn_engine *row, const qn_op_info *op);

/* ---- variables.c: what is read from the environment, by the library and by backends ------------- */

void      qn__variables_unknown(void);              /* warns, once, of QUERN_ variables that nothing reads */

/* ---- device.c: devices, shared by contexts -------------------------------------------------- */

/* The demands of a context with its backends and pins, interned as one object with a number, so that the plan cache can compare
 * numbers. Owned by the device; never freed. */
typedef struct qn__policy {
  uint64_t      id;
  char         *key;                                /* canonical text */
  qn_demands    demands;
  qn__backend **backend;                            /* enabled, in the order asked for */
  int           n_backends;
  qn__settings  settings;                           /* pins, tune, fallback */
  const struct qn__policy *next;
} qn__policy;
enum { QN__POLICY_BUCKETS = 64 };

typedef struct qn__device {
  const qn_device_ops *ops;
  qn__backend    *provider;
  qn_device       desc;
  char            narrowed[16];                     /* the model it is narrowed to; "": none */
  pthread_mutex_t lock;                             /* guards the policies */
  const qn__policy *policy[QN__POLICY_BUCKETS];     /* lists, by the hash of the key */
  struct qn__cache *cache;                          /* of plans; NULL before its first context */
  struct qn__device *next;
} qn__device;
/* The device that s asks for; s NULL: the first, not narrowed. */
qn_status qn__device_get(qn__backend *provider, const qn__settings *s, qn__device **out);
/* qn__enter makes a device current for the calling thread; qn__leave restores the previous one. */
qn_status qn__enter(const qn__device *dev, uint64_t *saved);
void      qn__leave(const qn__device *dev, uint64_t saved);
/* Sets desc to that model: one with no device behind it (ordinal -1), or a live device narrowed to it. */
qn_status qn__device_model(const qn__backend *provider, const char *model, qn_device *desc);
/* The backends that s asks for, in order, and the provider of their device kind. The caller frees list. */
qn_status qn__device_choose(const qn__settings *s, qn__backend ***list, int *n, qn__backend **provider);
/* The same for a device model; with no backend named, the first that knows the model. */
qn_status qn__device_choose_model(const qn__settings *s, const char *model, qn__backend ***list, int *n, qn__backend **provider);
qn_status qn__policy_intern(qn__device *dev, const qn__settings *s, qn__backend *const *list, int n, const qn__policy **out);
/* A policy for a description without a device; free with qn__policy_free. */
qn_status qn__policy_make(const qn_device *desc, const qn__settings *s, qn__backend *const *list, int n, qn__policy **out);
void      qn__policy_free(qn__policy *t);

/* ---- instance.c: what a context has of its device and backends ---------------------------------- */

bool      qn__context_known(const struct qn_context *ctx);      /* may be described: alive, or made before a fork */
bool      qn__context_capturing(struct qn_context *ctx);
/* The backend's instance, opened if need be; NULL: it has none. */
qn_status qn__context_instance(struct qn_context *ctx, const qn__backend *b, void **instance);
void      qn__context_close(struct qn_context *ctx);             /* all its instances */
qn_status qn__context_open(struct qn_context *ctx, uint64_t which);   /* those that are not open of a set of instances */

/* ---- choose.c: offers -> part; planner.c: graph -> parts ---------------------------------------- */

typedef struct qn__offers qn__offers;
typedef struct qn__tuner qn__tuner;
/* On whose behalf planning is done: a context, or a device model (then nothing is built). */
typedef struct qn__planning {
  const qn_device *device;
  const qn__policy *policy;
  struct qn_context *ctx;                           /* NULL: a model */
  void (*verdict)(void *user, const qn_verdict *);  /* called with every engine's answer; may be NULL */
  void *user;
  int   depth;                                      /* of delegation */
  int32_t threads;                                  /* for the engine asked; 0: the policy's */
  bool  timed;                                      /* measure what is chosen, even if there is no choice */
  bool  draft;                                      /* nothing is built or measured: what would be chosen? */
  uint64_t *uses;                                   /* NULL, or collects the instances that parts need, as bits */
  const qn__tuner *tuner;                           /* what was and what can be measured */
  /* While an engine is asked: qn__part_choose, for host.c, which is on a lower floor. */
  qn_status (*delegate)(const struct qn__planning *, const qn__offers *, const char *only, int32_t needs, int part_no, qn_part **out);
} qn__planning;

/* What the rows with one pattern are asked about: the region that it admits around an anchor. */
typedef struct qn__offer {
  qn_request     request;
  int32_t       *op_of, *value_of;                  /* the graph's indices of its ops and values; NULL in delegation */
  double        *literal;                           /* values of its host scalars, for printing and measuring; NULL: not known */
} qn__offer;

/* name: "backend/engine[:variant][|ops offered]"; version: the backend's */
typedef struct qn__choice { char name[192], version[64]; double ns; } qn__choice;
/* Tuning plans what it measures, so it stands above the planner, which reaches it by this. */
struct qn__candidate;
struct qn__tuner {
  /* What was measured for what is offered; false: nothing. pinned: only pinned engines compete. */
  bool (*lookup)(const qn__planning *pc, const qn__offers *offers, bool pinned, qn__choice *out);
  /* Measures the candidates, best first, and binds the fastest; QN_UNSUPPORTED: nothing could be measured. */
  qn_status (*measured)(const qn__planning *pc, const qn__offers *offers, bool pinned, struct qn__candidate **order, int n, qn_part **out);
  /* Gives intermediates other strides where the plan is faster so, by drafts. g: not yet planned, and the caller's own. */
  void (*layouts)(const qn__planning *pc, qn_graph *g);
};
extern const qn__tuner qn__tuning;                  /* tuning/search.c */
void      qn__layouts_choose(const qn__planning *pc, qn_graph *g);      /* tuning/layouts.c */
#define QN__NEAR_TIE 1.03                           /* within 3% of the best counts as equal */

/* The offers around one anchor. offer[0] is for rows without a pattern, and for those whose pattern is not among them. */
enum { QN__PATTERNS = 16 };
struct qn__offers { int n; const qn_pattern *pattern[QN__PATTERNS]; qn__offer *offer[QN__PATTERNS]; };

/* An engine bound to some ops of a graph: the request that it accepted, and its answer. */
struct qn_part {
  qn_prepared    prepared;
  qn_engine     *engine;                            /* the registry's row */
  qn__backend   *backend;
  qn_demands     demands;                           /* what it was asked under: its threads may be fewer than the context's */
  qn_request     request;                           /* its arrays are in `memory`; core is valid during planning only */
  uint8_t       *use;                               /* of each of the request's values: QN_USE_... */
  int32_t       *op_of, *value_of;                  /* as in an offer, as is literal */
  double        *literal;
  void          *memory;
  double         ns;                                /* measured time; 0: not measured */
};
enum { QN_USE_NONE, QN_USE_READ, QN_USE_WRITTEN, QN_USE_INSIDE };       /* inside: between ops taken, without memory */
static inline bool qn__takes(const qn_part *p, uint32_t op) { return p->prepared.taken >> op & 1; }
void      qn__part_free(qn_part *p);                /* host.c; NULL is a no-op */
/* The best engine that the policy allows; it is built, except for a model, in delegation (where part_build does it) or as a draft.
 * only: "backend/engine", "engine" or NULL. needs: -1, or an op of the graph: if the best does not take it, *out is NULL. */
qn_status qn__part_choose(const qn__planning *pc, const qn__offers *offers, const char *only, int32_t needs, int part_no, qn_part **out);
/* Whether a row with that pattern would take op `op` of the graph from its offer. */
bool      qn__anyone_takes(const qn__planning *pc, const qn__offer *offer, const qn_pattern *pattern, int32_t op);
/* Whether the op reads a tensor with a zero dim: only the generic engine is asked. */
bool      qn__over_nothing(const qn_node *op, const qn_value *value);
/* Binds every op of a graph, except those with no output elements; parts come in an order in which they can run. *views: the folded
 * views, to be freed by qn__views_free; NULL: none. */
qn_status qn__partition(const qn__planning *pc, const qn_graph *g, qn_part ***parts, int *n_parts, qn__views **views);

/* ---- request.c ---------------------------------------------------------------------------------- */

#define QN__ALL_OPS(n) ((n) >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (n)) - 1)     /* a set of a request's first ops */
/* Copies a request into one block: nodes, values, views, roles, attributes and `use`; the offer's other arrays if it has them. */
qn_status qn__request_copy(qn_part *p, const qn__offer *o, uint32_t n_ops);
/* How many values the first n_ops of a request use; the planner numbers these first. */
uint32_t  qn__values_of(const qn_request *r, uint32_t n_ops);
/* Does that set hold the anchor, and no path leave it and come back? */
bool      qn__request_whole(const qn_request *r, uint64_t taken);
/* What the set of ops does with value v: QN_USE_... */
uint8_t   qn__request_use(const qn_request *r, uint64_t taken, uint32_t v);
/* Bytes that the set of ops reads and writes less, as one engine's, than op by op. */
double    qn__request_saves(const qn_request *r, uint64_t taken);
/* A set of the request's ops as a graph with values renumbered. A host scalar known only to be neither 0 nor 1 becomes 2. known: the
 * values of host scalars; NULL: take them from the request's scalar classes. name: of each value; NULL: none has one. */
qn_status qn__request_graph(const qn_request *r, uint64_t which, const double *known, const char *const *name, qn_graph **out);
/* The same as problem lines, joined by " | ". */
void      qn__request_print(qn_text *t, const qn_request *r, uint64_t which, const double *known, const char *const *name);

/* fallback.c: runs the request's first op on the CPU, with copies. */
qn_status qn__fallback_part(const qn__planning *pc, const qn__offer *offer, qn_part **out);
uint64_t  qn__fallback_staging(const qn_part *part);            /* host memory that such a part needs of the context; else 0 */

/* ---- plan.c ---------------------------------------------------------------------------------- */

void      qn__part_print(qn_text *t, const qn_plan *p, const qn_part *part);   /* its problem lines, with the graph's names */
void      qn__part_engine(qn_text *t, const qn_part *part);                    /* backend/engine[:variant] */

/* Rounds up to where the next block of workspace may begin. */
static inline uint64_t qn__round_up(uint64_t bytes) { return (bytes + 255) & ~UINT64_C(255); }

/* Where a value of a part is at run time. */
typedef struct qn__place { int32_t kind; int32_t index; uint64_t offset; } qn__place;
enum { QN_PLACE_NONE, QN_PLACE_POINTER, QN_PLACE_WORKSPACE, QN_PLACE_LITERAL };

enum { QN__LANES = 4, QN__START = -1 };             /* streams that a plan may use, the context's own among them */

/* What is put around a step of a new plan: the first member of what the trace, the profile or the checking device keep for it. */
typedef struct qn__wrapper {
  qn_prepared outer;                                /* given to its run; state: what begins with this wrapper */
  qn_status (*run)(const qn_prepared *, const qn_launch *);   /* of what it is around, */
  const qn_prepared *inner;                         /*   and what that is given */
  void (*free)(struct qn__wrapper *);
  struct qn__wrapper *below;
} qn__wrapper;

typedef struct qn__step {
  qn_status (*run)(const qn_prepared *, const qn_launch *);   /* the engine's, or the outermost wrapper's */
  const qn_prepared *prepared;
  qn__wrapper *wrapper;                             /* the outermost; NULL: none */
  qn_part   *part;
  qn__place *place;                                 /* one for each value of the part's request */
  uint64_t   workspace, counters;                   /* offsets of the engine's scratch and counters */
  int32_t    instance;                              /* its backend's instance number; -1: none */
  bool       direct;                                /* execute's pointers are the values, in order */
  /* See lanes.c. The step after the last stands for the end, which waits for every lane. */
  int32_t    lane;
  int32_t    before[QN__LANES];                     /* the last step of each lane that is done when it begins; -1: none */
  int32_t    wait[QN__LANES];                       /* steps of other lanes, or QN__START: what was enqueued before the plan */
  uint32_t   n_waits, event;                        /* event: of the context's, recorded after it; 0: none */
} qn__step;

/* What execute checks of each pointer p:
 *   mask    p & mask is 0: its alignment
 *   null    p - 1 & null is 0: p is not NULL (user addresses have the top bit clear; NULL - 1 has it set)
 *   mate    p equals the pointer of that index: of the input whose memory it takes; else its own index
 *   bytes   no output shares bytes with another pointer; an input whose memory is reused counts as 0 bytes */
typedef struct qn__bounds { uint64_t mask, null, bytes; uint32_t mate; } qn__bounds;
#define QN__MANY 48                                 /* with more pointers than this, overlaps are found by sorting */

struct qn_plan {
  /* The usual case: one step, few pointers in their own order, nothing else to do. NULL otherwise. */
  qn_status  (*run)(const qn_prepared *, const qn_launch *);
  const qn_prepared *prepared;
  int32_t      threads;
  int32_t      made_for;                            /* threads of the context that made it: the most of any step */
  int32_t      ranks;                               /* of the group that its collectives are for, 0: none; -1: has none */
  atomic_int   refs;
  qn_status    status;                              /* of a cached refusal, with its sentence in why */
  char        *why;
  qn__device  *dev;                                 /* NULL: a refusal, or destroyed by the caller (recordings may still use it) */
  const qn__policy *policy;
  uint32_t     n_pointers, n_ins, n_steps;
  uint64_t     workspace, counters, staging, scratch;
  uint32_t     n_lanes, n_events;                   /* one lane needs no event */
  bool         forks, mates;                        /* forks: some lane begins with QN__START; mates: some output is over an input */
  uint64_t     instances;                           /* bit i: instance i must be open */
  qn__step    *step;
  qn__bounds  *bounds;
  uint64_t     mask;                                /* all pointers' masks ORed, for a quick check */
  double      *literal;                             /* host scalars that are literals of the graph */
  qn_graph    *graph;
  qn__views   *views;                               /* folded views of the graph; NULL: none */
  uint64_t     hash, *key;                          /* in the cache; key NULL: the caller's plan */
  uint32_t     n_words;
  uint64_t     used;                                /* the cache's clock at last use */
  struct qn_plan *chain;
};
/* Plans and builds; takes g even on failure; refs 1. */
qn_status qn__plan_make(struct qn_context *ctx, const qn__tuner *tuner, qn_graph *g, qn_plan **out);
/* Puts w around a step of a plan that nobody has yet: `run` is called in its place. The plan frees it with `free`. */
static inline void qn__step_wrap(qn_plan *p, qn__step *step, qn__wrapper *w, qn_status (*run)(const qn_prepared *, const qn_launch *),
                                 void (*free)(qn__wrapper *))
{
  *w = (qn__wrapper){ .outer.state = w, .run = step->run, .inner = step->prepared, .free = free, .below = step->wrapper };
  step->wrapper = w;
  step->run = run;
  step->prepared = &w->outer;
  if (!p->run) return;
  p->run = run;
  p->prepared = &w->outer;
}
qn_status qn__plan_failed(qn_status status, qn_plan **out);   /* a plan that stands for a refusal and its sentence */
void      qn__plan_release(qn_plan *p);             /* NULL is a no-op */
/* Logs the plan that a graph's parts would make, with log=plan. ops: of the device, or of a model's provider. */
void      qn__plan_log(const qn__planning *pc, const qn_device_ops *ops, const qn_graph *g, qn_part *const *part, int n, qn__views *views);
/* The graph's value in whose memory the part's value v is, and whether the part uses that memory. */
static inline int32_t qn__place_of(const qn_plan *p, const qn_part *part, uint32_t v)
{
  return p->views ? p->views->of[part->value_of[v]] : part->value_of[v];
}
static inline bool qn__in_memory(const qn_part *part, uint32_t v) { return part->use[v] == QN_USE_READ || part->use[v] == QN_USE_WRITTEN; }

/* lanes.c: gives each step its lane and waits; or all one lane. */
qn_status qn__lanes_assign(qn_plan *p);
void      qn__lanes_one(qn_plan *p);
/* As a plan of several lanes runs: at its begin, before a step, and at its end, when `begun` steps have begun and the last gave status. */
qn_status qn__lanes_begin(struct qn_context *ctx, const qn_plan *p);
void     *qn__lane_stream(const struct qn_context *ctx, const qn__step *step);
qn_status qn__lanes_wait(struct qn_context *ctx, const qn_plan *p, const qn__step *step);
qn_status qn__lanes_end(struct qn_context *ctx, const qn_plan *p, uint32_t begun, qn_status status);
qn_status qn__plan_run(struct qn_context *ctx, const qn_plan *p, void *const *ptr, void *workspace, void *counters);

/* ---- cache.c: plans by problem, one cache per device ------------------------------------------ */

qn_status qn__cache_open(qn__device *dev);           /* makes the device's, for its first context */
/* The plan of a key. If there is none, make() is called once, however many threads ask. The caller gets a reference. */
qn_status qn__cache_get(struct qn__cache *c, const uint64_t *key, uint32_t n_words, uint64_t hash,
                        qn_status (*make)(void *arg, qn_plan **out), void *arg, qn_plan **out);

/* ---- context.c, run.c, record.c ------------------------------------------------------ */

#define QN_RECENT 512                               /* sets of two in a context's table of recent plans */

struct qn_context {
  int          generation;                          /* of the process at creation; 0: destroyed */
  int32_t      most_threads;                        /* a plan made for more, before fork, cannot be executed */
  atomic_uintptr_t user;                            /* the thread in a call with it; 0: none; QN__DISTURBED: see qn__end */
  atomic_uint_least64_t calls;                      /* begun so far: whether it still is the same one */
  atomic_uint_least64_t frees;                      /* calls that give memory back, which any thread may make: begun so far */
  atomic_int   freeing;                             /* and under way */
  qn__device  *dev;
  uint64_t     id;                                  /* unique in the process */
  const qn__policy *policy;
  qn__settings settings;
  qn__backend **backend; int n_backends;            /* as chosen at creation */
  void        *instance[QN__INSTANCES];             /* by instance number; NULL: not opened */
  uint64_t     opened;                              /* bit i: instance i is open */
  void        *stream, *own_stream;
  void        *lane[QN__LANES], **event;            /* further streams, lane[0] unused, and events: made when a plan of several lanes is */
  uint32_t     n_lanes, n_events;
  qn_allocator allocator;
  void        *workspace; uint64_t workspace_bytes;
  void        *counters;  uint64_t counters_bytes;
  bool         counters_unclean;                    /* zeroing failed and must be repeated */
  void        *staging;   uint64_t staging_bytes;   /* host memory, for the fallback */
  void        *scratch;   uint64_t scratch_bytes;   /* host memory for execute: long lists of pointers */
  void        *call;      uint64_t call_bytes;      /* host memory: the words and pointers of a long call */
  void       **retired;  uint64_t *retired_bytes; int n_retired;   /* kept until the end, since recordings may use them */
  qn_plan     *recent[QN_RECENT][2];
  struct qn__profile *profile;                      /* NULL: nothing was profiled */
  qn_group    *group;                               /* joined, or NULL */
  uint64_t     joined;                              /* how often it has joined or left one */
  struct qn_recording *recording;                   /* in progress, or NULL */
  bool         recorded;                            /* recordings exist and use the arena */
};
qn_status qn__context_ready(struct qn_context *ctx, const qn_plan *p);    /* grows the arena, opens instances; not under capture */
qn_status qn__context_room(void **block, uint64_t *have, uint64_t need);  /* host memory of at least that size; contents are lost */
void      qn__context_forget(struct qn_context *ctx);                     /* empties its table of plans */
static inline bool qn__is_alive(const struct qn_context *ctx)
{
  return ctx->generation == atomic_load_explicit(&qn__generation, memory_order_relaxed);
}

/* One thread at a time: each call that uses a context marks it with its thread from begin to end. Loads and stores without a lock, for
 * a nanosecond: of two threads that enter at the same moment at least one finds the other's mark when it leaves. The same thread may
 * enter again, from a callback (the log's, an allocator). */
#define QN__DISTURBED 1
static inline bool qn__begin(struct qn_context *ctx, uintptr_t *before)       /* false: another thread is in a call with ctx */
{
  const uintptr_t me = (uintptr_t)pthread_self();
  *before = atomic_load_explicit(&ctx->user, memory_order_acquire);
  if (__builtin_expect(*before && *before != me, 0)) return false;
  atomic_store_explicit(&ctx->user, me, memory_order_relaxed);
  atomic_store_explicit(&ctx->calls, atomic_load_explicit(&ctx->calls, memory_order_relaxed) + 1, memory_order_relaxed);
  return true;
}
static inline bool qn__end(struct qn_context *ctx, uintptr_t before)          /* false: another thread came in between */
{
  if (__builtin_expect(atomic_load_explicit(&ctx->user, memory_order_relaxed) != (uintptr_t)pthread_self(), 0)) return false;
  atomic_store_explicit(&ctx->user, before, memory_order_release);
  return true;
}
qn_status qn__plan_suits(const struct qn_context *ctx, const qn_plan *plan);      /* is alive, of ctx's device and its group's size */
qn_status qn__ranks_suit(const struct qn_context *ctx, const char *what, int32_t ranks);       /* ranks: as a plan's */
qn_status qn__in_use(void);                                       /* the error when qn__begin is false */
qn_status qn__disturbed(struct qn_context *ctx, uintptr_t before);        /* when qn__end is false: tells the other thread too */
/* The same for calls that need not be fast: qn__use fails if ctx is not alive or in use; the declaration sees to the end. */
typedef struct qn__using { struct qn_context *ctx; uintptr_t before; uint64_t saved; bool entered; } qn__using;
qn_status qn__use(struct qn_context *ctx, qn__using *u);
qn_status qn__use_device(struct qn_context *ctx, qn__using *u);         /* and is inside its device, until then */
void      qn__use_end(qn__using *u);
#define QN__UNTIL_RETURN __attribute__((cleanup(qn__use_end)))
/* Adds an execution: where the device captures, only to keep the plan alive; else also to repeat it at each replay. */
qn_status qn__record_add(struct qn_context *ctx, const qn_plan *p, void *const *ptr);
qn_status qn__record_copy(struct qn_context *ctx, void *to, const void *from, size_t bytes, int kind);

/* ---- trace.c, profile.c ------------------------------------------------------------------------ */

/* With QUERN_TRACE: wraps the plan's first step in one that writes the plan's lines when it first runs. */
void      qn__trace_wrap(struct qn_context *ctx, qn_plan *p);
void      qn__append(const char *who, const char *path, const char *text);     /* to a file; a failure is logged with who's name */
/* With QUERN_PROFILE: wraps each step in one that counts and times it for the executing context. */
void      qn__profile_wrap(struct qn_context *ctx, qn_plan *p);
uint64_t  qn__profile_id(void);                     /* of a row of the table: a step or a recording */
qn_status qn__profile_replay(struct qn_context *ctx, uint64_t id, int plans, void *native);     /* launches a recording, timed if asked */
void      qn__profile_end(struct qn_context *ctx);  /* prints the table and frees it; the device is current, its work done */

/* ---- ranks/group.c, running/guard.c ------------------------------------------------------------- */

const qn_ranks *qn__context_ranks(const struct qn_context *ctx);          /* NULL: it has joined no group */
/* Around what runs or replays collectives; and after a wait for the stream. */
void      qn__collectives_begin(const struct qn_context *ctx);
void      qn__collectives_end(const struct qn_context *ctx);
void      qn__collectives_waited(const struct qn_context *ctx);
/* The group's failure, if its guard has aborted collectives; again: also if that has been told. */
qn_status qn__group_broken(const struct qn_context *ctx, bool again);
extern const char *const qn__group_variables[];     /* as a backend's variables */
/* What qn_host has for engines. */
qn_status qn__ranks_exchange(const qn_ranks *ranks, const char *what, const void *mine, size_t bytes, void *all);
qn_status qn__ranks_watch(const qn_ranks *ranks);
qn_status qn__ranks_fail(const qn_ranks *ranks, const char *sentence);
qn_status qn__ranks_slot(const qn_ranks *ranks, const void *key, void (*leave)(void *own, int failed), void ***out);

/* ---- check.c: the checking device ------------------------------------------------------------- */

qn_status qn__check_backend(const qn__backend *all, qn__backend **out);    /* on the CPU that one of all backends provides */
bool      qn__checks(const qn__device *dev);
/* On that device: wraps each step in one that checks its pointers and keeps the work, with a reference to the plan, until someone waits. */
qn_status qn__check_wrap(const struct qn_context *ctx, qn_plan *p, void (*release)(qn_plan *));

#endif
