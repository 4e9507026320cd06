/* pool_flat.cu -- pooling by 3 by 3 every 1, padded by 1, of packed f16, bf16 and f32 planes (NCHW) of an odd width, whose lines begin anywhere in
 * a 16-byte vector: a thread takes a vector of outputs of all planes together, and from x the vectors around it.
 *
 *   max       y = the largest tap inside x, NaN above all
 *   average   y = sum of taps inside x / divisor
 *
 * Where the lines above and below lie in their vectors is the same for all, and known to the compiler (REST, the width modulo a vector). */
#include "engines.h"
#include "pool.cuh"
#include "words.cuh"

enum { SIZE = 3, THREADS = 128 };

struct flat : pool {
  int32_t      total;                     /* elements of x, and of y */
  cuda_divisor by_width, by_height;
};

/* A vector of x; inside: all of it is there. */
template <int dtype> __device__ __forceinline__ uint4 fetch(const flat &p, int at, bool inside)
{
  constexpr int E = vector_per_16<dtype>;
  if (inside || (at >= 0 && at + E <= p.total)) return *vector_place<dtype>(p.x, at);
  uint32_t w[4] = {};
#pragma unroll
  for (int i = 0; i < E; i++)
    if ((unsigned)(at + i) < (unsigned)p.total) {
      if (dtype == QN_F32) w[i % 4] = ((const uint32_t *)p.x)[at + i];
      else w[i / 2] |= (uint32_t)((const uint16_t *)p.x)[at + i] << i % 2 * 16;
    }
  return make_uint4(w[0], w[1], w[2], w[3]);
}

template <int dtype, bool average, int REST> __global__ void __launch_bounds__(THREADS) pool_flat(const __grid_constant__ flat p)
{
  constexpr int E = vector_per_16<dtype>, ABOVE = (2 * E - REST - 1) % E, BELOW = (REST + E - 1) % E;   /* where the first of E + 2 lies in two vectors */
  static_assert(ABOVE <= E - 2 && BELOW <= E - 2);
  const float none = average ? 0 : -INFINITY;
  const auto join = [](float a, float b) { return average ? a + b : larger(a, b); };
  const int at = (int)(blockIdx.x * THREADS + threadIdx.x) * E, width = p.in[2], over = at - width - 1 - ABOVE, under = at + width - 1 - BELOW;
  if (at >= p.total) return;
  uint4 a[2], m, b[2];
  float above[2 * E], middle[E + 2], below[2 * E];
  const auto load = [&](bool inside) {
    a[0] = fetch<dtype>(p, over, inside), a[1] = fetch<dtype>(p, over + E, inside), m = fetch<dtype>(p, at, inside);
    b[0] = fetch<dtype>(p, under, inside), b[1] = fetch<dtype>(p, under + E, inside);
    middle[0] = inside || at > 0 ? edge_load<dtype>(p.x, at - 1) : 0;
    middle[E + 1] = inside || at + E < p.total ? edge_load<dtype>(p.x, at + E) : 0;
  };
  if (over >= 0 && under + 2 * E <= p.total) load(true);  /* all at once, but for the first lines and the last */
  else load(false);
  uint32_t x, y;
  cuda_quotient(cuda_quotient(at, p.by_width, &x), p.by_height, &y);
  vector_open<dtype>(above, 0, a[0]), vector_open<dtype>(above, E, a[1]);
  vector_open<dtype>(middle, 1, m);
  vector_open<dtype>(below, 0, b[0]), vector_open<dtype>(below, E, b[1]);
  float column[E + 2];
  bool first = x == 0, begins[E], ends[E];                /* of its line */
  bool top = y > 0, bottom = (int)y + 1 < p.in[1];        /* there is a line above it, and below */
  int rows[E];
#pragma unroll
  for (int j = 0; j < E + 2; j++) {       /* column j - 1; of the lines of their neighbours, if these count */
    column[j] = join(middle[j], top ? above[ABOVE + j] : none);
    column[j] = join(column[j], bottom ? below[BELOW + j] : none);
    if (j == 0 || j == E + 1) continue;
    const bool last = (int)++x == width;
    begins[j - 1] = first, ends[j - 1] = last, rows[j - 1] = 1 + top + bottom;
    first = last;
    if (last && j < E) {
      x = 0;
      if ((int)++y == p.in[1]) y = 0;
      top = y > 0, bottom = (int)y + 1 < p.in[1];
    }
  }
  float out[E];
#pragma unroll
  for (int i = 0; i < E; i++) {
    out[i] = join(join(begins[i] ? none : column[i], column[i + 1]), ends[i] ? none : column[i + 2]);
    if (average) out[i] *= p.inverse[p.include_pad ? SIZE * SIZE : rows[i] * (SIZE - begins[i] - ends[i])];
  }
  if (at + E <= p.total) {
    *(uint4 *)vector_place<dtype>(p.y, at) = vector_close<dtype>(out, 0);
    return;
  }
  for (int i = 0; i < p.total - at; i++) element_store(p.y, at + i, dtype, out[i]);
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

typedef const void *kernel;
struct state { flat p; int32_t x, y; kernel kernel; };

template <int dtype> static kernel choose(int rest, bool average)
{
  if constexpr (dtype != QN_F32) {
    if (rest == 5) return average ? (kernel)pool_flat<dtype, true, 5> : (kernel)pool_flat<dtype, false, 5>;
    if (rest == 7) return average ? (kernel)pool_flat<dtype, true, 7> : (kernel)pool_flat<dtype, false, 7>;
  }
  if (rest == 3) return average ? (kernel)pool_flat<dtype, true, 3> : (kernel)pool_flat<dtype, false, 3>;
  return average ? (kernel)pool_flat<dtype, true, 1> : (kernel)pool_flat<dtype, false, 1>;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_value *x = cuda_value(r, QN_ROLE_POOL_MAX_X), *y = cuda_value(r, QN_ROLE_POOL_MAX_Y);
  qn_status status = pool_wants_floats(x, "x", out);
  if (!status) status = pool_wants_planes(op, x, y, x->align < y->align ? x->align : y->align, out);
  if (status) return status;
  if (qn_elements(x) > 1 << 30) return qn_refuse(out, "at most 2^30 elements", "x", "fewer", "%lld", (long long)qn_elements(x));
  flat p = {};
  if (!pool_fill(&p, op, x, y) || !pool_fold(&p, false)) return qn_refuse(out, "windows within a plane", "x", "1 deep", "%d", p.size[0]);
  for (int d = 1; d < 3; d++)
    if (p.size[d] != SIZE || p.step[d] != 1 || p.dilation[d] != 1 || p.before[d] != 1 || p.after[d] != 1)
      return qn_refuse(out, "windows of 3x3 every 1, padded by 1", "x", "such", "%d of dim %d", p.size[d], d);
  if (p.in[2] % 2 == 0) return qn_refuse(out, "an odd width", "x", "odd", "%d", p.in[2]);
  p.total = (int32_t)qn_elements(x);
  p.by_width = cuda_divide_by(p.in[2]), p.by_height = cuda_divide_by(p.in[1]);
  const int E = x->dtype == QN_F32 ? 4 : 8, rest = p.in[2] % E;
  state st = { p, op->arg[0], op->arg[1],
               x->dtype == QN_F32 ? choose<QN_F32>(rest, p.average) : x->dtype == QN_BF16 ? choose<QN_BF16>(rest, p.average) : choose<QN_F16>(rest, p.average) };
  return cuda_keep(out, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  flat p = st->p;
  p.x = launch->ptr[st->x];
  p.y = launch->ptr[st->y];
  void *args[] = { &p };
  const int each = THREADS * (p.dtype == QN_F32 ? 4 : 8);
  return cuda_check(cudaLaunchKernel(st->kernel, (unsigned)qn_ceil_div(p.total, each), THREADS, args, 0, (cudaStream_t)launch->stream), "pool_flat");
}

#define ROW(op) { "flat", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_POOL_MAX), ROW(QN_OP_POOL_AVERAGE) };
const qn_engine_list cuda_pool_flat_list = { row, sizeof row / sizeof *row };
