/* transform_tiled.cu -- copies at the speed of memory: rows in units of 16 bytes, transposes in tiles through shared memory.
 *
 * Every transform says where y's element i comes from: x at base + sum i[d] stride[d]. What is kept of dims after merging
 * decides: where the innermost dim is contiguous in both, a thread moves one unit of 16, 8, 4, 2 or 1 bytes (rows); where it is
 * contiguous in y and another dim is in x, a block turns a tile of 64 x 64 (32 x 32 for 8 bytes) elements around (tiles).
 * Pad and strided slices of one element's width stay with the direct engine. */
#include "cuda_backend.h"
#include "engines.h"

enum { MAX_DIMS = 6 };

struct move {
  const char *x;
  char    *y;
  int32_t  rank;
  uint32_t units;                         /* rows: how many in all; dim[0] counts units */
  uint32_t dim[MAX_DIMS];                 /* innermost in y first */
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS];          /* bytes */
  int32_t  across;                        /* tiles: the dim that is contiguous in x */
};

template <class T> __global__ void __launch_bounds__(256) transform_rows(const __grid_constant__ move m)
{
  uint32_t unit = blockIdx.x * 256 + threadIdx.x;
  if (unit >= m.units) return;
  int64_t from = 0, to = 0;
  uint32_t rest = unit;
#pragma unroll
  for (int d = 0; d < MAX_DIMS; d++)
    if (d < m.rank) {
      uint32_t q = d + 1 < m.rank ? rest / m.dim[d] : 0, i = rest - q * m.dim[d];
      from += i * m.x_stride[d];
      to += i * m.y_stride[d];
      rest = q;
    }
  *(T *)(m.y + to) = *(const T *)(m.x + from);
}

/* Dim 0 (contiguous in y) by dim `across` (contiguous in x), the others one place for each block. */
template <class T, int TILE> __global__ void __launch_bounds__(256) transform_tiles(const __grid_constant__ move m)
{
  __shared__ T tile[TILE][TILE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  constexpr int LINES = 256 / TILE;
  uint32_t nj = m.dim[m.across], tiles_j = (nj + TILE - 1) / TILE;
  uint32_t j0 = blockIdx.x % tiles_j * TILE, i0 = blockIdx.x / tiles_j * TILE, rest = blockIdx.y;
  int64_t from = 0, to = 0;
  for (int d = 1; d < m.rank; d++) {
    if (d == m.across) continue;
    uint32_t q = rest / m.dim[d], i = rest - q * m.dim[d];
    from += i * m.x_stride[d];
    to += i * m.y_stride[d];
    rest = q;
  }
  uint32_t lane = threadIdx.x % TILE, line = threadIdx.x / TILE;
  const char *x = m.x + from + (int64_t)(j0 + lane) * sizeof(T);
#pragma unroll
  for (int k = 0; k < TILE; k += LINES) {
    uint32_t i = i0 + line + k;
    if (i < m.dim[0] && j0 + lane < nj) tile[line + k][lane] = *(const T *)(x + i * m.x_stride[0]);
  }
  __syncthreads();
  char *y = m.y + to + (int64_t)(i0 + lane) * sizeof(T);
#pragma unroll
  for (int k = 0; k < TILE; k += LINES) {
    uint32_t j = j0 + line + k;
    if (j < nj && i0 + lane < m.dim[0]) *(T *)(y + j * m.y_stride[m.across]) = tile[lane][line + k];
  }
}

/* Two-byte elements in pairs: 4 bytes a thread both ways, 64 x 64 elements; all pairs aligned. */
__global__ void __launch_bounds__(256) transform_pairs(const __grid_constant__ move m)
{
  __shared__ uint32_t tile[64][33];
  uint32_t nj = m.dim[m.across], tiles_j = (nj + 63) / 64;
  uint32_t j0 = blockIdx.x % tiles_j * 64, i0 = blockIdx.x / tiles_j * 64, rest = blockIdx.y;
  int64_t from = 0, to = 0;
  for (int d = 1; d < m.rank; d++) {
    if (d == m.across) continue;
    uint32_t q = rest / m.dim[d], i = rest - q * m.dim[d];
    from += i * m.x_stride[d];
    to += i * m.y_stride[d];
    rest = q;
  }
  uint32_t lane = threadIdx.x % 32, line = threadIdx.x / 32;
  const char *x = m.x + from + (int64_t)(j0 + 2 * lane) * 2;
  uint32_t v[8];
#pragma unroll
  for (int k = 0; k < 8; k++) {
    uint32_t i = i0 + line + 8 * k;
    v[k] = i < m.dim[0] && j0 + 2 * lane < nj ? *(const uint32_t *)(x + i * m.x_stride[0]) : 0;
  }
#pragma unroll
  for (int k = 0; k < 8; k++) tile[line + 8 * k][lane] = v[k];
  __syncthreads();
  char *y = m.y + to + (int64_t)(i0 + 2 * lane) * 2;
#pragma unroll
  for (int k = 0; k < 4; k++) {
    uint32_t pair = line + 8 * k, lo = tile[2 * lane][pair], hi = tile[2 * lane + 1][pair], j = j0 + 2 * pair;
    if (i0 + 2 * lane < m.dim[0]) {
      if (j < nj) *(uint32_t *)(y + j * m.y_stride[m.across]) = __byte_perm(lo, hi, 0x5410);
      if (j + 1 < nj) *(uint32_t *)(y + (j + 1) * m.y_stride[m.across]) = __byte_perm(lo, hi, 0x7632);
    }
  }
}

/* ---- host ------------------------------------------------------------------------------------------------- */

enum { ROWS, TILES, PAIRS };
struct part { move m; int32_t x; int64_t x_offset, y_offset; int32_t how, bytes; };  /* one launch; offsets in bytes */
struct state { int32_t y, n; part part[1]; };

static int64_t divides(int64_t bytes, int64_t unit) { return bytes % unit == 0; }

/* y's elements of these dims from x by strides; NULL, or why not. */
static const char *lay_out(part *p, int rank, const int64_t *dim, const int64_t *xs, const int64_t *ys, int esize, uint32_t align)
{
  qn_nest nest = {};
  nest.n = 2;
  nest.rank = rank;
  for (int d = 0; d < rank; d++) nest.dim[d] = dim[d], nest.stride[0][d] = ys[d], nest.stride[1][d] = xs[d];
  qn_nest_simplify(&nest);
  if (nest.rank > MAX_DIMS) return "at most 6 dims that do not merge";
  move *m = &p->m;
  m->rank = nest.rank ? nest.rank : 1;
  m->dim[0] = 1;
  m->x_stride[0] = m->y_stride[0] = esize;
  double total = 1;
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    if (nest.dim[from] > INT32_MAX) return "dims below 2^31";
    m->dim[d] = (uint32_t)nest.dim[from];
    m->y_stride[d] = nest.stride[0][from] * esize;
    m->x_stride[d] = nest.stride[1][from] * esize;
    total *= (double)nest.dim[from];
  }
  m->across = -1;
  if (m->y_stride[0] != esize) return "y's innermost dim contiguous";
  if (m->x_stride[0] != esize)
    for (int d = 1; d < m->rank; d++)
      if (m->x_stride[d] == esize) m->across = d;
  if (m->across > 0 && m->dim[0] >= 8 && m->dim[m->across] >= 8) {
    double others = total / m->dim[0] / m->dim[m->across];
    if (others > 65535) return "at most 65535 transposes side by side";
    bool even = esize == 2 && align >= 4 && divides(p->x_offset, 4) && divides(p->y_offset, 4) && m->dim[0] % 2 == 0 && m->dim[m->across] % 2 == 0;
    for (int d = 0; d < m->rank; d++) {
      if (d != m->across) even &= divides(m->x_stride[d], 4) != 0;
      if (d != 0) even &= divides(m->y_stride[d], 4) != 0;
    }
    p->how = even ? PAIRS : TILES;
    p->bytes = esize;
    return nullptr;
  }
  /* rows: as wide a unit as everything is a multiple of */
  int64_t unit = esize;
  if (m->x_stride[0] == esize) {
    while (unit < 16 && unit * 2 <= (int64_t)align && divides((int64_t)m->dim[0] * esize, unit * 2) && divides(p->x_offset, unit * 2) && divides(p->y_offset, unit * 2)) {
      bool all = true;
      for (int d = 1; d < m->rank; d++) all &= divides(m->x_stride[d], unit * 2) && divides(m->y_stride[d], unit * 2);
      if (!all) break;
      unit *= 2;
    }
    m->dim[0] = (uint32_t)((int64_t)m->dim[0] * esize / unit);
    m->x_stride[0] = m->y_stride[0] = unit;
  }
  total = 1;
  for (int d = 0; d < m->rank; d++) total *= m->dim[d];
  if (total > 4e9) return "fewer than 2^32 units";
  m->units = (uint32_t)total;
  p->how = ROWS;
  p->bytes = (int32_t)unit;
  return nullptr;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  int n = op->first[1];
  const qn_value *y = &r->value[op->arg[n]];
  int esize = (int)qn_kit_bytes(y->dtype);
  state *st = (state *)cuda_state(out, sizeof *st + (size_t)n * sizeof(part));
  if (!st) return QN_NO_MEMORY;
  st->y = op->arg[n];
  const char *why = nullptr;
  int64_t start = 0;
  for (int i = 0; i < n && !why; i++) {
    const qn_value *x = &r->value[op->arg[i]];
    int64_t dim[QN_MAX_RANK], xs[QN_MAX_RANK], base = 0, skipped = 0;
    memcpy(dim, y->dim, sizeof dim);
    memcpy(xs, x->stride, sizeof xs);
    if (op->op == QN_OP_PERMUTE)
      for (int d = 0; d < y->rank; d++) xs[d] = x->stride[((const qn_permutation *)op->attr)->axis[d]];
    if (op->op == QN_OP_SLICE)
      for (int d = 0; d < y->rank; d++) {
        const qn_slicing *s = (const qn_slicing *)op->attr;
        base += s->start[d] * x->stride[d];
        xs[d] *= s->step[d];
      }
    if (op->op == QN_OP_CONCAT) {
      int64_t axis = ((const qn_axis *)op->attr)->axis;
      if (axis < 0) axis += y->rank;
      dim[axis] = x->dim[axis];
      skipped = start * y->stride[axis];
      start += x->dim[axis];
      if (dim[axis] == 0) continue;
    }
    part *p = &st->part[st->n++];
    p->x = op->arg[i];
    p->x_offset = base * esize;
    p->y_offset = skipped * esize;
    why = lay_out(p, y->rank, dim, xs, y->stride, esize, x->align < y->align ? x->align : y->align);
  }
  if (why) {
    cuda_release(out);
    return qn_refuse(out, why, "y", "", "%s", "");
  }
  return QN_OK;
}

template <class T> static void rows(const move &m, cudaStream_t stream)
{
  transform_rows<T><<<(m.units + 255) / 256, 256, 0, stream>>>(m);
}

template <class T, int TILE> static dim3 tile_grid(const move &m)
{
  int64_t others = 1;
  for (int d = 1; d < m.rank; d++)
    if (d != m.across) others *= m.dim[d];
  return dim3((m.dim[0] + TILE - 1) / TILE * ((m.dim[m.across] + TILE - 1) / TILE), (unsigned)others);
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  for (int i = 0; i < st->n; i++) {
    const part *k = &st->part[i];
    move m = k->m;
    m.x = (const char *)launch->ptr[k->x] + k->x_offset;
    m.y = (char *)launch->ptr[st->y] + k->y_offset;
    if (k->how == ROWS) {
      if (k->bytes == 16) rows<uint4>(m, stream);
      else if (k->bytes == 8) rows<uint64_t>(m, stream);
      else if (k->bytes == 4) rows<uint32_t>(m, stream);
      else if (k->bytes == 2) rows<uint16_t>(m, stream);
      else rows<uint8_t>(m, stream);
    }
    else if (k->how == PAIRS) transform_pairs<<<tile_grid<uint16_t, 64>(m), 256, 0, stream>>>(m);
    else if (k->bytes == 8) transform_tiles<uint64_t, 32><<<tile_grid<uint64_t, 32>(m), 256, 0, stream>>>(m);
    else if (k->bytes == 4) transform_tiles<uint32_t, 32><<<tile_grid<uint32_t, 32>(m), 256, 0, stream>>>(m);
    else if (k->bytes == 2) transform_tiles<uint16_t, 64><<<tile_grid<uint16_t, 64>(m), 256, 0, stream>>>(m);
    else transform_tiles<uint8_t, 64><<<tile_grid<uint8_t, 64>(m), 256, 0, stream>>>(m);
  }
  return cuda_check(cudaGetLastError(), "transform_tiled");
}

#define ROW(op) { "tiled", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_COPY), ROW(QN_OP_PERMUTE), ROW(QN_OP_SLICE), ROW(QN_OP_CONCAT) };
const qn_engine_list cuda_transform_tiled_list = { row, sizeof row / sizeof *row };
