/* t_lists -- lists longer than one launch's arguments hold (400 tensors on CUDA) and than a call's buffers on the stack:
 * an SGD step in place, the norm over all tensors, an overflow in the very last one. */
#include <quern/quern.h>
#include <math.h>
#include <stdlib.h>
#include "tap.h"

enum { MOST = 1003 };
enum { PARAMS, GRADS, BUFFERS };

typedef struct lists {
  qn_context *ctx;
  int64_t n, elements;
  float  *host;                           /* of one buffer */
  void   *at[BUFFERS], *step, *result;    /* on the device; a buffer's tensors are contiguous */
  qn_tensor list[BUFFERS][MOST];
} lists;

static int64_t length_of(int64_t i) { return 1 + i % 7; }

static int begin(lists *l, int64_t n)
{
  static const int64_t zero;
  *l = (lists){ .n = n };
  for (int64_t i = 0; i < n; i++) l->elements += length_of(i);
  const size_t bytes = (size_t)l->elements * sizeof(float);
  l->host = malloc(bytes);
  if (!l->host || qn_context_create(NULL, &l->ctx) || qn_alloc(l->ctx, 8, &l->step) || qn_alloc(l->ctx, 4, &l->result)
      || qn_copy_to_device(l->ctx, l->step, &zero, 8)) return 0;
  for (int b = 0; b < BUFFERS; b++) {
    if (qn_alloc(l->ctx, bytes, &l->at[b])) return 0;
    for (int64_t i = 0; i < l->elements; i++) l->host[i] = b == GRADS ? (float)(i % 5 - 2) : (float)i;
    if (qn_copy_to_device(l->ctx, l->at[b], l->host, bytes)) return 0;
    float *next = l->at[b];
    for (int64_t i = 0; i < n; next += length_of(i++)) l->list[b][i] = qn_tensor_1d(next, QN_F32, length_of(i));
  }
  return 1;
}

static void end(lists *l)
{
  if (l->ctx) {
    qn_free(l->ctx, l->step), qn_free(l->ctx, l->result);
    for (int b = 0; b < BUFFERS; b++) qn_free(l->ctx, l->at[b]);
  }
  qn_context_destroy(l->ctx);
  free(l->host);
}

static float result(const lists *l)
{
  float x = NAN;
  qn_copy_to_host(l->ctx, &x, l->result, sizeof x);
  return x;
}

static int steps(lists *l)
{
  static const float half = 0.5f;
  const qn_tensor step = qn_tensor_make(l->step, QN_I64, 0, NULL), rate = qn_scalar(&half, QN_F32);
  int64_t taken = 0, wrong = 0;
  if (qn_sgd(l->ctx, NULL, l->list[PARAMS], l->n, l->list[GRADS], l->n, NULL, 0, &step, &rate, NULL, NULL, &step, l->list[PARAMS], l->n,
             NULL, 0, NULL, 0) || qn_copy_to_host(l->ctx, l->host, l->at[PARAMS], (size_t)l->elements * sizeof(float))
      || qn_copy_to_host(l->ctx, &taken, l->step, 8)) return 0;
  for (int64_t i = 0; i < l->elements; i++) wrong += l->host[i] != (float)i - 0.5f * (float)(i % 5 - 2);
  return wrong == 0 && taken == 1;
}

static int norms(lists *l)
{
  const qn_tensor norm = qn_tensor_make(l->result, QN_F32, 0, NULL);
  double squares = 0;
  for (int64_t i = 0; i < l->elements; i++) squares += (double)((i % 5 - 2) * (i % 5 - 2));
  if (qn_global_norm(l->ctx, NULL, l->list[GRADS], l->n, NULL, &norm, NULL)) return 0;
  const double y = (double)result(l);
  return fabs(y * y - squares) <= 0x1p-22 * squares;       /* a correctly rounded root has a relative error of 2^-23 in its square */
}

static int finds(lists *l)
{
  const float one = 1, infinite = INFINITY;
  const qn_tensor found = qn_tensor_make(l->result, QN_F32, 0, NULL), scale = qn_scalar(&one, QN_F32);
  if (qn_amp_unscale(l->ctx, l->list[GRADS], l->n, &scale, &found, NULL, 0) || result(l) != 0) return 0;
  float *last = (float *)l->at[GRADS] + l->elements - 1;
  return !qn_copy_to_device(l->ctx, last, &infinite, 4) && !qn_amp_unscale(l->ctx, l->list[GRADS], l->n, &scale, &found, NULL, 0) &&
      result(l) == 1;
}

int main(void)
{
  static const int64_t lengths[] = { 300, 400, 401, MOST };
  for (int i = 0; i < 4; i++) {
    lists l;
    if (!tap_ok(begin(&l, lengths[i]), "%d tensors", (int)lengths[i])) tap_note("%s", qn_last_error());
    else {
      if (!tap_ok(steps(&l), "%d tensors: each moves once, in place", (int)lengths[i])) tap_note("%s", qn_last_error());
      if (!tap_ok(norms(&l), "%d tensors: the norm over all", (int)lengths[i])) tap_note("%s", qn_last_error());
      if (!tap_ok(finds(&l), "%d tensors: the last one's overflow is found", (int)lengths[i])) tap_note("%s", qn_last_error());
    }
    end(&l);
  }
  return tap_done();
}
