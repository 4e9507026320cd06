# quern-bench, its modules and its workloads.

bin_PROGRAMS += bench/quern-bench
bench_quern_bench_SOURCES = \
  bench/bench.h \
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
  bench/overhead.c \
  bench/busy.c
bench_quern_bench_CPPFLAGS = $(AM_CPPFLAGS) -DBENCH_MODULES='"$(benchmoduledir)"'
bench_quern_bench_LDADD = $(QUERN_LIBS) $(LIBM)

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
dist_workload_DATA = \
  bench/workloads/alexnet.q \
  bench/workloads/alexnet_backward.q \
  bench/workloads/anchors.q \
  bench/workloads/anchors_f32.q \
  bench/workloads/anchors_matmul.q \
  bench/workloads/field_patches.q \
  bench/workloads/field_cpu.q \
  bench/workloads/gemm.q \
  bench/workloads/loss.q \
  bench/workloads/ctc.q \
  bench/workloads/field_softmax.q \
  bench/workloads/field_pool.q \
  bench/workloads/field_norm.q \
  bench/workloads/field_matmul.q \
  bench/workloads/attention.q \
  bench/workloads/field_conv.q \
  bench/workloads/field_depthwise.q \
  bench/workloads/field_grouped.q \
  bench/workloads/cpu.q \
  bench/workloads/mobilenet.q \
  bench/workloads/mobilenet_backward.q \
  bench/workloads/normalization.q \
  bench/workloads/pointwise.q \
  bench/workloads/pool_adaptive.q \
  bench/workloads/pool_backward.q \
  bench/workloads/pooling.q \
  bench/workloads/quantize.q \
  bench/workloads/random.q \
  bench/workloads/reduce.q \
  bench/workloads/lrn.q \
  bench/workloads/rnn.q \
  bench/workloads/sampling.q \
  bench/workloads/resample.q \
  bench/workloads/resnet50.q \
  bench/workloads/resnet50_backward.q \
  bench/workloads/select.q \
  bench/workloads/softmax.q \
  bench/workloads/training.q \
  bench/workloads/transform.q \
  bench/workloads/vgg.q \
  bench/workloads/vgg_backward.q

# A report of one backend on one machine; scripts that compare with PyTorch, for those who have it; one that writes workloads of what
# networks in the field run.
EXTRA_DIST += bench/field/field.py bench/report bench/reports bench/torch_calls.py bench/torch_peer.py bench/torch_gpu.py bench/torch_digits.py
