/* tensor.c -- tensor descriptions for cuDNN. */
#include "peer.h"

cudnnDataType_t peer_type(uint32_t dtype)
{
  return dtype == QN_F64 ? CUDNN_DATA_DOUBLE : dtype == QN_F16 ? CUDNN_DATA_HALF : dtype == QN_BF16 ? CUDNN_DATA_BFLOAT16
      : dtype == QN_I32 ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
}

bool peer_is_float(const qn_value *v)
{
  return v->dtype == QN_F64 || v->dtype == QN_F32 || v->dtype == QN_F16 || v->dtype == QN_BF16;
}

bool peer_countable(qn_prepared *p, const qn_value *v, const char *role)
{
  int64_t n = qn_elements(v);
  if (n <= INT32_MAX) return true;
  qn_refuse(p, "cuDNN counts in 32 bits", role, "at most 2^31 - 1 elements", "%lld", (long long)n);
  return false;
}

peer_shape peer_spatial(const qn_value *v, bool channels_last)
{
  peer_shape s = { .rank = v->rank < 4 ? 4 : v->rank };
  int64_t packed = channels_last ? v->dim[1] : 1;
  int pad = s.rank - v->rank;                               /* a 1-D problem becomes one row */
  s.dim[0] = v->dim[0];
  s.dim[1] = v->dim[1];
  for (int i = 2; i < s.rank; i++) s.dim[i] = i - pad < 2 ? 1 : v->dim[i - pad];
  for (int i = s.rank - 1; i >= 2; i--) {
    s.stride[i] = packed;
    packed *= s.dim[i];
  }
  s.stride[1] = channels_last ? 1 : packed;
  s.stride[0] = channels_last ? packed : packed * s.dim[1];
  return s;
}

peer_shape peer_packed(const int64_t *dim, int rank)
{
  peer_shape s = { .rank = rank < 4 ? 4 : rank };
  int64_t packed = 1;
  for (int i = s.rank - 1; i >= 0; i--) {
    s.dim[i] = i < rank ? dim[i] : 1;
    s.stride[i] = packed;
    packed *= s.dim[i];
  }
  return s;
}

const void *peer_number(uint32_t dtype, int value)
{
  static const double wide[] = { 0, 1 };
  static const float narrow[] = { 0, 1 };
  return dtype == QN_F64 ? (const void *)&wide[value] : (const void *)&narrow[value];
}
