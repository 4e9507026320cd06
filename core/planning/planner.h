/* planner.h -- what the files of planning share: edges.c -> region.c -> planner.c. */
#ifndef QUERN_PLANNER_H
#define QUERN_PLANNER_H
#include "core.h"

enum { UNPLANNED = -1, NOTHING_TO_DO = -2 };

/* A pass over a graph. Marks of ops are the number of the region that set them, so that none need be cleared. */
typedef struct planner {
  const qn__planning *pc;                 /* on whose behalf: the planning context of all calls below */
  const qn_graph_view *g;
  const qn__views *views;                 /* NULL: every view is an op */
  int32_t n_ops;
  int32_t *reader, *reader_first;         /* of each value: the ops that read it, or a view of it */
  int32_t *overwriter;                    /* of each value: the op whose output takes its memory, or -1 */
  int32_t *pred, *pred_first;             /* of each op: what must run before it */
  int32_t *group;                         /* of each op: its part, UNPLANNED or NOTHING_TO_DO */
  int32_t *pos, *op_at;                   /* of each op: its place in an order in which all can run, a part's ops together; the inverse */
  int32_t mark, visit, marks;             /* of the region in the making; of the latest visit; given so far */
  int32_t *in, *after, *seen;             /* of each op: `mark` if in the region; if reachable from the region; `visit` if visited */
  int32_t *stack;
  int32_t *path, *at;                     /* for pull: the path from the user to a producer, and each op's next predecessor to visit */
  const qn_pattern *pattern;
  int32_t list[QN_MAX_OPS], n, n_follow;  /* the region, in the order offered; number of ops, of anchor and followers */
  int32_t *local, *local_of;              /* of each value: its index in the request whose mark local_of is */
  uint8_t wanted[QN__KINDS];              /* a row's pattern admits the kind before its anchor */
  qn_part **part; int n_parts;
  void *memory;
} planner;

static inline int32_t inputs_of(const qn_node *op) { return op->first[op->n_inputs]; }
static inline int32_t args_of(const qn_node *op) { return op->first[op->n_roles]; }
static inline bool is_pointwise(const planner *p, int32_t i) { return p->g->op[i].family == QN_FAMILY_POINTWISE; }
static inline bool is_in(const planner *p, int32_t i) { return p->in[i] == p->mark; }
static inline bool is_after(const planner *p, int32_t i) { return p->after[i] == p->mark; }
/* The value whose memory a value is: itself, unless it is a folded view. */
static inline int32_t origin(const planner *p, int32_t value) { return p->views ? p->views->of[value] : value; }

/* edges.c */
qn_status qn__edges_set_up(planner *p);   /* all but pc, g and views; an error also if the graph has no order */
void      qn__edges_join(planner *p, const qn_part *part);      /* the part's ops become neighbours in the order */

/* region.c: the region of an anchor for a pattern, into p->list; and the request for that list, NULL: no memory. */
void       qn__region_form(planner *p, int32_t anchor, const qn_pattern *pattern);
qn__offer *qn__region_offer(planner *p);
#endif
