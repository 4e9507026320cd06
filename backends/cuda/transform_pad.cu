/* transform_pad.cu -- pad at the speed of memory: a thread writes 16 bytes of a y without gaps, wherever they lie in its rows.
 *
 * Most units lie inside one row of x: their bytes are loaded as aligned words and shifted to where they belong, as x's row stands
 * askew to y's by its padding. The others go element by element, each from where its mode shows it. */
#include "cuda_backend.h"
#include "engines.h"

enum { MAX_DIMS = 6, THREADS = 256 };

struct padding {
  const char *x;
  char    *y;
  int32_t  rank, mode;
  uint32_t elements, units;
  uint32_t y_dim[MAX_DIMS], x_dim[MAX_DIMS], before[MAX_DIMS];  /* innermost first; y's run on without gaps */
  int64_t  x_stride[MAX_DIMS], x_bytes;   /* bytes; x_bytes: from its first to behind its last */
  uint64_t value;
};

/* The place among x's n that `at` shows; -1: none, but the value. */
__device__ __forceinline__ int shown(int mode, uint32_t at, uint32_t before, uint32_t n)
{
  int from = (int)(at - before);
  if (from >= 0 && from < (int)n) return from;
  if (mode == QN_PAD_REFLECT) return from < 0 ? -from : 2 * ((int)n - 1) - from;
  return mode == QN_PAD_REPLICATE ? (from < 0 ? 0 : (int)n - 1) : -1;
}

/* Where in x the row of y of this number comes from, in bytes; -1: nowhere. */
__device__ __forceinline__ int64_t row_source(const padding &p, uint32_t row)
{
  int64_t offset = 0;
  bool inside = true;
#pragma unroll
  for (int d = 1; d < MAX_DIMS; d++)
    if (d < p.rank) {
      uint32_t q = d + 1 < p.rank ? row / p.y_dim[d] : 0;
      int from = shown(p.mode, row - q * p.y_dim[d], p.before[d], p.x_dim[d]);
      inside &= from >= 0;
      offset += from * p.x_stride[d];
      row = q;
    }
  return inside ? offset : -1;
}

template <class T> __global__ static void __launch_bounds__(THREADS) transform_pad(const __grid_constant__ padding p)
{
  constexpr int V = 16 / sizeof(T);
  union { uint4 whole; uint32_t word[4]; T element[V]; } out;
  uint32_t unit = blockIdx.x * THREADS + threadIdx.x, first = unit * V;
  if (unit >= p.units) return;
  uint32_t row = p.rank > 1 ? first / p.y_dim[0] : 0, at = first - row * p.y_dim[0];
  int64_t from = row_source(p, row);
  uint32_t left = at - p.before[0];       /* wraps where at stands before x's row: then not below x_dim */
  int64_t byte = from + (int64_t)left * (int64_t)sizeof(T);
  bool inner = from >= 0 && left < p.x_dim[0] && p.x_dim[0] - left >= V;
  if (inner && byte + 20 <= p.x_bytes) {
    const uint32_t *word = (const uint32_t *)((uintptr_t)(p.x + byte) & ~(uintptr_t)3);
    uint32_t shift = (uint32_t)((uintptr_t)(p.x + byte) & 3) * 8, w[5];
    if (((uintptr_t)(p.x + byte) & 15) == 0) {
      out.whole = *(const uint4 *)word;
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) w[i] = word[i];
      w[4] = shift ? word[4] : 0;
#pragma unroll
      for (int i = 0; i < 4; i++) out.word[i] = __funnelshift_r(w[i], w[i + 1], shift);
    }
  } else {
#pragma unroll
    for (int i = 0; i < V; i++) {
      int source = shown(p.mode, at, p.before[0], p.x_dim[0]);
      if (first + i >= p.elements) out.element[i] = T();
      else out.element[i] = from >= 0 && source >= 0 ? *(const T *)(p.x + from + source * (int64_t)sizeof(T)) : (T)p.value;
      if (++at == p.y_dim[0]) {
        at = 0;
        from = row_source(p, ++row);
      }
    }
  }
  if (p.elements - first >= V) {
    *(uint4 *)(p.y + (int64_t)first * sizeof(T)) = out.whole;
  } else {
    for (int i = 0; i < V; i++)
      if (first + i < p.elements) *(T *)(p.y + (int64_t)(first + i) * sizeof(T)) = out.element[i];
  }
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

struct pad_state { padding p; int32_t x, y, bytes; };

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_value *x = cuda_value(r, QN_ROLE_PAD_X), *y = cuda_value(r, QN_ROLE_PAD_Y);
  const qn_padding *a = (const qn_padding *)r->op[0].attr;
  int esize = (int)qn_kit_bytes(y->dtype);
  if (!qn_is_dense(y) || y->align < 16) return qn_refuse(out, "16 bytes are stored at once", "y", "no gaps, 16-byte alignment", "%s", "");
  if (esize < 4 && x->align < 4) return qn_refuse(out, "x is read in words of 4 bytes", "x", "4-byte alignment", "%u", x->align);
  if (qn_elements(y) > INT32_MAX) return qn_refuse(out, "elements are counted in 31 bits", "y", "below 2^31", "%lld", (long long)qn_elements(y));
  padding p = {};
  p.mode = (int32_t)a->mode;
  p.elements = (uint32_t)qn_elements(y);
  p.units = (uint32_t)qn_ceil_div(p.elements, 16 / esize);
  p.x_bytes = qn_extent_bytes(x);
  qn_store_f64(&p.value, y->dtype, a->value);
  int order[QN_MAX_RANK], n = 0;          /* y's dims, slowest first */
  for (int d = 0; d < y->rank; d++) {
    if (y->dim[d] == 1 && x->dim[d] == 1) continue;
    int at = n++;
    for (; at > 0 && y->stride[order[at - 1]] < y->stride[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int i = n - 1; i >= 0; i--) {      /* innermost first; a dim joins the one inside it if neither is padded and x runs on */
    int d = order[i], in = p.rank - 1;
    if (p.rank && p.x_dim[in] == p.y_dim[in] && x->stride[d] * esize == p.x_stride[in] * (int64_t)p.x_dim[in] && x->dim[d] == y->dim[d]) {
      p.x_dim[in] *= (uint32_t)x->dim[d];
      p.y_dim[in] *= (uint32_t)y->dim[d];
      continue;
    }
    if (p.rank == MAX_DIMS) return qn_refuse(out, "at most 6 dims that do not merge", "y", "6", "%d", n);
    p.x_dim[p.rank] = (uint32_t)x->dim[d], p.y_dim[p.rank] = (uint32_t)y->dim[d], p.before[p.rank] = (uint32_t)a->pad_before[d];
    p.x_stride[p.rank++] = x->stride[d] * esize;
  }
  if (!p.rank) p.rank = 1, p.x_dim[0] = p.y_dim[0] = 1, p.x_stride[0] = esize;
  if (p.x_dim[0] > 1 && p.x_stride[0] != esize) return qn_refuse(out, "rows contiguous in both", "x", "the order of y's dims", "%s", "");
  pad_state *st = (pad_state *)r->host->alloc(sizeof *st);
  if (!st) return QN_NO_MEMORY;
  st->p = p;
  st->x = qn_role(&r->op[0], QN_ROLE_PAD_X), st->y = qn_role(&r->op[0], QN_ROLE_PAD_Y);
  st->bytes = esize;
  out->state = st;
  out->math = QN_MATH_STRICT;
  out->numerics.accumulator = QN_ACC_NATIVE;
  return QN_OK;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const pad_state *st = (const pad_state *)prepared->state;
  cudaStream_t stream = (cudaStream_t)launch->stream;
  unsigned blocks = (st->p.units + THREADS - 1) / THREADS;
  padding p = st->p;
  p.x = (const char *)launch->ptr[st->x];
  p.y = (char *)launch->ptr[st->y];
  switch (st->bytes) {
  case 8:  transform_pad<uint64_t><<<blocks, THREADS, 0, stream>>>(p); break;
  case 4:  transform_pad<uint32_t><<<blocks, THREADS, 0, stream>>>(p); break;
  case 2:  transform_pad<uint16_t><<<blocks, THREADS, 0, stream>>>(p); break;
  default: transform_pad<uint8_t><<<blocks, THREADS, 0, stream>>>(p); break;
  }
  return cuda_check(cudaGetLastError(), "transform_pad");
}

static void release(qn_prepared *p)
{
  cuda_host->free(p->state);
  p->state = nullptr;
}

static const qn_engine row[] = {
  { "units", QN_OP_PAD, QN_CLASS_TUNED, QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE, nullptr, nullptr,
    prepare, nullptr, run, release },
};
const qn_engine_list cuda_transform_pad_list = { row, sizeof row / sizeof *row };
