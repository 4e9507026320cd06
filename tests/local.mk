# Tests of core and of the installation. A program that speaks TAP:
#
#   check_PROGRAMS += tests/t_name
#   TESTS += tests/t_name
#   tests_t_name_SOURCES = tests/t_name.c
# only if it uses core's internals; else the default $(LDADD)
#   tests_t_name_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core

# kit.h alone: conversions, elements, layouts.
check_PROGRAMS += tests/t_kit
TESTS += tests/t_kit
tests_t_kit_SOURCES = tests/t_kit.c tests/tap.h
tests_t_kit_LDADD = $(LIBM)

# Pointwise work as programs.
check_PROGRAMS += tests/t_program
TESTS += tests/t_program
tests_t_program_SOURCES = tests/t_program.c tests/tap.h
tests_t_program_LDADD = $(LDADD) $(LIBM)

# The dispatcher, with engines that compute nothing.
if BUILD_PLUGINS
check_LTLIBRARIES += tests/quern_fake.la tests/quern_streams.la tests/quern_rider.la tests/quern_probe.la
tests_quern_fake_la_SOURCES = tests/fake_backend.c
tests_quern_fake_la_LDFLAGS = $(PLUGIN_LDFLAGS) -rpath $(abs_builddir)
tests_quern_fake_la_LIBADD =
tests_quern_streams_la_SOURCES = tests/fake_backend.c
tests_quern_streams_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_STREAMS
tests_quern_streams_la_LDFLAGS = $(tests_quern_fake_la_LDFLAGS)
tests_quern_streams_la_LIBADD =
tests_quern_rider_la_SOURCES = tests/fake_backend.c
tests_quern_rider_la_CPPFLAGS = $(AM_CPPFLAGS) -DFAKE_RIDER
tests_quern_rider_la_LDFLAGS = $(tests_quern_fake_la_LDFLAGS)
tests_quern_rider_la_LIBADD =
tests_quern_probe_la_SOURCES = tests/probe_backend.c
tests_quern_probe_la_LDFLAGS = $(tests_quern_fake_la_LDFLAGS)
tests_quern_probe_la_LIBADD =
check_PROGRAMS += tests/t_core tests/t_trace tests/t_streams tests/t_tune tests/t_regions
TESTS += tests/t_core tests/t_trace tests/t_streams tests/t_tune tests/t_regions
tests_t_regions_SOURCES = tests/t_regions.c tests/tap.h
tests_t_regions_CPPFLAGS = $(AM_CPPFLAGS) -DQN_FAKE_PLUGINS='"$(abs_top_builddir)/tests/.libs/"'
tests_t_core_SOURCES = tests/t_core.c tests/fake.h tests/tap.h
tests_t_core_CPPFLAGS = $(AM_CPPFLAGS) -DQN_FAKE_PLUGINS='"$(abs_top_builddir)/tests/.libs/"'
tests_t_trace_SOURCES = tests/t_trace.c tests/fake.h tests/tap.h
tests_t_trace_CPPFLAGS = $(tests_t_core_CPPFLAGS)
tests_t_streams_SOURCES = tests/t_streams.c tests/fake.h tests/tap.h
tests_t_streams_CPPFLAGS = $(tests_t_core_CPPFLAGS)
tests_t_tune_SOURCES = tests/t_tune.c tests/fake.h tests/tap.h
tests_t_tune_CPPFLAGS = $(tests_t_core_CPPFLAGS)
endif

# The ops' semantics where libraries disagree: hand-computed tables.
check_PROGRAMS += tests/t_semantics
TESTS += tests/t_semantics
tests_t_semantics_SOURCES = tests/t_semantics.c tests/golden.h tests/tap.h
tests_t_semantics_LDADD = $(LDADD) $(LIBM)

# The oracle against a second implementation.
check_PROGRAMS += tests/t_oracle_second
TESTS += tests/t_oracle_second
tests_t_oracle_second_SOURCES = tests/t_oracle_second.c tests/tap.h
tests_t_oracle_second_LDADD = $(LDADD) $(LIBM)

# The CPU backend within a host program.
check_PROGRAMS += tests/t_cpu_ref
TESTS += tests/t_cpu_ref
tests_t_cpu_ref_SOURCES = tests/t_cpu_ref.c tests/tap.h
tests_t_cpu_ref_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
tests_t_cpu_ref_LDADD = $(LDADD) $(LIBM)

# Graphs differentiated, against differences of their losses.
check_PROGRAMS += tests/t_gradient tests/t_gradient_graphs tests/t_gradient_cases
TESTS += tests/t_gradient tests/t_gradient_graphs tests/t_gradient_cases
tests_t_gradient_cases_SOURCES = tests/t_gradient_cases.c tests/buffers.h tests/tap.h
tests_t_gradient_cases_LDADD = $(LDADD) $(LIBM)
tests_t_gradient_graphs_SOURCES = tests/t_gradient_graphs.c tests/buffers.h tests/tap.h
tests_t_gradient_graphs_LDADD = $(LDADD) $(LIBM)
tests_t_gradient_SOURCES = tests/t_gradient.c tests/buffers.h tests/tap.h
tests_t_gradient_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core -I$(top_srcdir)/core/language
tests_t_gradient_LDADD = $(QUERN_INSIDE)

# The schema's rules and the problem line.
check_PROGRAMS += tests/t_notation tests/t_syntax tests/t_infer tests/t_arguments
TESTS += tests/t_notation tests/t_syntax tests/t_infer tests/t_arguments
tests_t_notation_SOURCES = tests/t_notation.c tests/problems.h tests/tap.h
tests_t_syntax_SOURCES = tests/t_syntax.c tests/problems.h tests/tap.h
tests_t_syntax_LDADD = $(QUERN_INSIDE)
tests_t_syntax_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
tests_t_notation_LDADD = $(QUERN_INSIDE)
tests_t_notation_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
tests_t_infer_SOURCES = tests/t_infer.c tests/tap.h
tests_t_infer_LDADD = $(QUERN_INSIDE)
tests_t_infer_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
tests_t_arguments_SOURCES = tests/t_arguments.c tests/tap.h
tests_t_arguments_LDADD = $(QUERN_INSIDE)
tests_t_arguments_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
EXTRA_DIST += docs/problem-lines.md

# The checking device.
check_PROGRAMS += tests/t_check
TESTS += tests/t_check
tests_t_check_SOURCES = tests/t_check.c tests/tap.h

# Calls of one shape that differ in sharing.
check_PROGRAMS += tests/t_calls
TESTS += tests/t_calls
tests_t_calls_SOURCES = tests/t_calls.c tests/tap.h
tests_t_calls_LDADD = $(LDADD) $(LIBM)

# The result of `make install`, used by a foreign program.
TESTS += tests/install.sh
EXTRA_DIST += tests/install.sh tests/foreign.c

# What docs/adding-an-op.md says of the schema.
TESTS += tests/adding.sh
EXTRA_DIST += tests/adding.sh

# Core's folders use each other in one direction.
TESTS += tests/floors.sh
EXTRA_DIST += tests/floors.sh

# The programs on bad input.
TESTS += tests/cli.sh
EXTRA_DIST += tests/cli.sh

# An example beside its formulas; known words where its weights have been fetched.
TESTS += tests/pronounce.sh
EXTRA_DIST += tests/pronounce.sh tests/pronounce.py

# The CUDA compiler's remarks on the kernels.
if HAVE_CUDA
if !QUICK_CUDA
TESTS += tests/cuda_kernels.sh
endif
endif
EXTRA_DIST += tests/cuda_kernels.sh

# The CUDA backend's launches for absent devices: its own objects, linked with a stand-in for the CUDA runtime.
check_PROGRAMS += tests/t_launches
TESTS += tests/t_launches
tests_t_launches_SOURCES = $(conform_sources) tests/t_launches.c tests/fake_cuda.h tests/tap.h
tests_t_launches_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/conformance
tests_t_launches_LDADD = $(LDADD) $(LIBM) -ldl
fake_cuda = tests/fake_cuda.c tests/fake_cuda.h tests/fake_cuda_memory.c tests/fake_cuda_maps.c tests/fake_cuda_order.c \
            tests/fake_cuda_order.h tests/cuda_code.c tests/cuda_code.h
if HAVE_CUDA
check_LTLIBRARIES += tests/launches/quern_cuda.la
endif
tests_launches_quern_cuda_la_SOURCES = $(fake_cuda)
tests_launches_quern_cuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_launches_quern_cuda_la_LDFLAGS = -module -avoid-version -shared $(ZDEFS_LDFLAGS) -rpath $(abs_builddir) \
                                       -export-symbols-regex '^(quern_plugin_entry_v1|fake_cuda_table)$$'
tests_launches_quern_cuda_la_LIBADD = $(backends_cuda_quern_cuda_la_OBJECTS) -ldl -lstdc++ -lpthread $(LIBM)

# Collectives by plugins/nccl on a stand-in for a GPU and for NCCL.
check_PROGRAMS += tests/t_nccl
TESTS += tests/t_nccl
tests_t_nccl_SOURCES = tests/t_nccl.c tests/ranks.h tests/tap.h
tests_t_nccl_CPPFLAGS = $(AM_CPPFLAGS) -DQN_FAKE_NCCL='"$(abs_top_builddir)/tests/gpu/.libs/quern_gpu.so"' \
                        -DQN_GPU_PLUGINS='"$(abs_top_builddir)/plugins/nccl/.libs:$(abs_top_builddir)/tests/gpu/.libs"'
tests_t_nccl_LDADD = $(LDADD) -lpthread
if BUILD_PLUGINS
check_LTLIBRARIES += tests/gpu/quern_gpu.la
endif
tests_gpu_quern_gpu_la_SOURCES = tests/fake_gpu.c plugins/nccl/nccl_abi.h
tests_gpu_quern_gpu_la_LDFLAGS = -module -avoid-version -shared $(ZDEFS_LDFLAGS) -rpath $(abs_builddir) \
                                 -export-symbols-regex '^(quern_plugin_entry_v1|nccl.*)$$'
tests_gpu_quern_gpu_la_LIBADD = -lpthread

# Streams, waits and events of plans with lanes: the CUDA backend's device with engines that only fill and copy, on the same stand-in.
check_PROGRAMS += tests/t_lanes
TESTS += tests/t_lanes
tests_t_lanes_SOURCES = tests/t_lanes.c tests/fake_cuda.h tests/tap.h
tests_t_lanes_CPPFLAGS = $(AM_CPPFLAGS) -DQN_LANES_PLUGIN='"$(abs_top_builddir)/tests/.libs/quern_lanes.so"'
tests_t_lanes_LDADD = $(LDADD) -ldl
if HAVE_CUDA
check_LTLIBRARIES += tests/quern_lanes.la
endif
tests_quern_lanes_la_SOURCES = tests/lane_backend.c backends/cuda/device.c $(fake_cuda)
tests_quern_lanes_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/backends/cuda $(CUDA_CPPFLAGS)
tests_quern_lanes_la_LDFLAGS = $(tests_launches_quern_cuda_la_LDFLAGS)
tests_quern_lanes_la_LIBADD = -ldl -lpthread

# The CUDA backend's kernels, emulated on the CPU. Not part of make check: it compiles them again, which takes minutes.
EXTRA_DIST += tests/emulated/build.mk tests/emulated/conform.tap tests/emulated/device.h tests/emulated/emulated.cpp \
              tests/emulated/ptx.h tests/emulated/translate.py tests/emulated/wgmma_instructions.cuh
check-emulated: conformance/quern-conform$(EXEEXT)
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS=tests/emulated/conform.tap
.PHONY: check-emulated

# Defective plugins. -rpath makes libtool build a shared object of something that is never installed.
if BUILD_PLUGINS
check_PROGRAMS += tests/t_loader
TESTS += tests/loader.sh
check_LTLIBRARIES += tests/plugin.la tests/plugin_v2.la tests/plugin_none.la
endif
test_plugin_ldflags = -module -avoid-version -shared -rpath $(abs_builddir)
tests_plugin_la_SOURCES = tests/plugin.c
tests_plugin_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
tests_plugin_la_LDFLAGS = $(test_plugin_ldflags)
tests_plugin_v2_la_SOURCES = tests/plugin.c
tests_plugin_v2_la_CPPFLAGS = $(AM_CPPFLAGS) -DENTRY=quern_plugin_entry_v2
tests_plugin_v2_la_CFLAGS = $(tests_plugin_la_CFLAGS)
tests_plugin_v2_la_LDFLAGS = $(test_plugin_ldflags)
tests_plugin_none_la_SOURCES = tests/plugin.c
tests_plugin_none_la_CPPFLAGS = $(AM_CPPFLAGS) -DENTRY=quern_plugin
tests_plugin_none_la_CFLAGS = $(tests_plugin_la_CFLAGS)
tests_plugin_none_la_LDFLAGS = $(test_plugin_ldflags)
tests_t_loader_SOURCES = tests/t_loader.c tests/tap.h
EXTRA_DIST += tests/loader.sh

# Larger frames than the library's are the sanitizers'.
if !SANITIZER
check_PROGRAMS += tests/t_stack
TESTS += tests/t_stack
endif
tests_t_stack_SOURCES = tests/t_stack.c tests/tap.h

# Opened and closed again; a static library has nothing to open.
if BUILD_PLUGINS
check_PROGRAMS += tests/t_dlclose
TESTS += tests/t_dlclose
endif
tests_t_dlclose_SOURCES = tests/t_dlclose.c tests/tap.h
tests_t_dlclose_CPPFLAGS = $(AM_CPPFLAGS) -DQN_LIBRARY='"$(abs_top_builddir)/.libs/libquern.so"'
tests_t_dlclose_LDFLAGS =
tests_t_dlclose_LDADD = -ldl

# Recurrent networks in other libraries' layouts.
check_PROGRAMS += tests/t_rnn
TESTS += tests/t_rnn
tests_t_rnn_SOURCES = tests/t_rnn.c tests/tap.h
tests_t_rnn_LDADD = $(LDADD) $(LIBM)

# Processes and threads around the library.
check_PROGRAMS += tests/t_threads tests/t_openmp tests/t_fork tests/t_misuse tests/t_alloc tests/t_prepare tests/t_devices tests/t_amp tests/t_lists
TESTS += tests/t_threads tests/t_openmp tests/t_fork tests/t_misuse tests/t_alloc tests/t_prepare tests/t_devices tests/t_amp tests/t_lists
tests_t_threads_SOURCES = tests/t_threads.c tests/tap.h
tests_t_amp_SOURCES = tests/t_amp.c tests/tap.h
tests_t_lists_SOURCES = tests/t_lists.c tests/tap.h
tests_t_openmp_SOURCES = tests/t_openmp.c tests/tap.h
tests_t_openmp_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
tests_t_fork_SOURCES = tests/t_fork.c tests/tap.h
tests_t_fork_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS)
tests_t_fork_LDADD = $(LDADD) $(LIBM)
tests_t_misuse_SOURCES = tests/t_misuse.c tests/tap.h
tests_t_misuse_LDADD = $(LDADD) -lpthread
tests_t_devices_SOURCES = tests/t_devices.c tests/tap.h
tests_t_devices_LDADD = $(LDADD) -ldl -lpthread
tests_t_alloc_SOURCES = tests/t_alloc.c tests/tap.h
tests_t_alloc_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
tests_t_alloc_LDADD = $(QUERN_INSIDE)
tests_t_prepare_SOURCES = tests/t_prepare.c tests/tap.h
tests_t_prepare_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
tests_t_prepare_LDADD = $(QUERN_INSIDE) $(LIBM)

# Ranks: processes and threads that compute together, and faults.
check_PROGRAMS += tests/t_group
TESTS += tests/t_group
tests_t_group_SOURCES = tests/t_group.c tests/ranks.h tests/tap.h
check_PROGRAMS += tests/t_collectives
TESTS += tests/t_collectives
tests_t_collectives_SOURCES = tests/t_collectives.c tests/ranks.h tests/tap.h
tests_t_collectives_LDADD = $(LDADD) $(LIBM)
TESTS += tests/digits_ranks.tap
EXTRA_DIST += tests/digits_ranks.tap
