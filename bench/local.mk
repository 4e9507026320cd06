# quern-bench, its modules and its workloads.

bin_PROGRAMS += bench/quern-bench
bench_quern_bench_SOURCES = \
  bench/bench.h \
  info/start_ranks.h \
  bench/quern-bench.c \
  bench/side.c \
  bench/cases.c \
  bench/flops.c \
  bench/measure.c \
  bench/ceiling.c \
  bench/table.c \
  bench/plot.c \
  bench/ordinary.c \
  bench/cliffs.c \
  bench/selected.c \
  bench/overhead.c \
  bench/busy.c \
  bench/ranks.c \
  bench/direct.c \
  plugins/nccl/nccl_abi.h
bench_quern_bench_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_MODULES='"$(benchmoduledir)"'
bench_quern_bench_LDADD = $(QUERN_LIBS) $(LIBM) -ldl

# Backends for the bench only: an engine that does nothing, and OpenBLAS called directly. They are kept apart from
# the plugins, so that nobody loads them unasked.
benchmoduledir = $(libdir)/quern/bench
benchmodule_LTLIBRARIES =
if BUILD_PLUGINS
benchmodule_LTLIBRARIES += bench/quern_null.la
bench_quern_null_la_SOURCES = bench/null_backend.c
bench_quern_null_la_LDFLAGS = $(PLUGIN_LDFLAGS)
if HAVE_OPENBLAS
benchmodule_LTLIBRARIES += bench/quern_openblas.la
bench_quern_openblas_la_SOURCES = bench/openblas_backend.c
bench_quern_openblas_la_CPPFLAGS = $(AM_CPPFLAGS) $(OPENBLAS_CFLAGS)
bench_quern_openblas_la_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
bench_quern_openblas_la_LDFLAGS = $(PLUGIN_LDFLAGS) $(OPENMP_CFLAGS)
bench_quern_openblas_la_LIBADD = $(OPENBLAS_LIBS)
endif
endif

# The workloads are data for users to run quern-bench on.
workloaddir = $(pkgdatadir)/workloads
dist_workload_DATA = $(wildcard $(srcdir)/bench/workloads/*.q)

# A report of one backend on one machine; scripts that compare with PyTorch, for those who have it; one that writes workloads of what
# networks in the field run.
EXTRA_DIST += bench/field/field.py bench/field/networks.py bench/report bench/reports bench/torch_quern.py bench/torch_calls.py \
  bench/torch_problems.py bench/torch_peer.py bench/torch_gpu.py bench/torch_digits.py
