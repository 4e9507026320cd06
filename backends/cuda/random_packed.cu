/* random_packed.cu -- random numbers and dropout on packed f32, f16 and bf16: eight elements, two blocks of words and one octet of
 * a mask by a thread. */
#include "cuda_backend.h"
#include "engines.h"
#include "random.cuh"
#include "vector.cuh"

enum { THREADS = 256, V = 8, CHUNKS = 4 };         /* chunks of a thread that reads nothing */

struct problem {
  const void *x;
  void       *y;
  const uint8_t *mask;
  uint8_t    *mask_out;
  random_key  seed, offset;
  uint32_t    x_dtype, y_dtype;
  int64_t     n;
  double      a, b;                       /* the attributes: min, max; mean, deviation */
  float       scale;
  uint32_t    last;                       /* the last word of an event's */
  bool        any;                        /* has it any? */
};

struct words {
  uint32_t w[V];
  __device__ __forceinline__ words(const problem &p, int64_t chunk)
  {
    uint64_t seed = p.seed.get(), offset = p.offset.get();
    qn_random_words(w, seed, offset, 2 * (uint64_t)chunk);
    qn_random_words(w + 4, seed, offset, 2 * (uint64_t)chunk + 1);
  }
};

/* A bit for each element that is no event's. */
__device__ __forceinline__ uint32_t draw_bits(const problem &p, int64_t chunk)
{
  words r(p, chunk);
  uint32_t bits = 0;
#pragma unroll
  for (int i = 0; i < V; i++) bits |= (uint32_t)!(p.any && r.w[i] <= p.last) << i;
  return bits;
}

/* ---- numbers: whole is the dtype of x and y if they have one and lie in whole vectors, else 0 --------------------------- */

template <int op> __device__ __forceinline__ void make(const problem &p, int64_t chunk, float (&v)[V])
{
  if (op == QN_OP_RNG_BERNOULLI) {
    uint32_t bits = draw_bits(p, chunk);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = bits >> i & 1 ? 0 : 1;
    return;
  }
  words r(p, chunk);
  if (op == QN_OP_RNG_UNIFORM && p.a == 0 && p.b == 1) {    /* asked once, lest a branch part the words */
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = random_uniform<float>(r.w[i]);
    return;
  }
#pragma unroll
  for (int i = 0; i < V; i += 2) {
    if (op == QN_OP_RNG_NORMAL) {
      random_normal(r.w[i], r.w[i + 1], &v[i], &v[i + 1]);
      v[i] = fmaf((float)p.b, v[i], (float)p.a);
      v[i + 1] = fmaf((float)p.b, v[i + 1], (float)p.a);
    } else {
      v[i] = (float)fma(p.b - p.a, random_uniform<double>(r.w[i]), p.a);
      v[i + 1] = (float)fma(p.b - p.a, random_uniform<double>(r.w[i + 1]), p.a);
    }
  }
}

template <int op, int whole> __global__ static void __launch_bounds__(THREADS) random_fill(const __grid_constant__ problem p)
{
  for (int64_t chunk = blockIdx.x * (int64_t)THREADS + threadIdx.x; chunk * V < p.n; chunk += gridDim.x * (int64_t)THREADS) {
    float v[V];
    int n = (int)min(p.n - chunk * V, (int64_t)V);
    make<op>(p, chunk, v);
    if (whole && n == V) vector_store_whole<whole>(v, p.y, chunk * V);
    else vector_store(v, p.y, p.y_dtype, chunk * V, 1, n);
  }
}

/* ---- dropout and its gradient ----------------------------------------------------------------------------------------- */

template <int whole> __global__ static void __launch_bounds__(THREADS) random_drop(const __grid_constant__ problem p)
{
  for (int64_t chunk = blockIdx.x * (int64_t)THREADS + threadIdx.x; chunk * V < p.n; chunk += gridDim.x * (int64_t)THREADS) {
    float v[V];
    int n = (int)min(p.n - chunk * V, (int64_t)V);
    if (whole && n == V) vector_load_whole<whole>(v, p.x, chunk * V);
    else vector_load(v, p.x, p.x_dtype, chunk * V, 1, n);
    uint32_t bits = p.mask ? p.mask[chunk] : draw_bits(p, chunk);
#pragma unroll
    for (int i = 0; i < V; i++) v[i] = bits >> i & 1 ? v[i] * p.scale : 0;
    if (whole && n == V) vector_store_whole<whole>(v, p.y, chunk * V);
    else vector_store(v, p.y, p.y_dtype, chunk * V, 1, n);
    if (p.mask_out) p.mask_out[chunk] = (uint8_t)(bits & (0xffu >> (V - n)));
  }
}

/* ---- prepare, run -------------------------------------------------------------------------------------------------------- */

struct state {
  problem  p;
  int32_t  x, y, mask, mask_out, seed, offset;      /* values of the request; -1: absent */
  qn_value seed_value, offset_value;
  const void *kernel;
  unsigned blocks;
};

static qn_status packed_floats(const qn_request *r, qn_prepared *out, int32_t value, const char *name)
{
  const qn_value *v = &r->value[value];
  if (v->dtype != QN_F32 && v->dtype != QN_F16 && v->dtype != QN_BF16)
    return qn_refuse(out, "computes in f32", name, "f32, f16 or bf16", "%s", qn_kit_name(v->dtype));
  if (!qn_is_packed(v)) return qn_refuse(out, "elements are counted as they lie", name, "packed, the last dim fastest", "%s", "other strides");
  return QN_OK;
}

template <int whole> static const void *kernel_for(uint32_t op)
{
  switch (op) {
  case QN_OP_RNG_UNIFORM:   return (const void *)random_fill<QN_OP_RNG_UNIFORM, whole>;
  case QN_OP_RNG_NORMAL:    return (const void *)random_fill<QN_OP_RNG_NORMAL, whole>;
  case QN_OP_RNG_BERNOULLI: return (const void *)random_fill<QN_OP_RNG_BERNOULLI, whole>;
  default:                  return (const void *)random_drop<whole>;
  }
}
static const void *kernel_of(uint32_t op, uint32_t whole)
{
  switch (whole) {
  case QN_F32:  return kernel_for<QN_F32>(op);
  case QN_F16:  return kernel_for<QN_F16>(op);
  case QN_BF16: return kernel_for<QN_BF16>(op);
  default:      return kernel_for<0>(op);
  }
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  const qn_random_roles roles = qn_random_roles_of(op->op);
  const double *attr = (const double *)((const char *)op->attr + offsetof(qn_chance, p));     /* all three begin alike */
  state s = {};
  s.x = qn_role_at(op, roles.x), s.y = qn_role_at(op, roles.y);
  s.mask = qn_role_at(op, roles.mask), s.mask_out = qn_role_at(op, roles.mask_out);
  s.seed = qn_role_at(op, roles.seed), s.offset = qn_role_at(op, roles.offset);
  const qn_value *y = &r->value[s.y], *x = s.x < 0 ? y : &r->value[s.x];
  qn_status status = s.x < 0 ? QN_OK : packed_floats(r, out, s.x, "x");
  if (status || (status = packed_floats(r, out, s.y, "y"))) return status;
  int32_t mask = s.mask < 0 ? s.mask_out : s.mask;
  if (mask >= 0 && !qn_is_packed(&r->value[mask]))
    return qn_refuse(out, "octets must lie side by side", "mask", "stride 1", "%lld", (long long)r->value[mask].stride[0]);
  s.p.a = attr[0];
  if (op->op == QN_OP_RNG_UNIFORM || op->op == QN_OP_RNG_NORMAL) {
    s.p.b = attr[1];
  } else {
    uint64_t words = qn_chance_words(s.p.a);
    s.p.last = (uint32_t)(words - 1);
    s.p.any = words > 0;
    s.p.scale = (float)(1 / (1 - s.p.a));
  }
  if (op->op == QN_OP_RNG_UNIFORM && y->dtype != QN_F32 && !(s.p.a == 0 && s.p.b == 1))
    return qn_refuse(out, "a 16-bit number is rounded once, from f64", "y", "f32, or min=0 max=1", "%s", qn_kit_name(y->dtype));
  s.p.x_dtype = x->dtype, s.p.y_dtype = y->dtype;
  s.p.n = qn_elements(y);
  if (s.seed >= 0) s.seed_value = r->value[s.seed];
  if (s.offset >= 0) s.offset_value = r->value[s.offset];
  bool whole = x->dtype == y->dtype && x->align >= 16 && y->align >= 16;
  s.kernel = kernel_of(op->op, whole ? y->dtype : 0);
  int64_t blocks = qn_ceil_div(s.p.n, THREADS * V);
  if (s.x < 0) blocks = qn_max_i64(qn_min_i64(blocks, (int64_t)r->device->units * 8), blocks / CHUNKS);
  s.blocks = (unsigned)qn_min_i64(blocks, INT32_MAX);

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
  return cuda_check(cudaLaunchKernel(s->kernel, dim3(s->blocks), dim3(THREADS), arguments, 0, (cudaStream_t)launch->stream), "random_packed");
}

#define ROW(op) { "packed", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = {
  ROW(QN_OP_RNG_UNIFORM), ROW(QN_OP_RNG_NORMAL), ROW(QN_OP_RNG_BERNOULLI), ROW(QN_OP_DROPOUT), ROW(QN_OP_DROPOUT_BACKWARD),
};
const qn_engine_list cuda_random_packed_list = { row, sizeof row / sizeof *row };
