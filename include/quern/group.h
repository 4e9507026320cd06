/* group.h -- groups: ranks that compute together, by the collectives of ops.h. Part of quern.h.
 *
 *   qn_group *g;                                       one process for each device, started by torchrun, mpirun or srun
 *   qn_group_create(NULL, &g);
 *   qn_context_join(ctx, g);
 *   qn_all_reduce(ctx, NULL, grads, n, NULL, grads, n);      each list of gradients is now the sum over all ranks
 *   qn_context_join(ctx, NULL);
 *   qn_group_destroy(g);
 *
 * A rank is a context that has joined: of a process of its own, or one of several in a process, each in a thread of its own. Creating
 * a group is rendezvous only, over TCP; what carries the tensors is an engine, chosen like any other (shared memory between CPU
 * contexts of one host, cpu_ref/shm; NCCL between GPUs, MPI between hosts, by plugins).
 *
 *   waits      each ends by the group's deadline: with what was waited for, or with an error that says for whom it waited
 *   failures   are of the whole group and for good: every later collective on it fails with the first failure's sentence, on all
 *              ranks that have not gone. Contexts stay usable otherwise. Make another group, of the ranks that are left
 *   trust      ranks trust each other. Rank 0 listens on the address that all were given, on the loopback interface if that is it */
#ifndef QUERN_GROUP_H
#define QUERN_GROUP_H
#include <quern/quern.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_group qn_group;

/* Waits for all ranks. options: NULL, or "key=value" strings ended by NULL:
 *   at          where the ranks meet. Unset: QUERN_GROUP, or else "env".
 *               env             as the launcher's variables say: MASTER_ADDR, and the port QUERN_PORT or MASTER_PORT + 1 (the port
 *                               itself is torchrun's). Without MASTER_ADDR a file in the folder for temporary files, named by the launcher's
 *                               job, where all ranks are on one host. Without a launcher: a group of one rank
 *               none            a group of one rank
 *               tcp://HOST:PORT an address of rank 0's host, with a port that is free there
 *               file:///PATH    of ranks on one host: a file that does not exist yet, which rank 0 writes and removes
 *   rank, size  unset: RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and PMI_SIZE (MPICH), SLURM_PROCID
 *               and SLURM_NTASKS, the first pair that is set
 *   local_rank  unset: LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, SLURM_LOCALID; else rank. For choosing a device
 *   deadline    seconds that a wait may take, at creation and later; unset: QUERN_DEADLINE, or else 300 */
qn_status qn_group_create(const char *const options[], qn_group **group_p);
/* A group of those ranks that give the same colour, ordered by key, and among equal keys by rank; colour -1: in none, and *part_p is
 * NULL. A collective of group's ranks; the parts do not need the group afterwards. */
qn_status qn_group_split(qn_group *group, int colour, int key, qn_group **part_p);
/* Leaves the group; other ranks that wait for this one, or will, fail with a sentence that says so. The context that had joined it is
 * made to leave it first. NULL is a no-op. */
void      qn_group_destroy(qn_group *group);

int       qn_group_rank(const qn_group *group);       /* 0 to size - 1; of no group: 0 */
int       qn_group_size(const qn_group *group);       /* of no group: 1 */
int       qn_group_local_rank(const qn_group *group);
qn_status qn_group_status(qn_group *group);           /* its failure, if it has failed or a rank is known to have died; does not wait */
/* A few bytes of each rank, at most 1 MiB, to all ranks, by rank: all holds size * bytes. Host memory. With 0 bytes a barrier. */
qn_status qn_group_exchange(qn_group *group, const void *mine, size_t bytes, void *all);

/* The context's collectives are those of the group from now on; group NULL: it leaves the one that it had. A group is joined by
 * one context, and used by the thread that uses that context. Leaving waits for the context's own work. */
qn_status qn_context_join(qn_context *ctx, qn_group *group);

#ifdef __cplusplus
}
#endif
#endif
