/* direct.c -- what the direct engines share: prepare, which takes the first op, whatever it is, and keeps a copy of its description;
 * sums of products. */
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

/* ---- sums of products ------------------------------------------------------------------------------------ */

enum { LANES = 4 };
typedef double   lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef uint64_t bits __attribute__((vector_size(LANES * sizeof(double))));

/* x = high + low, of 26 digits each (Dekker). Not for |x| beyond 2^996. */
static inline void split(const lanes *x, lanes *high, lanes *low)
{
  const lanes c = 134217729.0 * *x;
  *high = c - (c - *x);
  *low = *x - *high;
}

void cpu_sum_run(cpu_sum *s, int64_t n, const double *x, const double *y)
{
  const int64_t side = n / LANES * LANES;
  lanes high = { 0 }, low = { 0 };
  bits digits = { 0 };
  for (int64_t i = 0; i < side; i += LANES) {
    lanes a, b;
    memcpy(&a, x + i, sizeof a);
    memcpy(&b, y + i, sizeof b);
    const lanes product = a * b, sum = high + product, part = sum - high;
    low += (high - (sum - part)) + (product - part);
    high = sum;
    digits |= (bits)a | (bits)b;
  }
  uint64_t all = 0;
  for (int i = 0; i < LANES; i++) all |= digits[i];
  for (int64_t i = 0; i < side && all & 0x7ffffff; i += LANES) {        /* of more than 26 digits: what the products lost */
    lanes a, b, a_high, a_low, b_high, b_low;
    memcpy(&a, x + i, sizeof a);
    memcpy(&b, y + i, sizeof b);
    split(&a, &a_high, &a_low);
    split(&b, &b_high, &b_low);
    low += ((a_high * b_high - a * b) + a_high * b_low + a_low * b_high) + a_low * b_low;
  }
  int finite = 1;
  for (int i = 0; i < LANES; i++) finite &= isfinite(high[i]) && isfinite(low[i]);
  for (int i = 0; i < LANES && finite; i++) {
    cpu_sum_add(s, high[i]);
    s->low += low[i];
  }
  for (int64_t i = finite ? side : 0; i < n; i++) cpu_sum_add_product(s, x[i], y[i]);
}
