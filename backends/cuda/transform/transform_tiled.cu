/* transform_tiled.cu -- copy, permute, slice and concat, bandwidth bound, bits preserved.
 *
 * y's element i comes from x at base + sum i[d] stride[d]. After merging dims:
 * rows: the innermost dim is contiguous in both: a thread moves a unit of 16 bytes, or several of 8, 4, 2 or 1. words, tiles:
 * contiguous along different dims: a block transposes a tile through shared memory, in 4-byte words if aligned, else by element.
 * few: up to 4 interleaved channels to or from planes: transposed in a thread's registers.
 * Refused: more than 6 dims; gaps in y; other layouts stay with direct. */
#include "cuda_backend.h"
#include "kit/divisor.h"
#include "engines.h"

enum { MAX_DIMS = 6, TOGETHER = 4 };      /* TOGETHER: concat parts of one launch */

struct move {
  const char *x;
  char    *y;
  int32_t  rank;
  uint32_t units;                         /* rows, few: number of units; then dim[0] (few: the planes' dim) counts units */
  cuda_divisor dim[MAX_DIMS];                 /* innermost in y first */
  int64_t  x_stride[MAX_DIMS], y_stride[MAX_DIMS];          /* in bytes */
  /* tiles: the dim that is contiguous in x; words: a dim that continues it, so that both form the tile's columns, or -1 */
  int32_t  across, beside;
};

/* Up to N parts of y in one launch; part i has the blocks from first[i] on. */
template <int N> struct moves { move m[N]; uint32_t first[N]; };

/* Units a thread: several narrow ones are in flight together. */
template <class T> constexpr int units_of = sizeof(T) < 4 ? 4 : sizeof(T) < 16 ? 2 : 1;

template <class T, int N> __global__ void __launch_bounds__(256) transform_rows(const __grid_constant__ moves<N> all)
{
  constexpr int K = units_of<T>;
  int k = 0;
#pragma unroll
  for (int i = 1; i < N; i++) k += blockIdx.x >= all.first[i];
  const move &m = all.m[N > 1 ? k : 0];
  const uint32_t first = (blockIdx.x - all.first[k]) * (256 * K) + threadIdx.x;
  T v[K];
  int64_t to[K];
#pragma unroll
  for (int u = 0; u < K; u++) {
    uint32_t rest = first + u * 256;
    if (rest >= m.units) break;
    int64_t from = 0;
    to[u] = 0;
#pragma unroll
    for (int d = 0; d < MAX_DIMS; d++)
      if (d < m.rank) {
        uint32_t i = rest, q = d + 1 < m.rank ? cuda_quotient(rest, m.dim[d], &i) : 0;
        from += i * m.x_stride[d];
        to[u] += i * m.y_stride[d];
        rest = q;
      }
    v[u] = *(const T *)(m.x + from);
  }
#pragma unroll
  for (int u = 0; u < K; u++)
    if (first + u * 256 < m.units) *(T *)(m.y + to[u]) = v[u];
}

/* Offsets of the dims other than 0, across and beside. */
__device__ __forceinline__ void others(const move &m, uint32_t rest, int64_t *from, int64_t *to)
{
  for (int d = 1; d < m.rank; d++) {
    if (d == m.across || d == m.beside) continue;
    uint32_t i, q = cuda_quotient(rest, m.dim[d], &i);
    *from += i * m.x_stride[d];
    *to += i * m.y_stride[d];
    rest = q;
  }
}

/* A tile: dim 0 (contiguous in y) by dim `across` (contiguous in x); blockIdx.y counts the other dims. */
template <class T, int TILE> __global__ void __launch_bounds__(256) transform_tiles(const __grid_constant__ move m)
{
  __shared__ T tile[TILE][TILE + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
  constexpr int LINES = 256 / TILE;
  uint32_t nj = m.dim[m.across].by, tiles_j = (nj + TILE - 1) / TILE;
  uint32_t j0 = blockIdx.x % tiles_j * TILE, i0 = blockIdx.x / tiles_j * TILE;
  int64_t from = 0, to = 0;
  others(m, blockIdx.y, &from, &to);
  uint32_t lane = threadIdx.x % TILE, line = threadIdx.x / TILE;
  const char *x = m.x + from + (int64_t)(j0 + lane) * sizeof(T);
#pragma unroll
  for (int k = 0; k < TILE; k += LINES) {
    uint32_t i = i0 + line + k;
    if (i < m.dim[0].by && j0 + lane < nj) tile[line + k][lane] = *(const T *)(x + i * m.x_stride[0]);
  }
  __syncthreads();
  char *y = m.y + to + (int64_t)(i0 + lane) * sizeof(T);
#pragma unroll
  for (int k = 0; k < TILE; k += LINES) {
    uint32_t j = j0 + line + k;
    if (j < nj && i0 + lane < m.dim[0].by) *(T *)(y + j * m.y_stride[m.across]) = tile[lane][line + k];
  }
}

/* The e-th elements of E words, as one word. */
template <int E> __device__ __forceinline__ uint32_t picked(const uint32_t (&w)[E], int e)
{
  if (E == 1) return w[0];
  if (E == 2) return __byte_perm(w[0], w[1 % E], e ? 0x7632 : 0x5410);
  uint32_t pair = (e + 4) << 4 | e;
  return __byte_perm(__byte_perm(w[0], w[1 % E], pair), __byte_perm(w[2 % E], w[3 % E], pair), 0x5410);
}

/* Elements of 4 / E bytes in aligned words, both ways. Row i of a tile is stored as row i / E of part i % E, which avoids bank
 * conflicts both ways. */
template <int E> __global__ void __launch_bounds__(256) transform_words(const __grid_constant__ move m)
{
  constexpr int R = 8, I = 64, J = 32 * E, WIDE = I / E;
  __shared__ uint32_t tile[I][33];
  const bool beside = m.beside >= 0;
  /* neighbouring blocks write neighbouring memory */
  uint32_t ni = m.dim[0].by, nj = m.dim[m.across].by * (beside ? m.dim[m.beside].by : 1), tiles_i = (ni + I - 1) / I;
  uint32_t j0 = blockIdx.x / tiles_i * J, i0 = blockIdx.x % tiles_i * I, lane = threadIdx.x % 32, line = threadIdx.x / 32;
  int64_t from = 0, to = 0;
  others(m, blockIdx.y, &from, &to);
  const char *x = m.x + from + (int64_t)(j0 + lane * E) * (4 / E);
  uint32_t v[R];
#pragma unroll
  for (int k = 0; k < R; k++) {
    uint32_t i = i0 + line + 8 * k;
    if (i < ni && j0 + lane * E < nj) v[k] = *(const uint32_t *)(x + i * m.x_stride[0]);
  }
#pragma unroll
  for (int k = 0; k < R; k++) {
    uint32_t i = line + 8 * k;
    tile[i % E * WIDE + i / E][lane] = v[k];
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < WIDE * 32 / 256; k++) {
    uint32_t item = threadIdx.x + 256 * k, word = item % WIDE, column = item / WIDE, i = i0 + word * E, j = j0 + column * E, w[E];
#pragma unroll
    for (int e = 0; e < E; e++) w[e] = tile[e * WIDE + word][column];
    char *y = m.y + to + (int64_t)i * (4 / E);
    uint32_t c = j;                       /* E columns share one index of dim `beside` */
    if (beside) y += cuda_quotient(j, m.dim[m.across], &c) * m.y_stride[m.beside];
#pragma unroll
    for (int e = 0; e < E; e++)
      if (i < ni && j + e < nj) *(uint32_t *)(y + (c + e) * m.y_stride[m.across]) = picked<E>(w, e);
  }
}

/* C channels interleaved in y (back: in x) and planar in the other: 16 bytes of each plane a thread. */
template <class T, int C, bool back> __global__ void __launch_bounds__(256) transform_few(const __grid_constant__ move m)
{
  constexpr int N = 16 / sizeof(T);
  const uint32_t unit = blockIdx.x * 256 + threadIdx.x;
  if (unit >= m.units) return;
  const int line = back ? 0 : m.across, channel = back ? m.across : 0;
  uint32_t i, rest = cuda_quotient(unit, m.dim[line], &i);
  int64_t from = i * m.x_stride[line], to = i * m.y_stride[line];
  others(m, rest, &from, &to);
  union { uint4 word[C]; T of[C * N]; } in, out;
#pragma unroll
  for (int c = 0; c < C; c++) in.word[c] = *(const uint4 *)(m.x + from + c * (back ? 16 : m.x_stride[channel]));
#pragma unroll
  for (int n = 0; n < N; n++)
#pragma unroll
    for (int c = 0; c < C; c++)
      if (back) out.of[c * N + n] = in.of[n * C + c];
      else out.of[n * C + c] = in.of[c * N + n];
#pragma unroll
  for (int c = 0; c < C; c++) *(uint4 *)(m.y + to + c * (back ? m.y_stride[channel] : 16)) = out.word[c];
}

/* ---- host ------------------------------------------------------------------------------------------------- */

enum { ROWS, TILES, WORDS, FEW, FEW_BACK };
struct part { move m; int32_t x; int64_t x_offset, y_offset; int32_t how, bytes; };  /* one launch; offsets in bytes */
struct state { int32_t y, n; part part[1]; };

static int64_t divides(int64_t bytes, int64_t unit) { return bytes % unit == 0; }

/* Does transform_few apply: few channels, planes of whole aligned vectors? */
static bool lay_out_few(part *p, int esize, uint32_t align, double total)
{
  move *m = &p->m;
  const bool back = m->dim[0].by > m->dim[m->across].by;
  const int line = back ? 0 : m->across, channel = back ? m->across : 0;
  const int64_t channels = m->dim[channel].by, apart = channels * esize;
  if (channels > 4 || esize > 4 || align < 16 || !divides(p->x_offset, 16) || !divides(p->y_offset, 16) || total / channels > INT32_MAX)
    return false;
  if ((back ? m->x_stride : m->y_stride)[line] != apart || !divides((int64_t)m->dim[line].by * esize, 16)) return false;
  for (int d = 0; d < m->rank; d++) {
    if (d == line) continue;
    if ((d != channel || !back) && !divides(m->x_stride[d], 16)) return false;
    if ((d != channel || back) && !divides(m->y_stride[d], 16)) return false;
  }
  m->dim[line] = cuda_divide_by((int64_t)m->dim[line].by * esize / 16);
  m->x_stride[line] = back ? 16 * channels : 16, m->y_stride[line] = back ? 16 : 16 * channels;
  m->units = (uint32_t)(total / channels * esize / 16);
  p->how = back ? FEW_BACK : FEW;
  p->bytes = esize;
  return true;
}

/* Describes the copy of y's elements of these dims from x; returns NULL, or the rule that it breaks. */
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
  m->dim[0] = cuda_divide_by(1);
  m->x_stride[0] = m->y_stride[0] = esize;
  double total = 1;
  for (int d = 0; d < nest.rank; d++) {
    int from = nest.rank - 1 - d;
    if (nest.dim[from] > INT32_MAX) return "dims below 2^31";
    m->dim[d] = cuda_divide_by(nest.dim[from]);
    m->y_stride[d] = nest.stride[0][from] * esize;
    m->x_stride[d] = nest.stride[1][from] * esize;
    total *= (double)nest.dim[from];
  }
  m->across = m->beside = -1;
  if (m->y_stride[0] != esize) return "y's innermost dim contiguous";
  if (m->x_stride[0] != esize)
    for (int d = 1; d < m->rank; d++)
      if (m->x_stride[d] == esize) m->across = d;
  if (m->across > 0 && m->dim[0].by >= 8 && m->dim[m->across].by >= 8) {
    double others = total / m->dim[0].by / m->dim[m->across].by;
    if (others > 65535) return "at most 65535 transposes side by side";
    bool words = esize <= 4 && align >= 4 && divides(p->x_offset, 4) && divides(p->y_offset, 4) &&
                 divides((int64_t)m->dim[0].by * esize, 4) && divides((int64_t)m->dim[m->across].by * esize, 4);
    for (int d = 0; d < m->rank; d++) {
      if (d != m->across) words &= divides(m->x_stride[d], 4) != 0;
      if (d != 0) words &= divides(m->y_stride[d], 4) != 0;
    }
    p->how = words ? WORDS : TILES;
    p->bytes = esize;
    for (int d = 1; d < m->rank && words && m->dim[m->across].by * esize < 128; d++)
      if (d != m->across && m->x_stride[d] == (int64_t)m->dim[m->across].by * esize && m->dim[d].by <= 1 << 24) m->beside = d;
    return nullptr;
  }
  if (m->across > 0 && lay_out_few(p, esize, align, total)) return nullptr;
  /* rows: the widest unit that all offsets and strides allow */
  int64_t unit = esize;
  if (m->x_stride[0] == esize) {
    while (unit < 16 && unit * 2 <= (int64_t)align && divides((int64_t)m->dim[0].by * esize, unit * 2) && divides(p->x_offset, unit * 2) &&
           divides(p->y_offset, unit * 2)) {
      bool all = true;
      for (int d = 1; d < m->rank; d++) all &= divides(m->x_stride[d], unit * 2) && divides(m->y_stride[d], unit * 2);
      if (!all) break;
      unit *= 2;
    }
    m->dim[0] = cuda_divide_by((int64_t)m->dim[0].by * esize / unit);
    m->x_stride[0] = m->y_stride[0] = unit;
  }
  total = 1;
  for (int d = 0; d < m->rank; d++) total *= m->dim[d].by;
  if (total > INT32_MAX) return "fewer than 2^31 units";
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
  if (op->op == QN_OP_SLICE && !qn_slices_forwards((const qn_slicing *)op->attr, y->rank))
    return qn_refuse(out, "runs forwards", "step", "at least 1", "%s", "negative");
  int esize = (int)qn_kit_bytes(y->dtype);
  state *st = (state *)cuda_state(out, sizeof *st + (size_t)n * sizeof(part));
  if (!st) return QN_NO_MEMORY;
  st->y = op->arg[n];
  const char *why = nullptr;
  int64_t start = 0;
  out->estimate = (double)qn_elements(y) * esize * 2 / 4100;        /* as measured on an H200, reading and writing */
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
        if (dim[d] > 1) xs[d] *= s->step[d];    /* with extent 1 the step does not matter, and could overflow */
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
    if ((st->n - 1) % TOGETHER == 0) out->estimate += 1500;
  }
  if (why) {
    cuda_release(out);
    return qn_refuse(out, why, "y", "", "%s", "");
  }
  return QN_OK;
}

template <class T, int N> static void launch_rows(const move *m, int n, cudaStream_t stream)
{
  moves<N> all = {};
  uint32_t blocks = 0;
  for (int i = 0; i < N; i++) {
    all.first[i] = i < n ? blocks : UINT32_MAX;
    if (i < n) all.m[i] = m[i], blocks += (uint32_t)qn_ceil_div(m[i].units, 256 * units_of<T>);
  }
  transform_rows<T, N><<<blocks, 256, 0, stream>>>(all);
}
template <class T> static void rows(const move *m, int n, cudaStream_t stream)
{
  if (n == 1) launch_rows<T, 1>(m, n, stream);
  else launch_rows<T, TOGETHER>(m, n, stream);
}

/* Blocks: tiles of `down` elements of dim 0 by `wide` of the other. */
static dim3 tile_grid(const move &m, int down, int wide)
{
  int64_t others = 1, across = m.dim[m.across].by;
  for (int d = 1; d < m.rank; d++)
    if (d == m.beside) across *= m.dim[d].by;
    else if (d != m.across) others *= m.dim[d].by;
  return dim3((unsigned)(qn_ceil_div(m.dim[0].by, down) * qn_ceil_div(across, wide)), (unsigned)others);
}
template <class T, int TILE> static void tiles(const move &m, cudaStream_t stream)
{
  transform_tiles<T, TILE><<<tile_grid(m, TILE, TILE), 256, 0, stream>>>(m);
}
template <int E> static void words(const move &m, cudaStream_t stream)
{
  transform_words<E><<<tile_grid(m, 64, 32 * E), 256, 0, stream>>>(m);
}

template <class T> static void few(const move &m, bool back, cudaStream_t stream)
{
  const unsigned blocks = (unsigned)qn_ceil_div(m.units, 256);
  switch (m.dim[back ? m.across : 0].by) {
  case 2:
    return back ? transform_few<T, 2, true><<<blocks, 256, 0, stream>>>(m) : transform_few<T, 2, false><<<blocks, 256, 0, stream>>>(m);
  case 3:
    return back ? transform_few<T, 3, true><<<blocks, 256, 0, stream>>>(m) : transform_few<T, 3, false><<<blocks, 256, 0, stream>>>(m);
  case 4:
    return back ? transform_few<T, 4, true><<<blocks, 256, 0, stream>>>(m) : transform_few<T, 4, false><<<blocks, 256, 0, stream>>>(m);
  }
}

static qn_status run(const qn_prepared *p, const qn_launch *launch)
{
  const state *st = (const state *)p->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  for (int i = 0, n; i < st->n; i += n) {
    const part *k = &st->part[i];
    move all[TOGETHER], &m = all[0];
    for (n = 0; n < TOGETHER && i + n < st->n && (n == 0 || (k->how == ROWS && k[n].how == ROWS && k[n].bytes == k->bytes)); n++) {
      all[n] = k[n].m;
      all[n].x = (const char *)launch->ptr[k[n].x] + k[n].x_offset;
      all[n].y = (char *)launch->ptr[st->y] + k[n].y_offset;
    }
    if (k->how == ROWS) {
      if (k->bytes == 16) rows<uint4>(all, n, stream);
      else if (k->bytes == 8) rows<uint64_t>(all, n, stream);
      else if (k->bytes == 4) rows<uint32_t>(all, n, stream);
      else if (k->bytes == 2) rows<uint16_t>(all, n, stream);
      else rows<uint8_t>(all, n, stream);
    }
    else if (k->how == FEW || k->how == FEW_BACK) {
      if (k->bytes == 4) few<uint32_t>(m, k->how == FEW_BACK, stream);
      else if (k->bytes == 2) few<uint16_t>(m, k->how == FEW_BACK, stream);
      else few<uint8_t>(m, k->how == FEW_BACK, stream);
    }
    else if (k->how == WORDS && k->bytes == 4) words<1>(m, stream);
    else if (k->how == WORDS && k->bytes == 2) words<2>(m, stream);
    else if (k->how == WORDS) words<4>(m, stream);
    else if (k->bytes == 8) tiles<uint64_t, 32>(m, stream);
    else if (k->bytes == 2) tiles<uint16_t, 64>(m, stream);
    else tiles<uint8_t, 64>(m, stream);
  }
  return cuda_check(cudaGetLastError(), "transform_tiled");
}

#define ROW(op) { "tiled", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr, \
                  prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_COPY), ROW(QN_OP_PERMUTE), ROW(QN_OP_SLICE), ROW(QN_OP_CONCAT) };
CUDA_ENGINES(transform_tiled) = { row, sizeof row / sizeof *row };
