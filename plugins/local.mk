# Engines from elsewhere, each a backend of its own.

# The starting point for a kernel author (docs/adding-an-engine.md): built and tested by make check; only its source is installed.
EXTRA_DIST += plugins/example/conform.tap
if BUILD_PLUGINS
check_LTLIBRARIES += plugins/example/quern_example.la
plugins_example_quern_example_la_SOURCES = plugins/example/example.c
plugins_example_quern_example_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
plugins_example_quern_example_la_LDFLAGS = $(PLUGIN_LDFLAGS) -rpath $(plugindir)
QUERN_TEST_PLUGINS += $(abs_top_builddir)/plugins/example/.libs
check_PROGRAMS += tests/t_example
TESTS += tests/t_example plugins/example/conform.tap
tests_t_example_SOURCES = tests/t_example.c tests/tap.h
tests_t_example_LDADD = $(LDADD) $(LIBM) -ldl
endif

include plugins/cudnn/local.mk
include plugins/onednn/local.mk
include plugins/nccl/local.mk
include plugins/mpi/local.mk
