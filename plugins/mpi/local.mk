# Collectives between hosts by MPI, whose binary interface is that of the MPI which it is compiled for.

if BUILD_PLUGINS
if HAVE_MPI
plugin_LTLIBRARIES += plugins/mpi/quern_mpi.la
plugins_mpi_quern_mpi_la_SOURCES = \
  plugins/mpi/member.h \
  plugins/mpi/member.c \
  plugins/mpi/mpi.c
plugins_mpi_quern_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CPPFLAGS)
plugins_mpi_quern_mpi_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
plugins_mpi_quern_mpi_la_LDFLAGS = $(PLUGIN_LDFLAGS)
plugins_mpi_quern_mpi_la_LIBADD = $(MPI_LIBS) $(LIBM)
QUERN_TEST_PLUGINS += $(abs_top_builddir)/plugins/mpi/.libs
TESTS += plugins/mpi/mpi.tap
endif
endif
EXTRA_DIST += plugins/mpi/mpi.tap
