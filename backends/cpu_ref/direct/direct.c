/* direct.c -- prepare of the direct engines: takes the first op, whatever it is, and keeps a copy of its description. */
#include "direct.h"

qn_status cpu_direct_prepare(const qn_request *request, qn_prepared *p)
{
  const qn_node *op = &request->op[0];
  const int32_t n = op->first[op->n_roles];
  const size_t attr_bytes = op->attr ? (size_t)*(const uint64_t *)op->attr : 0;   /* attribute structs begin with their size */
  const size_t value_bytes = (size_t)n * sizeof(qn_value), number_bytes = ((size_t)n * sizeof(int32_t) + 7) / 8 * 8;
  unsigned char *memory = cpu_state(p, sizeof(cpu_kept) + value_bytes + number_bytes + attr_bytes);
  if (!memory) return QN_NO_MEMORY;

  cpu_kept *kept = (cpu_kept *)memory;
  qn_value *value = (qn_value *)(memory + sizeof(cpu_kept));
  int32_t *number = (int32_t *)(memory + sizeof(cpu_kept) + value_bytes);
  kept->op = op->op;
  kept->n_roles = (int32_t)op->n_roles;
  kept->value = value;
  kept->number = number;
  memcpy(kept->first, op->first, (op->n_roles + 1) * sizeof *op->first);
  for (int32_t i = 0; i < n; i++) {
    value[i] = request->value[op->arg[i]];
    number[i] = op->arg[i];
  }
  if (attr_bytes) kept->attr = memcpy(memory + sizeof(cpu_kept) + value_bytes + number_bytes, op->attr, attr_bytes);

  p->numerics.accumulator = QN_ACC_DOUBLE;
  return QN_OK;
}
