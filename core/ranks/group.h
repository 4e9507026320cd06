/* group.h -- a group, as group.c makes it and join.c gives it to a context. */
#ifndef QUERN_CORE_GROUP_H
#define QUERN_CORE_GROUP_H
#include "rendezvous.h"

typedef struct qn__slot { const void *key; void (*leave)(void *own, int failed); void *own; } qn__slot;
enum { QN__SLOTS = 8 };                   /* backends that carry collectives */

struct qn_group {
  qn_ranks     ranks;                     /* what engines see; core is this group */
  qn__meeting  meeting;
  qn_context  *ctx;                       /* that has joined; NULL: none */
  qn_status  (*leave)(qn_context *, qn_group *);      /* how it leaves: qn_context_join, of a floor above */
  pid_t        process;                   /* that made it: after fork it is the parent's */
  qn__slot     slot[QN__SLOTS];
};

qn_status qn__group_alive(const qn_group *g);
void      qn__group_empty(qn_group *g, int failed);   /* engines give back what they keep for the group */

#endif
