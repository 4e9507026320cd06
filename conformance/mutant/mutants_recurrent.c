/* mutants_recurrent.c -- bugs of recurrent networks: other libraries' order of gates and place of the reset, what belongs to a sequence's
 * end, states that are dropped. Most take one layer of one direction. */
#include <math.h>
#include "mutant.h"

static qn_rnn *attributes(struct mut_kept *k) { return (qn_rnn *)(void *)k->attr; }
static const qn_rnn *rnn(const struct mut_call *c) { return (const qn_rnn *)(const void *)c->k->original; }
static bool is_backward(const struct mut_kept *k) { return k->node.op == QN_OP_RNN_BACKWARD; }

static bool simple(struct mut_kept *k, int64_t cell)
{
  const qn_rnn *a = attributes(k);
  return a->cell == cell && a->layers == 1 && a->direction != QN_RNN_BOTH;
}
bool rn_lstm(struct mut_kept *k) { return simple(k, QN_RNN_LSTM); }
bool rn_gru(struct mut_kept *k) { return simple(k, QN_RNN_GRU); }
bool rn_gru_with_biases(struct mut_kept *k)
{
  return simple(k, QN_RNN_GRU) && attributes(k)->reset == QN_RNN_RESET_AFTER && mut_value(k, QN_ROLE_RNN_FORWARD_BR) &&
         mut_value(k, QN_ROLE_RNN_FORWARD_BW);
}
static bool has(const struct mut_kept *k, uint32_t forward, uint32_t backward)
{
  return attributes((struct mut_kept *)(uintptr_t)k)->layers == 1 && mut_value(k, is_backward(k) ? backward : forward);
}
bool rn_has_h0(struct mut_kept *k) { return has(k, QN_ROLE_RNN_FORWARD_H0, QN_ROLE_RNN_BACKWARD_H0); }
bool rn_has_c0(struct mut_kept *k) { return has(k, QN_ROLE_RNN_FORWARD_C0, QN_ROLE_RNN_BACKWARD_C0); }
bool rn_has_br(struct mut_kept *k) { return !is_backward(k) && has(k, QN_ROLE_RNN_FORWARD_BR, 0); }
bool rn_has_ht(struct mut_kept *k) { return has(k, QN_ROLE_RNN_FORWARD_HT, 0) && mut_value(k, QN_ROLE_RNN_FORWARD_LENGTHS); }
bool rn_has_dht(struct mut_kept *k) { return has(k, 0, QN_ROLE_RNN_BACKWARD_DHT); }
bool rn_has_dct(struct mut_kept *k) { return has(k, 0, QN_ROLE_RNN_BACKWARD_DCT); }
bool rn_has_lengths(struct mut_kept *k) { return mut_value(k, QN_ROLE_RNN_FORWARD_LENGTHS) != NULL; }
bool rn_has_dbr(struct mut_kept *k)
{
  return simple(k, QN_RNN_GRU) && attributes(k)->reset == QN_RNN_RESET_AFTER && mut_value(k, QN_ROLE_RNN_BACKWARD_DBR) &&
         mut_value(k, QN_ROLE_RNN_BACKWARD_DBW);
}
bool rn_has_dw(struct mut_kept *k) { return has(k, 0, QN_ROLE_RNN_BACKWARD_DW); }
bool rn_reversed_with_lengths(struct mut_kept *k)
{
  return attributes(k)->direction == QN_RNN_BACKWARD && attributes(k)->layers == 1 && mut_value(k, QN_ROLE_RNN_FORWARD_LENGTHS);
}
bool rn_both(struct mut_kept *k) { return attributes(k)->direction == QN_RNN_BOTH; }

/* ---- other libraries' conventions --------------------------------------------------------------------------------- */

/* In a copy of a weight or bias, block g of rows becomes block from[g]; sign: what it is multiplied by. */
static void permute(struct mut_call *c, uint32_t role, const int *from, const double *sign, int gates)
{
  const qn_value *v = mut_value(c->k, role);
  if (!v)
    return;
  const int64_t n = qn_elements(v), block = n / gates;
  const void *old = mut_pointer(c, role);
  void *p = mut_copy(c, role);
  for (int64_t i = 0; i < n; i++)
    mut_put(v, p, i, sign[i / block] * mut_get(v, old, from[i / block] * block + i % block));
}
static void permute_all(struct mut_call *c, const int *from, const double *sign, int gates)
{
  static const uint32_t roles[] = {QN_ROLE_RNN_FORWARD_W, QN_ROLE_RNN_FORWARD_R, QN_ROLE_RNN_FORWARD_BW, QN_ROLE_RNN_FORWARD_BR};
  for (int i = 0; i < 4; i++)
    permute(c, roles[i], from, sign, gates);
}
static const double kept[4] = {1, 1, 1, 1};
/* the matrices taken as i o f g, i f o g, z r n */
void rn_order_iofg(struct mut_call *c) { permute_all(c, (const int[]){0, 2, 3, 1}, kept, 4); }
void rn_order_ifog(struct mut_call *c) { permute_all(c, (const int[]){0, 1, 3, 2}, kept, 4); }
void rn_order_zrn(struct mut_call *c) { permute_all(c, (const int[]){1, 0, 2}, kept, 3); }
/* h' = (1 - z) h + z n */
void rn_update_swapped(struct mut_call *c) { permute_all(c, (const int[]){0, 1, 2}, (const double[]){1, -1, 1}, 3); }

/* The recurrent bias of n is not under the reset gate. */
void rn_bias_outside_reset(struct mut_call *c)
{
  const qn_value *bw = mut_value(c->k, QN_ROLE_RNN_FORWARD_BW), *br = mut_value(c->k, QN_ROLE_RNN_FORWARD_BR);
  void *pw = mut_copy(c, QN_ROLE_RNN_FORWARD_BW), *pr = mut_copy(c, QN_ROLE_RNN_FORWARD_BR);
  for (int64_t n = qn_elements(br), i = n / 3 * 2; i < n; i++) {
    mut_put(bw, pw, i, mut_get(bw, pw, i) + mut_get(br, pr, i));
    mut_put(br, pr, i, 0);
  }
}

bool rn_reset_elsewhere(struct mut_kept *k)
{
  qn_rnn *a = attributes(k);
  a->reset = a->reset == QN_RNN_RESET_AFTER ? QN_RNN_RESET_BEFORE : QN_RNN_RESET_AFTER;
  return a->cell == QN_RNN_GRU && !mut_value(k, QN_ROLE_RNN_FORWARD_GATES);      /* which would have other dims */
}

static void zero(struct mut_call *c, uint32_t role)
{
  const qn_value *v = mut_value(c->k, role);
  void *p = mut_copy(c, role);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, 0);
}
void rn_zero_br(struct mut_call *c) { zero(c, QN_ROLE_RNN_FORWARD_BR); }

bool rn_clip_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->clip < INFINITY && attributes(k)->cell == QN_RNN_LSTM;
  attributes(k)->clip = INFINITY;
  return shows;
}
/* clip bounds h, not c */
bool rn_clip_of_h(struct mut_kept *k) { return rn_lstm(k) && rn_clip_ignored(k); }
void rn_bound_y(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  for (int64_t i = 0; i < qn_elements(y); i++)
    mut_put(y, p, i, fmin(fmax(mut_get(y, p, i), -rnn(c)->clip), rnn(c)->clip));
}

bool rn_dropout_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->dropout > 0 && attributes(k)->layers > 1;
  attributes(k)->dropout = 0;
  return shows;
}
bool rn_with_dropout(struct mut_kept *k) { return attributes(k)->dropout > 0; }
/* The last layer's output is scaled as if half of it had been dropped. */
void rn_dropout_after_last(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  for (int64_t i = 0; i < qn_elements(y); i++)
    mut_put(y, p, i, i % 2 ? 0 : mut_get(y, p, i) / (1 - rnn(c)->dropout));
}

/* ---- ends of sequences --------------------------------------------------------------------------------------------- */

static int64_t length_of(const struct mut_call *c, int64_t b)
{
  const double length = mut_get(mut_value(c->k, QN_ROLE_RNN_FORWARD_LENGTHS), mut_pointer(c, QN_ROLE_RNN_FORWARD_LENGTHS), b);
  const int64_t steps = mut_value(c->k, QN_ROLE_RNN_FORWARD_X)->dim[0];
  return length < 0 ? 0 : length > (double)steps ? steps : (int64_t)length;
}

/* The reverse direction starts at the padded end: lengths are T, and y is cut afterwards. */
void rn_lengths_whole(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, QN_ROLE_RNN_FORWARD_LENGTHS);
  void *p = mut_copy(c, QN_ROLE_RNN_FORWARD_LENGTHS);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, (double)mut_value(c->k, QN_ROLE_RNN_FORWARD_X)->dim[0]);
}
void rn_cut(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  const int64_t width = y->dim[2], batch = y->dim[1];
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (i / width / batch >= length_of(c, i / width % batch))
      mut_put(y, p, i, 0);
}

/* Beyond a sequence's end y repeats its last state, or is left as it was. */
void rn_repeats_last(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  const int64_t width = y->dim[2], batch = y->dim[1];
  for (int64_t i = 0; i < qn_elements(y); i++) {
    const int64_t b = i / width % batch, t = i / width / batch, length = length_of(c, b);
    if (t >= length && length > 0)
      mut_put(y, p, i, mut_get(y, p, ((length - 1) * batch + b) * width + i % width));
  }
}
void rn_keep_y(struct mut_call *c) { mut_keep(c, QN_ROLE_RNN_FORWARD_Y); }
void rn_beyond_unwritten(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  const int64_t width = y->dim[2], batch = y->dim[1];
  for (int64_t i = 0; i < qn_elements(y); i++)
    if (i / width / batch >= length_of(c, i / width % batch))
      mut_put(y, p, i, mut_get(y, c->scratch[0], i));
}

static void set_ht(struct mut_call *c, bool empty)
{
  const qn_value *ht = mut_value(c->k, QN_ROLE_RNN_FORWARD_HT), *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_HT), *py = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  const int64_t state = ht->dim[2], batch = ht->dim[1], steps = y->dim[0];
  for (int64_t i = 0; i < qn_elements(ht); i++) {
    const int64_t b = i / state % batch;
    if (empty ? length_of(c, b) == 0 : rnn(c)->direction == QN_RNN_FORWARD)
      mut_put(ht, p, i, empty ? 0 : mut_get(y, py, ((steps - 1) * batch + b) * y->dim[2] + i % state));
  }
}
void rn_ht_of_last_place(struct mut_call *c) { set_ht(c, false); }
void rn_ht_of_nothing_is_0(struct mut_call *c) { set_ht(c, true); }

void rn_zero_h0(struct mut_call *c) { zero(c, is_backward(c->k) ? QN_ROLE_RNN_BACKWARD_H0 : QN_ROLE_RNN_FORWARD_H0); }
void rn_zero_c0(struct mut_call *c) { zero(c, is_backward(c->k) ? QN_ROLE_RNN_BACKWARD_C0 : QN_ROLE_RNN_FORWARD_C0); }

/* The directions stand in y the other way round. */
void rn_halves_swapped(struct mut_call *c)
{
  const qn_value *y = mut_value(c->k, QN_ROLE_RNN_FORWARD_Y);
  void *p = mut_pointer(c, QN_ROLE_RNN_FORWARD_Y);
  const int64_t half = y->dim[2] / 2;
  for (int64_t i = 0; i < qn_elements(y); i++) {
    if (i % y->dim[2] >= half)
      continue;
    const double first = mut_get(y, p, i);
    mut_put(y, p, i, mut_get(y, p, i + half));
    mut_put(y, p, i + half, first);
  }
}

/* ---- gradients ----------------------------------------------------------------------------------------------------- */

void rn_zero_dht(struct mut_call *c) { zero(c, QN_ROLE_RNN_BACKWARD_DHT); }
void rn_zero_dct(struct mut_call *c) { zero(c, QN_ROLE_RNN_BACKWARD_DCT); }

/* Both biases of n get the same gradient, though the reset gate lies between. */
void rn_dbr_is_dbw(struct mut_call *c)
{
  const qn_value *br = mut_value(c->k, QN_ROLE_RNN_BACKWARD_DBR), *bw = mut_value(c->k, QN_ROLE_RNN_BACKWARD_DBW);
  for (int64_t i = 0; i < qn_elements(br); i++)
    mut_put(br, mut_pointer(c, QN_ROLE_RNN_BACKWARD_DBR), i, mut_get(bw, mut_pointer(c, QN_ROLE_RNN_BACKWARD_DBW), i));
}

/* As cuDNN's: the weights' gradient is added to what was there. */
void rn_keep_dw(struct mut_call *c) { mut_keep(c, QN_ROLE_RNN_BACKWARD_DW); }
void rn_adds_to_dw(struct mut_call *c)
{
  const qn_value *dw = mut_value(c->k, QN_ROLE_RNN_BACKWARD_DW);
  void *p = mut_pointer(c, QN_ROLE_RNN_BACKWARD_DW);
  for (int64_t i = 0; i < qn_elements(dw); i++)
    mut_put(dw, p, i, mut_get(dw, p, i) + mut_get(dw, c->scratch[0], i));
}

/* Steps beyond a sequence's end are counted. */
bool rn_back_with_lengths(struct mut_kept *k) { return mut_value(k, QN_ROLE_RNN_BACKWARD_LENGTHS) != NULL; }
void rn_back_lengths_whole(struct mut_call *c)
{
  const qn_value *v = mut_value(c->k, QN_ROLE_RNN_BACKWARD_LENGTHS);
  void *p = mut_copy(c, QN_ROLE_RNN_BACKWARD_LENGTHS);
  for (int64_t i = 0; i < qn_elements(v); i++)
    mut_put(v, p, i, (double)mut_value(c->k, QN_ROLE_RNN_BACKWARD_X)->dim[0]);
}
