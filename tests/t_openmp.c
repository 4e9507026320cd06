/* t_openmp.c -- calls from inside an OpenMP parallel region give the results of a call from outside, and no OpenMP setting
 * of the process changes. */
#include <stdlib.h>
#include <string.h>
#include <quern/quern.h>
#include "tap.h"
#ifdef _OPENMP
#include <omp.h>

enum { TEAM = 4, SIDE = 96, CALLS = 8 };

static const char *const options[] = { "backend=cpu_ref", NULL };

static void fill(float *p, int n, unsigned seed)
{
  for (int i = 0; i < n; i++) {
    seed = seed * 1664525u + 1013904223u;
    p[i] = (float)(int)(seed >> 8) / 16777216.0f - 0.5f;
  }
}

/* A product, a convolution and a softmax; y has room for all three. */
static qn_status compute(qn_context *ctx, const float *a, const float *b, float *y)
{
  qn_tensor ta = qn_tensor_2d((void *)a, QN_F32, SIDE, SIDE), tb = qn_tensor_2d((void *)b, QN_F32, SIDE, SIDE);
  qn_tensor ty = qn_tensor_2d(y, QN_F32, SIDE, SIDE), ts = qn_tensor_2d(y + SIDE * SIDE, QN_F32, SIDE, SIDE);
  qn_tensor tx = qn_tensor_nchw((void *)a, QN_F32, 1, 4, 48, 48), tw = qn_tensor_nchw((void *)b, QN_F32, 4, 4, 3, 3);
  qn_tensor tz = qn_tensor_nchw(y + 2 * SIDE * SIDE, QN_F32, 1, 4, 46, 46);
  qn_status status = qn_matmul(ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty);
  if (!status) status = qn_softmax(ctx, NULL, &ty, &ts);
  if (!status) status = qn_conv_forward(ctx, NULL, &tx, &tw, NULL, &tz);
  return status ? status : qn_context_synchronize(ctx);
}

/* For a product planned for the context's number of threads; option NULL: OpenMP's default. */
static size_t workspace(const char *option)
{
  const char *const with[] = { "backend=cpu_ref", "tune=off", "engine=matmul=blocked", option, NULL };
  qn_context *ctx = NULL;
  qn_graph *graph = NULL;
  qn_plan *plan = NULL;
  size_t bytes = 0;
  if (!qn_context_create(with, &ctx) && !qn_graph_parse("matmul a=f32/512x512 b=f32/512x512", &graph) && !qn_plan_create(ctx, graph, &plan))
    bytes = qn_plan_workspace(plan);
  qn_plan_destroy(plan);
  qn_graph_destroy(graph);
  qn_context_destroy(ctx);
  return bytes;
}

int main(void)
{
  static float a[SIDE * SIDE], b[SIDE * SIDE], outside[3 * SIDE * SIDE], inside[TEAM][3 * SIDE * SIDE];
  int wrong_status = 0, wrong_bits = 0;
  qn_context *ctx = NULL;
  fill(a, SIDE * SIDE, 1);
  fill(b, SIDE * SIDE, 2);
  omp_set_num_threads(3);
  omp_set_dynamic(0);

  const size_t one = workspace("threads=1"), three = workspace("threads=3");
  tap_ok(workspace(NULL) == three, "a context has the threads that OpenMP would use");
  omp_set_num_threads(1);
  tap_ok(one != three && workspace(NULL) == one, "when it is made: %zu bytes of workspace, not %zu", one, three);
  omp_set_num_threads(3);
  if (!tap_ok(!qn_context_create(options, &ctx) && !compute(ctx, a, b, outside), "called from outside"))
    tap_note("%s", qn_last_error());
  tap_ok(omp_get_max_threads() == 3 && !omp_get_dynamic() && omp_get_max_active_levels() >= 1,
         "OpenMP's settings are as the program set them");

#pragma omp parallel num_threads(TEAM) reduction(+ : wrong_status, wrong_bits)
  {
    int id = omp_get_thread_num();
    qn_context *mine = NULL;
    wrong_status += qn_context_create(options, &mine) != QN_OK;
    if (mine) {
      for (int i = 0; i < CALLS; i++) {
        memset(inside[id], 0, sizeof inside[id]);
        wrong_status += compute(mine, a, b, inside[id]) != QN_OK;
        wrong_bits += memcmp(inside[id], outside, sizeof outside) != 0;
      }
    }
    qn_context_destroy(mine);
  }
  tap_ok(!wrong_status, "called from inside a parallel region: every call succeeds");
  tap_ok(!wrong_bits, "the bits are those of a call from outside") || (tap_note("%d calls differ", wrong_bits), 0);

  /* A context made outside and used inside, by one thread. */
  wrong_status = wrong_bits = 0;
#pragma omp parallel num_threads(TEAM)
#pragma omp single
  {
    memset(inside[0], 0, sizeof inside[0]);
    wrong_status = compute(ctx, a, b, inside[0]) != QN_OK;
    wrong_bits = memcmp(inside[0], outside, sizeof outside) != 0;
  }
  tap_ok(!wrong_status && !wrong_bits, "a context made outside computes the same inside");
  qn_context_destroy(ctx);

  int width = 0;
#pragma omp parallel
#pragma omp single
  width = omp_get_num_threads();
  tap_ok(width == 3 && omp_get_max_threads() == 3, "the program's own regions are as wide as before");
  return tap_done();
}
#else
int main(void)
{
  puts("1..0 # SKIP built without OpenMP");
  return 0;
}
#endif
