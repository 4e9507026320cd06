# libquern: the core, and the backends that are built in.

pkginclude_HEADERS += include/quern/quern.h include/quern/ops.h include/quern/backend.h include/quern/tools.h \
                      include/quern/kit.h include/quern/program.h include/quern/number.h include/quern/library.h include/quern/functions.def
nodist_pkginclude_HEADERS = include/quern/opnum.h include/quern/opargs.h include/quern/pointwise.def

pkginclude_HEADERS += include/quern/rnn.h include/quern/group.h include/quern/collective.h include/quern/graph.h

# Generated from the op schema: numbers, tables, typed calls.
# What follows from a kind is in headers of the build alone; who makes opnum.h makes them too.
OPS_KINDS = include/kinds/core.h include/kinds/conform.h include/kinds/problems.h
BUILT_SOURCES += include/quern/opnum.h include/quern/opargs.h include/quern/pointwise.def $(OPS_KINDS)
CLEANFILES += include/quern/opnum.h include/quern/opargs.h include/quern/pointwise.def core/schema_table.c core/calls.c $(OPS_KINDS)
EXTRA_DIST += core/ops.def core/ops.awk core/quern.map

AM_V_OPS   = $(am__v_OPS_@AM_V@)
am__v_OPS_ = $(am__v_OPS_@AM_DEFAULT_V@)
am__v_OPS_0 = @echo "  OPS     " $@;
am__v_OPS_1 =
OPS_SCHEMA = $(top_srcdir)/core/ops.awk $(top_srcdir)/core/ops.def
OPS_AWK = $(AM_V_OPS)$(MKDIR_P) $(@D) && $(AWK) -f $(top_srcdir)/core/ops.awk
include/kinds/%.h: $(OPS_SCHEMA)
	$(OPS_AWK) -v emit=$* $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@
include/quern/opnum.h: $(OPS_SCHEMA) $(OPS_KINDS)
	$(OPS_AWK) -v emit=opnum $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@
include/quern/pointwise.def: $(OPS_SCHEMA)
	$(OPS_AWK) -v emit=pointwise $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@
include/quern/opargs.h: $(OPS_SCHEMA)
	$(OPS_AWK) -v emit=args $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@
core/schema_table.c: $(OPS_SCHEMA)
	$(OPS_AWK) -v emit=table $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@
core/calls.c: $(OPS_SCHEMA)
	$(OPS_AWK) -v emit=calls $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@

# The core alone, for tests of its internals.
noinst_LTLIBRARIES += core/libcore.la
core_libcore_la_SOURCES = \
  core/core.h \
  core/language/problem.h \
  core/language/notation.h \
  core/status.c \
  core/object.c \
  core/language/schema.c \
  core/language/tensor.c \
  core/language/argument.c \
  core/language/attribute.c \
  core/language/layout.c \
  core/language/view.c \
  core/language/flops.c \
  core/language/infer.c \
  core/language/infer_contraction.c \
  core/language/infer_elementwise.c \
  core/language/infer_normalization.c \
  core/language/infer_local.c \
  core/language/infer_sampling.c \
  core/language/infer_loss.c \
  core/language/infer_attention.c \
  core/language/infer_random.c \
  core/language/infer_training.c \
  core/language/infer_quantization.c \
  core/language/infer_recurrent.c \
  core/language/infer_collective.c \
  core/language/infer_pool.c \
  core/language/infer_patches.c \
  core/language/infer_selection.c \
  core/language/infer_transform.c \
  core/language/graph.c \
  core/language/graph_of_op.c \
  core/language/notation.c \
  core/language/notation_words.c \
  core/language/notation_print.c \
  core/language/reader.c \
  core/language/gradient.h \
  core/language/gradients.def \
  core/language/gradient.c \
  core/language/gradient_row.c \
  core/language/gradient_write.c \
  core/language/gradient_move.c \
  core/settings/settings.c \
  core/loading/variables.c \
  core/loading/registry.c \
  core/loading/host.c \
  core/loading/device.c \
  core/ranks/group.h \
  core/ranks/group.c \
  core/ranks/rendezvous.h \
  core/ranks/rendezvous.c \
  core/loading/instance.c \
  core/running/context.c \
  core/running/memory.c \
  core/planning/choose.h \
  core/planning/choose.c \
  core/planning/rank.c \
  core/tuning/search.c \
  core/tuning/layouts.c \
  core/planning/request.c \
  core/planning/fallback.c \
  core/planning/planner.h \
  core/planning/edges.c \
  core/planning/region.c \
  core/planning/planner.c \
  core/planning/lanes.c \
  core/planning/plan.c \
  core/running/cache.c \
  core/running/run.c \
  core/running/join.c \
  core/running/guard.c \
  core/running/record.c \
  core/watching/profile.c \
  core/checking/check.c \
  core/watching/trace.c \
  core/running/explain.c \
  core/language/domain.c \
  core/tuning/tuning.h \
  core/tuning/measure.c \
  core/tuning/tune_cache.c
nodist_core_libcore_la_SOURCES = core/schema_table.c core/calls.c
core_libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/core
if BUILD_PLUGINS
core_libcore_la_CPPFLAGS += -DQN_PLUGINDIR='"$(plugindir)"'
endif
core_libcore_la_CFLAGS = $(AM_CFLAGS) $(CORE_CFLAGS) $(FRAME_CFLAGS)

lib_LTLIBRARIES += libquern.la
libquern_la_SOURCES =
libquern_la_LIBADD = $(QUERN_INSIDE)
libquern_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined $(ZDEFS_LDFLAGS) $(NODELETE_LDFLAGS) -version-info $(QUERN_LTVERSION) $(QUERN_BUILTIN_LDFLAGS)
libquern_la_DEPENDENCIES = core/libcore.la $(QUERN_BUILTIN) $(top_srcdir)/core/quern.map
QUERN_BUILTIN =
QUERN_BUILTIN_DEPS =
QUERN_BUILTIN_LDFLAGS =
# All of libquern, for a test of its internals.
QUERN_INSIDE = core/libcore.la $(QUERN_BUILTIN) $(QUERN_BUILTIN_DEPS) $(LIBM)
if HAVE_VERSION_SCRIPT
libquern_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/core/quern.map
endif
