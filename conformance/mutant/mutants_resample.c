/* mutants_resample.c -- bugs of resampling: grids, kernels, edges. */
#include "mutant.h"

static qn_resampling *attributes(struct mut_kept *k) { return (qn_resampling *)(void *)k->attr; }

bool rs_half_pixel_ignored(struct mut_kept *k)
{
  bool shows = attributes(k)->grid == QN_GRID_HALF_PIXEL;
  attributes(k)->grid = QN_GRID_ASYMMETRIC;
  return shows;
}

bool rs_corners_not_aligned(struct mut_kept *k)
{
  bool shows = attributes(k)->grid == QN_GRID_ALIGN_CORNERS;
  attributes(k)->grid = QN_GRID_HALF_PIXEL;
  return shows;
}

bool rs_cubic_is_linear(struct mut_kept *k)
{
  bool shows = attributes(k)->mode == QN_RESAMPLE_CUBIC;
  attributes(k)->mode = QN_RESAMPLE_LINEAR;
  return shows;
}

/* A loop over points that ends one short. */
void rs_last_point_lost(struct mut_call *c)
{
  const qn_value *dy = mut_value(c->k, QN_ROLE_RESAMPLE_BACKWARD_DY);
  void *p = mut_copy(c, QN_ROLE_RESAMPLE_BACKWARD_DY);
  for (int64_t i = 0; i < qn_elements(dy); i++)
    if ((i + 1) % dy->dim[dy->rank - 1] == 0)
      mut_put(dy, p, i, 0);
}

/* Taps before the first element of the last dim are lost: here it gets half. */
void rs_edges_weigh_less(struct mut_call *c)
{
  const qn_value *dx = mut_value(c->k, QN_ROLE_RESAMPLE_BACKWARD_DX);
  void *p = mut_pointer(c, QN_ROLE_RESAMPLE_BACKWARD_DX);
  for (int64_t i = 0; i < qn_elements(dx); i += dx->dim[dx->rank - 1])
    mut_put(dx, p, i, mut_get(dx, p, i) / 2);
}

bool rs_rounding_ignored(struct mut_kept *k)
{
  qn_resampling *a = (qn_resampling *)(void *)k->attr;
  bool shows = a->rounding != QN_ROUNDING_AUTO;
  a->rounding = QN_ROUNDING_AUTO;
  return shows;
}

bool rs_usual_kernel(struct mut_kept *k)
{
  qn_resampling *a = (qn_resampling *)(void *)k->attr;
  bool shows = a->coefficient != -0.75;
  a->coefficient = -0.75;
  return shows;
}

bool rs_antialias_ignored(struct mut_kept *k)
{
  qn_resampling *a = (qn_resampling *)(void *)k->attr;
  bool shows = a->antialias != 0;
  a->antialias = 0;
  return shows;
}

/* The extents' ratio in place of the scale factor. */
bool rs_scale_ignored(struct mut_kept *k)
{
  qn_resampling *a = attributes(k);
  bool shows = false;
  for (int d = 0; d < 3; d++)
    shows |= a->up[d] != 0, a->up[d] = 0, a->down[d] = 1;
  return shows;
}
