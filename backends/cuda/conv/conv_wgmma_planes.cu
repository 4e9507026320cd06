/* conv_wgmma_planes.cu -- the gradient by filters of one tap over planes (NCHW) on sm_90 Tensor Cores, f16 and bf16.
 *
 *   dw [f, c] = sum over images n and pixels p of dy[n, f, p] x[n, c, p]
 *
 * Pixels are contiguous in both operands, which is how wgmma reads what it sums over: a k step is 64 pixels of one image, fetched by
 * TMA as they lie; past an image's last pixel TMA fills in zeros. matmul_wgmma.cuh's ring and main loop. There are few tiles and many
 * pixels: partial sums of so many steps each go to workspace and are added in order.
 *
 * Refused: strides, padding, several taps, groups; planes that are not in units of 16 bytes. */
#include "conv_layout.h"
#include "conv_problem.h"
#include "engines.h"
#include "kit/early.h"
#include "kit/map.h"
#include "matmul/matmul_wgmma.cuh"

/* X(bm, bn, step, fixed): the tiles, and what an H200 takes in ns for a k step and for everything beside, as matmul_wgmma_tiles.h says. */
#define TILES(X) X(128, 256, 636, 3051) X(128, 128, 325, 2657) X(128, 64, 175, 2369) X(64, 128, 178, 2481) X(64, 64, 146, 2224)

typedef struct planes {                   /* the kernel's parameter */
  cuda_gemm gemm;                         /* a: dy, b: x, both [pixels, channels, images]; batch1: partial sums */
  int32_t   steps;                        /* of all images */
  cuda_divisor by_image;                  /* steps of an image */
} planes;

/* ---- kernel ------------------------------------------------------------------------------------------------------------ */

template <int kind, int BM, int BN> __global__ void __launch_bounds__(128 * (BM / 64 + 1), 1) conv_wgmma_planes(const __grid_constant__ planes p)
{
  typedef gemm_shape<kind, BM, BN, 1> shape;
  extern __shared__ unsigned char shared_raw[];
  const cuda_gemm &g = p.gemm;
  if (threadIdx.x == 0) {
    tma_prefetch_map(&g.a), tma_prefetch_map(&g.b);
    if (g.store_map) tma_prefetch_map(&g.y);
  }
  gemm_ring<shape> ring(shared_raw);
  grid_dependents_launch();
  grid_dependency_wait();                                   /* earlier kernels of the stream may still write x and dy */

  const int tiles = g.tiles_m * g.tiles_n * g.batch1, warpgroup = __shfl_sync(~0u, threadIdx.x / 128, 0);
  if (warpgroup == 0) {                                     /* the producer */
    if (shape::spare_registers) registers_lower<40>();
    if (threadIdx.x == 0) {
      for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const gemm_unit u = gemm_unit_at(g, tile, BM, BN);
        const int first = u.b1 * g.k_steps, last = min(p.steps, first + g.k_steps);
        for (int step = first; step < last; step++, ring.next()) {
          uint32_t at;
          const int image = cuda_quotient(step, p.by_image, &at);
          const uint32_t bar = ring.claim(g.stage_bytes);
          tma_load(ring.a(), &g.a, at * shape::bk, u.m0, image, 0, bar);
          tma_load(ring.b(), &g.b, at * shape::bk, u.n0, image, 0, bar);
        }
      }
    }
  } else {                                                  /* consumers, of 64 filters each */
    if (shape::spare_registers) registers_raise<232>();
    const int group = warpgroup - 1;
    int half = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const gemm_unit u = gemm_unit_at(g, tile, BM, BN);
      const int row0 = u.m0 + group * 64;
      float d[BN / 2];
      gemm_multiply<kind, BN, 0, 0>(ring, d, group, min(g.k_steps, p.steps - u.b1 * g.k_steps));
      auto put = [&](uint32_t from, int column) { tma_store(&g.y, from, column, row0, u.b1, 0); };
      gemm_store<BN>(g, d, u, ring, group, half, put);
    }
    if (threadIdx.x % 128 == 0) tma_store_wait_read<0>();   /* the stores must have read shared memory before the CTA exits */
  }
}

#define NAME(bm, bn, step, fixed) #bm "x" #bn,
#define COSTS(bm, bn, step, fixed) { step, fixed },
#define BF16(bm, bn, step, fixed) KERNEL(MMA_BF16, bm, bn)
#define F16(bm, bn, step, fixed) KERNEL(MMA_F16, bm, bn)
#define KERNEL(kind, bm, bn) \
  { bm, bn, 1, gemm_shape<kind, bm, bn, 1>::threads, gemm_shape<kind, bm, bn, 1>::shared, (const void *)conv_wgmma_planes<kind, bm, bn>, NULL },
static const char *const names[] = { TILES(NAME) NULL };
static const struct { double step, fixed; } costs[] = { TILES(COSTS) };
static const cuda_gemm_kernel kernels_bf16[] = { TILES(BF16) }, kernels_f16[] = { TILES(F16) };

/* ---- the problem ------------------------------------------------------------------------------------------------------- */

typedef struct state {
  planes   p;                             /* all but addresses */
  const cuda_gemm_kernel *kernel;
  const cuda_driver *driver;
  int32_t  x, dy, dw, grid, box_a, box_b;
  uint32_t dw_dtype;
  int64_t  images, pixels, x_stride[2], dy_stride[2], elements;       /* strides: of images, channels */
} state;

/* Are the pixels of an image one run, all in units of 16 bytes? Fills in the strides of images and channels. */
static bool read_planes(const qn_value *v, int64_t stride[2])
{
  int64_t pixels = 1;
  for (int d = v->rank - 1; d >= 2; d--) {
    if (v->dim[d] > 1 && v->stride[d] != pixels) return false;
    pixels *= v->dim[d];
  }
  stride[1] = v->dim[1] > 1 ? v->stride[1] : pixels;
  stride[0] = v->dim[0] > 1 ? v->stride[0] : stride[1] * v->dim[1];
  return v->align >= 16 && (pixels | stride[0] | stride[1]) % 8 == 0;
}

static qn_status read_problem(const qn_request *r, cuda_conv_problem *c, state *st, qn_prepared *out)
{
  qn_status status = cuda_conv_problem_read_volume(c, r, out);
  if (status) return status;
  if (r->device->arch_major != 9 || r->device->arch_minor != 0)
    return qn_refuse(out, "made for compute capability 9.0 alone", "", "9.0", "%d.%d", r->device->arch_major, r->device->arch_minor);
  if (c->x->dtype == QN_F32) return qn_refuse(out, "dtypes of what is multiplied", "x", "f16 or bf16", "f32");
  for (int d = 0; d < 3; d++) {
    if (c->size[d] != 1) return qn_refuse(out, "filters of one tap", "dw", "1", "%lld", (long long)c->size[d]);
    if (c->stride[d] != 1 || c->before[d] || c->in[d] != c->out[d])
      return qn_refuse(out, "as many pixels of y as of x", "x", "no stride, no padding", "%s", "other");
  }
  if (c->groups != 1) return qn_refuse(out, "one group", "x", "1", "%lld", (long long)c->groups);
  if (!qn_is_packed(c->w) && !qn_is_channels_last(c->w))
    return qn_refuse(out, "packed filters", "dw", "nchw or nhwc", "%s", "other strides");
  st->images = c->x->dim[0], st->pixels = c->in[0] * c->in[1] * c->in[2], st->elements = qn_elements(c->w);
  if (!st->elements || !st->images || !st->pixels) return qn_refuse(out, "nothing to multiply", "x", "dims of 1 or more", "0");
  const bool x_fits = read_planes(c->x, st->x_stride), dy_fits = read_planes(c->y, st->dy_stride);
  if (!x_fits || !dy_fits)
    return qn_refuse(out, "planes in units of 16 bytes", x_fits ? "dy" : "x", "pixels side by side, a multiple of 8 of them", "%lld pixels",
                     (long long)st->pixels);
  st->x = c->x_at, st->dy = c->y_at, st->dw = c->w_at, st->dw_dtype = c->w->dtype;
  return QN_OK;
}

/* ---- which tile -------------------------------------------------------------------------------------------------------- */

/* Times a row's 128 bytes take of what they take where they are one cache line (arrival in matmul_wgmma.c). */
static double straddling(int64_t channel_stride)
{
  const int64_t bytes = channel_stride * 2, odd = bytes & -bytes & 127;
  return 2 - (double)(odd ? odd : 128) / 128;
}

/* Nanoseconds of a tile and so many partial sums; rows that straddle lines arrive late at first. */
static double cost(const state *st, int tile, int64_t tiles, int64_t parts, int64_t steps, int units)
{
  const cuda_gemm_kernel *k = &kernels_bf16[tile];
  const double arriving = 1.08 * (k->bm * straddling(st->dy_stride[1]) + k->bn * straddling(st->x_stride[1]));
  const double step = arriving > costs[tile].step ? arriving : costs[tile].step;
  const double fixed = costs[tile].fixed + (straddling(st->x_stride[1]) > 1 ? 1500 : 0);
  const double rounds = (double)qn_ceil_div(tiles * parts, units), between = fixed > 1600 ? fixed - 1500 : 100;
  const double work = fixed + rounds * (double)qn_ceil_div(steps, parts) * step + (rounds - 1) * between;
  const double bytes = 2.0 * (double)(st->images * st->pixels) * ((double)st->p.gemm.m + (double)st->p.gemm.n), memory = 1500 + bytes / 4400;
  const double joining = parts > 1 ? 2000 + (double)(parts * st->elements * 4) / 2500 : 0;
  return (work > memory ? work + 0.15 * memory : memory + 0.15 * work) + joining;
}

typedef struct choice { int tile; int64_t parts; double ns; } choice;

/* At most cuda_gemm_block steps are one running sum; beyond those, as many parts as fill the device once, or twice. */
static choice choose(const qn_request *r, const state *st, int64_t steps)
{
  choice best = { -1, 1, 0 };
  for (int i = 0; names[i]; i++) {
    if (r->variant && strcmp(r->variant, names[i])) continue;
    const cuda_gemm_kernel *k = &kernels_bf16[i];
    const int64_t tiles = qn_ceil_div(st->p.gemm.m, k->bm) * qn_ceil_div(st->p.gemm.n, k->bn), least = qn_ceil_div(steps, cuda_gemm_block(2));
    for (int rounds = 0; rounds <= 2; rounds++) {
      const int64_t wished = rounds ? qn_min_i64(rounds * (int64_t)r->device->units / tiles, steps / 4) : 1;
      const int64_t share = qn_ceil_div(steps, qn_max_i64(wished, least)), parts = qn_ceil_div(steps, share);
      if (tiles * parts > INT32_MAX || (parts > 1 && (uint64_t)(parts * st->elements * 4) > r->demands->workspace_limit)) continue;
      const double ns = cost(st, i, tiles, parts, steps, (int)r->device->units);
      if (best.tile < 0 || ns < best.ns) best = (choice){ i, parts, ns };
    }
  }
  return best;
}

/* ---- prepare ----------------------------------------------------------------------------------------------------------- */

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  cuda_conv_problem c;
  state st = {};
  cuda_gemm *g = &st.p.gemm;
  qn_status status = read_problem(r, &c, &st, out);
  if (status) return status;
  const int64_t an_image = qn_ceil_div(st.pixels, 64), steps = an_image * st.images;
  g->m = (int32_t)c.filters, g->n = (int32_t)c.channels;
  const choice best = choose(r, &st, steps);
  if (best.tile < 0)
    return qn_refuse(out, "workspace for partial sums", "dw", "a limit above them, or another tile", "%s", r->variant ? r->variant : "less");
  st.kernel = &(c.x->dtype == QN_BF16 ? kernels_bf16 : kernels_f16)[best.tile];
  st.box_a = qn_min_i64(st.kernel->bm, g->m), st.box_b = qn_min_i64(st.kernel->bn, g->n);
  st.p.steps = (int32_t)steps;
  st.p.by_image = cuda_divide_by(an_image);
  g->k_steps = (int32_t)qn_ceil_div(steps, best.parts);
  g->stage_bytes = 128 * (st.box_a + st.box_b);
  g->tiles_m = (int32_t)qn_ceil_div(g->m, st.kernel->bm), g->tiles_n = (int32_t)qn_ceil_div(g->n, st.kernel->bn);
  g->batch0 = 1, g->batch1 = (int32_t)best.parts;
  g->group = 12;
  g->last_m = g->last_n = INT32_MAX;
  g->plain = { -1, -1, 0, -1, 0, 0 };
  cuda_gemm_walk(g);
  g->out_dtype = best.parts > 1 ? (uint32_t)QN_F32 : st.dw_dtype;
  g->out_stride[0] = g->n, g->out_stride[1] = 1, g->out_stride[3] = st.elements;
  g->store_map = g->n * (int)qn_kit_bytes(g->out_dtype) % 16 == 0 && (best.parts > 1 || c.w->align >= 16);
  st.grid = (int32_t)qn_min_i64((int64_t)g->tiles_m * g->tiles_n * best.parts, r->device->units);

  if (best.parts > 1) out->workspace = (uint64_t)(best.parts * st.elements * 4);
  out->variant = names[best.tile];
  out->estimate = best.ns;
  out->numerics.accumulator = QN_ACC_F32_TC;
  return cuda_keep(out, &st, sizeof st);
}

/* ---- build, run -------------------------------------------------------------------------------------------------------- */

/* The map of an operand [outer, rows, inner], whose outer and row strides are given, in boxes of 128 bytes by so many rows. */
static qn_status encode(const cuda_driver *driver, CUtensorMap *map, uint32_t dtype, const int64_t stride[2], int64_t outer, int64_t rows,
                        int64_t inner, int box_rows)
{
  const int size = (int)qn_kit_bytes(dtype);
  const int64_t dim[4] = { inner, rows, outer, 1 }, apart[3] = { stride[1], stride[0], 0 };
  const cuuint32_t box[4] = { 128u / size, (cuuint32_t)box_rows, 1, 1 };
  const CUtensorMapDataType type = dtype == QN_BF16  ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                   : dtype == QN_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                     : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return cuda_map_tiled(driver, map, type, size, dim, apart, box, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                        "cuda: conv_wgmma_planes: the driver refused a tensor map");
}

static qn_status build(const qn_request *r, qn_prepared *out)
{
  state *st = (state *)out->state;
  cuda_gemm *g = &st->p.gemm;
  const uint32_t dtype = r->value[st->x].dtype;
  const int64_t y_stride[2] = { st->elements, g->n };
  qn_status s = cuda_driver_get(&st->driver);
  if (!s) s = encode(st->driver, &g->a, dtype, st->dy_stride, st->images, g->m, st->pixels, st->box_a);
  if (!s) s = encode(st->driver, &g->b, dtype, st->x_stride, st->images, g->n, st->pixels, st->box_b);
  if (!s && g->store_map) s = encode(st->driver, &g->y, g->out_dtype, y_stride, g->batch1, g->m, g->n, 64);
  if (s) return s;
  return cuda_check(cudaFuncSetAttribute(st->kernel->function, cudaFuncAttributeMaxDynamicSharedMemorySize, st->kernel->shared),
                    "cudaFuncSetAttribute");
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *st = (const state *)prepared->state;
  planes p = st->p;
  void *const dw = launch->ptr[st->dw];
  p.gemm.out = st->p.gemm.batch1 > 1 ? launch->workspace : dw;
  st->driver->tensor_map_address(&p.gemm.a, launch->ptr[st->dy]);
  st->driver->tensor_map_address(&p.gemm.b, launch->ptr[st->x]);
  if (p.gemm.store_map) st->driver->tensor_map_address(&p.gemm.y, p.gemm.out);
  const qn_status s = cuda_launch_early(st->kernel->function, true, st->grid, st->kernel->threads, st->kernel->shared, &p, launch,
                                        "conv_wgmma_planes");
  if (s || p.gemm.batch1 == 1) return s;
  return cuda_conv_join(dw, st->dw_dtype, (const float *)p.gemm.out, p.gemm.batch1, st->elements, launch->stream);
}

static const qn_engine rows[] = { { .name = "wgmma_planes", .op = QN_OP_CONV_BACKWARD_FILTER, .class_ = QN_CLASS_TUNED,
                                    .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_TENSOR_CORES | QN_TRAIT_BATCH_INVARIANT, .variants = names,
                                    .pattern = nullptr, .prepare = prepare, .build = build, .run = run, .release = cuda_release } };
CUDA_ENGINES(conv_wgmma_planes) = { rows, sizeof rows / sizeof *rows };
