/* mutants_matmul.c -- matmul's bugs: terms, tails, scalars, accumulators, rounding, batches. */
#include "mutant.h"

#define A    QN_ROLE_MATMUL_A
#define B    QN_ROLE_MATMUL_B
#define C    QN_ROLE_MATMUL_C
#define BIAS QN_ROLE_MATMUL_BIAS
#define Y    QN_ROLE_MATMUL_Y

/* The kernel steps by 8 and omits the remainder of K. */
bool mm_drop_k_tail(struct mut_kept *k)
{
  qn_value *a = mut_altered(k, A), *b = mut_altered(k, B);
  int64_t tail = a->dim[a->rank - 1] % 8;
  a->dim[a->rank - 1] -= tail;
  b->dim[b->rank - 2] -= tail;
  return tail > 0 && a->dim[a->rank - 1] > 0;
}

/* a's column is taken as zeros */
static void drop_term(struct mut_call *c, int64_t term)
{
  const qn_value *a = mut_value(c->k, A);
  void *p = mut_copy(c, A);
  int64_t at[QN_MAX_RANK];
  for (int64_t i = 0; i < qn_elements(a); i++) {
    mut_offset(a, i, at);
    if (at[a->rank - 1] == term)
      mut_put(a, p, i, 0);
  }
}

void mm_drop_first_term(struct mut_call *c) { drop_term(c, 0); }

void mm_drop_middle_term(struct mut_call *c)
{
  const qn_value *a = mut_value(c->k, A);
  drop_term(c, a->dim[a->rank - 1] / 2);
}

void mm_keep(struct mut_call *c) { mut_keep(c, Y); }

/* The last row of a tile is not written. */
void mm_last_row_unwritten(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, Y);
  int64_t at[QN_MAX_RANK], last = y->dim[y->rank - 2] - 1;
  if (y->dim[y->rank - 2] % 4 == 0)
    return;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    int64_t bytes = qn_kit_bytes(y->dtype), offset = mut_offset(y, i, at) * bytes;
    if (at[y->rank - 2] == last)
      memcpy((char *)mut_pointer(c, Y) + offset, (char *)c->scratch[0] + offset, (size_t)bytes);
  }
}

bool mm_needs_bias(struct mut_kept *k) { return mut_value(k, BIAS) != NULL; }

static void scale_bias(struct mut_call *c, int64_t from, double by)
{
  const qn_value *bias = mut_value(c->k, BIAS);
  void *p = mut_copy(c, BIAS);
  for (int64_t i = from; i < qn_elements(bias); i++)
    mut_put(bias, p, i, by * mut_get(bias, p, i));
}

void mm_bias_twice(struct mut_call *c) { scale_bias(c, 0, 2); }

void mm_bias_missing_on_tail(struct mut_call *c)
{
  int64_t n = mut_value(c->k, BIAS)->dim[0];
  scale_bias(c, n / 8 * 8, 0);
}

/* ---- scalars ------------------------------------------------------------------------------ */

static const double one = 1;

bool mm_needs_beta(struct mut_kept *k) { return mut_value(k, QN_ROLE_MATMUL_BETA) != NULL; }

bool mm_beta_ignored(struct mut_kept *k)
{
  qn_value *beta = mut_altered(k, QN_ROLE_MATMUL_BETA);
  if (!beta)
    return false;
  beta->dtype = QN_F64;
  beta->scalar = beta->flags & QN_VALUE_HOST ? QN_SCALAR_ONE : QN_SCALAR_OTHER;
  return true;
}

void mm_beta_one(struct mut_call *c)
{
  c->ptr[c->k->first[QN_ROLE_MATMUL_BETA]] = (void *)(uintptr_t)&one;
}

bool mm_alpha_on_c(struct mut_kept *k)
{
  return mut_value(k, QN_ROLE_MATMUL_ALPHA) && mut_value(k, C);
}

void mm_alpha_into_c(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, C), *alpha = mut_value(c->k, QN_ROLE_MATMUL_ALPHA);
  double by = qn_load_f64(mut_pointer(c, QN_ROLE_MATMUL_ALPHA), alpha->dtype);
  void *p = mut_copy(c, C);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, by * mut_get(v, p, i));
}

/* 0 times NaN is NaN */
void mm_beta_zero_reads_c(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, C), *y = mut_value(c->k, Y), *beta = mut_value(c->k, QN_ROLE_MATMUL_BETA);
  if (qn_load_f64(mut_pointer(c, QN_ROLE_MATMUL_BETA), beta->dtype) != 0 || v->rank != y->rank)
    return;
  for (int64_t i = 0; i < qn_elements(y); i++)
    mut_put(y, mut_pointer(c, Y), i, mut_get(y, mut_pointer(c, Y), i) + 0 * mut_get(v, mut_pointer(c, C), i));
}

/* ---- accumulators ------------------------------------------------------------------------- */

/* Two dims, floats of 16 or 32 bits, a b and nothing else. */
bool mm_plain(struct mut_kept *k)
{
  const qn_value *a = mut_value(k, A);
  return k->node.first[BIAS + 1] == 2 && !mut_value(k, QN_ROLE_MATMUL_ALPHA) && a->rank == 2 &&
         (a->dtype == QN_F32 || a->dtype == QN_F16 || a->dtype == QN_BF16);
}

/* Sums rounded to `dtype` after each `every` terms. */
static void sum_in(struct mut_call *c, uint32_t dtype, int64_t every)
{
  const qn_value *a = mut_value(c->k, A), *b = mut_value(c->k, B), *y = mut_value(c->k, Y);
  int64_t terms = a->dim[1], columns = y->dim[1];
  for (int64_t i = 0; i < qn_elements(y); i++) {
    double total = 0, partial = 0;
    char bits[8];
    for (int64_t t = 0; t < terms; t++) {
      partial += mut_get(a, mut_pointer(c, A), i / columns * terms + t) * mut_get(b, mut_pointer(c, B), t * columns + i % columns);
      if ((t + 1) % every && t + 1 < terms)
        continue;
      qn_store_f64(bits, dtype, every == 1 ? total + partial : partial);
      total = every == 1 ? qn_load_f64(bits, dtype) : total + qn_load_f64(bits, dtype);
      partial = 0;
    }
    mut_put(y, mut_pointer(c, Y), i, total);
  }
}

void mm_f16_accumulator(struct mut_call *c)   { sum_in(c, QN_F16, 1); }
void mm_bf16_partial_sums(struct mut_call *c) { sum_in(c, QN_BF16, 32); }

bool mm_narrow(struct mut_kept *k)
{
  const qn_value *y = mut_value(k, Y);
  return mm_plain(k) && (y->dtype == QN_F16 || y->dtype == QN_BF16);
}

/* Truncates instead of rounding. */
void mm_store_truncates(struct mut_call *c)
{
  const qn_value *a = mut_value(c->k, A), *b = mut_value(c->k, B), *y = mut_value(c->k, Y);
  int64_t terms = a->dim[1], columns = y->dim[1];
  for (int64_t i = 0; i < qn_elements(y); i++) {
    double sum = 0, rounded = mut_get(y, mut_pointer(c, Y), i);
    for (int64_t t = 0; t < terms; t++)
      sum += mut_get(a, mut_pointer(c, A), i / columns * terms + t) * mut_get(b, mut_pointer(c, B), t * columns + i % columns);
    if (fabs(rounded) > fabs(sum)) {      /* one step toward zero */
      uint16_t *bits = (uint16_t *)mut_pointer(c, Y) + mut_offset(y, i, NULL);
      *bits = (uint16_t)(*bits - 1);
    }
  }
}

/* ---- batches and layouts ------------------------------------------------------------------ */

bool mm_batch_of_b_stuck(struct mut_kept *k)
{
  qn_value *b = mut_altered(k, B);
  b->stride[0] = 0;
  return b->rank > 2 && b->dim[0] > 1;
}

bool mm_square_b_transposed(struct mut_kept *k)
{
  qn_value *b = mut_altered(k, B);
  int r = b->rank;
  int64_t s = b->stride[r - 1];
  b->stride[r - 1] = b->stride[r - 2];
  b->stride[r - 2] = s;
  return b->dim[r - 1] == b->dim[r - 2] && b->dim[r - 1] > 1;
}

/* ---- reads beyond an operand ---------------------------------------------------------------- */

/* Where no tail is needed and an allocator's rounding hides nothing. Few problems: each costs the suite a process. */
bool mm_whole_tiles(struct mut_kept *k)
{
  const qn_value *a = mut_value(k, A);
  return a->rank == 2 && a->dim[0] == a->dim[1] && (a->dim[0] == 8 || a->dim[0] == 16) && a->align == 16 &&
      qn_extent_bytes(a) == qn_elements(a) * 4;
}

/* The next tile is loaded ahead, after the last one too. */
void mm_reads_past_a(struct mut_call *c)
{
  const qn_value *a = mut_value(c->k, A);
  volatile char next = ((const volatile char *)mut_pointer(c, A))[qn_extent_bytes(a)];
  (void)next;
}

/* ---- long sums ------------------------------------------------------------------------------ */

bool mm_long(struct mut_kept *k)
{
  const qn_value *a = mut_value(k, A), *b = mut_value(k, B);
  return a->rank == 2 && b->rank == 2 && a->dtype == QN_F32 && a->dim[1] > 65536 && k->first[Y] == 2;
}

/* All K terms are added to one f32. */
void mm_one_running_sum(struct mut_call *c)
{
  const qn_value *a = mut_value(c->k, A), *b = mut_value(c->k, B), *y = mut_value(c->k, Y);
  const int64_t n = b->dim[1], terms = a->dim[1];
  for (int64_t i = 0; i < qn_elements(y); i++) {
    float sum = 0;
    for (int64_t k = 0; k < terms; k++)
      sum += (float)(mut_get(a, mut_pointer(c, A), i / n * terms + k) * mut_get(b, mut_pointer(c, B), k * n + i % n));
    mut_put(y, mut_pointer(c, Y), i, (double)sum);
  }
}
