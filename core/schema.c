/* schema.c -- looks ops up in the table that ops.awk makes of ops.def. */
#include <string.h>
#include "core.h"

const qn_op_info *qn_op_at(int i)
{
  return i >= 0 && i < qn__n_ops ? &qn__ops[i] : NULL;
}

const qn_op_info *qn_op_find(uint32_t kind)
{
  int low = 0, high = qn__n_ops;        /* numbers ascend */
  while (low < high) {
    int middle = (low + high) / 2;
    if (qn__ops[middle].kind < kind) low = middle + 1;
    else high = middle;
  }
  return low < qn__n_ops && qn__ops[low].kind == kind ? &qn__ops[low] : NULL;
}

const qn_op_info *qn_op_named(const char *name)
{
  for (int i = 0; i < qn__n_ops; i++)
    if (!strcmp(qn__ops[i].name, name)) return &qn__ops[i];
  return NULL;
}
