/* t_calls.c -- calls of one shape that differ in sharing and in scalars: in any order each must be computed, or refused, as if
 * it were alone. A cached plan must be the right one for the call. */
#include <stdbool.h>
#include <string.h>
#include <quern/kit.h>
#include "tap.h"

enum { N = 16 };
static _Alignas(64) float a[N], b[N], y[N];

static void fill(void)
{
  for (int i = 0; i < N; i++) {
    a[i] = (float)(i + 1);
    b[i] = (float)(2 * i - 5);
    y[i] = -99;
  }
}

static qn_tensor square(float *p) { return qn_tensor_2d(p, QN_F32, 4, 4); }

/* Sums of two tensors, in and out of place, in a random order. */
static void test_sharing(qn_context *ctx)
{
  static const struct { const char *what; int x, y, out, refused; } ways[] = {
    { "apart", 0, 1, 2, 0 }, { "over the first", 0, 1, 0, 0 }, { "over the second", 0, 1, 1, 0 },
    { "over both", 0, 0, 0, 0 }, { "the same twice", 0, 0, 2, 0 }, { "a row further on", 0, 1, 3, 1 },
  };
  float *at[] = { a, b, y, a + 4 };     /* 16 bytes further: the alignment does not distinguish it */
  uint64_t seed = 3;
  int wrong[6] = { 0 }, calls[6] = { 0 };
  for (int n = 0; n < 200; n++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    int w = (int)((seed >> 40) % 6);
    fill();
    float want[N];
    for (int i = 0; i < N; i++) want[i] = at[ways[w].x][i] + at[ways[w].y][i];
    qn_tensor x = square(at[ways[w].x]), z = square(at[ways[w].y]), out = square(at[ways[w].out]);
    qn_status status = qn_add(ctx, &x, &z, &out);
    if (!status) status = qn_context_synchronize(ctx);
    calls[w]++;
    if (ways[w].refused) wrong[w] += status != QN_BAD_ARGUMENT || !strstr(qn_last_error(), "memory");
    else wrong[w] += status || memcmp(at[ways[w].out], want, sizeof want);
  }
  for (int w = 0; w < 6; w++)
    tap_ok(calls[w] && !wrong[w], "a sum %s, %d times among the others%s", ways[w].what, calls[w], ways[w].refused ? ": refused" : "");
}

/* alpha by value: 0, 1 and others in every float dtype, at any address; and none after calls that had one. */
static void test_scalars(qn_context *ctx)
{
  static const uint32_t dtypes[] = { QN_F64, QN_F32, QN_F16, QN_BF16 };
  static const double values[] = { 0, 1, 2, 0.5, -1 };
  uint64_t seed = 8;
  int wrong = 0;
  for (int n = 0; n < 400; n++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    uint32_t dtype = dtypes[(seed >> 40) % 4];
    double alpha = values[(seed >> 50) % 5];
    uint64_t words[2] = { 0 };
    void *at = (char *)words + (seed >> 30) % 2 * qn_dtype_bytes(dtype);
    qn_store_f64(at, dtype, alpha);
    fill();
    if (alpha == 0) a[3] = NAN;         /* alpha 0 must read neither factor */
    qn_tensor ta = square(a), tb = square(b), ty = square(y), s = qn_scalar(at, dtype);
    qn_status status = qn_matmul(ctx, &ta, &tb, NULL, NULL, &s, NULL, &ty);
    if (!status) status = qn_context_synchronize(ctx);
    for (int i = 0; i < N; i++) {
      float sum = 0;
      for (int k = 0; k < 4; k++) sum += alpha == 0 ? 0 : a[i / 4 * 4 + k] * b[k * 4 + i % 4];
      wrong += status || y[i] != (float)alpha * sum;
    }
  }
  tap_ok(!wrong, "400 products under alphas of four dtypes");
  for (int i = 0; i < 4; i++) {
    qn_tensor ta = square(a), tb = square(b), ty = square(y), s = qn_scalar(NULL, dtypes[i]);
    tap_ok(qn_matmul(ctx, &ta, &tb, NULL, NULL, &s, NULL, &ty) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "matmul: alpha: data is NULL"),
           "an alpha of %s without data is refused where others were taken", qn_dtype_name(dtypes[i]));
  }
}

/* An attribute struct of another size, between calls with the current size. */
static void test_attributes(qn_context *ctx)
{
  struct { qn_axis now; int64_t later; } axis = { QN_AXIS_INIT, 0 };
  int wrong = 0;
  for (int n = 0; n < 12; n++) {
    qn_axis today = QN_AXIS_INIT;
    today.axis = n % 2;
    axis.now.struct_size = n % 3 ? sizeof axis : 8;
    axis.now.axis = n % 2;              /* with size 8 it is not included: the default, the last */
    int last = n % 4 < 2 ? n % 2 : n % 3 == 0 || n % 2;
    fill();
    qn_tensor x = square(a), out = square(y);
    x.stride[0] = out.stride[0] = 4;
    qn_status status = qn_softmax(ctx, n % 4 < 2 ? &today : &axis.now, &x, &out);
    if (!status) status = qn_context_synchronize(ctx);
    double line = 0;
    for (int i = 0; i < 4; i++) line += (double)y[last ? i : 4 * i];
    wrong += status || !(line > 0.9999 && line < 1.0001);
  }
  tap_ok(!wrong, "attributes of three sizes");

  qn_tensor x = square(a), out = square(y);
  qn_arg arg[] = { { &x, 1 }, { &out, 1 } };
  bool refused = !qn_relu(ctx, &x, &out);
  refused = refused && qn_run(ctx, &(qn_op){ QN_OP_RELU, 2, &axis, arg }) == QN_BAD_ARGUMENT;
  tap_ok(refused, "attributes of an op that has none are refused, whatever ran before");
  x.data = NULL;
  refused = qn_relu(ctx, &x, &out) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "relu: x");
  tap_ok(refused, "a NULL is refused by its role: %s", qn_last_error());
}

/* Arguments in a struct: of this size, of an older library's, of none. Two equal keys: y is the mean of their values. */
static void test_struct(qn_context *ctx)
{
  static float q[2], k[4] = { 1, 1, 1, 1 }, v[4] = { 1, 3, 5, 9 };
  const int64_t one[4] = { 1, 1, 1, 2 }, two[4] = { 1, 1, 2, 2 };
  const qn_tensor tq = qn_tensor_make(q, QN_F32, 4, one), tk = qn_tensor_make(k, QN_F32, 4, two), tv = qn_tensor_make(v, QN_F32, 4, two);
  const qn_tensor ty = qn_tensor_make(y, QN_F32, 4, one), lse = qn_tensor_make(b, QN_F32, 3, one);
  qn_attention_forward_args args = QN_ATTENTION_FORWARD_ARGS_INIT;
  args.q = &tq, args.k = &tk, args.v = &tv, args.y = &ty, args.lse = &lse;
  fill();
  tap_ok(!qn_attention_forward(ctx, NULL, &args) && !qn_context_synchronize(ctx) && y[0] == 3 && y[1] == 6 && b[0] == logf(2),
         "arguments in a struct");
  args.struct_size = offsetof(qn_attention_forward_args, lse);
  fill();
  tap_ok(!qn_attention_forward(ctx, NULL, &args) && !qn_context_synchronize(ctx) && y[0] == 3 && b[0] == -5,
         "in one that ends earlier: what lies beyond is absent");
  args.struct_size = offsetof(qn_attention_forward_args, y);
  tap_ok(qn_attention_forward(ctx, NULL, &args) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "y: is missing"), "%s", qn_last_error());
  struct { qn_attention_forward_args args; const qn_tensor *more; } later = { args, NULL };
  later.args.struct_size = sizeof later;
  tap_ok(!qn_attention_forward(ctx, NULL, &later.args), "in one of a later version, with nothing in what this one does not know");
  later.more = &tq;
  tap_ok(qn_attention_forward(ctx, NULL, &later.args) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "knows only"), "%s", qn_last_error());
  args.struct_size = 0;
  tap_ok(qn_attention_forward(ctx, NULL, &args) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "INIT"), "%s", qn_last_error());
  tap_ok(qn_attention_forward(ctx, NULL, NULL) == QN_BAD_ARGUMENT && strstr(qn_last_error(), "NULL"), "%s", qn_last_error());
}

int main(void)
{
  qn_context *ctx;
  if (!tap_ok(!qn_context_create((const char *const[]){ "backend=cpu_ref", NULL }, &ctx), "a context")) {
    tap_note("%s", qn_last_error());
    return tap_done();
  }
  test_sharing(ctx);
  test_scalars(ctx);
  test_attributes(ctx);
  test_struct(ctx);
  qn_context_destroy(ctx);
  return tap_done();
}
