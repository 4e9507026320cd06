/* conv_strip.h -- a strip of a plane, as the depthwise engines copy it: with its padding, and for a stride the columns of each remainder
 * side by side, so that every tap of every pixel is a shifted read of whole vectors. */
#ifndef CPU_CONV_STRIP_H
#define CPU_CONV_STRIP_H
#include "conv_window.h"

/* Copies a source line from position `shift` on, zeros around it, into `step` lines of `line` floats, of every step-th element. */
static inline void cpu_lay_line(const cpu_window *w, const cpu_gemm_isa *isa, int64_t shift, int64_t line, const char *src, bool inside,
                                float *dst)
{
  const cpu_window_axis *x = &w->axis[2];
  if (x->step == 1 && w->stride[4] == 1 && w->dtype == QN_F32 && inside) {       /* planes of 7x7 have lines too short for calls */
    const float *const from = (const float *)src + shift;
    const int64_t first = qn_min_i64(line, qn_max_i64(0, -shift)), end = qn_max_i64(first, qn_min_i64(line, x->extent - shift));
    int64_t m = 0;
    for (; m < first; m++) dst[m] = 0;
    for (; m < end; m++) dst[m] = from[m];
    for (; m < line; m++) dst[m] = 0;
    return;
  }
  for (int64_t q = 0; q < x->step; q++, dst += line) {
    /* element m is at position shift + q + m step */
    const int64_t first = shift + q;
    const int64_t low = qn_max_i64(0, qn_ceil_div(-first, x->step));
    const int64_t high = inside ? qn_min_i64(line, qn_ceil_div(x->extent - first, x->step)) : 0;
    if (high <= low) {
      memset(dst, 0, (size_t)line * sizeof *dst);
      continue;
    }
    memset(dst, 0, (size_t)low * sizeof *dst);
    isa->widen[w->dtype](src + (first + low * x->step) * w->stride[4] * qn_kit_bytes(w->dtype), x->step * w->stride[4], high - low,
                         dst + low);
    memset(dst + high, 0, (size_t)(line - high) * sizeof *dst);
  }
}
#endif
