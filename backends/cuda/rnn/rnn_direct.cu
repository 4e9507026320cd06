/* rnn_direct.cu -- recurrent networks and their gradients, in double, any strides: a launch for each layer and direction, in which a block
 * takes a sequence through all its steps.
 *
 * Of a layer and direction, at a step with input x and the state h that the last step left (first h0, or 0; c likewise):
 *   lstm   i, f, o = s(w x + bw + r h + br), g = tanh(the same)      c' = f c + i g, bounded by clip      h' = o tanh(c')
 *   gru    r, z = s(w x + bw + r h + br)      h' = (1 - z) n + z h
 *          reset after: n = tanh(w x + bw + r q), q = r h + br         before: n = tanh(w x + bw + r (r h) + br)
 *   tanh, relu   h' = tanh or relu(w x + bw + r h + br)                 projection: h' becomes projection h'
 * The gradients are those of these formulas, from the last step to the first; then those by weights and inputs, a thread an element. */
#include "kit/direct.cuh"
#include "engines.h"
#include "kit/random.cuh"

enum { THREADS = 256 };

/* One layer and direction, number k of the lists. */
struct network {
  tensor  x, y, lengths, h0, c0, ht, ct, gates_at, cells_at, inner;         /* in a gradient ht and ct are dht and dct */
  tensor  w, r, bw, br, projection;
  random_key seed, offset;
  double  clip, dropout;
  int64_t steps, batch, inputs, hidden, state, directions, gates, kept, layers, layer, direction, k;
  int32_t cell, reset, reversed;
  double *below, *out, *room;             /* workspace: what the layer takes (NULL: x) and gives, and each sequence's numbers */

  __device__ int64_t length_of(int64_t b) const
  {
    int64_t n = lengths.p ? lengths.load<int64_t>(b * lengths.stride[0]) : steps;
    return n < 0 ? 0 : n > steps ? steps : n;
  }
  __device__ int64_t time_of(int64_t length, int64_t s) const { return reversed ? length - 1 - s : s; }
  __device__ bool before() const { return cell == QN_RNN_GRU && reset == QN_RNN_RESET_BEFORE; }
  __device__ double bounded(double c) const { return c > clip ? clip : c < -clip ? -clip : c; }
  __device__ double after_dropout(int64_t at, double v) const
  {
    if (dropout == 0) return v;
    uint32_t word[4];
    qn_random_words(word, seed.get(), offset.get(), (uint64_t)at / 4);
    return word[at % 4] < dropout * 0x1p32 ? 0 : v / (1 - dropout);
  }
  /* What layer l gave, before dropout, or x. */
  __device__ double given(int64_t l, int64_t t, int64_t b, int64_t i) const;
  __device__ double h_before(int64_t length, int64_t s, int64_t b, int64_t j) const;
  __device__ double c_before(int64_t length, int64_t s, int64_t b, int64_t j) const;
};

__device__ static int64_t at3(const tensor &t, int64_t i, int64_t j, int64_t k)
{
  return i * t.stride[0] + j * t.stride[1] + k * t.stride[2];
}
__device__ static int64_t at4(const tensor &t, int64_t i, int64_t j, int64_t k, int64_t l) { return at3(t, i, j, k) + l * t.stride[3]; }
__device__ static double get3(const tensor &t, int64_t i, int64_t j, int64_t k) { return t.p ? t.load<double>(at3(t, i, j, k)) : 0; }
__device__ static double get4(const tensor &t, int64_t i, int64_t j, int64_t k, int64_t l) { return t.load<double>(at4(t, i, j, k, l)); }
__device__ static void put3(const tensor &t, int64_t i, int64_t j, int64_t k, double v) { if (t.p) t.store(at3(t, i, j, k), v); }
__device__ static void put4(const tensor &t, int64_t i, int64_t j, int64_t k, int64_t l, double v)
{
  if (t.p) t.store(at4(t, i, j, k, l), v);
}
__device__ static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

__device__ double network::given(int64_t l, int64_t t, int64_t b, int64_t i) const
{
  return l < 0 ? get3(x, t, b, i) : l == layers - 1 ? get3(y, t, b, i) : get4(inner, l, t, b, i);
}
__device__ double network::h_before(int64_t length, int64_t s, int64_t b, int64_t j) const
{
  return s == 0 ? get3(h0, k, b, j) : given(layer, time_of(length, s - 1), b, direction * state + j);
}
__device__ double network::c_before(int64_t length, int64_t s, int64_t b, int64_t j) const
{
  return s == 0 ? get3(c0, k, b, j) : bounded(get4(cells_at, k, time_of(length, s - 1), b, j));
}

/* row j of m times v, and column j */
__device__ static double row_times(const tensor &m, int64_t j, const double *v, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += m.load<double>(j * m.stride[0] + i * m.stride[1]) * v[i];
  return sum;
}
__device__ static double column_times(const tensor &m, int64_t first, int64_t j, const double *v, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += m.load<double>((first + i) * m.stride[0] + j * m.stride[1]) * v[i];
  return sum;
}
__device__ static double bias(const tensor &t, int64_t j) { return t.p ? t.load<double>(j * t.stride[0]) : 0; }

/* ---- forward ----------------------------------------------------------------------------------------- */

/* Of each sequence: h, c, h' before projection, the gates' sums (a fifth part: r h + br of gru's n), r h. */
__device__ static int64_t forward_room(int64_t hidden, int64_t state) { return state + 8 * hidden; }

__global__ static void __launch_bounds__(THREADS) rnn_direct(const __grid_constant__ network p)
{
  const int64_t H = p.hidden, P = p.state, width = p.directions * P, n_in = p.layer ? width : p.inputs, rows = p.gates * H;
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    const int64_t length = p.length_of(b);
    double *h = p.room + b * forward_room(H, P), *c = h + P, *full = c + H, *sum = full + H, *q = sum + 4 * H, *rh = q + H;
    for (int64_t j = threadIdx.x; j < P; j += THREADS) h[j] = get3(p.h0, p.k, b, j);
    for (int64_t j = threadIdx.x; j < H; j += THREADS) c[j] = get3(p.c0, p.k, b, j);
    __syncthreads();
    for (int64_t s = 0; s < p.steps; s++) {
      const bool inside = s < length;
      const int64_t t = inside ? p.time_of(length, s) : s;
      double *out = p.out + (t * p.batch + b) * width + p.direction * P;
      if (!inside) {
        for (int64_t j = threadIdx.x; j < P; j += THREADS) out[j] = 0;
        for (int64_t j = threadIdx.x; j < p.kept * H; j += THREADS) put4(p.gates_at, p.k, t, b, j, 0);
        for (int64_t j = threadIdx.x; j < H; j += THREADS) put4(p.cells_at, p.k, t, b, j, 0);
        continue;
      }
      for (int64_t j = threadIdx.x; j < rows; j += THREADS) {
        const bool n_row = p.cell == QN_RNN_GRU && j >= 2 * H;
        double of_x = bias(p.bw, j), of_h = bias(p.br, j);
        if (p.below) of_x += row_times(p.w, j, p.below + (t * p.batch + b) * n_in, n_in);
        else
          for (int64_t i = 0; i < n_in; i++) of_x += p.w.load<double>(j * p.w.stride[0] + i * p.w.stride[1]) * get3(p.x, t, b, i);
        if (!n_row || !p.before()) of_h += row_times(p.r, j, h, P);
        sum[j] = n_row ? of_x : of_x + of_h;
        if (n_row) q[j - 2 * H] = of_h;
      }
      __syncthreads();
      for (int64_t j = threadIdx.x; j < 2 * H && p.cell == QN_RNN_GRU; j += THREADS) sum[j] = sigmoid(sum[j]);
      __syncthreads();
      for (int64_t j = threadIdx.x; j < H && p.before(); j += THREADS) rh[j] = sum[j] * h[j];
      __syncthreads();
      for (int64_t j = threadIdx.x; j < H; j += THREADS) {
        if (p.cell == QN_RNN_LSTM) {
          const double in = sigmoid(sum[j]), forget = sigmoid(sum[H + j]), g = tanh(sum[2 * H + j]), o = sigmoid(sum[3 * H + j]);
          const double raw = forget * c[j] + in * g;
          sum[j] = in, sum[H + j] = forget, sum[2 * H + j] = g, sum[3 * H + j] = o;
          put4(p.cells_at, p.k, t, b, j, raw);
          c[j] = p.bounded(raw);
          full[j] = o * tanh(c[j]);
        } else if (p.cell == QN_RNN_GRU) {
          const double z = sum[H + j];
          const double n = tanh(sum[2 * H + j] + (p.before() ? q[j] + row_times(p.r, 2 * H + j, rh, H) : sum[j] * q[j]));
          full[j] = (1 - z) * n + z * h[j];
          sum[2 * H + j] = n;
          if (!p.before()) sum[3 * H + j] = q[j];
        } else
          full[j] = p.cell == QN_RNN_TANH ? tanh(sum[j]) : sum[j] < 0 ? 0 : sum[j];
      }
      __syncthreads();
      for (int64_t j = threadIdx.x; j < p.kept * H; j += THREADS) put4(p.gates_at, p.k, t, b, j, sum[j]);
      for (int64_t j = threadIdx.x; j < P; j += THREADS) out[j] = h[j] = p.projection.p ? row_times(p.projection, j, full, H) : full[j];
      __syncthreads();
    }
    for (int64_t j = threadIdx.x; j < P; j += THREADS) put3(p.ht, p.k, b, j, h[j]);
    for (int64_t j = threadIdx.x; j < H; j += THREADS) put3(p.ct, p.k, b, j, c[j]);
    __syncthreads();
  }
}

/* Writes what a layer gave, and makes it what the next layer takes. */
__global__ static void __launch_bounds__(THREADS) rnn_hand_on_direct(const __grid_constant__ network p)
{
  const int64_t width = p.directions * p.state, all = p.steps * p.batch * width;
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < all; i += gridDim.x * (int64_t)THREADS) {
    const int64_t t = i / width / p.batch, b = i / width % p.batch, j = i % width;
    if (p.layer == p.layers - 1) put3(p.y, t, b, j, p.out[i]);
    else {
      put4(p.inner, p.layer, t, b, j, p.out[i]);
      p.out[i] = p.after_dropout(p.layer * all + i, p.out[i]);
    }
  }
}

/* ---- backward ---------------------------------------------------------------------------------------- */

/* Of one layer and direction: gradients by what w x + bw and r h + br give, [steps, batch, gates hidden], and by h' [.., state]. */
struct slopes { double *of_x, *of_h, *h; };

__host__ __device__ static int64_t backward_room(int64_t hidden, int64_t state) { return state + 3 * hidden; }

__global__ static void __launch_bounds__(THREADS)
    rnn_slopes_direct(const __grid_constant__ network p, slopes d, const __grid_constant__ tensor dh0, const __grid_constant__ tensor dc0)
{
  const int64_t H = p.hidden, P = p.state, rows = p.gates * H, width = p.directions * P;
  for (int64_t b = blockIdx.x; b < p.batch; b += gridDim.x) {
    const int64_t length = p.length_of(b);
    double *carry = p.room + b * backward_room(H, P), *dc = carry + P, *full = dc + H, *by_rh = full + H;
    for (int64_t j = threadIdx.x; j < P; j += THREADS) carry[j] = get3(p.ht, p.k, b, j);
    for (int64_t j = threadIdx.x; j < H; j += THREADS) dc[j] = get3(p.ct, p.k, b, j);
    for (int64_t s = length - 1; s >= 0; s--) {
      const int64_t t = p.time_of(length, s), at = t * p.batch + b;
      double *x = d.of_x + at * rows, *h = d.of_h + at * rows, *dh = d.h + at * P;
      __syncthreads();
      for (int64_t j = threadIdx.x; j < P; j += THREADS) dh[j] = carry[j] + p.out[at * width + p.direction * P + j];
      __syncthreads();
      for (int64_t j = threadIdx.x; j < H; j += THREADS) full[j] = p.projection.p ? column_times(p.projection, 0, j, dh, P) : dh[j];
      __syncthreads();
      for (int64_t j = threadIdx.x; j < H; j += THREADS) {
        if (p.cell == QN_RNN_LSTM) {
          const double i = get4(p.gates_at, p.k, t, b, j), f = get4(p.gates_at, p.k, t, b, H + j);
          const double g = get4(p.gates_at, p.k, t, b, 2 * H + j), o = get4(p.gates_at, p.k, t, b, 3 * H + j);
          const double raw = get4(p.cells_at, p.k, t, b, j), tanh_c = tanh(p.bounded(raw));
          const double by_c = fabs(raw) >= p.clip ? 0 : dc[j] + full[j] * o * (1 - tanh_c * tanh_c);
          x[j] = h[j] = by_c * g * i * (1 - i);
          x[H + j] = h[H + j] = by_c * p.c_before(length, s, b, j) * f * (1 - f);
          x[2 * H + j] = h[2 * H + j] = by_c * i * (1 - g * g);
          x[3 * H + j] = h[3 * H + j] = full[j] * tanh_c * o * (1 - o);
          dc[j] = by_c * f;
        } else if (p.cell == QN_RNN_GRU) {
          const double z = get4(p.gates_at, p.k, t, b, H + j), n = get4(p.gates_at, p.k, t, b, 2 * H + j);
          const double old = p.h_before(length, s, b, j);
          x[H + j] = h[H + j] = full[j] * (old - n) * z * (1 - z);
          x[2 * H + j] = h[2 * H + j] = full[j] * (1 - z) * (1 - n * n);
        } else {
          const double y = p.given(p.layer, t, b, p.direction * P + j);
          x[j] = h[j] = p.cell == QN_RNN_TANH ? full[j] * (1 - y * y) : y > 0 ? full[j] : 0;
        }
      }
      __syncthreads();
      for (int64_t j = threadIdx.x; j < H && p.cell == QN_RNN_GRU; j += THREADS) {
        const double reset = get4(p.gates_at, p.k, t, b, j), dn = x[2 * H + j];
        by_rh[j] = p.before() ? column_times(p.r, 2 * H, j, x + 2 * H, H) : 0;
        const double by_r = p.before() ? by_rh[j] * p.h_before(length, s, b, j) : dn * get4(p.gates_at, p.k, t, b, 3 * H + j);
        x[j] = h[j] = by_r * reset * (1 - reset);
        if (!p.before()) h[2 * H + j] = dn * reset;
      }
      __syncthreads();
      for (int64_t j = threadIdx.x; j < P; j += THREADS) {
        double sum = column_times(p.r, 0, j, h, p.before() ? 2 * H : rows);
        if (p.cell == QN_RNN_GRU) sum += full[j] * get4(p.gates_at, p.k, t, b, H + j);
        if (p.before()) sum += by_rh[j] * get4(p.gates_at, p.k, t, b, j);
        carry[j] = sum;
      }
    }
    for (int64_t j = threadIdx.x; j < P; j += THREADS) put3(dh0, p.k, b, j, carry[j]);
    for (int64_t j = threadIdx.x; j < H; j += THREADS) put3(dc0, p.k, b, j, dc[j]);
    __syncthreads();
  }
}

enum { BY_W, BY_R, BY_PROJECTION };

/* What the slope of a row is multiplied with in element (row, i) of a weight's gradient, at step s. */
__device__ static double factor(const network &p, int which, int64_t length, int64_t s, int64_t b, int64_t row, int64_t i)
{
  const int64_t t = p.time_of(length, s), width = p.directions * p.state;
  if (which == BY_PROJECTION) return get4(p.gates_at, p.k, t, b, 3 * p.hidden + i) * tanh(p.bounded(get4(p.cells_at, p.k, t, b, i)));
  if (which == BY_W) {
    const double v = p.given(p.layer - 1, t, b, i);
    return p.layer ? p.after_dropout((((p.layer - 1) * p.steps + t) * p.batch + b) * width + i, v) : v;
  }
  const double h = p.h_before(length, s, b, i);
  return p.before() && row >= 2 * p.hidden ? h * get4(p.gates_at, p.k, t, b, i) : h;
}

/* to [rows, columns]: the sum over all steps of slope times factor. columns 0: a bias, whose factor is 1. */
__global__ static void __launch_bounds__(THREADS)
    rnn_weight_direct(const __grid_constant__ network p, const __grid_constant__ tensor to, int which, const double *slope, int64_t rows,
                      int64_t columns)
{
  const int64_t elements = rows * (columns ? columns : 1);
  for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < elements; e += gridDim.x * (int64_t)THREADS) {
    const int64_t row = columns ? e / columns : e, column = columns ? e % columns : 0;
    double sum = 0;
    for (int64_t b = 0; b < p.batch; b++) {
      const int64_t length = p.length_of(b);
      for (int64_t s = 0; s < length; s++)
        sum += slope[(p.time_of(length, s) * p.batch + b) * rows + row] * (columns ? factor(p, which, length, s, b, row, column) : 1);
    }
    to.store(row * to.stride[0] + (columns ? column * to.stride[1] : 0), sum);
  }
}

/* The gradient by what layer l takes, of the slopes of its directions: dx, or that by what the layer below gave. */
__global__ static void __launch_bounds__(THREADS)
    rnn_input_direct(const __grid_constant__ network p, const __grid_constant__ tensor other_w, slopes one, slopes other,
                     const __grid_constant__ tensor dx)
{
  const int64_t rows = p.gates * p.hidden, inputs = p.layer ? p.directions * p.state : p.inputs, all = p.steps * p.batch * inputs;
  for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < all; e += gridDim.x * (int64_t)THREADS) {
    const int64_t at = e / inputs, t = at / p.batch, b = at % p.batch, i = e % inputs;
    double sum = 0;
    if (t < p.length_of(b)) {
      sum = column_times(p.w, 0, i, one.of_x + at * rows, rows);
      if (p.directions > 1) sum += column_times(other_w, 0, i, other.of_x + at * rows, rows);
    }
    if (p.layer) p.out[e] = p.after_dropout((p.layer - 1) * all + e, sum);
    else dx.store(at3(dx, t, b, i), sum);
  }
}

__global__ static void __launch_bounds__(THREADS) rnn_read_direct(const __grid_constant__ tensor dy, double *out, int64_t all)
{
  for (int64_t e = blockIdx.x * (int64_t)THREADS + threadIdx.x; e < all; e += gridDim.x * (int64_t)THREADS)
    out[e] = dy.load<double>(place(dy, dy, e));
}

/* ---- host ------------------------------------------------------------------------------------------ */

static tensor item(const kept *k, const qn_launch *launch, uint32_t forward, uint32_t backward, int64_t i)
{
  return direct_tensor(k, launch, k->op == QN_OP_RNN_BACKWARD ? backward : forward, (int)i);
}
#define BOTH(name) QN_ROLE_RNN_FORWARD_##name, QN_ROLE_RNN_BACKWARD_##name

static random_key key(const kept *k, const qn_launch *launch, uint32_t forward, uint32_t backward)
{
  const uint32_t role = k->op == QN_OP_RNN_BACKWARD ? backward : forward;
  const int32_t at = k->first[role];
  return direct_count(k, role) ? random_key_of(&k->value[at], launch->ptr[k->number[at]]) : random_key{};
}

static network network_of(const kept *k, const qn_launch *launch)
{
  const qn_rnn *a = (const qn_rnn *)k->attr;
  network p = {};
  p.x = item(k, launch, BOTH(X), 0), p.y = item(k, launch, BOTH(Y), 0), p.lengths = item(k, launch, BOTH(LENGTHS), 0);
  p.h0 = item(k, launch, BOTH(H0), 0), p.c0 = item(k, launch, BOTH(C0), 0), p.inner = item(k, launch, BOTH(INNER), 0);
  p.gates_at = item(k, launch, BOTH(GATES), 0), p.cells_at = item(k, launch, BOTH(CELLS), 0);
  p.ht = item(k, launch, QN_ROLE_RNN_FORWARD_HT, QN_ROLE_RNN_BACKWARD_DHT, 0);
  p.ct = item(k, launch, QN_ROLE_RNN_FORWARD_CT, QN_ROLE_RNN_BACKWARD_DCT, 0);
  p.seed = key(k, launch, BOTH(SEED)), p.offset = key(k, launch, BOTH(OFFSET));
  p.clip = a->clip, p.dropout = a->dropout, p.cell = (int32_t)a->cell, p.reset = (int32_t)a->reset, p.layers = a->layers;
  p.steps = p.x.dim[0], p.batch = p.x.dim[1], p.inputs = p.x.dim[2];
  p.directions = a->direction == QN_RNN_BOTH ? 2 : 1;
  p.gates = a->cell == QN_RNN_LSTM ? 4 : a->cell == QN_RNN_GRU ? 3 : 1;
  p.kept = p.gates == 3 && a->reset == QN_RNN_RESET_AFTER ? 4 : p.gates == 1 ? 0 : p.gates;
  p.r = item(k, launch, BOTH(R), 0);
  p.hidden = p.r.dim[0] / p.gates, p.state = p.r.dim[1];
  return p;
}

static void set_layer(network *p, const kept *k, const qn_launch *launch, int64_t layer, int64_t direction)
{
  const int64_t i = layer * p->directions + direction;
  p->layer = layer, p->direction = direction, p->k = i;
  p->reversed = ((const qn_rnn *)k->attr)->direction == QN_RNN_BACKWARD || direction == 1;
  p->w = item(k, launch, BOTH(W), i), p->r = item(k, launch, BOTH(R), i), p->projection = item(k, launch, BOTH(PROJECTION), i);
  if (k->op == QN_OP_RNN_BACKWARD) return;
  p->bw = direct_tensor(k, launch, QN_ROLE_RNN_FORWARD_BW, (int)i), p->br = direct_tensor(k, launch, QN_ROLE_RNN_FORWARD_BR, (int)i);
}

static qn_status forward(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  network p = network_of(k, launch);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  const int64_t all = p.steps * p.batch * p.directions * p.state;
  double *buffer[2] = { (double *)launch->workspace, (double *)launch->workspace + all };
  p.room = buffer[1] + all;
  for (int64_t l = 0; l < p.layers && p.batch; l++) {
    p.below = l ? buffer[(l - 1) % 2] : nullptr, p.out = buffer[l % 2];
    for (int64_t d = 0; d < p.directions; d++) {
      set_layer(&p, k, launch, l, d);
      rnn_direct<<<direct_blocks(p.batch, 1), THREADS, 0, stream>>>(p);
    }
    if (all) rnn_hand_on_direct<<<direct_blocks(all, THREADS), THREADS, 0, stream>>>(p);
  }
  return direct_launched("rnn_direct");
}

static void weight(const network &p, const kept *k, const qn_launch *launch, uint32_t role, int which, const double *slope, int64_t rows,
                   int64_t columns)
{
  const tensor to = direct_tensor(k, launch, role, (int)p.k);
  const int64_t elements = to.rank == 1 ? rows : rows * columns;
  if (to.p && elements)
    rnn_weight_direct<<<direct_blocks(elements, THREADS), THREADS, 0, (cudaStream_t)launch->stream>>>(p, to, which, slope, rows, columns);
}

static qn_status backward(const qn_prepared *prepared, const qn_launch *launch)
{
  const kept *k = (const kept *)prepared->state;
  network p = network_of(k, launch);
  cudaStream_t stream = (cudaStream_t)launch->stream;
  const tensor dy = direct_tensor(k, launch, QN_ROLE_RNN_BACKWARD_DY, 0), dx = direct_tensor(k, launch, QN_ROLE_RNN_BACKWARD_DX, 0);
  const tensor dh0 = direct_tensor(k, launch, QN_ROLE_RNN_BACKWARD_DH0, 0), dc0 = direct_tensor(k, launch, QN_ROLE_RNN_BACKWARD_DC0, 0);
  const int64_t places = p.steps * p.batch, rows = p.gates * p.hidden, width = p.directions * p.state;
  p.out = (double *)launch->workspace;
  p.room = p.out + places * width;
  double *next = p.room + p.batch * backward_room(p.hidden, p.state);
  slopes d[2] = {};
  for (int i = 0; i < p.directions; i++) {
    d[i] = { next, next + places * rows, next + 2 * places * rows };
    next = d[i].h + places * p.state;
  }
  if (places * width > 0) rnn_read_direct<<<direct_blocks(places * width, THREADS), THREADS, 0, stream>>>(dy, p.out, places * width);
  for (int64_t l = p.layers - 1; l >= 0; l--) {
    for (int64_t i = 0; i < p.directions; i++) {
      set_layer(&p, k, launch, l, i);
      const int64_t inputs = l ? width : p.inputs;
      if (p.batch) rnn_slopes_direct<<<direct_blocks(p.batch, 1), THREADS, 0, stream>>>(p, d[i], dh0, dc0);
      weight(p, k, launch, QN_ROLE_RNN_BACKWARD_DW, BY_W, d[i].of_x, rows, inputs);
      weight(p, k, launch, QN_ROLE_RNN_BACKWARD_DR, BY_R, d[i].of_h, rows, p.state);
      weight(p, k, launch, QN_ROLE_RNN_BACKWARD_DBW, BY_W, d[i].of_x, rows, 0);
      weight(p, k, launch, QN_ROLE_RNN_BACKWARD_DBR, BY_R, d[i].of_h, rows, 0);
      weight(p, k, launch, QN_ROLE_RNN_BACKWARD_DPROJECTION, BY_PROJECTION, d[i].h, p.state, p.hidden);
    }
    set_layer(&p, k, launch, l, 0);
    const tensor other = p.directions > 1 ? item(k, launch, BOTH(W), l * 2 + 1) : tensor{};
    const int64_t all = places * (l ? width : p.inputs);
    if (all) rnn_input_direct<<<direct_blocks(all, THREADS), THREADS, 0, stream>>>(p, other, d[0], d[1], dx);
  }
  return direct_launched("rnn_backward_direct");
}

/* Workspace. Forward: what two layers give, and each sequence's numbers; gradient: that by a layer's output, and the slopes. */
static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_rnn *a = (const qn_rnn *)op->attr;
  const bool back = op->op == QN_OP_RNN_BACKWARD;
  const qn_value *x = &r->value[qn_role(op, back ? QN_ROLE_RNN_BACKWARD_X : QN_ROLE_RNN_FORWARD_X)];
  const qn_value *w = &r->value[qn_role(op, back ? QN_ROLE_RNN_BACKWARD_R : QN_ROLE_RNN_FORWARD_R)];
  const double directions = a->direction == QN_RNN_BOTH ? 2 : 1, rows = (double)w->dim[0], state = (double)w->dim[1];
  const double batch = (double)x->dim[1], places = (double)x->dim[0] * batch;
  const double numbers = back ? places * directions * (2 * state + 2 * rows) + batch * (state + 3 * rows)
                              : 2 * places * directions * state + batch * (state + 8 * rows);
  out->workspace = numbers < 0x1p58 ? (uint64_t)numbers * sizeof(double) : (uint64_t)1 << 61;
  return direct_prepare(r, out);
}

#define ROW(op, function) { "direct", op, QN_CLASS_GENERIC, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                            nullptr, nullptr, prepare, nullptr, function, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_RNN_FORWARD, forward), ROW(QN_OP_RNN_BACKWARD, backward) };
CUDA_ENGINES(rnn_direct) = { row, sizeof row / sizeof *row };
