/* matmul_direct.cu -- y = alpha a b + beta c + bias for any dtypes, strides and sizes: the fallback, one thread per sum.
 *
 *   a [..., M, K]   b [..., K, N]   c, y [..., M, N]   bias [N]   leading dims broadcast */
#include "engines.h"
#include "kit/tile.cuh"

template <class T> struct matmul {
  typedef int64_t row_state, column_state;
  tensor  ta, tb, tc, tbias, ty;
  scalar  alpha, beta;
  int64_t m, n, k, batch;
  int64_t a_base, b_base, c_base, y_base; /* of the current batch */
  T       alpha_now, beta_now;

  __device__ static T value(const scalar &s) { return s.p ? element_load<T>(s.p, 0, s.dtype) : (T)s.value; }
  __device__ static int64_t base(const tensor &t, const tensor &like, int64_t i)
  {
    int64_t offset = 0;
    for (int d = like.rank - 3; d >= 0; d--) {
      if (t.dim[d] > 1) offset += i % like.dim[d] * t.stride[d];
      i /= like.dim[d];
    }
    return offset;
  }
  __device__ void enter(int64_t i)
  {
    a_base = base(ta, ty, i);
    b_base = base(tb, ty, i);
    y_base = base(ty, ty, i);
    if (tc.p) c_base = base(tc, ty, i);
    alpha_now = value(alpha);
    beta_now = value(beta);
  }
  __device__ int64_t depth() const { return alpha_now == T(0) ? 0 : k; }     /* alpha 0: a and b are not read */
  __device__ int64_t row(int64_t i) const { return a_base + i * ta.stride[ta.rank - 2]; }
  __device__ int64_t column(int64_t j) const { return b_base + j * tb.stride[tb.rank - 1]; }
  __device__ T a(int64_t at, int64_t kk, bool *) const { return (T)load(ta, at + kk * ta.stride[ta.rank - 1]); }
  __device__ T b(int64_t at, int64_t kk) const { return (T)load(tb, at + kk * tb.stride[tb.rank - 2]); }
  __device__ static T load(const tensor &t, int64_t i);
  __device__ void store(int64_t i, int64_t j, T sum) const;
};

template <class T> __device__ T matmul<T>::load(const tensor &t, int64_t i) { return t.load<T>(i); }
template <> __device__ int matmul<int>::load(const tensor &t, int64_t i) { return (int)t.load<int64_t>(i); }

template <class T> __device__ void matmul<T>::store(int64_t i, int64_t j, T sum) const
{
  T v = alpha_now == T(0) ? T(0) : alpha_now * sum;
  if (tc.p && beta_now != T(0)) v += beta_now * load(tc, c_base + i * tc.stride[tc.rank - 2] + j * tc.stride[tc.rank - 1]);
  if (tbias.p) v += load(tbias, j * tbias.stride[0]);
  int64_t at = y_base + i * ty.stride[ty.rank - 2] + j * ty.stride[ty.rank - 1];
  if constexpr (sizeof(T) == 4 && T(0.5f) == T(0)) element_store_wrapped(ty.p, at, ty.dtype, v);
  else ty.store(at, v);
}

template <class T> static qn_status product(const kept *k, const qn_launch *launch)
{
  matmul<T> v = {};
  v.ta = direct_tensor(k, launch, QN_ROLE_MATMUL_A, 0);
  v.tb = direct_tensor(k, launch, QN_ROLE_MATMUL_B, 0);
  v.tc = direct_tensor(k, launch, QN_ROLE_MATMUL_C, 0);
  v.tbias = direct_tensor(k, launch, QN_ROLE_MATMUL_BIAS, 0);
  v.ty = direct_tensor(k, launch, QN_ROLE_MATMUL_Y, 0);
  v.alpha = direct_scalar(k, launch, QN_ROLE_MATMUL_ALPHA, 1);
  v.beta = direct_scalar(k, launch, QN_ROLE_MATMUL_BETA, 1);
  int rank = v.ty.rank;
  v.m = v.ty.dim[rank - 2];
  v.n = v.ty.dim[rank - 1];
  v.k = v.ta.dim[rank - 1];
  v.batch = direct_elements(v.ty) / (v.m * v.n);
  return tile_launch<T>(v, launch, "matmul_direct");
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  uint32_t dtype = k->value[0].dtype;
  if (dtype == QN_F64) return product<double>(k, launch);
  if (dtype == QN_I8 || dtype == QN_U8) return product<int>(k, launch);
  return product<float>(k, launch);
}

static const qn_engine row[] = { DIRECT_ROW(QN_OP_MATMUL, run) };
CUDA_ENGINES(matmul_direct) = { row, 1 };
