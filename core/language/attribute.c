/* attribute.c -- attributes by the schema: number of entries, words, and structs of callers compiled with another version. */
#include <string.h>
#include "problem.h"

int qn__attr_entries(const qn_attr_info *a, const qn_node *node, const qn_value *value)
{
  int rank = node->first[0] < node->first[1] ? value[node->arg[0]].rank : 0;
  if (rank < 0 || rank > QN_MAX_RANK) rank = 0;
  switch (a->type) {
  case QN_ATTR_SPATIAL: case QN_ATTR_SPADS: return rank < 2 ? 0 : rank > 5 ? 3 : rank - 2;
  case QN_ATTR_RANK: case QN_ATTR_RPADS: return rank;
  default: return 1;
  }
}

int qn__attr_capacity(const qn_attr_info *a)
{
  switch (a->type) {
  case QN_ATTR_SPATIAL: case QN_ATTR_SPADS: return 3;
  case QN_ATTR_RANK: case QN_ATTR_RPADS: return QN_MAX_RANK;
  default: return 1;
  }
}

const char *qn__word(const char *words, int64_t value, int *n)
{
  for (; value > 0 && (words = strchr(words, '|')); value--) words++;
  if (!words || value < 0) return NULL;
  *n = (int)strcspn(words, "|");
  return words;
}

int64_t qn__word_number(const char *words, const char *word, size_t bytes)
{
  int n;
  const char *w;
  for (int64_t i = 0; (w = qn__word(words, i, &n)); i++)
    if ((size_t)n == bytes && !memcmp(w, word, bytes)) return i;
  return -1;
}

/* Fields beyond the caller's size keep their defaults; so do those that this op does not use. */
qn_status qn__attr_copy(const qn_op_info *op, const void *from, void *to)
{
  if (!op->attr_bytes) {
    if (!from) return QN_OK;
    return qn__fail(QN_BAD_ARGUMENT, "%s: attributes are given, but it has none; pass NULL", op->name);
  }
  memcpy(to, op->attr_default, op->attr_bytes);
  if (!from) return QN_OK;
  uint64_t size;
  memcpy(&size, from, sizeof size);
  if (size < sizeof size || size > 65536)
    return qn__fail(QN_BAD_ARGUMENT, "%s: attributes: struct_size is %llu; begin with the op's INIT, which sets it to %u",
                    op->name, (unsigned long long)size, op->attr_bytes);
  for (uint64_t i = op->attr_bytes; i < size; i++)
    if (((const unsigned char *)from)[i])
      return qn__fail(QN_BAD_ARGUMENT, "%s: attributes: byte %llu is set, and this library (%s) knows only %u bytes of them",
                      op->name, (unsigned long long)i, qn_version(), op->attr_bytes);
  for (uint32_t k = 0; k < op->n_attrs; k++) {
    const qn_attr_info *a = &op->attr[k];
    size_t bytes = 8 * (size_t)qn__attr_capacity(a);
    if (a->offset + bytes <= size) memcpy((char *)to + a->offset, (const char *)from + a->offset, bytes);
    if (a->offset2 && a->offset2 + bytes <= size)
      memcpy((char *)to + a->offset2, (const char *)from + a->offset2, bytes);
  }
  return QN_OK;
}

qn_status qn__args_copy(const char *op, const void *from, void *to, size_t bytes)
{
  uint64_t size = 0;
  memset(to, 0, bytes);
  if (!from) return qn__fail(QN_BAD_ARGUMENT, "%s: args: is NULL", op);
  memcpy(&size, from, sizeof size);
  if (size < sizeof size || size > 65536)
    return qn__fail(QN_BAD_ARGUMENT, "%s: args: struct_size is %llu; begin with the op's INIT, which sets it to %zu", op,
                    (unsigned long long)size, bytes);
  for (uint64_t i = bytes; i < size; i++)
    if (((const unsigned char *)from)[i])
      return qn__fail(QN_BAD_ARGUMENT, "%s: args: byte %llu is set, and this library (%s) knows only %zu bytes of them", op,
                      (unsigned long long)i, qn_version(), bytes);
  memcpy(to, from, size < bytes ? size : bytes);
  return QN_OK;
}
