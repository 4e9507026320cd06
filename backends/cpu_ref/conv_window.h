/* conv_window.h -- where the taps of a convolution's window fall, and rows of what they see: im2col, a block at a time.
 *
 * In each spatial dim, pixel t of the grid and tap i meet at source position t step + i tap_step + start, which is
 * zero where it lies outside. The forward pass has it so with step = stride and tap_step = dilation; the gradient
 * by the data, cut into phases by the stride, has it with step 1 and taps running backwards. */
#ifndef CPU_CONV_WINDOW_H
#define CPU_CONV_WINDOW_H
#include "gemm_core.h"

typedef struct cpu_window_axis {
  int64_t n, taps, step, tap_step, start, extent;
} cpu_window_axis;

typedef struct cpu_window {
  cpu_window_axis axis[3];                /* leading ones are of extent 1 where there are fewer spatial dims */
  int64_t pixels, taps;                   /* products over the axes: pixels of one image */
  int64_t channels;                       /* of one group */
  uint32_t dtype;                         /* of the source */
  int64_t stride[5];                      /* N, C, spatial */
} cpu_window;

/* The forward pass's: pixels are y's, the source is x. flat: pixels need not be told apart by dim, only counted. */
void cpu_window_forward(cpu_window *w, const qn_value *x, const qn_value *y, const qn_value *filter, const qn_conv *conv,
                        bool flat);
/* One phase of the gradient's by the data: pixels are dx's at phase + t stride, the source is dy, and tap i is the filter's
 * first[d] + i every[d]. Pixels or taps may be none. */
void cpu_window_phase(cpu_window *w, const qn_value *dx, const qn_value *dy, const qn_value *filter, const qn_conv *conv,
                      bool flat, const int64_t phase[3], int64_t first[3], int64_t every[3]);

/* Image, then spatial position, of the pixel `index` of all images. */
void cpu_window_pixel(const cpu_window *w, int64_t index, int64_t at[4]);
/* From any pixel of a line to the first of the next. */
void cpu_window_next_line(const cpu_window *w, int64_t at[4]);
/* The tap's place on each axis. */
void cpu_window_tap(const cpu_window *w, int64_t tap, int64_t at[3]);

/* dst[p ld + i] = what pixel first + i sees at place `place` + p of its window, for n pixels in a row through all images.
 * Places are (channel, tap), or (tap, channel); `source` is the group's first element. dst is of the row type of the dtype. */
void cpu_window_pixels(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, bool taps_fastest, int64_t place,
                       int64_t places, int64_t first, int64_t n, char *dst, int64_t ld);
/* dst[i] = what a pixel sees at place first + i of its window, whose places are (tap, channel), channels fastest;
 * `source` is the group's first element. */
void cpu_window_places(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, int64_t pixel, int64_t first, int64_t n,
                       char *dst);

#endif
