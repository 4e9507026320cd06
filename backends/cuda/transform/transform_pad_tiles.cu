/* transform_pad_tiles.cu -- pad and its gradient in packed planes: a block copies the rows of `in` that neighbouring rows of
 * `out` depend on, one contiguous run, to shared memory (cp.async), so that every byte is read once in whole vectors. From
 * there threads assemble 16-byte vectors of `out`; elements at a row's ends are written singly. The sources of rows, and of the
 * columns at the ends, are computed once for a block, into tables, while its bytes are in flight.
 * Refused: planes that are not packed, rows above 48 KB, wide elements; gradients with padded outer dims. */
#include "engines.h"
#include "pad.cuh"
#include "kit/shared_memory.h"
#include "kit/sm80.cuh"
#include "kit/vector.cuh"

enum { THREADS = 256, VECTOR = 16 };
enum { ROOM = 16 << 10, MOST = 48 << 10 };          /* bytes of a block's rows; limit with the rows of the border, or of one row */

struct tiling : padding {                 /* pad: in is x, out is y; gradient: in is dy, out is dx. In bytes unless noted */
  int64_t  high;                          /* end of in */
  uint32_t rows, bands;                   /* rows of out of a block; blocks of a plane */
  uint32_t pitch, width;                  /* bytes of a row of in, of out */
  uint32_t from, run;                     /* the run in a row of out that copies consecutive elements of in: begin, length */
  uint32_t vectors, edges;                /* vectors of a run at most; elements beside them of a row at most */
  uint32_t tables;                        /* offset of the tables (struct sources) in shared memory */
  cuda_divisor by_bands, by_vectors, by_edges;
  alignas(16) uint64_t pattern[2];        /* the value, repeated */
};

/* The range of x's rows that y's rows from..to-1 show. */
static __host__ __device__ __forceinline__ void rows_shown(const padding &p, int from, int to, int *low, int *high)
{
  const int before = (int)p.before[1], n = (int)p.in_dim[1], turn[4] = { from, to - 1, before, before + n - 1 };
  *low = n, *high = 0;
  for (int i = 0; i < 4; i++) {
    const int row = turn[i] < from || turn[i] >= to ? -1 : pad_shown(p.mode, (uint32_t)turn[i], (uint32_t)before, (uint32_t)n);
    if (row < 0) continue;
    if (row < *low) *low = row;
    if (row >= *high) *high = row + 1;
  }
  if (*low >= *high) *low = *high = 0;
}

/* The range of dy's rows that dx's rows from..to-1 are sums of. */
static __host__ __device__ __forceinline__ void rows_summed(const padding &p, int from, int to, int *low, int *high)
{
  const int before = (int)p.before[1], n = (int)p.out_dim[1], all = (int)p.in_dim[1], after = all - n - before;
  *low = from + before, *high = to + before;
  if (p.mode == QN_PAD_REPLICATE) {
    if (from == 0) *low = 0;
    if (to == n) *high = all;
  } else if (p.mode == QN_PAD_REFLECT) {
    const int left = to - 1 < before ? to - 1 : before, right = from > n - 1 - after ? from : n - 1 - after;
    if (left >= 1 && left >= from && before - left < *low) *low = before - left;
    if (right <= n - 2 && right < to && before + 2 * (n - 1) - right >= *high) *high = before + 2 * (n - 1) - right + 1;
  }
}

/* The rows of `in` in shared memory, as whole vectors. */
template <class T> struct tile {
  const char *shared;                     /* address of row `low` */
  int low;

  __device__ __forceinline__ tile(const tiling &p, char *room, int64_t plane, int first, int high) : low(first)
  {
    const int64_t from = plane + (int64_t)low * p.pitch;
    const uint32_t skip = (uint32_t)(uintptr_t)(p.in + from) % VECTOR, bytes = skip + (uint32_t)(high - low) * p.pitch;
    shared = room + skip;
    for (uint32_t at = threadIdx.x * VECTOR; at < bytes; at += THREADS * VECTOR) {
      const int64_t of = from - skip + at;
      if (of >= 0 && of + VECTOR <= p.high) {
        copy_async<VECTOR>(shared_address(room + at), p.in + of, VECTOR);
      } else {                            /* at the ends of `in` */
        for (int i = 0; i < VECTOR; i += sizeof(T))
          if (of + i >= 0 && of + i < p.high) *(T *)(room + at + i) = *(const T *)(p.in + of + i);
      }
    }
    copy_async_commit();
  }
  __device__ __forceinline__ void wait() const
  {
    copy_async_wait<0>();
    __syncthreads();
  }
  __device__ __forceinline__ const char *row(const tiling &p, int row) const { return shared + (uint32_t)(row - low) * p.pitch; }
};

/* Tables of a block. rows: for each row of out the offset of its source in shared memory (NOWHERE: none); for a gradient that
 * of its first term, with MORE set if there are others. columns: for each column at the ends its source column; for a gradient
 * that of its first term, and in the upper half that of its second, or ONE (no second) or MANY (more than two). */
enum : uint32_t { NOWHERE = ~0u, MORE = 1u << 31, ONE = 0xffff, MANY = 0xfffe };
struct sources {
  uint32_t *rows, *columns;

  __device__ __forceinline__ sources(const tiling &p, char *room) : rows((uint32_t *)(room + p.tables)), columns(rows + p.rows) {}
  /* The column of entry i: the first p.edges of a row, then the last. In narrow rows a column may be both, with two entries. */
  __device__ __forceinline__ static uint32_t column_of(const tiling &p, uint32_t i)
  {
    return i < p.edges ? i : i + p.out_dim[0] - 2 * p.edges;
  }
  __device__ __forceinline__ uint32_t of_column(const tiling &p, uint32_t column, bool ends) const
  {
    return columns[ends ? column + 2 * p.edges - p.out_dim[0] : column];
  }
};

/* 16 unaligned bytes, assembled from the three aligned 8-byte words around them. */
__device__ __forceinline__ uint4 vector_at(const char *from)
{
  const uint32_t skip = (uint32_t)(uintptr_t)from % 8;
  const uint2 *halves = (const uint2 *)(from - skip), a = halves[0], b = halves[1], c = halves[2];
  uint32_t w[6] = { a.x, a.y, b.x, b.y, c.x, c.y };
#pragma unroll
  for (int i = 0; i < 5; i++) w[i] = skip & 4 ? w[i + 1] : w[i];
  const uint32_t bits = skip % 4 * 8;
  return make_uint4(__funnelshift_r(w[0], w[1], bits), __funnelshift_r(w[1], w[2], bits), __funnelshift_r(w[2], w[3], bits),
                    __funnelshift_r(w[3], w[4], bits));
}

/* A block's rows of out: row `y` of plane `outer` and the following. */
struct rows_of {
  uint32_t outer, y, rows;
  char *out;

  __device__ __forceinline__ rows_of(const tiling &p)
  {
    uint32_t band;
    outer = cuda_quotient(blockIdx.x, p.by_bands, &band), y = band * p.rows, rows = min(p.rows, p.out_dim[1] - y);
    out = p.out + ((int64_t)outer * p.out_dim[1] + y) * p.width;
  }
  /* Bytes from the run's begin to its first aligned vector. */
  __device__ __forceinline__ uint32_t skip(const tiling &p, uint32_t row) const
  {
    return -(uint32_t)(uintptr_t)(out + row * p.width + p.from) % VECTOR;
  }
  /* The block's i-th vector: its row and its offset in the run; false: none. */
  __device__ __forceinline__ bool vector(const tiling &p, uint32_t i, uint32_t *row, uint32_t *at) const
  {
    *row = cuda_quotient(i, p.by_vectors, at);
    *at = *at * VECTOR + skip(p, *row);
    return *at + VECTOR <= p.run;
  }
  /* The block's i-th single element: its row and column, and whether it lies behind the run; false: none. */
  template <int E> __device__ __forceinline__ bool edge(const tiling &p, uint32_t i, uint32_t *row, uint32_t *column, bool *ends) const
  {
    *row = cuda_quotient(i, p.by_edges, column);
    const uint32_t before = skip(p, *row);
    *ends = *column * E >= p.from + before;
    if (*ends) *column += (p.run - before) / VECTOR * (VECTOR / E);
    return *column * E < p.width;
  }
};

template <class T> __global__ static void __launch_bounds__(THREADS) transform_pad_tiles(const __grid_constant__ tiling p)
{
  constexpr int E = sizeof(T);
  extern __shared__ __align__(16) char room[];
  const rows_of to(p);
  const int64_t plane = pad_source<2>(p, to.outer);
  int low, high;
  rows_shown(p, (int)to.y, (int)(to.y + to.rows), &low, &high);
  if (plane < 0) low = high = 0;
  const tile<T> x(p, room, max(plane, (int64_t)0), low, high);
  const sources of(p, room);
  for (uint32_t i = threadIdx.x; i < to.rows; i += THREADS) {
    const int line = plane < 0 ? -1 : pad_shown(p.mode, to.y + i, p.before[1], p.in_dim[1]);
    of.rows[i] = line < 0 ? NOWHERE : (uint32_t)(x.row(p, line) - room);
  }
  for (uint32_t i = threadIdx.x; i < 2 * p.edges; i += THREADS)
    of.columns[i] = (uint32_t)pad_shown(p.mode, of.column_of(p, i), p.before[0], p.in_dim[0]);
  x.wait();
  uint32_t row, at;
  bool ends;
  for (uint32_t i = threadIdx.x; i < to.rows * p.vectors; i += THREADS) {
    if (!to.vector(p, i, &row, &at)) continue;
    const uint32_t from = of.rows[row];
    *(uint4 *)(to.out + row * p.width + p.from + at) = from == NOWHERE ? *(const uint4 *)p.pattern : vector_at(room + from + at);
  }
  for (uint32_t i = threadIdx.x; i < to.rows * p.edges; i += THREADS) {
    if (!to.template edge<E>(p, i, &row, &at, &ends)) continue;
    const uint32_t from = of.rows[row];
    const int column = (int)of.of_column(p, at, ends);
    *(T *)(to.out + row * p.width + at * E) = from == NOWHERE || column < 0 ? *(const T *)p.pattern : ((const T *)(room + from))[column];
  }
}

/* A sum starts with its first term, so that a single term keeps its bits. */
template <class T, int dtype>
__global__ static void __launch_bounds__(THREADS, sizeof(T) == 2 ? 8 : 6) transform_pad_tiles_backward(const __grid_constant__ tiling p)
{
  constexpr int E = sizeof(T), V = VECTOR / E;
  extern __shared__ __align__(16) char room[];
  const rows_of to(p);
  int columns, lines, low, high;
  rows_summed(p, (int)to.y, (int)(to.y + to.rows), &low, &high);
  uint32_t outer = to.outer;
  int64_t plane = 0;                      /* outer dims are not padded */
#pragma unroll
  for (int d = 2; d < PAD_DIMS; d++)
    if (d < p.rank) {
      uint32_t j = outer;
      if (d + 1 < p.rank) outer = cuda_quotient(outer, p.by_out[d], &j);
      plane += j * p.in_stride[d];
    }
  const tile<T> dy(p, room, plane, low, high);
  const sources of(p, room);
  const auto shows = [&](uint32_t row, int k) { return pad_shows(p, 1, (int)(to.y + row), k, &lines); };
  for (uint32_t i = threadIdx.x; i < to.rows; i += THREADS) {
    const uint32_t from = (uint32_t)(dy.row(p, shows(i, 0)) - room);
    of.rows[i] = lines > 1 ? from | MORE : from;
  }
  for (uint32_t i = threadIdx.x; i < 2 * p.edges; i += THREADS) {
    const int column = (int)of.column_of(p, i);
    const uint32_t first = (uint32_t)pad_shows(p, 0, column, 0, &columns), second = (uint32_t)pad_shows(p, 0, column, 1, &columns);
    of.columns[i] = first | (columns == 1 ? ONE : columns == 2 ? second : MANY) << 16;
  }
  dy.wait();
  uint32_t row, at;
  bool ends;
  for (uint32_t i = threadIdx.x; i < to.rows * p.vectors; i += THREADS) {
    if (!to.vector(p, i, &row, &at)) continue;
    const uint32_t line = of.rows[row], from = p.from + at + p.before[0] * E;
    uint4 all = vector_at(room + (line & ~MORE) + from);
    if (line & MORE) {
      float sum[V], more[V];
      vector_open<dtype>(sum, 0, all);
      shows(row, 0);
      for (int k = 1; k < lines; k++) {
        vector_open<dtype>(more, 0, vector_at(dy.row(p, shows(row, k)) + from));
#pragma unroll
        for (int j = 0; j < V; j++) sum[j] += more[j];
      }
      all = vector_close<dtype>(sum, 0);
    }
    *(uint4 *)(to.out + row * p.width + p.from + at) = all;
  }
  for (uint32_t i = threadIdx.x; i < to.rows * p.edges; i += THREADS) {
    if (!to.template edge<E>(p, i, &row, &at, &ends)) continue;
    const uint32_t line = of.rows[row], column = of.of_column(p, at, ends), second = column >> 16;
    const T *from = (const T *)(room + (line & ~MORE));
    T bits = from[column & 0xffff];
    if (line & MORE || second != ONE) {
      float sum[1], more[1];
      vector_load(sum, &bits, dtype, 0, 1, 1);
      if (!(line & MORE) && second != MANY) {
        vector_load(more, from, dtype, second, 1, 1);
        sum[0] += more[0];
      } else {
        shows(row, 0), pad_shows(p, 0, (int)at, 0, &columns);
        for (int k = 0; k < lines; k++)
          for (int c = 0; c < columns; c++) {
            if (!k && !c) continue;
            vector_load(more, dy.row(p, shows(row, k)), dtype, pad_shows(p, 0, (int)at, c, &columns), 1, 1);
            sum[0] += more[0];
          }
      }
      vector_store(sum, &bits, dtype, 0, 1, 1);
    }
    *(T *)(to.out + row * p.width + at * E) = bits;
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { tiling p; int32_t in, out; const void *kernel; unsigned blocks; uint32_t shared; };

static const void *kernel_of(bool back, uint32_t dtype, int esize)
{
  if (!back)
    return esize == 1 ? (const void *)transform_pad_tiles<uint8_t>
         : esize == 2 ? (const void *)transform_pad_tiles<uint16_t>
         : esize == 4 ? (const void *)transform_pad_tiles<uint32_t>
                      : nullptr;
  switch (dtype) {
  case QN_F32:  return (const void *)transform_pad_tiles_backward<uint32_t, QN_F32>;
  case QN_BF16: return (const void *)transform_pad_tiles_backward<uint16_t, QN_BF16>;
  case QN_F16:  return (const void *)transform_pad_tiles_backward<uint16_t, QN_F16>;
  default:      return nullptr;
  }
}

static qn_status prepare(const qn_request *r, qn_prepared *result)
{
  const bool back = r->op[0].op == QN_OP_PAD_BACKWARD;
  const int roles[2] = { back ? QN_ROLE_PAD_BACKWARD_DY : QN_ROLE_PAD_X, back ? QN_ROLE_PAD_BACKWARD_DX : QN_ROLE_PAD_Y };
  const char *written = back ? "dx" : "y", *read = back ? "dy" : "x";
  const qn_value *in = cuda_value(r, roles[0]), *out = cuda_value(r, roles[1]);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  if (!qn_pads_outwards(a, out->rank))
    return qn_refuse(result, "pads outwards", "pad", "not negative, mode constant, reflect or replicate", "%s", "");
  const int esize = (int)qn_kit_bytes(out->dtype);
  pad_state st = {};
  st.kernel = kernel_of(back, out->dtype, esize);
  if (!st.kernel)
    return qn_refuse(result, back ? "accumulates in f32" : "narrow elements", written, back ? "f32, f16 or bf16" : "at most 4 bytes",
                     "%s", qn_kit_name(out->dtype));
  if (in->dtype != out->dtype) return qn_refuse(result, "one dtype", written, qn_kit_name(in->dtype), "%s", qn_kit_name(out->dtype));
  if (!qn_is_dense(out)) return qn_refuse(result, "elements are counted as they lie", written, "no gaps", "%s", "gaps");
  if (qn_elements(out) > INT32_MAX)
    return qn_refuse(result, "elements are counted in 31 bits", written, "below 2^31", "%lld", (long long)qn_elements(out));
  for (int d = 0; d < in->rank; d++)
    if (in->dim[d] > INT32_MAX)
      return qn_refuse(result, "number of positions", read, "below 2^31", "%lld", (long long)in->dim[d]);
  tiling p = {};
  if (!pad_fill(&p, a, in, out)) return qn_refuse(result, "at most 6 dims that do not merge", written, "6", "%d", out->rank);
  const int64_t pitch = (int64_t)p.in_dim[0] * esize, width = (int64_t)p.out_dim[0] * esize;
  if (p.rank < 2 || p.in_stride[0] != esize || p.in_stride[1] != pitch)
    return qn_refuse(result, "rows lie side by side", read, "packed, in the order of the other's dims", "%s", "strides");
  for (int d = 2; d < p.rank && back; d++)
    if (p.in_dim[d] != p.out_dim[d]) return qn_refuse(result, "planes are padded", written, "no padding of outer dims", "%s", "padding");
  if (pitch > MOST || width > MOST)
    return qn_refuse(result, "rows in shared memory", pitch > width ? read : written, "rows of 48 KB at most", "%lld",
                     (long long)(pitch > width ? pitch : width));
  int32_t once[2] = { (int32_t)p.before[0], (int32_t)(p.before[0] + p.in_dim[0]) }, most = 0;
  if (back) pad_once(p, 0, once);
  p.high = esize;
  for (int d = 0; d < p.rank; d++) p.high += (int64_t)(p.in_dim[d] - 1) * p.in_stride[d];
  p.pitch = (uint32_t)pitch, p.width = (uint32_t)width;
  p.from = (uint32_t)once[0] * (uint32_t)esize, p.run = once[1] > once[0] ? (uint32_t)(once[1] - once[0]) * (uint32_t)esize : 0;
  const bool aligned = width % VECTOR == 0 && out->align >= VECTOR;       /* then all rows' vectors have the same alignment */
  /* vectors of a run, at least */
  const uint32_t skip = aligned ? -p.from % VECTOR : (uint32_t)(VECTOR - esize), whole = p.run < skip ? 0 : (p.run - skip) / VECTOR;
  if (!whole) return qn_refuse(result, "vectors of neighbours", written, "one at least in a row", "%s", "none");
  p.vectors = aligned ? whole : p.run / VECTOR;
  p.edges = p.out_dim[0] - whole * (VECTOR / (uint32_t)esize);
  const int64_t n = p.out_dim[1], bands = qn_ceil_div(n, qn_max_i64(ROOM / pitch, 1));
  p.rows = (uint32_t)qn_ceil_div(n, bands), p.bands = (uint32_t)qn_ceil_div(n, p.rows);
  for (int64_t y = 0; y < n; y += p.rows) {
    int low, high;
    (back ? rows_summed : rows_shown)(p, (int)y, (int)qn_min_i64(y + p.rows, n), &low, &high);
    if (high - low > most) most = high - low;
  }
  const int64_t tables = qn_round_up(most * pitch + 2 * VECTOR, VECTOR);
  const int64_t shared = tables + ((int64_t)p.rows + 2 * (int64_t)p.edges) * (int64_t)sizeof(uint32_t);
  if (shared > MOST) return qn_refuse(result, "rows in shared memory", read, "48 KB", "%lld", (long long)shared);
  p.tables = (uint32_t)tables;
  p.by_bands = cuda_divide_by(p.bands), p.by_vectors = cuda_divide_by(p.vectors), p.by_edges = cuda_divide_by(p.edges ? p.edges : 1);
  for (int i = 0; i < VECTOR / esize && !back; i++) qn_store_f64((char *)p.pattern + i * esize, out->dtype, a->value);
  st.p = p;
  st.in = qn_role(&r->op[0], roles[0]), st.out = qn_role(&r->op[0], roles[1]);
  st.blocks = (unsigned)(qn_elements(out) / (n * p.out_dim[0]) * p.bands);
  st.shared = (uint32_t)shared;
  /* enough blocks with enough work: faster than `units` */
  if (p.vectors * p.rows >= 2 * THREADS && st.blocks >= 16u * (unsigned)r->device->units)
    result->estimate = 1e4 + (double)qn_elements(out) * esize * 2 / 4000;
  return cuda_keep(result, &st, sizeof st);
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  tiling p = st->p;
  p.in = (const char *)launch->ptr[st->in];
  p.out = (char *)launch->ptr[st->out];
  void *arguments[] = { &p };
  return cuda_check(cudaLaunchKernel(st->kernel, dim3(st->blocks), dim3(THREADS), arguments, st->shared, (cudaStream_t)launch->stream),
                    "transform_pad_tiles");
}

#define ROW(op) { "tiles", op, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, \
                  nullptr, nullptr, prepare, nullptr, run, cuda_release }
static const qn_engine row[] = { ROW(QN_OP_PAD), ROW(QN_OP_PAD_BACKWARD) };
CUDA_ENGINES(transform_pad_tiles) = { row, sizeof row / sizeof *row };
