/* foreign.c -- a program that uses an installed Quern; tests/install.sh compiles it as C99 and as C++17.
 * With -DNO_DLOPEN it defines its own dlopen, which detects a library that needs plugins or looks for them. */
#include <quern/quern.h>
#include <quern/tools.h>
#include <quern/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef NO_DLOPEN
#ifdef __cplusplus
extern "C"
#endif
void *dlopen(const char *file, int flags)
{
  (void)flags;
  fprintf(stderr, "dlopen(\"%s\") was called\n", file ? file : "");
  exit(3);
}
#endif

static void check(qn_status status, const char *what)
{
  if (!status) return;
  fprintf(stderr, "%s: %s: %s\n", what, qn_status_text(status), qn_last_error());
  exit(1);
}

int main(void)
{
#ifdef NO_DLOPEN
  const char *const options[] = { NULL };         /* naming a backend would stop the search */
#else
  const char *const options[] = { "backend=cpu_ref", NULL };
#endif
  float a[6] = { 1, 2, 3, 4, 5, 6 }, b[6] = { 1, 0, 0, 1, 1, 1 }, y[4] = { 0, 0, 0, 0 };
  float x[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, w[4] = { 1, 0, 0, 1 }, z[4] = { 0, 0, 0, 0 };
  const float y_should[4] = { 4, 5, 10, 11 }, z_should[4] = { 6, 8, 12, 14 };
  qn_tensor ta = qn_tensor_2d(a, QN_F32, 2, 3), tb = qn_tensor_2d(b, QN_F32, 3, 2), ty = qn_tensor_2d(y, QN_F32, 2, 2);
  qn_tensor tx = qn_tensor_nchw(x, QN_F32, 1, 1, 3, 3), tw = qn_tensor_nchw(w, QN_F32, 1, 1, 2, 2);
  qn_tensor tz = qn_tensor_nchw(z, QN_F32, 1, 1, 2, 2);
  qn_conv conv = QN_CONV_INIT;
  qn_context *ctx;

  if (strcmp(qn_version(), QN_VERSION)) {
    fprintf(stderr, "headers are of %s, the library of %s\n", QN_VERSION, qn_version());
    return 1;
  }
  check(qn_context_create(options, &ctx), "qn_context_create");
  check(qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty), "qn_matmul");
  check(qn_conv_forward(ctx, &conv, &tx, &tw, NULL, &tz), "qn_conv_forward");
  check(qn_context_synchronize(ctx), "qn_context_synchronize");
  printf("%s: %g %g %g %g, %g %g %g %g\n", qn_context_device(ctx), y[0], y[1], y[2], y[3], z[0], z[1], z[2], z[3]);
  qn_context_destroy(ctx);
  return memcmp(y, y_should, sizeof y) || memcmp(z, z_should, sizeof z);
}
