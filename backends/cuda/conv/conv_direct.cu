/* conv_direct.cu -- convolution and both gradients for any dtypes, strides and sizes, 1 to 3 spatial dims: an implicit product
 * (tile.cuh) whose elements are loaded straight from the tensors.
 *
 *   x [N, C, X]   w [K, C/groups, R]   y [N, K, P]      a group is a batch
 *   forward          y[(n,p), k]      = sum_{c,r} x[n, g C/groups + c, p stride + r dilation - pad] w[k,c,r]  (+ bias[k])
 *   backward data    dx[(n,x), c]     = sum_{k,r} dy[n,k,p] w[k,c,r]      the p with p stride + r dilation - pad = x
 *   backward filter  dw[(c,r), k]     = sum_{n,p} x[n, g C/groups + c, p stride + r dilation - pad] dy[n,k,p] */
#include "engines.h"
#include "kit/tile.cuh"

/* A position of a [N, C, spatial] tensor without its channel. */
struct pixel { int64_t n, at[3]; };

template <class T> struct convolution {
  grid    x, w, y;                        /* one of them is the output */
  tensor  bias;
  windows v;
  int64_t m, n, k, batch;                 /* of the product; batch: groups */
  int64_t group;
  int64_t channels, filters;              /* of a group */

  __device__ void enter(int64_t i) { group = i; }
  __device__ int64_t depth() const { return k; }
  __device__ static T load(const grid &g, int64_t i);
  __device__ static pixel pixel_at(int64_t i, const int64_t dim[3])
  {
    pixel p;
    for (int d = 2; d >= 0; d--) {
      int64_t q = i / dim[d];
      p.at[d] = i - q * dim[d];
      i = q;
    }
    p.n = i;
    return p;
  }
  __device__ void put(const grid &g, int64_t at, T sum) const
  {
    if constexpr (sizeof(T) == 4 && T(0.5f) == T(0)) element_store_wrapped(g.p, at, g.dtype, sum);
    else g.store(at, sum);
  }
};
template <class T> __device__ T convolution<T>::load(const grid &g, int64_t i) { return g.load<T>(i); }
template <> __device__ int convolution<int>::load(const grid &g, int64_t i) { return (int)g.load<int64_t>(i); }

template <class T> struct conv_forward : convolution<T> {
  typedef pixel row_state;
  typedef int64_t column_state;
  using convolution<T>::x; using convolution<T>::w; using convolution<T>::y; using convolution<T>::v;

  __device__ pixel row(int64_t i) const { return this->pixel_at(i, v.outputs); }
  __device__ int64_t column(int64_t j) const { return (this->group * this->filters + j) * w.stride[0]; }
  __device__ T a(const pixel &p, int64_t k, bool *there) const
  {
    int64_t taps = v.taps(), c = k / taps, r[3], at[3];
    v.tap(k - c * taps, r);
    *there = v.input(p.at, r, at);
    return *there ? this->load(x, x.at(p.n, this->group * this->channels + c, at)) : T(0);
  }
  __device__ T b(int64_t base, int64_t k) const
  {
    int64_t taps = v.taps(), c = k / taps, r[3];
    v.tap(k - c * taps, r);
    return this->load(w, base + w.at(0, c, r));
  }
  __device__ void store(int64_t i, int64_t j, T sum) const
  {
    pixel p = row(i);
    int64_t k = this->group * this->filters + j;
    if (this->bias.p) {
      if constexpr (sizeof(T) == 4 && T(0.5f) == T(0)) sum += (T)this->bias.template load<int64_t>(k * this->bias.stride[0]);
      else sum += this->bias.template load<T>(k * this->bias.stride[0]);
    }
    this->put(y, y.at(p.n, k, p.at), sum);
  }
};

template <class T> struct conv_backward_data : convolution<T> {
  typedef pixel row_state;
  typedef int64_t column_state;
  using convolution<T>::x; using convolution<T>::w; using convolution<T>::y; using convolution<T>::v;

  __device__ pixel row(int64_t i) const { return this->pixel_at(i, v.inputs); }
  __device__ int64_t column(int64_t j) const { return j; }
  __device__ T a(const pixel &p, int64_t k, bool *there) const
  {
    int64_t taps = v.taps(), f = k / taps, r[3], o[3];
    v.tap(k - f * taps, r);
    *there = v.output(p.at, r, o);
    return *there ? this->load(y, y.at(p.n, this->group * this->filters + f, o)) : T(0);
  }
  __device__ T b(int64_t c, int64_t k) const
  {
    int64_t taps = v.taps(), f = k / taps, r[3];
    v.tap(k - f * taps, r);
    return this->load(w, w.at(this->group * this->filters + f, c, r));
  }
  __device__ void store(int64_t i, int64_t j, T sum) const
  {
    pixel p = row(i);
    this->put(x, x.at(p.n, this->group * this->channels + j, p.at), sum);
  }
};

template <class T> struct conv_backward_filter : convolution<T> {
  struct row_state { int64_t channel, r[3]; };
  typedef int64_t column_state;
  using convolution<T>::x; using convolution<T>::w; using convolution<T>::y; using convolution<T>::v;

  __device__ row_state row(int64_t i) const
  {
    row_state s;
    int64_t taps = v.taps();
    s.channel = i / taps;
    v.tap(i - s.channel * taps, s.r);
    return s;
  }
  __device__ int64_t column(int64_t j) const { return this->group * this->filters + j; }
  __device__ T a(const row_state &s, int64_t k, bool *there) const
  {
    pixel p = this->pixel_at(k, v.outputs);
    int64_t at[3];
    *there = v.input(p.at, s.r, at);
    return *there ? this->load(x, x.at(p.n, this->group * this->channels + s.channel, at)) : T(0);
  }
  __device__ T b(int64_t f, int64_t k) const
  {
    pixel p = this->pixel_at(k, v.outputs);
    return this->load(y, y.at(p.n, f, p.at));
  }
  __device__ void store(int64_t i, int64_t j, T sum) const
  {
    row_state s = row(i);
    this->put(w, w.at(this->group * this->filters + j, s.channel, s.r), sum);
  }
};

/* ---- host ------------------------------------------------------------------------------------------- */

template <class C> static void describe(C *c, const kept *k, tensor x, tensor w, tensor y)
{
  const qn_conv *conv = (const qn_conv *)k->attr;
  int missing = 5 - x.rank;
  c->x = direct_grid(x);
  c->w = direct_grid(w);
  c->y = direct_grid(y);
  c->batch = conv->groups;
  c->channels = c->w.dim[1];
  c->filters = c->w.dim[0] / conv->groups;
  for (int d = 0; d < 3; d++) {
    int from = d - missing;
    c->v.size[d] = c->w.dim[2 + d];
    c->v.step[d] = from < 0 ? 1 : conv->stride[from];
    c->v.dilation[d] = from < 0 ? 1 : conv->dilation[from];
    c->v.before[d] = from < 0 ? 0 : conv->pad_before[from];
    c->v.inputs[d] = c->x.dim[2 + d];
    c->v.outputs[d] = c->y.dim[2 + d];
  }
}

static int64_t product_of(const int64_t *dim) { return dim[0] * dim[1] * dim[2]; }

template <class T> static qn_status forward_as(const kept *k, const qn_launch *launch)
{
  conv_forward<T> c = {};
  describe(&c, k, direct_tensor(k, launch, QN_ROLE_CONV_FORWARD_X, 0), direct_tensor(k, launch, QN_ROLE_CONV_FORWARD_W, 0),
           direct_tensor(k, launch, QN_ROLE_CONV_FORWARD_Y, 0));
  c.bias = direct_tensor(k, launch, QN_ROLE_CONV_FORWARD_BIAS, 0);
  c.m = c.y.dim[0] * product_of(c.v.outputs);
  c.n = c.filters;
  c.k = c.channels * product_of(c.v.size);
  return tile_launch<T>(c, launch, "conv_forward_direct");
}

template <class T> static qn_status backward_data_as(const kept *k, const qn_launch *launch)
{
  conv_backward_data<T> c = {};
  describe(&c, k, direct_tensor(k, launch, QN_ROLE_CONV_BACKWARD_DATA_DX, 0), direct_tensor(k, launch, QN_ROLE_CONV_BACKWARD_DATA_W, 0),
           direct_tensor(k, launch, QN_ROLE_CONV_BACKWARD_DATA_DY, 0));
  c.m = c.x.dim[0] * product_of(c.v.inputs);
  c.n = c.channels;
  c.k = c.filters * product_of(c.v.size);
  return tile_launch<T>(c, launch, "conv_backward_data_direct");
}

template <class T> static qn_status backward_filter_as(const kept *k, const qn_launch *launch)
{
  conv_backward_filter<T> c = {};
  describe(&c, k, direct_tensor(k, launch, QN_ROLE_CONV_BACKWARD_FILTER_X, 0), direct_tensor(k, launch, QN_ROLE_CONV_BACKWARD_FILTER_DW, 0),
           direct_tensor(k, launch, QN_ROLE_CONV_BACKWARD_FILTER_DY, 0));
  c.m = c.channels * product_of(c.v.size);
  c.n = c.filters;
  c.k = c.x.dim[0] * product_of(c.v.outputs);
  return tile_launch<T>(c, launch, "conv_backward_filter_direct");
}

/* Calls f with a zero of the accumulator's type. */
template <class F> static qn_status by_dtype(const kept *k, F f)
{
  uint32_t dtype = k->value[0].dtype;
  if (dtype == QN_F64) return f(0.0);
  if (dtype == QN_I8 || dtype == QN_U8) return f(0);
  return f(0.0f);
}

static qn_status forward(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  return by_dtype(k, [=](auto zero) { return forward_as<decltype(zero)>(k, launch); });
}

static qn_status backward_data(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  return by_dtype(k, [=](auto zero) { return backward_data_as<decltype(zero)>(k, launch); });
}

static qn_status backward_filter(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  return by_dtype(k, [=](auto zero) { return backward_filter_as<decltype(zero)>(k, launch); });
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_CONV_FORWARD, forward),
  DIRECT_ROW(QN_OP_CONV_BACKWARD_DATA, backward_data),
  DIRECT_ROW(QN_OP_CONV_BACKWARD_FILTER, backward_filter),
};
CUDA_ENGINES(conv_direct) = { row, sizeof row / sizeof *row };
