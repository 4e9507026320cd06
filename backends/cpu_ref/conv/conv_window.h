/* conv_window.h -- which source elements a convolution's windows read, and rows of them: im2col, a block at a time.
 *
 * In each spatial dim, tap i of pixel t reads source position t step + i tap_step + start, which counts as zero
 * outside the source. The forward pass has step = stride and tap_step = dilation; the gradient by the data, split
 * into phases by the stride, has step 1 and taps in reverse. */
#ifndef CPU_CONV_WINDOW_H
#define CPU_CONV_WINDOW_H
#include "gemm/gemm_core.h"

typedef struct cpu_window_axis {
  int64_t n, taps, step, tap_step, start, extent;
} cpu_window_axis;

typedef struct cpu_window {
  cpu_window_axis axis[3];                /* with fewer spatial dims the leading axes have extent 1 */
  int64_t pixels, taps;                   /* products over the axes: pixels of one image, taps of a window */
  int64_t channels;                       /* of one group */
  uint32_t dtype;                         /* of the source */
  int64_t stride[5];                      /* N, C, spatial */
} cpu_window;

/* Of the forward pass: pixels are y's, the source is x. flat: pixels are only counted, not addressed by dim. */
void cpu_window_forward(cpu_window *w, const qn_value *x, const qn_value *y, const qn_value *filter, const qn_conv *conv,
                        bool flat);
/* Of one phase of the gradient by the data: pixels are dx's at phase + t stride, the source is dy, and tap i is the filter's
 * first[d] + i every[d]. There may be no pixels or no taps. */
void cpu_window_phase(cpu_window *w, const qn_value *dx, const qn_value *dy, const qn_value *filter, const qn_conv *conv,
                      bool flat, const int64_t phase[3], int64_t first[3], int64_t every[3]);

/* Image and spatial position of pixel `index`, counted over all images. */
void cpu_window_pixel(const cpu_window *w, int64_t index, int64_t at[4]);
/* From any pixel of a line to the first pixel of the next line. */
void cpu_window_next_line(const cpu_window *w, int64_t at[4]);
/* The tap's index on each axis. */
void cpu_window_tap(const cpu_window *w, int64_t tap, int64_t at[3]);

/* dst[p ld + i] = what pixel first + i reads at place `place` + p of its window, for n consecutive pixels over all images.
 * Places are (channel, tap) or (tap, channel); `source` is the group's first element. dst has the row type of the dtype. */
void cpu_window_pixels(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, bool taps_fastest, int64_t place,
                       int64_t places, int64_t first, int64_t n, char *dst, int64_t ld);
/* dst[i] = what a pixel reads at place first + i of its window, with places (tap, channel), channels fastest;
 * `source` is the group's first element. */
void cpu_window_places(const cpu_gemm_isa *isa, const cpu_window *w, const char *source, int64_t pixel, int64_t first, int64_t n,
                       char *dst);

#endif
