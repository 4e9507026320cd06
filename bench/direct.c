/* direct.c -- NCCL called directly, for `--ranks --direct`: the library that the backend nccl has opened in this process, a communicator of
 * its own that blocks, the stream of the context. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "../plugins/nccl/nccl_abi.h"
#include "bench.h"

static nccl_calls call;
static nccl_comm comm;
static size_t ranks;

static int said(const char *what, const char *why)
{
  fprintf(stderr, "quern-bench: --direct: %s: %s\n", what, why);
  return 1;
}

int direct_open(qn_group *group)
{
  static const struct { const char *name; void *slot; } entry[] = {
#define DIRECT_ENTRY(result, name, arguments) { #name, &call.name },
    NCCL_CALLS(DIRECT_ENTRY)
#undef DIRECT_ENTRY
  };
  static struct offer { nccl_id id; int32_t error, reserved; } mine, all[256];
  nccl_config config = NCCL_CONFIG_INIT(1);
  int version = 0;
  void *so = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (!so) return said("libnccl.so.2", "no collective has run over NCCL here");
  for (size_t i = 0; i < sizeof entry / sizeof *entry; i++) {
    void *p = dlsym(so, entry[i].name);
    if (!p) return said(entry[i].name, "the library has it not");
    memcpy(entry[i].slot, &p, sizeof p);
  }
  ranks = (size_t)qn_group_size(group);
  if (!qn_group_rank(group)) mine.error = call.ncclGetUniqueId(&mine.id);
  if (ranks > sizeof all / sizeof *all || qn_group_exchange(group, &mine, sizeof mine, all)) return said("group", qn_last_error());
  if (all[0].error) return said("ncclGetUniqueId", call.ncclGetErrorString(all[0].error));
  const nccl_result e = call.ncclCommInitRankConfig(&comm, (int)ranks, all[0].id, qn_group_rank(group), &config);
  if (e) return said("ncclCommInitRankConfig", call.ncclGetErrorString(e));
  call.ncclGetVersion(&version);
  if (!qn_group_rank(group)) printf("NCCL %d.%d.%d\n", version / 10000, version / 100 % 100, version % 100);
  return 0;
}

qn_status direct_call(uint32_t op, const char *x, char *y, size_t bytes, void *stream)
{
  const size_t n = bytes / 4, share = n / ranks;
  nccl_result e = NCCL_SUCCESS;
  switch (op) {
  case QN_OP_ALL_REDUCE:     e = call.ncclAllReduce(x, y, n, NCCL_F32, NCCL_SUM, comm, stream); break;
  case QN_OP_REDUCE_SCATTER: e = call.ncclReduceScatter(x, y, share, NCCL_F32, NCCL_SUM, comm, stream); break;
  case QN_OP_ALL_GATHER:     e = call.ncclAllGather(x, y, share, NCCL_F32, comm, stream); break;
  case QN_OP_BROADCAST:      e = call.ncclBroadcast(x, y, n, NCCL_F32, 0, comm, stream); break;
  default:
    e = call.ncclGroupStart();
    for (size_t q = 0; q < ranks && !e; q++) {
      e = call.ncclSend(x + q * share * 4, share, NCCL_F32, (int)q, comm, stream);
      if (!e) e = call.ncclRecv(y + q * share * 4, share, NCCL_F32, (int)q, comm, stream);
    }
    if (!e) e = call.ncclGroupEnd();
  }
  if (e) said("a collective", call.ncclGetErrorString(e));
  return e ? QN_DEVICE : QN_OK;
}

void direct_close(void)
{
  if (comm) call.ncclCommDestroy(comm);
}
