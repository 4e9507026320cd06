# libquern: the core, and the backends that are built in.

pkginclude_HEADERS += include/quern/quern.h include/quern/ops.h include/quern/backend.h include/quern/tools.h \
                      include/quern/kit.h include/quern/number.h include/quern/library.h include/quern/functions.def
nodist_pkginclude_HEADERS = include/quern/opnum.h include/quern/opargs.h

pkginclude_HEADERS += include/quern/rnn.h include/quern/group.h include/quern/collective.h

# Generated from the op schema: numbers, tables, typed calls.
BUILT_SOURCES += include/quern/opnum.h include/quern/opargs.h
CLEANFILES += include/quern/opnum.h include/quern/opargs.h core/schema_table.c core/calls.c
EXTRA_DIST += core/ops.def core/ops.awk core/quern.map

AM_V_OPS   = $(am__v_OPS_@AM_V@)
am__v_OPS_ = $(am__v_OPS_@AM_DEFAULT_V@)
am__v_OPS_0 = @echo "  OPS     " $@;
am__v_OPS_1 =
OPS_SCHEMA = $(top_srcdir)/core/ops.awk $(top_srcdir)/core/ops.def
OPS_AWK = $(AM_V_OPS)$(MKDIR_P) $(@D) && $(AWK) -f $(top_srcdir)/core/ops.awk
include/quern/opnum.h: $(OPS_SCHEMA)
	$(OPS_AWK) -v emit=opnum $(top_srcdir)/core/ops.def >$@-new && mv -f $@-new $@
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
  core/problem.h \
  core/notation.h \
  core/status.c \
  core/object.c \
  core/schema.c \
  core/tensor.c \
  core/argument.c \
  core/attribute.c \
  core/layout.c \
  core/flops.c \
  core/infer.c \
  core/infer_contraction.c \
  core/infer_elementwise.c \
  core/infer_normalization.c \
  core/infer_local.c \
  core/infer_sampling.c \
  core/infer_loss.c \
  core/infer_attention.c \
  core/infer_random.c \
  core/infer_training.c \
  core/infer_quantization.c \
  core/infer_recurrent.c \
  core/infer_collective.c \
  core/infer_pool.c \
  core/infer_selection.c \
  core/infer_transform.c \
  core/graph.c \
  core/notation.c \
  core/notation_words.c \
  core/notation_print.c \
  core/reader.c \
  core/settings.c \
  core/registry.c \
  core/host.c \
  core/device.c \
  core/context.c \
  core/memory.c \
  core/choose.c \
  core/request.c \
  core/fallback.c \
  core/planner.c \
  core/plan.c \
  core/cache.c \
  core/run.c \
  core/record.c \
  core/profile.c \
  core/check.c \
  core/group.c \
  core/rendezvous.h \
  core/rendezvous.c \
  core/trace.c \
  core/explain.c \
  core/domain.c \
  core/tune.c
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
