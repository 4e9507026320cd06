# oneDNN's CPU engines.

if BUILD_PLUGINS
if HAVE_ONEDNN
plugin_LTLIBRARIES += plugins/onednn/quern_onednn.la
plugins_onednn_quern_onednn_la_SOURCES = \
  plugins/onednn/onednn.h \
  plugins/onednn/onednn.c \
  plugins/onednn/conv.c \
  plugins/onednn/matmul.c \
  plugins/onednn/lrn.c \
  plugins/onednn/norm.c \
  plugins/onednn/pointwise.c \
  plugins/onednn/reduction.c \
  plugins/onednn/resampling.c \
  plugins/onednn/softmax.c \
  plugins/onednn/pool.c
plugins_onednn_quern_onednn_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/plugins/onednn
plugins_onednn_quern_onednn_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS) $(OPENMP_CFLAGS)
plugins_onednn_quern_onednn_la_LDFLAGS = $(PLUGIN_LDFLAGS) $(OPENMP_CFLAGS)
plugins_onednn_quern_onednn_la_LIBADD = $(ONEDNN_LIBS) $(LIBM)
QUERN_TEST_PLUGINS += $(abs_top_builddir)/plugins/onednn/.libs
TESTS += plugins/onednn/onednn.tap
endif
endif
EXTRA_DIST += plugins/onednn/onednn.tap
