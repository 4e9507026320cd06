# cpu_ref: the oracle and the fast CPU engines, in libquern (the default) or as a plugin (--with-builtin=).
# Each group below is compiled with its own flags. A file that is compiled for several instruction sets is in several
# groups and uses QN_ISA (baseline, avx2, avx512) to name its tables.

cpu_ref_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/backends/cpu_ref $(OPENBLAS_CFLAGS)
cpu_ref_cflags = $(AM_CFLAGS) $(HIDDEN_CFLAGS) $(OPENMP_CFLAGS) $(FRAME_CFLAGS)
cpu_ref_fast = -fno-math-errno -fno-trapping-math -ftree-vectorize $(VECTORIZE_CFLAGS) $(STRING_CFLAGS) -ffp-contract=fast
if BUILTIN_CPU_REF
cpu_ref_cppflags += -DQN_BUILTIN
endif

# engines.def says what the files are and which group each is in.
include backends/cpu_ref/engines.mk
EXTRA_DIST += $(wildcard $(srcdir)/backends/cpu_ref/*.h $(srcdir)/backends/cpu_ref/*/*.h)

noinst_LTLIBRARIES += backends/cpu_ref/libbase.la
backends_cpu_ref_libbase_la_SOURCES = $(cpu_ref_once) $(cpu_ref_each)
nodist_backends_cpu_ref_libbase_la_SOURCES = backends/cpu_ref/engines.c
backends_cpu_ref_libbase_la_CPPFLAGS = $(cpu_ref_cppflags) -DQN_ISA=baseline
backends_cpu_ref_libbase_la_CFLAGS = $(cpu_ref_cflags) $(cpu_ref_fast)

# The oracle: the formula as written.
noinst_LTLIBRARIES += backends/cpu_ref/libdirect.la
backends_cpu_ref_libdirect_la_SOURCES = $(cpu_ref_direct)
backends_cpu_ref_libdirect_la_CPPFLAGS = $(cpu_ref_cppflags)
backends_cpu_ref_libdirect_la_CFLAGS = $(cpu_ref_cflags) -ffp-contract=off

cpu_ref_libs = backends/cpu_ref/libbase.la backends/cpu_ref/libdirect.la

if HAVE_AVX2
noinst_LTLIBRARIES += backends/cpu_ref/libavx2.la
backends_cpu_ref_libavx2_la_SOURCES = $(cpu_ref_each)
backends_cpu_ref_libavx2_la_CPPFLAGS = $(cpu_ref_cppflags) -DQN_ISA=avx2
backends_cpu_ref_libavx2_la_CFLAGS = $(cpu_ref_cflags) $(cpu_ref_fast) $(AVX2_CFLAGS)
cpu_ref_libs += backends/cpu_ref/libavx2.la
endif

if HAVE_AVX512
noinst_LTLIBRARIES += backends/cpu_ref/libavx512.la
backends_cpu_ref_libavx512_la_SOURCES = $(cpu_ref_each)
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
