# The CUDA backend: always a plugin. engines.def says what its files are and for which of NVCC_GENCODE's targets each is compiled.
if HAVE_CUDA
plugin_LTLIBRARIES += backends/cuda/quern_cuda.la
QUERN_TEST_PLUGINS += $(abs_top_builddir)/backends/cuda/.libs
endif
include backends/cuda/engines.mk
if QUICK_CUDA
backends_cuda_quern_cuda_la_SOURCES = $(cuda_host)
nodist_backends_cuda_quern_cuda_la_SOURCES = backends/cuda/engines.c $(cuda_together)
else
backends_cuda_quern_cuda_la_SOURCES = $(cuda_host) $(cuda_all) $(cuda_sm_80) $(cuda_sm_90a)
nodist_backends_cuda_quern_cuda_la_SOURCES = backends/cuda/engines.c
endif
EXTRA_DIST += $(wildcard $(srcdir)/backends/cuda/*.h $(srcdir)/backends/cuda/*/*.h $(srcdir)/backends/cuda/*/*.cuh)
backends_cuda_quern_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/backends/cuda $(CUDA_CPPFLAGS) $(CUBLASLT_CPPFLAGS)
backends_cuda_quern_cuda_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
backends_cuda_quern_cuda_la_LDFLAGS = $(PLUGIN_LDFLAGS)
backends_cuda_quern_cuda_la_LIBADD = $(CUDA_LIBS) $(LIBM)

cuda_from_80 = $(filter-out -gencode=arch=compute_7%,$(NVCC_GENCODE))
cuda_only_90a = -gencode=arch=compute_90a,code=sm_90a
$(cuda_sm_80:.cu=.lo): NVCC_GENCODE := $(cuda_from_80)
$(cuda_sm_90a:.cu=.lo): NVCC_GENCODE = $(cuda_only_90a)
backends/cuda/together/sm_80_%.lo: NVCC_GENCODE := $(cuda_from_80)
backends/cuda/together/sm_90a_%.lo: NVCC_GENCODE = $(cuda_only_90a)

# Half of the size is templates that differ little. tests/cuda_kernels.sh reads what ptxas warns of.
if QUICK_CUDA
CUDA_OUTCOME_FLAGS =
else
CUDA_OUTCOME_FLAGS = --compress-mode=size -Xptxas=-warn-spills
endif
backends/cuda/%.lo: NVCCFLAGS += -I$(top_srcdir)/backends/cuda $(CUDA_OUTCOME_FLAGS)

# For --enable-quick-cuda some files are compiled as one: what they begin with takes half of the time.
backends/cuda/together/%.cu: $(top_srcdir)/build-aux/together.awk $(wildcard $(srcdir)/backends/cuda/*/*.cuh)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) -v root=$(top_srcdir)/backends/cuda -f $< $(cuda_together_$*) >$@-new && mv -f $@-new $@
EXTRA_DIST += build-aux/together.awk
CLEANFILES += $(cuda_together)
