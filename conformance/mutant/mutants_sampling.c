/* mutants_sampling.c -- bugs of a spatial transformer: the position of -1 and 1, what is outside, the order of coordinates. */
#include "mutant.h"

static qn_sampling *attributes(struct mut_kept *k) { return (qn_sampling *)(void *)k->attr; }

bool sp_corners_aligned(struct mut_kept *k)
{
  bool shows = !attributes(k)->align_corners;
  attributes(k)->align_corners = 1;
  return shows;
}

bool sp_border_for_zeros(struct mut_kept *k)
{
  bool shows = attributes(k)->padding == QN_SAMPLE_ZEROS;
  attributes(k)->padding = QN_SAMPLE_BORDER;
  return shows;
}

bool sp_reflection_is_border(struct mut_kept *k)
{
  bool shows = attributes(k)->padding == QN_SAMPLE_REFLECTION;
  attributes(k)->padding = QN_SAMPLE_BORDER;
  return shows;
}

bool sp_cubic_is_linear(struct mut_kept *k)
{
  bool shows = attributes(k)->mode == QN_RESAMPLE_CUBIC;
  attributes(k)->mode = shows ? QN_RESAMPLE_LINEAR : attributes(k)->mode;
  return shows;
}

/* Swaps row and column of points, or of theta's output. */
static void swap_coordinates(struct mut_call *c, uint32_t role)
{
  const qn_value *grid = mut_value(c->k, role);
  void *p = mut_copy(c, role);
  int64_t d = grid->dim[grid->rank - 1];
  for (int64_t i = 0; i + 1 < qn_elements(grid); i += d) {
    double first = mut_get(grid, p, i);
    mut_put(grid, p, i, mut_get(grid, p, i + 1));
    mut_put(grid, p, i + 1, first);
  }
}
void sp_coordinates_swapped(struct mut_call *c) { swap_coordinates(c, QN_ROLE_GRID_SAMPLE_GRID); }

/* The last point of each line adds nothing. */
void sp_last_point_lost(struct mut_call *c)
{
  const qn_value *dy = mut_value(c->k, QN_ROLE_GRID_SAMPLE_BACKWARD_DATA_DY);
  void *p = mut_copy(c, QN_ROLE_GRID_SAMPLE_BACKWARD_DATA_DY);
  for (int64_t i = 0; i < qn_elements(dy); i++)
    if ((i + 1) % dy->dim[dy->rank - 1] == 0)
      mut_put(dy, p, i, 0);
}

/* The gradient by position instead of by coordinate: not multiplied by half the extent. */
void sp_slope_unscaled(struct mut_call *c)
{
  const qn_value *dgrid = mut_value(c->k, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_DGRID),
      *x = mut_value(c->k, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_X);
  void *p = mut_pointer(c, QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_DGRID);
  int64_t d = dgrid->dim[dgrid->rank - 1];
  for (int64_t i = 0; i < qn_elements(dgrid); i++)
    mut_put(dgrid, p, i, mut_get(dgrid, p, i) * 2 / (double)x->dim[x->rank - 1 - i % d]);
}

/* The translation is ignored. */
void sp_translation_lost(struct mut_call *c)
{
  const qn_value *theta = mut_value(c->k, QN_ROLE_AFFINE_GRID_THETA);
  void *p = mut_copy(c, QN_ROLE_AFFINE_GRID_THETA);
  for (int64_t i = theta->dim[2] - 1; i < qn_elements(theta); i += theta->dim[2])
    mut_put(theta, p, i, 0);
}
