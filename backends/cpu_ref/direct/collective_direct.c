/* collective_direct.c -- collectives of a group of one rank, or of a context without a group: y = scale x, or y = x. */
#include <quern/collective.h>
#include "direct.h"

static qn_status prepare(const qn_request *request, qn_prepared *p)
{
  if (request->demands->ranks > 1) {
    snprintf(p->refusal.rule, sizeof p->refusal.rule, "it is for a group of one rank");
    snprintf(p->refusal.seen, sizeof p->refusal.seen, "%d ranks", (int)request->demands->ranks);
    return QN_UNSUPPORTED;
  }
  const qn_status status = qn_collective_fits(request, p);
  return status ? status : cpu_direct_prepare(request, p);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const cpu_kept *kept = prepared->state;
  const int reduces = kept->op == QN_OP_ALL_REDUCE || kept->op == QN_OP_REDUCE_SCATTER;
  const cpu_tensor scale = reduces ? cpu_tensor_of(prepared, launch, QN_ROLE_ALL_REDUCE_SCALE, 0) : (cpu_tensor){ 0 };
  const uint32_t y_role = (uint32_t)kept->n_roles - 1;
  for (int32_t i = 0; i < cpu_count(prepared, 0); i++) {
    const cpu_tensor x = cpu_tensor_of(prepared, launch, 0, i), y = cpu_tensor_of(prepared, launch, y_role, i);
    if (x.p == y.p && !scale.p) continue;
#pragma omp parallel for num_threads(cpu_team(launch, x.elements, 4))
    for (int64_t k = 0; k < x.elements; k++) {
      int64_t index[QN_MAX_RANK];
      cpu_place(k, x.rank, x.dim, index);
      const int64_t from = cpu_offset(x.rank, index, x.stride), to = cpu_offset(x.rank, index, y.stride);
      if (scale.p) cpu_put(&y, to, cpu_get(&scale, 0) * cpu_get(&x, from));
      else memcpy(cpu_at(&y, to), cpu_at(&x, from), (size_t)x.bytes);
    }
  }
  return QN_OK;
}

#define ROW(anchor)                                                                              \
  { .name = "direct", .op = anchor, .class_ = QN_CLASS_GENERIC,                                  \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE,             \
    .prepare = prepare, .run = run, .release = cpu_release }

static const qn_engine row[] = {
  ROW(QN_OP_ALL_REDUCE), ROW(QN_OP_REDUCE_SCATTER), ROW(QN_OP_ALL_GATHER), ROW(QN_OP_BROADCAST),
  ROW(QN_OP_ALL_TO_ALL), ROW(QN_OP_SEND), ROW(QN_OP_RECV),
};
const qn_engine_list cpu_collective_direct = { row, sizeof row / sizeof *row };
