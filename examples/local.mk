# Programs a newcomer runs first.

noinst_PROGRAMS += examples/cnn_digits
examples_cnn_digits_SOURCES = examples/cnn_digits.c examples/cnn_digits_data.h examples/cnn_digits_graphs.h \
  examples/cnn_digits_ranks.h examples/cnn_digits_show.h
examples_cnn_digits_CPPFLAGS = $(AM_CPPFLAGS) -DDIGITS_CSV='"$(abs_top_srcdir)/examples/data/digits.csv"'
examples_cnn_digits_LDADD = $(QUERN_LIBS) $(LIBM)

noinst_PROGRAMS += examples/pronounce
examples_pronounce_SOURCES = examples/pronounce.c examples/npz.h
examples_pronounce_CPPFLAGS = $(AM_CPPFLAGS) -DPRONOUNCE_NPZ='"$(abs_top_builddir)/examples/g2p_en.npz"'
examples_pronounce_LDADD = $(QUERN_LIBS)
