/* lrn.cu -- local response normalization and its gradient; with means (direct only) divisive normalization.
 *
 *   y  = x b^-beta, b = k + alpha/n sum x^2        dx = g - 2 alpha beta/n x sum(g x/b), g = dy b^-beta, over the mirrored window
 *   with means m: (x - m)^2 for x^2, and sum(g' x'/b' (x - m')) for x sum(g x/b); dmeans = 2 alpha beta/n g x/b sum(x - m)
 *
 * tiles: windows of any size, packed tensors of either layout, f16, bf16, f32: a block holds a tile in shared memory that contains
 *   whole windows: all channels of some pixels, or whole planes of some channels. Window sums are separable, one dim after the other,
 *   four neighbours a thread.
 * direct: any strides and sizes, in double, an element a thread; a gradient recomputes its neighbours' windows. Windows of three
 * and five are faster in lrn_windows.cu; means, and planes too large for a tile: lrn_taps.cu. */
#include "cuda_backend.h"
#include "engines.h"
#include "lrn.cuh"
#include "kit/shared_memory.h"
#include "kit/spatial.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256, DIRECT_THREADS = 128, MOST_FLOATS = 12288 };        /* of one array of a tile; a block holds up to four */

struct tiles {
  const void *in, *x;                     /* in: dy, or x */
  void    *out;
  uint32_t dtype;
  int32_t  dims, before, after;           /* dims that the window covers; its reach */
  int32_t  elements, floats;              /* of a tile; rounded up to vectors */
  int32_t  vectors, rows, shift;          /* vectors: 16-byte accesses; the tile in memory: rows, 2^shift threads each */
  int64_t  step, pitch;                   /* between rows, in memory and in the tile */
  int64_t  length, tile_step, extent;     /* length of a row in the tile; stride between groups of tiles; length of a group's rows */
  int32_t  one_run;                       /* the tile is one contiguous run, cut into rows */
  int64_t  tiles, blocks;                 /* in all; in a group, `length` apart */
  dim      along[3];
  float    k, alpha, beta;                /* alpha already divided by n */
};

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* V elements of a known dtype, as 16 bytes; or one of any dtype. */
template <uint32_t dtype, int V> __device__ __forceinline__ void fetch(float (&v)[V], const tiles &s, const void *from, int64_t at)
{
  if constexpr (V == 1) load(v, from, s.dtype, at);
  else vector_load_whole<dtype>(v, from, at);
}
template <uint32_t dtype, int V> __device__ __forceinline__ void put(const float (&v)[V], const tiles &s, int64_t at)
{
  if constexpr (V == 1) store(v, s.out, s.dtype, at);
  else vector_store_whole<dtype>(v, s.out, at);
}

/* A thread's column of vectors in a tile. */
template <int V> struct column {
  int32_t row, rows_apart, i, length, left;
  int64_t at;

  __device__ __forceinline__ column(const tiles &s, int64_t tile)
  {
    int64_t group = s.blocks == 1 ? tile : tile / s.blocks, block = (tile - group * s.blocks) * s.length;
    row = threadIdx.x >> s.shift, rows_apart = THREADS >> s.shift;
    i = (threadIdx.x & ((1 << s.shift) - 1)) * V;
    length = (int32_t)s.length, left = (int32_t)min(s.length, s.extent - block);
    at = group * s.tile_step + block + i;
  }
  /* Is row r inside the tile; inside memory? */
  __device__ __forceinline__ bool in_tile(const tiles &s, int32_t r) const
  {
    return r < s.rows && (s.one_run ? r * (int32_t)s.pitch + i : i) < length;
  }
  __device__ __forceinline__ bool there(const tiles &s, int32_t r) const
  {
    return r < s.rows && (s.one_run ? r * (int32_t)s.pitch + i : i) < left;
  }
};

template <uint32_t dtype, int V> __device__ __forceinline__ void load_as(float *to, const tiles &s, const void *from, int64_t tile)
{
  constexpr int BATCH = V == 8 ? 2 : 4;   /* loads in flight */
  column<V> c(s, tile);
  for (int32_t r = c.row; r < s.rows; r += BATCH * c.rows_apart) {
    float v[BATCH][V];
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int32_t at = r + b * c.rows_apart;
#pragma unroll
      for (int j = 0; j < V; j++) v[b][j] = 0;
      if (c.there(s, at)) fetch<dtype>(v[b], s, from, c.at + at * s.step);
    }
#pragma unroll
    for (int b = 0; b < BATCH; b++) {
      int32_t at = r + b * c.rows_apart;
      if (!c.in_tile(s, at)) continue;
      float *p = to + at * (int32_t)s.pitch + c.i;
      if constexpr (V == 1) p[0] = v[b][0];
      else
#pragma unroll
        for (int j = 0; j < V; j += 4) *(float4 *)(p + j) = make_float4(v[b][j], v[b][j + 1], v[b][j + 2], v[b][j + 3]);
    }
  }
}

template <uint32_t dtype, int V> __device__ __forceinline__ void store_as(const float *from, const tiles &s, int64_t tile)
{
  column<V> c(s, tile);
  for (int32_t r = c.row; r < s.rows; r += c.rows_apart) {
    const float *p = from + r * (int32_t)s.pitch + c.i;
    float v[V];
    if (!c.there(s, r)) continue;
    if constexpr (V == 1) v[0] = p[0];
    else
#pragma unroll
      for (int j = 0; j < V; j += 4) *(float4 *)(v + j) = *(const float4 *)(p + j);
    put<dtype>(v, s, c.at + r * s.step);
  }
}

__device__ __forceinline__ void load_tile(float *to, const tiles &s, const void *from, int64_t tile)
{
  if (!s.vectors) load_as<0, 1>(to, s, from, tile);
  else if (s.dtype == QN_F32) load_as<QN_F32, 4>(to, s, from, tile);
  else if (s.dtype == QN_BF16) load_as<QN_BF16, 8>(to, s, from, tile);
  else load_as<QN_F16, 8>(to, s, from, tile);
}

__device__ __forceinline__ void store_tile(const float *from, const tiles &s, int64_t tile)
{
  if (!s.vectors) store_as<0, 1>(from, s, tile);
  else if (s.dtype == QN_F32) store_as<QN_F32, 4>(from, s, tile);
  else if (s.dtype == QN_BF16) store_as<QN_BF16, 8>(from, s, tile);
  else store_as<QN_F16, 8>(from, s, tile);
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

template <bool square> __device__ __forceinline__ void add(float (&sum)[4], float4 q)
{
  sum[0] += square ? q.x * q.x : q.x, sum[1] += square ? q.y * q.y : q.y;
  sum[2] += square ? q.z * q.z : q.z, sum[3] += square ? q.w * q.w : q.w;
}

/* sum[j] = the sum of `from` (or of its squares) over the window around element e + j along one dim. */
template <bool square>
__device__ __forceinline__ void window(float (&sum)[4], const float *from, const dim &d, int32_t e, int32_t elements, int32_t back,
                                       int32_t ahead)
{
#pragma unroll
  for (int j = 0; j < 4; j++) sum[j] = 0;
  if (d.inner % 4 == 0) {                 /* the four elements share an index */
    int32_t i = index_of(d, e);
    int32_t low = -min(back, i), high = min(ahead, d.n - 1 - i);
    if (high - low == 4) {                /* the common size, unrolled */
#pragma unroll
      for (int o = 0; o < 5; o++) add<square>(sum, *(const float4 *)(from + e + (low + o) * d.inner));
    } else {
      for (int32_t o = low; o <= high; o++) add<square>(sum, *(const float4 *)(from + e + o * d.inner));
    }
  } else if (d.inner == 1 && d.n % 4 == 0 && back <= 4 && ahead <= 4) {       /* the four elements are in one row, of a multiple of four */
    int32_t i = index_of(d, e);
    float4 none = make_float4(0, 0, 0, 0), own = *(const float4 *)(from + e);
    float4 left = i ? *(const float4 *)(from + e - 4) : none, right = i + 4 < d.n ? *(const float4 *)(from + e + 4) : none;
    float w[12] = { left.x, left.y, left.z, left.w, own.x, own.y, own.z, own.w, right.x, right.y, right.z, right.w };
#pragma unroll
    for (int o = -4; o <= 4; o++)
      if (-o <= back && o <= ahead)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[j] += square ? w[4 + j + o] * w[4 + j + o] : w[4 + j + o];
  } else {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      if (e + j >= elements) continue;
      int32_t i = index_of(d, e + j), high = min(ahead, d.n - 1 - i);
      for (int32_t o = -min(back, i); o <= high; o++) {
        float v = from[e + j + o * d.inner];
        sum[j] += square ? v * v : v;
      }
    }
  }
}

template <bool backward> __global__ static void __launch_bounds__(THREADS) lrn_tile(const __grid_constant__ tiles s)
{
  extern __shared__ float4 shared[];
  int32_t elements = s.elements;
  float *x = (float *)shared, *to = x + s.floats, *g = backward ? to + s.floats : x, *other = (backward ? g : to) + s.floats, *from = x;
  int64_t tile = blockIdx.x;
  load_tile(g, s, s.in, tile);
  if (backward) load_tile(x, s, s.x, tile);
  __syncthreads();
  for (int d = 0; d < s.dims; d++) {
    for (int32_t e = 4 * threadIdx.x; e < elements; e += 4 * THREADS) {
      float sum[4];
      if (d == 0) window<true>(sum, from, s.along[0], e, elements, s.before, s.after);
      else window<false>(sum, from, s.along[d], e, elements, s.before, s.after);
      if (d == s.dims - 1) {
        float4 own = *(const float4 *)(g + e), at = *(const float4 *)(x + e);
        float v[4] = { own.x, own.y, own.z, own.w }, w[4] = { at.x, at.y, at.z, at.w };
#pragma unroll
        for (int j = 0; j < 4; j++) {
          float b = s.k + s.alpha * sum[j];
          v[j] *= power(b, s.beta);
          sum[j] = backward ? quotient(v[j] * w[j], b) : v[j];
        }
        if (backward) *(float4 *)(g + e) = make_float4(v[0], v[1], v[2], v[3]);
      }
      *(float4 *)(to + e) = make_float4(sum[0], sum[1], sum[2], sum[3]);
    }
    __syncthreads();
    from = to;
    to = other, other = from;
  }
  for (int d = 0; d < s.dims && backward; d++) {
    for (int32_t e = 4 * threadIdx.x; e < elements; e += 4 * THREADS) {
      float sum[4];
      window<false>(sum, from, s.along[d], e, elements, s.after, s.before);
      if (d == s.dims - 1) {
        float4 own = *(const float4 *)(g + e), at = *(const float4 *)(x + e);
        float by = 2 * s.alpha * s.beta;
        *(float4 *)(g + e) = make_float4(own.x - by * (at.x * sum[0]), own.y - by * (at.y * sum[1]), own.z - by * (at.z * sum[2]),
                                         own.w - by * (at.w * sum[3]));
      } else {
        *(float4 *)(to + e) = make_float4(sum[0], sum[1], sum[2], sum[3]);
      }
    }
    __syncthreads();
    from = to;
    to = other, other = from;
  }
  store_tile(backward ? g : from, s, tile);
}

/* ---- direct ------------------------------------------------------------------------------------------------------ */

struct problem {
  grid    x, means, dy, out, dmeans;      /* p NULL: absent */
  int64_t elements, first[5], count[5];   /* per dim: first offset of a window and number of offsets that may lie in x */
  double  k, alpha, beta;                 /* alpha already divided by n */

  __device__ int64_t taps() const { return count[0] * count[1] * count[2] * count[3] * count[4]; }
  __device__ int64_t offset(const grid &t, const int64_t at[5]) const { return t.at(at[0], at[1], at + 2); }
  /* Tap t of the window around `at`, or of the mirrored one; false: outside. */
  __device__ bool tap(const int64_t at[5], int64_t t, bool mirrored, int64_t to[5]) const
  {
    bool inside = true;
    for (int d = 4; d >= 0; d--) {
      int64_t q = t / count[d], o = first[d] + t - q * count[d];
      t = q;
      to[d] = mirrored ? at[d] - o : at[d] + o;
      inside &= to[d] >= 0 && to[d] < x.dim[d];
    }
    return inside;
  }
  __device__ double mean(const int64_t at[5]) const { return means.p ? means.load<double>(offset(means, at)) : 0; }
  /* The sum of x - m over the window around `at`, or of its square. */
  __device__ double distances(const int64_t at[5], bool squared) const
  {
    double sum = 0, m = mean(at);
    int64_t to[5];
    for (int64_t t = 0; t < taps(); t++)
      if (tap(at, t, false, to)) {
        double v = x.load<double>(offset(x, to)) - m;
        sum += squared ? v * v : v;
      }
    return sum;
  }
  __device__ double base(const int64_t at[5]) const { return k + alpha * distances(at, true); }
  /* dy x b^-(beta+1) */
  __device__ double share(const int64_t at[5]) const
  {
    return dy.load<double>(offset(dy, at)) * x.load<double>(offset(x, at)) * pow(base(at), -beta - 1);
  }
};

template <bool backward> __global__ static void __launch_bounds__(DIRECT_THREADS) lrn_direct(const __grid_constant__ problem s)
{
  for (int64_t i = blockIdx.x * (int64_t)DIRECT_THREADS + threadIdx.x; i < s.elements; i += (int64_t)gridDim.x * DIRECT_THREADS) {
    int64_t at[5], from[5], rest = i;
    for (int d = 4; d >= 0; d--) at[d] = rest % s.x.dim[d], rest /= s.x.dim[d];
    double v = s.x.load<double>(s.offset(s.x, at)), f = pow(s.base(at), -s.beta), sum = 0;
    if (backward) {
      for (int64_t t = 0; t < s.taps(); t++)
        if (s.tap(at, t, true, from)) sum += s.share(from) * (v - s.mean(from));
      v = s.dy.load<double>(s.offset(s.dy, at)) * f - 2 * s.alpha * s.beta * sum;
      if (s.dmeans.p) s.dmeans.store(s.offset(s.dmeans, at), 2 * s.alpha * s.beta * (s.share(at) * s.distances(at, false)));
    } else {
      v *= f;
    }
    s.out.store(s.offset(s.out, at), v);
  }
}

/* ---- host -------------------------------------------------------------------------------------------------------- */

struct tiles_state { tiles s; const void *kernel; roles at; uint32_t shared; };

static const void *const kernels[] = { (const void *)lrn_tile<false>, (const void *)lrn_tile<true> };

/* Width of a tile along the dim that windows do not cover, beside `rest` elements that they do: some multiple of 128 bytes. */
static int64_t breadth(int64_t extent, int64_t rest, uint32_t dtype)
{
  int64_t n = dtype == QN_F32 ? 32 : 64;
  while (n < 256 && n * rest < 2048) n *= 2;
  while (n > 4 && n * rest > 8192) n /= 2;
  return qn_min_i64(n, qn_round_up(extent, 4));
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_local_norm *a = (const qn_local_norm *)op->attr;
  bool backward = op->op == QN_OP_LRN_BACKWARD, within = a->region == QN_LOCAL_WITHIN;
  tiles_state st = { {}, NULL, roles_of(op), 0 };
  tiles *s = &st.s;
  const qn_value *x = &r->value[st.at.x];
  if (st.at.means >= 0) return qn_refuse(out, "sums are of x alone", "means", "none", "%s", "some");
  if (x->dtype == QN_F64) return qn_refuse(out, "accumulates in f32", "x", "f32, f16 or bf16", "%s", "f64");
  bool packed = qn_is_packed(x), alike = packed || qn_is_channels_last(x), aligned = true;
  for (int32_t i = 0; i < op->first[op->n_roles]; i++)
    alike &= qn_same_layout(x, &r->value[op->arg[i]]), aligned &= r->value[op->arg[i]].align >= 16;
  if (!alike) return qn_refuse(out, "tensors are packed and alike, channels first or last", "x", "one layout", "%s", "strides");
  int64_t places = 1, channels = x->dim[1], images = x->dim[0], length, runs = 1;
  for (int d = 2; d < x->rank; d++) places *= x->dim[d];
  bool last = !packed || places == 1;
  double all = (double)images * (double)channels * (double)places, n = 1;
  if ((within ? places : channels) > MOST_FLOATS)
    return qn_refuse(out, "a window's dims lie in shared memory", "x", "12288 places at most", "%lld",
                     (long long)(within ? places : channels));
  s->dtype = x->dtype;
  s->before = (int32_t)qn_min_i64((a->size - 1) / 2, MOST_FLOATS), s->after = (int32_t)qn_min_i64(a->size / 2, MOST_FLOATS);
  if (within ? !last : last) {            /* the window's dims are contiguous: a tile is several of those runs */
    int64_t whole = within ? places : channels;
    length = qn_max_i64(1, 4096 / whole) * whole;
    s->tile_step = 0, s->step = 0, s->extent = images * channels * places, s->tiles = 1;
  } else {
    int64_t beside = last ? channels : places;
    runs = last ? places : channels;
    length = breadth(beside, runs, x->dtype);
    s->step = s->extent = beside;
    s->tile_step = places * channels, s->tiles = images;
  }
  if (within) {
    s->dims = x->rank - 2;
    int64_t inner = last ? length : 1;
    for (int d = s->dims - 1; d >= 0; inner *= x->dim[2 + d], d--) set_dim(&s->along[d], x->dim[2 + d], inner), n *= (double)a->size;
  } else {
    s->dims = 1, n = (double)a->size;
    set_dim(&s->along[0], channels, last ? 1 : length);
  }
  int64_t v = x->dtype == QN_F32 ? 4 : 8;
  s->vectors = length % v == 0 && s->step % v == 0 && s->extent % v == 0 && s->tile_step % v == 0 && aligned;
  if (!s->vectors) v = 1;
  s->elements = (int32_t)(runs * length), s->floats = (int32_t)qn_round_up(runs * length, 4);
  s->length = length;
  s->one_run = runs == 1;
  s->pitch = s->one_run ? THREADS * v : length;
  s->rows = (int32_t)(s->one_run ? qn_ceil_div(length, s->pitch) : runs);
  if (s->one_run) s->step = s->pitch;
  while (s->shift < 8 && v << s->shift < length) s->shift++;
  s->blocks = qn_ceil_div(s->extent, length);
  s->tiles *= s->blocks;
  s->k = (float)a->k, s->alpha = (float)(a->alpha / n), s->beta = (float)a->beta;
  st.shared = (uint32_t)(s->floats * ((backward ? 3 : 2) + (s->dims > 1)) * 4);
  if (st.shared > cuda_room(r) || s->tiles > 0x7fffffff)
    return qn_refuse(out, "a tile lies in shared memory", "x", "fewer places in a window's dims", "%u bytes", st.shared);
  st.kernel = kernels[backward];
  out->estimate = 2500 + all * op->first[op->n_roles] * (double)qn_kit_bytes(x->dtype) / 3500;
  return cuda_keep(out, &st, sizeof st);
}

static qn_status build(const qn_request *, qn_prepared *p)
{
  return cuda_allow_shared(((const tiles_state *)p->state)->kernel);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const tiles_state *st = (const tiles_state *)p->state;
  tiles s = st->s;
  s.in = launch->ptr[st->at.in], s.x = launch->ptr[st->at.x], s.out = launch->ptr[st->at.out];
  void *args[] = { &s };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3((unsigned)s.tiles), dim3(THREADS), args, st->shared, (cudaStream_t)launch->stream),
                    "lrn");
}

static qn_status run_direct(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_local_norm *a = (const qn_local_norm *)k->attr;
  bool backward = k->op == QN_OP_LRN_BACKWARD;
  tensor x = direct_tensor(k, launch, QN_ROLE_LRN_X + backward, 0);
  problem s = {};
  s.x = direct_grid(x);
  s.dy = direct_grid(direct_tensor(k, launch, 0, 0));
  s.out = direct_grid(direct_tensor(k, launch, QN_ROLE_LRN_Y + backward, 0));
  s.means = direct_grid(direct_tensor(k, launch, QN_ROLE_LRN_MEANS + backward, 0));
  if (backward) s.dmeans = direct_grid(direct_tensor(k, launch, QN_ROLE_LRN_BACKWARD_DMEANS, 0));
  s.elements = direct_elements(x);
  s.k = a->k, s.alpha = a->alpha, s.beta = a->beta;
  for (int d = 0; d < 5; d++) {
    bool covered = a->region == QN_LOCAL_ACROSS ? d == 1 : d >= 7 - x.rank;
    int64_t size = covered ? a->size : 1;
    s.first[d] = -qn_min_i64((size - 1) / 2, s.x.dim[d] - 1);
    s.count[d] = qn_min_i64(size / 2, s.x.dim[d] - 1) - s.first[d] + 1;
    s.alpha /= (double)size;
  }
  unsigned blocks = direct_blocks(s.elements, DIRECT_THREADS);
  if (backward) lrn_direct<true><<<blocks, DIRECT_THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  else lrn_direct<false><<<blocks, DIRECT_THREADS, 0, (cudaStream_t)launch->stream>>>(s);
  return direct_launched("lrn");
}

#define ROWS(op)                                                                                                                 \
  { "tiles", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,            \
    prepare, build, run, cuda_release },                                                                                         \
  DIRECT_ROW(op, run_direct)
static const qn_engine row[] = { ROWS(QN_OP_LRN), ROWS(QN_OP_LRN_BACKWARD) };
CUDA_ENGINES(lrn) = { row, sizeof row / sizeof *row };
