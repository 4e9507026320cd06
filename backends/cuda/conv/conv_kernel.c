/* conv_kernel.c -- state and launch of a convolution that is one kernel with one parameter struct. */
#include "conv_kernel.h"
#include "conv_layout.h"
#include "conv_pointwise.h"
#include "kit/early.h"
#include "kit/shared_memory.h"

cuda_conv_kernel *cuda_conv_kernel_begin(qn_prepared *out, const void *function, const void *parameters, size_t bytes)
{
  cuda_conv_kernel *k = cuda_state(out, sizeof *k);
  if (!k) return NULL;
  k->function = function;
  k->grid[0] = k->grid[1] = k->grid[2] = 1;
  memcpy(k->parameters.byte, parameters, bytes);
  return k;
}

void cuda_conv_kernel_pointer(cuda_conv_kernel *k, int32_t value, size_t at)
{
  k->pointer[k->n_pointers].value = value;
  k->pointer[k->n_pointers++].at = (uint32_t)at;
}

void cuda_conv_kernel_steps(cuda_conv_kernel *k, qn_prepared *out, const cuda_chain *chain, size_t at, size_t out_at)
{
  out->n_ops = chain->n_ops;
  out->workspace = cuda_chain_bytes(chain);
  k->chain = *chain;
  k->has_steps = true;
  k->steps_at = (uint32_t)at;
  cuda_conv_kernel_pointer(k, chain->out, out_at);
}

void cuda_conv_kernel_splits(cuda_conv_kernel *k, qn_prepared *out, int64_t splits, int64_t tiles, int64_t bytes, size_t at)
{
  k->has_splits = true;
  k->splits_at = (uint32_t)at;
  k->partial = (uint64_t)qn_round_up((int64_t)out->workspace, 256);
  out->workspace = k->partial + (uint64_t)(splits * tiles * bytes);
  out->counters = (uint64_t)tiles * 4;
  const cuda_tiled_parts parts = { .splits = (int32_t)splits };
  memcpy(k->parameters.byte + at, &parts, sizeof parts);
}

void cuda_conv_kernel_parts(cuda_conv_kernel *k, qn_prepared *out, const cuda_conv_problem *c, int64_t parts, int64_t elements, size_t at)
{
  k->parts = parts, k->elements = elements;
  k->parts_at = (uint32_t)at;
  k->dw = c->w_at, k->dw_dtype = c->w->dtype;
  out->workspace = (uint64_t)(parts * elements * 4);
}

int64_t cuda_conv_shares_of_sum(const qn_request *r, qn_prepared *out, int64_t tiles, int64_t most, int64_t elements)
{
  int64_t parts = qn_min_i64(cuda_conv_shares(tiles, most), (int64_t)(r->demands->workspace_limit / (uint64_t)(elements * 4)));
  if (parts < 1) qn_refuse(out, "workspace for a part of the sum", "dw", "", "%lld", (long long)elements * 4);
  return parts;
}

qn_status cuda_conv_wants_ampere(const qn_request *r, qn_prepared *out)
{
  if (r->device->arch_major >= 8) return QN_OK;
  return qn_refuse(out, "made for compute capability 8.0 and up", "", "8.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
}

qn_status cuda_conv_wants_halves(const cuda_conv_problem *c, qn_prepared *out)
{
  const qn_value *read = c->mode == CUDA_CONV_DATA ? c->y : c->x;
  if (read->dtype == QN_F16 || read->dtype == QN_BF16) return QN_OK;
  return qn_refuse(out, "dtypes", cuda_conv_name(c, read), "f16 or bf16", "%s", qn_kit_name(read->dtype));
}

qn_status cuda_conv_wants_channels_last(const qn_value *v, const char *name, qn_prepared *out)
{
  if (qn_is_channels_last(v) && v->align >= 16) return QN_OK;
  return qn_refuse(out, "packed channels last, aligned to 16 bytes", name, "nhwc", "%s", "other strides");
}

qn_status cuda_conv_read_halves(cuda_conv_problem *c, const qn_request *r, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read(c, r, out);
  if (!status) status = cuda_conv_wants_ampere(r, out);
  if (!status) status = cuda_conv_wants_halves(c, out);
  if (!status) status = cuda_conv_wants_channels_last(c->x, "x", out);
  if (!status) status = cuda_conv_wants_channels_last(c->y, "y", out);
  return status;
}

qn_status cuda_conv_wants_narrow(const cuda_conv_problem *c, qn_prepared *out)
{
  if (c->x->rank != 4) return qn_refuse(out, "two spatial dims", "x", "2", "%d", c->x->rank - 2);
  qn_status status = cuda_conv_wants_f32(c, out);
  if (status) return status;
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  if (c->channels > 4) return qn_refuse(out, "at most 4 channels", "x", "4", "%lld", (long long)c->channels);
  for (int d = 0; d < 2; d++) {
    if (c->size[d] != 3) return qn_refuse(out, "filters of 3 by 3", "w", "3", "%lld", (long long)c->size[d]);
    if (c->stride[d] != 1 || c->dilation[d] != 1)
      return qn_refuse(out, "stride and dilation of 1", "x", "1", "%lld", (long long)qn_max_i64(c->stride[d], c->dilation[d]));
  }
  return QN_OK;
}

/* ---- the row's ------------------------------------------------------------------------------------------------- */

qn_status cuda_conv_kernel_build(const qn_request *r, qn_prepared *out)
{
  const cuda_conv_kernel *k = out->state;
  (void)r;
  return k->shared > 48 << 10 ? cuda_allow_shared(k->function) : QN_OK;
}

qn_status cuda_conv_kernel_run(const qn_prepared *p, const qn_launch *launch) { return cuda_conv_kernel_start(p->state, launch, false); }

qn_status cuda_conv_kernel_start(const cuda_conv_kernel *k, const qn_launch *launch, bool early)
{
  cuda_conv_parameters bound = k->parameters;
  unsigned char *to = bound.byte;
  for (int i = 0; i < k->n_pointers; i++) memcpy(to + k->pointer[i].at, &launch->ptr[k->pointer[i].value], sizeof(void *));
  if (k->has_steps) {
    cuda_steps steps;
    memcpy(&steps, to + k->steps_at, sizeof steps);
    qn_status s = cuda_chain_start(&steps, &k->chain, launch, launch->workspace);
    if (s) return s;
    memcpy(to + k->steps_at, &steps, sizeof steps);
  }
  if (k->has_splits) {
    cuda_tiled_parts parts;
    memcpy(&parts, to + k->splits_at, sizeof parts);
    parts.partial = (float *)((char *)launch->workspace + k->partial), parts.ticket = launch->counters;
    memcpy(to + k->splits_at, &parts, sizeof parts);
  }
  if (k->parts) memcpy(to + k->parts_at, &launch->workspace, sizeof(void *));
  void *arguments[] = { to };
  qn_status s = cuda_launch_kernel(k->function, early, (dim3){ k->grid[0], k->grid[1], k->grid[2] }, k->threads, k->shared, arguments,
                                   launch->stream, "a convolution's kernel");
  if (s || !k->parts) return s;
  return cuda_conv_join(launch->ptr[k->dw], k->dw_dtype, launch->workspace, (int)k->parts, k->elements, launch->stream);
}
