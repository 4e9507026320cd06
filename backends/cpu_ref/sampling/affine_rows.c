/* affine_rows.c -- affine_grid and its gradient in f32, a row of the grid at a time.
 *
 *   along a row of points (x, y, z, 1) only x changes: grid_i = theta_ix x + a constant of the row; and dtheta needs only the row's
 *   sums of dy_i and dy_i x, multiplied by its y, z and 1 */
#include "kit/convert.h"
#include "cpu_ref.h"

enum { SPAN = 256 };                      /* points */

typedef struct affine {
  int32_t  in, out, dims;
  bool     backward;
  uint32_t in_dtype, out_dtype;
  int64_t  images, rows, extent[3], theta_stride[3];        /* extent: x's first; rows per image */
  double   scale[3];                      /* inverse of what 2i + 1 - n is divided by */
} affine;

static double entry(const affine *s, int d, int64_t i) { return (double)(2 * i + 1 - s->extent[d]) * s->scale[d]; }

/* y, z and 1 of a row, stored from index 1 on. */
static void row_entries(const affine *s, int64_t row, double *e)
{
  for (int d = 1; d < s->dims; d++) {
    e[d] = entry(s, d, row % s->extent[d]);
    row /= s->extent[d];
  }
  e[s->dims] = 1;
}

static int64_t theta_at(const affine *s, int64_t image, int i, int j)
{
  return image * s->theta_stride[0] + i * s->theta_stride[1] + j * s->theta_stride[2];
}

static void map_row(const affine *s, const qn_launch *launch, int64_t image, int64_t row)
{
  const char *theta = launch->ptr[s->in];
  double e[4];
  float slope[3], rest[3], to[3 * SPAN];
  row_entries(s, row, e);
  for (int i = 0; i < s->dims; i++) {
    double sum = 0;
    for (int j = 1; j <= s->dims; j++) sum += qn_load_f64(theta + theta_at(s, image, i, j) * qn_kit_bytes(s->in_dtype), s->in_dtype) * e[j];
    slope[i] = (float)qn_load_f64(theta + theta_at(s, image, i, 0) * qn_kit_bytes(s->in_dtype), s->in_dtype);
    rest[i] = (float)sum;
  }
  for (int64_t first = 0; first < s->extent[0]; first += SPAN) {
    const int64_t n = qn_min_i64(SPAN, s->extent[0] - first);
    for (int64_t p = 0; p < n; p++)
      for (int i = 0; i < s->dims; i++) to[p * s->dims + i] = slope[i] * (float)entry(s, 0, first + p) + rest[i];
    const int64_t at = ((image * s->rows + row) * s->extent[0] + first) * s->dims;
    row_from_f32((char *)launch->ptr[s->out] + at * qn_kit_bytes(s->out_dtype), to, s->out_dtype, n * s->dims);
  }
}

static void sum_image(const affine *s, const qn_launch *launch, int64_t image)
{
  double total[3][4] = { { 0 } };
  for (int64_t row = 0; row < s->rows; row++) {
    double e[4];
    float wide[3 * SPAN];
    row_entries(s, row, e);
    for (int64_t first = 0; first < s->extent[0]; first += SPAN) {
      float sum[3] = { 0 }, along[3] = { 0 };
      const int64_t n = qn_min_i64(SPAN, s->extent[0] - first), at = ((image * s->rows + row) * s->extent[0] + first) * s->dims;
      row_to_f32(wide, (const char *)launch->ptr[s->in] + at * qn_kit_bytes(s->in_dtype), s->in_dtype, n * s->dims);
      for (int64_t p = 0; p < n; p++)
        for (int i = 0; i < s->dims; i++) {
          sum[i] += wide[p * s->dims + i];
          along[i] += wide[p * s->dims + i] * (float)entry(s, 0, first + p);
        }
      for (int i = 0; i < s->dims; i++) {
        total[i][0] += (double)along[i];
        for (int j = 1; j <= s->dims; j++) total[i][j] += (double)sum[i] * e[j];
      }
    }
  }
  for (int i = 0; i < s->dims; i++)
    for (int j = 0; j <= s->dims; j++)
      qn_store_f64((char *)launch->ptr[s->out] + theta_at(s, image, i, j) * qn_kit_bytes(s->out_dtype), s->out_dtype, total[i][j]);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const affine *s = prepared->state;
  const int64_t all = s->backward ? s->images : s->images * s->rows;
  const int threads = (int)qn_min_i64(cpu_threads(launch, s->images * s->rows * s->extent[0] * s->dims), all);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
  for (int64_t i = 0; i < all; i++) {
    if (s->backward) sum_image(s, launch, i);
    else map_row(s, launch, i / s->rows, i % s->rows);
  }
  return QN_OK;
}

static qn_status prepare(const qn_request *request, qn_prepared *prepared)
{
  const qn_node *op = &request->op[0];
  affine s = { .in = op->arg[0], .out = op->arg[1], .backward = op->op == QN_OP_AFFINE_GRID_BACKWARD };
  const qn_value *in = &request->value[s.in], *out = &request->value[s.out], *grid = s.backward ? in : out, *theta = s.backward ? out : in;
  const bool corners = ((const qn_sampling *)op->attr)->align_corners;
  if (in->dtype == QN_F64) return qn_refuse(prepared, "accumulates in f32", "theta", "f32, f16 or bf16", "%s", "f64");
  if (!qn_is_packed(grid))
    return qn_refuse(prepared, "the grid is packed", s.backward ? "dy" : "grid", "row-major without gaps", "%s", "strides");
  s.in_dtype = in->dtype, s.out_dtype = out->dtype, s.dims = grid->rank - 2, s.images = grid->dim[0], s.rows = 1;
  memcpy(s.theta_stride, theta->stride, sizeof s.theta_stride);
  for (int d = 0; d < s.dims; d++) {
    const int64_t n = s.extent[d] = grid->dim[s.dims - d];
    s.scale[d] = n > 1 ? 1.0 / (double)(corners ? n - 1 : n) : 1;
    if (d) s.rows *= n;
  }
  return cpu_keep(prepared, &s, sizeof s);
}

#define AFFINE_ROW(anchor)                                                                         \
  { .name = "rows", .op = anchor, .class_ = QN_CLASS_TUNED,                                           \
    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, .prepare = prepare, .run = run, .release = cpu_release }
static const qn_engine rows[] = { AFFINE_ROW(QN_OP_AFFINE_GRID), AFFINE_ROW(QN_OP_AFFINE_GRID_BACKWARD) };
const qn_engine_list cpu_affine_rows = { rows, sizeof rows / sizeof *rows };
