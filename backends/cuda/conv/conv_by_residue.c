/* conv_by_residue.c -- a gradient by x of a convolution with strides, as gradients with stride 1, one for each residue of x modulo the strides:
 * views of w and dx, and a delegation for each. For engines that would multiply the zeros between dy's elements, or take no strides.
 *
 *   x = s i + e sees the taps r = r0 + s t, r0 = (e + pad) mod s:   dx[s i + e] = sum over t of dy[i + (e + pad - r0) / s - t] w[r0 + s t]
 *
 * One or two spatial dims, dilation 1. Residues that no tap sees would need a pass of zeros: refused, as are those whose last windows lie
 * beyond dy. */
#include "conv_part.h"
#include "engines.h"

enum { MOST = 16 };

typedef struct state {
  int n;                                  /* residues */
  cuda_conv_part part[MOST];              /* dy, w, dx */
  int64_t w_at[MOST], dx_at[MOST];        /* bytes to the first element of each view */
} state;
enum { DY, W, DX };

static void release(qn_prepared *p)
{
  state *st = p->state;
  for (int i = 0; st && i < st->n; i++) cuda_conv_part_release(&st->part[i]);
  cuda_release(p);
}

/* Makes what `all` says of its sums hold for a part too. */
static void declare(qn_prepared *all, const qn_prepared *part)
{
  /* within one level of math the accumulators are numbered from the exact to the loose */
  if (part->math > all->math || (part->math == all->math && part->numerics.accumulator > all->numerics.accumulator))
    all->numerics = part->numerics;
  if (part->math > all->math) all->math = part->math;
}

/* The views of residue e[d] along each dim; false: it cannot be one. */
static bool describe(cuda_conv_part *p, const qn_conv *c, int dims, const int64_t *e, int64_t *w_at, int64_t *dx_at)
{
  qn_value *dy = &p->value[DY], *w = &p->value[W], *dx = &p->value[DX];
  for (int d = 0; d < dims; d++) {
    const int64_t s = c->stride[d], first = (e[d] + c->pad_before[d]) % s;
    if (w->dim[2 + d] <= first || dx->dim[2 + d] <= e[d]) return false;
    *w_at += first * w->stride[2 + d], *dx_at += e[d] * dx->stride[2 + d];
    w->dim[2 + d] = qn_ceil_div(w->dim[2 + d] - first, s), w->stride[2 + d] *= s;
    dx->dim[2 + d] = qn_ceil_div(dx->dim[2 + d] - e[d], s), dx->stride[2 + d] *= s;
    p->attr.stride[d] = 1;
    p->attr.pad_before[d] = (e[d] + c->pad_before[d] - first) / s;
    p->attr.pad_after[d] = dy->dim[2 + d] - dx->dim[2 + d] - p->attr.pad_before[d] + w->dim[2 + d] - 1;
    if (p->attr.pad_after[d] < 0) return false;
  }
  *w_at *= qn_kit_bytes(w->dtype), *dx_at *= qn_kit_bytes(dx->dtype);
  while (*w_at % w->align) w->align /= 2;
  while (*dx_at % dx->align) dx->align /= 2;
  return true;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_conv *c = r->op[0].attr;
  const qn_value *dx = &r->value[r->op[0].arg[DX]];
  const int dims = dx->rank - 2;
  int64_t residues = 1;
  if (dims > 2) return qn_refuse(out, "one or two spatial dims", "dx", "1 or 2", "%d", dims);
  for (int d = 0; d < dims; d++) {
    if (c->dilation[d] != 1) return qn_refuse(out, "dilation 1", "w", "1", "%lld", (long long)c->dilation[d]);
    residues *= c->stride[d];
    if (c->stride[d] > MOST || residues > MOST)
      return qn_refuse(out, "at most 16 residues", "dx", "smaller strides", "%lld", (long long)residues);
  }
  if (residues < 2) return qn_refuse(out, "strides", "dx", "2 or more", "%d", 1);
  state *st = cuda_state(out, sizeof *st);
  if (!st) return QN_NO_MEMORY;
  uint64_t workspace = 0, counters = 0;
  double ns = 0;
  const uint64_t of_all = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES | QN_TRAIT_BATCH_INVARIANT;
  uint64_t traits = of_all;               /* what all parts promise, and what any one is short of */
  bool timed = true;
  qn_prepared loosest = *out;
  for (; st->n < residues; st->n++) {
    cuda_conv_part *p = &st->part[st->n];
    const int64_t last = dims > 1 ? c->stride[1] : 1, e[2] = { st->n / last, st->n % last };
    cuda_conv_part_begin(r, p);
    const qn_prepared *answer = NULL;
    if (describe(p, c, dims, e, &st->w_at[st->n], &st->dx_at[st->n])) answer = cuda_conv_part_delegate(r, p, out);
    if (!cuda_conv_part_plain(answer)) {
      st->n++;
      release(out);
      return qn_refuse(out, "a tuned engine that sums by the formula for each residue of x, which taps see within dy", "dx",
                       "what one takes", "%s", "another");
    }
    if (st->n == 0) loosest = *out;
    declare(&loosest, answer);
    workspace = out->workspace > workspace ? out->workspace : workspace;
    counters = out->counters > counters ? out->counters : counters;
    ns += answer->estimate, timed = timed && answer->estimate > 0;
    traits = (traits & answer->traits & of_all) | ((traits | answer->traits) & ~of_all & ~QN_TRAIT_PORTABLE);
  }
  out->workspace = workspace, out->counters = counters;
  out->math = loosest.math, out->numerics = loosest.numerics;
  out->traits = traits;
  /* as measured: few channels of dx leave most of each part's tiles empty; elements of lines are stored apart */
  out->estimate = timed ? ns * (dx->dim[1] < 16 ? 1.6 : qn_is_channels_last(dx) ? 1 : 1.25) : 0;
  return QN_OK;
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  const state *st = out->state;
  qn_status status = QN_OK;
  (void)r;
  for (int i = 0; i < st->n && !status; i++) status = cuda_host->part_build(st->part[i].part);
  return status;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = prepared->state;
  qn_status status = QN_OK;
  for (int i = 0; i < st->n && !status; i++) {
    const cuda_conv_part *p = &st->part[i];
    void *ptr[CUDA_CONV_ROLES] = { launch->ptr[p->at[DY]], (char *)launch->ptr[p->at[W]] + st->w_at[i],
                                   (char *)launch->ptr[p->at[DX]] + st->dx_at[i] };
    status = cuda_host->part_run(p->part, launch, ptr, launch->workspace, launch->counters);
  }
  return status;
}

static const qn_engine rows[] = {
  { .name = "by_residue", .op = QN_OP_CONV_BACKWARD_DATA, .class_ = QN_CLASS_TUNED,
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES, .prepare = prepare, .build = build, .run = run, .release = release }
};
CUDA_ENGINES(conv_by_residue) = { rows, sizeof rows / sizeof *rows };
