/* pool_adaptive_planes.c -- adaptive pooling and its gradients, a plane of one channel by one thread.
 *
 * Where a plane is not f32 without gaps it is copied to f32 first, and back at the end, so that all layouts and dtypes have one loop;
 * of channels that lie side by side a block at once, so that what is fetched is used.
 * Backward, each window in turn adds its gradient to the places it holds, or to its index if that is one of them: the sums of a
 * place have the order of the windows. */
#include "convert.h"
#include "cpu_ref.h"

enum { GRAIN = 16384, BLOCK = 16 };       /* elements that are worth a thread; channels copied at once */

typedef struct plane { int32_t value; uint32_t dtype; int64_t bytes, dim[3], stride[5], elements; bool packed; } plane;

typedef struct sharing {
  plane    x, y, indices;                 /* the large side (x or dx), the small one (y or dy); indices.value -1: none */
  bool     average, backward;
  int32_t  threads;                       /* that the workspace has room for */
  int64_t  n, c, block, scratch;          /* block: channels at a time; scratch: floats of one thread */
} sharing;

static plane plane_of(const qn_value *v, int32_t value)
{
  plane p = { .value = value, .dtype = v->dtype, .bytes = qn_kit_bytes(v->dtype), .dim = { 1, 1, 1 }, .elements = 1 };
  for (int32_t d = 0; d < v->rank; d++) p.stride[d < 2 ? d : d + 5 - v->rank] = v->stride[d];
  for (int32_t d = 2; d < v->rank; d++) p.elements *= p.dim[d + 3 - v->rank] = v->dim[d];
  p.packed = v->dtype == QN_F32 && qn_is_packed_from(v, 2);
  return p;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_node *op = &request->op[0];
  const int32_t first = op->arg[0], out = op->arg[op->first[op->n_inputs]];
  const qn_value *v = &request->value[first];
  if (v->dtype == QN_F64) return qn_refuse(prepared, "sums are made in f32", "x", "f32, f16 or bf16", "%s", "f64");
  sharing s = { .indices.value = -1, .n = v->dim[0], .c = v->dim[1], .threads = request->demands->threads };
  s.backward = op->op == QN_OP_POOL_ADAPTIVE_MAX_BACKWARD || op->op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
  s.average = op->op == QN_OP_POOL_ADAPTIVE_AVERAGE || op->op == QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD;
  s.x = plane_of(&request->value[s.backward ? out : first], s.backward ? out : first);
  s.y = plane_of(&request->value[s.backward ? first : out], s.backward ? first : out);
  const int32_t indices = s.average ? -1 : qn_role(op, s.backward ? QN_ROLE_POOL_ADAPTIVE_MAX_BACKWARD_INDICES : QN_ROLE_POOL_ADAPTIVE_MAX_INDICES);
  if (indices >= 0) s.indices = plane_of(&request->value[indices], indices);
  const bool copied = !s.x.packed || !s.y.packed, adjacent = (s.x.packed || s.x.stride[1] == 1) && (s.y.packed || s.y.stride[1] == 1);
  s.block = copied && adjacent && s.x.elements < 1 << 22 ? qn_min_i64(BLOCK, s.c) : 1;
  s.scratch = s.block * qn_round_up(s.x.elements + s.y.elements, 16);
  if (s.scratch > 1 << 26) return qn_refuse(prepared, "planes fit in memory once more", "x", "2^26 places", "%lld", (long long)s.scratch);
  prepared->workspace = (uint64_t)(s.threads * s.scratch) * 4;
  return cpu_keep(prepared, &s, sizeof s);
}

/* ---- planes ----------------------------------------------------------------------------------------------------- */

static char *plane_at(const plane *p, const qn_launch *launch, int64_t n, int64_t c)
{
  return (char *)launch->ptr[p->value] + (n * p->stride[0] + c * p->stride[1]) * p->bytes;
}

/* Between memory and f32 without gaps, n neighbouring channels, whose planes lie `pitch` apart there. */
static void copy_planes(const plane *p, char *memory, float *packed, int64_t pitch, int64_t n, bool out)
{
  float pixel[BLOCK];
  for (int64_t i = 0; i < p->elements; i++) {
    const int64_t at = i / (p->dim[1] * p->dim[2]) * p->stride[2] + i / p->dim[2] % p->dim[1] * p->stride[3] + i % p->dim[2] * p->stride[4];
    char *element = memory + at * p->bytes;
    for (int64_t k = 0; k < n && out; k++) pixel[k] = packed[k * pitch + i];
    if (out) row_from_f32(element, pixel, p->dtype, n);
    else row_to_f32(pixel, element, p->dtype, n);
    for (int64_t k = 0; k < n && !out; k++) packed[k * pitch + i] = pixel[k];
  }
}

/* Of window i in dim d: where it begins and ends. */
static int64_t window_of(const sharing *s, int d, int64_t i, int64_t *end)
{
  *end = qn_ceil_div((i + 1) * s->x.dim[d], s->y.dim[d]);
  return i * s->x.dim[d] / s->y.dim[d];
}

static void pool_plane(const sharing *s, float *x, float *y, char *indices)
{
  const int64_t rows = s->x.dim[1], columns = s->x.dim[2];
  for (int64_t o = 0; o < s->y.elements; o++) {
    const int64_t at[3] = { o / (s->y.dim[1] * s->y.dim[2]), o / s->y.dim[2] % s->y.dim[1], o % s->y.dim[2] };
    int64_t begin[3], end[3];
    for (int d = 0; d < 3; d++) begin[d] = window_of(s, d, at[d], &end[d]);
    const float places = (float)((end[0] - begin[0]) * (end[1] - begin[1]) * (end[2] - begin[2]));
    char *number = indices ? indices + (at[0] * s->indices.stride[2] + at[1] * s->indices.stride[3] + at[2] * s->indices.stride[4]) * s->indices.bytes : NULL;
    if (s->backward && !s->average) {     /* one place of the window */
      const int64_t place = qn_load_i64(number, s->indices.dtype), there[3] = { place / (rows * columns), place / columns % rows, place % columns };
      bool inside = place >= 0 && place < s->x.elements;
      for (int d = 0; d < 3; d++) inside = inside && there[d] >= begin[d] && there[d] < end[d];
      if (inside) x[place] += y[o];
      continue;
    }
    const float share = s->backward ? y[o] / places : 0;
    float held = s->average ? 0 : -INFINITY;
    int64_t best = (begin[0] * rows + begin[1]) * columns + begin[2];
    for (int64_t a = begin[0]; a < end[0]; a++)
      for (int64_t b = begin[1]; b < end[1]; b++) {
        float *row = x + (a * rows + b) * columns;
        if (s->backward)
          for (int64_t c = begin[2]; c < end[2]; c++) row[c] += share;
        else if (s->average)
#pragma omp simd reduction(+:held)
          for (int64_t c = begin[2]; c < end[2]; c++) held += row[c];
        else for (int64_t c = begin[2]; c < end[2]; c++)
          if (row[c] > held || (row[c] != row[c] && held == held)) held = row[c], best = (a * rows + b) * columns + c;
      }
    if (!s->backward) y[o] = s->average ? held / places : held;
    if (!s->backward && number) qn_store_i64(number, s->indices.dtype, best);
  }
}

/* Channels c to c + n - 1 of an image. */
static void pool_block(const sharing *s, const qn_launch *launch, float *scratch, int64_t image, int64_t c, int64_t n)
{
  const int64_t pitch = s->scratch / s->block;
  char *x_at = plane_at(&s->x, launch, image, c), *y_at = plane_at(&s->y, launch, image, c);
  if (!s->backward && !s->x.packed) copy_planes(&s->x, x_at, scratch, pitch, n, false);
  if (s->backward && !s->y.packed) copy_planes(&s->y, y_at, scratch + s->x.elements, pitch, n, false);
  for (int64_t k = 0; k < n; k++) {
    float *x = s->x.packed ? (float *)(void *)plane_at(&s->x, launch, image, c + k) : scratch + k * pitch;
    float *y = s->y.packed ? (float *)(void *)plane_at(&s->y, launch, image, c + k) : scratch + k * pitch + s->x.elements;
    if (s->backward) memset(x, 0, (size_t)s->x.elements * 4);
    pool_plane(s, x, y, s->indices.value < 0 ? NULL : plane_at(&s->indices, launch, image, c + k));
  }
  if (s->backward && !s->x.packed) copy_planes(&s->x, x_at, scratch, pitch, n, true);
  if (!s->backward && !s->y.packed) copy_planes(&s->y, y_at, scratch + s->x.elements, pitch, n, true);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const sharing *s = prepared->state;
  const int64_t a_image = qn_ceil_div(s->c, s->block), blocks = s->n * a_image, work = s->n * s->c * (s->x.elements + s->y.elements);
  const int threads = (int)qn_min_i64(qn_min_i64(qn_min_i64(launch->threads, s->threads), 1 + work / GRAIN), blocks);
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
  for (int t = 0; t < threads; t++)
    for (int64_t i = blocks * t / threads; i < blocks * (t + 1) / threads; i++) {
      const int64_t c = i % a_image * s->block;
      pool_block(s, launch, (float *)launch->workspace + t * s->scratch, i / a_image, c, qn_min_i64(s->block, s->c - c));
    }
  return QN_OK;
}

#define ROW(anchor)                                                                                                  \
  { .name = "planes", .op = anchor, .class_ = QN_CLASS_TUNED,                                                         \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare, .run = run, .release = cpu_release }
static const qn_engine row[] = {
  ROW(QN_OP_POOL_ADAPTIVE_MAX),
  ROW(QN_OP_POOL_ADAPTIVE_MAX_BACKWARD),
  ROW(QN_OP_POOL_ADAPTIVE_AVERAGE),
  ROW(QN_OP_POOL_ADAPTIVE_AVERAGE_BACKWARD),
};
const qn_engine_list cpu_pool_adaptive_planes = { row, sizeof row / sizeof *row };
