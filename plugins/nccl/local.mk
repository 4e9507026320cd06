# Collectives between GPUs by NCCL: needs no header of it; the library is opened at run time.

if BUILD_PLUGINS
plugin_LTLIBRARIES += plugins/nccl/quern_nccl.la
plugins_nccl_quern_nccl_la_SOURCES = \
  plugins/nccl/nccl_abi.h \
  plugins/nccl/library.c \
  plugins/nccl/nccl.c
plugins_nccl_quern_nccl_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
plugins_nccl_quern_nccl_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_nccl_quern_nccl_la_LIBADD = $(LIBM)
QUERN_TEST_PLUGINS += $(abs_top_builddir)/plugins/nccl/.libs
endif
