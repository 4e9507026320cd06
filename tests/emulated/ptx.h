/* ptx.h -- instructions that the kernels use in inline assembly: ptx_NAME is the one of that name, dots as underscores, its operands
 * in order. translate.py reads which exist. Missing, and an error when a kernel reaches one: clusters of more than one block,
 * signalling between blocks that wait for one another. Asynchronous instructions are done at once: what a kernel forgets to wait for
 * does not show. */
#ifndef QUERN_TESTS_EMULATED_PTX_H
#define QUERN_TESTS_EMULATED_PTX_H

/* ---- functions: approximations are as precise as the host's; subnormals count as 0 where the name says ftz --------------------- */

inline float emulated_flushed(float x) { return std::fabs(x) < FLT_MIN ? std::copysign(0.f, x) : x; }
inline void ptx_ex2_approx_ftz_f32(float &y, float x) { y = emulated_flushed(std::exp2(emulated_flushed(x))); }
inline void ptx_lg2_approx_ftz_f32(float &y, float x) { y = std::log2(emulated_flushed(x)); }
inline void ptx_rcp_approx_ftz_f32(float &y, float x) { y = emulated_flushed(1 / emulated_flushed(x)); }
inline void ptx_sqrt_approx_ftz_f32(float &y, float x) { y = std::sqrt(emulated_flushed(x)); }
inline void ptx_rsqrt_approx_ftz_f32(float &y, float x) { y = 1 / std::sqrt(emulated_flushed(x)); }
inline void ptx_tanh_approx_f32(float &y, float x) { y = std::tanh(x); }

/* ---- arithmetic ---------------------------------------------------------------------------------------------- */

inline void ptx_add_f32(float &d, float a, float b) { d = a + b; }
inline void ptx_and_b32(uint32_t &y, uint32_t a, uint32_t b) { y = a & b; }
inline void ptx_mul_wide_u32(uint64_t &d, uint32_t a, uint32_t b) { d = (uint64_t)a * b; }
inline void ptx_setp_eq_u32(bool &p, uint32_t a, uint32_t b) { p = a == b; }
inline void ptx_setp_ne_b32(bool &p, uint32_t a, uint32_t b) { p = a != b; }
inline void ptx_setp_lt_s32(bool &p, int a, int b) { p = a < b; }
inline void ptx_setp_ne_u32(bool &p, uint32_t a, uint32_t b) { p = a != b; }

template <bool nan, class T> T emulated_larger(T a, T b)
{
  const float x = (float)a, y = (float)b;
  if (x != x) return nan ? a : b;
  if (y != y) return nan ? b : a;
  return x > y || (x == y && !std::signbit(x)) ? a : b;
}
template <bool nan, class T> void emulated_larger_pair(uint32_t &d, uint32_t a, uint32_t b)
{
  T x[2], y[2];
  memcpy(x, &a, sizeof a);
  memcpy(y, &b, sizeof b);
  for (int i = 0; i < 2; i++) x[i] = emulated_larger<nan>(x[i], y[i]);
  memcpy(&d, x, sizeof d);
}
inline void ptx_max_NaN_f32(float &d, float a, float b) { d = emulated_larger<true>(a, b); }
inline void ptx_max_NaN_f16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<true, __half>(d, a, b); }
inline void ptx_max_NaN_bf16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<true, __nv_bfloat16>(d, a, b); }
inline void ptx_max_f16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<false, __half>(d, a, b); }
inline void ptx_max_bf16x2(uint32_t &d, uint32_t a, uint32_t b) { emulated_larger_pair<false, __nv_bfloat16>(d, a, b); }

/* Two values clamped to the format, a above b, above the lower half of c. */
inline uint32_t emulated_packed(int a, int b, uint32_t c, int least, int most)
{
  const uint32_t high = (uint32_t)std::clamp(a, least, most) & 255, low = (uint32_t)std::clamp(b, least, most) & 255;
  return c << 16 | high << 8 | low;
}
template <class T> void ptx_cvt_pack_sat_u8_s32_b32(T &d, int a, int b, uint32_t c) { d = (T)emulated_packed(a, b, c, 0, 255); }
template <class T> void ptx_cvt_pack_sat_s8_s32_b32(T &d, int a, int b, uint32_t c) { d = (T)emulated_packed(a, b, c, -128, 127); }

/* ---- shared memory, by 32-bit addresses ---------------------------------------------------------------------- */

template <class T> T &emulated_word(uint32_t at) { return *(T *)emulated_at_shared(at, sizeof(T)); }
inline void ptx_ld_shared_f32(float &d, uint32_t at) { d = emulated_word<float>(at); }
template <class T> void ptx_ld_shared_u16(T &d, uint32_t at) { d = emulated_word<uint16_t>(at); }
template <class T> void ptx_ld_shared_u32(T &d, uint32_t at) { d = emulated_word<uint32_t>(at); }
template <class T> void ptx_ld_shared_v4_u32(T &a, T &b, T &c, T &d, uint32_t at)
{
  const uint4 q = emulated_word<uint4>(at);
  a = q.x, b = q.y, c = q.z, d = q.w;
}
inline void ptx_ld_shared_v2_f32(float &a, float &b, uint32_t at)
{
  const float2 p = emulated_word<float2>(at);
  a = p.x, b = p.y;
}
inline void ptx_ld_shared_v4_f32(float &a, float &b, float &c, float &d, uint32_t at)
{
  const float4 q = emulated_word<float4>(at);
  a = q.x, b = q.y, c = q.z, d = q.w;
}
inline void ptx_st_shared_u32(uint32_t at, uint32_t v) { emulated_word<uint32_t>(at) = v; }
inline void ptx_st_shared_v4_f32(uint32_t at, float a, float b, float c, float d) { emulated_word<float4>(at) = { a, b, c, d }; }
inline void ptx_st_shared_v2_f32(uint32_t at, float a, float b) { emulated_word<float2>(at) = { a, b }; }
inline void ptx_st_shared_v2_s32(uint32_t at, int a, int b) { emulated_word<int2>(at) = { a, b }; }
inline void ptx_ld_shared_v4_s32(int &a, int &b, int &c, int &d, uint32_t at)
{
  const int4 q = emulated_word<int4>(at);
  a = q.x, b = q.y, c = q.z, d = q.w;
}

/* Asynchronous copies: done at once here, `width` bytes in all, zeros after the first `bytes`. */
inline void ptx_cp_async_cg_shared_global(uint32_t to, const void *from, int width, int bytes)
{
  emulated_copy(emulated_at_shared(to, width), from, width, bytes);
}
inline void ptx_cp_async_ca_shared_global(uint32_t to, const void *from, int width, int bytes)
{
  emulated_copy(emulated_at_shared(to, width), from, width, bytes);
}
inline void ptx_cp_async_commit_group() {}
inline void ptx_cp_async_wait_group(int) {}
inline void ptx_prefetch_global_L2(const void *) {}
inline void ptx_trap() { emulated_error("a trap"); }

template <class T> void ptx_ld_global_nc_L1_no_allocate_L2_128B_v4_u32(T &a, T &b, T &c, T &d, const void *from)
{
  const uint4 q = *emulated_aligned((const uint4 *)from);
  a = q.x, b = q.y, c = q.z, d = q.w;
}

/* ---- barriers ------------------------------------------------------------------------------------------------ */

inline void ptx_bar_sync(int id, int threads) { emulated_named_barrier(id, threads); }
inline void ptx_griddepcontrol_wait() {}
inline void ptx_selp_u32(uint32_t &d, uint32_t a, uint32_t b, bool p) { d = p ? a : b; }

/* In shared memory: a phase completes when `arrivals` have arrived and as many bytes were copied as they announced. */
struct emulated_mbarrier { uint16_t arrivals, missing : 15, phase : 1; int32_t bytes; };
inline void emulated_mbarrier_add(uint32_t at, int arrived, int bytes)
{
  emulated_mbarrier &b = emulated_word<emulated_mbarrier>(at);
  b.bytes += bytes, b.missing -= arrived;
  if (!b.missing && !b.bytes) b.missing = b.arrivals, b.phase ^= 1;
}
inline void ptx_mbarrier_init_shared_cta_b64(uint32_t at, uint32_t arrivals)
{
  emulated_word<emulated_mbarrier>(at) = { (uint16_t)arrivals, (uint16_t)arrivals, 0, 0 };
}
inline void ptx_mbarrier_arrive_shared_cta_b64(uint32_t at) { emulated_mbarrier_add(at, 1, 0); }
inline void ptx_mbarrier_arrive_expect_tx_shared_cta_b64(uint32_t at, uint32_t bytes) { emulated_mbarrier_add(at, 1, (int)bytes); }
inline void ptx_cp_async_mbarrier_arrive_noinc_shared_cta_b64(uint32_t at) { emulated_mbarrier_add(at, 1, 0); }
inline void ptx_mbarrier_try_wait_parity_shared_cta_b64(bool &done, uint32_t at, uint32_t parity)
{
  done = emulated_word<emulated_mbarrier>(at).phase != parity;
  if (!done) emulated_let_others();
}
inline void ptx_fence_mbarrier_init_release_cluster() {}
inline void ptx_fence_proxy_async_shared_cta() {}
inline void ptx_bar_arrive(int id, int threads) { emulated_named_arrival(id, threads); }
inline void ptx_bar_red_or_pred(bool &any, int id, int threads, bool mine) { any = emulated_named_barrier(id, threads, mine); }
inline void ptx_setmaxnreg_inc_sync_aligned_u32(int) {}
inline void ptx_setmaxnreg_dec_sync_aligned_u32(int) {}

/* On global memory, by which concurrent blocks communicate. */
inline void ptx_atom_acq_rel_gpu_global_inc_u32(uint32_t &before, uint32_t *at, uint32_t most) { before = atomicInc(at, most); }
inline void ptx_st_relaxed_gpu_global_v2_u64(void *to, uint64_t x, uint64_t y) { ((volatile uint64_t *)to)[0] = x, ((volatile uint64_t *)to)[1] = y; }
inline void ptx_ld_relaxed_gpu_global_v2_u64(uint64_t &x, uint64_t &y, const void *from)
{
  emulated_let_others();
  x = ((const volatile uint64_t *)from)[0], y = ((const volatile uint64_t *)from)[1];
}
inline void ptx_griddepcontrol_launch_dependents() {}
inline void ptx_fence_proxy_async_global() {}
inline void ptx_ld_acquire_gpu_global_u32(uint32_t &d, const uint32_t *from)
{
  emulated_let_others();
  d = *(const volatile uint32_t *)emulated_aligned(from);
}
inline void ptx_red_release_gpu_global_add_u32(uint32_t *to, uint32_t by) { atomicAdd(to, by); }

/* ---- Tensor Cores -------------------------------------------------------------------------------------------- */

enum emulated_operand_type { EMULATED_BF16, EMULATED_F16, EMULATED_TF32, EMULATED_S8 };
template <emulated_operand_type type> double emulated_value(const void *p)
{
  if (type == EMULATED_BF16) return (float)*(const __nv_bfloat16 *)p;
  if (type == EMULATED_F16) return (float)*(const __half *)p;
  if (type == EMULATED_S8) return *(const int8_t *)p;
  return emulated_bits<float>(*(const uint32_t *)p & ~0x1fffu);              /* tf32: the lowest 13 bits are not read */
}

/* Rows g and g + 8 of a, 32 bytes of k each, of a warp's fragments: lane 4g + q has words q and q + 4 of them. */
template <emulated_operand_type type> void emulated_rows(double (&rows)[2][32], const uint32_t *a)
{
  constexpr int size = type == EMULATED_TF32 ? 4 : type == EMULATED_S8 ? 1 : 2, each = 4 / size;
  emulated_give(~0u, a, 16);
  for (int q = 0; q < 4; q++) {
    const uint4 v = emulated_take<uint4>(emulated_lane / 4 * 4 + q);
    const uint32_t word[4] = { v.x, v.y, v.z, v.w };        /* row g, g + 8, then the same 4 words further */
    for (int i = 0; i < 4; i++)
      for (int e = 0; e < each; e++)
        rows[i % 2][(i / 2 * 4 + q) * each + e] = emulated_value<type>((const char *)&word[i] + e * size);
  }
}
/* d = a b + c for 16 x 8 sums over 32 bytes of k, as fragments. */
template <emulated_operand_type type, class T>
void emulated_mma(T &d0, T &d1, T &d2, T &d3, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, T c0, T c1,
                  T c2, T c3)
{
  constexpr int size = type == EMULATED_TF32 ? 4 : type == EMULATED_S8 ? 1 : 2, each = 4 / size;
  const uint32_t a[4] = { a0, a1, a2, a3 }, b[2] = { b0, b1 };
  double sum[4] = { (double)c0, (double)c1, (double)c2, (double)c3 };
  emulated_fragment own;
  for (int i = 0; i < 4 * each; i++) own.a[i] = (float)emulated_value<type>((const char *)a + i * size);
  for (int i = 0; i < 2 * each; i++) own.b[i] = (float)emulated_value<type>((const char *)b + i * size);
  emulated_product(own, each, sum);
  d0 = (T)sum[0], d1 = (T)sum[1], d2 = (T)sum[2], d3 = (T)sum[3];
}
template <class... A> void ptx_mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(A &&...a) { emulated_mma<EMULATED_BF16>(a...); }
template <class... A> void ptx_mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(A &&...a) { emulated_mma<EMULATED_F16>(a...); }
template <class... A> void ptx_mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(A &&...a) { emulated_mma<EMULATED_TF32>(a...); }
template <class... A> void ptx_mma_sync_aligned_m16n8k32_row_col_s32_s8_s8_s32(A &&...a) { emulated_mma<EMULATED_S8>(a...); }
/* 8 x 8 sums over 4 of k, one fused operation after another: lane 4g + q has a[g][q], b[q][g], d[g][2q] and the next. */
inline void ptx_mma_sync_aligned_m8n8k4_row_col_f64_f64_f64_f64(double &d0, double &d1, double a, double b, double c0, double c1)
{
  const double own[2] = { a, b };
  double sum[2] = { c0, c1 };
  emulated_give(~0u, own, sizeof own);
  for (int k = 0; k < 4; k++)
    for (int c = 0; c < 2; c++) {
      const double x = emulated_take<double2>(emulated_lane / 4 * 4 + k).x,
                   y = emulated_take<double2>((emulated_lane % 4 * 2 + c) * 4 + k).y;
      sum[c] = std::fma(x, y, sum[c]);
    }
  __syncwarp();                           /* all have read */
  d0 = sum[0], d1 = sum[1];
}
inline void ptx_cvt_rna_tf32_f32(uint32_t &d, float x) { d = emulated_bits<uint32_t>(x) + (std::isfinite(x) ? 0x1000 : 0) & ~0x1fffu; }

/* Lane l's row l % 8 of matrix l / 8 is at `at`; r[i]: two elements of row l / 4 of matrix i, or of column l / 4. */
template <bool transposed, int n> void emulated_ldmatrix(uint32_t (&r)[n], uint32_t at)
{
  emulated_give(~0u, &at, sizeof at);
  for (int i = 0; i < n; i++)
    for (int e = 0; e < 2; e++) {
      const int other = emulated_lane % 4 * 2 + e, own = emulated_lane / 4;
      const int row = transposed ? other : own, column = transposed ? own : other;
      const uint16_t v = ((const uint16_t *)emulated_at_shared(emulated_take<uint32_t>(8 * i + row), 16))[column];
      memcpy((char *)&r[i] + 2 * e, &v, 2);
    }
  __syncwarp();                           /* all have read */
}
inline void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, uint32_t at)
{
  uint32_t r[4];
  emulated_ldmatrix<false>(r, at);
  a = r[0], b = r[1], c = r[2], d = r[3];
}
inline void ptx_ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16(uint32_t &a, uint32_t &b, uint32_t at)
{
  uint32_t r[2];
  emulated_ldmatrix<true>(r, at);
  a = r[0], b = r[1];
}
inline void ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, uint32_t at)
{
  uint32_t r[4];
  emulated_ldmatrix<true>(r, at);
  a = r[0], b = r[1], c = r[2], d = r[3];
}
inline void ptx_stmatrix_sync_aligned_m8n8_x4_shared_b16(uint32_t at, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
  const uint32_t r[4] = { a, b, c, d };
  emulated_give(~0u, &at, sizeof at);
  for (int i = 0; i < 4; i++)
    ((uint32_t *)emulated_at_shared(emulated_take<uint32_t>(8 * i + emulated_lane / 4), 16))[emulated_lane % 4] = r[i];
  __syncwarp();                           /* all have written */
}

/* wgmma: the products are in wgmma_instructions.cuh. */
inline void ptx_wgmma_fence_sync_aligned() {}
inline void ptx_wgmma_commit_group_sync_aligned() { emulated_named_barrier(16 + (int)(threadIdx.x / 128), 128); }
inline void ptx_wgmma_wait_group_sync_aligned(int) {}

/* ---- copies of boxes by a tensor map (TMA) --------------------------------------------------------------------- */

inline uint32_t emulated_swizzled(uint32_t at, int span) { return at ^ ((at >> 7 & ((uint32_t)span / 16 - 1)) << 4); }

/* Calls copy(shared address, global address, bytes within the tensor) for 16 bytes of channels (elements of dim 0) at c, others at `where`. */
template <class F> void emulated_unit(uint32_t at, const emulated_map *map, int c, const int64_t *where, int dims, F copy)
{
  const char *p = map->base;
  int there = 16;
  for (int d = 1; d < dims; d++) {
    p += where[d] * map->stride[d - 1];
    if (where[d] < 0 || where[d] >= map->extent[d]) there = 0;
  }
  if (c < 0 && c + 16 / map->size > 0) emulated_error("a box that begins %d elements before the tensor", c);
  if (c < 0) there = 0;
  there = (int)std::clamp<int64_t>((map->extent[0] - c) * map->size, 0, there);
  copy(emulated_at_shared(map->span ? emulated_swizzled(at, map->span) : at, 16), p + (int64_t)c * map->size, there);
}
/* Each 16 bytes of a box, in the order of shared memory. */
template <class F> void emulated_box(uint32_t at, const emulated_map *map, int c0, int c1, int c2, int c3, F copy)
{
  int64_t i[4];
  if (at % 128) emulated_error("a box at shared address %u, which is not aligned to 128 bytes", at);
  if (map->spatial) emulated_error("a box of a map of %d spatial dims", map->spatial);
  for (i[3] = c3; i[3] < c3 + map->box[3]; i[3]++)
    for (i[2] = c2; i[2] < c2 + map->box[2]; i[2]++)
      for (i[1] = c1; i[1] < c1 + map->box[1]; i[1]++)
        for (int c = c0; c < c0 + map->box[0]; c += 16 / map->size, at += 16) emulated_unit(at, map, c, i, 4, copy);
}
/* Each 16 bytes of a column of pixels; pixel: W, H, (D,) N of the first one, offset: of the tap. */
template <class F> void emulated_column(uint32_t at, const emulated_map *map, int c0, std::initializer_list<int> pixel,
                                        std::initializer_list<int> offset, F copy)
{
  const int spatial = (int)pixel.size() - 1;
  int64_t place[4], where[5];
  std::copy(pixel.begin(), pixel.end(), place);
  if (at % 128) emulated_error("a column at shared address %u, which is not aligned to 128 bytes", at);
  if (map->spatial != spatial) emulated_error("a column of %d spatial dims of a map of %d", spatial, map->spatial);
  for (int i = 0; i < map->box[1]; i++) {
    for (int d = 0; d < spatial; d++) {
      if ((place[d] < map->lower[d] || place[d] > map->last[d]) && !i) emulated_error("a column that begins beyond its bounds");
      where[1 + d] = place[d] + (offset.size() ? offset.begin()[d] : 0);
    }
    where[1 + spatial] = place[spatial];
    for (int c = c0; c < c0 + map->box[0]; c += 16 / map->size, at += 16) emulated_unit(at, map, c, where, spatial + 2, copy);
    for (int d = 0; d <= spatial; d++) {
      place[d] += d < spatial ? map->pace[d] : 1;
      if (d == spatial || place[d] <= map->last[d]) break;
      place[d] = map->lower[d];
    }
  }
}
struct emulated_loaded {                  /* counts the bytes, those beyond the tensor too */
  int *bytes;
  void operator()(void *to, const char *from, int there) const
  {
    memcpy(to, from, (size_t)there), memset((char *)to + there, 0, (size_t)(16 - there)), *bytes += 16;
  }
};
inline void emulated_stored(void *from, const char *to, int there) { memcpy((void *)to, from, (size_t)there); }
inline void ptx_prefetch_tensormap(const void *) {}
inline void ptx_cp_async_bulk_tensor_4d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(uint32_t to, const CUtensorMap *map, int c0,
                                                                                              int c1, int c2, int c3, uint32_t bar)
{
  int bytes = 0;
  emulated_box(to, (const emulated_map *)map, c0, c1, c2, c3, emulated_loaded{ &bytes });
  emulated_mbarrier_add(bar, 0, -bytes);
}
inline void ptx_cp_async_bulk_tensor_4d_shared_cluster_global_im2col_mbarrier_complete_tx_bytes(uint32_t to, const CUtensorMap *map, int c,
                                                                                                int w, int h, int n, uint32_t bar,
                                                                                                uint16_t dw, uint16_t dh)
{
  int bytes = 0;
  if (dw > 255 || dh > 255) emulated_error("a tap at %d, %d", dw, dh);
  emulated_column(to, (const emulated_map *)map, c, { w, h, n }, { dw, dh }, emulated_loaded{ &bytes });
  emulated_mbarrier_add(bar, 0, -bytes);
}
inline void ptx_cp_async_bulk_tensor_5d_shared_cluster_global_im2col_mbarrier_complete_tx_bytes(uint32_t to, const CUtensorMap *map, int c,
                                                                                                int w, int h, int d, int n, uint32_t bar,
                                                                                                uint16_t dw, uint16_t dh, uint16_t dd)
{
  int bytes = 0;
  if (dw > 31 || dh > 31 || dd > 31) emulated_error("a tap at %d, %d, %d", dw, dh, dd);
  emulated_column(to, (const emulated_map *)map, c, { w, h, d, n }, { dw, dh, dd }, emulated_loaded{ &bytes });
  emulated_mbarrier_add(bar, 0, -bytes);
}
inline void ptx_cp_async_bulk_prefetch_tensor_4d_L2_global_tile(const CUtensorMap *, int, int, int, int) {}
inline void ptx_cp_async_bulk_tensor_4d_global_shared_cta_tile_bulk_group(const CUtensorMap *map, int c0, int c1, int c2, int c3,
                                                                          uint32_t from)
{
  emulated_box(from, (const emulated_map *)map, c0, c1, c2, c3, emulated_stored);
}
inline void ptx_cp_async_bulk_tensor_4d_global_shared_cta_im2col_no_offs_bulk_group(const CUtensorMap *map, int c, int w, int h, int n,
                                                                                    uint32_t from)
{
  emulated_column(from, (const emulated_map *)map, c, { w, h, n }, {}, emulated_stored);
}
inline void ptx_cp_async_bulk_tensor_5d_global_shared_cta_im2col_no_offs_bulk_group(const CUtensorMap *map, int c, int w, int h, int d,
                                                                                    int n, uint32_t from)
{
  emulated_column(from, (const emulated_map *)map, c, { w, h, d, n }, {}, emulated_stored);
}
inline void emulated_bulk(const void *to, uint32_t shared, uint32_t bytes)
{
  if (((uintptr_t)to | shared | bytes) % 16) emulated_error("a bulk copy of %u bytes at %p and %u: not all multiples of 16", bytes, to, shared);
}
inline void ptx_cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(uint32_t to, const void *from, uint32_t bytes, uint32_t bar)
{
  emulated_bulk(from, to, bytes);
  for (uint32_t i = 0; i < bytes; i += 16) memcpy(emulated_at_shared(to + i, 16), (const char *)from + i, 16);
  emulated_mbarrier_add(bar, 0, -(int)bytes);
}
inline void ptx_cp_reduce_async_bulk_global_shared_cta_bulk_group_add_f32(float *to, uint32_t from, uint32_t bytes)
{
  emulated_bulk(to, from, bytes);
  for (uint32_t i = 0; i < bytes / 4; i++) to[i] += emulated_word<float>(from + 4 * i);
}
inline void ptx_cp_async_bulk_commit_group() {}
inline void ptx_cp_async_bulk_wait_group_read(int) {}
inline void ptx_cp_async_bulk_wait_group(int) {}

/* A block alone is a cluster of one. */
inline void ptx_barrier_cluster_arrive_release_aligned() {}
inline void ptx_barrier_cluster_arrive_relaxed_aligned() {}
inline void ptx_barrier_cluster_wait_acquire_aligned() {}
#endif
