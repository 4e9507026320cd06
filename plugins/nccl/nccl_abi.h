/* nccl_abi.h -- what this plugin uses of NCCL's C interface, which has been stable since 2.18; so it is built without NCCL's header. */
#ifndef QUERN_NCCL_ABI_H
#define QUERN_NCCL_ABI_H
#include <stdbool.h>
#include <quern/collective.h>

typedef struct ncclComm *nccl_comm;
typedef struct nccl_id { char internal[128]; } nccl_id;
typedef int nccl_result;
enum { NCCL_SUCCESS = 0, NCCL_INTERNAL_ERROR = 3, NCCL_IN_PROGRESS = 7 };
enum { NCCL_I8 = 0, NCCL_U8 = 1, NCCL_I32 = 2, NCCL_I64 = 4, NCCL_F16 = 6, NCCL_F32 = 7, NCCL_F64 = 8, NCCL_BF16 = 9 };
enum { NCCL_SUM = 0, NCCL_PROD = 1, NCCL_MAX = 2, NCCL_MIN = 3, NCCL_AVG = 4 };
enum { NCCL_SCALAR_DEVICE = 0, NCCL_SCALAR_HOST = 1 };

/* The configuration of version 2.14: later libraries take theirs for what lies beyond. */
typedef struct nccl_config {
  size_t size;
  unsigned magic, version;
  int blocking, undefined;
} nccl_config;
#define NCCL_OLDEST 21800
#define NCCL_CONFIG_INIT(blocks) { sizeof(nccl_config), 0xcafebeef, 21400, blocks, -2147483647 - 1 }

/* X(result, name, arguments) */
#define NCCL_CALLS(X)                                                                                                          \
  X(nccl_result, ncclGetVersion, (int *version))                                                                               \
  X(const char *, ncclGetErrorString, (nccl_result result))                                                                    \
  X(const char *, ncclGetLastError, (nccl_comm comm))                                                                          \
  X(nccl_result, ncclGetUniqueId, (nccl_id *id))                                                                               \
  X(nccl_result, ncclCommInitRankConfig, (nccl_comm *comm, int ranks, nccl_id id, int rank, nccl_config *config))              \
  X(nccl_result, ncclCommGetAsyncError, (nccl_comm comm, nccl_result *state))                                                  \
  X(nccl_result, ncclCommSplit, (nccl_comm comm, int colour, int key, nccl_comm *part, nccl_config *config))                   \
  X(nccl_result, ncclCommDestroy, (nccl_comm comm))                                                                            \
  X(nccl_result, ncclCommAbort, (nccl_comm comm))                                                                              \
  X(nccl_result, ncclGroupStart, (void))                                                                                       \
  X(nccl_result, ncclGroupEnd, (void))                                                                                         \
  X(nccl_result, ncclRedOpCreatePreMulSum, (int *op, void *scalar, int dtype, int residence, nccl_comm comm))                  \
  X(nccl_result, ncclRedOpDestroy, (int op, nccl_comm comm))                                                                   \
  X(nccl_result, ncclAllReduce, (const void *x, void *y, size_t n, int dtype, int op, nccl_comm comm, void *stream))           \
  X(nccl_result, ncclReduceScatter, (const void *x, void *y, size_t n, int dtype, int op, nccl_comm comm, void *stream))       \
  X(nccl_result, ncclAllGather, (const void *x, void *y, size_t n, int dtype, nccl_comm comm, void *stream))                   \
  X(nccl_result, ncclBroadcast, (const void *x, void *y, size_t n, int dtype, int root, nccl_comm comm, void *stream))         \
  X(nccl_result, ncclSend, (const void *x, size_t n, int dtype, int peer, nccl_comm comm, void *stream))                       \
  X(nccl_result, ncclRecv, (void *y, size_t n, int dtype, int peer, nccl_comm comm, void *stream))

typedef struct nccl_calls {
#define NCCL_FIELD(result, name, arguments) result (*name) arguments;
  NCCL_CALLS(NCCL_FIELD)
#undef NCCL_FIELD
} nccl_calls;

extern nccl_calls nccl;                   /* library.c */
extern const qn_host *nccl_host;          /* nccl.c */
/* Is there a library? It is opened when the first problem is asked about; false, and why: it is missing, or too old. */
bool nccl_find(const char **why);
bool nccl_load(const char **why);

#endif
