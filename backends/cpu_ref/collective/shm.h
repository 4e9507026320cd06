/* shm.h -- memory that the ranks of a group share, on one host: lanes to wait in, slots to write to, boxes between two ranks. */
#ifndef CPU_SHM_H
#define CPU_SHM_H
#include <stdatomic.h>
#include <stdbool.h>
#include <quern/collective.h>
#include "cpu_ref.h"

enum { SHM_BOX = 1 << 15,                 /* bytes of each half of a box */
       SHM_MOST = 256 };                  /* ranks */

/* Of a slot. Two of many ranks' fit a core's own cache, with what they hold; those of few ranks do not, since between cores that share no
 * cache what the other one has just written is slower to read there than in memory. */
static inline int64_t shm_slot_bytes(int64_t ranks) { return ranks <= 4 ? 1 << 20 : 1 << 18; }

/* What a rank shows the others. */
typedef struct shm_lane {
  _Alignas(64) _Atomic uint32_t step;     /* steps that it has reached */
  _Atomic uint32_t waiters, gone, busy;   /* gone: it has left the group; busy: in a collective, whose problem doing says */
  uint64_t hash[2];                       /* of the problem that begins at the step of this parity */
  double   scale[2];
  char     doing[400];
} shm_lane;

/* From one rank to another: chunks written and taken, of which at most two are under way. */
typedef struct shm_box {
  _Alignas(64) _Atomic uint32_t sent;
  _Atomic uint32_t sent_waiters;
  _Alignas(64) _Atomic uint32_t taken;
  _Atomic uint32_t taken_waiters;
  uint64_t hash;                          /* of the problem whose first chunk this is */
  char     doing[400];
} shm_box;

typedef struct shm_head { uint64_t nonce; _Atomic uint32_t failed; } shm_head;

typedef struct shm {
  const qn_ranks *ranks;
  int       rank, size, spins;
  uint32_t  step;                         /* this rank's */
  size_t    bytes;
  shm_head *head;
  shm_lane *lane;                         /* of each rank */
  shm_box  *box;                          /* [from * size + to] */
  char     *slot, *chunk;                 /* [rank][parity][shm_slot_bytes(size)]; [box][half][SHM_BOX] */
  const qn_collective_line *line;         /* of the collective that runs */
} shm;

/* The group's, made at its first collective; all ranks of the group must be on this host. */
qn_status cpu_shm_of(const qn_ranks *ranks, shm **out);

/* Begins and ends a collective. */
qn_status cpu_shm_begin(shm *s, const qn_collective_line *line);
void      cpu_shm_end(shm *s);
/* Where this rank writes before the next step, and what each rank has written before the last one: valid until the next but one. */
static inline char *shm_slot(const shm *s, int rank, uint32_t step) { return s->slot + (2 * rank + (step & 1)) * shm_slot_bytes(s->size); }
static inline char *shm_mine(const shm *s) { return shm_slot(s, s->rank, s->step + 1); }
static inline const char *shm_theirs(const shm *s, int rank) { return shm_slot(s, rank, s->step); }
static inline double shm_scale(const shm *s, int rank) { return s->lane[rank].scale[s->step & 1]; }
/* One step: all ranks reach it. first: of a collective, whose problem and scale are compared and told. */
qn_status cpu_shm_step(shm *s, bool first, double scale);
/* Half boxes to write to and to take from, in turn: wait, fill or empty it, pass it on. first: of a message, whose problems are
 * compared. */
qn_status cpu_shm_box_wait(shm *s, int peer, bool sends, bool first, char **chunk);
void      cpu_shm_box_pass(shm *s, int peer, bool sends);

#endif
