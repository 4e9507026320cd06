# The CUDA backend: always a plugin. Add files to _SOURCES; .cu files are compiled by nvcc, see the top Makefile.am.
# Once there is a first file:
#
#   if HAVE_CUDA
#   plugin_LTLIBRARIES += backends/cuda/quern_cuda.la
#   QUERN_TEST_PLUGINS += $(abs_top_builddir)/backends/cuda/.libs
#   endif
#   backends_cuda_quern_cuda_la_SOURCES = \
#     backends/cuda/backend.c \
#     backends/cuda/device.c
#   backends_cuda_quern_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
#   backends_cuda_quern_cuda_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
#   backends_cuda_quern_cuda_la_LDFLAGS = $(PLUGIN_LDFLAGS)
#   backends_cuda_quern_cuda_la_LIBADD = $(CUDA_LIBS)
