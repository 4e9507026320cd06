# Tests of core and of what is installed. A program that speaks TAP:
#
#   check_PROGRAMS += tests/t_name
#   TESTS += tests/t_name
#   tests_t_name_SOURCES = tests/t_name.c
#   tests_t_name_LDADD = core/libcore.la $(LIBM)      only if it reaches inside; else $(LDADD) is right
#   tests_t_name_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core

# kit.h alone: conversions, elements, layouts.
check_PROGRAMS += tests/t_kit
TESTS += tests/t_kit
tests_t_kit_SOURCES = tests/t_kit.c tests/tap.h
tests_t_kit_LDADD = $(LIBM)

# The dispatcher, on engines that compute nothing.
if BUILD_PLUGINS
check_LTLIBRARIES += tests/quern_fake.la
tests_quern_fake_la_SOURCES = tests/fake_backend.c
tests_quern_fake_la_LDFLAGS = $(PLUGIN_LDFLAGS) -rpath $(abs_builddir)
tests_quern_fake_la_LIBADD =
check_PROGRAMS += tests/t_core
TESTS += tests/t_core
tests_t_core_SOURCES = tests/t_core.c tests/tap.h
tests_t_core_CPPFLAGS = $(AM_CPPFLAGS) -DQN_FAKE_PLUGIN='"$(abs_top_builddir)/tests/.libs/quern_fake.so"'
endif
