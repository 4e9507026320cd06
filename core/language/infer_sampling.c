/* infer_sampling.c -- values at points given by a tensor: an image [N, C, X], points [N, P, d], sampled values [N, C, P]. */
#include <string.h>
#include "problem.h"

/* A given tensor of this rank, with these extents in dims 0 and `at`. */
static qn_status settle_ends(const qn__problem *p, uint32_t role, int rank, int64_t first, int at, int64_t other, uint32_t dtype)
{
  const qn_value *v = qn__arg(p, role);
  int64_t dim[QN_MAX_RANK];
  if (v->rank != rank) return qn__refuse(p, qn__role_name(p, role), "rank is %d; must be %d", (int)v->rank, rank);
  memcpy(dim, v->dim, sizeof dim);
  dim[0] = first;
  dim[at] = other;
  return qn__settle(p, role, dtype, rank, dim);
}

static qn_status infer_affine(const qn__problem *p)
{
  bool backward = p->op->forward != 0;
  const qn_value *in = qn__arg(p, 0), *out = qn__arg(p, 1);
  int d = backward ? in->rank - 2 : (int)in->dim[1];
  const char *name = qn__role_name(p, 0);
  if (backward ? in->rank < 4 || in->rank > 5 || in->dim[in->rank - 1] != d : in->rank != 3 || d < 2 || d > 3 || in->dim[2] != d + 1)
    return qn__refuse(p, name, "dims are %s; must be %s", qn__dims(in).s,
                      backward ? "Nx...x2 of rank 4, or Nx...x3 of rank 5" : "Nx2x3 or Nx3x4");
  qn_status status = qn__dtype_in(p, 1, qn__kin(in->dtype));
  if (status) return status;
  if (backward) return qn__settle(p, 1, in->dtype, 3, (const int64_t[]){ in->dim[0], d, d + 1 });
  if (out->rank < 0) return qn__refuse(p, "grid", "must be given: its extents are not in theta");
  return settle_ends(p, 1, d + 2, in->dim[0], d + 1, d, in->dtype);
}

/* The image sampled, or its gradient: no extent may be 0. */
static qn_status check_image(const qn__problem *p, uint32_t role)
{
  const qn_value *v = qn__arg(p, role);
  for (int i = 2; i < v->rank; i++)
    if (!v->dim[i]) return qn__refuse(p, qn__role_name(p, role), "dim %d is 0; a point lies somewhere in it", i);
  return QN_OK;
}

qn_status qn__infer_sampling(const qn__problem *p)
{
  if (p->op->kind == QN_OP_AFFINE_GRID || p->op->kind == QN_OP_AFFINE_GRID_BACKWARD) return infer_affine(p);
  enum { X = QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_X, DGRID = QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_DGRID,
         DX = QN_ROLE_GRID_SAMPLE_BACKWARD_DATA_DX };
  bool by_grid = p->op->kind == QN_OP_GRID_SAMPLE_BACKWARD_GRID, forward = p->op->kind == QN_OP_GRID_SAMPLE;
  uint32_t grid_role = by_grid ? QN_ROLE_GRID_SAMPLE_BACKWARD_GRID_GRID : 1;
  const qn_value *in = qn__arg(p, 0), *grid = qn__arg(p, grid_role);
  int rank = in->rank;
  if (rank < 4 || rank > 5)
    return qn__refuse(p, qn__role_name(p, 0), "rank is %d; must be 4 or 5: batch, channels and 2 or 3 spatial dims", rank);
  qn_status status = qn__dtype_in(p, grid_role, qn__kin(in->dtype));
  if (!status) status = settle_ends(p, grid_role, rank, in->dim[0], rank - 1, rank - 2, grid->dtype);
  for (uint32_t r = 1; r < p->op->n_roles && !status; r++)
    if (r != grid_role) status = qn__dtype_in(p, r, by_grid && r == DGRID ? qn__kin(in->dtype) : QN__BIT(in->dtype));
  if (status) return status;
  int64_t found[QN_MAX_RANK] = { in->dim[0], in->dim[1] };
  memcpy(found + 2, grid->dim + 1, (size_t)(rank - 2) * sizeof *found);
  if (forward) {
    status = check_image(p, 0);
    return status ? status : qn__settle(p, 2, in->dtype, rank, found);
  }
  if ((status = qn__settle(p, 0, in->dtype, rank, found))) return status;
  uint32_t image = by_grid ? (uint32_t)X : (uint32_t)DX;
  if (qn__arg(p, image)->rank < 0) return qn__refuse(p, "dx", "must be given: its extents are not in dy");
  if ((status = settle_ends(p, image, rank, in->dim[0], 1, in->dim[1], in->dtype)) || (status = check_image(p, image))) return status;
  return by_grid ? qn__settle(p, DGRID, grid->dtype, rank, grid->dim) : QN_OK;
}
