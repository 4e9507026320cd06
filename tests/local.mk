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
