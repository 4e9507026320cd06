/* rendezvous.h -- how ranks meet and exchange a few bytes: a star of TCP connections around rank 0. */
#ifndef QUERN_RENDEZVOUS_H
#define QUERN_RENDEZVOUS_H
#include "core.h"

typedef struct qn__meeting {
  int      rank, size;
  int64_t  deadline;                      /* milliseconds that a wait may take */
  int     *peer;                          /* rank 0: a socket for each rank, else peer[0] only; -1: none, or closed */
  uint64_t seq;                           /* exchanges so far */
  bool     failed;
  char     why[1024];
  pthread_mutex_t lock;                   /* held by exchange, watch and fail, which a guard's thread calls too */
} qn__meeting;

/* Where ranks meet: host and port, or a file that says them. listener: this rank's own, of qn__listener; else -1. */
typedef struct qn__place_to_meet { char host[256], port[16], path[512]; uint64_t token; int listener; } qn__place_to_meet;
int64_t   qn__now(void);                  /* milliseconds */
qn_status qn__meet(qn__meeting *m, qn__place_to_meet *at);      /* rank, size and deadline are set; waits for all ranks */
qn_status qn__meeting_exchange(qn__meeting *m, const char *what, const void *mine, size_t bytes, void *all);
qn_status qn__meeting_watch(qn__meeting *m);          /* looks whether a rank failed or ended, without waiting */
qn_status qn__meeting_fail(qn__meeting *m, const char *sentence);         /* for good; tells the others; QN_DEVICE */
void      qn__meeting_end(qn__meeting *m);            /* says so to the others */
/* Of a split: a listening socket at an address by which the other ranks reach this one. */
qn_status qn__listener(const qn__meeting *m, qn__place_to_meet *at);

#endif
