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
extern atomic_int qn__log_level;                    /* messages above it are not made */
/* All memory of core: zeroed; NULL when there is none or when a test wants a failure (qn__fail_alloc_at). */
void *qn__alloc(size_t bytes);
void *qn__realloc(void *p, size_t old_bytes, size_t bytes);   /* the new part zeroed; on NULL p is still there */
char *qn__strdup(const char *s);
void  qn__free(void *p);
extern atomic_long qn__alloc_count, qn__fail_alloc_at;        /* fault injection: the n-th from now fails; 0: none */
extern const qn_host qn__host;                      /* host.c: what backends call back */

/* A growing string; after a failed growth `failed` is set and appends do nothing. */
typedef struct qn_text { char *s; size_t len, cap; bool failed; } qn_text;
void qn__text_add(qn_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t qn__text_out(qn_text *t, char *buffer, size_t bytes);  /* copies, frees, returns the length it had */

/* ---- schema_table.c (made from ops.def), schema.c ------------------------------------------ */

extern const qn_op_info qn__ops[];                  /* by number, ascending */
extern const int qn__n_ops;

/* ---- graph.c, notation.c, infer.c ---------------------------------------------------------- */

struct qn_graph {
  qn_graph_view view;                               /* points into what follows; the first member */
  bool          single;                             /* written as one op: prints so */
  void         *memory[8];                          /* what to free */
};

/* infer.c: one op's rules. On entry attr is a whole, writable copy and inputs are known; outputs with dtype 0 are wanted
 * (rank -1: dims too), others given and checked. On success all outputs are whole but for strides of wanted ones
 * (qn__default_strides). name(role) for sentences. */
qn_status qn__infer(const qn_op_info *op, void *attr, const qn_node *node, qn_value *value);
void      qn__default_strides(qn_value *v, const qn_value *like);   /* packed, in like's dim order (NULL: last fastest) */
bool      qn__overlaps_itself(const qn_value *v);   /* two indices, one address */

/* graph.c: adopts arrays into a checked graph; used by notation.c, qn_graph_make and the BLAS-like call. */
qn_status qn__graph_finish(qn_graph *g);            /* producers, users, escapes; runs infer on each op in order */
qn_status qn__graph_of_op(const qn_op *op, qn_graph **graph_p);   /* one op, checked: the first call of its kind */

#endif
