/* schema_table.c -- the op schema as data. Made by core/ops.awk from core/ops.def: do not edit. */
#include <math.h>
#include <stddef.h>
#include "core.h"

_Static_assert(offsetof(qn_conv, struct_size) == 0, "qn_conv");
_Static_assert(sizeof((qn_conv *)0)->stride == 3 * sizeof(int64_t), "qn_conv.stride");
_Static_assert(_Generic(((qn_conv *)0)->stride[0], int64_t: 1, default: 0), "qn_conv.stride");
_Static_assert(sizeof((qn_conv *)0)->dilation == 3 * sizeof(int64_t), "qn_conv.dilation");
_Static_assert(_Generic(((qn_conv *)0)->dilation[0], int64_t: 1, default: 0), "qn_conv.dilation");
_Static_assert(sizeof((qn_conv *)0)->pad_before == 3 * sizeof(int64_t), "qn_conv.pad_before");
_Static_assert(_Generic(((qn_conv *)0)->pad_before[0], int64_t: 1, default: 0), "qn_conv.pad_before");
_Static_assert(sizeof((qn_conv *)0)->pad_after == 3 * sizeof(int64_t), "qn_conv.pad_after");
_Static_assert(_Generic(((qn_conv *)0)->pad_after[0], int64_t: 1, default: 0), "qn_conv.pad_after");
_Static_assert(sizeof((qn_conv *)0)->groups == 1 * sizeof(int64_t), "qn_conv.groups");
_Static_assert(_Generic(((qn_conv *)0)->groups, int64_t: 1, default: 0), "qn_conv.groups");
static const qn_attr_info attrs_conv[] = {
  { "stride", QN_ATTR_SPATIAL, offsetof(qn_conv, stride), 0, 1, 0 },
  { "dilation", QN_ATTR_SPATIAL, offsetof(qn_conv, dilation), 0, 1, 0 },
  { "pad", QN_ATTR_SPADS, offsetof(qn_conv, pad_before), offsetof(qn_conv, pad_after), 0, 0 },
  { "groups", QN_ATTR_INT, offsetof(qn_conv, groups), 0, 1, 0 },
};
static const qn_conv default_conv = {
  .struct_size = sizeof(qn_conv),
  .stride = { 1, 1, 1 },
  .dilation = { 1, 1, 1 },
  .pad_before = { 0, 0, 0 },
  .pad_after = { 0, 0, 0 },
  .groups = 1,
};

_Static_assert(offsetof(qn_pool, struct_size) == 0, "qn_pool");
_Static_assert(sizeof((qn_pool *)0)->window == 3 * sizeof(int64_t), "qn_pool.window");
_Static_assert(_Generic(((qn_pool *)0)->window[0], int64_t: 1, default: 0), "qn_pool.window");
_Static_assert(sizeof((qn_pool *)0)->stride == 3 * sizeof(int64_t), "qn_pool.stride");
_Static_assert(_Generic(((qn_pool *)0)->stride[0], int64_t: 1, default: 0), "qn_pool.stride");
_Static_assert(sizeof((qn_pool *)0)->dilation == 3 * sizeof(int64_t), "qn_pool.dilation");
_Static_assert(_Generic(((qn_pool *)0)->dilation[0], int64_t: 1, default: 0), "qn_pool.dilation");
_Static_assert(sizeof((qn_pool *)0)->pad_before == 3 * sizeof(int64_t), "qn_pool.pad_before");
_Static_assert(_Generic(((qn_pool *)0)->pad_before[0], int64_t: 1, default: 0), "qn_pool.pad_before");
_Static_assert(sizeof((qn_pool *)0)->pad_after == 3 * sizeof(int64_t), "qn_pool.pad_after");
_Static_assert(_Generic(((qn_pool *)0)->pad_after[0], int64_t: 1, default: 0), "qn_pool.pad_after");
_Static_assert(sizeof((qn_pool *)0)->ceil_mode == 1 * sizeof(int64_t), "qn_pool.ceil_mode");
_Static_assert(_Generic(((qn_pool *)0)->ceil_mode, int64_t: 1, default: 0), "qn_pool.ceil_mode");
_Static_assert(sizeof((qn_pool *)0)->include_pad == 1 * sizeof(int64_t), "qn_pool.include_pad");
_Static_assert(_Generic(((qn_pool *)0)->include_pad, int64_t: 1, default: 0), "qn_pool.include_pad");
static const qn_attr_info attrs_pool[] = {
  { "window", QN_ATTR_SPATIAL, offsetof(qn_pool, window), 0, 0, 0 },
  { "stride", QN_ATTR_SPATIAL, offsetof(qn_pool, stride), 0, 0, 0 },
  { "dilation", QN_ATTR_SPATIAL, offsetof(qn_pool, dilation), 0, 1, 0 },
  { "pad", QN_ATTR_SPADS, offsetof(qn_pool, pad_before), offsetof(qn_pool, pad_after), 0, 0 },
  { "ceil_mode", QN_ATTR_INT, offsetof(qn_pool, ceil_mode), 0, 0, 0 },
  { "include_pad", QN_ATTR_INT, offsetof(qn_pool, include_pad), 0, 1, 0 },
};
static const qn_pool default_pool = {
  .struct_size = sizeof(qn_pool),
  .window = { 0, 0, 0 },
  .stride = { 0, 0, 0 },
  .dilation = { 1, 1, 1 },
  .pad_before = { 0, 0, 0 },
  .pad_after = { 0, 0, 0 },
  .ceil_mode = 0,
  .include_pad = 1,
};

_Static_assert(offsetof(qn_axis, struct_size) == 0, "qn_axis");
_Static_assert(sizeof((qn_axis *)0)->axis == 1 * sizeof(int64_t), "qn_axis.axis");
_Static_assert(_Generic(((qn_axis *)0)->axis, int64_t: 1, default: 0), "qn_axis.axis");
static const qn_attr_info attrs_axis[] = {
  { "axis", QN_ATTR_INT, offsetof(qn_axis, axis), 0, -1, 0 },
};
static const qn_axis default_axis = {
  .struct_size = sizeof(qn_axis),
  .axis = -1,
};

_Static_assert(offsetof(qn_axes, struct_size) == 0, "qn_axes");
_Static_assert(sizeof((qn_axes *)0)->mask == 1 * sizeof(uint64_t), "qn_axes.mask");
_Static_assert(_Generic(((qn_axes *)0)->mask, uint64_t: 1, default: 0), "qn_axes.mask");
static const qn_attr_info attrs_axes[] = {
  { "axis", QN_ATTR_AXES, offsetof(qn_axes, mask), 0, 0, 0 },
};
static const qn_axes default_axes = {
  .struct_size = sizeof(qn_axes),
  .mask = 0,
};

_Static_assert(offsetof(qn_norm, struct_size) == 0, "qn_norm");
_Static_assert(sizeof((qn_norm *)0)->mask == 1 * sizeof(uint64_t), "qn_norm.mask");
_Static_assert(_Generic(((qn_norm *)0)->mask, uint64_t: 1, default: 0), "qn_norm.mask");
_Static_assert(sizeof((qn_norm *)0)->eps == 1 * sizeof(double), "qn_norm.eps");
_Static_assert(_Generic(((qn_norm *)0)->eps, double: 1, default: 0), "qn_norm.eps");
static const qn_attr_info attrs_norm[] = {
  { "axis", QN_ATTR_AXES, offsetof(qn_norm, mask), 0, 0, 0 },
  { "eps", QN_ATTR_REAL, offsetof(qn_norm, eps), 0, 1e-05, 0 },
};
static const qn_norm default_norm = {
  .struct_size = sizeof(qn_norm),
  .mask = 0,
  .eps = 1e-05,
};

_Static_assert(offsetof(qn_norm, struct_size) == 0, "qn_norm");
_Static_assert(sizeof((qn_norm *)0)->mask == 1 * sizeof(uint64_t), "qn_norm.mask");
_Static_assert(_Generic(((qn_norm *)0)->mask, uint64_t: 1, default: 0), "qn_norm.mask");
_Static_assert(sizeof((qn_norm *)0)->eps == 1 * sizeof(double), "qn_norm.eps");
_Static_assert(_Generic(((qn_norm *)0)->eps, double: 1, default: 0), "qn_norm.eps");
_Static_assert(sizeof((qn_norm *)0)->momentum == 1 * sizeof(double), "qn_norm.momentum");
_Static_assert(_Generic(((qn_norm *)0)->momentum, double: 1, default: 0), "qn_norm.momentum");
static const qn_attr_info attrs_batch[] = {
  { "axis", QN_ATTR_AXES, offsetof(qn_norm, mask), 0, 0, 0 },
  { "eps", QN_ATTR_REAL, offsetof(qn_norm, eps), 0, 1e-05, 0 },
  { "momentum", QN_ATTR_REAL, offsetof(qn_norm, momentum), 0, 0.1, 0 },
};
static const qn_norm default_batch = {
  .struct_size = sizeof(qn_norm),
  .mask = 0,
  .eps = 1e-05,
  .momentum = 0.1,
};

_Static_assert(offsetof(qn_permutation, struct_size) == 0, "qn_permutation");
_Static_assert(sizeof((qn_permutation *)0)->axis == 8 * sizeof(int64_t), "qn_permutation.axis");
_Static_assert(_Generic(((qn_permutation *)0)->axis[0], int64_t: 1, default: 0), "qn_permutation.axis");
static const qn_attr_info attrs_permute[] = {
  { "perm", QN_ATTR_RANK, offsetof(qn_permutation, axis), 0, 0, 1 },
};
static const qn_permutation default_permute = {
  .struct_size = sizeof(qn_permutation),
  .axis = { 0, 1, 2, 3, 4, 5, 6, 7 },
};

_Static_assert(offsetof(qn_slicing, struct_size) == 0, "qn_slicing");
_Static_assert(sizeof((qn_slicing *)0)->start == 8 * sizeof(int64_t), "qn_slicing.start");
_Static_assert(_Generic(((qn_slicing *)0)->start[0], int64_t: 1, default: 0), "qn_slicing.start");
_Static_assert(sizeof((qn_slicing *)0)->length == 8 * sizeof(int64_t), "qn_slicing.length");
_Static_assert(_Generic(((qn_slicing *)0)->length[0], int64_t: 1, default: 0), "qn_slicing.length");
_Static_assert(sizeof((qn_slicing *)0)->step == 8 * sizeof(int64_t), "qn_slicing.step");
_Static_assert(_Generic(((qn_slicing *)0)->step[0], int64_t: 1, default: 0), "qn_slicing.step");
static const qn_attr_info attrs_slice[] = {
  { "start", QN_ATTR_RANK, offsetof(qn_slicing, start), 0, 0, 0 },
  { "length", QN_ATTR_RANK, offsetof(qn_slicing, length), 0, 0, 0 },
  { "step", QN_ATTR_RANK, offsetof(qn_slicing, step), 0, 1, 0 },
};
static const qn_slicing default_slice = {
  .struct_size = sizeof(qn_slicing),
  .start = { 0, 0, 0, 0, 0, 0, 0, 0 },
  .length = { 0, 0, 0, 0, 0, 0, 0, 0 },
  .step = { 1, 1, 1, 1, 1, 1, 1, 1 },
};

_Static_assert(offsetof(qn_padding, struct_size) == 0, "qn_padding");
_Static_assert(sizeof((qn_padding *)0)->pad_before == 8 * sizeof(int64_t), "qn_padding.pad_before");
_Static_assert(_Generic(((qn_padding *)0)->pad_before[0], int64_t: 1, default: 0), "qn_padding.pad_before");
_Static_assert(sizeof((qn_padding *)0)->pad_after == 8 * sizeof(int64_t), "qn_padding.pad_after");
_Static_assert(_Generic(((qn_padding *)0)->pad_after[0], int64_t: 1, default: 0), "qn_padding.pad_after");
_Static_assert(sizeof((qn_padding *)0)->value == 1 * sizeof(double), "qn_padding.value");
_Static_assert(_Generic(((qn_padding *)0)->value, double: 1, default: 0), "qn_padding.value");
static const qn_attr_info attrs_pad[] = {
  { "pad", QN_ATTR_RPADS, offsetof(qn_padding, pad_before), offsetof(qn_padding, pad_after), 0, 0 },
  { "value", QN_ATTR_REAL, offsetof(qn_padding, value), 0, 0, 0 },
};
static const qn_padding default_pad = {
  .struct_size = sizeof(qn_padding),
  .pad_before = { 0, 0, 0, 0, 0, 0, 0, 0 },
  .pad_after = { 0, 0, 0, 0, 0, 0, 0, 0 },
  .value = 0,
};

_Static_assert(offsetof(qn_pointwise, struct_size) == 0, "qn_pointwise");
_Static_assert(sizeof((qn_pointwise *)0)->alpha == 1 * sizeof(double), "qn_pointwise.alpha");
_Static_assert(_Generic(((qn_pointwise *)0)->alpha, double: 1, default: 0), "qn_pointwise.alpha");
static const qn_attr_info attrs_slope[] = {
  { "slope", QN_ATTR_REAL, offsetof(qn_pointwise, alpha), 0, 0.01, 0 },
};
static const qn_pointwise default_slope = {
  .struct_size = sizeof(qn_pointwise),
  .alpha = 0.01,
};

_Static_assert(offsetof(qn_pointwise, struct_size) == 0, "qn_pointwise");
_Static_assert(sizeof((qn_pointwise *)0)->alpha == 1 * sizeof(double), "qn_pointwise.alpha");
_Static_assert(_Generic(((qn_pointwise *)0)->alpha, double: 1, default: 0), "qn_pointwise.alpha");
static const qn_attr_info attrs_alpha[] = {
  { "alpha", QN_ATTR_REAL, offsetof(qn_pointwise, alpha), 0, 1, 0 },
};
static const qn_pointwise default_alpha = {
  .struct_size = sizeof(qn_pointwise),
  .alpha = 1,
};

_Static_assert(offsetof(qn_pointwise, struct_size) == 0, "qn_pointwise");
_Static_assert(sizeof((qn_pointwise *)0)->beta == 1 * sizeof(double), "qn_pointwise.beta");
_Static_assert(_Generic(((qn_pointwise *)0)->beta, double: 1, default: 0), "qn_pointwise.beta");
static const qn_attr_info attrs_beta[] = {
  { "beta", QN_ATTR_REAL, offsetof(qn_pointwise, beta), 0, 1, 0 },
};
static const qn_pointwise default_beta = {
  .struct_size = sizeof(qn_pointwise),
  .beta = 1,
};

_Static_assert(offsetof(qn_pointwise, struct_size) == 0, "qn_pointwise");
_Static_assert(sizeof((qn_pointwise *)0)->alpha == 1 * sizeof(double), "qn_pointwise.alpha");
_Static_assert(_Generic(((qn_pointwise *)0)->alpha, double: 1, default: 0), "qn_pointwise.alpha");
_Static_assert(sizeof((qn_pointwise *)0)->beta == 1 * sizeof(double), "qn_pointwise.beta");
_Static_assert(_Generic(((qn_pointwise *)0)->beta, double: 1, default: 0), "qn_pointwise.beta");
static const qn_attr_info attrs_range[] = {
  { "min", QN_ATTR_REAL, offsetof(qn_pointwise, alpha), 0, -INFINITY, 0 },
  { "max", QN_ATTR_REAL, offsetof(qn_pointwise, beta), 0, INFINITY, 0 },
};
static const qn_pointwise default_range = {
  .struct_size = sizeof(qn_pointwise),
  .alpha = -INFINITY,
  .beta = INFINITY,
};

static const qn_role_info roles_matmul[] = {
  { "a", 'm', 0, -1 },
  { "b", 'm', 0, -1 },
  { "c", 'm', QN_ROLE_OPTIONAL, 6 },
  { "bias", 'm', QN_ROLE_OPTIONAL, -1 },
  { "alpha", 's', QN_ROLE_OPTIONAL, -1 },
  { "beta", 's', QN_ROLE_OPTIONAL, -1 },
  { "y", 'm', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_conv_forward[] = {
  { "x", 'm', 0, -1 },
  { "w", 'm', 0, -1 },
  { "bias", 'm', QN_ROLE_OPTIONAL, -1 },
  { "y", 'm', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_conv_backward_data[] = {
  { "dy", 'm', 0, -1 },
  { "w", 'm', 0, -1 },
  { "dx", 'm', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_conv_backward_filter[] = {
  { "x", 'm', 0, -1 },
  { "dy", 'm', 0, -1 },
  { "dw", 'm', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_softmax[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_softmax_backward[] = {
  { "y", 'f', 0, -1 },
  { "dy", 'f', 0, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_log_softmax[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_log_softmax_backward[] = {
  { "y", 'f', 0, -1 },
  { "dy", 'f', 0, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_pool_max[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 },
  { "indices", 't', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_pool_max_backward[] = {
  { "dy", 'f', 0, -1 },
  { "indices", 't', QN_ROLE_OPTIONAL, -1 },
  { "x", 'f', QN_ROLE_OPTIONAL, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_pool_average[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_pool_average_backward[] = {
  { "dy", 'f', 0, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_copy[] = {
  { "x", 'a', 0, -1 },
  { "y", 'a', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_permute[] = {
  { "x", 'a', 0, -1 },
  { "y", 'a', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_slice[] = {
  { "x", 'a', 0, -1 },
  { "y", 'a', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_pad[] = {
  { "x", 'a', 0, -1 },
  { "y", 'a', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_concat[] = {
  { "x", 'a', QN_ROLE_LIST, -1 },
  { "y", 'a', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_sum[] = {
  { "x", 'n', 0, -1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_mean[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_prod[] = {
  { "x", 'n', 0, -1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_max[] = {
  { "x", 'n', 0, -1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_min[] = {
  { "x", 'n', 0, -1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_norm1[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_norm2[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reduce_amax[] = {
  { "x", 'f', 0, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_argmax[] = {
  { "x", 'n', 0, -1 },
  { "y", 'i', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_argmin[] = {
  { "x", 'n', 0, -1 },
  { "y", 'i', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_add[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_sub[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_mul[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_div[] = {
  { "a", 'f', 0, 2 },
  { "b", 'f', 0, 2 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_min[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_max[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_pow[] = {
  { "a", 'f', 0, 2 },
  { "b", 'f', 0, 2 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_eq[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_ne[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_lt[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_le[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_gt[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_ge[] = {
  { "a", 'n', 0, 2 },
  { "b", 'n', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_logical_and[] = {
  { "a", 'b', 0, 2 },
  { "b", 'b', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_logical_or[] = {
  { "a", 'b', 0, 2 },
  { "b", 'b', 0, 2 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_logical_not[] = {
  { "x", 'b', 0, 1 },
  { "y", 'b', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_select[] = {
  { "c", 'b', 0, 3 },
  { "a", 'n', 0, 3 },
  { "b", 'n', 0, 3 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_cast[] = {
  { "x", 'a', 0, 1 },
  { "y", 'a', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_neg[] = {
  { "x", 'n', 0, 1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_abs[] = {
  { "x", 'n', 0, 1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_sign[] = {
  { "x", 'n', 0, 1 },
  { "y", 'n', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_exp[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_log[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_sqrt[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_rsqrt[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_reciprocal[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_erf[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_sin[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_cos[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_floor[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_ceil[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_round[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_relu[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_leaky_relu[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_elu[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_gelu[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_gelu_tanh[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_silu[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_sigmoid[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_tanh[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_softplus[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_hardswish[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_mish[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_clip[] = {
  { "x", 'f', 0, 1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_relu_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_leaky_relu_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_elu_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_gelu_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_gelu_tanh_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_silu_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_sigmoid_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_tanh_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_softplus_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_hardswish_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_mish_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_clip_backward[] = {
  { "dy", 'f', 0, 2 },
  { "x", 'f', 0, 2 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 }
};
static const qn_role_info roles_layer_norm[] = {
  { "x", 'f', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "shift", 'f', QN_ROLE_OPTIONAL, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 },
  { "mean", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 },
  { "rstd", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_layer_norm_backward[] = {
  { "dy", 'f', 0, -1 },
  { "x", 'f', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "mean", 'w', 0, -1 },
  { "rstd", 'w', 0, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 },
  { "dscale", 'f', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 },
  { "dshift", 'f', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_rms_norm[] = {
  { "x", 'f', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 },
  { "rstd", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_rms_norm_backward[] = {
  { "dy", 'f', 0, -1 },
  { "x", 'f', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "rstd", 'w', 0, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 },
  { "dscale", 'f', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_batch_norm[] = {
  { "x", 'f', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "shift", 'f', QN_ROLE_OPTIONAL, -1 },
  { "running_mean", 'w', QN_ROLE_OPTIONAL, 8 },
  { "running_var", 'w', QN_ROLE_OPTIONAL, 9 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 },
  { "mean", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 },
  { "rstd", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 },
  { "new_mean", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 },
  { "new_var", 'w', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_batch_norm_backward[] = {
  { "dy", 'f', 0, -1 },
  { "x", 'f', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "mean", 'w', 0, -1 },
  { "rstd", 'w', 0, -1 },
  { "dx", 'f', QN_ROLE_OUTPUT, -1 },
  { "dscale", 'f', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 },
  { "dshift", 'f', QN_ROLE_OUTPUT | QN_ROLE_OPTIONAL, -1 }
};
static const qn_role_info roles_batch_norm_inference[] = {
  { "x", 'f', 0, -1 },
  { "mean", 'w', 0, -1 },
  { "var", 'w', 0, -1 },
  { "scale", 'f', QN_ROLE_OPTIONAL, -1 },
  { "shift", 'f', QN_ROLE_OPTIONAL, -1 },
  { "y", 'f', QN_ROLE_OUTPUT, -1 }
};

const qn_op_info qn__ops[] = {
  { "matmul", QN_OP_MATMUL, QN_FAMILY_CONTRACTION, 0,
    7, 6, roles_matmul, 0, 0, NULL, NULL,
    "y = alpha a b + beta c + bias" },
  { "conv_forward", QN_OP_CONV_FORWARD, QN_FAMILY_CONTRACTION, 0,
    4, 3, roles_conv_forward, 4, sizeof(qn_conv), attrs_conv, &default_conv,
    "y[n,k,p] = sum_{c,r} w[k,c,r] x[n,c,p*stride + r*dilation - pad] + bias[k]" },
  { "conv_backward_data", QN_OP_CONV_BACKWARD_DATA, QN_FAMILY_CONTRACTION, QN_OP_CONV_FORWARD,
    3, 2, roles_conv_backward_data, 4, sizeof(qn_conv), attrs_conv, &default_conv,
    "dx = the gradient of conv_forward by x" },
  { "conv_backward_filter", QN_OP_CONV_BACKWARD_FILTER, QN_FAMILY_CONTRACTION, QN_OP_CONV_FORWARD,
    3, 2, roles_conv_backward_filter, 4, sizeof(qn_conv), attrs_conv, &default_conv,
    "dw = the gradient of conv_forward by w" },
  { "softmax", QN_OP_SOFTMAX, QN_FAMILY_SOFTMAX, 0,
    2, 1, roles_softmax, 1, sizeof(qn_axis), attrs_axis, &default_axis,
    "y = exp(x - max x) / sum exp(x - max x)" },
  { "softmax_backward", QN_OP_SOFTMAX_BACKWARD, QN_FAMILY_SOFTMAX, QN_OP_SOFTMAX,
    3, 2, roles_softmax_backward, 1, sizeof(qn_axis), attrs_axis, &default_axis,
    "dx = y (dy - sum y dy)" },
  { "log_softmax", QN_OP_LOG_SOFTMAX, QN_FAMILY_SOFTMAX, 0,
    2, 1, roles_log_softmax, 1, sizeof(qn_axis), attrs_axis, &default_axis,
    "y = x - max x - log sum exp(x - max x)" },
  { "log_softmax_backward", QN_OP_LOG_SOFTMAX_BACKWARD, QN_FAMILY_SOFTMAX, QN_OP_LOG_SOFTMAX,
    3, 2, roles_log_softmax_backward, 1, sizeof(qn_axis), attrs_axis, &default_axis,
    "dx = dy - exp(y) sum dy" },
  { "pool_max", QN_OP_POOL_MAX, QN_FAMILY_POOLING, 0,
    3, 1, roles_pool_max, 6, sizeof(qn_pool), attrs_pool, &default_pool,
    "y = the largest x in each window" },
  { "pool_max_backward", QN_OP_POOL_MAX_BACKWARD, QN_FAMILY_POOLING, QN_OP_POOL_MAX,
    4, 3, roles_pool_max_backward, 6, sizeof(qn_pool), attrs_pool, &default_pool,
    "dx = dy at the place each maximum came from" },
  { "pool_average", QN_OP_POOL_AVERAGE, QN_FAMILY_POOLING, 0,
    2, 1, roles_pool_average, 6, sizeof(qn_pool), attrs_pool, &default_pool,
    "y = the mean of x in each window" },
  { "pool_average_backward", QN_OP_POOL_AVERAGE_BACKWARD, QN_FAMILY_POOLING, QN_OP_POOL_AVERAGE,
    2, 1, roles_pool_average_backward, 6, sizeof(qn_pool), attrs_pool, &default_pool,
    "dx = dy spread over each window" },
  { "copy", QN_OP_COPY, QN_FAMILY_TRANSFORM, 0,
    2, 1, roles_copy, 0, 0, NULL, NULL,
    "y = x, bit for bit, whatever the strides" },
  { "permute", QN_OP_PERMUTE, QN_FAMILY_TRANSFORM, 0,
    2, 1, roles_permute, 1, sizeof(qn_permutation), attrs_permute, &default_permute,
    "y[i_perm[0], i_perm[1], ...] = x[i_0, i_1, ...]" },
  { "slice", QN_OP_SLICE, QN_FAMILY_TRANSFORM, 0,
    2, 1, roles_slice, 3, sizeof(qn_slicing), attrs_slice, &default_slice,
    "y[i] = x[start + i*step]" },
  { "pad", QN_OP_PAD, QN_FAMILY_TRANSFORM, 0,
    2, 1, roles_pad, 2, sizeof(qn_padding), attrs_pad, &default_pad,
    "y = x with `value` around it" },
  { "concat", QN_OP_CONCAT, QN_FAMILY_TRANSFORM, 0,
    2, 1, roles_concat, 1, sizeof(qn_axis), attrs_axis, &default_axis,
    "y = the x one after the other along axis" },
  { "reduce_sum", QN_OP_REDUCE_SUM, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_sum, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = sum x" },
  { "reduce_mean", QN_OP_REDUCE_MEAN, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_mean, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = sum x / n" },
  { "reduce_prod", QN_OP_REDUCE_PROD, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_prod, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = product of x" },
  { "reduce_max", QN_OP_REDUCE_MAX, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_max, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = max x" },
  { "reduce_min", QN_OP_REDUCE_MIN, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_min, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = min x" },
  { "reduce_norm1", QN_OP_REDUCE_NORM1, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_norm1, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = sum |x|" },
  { "reduce_norm2", QN_OP_REDUCE_NORM2, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_norm2, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = sqrt(sum x^2)" },
  { "reduce_amax", QN_OP_REDUCE_AMAX, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_reduce_amax, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = max |x|" },
  { "argmax", QN_OP_ARGMAX, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_argmax, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = where the first maximum is, row-major in the reduced dims" },
  { "argmin", QN_OP_ARGMIN, QN_FAMILY_REDUCTION, 0,
    2, 1, roles_argmin, 1, sizeof(qn_axes), attrs_axes, &default_axes,
    "y = where the first minimum is, row-major in the reduced dims" },
  { "add", QN_OP_ADD, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_add, 0, 0, NULL, NULL,
    "y = a + b" },
  { "sub", QN_OP_SUB, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_sub, 0, 0, NULL, NULL,
    "y = a - b" },
  { "mul", QN_OP_MUL, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_mul, 0, 0, NULL, NULL,
    "y = a b" },
  { "div", QN_OP_DIV, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_div, 0, 0, NULL, NULL,
    "y = a / b" },
  { "min", QN_OP_MIN, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_min, 0, 0, NULL, NULL,
    "y = the smaller; NaN if either is" },
  { "max", QN_OP_MAX, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_max, 0, 0, NULL, NULL,
    "y = the larger; NaN if either is" },
  { "pow", QN_OP_POW, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_pow, 0, 0, NULL, NULL,
    "y = a^b as C's pow" },
  { "eq", QN_OP_EQ, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_eq, 0, 0, NULL, NULL,
    "y = a == b" },
  { "ne", QN_OP_NE, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_ne, 0, 0, NULL, NULL,
    "y = a != b" },
  { "lt", QN_OP_LT, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_lt, 0, 0, NULL, NULL,
    "y = a < b" },
  { "le", QN_OP_LE, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_le, 0, 0, NULL, NULL,
    "y = a <= b" },
  { "gt", QN_OP_GT, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_gt, 0, 0, NULL, NULL,
    "y = a > b" },
  { "ge", QN_OP_GE, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_ge, 0, 0, NULL, NULL,
    "y = a >= b" },
  { "logical_and", QN_OP_LOGICAL_AND, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_logical_and, 0, 0, NULL, NULL,
    "y = a and b" },
  { "logical_or", QN_OP_LOGICAL_OR, QN_FAMILY_POINTWISE, 0,
    3, 2, roles_logical_or, 0, 0, NULL, NULL,
    "y = a or b" },
  { "logical_not", QN_OP_LOGICAL_NOT, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_logical_not, 0, 0, NULL, NULL,
    "y = not x" },
  { "select", QN_OP_SELECT, QN_FAMILY_POINTWISE, 0,
    4, 3, roles_select, 0, 0, NULL, NULL,
    "y = a where c, else b" },
  { "cast", QN_OP_CAST, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_cast, 0, 0, NULL, NULL,
    "y = x in y's dtype" },
  { "neg", QN_OP_NEG, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_neg, 0, 0, NULL, NULL,
    "y = -x" },
  { "abs", QN_OP_ABS, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_abs, 0, 0, NULL, NULL,
    "y = |x|" },
  { "sign", QN_OP_SIGN, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_sign, 0, 0, NULL, NULL,
    "y = -1, 0 or 1; NaN stays" },
  { "exp", QN_OP_EXP, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_exp, 0, 0, NULL, NULL,
    "y = e^x" },
  { "log", QN_OP_LOG, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_log, 0, 0, NULL, NULL,
    "y = ln x" },
  { "sqrt", QN_OP_SQRT, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_sqrt, 0, 0, NULL, NULL,
    "y = the root of x" },
  { "rsqrt", QN_OP_RSQRT, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_rsqrt, 0, 0, NULL, NULL,
    "y = 1 / sqrt(x)" },
  { "reciprocal", QN_OP_RECIPROCAL, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_reciprocal, 0, 0, NULL, NULL,
    "y = 1 / x" },
  { "erf", QN_OP_ERF, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_erf, 0, 0, NULL, NULL,
    "y = 2/sqrt(pi) integral_0^x exp(-t^2) dt" },
  { "sin", QN_OP_SIN, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_sin, 0, 0, NULL, NULL,
    "y = sin x" },
  { "cos", QN_OP_COS, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_cos, 0, 0, NULL, NULL,
    "y = cos x" },
  { "floor", QN_OP_FLOOR, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_floor, 0, 0, NULL, NULL,
    "y = the largest integer <= x" },
  { "ceil", QN_OP_CEIL, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_ceil, 0, 0, NULL, NULL,
    "y = the smallest integer >= x" },
  { "round", QN_OP_ROUND, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_round, 0, 0, NULL, NULL,
    "y = the nearest integer, ties to even" },
  { "relu", QN_OP_RELU, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_relu, 0, 0, NULL, NULL,
    "y = max(x, 0); NaN stays" },
  { "leaky_relu", QN_OP_LEAKY_RELU, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_leaky_relu, 1, sizeof(qn_pointwise), attrs_slope, &default_slope,
    "y = x > 0 ? x : slope x" },
  { "elu", QN_OP_ELU, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_elu, 1, sizeof(qn_pointwise), attrs_alpha, &default_alpha,
    "y = x > 0 ? x : alpha (e^x - 1)" },
  { "gelu", QN_OP_GELU, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_gelu, 0, 0, NULL, NULL,
    "y = x (1 + erf(x / sqrt 2)) / 2" },
  { "gelu_tanh", QN_OP_GELU_TANH, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_gelu_tanh, 0, 0, NULL, NULL,
    "y = x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2" },
  { "silu", QN_OP_SILU, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_silu, 1, sizeof(qn_pointwise), attrs_beta, &default_beta,
    "y = x / (1 + e^(-beta x)); also called swish" },
  { "sigmoid", QN_OP_SIGMOID, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_sigmoid, 0, 0, NULL, NULL,
    "y = 1 / (1 + e^-x)" },
  { "tanh", QN_OP_TANH, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_tanh, 0, 0, NULL, NULL,
    "y = tanh x" },
  { "softplus", QN_OP_SOFTPLUS, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_softplus, 1, sizeof(qn_pointwise), attrs_beta, &default_beta,
    "y = ln(1 + e^(beta x)) / beta" },
  { "hardswish", QN_OP_HARDSWISH, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_hardswish, 0, 0, NULL, NULL,
    "y = x min(max(x + 3, 0), 6) / 6" },
  { "mish", QN_OP_MISH, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_mish, 0, 0, NULL, NULL,
    "y = x tanh(ln(1 + e^x))" },
  { "clip", QN_OP_CLIP, QN_FAMILY_POINTWISE, 0,
    2, 1, roles_clip, 2, sizeof(qn_pointwise), attrs_range, &default_range,
    "y = min(max(x, min), max); NaN stays" },
  { "relu_backward", QN_OP_RELU_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_RELU,
    3, 2, roles_relu_backward, 0, 0, NULL, NULL,
    "dx = x > 0 ? dy : 0" },
  { "leaky_relu_backward", QN_OP_LEAKY_RELU_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_LEAKY_RELU,
    3, 2, roles_leaky_relu_backward, 1, sizeof(qn_pointwise), attrs_slope, &default_slope,
    "dx = x > 0 ? dy : slope dy" },
  { "elu_backward", QN_OP_ELU_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_ELU,
    3, 2, roles_elu_backward, 1, sizeof(qn_pointwise), attrs_alpha, &default_alpha,
    "dx = x > 0 ? dy : alpha e^x dy" },
  { "gelu_backward", QN_OP_GELU_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_GELU,
    3, 2, roles_gelu_backward, 0, 0, NULL, NULL,
    "dx = dy ((1 + erf(x/sqrt 2))/2 + x e^(-x^2/2)/sqrt(2 pi))" },
  { "gelu_tanh_backward", QN_OP_GELU_TANH_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_GELU_TANH,
    3, 2, roles_gelu_tanh_backward, 0, 0, NULL, NULL,
    "dx = dy times the derivative of gelu_tanh at x" },
  { "silu_backward", QN_OP_SILU_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_SILU,
    3, 2, roles_silu_backward, 1, sizeof(qn_pointwise), attrs_beta, &default_beta,
    "dx = dy s (1 + beta x (1 - s)), s = sigmoid(beta x)" },
  { "sigmoid_backward", QN_OP_SIGMOID_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_SIGMOID,
    3, 2, roles_sigmoid_backward, 0, 0, NULL, NULL,
    "dx = dy s (1 - s), s = sigmoid(x)" },
  { "tanh_backward", QN_OP_TANH_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_TANH,
    3, 2, roles_tanh_backward, 0, 0, NULL, NULL,
    "dx = dy (1 - tanh(x)^2)" },
  { "softplus_backward", QN_OP_SOFTPLUS_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_SOFTPLUS,
    3, 2, roles_softplus_backward, 1, sizeof(qn_pointwise), attrs_beta, &default_beta,
    "dx = dy sigmoid(beta x)" },
  { "hardswish_backward", QN_OP_HARDSWISH_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_HARDSWISH,
    3, 2, roles_hardswish_backward, 0, 0, NULL, NULL,
    "dx = dy (x <= -3 ? 0 : x >= 3 ? 1 : (2x + 3)/6)" },
  { "mish_backward", QN_OP_MISH_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_MISH,
    3, 2, roles_mish_backward, 0, 0, NULL, NULL,
    "dx = dy (t + x s (1 - t^2)), t = tanh(softplus(x)), s = sigmoid(x)" },
  { "clip_backward", QN_OP_CLIP_BACKWARD, QN_FAMILY_POINTWISE, QN_OP_CLIP,
    3, 2, roles_clip_backward, 2, sizeof(qn_pointwise), attrs_range, &default_range,
    "dx = min < x < max ? dy : 0" },
  { "layer_norm", QN_OP_LAYER_NORM, QN_FAMILY_NORMALIZATION, 0,
    6, 3, roles_layer_norm, 2, sizeof(qn_norm), attrs_norm, &default_norm,
    "y = (x - mean x) rstd scale + shift, rstd = 1 / sqrt(var x + eps)" },
  { "layer_norm_backward", QN_OP_LAYER_NORM_BACKWARD, QN_FAMILY_NORMALIZATION, QN_OP_LAYER_NORM,
    8, 5, roles_layer_norm_backward, 2, sizeof(qn_norm), attrs_norm, &default_norm,
    "dx, dscale, dshift = the gradients of layer_norm by x, scale, shift" },
  { "rms_norm", QN_OP_RMS_NORM, QN_FAMILY_NORMALIZATION, 0,
    4, 2, roles_rms_norm, 2, sizeof(qn_norm), attrs_norm, &default_norm,
    "y = x rstd scale, rstd = 1 / sqrt(mean x^2 + eps)" },
  { "rms_norm_backward", QN_OP_RMS_NORM_BACKWARD, QN_FAMILY_NORMALIZATION, QN_OP_RMS_NORM,
    6, 4, roles_rms_norm_backward, 2, sizeof(qn_norm), attrs_norm, &default_norm,
    "dx, dscale = the gradients of rms_norm by x, scale" },
  { "batch_norm", QN_OP_BATCH_NORM, QN_FAMILY_NORMALIZATION, 0,
    10, 5, roles_batch_norm, 3, sizeof(qn_norm), attrs_batch, &default_batch,
    "as layer_norm over the batch; new = (1 - momentum) running + momentum (mean, n/(n-1) var)" },
  { "batch_norm_backward", QN_OP_BATCH_NORM_BACKWARD, QN_FAMILY_NORMALIZATION, QN_OP_BATCH_NORM,
    8, 5, roles_batch_norm_backward, 2, sizeof(qn_norm), attrs_norm, &default_norm,
    "dx, dscale, dshift = the gradients of batch_norm by x, scale, shift" },
  { "batch_norm_inference", QN_OP_BATCH_NORM_INFERENCE, QN_FAMILY_NORMALIZATION, 0,
    6, 5, roles_batch_norm_inference, 2, sizeof(qn_norm), attrs_norm, &default_norm,
    "y = (x - mean) / sqrt(var + eps) scale + shift" },
};
const int qn__n_ops = sizeof qn__ops / sizeof qn__ops[0];

const uint8_t qn__op_place[QN__KINDS] = {                /* of each number: 1 + its place in qn__ops; 0: a hole */
  [QN_OP_MATMUL] = 1,
  [QN_OP_CONV_FORWARD] = 2,
  [QN_OP_CONV_BACKWARD_DATA] = 3,
  [QN_OP_CONV_BACKWARD_FILTER] = 4,
  [QN_OP_SOFTMAX] = 5,
  [QN_OP_SOFTMAX_BACKWARD] = 6,
  [QN_OP_LOG_SOFTMAX] = 7,
  [QN_OP_LOG_SOFTMAX_BACKWARD] = 8,
  [QN_OP_POOL_MAX] = 9,
  [QN_OP_POOL_MAX_BACKWARD] = 10,
  [QN_OP_POOL_AVERAGE] = 11,
  [QN_OP_POOL_AVERAGE_BACKWARD] = 12,
  [QN_OP_COPY] = 13,
  [QN_OP_PERMUTE] = 14,
  [QN_OP_SLICE] = 15,
  [QN_OP_PAD] = 16,
  [QN_OP_CONCAT] = 17,
  [QN_OP_REDUCE_SUM] = 18,
  [QN_OP_REDUCE_MEAN] = 19,
  [QN_OP_REDUCE_PROD] = 20,
  [QN_OP_REDUCE_MAX] = 21,
  [QN_OP_REDUCE_MIN] = 22,
  [QN_OP_REDUCE_NORM1] = 23,
  [QN_OP_REDUCE_NORM2] = 24,
  [QN_OP_REDUCE_AMAX] = 25,
  [QN_OP_ARGMAX] = 26,
  [QN_OP_ARGMIN] = 27,
  [QN_OP_ADD] = 28,
  [QN_OP_SUB] = 29,
  [QN_OP_MUL] = 30,
  [QN_OP_DIV] = 31,
  [QN_OP_MIN] = 32,
  [QN_OP_MAX] = 33,
  [QN_OP_POW] = 34,
  [QN_OP_EQ] = 35,
  [QN_OP_NE] = 36,
  [QN_OP_LT] = 37,
  [QN_OP_LE] = 38,
  [QN_OP_GT] = 39,
  [QN_OP_GE] = 40,
  [QN_OP_LOGICAL_AND] = 41,
  [QN_OP_LOGICAL_OR] = 42,
  [QN_OP_LOGICAL_NOT] = 43,
  [QN_OP_SELECT] = 44,
  [QN_OP_CAST] = 45,
  [QN_OP_NEG] = 46,
  [QN_OP_ABS] = 47,
  [QN_OP_SIGN] = 48,
  [QN_OP_EXP] = 49,
  [QN_OP_LOG] = 50,
  [QN_OP_SQRT] = 51,
  [QN_OP_RSQRT] = 52,
  [QN_OP_RECIPROCAL] = 53,
  [QN_OP_ERF] = 54,
  [QN_OP_SIN] = 55,
  [QN_OP_COS] = 56,
  [QN_OP_FLOOR] = 57,
  [QN_OP_CEIL] = 58,
  [QN_OP_ROUND] = 59,
  [QN_OP_RELU] = 60,
  [QN_OP_LEAKY_RELU] = 61,
  [QN_OP_ELU] = 62,
  [QN_OP_GELU] = 63,
  [QN_OP_GELU_TANH] = 64,
  [QN_OP_SILU] = 65,
  [QN_OP_SIGMOID] = 66,
  [QN_OP_TANH] = 67,
  [QN_OP_SOFTPLUS] = 68,
  [QN_OP_HARDSWISH] = 69,
  [QN_OP_MISH] = 70,
  [QN_OP_CLIP] = 71,
  [QN_OP_RELU_BACKWARD] = 72,
  [QN_OP_LEAKY_RELU_BACKWARD] = 73,
  [QN_OP_ELU_BACKWARD] = 74,
  [QN_OP_GELU_BACKWARD] = 75,
  [QN_OP_GELU_TANH_BACKWARD] = 76,
  [QN_OP_SILU_BACKWARD] = 77,
  [QN_OP_SIGMOID_BACKWARD] = 78,
  [QN_OP_TANH_BACKWARD] = 79,
  [QN_OP_SOFTPLUS_BACKWARD] = 80,
  [QN_OP_HARDSWISH_BACKWARD] = 81,
  [QN_OP_MISH_BACKWARD] = 82,
  [QN_OP_CLIP_BACKWARD] = 83,
  [QN_OP_LAYER_NORM] = 84,
  [QN_OP_LAYER_NORM_BACKWARD] = 85,
  [QN_OP_RMS_NORM] = 86,
  [QN_OP_RMS_NORM_BACKWARD] = 87,
  [QN_OP_BATCH_NORM] = 88,
  [QN_OP_BATCH_NORM_BACKWARD] = 89,
  [QN_OP_BATCH_NORM_INFERENCE] = 90,
};

const char *qn_family_name(uint32_t family)
{
  switch (family) {
  case QN_FAMILY_CONTRACTION: return "contraction";
  case QN_FAMILY_POINTWISE: return "pointwise";
  case QN_FAMILY_REDUCTION: return "reduction";
  case QN_FAMILY_SOFTMAX: return "softmax";
  case QN_FAMILY_POOLING: return "pooling";
  case QN_FAMILY_TRANSFORM: return "transform";
  case QN_FAMILY_NORMALIZATION: return "normalization";
  default: return "?";
  }
}
