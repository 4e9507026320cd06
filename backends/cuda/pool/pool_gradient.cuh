/* pool_gradient.cuh -- shared by the pooling gradient engines: geometry of cells of dx and of the windows that cover them. */
#pragma once
#include "pool.cuh"

/* where maxima come from: u8 indices (tap number), i64 or i32 indices (offset in the plane), recomputed from x; AVERAGE: means */
enum { BY_TAP, BY_PLACE, BY_X, AVERAGE };

struct strides { int32_t c, z, y, x; };   /* within an image */

struct gradient : pool {
  strides  of_x, of_dy, of_dx, of_index;
  int32_t  flat;                          /* depth 1 */
  int32_t  pairs;                         /* cells of one channel: two columns of dx share an aligned word */
  int32_t  even;                          /* average: all windows have the same divisor */
  float    share;                         /* average: 1 / window size, valid if even */
  cuda_divisor by_cell[4];                /* innermost first: extents of the grid of cells */
  cuda_divisor by_size[3], by_dilation[3];
};

/* An offset below 2^31; -1: none. */
template <class I> __device__ __forceinline__ int place_among(I index) { return index == (int)index ? (int)index : -1; }

/* The windows that cover a cell of R rows by COLUMNS, for windows of SIZE with stride STEP and padding BEFORE. Cells begin at
 * multiples of STEP, so which windows cover which places is known at compile time. Window 0 has output coordinate place / STEP + first. */
template <int R, int C, int SIZE, int STEP, int BEFORE, int COLUMNS_ = 2> struct cover {
  static constexpr int ROWS = R, COLUMNS = COLUMNS_, WORDS = (C + 3) / 4;
  static constexpr int first = (BEFORE - SIZE + 1) / STEP;
  static constexpr int DOWN = (ROWS - 1 + BEFORE) / STEP - first + 1, ACROSS = (COLUMNS - 1 + BEFORE) / STEP - first + 1;
  /* First place of a window relative to the cell; the tap of the window that a place is. */
  static __host__ __device__ constexpr int begin(int window) { return (first + window) * STEP - BEFORE; }
  static __host__ __device__ constexpr int tap(int window, int place) { return place - begin(window); }
  static __host__ __device__ constexpr bool covers(int window, int place) { return tap(window, place) >= 0 && tap(window, place) < SIZE; }
};

/* if (a == b) sum += v, as a predicated add; compilers emit add and select. */
__device__ __forceinline__ void add_where(float &sum, uint32_t a, uint32_t b, float v)
{
#ifdef __CUDA_ARCH__
  asm("{ .reg .pred p; setp.eq.u32 p, %1, %2; @p add.f32 %0, %0, %3; }" : "+f"(sum) : "r"(a), "r"(b), "f"(v));
#else
  if (a == b) sum += v;
#endif
}

/* Stores two neighbours that share an aligned word. */
template <int dtype> __device__ __forceinline__ void pair_store(void *base, int at, float lo, float hi)
{
  if (dtype == QN_F32) *(float2 *)((float *)base + at) = make_float2(lo, hi);
  else *(uint32_t *)((uint16_t *)base + at) = dtype == QN_BF16 ? pack_bf16(lo, hi) : pack_f16(lo, hi);
}

/* The tap number that `place` has in the window whose first tap is `begin`, in a plane of that width; not below SIZE^2: none. */
template <int SIZE> __device__ __forceinline__ uint32_t tap_of(int place, int begin, int width)
{
  int column = place - begin, row = 0;
#pragma unroll
  for (int r = 1; r < SIZE; r++)
    if (place - begin >= r * width) column -= width, row = r;
  return (unsigned)column < SIZE ? row * SIZE + column : 255;
}

/* ---- host ------------------------------------------------------------------------------------------------------- */

/* The strides within an image, in 32 bits; false: the image is too large. */
static inline bool within_image(strides *s, const int64_t *stride, const pool *p, const int32_t *extent)
{
  double reach = (double)p->c * (double)stride[1];
  for (int d = 0; d < 3; d++) reach += (double)extent[d] * (double)stride[2 + d];
  s->c = (int32_t)stride[1], s->z = (int32_t)stride[2], s->y = (int32_t)stride[3], s->x = (int32_t)stride[4];
  return reach < INT32_MAX;
}

/* Reads a gradient: its tensors, their dtype, the geometry. */
template <class P> static inline qn_status gradient_read(pool_state<P> *s, const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];          /* dy is input 0 of all, indices input 1 of a maximum, dx the only output */
  gradient *p = &s->p;
  pool_tensors *of = &s->of;
  *of = { -1, -1, op->arg[0], op->arg[op->first[op->n_inputs]], -1 };
  if (op->op == QN_OP_POOL_MAX_BACKWARD) {
    of->indices = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_INDICES);
    if (of->indices < 0) of->x = qn_role(op, QN_ROLE_POOL_MAX_BACKWARD_X);
  }
  const qn_value *dx = &r->value[of->dx], *dy = &r->value[of->dy], *x = of->x >= 0 ? &r->value[of->x] : dx;
  qn_status status = pool_wants_floats(dx, "dx", out);
  if (status) return status;
  if (!pool_fill(p, op, x, dy)) return qn_refuse(out, "extents below 2^29", "dx", "", "%s", "more");
  pool_strides(dx, p->dx_stride);
  if (of->indices >= 0) {
    p->index_dtype = r->value[of->indices].dtype;
    pool_strides(&r->value[of->indices], p->index_stride);
  }
  if (!within_image(&p->of_x, p->x_stride, p, p->in) || !within_image(&p->of_dx, p->dx_stride, p, p->in) ||
      !within_image(&p->of_dy, p->y_stride, p, p->out) || !within_image(&p->of_index, p->index_stride, p, p->out))
    return qn_refuse(out, "images within 2^31 elements", "dx", "", "%s", "more");
  p->flat = p->in[0] == 1 && p->out[0] == 1 && p->before[0] == 0;
  p->even = 1;
  for (int d = 0; d < 3; d++) {
    int64_t reach = (p->out[d] - 1) * (int64_t)p->step[d] + (p->size[d] - 1) * (int64_t)p->dilation[d];
    p->even &= p->include_pad ? reach < p->in[d] + p->before[d] + p->after[d] : p->before[d] == 0 && reach < p->in[d];
    p->by_step[d] = cuda_divide_by(p->step[d]), p->by_size[d] = cuda_divide_by(p->size[d]),
    p->by_dilation[d] = cuda_divide_by(p->dilation[d]);
  }
  p->share = 1 / ((float)p->size[0] * (float)p->size[1] * (float)p->size[2]);
  return QN_OK;
}

/* Channels a thread: 16 bytes of them if every layout allows it, else 1. */
template <class P> static inline int gradient_channels(const pool_state<P> *s, const qn_request *r)
{
  const int32_t value[] = { s->of.dx, s->of.dy, s->of.x, s->of.indices };
  const int64_t *stride[4] = { s->p.dx_stride, s->p.y_stride };
  uint32_t whole, align = 16;
  int n = 2;
  for (int i = 0; i < 4; i++) {
    if (value[i] < 0) continue;
    if (i >= 2) stride[n++] = i == 2 ? s->p.x_stride : s->p.index_stride;
    if (r->value[value[i]].align < align) align = r->value[value[i]].align;
  }
  return pool_channels(&s->p, stride, n, align, &whole);
}
