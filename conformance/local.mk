# quern-conform, its cases, and the backend of seeded bugs.

conformdir = $(pkgdatadir)/conformance
dist_conform_DATA = $(wildcard $(srcdir)/conformance/cases/*.q) conformance/cases/refused.txt

ranksdir = $(conformdir)/ranks
dist_ranks_DATA = conformance/cases/ranks/collective.q

conform_sources = \
  conformance/conform.h \
  info/start_ranks.h \
  conformance/suite/parent.c \
  conformance/suite/worker.c \
  conformance/suite/ranks.c \
  conformance/suite/pipe.c \
  conformance/suite/failures.c \
  conformance/suite/tap.c \
  conformance/suite/memory.c \
  conformance/suite/stack.c \
  conformance/suite/line.c \
  conformance/suite/cases.c \
  conformance/suite/random.c \
  conformance/suite/random_families.c \
  conformance/suite/random_graph.c \
  conformance/suite/number.c \
  conformance/suite/fill.c \
  conformance/suite/problem.c \
  conformance/suite/oracle.c \
  conformance/bound/bound.c \
  conformance/bound/bound_sums.c \
  conformance/bound/bound_contraction.c \
  conformance/bound/bound_winograd.c \
  conformance/bound/bound_pointwise.c \
  conformance/bound/bound_reduction.c \
  conformance/bound/bound_lrn.c \
  conformance/bound/bound_recurrent.c \
  conformance/bound/bound_sampling.c \
  conformance/bound/bound_resampling.c \
  conformance/bound/bound_softmax.c \
  conformance/bound/bound_normalization.c \
  conformance/bound/bound_loss.c \
  conformance/bound/bound_random.c \
  conformance/bound/bound_attention.c \
  conformance/bound/bound_training.c \
  conformance/suite/buffer.c \
  conformance/suite/execute.c \
  conformance/suite/compare.c \
  conformance/suite/run.c \
  conformance/suite/engine.c \
  conformance/suite/check_batch.c \
  conformance/suite/check_other.c \
  conformance/suite/check_rungs.c \
  conformance/suite/grad.c

bin_PROGRAMS += conformance/quern-conform
conformance_quern_conform_SOURCES = $(conform_sources) conformance/suite/main.c
conformance_quern_conform_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/conformance -DQC_CASES_DIR='"$(conformdir)"'
conformance_quern_conform_LDADD = $(LDADD) $(LIBM)

# The judge's own test.
check_PROGRAMS += conformance/t_judge
TESTS += conformance/t_judge
conformance_t_judge_SOURCES = $(conform_sources) conformance/t_judge.c
conformance_t_judge_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/conformance
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
