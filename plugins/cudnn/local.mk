# cuDNN's engines: built if its headers and CUDA's are found; the library is opened at run time.

EXTRA_DIST += plugins/cudnn/cudnn.tap
if BUILD_PLUGINS
if HAVE_CUDNN
plugin_LTLIBRARIES += plugins/cudnn/quern_cudnn.la
plugins_cudnn_quern_cudnn_la_SOURCES = \
  plugins/cudnn/peer.h \
  plugins/cudnn/backend.c \
  plugins/cudnn/library.c \
  plugins/cudnn/tensor.c \
  plugins/cudnn/graph.c \
  plugins/cudnn/conv.c \
  plugins/cudnn/matmul.c \
  plugins/cudnn/call.c \
  plugins/cudnn/norm.c \
  plugins/cudnn/batch_norm.c \
  plugins/cudnn/softmax.c \
  plugins/cudnn/pool.c \
  plugins/cudnn/reduce.c \
  plugins/cudnn/pointwise.c \
  plugins/cudnn/lrn.c \
  plugins/cudnn/sampling.c \
  plugins/cudnn/rnn.c \
  plugins/cudnn/attention.c
plugins_cudnn_quern_cudnn_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/plugins/cudnn $(CUDA_CPPFLAGS) $(CUDNN_CPPFLAGS)
plugins_cudnn_quern_cudnn_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS) -Wno-deprecated-declarations
plugins_cudnn_quern_cudnn_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_cudnn_quern_cudnn_la_LIBADD = $(CUDA_LIBS) $(LIBM)
QUERN_TEST_PLUGINS += $(abs_top_builddir)/plugins/cudnn/.libs
TESTS += plugins/cudnn/cudnn.tap
endif
endif
