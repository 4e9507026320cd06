/* member.h -- a rank's place among others over MPI: its start, agreement on problems, and waits that end by the group's deadline. */
#ifndef QUERN_MPI_MEMBER_H
#define QUERN_MPI_MEMBER_H
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <quern/collective.h>

extern const qn_host *mpi_host;

typedef struct mpi_note { uint64_t hash; char text[400]; } mpi_note;  /* a problem's line, between ranks */

/* Kept for the group from its first collective on. */
typedef struct mpi_member {
  const qn_ranks *ranks;
  MPI_Comm comm;                          /* rank r of it is rank r of the group */
  MPI_Op   max_f32, min_f32, max_f64, min_f64;        /* NaN wins, which MPI's own lose */
  MPI_Op   sum_u8, prod_u8;               /* wrap, where Open MPI's saturate */
  int      spins;                         /* before the processor is given away */
  bool     differed;                      /* the group has failed with nothing under way: the ranks ran different problems */
  mpi_note note;                          /* of the collective that runs */
  uint64_t mine[2], most[2];              /* what agreement is reached by */
  int      numbers[];                     /* three of each rank: counts and displacements of the call that runs */
} mpi_member;

/* NULL: MPI can be used in this process; else why not. Does not start it. */
const char *mpi_missing(void);
/* Does the launcher say that the job has ranks on other hosts, too? */
bool        mpi_has_more_hosts(void);
/* The group's, made at its first collective. */
qn_status   mpi_member_of(const qn_ranks *ranks, mpi_member **out);
/* First in a collective: are all ranks at this problem, or is the peer at the other side of it? */
qn_status   mpi_agree(mpi_member *m, const qn_collective_line *line);
qn_status   mpi_agree_with(mpi_member *m, const qn_collective_line *line, int peer, bool sends);
/* Until the request that `call` began has ended; error: what the call gave. peer: whom it waits for, -1: all. */
qn_status   mpi_wait(mpi_member *m, const char *call, int error, MPI_Request *request, int peer);

enum { MPI_TAG_NOTE = 1, MPI_TAG_DATA = 2, MPI_TAG_QUESTION = 3, MPI_TAG_ANSWER = 4 };

#endif
