# cpu_ref: the oracle and the fast CPU engines, in libquern (the default) or as a plugin (--with-builtin=).
# Each group below is compiled with its own flags. A file that is compiled for several instruction sets is in several
# groups and uses QN_ISA (baseline, avx2, avx512) to name its tables.

cpu_ref_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/backends/cpu_ref $(OPENBLAS_CFLAGS)
cpu_ref_cflags = $(AM_CFLAGS) $(HIDDEN_CFLAGS) $(OPENMP_CFLAGS) $(FRAME_CFLAGS)
cpu_ref_fast = -fno-math-errno -fno-trapping-math -ftree-vectorize $(VECTORIZE_CFLAGS) $(STRING_CFLAGS) -ffp-contract=fast
if BUILTIN_CPU_REF
cpu_ref_cppflags += -DQN_BUILTIN
endif

# Engines with inner loops of their own: each file is compiled once per instruction set (simd.h).
cpu_ref_copies = \
  backends/cpu_ref/simd.h \
  backends/cpu_ref/convert.h \
  backends/cpu_ref/pointwise_math.h \
  backends/cpu_ref/pointwise_tile.h \
  backends/cpu_ref/pointwise_tile.c \
  backends/cpu_ref/pointwise_f32.c \
  backends/cpu_ref/pointwise_whole.c \
  backends/cpu_ref/softmax_rows.c \
  backends/cpu_ref/norm_range.h \
  backends/cpu_ref/norm_runs.c \
  backends/cpu_ref/norm_runs_f64.c \
  backends/cpu_ref/norm_columns.c \
  backends/cpu_ref/norm_columns_f64.c \
  backends/cpu_ref/logits.h \
  backends/cpu_ref/lrn_tiles.c \
  backends/cpu_ref/sampling_points.c \
  backends/cpu_ref/resample_lists.c \
  backends/cpu_ref/resample_lists_f64.c \
  backends/cpu_ref/loss_rows.c \
  backends/cpu_ref/loss_rows_f64.c \
  backends/cpu_ref/quantize_runs.c \
  backends/cpu_ref/ctc_rows.c \
  backends/cpu_ref/rnn_parts.h \
  backends/cpu_ref/rnn_steps.c \
  backends/cpu_ref/rnn_back.c \
  backends/cpu_ref/random_packed.c \
  backends/cpu_ref/training_lists.c \
  backends/cpu_ref/pool_window.h \
  backends/cpu_ref/pool_planes.c \
  backends/cpu_ref/pool_planes_f64.c \
  backends/cpu_ref/pool_channels.c \
  backends/cpu_ref/pool_channels_f64.c \
  backends/cpu_ref/pool_adaptive_planes.c \
  backends/cpu_ref/pool_lp.c \
  backends/cpu_ref/reduce_plan.h \
  backends/cpu_ref/reduce_rows.c \
  backends/cpu_ref/reduce_cols.c \
  backends/cpu_ref/gemm_tile.h \
  backends/cpu_ref/gemm_kernel.c \
  backends/cpu_ref/attention_tiles.h \
  backends/cpu_ref/attention_tiles.c \
  backends/cpu_ref/attention_tiles_backward.c \
  backends/cpu_ref/attention_decode.c \
  backends/cpu_ref/conv_depthwise.c \
  backends/cpu_ref/conv_channels.c \
  backends/cpu_ref/conv_channels_filter.c \
  backends/cpu_ref/conv_depthwise_filter.c

# The backend's table and device, and shared code.
noinst_LTLIBRARIES += backends/cpu_ref/libbase.la
backends_cpu_ref_libbase_la_SOURCES = \
  backends/cpu_ref/cpu_ref.h \
  backends/cpu_ref/backend.c \
  backends/cpu_ref/device.c \
  backends/cpu_ref/engines.c \
  backends/cpu_ref/gemm_core.h \
  backends/cpu_ref/gemm_core.c \
  backends/cpu_ref/gemm_epilogue.h \
  backends/cpu_ref/gemm_follow.h \
  backends/cpu_ref/gemm_epilogue.c \
  backends/cpu_ref/matmul_gemm.c \
  backends/cpu_ref/matmul_blocked.h \
  backends/cpu_ref/matmul_blocked.c \
  backends/cpu_ref/conv_window.h \
  backends/cpu_ref/conv_strip.h \
  backends/cpu_ref/conv_window.c \
  backends/cpu_ref/conv_gemm.h \
  backends/cpu_ref/conv_gemm.c \
  backends/cpu_ref/conv_gemm_filter.c \
  backends/cpu_ref/conv_subpixel.c \
  backends/cpu_ref/gemm_fused.c \
  backends/cpu_ref/pointwise_program.c \
  backends/cpu_ref/affine_rows.c \
  backends/cpu_ref/select_lines.c \
  backends/cpu_ref/select_rows.c \
  backends/cpu_ref/transform_pad.c \
  backends/cpu_ref/transform_pad_f64.c \
  backends/cpu_ref/transform_strided.c \
  $(cpu_ref_copies)
backends_cpu_ref_libbase_la_CPPFLAGS = $(cpu_ref_cppflags) -DQN_ISA=baseline
backends_cpu_ref_libbase_la_CFLAGS = $(cpu_ref_cflags) $(cpu_ref_fast)

# The oracle, *_direct.c: the formula as written.
noinst_LTLIBRARIES += backends/cpu_ref/libdirect.la
backends_cpu_ref_libdirect_la_SOURCES = \
  backends/cpu_ref/direct.h \
  backends/cpu_ref/direct.c \
  backends/cpu_ref/matmul_direct.c \
  backends/cpu_ref/conv_direct.c \
  backends/cpu_ref/softmax_direct.c \
  backends/cpu_ref/norm_direct.c \
  backends/cpu_ref/lrn_direct.c \
  backends/cpu_ref/sampling_direct.c \
  backends/cpu_ref/loss_direct.c \
  backends/cpu_ref/ctc_direct.c \
  backends/cpu_ref/attention_direct.c \
  backends/cpu_ref/attention_parts_direct.c \
  backends/cpu_ref/rnn_direct.c \
  backends/cpu_ref/random_direct.c \
  backends/cpu_ref/quantize_direct.c \
  backends/cpu_ref/training_direct.c \
  backends/cpu_ref/pool_direct.c \
  backends/cpu_ref/resample_direct.c \
  backends/cpu_ref/pool_adaptive_direct.c \
  backends/cpu_ref/reduce_direct.c \
  backends/cpu_ref/transform_direct.c \
  backends/cpu_ref/select_direct.c \
  backends/cpu_ref/elements_direct.c \
  backends/cpu_ref/pointwise_direct.c
backends_cpu_ref_libdirect_la_CPPFLAGS = $(cpu_ref_cppflags)
backends_cpu_ref_libdirect_la_CFLAGS = $(cpu_ref_cflags) -ffp-contract=off

cpu_ref_libs = backends/cpu_ref/libbase.la backends/cpu_ref/libdirect.la

if HAVE_AVX2
noinst_LTLIBRARIES += backends/cpu_ref/libavx2.la
backends_cpu_ref_libavx2_la_SOURCES = $(cpu_ref_copies)
backends_cpu_ref_libavx2_la_CPPFLAGS = $(cpu_ref_cppflags) -DQN_ISA=avx2
backends_cpu_ref_libavx2_la_CFLAGS = $(cpu_ref_cflags) $(cpu_ref_fast) $(AVX2_CFLAGS)
cpu_ref_libs += backends/cpu_ref/libavx2.la
endif

if HAVE_AVX512
noinst_LTLIBRARIES += backends/cpu_ref/libavx512.la
backends_cpu_ref_libavx512_la_SOURCES = $(cpu_ref_copies)
backends_cpu_ref_libavx512_la_CPPFLAGS = $(cpu_ref_cppflags) -DQN_ISA=avx512
backends_cpu_ref_libavx512_la_CFLAGS = $(cpu_ref_cflags) $(cpu_ref_fast) $(AVX512_CFLAGS)
cpu_ref_libs += backends/cpu_ref/libavx512.la
endif

cpu_ref_deps = $(OPENBLAS_LIBS) $(LIBM)

if BUILTIN_CPU_REF
QUERN_BUILTIN += $(cpu_ref_libs)
QUERN_BUILTIN_DEPS += $(cpu_ref_deps)
QUERN_BUILTIN_LDFLAGS += $(OPENMP_CFLAGS)
AM_LDFLAGS += $(OPENMP_CFLAGS)
else
plugin_LTLIBRARIES += backends/cpu_ref/quern_cpu_ref.la
backends_cpu_ref_quern_cpu_ref_la_SOURCES =
backends_cpu_ref_quern_cpu_ref_la_LIBADD = $(cpu_ref_libs) $(cpu_ref_deps)
backends_cpu_ref_quern_cpu_ref_la_LDFLAGS = $(PLUGIN_LDFLAGS) $(OPENMP_CFLAGS)
QUERN_TEST_PLUGINS += $(abs_top_builddir)/backends/cpu_ref/.libs
endif
