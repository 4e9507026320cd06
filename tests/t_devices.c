/* t_devices.c -- several GPUs: a context for each, used in turn and by concurrent threads, gives the first one's bits, and
 * the caller's current context is preserved. Skipped without a GPU. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <quern/tools.h>
#include "tap.h"

enum { MAX_DEVICES = 8, N = 96, ROUNDS = 20, BYTES = N * N * 4 };

typedef struct work {
  qn_context *ctx;
  void       *a, *b, *y;
  float       got[N * N];
  qn_status   status;
} work;

static float a[N * N], b[N * N];
static work  on[MAX_DEVICES];
static int   n_devices, unnamed;

static void count(void *user, const qn_backend_info *info, const qn_device *device)
{
  (void)user;
  (void)info;
  if (device && !strcmp(device->kind, "cuda") && (!strcmp(device->model, "generic") || !*device->model ||
                                                  (!strcmp(device->name, "NVIDIA H200") && strcmp(device->model, "h200"))))
    unnamed++;
  if (device && !strcmp(device->kind, "cuda") && device->ordinal >= n_devices && device->ordinal < MAX_DEVICES)
    n_devices = device->ordinal + 1;
}

/* The calling thread's current context, queried from the driver without linking it. */
static void *current(void)
{
  static int (*get)(void **);
  void *library = get ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *now = NULL;
  if (library) *(void **)&get = dlsym(library, "cuCtxGetCurrent");
  if (get) get(&now);
  return now;
}

static qn_status prepare(work *w, int device)
{
  char option[32];
  const char *const options[] = { "backend=cuda", option, NULL };
  snprintf(option, sizeof option, "device=%d", device);
  w->status = qn_context_create(options, &w->ctx);
  if (!w->status) w->status = qn_alloc(w->ctx, BYTES, &w->a);
  if (!w->status) w->status = qn_alloc(w->ctx, BYTES, &w->b);
  if (!w->status) w->status = qn_alloc(w->ctx, BYTES, &w->y);
  if (!w->status) w->status = qn_copy_to_device(w->ctx, w->a, a, BYTES);
  if (!w->status) w->status = qn_copy_to_device(w->ctx, w->b, b, BYTES);
  return w->status;
}

static void *compute(void *user)
{
  work *w = user;
  qn_tensor ta = qn_tensor_2d(w->a, QN_F32, N, N), tb = qn_tensor_2d(w->b, QN_F32, N, N), ty = qn_tensor_2d(w->y, QN_F32, N, N);
  memset(w->got, 0, BYTES);
  for (int i = 0; i < ROUNDS && !w->status; i++) {
    w->status = qn_matmul(w->ctx, &ta, &tb, NULL, NULL, NULL, NULL, &ty);
    if (!w->status) w->status = qn_relu(w->ctx, &ty, &ty);
  }
  if (!w->status) w->status = qn_copy_to_host(w->ctx, w->got, w->y, BYTES);
  return NULL;
}

static int alike(void)
{
  int good = 1;
  for (int i = 0; i < n_devices; i++) good &= !on[i].status && !memcmp(on[i].got, on[0].got, BYTES) && on[i].got[N] != 0;
  return good;
}

/* The result must be what pinned memory held at the replay. */
static int replays_copies(work *w)
{
  float *in = NULL, *out = NULL;
  qn_recording *r = NULL;
  qn_tensor ta = qn_tensor_2d(w->a, QN_F32, N, N), ty = qn_tensor_2d(w->y, QN_F32, N, N);
  int good = !qn_alloc_host(w->ctx, BYTES, (void **)&in) && !qn_alloc_host(w->ctx, BYTES, (void **)&out);
  for (int i = 0; i < N * N && good; i++) in[i] = (float)i;
  for (int pass = 0; pass < 2 && good; pass++) {
    if (pass) good &= !qn_record_begin(w->ctx);
    good &= !qn_copy_to_device_async(w->ctx, w->a, in, BYTES) && !qn_relu(w->ctx, &ta, &ty) &&
        !qn_copy_to_host_async(w->ctx, out, w->y, BYTES);
    if (pass) good &= !qn_record_end(w->ctx, &r);
    good &= !qn_context_synchronize(w->ctx) && out[N * N - 1] == N * N - 1;
  }
  if (good) in[N * N - 1] = 7;
  good = good && !qn_recording_replay(w->ctx, r) && !qn_context_synchronize(w->ctx) && out[N * N - 1] == 7 && out[1] == 1;
  qn_recording_destroy(r);
  qn_free_host(w->ctx, in);
  qn_free_host(w->ctx, out);
  return good;
}

int main(void)
{
  if (qn_each_device(count, NULL) || !n_devices) {
    printf("1..0 # SKIP no CUDA device\n");
    return 0;
  }
  for (int i = 0; i < N * N; i++) {
    a[i] = (float)(i % 13 - 6) / 3;
    b[i] = (float)(i % 17 - 8) / 5;
  }
  tap_ok(!unnamed, "each has a model of its own, by which measurements are remembered");
  void *before = current();
  int good = 1;
  for (int i = 0; i < n_devices; i++) good &= !prepare(&on[i], i);
  tap_ok(good, "a context on each of %d devices", n_devices) || (tap_note("%s", qn_last_error()), 0);
  for (int i = n_devices; i-- > 0;) compute(&on[i]);
  tap_ok(alike(), "each in turn, the last first, gives the first one's bits");
  tap_ok(current() == before, "the caller's current context is what it was");
  pthread_t thread[MAX_DEVICES];
  int started = 0;
  while (started < n_devices && !pthread_create(&thread[started], NULL, compute, &on[started])) started++;
  for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
  tap_ok(started == n_devices && alike(), "and so do threads at once");
  tap_ok(replays_copies(&on[0]), "copies from and to pinned memory, enqueued and in a recording: %s", qn_last_error());
  for (int i = 0; i < n_devices; i++) {
    qn_free(on[i].ctx, on[i].a);
    qn_free(on[i].ctx, on[i].b);
    qn_free(on[i].ctx, on[i].y);
    qn_context_destroy(on[i].ctx);
  }
  tap_ok(current() == before, "destroying them changes nothing either");
  return tap_done();
}
