# Tests of core and of what is installed. A program that speaks TAP:
#
#   check_PROGRAMS += tests/t_name
#   TESTS += tests/t_name
#   tests_t_name_SOURCES = tests/t_name.c
#   tests_t_name_LDADD = core/libcore.la $(LIBM)      only if it reaches inside; else $(LDADD) is right
#   tests_t_name_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
