/* random_direct.c -- random numbers and dropout, element by element, each drawing its own word.
 *
 *   word of element i = Philox 4x32-10 (key seed, counter (i / 4, offset))[i % 4]
 *   uniform   min + (max - min) u, u = (word >> 8) / 2^24            bernoulli  word < 2^32 p
 *   normal    mean + deviation sqrt(-2 ln v) (cos 2 pi u, sin 2 pi u), v = ((word >> 8) + 1) / 2^24 of the first of a pair
 *   dropout   word < 2^32 p ? 0 : x / (1 - p) */
#include "direct.h"

typedef struct problem {
  uint32_t   op;
  cpu_tensor x, y, mask, mask_out;
  int64_t    seed, offset;
  const void *attr;
} problem;

static uint32_t word_of(const problem *v, int64_t i)
{
  const uint64_t low = UINT64_C(0xffffffff), at = (uint64_t)i / 4, offset = (uint64_t)v->offset;
  uint64_t c[4] = { at & low, at >> 32, offset & low, offset >> 32 };
  cpu_philox(c, (uint64_t)v->seed);
  return (uint32_t)c[i % 4];
}

static double uniform(uint32_t word) { return (word >> 8) * 0x1p-24; }

/* By quarter turns, so that cos and sin are exact at multiples of a quarter. */
static long double normal(const problem *v, int64_t i)
{
  const double u = uniform(word_of(v, i | 1));
  const int quarter = (int)floor(4 * u + 0.5), turned = quarter + (i % 2 ? 0 : 1);
  const long double t = (u - quarter / 4.0) * 6.283185307179586476925286766559L;
  const long double radius = sqrtl(-2 * logl(uniform(word_of(v, i & ~INT64_C(1))) + 0x1p-24L));
  const long double side = turned % 2 ? cosl(t) : sinl(t);
  return radius * (turned / 2 % 2 ? -side : side);
}

static int dropped(const problem *v, int64_t i, double p)
{
  if (v->mask.p) return !(*cpu_at(&v->mask, i / 8 * v->mask.stride[0]) >> i % 8 & 1);
  return word_of(v, i) < p * 0x1p32;
}

static void one_element(const problem *v, int64_t i)
{
  int64_t index[QN_MAX_RANK];
  cpu_place(i, v->y.rank, v->y.dim, index);
  const int64_t to = cpu_offset(v->y.rank, index, v->y.stride);
  const double p = v->op == QN_OP_RNG_UNIFORM || v->op == QN_OP_RNG_NORMAL ? 0 : ((const qn_chance *)v->attr)->p;
  const qn_uniform *range = v->attr;
  const qn_gauss *gauss = v->attr;
  switch (v->op) {
  case QN_OP_RNG_UNIFORM:
    cpu_put(&v->y, to, fma(range->max - range->min, uniform(word_of(v, i)), range->min));
    break;
  case QN_OP_RNG_NORMAL:
    cpu_put(&v->y, to, (double)(gauss->mean + gauss->deviation * normal(v, i)));
    break;
  case QN_OP_RNG_BERNOULLI:
    cpu_put(&v->y, to, word_of(v, i) < p * 0x1p32);
    break;
  default:
    cpu_put(&v->y, to, dropped(v, i, p) ? 0 : cpu_get(&v->x, cpu_offset(v->x.rank, index, v->x.stride)) / (1 - p));
  }
}

static cpu_tensor part(const qn_prepared *p, const qn_launch *launch, int8_t role)
{
  const cpu_tensor none = { 0 };
  return role < 0 ? none : cpu_tensor_of(p, launch, (uint32_t)role, 0);
}

static int64_t key(cpu_tensor t) { return t.p ? qn_load_i64(t.p, t.dtype) : 0; }

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const cpu_kept *kept = p->state;
  const qn_random_roles r = qn_random_roles_of(kept->op);
  const problem v = {
    .op = kept->op, .attr = kept->attr, .x = part(p, launch, r.x), .y = part(p, launch, r.y), .mask = part(p, launch, r.mask),
    .mask_out = part(p, launch, r.mask_out), .seed = key(part(p, launch, r.seed)), .offset = key(part(p, launch, r.offset)),
  };
#pragma omp parallel for num_threads(cpu_team(launch, v.y.elements, 60))
  for (int64_t i = 0; i < v.y.elements; i++) one_element(&v, i);
  if (!v.mask_out.p) return QN_OK;
#pragma omp parallel for num_threads(cpu_team(launch, v.mask_out.elements, 400))
  for (int64_t octet = 0; octet < v.mask_out.elements; octet++) {
    unsigned bits = 0;
    for (int64_t i = 8 * octet; i < qn_min_i64(8 * octet + 8, v.y.elements); i++)
      bits |= (unsigned)!dropped(&v, i, ((const qn_chance *)v.attr)->p) << i % 8;
    *cpu_at(&v.mask_out, octet * v.mask_out.stride[0]) = (unsigned char)bits;
  }
  return QN_OK;
}

static const qn_engine row[] = {
  CPU_DIRECT_ROW(QN_OP_RNG_UNIFORM, run),
  CPU_DIRECT_ROW(QN_OP_RNG_NORMAL, run),
  CPU_DIRECT_ROW(QN_OP_RNG_BERNOULLI, run),
  CPU_DIRECT_ROW(QN_OP_DROPOUT, run),
  CPU_DIRECT_ROW(QN_OP_DROPOUT_BACKWARD, run),
};
const qn_engine_list cpu_random_direct = { row, sizeof row / sizeof *row };
