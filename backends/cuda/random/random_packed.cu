/* random_packed.cu -- rng_uniform, rng_normal, rng_bernoulli, dropout and its gradient on packed f32, f16 and bf16.
 *
 * The cost is instructions per random word: a Philox block of four words takes 18 products of 64 bits and as many exclusive
 * ors, and a product has a quarter of the usual throughput. The counters of a thread block differ in their low word only, and
 * are written so that the compiler sees it: keys, and what the first two rounds make of the other three words, are computed
 * once for all of a thread's words. Normal numbers are computed just accurately enough for their error bound.
 * Refused: f64, other layouts, 16-bit uniform numbers outside 0..1, normal numbers beyond f32's range. */
#include <float.h>
#include "cuda_backend.h"
#include "engines.h"
#include "kit/random.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256 };
enum { GIVEN, DRAWN, DRAWN_KEPT };        /* the mask of dropout is an input; is drawn; is drawn and written */
/* Chunks a thread: more where random words are the bottleneck, to share what is computed once for all of them. */
__host__ __device__ constexpr int fill_chunks(uint32_t op, int whole)
{
  return !whole ? 1 : op == QN_OP_RNG_UNIFORM && whole == QN_F32 ? 4 : 8;
}
__host__ __device__ constexpr int drop_chunks(int mask, int whole)
{
  return !whole || mask == GIVEN ? 1 : whole == QN_F32 || mask == DRAWN ? 2 : 4;
}

struct problem {
  const void *x;
  void       *y;
  const uint8_t *mask;
  uint8_t    *mask_out;
  random_key  seed, offset;
  uint32_t    x_dtype, y_dtype;
  int64_t     n;
  double      min, step;                  /* uniform: min + k step, k < 2^24 */
  float       mean, deviation, scale;
  uint32_t    last;                       /* words 0..last mean the event (bernoulli: 1; dropout: dropped) */
  bool        any, unit;                  /* any: the event is possible; unit: uniform on 0..1 */
};

/* A thread's chunks of V elements, THREADS apart. */
template <int V, int chunks> struct place {
  static constexpr int span = THREADS * V * chunks;
  int64_t first;
  int     left;                           /* elements from `first` to the end, at most `span` */
  __device__ __forceinline__ place(int64_t n)
  {
    first = blockIdx.x * (int64_t)span + threadIdx.x * V;
    left = (int)min(n - first, (int64_t)span);
  }
  __device__ __forceinline__ int64_t element(int u) const { return first + u * THREADS * V; }
  __device__ __forceinline__ int elements_of(int u) const { return max(0, min(V, left - u * THREADS * V)); }
  __device__ __forceinline__ bool all() const { return left >= span - (THREADS - 1) * V; }
  /* The random words of the thread's elements. */
  __device__ __forceinline__ void draw(const problem &p, uint32_t (&w)[chunks][V]) const
  {
    const uint64_t seed = p.seed.get(), offset = p.offset.get(), first = blockIdx.x * (uint64_t)(span / 4);
#pragma unroll
    for (int u = 0; u < chunks; u++)
#pragma unroll
      for (int k = 0; k < V; k += 4) {
        uint32_t block[4];
        random_words(block, seed, offset, first >> 32 << 32 | (uint32_t)first + V / 4 * (threadIdx.x + u * THREADS) + k / 4);
#pragma unroll
        for (int i = 0; i < 4; i++) w[u][k + i] = block[i];
      }
  }
  /* whole: the dtype of y (and x) if they are aligned to vectors, else 0. */
  template <int whole> __device__ __forceinline__ void store(const float (&v)[chunks][V], void *base, uint32_t dtype) const
  {
    if (whole && all()) {
#pragma unroll
      for (int u = 0; u < chunks; u++) vector_store_whole<whole>(v[u], base, element(u));
    } else {
#pragma unroll
      for (int u = 0; u < chunks; u++) vector_store(v[u], base, whole ? whole : dtype3(dtype), element(u), 1, elements_of(u));
    }
  }
};

/* ---- numbers ------------------------------------------------------------------------------------------------------------ */

__device__ __forceinline__ float log2_near(float x)
{
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float root_near(float x)
{
  float y;
  asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
/* word & 1 << bit; the compiler would shift the bit down first. */
__device__ __forceinline__ uint32_t bit_of(uint32_t word, int bit)
{
  uint32_t y;
  asm("and.b32 %0, %1, %2;" : "=r"(y) : "r"(word), "r"(1u << bit));
  return y;
}

/* Two normal numbers by Box and Muller. Squared radius -2 ln v: by lg2.approx, near v = 1 by a polynomial in 1 - v.
 * Angle: reduced to the nearest quarter turn, then sine and cosine by polynomials. With the documented errors of the
 * approximate instructions, checked for every v and every angle: the root is within 6.3 2^-24 of its value, sine and
 * cosine within 2.6 2^-24. */
__device__ __forceinline__ void normal(const problem &p, uint32_t first, uint32_t second, float &a, float &b)
{
  const float v = (float)(int32_t)((first >> 8) + 1) * 0x1p-24f, g = 1 - v;
  const float series = fmaf(fmaf(fmaf(fmaf(fmaf(0.834015727f, g, 0.189716339f), g, 0.537230372f), g, 0.663790107f), g, 1.00007987f), g,
                            1.99999964f);
  float square = log2_near(v) * -1.38629436f;
  if (g < 0.3125f) square = series * g;
  const float radius = root_near(square) * p.deviation;

  const uint32_t turn = second + (1u << 29);      /* quarter in the upper two bits, remainder in the next 22 */
  const float t = __uint_as_float(__funnelshift_r(turn << 2, 0x3f800000u >> 22, 10)) - 1.25f, z = t * t;      /* in half turns */
  const float sine = fmaf(fmaf(fmaf(-0.589012206f, z, 2.54976106f), z, -5.16770792f), z, 3.14159274f) * t;
  const float cosine = fmaf(fmaf(fmaf(-1.30550921f, z, 4.05751896f), z, -4.9347868f), z, 0.99999994f);
  const bool odd = bit_of(turn, 30);
  const float across = odd ? -sine : cosine, up = odd ? cosine : sine,
              signed_radius = __uint_as_float(__float_as_uint(radius) ^ (turn & 1u << 31));
  a = fmaf(signed_radius, across, p.mean);
  b = fmaf(signed_radius, up, p.mean);
}

template <int op, int whole, int V> __device__ __forceinline__ void make(const problem &p, const uint32_t (&w)[V], float (&v)[V])
{
  if (op == QN_OP_RNG_NORMAL) {
#pragma unroll
    for (int i = 0; i < V; i += 2) normal(p, w[i], w[i + 1], v[i], v[i + 1]);
  } else if (op == QN_OP_RNG_BERNOULLI) {
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = __uint_as_float(p.any && w[i] <= p.last ? 0x3f800000u : 0);          /* 1 or 0 */
  } else if (p.unit || whole == QN_F16 || whole == QN_BF16) {         /* one branch for all, to keep the words' instructions interleaved */
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = random_uniform<float>(w[i]);
  } else {                                /* n as a double: the bits of 2^52 + n, less 2^52 */
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = (float)fma(p.step, __hiloint2double(0x43300000, (int)(w[i] >> 8)) - 0x1p52, p.min);
  }
}

/* A chunk is 16 bytes. */
template <int op, int whole> __global__ static void __launch_bounds__(THREADS) random_fill(const __grid_constant__ problem p)
{
  constexpr int V = whole ? vector_per_16<whole> : 8, chunks = fill_chunks(op, whole);
  const place<V, chunks> at(p.n);
  uint32_t w[chunks][V];
  float v[chunks][V];
  at.draw(p, w);
#pragma unroll
  for (int u = 0; u < chunks; u++) make<op, whole>(p, w[u], v[u]);
  at.template store<whole>(v, p.y, p.y_dtype);
}

/* ---- dropout and its gradient: a chunk is 8 elements, one byte of the mask ------------------------------------------------ */

template <int mask, int whole> __global__ static void __launch_bounds__(THREADS) random_drop(const __grid_constant__ problem p)
{
  constexpr int chunks = drop_chunks(mask, whole);
  const place<8, chunks> at(p.n);
  packet<whole> x[chunks];
  uint32_t w[chunks][8], bits[chunks] = {};
  float v[chunks][8];
  if (whole && at.all())
#pragma unroll
    for (int u = 0; u < chunks; u++) x[u].load(p.x, whole, at.element(u), 8, 0);
  if (mask == GIVEN) {
#pragma unroll
    for (int u = 0; u < chunks; u++) bits[u] = at.elements_of(u) ? p.mask[at.element(u) / 8] : 0;
  } else {
    at.draw(p, w);                        /* while the loads of x are in flight */
  }
#pragma unroll
  for (int u = 0; u < chunks; u++) {
    if (whole && at.all()) x[u].open(v[u]);
    else vector_load(v[u], p.x, whole ? whole : dtype3(p.x_dtype), at.element(u), 1, at.elements_of(u));
#pragma unroll
    for (int i = 0; i < 8; i++) {
      const bool kept = mask == GIVEN ? bits[u] >> i & 1 : !p.any || w[u][i] > p.last;
      if (mask == DRAWN_KEPT) bits[u] |= kept ? 1u << i : 0;
      v[u][i] = kept ? v[u][i] * p.scale : 0;
    }
  }
  at.template store<whole>(v, p.y, p.y_dtype);
  if (mask == DRAWN_KEPT)
#pragma unroll
    for (int u = 0; u < chunks; u++)
      if (const int n = at.elements_of(u)) p.mask_out[at.element(u) / 8] = (uint8_t)(bits[u] & (0xffu >> (8 - n)));
}

/* ---- prepare, run -------------------------------------------------------------------------------------------------------- */

struct state {
  problem  p;
  int32_t  x, y, mask, mask_out, seed, offset;      /* value numbers of the request; -1: absent */
  qn_value seed_value, offset_value;
  const void *kernel;
  unsigned blocks;
};

static qn_status packed_floats(const qn_request *r, qn_prepared *out, int32_t value, const char *name)
{
  const qn_value *v = &r->value[value];
  if (v->dtype != QN_F32 && v->dtype != QN_F16 && v->dtype != QN_BF16)
    return qn_refuse(out, "computes in f32", name, "f32, f16 or bf16", "%s", qn_kit_name(v->dtype));
  if (!qn_is_packed(v))
    return qn_refuse(out, "elements are counted as they lie", name, "packed, the last dim fastest", "%s", "other strides");
  return QN_OK;
}

template <int whole> static const void *kernel_for(uint32_t op, int mask)
{
  switch (op) {
  case QN_OP_RNG_UNIFORM:   return (const void *)random_fill<QN_OP_RNG_UNIFORM, whole>;
  case QN_OP_RNG_NORMAL:    return (const void *)random_fill<QN_OP_RNG_NORMAL, whole>;
  case QN_OP_RNG_BERNOULLI: return (const void *)random_fill<QN_OP_RNG_BERNOULLI, whole>;
  default:
    return mask == GIVEN ? (const void *)random_drop<GIVEN, whole> : mask == DRAWN ? (const void *)random_drop<DRAWN, whole>
                                                                                  : (const void *)random_drop<DRAWN_KEPT, whole>;
  }
}
static const void *kernel_of(uint32_t op, int mask, uint32_t whole)
{
  switch (whole) {
  case QN_F32:  return kernel_for<QN_F32>(op, mask);
  case QN_F16:  return kernel_for<QN_F16>(op, mask);
  case QN_BF16: return kernel_for<QN_BF16>(op, mask);
  default:      return kernel_for<0>(op, mask);
  }
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_random_roles roles = qn_random_roles_of(op->op);
  /* the attribute structs have the same layout here */
  const double *attr = (const double *)((const char *)op->attr + offsetof(qn_chance, p));
  state s = {};
  s.x = qn_role_at(op, roles.x), s.y = qn_role_at(op, roles.y);
  s.mask = qn_role_at(op, roles.mask), s.mask_out = qn_role_at(op, roles.mask_out);
  s.seed = qn_role_at(op, roles.seed), s.offset = qn_role_at(op, roles.offset);
  const qn_value *y = &r->value[s.y], *x = s.x < 0 ? y : &r->value[s.x];
  qn_status status = s.x < 0 ? QN_OK : packed_floats(r, out, s.x, "x");
  if (status || (status = packed_floats(r, out, s.y, "y"))) return status;
  int32_t mask = s.mask < 0 ? s.mask_out : s.mask;
  if (mask >= 0 && !qn_is_packed(&r->value[mask]))
    return qn_refuse(out, "the mask's bytes are contiguous", "mask", "stride 1", "%lld", (long long)r->value[mask].stride[0]);
  if (op->op == QN_OP_RNG_UNIFORM) {
    s.p.min = attr[0], s.p.step = (attr[1] - attr[0]) * 0x1p-24;
    s.p.unit = attr[0] == 0 && attr[1] == 1;
  } else if (op->op == QN_OP_RNG_NORMAL) {
    s.p.mean = (float)attr[0], s.p.deviation = (float)attr[1];
  } else {
    uint64_t words = qn_chance_words(attr[0]);
    s.p.last = (uint32_t)(words - 1);
    s.p.any = words > 0;
    s.p.scale = (float)(1 / (1 - attr[0]));
  }
  if (op->op == QN_OP_RNG_UNIFORM && y->dtype != QN_F32 && !s.p.unit)
    return qn_refuse(out, "a 16-bit number is rounded once, from f64", "y", "f32, or min=0 max=1", "%s", qn_kit_name(y->dtype));
  if (op->op == QN_OP_RNG_NORMAL && qn_normal_reach(attr[0], attr[1]) > FLT_MAX)
    return qn_refuse(out, "computes in f32", "y", "|mean| + 6 deviation within f32's range", "%g", qn_normal_reach(attr[0], attr[1]));
  s.p.x_dtype = x->dtype, s.p.y_dtype = y->dtype;
  s.p.n = qn_elements(y);
  if (s.seed >= 0) s.seed_value = r->value[s.seed];
  if (s.offset >= 0) s.offset_value = r->value[s.offset];
  int from = s.mask >= 0 ? GIVEN : s.mask_out >= 0 ? DRAWN_KEPT : DRAWN,
      whole = x->dtype == y->dtype && x->align >= 16 && y->align >= 16 ? y->dtype : 0;
  int octets = s.x >= 0 ? drop_chunks(from, whole) : fill_chunks(op->op, whole) / (whole == QN_F32 ? 2 : 1);
  s.kernel = kernel_of(op->op, from, whole);
  int64_t blocks = qn_ceil_div(s.p.n, THREADS * 8 * (int64_t)octets);
  if (blocks > INT32_MAX) return qn_refuse(out, "fewer than 2^31 blocks of threads", "y", "", "%lld", (long long)blocks);
  s.blocks = (unsigned)blocks;
  return cuda_keep(out, &s, sizeof s);
}

static void *pointer(const qn_launch *launch, int32_t value) { return value < 0 ? nullptr : launch->ptr[value]; }

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = (const state *)prepared->state;
  problem p = s->p;
  p.x = pointer(launch, s->x);
  p.y = pointer(launch, s->y);
  p.mask = (const uint8_t *)pointer(launch, s->mask);
  p.mask_out = (uint8_t *)pointer(launch, s->mask_out);
  p.seed = random_key_of(s->seed < 0 ? nullptr : &s->seed_value, pointer(launch, s->seed));
  p.offset = random_key_of(s->offset < 0 ? nullptr : &s->offset_value, pointer(launch, s->offset));
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream),
                    "random_packed");
}

#define ROW(op) { "packed", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_RNG_UNIFORM), ROW(QN_OP_RNG_NORMAL), ROW(QN_OP_RNG_BERNOULLI), ROW(QN_OP_DROPOUT), ROW(QN_OP_DROPOUT_BACKWARD),
};
CUDA_ENGINES(random_packed) = { row, sizeof row / sizeof *row };
