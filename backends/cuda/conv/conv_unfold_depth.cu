/* conv_unfold_depth.cu -- convolution of volumes of few channels as one of images: windows along D are unfolded into channels, so that a tap
 * of the rest has enough of them for the Tensor Cores, and every engine for two spatial dims takes it.
 *
 *   x [N, C, D, H, W] -> x' [N P, R C, H, W]    x'[(n, p), (r, c), h, w] = x[n, c, p stride + r dilation - pad, h, w], 0 outside x
 *   w [K, C, R, S, T] -> w' [K, R C, S, T]      y [N, K, P, Q, U] -> [N P, K, Q, U], a view
 *
 * R C is padded with zeros to units of 16 bytes. A gradient by x makes that of x', in f32, and adds what lies on one element of x, in the
 * order of r. f16, bf16 and f32.
 *
 * Refused: y that does not lie packed, channels last (cuda/channels_last copies it); groups; one tap along D. */
#include "conv_part.h"
#include "engines.h"
#include "kit/divisor.h"
#include "kit/element.cuh"

enum { THREADS = 256 };

struct depth_unfolding {
  int64_t stride[5];                      /* of x: N, C, D, H, W */
  int32_t channels, taps, units;          /* C, R; 16 bytes of a pixel of x' */
  int32_t in, out, step, dilation, before;                  /* along D */
  cuda_divisor by_units, by_w, by_h, by_out, by_channels;   /* by_out: P */
  uint32_t total;                         /* units of x' */
};
struct depth_filters { int64_t stride[5]; int32_t channels, taps, padded, size[2]; uint32_t total; };     /* stride: K, C, R, S, T */

typedef struct state {
  cuda_conv_part conv;
  int32_t  x, w;                          /* which of its values */
  int32_t  mode;
  uint32_t dtype, of_w;                   /* x's, w's */
  uint64_t at_w, scratch;                 /* in workspace; x' at 0 */
  depth_unfolding u;
  depth_filters   f;
} state;
enum { DEPTH_FORWARD, DEPTH_DATA, DEPTH_FILTER };

/* ---- kernels -------------------------------------------------------------------------------------------------------- */

/* A thread writes one unit of a pixel. T: bits of an element. */
template <class T> __global__ void __launch_bounds__(THREADS) depth_unfold(uint4 *to, const T *x, const __grid_constant__ depth_unfolding u)
{
  constexpr int each = 16 / sizeof(T);
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= u.total) return;
  uint32_t unit, w, h, p;
  const uint32_t n = cuda_quotient(cuda_quotient(cuda_quotient(cuda_quotient(i, u.by_units, &unit), u.by_w, &w), u.by_h, &h), u.by_out, &p);
  const T *from = x + n * u.stride[0] + h * u.stride[3] + w * u.stride[4];
  union { uint4 all; T each[each]; } v = {};
#pragma unroll
  for (int e = 0; e < each; e++) {
    uint32_t c, r = cuda_quotient(unit * each + e, u.by_channels, &c);
    const int d = (int)p * u.step + (int)r * u.dilation - u.before;
    if ((int)r < u.taps && (uint32_t)d < (uint32_t)u.in) v.each[e] = from[c * u.stride[1] + d * u.stride[2]];
  }
  to[i] = v.all;
}

/* A thread makes one element of dx; of neighbouring threads channels are fastest. by_in: D of dx. */
__global__ void __launch_bounds__(THREADS)
depth_fold(void *dx, uint32_t dtype, const float *from, const __grid_constant__ depth_unfolding u, const cuda_divisor by_in, uint32_t total)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= total) return;
  uint32_t c, w, h, d;
  const uint32_t n = cuda_quotient(cuda_quotient(cuda_quotient(cuda_quotient(i, u.by_channels, &c), u.by_w, &w), u.by_h, &h), by_in, &d);
  const int pitch = u.units * 4;          /* f32 of a pixel */
  float sum = 0;
  for (int r = 0; r < u.taps; r++) {
    const int at = (int)d + u.before - r * u.dilation, p = at / u.step;
    if (at < 0 || p * u.step != at || p >= u.out) continue;
    sum += from[((((int64_t)n * u.out + p) * u.by_h.by + h) * u.by_w.by + w) * pitch + r * u.channels + c];
  }
  element_store(dx, n * u.stride[0] + c * u.stride[1] + d * u.stride[2] + h * u.stride[3] + w * u.stride[4], dtype, sum);
}

/* An element of w' [K, S, T, padded] from w, or of w from it. */
template <class T, bool back>
__global__ void __launch_bounds__(THREADS) depth_filters_move(T *packed, T *w, const __grid_constant__ depth_filters f)
{
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x;
  if (i >= f.total) return;
  const uint32_t rc = i % f.padded, tap = i / f.padded, t = tap % f.size[1], line = tap / f.size[1], s = line % f.size[0], k = line / f.size[0];
  const uint32_t r = rc / f.channels, c = rc - r * f.channels;
  const bool there = (int)r < f.taps;
  T *at = w + k * f.stride[0] + c * f.stride[1] + r * f.stride[2] + s * f.stride[3] + t * f.stride[4];
  if (!back) packed[i] = there ? *at : T(0);
  else if (there) *at = packed[i];
}

/* ---- what it refuses ------------------------------------------------------------------------------------------------- */

static qn_status check(const qn_request *r, const cuda_conv_part *p, const qn_value *x, const qn_value *w, const qn_value *y, qn_prepared *out)
{
  if (x->rank != 5) return qn_refuse(out, "three spatial dims", "x", "3", "%d", x->rank - 2);
  if (p->attr.groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)p->attr.groups);
  const qn_value *moved[] = { x, w };      /* the delegate looks at y's and bias's */
  for (int i = 0; i < 2; i++)
    if (moved[i]->dtype != QN_F32 && moved[i]->dtype != QN_F16 && moved[i]->dtype != QN_BF16)
      return qn_refuse(out, "dtypes", i ? "w" : "x", "f16, bf16 or f32", "%s", qn_kit_name(moved[i]->dtype));
  if (w->dim[2] < 2) return qn_refuse(out, "several taps along D", "w", "2 or more", "%lld", (long long)w->dim[2]);
  if (w->dim[2] * x->dim[1] > 64) return qn_refuse(out, "few channels", "x", "64 over the taps along D", "%lld", (long long)x->dim[1]);
  if (!qn_is_channels_last(y)) return qn_refuse(out, "packed channels last", "y", "nhwc", "%s", "other strides");
  if (!qn_elements(x) || !qn_elements(y)) return qn_refuse(out, "something to sum", "x", "", "%s", "nothing");
  const double pixels = (double)x->dim[0] * (double)qn_max_i64(x->dim[2], y->dim[2]) * (double)x->dim[3] * (double)x->dim[4] * 64;
  const qn_conv *c = &p->attr;
  const double reach = (double)y->dim[2] * (double)c->stride[0] + (double)w->dim[2] * (double)c->dilation[0] + (double)c->pad_before[0];
  if (pixels > 2e9 || (double)qn_elements(w) * 16 > 2e9 || reach > 1e9)
    return qn_refuse(out, "elements that 31 bits count", "x", "", "%s", "more");
  return r->demands->workspace_limit ? QN_OK : qn_refuse(out, "workspace", "x", "a limit above 0", "%d", 0);
}

/* ---- prepare --------------------------------------------------------------------------------------------------------- */

/* v becomes [n, channels, H, W] of a volume's, packed channels last. */
static void as_images(qn_value *v, int64_t n, int64_t channels)
{
  v->rank = 4;
  v->dim[0] = n, v->dim[1] = channels, v->dim[2] = v->dim[3], v->dim[3] = v->dim[4];
  v->stride[1] = 1, v->stride[3] = channels, v->stride[2] = channels * v->dim[3], v->stride[0] = v->stride[2] * v->dim[2];
  v->align = 16;
}

static void describe(state *st, const qn_value *x, const qn_value *w, const qn_value *y, int64_t padded)
{
  const qn_conv *c = &st->conv.attr;
  const int64_t each = 16 / qn_kit_bytes(st->dtype), pixels = x->dim[0] * y->dim[2] * x->dim[3] * x->dim[4];
  depth_unfolding *u = &st->u;
  depth_filters *f = &st->f;
  u->channels = (int32_t)x->dim[1], u->taps = (int32_t)w->dim[2], u->units = (int32_t)(padded / each);
  u->in = (int32_t)x->dim[2], u->out = (int32_t)y->dim[2];
  u->step = (int32_t)c->stride[0], u->dilation = (int32_t)c->dilation[0], u->before = (int32_t)c->pad_before[0];
  u->by_units = cuda_divide_by(u->units), u->by_channels = cuda_divide_by(u->channels);
  u->by_w = cuda_divide_by(x->dim[4]), u->by_h = cuda_divide_by(x->dim[3]), u->by_out = cuda_divide_by(u->out);
  u->total = (uint32_t)(pixels * u->units);
  f->channels = u->channels, f->taps = u->taps, f->padded = (int32_t)padded;
  f->size[0] = (int32_t)w->dim[3], f->size[1] = (int32_t)w->dim[4];
  f->total = (uint32_t)(w->dim[0] * w->dim[3] * w->dim[4] * padded);
  for (int d = 0; d < 5; d++) u->stride[d] = x->stride[d], f->stride[d] = w->stride[d];
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const uint32_t op = r->op[0].op;
  state *st = (state *)cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  cuda_conv_part *p = &st->conv;
  cuda_conv_part_begin(r, p);
  st->mode = op == QN_OP_CONV_FORWARD ? DEPTH_FORWARD : op == QN_OP_CONV_BACKWARD_DATA ? DEPTH_DATA : DEPTH_FILTER;
  /* in role order x, w, bias, y; dy, w, dx; x, dy, dw */
  const int last = p->n - 1, y = st->mode == DEPTH_FORWARD ? last : st->mode == DEPTH_DATA ? 0 : 1;
  st->x = st->mode == DEPTH_DATA ? last : 0, st->w = st->mode == DEPTH_FILTER ? last : 1;
  const qn_value xv = p->value[st->x], wv = p->value[st->w], yv = p->value[y];
  qn_status status = check(r, p, &xv, &wv, &yv, out);
  if (status) {
    cuda_conv_part_release(out);
    return status;
  }
  st->dtype = xv.dtype, st->of_w = wv.dtype;
  const int64_t bytes = qn_kit_bytes(st->dtype), of_w = qn_kit_bytes(st->of_w), images = xv.dim[0] * yv.dim[2],
                padded = qn_round_up(xv.dim[1] * wv.dim[2], 16 / qn_min_i64(bytes, of_w));
  describe(st, &xv, &wv, &yv, padded);
  as_images(&p->value[st->x], images, padded);
  as_images(&p->value[st->w], wv.dim[0], padded);
  as_images(&p->value[y], images, yv.dim[1]);
  p->value[y].align = yv.align;
  if (st->mode == DEPTH_DATA) p->value[st->x].dtype = QN_F32;         /* the sums of one element */
  qn_conv *c = &p->attr;
  for (int d = 0; d < 2; d++) {
    c->stride[d] = c->stride[d + 1], c->dilation[d] = c->dilation[d + 1];
    c->pad_before[d] = c->pad_before[d + 1], c->pad_after[d] = c->pad_after[d + 1];
  }
  const qn_prepared *answer = cuda_conv_part_delegate(r, p, out);
  if (!cuda_conv_part_plain(answer)) {
    cuda_conv_part_release(out);
    return qn_refuse(out, "a tuned engine for images that sums by the formula", "x", "what one takes", "%s", "another");
  }
  const double unfolded = (double)qn_elements(&p->value[st->x]) * (double)(st->mode == DEPTH_DATA ? 4 : bytes);
  const double given = (double)(qn_elements(&xv) + qn_elements(&yv)) * (double)bytes + (double)qn_elements(&wv) * (double)of_w;
  st->at_w = (uint64_t)qn_round_up((int64_t)unfolded, 256);
  st->scratch = st->at_w + (uint64_t)qn_round_up((int64_t)st->f.total * of_w, 256);
  out->workspace += st->scratch;
  if ((double)st->scratch > 2 * given + (1 << 20) || out->workspace > r->demands->workspace_limit) {
    const uint64_t workspace = out->workspace;
    cuda_conv_part_release(out);
    return qn_refuse(out, "unfolded windows of at most twice the operands, within the workspace", "x", "fewer taps along D", "%llu bytes",
                     (unsigned long long)workspace);
  }
  out->traits &= ~(uint64_t)QN_TRAIT_PORTABLE;
  out->estimate = answer->estimate > 0 ? answer->estimate * (st->mode == DEPTH_DATA ? 1.25 : 1) + 5000 + unfolded / 1500 : 0;
  return QN_OK;
}

/* ---- run ------------------------------------------------------------------------------------------------------------- */

static uint32_t blocks(uint32_t n) { return (n + THREADS - 1) / THREADS; }

static qn_status move_filters(const state *st, void *packed, void *w, bool back, cudaStream_t stream)
{
  const bool words = st->of_w == QN_F32;
  const uint32_t n = blocks(st->f.total);
  if (words && back) depth_filters_move<uint32_t, true><<<n, THREADS, 0, stream>>>((uint32_t *)packed, (uint32_t *)w, st->f);
  else if (words) depth_filters_move<uint32_t, false><<<n, THREADS, 0, stream>>>((uint32_t *)packed, (uint32_t *)w, st->f);
  else if (back) depth_filters_move<uint16_t, true><<<n, THREADS, 0, stream>>>((uint16_t *)packed, (uint16_t *)w, st->f);
  else depth_filters_move<uint16_t, false><<<n, THREADS, 0, stream>>>((uint16_t *)packed, (uint16_t *)w, st->f);
  return cuda_check(cudaGetLastError(), "depth_filters_move");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  const cuda_conv_part *p = &st->conv;
  const cudaStream_t stream = (cudaStream_t)launch->stream;
  char *base = (char *)launch->workspace;
  void *ptr[CUDA_CONV_ROLES];
  for (int i = 0; i < p->n; i++) ptr[i] = launch->ptr[p->at[i]];
  void *x = ptr[st->x], *w = ptr[st->w];
  ptr[st->x] = base, ptr[st->w] = base + st->at_w;
  if (st->mode != DEPTH_DATA) {
    if (st->dtype == QN_F32) depth_unfold<<<blocks(st->u.total), THREADS, 0, stream>>>((uint4 *)base, (const uint32_t *)x, st->u);
    else depth_unfold<<<blocks(st->u.total), THREADS, 0, stream>>>((uint4 *)base, (const uint16_t *)x, st->u);
    const qn_status s = cuda_check(cudaGetLastError(), "depth_unfold");
    if (s) return s;
  }
  qn_status s = st->mode == DEPTH_FILTER ? QN_OK : move_filters(st, ptr[st->w], w, false, stream);
  if (!s) s = cuda_host->part_run(p->part, launch, ptr, base + st->scratch, launch->counters);
  if (!s && st->mode == DEPTH_FILTER) s = move_filters(st, ptr[st->w], w, true, stream);
  if (s || st->mode != DEPTH_DATA) return s;
  depth_unfolding u = st->u;              /* units: of f32 */
  const cuda_divisor by_in = cuda_divide_by(u.in);
  const uint32_t total = (uint32_t)(p->value[st->x].dim[0] / u.out * u.in) * (uint32_t)u.channels * u.by_h.by * u.by_w.by;
  u.units = (int32_t)(p->value[st->x].dim[1] / 4);
  depth_fold<<<blocks(total), THREADS, 0, stream>>>(x, st->dtype, (const float *)base, u, by_in, total);
  return cuda_check(cudaGetLastError(), "depth_fold");
}

#define ROW(op) { "unfold_depth", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, nullptr, nullptr, \
                  prepare, cuda_conv_part_build, run, cuda_conv_part_release }
static const qn_engine rows[] = { ROW(QN_OP_CONV_FORWARD), ROW(QN_OP_CONV_BACKWARD_DATA), ROW(QN_OP_CONV_BACKWARD_FILTER) };
CUDA_ENGINES(conv_unfold_depth) = { rows, sizeof rows / sizeof *rows };
