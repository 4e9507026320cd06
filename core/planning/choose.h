/* choose.h -- what choose.c (asking, binding), rank.c and, a floor above, tuning share. */
#ifndef QUERN_CHOOSE_H
#define QUERN_CHOOSE_H
#include "core.h"

typedef struct qn__candidate {
  qn__backend *backend;
  qn_engine   *row;
  const qn__offer *offer;                           /* of its pattern */
  int          rank;                                /* position in the order of asking */
  const char  *variant;                             /* pinned; NULL: any */
  double       ns;                                  /* the estimate, if estimates may decide; else QN__UNKNOWN */
  int          set;                                 /* rank of the set of ops that it takes, among those that others take */
  uint32_t     offered;                             /* number of the offer's ops offered; 0: all */
  int32_t      threads;                             /* that it was asked for; fewer than demanded if the workspace is limited */
  bool         demand;                              /* it was ruled out by a demand, not by itself */
  qn_status    status;
  qn_prepared  answer;
} qn__candidate;
#define QN__UNKNOWN 1e300

/* choose.c */
qn_status qn__ask(const qn__planning *pc, const char *variant, qn__candidate *c);
void      qn__withdraw(qn__candidate *c);           /* a yes becomes a no */
qn_status qn__bind(const qn__planning *pc, qn__candidate *c, qn_part **out);
double    qn__multiplications(const qn_request *r, uint64_t which);     /* where there are none, elements written */
#define QN__LARGE 1e6                               /* multiplications */

/* rank.c */
void      qn__rank(const qn__planning *pc, qn__candidate **order, int n);        /* sorts them, best first */
int32_t   qn__graph_op(const qn__offer *o, uint32_t op);      /* the graph's index of an op of the offer; in delegation its own */
int       qn__place_in(const qn__offer *o, int32_t op);       /* the inverse; -1: it is not offered */
bool      qn__same_set(const qn__candidate *a, const qn__candidate *b);
/* The offer that holds all ops that the candidates take, and these ops; NULL: there is none. */
const qn__offer *qn__widest(qn__candidate *const *c, int n, uint64_t *all);
uint64_t  qn__ops_within(const qn__offer *offer, const qn__candidate *c);     /* the ops that c takes, as a set of the offer's */
/* The ns of a set of an offer's ops, planned as a graph of their own: by estimates, or measured; 0: unknown. */
double    qn__time_of(const qn__planning *pc, const qn__offer *offer, uint64_t which, bool measured);
#endif
