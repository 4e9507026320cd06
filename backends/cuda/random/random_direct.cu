/* random_direct.cu -- rng_uniform, rng_normal, rng_bernoulli, dropout and its gradient, in double, any strides: an element a
 * thread, which computes its own random word. */
#include "kit/direct.cuh"
#include "engines.h"
#include "kit/random.cuh"

enum { THREADS = 256 };

struct problem {
  tensor     x, y, mask, mask_out;
  random_key seed, offset;
  uint32_t   op;
  double     a, b;                        /* attributes: min, max; mean, deviation; or p */
  uint64_t   words;                       /* words below this count as the event */
  int64_t    n;

  __device__ uint32_t word(int64_t i) const
  {
    uint32_t w[4];
    qn_random_words(w, seed.get(), offset.get(), (uint64_t)i / 4);
    return i & 2 ? (i & 1 ? w[3] : w[2]) : (i & 1 ? w[1] : w[0]);
  }
  __device__ bool dropped(int64_t i) const
  {
    if (mask.p) return !(((const uint8_t *)mask.p)[i / 8 * mask.stride[0]] >> i % 8 & 1);
    return word(i) < words;
  }
};

/* Two standard normal numbers by Box and Muller. */
__device__ static void normal(uint32_t first, uint32_t second, double *a, double *b)
{
  double s, c, radius = sqrt(-2 * log(random_uniform<double>(first) + 0x1p-24));
  sincospi(2 * random_uniform<double>(second), &s, &c);
  *a = radius * c;
  *b = radius * s;
}

__device__ static double element(const problem &v, int64_t i)
{
  double first, second;
  switch (v.op) {
  case QN_OP_RNG_UNIFORM:
    return fma(v.b - v.a, random_uniform<double>(v.word(i)), v.a);
  case QN_OP_RNG_NORMAL:
    normal(v.word(i & ~(int64_t)1), v.word(i | 1), &first, &second);
    return v.a + v.b * (i & 1 ? second : first);
  case QN_OP_RNG_BERNOULLI:
    return v.word(i) < v.words;
  default:
    return v.dropped(i) ? 0 : v.x.load<double>(place(v.x, v.y, i)) / (1 - v.a);
  }
}

__global__ static void __launch_bounds__(THREADS) random_direct(const __grid_constant__ problem v)
{
  for (int64_t i = blockIdx.x * (int64_t)THREADS + threadIdx.x; i < v.n; i += gridDim.x * (int64_t)THREADS)
    v.y.store(place(v.y, v.y, i), element(v, i));
}

__global__ static void __launch_bounds__(THREADS) random_mask_direct(const __grid_constant__ problem v)
{
  for (int64_t octet = blockIdx.x * (int64_t)THREADS + threadIdx.x; octet < v.mask_out.dim[0]; octet += gridDim.x * (int64_t)THREADS) {
    unsigned bits = 0;
    for (int64_t i = 8 * octet; i < 8 * octet + 8 && i < v.n; i++) bits |= (unsigned)!v.dropped(i) << i % 8;
    ((uint8_t *)v.mask_out.p)[octet * v.mask_out.stride[0]] = (uint8_t)bits;
  }
}

static random_key key(const kept *k, const qn_launch *launch, int role)
{
  if (role < 0 || !direct_count(k, (uint32_t)role)) return random_key_of(nullptr, nullptr);
  int at = k->first[role];
  return random_key_of(&k->value[at], launch->ptr[k->number[at]]);
}

static tensor part(const kept *k, const qn_launch *launch, int role)
{
  return role < 0 ? tensor{} : direct_tensor(k, launch, (uint32_t)role, 0);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const kept *k = (const kept *)p->state;
  const qn_random_roles r = qn_random_roles_of(k->op);
  /* the attribute structs have the same layout here */
  const double *attr = (const double *)((const char *)k->attr + offsetof(qn_chance, p));
  bool pair = k->op == QN_OP_RNG_UNIFORM || k->op == QN_OP_RNG_NORMAL;
  problem v = {};
  v.x = part(k, launch, r.x), v.y = part(k, launch, r.y);
  v.mask = part(k, launch, r.mask), v.mask_out = part(k, launch, r.mask_out);
  v.seed = key(k, launch, r.seed), v.offset = key(k, launch, r.offset);
  v.op = k->op;
  v.a = attr[0];
  if (pair) v.b = attr[1];
  else v.words = qn_chance_words(v.a);
  v.n = direct_elements(v.y);
  random_direct<<<direct_blocks(v.n, THREADS), THREADS, 0, (cudaStream_t)launch->stream>>>(v);
  if (v.mask_out.p) random_mask_direct<<<direct_blocks(v.mask_out.dim[0], THREADS), THREADS, 0, (cudaStream_t)launch->stream>>>(v);
  return direct_launched("random_direct");
}

static const qn_engine row[] = {
  DIRECT_ROW(QN_OP_RNG_UNIFORM, run),
  DIRECT_ROW(QN_OP_RNG_NORMAL, run),
  DIRECT_ROW(QN_OP_RNG_BERNOULLI, run),
  DIRECT_ROW(QN_OP_DROPOUT, run),
  DIRECT_ROW(QN_OP_DROPOUT_BACKWARD, run),
};
CUDA_ENGINES(random_direct) = { row, sizeof row / sizeof *row };
