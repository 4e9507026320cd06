# quern-conform, its cases, and the backend of seeded bugs.

conformdir = $(pkgdatadir)/conformance
dist_conform_DATA = \
  conformance/cases/cast.q \
  conformance/cases/collective.q \
  conformance/cases/conv.q \
  conformance/cases/conv_backward_data.q \
  conformance/cases/conv_backward_filter.q \
  conformance/cases/edges.q \
  conformance/cases/graph.q \
  conformance/cases/long.q \
  conformance/cases/loss.q \
  conformance/cases/ctc.q \
  conformance/cases/matmul.q \
  conformance/cases/normalization.q \
  conformance/cases/pointwise.q \
  conformance/cases/pool.q \
  conformance/cases/pool_adaptive.q \
  conformance/cases/pool_backward.q \
  conformance/cases/quantize.q \
  conformance/cases/random.q \
  conformance/cases/reduce.q \
  conformance/cases/refused.txt \
  conformance/cases/lrn.q \
  conformance/cases/sampling.q \
  conformance/cases/resample.q \
  conformance/cases/rnn.q \
  conformance/cases/select.q \
  conformance/cases/softmax.q \
  conformance/cases/training.q \
  conformance/cases/transform.q

ranksdir = $(conformdir)/ranks
dist_ranks_DATA = conformance/cases/ranks/collective.q

conform_sources = \
  conformance/conform.h \
  conformance/parent.c \
  conformance/worker.c \
  conformance/ranks.c \
  conformance/pipe.c \
  conformance/failures.c \
  conformance/tap.c \
  conformance/memory.c \
  conformance/stack.c \
  conformance/line.c \
  conformance/cases.c \
  conformance/random.c \
  conformance/random_families.c \
  conformance/random_graph.c \
  conformance/number.c \
  conformance/fill.c \
  conformance/problem.c \
  conformance/oracle.c \
  conformance/bound.c \
  conformance/bound_sums.c \
  conformance/bound_contraction.c \
  conformance/bound_winograd.c \
  conformance/bound_pointwise.c \
  conformance/bound_reduction.c \
  conformance/bound_lrn.c \
  conformance/bound_recurrent.c \
  conformance/bound_sampling.c \
  conformance/bound_resampling.c \
  conformance/bound_softmax.c \
  conformance/bound_normalization.c \
  conformance/bound_loss.c \
  conformance/bound_random.c \
  conformance/bound_attention.c \
  conformance/bound_training.c \
  conformance/buffer.c \
  conformance/execute.c \
  conformance/compare.c \
  conformance/run.c \
  conformance/engine.c \
  conformance/check_batch.c \
  conformance/check_other.c \
  conformance/check_rungs.c \
  conformance/grad.c

bin_PROGRAMS += conformance/quern-conform
conformance_quern_conform_SOURCES = $(conform_sources) conformance/main.c
conformance_quern_conform_CPPFLAGS = $(AM_CPPFLAGS) -DQC_CASES_DIR='"$(conformdir)"'
conformance_quern_conform_LDADD = $(LDADD) $(LIBM)

# The judge's own test.
check_PROGRAMS += conformance/t_judge
TESTS += conformance/t_judge
conformance_t_judge_SOURCES = $(conform_sources) conformance/t_judge.c
conformance_t_judge_LDADD = $(LDADD) $(LIBM)

TESTS += conformance/cpu_ref.tap
EXTRA_DIST += conformance/cpu_ref.tap conformance/t_mutants.tap

# The backend of seeded bugs: built and used by make check, not installed.
if BUILD_PLUGINS
check_LTLIBRARIES += conformance/mutant/quern_mutant.la
conformance_mutant_quern_mutant_la_SOURCES = \
  conformance/mutant/mutant.h \
  conformance/mutant/mutants.h \
  conformance/mutant/mutant.c \
  conformance/mutant/mutants_loss.c \
  conformance/mutant/mutants_matmul.c \
  conformance/mutant/mutants_conv.c \
  conformance/mutant/mutants_norm.c \
  conformance/mutant/mutants_quantize.c \
  conformance/mutant/mutants_random.c \
  conformance/mutant/mutants_attention.c \
  conformance/mutant/mutants_training.c \
  conformance/mutant/mutants_recurrent.c \
  conformance/mutant/mutants_reduce.c \
  conformance/mutant/mutants_lrn.c \
  conformance/mutant/mutants_sampling.c \
  conformance/mutant/mutants_resample.c \
  conformance/mutant/mutants_select.c \
  conformance/mutant/mutants_pointwise.c
conformance_mutant_quern_mutant_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
conformance_mutant_quern_mutant_la_LDFLAGS = $(PLUGIN_LDFLAGS) -rpath $(plugindir)
conformance_mutant_quern_mutant_la_LIBADD = $(LIBM)
TESTS += conformance/t_mutants.tap

check_LTLIBRARIES += conformance/mutant/quern_rank_mutant.la
conformance_mutant_quern_rank_mutant_la_SOURCES = conformance/mutant/rank_mutant.c
conformance_mutant_quern_rank_mutant_la_CFLAGS = $(AM_CFLAGS) $(HIDDEN_CFLAGS)
conformance_mutant_quern_rank_mutant_la_LDFLAGS = $(PLUGIN_LDFLAGS) -rpath $(plugindir)
conformance_mutant_quern_rank_mutant_la_LIBADD = $(LIBM)
endif
TESTS += conformance/ranks.tap
EXTRA_DIST += conformance/ranks.tap
EXTRA_DIST += conformance/reports
