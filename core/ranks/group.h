/* group.h -- a group, as group.c makes it and join.c gives it to a context. */
#ifndef QUERN_CORE_GROUP_H
#define QUERN_CORE_GROUP_H
#include "rendezvous.h"

typedef struct qn__slot { const void *key; void (*leave)(void *own, int failed); void *own; } qn__slot;
enum { QN__SLOTS = 8 };                   /* backends that carry collectives */
enum { QN__WHOLE, QN__BROKEN, QN__TOLD };
typedef struct qn__guard qn__guard;       /* running/guard.c */

struct qn_group {
  qn_ranks     ranks;                     /* what engines see; core is this group */
  qn__meeting  meeting;
  qn_context  *ctx;                       /* that has joined; NULL: none */
  qn_status  (*leave)(qn_context *, qn_group *);      /* how it leaves: qn_context_join, of a floor above */
  qn__guard   *guard;                     /* that context's, on a device with streams; else NULL */
  atomic_int   broken;                    /* QN__BROKEN: it has failed, and the guard has aborted what was under way; QN__TOLD: and said so */
  atomic_bool  inside, enqueued;          /* the context's thread runs or replays collectives; some were since it last waited for its stream */
  pid_t        process;                   /* that made it: after fork it is the parent's */
  qn__slot     slot[QN__SLOTS];
};

qn_status qn__group_alive(const qn_group *g);
void      qn__slots_end(qn__slot *slot, int failed);  /* engines give back what they keep for a group */
qn_status qn__guard_start(qn_context *ctx, qn_group *g);
void      qn__guard_end(qn_group *g, bool failed);    /* and what engines keep */

#endif
