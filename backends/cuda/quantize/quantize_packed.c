/* quantize_packed.c -- host side of quantization of packed tensors (f32, f16, bf16 with 8-bit types): chooses the kernel,
 * describes how scales are laid out. Refused: f64, other strides, unaligned tensors, vectors of 16 bytes that straddle blocks. */
#include "engines.h"
#include "quantize_packed.h"
#include "kit/early.h"
#include "kit/shared_memory.h"

/* ---- prepare -------------------------------------------------------------------------------------------------- */

enum { X, Y, SCALE, ZERO, AMAX, WALKED };

typedef struct state {
  cuda_quantization p;
  int32_t  value[WALKED];                 /* value numbers of the request; -1: absent */
  const void *kernel, *before;  /* before: first kernel: clears amax, or computes the scale (and quantizes what it keeps); NULL: none */
  unsigned blocks, threads, before_blocks, before_threads, shared;
  bool     early, together;               /* early: `kernel` may start while `before` runs; together: `before` is a cooperative launch */
} state;

static qn_status refuse_levels(qn_prepared *out, const qn_block_level *l, int n, int V)
{
  if (n > CUDA_QUANTIZE_LEVELS) return qn_refuse(out, "blocks are found in at most three steps", "scale", "scales of fewer dims", "%d", n);
  bool each = l[0].block == 1;
  if (each && (n > 2 || (n == 2 && l[1].block < l[1].dim)))
    return qn_refuse(out, "a scale for each element of a row must serve all rows", "scale", "one row of scales", "%s", "several");
  if ((each ? l[0].dim : l[0].block) % V || l[0].dim % V)
    return qn_refuse(out, "a vector must not reach over a block's end", "x",
                     V == 8 ? "blocks and rows of multiples of 8" : "blocks and rows of multiples of 4", "%lld",
                     (long long)(each || l[0].dim % V ? l[0].dim : l[0].block));
  return QN_OK;
}

/* Sets vectors a thread and blocks, so that every SM has some. */
static void share_out(state *s, uint32_t vectors, const qn_device *device)
{
  int64_t most = CUDA_QUANTIZE_THREADS * (int64_t)CUDA_QUANTIZE_VECTORS;
  s->p.steps = vectors >= most * device->units ? CUDA_QUANTIZE_VECTORS : 1;
  s->blocks = (unsigned)qn_max_i64(1, qn_ceil_div(vectors, CUDA_QUANTIZE_THREADS * (int64_t)s->p.steps));
  s->threads = CUDA_QUANTIZE_THREADS;
}

/* Chooses the kernel that computes scales. */
static qn_status choose_dynamic(state *s, const cuda_quantize_kernels *k, const qn_block_level *l, int n, int64_t elements, int V,
                                const qn_device *device, qn_prepared *out)
{
  static const int threads[] = { 32, 128, 256, 512, 1024 }, kept = CUDA_QUANTIZE_KEPT;
  /* x as rows of `row` elements; blocks are `high` rows by `wide` elements */
  int64_t row = n > 1 ? l[0].dim : n ? (l[0].dim % l[0].block ? l[0].dim : l[0].block) : elements, wide = n ? l[0].block : elements;
  int64_t high = n > 1 ? l[1].block : 1, rows = elements / row, vectors = high * wide / V;
  bool columns = wide == 1 && n > 1 && row % V == 0 && high <= CUDA_QUANTIZE_COLUMN;
  if (n > 2 || (n > 0 && row > wide && l[0].stride != 1) || (n > 1 && l[1].block < l[1].dim && l[1].stride != qn_ceil_div(row, wide)))
    return qn_refuse(out, "blocks are parts of a matrix", "block", "blocks in one or two dims", "%s", "others");
  if (!columns && (row % V || wide % V || vectors > kept * threads[n ? 4 : 2])) {
    if (n)
      return qn_refuse(out, "a block is kept in registers, in whole vectors", "block",
                       "multiples of 16 bytes, of 128 KB at most; or columns of at most 32", "%lldx%lld", (long long)high, (long long)wide);
    /* Whole tensor: vectors of a thread that stay on chip. For smaller tensors two kernels cost only a few us; for larger ones
     * the saving is small. */
    const int64_t most = CUDA_QUANTIZE_HELD + ((int64_t)device->shared_per_block - 1024) / (CUDA_QUANTIZE_KEEPERS * 16),
                  step = (int64_t)device->units * CUDA_QUANTIZE_KEEPERS;
    if (s->p.vectors >= CUDA_QUANTIZE_VECTORS * step && s->p.vectors <= 2 * most * step) {
      s->before = k->kept;
      s->together = true;
      s->before_threads = CUDA_QUANTIZE_KEEPERS;
      s->before_blocks = (unsigned)qn_min_i64(qn_ceil_div(s->p.vectors, CUDA_QUANTIZE_KEEPERS), device->units);
      s->p.kept = (uint32_t)qn_max_i64(0, qn_min_i64(most, qn_ceil_div(s->p.vectors, step)) - CUDA_QUANTIZE_HELD);
      s->p.again = (uint32_t)qn_max_i64(0, s->p.vectors - step * most);
      s->shared = s->p.kept * CUDA_QUANTIZE_KEEPERS * 16;
      out->counters = sizeof(uint32_t);
    } else {
      s->before = k->extreme;
      s->before_threads = CUDA_QUANTIZE_THREADS;
      s->before_blocks = (unsigned)qn_max_i64(1, qn_min_i64(qn_ceil_div(s->p.vectors, CUDA_QUANTIZE_THREADS * CUDA_QUANTIZE_VECTORS),
                                                            (int64_t)device->units * 8));
      s->p.again = s->p.vectors;
    }
    s->kernel = k->spread[0];
    share_out(s, s->p.again, device);
    s->p.parts = s->before_blocks;
    out->workspace = s->p.parts * sizeof(uint32_t);
    return QN_OK;
  }
  s->p.pitch = (uint32_t)(row / V), s->p.rows = (uint32_t)rows, s->p.high = (uint32_t)high;
  if (columns) {
    s->kernel = k->columns;
    s->threads = 128;
    s->p.across = cuda_divide_by(qn_ceil_div(s->p.pitch, 32));
    s->blocks = (unsigned)(s->p.across.by * qn_ceil_div(rows, high));
  } else if (n < 2 && vectors <= 32 && !(vectors & (vectors - 1)) && elements % wide == 0 && row % wide == 0) {
    s->kernel = k->lanes;
    s->p.lanes = (uint32_t)vectors;
    s->p.wide = cuda_divide_by(vectors);
    share_out(s, s->p.vectors, device);
  } else {
    int which = 0;
    while (vectors > kept * threads[which]) which++;
    s->kernel = k->tiles[which];
    s->threads = threads[which] < 128 ? 128 : threads[which];
    s->p.wide = cuda_divide_by(wide / V);
    s->p.steps = (uint32_t)qn_ceil_div(vectors, threads[which]);
    s->p.step_rows = (uint32_t)(threads[which] / (wide / V)), s->p.step_columns = (uint32_t)(threads[which] % (wide / V));
    s->p.across = cuda_divide_by(qn_ceil_div(row, wide));
    s->p.tiles = (uint32_t)(s->p.across.by * qn_ceil_div(rows, high));
    s->blocks = (unsigned)qn_ceil_div(s->p.tiles, s->threads / threads[which]);
  }
  return QN_OK;
}

static qn_status prepare(const qn_request *r, qn_prepared *out)
{
  const qn_node *op = &r->op[0];
  bool back = op->op == QN_OP_DEQUANTIZE, dynamic = op->op == QN_OP_QUANTIZE_DYNAMIC;
  state s = { 0 };
  s.value[SCALE] = qn_role(op, dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_SCALE : QN_ROLE_QUANTIZE_SCALE);
  s.value[ZERO] = dynamic ? -1 : qn_role(op, QN_ROLE_QUANTIZE_ZERO_POINT);
  s.value[AMAX] = back ? -1 : qn_role(op, dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_AMAX : QN_ROLE_QUANTIZE_AMAX);
  s.value[back ? Y : X] = qn_role(op, 0);
  s.value[back ? X : Y] = qn_role(op, back ? QN_ROLE_DEQUANTIZE_Y : dynamic ? QN_ROLE_QUANTIZE_DYNAMIC_Y : QN_ROLE_QUANTIZE_Y);
  const qn_value *x = &r->value[s.value[X]], *y = &r->value[s.value[Y]], *scale = &r->value[s.value[SCALE]];
  if (x->dtype != QN_F32 && x->dtype != QN_F16 && x->dtype != QN_BF16)
    return qn_refuse(out, "computes in f32", back ? "y" : "x", "f32, f16 or bf16", "%s", qn_kit_name(x->dtype));
  if (dynamic && qn_role(op, QN_ROLE_QUANTIZE_DYNAMIC_ZERO_POINT) >= 0)
    return qn_refuse(out, "scales by magnitudes", "zero_point", "absent", "%s", "given");
  for (int t = 0; t < WALKED; t++)
    if (s.value[t] >= 0 && !qn_is_packed(&r->value[s.value[t]]))
      return qn_refuse(out, "elements are counted as they lie",
                       t == X       ? "x"
                       : t == Y     ? "y"
                       : t == AMAX  ? "amax"
                       : t == SCALE ? "scale"
                                    : "zero_point",
                       "packed, the last dim fastest", "%s", "other strides");
  int64_t elements = qn_elements(x);
  int V = x->dtype == QN_F32 ? 4 : 8;
  if (elements == 0 || elements / V >= INT32_MAX)
    return qn_refuse(out, "vectors are counted in 31 bits", "x", "some elements, but fewer", "%lld", (long long)elements);
  if (x->align < 16 || (int)y->align < V)
    return qn_refuse(out, "16 bytes of floats and their octets move at once", x->align < 16 ? "x" : "y", "aligned to 16 bytes", "%u",
                     x->align < 16 ? x->align : y->align);

  const cuda_quantize_kernels k = cuda_quantize_kernels_of(x->dtype);
  qn_block_level l[QN_MAX_RANK];
  int n = qn_block_levels(x, scale, ((const qn_blocks *)op->attr)->block, l);
  qn_status status;
  s.p.y_dtype = y->dtype, s.p.scale_dtype = scale->dtype, s.p.powers = scale->dtype == QN_E8M0;
  s.p.vectors = (uint32_t)(elements / V), s.p.tail = (int32_t)(elements % V);
  if (dynamic) {
    if ((status = choose_dynamic(&s, &k, l, n, elements, V, r->device, out))) return status;
  } else {
    if (n && (status = refuse_levels(out, l, n, V))) return status;
    if (s.value[AMAX] >= 0) {
      if (n) return qn_refuse(out, "amax is of the whole tensor", "amax", "one element", "%lld", (long long)qn_elements(scale));
      s.before = k.clear, s.before_blocks = 1, s.before_threads = 32;
    }
    bool each = n && l[0].block == 1;
    s.kernel = (back ? k.back : k.spread)[each];
    share_out(&s, s.p.vectors, r->device);
    if (each) {
      s.p.pitch = (uint32_t)(l[0].dim / V), s.p.rows = (uint32_t)(elements / l[0].dim);
      s.p.across = cuda_divide_by(s.p.pitch);
      s.blocks = (unsigned)qn_ceil_div(s.p.pitch * qn_ceil_div(s.p.rows, CUDA_QUANTIZE_VECTORS), CUDA_QUANTIZE_THREADS);
    }
    while (n > 1 && l[n - 1].block == l[n - 1].dim) n--;            /* outer levels with a single block */
    s.p.levels = n;
    for (int i = 0; i < n; i++) {
      int unit = i ? 1 : V;
      s.p.dim[i] = cuda_divide_by(l[i].dim / unit);
      s.p.block[i] = cuda_divide_by(each && !i ? 1 : l[i].block / unit);
      s.p.stride[i] = (uint32_t)l[i].stride;
    }
  }

  return cuda_keep(out, &s, sizeof s);
}

/* ---- build, run ------------------------------------------------------------------------------------------------ */

static qn_status build(const qn_request *r, qn_prepared *out)
{
  (void)r;
  state *s = out->state;
  struct cudaFuncAttributes has;
  qn_status status = s->before ? cuda_check(cudaFuncGetAttributes(&has, s->kernel), "cudaFuncGetAttributes") : QN_OK;
  if (!status) s->early = s->before && has.ptxVersion >= 90;         /* otherwise the kernel would not contain the wait for `before` */
  if (!status && s->shared > 48 << 10) status = cuda_allow_shared(s->before);
  return status;
}

static qn_status run(const qn_prepared *prepared, const qn_launch *launch)
{
  const state *s = prepared->state;
  cuda_quantization p = s->p;
  void *ptr[WALKED];
  for (int t = 0; t < WALKED; t++) ptr[t] = s->value[t] < 0 ? NULL : launch->ptr[s->value[t]];
  p.x = ptr[X], p.y = ptr[Y], p.scale = ptr[SCALE], p.zero = ptr[ZERO], p.amax = ptr[AMAX];
  p.part = launch->workspace;
  void *arguments[] = { &p };
  p.met = s->together ? launch->counters : NULL;
  if (s->before) {
    /* its blocks wait for one another */
    cudaLaunchAttribute together = { .id = cudaLaunchAttributeCooperative, .val = { .cooperative = 1 } };
    cudaLaunchConfig_t config = { .gridDim = { s->before_blocks, 1, 1 },
                                  .blockDim = { s->before_threads, 1, 1 },
                                  .dynamicSmemBytes = s->shared,
                                  .stream = (cudaStream_t)launch->stream,
                                  .attrs = &together,
                                  .numAttrs = s->together };
    qn_status status = cuda_check(cudaLaunchKernelExC(&config, s->before, arguments), "quantize_packed");
    if (status || (s->together && !p.again)) return status;
    if (s->together) p.vectors = p.again, p.tail = 0;
  }
  return cuda_launch_kernel(s->kernel, s->early, (dim3){ s->blocks, 1, 1 }, s->threads, 0, arguments, launch->stream, "quantize_packed");
}

#define ROW(anchor) { .name = "packed", .op = anchor, .class_ = QN_CLASS_TUNED, \
                      .prepare = prepare, .build = build, .run = run, .release = cuda_release, \
                      .traits = QN_TRAIT_DETERMINISTIC | QN_TRAIT_BATCH_INVARIANT | QN_TRAIT_PORTABLE }
static const qn_engine row[] = { ROW(QN_OP_QUANTIZE), ROW(QN_OP_DEQUANTIZE), ROW(QN_OP_QUANTIZE_DYNAMIC) };
CUDA_ENGINES(quantize_packed) = { row, sizeof row / sizeof *row };
