/* fake_cuda_order.c -- the stand-in's streams, events and captures. Nothing runs, but what is enqueued has an order.
 *
 * Work on a stream is numbered. A stream knows of every stream the number up to which work is done before its next work begins: its own,
 * and what the events that it waited for brought. Of two fills or copies that touch the same bytes, one of them writing, the later must
 * know the earlier one. A capture must end on the stream on which it began, when that knows all work of the streams that joined it. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cuda_runtime_api.h>
#include "fake_cuda_order.h"

enum { STREAMS = 64, KEPT = 1024 };

typedef struct known { long upto[STREAMS]; } known;
typedef struct stream { bool live; int capture; known done; } stream;
typedef struct event { int number, capture; bool recorded; known done; } event;
typedef struct touch { int stream, capture; long at; uintptr_t begin, end; bool writes; const char *what; } touch;

static stream streams[STREAMS];           /* 0 is none: handles are their numbers */
static touch  touches[KEPT];              /* a ring: the latest */
static long   n_touches;
static int    captures, events;           /* so far */
static bool   capturing[KEPT];            /* by number */

/* ---- notes ------------------------------------------------------------------------------------------------- */

static char notes[2][8192];

void fake_note(const char *format, ...)
{
  const size_t at = strlen(notes[0]);
  va_list args;
  va_start(args, format);
  vsnprintf(notes[0] + at, sizeof notes[0] - at, format, args);
  va_end(args);
}

const char *fake_noted(void)
{
  memcpy(notes[1], notes[0], sizeof notes[0]);
  notes[0][0] = 0;
  return notes[1];
}

/* ---- work ----------------------------------------------------------------------------------------------------- */

static int number_of(cudaStream_t s)      /* 0: none of these */
{
  const uintptr_t n = (uintptr_t)s;
  return n < STREAMS && streams[n].live ? (int)n : 0;
}

void fake_enqueue(cudaStream_t s)
{
  const int n = number_of(s);
  if (n) streams[n].done.upto[n]++;
}

cudaError_t fake_access(const char *what, const void *p, size_t bytes, int how, cudaStream_t s)
{
  const int n = number_of(s);
  if (!n || !bytes) return cudaSuccess;
  const known *done = &streams[n].done;
  touch now = { n, streams[n].capture, ++streams[n].done.upto[n], (uintptr_t)p, (uintptr_t)p + bytes, how == FAKE_WRITTEN, what };
  for (long i = n_touches > KEPT ? n_touches - KEPT : 0; i < n_touches; i++) {
    const touch *t = &touches[i % KEPT];
    if (t->stream == n || t->capture != now.capture || !(t->writes || now.writes) || t->begin >= now.end || now.begin >= t->end) continue;
    if (done->upto[t->stream] < t->at)
      return broken(cudaErrorInvalidValue, "%s on stream %d meets %s on stream %d, which it does not wait for", what, n, t->what,
                    t->stream);
  }
  touches[n_touches++ % KEPT] = now;
  return cudaSuccess;
}

/* Forgets accesses: of a capture that has ended (or, 0, of live work) of which `done` is the end. */
static void forget(int capture, const known *done)
{
  for (long i = 0; i < KEPT && i < n_touches; i++)
    if (touches[i].capture == capture && touches[i].at <= done->upto[touches[i].stream]) touches[i].begin = touches[i].end = 0;
}

static void learn(known *to, const known *from)
{
  for (int i = 0; i < STREAMS; i++)
    if (from->upto[i] > to->upto[i]) to->upto[i] = from->upto[i];
}

/* ---- streams, events ---------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags)
{
  int n = 1;
  (void)flags;
  while (n < STREAMS && streams[n].live) n++;
  if (n == STREAMS) return broken(cudaErrorInvalidValue, "more than %d streams", STREAMS - 1);
  streams[n].live = true;
  *s = (cudaStream_t)(uintptr_t)n;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
  const int n = number_of(s);
  if (n && streams[n].capture) return broken(cudaErrorStreamCaptureUnsupported, "stream %d is waited for while it captures", n);
  if (n) forget(0, &streams[n].done);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
  const int n = number_of(s);
  if (n) (void)cudaStreamSynchronize(s), streams[n].live = false;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s) { return (void)s, cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
  event *made = calloc(1, sizeof *made);
  (void)flags;
  if (!made) return cudaErrorMemoryAllocation;
  made->number = ++events;
  *e = (cudaEvent_t)(void *)made;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
  free((void *)e);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
  event *to = (event *)(void *)e;
  const int n = number_of(s);
  to->recorded = true;
  to->capture = streams[n].capture;
  to->done = streams[n].done;
  fake_note("record %d e%d, ", n, to->number);
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
  const event *from = (const event *)(const void *)e;
  const int n = number_of(s);
  stream *to = &streams[n];
  (void)flags;
  fake_note("wait %d e%d, ", n, from->number);
  if (!from->recorded) return broken(cudaErrorInvalidValue, "stream %d waits for an event that was never recorded", n);
  if (from->capture && !capturing[from->capture])
    return broken(cudaErrorInvalidValue, "stream %d waits for an event of a capture that has ended", n);
  if (to->capture && to->capture != from->capture)
    return broken(cudaErrorStreamCaptureIsolation, "stream %d captures, and waits for an event of no or another capture", n);
  to->capture = from->capture;
  learn(&to->done, &from->done);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
  const event *from = (const event *)(const void *)e;
  if (!from->capture) forget(0, &from->done);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t stop)
{
  (void)start, (void)stop;
  *ms = 1;
  return cudaSuccess;
}

/* ---- captures --------------------------------------------------------------------------------------------------- */

cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status)
{
  *status = streams[number_of(s)].capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
  const int n = number_of(s);
  (void)mode;
  if (captures + 1 == KEPT) return broken(cudaErrorInvalidValue, "more than %d captures", KEPT);
  streams[n].capture = ++captures;
  capturing[captures] = true;
  fake_note("begin %d, ", n);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph)
{
  const int n = number_of(s), which = streams[n].capture;
  cudaError_t status = cudaSuccess;
  for (int i = 1; i < STREAMS; i++) {
    if (streams[i].capture != which) continue;
    if (streams[n].done.upto[i] < streams[i].done.upto[i])
      status = broken(cudaErrorStreamCaptureUnjoined, "a capture ends on stream %d, which does not wait for stream %d", n, i);
    streams[i].capture = 0;
  }
  capturing[which] = false;
  forget(which, &streams[n].done);
  fake_note("end %d, ", n);
  *graph = status ? NULL : (cudaGraph_t)(void *)&captures;
  return status;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
  (void)flags;
  *exec = (cudaGraphExec_t)(void *)graph;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t s)
{
  (void)exec;
  fake_note("replay %d, ", number_of(s));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return (void)graph, cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return (void)exec, cudaSuccess; }

/* ---- self-test ---------------------------------------------------------------------------------------------------- */

const char *fake_judge_order(void)
{
  static char cell[64];
  cudaStream_t a, b;
  cudaEvent_t e, late;
  cudaGraph_t graph;
  const char *wrong = NULL;
  (void)(cudaStreamCreateWithFlags(&a, 0) || cudaStreamCreateWithFlags(&b, 0) || cudaEventCreate(&e) || cudaEventCreate(&late));
#define MUST(fails, call) (wrong = wrong ? wrong : !(call) != !(fails) ? #call : NULL)
  MUST(false, fake_access("a fill", cell, 8, FAKE_WRITTEN, a));
  MUST(false, fake_access("a read elsewhere", cell + 8, 8, FAKE_READ, b));
  MUST(true, fake_access("a read", cell, 8, FAKE_READ, b));
  MUST(true, cudaStreamWaitEvent(b, e, 0));
  cudaEventRecord(e, a);
  MUST(false, cudaStreamWaitEvent(b, e, 0));
  MUST(false, fake_access("a read", cell, 8, FAKE_READ, b));
  MUST(true, fake_access("a fill after a read", cell, 8, FAKE_WRITTEN, a));
  MUST(false, fake_access("another read", cell, 8, FAKE_READ, a));
  (void)(cudaStreamSynchronize(a) || cudaStreamSynchronize(b));
  MUST(false, cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
  MUST(true, cudaStreamWaitEvent(a, e, 0));         /* from outside */
  cudaEventRecord(late, a);
  MUST(false, cudaStreamWaitEvent(b, late, 0));
  MUST(false, fake_access("a captured fill", cell, 8, FAKE_WRITTEN, b));
  MUST(true, fake_access("a captured read", cell, 8, FAKE_READ, a));
  MUST(true, cudaStreamEndCapture(a, &graph));      /* b has not joined */
  MUST(true, cudaStreamWaitEvent(b, late, 0));
#undef MUST
  (void)(cudaStreamDestroy(a) || cudaStreamDestroy(b) || cudaEventDestroy(e) || cudaEventDestroy(late));
  fake_noted();
  return wrong;
}
