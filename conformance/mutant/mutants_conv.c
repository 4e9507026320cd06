/* mutants_conv.c -- convolution's bugs: taps, padding, dilation, stride, groups, layouts, outputs added to or left out. */
#include "mutant.h"

#define W QN_ROLE_CONV_FORWARD_W
#define X QN_ROLE_CONV_FORWARD_X

static qn_conv *conv_of(struct mut_kept *k) { return (qn_conv *)(void *)k->attr; }

static int64_t taps_of(const qn_value *w)
{
  int64_t taps = 1;
  for (int d = 2; d < w->rank; d++)
    taps *= w->dim[d];
  return taps;
}

void cv_drop_last_tap(struct mut_call *c)
{
  const qn_value *w = mut_value(c->k, W);
  void *p = mut_copy(c, W);
  int64_t taps = taps_of(w);
  for (int64_t i = taps - 1; i < qn_elements(w); i += taps)
    mut_put(w, p, i, 0);
}

void cv_kernel_flipped(struct mut_call *c)
{
  const qn_value *w = mut_value(c->k, W);
  void *p = mut_copy(c, W);
  int64_t taps = taps_of(w);
  for (int64_t i = 0; i < qn_elements(w); i++)
    mut_put(w, p, i, mut_get(w, mut_pointer(c, W), i / taps * taps + taps - 1 - i % taps));
}

bool cv_wrong_pad_side(struct mut_kept *k)
{
  qn_conv *v = conv_of(k);
  bool shows = false;
  for (int d = 0; d < mut_value(k, X)->rank - 2; d++) {
    int64_t before = v->pad_before[d];
    shows |= before != v->pad_after[d];
    v->pad_before[d] = v->pad_after[d];
    v->pad_after[d] = before;
  }
  return shows;
}

bool cv_pads_swapped(struct mut_kept *k)
{
  qn_conv *v = conv_of(k);
  int64_t before = v->pad_before[0];
  v->pad_before[0] = v->pad_before[1];
  v->pad_before[1] = before;
  return mut_value(k, X)->rank == 4 && v->pad_before[0] != v->pad_before[1];
}

bool cv_dilation_ignored(struct mut_kept *k)
{
  int last = mut_value(k, X)->rank - 3;
  bool shows = conv_of(k)->dilation[last] != 1;
  conv_of(k)->dilation[last] = 1;
  return shows;
}

/* Each group reads the next one's channels. */
void cv_group_shifted(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, X), *w = mut_value(c->k, W);
  void *p = mut_copy(c, X);
  int64_t at[QN_MAX_RANK], plane = 1, channels = x->dim[1];
  for (int d = 2; d < x->rank; d++)
    plane *= x->dim[d];
  for (int64_t i = 0; i < qn_elements(x); i++) {
    mut_offset(x, i, at);
    int64_t from = (at[1] + w->dim[1]) % channels;
    mut_put(x, p, i, mut_get(x, mut_pointer(c, X), i + (from - at[1]) * plane));
  }
}

/* nhwc memory is read as if it were nchw. */
bool cv_layout_ignored(struct mut_kept *k)
{
  qn_value *x = mut_altered(k, X);
  bool shows = x->rank == 4 && x->stride[1] == 1 && x->dim[1] > 1 && qn_elements(x) == qn_extent(x);
  int64_t s = 1;
  for (int d = x->rank - 1; d >= 0; d--) {
    x->stride[d] = s;
    s *= x->dim[d];
  }
  return shows;
}

bool cv_stride_ignored(struct mut_kept *k)
{
  qn_conv *v = conv_of(k);
  bool shows = false;
  for (int d = 0; d < mut_value(k, QN_ROLE_CONV_BACKWARD_DATA_DX)->rank - 2; d++) {
    shows |= v->stride[d] != 1;
    v->stride[d] = 1;
  }
  return shows;
}

void cv_keep_dx(struct mut_call *c) { mut_keep(c, QN_ROLE_CONV_BACKWARD_DATA_DX); }

/* A scatter that does not clear first: outputs that no window reaches keep their old contents. */
void cv_uncovered_unwritten(struct mut_call *c)
{
  const qn_value *dx = mut_value(c->k, QN_ROLE_CONV_BACKWARD_DATA_DX);
  char *p = mut_pointer(c, QN_ROLE_CONV_BACKWARD_DATA_DX);
  int64_t bytes = qn_kit_bytes(dx->dtype);
  for (int64_t i = 0; i < qn_elements(dx); i++) {
    int64_t at = mut_offset(dx, i, NULL) * bytes;
    if (mut_get(dx, p, i) == 0)
      memcpy(p + at, (char *)c->scratch[0] + at, (size_t)bytes);
  }
}

bool cv_last_image_dropped(struct mut_kept *k)
{
  mut_altered(k, QN_ROLE_CONV_BACKWARD_FILTER_X)->dim[0]--;
  mut_altered(k, QN_ROLE_CONV_BACKWARD_FILTER_DY)->dim[0]--;
  return mut_value(k, QN_ROLE_CONV_BACKWARD_FILTER_X)->dim[0] > 1;
}

void cv_keep_dw(struct mut_call *c) { mut_keep(c, QN_ROLE_CONV_BACKWARD_FILTER_DW); }

void cv_adds_to_output(struct mut_call *c)
{
  const qn_value *dw = mut_value(c->k, QN_ROLE_CONV_BACKWARD_FILTER_DW);
  void *p = mut_pointer(c, QN_ROLE_CONV_BACKWARD_FILTER_DW);
  for (int64_t i = 0; i < qn_elements(dw); i++)
    mut_put(dw, p, i, mut_get(dw, p, i) + mut_get(dw, c->scratch[0], i));
}

/* Judged by the bound of F(4x4, 3x3). */
bool cv_winograd(struct mut_kept *k)
{
  const qn_conv *v = conv_of(k);
  const qn_value *w = mut_value(k, k->node.op == QN_OP_CONV_BACKWARD_FILTER ? QN_ROLE_CONV_BACKWARD_FILTER_DW : W);
  k->numerics = (qn_numerics){.method = QN_METHOD_WINOGRAD, .tile = 4, .filter = 3};
  return w->rank == 4 && w->dtype == QN_F32 && w->dim[2] == 3 && w->dim[3] == 3 && v->stride[0] == 1 && v->stride[1] == 1 &&
      v->dilation[0] == 1 && v->dilation[1] == 1;
}

/* A tile that extends beyond the first input column does not read its last column. */
void cv_last_column_lost(struct mut_call *c)
{
  const qn_value *x = mut_value(c->k, X);
  void *p = mut_copy(c, X);
  for (int64_t w = x->dim[x->rank - 1], i = w - 1; i < qn_elements(x); i += w)
    mut_put(x, p, i, 0);
}

/* ---- with normalization by given statistics folded into it --------------------------------------- */

bool cv_with_norm(struct mut_kept *k) { return mut_take(k, QN_ROLE_CONV_FORWARD_Y, QN_OP_BATCH_NORM_INFERENCE); }

static double of_channel(const struct mut_call *c, uint32_t role, int64_t channel, double absent)
{
  void *p;
  const qn_value *v = mut_more(c, role, &p);
  return v ? mut_get(v, p, channel) : absent;
}

static void fold(struct mut_call *c, bool eps, bool shift_scaled)
{
  void *py = mut_pointer(c, QN_ROLE_CONV_FORWARD_Y);
  const qn_value *y = mut_value(c->k, QN_ROLE_CONV_FORWARD_Y);
  const qn_norm *norm = (const qn_norm *)(const void *)c->k->more_attr;
  int64_t n = qn_elements(y), plane = n / (y->dim[0] * y->dim[1]);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = i / plane % y->dim[1];
    double by = of_channel(c, QN_ROLE_BATCH_NORM_INFERENCE_SCALE, k, 1)
        / sqrt(of_channel(c, QN_ROLE_BATCH_NORM_INFERENCE_VAR, k, 0) + (eps ? norm->eps : 0));
    double shift = of_channel(c, QN_ROLE_BATCH_NORM_INFERENCE_SHIFT, k, 0);
    mut_put(y, py, i, (mut_get(y, py, i) - of_channel(c, QN_ROLE_BATCH_NORM_INFERENCE_MEAN, k, 0)) * by + shift * (shift_scaled ? by : 1));
  }
}

void cv_folded_without_eps(struct mut_call *c)  { fold(c, false, false); }
void cv_folded_shift_scaled(struct mut_call *c) { fold(c, true, true); }
