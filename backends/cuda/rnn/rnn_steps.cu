/* rnn_steps.cu -- what lies between the products of a recurrent network that goes step by step: a thread for each number of a step.
 * The formulas are those of rnn_cells.cuh; rnn_steps.c and rnn_steps_backward.c say what follows what. */
#include "rnn_steps.cuh"

enum { THREADS = 256 };

template <class T> __device__ __forceinline__ T &number(void *p, int64_t i) { return ((T *)p)[i]; }
template <class T> __device__ __forceinline__ T packed(const cuda_rnn &p, const void *of, int64_t i)
{
  return element_load<T>(of, i, p.dtype);
}
template <class T> __device__ __forceinline__ void pack(const cuda_rnn &p, void *to, int64_t i, T v) { element_store(to, i, p.dtype, v); }

/* Rows are shared out along y, the n numbers of each along x. */
#define FOR_ALL(i, j, rows, n)                                                   \
  for (int64_t i = blockIdx.y; i < (rows); i += gridDim.y)                       \
    for (int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; j < (n); j += gridDim.x * (int64_t)blockDim.x)

/* ---- forward ------------------------------------------------------------------------------------------- */

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_begin(const __grid_constant__ cuda_rnn p)
{
  FOR_ALL(b, j, p.batch, p.state) pack(p, p.h, b * p.h_row + j, rnn_get<T>(p.h0, b, j));
  if (p.cell == QN_RNN_LSTM) FOR_ALL(b, j, p.batch, p.hidden) number<T>(p.c, b * p.hidden + j) = rnn_get<T>(p.c0, b, j);
}

/* Of gru with the reset before: r and z in place of their products, r h. */
template <class T> __global__ static void __launch_bounds__(THREADS) rnn_reset(const __grid_constant__ cuda_rnn p, int64_t s)
{
  const int64_t H = p.hidden;
  rnn_wait_before();
  FOR_ALL(b, j, p.batch, H) {
    const int64_t e = b * H + j, length = rnn_length(p, b), place = rnn_time(p, length, s) * p.batch + b;
    T gate[2];
    for (int g = 0; g < 2; g++) {
      T &product = number<T>(p.product, b * p.rows + g * H + j);
      product = gate[g] = fn_sigmoid(number<T>(p.sums, place * p.rows + g * H + j) + rnn_get<T>(p.bw, g * H + j)
                                     + (product + rnn_get<T>(p.br, g * H + j)));
    }
    pack(p, p.reset, e, gate[0] * packed<T>(p, p.h, b * p.h_row + j));
  }
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_cell(const __grid_constant__ cuda_rnn p, int64_t s)
{
  const int64_t H = p.hidden;
  rnn_wait_before();
  FOR_ALL(b, j, p.batch, H) {
    const int64_t e = b * H + j, length = rnn_length(p, b), t = rnn_time(p, length, s), place = t * p.batch + b;
    if (s >= length) {
      if (!p.projects) rnn_give(p, t, b, j, T(0));
      for (int64_t g = 0; g < p.kept; g++) rnn_put(p.gates_at, t, b, g * H + j, T(0));
      rnn_put(p.cells_at, t, b, j, T(0));
      continue;
    }
    T gate[4] = {}, x[4] = {}, r[4] = {}, h, c = 0, old = 0;
    const bool gru = p.cell == QN_RNN_GRU, lstm = p.cell == QN_RNN_LSTM;
#pragma unroll
    for (int g = 0; g < 4; g++)
      if (g < p.gates) {
        x[g] = number<T>(p.sums, place * p.rows + g * H + j) + rnn_get<T>(p.bw, g * H + j);
        r[g] = p.before && g == 2 ? number<T>(p.inner, e) : number<T>(p.product, b * p.rows + g * H + j);
        if (!p.before || g == 2) r[g] += rnn_get<T>(p.br, g * H + j);
      }
    if (lstm) c = number<T>(p.c, e);
    if (gru) old = packed<T>(p, p.h, b * p.h_row + j);
#pragma unroll
    for (int g = 0; g < 4; g++) {
      if (p.before && g < 2) gate[g] = r[g];
      else gate[g] = x[g] + r[g];
    }
    if (gru && !p.before) gate[2] = x[2], gate[3] = r[2];
    if (lstm) {
      T raw;
      h = rnn_lstm(p, gate, c, raw);
      number<T>(p.c, e) = c;
      rnn_put(p.cells_at, t, b, j, raw);
    } else if (p.before) {
      gate[2] = tanh(gate[2]);
      h = (1 - gate[1]) * gate[2] + gate[1] * old;
    } else h = gru ? rnn_gru(gate, old) : rnn_plain(p, gate[0]);
    if (p.gates_at.p)
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < p.kept) rnn_put(p.gates_at, t, b, g * H + j, gate[g]);
    if (p.projects) pack(p, p.full, e, h);
    else {
      pack(p, p.h, b * p.h_row + j, h);
      rnn_give(p, t, b, j, h);
    }
  }
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_project(const __grid_constant__ cuda_rnn p, int64_t s)
{
  rnn_wait_before();
  FOR_ALL(b, j, p.batch, p.state) {
    const int64_t e = b * p.state + j, length = rnn_length(p, b);
    const T h = s < length ? number<T>(p.inner, e) : T(0);
    if (s < length) pack(p, p.h, b * p.h_row + j, h);
    rnn_give(p, rnn_time(p, length, s), b, j, h);
  }
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_end(const __grid_constant__ cuda_rnn p)
{
  if (p.ht.p) FOR_ALL(b, j, p.batch, p.state) rnn_put(p.ht, b, j, 0, packed<T>(p, p.h, b * p.h_row + j));
  if (p.ct.p) FOR_ALL(b, j, p.batch, p.hidden) rnn_put(p.ct, b, j, 0, number<T>(p.c, b * p.hidden + j));
}

/* ---- gradient ------------------------------------------------------------------------------------------ */

/* What reaches h of step s from the steps after it. */
template <class T> __device__ __forceinline__ T carried(const cuda_rnn &p, int64_t b, int64_t j, int64_t s, int64_t length)
{
  if (s == length - 1) return rnn_get<T>(p.ht, b, j);
  return number<T>(p.product, b * p.state + j) + (p.cell == QN_RNN_GRU ? number<T>(p.direct, b * p.state + j) : T(0));
}
/* h of the step before s. */
template <class T> __device__ __forceinline__ T h_before(const cuda_rnn &p, int64_t b, int64_t j, int64_t s, int64_t length)
{
  return s == 0 ? rnn_get<T>(p.h0, b, j) : rnn_get<T>(p.out, rnn_time(p, length, s - 1), b, p.first + j);
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_slopes_state(const __grid_constant__ cuda_rnn p, int64_t s)
{
  rnn_wait_before();
  FOR_ALL(b, j, p.batch, p.state) {
    const int64_t e = b * p.state + j, length = rnn_length(p, b), t = rnn_time(p, length, s);
    const T dh = s < length ? carried<T>(p, b, j, s, length) + rnn_get<T>(p.dout, t, b, p.first + j) : T(0);
    pack(p, p.slope_state, (t * p.batch + b) * p.state + j, dh);
    pack(p, p.step, e, dh);
  }
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_slopes(const __grid_constant__ cuda_rnn p, int64_t s)
{
  const int64_t H = p.hidden;
  rnn_wait_before();
  FOR_ALL(b, j, p.batch, H) {
    const int64_t e = b * H + j, length = rnn_length(p, b), t = rnn_time(p, length, s), row = (t * p.batch + b) * p.rows + j;
    T gate[4] = {}, of_h = 0;
    if (s < length) {
#pragma unroll
      for (int g = 0; g < 4; g++)
        if (g < p.kept) gate[g] = rnn_get<T>(p.gates_at, t, b, g * H + j);
      T dh = p.projects ? number<T>(p.inner, e) : carried<T>(p, b, j, s, length) + rnn_get<T>(p.dout, t, b, p.first + j);
      if (p.cell == QN_RNN_LSTM) {
        T dc = s == length - 1 ? rnn_get<T>(p.ct, b, j) : number<T>(p.c, e);
        const T old = s ? rnn_bounded(p, rnn_get<T>(p.cells_at, rnn_time(p, length, s - 1), b, j)) : rnn_get<T>(p.c0, b, j);
        rnn_lstm_slopes(p, gate, rnn_get<T>(p.cells_at, t, b, j), old, dh, dc);
        number<T>(p.c, e) = dc;
      } else if (p.cell == QN_RNN_GRU) {                    /* reset before: gate[0] and of_h are made in rnn_slopes_reset */
        rnn_gru_slopes(gate, h_before<T>(p, b, j, s, length), dh, of_h);
        number<T>(p.direct, e) = dh;
        if (p.before) of_h = gate[2];
      } else gate[0] = rnn_plain_slope(p, rnn_get<T>(p.out, t, b, p.first + j), dh);
    }
#pragma unroll
    for (int g = 0; g < 4; g++) {
      if (g >= p.gates) break;
      const T h = p.cell == QN_RNN_GRU && g == 2 ? of_h : gate[g];
      pack(p, p.slope_x, row + g * H, gate[g]);
      if (p.slope_h) pack(p, p.slope_h, row + g * H, h);
      pack(p, p.step, b * p.rows + g * H + j, h);
    }
  }
}

/* Of gru with the reset before: the slope of r, by the product of n's slopes. */
template <class T> __global__ static void __launch_bounds__(THREADS) rnn_slopes_reset(const __grid_constant__ cuda_rnn p, int64_t s)
{
  const int64_t H = p.hidden;
  rnn_wait_before();
  FOR_ALL(b, j, p.batch, H) {
    const int64_t e = b * H + j, length = rnn_length(p, b), t = rnn_time(p, length, s);
    if (s >= length) continue;
    const T r = rnn_get<T>(p.gates_at, t, b, j), by_rh = number<T>(p.inner, e);
    const T slope = by_rh * h_before<T>(p, b, j, s, length) * (r * (1 - r));
    pack(p, p.slope_x, (t * p.batch + b) * p.rows + j, slope);
    pack(p, p.step, b * p.rows + j, slope);
    number<T>(p.direct, e) += by_rh * r;
  }
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_slopes_end(const __grid_constant__ cuda_rnn p)
{
  if (p.dh0.p) FOR_ALL(b, j, p.batch, p.state) rnn_put(p.dh0, b, j, 0, carried<T>(p, b, j, -1, rnn_length(p, b)));
  if (p.dc0.p)
    FOR_ALL(b, j, p.batch, p.hidden)
      rnn_put(p.dc0, b, j, 0, rnn_length(p, b) ? number<T>(p.c, b * p.hidden + j) : rnn_get<T>(p.ct, b, j));
}

template <class T> __global__ static void __launch_bounds__(THREADS) rnn_lay(const __grid_constant__ cuda_rnn p, int what, void *to,
                                                                             int64_t columns)
{
  FOR_ALL(place, i, p.steps * p.batch, columns) {
    const int64_t s = place / p.batch, b = place % p.batch, length = rnn_length(p, b);
    const int64_t t = rnn_time(p, length, s), at = (t * p.batch + b) * columns + i;
    T v = 0;
    if (s >= length) v = 0;
    else if (what == CUDA_RNN_FULL)
      v = rnn_get<T>(p.gates_at, t, b, 3 * p.hidden + i) * tanh(rnn_bounded(p, rnn_get<T>(p.cells_at, t, b, i)));
    else if (what == CUDA_RNN_BELOW) {
      v = rnn_get<T>(p.below, t, b, i);
      if (p.layer) v = rnn_dropped(p, (p.layer - 1) * p.steps * p.batch * columns + at, v);
    } else {
      v = h_before<T>(p, b, i, s, length);
      if (what == CUDA_RNN_BEFORE_RESET) v *= rnn_get<T>(p.gates_at, t, b, i);
    }
    pack(p, to, at, v);
  }
}

template <class T> __global__ static void __launch_bounds__(THREADS)
    rnn_finish(const __grid_constant__ cuda_rnn p, const void *one, const void *other, const __grid_constant__ cuda_rnn_tensor to)
{
  FOR_ALL(place, i, p.steps * p.batch, p.inputs) {
    const int64_t t = place / p.batch, b = place % p.batch, e = place * p.inputs + i;
    T v = 0;
    if (t < rnn_length(p, b)) {
      v = ((const T *)one)[e] + (other ? ((const T *)other)[e] : T(0));
      if (p.layer) v = rnn_dropped(p, (p.layer - 1) * p.steps * p.batch * p.inputs + e, v);
    }
    rnn_put(to, t, b, i, v);
  }
}

/* ---- launches ------------------------------------------------------------------------------------------ */

static dim3 grid_of(int64_t rows, int64_t n)
{
  return dim3((unsigned)qn_min_i64(qn_ceil_div(n, THREADS), 1 << 30), (unsigned)qn_min_i64(rows, 65535));
}
template <class... A> static qn_status launch(void (*f64)(cuda_rnn, A...), void (*f32)(cuda_rnn, A...), int64_t rows, int64_t n,
                                              void *stream, const cuda_rnn *p, A... more)
{
  void (*kernel)(cuda_rnn, A...) = p->dtype == QN_F64 ? f64 : f32;
  kernel<<<grid_of(rows, n), THREADS, 0, (cudaStream_t)stream>>>(*p, more...);
  return cuda_check(cudaGetLastError(), "rnn_steps");
}
/* A kernel of a step, which waits itself. */
static qn_status step(void (*f64)(cuda_rnn, int64_t), void (*f32)(cuda_rnn, int64_t), int64_t n, void *stream, const cuda_rnn *p, int64_t s)
{
  return rnn_launch_step(p->dtype == QN_F64 ? f64 : f32, p->early, grid_of(p->batch, n), THREADS, p, s, stream, "rnn_steps");
}
#define BOTH(kernel) kernel<double>, kernel<float>

static int64_t widest(const cuda_rnn *p) { return qn_max_i64(p->state, p->hidden); }

qn_status cuda_rnn_early(int32_t *early) { return cuda_waits_itself((const void *)rnn_cell<float>, early); }
qn_status cuda_rnn_begin(const cuda_rnn *p, void *stream)
{
  return launch(BOTH(rnn_begin), p->batch, widest(p), stream, p);
}
qn_status cuda_rnn_reset(const cuda_rnn *p, int64_t s, void *stream)
{
  return step(BOTH(rnn_reset), p->hidden, stream, p, s);
}
qn_status cuda_rnn_cell(const cuda_rnn *p, int64_t s, void *stream)
{
  if (cuda_rnn_fours(p)) return cuda_rnn_cell_four(p, s, stream);
  return step(BOTH(rnn_cell), p->hidden, stream, p, s);
}
qn_status cuda_rnn_project(const cuda_rnn *p, int64_t s, void *stream)
{
  return step(BOTH(rnn_project), p->state, stream, p, s);
}
qn_status cuda_rnn_end(const cuda_rnn *p, void *stream)
{
  return p->ht.p || p->ct.p ? launch(BOTH(rnn_end), p->batch, widest(p), stream, p) : QN_OK;
}
qn_status cuda_rnn_slopes_state(const cuda_rnn *p, int64_t s, void *stream)
{
  return step(BOTH(rnn_slopes_state), p->state, stream, p, s);
}
qn_status cuda_rnn_slopes(const cuda_rnn *p, int64_t s, void *stream)
{
  if (cuda_rnn_fours(p)) return cuda_rnn_slopes_four(p, s, stream);
  return step(BOTH(rnn_slopes), p->hidden, stream, p, s);
}
qn_status cuda_rnn_slopes_reset(const cuda_rnn *p, int64_t s, void *stream)
{
  return step(BOTH(rnn_slopes_reset), p->hidden, stream, p, s);
}
qn_status cuda_rnn_slopes_end(const cuda_rnn *p, void *stream)
{
  return p->dh0.p || p->dc0.p ? launch(BOTH(rnn_slopes_end), p->batch, widest(p), stream, p) : QN_OK;
}
qn_status cuda_rnn_lay(const cuda_rnn *p, int what, void *to, void *stream)
{
  const int64_t columns = what == CUDA_RNN_BELOW ? p->inputs : what == CUDA_RNN_FULL ? p->hidden : p->state;
  return launch(BOTH(rnn_lay), p->steps * p->batch, columns, stream, p, what, to, columns);
}
qn_status cuda_rnn_finish(const cuda_rnn *p, const void *one, const void *other, const cuda_rnn_tensor *to, void *stream)
{
  return launch(BOTH(rnn_finish), p->steps * p->batch, p->inputs, stream, p, one, other, *to);
}
