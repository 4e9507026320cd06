/* tools.h -- for authors of tools: the schema, problem lines as data, what is loaded and why, timing.
 * quern-conform, quern-bench and quern-info use only this and quern.h.
 *
 * growth: a struct that the library fills begins with its size, and rows have a stated size; later versions add fields at the end. A
 * program that may meet a library of another version reads a field only if the size covers it. qn_domain is frozen. */
#ifndef QUERN_TOOLS_H
#define QUERN_TOOLS_H
#include <quern/backend.h>
#ifdef __cplusplus
extern "C" {
#endif

/* ---- the op schema, as core/ops.def declares it ------------------------------------------- */

enum { QN_ROLE_OPTIONAL = 1u, QN_ROLE_LIST = 2u, QN_ROLE_OUTPUT = 4u };
enum { QN_HOLDS_ANY, QN_HOLDS_POSITIVE, QN_HOLDS_ZERO,
       QN_HOLDS_PLACE,                    /* indices from `from` to below the extent of dim `dim` of role `of` */
       QN_HOLDS_COUNT,                    /* exactly that extent */
       QN_HOLDS_RISING,                   /* from 0 to that extent, rising */
       QN_HOLDS_LARGE,                    /* more than any extent */
       QN_HOLDS_SMALL };                  /* about 1/32: sums of a thousand products with them are about as large as the other factor */
enum { QN_HOLDS_AXIS = -1, QN_HOLDS_PLANE = -2 };     /* for dim: the attribute; all spatial dims (u8: the window) */
typedef struct qn_role_info {
  const char *name;                       /* "x" */
  char        class_;                     /* the dtypes it takes, a letter; see ops.def */
  uint32_t    flags;                      /* QN_ROLE_... */
  int32_t     paired;                     /* the output role that may take this input's memory; -1: none */
  uint8_t     holds, from;                /* QN_HOLDS_...: what its elements must be for the op to do typical work */
  int8_t      of, dim;
} qn_role_info;

enum { QN_ATTR_INT, QN_ATTR_REAL, QN_ATTR_SPATIAL, QN_ATTR_SPADS, QN_ATTR_RANK, QN_ATTR_RPADS, QN_ATTR_AXES };
typedef struct qn_attr_info {
  const char *name;                       /* "pad" */
  uint32_t    type, offset, offset2;      /* offset: in the attribute struct; offset2: of a pad's "after" */
  double      def;                        /* default of each entry */
  int32_t     identity;                   /* 1: the default of entry i is i */
  const char *words;                      /* "constant|reflect": the words in lines for 0, 1, ...; NULL: numbers */
  const char *range;                      /* the range of each entry in words, "at least 1"; NULL: left to the op's own rules */
  double      least, most;                /* that range in numbers */
} qn_attr_info;

typedef struct qn_op_info {
  uint64_t    struct_size;
  const char *name;                       /* "conv_forward" */
  uint32_t    kind, family;               /* QN_OP_..., QN_FAMILY_... */
  uint32_t    forward;                    /* the op whose gradient it is; 0: none */
  uint32_t    role_info_size, attr_info_size;       /* of the rows below, which qn_op_role and qn_op_attr step by */
  uint32_t    n_roles, n_inputs;
  const qn_role_info *role;
  uint32_t    n_attrs, attr_bytes;        /* attr_bytes: the size of the op's attribute struct */
  const qn_attr_info *attr;
  const void *attr_default;               /* attr_bytes long; NULL if it has no attributes */
  const char *text;                       /* "y = max(x, 0)" */
} qn_op_info;
static inline const qn_role_info *qn_op_role(const qn_op_info *op, uint32_t i)
{
  return (const qn_role_info *)(const void *)((const char *)op->role + i * (size_t)op->role_info_size);
}
static inline const qn_attr_info *qn_op_attr(const qn_op_info *op, uint32_t i)
{
  return (const qn_attr_info *)(const void *)((const char *)op->attr + i * (size_t)op->attr_info_size);
}
const qn_op_info *qn_op_at(int i);                    /* i from 0; NULL past the end */
const qn_op_info *qn_op_find(uint32_t kind);          /* NULL: no such op */
const qn_op_info *qn_op_named(const char *name);      /* NULL: no such op, or name is NULL */
const char       *qn_family_name(uint32_t family);    /* "?" if there is none */
/* By convention, from shapes alone: a multiply-add is two. value: those that op's arg number; inferred. */
double            qn_flops(const qn_node *op, const qn_value *value);

/* ---- graphs as data ----------------------------------------------------------------------- */

/* A graph as arrays. Values are numbered in order of first appearance; pointer[] lists the values for which execute takes
 * pointers (ins, then outs). A literal scalar is a value with QN_VALUE_HOST, of f64 (bool in a role of bools), with its
 * number in literal[]. */
typedef struct qn_graph_view {
  uint64_t        struct_size;
  uint32_t        n_ops, n_values, n_pointers, n_ins;
  const qn_node  *op;
  const qn_value *value;
  const char *const *name;                /* of each value; "" for one without a name */
  const double   *literal;
  const int32_t  *pointer;
} qn_graph_view;
const qn_graph_view *qn_graph_inspect(const qn_graph *graph);     /* valid as long as the graph */
/* The reverse: a graph from arrays, which are copied, checked like a parsed one. producer, last_user and QN_VALUE_ESCAPE are recomputed. */
qn_status qn_graph_make(const qn_graph_view *view, qn_graph **graph_p);

/* What a value must hold for the ops that read it to do typical work, for programs that generate data to time a problem on. Only op
 * and value of the view are read. */
typedef struct qn_domain {
  int32_t floats;                         /* QN_FLOATS_... */
  int32_t rising;                         /* integers: 1: element i of n is from + i (range - 1) / (n - 1); 0: random */
  int64_t from, range;                    /* integers: from .. from + range - 1 */
} qn_domain;
enum { QN_FLOATS_ANY = 0, QN_FLOATS_POSITIVE = 1, QN_FLOATS_ZERO = 2, QN_FLOATS_SMALL = 3 };  /* small: 1/32 of any */
void qn_input_domain(const qn_graph_view *graph, int32_t value, qn_domain *domain);

/* Reads problems one by one, from a .q file ("-": standard input) or from text. */
typedef struct qn_reader qn_reader;
qn_status qn_reader_open(const char *path, qn_reader **reader_p);
qn_status qn_reader_text(const char *text, qn_reader **reader_p);
/* *graph_p is NULL at the end. settings: what follows ";" ("seed=7 fill=int3"), valid until the next call; line: where the problem
 * began. A line that is not a problem is reported as an error once; the next call continues after it. */
qn_status qn_reader_next(qn_reader *reader, qn_graph **graph_p, const char **settings_p, int *line_p);
void      qn_reader_close(qn_reader *reader);

/* ---- plans, inspected --------------------------------------------------------------------- */

int                qn_plan_parts(const qn_plan *plan);
const qn_prepared *qn_plan_part(const qn_plan *plan, int i, const char **backend_p);   /* backend_p may be NULL */
size_t             qn_part_line(const qn_plan *plan, int i, char *text, size_t bytes); /* its problem line; otherwise as qn_graph_print */

/* Calls row with every engine's verdict on each part of the graph. options as for qn_context_create; model NULL: the live device. */
typedef struct qn_verdict {
  uint64_t    struct_size;
  const char *backend, *engine;
  int         part;                       /* of the graph as it would be partitioned; rows of a part are adjacent */
  int         chosen;
  qn_status   status;                     /* QN_OK: it would take answer->n_ops ops of the part, those of answer->taken */
  const qn_prepared *answer;              /* with its refusal, or its workspace, numerics and estimate */
  const char *problem;                    /* what the engine was offered, as problem lines; rows with other patterns get others */
} qn_verdict;
qn_status qn_explain(const char *const options[], const char *model, const qn_graph *graph,
                     void (*row)(void *user, const qn_verdict *), void *user);

/* ---- what is available -------------------------------------------------------------------- */

typedef struct qn_backend_info {
  uint64_t    struct_size;
  const char *name, *version, *device_kind, *path;      /* path "(built in)"; name "" if it could not be loaded */
  qn_status   status;                                   /* QN_OK: usable */
  const char *why;                                      /* the sentence, if not usable */
  const qn_backend *table;                              /* NULL if not loaded */
} qn_backend_info;
qn_status qn_each_backend(void (*row)(void *user, const qn_backend_info *), void *user);
qn_status qn_each_device(void (*row)(void *user, const qn_backend_info *, const qn_device *), void *user);
/* The i-th engine of a loaded backend in table order; NULL past the end. (A backend's rows have its own size, engine_size.) */
const qn_engine *qn_backend_engine(const qn_backend *table, int i);

typedef struct qn_setting_info {
  uint64_t    struct_size;
  const char *key, *variable;             /* "backend", "QUERN_BACKEND"; key "": a backend's own, set by environment only */
  const char *value, *origin;             /* "default", "environment", "context", "override" */
  const char *text;                       /* its meaning and the values known */
} qn_setting_info;
qn_status qn_each_setting(const qn_context *ctx, void (*row)(void *user, const qn_setting_info *), void *user);  /* ctx may be NULL */

/* ---- timing on the context's stream ------------------------------------------------------- */

typedef struct qn_timer qn_timer;
qn_status qn_timer_create(qn_context *ctx, qn_timer **timer_p);
qn_status qn_timer_start(qn_timer *timer);
qn_status qn_timer_stop(qn_timer *timer, double *ns);     /* waits for the work; ns since start */
void      qn_timer_destroy(qn_timer *timer);              /* also after its context is gone; NULL is a no-op */
const qn_device *qn_context_describe(const qn_context *ctx);

#ifdef __cplusplus
}
#endif
#endif
