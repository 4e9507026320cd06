/* schema.c -- looks ops up in the table that ops.awk makes of ops.def. */
#include <string.h>
#include "core.h"

const qn_op_info *qn_op_at(int i)
{
  return i >= 0 && i < qn__n_ops ? &qn__ops[i] : NULL;
}

const qn_op_info *qn_op_find(uint32_t kind)
{
  return qn__op(kind);
}

const qn_op_info *qn_op_named(const char *name)
{
  for (int i = 0; name && i < qn__n_ops; i++)
    if (!strcmp(qn__ops[i].name, name)) return &qn__ops[i];
  return NULL;
}
