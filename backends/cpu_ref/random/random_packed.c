/* random_packed.c -- random numbers and dropout on packed f32, f16 and bf16, vectorised: Philox on many counters at a time, then
 * a loop over a span of words.
 *
 * Each span is done by one thread. Words depend on the element index only, so the number of threads changes nothing, and results equal
 * the oracle's, for normal numbers up to f32 rounding. */
#include <float.h>
#include "kit/convert.h"
#include "cpu_ref.h"
#include "kit/pointwise_math.h"

enum { SPAN = 1024 };                     /* elements; a multiple of 64, which draw makes at a time, and of 8 for mask bytes */
enum { NONE = -1 };

typedef struct problem {
  uint32_t op, x_dtype, y_dtype;
  int32_t  x, y, mask, mask_out, seed, offset;      /* values of the request; NONE: absent */
  uint32_t seed_dtype, offset_dtype;
  int64_t  elements;
  double   a, b;                          /* the attributes: min, max; mean, deviation; p */
} problem;

/* ---- loops ----------------------------------------------------------------------------------------------- */

/* The words of n elements from `first` on; rounds up to whole groups of blocks, within the span. */
static void draw(uint32_t word[SPAN], uint64_t seed, uint64_t offset, int64_t first, int64_t n)
{
  enum { BLOCKS = 16 };                   /* side by side, then transposed into element order */
  for (int64_t i = 0; i < n; i += 4 * BLOCKS) {
    uint32_t a[BLOCKS], b[BLOCKS], c[BLOCKS], d[BLOCKS];
    const uint64_t block = (uint64_t)(first + i) / 4;
    for (int k = 0; k < BLOCKS; k++) {
      uint32_t w[4];
      qn_random_words(w, seed, offset, block + (uint64_t)k);
      a[k] = w[0], b[k] = w[1], c[k] = w[2], d[k] = w[3];
    }
    for (int k = 0; k < BLOCKS; k++) {
      uint32_t *to = word + i + 4 * k;
      to[0] = a[k], to[1] = b[k], to[2] = c[k], to[3] = d[k];
    }
  }
}

static void uniform_unit(float *restrict y, const uint32_t *restrict word, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (float)(int32_t)(word[i] >> 8) * 0x1p-24f;
}

static void uniform_range(float *restrict y, const uint32_t *restrict word, double min, double span, int64_t n)
{
  for (int64_t i = 0; i < n; i++) y[i] = (float)fma(span, (int32_t)(word[i] >> 8) * 0x1p-24, min);
}

static void normal(float *restrict y, const uint32_t *restrict word, float mean, float deviation, int64_t n)
{
#pragma omp simd
  for (int64_t k = 0; k < (n + 1) / 2; k++) {
    const float v = (float)(int32_t)((word[2 * k] >> 8) + 1) * 0x1p-24f, radius = sqrtf(-2.0f * m_log(v));
    const int32_t turn = (int32_t)(word[2 * k + 1] >> 8), quarter = (turn + (1 << 21)) >> 22;
    const float t = (float)(turn - quarter * (1 << 22)) * 3.74507039e-7f;          /* 2 pi / 2^24 */
    y[2 * k] = mean + deviation * (radius * m_sin_of(t, quarter + 1));
    y[2 * k + 1] = mean + deviation * (radius * m_sin_of(t, quarter));
  }
}

/* One bit per word: did the event happen? words: the number of the 2^32 words for which it does. */
static void events(uint8_t *restrict yes, const uint32_t *restrict word, uint64_t words, int64_t n)
{
  const uint32_t last = (uint32_t)(words - 1);
  const uint8_t any = words > 0;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) yes[i] = (uint8_t)(word[i] <= last) & any;
}

static void scale_kept(float *restrict y, const float *restrict x, const uint8_t *restrict drop, float scale, int64_t n)
{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float scaled = x[i] * scale;
    y[i] = drop[i] ? 0 : scaled;
  }
}

static void bits_to_drops(uint8_t *restrict drop, const uint8_t *restrict mask, int64_t n)
{
  for (int64_t i = 0; i < n; i++) drop[i] = !(mask[i / 8] >> i % 8 & 1);
}

static void drops_to_bits(uint8_t *restrict mask, const uint8_t *restrict drop, int64_t n)
{
  for (int64_t octet = 0; octet < (n + 7) / 8; octet++) {
    unsigned bits = 0;
    for (int64_t i = 8 * octet; i < n && i < 8 * octet + 8; i++) bits |= (unsigned)!drop[i] << i % 8;
    mask[octet] = (uint8_t)bits;
  }
}

/* ---- a span ---------------------------------------------------------------------------------------------------- */

typedef struct memory { const char *x; char *y; const uint8_t *mask; uint8_t *mask_out; uint64_t seed, offset; } memory;

static void one_span(const problem *p, const memory *at, int64_t first, int64_t n)
{
  uint32_t word[SPAN];
  uint8_t event[SPAN];
  float in[SPAN], out[SPAN + 1];          /* normal numbers come in pairs */
  if (!at->mask) draw(word, at->seed, at->offset, first, n);
  switch (p->op) {
  case QN_OP_RNG_UNIFORM:
    if (p->a == 0 && p->b == 1) uniform_unit(out, word, n);
    else uniform_range(out, word, p->a, p->b - p->a, n);
    break;
  case QN_OP_RNG_NORMAL:
    normal(out, word, (float)p->a, (float)p->b, n);
    break;
  case QN_OP_RNG_BERNOULLI:
    events(event, word, qn_chance_words(p->a), n);
    for (int64_t i = 0; i < n; i++) out[i] = event[i];
    break;
  default:
    if (at->mask) bits_to_drops(event, at->mask + first / 8, n);
    else events(event, word, qn_chance_words(p->a), n);
    if (at->mask_out) drops_to_bits(at->mask_out + first / 8, event, n);
    row_to_f32(in, at->x + first * qn_kit_bytes(p->x_dtype), p->x_dtype, n);
    scale_kept(out, in, event, (float)(1 / (1 - p->a)), n);
  }
  row_from_f32(at->y + first * qn_kit_bytes(p->y_dtype), out, p->y_dtype, n);
}

CPU_RUNS(cpu_random_packed_run);
qn_status CPU_NAME(cpu_random_packed_run)(const qn_prepared *prepared, const qn_launch *launch)
{
  const problem *p = prepared->state;
  const memory at = {
    .x = p->x < 0 ? NULL : launch->ptr[p->x], .y = launch->ptr[p->y],
    .mask = p->mask < 0 ? NULL : launch->ptr[p->mask], .mask_out = p->mask_out < 0 ? NULL : launch->ptr[p->mask_out],
    .seed = p->seed < 0 ? 0 : (uint64_t)qn_load_i64(launch->ptr[p->seed], p->seed_dtype),
    .offset = p->offset < 0 ? 0 : (uint64_t)qn_load_i64(launch->ptr[p->offset], p->offset_dtype),
  };
  const int threads = cpu_threads(launch, p->elements * 4);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t first = 0; first < p->elements; first += SPAN)
    one_span(p, &at, first, qn_min_i64(SPAN, p->elements - first));
  return QN_OK;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

#ifdef CPU_BASELINE
static qn_status packed_floats(const qn_request *request, qn_prepared *prepared, int32_t value, const char *name)
{
  const qn_value *v = &request->value[value];
  if (v->dtype != QN_F32 && v->dtype != QN_F16 && v->dtype != QN_BF16)
    return qn_refuse(prepared, "computes in f32", name, "f32, f16, bf16", "%s", qn_kit_name(v->dtype));
  if (!qn_is_packed(v))
    return qn_refuse(prepared, "elements are counted in memory order", name, "packed, the last dim fastest", "%s", "other strides");
  return QN_OK;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  qn_status status = cpu_isa_check(request, prepared);
  if (status) return status;
  const qn_node *op = &request->op[0];
  const qn_random_roles r = qn_random_roles_of(op->op);
  problem p = { .op = op->op, .x = qn_role_at(op, r.x), .y = qn_role_at(op, r.y), .mask = qn_role_at(op, r.mask),
                .mask_out = qn_role_at(op, r.mask_out), .seed = qn_role_at(op, r.seed), .offset = qn_role_at(op, r.offset) };
  if (p.x >= 0 && (status = packed_floats(request, prepared, p.x, "x"))) return status;
  if ((status = packed_floats(request, prepared, p.y, "y"))) return status;
  const int32_t mask = p.mask < 0 ? p.mask_out : p.mask;
  if (mask >= 0 && !qn_is_packed(&request->value[mask]))
    return qn_refuse(prepared, "the mask's bytes are contiguous", "mask", "stride 1", "%lld", (long long)request->value[mask].stride[0]);
  memcpy(&p.a, (const char *)op->attr + offsetof(qn_uniform, min), sizeof p.a);       /* all three structs begin alike */
  if (p.op == QN_OP_RNG_UNIFORM || p.op == QN_OP_RNG_NORMAL) p.b = ((const qn_uniform *)op->attr)->max;
  p.x_dtype = p.x < 0 ? 0 : request->value[p.x].dtype;
  p.y_dtype = request->value[p.y].dtype;
  if (p.op == QN_OP_RNG_UNIFORM && p.y_dtype != QN_F32 && !(p.a == 0 && p.b == 1))
    return qn_refuse(prepared, "a 16-bit number is rounded once, from f64", "y", "f32, or min=0 max=1", "%s", qn_kit_name(p.y_dtype));
  if (p.op == QN_OP_RNG_NORMAL && qn_normal_reach(p.a, p.b) > FLT_MAX)
    return qn_refuse(prepared, "computes in f32", "y", "|mean| + 6 deviation within f32's range", "%g", qn_normal_reach(p.a, p.b));
  if (p.seed >= 0) p.seed_dtype = request->value[p.seed].dtype;
  if (p.offset >= 0) p.offset_dtype = request->value[p.offset].dtype;
  p.elements = qn_elements(&request->value[p.y]);

  return cpu_keep(prepared, &p, sizeof p);
}

#define ROW(name_, run_, anchor)                                                                                 \
  { .name = name_, .op = anchor, .class_ = QN_CLASS_TUNED,                                                       \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT, .prepare = prepare, .run = run_, .release = cpu_release }
#define ROWS(name, run)                                                                                          \
  ROW(name, run, QN_OP_RNG_UNIFORM), ROW(name, run, QN_OP_RNG_NORMAL), ROW(name, run, QN_OP_RNG_BERNOULLI),       \
  ROW(name, run, QN_OP_DROPOUT), ROW(name, run, QN_OP_DROPOUT_BACKWARD),
static const qn_engine row[] = { CPU_COPIES(ROWS, "packed", cpu_random_packed_run) };
const qn_engine_list cpu_random_packed = { row, sizeof row / sizeof *row };
#endif
